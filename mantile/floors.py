"""What no estimate may beat: the plain roofline of the whole model, written apart from the equations.

Every weight is read once and every FLOP runs at the datasheet peak; no launch, no message, no wait. Nothing
here comes from `mantile.equations`: the architecture's own dimensions go in, two times come out.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    defined,
    maximum,
    minimum,
    span,
    sum_range,
    where,
)


def _own(name: str, label: str, unit: str, value: float, called: str) -> Input:
    return defined(f"floor.{name}", label, unit, value, called, name=called)


PER_WEIGHT = _own("flops_per_weight", "Floor: FLOPs per weight and token", "FLOP/token", 2, "2 FLOPs")
PER_PAIR = _own("flops_per_pair", "Floor: FLOPs per channel, query and key", "FLOP/pair", 2, "2 FLOPs")
ONE_TOKEN = _own("one_token", "Floor: tokens of a step", "token/request", 1, "one token")
HALF = _own("half", "Floor: half", "1", 0.5, "half")


@dataclass(frozen=True)
class Weights:
    """Matrices of one data type: parameters every token is multiplied with, and bytes of each parameter."""

    name: str
    parameters: Node
    bytes: Node


@dataclass(frozen=True, eq=False)
class Core:
    """Attention of some layers.

    Args:
        query: channels of queries and results over all heads; None where only the cache counts.
        kept: channels kept per token.
        window: how far it looks; None, or a figure that is 0, without a limit.
    """

    name: str
    layers: Node
    query: Node | None
    kept: Node
    window: Node | None


@dataclass(frozen=True)
class Machine:
    """What a phase runs on: a rank's best peak, FLOP/s, its bandwidth, B/s, the ranks that work at once."""

    peak: Node
    bandwidth: Node
    ranks: Node


@dataclass(frozen=True)
class Dimensions:
    """What a floor is made of: the model, the machines of both phases, and the workload.

    Args:
        head: the LM head, which one token of a prompt is multiplied with.
        kv_bytes: B per channel and token of the KV cache.
        prompt_tokens: of a prompt, those that no cache holds.
        step_tokens: of a request that a decode step gives; None where it is one.
    """

    weights: tuple[Weights, ...]
    head: Weights
    cores: tuple[Core, ...]
    kv_bytes: Node
    prefill: Machine
    decode: Machine
    prompts: Node
    prompt_tokens: Node
    input_tokens: Node
    output_tokens: Node
    decode_requests: Node
    step_tokens: Node | None = None


@dataclass(frozen=True)
class Floors:
    """Lower bounds in seconds."""

    ttft: Quantity
    tpot: Quantity
    section: Section


def floors(dimensions: Dimensions) -> Floors:
    """Lower bounds of TTFT and TPOT.

    Returns:
        TTFT: the prompt's FLOPs, or the bytes of all weights a token needs, over all ranks of a replica.
        TPOT: those weights and the KV cache of the batch, or the FLOPs of one token each, over the ranks of a
        stage: stages of a pipeline work one after the other on a token.
    """
    rows = _Rows()
    model = _weights(rows, dimensions)
    prompt = ttft(rows, dimensions, model)
    token = tpot(rows, dimensions, model)
    constants = (PER_WEIGHT, PER_PAIR, ONE_TOKEN, HALF)
    return Floors(
        ttft=prompt,
        tpot=token,
        section=Section(
            "Independent floor",
            (*constants, *rows.rows),
            "plain roofline: no estimate may be below",
            Section.SUBTOTAL,
        ),
    )


class _Rows:
    """The rows of the floor, in order."""

    def __init__(self) -> None:
        self.rows: list[Quantity] = []

    def __call__(
        self, name: str, label: str, unit: str, body: Node, note: str = "", called: str = ""
    ) -> Quantity:
        row = Quantity(f"floor.{name}", f"Floor: {label}", unit, body, note=note, name=called or label)
        self.rows.append(row)
        return row


@dataclass(frozen=True)
class _Model:
    """Parameters that a token is multiplied with, those of the LM head, and bytes of all of them."""

    layers: Quantity
    head: Quantity
    bytes: Quantity


def _weights(rows: _Rows, dimensions: Dimensions) -> _Model:
    """Weights that a token needs."""
    parameters = [
        rows(f"weights.{tensor.name}", f"weights per token, {tensor.name}", "parameter", tensor.parameters)
        for tensor in dimensions.weights
    ]
    layers = rows(
        "layer_weights",
        "weights a token is multiplied with",
        "parameter",
        sum_range(span(parameters)),
        called="weights per token",
    )
    sizes = [
        rows(f"bytes.{tensor.name}", f"bytes of weights, {tensor.name}", "B", size * tensor.bytes)
        for tensor, size in zip(dimensions.weights, parameters, strict=True)
    ]
    head = rows("head_weights", "weights of the LM head", "parameter", dimensions.head.parameters)
    of_layers = rows("layer_bytes", "bytes of weights a token needs", "B", sum_range(span(sizes)))
    total = rows(
        "bytes",
        "bytes of these and the LM head",
        "B",
        of_layers + head * dimensions.head.bytes,
        called="bytes of weights",
    )
    return _Model(layers=layers, head=head, bytes=total)


def _reach(rows: _Rows, core: Core, phase: str, label: str, length: Node) -> Quantity:
    """Tokens that a token of some layers attends to: the length, at most the window."""
    body = length if core.window is None else where(core.window > 0, minimum(core.window, length), length)
    return rows(
        f"{phase}_reach.{core.name}",
        f"reach in {label}, {core.name}",
        "token/request",
        body,
        called="reach",
    )


def _cells(rows: _Rows, machine: Machine, phase: str, label: str) -> Machine:
    """The machine with cells of their own for what is the best of several devices."""

    def cell(name: str, words: str, unit: str, body: Node) -> Node:
        named = isinstance(body, Input | Quantity)
        return body if named else rows(f"{phase}_{name}", f"{words}, {label}", unit, body, "of any device")

    return Machine(
        cell("peak", "best peak", "FLOP/s", machine.peak),
        cell("bandwidth", "best memory bandwidth", "B/s", machine.bandwidth),
        cell("ranks", "ranks at once", "rank", machine.ranks),
    )


def ttft(rows: _Rows, dimensions: Dimensions, model: _Model) -> Quantity:
    """Seconds below which no first token can be."""
    prompt = rows(
        "prompt_tokens",
        "tokens to prefill",
        "token",
        dimensions.prompts * dimensions.prompt_tokens,
        called="prompt tokens",
    )
    reaches = [
        (core, core.query, _reach(rows, core, "prompt", "the prompt", dimensions.prompt_tokens))
        for core in dimensions.cores
        if core.query is not None
    ]
    pairs = [
        rows(
            f"attention_flops.{core.name}",
            f"attention FLOPs of the prompt, {core.name}",
            "FLOP",
            HALF * PER_PAIR * prompt * reach * query * core.layers,
            "a token attends to those before it: half of them in the mean",
        )
        for core, query, reach in reaches
    ]
    products = PER_WEIGHT * prompt * model.layers
    flops = rows(
        "prompt_flops",
        "FLOPs of the prompt",
        "FLOP",
        products + sum_range(span(pairs)) if pairs else products,
    )
    machine = _cells(rows, dimensions.prefill, "prompt", "the prompt")
    return rows(
        "ttft",
        "TTFT",
        "s",
        maximum(flops / machine.peak, model.bytes / machine.bandwidth) / machine.ranks,
        "all ranks of a replica work at once",
        "floor of TTFT",
    )


def tpot(rows: _Rows, dimensions: Dimensions, model: _Model) -> Quantity:
    """Seconds below which no further token can be."""
    length = rows(
        "decode_length",
        "mean length in decode",
        "token/request",
        dimensions.input_tokens + HALF * dimensions.output_tokens,
    )
    reaches = [(core, _reach(rows, core, "decode", "decode", length)) for core in dimensions.cores]
    caches = [
        rows(
            f"kv_bytes.{core.name}",
            f"KV cache read in a step, {core.name}",
            "B",
            dimensions.decode_requests * reach * core.kept * dimensions.kv_bytes * core.layers,
        )
        for core, reach in reaches
    ]
    flops = rows(
        "decode_flops",
        "FLOPs of a step",
        "FLOP",
        PER_WEIGHT * dimensions.decode_requests * ONE_TOKEN * (model.layers + model.head),
    )
    moved: Node = model.bytes + sum_range(span(caches)) if caches else model.bytes
    machine = _cells(rows, dimensions.decode, "decode", "decode")
    step = maximum(flops / machine.peak, moved / machine.bandwidth) / machine.ranks
    if dimensions.step_tokens is not None:
        step = rows("step", "decode step", "s", step) * (ONE_TOKEN / dimensions.step_tokens)
    return rows(
        "tpot",
        "TPOT",
        "s",
        step,
        "the ranks of a stage work at once, stages one after the other",
        "floor of TPOT",
    )
