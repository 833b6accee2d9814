"""The tables of workbooks/scenario.md, from the table of scenario fields; `make_documents.py` writes them."""

from __future__ import annotations

from mantile.cli.flags import field_flag
from mantile.library.capacity import CAPACITY_FIELDS
from mantile.library.dates import day_of
from mantile.library.device import DEVICE_FIELDS
from mantile.library.fields import ScenarioField
from mantile.library.scenario import Scenario
from mantile.library.scenario_fields import SCENARIO_FIELDS

HEADS = ("field", "flag", "row of Inputs", "other names", "unit", "range", "default", "meaning")

OTHERS = {
    "model": (
        "An id of `mantile list models`, in a version if you like (`llama-3.1-8b@1`), a `config.json`, a "
        "folder of a model, or an id or page of the hub."
    ),
    "name": "What a column is called.",
    "title": "Title of the workbook.",
    "date": "Date of the workbook, YYYY-MM-DD.",
    "why": "Why this version was made; the log on Audit tells it.",
    "decode": "Workers that only decode: a mapping of the fields above.",
    "acceptance_by_position": "Shares of each draft token that is accepted, as engines report them: a list.",
    "draft_model": "A model that drafts tokens: an id, a path or a hub id, as `model`.",
    "variants": (
        "Up to seven further columns: mappings of fields. What a variant leaves out follows the base."
    ),
    "ready_columns": (
        "Columns behind those of the variants, up to seven in all, for scenarios that are typed in the "
        "workbook: they follow the base, and count once they have a name. Each costs some 3,500 formulas."
    ),
    "overrides": "Figures that replace those of the library: a list of `{id, value, reason}`.",
    "without": "Ids of overrides of the base that a variant does not follow.",
    "measured": "What was measured: `ttft_ms`, `ttft_p50_ms`, `tpot_ms`, `output_tokens_per_s`.",
    "profiles": "Profiles wanted in an older version: `accelerators/h100-sxm@2026-11`.",
    "prices": (
        "USD per hour of one accelerator, by id, in place of the library's on the price basis, cloud or "
        "rental: `{h100-sxm: 2.10}`."
    ),
    "correction": (
        "Multipliers that stand beside the results: `none`, `shipped`, or a file that "
        "`mantile calibrate --multipliers` wrote."
    ),
    "template": "One of templates/, or a file of one's own.",
    "sweep": "Values of one field, or of two, for the sweep of What-if.",
    "classes": (
        "Up to eight classes of requests, in place of one mean length: a list of `{name, share, "
        "input_tokens, output_tokens, input_spread, output_spread, ttft_limit, tpot_limit, e2e_limit, turns, "
        "shared_prefix, think_time}`; a limit that a class does not state is that of the scenario."
    ),
    "capacity": (
        "Demand and money, for the sheets Capacity and Finance: `profile` (office day, evening, flat, or "
        "own with 24 `hours`, 100 the peak), " + ", ".join(f"`{name}`" for name in CAPACITY_FIELDS) + "."
    ),
    "devices": (
        "Machines that are not alike and hold a part of the layers each, in order: "
        + ", ".join(f"`{name}`" for name in DEVICE_FIELDS)
        + ". The first is the deployment; what is left out follows."
    ),
    "alternative": "The accelerator of the alternative on What-if: `{accelerator, usd_per_hour}`.",
    "decision": (
        "A choice among the variants: `{objective, weights, limits, take}`, and what a search found; "
        "`mantile optimize` writes it. The base is the plan that is taken."
    ),
    "sensitivity": "By id of an input, by how many percent it is taken lower and higher.",
    "versions": "Versions of the workbook before this one; `mantile import` writes them.",
    "since": "The workbook before this one and what differs; `mantile import` and `build --since` write it.",
}
"""Fields that are no row of the sheet Inputs."""

_LISTS = {
    "accelerators": "an id of `mantile list hardware`",
    "systems": "an id of `mantile list hardware`",
    "frameworks": "a file of profiles/frameworks",
    "datatypes": "an id of profiles/datatypes.yaml, such as fp8",
    "settings": "a name that the framework has, profiles/frameworks",
}
_PARTS = {"experts": "experts", "dense FFNs": "dense FFNs", "images": "a vision tower"}


def field_rows(group: str) -> list[tuple[str, ...]]:
    """The fields of a block of the Inputs sheet."""
    return [_row(field) for field in SCENARIO_FIELDS.values() if field.group == group]


def other_rows() -> list[tuple[str, ...]]:
    """The fields that are no row of the Inputs sheet."""
    assert set(OTHERS) == set(Scenario.model_fields) - set(SCENARIO_FIELDS)
    return [(f"`{name}`", meaning) for name, meaning in OTHERS.items()]


def _row(field: ScenarioField) -> tuple[str, ...]:
    names = [_code(field.aliases), f"formerly {_code(field.former)}" if field.former else ""]
    hint = f"; {field.hint}" if field.hint else ""
    needs = f" Only for models with {_PARTS[field.needs]}." if field.needs in _PARTS else ""
    return (
        f"`{field.name}`",
        f"`{field_flag(field.name)}`",
        field.label,
        "; ".join(part for part in names if part),
        "" if field.unit == "1" else field.unit,
        _range(field),
        field.default_words or "needed",
        f"{field.meaning}{hint}.{needs}",
    )


def _range(field: ScenarioField) -> str:
    if field.choices:
        return ", ".join(field.choices)
    if field.listed is not None:
        return _LISTS[field.listed]
    if field.is_day:
        return f"{day_of(field.least or 0)} to {day_of(field.most or 0)}"
    whole = "whole numbers " if field.kind is int else ""
    return f"{whole}{field.least:,} to {field.most:,}"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
