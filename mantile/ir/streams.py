"""Hyper-connections: several residual streams, collapsed into one before a block and mixed with its result after it."""

from __future__ import annotations

from mantile.graph.quantity import Node, as_node
from mantile.ir.draft import DecoderBuilder, small, step
from mantile.ir.modules import Elementwise, MatMul, Module, Tensor

ONE = as_node(1)


def streams(draft: DecoderBuilder, place: str) -> tuple[list[Module], list[Module]]:
    """What stands before and after a block: weights worked out from all streams, and the streams mixed with the result.

    A token's weights are one for each stream to collapse, one to expand, and one for each pair of streams to mix; each of the
    three has a scale. The mixing matrix is made doubly stochastic by iterations over n x n values, which are left out.
    """
    if "residual_streams" not in draft.facts:
        return [], []
    count, hidden = draft.facts["residual_streams"], draft.facts["hidden_size"]
    weights, width = count + count + count * count, count * hidden
    name = f"{draft.names.layer}{draft.names[f'{place}_streams']}"
    label = "FFN" if place == "ffn" else "attention"
    before = step(
        f"{place}_streams",
        f"Weights of the residual streams, {label}",
        "streams",
        "small",
        MatMul(width, weights, "router"),
        (
            _vector(f"{name}_fn", weights, width),
            _vector(f"{name}_base", weights),
            _vector(f"{name}_scale", ONE + ONE + ONE),
        ),
        kind="streams",
    )
    after = small(
        f"{place}_mix", f"Residual streams mixed, {label}", "mix", Elementwise("gate", width), kind="streams"
    )
    return [before], [after]


def collapse(draft: DecoderBuilder) -> list[Module]:
    """The streams made one before the final norm."""
    if "residual_streams" not in draft.facts:
        return []
    return [
        step(
            "head_streams",
            "Weights of the residual streams, LM head",
            "streams",
            "small",
            MatMul(
                draft.facts["residual_streams"] * draft.facts["hidden_size"],
                draft.facts["residual_streams"],
                "router",
            ),
            collapsing(draft, draft.names.top),
        )
    ]


def collapsing(draft: DecoderBuilder, prefix: str) -> tuple[Tensor, ...]:
    """The tensors that make one stream of several; none in a model with one."""
    if "residual_streams" not in draft.facts:
        return ()
    count, name = draft.facts["residual_streams"], f"{prefix}{draft.names['head_streams']}"
    return (
        _vector(f"{name}_fn", count, count * draft.facts["hidden_size"]),
        _vector(f"{name}_base", count),
        _vector(f"{name}_scale", ONE),
    )


def _vector(name: str, *shape: Node) -> Tensor:
    """A small table, which is not quantised."""
    return Tensor(name, shape, matrix=False)
