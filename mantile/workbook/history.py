"""What was changed on purpose since older versions.

Ids of rows, and formulas by the id of their row and the version.

A workbook of an older version is read with the formulas of today. Where one of its formulas is another, this
list says whether the version that made the file printed that formula, and why it was changed. A formula that
is other and not listed was edited by hand. Inputs that were renamed are found under their former ids.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mantile.library.scenario_fields import FORMER_IDS
from mantile.workbook import formulas_of_0_9

_COLUMN = re.compile(r"\]\$?[A-Z]+")  # behind an id
_FORMER = re.compile(rf"(?<![^.])(?:{'|'.join(map(re.escape, FORMER_IDS))})(?![^.])")
_VERSION = re.compile(r"mantile (\d+)\.(\d+)")
_OF_EDITS = re.compile(r"(?:.+\.)?(?:stamp|typed)\.")
_STAMPED = re.compile(r"(?:.+\.)?stamp\.")


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


_LAWS = (
    "Little's law, peaks and floors hold in every state: steps are worked out at the requests that decode; "
    "the host's time counts in full steps; a benchmark's only burst is no shorter than its prompts"
)
_SENT = "expert kernels over tokens that were sent to them reach at most half the dense peak"
_LINKS = (
    "a transfer hides behind prefill only as far as it lasts, and goes over ports where there is no network; "
    "the last stage counts with its LM head"
)
_NO_LINK = "a bandwidth of 0 is no link: ranks that it should join make the plan one that cannot be"
_LATENTS = (
    "ranks of context parallelism exchange results of latent attention of all their heads; 0.14 took one head"
)
_READ = "what cannot be is left out and said; 0.14 took it for a number or gave an error"
_LOAD = (
    "at a request rate the batch follows by Little's law in a formula, from step times that are lines over "
    "the batch, beside which the reading of experts follows what the batch touches; 0.6.0 took one line "
    "through a batch that it had searched for"
)
_ARRIVING = (
    "who arrives at a rate waits for half the running step and those scheduled ahead, at most the lag that "
    "was fitted to closed loops; 0.12.0 took that lag for all"
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

_IN_PARTS = (
    "a framework says in which formats it multiplies and in which parts it takes prompts, each of which "
    "reads the weights; memory that is shared with the CPU is not all for the accelerator; a framework that "
    "is not known to run on a chip is refused; 0.7.0 had none of it"
)
_ID = r"\[[\w./-]+\]"
_LIST = rf"\{{{_ID}(?:,{_ID})*\}}"
_PEAK = rf"=INDEX\({_LIST},MATCH\({_ID},{_LIST},0\)\)"
_SIXTEEN = r"\[(?:\w+\.)?hardware\.sixteen_peak\]"
_OF_PROMPTS = {
    r"hardware\.framework_runs": rf'=SUMIFS\({_LIST},{_LIST},{_ID}&"/"&{_ID}\)',
    r"hardware\.activation(?:_basis)?_peak": _PEAK,
    r"hardware\.\w+\.linear_peak": rf"=IF\({_ID}>0,MIN\({_ID},{_ID}\),{_SIXTEEN}\)",
    r"hardware\.\w+\.kernel_format": rf"=IF\({_ID}>0,INDEX\({_LIST},{_ID}\),INDEX\({_LIST},{_ID}\)\)",
    r"hardware\.\w+\.path": rf'=IF\({_ID}>0,"in "&{_ID},{_ID}&" held, multiplied in "&{_ID}\)',
    r"memory\.activations": rf"=\[inputs\.token_budget\]\*{_ID}\*\[constant\.result_bytes\]",
    r"memory\.usable": rf"={_ID}\*\[(?:\w+\.)?hardware\.memory_capacity\]",
    r"prefill\.[\w.]+\.launch_time": r"=(?:\[constant\.\w+\]\*)?\[efficiency\.[\w.]+\]",
    r"prefill\.\w+\.weight_bytes": rf"=(?:{_ID}\*)+\[hardware\.\w+\.bytes\]",
    r"prefill\.coverage": r"=1-.*\(\[prefill\.tokens\]/\[constant\.one_token\]\)\^.*",
    r"prefill\.host\.bytes": rf"=\[memory\.host_weights\]\*{_ID}",
    r"prefill\.step\.time": rf"=\[efficiency\.step_host\]\+\[efficiency\.step_row\]\*\({_ID}/{_ID}\)",
    r"serving\.prompts_per_step": rf"=\[inputs\.token_budget\]/\({_ID}\*\[constant\.one_request\]\)",
    r"checks\.plan_holds": r"=SUM\(\{(?:\[[\w!?.]+\],?)+\}\)",
    r"checks\.invalid": r"=\[checks\.fixed\.flag\.\d+\]-\[checks\.plan_holds\]",
}
"""Formulas of 0.7.0 by the ids of their rows, as regular expressions both."""

_SCHEDULE = (
    "a request waits behind prompts in its batch slot, slots that wait for their prefill do not decode, "
    "prompts are priced by the roofline of the step that carries them, every chunk pays launches and reads "
    "from the host, beyond saturation the queue grows, decode workers hold what is in decode, and KV places "
    "go by the framework's policy; 0.7.0 had none of it"
)
_WIDE = (
    "a layer waits for the rank that reads most experts, sorting tokens by expert takes time, a token goes "
    "to another domain once and is passed on there, products over sent tokens have a rate of their own, and "
    "attention groups that send tokens to experts keep their dense FFNs to themselves; 0.7.0 had none of it"
)
_FP8_CACHE = "attention of prompts over an fp8 cache has a rate of its own; 0.7.0 took that over 16 bit"
_CLIENT = (
    "a batch of equal lengths is taken to be synchronous where its requests start together, as in a "
    "benchmark, and half where nobody says so; 0.7.0 took it so everywhere"
)
_COMPARED = (
    "one stage has no micro-batches, a step reads the cache on the host of its own requests, no more prompts "
    "are prefilled together than are let in, no warm-up burst comes at a rate, and requests in flight are a "
    "mean: neighbouring deployments could not be compared; 0.7.0 had none of it"
)
_CANNOT_RUN = "what a framework cannot run by its documents is refused; 0.11.0 refused none of it"
_ON_HOST = "what lies on the host must fit its memory; 0.14 did not ask"
_SLOWEST = (
    "prompts hold up a pipeline as far as its slowest stage takes longer with them, and devices that are not "
    "alike carry them each at its own pace; 0.15 took the share of the fullest stage of all that they add"
)
_COPY = r"(?:[\w.]+\.)?"
_FAULTS = rf"\[{_COPY}checks\.faults\]"
_PLAN_OF_0_11 = {
    r"checks\.plan_holds": r"=SUM\(\{(?:\[[\w!?.]+\],?)+\}\)",
    r"checks\.invalid": rf"=\[checks\.fixed\.flag\.\d+\]-\[{_COPY}checks\.plan_holds\]\+{_FAULTS}",
    r"checks\.first_place": rf"=IF\(\[{_COPY}checks\.invalid\]>{_FAULTS},MATCH\(0,.*,0\),1\)",
    r"checks\.first": rf"=IF\(\[{_COPY}checks\.faults\]>0,\[{_COPY}checks\.cause\],INDEX\(.*\)\)",
}
_AS_ENGINES_REPORT = (
    "the share of memory means what the framework means by it, the runtime has parts, activations are those "
    "of a start-up profile, and what is kept of windows and latents follows from a policy; 0.11.0 had one "
    "reserve and kept no more than windows and latents"
)
_MEMORY_OF_0_11 = {
    r"hardware\.memory_seen": rf"=IF\({_ID}>0,MIN\({_ID},{_ID}\),{_ID}\)",
    r"memory\.reserve": r"=\[efficiency\.runtime_reserve\]",
    r"memory\.usable": rf"={_ID}\*{_ID}",
    r"memory\.kv_room": rf"=MAX\(0,{_ID}(?:-{_ID}){{3}}\)",
    r"memory\.activations": rf"={_ID}\*\[memory\.activation_width\]\*\[constant\.result_bytes\]",
    r"memory\.activation_width": rf"={_ID}(?:\+{_ID})*",
    r"memory\.(?:cached_tokens|tokens_to_come)\.\w+": rf"=IF\({_ID}>0,MIN\({_ID},{_ID}\),[^()]*\)"
    r"/\[inputs\.(?:decode_)?cp\](?:-\[memory\.cached_tokens\.\w+\])?",
    r"memory\.kv_bytes_per_token\.\w+": rf"=(?:\({_ID}(?:[+*]{_ID})*\)|{_ID})(?:[*/]{_ID})*",
    r"memory\.kv_bytes_per_request\.\w+": rf"={_ID}\*{_ID}",
    r"memory\.embedding_weights": rf"={_ID}\*{_ID}",
    r"memory\.weights\.[\w.]+": rf"={_ID}\*{_ID}",
    r"memory\.kv_to_come(?:\.\w+)?": rf"={_ID}\*\(?{_ID}(?:[+*]{_ID})*\)?",
    r"checks\.kv_of_ranks\.\w+": rf"={_ID}(?:\*{_ID})*",
}
"""Formulas of 0.11.0 by the ids of their rows, as regular expressions both."""

_LENGTH = r"\[(?:[\w.]+\.)?memory\.sequence_length\]"
_OLD = {
    "decode.host.bytes": "[memory.host_weights]*[inputs.pp]+[memory.host_kv]",
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
    "load.most": "MIN([memory.capacity_sequences],"
    "IF([inputs.max_requests]>0,[inputs.max_requests],[memory.capacity_sequences]))",
    "load.stall": "MAX(0,[load.tpot]-[load.step])",
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
    "serving.burst_steps": "[constant.half]*([memory.batch]/[constant.one_request]"
    "/[serving.burst_prompts]+1)",
    "serving.burst_wait": "IF([serving.first_share]>0,"
    "[serving.first_share]*([serving.burst]-[serving.ttft_steady]),0)",
    "serving.full_step": "IF([scheduler.first]>0,[serving.prefill_service]*MAX(1,[serving.prompts_per_step]),"
    "[serving.decode_step]+[serving.prefill_added]*[serving.prompts_per_step])",
    "serving.prefill": "[serving.prefill_through]*IF([inputs.continuous]>0,[efficiency.prefill_alone],1)",
    "serving.held_back": "[inputs.continuous]*[serving.wait_steps]*[serving.tpot]",
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
_OWNED = (
    "owning costs purchase, upkeep and electricity over the hours of use; 0.7.0 took a published figure "
    "before what is worked out, without upkeep, and purchase over all hours"
)
_INDEXED = (
    "an indexer scores and keeps its keys in fp8, whatever the KV cache, and where each token of a prompt "
    "selects its own, latents are read as in decode; 0.7.0 took 16-bit products and the KV cache's format"
)
_KEPT = r"=[\w.\[\]*/()]*\[(?:[\w.]+\.)?hardware\.kv_bytes\][\w.\[\]*/()]*"
_INDEXER = {
    r"(?:prefill|decode)\.indexer\.compute_time": r"=\[(?:[\w.]+\.)?indexer\.flops\]"
    r"/\[(?:[\w.]+\.)?efficiency\.rate\.attention_flops\]",
    r"(?:decode\.indexer\.cache_bytes|memory\.kv_bytes_per_token\.indexer|checks\.kv_of_model\.indexer"
    r"|floor\.kv_bytes\.indexer|serving\.transfer\.indexer)": _KEPT,
    r"prefill\.attention\.flops": r"=\[constant\.flops_per_pair\]\*\[prefill\.rank_tokens\]"
    r"\*\[prefill\.context\.index_topk\]\*\([\w.\[\]+]*\)",
}
_OF_OWNING = r"\[(?:[\w.]+\.)?cost\.{}\]"
_OWNING = {
    r"cost\.capital": r"=\[(?:[\w.]+\.)?hardware\.price_purchase\]"
    r"\*IF\(\[(?:[\w.]+\.)?hardware\.whole_machine\]>0,1,\[cost\.capital_share\]\)"
    r"/\(\[cost\.life\]\*\[constant\.hours_per_year\]\)",
    r"cost\.own": rf"=IF\({_OF_OWNING.format('capital')}>0,"
    rf"{_OF_OWNING.format('capital')}\+{_OF_OWNING.format('electricity')},0\)",
    r"cost\.by\.owned": r"=IF\((\[(?:[\w.]+\.)?hardware\.price_owned\])>0,\1,"
    rf"{_OF_OWNING.format('own')}\)",
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


_NOT_KNOWN = (
    "what cannot be and what nobody states is a text, and a plan that cannot be has no results; 0.7.0 had a "
    "large time or 0 in its place"
)
_WORDS = {
    r"network\.\w+\.\w+\.latency|serving\.transfer_time": "IF(…,[constant.never])",
    r"network\.\w+\.\w+\.per_byte": "IF(?<[constant.never],…,0)",
    r"p2p\.per_byte|host\.per_byte": "IF(?>0,1/?,[constant.no_link])",
    r"load\.state": 'IF(AND(?>0,?>?),"saturated",?)',
    r"serving\.transfer": "IF([inputs.disaggregated]>0,?*(1-?),0)",
    r"\w+\.by\.\w+": "?+?*?",
    r"\w+\.cheapest": "MIN({…})",
    r"\w+\.algorithm": "INDEX({…},MATCH(?,{…},0))",
    r"\w+\.layer_time": "IF(?>1,?*(1-?),0)",
    r"checks\.host_possible": "IF(AND(?>0,[hardware.host_bandwidth]<=0),0,1)",
    r"host_possible": "IF(AND(?>0,?<=0),0,1)",
    r"checks\.invalid": "?-[checks.plan_holds]",
    r"cost\.draw": "?+(?-?)*?",
    r"cost\.building": "[cost.draw]*?*?",
    r"cost\.total_power": "[cost.building]*?/?",
    r"cost\.provisioned": "IF(?>0,?,?*?*?)",
    r"cost\.electricity": "[cost.building]/?*?",
    r"cost\.capital": "?*IF(?>0,1,?)/(?*?)",
    r"cost\.own": "IF(?>0,?+?,0)",
    r"cost\.by\.\w+": "?",
    r"cost\.hourly": "?*?/?",
    r"cost\.power": "? | ?+?*?",
    r"cost\.joules_per_output_token": "?/?",
    r"cost\.tokens_per_kwh": "IF(?>0,?*?*?/?,0)",
    r"cost\.provisioned_power": "?*?*? | ?*?*?+?*?*?*? | ?*?*?+?*(?*?*?)",
    r"cost\.tokens_per_(?:provisioned_watt|usd)": "IF(?>0,…/?,0)",
    r"cost\.usd_per_hour": "? | ?+?*?",
    r"cost\.usd_per_million_\w+": "?/(?*?)*?",
    r"cost\.usd_per_month": "?*?",
    r"cost\.usd_per_day": "?*?",
    r"cost\.electricity_per_day": "?/?*?*?",
    r"cost\.known": "IF(…>0,1,0)",
    r"measured\.ratio\.\w+": "IF(AND(ISNUMBER(?),?>0),?/?,0)",
    r"stamp\.[\w.]+\.changed": "IF(ABS(?-?)<=[checks.tolerance]*ABS(?),0,1)",
    r"(?:decode_cost_)?price\.value": "?*((?+?*?)/?)",
}
"""Formulas before what is not known was a text: ? is a figure, … anything, and | stands between two forms."""


def _worded(formula: str) -> str:
    """A regular expression of formulas with ? and …"""
    parts = re.split(r"( \| |\?|…)", formula)
    meanings = {"?": r"\[[\w.?!]+\]", "…": ".+", " | ": "|="}
    return f"(?:={''.join(meanings.get(part, re.escape(part)) for part in parts)})"


def _pattern(formula: str) -> str:
    """A regular expression of an old formula and its variants."""
    parts = re.split(r"(\[[\w.]+\]|CLOSED\{|\}|WAITS)", f"={formula}")
    return "".join(
        _VARIANTS.get(part, re.escape(part).replace(r"\[memory", r"\[(?:[\w.]+\.)?memory")) for part in parts
    )


_AT_RATE = (
    "at a request rate the requests that decode are apart from the batch, and what a prompt costs is worked "
    "out with all slots taken; 0.7.0 took the batch for both"
)
_LOAD_OF_0_7 = {
    "decode.microbatches": "IF([inputs.microbatches]>0,[inputs.microbatches],"
    "MIN([inputs.pp],MAX(1,[load.most]/[constant.one_request])))",
    "decode.requests": "MAX(1,[load.most]/[decode.microbatches])",
    "prefill.requests": "IF([inputs.continuous]>0,"
    "MIN([inputs.attention_dp]*[constant.one_request],[memory.requests]),[load.most])",
    "prefill.pass.host": "[prefill.host.time]",
    "load.full_step": "[decode.time]",
    "load.slope": "MAX(0,[serving.decode_step]-[decode.time])/MAX(1,[memory.batch]/[constant.one_request]-1)",
    "load.slope_above": "MAX(0,[decode.time]-[serving.decode_step])"
    "/MAX(1,([load.most]-[memory.batch])/[constant.one_request])",
    "load.fixed": "[serving.decode_step]-[load.slope]*([memory.batch]/[constant.one_request])",
    "load.fixed_above": "[serving.decode_step]-[load.slope_above]*([memory.batch]/[constant.one_request])",
    "load.left_above": "MAX([constant.smallest],1-[load.rate]*[load.work_above]/[constant.one_request])",
    "load.step": "IF([load.decoding]<=[memory.batch],[load.step_below],[load.step_above])",
    "load.line": "MAX(0,[decode.time]-[decode.time])/MAX(1,[load.most]/[constant.one_request]-1)",
    "load.line_left": "MAX([constant.smallest],1-[load.rate]*([load.delay]"
    "+[inputs.output_tokens]/[constant.tokens_per_step]*[load.line])/[constant.one_request])",
    "load.batch_in_flight": "[load.estimate]+[load.rate]*([load.wait]+[serving.prefill_through])",
    "load.prompts": "[load.rate]*[serving.prefill_service]/[constant.one_request]",
    "load.delay": "[inputs.continuous]*[value]*[serving.prompt_delay]",
    "serving.prefill_chunk": "([serving.prefill_stage]-[serving.prefill_fixed])/[serving.prefill_chunks]"
    "+[serving.prefill_fixed]",
    "serving.prefill_through": "IF([inputs.pp]>1,MIN([prefill.time],"
    "([serving.prefill_chunks]+[inputs.pp]-1)*[serving.prefill_chunk]),[prefill.time])",
    "serving.prefill_added": "[serving.prefill_service]*(1-[prefill.bound.overhead]/[prefill.time])",
}
_SLOTS_OF_0_7 = {
    r"prefill\.[\w.]+\.layer_time": r"=\[prefill\.[\w.]+\.launch_time\]\+(?:MAX\([\w.,\[\]]+\)|\[[\w.]+\])",
    r"prefill\.[\w.]+\.bytes": r"=\[prefill\.[\w.]+\.weight_bytes\]\+\[[\w.]+\.rank_tokens\]"
    r"\*\([\w.*+\[\]]+\)",
    r"prefill\.overhead\.[\w.]+": r"=\[prefill\.[\w.]+\.launch_time\](?:\*\[model\.\w+\])?",
}


def _in_any_case(formula: str) -> str:
    """A regular expression of a formula whose figures may be copies: with all slots taken, or of a case."""
    parts = re.split(r"(\[[\w.]+\])", f"={formula}")
    return "".join(
        rf"\[(?:(?:[\w.]+\.)?{re.escape(part[1:-1])}|[\w.]*value)\]"
        if part.startswith("[")
        else re.escape(part)
        for part in parts
    )


_STARTED = (
    "a step with prompts is not over before the host has started its operations, and prompts that a "
    "scheduler holds back share it"
)
_STEPS_OF_0_12 = {
    "serving.prompts_together": "MIN([serving.prompts_at_most],MAX(MIN(1,[serving.prompts_per_step]),"
    "[serving.prompts_in_step]))",
}
_OF_PASS = r"(?:prefill|decode)\."
_OLD_WIDE = {
    r"plan\.ffn": r"=ROUNDUP\(\[model\.ffn_size\]/\[plan\.stage_ranks\],0\)",
    r"plan\.ffn_left": r"=(?:MOD\(\[model\.\w+\],\[plan\.\w+\]\)\+?)+",
    r"network\.all_to_all\.inside": r"=\(\[network\.stage\.inside\]-1\)/\[plan\.stage_ranks\]",
    r"network\.all_to_all\.outside": r"=\(\[plan\.stage_ranks\]-\[network\.stage\.inside\]\)/.*",
    r"network\.all_to_all\.inner_torus": r"=IF\(\[hardware\.is_torus\]>0,\[constant\.quarter\]"
    r"\*\[network\.stage\.inside\]\*\[network\.stage\.inside\]/\[plan\.stage_ranks\]/.*",
    r"network\.all_to_all\.hierarchical\.per_byte": r"=IF\(.*,\[network\.all_to_all\.inner_torus\]\+.*,0\)",
    _OF_PASS + r"experts_\w+\.weight_bytes": rf"=\[{_OF_PASS}coverage\]\*.*",
    _OF_PASS
    + r"experts_\w+\.compute_time": r"=\[[\w.]+\.flops\]/\[(?:decode\.)?efficiency\.rate\.moe_flops\]",
    _OF_PASS + r"(?:ffn_\w+|activation)\.(?:flops|bytes)": rf"=.*\[{_OF_PASS}tokens\]\*.*",
    _OF_PASS + r"all_reduce\.ends": r"=.*\+1\+IF\(\[(?:decode\.)?plan\.groups\]>1,0,.*\)",
    _OF_PASS + r"gather\.count": r"=\[constant\.ring_phases\]\*.*\*IF\(\[(?:decode\.)?plan\.groups\]>1,1,0\)",
    _OF_PASS + r"(?:dispatch|combine)\.message_bytes": r"=\[[\w.]+\.own_tokens\]\*\[[\w.]+\.copies\]\*.*",
    _OF_PASS + r"after\.ffn(?:_bytes)?": r"=IF\(\[(?:decode\.)?plan\.groups\]>1,.*\)",
    _OF_PASS + r"(?:time|bound\.memory)": rf"=SUM\(\{{(?:\[{_OF_PASS}[\w.]+\],?)+\}}\)",
}

_LEVELS = (
    "no serving runs of the framework",
    "serving runs of the framework on other accelerators",
    "serving runs of framework and accelerator",
    "decode apart: TPOT measured, the rest not",
    "no serving runs of the framework on chips of this maker",
    "serving runs of the framework, of another chip of the maker, kind of model or format",
    "serving runs of framework and accelerator, with this kind of model and format",
    "disaggregated serving: TPOT measured, the rest not",
)
"""The words of 0.6.0 and 0.7.0 for how much was measured."""
_ROWS = (
    "rows that an expert works on are moved before and after its products, which hide little of it; 0.8.0 "
    "took the longer of both"
)
_RELEASES = "launches follow from the release of the engine; 0.8.0 had one figure for all since December 2025"
_ENDS = (
    "how long requests of a benchmark run out follows from prompts one by one and outputs of unequal length; "
    "0.8.0 took a quarter of a request"
)
_EFFICIENCY = r"\[(?:[\w.]+\.)?efficiency\."
_OF_0_8 = {
    r"serving\.ramp": r"=IF\(\[inputs\.prompts_per_slot\]>0,1-\[constant\.quarter\]"
    r"/MAX\(1,\[inputs\.prompts_per_slot\]\),1\)",
    _OF_PASS + r"experts_\w+\.rate": rf"={_EFFICIENCY}rate\.moe_flops\](?:\*.*)?",
    _OF_PASS + r"experts_\w+\.bytes": r"=\[[\w.]+\.weight_bytes\]\+\[[\w.]+\.rows\]\*\([\w.*+\[\]]+\)",
    r"efficiency\.rate\.\w+_launch_time(?:\.\w+)?": rf"={_EFFICIENCY}\w+_launch(?:\.\w+)?\]"
    rf"\*{_EFFICIENCY}(?:moe_)?launch_scale\](?:\*{_EFFICIENCY}moe_slower\])?",
    r"(?:prefill|decode|vision)\.[\w.]+\.launch_time": rf"=.*{_EFFICIENCY}small_kernel\].*",
}
"""Formulas of 0.8.0 by the ids of their rows, as regular expressions both."""
_LANGUAGE = (
    "texts take numbers in a way that means the same in every language of Excel; 0.8.0 had formats with a "
    "sign for decimals or thousands"
)
_NOT_PREDICTED = "a plan that cannot be has no prediction; 0.10.0 took what it would reach if it could be"
_MEASURED_OF_0_9 = {
    r"measured\.predicted\.\w+": r"=\[(?:[\w.]+\.)?serving\.\w+\](?:\*\[constant\.\w+\])?",
    r"measured\.ratio\.\w+": rf"=IF\(ISNUMBER\({_ID}\),{_ID}/{_ID},0\)",
    r"measured\.error": rf"=SUM\({_LIST}\)",
    r"measured\.error_of_all": r"=\[measured\.error[\w.!?]*\](?:\+\[measured\.error[\w.!?]*\])*",
}
"""Formulas of Calibration before, by the ids of their rows, as regular expressions both."""
_WHY_0_9 = (_ENDS, _ROWS, _ROWS, _RELEASES, _RELEASES)

_ONE_MORE_INPUT = {
    r"typed\.faults": r"=\[typed\.bound\.flag\.\d+\]-SUM\(\{[^{}]*\}\)",
    r"typed\.first": r"=IF\(\[typed\.faults\]>0,MATCH\(0,\{[^{}]*\},0\),1\)",
    r"typed\.first\.\w+": r"=IF\(\[typed\.faults\]>0,INDEX\(\{[^{}]*\},\[typed\.first\]\),\"–\"\)",
    r"stamp\.inputs\.(?:decode\.)?attention_dtype\.edits": (
        r"=IF\(\[stamp\.([\w.]+)\.now\]=\[stamp\.\1\.held\],\[stamp\.([\w.]+head_dtype)\.edits\],"
        r"\[stamp\.\2\.edits\]\+1\)"
    ),
    r"stamp\.edit\.\d+\.place": (
        r"=IF\((\[stamp\.edit\.\d+\.number\])<=\[[\w.]+\.edits\],MATCH\(\1,\{[^{}]*\},0\),0\)"
    ),
    r"stamp\.edit\.\d+\.(?:cell|was|now)": (
        r"=IF\((\[stamp\.edit\.\d+\.place\])>0,INDEX\(\{[^{}]*\},\1\),\"–\"\)"
    ),
}
"""Lists of all inputs, before the data type of an embedding was one of them."""

_BY_LOAD = (
    "power follows the load and what binds, and a machine's share its class: 0.12.0 took the limit at any "
    "load, and a server for every machine"
)
_POWER_OF_0_12 = {
    r"cost\.draw": rf"=(?:IF\({_ID}>0,)?{_ID}\+\({_ID}-{_ID}\)\*{_ID}(?:,\"not known\"\))?",
    r"cost\.overhead": rf"=IF\(AND\({_ID}>0,{_ID}>0\),{_ID}\*{_ID}/\({_ID}\*{_ID}\),{_ID}\)",
    r"cost\.provisioned_worked_out": rf"=IF\({_ID}>0,{_ID}\*{_ID}\*{_ID},\"not known\"\)",
    r"cost\.building": rf"=IF\(ISNUMBER\({_ID}\),{_ID}\*{_ID}\*\[(?:typed\.used|inputs)\.pue\],"
    r"\"not known\"\)",
    r"cost\.idle_assumed": rf"=IF\({_ID}>0,\[cost\.idle_share\]\*{_ID},\"not known\"\)",
}

_OF_TABLES = {  # rows of Edits that look through the tables of figures
    "whole": rf'=COUNTIFS\({_LIST},">="&0\)',
    "faults": rf'={_ID}-COUNTIFS\({_LIST},"<="&0\)',
    "count": rf"={_ID}-COUNTIFS\({_LIST},0\)",
    "plain": rf"=COUNTIFS\({_LIST},1\)",
    "first": rf"=IF\(AND\({_ID}>0,{_ID}>={_ID}\),MATCH\(MAX\({_LIST}\),{_LIST},0\),1\)"
    rf"|=IF\({_ID}>0,MATCH\(1,{_LIST},0\),1\)",
    r"first\.(?:cells|column|expected)": rf'=IF\({_ID}>0,INDEX\({_LIST},{_ID}\),"–"\)',
    r"first\.faulty": rf"=INDEX\({_LIST},{_ID}\)",
    r"first\.row": rf"=INDEX\({_LIST},{_ID}\)\+MAX\(1,{_ID}-{_ID}\)-1",
    r"first\.(?:more|moved)": rf"=INDEX\({_LIST},{_ID}\)-INDEX\({_LIST},{_ID}\)",
    r"first\.root": rf"=IF\(ABS\({_ID}\)>{_ID}\*ABS\(INDEX\({_LIST},{_ID}\)\),"
    rf"MAX\(0,{_ID}/{_ID}\)\^{_ID},0\)",
    r"first\.cell": rf'=INDEX\({_LIST},{_ID}\)&{_ID}&" changed by "',
    r"first\.several": rf'=INDEX\({_LIST},{_ID}\)&" changed, or they changed places"',
    "words": rf'=IF\({_ID}<{_ID},"rows were put into a table of the library or taken out; undo that",{_ID}\)',
}

CHANGES: tuple[Change, ...] = (
    *(
        Change(
            since=(0, 15),
            ids=rf"(?:typed\.(?:tables|others)|altered(?:\.others)?)\.(?:{ids})",
            formula=formula,
            why="there are more tables of figures, of the memory of hosts",
        )
        for ids, formula in _OF_TABLES.items()
    ),
    Change(
        since=(0, 15),
        ids=r"(?:decode\.)?(?:devices\.\d\.)?efficiency\.rate\.host_bytes",
        formula=rf"={_ID}\*{_ID}",
        why="host memory may be slower than the links to it",
    ),
    Change(
        since=(0, 15),
        ids=r"(?:decode\.)?prefix\.fetch",
        formula=rf"=IF\({_ID}>0,{_ID}\*{_ID}/{_ID},0\)\+{_ID}\*{_ID}/\({_ID}\*{_ID}\)",
        why="the disks of a machine may be slower than was stated",
    ),
    Change(
        since=(0, 15),
        ids=r"checks\.kv_of_model\.[\w.]+",
        formula=rf"=\({_ID}\+{_ID}\)(?:\*{_ID}){{2,3}}",
        why="where a framework keeps latents expanded to heads, the model counts them so as well",
    ),
    Change(
        since=(0, 15),
        ids=r"devices\.\d+\.split",
        formula=rf'=IF\({_ID}="even",{_ID},{_ID}\)',
        why="the first device may hold the layers that others do not state",
    ),
    Change(
        since=(0, 14),
        ids=r"cost\.pue_default",
        formula=rf"=INDEX\({_LIST},{_ID}\)",
        why="a building draws no less than what stands in it: a PUE below 1 that is typed counts as 1",
    ),
    Change(
        since=(0, 14),
        ids=r"decide\.name\.\d+",
        formula="=" + r'&" · "&'.join([_ID] * 4),
        why="the name of a plan says how much of it lies on the host",
    ),
    Change(
        since=(0, 13),
        ids=r"serving\.first_step",
        formula=r"=\[inputs\.continuous\]\*MIN\(1,(?:\[[\w.]+\]|IF\(.*\))\)\*\[efficiency\.step_lag\]\*\[serving\.\w+\]",
        why=_ARRIVING,
    ),
    *(Change(since=(0, 13), ids=ids, formula=body, why=_BY_LOAD) for ids, body in _POWER_OF_0_12.items()),
    *(
        Change(
            since=(0, 11), ids=ids, formula=formula, why="the data type of an embedding is an input as well"
        )
        for ids, formula in _ONE_MORE_INPUT.items()
    ),
    Change(
        since=(0, 13),
        ids=r"typed\.(?:faults|message)",
        formula=r"=(?:\[typed\.bound\.flag\.\d+\]-SUM\(\{[^{}]*\}\)|IF\(\[typed\.faults\]>0,.*)",
        why="cells of classes of requests have a guard as well; 0.12.0 had one for other inputs only",
    ),
    Change(
        since=(0, 13),
        ids=r"stamp\.classes\.\d+\.\w+\.now",
        formula=r"=IF\(ISNUMBER\(\[classes\..*",
        why="what a cell of a class holds stands on Inputs; 0.12.0 looked at the cell",
    ),
    Change(
        since=(0, 11),
        ids=_OF_PASS + r"coverage(?:_deviation)?",
        formula=r"=(?:1-.*\^.*|\(\[[\w.]+\]\*\(1-\[[\w.]+\]\)/\[[\w.]+\]\)\^\[constant\.half\])",
        why="the share of experts that are not touched is a row: one less the share that is rounds otherwise",
    ),
    Change(
        since=(0, 11),
        ids=r"hardware\.kv_format",
        formula=_in_any_case('IF([hardware.kv_sixteen_bit]>0,"bf16",[hardware.kv_key])'),
        why="caches in int8 and int4 are read as well as those in 16 bit; 0.10.0 knew 16 bit and fp8 only",
    ),
    Change(
        since=(0, 11),
        ids=r"memory\.embedding_weights",
        formula=r"=\[[\w.]*tensors\.embedding\]\*\[[\w.]*hardware\.head\.bytes\]",
        why="an embedding that is not the LM head has a data type of its own; 0.10.0 took that of the head",
    ),
    Change(
        since=(0, 10),
        ids=r"stamp\.changed",
        formula=r"=SUM\(\{(?:\[stamp\.[\w.]+\.changed\],?)+\}\)",
        why="power is a headline result as well that may have changed; 0.9.0 looked at five others",
    ),
    *(
        Change(since=(0, 10), ids=ids, formula=formula, why=formulas_of_0_9.WHY)
        for ids, formula in formulas_of_0_9.FORMULAS.items()
    ),
    *(
        Change(since=(0, 9), ids=ids, formula=formula, why=why)
        for (ids, formula), why in zip(_OF_0_8.items(), _WHY_0_9, strict=True)
    ),
    *(Change(since=(0, 8), ids=ids, formula=formula, why=_WIDE) for ids, formula in _OLD_WIDE.items()),
    Change(
        since=(0, 9),
        ids=r"(?:summary|layers\.title|placement|sensitivity\.label|sweep|compare)\..+",
        formula=r"=.*TEXT\(.+,\"(?:#,##0(?:\.0+)?|0\.0+%?)\"\).*",
        why=_LANGUAGE,
    ),
    Change(
        since=(0, 8),
        ids=_OF_PASS + r"[\w.]+\.compute_time",
        formula=r"=\[[\w.]+\.flops\]/\[(?:decode\.)?efficiency\.rate\.attention_flops\]",
        why=_FP8_CACHE,
    ),
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
    *(
        Change(since=(0, 8), ids=identifier, formula=formula, why=_OWNED)
        for identifier, formula in _OWNING.items()
    ),
    *(
        Change(since=(0, 8), ids=identifier, formula=formula, why=_INDEXED)
        for identifier, formula in _INDEXER.items()
    ),
    Change(
        since=(0, 8),
        ids=r"efficiency\.rate\.moe_bytes",
        formula=r"=\[efficiency\.fraction\.moe_bandwidth\]\*\[(?:[\w.]+\.)?hardware\.memory_bandwidth\]",
        why="experts are read no faster than kernels widen their weights, where they have to",
    ),
    Change(
        since=(0, 8),
        ids=r"checks\.(?:decode\.)?host_asked",
        formula=r"=\[inputs\.offload_weights\]\+\[inputs\.offload_kv\]",
        why="memory for parked requests is asked of the host as well",
    ),
    *(
        Change(since=(0, 8), ids=ids, formula=_worded(formula), why=_NOT_KNOWN)
        for ids, formula in _WORDS.items()
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
        ids=r"serving\.lockstep",
        formula=r"=(?:(?:\(1-\[[\w.]+\]\)|\[[\w.]+\])\*)+IF\(AND\(\[scheduler\.first\]>0,"
        r"\[inputs\.length_range_ratio\]<=0\),1,0\)",
        why=_CLIENT,
    ),
    Change(
        since=(0, 8),
        ids=r"serving\.wait_\w+",
        formula=r"=MIN\(\[efficiency\.queueing\]\*IF\(\[serving\.lockstep\]>0,.*\),\[serving\.line\]\)",
        why=_CLIENT,
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
        ids=r"load\.stall",
        formula=r"=MAX\(0,\[load\.tpot\]-\[load\.\w+\]\)",
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
    *(Change(since=(0, 8), ids=ids, formula=body, why=_IN_PARTS) for ids, body in _OF_PROMPTS.items()),
    *(
        Change(since=(0, 8), ids=re.escape(identifier), formula=_in_any_case(formula), why=_AT_RATE)
        for identifier, formula in _LOAD_OF_0_7.items()
    ),
    *(Change(since=(0, 8), ids=ids, formula=body, why=_AT_RATE) for ids, body in _SLOTS_OF_0_7.items()),
    Change(
        since=(0, 8),
        ids=r"evidence\.name\.\d+",
        formula="|".join(re.escape(words.replace(" ", "")) for words in _LEVELS),
        why="a text, in the field's words",
    ),
    Change(
        since=(0, 10),
        ids=r"inputs\.\w+",
        formula=r"=\[Summary![A-Z]+\d+\]",
        why="a link to an empty cell says that it is empty; it said 0",
    ),
    Change(
        since=(0, 10),
        ids=r"cost\.idle",
        formula=_in_any_case("IF([hardware.idle]>0,[hardware.idle],[cost.idle_share]*[hardware.tdp])"),
        why="not known where nobody states a power limit; 0.9.0 said 0 W",
    ),
    Change(
        since=(0, 10),
        ids=r"stamp\.changed",
        formula=r"=SUM\(\{.*\[stamp\.decode\.memory\.used\.changed\].*\}\)",
        why="memory is that of the fullest accelerator; 0.9.0 took that of decode workers",
    ),
    Change(
        since=(0, 10),
        ids=r"checks\.errors",
        formula=_in_any_case("IF(ISERROR([serving.e2e]/[memory.used]),1,0)"),
        why="every headline result is looked at; 0.9.0 looked at two",
    ),
    *(
        Change(
            since=(0, 10), ids=ids, formula=body, why="a plan whose inputs cannot be is not possible either"
        )
        for ids, body in (
            (r"checks\.room", r"=IF\(MIN\([^()]*\)>0,\[checks\.held\],\"insufficient_memory\"\)"),
            (r"checks\.possible", r"=IF\(AND\(\[(?:[\w.]+\.)?checks\.invalid\]<=0,MIN\([^()]*\)>0\),1,0\)"),
            (r"checks\.invalid", r"=\[checks\.fixed\.flag\.\d+\]-\[(?:[\w.]+\.)?checks\.plan_holds\]"),
            (r"checks\.reason", r"=IF\(\[checks\.invalid\]>0,INDEX\(.*\),\[checks\.room\]\)"),
        )
    ),
    *(
        Change(since=(0, 13), ids=re.escape(identifier), formula=_in_any_case(formula), why=_STARTED)
        for identifier, formula in _STEPS_OF_0_12.items()
    ),
    Change(
        since=(0, 13),
        ids=r"serving\.stall",
        formula=r"=.+\*\[[\w.]+\]\*\[(?:[\w.]*prompts_in_step|[\w.]*value)\]"
        r"\*\[(?:[\w.]*prompt_delay|[\w.]*value)\]\*\(1-\[[\w.]+\]\*\[[\w.]+\]\)",
        why=_STARTED,
    ),
    *(
        Change(since=(0, 14), ids=ids, formula=r"=[^\"]*(?:\"no way\")?[^\"]*", why=why)
        for why, ids in (
            (_LAWS, r"serving\.(?:lockstep|stall|full_step|fills|ttft_p50|in_flight_share|base)"),
            (_LAWS, r"disaggregated\.[\w.]+|load\.[\w.]+|(?:prefill|decode)\.peak|floor\.(?:ttft|tpot)"),
            (_SENT, _OF_PASS + r"experts_\w+\.(?:rate|row_product)"),
            (_LINKS, r"serving\.(?:transfer(?:_bandwidth|_time)?|(?:prefill|decode)_stage)|checks\.linked"),
        )
    ),
    *(
        Change(since=(0, 14), ids=ids, formula=r"=.*", why=why)
        for why, ids in (
            (
                _NO_LINK,
                r"network\.\w+\.\w+\.latency|network\.(?:tp|stage)\.inner|network\.all_to_all\.inner_\w+",
            ),
            (_READ, r"measured\.(?:ratio|missing)\.\w+|hardware\.memory_seen|checks\.draft_stated"),
            (_READ, r"capacity\.price\.\w+|decide\.(?:said|own)\.\w+|decide\.apart\.told|sweep\.note"),
            (_READ, r"checks\.inputs|capacity\.title\w*"),
        )
    ),
    *(
        Change(
            since=(0, 14),
            ids=ids,
            formula=body,
            why="a plan on figures of the library that cannot be is not possible either",
        )
        for ids, body in (
            (r"checks\.faults", r"=\[[\w.]+\]\+\[[\w.]+\]"),
            (r"checks\.message", r"=IF\(\[[\w.]+\]>0,\[[\w.]+\],\[[\w.]+\]\)"),
            (r"checks\.cause", r'=IF\(\[[\w.]+\]>0,"INPUT_INVALID","DIMENSION_INVALID"\)'),
            (r"checks\.inputs", r"=.*"),
        )
    ),
    Change(
        since=(0, 15),
        ids=r"floor\.(?:ttft|tpot)",
        formula=r"=.*MAX\(.*MAX\(.*",
        why="the best of several devices stands in cells of its own; 0.14 had it in the formula",
    ),
    Change(
        since=(0, 15),
        ids=r"typed\.valid\.device_split",
        formula=r"=IF\(ISNUMBER\(MATCH\([^()]+,0\)\),1,0\)|oneofsolved,memory,bandwidth,even",
        why="the first device may hold what others leave; 0.14 had no such split",
    ),
    Change(
        since=(0, 15),
        ids=r"typed\.(?:content|used)\.class\.capacity\.asked\.profile",
        formula=r"=IF\(ISERROR\([^()]+\),\"an error\",[^()]+&\"\"\)|=IF\(\[[^()]+\]>0,[^(),]+,[^(),]+\)",
        why="the profile is typed on Capacity, in a cell that is found by its place alone",
    ),
    Change(
        since=(0, 15),
        ids=r"devices\.\d\.inputs\.ranks|inputs\.device\d_count",
        formula=r"=MAX\(1,[^()]+\)|=[^()+*/-]+",
        why="ranks of devices stand on Inputs; in 0.14 on Hardware",
    ),
    Change(
        since=(0, 15),
        ids=r"devices\.\d\.link(?:_to_\d)?\.rate",
        formula=rf"={_ID}\*{_ID}\*IF\(.*\)\*{_ID}",
        why="the share that transfers reach is a row of its own",
    ),
    Change(
        since=(0, 15),
        ids=r"devices\.(?:prefill|decode)\.(?:peak|bandwidth)",
        formula=rf"=\({_ID}\*{_ID}(?:\+{_ID}\*{_ID})*\)/{_ID}",
        why="means over four devices are added in parts",
    ),
    Change(
        since=(0, 15), ids=r"decode\.context\.channels", formula=rf"=\({_ID}\+{_ID}\)\*{_ID}", why=_LATENTS
    ),
    *(
        Change(
            since=(0, 16),
            ids=ids,
            formula=formula,
            why="programs write small numbers, and halves without decimals, in more than one way",
        )
        for ids, formula in (
            (r"altered(?:\.others)?\.first\.by", rf"=INT\({_ID}\*{_ID}\+{_ID}\)/{_ID}"),
            (r"altered(?:\.others)?\.first\.one", rf"={_ID}&{_ID}"),
            (r"ir\.[\w.]+", r"=.*KV × \"&TEXT\(.*"),
        )
    ),
    Change(
        since=(0, 16),
        ids=r"(?:prefill|decode)\.[\w.]+",
        formula=rf"=(?:\+?IF\({_ID}>0,{_ID},0\)){{4}}",
        why="figures of four devices are added in parts",
    ),
    Change(
        since=(0, 16),
        ids=r"(?:prefill|decode)\.\w+\.message_bytes",
        formula=rf"=IF\({_ID}>0,.*",
        why="a message is as large on every device; 0.15 took the mean of a kind that may have none",
    ),
    Change(
        since=(0, 16),
        ids=r"cost\.prices_young",
        formula=rf"=MIN\({_ID}(?:,{_ID})*,1\)",
        why="a price that nobody states is not old",
    ),
    Change(
        since=(0, 16),
        ids=r"devices\.\d\.link(?:_to_\d)?\.(?:carried(?:\.\d)?|laid)|checks\.inferred(?:\.\d)?",
        formula=rf"={_ID}.*",
        why="links of devices are added in parts",
    ),
    Change(
        since=(0, 16),
        ids=r"hardware\.framework_runs",
        formula=rf'=IF\(SUMIFS\({_LIST},{_LIST},"maker"&"/"&{_ID}\)>0,.*',
        why="the same, written shorter",
    ),
    Change(
        since=(0, 16),
        ids=r"devices\.(?:prefill|decode)\.\d\.\w+\.all",
        formula=r"=.*\+1\b.*",
        why="sums that a device needs stand in a row of their own",
    ),
    Change(
        since=(0, 16),
        ids=r"devices\.other\.\w+\.fits",
        formula=rf"=IF\(AND\({_ID}<={_ID}(?:,{_ID}<={_ID})*\),1,0\)",
        why="a split over a link that there is not is none",
    ),
    *(
        Change(since=(0, 16), ids=ids, formula=body, why=_SLOWEST)
        for ids, body in (
            (r"serving\.prefill_added", rf"={_ID}\*{_ID}/{_ID}"),
            (r"serving\.full_prompts", rf"=MAX\({_ID}\+IF\({_ID}>0,{_ID},0\),{_ID}\)"),
            (r"mixed\.(?:full\.)?\w+", rf"=MAX\(0,{_ID}-{_ID}\*MAX\({_ID},{_ID}\)\)\*{_ID}"),
            (r"mixed\.(?:full\.)?\w+", rf"={_ID}\*(?:{_ID}|\({_ID}-{_ID}\))\*{_ID}"),
            (r"mixed\.(?:full\.)?added", rf"=SUM\({_LIST}\)"),
            (r"serving\.decode_step", rf"=IF\({_ID}>1,MAX\({_ID},{_ID}\*{_ID}\),{_ID}\)"),
        )
    ),
    *(
        Change(since=since, ids=ids, formula=body, why=why)
        for since, why in (((0, 12), _CANNOT_RUN), ((0, 15), _ON_HOST))
        for ids, body in _PLAN_OF_0_11.items()
    ),
    *(
        Change(since=(0, 12), ids=ids, formula=body, why=_AS_ENGINES_REPORT)
        for ids, body in _MEMORY_OF_0_11.items()
    ),
    *(
        Change(since=(0, 11), ids=ids, formula=body, why=_NOT_PREDICTED)
        for ids, body in _MEASURED_OF_0_9.items()
    ),
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
    made_by = _version(generator)
    return next(
        (change.why for change in CHANGES if made_by < change.since and change.explains(identifier, formula)),
        None,
    )


def _version(generator: str) -> tuple[int, int]:
    match = _VERSION.match(generator)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def counts_edits_otherwise(identifier: str, generator: str) -> bool:
    """Whether a row counts edits or guards inputs, in a file of before 0.15.

    Since 0.11 an edit of a cell of all scenarios counts once, since 0.12 there are more inputs, and since
    0.13 more assumptions of machines, since 0.14 tables of figures are looked at in two groups and edits of
    them count, since 0.15 what is typed on Decide; these rows stand elsewhere. What they come to is worked
    out again.

    Args:
        generator: the program that made the file, with its version, as its bundle says.
    """
    made_by = _version(generator)
    guards = _OF_EDITS if made_by < (0, 14) else _STAMPED
    return made_by < (0, 15) and guards.match(identifier) is not None
