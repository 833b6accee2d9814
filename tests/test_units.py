"""Units: every figure's unit follows from its body, scale included, and mistakes are named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from units import UnitError, check_units, parse

from mantile.equations.build import build_graph
from mantile.estimates.estimate import Estimate
from mantile.graph import quantity as q
from mantile.graph.quantity import Input, Node, Quantity
from mantile.ir.build import build_ir
from mantile.library.architecture import Model
from mantile.library.huggingface import parse_config
from mantile.library.profiles import Library

STARCODER2: dict[str, Any] = {
    "model_type": "starcoder2",
    "hidden_size": 4608,
    "intermediate_size": 18432,
    "num_attention_heads": 36,
    "num_hidden_layers": 32,
    "num_key_value_heads": 4,
    "sliding_window": 4096,
    "vocab_size": 49152,
    "max_position_embeddings": 16384,
}

SIZE = Input("size", "Size", "B", 10.0)
COUNT = Input("count", "Count", "token", 3.0)
SPEED = Input("speed", "Speed", "GB/s", 2.0)
WAIT = Input("wait", "Wait", "us", 4.0)
WORK = Input("work", "Work", "FLOP", 5.0)
PURE = Input("pure", "Pure", "1", 2.0)
GIGA = Input("giga", "Giga", "B/GB", 1e9)
BITS = Input("bits", "Bits", "bit", 8.0)


@pytest.mark.exhaustive
def test_units_of_a_whole_estimate_follow_from_the_bodies(
    make: Callable[..., Estimate], one_of_each: str
) -> None:
    """Checks included, for every architecture.

    Biases, windows, experts, latents, states and images bring rows of their own.
    """
    made = make(model=one_of_each, tp=4)
    checks = [check.result for check in made.equations.checks.checks]
    assert len(made.equations.quantities()) > 400
    check_units([*made.equations.figures.values(), *checks])


def test_units_of_a_plain_ffn_with_biases_follow(library: Library) -> None:
    """Starcoder2: LayerNorm, biases everywhere, tied embeddings, one FFN input matrix."""
    model = Model(
        id="plain", name="plain", source="test", architecture=parse_config(STARCODER2, "config.json")
    )
    equations = build_graph(build_ir(model), library)
    assert "tensor.model.layers.{}.mlp.c_fc.bias" in equations.figures
    check_units(equations.figures.values())


@pytest.mark.parametrize(
    ("unit", "body"),
    [
        ("1", SIZE),
        ("B", PURE * PURE),
        ("token", SIZE),
        ("s", SIZE / SPEED),
        ("B", SPEED * WAIT),
        ("s", WAIT * PURE),
        ("B/s", SPEED * PURE),
        ("GB/s", SPEED * GIGA),
        ("FLOP", WORK * WORK),
        ("FLOP/s", SPEED * PURE),
        ("B", SIZE * SIZE / COUNT),
        ("B", q.where(SIZE > 0, COUNT, 0)),
        ("B", BITS * PURE),
        ("B", SIZE**2),
        ("B", q.is_number(SIZE)),
        ("GiB", SIZE),
        ("B", q.index(q.span([COUNT, COUNT]), 1)),
        ("request", COUNT),
    ],
)
def test_a_declared_unit_that_does_not_follow_is_named(unit: str, body: Node) -> None:
    """Wrong dimension, or right dimension at the wrong scale."""
    with pytest.raises(UnitError, match=rf"^figure\.wrong: declared {unit}, but its body is in "):
        check_units([Quantity("figure.wrong", "Wrong", unit, body)])


@pytest.mark.parametrize(
    ("told", "body"),
    [
        ("size, count", SIZE + COUNT),
        ("size, speed", SIZE - SPEED),
        ("size, bits", q.maximum(SIZE, BITS)),
        ("less of size", SIZE < COUNT),
        ("size, pure", SIZE**PURE),
        ("size: ", q.sum_range(q.span([SIZE, COUNT]))),
        ("where of", q.where(SIZE > 0, SIZE, COUNT)),
    ],
)
def test_figures_of_different_units_do_not_meet(told: str, body: Node) -> None:
    """Sums, comparisons, branches and spans need one unit; the operands are named."""
    with pytest.raises(UnitError) as raised:
        check_units([Quantity("figure.wrong", "Wrong", "B", body)])
    assert told in str(raised.value)


def test_an_unknown_unit_is_refused() -> None:
    """On a figure of a graph, too."""
    with pytest.raises(UnitError, match="'nonsense' is not a unit of ours"):
        check_units([Quantity("figure.wrong", "Wrong", "nonsense", PURE * PURE)])


@pytest.mark.parametrize(
    ("unit", "body"),
    [
        ("B/s", SPEED * GIGA),
        ("s", SIZE / (SPEED * GIGA)),
        ("B", SIZE + 0),
        ("1", SIZE / SIZE),
        ("B", q.where(COUNT > 0, SIZE, 0)),
        ("B**2", SIZE**2),
        ("us", q.maximum(WAIT, WAIT, 0)),
        ("FLOP/token", WORK / COUNT),
        ("1", SIZE <= SIZE + SIZE),
        ("B", q.remainder(SIZE, SIZE)),
        ("number", q.match(COUNT, q.span([COUNT]))),
        ("B", q.if_error(SIZE, 0)),
        ("1", q.text(SIZE)),
        ("bit", BITS),
    ],
)
def test_a_right_unit_passes(unit: str, body: Node) -> None:
    """A bare 0 or 1 takes the unit of its neighbours."""
    check_units([Quantity("figure.right", "Right", unit, body)])


def test_a_wrong_unit_anywhere_below_is_found_and_its_figure_named() -> None:
    """The check walks to the inputs, so no figure can hide a wrong one."""
    wrong = Quantity("deep.down", "Deep", "B/s", SPEED * PURE)
    top = Quantity("on.top", "Top", "s", SIZE / wrong)
    with pytest.raises(UnitError, match=r"deep\.down: declared B/s"):
        check_units([top])


def test_bytes_tokens_and_flops_are_dimensions_of_their_own() -> None:
    """What pint's own registry would let pass."""
    for unit in ("B", "token", "FLOP", "request", "accelerator", "USD"):
        assert not parse(unit).dimensionless, unit
    assert parse("layer").dimensionless
    assert (parse("GiB") / parse("GB")).to_base_units().magnitude == pytest.approx(1.073741824, rel=1e-15)
    assert (parse("B") / parse("bit")).to_base_units().magnitude == 8
    with pytest.raises(UnitError, match="furlong"):
        parse("furlong")
