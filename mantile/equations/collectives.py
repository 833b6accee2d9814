"""Messages between ranks in a pass: how many mixers, FFNs and attention cores send them.

What each is, how often it is sent and how long it takes stands in messages.eq, what a collective costs in
network.eq.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mantile.equations.constant import HALF
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope, scope
from mantile.equations.roofline import NETWORK, Block, Ways
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import DECODE, Workers
from mantile.graph.quantity import Input, Node, Quantity, Section, as_node, precedents, sum_of
from mantile.ir.modules import (
    Attention,
    Elementwise,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
)


@dataclass(frozen=True)
class Messages:
    """All messages of a pass.

    Args:
        blocks: in the order in which they are shown.
        after: those that follow a step, by the ranks it is spread over.
        section: what follows a step.
    """

    blocks: tuple[Block, ...]
    after: Mapping[Scope, Block]
    section: Section


def know_passes(rows: Equations, ir: ModelGraph, disaggregated: bool) -> None:
    """Make the messages of prefill and decode known, and how many modules of the model send them."""
    prompt, step = Space(home="prefill"), Space(home="decode")
    if disaggregated:
        step = replace(step, prefix=DECODE, inputs="inputs.decode_")
    cores = _sending(_cores(ir)) if "several_cores" in rows.features else []
    rows.make_in("pass", prompt, step)
    rows.make_in("prompt", prompt)
    rows.make_in("step", step)
    rows.make_in("core", *(replace(step, facts={"n": str(n)}) for n in range(1, len(cores) + 1)))
    mixers, dense, routed = _ends(ir)
    inside = sums_inside(ir)
    counts = {
        "mixers": _count(mixers, once=True),
        "ffns": _count([*dense, *routed]),
        "dense": _count(dense),
        "experts": _count(routed),
        "inside": _count(inside),
        "width_inside": next(iter(_widths(inside)), None),
        "cores": _count(_cores(ir)),
    }
    for name, count in counts.items():
        if count is not None:
            rows.know_as(f"messages.{name}", count)


def kinds_of_messages(ir: ModelGraph) -> Iterator[str]:
    """What messages a model needs, by the names that blocks of equations have for it."""
    _, dense, routed = _ends(ir)
    inside = sums_inside(ir)
    cores = _sending(_cores(ir))
    known = {
        "ffns": _count([*dense, *routed]) is not None,
        "dense_ffns": _count(dense) is not None,
        "routed_experts": _count(routed) is not None,
        "sums_inside": _count(inside) is not None,
        "sums_of_products": bool(_widths(inside)),
        "attention_cores": bool(cores),
        "several_cores": len(cores) > 1,
    }
    yield from (name for name, has in known.items() if has)


def messages(phase: Phase, workers: Workers, ir: ModelGraph, rows: Equations) -> Messages:
    """The messages of a pass."""
    for what in ("query", "result") if phase.decode else ():
        for number, channels in enumerate(_channels(ir, workers, what), start=1):
            rows.know_as(f"messages.{what}_channels.{number}", channels)
    *sections, of_layer = rows.sections("messages", prefix=f"{phase.id}.")
    blocks = tuple(_block(rows, phase, workers, section) for section in sections)
    return Messages(blocks, _after(rows, phase, blocks[0], of_layer), of_layer)


def _block(rows: Equations, phase: Phase, workers: Workers, section: Section) -> Block:
    """The block of a kind of message."""
    figures = {figure.id: figure for figure in section.figures()}
    name = next(iter(figures)).split(".")[1]
    own = f"{phase.id}.{name}."
    size = figures.get(f"{own}message_bytes", rows[f"{phase.id}.all_reduce.message_bytes"])
    ways = None
    if f"{own}cheapest" in figures:
        times = tuple(rows[row.id] for row in rows.family(f"{own}by.*"))
        latencies = tuple(
            next(row for row in precedents(time) if isinstance(row, Quantity) and row.unit == "s")
            for time in times
        )
        names = (
            rows.figure(f"{row.id.removeprefix(workers.prefix).removesuffix('latency')}name")
            for row in latencies
        )
        ways = Ways(
            tuple(each for each in names if isinstance(each, Input)),
            latencies,
            times,
            rows[f"{own}cheapest"],
        )
    return Block(
        id=name,
        label=section.title,
        section=section,
        time=rows[f"{own}time"],
        bound=rows[f"{own}bound"],
        layer_time=rows[f"{own}layer_time"],
        launch=None,
        compute=None,
        memory=None,
        flops=None,
        bytes=size,
        repeats=rows[f"{own}count"],
        network=True,
        reached={NETWORK: rows[f"{own}layer_time"]},
        ways=ways,
    )


def _after(rows: Equations, phase: Phase, sums: Block, section: Section) -> dict[Scope, Block]:
    """The messages after a mixer, an FFN and experts, by the ranks that these are spread over."""
    after = f"{phase.id}.after."
    of_all = f"{phase.id}.all_reduce.message_bytes"
    found: dict[Scope, tuple[str, str]] = {"attention": ("mixer", of_all)}
    if "ffns" in rows.features:
        found["stage"] = found["shared"] = ("ffn", f"{after}ffn_bytes")
    if f"{after}dense" in rows:
        found["stage"] = found["shared"] = ("dense", of_all)
    if "routed_experts" in rows.features:
        found["experts"] = ("experts", f"{after}experts_bytes")
    return {
        name: _following(rows[f"{after}{time}"], sums, rows[size], section)
        for name, (time, size) in found.items()
    }


def _following(time: Quantity, sums: Block, size: Quantity, section: Section) -> Block:
    """The messages after a step as one block."""
    return Block(
        id="all_reduce",
        label=time.label,
        section=section,
        time=time,
        bound=sums.bound,
        layer_time=time,
        launch=None,
        compute=None,
        memory=None,
        flops=None,
        bytes=size,
        repeats=None,
        network=True,
    )


def _ends(ir: ModelGraph) -> tuple[list[Module], list[Module], list[Module]]:
    """Modules with partial sums on every rank: mixers, dense FFNs and shared experts, routed experts."""
    ends = sums_after(ir)
    mixers = [module for module in ends if scope(module) == "attention" and module.part != "experts"]
    routed = [module for module in ends if scope(module) == "experts"]
    return mixers, [module for module in ends if module not in mixers and module not in routed], routed


def _count(modules: Sequence[Module], once: bool = False) -> Node | None:
    """How often modules run in a pass, and with `once` one more; None if never."""
    counted = [module.layers for module in modules if module.layers is not None]
    often: list[Node] = [sum_of([layers] * counted.count(layers)) for layers in dict.fromkeys(counted)]
    often += [as_node(1)] if once else []
    return sum_of(often) if often else None


def sums_after(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules at the end of a mixer or FFN whose result is summed over the ranks."""
    inside = sums_inside(ir)
    return tuple(module for module in ir.modules if module.reduces and module not in inside)


def sums_inside(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules inside a mixer that need a sum: norms over all heads, products from split channels."""
    hidden = ir.facts["hidden_size"]

    def needs_sum(module: Module) -> bool:
        work = module.operation
        if isinstance(work, Elementwise):
            return work.wide
        return isinstance(work, MatMul) and module.reduces and work.outputs is not hidden

    return tuple(module for module in ir.modules if needs_sum(module))


def _cores(ir: ModelGraph) -> list[Module]:
    """Attention cores."""
    return [module for module in ir.modules if isinstance(module.operation, Attention | LatentAttention)]


def _sending(modules: Sequence[Module]) -> list[Module]:
    return [module for module in modules if module.layers is not None]


def _widths(modules: Sequence[Module]) -> list[Node]:
    """Outputs of products among modules that need a sum inside a mixer."""
    products = (module.operation for module in modules)
    widths = list(dict.fromkeys(product.outputs for product in products if isinstance(product, MatMul)))
    assert len(widths) < 2, "one kind of mixer only sums a product inside"
    return list(widths)


def _channels(ir: ModelGraph, workers: Workers, what: Literal["query", "result"]) -> Iterator[Node]:
    """Channels of queries, or of results, of a rank in all layers, by core; of latents, as wide as these."""
    plan = workers.plan
    for module in _sending(_cores(ir)):
        core = module.operation
        if isinstance(core, LatentAttention):
            of_layer: Node = plan.on_rank(core.absorbed, module) * HALF
        else:
            assert isinstance(core, Attention)
            of_layer = plan.on_rank(core.query if what == "query" else core.result, module)
        assert module.layers is not None
        yield of_layer * module.layers
