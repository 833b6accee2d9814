"""Measured values typed into a workbook, to a workbook of the same scenario whose profiles were fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from mantile.equations.inputs import DECODE
from mantile.estimate.estimate import Estimate
from mantile.library.documents import validate
from mantile.library.dump import replacing
from mantile.library.efficiency import EfficiencyProfile
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.scenario import DEFAULT_SYSTEM, FIELDS, Column, apply_model_overrides
from mantile.measured.calibrate import SPREAD, Calibration, Loss, calibrate
from mantile.measured.profile_versions import Choice
from mantile.measured.reconcile import MatchedRuns, match_runs
from mantile.measured.runs import Run
from mantile.roundtrip.edits import edited
from mantile.workbook.book import LETTERS
from mantile.workbook.cell_diff import diff_cells, require_own_formulas
from mantile.workbook.read import open_file
from mantile.workbook.write import build_workbook

# Metrics of a run by the field of what was measured; all that is typed counts, as it does in the error of the Calibration sheet.
METRICS = {
    "ttft_ms": "ttft_s",
    "ttft_p50_ms": "ttft_p50_s",
    "tpot_ms": "tpot_s",
    "output_tokens_per_s": "output_tokens_per_s_per_accelerator",
}


def calibrate_workbook(
    path: str | Path,
    output: str | Path | None = None,
    choices: Sequence[Choice] = (),
    spread: float = SPREAD,
    loss: Loss = "soft_l1",
    step: Callable[[str], None] = lambda what: None,
) -> Calibration:
    """Fit efficiency factors to what was measured of the scenarios of a workbook, and write a new workbook that uses them.

    The new one is of the same scenarios, edits included, and holds the measured values as well. An override cell stays as it is: the
    figures it replaces are not moved by what was measured in its column.

    Args:
        path: a workbook with values on its Calibration sheet, as saved by any program.
        output: the new workbook; NAME-calibrated.xlsx beside it if None. Never overwritten.
        choices: factors that may move; the usual ones, by accelerator and framework, if none.
        spread: of a log factor around its parent's, before any value is seen; the smaller, the closer they stay.
        loss: how outliers count.
        step: told what is worked on.

    Raises:
        InputError: naming file and cell or field, if nothing was measured, a formula was edited, or the file is no workbook of ours.
    """
    source = Path(path)
    target = Path(output) if output is not None else calibrated_name(source)
    if target.suffix != ".xlsx":
        raise InputError(f"{target}: expected a file name that ends in .xlsx")
    if target.exists():
        raise InputError(f"{target}: there is such a file already; it is never overwritten")
    step("reading")
    now = _read(source)
    runs = _runs(now, source.name)
    if not runs:
        raise InputError(
            f"{source}: sheet Calibration: no measured value is typed; expected one at least of "
            + ", ".join(figure.id for figure in now.equations.measured.values.values())
        )
    step("predicting")
    prepared = match_runs(
        runs,
        now.library,
        models={now.scenario.model: apply_model_overrides(now.model, now.scenario.overrides, str(source))},
    )
    if prepared.refused:
        raise InputError(f"{source}: {prepared.refused[0].id}: {prepared.refused[0].reason}")
    _require_predictions(prepared, source)
    day = date.fromisoformat(now.scenario.date) if now.scenario.date else None
    made = calibrate(
        prepared,
        choices,
        spread,
        source=source.name,
        loss=loss,
        on=day,
        step=step,
        fitted=tuple(METRICS.values()),
    )
    step("writing")
    why = f"calibrated to {sum(len(run.metrics.given()) for run in runs)} measured values of {source.name}"[
        :120
    ]
    scenario = now.scenario.model_copy(update={"why": why})
    better = now.again(scenario, _with(now.library, made.profiles, str(source)), str(source))
    with replacing(target, overwrite=False) as temporary:
        build_workbook(better, temporary)
    return made


def calibrated_name(path: Path) -> Path:
    """Where the new workbook goes unless something else is asked for."""
    return path.with_name(f"{path.stem}-calibrated.xlsx")


def _read(path: Path) -> Estimate:
    """What a workbook stands for, edits included."""
    file = open_file(path)
    now = edited(file)
    texts = diff_cells(file, len(now.added))
    require_own_formulas(file, [*texts.formulas, *texts.overwritten])
    return file.book.estimate.again(now.scenario, now.library, str(path))


def _runs(made: Estimate, source: str) -> list[Run]:
    """A run for every scenario with measured values."""
    found = []
    for number, column in enumerate(made.columns):
        given = column.measured.given()
        if not given:
            continue
        accelerators = float(made.values(number)[made.equations.serving.accelerators])
        scales = {
            "ttft_ms": 1e-3,
            "ttft_p50_ms": 1e-3,
            "tpot_ms": 1e-3,
            "output_tokens_per_s": 1 / accelerators,
        }
        metrics = {METRICS[field]: value * scales[field] for field, value in given.items()}
        overrides = [
            override.model_dump() for override in column.overrides if not override.id.startswith("model.")
        ]
        found.append(
            validate(
                Run,
                {
                    **_fields(made, column),
                    "id": f"{LETTERS[number]}: {column.name}"[:120],
                    "model": made.scenario.model,
                    "metrics": metrics,
                    "overrides": overrides,
                    "source": source[:300],
                    "date": made.scenario.date,
                },
                f"{source}: scenario {column.name}",
            )
        )
    return found


def _fields(made: Estimate, column: Column) -> dict[str, object]:
    """The fields of a run: all that the model has a use for, those of decode workers by themselves."""
    names = made.equations.inputs.named()
    apart = {
        name.removeprefix(DECODE): value
        for name, value in column.values.items()
        if name in names and name.startswith(DECODE)
    }
    kept = {
        name: column.values[name]
        for name in FIELDS
        if name in names and column.values[name] != DEFAULT_SYSTEM
    }
    return kept | ({"decode": apart} if apart else {})


def _require_predictions(prepared: MatchedRuns, path: Path) -> None:
    for batch in prepared.batches:
        values = batch.predict()
        for place, case in enumerate(batch.cases):
            if str(values[batch.equations.checks.feasibility][place]) == "invalid":
                raise InputError(f"{path}: {case.run.id}: the plan is not possible; see the sheet Checks")
            wrong = [
                name
                for name, node in batch.outputs().items()
                if name in METRICS.values() and not math.isfinite(float(values[node][place]))
            ]
            if wrong:
                raise InputError(f"{path}: {case.run.id}: {wrong[0]} cannot be predicted")


def _with(library: Library, profiles: Sequence[EfficiencyProfile], name: str) -> Library:
    """The library with new versions in place of the old ones."""
    fresh = {profile.id: profile for profile in profiles}
    kept = [fresh.pop(profile.id, profile) for profile in library.efficiency]
    return validate(Library, dict(library) | {"efficiency": (*kept, *fresh.values())}, name)
