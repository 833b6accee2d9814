"""What the command line shows of measured runs: errors of predictions in percent, by group, and factors
fitted to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from mantile.cli.output import look
from mantile.cli.output.tables import new_table, number, open_console
from mantile.measured.coverage import held
from mantile.measured.metrics import COMPARED, ERROR_FIGURES, IN_UNITS, PREFILL_RATE, labelled
from mantile.measured.reconcile import GROUPS, OF_CASE, other_load, reference

if TYPE_CHECKING:
    from mantile.measured.gates import Passed
    from mantile.measured.reconcile import Reconciliation
    from mantile.measured.runs import RejectedRun

IN_GROUPS = ("tpot", "ttft", "throughput", "prefill")  # metrics that are shown by group
OF_GROUPS = ("mape", "median", "bias")  # their errors
MOST_GROUPS, EXTREMES, REASONS = 12, 5, 12  # lines shown of each; --json and the report have all
LONGEST = 300  # characters of a reason
LONGEST_NAME = 48  # of a group
MOST_PREDICTIONS = 12  # lines of predictions after a fit
FEW = 5  # runs for each factor; where there are fewer, it is said
MEDIANS = (
    ("tpot", "tpot_p50", "the predicted median, which is the mean where no spread of lengths is stated"),
    ("ttft", "ttft_p50", "the predicted median"),
)
"""Means, their medians, and what these are compared with."""
NOTHING = "–"  # where a metric was not measured


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that is told each step; nothing where stderr is not a terminal.

    Args:
        what: is done.
        total: number of steps, None where it is not known.
    """
    begun = -1
    with _bar(what, total, MofNCompleteColumn()) as told:

        def step(name: str) -> None:
            nonlocal begun
            begun += 1
            told(begun if total else None, f"{what}: {name}")

        yield step


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that is told how many points are done; nothing where stderr is not a terminal.

    Args:
        what: is done.
        total: points in all.
    """
    with _bar(what, total, TextColumn("{task.completed:,.0f} of {task.total:,.0f} points")) as told:
        yield lambda done: told(done, what)


@contextmanager
def _bar(what: str, total: int | None, count: ProgressColumn) -> Iterator[Callable[[int | None, str], None]]:
    """What tells a bar how much is done, and of what."""
    console = Console(stderr=True, markup=False)
    if look.now().quiet or not console.is_terminal:
        yield lambda done, name: None
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *([count] if total else []),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done, name: bar.update(task, completed=done, description=name)


def percent(value: float, signed: bool = False) -> str:
    """A fraction as percent with one digit, without where it is large."""
    if value != value:
        return NOTHING
    shown = f"{value * 100:{'+' if signed else ''},.{0 if abs(value) >= 10 else 1}f}"
    return "0.0" if shown in ("-0.0", "+0.0") else shown


def _error_cells(figures: Mapping[str, float], names: Sequence[str] = tuple(ERROR_FIGURES)) -> list[str]:
    return [percent(figures[name], name == "bias") for name in names]


def print_reconciliation(reconciliation: Reconciliation, unread: int, files: Sequence[Path]) -> None:
    """Errors by metric and group, the best and worst runs, what could not be predicted and what was assumed.

    Args:
        reconciliation: runs beside predictions.
        unread: records that could not be read and were left out, as it is not known whether the conditions
            hold for them.
        files: that hold all of it.
    """
    out = open_console()
    where = ""
    if reconciliation.where:
        conditions, before = " ".join(reconciliation.where), number(reconciliation.before)
        where = f", where {conditions}: {number(reconciliation.rows)} of {before} runs"
    predicted = len(reconciliation.table)
    excluded = predicted - reconciliation.answered
    counts = f"{number(predicted)} of {number(reconciliation.rows)} runs predicted"
    counts += f", {number(excluded)} not compared" if excluded else ""
    out.print(Text(f"{reconciliation.source}{where}: {counts}", style="bold"))
    if unread:
        out.print(
            f"{number(unread)} records could not be read; whether the conditions hold for them is not known"
        )
    if reconciliation.headline is not None:
        _print_errors(out, reconciliation, reconciliation.headline)
        _print_units(out, reconciliation, reconciliation.headline)
        _print_coverage(out, reconciliation)
        _print_groups(out, reconciliation, reconciliation.headline)
        _print_extremes(out, reconciliation, reconciliation.headline)
    print_rejected(reconciliation.unanswered())
    print_unused(reconciliation.unused)
    assumptions = reconciliation.assumptions()
    if assumptions:
        table = new_table("assumed while reading", "runs", right=(1,))
        for text, count in assumptions.items():
            table.add_row(text, number(count))
        out.print(table)
    for path in files:
        out.print(f"{path}: written")


def print_unused(unused: Mapping[str, str]) -> None:
    """The columns of the file that nobody read, by the reason."""
    if not unused:
        return
    table = new_table("columns not used", "because")
    for why in dict.fromkeys(unused.values()):
        table.add_row(", ".join(column for column, reason in unused.items() if reason == why), why)
    open_console().print(table)


def write_summary(reconciliation: Reconciliation, unread: int, path: Path) -> None:
    """What `print_reconciliation` shows, as a text.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    from mantile.library.files import replacing

    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as file, redirect_stdout(file):
        print_reconciliation(reconciliation, unread, ())


def print_gates(passed: Sequence[Passed]) -> None:
    """Each gate with what was found."""
    table = new_table("gate", "error", "limit", "found", "", right=(2, 3))
    for one in passed:
        found = NOTHING if one.error is None else percent(one.error)
        verdict = "passed" if one.passed else "not measured" if one.error is None else "beyond"
        table.add_row(one.gate.name, ERROR_FIGURES[one.gate.figure], percent(one.gate.limit), found, verdict)
    open_console().print(table)


def _print_units(out: Console, reconciliation: Reconciliation, headline: str) -> None:
    """Errors in the unit of each metric, and the errors between which all runs lie."""
    table = new_table("metric", "unit", *IN_UNITS.values(), right=range(2, 6))
    part = reconciliation.modes()[headline]
    errors = reconciliation.metrics(part)
    for name, figures in reconciliation.in_units(part).items():
        metric = COMPARED[name]
        table.add_row(
            labelled(name, errors[name]).label,
            metric.unit,
            *(number(figures[what] * metric.scale, 3) for what in ("mae", "rmse_in_units")),
            *(f"{percent(figures[what], signed=True)} %" for what in ("least", "largest")),
        )
    out.print(table)


def _print_coverage(out: Console, reconciliation: Reconciliation) -> None:
    """How many runs lie inside their 80 % range, by metric and by what the range rests on."""
    found = reconciliation.coverage()
    if not found:
        return
    table = new_table("80 % range of", "evidence", "runs", "inside", "holds", right=(2, 3), keep=range(5))
    measured = reconciliation.metrics()
    for name, figures in found.items():
        parts = figures["by_evidence"]
        first = "all" if len(parts) > 1 else next(iter(parts))
        label = labelled(name, measured[name]).label
        for words, counts in ({first: figures} | (parts if len(parts) > 1 else {})).items():
            numbers = (number(counts["n"]), number(counts["inside"]), held(counts["n"], counts["inside"]))
            table.add_row(label if words == first else "", words, *numbers)
        table.add_section()
    out.print(table)


def _print_errors(out: Console, reconciliation: Reconciliation, headline: str) -> None:
    """Errors of every metric by mode, and what they mean."""
    modes = reconciliation.modes()
    counts = [f"{number(len(part))} {mode}" for mode, part in modes.items()]
    others = f"; {counts[1]} ones by themselves" if len(counts) > 1 else ""
    out.print(f"errors in percent, predicted ÷ measured − 1; {counts[0]} runs{others}")
    table = new_table("metric", "runs", *ERROR_FIGURES.values(), right=range(1, 8))
    for mode, part in modes.items():
        for name, figures in reconciliation.metrics(part).items():
            label = labelled(name, figures).label
            table.add_row(
                label if mode == headline else f"{label}, {mode}",
                number(figures["n"]),
                *_error_cells(figures),
            )
        table.add_section()
    out.print(table)
    out.print(
        "MAPE is the mean of |error|; symmetric exp(mean |ln(predicted ÷ measured)|) − 1; bias the mean "
        "error: below 0 is "
        "predicted too fast for times, too slow for throughput"
    )
    measured = reconciliation.metrics(modes[headline])
    for mean, median, beside in MEDIANS:
        if median in measured and mean not in measured:
            out.print(f"{COMPARED[mean].label}: medians alone were measured; beside them stands {beside}")


def _print_groups(out: Console, reconciliation: Reconciliation, mode: str) -> None:
    """TPOT, TTFT and throughput by group, the largest groups first, numbers in order."""
    part = reconciliation.modes()[mode]
    measured = reconciliation.metrics(part)
    shown = [name for name in IN_GROUPS if name in measured] or list(measured)
    for group in sorted(GROUPS, key=lambda group: group != "source"):
        sizes = part[group].value_counts(sort=True)
        if len(sizes) < 2:
            continue
        keys = list(sizes.index[:MOST_GROUPS])
        if group == "concurrency":
            keys.sort()
        labels = {
            name: metric.label if metric.beside == "derived" else COMPARED[name].label
            for name in shown
            for metric in [labelled(name, measured[name])]
        }
        heads = [f"{labels[name]} {ERROR_FIGURES[figure]}" for name in shown for figure in OF_GROUPS]
        table = new_table(group, "runs", *heads, right=range(1, 2 + len(heads)))
        for key in keys:
            metrics = reconciliation.metrics(part[part[group] == key])
            cells = [
                cell
                for name in shown
                for cell in (
                    _error_cells(metrics[name], OF_GROUPS) if name in metrics else [NOTHING] * len(OF_GROUPS)
                )
            ]
            table.add_row(_short(str(key)), number(int(sizes[key])), *cells)
        out.print(table)
        if len(sizes) > len(keys):
            out.print(f"  {len(sizes) - len(keys)} more with fewer runs: in --json and -o")


def _short(name: str) -> str:
    """A name of a group, cut where it is long."""
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 2]} …"


def _print_extremes(out: Console, reconciliation: Reconciliation, mode: str) -> None:
    """The runs that are predicted best and worst, by TPOT where it was measured, and by prefill."""
    part = reconciliation.modes()[mode]
    measured = reconciliation.metrics(part)
    headline = ["tpot"] if "tpot" in measured else list(measured)[:1]
    for name in dict.fromkeys([*headline, *(["prefill"] if "prefill" in measured else [])]):
        metric = labelled(name, measured[name])
        column, unit, scale = metric.name, metric.unit.replace("/accelerator", "/acc"), metric.scale
        if name == "prefill":  # as tables of single users have it
            column, unit, scale = PREFILL_RATE, "tok/s", 1.0
        best_and_worst = reconciliation.extremes(EXTREMES, metric.name, part)
        for title, runs in zip(("best", "worst"), best_and_worst, strict=True):
            table = new_table(
                f"{title} by {metric.label}",
                *OF_CASE[:-1],
                "in/out",
                f"{metric.beside}, {unit}",
                f"predicted, {unit}",
                "error" if column == metric.name else "error of the time",
                right=range(8, 11),
            )
            runs = (
                runs
                if column != metric.name
                else runs.assign(**{f"{column}_measured": reference(runs, column)})
            )
            for run in runs.to_dict("records"):
                values = [number(run[f"{column}_{what}"] * scale, 4) for what in ("measured", "predicted")]
                error = percent(run[f"{metric.name}_ratio"] - 1, signed=True)
                if run["concurrency"] is None:
                    run["concurrency"] = other_load(run)
                table.add_row(*(str(run[key]) for key in ("id", *OF_CASE)), *values, error)
            out.print(table)


def print_rejected(rejected: Sequence[RejectedRun]) -> None:
    """Why runs could not be predicted, the most frequent reason first, with one run of each by name."""
    if not rejected:
        return
    out = open_console()
    counts = Counter(run.reason for run in rejected)
    table = new_table("left out because", "runs", "such as", right=(1,))
    for reason, count in counts.most_common(REASONS):
        shown = reason if len(reason) <= LONGEST else f"{reason[:LONGEST]} …"
        table.add_row(shown, number(count), next(run.id for run in rejected if run.reason == reason))
    out.print(table)
    if len(counts) > REASONS:
        out.print(f"  {len(counts) - REASONS} more reasons: in --json")


def print_calibration(
    calibration: dict[str, Any], rejected: Sequence[RejectedRun], files: Sequence[Path]
) -> None:
    """Errors before and after, the factors and how sure they are, and how to use the files.

    Args:
        calibration: `Calibration.to_dict()`.
        rejected: runs that were left out.
        files: that were written.
    """
    out = open_console()
    counts = f"{number(calibration['runs'])} runs, {number(len(calibration['moved']))} factors"
    out.print(Text(counts, style="bold"))
    print_rejected(rejected)
    _print_fit_errors(out, calibration)
    _print_factors(out, calibration)
    workbook = any(path.suffix == ".xlsx" for path in files)  # it holds its profiles
    for line in certainty(calibration):
        if not (workbook and "--cross-validate" in line):
            out.print(line)
    _print_predictions(out, calibration)
    _print_contradictions(out, calibration)
    for path in files:
        out.print(f"{path}: written")
    if not workbook:
        _print_use(out, calibration, files)


def _print_fit_errors(out: Console, calibration: dict[str, Any]) -> None:
    labels = {metric.field: metric.label for metric in COMPARED.values()}
    table = new_table("errors in percent", "metric", "runs", *ERROR_FIGURES.values(), right=range(2, 9))
    stages = {"before": calibration["before"], "after": calibration["after"]} | {
        f"not seen, by {left_out}": metrics for left_out, metrics in calibration["out_of_sample"].items()
    }
    for stage, metrics in stages.items():
        for metric, figures in metrics.items():
            table.add_row(stage, labels[metric], number(int(figures["n"])), *_error_cells(figures))
        table.add_section()
    out.print(table)


def _print_factors(out: Console, calibration: dict[str, Any]) -> None:
    table = new_table("factor", "group", "new ÷ old", "80 % interval", "", right=(2,))
    for entry in calibration["moved"]:
        note = "at its bound" if entry["at_bound"] else "may be no change" if _unsure(entry) else ""
        interval = f"{entry['low']:.3f} … {entry['high']:.3f}"
        table.add_row(entry["factor"], entry["group"], f"{entry['change']:.3f}", interval, note)
    out.print(table)


def _print_predictions(out: Console, calibration: dict[str, Any]) -> None:
    """What was measured, and predicted before and with the files written; the runs furthest off."""
    metrics = {metric.field: metric for metric in COMPARED.values()}
    table = new_table(
        "predicted with the files written",
        "metric",
        "",
        "measured",
        "before",
        "after",
        "error",
        right=range(3, 7),
    )
    runs = sorted(
        calibration["predicted"], key=lambda run: abs(run["after"] / run["measured"] - 1), reverse=True
    )
    for run in runs[:MOST_PREDICTIONS]:
        metric = metrics[run["metric"]]
        figures = [number(run[name] * metric.scale, 4) for name in ("measured", "before", "after")]
        error = percent(run["after"] / run["measured"] - 1, signed=True)
        table.add_row(run["id"], metric.label, metric.unit, *figures, error)
    out.print(table)
    if len(runs) > MOST_PREDICTIONS:
        out.print(f"  {number(len(runs) - MOST_PREDICTIONS)} more that are nearer: in --json")


def _print_contradictions(out: Console, calibration: dict[str, Any]) -> None:
    """Runs of one case that measured different figures: no factor can fit both."""
    if not calibration["contradictions"]:
        return
    metrics = {metric.field: metric for metric in COMPARED.values()}
    table = new_table("contradict each other", "metric", "", "lowest", "highest", "runs", right=range(3, 6))
    for entry in calibration["contradictions"][:REASONS]:
        metric = metrics[entry["metric"]]
        low, high = (number(entry[end] * metric.scale, 4) for end in ("low", "high"))
        ids = f"{entry['low_id']}, {entry['high_id']}"
        table.add_row(ids, metric.label, metric.unit, low, high, number(entry["runs"]))
    out.print(table)
    more = len(calibration["contradictions"]) - REASONS
    rest = f"; {number(more)} more in --json" if more > 0 else ""
    out.print(f"The same was asked, and figures differ by more than 20 %: no factor can fit both{rest}.")


def _print_use(out: Console, calibration: dict[str, Any], files: Sequence[Path]) -> None:
    """How the files are used: nothing uses them by itself."""
    out.print("No estimate uses these files unless it is told to:")
    use = " ".join(f"--profile {path}" for path in files)
    out.print(f"use {'it' if len(files) == 1 else 'them'} with: mantile estimate … {use}")
    out.print(f"or in a scenario: profiles: [{', '.join(map(str, files))}]")
    for path, cases in zip(files, calibration["holds_for"], strict=True):
        out.print(f"  {path.name} holds for {cases}")


def _unsure(entry: Mapping[str, float]) -> bool:
    """Whether the 80 % interval of a factor holds no change at all."""
    return entry["low"] <= 1 <= entry["high"]


def certainty(calibration: dict[str, Any]) -> list[str]:
    """What a fit to so many runs may be trusted for, in sentences.

    Args:
        calibration: `Calibration.to_dict()`.
    """
    runs, changed = calibration["runs"], calibration["moved"]
    unsure = sum(map(_unsure, changed))
    sentences = []
    if runs < FEW * len(changed):
        sentences.append(
            f"Only {runs} runs for {len(changed)} factors: single factors are little more than the profiles "
            "they came "
            "from; trust the times these runs span, not single factors or plans far from them."
        )
    if unsure:
        sentences.append(f"{unsure} of {len(changed)} factors cannot be told from no change at 80 %.")
    if not calibration["out_of_sample"]:
        sentences.append(
            "The errors after are on the runs fitted; --cross-validate config says how runs not seen are "
            "predicted."
        )
    return sentences
