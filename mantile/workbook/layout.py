"""An estimate laid out as a workbook: which sheets, in which order, and where its headline figures are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from mantile.equations.checks import verdict
from mantile.equations.graph import CALCULATION
from mantile.equations.inputs import Workload
from mantile.equations.ir import ir_sheet
from mantile.equations.measured import tuning
from mantile.equations.metrics import METRICS
from mantile.equations.signature import sign_off
from mantile.equations.stamp import Stamp, stamp
from mantile.equations.trace import Trace, trace
from mantile.equations.typed import LINES, STATES
from mantile.estimates.estimate import Estimate
from mantile.estimates.sensitivity import InputEffects, selected, sensitivity
from mantile.graph.quantity import Input, Named, Quantity, Row, Section
from mantile.workbook.book import Family, Sheet, reference
from mantile.workbook.bundle import Bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.alternative import alternative_sheet
from mantile.workbook.sheets.assumptions import assumptions_sheet
from mantile.workbook.sheets.calibration import calibration_sheet
from mantile.workbook.sheets.capacity import add_capacity_sheet, capacity_sheet
from mantile.workbook.sheets.checks import checks_sheet
from mantile.workbook.sheets.compare import compare_sheet
from mantile.workbook.sheets.cover import cover_sheet, fill_cover
from mantile.workbook.sheets.decide import add_decide_sheet, choice, decide_sheet
from mantile.workbook.sheets.devices import DEVICES_PURPOSE, DEVICES_SHEET, devices_sheet
from mantile.workbook.sheets.folding import CALIBRATION, EDITS_SHEET, EFFICIENCY
from mantile.workbook.sheets.ir import fill_ir
from mantile.workbook.sheets.layers import layers_sheet
from mantile.workbook.sheets.log import log_sheet
from mantile.workbook.sheets.plan import plan_sheet
from mantile.workbook.sheets.sensitivity import SensitivitySheet
from mantile.workbook.sheets.shapes import fill_shapes
from mantile.workbook.sheets.summary import select, summary_sheet
from mantile.workbook.sheets.sweep import SweepSheet
from mantile.workbook.sheets.workings import reasons, workings
from mantile.workbook.templates import leave_out, show_formulas

# Sheets of workings: family, and what stands under the title.
_WORKINGS: dict[str, tuple[Family, str]] = {
    "Inputs": (
        "inputs",
        "What is asked. The base scenario is typed on Summary. For a further one type over the last column; "
        "its results: mantile import FILE.xlsx -o new.yaml, then mantile build new.yaml -o new.xlsx.",
    ),
    "Hardware": (
        "inputs",
        "Datasheet figures of every accelerator in the book, each with its source, and what the chosen one "
        "offers.",
    ),
    "Efficiency": (
        "inputs",
        "How much of the hardware is reached. To calibrate, type into a yellow cell. If it is empty, the "
        "coloured figure at the right holds, of the most specific profile that has one. E-6 s is a us.",
    ),
    "Model": ("inputs", "Architecture of {model} ({model_type}) and every tensor of its checkpoint."),
    CALCULATION: (
        "workings",
        "From bytes and messages to passes, from passes to what users see and what it costs. Answers in the "
        "units quoted, below them SI: E-3 is ms, E-6 us.",
    ),
    EDITS_SHEET: (
        "control",
        "What inputs and overrides held when the file was made, what they hold now, and which differ.",
    ),
    "Finance": (
        "outputs",
        "Replicas by hour for a demand that grows, and what it costs to buy, to rent or to call an API. "
        "Inputs are typed on Capacity, which shows what it comes to.",
    ),
}


_PARTS: dict[str, dict[str, str]] = {
    "Model": {
        "Facts": "Of the architecture, each with where it comes from; what they come to.",
        "Tensors": "Every tensor once, n standing for the layer, and the parameters of all its copies.",
    },
    CALCULATION: {
        "Memory": "What lies in the memory of the fullest accelerator, and the requests its KV cache holds.",
        "Network": "What a message costs on the links there are: a fixed time and a time per byte.",
        "Prefill": "One pass over new prompts: what every module costs and what limits it.",
        "Decode": "One step of the running batch: what every module costs and what limits it.",
        "Serving": "From passes to what users see, at a concurrency or a request rate.",
        "Cost": "What the deployment draws and costs. Figures per token hold at the utilisation stated.",
    },
}
"""What stands beside the heads of the parts of sheets."""


def lay_out(estimate: Estimate, bundle: Bundle | None = None) -> EstimateBook:
    """The workbook of an estimate, ready to be written or verified.

    Args:
        bundle: what the estimate came from, where it was read from a file.
    """
    book = EstimateBook(estimate, bundle)
    equations = estimate.equations
    calibrates = CALIBRATION in (estimate.template.sheets or (CALIBRATION,))
    chosen = choice(book)
    typed_choice = () if chosen is None else chosen.typed
    choice_faults = None if chosen is None else chosen.guards.faults
    headline_stamp = stamp(equations, calibrates, typed_choice, choice_faults)
    _store_headlines(book, headline_stamp)
    others = None if headline_stamp.others is None else headline_stamp.others.faults
    check_verdict = verdict(
        equations.checks,
        headline_stamp.readable,
        [faults for faults in (others, choice_faults) if faults is not None],
        headline_stamp.unchanged,
        headline_stamp.edits.told,
        book.columns,
    )
    master = check_verdict.headline
    of_cost = replace(headline_stamp.section, part="Cost")
    edits = headline_stamp.edits
    sections = {**equations.sheets, CALCULATION: (*equations.sheets[CALCULATION], of_cost)}
    more: dict[str, tuple[Row, ...]] = {
        LINES: tuple(item.line for item in edits.measured),
        STATES: tuple(item.state for item in edits.measured),
    }
    sections["Inputs"] = tuple(
        replace(section, rows=(*section.rows, *more.get(section.title, ()))) for section in sections["Inputs"]
    )
    tuned = None
    if calibrates:
        tuned = tuning(equations.workers, equations.figures)
        sections["Efficiency"] = _without(sections["Efficiency"], {*tuned.cells})

    cover_sheet(book)
    select(book)
    add_decide_sheet(book)
    add_capacity_sheet(book)
    book.add_sheet(Sheet("Checks", "front"))
    _add_workings(book, sections, master, "Inputs", "Hardware", "Efficiency", "Model")
    for name in ("Shapes", "IR"):  # they lead to sheets behind them, and are filled after these
        book.add_sheet(Sheet(name, "inputs"))
    if equations.devices is None:
        plan_sheet(book, master)
    else:  # its grid is of equal ranks
        book.add_sheet(Sheet(DEVICES_SHEET, "workings", DEVICES_PURPOSE))  # filled once its figures stand
    _add_workings(book, sections, master, CALCULATION)
    devices_sheet(book, master)
    layers_sheet(book, master)
    shown = ir_sheet(equations)
    fill_shapes(book, shown, master)
    fill_ir(book, shown, master)
    if equations.capacity is not None:
        _add_workings(book, sections, master, "Finance")
        capacity_sheet(book, master, headline_stamp.of_demand)
    if book.columns > 1:
        compare_sheet(book, master)
    decide_sheet(book, chosen, edits.own, master)
    alternative_sheet(book, master)
    effects = sensitivity(estimate)
    sensitivity_sheet = SensitivitySheet(book, master, selected(effects, estimate))
    sweep_sheet = SweepSheet(book, master)
    error = calibration_sheet(book, master, tuned)
    for column, stamps in enumerate(book.stamps):
        stamps[edits.of_base.id] = 0 if column else 1
    signatures = sign_off(edits, book.digest, book.columns)
    of_edits = (*headline_stamp.of_shared, edits.section, signatures.section)
    _add_workings(book, {EDITS_SHEET: of_edits}, master, EDITS_SHEET)
    book.store_inputs((*edits.own, *edits.shared))
    found = _trace(book, effects, [item.input for item in (*edits.own, *edits.shared)])
    origins = assumptions_sheet(book, master, effects, sensitivity_sheet.figures.effects, found)
    sensitivity_sheet.add_origins(origins)
    checks_sheet(book, check_verdict)
    summary_sheet(book, check_verdict, headline_stamp, sensitivity_sheet, sweep_sheet)
    log_sheet(book, headline_stamp, signatures, found, master)
    book.names = _names(book, equations.inputs, check_verdict.master, error)
    if estimate.template.sheets:
        leave_out(book, estimate.template.sheets)
    fill_cover(book, check_verdict)
    if estimate.template.formula_text:
        show_formulas(book)
    return book


def _trace(book: EstimateBook, effects: Sequence[InputEffects], overrides: Sequence[Input]) -> Trace:
    """Where headline results and assumptions come from, with the reasons of overrides."""
    factors = [item.input.figure for item in effects if not item.input.is_price]
    return trace(
        book.estimate.equations,
        [figure for figure in factors if isinstance(figure, Quantity)],
        {cell.id: text for cell in overrides if (text := reasons(book, cell))},
    )


def _store_headlines(book: EstimateBook, headline_stamp: Stamp) -> None:
    """Store the headline results as they are now; the live ones are compared with them."""
    for stamps, values in zip(book.stamps, book.estimate_values, strict=True):
        stamps |= {
            stored.id: value if isinstance(value := values[figure], str) else float(value)
            for figure, stored in zip(headline_stamp.figures, headline_stamp.stored, strict=True)
        }


def _add_workings(
    book: EstimateBook, sections: Mapping[str, tuple[Section, ...]], master: Quantity, *names: str
) -> None:
    """Add sheets of workings, in the order of their names. Inputs stands first and has nothing to link in."""
    model = book.estimate.model
    for name in names:
        family, purpose = _WORKINGS[name]
        purpose = purpose.format(model=model.name, model_type=model.architecture.model_type)
        workings(
            book,
            name,
            family,
            purpose,
            sections[name],
            master,
            linked=name not in ("Inputs", EFFICIENCY, EDITS_SHEET),
            once=name == EDITS_SHEET,
            parts=_PARTS.get(name),
        )


def _without(sections: tuple[Section, ...], cells: Set[Named]) -> tuple[Section, ...]:
    """Blocks without override cells that stand on Calibration, each saying where its own are."""
    return tuple(
        section
        if cells.isdisjoint(section.figures())
        else replace(
            section,
            rows=tuple(_beside(row, cells) for row in section.rows if row not in cells),
            note=f"{section.note}; overrides that are not here stand on {CALIBRATION}",
        )
        for section in sections
    )


def _beside(row: Row, cells: Set[Named]) -> Row:
    """A row without its override cell: the row of the library beside it."""
    return row[1] if isinstance(row, tuple) and row[0] in cells else row


def _names(book: EstimateBook, inputs: Workload, master: Quantity, error: Quantity) -> dict[str, str]:
    """Defined names: `in_...` where inputs are typed, plain names for results of the base scenario."""
    names = {
        f"in_{name}": "=" + reference(*book.input_cells[figure.id, 0])
        for name, figure in inputs.named().items()
    }
    equations = book.estimate.equations
    results: dict[str, Named] = {
        metric.defined_name: metric.of(equations.figures) for metric in METRICS if metric.defined_name
    }
    results |= {
        "fits": equations.figures["checks.has_room"],
        "feasibility": equations.checks.feasibility,
        "master_check": master,
        "calibration_error": error,
    }
    return names | {name: book.reference_to(figure, 0, None) for name, figure in results.items()}
