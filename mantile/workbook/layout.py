"""An estimate laid out as a workbook: which sheets, in which order, and where its headline figures are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from mantile.equations.checks import Ready, verdict
from mantile.equations.graph import CALCULATION, CALIBRATION, EFFICIENCY, IR
from mantile.equations.inputs import Workload
from mantile.equations.ir import ir_sheet
from mantile.equations.measured import tuning
from mantile.equations.metrics import METRICS
from mantile.equations.ready_columns import counted
from mantile.equations.signature import sign_off
from mantile.equations.stamp import Stamp, stamp
from mantile.equations.trace import Trace, trace
from mantile.equations.typed import LINES, STATES
from mantile.estimates.estimate import Estimate
from mantile.estimates.sensitivity import InputEffects, selected, sensitivity
from mantile.graph.quantity import Input, Named, Quantity, Row, Section
from mantile.workbook.book import Family, reference
from mantile.workbook.bundle import Bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.sheets.assumptions import add_assumptions
from mantile.workbook.sheets.audit import LOG, audit_sheet
from mantile.workbook.sheets.calibration import add_error
from mantile.workbook.sheets.capacity import add_capacity_sheet, capacity_sheet
from mantile.workbook.sheets.checks import add_checks, last_column
from mantile.workbook.sheets.decide import choice
from mantile.workbook.sheets.folding import INPUTS_SHEET
from mantile.workbook.sheets.ir import IrParts, purpose_of_ir
from mantile.workbook.sheets.layers import layers_sheet
from mantile.workbook.sheets.log import add_log
from mantile.workbook.sheets.summary import fill_contents, select, summary_sheet
from mantile.workbook.sheets.what_if import what_if_sheet
from mantile.workbook.sheets.workings import reasons, workings
from mantile.workbook.templates import leave_out, show_formulas

_OF_READY = (
    "What is asked. The base scenario is typed on Summary. For a further one type a name over row 4 of a "
    "ready column and below what differs: the other cells follow the base until typed over."
)
# Sheets of workings: family, and what stands under the title.
_WORKINGS: dict[str, tuple[Family, str]] = {
    INPUTS_SHEET: (
        "inputs",
        "What is asked. The base scenario is typed on Summary. For a further one type over the last column; "
        "its results: mantile import FILE.xlsx -o new.yaml, then mantile build new.yaml -o new.xlsx.",
    ),
    "Hardware": (
        "inputs",
        "Datasheet figures of every accelerator in the book, each with its source, and what the chosen one "
        "offers.",
    ),
    EFFICIENCY: (
        "inputs",
        "How much of the hardware is reached. To calibrate, type into a yellow cell. If it is empty, the "
        "coloured figure at the right holds, of the most specific profile that has one. E-6 s is a us.",
    ),
    CALCULATION: (
        "workings",
        "From bytes and messages to passes, from passes to what users see and what it costs. Answers in the "
        "units quoted, below them SI: E-3 is ms, E-6 us.",
    ),
}


_PARTS: dict[str, dict[str, str]] = {
    IR: {
        "Facts": "Of the architecture, each with where it comes from; what they come to.",
        "Tensors": "Every tensor once, n standing for the layer, and the parameters of all its copies.",
    },
    EFFICIENCY: {
        "Factors": "What a datasheet promises times a factor is what is reached; each with its sources.",
        CALIBRATION: "Type what was measured, then change factors by hand or with a solver, or run "
        "mantile calibrate FILE.xlsx.",
    },
    CALCULATION: {
        "Memory": "What lies in the memory of the fullest accelerator, and the requests its KV cache holds.",
        "Network": "What a message costs on the links there are: a fixed time and a time per byte.",
        "Prefill": "One pass over new prompts: what every module costs and what limits it.",
        "Decode": "One step of the running batch: what every module costs and what limits it.",
        "Serving": "From passes to what users see, at a concurrency or a request rate.",
        "Cost": "What the deployment draws and costs. Figures per token hold at the utilisation stated.",
        "Finance": "Replicas by hour for a demand that grows; to buy, to rent or to call an API.",
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
    chosen = choice(book)
    typed_choice = () if chosen is None else chosen.typed
    choice_faults = None if chosen is None else chosen.guards.faults
    headline_stamp = stamp(equations, typed_choice, choice_faults, bool(book.ready))
    _store_headlines(book, headline_stamp)
    others = None if headline_stamp.others is None else headline_stamp.others.faults
    rows = headline_stamp.rows
    ready = None
    if book.ready:
        ready = Ready(book.ready, counted(book.columns), rows["stamp.edit.named"])
    check_verdict = verdict(
        equations.checks,
        headline_stamp.readable,
        [faults for faults in (others, choice_faults) if faults is not None],
        headline_stamp.unchanged,
        rows["stamp.edit.told"],
        book.columns,
        ready,
    )
    master = check_verdict.headline
    tuned = tuning(equations.workers, equations.figures)
    signatures = sign_off(rows["stamp.edit.all"], book.digest, book.columns)
    for column, stamps in enumerate(book.stamps):
        stamps["stamp.edit.of_base"] = 0 if column else 1
        stamps["stamp.edit.counted"] = 0 if column in book.ready else 1
    more: dict[str, tuple[Row, ...]] = {
        LINES: tuple(item.line for item in headline_stamp.measured),
        STATES: tuple(item.state for item in headline_stamp.measured),
    }
    (generated,) = rows.sections("stamp", "As generated")
    sections = {
        **equations.sheets,
        INPUTS_SHEET: (
            *(
                each
                for section in equations.sheets[INPUTS_SHEET]
                for each in (
                    replace(section, rows=(*section.rows, *more.get(section.title, ()))),
                    *((headline_stamp.lines,) if section.title == LINES else ()),
                )
            ),
            *(() if headline_stamp.others is None else (headline_stamp.others.section,)),
            *rows.sections("stamp", "All assumptions", "What was edited"),
            signatures.section,
        ),
        EFFICIENCY: (
            *_without(equations.sheets[EFFICIENCY], {*tuned.cells}),
            *(replace(section, part=CALIBRATION) for section in tuned.sections),
        ),
        CALCULATION: _behind(equations.sheets[CALCULATION], replace(generated, part="Cost")),
    }

    select(book)
    add_capacity_sheet(book)
    _add_workings(book, sections, master, INPUTS_SHEET, "Hardware", EFFICIENCY, ready=ready)
    error = add_error(book)
    parts = IrParts(book, ir_sheet(equations))
    workings(
        book, IR, "inputs", purpose_of_ir(book), sections[IR], master, parts=_PARTS[IR], front=parts.front
    )
    _add_workings(book, sections, master, CALCULATION)
    layers_sheet(book, master)
    parts.link()
    if equations.capacity is not None:
        capacity_sheet(book, master, headline_stamp.of_demand)
    effects = sensitivity(estimate)
    varied = selected(effects, estimate)
    sensitivity_part, sweep_part = what_if_sheet(
        book, master, chosen, headline_stamp.own, varied, None if ready is None else ready.counted
    )
    every = (*headline_stamp.own, *headline_stamp.shared)
    book.store_inputs(every)
    found = _trace(book, effects, [item.input for item in every])
    audit = audit_sheet(book, master, last_column(book.columns))
    row = add_checks(book, audit, 2, check_verdict)
    row = add_assumptions(book, audit, row, effects, sensitivity_part.figures.effects, found)
    row = add_log(book, audit, row, headline_stamp, signatures, found)
    audit.print_area = (audit.parts[LOG] - 1, 0, row - 1, len(audit.widths) - 1)
    summary_sheet(book, check_verdict, headline_stamp, sensitivity_part, sweep_part)
    book.names = _names(book, equations.inputs, check_verdict.master, error)
    if estimate.template.sheets:
        leave_out(book, estimate.template.sheets)
    fill_contents(book)
    book.all_stand()
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
    book: EstimateBook,
    sections: Mapping[str, tuple[Section, ...]],
    master: Quantity,
    *names: str,
    ready: Ready | None = None,
) -> None:
    """Add sheets of workings, in the order of their names. Inputs stands first and has nothing to link in."""
    for name in names:
        family, purpose = _WORKINGS[name]
        purpose = _OF_READY if ready is not None and name == INPUTS_SHEET else purpose
        workings(
            book,
            name,
            family,
            purpose,
            sections[name],
            master,
            linked=name not in (INPUTS_SHEET, EFFICIENCY),
            once=name == INPUTS_SHEET,
            parts=_parts_of(name, sections[name]),
            names=ready.counted if ready is not None and name == INPUTS_SHEET else None,
        )


def _parts_of(name: str, sections: tuple[Section, ...]) -> dict[str, str]:
    """What stands beside the heads of the parts of a sheet that it has."""
    there = {section.part for section in sections}
    return {part: said for part, said in _PARTS.get(name, {}).items() if part in there}


def _behind(sections: tuple[Section, ...], added: Section) -> tuple[Section, ...]:
    """Blocks with one more, the last of its part."""
    last = max(place for place, section in enumerate(sections) if section.part == added.part)
    return (*sections[: last + 1], added, *sections[last + 1 :])


def _without(sections: tuple[Section, ...], cells: Set[Named]) -> tuple[Section, ...]:
    """Blocks without override cells that stand at Calibration, each saying where its own are."""
    return tuple(
        section
        if cells.isdisjoint(section.figures())
        else replace(
            section,
            rows=tuple(_beside(row, cells) for row in section.rows if row not in cells),
            note=f"{section.note}; overrides that are not here stand at {CALIBRATION}",
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
        "feasibility": equations.rows["checks.feasibility"],
        "master_check": master,
        "calibration_error": error,
    }
    return names | {name: book.reference_to(figure, 0, None) for name, figure in results.items()}
