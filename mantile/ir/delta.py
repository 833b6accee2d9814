"""Linear attention by a delta rule, with a state that does not grow: gated DeltaNet and Kimi delta attention.

Multiply-adds of their cores are those of matrix products when a prompt is worked through in chunks. What is
solved, decayed or summed element by element is left out, as in the published counts.
"""

from __future__ import annotations

from mantile.graph.quantity import Node, as_node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, projection
from mantile.ir.modules import Module, Recurrence, Tensor

ONE = as_node(1)


def gated_delta(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of a gated DeltaNet: every value head has a state of key size x value size.

    A chunk of C tokens costs, for every token and value head, keys with keys and queries with keys (C x key
    size each), scores with values (C x value size) and three products with the state.
    """
    hidden, chunk = facts["hidden_size"], facts["linear_chunk"]
    value_heads, key_size, value_size = (
        facts["linear_value_heads"],
        facts["linear_key_dim"],
        facts["linear_value_dim"],
    )
    heads = builder.count(value_heads, "heads")
    key = builder.width(
        "linear_key_width", "Width of all linear keys", facts["linear_key_heads"], key_size, "heads"
    )
    value = builder.width(
        "linear_value_width", "Width of all linear values", value_heads, value_size, "heads"
    )
    copied = builder.width(
        "linear_copied_width",
        "Width of linear keys, a copy for every value head",
        value_heads,
        key_size,
        "heads",
    )
    convolved, gates, state = key + key + value, heads + heads, value * key_size
    return [
        projection(
            "linear_in",
            hidden,
            convolved + value + gates,
            _gated_delta_inputs(builder, hidden, convolved=convolved, value=value, heads=heads),
            label="Linear attention projections",
            short="linear in",
            kind="linear",
        ),
        build_module(
            "linear_core",
            Recurrence(
                state=state,
                conv=convolved,
                kernel=facts["conv_kernel"],
                macs=chunk * (copied + copied + value) + state + state + state,
                chunk=chunk,
            ),
            builder.convolution("delta_conv", convolved, facts),
            (
                builder.vector("delta_decay", heads, suffix=""),
                builder.vector("delta_step", heads, suffix=""),
            ),
            label="Linear attention core",
            short="linear core",
            part="attention",
            kind="linear",
        ),
        *_gate_and_output(builder, hidden, value, norm_size=value_size, output_key="delta_out"),
    ]


def _gated_delta_inputs(
    builder: DecoderBuilder, hidden: Node, *, convolved: Node, value: Node, heads: Node
) -> tuple[Tensor, ...]:
    """The input matrices of a gated DeltaNet: two fused ones, or four."""
    if builder.names.fused_delta:
        return builder.matrix("delta_qkvz", convolved + value, hidden) + builder.matrix(
            "delta_ba", heads + heads, hidden
        )
    return (
        builder.matrix("delta_qkv", convolved, hidden)
        + builder.matrix("delta_z", value, hidden)
        + builder.matrix("delta_b", heads, hidden)
        + builder.matrix("delta_a", heads, hidden)
    )


def delta(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of Kimi delta attention: a gated delta rule with low-rank gates and a decay per channel.

    As `gated_delta`, with two differences. The scores inside a chunk are decayed by channel, which is no
    plain matrix product, so they are left out; and the triangular inverse is multiplied with keys and values.
    """
    hidden, size, chunk = facts["hidden_size"], facts["linear_head_dim"], facts["linear_chunk"]
    heads = builder.count(facts["linear_heads"], "heads")
    width = builder.width("linear_width", "Width of all linear heads", facts["linear_heads"], size, "heads")
    convolved, state = width + width + width, width * size
    return [
        projection(
            "linear_in",
            hidden,
            convolved + heads + size + size,
            *(builder.matrix(key, width, hidden) for key in ("q", "k", "v")),
            builder.matrix("delta_b", heads, hidden),
            builder.matrix("decay_in", size, hidden),
            builder.matrix("gate_in", size, hidden),
            label="Linear attention projections",
            short="linear in",
            kind="linear",
        ),
        projection(
            "linear_gates",
            size,
            width + width,
            builder.matrix("decay_out", width, size),
            builder.matrix("gate_out", width, size),
            label="Decay and gate from their latents",
            short="gates",
            kind="linear",
        ),
        build_module(
            "linear_core",
            Recurrence(
                state=state,
                conv=convolved,
                kernel=facts["conv_kernel"],
                macs=chunk * convolved + state + state + state,
                chunk=chunk,
            ),
            *(builder.convolution(key, width, facts) for key in ("q_conv", "k_conv", "v_conv")),
            (
                builder.vector("delta_decay", ONE, ONE, heads, ONE, suffix=""),
                builder.vector("delta_step", width, suffix=""),
            ),
            label="Linear attention core",
            short="linear core",
            part="attention",
            kind="linear",
        ),
        *_gate_and_output(builder, hidden, width, norm_size=size, output_key="o"),
    ]


def _gate_and_output(
    builder: DecoderBuilder, hidden: Node, width: Node, *, norm_size: Node, output_key: str
) -> list[Module]:
    """What follows the core: the results of all heads normed and gated, and projected to the hidden size."""
    return [
        elementwise(
            "linear_norm",
            "gate",
            width,
            builder.norm("delta_norm", norm_size),
            label="Norm and gate of the values",
            short="gate",
            kind="linear",
        ),
        projection(
            "linear_out",
            width,
            hidden,
            builder.matrix(output_key, hidden, width),
            label="Linear attention output",
            short="linear out",
            kind="linear",
            reduces=True,
        ),
    ]
