"""What the command line shows of launch lines: a scenario file and what its flags mean for the estimate; the
files that start a scenario."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mantile.cli.flags import field_flag
from mantile.cli.output.tables import open_console
from mantile.library.dump import dump_scenario
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.launch import Launch, Remark

if TYPE_CHECKING:
    from mantile.estimates.launch import DoesNotFit
    from mantile.estimates.launch import Launch as Started

_WIDTH = 78  # of a comment


def scenario_text(launch: Launch) -> str:
    """A scenario file; comments at its head say what it does not follow, and what it lacks."""
    lines = [f"# {line}".rstrip() for line in _comments(launch, _WIDTH)]
    return "\n".join([*lines, dump_scenario(launch.fields)])


def print_launch(launch: Launch, output: Path) -> None:
    """What was read, what the estimate does not follow, and what to do next."""
    console = open_console()
    for line in _comments(launch, min(console.width, 100)):
        console.print(line)
    fields = ", ".join(
        f"{name} {value}" for name, value in launch.fields.items() if not isinstance(value, list | dict)
    )
    console.print(f"{output}: written: {fields}")
    if launch.missing:
        console.print(f"next: add {', '.join(launch.missing)} to {output}")
    else:
        console.print(f"next: mantile estimate {output}")


def _comments(launch: Launch, width: int) -> Iterator[str]:
    yield f"from a launch line of {launch.framework}"
    yield from _remarks("not modelled:", launch.not_modelled, width)
    yield from _remarks("left to the engine:", launch.defaults, width)
    if launch.ignored:
        yield from _wrapped(f"says nothing about speed: {', '.join(launch.ignored)}", width)
    if launch.missing:
        flags = ", ".join(f"{name} ({field_flag(name)})" for name in launch.missing)
        yield from _wrapped(f"missing: {flags}", width)


def _remarks(title: str, remarks: tuple[Remark, ...], width: int) -> Iterator[str]:
    if remarks:
        yield title
    for remark in remarks:
        yield from textwrap.wrap(
            f"{remark.flag}: {remark.meaning}",
            width,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )


def _wrapped(text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(text, width, subsequent_indent="  ", break_on_hyphens=False)


def launch_dict(started: Started, files: Mapping[str, str]) -> dict[str, Any]:
    """What `mantile launch --json` prints."""
    return {
        "files": dict(files),
        "flags": started.flags(),
        "servers": [
            {
                "server": server.role or "server",
                "framework": server.table.id,
                "copies": server.copies,
                "machines": server.machines,
                "accelerators_per_machine": server.accelerators,
                "ram_per_machine_bytes": server.ram,
                "health": server.table.server.listening.health,
                "port": server.table.server.listening.port,
                "not_expressed": [vars(remark) for remark in server.not_expressed],
                "defaults": [vars(remark) for remark in server.left],
                "fill_in": [vars(remark) for remark in server.blanks],
            }
            for server in started.servers
        ],
        "checks": {"errors": list(started.failing)},
    }


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write the files, commands so that they can be run."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror}") from error
    for name, text in files.items():
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
        if name.endswith(".sh"):
            (folder / name).chmod(0o755)


def print_files(started: Started, files: Mapping[str, str], folder: Path | None) -> None:
    """The files themselves, or where they were written, what to fill in, and what to do next."""
    if folder is None:
        for name, text in files.items():
            print(*([f"# --- {name}"] if len(files) > 1 else []), text, sep="\n", end="")
        return
    console = open_console()
    width = min(console.width, 100)
    for name in files:
        console.print(f"{folder / name}: written")
    for title, remarks in (
        ("not expressed:", {remark for server in started.servers for remark in server.not_expressed}),
        ("fill in:", {remark for server in started.servers for remark in server.blanks}),
    ):
        for line in _remarks(title, tuple(sorted(remarks, key=lambda remark: remark.flag)), width):
            console.print(line)
    for error in started.failing:
        console.print(f"! {error['code']}: {error['message']}")
    if "kubernetes.yaml" in files:
        console.print(f"next: kubectl apply -f {folder / 'kubernetes.yaml'}")
    else:
        first = next(name for name in files if name.endswith(".sh"))
        console.print(f"next: sh {folder / first}")


def print_refused(error: DoesNotFit) -> None:
    """Why nothing is launched, and the ways out."""
    console = open_console()
    for line in str(error).splitlines():
        console.print(line)
    console.print("nothing is written; another plan, or --anyway")
