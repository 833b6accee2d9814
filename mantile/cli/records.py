"""Commands on records of measured runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.measured import Trusted, trusted_keys
from mantile.library.errors import InputError, quoted

if TYPE_CHECKING:
    from mantile.records.store import Stored

records = app.group(
    "records",
    "Records of measured runs: immutable, in a database.",
    "Measured runs",
)

Database = Annotated[Path, typer.Argument(metavar="FILE.db", help="A database of records.")]


@records.command("list", examples=("mantile records list records.db",))
def list_(file: Database, trusted: Trusted = None, as_json: AsJson = False) -> None:
    """List the records of a database, each verified."""
    found = _read(file, trusted)
    if as_json:
        _print_json({"records": [one.record.flat() for one in found]})
        return
    from mantile.cli.output.bench import print_records

    print_records(file.name, found)


@records.command("show", examples=("mantile records show records.db 3f31",))
def show(
    file: Database,
    identifier: Annotated[str, typer.Argument(metavar="ID", help="The first digits of the id of a record.")],
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Show all of a record: what was asked, every figure, telemetry, who signed."""
    found = [one for one in _read(file, trusted) if one.id.startswith(identifier.lower())]
    if len(found) != 1:
        raise InputError(
            f"{file}: {len(found)} records whose id begins with {quoted(identifier)}; expected one: "
            "mantile records list shows them"
        )
    if as_json:
        _print_json(
            found[0].record.flat()
            | {"run": found[0].record.run, "telemetry": found[0].record.telemetry}
            | {"signature": found[0].verdict.to_dict()}
        )
        return
    from mantile.cli.output.bench import print_record

    print_record(found[0])


@records.command("import", examples=("mantile records import records.db runs.yaml",))
def import_(
    file: Database,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Another database, an export, .parquet, or measured runs, .csv, .json or .yaml.",
        ),
    ],
    sign: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.key", help="Sign those that nobody signed, with a key of `mantile config keys new`."
        ),
    ] = None,
    trusted: Trusted = None,
    as_json: AsJson = False,
) -> None:
    """Add records to a database, each verified; those that it has already stay. A run needs a date."""
    from mantile.library.signing import read_private_key
    from mantile.records.store import add, is_database, stored

    must_exist(source)
    key = None if sign is None else read_private_key(sign)
    rejected: list[dict[str, str]] = []
    unused: Mapping[str, str] = {}
    if source.suffix == ".parquet":
        from mantile.records.columns import read_parquet

        found = read_parquet(source, trusted_keys(trusted))
    elif is_database(source):
        found = _read(source, trusted)
    else:
        found, rejected, unused = _runs(source, trusted)
    found = [stored(one.record, one.signature, key) for one in found]
    new = add(file, found)
    if as_json:
        _print_json(
            {
                "read": len(found),
                "new": new,
                "rejected": rejected,
                "unused_columns": dict(unused),
                "records": str(file),
            }
        )
        return
    typer.echo(f"{file}: {new} new records; {len(found) - new} it had already")
    for one in rejected:
        typer.echo(f"  not taken: {one['id']}: {one['reason']}")
    for column, why in unused.items():
        typer.echo(f"  column not used: {column}: {why}")


def _runs(source: Path, trusted: Path | None) -> tuple[list[Stored], list[dict[str, str]], Mapping[str, str]]:
    """Measured runs as records, those that cannot be one, and columns that nobody read."""
    from mantile.measured.load import load_measurements
    from mantile.measured.recorded import record_of
    from mantile.records.store import stored

    measured = load_measurements(source, trusted_keys(trusted))
    rejected = [{"id": run.id, "reason": run.reason} for run in measured.rejected]
    found = []
    for run in measured.runs:
        try:
            found.append(stored(record_of(run)))
        except InputError as error:
            rejected.append({"id": run.id, "reason": str(error).removeprefix(f"{run.id}: ")})
    if not found:
        raise InputError(f"{source}: none of its runs can be a record; the first: {rejected[0]['reason']}")
    return found, rejected, measured.unused


@records.command("export", examples=("mantile records export records.db -o records.parquet",))
def export(
    file: Database,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Whole records with signatures, .parquet, or one mapping of plain fields each, .json.",
        ),
    ],
    trusted: Trusted = None,
) -> None:
    """Write the records of a database for other programs; a .parquet can be imported again."""
    found = _read(file, trusted)
    if output.suffix not in (".parquet", ".json"):
        raise InputError(f"{output}: expected a file name that ends in .parquet or .json")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    if output.suffix == ".parquet":
        from mantile.records.columns import write_parquet

        write_parquet(output, found)
    else:
        from mantile.library.documents import json_text
        from mantile.library.files import replacing

        with replacing(output) as temporary:
            text = json_text({"runs": [one.record.flat() for one in found]})
            temporary.write_text(text + "\n", encoding="utf-8")
    typer.echo(f"{output}: {len(found)} records")


@records.command("verify", examples=("mantile records verify records.db --trusted me.pub",))
def verify(file: Database, trusted: Trusted = None, as_json: AsJson = False) -> None:
    """Verify every record: its content, its signature, and that none lacks. Exit status 1 if anything is
    wrong."""
    from collections import Counter

    must_exist(file)
    try:
        found, why = _read(file, trusted), None
    except InputError as error:
        found, why = [], str(error)
    states = Counter(one.verdict.status for one in found)
    if as_json:
        _print_json({"ok": why is None, "records": len(found), "signatures": dict(states), "why": why})
    elif why is None:
        told = ", ".join(f"{count} {state}" for state, count in states.items())
        typer.echo(
            f"{file}: {len(found)} records, all as they were written{f'; signatures: {told}' if told else ''}"
        )
    else:
        typer.echo(why)
    if why is not None:
        raise typer.Exit(1)


def _read(file: Path, trusted: Path | None) -> list[Stored]:
    from mantile.records.store import read

    return read(file, trusted_keys(trusted))


def _print_json(data: dict[str, Any]) -> None:
    from mantile.cli.output.tables import print_json

    print_json(data)
