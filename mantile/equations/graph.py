"""All equations of one model put together: inputs to results, block by block, sheet by sheet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from mantile.equations import constant
from mantile.equations.capacity import DemandCells, demand_cells
from mantile.equations.checks import TOLERANCE, Checked, Checks, checks, make_sides, standing
from mantile.equations.classes import Classes, followed, mix, of_mixture, request_classes
from mantile.equations.collectives import kinds_of_messages, know_passes
from mantile.equations.correction import corrections
from mantile.equations.decode import Decoding
from mantile.equations.devices import OF_FIRST, Devices, unlike
from mantile.equations.devices_passes import know_ends, on_devices
from mantile.equations.devices_splits import other_splits
from mantile.equations.dimensions import dimensions
from mantile.equations.disaggregated import InDecode, in_decode
from mantile.equations.engine import engines, follow_limits
from mantile.equations.evidence import evidence, evidence_features
from mantile.equations.fallback import COLUMN_IN_USE
from mantile.equations.forward import Pass, forward, times_of_experts
from mantile.equations.framework import Frameworks, frameworks, kinds_of_schedulers
from mantile.equations.fullest import Fullest, make_devices
from mantile.equations.handover import hand_over
from mantile.equations.inputs import Workload, ranks_of, workload
from mantile.equations.kv_cache import features_of_caches
from mantile.equations.link import LinkTable, link_table
from mantile.equations.measured import measured
from mantile.equations.memory import features_of_weights
from mantile.equations.metrics import OF_COST, Metric, headlines, metrics_of, per_day
from mantile.equations.mixed import operations_of, steps_of
from mantile.equations.model import ModelSize, model
from mantile.equations.nearest import FEATURE, nearest
from mantile.equations.override import OVERRIDE, Overridable
from mantile.equations.phase import make_spans, phase_of
from mantile.equations.plan import features_of_plan
from mantile.equations.reasons import FEASIBILITY, PLAN
from mantile.equations.roofline import make_modules
from mantile.equations.serving import Serving, serving
from mantile.equations.summary import make_summary
from mantile.equations.tables import Equations, Space
from mantile.equations.tensors import features_of_tensors
from mantile.equations.typed import (
    ASSUMPTIONS,
    PAID,
    SharedCells,
    TypedInputs,
    assumptions_typed,
    typed_inputs,
)
from mantile.equations.workers import DECODE, Workers, of_decode, workers
from mantile.floors import Floors, floors
from mantile.graph.evaluate import Program, evaluate
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
    defined,
    precedents,
    span,
)
from mantile.ir.modules import (
    Attention,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    ModelGraph,
    Recurrence,
)
from mantile.library.capacity import CapacityAsked
from mantile.library.profiles import Library
from mantile.library.request_classes import RequestClass
from mantile.library.scenario_fields import SCENARIO_FIELDS

Sheets = dict[str, tuple[Section, ...]]

EFFICIENCY, CALIBRATION, CALCULATION, IR = "Efficiency", "Calibration", "Calculation", "IR"
PARTS = {
    EFFICIENCY: ("Factors", CALIBRATION),
    IR: ("Facts", "Tensors"),
    CALCULATION: ("Memory", "Network", "Prefill", "Decode", "Serving", "Cost", "Finance"),
}
"""The parts of workings of sheets that have several, in the order a reader meets them."""

_PARTS = ("used", "usable", "weights", "kv", "activations", "logits", "reserve", "free", "outside")
_CHOSEN = (*(f"memory.{name}" for name in _PARTS), "hardware.memory_capacity")

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
        """Every figure, every check, the efficiency profiles in use and words, ready to run."""
        return Program(
            [
                *self.figures.values(),
                *(check.result for check in self.checks.checks),
                *(figure for workers in self.workers for figure in workers.efficiency.sources.choices),
                *(map(self.rows.node, ("nearest.words", "nearest.degrees_here")) if self.nearest else ()),
            ]
        )

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


def build_graph(
    ir: ModelGraph,
    library: Library,
    disaggregated: bool = False,
    open_loop: bool = False,
    caches_prefixes: bool = False,
    stated: frozenset[str] = frozenset(),
    classes: tuple[RequestClass, ...] = (),
    demand: CapacityAsked | None = None,
    devices: int = 0,
) -> EstimateGraph:
    """The equations of a model.

    Args:
        disaggregated: whether decode workers are described apart from those that prefill.
        open_loop: whether requests may arrive at a rate; Decode then has a step with one request as well.
        caches_prefixes: whether prompts may find a part of themselves in a cache.
        stated: what else a scenario asks for, as `needs` of its fields say.
        classes: of requests, with cells of their own; their mixture is what the deployment serves.
        demand: what is asked of capacity and money; rows of it only where something is.
        devices: how many devices that are not alike hold a part of the layers; 0: accelerators are alike.
    """
    several = request_classes(classes)
    size = model(ir)
    runs = library.measured.near(ir.model.id, ir.family, float(evaluate(size.active_parameters)))
    rows = Equations(
        _features(disaggregated, open_loop, caches_prefixes, stated)
        | _of_model(ir)
        | frozenset((*features_of_plan(ir), *features_of_tensors(ir)))
        | frozenset((*features_of_weights(ir), *features_of_caches(ir)))
        | frozenset({"devices"} if devices else {})
        | frozenset({FEATURE} if runs else {})
        | frozenset({"correction"} if library.correction is not None else {})
        | frozenset(evidence_features(library.evidence, disaggregated, "engine date" in stated))
        | frozenset({"capacity"} if demand is not None else {})
        | (frozenset() if several is None else several.features)
    )
    rows.know(*constant.ALL, TOLERANCE, *ir.facts.values(), _published_rate())
    spaces = _machines(disaggregated, devices)
    rows.make_in("machine", *spaces)
    make_devices(rows, devices)
    know_passes(rows, ir, disaggregated)
    make_spans(rows, ir)
    rows.make_in("hop", spaces[0], *([OF_FIRST] if devices else []), *spaces[1:])
    if several is not None:
        mix(rows, several)
    of_classes = None if several is None else several.section
    inputs, input_sections = workload(
        library, ir, disaggregated, open_loop, caches_prefixes, stated, of_classes, devices
    )
    for name, figure in () if several is None else followed(rows):
        inputs.set_default(name, figure)
    rows.know(*inputs.named().values())
    ranks = ranks_of(inputs, rows)
    known = frameworks(library)
    rows.know(*kinds_of_schedulers())
    rows.know_table("framework", known.columns)
    engines(library, inputs, rows)
    prefill_workers = workers(ir, library, inputs, ranks, rows)
    rows.know(*prefill_workers.machine())
    for name, default in prefill_workers.formats.defaults.items():
        inputs.set_default(name, default)
    follow_limits(inputs, rows)
    if "prefix.hit_default" in rows:
        inputs.set_default("prefix_hit_rate", rows["prefix.hit_default"])
    if "speculation" in rows.features:
        inputs.set_default("acceptance_length", rows["speculation.length"])
    if several is None:
        inputs.set_default("input_spread", rows["spread.evenly"])
        inputs.set_default("output_spread", rows["spread.usual"])
    parts = None
    found = unlike(ir, library, inputs, prefill_workers, rows)
    if found is not None:
        prefill_workers, parts = found
        rows.know(*(row for section in prefill_workers.sections() for row in section.figures()))
    decode_workers = of_decode(prefill_workers) if disaggregated else prefill_workers
    rows.know(*decode_workers.machine())
    sets = (prefill_workers, decode_workers) if disaggregated else (prefill_workers,)
    pools = sets if parts is None else parts.sets
    of_devices = tuple(_device(number, devices) for number in range(1, devices + 1))
    rows.make_in("pool", *map(_space, pools if devices else sets))
    of_ranks = {each.rows.prefix: _of_ranks(each) for each in (*sets, *pools)}
    rows.make_in("rank", *of_ranks.values())
    rows.know(
        *(row for of in (*sets, *pools) for section in of.sections() for row in section.figures()),
        *(row for of in (*sets, *pools) for row in of.ranks.rows()),
    )
    rows.make_in("device", *of_devices)
    rows.make_in("device, the last first", *of_devices[::-1])
    rows.make_in("other device", *(Space(facts=device.facts) for device in of_devices[1:]))
    cells = None if demand is None else demand_cells(demand, rows)
    make_modules(rows, ir, prefill_workers, disaggregated)
    prefill_pass = forward(phase_of(rows, "prefill"), ir, prefill_workers, rows)
    if parts is not None:
        prefill_pass, parts = on_devices(ir, prefill_workers, parts, prefill_pass)
    rows.know(*_by_id((*size.sections, *prefill_pass.sections)).values())
    decode_pass = forward(phase_of(rows, "decode"), ir, decode_workers, rows)
    decoding = Decoding(rows["decode.batch"], rows["decode.microbatches"])
    if parts is not None:
        decode_pass, parts = on_devices(ir, decode_workers, parts, decode_pass)
        rows.know(*_by_id(section for sections in parts.passes.values() for section in sections).values())
        rows.know(*_by_id((*prefill_pass.sections, *decode_pass.sections)).values())
        know_ends(rows, prefill_pass, decode_pass)
        others = {
            "splits": (other_splits(prefill_workers, parts),),
            "words": rows.sections("devices", "Who holds layers"),
        }
        parts = replace(parts, passes={**parts.passes, **others})
    operations_of(rows, "operations", prefill_pass)
    operations_of(rows, "decode_operations", decode_pass)
    table = link_table(library) if disaggregated else None
    apart = None
    if table is not None:
        hand_over(rows, prefill_workers, decode_workers, table)
        if inputs.handover_bandwidth is not None:
            inputs.set_default("handover_bandwidth", rows["serving.transfer_known"])
        apart = in_decode(rows, decoding, decode_pass, decode_workers.rows["memory.batch"])
        decoding, decode_pass = apart.decoding, apart.step
    rows.know(*_by_id(decode_pass.sections).values())
    steps_of(rows, prefill_pass, decode_pass)
    times_of_experts(rows, decode_pass, "experts_of_one", "single.")
    served = serving(rows)
    if rows.features & {"sessions", "request_rate"}:
        asked_by = "in_loop_of_sessions" if "sessions" in rows.features else "load.concurrency"
        inputs.set_default("concurrency", cast(Quantity, rows.node(asked_by)))
    for name in () if parts is None else _CHOSEN:
        rows.know_as(f"devices.{name}", span([of.rows[name] for of in pools]))
    full = Fullest(rows)
    of_cost_part = (
        *rows.sections("offer"),
        *rows.sections("cost", "Assumed of machines"),
        *rows.sections("token_cost", "Time of input and output"),
        *rows.sections("cost")[1:],
        *rows.sections("token_cost")[1:],
        *rows.sections("break_even"),
    )
    inputs.set_default("pue", rows["cost.pue_from" if devices else "cost.pue_default"])
    unequal = () if parts is None else pools
    lowest = floors(dimensions(ir, prefill_workers, decode_workers, prefill_pass, rows, unequal))
    worked_out = (
        *rows.sections("fullest"),
        *prefill_pass.sections,
        *decode_pass.sections,
        *rows.sections("serving", part="Prefill"),
        *served.sections,
        *of_cost_part,
    )
    by_id = _by_id(worked_out)
    rows.know(
        *by_id.values(),
        *lowest.section.figures(),
        *_by_id(prefill_workers.tensors.listed).values(),
        *_by_id(rows.sections("speculation")).values(),
    )
    make_sides(rows, Checked(ir, sets, pools, parts, decode_pass))
    found_checks = standing(rows)
    results = {metric: metric.worked_out(by_id) for metric in metrics_of(by_id)}
    of_plan = [number for metric, number in results.items() if not metric.id.startswith(OF_COST)]
    of_plan += [check.result for check in found_checks if check.group in (PLAN, FEASIBILITY)]
    needed = [figure for figure in ancestors(*of_plan) if isinstance(figure, Input | Quantity)]
    plan = set(needed)
    costs = ancestors(*(figure for section in of_cost_part for figure in section.figures()))
    paid = {figure for figure in costs if isinstance(figure, Input)} - plan
    checked = (check.result for check in found_checks)
    used = set(ancestors(*by_id.values(), *checked)) if disaggregated else None
    overrides = dict.fromkeys(each.cell for workers in (*sets, *pools) for each in workers.overridable())
    typed = typed_inputs(
        inputs,
        prefill_workers.hardware,
        known.columns["name"],
        prefill_workers.formats.types,
        [cell for cell in overrides if used is None or cell in used],
        paid,
        () if several is None else several.entries,
        () if parts is None else parts.table.kinds,
        () if cells is None else (cells.profile,),
    )
    guarded: set[Named] = {item.input for item in typed.inputs}
    assumed = assumptions_typed(needed, guarded, ASSUMPTIONS)
    assert assumed is not None  # the scheduler has some
    of_money = [figure for figure in ancestors(*results.values()) if isinstance(figure, Input)]
    of_cost = assumptions_typed(of_money, guarded | plan, PAID, "assumptions, power and price")
    assert of_cost is not None  # cost has some too
    rows.know(
        *_by_id((*typed.sections, *(of.section for of in (size.typed, assumed, of_cost)))).values(),
    )
    verdict = checks(rows, found_checks)
    possible, payable = rows["checks.possible"], rows["checks.payable"]
    shown = dict(headlines(by_id, possible, payable, inputs.output_tokens))
    tables = evidence(rows, library.evidence, ir.family)
    if library.correction is not None:
        corrections(
            rows,
            library.correction,
            ir.model.id,
            {
                "tpot": served.tpot,
                "ttft": served.ttft,
                "e2e": served.e2e,
                "prefill": rows["serving.prefill_through"],
                "weights": (decode_workers.rows if parts is None else full)["memory.weights"],
                "kv_tokens": full["startup.kv_tokens"],
                "peak_memory": full["startup.peak"],
            },
            {
                name: (rows[f"evidence.{name}.p10"], rows[f"evidence.{name}.p90"])
                for name in ("tpot", "ttft", "e2e")
            }
            | full.ranges,
            decode_workers.ranks.replica,
        )
    runs_on = rows[f"machines.words.{devices}" if devices else "machines.words"]
    rows.know(*shown.values())
    make_summary(rows, ir, runs_on, sets, (prefill_pass, decode_pass))
    if cells is not None:
        rows.know(*cells.inputs)
    return EstimateGraph(
        ir=ir,
        machines=runs_on,
        library=library,
        frameworks=known,
        workers=sets,
        input_sections=input_sections,
        typed=typed,
        assumed=assumed,
        paid=of_cost,
        model=size,
        prefill=prefill_pass,
        decode=decode_pass,
        decoding=decoding,
        apart=apart,
        devices=parts,
        links=table if parts is None else parts.table,
        serving=served,
        cost=of_cost_part,
        evidence=tables,
        nearest=nearest(rows, library, ir, sets, runs),
        floors=lowest,
        measured=measured(rows, shown),
        checks=verdict,
        headlines=shown,
        per_day=per_day(by_id, payable),
        classes=several,
        rows=rows,
        capacity=cells,
    )


def _published_rate() -> Input:
    """The chance that a first draft token is accepted, until a scenario states one."""
    rate = SCENARIO_FIELDS["acceptance_rate"].default
    assert isinstance(rate, float)
    words = "published of one model"
    return defined("speculation.published_rate", "Acceptance rate by default", "1", rate, words)


def _features(
    disaggregated: bool, open_loop: bool, caches_prefixes: bool, stated: frozenset[str]
) -> frozenset[str]:
    """What the scenarios ask for, by the names that blocks of equations have for it."""
    asked = {need.replace(" ", "_") for need in stated - {"devices"}}
    kinds = {"disaggregated": disaggregated, "request_rate": open_loop, "prefixes": caches_prefixes}
    asked |= {name for name, is_asked in kinds.items() if is_asked}
    if asked & {"request_rate", "sessions"}:
        asked.add("any_time")
    return frozenset(asked)


def _of_model(ir: ModelGraph) -> frozenset[str]:
    """What a model has, by the names that blocks of equations have for it."""
    has = {
        "routed_experts": GroupedMatMul in ir.operations(),
        "plain_attention": Attention in ir.operations(),
        "latent_attention": LatentAttention in ir.operations(),
        "cache_read": bool({Attention, Indexer} & ir.operations()),
        "attention_kernels": bool({Attention, Indexer} & ir.operations()) or ir.vision is not None,
        "recurrent_states": any(isinstance(module.operation, Recurrence) for module in ir.modules),
        "images": ir.vision is not None,
        "max_positions": "max_positions" in ir.facts,
        "config": ir.model.architecture.unread is not None,
        "remarks": bool(ir.remarks()),
    }
    return frozenset({*kinds_of_messages(ir), *(name for name, is_so in has.items() if is_so)})


def _machines(disaggregated: bool, devices: int) -> tuple[Space, ...]:
    """Where what follows from accelerators is made: of all, of decode workers, of each device."""
    decode = [Space(DECODE, ", decode", "inputs.decode_", called=False)] if disaggregated else []
    others = [
        Space(f"devices.{number}.", f", device {number}", f"inputs.device{number}_", called=False)
        for number in range(2, devices + 1)
    ]
    return (Space(), *decode, *others)


def _space(workers: Workers) -> Space:
    """Where what is said of some accelerators is made."""
    begins = workers.prefix
    if begins == DECODE:
        return Space(DECODE, ", decode", "inputs.decode_")
    if not workers.inputs.devices:
        return Space()
    number = begins.split(".")[1] if begins else "1"
    of = f"inputs.device{number}_" if begins else ""
    return Space(begins, f", device {number}", of, {"own": f"devices.{number}."})


def _of_ranks(workers: Workers) -> Space:
    """Where what is said of a rank of some accelerators is made."""
    prefix = workers.rows.prefix
    if prefix == DECODE:
        return Space(
            DECODE, ", decode", "inputs.decode_", {"seen": "hardware.memory_seen"}, called=False, shares=True
        )
    if not prefix:
        return Space(facts={"seen": "hardware.memory_seen"})
    number = prefix.removesuffix(".").rpartition(".")[2]
    own = {"seen": "hardware.memory_visible_used"}
    return Space(prefix, f", device {number}", f"inputs.device{number}_", own, called=False, shares=True)


def _device(number: int, last: int) -> Space:
    """Where what is said of a device among several is made."""
    begins = f"devices.{number}." if number > 1 else ""
    behind = "pue_default" if number == last else f"devices.{number + 1}.cost.pue_from"
    return Space(begins, f", device {number}", facts={"n": str(number), "behind": behind})


def _by_id(sections: Iterable[Section]) -> dict[str, Named]:
    return {figure.id: figure for section in sections for figure in section.figures()}


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
