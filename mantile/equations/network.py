"""What a message costs: every algorithm of every collective as a fixed time and a time per byte, on the links there are.

A collective takes latency + bytes × time per byte; a pass works all algorithms out for its message and takes the cheapest.
Forms: NCCL's tuner and performance notes for rings, in-switch sums and hierarchies; the TPU scaling book for tori; one read
of all peers (one-shot) and scatter-and-gather at once (two-shot) as TensorRT-LLM and vLLM do it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, NEVER, NO_LINK, QUARTER, RANKS_TO_ACCELERATORS, RING_PHASES
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.plan import scope
from mantile.graph.quantity import Input, Node, Quantity, Section, all_of, maximum, minimum, round_up, where
from mantile.ir.modules import GroupedMatMul, ModelGraph

ONE_SHOT_RANKS = Input(
    "network.one_shot_ranks",
    "Most ranks of a one-shot all-reduce",
    "rank",
    8,
    "largest group for which engines have such a kernel",
    "assumed: one node",
    "assumed",
    shared=True,
    minimum=2,
    maximum=1024,
)


@dataclass(frozen=True)
class Collective:
    """One collective over one group: names of its algorithms, their fixed times in s and times per byte in s/B, a row each."""

    label: str
    ranks: Node
    names: tuple[Input, ...]
    latencies: tuple[Quantity, ...]
    per_byte: tuple[Quantity, ...]


@dataclass(frozen=True)
class Network:
    """Costs of messages of one deployment.

    Args:
        all_reduce: over the TP ranks.
        sequence: an all-gather or a reduce-scatter over the TP ranks, as sequence parallelism needs it.
        gather: the same over all ranks of a stage; None in a model without FFNs.
        all_to_all: over the ranks of a stage; None in a model without experts.
        p2p_latency, p2p_per_byte: from stage to stage.
        out: B/s of one accelerator out of its domain.
        tp_domains, stage_domains: domains that the TP ranks, and those of a stage, span.
    """

    all_reduce: Collective
    sequence: Collective
    gather: Collective | None
    all_to_all: Collective | None
    p2p_latency: Quantity
    p2p_per_byte: Quantity
    out: Quantity
    tp_domains: Quantity
    stage_domains: Quantity
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Group:
    """Ranks that work together, as the algorithms see them.

    Args:
        inside: those of one domain; `domains` that they span; `bandwidth` in B/s that each has to the others in its domain.
        share: (n - 1) / n.
        steps: n - 1.
        hops: across a torus.
        latency, gather: fixed time and share of the links of a gather; `start` the fixed time inside a domain.
        inner, outer: s per byte of the message inside and between domains, scattered or gathered once.
    """

    words: str
    size: Node
    inside: Quantity
    domains: Quantity
    bandwidth: Quantity
    share: Quantity
    hops: Quantity
    latency: Quantity
    gather: Quantity
    start: Quantity
    inner: Quantity
    outer: Quantity

    def within(self, *more: Node) -> Node:
        """All ranks stand in one domain, and more."""
        return all_of(self.domains <= 1, *more) if more else self.domains <= 1


def network(
    inputs: Workload, ranks: Ranks, hardware: Hardware, reached: Efficiency, ir: ModelGraph
) -> Network:
    """The rows of the Network sheet."""
    factor = reached.factors
    wire = Quantity(
        "network.out",
        "Network bandwidth reached",
        "B/s",
        factor["network_bandwidth"] * hardware.scale_out_bandwidth,
        note="of one accelerator out of its domain",
    )
    sections: list[Section] = [Section("Network", (wire,), "between domains")]
    tp = _group("tp", "TP", inputs.tp, hardware, reached, wire, sections)
    spread = any(scope(module) != "attention" for module in ir.modules)
    stage = _group("stage", "stage", ranks.stage, hardware, reached, wire, sections, shown=spread)

    def collective(
        identifier: str, label: str, over: _Group, forms: list[tuple[str, Node, Node, Node]]
    ) -> Collective:
        """Rows of one collective from (algorithm, whether it can be used, fixed time, time per byte)."""
        names, fixed, slopes = [], [], []
        for number, (name, possible, latency, slope) in enumerate(forms, 1):
            key, words = f"network.{identifier}.{name.replace('-', '_')}", f"{name} {label}"
            names.append(
                Input(
                    f"{key}.name",
                    f"Algorithm {number}, {label}",
                    "1",
                    name,
                    "name of an algorithm",
                    "definition",
                    "defined",
                    shared=True,
                    fixed=True,
                    name="algorithms",
                )
            )
            fixed.append(
                Quantity(
                    f"{key}.latency",
                    f"Fixed time, {words}",
                    "s",
                    where(possible, latency, NEVER),
                    source=_SOURCES[name],
                )
            )
            slopes.append(
                Quantity(
                    f"{key}.per_byte", f"Time per byte, {words}", "s/B", where(fixed[-1] < NEVER, slope, 0)
                )
            )
        title = f"{label[0].upper()}{label[1:]}"
        sections.append(
            Section(
                title,
                (*names, *fixed, *slopes),
                f"over the ranks of {over.words}; what cannot be used takes for ever",
            )
        )
        return Collective(label, over.size, tuple(names), tuple(fixed), tuple(slopes))

    scale = factor["all_reduce_latency_scale"]
    around = Quantity(
        "network.all_reduce.ring_time",
        "Steps of an all-reduce ring",
        "s",
        factor["ring_latency"] + RING_PHASES * (inputs.tp - 1) * factor["ring_step"],
        note="ring start + 2 phases × (ranks − 1) × ring step",
    )
    twice = Quantity(
        "network.all_reduce.share",
        "Share of the message a rank sends in an all-reduce",
        "1",
        RING_PHASES * tp.share,
        note="2 phases × (ranks − 1) ÷ ranks",
        name="all-reduce share",
    )
    sections.append(Section("All-reduce, common parts", (ONE_SHOT_RANKS, around, twice), "over the TP ranks"))
    linked = hardware.link_bandwidth > 0
    all_reduce = collective(
        "all_reduce",
        "all-reduce",
        tp,
        [
            ("ring", tp.within(linked), scale * around, twice / (factor["ring_bandwidth"] * tp.bandwidth)),
            (
                "one-shot",
                tp.within(hardware.direct > 0, inputs.tp <= ONE_SHOT_RANKS),
                scale * factor["one_shot_latency"],
                (inputs.tp - 1) / (factor["one_shot_bandwidth"] * tp.bandwidth),
            ),
            (
                "two-shot",
                tp.within(hardware.direct > 0),
                scale * factor["two_shot_latency"],
                twice / (factor["two_shot_bandwidth"] * tp.bandwidth),
            ),
            (
                "in-switch",
                tp.within(hardware.in_switch > 0),
                scale * factor["in_switch_latency"],
                (inputs.tp + 1) / inputs.tp / (factor["in_switch_bandwidth"] * tp.bandwidth),
            ),
            (
                "torus",
                tp.within(hardware.torus > 0),
                RING_PHASES * tp.hops * factor["torus_hop"],
                twice / (factor["torus_bandwidth"] * tp.bandwidth),
            ),
            (
                "hierarchical",
                all_of(tp.domains > 1, wire > 0),
                RING_PHASES * (tp.start + (tp.domains - 1) * factor["network_latency"]),
                RING_PHASES * (tp.inner + tp.outer),
            ),
        ],
    )

    def gather(identifier: str, label: str, each: _Group) -> Collective:
        return collective(
            identifier,
            label,
            each,
            [
                (
                    "direct",
                    each.within(hardware.direct > 0),
                    each.latency,
                    each.share / (each.gather * each.bandwidth),
                ),
                (
                    "ring",
                    each.within(linked),
                    factor["ring_latency"] + (each.size - 1) * factor["ring_step"],
                    each.share / (factor["ring_bandwidth"] * each.bandwidth),
                ),
                (
                    "torus",
                    each.within(hardware.torus > 0),
                    each.hops * factor["torus_hop"],
                    each.share / (factor["torus_bandwidth"] * each.bandwidth),
                ),
                (
                    "hierarchical",
                    all_of(each.domains > 1, wire > 0),
                    each.start + (each.domains - 1) * factor["network_latency"],
                    each.inner + each.outer,
                ),
            ],
        )

    sequence = gather("sequence", "gather over TP", tp)
    gathered = gather("gather", "gather over a stage", stage) if spread else None
    exchange = None
    if GroupedMatMul in ir.operations():
        inside = Quantity(
            "network.all_to_all.inside",
            "Share sent inside the domain",
            "1",
            (stage.inside - 1) / ranks.stage,
            note="(ranks of the stage in a domain − 1) ÷ ranks of the stage",
            name="share sent inside the domain",
        )
        outside = Quantity(
            "network.all_to_all.outside",
            "Share sent out of the domain",
            "1",
            (ranks.stage - stage.inside) / ranks.stage,
            name="share sent out of the domain",
        )
        direct = inside / (factor["all_to_all_bandwidth"] * stage.bandwidth)
        around_torus = (
            QUARTER
            * stage.inside
            * stage.inside
            / ranks.stage
            / (factor["torus_bandwidth"] * stage.bandwidth)
        )
        torus = Quantity(
            "network.all_to_all.inner_torus",
            "Time per byte inside the domain, across a torus",
            "s/B",
            where(hardware.torus > 0, around_torus, 0),
            note="as below, for the share that stays inside; 0 elsewhere",
        )
        straight = Quantity(
            "network.all_to_all.inner_direct",
            "Time per byte inside the domain, direct",
            "s/B",
            where(all_of(stage.inside > 1, hardware.torus <= 0), direct, 0),
            note="0 across a torus, and with one rank in a domain",
        )
        begin = Quantity(
            "network.all_to_all.start",
            "Fixed time of an all-to-all inside a domain",
            "s",
            where(hardware.torus > 0, stage.start, factor["all_to_all_latency"]),
        )
        sections.append(
            Section(
                "All-to-all, common parts",
                (inside, outside, torus, straight, begin),
                "experts are chosen evenly over the ranks",
            )
        )
        exchange = collective(
            "all_to_all",
            "all-to-all",
            stage,
            [
                ("direct", stage.within(hardware.direct > 0), factor["all_to_all_latency"], direct),
                (
                    "ring",
                    stage.within(linked),
                    factor["ring_latency"] + (ranks.stage - 1) * factor["ring_step"],
                    HALF * (ranks.stage - 1) / (factor["ring_bandwidth"] * stage.bandwidth),
                ),
                (
                    "torus",
                    stage.within(hardware.torus > 0),
                    stage.hops * factor["torus_hop"],
                    QUARTER * ranks.stage / (factor["torus_bandwidth"] * stage.bandwidth),
                ),
                (
                    "hierarchical",
                    all_of(stage.domains > 1, wire > 0),
                    begin + factor["network_latency"],
                    torus + straight + outside / wire,
                ),
            ],
        )
    crosses = Quantity(
        "network.p2p.crosses",
        "A replica spans domains",
        "flag",
        where(ranks.replica > _domain(hardware), 1, 0),
        note="1 if so",
    )
    hop = Quantity(
        "network.p2p.inside",
        "Bandwidth between stages in a domain",
        "B/s",
        factor["p2p_bandwidth"] * where(hardware.mesh > 0, hardware.pair_bandwidth, hardware.link_bandwidth),
        note="one link of a mesh, else all links",
    )
    reach = Quantity(
        "network.p2p.bandwidth",
        "Bandwidth between stages",
        "B/s",
        where(crosses > 0, wire, hop),
        note="the network's where a replica spans domains",
    )
    latency = Quantity(
        "network.p2p.latency",
        "Fixed time, stage to stage",
        "s",
        where(crosses > 0, factor["network_latency"], factor["p2p_latency"]),
    )
    slope = Quantity(
        "network.p2p.per_byte",
        "Time per byte, stage to stage",
        "s/B",
        where(reach > 0, 1 / reach, NO_LINK),
        note="1 ÷ bandwidth between stages",
    )
    sections.append(
        Section(
            "Stage to stage", (crosses, hop, reach, latency, slope), "from one pipeline stage to the next"
        )
    )
    return Network(
        all_reduce,
        sequence,
        gathered,
        exchange,
        latency,
        slope,
        wire,
        tp.domains,
        stage.domains,
        tuple(sections),
    )


_SOURCES = {
    "ring": "NCCL performance notes",
    "one-shot": "custom all-reduce of engines",
    "two-shot": "NVIDIA MultiShot",
    "in-switch": "NVLink SHARP",
    "torus": "TPU scaling book",
    "hierarchical": "inside, between, inside",
    "direct": "NCCL performance notes",
}


def _domain(hardware: Hardware) -> Node:
    return hardware.system_accelerators / RANKS_TO_ACCELERATORS


def _group(
    name: str,
    words: str,
    size: Node,
    hardware: Hardware,
    reached: Efficiency,
    wire: Quantity,
    sections: list[Section],
    shown: bool = True,
) -> _Group:
    """The rows of a group of ranks."""

    def row(what: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        return Quantity(
            f"network.{name}.{what}",
            f"{label}, {words}",
            unit,
            body,
            note=note,
            name=label[0].lower() + label[1:],
        )

    latency, bandwidth = reached.by_user["gather_latency", name], reached.by_user["gather_bandwidth", name]
    inside = row("inside", "Ranks in a domain", "rank", minimum(size, _domain(hardware)))
    domains = row(
        "domains",
        "Domains spanned",
        "domain",
        round_up(size / _domain(hardware)),
        "ranks ÷ accelerators in a domain, rounded up",
    )
    width = row(
        "bandwidth",
        "Link bandwidth of a rank",
        "B/s",
        where(hardware.mesh > 0, maximum(1, inside - 1) * hardware.pair_bandwidth, hardware.link_bandwidth),
        "in a mesh one link to each of the others, else all its links",
    )
    share = row("share", "Share of the message a rank sends", "1", (size - 1) / size, "(ranks − 1) ÷ ranks")
    axes = row("axes", "Axes in use", "axis", maximum(1, hardware.torus_axes), "of a torus; 1 elsewhere")
    hops = row(
        "hops",
        "Hops across the torus",
        "1",
        HALF * axes * size ** (1 / axes),
        "half a side along every axis; ranks stand in a cube",
    )
    torus = hardware.torus > 0
    start = row(
        "start",
        "Fixed time inside a domain",
        "s",
        where(torus, HALF * axes * inside ** (1 / axes) * reached.factors["torus_hop"], latency),
        "of a gather; across a torus hop by hop",
    )
    rate = row(
        "reached",
        "Link bandwidth reached inside a domain",
        "B/s",
        width * where(torus, reached.factors["torus_bandwidth"], bandwidth),
    )
    inner = row(
        "inner",
        "Time per byte inside a domain",
        "s/B",
        where(inside > 1, (inside - 1) / inside / rate, 0),
        "scattered or gathered once",
    )
    outer = row(
        "outer",
        "Time per byte between domains",
        "s/B",
        where(wire > 0, (domains - 1) / domains / inside / wire, 0),
        "each rank passes on its share of the message",
    )
    every = (
        (width, share, axes, hops, start, rate, inner, outer) if shown else ()
    )  # nothing is spread over a stage without FFNs
    sections.append(
        Section(f"Group: {words}", (inside, domains, *every), "ranks that work together, and their links")
    )
    return _Group(words, size, inside, domains, width, share, hops, latency, bandwidth, start, inner, outer)
