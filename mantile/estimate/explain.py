"""What a figure of an estimate is, how it is worked out, and what it follows from or leads to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from mantile.equations.graph import EstimateGraph
from mantile.estimate.estimate import Estimate
from mantile.graph.excel import formula
from mantile.graph.quantity import (
    InCase,
    Input,
    Node,
    Quantity,
    Span,
    dependents,
    expression,
    is_named,
    precedents,
)
from mantile.graph.sentence import sentence
from mantile.library.errors import InputError

_Shown = Input | Quantity | Span
TABLE = 8  # a block of more figures is shown as one line


@dataclass(frozen=True)
class Term:
    """A figure with its value, or a table of figures: then `id` is first:last and `members` are the ids."""

    id: str
    label: str
    unit: str
    value: Any
    members: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain objects."""
        term = {"id": self.id, "label": self.label, "unit": self.unit, "value": self.value}
        return term | {"members": list(self.members)} if self.members else term


@dataclass(frozen=True)
class Explanation:
    """A figure explained. `formula` names the precedents by id; it is empty where the figure is stated, not worked out."""

    figure: Term
    how: str
    formula: str
    source: str
    status: str
    precedents: tuple[Term, ...]
    dependents: tuple[Term, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `mantile explain --json` prints."""
        return self.figure.to_dict() | {
            "how": self.how,
            "formula": self.formula,
            "source": self.source,
            "status": self.status,
            "precedents": [term.to_dict() for term in self.precedents],
            "dependents": [term.to_dict() for term in self.dependents],
        }


@dataclass(frozen=True)
class Branch:
    """A figure in a trace. `repeated` says that it is expanded elsewhere, `deeper` that the depth asked for cuts it off."""

    term: Term
    branches: tuple[Branch, ...] = ()
    repeated: bool = False
    deeper: bool = False


def explain(estimate: Estimate, identifier: str, column: int = 0) -> Explanation:
    """One figure of one column of an estimate.

    Raises:
        InputError: if there is no such figure, with the nearest ids, or no such column.
    """
    figure = estimate.figure(identifier)
    term = _terms(estimate, column)
    return Explanation(
        figure=term(figure),
        how=sentence(figure),
        formula=formula(figure.body, _Ids()) if isinstance(figure, Quantity) else "",
        source=figure.source,
        status="worked out" if isinstance(figure, Quantity) else figure.status,
        precedents=tuple(term(other) for other in _precedents(figure)),
        dependents=tuple(term(other) for other in dependents(figure, estimate.equations.figures.values())),
    )


def trace(
    estimate: Estimate, identifier: str, column: int = 0, depth: int | None = None, forward: bool = False
) -> Branch:
    """What a figure follows from, all the way to what is stated; every figure is expanded once.

    Args:
        depth: levels to show, all if None.
        forward: what follows from the figure instead.

    Raises:
        InputError: if there is no such figure, with the nearest ids, or no such column.
    """
    root = estimate.figure(identifier)
    term = _terms(estimate, column)
    next_to = _followers(estimate) if forward else _precedents
    distance = _distances(root, next_to)
    expanded: set[_Shown] = set()

    def grow(figure: _Shown, level: int) -> Branch:
        around = next_to(figure)
        if not around:
            return Branch(term(figure))
        # A figure is expanded where the tree first reaches it at its shortest distance, so that a depth cuts nothing twice.
        if figure in expanded or level > distance[figure]:
            return Branch(term(figure), repeated=True)
        expanded.add(figure)
        if level == depth:
            return Branch(term(figure), deeper=True)
        return Branch(term(figure), tuple(grow(other, level + 1) for other in around))

    return grow(root, 0)


def formulas(equations: EstimateGraph) -> dict[str, str]:
    """Every worked-out figure by id, as a formula over the ids of others."""
    return {figure.id: formula(figure.body, _Ids()) for figure in equations.quantities()}


class _Ids:
    """Where a formula would name cells, it names figures by id."""

    def cell(self, node: Input | Quantity) -> str:
        return node.id

    def across(self, node: InCase) -> str:
        return f"{node.figure.id}[{node.case}]"

    def range(self, members: Span) -> str:
        first, last = members.members[0].id, members.members[-1].id
        return first if first == last else f"{first}:{last}"


def _precedents(figure: _Shown) -> tuple[_Shown, ...]:
    """The direct precedents in order of appearance, long tables as one."""
    if not isinstance(figure, Quantity):
        return ()
    shown = [node for node in expression(figure.body, leaf=_is_shown) if _is_shown(node)]
    return tuple({getattr(node, "members", node): cast(_Shown, node) for node in shown}.values())


def _is_shown(node: Node) -> bool:
    return is_named(node) or (isinstance(node, Span) and len(node.members) > TABLE)


def _terms(estimate: Estimate, column: int) -> Callable[[_Shown], Term]:
    if not 0 <= column < len(estimate.columns):
        raise InputError(f"column {column}: expected 0 to {len(estimate.columns) - 1}")
    values = estimate.values(column)

    def term(figure: _Shown) -> Term:
        if isinstance(figure, Span):
            members = tuple(member.id for member in figure.members)
            return Term(
                _Ids().range(figure),
                f"table of {len(members)} figures",
                figure.members[0].unit,
                None,
                members,
            )
        value: Any = values.get(figure)
        if (
            isinstance(figure, Input)
            and figure.value is None
            and not isinstance(value, str)
            and value != value
        ):
            value = None  # an override that nobody has set
        return Term(figure.id, figure.label, figure.unit, value.item() if hasattr(value, "item") else value)

    return term


def _followers(estimate: Estimate) -> Callable[[_Shown], tuple[_Shown, ...]]:
    found: dict[Node, list[_Shown]] = {}
    for figure in estimate.equations.figures.values():
        for other in precedents(figure):
            found.setdefault(other, []).append(figure)
    return lambda figure: tuple(found.get(figure, ()))


def _distances(root: _Shown, next_to: Callable[[_Shown], tuple[_Shown, ...]]) -> dict[_Shown, int]:
    found, ring = {root: 0}, [root]
    while ring:
        beyond = dict.fromkeys(other for figure in ring for other in next_to(figure) if other not in found)
        found |= dict.fromkeys(beyond, found[ring[0]] + 1)
        ring = list(beyond)
    return found
