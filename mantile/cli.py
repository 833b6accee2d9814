"""The command line. Each command parses, calls one public function and prints; heavy modules are imported inside.

Exit status: 0 fine, 1 a check or verification failed, 2 the input was wrong.
"""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

import mantile
from mantile.flags import replaced_figure, with_flags
from mantile.flags import scenario as scenario_of
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.estimation import Estimate

app = typer.Typer(
    help="What an LLM deployment can really reach, as a workbook in which every number is a live formula.",
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
)  # fmt: skip

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, in SI units.")]
EXAMPLE: dict[str, Any] = {
    "model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 1024, "output_tokens": 128, "concurrency": 8,
}  # fmt: skip


def _estimate(what: str, flags: dict[str, Any]) -> Estimate:
    scenario, name = scenario_of(what, flags)
    from mantile.estimation import estimate

    return estimate(scenario, name=name)


def _estimate_or_example(what: str | None, flags: dict[str, Any]) -> tuple[Estimate, str]:
    """An estimate and what to call it; without a model or scenario, of a small example, changed by the flags."""
    if what is not None:
        found = _estimate(what, flags)
        return found, found.title
    found = _estimate(EXAMPLE["model"], {key: value for key, value in EXAMPLE.items() if key != "model"} | flags)
    values = found.columns[0].values
    return found, (f"{found.title}, {values['input_tokens']} input and {values['output_tokens']} output tokens, "
                   f"concurrency {values['concurrency']} (no MODEL given: the built-in example)")  # fmt: skip


def _exit_on_failed_checks(found: Estimate) -> None:
    """Exit status 1 where an error check of any column fails; what was asked for has been written or printed."""
    if any(found.results(column)["checks"]["errors"] for column in range(len(found.columns))):
        raise typer.Exit(1)


What = Annotated[str, typer.Argument(metavar="MODEL_OR_SCENARIO", help="Model id, config.json, model folder or scenario .yaml.")]
Maybe = Annotated[
    str | None, typer.Argument(metavar="[MODEL_OR_SCENARIO]", help="As in `mantile estimate`; a small example if left out.")
]
Figure = Annotated[str, typer.Argument(metavar="QUANTITY", help="Id of a figure, such as serving.tpot.")]
Workbook = Annotated[Path, typer.Argument(metavar="FILE", help="A workbook, .xlsx.")]


@app.command()
@with_flags
def build(
    what: What,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.xlsx", help="The workbook to write.")],
    flags: dict[str, Any],
) -> None:
    """Write the workbook of an estimate."""
    if output.suffix != ".xlsx":
        raise InputError(f"{output}: expected a file name that ends in .xlsx")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    from mantile.printing import print_built, working

    with working(f"building {output.name}"):
        found = _estimate(what, flags)
        from mantile.workbook.write import build_workbook

        build_workbook(found, output)
    print_built(found, output)
    _exit_on_failed_checks(found)


@app.command()
@with_flags
def estimate(what: What, flags: dict[str, Any], as_json: AsJson = False) -> None:
    """Print the results of an estimate, without a workbook."""
    found = _estimate(what, flags)
    from mantile.printing import print_estimate, print_json

    if as_json:
        base, *variants = (found.results(column) for column in range(len(found.columns)))
        print_json(base | {"variants": variants} if variants else base)
    else:
        print_estimate(found)
    _exit_on_failed_checks(found)


@app.command()
@with_flags
def plan(what: What, flags: dict[str, Any], as_json: AsJson = False) -> None:
    """Print which accelerator holds what, the messages between them, and every reason why a plan is not possible."""
    found = _estimate(what, flags)
    from mantile import planning
    from mantile.printing import print_json, print_plan

    plans = [planning.plan(found, column) for column in range(len(found.columns))]
    if as_json:
        base, *variants = plans
        print_json(base | {"variants": variants} if variants else base)
    else:
        for made in plans:
            print_plan(made, found.title)
    _exit_on_failed_checks(found)


@app.command()
def verify(
    file: Workbook,
    engine: Annotated[Literal["formulas", "libreoffice"], typer.Option(help="What re-evaluates the file.")] = "formulas",
    as_json: AsJson = False,
) -> None:
    """Re-evaluate a workbook and compare every cell; report what was edited. Exit status 1 if anything differs."""
    _must_exist(file)
    from mantile.printing import print_json, print_report, working
    from mantile.verification import verify as verify_file

    with working(f"verifying {file.name} with {engine}"):
        report = verify_file(file, engine)
    if as_json:
        print_json(report.to_dict())
    else:
        print_report(report, file)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def lint(file: Workbook, as_json: AsJson = False) -> None:
    """Check a workbook against the rules of professional modelling. Exit status 1 if any is broken."""
    _must_exist(file)
    from mantile.printing import print_findings, print_json, working
    from mantile.workbook import rules

    with working(f"reading {file.name}"):
        findings = rules.lint(file)
    if as_json:
        print_json({"findings": [{key: getattr(finding, key) for key in ("rule", "sheet", "cell", "message")}
                                 for finding in findings]})  # fmt: skip
    else:
        print_findings(findings, file)
    if findings:
        raise typer.Exit(1)


@app.command()
@with_flags
def explain(quantity: Figure, flags: dict[str, Any], what: Maybe = None, as_json: AsJson = False) -> None:
    """Say what a figure is, how it is worked out, from what and why."""
    found, title = _estimate_or_example(what, flags)
    from mantile import explanation
    from mantile.printing import print_explanation, print_json

    explained = explanation.explain(found, quantity)
    if as_json:
        print_json(explained.to_dict())
    else:
        print_explanation(explained, title)


@app.command()
@with_flags
def trace(
    quantity: Figure,
    flags: dict[str, Any],
    what: Maybe = None,
    depth: Annotated[int, typer.Option(min=1, help="Levels to show.")] = 3,
    dependents: Annotated[bool, typer.Option("--dependents", help="What follows from the figure instead.")] = False,
) -> None:
    """Show the figures that a figure follows from, as a tree."""
    found, title = _estimate_or_example(what, flags)
    from mantile import explanation
    from mantile.printing import print_trace

    print_trace(explanation.trace(found, quantity, depth=depth, forward=dependents), title)


@app.command()
def ir(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Model id, config.json, model folder or hub id.")],
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    tokens: Annotated[int | None, typer.Option(min=1, max=10_000_000, help="Count the FLOPs of a prompt of this length.")] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model: parameters, KV-cache bytes, modules and tensors."""
    from mantile.ir.build import build_ir
    from mantile.ir.counts import describe
    from mantile.library.models import load_model
    from mantile.printing import print_description, print_json

    description = describe(build_ir(load_model(model)), tokens, tensors)
    if as_json:
        print_json(description)
    else:
        print_description(description)


Measured = Annotated[
    list[str],
    typer.Argument(metavar="MEASUREMENTS", help="Measured runs, .csv, .json or .yaml; conditions FIELD=VALUE may follow."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD=VALUE", help="Only runs for which it holds: model=a,b or tp!=1; repeatable, or several with blanks."),
]
Profiles = Annotated[
    list[str] | None,
    typer.Option(metavar="FOLDER/ID@VERSION", help="Use another version of a profile, or an efficiency profile of one's own, FILE.yaml; repeatable."),
]


@app.command()
def reconcile(
    measurements: Measured,
    where: Where = None,
    output: Annotated[
        list[Path] | None, typer.Option("--output", "-o", metavar="FILE", help="A report, .xlsx, or the table of all runs, .csv; repeatable.")
    ] = None,
    profile: Profiles = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", metavar="ID=VALUE", help="Replace a figure in all runs, in its cell's unit; repeatable.")
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
    from mantile.library.measurements import load_measurements
    from mantile.library.profiles import load_library
    from mantile.printing import print_json, working
    from mantile.printing_runs import print_reconciliation, progress
    from mantile.reconciliation import reconcile as compare
    from mantile.reconciliation import selected

    with working(f"reading {path.name}"):
        library = load_library(tuple(profile or ()))
        found = load_measurements(path)
        graphs = len({(run.model, run.scenario().disaggregated) for run in selected(found.runs, conditions, str(path))})
    with progress("predicting", graphs) as step:
        compared = compare(found, conditions, library, path.name, dict(replaced_figure(text) for text in override or ()), step)
    if not len(compared.table):
        first = compared.broken[0]
        raise InputError(f"{path}: none of {compared.rows} runs can be answered; the first: {first.id}: {first.reason}")
    for file in outputs:
        with working(f"writing {file.name}"):
            from mantile.workbook.report import write_report, write_table

            (write_report if file.suffix == ".xlsx" else write_table)(compared, file)
    if as_json:
        print_json(compared.to_dict())
    else:
        print_reconciliation(compared, len(found.broken) if conditions else 0, outputs)


@app.command()
def calibrate(
    measurements: Measured,
    where: Where = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[CONDITION][@LEVEL]", help="A factor that may move: gemm_bandwidth_scale[fp8]@pair; levels global, generation, "
                     "framework, pair; repeatable.  [default: the usual ones, for each accelerator with its framework]"),
    ] = None,
    cross_validate: Annotated[
        list[str] | None,
        typer.Option(metavar="config|model|system|framework", help="Also predict runs by a fit without them, leaving out each in turn; repeatable."),
    ] = None,
    spread: Annotated[float, typer.Option(min=0.001, max=10, help="Of a log factor around the profile it starts from; the smaller, the closer.")] = 0.3,
    loss: Annotated[Literal["soft_l1", "cauchy"], typer.Option(help="How outliers count: less than squared, or hardly at all.")] = "soft_l1",
    profile: Profiles = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER|FILE.xlsx", help="Folder for the profiles; of a workbook, the new one, by default "
                                                "NAME-calibrated.xlsx.")] = Path("calibrated"),
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Fit efficiency factors to measured runs and write them as new versions of profiles, for --profile."""
    path, conditions = _measured(measurements, where)
    if path.suffix.lower() == ".xlsx":  # measurements typed into a workbook
        if conditions or cross_validate or profile:
            raise InputError(f"{path}: --where, --cross-validate and --profile are for files of measured runs, not for a workbook")
        _calibrate_workbook(path, None if output == Path("calibrated") else output, factor or [], spread, loss, as_json)
        return
    if not (output.is_dir() or (output.parent.is_dir() and not output.exists())):
        raise InputError(f"{output}: expected a folder" if output.exists() else f"{output}: there is no folder {output.parent}")
    from mantile import calibration
    from mantile.library.dump import write_profiles
    from mantile.library.measurements import load_measurements
    from mantile.library.profiles import load_library
    from mantile.printing import print_json, working
    from mantile.printing_runs import print_calibration, progress
    from mantile.reconciliation import prepare, selected

    wrong = [word for word in cross_validate or () if word not in get_args(calibration.Kept)]
    if wrong:
        raise InputError(f"--cross-validate {wrong[0]}: expected one of {', '.join(get_args(calibration.Kept))}")
    choices = [calibration.Choice.parse(text) for text in factor or ()]
    with working(f"reading {path.name}"):
        library = load_library(tuple(profile or ()))
        found = load_measurements(path)
        runs = selected(found.runs, conditions, str(path))
    with progress("calibrating", None) as step:
        prepared = prepare(runs, library, step)
        if not prepared.cases:
            first = prepared.refused[0]
            raise InputError(f"{path}: none of {len(runs)} runs can be answered; the first: {first.id}: {first.reason}")
        made = calibration.calibrate(prepared, choices, spread, [*(cross_validate or ())], path.name, loss, step=step)
    files = write_profiles(made.profiles, output)
    if as_json:
        print_json(made.to_dict() | {"files": [str(file) for file in files]})
    else:
        print_calibration(made.to_dict(), [*(() if conditions else found.broken), *prepared.refused], files)


def _calibrate_workbook(path: Path, output: Path | None, factors: list[str], spread: float, loss: Literal["soft_l1", "cauchy"], as_json: bool) -> None:
    """Fit to what was typed on the Calibration sheet of a workbook, and write a new workbook."""
    from mantile.calibration import Choice
    from mantile.printing import print_json
    from mantile.printing_runs import print_calibration, progress
    from mantile.recalibration import calibrate_workbook, calibrated_name

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
    _must_exist(Path(files[0]))
    texts = [*(where or ()), *(text for text in arguments if text not in files)]
    return Path(files[0]), [part for text in texts for part in re.split(r"\s+(?=\w+!?=)", text.strip()) if part]


def _library(kind: str, text: str) -> typer.Typer:
    """The commands list and show of one part of the library."""
    group = typer.Typer(help=text, no_args_is_help=True, rich_markup_mode=None)

    @group.command("list")
    def _list(as_json: AsJson = False) -> None:
        """List what we ship."""
        from mantile import catalogue
        from mantile.printing import print_json, print_rows

        rows = catalogue.listing(kind)
        if as_json:
            print_json({kind: rows})
        else:
            print_rows(rows)

    @group.command("show")
    def _show(identifier: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
        """Show one entry, every figure with its source."""
        from mantile import catalogue
        from mantile.printing import print_entry, print_json

        entry = catalogue.entry(kind, identifier)
        if as_json:
            print_json(entry)
        else:
            print_entry(entry)

    app.add_typer(group, name=kind)
    return group


_models = _library("models", "The models of the library.")
_hardware = _library("hardware", "Accelerators and the systems they come in.")
_library("profiles", "Efficiency profiles: how much of the hardware is reached.")


@_models.command("diff")
def _diff(
    left: Annotated[str, typer.Argument(metavar="A", help="Model id, config.json, model folder or hub id.")],
    right: Annotated[str, typer.Argument(metavar="B", help="The model to compare it with.")],
    as_json: AsJson = False,
) -> None:
    """Compare two models field by field: facts, layers, counts and tensors."""
    _print_diff("models", left, right, as_json)


@_hardware.command("diff")
def _hardware_diff(
    left: Annotated[str, typer.Argument(metavar="A", help="Accelerator or system, by id or id@version.")],
    right: Annotated[str | None, typer.Argument(metavar="B", help="What to compare it with.  [default: the current version of A]")] = None,
    version: Annotated[str | None, typer.Option("--version", metavar="V", help="Take A in this version.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two accelerators, with system and prices, or two systems, or two versions of one, figure by figure."""
    identifier, _, named = left.partition("@")
    if version is not None and named:
        raise InputError(f"--version {version}: {left} names a version already; expected one of the two")
    if not (version or named or right):
        raise InputError(f"missing B: expected what to compare {left} with, or --version to compare it with an older version of itself")
    _print_diff("hardware", f"{left}@{version}" if version else left, right or identifier, as_json)


@_hardware.command("add")
def _add(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Id of the accelerator, such as my-chip.")],
    folder: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where ID.yaml lies.  [default: profiles/accelerators if there is one, else here]"),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing, only say what the file lacks.")] = False,
) -> None:
    """Write ID.yaml, an accelerator to fill in from its spec sheet; where it exists, say what it still lacks. Exit status 1 if anything."""
    from mantile.library import datasheet
    from mantile.printing import print_datasheet

    usual = Path("profiles", "accelerators")
    path = (folder or (usual if usual.is_dir() else Path())) / f"{identifier.removesuffix('.yaml')}.yaml"
    if not check and not path.exists():
        datasheet.write_skeleton(path.stem, path)
        typer.echo(f"{path}: written; fill it in, then `mantile hardware add {path.stem} --check` says what it still lacks")
        return
    problems, doubts = datasheet.check(path)
    print_datasheet(path, problems, doubts, f"--accelerator {path}")
    if problems:
        raise typer.Exit(1)


def _print_diff(kind: str, left: str, right: str, as_json: bool) -> None:
    from mantile import catalogue
    from mantile.printing import print_differences, print_json

    found = catalogue.differences(kind, left, right)
    if as_json:
        print_json(found)
    else:
        print_differences(found)


def _must_exist(file: Path) -> None:
    if not file.is_file():
        raise InputError(f"{file}: {'this is a folder, not a file' if file.is_dir() else 'no such file'}")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mantile {mantile.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None: ...


def main() -> None:
    """Run the command line; wrong input becomes a message and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may hold characters that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="mantile")
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))


def _fail(message: str) -> None:
    for line in message.splitlines():
        print(f"mantile: {line}", file=sys.stderr)
    raise SystemExit(2)
