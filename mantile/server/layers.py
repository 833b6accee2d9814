"""Metrics by kind of layer: rows of the graph's modules, for who knows models as kinds of layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args

from mantile.equations.forward import Pass
from mantile.equations.roofline import Block
from mantile.estimates.estimate import Estimate
from mantile.estimates.results import is_possible
from mantile.estimates.sweep import grid
from mantile.graph.quantity import Input, Quantity
from mantile.ir.build import build_ir
from mantile.ir.counts import describe, tensor_entries
from mantile.ir.modules import Elementwise, Module
from mantile.library.architecture import Model
from mantile.library.errors import naming
from mantile.library.profiles import load_library
from mantile.library.scenario import parse_scenario
from mantile.library.scenario_fields import MOST_STAGES
from mantile.server.asked import LayerMetricsAsked, LayerType, SystemMetricsAsked
from mantile.server.documents import asked_as, estimate_of, model_of
from mantile.server.errors import Refused
from mantile.server.estimates import require_plan
from mantile.server.hardware import configuration

TYPES: tuple[LayerType, ...] = get_args(LayerType)
NOT_EXPRESSIBLE = "PLAN_NOT_EXPRESSIBLE"
"""Reason code of degrees that no plan of ours has; all others are those of the planner."""
_BLOCKS = ("moe", "dense")  # kinds of blocks that are feed-forward
_DECODED = 2  # output tokens where only a layer is asked for: one decode step
_LINKED = "gb200-nvl72"  # of a system of many, on which degrees are tried that shapes alone decide
_TRIED = 64
_ASKED_AS = {"model": "model_id"}
_SHARED_BY_TYPE = {
    "attention": ("HEADS_NOT_DIVISIBLE", "KV_HEADS_NOT_DIVISIBLE"),
    "feedforward": ("FFN_NOT_DIVISIBLE",),
}


def type_of(module: Module) -> LayerType:
    """The kind of layer that a module is counted to."""
    work = module.operation
    if module.part == "head" or (isinstance(work, Elementwise) and work.kind == "embedding"):
        return "embedding"
    if module.kind == "streams" or (isinstance(work, Elementwise) and work.kind in ("norm", "qk_norm")):
        return "norm"
    return "feedforward" if module.kind in _BLOCKS else "attention"


@lru_cache(64)
def layers(name: str, hub: bool) -> dict[str, Any]:
    """Kinds of layers of a model: how many, their modules and tensors, and degrees that their shapes allow.

    Raises:
        InputError: if there is no such model.
    """
    with naming("field model_id", "unknown ", "model "):
        model = model_of(name, hub)
    ir = build_ir(model)
    described = describe(ir)
    counts = {module["id"]: module["count"] for module in described["modules"]}
    kinds: dict[str, Any] = {}
    for kind in TYPES:
        modules = [module for module in ir.modules if type_of(module) == kind]
        own = {module.id for module in modules}
        within = [group for group in described["layer_groups"] if own & {*group["modules"]}]
        kinds[kind] = {
            "count": sum(group["count"] for group in within) or len(modules),
            "specs": [
                {
                    "module": module.id,
                    "label": module.label,
                    "kind": module.kind or module.step,
                    "count": counts[module.id],
                    "tensors": tensor_entries(module.tensors),
                }
                for module in modules
            ],
        }
    for of, ways in _parallelism(model).items():
        kinds[of]["available_parallelism"] = ways
    return {
        "model_id": model.id,
        "name": model.name,
        "layers": described["layers"],
        "facts": {fact: figure["value"] for fact, figure in described["facts"].items()},
        "caches": described["caches"],
        **kinds,
    }


def _parallelism(model: Model) -> dict[str, dict[str, Any]]:
    """Degrees of each kind that the checks of the planner on shapes let pass."""
    degrees = [1 << place for place in range(_TRIED.bit_length())]
    every = sorted({*degrees, 3, 5, 6, 7, 10, 12, 14, 20, 24, 28, 40, 48, 56})
    tp = _codes(model, "tp", every)
    cp = _codes(model, "cp", degrees)
    ep = _codes(model, "ep", degrees, tp=_TRIED)
    pp = _codes(model, "pp", [*range(1, MOST_STAGES + 1)])

    def without(codes: Mapping[int, frozenset[str]], *wrong: str) -> list[int]:
        return [degree for degree, found in codes.items() if not found & {*wrong}]

    stages = without(pp, "PP_EXCEEDS_LAYERS")
    attention = without(tp, *_SHARED_BY_TYPE["attention"])
    ffn = without(tp, *_SHARED_BY_TYPE["feedforward"])
    experts = without(ep, "EP_WITHOUT_EXPERTS", "EP_EXCEEDS_EXPERTS")
    return {
        "attention": {
            "tensor_parallel": attention,
            "context_parallel": without(cp, "CP_WITH_STATE"),
            "pipeline_parallel": stages,
        },
        "feedforward": {
            "tensor_parallel": ffn,
            "sequence_parallel": [False, True],
            "expert_parallel": experts,
            "pipeline_parallel": stages,
        },
        "norm": {"sequence_parallel": [False, True], "pipeline_parallel": stages},
        "embedding": {"tensor_parallel": attention},
    }


def _codes(model: Model, field: str, degrees: list[int], **others: int) -> dict[int, frozenset[str]]:
    """The reason codes that each value of a degree raises, one request of a long prompt."""
    scenario = parse_scenario(
        {
            "model": model.id,
            "accelerator": _LINKED,
            "input_tokens": _TRIED,
            "output_tokens": 1,
            "concurrency": 1,
            **others,
        },
        "degrees",
    )
    found: dict[int, frozenset[str]] = {}
    for table in grid(scenario, {field: degrees}, model).tables(threads=1):
        reasons = table["reasons"].astype(str)
        found |= {
            int(degree): frozenset(codes.split()) for degree, codes in zip(table[field], reasons, strict=True)
        }
    return found


def layer_metrics(asked: LayerMetricsAsked, hub: bool) -> dict[str, Any]:
    """Rows of all modules of one kind of layer, in prefill and decode.

    Raises:
        InputError: naming the field that is wrong; `Refused` for a plan that cannot be.
    """
    fields = _base(asked.model_id, asked.hardware_config) | {
        "tp": asked.tensor_parallel,
        "cp": asked.context_parallel,
        "sequence_parallel": _sequence(asked.sequence_parallel, asked.tensor_parallel, "sequence_parallel"),
        "input_tokens": asked.seq_length,
        "output_tokens": _DECODED,
        "concurrency": asked.batch_size,
    }
    fields |= _formats({asked.layer_type: asked.dtype}, "dtype")
    with naming("field model_id", "unknown ", "model "):
        longest = model_of(asked.model_id, hub).architecture.value("max_positions")
    if asked.seq_length <= longest < asked.seq_length + _DECODED:
        fields["overrides"] = [
            {
                "id": "model.max_positions",
                "value": asked.seq_length + _DECODED,
                "reason": "a layer at the model's own context, and one decode step behind it",
            }
        ]
    with asked_as(_ASKED_AS):
        made = estimate_of(fields, hub)
    whole = made.to_dict()
    require_plan(whole)
    return {
        "model_id": made.model.id,
        "layer_type": asked.layer_type,
        "scenario": _scenario(made),
        "feasibility": whole["feasibility"],
        "checks": whole["checks"],
        **{
            one.phase.id: kind_metrics(made, one, asked.layer_type)
            for one in (made.equations.prefill, made.equations.decode)
        },
    }


def system_metrics(asked: SystemMetricsAsked, hub: bool) -> dict[str, Any]:
    """A whole model, with degrees and data types by kind of layer.

    Raises:
        InputError: naming the field that is wrong; `Refused` for a plan that cannot be.
    """
    plan = asked.layers
    with naming("field model_id", "unknown ", "model "):
        has_experts = "experts" in model_of(asked.model_id, hub).architecture.facts
    fields = _base(asked.model_id, asked.hardware_config) | _degrees(asked, has_experts)
    fields |= {
        "input_tokens": asked.input_seq,
        "output_tokens": asked.output_seq,
        "concurrency": asked.batch_size,
    }
    fields |= _formats({kind: getattr(plan, kind).dtype for kind in TYPES}, "layers")
    with asked_as(_ASKED_AS):
        made = estimate_of(fields, hub)
    whole = made.to_dict()
    require_plan(whole)
    passes = (made.equations.prefill, made.equations.decode)
    told = {
        "layers": {kind: {one.phase.id: _total(made, one, kind) for one in passes} for kind in TYPES},
        "others": {one.phase.id: _others(made, one) for one in passes},
        "phases": {
            one.phase.id: {"time_s": float(made.values()[one.time]), "split": whole["split"][one.phase.id]}
            for one in passes
        },
    }
    if not is_possible(whole["feasibility"]):
        told = dict.fromkeys(told)  # no pass of it can be
    return {"model_id": made.model.id, "scenario": _scenario(made), **told, "estimate": whole}


def _scenario(made: Estimate) -> dict[str, Any]:
    return made.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _base(model: str, hardware: str) -> dict[str, Any]:
    found = configuration(hardware, load_library(), "field hardware_config")
    return {"model": model, "batching": "static", **found.fields}


def _sequence(asked: bool | int, tp: int, field: str) -> str:
    """Sequence parallelism is on or off; its degree is that of TP.

    Raises:
        Refused: for another degree.
    """
    if isinstance(asked, bool):
        return "on" if asked else "off"
    if asked not in (1, tp):
        raise Refused(
            f"field {field}: {asked}: norms share the tokens among the {tp} TP ranks; expected {tp} or 1",
            NOT_EXPRESSIBLE,
            field,
        )
    return "on" if asked > 1 else "off"


def _degrees(asked: SystemMetricsAsked, has_experts: bool) -> dict[str, Any]:
    """Degrees by kind of layer as those of a plan.

    FFNs over more ranks than attention: several groups hold attention, each with its own requests. Over
    fewer: each group of ranks holds a copy of dense FFNs, and a part of the experts. Norms of degree 1 are
    replicated, as is an embedding.

    Raises:
        Refused: for degrees that no plan has.
    """
    plan = asked.layers
    attention = plan.attention.tensor_parallel
    ffn = plan.feedforward.tensor_parallel or attention
    degrees: dict[str, Any] = {"tp": attention, "cp": plan.attention.context_parallel}
    if ffn % attention == 0:
        degrees["attention_dp"] = ffn // attention
    elif attention % ffn == 0:
        degrees |= {"ffn_tp": ffn} | ({"ep": attention // ffn} if has_experts else {})
    else:
        raise Refused(
            f"field layers.feedforward.tensor_parallel: {ffn}: expected a multiple or a divisor of the "
            f"{attention} ranks of attention",
            NOT_EXPRESSIBLE,
            "layers.feedforward.tensor_parallel",
        )
    for kind in ("norm", "embedding"):
        degree = getattr(plan, kind).tensor_parallel
        if degree not in (None, 1, attention):
            raise Refused(
                f"field layers.{kind}.tensor_parallel: {degree}: expected 1, or {attention} as of attention",
                NOT_EXPRESSIBLE,
                f"layers.{kind}.tensor_parallel",
            )
    if attention > 1 and plan.embedding.tensor_parallel == 1:
        degrees["embedding_tp"] = 1
    field = "layers.feedforward.sequence_parallel"
    return degrees | {"sequence_parallel": _sequence(plan.feedforward.sequence_parallel, attention, field)}


def _formats(asked: Mapping[str, str | None], where: str) -> dict[str, Any]:
    """Data types by kind of layer as fields of a scenario.

    Raises:
        InputError: for one that the library does not have; `Refused` for norms in another than 16 bit.
    """
    library = load_library()
    fields: dict[str, Any] = {}
    for kind, given in asked.items():
        if given is None:
            continue
        field = where if where == "dtype" else f"{where}.{kind}.dtype"
        with naming(f"field {field}", "unknown ", "weights "):
            form = library.datatype(given, "weights")
        if kind == "norm":
            if form.bits != 16:
                raise Refused(
                    f"field {field}: {form.id}: norms stay in 16 bit; expected bf16 or fp16",
                    NOT_EXPRESSIBLE,
                    field,
                )
            continue
        fields[f"{'ffn' if kind == 'feedforward' else kind}_dtype"] = form.id
    return fields


def kind_metrics(made: Estimate, phase: Pass, kind: LayerType) -> dict[str, Any]:
    """The modules of a kind in a pass, each with all of its rows; their sums."""
    return _total(made, phase, kind) | {"modules": [_module(made, block) for block in _blocks(phase, kind)]}


def _blocks(phase: Pass, kind: LayerType) -> Iterator[Block]:
    return (block for block in phase.blocks if block.module is not None and type_of(block.module) == kind)


def _total(made: Estimate, phase: Pass, kind: LayerType) -> dict[str, Any]:
    """Seconds of all modules of a kind in a pass, their share of it, and how many modules these are."""
    values = made.values()
    times = [float(values[block.time]) for block in _blocks(phase, kind)]
    whole = float(values[phase.time])
    return {"time_s": sum(times), "share": sum(times) / whole if whole else None, "modules_count": len(times)}


def _others(made: Estimate, phase: Pass) -> list[dict[str, Any]]:
    """What is no module: messages, host memory, the overhead of a step."""
    values = made.values()
    found = [
        {"id": block.id, "label": block.label, "time_s": float(values[block.time])}
        for block in phase.blocks
        if block.module is None and values[block.time] > 0
    ]
    step = phase.times.figures[-1]
    return [*found, {"id": "step", "label": "Step overhead", "time_s": float(values[step])}]


def _module(made: Estimate, block: Block) -> dict[str, Any]:
    """A module: the headline rows by name, and every row with its id, as `mantile explain` takes it."""
    values = made.values()
    rows = [figure for figure in block.section.figures() if isinstance(figure, Quantity | Input)]

    def known(figure: Any) -> Any:
        value = None if figure is None else values.get(figure)
        return value if value is None or isinstance(value, str) else float(value)

    return {
        "module": block.id,
        "label": block.label,
        "count": 1.0 if block.repeats is None else float(values[block.repeats]),
        "flops": known(block.flops),
        "bytes": known(block.bytes),
        "compute_time_s": known(block.compute),
        "memory_time_s": known(block.memory),
        "launch_time_s": known(block.launch),
        "layer_time_s": known(block.layer_time),
        "time_s": known(block.time),
        "bound_by": known(block.bound),
        "rows": [{"id": row.id, "label": row.label, "unit": row.unit, "value": known(row)} for row in rows],
    }
