"""Formulas that say the same in another order: H1*(H2*H3) and H3*H1*H2, or MAX(H1,H2) and MAX(H2,H1).

INDEX of a row, too, says the same with and without the number of the one row that there is, and INDEX of one
cell the same as CHOOSE, or as the cell; so does a range of one cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"]|"")*")
    | (?P<cell>(?:\[[^\]]*\]\$?[A-Z]*(?::\[[^\]]*\]\$?[A-Z]*)?|\{[^}]*\}))  # as `Places` writes references
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
    | (?P<function>[A-Z]+\()
    | (?P<sign><=|>=|<>|[-+*/^&=<>(),])""",
    re.VERBOSE,
)
_LEVELS = (("=", "<", ">", "<=", ">=", "<>"), ("&",), ("+", "-"), ("*", "/"))
_UNORDERED = ("MAX(", "MIN(", "SUM(", "AND(", "OR(")
_INVERSE = {"-": "+", "/": "*"}
_ONE = ("number", "1.0")
_NEUTRAL = {"+": ("number", "0.0"), "*": _ONE}

Form = tuple[Any, ...]
"""An operation and the forms of its operands, in an order that does not depend on how they were written."""


def normal_form(formula: str) -> Form | None:
    """A formula whose references are ids, without the order and the brackets that change nothing.

    None if it is none.

    Sums and products become lists of their terms and factors, in one order; so do the arguments of functions
    that take them in any order.
    """
    try:
        return _Parser(list(_tokens(formula.removeprefix("=")))).whole()
    except (ValueError, RecursionError):  # no formula of ours is as deep
        return None


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            raise ValueError(text[place:])
        first, _, last = match.group().partition(":")
        yield match.lastgroup, first if first == last else match.group()
        place = match.end()


class _Parser:
    """One formula, read from left to right."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self.tokens, self.place = [*tokens, ("end", "")], 0

    def whole(self) -> Form:
        form = self.level(0)
        if self.tokens[self.place][0] != "end":
            raise ValueError(self.tokens[self.place][1])
        return form

    def level(self, number: int) -> Form:
        """Operators that bind alike, the weakest first."""
        if number == len(_LEVELS):
            return self.power()
        form = self.level(number + 1)
        while self.tokens[self.place][1] in _LEVELS[number] and self.tokens[self.place][0] == "sign":
            sign = self.take()
            form = _operation(sign, form, self.level(number + 1))
        return form

    def power(self) -> Form:
        form = self.signed()
        while self.tokens[self.place][1] == "^":
            self.take()
            form = ("^", form, self.signed())
        return form

    def signed(self) -> Form:
        """In Excel a sign before a number binds tighter than a power."""
        if self.tokens[self.place] == ("sign", "-"):
            self.take()
            return _flat("+", [("-", self.signed())])
        return self.atom()

    def atom(self) -> Form:
        kind, text = self.tokens[self.place]
        self.take()
        if kind == "function":
            arguments = list(self.arguments())
            if text in _UNORDERED:
                return _flat(text, [("", argument) for argument in arguments])
            if text == "INDEX(" and len(arguments) == 3 and arguments[1] == _ONE:
                del arguments[1]
            if text == "INDEX(" and len(arguments) == 2 and _is_one_cell(arguments[0]):
                return arguments[0] if arguments[1] == _ONE else ("CHOOSE(", *reversed(arguments))
            return (text, *arguments)
        if text == "(":
            form = self.level(0)
            self.expect(")")
            return form
        if kind not in ("text", "cell", "number"):
            raise ValueError(text)
        return (kind, str(float(text)) if kind == "number" else text)

    def arguments(self) -> Iterator[Form]:
        while True:
            yield self.level(0)
            if self.tokens[self.place][1] != ",":
                break
            self.take()
        self.expect(")")

    def take(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1][1]

    def expect(self, text: str) -> None:
        if self.take() != text:
            raise ValueError(text)


def _is_one_cell(form: Form) -> bool:
    """Whether a reference leads to a cell, and not to a range."""
    return form[0] == "cell" and form[1].startswith("[") and ":[" not in form[1]


def _operation(sign: str, left: Form, right: Form) -> Form:
    if sign in ("+", "-", "*", "/"):
        return _flat(_INVERSE.get(sign, sign), [("", left), (sign if sign in _INVERSE else "", right)])
    if sign in ("=", "<>"):
        return (sign, *sorted((left, right), key=repr))
    return (sign, left, right)


def _flat(operator: str, parts: list[tuple[str, Form]]) -> Form:
    """An operation whose order does not matter.

    Parts that are the same operation are taken apart, then all are sorted.

    Args:
        parts: each with the sign of the inverse operation, or nothing before it.
    """
    terms: list[tuple[str, Form]] = []
    inverse = next((key for key, value in _INVERSE.items() if value == operator), "")
    for sign, form in parts:
        if form[0] == operator:
            for own, term in form[1:]:
                terms.append((inverse if inverse and own != sign else "", term))
        elif form != _NEUTRAL.get(operator):
            terms.append((sign, form))
    if len(terms) == 1 and not terms[0][0]:
        return terms[0][1]
    return (operator, *sorted(terms, key=repr))
