"""The checks of an estimate and the verdict: what they are stands in check.eq, their sides in checks.eq.

Beside them stands what follows from the architecture: matrices, caches, kinds of layers, pools, devices.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mantile.equations.devices import Devices
from mantile.equations.display import LETTERS, in_scenario, sum_across
from mantile.equations.forward import Pass
from mantile.equations.inputs import Workload
from mantile.equations.kv_cache import channels_of, expanded
from mantile.equations.ready_columns import COUNTS, where_it_counts
from mantile.equations.reasons import INPUTS, PLAN, REASONS, Reason
from mantile.equations.roofline import Block
from mantile.equations.tables import Equations, Space
from mantile.equations.tensors import VECTORS, RankWeights
from mantile.equations.typed import Faults
from mantile.equations.workers import DECODE, Workers
from mantile.graph.quantity import (
    Apply,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    all_of,
    ancestors,
    defined,
    equal,
    if_error,
    join,
    span,
    substitute,
    sum_of,
    sum_range,
    text,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Module
from mantile.library.architecture import NOT_RUN
from mantile.library.huggingface.unread import why_unread

TOLERANCE = defined("checks.tolerance", "Tolerance", "1", 1e-9, "relative difference that rounding may leave")
OVERLOADED = "OVERLOADED"
NO_EDIT = "–"
TYPED_OVER = " Results changed all the same: a formula or a library figure was typed over (mantile verify)."
FITS, WITH_OFFLOAD, INSUFFICIENT, INVALID = "fits", "fits_with_offload", "insufficient_memory", "invalid"
Rule = Literal["exactly", "within", "at most", "at least"]
_RULES: dict[str, Rule] = {"equal": "exactly", "less_equal": "at most", "greater_equal": "at least"}
_OF_VERDICT = "ERROR_VALUE"
_SIDES = "Sides of checks", "worked out for the checks on Audit only"


@dataclass(frozen=True)
class Check:
    """A line of check.eq as it is worked out.

    Args:
        result: 1 if it holds, 0 if not or if either side is an error.
        of: the workers it is of: "decode", or nothing.
    """

    result: Quantity
    of: str = ""

    @property
    def code(self) -> str:
        """The reason code."""
        return self.result.id.removeprefix("check.")

    @property
    def reason(self) -> str:
        """The code without that of workers before it."""
        return self.code.removeprefix(f"{self.of.upper()}_")

    @property
    def label(self) -> str:
        """What holds."""
        return self.result.label

    @property
    def group(self) -> str:
        """The group it belongs to."""
        return REASONS[self.reason].group

    @property
    def error(self) -> bool:
        """Whether the workbook fails where it does not hold; otherwise it is an alert."""
        return REASONS[self.reason].error

    @cached_property
    def _comparison(self) -> Apply:
        """What is asked: if_error(where(left <= right, 1, 0), 0); of devices that hold something."""
        held = self.result.body
        assert isinstance(held, Apply)
        if held.operation == "maximum":
            held = held.arguments[0]
        asked = held.arguments[0].arguments[0]  # type: ignore[attr-defined]
        assert isinstance(asked, Apply)
        return asked

    @cached_property
    def _sides(self) -> tuple[Node, ...]:
        left, right = self._comparison.arguments
        if isinstance(left, Apply):  # up to rounding: the size of their difference
            (difference,) = left.arguments
            assert isinstance(difference, Apply)
            return difference.arguments
        return left, right

    @property
    def left(self) -> Named:
        """The left side."""
        left = self._sides[0]
        assert isinstance(left, Input | Quantity)
        return left

    @property
    def right(self) -> Named:
        """The right side."""
        right = self._sides[1]
        assert isinstance(right, Input | Quantity)
        return right

    @property
    def rule(self) -> Rule:
        """How the left side must stand to the right one; within: up to rounding."""
        if isinstance(self._comparison.arguments[0], Apply):
            return "within"
        return _RULES[self._comparison.operation]

    @cached_property
    def difference(self) -> Quantity:
        """How far the left side is above the right one."""
        label = f"{self.label}, difference"
        return Quantity(f"{self.result.id}.difference", label, self.left.unit, self.left - self.right)


@dataclass(frozen=True)
class Checks:
    """All standing checks, the rows that only they need, and the verdict on the plan.

    Args:
        codes: of the plan checks, in their order.
        labels: what holds where these do, and last where the plan has the memory.
        faults: how many cells hold what cannot be, without which there is no plan; `of_money` without which
            nobody knows what it costs.
        state: feasibility, or that a plan that can be is overloaded.
        load: requests that arrive over those that can be served; None in a workbook without a request rate.
    """

    checks: tuple[Check, ...]
    codes: tuple[Input, ...]
    labels: tuple[Input, ...]
    faults: Faults
    of_money: Faults
    state: Quantity
    load: Quantity | None
    section: Section


@dataclass(frozen=True)
class Checked:
    """What the checks follow from of the architecture.

    Args:
        workers: those that do everything, or prefill and decode workers.
        pools: all accelerators that may differ: these workers, or devices that are not alike.
        devices: the devices; None where accelerators are alike.
    """

    ir: ModelGraph
    workers: tuple[Workers, ...]
    pools: tuple[Workers, ...]
    devices: Devices | None
    decode: Pass


# --- where their rows are made -----------------------------------------------------------------------------


def make_sides(rows: Equations, estimate: Checked) -> None:
    """Make what checks need known, and the spaces of their rows."""
    ir, parts = estimate.ir, _Parts()
    rows.know(*_read_of(ir))
    rows.make_in("checked pool", *_pools(estimate))
    rows.make_in("input of decode", *_inputs_of_decode(estimate.workers[0].inputs))
    _make_model(rows, estimate, parts)
    if estimate.devices is not None:
        rows.make_in("group of devices", _of_devices(estimate.devices, parts))
    rows.make_in("part of a sum", *parts.spaces)


class _Parts:
    """Sums of figures that stand apart: of many by sums of some, which are rows of their own."""

    def __init__(self) -> None:
        self.spaces: list[Space] = []

    def added(self, name: str, label: str, unit: str, terms: Sequence[str], most: int) -> str:
        """The sum as text; a formula adds at most so many."""
        if len(terms) <= most:
            return " + ".join(terms)
        some = [terms[start : start + most] for start in range(0, len(terms), most)]
        facts = {"sum": name, "label": label, "unit": unit}
        self.spaces += (
            Space(facts=facts | {"number": str(number), "terms": " + ".join(members)})
            for number, members in enumerate(some, start=1)
        )
        return " + ".join(f"checks.{name}.{number}" for number in range(1, len(some) + 1))


def _pools(estimate: Checked) -> Iterator[Space]:
    """A space for the checks of each set of accelerators."""
    counted = estimate.workers[0].ranks.counted
    for number, pool in enumerate(estimate.pools, start=1):
        name, within, inputs, held = "", "", "", "holds(comparison)"
        if counted:
            name, within = f"device{number}", f"devices.{number}."
            inputs = f"inputs.device{number}_" if number > 1 else ""
            held = f"max(holds(comparison), where({_id(counted[number - 1])} > 0, 0, 1))"
        elif number > 1:
            name, within, inputs = "decode", DECODE, "inputs.decode_"
        copies = "" if pool.plan.kv_copies is None else pool.plan.kv_copies.id
        of = f"{name}." if name else ""
        facts = {
            "of": of,
            "OF": f"{name.upper()}_" if name else "",
            "held": held,
            "pads": "hardware.framework_pads" if pool.inputs.tp_padding is None else "hardware.padding",
            "copies": copies,
            "same_cache": copies if pool.inputs.dcp is None else f"checks.{of}same_cache",
        }
        yield Space("", f", {name}" if name else "", inputs, facts, within=within)


def _inputs_of_decode(inputs: Workload) -> Iterator[Space]:
    for shared, own in inputs.of_decode().items():
        name = shared.id.removeprefix("inputs.")
        yield Space(facts={"name": name, "label": shared.label, "shared": shared.id, "own": own.id})


def _of_devices(devices: Devices, parts: _Parts) -> Space:
    links, words = devices.links, ("unlinked", "Links that are missing", "flag")
    used = [f"{link.home}.used * (1 - {link.home}.stated)" for link in links]
    stages = [f"where({_id(device.layers)} > 0, checks.fixed.stage.1, 0)" for device in devices.devices]
    return Space(
        facts={
            "missing": parts.added(*words, [f"{link.home}.missing" for link in links], 8),
            "inferred": parts.added("inferred", "Links in use that are inferred", "flag", used, 4),
            "holding": " + ".join(stages),
        }
    )


def _read_of(ir: ModelGraph) -> Iterator[Input]:
    """What was read of a model."""
    for_drafts = 1 if ir.prediction else 0
    words = "The checkpoint holds prediction layers"
    yield defined("checks.holds_prediction", words, "flag", for_drafts, "of the list of tensors")
    unread = ir.model.architecture.unread
    yield defined(
        "checks.config_unknown",
        "Fields of the config that are not known",
        "1",
        sum(why_unread(path, value) is None for path, value in (unread or {}).items()),
        "nothing was read from them",
        "as read from the config",
    )
    yield defined(
        "checks.remarks",
        "Remarks on the model",
        "1",
        len(ir.remarks()),
        "steps priced as something near them, and dimensions that its class fills in",
        "as read from the code of its class",
    )


# --- weights, KV cache and layers on the ranks -------------------------------------------------------------


def _make_model(rows: Equations, estimate: Checked, parts: _Parts) -> None:
    """What must add up on the workers that decode: matrices, caches and layers, a space each."""
    workers, ir = estimate.workers[-1], estimate.ir
    idle = frozenset(tensor for module in ir.modules if module.step == NOT_RUN for tensor in module.tensors)
    matrices = [
        matrix
        for matrix in workers.tensors.of_layers
        if matrix.weights != VECTORS and not idle.issuperset(matrix.tensors)
    ]
    of_product = {(matrix.of_class, matrix.layers): matrix for matrix in reversed(matrices)}
    used = [_facts(matrix) for matrix in reversed(of_product.values())]  # whatever data types it is kept in
    for facts, matrix in zip(used, reversed(of_product.values()), strict=True):
        label, terms = (
            f"{facts['title']}, as multiplied in a layer",
            list(_multiplied(matrix, workers, estimate.decode)),
        )
        facts["products"] = parts.added(f"used.{facts['name']}", label, "parameter", terms, 7)
    held = [_facts(matrix) for matrix in matrices]
    rows.make_in("multiplied matrix", *(Space(facts=facts) for facts in used))
    rows.make_in("held matrix", *(Space(facts=facts) for facts in held))
    caches = workers.memory.caches
    rows.make_in("checked cache", *(Space(facts=_of_cache(rows, module, workers)) for module in caches))
    latents = [module for module in caches if expanded(rows.features, module) is not None]
    rows.make_in("expanded cache", *(Space(facts=_expanded(rows, module, workers)) for module in latents))
    kinds = {kind.count.id.removeprefix("model."): kind for kind in ir.layers}
    stages = {name: span(workers.plan.stages.layers[kind.count]).members for name, kind in kinds.items()}
    rows.make_in(
        "kind of layers",
        *(
            Space(facts={"name": name, "kind": kind.name, "stages": ", ".join(_ids(stages[name]))})
            for name, kind in kinds.items()
        ),
    )


def _name(identifier: str) -> str:
    """An id as expressions have it."""
    return identifier if identifier.replace(".", "_").isidentifier() else f"`{identifier}`"


def _ids(figures: Iterable[Named]) -> Iterator[str]:
    return (_name(figure.id) for figure in figures)


def _id(node: Node | None) -> str:
    assert isinstance(node, Input | Quantity)
    return _name(node.id)


def _facts(matrix: RankWeights) -> dict[str, str]:
    figure = matrix.parameters
    return {
        "name": figure.id.removeprefix(DECODE).removeprefix("tensors."),
        "title": figure.label.removesuffix(", decode").removesuffix(", of a layer on a rank"),
        "parameters": _id(figure),
        "layers": _id(matrix.layers),
    }


def _multiplied(matrix: RankWeights, workers: Workers, decode: Pass) -> Iterator[str]:
    """Parameters on a rank of the products in a layer that use weights of a class."""
    for block in decode.blocks:
        module = block.module
        if module is None or block.repeats is not matrix.layers:
            continue
        work = module.operation
        if module.tensors and not any(tensor.matrix for tensor in module.tensors):
            continue  # a table, such as one of embeddings
        if isinstance(work, GroupedMatMul) and matrix.of_class == "experts":
            yield f"{workers.rows['plan.experts'].id} * {_parameters(block)}"
        elif isinstance(work, MatMul) and work.weights == matrix.of_class:
            yield _parameters(block)


def _parameters(block: Block) -> str:
    return _id(next(row for row in block.section.figures() if row.id.endswith(".parameters")))


def _of_cache(rows: Equations, module: Module, workers: Workers) -> dict[str, str]:
    """A cache that grows with a request: on the ranks of an attention group, and of the model with copies."""
    width, size = f"checks.kv_width.{module.id}", workers.rows[f"memory.kv_bytes_per_token.{module.id}"]
    if expanded(rows.features, module) is None:
        rows.know_as(width, _with_copies(channels_of(module), workers))
    kept = f"kept_bytes.{module.id}"
    rows.know_as(kept, workers.formats.kept_bytes(module.operation))
    return {
        "name": module.id,
        "label": size.label,
        "bytes": size.id,
        "tp": workers.inputs.tp.id,
        "layers": _id(module.layers),
        "width": _name(width),
        "kept_bytes": _name(kept),
    }


def _expanded(rows: Equations, module: Module, workers: Workers) -> dict[str, str]:
    """Latents that a framework keeps as they are, or expanded to heads."""
    heads = expanded(rows.features, module)
    assert heads is not None
    latent = {"latent": channels_of(module), "expanded": heads}
    names = {name: f"{name}_width.{module.id}" for name in latent} | {
        "as_they_are": f"as_they_are.{module.id}"
    }
    for name, width in latent.items():
        rows.know_as(names[name], _with_copies(width, workers))
    rows.know_as(names["as_they_are"], workers.rows["memory.latents_saved"])
    return {name: _name(known) for name, known in names.items()} | {
        "name": module.id,
        "of": module.label.lower(),
    }


def _with_copies(width: Node, workers: Workers) -> Node:
    """What all TP ranks hold of a dimension.

    Itself and copies of KV heads where it is split, else one each.
    """
    if workers.plan.splits_of(width):
        return substitute(width, workers.plan.copied)
    ranks: Node = workers.inputs.tp
    return width * ranks


# --- the checks and the verdict ----------------------------------------------------------------------------


def standing(rows: Equations) -> tuple[Check, ...]:
    """The checks of one scenario but for those of what is typed into cells, and of the verdict."""
    return tuple(_checks(rows, lambda reason: reason.group != INPUTS and reason.code != _OF_VERDICT))


def _checks(rows: Equations, asked: Callable[[Reason], bool] = lambda reason: True) -> Iterator[Check]:
    for _, space, identifier in rows.places("check"):
        of = space.facts.get("of", "").removesuffix(".")
        code = identifier.removeprefix("check.").removeprefix(space.facts.get("OF", ""))
        if asked(REASONS[code]):
            yield Check(rows[identifier], of)


def checks(rows: Equations, found: Sequence[Check]) -> Checks:
    """All checks of one scenario, and the verdict."""
    plan = [check for check in found if check.group == PLAN]
    memory = [check for check in found if check.reason == "MEMORY_EXCEEDED"]
    codes = tuple(_word("code", "Code", check, check.code) for check in plan)
    labels = tuple(_word("label", "Check", check, check.label) for check in (*plan, memory[0]))
    count = defined("checks.plan_checks", "Number of plan checks", "flag", len(plan), "fixed side of a check")
    rows.know(*codes, *labels, count)
    for name, figures in (
        ("checks_of_plan", [check.result for check in plan]),
        ("plan_codes", codes),
        ("plan_labels", labels[:-1]),
    ):
        rows.know_as(name, span(figures))
    rows.know_as("memory_label", labels[-1])
    every = tuple(_checks(rows))
    served = "checks.state" in rows
    verdict = rows.of("checks")
    words = ("state" if served else "feasibility", "reason", "broken", "message.money", "payable")
    needed = set(ancestors(*(check.result for check in every), *(verdict[name] for name in words)))
    sides = (row for section in rows.sections("checks") for row in section.figures())
    return Checks(
        checks=every,
        codes=codes,
        labels=labels,
        faults=Faults(rows["checks.faults"], rows["checks.message"]),
        of_money=Faults(rows["checks.faults.money"], rows["checks.message.money"]),
        state=rows[f"checks.{words[0]}"],
        load=rows["checks.load"] if served else None,
        section=Section(_SIDES[0], tuple(row for row in sides if row in needed), _SIDES[1]),
    )


def _word(kind: str, label: str, check: Check, value: str) -> Input:
    identifier, called = f"checks.{kind}.{check.code}", f"{label.lower()}s"
    return Input(identifier, label, "1", value, shared=True, fixed=True, name=called)


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
    filled = "Each input of the scenarios is filled, of its type and in its range. "
    fine = where(sum_of([count for count, _ in told]) > 0, "", filled)
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
    yield where(all_of(*none), "No input of a scenario was edited.", "")
    if named is not None:
        new = sum_across(named, scenarios, "names of all scenarios")
        changes = changes - new
        yield where(new > 0, " A ready column was named.", "")
    yield where(all_of(*none, changes > 0), TYPED_OVER, "")
    for letter, words, is_none in zip(LETTERS, each, none, strict=False):
        yield where(is_none, "", words if scenarios == 1 else join(f"{letter}: ", words))


def _count(name: str, label: str, count: int) -> Input:
    return Input(f"checks.{name}", label, "number", count, shared=True, fixed=True)
