"""Which efficiency profile holds, factor by factor: rows "efficiency.from"; the chain stands in fallback.eq.

Profiles are columns, from wide to specific; factors are rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from mantile.equations.tables import Equations, Space
from mantile.equations.things import SourceList
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    Table,
    as_node,
    defined,
    look_up,
    maximum,
    table,
    where,
)
from mantile.library.efficiency import FALLBACK_CHAIN, EfficiencyProfile, Factor, Level
from mantile.library.profiles import Library

COLUMN_IN_USE = "efficiency.from."
"""What ids of the columns of profiles in use begin with."""
FIRST = ".first"
"""What the id of the first row ends in, where several lead to a column in use."""
_FIELDS = {
    "framework": "inputs.framework",
    "generation": "hardware.generation",
    "accelerator": "inputs.accelerator",
    "topology": "hardware.topology",
    "link": "hardware.link",
}
"""What a scenario has for the fields in keys of profiles."""


@dataclass(frozen=True)
class Choice:
    """The profile in use, of those that have figures from the same sources.

    Args:
        place: its column.
        numbers: of the sources, in the columns of the profiles; beside the first of its rows.
    """

    place: Quantity
    numbers: Table


@dataclass(frozen=True)
class LibraryFigures:
    """The library's figures of a factor, all or those of one condition.

    Args:
        figures: by the key of their profile.
        row: the figures in the columns of the profiles, whose keys are `keys`.
        choice: which of them is used.
    """

    figures: Mapping[str, Input]
    row: Table
    keys: tuple[str, ...]
    choice: Choice

    def chosen(self) -> Node:
        """The figure that is used."""
        return look_up(self.row, 1, self.choice.place)

    def in_use(self, values: Mapping[Node, Any]) -> Input:
        """The figure that is used in a case with these values."""
        return self.figures[self.keys[int(values[self.choice.place]) - 1]]


@dataclass(frozen=True)
class Sources:
    """Where figures of the library are from.

    Args:
        listed: who states a figure, how it is known and since when.
        keys: names of the profiles.
        choices: columns in use, and what leads to them, in the order of their rows.
        numbers: of the sources, in these rows and the columns of the profiles.
    """

    listed: SourceList
    keys: Table
    choices: tuple[Quantity, ...]
    numbers: Table


class Fallback:
    """The fallback chain of a scenario, and the choices among profiles, each worked out once.

    Args:
        profiles: those of the library, in the order of their columns.
        stated: what they state of each factor, with the key of the profile.
    """

    def __init__(self, library: Library, rows: Equations) -> None:
        self.profiles = sorted(library.efficiency, key=lambda profile: (profile.level.number, profile.id))
        self._columns = {profile.key: column for column, profile in enumerate(self.profiles)}
        self._levels = {profile.key: profile.level.number for profile in self.profiles}
        self.stated: dict[str, list[tuple[str, Factor]]] = defaultdict(list)
        for profile in self.profiles:
            for factor in profile.factors:
                self.stated[factor.factor].append((profile.key, factor))
        keys = tuple(map(_profile_key, self.profiles))
        self.keys = table([dict(enumerate(keys))], len(keys))
        rows.know_table("fallback", {"profiles": keys})
        rows.know_as("fallback.keys", self.keys)
        levels = list(map(_level, FALLBACK_CHAIN))
        rows.make_in("level", *levels)
        rows.make_in("narrower level", *levels[1:])
        of_chips = (space for space, level in zip(levels, FALLBACK_CHAIN, strict=True) if not level.of_links)
        rows.make_in("level of chips", *list(of_chips)[1:])
        rows.make_in("chain", Space(home="efficiency"))
        self._places = [rows[f"efficiency.place.{level.name}"] for level in FALLBACK_CHAIN[1:]]
        (self._chain,) = rows.sections("fallback", "Fallback chain")
        self._listed = SourceList("efficiency")
        self._steps: dict[tuple[str, ...], Quantity] = {}
        self._choices: dict[tuple[tuple[str, int], ...], Choice] = {}
        self._rows: list[tuple[Quantity, Mapping[int, Input]]] = []

    def figures(self, name: str, label: str, figures: Mapping[str, Input]) -> LibraryFigures:
        """Figures of a factor under one condition by the key of their profile, with the choice among them.

        Args:
            name, label: of the factor, with its condition.
        """
        numbers = {key: self._listed.number(figure.source) for key, figure in figures.items()}
        known = tuple(numbers.items())
        if known not in self._choices:
            self._choices[known] = self._choice(name, label, numbers)
        choice = self._choices[known]
        row = table(
            [{self._columns[key]: figure for key, figure in figures.items()}],
            self.keys.width,
            f"efficiency.{name}.library",
            f"{label} in the library",
        )
        row = replace(row, in_use=choice.place, sources=tuple(numbers.values()))
        return LibraryFigures(figures, row, tuple(self._columns), choice)

    def sections(self) -> tuple[Section, ...]:
        """The blocks of the chain, of the columns in use, and of what sources say."""
        rows: list[Row] = [
            (figure, table([numbers], self.keys.width)) if numbers else figure
            for figure, numbers in self._rows
        ]
        return (
            replace(self._chain, heads=self.keys),
            Section(
                "Columns in use",
                tuple(rows),
                "the most specific profile with a figure; beside it the numbers of the sources",
            ),
        )

    def sources(self) -> Sources:
        """What the figures so far are known from."""
        return Sources(
            listed=self._listed,
            keys=self.keys,
            choices=tuple(figure for figure, _ in self._rows),
            numbers=table([numbers for _, numbers in self._rows], self.keys.width),
        )

    def _choice(self, name: str, label: str, numbers: Mapping[str, int]) -> Choice:
        """The column of the profile of the highest level, whose rows are made where none has been there."""
        identifier = f"{COLUMN_IN_USE}{name}"
        beside = {
            self._columns[key]: defined(
                f"efficiency.source.{name}.{key}", f"Source of {label}, {key}", "number", number
            )
            for key, number in numbers.items()
        }
        held = table([beside], self.keys.width)
        levels = sorted({self._levels[key] for key in numbers} - {1})
        place: Node = as_node(1)  # the global profile, which has every figure
        begun = len(self._rows)
        for level in levels:
            keys = tuple(key for key in numbers if self._levels[key] <= level)
            known, last = self._steps.get(keys), level == levels[-1]
            if known is None:
                of_level = self._places[level - 2]
                found = where(look_up(held, 1, of_level) > 0, of_level, 1)
                known = self._steps[keys] = Quantity(
                    identifier if last else f"{identifier}{_step(len(self._rows) - begun)}",
                    f"Column of {label}" if last else f"Column of {label}, up to level {level}",
                    "number",
                    found if level == levels[0] else maximum(place, found),
                    name="column in use",
                )
                self._rows.append((known, beside if len(self._rows) == begun else {}))
            place = known
        if len(self._rows) == begun:
            place = Quantity(identifier, f"Column of {label}", "number", place, name="column in use")
            self._rows.append((place, beside))
        assert isinstance(place, Quantity)
        return Choice(place, held)


def _step(number: int) -> str:
    """What ids end in of rows that lead to a column in use; the first has the numbers of the sources."""
    return f".{number}" if number else FIRST


def _level(level: Level) -> Space:
    """Where the rows of a level are made, with the key by which a scenario finds its profile."""
    parts: list[str] = []
    for text, field in level.parts:
        parts += [f"'{text}'"] if text else []
        parts += [_FIELDS[field]] if field is not None else []
    key = parts[0] if len(parts) == 1 else f"join({', '.join(parts)})"
    facts = {"name": level.name, "n": f"{level.number}", "label": level.label, "key": key}
    return Space(home="efficiency", facts=facts)


def _profile_key(profile: EfficiencyProfile) -> Input:
    return defined(
        f"efficiency.profile.{profile.key}",
        f"Profile {profile.key}",
        "1",
        profile.key,
        "holds where the fallback chain has its name",
        f"version {profile.version}",
        name="profiles",
    )
