"""What a message costs: every algorithm of every collective as a fixed time and a time per byte.

A collective takes latency + bytes × time per byte; a pass works all algorithms out for its message and takes
the cheapest. Forms: NCCL's tuner and performance notes for rings, in-switch sums and hierarchies; the TPU
scaling book for tori; one read of all peers (one-shot) and scatter-and-gather at once (two-shot) as
TensorRT-LLM and vLLM do it.

    id behind "network"                                        function
    --------------------------------------------------------   ----------------------------------
    .out                                                       network.network
    .tp .stage                                                 network.group
    .all_reduce                                                network.all_reduce
    .sequence .gather                                          network.gather
    .all_to_all                                                network.all_to_all
      .inside .outside .inner_torus .inner_direct .start         network.inside_and_outside
    .COLLECTIVE.ALGORITHM.latency .per_byte                    network.collective
    .COLLECTIVE.unlinked                                       network.collective
    .p2p                                                       network.p2p
    .unlinked                                                  network.network

What the links do not allow has no time: a word stands in its place. Ranks that no algorithm joins make the
plan one that cannot be; their messages are then left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import HALF, QUARTER, RANKS_TO_ACCELERATORS, RING_PHASES
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.plan import scope
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    at_least,
    count_where,
    defined,
    is_number,
    maximum,
    minimum,
    round_up,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import GroupedMatMul, ModelGraph

NO_WAY = "no way"
"""In place of the fixed time of an algorithm that the links do not allow."""
ONE_SHOT_RANKS = Input(
    id="network.one_shot_ranks",
    label="Most ranks of a one-shot all-reduce",
    unit="rank",
    value=8,
    note="largest group for which engines have such a kernel",
    source="assumed: one node",
    status="assumed",
    shared=True,
    minimum=2,
    maximum=1024,
)


@dataclass(frozen=True)
class Collective:
    """One collective over one group of ranks, with a row for each of its algorithms.

    Args:
        ranks: of the group.
        names: of the algorithms.
        latencies: their fixed times, in s; a text where the links do not allow one.
        per_byte: their times per byte, in s/B.
        unlinked: 1 if no algorithm joins the ranks.
    """

    ranks: Node
    names: tuple[Input, ...]
    latencies: tuple[Quantity, ...]
    per_byte: tuple[Quantity, ...]
    unlinked: Quantity


@dataclass(frozen=True)
class Network:
    """Costs of messages of one deployment.

    Args:
        all_reduce: over the TP ranks.
        sequence: an all-gather or a reduce-scatter over the TP ranks, as sequence parallelism needs it.
        gather: the same over all ranks of a stage; None in a model without FFNs.
        shares: a gather or a scatter over the ranks of decode CP; None where no scenario asks for it.
        ffn: the same over the ranks that share an FFN; None where no scenario states them.
        all_to_all: over the ranks of a stage; None in a model without experts.
        copies: ranks that a token goes to in it; None in a model without experts.
        p2p_latency, p2p_per_byte: from stage to stage; `p2p_crosses` is 1 where that is out of the domain.
        out: B/s of one accelerator out of its domain.
        tp_domains, stage_domains: domains that the TP ranks, and those of a stage, span.
        unlinked: kinds of messages that have no way.
    """

    all_reduce: Collective
    sequence: Collective
    gather: Collective | None
    shares: Collective | None
    ffn: Collective | None
    all_to_all: Collective | None
    copies: Quantity | None
    p2p_latency: Quantity
    p2p_per_byte: Quantity
    p2p_crosses: Quantity
    out: Quantity
    tp_domains: Quantity
    stage_domains: Quantity
    unlinked: Quantity
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Links:
    """What connects accelerators.

    Args:
        factors: efficiency factors by name.
        out: B/s of one accelerator out of its domain.
        speed: of all links, against the datasheet.
    """

    hardware: Hardware
    efficiency: Efficiency
    out: Quantity
    speed: Input

    @property
    def factors(self) -> Mapping[str, Quantity]:
        return self.efficiency.factors

    @property
    def domain(self) -> Node:
        """Ranks of a domain."""
        return self.hardware.system_accelerators / RANKS_TO_ACCELERATORS


@dataclass(frozen=True)
class _Gather:
    """A message scattered or gathered once.

    Args:
        latency, bandwidth: fixed time, and the share of the links it reaches, over direct links.
        start: fixed time inside a domain, over the links there are.
        inner, outer: s per byte inside and between domains.
    """

    latency: Quantity
    bandwidth: Quantity
    start: Quantity
    inner: Quantity
    outer: Quantity


@dataclass(frozen=True)
class _Group:
    """Ranks that work together, as the algorithms see them.

    Args:
        words: what the group is called.
        size: how many ranks it has.
        inside, domains: ranks in one domain, and how many domains the group spans.
        bandwidth: B/s that a rank has to the others in its domain.
        joined: 1 if links join the ranks in a domain, or there is one.
        one, spread: 1 if they stand in one domain, or in several, and links join those in each.
        share: of a message that a rank sends.
        hops: across a torus.
        gather: what a gather takes.
    """

    words: str
    size: Node
    inside: Quantity
    domains: Quantity
    bandwidth: Quantity
    joined: Quantity
    one: Quantity
    spread: Quantity
    share: Quantity
    hops: Quantity
    gather: _Gather
    section: Section

    def within(self, *more: Node) -> Node:
        """All ranks stand in one domain, whose links join them, and more."""
        return all_of(self.one > 0, *more) if more else self.one > 0

    def across(self, out: Node) -> Node:
        """The ranks stand in several domains that a network joins, as links do inside each."""
        return all_of(self.spread > 0, out > 0)


@dataclass(frozen=True)
class _Algorithm:
    """An algorithm of a collective: whether the links allow it, its fixed time and its time per byte.

    `factor` is the one that the fixed time follows from.
    """

    name: str
    possible: Node
    latency: Node
    per_byte: Node
    factor: Quantity


def network(
    inputs: Workload, ranks: Ranks, hardware: Hardware, efficiency: Efficiency, ir: ModelGraph
) -> Network:
    """The rows of the Network part."""
    rows = Rows("network")
    out = rows(
        "out",
        "Network bandwidth reached",
        "B/s",
        efficiency.factors["network_bandwidth"] * hardware.scale_out_bandwidth * inputs.network_speed,
        "of one accelerator out of its domain",
    )
    links = _Links(hardware, efficiency, out, inputs.network_speed)
    has_ffns = any(scope(module) != "attention" for module in ir.modules)
    tp = group("tp", "TP", inputs.tp, links)
    stage = group("stage", "stage", ranks.stage, links, shown=has_ffns)
    sums, of_sums = all_reduce(tp, links)
    halves, of_halves = gather("sequence", "gather over TP", tp, links)
    sections = [rows.section("Network", "between domains"), tp.section, stage.section, *of_sums, of_halves]
    gathers = shares = ffn = exchange = copies = None
    if has_ffns:
        gathers, of_gathers = gather("gather", "gather over a stage", stage, links)
        sections.append(of_gathers)
    if inputs.dcp is not None:
        same_tokens = group("dcp", "decode CP", inputs.dcp, links)
        shares, of_shares = gather("shares", "gather over decode CP", same_tokens, links)
        sections += [same_tokens.section, of_shares]
    if inputs.ffn_tp is not None and has_ffns:
        sharing = group("ffn", "FFN", maximum(1, inputs.ffn_tp), links)
        ffn, of_ffn = gather("ffn_sum", "gather over FFN ranks", sharing, links)
        sections += [sharing.section, of_ffn]
    if GroupedMatMul in ir.operations():
        exchange, copies, of_exchange = all_to_all(stage, links, _per_token(ir), inputs.ep)
        sections += of_exchange
    latency, per_byte, crosses, no_way, of_stages = p2p(inputs, ranks, links)
    collectives = [item for item in (sums, halves, gathers, shares, ffn, exchange) if item is not None]
    joined = Rows("network")
    unlinked = joined(
        "unlinked",
        "Kinds of messages without a way",
        "flag",
        sum_of([*(item.unlinked for item in collectives), no_way]),
        "no link joins the ranks that would send them",
    )
    return Network(
        all_reduce=sums,
        sequence=halves,
        gather=gathers,
        shares=shares,
        ffn=ffn,
        all_to_all=exchange,
        copies=copies,
        p2p_latency=latency,
        p2p_per_byte=per_byte,
        p2p_crosses=crosses,
        out=out,
        tp_domains=tp.domains,
        stage_domains=stage.domains,
        unlinked=unlinked,
        sections=(*sections, of_stages, joined.section("Links", "of all kinds of messages")),
    )


def group(name: str, label: str, size: Node, links: _Links, shown: bool = True) -> _Group:
    """The rows of a group of ranks; of one over which nothing is spread, only where it stands."""
    hardware, rows = links.hardware, Rows(f"network.{name}", f", {label}")
    inside = rows(
        "inside",
        "Ranks in a domain",
        "rank",
        minimum(size, links.domain),
        called=f"{label} ranks in a domain",
    )
    domains = rows(
        "domains",
        "Domains spanned",
        "domain",
        round_up(size / links.domain),
        called=f"domains of {label} ranks",
    )
    more = rows if shown else Rows(rows.prefix, rows.suffix)
    bandwidth = more(
        "bandwidth",
        "Link bandwidth of a rank",
        "B/s",
        links.speed
        * where(hardware.mesh > 0, maximum(1, inside - 1) * hardware.pair_bandwidth, hardware.link_bandwidth),
        "in a mesh there is one link to each of the others",
        called=f"link bandwidth of {label} ranks",
    )
    joined = more(
        "joined",
        "Links join the ranks in a domain",
        "flag",
        where(all_of(inside > 1, bandwidth <= 0), 0, 1),
        "a bandwidth of 0 is no link; a rank alone needs none",
        called=f"links join {label} ranks in a domain",
    )
    one = more("one", "In one domain, joined", "flag", where(all_of(domains <= 1, joined > 0), 1, 0))
    spread = more(
        "spread", "In several domains, joined in each", "flag", where(all_of(domains > 1, joined > 0), 1, 0)
    )
    share = more(
        "share",
        "Share of the message a rank sends",
        "1",
        (size - 1) / size,
        called=f"share sent by {label} ranks",
    )
    axes = more("axes", "Axes in use", "axis", maximum(1, hardware.torus_axes), "only a torus has several")
    hops = more(
        "hops",
        "Hops across the torus",
        "1",
        HALF * axes * size ** (1 / axes),
        "ranks stand in a cube, the farthest half a side away along every axis",
        called=f"hops between {label} ranks",
    )
    times = _gather_times(more, name, links, _Domain(label, inside, domains, bandwidth, axes))
    return _Group(
        words=label,
        size=size,
        inside=inside,
        domains=domains,
        bandwidth=bandwidth,
        joined=joined,
        one=one,
        spread=spread,
        share=share,
        hops=hops,
        gather=times,
        section=rows.section(f"Group: {label}", "ranks that work together, and their links"),
    )


@dataclass(frozen=True)
class _Domain:
    """How a group stands in domains: ranks in one, domains, B/s of a rank, axes of the torus in use."""

    words: str
    inside: Quantity
    domains: Quantity
    bandwidth: Quantity
    axes: Quantity


def _gather_times(rows: Rows, name: str, links: _Links, domain: _Domain) -> _Gather:
    """What a gather, or a scatter, takes inside a domain and between domains."""
    label, inside, domains = domain.words, domain.inside, domain.domains
    latency = links.efficiency.by_user["gather_latency", name]
    reaches = links.efficiency.by_user["gather_bandwidth", name]
    torus = links.hardware.torus > 0
    by_hops = HALF * domain.axes * inside ** (1 / domain.axes) * links.factors["torus_hop"]
    start = rows(
        "start",
        "Fixed time inside a domain",
        "s",
        where(torus, by_hops, latency),
        "of a gather",
        called=f"fixed time in a domain of {label} ranks",
    )
    reached = rows(
        "reached",
        "Link bandwidth reached inside a domain",
        "B/s",
        domain.bandwidth * where(torus, links.factors["torus_bandwidth"], reaches),
    )
    inner = rows(
        "inner",
        "Time per byte inside a domain",
        "s/B",
        where(all_of(inside > 1, reached > 0), (inside - 1) / inside / reached, 0),
        "scattered or gathered once",
        called=f"time per byte inside a domain of {label} ranks",
    )
    outer = rows(
        "outer",
        "Time per byte between domains",
        "s/B",
        where(links.out > 0, (domains - 1) / domains / inside / links.out, 0),
        "each rank passes on its share of the message",
        called=f"time per byte between domains of {label} ranks",
    )
    return _Gather(latency, reaches, start, inner, outer)


_SOURCES = {
    "ring": "NCCL performance notes",
    "one-shot": "custom all-reduce of engines",
    "two-shot": "NVIDIA MultiShot",
    "in-switch": "NVLink SHARP",
    "torus": "TPU scaling book",
    "hierarchical": "inside, between, inside",
    "direct": "NCCL performance notes",
}


def collective(
    name: str, label: str, over: _Group, algorithms: tuple[_Algorithm, ...]
) -> tuple[Collective, Section]:
    """The rows of one collective: its algorithms, their fixed times, their times per byte.

    What the links do not allow has no time.
    """
    names: list[Input] = []
    latencies: list[Quantity] = []
    per_byte: list[Quantity] = []
    for number, algorithm in enumerate(algorithms, 1):
        rows = Rows(f"network.{name}.{algorithm.name.replace('-', '_')}")
        names.append(
            defined(
                f"{rows.prefix}.name",
                f"Algorithm {number}, {label}",
                "1",
                algorithm.name,
                "name of an algorithm, and the factor of its fixed time",
                algorithm.factor.id,
                name="algorithms",
            )
        )
        latency = rows(
            "latency",
            f"Fixed time, {algorithm.name} {label}",
            "s",
            where(algorithm.possible, algorithm.latency, NO_WAY),
            source=_SOURCES[algorithm.name],
        )
        latencies.append(latency)
        per_byte.append(
            rows(
                "per_byte",
                f"Time per byte, {algorithm.name} {label}",
                "s/B",
                where(is_number(latency), algorithm.per_byte, 0),
            )
        )
    usable = count_where(span(latencies), at_least(0))
    unlinked = Quantity(
        f"network.{name}.unlinked",
        f"No way, {label}",
        "flag",
        where(all_of(over.size > 1, usable <= 0), 1, 0),
        "no algorithm has links that join the ranks",
    )
    section = Section(
        f"{label[0].upper()}{label[1:]}",
        (*names, *latencies, *per_byte, unlinked),
        f"over the ranks of {over.words}",
    )
    return Collective(over.size, tuple(names), tuple(latencies), tuple(per_byte), unlinked), section


def all_reduce(tp: _Group, links: _Links) -> tuple[Collective, tuple[Section, ...]]:
    """Sums over the TP ranks that all of them get."""
    factors, hardware, rows = links.factors, links.hardware, Rows("network.all_reduce")
    scale = factors["all_reduce_latency_scale"]
    rows.add(ONE_SHOT_RANKS)
    around = rows(
        "ring_time",
        "Steps of an all-reduce ring",
        "s",
        factors["ring_latency"] + RING_PHASES * (tp.size - 1) * factors["ring_step"],
    )
    twice = rows(
        "share",
        "Share of the message a rank sends in an all-reduce",
        "1",
        RING_PHASES * tp.share,
        called="all-reduce share",
    )
    common = rows.section("All-reduce, common parts", "over the TP ranks")
    between = RING_PHASES * (tp.gather.start + (tp.domains - 1) * factors["network_latency"])
    reached = {
        name: factors[f"{name}_bandwidth"] * tp.bandwidth
        for name in ("ring", "one_shot", "two_shot", "in_switch", "torus")
    }
    algorithms = (
        _Algorithm(
            "ring",
            tp.within(hardware.link_bandwidth > 0),
            scale * around,
            twice / reached["ring"],
            factors["ring_latency"],
        ),
        _Algorithm(
            "one-shot",
            tp.within(hardware.direct > 0, tp.size <= ONE_SHOT_RANKS),
            scale * factors["one_shot_latency"],
            (tp.size - 1) / reached["one_shot"],
            factors["one_shot_latency"],
        ),
        _Algorithm(
            "two-shot",
            tp.within(hardware.direct > 0),
            scale * factors["two_shot_latency"],
            twice / reached["two_shot"],
            factors["two_shot_latency"],
        ),
        _Algorithm(
            "in-switch",
            tp.within(hardware.in_switch > 0),
            scale * factors["in_switch_latency"],
            (tp.size + 1) / tp.size / reached["in_switch"],
            factors["in_switch_latency"],
        ),
        _Algorithm(
            "torus",
            tp.within(hardware.torus > 0),
            RING_PHASES * tp.hops * factors["torus_hop"],
            twice / reached["torus"],
            factors["torus_hop"],
        ),
        _Algorithm(
            "hierarchical",
            tp.across(links.out),
            between,
            RING_PHASES * (tp.gather.inner + tp.gather.outer),
            factors["network_latency"],
        ),
    )
    sums, section = collective("all_reduce", "all-reduce", tp, algorithms)
    return sums, (common, section)


def gather(name: str, label: str, over: _Group, links: _Links) -> tuple[Collective, Section]:
    """An all-gather, or a reduce-scatter, which takes as long."""
    factors, hardware = links.factors, links.hardware
    algorithms = (
        _Algorithm(
            "direct",
            over.within(hardware.direct > 0),
            over.gather.latency,
            over.share / (over.gather.bandwidth * over.bandwidth),
            over.gather.latency,
        ),
        _Algorithm(
            "ring",
            over.within(hardware.link_bandwidth > 0),
            factors["ring_latency"] + (over.size - 1) * factors["ring_step"],
            over.share / (factors["ring_bandwidth"] * over.bandwidth),
            factors["ring_latency"],
        ),
        _Algorithm(
            "torus",
            over.within(hardware.torus > 0),
            over.hops * factors["torus_hop"],
            over.share / (factors["torus_bandwidth"] * over.bandwidth),
            factors["torus_hop"],
        ),
        _Algorithm(
            "hierarchical",
            over.across(links.out),
            over.gather.start + (over.domains - 1) * factors["network_latency"],
            over.gather.inner + over.gather.outer,
            factors["network_latency"],
        ),
    )
    return collective(name, label, over, algorithms)


@dataclass(frozen=True)
class _Exchange:
    """Parts that algorithms of an all-to-all share.

    Args:
        copies: ranks that a token goes to.
        direct: s per byte of the share that stays inside a domain, over direct links.
        inner: s per byte inside domains, over the links there are.
        start: fixed time inside a domain.
        outside: what leaves the domain, against all copies.
    """

    copies: Quantity
    direct: Node
    inner: Node
    start: Quantity
    outside: Quantity
    section: Section


def _per_token(ir: ModelGraph) -> Node:
    """Experts that a token goes through."""
    products = (module.operation for module in ir.modules)
    return next(product.per_token for product in products if isinstance(product, GroupedMatMul))


def inside_and_outside(stage: _Group, links: _Links, per_token: Node, ep: Node) -> _Exchange:
    """What of a message to all ranks of a stage stays inside the domain, and how long that takes.

    A token goes to a rank once, whatever it needs there, and to another domain once: a rank there passes it
    on to the others.
    """
    factors, hardware, rows = links.factors, links.hardware, Rows("network.all_to_all")
    copies = rows(
        "copies",
        "Ranks a token goes to",
        "1",
        stage.size * (1 - (1 - 1 / ep) ** per_token),
        "several experts of a token may stand on one rank",
    )
    away = rows(
        "domains",
        "Other domains a token goes to",
        "1",
        (stage.domains - 1) * (1 - (1 - 1 / stage.domains) ** per_token),
        "once to each, where a rank passes it on",
    )
    inside = rows(
        "inside",
        "Share passed on inside domains",
        "1",
        (stage.inside - 1) / stage.inside,
        "of all copies, those from other domains as well",
        called="share passed on inside domains",
    )
    outside = rows(
        "outside",
        "Sent out of the domain, against all copies",
        "1",
        away / copies,
        called="share sent out of the domain",
    )
    direct = inside / (factors["all_to_all_bandwidth"] * stage.bandwidth)
    around = QUARTER * stage.inside
    across = rows(
        "inner_torus",
        "Time per byte inside the domain, across a torus",
        "s/B",
        where(
            all_of(hardware.torus > 0, stage.joined > 0),
            around / (factors["torus_bandwidth"] * stage.bandwidth),
            0,
        ),
    )
    straight = rows(
        "inner_direct",
        "Time per byte inside the domain, direct",
        "s/B",
        where(all_of(stage.inside > 1, stage.joined > 0, hardware.torus <= 0), direct, 0),
    )
    start = rows(
        "start",
        "Fixed time of an all-to-all inside a domain",
        "s",
        where(hardware.torus > 0, stage.gather.start, factors["all_to_all_latency"]),
    )
    section = rows.section("All-to-all, common parts", "experts are chosen evenly over the ranks")
    return _Exchange(copies, direct, across + straight, start, outside, section)


def all_to_all(
    stage: _Group, links: _Links, per_token: Node, ep: Node
) -> tuple[Collective, Quantity, tuple[Section, ...]]:
    """Every rank of a stage sends every other a part of its own; with the ranks that a token goes to.

    Between domains and inside them the copies move at the same time: the slower of the two counts.
    """
    factors, hardware = links.factors, links.hardware
    parts = inside_and_outside(stage, links, per_token, ep)
    algorithms = (
        _Algorithm(
            "direct",
            stage.within(hardware.direct > 0),
            factors["all_to_all_latency"],
            parts.direct,
            factors["all_to_all_latency"],
        ),
        _Algorithm(
            "ring",
            stage.within(hardware.link_bandwidth > 0),
            factors["ring_latency"] + (stage.size - 1) * factors["ring_step"],
            HALF * (stage.size - 1) / (factors["ring_bandwidth"] * stage.bandwidth),
            factors["ring_latency"],
        ),
        _Algorithm(
            "torus",
            stage.within(hardware.torus > 0),
            stage.hops * factors["torus_hop"],
            QUARTER * stage.size / (factors["torus_bandwidth"] * stage.bandwidth),
            factors["torus_hop"],
        ),
        _Algorithm(
            "hierarchical",
            stage.across(links.out),
            parts.start + factors["network_latency"],
            maximum(parts.inner, parts.outside / links.out),
            factors["network_latency"],
        ),
    )
    exchange, section = collective("all_to_all", "all-to-all", stage, algorithms)
    return exchange, parts.copies, (parts.section, section)


def p2p(
    inputs: Workload, ranks: Ranks, links: _Links
) -> tuple[Quantity, Quantity, Quantity, Quantity, Section]:
    """From a stage, or CP group, to the next: fixed time, time per byte, if out of the domain, if no way."""
    factors, hardware, rows = links.factors, links.hardware, Rows("network.p2p")
    crosses = rows("crosses", "A replica spans domains", "flag", where(ranks.replica > links.domain, 1, 0))
    hop = rows(
        "inside",
        "Bandwidth between stages in a domain",
        "B/s",
        factors["p2p_bandwidth"]
        * links.speed
        * where(hardware.mesh > 0, hardware.pair_bandwidth, hardware.link_bandwidth),
        "in a mesh there is one link to the next stage",
    )
    reached = rows("bandwidth", "Bandwidth between stages", "B/s", where(crosses > 0, links.out, hop))
    latency = rows(
        "latency",
        "Fixed time, stage to stage",
        "s",
        where(crosses > 0, factors["network_latency"], factors["p2p_latency"]),
    )
    per_byte = rows("per_byte", "Time per byte, stage to stage", "s/B", where(reached > 0, 1 / reached, 0))
    no_way = rows(
        "unlinked",
        "No way, stage to stage",
        "flag",
        where(
            all_of((inputs.cp if inputs.devices else maximum(inputs.pp, inputs.cp)) > 1, reached <= 0), 1, 0
        ),
    )
    section = rows.section("Stage to stage", "from one pipeline stage to the next")
    return latency, per_byte, crosses, no_way, section
