"""What all sheets of a report share: the runs in the order in which they stand, the metrics, and the book."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mantile.library.version import __version__
from mantile.measured.metrics import COMPARED, ComparedMetric, labelled
from mantile.measured.reconcile import ErrorsByMetric, Reconciliation
from mantile.workbook import style
from mantile.workbook.book import Book, Document, Family, Sheet
from mantile.workbook.style import Style

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 32_000  # characters of a cell
PERCENT = style.table("percent1").form
SIGNED = style.table("percent1_signed").form
COUNT = style.number_format("token")
RATIO = style.number_format("1")
FORMS = {name: style.amount(metric.digits) for name, metric in COMPARED.items()}
"""Number formats of metrics, in the unit shown."""

LINKED = style.VALUE.but(colour=style.LINK)
LINKED_TEXT = style.LABEL.but(colour=style.LINK, shrink=True)

_SHEETS: dict[str, Family] = {
    "Summary": "front",
    "Charts": "outputs",
    "Groups": "outputs",
    "Best and worst": "outputs",
    "Runs": "workings",
    "Not answered": "control",
    "Assumptions": "control",
}


@dataclass(frozen=True)
class Report:
    """A reconciliation, arranged as the report shows it.

    Args:
        reconciliation: runs beside predictions.
        book: the workbook, all sheets in their order.
        modes: the runs by mode, lengths in words.
        table: all runs in the order of the sheet Runs: one mode after the other.
        metrics: that were measured.
        errors: of each metric, by mode.
        mode, metric: of the headline: the first mode with errors, and TPOT where it was measured.
    """

    reconciliation: Reconciliation
    book: Book
    modes: dict[str, pd.DataFrame]
    table: pd.DataFrame
    metrics: tuple[ComparedMetric, ...]
    errors: dict[str, ErrorsByMetric]
    mode: str
    metric: ComparedMetric

    @classmethod
    def of(cls, reconciliation: Reconciliation) -> Report:
        """The report of a reconciliation that has a metric, its sheets still empty."""
        import pandas as pd

        modes = {
            mode: part.assign(lengths=[_lengths(text) for text in part["lengths"]])
            for mode, part in reconciliation.modes().items()
        }
        errors = {mode: reconciliation.metrics(part) for mode, part in modes.items()}
        headline = next(mode for mode, metrics in errors.items() if metrics)
        metric = "tpot" if "tpot" in errors[headline] else next(iter(errors[headline]))
        document = Document(
            title=f"Reconciliation of {reconciliation.source}",
            comment=f"Mantile {__version__}",
            footer=f"Mantile {__version__}",
            opens_on="Summary",
        )
        book = Book(document)
        for name, family in _SHEETS.items():
            book.add_sheet(Sheet(name, family, default_height=20, one_page_wide=True))
        return cls(
            reconciliation=reconciliation,
            book=book,
            modes=modes,
            table=pd.concat(list(modes.values()), ignore_index=True),
            metrics=tuple(labelled(name, figures) for name, figures in reconciliation.metrics().items()),
            errors=errors,
            mode=headline,
            metric=labelled(metric, errors[headline][metric]),
        )


def _lengths(text: str) -> str:
    """Lengths in words: spreadsheets read some that are joined by a slash as dates."""
    first, _, second = text.partition("/")
    return f"{int(first):,} in, {int(second):,} out"


def add_title_rows(sheet: Sheet, purpose: str, widths: list[float], frozen: tuple[int, int]) -> None:
    """Title and purpose; the rows above `frozen` stay in sight and are repeated in print."""
    sheet.widths = widths
    sheet.purpose = purpose
    sheet.heights[0] = 34
    sheet.set_text(0, 0, sheet.name, style.SHEET_TITLE)
    sheet.set_text(1, 0, purpose, style.PURPOSE)
    sheet.freeze = frozen
    sheet.repeat_rows = (0, frozen[0] - 1)


def add_heads(
    sheet: Sheet, row: int, heads: list[str], right: range | tuple[int, ...] = (), first: int = 0
) -> None:
    """A row of column heads.

    Args:
        right: numbers of the columns whose heads stand above numbers.
        first: number of the first column.
    """
    sheet.heights[row] = 22
    for column, head in enumerate(heads, first):
        sheet.set_text(row, column, head, style.HEADER_RIGHT if column in right else style.HEADER)


def edge_above(look: Style, wanted: bool) -> Style:
    """A style with a thin rule above, where it is wanted."""
    return look.but(top=(style.THIN, style.HAIRLINE)) if wanted else look
