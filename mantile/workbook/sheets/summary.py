"""The Summary sheet, one page: selectors, the answer, what limits it, and how far one may trust it."""

from __future__ import annotations

from mantile.equations.checks import Verdict
from mantile.equations.stamp import Stamp
from mantile.equations.sweep import seen_from_elsewhere
from mantile.equations.tables import Equations
from mantile.graph.quantity import Input
from mantile.library.fields import DECODE
from mantile.library.runs import NOTHING_NEAR
from mantile.workbook import style
from mantile.workbook.book import A4, ACROSS, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.audit import ASSUMPTIONS, LOG
from mantile.workbook.sheets.contents import add_contents
from mantile.workbook.sheets.frame import show_master
from mantile.workbook.sheets.sensitivity import SensitivityPart
from mantile.workbook.sheets.summary_charts import CHART_DATA, SummaryCharts, add_all
from mantile.workbook.sheets.summary_tiles import add_tiles
from mantile.workbook.sheets.sweep import SweepPart
from mantile.workbook.sheets.workings import typed

FIRST, LAST = 1, 9  # columns
SELECTORS = (
    (
        "accelerator",
        "system",
        "framework",
        "weights_dtype",
        "activation_dtype",
        "kv_dtype",
        "batching",
        "price_basis",
        "utilisation",
    ),
    ("tp", "pp", "dp", "ep", "attention_dp", "cp", "input_tokens", "output_tokens", "concurrency"),
)
_SELECTOR_ROWS = (3, 5)  # of their labels; the cells stand below
_DECODE_SYSTEM = 7  # row
_LIMITS, _OUTLOOK, _TRUST = 16, 31, 46  # rows of section heads
_CONTENTS = _TRUST + 6
_HEIGHTS = {
    **dict.fromkeys((*range(17, 29), *range(32, 44)), 19),  # of charts
    0: 32,
    1: 20,
    2: 4,
    3: 19,
    4: 21,
    5: 19,
    6: 21,
    7: 4,
    8: 18,
    9: 17,
    10: 34,
    11: 17,
    12: 48,
    13: 16,
    14: 18,
    15: 4,
    16: 20,
    29: 8,
    30: 3,
    31: 20,
    44: 6,
    45: 3,
    46: 20,
    47: 17,
    48: 17,
    49: 17,
    50: 17,
}


def select(book: EstimateBook) -> Sheet:
    """Make the sheet with the selectors, the cells in which the base scenario's inputs are typed."""
    sheet = book.add_sheet(Sheet("Summary", "front"))
    sheet.widths = [12, *([145] * 9)]
    sheet.heights = dict(_HEIGHTS)
    sheet.default_height = 20
    for row, names in zip(_SELECTOR_ROWS, SELECTORS, strict=True):
        _select_row(book, sheet, row, names)
    if len(book.estimate.equations.workers) > 1:
        _select_decode_system(book, sheet)
    return sheet


def summary_sheet(
    book: EstimateBook,
    verdict: Verdict,
    stamp: Stamp,
    sensitivity_part: SensitivityPart,
    sweep_part: SweepPart,
) -> None:
    """Fill the Summary sheet."""
    sheet = book.sheets["Summary"]
    of_workbook = stamp.rows
    of_workbook.know(verdict.master, verdict.headline, verdict.alerts, verdict.stamp)
    _heading(book, sheet, verdict, of_workbook)
    add_tiles(book, sheet)
    _section_head(sheet, _LIMITS, "What limits it")
    for column, (limit, colour) in enumerate(style.BOUND_TEXTS.items(), 6):
        look = style.SECTION_HEAD.but(size=9.5, colour=colour, align="right")
        sheet.set_text(_LIMITS, column, f"■ {limit}", look)
    _section_head(sheet, _OUTLOOK, "How far from the limits, and what would change it")
    if sweep_part.note is not None:
        look = style.SECTION_HEAD.but(size=9.5, colour=style.GREY, align="right", bold=False)
        sheet.set_formula(_OUTLOOK, LAST, seen_from_elsewhere(sweep_part.note), look, scenario=ACROSS)
    for row in (_LIMITS, _OUTLOOK):
        sheet.set_style(row, FIRST + 1, LAST, style.SECTION_HEAD)
    SummaryCharts(book, sheet).lay_out(sensitivity_part, sweep_part)
    _trust(book, sheet, of_workbook)
    sheet.freeze, sheet.paper = (2, 0), A4
    sheet.print_area = (0, FIRST, _CONTENTS - 2, LAST)


def fill_contents(book: EstimateBook) -> None:
    """Write what the workbook holds below the page, once everything else is laid out."""
    add_contents(book, book.sheets["Summary"], _CONTENTS, CHART_DATA - 1)


def _select_row(book: EstimateBook, sheet: Sheet, row: int, names: tuple[str, ...]) -> None:
    """Selectors side by side below their labels; below those of degrees and lengths the decode workers'.

    Where requests arrive at a rate, or sessions send them, that is selected in place of the concurrency that
    follows from it.
    """
    inputs, small = book.estimate.equations.inputs.named(), _selector_label()
    disaggregated, degrees = len(book.estimate.equations.workers) > 1, row == _SELECTOR_ROWS[1]
    asked = book.estimate.inputs(0)
    loads = ("request_rate", "sessions")
    load = next((load for load in loads if asked.get(f"inputs.{load}")), "concurrency")
    shown = [load if name == "concurrency" else name for name in names]
    for column, name in enumerate((name for name in shown if name in inputs), FIRST):
        label = inputs[name].label
        other = inputs.get(f"{DECODE}{name}") if disaggregated else None
        if other is not None:
            short = name.upper() if len(name) == 2 else label  # TP, PP: the names of degrees are known
            label = f"{short}, prefill; decode" if degrees else f"{label}, prefill"
        sheet.set_text(row, column, label, small)
        _selector(book, sheet, row + 1, column, inputs[name])
        if other is not None and degrees:
            _selector(book, sheet, row + 2, column, other)


def _select_decode_system(book: EstimateBook, sheet: Sheet) -> None:
    """What decode workers stand on, in the line of their degrees."""
    sheet.heights[_DECODE_SYSTEM] = sheet.heights[_DECODE_SYSTEM - 1]
    look = _selector_label().but(align="right", valign="vcenter")
    sheet.set_text(_DECODE_SYSTEM, FIRST + 6, "decode workers on  ", look)
    inputs = book.estimate.equations.inputs.named()
    for column, name in enumerate(("accelerator", "system"), FIRST + 7):
        _selector(book, sheet, _DECODE_SYSTEM, column, inputs[f"{DECODE}{name}"])


def _selector_label() -> style.Style:
    return style.Style(size=style.SMALL, colour=style.GREY, valign="bottom")


def _selector(book: EstimateBook, sheet: Sheet, row: int, column: int, figure: Input) -> None:
    """A cell in which an input of the base scenario is typed."""
    is_text = isinstance(figure.value, str)
    look = style.value(figure.unit, is_text=is_text, role="input", integer=figure.integer)
    look = look.but(align="left", indent=1)
    if figure is book.estimate.equations.inputs.utilisation:
        look = look.but(form=style.FRONT["percent"])
    typed(book, sheet, row, column, figure, 0, look)


def _heading(book: EstimateBook, sheet: Sheet, verdict: Verdict, of_workbook: Equations) -> None:
    """The answer and the plan in words; the verdict of the checks, and whether inputs changed."""
    rows = book.estimate.equations.rows
    book.add_quantity(sheet, 0, FIRST, rows["summary.answer"], style.SUMMARY_TITLE)
    add_all(book, sheet, CHART_DATA + 1, FIRST, "workload", "asked")
    add_all(book, sheet, CHART_DATA + 2, FIRST, "first", "speeds")
    parts = ("short_first", "no_first", "speeds_and_limits", "in_full", "drafted")
    add_all(book, sheet, CHART_DATA + 1, FIRST + 3, *parts)
    book.add_quantity(sheet, 1, FIRST, rows["summary.plan"], style.PURPOSE)
    show_master(sheet, 0, LAST, verdict.headline)
    status, link = of_workbook["summary.status"], book.link_to_part(LOG)
    book.add_quantity(sheet, 1, LAST, status, style.BACK, scenario=ACROSS, link=link)


def _section_head(sheet: Sheet, row: int, text: str) -> None:
    sheet.set_text(row, FIRST, text, style.SECTION_HEAD)


def _trust(book: EstimateBook, sheet: Sheet, of_workbook: Equations) -> None:
    """How good the evidence is, what checks say, whether results are those of generation; the nearest run."""
    line, equations = style.Style(size=9.5), book.estimate.equations
    rows = equations.rows
    for column, head in ((1, "How good is the evidence"), (4, "Checks"), (7, "As generated")):
        sheet.set_text(_TRUST, column, head, style.SECTION_HEAD)
    sheet.set_style(_TRUST, FIRST, LAST, style.SECTION_HEAD)
    for row, column, name in ((1, 1, "profile"), (2, 1, "ranges"), (2, 4, "floors")):
        book.add_quantity(sheet, _TRUST + row, column, rows[f"summary.{name}"], line)
    book.add_quantity(sheet, _TRUST + 1, 7, of_workbook["summary.generated"], line)
    for row, column, name in ((1, 4, "checks"), (3, 4, "advice"), (2, 7, "live")):
        book.add_quantity(sheet, _TRUST + row, column, of_workbook[f"summary.{name}"], line, scenario=ACROSS)
    parts = (f"generated.{name}{short}" for short in ("", ".short") for name in ("ttft", "tpot"))
    add_all(book, sheet, CHART_DATA, FIRST + 3, *parts, rows=of_workbook)
    leads = "Assumptions: what moves the answer; Log: where it comes from"
    sheet.set_text(_TRUST + 3, 1, leads, line, link=book.link_to_part(ASSUMPTIONS))
    sheet.set_text(_TRUST + 3, 7, book.imprint, line)
    if not equations.nearest and equations.library.measured.runs:
        sheet.set_text(_TRUST + 4, FIRST, NOTHING_NEAR.capitalize(), line)
    if equations.nearest:
        add_all(book, sheet, CHART_DATA, FIRST + 2, "nearest_run")
        add_all(book, sheet, CHART_DATA + 1, FIRST + 2, "degrees")
        place = book.addresses[rows["nearest.place"]]
        link = f"internal:'{place.sheet}'!A{place.row}"  # the row above: the head of the block
        book.add_quantity(sheet, _TRUST + 4, FIRST, rows["summary.nearest"], line, link=link)
