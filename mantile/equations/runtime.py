"""What an engine holds beside weights, KV cache and the activations of a step; and of what its share of
memory is.

Sampling of all requests that may run is tried when an engine starts. Outside the framework's own memory lie
the context of the driver, buffers of collectives, and graphs.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import (
    ALL_GRAPHS,
    FIRST_GRAPHS,
    GRAPH_STEP,
    HALF,
    LARGE_CHIP,
    LOGIT_BYTES,
    MOST_CAPTURED,
    ONE_TOKEN,
    SCORE_BYTES,
    TOKENS_PER_STEP,
)
from mantile.equations.efficiency import Efficiency
from mantile.equations.engine import Share
from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import ON, Ranks, Workload
from mantile.equations.plan import Sharding
from mantile.graph.quantity import Node, Quantity, Row, as_node, equal, maximum, minimum, where
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import ALL, STATIC

_SAME_ON = "ampere"  # the generation on which vLLM lets in no more, however large the memory


@dataclass(frozen=True)
class Sampler:
    """Sampling when the engine starts: requests with which it is tried, bytes, and the rows of both."""

    seats: Quantity
    peak: Quantity
    rows: tuple[Row, ...]


def sampler(
    ir: ModelGraph,
    inputs: Workload,
    known: Frameworks,
    efficiency: Efficiency,
    hardware: Hardware,
    tokens: Quantity,
) -> Sampler:
    """Bytes of logits of all requests that may run at once.

    Args:
        tokens: most of a step; no step samples for more requests.
    """
    rows = Rows("runtime")
    large = rows(
        "large",
        "Accelerator against a large one",
        "1",
        where(equal(hardware.generation, _SAME_ON), 0, hardware.memory_visible / LARGE_CHIP),
        "from 1 on more requests run at once; A100 is left out",
    )
    few, many = (
        rows(
            name, f"Requests at once unless it is told{where_}", "request", known.of(seats, inputs.framework)
        )
        for name, where_, seats in (
            ("small_seats", "", known.seats),
            ("large_seats", ", large accelerator", known.large_seats),
        )
    )
    default = rows(
        "default_seats",
        "Requests that run at once unless it is told",
        "request",
        where(large >= 1, many, few),
        "on this accelerator",
    )
    seats = rows(
        "seats",
        "Requests with which sampling is tried",
        "request",
        where(
            inputs.max_requests > 0,
            minimum(tokens / TOKENS_PER_STEP, inputs.max_requests / inputs.attention_dp),
            default,
        ),
        "when the engine starts, on each rank; a step has a token for each",
    )
    peak = rows(
        "sampler",
        "Sampling at the start",
        "B",
        efficiency["sampler_copies"] * seats * TOKENS_PER_STEP * ir.facts["vocabulary"] * LOGIT_BYTES,
        "all columns of the vocabulary, on the rank that samples",
    )
    return Sampler(seats, peak, tuple(rows.rows))


@dataclass(frozen=True)
class Runtime:
    """Memory outside the framework's own.

    Args:
        context: of a rank by itself; `communication` of one that works with others.
        graphs: captured; `on_top` those of them outside the share of memory.
        reserve: all of it.
    """

    context: Quantity
    communication: Quantity
    graphs: Quantity
    on_top: Quantity
    reserve: Quantity


def beside_step(
    rows: Rows,
    ir: ModelGraph,
    efficiency: Efficiency,
    plan: Sharding,
    seats: Quantity,
    length: Quantity,
    tokens: Quantity,
) -> Quantity:
    """Bytes beside the channels of a step: scores that attention writes down, or logits of all its tokens.

    Args:
        seats: requests that may run at once; `length` of one at its end, `tokens` of a step.
    """
    parts = Rows("runtime")
    scores = parts(
        "scores",
        "Scores of attention",
        "B",
        efficiency["scores_held"]
        * (plan.heads if plan.heads is not None else as_node(0))
        * tokens
        / ONE_TOKEN
        * (seats * length / ONE_TOKEN)
        * SCORE_BYTES,
        "of a step against all that the KV cache may hold; 0 with flash attention",
    )
    logits = parts(
        "step_logits",
        "Logits of a step",
        "B",
        efficiency["logits_of_all"] * tokens * ir.facts["vocabulary"] * LOGIT_BYTES,
        "of all its tokens, where the engine has room for them",
    )
    rows.add(*parts.rows)
    return rows(
        "beside_step",
        "Scores or logits of a step",
        "B",
        maximum(scores, logits),
        "one after the other",
    )


def runtime(
    rows: Rows,
    inputs: Workload,
    ranks: Ranks,
    efficiency: Efficiency,
    plan: Sharding,
    hardware: Hardware,
    seats: Quantity,
) -> Runtime:
    """The parts of the runtime.

    Args:
        rows: get what it comes to; the parts stand before it.
        seats: requests that may run at once.
    """
    parts = Rows("runtime")
    context = parts("context", "Context of a rank", "B", efficiency["runtime_reserve"])
    together = parts(
        "together", "Ranks work together", "flag", where(ranks.stage > 1, 1, 0), "within a pipeline stage"
    )
    communication = parts(
        "communication",
        "Buffers of collectives",
        "B",
        together * (efficiency["communication_reserve"] + hardware.in_switch * efficiency["switch_reserve"]),
        "more where the switch reduces",
    )
    largest = parts(
        "largest_graph",
        "Requests of the largest graph",
        "request",
        minimum(seats + seats, MOST_CAPTURED),
        "twice as many as may run at once",
    )
    sizes = parts(
        "graph_sizes",
        "Sizes of batches with a graph",
        "number",
        FIRST_GRAPHS + (largest + minimum(largest, HALF * MOST_CAPTURED)) * HALF / GRAPH_STEP,
        "1, 2, 4, every 8th, and in the larger half every 16th",
    )
    captured: Node = (
        plan.stages.fullest * efficiency["graph_memory"] * (1 + together) * minimum(1, sizes / ALL_GRAPHS)
    )
    if inputs.enforce_eager is not None:
        captured = where(equal(inputs.enforce_eager, ON), 0, captured)
    graphs = parts(
        "graphs",
        "Graphs",
        "B",
        captured,
        "of the layers of the fullest stage; collectives are captured as well",
    )
    on_top = parts(
        "graphs_on_top", "Graphs outside the share of memory", "B", (1 - efficiency["graphs_inside"]) * graphs
    )
    rows.add(*parts.rows)
    reserve = rows("reserve", "Runtime", "B", context + communication + graphs)
    return Runtime(context, communication, graphs, on_top, reserve)


def room_of(
    rows: Rows,
    told: Share,
    hardware: Hardware,
    weights: Quantity,
    activations: Quantity,
    held: Runtime,
) -> Quantity:
    """Bytes that an engine gives to requests, below 0 where even the rest has no room.

    Args:
        told: the share of memory that it is told, and of what.
    """
    parts, taken = Rows("runtime"), told.part
    seen: Node = hardware.memory_visible
    if told.taken is not None:
        seen = parts("seen", "Memory that others leave", "B", maximum(0, seen - told.taken))
    of_all_memory: Node = taken * hardware.memory_visible
    if told.taken is not None:
        of_all_memory = of_all_memory - told.taken
    of_all = parts(
        "room_of_all",
        "Room of a share of all memory",
        "B",
        of_all_memory - weights - activations - held.reserve + held.on_top,
        "for all that the engine needs",
    )
    static = parts(
        "room_of_free",
        "Room of a share of free memory",
        "B",
        taken * (seen - held.context - held.communication) - weights,
        "for weights and KV cache; activations and graphs lie in the rest",
    )
    left = parts(
        "room_of_left",
        "Room of a share of what is left",
        "B",
        taken * (seen - weights - activations - held.reserve),
        "for the KV cache alone",
    )
    other = parts(
        "room_otherwise",
        "Room of a share of part of the memory",
        "B",
        where(equal(told.of, STATIC), static, left),
    )
    rows.add(*parts.rows)
    return rows(
        "room",
        "Room beside all else",
        "B",
        where(equal(told.of, ALL), of_all, other),
        "by what the framework's share is of",
    )
