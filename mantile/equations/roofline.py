"""The modules of a pass, for the text: what each is, what of it a rank has, and its rows.

What a module multiplies and moves stands in the text of its kind, what that takes in roofline.eq.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from mantile.equations.phase import suffixes, tokens_name
from mantile.equations.plan import Sharding, scope
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import DECODE, Workers
from mantile.graph.quantity import (
    Apply,
    Input,
    Node,
    Quantity,
    Section,
    as_node,
    expression,
    substitute,
    sum_of,
    where,
)
from mantile.graph.sentence import lowered
from mantile.ir.modules import (
    FULL,
    Attention,
    AttentionSpan,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    LowRank,
    MatMul,
    ModelGraph,
    Module,
    Recurrence,
    Vision,
)

COMPUTE, MEMORY, NETWORK, OVERHEAD = "compute", "memory", "network", "overhead"


@dataclass(frozen=True)
class Ways:
    """The algorithms of a message.

    Args:
        names: of the algorithms; `latencies` their fixed times, `times` those of the message.
        cheapest: of these times.
    """

    names: tuple[Input, ...]
    latencies: tuple[Quantity, ...]
    times: tuple[Quantity, ...]
    cheapest: Quantity


@dataclass(frozen=True)
class Block:
    """A module's rows in one phase, and the rows other places need.

    `time` is that of the whole pass; the others are of one execution. `reads` are weights and cache it reads.
    `reached` is what its time follows from where a limit binds: the rate, the launch, the time of a message;
    `kernels` that it starts, where they are not one in each layer.
    """

    id: str
    label: str
    section: Section
    time: Quantity
    bound: Quantity
    layer_time: Quantity
    launch: Quantity | None = None
    compute: Quantity | None = None
    memory: Quantity | None = None
    flops: Quantity | None = None
    bytes: Node | None = None
    repeats: Node | None = None
    reads: Node | None = None
    network: bool = False
    module: Module | None = None
    reached: Mapping[str, Quantity] = field(default_factory=dict)
    ways: Ways | None = None
    kernels: Quantity | None = None

    @property
    def group(self) -> str:
        """What it belongs to where times are shown by kind."""
        if self.module is not None:
            return self.module.part
        if not self.network or self.id == "p2p":
            return self.id
        return "all_reduce" if self.id in ("all_reduce", "inner_reduce") else "messages"


_KINDS: Mapping[type, tuple[str, str]] = {
    MatMul: ("linear", "weight_bytes"),
    GroupedMatMul: ("moe", "weight_bytes"),
    Attention: ("attention", "cache_bytes"),
    LatentAttention: ("attention", "cache_bytes"),
    Indexer: ("attention", "cache_bytes"),
    Recurrence: ("recurrence", "state_moved"),
    Elementwise: ("elementwise", ""),
    Vision: ("vision", "bytes"),
    LowRank: ("lora", "weight_bytes"),
}
"""Of each kind of operation the file with its rows, and the row of what it reads of weights and cache."""


def modules_of(ir: ModelGraph, workers: Workers, phase: str) -> Iterator[Module]:
    """What a pass runs beside messages and host: the vision tower before a prompt, the decoder, adapters."""
    tower = ir.vision
    if tower is not None and workers.inputs.image_tokens is not None and phase == "prefill":
        yield Module(
            "vision", "vision", "Vision tower", "vision", "vision", tower, tower.tensors, kind="vision"
        )
    yield from ir.modules
    if "adapters" in workers.rows.features:
        yield Module("lora", "lora", "Adapters", "LoRA", "lora", LowRank())


def make_modules(rows: Equations, ir: ModelGraph, workers: Workers, disaggregated: bool) -> None:
    """Make the rows of all modules in prefill and decode.

    Args:
        workers: that prefill; those that decode hold the same modules.
    """
    spaces: dict[str, list[Space]] = defaultdict(list)
    for phase in ("prefill", "decode"):
        apart = disaggregated and phase == "decode"
        for module in modules_of(ir, workers, phase):
            kind = _kind(module, phase, suffixes(ir), workers)
            in_layers = module.layers is not None
            facts = {
                "m": module.id,
                "low": lowered(module.label),
                "run": "Time per layer" if in_layers else "Time of one run",
                "tokens": tokens_name(module),
            }
            space = Space(
                prefix=DECODE if apart else "",
                suffix=f", {facts['low']}",
                inputs="inputs.decode_" if apart else "",
                facts=facts | kind.facts,
                features=kind.features | {f"in_{phase}"} | ({"in_layers"} if in_layers else set()),
                within=f"{phase}.",
                home=f"{phase}.{module.id}",
            )
            for name in ("operation", *kind.names):
                spaces[name].append(space)
            subject, reads = _KINDS[type(module.operation)]
            facts = {"m": module.id, "label": module.label, "reads": reads}
            of_pass = Space(facts=facts, features=space.features)
            if "computes" in kind.features:
                spaces[f"module with FLOPs in {phase}"].append(of_pass)
            if reads and (phase == "decode" or subject != "attention"):
                spaces[f"module that reads in {phase}"].append(of_pass)
            for name, own in kind.parts:
                spaces[f"{name} of a {kind.names[0]}"].append(replace(space, facts=space.facts | own))
    for name, made in spaces.items():
        rows.make_in(name, *made)


@dataclass(frozen=True)
class _Kind:
    """What a module is in a pass.

    Args:
        names: of the spaces in which its rows are made.
        facts, features: of these.
        parts: facts of the sides and data types of its matrices that have rows.
    """

    names: tuple[str, ...]
    facts: dict[str, str]
    features: frozenset[str]
    parts: tuple[tuple[str, dict[str, str]], ...] = ()


def _kind(module: Module, phase: str, spans: Mapping[AttentionSpan, str], workers: Workers) -> _Kind:
    work, prefill = module.operation, phase == "prefill"
    both, reads = frozenset({"launched", "computes", "moves"}), frozenset({"launched", "computes"})
    reads = reads if prefill else both
    match work:
        case MatMul() | GroupedMatMul():
            return _product(module, work, prefill, workers)
        case Attention():
            return _Kind((f"attention in {phase}",), {"context": f"context{spans[work.span]}"}, reads)
        case LatentAttention():
            facts = {"context": f"context{spans[work.span]}"}
            if not prefill:
                return _Kind(("latent attention in decode",), facts, reads)
            selects = work.span.kind == "selected" and work.entry_tokens is None
            if selects and work.span.length is not None:
                facts["selected"] = work.span.length.id
            which = "some selected" if "selected" in facts else "all expanded"
            return _Kind(("latent attention in prefill", f"latent attention, {which}"), facts, reads)
        case Indexer():
            facts = {"context": f"context{spans[FULL]}"}
            return _Kind(("indexer", f"indexer in {phase}"), facts, reads)
        case Recurrence():
            facts = {"kernel": work.kernel.id}
            if not prefill and "speculation" in workers.rows.features:
                both |= {"drafts"}
            return _Kind(("recurrent state", f"recurrent state in {phase}"), facts, both)
        case Elementwise():
            launched = frozenset() if work.kind == "sorted" else frozenset({"launched"})
            return _Kind((f"kernel, {work.kind}",), {}, launched | {"moves"})
        case LowRank():
            return _Kind(("adapters",), {}, both)
    return _Kind(("vision tower",), {}, both)


def _product(module: Module, product: MatMul | GroupedMatMul, prefill: bool, workers: Workers) -> _Kind:
    """What a matrix product is: its sides, its data types, how it is sharded."""
    plan, formats = workers.plan, workers.formats
    features, facts = {"launched", "computes", "moves"}, {"class": product.stored}
    parts = list[tuple[str, dict[str, str]]]()
    for side in ("in", "out"):
        facts[side] = f"its.{side}puts"
        if isinstance(plan.on_rank(getattr(product, f"{side}puts"), module), Apply):
            facts[side] = f"{side}puts"
            parts.append(("side", {"side": side}))
    types = _types(module) if len(_types(module)) > 1 else ()
    for number, kind in enumerate(types):
        kept = f"in {kind.partition('.')[2] or 'the data type of the class'}"
        size = formats.stored[kind].bytes.id
        parts.append(("data type", {"n": str(number), "kind": kind, "kept": kept, "size": size}))
    facts["size"] = "weight_size" if types else formats.stored[product.stored].bytes.id
    for part in ("held", "values"):
        facts[part] = " + ".join(f"`{part}.{kind}`" for kind in types)
    features |= {"several_types"} if types else set()
    of_head = isinstance(product, MatMul) and product.rows == "requests"
    features |= {"in_passes"} if prefill and not of_head else set()
    if isinstance(product, GroupedMatMul):
        return _Kind(("grouped product",), facts, frozenset(features), tuple(parts))
    if of_head:
        facts["tokens"] = f"(rank_requests * {'tokens_per_step' if prefill else 'tokens_checked'})"
    facts |= {
        "activations": formats.classes[product.stored].activation_bytes.id,
        "note": _sharded(module, product, plan),
    }
    return _Kind(("matrix product",), facts, frozenset(features), tuple(parts))


def _types(module: Module) -> tuple[str, ...]:
    """The data types of the matrices of a module."""
    return tuple(dict.fromkeys(tensor.stored for tensor in module.tensors if tensor.matrix))


def _sharded(module: Module, product: MatMul, plan: Sharding) -> str:
    prefix = "last token of every request; " if product.rows == "requests" else ""
    ranks = {"attention": "the TP ranks", "stage": "the ranks of a stage"}
    among = ranks.get(scope(module), "the ranks that share it")
    if plan.splits_of(product.outputs):
        return f"{prefix}columns split over {among}"
    if plan.splits_of(product.inputs):
        return f"{prefix}rows split over {among}"
    return f"{prefix}the same on every rank"


def modules(rows: Equations, ir: ModelGraph, workers: Workers, phase: str) -> Iterator[Block]:
    """The blocks of all modules of a pass, from the rows that are made."""
    for module in modules_of(ir, workers, phase):
        place = f"{phase}.{module.id}."
        for name, dimension in _dimensions(module, workers, phase):
            rows.know_as(f"{place}its.{name}", dimension)
        if module.layers is not None:
            rows.know_as(f"{place}layers", module.layers)
        yield _block(rows, module, workers, place)


def _dimensions(module: Module, workers: Workers, phase: str) -> Iterator[tuple[str, Node]]:
    """What an operation says of its size, as a rank has it; weights by data type, of all layers."""
    work = module.operation
    dimensions = {name: value for name, value in vars(work).items() if isinstance(value, Node)}
    if isinstance(work, Recurrence):
        state, conv = (
            workers.rows[f"memory.{name}.{module.id}"] for name in ("state_values", "conv_channels")
        )
        here: dict[Node, Node] = {work.state: state, work.conv: conv}
        if phase == "decode" and work.chunk is not None:
            here[work.chunk] = as_node(1)  # a chunk of one token
        dimensions["macs"] = substitute(work.macs, here)
    for name, whole in dimensions.items():
        yield name, workers.plan.on_rank(whole, module)
    sizes = workers.tensors.sizes
    for number, kind in enumerate(_types(module) if isinstance(work, MatMul | GroupedMatMul) else ()):
        of_kind = [sizes[tensor] for tensor in module.tensors if tensor.matrix and tensor.stored == kind]
        yield f"values.{number}", sum_of(of_kind)


def _block(rows: Equations, module: Module, workers: Workers, place: str) -> Block:
    subject, read = _KINDS[type(module.operation)]
    (own,), (shared,) = rows.sections(subject, prefix=place), rows.sections("roofline", prefix=place)
    section = Section(
        module.label,
        (*own.rows, *shared.rows),
        f"{_how_often(module.layers)} · {own.note}",
        Section.SUBTOTAL,
    )
    of = {row.id.removeprefix(place): row for row in section.figures() if isinstance(row, Quantity)}
    return Block(
        id=module.id,
        label=module.label,
        section=section,
        time=of["time"],
        bound=of["bound"],
        layer_time=of["layer_time"],
        launch=of.get("launch_time"),
        compute=of.get("compute_time"),
        memory=of.get("memory_time"),
        flops=of.get("flops"),
        bytes=of.get("bytes"),
        repeats=module.layers,
        reads=of.get(read),
        module=module,
        reached=_reached(of),
        kernels=workers.rows["adapters.kernels"] if subject == "lora" else None,
    )


def _reached(rows: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """What compute, memory and launch time follow from: the first figure that is named."""
    of = {COMPUTE: ("compute_time", "FLOP/s"), MEMORY: ("memory_time", "B/s"), OVERHEAD: ("launch_time", "s")}
    return {
        limit: next(
            part for part in expression(rows[name].body) if isinstance(part, Quantity) and part.unit == unit
        )
        for limit, (name, unit) in of.items()
        if name in rows
    }


def _how_often(layers: Node | None) -> str:
    if not isinstance(layers, Input | Quantity):
        return "once per pass"
    name = layers.name or lowered(layers.label)
    return "in every layer" if name == "layers" else f"in {name}"


def limited(block: Block, limit: str, rest: Node) -> Node | None:
    """What a limit takes of a time without launch overhead: all or none, live; None where it never does."""
    if block.network:
        return rest if limit == NETWORK else None
    if block.compute is not None and block.memory is not None:
        if limit == COMPUTE:
            return where(block.compute >= block.memory, rest, 0)
        return where(block.memory > block.compute, rest, 0) if limit == MEMORY else None
    return rest if limit == (COMPUTE if block.compute is not None else MEMORY) else None
