"""Things and what is known of them: blocks in which a row is a thing and a column a fact, and their sources.

A source that states many facts stands once, in a numbered row. From which sources the facts of a thing are
stands beside them in one text that formulas read: "memory_capacity 012, tdp 013".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from mantile.equations.display import HOW
from mantile.graph.quantity import (
    Input,
    Node,
    Section,
    Words,
    behind,
    defined,
    index,
    join,
    match,
    span,
    table,
    until,
)

_STATUS_ENDS = ": "
NOBODY = f"no source{_STATUS_ENDS}none stated"
"""In place of a source."""
_KEY = "source "


def things(
    title: str,
    facts: Mapping[str, Sequence[Input]],
    note: str = "",
    notes: Sequence[str] = (),
    sources: SourceList | None = None,
) -> Section:
    """A block with a row for each thing, whose id is that of its key without the last part.

    Args:
        facts: of all things in the same order, by what stands over their column; first the keys.
        notes: what is said of each thing.
        sources: who states the facts; a fact of 0 that nobody states is then left empty.
    """
    rows = []
    for place, figures in enumerate(zip(*facts.values(), strict=True)):
        row = table([dict(enumerate(figures))], len(figures), figures[0].id.rpartition(".")[0])
        numbers = () if sources is None else (0, *(sources.number(figure.source) for figure in figures[1:]))
        rows.append(replace(row, note=notes[place] if notes else "", sources=numbers))
    return Section(title, tuple(rows), note, columns=tuple(facts))


class SourceList:
    """Who states figures of the library: each source once, numbered from 1 in the order in which it is met.

    Args:
        prefix: what ids of its rows begin with.
        first: the first of them.
    """

    def __init__(self, prefix: str, *first: str) -> None:
        self._prefix = prefix
        self._numbers = {source: number for number, source in enumerate(first, 1)}

    def number(self, source: str) -> int:
        """The number of a source, "status day: who states it"; 0 where nobody does."""
        if _STATUS_ENDS not in source:
            return 0
        return self._numbers.setdefault(source, len(self._numbers) + 1)

    def of_things(
        self, prefix: str, facts: Iterable[Sequence[Input]], keys: Sequence[Input]
    ) -> tuple[Input, ...]:
        """For each thing the facts that somebody states, each with the number of its source.

        Args:
            prefix: what ids of the things begin with.
        """

        def said(figure: Input) -> str:
            number = self.number(figure.source)
            return f"{fact_of(figure)} {number:03}" if number else ""

        stated = [", ".join(filter(None, map(said, figures))) for figures in zip(*facts, strict=True)]
        return tuple(
            defined(
                f"{prefix}.{key.value}.sources",
                f"Sources, {key.value}",
                "1",
                text,
                "numbers of the sources below, by the last part of the id of a fact",
                name="numbers of sources in the library",
            )
            for key, text in zip(keys, stated, strict=True)
        )

    def place(self, stated: Node, fact: str) -> Node:
        """The row of the source of a fact, among those of `section`.

        Args:
            stated: the text of the thing.
        """
        nobody = f"{self.number(NOBODY):03}"
        number = behind(join(stated, f"{fact} {nobody}"), f"{fact} ", nobody)
        return match(join(_KEY, number), span(self.keys))

    def status(self, place: Node) -> Node:
        """How a figure is known, and since when."""
        return until(index(self._words, place), _STATUS_ENDS)

    def text(self, place: Node) -> Node:
        """Who states a figure."""
        said = index(self._words, place)
        return behind(said, _STATUS_ENDS, said)

    @cached_property
    def keys(self) -> tuple[Input, ...]:
        """The numbers as they stand in the rows; no source may be met after they are asked for."""
        return tuple(
            defined(f"{self._prefix}.source.{number}", f"Source {number}", "1", source_key(number), "", text)
            for text, number in self._numbers.items()
        )

    @cached_property
    def section(self) -> Section:
        """Their block."""
        return things("Sources", {"Source": self.keys}, "in full, as figures above name them", self._texts)

    @property
    def _texts(self) -> tuple[str, ...]:
        return tuple(key.source for key in self.keys)

    @cached_property
    def _words(self) -> Words:
        return Words(self.keys, HOW, self._texts)


def source_key(number: int) -> str:
    """What a source is called: "source 012"."""
    return f"{_KEY}{number:03}"


def fact_of(figure: Input) -> str:
    """The fact that a figure states of a thing: the last part of its id."""
    return figure.id.rpartition(".")[2]
