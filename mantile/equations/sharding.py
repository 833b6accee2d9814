"""What one rank holds: heads, columns, rows and layers under tensor and pipeline parallelism.

KV heads shard as far as they go and replicate beyond. Where a degree does not divide, the fullest rank counts.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constants import RANKS_TO_ACCELERATORS
from mantile.equations.workload import Workload
from mantile.graph.quantity import Quantity, Section, maximum, minimum, remainder, round_up
from mantile.ir.modules import Facts, ModelGraph


@dataclass(frozen=True)
class Sharding:
    """Shards of the fullest rank. Widths in channels, `*_left` what a degree leaves over (0 if it divides)."""

    accelerators: Quantity
    ranks_per_replica: Quantity
    heads: Quantity
    kv_heads: Quantity
    kv_copies: Quantity
    query_width: Quantity
    kv_width: Quantity
    ffn: Quantity
    vocabulary: Quantity
    layers: Quantity
    heads_left: Quantity
    kv_left: Quantity
    ffn_left: Quantity
    layers_left: Quantity
    section: Section


def sharding(ir: ModelGraph, inputs: Workload) -> Sharding:
    """The rows of the plan."""
    facts: Facts = ir.facts
    tp, pp, dp = inputs.tp, inputs.pp, inputs.dp
    ranks = Quantity("plan.ranks_per_replica", "Ranks of a replica", "rank", tp * pp)
    accelerators = Quantity("plan.accelerators", "Accelerators", "accelerator", ranks * dp * RANKS_TO_ACCELERATORS)
    heads = Quantity("plan.heads", "Query heads per rank", "head", round_up(facts.attention_heads / tp))
    kv_heads = Quantity("plan.kv_heads", "KV heads per rank", "head", maximum(1, round_up(facts.kv_heads / tp)),
                        note="KV heads ÷ TP, rounded up, at least one: beyond that they are copied")  # fmt: skip
    copies = Quantity("plan.kv_copies", "Copies of each KV head", "1", maximum(1, tp / facts.kv_heads),
                      note="TP ÷ KV heads where there are more ranks than KV heads")  # fmt: skip
    query_width = Quantity("plan.query_width", "Width of queries per rank", "channel", heads * facts.head_dim)
    kv_width = Quantity("plan.kv_width", "Width of keys per rank", "channel", kv_heads * facts.head_dim)
    ffn = Quantity("plan.ffn", "FFN columns per rank", "channel", round_up(facts.ffn_size / tp))
    vocabulary = Quantity("plan.vocabulary", "Vocabulary rows per rank", "row", round_up(facts.vocabulary / tp))
    layers = Quantity("plan.layers", "Layers per stage", "layer", round_up(facts.layers / pp),
                      note="layers ÷ PP, rounded up: the fullest stage")  # fmt: skip
    heads_left = Quantity("plan.heads_left", "Query heads left over", "head", remainder(facts.attention_heads, tp))
    kv_left = Quantity("plan.kv_left", "KV heads left over", "head",
                       remainder(maximum(facts.kv_heads, tp), minimum(facts.kv_heads, tp)),
                       note="remainder of KV heads and TP: one must divide the other")  # fmt: skip
    ffn_left = Quantity("plan.ffn_left", "FFN columns left over", "channel", remainder(facts.ffn_size, tp))
    layers_left = Quantity("plan.layers_left", "Layers left over", "layer", remainder(facts.layers, pp))
    rows = (ranks, accelerators, heads, kv_heads, copies, query_width, kv_width, ffn, vocabulary, layers,
            heads_left, kv_left, ffn_left, layers_left)  # fmt: skip
    return Sharding(accelerators, ranks, heads, kv_heads, copies, query_width, kv_width, ffn, vocabulary, layers, heads_left,
                    kv_left, ffn_left, layers_left,
                    Section("Shards", rows, "of the fullest rank"))  # fmt: skip

