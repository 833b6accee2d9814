"""Commands on measured runs: reconcile, calibrate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from mantile.cli.app import AsJson, app, must_exist
from mantile.cli.flags import replaced_figure
from mantile.library.errors import InputError

Measured = Annotated[
    list[str],
    typer.Argument(
        metavar="MEASUREMENTS", help="Measured runs, .csv, .json or .yaml; conditions FIELD=VALUE may follow."
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Only runs for which it holds: model=a,b or tp!=1; repeatable, or several with blanks.",
    ),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FOLDER/ID@VERSION",
        help="Use another version of a profile, or an efficiency profile of one's own, FILE.yaml; repeatable.",
    ),
]


@app.command()
def reconcile(
    measurements: Measured,
    where: Where = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A report, .xlsx, or the table of all runs, .csv; repeatable.",
        ),
    ] = None,
    profile: Profiles = None,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="ID=VALUE", help="Replace a figure in all runs, in its cell's unit; repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with measured runs: how far off, and where. A row that cannot be read is reported and skipped."""
    path, conditions = _measured(measurements, where)
    outputs = list(output or ())
    for file in outputs:
        if file.suffix not in (".xlsx", ".csv"):
            raise InputError(f"{file}: expected a file name that ends in .xlsx or .csv")
        if not file.parent.is_dir():
            raise InputError(f"{file}: there is no folder {file.parent}")
        if file.exists() and file.samefile(path):
            raise InputError(f"{file}: these are the measurements; expected another name for the report")
    from mantile.cli.output.runs import print_reconciliation, progress
    from mantile.cli.output.tables import print_json, working
    from mantile.library.profiles import load_library
    from mantile.measured.load import load_measurements
    from mantile.measured.reconcile import reconcile as compare
    from mantile.measured.reconcile import selected

    with working(f"reading {path.name}"):
        library = load_library(tuple(profile or ()))
        found = load_measurements(path)
        graphs = len(
            {(run.model, run.scenario().disaggregated) for run in selected(found.runs, conditions, str(path))}
        )
    with progress("predicting", graphs) as step:
        compared = compare(
            found,
            conditions,
            library,
            path.name,
            dict(replaced_figure(text) for text in override or ()),
            step,
        )
    if not len(compared.table):
        first = compared.rejected[0]
        raise InputError(
            f"{path}: none of {compared.rows} runs can be answered; the first: {first.id}: {first.reason}"
        )
    for file in outputs:
        with working(f"writing {file.name}"):
            from mantile.measured.report import write_report, write_table

            (write_report if file.suffix == ".xlsx" else write_table)(compared, file)
    if as_json:
        print_json(compared.to_dict())
    else:
        print_reconciliation(compared, len(found.rejected) if conditions else 0, outputs)


@app.command()
def calibrate(
    measurements: Measured,
    where: Where = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[CONDITION][@LEVEL]",
            help="A factor that may move: gemm_bandwidth_scale[fp8]@pair; levels global, generation, "
            "framework, pair; repeatable.  [default: the usual ones, for each accelerator with its framework]",
        ),
    ] = None,
    cross_validate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="config|model|system|framework",
            help="Also predict runs by a fit without them, leaving out each in turn; repeatable.",
        ),
    ] = None,
    spread: Annotated[
        float,
        typer.Option(
            min=0.001,
            max=10,
            help="Of a log factor around the profile it starts from; the smaller, the closer.",
        ),
    ] = 0.3,
    loss: Annotated[
        Literal["soft_l1", "cauchy"],
        typer.Option(help="How outliers count: less than squared, or hardly at all."),
    ] = "soft_l1",
    profile: Profiles = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER|FILE.xlsx",
            help="Folder for the profiles; of a workbook, the new one, by default NAME-calibrated.xlsx.",
        ),
    ] = Path("calibrated"),
    as_json: AsJson = False,
) -> None:
    """Fit efficiency factors to measured runs and write them as new versions of profiles, for --profile."""
    path, conditions = _measured(measurements, where)
    if path.suffix.lower() == ".xlsx":  # measurements typed into a workbook
        if conditions or cross_validate or profile:
            raise InputError(
                f"{path}: --where, --cross-validate and --profile are for files of measured runs, not for a workbook"
            )
        _calibrate_workbook(
            path, None if output == Path("calibrated") else output, factor or [], spread, loss, as_json
        )
        return
    if not (output.is_dir() or (output.parent.is_dir() and not output.exists())):
        raise InputError(
            f"{output}: expected a folder"
            if output.exists()
            else f"{output}: there is no folder {output.parent}"
        )
    from mantile.cli.output.runs import print_calibration, progress
    from mantile.cli.output.tables import print_json, working
    from mantile.library.dump import write_profiles
    from mantile.library.profiles import load_library
    from mantile.measured import calibrate as calibration
    from mantile.measured.load import load_measurements
    from mantile.measured.profile_versions import Choice
    from mantile.measured.reconcile import match_runs, selected

    wrong = [word for word in cross_validate or () if word not in get_args(calibration.Kept)]
    if wrong:
        raise InputError(
            f"--cross-validate {wrong[0]}: expected one of {', '.join(get_args(calibration.Kept))}"
        )
    choices = [Choice.parse(text) for text in factor or ()]
    with working(f"reading {path.name}"):
        library = load_library(tuple(profile or ()))
        found = load_measurements(path)
        runs = selected(found.runs, conditions, str(path))
    with progress("calibrating", None) as step:
        prepared = match_runs(runs, library, step)
        if not prepared.cases:
            first = prepared.refused[0]
            raise InputError(
                f"{path}: none of {len(runs)} runs can be answered; the first: {first.id}: {first.reason}"
            )
        made = calibration.calibrate(
            prepared, choices, spread, [*(cross_validate or ())], path.name, loss, step=step
        )
    files = write_profiles(made.profiles, output)
    if as_json:
        print_json(made.to_dict() | {"files": [str(file) for file in files]})
    else:
        print_calibration(made.to_dict(), [*(() if conditions else found.rejected), *prepared.refused], files)


def _calibrate_workbook(
    path: Path,
    output: Path | None,
    factors: list[str],
    spread: float,
    loss: Literal["soft_l1", "cauchy"],
    as_json: bool,
) -> None:
    """Fit to what was typed on the Calibration sheet of a workbook, and write a new workbook."""
    from mantile.cli.output.runs import print_calibration, progress
    from mantile.cli.output.tables import print_json
    from mantile.measured.calibrate_workbook import calibrate_workbook, calibrated_name
    from mantile.measured.profile_versions import Choice

    target = output or calibrated_name(path)
    choices = [Choice.parse(text) for text in factors]
    with progress("calibrating", None) as step:
        made = calibrate_workbook(path, target, choices, spread, loss, step)
    if as_json:
        print_json(made.to_dict() | {"files": [str(target)]})
    else:
        print_calibration(made.to_dict(), (), [target])


def _measured(arguments: list[str], where: list[str] | None) -> tuple[Path, list[str]]:
    """The file of measured runs and all conditions: arguments of the form field=value that are no file are conditions as well."""
    import re

    condition = re.compile(r"^\w+!?=")
    files = [text for text in arguments if not condition.match(text) or Path(text).is_file()]
    if not files:
        raise InputError("missing MEASUREMENTS: expected a .csv, .json or .yaml file")
    if len(files) > 1:
        raise InputError(f"{files[1]}: expected one file, and conditions of the form field=value")
    must_exist(Path(files[0]))
    texts = [*(where or ()), *(text for text in arguments if text not in files)]
    return Path(files[0]), [
        part for text in texts for part in re.split(r"\s+(?=\w+!?=)", text.strip()) if part
    ]
