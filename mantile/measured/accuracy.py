"""README's table of accuracy, made from a reconciliation of measured runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mantile.library.profiles import load_library

if TYPE_CHECKING:
    import pandas as pd

    from mantile.measured.reconcile import Reconciliation

COLUMNS = (  # title, metric of a reconciliation, figure of it, with a sign
    ("TPOT MAPE", "tpot", "mape", False),
    ("TPOT median", "tpot", "median", False),
    ("TPOT bias", "tpot", "bias", True),
    ("TTFT median", "ttft", "median", False),
    ("throughput MAPE", "throughput", "mape", False),
    ("throughput median", "throughput", "median", False),
)
NONE = "–"  # where a metric was not measured


def accuracy_table(reconciliation: Reconciliation) -> list[str]:
    """The lines of a Markdown table: how far off predictions are for all aggregated runs and parts of them, disaggregated ones and single users."""
    lines = [
        f"| {' | '.join(('measured runs', 'runs', *(title for title, *_ in COLUMNS)))} |",
        f"|---|{'---:|' * (1 + len(COLUMNS))}",
    ]
    for name, part in _parts(reconciliation.table):
        found = reconciliation.metrics(part)
        cells = [
            _percent(found[metric][figure], signed) if metric in found else NONE
            for _, metric, figure, signed in COLUMNS
        ]
        lines.append(f"| {' | '.join((name, f'{len(part):,}', *cells))} |")
    return lines


def _parts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Names and runs of the rows, those without runs left out.

    A single user's run has one request and says nothing of its TTFT: generation and prompt were timed by themselves.
    """
    alone = (table["concurrency"] == 1) & table["ttft_measured"].isna()
    apart = table["mode"] == "disaggregated"
    served = table[~alone & ~apart]
    if len(served):
        yield "all aggregated runs", served
    for field in ("framework", "accelerator", "model"):
        for name, part in served.groupby(field):
            yield str(name), part
    if apart.any():
        yield "disaggregated", table[apart]
    decode = table[alone & ~apart & table["tpot_measured"].notna()]
    vendors = decode["accelerator"].map({chip.id: chip.vendor for chip in load_library().accelerators})
    for vendor in sorted(vendors.unique(), key=lambda name: (-int((vendors == name).sum()), name)):
        yield f"single user, {vendor}: decode", decode[vendors == vendor]


def _percent(fraction: float, signed: bool) -> str:
    """One decimal; a signed figure has its sign, with the minus of the typographer."""
    figure = round(100 * fraction, 1) + 0.0  # no negative zero
    return f"{figure:{'+' if signed and figure else ''}.1f} %".replace("-", "−")
