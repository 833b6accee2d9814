"""Graph to words: how a quantity is worked out, in one sentence."""

from __future__ import annotations

from mantile.graph.operations import ATOM, OPERATIONS
from mantile.graph.quantity import Apply, InCase, Input, Literal, Named, Node, Quantity, Span


def sentence(figure: Named) -> str:
    """How a quantity is worked out, or what an input means."""
    if isinstance(figure, Input):
        return figure.note
    return figure.note or _words(figure.body)[0]


def called(figure: Named) -> str:
    """How a sentence calls a figure: its name, or its label without the capital of an ordinary word."""
    if figure.name:
        return figure.name
    head = figure.label.split(" ", 1)[0]
    ordinary = head[:1].isupper() and head[1:].islower()
    return figure.label[0].lower() + figure.label[1:] if ordinary else figure.label


def _words(node: Node) -> tuple[str, int]:
    if isinstance(node, Input | Quantity):
        return called(node), ATOM
    if isinstance(node, InCase):
        return called(node.figure), ATOM
    if isinstance(node, Literal):
        return str(node.value), ATOM
    if isinstance(node, Span):
        return _common(node), ATOM
    assert isinstance(node, Apply)
    operation = OPERATIONS[node.operation]
    parts = [_words(argument) for argument in node.arguments]
    texts = [
        f"({text})" if binds < operation.precedence + (index > 0 and operation.precedence < ATOM) else text
        for index, (text, binds) in enumerate(parts)
    ]
    if operation.precedence == ATOM:
        texts = [text for text, _ in parts]
    listed = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
    # In words a function reads as loosely as a comparison: inside an operator it needs brackets to be read correctly.
    reads = 2 if operation.precedence == ATOM else operation.precedence
    return operation.sentence.replace("{all:and}", listed).format(*texts), reads


def _common(members: Span) -> str:
    """What the members of a span have in common: the words their labels share, in the front or in the end."""
    labels = [called(member) for member in members.members]
    first, last = labels[0], labels[-1]
    if len(labels) == 1:
        return first
    return f"{first} … {last}"
