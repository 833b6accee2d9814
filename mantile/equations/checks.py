"""What must hold, and what deserves attention: both sides of each, a rule, and a reason code that stays the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mantile.equations.constant import ONE_REQUEST, RANKS_TO_ACCELERATORS
from mantile.equations.cost import Cost
from mantile.equations.forward import Pass
from mantile.equations.inputs import ON
from mantile.equations.serving import Serving
from mantile.equations.tensors import VECTORS
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    absolute,
    all_of,
    as_node,
    equal,
    if_error,
    is_error,
    join,
    maximum,
    minimum,
    span,
    substitute,
    sum_of,
    sum_range,
    text,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Recurrence

Rule = Literal["exactly", "within", "at most", "at least"]

TOLERANCE = Input(
    "checks.tolerance",
    "Tolerance",
    "1",
    1e-9,
    "relative difference that rounding may leave",
    "definition",
    "defined",
    shared=True,
    fixed=True,
)


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
    return Input(
        f"checks.{name}",
        label,
        unit,
        value,
        "fixed side of a check",
        "definition",
        "defined",
        shared=True,
        fixed=True,
    )


@dataclass(frozen=True)
class Checks:
    """All standing checks, the rows that only they need, and the verdict on the plan.

    Args:
        invalid: number of feasibility checks, memory apart, that do not hold.
        feasibility: fits, fits_with_offload, insufficient_memory or invalid.
    """

    checks: tuple[Check, ...]
    invalid: Quantity
    feasibility: Quantity
    section: Section


FITS, WITH_OFFLOAD, INSUFFICIENT, INVALID = "fits", "fits_with_offload", "insufficient_memory", "invalid"
PLAN, FEASIBILITY = "Plan", "Feasibility"


class _Sides:
    """Sides of checks, each a row made once."""

    def __init__(self) -> None:
        self.rows: list[Row] = [TOLERANCE]
        self._fixed: dict[tuple[str, float], Input] = {}

    def fixed(self, value: float, unit: str, label: str = "") -> Input:
        """A fixed side."""
        if (unit, value) not in self._fixed:
            words = label or f"{value:g}, {unit}" if unit != "1" else label or f"{value:g}"
            figure = Input(
                f"checks.fixed.{unit.replace('/', '_per_')}.{value:g}",
                f"Fixed: {words}",
                unit,
                value,
                "fixed side of a check",
                "definition",
                "defined",
                shared=True,
                fixed=True,
            )
            self._fixed[unit, value] = figure
            self.rows.append(figure)
        return self._fixed[unit, value]

    def row(self, name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        """A side that is worked out."""
        figure = Quantity(f"checks.{name}", label, unit, body, note=note)
        self.rows.append(figure)
        return figure


def checks(
    ir: ModelGraph,
    sides: dict[str, Workers],
    prefill: Pass,
    decode: Pass,
    results: Serving,
    money: Cost,
    model_parameters: Quantity,
    floor_ttft: Quantity,
    floor_tpot: Quantity,
) -> Checks:
    """The standing checks of one scenario.

    Args:
        sides: the accelerators by what a check's code begins with: nothing for those that prefill or do everything.
    """
    made = _Sides()
    found: list[Check] = []
    main, last = next(iter(sides.values())), list(sides.values())[-1]
    one = made.fixed(1, "1")
    far = made.fixed(200 if GroupedMatMul in ir.operations() else 20, "1", "far from the floor")
    prefill_sum = made.row(
        "prefill_sum", "Prefill time by what binds", "s", sum_of(list(prefill.parts.values()))
    )
    decode_sum = made.row("decode_sum", "Decode time by what binds", "s", sum_of(list(decode.parts.values())))
    found += [
        Check(
            "TENSORS_DIFFER",
            "Structure",
            "Tensors add up to the architecture",
            main.tensors.parameters,
            "exactly",
            model_parameters,
            True,
        ),
        Check(
            "PREFILL_SUM",
            "Structure",
            "Limits add up to prefill time",
            prefill_sum,
            "within",
            prefill.time,
            True,
        ),
        Check(
            "DECODE_SUM", "Structure", "Limits add up to decode time", decode_sum, "within", decode.time, True
        ),
    ]
    found += _structure(ir, made, last, decode)
    for words, side in sides.items():
        found += _plan(ir, made, side, words)
    found += _workload(ir, made, main, last)
    ttft_times = made.row("ttft_times", "TTFT against its floor", "1", results.ttft / floor_ttft)
    tpot_times = made.row("tpot_times", "TPOT against its floor", "1", results.tpot / floor_tpot)
    errors = made.row(
        "errors",
        "Errors among the headline results",
        "flag",
        where(is_error(results.e2e / last.memory.used), 1, 0),
        "1 if end to end or memory is an error",
    )
    found += [
        Check(
            "TTFT_BELOW_FLOOR",
            "Plausibility",
            "TTFT is above its independent floor",
            results.ttft,
            "at least",
            floor_ttft,
            True,
        ),
        Check(
            "TPOT_BELOW_FLOOR",
            "Plausibility",
            "TPOT is above its independent floor",
            results.tpot,
            "at least",
            floor_tpot,
            True,
        ),
        Check(
            "PREFILL_MFU",
            "Plausibility",
            "Compute used in prefill is at most 1",
            prefill.mfu,
            "at most",
            one,
            True,
        ),
        Check(
            "DECODE_MFU",
            "Plausibility",
            "Compute used in decode is at most 1",
            decode.mfu,
            "at most",
            one,
            True,
        ),
        Check(
            "PREFILL_MBU",
            "Plausibility",
            "Bandwidth used in prefill is at most 1",
            prefill.mbu,
            "at most",
            one,
            True,
        ),
        Check(
            "DECODE_MBU",
            "Plausibility",
            "Bandwidth used in decode is at most 1",
            decode.mbu,
            "at most",
            one,
            True,
        ),
        Check(
            "ERROR_VALUE",
            "Plausibility",
            "No error value among the results",
            errors,
            "exactly",
            made.fixed(0, "flag"),
            True,
        ),
        *(
            [
                Check(
                    "SATURATED",
                    "Alerts",
                    "The load can be borne",
                    results.load.load,
                    "at most",
                    made.fixed(0.8, "1"),
                    False,
                )
            ]
            if results.load is not None
            else []
        ),
        Check(
            "KV_QUEUE",
            "Alerts",
            "The KV cache holds all requests",
            last.memory.requests,
            "at most",
            last.memory.capacity_sequences,
            False,
        ),
        Check(
            "TTFT_FAR_FROM_FLOOR",
            "Alerts",
            f"TTFT is under {far.value} times its floor",
            ttft_times,
            "at most",
            far,
            False,
        ),
        Check(
            "TPOT_FAR_FROM_FLOOR",
            "Alerts",
            f"TPOT is under {far.value} times its floor",
            tpot_times,
            "at most",
            far,
            False,
        ),
        Check(
            "PRICE_UNKNOWN",
            "Alerts",
            "A price is known on the basis asked for",
            money.known,
            "at least",
            made.fixed(1, "flag"),
            False,
        ),
        Check(
            "POWER_UNKNOWN",
            "Alerts",
            "The power limit is stated",
            money.power_known,
            "at least",
            made.fixed(1, "flag"),
            False,
        ),
    ]
    order = ("Structure", PLAN, FEASIBILITY, "Plausibility", "Alerts")
    found.sort(key=lambda check: order.index(check.group))
    broken = [check for check in found if check.group == PLAN]
    holds = made.row(
        "plan_holds", "Plan checks that hold", "flag", sum_range(span([check.result for check in broken]))
    )
    invalid = made.row(
        "invalid",
        "Plan checks that do not hold",
        "flag",
        made.fixed(len(broken), "flag", "plan checks") - holds,
    )
    offloaded = sum_of([side.memory.host_weights + side.memory.host_kv for side in sides.values()])
    held = made.row(
        "held",
        "Feasible in memory",
        "1",
        where(offloaded > 0, WITH_OFFLOAD, FITS),
        "offload if anything lies on the host",
    )
    room = made.row(
        "room",
        "By memory",
        "1",
        where(minimum(*(side.memory.fits for side in sides.values())) > 0, held, INSUFFICIENT),
    )
    verdict = made.row(
        "feasibility",
        "Feasibility",
        "1",
        where(invalid > 0, INVALID, room),
        "invalid if a plan check fails; else what memory says",
    )
    return Checks(
        tuple(found),
        invalid,
        verdict,
        Section("Sides of checks", tuple(made.rows), "worked out for the Checks sheet only"),
    )


def _structure(ir: ModelGraph, made: _Sides, side: Workers, done: Pass) -> list[Check]:
    """What must add up on the side that decodes."""
    inputs, plan, held = side.inputs, side.plan, side.memory
    multiplied, kept = _held(side, done)
    made.rows += multiplied
    shards = made.row(
        "multiplied",
        "Matrix weights on a rank, as multiplied",
        "parameter",
        sum_range(span(multiplied)),
        "sum of the rows above",
    )
    made.rows += kept
    whole = made.row(
        "held_weights",
        "Matrix weights on a rank, as held",
        "parameter",
        sum_range(span(kept)),
        "sum of the rows above",
    )
    memory_sum = made.row(
        "memory_sum", "Memory used, headroom and rest", "B", held.used + held.headroom + held.outside
    )
    of_ranks = [
        Quantity(
            f"checks.kv_of_ranks.{module.id}",
            f"{each.label}, on the ranks of an attention group",
            "B/token",
            each * inputs.tp * module.layers,
            note="KV bytes per token of a layer × TP × layers",
        )
        for module, _, each in held.caches.growing
        if module.layers is not None
    ]
    of_model = [
        Quantity(
            f"checks.kv_of_model.{module.id}",
            f"{each.label}, of the model with copies",
            "B/token",
            _with_copies(width, side) * side.formats.kv_bytes * module.layers,
            note="channels kept × copies × bytes per KV value × layers",
        )
        for module, width, each in held.caches.growing
        if module.layers is not None
    ]
    made.rows += of_ranks
    kv_left = made.row(
        "kv_of_ranks",
        "KV bytes of a token on all ranks",
        "B/token",
        sum_range(span(of_ranks)) if of_ranks else as_node(0),
    )
    made.rows += of_model
    kv_right = made.row(
        "kv_of_model",
        "KV bytes of a token, with copies",
        "B/token",
        sum_range(span(of_model)) if of_model else as_node(0),
    )
    sums = [
        made.row(
            f"layers_on_stages.{kind.count.id.removeprefix('model.')}",
            f"Layers on all stages, {kind.name}",
            "layer",
            sum_range(span(plan.stages.layers[kind.count])),
        )
        for kind in ir.layers
    ]
    every = made.row("layers_on_stages", "Layers on all stages", "layer", sum_of(list(sums)))
    found = [
        Check(
            "SHARDS_DIFFER",
            "Structure",
            "Products use every matrix a rank holds",
            shards,
            "within",
            whole,
            True,
        ),
        Check(
            "MEMORY_SUM",
            "Structure",
            "Memory parts add up to capacity",
            memory_sum,
            "within",
            side.hardware.memory_capacity,
            True,
        ),
        Check(
            "KV_DIFFERS",
            "Structure",
            "KV bytes of the ranks equal the architecture",
            kv_left,
            "within",
            kv_right,
            True,
        ),
        Check(
            "STAGES_DIFFER",
            "Structure",
            "Stages hold every layer once",
            every,
            "exactly",
            ir.total_layers,
            True,
        ),
    ]
    sent = [block for block in done.blocks if block.id in ("dispatch", "combine")]
    if sent:
        there, back = (
            made.row(
                f"tokens_{block.id}",
                f"Tokens of {block.label.lower()}, all ranks",
                "token",
                next(row for row in block.section.figures() if row.id.endswith(".own_tokens"))
                * side.ranks.stage,
            )
            for block in sent
        )
        found.append(
            Check(
                "TOKENS_DIFFER",
                "Structure",
                "As many tokens come back from experts as are sent",
                there,
                "within",
                back,
                True,
            )
        )
    return found


def _plan(ir: ModelGraph, made: _Sides, side: Workers, words: str) -> list[Check]:
    """Whether accelerators can hold and run the model as it is spread over them."""
    inputs, plan, held, hardware, ranks = side.inputs, side.plan, side.memory, side.hardware, side.ranks
    code, suffix = (f"{words.upper()}_", f", {words}") if words else ("", "")
    key = f"{words}." if words else ""

    def row(name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return made.row(f"{key}{name}", f"{label}{suffix}", unit, body, note)

    def plans(name: str, label: str, left: Named, rule: Rule, right: Named) -> Check:
        return Check(f"{code}{name}", PLAN, f"{label}{suffix}", left, rule, right, True)

    def alert(name: str, label: str, left: Named, rule: Rule, right: Named) -> Check:
        return Check(f"{code}{name}", "Alerts", f"{label}{suffix}", left, rule, right, False)

    one, yes, none = made.fixed(1, "rank"), made.fixed(1, "flag"), made.fixed(0, "flag")
    nothing = {unit: made.fixed(0, unit) for unit in ("head", "channel", "layer", "rank")}
    replica = row(
        "replica", "Accelerators of a replica", "accelerator", ranks.replica * RANKS_TO_ACCELERATORS
    )
    reach = row(
        "reach",
        "Accelerators the system can join",
        "accelerator",
        hardware.system_accelerators * maximum(1, hardware.domains),
        "accelerators of a domain × domains",
    )
    stages = row("stages", "Stages", "layer", inputs.pp * made.fixed(1, "layer"), "a layer for each at least")
    found = [
        plans("SYSTEM_MISMATCH", "The system holds the accelerator", hardware.system_matches, "exactly", yes)
    ]
    if plan.left.heads is not None:
        found.append(
            plans("HEADS_NOT_DIVISIBLE", "TP divides the heads", plan.left.heads, "exactly", nothing["head"])
        )
    if plan.left.kv_heads is not None:
        found.append(
            plans(
                "KV_HEADS_NOT_DIVISIBLE",
                "KV heads and TP divide one another",
                plan.left.kv_heads,
                "exactly",
                nothing["head"],
            )
        )
    found += [
        plans(
            "FFN_NOT_DIVISIBLE",
            "The ranks that share them divide the FFN sizes",
            plan.left.columns,
            "exactly",
            nothing["channel"],
        ),
        plans(
            "EP_NOT_DIVISOR", "EP divides the ranks of a stage", plan.left.ranks, "exactly", nothing["rank"]
        ),
        plans("PP_EXCEEDS_LAYERS", "There is a layer for every stage", stages, "at most", ir.total_layers),
        plans(
            "REPLICA_EXCEEDS_SYSTEM",
            "A replica lies within what the system can join",
            replica,
            "at most",
            reach,
        ),
    ]
    if plan.experts is not None:
        count = next(
            module.operation.count for module in ir.modules if isinstance(module.operation, GroupedMatMul)
        )
        groups = row(
            "expert_groups",
            "Expert-parallel groups",
            "expert",
            inputs.ep * made.fixed(1, "expert"),
            "an expert for each at least",
        )
        found.append(
            plans("EP_EXCEEDS_EXPERTS", "There is an expert for every rank of EP", groups, "at most", count)
        )
        assert plan.left.experts is not None
        found.append(
            alert(
                "EXPERTS_UNEVEN",
                "EP divides the experts",
                plan.left.experts,
                "exactly",
                made.fixed(0, "expert"),
            )
        )
    else:
        found.append(
            plans("EP_WITHOUT_EXPERTS", "EP is 1 in a model without experts", inputs.ep, "exactly", one)
        )
    if any(isinstance(module.operation, Recurrence) for module in ir.modules):
        found.append(
            plans("CP_WITH_STATE", "CP is 1 in a model with recurrent states", inputs.cp, "exactly", one)
        )
    host = row("host_used", "Bytes on the host", "B", held.host_weights + held.host_kv)
    asked = row("host_asked", "Memory asked of the host", "GB", inputs.offload_weights + inputs.offload_kv)
    possible = row(
        "host_possible",
        "Host link, or none needed",
        "flag",
        where(all_of(asked > 0, hardware.host_bandwidth <= 0), 0, 1),
        "1 if there is a link to host memory, or nothing is asked of it",
    )
    found += [
        Check(
            f"{code}EFFICIENCY_ABOVE_ONE",
            "Plausibility",
            f"No fraction of a peak is above 1{suffix}",
            side.efficiency.rates.largest,
            "at most",
            made.fixed(1, "1"),
            True,
        ),
        Check(
            f"{code}EFFICIENCY_NOT_POSITIVE",
            "Plausibility",
            f"Every fraction of a peak is above 0{suffix}",
            side.efficiency.rates.smallest,
            "at least",
            made.fixed(0.001, "1", "smallest sensible fraction"),
            True,
        ),
        plans(
            "OFFLOAD_WITHOUT_HOST",
            "There is a link to host memory where it is used",
            possible,
            "at least",
            yes,
        ),
        Check(
            f"{code}MEMORY_EXCEEDED",
            FEASIBILITY,
            f"Memory used is at most usable memory{suffix}",
            held.used,
            "at most",
            held.limit,
            True,
        ),
        alert("OFFLOADED", "Nothing lies on the host", host, "at most", made.fixed(0, "B")),
        alert("LAYERS_UNEVEN", "PP divides the layers", plan.left.layers, "exactly", nothing["layer"]),
        alert(
            "TP_CROSSES_DOMAINS",
            "The TP ranks stand in one domain",
            side.network.tp_domains,
            "at most",
            made.fixed(1, "domain"),
        ),
        alert(
            "STAGE_CROSSES_DOMAINS",
            "The ranks of a stage stand in one domain",
            side.network.stage_domains,
            "at most",
            made.fixed(1, "domain"),
        ),
        alert(
            "REPLICA_CROSSES_DOMAINS",
            "A replica stands in one domain",
            replica,
            "at most",
            hardware.system_accelerators,
        ),
        alert(
            "FRAMEWORK_UNSUPPORTED",
            "The framework runs on this maker's chips",
            hardware.framework_runs,
            "at least",
            yes,
        ),
        alert(
            "NO_NATIVE_FORMAT",
            "The accelerator multiplies in the formats asked for",
            side.formats.native,
            "at least",
            yes,
        ),
    ]
    if plan.kv_copies is not None:
        found.append(
            alert("KV_COPIED", "KV heads are not copied", plan.kv_copies, "at most", made.fixed(1, "1"))
        )
    stored = [kind.stored_only for kind in side.formats.classes.values() if kind.stored_only is not None]
    only = row(
        "stored_only",
        "Weights in a native format multiplied in 16 bit",
        "flag",
        maximum(*stored),
        "1 if some weights' format has a peak that wider activations leave unused",
    )
    found.append(
        alert(
            "WEIGHT_ONLY_FORMAT",
            "Activations follow weights the accelerator can multiply",
            only,
            "exactly",
            none,
        )
    )
    share = row(
        "request_groups",
        "Groups that share the requests",
        "request",
        inputs.dp * inputs.attention_dp * ONE_REQUEST,
        "DP × attention-DP",
    )
    found.append(
        alert(
            "MORE_GROUPS_THAN_REQUESTS",
            "There is a request for every group",
            share,
            "at most",
            inputs.concurrency,
        )
    )
    return found


def _workload(ir: ModelGraph, made: _Sides, main: Workers, last: Workers) -> list[Check]:
    """Lengths, batching and the way prefill and decode go together."""
    inputs = main.inputs
    found: list[Check] = []
    if "max_positions" in ir.facts:
        length = made.row(
            "length", "Input and output tokens", "token/request", inputs.input_tokens + inputs.output_tokens
        )
        found.append(
            Check(
                "CONTEXT_EXCEEDS_MODEL",
                PLAN,
                "Input and output lie within the model's context",
                length,
                "at most",
                ir.facts["max_positions"],
                True,
            )
        )
    groups = made.row(
        "context_groups",
        "Groups that share a prompt",
        "token/request",
        inputs.cp * made.fixed(1, "token/request"),
        "a token for each at least",
    )
    found.append(
        Check(
            "CP_EXCEEDS_INPUT",
            PLAN,
            "There is a token of the prompt for every CP rank",
            groups,
            "at most",
            inputs.input_tokens,
            True,
        )
    )
    sequence = made.row(
        "sequence_useless",
        "Sequence parallelism without TP",
        "flag",
        where(all_of(equal(inputs.sequence_parallel, ON), inputs.tp <= 1), 1, 0),
        "1 if asked for with one TP rank",
    )
    found.append(
        Check(
            "SP_WITHOUT_TP",
            "Alerts",
            "Sequence parallelism has TP ranks",
            sequence,
            "exactly",
            made.fixed(0, "flag"),
            False,
        )
    )
    apart = main.ranks.disaggregated
    if apart is None:
        return found
    still = made.row(
        "static_apart", "Static batching with workers apart", "flag", apart * (1 - main.ranks.continuous)
    )
    links = made.row(
        "linked",
        "Workers reach one another",
        "flag",
        maximum(1 - apart, where(minimum(main.network.out, last.network.out) > 0, 1, 0)),
        "1 if both systems have a network, or serving is aggregated",
    )
    differ = [
        made.row(
            f"differs.{mine.id.removeprefix('inputs.')}",
            f"Prefill and decode differ, {mine.label}",
            "flag",
            where(equal(mine, own), 0, 1),
        )
        for mine, own in inputs.of_decode().items()
    ]
    different = made.row(
        "differences",
        "Differences in aggregated serving",
        "flag",
        (1 - apart) * sum_range(span(differ)),
        "0 if serving is disaggregated",
    )
    found += [
        Check(
            "PHASES_DIFFER",
            PLAN,
            "The same accelerators prefill and decode",
            different,
            "exactly",
            made.fixed(0, "flag"),
            True,
        ),
        Check(
            "STATIC_DISAGGREGATED",
            PLAN,
            "Disaggregated serving batches continuously",
            still,
            "exactly",
            made.fixed(0, "flag"),
            True,
        ),
        Check(
            "NO_LINK_BETWEEN_WORKERS",
            PLAN,
            "Prefill and decode workers are linked",
            links,
            "at least",
            made.fixed(1, "flag"),
            True,
        ),
    ]
    return found


def _with_copies(width: Node, side: Workers) -> Node:
    """What all TP ranks together hold of a dimension: itself where it is split, copies of KV heads counted, else one copy per rank."""
    return substitute(width, side.plan.copied) if side.plan.splits_of(width) else width * side.inputs.tp


def _held(side: Workers, done: Pass) -> tuple[list[Quantity], list[Quantity]]:
    """Matrices of all layers on a rank, by class: as the products of a pass use them, and as the tensors hold them."""
    used, kept = [], []
    for held in side.tensors.of_layers:
        if held.weights == VECTORS:
            continue
        name = held.parameters.id.removeprefix("tensors.").removeprefix("decode.tensors.")
        products: list[Node] = []
        for block in done.blocks:
            work = block.module.operation if block.module is not None else None
            tables = (
                block.module is not None
                and block.module.tensors
                and not any(tensor.matrix for tensor in block.module.tensors)
            )
            if block.repeats is held.layers and isinstance(work, MatMul | GroupedMatMul) and not tables:
                parameters = next(row for row in block.section.figures() if row.id.endswith(".parameters"))
                if isinstance(work, GroupedMatMul) and held.weights == "experts":
                    assert side.plan.experts is not None
                    products.append(side.plan.experts.per_rank * parameters)
                elif isinstance(work, MatMul) and work.weights == held.weights:
                    products.append(parameters)
        label = held.parameters.label.removesuffix(", decode").removesuffix(", of a layer on a rank")
        used.append(
            Quantity(
                f"checks.used.{name}",
                f"{label}, as multiplied",
                "parameter",
                sum_of(products) * held.layers,
                note="parameters of the products × layers",
            )
        )
        kept.append(
            Quantity(
                f"checks.held.{name}",
                f"{label}, as held",
                "parameter",
                held.parameters * held.layers,
                note="parameters of a layer on a rank × layers",
            )
        )
    return used, kept


@dataclass(frozen=True)
class Verdict:
    """What all checks of a workbook say together.

    Args:
        passed: error checks that hold, and `clear` alerts that do, of each scenario. The rest is of the whole workbook.
        error_count: error checks of all scenarios, and `alert_count` alerts.
        master: 1 if no error check failed in any scenario.
        headline: in words, how many checks pass; `alerts` how many alerts are raised; `stamp` whether inputs changed.
    """

    checks: tuple[Check, ...]
    unchanged: Check
    passed: Quantity
    clear: Quantity
    error_count: Input
    alert_count: Input
    master: Quantity
    headline: Quantity
    alerts: Quantity
    stamp: Quantity


def verdict(standing: tuple[Check, ...], unchanged: Check, scenarios: int) -> Verdict:
    """The verdict over the standing checks and the alert that inputs changed, of a number of scenarios."""
    checks = (*standing, unchanged)
    errors = [check for check in checks if check.error]
    alerts = [check for check in checks if not check.error]
    error_count = _count("error_count", "Checks", len(errors) * scenarios)
    alert_count = _count("alert_count", "Alerts", len(alerts) * scenarios)
    rows = Rows("checks")
    by_group: list[Node] = [
        sum_range(span([check.result for check in errors if check.group == group]))
        for group in dict.fromkeys(check.group for check in errors)
    ]
    passed = rows("passed", "Error checks that pass", "flag", sum_of(by_group))
    clear = rows(
        "clear", "Alerts that are clear", "flag", sum_range(span([check.result for check in alerts]))
    )
    all_passed = sum_of([InCase(passed, scenario) for scenario in range(scenarios)])
    all_clear = sum_of([InCase(clear, scenario) for scenario in range(scenarios)])
    master = rows("master", "Master check", "flag", where(all_passed >= error_count, 1, 0))
    in_all = text(error_count, "0")
    return Verdict(
        checks=checks,
        unchanged=unchanged,
        passed=passed,
        clear=clear,
        error_count=error_count,
        alert_count=alert_count,
        master=master,
        headline=rows(
            "headline",
            "Verdict",
            "1",
            where(
                master > 0,
                join("✓ ", text(all_passed, "0"), " of ", in_all, " checks pass"),
                join("✗ ", text(error_count - all_passed, "0"), " of ", in_all, " checks FAIL"),
            ),
        ),
        alerts=rows(
            "alerts",
            "Alerts",
            "1",
            join(text(alert_count - all_clear, "0"), " of ", text(alert_count, "0"), " alerts raised"),
        ),
        stamp=rows(
            "stamp",
            "As generated",
            "1",
            where(unchanged.result > 0, "inputs as generated", "inputs changed since generation"),
        ),
    )


def _count(name: str, label: str, count: int) -> Input:
    return Input(f"checks.{name}", label, "number", count, shared=True, fixed=True)
