"""What the command line shows of two plans: why one is slower, and the parts of both times side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.text import Text

from mantile.answers.why import Waterfall, Why, difference
from mantile.cli.output import look
from mantile.cli.output.tables import FittedTable, new_table, open_console, scaled

_BAR = 20  # columns of a bar
_MORE, _LESS, _LEAST = "█", "░", "▏"


def print_why(why: Why, words: Sequence[Sequence[str]] | None = None) -> None:
    """The sentences, then TPOT and TTFT part by part, and how to go on; at most 80 columns wide.

    Args:
        words: of both plans, as behind `mantile estimate`; None where nobody can type them.
    """
    console = open_console()
    for sentence in why.sentences:
        console.print(Text(sentence, style="bold" if sentence is why.sentences[0] else ""))
    shown = [times for times in why.waterfalls if times.metric != "e2e" and why.differ]
    if shown:
        a, b = why.plans
        console.print(f"\nA: {a.name}, {a.title}\nB: {b.name}, {b.title}")
    for times in shown:
        console.print(_table(times))
    if words is None or look.now().form != "table" or look.now().quiet or not why.differ:
        return
    for line in _on(why, shown, words):
        console.print(Text(line, style="dim"), soft_wrap=True)


def _table(times: Waterfall) -> FittedTable:
    """Parts with a bar each: it begins where the one before ends, from A to B."""
    table = new_table(times.label, "A", "B", "B − A", "from A to B", right=(1, 2, 3))
    ends = [times.a_s]
    for part in times.parts:
        ends.append(ends[-1] + part.difference_s)
    low, high = min(ends), max(ends)
    scale = _BAR / (high - low) if high > low else 0.0
    for part, start, end in zip(times.parts, ends, ends[1:], strict=False):
        at, last = sorted(round((each - low) * scale) for each in (start, end))
        bar = (
            ""
            if start == end
            else " " * min(at, _BAR - 1) + ((_MORE if end > start else _LESS) * (last - at) or _LEAST)
        )
        table.add_row(part.name, *_cells(part.a_s, part.b_s, part.difference_s), bar)
    table.add_row(times.label, *_cells(times.a_s, times.b_s, times.difference_s), "")
    return table


def _cells(a: float, b: float, between: float) -> tuple[str, ...]:
    return scaled(a, "s") if a else "0", scaled(b, "s") if b else "0", difference(between)


def _on(why: Why, shown: Sequence[Waterfall], words: Sequence[Sequence[str]]) -> list[str]:
    """Commands to go on with."""
    a, b = map(shlex.join, words)
    if not shown:
        return [
            f"mantile estimate {each}" for each, plan in zip((a, b), why.plans, strict=True) if plan.missing
        ]
    return [f"mantile explain {shown[0].metric} {b}", f"mantile build {b} -o plan.xlsx"]
