"""Machines of equal accelerators and the links between them, as Layers and `estimate --plan` draw them.

A domain is what the links of a system join: a server, a rack, or machines side by side. What a pass sends
goes over the links inside a domain, or over the network between domains.

    id behind "topology.<scenario>."            function
    ------------------------------------------  ------------------
    .ranks .stage .stages .inside .outside      topology.traffic
    .transfer                                   topology.transferred
    .count.<n> .first.<n> .last.<n>             topology.domains
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.constant import RANKS_TO_ACCELERATORS
from mantile.equations.display import converted, in_unit
from mantile.equations.forward import Pass
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Named,
    Node,
    Quantity,
    all_of,
    as_node,
    choose,
    floor,
    is_number,
    join,
    maximum,
    minimum,
    remainder,
    round_up,
    rounded,
    sum_of,
    text,
    where,
)

BUSIEST, IN_USE, NOT_USED = "busiest", "in use", "not used"
DOMAINS_SHOWN = 6
_OF_RANKS = ("all_reduce", "inner_reduce", "sequence")
_SHARES = "_shares"  # of decode CP, among the TP ranks too


@dataclass(frozen=True)
class Traffic:
    """Milliseconds of the messages of a pass.

    Args:
        ranks: between TP ranks; `stage` between the other ranks of a stage; `stages` from stage to stage.
        inside, outside: of these, over the links inside domains and over the network between them.
    """

    ranks: Quantity
    stage: Quantity
    stages: Quantity
    inside: Quantity
    outside: Quantity


@dataclass(frozen=True)
class Domain:
    """A domain: accelerators of it that are in use, and the stages of its first and its last one."""

    count: Quantity
    first: Quantity
    last: Quantity


def traffic(rows: Equations, workers: Workers, work: Pass, prefix: str) -> Traffic:
    """How long a pass sends between which ranks, and over which links.

    Args:
        prefix: what ids begin with.
    """
    kinds: dict[str, list[Node]] = {"ranks": [], "stage": [], "stages": []}
    for block in work.blocks:
        if block.network:
            of_ranks = block.id in _OF_RANKS or block.id.endswith(_SHARES)
            kind = "stages" if block.id == "p2p" else "ranks" if of_ranks else "stage"
            kinds[kind].append(block.time)
    labels = {
        "ranks": "Messages between TP ranks",
        "stage": "Messages between ranks of a stage",
        "stages": "Messages from stage to stage",
    }
    ranks, stage, stages = (
        _time(prefix, kind, labels[kind], sum_of(times) if times else as_node(0))
        for kind, times in kinds.items()
    )
    network = f"{workers.prefix}network"
    crossing = ((ranks, rows[f"{network}.tp.domains"] > 1), (stage, rows[f"{network}.stage.domains"] > 1))
    out = [where(crosses, time, 0) for time, crosses in crossing]
    own = [where(crosses, 0, time) for time, crosses in crossing]
    crosses = rows[f"{network}.p2p.crosses"]
    return Traffic(
        ranks=ranks,
        stage=stage,
        stages=stages,
        inside=_row(
            prefix, "inside", "Messages inside domains", "ms", sum_of([*own, (1 - crosses) * stages])
        ),
        outside=_row(prefix, "outside", "Messages between domains", "ms", sum_of([*out, crosses * stages])),
    )


def transferred(apart: Node, time: Node, prefix: str) -> Quantity:
    """Milliseconds in which the KV cache of a prompt goes to decode workers; 0 where nothing is handed over.

    Args:
        apart: whether prefill and decode workers are apart; `time` seconds, or a word where there is no way.
        prefix: what the id begins with.
    """
    body = where(all_of(apart > 0, is_number(time)), converted(time, "s", "ms"), 0)
    return _row(prefix, "transfer", "KV cache to decode workers", "ms", body)


def domains(workers: Workers, numbers: Sequence[Node], prefix: str) -> list[Domain]:
    """Domains by number: accelerators in use, and the stages of the first and the last of them.

    Args:
        numbers: of domains, from 0; `prefix` what ids begin with.
    """
    ranks, size = workers.ranks, workers.rows["hardware.accelerators"]
    in_use = ranks.deployment / RANKS_TO_ACCELERATORS
    found = []
    for place, number in enumerate(numbers):
        count = _row(
            prefix,
            f"count.{place}",
            f"Accelerators of domain {place}",
            "number",
            minimum(size, maximum(0, in_use - number * size)),
        )
        first, last = (
            _row(
                prefix,
                f"{name}.{place}",
                f"Stage of the {name} accelerator of domain {place}",
                "number",
                floor(remainder(number * size + at, ranks.replica) / ranks.stage),
            )
            for name, at in (("first", as_node(0)), ("last", maximum(0, count - 1)))
        )
        found.append(Domain(count, first, last))
    return found


def domains_told(workers: Workers) -> Node:
    """How many domains of which system are in use, in words."""
    count = round_up(workers.ranks.deployment / RANKS_TO_ACCELERATORS / workers.rows["hardware.accelerators"])
    return join(text(count), " in use, ", workers.rows["hardware.system"])


def accelerators_told(workers: Workers) -> Node:
    """What an accelerator is, and how full its memory, in words."""
    of = workers.rows
    return join(
        of["hardware.name"],
        " · ",
        text(in_unit(of["hardware.memory_bandwidth"], "GB/s")),
        " GB/s · ",
        rounded(in_unit(of["memory.used"], "GB"), 1),
        " of ",
        rounded(in_unit(of["hardware.memory_capacity"], "GB"), 1),
        " GB",
    )


def links_told(rows: Equations, workers: Workers) -> tuple[Node, Node]:
    """The links inside a domain, and the network between domains, with GB/s of an accelerator."""
    of, out = workers.rows, rows[f"{workers.prefix}network.out"]
    inside, outside = of["hardware.link_bandwidth"], in_unit(out, "GB/s")
    return (
        where(
            inside > 0,
            join(of["hardware.link"], " · ", _rate(in_unit(inside, "GB/s"))),
            "no link between them",
        ),
        where(out > 0, join("network · ", _rate(outside)), "no network"),
    )


def transfer_told(bandwidth: Named, network: Node) -> Node:
    """The way of the KV cache to decode workers, with GB/s."""
    rate = _rate(in_unit(bandwidth, "GB/s"))
    by_network = where(all_of(bandwidth > 0, network >= bandwidth), 1, 0)
    ways = (join("by ports · ", rate), join("by network · ", rate))
    return choose(1 + where(bandwidth > 0, 1, 0) + by_network, "no way", *ways)


def state(time: Node, times: Sequence[Node]) -> Node:
    """Whether a link is the busiest, in use or not, in a word.

    Args:
        times: of all links.
    """
    busiest = where(all_of(time > 0, time >= maximum(*times)), 1, 0)
    return choose(1 + where(time > 0, 1, 0) + busiest, NOT_USED, IN_USE, BUSIEST)


def finding(found: Traffic) -> Node:
    """Which links a pass keeps busiest, in words."""
    sends = where(maximum(found.inside, found.outside) > 0, 1, 0)
    words = (
        "no accelerator sends anything",
        "the links inside domains are busiest",
        "the network between domains is busiest",
    )
    return join("Topology: ", choose(1 + sends + where(found.outside > found.inside, 1, 0), *words))


def _rate(figure: Node) -> Node:
    return join(rounded(figure, 2), " GB/s")


def _time(prefix: str, name: str, label: str, body: Node) -> Quantity:
    return _row(prefix, name, label, "ms", converted(body, "s", "ms"))


def _row(prefix: str, name: str, label: str, unit: str, body: Node) -> Quantity:
    return Quantity(f"{prefix}.{name}", label, unit, body)
