"""Mixers with a state that does not grow: gated delta rule, Kimi delta attention, Mamba 1 and 2.

Multiply-adds of their cores are those of matrix products in the chunked forms. What is solved, decayed or summed up element
by element is left out, as in the published counts.
"""

from __future__ import annotations

from mantile.graph.quantity import Node, as_node
from mantile.ir.draft import BlockFacts, DecoderBuilder, small, step
from mantile.ir.modules import Elementwise, MatMul, Module, Recurrence, Tensor

ONE = as_node(1)


def _conv(draft: DecoderBuilder, roles: BlockFacts, key: str, channels: Node) -> tuple[Tensor, ...]:
    """A short convolution of every channel by itself, which stays in 16 bit."""
    weight = (draft.vector(key, channels, ONE, roles["conv_kernel"]),)
    return (*weight, draft.vector(key, channels, suffix=".bias")) if roles.value("conv_bias") else weight


def gated_delta(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of a gated DeltaNet: a state of key size x value size for every value head, keys shared by several.

    A chunk of C tokens costs keys with keys and queries with keys (C x key size each), scores with values (C x value size) and
    three products with the state, for every token and value head.
    """
    hidden, chunk = draft.facts["hidden_size"], roles["linear_chunk"]
    heads, key_size = roles["linear_value_heads"], roles["linear_key_dim"]
    each = draft.width("linear_heads", "Linear value heads", heads, None, "heads")
    key = draft.width(
        "linear_key_width", "Width of all linear keys", roles["linear_key_heads"], key_size, "heads"
    )
    value = draft.width(
        "linear_value_width", "Width of all linear values", heads, roles["linear_value_dim"], "heads"
    )
    copied = draft.width(
        "linear_copied_width", "Width of linear keys, a copy for every value head", heads, key_size, "heads"
    )
    conv, gates = key + key + value, each + each
    state = value * key_size
    if draft.names.fused_delta:
        stored = draft.matrix("delta_qkvz", conv + value, hidden) + draft.matrix("delta_ba", gates, hidden)
    else:
        stored = draft.matrix("delta_qkv", conv, hidden) + draft.matrix("delta_z", value, hidden)
        stored += draft.matrix("delta_b", each, hidden) + draft.matrix("delta_a", each, hidden)
    core = Recurrence(
        state, conv, roles["conv_kernel"], chunk * (copied + copied + value) + state + state + state, chunk
    )
    return [
        step(
            "linear_in",
            "Linear attention projections",
            "linear in",
            "projections",
            MatMul(hidden, conv + value + gates, "attention"),
            stored,
            kind="linear",
        ),
        step(
            "linear_core",
            "Linear attention core",
            "linear core",
            "attention",
            core,
            _conv(draft, roles, "delta_conv", conv),
            (draft.vector("delta_decay", each, suffix=""), draft.vector("delta_step", each, suffix="")),
            kind="linear",
        ),
        small(
            "linear_norm",
            "Norm and gate of the values",
            "gate",
            Elementwise("gate", value),
            draft.norm("delta_norm", roles["linear_value_dim"]),
            kind="linear",
        ),
        step(
            "linear_out",
            "Linear attention output",
            "linear out",
            "projections",
            MatMul(value, hidden, "attention"),
            draft.matrix("delta_out", hidden, value),
            reduces=True,
            kind="linear",
        ),
    ]


def delta(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of Kimi delta attention: a gated delta rule whose decay differs by channel, with low-rank gates.

    As `gated_delta`; but the scores inside a chunk are decayed by channel and no plain matrix product, so they are left out, and
    the triangular inverse is multiplied with keys and values.
    """
    hidden, chunk = draft.facts["hidden_size"], roles["linear_chunk"]
    heads, size = roles["linear_heads"], roles["linear_head_dim"]
    each = draft.width("linear_heads", "Linear heads", heads, None, "heads")
    width = draft.width("linear_width", "Width of all linear heads", heads, size, "heads")
    conv, state = width + width + width, width * size
    core = Recurrence(state, conv, roles["conv_kernel"], chunk * conv + state + state + state, chunk)
    return [
        step(
            "linear_in",
            "Linear attention projections",
            "linear in",
            "projections",
            MatMul(hidden, conv + each + size + size, "attention"),
            draft.matrix("q", width, hidden),
            draft.matrix("k", width, hidden),
            draft.matrix("v", width, hidden),
            draft.matrix("delta_b", each, hidden),
            draft.matrix("decay_in", size, hidden),
            draft.matrix("gate_in", size, hidden),
            kind="linear",
        ),
        step(
            "linear_gates",
            "Decay and gate from their latents",
            "gates",
            "projections",
            MatMul(size, width + width, "attention"),
            draft.matrix("decay_out", width, size),
            draft.matrix("gate_out", width, size),
            kind="linear",
        ),
        step(
            "linear_core",
            "Linear attention core",
            "linear core",
            "attention",
            core,
            _conv(draft, roles, "q_conv", width),
            _conv(draft, roles, "k_conv", width),
            _conv(draft, roles, "v_conv", width),
            (
                draft.vector("delta_decay", ONE, ONE, each, ONE, suffix=""),
                draft.vector("delta_step", width, suffix=""),
            ),
            kind="linear",
        ),
        small(
            "linear_norm",
            "Norm and gate of the values",
            "gate",
            Elementwise("gate", width),
            draft.norm("delta_norm", size),
            kind="linear",
        ),
        step(
            "linear_out",
            "Linear attention output",
            "linear out",
            "projections",
            MatMul(width, hidden, "attention"),
            draft.matrix("o", hidden, width),
            reduces=True,
            kind="linear",
        ),
    ]


def mamba(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of a Mamba 1 mixer: a state of its own for every inner channel, scanned element by element."""
    hidden, state, rank = draft.facts["hidden_size"], roles["mamba_state"], roles["mamba_dt_rank"]
    inner, bias = draft.columns(roles["mamba_inner"]), roles.value("projection_bias")
    selected = rank + state + state
    return [
        step(
            "mamba_in",
            "Mamba input projection",
            "Mamba in",
            "projections",
            MatMul(hidden, inner + inner, "attention"),
            draft.matrix("mamba_in", inner + inner, hidden, bias=bias),
            kind="mamba",
        ),
        step(
            "mamba_select",
            "Step, B and C",
            "B, C",
            "projections",
            MatMul(inner, selected, "attention"),
            draft.matrix("mamba_x", selected, inner),
            reduces=True,
            kind="mamba",
        ),
        small(
            "mamba_select_norm",
            "Norms of step, B and C",
            "B, C norm",
            Elementwise("norm", selected),
            draft.norm("mamba_dt_norm", rank),
            draft.norm("mamba_b_norm", state),
            draft.norm("mamba_c_norm", state),
            kind="mamba",
        ),
        step(
            "mamba_step",
            "Step of every channel",
            "step",
            "projections",
            MatMul(rank, inner, "attention"),
            draft.matrix("mamba_dt", inner, rank, bias=1),
            kind="mamba",
        ),
        step(
            "mamba_core",
            "Mamba convolution and scan",
            "Mamba core",
            "attention",
            Recurrence(inner * state, inner, roles["conv_kernel"], inner * state),
            _conv(draft, roles, "mamba_conv", inner),
            (
                draft.vector("mamba_decay", inner, state, suffix=""),
                draft.vector("mamba_skip", inner, suffix=""),
            ),
            kind="mamba",
        ),
        step(
            "mamba_out",
            "Mamba output projection",
            "Mamba out",
            "projections",
            MatMul(inner, hidden, "attention"),
            draft.matrix("mamba_out", hidden, inner, bias=bias),
            reduces=True,
            kind="mamba",
        ),
    ]


def mamba2(draft: DecoderBuilder, roles: BlockFacts) -> list[Module]:
    """The modules of a Mamba 2 mixer: a state of head size x state size for every head; groups of heads share B and C.

    A chunk of C tokens costs C with B (C x state size), scores with values (C x head size) and two products with the state, for
    every token and head: B and C repeated to every head, which kernels that share them by group need not do. The passing on of
    states from chunk to chunk is left out.
    """
    hidden, state, chunk = draft.facts["hidden_size"], roles["mamba_state"], roles["mamba_chunk"]
    heads, bias = roles["mamba_heads"], roles.value("projection_bias")
    each = draft.width("mamba_all_heads", "Mamba heads", heads, None, "heads")
    inner = draft.width("mamba_width", "Width of all Mamba heads", heads, roles["mamba_head_dim"], "heads")
    shared = draft.width(
        "mamba_group_width", "Width of B, and of C", roles["mamba_groups"], state, "kv heads"
    )
    conv, kept = inner + shared + shared, inner * state
    core = Recurrence(kept, conv, roles["conv_kernel"], chunk * (inner + heads * state) + kept + kept, chunk)
    return [
        step(
            "mamba_in",
            "Mamba input projection",
            "Mamba in",
            "projections",
            MatMul(hidden, inner + conv + each, "attention"),
            draft.matrix("mamba_in", inner + conv + each, hidden, bias=bias),
            kind="mamba2",
        ),
        step(
            "mamba_core",
            "Mamba core",
            "Mamba core",
            "attention",
            core,
            _conv(draft, roles, "mamba_conv", conv),
            tuple(
                draft.vector(key, each, suffix="") for key in ("mamba_decay", "mamba_skip", "mamba_dt_bias")
            ),
            kind="mamba2",
        ),
        small(
            "mamba_norm",
            "Norm and gate",
            "gate",
            Elementwise("gate", inner),
            draft.norm("mamba_norm", inner),
            kind="mamba2",
        ),
        step(
            "mamba_out",
            "Mamba output projection",
            "Mamba out",
            "projections",
            MatMul(inner, hidden, "attention"),
            draft.matrix("mamba_out", hidden, inner, bias=bias),
            reduces=True,
            kind="mamba2",
        ),
    ]
