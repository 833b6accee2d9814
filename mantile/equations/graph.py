"""All equations of one model put together: inputs to results, block by block, sheet by sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from mantile.equations import constant
from mantile.equations.capacity import DemandCells
from mantile.equations.checks import Checks
from mantile.equations.classes import Classes, of_mixture
from mantile.equations.decode import Decoding
from mantile.equations.devices import OF_FIRST, Devices
from mantile.equations.disaggregated import InDecode
from mantile.equations.fallback import COLUMN_IN_USE
from mantile.equations.forward import Pass
from mantile.equations.framework import Frameworks
from mantile.equations.fullest import Fullest
from mantile.equations.inputs import Workload
from mantile.equations.link import LinkTable
from mantile.equations.metrics import OF_COST, Metric
from mantile.equations.model import ModelSize
from mantile.equations.override import OVERRIDE, Overridable
from mantile.equations.serving import Serving
from mantile.equations.tables import Equations
from mantile.equations.typed import (
    SharedCells,
    TypedInputs,
)
from mantile.equations.workers import DECODE, Workers
from mantile.floors import Floors
from mantile.graph.evaluate import Program
from mantile.graph.quantity import (
    Input,
    Line,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    Table,
    ancestors,
    precedents,
)
from mantile.ir.modules import (
    ModelGraph,
)
from mantile.library.profiles import Library

Sheets = dict[str, tuple[Section, ...]]

EFFICIENCY, CALIBRATION, CALCULATION, IR = "Efficiency", "Calibration", "Calculation", "IR"
PARTS = {
    EFFICIENCY: ("Factors", CALIBRATION),
    IR: ("Facts", "Tensors"),
    CALCULATION: ("Memory", "Network", "Prefill", "Decode", "Serving", "Cost", "Finance"),
}
"""The parts of workings of sheets that have several, in the order a reader meets them."""

PROFILED = ("library.", "system.", "efficiency.")
"""What ids of figures begin with that profiles state."""


@dataclass(frozen=True)
class EstimateGraph:
    """The graph of a model on a library of hardware.

    Args:
        frameworks: what each does by default.
        workers: the accelerators: those that do everything, or prefill and decode workers.
        input_sections: blocks of what is asked; `typed` what the cells of inputs hold.
        assumed: what the cells of assumptions hold that times and memory follow from; `paid` of those from
            which only power and cost follow.
        decode: a step of the running batch.
        decoding: what that step works on.
        apart: the requests in decode where prefill has workers of its own; None where it has not.
        classes: of requests; None where a scenario has none.
        evidence: tables of the measured runs that stand behind ranges.
        measured: cells for measured values, by the field of a scenario's `measured`.
        nearest: the table of measured runs that can be near; none in a library without.
        headlines: the metrics of the plan as readers see them: a text where nobody knows one; `per_day` what
            stands beside those of cost.
        devices: those of a pipeline that are not alike; None where accelerators are alike.
        links: between machines; None where a deployment has no use for them.
        machines: what it runs on, in words.
        rows: those that stand as text, by id; `capacity` the cells of a demand, None where nobody asks.
    """

    ir: ModelGraph
    library: Library
    frameworks: Frameworks
    workers: tuple[Workers, ...]
    input_sections: tuple[Section, ...]
    typed: TypedInputs
    assumed: SharedCells
    paid: SharedCells
    model: ModelSize
    prefill: Pass
    decode: Pass
    decoding: Decoding
    apart: InDecode | None
    serving: Serving
    cost: tuple[Section, ...]
    evidence: tuple[Section, ...]
    nearest: tuple[Section, ...]
    floors: Floors
    measured: Mapping[str, Input]
    checks: Checks
    machines: Quantity
    rows: Equations
    headlines: Mapping[Metric, Quantity]
    per_day: tuple[Quantity, ...]
    capacity: DemandCells | None = None
    devices: Devices | None = None
    links: LinkTable | None = None
    classes: Classes | None = None

    @property
    def shared_cells(self) -> tuple[SharedCells, ...]:
        """What cells of all scenarios hold: dimensions, assumptions, those of money."""
        return (self.model.typed, self.assumed, self.paid)

    @property
    def prefill_workers(self) -> Workers:
        """The accelerators that prefill, or do everything."""
        return self.workers[0]

    @property
    def decode_workers(self) -> Workers:
        """The accelerators that decode, or do everything."""
        return self.workers[-1]

    @property
    def pools(self) -> tuple[Workers, ...]:
        """All accelerators that may differ: of each device, or of prefill and decode workers."""
        return self.workers if self.devices is None else self.devices.sets

    @property
    def all_workers(self) -> tuple[Workers, ...]:
        return self.workers if self.devices is None else (*self.workers, *self.devices.sets)

    @cached_property
    def fullest(self) -> Fullest:
        """Rows of the fullest accelerator."""
        return Fullest(self.rows)

    @property
    def inputs(self) -> Workload:
        """What is asked."""
        return self.prefill_workers.inputs

    @cached_property
    def sheets(self) -> Sheets:
        """Blocks by the sheet they stand on, in the order a reader meets them."""
        sheets = _sheets(self)
        if len(self.workers) > 1:
            sheets = _without_idle(self, sheets)
        sheets = _joined(sheets)
        used = ancestors(*_figures(sheets, *sheets))
        sheets["Inputs"] = (
            *self.input_sections,
            constant.section(used),
            *sheets["Inputs"][len(self.input_sections) :],
        )
        return sheets

    @cached_property
    def figures(self) -> dict[str, Named]:
        """Every input and quantity by id."""
        figures: dict[str, Named] = {}
        for figure in _figures(self.sheets, *self.sheets):
            assert figures.setdefault(figure.id, figure) is figure, f"two figures called {figure.id}"
        return figures

    @cached_property
    def program(self) -> Program:
        """Every figure, every check, parts of times, efficiency profiles in use and words, ready to run."""
        return Program(
            [
                *self.figures.values(),
                *(check.result for check in self.checks.checks),
                *(figure for workers in self.workers for figure in workers.efficiency.sources.choices),
                *self.parts,
                *(map(self.rows.node, ("nearest.words", "nearest.degrees_here")) if self.nearest else ()),
            ]
        )

    @cached_property
    def parts(self) -> tuple[Quantity, ...]:
        """What TTFT and TPOT are made of, in the order of parts.eq."""
        return tuple(self.rows[identifier] for _, _, identifier in self.rows.places("parts"))

    def all_inputs(self) -> tuple[Input, ...]:
        """Every input, shared ones included."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Input))

    @cached_property
    def overridable(self) -> dict[str, Overridable]:
        """What has a cell that stands for figures of the library once filled, by id."""
        return {
            overridable.id: overridable
            for workers in self.all_workers
            for overridable in workers.overridable()
            if overridable.cell.id in self.figures
        }

    @cached_property
    def replaceable(self) -> dict[str, Input]:
        """What an override may name: figures with an override cell, shared ones that no profile states."""
        cells = {identifier: overridable.cell for identifier, overridable in self.overridable.items()}
        return cells | {
            figure.id: figure
            for figure in self.all_inputs()
            if figure.shared and not figure.fixed and not figure.id.startswith("model.")
        }

    def quantities(self) -> tuple[Quantity, ...]:
        """Every worked-out figure."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Quantity))


def _sheets(graph: EstimateGraph) -> Sheets:
    """All blocks, by sheet or part; those of rows made again by the sheet of what they were made from."""
    sheets = _blocks(graph)
    for name in sheets:
        place = 0
        while place < len(sheets[name]):
            section = sheets[name][place]
            parts = tuple(_by_sheet(section, sheets)) if section.again else (section,)
            sheets[name] = (*sheets[name][:place], *parts, *sheets[name][place + 1 :])
            place += len(parts)
    return sheets


def _by_sheet(section: Section, sheets: Sheets) -> Iterator[Section]:
    """A block of rows made again, in the order of what they were made from."""
    rows = {row.id: again for row, again in zip(section.originals, section.figures(), strict=True)}
    for name in sheets:
        again = tuple(rows[figure.id] for figure in _figures(sheets, name) if figure.id in rows)
        if again:
            note = f"rows of {name}, made again for that load"
            yield Section(f"{section.title}: {name}", cast(tuple[Quantity, ...], again), note)


def _joined(sheets: Sheets) -> Sheets:
    """Blocks by sheet, of blocks by sheet or part of one."""
    sheet_of = {part: sheet for sheet, parts in PARTS.items() for part in parts}
    joined: Sheets = {}
    for name, blocks in sheets.items():
        if name in sheet_of:
            blocks = tuple(replace(block, part=name) for block in blocks)
        sheet = sheet_of.get(name, name)
        joined[sheet] = (*joined.get(sheet, ()), *blocks)
    return joined


def _blocks(graph: EstimateGraph) -> Sheets:

    def of_workers(sections: Callable[[Workers], tuple[Section, ...]]) -> tuple[Section, ...]:
        """Blocks of the accelerators, and those that decode workers have to themselves."""
        shared = sections(graph.prefill_workers)
        others = graph.workers[1:] if graph.devices is None else graph.devices.sets
        own = tuple(section for workers in others for section in sections(workers))
        return (*shared, *(section for section in own if section.rows and section not in shared))

    return {
        "Inputs": (
            *graph.input_sections,
            *graph.typed.sections,
            *(of.section for of in graph.shared_cells),
            *(() if graph.classes is None else of_mixture(graph.rows)),
            *graph.rows.sections("inputs"),
            *map(_ranks, graph.workers),
            *_of_devices(graph, "Inputs"),
        ),
        "Hardware": (
            *_upwards(
                graph,
                of_workers(
                    lambda workers: (
                        *workers.hardware.sections,
                        *workers.formats.sections,
                        *workers.support,
                    )
                ),
                "Hardware",
            ),
            graph.frameworks.section,
            *(() if graph.links is None else graph.links.sections()),
            *graph.rows.sections("engine", part="Hardware"),
            *graph.rows.sections("scheduler", part="Hardware"),
            *graph.rows.sections("speculation"),
            graph.prefill_workers.hardware.sources.section,
        ),
        "Factors": of_workers(lambda workers: workers.efficiency.sections),
        "Facts": graph.model.sections,
        "Tensors": graph.prefill_workers.tensors.listed,
        "Memory": (
            *_upwards(
                graph,
                of_workers(
                    lambda workers: (
                        *workers.plan.sections,
                        *workers.tensors.on_rank,
                        *workers.rows.sections("prefix", "Prefixes"),
                        *workers.memory.sections,
                        *workers.rows.sections("startup"),
                        *workers.rows.sections("prefix", "Prefix cache"),
                    )
                ),
                "Memory",
            ),
            *graph.rows.sections("fullest"),
        ),
        "Network": (
            *_network(graph),
            *(() if graph.devices is None else graph.devices.sections),
        ),
        "Prefill": (*_of_pass(graph, graph.prefill), *graph.rows.sections("serving", part="Prefill")),
        "Decode": (
            *graph.rows.sections("serving", part="Operations"),
            *(() if graph.apart is None else graph.apart.sections),
            *_of_pass(graph, graph.decode),
            *_on_devices(graph, "splits"),
            *_on_devices(graph, "words"),
            *graph.rows.sections("serving", part="One request"),
            *graph.rows.sections("gain"),
            *graph.rows.sections("serving", part="Decode"),
        ),
        "Serving": (
            *graph.serving.sections,
            *graph.rows.sections("machines"),
            *graph.evidence,
            *graph.rows.sections("evidence", "Evidence"),
            *graph.rows.sections("drift"),
            *graph.rows.sections("correction"),
            *graph.nearest,
            *graph.rows.sections("nearest"),
            graph.floors.section,
            graph.checks.section,
            _headlines(graph, of_cost=False),
        ),
        "Cost": (
            *graph.cost,
            *graph.rows.sections("evidence", "Range of costs and power"),
            *graph.rows.sections("grid"),
            _headlines(graph, of_cost=True),
        ),
        **({} if graph.capacity is None else {"Finance": graph.rows.sections("capacity")}),
        CALIBRATION: graph.rows.sections("measured"),
    }


def _network(graph: EstimateGraph) -> Iterator[Section]:
    """What messages cost: of all accelerators, and what others have to themselves."""
    for prefix in dict.fromkeys(("", OF_FIRST.prefix, *(pool.prefix for pool in graph.pools))):
        yield from graph.rows.sections("network", prefix=prefix)


def _headlines(graph: EstimateGraph, of_cost: bool) -> Section:
    """The metrics of the plan as readers see them."""
    rows = tuple(row for metric, row in graph.headlines.items() if metric.id.startswith(OF_COST) == of_cost)
    rows = (*rows, *(graph.per_day if of_cost else ()))
    return Section("Headline results", rows, "not known where the plan cannot be, or nobody states a figure")


def _of_devices(graph: EstimateGraph, sheet: str) -> Iterator[Section]:
    """Blocks of a sheet that only devices which are not alike have."""
    for device in () if graph.devices is None else graph.devices.devices:
        yield from (section for section in device.sections[sheet] if section.rows)


def _upwards(graph: EstimateGraph, sections: tuple[Section, ...], sheet: str) -> Iterator[Section]:
    """Blocks with those of devices, each behind what it refers to: what all hold follows from what each
    does, and what each holds from the batch of all.

    Args:
        sheet: on which they stand.
    """
    if graph.devices is None:
        yield from sections
        return
    every = (*sections, *_of_devices(graph, sheet))
    home = {figure: number for number, section in enumerate(every) for figure in section.figures()}
    met: set[int] = set()

    def with_precedents(number: int) -> Iterator[Section]:
        if number not in met:
            met.add(number)
            for figure in every[number].figures():
                for precedent in precedents(figure):
                    yield from with_precedents(home.get(precedent, number))
            yield every[number]

    for number in range(len(every)):
        yield from with_precedents(number)


def _of_pass(graph: EstimateGraph, work: Pass) -> Iterator[Section]:
    """The blocks of a pass; where devices are not alike, those of each stand before the rest."""
    enters, *rest = work.sections
    phase = work.phase.id
    used = [section for section in rest if work.mfu in section.rows]
    if graph.devices is None:
        used = []
    yield enters
    yield from _on_devices(graph, f"{phase}.modules")
    yield from (section for section in rest if section not in used)
    yield from _on_devices(graph, phase)
    yield from used


def _on_devices(graph: EstimateGraph, phase: str) -> tuple[Section, ...]:
    """The blocks of a pass on each device, where these are not alike."""
    return () if graph.devices is None else graph.devices.passes[phase]


def _ranks(workers: Workers) -> Section:
    suffix = ", decode" if workers.ranks.stage.id.startswith(DECODE) else ""
    return Section(f"Ranks{suffix}", workers.ranks.rows(), "accelerators that work together")


def _figures(sheets: Sheets, *names: str) -> list[Named]:
    """All figures of some sheets, in order."""
    return [figure for name in names for section in sheets[name] for figure in section.figures()]


def _without_idle(graph: EstimateGraph, sheets: Sheets) -> Sheets:
    """Blocks without what neither prefill nor decode workers need, such as factors of the other phase."""
    needed = set(
        ancestors(
            *_figures(sheets, "Prefill", "Decode", "Serving", "Cost", CALIBRATION),
            *_figures(sheets, *({"Finance"} & {*sheets})),
            *(check.result for check in graph.checks.checks),
            graph.typed.faults.message,
            graph.typed.of_money.message,
            *(of.faults.message for of in graph.shared_cells),
            *(item.used for item in graph.typed.inputs),
            *(workers.rows["memory.fits"] for workers in graph.pools),
            *(
                shown
                for workers in graph.pools
                for shown in (workers.rows["hardware.name"], workers.rows["hardware.link"])
            ),
            graph.prefill_workers.efficiency.profile,
            graph.decode_workers.rows["memory.free"],
            *(
                workers.rows[f"hardware.{name}.wide_format"]
                for workers in graph.workers
                for name in workers.formats.classes
            ),
            graph.decode_workers.rows["memory.outside"],
            *(
                figure
                for subject in ("startup", "fullest")
                for section in graph.rows.sections(subject)
                for figure in section.figures()
            ),
            *(before for workers in graph.workers for before in workers.plan.stages.before),
        )
    )
    return {name: tuple(_pruned(section, needed) for section in blocks) for name, blocks in sheets.items()}


def _without_unused(row: Row, needed: set[Node]) -> Row:
    """A row of the library by itself where nothing follows from the figure that it stands beside."""
    if isinstance(row, tuple) and isinstance(row[1], Table) and row[1].id and row[0] not in needed:
        return row[1]
    return row


def _pruned(section: Section, needed: set[Node]) -> Section:
    """A block with the inputs of scenarios and profiles, and of all else what is needed."""
    rows = tuple(
        row
        for row in (_without_unused(row, needed) for row in section.rows)
        if isinstance(row, Table | Line | tuple)
        or row in needed
        or row.id.startswith(("model.", "tensor", "inputs.", COLUMN_IN_USE))
        or not (isinstance(row, Quantity) or row.id.endswith(OVERRIDE))
    )
    last = bool(rows) and rows[-1] is section.rows[-1]
    return replace(section, rows=rows, total=section.total if last else 0)
