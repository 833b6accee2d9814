"""Messages between ranks in a pass.

Which collective a module needs, over which ranks, how often, and how long it takes.

One attention group: an all-reduce after every mixer and FFN, or with sequence parallelism a reduce-scatter
and an all-gather. Several groups (attention-DP, CP): FFNs gather the tokens of the stage and scatter their
results; with EP tokens are sent to the ranks of their experts and back instead. Between pipeline stages
activations go from rank to rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mantile.equations.constant import HALF, RESULT_BYTES, RING_PHASES
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope, scope
from mantile.equations.roofline import NETWORK, Block, Ways
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    at_least,
    count_where,
    equal,
    index,
    is_number,
    least,
    match,
    maximum,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import (
    Attention,
    Elementwise,
    GroupedMatMul,
    LatentAttention,
    MatMul,
    ModelGraph,
    Module,
)

NO_WAY = "no way"
"""In place of the time of what the links do not allow."""


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


@dataclass(frozen=True)
class _Pass:
    """What messages of a pass follow from.

    Args:
        mixers, ffns, dense, experts: how often mixers, FFNs, among them dense FFNs with shared experts, and
            routed experts hand on partial sums; None where there are none.
    """

    phase: Phase
    workers: Workers
    ir: ModelGraph
    equations: Equations
    mixers: Node
    ffns: Node | None
    dense: Node | None
    experts: Node | None

    @property
    def hidden_bytes(self) -> Node:
        """Bytes of a token between layers."""
        return self.ir.facts["hidden_size"] * RESULT_BYTES

    @property
    def several(self) -> Node:
        """A stage has several attention groups."""
        return self.workers.ranks.groups > 1

    @property
    def gathers_tokens(self) -> Node:
        """FFNs are spread over several attention groups, whose tokens they gather.

        Where tokens are sent to their experts, every group keeps its dense FFNs to itself.
        """
        experts = self.workers.plan.experts
        return self.several if experts is None else all_of(self.several, experts.ranks.sends_tokens <= 0)

    @property
    def gathering(self) -> Node | None:
        """FFNs of a pass that gather tokens, where any do; None in a model without FFNs."""
        own = self.workers.inputs.own_ffns
        if own is None or self.dense is None:
            return self.ffns
        dense = self.dense * where(own, 0, 1)
        return dense if self.experts is None else dense + self.experts

    @property
    def narrow(self) -> Node | None:
        """Dense FFNs are shared by fewer ranks than attention; None where nobody states it."""
        own, ffn_tp = self.workers.inputs.own_ffns, self.workers.inputs.ffn_tp
        return None if own is None or ffn_tp is None else all_of(own, ffn_tp < self.workers.inputs.tp)

    def rows(self, name: str, label: str) -> Rows:
        """Where the rows of one kind of message go."""
        return Rows(f"{self.phase.id}.{name}", f", {label}")


def messages(phase: Phase, workers: Workers, ir: ModelGraph, equations: Equations) -> Messages:
    """The messages of a pass."""
    mixers, dense, routed = _ends(ir)
    of_mixers = _count(mixers, once=True)
    assert of_mixers is not None
    ffns, of_dense, experts = (_count(those) for those in ([*dense, *routed], dense, routed))
    work = _Pass(phase, workers, ir, equations, of_mixers, ffns, of_dense, experts)
    sums = all_reduce(work)
    halves = sequence(work, sums)
    gathers = None if work.gathering is None else gather(work, work.gathering)
    own = own_sums(work, sums)
    sent = [] if work.experts is None else to_experts(work, work.experts)
    after, section = _after(work, sums.block, halves, gathers, own, sent)
    blocks = [sums.block, *own, *inner_reduce(work), halves]
    blocks += [] if gathers is None else [gathers]
    blocks += [*sent, *context(work), *shares(work), p2p(work)]
    return Messages(tuple(blocks), after, section)


# --- one kind of message ----------------------------------------------------------------------------------


def _message(
    work: _Pass,
    rows: Rows,
    label: str,
    between: str,
    over: tuple[str, Node],
    size: Quantity,
    number: Node,
    overlap: Quantity,
) -> Block:
    """The block of a collective: the time of every algorithm, and the cheapest.

    Args:
        rows: with the size of the message; gets the others.
        between: which ranks.
        over: name of the collective, and its ranks.
        number: of messages in a pass.
        overlap: share that is hidden behind computation.
    """
    collective, ranks = over
    known, family = work.equations, f"network.{collective}.*."
    names = tuple(name for name in known.family(f"{family}name") if isinstance(name, Input))
    latencies, per_byte = (
        tuple(known[row.id] for row in known.family(f"{work.workers.prefix}{family}{what}"))
        for what in ("latency", "per_byte")
    )
    times = [
        rows(
            f"by.{name.id.split('.')[-2]}",
            f"Time, {name.value}",
            "s",
            where(is_number(latency), latency + size * slope, NO_WAY),
        )
        for name, latency, slope in zip(names, latencies, per_byte, strict=True)
    ]
    usable = count_where(span(times), at_least(0))
    cheapest = rows("cheapest", "Time of the cheapest", "s", where(usable > 0, least(span(times)), NO_WAY))
    chosen = index(span(names), match(cheapest, span(times)))
    rows("algorithm", "Algorithm", "1", where(is_number(cheapest), chosen, NO_WAY))
    message_time = rows(
        "layer_time",
        "Time of one",
        "s",
        where(all_of(ranks > 1, is_number(cheapest)), cheapest * (1 - overlap), 0),
        "what is not hidden behind computation",
    )
    ways = Ways(names, latencies, tuple(times), cheapest)
    return _block(rows, label, between, message_time, number, size, ways)


def _block(
    rows: Rows,
    label: str,
    between: str,
    layer_time: Quantity,
    number: Node,
    size: Quantity,
    ways: Ways | None = None,
) -> Block:
    """The block from the time of one message."""
    count = rows("count", "Number in a pass", "1", number)
    bound = rows("bound", "Bound by", "1", as_node(NETWORK))
    time = rows("time", "Time", "s", layer_time * count)
    title = f"{label[0].upper()}{label[1:]}"
    return Block(
        id=rows.prefix.rpartition(".")[2],
        label=title,
        section=rows.section(title, between, Section.SUBTOTAL),
        time=time,
        bound=bound,
        layer_time=layer_time,
        launch=None,
        compute=None,
        memory=None,
        flops=None,
        bytes=size,
        repeats=count,
        network=True,
        reached={NETWORK: layer_time},
        ways=ways,
    )


@dataclass(frozen=True)
class _Sums:
    """All-reduces after mixers and FFNs: their block, the bytes of one, and how many sums a pass needs."""

    block: Block
    size: Quantity
    number: Quantity


def all_reduce(work: _Pass) -> _Sums:
    """Sums over the TP ranks, where sequence parallelism does not do them."""
    phase, plan, label = work.phase, work.workers.plan, "all-reduce"
    rows = work.rows("all_reduce", label)
    size = rows("message_bytes", "Message bytes", "B", phase.rank_tokens * work.hidden_bytes)
    ends, embedding_tp = work.mixers, work.workers.inputs.embedding_tp
    if embedding_tp is not None:
        ends = ends - where(equal(embedding_tp, 1), 1, 0)
    if work.dense is not None:
        dense = where(work.gathers_tokens, 0, work.dense)
        own, narrow = work.workers.inputs.own_ffns, work.narrow
        ends = ends + (
            dense if own is None or narrow is None else where(own, where(narrow, 0, work.dense), dense)
        )
    if work.experts is not None:
        ends = ends + where(work.several, 0, work.experts)
    number = rows(
        "ends",
        "Mixers, FFNs and the embedding that need a sum",
        "1",
        ends,
        "" if work.ffns is None else "FFNs gather tokens instead where several attention groups share them",
    )
    block = _message(
        work,
        rows,
        label,
        "after mixer and FFN, over the TP ranks",
        ("all_reduce", work.workers.inputs.tp),
        size,
        number * where(plan.sequence > 1, 0, 1),
        work.workers.efficiency.factors["all_reduce_overlap"],
    )
    return _Sums(block, size, number)


def own_sums(work: _Pass, sums: _Sums) -> list[Block]:
    """Sums of dense FFNs over the ranks that share one, where these are fewer than TP."""
    ffn_tp, narrow = work.workers.inputs.ffn_tp, work.narrow
    if ffn_tp is None or narrow is None or work.dense is None:
        return []
    over = ("ffn_sum", maximum(1, ffn_tp))
    label = "sum of FFNs"
    rows = work.rows("ffn_sum", label)
    size = rows("message_bytes", "Message bytes", "B", work.phase.rank_tokens * work.hidden_bytes)
    number = RING_PHASES * work.dense * where(narrow, 1, 0)
    overlap = work.workers.efficiency.factors["gather_overlap"]
    between = "scattered and gathered over the ranks that share an FFN, where these are fewer than TP"
    return [_message(work, rows, label, between, over, size, number, overlap)]


def inner_reduce(work: _Pass) -> list[Block]:
    """Sums in the middle of a mixer; none in most models."""
    modules, label = sums_inside(work.ir), "all-reduce inside mixers"
    number = _count(modules)
    if number is None:
        return []
    products = (module.operation for module in modules)
    widths = list(dict.fromkeys(product.outputs for product in products if isinstance(product, MatMul)))
    assert len(widths) < 2, "one kind of mixer only sums a product inside"
    rows = work.rows("inner_reduce", label)
    size = rows(
        "message_bytes",
        "Message bytes",
        "B",
        work.phase.rank_tokens * (widths[0] if widths else as_node(1)) * RESULT_BYTES,
        "" if widths else "a norm needs one figure of every token",
    )
    over = ("all_reduce", work.workers.inputs.tp)
    overlap = work.workers.efficiency.factors["all_reduce_overlap"]
    return [_message(work, rows, label, "over the TP ranks", over, size, number, overlap)]


def sequence(work: _Pass, sums: _Sums) -> Block:
    """With sequence parallelism, a reduce-scatter and an all-gather in place of every all-reduce."""
    label = "scatter and gather"
    return _message(
        work,
        work.rows("sequence", label),
        label,
        "sequence parallelism, over the TP ranks",
        ("sequence", work.workers.inputs.tp),
        sums.size,
        RING_PHASES * sums.number * where(work.workers.plan.sequence > 1, 1, 0),
        work.workers.efficiency.factors["gather_overlap"],
    )


def gather(work: _Pass, ffns: Node) -> Block:
    """With several attention groups, an all-gather and a reduce-scatter for every FFN."""
    label = "gather of tokens"
    rows = work.rows("gather", label)
    size = rows("message_bytes", "Message bytes", "B", work.phase.tokens * work.hidden_bytes)
    return _message(
        work,
        rows,
        label,
        "several attention groups, over the ranks of a stage",
        ("gather", work.workers.ranks.stage),
        size,
        RING_PHASES * ffns * where(work.gathers_tokens, 1, 0),
        work.workers.efficiency.factors["gather_overlap"],
    )


def to_experts(work: _Pass, layers: Node) -> list[Block]:
    """Tokens sent to the ranks of their experts, and their results sent back.

    A token goes to a rank once, whatever it needs there.
    """
    workers, phase = work.workers, work.phase
    plan, copies = workers.plan, work.equations[f"{workers.prefix}network.all_to_all.copies"]
    assert plan.experts is not None
    ranks = plan.experts.ranks
    products = (module.operation for module in work.ir.modules)
    product = next(product for product in products if isinstance(product, GroupedMatMul))
    ways = (
        (
            "dispatch",
            "Tokens a rank sends",
            workers.formats.classes["experts"].activation_bytes,
            "tokens to the ranks of their experts",
        ),
        (
            "combine",
            "Tokens a rank gets back",
            RESULT_BYTES,
            "results back to the ranks of their tokens",
        ),
    )
    blocks: list[Block] = []
    for name, of_rank, value_bytes, between in ways:
        rows = work.rows(name, name)
        own = rows("own_tokens", of_rank, "token", phase.tokens / workers.ranks.stage)
        size = rows("message_bytes", "Message bytes", "B", own * copies * product.inputs * value_bytes)
        over = ("all_to_all", workers.ranks.stage)
        number, overlap = layers * ranks.sends_tokens, workers.efficiency.factors["all_to_all_overlap"]
        blocks.append(_message(work, rows, name, between, over, size, number, overlap))
    return blocks


def context(work: _Pass) -> list[Block]:
    """What context parallelism passes around.

    Keys and values of the prompt in prefill, partial results in decode.
    """
    cores = _cores(work.ir)
    if not cores:
        return []
    phase, workers, cp = work.phase, work.workers, work.workers.inputs.cp
    label = "context exchange"
    rows = work.rows("context", label)
    number = _count(cores)
    assert number is not None
    if phase.decode:
        each = rows.added("channels_of", "Channels of results", "channel", _channels(work, "result"), most=1)
        of_results = rows("channels", "Channels of results, all layers", "channel", each)
        volume = phase.rank_tokens * of_results * RESULT_BYTES
    else:
        volume = phase.rank_requests * workers.inputs.input_tokens * workers.memory.caches.per_token
    size = rows(
        "message_bytes", "Bytes of all layers", "B", volume * (cp - 1) / cp, "each part goes once around"
    )
    steps = rows("steps", "Messages of all layers", "1", number * (cp - 1))
    pass_time = rows("layer_time", "Time of one pass", "s", _p2p_time(work, size, steps))
    between = "among the CP groups; nothing without context parallelism"
    return [_block(rows, label, between, pass_time, as_node(1), size)]


def shares(work: _Pass) -> list[Block]:
    """What ranks that share the tokens of a KV cache exchange in decode.

    Queries of all their heads are gathered before attention; its partial results are scattered and summed
    behind it, with a number for each head that says how much they weigh.
    """
    dcp, cores = work.workers.inputs.dcp, _cores(work.ir)
    if dcp is None or not work.phase.decode or not cores:
        return []
    number = _count(cores)
    assert number is not None
    blocks = []
    ways: tuple[tuple[Literal["query", "result"], str, str], ...] = (
        ("query", "gather of queries", "before attention, over the ranks of decode CP"),
        ("result", "scatter of results", "behind attention, over the ranks of decode CP"),
    )
    for what, label, between in ways:
        rows = work.rows(f"{what}_shares", label)
        each = rows.added("channels_of", "Channels in all layers", "channel", _channels(work, what), most=1)
        of_layer = rows("channels", "Channels of a rank", "channel", each / number, "of a layer")
        size = rows(
            "message_bytes",
            "Message bytes",
            "B",
            work.phase.rank_tokens * of_layer * dcp * RESULT_BYTES,
            "of all heads whose tokens are shared",
        )
        overlap = work.workers.efficiency.factors["gather_overlap"]
        blocks.append(
            _message(
                work, rows, label, between, ("shares", dcp), size, number * where(dcp > 1, 1, 0), overlap
            )
        )
    return blocks


def p2p(work: _Pass) -> Block:
    """Activations handed from stage to stage of the pipeline; nothing with one stage."""
    rows, label = work.rows("p2p", "stage to stage"), "stage to stage"
    hidden = work.ir.facts["hidden_size"]
    size = rows("message_bytes", "Message bytes", "B", work.phase.norm_tokens * hidden * RESULT_BYTES)
    message_time = rows("layer_time", "Time of one", "s", _p2p_time(work, size))
    return _block(rows, label, "between pipeline stages", message_time, work.workers.inputs.pp - 1, size)


def _p2p_time(work: _Pass, size: Quantity, steps: Quantity | None = None) -> Node:
    """Time of messages from rank to rank that is not hidden behind computation."""
    hop, overlap = f"{work.workers.prefix}network.p2p", work.workers.efficiency.factors["p2p_overlap"]
    latency, per_byte = (work.equations[f"{hop}.{what}"] for what in ("latency", "per_byte"))
    fixed = latency if steps is None else steps * latency
    return (fixed + size * per_byte) * (1 - overlap)


# --- what follows a step ----------------------------------------------------------------------------------


def _after(
    work: _Pass,
    sums: Block,
    halves: Block,
    gathers: Block | None,
    own: Sequence[Block],
    sent: Sequence[Block],
) -> tuple[dict[Scope, Block], Section]:
    """The messages after a mixer, an FFN and experts, by the ranks that these are spread over."""
    plan, times, sizes = work.workers.plan, _follows(work), _follows(work)
    assert isinstance(sums.bytes, Quantity)
    time = times(
        "mixer",
        "Messages after a mixer",
        "s",
        where(plan.sequence > 1, RING_PHASES * halves.layer_time, sums.layer_time),
        "sequence parallelism scatters and gathers",
    )
    size: Quantity = sums.bytes
    after: dict[Scope, tuple[Quantity, Quantity]] = {"attention": (time, size)}
    if gathers is not None and gathers.bytes is not None:
        time = times(
            "ffn",
            "Messages after an FFN",
            "s",
            where(work.gathers_tokens, RING_PHASES * gathers.layer_time, time),
            "several attention groups gather tokens before it and scatter them after it",
        )
        label = "Bytes of messages after an FFN"
        size = sizes("ffn_bytes", label, "B", where(work.gathers_tokens, gathers.bytes, size))
        after["stage"] = after["shared"] = (time, size)
    for block in own:
        whole, narrow = work.workers.inputs.own_ffns, work.narrow
        assert whole is not None and narrow is not None
        of_own = times(
            "dense",
            "Messages after a dense FFN",
            "s",
            where(whole, where(narrow, RING_PHASES * block.layer_time, after["attention"][0]), time),
        )
        after["stage"] = after["shared"] = (of_own, after["attention"][1])
    if sent and plan.experts is not None:
        sends = plan.experts.ranks.sends_tokens > 0
        there_and_back = sum_of([block.layer_time for block in sent])
        time = times("experts", "Messages after experts", "s", where(sends, there_and_back, time))
        both = sum_of([block.bytes for block in sent if block.bytes is not None])
        label = "Bytes of messages after experts"
        size = sizes("experts_bytes", label, "B", where(sends, both, size))
        after["experts"] = (time, size)
    times.add(*sizes.rows)
    section = times.section("Messages of a layer", "which of them follow a step")
    return {name: _following(row, sums, size, section) for name, (row, size) in after.items()}, section


def _follows(work: _Pass) -> Rows:
    return Rows(f"{work.phase.id}.after")


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


# --- which modules need a sum -----------------------------------------------------------------------------


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


def _channels(work: _Pass, what: Literal["query", "result"]) -> list[Node]:
    """Channels of queries, or of results, of a rank in all layers, by core; of latents, as wide as these."""
    plan = work.workers.plan
    channels: list[Node] = []
    for module in _cores(work.ir):
        core = module.operation
        if module.layers is None:
            continue
        if isinstance(core, LatentAttention):
            of_layer: Node = plan.on_rank(core.absorbed, module) * HALF
        else:
            assert isinstance(core, Attention)
            of_layer = plan.on_rank(core.query if what == "query" else core.result, module)
        channels.append(of_layer * module.layers)
    return channels
