"""The command that says whether a workbook or bundle is what it was built as: verify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.commands import form_of, shown
from mantile.cli.output import look
from mantile.library.errors import InputError


def describe(file: Path, as_json: bool = False, everything: bool = False) -> bool:
    """Print what a workbook is; whether it verifies."""
    from mantile.cli.output.about import print_about
    from mantile.cli.output.tables import print_json, working
    from mantile.roundtrip.about import about

    with working(f"verifying {file.name}"):
        workbook = about(file)
    if as_json:
        print_json(workbook.to_dict())
    else:
        print_about(workbook, everything)
    return workbook.ok


@app.command(
    group="Workbooks",
    examples=("mantile verify run.xlsx", "mantile verify run.xlsx --about", "mantile verify --model"),
)
def verify(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A workbook, .xlsx, or a bundle.")
    ] = None,
    about: Annotated[
        bool,
        typer.Option(
            "--about", help="Also say what a workbook is: model, system, plan, when and by what it was made."
        ),
    ] = False,
    rules: Annotated[
        bool,
        typer.Option(
            "--rules", help="Check it against the rules of professional modelling; without FILE list them."
        ),
    ] = False,
    model: Annotated[
        bool, typer.Option("--model", help="Check the text of the equations; no FILE is read.")
    ] = False,
    audit: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Write all that an auditor asks as flat tables of values, to files behind -o: rows, "
            "assumptions, overrides, edits, checks; exit status 1 if formulas were edited.",
        ),
    ] = False,
    engine: Annotated[
        Literal["formulas", "libreoffice", "formualizer", "all"],
        typer.Option(
            metavar="<formulas|libreoffice|formualizer|all>",
            help="What re-evaluates the file, or all that are installed.",
        ),
    ] = "formulas",
    trusted: Annotated[
        Path | None,
        typer.Option(
            "--trusted",
            metavar="KEYS",
            help="File or folder of public keys: one of them has to have signed; PEM, base64 or hexadecimal.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Every edit, however many, and the counts by sheet.")
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it to a file instead; .md, .csv or .json; of --audit .xlsx, .json, or .csv for the "
            "table of rows, repeatable.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Re-evaluate a workbook and compare every cell; say whether it agrees, what was edited, and who signed.
    Of a bundle, whether its digest and signature hold. Exit status 1 if anything differs.
    """
    files = output or []
    if about + (rules or model) + audit > 1 or (
        (about or rules or model or audit) and (trusted or engine != "formulas")
    ):
        raise InputError("--about, --rules, --model and --audit stand alone; --engine and --trusted verify")
    if everything and (rules or model or audit):
        raise InputError("--all: it shows every edit; leave --rules, --model and --audit out")
    if audit and as_json:
        raise InputError("--json: an audit is written to files; expected -o audit.json")
    if file is None and not (rules or model):
        raise InputError("missing FILE; such as: mantile verify run.xlsx")
    if model and file is not None:
        raise InputError(f"--model: checks the text of the equations, no FILE; leave {file} out")
    if file is not None:
        must_exist(file)
    if audit and file is not None:
        _audit(file, files)
        return
    if len(files) > 1:
        raise InputError(f"--output {files[1]}: several files are for --audit; expected one")
    path = files[0] if files else None
    form = "json" if as_json else form_of(path) or look.now().form
    with shown(form, look.now().quiet, path):
        as_json = form == "json"
        if model:
            _check_equations(as_json)
        elif file is None:
            _list_rules(as_json)
        elif rules:
            _check_rules(file, as_json)
        elif about:
            if not describe(file, as_json, everything):
                raise typer.Exit(1)
        else:
            _verify(file, engine, trusted, everything, as_json)


def _verify(
    file: Path,
    engine: Literal["formulas", "libreoffice", "formualizer", "all"],
    trusted: Path | None,
    everything: bool,
    as_json: bool,
) -> None:
    """Re-evaluate a workbook, or check a bundle, and print what differs."""
    from mantile.library.signing import read_trusted

    keys = None if trusted is None else read_trusted(trusted)
    if file.suffix.lower() in (".json", ".yaml", ".yml"):
        _verify_bundle(file, keys, as_json)
        return
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.verification import print_report, print_reports
    from mantile.verification.report import Reports
    from mantile.verification.verify import verify as verify_file
    from mantile.verification.verify import verify_with_all

    with working(f"verifying {file.name} with {engine}"):
        found = verify_with_all(file, keys) if engine == "all" else verify_file(file, engine, keys)
    if as_json:
        print_json(found.to_dict())
    elif isinstance(found, Reports):
        print_reports(found, file, everything)
    else:
        print_report(found, file, everything)
    if not found.ok:
        raise typer.Exit(1)


def _verify_bundle(file: Path, keys: dict[bytes, str] | None, as_json: bool) -> None:
    """Whether a bundle can be estimated, is that of its digest, and who signed it."""
    from mantile.cli.output.tables import print_json
    from mantile.cli.output.workbooks import print_bundle
    from mantile.workbook.bundle import read_bundle

    bundle = read_bundle(file)
    bundle.estimate()
    verdict = bundle.verdict(keys)
    if as_json:
        protected = bundle.data["format"] > 1
        found = {"ok": verdict.ok, "digest": bundle.digest, "protected": protected}
        print_json(found | {"signature": verdict.to_dict()})
    else:
        print_bundle(bundle, verdict, file)
    if not verdict.ok:
        raise typer.Exit(1)


def _list_rules(as_json: bool) -> None:
    from mantile.cli.output.tables import print_json
    from mantile.cli.output.workbooks import print_rules
    from mantile.workbook.lint import RULES

    if as_json:
        print_json({"rules": [{"rule": name, "meaning": meaning} for name, meaning in RULES.items()]})
    else:
        print_rules(RULES)


def _check_equations(as_json: bool) -> None:
    from mantile.cli.output.tables import open_console, print_json, working
    from mantile.equations.text import EquationError
    from mantile.library.profiles import load_library

    with working("making every row of the equations"):
        try:
            from mantile.equations.lint_text import lint_text

            found = lint_text(load_library())
        except EquationError as error:  # a file that cannot be read
            raise InputError(str(error)) from error
    if as_json:
        print_json(vars(found) | {"findings": [*found.findings]})
    else:
        console = open_console()
        for finding in found.findings:
            console.print(finding, markup=False)
        console.print(
            f"{found.rows:,} rows of {found.files} files in {found.structures} structures: "
            + (
                "see above"
                if found.findings
                else "every row can be made, all names are known, no circle, no id twice"
            )
        )
    if found.findings:
        raise typer.Exit(1)


def _check_rules(file: Path, as_json: bool) -> None:
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_findings
    from mantile.workbook import lint as linter

    with working(f"reading {file.name}"):
        findings = linter.lint(file)
    if as_json:
        print_json({"findings": [vars(finding) for finding in findings]})
    else:
        print_findings(findings, file)
    if findings:
        raise typer.Exit(1)


def _audit(file: Path, output: list[Path]) -> None:
    """Write everything an auditor asks of a workbook as flat tables of values."""
    if not output:
        raise InputError(f"missing --output FILE; such as: mantile verify {file} --audit -o audit.xlsx")
    for path in output:
        if path.suffix.lower() not in (".xlsx", ".csv", ".json"):
            raise InputError(f"{path}: expected a file name that ends in .xlsx, .csv or .json")
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}")
        if path.exists() and path.samefile(file):
            raise InputError(f"{path}: this is the workbook; expected another name for the audit")
    from mantile.cli.output.tables import working
    from mantile.cli.output.workbooks import print_audit
    from mantile.roundtrip.audit import audit as audit_file

    with working(f"reading {file.name}"):
        report = audit_file(file)
        for path in output:
            report.write(path)
    print_audit(report, output)
    if not report.ok:
        raise typer.Exit(1)
