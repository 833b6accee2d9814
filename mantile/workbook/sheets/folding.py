"""Which rows of a sheet of workings stand open, and which are folded away behind an outline.

What a sheet comes to stands at its top, the way there is folded. Of the library what scenarios of the
workbook use stands open: rows of other accelerators, systems and profiles stay in the file, since one may
choose them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import cast

from mantile.equations.graph import CALCULATION, CALIBRATION, EFFICIENCY, PROFILED
from mantile.equations.nearest import NEAREST
from mantile.equations.override import OVERRIDE
from mantile.estimates.estimate import Estimate
from mantile.graph.quantity import (
    Apply,
    Input,
    Line,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    Span,
    Table,
    expression,
)
from mantile.workbook.sheets.audit import AUDIT

LIBRARY = ("Hardware", EFFICIENCY)
"""Sheets with what the library states."""
INPUTS_SHEET = "Inputs"
WHAT_IF = "What-if"
FOLDED = (*LIBRARY, CALCULATION)
"""Sheets that begin with their answers, or whose parts do, and whose blocks fold."""
OUTLINED = (INPUTS_SHEET, *FOLDED, WHAT_IF, AUDIT)
"""Sheets with outlines."""

_NOT_TYPED = ("typed.", "constant.", "inputs.continuous", "stamp.", "signature.")  # on Inputs and IR
_FAULTS = (
    "typed.faults",
    "typed.message",
    "typed.assumptions.faults",
    "typed.assumptions.message",
    "stamp.edit.count",
    "stamp.edit.told",
)
# At Calibration: parts of the error, where a solver starts and between what it stays.
_OF_SOLVERS = (
    "measured.read.",
    "measured.error.",
    "measured.missing.",
    "measured.in_use.",
    "measured.lowest.",
    "measured.highest.",
)
_LISTED = 5  # titles of blocks that are named
_FOUND = re.compile(rf"{re.escape(NEAREST)}(id|source|measured\.\w+|estimated\.\w+)$")
_ASKED_FOR = re.compile(
    r"correction\.(version|digest|\w+\.(runs|newest|multiplier|p10|p50|p90))$|drift\.(newest|months|p10|p90)$"
)  # what a scenario asks for by naming a correction or the day of an engine


def rows_in_use(estimate: Estimate) -> set[Named]:
    """The figures of the library that some scenario looks up, as the inputs are when the file is made."""
    used: set[Named] = set()
    for column in range(len(estimate.columns)):
        values = estimate.values(column)
        for figure in estimate.equations.quantities():
            if figure.factor or figure.id.startswith("efficiency."):
                continue  # of a table of formats the one that holds, below
            for members, place in _lookups(figure):
                position = values.get(place)
                if isinstance(position, int | float) and 1 <= position <= len(members.members):
                    used.add(members.members[int(position) - 1])
        for workers in estimate.equations.workers:
            for factor in workers.efficiency.in_use.values():
                used |= {factor.library_figure(quantity, values) for quantity in factor.by_user.values()}
    return used


def _lookups(figure: Quantity) -> Iterator[tuple[Span, Node]]:
    for node in expression(figure.body):
        if isinstance(node, Apply) and node.operation == "index":
            members, place = node.arguments
            if isinstance(members, Span):
                yield members, place


def folded_blocks(
    sheet: str, sections: Sequence[Section], used: set[Named]
) -> list[tuple[Section, bool, str]]:
    """Blocks; whether a block folds away with the one before it; and what to say of those that follow it so.

    Blocks without anything open fold away together, under the first of them; on Calculation, where one opens
    them one by one, under their own heads.
    """
    closed = [sheet != CALCULATION and all(folded(sheet, section, used)) for section in sections]
    joined = [one and before for before, one in zip([False, *closed], closed, strict=False)]
    said: list[str] = []
    for place in range(len(sections)):
        rest = takewhile(lambda pair: pair[1], zip(sections[place + 1 :], joined[place + 1 :], strict=True))
        titles = [section.title for section, _ in rest] if not joined[place] else []
        listed = ", ".join(titles[:_LISTED])
        more = f" and {len(titles) - _LISTED} more" if len(titles) > _LISTED else ""
        said.append(f" · with {listed}{more}" if titles else "")
    return list(zip(sections, joined, said, strict=True))


def folded(sheet: str, section: Section, used: set[Named]) -> list[bool]:
    """For each row of a block, whether it is folded away.

    Args:
        used: figures of the library that are in use.
    """
    if section.columns:
        closed = [used.isdisjoint(row.members) for row in section.rows if isinstance(row, Table)]
        return [all(closed), *closed]
    if section.part == CALIBRATION:
        return [cast(Named, row).id.startswith(_OF_SOLVERS) for row in section.rows]
    if sheet == EFFICIENCY:
        return [not _factor_stands_open(row, used) for row in section.rows]
    rows = [cast(Named, entry[0] if isinstance(entry, tuple) else entry) for entry in section.rows]
    if sheet == INPUTS_SHEET:  # what is typed and what is wrong with it stands open
        return [row.id.startswith(_NOT_TYPED) and not row.id.startswith(_FAULTS) for row in rows]
    if sheet not in FOLDED:
        return [False] * len(rows)
    return [not _stands_open(row, used if sheet in LIBRARY else set()) for row in rows]


def _factor_stands_open(row: Row, used: set[Named]) -> bool:
    """Overrides, factors in use, and rows of the library of which a figure is in use."""
    assert not isinstance(row, Line)
    figure, beside = row if isinstance(row, tuple) else (row, row)
    if isinstance(beside, Table) and not used.isdisjoint(beside.members):
        return True
    return not isinstance(figure, Table) and (
        figure.id.endswith(OVERRIDE) or (isinstance(figure, Quantity) and figure.factor)
    )


def _stands_open(row: Named, used: set[Named]) -> bool:
    """What one types, what the library states of what is in use, the nearest measured run, and what was asked
    for beside the results.

    Other results stand among the answers.
    """
    if _ASKED_FOR.match(row.id):
        return True
    if not isinstance(row, Input):
        return _FOUND.match(row.id) is not None
    assumed = row.status == "assumed" and not row.id.startswith(PROFILED)
    return assumed or row.id.endswith(OVERRIDE) or row in used
