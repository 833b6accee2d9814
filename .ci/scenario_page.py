"""Write workbooks/scenario.md, the reference of all fields of a scenario, from the table of fields.

python .ci/scenario_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mantile.cli.flags import field_flag
from mantile.library.fields import DEPLOYMENT, MONEY, WORKLOAD, ScenarioField
from mantile.library.scenario import SCENARIO_FIELDS, WORKER_FIELDS, Scenario

FILE = Path(__file__).parent.parent / "workbooks" / "scenario.md"

BEGIN = """# Fields of a scenario

A scenario file, the flags of the command line and `Scenario.replace(...)` in Python have the same fields. In a workbook each is
a row of the sheet Inputs with the id `inputs.<field>` and a defined name `in_<field>`.

```yaml
model: llama-3.3-70b
accelerator: h100-sxm
tp: 8
input_tokens: 2048
output_tokens: 256
concurrency: 16
variants:
  - {name: 2 x TP4, tp: 4, dp: 2}
```

Case does not matter, and `-` is the same as `_`. Other names are those of serving engines; "formerly" is what earlier versions
called a field. All are accepted in files, in Python and as flags.

This page is made by `python .ci/scenario_page.py` from the table of fields in `mantile/library/scenario.py`.
"""

NOTES = {
    DEPLOYMENT: "Accelerators, how a model is spread over them, and data types.",
    WORKLOAD: "What is asked of the deployment, and how its engine schedules it.",
    MONEY: "What the sheet Cost is made of.",
}

OTHERS = {
    "model": "An id of `mantile models list`, a `config.json`, a folder of a model, or an id of the hub.",
    "name": "What a column is called.",
    "title": "Title of the workbook.",
    "date": "Date of the workbook, YYYY-MM-DD.",
    "why": "Why this version was made; the Log tells it.",
    "decode": "Workers that only decode: a mapping of the fields above.",
    "variants": "Up to seven further columns: mappings of fields. What a variant leaves out follows the base.",
    "overrides": "Figures that replace those of the library: a list of `{id, value, reason}`.",
    "without": "Ids of overrides of the base that a variant does not follow.",
    "measured": "What was measured: `ttft_ms`, `ttft_p50_ms`, `tpot_ms`, `output_tokens_per_s`.",
    "profiles": "Profiles wanted in an older version: `accelerators/h100-sxm@2026-11`.",
    "template": "One of templates/, or a file of one's own.",
    "sweep": "Values of one field, or of two, for the sheet Sweep.",
    "sensitivity": "By id of an input, by how many percent it is taken lower and higher.",
    "versions": "Versions of the workbook before this one; `mantile import` writes them.",
}
"""Fields that are no row of the sheet Inputs."""


_PARTS = {"experts": "experts", "dense FFNs": "dense FFNs", "images": "a vision tower"}
_LISTS = {
    "accelerators": "an id of `mantile hardware list`",
    "systems": "an id of `mantile hardware list`",
    "frameworks": "a file of profiles/frameworks",
    "datatypes": "an id of profiles/datatypes.yaml, such as fp8",
}


def page() -> str:
    """The page as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield BEGIN
    for group, note in NOTES.items():
        yield f"## {group}\n\n{note}\n"
        yield "| field | flag | row of Inputs | other names | unit | range | default | meaning |\n|---|---|---|---|---|---|---|---|"
        yield from (_row(field) for field in SCENARIO_FIELDS.values() if field.group == group)
        yield ""
    yield "## Prefill and decode workers\n"
    yield f"Decode workers may have these fields to themselves, below `decode`: {_code(WORKER_FIELDS)}."
    yield "As flags and in Python they are `--decode-tp`, `decode_tp` and so on; `--decode-workers` is `--decode-dp`."
    yield "What decode workers are not given follows from the deployment. With them `serving` is `disaggregated`.\n"
    yield "A flag such as `--prefill-tp` is for prefill workers alone: decode workers keep what `--tp` says.\n"
    yield "## All other fields\n\n| field | meaning |\n|---|---|"
    assert set(OTHERS) == set(Scenario.model_fields) - set(SCENARIO_FIELDS)
    yield from (f"| `{name}` | {meaning} |" for name, meaning in OTHERS.items())


def _row(field: ScenarioField) -> str:
    names = _code(field.aliases)
    if field.former:
        names += f"{'; ' if names else ''}formerly {_code(field.former)}"
    needs = f" Only for models with {_PARTS[field.needs]}." if field.needs in _PARTS else ""
    hint = f"; {field.hint}" if field.hint else ""
    cells = (
        f"`{field.name}`",
        f"`{field_flag(field.name)}`",
        field.label,
        names,
        "" if field.unit == "1" else field.unit,
        _range(field),
        field.default_words or "needed",
        f"{field.meaning}{hint}.{needs}",
    )
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _range(field: ScenarioField) -> str:
    if field.choices:
        return ", ".join(field.choices)
    if field.listed is not None:
        return _LISTS[field.listed]
    whole = "whole numbers " if field.kind is int else ""
    return f"{whole}{field.least:,} to {field.most:,}"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
