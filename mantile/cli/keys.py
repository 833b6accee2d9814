"""Keys to sign with, and those that are trusted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.commands import App, Commands

keys = App(cls=Commands, help="Keys that sign workbooks, bundles and records, Ed25519.", no_args_is_help=True)
app.add_typer(keys, name="keys", rich_help_panel="Workbooks")


@keys.command("new", examples=("mantile keys new me.key",))
def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.key", help="The private key; the public one is FILE.pub.")
    ],
) -> None:
    """Write a new private key, and the public key beside it that others trust."""
    from mantile.library.signing import new_key

    public, identifier = new_key(file)
    typer.echo(f"{file}: private key {identifier}; keep it to yourself\n{public}: public key, for --trusted")


@keys.command("list", examples=("mantile keys list me.pub",))
def list_(
    file: Annotated[Path, typer.Argument(metavar="KEYS", help="File or folder of public keys.")],
    as_json: AsJson = False,
) -> None:
    """List public keys: the id of each, and whose it is."""
    from mantile.library.signing import key_id, read_trusted

    found = {key_id(public): name for public, name in read_trusted(file).items()}
    from mantile.cli.output.tables import new_table, open_console, print_json

    if as_json:
        print_json({"keys": [{"id": identifier, "name": name} for identifier, name in found.items()]})
        return
    table = new_table("id", "name")
    for row in found.items():
        table.add_row(*row)
    open_console().print(table)
