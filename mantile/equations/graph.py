"""All equations of one model put together: inputs to results, block by block, sheet by sheet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from mantile.equations import constant
from mantile.equations.checks import Checks, checks
from mantile.equations.constant import ONE_REQUEST
from mantile.equations.cost import Cost, cost
from mantile.equations.decode import decode
from mantile.equations.efficiency import efficiency
from mantile.equations.evidence import Evidence, evidence
from mantile.equations.formats import formats
from mantile.equations.forward import Pass, forward
from mantile.equations.hardware import hardware
from mantile.equations.inputs import Workload, workload
from mantile.equations.measured import Measured, measured
from mantile.equations.memory import memory
from mantile.equations.network import network
from mantile.equations.plan import sharding
from mantile.equations.prefill import prefill
from mantile.equations.serving import Serving, serving
from mantile.equations.tensors import tensors
from mantile.equations.workers import Workers
from mantile.floors import Core, Dimensions, Machine, Weights, floors
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    ancestors,
    expression,
    is_named,
    maximum,
    span,
    sum_of,
    sum_range,
)
from mantile.graph.rewrite import GraphRewrite
from mantile.ir.modules import Attention, GroupedMatMul, Indexer, LatentAttention, MatMul, ModelGraph, Tensor
from mantile.library.profiles import Library


@dataclass(frozen=True)
class EstimateGraph:
    """The graph of a model on a library of hardware. `sheets` holds its blocks in the order a reader meets them.

    `workers` are the accelerators: those that do everything, or prefill and decode workers.
    """

    ir: ModelGraph
    library: Library
    workers: tuple[Workers, ...]
    prefill: Pass
    decode: Pass
    serving: Serving
    cost: Cost
    evidence: Evidence
    measured: Measured
    checks: Checks
    model_parameters: Quantity
    active_parameters: Quantity
    sheets: dict[str, tuple[Section, ...]]

    @property
    def prefill_workers(self) -> Workers:
        """The accelerators that prefill, or do everything."""
        return self.workers[0]

    @property
    def decode_workers(self) -> Workers:
        """The accelerators that decode, or do everything."""
        return self.workers[-1]

    @property
    def inputs(self) -> Workload:
        """What is asked."""
        return self.prefill_workers.inputs

    @cached_property
    def figures(self) -> dict[str, Named]:
        """Every input and quantity by id."""
        found: dict[str, Named] = {}
        for sections in self.sheets.values():
            for section in sections:
                for figure in section.figures():
                    assert found.setdefault(figure.id, figure) is figure, f"two figures called {figure.id}"
        return found

    def all_inputs(self) -> tuple[Input, ...]:
        """Every input, shared ones included."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Input))

    @cached_property
    def replaceable(self) -> dict[str, Input]:
        """What an override may name: figures in use that have an override cell, and figures that all scenarios share and no profile states."""
        cells = {
            figure.id.removesuffix(OVERRIDE): figure
            for figure in self.all_inputs()
            if figure.id.endswith(OVERRIDE)
        }
        return cells | {
            figure.id: figure
            for figure in self.all_inputs()
            if figure.shared and not figure.fixed and not figure.id.startswith(("model.", *PROFILED))
        }

    def quantities(self) -> tuple[Quantity, ...]:
        """Every worked-out figure."""
        return tuple(figure for figure in self.figures.values() if isinstance(figure, Quantity))


@dataclass(frozen=True)
class Size:
    """Parameters by what the modules compute, against which the tensors are checked; and those active for a token."""

    parameters: Quantity
    active: Quantity
    sections: tuple[Section, ...]


def _size(ir: ModelGraph) -> Size:
    rows: list[Quantity] = []
    routed: list[Quantity] = []
    chosen: Node | None = None
    for module in ir.modules:
        work = module.operation
        parts: list[Node] = []
        if isinstance(work, MatMul | GroupedMatMul) and any(tensor.matrix for tensor in module.tensors):
            parts.append(work.inputs * work.outputs)
        if module.id == "embedding":
            parts += [_stored(tensor) for tensor in module.tensors]
        vectors = [_stored(tensor) for tensor in module.tensors if not tensor.matrix and not tensor.buffer]
        if isinstance(work, GroupedMatMul):  # their biases are stored per expert
            size = (
                sum_of(parts) * work.count
                if not vectors
                else sum_of([*(part * work.count for part in parts), *vectors])
            )
            chosen = work.per_token / work.count
        elif parts or vectors:
            size = sum_of([*parts, *vectors])
            if len(vectors) > 2 or (vectors and _references(size) > _READABLE):
                rows += [
                    Quantity(
                        f"model.size.{module.id}.{number}",
                        f"Parameters of {module.label}, {tensor.name.split('.', 3)[-1]}",
                        "parameter",
                        _stored(tensor) if module.layers is None else _stored(tensor) * module.layers,
                    )
                    for number, tensor in enumerate(module.tensors)
                    if not tensor.matrix and not tensor.buffer
                ]
                if not parts:
                    continue
                size = sum_of(parts)
        else:
            continue
        row = Quantity(
            f"model.size.{module.id}",
            f"Parameters of {module.label}",
            "parameter",
            size if module.layers is None else size * module.layers,
            note="inputs × outputs, biases, × layers" if parts else "weights of the norm or table, × layers",
        )
        rows.append(row)
        if isinstance(work, GroupedMatMul):
            routed.append(row)
    parameters = Quantity(
        "model.parameters",
        "Parameters by the modules",
        "parameter",
        sum_range(span(rows)),
        note="sum of the rows above",
        name="parameters",
    )
    body: Node = parameters
    if chosen is not None:
        body = parameters - sum_of(list(routed)) * (1 - chosen)
    active = Quantity(
        "model.active_parameters",
        "Parameters active for a token",
        "parameter",
        body,
        note="all but the routed experts a token does not go through" if routed else "all of them",
    )
    return Size(
        parameters,
        active,
        (
            Section("Dimensions", ir.sizes, "made of the facts above"),
            Section("Size", (*rows, parameters, active), "from the dimensions above", Section.SUBTOTAL),
        ),
    )


_READABLE = 7  # references in a formula, before the layers


def _references(body: Node) -> int:
    return sum(map(is_named, expression(body)))


def _stored(tensor: Tensor) -> Node:
    """Values of a tensor in one layer."""
    size: Node = tensor.shape[0]
    for dimension in tensor.shape[1:]:
        size = size * dimension
    return size if tensor.copies is None else size * tensor.copies


def _dimensions(ir: ModelGraph, side: Workers, decoders: Workers, first: Pass, further: Pass) -> Dimensions:
    """What the floors are made of: tensors as stored, not the products of the equations."""
    inputs, stored = side.inputs, side.stored
    weights: list[Weights] = []
    cores: list[Core] = []
    for module in ir.modules:
        matrices = [tensor for tensor in module.tensors if tensor.matrix and tensor.layers is not None]
        if matrices:
            size = sum_of([stored.sizes[tensor] for tensor in matrices])
            share = ir.facts["experts_per_token"] / ir.facts["experts"] if matrices[0].routed else None
            weights.append(
                Weights(
                    module.id,
                    size if share is None else size * share,
                    side.formats.classes[matrices[0].weights].bytes,
                )
            )
        work, layers = module.operation, module.layers
        if layers is None or not isinstance(work, Attention | LatentAttention | Indexer):
            continue
        if isinstance(work, Indexer):
            cores.append(Core(module.id, layers, None, work.key, None))
        elif work.span.kind != "chunked":  # what a chunk reaches has no simple lower bound
            query = work.query + work.result if isinstance(work, Attention) else work.expanded
            kept = work.key + work.value if isinstance(work, Attention) else work.latent
            cores.append(Core(module.id, layers, query, kept, work.span.length))
    vocabulary = ir.facts["vocabulary"] * ir.facts["hidden_size"]

    def machine(of: Workers, ranks: Node) -> Machine:
        peaks = [
            of.formats.classes[name].linear_peak
            for name in ir.weight_classes()
            if name not in ("router", "head")
        ]
        return Machine(maximum(*peaks), of.hardware.memory_bandwidth, ranks)

    return Dimensions(
        weights=tuple(weights),
        head=Weights("head", vocabulary, side.formats.classes["head"].bytes),
        cores=tuple(cores),
        kv_bytes=side.formats.kv_bytes,
        prefill=machine(side, side.ranks.replica),
        decode=machine(decoders, decoders.ranks.stage),
        prompts=first.phase.requests,
        input_tokens=inputs.input_tokens,
        output_tokens=inputs.output_tokens,
        decode_requests=further.phase.requests,
    )


def build_graph(
    ir: ModelGraph, library: Library, disaggregated: bool = False, open_loop: bool = False
) -> EstimateGraph:
    """The equations of a model.

    Args:
        disaggregated: whether decode workers are described apart from those that prefill.
        open_loop: whether requests may arrive at a rate; the Decode sheet then has a step with one request as well.
    """
    inputs, ranks, input_sections = workload(library, ir, disaggregated, open_loop)
    metal = hardware(library, inputs)
    kinds = formats(library, inputs, metal, ir)
    reached = efficiency(library, inputs, ranks, metal, kinds, ir)
    size = _size(ir)
    plan = sharding(ir, inputs, ranks)
    stored = tensors(ir, plan)
    held = memory(ir, inputs, ranks, metal, kinds, reached, plan, stored)
    side = Workers(
        inputs,
        ranks,
        metal,
        kinds,
        reached,
        plan,
        stored,
        network(inputs, ranks, metal, reached, ir),
        held,
    )
    decoders = _decoders(side) if disaggregated else side
    phase, rows = prefill(side, ir)
    first = forward(phase, rows, ir, side)
    phase, rows, parts = decode(decoders, ir)
    further = forward(phase, rows, ir, decoders)
    single = _single(decoders, rows, further) if open_loop else None
    results = serving(
        ir, library, side, decoders, first, further, parts, None if single is None else single.time
    )
    money = cost(side, decoders, results)
    known = evidence(
        library,
        decoders.inputs,
        ranks.disaggregated,
        {"tpot": results.tpot, "ttft": results.ttft, "throughput": results.output_tokens_per_s},
    )
    compared = measured(results)
    lowest = floors(_dimensions(ir, side, decoders, first, further if single is None else single))
    standing = checks(
        ir,
        {"": side, "decode": decoders} if disaggregated else {"": side},
        first,
        further,
        results,
        money,
        size.parameters,
        lowest.ttft,
        lowest.tpot,
    )
    facts = tuple(ir.facts.values())
    vision = (
        (Section("Vision tower", (*ir.vision.facts.values(), *ir.vision.rows()), "facts of its own config"),)
        if ir.vision is not None
        else ()
    )

    def both(of: Callable[[Workers], tuple[Section, ...]]) -> tuple[Section, ...]:
        """Blocks of the accelerators, and those that decode workers have to themselves."""
        mine = of(side)
        return (
            mine
            if decoders is side
            else (*mine, *(section for section in of(decoders) if section.rows and section not in mine))
        )

    sheets = {
        "Inputs": (*input_sections, _ranks(side), *([_ranks(decoders)] if disaggregated else [])),
        "Hardware": both(lambda of: (*of.hardware.sections, *of.formats.sections)),
        "Efficiency": both(lambda of: of.efficiency.sections),
        "Model": (
            Section("Architecture", facts, "facts of the checkpoint; structure is grey"),
            *vision,
            *size.sections,
        ),
        "Tensors": stored.listed,
        "Memory": both(lambda of: (*of.plan.sections, *of.stored.on_rank, *of.memory.sections)),
        "Network": both(lambda of: of.network.sections),
        "Prefill": first.sections,
        "Decode": (
            *further.sections,
            *(section for section in (single.sections if single is not None else ()) if section.rows),
        ),
        "Serving": (*results.sections, known.section, lowest.section, standing.section),
        "Cost": money.sections,
        "Calibration": compared.sections,
    }
    if disaggregated:
        shown = [
            figure
            for name in ("Prefill", "Decode", "Serving", "Cost", "Calibration")
            for section in sheets[name]
            for figure in section.figures()
        ]
        wanted = set(
            ancestors(
                *shown,
                *(check.result for check in standing.checks),
                *(held.memory.fits for held in (side, decoders)),
                *(held.hardware.name for held in (side, decoders)),
                side.efficiency.profile,
                decoders.memory.free,
                decoders.memory.outside,
            )
        )
        sheets = {
            name: tuple(_pruned(section, wanted) for section in sections) for name, sections in sheets.items()
        }
    figures = [figure for sections in sheets.values() for section in sections for figure in section.figures()]
    sheets["Inputs"] = (
        *input_sections,
        constant.section(ancestors(*figures)),
        *sheets["Inputs"][len(input_sections) :],
    )
    return EstimateGraph(
        ir,
        library,
        (side,) if decoders is side else (side, decoders),
        first,
        further,
        results,
        money,
        known,
        compared,
        standing,
        size.parameters,
        size.active,
        sheets,
    )


SINGLE = "single."  # before the ids of a decode step with one request


def _single(side: Workers, rows: tuple[Named, ...], step: Pass) -> Pass:
    """A decode step with one request: what of a step depends on the batch, made again."""
    figures = [figure for section in step.sections for figure in section.figures()]
    made = GraphRewrite(
        {side.memory.batch: ONE_REQUEST}, (), SINGLE, ", one request", (*rows, *figures)
    ).rewrite(step)
    needed = [
        node
        for node in ancestors(made.time, made.phase.requests)
        if isinstance(node, Quantity) and node.id.startswith(SINGLE)
    ]
    shown = {figure for section in made.sections for figure in section.figures()}
    sections = (
        Section(
            "What enters, one request",
            tuple(node for node in needed if node not in shown),
            "a decode step with one request in the batch",
        ),
        *(
            replace(section, rows=tuple(row for row in section.rows if row in needed), total=0)
            for section in made.sections
        ),
    )
    return replace(made, sections=sections)


def _pruned(section: Section, wanted: set[Node]) -> Section:
    """A block without what neither prefill nor decode workers need of it."""
    rows = tuple(
        row
        for row in section.rows
        if isinstance(row, tuple)
        or row in wanted
        or row.id.startswith(("model.", "tensor", "inputs."))
        or not (isinstance(row, Quantity) or row.id.endswith(OVERRIDE))
    )
    return replace(section, rows=rows, total=section.total if rows and rows[-1] is section.rows[-1] else 0)


def _ranks(side: Workers) -> Section:
    return Section(
        f"Ranks{', decode' if side.ranks.stage.id.startswith(DECODE) else ''}",
        side.ranks.rows(),
        "accelerators that work together",
    )


OVERRIDE = ".override"  # after the id of the figure that such a cell replaces
PROFILED = ("library.", "system.", "efficiency.")  # before the ids of what profiles state
DECODE = "decode."  # before the ids of what decode workers have to themselves


def _decoders(side: Workers) -> Workers:
    """Decode workers: the same figures with their own inputs, and all requests of the deployment."""
    own = side.inputs.of_decode()
    requests = Quantity(
        f"{DECODE}{side.memory.requests.id}",
        f"{side.memory.requests.label}, decode",
        "request",
        maximum(1, side.inputs.concurrency / own[side.inputs.dp]),
        note="concurrency ÷ decode workers, at least 1",
    )
    wanted = [
        figure
        for section in (
            *side.hardware.sections,
            *side.formats.sections,
            *side.efficiency.sections,
            *side.plan.sections,
            *side.stored.on_rank,
            *side.memory.sections,
            *side.network.sections,
        )
        for figure in section.figures()
    ]
    rewrite = GraphRewrite(
        {**own, side.memory.requests: requests},
        (*side.hardware.overrides, *side.efficiency.overrides),
        DECODE,
        ", decode",
        (*wanted, *side.ranks.rows(), *side.plan.copied.values()),
    )
    return rewrite.rewrite(side)
