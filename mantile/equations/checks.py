"""What must hold, and what deserves attention: both sides of each, a rule, and a reason code that stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mantile.equations.constants import KEYS_AND_VALUES
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
    equal,
    if_error,
    is_error,
    maximum,
    where,
)  # fmt: skip
from mantile.ir.modules import ModelGraph

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
    twenty = number("far", "Far from the floor", "1", 20)
    tiny = number("smallest", "Smallest sensible fraction", "1", 0.001)

    def side(name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(f"checks.{name}", label, unit, body, note=note)

    width = ir.query_width + ir.kv_width
    shards = side("shards", "Matrix weights of a layer on all TP ranks", "parameter", stored.layer_matrices * inputs.tp)
    copied = side("copied_width", "Width of copied KV heads", "channel", KEYS_AND_VALUES * ir.kv_width * (plan.kv_copies - 1))
    whole = side("whole_layer", "Matrix weights of a layer, with copies", "parameter",
                 facts.hidden_size * (KEYS_AND_VALUES * width + copied + (facts.ffn_input_matrices + 1) * facts.ffn_size),
                 note="hidden size × widths, KV heads counted once per copy")  # fmt: skip
    prefill_sum = side("prefill_sum", "Prefill time by what binds", "s", added(list(prefill.parts.values())))
    decode_sum = side("decode_sum", "Decode time by what binds", "s", added(list(decode.parts.values())))
    memory_sum = side("memory_sum", "Memory used, headroom and rest", "B", held.used + held.headroom + held.outside)
    kv_left = side("kv_of_ranks", "KV bytes of a token and layer on all TP ranks", "B/token",
                   held.kv_bytes_per_token * inputs.tp / plan.layers)  # fmt: skip
    kv_right = side("kv_of_model", "KV bytes of a token and layer, with copies", "B/token",
                    KEYS_AND_VALUES * ir.kv_width * hardware.kv_bytes * plan.kv_copies)  # fmt: skip
    system = side("replica", "Accelerators of a replica", "accelerator", plan.accelerators / inputs.dp)
    length = side("length", "Input and output tokens", "token/request", inputs.input_tokens + inputs.output_tokens)
    ttft_times = side("ttft_times", "TTFT against its floor", "1", results.ttft / floor_ttft)
    tpot_times = side("tpot_times", "TPOT against its floor", "1", results.tpot / floor_tpot)
    stored_only = side("stored_only", "Weights in a native format multiplied in 16 bit", "flag",
                       where(hardware.weights_peak > 0, (1 - hardware.weights_sixteen_bit) * (1 - hardware.low_precision), 0),
                       note="1 if the accelerator could multiply in the weights' format, but activations are wider")  # fmt: skip
    narrow = side("narrow_asked", "Products below 16 bit asked for", "flag", 1 - hardware.activations_sixteen_bit)
    errors = side("errors", "Errors among the headline results", "flag",
                  where(is_error(results.e2e / held.used), 1, 0),
                  note="1 if end to end or memory is an error")  # fmt: skip

    standing = (
        Check("TENSORS_DIFFER", "Structure", "Tensors add up to the architecture", stored.parameters, "exactly",
              model_parameters, True),
        Check("SHARDS_DIFFER", "Structure", "Shards of all ranks add up to a layer", shards, "within", whole, True),
        Check("PREFILL_SUM", "Structure", "Limits add up to prefill time", prefill_sum, "within", prefill.time, True),
        Check("DECODE_SUM", "Structure", "Limits add up to decode time", decode_sum, "within", decode.time, True),
        Check("MEMORY_SUM", "Structure", "Memory parts add up to capacity", memory_sum, "within", hardware.memory_capacity, True),
        Check("KV_DIFFERS", "Structure", "KV bytes of the ranks equal the architecture", kv_left, "within", kv_right, True),
        Check("MEMORY_EXCEEDED", "Feasibility", "Memory used is at most usable memory", held.used, "at most", held.usable, True),
        Check("HEADS_NOT_DIVISIBLE", "Feasibility", "TP divides the query heads", plan.heads_left, "exactly",
              none_left["head"], True),
        Check("KV_HEADS_NOT_DIVISIBLE", "Feasibility", "KV heads and TP divide one another", plan.kv_left, "exactly",
              none_left["head"], True),
        Check("FFN_NOT_DIVISIBLE", "Feasibility", "TP divides the FFN size", plan.ffn_left, "exactly", none_left["channel"], True),
        Check("PP_EXCEEDS_LAYERS", "Feasibility", "There is a layer for every stage", inputs.pp, "at most", facts.layers, True),
        Check("REPLICA_EXCEEDS_SYSTEM", "Feasibility", "A replica lies within one system", system, "at most",
              hardware.system_accelerators, True),
        Check("CONTEXT_EXCEEDS_MODEL", "Feasibility", "Input and output lie within the model's context", length, "at most",
              facts.max_positions, True),
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
        Check("KV_COPIED", "Alerts", "KV heads are not copied", plan.kv_copies, "at most", one, False),
        Check("LAYERS_UNEVEN", "Alerts", "PP divides the layers", plan.layers_left, "exactly", none_left["layer"], False),
        Check("NO_NATIVE_FORMAT", "Alerts", "The accelerator multiplies in the formats asked for", hardware.low_precision,
              "at least", narrow, False),
        Check("WEIGHT_ONLY_FORMAT", "Alerts", "Activations follow weights the accelerator can multiply", stored_only, "exactly", zero,
              False),
        Check("TTFT_FAR_FROM_FLOOR", "Alerts", "TTFT is under 20 times its floor", ttft_times, "at most", twenty, False),
        Check("TPOT_FAR_FROM_FLOOR", "Alerts", "TPOT is under 20 times its floor", tpot_times, "at most", twenty, False),
    )  # fmt: skip
    rows: tuple[Row, ...] = (TOLERANCE, *none_left.values(), one, zero, twenty, tiny, shards, copied, whole, prefill_sum, decode_sum,
            memory_sum, kv_left, kv_right, system, length, ttft_times, tpot_times, narrow, stored_only, errors)  # fmt: skip
    return Checks(standing, Section("Sides of checks", rows, "worked out for the Checks sheet only"))
