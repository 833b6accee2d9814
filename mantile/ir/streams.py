"""Hyper-connections: several residual streams, collapsed before a block, then mixed with its result."""

from __future__ import annotations

from mantile.graph.quantity import Node, as_node
from mantile.ir.builder import DecoderBuilder, build_module, elementwise
from mantile.ir.modules import MatMul, Module, Tensor

ONE = as_node(1)


def streams(builder: DecoderBuilder, place: str) -> tuple[list[Module], list[Module]]:
    """What stands before and after a block, nothing in a model with one stream.

    Before: weights worked out from all streams. A token has one for each stream to collapse, one to expand,
    and one for each pair of streams to mix; each of the three has a scale. The mixing matrix is made doubly
    stochastic by iterations over n x n values, which are left out. After: the streams mixed with the block's
    result.

    Args:
        place: "mixer" or "ffn".
    """
    if "residual_streams" not in builder.facts:
        return [], []
    count, width = builder.facts["residual_streams"], _width(builder)
    weights = count + count + count * count
    name = f"{builder.names.layer}{builder.names[f'{place}_streams']}"
    block = "FFN" if place == "ffn" else "attention"
    before = build_module(
        f"{place}_streams",
        MatMul(width, weights, "router"),
        (
            _table(f"{name}_fn", weights, width),
            _table(f"{name}_base", weights),
            _table(f"{name}_scale", ONE + ONE + ONE),
        ),
        label=f"Weights of the residual streams, {block}",
        short="streams",
        part="small",
        kind="streams",
    )
    label = f"Residual streams mixed, {block}"
    after = elementwise(f"{place}_mix", "gate", width, label=label, short="mix", kind="streams")
    return [before], [after]


def collapse(builder: DecoderBuilder) -> list[Module]:
    """The streams collapsed into one before the final norm; nothing in a model with one stream."""
    if "residual_streams" not in builder.facts:
        return []
    return [
        build_module(
            "head_streams",
            MatMul(_width(builder), builder.facts["residual_streams"], "router"),
            collapse_tensors(builder, builder.names.top),
            label="Weights of the residual streams, LM head",
            short="streams",
            part="small",
        )
    ]


def collapse_tensors(builder: DecoderBuilder, prefix: str) -> tuple[Tensor, ...]:
    """The tensors that collapse the streams into one; none in a model with one stream."""
    if "residual_streams" not in builder.facts:
        return ()
    count, name = builder.facts["residual_streams"], f"{prefix}{builder.names['head_streams']}"
    return (
        _table(f"{name}_fn", count, _width(builder)),
        _table(f"{name}_base", count),
        _table(f"{name}_scale", ONE),
    )


def _width(builder: DecoderBuilder) -> Node:
    """Channels of all streams of a token."""
    return builder.facts["residual_streams"] * builder.facts["hidden_size"]


def _table(name: str, *shape: Node) -> Tensor:
    """A small table, which is not quantised."""
    return Tensor(name, shape, matrix=False)
