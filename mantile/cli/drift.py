"""The command that watches whether servers still do what is predicted: records drift."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mantile.cli.application import AsJson
from mantile.cli.asked import with_own
from mantile.cli.measured import Profiles, Trusted, check_folder, trusted_keys
from mantile.cli.records import records
from mantile.library.errors import InputError


@records.command("drift", examples=("mantile records drift records.db --limit decode=10",))
def drift(
    file: Annotated[Path, typer.Argument(metavar="FILE.db", help="A database of records.")],
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=PERCENT",
            help="How far a median may lie from the prediction; repeatable.  [default: decode=12, ttft=18, "
            "memory=7]",
        ),
    ] = None,
    profile: Profiles = None,
    trusted: Trusted = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.xlsx", help="A report as a workbook.")
    ] = None,
    retrain: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="On an alarm of decode or TTFT, fit efficiency factors to those months and write new "
            "versions of profiles, for --profile.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare records with predictions by group and month. Exit status 1 if the newest month of any group is
    beyond a limit."""
    if output is not None and (output.suffix != ".xlsx" or not output.parent.is_dir()):
        raise InputError(f"{output}: expected a file name that ends in .xlsx, in a folder that there is")
    if retrain is not None:
        check_folder(retrain)
    limits = dict(_limit(text) for text in limit or ())
    from mantile.cli.output.bench import print_drift
    from mantile.cli.output.runs import progress
    from mantile.cli.output.tables import print_json, working
    from mantile.library.profiles import load_library
    from mantile.measured import drift as watched
    from mantile.records.store import read

    with working(f"reading {file.name}"):
        kept = read(file, trusted_keys(trusted))
        names = (str(one.record.run.get("accelerator", "")) for one in kept)
        library = with_own(load_library(tuple(profile or ())), names)
    with progress("predicting", None) as step:
        found = watched.drift(kept, limits, library, file.name, step)
    if output is not None:
        with working(f"writing {output.name}"):
            from mantile.measured.report.drift import write_drift

            write_drift(found, output)
    files: tuple[Path, ...] = ()
    if retrain is not None and any(alarm["metric"] != "memory" for alarm in found.alarms):
        from mantile.library.dump import write_profiles

        with progress("calibrating", None) as step:
            fitted = watched.retrain(found, kept, library, step)
        files = write_profiles(fitted.profiles, retrain)
    if as_json:
        print_json(found.to_dict() | {"profiles": [str(path) for path in files]})
    else:
        print_drift(found, [*files, *([output] if output else [])])
    if found.alarms:
        raise typer.Exit(1)


def _limit(text: str) -> tuple[str, float]:
    """METRIC=PERCENT to both, as a fraction."""
    from mantile.library.typed_numbers import number_of

    name, _, value = text.partition("=")
    number = number_of(value.removesuffix("%"))
    if number is None or not 0 < number <= 1000:
        raise InputError(f"--limit {text}: expected METRIC=PERCENT, such as decode=12")
    return name.strip(), number / 100
