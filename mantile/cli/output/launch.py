"""What the command line shows of a launch line: a scenario file, and what its flags mean for the estimate."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from mantile.cli.flags import field_flag
from mantile.cli.output.tables import open_console
from mantile.library.dump import dump_scenario
from mantile.library.launch import Launch, Remark

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
