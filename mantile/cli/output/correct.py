"""What the command line shows of a correction: errors with and without it, beside baselines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mantile.cli.output.tables import new_table, open_console
from mantile.measured.metrics import COMPARED

if TYPE_CHECKING:
    from rich.console import Console

    from mantile.measured.correct import Judged, Learned


def _print_splits(console: Console, one: Judged) -> None:
    """Steps that hold for all models and accelerators, on those that were left out."""
    verdict = "kept" if one.everywhere else "left out"
    label = COMPARED[one.metric].label
    console.print(f"\n{label}, steps that hold for all models and accelerators: {verdict}")
    heads = ("left out", "runs", "without", "corrected", "worst by")
    table = new_table(*heads, right=range(1, 5))
    for split in one.splits:
        table.add_row(
            split.left_out if "-" not in split.left_out else f"from {split.left_out} on",
            f"{split.runs:,}",
            *(f"{100 * median:.1f} / {100 * mean:.1f}" for median, mean in (split.without, split.corrected)),
            f"{100 * split.worst[0]:+.1f}",
        )
    if one.later[0]:
        console.print("runs of many kinds and several days get no others: what a kind leaves is of its days")
    console.print("median / mean error in percent; --json names the parts that get worst")
    console.print(table)


def print_learned(learned: Learned, written: Path | None) -> None:
    """Errors of runs that were not fitted, median and mean in percent, and the file."""
    console = open_console()
    heads = ("metric", "runs", "without", "corrected", "linear", "nearest", "in range, %", "verdict")
    table = new_table(*heads, right=range(1, 7))
    for one in learned.judged:
        medians = (one.without, one.corrected, one.linear, one.nearest)
        table.add_row(
            COMPARED[one.metric].label,
            f"{one.runs:,}",
            *(f"{100 * median:.1f}" for median, _ in medians),
            f"{100 * one.covered:.0f}",
            "kept" if one.kept and not one.everywhere else "left out",
        )
    console.print("median error in percent, of runs whose configuration was not fitted")
    console.print(table)
    for one in learned.judged:
        change, group = one.worst
        label = COMPARED[one.metric].label
        console.print(f"{label}: {group} moves by {100 * change:+.1f} points, the worst")
        days, no_worse = one.later
        if days > no_worse:
            console.print(f"{label}: fitted to runs before a day it is worse for those after, and left out")
    for one in learned.judged:
        if one.splits:
            _print_splits(console, one)
    if written is None or learned.correction is None:
        console.print("\nno metric gets better by a correction, with no kind of run worse: none written")
        return
    made = learned.correction
    console.print(f"\nwrote {written}: {made.id} {made.version}, digest {made.digest}")
    console.print(f"use it:  mantile estimate SCENARIO.yaml --correction {written}", soft_wrap=True)
