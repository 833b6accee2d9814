"""Formulas that were changed on purpose, by the id of their row and the version that changed them.

A workbook of an older version is read with the formulas of today. Where one of its formulas is another, this list says
whether the version that made the file worked the figure out otherwise, and why it was changed. A formula that is other and
not listed was edited by hand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_VERSION = re.compile(r"mantile (\d+)\.(\d+)")


@dataclass(frozen=True)
class Change:
    """A change of formulas.

    Args:
        since: the first version that has the new formulas, as major and minor number.
        ids: a regular expression that the id of a changed figure matches, without what copies of it and the decode
            workers' have in front.
        why: what was changed, and why.
    """

    since: tuple[int, int]
    ids: str
    why: str

    def changes(self, identifier: str) -> bool:
        """Whether a figure was changed."""
        return re.fullmatch(rf"(?:.+\.)?(?:{self.ids})", identifier) is not None


CHANGES: tuple[Change, ...] = (
    Change(
        since=(0, 7),
        ids=r"load\.(?:full_step|step|tpot)",
        why="at a request rate the batch follows by Little's law in a formula, from step times that are a line, a power "
        "and a line over the batch; 0.6.0 took one line through the batch that it had searched for",
    ),
    Change(since=(0, 7), ids=r"evidence\.name\.\d+", why="a text, in the field's words"),
)


def why_changed(identifier: str, generator: str) -> str | None:
    """Why a figure is worked out otherwise now than by the version that made a file; None if it is worked out alike.

    Args:
        generator: the program that made the file, with its version, as its bundle says.
    """
    match = _VERSION.match(generator)
    made_by = (int(match[1]), int(match[2])) if match else (0, 0)
    return next(
        (change.why for change in CHANGES if made_by < change.since and change.changes(identifier)), None
    )
