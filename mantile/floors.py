"""What no estimate may beat: the plain roofline of the whole model, written apart from the equations.

Every weight is read once and every FLOP runs at the datasheet peak; no launch, no message, no wait. Nothing here comes
from `mantile.equations`: the architecture's own dimensions go in, two times come out.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Input, Node, Quantity, Section, maximum, minimum, where


def _own(name: str, label: str, unit: str, value: float, note: str) -> Input:
    return Input(f"floor.{name}", label, unit, value, note, "definition", "defined", shared=True, fixed=True, name=note)


PER_WEIGHT = _own("flops_per_weight", "Floor: FLOPs per weight and token", "FLOP/token", 2, "2 FLOPs")
PER_PAIR = _own("flops_per_pair", "Floor: FLOPs per channel, query and key", "FLOP/pair", 2,
                "2 FLOPs (4 per pair, half of the square)")  # fmt: skip
TWO = _own("two", "Floor: keys and values", "number", 2, "keys and values")
ONE_TOKEN = _own("one_token", "Floor: tokens of a step", "token/request", 1, "one token")
HALF = _own("half", "Floor: half", "1", 0.5, "half")


@dataclass(frozen=True)
class Dimensions:
    """What a floor is made of: architecture, data types in B (per weight; per channel and token for KV), one rank's
    peak in FLOP/s and bandwidth in B/s, TP ranks, and the workload."""

    layers: Node
    hidden: Node
    heads: Node
    kv_heads: Node
    head_dim: Node
    ffn: Node
    ffn_matrices: Node
    vocabulary: Node
    window: Node
    weight_bytes: Node
    head_bytes: Node
    kv_bytes: Node
    peak: Node
    bandwidth: Node
    tp: Node
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
        TTFT: the prompt's FLOPs, or all weights, over the TP ranks. TPOT: weights and the KV cache of the batch, or the
        FLOPs of one token each, over the TP ranks. Stages of a pipeline work one after the other and do not shorten either.
    """
    body = Quantity("floor.layer_weights", "Floor: weights in matrices of a layer", "parameter",
                    d.hidden * d.head_dim * TWO * (d.heads + d.kv_heads) + (d.ffn_matrices + 1) * d.hidden * d.ffn,
                    note="2 × hidden × head size × (query + KV heads) + FFN matrices", name="weights of a layer")  # fmt: skip
    head = Quantity("floor.head_weights", "Floor: weights of the LM head", "parameter", d.hidden * d.vocabulary)
    size = Quantity("floor.bytes", "Floor: bytes of all matrices", "B",
                    body * d.layers * d.weight_bytes + head * d.head_bytes, name="bytes of all matrices")  # fmt: skip
    prompt = Quantity("floor.prompt_tokens", "Floor: tokens to prefill", "token", d.prompts * d.input_tokens, name="prompt tokens")
    attended = Quantity("floor.prompt_reach", "Floor: attention reach in the prompt", "token/request",
                        where(d.window > 0, minimum(d.window, d.input_tokens), d.input_tokens), name="reach")  # fmt: skip
    pairs = Quantity("floor.attention_flops", "Floor: attention FLOPs of the prompt", "FLOP",
                     PER_PAIR * prompt * attended * d.heads * d.head_dim * d.layers, name="attention FLOPs")  # fmt: skip
    work = Quantity("floor.prompt_flops", "Floor: FLOPs of the prompt", "FLOP", PER_WEIGHT * prompt * body * d.layers + pairs,
                    name="FLOPs of the prompt")  # fmt: skip
    ttft = Quantity("floor.ttft", "Floor of TTFT", "s", maximum(work / d.peak, size / d.bandwidth) / d.tp,
                    note="larger of FLOPs ÷ peak and bytes ÷ bandwidth, ÷ TP")  # fmt: skip
    reach = Quantity("floor.decode_reach", "Floor: attention reach in decode", "token/request",
                     where(d.window > 0, minimum(d.window, d.input_tokens + HALF * d.output_tokens),
                           d.input_tokens + HALF * d.output_tokens), note="prompt and half the output, or the window")  # fmt: skip
    cache = Quantity("floor.kv_bytes", "Floor: KV cache read in a step", "B",
                     d.decode_requests * reach * TWO * d.kv_heads * d.head_dim * d.kv_bytes * d.layers, name="KV cache")  # fmt: skip
    step = Quantity("floor.decode_flops", "Floor: FLOPs of a step", "FLOP",
                    PER_WEIGHT * d.decode_requests * ONE_TOKEN * (body * d.layers + head), name="FLOPs of a step")  # fmt: skip
    tpot = Quantity("floor.tpot", "Floor of TPOT", "s", maximum(step / d.peak, (size + cache) / d.bandwidth) / d.tp,
                    note="larger of FLOPs ÷ peak and bytes ÷ bandwidth, ÷ TP")  # fmt: skip
    rows = (PER_WEIGHT, PER_PAIR, TWO, ONE_TOKEN, HALF, body, head, size, prompt, attended, pairs, work, ttft, reach, cache, step, tpot)
    return Floors(ttft, tpot, Section("Independent floor", rows, "plain roofline: no estimate may be below", Section.SUBTOTAL))
