"""Charts that draw something else than the bundle's, from other cells, or on other axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mantile.verification.severity import COSMETIC, SHOWN
from mantile.verification.shown_cells import Finding
from mantile.workbook.appearance import Drawn
from mantile.workbook.chart_form import Axis, ChartForm, Series

Same = Callable[[str, str], bool]
"""Whether a reference of the book and one of the file lead to the same cells."""

_TOLERANCE = 1e-9
_CHOSEN = "chosen by the program"


def matched(
    expected: Sequence[Drawn], found: Sequence[Drawn], same: Same
) -> Iterator[tuple[Drawn | None, Drawn | None]]:
    """Charts of the book with those of the file: first by what they draw, the others in their order."""
    left, right = list(expected), list(found)
    for one in expected:
        twin = next((other for other in right if _drawn_alike(one, other, same)), None)
        if twin is not None:
            left.remove(one)
            right.remove(twin)
            yield one, twin
    for place in range(max(len(left), len(right))):
        yield left[place] if place < len(left) else None, right[place] if place < len(right) else None


def chart_differences(expected: ChartForm, found: ChartForm, same: Same) -> Iterator[Finding]:
    """What a chart of the file shows otherwise. What a program leaves to chance is no difference."""
    if found.kinds != expected.kinds:
        yield "chart kind", SHOWN, ", ".join(expected.kinds), ", ".join(found.kinds)
    if not _same_text(expected.title, found.title, same):
        yield "chart title", SHOWN, expected.title, found.title
    if found.unseen_rows and not expected.unseen_rows:
        yield "chart range", SHOWN, "", "draws hidden rows and columns too"
    if len(found.series) != len(expected.series):
        yield "chart series", SHOWN, f"{len(expected.series)} series", f"{len(found.series)} series"
    else:
        for number, (one, other) in enumerate(zip(expected.series, found.series, strict=True), 1):
            yield from _series(number, one, other, same)
    for name in dict.fromkeys(axis.kind for axis in (*expected.axes, *found.axes)):
        ours = [axis for axis in expected.axes if axis.kind == name]
        theirs = [axis for axis in found.axes if axis.kind == name]
        if len(ours) != len(theirs):
            yield "chart axis", SHOWN, f"{len(ours)} of kind {name}", f"{len(theirs)} of kind {name}"
        for ours_one, theirs_one in zip(ours, theirs, strict=False):
            yield from _axis(ours_one, theirs_one, same)


def _series(number: int, expected: Series, found: Series, same: Same) -> Iterator[Finding]:
    head = f"series {number}: "
    for kind, before, after in (
        ("chart range", expected.values, found.values),
        ("chart range", expected.categories, found.categories),
        ("chart series name", expected.name, found.name),
    ):
        if not _same_text(before, after, same):
            yield kind, SHOWN, head + before, head + after
    for before_colour, after_colour in ((expected.fill, found.fill), (expected.line, found.line)):
        if before_colour != after_colour and after_colour == "none":
            yield "chart series hidden", SHOWN, head + (before_colour or _CHOSEN), head + after_colour
        elif before_colour not in (after_colour, None):
            severity = COSMETIC if after_colour is None else SHOWN
            yield "chart colour", severity, f"{head}{before_colour}", head + (after_colour or _CHOSEN)
    if (found.labels or "") != (expected.labels or ""):
        severity = SHOWN if found.labels and _says_otherwise(expected.labels, found.labels) else COSMETIC
        yield "chart labels", severity, head + (expected.labels or "none"), head + (found.labels or "none")


def _axis(expected: Axis, found: Axis, same: Same) -> Iterator[Finding]:
    head = "axis of values: " if expected.kind == "valAx" else "axis: "
    if not _same_text(expected.title, found.title, same):
        yield "chart axis title", SHOWN, head + expected.title, head + found.title
    for name in ("minimum", "maximum", "logarithmic"):
        before, after = getattr(expected, name), getattr(found, name)
        if not _same_number(before, after):
            yield "chart axis", SHOWN, f"{head}{name} {_bound(before)}", f"{head}{name} {_bound(after)}"
    if expected.reversed != found.reversed:
        yield "chart axis", SHOWN, head + _direction(expected), head + _direction(found)
    if expected.unseen != found.unseen:
        severity = SHOWN if found.unseen else COSMETIC
        yield "chart axis", severity, head + _visibility(expected), head + _visibility(found)
    if expected.form is not None and found.form is not None and expected.form != found.form:
        yield "chart number format", SHOWN, head + expected.form, head + found.form


def _drawn_alike(one: Drawn, other: Drawn, same: Same) -> bool:
    assert one.chart is not None
    assert other.chart is not None
    ours, theirs = one.chart.series, other.chart.series
    return len(ours) == len(theirs) and all(
        _same_text(a.values, b.values, same) and _same_text(a.categories, b.categories, same)
        for a, b in zip(ours, theirs, strict=True)
    )


def _same_text(expected: str, found: str, same: Same) -> bool:
    """Whether texts or references are the same; blanks and line ends do not count in texts."""
    if expected.startswith("=") and found.startswith("="):
        return same(expected, found)
    return expected.removeprefix("'").split() == found.removeprefix("'").split()


def _same_number(expected: float | None, found: float | None) -> bool:
    if expected is None or found is None:
        return expected == found
    return abs(expected - found) <= _TOLERANCE * max(abs(expected), abs(found))


def _says_otherwise(expected: str | None, found: str) -> bool:
    """Whether labels lack what they had, or say what somebody typed.

    LibreOffice adds names of points where openpyxl left open whether there are any.
    """
    before, after = (expected or "").split(), found.split()
    typed = [word for word in after if word not in before and not word.startswith("show")]
    return bool(typed) or not set(before) <= set(after)


def _direction(axis: Axis) -> str:
    return "from the last to the first" if axis.reversed else "from the first to the last"


def _visibility(axis: Axis) -> str:
    return "not drawn" if axis.unseen else "drawn"


def _bound(value: Any) -> str:
    return _CHOSEN if value is None else f"{value:g}"
