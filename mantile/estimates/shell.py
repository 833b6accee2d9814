"""Lines for a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable


def command(words: Iterable[str]) -> str:
    """A line with a flag on each row, quoted for a shell; what begins with $ is a variable of it."""
    rows: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and not re.match(r"-\d", word) and len(rows[0]) > 0 and word != "-m":
            rows.append([])
        rows[-1].append(f'"{word}"' if re.search(r"\$[A-Z(]", word) else shlex.quote(word))
    return " \\\n  ".join(" ".join(row) for row in rows)
