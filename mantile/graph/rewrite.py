"""The same figures for another case of some inputs.

Those that follow from them are made again, all others stay shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from itertools import groupby
from typing import Any, TypeVar, cast

from mantile.graph.quantity import (
    Apply,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    Span,
    ancestors,
    as_node,
    children,
    choose,
    equal,
    if_error,
    rebuilt,
    where,
)

Thing = TypeVar("Thing")
Private = TypeVar("Private", Input, Quantity)


Order = list[tuple[Node, tuple[Node, ...]]]
"""Nodes, precedents first, each with what it is made of."""


def order(*roots: Node) -> Order:
    """Nodes and all they follow from."""
    return [(node, children(node)) for node in ancestors(*roots)]


LOOSE = {"total": 40, "maximum": 40, "minimum": 40, "index": 8}
"""Operations on a span of at most so many members, which need not stand below each other."""


def _blocks(order: Order, loose: Mapping[str, int]) -> set[Span]:
    """Spans whose members stand below each other for an operation that is not loose."""
    return {
        part
        for node, parts in order
        for part in parts
        if isinstance(part, Span)
        and len(part.members) > (loose.get(node.operation, 0) if isinstance(node, Apply) else 0)
    }


def _is_no_number(node: Node) -> bool:
    """Whether it is asked if a text that nobody edits is a number."""
    asked = node.arguments[0] if isinstance(node, Apply) and node.operation == "is_number" else None
    return isinstance(asked, Input) and asked.fixed and isinstance(asked.value, str)


def _is_found(condition: Node, then: Node) -> bool:
    """Whether it is asked if what follows is a number, which a place of something is unless there is none."""
    return (
        isinstance(condition, Apply)
        and condition.operation == "is_number"
        and isinstance(then, Apply)
        and then.operation == "match"
        and repr(condition.arguments[0]) == repr(then)
    )


class GraphRewrite:
    """Figures made again with some replaced.

    Args:
        replacements: figures and what stands for them, or what gives it when somebody asks.
        private_inputs: inputs that get one of their own, such as overrides.
        id_prefix, label_suffix: what ids begin with and labels end in; "" where the figures stand in place
            of the originals, which nobody asks for any more.
        roots: all figures that may be asked for, or their `order` where it is known.
        copied: figures that are made again though nothing that they follow from is replaced.
        short: whether there are to be few figures: what is made again the same way is one figure, what only
            repeats another is that one, and of a span that is summed or compared only members that change
            are made again. Members of other spans stay, as they stand below each other.
    """

    def __init__(
        self,
        replacements: Mapping[Any, Node | Callable[[], Node]],
        private_inputs: tuple[Input, ...],
        id_prefix: str,
        label_suffix: str,
        roots: tuple[Node, ...] | Order,
        copied: tuple[Quantity, ...] = (),
        short: bool = False,
    ) -> None:
        self.id_prefix, self.label_suffix = id_prefix, label_suffix
        self._rewritten: dict[Node, Any] = dict(replacements)
        for figure in private_inputs:
            self._rewritten[figure] = self._private(figure)
        self._copied = frozenset(copied)
        nodes = roots if isinstance(roots, list) else order(*roots)
        self._once: dict[str, Node] | None = {} if short else None
        self._blocks = _blocks(nodes, LOOSE if short else {})
        self._affected = self._followers(nodes)
        self._in_spans = {member for block in self._blocks for member in block.members}

    @property
    def rewritten(self) -> Mapping[Node, Node]:
        """What was asked for and all on the way there that was made again, by the original.

        Also what was replaced.
        """
        return self._rewritten

    def made(self, listed: Iterable[Named]) -> tuple[Quantity, ...]:
        """The figures that were made again so far: first those that are not listed, then those that are.

        Args:
            listed: originals in the order of a sheet, so that members of a span stand below each other.
        """
        made = {
            original: figure
            for original, figure in self._rewritten.items()
            if isinstance(original, Quantity)
            and isinstance(figure, Quantity)
            and figure.id.startswith(self.id_prefix)
        }
        places = {figure: place for place, figure in enumerate(listed)}
        return tuple(made[original] for original in sorted(made, key=lambda node: places.get(node, -1)))

    def depends(self, node: Node) -> bool:
        """Whether a node follows from what is replaced, or is copied."""
        return node in self._affected

    def _followers(self, order: Order) -> set[Node]:
        """Nodes that follow from what is replaced.

        Members of a span stand below each other, so one takes the others along.
        """
        affected: set[Node] = {node for node, other in self._rewritten.items() if other is not node}
        affected |= self._copied
        while True:
            again = False
            for node, parts in order:
                if node not in affected and not affected.isdisjoint(parts):
                    if node in self._rewritten or (isinstance(node, Input) and node.fixed):
                        continue  # what a file holds is the same in all cases
                    affected.add(node)
                if node in affected and isinstance(node, Span) and node in self._blocks:
                    others = {member for member in node.members if isinstance(member, Quantity)} - affected
                    affected |= others
                    again = again or bool(others)  # what follows from them may stand before the span
            if not again:
                return affected

    def _private(self, figure: Private) -> Private:
        return replace(figure, id=f"{self.id_prefix}{figure.id}", label=f"{figure.label}{self.label_suffix}")

    def rewrite(self, thing: Thing) -> Thing:
        """A node, or anything made of nodes, with what follows from the replaced figures made again."""
        return cast(Thing, self._any(thing))

    def _any(self, thing: Any) -> Any:
        if isinstance(thing, Node):
            return self._node(thing)
        if isinstance(thing, Section):
            return self._section(thing)
        if isinstance(thing, tuple):
            others = tuple(self._any(item) for item in thing)
            return thing if all(new is old for new, old in zip(others, thing, strict=True)) else others
        if isinstance(thing, Mapping):
            return {key: self._any(value) for key, value in thing.items()}
        if is_dataclass(thing) and not isinstance(thing, type):
            changed = {item.name: self._any(getattr(thing, item.name)) for item in fields(thing)}
            same = all(changed[name] is getattr(thing, name) for name in changed)
            return thing if same else replace(thing, **changed)
        return thing

    def _node(self, node: Any) -> Any:
        if node in self._rewritten:
            found = self._rewritten[node]
            if not isinstance(found, Node):
                found = self._rewritten[node] = as_node(found())
            return found
        if node not in self._affected:
            return node
        other: Node
        if isinstance(node, Quantity):
            other = self._again(node, self._node(node.body))
        elif isinstance(node, Input):
            other = self._following(node)
        elif self._once is not None and isinstance(node, Apply):
            other = self._shortened(node)
        else:
            other = rebuilt(node, self._node)
        self._rewritten[node] = other
        return other

    def _shortened(self, node: Apply) -> Node:
        """An operation on other figures; of spans that are no blocks the members, where one changes."""
        parts: list[Node] = []
        for part in node.arguments:
            if isinstance(part, Span) and part in self._affected and part not in self._blocks:
                if node.operation == "index":
                    return choose(self._node(node.arguments[1]), *map(self._node, part.members))
                parts += self._loose(part)
            else:
                parts.append(self._node(part))
        if node.operation == "where" and _is_no_number(parts[0]):
            return parts[2]
        if node.operation == "where" and _is_found(*parts[:2]):
            return if_error(*parts[1:])
        return Apply(node.operation, tuple(parts))

    def _loose(self, members: Span) -> Iterator[Node]:
        """The members that change, one by one, and those that stay, as blocks."""
        for changes, run in groupby(members.members, self.depends):
            others = tuple(run)
            if changes:
                yield from map(self._node, others)
            else:
                yield Span(others) if len(others) > 1 else others[0]

    def _again(self, figure: Quantity, body: Node) -> Node:
        """A figure with another body, or one that is there already and says the same."""
        if self._once is None or figure in self._in_spans:
            return replace(self._private(figure), body=body)
        if isinstance(body, Named):
            return body
        return self._once.setdefault(repr(body), replace(self._private(figure), body=body))

    def _following(self, figure: Input) -> Quantity:
        """An input that follows another figure that was made again: unless somebody typed over it."""
        default = figure.follows
        assert default is not None
        body = where(equal(figure, default), self._node(default), figure)
        note = "follows unless a value was typed"
        return self._private(Quantity(figure.id, figure.label, figure.unit, body, note, name=figure.name))

    def _section(self, section: Section) -> Section:
        """The rows that were made again, or all rows where they replace the originals."""
        if not self.id_prefix:
            rows = tuple(self._any(row) for row in section.rows)
            return replace(section, rows=rows)
        again = [self._node(figure) for figure in section.figures() if figure in self._affected]
        return replace(
            section,
            title=f"{section.title}{self.label_suffix}",
            rows=tuple(again),
            total=section.total if again and section.rows[-1] in self._affected else 0,
            heads=None,
        )
