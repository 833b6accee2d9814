"""Commands that set up: settings, a scenario to begin with, keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.library.errors import InputError

settings = app.group(
    "config",
    "Your settings: a file, defaults of fields, folders of your own; keys, and a scenario to begin with.",
    "Library and set-up",
    otherwise="show",
    asks=False,
)
keys = settings.group("keys", "Keys that sign workbooks, bundles and records, Ed25519.")


@settings.command("show", examples=("mantile config", "mantile config --init"))
def show(
    write: Annotated[bool, typer.Option("--init", help="Write the file of settings, commented.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show your settings: the file, defaults of fields, folders of your own; MANTILE_ variables count too.

    The word show may be left out.
    """
    from mantile.cli.config import TEMPLATE, config_path, library_folders, wanted
    from mantile.cli.output import look
    from mantile.cli.output.tables import new_table, open_console, print_json

    path = config_path()
    if write:
        from mantile.library.files import replacing

        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, overwrite=False) as temporary:
            temporary.write_text(TEMPLATE, encoding="utf-8")
        typer.echo(f"{path}: written")
        return
    folders = [str(folder) for folder in library_folders()]
    held = wanted()
    if as_json:
        print_json(
            {
                "file": str(path),
                "there": path.is_file(),
                "library": folders,
                "defaults": {name: value for name, (value, _) in held.items()},
            }
        )
        return
    out = open_console()
    out.print(f"{path}{'' if path.is_file() else ' (not there; --init writes it)'}")
    table = new_table("default", "value", "from")
    for name, (value, place) in held.items():
        table.add_row(name, str(value), place)
    if held or look.now().form == "csv":
        out.print(table)
    for folder in folders:
        out.print(f"library folder {folder}")


@settings.command(
    "scenario", examples=("mantile config scenario chat.yaml --model llama-3.3-70b --gpu h100-sxm",)
)
def scenario(
    path: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The scenario to write; not there yet.")],
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="The model in it.")
    ] = "llama-3.3-70b",
    gpu: Annotated[
        str, typer.Option("--accelerator", "--gpu", metavar="<chip>", help="The accelerator in it.")
    ] = "h100-sxm",
) -> None:
    """Write a scenario with a comment on each field that most people set."""
    from mantile.library.files import replacing
    from mantile.library.models import load_model
    from mantile.library.profiles import load_library
    from mantile.library.scenario_fields import SCENARIO_FIELDS

    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{path}: expected a file name that ends in .yaml")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    load_model(model)
    stated: dict[str, Any] = {
        "accelerator": load_library().accelerator(gpu).id,
        "tp": 4,
        "input_tokens": 2048,
        "output_tokens": 256,
        "concurrency": 16,
    }
    lines = [f"# A scenario: mantile estimate {path.name}", f"model: {model}"]
    for name, declared in SCENARIO_FIELDS.items():
        if not declared.common:
            continue
        choices = f" ({', '.join(declared.choices)})" if declared.choices else ""
        lines.append(f"\n# {declared.label}: {declared.meaning}{choices}")
        default = declared.default if declared.default is not None else ""
        lines.append(f"{name}: {stated[name]}" if name in stated else f"# {name}: {default}".rstrip())
    with replacing(path, overwrite=False) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    typer.echo(f"{path}: written; change it, then: mantile estimate {path}")


@keys.command("new", examples=("mantile config keys new me.key",))
def new(
    file: Annotated[
        Path, typer.Argument(metavar="FILE.key", help="The private key; the public one is FILE.pub.")
    ],
) -> None:
    """Write a new private key, and the public key beside it that others trust."""
    from mantile.library.signing import new_key

    public, identifier = new_key(file)
    typer.echo(f"{file}: private key {identifier}; keep it to yourself\n{public}: public key, for --trusted")


@keys.command("list", examples=("mantile config keys list me.pub",))
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
