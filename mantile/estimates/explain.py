"""What a figure of an estimate is, how it is worked out, and what it follows from or leads to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from mantile.equations.graph import EstimateGraph
from mantile.graph.excel import formula
from mantile.graph.quantity import (
    Cases,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    Table,
    Words,
    dependents,
    expression,
    is_named,
    precedents,
)
from mantile.graph.sentence import sentence
from mantile.library.documents import json_data
from mantile.library.errors import InputError

_Shown = Input | Quantity | Span | Table


class Explained(Protocol):
    """What figures are explained of: an estimate."""

    @property
    def equations(self) -> EstimateGraph:
        """The graph."""

    @property
    def columns(self) -> Sequence[Any]:
        """One per scenario."""

    def values(self, column: int = 0) -> dict[Node, Any]:
        """All numbers of one column."""

    def figure(self, identifier: str) -> Named:
        """A figure by id."""


TABLE = 8  # a block of more figures is shown as one line


@dataclass(frozen=True)
class Term:
    """A figure with its value; or several figures: then `members` are their ids, `id` is that of their factor
    or first:last of a table, and there is no value.
    """

    id: str
    label: str
    unit: str
    value: Any
    members: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain objects."""
        term = {"id": self.id, "label": self.label, "unit": self.unit, "value": self.value}
        return term | {"members": list(self.members)} if self.members else term


@dataclass(frozen=True, repr=False)
class Explanation:
    """A figure explained.

    Args:
        figure: its id, label, unit and value.
        how: how it is worked out, in words.
        formula: the same as in Excel, with ids in place of cells; empty where the figure is stated, not
            worked out.
        place: file and line of its equation, where that stands as text; else empty.
        precedents: what it follows from directly.
        dependents: what follows from it directly.

    Example:
        tpot = mantile.estimate(scenario)["serving.tpot"]
        tpot.value, tpot.unit    # 0.0166514..., s
        tpot.formula             # =serving.decode_step+serving.stall
        [term.id for term in tpot.precedents]
    """

    figure: Term
    how: str
    formula: str
    source: str
    status: str
    place: str
    precedents: tuple[Term, ...]
    dependents: tuple[Term, ...]

    @property
    def id(self) -> str:
        """The id of the figure."""
        return self.figure.id

    @property
    def label(self) -> str:
        """What the figure is called."""
        return self.figure.label

    @property
    def unit(self) -> str:
        """The unit of the value."""
        return self.figure.unit

    @property
    def value(self) -> Any:
        """A number in `unit` or a text; None where there is none."""
        return self.figure.value

    @property
    def words(self) -> str:
        """How it is worked out."""
        return self.how

    def __repr__(self) -> str:
        unit = "" if self.unit == "1" or self.value is None else f" {self.unit}"
        return f"<{self.id}: {self.value}{unit}, {self.how}>"

    def to_dict(self) -> dict[str, Any]:
        """What `mantile explain --json` prints."""
        return self.figure.to_dict() | {
            "how": self.how,
            "formula": self.formula,
            "source": self.source,
            "status": self.status,
            "place": self.place,
            "precedents": [term.to_dict() for term in self.precedents],
            "dependents": [term.to_dict() for term in self.dependents],
        }


@dataclass(frozen=True, repr=False)
class Branch:
    """A figure in a trace.

    `repeated` says that it is expanded elsewhere, `deeper` that the depth asked for cuts it off.
    """

    term: Term
    branches: tuple[Branch, ...] = ()
    repeated: bool = False
    deeper: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain objects, branches inside."""
        branches = [branch.to_dict() for branch in self.branches]
        return self.term.to_dict() | {"branches": branches, "repeated": self.repeated, "deeper": self.deeper}

    def __repr__(self) -> str:
        return f"<{self.term.id}: {self.term.value}, branches: {len(self.branches)}>"


def explain(estimate: Explained, identifier: str, column: int = 0) -> Explanation:
    """One figure of one column of an estimate, or a factor that has a figure for each use.

    Raises:
        InputError: if there is no such figure, with the nearest ids, or no such column.

    Example:
        explain(mantile.estimate(scenario), "serving.tpot").formula    # =serving.decode_step+serving.stall
    """
    figures = _figures_called(estimate, identifier)
    term = _terms(estimate, column)
    if len(figures) > 1:
        return _explain_factor(estimate, identifier, figures, term)
    [figure] = figures
    return Explanation(
        figure=term(figure),
        how=sentence(figure),
        formula=formula(figure.body, _Ids()) if isinstance(figure, Quantity) else "",
        source=figure.source,
        status="worked out" if isinstance(figure, Quantity) else figure.status,
        place=estimate.equations.rows.place(figure.id),
        precedents=tuple(term(other) for other in _precedents(figure)),
        dependents=tuple(term(other) for other in dependents(figure, estimate.equations.figures.values())),
    )


def trace(
    estimate: Explained, identifier: str, column: int = 0, depth: int | None = None, forward: bool = False
) -> Branch:
    """What a figure follows from, all the way to what is stated; every figure is expanded once.

    Args:
        identifier: of a figure; or of a factor that has a figure for each use: these are then the first
            branches.
        depth: levels to show, all if None.
        forward: what follows from the figure instead.

    Raises:
        InputError: if there is no such figure, with the nearest ids, or no such column.

    Example:
        [branch.term.id for branch in trace(mantile.estimate(scenario), "serving.tpot", depth=1).branches]
    """
    roots = _figures_called(estimate, identifier)
    top = 0 if len(roots) == 1 else 1
    term = _terms(estimate, column)
    next_to = _followers(estimate) if forward else _precedents
    distance = _distances(roots, next_to, top)
    expanded: set[_Shown] = set()

    def grow(figure: _Shown, level: int) -> Branch:
        around = next_to(figure)
        if not around:
            return Branch(term(figure))
        # A figure is expanded where the tree first reaches it at its shortest distance, so that a depth cuts
        # nothing twice.
        if figure in expanded or level > distance[figure]:
            return Branch(term(figure), repeated=True)
        expanded.add(figure)
        if level == depth:
            return Branch(term(figure), deeper=True)
        return Branch(term(figure), tuple(grow(other, level + 1) for other in around))

    branches = tuple(grow(root, top) for root in roots)
    return branches[0] if top == 0 else Branch(_factor(identifier, roots), branches)


def _figures_called(estimate: Explained, identifier: str) -> tuple[Named, ...]:
    """The figure of an id; of a factor that has one for each use, all of them."""
    graph = estimate.equations
    factor = graph.overridable.get(identifier)
    if factor is None or identifier in graph.figures:
        return (estimate.figure(identifier),)
    return tuple(figure for figure in factor.figures if figure.id in graph.figures)


def _factor(identifier: str, figures: Sequence[Named]) -> Term:
    """A factor that has several figures."""
    members = tuple(figure.id for figure in figures)
    return Term(identifier, f"{len(members)} figures in use", figures[0].unit, None, members)


def _explain_factor(
    estimate: Explained, identifier: str, figures: Sequence[Named], term: Callable[[_Shown], Term]
) -> Explanation:
    """A factor that has a figure for each use: matrices of different data types, or different messages."""
    graph = estimate.equations.figures.values()
    followers = dict.fromkeys(other for figure in figures for other in dependents(figure, graph))
    return Explanation(
        figure=_factor(identifier, figures),
        how="a factor with a figure for each use",
        formula="",
        source="",
        status="worked out",
        place="",
        precedents=tuple(term(figure) for figure in figures),
        dependents=tuple(term(other) for other in followers),
    )


def formulas(equations: EstimateGraph) -> dict[str, str]:
    """Every worked-out figure by id, as a formula over the ids of others."""
    return {figure.id: formula(figure.body, _Ids()) for figure in equations.quantities()}


class _Ids:
    """Where a formula would name cells, it names figures by id."""

    def cell(self, node: Input | Quantity) -> str:
        return node.id

    def across(self, node: InCase) -> str:
        return f"{node.figure.id}[{node.case}]"

    def beside(self, node: Cases) -> str:
        return f"{node.figure.id}[0:{node.count}]"

    def range(self, members: Span) -> str:
        return self._ends(members.members)

    def _ends(self, members: Sequence[Named]) -> str:
        first, last = members[0].id, members[-1].id
        return first if first == last else f"{first}:{last}"

    def grid(self, figures: Table) -> str:
        return self._ends(figures.members)

    def words(self, node: Words) -> str:
        return f"{node.what} of {self.range(node.span)}"

    def lies_in_a_row(self, members: Span) -> bool:
        return False


def _precedents(figure: _Shown) -> tuple[_Shown, ...]:
    """The direct precedents in order of appearance, long tables as one."""
    if not isinstance(figure, Quantity):
        return ()
    shown = [node for node in expression(figure.body, leaf=_is_shown) if _is_shown(node)]
    return tuple({getattr(node, "members", node): cast(_Shown, node) for node in shown}.values())


def _is_shown(node: Node) -> bool:
    return is_named(node) or (isinstance(node, Span | Table) and len(node.members) > TABLE)


def _terms(estimate: Explained, column: int) -> Callable[[_Shown], Term]:
    if not 0 <= column < len(estimate.columns):
        raise InputError(f"column {column}: expected 0 to {len(estimate.columns) - 1}")
    values = estimate.values(column)

    def term(figure: _Shown) -> Term:
        if isinstance(figure, Span | Table):
            members = tuple(member.id for member in figure.members)
            return Term(
                _Ids()._ends(figure.members),
                f"table of {len(members)} figures",
                figure.members[0].unit,
                None,
                members,
            )
        value: Any = values.get(figure)
        # No number: an override that nobody has set, or a figure that cannot be worked out.
        return Term(figure.id, figure.label, figure.unit, json_data(value))

    return term


def _followers(estimate: Explained) -> Callable[[_Shown], tuple[_Shown, ...]]:
    followers: dict[Node, list[_Shown]] = {}
    for figure in estimate.equations.figures.values():
        for other in precedents(figure):
            followers.setdefault(other, []).append(figure)
    return lambda figure: tuple(followers.get(figure, ()))


def _distances(
    roots: Sequence[Named], next_to: Callable[[_Shown], tuple[_Shown, ...]], top: int
) -> dict[_Shown, int]:
    """Levels of a tree at which figures are first reached, the roots at the level `top`."""
    levels: dict[_Shown, int] = dict.fromkeys(roots, top)
    ring: list[_Shown] = list(roots)
    while ring:
        level = levels[ring[0]] + 1
        beyond = dict.fromkeys(other for figure in ring for other in next_to(figure) if other not in levels)
        levels |= dict.fromkeys(beyond, level)
        ring = list(beyond)
    return levels
