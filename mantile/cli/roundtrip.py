"""Commands that take workbooks back and apart: import, compare, audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, Workbook, app, must_exist
from mantile.cli.estimates import estimate_of
from mantile.cli.flags import with_flags
from mantile.library.errors import InputError

Compared = "Workbook, scenario .yaml, bundle, or a model with flags."


@app.command("import", group="Workbooks", examples=("mantile import run.xlsx -o edited.yaml",))
def import_(
    file: Workbook,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The scenario to write, .yaml; with --bundle .yaml or .json.",
        ),
    ],
    bundle: Annotated[
        bool,
        typer.Option(
            "--bundle",
            help="Write model and library as well: needed where figures of the library were edited.",
        ),
    ] = False,
    sign: Annotated[
        Path | None, typer.Option("--sign", metavar="KEY", help="Private key: sign the bundle.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read an edited workbook back into a scenario that `mantile build` takes, and say what was changed."""
    must_exist(file)
    _require_folder(output)
    if sign is not None and not bundle:
        raise InputError("--sign: a scenario is not signed; expected --bundle beside it")
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_import
    from mantile.roundtrip.import_workbook import import_workbook

    with working(f"reading {file.name}"):
        imported = import_workbook(file)
        imported.write(output, bundle, sign)
    if as_json:
        print_json(imported.to_dict() | {"written": str(output), "kind": "bundle" if bundle else "scenario"})
    else:
        print_import(imported, output)


@app.command(group="Workbooks", examples=("mantile compare old.xlsx new.xlsx",))
@with_flags
def compare(
    a: Annotated[str, typer.Argument(metavar="A", help=Compared)],
    b: Annotated[str, typer.Argument(metavar="B", help=Compared)],
    flags: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Compare inputs, formulas and results of two workbooks, scenarios, bundles or models; flags are for
    models. Exit status 1 if anything differs.
    """
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_comparison
    from mantile.library.models import is_model_file
    from mantile.roundtrip import compare as comparison

    documents = [
        Path(what).suffix.lower() in (".xlsx", ".yaml", ".yml") and not is_model_file(what) for what in (a, b)
    ]
    if flags and all(documents):
        raise InputError(f"{a}, {b}: flags are for models; what a file says is compared as it is")
    with working("comparing"):
        differences = comparison.compare(
            *(
                what if document else _model(what, flags)
                for what, document in zip((a, b), documents, strict=True)
            ),
            side_by_side=all(Path(what).suffix.lower() == ".xlsx" for what in (a, b)),
        )
    if as_json:
        print_json(differences.to_dict())
    else:
        print_comparison(differences)
    if differences.differ:
        raise typer.Exit(1)


def _model(what: str, flags: dict[str, Any]) -> Any:
    """A bundle in JSON as it is, or a model with flags."""
    from mantile.workbook.bundle import read_document

    if Path(what).suffix.lower() == ".json" and Path(what).is_file() and read_document(what)[1] is not None:
        return what
    return estimate_of(what, flags)


@app.command(group="Workbooks", examples=("mantile audit run.xlsx -o audit",))
def audit(
    file: Workbook,
    output: Annotated[
        list[Path],
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The audit, .xlsx or .json, or its table of rows, .csv; repeatable.",
        ),
    ],
) -> None:
    """Write everything an auditor asks of a workbook as flat tables of values: rows, assumptions, overrides,
    edits, checks. Exit status 1 if formulas were edited, or may have been: in a workbook of 0.18.0 or before.
    """
    must_exist(file)
    for path in output:
        if path.suffix.lower() not in (".xlsx", ".csv", ".json"):
            raise InputError(f"{path}: expected a file name that ends in .xlsx, .csv or .json")
        _require_folder(path)
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


def _require_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
