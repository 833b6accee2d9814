"""Measured values typed into a workbook, to a new workbook whose profiles were fitted to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

from mantile.equations.checks import INVALID
from mantile.equations.display import LETTERS
from mantile.equations.measured import MEASURABLE
from mantile.estimates.estimate import Estimate
from mantile.library.columns import Column
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.files import replacing
from mantile.library.scenario import apply_model_overrides
from mantile.library.scenario_fields import DEFAULT_SYSTEM, SCENARIO_FIELDS
from mantile.measured.calibrate import Calibration, calibrate, with_profiles
from mantile.measured.fit import SPREAD, Loss
from mantile.measured.match import MatchedRuns, match_runs
from mantile.measured.profile_versions import FittedFactor
from mantile.measured.runs import Run
from mantile.roundtrip.edits import edited
from mantile.workbook.cell_diff import diff_cells, require_own_formulas
from mantile.workbook.read import open_file
from mantile.workbook.write import build_workbook


def calibrate_workbook(
    path: str | Path,
    output: str | Path | None = None,
    factors: Sequence[FittedFactor] = (),
    spread: float = SPREAD,
    loss: Loss = "soft_l1",
    progress: Callable[[str], None] = lambda what: None,
) -> Calibration:
    """Fit efficiency factors to what was measured of the scenarios of a workbook, and write a new workbook
    that uses them.

    Measured values are typed at Calibration, on Efficiency. The new workbook has the same
    scenarios, edits included, and holds the measured values as well. An override cell stays as it is: the
    figures it replaces are not changed by what was measured in its column.

    Args:
        path: a workbook with values on its Calibration sheet, as saved by any program.
        output: the new workbook; NAME-calibrated.xlsx beside it if None. A file that is there is never
            overwritten.
        factors: that may change, such as `FittedFactor.parse("gemm_compute[fp8]@pair")`; the usual ones, by
            accelerator and framework, if none.
        spread: of the logarithm of a factor around where it starts, before any value is seen: the smaller,
            the closer it stays.
        loss: how outliers count: soft_l1 less than squared, cauchy hardly at all.
        progress: called with what is done next.

    Returns:
        The new versions of the profiles, and errors before and after.

    Raises:
        InputError: naming file and cell or field, if nothing was measured, a formula was edited, or the file
            is no workbook of ours.

    Example:
        calibration = calibrate_workbook("run.xlsx", "calibrated.xlsx")
        calibration.after["tpot_s"]["mape"]    # a fraction
    """
    source = Path(path)
    target = _target(source, output)
    progress("reading")
    estimate = _read(source)
    runs = _runs(estimate, source)
    progress("predicting")
    calibration = calibrate(
        _matched(estimate, runs, source),
        factors,
        spread,
        source=source.name,
        loss=loss,
        on=date.fromisoformat(estimate.scenario.date) if estimate.scenario.date else None,
        progress=progress,
    )
    progress("writing")
    values = sum(len(run.metrics.given()) for run in runs)
    calibrated = _calibrated(estimate, calibration, values, source)
    with replacing(target, overwrite=False) as temporary:
        build_workbook(calibrated, temporary)
    return calibration


def calibrated_name(path: Path) -> Path:
    """Where the new workbook goes unless another name is given."""
    return path.with_name(f"{path.stem}-calibrated.xlsx")


def _target(source: Path, output: str | Path | None) -> Path:
    target = Path(output) if output is not None else calibrated_name(source)
    if target.suffix != ".xlsx":
        raise InputError(f"{target}: expected a file name that ends in .xlsx")
    if target.exists():
        raise InputError(f"{target}: there is such a file already; it is never overwritten")
    return target


def _read(path: Path) -> Estimate:
    """The estimate that a workbook stands for, edits included."""
    file = open_file(path)
    now = edited(file)
    differences = diff_cells(file, len(now.added))
    require_own_formulas(file, [*differences.formulas, *differences.overwritten])
    return file.book.estimate.again(now.scenario, file.book.estimate.library, str(path))


def _runs(estimate: Estimate, path: Path) -> list[Run]:
    """A run for every scenario with measured values.

    Raises:
        InputError: if no value was measured.
    """
    source = path.name
    runs = []
    for letter, column in zip(LETTERS, estimate.columns, strict=False):
        measured = column.measured.given()
        if not measured:
            continue
        overrides = [
            override.model_dump() for override in column.overrides if not override.id.startswith("model.")
        ]
        fields = {
            **_fields(estimate, column),
            "id": f"{letter}: {column.name}"[:120],
            "model": estimate.scenario.model,
            "metrics": {
                MEASURABLE[field].key: value / MEASURABLE[field].shown(1.0)
                for field, value in measured.items()
            },
            "overrides": overrides,
            "source": source[:300],
            "date": estimate.scenario.date,
        }
        runs.append(validate(Run, fields, f"{source}: scenario {column.name}"))
    if not runs:
        cells = ", ".join(figure.id for figure in estimate.equations.measured.values())
        raise InputError(
            f"{path}: sheet Efficiency: no measured value is typed; expected one at least of {cells}"
        )
    return runs


def _fields(estimate: Estimate, column: Column) -> dict[str, object]:
    """The fields of a run: all that the graph has inputs for, those of decode workers by themselves."""
    values = {
        name: column.values[name] for name in estimate.equations.inputs.named() if name in column.values
    }
    decode = {name.removeprefix(DECODE): value for name, value in values.items() if name.startswith(DECODE)}
    own = {
        name: value for name, value in values.items() if name in SCENARIO_FIELDS and value != DEFAULT_SYSTEM
    }
    return own | ({"decode": decode} if decode else {})


def _matched(estimate: Estimate, runs: Sequence[Run], path: Path) -> MatchedRuns:
    """The runs with their graph.

    Raises:
        InputError: for a run that cannot be predicted.
    """
    scenario = estimate.scenario
    model = apply_model_overrides(estimate.model, scenario.overrides, str(path))
    matched = match_runs(runs, estimate.library, models={scenario.model: model})
    if matched.rejected:
        raise InputError(f"{path}: {matched.rejected[0].id}: {matched.rejected[0].reason}")
    for batch in matched.batches:
        values, (verdicts, unmet) = batch.predict(), batch.verdicts()
        for place, run in enumerate(batch.runs):
            if unmet[place] or verdicts[place] == INVALID:
                raise InputError(f"{path}: {run.run.id}: the plan is not possible; see the sheet Audit")
            for metric, node in batch.outputs().items():
                if metric in run.run.metrics.given() and not math.isfinite(float(values[node][place])):
                    raise InputError(f"{path}: {run.run.id}: {metric} cannot be predicted")
    return matched


def _calibrated(estimate: Estimate, calibration: Calibration, values: int, path: Path) -> Estimate:
    """The same scenarios on the new versions of the profiles, fitted to so many measured values."""
    why = f"calibrated to {values} measured values of {path.name}"[:120]
    return estimate.again(
        estimate.scenario.model_copy(update={"why": why}),
        with_profiles(estimate.library, calibration.profiles, str(path)),
        str(path),
    )
