"""What no estimate may beat: the plain roofline of the whole model, written apart from the equations.

Every weight is read once and every FLOP runs at the datasheet peak; no launch, no message, no wait. Nothing here comes
from `mantile.equations`: the architecture's own dimensions go in, two times come out.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Input, Node, Quantity, Section, maximum, minimum, span, sum_range, where


def _own(name: str, label: str, unit: str, value: float, note: str) -> Input:
    return Input(
        f"floor.{name}", label, unit, value, note, "definition", "defined", shared=True, fixed=True, name=note
    )


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
    """Attention of some layers: channels of queries and results over all heads, channels kept per token, how far it looks.

    `window` is None without a limit, and 0 where there is none. `query` is None where only the cache counts.
    """

    name: str
    layers: Node
    query: Node | None
    kept: Node
    window: Node | None


@dataclass(frozen=True)
class Machine:
    """What a phase runs on: one rank's best peak in FLOP/s and bandwidth in B/s, and the ranks that can work on it at once."""

    peak: Node
    bandwidth: Node
    ranks: Node


@dataclass(frozen=True)
class Dimensions:
    """What a floor is made of: the model, B per channel and token of the KV cache, the machines of both phases, and the workload.
    `head` are the parameters of the LM head, which one token of a prompt is multiplied with."""

    weights: tuple[Weights, ...]
    head: Weights
    cores: tuple[Core, ...]
    kv_bytes: Node
    prefill: Machine
    decode: Machine
    prompts: Node
    input_tokens: Node
    output_tokens: Node
    decode_requests: Node


@dataclass(frozen=True)
class Floors:
    """Lower bounds in seconds."""

    ttft: Quantity
    tpot: Quantity
    section: Section


def floors(d: Dimensions) -> Floors:
    """Lower bounds of TTFT and TPOT.

    Returns:
        TTFT: the prompt's FLOPs, or the bytes of all weights a token needs, over all ranks of a replica. TPOT: those weights and the
        KV cache of the batch, or the FLOPs of one token each, over the ranks of a stage: stages of a pipeline work one after the
        other on a token.
    """
    rows: list[Quantity] = []

    def row(name: str, label: str, unit: str, body: Node, note: str = "", called: str = "") -> Quantity:
        rows.append(Quantity(f"floor.{name}", f"Floor: {label}", unit, body, note=note, name=called or label))
        return rows[-1]

    def reach(core: Core, when: str, words: str, length: Node) -> Quantity:
        body = length if core.window is None else where(core.window > 0, minimum(core.window, length), length)
        return row(
            f"{when}_reach.{core.name}",
            f"reach in {words}, {core.name}",
            "token/request",
            body,
            "the length, at most the window",
            "reach",
        )

    sizes = [
        row(f"weights.{held.name}", f"weights per token, {held.name}", "parameter", held.parameters)
        for held in d.weights
    ]
    body = row(
        "layer_weights",
        "weights a token is multiplied with",
        "parameter",
        sum_range(span(sizes)),
        "sum of the rows above",
        "weights per token",
    )
    stored = [
        row(f"bytes.{held.name}", f"bytes of weights, {held.name}", "B", size * held.bytes)
        for held, size in zip(d.weights, sizes, strict=True)
    ]
    head = row("head_weights", "weights of the LM head", "parameter", d.head.parameters)
    layers = row(
        "layer_bytes", "bytes of weights a token needs", "B", sum_range(span(stored)), "sum of the rows above"
    )
    size = row(
        "bytes",
        "bytes of these and the LM head",
        "B",
        layers + head * d.head.bytes,
        called="bytes of weights",
    )
    prompt = row(
        "prompt_tokens", "tokens to prefill", "token", d.prompts * d.input_tokens, called="prompt tokens"
    )
    seen = {
        core: reach(core, "prompt", "the prompt", d.input_tokens)
        for core in d.cores
        if core.query is not None
    }
    pairs = [
        row(
            f"attention_flops.{core.name}",
            f"attention FLOPs of the prompt, {core.name}",
            "FLOP",
            HALF * PER_PAIR * prompt * far * core.query * core.layers,  # type: ignore[operator]
            "half of 2 FLOPs × prompt tokens × reach × channels of queries and results × layers",
        )
        for core, far in seen.items()
    ]
    attention = sum_range(span(pairs)) if pairs else None
    work = row(
        "prompt_flops",
        "FLOPs of the prompt",
        "FLOP",
        PER_WEIGHT * prompt * body if attention is None else PER_WEIGHT * prompt * body + attention,
    )
    ttft = row(
        "ttft",
        "TTFT",
        "s",
        maximum(work / d.prefill.peak, size / d.prefill.bandwidth) / d.prefill.ranks,
        "larger of FLOPs ÷ peak and bytes ÷ bandwidth, ÷ ranks of a replica",
        "floor of TTFT",
    )
    middle = row(
        "decode_length",
        "mean length in decode",
        "token/request",
        d.input_tokens + HALF * d.output_tokens,
        "prompt and half the output",
    )
    kept = {core: reach(core, "decode", "decode", middle) for core in d.cores}
    caches = [
        row(
            f"kv_bytes.{core.name}",
            f"KV cache read in a step, {core.name}",
            "B",
            d.decode_requests * far * core.kept * d.kv_bytes * core.layers,
        )
        for core, far in kept.items()
    ]
    cache = sum_range(span(caches)) if caches else None
    step = row(
        "decode_flops", "FLOPs of a step", "FLOP", PER_WEIGHT * d.decode_requests * ONE_TOKEN * (body + head)
    )
    moved = size if cache is None else size + cache
    tpot = row(
        "tpot",
        "TPOT",
        "s",
        maximum(step / d.decode.peak, moved / d.decode.bandwidth) / d.decode.ranks,
        "larger of FLOPs ÷ peak and bytes ÷ bandwidth, ÷ ranks of a stage",
        "floor of TPOT",
    )
    constants = (PER_WEIGHT, PER_PAIR, ONE_TOKEN, HALF)
    return Floors(
        ttft,
        tpot,
        Section(
            "Independent floor",
            (*constants, *rows),
            "plain roofline: no estimate may be below",
            Section.SUBTOTAL,
        ),
    )
