"""The figures of the library that paths end in, each with its row in use, its source and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mantile.equations.display import HOW, converted, origin, words
from mantile.equations.efficiency import FactorInUse
from mantile.equations.graph import EstimateGraph
from mantile.equations.override import Overridable
from mantile.equations.trace.lines import (
    NOTHING,
    OWN,
    WIDEST,
    Line,
    Table,
    fixed_text,
    looked,
    named,
    shown_unit,
)
from mantile.equations.workers import DECODE
from mantile.graph.quantity import (
    NOT_KNOWN,
    Apply,
    Input,
    Named,
    Node,
    Operand,
    Quantity,
    Span,
    Words,
    as_node,
    count_where,
    index,
    is_number,
    join,
    match,
    precedents,
    span,
    text,
    where,
)

_SHOWN = ("value", "name", "id", "status")


@dataclass
class Figures:
    """The figures of the library that paths end in: a line for each, by the id of the figure in use.

    Args:
        reasons: what stands beside the cells of overrides that are set, by id of the cell.
    """

    graph: EstimateGraph
    reasons: Mapping[str, str] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.overridable: dict[Quantity, tuple[Overridable, Node]] = {}
        self.factors: dict[Quantity, FactorInUse] = {}
        self.by_id: dict[str, Quantity] = {}
        for workers in self.graph.all_workers:
            for each in workers.overridable():
                for figure, default in zip(each.figures, each.defaults, strict=True):
                    self.overridable[figure] = each, default
            for factor in workers.efficiency.in_use.values():
                self.factors |= dict.fromkeys(factor.by_user.values(), factor)
        self.by_id = {figure.id: figure for figure in self.overridable}
        texts = dict.fromkeys(("key", "value", "name", "id", "status", "said"), NOTHING)
        self.lines[NOTHING] = Line(
            {role: fixed_text(f"figure.0.{role}", text) for role, text in texts.items()}
        )

    @property
    def table(self) -> Table:
        """The lines so far that a path may lead to."""
        return tuple(line for line in self.lines.values() if "status" in line.cells)

    def of(self, figure: Named, key: str = "") -> str:
        """The key of the line of a figure in use, which is made where there is none yet.

        Args:
            key: its id if empty.
        """
        key = key or figure.id
        if key not in self.lines:
            line = f"figure.{len(self.lines)}"
            if isinstance(figure, Quantity) and figure in self.overridable:
                self.lines[key] = self._library(line, key, figure)
            else:
                self.lines[key] = self._stated(line, key, figure)
        return key

    def source(self, figure: Named) -> tuple[Node, Node]:
        """Status and source of a figure in use.

        Where no path leads to it the status has no row of its own, and stands where it is asked for. Once a
        figure is of that kind, no path may be made that leads to it.
        """
        led_to = figure.id in self.lines
        line = self.lines[self.of(figure)]
        status, said = line["status"], line["said"]
        if led_to or not isinstance(status, Quantity):
            return status, said
        cells = {role: cell for role, cell in line.cells.items() if role not in _SHOWN}
        self.lines[figure.id] = replace(line, cells=cells)
        return status.body, said

    def nearest(self, figure: Quantity, unit: str, begins: str) -> Quantity:
        """The nearest figure of the library, with a unit, that a figure follows from."""
        waiting: list[Named] = [figure]
        for other in waiting:
            part = other.id.removeprefix(DECODE)
            if isinstance(other, Quantity):
                if other in self.overridable and other.unit == unit and part.startswith(begins):
                    return other
                waiting += precedents(other)
        raise AssertionError(f"{figure.id} follows from no figure of the library in {unit}")

    def _stated(self, line: str, key: str, figure: Named) -> Line:
        """A figure that no profile states: what is asked, or follows from the model."""
        unit, given = shown_unit(figure.unit), isinstance(figure, Input)
        return Line(
            {
                "key": fixed_text(f"{line}.key", key),
                "value": looked(f"{line}.value", converted(figure, figure.unit, unit)),
                "name": fixed_text(f"{line}.name", named(figure.label, unit)),
                "id": fixed_text(f"{line}.id", figure.id),
                "status": fixed_text(f"{line}.status", "given" if given else "worked out"),
                "said": fixed_text(
                    f"{line}.said", "as asked" if given else "follows from the model and the formats"
                ),
            },
            figure,
        )

    def _library(self, line: str, key: str, figure: Quantity) -> Line:
        """A figure of a profile, or the override that stands for it."""
        each, default = self.overridable[figure]
        unit = shown_unit(figure.unit)
        rows, place, found = self._row(line, figure, default)
        stated = is_number(each.cell)

        def row(what: str) -> Node:
            return index(words(rows, what), place)

        def beside(what: str, own: Operand) -> Node:
            of_table = self._of_table(rows, place, what)
            return where(stated, own, row(what) if of_table is None else of_table)

        told = looked(f"{line}.told", row(HOW))

        value = converted(figure, figure.unit, unit)
        if ".price_" in f".{each.id}" or each.id.endswith("tdp"):
            value = where(figure > 0, value, NOT_KNOWN)
        cell = each.cell
        name = beside("quantity", index(words((cell,), "quantity"), 1))
        why = Words((cell,), HOW, (self.reasons.get(cell.id) or origin(cell)[0],))
        cells: dict[str, Named] = {
            "key": fixed_text(f"{line}.key", key),
            "value": looked(f"{line}.value", value),
            "name": looked(f"{line}.name", name if unit == "1" else join(name, f", {unit}")),
            "id": looked(f"{line}.id", beside("id", index(words((cell,), "id"), 1))),
            "status": looked(f"{line}.status", where(stated, OWN, row("source"))),
            "told": told,
            "said": looked(f"{line}.said", where(stated, index(why, 1), told)),
        }
        return Line(cells | found, figure)

    def _of_table(self, rows: Sequence[Input], place: Node, what: str) -> Node | None:
        """Label or id of a figure in a table of chips or systems, by the one chosen."""
        kind, hardware = rows[0].id.partition(".")[0], self.graph.prefill_workers.hardware
        things = {"library": hardware.accelerators, "system": hardware.systems}.get(kind)
        if things is None:
            return None
        thing = index(span(things), place)
        if what == "id":
            return join(f"{kind}.", thing, rows[0].id.removeprefix(f"{kind}.{things[0].value}"))
        return join(f"{rows[0].label.rpartition(', ')[0]}, ", thing)

    def _row(
        self, line: str, figure: Quantity, default: Node
    ) -> tuple[tuple[Input, ...], Node, dict[str, Named]]:
        """Rows of the library, the place of the one in use among them, and cells with the way there."""
        factor = self.factors.get(figure)
        if factor is not None and factor.kind.condition is not None:
            return self._conditional(line, factor, figure)
        rows, place = _rows_of(default)
        if isinstance(place, Apply):
            found = looked(f"{line}.place", place)
            return rows, found, {"place": found}
        return rows, place, {}

    def _conditional(
        self, line: str, factor: FactorInUse, figure: Quantity
    ) -> tuple[tuple[Input, ...], Node, dict[str, Named]]:
        """The same of a factor that differs by condition: each chooses among profiles of its own."""
        user = next(user for user, other in factor.by_user.items() if other is figure)
        place = factor.places[user]
        assert place is not None
        named = Words(factor.of_condition, "source", tuple(each.source for each in factor.of_condition))
        in_use = [table.choice.profile for table in factor.tables if table.choice is not None]
        begins = DECODE if in_use and in_use[0].id.startswith(DECODE) else ""  # of decode workers
        choice = looked(f"{line}.part", join(begins, index(named, place)))
        profiles = list({profile.id: profile for profile in self._profiles(in_use)}.values())
        ids = Words(tuple(profiles), "id", tuple(profile.id for profile in profiles))
        there = looked(f"{line}.fixed", count_where(ids, choice))
        found = index(span(profiles), match(choice, ids))
        profile = looked(f"{line}.lead", where(there > 0, found, WIDEST))
        condition: Node = index(span(factor.conditions), place)
        ranks = factor.kind.condition == "ranks"
        mark: tuple[Node | str, ...] = (".tp", text(condition)) if ranks else (".", condition)
        identifier = looked(f"{line}.links", join(f"efficiency.{factor.kind.name}.", profile, *mark))
        rows = tuple(row for table in factor.tables for row in table.figures.values())
        in_use_at = looked(f"{line}.place", match(identifier, words(rows, "id")))
        cells: dict[str, Named] = {
            "part": choice,
            "fixed": there,
            "lead": profile,
            "links": identifier,
            "place": in_use_at,
        }
        return rows, in_use_at, cells

    def _profiles(self, some: Sequence[Quantity]) -> tuple[Quantity, ...]:
        """The profiles in use of all choices of the workers that some are of."""
        of_all = [
            [choice.profile for choice in workers.efficiency.choices] for workers in self.graph.all_workers
        ]
        profiles = next((profiles for profiles in of_all if set(some) <= set(profiles)), [])
        return tuple(profile for profile in profiles if profile.id in self.graph.figures)


def _rows_of(default: Node) -> tuple[tuple[Input, ...], Node]:
    """The rows of the library that a figure is looked up in, and the place of the one in use."""
    if isinstance(default, Input):
        return (default,), as_node(1)
    assert isinstance(default, Apply) and default.operation == "index"
    rows, place = default.arguments
    assert isinstance(rows, Span)
    return tuple(row for row in rows.members if isinstance(row, Input)), place
