"""Figures whose formula stands in the formulas that read them: they need no row of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TypeGuard

from mantile.graph.excel import Cells, formula
from mantile.graph.operations import OPERATIONS
from mantile.graph.quantity import (
    Apply,
    Input,
    Literal,
    Named,
    Node,
    Quantity,
    Span,
    all_of,
    ancestors,
    as_node,
    is_number,
    rebuilt,
    where,
)

_BRACKETS = 2  # characters
_PASSES_OVER = frozenset(("total", "maximum", "minimum", "all_of"))
"""Operations that pass over a text in a cell, and fail on a text that is worked out in them."""
_CHOICES = {"where": 1, "choose": 1, "if_error": 0}
"""Operations that give one of their arguments, from this one on."""
_NO_NUMBERS = frozenset(
    ("less", "less_equal", "greater", "greater_equal", "equal", "all_of", "is_number", "is_empty", "is_error")
    + ("join", "text", "rounded", "percent", "until", "behind")
)


@dataclass(frozen=True)
class _Place:
    """Where a formula reads a figure.

    Args:
        in_branch: inside IF.
        passed_over: where a text in a cell is passed over.
        guarded: where the condition of the figure is known to hold.
    """

    in_branch: bool = False
    passed_over: bool = False
    guarded: bool = False

    def beside(self, other: _Place) -> _Place:
        """Both places."""
        return _Place(
            self.in_branch or other.in_branch,
            self.passed_over or other.passed_over,
            self.guarded and other.guarded,
        )


@dataclass
class _Formula:
    """A formula as far as it is put together.

    Args:
        length: characters.
        branches, inside: whether there is an IF, and one that is not all of it.
        reads: figures, how often and where.
        readers: figures that read it.
    """

    length: int
    branches: bool = False
    inside: bool = False
    reads: dict[Quantity, tuple[int, _Place]] = field(default_factory=dict)
    readers: set[Quantity] = field(default_factory=set)

    def read(self, figure: Quantity, times: int, place: _Place) -> None:
        """Read a figure in a further place."""
        before, others = self.reads.get(figure, (0, place))
        self.reads[figure] = before + times, place.beside(others)


class Inlined:
    """Some figures put into those that read them, as far as no formula gets too long or has IF in IF.

    What costs the fewest characters goes first.

    Args:
        roots: figures that are asked for, which stay.
        made: figures that may go.
        cells: where figures stand, for the length of formulas.
        most: characters of a formula.
        others: nodes that follow from none that may go.

    Attributes:
        figures: those that are left, by what they were.
    """

    def __init__(
        self,
        roots: Iterable[Named],
        made: Iterable[Named],
        cells: Cells,
        most: int,
        others: Collection[Node] = (),
    ) -> None:
        wanted = [root for root in roots if isinstance(root, Quantity)]
        possible = set(made)
        nodes = ancestors(*wanted, without=others)
        self._order = [node for node in nodes if isinstance(node, Quantity) and node in possible]
        self._rank = {figure: place for place, figure in enumerate(self._order)}
        self._most = most
        self._staying = set(wanted)
        self._no_numbers: dict[Node, bool] = {}
        self._reference = min((len(cells.cell(figure)) for figure in self._order), default=0)
        self._formulas = {figure: _Formula(len(formula(figure.body, cells))) for figure in self._order}
        for figure in self._order:
            self._read(figure, figure.body)
        self._eliminate()
        self.figures: Mapping[Named, Quantity] = self._put_together()

    def _read(
        self,
        figure: Quantity,
        node: Node,
        place: _Place = _Place(),
        known: frozenset[str] = frozenset(),
        times: int = 1,
    ) -> None:
        """What a part of a formula reads; members of spans stay, as they stand below each other."""
        own = self._formulas[figure]
        if isinstance(node, Quantity) and node in self._formulas:
            own.read(node, times, replace(place, guarded=place.guarded and _holds(node, known)))
            self._formulas[node].readers.add(figure)
        elif isinstance(node, Span):
            self._staying.update(member for member in node.members if isinstance(member, Quantity))
        elif _is(node, "where"):
            own.branches = True
            own.inside |= node is not figure.body
            condition, then, otherwise = node.arguments
            first = not place.in_branch
            within = _known(condition)
            for one in _conjuncts(condition):
                asked = _is(one, "is_number")
                self._read(figure, one, _Place(True, True, guarded=first and asked), within, times)
            self._read(figure, then, _Place(True, place.passed_over, guarded=first), within, times)
            self._read(figure, otherwise, _Place(True, place.passed_over), within, times)
        elif isinstance(node, Apply):
            over = node.operation in _PASSES_OVER or (place.passed_over and node.operation in _CHOICES)
            inner = replace(place, passed_over=over)
            printed = OPERATIONS[node.operation].excel
            for number, part in enumerate(node.arguments):
                again = max(1, printed.count(f"{{{number}}}"))
                self._read(figure, part, inner, known, times * again)

    def _eliminate(self) -> None:
        waiting = [(self._cost(figure), self._rank[figure], figure) for figure in self._order]
        heapify(waiting)
        while waiting:
            cost, rank, figure = heappop(waiting)
            if figure not in self._formulas:
                continue
            now = self._cost(figure)
            if now > cost:
                heappush(waiting, (now, rank, figure))
            elif self._can_go(figure):
                for other in self._go(figure):
                    heappush(waiting, (self._cost(other), self._rank[other], other))

    def _growth(self, figure: Quantity, reader: Quantity) -> int:
        """Characters that a formula gets longer by."""
        longer = self._formulas[figure].length - 1 + _BRACKETS - self._reference
        return self._formulas[reader].reads[figure][0] * longer

    def _cost(self, figure: Quantity) -> int:
        """Characters in all, and twice those of the longest formula, which has no room for others."""
        total = longest = 0
        for reader in self._formulas[figure].readers:
            more = self._growth(figure, reader)
            total += more
            longest = max(longest, self._formulas[reader].length + more)
        return total + 2 * longest

    def _can_go(self, figure: Quantity) -> bool:
        own = self._formulas[figure]
        if figure in self._staying:
            return False
        for reader in own.readers:
            there = self._formulas[reader]
            _, place = there.reads[figure]
            if (
                there.length + self._growth(figure, reader) > self._most
                or (own.branches and place.in_branch and not self._branch_goes(figure, place))
                or (place.passed_over and self._is_no_number(figure))
            ):
                return False
        return True

    def _branch_goes(self, figure: Quantity, place: _Place) -> bool:
        """Whether the IF of a figure is none in a formula that reads it there."""
        return not self._formulas[figure].inside and (
            _flag(figure.body) is not None or (place.guarded and _is(figure.body, "where"))
        )

    def _go(self, figure: Quantity) -> set[Quantity]:
        """Put a figure into its readers; the figures whose cost changes."""
        own = self._formulas[figure]
        changed = set(own.reads)
        for reader in own.readers:
            there = self._formulas[reader]
            there.length += self._growth(figure, reader)
            times, place = there.reads.pop(figure)
            goes = self._branch_goes(figure, place)
            if own.branches and not goes:
                there.branches = there.inside = True
            for part, (often, inner) in own.reads.items():
                guarded = inner.guarded and (not place.in_branch or (goes and place.guarded))
                within = replace(inner, in_branch=place.in_branch or inner.in_branch, guarded=guarded)
                there.read(part, times * often, within)
                self._formulas[part].readers.add(reader)
            changed |= {reader, *there.reads}
        for part in own.reads:
            self._formulas[part].readers.discard(figure)
        del self._formulas[figure]
        return changed

    def _is_no_number(self, node: Node) -> bool:
        """Whether a node may be a text or a truth value."""
        if node not in self._no_numbers:
            self._no_numbers[node] = any(self._is_no_number(part) for part in _given(node)) or (
                isinstance(node.value, str)
                if isinstance(node, Literal)
                else not isinstance(node.value, int | float)
                if isinstance(node, Input)
                else node.operation in _NO_NUMBERS
                if isinstance(node, Apply)
                else not isinstance(node, Quantity | Span)
            )
        return self._no_numbers[node]

    def _put_together(self) -> dict[Named, Quantity]:
        """The figures that are left, by what they were."""
        found: dict[Quantity, Node] = {}
        left: dict[Named, Quantity] = {}
        for figure in self._order:
            body = _put(figure.body, found)
            if figure in self._formulas:
                left[figure] = found[figure] = replace(figure, body=body)
            else:
                found[figure] = body
        return left


def _put(node: Node, found: Mapping[Quantity, Node], known: frozenset[str] = frozenset()) -> Node:
    """An expression with others in place of figures, without branches whose condition holds there.

    Args:
        known: what holds.
    """
    if isinstance(node, Quantity):
        other = found.get(node, node)
        if _is(other, "where") and _holds(node, known):
            return other.arguments[1]
        flag = _flag(other)
        return other if flag is None else flag
    if _is(node, "where"):
        condition, then, otherwise = node.arguments
        within = known | _known(condition)
        parts = (part for one in _conjuncts(condition) for part in _asked(one, found, known, within))
        conditions = {repr(part): part for part in parts}.values()
        asked = all_of(*conditions) if len(conditions) > 1 else next(iter(conditions))
        return where(asked, _put(then, found, within), _put(otherwise, found, known))
    if not isinstance(node, Apply | Span):
        return node
    if _is(node, "greater") and _is_literal(node.arguments[1], 0):
        flag = found.get(node.arguments[0]) if isinstance(node.arguments[0], Quantity) else None
        if (
            flag is not None
            and _is(flag, "where")
            and _is_literal(flag.arguments[1], 1)
            and _flag(flag) is not None
        ):
            return flag.arguments[0]
    return rebuilt(node, partial(_put, found=found, known=known))


def _asked(
    condition: Node, found: Mapping[Quantity, Node], known: frozenset[str], within: frozenset[str]
) -> Iterator[Node]:
    """A condition among others; a figure is a number where its condition holds and its value is one."""
    if not _is(condition, "is_number"):
        yield from _conjuncts(_put(condition, found, known))
        return
    of = condition.arguments[0]
    other = found.get(of) if isinstance(of, Quantity) else None
    if other is not None and _is(other, "where") and isinstance(of, Quantity) and _is_told(of):
        yield from _conjuncts(other.arguments[0])
        yield is_number(other.arguments[1])
    else:
        yield is_number(_put(of, found, within))


def _holds(figure: Quantity, known: frozenset[str]) -> bool:
    """Whether the condition of a figure is known to hold."""
    if not _is(figure.body, "where"):
        return False
    return _known(figure.body.arguments[0]) <= known or (
        _is_told(figure) and repr(is_number(figure)) in known
    )


def _is_told(figure: Quantity) -> bool:
    """Whether a figure is a text where its condition does not hold, and the condition never an error."""
    if not _is(figure.body, "where"):
        return False
    condition, _, otherwise = figure.body.arguments
    is_text = isinstance(otherwise, Literal) and isinstance(otherwise.value, str)
    return is_text and all(map(_is_certain, _conjuncts(condition)))


def _is_certain(condition: Node) -> bool:
    """Whether a condition is never an error."""
    return _is(condition, "is_number") or (
        _is(condition, "greater") and _is(condition.arguments[0], "count_where")
    )


def _flag(node: Node) -> Node | None:
    """What is 1 where its condition holds, else 0, or the other way round, without IF; None for all else."""
    if not _is(node, "where"):
        return None
    condition, then, otherwise = node.arguments
    if _is_literal(then, 1) and _is_literal(otherwise, 0):
        return condition * as_node(1)
    if _is_literal(then, 0) and _is_literal(otherwise, 1):
        return 1 - condition * as_node(1)
    return None


def _is(node: Node, operation: str) -> TypeGuard[Apply]:
    return isinstance(node, Apply) and node.operation == operation


def _is_literal(node: Node, value: int) -> bool:
    return isinstance(node, Literal) and node.value == value


def _conjuncts(condition: Node) -> tuple[Node, ...]:
    """Conditions that all hold where a condition does."""
    return condition.arguments if _is(condition, "all_of") else (condition,)


def _known(condition: Node) -> frozenset[str]:
    return frozenset(map(repr, _conjuncts(condition)))


def _given(node: Node) -> Iterable[Node]:
    """Nodes of which a node gives one as it is."""
    if isinstance(node, Quantity):
        return (node.body,)
    if isinstance(node, Span):
        return node.members
    if _is(node, "index"):
        return node.arguments[:1]
    if isinstance(node, Apply) and node.operation in _CHOICES:
        return node.arguments[_CHOICES[node.operation] :]
    return ()
