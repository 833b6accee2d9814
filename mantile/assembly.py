"""All equations of one model put together: inputs to results, block by block, sheet by sheet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mantile.equations import constants
from mantile.equations.checks import Checks, checks
from mantile.equations.decode import decode
from mantile.equations.efficiency import Efficiency, efficiency
from mantile.equations.forward import Pass, forward
from mantile.equations.hardware import Hardware, hardware
from mantile.equations.memory import Memory, Tensors, memory, tensors
from mantile.equations.prefill import prefill
from mantile.equations.serving import Serving, serving
from mantile.equations.sharding import Sharding, sharding
from mantile.equations.workload import Workload, workload
from mantile.floors import Core, Dimensions, Weights, floors
from mantile.graph.quantity import Input, Named, Node, Quantity, Section, added, ancestors, children, maximum, span, total
from mantile.ir.modules import Attention, Experts, Indexer, LatentAttention, ModelGraph, Product, Tensor
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Equations:
    """The graph of a model on a library of hardware. `sheets` holds its blocks in the order a reader meets them."""

    ir: ModelGraph
    library: Library
    inputs: Workload
    hardware: Hardware
    efficiency: Efficiency
    plan: Sharding
    tensors: Tensors
    memory: Memory
    prefill: Pass
    decode: Pass
    serving: Serving
    checks: Checks
    model_parameters: Quantity
    active_parameters: Quantity
    sheets: dict[str, tuple[Section, ...]]

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
        if isinstance(work, Product | Experts) and any(tensor.matrix for tensor in module.tensors):
            parts.append(work.inputs * work.outputs)
        if module.id == "embedding":
            parts += [_stored(tensor) for tensor in module.tensors]
        vectors = [_stored(tensor) for tensor in module.tensors if not tensor.matrix and not tensor.buffer]
        if isinstance(work, Experts):  # their biases are stored per expert
            size = added(parts) * work.count if not vectors else added([*(part * work.count for part in parts), *vectors])
            chosen = work.per_token / work.count
        elif parts or vectors:
            size = added([*parts, *vectors])
            if len(vectors) > 2 or (vectors and _references(size) > _READABLE):
                rows += [Quantity(f"model.size.{module.id}.{number}", f"Parameters of {module.label}, {tensor.name.split('.', 3)[-1]}", "parameter",
                                  _stored(tensor) if module.layers is None else _stored(tensor) * module.layers)
                         for number, tensor in enumerate(module.tensors) if not tensor.matrix and not tensor.buffer]  # fmt: skip
                if not parts:
                    continue
                size = added(parts)
        else:
            continue
        row = Quantity(f"model.size.{module.id}", f"Parameters of {module.label}", "parameter",
                       size if module.layers is None else size * module.layers,
                       note="inputs × outputs, biases, × layers" if parts else "weights of the norm or table, × layers")  # fmt: skip
        rows.append(row)
        if isinstance(work, Experts):
            routed.append(row)
    parameters = Quantity("model.parameters", "Parameters by the modules", "parameter", total(span(rows)), note="sum of the rows above",
                          name="parameters")  # fmt: skip
    body: Node = parameters
    if chosen is not None:
        body = parameters - added(list(routed)) * (1 - chosen)
    active = Quantity("model.active_parameters", "Parameters active for a token", "parameter", body,
                      note="all but the routed experts a token does not go through" if routed else "all of them")  # fmt: skip
    return Size(parameters, active, (
        Section("Dimensions", ir.sizes, "made of the facts above"),
        Section("Size", (*rows, parameters, active), "from the dimensions above", Section.SUBTOTAL),
    ))  # fmt: skip


_READABLE = 7  # references in a formula, before the layers


def _references(expression: Node) -> int:
    return 1 if isinstance(expression, Input | Quantity) else sum(_references(part) for part in children(expression))


def _stored(tensor: Tensor) -> Node:
    """Values of a tensor in one layer."""
    size: Node = tensor.shape[0]
    for dimension in tensor.shape[1:]:
        size = size * dimension
    return size if tensor.copies is None else size * tensor.copies


def _dimensions(ir: ModelGraph, inputs: Workload, metal: Hardware, stored: Tensors, first: Pass, further: Pass) -> Dimensions:
    """What the floors are made of: tensors as stored, not the products of the equations."""
    weights: list[Weights] = []
    cores: list[Core] = []
    for module in ir.modules:
        matrices = [tensor for tensor in module.tensors if tensor.matrix and tensor.layers is not None]
        if matrices:
            size = added([stored.sizes[tensor] for tensor in matrices])
            share = ir.facts["experts_per_token"] / ir.facts["experts"] if matrices[0].routed else None
            weights.append(Weights(module.id, size if share is None else size * share, metal.classes[matrices[0].weights].bytes))
        work, layers = module.operation, module.layers
        if layers is None or not isinstance(work, Attention | LatentAttention | Indexer):
            continue
        if isinstance(work, Indexer):
            cores.append(Core(module.id, layers, None, work.key, None))
        elif work.reach.kind != "chunked":  # what a chunk reaches has no simple lower bound
            query = work.query + work.result if isinstance(work, Attention) else work.expanded
            kept = work.key + work.value if isinstance(work, Attention) else work.latent
            cores.append(Core(module.id, layers, query, kept, work.reach.length))
    vocabulary = ir.facts["vocabulary"] * ir.facts["hidden_size"]
    peaks = [metal.classes[name].linear_peak for name in ir.weight_classes() if name not in ("router", "head")]
    return Dimensions(
        weights=tuple(weights), head=Weights("head", vocabulary, metal.classes["head"].bytes), cores=tuple(cores),
        kv_bytes=metal.kv_bytes, peak=maximum(*peaks), bandwidth=metal.memory_bandwidth, tp=inputs.tp, prompts=first.phase.requests,
        input_tokens=inputs.input_tokens, output_tokens=inputs.output_tokens, decode_requests=further.phase.requests,
    )  # fmt: skip


def build(ir: ModelGraph, library: Library) -> Equations:
    """The equations of a model."""
    inputs, continuous, input_sections = workload(library, ir)
    metal = hardware(library, inputs, ir)
    reached = efficiency(library, inputs, metal, ir)
    size = _size(ir)
    plan = sharding(ir, inputs)
    stored = tensors(ir, plan)
    held = memory(ir, inputs, metal, reached, plan, stored)
    phase, rows = prefill(inputs, continuous, held, reached, ir)
    first = forward(phase, rows, ir, inputs, metal, reached, plan, held)
    phase, rows = decode(inputs, held, reached, ir)
    further = forward(phase, rows, ir, inputs, metal, reached, plan, held)
    results = serving(inputs, continuous, plan, held, reached, first, further)
    lowest = floors(_dimensions(ir, inputs, metal, stored, first, further))
    standing = checks(ir, inputs, metal, reached, plan, stored, held, first, further, results, size.parameters, lowest.ttft,
                      lowest.tpot)  # fmt: skip
    facts = tuple(ir.facts.values())
    vision = (Section("Vision tower", (*ir.vision.facts.values(), *ir.vision.rows()), "facts of its own config"),) if ir.vision is not None else ()
    sheets = {
        "Inputs": input_sections,
        "Hardware": metal.sections,
        "Efficiency": reached.sections,
        "Model": (Section("Architecture", facts, "facts of the checkpoint; structure is grey"), *vision, *size.sections),
        "Tensors": stored.listed,
        "Plan": (plan.section,),
        "Memory": (*stored.on_rank, *held.sections),
        "Prefill": first.sections,
        "Decode": further.sections,
        "Serving": (*results.sections, lowest.section, standing.section),
    }
    figures = [figure for sections in sheets.values() for section in sections for figure in section.figures()]
    sheets["Inputs"] = (*input_sections, constants.section(ancestors(*figures)))
    return Equations(ir, library, inputs, metal, reached, plan, stored, held, first, further, results, standing, size.parameters,
                     size.active, sheets)  # fmt: skip
