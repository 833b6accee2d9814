"""Graph to words: how a quantity is worked out, in one sentence that names everything it follows from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mantile.graph.operations import ATOM, COMPARISON, OPERATIONS, PRODUCT
from mantile.graph.quantity import Apply, InCase, Input, Literal, Named, Node, Quantity, Span, precedents

Names = Mapping[Named, str]


def sentence(figure: Named) -> str:
    """How a quantity is worked out and, where a note says so, why; what an input means."""
    if isinstance(figure, Input):
        return figure.note
    how = _words(figure.body, names(figure))[0]
    return f"{how} · {figure.note}" if figure.note else how


def called(figure: Named) -> str:
    """How sentences call a figure: its name, or its label without the capital of an ordinary word."""
    return figure.name or lowered(figure.label)


def lowered(label: str) -> str:
    """A label without the capital of an ordinary first word: "Weights read" is "weights read", "KV cache" stays."""
    head = label.split(" ", 1)[0]
    ordinary = head[:1].isupper() and head[1:].islower()
    return label[0].lower() + label[1:] if ordinary else label


def names(figure: Quantity) -> dict[Named, str]:
    """How the sentence of a quantity calls each of its precedents, told apart where two have the same name.

    What labels of a quantity and of a precedent both end in is left out: "Draw, decode" follows from "idle power".
    """
    parts = precedents(figure)
    several = Counter(called(part) for part in parts)
    result = {part: called(part) if several[called(part)] == 1 else lowered(part.label) for part in parts}
    _, comma, ending = figure.label.rpartition(", ")
    if comma:
        short = {part: name.removesuffix(comma + ending) for part, name in result.items()}
        several = Counter(short.values())
        result = {part: short[part] if several[short[part]] == 1 else name for part, name in result.items()}
    return result


def _words(node: Node, names: Names) -> tuple[str, int]:
    """An expression in words, and how tightly they bind."""
    if isinstance(node, InCase):
        return called(node.figure), ATOM
    if isinstance(node, Input | Quantity):
        return names[node], ATOM
    if isinstance(node, Literal):
        return str(node.value), ATOM
    if isinstance(node, Span):
        return _ends(node, names), ATOM
    assert isinstance(node, Apply)
    phrase = _phrase(node, names)
    if phrase:
        return phrase, COMPARISON
    operation = OPERATIONS[node.operation]
    binds = _INSIDE.get(operation.name, 0 if operation.precedence == ATOM else operation.precedence)
    texts = [
        f"({text})" if binding < binds + (index > 0 and binds > 0) else text
        for index, (text, binding) in enumerate(_words(argument, names) for argument in node.arguments)
    ]
    listed = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
    # In words a function reads as loosely as a comparison: inside an operator it needs brackets to be read correctly.
    reads = COMPARISON if operation.precedence == ATOM else operation.precedence
    return operation.sentence.replace("{all:and}", listed).format(*texts), reads


_INSIDE = {"remainder": PRODUCT, "floor": ATOM, "absolute": ATOM, "logarithm": ATOM}
"""How tightly arguments of some functions must bind to be read correctly without brackets."""


def _phrase(node: Apply, names: Names) -> str:
    """How some operations are said of some arguments; empty where the table says it.

    A flag stands for itself: "where continuous". A limit follows what it limits: "batch − 1, at least 0". Of two figures one is
    the larger. A choice by name is a look-up. An override holds if there is one. What is not one figure or one product stands in brackets in a list.
    """
    first, *others = node.arguments
    match node.operation, first, others:
        case "greater", (Input() | Quantity()), [Literal(value=0)] if first.unit == "flag":
            return names[first]
        case "less_equal", (Input() | Quantity()), [Literal(value=0)] if first.unit == "flag":
            return f"not {names[first]}"
        case "where", Apply("is_number", (checked,)), [then, otherwise] if checked is then:
            return f"{_item(then, names)} if there is one, else {_last(otherwise, names)}"
        case "where", condition, [then, otherwise]:
            return f"{_item(then, names)} where {_words(condition, names)[0]}, else {_last(otherwise, names)}"
        case (("maximum" | "minimum"), Literal(), [figure]) if not isinstance(figure, Span | Literal):
            return f"{_item(figure, names)}, at {_LIMITS[node.operation]} {first.value}"
        case (("maximum" | "minimum"), _, [figure]) if not isinstance(first, Span):
            return f"the {_OF_TWO[node.operation]} of {_item(first, names)} and {_item(figure, names)}"
        case (("maximum" | "minimum"), _, [*_, last]) if not isinstance(first, Span):
            items = ", ".join(_item(part, names) for part in node.arguments[:-1])
            return f"the {_OF_ALL[node.operation]} of {items} and {_item(last, names)}"
        case "index", Span(), [Apply(operation="match", arguments=(key, keys, _))]:
            return f"{_words(first, names)[0]}, looked up for {_item(key, names)} in {_words(keys, names)[0]}"
    return ""


_LIMITS = {"maximum": "least", "minimum": "most"}
_OF_TWO = {"maximum": "larger", "minimum": "smaller"}
_OF_ALL = {"maximum": "largest", "minimum": "smallest"}


def _item(node: Node, names: Names) -> str:
    """An expression inside a longer phrase."""
    text, binds = _words(node, names)
    return f"({text})" if binds <= COMPARISON else text


def _last(node: Node, names: Names) -> str:
    """An expression at the end of a phrase, in brackets if it ends in what could be said of the whole phrase."""
    return (
        _item(node, names)
        if isinstance(node, Apply) and node.operation in _TRAILING
        else _words(node, names)[0]
    )


_TRAILING = {"maximum", "minimum", "round_up", "if_error"}


def _ends(members: Span, names: Names) -> str:
    """The first and the last figure of a span, or what all of them are called."""
    if len({called(member) for member in members.members}) == 1:
        return called(members.members[0])
    return f"{names[members.members[0]]} … {names[members.members[-1]]}"
