"""The figures of the library that paths end in, each with its row in use, its source and status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from mantile.equations.display import HOW, converted, origin, words
from mantile.equations.efficiency import FactorInUse
from mantile.equations.fallback import COLUMN_IN_USE, FIRST
from mantile.equations.graph import EstimateGraph
from mantile.equations.override import Overridable
from mantile.equations.things import fact_of
from mantile.equations.trace.lines import (
    NOTHING,
    OWN,
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
    Quantity,
    Span,
    Words,
    as_node,
    if_error,
    index,
    is_number,
    join,
    look_up,
    match,
    precedents,
    span,
    text,
    where,
)
from mantile.graph.sentence import lowered

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
        stated = is_number(each.cell)
        factor = self.factors.get(figure)
        said = self._hardware(line, default) if factor is None else self._factor(line, factor, figure)
        value = converted(figure, figure.unit, unit)
        if ".price_" in f".{each.id}" or each.id.endswith("tdp"):
            value = where(figure > 0, value, NOT_KNOWN)
        cell = each.cell
        name = where(stated, index(words((cell,), "quantity"), 1), said.label)
        why = Words((cell,), HOW, (self.reasons.get(cell.id) or origin(cell)[0],))
        cells: dict[str, Named] = {
            "key": fixed_text(f"{line}.key", key),
            "value": looked(f"{line}.value", value),
            "name": looked(f"{line}.name", name if unit == "1" else join(name, f", {unit}")),
            "id": looked(f"{line}.id", where(stated, index(words((cell,), "id"), 1), said.id)),
            "status": looked(f"{line}.status", where(stated, OWN, said.status)),
            "said": looked(f"{line}.said", where(stated, index(why, 1), said.text)),
        }
        return Line({**cells, **said.found}, figure)

    def _hardware(self, line: str, default: Node) -> _Said:
        """What stands beside the figure of a chip or system, or of another table of the library, in use."""
        rows, place = _rows_of(default)
        kind, known = rows[0].id.partition(".")[0], self.graph.rows
        hardware = self.graph.prefill_workers.hardware
        keys = hardware.ids.get({"library": "accelerator"}.get(kind, kind))
        if keys is None:
            label, identifier, how, source = (
                index(words(rows, what), place) for what in ("quantity", "id", HOW, "source")
            )
            return _Said(label, identifier, source, how, {})
        thing, fact = index(span(keys), place), fact_of(rows[0])
        sources, stated = hardware.sources, index(cast(Span, known.node(f"{kind}.sources")), place)
        number = looked(f"{line}.links", sources.place(stated, fact))
        return _Said(
            label=join(f"{rows[0].label.rpartition(', ')[0]}, ", thing),
            id=join(f"{kind}.", thing, f".{fact}"),
            status=sources.status(number),
            text=sources.text(number),
            found={"links": number},
        )

    def _factor(self, line: str, factor: FactorInUse, figure: Quantity) -> _Said:
        """What the library says of the figure of a factor in use."""
        sources = self.graph.prefill_workers.efficiency.sources
        own = next(
            workers.efficiency.sources
            for workers in self.graph.all_workers
            if workers.efficiency.in_use.get(factor.kind.name) is factor
        )
        user = next(user for user, other in factor.by_user.items() if other is figure)
        of_condition, cells = factor.places[user], dict[str, Named]()
        first = factor.tables[0].choice
        place: Node = first.place
        mark: tuple[Node | str, ...] = ()
        if of_condition is None:
            number = look_up(first.numbers, 1, place)
        else:
            named = Words(factor.of_condition, "source", tuple(each.source for each in factor.of_condition))
            chosen = looked(f"{line}.part", join("efficiency.", index(named, of_condition)))
            ids = _ids(sources.choices)
            numbers_at = if_error(match(join(chosen, FIRST), ids), match(chosen, ids))
            begins = figure.id.partition("efficiency.")[0]  # of decode workers, that may lack some
            named_so = [figure for figure in own.choices if figure.id.startswith(f"{begins}{COLUMN_IN_USE}")]
            columns = [figure for figure in named_so if figure.id in self.graph.figures]
            found = index(span(columns), match(join(begins, chosen), _ids(columns)))
            place = looked(f"{line}.place", if_error(found, 1))
            cells |= {"part": chosen, "place": place}
            number = look_up(sources.numbers, numbers_at, place)
            condition: Node = index(span(factor.conditions), of_condition)
            mark = ("tp", text(condition)) if factor.kind.condition == "ranks" else (condition,)
        profile = looked(f"{line}.lead", look_up(sources.keys, 1, place))
        source = looked(f"{line}.links", number)
        end = (".", *mark) if mark else ()
        return _Said(
            label=join(profile, *((" · ", *mark) if mark else ()), f" · {lowered(factor.kind.label)}"),
            id=join(f"efficiency.{factor.kind.name}.", profile, *end),
            status=sources.listed.status(source),
            text=sources.listed.text(source),
            found={**cells, "lead": profile, "links": source},
        )


@dataclass(frozen=True)
class _Said:
    """What stands beside a figure of the library, and the cells with the way there."""

    label: Node
    id: Node
    status: Node
    text: Node
    found: Mapping[str, Named]


def _ids(figures: Sequence[Quantity]) -> Words:
    return Words(tuple(figures), "id", tuple(figure.id for figure in figures))


def _rows_of(default: Node) -> tuple[tuple[Input, ...], Node]:
    """The rows of the library that a figure is looked up in, and the place of the one in use."""
    if isinstance(default, Input):
        return (default,), as_node(1)
    assert isinstance(default, Apply) and default.operation == "index"
    rows, place = default.arguments
    assert isinstance(rows, Span)
    return tuple(row for row in rows.members if isinstance(row, Input)), place
