"""Below the Summary: contents, how to use the workbook, what colours mean, limits, provenance."""

from __future__ import annotations

from textwrap import wrap

from mantile.estimates.estimate import Estimate
from mantile.ir.counts import tensor_list
from mantile.library.architecture import Model
from mantile.library.fields import DECODE
from mantile.library.scenario import Scenario
from mantile.library.scenario_fields import DEFAULT_SYSTEM
from mantile.workbook import style
from mantile.workbook.book import Cell, Sheet
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.estimate_book import EstimateBook

_PURPOSES = {
    "Summary": "one page: fit, speed, limits, evidence",
    "Capacity": "replicas by hour, to buy, to rent or to call",
    "Inputs": "workload, parallelism, data types; what was edited",
    "Hardware": "accelerators and links, with sources",
    "Efficiency": "how much of the hardware is reached",
    "Factors": "by profile, from wide to specific; overrides",
    "IR": "modules, tensors and facts of the architecture",
    "Modules": "in order, dimensions, formats, origins",
    "Shapes": "every tensor: dimensions, format, bytes",
    "Facts": "of the architecture, with provenance",
    "Tensors": "all tensors, parameters of each",
    "Calculation": "every row of workings, in parts",
    "Memory": "shards, weights, KV cache, activations",
    "Network": "what each collective costs",
    "Prefill": "module by module",
    "Decode": "module by module",
    "Serving": "TTFT, TPOT, queueing, throughput",
    "Cost": "power, price, cost per token and month",
    "Finance": "a demand that grows, and what it costs",
    "Layers": "where the time goes, by kind of layer",
    "Plan": "which accelerator holds what",
    "Devices": "who holds which layers, and what sets the pace",
    "What-if": "what would change the answer",
    "Decision": "plans that were searched for, and one to take",
    "Comparison": "scenarios side by side, changes to the base",
    "Alternative": "the same on another accelerator, chosen there",
    "Sensitivity": "what the results hang on",
    "Sweep": "over one input or two",
    "Calibration": "measured beside predicted",
    "Audit": "whether it holds together, and what changed",
    "Checks": "both sides of every check",
    "Assumptions": "numbered, with source and effect",
    "Log": "versions, edits, sign-off, trace",
}
"""What stands on sheets and their parts."""
_USE = (
    "Change any yellow cell on Summary or Inputs: every number and chart follows.",
    "Read Summary. The link behind each number leads to its row.",
    "A row says how it is worked out, its source and its id; + at the left opens what is folded.",
    "Before you rely on it: the checks, assumptions and log on Audit.",
    "mantile verify FILE.xlsx recomputes all of it in Python and lists edited cells.",
)
_LINE = 96  # characters of provenance that fit on a printed line
_HEIGHT = 20  # of a row
_LEFT, _RIGHT, _LAST = 1, 5, 9  # first columns of both halves, and the last


def add_contents(book: EstimateBook, sheet: Sheet, row: int, end: int) -> None:
    """What the workbook holds and how it is used, from a row on.

    Args:
        end: the row before which it ends.
    """
    _title(book, sheet, row)
    left = _limits_and_weaknesses(book, sheet, _contents(book, sheet, row + 4) + 1)
    right = _RightColumn(book, sheet, row + 4)
    right.how_to_use()
    right.colours()
    after = max(left, right.provenance())
    assert after <= end, f"contents end at row {after}; expected at most {end}"


def _title(book: EstimateBook, sheet: Sheet, row: int) -> None:
    """Who made the workbook, of what, to answer what."""
    estimate = book.estimate
    sheet.heights |= {row: 24, row + 1: 26, row + 2: 22, row + 3: 8}
    maker = (estimate.template.company or "Mantile").upper()
    look = style.Style(size=style.SMALL, bold=True, colour=style.GREY, valign="bottom")
    sheet.set_text(row, _LEFT, f"{maker}  ·  LLM INFERENCE ESTIMATE", look)
    sheet.set_text(row + 1, _LEFT, estimate.title, style.SHEET_TITLE)
    why = _question(estimate.scenario.why)
    sheet.set_text(row + 2, _LEFT, why, style.Style(size=12, colour=style.GREY))


def _contents(book: EstimateBook, sheet: Sheet, row: int) -> int:
    """The sheets there are and their parts, each with what it holds; the row after them."""
    _head(sheet, row, _LEFT, "Contents")
    of_sheet = style.Style(bold=True, colour=style.NAVY, indent=1)
    of_part = style.Style(colour=style.NAVY, indent=2)
    for of in book.sheets.values():
        for name in (of.name, *of.parts):
            row += 1
            link, look = (
                (f"internal:'{name}'!A1", of_sheet) if name == of.name else (book.link_to_part(name), of_part)
            )
            sheet.set_cell(row, 0, Cell(style.Style(right=(style.THICK, style.TABS[of.family]))))
            sheet.set_text(row, _LEFT, name, look, link=link)
            sheet.set_text(row, _LEFT + 1, _PURPOSES[name], style.PURPOSE)
            sheet.set_text(row, _RIGHT - 1, _extent(book, name), style.BACK.but(indent=2))
            sheet.heights[row] = _HEIGHT
    return row + 1


def _limits_and_weaknesses(book: EstimateBook, sheet: Sheet, row: int) -> int:
    """What the estimate leaves out; the row after the last."""
    _head(sheet, row, _LEFT, "Limits and weaknesses")
    limits = _limits(book.estimate)
    for below, limit in enumerate(limits, row + 1):
        sheet.set_text(below, _LEFT, limit, style.LABEL)
        sheet.heights[below] = _HEIGHT
    return row + 1 + len(limits)


def _head(sheet: Sheet, row: int, column: int, text: str) -> None:
    """A head over the left or the right half of the page."""
    rule = style.Style(size=12, bold=True, colour=style.NAVY, bottom=(style.THICK, style.NAVY))
    sheet.set_text(row, column, text, rule)
    sheet.set_style(row, column + 1, _RIGHT - 1 if column == _LEFT else _LAST, rule)
    sheet.heights[row] = _HEIGHT + 2


class _RightColumn:
    """The right half of the page, filled from top to bottom."""

    def __init__(self, book: EstimateBook, sheet: Sheet, row: int) -> None:
        self.book, self.sheet, self.row = book, sheet, row

    def how_to_use(self) -> None:
        """Steps for a reader."""
        self._head("How to use this workbook")
        for number, step in enumerate(_USE, 1):
            self.sheet.set_text(self._next(), _RIGHT, f"{number}   {step}", style.LABEL.but(indent=1))

    def colours(self) -> None:
        """A sample of each kind of cell."""
        self._head("What the colours mean")
        for look, sample, meaning in _samples():
            row = self._next()
            self.sheet.set_cell(row, _RIGHT, Cell(look, number=sample))
            self.sheet.set_text(row, _RIGHT + 1, meaning, style.LABEL.but(indent=1))

    def provenance(self) -> int:
        """What the workbook was made from; the row after it."""
        book, sheet = self.book, self.sheet
        self._head("Provenance")
        label_look = style.PURPOSE.but(indent=1)
        rate = book.currency.rate
        if rate is not None:
            row = self._next()
            look = style.value("1", role="fixed").but(form="0.0000", align="left")
            sheet.set_text(row, _RIGHT, rate.label, label_look)
            book.add_constant(sheet, row, _RIGHT + 1, rate, look)
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
                row = self._next()
                sheet.set_text(row, _RIGHT, "" if place else label, label_look)
                sheet.set_text(row, _RIGHT + 1, line, style.LABEL)
        return row + 1

    def _head(self, text: str) -> None:
        """A head behind an empty row, but for the first."""
        if self.sheet.cells.get((self.row - 1, _RIGHT)) is not None:
            self._next()
        _head(self.sheet, self.row, _RIGHT, text)
        self.row += 1

    def _next(self) -> int:
        self.sheet.heights.setdefault(self.row, _HEIGHT)
        self.row += 1
        return self.row - 1


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
        return f"{len(book.estimate.equations.checks.codes)} checks"
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
