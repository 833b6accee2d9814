"""What a check that does not hold says: the fault in the terms of who asked, and what would help.

A table, a line for each reason code: the text, where its figures come from, and figures of an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.checks import Check
from mantile.equations.devices import Device
from mantile.equations.graph import EstimateGraph
from mantile.equations.reasons import PLAUSIBILITY, REASONS, STRUCTURE
from mantile.equations.support import DEGREES, KV, MULTIPLIED
from mantile.equations.workers import Workers
from mantile.graph.quantity import Input, Node
from mantile.library.scenario_fields import DEFAULT
from mantile.library.support import SETTINGS

GB = 1e9
_MOST_WAYS = 6  # that a message lists


@dataclass(frozen=True)
class Raised:
    """A check that does not hold, with all that its message may speak of."""

    graph: EstimateGraph
    values: Mapping[Node, Any]
    check: Check

    @property
    def workers(self) -> Workers:
        """The workers it is of."""
        if self.device is not None:
            return self.device.workers
        return self.graph.decode_workers if self.check.of else self.graph.prefill_workers

    @property
    def device(self) -> Device | None:
        """The device it is of, where they are not alike."""
        devices = self.graph.devices
        if devices is None or not self.check.of:
            return None
        return devices.devices[int(self.check.of.removeprefix("device")) - 1]

    @property
    def left(self) -> float:
        """What should have stood to the right side otherwise."""
        return float(self.values[self.check.left])

    @property
    def right(self) -> float:
        """What it should have been compared with."""
        return float(self.values[self.check.right])

    def asked(self, name: str) -> Any:
        """An input of these workers, as it is written."""
        value = self.values[getattr(self.workers.inputs, name)]
        return value if isinstance(value, str) else shown(float(value))

    def number(self, name: str) -> float:
        """An input of these workers that is a number."""
        return float(self.values[getattr(self.workers.inputs, name)])

    def fact(self, identifier: str) -> float:
        """A figure by id; 0 where there is none."""
        figure = self.graph.figures.get(identifier)
        return 0.0 if figure is None else float(self.values[figure])

    @property
    def chip(self) -> str:
        """The name of the accelerator."""
        return self.graph.library.accelerator(str(self.asked("accelerator"))).name

    @property
    def framework(self) -> str:
        """The name of the framework."""
        return self.graph.library.framework(str(self.asked("framework"))).name


def shown(value: float) -> str:
    """A number as messages write it: whole ones with separators, others to three digits."""
    return f"{value:,.0f}" if value.is_integer() or abs(value) >= 1000 else f"{value:.3g}"


def gigabytes(value: float) -> str:
    """Bytes in GB."""
    return f"{value / GB:,.1f}"


Slots = Callable[[Raised], Mapping[str, str]]


@dataclass(frozen=True)
class Message:
    """What is said where a check does not hold.

    Args:
        text: with names in braces.
        slots: what stands for them.
        example: the same of an example, for documents.
    """

    text: str
    slots: Slots
    example: Mapping[str, str]

    @property
    def shown(self) -> str:
        """The message of the example."""
        return self.text.format(**self.example)


def message(graph: EstimateGraph, values: Mapping[Node, Any], check: Check) -> str:
    """What a check that does not hold says."""
    raised = Raised(graph, values, check)
    said = MESSAGES[check.reason]
    text = said.text.format(**said.slots(raised))
    if raised.device is not None:
        return f"device {raised.device.number}, {raised.chip}: {text}"
    return f"{check.of} workers: {text}" if check.of else text


# --- ways out ----------------------------------------------------------------------------------------------


def _listed(names: list[str]) -> str:
    most = names[:_MOST_WAYS]
    if len(names) > len(most):
        return f"{', '.join(most)} ..."
    return most[0] if len(most) == 1 else f"{', '.join(most[:-1])} or {most[-1]}" if most else ""


def _divisors(of: float, most: float) -> str:
    """Whole numbers that divide one without a rest."""
    return _listed([str(way) for way in range(1, int(min(of, most)) + 1) if int(of) % way == 0])


def _heads(raised: Raised, fact: str) -> dict[str, str]:
    heads = raised.fact(fact)
    return {"tp": raised.asked("tp"), "heads": shown(heads), "ways": _divisors(heads, 64) or "1"}


def _kv_heads(raised: Raised) -> dict[str, str]:
    heads, queries = raised.fact("model.kv_heads"), raised.fact("model.attention_heads")
    ways = [
        str(way)
        for way in range(1, 65)
        if heads and (heads % way == 0 or way % heads == 0) and (not queries or queries % way == 0)
    ]
    return {"tp": raised.asked("tp"), "heads": shown(heads), "ways": _listed(ways) or "1"}


def _same_heads(raised: Raised) -> dict[str, str]:
    """Degrees of decode CP that divide the ranks with the same KV heads; all of TP where latents are kept."""
    copies = raised.fact("plan.kv_copies") or raised.number("tp")
    return {"dcp": raised.asked("dcp"), "ways": _divisors(copies, 64) or "1"}


def _settings(raised: Raised) -> dict[str, str]:
    """Settings that are stated by a name that the framework does not know, or that is not modelled."""
    framework = raised.graph.library.framework(str(raised.asked("framework")))
    known = {one.field: one for one in framework.settings}
    named = {name: str(raised.asked(name)) for name in SETTINGS}
    unknown = raised.check.reason == "SETTING_UNKNOWN"
    meant = {
        name: value
        for name, value in named.items()
        if value != DEFAULT
        and (name not in known or value not in (known[name].names if unknown else known[name].usual))
    }
    ways = [f"{name} {_listed(list(known[name].names))}" for name in meant if name in known]
    return {
        "framework": f"{framework.name} {framework.release}",
        "what": ", ".join(f"{name} {value}" for name, value in meant.items()),
        "ways": f"expected {'; '.join(ways)}" if ways else "leave it out",
    }


def _runs_there(raised: Raised) -> dict[str, str]:
    vendor = str(raised.values[raised.workers.rows["hardware.vendor"]])
    others = [one.name for one in raised.graph.library.frameworks if vendor in one.vendors and not one.former]
    help_ = (
        f"{_listed(others)} {'does' if len(others) == 1 else 'do'}" if others else "no framework here does"
    )
    return {"framework": raised.framework, "vendor": vendor, "others": help_}


def _supported(raised: Raised) -> dict[str, str]:
    """What a framework cannot run by its documents, and who says so."""
    workers, values, figures = raised.workers, raised.values, raised.graph.figures
    rows, chip = workers.rows, values[workers.rows["hardware.generation"]]
    framework = values[workers.inputs.framework]
    reason = raised.check.reason
    flags: list[tuple[str, str, str]]  # subject, its row, words
    if reason == "FRAMEWORK_CHIP":
        flags = [(f"{framework}/chip", "support.chip", f"on {chip} chips")]
    elif reason == "FRAMEWORK_FORMAT":
        flags = [
            (values[rows[f"support.{name}.key"]], f"support.{name}.cannot", _format_words(raised, name))
            for name in (*MULTIPLIED, KV)
            if f"support.{name}.key" in figures
        ]
    elif reason == "FRAMEWORK_PARALLELISM":
        flags = [
            (f"{framework}/{way}", f"support.{way}", _way_words(raised, way))
            for way in DEGREES
            if f"support.{way}" in figures
        ]
    else:
        flags = [(f"{framework}/disaggregated", "support.disaggregated", "prefill and decode apart")]
    raised_flags = [(subject, words) for subject, flag, words in flags if values[rows[flag]] > 0]
    found = dict.fromkeys(
        row
        for subject, _ in raised_flags
        for row in (f"support.{subject}".lower(), f"support.{subject}/{chip}".lower())
        if row in figures and values[figures[row]] > 0
    )
    sources = dict.fromkeys(figure.source for row in found if isinstance(figure := figures[row], Input))
    return {
        "framework": raised.framework,
        "what": ", ".join(dict.fromkeys(words for _, words in raised_flags)),
        "rows": ", ".join(found),
        "sources": "; ".join(sources),
    }


def _way_words(raised: Raised, way: str) -> str:
    return f"with {way.replace('_', ' ').upper()} {raised.asked(way)}"


def _format_words(raised: Raised, name: str) -> str:
    field = "kv_dtype" if name.startswith("kv") else "weights_dtype"
    dtype = raised.values[getattr(raised.workers.inputs, field)]
    return f"{'a KV cache' if field == 'kv_dtype' else 'weights'} in {dtype}"


def _parallel(*names: str) -> Slots:
    return lambda raised: {name: raised.asked(name) for name in names}


def _of_sessions(raised: Raised) -> dict[str, str]:
    return {
        "asked": shown(raised.number("concurrency")),
        "sessions": shown(raised.number("sessions")),
        "found": shown(raised.fact("checks.of_sessions")),
    }


def _sides(raised: Raised) -> dict[str, str]:
    return {"left": shown(raised.left), "right": shown(raised.right)}


def _memory(raised: Raised) -> dict[str, str]:
    held = {"used": gigabytes(raised.left), "room": gigabytes(raised.right)}
    device = raised.device
    if device is None:
        return held | {"of": "per accelerator", "ways": "more accelerators (--tp, --pp), a smaller data type"}
    layers = float(raised.values[device.layers])
    split = raised.values[raised.graph.figures["inputs.device_split"]]
    ways = ("a larger --ngl", "a smaller --ngl, a larger --n-cpu-moe")
    fewer = ways[device.number > 1] if split == "rest" else "layers of --device"
    return held | {
        "of": f"for {shown(layers)} layer{'' if layers == 1 else 's'}",
        "ways": f"fewer layers on it ({fewer}), a smaller data type",
    }


def _host_memory(raised: Raised) -> dict[str, str]:
    """Bytes as whole GB, where there are enough of them."""
    return {"used": shown(raised.left / 1e9), "room": shown(raised.right / 1e9)}


def _lengths(raised: Raised) -> dict[str, str]:
    return {
        "total": shown(raised.left),
        "most": shown(raised.right),
        "input": raised.asked("input_tokens"),
        "output": raised.asked("output_tokens"),
    }


def _overload(raised: Raised) -> dict[str, str]:
    rate = float(raised.values[raised.graph.figures["inputs.request_rate"]])
    load = raised.left
    return {"rate": shown(rate), "most": shown(rate / load) if load > 0 else "0", "share": f"{load:.0%}"}


def _unpriced(raised: Raised, basis: str) -> str:
    """The first of the accelerators whose price nobody states; the first of all where each has one.

    A device that holds no part of the model is not asked.
    """
    sets, counted = raised.graph.pools, raised.graph.prefill_workers.ranks.counted
    chips = [
        str(raised.values[workers.inputs.accelerator])
        for place, workers in enumerate(sets)
        if not counted or raised.values[counted[place]] > 0
    ]
    for chip in chips:
        price = raised.graph.library.price(chip)
        if getattr(price, "purchase" if basis == "owned" else basis, None) is None:
            return chip
    return chips[0]


def _price(raised: Raised) -> dict[str, str]:
    basis = str(raised.asked("price_basis"))
    chip = _unpriced(raised, basis)
    known = raised.graph.library.price(chip)
    bases = {} if known is None else known.bases
    fact = bases.get(basis)
    others = [name for name in bases if name != basis]
    own = f"--set hardware.price_{'purchase' if basis == 'owned' else basis}=USD"
    return {
        "chip": raised.graph.library.accelerator(chip).name,
        "basis": basis,
        "age": ("assumed, nobody read it" if fact is None or fact.status == "assumed" else f"of {fact.date}"),
        "ways": f"--price-basis {' or '.join(others)}, or {own}" if others else own,
        "own": own,
    }


def _nothing(raised: Raised) -> dict[str, str]:
    return {}


def _drafts(raised: Raised) -> dict[str, str]:
    return {"speculation": str(raised.asked("speculation")), **_sides(raised)}


def _native(raised: Raised) -> dict[str, str]:
    return {"chip": raised.chip, "dtype": str(raised.asked("activation_dtype"))}


def _waits(raised: Raised) -> dict[str, str]:
    return {"asked": shown(raised.left), "room": shown(float(int(raised.right)))}


def _invalid(raised: Raised) -> dict[str, str]:
    checks = raised.graph.checks
    kind = checks.faults if raised.values[checks.faults.count] else checks.of_money
    text = raised.values[kind.message]
    return {"fault": str(text).rstrip(".") or raised.check.label}


_OF_MANTILE = "a formula was edited, or this is a fault of Mantile: `mantile verify` of its workbook tells"
_SIDES = {"left": "1.2", "right": "1"}
MESSAGES: Mapping[str, Message] = {
    "INPUT_INVALID": Message(
        "{fault}", _invalid, {"fault": "TP is 0: expected a whole number from 1 to 1,024"}
    ),
    "DIMENSION_INVALID": Message(
        "{fault}", _invalid, {"fault": "Layers is empty: expected a whole number from 1"}
    ),
    "FIGURE_INVALID": Message(
        "an assumption is empty or out of its range: the sheet Audit names it; type a number there",
        _nothing,
        {},
    ),
    "OVERRIDE_INVALID": Message(
        "an override or measured value is a text or out of its range: the sheet Audit names it; expected a "
        "number in its range, or an empty cell",
        _nothing,
        {},
    ),
    "CHOICE_INVALID": Message(
        "a limit, weight or choice of the decision on What-if cannot be: the sheet Audit names the cell; "
        "type what is expected there",
        _nothing,
        {},
    ),
    "SYSTEM_MISMATCH": Message(
        "{system} holds other chips than {chip}: leave --system out, or `mantile list systems {accelerator}`",
        lambda raised: {
            "system": str(raised.asked("system")),
            "chip": raised.chip,
            "accelerator": str(raised.asked("accelerator")),
        },
        {"system": "hgx-h100", "chip": "B200 SXM", "accelerator": "b200-sxm"},
    ),
    "HEADS_NOT_DIVISIBLE": Message(
        "TP {tp} does not divide {heads} attention heads: use {ways}",
        lambda raised: _heads(raised, "model.attention_heads"),
        {"tp": "3", "heads": "64", "ways": "1, 2, 4, 8, 16, 32 ..."},
    ),
    "KV_HEADS_NOT_DIVISIBLE": Message(
        "TP {tp} neither divides {heads} KV heads nor is a multiple of them: use {ways}",
        _kv_heads,
        {"tp": "3", "heads": "8", "ways": "1, 2, 4, 8, 16, 32 ..."},
    ),
    "DCP_NOT_DIVISOR": Message(
        "DCP {dcp} divides the tokens of a KV cache among ranks that hold the same heads: use {ways}",
        _same_heads,
        {"dcp": "4", "ways": "1 or 2"},
    ),
    "FFN_NOT_DIVISIBLE": Message(
        "the columns of an FFN cannot be split evenly over TP {tp}, EP {ep}: use a power of two",
        _parallel("tp", "ep"),
        {"tp": "3", "ep": "1"},
    ),
    "FFN_TP_NOT_POSSIBLE": Message(
        "{ffn_tp} ranks cannot share an FFN: use a divisor of TP {tp}, or all ranks of a stage",
        _parallel("ffn_tp", "tp"),
        {"ffn_tp": "3", "tp": "8"},
    ),
    "EMBEDDING_TP_NOT_POSSIBLE": Message(
        "{embedding_tp} ranks cannot share the embedding: use 1 or TP {tp}",
        _parallel("embedding_tp", "tp"),
        {"embedding_tp": "3", "tp": "8"},
    ),
    "EP_NOT_DIVISOR": Message(
        "EP {ep} does not divide the {ranks} ranks of a stage (TP {tp} × attention-DP "
        "{attention_dp} × CP {cp}): "
        "use {ways}",
        lambda raised: {
            **_parallel("ep", "tp", "attention_dp", "cp")(raised),
            "ranks": shown(raised.number("tp") * raised.number("attention_dp") * raised.number("cp")),
            "ways": _divisors(
                raised.number("tp") * raised.number("attention_dp") * raised.number("cp"), 1024
            ),
        },
        {"ep": "3", "ranks": "8", "tp": "8", "attention_dp": "1", "cp": "1", "ways": "1, 2, 4 or 8"},
    ),
    "PP_EXCEEDS_LAYERS": Message(
        "PP {pp} needs {pp} layers, the model has {right}: use PP {right} at most",
        lambda raised: {**_parallel("pp")(raised), **_sides(raised)},
        {"pp": "8", "right": "6"},
    ),
    "REPLICA_EXCEEDS_SYSTEM": Message(
        "a replica needs {left} accelerators, {system} joins {right}: lower TP, PP or EP, more "
        "replicas (--dp), or "
        "another --system",
        lambda raised: {
            **_sides(raised),
            "system": str(raised.values[raised.workers.rows["hardware.system"]]),
        },
        {"left": "16", "right": "8", "system": "pcie-l40s"},
    ),
    "NO_LINK_BETWEEN_RANKS": Message(
        "{chip} has no known link between accelerators: use one of them (TP 1, PP 1), or a "
        "system that links them "
        "(`mantile list systems {accelerator}`)",
        lambda raised: {"chip": raised.chip, "accelerator": str(raised.asked("accelerator"))},
        {"chip": "M2 Ultra", "accelerator": "m2-ultra"},
    ),
    "EP_EXCEEDS_EXPERTS": Message(
        "EP {left} exceeds the {right} experts of a layer: use EP {right} at most",
        _sides,
        {"left": "512", "right": "256"},
    ),
    "EP_WITHOUT_EXPERTS": Message(
        "EP {left} is asked of a model without experts: leave --ep out", _sides, {"left": "8"}
    ),
    "CP_WITH_STATE": Message(
        "CP {left} cannot cut a recurrent state along the tokens of a request: leave --cp out",
        _sides,
        {"left": "2"},
    ),
    "OFFLOAD_WITHOUT_HOST": Message(
        "weights or KV cache shall lie on the host, and no link of {chip} to it is known: leave "
        "the offload out, "
        "or --set hardware.host_bandwidth=GB/S",
        lambda raised: {"chip": raised.chip},
        {"chip": "Groq LPU v1"},
    ),
    "HOST_MEMORY_EXCEEDED": Message(
        "{used} GB shall lie on a host, which has {room} GB of memory: offload less, or "
        "--set hardware.host_memory=GiB if all hosts of a domain have more",
        _host_memory,
        {"used": "2,310", "room": "2,199"},
    ),
    "DISK_EXCEEDED": Message(
        "{used} GB shall be kept on the disks of a host, which have room for {room} GB: a smaller "
        "prefix_disk, or --set hardware.disk=GB if those of all hosts of a domain have more",
        _host_memory,
        {"used": "80,000", "room": "30,720"},
    ),
    "FRAMEWORK_UNSUPPORTED": Message(
        "{framework} does not run on {vendor} chips: {others}",
        _runs_there,
        {"framework": "vLLM", "vendor": "Apple", "others": "llama.cpp, MLX or exo do"},
    ),
    **dict.fromkeys(
        ("FRAMEWORK_CHIP", "FRAMEWORK_FORMAT", "FRAMEWORK_PARALLELISM"),
        Message(
            "{framework} does not run {what}: {rows} says that it cannot ({sources}); where your build does, "
            "framework_support: own build",
            _supported,
            {
                "framework": "vLLM",
                "what": "weights in mxfp4",
                "rows": "support.vllm/weights/mxfp4/turing",
                "sources": "vLLM documentation of 0.18.1",
            },
        ),
    ),
    "FRAMEWORK_DISAGGREGATED": Message(
        "{framework} does not serve {what}: {rows} says that it cannot ({sources}); where your build does, "
        "framework_support: own build",
        _supported,
        {
            "framework": "llama.cpp",
            "what": "prefill and decode apart",
            "rows": "support.llama.cpp/disaggregated",
            "sources": "its server documentation",
        },
    ),
    "CONTEXT_EXCEEDS_MODEL": Message(
        "{input} input and {output} output tokens are {total}, the model takes {most}: shorten one of them",
        _lengths,
        {"input": "8,000", "output": "500", "total": "8,500", "most": "8,192"},
    ),
    "REQUEST_TOO_LONG": Message(
        "{input} input and {output} output tokens are {total}, the server is told to take {most}: raise "
        "--max-model-len",
        _lengths,
        {"input": "8,000", "output": "500", "total": "8,500", "most": "8,192"},
    ),
    "CP_EXCEEDS_INPUT": Message(
        "CP {left} shares a prompt of {right} tokens: use CP {right} at most",
        _sides,
        {"left": "8", "right": "4"},
    ),
    "IMAGES_EXCEED_INPUT": Message(
        "{left} image tokens exceed the {right} input tokens that hold them: raise --input-tokens",
        _sides,
        {"left": "2,000", "right": "1,024"},
    ),
    "PREFIX_EXCEEDS_INPUT": Message(
        "shared prefix and earlier turns are {left} tokens, the prompt that holds them {right}: raise "
        "--input-tokens",
        _sides,
        {"left": "3,000", "right": "2,048"},
    ),
    "NO_PREDICTION_LAYER": Message(
        "the checkpoint has no prediction layer (MTP): --speculation eagle, draft-model or n-gram",
        _nothing,
        {},
    ),
    "NO_DRAFT_MODEL": Message(
        "nobody says which model drafts: --draft-model ID, or --draft-parameters and --draft-layers",
        _nothing,
        {},
    ),
    "SETTING_UNKNOWN": Message(
        "{framework} has no {what}: {ways}",
        _settings,
        {
            "framework": "vLLM 0.14 to 0.31",
            "what": "moe_backend TRTLLM",
            "ways": "expected moe_backend auto, triton or cutlass",
        },
    ),
    "ACCEPTANCE_UNKNOWN": Message(
        "how many drafts of {speculation} are accepted depends on the text: state --acceptance-length or "
        "--acceptance-rate",
        _drafts,
        {"speculation": "n-gram"},
    ),
    "PHASES_DIFFER": Message(
        "serving is aggregated, and decode workers are described otherwise than prefill: leave "
        "the decode fields "
        "out, or --serving disaggregated",
        _nothing,
        {},
    ),
    "STATIC_DISAGGREGATED": Message(
        "static batching and workers of their own for prefill and decode exclude each other: "
        "--batching continuous",
        _nothing,
        {},
    ),
    "LAYERS_ON_DEVICES": Message(
        "{left} layers are on no device, or on more than one: state as many as the model has",
        lambda raised: {"left": shown(raised.left)},
        {"left": "6"},
    ),
    "STAGES_ON_DEVICES": Message(
        "PP {pp} beside {right} devices that hold layers: leave --pp out",
        lambda raised: {"pp": shown(raised.left), "right": shown(raised.right)},
        {"pp": "2", "right": "3"},
    ),
    "NO_LINK_BETWEEN_DEVICES": Message(
        "no link from a device to the next: state one, such as link: 10gbe, in the scenario",
        lambda _: {},
        {},
    ),
    "NO_LINK_BETWEEN_WORKERS": Message(
        "{system} has no way to hand the KV cache over: another --system, or --serving aggregated",
        lambda raised: {"system": str(raised.values[raised.workers.rows["hardware.system"]])},
        {"system": "pcie-rtx-4090"},
    ),
    "MEMORY_EXCEEDED": Message(
        "needs {used} GB of {room} {of}: {ways} (--weights-dtype, --kv-dtype) or fewer and shorter requests",
        _memory,
        {
            "used": "36.0",
            "room": "31.6",
            "of": "per accelerator",
            "ways": "more accelerators (--tp, --pp), a smaller data type",
        },
    ),
    "OVERLOADED": Message(
        "rate {rate}/s exceeds what this deployment serves ({most}/s): fewer requests, or more "
        "replicas (--dp)",
        _overload,
        {"rate": "20", "most": "12.6"},
    ),
    "EFFICIENCY_ABOVE_ONE": Message(
        "an efficiency factor is {left}, above the datasheet's peak: use 1 at most", _sides, _SIDES
    ),
    "EFFICIENCY_NOT_POSITIVE": Message(
        "an efficiency factor is {left}: something would never end; use more than 0", _sides, {"left": "0"}
    ),
    "PRICE_UNKNOWN": Message(
        "nobody states a {basis} price of {chip}: {ways}",
        _price,
        {
            "basis": "cloud",
            "chip": "M3 Ultra",
            "ways": "--price-basis owned, or --set hardware.price_cloud=USD",
        },
    ),
    "PRICE_OLD": Message(
        "the {basis} price of {chip} is {age}: ask for today's, and {own}",
        _price,
        {
            "basis": "cloud",
            "chip": "H100 SXM",
            "age": "of 2026-03-01",
            "own": "--set hardware.price_cloud=USD",
        },
    ),
    "POWER_UNKNOWN": Message(
        "nobody states the power limit of {chip}: --set hardware.tdp=W",
        lambda raised: {"chip": raised.chip},
        {"chip": "M3 Ultra"},
    ),
    "EXPERTS_UNEVEN": Message(
        "EP {ep} does not divide the experts: some ranks hold one more; the estimate is of the fullest",
        _parallel("ep"),
        {"ep": "6"},
    ),
    "OFFLOADED": Message(
        "{used} GB of each accelerator lie in host memory, and each step reads them over its link",
        lambda raised: {"used": gigabytes(raised.left)},
        {"used": "12.0"},
    ),
    "SPLIT_NOT_BEST": Message(
        "another way to split the layers is faster: build anew with device_split: solved, no layers stated",
        lambda _: {},
        {},
    ),
    "LINK_INFERRED": Message(
        "{left} links are inferred from the ports of the machines: state link of each device",
        lambda raised: {"left": shown(raised.left)},
        {"left": "2"},
    ),
    "LAYERS_UNEVEN": Message(
        "PP {pp} does not divide the layers: the pipeline waits for the fullest stage",
        _parallel("pp"),
        {"pp": "3"},
    ),
    "TP_CROSSES_DOMAINS": Message(
        "TP {tp} spans {left} domains: all-reduces of every layer go over the slower network; "
        "lower TP, or PP "
        "between machines",
        lambda raised: {**_parallel("tp")(raised), **_sides(raised)},
        {"tp": "16", "left": "2"},
    ),
    "STAGE_CROSSES_DOMAINS": Message(
        "the ranks of a stage span {left} domains: their messages go over the slower network",
        _sides,
        {"left": "2"},
    ),
    "REPLICA_CROSSES_DOMAINS": Message(
        "a replica of {left} accelerators spans domains of {right}: stages exchange messages "
        "over the slower network",
        _sides,
        {"left": "16", "right": "8"},
    ),
    "NO_NATIVE_FORMAT": Message(
        "{chip} has no peak for {dtype}: products run in 16 bit",
        _native,
        {"chip": "A100 80GB SXM", "dtype": "fp8"},
    ),
    "KV_COPIED": Message(
        "TP {tp} exceeds the KV heads: {left} ranks hold the same KV cache; attention-DP or a "
        "lower TP saves it",
        lambda raised: {**_parallel("tp")(raised), **_sides(raised)},
        {"tp": "16", "left": "2"},
    ),
    "WEIGHT_ONLY_FORMAT": Message(
        "weights in {weights} are multiplied in 16 bit: --activation-dtype {weights} uses the peak of {chip}",
        lambda raised: {"weights": str(raised.asked("weights_dtype")), "chip": raised.chip},
        {"weights": "fp8", "chip": "H100 SXM"},
    ),
    "MORE_GROUPS_THAN_REQUESTS": Message(
        "{left} groups share {right} requests: some have nothing to do; lower --dp or --attention-dp",
        _sides,
        {"left": "8", "right": "4"},
    ),
    "SP_WITHOUT_TP": Message("sequence parallelism does nothing with TP 1: leave it out", _nothing, {}),
    "SATURATED": Message(
        "{load} of what this deployment serves arrives: waits are longer than estimated; add a "
        "replica (--dp)",
        lambda raised: {"load": f"{raised.left:.0%}"},
        {"load": "92%"},
    ),
    "SESSIONS_DIFFER": Message(
        "{asked} requests are in flight, {sessions} sessions have {found}: leave out the rate or concurrency "
        "beside them; if there is none, the load is so near saturation that small differences move it",
        _of_sessions,
        {"asked": "16", "sessions": "200", "found": "62.3"},
    ),
    "KV_QUEUE": Message(
        "{asked} requests ask for the {room} places in the KV cache: the others wait; a smaller "
        "--kv-dtype or more "
        "accelerators make room",
        _waits,
        {"asked": "64", "room": "41"},
    ),
    "TTFT_FAR_FROM_FLOOR": Message(
        "TTFT is {left} times what the hardware allows: requests wait, or overhead makes most of it",
        _sides,
        {"left": "36"},
    ),
    "TPOT_FAR_FROM_FLOOR": Message(
        "TPOT is {left} times what the hardware allows: overhead or messages make most of it",
        _sides,
        {"left": "24"},
    ),
    "PREFIXES_WITHOUT_ROOM": Message(
        "{found} of prompts are found in the cache of {asked} that could be: more memory, or --prefix-host",
        lambda raised: {"found": f"{raised.left:.0%}", "asked": f"{raised.right:.0%}"},
        {"found": "31%", "asked": "60%"},
    ),
    "PREFIX_OF_STATES": Message(
        "engines keep recurrent states at few places of a prompt: fewer tokens may be found in the cache",
        _nothing,
        {},
    ),
    "SETTING_NOT_MODELLED": Message(
        "{what}: other kernels, or another order of requests, than the estimate has: figures are those "
        "without",
        _settings,
        {"what": "moe_backend marlin"},
    ),
    "ACCEPTANCE_ASSUMED": Message(
        "how many drafts are accepted is taken as published of one prediction layer: state --acceptance-rate",
        _nothing,
        {},
    ),
    "DRAFTS_BRING_NOTHING": Message(
        "with {left} requests drafts slow the batch down, from {right} on: leave --speculation out",
        _drafts,
        {"left": "128", "right": "86"},
    ),
    "CONFIG_FIELDS_UNKNOWN": Message(
        "{left} fields of the config are not known and were not read: `mantile list models ir` names them",
        _sides,
        {"left": "2"},
    ),
    "MODEL_HAS_REMARKS": Message(
        "{left} parts of the model are priced as something near them: `mantile list models ir` names them",
        _sides,
        {"left": "1"},
    ),
    "INPUTS_CHANGED": Message(
        "an input was edited after the workbook was made: `mantile import` reads it back, Log says which",
        _nothing,
        {},
    ),
    "COST_ERROR_VALUE": Message(
        "power or cost cannot be worked out: a price or a power limit is missing; --set states it",
        _nothing,
        {},
    ),
    "ERROR_VALUE": Message(
        "latency, throughput or memory cannot be worked out: a figure of {chip} is missing; "
        "`mantile list hardware show "
        "{accelerator}` has what is known",
        lambda raised: {"chip": raised.chip, "accelerator": str(raised.asked("accelerator"))},
        {"chip": "my chip", "accelerator": "h100-sxm"},
    ),
}
"""By reason code. What no input can bring about is said by its meaning."""


def _of_formulas(code: str) -> Message:
    meaning = REASONS[code].meaning.rstrip(".")
    return Message(
        f"{meaning.replace('{', '{{')} ({{left}} against {{right}}): {_OF_MANTILE}", _sides, _SIDES
    )


MESSAGES = {
    **{
        code: _of_formulas(code)
        for code, reason in REASONS.items()
        if reason.group in (STRUCTURE, PLAUSIBILITY)
    },
    **MESSAGES,
}
