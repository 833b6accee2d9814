"""The same figures for another case of some inputs: those that follow from them are made again, all others stay shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from mantile.graph.quantity import Apply, Input, Node, Quantity, Section, Span, ancestors, children

Thing = TypeVar("Thing")


Order = list[tuple[Node, tuple[Node, ...]]]
"""Nodes, precedents first, each with what it is made of."""


def order(*wanted: Node) -> Order:
    """Nodes and all they follow from."""
    return [(node, children(node)) for node in ancestors(*wanted)]


class GraphRewrite:
    """Figures made again with some replaced.

    Args:
        replaced: figures and what stands for them.
        apart: inputs that get a twin of their own, such as overrides.
        prefix, words: what ids begin with and labels end in.
        wanted: all figures that may be asked for, or their `order` where it is known.
    """

    def __init__(
        self,
        replaced: Mapping[Any, Node],
        apart: tuple[Input, ...],
        prefix: str,
        words: str,
        wanted: tuple[Node, ...] | Order,
    ) -> None:
        self.prefix, self.words = prefix, words
        self._made: dict[Node, Node] = dict(replaced)
        for given in apart:
            self._made[given] = self._twin(given)
        self._moved = self._affected(wanted if isinstance(wanted, list) else order(*wanted))

    @property
    def made(self) -> Mapping[Node, Node]:
        """What was asked for so far and all on the way there that was made again, by the original; and what was replaced."""
        return self._made

    def _affected(self, order: Order) -> set[Node]:
        """Nodes that follow from what is replaced. Members of a span stand below each other, so one takes the others along."""
        moved: set[Node] = set(self._made)
        while True:
            before = len(moved)
            for node, parts in order:
                if node not in moved and not moved.isdisjoint(parts):
                    moved.add(node)
                if isinstance(node, Span) and node in moved:
                    moved |= {member for member in node.members if isinstance(member, Quantity)}
            if len(moved) == before:
                return moved

    def _twin(self, figure: Any) -> Any:
        return replace(figure, id=f"{self.prefix}{figure.id}", label=f"{figure.label}{self.words}")

    def of(self, thing: Thing) -> Thing:
        """A node, or anything made of nodes, with what follows from the replaced figures made again."""
        return cast(Thing, self._of(thing))

    def _of(self, thing: Any) -> Any:
        if isinstance(thing, Node):
            return self._node(thing)
        if isinstance(thing, Section):
            return self._section(thing)
        if isinstance(thing, tuple):
            found = tuple(self._of(item) for item in thing)
            return thing if all(new is old for new, old in zip(found, thing, strict=True)) else found
        if isinstance(thing, Mapping):
            return {key: self._of(value) for key, value in thing.items()}
        if is_dataclass(thing) and not isinstance(thing, type):
            changed = {item.name: self._of(getattr(thing, item.name)) for item in fields(thing)}
            same = all(changed[name] is getattr(thing, name) for name in changed)
            return thing if same else replace(thing, **changed)
        return thing

    def _node(self, node: Any) -> Any:
        if node in self._made:
            return self._made[node]
        if node not in self._moved:
            return node
        if isinstance(node, Apply):
            made: Any = Apply(node.operation, tuple(self._node(argument) for argument in node.arguments))
        elif isinstance(node, Span):
            made = Span(tuple(self._node(member) for member in node.members))
        else:
            assert isinstance(node, Quantity), f"{node!r} cannot be made again"
            made = replace(self._twin(node), body=self._node(node.body))
        self._made[node] = made
        return made

    def _section(self, section: Section) -> Section:
        """The rows that were made again; none where nothing was."""
        rows = [self._node(figure) for figure in section.figures() if figure in self._moved]
        return replace(
            section,
            title=f"{section.title}{self.words}",
            rows=tuple(rows),
            total=section.total if rows and section.rows[-1] in self._moved else 0,
        )
