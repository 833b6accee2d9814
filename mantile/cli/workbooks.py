"""Commands that read a workbook: open, verify, lint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mantile.cli.application import AsJson, OptionalWorkbook, Workbook, app, must_exist
from mantile.library.errors import InputError

Everything = Annotated[
    bool, typer.Option("--all", "-a", help="Every edit, however many; of verify also the counts by sheet.")
]


@app.command("open", group="Workbooks", examples=("mantile open run.xlsx",))
def open_(file: Workbook, everything: Everything = False, as_json: AsJson = False) -> None:
    """Say what a workbook is: whether it verifies, what was edited, model, system, plan, when it was made and
    by what, what it says. Exit status 1 if it does not verify.
    """
    must_exist(file)
    if not describe(file, as_json, everything):
        raise typer.Exit(1)


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


@app.command(group="Workbooks", examples=("mantile verify run.xlsx",))
def verify(
    file: Workbook,
    engine: Annotated[
        Literal["formulas", "libreoffice", "formualizer", "all"],
        typer.Option(help="What re-evaluates the file; all: every one that is installed."),
    ] = "formulas",
    trusted: Annotated[
        Path | None,
        typer.Option(
            "--trusted",
            metavar="KEYS",
            help="File or folder of public keys, PEM, base64 or hexadecimal: one of them has to have signed.",
        ),
    ] = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Re-evaluate a workbook and compare every cell; say whether it agrees, what was edited, and who signed.
    Of a bundle, whether its digest and signature hold. Exit status 1 if anything differs.
    """
    must_exist(file)
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


@app.command(group="Workbooks", examples=("mantile lint run.xlsx", "mantile lint --model"))
def lint(
    file: OptionalWorkbook = None,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules; no FILE is read.")] = False,
    model: Annotated[
        bool, typer.Option("--model", help="Check the text of the equations; no FILE is read.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a workbook against the rules of professional modelling, or the text of the equations. Exit status
    1 if any is broken.
    """
    if (file is not None) + rules + model != 1:
        raise InputError(
            "expected a FILE to check, --rules alone to list the rules, or --model alone for the equations"
        )
    if model:
        _lint_model(as_json)
    elif file is None:
        _list_rules(as_json)
    else:
        _lint(file, as_json)


def _list_rules(as_json: bool) -> None:
    from mantile.cli.output.tables import print_json
    from mantile.cli.output.workbooks import print_rules
    from mantile.workbook.lint import RULES

    if as_json:
        print_json({"rules": [{"rule": name, "meaning": meaning} for name, meaning in RULES.items()]})
    else:
        print_rules(RULES)


def _lint_model(as_json: bool) -> None:
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


def _lint(file: Path, as_json: bool) -> None:
    must_exist(file)
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
