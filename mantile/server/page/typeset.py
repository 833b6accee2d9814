"""A figure's formula typeset: in symbols, in numbers, and what each symbol stands for.

A symbol is a letter by the unit of its figure, with what its id says as a subscript: t with "launch".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from mantile.estimates.estimate import Estimate
from mantile.graph.mathml import mathml
from mantile.graph.quantity import NOT_KNOWN, Input, Named, Node, Quantity, Span, Table, expression, is_named
from mantile.server.page.text import scaled

_LETTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "s": ("t", ("time",)),
    "B": ("M", ("bytes", "memory")),
    "B/s": ("B", ("bandwidth",)),
    "FLOP": ("C", ("flops",)),
    "FLOP/s": ("F", ("flops",)),
    "W": ("P", ("power",)),
    "USD/h": ("p", ("usd", "per", "hour")),
    "flag": ("δ", ()),
    "1": ("r", ()),
}
"""By unit: the letter, and words of an id that it says already."""
_FACTOR, _PER, _COUNT = "η", "q", "n"
_FEW = 3
"""Members of a table that are written one by one."""
_MOST = 3
"""Parts of an id that a subscript may have."""


def typeset(made: Estimate, figure: Named | None) -> dict[str, Any] | None:
    """The formula of a figure: `symbols` and `numbers` as MathML, and `where`, each of its figures.

    None where there is none: an input, or a text.
    """
    if not isinstance(figure, Quantity):
        return None
    shown = _shown(figure)
    letters = _symbols([figure, *shown])
    body = mathml(figure.body, _Writer(letters.__getitem__))
    if not body:
        return None
    values = made.values()

    def value(one: Named) -> str:
        return _value(scaled(values.get(one), one.unit))

    return {
        "symbols": _equation(letters[figure], body),
        "numbers": _equation(value(figure), mathml(figure.body, _Writer(value))),
        "where": [
            {
                "symbol": _math(letters[one]),
                "id": one.id,
                "label": one.label,
                "value": scaled(values.get(one), one.unit),
            }
            for one in (figure, *shown)
        ],
    }


def _equation(left: str, right: str) -> Markup:
    """Both sides; on a narrow screen they stand below each other, as browsers do not break formulas."""
    return _math(f"{left}<mo>=</mo>") + Markup(" ") + _math(right)


def _math(inside: str) -> Markup:
    """A formula of escaped parts."""
    return Markup(f'<math displaystyle="true">{inside}</math>')


class _Writer:
    """Figures by a function of each; a table by its first and last, or its members where they are few."""

    def __init__(self, write: Callable[[Named], str]) -> None:
        self.write = write

    def symbol(self, node: Input | Quantity) -> str:
        return self.write(node)

    def table(self, node: Span | Table) -> str:
        ends = [self.write(one) for one in _named(node)]
        sign = "<mo>,</mo>" if len(node.members) <= _FEW else "<mo>,</mo><mo>…</mo><mo>,</mo>"
        return f"<mrow>{sign.join(ends)}</mrow>"


def _named(node: Span | Table) -> tuple[Named, ...]:
    """The members of a table that are written."""
    return node.members if len(node.members) <= _FEW else (node.members[0], node.members[-1])


def _shown(figure: Quantity) -> list[Named]:
    """What a formula writes a symbol for, in order of appearance, each once."""
    found: dict[Named, None] = {}
    for node in expression(figure.body, leaf=_is_leaf):
        if isinstance(node, Span | Table):
            found |= dict.fromkeys(_named(node))
        elif isinstance(node, Input | Quantity):
            found[node] = None
        elif span := getattr(node, "span", None):  # words beside figures
            found |= dict.fromkeys(_named(span))
    found.pop(figure, None)
    return list(found)


def _is_leaf(node: Node) -> bool:
    return is_named(node) or isinstance(node, Span | Table)


def _symbols(figures: Sequence[Named]) -> dict[Named, str]:
    """A symbol for each figure, no two alike: as few parts of its id as tell it from the others."""
    count = dict.fromkeys(figures, 1)
    while True:
        found = {one: _symbol(one, parts) for one, parts in count.items()}
        again = [
            one
            for one, symbol in found.items()
            if count[one] < _MOST and list(found.values()).count(symbol) > 1
        ]
        if not again:
            return found
        for one in again:
            count[one] += 1


def _symbol(figure: Named, parts: int) -> str:
    """A letter, and so many parts of the id from its end without what the letter says."""
    letter, said = _letter(figure)
    words = " ".join(figure.id.split(".")[-parts:]).replace("_", " ").replace("-", " ").split()
    below = [word for word in words if word not in said]
    if not below:
        return f"<mi>{letter}</mi>"
    return f"<msub><mi>{letter}</mi><mtext>{escape(' '.join(below))}</mtext></msub>"


def _letter(figure: Named) -> tuple[str, tuple[str, ...]]:
    if figure.unit in _LETTERS:
        factor = isinstance(figure, Quantity) and figure.factor
        return (_FACTOR, ()) if factor else _LETTERS[figure.unit]
    return (_PER if "/" in figure.unit else _COUNT), ()


def _value(text: str) -> str:
    """A value with its unit."""
    first, _, unit = text.partition("\u00a0")
    if text == NOT_KNOWN or not first.lstrip("−-")[:1].isdigit():
        return f"<mtext>{escape(text)}</mtext>"
    sign, number = ("<mo>−</mo>", first[1:]) if first[0] in "−-" else ("", first)
    written = f"{sign}<mn>{escape(number)}</mn>"
    return f"<mrow>{written}<mtext>&#160;{escape(unit)}</mtext></mrow>" if unit else f"<mrow>{written}</mrow>"
