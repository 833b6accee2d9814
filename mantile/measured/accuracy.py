"""How accurate the estimates are: the tables of workbooks/accuracy.md, to which all other places refer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mantile.library.profiles import load_library
from mantile.measured.metrics import COMPARED, ERROR_FIGURES

if TYPE_CHECKING:
    import pandas as pd

    from mantile.measured.reconcile import Reconciliation

PUBLIC = "public serving runs"
SELECTION = "runs in this repository"
IN_SHORT = ("tpot", "ttft", "throughput")  # metrics of the short table, mean and median error of each
BY_GROUP = (  # metric and error figure of each column of the table by group
    ("tpot", "mape"),
    ("tpot", "median"),
    ("tpot", "bias"),
    ("ttft", "median"),
    ("throughput", "mape"),
    ("throughput", "median"),
)
NOTHING = "–"  # where a metric was not measured


def accuracy_page(text: str, selection: Reconciliation, public: Reconciliation | None = None) -> str:
    """The page of accuracy with its tables worked out again; what stands around them stays.

    Args:
        text: the page, with the marks `<!-- short: begin -->`, `<!-- short: end -->`, and the same for
            `groups`.
        selection: the runs of workbooks/accuracy.yaml beside predictions.
        public: all public serving runs beside predictions; their rows stay as they are if None.
    """
    shown = short_table(selection, public)
    if public is None:
        shown[2:2] = [line for line in marked_lines(text, "short") if line.startswith(f"| {PUBLIC}")]
    return with_marked_lines(with_marked_lines(text, "short", shown), "groups", table_by_group(selection))


def marked_lines(text: str, name: str) -> list[str]:
    """The lines between the marks of a table."""
    begin, end = _marks(name)
    return text.partition(begin)[2].partition(end)[0].strip().split("\n")


def with_marked_lines(text: str, name: str, lines: Sequence[str]) -> str:
    """The text with other lines between the marks of a table."""
    begin, end = _marks(name)
    before, after = text.partition(begin)[0], text.partition(end)[2]
    return "\n".join((f"{before}{begin}", *lines, f"{end}{after}"))


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def short_table(selection: Reconciliation, public: Reconciliation | None = None) -> list[str]:
    """The lines of a Markdown table: mean and median error of TPOT, TTFT and throughput, a row for each kind
    of runs."""
    heads = ["measured", "runs", *(f"{COMPARED[name].label}, mean / median error" for name in IN_SHORT)]
    rows = []
    for title, reconciliation in ((PUBLIC, public), (SELECTION, selection)):
        if reconciliation is None:
            continue
        for kind, part in _kinds(reconciliation.table):
            metrics = reconciliation.metrics(part)
            cells = [
                f"{100 * metrics[name]['mape']:.1f} / {_percent(metrics[name]['median'])}"
                if name in metrics
                else NOTHING
                for name in IN_SHORT
            ]
            rows.append([f"{title}, {kind}", f"{len(part):,}", *cells])
    return _markdown(heads, rows)


def table_by_group(selection: Reconciliation) -> list[str]:
    """The lines of a Markdown table: errors of aggregated runs by framework, accelerator and model, and of
    the others."""
    heads = ["measured runs", "runs"]
    heads += [f"{COMPARED[metric].label} {ERROR_FIGURES[figure]}" for metric, figure in BY_GROUP]
    rows = []
    for title, part in _groups(selection.table):
        metrics = selection.metrics(part)
        cells = [
            _percent(metrics[metric][figure], figure == "bias") if metric in metrics else NOTHING
            for metric, figure in BY_GROUP
        ]
        rows.append([title, f"{len(part):,}", *cells])
    return _markdown(heads, rows)


def _kinds(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Aggregated and disaggregated serving runs, those with drafts, and decode of single users, as there are.

    A run of a single user has one request and says nothing of its TTFT: prompt and generation were timed by
    themselves.
    """
    single = (table["concurrency"] == 1) & table["ttft_measured"].isna()
    aggregated = table["mode"] == "aggregated"
    kinds = {
        "aggregated": ~single & aggregated,
        "disaggregated": table["mode"] == "disaggregated",
        "with drafts": table["mode"] == "drafts",
        "decode of a single user": single & aggregated & table["tpot_measured"].notna(),
    }
    for kind, chosen in kinds.items():
        if chosen.any():
            yield kind, table[chosen]


def _groups(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """All aggregated runs and parts of them, disaggregated ones, and single users by vendor of the
    accelerator."""
    kinds = dict(_kinds(table))
    aggregated = kinds.pop("aggregated", table[:0])
    if len(aggregated):
        yield "all aggregated runs", aggregated
    for field in ("framework", "accelerator", "model"):
        yield from ((str(name), part) for name, part in aggregated.groupby(field))
    if "disaggregated" in kinds:
        yield "disaggregated", kinds["disaggregated"]
    single = kinds.get("decode of a single user", table[:0])
    vendors = single["accelerator"].map({chip.id: chip.vendor for chip in load_library().accelerators})
    for vendor in sorted(vendors.unique(), key=lambda name: (-int((vendors == name).sum()), name)):
        yield f"single user, {vendor}: decode", single[vendors == vendor]


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table, all columns but the first aligned to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _percent(fraction: float, signed: bool = False) -> str:
    """One decimal; a signed figure has its sign, with the minus of the typographer."""
    figure = round(100 * fraction, 1) + 0.0  # no negative zero
    return f"{figure:{'+' if signed and figure else ''}.1f} %".replace("-", "−")
