"""References to cells in the text of a formula."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from mantile.workbook.package_part import Formula as Formula
from mantile.workbook.package_part import column_number

REFERENCE = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")                                                     # a text, left alone
    | (?<![A-Za-z0-9_.])(?:(?P<sheet>'[^']+'|[A-Za-z_][A-Za-z0-9_]*)!)?              # a sheet
      (?P<d1>\$?)(?P<c1>[A-Z]{1,3})\$?(?P<r1>[0-9]+)                                 # a cell
      (?::\$?(?P<c2>[A-Z]{1,3})\$?(?P<r2>[0-9]+))?                                   # the end of a range
      (?![A-Za-z0-9_(!.])""",
    re.VERBOSE,
)


_SPELLINGS = 65_536  # that are remembered: rules of many cells read alike
_ONE_CELL = re.compile(r"(\$?[A-Z]{1,3}\$?[0-9]+):\1(?![0-9])")


class Reference(NamedTuple):
    """A cell or a range as a formula names it; rows and columns from 0.

    Args:
        sheet: where it stands.
        dollar: "$" where the column stays when the formula is copied across, else nothing.
    """

    sheet: str
    row: int
    column: int
    last_row: int
    last_column: int
    dollar: str


def reference_of(match: re.Match[str], sheet: str) -> Reference:
    """A match of `REFERENCE` that is no text, in a formula on a sheet."""
    return _reference(match.groups(), sheet)


def references(formulas: Iterable[Formula], sheet: str) -> Iterator[Reference]:
    """What formulas on a sheet refer to, each spelling once."""
    spellings: set[Sequence[str]] = set()
    for formula in formulas:
        spellings.update(REFERENCE.findall(formula))
    return (_reference(spelling, sheet) for spelling in spellings if not spelling[0])


def _reference(groups: Sequence[str | Any], sheet: str) -> Reference:
    """A reference by the groups of `REFERENCE`."""
    _, of_sheet, dollar, first, top, last, bottom = groups
    row, column = int(top) - 1, column_number(first) - 1
    return Reference(
        sheet=of_sheet.strip("'") if of_sheet else sheet,
        row=row,
        column=column,
        last_row=int(bottom) - 1 if bottom else row,
        last_column=column_number(last) - 1 if last else column,
        dollar=dollar,
    )


_LINK_TO_TYPED = re.compile(r'=IF\(ISBLANK\(([^()]+)\),"",\1\)')


def link_to_typed(reference: str) -> str:
    """A formula, without its sign, that repeats a cell that is typed into; an empty one is no 0."""
    return f'IF(ISBLANK({reference}),"",{reference})'


def only_reference(formula: str, sheet: str) -> Reference | None:
    """The cell that a formula repeats, if it does nothing else, such as =Summary!$B$5."""
    typed = _LINK_TO_TYPED.fullmatch(formula)
    match = REFERENCE.fullmatch(typed[1] if typed else formula.removeprefix("="))
    if match is None or match["text"] is not None or match["c2"]:
        return None
    return reference_of(match, sheet)


def with_references(formula: str, sheet: str, written: Callable[[Reference], str]) -> str:
    """A formula without blanks, its references written otherwise; texts in it stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        return match.group() if match["text"] is not None else written(reference_of(match, sheet))

    parts = REFERENCE.sub(replaced, formula).split('"')
    return '"'.join(part if index % 2 else part.replace(" ", "") for index, part in enumerate(parts))


@lru_cache(maxsize=_SPELLINGS)
def plain(text: str) -> str:
    """A formula without the spaces, and quotes round sheet names, that other programs add outside texts.

    A range of one cell is that cell.
    """
    parts = text.split('"')
    return '"'.join(
        part if index % 2 else one_cell(part.replace(" ", "").replace("'", ""))
        for index, part in enumerate(parts)
    )


def one_cell(text: str) -> str:
    """A formula in which a range of one cell, as in SUM(H15:H15), is that cell."""
    return _ONE_CELL.sub(r"\1", text) if ":" in text else text
