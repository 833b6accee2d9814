"""What changed since the workbook before this one: inputs and results, as the Log of the next one says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mantile.equations.override import OVERRIDE
from mantile.equations.since import FOLLOWED
from mantile.estimates.estimate import Estimate
from mantile.library.since import Changed, Since
from mantile.roundtrip.compare import input_differences
from mantile.roundtrip.edits import edited
from mantile.roundtrip.versions import WORDS, version
from mantile.workbook.bundle import Bundle
from mantile.workbook.cell_diff import diff_cells, require_own_formulas
from mantile.workbook.read import open_file
from mantile.workbook.sheets.frame import cut

_MOST = 60  # inputs that are listed
_FIRST = (
    "model",
    "name",
    "inputs.",
)  # what ids begin with, in the order of the list; figures of the library last


@dataclass(frozen=True)
class Before:
    """The workbook before this one, as it stands in its cells now."""

    name: str
    estimate: Estimate
    bundle: Bundle


def since_workbook(estimate: Estimate, path: str | Path) -> Estimate:
    """An estimate as the next version of a workbook, with what differs from it.

    Of the workbook the inputs in its cells count, edits included.

    Raises:
        InputError: if the file is no workbook of ours, or one in which formulas were edited: it has no
            results that could be told apart from what somebody typed.

    Example:
        since_workbook(mantile.estimate(scenario), "run.xlsx").to_excel("next.xlsx")
    """
    file = open_file(Path(path))
    now = edited(file)
    texts = diff_cells(file, len(now.added))
    require_own_formulas(file, [*texts.formulas, *texts.overwritten])
    then = file.book.estimate.again(now.scenario, file.book.estimate.library, str(path))
    then = replace(then, made_on=file.book.bundle.made_on)
    return following(estimate, Before(Path(path).name, then, file.book.bundle))


def following(estimate: Estimate, before: Before) -> Estimate:
    """An estimate as the next version of another."""
    then = before.estimate
    versions = estimate.scenario.versions or (*then.scenario.versions, version(then))
    changed = since(before, estimate)
    update: dict[str, Any] = {"since": changed, "versions": versions}
    if "why" not in estimate.scenario.model_fields_set:
        what = ", ".join(dict.fromkeys(change.id for change in changed.inputs)) or "no input"
        update["why"] = cut(f"changed since {before.name}: {what}", WORDS)
    return replace(estimate, scenario=estimate.scenario.model_copy(update=update))


def since(before: Before, estimate: Estimate) -> Since:
    """What differs from the workbook before: inputs of all scenarios, results of the base."""
    changes = sorted(_changes(before.estimate, estimate), key=_order)
    results = before.estimate.metrics()
    return Since(
        workbook=before.name[:120],
        digest=f"{before.bundle.digest[:4]} {before.bundle.digest[4:8]}",
        made_on=before.estimate.scenario.date or before.bundle.made_on,
        made_by=before.bundle.generator[:120],
        inputs=tuple(changes[:_MOST]),
        more=max(0, len(changes) - _MOST),
        results={metric.attribute: results.get(metric) for metric in FOLLOWED if metric in results},
    )


def _changes(left: Estimate, right: Estimate) -> Iterator[Changed]:
    """Inputs that both have and that differ; of another model, or version of it, that it is another."""
    models = left.model.id, right.model.id
    versions = left.model.version, right.model.version
    if models[0] != models[1] or (all(versions) and versions[0] != versions[1]):
        yield Changed(id="model", was=left.model.pin, now=right.model.pin)
    for item in input_differences(left, right):
        identifier, was, now = item["id"], item["a"], item["b"]
        in_both = identifier == "name" or all(identifier in side.equations.figures for side in (left, right))
        if in_both and not (identifier.startswith("model.") and models[0] != models[1]):
            yield Changed(id=identifier, scenario=item["scenario"], was=was, now=now)


def _order(change: Changed) -> tuple[int, str]:
    places = (place for place, start in enumerate(_FIRST) if change.id.startswith(start))
    is_override = change.id.endswith(OVERRIDE)
    return next(places, len(_FIRST) + (0 if is_override else 1)), change.scenario or ""
