"""The equations of one model put together, from what is asked to what readers see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from mantile.equations import constant
from mantile.equations.capacity import demand_cells
from mantile.equations.checks import TOLERANCE, Checked, checks, make_sides, standing
from mantile.equations.classes import Classes, followed, mix, request_classes
from mantile.equations.collectives import kinds_of_messages, know_passes
from mantile.equations.correction import corrections
from mantile.equations.decode import Decoding
from mantile.equations.devices import OF_FIRST, unlike
from mantile.equations.devices_passes import know_ends, on_devices
from mantile.equations.devices_splits import other_splits
from mantile.equations.dimensions import dimensions
from mantile.equations.disaggregated import InDecode, in_decode
from mantile.equations.engine import engines, follow_limits
from mantile.equations.evidence import evidence, evidence_features
from mantile.equations.forward import forward, times_of_experts
from mantile.equations.framework import frameworks, kinds_of_schedulers
from mantile.equations.fullest import Fullest, make_devices
from mantile.equations.graph import EstimateGraph
from mantile.equations.handover import hand_over
from mantile.equations.inputs import ranks_of, workload
from mantile.equations.kv_cache import features_of_caches
from mantile.equations.link import link_table
from mantile.equations.measured import measured
from mantile.equations.memory import features_of_weights
from mantile.equations.metrics import OF_COST, headlines, metrics_of, per_day
from mantile.equations.mixed import operations_of, steps_of
from mantile.equations.model import ModelSize, model
from mantile.equations.nearest import FEATURE, nearest
from mantile.equations.parts import make_parts
from mantile.equations.phase import make_spans, phase_of
from mantile.equations.plan import features_of_plan
from mantile.equations.reasons import FEASIBILITY, PLAN
from mantile.equations.roofline import make_modules
from mantile.equations.serving import serving
from mantile.equations.summary import make_summary
from mantile.equations.tables import Equations, Space
from mantile.equations.tensors import features_of_tensors
from mantile.equations.typed import ASSUMPTIONS, PAID, assumptions_typed, typed_inputs
from mantile.equations.workers import DECODE, Workers, of_decode, workers
from mantile.floors import floors
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import Input, Named, Quantity, Section, ancestors, defined, span
from mantile.ir.modules import Attention, GroupedMatMul, Indexer, LatentAttention, ModelGraph, Recurrence
from mantile.library.capacity import CapacityAsked
from mantile.library.profiles import Library
from mantile.library.request_classes import RequestClass
from mantile.library.scenario_fields import SCENARIO_FIELDS

_PARTS = ("used", "usable", "weights", "kv", "activations", "logits", "reserve", "free", "outside")
_CHOSEN = (*(f"memory.{name}" for name in _PARTS), "hardware.memory_capacity")


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
    features = {
        *_asked(disaggregated, open_loop, caches_prefixes, stated),
        *_of_model(ir),
        *evidence_features(library.evidence, disaggregated, "engine date" in stated),
        *(() if several is None else several.features),
    }
    has = {"devices": devices, FEATURE: runs, "correction": library.correction, "capacity": demand}
    rows = Equations(frozenset(features | {name for name, there in has.items() if there}))
    graph = _Building(ir, library, rows, disaggregated, devices)
    graph.size, graph.several = size, several
    graph.ask(open_loop, caches_prefixes, stated)
    graph.hold(demand)
    graph.work()
    graph.serve()
    graph.guard()
    graph.tell()
    return graph.made(nearest(rows, library, ir, graph.sets, runs))


class _Building:
    """A graph while it is put together, in this order: what is asked, accelerators, passes, serving, checks.

    Args:
        rows: of the text.
        devices: how many are not alike; 0: accelerators are.
    """

    size: ModelSize
    several: Classes | None

    def __init__(
        self, ir: ModelGraph, library: Library, rows: Equations, disaggregated: bool, devices: int
    ) -> None:
        self.ir, self.library, self.rows = ir, library, rows
        self.disaggregated, self.devices = disaggregated, devices

    def know(self, *sections: Section) -> None:
        """Make the figures of blocks known; the last of an id counts."""
        self.rows.know(*_by_id(sections).values())

    def ask(self, open_loop: bool, caches_prefixes: bool, stated: frozenset[str]) -> None:
        """What is asked, and what it follows until somebody states it."""
        rows, ir, several = self.rows, self.ir, self.several
        rows.know(*constant.ALL, TOLERANCE, *ir.facts.values(), _published_rate())
        spaces = _machines(self.disaggregated, self.devices)
        rows.make_in("machine", *spaces)
        make_devices(rows, self.devices)
        know_passes(rows, ir, self.disaggregated)
        make_spans(rows, ir)
        rows.make_in("hop", spaces[0], *([OF_FIRST] if self.devices else []), *spaces[1:])
        if several is not None:
            mix(rows, several)
        self.inputs, self.input_sections = workload(
            self.library,
            ir,
            self.disaggregated,
            open_loop,
            caches_prefixes,
            stated,
            None if several is None else several.section,
            self.devices,
        )
        for name, figure in () if several is None else followed(rows):
            self.inputs.set_default(name, figure)
        rows.know(*self.inputs.named().values())
        self.frameworks = frameworks(self.library)
        rows.know(*kinds_of_schedulers())
        rows.know_table("framework", self.frameworks.columns)
        engines(self.library, self.inputs, rows)

    def hold(self, demand: CapacityAsked | None) -> None:
        """The accelerators, and what they hold: all, those that decode, devices that are not alike."""
        rows, inputs = self.rows, self.inputs
        first = workers(self.ir, self.library, inputs, ranks_of(inputs, rows), rows)
        follow_limits(inputs, rows)
        self._follow(first)
        self.parts = None
        found = unlike(self.ir, self.library, inputs, first, rows)
        if found is not None:
            first, self.parts = found
            rows.know(*(row for section in first.sections() for row in section.figures()))
        last = of_decode(first) if self.disaggregated else first
        rows.know(*last.machine())
        self.first, self.last = first, last
        self.sets = (first, last) if self.disaggregated else (first,)
        self.pools = self.sets if self.parts is None else self.parts.sets
        every = (*self.sets, *self.pools)
        rows.make_in("pool", *map(_space, self.pools if self.devices else self.sets))
        rows.make_in("rank", *{each.rows.prefix: _of_ranks(each) for each in every}.values())
        rows.know(
            *(row for of in every for section in of.sections() for row in section.figures()),
            *(row for of in every for row in of.ranks.rows()),
        )
        devices = tuple(_device(number, self.devices) for number in range(1, self.devices + 1))
        rows.make_in("device", *devices)
        rows.make_in("device, the last first", *devices[::-1])
        rows.make_in("other device", *(Space(facts=device.facts) for device in devices[1:]))
        self.demand = None if demand is None else demand_cells(demand, rows)

    def _follow(self, first: Workers) -> None:
        """What inputs follow until somebody states them."""
        rows, follow = self.rows, dict[str, Quantity](first.formats.defaults)
        if "prefix.hit_default" in rows:
            follow["prefix_hit_rate"] = rows["prefix.hit_default"]
        if "speculation" in rows.features:
            follow["acceptance_length"] = rows["speculation.length"]
        if self.several is None:
            follow |= {"input_spread": rows["spread.evenly"], "output_spread": rows["spread.usual"]}
        for name, figure in follow.items():
            self.inputs.set_default(name, figure)

    def work(self) -> None:
        """The passes: a prompt, and a step of the running batch."""
        rows, ir = self.rows, self.ir
        make_modules(rows, ir, self.first, self.disaggregated)
        prefill = forward(phase_of(rows, "prefill"), ir, self.first, rows)
        if self.parts is not None:
            prefill, self.parts = on_devices(ir, self.first, self.parts, prefill)
        self.know(*self.size.sections, *prefill.sections)
        decode = forward(phase_of(rows, "decode"), ir, self.last, rows)
        decoding = Decoding(rows["decode.batch"], rows["decode.microbatches"])
        if self.parts is not None:
            decode, self.parts = on_devices(ir, self.last, self.parts, decode)
            self.know(*(section for of_pass in self.parts.passes.values() for section in of_pass))
            self.know(*prefill.sections, *decode.sections)
            know_ends(rows, prefill, decode)
            others = {
                "splits": (other_splits(self.first, self.parts),),
                "words": rows.sections("devices", "Who holds layers"),
            }
            self.parts = replace(self.parts, passes={**self.parts.passes, **others})
        operations_of(rows, "operations", prefill)
        operations_of(rows, "decode_operations", decode)
        self.apart: InDecode | None = None
        self.links = None if self.parts is None else self.parts.table
        if self.disaggregated:
            self.links = link_table(self.library)
            hand_over(rows, self.first, self.last, self.links)
            if self.inputs.handover_bandwidth is not None:
                self.inputs.set_default("handover_bandwidth", rows["serving.transfer_known"])
            self.apart = in_decode(rows, decoding, decode, self.last.rows["memory.batch"])
            decoding, decode = self.apart.decoding, self.apart.step
        self.know(*decode.sections)
        self.prefill, self.decode, self.decoding = prefill, decode, decoding

    def serve(self) -> None:
        """What users see, and what it costs."""
        rows = self.rows
        steps_of(rows, self.prefill, self.decode)
        times_of_experts(rows, self.decode, "experts_of_one", "single.")
        self.serving = serving(rows)
        for work in (self.prefill, self.decode):
            make_parts(rows, work)
        if rows.features & {"sessions", "request_rate"}:
            asked_by = "in_loop_of_sessions" if "sessions" in rows.features else "load.concurrency"
            self.inputs.set_default("concurrency", cast(Quantity, rows.node(asked_by)))
        for name in () if self.parts is None else _CHOSEN:
            rows.know_as(f"devices.{name}", span([of.rows[name] for of in self.pools]))
        self.cost = (
            *rows.sections("offer"),
            *rows.sections("cost", "Assumed of machines"),
            *rows.sections("token_cost", "Time of input and output"),
            *rows.sections("cost")[1:],
            *rows.sections("token_cost")[1:],
            *rows.sections("break_even"),
        )
        self.inputs.set_default("pue", rows["cost.pue_from" if self.devices else "cost.pue_default"])
        unequal = () if self.parts is None else self.pools
        self.floors = floors(dimensions(self.ir, self.first, self.last, self.prefill, rows, unequal))
        self.figures = _by_id(
            (
                *rows.sections("fullest"),
                *self.prefill.sections,
                *self.decode.sections,
                *rows.sections("serving", part="Prefill"),
                *self.serving.sections,
                *self.cost,
            )
        )
        rows.know(*self.figures.values(), *self.floors.section.figures())
        self.know(*self.first.tensors.listed)
        self.know(*rows.sections("speculation"))

    def guard(self) -> None:
        """The checks, and what the cells of inputs and assumptions hold."""
        rows = self.rows
        make_sides(rows, Checked(self.ir, self.sets, self.pools, self.parts, self.decode))
        found = standing(rows)
        results = {metric: metric.worked_out(self.figures) for metric in metrics_of(self.figures)}
        of_plan = [number for metric, number in results.items() if not metric.id.startswith(OF_COST)]
        of_plan += [check.result for check in found if check.group in (PLAN, FEASIBILITY)]
        needed = [figure for figure in ancestors(*of_plan) if isinstance(figure, Input | Quantity)]
        plan = set(needed)
        costs = ancestors(*(figure for section in self.cost for figure in section.figures()))
        used = None
        if self.disaggregated:
            used = set(ancestors(*self.figures.values(), *(check.result for check in found)))
        every = (*self.sets, *self.pools)
        overrides = dict.fromkeys(each.cell for workers in every for each in workers.overridable())
        self.typed = typed_inputs(
            self.inputs,
            self.first.hardware,
            self.frameworks.columns["name"],
            self.first.formats.types,
            [cell for cell in overrides if used is None or cell in used],
            {figure for figure in costs if isinstance(figure, Input)} - plan,
            () if self.several is None else self.several.entries,
            () if self.parts is None else self.parts.table.kinds,
            () if self.demand is None else (self.demand.profile,),
        )
        guarded: set[Named] = {item.input for item in self.typed.inputs}
        assumed = assumptions_typed(needed, guarded, ASSUMPTIONS)
        of_money = [figure for figure in ancestors(*results.values()) if isinstance(figure, Input)]
        paid = assumptions_typed(of_money, guarded | plan, PAID, "assumptions, power and price")
        assert assumed is not None and paid is not None  # the scheduler and cost have some
        self.assumed, self.paid = assumed, paid
        self.know(*self.typed.sections, *(of.section for of in (self.size.typed, assumed, paid)))
        self.checks = checks(rows, found)

    def tell(self) -> None:
        """Headline results, ranges, corrections, and the front page."""
        rows, possible = self.rows, self.rows["checks.possible"]
        self.headlines = dict(
            headlines(self.figures, possible, rows["checks.payable"], self.inputs.output_tokens)
        )
        self.evidence = evidence(rows, self.library.evidence, self.ir.family)
        if self.library.correction is not None:
            full, served = Fullest(rows), self.serving
            results = {"tpot": served.tpot, "ttft": served.ttft, "e2e": served.e2e}
            ranges = {name: (rows[f"evidence.{name}.p10"], rows[f"evidence.{name}.p90"]) for name in results}
            results |= {
                "prefill": rows["serving.prefill_through"],
                "weights": (self.last.rows if self.parts is None else full)["memory.weights"],
                "kv_tokens": full["startup.kv_tokens"],
                "peak_memory": full["startup.peak"],
            }
            replica = self.last.ranks.replica
            known = self.library.correction
            corrections(rows, known, self.ir.model.id, results, ranges | full.ranges, replica)
        self.machines = rows[f"machines.words.{self.devices}" if self.devices else "machines.words"]
        rows.know(*self.headlines.values())
        make_summary(rows, self.ir, self.machines, self.sets, (self.prefill, self.decode))
        if self.demand is not None:
            rows.know(*self.demand.inputs)

    def made(self, near: tuple[Section, ...]) -> EstimateGraph:
        """The graph.

        Args:
            near: the table of measured runs that can be near.
        """
        return EstimateGraph(
            ir=self.ir,
            library=self.library,
            frameworks=self.frameworks,
            workers=self.sets,
            input_sections=self.input_sections,
            typed=self.typed,
            assumed=self.assumed,
            paid=self.paid,
            model=self.size,
            prefill=self.prefill,
            decode=self.decode,
            decoding=self.decoding,
            apart=self.apart,
            devices=self.parts,
            links=self.links,
            serving=self.serving,
            cost=self.cost,
            evidence=self.evidence,
            nearest=near,
            floors=self.floors,
            measured=measured(self.rows, self.headlines),
            checks=self.checks,
            machines=self.machines,
            rows=self.rows,
            headlines=self.headlines,
            per_day=per_day(self.figures, self.rows["checks.payable"]),
            capacity=self.demand,
            classes=self.several,
        )


def _published_rate() -> Input:
    """The chance that a first draft token is accepted, until a scenario states one."""
    rate = SCENARIO_FIELDS["acceptance_rate"].default
    assert isinstance(rate, float)
    words = "published of one model"
    return defined("speculation.published_rate", "Acceptance rate by default", "1", rate, words)


def _asked(
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
    of_subjects = (
        kinds_of_messages,
        features_of_plan,
        features_of_tensors,
        features_of_weights,
        features_of_caches,
    )
    stored = {name for of_model in of_subjects for name in of_model(ir)}
    return frozenset(stored | {name for name, is_so in has.items() if is_so})


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
