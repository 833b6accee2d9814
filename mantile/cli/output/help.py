"""Help as people read it: what a command does, examples, options in groups."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from mantile.cli.output.look import PIPE_WIDTH, width

_OWN = "Options"
_RARE = " (rare)"
_LAST = ("Model and workbook", "Output")
_ORDER = ("Deployment", "Workload", "Power and price")
_PANELS = (
    "Ask about a deployment",
    "Choose a deployment",
    "Workbooks",
    "Measured runs",
    "Library and set-up",
)
_INDENT = 2
_NAMES = 34  # columns of names, at most, beside which text stands


def command_help(command: Any, ctx: Any, every: bool) -> str:
    """The help of one command: what is needed and what most people set, or all options in groups.

    Args:
        every: all of them.
    """
    columns = _columns()
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option"]
    shape = " ".join(param.metavar or param.name.upper() for param in arguments)
    parts = [f"Usage: {ctx.command_path} {shape} [OPTIONS]".replace("  ", " ")]
    parts.append(_paragraph(command.help or "", columns))
    examples: Sequence[str] = getattr(command, "examples", ())
    lines = [f"{' ' * _INDENT}{line}" for one in examples for line in broken(one, columns)]
    example = "\n".join(["For example:", *lines]) if lines else ""
    said = [(param.metavar or param.name, param.help or "") for param in arguments]
    if not every:
        groups = [_panel(param) for param in options]
        common = [
            param
            for group, param in sorted(zip(groups, options, strict=True), key=lambda pair: _place(pair[0]))
            if not group.endswith(_RARE) and param.name not in ("help", "help_all")
        ]
        needed = [param for param in common if param.required]
        others = [param for param in common if not param.required]
        parts.append(_section("Needed", [*said, *(_row(param, every) for param in needed)], columns))
        parts.append(_section("Options", [_row(param, every) for param in others], columns))
        parts += [example, "--help-all: all options in groups"]
        return "\n\n".join(part for part in parts if part) + "\n"
    parts += [example, _section("Arguments", said, columns)]
    of_groups: dict[str, list[Any]] = {}
    for param in options:
        of_groups.setdefault(_panel(param), []).append(param)
    for name in sorted(of_groups, key=_place):
        title = f"{name.removesuffix(_RARE)}, of rare use" if name.endswith(_RARE) else name
        parts.append(_section(title, [_row(param, every) for param in of_groups[name]], columns))
    return "\n\n".join(part for part in parts if part) + "\n"


def _panel(param: Any) -> str:
    """The group of an option."""
    if param.name in ("help", "as_json"):
        return _LAST[-1]
    return getattr(param, "rich_help_panel", None) or _OWN


def group_help(group: Any, ctx: Any) -> str:
    """The help of the program, or of a command that has others."""
    columns = _columns()
    parts = [f"Usage: {ctx.command_path} COMMAND ...", _paragraph(group.help or "", columns)]
    groups: dict[str, list[tuple[str, str]]] = {}
    for name, command in group.commands.items():
        if not command.hidden:
            panel = getattr(command, "rich_help_panel", None)
            panel = panel if isinstance(panel, str) else "Commands"
            groups.setdefault(panel, []).append((name, first_sentence(command.help or "")))
    for panel, rows in sorted(
        groups.items(), key=lambda item: _PANELS.index(item[0]) if item[0] in _PANELS else 9
    ):
        parts.append(_section(panel, rows, columns))
    if ctx.parent is None:
        parts.append(
            "For example:\n"
            "  mantile estimate llama-3.1-8b --gpu h100 --isl 2k --osl 256 --batch-size 16\n"
            "  mantile list jobs              how do I ...: commands for usual jobs\n"
            "  mantile COMMAND --help         options of a command, with an example"
        )
        rows = [_row(param, True) for param in group.get_params(ctx) if not getattr(param, "hidden", False)]
        parts.append(_section("Options", rows, columns))
    return "\n\n".join(part for part in parts if part) + "\n"


def first_sentence(text: str) -> str:
    """The first sentence of a help text, in one line."""
    plain = " ".join(inspect.cleandoc(text).split())
    head, dot, _ = plain.partition(". ")
    head, _, _ = (head if dot else plain).rstrip(".").partition(": ")
    return head


def _columns() -> int:
    asked = width()
    return 80 if asked == PIPE_WIDTH else min(asked, 120)


def _place(name: str) -> tuple[int, bool, int]:
    bare = name.removesuffix(_RARE)
    rare = name.endswith(_RARE)
    if bare == _OWN:
        return 0, rare, 0
    if bare in _LAST:
        return 2 + rare, rare, _LAST.index(bare) if not rare else -1
    return (3 if rare else 1), rare, _ORDER.index(bare) if bare in _ORDER else len(_ORDER)


def _row(param: Any, every: bool) -> tuple[str, str]:
    """The names of an option with what stands for its value, and what it says of itself.

    Args:
        every: all names and all that it says; otherwise its first and its shortest name, and what a line has
            room for.
    """
    long = [name for name in param.opts if name.startswith("--")]
    shortest = min(long, key=len, default="")
    names = [name for name in param.opts if every or name in (long[0], shortest) or name not in long]
    shown = "" if getattr(param, "is_flag", False) else f" {param.metavar or '<text>'}"
    text = " ".join((param.help or "").split())
    text = text if every else _clause(text, _columns())
    default = getattr(param, "show_default", False) and param.default
    if default and "[default" not in text and not callable(default) and not getattr(param, "is_flag", False):
        text = f"{text}  [default: {default}]"
    if param.required and every:
        text = f"{text}  [needed]"
    return f"{', '.join(sorted(names, key=lambda name: name.startswith('--')))}{shown}", text


def _clause(text: str, columns: int) -> str:
    """As much of a text as a line has room for, up to where a part of it ends."""
    text = text.partition(" [")[0].strip().rstrip(".")
    parts = [match.start() for match in re.finditer(r"[;.:](?= )|$", text)]
    commas = [match.start() for match in re.finditer(r", ", text)]
    room = columns - _INDENT - _NAMES - 2
    ends = [end for end in parts if end <= room] or [end for end in commas if end <= room] or parts[:1]
    return text[: ends[-1]]


def _section(title: str, rows: Sequence[tuple[str, str]], columns: int) -> str:
    if not rows:
        return ""
    lines = [f"{title}:"]
    room = min(_NAMES, max((len(name) for name, _ in rows), default=0))
    for name, text in rows:
        texts = _lines(text, columns - _INDENT - room - 2)
        if len(name) <= room:
            first, *texts = texts or [""]
            lines.append(f"{' ' * _INDENT}{name:<{room}}  {first}".rstrip())
        else:
            lines.extend(_names(name, columns))
        lines.extend(f"{' ' * (_INDENT + room + 2)}{line}" for line in texts)
    return "\n".join(lines)


def _names(name: str, columns: int) -> Iterator[str]:
    """Names of an option that have lines of their own; a name is not split."""
    for line in textwrap.wrap(
        name, columns - _INDENT - 2, break_long_words=False, break_on_hyphens=False, subsequent_indent="  "
    ):
        if len(line) > columns - _INDENT and "|" in line:  # a list of choices
            yield from (f"{' ' * _INDENT}{part}" for part in _choices(line, columns - _INDENT - 4))
        else:
            yield f"{' ' * _INDENT}{line}"


def _choices(line: str, room: int) -> Iterator[str]:
    now = ""
    for part in line.split("|"):
        if now and len(now) + len(part) + 1 > room:
            yield f"{now}|"
            now = f"    {part}"
        else:
            now = f"{now}|{part}" if now else part
    yield now


def _lines(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, max(20, room), break_long_words=False, break_on_hyphens=False)


def _fill(text: str, columns: int, indent: int) -> str:
    return "\n".join(f"{' ' * indent}{line}" for line in _lines(text, columns - indent))


def _paragraph(text: str, columns: int) -> str:
    return _fill(" ".join(inspect.cleandoc(text).split()), columns, 0)


def broken(example: str, columns: int) -> list[str]:
    """A command line in lines that can be pasted."""
    parts = textwrap.wrap(example, columns - _INDENT - 2, break_long_words=False, break_on_hyphens=False)
    return [
        f"{'  ' if at else ''}{part}{' ' + chr(92) if at < len(parts) - 1 else ''}"
        for at, part in enumerate(parts)
    ]
