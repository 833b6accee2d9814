"""Formulas typeset: what is drawn, read as mathematics, gives the number of the graph."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Any

import pytest

import mantile
from mantile.graph.mathml import mathml
from mantile.graph.quantity import (
    Apply,
    InCase,
    Input,
    Quantity,
    Span,
    at_least,
    expression,
    join,
    maximum,
    number_of,
    precedents,
    span,
    sum_where,
    where,
)
from mantile.library.scenario import parse_scenario

A, B, C = (Input(name, name, "s", value) for name, value in (("a", 2.0), ("b", 3.0), ("c", 5.0)))
READ = (
    "add",
    "subtract",
    "multiply",
    "divide",
    "power",
    "negative",
    "maximum",
    "minimum",
    "floor",
)
"""Operations that the reader below knows."""
SIGNS = {"−": "-", "·": "*", "⌊": "floor(", "⌋": ")"}


class Letters:
    def symbol(self, node: Input | Quantity) -> str:
        return f"<mi>{node.id}</mi>"

    def table(self, node: Span) -> str:
        return "<mo>,</mo>".join(self.symbol(one) for one in node.members)


class Numbers(Letters):
    def __init__(self, values: Any) -> None:
        self.values = values

    def symbol(self, node: Input | Quantity) -> str:
        return f"<mn>{float(self.values[node])!r}</mn>"


def shown(body: Any) -> str:
    """Without rows, and brackets as they are."""
    text = mathml(body, Letters()).replace("<mrow>", "").replace("</mrow>", "")
    return text.replace(' stretchy="false"', "")


def read(element: ET.Element) -> str:
    """What somebody reads, as Python: only what is drawn says what belongs together."""
    parts = [read(part) for part in element]
    if element.tag == "mfrac":
        return f"(({parts[0]})/({parts[1]}))"
    if element.tag == "msup":
        return f"{parts[0]}**({parts[1]})"
    if element.tag in ("math", "mrow"):
        return "".join(parts)
    text = element.text or ""
    return SIGNS.get(text, text)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (A / (B + C), "<mfrac><mi>a</mi><mi>b</mi><mo>+</mo><mi>c</mi></mfrac>"),
        (A - (B - C), "<mi>a</mi><mo>−</mo><mo>(</mo><mi>b</mi><mo>−</mo><mi>c</mi><mo>)</mo>"),
        (A + (B + C), "<mi>a</mi><mo>+</mo><mi>b</mi><mo>+</mo><mi>c</mi>"),
        ((A + B) ** 2, "<msup><mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo><mn>2</mn></msup>"),
        (number_of(A + B) * C, "<mo>(</mo><mi>a</mi><mo>+</mo><mi>b</mi><mo>)</mo><mo>·</mo><mi>c</mi>"),
        (
            maximum(A, where(B > 0, C, 0)),
            "<mi>max</mi><mo>(</mo><mi>a</mi><mo>,</mo><mo>{</mo><mtable><mtr><mtd><mi>c</mi></mtd><mtd><mtext>if\xa0"
            "</mtext><mi>b</mi><mo>&gt;</mo><mn>0</mn></mtd></mtr><mtr><mtd><mn>0</mn></mtd><mtd><mtext>else"
            "</mtext></mtd></mtr></mtable><mo>)</mo>",
        ),
        (
            sum_where(span([A, B]), span([B, C]), at_least(A)),
            "<mo>∑</mo><mi>a</mi><mo>,</mo><mi>b</mi><mtext>\xa0where\xa0</mtext><mi>b</mi><mo>,</mo><mi>c</mi>"
            "<mo>≥</mo><mi>a</mi>",
        ),
        (join("a", A), ""),
    ],
    ids=["fraction", "right side", "chain", "base", "passes through", "cases", "condition", "text"],
)
def test_brackets_stand_where_they_are_needed(body: Any, expected: str) -> None:
    assert shown(body).replace("&#160;", "\xa0") == expected


def test_what_is_of_another_scenario_is_refused() -> None:
    with pytest.raises(TypeError, match="no figure of one scenario"):
        mathml(A + InCase(A, 1), Letters())


def test_formulas_read_as_their_values() -> None:
    """Of a model with experts: every formula of arithmetic, read from what is drawn, gives its figure."""
    scenario = {"model": "mixtral-8x7b", "accelerator": "h100-sxm", "tp": 2}
    scenario |= {"input_tokens": 1024, "output_tokens": 128, "concurrency": 8}
    made = mantile.estimate(parse_scenario(scenario, "test"))
    values, count = made.values(), 0
    for figure in made.equations.figures.values():
        if not isinstance(figure, Quantity):
            continue
        used = {node.operation for node in expression(figure.body) if isinstance(node, Apply)}
        numbers = [values[one] for one in (figure, *precedents(figure))]
        if not used or not used <= set(READ) or not all(isinstance(number, float) for number in numbers):
            continue
        text = mathml(figure.body, Numbers(values))
        said = read(ET.fromstring(f"<math>{text.replace('&#160;', ' ')}</math>"))
        worked = eval(said, {"max": max, "min": min, "floor": math.floor, "inf": math.inf, "nan": math.nan})
        assert worked == pytest.approx(values[figure], rel=1e-9, nan_ok=True), (figure.id, said)
        count += 1
    assert count > 500
