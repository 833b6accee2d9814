"""Messages between ranks in a pass: which collective a module needs, over which ranks, how often, and how long it takes.

One attention group: an all-reduce after every mixer and FFN, or with sequence parallelism a reduce-scatter and an all-gather.
Several groups (attention-DP, CP): FFNs gather the tokens of the stage and scatter their results; with EP tokens are sent to
the ranks of their experts and back instead. Between pipeline stages activations go from rank to rank.
"""

from __future__ import annotations

from collections.abc import Sequence

from mantile.equations.constant import RESULT_BYTES, RING_PHASES
from mantile.equations.network import Collective
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope, scope
from mantile.equations.roofline import NETWORK, Block
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    index,
    match,
    minimum,
    span,
    sum_of,
    where,
)
from mantile.ir.modules import (
    Attention,
    Elementwise,
    GroupedMatMul,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
)


def messages(phase: Phase, side: Workers, ir: ModelGraph) -> tuple[list[Block], dict[Scope, Block], Section]:
    """All messages of a pass in the order in which they are shown; those that follow a mixer, an FFN and experts; and rows for these."""
    _inputs, plan, network, factor = side.inputs, side.plan, side.network, side.efficiency.factors
    hidden = ir.facts["hidden_size"] * RESULT_BYTES
    several = side.ranks.groups > 1
    mixers, dense, routed = _ends(ir)
    blocks: list[Block] = []

    inner = _count(sums_inside(ir))
    ends = _count(mixers, once=True)
    assert ends is not None
    ffns = _count([*dense, *routed])
    sums = _Message(phase, side, "all_reduce", "all-reduce", "after mixer and FFN, over the TP ranks")
    message = sums.row(
        "message_bytes",
        "Message bytes",
        "B",
        phase.rank_tokens * hidden,
        "tokens of a rank × hidden size × bytes of a result",
    )
    every = sums.row(
        "ends",
        "Mixers, FFNs and the embedding that need a sum",
        "1",
        ends if ffns is None else ends + where(several, 0, ffns),
        "after FFNs only with one attention group",
    )
    one_sum = sums.over(
        network.all_reduce,
        message,
        every * where(plan.sequence > 1, 0, 1),
        factor["all_reduce_overlap"],
        "number in a pass; none with sequence parallelism",
    )
    blocks.append(one_sum)
    if inner is not None:
        sums = _Message(phase, side, "inner_reduce", "all-reduce inside mixers", "over the TP ranks")
        widths = list(
            dict.fromkeys(
                module.operation.outputs for module in sums_inside(ir) if isinstance(module.operation, MatMul)
            )
        )
        assert len(widths) < 2, "one kind of mixer only sums a product inside"
        width: Node = widths[0] if widths else as_node(1)
        inside = sums.row(
            "message_bytes",
            "Message bytes",
            "B",
            phase.rank_tokens * width * RESULT_BYTES,
            "" if widths else "one figure for every token, for the norm",
        )
        blocks.append(
            sums.over(
                network.all_reduce,
                inside,
                inner,
                factor["all_reduce_overlap"],
                "one per layer with such a norm or product",
            )
        )
    halves = _Message(
        phase, side, "sequence", "scatter and gather", "sequence parallelism, over the TP ranks"
    )
    one_half = halves.over(
        network.sequence,
        message,
        RING_PHASES * every * where(plan.sequence > 1, 1, 0),
        factor["gather_overlap"],
        "a reduce-scatter and an all-gather in place of every all-reduce; none without sequence parallelism",
    )
    blocks.append(one_half)

    def follows(name: str, words: str, body: Node, note: str) -> Quantity:
        return Quantity(f"{phase.id}.after.{name}", f"Messages after {words}", "s", body, note=note)

    def sends(name: str, words: str, condition: Node, then: Node, otherwise: Node) -> Quantity:
        return Quantity(
            f"{phase.id}.after.{name}_bytes",
            f"Bytes of messages after {words}",
            "B",
            where(condition, then, otherwise),
        )

    rows = [
        follows(
            "mixer",
            "a mixer",
            where(plan.sequence > 1, RING_PHASES * one_half.layer_time, one_sum.layer_time),
            "an all-reduce, or with sequence parallelism a scatter and a gather",
        )
    ]
    sizes: list[Quantity] = []
    after: dict[Scope, tuple[Quantity, Node]] = {"attention": (rows[0], message)}
    to_experts = _count(routed)
    if ffns is not None:
        assert network.gather is not None
        gathers = _Message(
            phase, side, "gather", "gather of tokens", "several attention groups, over the ranks of a stage"
        )
        everything = gathers.row(
            "message_bytes",
            "Message bytes",
            "B",
            phase.tokens * hidden,
            "tokens in the pass × hidden size × bytes of a result",
        )
        if to_experts is None:
            number: Node = ffns
        else:
            assert plan.experts is not None
            number = gathers.row(
                "ffns",
                "FFNs that gather tokens",
                "1",
                ffns - plan.experts.ranks.sends_tokens * to_experts,
                "all but those whose tokens are sent",
            )
        one_gather = gathers.over(
            network.gather,
            everything,
            RING_PHASES * number * where(several, 1, 0),
            factor["gather_overlap"],
            "an all-gather and a reduce-scatter for every FFN; none with one attention group",
        )
        blocks.append(one_gather)
        rows.append(
            follows(
                "ffn",
                "an FFN",
                where(several, RING_PHASES * one_gather.layer_time, rows[0]),
                "as after a mixer; with several attention groups tokens are gathered before it and scattered after it",
            )
        )
        sizes.append(sends("ffn", "an FFN", several, everything, message))
        after["stage"] = after["shared"] = (rows[-1], sizes[-1])
    if to_experts is not None:
        assert plan.experts is not None
        away = plan.experts.ranks.sends_tokens
        sent = _to_experts(phase, side, ir, to_experts)
        blocks += sent
        rows.append(
            follows(
                "experts",
                "experts",
                where(away > 0, sum_of([block.layer_time for block in sent]), rows[-1]),
                "as after an FFN; or tokens are sent to their experts and back",
            )
        )
        sizes.append(
            sends(
                "experts",
                "experts",
                away > 0,
                sum_of([block.bytes for block in sent if block.bytes is not None]),
                sizes[-1],
            )
        )
        after["experts"] = (rows[-1], sizes[-1])
    if _cores(ir):
        blocks.append(_context(phase, side, ir))
    blocks.append(_stage_to_stage(phase, side, ir))
    section = Section("Messages of a layer", (*rows, *sizes), "which of them follow a step")
    steps = {
        name: Block(
            "all_reduce",
            row.label,
            section,
            row,
            one_sum.bound,
            row,
            None,
            None,
            None,
            None,
            size,
            None,
            network=True,
        )
        for name, (row, size) in after.items()
    }
    return blocks, steps, section


class _Message:
    """The rows of one kind of message in a pass."""

    def __init__(self, phase: Phase, side: Workers, identifier: str, label: str, note: str) -> None:
        self.phase, self.side, self.id, self.label, self.note = phase, side, identifier, label, note
        self.rows: list[Row] = []

    def row(self, name: str, title: str, unit: str, body: Node, note: str = "") -> Quantity:
        """A row before the times."""
        figure = Quantity(
            f"{self.phase.id}.{self.id}.{name}",
            f"{title}, {self.label}",
            unit,
            body,
            note=note,
            name=title[0].lower() + title[1:],
        )
        self.rows.append(figure)
        return figure

    def over(
        self, collective: Collective, message: Quantity, often: Node, overlap: Quantity, why: str
    ) -> Block:
        """The times of every algorithm, the cheapest, and the block."""
        times = [
            self.row(
                f"by.{name.id.split('.')[-2]}",
                f"Time, {name.value}",
                "s",
                latency + message * slope,
                f"fixed time + bytes × time per byte, {name.value}",
            )
            for name, latency, slope in zip(
                collective.names, collective.latencies, collective.per_byte, strict=True
            )
        ]
        cheapest = self.row(
            "cheapest",
            "Time of the cheapest",
            "s",
            minimum(span(times)),
            "the fastest algorithm the links allow",
        )
        self.row(
            "algorithm",
            "Algorithm",
            "1",
            index(span(collective.names), match(cheapest, span(times))),
            "the cheapest",
        )
        one = self.row(
            "layer_time",
            "Time of one",
            "s",
            where(collective.ranks > 1, cheapest * (1 - overlap), 0),
            "what is not hidden behind computation; nothing on one rank",
        )
        return self.block(one, often, why, message)

    def block(self, one: Quantity, often: Node, why: str, message: Quantity | None) -> Block:
        """The block from the time of one message."""
        count = self.row("count", "Number in a pass", "1", often, why)
        bound = self.row("bound", "Bound by", "1", as_node(NETWORK), "the network")
        time = self.row("time", "Time", "s", one * count)
        title = f"{self.label[0].upper()}{self.label[1:]}"
        return Block(
            self.id,
            title,
            Section(title, tuple(self.rows), self.note, Section.SUBTOTAL),
            time,
            bound,
            one,
            None,
            None,
            None,
            None,
            message,
            count,
            network=True,
        )


def _ends(ir: ModelGraph) -> tuple[list[Module], list[Module], list[Module]]:
    """Modules whose results are partial sums on every rank: of mixers, of dense FFNs and shared experts, of routed experts."""
    mixers = [
        module for module in sums_after(ir) if scope(module) == "attention" and module.part != "experts"
    ]
    routed = [module for module in sums_after(ir) if scope(module) == "experts"]
    return (
        mixers,
        [module for module in sums_after(ir) if module not in mixers and module not in routed],
        routed,
    )


def _count(modules: Sequence[Module], once: bool = False) -> Node | None:
    """How often modules run in a pass; with `once`, and one more."""
    counted = [module.layers for module in modules if module.layers is not None]
    often: list[Node] = [sum_of([layers] * counted.count(layers)) for layers in dict.fromkeys(counted)]
    often += [as_node(1)] if once else []
    return sum_of(often) if often else None


def sums_after(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules at the end of a mixer or FFN whose result is summed over the ranks."""
    inside = sums_inside(ir)
    return tuple(module for module in ir.modules if module.reduces and module not in inside)


def sums_inside(ir: ModelGraph) -> tuple[Module, ...]:
    """Modules in the middle of a mixer that need a sum over the ranks: norms over all heads, products from split channels."""
    hidden = ir.facts["hidden_size"]
    return tuple(
        module
        for module in ir.modules
        if (isinstance(module.operation, Elementwise) and module.operation.wide)
        or (
            isinstance(module.operation, MatMul) and module.reduces and module.operation.outputs is not hidden
        )
    )


def _to_experts(phase: Phase, side: Workers, ir: ModelGraph, layers: Node) -> list[Block]:
    """Tokens sent to the ranks of their experts, and their results sent back. A token goes to a rank once, whatever it needs there."""
    inputs, plan, network = side.inputs, side.plan, side.network
    assert network.all_to_all is not None and plan.experts is not None
    work = next(module.operation for module in ir.modules if isinstance(module.operation, GroupedMatMul))
    sent = side.formats.classes["experts"].activation_bytes
    blocks = []
    for name, label, size, note in (
        ("dispatch", "dispatch", sent, "tokens to the ranks of their experts"),
        ("combine", "combine", RESULT_BYTES, "results back to the ranks of their tokens"),
    ):
        part = _Message(phase, side, name, label, note)
        own = part.row(
            "own_tokens",
            "Tokens a rank sends" if name == "dispatch" else "Tokens a rank gets back",
            "token",
            phase.tokens / side.ranks.stage,
            "tokens in the pass ÷ ranks of a stage",
        )
        copies = part.row(
            "copies",
            "Ranks a token goes to" if name == "dispatch" else "Ranks a token comes from",
            "1",
            plan.experts.ranks.tp * inputs.ep * (1 - (1 - 1 / inputs.ep) ** (work.per_token)),
            "ranks that share an expert × EP × (1 − (1 − 1 ÷ EP) to the power experts per token): different ones",
        )
        message = part.row(
            "message_bytes",
            "Message bytes",
            "B",
            own * copies * work.inputs * size,
            "tokens × ranks × channels × bytes of a value",
        )
        blocks.append(
            part.over(
                network.all_to_all,
                message,
                layers * plan.experts.ranks.sends_tokens,
                side.efficiency.factors["all_to_all_overlap"],
                "one per layer of experts; none where all ranks see all tokens",
            )
        )
    return blocks


def _cores(ir: ModelGraph) -> list[tuple[Module, Node]]:
    """Attention cores with the width of what they hand on."""
    return [
        (
            module,
            module.operation.result if isinstance(module.operation, Attention) else module.operation.latent,
        )
        for module in ir.modules
        if isinstance(module.operation, Attention | LatentAttention)
    ]


def _context(phase: Phase, side: Workers, ir: ModelGraph) -> Block:
    """What context parallelism passes around: keys and values of the prompt in prefill, partial results in decode."""
    inputs, cores = side.inputs, _cores(ir)
    part = _Message(
        phase, side, "context", "context exchange", "among the CP groups; nothing without context parallelism"
    )
    count = _count([module for module, _ in cores])
    assert count is not None
    if phase.decode:
        widths = [
            side.plan.on_rank(width, module) * module.layers
            for module, width in cores
            if module.layers is not None
        ]
        channels = part.row(
            "channels",
            "Channels of results, all layers",
            "channel",
            sum_of(widths),
            "channels of a rank × layers",
        )
        body, note = (
            phase.rank_tokens * channels * RESULT_BYTES,
            "tokens of a rank × channels of results × bytes of a result",
        )
    else:
        body = phase.rank_requests * inputs.input_tokens * side.memory.caches.per_token
        note = "prompts of an attention group × input tokens × KV bytes per token"
    message = part.row(
        "message_bytes",
        "Bytes of all layers",
        "B",
        body * (inputs.cp - 1) / inputs.cp,
        f"{note} × (CP − 1) ÷ CP: each part once around",
    )
    steps = part.row(
        "steps", "Messages of all layers", "1", count * (inputs.cp - 1), "layers with attention × (CP − 1)"
    )
    one = part.row(
        "layer_time",
        "Time of one pass",
        "s",
        (steps * side.network.p2p_latency + message * side.network.p2p_per_byte)
        * (1 - side.efficiency.factors["p2p_overlap"]),
        "(messages × fixed time + bytes × time per byte) × what is not hidden",
    )
    return part.block(one, as_node(1), "all layers at once", message)


def _stage_to_stage(phase: Phase, side: Workers, ir: ModelGraph) -> Block:
    """Activations handed from stage to stage of the pipeline; nothing with one stage."""
    part = _Message(phase, side, "p2p", "stage to stage", "between pipeline stages")
    message = part.row(
        "message_bytes", "Message bytes", "B", phase.norm_tokens * ir.facts["hidden_size"] * RESULT_BYTES
    )
    one = part.row(
        "layer_time",
        "Time of one",
        "s",
        (side.network.p2p_latency + message * side.network.p2p_per_byte)
        * (1 - side.efficiency.factors["p2p_overlap"]),
        "(fixed time + bytes × time per byte) × what is not hidden",
    )
    return part.block(one, side.inputs.pp - 1, "stages − 1", message)
