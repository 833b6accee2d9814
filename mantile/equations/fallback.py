"""Which efficiency profile holds, rows "efficiency.chain", "efficiency.profile" and "efficiency.choice".

A profile holds for everything, a generation or an accelerator, with or without a framework, or for how
accelerators are linked. Of the profiles that hold for a scenario and have a factor, the one of the highest
level is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    as_node,
    defined,
    index,
    is_number,
    join,
    match,
    span,
    where,
)
from mantile.library.efficiency import FALLBACK_CHAIN, EfficiencyProfile, Factor, Level
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Choice:
    """Of some profiles, the one that is used.

    Args:
        keys: of the profiles.
        place: of the one in use among them.
        profile: its key.
        section: the rows behind the place.
    """

    keys: tuple[str, ...]
    place: Quantity
    profile: Quantity
    section: Section


@dataclass(frozen=True)
class LibraryFigures:
    """The library's figures of a factor, all or those of one condition.

    Args:
        figures: by the key of their profile.
        choice: which of them is used; None where there is only one.
    """

    figures: Mapping[str, Input]
    choice: Choice | None

    def chosen(self) -> Node:
        """The figure that is used."""
        figures = tuple(self.figures.values())
        return figures[0] if self.choice is None else index(span(figures), self.choice.place)

    def in_use(self, values: Mapping[Node, Any]) -> Input:
        """The figure that is used in a case with these values."""
        if self.choice is None:
            return next(iter(self.figures.values()))
        return self.figures[str(values[self.choice.profile])]


class Fallback:
    """The fallback chain of a scenario, and the choices among profiles, each worked out once.

    Args:
        profiles: those of the library, in the order of their rows.
        stated: what they state of each factor, with the key of the profile.
    """

    def __init__(self, library: Library, inputs: Workload, hardware: Hardware) -> None:
        self.profiles = sorted(
            library.efficiency, key=lambda profile: (profile.level.of_links, profile.level.number, profile.id)
        )
        self._levels: dict[str, int] = {}
        self.stated: dict[str, list[tuple[str, Factor]]] = defaultdict(list)
        for profile in self.profiles:
            key = profile.key
            self._levels[key] = profile.level.number
            for factor in profile.factors:
                self.stated[factor.factor].append((key, factor))
        fields: dict[str, Node] = {
            "framework": inputs.framework,
            "generation": hardware.generation,
            "accelerator": inputs.accelerator,
            "topology": hardware.topology,
            "link": hardware.link,
        }
        self._chain = tuple(
            Quantity(
                f"efficiency.chain.{level.name}",
                f"Level {level.number}: {level.label}",
                "1",
                _key(level, fields),
                name=f"key of level {level.number}",
            )
            for level in FALLBACK_CHAIN
        )
        self._keys = tuple(_profile_key(profile) for profile in self.profiles)
        self._choices: dict[tuple[str, ...], Choice] = {}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The choices made so far."""
        return tuple(self._choices.values())

    def choice(self, keys: Sequence[str]) -> Choice:
        """Of profiles with these keys, among them the global one, the one of the highest level."""
        among = tuple(keys)
        if among not in self._choices:
            self._choices[among] = self._choice(len(self._choices) + 1, among)
        return self._choices[among]

    def figures(self, figures: Mapping[str, Input]) -> LibraryFigures:
        """Figures by the key of their profile, with the choice among them."""
        return LibraryFigures(figures, self.choice(tuple(figures)) if len(figures) > 1 else None)

    def most_specific(self) -> Quantity:
        """The profile of the highest level, of all that are not about links only."""
        keys = [profile.key for profile in self.profiles if not profile.level.of_links]
        return Quantity(
            "efficiency.profile_in_use",
            "Most specific profile",
            "1",
            index(span(self._keys[: len(keys)]), self.choice(keys).place),
            note="profiles about links left out; factors that it lacks come from wider ones",
        )

    def sections(self) -> tuple[Section, ...]:
        """The blocks of profiles, chain and choices."""
        return (
            Section(
                "Profiles",
                self._keys,
                "of the library; one holds where its name is in the fallback chain",
            ),
            Section("Fallback chain", self._chain, "from wide to specific"),
            *(choice.section for choice in self.choices),
        )

    def in_use(self) -> Section:
        """The block that says which profile each choice comes to."""
        return Section(
            "Profiles in use",
            tuple(choice.profile for choice in self.choices),
            "of each choice above; an override comes before any profile",
        )

    def _choice(self, number: int, keys: tuple[str, ...]) -> Choice:
        identifier = f"efficiency.choice.{number}"
        rows = [
            defined(
                f"{identifier}.{key}",
                f"Choice {number}: {key}",
                "1",
                key,
                "a profile that has the figures",
                name=f"profiles of choice {number}",
            )
            for key in keys
        ]
        levels = sorted({self._levels[key] for key in keys} - {1})
        places: list[Quantity] = []
        place: Node = as_node(1)  # the global profile, which has every figure
        for level in levels:
            match_of_level = match(self._chain[level - 1], span(rows))
            last = level == levels[-1]
            place = Quantity(
                identifier if last else f"{identifier}.level_{level}",
                f"Choice {number}: place of the profile, up to level {level}",
                "number",
                where(is_number(match_of_level), match_of_level, place),
                name=f"choice {number}" if last else f"choice {number} up to level {level}",
            )
            places.append(place)
        return Choice(
            keys=keys,
            place=places[-1],
            profile=Quantity(
                f"{identifier}.profile",
                f"Choice {number}: profile in use",
                "1",
                index(span(rows), places[-1]),
            ),
            section=Section(
                f"Choice {number}",
                (*rows, *places),
                "for figures found in just these profiles",
                Section.SUBTOTAL,
            ),
        )


def _key(level: Level, fields: Mapping[str, Node]) -> Node:
    """The key by which a scenario finds its profile of a level."""
    parts: list[Node | str] = []
    for text, field in level.parts:
        parts += [text] if text else []
        parts += [fields[field]] if field is not None else []
    return as_node(parts[0]) if len(parts) == 1 else join(*parts)


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
