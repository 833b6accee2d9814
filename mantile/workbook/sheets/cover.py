"""The Cover: contents, how to use the workbook, what colours mean, the answer, limits, provenance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from textwrap import wrap

from mantile.equations.checks import Verdict
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S_PER_ACCELERATOR, TPOT, TTFT, table_format
from mantile.equations.summary import status
from mantile.estimates.estimate import Estimate
from mantile.ir.counts import tensor_list
from mantile.library.architecture import Model
from mantile.library.fields import DECODE
from mantile.library.scenario import Scenario
from mantile.library.scenario_fields import DEFAULT_SYSTEM
from mantile.workbook import style
from mantile.workbook.book import ACROSS, Cell, Sheet
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.frame import show_master

_CONTENTS = (
    (
        "front",
        (("Summary", "one page: fit, speed, limits, evidence"), ("Checks", "both sides of every check")),
    ),
    (
        "inputs",
        (
            ("Inputs", "workload, parallelism, data types"),
            ("Hardware", "accelerators and links, with sources"),
            ("Efficiency", "how much of the hardware is reached"),
            ("IR", "the model: modules, tensors, facts"),
            ("Modules", "in order, dimensions, formats, origins"),
            ("Shapes", "every tensor: dimensions, format, bytes"),
            ("Facts", "of the architecture, with provenance"),
            ("Tensors", "all tensors, parameters of each"),
        ),
    ),
    (
        "workings",
        (
            ("Calculation", "every row of workings, in parts"),
            ("Memory", "shards, weights, KV cache, activations"),
            ("Network", "what each collective costs"),
            ("Prefill", "module by module"),
            ("Decode", "module by module"),
            ("Serving", "TTFT, TPOT, queueing, throughput"),
            ("Cost", "power, price, cost per token and month"),
            ("Layers", "the same times, by kind of layer"),
            ("Plan", "which accelerator holds what"),
            ("Devices", "who holds which layers, and what sets the pace"),
        ),
    ),
    (
        "outputs",
        (
            ("Compare", "scenarios side by side, changes to the base"),
            ("Alternative", "the same on another accelerator, chosen there"),
            ("Sensitivity", "what the results hang on"),
            ("Sweep", "over one input or two"),
            ("Calibration", "measured beside predicted"),
        ),
    ),
    (
        "control",
        (
            ("Edits", "inputs as generated and now"),
            ("Assumptions", "numbered, with source and effect"),
            ("Log", "versions, edits, sign-off, trace"),
        ),
    ),
)
_USE = (
    "Change any yellow cell on Summary or Inputs: every number and chart follows.",
    "Read Summary. The link behind each number leads to its row.",
    "A row says how it is worked out, its source and its id; + at the left opens what is folded.",
    "Before you rely on it: Checks, then Assumptions, then Log.",
    "mantile verify FILE.xlsx recomputes all of it in Python and lists edited cells.",
)
_LINE = 96  # characters of provenance that fit on a printed line
_NARROW = 8  # height of the rows between families of sheets


def cover_sheet(book: EstimateBook) -> Sheet:
    """Reserve the first place; `fill_cover` writes it once everything else is laid out."""
    sheet = book.add_sheet(Sheet("Cover", "front"))
    sheet.widths = [24, 140, 306, 110, 36, 130, 288, 130, 140]
    sheet.default_height = 22
    return sheet


def fill_cover(book: EstimateBook, verdict: Verdict) -> None:
    """Lay out the Cover."""
    sheet = book.sheets["Cover"]
    _title(book, sheet, verdict)
    row = _contents(book, sheet)
    limits_end = _limits_and_weaknesses(book, sheet, row + 1)
    column = _RightColumn(book, sheet)
    column.how_to_use()
    column.colours()
    column.answer()
    last = column.provenance()
    sheet.print_area = (0, 0, max(limits_end, last), 8)
    sheet.one_page, sheet.freeze = True, (4, 0)


def _title(book: EstimateBook, sheet: Sheet, verdict: Verdict) -> None:
    """What the workbook is and asks; what the checks say, and whether inputs changed."""
    estimate = book.estimate
    sheet.heights |= {0: 20, 1: 42, 2: 26, 3: 14}
    maker = (estimate.template.company or "Mantile").upper()
    look = style.Style(size=style.SMALL, bold=True, colour=style.GREY)
    sheet.set_text(0, 1, f"{maker}  ·  LLM INFERENCE ESTIMATE", look)
    sheet.set_text(1, 1, estimate.title, style.COVER_TITLE)
    sheet.set_text(2, 1, _question(estimate.scenario.why), style.Style(size=12, colour=style.GREY))
    show_master(sheet, 1, 8, verdict.headline)
    sheet.set_formula(2, 8, status(verdict).body, style.BACK, scenario=ACROSS)


def _contents(book: EstimateBook, sheet: Sheet) -> int:
    """The sheets there are, by family, each with what it holds; the row after them."""
    _head(sheet, 4, 1, "Contents")
    row = 6
    name_look = style.Style(bold=True, colour=style.NAVY, indent=1)
    part_look = style.Style(colour=style.NAVY, indent=2)
    places = {
        part: f"internal:'{of.name}'!A{head + 1}"
        for of in book.sheets.values()
        for part, head in of.parts.items()
    }
    for family, entries in _CONTENTS:
        for name, purpose in entries:
            is_sheet = name in book.sheets
            if not is_sheet and name not in places:
                continue
            sheet.set_cell(row, 0, Cell(style.Style(right=(style.THICK, style.TABS[family]))))
            link = f"internal:'{name}'!A1" if is_sheet else places[name]
            sheet.set_text(row, 1, name, name_look if is_sheet else part_look, link=link)
            sheet.set_text(row, 2, purpose, style.PURPOSE)
            sheet.set_text(row, 3, _extent(book, name), style.BACK)
            row += 1
        sheet.heights[row] = _NARROW
        row += 1
    return row


def _limits_and_weaknesses(book: EstimateBook, sheet: Sheet, row: int) -> int:
    """What the estimate leaves out; the row after the last."""
    _head(sheet, row, 1, "Limits and weaknesses")
    limits = _limits(book.estimate)
    for below, limit in enumerate(limits, row + 2):
        sheet.set_text(below, 1, limit, style.LABEL)
    return row + 2 + len(limits)


def _head(sheet: Sheet, row: int, column: int, text: str) -> None:
    """A head over the left or the right half of the page."""
    rule = style.Style(size=12, bold=True, colour=style.NAVY, bottom=(style.THICK, style.NAVY))
    sheet.set_text(row, column, text, rule)
    sheet.set_style(row, column + 1, 3 if column == 1 else 8, rule)


class _RightColumn:
    """The right half of the page, filled from top to bottom, past the narrow rows of the left half."""

    def __init__(self, book: EstimateBook, sheet: Sheet) -> None:
        self.book, self.sheet = book, sheet
        narrow = {row for row, height in sheet.heights.items() if height == _NARROW}
        self.rows: Iterator[int] = (row for row in count(6) if row not in narrow)

    def how_to_use(self) -> None:
        """Steps for a reader."""
        _head(self.sheet, 4, 5, "How to use this workbook")
        for number, step in enumerate(_USE, 1):
            self.sheet.set_text(next(self.rows), 5, f"{number}   {step}", style.LABEL)

    def colours(self) -> None:
        """A sample of each kind of cell."""
        self._head("What the colours mean")
        for look, sample, meaning in _samples():
            row = next(self.rows)
            self.sheet.set_cell(row, 5, Cell(look, number=sample))
            self.sheet.set_text(row, 6, meaning, style.LABEL.but(indent=1))

    def answer(self) -> None:
        """The headline results."""
        figures = self.book.estimate.equations.figures
        rate = OUTPUT_TOKENS_PER_S_PER_ACCELERATOR
        self._head("The answer")
        for metric, unit, meaning in (
            (TTFT, TTFT.display_unit, "to the first token"),
            (TPOT, TPOT.display_unit, "per further token"),
            (rate, "", rate.definition),
        ):
            form = style.amount(metric.large_digits, unit) if unit else table_format(metric.large_digits)
            row, look = next(self.rows), style.Style(form=form, bold=True, align="right")
            shown = self.book.displayed(metric.of(figures), metric.display_unit)
            self.sheet.set_formula(row, 5, shown, look)
            self.sheet.set_text(row, 6, meaning, style.LABEL.but(indent=1))

    def provenance(self) -> int:
        """What the workbook was made from; the last row."""
        book, sheet = self.book, self.sheet
        self._head("Provenance")
        rate = book.currency.rate
        if rate is not None:
            row = next(self.rows)
            look = style.value("1", role="fixed").but(form="0.0000", align="left")
            sheet.set_text(row, 5, rate.label, style.PURPOSE)
            book.add_constant(sheet, row, 6, rate, look)
        for label, text in (
            ("generator", book.generator),
            ("bundle", f"{book.digest}, very-hidden sheet {BUNDLE_SHEET}"),
            ("profiles", _versions(book)),
            ("model", _model(book.estimate.model)),
            ("architecture", book.estimate.model.source),
            ("handles", "defined names in_… for inputs; ttft, tpot, e2e, fits, … for results"),
            ("licence", "Apache-2.0"),
        ):
            for place, line in enumerate(wrap(text, _LINE, break_on_hyphens=False)):
                row = next(self.rows)
                sheet.set_text(row, 5, "" if place else label, style.PURPOSE)
                sheet.set_text(row, 6, line, style.LABEL)
        return row

    def _head(self, text: str) -> None:
        """A head behind an empty row."""
        next(self.rows)
        _head(self.sheet, next(self.rows), 5, text)


def _samples() -> tuple[tuple[style.Style, float, str], ...]:
    """Kinds of cells: look, a number in it, what it means."""
    right = {"align": "right"}
    alert = {"colour": style.ALERT, "fill": style.ALERT_FILL, "bold": True, **right}
    fail = {"colour": style.FAIL, "fill": style.FAIL_FILL, "bold": True, **right}
    entry = style.value("token", role="input").but(unlocked=False)
    factor = style.value("1").but(left=(style.THICK, style.FACTOR_EDGE))
    return (
        (entry, 2048.0, "input: typed, unlocked; blue on pale yellow"),
        (style.value("1"), 0.245, "calculation: black, locked"),
        (style.value("FLOP/s", role="link"), 989.4e12, "link to another sheet: green"),
        (factor, 0.77, "efficiency factor: purple edge"),
        (style.value("1", role="fixed"), 2.0, "definition or structure: grey, locked"),
        (style.front("check", colour=style.PASS, **right), 1.0, "check holds"),
        (style.front("alert", **alert), 0.0, "needs attention; the estimate stands"),
        (style.front("check", **fail), 0.0, "failed check: red is used for nothing else"),
    )


def _question(why: str) -> str:
    """Why the workbook was made; where the scenario does not say, what any of them answers."""
    asked = why != Scenario.model_fields["why"].default
    return (
        why[:1].upper() + why[1:]
        if asked
        else "What latency, throughput and memory can this deployment really reach?"
    )


def _limits(estimate: Estimate) -> list[str]:
    """What the estimate leaves out, of what its scenarios could meet."""
    loops = (
        ["under a closed loop of fixed concurrency"]
        if any(not column.values.get("request_rate") for column in estimate.columns)
        else []
    )
    if estimate.scenario.open_loop:
        loops.append("with requests that arrive at random at a steady rate")
    limits = [
        f"Steady state {', or '.join(loops)}; no peaks, no failures.",
        "TTFT is a mean and the less certain of the two latencies: measured TTFT spreads widely.",
        *_left_out(estimate.scenario),
    ]
    if estimate.scenario.caches_prefixes:
        limits.append("Requests come back to every prefix equally often, and to the replica that holds it.")
    limits.append("Percentiles take the parts of a request to be independent of each other.")
    if estimate.scenario.classes:
        limits.append("The running batch holds requests of mean length, whatever their class.")
    if estimate.equations.ir.model.architecture.value("experts"):
        limits.append("Experts are chosen evenly.")
    if estimate.scenario.disaggregated:
        limits.append(
            "Prefill and decode workers apart were measured least: expect errors of a third and more."
        )
    return limits


def _left_out(scenario: Scenario) -> list[str]:
    """What engines may do and the scenarios do not ask for."""
    left = [] if scenario.caches_prefixes else ["no prefix caching"]
    left += [] if "speculation" in scenario.stated else ["no speculative decoding"]
    words = ", ".join(left)
    return [f"{words[0].upper()}{words[1:]}."] if words else []


def _versions(book: EstimateBook) -> str:
    """The versions of the hardware profiles that the scenarios use; the Hardware sheet has those of all."""
    library = book.estimate.library
    used: dict[str, None] = {}
    for column_number, column in enumerate(book.estimate.columns):
        for prefix in ("", DECODE):
            if prefix == "" or column.values.get("serving") == "disaggregated":
                results = book.estimate.results(column_number)
                chip = library.accelerator(results[f"{prefix}accelerator"])
                asked = results[f"{prefix}system"]
                system = library.usual_system(chip.id) if asked == DEFAULT_SYSTEM else library.system(asked)
                used |= {f"{chip.id} {chip.version}": None, f"{system.id} {system.version}": None}
                price = library.price(chip.id)
                if price is not None:
                    used[f"prices {price.version}"] = None
    return ", ".join(used)


def _model(model: Model) -> str:
    """The entry of the library with its version, and its name on the hub; of any other model its name."""
    entry = [model.pin] if model.version else []
    return ", ".join(filter(None, (*entry, model.hub_id))) or model.id


def _extent(book: EstimateBook, name: str) -> str:
    """How much there is on a sheet, or of what a part of one counts."""
    sheet = book.sheets.get(name, Sheet(name, "front"))
    if name == "Summary":
        return "1 page"
    if name == "Checks":
        return f"{sum(1 for code in sheet.ids.values() if code)} checks"
    if name == "Inputs":
        return f"{len(book.estimate.equations.inputs.named())} inputs"
    if name in ("Hardware", "Efficiency"):
        return f"{sum(1 for cell in sheet.cells.values() if cell.entry is not None):,} inputs"
    if name == "Facts":
        return f"{len(book.estimate.equations.ir.facts)} facts"
    if name == "Tensors":
        return f"{sum(tensor['count'] for tensor in tensor_list(book.estimate.equations.ir)):,} tensors"
    if name == "Layers":
        return f"{len(book.estimate.equations.ir.model.architecture.sequence())} layers"
    return f"{len(sheet.ids):,} rows" if sheet.ids else ""
