"""Commands on measured runs: measured, reconcile, calibrate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.asked import with_own
from mantile.cli.beside import stated_of, with_stated
from mantile.cli.commands import RARELY
from mantile.cli.flags import replaced_figure
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.profiles import Library
    from mantile.measured.calibrate import Calibration
    from mantile.measured.cross_validation import LeftOut
    from mantile.measured.gates import Gate, Passed
    from mantile.measured.reconcile import Reconciliation
    from mantile.measured.runs import Measurements, RejectedRun, Run

MeasurementsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="MEASUREMENTS",
        help="Measured runs: the output of a benchmark, a table, .csv, .json or .yaml, a folder or archive "
        "of them, or records, .db; conditions FIELD=VALUE may follow.",
    ),
]
MaybeMeasurements = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MEASUREMENTS",
        help="Measured runs: the output of a benchmark, a table, .csv, .json or .yaml, a folder or archive "
        "of them, or records, .db; conditions FIELD=VALUE may follow.",
    ),
]
Template = Annotated[
    bool,
    typer.Option(
        "--template",
        help="Print a file of measured runs to change, each field explained; --format csv: a table.",
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
        help="Use another version of a profile, or an efficiency profile of one's own, FILE.yaml; "
        "repeatable.",
    ),
]
Reports = Annotated[
    list[Path] | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A report, .xlsx, the table of all runs, .csv, what is shown here, .txt, or charts, .png or "
        ".svg; repeatable.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="ID=VALUE", help="Replace a figure in all runs, in its cell's unit; repeatable."
    ),
]
Gates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="METRIC=PERCENT",
        help="Largest MAPE that passes, exit status 1 beyond it: decode=10,prefill=12,ttft.median=15; "
        "memory=5 of start-up figures; repeatable.",
    ),
]
Factors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME[CONDITION][@SCOPE]",
        help="A factor that may change: gemm_bandwidth_scale[fp8]@pair; scopes global, generation, "
        "framework, pair; "
        "repeatable.  [default: the usual ones, for each accelerator with its framework]",
        rich_help_panel=RARELY,
    ),
]
LeaveOut = Annotated[
    list[str] | None,
    typer.Option(
        metavar="config|model|system|framework",
        help="Also predict runs by a fit without them, leaving out each in turn; repeatable.",
        rich_help_panel=RARELY,
    ),
]
Spread = Annotated[
    float,
    typer.Option(
        min=0.001,
        max=10,
        help="Standard deviation of a factor's logarithm around the profile it starts from; the smaller, "
        "the closer it stays.",
        rich_help_panel=RARELY,
    ),
]
Loss = Annotated[
    Literal["soft_l1", "cauchy"],
    typer.Option(help="How outliers count: less than squared, or hardly at all.", rich_help_panel=RARELY),
]
Calibrated = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FOLDER|FILE",
        help="Folder for the profiles; of a workbook, the new one, by default NAME-calibrated.xlsx; of "
        "multipliers, by default correction.yaml.",
    ),
]
Trusted = Annotated[
    Path | None,
    typer.Option(
        metavar="KEYS",
        help="File or folder of public keys: each record of a database must be signed by one of them.",
    ),
]
_FOLDER = Path("calibrated")


@app.command(
    group="Measured runs",
    examples=("mantile measured vllm.json --gpu h100 --tp 1", "mantile measured results/ -o runs.csv"),
)
@with_stated
def measured(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Outputs of benchmarks, pages of metrics, tables of runs; folders, .zip or .tar.gz of them.",
        ),
    ],
    beside: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.csv", help="All runs as a table that reconcile reads."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read files of measurements, whatever wrote them: the form of each, its runs, what is not used of it,
    and what it does not say."""
    for file in files:
        if not file.is_dir():
            must_exist(file)
    if output is not None and (output.suffix.lower() != ".csv" or not output.parent.is_dir()):
        raise InputError(f"{output}: expected the name of a .csv file in a folder that there is")
    from mantile.cli.output.read import print_read, write_runs
    from mantile.cli.output.tables import print_json, working
    from mantile.measured.read_runs import read_stated

    stated = stated_of(beside)
    with working("reading"):
        reads = read_stated(files, stated)
    if output is not None:
        write_runs(reads, output)
    if as_json:
        one = reads[0].to_dict() if len(reads) == 1 else {"read": [read.to_dict() for read in reads]}
        print_json(one)
    else:
        print_read(reads, [output] if output else [])


@app.command(
    group="Measured runs",
    examples=(
        "mantile reconcile runs.csv",
        "mantile reconcile vllm.json --gpu h100 --tp 1 --weights-dtype bf16 --engine vllm",
        "mantile reconcile --template > runs.yaml",
    ),
)
@with_stated
def reconcile(
    beside: dict[str, Any],
    measurements: MaybeMeasurements = None,
    where: Where = None,
    output: Reports = None,
    profile: Profiles = None,
    override: Changes = None,
    template: Template = False,
    gate: Gates = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Compare predictions with measured runs, or with start-up figures of servers: how far off, and where. A
    row that cannot be read is reported and skipped."""
    if template:
        _print_template(measurements)
        return
    path, conditions = file_and_conditions(measurements or [], where, folders=True)
    reports = list(output or ())
    _check_reports(reports, path)
    from mantile.measured.gates import Gate, judged
    from mantile.measured.startups import is_startup_table

    gates = [Gate.parse(one) for text in gate or () for one in text.split(",")]
    if is_startup_table(path):
        if conditions or reports or override or trusted or beside:
            flags = "--set, --trusted, -o and what states fields, such as --model"
            raise InputError(f"{path}: start-up figures of servers take no conditions and none of {flags}")
        _reconcile_startups(path, tuple(profile or ()), gates, as_json)
        return
    from mantile.cli.output.runs import print_reconciliation, progress
    from mantile.cli.output.tables import print_json, working
    from mantile.measured import reconcile as comparison

    measured, runs, library = _loaded(path, conditions, trusted, profile or (), beside)
    changes = dict(replaced_figure(text) for text in override or ())
    graphs = {(run.model, run.scenario().disaggregated) for run in runs}
    with progress("predicting", len(graphs)) as step:
        reconciliation = comparison.reconcile(measured, conditions, library, path.name, changes, step)
    if not len(reconciliation.table):
        raise _none_predicted(path, reconciliation.rows, reconciliation.rejected)
    unread = len(measured.rejected) if conditions else 0
    for file in reports:
        with working(f"writing {file.name}"):
            _write(reconciliation, file, unread)
    modes = reconciliation.modes()
    judged_by = modes.get("aggregated", next(iter(modes.values()), reconciliation.compared))
    passed = judged(gates, reconciliation.metrics(judged_by))
    if as_json:
        print_json(reconciliation.to_dict() | _gates_told(passed))
    else:
        print_reconciliation(reconciliation, unread, reports)
    _end(passed, as_json)


def _write(reconciliation: Reconciliation, file: Path, unread: int) -> None:
    """One file of what was compared, by its ending."""
    from mantile.cli.output.error_charts import draw_errors
    from mantile.cli.output.runs import write_summary
    from mantile.measured.report.write import write_report, write_table

    match file.suffix:
        case ".xlsx":
            write_report(reconciliation, file)
        case ".csv":
            write_table(reconciliation, file)
        case ".txt":
            write_summary(reconciliation, unread, file)
        case _:
            draw_errors(reconciliation, file)


def _gates_told(passed: Sequence[Passed]) -> dict[str, list[dict[str, object]]]:
    return {"gates": [one.to_dict() for one in passed]} if passed else {}


def _end(passed: Sequence[Passed], as_json: bool) -> None:
    """Tell of gates, and end with status 1 where one is not passed."""
    from mantile.cli.output.runs import print_gates

    if passed and not as_json:
        print_gates(passed)
    if not all(one.passed for one in passed):
        raise typer.Exit(1)


def _print_template(measurements: list[str] | None) -> None:
    """A file of measured runs to change, in YAML, or as a table where that is asked for."""
    from mantile.cli.output import look
    from mantile.measured.template import run_template

    if measurements:
        raise InputError(f"--template: prints the form of a file; leave {measurements[0]} out")
    typer.echo(run_template("csv" if look.now().form == "csv" else "yaml"), nl=False)


def _reconcile_startups(path: Path, profiles: tuple[str, ...], gates: Sequence[Gate], as_json: bool) -> None:
    """Compare what servers print of their memory when they start."""
    from mantile.cli.output.runs import progress
    from mantile.cli.output.startups import print_startups
    from mantile.cli.output.tables import print_json
    from mantile.library.profiles import load_library
    from mantile.measured.gates import judged
    from mantile.measured.startup_errors import reconcile_startups
    from mantile.measured.startups import load_startups

    startups = load_startups(path)
    with progress("estimating", len(startups.servers)) as step:
        found = reconcile_startups(startups, load_library(profiles), path.name, step)
    passed = judged(gates, found.metrics())
    if as_json:
        print_json(found.to_dict() | _gates_told(passed))
    else:
        print_startups(found)
    _end(passed, as_json)


@app.command(
    group="Measured runs",
    examples=("mantile calibrate runs.csv", "mantile calibrate runs.csv --multipliers"),
)
@with_stated
def calibrate(
    measurements: MeasurementsArgument,
    beside: dict[str, Any],
    where: Where = None,
    factor: Factors = None,
    cross_validate: LeaveOut = None,
    spread: Spread = 0.3,
    loss: Loss = "soft_l1",
    multipliers: Annotated[
        bool,
        typer.Option(
            "--multipliers",
            help="Instead fit multipliers of results, for --correction, to FILE.yaml; exit status 1 where no "
            "metric gets better by one, and no file is written then.",
        ),
    ] = False,
    profile: Profiles = None,
    output: Calibrated = _FOLDER,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Fit efficiency factors to measured runs and write them as new versions of profiles, for --profile."""
    path, conditions = file_and_conditions(measurements, where, folders=True)
    if multipliers:
        if factor or cross_validate or (spread, loss) != (0.3, "soft_l1"):
            raise InputError(
                "--factor, --cross-validate, --spread and --loss are of factors; leave --multipliers out"
            )
        from mantile.cli.correct import require_new, write_correction

        file = Path("correction.yaml") if output == _FOLDER else output
        require_new(file)
        _, runs, library = _loaded(path, conditions, trusted, profile or (), beside)
        write_correction(runs, library, path.name, file, as_json)
        return
    if path.suffix.lower() == ".xlsx":  # measurements typed into a workbook
        if conditions or cross_validate or profile or trusted or beside:
            raise InputError(
                f"{path}: --where, --cross-validate, --profile, --trusted and what states fields are for "
                "files of measured runs, not for a workbook"
            )
        _calibrate_workbook(path, None if output == _FOLDER else output, factor or [], spread, loss, as_json)
        return
    check_folder(output)
    from mantile.cli.output.runs import progress
    from mantile.cli.output.tables import working
    from mantile.library.dump import write_profiles
    from mantile.library.profiles import load_library
    from mantile.measured import calibrate as calibration
    from mantile.measured.match import match_runs
    from mantile.measured.profile_versions import FittedFactor

    leave_out = [_left_out(text) for text in cross_validate or ()]
    factors = [FittedFactor.parse(text) for text in factor or ()]
    measured, runs, library = _loaded(path, conditions, trusted, profile or (), beside)
    with progress("calibrating", None) as step:
        matched = match_runs(runs, library, step).possible()
        if not matched.runs:
            raise _none_predicted(path, len(runs), matched.rejected)
        fitted = calibration.calibrate(matched, factors, spread, leave_out, path.name, loss, progress=step)
    files = write_profiles(fitted.profiles, output)
    with working("predicting with the files written"):
        names = (run.accelerator for run in runs)
        written = with_own(load_library((*(profile or ()), *map(str, files))), names)
        fitted = calibration.with_library(fitted, matched, written)
    rejected = [*(() if conditions else measured.rejected), *matched.rejected]
    _show(fitted, rejected, files, as_json, measured.unused)


def _calibrate_workbook(
    path: Path,
    output: Path | None,
    factors: list[str],
    spread: float,
    loss: Literal["soft_l1", "cauchy"],
    as_json: bool,
) -> None:
    """Fit to what was typed at Calibration, on Efficiency of a workbook, and write a new workbook."""
    from mantile.cli.output.runs import progress
    from mantile.measured.calibrate_workbook import calibrate_workbook, calibrated_name
    from mantile.measured.profile_versions import FittedFactor

    target = output or calibrated_name(path)
    with progress("calibrating", None) as step:
        fitted = calibrate_workbook(
            path, target, [FittedFactor.parse(text) for text in factors], spread, loss, step
        )
    _show(fitted, (), [target], as_json)


def _show(
    fitted: Calibration,
    rejected: Sequence[RejectedRun],
    files: Sequence[Path],
    as_json: bool,
    unused: Mapping[str, str] | None = None,
) -> None:
    """What a calibration did, as text or as JSON.

    Args:
        unused: columns of the file that nobody read, with the reason.
    """
    from mantile.cli.output.runs import print_calibration, print_unused
    from mantile.cli.output.tables import print_json

    unused = dict(unused or {})
    if as_json:
        told = fitted.to_dict() | {"files": [str(file) for file in files], "unused_columns": unused}
        print_json(told)
    else:
        print_calibration(fitted.to_dict(), rejected, files)
        print_unused(unused)


def _loaded(
    path: Path,
    conditions: list[str],
    trusted: Path | None,
    profiles: Sequence[str],
    beside: dict[str, Any],
) -> tuple[Measurements, list[Run], Library]:
    """What a file holds, the runs of it for which the conditions hold, and the library with their chips."""
    from mantile.cli.output.tables import working
    from mantile.library.profiles import load_library
    from mantile.measured.load import load_measurements
    from mantile.measured.select import select_runs

    stated = stated_of(beside)
    with working(f"reading {path.name}"):
        measured = load_measurements(path, trusted_keys(trusted), beside=stated)
        runs = select_runs(measured.runs, conditions, str(path))
        library = with_own(load_library(tuple(profiles)), (run.accelerator for run in runs))
    _require_use(profiles, library, runs, path)
    return measured, runs, library


def trusted_keys(trusted: Path | None) -> dict[bytes, str] | None:
    """The keys of a file or folder; None where none is given."""
    if trusted is None:
        return None
    from mantile.library.signing import read_trusted

    return read_trusted(trusted)


def _require_use(pins: Sequence[str], library: Library, runs: Sequence[Run], path: Path) -> None:
    """Refuse a profile that is given and applies to none of the runs."""
    if pins:
        from mantile.library.given import require_use
        from mantile.measured.profile_versions import workers_of_run

        workers = [worker for run in runs for worker in workers_of_run(run, library)]
        require_use(pins, library, list(dict.fromkeys(workers)), str(path))


def _left_out(text: str) -> LeftOut:
    from mantile.measured.cross_validation import LeftOut

    if text not in get_args(LeftOut):
        raise InputError(f"--cross-validate {text}: expected one of {', '.join(get_args(LeftOut))}")
    return cast(LeftOut, text)


def _none_predicted(path: Path, count: int, rejected: Sequence[RejectedRun]) -> InputError:
    first = rejected[0]
    return InputError(f"{path}: none of {count} runs can be predicted; the first: {first.id}: {first.reason}")


def _check_reports(files: Sequence[Path], measurements: Path) -> None:
    """Refuse names that no report can have, before anything is worked out."""
    for file in files:
        if file.suffix not in _REPORTS:
            raise InputError(f"{file}: expected a file name that ends in {', '.join(_REPORTS)}")
        if file.suffix in (".png", ".svg"):
            from mantile.cli.output.charts import require_matplotlib

            require_matplotlib(file)
        if not file.parent.is_dir():
            raise InputError(f"{file}: there is no folder {file.parent}")
        if file.exists() and file.samefile(measurements):
            raise InputError(f"{file}: these are the measurements; expected another name for the report")


_REPORTS = (".xlsx", ".csv", ".txt", ".png", ".svg")


def check_folder(folder: Path) -> None:
    """Refuse a name that is no folder and cannot become one."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: expected a folder")
    if not folder.parent.is_dir():
        raise InputError(f"{folder}: there is no folder {folder.parent}")


def file_and_conditions(
    arguments: list[str], where: list[str] | None, folders: bool = False
) -> tuple[Path, list[str]]:
    """The file of measured runs and all conditions: arguments of the form field=value that are no file are
    conditions as well.

    Args:
        folders: whether a folder of such files will do.
    """
    condition = re.compile(r"^\w+!?=")
    files = [text for text in arguments if not condition.match(text) or Path(text).is_file()]
    if not files:
        raise InputError(
            "missing MEASUREMENTS: expected a .csv, .json, .yaml or .db file; such as: mantile reconcile "
            "runs.csv; --template prints the form of one"
        )
    if len(files) > 1:
        raise InputError(f"{files[1]}: expected one file, and conditions of the form field=value")
    if not (Path(files[0]).is_dir() and folders):
        must_exist(Path(files[0]))
    texts = [*(where or ()), *(text for text in arguments if text not in files)]
    return Path(files[0]), [
        part for text in texts for part in re.split(r"\s+(?=\w+!?=)", text.strip()) if part
    ]
