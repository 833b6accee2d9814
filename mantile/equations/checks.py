"""What must hold, and what deserves attention: both sides of each, a rule, and a reason code that stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mantile.equations.efficiency import Efficiency
from mantile.equations.forward import Pass
from mantile.equations.hardware import Hardware
from mantile.equations.memory import Memory, Tensors
from mantile.equations.serving import Serving
from mantile.equations.sharding import Sharding
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    absolute,
    added,
    as_node,
    equal,
    if_error,
    is_error,
    maximum,
    span,
    substitute,
    total,
    where,
)  # fmt: skip
from mantile.ir.modules import Experts, ModelGraph, Product

Rule = Literal["exactly", "within", "at most", "at least"]

TOLERANCE = Input("checks.tolerance", "Tolerance", "1", 1e-9, "relative difference that rounding may leave", "definition",
                  "defined", shared=True, fixed=True)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One check. `error` fails the workbook; otherwise it is an alert."""

    code: str
    group: str
    label: str
    left: Named
    rule: Rule
    right: Named
    error: bool

    @cached_property
    def result(self) -> Quantity:
        """1 if it holds, 0 if not or if either side is an error."""
        left, right = self.left, self.right
        match self.rule:
            case "exactly":
                holds = equal(left, right)
            case "within":
                holds = absolute(left - right) <= TOLERANCE * maximum(absolute(left), absolute(right))
            case "at most":
                holds = left <= right
            case "at least":
                holds = left >= right
        return Quantity(f"check.{self.code}", self.label, "flag", if_error(where(holds, 1, 0), 0))


def number(name: str, label: str, unit: str, value: float) -> Input:
    """The fixed side of a check."""
    return Input(f"checks.{name}", label, unit, value, "fixed side of a check", "definition", "defined", shared=True,
                 fixed=True)  # fmt: skip


@dataclass(frozen=True)
class Checks:
    """All standing checks, and the rows that only they need."""

    checks: tuple[Check, ...]
    section: Section


def checks(ir: ModelGraph, inputs: Workload, hardware: Hardware, efficiency: Efficiency, plan: Sharding, stored: Tensors,
           held: Memory, prefill: Pass, decode: Pass, results: Serving, model_parameters: Quantity,
           floor_ttft: Quantity, floor_tpot: Quantity) -> Checks:  # fmt: skip
    """The standing checks of one scenario."""
    facts = ir.facts
    none_left = {unit: number(f"zero_{unit}", f"Zero, {unit}", unit, 0) for unit in ("head", "channel", "layer")}
    one = number("one", "One", "1", 1)
    zero = number("zero", "Zero", "flag", 0)
    routed = Experts in ir.operations()  # a floor counts the experts of one token only
    far = number("far", "Far from the floor", "1", 200 if routed else 20)
    tiny = number("smallest", "Smallest sensible fraction", "1", 0.001)

    def side(name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"checks.{name}", label, unit, body, note=note)

    multiplied, kept = _held(stored, decode)
    shards = side("multiplied", "Matrix weights on a rank, as multiplied", "parameter", total(span(multiplied)), "sum of the rows above")
    whole = side("held", "Matrix weights on a rank, as held", "parameter", total(span(kept)), "sum of the rows above")
    prefill_sum = side("prefill_sum", "Prefill time by what binds", "s", added(list(prefill.parts.values())))
    decode_sum = side("decode_sum", "Decode time by what binds", "s", added(list(decode.parts.values())))
    memory_sum = side("memory_sum", "Memory used, headroom and rest", "B", held.used + held.headroom + held.outside)
    of_ranks = [Quantity(f"checks.kv_of_ranks.{each.id.removeprefix('memory.kv_bytes_per_token.')}", f"{each.label}, on all ranks and stages", "B/token",
                         each * inputs.tp / plan.stage[layers] * layers, note="KV bytes per token ÷ layers per stage × layers × TP")
                for _, layers, each in held.caches.growing]  # fmt: skip
    of_model = [Quantity(f"checks.kv_of_model.{each.id.removeprefix('memory.kv_bytes_per_token.')}", f"{each.label}, of the model with copies", "B/token",
                         _with_copies(width, plan, inputs) * hardware.kv_bytes * layers, note="channels kept × copies × bytes per KV value × layers")
                for width, layers, each in held.caches.growing]  # fmt: skip
    kv_left = side("kv_of_ranks", "KV bytes of a token on all ranks and stages", "B/token", total(span(of_ranks)) if of_ranks else as_node(0))
    kv_right = side("kv_of_model", "KV bytes of a token, with copies", "B/token", total(span(of_model)) if of_model else as_node(0))
    system = side("replica", "Accelerators of a replica", "accelerator", plan.accelerators / inputs.dp)
    length = side("length", "Input and output tokens", "token/request", inputs.input_tokens + inputs.output_tokens)
    ttft_times = side("ttft_times", "TTFT against its floor", "1", results.ttft / floor_ttft)
    tpot_times = side("tpot_times", "TPOT against its floor", "1", results.tpot / floor_tpot)
    matrices = [held for name, held in hardware.classes.items() if name not in ("router", "head")]
    stored_only = side("stored_only", "Weights in a native format multiplied in 16 bit", "flag",
                       maximum(*(kind.stored_only for kind in matrices if kind.stored_only is not None)),
                       note="1 if some weights' format has a peak that wider activations leave unused")  # fmt: skip
    narrow = side("narrow_asked", "Products below 16 bit asked for", "flag", 1 - hardware.activations_sixteen_bit)
    narrow_used = side("narrow_used", "Products below 16 bit", "flag", maximum(*(kind.low_precision for kind in matrices)),
                       note="1 if some matrices are multiplied below 16 bit")  # fmt: skip
    errors = side("errors", "Errors among the headline results", "flag",
                  where(is_error(results.e2e / held.used), 1, 0),
                  note="1 if end to end or memory is an error")  # fmt: skip

    standing = (
        Check("TENSORS_DIFFER", "Structure", "Tensors add up to the architecture", stored.parameters, "exactly",
              model_parameters, True),
        Check("SHARDS_DIFFER", "Structure", "Products use every matrix a rank holds", shards, "within", whole, True),
        Check("PREFILL_SUM", "Structure", "Limits add up to prefill time", prefill_sum, "within", prefill.time, True),
        Check("DECODE_SUM", "Structure", "Limits add up to decode time", decode_sum, "within", decode.time, True),
        Check("MEMORY_SUM", "Structure", "Memory parts add up to capacity", memory_sum, "within", hardware.memory_capacity, True),
        Check("KV_DIFFERS", "Structure", "KV bytes of the ranks equal the architecture", kv_left, "within", kv_right, True),
        Check("MEMORY_EXCEEDED", "Feasibility", "Memory used is at most usable memory", held.used, "at most", held.usable, True),
        *([Check("HEADS_NOT_DIVISIBLE", "Feasibility", "TP divides the heads", plan.heads_left, "exactly", none_left["head"], True)]
          if plan.heads_left is not None else []),
        *([Check("KV_HEADS_NOT_DIVISIBLE", "Feasibility", "KV heads and TP divide one another", plan.kv_left, "exactly",
                 none_left["head"], True)] if plan.kv_left is not None else []),
        Check("FFN_NOT_DIVISIBLE", "Feasibility", "TP divides the FFN sizes", plan.columns_left, "exactly", none_left["channel"], True),
        Check("PP_EXCEEDS_LAYERS", "Feasibility", "There is a layer for every stage", inputs.pp, "at most", ir.total_layers, True),
        Check("REPLICA_EXCEEDS_SYSTEM", "Feasibility", "A replica lies within one system", system, "at most",
              hardware.system_accelerators, True),
        *([Check("CONTEXT_EXCEEDS_MODEL", "Feasibility", "Input and output lie within the model's context", length, "at most",
              facts["max_positions"], True)] if "max_positions" in facts else []),
        Check("TTFT_BELOW_FLOOR", "Plausibility", "TTFT is above its independent floor", results.ttft, "at least", floor_ttft, True),
        Check("TPOT_BELOW_FLOOR", "Plausibility", "TPOT is above its independent floor", results.tpot, "at least", floor_tpot, True),
        Check("PREFILL_MFU", "Plausibility", "Compute used in prefill is at most 1", prefill.mfu, "at most", one, True),
        Check("DECODE_MFU", "Plausibility", "Compute used in decode is at most 1", decode.mfu, "at most", one, True),
        Check("PREFILL_MBU", "Plausibility", "Bandwidth used in prefill is at most 1", prefill.mbu, "at most", one, True),
        Check("DECODE_MBU", "Plausibility", "Bandwidth used in decode is at most 1", decode.mbu, "at most", one, True),
        Check("EFFICIENCY_ABOVE_ONE", "Plausibility", "No fraction of a peak is above 1", efficiency.largest, "at most", one, True),
        Check("EFFICIENCY_NOT_POSITIVE", "Plausibility", "Every fraction of a peak is above 0", efficiency.smallest, "at least",
              tiny, True),
        Check("ERROR_VALUE", "Plausibility", "No error value among the results", errors, "exactly", zero, True),
        Check("KV_QUEUE", "Alerts", "The KV cache holds all requests", held.requests, "at most", held.capacity_sequences, False),
        *([Check("KV_COPIED", "Alerts", "KV heads are not copied", plan.kv_copies, "at most", one, False)]
          if plan.kv_copies is not None else []),
        Check("LAYERS_UNEVEN", "Alerts", "PP divides the layers", plan.layers_left, "exactly", none_left["layer"], False),
        Check("NO_NATIVE_FORMAT", "Alerts", "The accelerator multiplies in the formats asked for", narrow_used,
              "at least", narrow, False),
        Check("WEIGHT_ONLY_FORMAT", "Alerts", "Activations follow weights the accelerator can multiply", stored_only, "exactly", zero,
              False),
        Check("TTFT_FAR_FROM_FLOOR", "Alerts", f"TTFT is under {far.value} times its floor", ttft_times, "at most", far, False),
        Check("TPOT_FAR_FROM_FLOOR", "Alerts", f"TPOT is under {far.value} times its floor", tpot_times, "at most", far, False),
    )  # fmt: skip
    rows: tuple[Row, ...] = (TOLERANCE, *none_left.values(), one, zero, far, tiny, *multiplied, shards, *kept, whole, prefill_sum, decode_sum,
            memory_sum, *of_ranks, kv_left, *of_model, kv_right, system, length, ttft_times, tpot_times, narrow, narrow_used, stored_only, errors)  # fmt: skip
    return Checks(standing, Section("Sides of checks", rows, "worked out for the Checks sheet only"))


def _with_copies(width: Node, plan: Sharding, inputs: Workload) -> Node:
    """What all ranks together hold of a dimension: itself where it is split, copies of KV heads counted, else one copy per rank."""
    return substitute(width, plan.copied) if plan.is_split(width) else width * inputs.tp


def _held(stored: Tensors, decode: Pass) -> tuple[list[Quantity], list[Quantity]]:
    """Matrices of all layers on a rank, by class: as the products of a pass use them, and as the tensors hold them."""
    used, kept = [], []
    for held in stored.held:
        if held.weights == "vectors":
            continue
        name = held.parameters.id.removeprefix("tensors.")
        products: list[Node] = []
        for block in decode.blocks:
            work = block.module.operation if block.module is not None else None
            tables = block.module is not None and block.module.tensors and not any(tensor.matrix for tensor in block.module.tensors)
            if block.repeats is held.layers and isinstance(work, Product | Experts) and not tables:
                parameters = next(row for row in block.section.figures() if row.id.endswith(".parameters"))
                if isinstance(work, Experts) and held.weights == "experts":
                    products.append(work.count * parameters)
                elif isinstance(work, Product) and work.weights == held.weights:
                    products.append(parameters)
        label = held.parameters.label.removesuffix(", of a layer on a rank")
        used.append(Quantity(f"checks.used.{name}", f"{label}, as multiplied", "parameter", added(products) * held.layers,
                             note="parameters of the products × layers"))  # fmt: skip
        kept.append(Quantity(f"checks.held.{name}", f"{label}, as held", "parameter", held.parameters * held.layers,
                             note="parameters of a layer on a rank × layers"))  # fmt: skip
    return used, kept
