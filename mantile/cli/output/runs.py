"""What the command line shows of measured runs: errors of predictions in percent, by group, and factors fitted to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from mantile.cli.output.tables import new_table, number, open_console

if TYPE_CHECKING:
    from mantile.measured.reconcile import Reconciliation
    from mantile.measured.runs import RejectedRun

NAMES = {
    "tpot": "TPOT",
    "ttft": "TTFT",
    "ttft_p50": "TTFT median",
    "throughput": "throughput",
    "prefill": "prefill",
    "e2e": "end to end",
}
FIELDS = {
    "tpot_s": "TPOT",
    "ttft_s": "TTFT",
    "prefill_s": "prefill",
    "ttft_p50_s": "TTFT median",
    "output_tokens_per_s_per_accelerator": "throughput",
}  # as a fit names what it fits
FIGURES = {
    "mape": "MAPE",
    "median": "median",
    "p90": "p90",
    "bias": "bias",
    "symmetric": "symmetric",
    "rmse": "RMSE",
}
IN_GROUPS = ("tpot", "ttft", "throughput")
MOST_GROUPS, EXTREMES, REASONS = 12, 5, 12  # lines shown of each; --json and the report have all
LONGEST = 140  # characters of a reason


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that is told each step; nothing where stderr is not a terminal.

    Args:
        total: number of steps, None where it is not known.
    """
    shown = Console(stderr=True, markup=False)
    if not shown.is_terminal:
        yield lambda step: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *([MofNCompleteColumn()] if total else []),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=shown, transient=True) as bar:
        task = bar.add_task(what, total=total)
        begun = -1

        def step(name: str) -> None:
            nonlocal begun
            begun += 1
            bar.update(task, completed=begun if total else None, description=f"{what}: {name}")

        yield step


def percent(value: float, signed: bool = False) -> str:
    """A fraction as percent with one place, without where it is large."""
    if value != value:
        return "–"
    shown = f"{value * 100:{'+' if signed else ''},.{0 if abs(value) >= 10 else 1}f}"
    return "0.0" if shown in ("-0.0", "+0.0") else shown


def print_reconciliation(found: Reconciliation, unread: int, written: Sequence[Path]) -> None:
    """Errors by metric and group, the best and worst runs, what was not answered and what was taken for granted.

    Args:
        unread: records that could not be read and were left out, as it is not known whether the conditions hold for them.
        written: files that hold all of it.
    """
    out = open_console()
    modes = found.modes()
    head = next((mode for mode, part in modes.items() if found.metrics(part)), next(iter(modes)))
    where = f", where {' '.join(found.where)}" if found.where else ""
    out.print(
        Text(
            f"{found.source}{where}: {number(len(found.table))} of {number(found.rows)} runs answered",
            style="bold",
        )
    )
    if unread:
        out.print(
            f"{number(unread)} records could not be read; whether the conditions hold for them is not known"
        )
    out.print(f"errors in percent, predicted ÷ measured − 1; {_counted(modes)}")
    table = new_table("metric", "runs", *FIGURES.values(), right=range(1, 8))
    for mode, part in modes.items():
        for name, figures in found.metrics(part).items():
            label = NAMES[name] if mode == head else f"{NAMES[name]}, {mode}"
            table.add_row(
                label, number(figures["n"]), *(percent(figures[key], key == "bias") for key in FIGURES)
            )
        table.add_section()
    out.print(table)
    out.print(
        "MAPE is the mean of |error|; symmetric exp(mean |ln(predicted ÷ measured)|) − 1; bias the mean error: below 0 is predicted too fast for "
        "times, too slow for throughput"
    )
    _print_groups(out, found, head)
    _print_extremes(out, found, head)
    print_unanswered(found.rejected)
    taken = found.assumptions()
    if taken:
        table = new_table("taken for granted", "runs", right=(1,))
        for words, count in taken.items():
            table.add_row(words, number(count))
        out.print(table)
    for path in written:
        out.print(f"{path}: written")


def _counted(modes: dict[str, Any]) -> str:
    counts = [f"{number(len(part))} {mode}" for mode, part in modes.items()]
    return counts[0] + (f" runs; {counts[1]} ones apart" if len(counts) > 1 else " runs")


def _print_groups(out: Console, found: Reconciliation, mode: str) -> None:
    """TPOT, TTFT and throughput by group, the largest groups first, numbers in order."""
    from mantile.measured.reconcile import GROUPS

    part = found.modes()[mode]
    shown = [name for name in IN_GROUPS if name in found.metrics(part)] or list(found.metrics(part))
    for group in GROUPS:
        sizes = part[group].value_counts(sort=True)
        if len(sizes) < 2:
            continue
        keys = list(sizes.index[:MOST_GROUPS])
        if group == "concurrency":
            keys.sort()
        heads = [f"{NAMES[name]} {word}" for name in shown for word in ("MAPE", "median", "bias")]
        table = new_table(group, "runs", *heads, right=range(1, 2 + len(heads)))
        for key in keys:
            metrics = found.metrics(part[part[group] == key])
            cells = [
                percent(metrics[name][word], word == "bias") if name in metrics else "–"
                for name in shown
                for word in ("mape", "median", "bias")
            ]
            table.add_row(str(key), number(int(sizes[key])), *cells)
        out.print(table)
        if len(sizes) > len(keys):
            out.print(f"  {len(sizes) - len(keys)} more with fewer runs: in --json and -o")


def _print_extremes(out: Console, found: Reconciliation, mode: str) -> None:
    part = found.modes()[mode]
    known = found.metrics(part)
    metric = "tpot" if "tpot" in known else next(iter(known), None)
    if metric is None:
        return
    scale, unit = (1.0, "tok/s/acc") if metric == "throughput" else (1e3, "ms")
    for words, runs in zip(("best", "worst"), found.extremes(EXTREMES, metric, part), strict=True):
        table = new_table(
            f"{words} by {NAMES[metric]}",
            "model",
            "accelerator",
            "framework",
            "precision",
            "parallelism",
            "concurrency",
            "in/out",
            f"measured, {unit}",
            f"predicted, {unit}",
            "error",
            right=range(8, 11),
        )
        for run in runs.to_dict("records"):
            told = [
                str(run[key])
                for key in (
                    "id",
                    "model",
                    "accelerator",
                    "framework",
                    "precision",
                    "parallelism",
                    "concurrency",
                    "lengths",
                )
            ]
            times = [number(run[f"{metric}_{which}"] * scale, 4) for which in ("measured", "predicted")]
            table.add_row(*told, *times, percent(run[f"{metric}_ratio"] - 1, signed=True))
        out.print(table)


def print_unanswered(broken: Sequence[RejectedRun]) -> None:
    """Why runs were not answered, most frequent first, with one of each by name."""
    if not broken:
        return
    out = open_console()
    counts = Counter(item.reason for item in broken)
    table = new_table("not answered because", "runs", "such as", right=(1,))
    for reason, count in counts.most_common(REASONS):
        shown = reason if len(reason) <= LONGEST else f"{reason[:LONGEST]} …"
        table.add_row(shown, number(count), next(item.id for item in broken if item.reason == reason))
    out.print(table)
    if len(counts) > REASONS:
        out.print(f"  {len(counts) - REASONS} more reasons: in --json")


def print_calibration(found: dict[str, Any], broken: Sequence[RejectedRun], files: Sequence[Path]) -> None:
    """Errors before and after, the factors and how sure they are, and how to use the files.

    Args:
        found: `Calibration.to_dict()`.
        broken: runs that were left out.
    """
    out = open_console()
    out.print(Text(f"{number(found['runs'])} runs, {number(len(found['moved']))} factors", style="bold"))
    print_unanswered(broken)
    table = new_table("errors in percent", "metric", "runs", *FIGURES.values(), right=range(2, 9))
    stages = [("before", found["before"]), ("after", found["after"])]
    stages += [(f"not seen, by {kept}", figures) for kept, figures in found["out_of_sample"].items()]
    for words, metrics in stages:
        for metric, figures in metrics.items():
            table.add_row(
                words,
                FIELDS[metric],
                number(int(figures["n"])),
                *(percent(figures[key], key == "bias") for key in FIGURES),
            )
        table.add_section()
    out.print(table)
    table = new_table("factor", "group", "new ÷ old", "80 % range", "", right=(2,))
    for item in found["moved"]:
        says = (
            "at its bound"
            if item["at_bound"]
            else "may be no change"
            if item["low"] <= 1 <= item["high"]
            else ""
        )
        table.add_row(
            item["factor"],
            item["group"],
            f"{item['change']:.3f}",
            f"{item['low']:.3f} … {item['high']:.3f}",
            says,
        )
    out.print(table)
    workbook = any(path.suffix == ".xlsx" for path in files)  # it holds its profiles
    for line in certainty(found):
        if not (workbook and "--cross-validate" in line):
            out.print(line)
    for path in files:
        out.print(f"{path}: written")
    if workbook:
        return
    use = " ".join(f"--profile {path}" for path in files)
    out.print(f"use {'it' if len(files) == 1 else 'them'} with: mantile estimate … {use}")


def certainty(found: dict[str, Any]) -> list[str]:
    """What a fit to so many runs may be trusted for, in sentences.

    Args:
        found: `Calibration.to_dict()`.
    """
    runs, moved = found["runs"], found["moved"]
    unsure = sum(item["low"] <= 1 <= item["high"] for item in moved)
    said = []
    if runs < FEW * len(moved):
        said.append(
            f"Only {runs} runs for {len(moved)} factors: single factors are little more than the profiles they came from; trust the times "
            "these runs span, not single factors or plans far from them."
        )
    if unsure:
        said.append(f"{unsure} of {len(moved)} factors cannot be told from no change at 80 %.")
    if not found["out_of_sample"]:
        said.append(
            "The errors after are on the runs fitted; --cross-validate config says how runs not seen are predicted."
        )
    return said


FEW = 5  # runs for each factor below which it is said that they are few
