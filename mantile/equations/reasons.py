"""Reason codes: what each check asks for, and what it means where it does not hold, as check.eq says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mantile.equations.text import subjects

INPUTS, STRUCTURE, PLAN = "Inputs", "Structure", "Plan"
FEASIBILITY, PLAUSIBILITY, ALERTS = "Feasibility", "Plausibility", "Alerts"
GROUPS = (INPUTS, STRUCTURE, PLAN, FEASIBILITY, PLAUSIBILITY, ALERTS)
"""Groups of checks in the order in which they are read. Alerts ask for attention; all others are errors."""


@dataclass(frozen=True)
class Reason:
    """A check without its two sides.

    Args:
        label: what holds.
        meaning: what it means where it does not hold, in one line.
        of_workers: asked of each set of workers; the code of decode workers begins with "DECODE_".
    """

    code: str
    group: str
    label: str
    meaning: str
    of_workers: bool = False

    @property
    def error(self) -> bool:
        """Whether the workbook fails where it does not hold."""
        return self.group != ALERTS


def _table() -> Iterator[Reason]:
    """The lines of check.eq."""
    for block in subjects()["check"].blocks:
        for line in block.lines:
            if not line.over:
                code = line.id.removeprefix("check.").removeprefix("{OF}")
                yield Reason(code, block.title, line.parts["label"], line.parts["note"], bool(block.each))


REASONS = {reason.code: reason for reason in _table()}


def reasons() -> Iterator[tuple[str, str, str]]:
    """Every reason code with its group and what it means where the check does not hold, for documents.

    Example:
        >>> next(reasons())[:2]
        ('INPUT_INVALID', 'Inputs')
    """
    for reason in REASONS.values():
        yield reason.code, reason.group, reason.meaning
