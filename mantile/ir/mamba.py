"""State space mixers, with a state that does not grow: Mamba 1 and Mamba 2.

Multiply-adds of the Mamba 2 core are those of matrix products when a prompt is worked through in chunks. What
is decayed or summed element by element is left out, as in the published counts.
"""

from __future__ import annotations

from mantile.graph.quantity import Node
from mantile.ir.builder import BlockFacts, DecoderBuilder, build_module, elementwise, projection
from mantile.ir.modules import Module, Recurrence


def mamba(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of a Mamba 1 mixer: every inner channel has a state, scanned element by element."""
    hidden, inner = facts["hidden_size"], builder.columns(facts["mamba_inner"])
    return [
        _input(builder, facts, inner + inner, "mamba"),
        *_selection(builder, facts, inner),
        build_module(
            "mamba_core",
            Recurrence(
                state=inner * facts["mamba_state"],
                conv=inner,
                kernel=facts["conv_kernel"],
                macs=inner * facts["mamba_state"],
            ),
            builder.convolution("mamba_conv", inner, facts),
            (
                builder.vector("mamba_decay", inner, facts["mamba_state"], suffix=""),
                builder.vector("mamba_skip", inner, suffix=""),
            ),
            label="Mamba convolution and scan",
            short="Mamba core",
            part="attention",
            kind="mamba",
        ),
        _output(builder, facts, inner, hidden, "mamba"),
    ]


def _selection(builder: DecoderBuilder, facts: BlockFacts, inner: Node) -> list[Module]:
    """Time step, B and C of every token from its inner channels; the step by way of a low rank."""
    state, rank = facts["mamba_state"], facts["mamba_dt_rank"]
    selected = rank + state + state
    return [
        projection(
            "mamba_select",
            inner,
            selected,
            builder.matrix("mamba_x", selected, inner),
            label="Step, B and C",
            short="B, C",
            kind="mamba",
            reduces=True,
        ),
        elementwise(
            "mamba_select_norm",
            "norm",
            selected,
            builder.norm("mamba_dt_norm", rank),
            builder.norm("mamba_b_norm", state),
            builder.norm("mamba_c_norm", state),
            label="Norms of step, B and C",
            short="B, C norm",
            kind="mamba",
        ),
        projection(
            "mamba_step",
            rank,
            inner,
            builder.matrix("mamba_dt", inner, rank, bias=1),
            label="Step of every channel",
            short="step",
            kind="mamba",
        ),
    ]


def mamba2(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of a Mamba 2 mixer: every head has a state of head size x state size.

    A chunk of C tokens costs, for every token and head, C with B (C x state size), scores with values (C x
    head size) and two products with the state. Groups of heads share B and C. Here they are repeated to every
    head, which kernels that share them by group need not do. Passing states on from chunk to chunk is left
    out.
    """
    hidden, state, chunk = facts["hidden_size"], facts["mamba_state"], facts["mamba_chunk"]
    heads = facts["mamba_heads"]
    steps = builder.count(heads, "heads")  # a time step for every head
    inner = builder.width("mamba_width", "Width of all Mamba heads", heads, facts["mamba_head_dim"], "heads")
    shared = builder.width(
        "mamba_group_width", "Width of B, and of C", facts["mamba_groups"], state, "kv heads"
    )
    convolved, kept = inner + shared + shared, inner * state
    return [
        _input(builder, facts, inner + convolved + steps, "mamba2"),
        build_module(
            "mamba_core",
            Recurrence(
                state=kept,
                conv=convolved,
                kernel=facts["conv_kernel"],
                macs=chunk * (inner + heads * state) + kept + kept,
                chunk=chunk,
            ),
            builder.convolution("mamba_conv", convolved, facts),
            tuple(
                builder.vector(key, steps, suffix="")
                for key in ("mamba_decay", "mamba_skip", "mamba_dt_bias")
            ),
            label="Mamba core",
            short="Mamba core",
            part="attention",
            kind="mamba2",
        ),
        elementwise(
            "mamba_norm",
            "gate",
            inner,
            builder.norm("mamba_norm", inner),
            label="Norm and gate",
            short="gate",
            kind="mamba2",
        ),
        _output(builder, facts, inner, hidden, "mamba2"),
    ]


def _input(builder: DecoderBuilder, facts: BlockFacts, outputs: Node, kind: str) -> Module:
    hidden = facts["hidden_size"]
    tensors = builder.matrix("mamba_in", outputs, hidden, bias=facts.value("projection_bias"))
    return projection(
        "mamba_in", hidden, outputs, tensors, label="Mamba input projection", short="Mamba in", kind=kind
    )


def _output(builder: DecoderBuilder, facts: BlockFacts, inner: Node, hidden: Node, kind: str) -> Module:
    return projection(
        "mamba_out",
        inner,
        hidden,
        builder.matrix("mamba_out", hidden, inner, bias=facts.value("projection_bias")),
        label="Mamba output projection",
        short="Mamba out",
        kind=kind,
        reduces=True,
    )
