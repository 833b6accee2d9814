"""The Log sheet: what was generated, the results then and now, and room for signatures."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE, Check
from mantile.equations.constants import MILLI
from mantile.graph.quantity import Input, Quantity, Section, absolute, span, total, where
from mantile.workbook import style
from mantile.workbook.book import Book, Sheet
from mantile.workbook.sheets.furniture import furnish


@dataclass(frozen=True)
class Stamp:
    """Headline results as they were when the file was made, and whether the live ones still equal them."""

    figures: tuple[Quantity, ...]
    stored: tuple[Input, ...]
    unchanged: Check
    section: Section


def stamp(book: Book) -> Stamp:
    """Results of every scenario as generated; the alert that inputs changed compares the live ones with them."""
    equations = book.estimate.equations
    served = equations.serving
    figures = (served.ttft, served.tpot, served.output_tokens_per_s, equations.decoders.memory.used)
    stored = tuple(
        Input(f"stamp.{figure.id}", f"As generated: {figure.label}", figure.unit, 0, "result when the file was made", "native engine",
              "defined", fixed=True)
        for figure in figures
    )  # fmt: skip
    for column, values in enumerate(book.estimate_values):
        book.stamps[column] |= {then.id: float(values[figure]) for figure, then in zip(figures, stored, strict=True)}
    changed = tuple(
        Quantity(f"{then.id}.changed", f"Changed: {figure.label}", "flag",
                 where(absolute(figure - then) <= TOLERANCE * absolute(then), 0, 1), note="1 if the live result differs from its stamp")
        for figure, then in zip(figures, stored, strict=True)
    )  # fmt: skip
    distance = Quantity("stamp.changed", "Headline results that changed", "flag", total(span(changed)), note="sum of the rows above")
    none = Input("stamp.none", "No change", "flag", 0, "fixed side of a check", "definition", "defined", shared=True, fixed=True)
    unchanged = Check("INPUTS_CHANGED", "Alerts", "Headline results equal those of generation", distance, "exactly", none, False)
    section = Section("As generated", (*stored, *changed, distance, none),
                      "headline results stored as values; live ones differ once an input is edited")  # fmt: skip
    return Stamp(figures, stored, unchanged, section)


def log_sheet(book: Book, made: Stamp, master: Quantity) -> Sheet:
    """Lay out the Log sheet."""
    estimate = book.estimate
    sheet = book.add(Sheet("Log", "control", "What changed, why, and what it did to the answer. The last row is this file, "
                           "recalculated: it differs from the stamp once an input is edited."))  # fmt: skip
    sheet.widths = [70, 100, 312, 372, 104, *([92] * 4), 110, 110]
    sheet.default_height = 26
    last = 8
    furnish(book, sheet, "Log", last, master)
    sheet.heights |= {2: 6, 3: 20, 4: 20}
    for column, head in enumerate(("version", "date", "what changed", "why", "")):
        sheet.text(3, column, "", style.HEADER.but(bottom=None))
        sheet.text(4, column, head, style.HEADER)
    for column, (top, head) in enumerate((("TTFT, ms", "before"), ("", "after"), ("TPOT, ms", "before"), ("", "after")), 5):
        sheet.text(3, column, top, style.HEADER_RIGHT.but(bottom=None))
        sheet.text(4, column, head, style.HEADER_RIGHT)
    line = style.Style(bottom=(style.THIN, style.FAINT))
    number = style.value("us").but(bottom=(style.THIN, style.FAINT))
    for column, words in enumerate(("1", estimate.scenario.date or "not dated", f"generated: {estimate.title}"[:60],
                                    estimate.scenario.why, "")):  # fmt: skip
        sheet.text(5, column, words, line)
    row = 6
    overrides = {(override.id, override.value): override for column in estimate.columns for override in column.overrides}
    overrides |= {(override.id, override.value): override for override in estimate.scenario.overrides}
    for override in overrides.values():
        for column, words in ((2, f"override: {override.id} = {override.value:g}"), (3, override.reason)):
            sheet.text(row, column, words, line.but(shrink=True))
        sheet.band(row, 0, last, line)
        row += 1
    ttft, tpot = made.figures[0], made.figures[1]
    then_ttft, then_tpot = made.stored[0], made.stored[1]
    for column in (5, 7):
        sheet.text(5, column, "–", number.but(form=style.TEXT_VALUE.form))
    sheet.formula(5, 6, then_ttft * MILLI, number)
    sheet.formula(5, 8, then_tpot * MILLI, number)

    total = style.Style(bold=True, fill=style.PANEL, top=(style.THIN, style.INK))
    plain = total.but(bold=False)
    sheet.text(row, 0, "live", total)
    sheet.text(row, 1, "", plain)
    sheet.text(row, 2, "this file, recalculated", plain)
    sheet.text(row, 3, "before = stamp of generation, after = live result", plain)
    sheet.formula(row, 4, where(made.unchanged.result > 0, "✓ unchanged", "! changed"), total.but(colour=style.PASS))
    sheet.conditional.append(((row, 4, row, 4), {"type": "text", "criteria": "begins with", "value": "!",
                                             "format": style.Style(colour=style.ALERT, bold=True)}))  # fmt: skip
    live = style.value("us", role="link").but(fill=style.PANEL, top=(style.THIN, style.INK))
    for column, figure in ((5, then_ttft), (6, ttft), (7, then_tpot), (8, tpot)):
        look = live if figure in made.figures else live.but(colour=style.INK)
        sheet.formula(row, column, figure * MILLI, look)

    row += 2
    sheet.text(row, 0, "Sign-off", style.SECTION_HEAD)
    sheet.band(row, 1, last, style.SECTION_HEAD)
    for column, head in ((0, "role"), (2, "name"), (3, "remarks"), (4, "date"), (6, "signature")):
        sheet.text(row + 1, column, head, style.HEADER)
    sheet.band(row + 1, 0, last, style.HEADER)
    for offset, role in enumerate(("Prepared by", "Reviewed by", "Approved by"), row + 2):
        rule = style.Style(bottom=(style.THIN, style.GREY), valign="bottom", unlocked=True)
        sheet.text(offset, 0, role, rule.but(unlocked=False))
        sheet.band(offset, 1, last, rule)
        sheet.heights[offset] = 32
    sheet.print_area = (0, 0, row + 4, last)
    return sheet
