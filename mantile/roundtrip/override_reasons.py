"""Why figures were overridden, as somebody typed it beside the override cells."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mantile.equations.display import LETTERS
from mantile.equations.override import OVERRIDE
from mantile.library.errors import InputError
from mantile.workbook.cell_diff import is_formula
from mantile.workbook.read import File
from mantile.workbook.sheets.workings import HOW

_OF_SCENARIO = re.compile(rf"(?:^|\s*·\s*)([{LETTERS}]):\s*")
_MOST = 120  # characters of a reason


@dataclass(frozen=True)
class TypedReason:
    """A reason cell that was typed over.

    Args:
        cell: where it stands.
        by_scenario: the reason of each scenario that it names by its letter.
        of_others: the reason of all others; "" where it names them.
    """

    cell: str
    by_scenario: dict[int, str]
    of_others: str

    def of(self, scenario: int) -> str:
        """The reason of a scenario; "" where none is stated."""
        return self.by_scenario.get(scenario, self.of_others)


def typed_reasons(file: File) -> dict[str, TypedReason]:
    """Reasons that were typed, by the id of what is overridden.

    Raises:
        InputError: naming the cell, for a reason that is a formula or too long.
    """
    reasons: dict[str, TypedReason] = {}
    for figure in file.book.estimate.equations.all_inputs():
        address = file.book.addresses.get(figure)
        of_model = figure.id.startswith("model.") and not figure.fixed
        if not (figure.id.endswith(OVERRIDE) or of_model) or address is None:
            continue
        content = file.content(address.sheet, address.row, HOW)
        generated = file.book.sheets[address.sheet].cells[address.row, HOW].text
        if content is None or str(content) in (generated, figure.note):
            continue
        name = file.cell_name(address.sheet, address.row, HOW)
        reasons[figure.id.removesuffix(OVERRIDE)] = _parsed(content, name, str(file.path))
    return reasons


def _parsed(content: object, cell: str, path: str) -> TypedReason:
    text = " ".join(str(content).split())
    parts = _OF_SCENARIO.split(text)
    by_scenario = {
        LETTERS.index(letter): reason.strip() for letter, reason in zip(parts[1::2], parts[2::2], strict=True)
    }
    reason = TypedReason(cell, by_scenario, parts[0].strip())
    longest = max(map(len, (*by_scenario.values(), reason.of_others)))
    if is_formula(content) or longest > _MOST:
        raise InputError(
            f"{path}: {cell}: holds {text!r:.60}; expected a text of at most {_MOST} characters that says "
            "why the figure is overridden"
        )
    return reason
