"""Graph to formula text, with Excel's precedence and as few brackets as keep the order of evaluation."""

from __future__ import annotations

from typing import Protocol

from mantile.graph.operations import ATOM, NEGATIVE, OPERATIONS
from mantile.graph.quantity import Apply, Cases, InCase, Input, Literal, Node, Quantity, Span, Table, Words


class Cells(Protocol):
    """Where named figures stand."""

    def cell(self, node: Input | Quantity) -> str: ...

    def across(self, node: InCase) -> str: ...

    def beside(self, node: Cases) -> str: ...

    def range(self, members: Span) -> str: ...

    def grid(self, figures: Table) -> str: ...

    def words(self, node: Words) -> str: ...

    def lies_in_a_row(self, members: Span) -> bool: ...


def formula(node: Node, cells: Cells) -> str:
    """The text of a cell that holds `node`, with the leading equals sign.

    A named node prints as a link to its cell.
    """
    return "=" + _expression(node, cells)[0]


def _expression(node: Node, cells: Cells) -> tuple[str, int]:
    if not isinstance(node, Apply):
        return _operand(node, cells)
    operation = OPERATIONS[node.operation]
    parts = [_expression(argument, cells) for argument in node.arguments]
    of = node.arguments[0]
    if node.operation == "index" and isinstance(of, Span | Words) and len(of.members) == 1:
        if parts[1][0] == "1":
            return parts[0][0].partition(":")[0], ATOM
        operation = OPERATIONS["choose"]  # Gnumeric finds nothing in a range of one cell
        parts = [parts[1], (parts[0][0].partition(":")[0], ATOM)]
    elif node.operation == "index" and isinstance(of, Span) and cells.lies_in_a_row(of):
        parts[0] = (f"{parts[0][0]},1", ATOM)  # one index alone is a row's number to some engines
    if operation.precedence == ATOM:
        texts = [text for text, _ in parts]
    else:
        # Every binary operator is left-associative: a right argument that binds equally needs brackets.
        texts = [
            f"({text})" if binds < operation.precedence + (index > 0) else text
            for index, (text, binds) in enumerate(parts)
        ]
    return operation.excel.format(*texts, all=",".join(texts)), operation.precedence


def _operand(node: Node, cells: Cells) -> tuple[str, int]:
    if isinstance(node, (Input, Quantity)):  # quicker than a union, and most are of these kinds
        return cells.cell(node), ATOM
    if isinstance(node, Literal):
        return _literal(node)
    if isinstance(node, InCase):
        return cells.across(node), ATOM
    if isinstance(node, Cases):
        return cells.beside(node), ATOM
    if isinstance(node, Span):
        return cells.range(node), ATOM
    if isinstance(node, Table):
        return cells.grid(node), ATOM
    if isinstance(node, Words):
        return cells.words(node), ATOM
    raise TypeError(f"{node!r} cannot be printed as a formula")


def _literal(node: Literal) -> tuple[str, int]:
    if isinstance(node.value, str):
        return '"' + node.value.replace('"', '""') + '"', ATOM
    text = repr(node.value)
    if "e" in text:
        mantissa, exponent = text.split("e")
        text = f"{mantissa}E{int(exponent):+d}"
    return text, NEGATIVE if node.value < 0 else ATOM
