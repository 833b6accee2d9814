"""Commands that read a workbook: verify, lint."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from mantile.cli.app import AsJson, Workbook, app, must_exist


@app.command()
def verify(
    file: Workbook,
    engine: Annotated[
        Literal["formulas", "libreoffice"], typer.Option(help="What re-evaluates the file.")
    ] = "formulas",
    as_json: AsJson = False,
) -> None:
    """Re-evaluate a workbook and compare every cell; report what was edited. Exit status 1 if anything differs."""
    must_exist(file)
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_report
    from mantile.verify.verify import verify as verify_file

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
    must_exist(file)
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_findings
    from mantile.workbook import lint as rules

    with working(f"reading {file.name}"):
        findings = rules.lint(file)
    if as_json:
        print_json(
            {
                "findings": [
                    {key: getattr(finding, key) for key in ("rule", "sheet", "cell", "message")}
                    for finding in findings
                ]
            }
        )
    else:
        print_findings(findings, file)
    if findings:
        raise typer.Exit(1)
