"""What worker processes do for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError
from mantile.server.documents import estimate_of, fields_of
from mantile.server.page.answers import NAME

MOST_RUNS = 200
"""That are fitted at once from the page."""


def audited(scenario: Mapping[str, Any], hub: bool, folder: str, ending: str) -> str:
    """Write the audit of a scenario's workbook; what it is of.

    Args:
        folder: where it becomes audit.xlsx or audit.json.
    """
    from mantile.roundtrip.audit import audit
    from mantile.workbook.write import build_workbook

    made = estimate_of(scenario, hub, NAME)
    built = build_workbook(made, Path(folder) / "built.xlsx")
    found = audit(built)
    found.facts["workbook"] = "built for this audit"
    found.write(Path(folder) / f"audit{ending}")
    return made.title


def cells(scenario: Mapping[str, Any], hub: bool) -> dict[str, tuple[str, str]]:
    """Where each figure of a scenario stands in its workbook, and its formula there; that is empty for an
    input."""
    from xlsxwriter.utility import xl_rowcol_to_cell

    from mantile.workbook.layout import lay_out

    book = lay_out(estimate_of(scenario, hub, NAME))
    found = {}
    for identifier, figure in book.estimate.equations.figures.items():
        address = book.addresses.get(figure)
        if address is None:
            continue
        sheet, column = book.sheets[address.sheet], book.column_of(address, 0)
        cell = sheet.cells.get((address.row, column))
        formula = "" if cell is None or cell.expression is None else book.formula_text(sheet, cell)
        found[identifier] = (f"{address.sheet}!{xl_rowcol_to_cell(address.row, column)}", formula)
    return found


def sized(
    scenario: Mapping[str, Any],
    hub: bool,
    users: int,
    limits: Mapping[str, float],
    most: int,
    over: Mapping[str, list[str]],
) -> dict[str, Any]:
    """What `mantile size --json` says, with names of builds, and measures of every plan that can be.

    Args:
        users: who ask at the same time.
        limits: bounds in SI units by measure.
        most: accelerators of a build.
        over: what is chosen from.
    """
    from mantile.search.objective import limit
    from mantile.search.question import ask, plan_name, plan_of
    from mantile.search.search import USED
    from mantile.search.size import ORDER, size_of, with_load

    fields, model = fields_of(scenario, hub, NAME)
    asked, assumed = with_load(fields, users, None, NAME)
    bounds = [limit(name, bound, NAME) for name, bound in limits.items()]
    question = ask(asked, ORDER, bounds, most, over, model=model, name=NAME)
    found = size_of(question, assumed=assumed)
    told = found.to_dict()
    for name, tier in found.tiers.items():
        told["tiers"][name]["label"] = tier.label
    plans = found.found.plans
    wanted = ["usd_per_hour", "tpot_s", "ttft_s", "code", USED]
    rows = []
    for row in plans.to_dict("records"):
        plan = plan_of(row)
        rows.append(
            {
                "plan": plan,
                "name": plan_name(plan, question.model, question.library),
                **{key: row.get(key) for key in wanted},
            }
        )
    told["plans"] = rows
    return told


def calibrated(records: Sequence[Mapping[str, Any]], text: str, hub: bool, folder: str) -> dict[str, Any]:
    """What the factors of profiles would change to with measured runs; nothing is written.

    Args:
        records: runs in our own form.
        text: more of them as somebody pasted them: a table with commas, YAML or JSON.
        folder: of the request, where the text lies meanwhile.

    Returns:
        As `mantile calibrate --json`, and `rejected`, the records that were set aside; `unused_columns` with
        the reason.
    """
    from mantile.measured.load import load_measurements
    from mantile.server.jobs import calibrated as fitted
    from mantile.server.jobs import checked_run

    runs, rejected, unused = [dict(record) for record in records], [], {}
    if text.strip():
        begins = text.lstrip()[:1]
        first = text.lstrip().partition("\n")[0]
        ending = "json" if begins in "[{" else "csv" if "," in first and ":" not in first else "yaml"
        path = Path(folder) / f"pasted.{ending}"
        path.write_text(text, encoding="utf-8")
        found = load_measurements(path)
        runs += [run.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for run in found.runs]
        rejected = [{"id": one.id, "reason": one.reason} for one in found.rejected]
        unused = dict(found.unused)
    if len(runs) > MOST_RUNS:
        raise InputError(f"pasted text: {len(runs)} runs; expected at most {MOST_RUNS} here")
    checked = [checked_run(run, hub) for run in runs]
    return fitted(checked, hub) | {"rejected": rejected, "unused_columns": unused}
