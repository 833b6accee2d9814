"""Graph to typeset mathematics: the body of a quantity as MathML, which browsers draw and readers speak.

What each operation looks like stands in the table of `operations`. A chain of sums or products needs no
brackets, and nothing needs any inside a fraction.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Protocol

from mantile.graph.operations import ATOM, COMPARISON, NEGATIVE, OPERATIONS
from mantile.graph.quantity import (
    Apply,
    Cases,
    InCase,
    Input,
    Literal,
    Node,
    Quantity,
    Span,
    Table,
    Words,
    expression,
)

_ASSOCIATIVE = ("add", "multiply")
_CRITERIA = ("at_least", "at_most", "below")
_LOW = ('<mo stretchy="false">(</mo>', '<mo stretchy="false">)</mo>')
"""Brackets round what is no higher than a letter; without a mathematical font others are too high."""
_COMMA = "<mo>,</mo>"


class Symbols(Protocol):
    """What stands for figures: markup of a symbol, or of a value."""

    def symbol(self, node: Input | Quantity) -> str: ...

    def table(self, node: Span | Table) -> str: ...


@dataclass(frozen=True, slots=True)
class _Part:
    """Markup of a node and how tightly it binds.

    In a template `{0:bare}` never gets brackets, `{0:atom}` unless it is one symbol, and `{0}` where it binds
    less tightly than `least`.
    """

    markup: str
    binds: int
    least: int

    def __format__(self, form: str) -> str:
        least = {"bare": 0, "atom": ATOM}.get(form, self.least)
        return self.markup if self.binds >= least else f"<mrow><mo>(</mo>{self.markup}<mo>)</mo></mrow>"


def mathml(node: Node, symbols: Symbols) -> str:
    """An expression as the inside of a `math` element; empty for a text, which is no formula.

    Args:
        node: of the graph; a named one is its symbol.
        symbols: what stands for named figures.

    Raises:
        TypeError: for a node that no estimate of one scenario has: a figure of another one.

    Example:
        mathml(a / (b + c), symbols)    # <mrow><mfrac>a<mrow>b<mo>+</mo>c</mrow></mfrac></mrow>
    """
    parts = [part for part in expression(node) if isinstance(part, Apply)]
    if isinstance(node, Literal) and isinstance(node.value, str):
        return ""
    return "" if any(not OPERATIONS[part.operation].mathml for part in parts) else _markup(node, symbols)[0]


def _markup(node: Node, symbols: Symbols) -> tuple[str, int]:
    """Markup that is one element, and how tightly it binds."""
    if isinstance(node, Input | Quantity):
        return symbols.symbol(node), ATOM
    if isinstance(node, Span | Table):
        return symbols.table(node), ATOM
    if isinstance(node, Words):
        return f"<mrow><mtext>{escape(node.what)} of&#160;</mtext>{symbols.table(node.span)}</mrow>", ATOM
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, InCase | Cases) or not isinstance(node, Apply):
        raise TypeError(f"{node!r} cannot be typeset: it is no figure of one scenario")
    operation = OPERATIONS[node.operation]
    parts: list[_Part] = []
    for place, argument in enumerate(node.arguments):
        markup, binds = _markup(argument, symbols)
        after = place > 0 and node.operation not in _ASSOCIATIVE
        parts.append(_Part(markup, binds, operation.precedence + after))
    shown = operation.mathml.format(*parts, **_lists(parts, node))
    binds = ATOM if node.operation == "divide" else operation.precedence
    is_open = any(mark in operation.mathml for mark in ("<mtext>", "{and}"))  # words end nowhere
    if not any(tall in shown for tall in ("<mfrac>", "<mtable>")):
        shown = shown.replace("<mo>(</mo>", _LOW[0]).replace("<mo>)</mo>", _LOW[1])
    return f"<mrow>{shown}</mrow>", COMPARISON if is_open else binds


def _lists(parts: list[_Part], node: Apply) -> dict[str, str]:
    """Any number of arguments, as templates ask for them."""
    bare = [f"{part:bare}" for part in parts]
    both = "<mtext>&#160;and&#160;</mtext>"
    first = len(bare) % 2  # behind the values there are pairs: keys, and what they must be
    pairs = [
        f"{keys}{'' if isinstance(key, Apply) and key.operation in _CRITERIA else '<mo>=</mo>'}{shown}"
        for keys, shown, key in zip(
            bare[first::2], bare[first + 1 :: 2], node.arguments[first + 1 :: 2], strict=True
        )
    ]
    return {
        "all": _COMMA.join(bare),
        "rest": _COMMA.join(bare[1:]),
        "and": both.join(bare),
        "pairs": both.join(pairs),
        "product": "<mo>·</mo>".join(f"{part:atom}" for part in parts),
    }


def _literal(node: Literal) -> tuple[str, int]:
    if isinstance(node.value, str):
        return f"<mtext>“{escape(node.value)}”</mtext>", ATOM
    number = f"<mn>{abs(node.value):.15g}</mn>"
    return (f"<mrow><mo>−</mo>{number}</mrow>", NEGATIVE) if node.value < 0 else (number, ATOM)
