"""Cells whose look hides or alters what stands in them, and cells that only look otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from xml.etree.ElementTree import Element

from mantile.verification.severity import COSMETIC, SHOWN, Severity
from mantile.workbook.appearance import Area, Cell
from mantile.workbook.looks import Look, contrast
from mantile.workbook.package_part import letters

READABLE = 1.6  # contrast of text to paper below which text is hardly seen; ours has 4.6 and more
_TINY = 4.0  # points: smaller text is a line
_FAR = 15  # steps of indent that push a text out of its cell
Finding = tuple[str, Severity, Any, Any]
"""Kind, severity, what is expected and what is found."""


def look_differences(expected: Look, found: Look) -> tuple[Finding, ...]:
    """What one look of a cell has otherwise than another."""
    return tuple(_differences(expected, found))


def _differences(expected: Look, found: Look) -> Iterator[Finding]:
    if found.form != expected.form:
        yield "number format", SHOWN, _spelled(expected), _spelled(found)
    hidden = list(hiding(found))
    if hidden and not list(hiding(expected)):
        yield from hidden
    if found.struck and not expected.struck:
        yield "struck text", SHOWN, "", "struck through"
    if found.concealed and not expected.concealed and (found.locked or expected.locked):
        yield "hidden formula", SHOWN, "", "the formula does not show"
    if found.align == "fill" and expected.align != "fill":
        yield "alignment", SHOWN, expected.align, "repeated across the cell"
    if found.locked != expected.locked:
        yield "protection", COSMETIC, _lock(expected), _lock(found)
    if not hidden:
        for kind, names in (
            ("colour", ("colour", "fill")),
            ("font", ("font", "size", "bold", "italic")),
            ("alignment", ("align", "rotation", "indent")),
        ):
            before, after = ([getattr(look, name) for name in names] for look in (expected, found))
            if before != after and found.align != "fill":
                yield kind, COSMETIC, _words(before), _words(after)


def hiding(look: Look) -> Iterator[Finding]:
    """Why nobody can read what stands in a cell of that look."""
    if look.contrast < READABLE:
        yield "hidden text", SHOWN, "", f"text {look.colour} on {look.fill or 'paper'}"
    if look.size < _TINY:
        yield "hidden text", SHOWN, "", f"text of {look.size:g} points"
    if look.symbols:
        yield "hidden text", SHOWN, "", f"pictures of {look.font} in place of letters"
    if look.indent > _FAR:
        yield "hidden text", SHOWN, "", f"an indent of {look.indent}"


def run_differences(look: Look, runs: Iterable[Element], colour_of: Any) -> Iterator[Finding]:
    """Words of a cell that are hidden or struck while others are not."""
    for run in runs:
        colour = colour_of(run.find("color"))
        size = run.find("sz")
        struck = run.find("strike")
        if colour is not None and contrast(colour, look.fill) < READABLE:
            yield "hidden text", SHOWN, "", f"words in {colour} on {look.fill or 'paper'}"
        elif size is not None and float(size.get("val", "11")) < _TINY:
            yield "hidden text", SHOWN, "", f"words of {size.get('val')} points"
        elif struck is not None and struck.get("val", "1") not in ("0", "false"):
            yield "struck text", SHOWN, "", "words struck through"


def grouped(cells: Iterable[Cell]) -> Iterator[Area]:
    """Cells as few rectangles: neighbours in a row first, then equal stretches below each other."""
    stretches: dict[tuple[int, int], list[int]] = {}
    first = last = None
    for row, column in sorted(set(cells)):
        if last is not None and first is not None and last == (row, column - 1):
            last = (row, column)
            continue
        if first is not None and last is not None:
            stretches.setdefault((first[1], last[1]), []).append(first[0])
        first = last = (row, column)
    if first is not None and last is not None:
        stretches.setdefault((first[1], last[1]), []).append(first[0])
    for (left, right), rows in stretches.items():
        for top, bottom in ranges(rows):
            yield top, left, bottom, right


def ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Whole numbers as first and last of each unbroken stretch."""
    first = last = None
    for number in sorted(set(numbers)):
        if last is None or number != last + 1:
            if first is not None and last is not None:
                yield first, last
            first = number
        last = number
    if first is not None and last is not None:
        yield first, last


def area_name(area: Area) -> str:
    """A range as people write it."""
    top, left, bottom, right = area
    start, end = f"{letters(left + 1)}{top + 1}", f"{letters(right + 1)}{bottom + 1}"
    return start if start == end else f"{start}:{end}"


def _spelled(look: Look) -> str:
    """A number format, as near to its usual spelling as its normal form allows."""
    return ";".join("".join(part.removeprefix("'") for part in section) for section in look.form)


def _lock(look: Look) -> str:
    return "locked" if look.locked else "unlocked"


def _words(values: list[Any]) -> str:
    return ", ".join("paper" if value is None else str(value) for value in values)
