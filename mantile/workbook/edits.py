"""What was typed into a workbook, as the scenario and the library that it now stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.equations.workload import DECODE
from mantile.graph.quantity import Input
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.profiles import Accelerator, Library, Prices, System
from mantile.library.scenario import APART, Scenario, columns, parse_scenario
from mantile.workbook.read import File, same, typed_inputs

_ROUNDS = 3  # a field that is set may change what others are by default


def edited(file: File) -> tuple[Scenario, Library]:
    """The scenario and the library with every edit of a workbook.

    Raises:
        InputError: naming the cell, for an edit that neither can hold.
    """
    estimate = file.book.estimate
    typed, edits = typed_inputs(file)
    data = estimate.scenario.model_dump(mode="json", exclude_defaults=True)
    cases: list[dict[str, Any]] = [data, *data.get("variants", [])]
    inputs = {figure.id: figure for figure in estimate.equations.all_inputs()}
    shared = [edit for edit in edits if inputs[edit["id"]].shared]
    for edit in shared:
        if edit["id"].startswith("model."):
            data["overrides"] = _with(data.get("overrides", []), edit["id"], edit["found"], file.path.name)
    library = _library(estimate.library, [edit for edit in shared if not edit["id"].startswith("model.")], file)
    base: dict[str, float] = {}
    for number, case in enumerate(cases):
        _overrides(case, base if number else {}, typed[number], estimate.inputs(number), inputs, file)
        if number == 0:
            base = {item["id"]: item["value"] for item in case.get("overrides", [])}
        measured = {field: typed[number].get(figure.id) for field, figure in estimate.equations.measured.values.items()}
        case["measured"] = {field: value for field, value in measured.items() if value}  # 0 stands for nothing measured
        _fields(case, data, number, typed[number], file, library)
    return parse_scenario(data, str(file.path)), library


def _with(overrides: list[dict[str, Any]], identifier: str, value: Any, name: str) -> list[dict[str, Any]]:
    kept = [item for item in overrides if item["id"] != identifier]
    return [*kept, {"id": identifier, "value": value, "reason": f"typed into {name}"[:120]}]


def _overrides(case: dict[str, Any], base: Mapping[str, float], typed: Mapping[str, Any], generated: Mapping[str, Any], inputs: Mapping[str, Input],
               file: File) -> None:  # fmt: skip
    """Override cells of a column. Those of the base hold for a variant unless it says otherwise."""
    mine = list(case.get("overrides", []))
    without = [identifier for identifier in case.get("without", []) if identifier in base]
    for identifier, value in typed.items():
        name = identifier.removesuffix(".override")
        if name == identifier or inputs[identifier].shared:
            continue
        if value is None:
            mine = [item for item in mine if item["id"] != name]
            without += [name] if name in base and name not in without else []
        elif not same(value, generated.get(identifier)) or (name not in {item["id"] for item in mine} and not same(base.get(name), value)):
            mine = _with(mine, name, value, file.path.name)
    case["overrides"], case["without"] = mine, without


def _fields(case: dict[str, Any], data: dict[str, Any], number: int, typed: Mapping[str, Any], file: File, library: Library) -> None:
    """Fields of a column, until the scenario says of it what the cells say."""
    estimate = file.book.estimate
    named, generated = estimate.equations.inputs.named(), estimate.inputs(number)
    for _ in range(_ROUNDS):
        found = columns(parse_scenario(data, str(file.path)), estimate.model, library, str(file.path))[number]
        wrong = {field: typed[figure.id] for field, figure in named.items() if not same(found.values[field], typed[figure.id])
                 and not (field == "concurrency" and found.values.get("request_rate") and same(typed[figure.id], generated[figure.id]))}  # fmt: skip
        for field, value in wrong.items():
            figure = named[field]
            if figure.integer:
                if value != int(value):
                    raise InputError(f"{file.path}: {_place(file, figure.id, number)} ({figure.id}): holds {value:g}; expected a whole number")
                value = int(value)
            if field.startswith(DECODE) and field.removeprefix(DECODE) in APART:
                case["decode"] = (case.get("decode") or {}) | {field.removeprefix(DECODE): value}
                case.setdefault("serving", typed["inputs.serving"])
            else:
                case[field] = value
        if not wrong:
            return
    raise AssertionError(f"{file.path}: scenario {number} cannot be said in fields: {wrong}")


def _place(file: File, identifier: str, column: int) -> str:
    from openpyxl.utils import get_column_letter

    sheet, row, place = file.book.entries[identifier, column]
    return f"{sheet}!{get_column_letter(place + 1)}{row + 1}"


def _library(library: Library, edits: list[dict[str, Any]], file: File) -> Library:
    """The library with figures that were typed over; a profile of which one was is a version of its own."""
    if not edits:
        return library
    data = library.model_dump()
    places = _places(data)
    for edit in edits:
        if edit["id"] not in places:
            raise InputError(f"{file.path}: {edit['cell']} ({edit['id']}): holds {edit['found']:g} instead of {edit['generated']:g}; such an edit "
                             "cannot be carried over: set it back")  # fmt: skip
        profile, figure = places[edit["id"]]
        figure |= {"value": edit["found"], "status": "assumed", "source": f"typed into {file.path.name}; was {edit['generated']:g}: {figure['source']}"[:300]}
        if not profile["version"].endswith("-edited"):
            profile["version"] += "-edited"
    return validate(Library, data, str(file.path))


def _places(data: dict[str, Any]) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """By id of its cell, a profile and its figure, as plain objects."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for kind, folder, prefix in ((Accelerator, "accelerators", "library.{}."), (System, "systems", "system.{}."), (Prices, "prices", "library.{}.price_")):
        for item in data[folder]:
            found |= {prefix.format(item["id"]) + field: (item, item[field]) for field in kind.UNITS if item[field] is not None}
    for profile, key in zip(data["efficiency"], _keys(data), strict=True):
        for factor in profile["factors"]:
            condition = next((f".{word}{factor[field]}" for field, word in (("format", ""), ("kv", ""), ("ranks", "tp")) if factor[field] is not None), "")
            found[f"efficiency.{factor['factor']}.{key}{condition}"] = (profile, factor)
    return found


def _keys(data: dict[str, Any]) -> list[str]:
    from mantile.library.efficiency import EfficiencyProfile

    return [EfficiencyProfile.model_validate(profile).key for profile in data["efficiency"]]
