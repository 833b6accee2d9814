"""What was changed on purpose since older versions.

Ids of rows, and formulas by the id of their row and the version.

A workbook of an older version is read with the formulas of today. Where one of its formulas is another, this
list says whether the version that made the file printed that formula, and why it was changed. A formula that
is other and not listed was edited by hand. Inputs that were renamed are found under their former ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mantile.library.scenario import FORMER_IDS

_COLUMN = re.compile(r"\]\$?[A-Z]+")  # behind an id
_FORMER = re.compile(rf"(?<![^.])(?:{'|'.join(map(re.escape, FORMER_IDS))})(?![^.])")
_VERSION = re.compile(r"mantile (\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """A change of formulas.

    Args:
        since: the first version that has the new formulas, as major and minor number.
        ids: a regular expression that the id of a changed figure matches, without what copies of it and the
            decode workers' have in front.
        formula: a regular expression of the formula before, with ids in place of cells.
        why: what was changed, and why.
    """

    since: tuple[int, int]
    ids: str
    formula: str
    why: str

    def explains(self, identifier: str, formula: str) -> bool:
        """Whether a figure had this formula before the change."""
        row = re.fullmatch(rf"(?P<copy>.+\.)?(?:{self.ids})", identifier)
        if row is None:
            return False
        ids = _COLUMN.sub("]", formula).replace(f"[{row['copy']}", "[")
        return re.fullmatch(self.formula, ids) is not None


_LOAD = (
    "at a request rate the batch follows by Little's law in a formula, from step times that are lines over "
    "the batch, beside which the reading of experts follows what the batch touches; 0.6.0 took one line "
    "through a batch that it had searched for"
)
_WIDEST = (
    "the widest projection is the largest of its candidates, a formula; 0.6.0 chose it when it made the file"
)
_LINE = r"=\[load\.fixed\]\+\[load\.slope\]\*\(\[load\.{}\]/\[constant\.one_request\]\)"

_STAGES = (
    "a stage holds the layers that stand there in the order of the model; 0.6.0 spread each kind evenly over "
    "the stages"
)
_PP = r"\[inputs\.(?:decode_)?pp\]"
_TURN = rf"(?:\[plan\.stage\.\d\]|MOD\(\[plan\.stage\.\d\]-\[plan\.layers[\w.]*\.after\],{_PP}\))"

_SCHEDULE = (
    "a request waits behind prompts in its batch slot, slots that wait for their prefill do not decode, "
    "prompts are priced by the roofline of the step that carries them, every chunk pays launches and reads "
    "from the host, beyond saturation the queue grows, decode workers hold what is in decode, and KV places "
    "go by the framework's policy; 0.7.0 had none of it"
)
_COMPARED = (
    "one stage has no micro-batches, a step reads the cache on the host of its own requests, no more prompts "
    "are prefilled together than are let in, no warm-up burst comes at a rate, and requests in flight are a "
    "mean: neighbouring deployments could not be compared; 0.7.0 had none of it"
)
_LENGTH = r"\[(?:[\w.]+\.)?memory\.sequence_length\]"
_OLD = {
    "decode.microbatches": "IF([inputs.microbatches]>0,[inputs.microbatches],"
    "MIN([inputs.pp],MAX(1,[memory.batch]/[constant.one_request])))",
    "decode.requests": "MAX(1,[memory.batch]/[decode.microbatches])",
    "load.decoding": "MIN([load.most],"
    "[load.rate]*([inputs.output_tokens]/[constant.tokens_per_step])*[load.tpot])",
    "load.limit": "[constant.one_request]/([load.delay]+[inputs.output_tokens]/[constant.tokens_per_step]"
    "*[load.full_step]/([load.most]/[constant.one_request]))",
    "load.drain": "[constant.half]*[serving.prefill_service]/[load.free]",
    "load.left": "MAX([constant.smallest],1-[load.rate]*[load.work]/[constant.one_request])",
    "load.prompts": "[load.rate]*[serving.prefill_service]/[constant.one_request]",
    "load.open": "IF([inputs.request_rate]>0,1,0)",
    "load.served": "MIN([inputs.request_rate],[load.limit]*[inputs.dp])",
    "load.wait": "MIN([constant.never],[constant.half]*[load.prompts]*[serving.prefill_service]/[load.free])",
    "load.wait_p50": "MIN([constant.never],[load.drain]*MAX(0,LN(MAX([constant.smallest],"
    "[load.prompts]/[constant.half_left]))))",
    "load.wait_p95": "MIN([constant.never],[load.drain]*MAX(0,LN(MAX([constant.smallest],"
    "[load.prompts]/[constant.one_in_twenty]))))",
    "load.worst": "[load.full_step]+[load.delay]*([load.most]/[constant.one_request])"
    "/([inputs.output_tokens]/[constant.tokens_per_step])",
    "memory.all_kv": "[memory.seats]*[memory.kv_bytes_per_request]",
    "memory.batch": "MAX(1,MIN([memory.requests],[memory.capacity_sequences],"
    "IF([inputs.max_requests]>0,[inputs.max_requests],[memory.requests])))",
    "memory.rank_sequences": "MIN(([memory.kv_room]+[inputs.offload_kv]*[constant.bytes_per_gb])"
    "/([memory.kv_bytes_per_request]+[memory.logits_per_request]),[memory.kv_room]/[memory.logits_per_request])",
    "serving.burst": "MAX([serving.base],[serving.first_token]+[serving.burst_step]*[serving.burst_steps]"
    "+[serving.decode_step])+[efficiency.cold_start]",
    "serving.burst_step": "IF([scheduler.first]>0,[serving.prefill_service]*MAX(1,[serving.burst_prompts]),"
    "[serving.decode_step]+[serving.prefill_added]*[serving.burst_prompts])",
    "serving.burst_wait": "IF([serving.first_share]>0,"
    "[serving.first_share]*([serving.burst]-[serving.ttft_steady]),0)",
    "serving.full_step": "IF([scheduler.first]>0,[serving.prefill_service]*MAX(1,[serving.prompts_per_step]),"
    "[serving.decode_step]+[serving.prefill_added]*[serving.prompts_per_step])",
    "serving.prefill": "[serving.prefill_through]*IF([inputs.continuous]>0,[efficiency.prefill_alone],1)",
    "serving.prefill_added": "[serving.prefill_service]*(1-[prefill.bound.overhead]/[prefill.time])",
    "serving.prefill_busy": "IF([inputs.pp]>1,[serving.prefill_stage],[prefill.time])",
    "serving.prefill_chunk": "([serving.prefill_stage]-[serving.prefill_fixed])/[serving.prefill_chunks]"
    "+[serving.prefill_fixed]",
    "serving.prefill_chunks": "MAX(1,[inputs.input_tokens]*[constant.one_request]/[inputs.token_budget])",
    "serving.prefill_fixed": "MIN([serving.prefill_stage],"
    "([prefill.bound.overhead]+[prefill.host.time])/[inputs.pp])",
    "serving.prefill_through": "IF([inputs.pp]>1,MIN([prefill.time],"
    "([serving.prefill_chunks]+[inputs.pp]-1)*[serving.prefill_chunk]),[prefill.time])",
    "serving.prefill_wait": "[inputs.disaggregated]*MAX(0,[inputs.concurrency]/[serving.prefill_limit]"
    "-[serving.service_time]-[serving.seat_wait])",
    "serving.prompt_delay": "IF([scheduler.first]>0,[serving.prefill_service],[serving.prefill_added])",
    "serving.prompts_per_token": "[serving.others]*[constant.tokens_per_step]/[inputs.output_tokens]",
    "serving.requests_per_s": "CLOSED{[serving.ramp]*[inputs.concurrency]/[serving.e2e]}",
    "serving.saturated": "IF([scheduler.first]>0,[serving.prefill_service],"
    "[serving.full_step]/[serving.prompts_per_step])",
    "serving.seat_wait": "([memory.requests]-[memory.batch])/[memory.batch]*[serving.service_time]",
    "serving.service_time": "[serving.base]+[serving.generation]",
    "serving.ttft_p50": "MAX([serving.base]+CLOSED{[serving.wait_half]},[serving.saturation])+WAITS",
    "serving.ttft_p95": "MAX(MAX([serving.base]+CLOSED{[serving.wait_p95]},[serving.saturation])"
    "+WAITS,[serving.ttft_p50])",
}
_OLD_COMPARED = {
    r"prefill\.requests": "IF([inputs.continuous]>0,"
    "MIN([inputs.attention_dp]*[constant.one_request],[memory.requests]),[memory.batch])",
    r"decode\.host\.bytes": "[memory.host_weights]*[inputs.pp]+[memory.host_kv]",
}
_VARIANTS = {
    **{
        f"[inputs.{name}]": rf"\[(?:inputs\.{name}|value)\]"
        for name in ("input_tokens", "output_tokens", "concurrency", "request_rate", "max_requests")
    },
    "[inputs.dp]": r"\[inputs\.(?:decode_)?dp\]",
    "[inputs.pp]": r"\[(?:inputs\.(?:decode_)?pp|value)\]",
    "[memory.batch]": r"\[(?:(?:decode\.)?memory\.batch|constant\.one_request)\]",
    "CLOSED{": r"(?:IF\(\[load\.open\]>0,\[load\.\w+\],)?",
    "}": r"\)?",
    "WAITS": r"\(?\[serving\.seat_wait\](?:\+\[serving\.prefill_wait\]\))?",
}
"""What stands for a part of these formulas in a copy for a case, with decode workers, or with a load."""


def _pattern(formula: str) -> str:
    """A regular expression of an old formula and its variants."""
    parts = re.split(r"(\[[\w.]+\]|CLOSED\{|\}|WAITS)", f"={formula}")
    return "".join(
        _VARIANTS.get(part, re.escape(part).replace(r"\[memory", r"\[(?:[\w.]+\.)?memory")) for part in parts
    )


CHANGES: tuple[Change, ...] = (
    Change(
        since=(0, 7),
        ids=r"plan\.layers(?:\.\w+)*\.\d",
        formula=rf"=IF\(\[plan\.stage\.\d\]<{_PP},INT\(\(\[model\.[\w.]+\]\+{_PP}-1-{_TURN}\)/{_PP}\),0\)",
        why=_STAGES,
    ),
    Change(since=(0, 7), ids=r"load\.full_step", formula=_LINE.format("most"), why=_LOAD),
    Change(since=(0, 7), ids=r"load\.step", formula=_LINE.format("decoding"), why=_LOAD),
    Change(
        since=(0, 7),
        ids=r"load\.slope",
        formula=r"=MAX\(0,\[serving\.decode_step\]-\[single\.(?:decode\.)+time\]\)/"
        r"MAX\(1,\[(?:decode\.)?memory\.batch\]/\[constant\.one_request\]-1\)",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"load\.fixed",
        formula=r"=\[single\.(?:decode\.)+time\]-\[load\.slope\]",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"load\.tpot",
        formula=r"=MIN\(\[load\.fixed\]/\[load\.left\],\[load\.worst\]\)",
        why=_LOAD,
    ),
    Change(
        since=(0, 7),
        ids=r"memory\.(?:mixer|ffn)_width",
        formula=r"=\[(?:plan|model)\.\w+\](?:[+*]\[(?:plan|model)\.\w+\])*",
        why=_WIDEST,
    ),
    Change(
        since=(0, 7),
        ids=r"memory\.activation_width",
        formula=r"=\[model\.hidden_size\]\+\[memory\.mixer_width\]\+\[memory\.ffn_width\]",
        why=_WIDEST,
    ),
    *(
        Change(since=(0, 8), ids=re.escape(identifier), formula=_pattern(formula), why=_SCHEDULE)
        for identifier, formula in _OLD.items()
    ),
    Change(
        since=(0, 8),
        ids=r"memory\.cached_tokens(?:\.\w+)?",
        formula=rf"=(?:IF\(\[model\.\w+\]>0,MIN\({_LENGTH},\[model\.\w+\]\),{_LENGTH}\)|{_LENGTH})"
        r"/\[inputs\.(?:decode_)?cp\]",
        why=_SCHEDULE,
    ),
    Change(
        since=(0, 8),
        ids=r"serving\.saturation",
        formula=r"=(?:(?:\(1-\[[\w.]+\]\)|\[[\w.]+\]|1)\*)+MAX\(0,\[(?:decode\.)?memory\.batch\]"
        r"/\[constant\.one_request\]\*\[serving\.saturated\]-\[serving\.generation\]\)",
        why=_SCHEDULE,
    ),
    Change(
        since=(0, 8),
        ids=r"load\.delay",
        formula=r"=\[inputs\.continuous\]\*(?:\(1-\[inputs\.disaggregated\]\)\*)?"
        r"\[efficiency\.interference\]\*\[serving\.prompt_delay\]",
        why=_SCHEDULE,
    ),
    Change(
        since=(0, 8),
        ids=r"serving\.first_step",
        formula=r"=\[inputs\.continuous\]\*\[efficiency\.step_lag\]\*\[serving\.(?:decode_step|step_in_use)\]",
        why=_SCHEDULE,
    ),
    Change(
        since=(0, 8),
        ids=r"serving\.base",
        formula=r"=SUM\(\{\[serving\.first_token\],.*,\[serving\.held_back\](?:,\[serving\.transfer\])?\}\)",
        why=_SCHEDULE,
    ),
    *(
        Change(since=(0, 8), ids=identifier, formula=_pattern(formula), why=_COMPARED)
        for identifier, formula in _OLD_COMPARED.items()
    ),
    Change(
        since=(0, 8),
        ids=r"serving\.first_share",
        formula=r"=IF\(\[inputs\.prompts_per_slot\]>0,\[inputs\.continuous\](?:\*\(1-\[inputs\.disaggregated\]\))?"
        r"/MAX\(1,\[inputs\.prompts_per_slot\]\),0\)",
        why=_COMPARED,
    ),
    *(
        Change(since=(0, 8), ids=identifier, formula=formula, why=_COMPARED)
        for identifier, formula in (
            (
                r"load\.tpot",
                r"=MIN\(IF\(.*<=.*,\[load\.tpot_below\],\[load\.tpot_above\]\),\[load\.worst\]\)",
            ),
            (r"load\.estimate(?:_3)?", r"=MAX\(\[constant\.one_request\],MIN\(\[load\.most\w*\],.*\)\)"),
            (r"load\.batch_whole", r"=MAX\(1,INT\(MIN\(\[load\.seats\],.*\)\)\)"),
        )
    ),
    Change(
        since=(0, 8),
        ids=r"model\.active_parameters",
        formula=r"=\[model\.parameters\]-\(\[[\w.]+\](?:\+\[[\w.]+\])*\)"
        r"\*\(1-\[model\.experts_per_token\]/\[model\.experts\]\)",
        why="the routed experts have a row of their own, of which each token takes its share",
    ),
    Change(since=(0, 7), ids=r"evidence\.name\.\d+", formula="[^=].*", why="a text, in the field's words"),
)


def present_id(identifier: str) -> str:
    """The id that a row has today; copies of inputs, such as those of a case, are renamed with them."""
    return _FORMER.sub(lambda former: FORMER_IDS[former[0]], identifier)


def present_name(name: str) -> str:
    """The defined name that a cell has today, in lower case."""
    former = name.lower().replace("in_", "inputs.", 1)
    return FORMER_IDS[former].replace("inputs.", "in_", 1) if former in FORMER_IDS else name.lower()


def why_changed(identifier: str, formula: str, generator: str) -> str | None:
    """Why a figure is worked out otherwise now than by the version that made a file.

    None if that version did not do so.

    Args:
        formula: of the file, with ids in place of cells.
        generator: the program that made the file, with its version, as its bundle says.
    """
    match = _VERSION.match(generator)
    made_by = (int(match[1]), int(match[2])) if match else (0, 0)
    return next(
        (change.why for change in CHANGES if made_by < change.since and change.explains(identifier, formula)),
        None,
    )
