"""What a command says as Markdown, or its tables as CSV: to be copied."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

_GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d+)?")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for one
_NUMBER = re.compile(r"[-+]?[\d.,]+(?:[eE][-+]?\d+)?(?: ?[^\W\d_]+| ?%)?|-")  # with its unit; or nothing


def written(things: Iterable[Any], form: str) -> str:
    """Texts and tables in a form.

    Args:
        form: markdown, or csv, which has the tables alone.
    """
    parts: list[str] = []
    said: list[str] = []
    for thing in things:
        lines = _lines(thing)
        if lines is None:
            said.append(str(getattr(thing, "plain", thing)))
        elif lines:
            parts.append(_markdown(lines) if form == "markdown" else _csv(lines))
    text = " ".join(said).strip()
    if form == "markdown" and text:
        parts.insert(0, f"{text}\n\n")
    return "".join(parts)


def _lines(thing: Any) -> list[list[str]] | None:
    """The cells of a table, heads first; of a tree its lines; None of a text."""
    if hasattr(thing, "lines") and hasattr(thing, "columns"):
        return list(thing.lines())
    if hasattr(thing, "columns"):  # a grid, without heads
        columns = [[_plain(cell) for cell in column.cells] for column in thing.columns]
        rows = [list(row) for row in zip(*columns, strict=True)]
        return [[""] * len(columns), *rows] if rows else []
    if hasattr(thing, "children"):
        return [["figure"], *([line] for line in _tree(thing, ""))]
    return None


def _tree(tree: Any, indent: str) -> Iterable[str]:
    yield f"{indent}{_plain(tree.label)}"
    for child in tree.children:
        yield from _tree(child, f"{indent}  ")


def _plain(cell: Any) -> str:
    return str(getattr(cell, "plain", cell))


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|").replace("\n", "<br>").strip() for cell in row] for row in lines]
    head, *rows = cells
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n\n"


def _csv(lines: Sequence[Sequence[str]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in lines if any(lines[0]) else lines[1:]:
        writer.writerow([_cell(cell.strip()) for cell in row])
    return out.getvalue() + "\n"


def _cell(text: str) -> str:
    """A cell of a table for a program: numbers without thousands separators, nothing a spreadsheet runs."""
    if _GROUPED.fullmatch(text):
        return text.replace(",", "")
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
