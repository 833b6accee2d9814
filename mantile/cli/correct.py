"""The command that fits a correction to measured runs: correct."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.asked import with_own
from mantile.cli.measured import (
    MeasurementsArgument,
    Profiles,
    Trusted,
    Where,
    file_and_conditions,
    trusted_keys,
)
from mantile.library.errors import InputError


@app.command(
    group="Measured runs, traces and launch lines", examples=("mantile correct runs.csv -o correction.yaml",)
)
def correct(
    measurements: MeasurementsArgument,
    where: Where = None,
    profile: Profiles = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.yaml", help="The correction.")
    ] = Path("correction.yaml"),
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Fit multipliers of results to measured runs, for `correction` of a scenario. Exit status 1 where no
    metric gets better by one; no file is written then."""
    path, conditions = file_and_conditions(measurements, where)
    if output.suffix not in (".yaml", ".yml") or not output.parent.is_dir():
        raise InputError(f"{output}: expected a file name that ends in .yaml, in a folder that there is")
    if output.exists():
        raise InputError(f"{output}: there is such a file already; it is never overwritten: expected another")
    from mantile.cli.output.correct import print_learned
    from mantile.cli.output.runs import progress
    from mantile.cli.output.tables import print_json, working
    from mantile.library.dump import dump_yaml
    from mantile.library.files import replacing
    from mantile.library.profiles import load_library
    from mantile.measured.correct import learn
    from mantile.measured.load import load_measurements
    from mantile.measured.select import select_runs

    with working(f"reading {path.name}"):
        runs = select_runs(load_measurements(path, trusted_keys(trusted)).runs, conditions, str(path))
        library = with_own(load_library(tuple(profile or ())), (run.accelerator for run in runs))
    with progress("fitting", None) as step:
        learned = learn(runs, library, output.stem[:60], path.name, progress=step)
    if learned.correction is not None:
        data = learned.correction.model_dump(mode="json", exclude_none=True)
        with replacing(output, overwrite=False) as temporary:
            temporary.write_text(dump_yaml(data), encoding="utf-8")
    written = None if learned.correction is None else output
    if as_json:
        print_json(learned.to_dict() | {"file": None if written is None else str(written)})
    else:
        print_learned(learned, written)
    if written is None:
        raise typer.Exit(1)
