"""Who signed a workbook, and whether each signature holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.equations.signature import ROLES, SIGNATURE
from mantile.graph.quantity import Node
from mantile.library.dates import day_of
from mantile.workbook.read import File
from mantile.workbook.sheets.log import DATE, REMARKS, STATUS


def read_signatures(file: File, across: Mapping[Node, Any]) -> list[dict[str, Any]]:
    """The signatures of a workbook: `role`, `name`, `date`, `digest`, `remarks`, `status` and the `cell`.

    A line on which nothing was typed is none. The status is what the formula beside it says: "✓ holds" where
    the digest typed is that of the file and nothing changed since.

    Args:
        across: our values of what looks across scenarios, on the inputs in the file.
    """
    found: list[dict[str, Any]] = []
    if "Audit" not in file.book.sheets:  # a template left it out
        return found
    for name, role in ROLES.items():
        places = {part: file.book.input_cells[f"{SIGNATURE}{name}.{part}", 0] for part in ("name", "digest")}
        sheet, row, column = places["name"]
        typed = {part: _text(file.content(*place)) for part, place in places.items()}
        if not any(typed.values()):
            continue
        status = file.book.sheets[sheet].cells[row, STATUS].expression
        assert status is not None
        found.append(
            {
                "role": role,
                "name": typed["name"],
                "date": _day(file.content(sheet, row, DATE)),
                "digest": typed["digest"],
                "remarks": _text(file.content(sheet, row, REMARKS)),
                "status": across[status],
                "cell": file.cell_name(sheet, row, column),
            }
        )
    return found


def _text(content: Any) -> str:
    return "" if content is None else str(content).strip()


def _day(content: Any) -> str:
    """A date as 2026-11-23, or what was typed in its place."""
    is_day = isinstance(content, int | float) and not isinstance(content, bool) and 0 < content < 1e6
    return day_of(content).isoformat() if is_day else _text(content)
