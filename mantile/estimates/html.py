"""A small table of results for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a title, its texts escaped; all columns but the first are aligned to the right."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(_row(cells) for cells in rows)
    return (
        f"<table><caption>{escape(title)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _row(cells: Sequence[str]) -> str:
    first, *others = map(escape, cells)
    right = "".join(f'<td style="text-align: right">{text}</td>' for text in others)
    return f"<tr><th>{first}</th>{right}</tr>"
