"""Graph to words: how a quantity is worked out, in one sentence that names everything it follows from."""

from __future__ import annotations

from mantile.graph.operations import ATOM, OPERATIONS
from mantile.graph.quantity import Apply, InCase, Input, Literal, Named, Node, Quantity, Span


def sentence(figure: Named) -> str:
    """How a quantity is worked out and, where a note says so, why; what an input means."""
    if isinstance(figure, Input):
        return figure.note
    how = _words(figure.body)[0]
    return f"{how} · {figure.note}" if figure.note else how


def called(figure: Named) -> str:
    """How a sentence calls a figure: its name, or its label without the capital of an ordinary word."""
    return figure.name or lowered(figure.label)


def lowered(label: str) -> str:
    """A label without the capital of an ordinary first word: "Weights read" is "weights read", "KV cache" stays."""
    head = label.split(" ", 1)[0]
    ordinary = head[:1].isupper() and head[1:].islower()
    return label[0].lower() + label[1:] if ordinary else label


def _words(node: Node) -> tuple[str, int]:
    if isinstance(node, Input | Quantity):
        return called(node), ATOM
    if isinstance(node, InCase):
        return called(node.figure), ATOM
    if isinstance(node, Literal):
        return str(node.value), ATOM
    if isinstance(node, Span):
        return _ends(node), ATOM
    assert isinstance(node, Apply)
    operation = OPERATIONS[node.operation]
    parts = [_words(argument) for argument in node.arguments]
    if operation.precedence == ATOM:
        texts = [text for text, _ in parts]
    else:
        texts = [
            f"({text})" if binds < operation.precedence + (index > 0) else text
            for index, (text, binds) in enumerate(parts)
        ]
    listed = texts[0] if len(texts) == 1 else ", ".join(texts[:-1]) + " and " + texts[-1]
    # In words a function reads as loosely as a comparison: inside an operator it needs brackets to be read correctly.
    reads = 2 if operation.precedence == ATOM else operation.precedence
    return operation.sentence.replace("{all:and}", listed).format(*texts), reads


def _ends(members: Span) -> str:
    """The first and the last figure of a span, or what all of them are called."""
    first, last = called(members.members[0]), called(members.members[-1])
    return first if first == last else f"{first} … {last}"
