"""What must hold, and what deserves attention: both sides of every check, and the verdicts.

What the checks are, and what it means where one does not hold, stands in the table of `reasons`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import mul

from mantile.equations.constant import GIGA, ONE_REQUEST, RANKS_TO_ACCELERATORS, SPLIT_MARGIN, TOKENS_PER_STEP
from mantile.equations.devices import Devices
from mantile.equations.display import LETTERS, in_scenario, sum_across
from mantile.equations.engine import Settings
from mantile.equations.forward import Pass
from mantile.equations.gain import Gain
from mantile.equations.inputs import ON, Workload
from mantile.equations.kv_cache import Cache
from mantile.equations.model import ModelSize
from mantile.equations.ready_columns import COUNTS, where_it_counts
from mantile.equations.reasons import GROUPS, PLAN, REASONS, Rule
from mantile.equations.roofline import Block
from mantile.equations.serving import Serving
from mantile.equations.speculation import MTP
from mantile.equations.tables import Equations
from mantile.equations.tensors import VECTORS, RankWeights
from mantile.equations.typed import Faults, SharedCells, TypedInputs
from mantile.equations.workers import Workers
from mantile.floors import Floors
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    absolute,
    all_of,
    as_node,
    defined,
    equal,
    if_error,
    index,
    is_error,
    join,
    match,
    maximum,
    minimum,
    number_of,
    remainder,
    span,
    substitute,
    sum_of,
    sum_range,
    text,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Recurrence, Tensor
from mantile.library.architecture import NOT_RUN
from mantile.library.huggingface.unread import why_unread

TOLERANCE = defined("checks.tolerance", "Tolerance", "1", 1e-9, "relative difference that rounding may leave")
OVERLOADED = "OVERLOADED"
NO_EDIT = "–"
TYPED_OVER = " Results changed all the same: a formula or a library figure was typed over (mantile verify)."
FITS, WITH_OFFLOAD, INSUFFICIENT, INVALID = "fits", "fits_with_offload", "insufficient_memory", "invalid"


@dataclass(frozen=True)
class Check:
    """A check of the table of reasons with its two sides.

    Args:
        of: the workers it is of: "decode", or nothing.
        counted: ranks of the device it is of, 0 where that holds no part of the model: then it holds.
    """

    reason: str
    left: Named
    right: Named
    of: str = ""
    counted: Quantity | None = None

    @property
    def code(self) -> str:
        """The reason code."""
        return f"{self.of.upper()}_{self.reason}" if self.of else self.reason

    @property
    def label(self) -> str:
        """What holds."""
        label = REASONS[self.reason].label
        return f"{label}, {self.of}" if self.of else label

    @property
    def group(self) -> str:
        """The group it belongs to."""
        return REASONS[self.reason].group

    @property
    def rule(self) -> Rule:
        """How the left side must stand to the right one."""
        return REASONS[self.reason].rule

    @property
    def error(self) -> bool:
        """Whether the workbook fails where it does not hold; otherwise it is an alert."""
        return REASONS[self.reason].error

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
        held: Node = if_error(where(holds, 1, 0), 0)
        if self.counted is not None:
            held = maximum(held, where(self.counted > 0, 0, 1))
        return Quantity(f"check.{self.code}", self.label, "flag", held)

    @cached_property
    def difference(self) -> Quantity:
        """How far the left side is above the right one."""
        return Quantity(
            f"check.{self.code}.difference",
            f"{self.label}, difference",
            self.left.unit,
            self.left - self.right,
        )


@dataclass(frozen=True)
class Checks:
    """All standing checks, the rows that only they need, and the verdict on the plan.

    Args:
        codes: of the plan checks, in their order.
        labels: what holds where these do, and last where the plan has the memory.
        feasibility: fits, fits_with_offload, insufficient_memory or invalid.
        reason: the same, with the code of the first plan check that does not hold in place of invalid.
        broken: what does not hold of a plan that cannot be, in words.
        possible: 1 if the plan can be; `payable` if moreover it can be known what it draws and costs.
        faults: how many cells hold what cannot be, without which there is no plan; `of_money` without which
            nobody knows what it costs.
        state: feasibility, or that a plan that can be is overloaded.
    """

    checks: tuple[Check, ...]
    codes: tuple[Input, ...]
    labels: tuple[Input, ...]
    feasibility: Quantity
    reason: Quantity
    broken: Quantity
    possible: Quantity
    payable: Quantity
    faults: Faults
    of_money: Faults
    state: Quantity
    section: Section

    @property
    def load(self) -> Named | None:
        """Requests that arrive over those that can be served; None in a workbook without a request rate."""
        return next((check.left for check in self.checks if check.reason == OVERLOADED), None)


@dataclass(frozen=True)
class Checked:
    """All of an estimate that the checks look at.

    Args:
        workers: those that do everything, or prefill and decode workers.
        pools: all accelerators that may differ: these workers, or devices that are not alike.
        devices: the devices; None where accelerators are alike.
        handover: B/s from prefill to decode workers; None where these are the same.
    """

    ir: ModelGraph
    workers: tuple[Workers, ...]
    pools: tuple[Workers, ...]
    devices: Devices | None
    handover: Quantity | None
    model: ModelSize
    prefill: Pass
    decode: Pass
    serving: Serving
    rows: Equations
    floors: Floors
    gain: Gain | None = None
    settings: Settings | None = None


class _Sides:
    """Rows that only checks need. Fixed sides are made once each."""

    def __init__(self) -> None:
        self.rows: list[Row] = [TOLERANCE]
        self._fixed: dict[tuple[str, float], Input] = {}

    def fixed(self, value: float, unit: str, label: str = "") -> Input:
        """A side that is a plain number."""
        if (unit, value) not in self._fixed:
            number = f"{value:g}" if unit == "1" else f"{value:g}, {unit}"
            constant = defined(
                f"checks.fixed.{unit.replace('/', '_per_')}.{value:g}",
                f"Fixed: {label or number}",
                unit,
                value,
                "fixed side of a check",
            )
            self._fixed[unit, value] = constant
            self.rows.append(constant)
        return self._fixed[unit, value]

    def of(self, workers: str = "") -> Rows:
        """A maker of sides that are worked out, of one set of workers where it is named."""
        return Rows(
            f"checks.{workers}" if workers else "checks", f", {workers}" if workers else "", self.rows
        )


@dataclass(frozen=True)
class Standing:
    """The checks of what was worked out, and the rows that only they need."""

    checks: tuple[Check, ...]
    sides: _Sides


def standing(estimate: Checked) -> Standing:
    """The checks of one scenario but for those of what is typed into cells."""
    sides = _Sides()
    rows = sides.of()
    counted = estimate.workers[0].ranks.counted
    of_pools: Iterable[tuple[str, Quantity | None]] = [("", None), ("decode", None)]
    if counted:
        of_pools = [(f"device{number}", ranks) for number, ranks in enumerate(counted, start=1)]
    found = (
        *passes(rows, estimate),
        *structure(rows, estimate),
        *(
            check
            for (name, ranks), workers in zip(of_pools, estimate.pools, strict=False)
            for check in _of_workers(_Of(sides, name, workers, estimate.ir, ranks))
        ),
        *workload(sides, estimate),
        *disaggregation(sides, estimate),
        *unlike(sides, estimate),
        *capacity(sides, estimate),
        *plausibility(sides, estimate),
        *alerts(sides, estimate),
    )
    ordered = sorted(found, key=lambda check: GROUPS.index(REASONS[check.reason].group))
    return Standing(tuple(ordered), sides)


def checks(
    estimate: Checked, found: Standing, typed: TypedInputs, assumed: tuple[SharedCells, SharedCells | None]
) -> Checks:
    """All checks of one scenario, and the verdict.

    Args:
        typed: what the cells of inputs and overrides hold.
        assumed: what those of assumptions hold that times follow from, and those that only cost follows from.
    """
    sides = found.sides
    verdict = feasibility(sides, found.checks, estimate, typed, assumed)
    none = sides.fixed(0, "flag")
    return Checks(
        checks=(
            Check("INPUT_INVALID", typed.inputs_invalid, none),
            Check("DIMENSION_INVALID", estimate.model.typed.faults.count, none),
            *(_or_of_verdict(sides, check, verdict) for check in found.checks),
        ),
        codes=verdict.codes,
        labels=verdict.labels,
        feasibility=verdict.words,
        reason=verdict.reason,
        broken=verdict.broken,
        possible=verdict.possible,
        payable=verdict.payable,
        faults=verdict.faults,
        of_money=verdict.of_money,
        state=verdict.state,
        section=sides.of().section("Sides of checks", "worked out for the checks on Audit only"),
    )


def _or_of_verdict(sides: _Sides, check: Check, verdict: _Feasibility) -> Check:
    """A check; of error values also whether the verdict is one, without which nothing is shown."""
    if check.reason != "ERROR_VALUE":
        return check
    either = where(is_error(verdict.possible + verdict.payable), 1, check.left)
    label = f"{check.left.label}, and in the verdict"
    return replace(check, left=sides.of()("error_values", label, "flag", either))


@dataclass(frozen=True)
class _Feasibility:
    """The verdict on the plan: in words, with its reason, and as a flag."""

    codes: tuple[Input, ...]
    labels: tuple[Input, ...]
    words: Quantity
    reason: Quantity
    broken: Quantity
    possible: Quantity
    payable: Quantity
    state: Quantity
    faults: Faults
    of_money: Faults


def feasibility(
    sides: _Sides,
    checks: Sequence[Check],
    estimate: Checked,
    of_cells: TypedInputs,
    assumed: tuple[SharedCells, SharedCells | None],
) -> _Feasibility:
    """The verdict on the plan, by its inputs, the plan checks and memory."""
    rows, typed, dimensions = sides.of(), of_cells.faults, estimate.model.typed.faults
    workers, assumptions, of_cost = estimate.pools, assumed[0].faults, assumed[1]
    plan = [check.result for check in checks if check.group == PLAN]
    codes = tuple(
        Input(f"checks.code.{check.code}", "Code", "1", check.code, shared=True, fixed=True, name="codes")
        for check in checks
        if check.group == PLAN
    )
    memory = next(check for check in checks if check.reason == "MEMORY_EXCEEDED")
    labels = tuple(
        Input(f"checks.label.{check.code}", "Check", "1", check.label, shared=True, fixed=True, name="checks")
        for check in (*(check for check in checks if check.group == PLAN), memory)
    )
    holds = rows("plan_holds", "Plan checks that hold", "flag", sum_range(span(plan)))
    faults = rows(
        "faults",
        "Inputs, dimensions and assumptions that cannot be",
        "flag",
        typed.count + dimensions.count + assumptions.count,
    )
    fixed_message = rows(
        "message.fixed",
        "The first of dimensions and assumptions, in words",
        "1",
        where(dimensions.count > 0, dimensions.message, assumptions.message),
    )
    message = rows(
        "message",
        "The first of them, in words",
        "1",
        where(typed.count > 0, typed.message, fixed_message),
    )
    invalid = rows(
        "invalid",
        "Inputs that cannot be, and plan checks that do not hold",
        "flag",
        sides.fixed(len(plan), "flag", "plan checks") - holds + faults,
    )
    on_host = sum_of([pool.rows["memory.host_weights"] + pool.rows["memory.host_kv"] for pool in workers])
    in_memory = rows(
        "held",
        "Feasible in memory",
        "1",
        where(on_host > 0, WITH_OFFLOAD, FITS),
        "offload if anything lies on the host",
    )
    room = minimum(*(check.result for check in checks if check.reason == "MEMORY_EXCEEDED")) > 0
    has_room = rows("has_room", "By memory, as a flag", "flag", where(room, 1, 0))
    by_memory = rows("room", "By memory", "1", where(room, in_memory, INSUFFICIENT))
    fixed_cause = rows(
        "cause.fixed",
        "Which cells cannot be but for inputs",
        "1",
        where(dimensions.count > 0, "DIMENSION_INVALID", "FIGURE_INVALID"),
        "where there are such",
    )
    cause = rows(
        "cause",
        "Which cells cannot be",
        "1",
        where(typed.count > 0, of_cells.cause, fixed_cause),
        "where there are such",
    )
    place = rows(
        "first_place",
        "The first plan check that does not hold",
        "number",
        where(invalid > faults, match(0, span(plan)), 1),
        "1 where all hold",
    )
    first = rows(
        "first",
        "First reason why the plan cannot be",
        "1",
        where(faults > 0, cause, index(span(codes), place)),
    )
    broken = where(invalid > 0, index(span(labels[:-1]), place), labels[-1])
    of_plan = rows(
        "broken.plan", "The first of plan and memory that does not hold", "1", join("Does not hold: ", broken)
    )
    words = rows("feasibility", "Feasibility", "1", where(invalid > 0, INVALID, by_memory))
    possible = rows("possible", "The plan can be", "flag", where(invalid > 0, 0, has_room))
    of_money = _of_money(rows, of_cells.of_money, None if of_cost is None else of_cost.faults)
    payable = rows(
        "payable",
        "The plan can be, and what it costs be known",
        "flag",
        where(of_money.count > 0, 0, possible),
    )
    state = words
    for check in checks:
        if check.reason == OVERLOADED:
            overloaded = all_of(possible > 0, check.left > check.right)
            state = rows(
                "state", "Feasibility, or overload", "1", where(overloaded, OVERLOADED.lower(), words)
            )
    return _Feasibility(
        codes=codes,
        labels=labels,
        words=words,
        reason=rows(
            "reason",
            "Feasibility with its reason",
            "1",
            where(invalid > 0, first, by_memory),
            "the first plan check that does not hold",
        ),
        broken=rows("broken", "What does not hold, in words", "1", where(faults > 0, message, of_plan)),
        possible=possible,
        payable=payable,
        state=state,
        faults=Faults(faults, message),
        of_money=of_money,
    )


def _of_money(rows: Rows, cells: Faults, assumptions: Faults | None) -> Faults:
    """Cells that cannot be from which only power and cost follow."""
    if assumptions is None:
        return cells
    label = "Cells of power and price that cannot be"
    count = rows("faults.money", label, "flag", cells.count + assumptions.count)
    words = where(assumptions.count > 0, assumptions.message, cells.message)  # cells may follow them
    return Faults(count, rows("message.money", "The first of them, in words, power and price", "1", words))


# --- structure: what must add up ---------------------------------------------------------------------------


def passes(rows: Rows, estimate: Checked) -> Iterator[Check]:
    """Parameters of the model, and times of both passes."""
    yield Check("TENSORS_DIFFER", estimate.workers[0].tensors.parameters, estimate.model.parameters)
    for name, work in (("prefill", estimate.prefill), ("decode", estimate.decode)):
        by_limit = rows(
            f"{name}_sum",
            f"{name.capitalize()} time by what binds",
            "s",
            sum_of(list(work.parts.values())),
        )
        yield Check(f"{name.upper()}_SUM", by_limit, work.time)


def structure(rows: Rows, estimate: Checked) -> Iterator[Check]:
    """What must add up on the workers that decode."""
    workers, ir = estimate.workers[-1], estimate.ir
    idle = frozenset(tensor for module in ir.modules if module.step == NOT_RUN for tensor in module.tensors)
    yield weights(rows, workers, estimate.decode, idle)
    parts = rows(
        "memory_sum",
        "Memory used, headroom and rest",
        "B",
        workers.rows["memory.used"] + workers.rows["memory.headroom"] + workers.rows["memory.outside"],
    )
    yield Check("MEMORY_SUM", parts, workers.hardware.memory_capacity)
    yield kv_cache(rows, workers)
    of_kinds = [
        rows(
            f"layers_on_stages.{kind.count.id.removeprefix('model.')}",
            f"Layers on all stages, {kind.name}",
            "layer",
            sum_range(span(workers.plan.stages.layers[kind.count])),
        )
        for kind in ir.layers
    ]
    layers = rows("layers_on_stages", "Layers on all stages", "layer", sum_of(list(of_kinds)))
    yield Check("STAGES_DIFFER", layers, ir.total_layers)
    messages = [block for block in estimate.decode.blocks if block.id in ("dispatch", "combine")]
    if messages:
        sent, received = (_tokens_of_message(rows, block, workers) for block in messages)
        yield Check("TOKENS_DIFFER", sent, received)
    yield Check("COST_NOT_PAID", estimate.rows["token_cost.paid"], estimate.rows["token_cost.owed"])


def weights(rows: Rows, workers: Workers, decode: Pass, idle: frozenset[Tensor]) -> Check:
    """Matrices of all layers on a rank: as the products of a pass use them, and as they lie in memory.

    Args:
        idle: tensors that no pass uses.
    """
    matrices = [
        matrix
        for matrix in workers.tensors.of_layers
        if matrix.weights != VECTORS and not idle.issuperset(matrix.tensors)
    ]
    of_product = {(matrix.of_class, matrix.layers): matrix for matrix in reversed(matrices)}
    used = [
        rows(
            f"used.{_identifier(matrix)}",
            f"{_label(matrix)}, as multiplied",
            "parameter",
            rows.added(
                f"used.{_identifier(matrix)}",
                f"{_label(matrix)}, as multiplied in a layer",
                "parameter",
                list(_multiplied(matrix, workers, decode)),
                most=7,
            )
            * matrix.layers,
        )
        for matrix in reversed(of_product.values())  # whatever data types a class is kept in
    ]
    multiplied = rows(
        "multiplied", "Matrix weights on a rank, as multiplied", "parameter", sum_range(span(used))
    )
    kept = [
        rows(
            f"held.{_identifier(matrix)}",
            f"{_label(matrix)}, as held",
            "parameter",
            matrix.parameters * matrix.layers,
        )
        for matrix in matrices
    ]
    stored = rows("held_weights", "Matrix weights on a rank, as held", "parameter", sum_range(span(kept)))
    return Check("SHARDS_DIFFER", multiplied, stored)


def _identifier(matrix: RankWeights) -> str:
    return matrix.parameters.id.removeprefix("decode.").removeprefix("tensors.")


def _label(matrix: RankWeights) -> str:
    return matrix.parameters.label.removesuffix(", decode").removesuffix(", of a layer on a rank")


def _multiplied(matrix: RankWeights, workers: Workers, decode: Pass) -> Iterator[Node]:
    """Parameters on a rank of the products in a layer that use weights of a class."""
    for block in decode.blocks:
        module = block.module
        if module is None or block.repeats is not matrix.layers:
            continue
        work = module.operation
        if module.tensors and not any(tensor.matrix for tensor in module.tensors):
            continue  # a table, such as one of embeddings
        if isinstance(work, GroupedMatMul) and matrix.of_class == "experts":
            assert workers.plan.experts is not None
            yield workers.plan.experts.per_rank * _row(block, "parameters")
        elif isinstance(work, MatMul) and work.weights == matrix.of_class:
            yield _row(block, "parameters")


def _row(block: Block, name: str) -> Named:
    """The row of a block by the last part of its id."""
    return next(row for row in block.section.figures() if row.id.endswith(f".{name}"))


def kv_cache(rows: Rows, workers: Workers) -> Check:
    """KV bytes of a token: on the ranks of an attention group, and of the model with copies of KV heads."""
    caches = [
        (cache.module, _kept_of_model(rows, cache, workers), cache.bytes_per_token)
        for cache in workers.memory.caches.growing
        if cache.module.layers is not None
    ]
    of_ranks = [
        rows(
            f"kv_of_ranks.{module.id}",
            f"{of_layer.label}, on the ranks of an attention group",
            "B/token",
            of_layer * workers.inputs.tp * _layers(module.layers),
        )
        for module, _, of_layer in caches
    ]
    left = rows("kv_of_ranks", "KV bytes of a token on all ranks", "B/token", _total(of_ranks))
    of_model = [
        rows(
            f"kv_of_model.{module.id}",
            f"{of_layer.label}, of the model with copies",
            "B/token",
            width * workers.formats.kept_bytes(module.operation) * _layers(module.layers),
        )
        for module, width, of_layer in caches
    ]
    right = rows("kv_of_model", "KV bytes of a token, with copies", "B/token", _total(of_model))
    if workers.inputs.tp_padding is not None:
        pads = workers.hardware.framework_pads
        note = "padded heads are in no model: what the ranks hold counts"
        body = where(pads > 0, maximum(left, right), right)
        right = rows("kv_padded", "KV bytes of a token, with copies and padding", "B/token", body, note)
    return Check("KV_DIFFERS", left, right, counted=next(iter(workers.ranks.counted), None))


def _layers(layers: Node | None) -> Node:
    assert layers is not None
    return layers


def _total(parts: list[Quantity]) -> Node:
    return sum_range(span(parts)) if parts else as_node(0)


def _kept_of_model(rows: Rows, cache: Cache, workers: Workers) -> Node:
    """Channels of a token on all TP ranks."""
    kept = _with_copies(cache.channels, workers)
    if cache.expanded is None:
        return kept
    as_they_are, expanded = cache.expanded
    return rows(
        f"kv_width.{cache.module.id}",
        f"Channels of {cache.module.label.lower()} that all TP ranks keep",
        "channel",
        where(as_they_are > 0, kept, _with_copies(expanded, workers)),
    )


def _with_copies(width: Node, workers: Workers) -> Node:
    """What all TP ranks hold of a dimension.

    Itself and copies of KV heads where it is split, else one each.
    """
    if workers.plan.splits_of(width):
        return substitute(width, workers.plan.copied)
    return width * workers.inputs.tp


def _tokens_of_message(rows: Rows, block: Block, workers: Workers) -> Quantity:
    return rows(
        f"tokens_{block.id}",
        f"Tokens of {block.label.lower()}, all ranks",
        "token",
        _row(block, "own_tokens") * workers.ranks.stage,
    )


# --- plan, memory and alerts of each set of workers --------------------------------------------------------


@dataclass(frozen=True)
class _Of:
    """Makes checks of one set of workers, and their sides."""

    sides: _Sides
    name: str
    workers: Workers
    ir: ModelGraph
    counted: Quantity | None

    @cached_property
    def row(self) -> Rows:
        """Makes a side."""
        return self.sides.of(self.name)

    @cached_property
    def replica(self) -> Quantity:
        """Accelerators of a replica."""
        accelerators = self.workers.ranks.replica * RANKS_TO_ACCELERATORS
        return self.row("replica", "Accelerators of a replica", "accelerator", accelerators)

    def check(self, reason: str, left: Named, right: Named) -> Check:
        """A check of these workers."""
        return Check(reason, left, right, self.name, self.counted)


def _of_workers(of: _Of) -> Iterator[Check]:
    """Whether accelerators can hold and run the model as it is spread over them."""
    yield from plan(of)
    yield from experts_and_states(of)
    yield from memory(of)
    yield from domains(of)
    yield from formats(of)


def plan(of: _Of) -> Iterator[Check]:
    """How heads, columns and ranks divide, and whether stages and replicas can be."""
    shards, hardware, fixed = of.workers.plan, of.workers.hardware, of.sides.fixed
    yield of.check("SYSTEM_MISMATCH", hardware.system_matches, fixed(1, "flag"))
    yield of.check("FRAMEWORK_UNSUPPORTED", hardware.framework_runs, fixed(1, "flag"))
    asked, none = of.workers.support, fixed(0, "flag")
    yield of.check("FRAMEWORK_CHIP", asked.chip, none)
    yield of.check("FRAMEWORK_FORMAT", asked.formats, none)
    yield of.check("FRAMEWORK_PARALLELISM", asked.ways, none)
    if asked.disaggregated is not None:
        yield of.check("FRAMEWORK_DISAGGREGATED", asked.disaggregated, none)
    no_head = fixed(0, "head")
    if shards.left.heads is not None:
        yield of.check("HEADS_NOT_DIVISIBLE", _not_padded(of, "heads", shards.left.heads), no_head)
    if shards.left.kv_heads is not None:
        yield of.check("KV_HEADS_NOT_DIVISIBLE", _not_padded(of, "kv_heads", shards.left.kv_heads), no_head)
    if shards.left.kv_ranks is not None:
        yield of.check("DCP_NOT_DIVISOR", shards.left.kv_ranks, fixed(0, "rank"))
    columns = _not_padded(of, "columns", shards.left.columns)
    yield of.check("FFN_NOT_DIVISIBLE", columns, fixed(0, "channel"))
    yield from _own_degrees(of)
    yield of.check("EP_NOT_DIVISOR", shards.left.ranks, fixed(0, "rank"))
    stages = of.row(
        "stages", "Stages", "layer", of.workers.inputs.pp * fixed(1, "layer"), "a layer for each at least"
    )
    yield of.check("PP_EXCEEDS_LAYERS", stages, of.ir.total_layers)
    reach = of.row(
        "reach",
        "Accelerators the system can join",
        "accelerator",
        hardware.system_accelerators * maximum(1, hardware.domains),
    )
    yield of.check("REPLICA_EXCEEDS_SYSTEM", of.replica, reach)
    yield of.check("NO_LINK_BETWEEN_RANKS", of.workers.network.unlinked, fixed(0, "flag"))


def _not_padded(of: _Of, name: str, left: Quantity) -> Quantity:
    """What a degree leaves over; nothing where the framework pads it: the fullest rank counts anyway."""
    padded = left * (1 - of.workers.hardware.framework_pads)
    return of.row(f"{name}_left", f"{left.label} and not padded", left.unit, padded)


def experts_and_states(of: _Of) -> Iterator[Check]:
    """What layers of experts and recurrent states allow."""
    inputs, shards, fixed = of.workers.inputs, of.workers.plan, of.sides.fixed
    operations = [module.operation for module in of.ir.modules]
    one_rank = fixed(1, "rank")
    experts = [work.count for work in operations if isinstance(work, GroupedMatMul)]
    if experts:
        assert shards.left.experts is not None
        groups = of.row(
            "expert_groups",
            "Expert-parallel groups",
            "expert",
            inputs.ep * fixed(1, "expert"),
            "an expert for each at least",
        )
        yield of.check("EP_EXCEEDS_EXPERTS", groups, experts[0])
        yield of.check("EXPERTS_UNEVEN", shards.left.experts, fixed(0, "expert"))
    else:
        yield of.check("EP_WITHOUT_EXPERTS", inputs.ep, one_rank)
    if any(isinstance(work, Recurrence) for work in operations):
        yield of.check("CP_WITH_STATE", inputs.cp, one_rank)


def memory(of: _Of) -> Iterator[Check]:
    """Efficiency factors; memory of the accelerator and of its host."""
    usage, inputs, fixed = of.workers.rows, of.workers.inputs, of.sides.fixed
    rates = of.workers.efficiency.rates
    host = of.row(
        "host_used", "Bytes on the host", "B", usage["memory.host_weights"] + usage["memory.host_kv"]
    )
    asked = of.row(
        "host_asked",
        "Memory asked of the host",
        "GB",
        sum_of(
            [
                inputs.offload_weights,
                inputs.offload_kv,
                inputs.kv_swap,
                *(() if inputs.prefix_host is None else (inputs.prefix_host,)),
            ]
        ),
    )
    possible = of.row(
        "host_possible",
        "Host link, or none needed",
        "flag",
        where(all_of(asked > 0, of.workers.efficiency["host_bytes"] <= 0), 0, 1),
    )
    yield of.check("EFFICIENCY_ABOVE_ONE", rates.largest, fixed(1, "1"))
    smallest = fixed(0.001, "1", "smallest sensible fraction")
    yield of.check("EFFICIENCY_NOT_POSITIVE", rates.smallest, smallest)
    yield of.check("OFFLOAD_WITHOUT_HOST", possible, fixed(1, "flag"))
    yield of.check("HOST_MEMORY_EXCEEDED", *_on_hosts(of))
    if inputs.prefix_disk is not None:
        yield of.check("DISK_EXCEEDED", *_on_disks(of, inputs.prefix_disk))
    yield of.check("MEMORY_EXCEEDED", usage["memory.used"], usage["memory.limit"])
    yield of.check("OFFLOADED", host, fixed(0, "B"))


def _on_hosts(of: _Of) -> tuple[Quantity, Quantity]:
    """Bytes that the ranks of a host have on it, and its memory; no bound if not known."""
    held, hardware = of.workers.rows["startup.host"], of.workers.hardware
    known = hardware.host_memory / hardware.hosts
    room = of.row("host_room", "Memory of a host", "B", where(known > 0, known, held), "if it is known")
    return held, room


def _on_disks(of: _Of, asked: Node) -> tuple[Quantity, Quantity]:
    """Bytes that the ranks of a host may keep on its disks, and these; no bound if not known."""
    workers, hardware = of.workers, of.workers.hardware
    assert hardware.disk is not None
    accelerators = minimum(workers.ranks.deployment, hardware.host_accelerators)
    held = of.row(
        "disk_held",
        "Kept on the disks of a host",
        "B",
        asked * GIGA * accelerators / RANKS_TO_ACCELERATORS,
        "by as many ranks as it has accelerators in use",
    )
    known = hardware.disk / hardware.hosts
    return held, of.row(
        "disk_room", "Room on the disks", "B", where(known > 0, known, held), "if it is known"
    )


def domains(of: _Of) -> Iterator[Check]:
    """Uneven stages, and messages that leave a domain."""
    network, one_domain = of.workers.network, of.sides.fixed(1, "domain")
    if not of.workers.inputs.devices:
        yield of.check("LAYERS_UNEVEN", of.workers.plan.left.layers, of.sides.fixed(0, "layer"))
    yield of.check("TP_CROSSES_DOMAINS", network.tp_domains, one_domain)
    yield of.check("STAGE_CROSSES_DOMAINS", network.stage_domains, one_domain)
    yield of.check("REPLICA_CROSSES_DOMAINS", of.replica, of.workers.hardware.system_accelerators)


def _own_degrees(of: _Of) -> Iterator[Check]:
    """Degrees of FFNs and of the embedding, where a scenario states them."""
    inputs, none = of.workers.inputs, of.sides.fixed(0, "flag")
    tp, ffn_tp, embedding_tp = inputs.tp, inputs.ffn_tp, inputs.embedding_tp
    if ffn_tp is not None:
        apart = absolute(ffn_tp - of.workers.ranks.stage) > 0
        bad = all_of(ffn_tp > 0, apart, remainder(tp, maximum(1, ffn_tp)) > 0)
        wrong = of.row("ffn_tp_wrong", "TP of FFNs that no ranks have", "flag", where(bad, 1, 0))
        yield of.check("FFN_TP_NOT_POSSIBLE", wrong, none)
    if embedding_tp is not None:
        bad = all_of(embedding_tp > 1, absolute(embedding_tp - tp) > 0)
        wrong = of.row("embedding_tp_wrong", "Embedding TP that no ranks have", "flag", where(bad, 1, 0))
        yield of.check("EMBEDDING_TP_NOT_POSSIBLE", wrong, none)


def formats(of: _Of) -> Iterator[Check]:
    """Whether framework and data types suit the accelerator; copies of KV heads; groups without requests."""
    dtypes, inputs, fixed = of.workers.formats, of.workers.inputs, of.sides.fixed
    yield of.check("NO_NATIVE_FORMAT", dtypes.native, fixed(1, "flag"))
    copies = of.workers.plan.kv_copies
    if copies is not None and inputs.dcp is not None:
        copies = of.row(
            "same_cache",
            "Ranks that hold the same KV cache",
            "1",
            copies / inputs.dcp,
            "those with the same heads, by ranks that divide the tokens",
        )
    if copies is not None:
        yield of.check("KV_COPIED", copies, fixed(1, "1"))
    only = of.row(
        "stored_only",
        "Weights in a native format multiplied in 16 bit",
        "flag",
        maximum(*(kind.stored_only for kind in dtypes.classes.values() if kind.stored_only is not None)),
        "wider activations leave the peak of the weights' format unused",
    )
    yield of.check("WEIGHT_ONLY_FORMAT", only, fixed(0, "flag"))
    groups = of.row(
        "request_groups",
        "Groups that share the requests",
        "request",
        inputs.dp * inputs.attention_dp * ONE_REQUEST,
    )
    yield of.check("MORE_GROUPS_THAN_REQUESTS", groups, inputs.concurrency)


# --- the workload, and results -----------------------------------------------------------------------------


def _drafts(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """What drafts is there."""
    inputs, drafts = estimate.workers[0].inputs, estimate.workers[0].speculation
    if drafts is None:
        return
    assert inputs.speculation is not None
    assert inputs.draft_parameters is not None and inputs.draft_layers is not None
    rows = sides.of()
    by_prediction = where(equal(inputs.speculation, MTP), 1, 0)
    asked = rows("asks_prediction", "Prediction layers draft", "flag", by_prediction)
    held = defined(
        "checks.holds_prediction",
        "The checkpoint holds prediction layers",
        "flag",
        1 if estimate.ir.prediction else 0,
        "of the list of tensors",
    )
    rows.add(held)
    yield Check("NO_PREDICTION_LAYER", asked, held)
    both = all_of(inputs.draft_parameters > 0, inputs.draft_layers > 0)
    stated = rows("draft_stated", "A draft model is stated", "flag", where(both, 1, 0))
    yield Check("NO_DRAFT_MODEL", drafts.by_model, stated)
    yield Check("ACCEPTANCE_UNKNOWN", drafts.unknown, sides.fixed(0, "flag"))


def _gain(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """How sure the acceptance is, and whether drafts bring anything."""
    bring, drafts = estimate.gain, estimate.workers[0].speculation
    if bring is None or drafts is None:
        return
    yield Check("ACCEPTANCE_ASSUMED", drafts.assumed, sides.fixed(0, "flag"))
    decoding = sides.of()(
        "drafted_for",
        "Requests of a replica that decode with drafts",
        "request",
        drafts.on * bring.requests,
    )
    yield Check("DRAFTS_BRING_NOTHING", decoding, bring.break_even)


def workload(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """Lengths and batching."""
    rows, fixed, inputs = sides.of(), sides.fixed, estimate.workers[0].inputs
    if "max_positions" in estimate.ir.facts:
        tokens = inputs.input_tokens + inputs.output_tokens
        length = rows("length", "Input and output tokens", "token/request", tokens)
        yield Check("CONTEXT_EXCEEDS_MODEL", length, estimate.ir.facts["max_positions"])
    if inputs.max_model_len is not None:
        yield Check("REQUEST_TOO_LONG", *_longest(rows, inputs))
    groups = rows(
        "context_groups",
        "Groups that share a prompt",
        "token/request",
        inputs.cp * fixed(1, "token/request"),
        "a token for each at least",
    )
    yield Check("CP_EXCEEDS_INPUT", groups, inputs.input_tokens)
    if "prefixes" in estimate.rows.features:
        of_classes = "class_prefixes" in estimate.rows.features
        least = estimate.rows["prefix.head_of_classes" if of_classes else "prefix.head"]
        yield Check("PREFIX_EXCEEDS_INPUT", least, inputs.input_tokens)
    yield from _drafts(sides, estimate)
    if estimate.settings is not None:
        yield Check("SETTING_UNKNOWN", estimate.settings.unknown, fixed(0, "flag"))
    if inputs.image_tokens is not None:
        yield Check("IMAGES_EXCEED_INPUT", inputs.image_tokens, inputs.input_tokens)
    useless = rows(
        "sequence_useless",
        "Sequence parallelism without TP",
        "flag",
        where(all_of(equal(inputs.sequence_parallel, ON), inputs.tp <= 1), 1, 0),
    )
    yield Check("SP_WITHOUT_TP", useless, fixed(0, "flag"))


def _longest(rows: Rows, inputs: Workload) -> tuple[Quantity, Quantity]:
    """The tokens of a request, and how many the engine takes."""
    assert inputs.max_model_len is not None
    asked = rows(
        "request", "Tokens of a request", "token/request", inputs.input_tokens + inputs.output_tokens
    )
    taken = rows(
        "longest",
        "Longest request that the engine takes",
        "token/request",
        where(inputs.max_model_len > 0, inputs.max_model_len, asked),
        "any where it is told none",
    )
    return asked, taken


def disaggregation(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """The way prefill and decode go together, where decode workers are described apart."""
    rows, none, yes = sides.of(), sides.fixed(0, "flag"), sides.fixed(1, "flag")
    first = estimate.workers[0]
    disaggregated = first.ranks.disaggregated
    if disaggregated is None:
        return
    assert estimate.handover is not None
    static = rows(
        "static_apart",
        "Static batching with workers apart",
        "flag",
        disaggregated * (1 - first.ranks.continuous),
    )
    linked = rows(
        "linked",
        "Workers reach one another",
        "flag",
        maximum(1 - disaggregated, where(estimate.handover > 0, 1, 0)),
        "by a network of both systems, or by ports of both machines",
    )
    differ = [
        rows(
            f"differs.{shared.id.removeprefix('inputs.')}",
            f"Prefill and decode differ, {shared.label}",
            "flag",
            where(equal(shared, own), 0, 1),
        )
        for shared, own in first.inputs.of_decode().items()
    ]
    differences = rows(
        "differences",
        "Differences in aggregated serving",
        "flag",
        (1 - disaggregated) * sum_range(span(differ)),
    )
    yield Check("PHASES_DIFFER", differences, none)
    yield Check("STATIC_DISAGGREGATED", static, none)
    yield Check("NO_LINK_BETWEEN_WORKERS", linked, yes)


def unlike(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """Layers and links of devices that are not alike."""
    if estimate.devices is None:
        return
    devices, base, rows = estimate.devices.devices, estimate.workers[0], sides.of()
    joined = estimate.devices.links
    lacking = rows.added("unlinked", "Links that are missing", "flag", [link.missing for link in joined])
    missing = rows("unlinked", "Links that are missing", "flag", lacking)
    inferred = rows(
        "inferred",
        "Links in use that are inferred",
        "flag",
        rows.added(
            "inferred",
            "Links in use that are inferred",
            "flag",
            [link.used * (1 - link.stated) for link in joined],
            4,
        ),
    )
    yield Check("LAYERS_ON_DEVICES", base.plan.left.layers, sides.fixed(0, "layer"))
    held = sum_of([where(device.layers > 0, sides.fixed(1, "stage"), 0) for device in devices])
    holding = rows("holding", "Devices that hold layers", "stage", held)
    yield Check("STAGES_ON_DEVICES", base.inputs.pp, holding)
    yield Check("NO_LINK_BETWEEN_DEVICES", missing, sides.fixed(0, "flag"))
    assert estimate.devices.best is not None
    allowed = rows(
        "split",
        "Shortest decode step of other splits, with what is no difference",
        "s",
        estimate.devices.best * (1 + SPLIT_MARGIN),
    )
    yield Check("SPLIT_NOT_BEST", estimate.serving.tpot_parts[0], allowed)
    yield Check("LINK_INFERRED", inferred, sides.fixed(0, "flag"))


def capacity(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """Whether what arrives can be served."""
    load = estimate.serving.load
    if load is not None:
        at_rate = sides.of()("load", "Load at the request rate", "1", load.open * load.load)
        yield Check(OVERLOADED, at_rate, sides.fixed(1, "1"))


def plausibility(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """Results against independent floors, peaks, and errors."""
    served, limit = estimate.serving, sides.fixed(1, "1")
    yield Check("TTFT_BELOW_FLOOR", served.ttft, estimate.floors.ttft)
    yield Check("TPOT_BELOW_FLOOR", served.tpot, estimate.floors.tpot)
    yield Check("TTFT_BELOW_PREFILL", served.ttft, estimate.rows["serving.prefill_through"])
    yield from throughput(sides, estimate)
    yield Check("PREFILL_MFU", estimate.prefill.mfu, limit)
    yield Check("DECODE_MFU", estimate.decode.mfu, limit)
    yield Check("PREFILL_MBU", estimate.prefill.mbu, limit)
    yield Check("DECODE_MBU", estimate.decode.mbu, limit)
    headlines = (
        served.ttft,
        served.tpot,
        served.e2e,
        estimate.rows["serving.output_tokens_per_s"],
        estimate.workers[-1].rows["memory.used"],
    )
    errors = sides.of()(
        "errors",
        "Errors among the headline results",
        "flag",
        where(is_error(reduce(mul, map(number_of, headlines))), 1, 0),
        "what is not known is a text, and none",
    )
    none = sides.fixed(0, "flag")
    yield Check("ERROR_VALUE", errors, none)
    yield Check("COST_ERROR_VALUE", estimate.rows["cost.errors"], none)


def throughput(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """Requests served per second against Little's law, batch slots, decode steps and the peak."""
    rows, found, first, last = sides.of(), estimate.rows, estimate.workers[0], estimate.workers[-1]
    yield Check("LITTLES_LAW", found["serving.law_kept"], found["serving.law_served"])
    per_second = found["serving.requests_per_s"]
    replica = per_second / last.inputs.dp
    with_slack = 1 + TOLERANCE
    in_batch = rows(
        "in_batch",
        "Requests in the batch of a replica",
        "request",
        replica * found.node("held_in_batch"),
        "none where requests arrive at a rate",
        source="Little's law",
    )
    slots = rows("slots", "Batch slots of a replica", "request", last.rows["memory.batch"] * with_slack)
    yield Check("SLOTS_EXCEEDED", in_batch, slots)
    tokens = rows(
        "decoded",
        "Tokens decoded per second by a replica",
        "token/s",
        replica * maximum(0, first.inputs.output_tokens - TOKENS_PER_STEP),
    )
    by_steps = rows(
        "by_steps",
        "Tokens of steps without prompts",
        "token/s",
        found.node("slots_in_use") * last.emitted / found.node("step_used") * with_slack,
    )
    yield Check("STEPS_EXCEEDED", tokens, by_steps)
    of_prompts = rows(
        "peak_share_prefill",
        "Share of the peak that prompts need",
        "1",
        per_second
        / first.inputs.dp
        * estimate.prefill.flops
        / (estimate.prefill.phase.requests * first.inputs.pp * estimate.prefill.peak),
    )
    of_tokens = rows(
        "peak_share_decode",
        "Share of the peak that output tokens need",
        "1",
        tokens
        * estimate.decode.flops
        / (estimate.decode.phase.tokens * last.inputs.pp * estimate.decode.peak),
    )
    busy: Node = of_prompts + of_tokens
    if first.ranks.disaggregated is not None:
        busy = where(first.ranks.disaggregated > 0, maximum(of_prompts, of_tokens), busy)
    share = rows("peak_share", "Share of the peak that served requests need", "1", busy)
    yield Check("PEAK_EXCEEDED", share, sides.fixed(1, "1"))


def alerts(sides: _Sides, estimate: Checked) -> Iterator[Check]:
    """What deserves attention in the results."""
    rows, served, floors = sides.of(), estimate.serving, estimate.floors
    usage, yes = estimate.workers[-1].rows, sides.fixed(1, "flag")
    far = sides.fixed(200 if GroupedMatMul in estimate.ir.operations() else 20, "1", "far from the floor")
    if served.load is not None:
        yield Check("SATURATED", served.load.load, sides.fixed(0.8, "1"))
    inputs = estimate.workers[0].inputs
    if served.asked_by is not None and inputs.sessions is not None and inputs.think_time is not None:
        of_sessions = rows(
            "of_sessions",
            "Requests in flight of the sessions, by the time of a request",
            "request",
            served.asked_by.found(served.e2e, inputs.think_time),
        )
        off = absolute(inputs.concurrency / of_sessions - 1)
        differ = rows(
            "sessions_differ",
            "Concurrency against those requests in flight",
            "1",
            where(inputs.sessions > 0, off, 0),
        )
        yield Check("SESSIONS_DIFFER", differ, sides.fixed(0.05, "1"))
    yield Check("KV_QUEUE", usage["memory.requests"], usage["memory.capacity_sequences"])
    if estimate.devices is None:  # else the floor is that of the best device, for all layers
        times = rows("ttft_times", "TTFT against its floor", "1", served.ttft / floors.ttft)
        yield Check("TTFT_FAR_FROM_FLOOR", times, far)
        times = rows("tpot_times", "TPOT against its floor", "1", served.tpot / floors.tpot)
        yield Check("TPOT_FAR_FROM_FLOOR", times, far)
    yield Check("PRICE_UNKNOWN", estimate.rows["cost.known"], yes)
    yield Check("PRICE_OLD", estimate.rows["cost.prices_young"], yes)
    if "prefixes" in estimate.rows.features:
        hit_rate = estimate.rows["prefix.hit_rate"]
        yield Check("PREFIXES_WITHOUT_ROOM", hit_rate, estimate.rows["prefix.asked"])
        if any(isinstance(module.operation, Recurrence) for module in estimate.ir.modules):
            yield Check("PREFIX_OF_STATES", hit_rate, sides.fixed(0, "1"))
    yield from _gain(sides, estimate)
    if estimate.settings is not None:
        yield Check("SETTING_NOT_MODELLED", estimate.settings.left_out, sides.fixed(0, "flag"))
    yield Check("POWER_UNKNOWN", estimate.rows["cost.power_known"], yes)
    unread = estimate.ir.model.architecture.unread
    if unread is not None:
        unknown = defined(
            "checks.config_unknown",
            "Fields of the config that are not known",
            "1",
            sum(why_unread(path, value) is None for path, value in unread.items()),
            "nothing was read from them",
            "as read from the config",
        )
        rows.add(unknown)
        yield Check("CONFIG_FIELDS_UNKNOWN", unknown, sides.fixed(0, "1"))
    if estimate.ir.remarks():
        remarks = defined(
            "checks.remarks",
            "Remarks on the model",
            "1",
            len(estimate.ir.remarks()),
            "steps priced as something near them, and dimensions that its class fills in",
            "as read from the code of its class",
        )
        rows.add(remarks)
        yield Check("MODEL_HAS_REMARKS", remarks, sides.fixed(0, "1"))


# --- all checks of a workbook ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What all checks of a workbook say together.

    Args:
        passed: error checks that hold, `clear` alerts that do, of each scenario; the rest is of all
            scenarios.
        error_count: error checks of all scenarios that count, and `alert_count` alerts.
        of_each: the same of each scenario, in a workbook with ready columns; `in_all` the error checks that
            hold in those that count.
        master: 1 if no error check failed in any scenario.
        headline: in words, how many checks pass; `alerts` how many alerts; `stamp` whether inputs changed;
            `inputs` which of them cannot be.
    """

    checks: tuple[Check, ...]
    unchanged: Check
    passed: Quantity
    clear: Quantity
    error_count: Named
    alert_count: Named
    of_each: tuple[Input, ...]
    in_all: Quantity | None
    master: Quantity
    headline: Quantity
    alerts: Quantity
    stamp: Quantity
    inputs: Quantity


@dataclass(frozen=True)
class Ready:
    """Columns that stand ready for a further scenario.

    Args:
        columns: which scenarios they are.
        counted: how many scenarios have a name, of all.
        named: 1 in one that was named since the file was made.
    """

    columns: range
    counted: Quantity
    named: Quantity


def verdict(
    checked: Checks,
    readable: Sequence[Check],
    others: Sequence[Faults],
    unchanged: Check,
    edited: Quantity,
    scenarios: int,
    ready: Ready | None = None,
) -> Verdict:
    """The verdict over all checks of a number of scenarios.

    Args:
        readable: that overrides and assumptions hold what can be read.
        others: cells of all scenarios that do not, and that no headline result depends on.
        unchanged: the alert that inputs changed; `edited` the first edit in words, a dash without one.
        ready: columns that stand ready for a further scenario, if there are any.
    """
    checks = (*readable, *checked.checks, unchanged)
    errors = [check for check in checks if check.error]
    alerts = [check for check in checks if not check.error]
    rows = Rows("checks")
    kinds = (("error_count", "Checks", len(errors)), ("alert_count", "Alerts", len(alerts)))
    of_each: tuple[Input, ...] = ()
    counts: list[Named]
    if ready is None:
        counts = [_count(name, label, count * scenarios) for name, label, count in kinds]
    else:
        of_each = tuple(_count(f"{name}.each", f"{label}, each", count) for name, label, count in kinds)
        counts = [
            rows(name, label, "number", each * ready.counted)
            for (name, label, _), each in zip(kinds, of_each, strict=True)
        ]
    error_count, alert_count = counts
    by_group: list[Node] = [
        sum_range(span([check.result for check in errors if check.group == group]))
        for group in dict.fromkeys(check.group for check in errors)
    ]
    passing: Node = sum_of(by_group)
    clearing: Node = sum_range(span([check.result for check in alerts]))
    if ready is not None:
        passing, clearing = where_it_counts(passing), where_it_counts(clearing)
    passed = rows("passed", "Error checks that pass", "flag", passing)
    clear = rows("clear", "Alerts that are clear", "flag", clearing)
    all_passed = sum_across(passed, scenarios, "checks that pass")
    in_all: Quantity | None = None
    if ready is not None:
        all_passed = in_all = rows("passed.all", "Error checks that pass, of all", "number", all_passed)
    all_clear = sum_across(clear, scenarios, "alerts that are clear")
    master = rows("master", "Master check", "flag", where(all_passed >= error_count, 1, 0))
    of_all = text(error_count)
    changes = if_error(sum_across(unchanged.left, scenarios, "edits of all scenarios"), 1)
    return Verdict(
        checks=checks,
        unchanged=unchanged,
        passed=passed,
        clear=clear,
        error_count=error_count,
        alert_count=alert_count,
        of_each=of_each,
        in_all=in_all,
        master=master,
        headline=rows(
            "headline",
            "Verdict",
            "1",
            where(
                master > 0,
                join("✓ ", text(all_passed), " of ", of_all, " checks pass"),
                join("✗ ", text(error_count - all_passed), " of ", of_all, " checks FAIL"),
            ),
        ),
        alerts=rows(
            "alerts",
            "Alerts",
            "1",
            join(text(alert_count - all_clear), " of ", text(alert_count), " alerts raised"),
        ),
        stamp=rows(
            "stamp",
            "As generated",
            "1",
            where(
                changes > 0,
                "changed since generation",
                "as generated",
            ),
        ),
        inputs=rows(
            "inputs",
            "Inputs that cannot be, and the first edits",
            "1",
            join(
                _invalid_inputs(checked, others, scenarios, () if ready is None else ready.columns),
                *_edited(edited, changes, scenarios, None if ready is None else ready.named),
            ),
        ),
    )


def _invalid_inputs(checked: Checks, others: Sequence[Faults], scenarios: int, ready: Container[int]) -> Node:
    """The first cell of each scenario that cannot be, and of all others, in words; or that all can be.

    Args:
        ready: scenarios that count only with a name.
    """
    kinds = (checked.faults, checked.of_money)

    def count(kind: Faults, scenario: int) -> Node:
        faults = in_scenario(kind.count, scenario)
        return faults * in_scenario(COUNTS, scenario) if scenario in ready else faults

    told = [
        (count(kind, scenario), join(f"{letter}: ", in_scenario(kind.message, scenario), ". "))
        for scenario, letter in enumerate(LETTERS[:scenarios])
        for kind in kinds
    ]
    told += [(in_scenario(of.count, 0), join(in_scenario(of.message, 0), ". ")) for of in others]
    fine = where(
        sum_of([count for count, _ in told]) > 0, "", "Every input is filled, of its type and in its range. "
    )
    return join(fine, *(where(count > 0, words, "") for count, words in told))


def _edited(edited: Quantity, changes: Node, scenarios: int, named: Quantity | None) -> Iterator[Node]:
    """The first edit of each scenario in words; or that there is none.

    Args:
        changes: inputs and headline results of all scenarios that changed: without an edit a formula or a
            figure of the library was typed over.
        named: whether a ready column was named, which is among the changes.
    """
    each = [in_scenario(edited, scenario) for scenario in range(scenarios)]
    none = [equal(words, NO_EDIT) for words in each]
    yield where(all_of(*none), "No input was edited.", "")
    if named is not None:
        new = sum_across(named, scenarios, "names of all scenarios")
        changes = changes - new
        yield where(new > 0, " A ready column was named.", "")
    yield where(all_of(*none, changes > 0), TYPED_OVER, "")
    for letter, words, is_none in zip(LETTERS, each, none, strict=False):
        yield where(is_none, "", words if scenarios == 1 else join(f"{letter}: ", words))


def _count(name: str, label: str, count: int) -> Input:
    return Input(f"checks.{name}", label, "number", count, shared=True, fixed=True)
