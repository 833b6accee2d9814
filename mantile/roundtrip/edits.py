"""What was typed into a workbook, as the scenario that it now stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.alternative import ACCELERATOR, PRICE
from mantile.equations.capacity import PROFILE
from mantile.equations.decide import LIMIT, OBJECTIVE, ONE, OTHER, TAKE, WEIGHT, in_si, key_of_choice
from mantile.equations.graph import PROFILED
from mantile.equations.measures import measure
from mantile.equations.override import OVERRIDE
from mantile.estimates.points import grid
from mantile.graph.quantity import Input
from mantile.library.columns import columns
from mantile.library.device import of_device
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.scenario import Scenario, apply_model_overrides, parse_scenario, with_device_field
from mantile.library.scenario_fields import WORKER_FIELDS
from mantile.roundtrip.added_columns import added_columns
from mantile.roundtrip.override_reasons import typed_reasons
from mantile.workbook.book import FIRST, SHARED
from mantile.workbook.cell_diff import is_formula
from mantile.workbook.read import File, followed_inputs, place_of, same, typed_inputs
from mantile.workbook.sheets.sensitivity import input_of

_ROUNDS = 3  # a field that is set may change what others are by default


@dataclass(frozen=True)
class Edits:
    """What a workbook stands for now.

    Args:
        scenario: with every edit.
        changes: the inputs that were edited, as `typed_inputs` lists them, columns that were added included.
        added: names of the scenarios in columns that were added.
        named: names that were typed over ready columns.
        reasons: cells in which somebody typed why a figure is overridden, of overrides that there are.
        left: edits of ready columns without a name, which do not count.
    """

    scenario: Scenario
    changes: tuple[dict[str, Any], ...]
    added: tuple[str, ...]
    named: tuple[str, ...]
    reasons: frozenset[str]
    left: tuple[dict[str, Any], ...]


def edited(file: File) -> Edits:
    """The scenario with every edit of a workbook. Formulas are not looked at.

    Raises:
        InputError: naming the cell, for an edit that neither can hold.
    """
    estimate = file.book.estimate
    values, changes = typed_inputs(file)
    if file.other_version:
        values = followed_inputs(file, values, changes)
    typed, points = values[: file.book.columns], values[file.book.columns :]
    added = added_columns(file, typed)
    numbers = [number for number in range(file.book.columns) if number not in file.unnamed]
    typed = [typed[number] for number in numbers] + [column.values for column in added]
    changes, left = _that_count(changes, file)
    changes += [edit for column in added for edit in column.edits]
    _require_possible(changes, file)
    numbers += range(file.book.columns, file.book.columns + len(added))
    data = estimate.scenario.model_dump(mode="json", exclude_defaults=True)
    _of_sheets(data, [edit for edit in changes if edit["id"] in file.book.own_inputs], points, file)
    named = tuple(file.scenario_name(number) for number in numbers if number in file.book.ready)
    new = [*named, *(column.name for column in added)]
    if new:
        data["variants"] = [*data.get("variants", []), *({"name": name} for name in new)]
    data["ready_columns"] = len(file.unnamed)
    _shared(data, changes, file)
    _cases(data, typed, numbers, file)
    changes += _of_library(data, file)
    reasons = _reasons(data, numbers, file)
    return Edits(
        scenario=parse_scenario(data, str(file.path)),
        changes=tuple(changes),
        added=tuple(column.name for column in added),
        named=named,
        reasons=reasons,
        left=tuple(left),
    )


def _that_count(
    edits: Sequence[dict[str, Any]], file: File
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Edits that count, and those of ready columns without a name."""
    cells = {
        file.cell_name(*place)
        for (_, number), place in file.book.input_cells.items()
        if number in file.unnamed and place[2] == FIRST + number
    }
    return [edit for edit in edits if edit["cell"] not in cells], [
        edit for edit in edits if edit["cell"] in cells
    ]


def _of_library(data: dict[str, Any], file: File) -> Iterator[dict[str, Any]]:
    """Figures of the library that were typed over in a file of another version, as overrides.

    Raises:
        InputError: for one that is not in use in all scenarios: no override says it.
    """
    equations = file.book.estimate.equations
    chips = {column.values.get("accelerator") for column in file.book.estimate.columns}
    figures = equations.figures if file.other_version else {}
    for (sheet, row), entry in file.places.file_ids.items():
        figure, found = figures.get(entry.id), file.contents[sheet].get((row, SHARED))
        stated = isinstance(figure, Input) and figure.fixed and entry.id.startswith(PROFILED)
        if not isinstance(figure, Input) or not stated or entry.linked or same(figure.value, found):
            continue
        thing, _, fact = entry.id.rpartition(".")
        override, cell = f"hardware.{fact}", place_of(sheet, row, SHARED)
        if chips != {thing.removeprefix("library.")} or override not in equations.overridable:
            raise InputError(
                f"{file.path}: {cell} ({entry.id}): holds {str(found)!r:.60} instead of {figure.value!r}; a "
                "figure of the library that not all scenarios use cannot be carried over: set it back, and "
                "type it into the override cell of the figure in use"
            )
        data["overrides"] = _with(data.get("overrides", []), override, found, file.path.name)
        yield {
            "id": f"{override}{OVERRIDE}",
            "cell": cell,
            "scenario": file.scenario_name(0),
            "generated": figure.value,
            "found": found,
        }


def _reasons(data: dict[str, Any], numbers: Sequence[int], file: File) -> frozenset[str]:
    """Give every override the reason that was typed beside it; the cells of those reasons.

    Args:
        numbers: of the columns of the file, for the base and each variant.
    """
    typed = typed_reasons(file)
    cells: set[str] = set()
    for number, case in zip(numbers, (data, *data.get("variants", [])), strict=True):
        for override in case.get("overrides", []):
            reason = typed.get(override["id"])
            if reason is not None and reason.of(number):
                override["reason"] = reason.of(number)
                cells.add(reason.cell)
    return frozenset(cells)


def _shared(data: dict[str, Any], changes: Sequence[dict[str, Any]], file: File) -> None:
    """Figures that all scenarios share as overrides of the base."""
    inputs = {figure.id: figure for figure in file.book.estimate.equations.all_inputs()}
    shared = [edit for edit in changes if edit["id"] in inputs and inputs[edit["id"]].shared]
    for edit in shared:
        data["overrides"] = _with(data.get("overrides", []), edit["id"], edit["found"], file.path.name)
    _require_model(data, [edit for edit in shared if edit["id"].startswith("model.")], file)


def _cases(
    data: dict[str, Any],
    typed: Sequence[Mapping[str, Any]],
    numbers: Sequence[int],
    file: File,
) -> None:
    """What is typed in the column of each scenario, as fields of the base and its variants.

    Args:
        typed: inputs of the base and each variant; `numbers` of their columns in the file.
    """
    estimate = file.book.estimate
    base: dict[str, float] = {}
    cases: list[dict[str, Any]] = [data, *data.get("variants", [])]
    for number, case in enumerate(cases):
        stated = number < len(file.book.asked.columns)  # any other follows the base as it is now
        generated = estimate.inputs(number) if stated else typed[0]
        _overrides(case, base if number else {}, typed[number], generated, file)
        if number == 0:
            base = {item["id"]: item["value"] for item in case.get("overrides", [])}
        measured = {
            field: typed[number].get(figure.id) for field, figure in estimate.equations.measured.items()
        }
        case["measured"] = {field: value for field, value in measured.items() if value}  # 0: nothing measured
        _fields(case, data, number, typed[number], _own(file, numbers[number], typed[number]), file)


def _of_sheets(
    data: dict[str, Any], edits: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]], file: File
) -> None:
    """What is typed on What-if, as fields of the scenario."""
    ranges = {input_of(edit["id"]): int(edit["found"]) for edit in edits if input_of(edit["id"])}
    if ranges:
        data["sensitivity"] = data.get("sensitivity", {}) | ranges
    if any(edit["id"] in (ACCELERATOR, PRICE) for edit in edits):
        other = next(point for point in points if ACCELERATOR in point)
        data["alternative"] = {"accelerator": other[ACCELERATOR], "usd_per_hour": other[PRICE]}
    _of_decision(data, [edit for edit in edits if edit["id"].startswith("decide.")], file)
    for edit in edits:
        if edit["id"] == PROFILE:
            data["capacity"] = data["capacity"] | {"profile": edit["found"]}
    typed = [edit for edit in edits if edit["id"].startswith("sweep.inputs.")]
    if not typed:
        return
    figures = {field: file.book.own_inputs[f"sweep.inputs.{field}"] for field in data["sweep"]}
    typed_points = [
        {
            field: int(point[figure.id]) if figure.integer else point[figure.id]
            for field, figure in figures.items()
        }
        for point in points
        if all(figure.id in point for figure in figures.values())
    ]
    values = {field: list(dict.fromkeys(point[field] for point in typed_points)) for field in figures}
    if len(figures) == 1:
        values = {field: [point[field] for point in typed_points] for field in figures}
    elif typed_points != grid(values):
        raise InputError(
            f"{file.path}: {typed[0]['cell']} ({typed[0]['id']}): holds {typed[0]['found']}; points of two "
            "inputs are all combinations of their values: change the value wherever it stands"
        )
    data["sweep"] = values


def _of_decision(data: dict[str, Any], edits: Sequence[Mapping[str, Any]], file: File) -> None:
    """What is typed for the decision, as that of the scenario."""
    if not edits:
        return
    decision = data["decision"]
    limits = {limit["measure"]: limit["bound"] for limit in decision.get("limits", [])}
    limits = {measure(name, "decision").key: bound for name, bound in limits.items()}
    weights = dict(decision.get("weights", {}))
    for edit in edits:
        identifier, found = edit["id"], edit["found"]
        if identifier == OBJECTIVE:
            decision["objective"] = key_of_choice(found, file.book.currency)
        elif identifier == TAKE:
            decision["take"] = int(found)
        elif identifier in (ONE, OTHER):
            one, other = decision.get("pair") or (1, 2)
            decision["pair"] = (int(found), other) if identifier == ONE else (one, int(found))
        elif identifier.startswith(LIMIT):
            of = measure(identifier.removeprefix(LIMIT), "decision")
            limits.pop(of.key, None)
            if found:
                graph = file.book.estimate.equations
                limits[of.key] = in_si(graph, of, float(found), file.book.currency)
        else:
            key = identifier.removeprefix(WEIGHT)
            weights.pop(key, None)
            weights |= {key: float(found)} if found else {}
    decision["limits"] = [{"measure": key, "bound": bound} for key, bound in limits.items()]
    decision["weights"] = weights


def _require_possible(changes: Sequence[Mapping[str, Any]], file: File) -> None:
    """Refuse numbers outside the range that the cell's own validation allows.

    Other programs do not keep to it.
    """
    for edit in changes:
        value = edit["found"]
        wrong = file.inputs[edit["id"]].outside(value) if isinstance(value, int | float) else ""
        if wrong:
            raise InputError(f"{file.path}: {edit['cell']} ({edit['id']}): holds {value:g}; expected {wrong}")


def _require_model(data: Mapping[str, Any], edits: Sequence[Mapping[str, Any]], file: File) -> None:
    """Refuse facts that no model can have together."""
    if not edits:
        return
    cells = ", ".join(f"{edit['cell']} ({edit['id']})" for edit in edits)
    overrides = parse_scenario({**data, "variants": [], "decision": None}, str(file.path)).overrides
    apply_model_overrides(file.book.estimate.model, overrides, f"{file.path}: {cells}")


def _own(file: File, number: int, typed: Mapping[str, Any]) -> set[str]:
    """Ids of inputs that a column states itself, though it may be what it would follow: cells with a formula
    that were typed over.
    """
    book = file.book
    return {
        identifier
        for (identifier, of), (sheet, row, column) in book.input_cells.items()
        if of == number
        and identifier in typed
        and book.sheets[sheet].cells[row, column].follows is not None
        and not is_formula(file.content(sheet, row, column))
        and not file.lacks((sheet, row, column))
    }


def _with(overrides: list[dict[str, Any]], identifier: str, value: Any, name: str) -> list[dict[str, Any]]:
    kept = [item for item in overrides if item["id"] != identifier]
    return [*kept, {"id": identifier, "value": value, "reason": f"typed into {name}"[:120]}]


def _overrides(
    case: dict[str, Any],
    base: Mapping[str, float],
    typed: Mapping[str, Any],
    generated: Mapping[str, Any],
    file: File,
) -> None:
    """Override cells of a column. Those of the base hold for a variant unless it says otherwise."""
    mine = list(case.get("overrides", []))
    without = [
        identifier
        for identifier in case.get("without", [])
        if identifier in base or identifier.startswith("inputs.")
    ]
    for identifier, value in typed.items():
        name = identifier.removesuffix(OVERRIDE)
        if name == identifier or identifier in file.book.own_inputs or file.inputs[identifier].shared:
            continue
        if value is None:
            mine = [item for item in mine if item["id"] != name]
            without += [name] if name in base and name not in without else []
        elif not same(value, generated.get(identifier)) or (
            name not in {item["id"] for item in mine} and not same(base.get(name), value)
        ):
            mine = _with(mine, name, value, file.path.name)
    case["overrides"], case["without"] = mine, without


def _fields(
    case: dict[str, Any],
    data: dict[str, Any],
    number: int,
    typed: Mapping[str, Any],
    own: set[str],
    file: File,
) -> None:
    """Fields of a column, until the scenario says of it what the cells say.

    Args:
        own: ids of inputs that it states itself, whatever they are.
    """
    estimate = file.book.estimate
    named = estimate.equations.inputs.named()
    wrong = {field: typed[figure.id] for field, figure in named.items() if figure.id in own}
    values = estimate.program.run(typed)
    made = estimate.inputs(min(number, len(estimate.columns) - 1))
    unsaid = {"as_of": made.get(named["as_of"].id, named["as_of"].value)}  # the day of the workbook
    for _ in range(_ROUNDS):
        for field, value in wrong.items():
            figure = named[field]
            typed_value = int(value) if figure.integer else value
            if figure is estimate.equations.inputs.concurrency and figure.id not in typed:
                case["without"] = [*case.get("without", []), figure.id]  # the base states it, this follows
            elif of_device(field) is not None:
                listed = case.get("devices") or data.get("devices") or ()
                case["devices"] = with_device_field(listed, field, typed_value, str(file.path))
            elif field.startswith(DECODE) and field.removeprefix(DECODE) in WORKER_FIELDS:
                case["decode"] = (case.get("decode") or {}) | {field.removeprefix(DECODE): typed_value}
                case.setdefault("serving", typed["inputs.serving"])
            else:
                case[field] = typed_value
        scenario = parse_scenario(data, str(file.path))
        column = columns(scenario, estimate.model, estimate.library, str(file.path))[number]
        wrong = {
            field: typed.get(figure.id, values[figure])
            for field, figure in named.items()
            if (field in column.values or figure.id in typed)
            and not same(column.values.get(field, unsaid.get(field)), typed.get(figure.id, values[figure]))
        }
        if not wrong:
            return
    raise AssertionError(f"{file.path}: scenario {number} cannot be said in fields: {wrong}")
