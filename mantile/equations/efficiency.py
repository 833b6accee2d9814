"""Efficiency factors of the profiles, by fallback, or overridden; what is reached stands in efficiency.eq."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from mantile.equations.constant import GIGA, MICRO
from mantile.equations.factors import (
    CONDITIONS,
    DOMAINS,
    FORMATS,
    KINDS,
    KV_FORMATS,
    RANKS,
    Condition,
    FactorKind,
)
from mantile.equations.fallback import Fallback, LibraryFigures, Sources
from mantile.equations.formats import CLASSES, Formats, class_label
from mantile.equations.override import Overridable, override_cell, unless_overridden
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Row,
    Section,
    index,
    span,
)
from mantile.graph.sentence import lowered
from mantile.ir.modules import GroupedMatMul, ModelGraph, Vision
from mantile.library.efficiency import EfficiencyProfile, Factor
from mantile.library.errors import InputError
from mantile.library.profiles import Library

_BESIDE = "at the right what the library states, from wide profiles to specific ones; coloured: in use"
_NAMES: Mapping[Condition | None, str] = {"format": "format", "kv": "kv_format", "ranks": "ranks"}
_EXPERTS, _RATE = "experts", "efficiency.rate."
_OF_LINKS = "Between accelerators"
"""The factors of links, in factors.table."""


@dataclass(frozen=True)
class FactorInUse:
    """A factor as a scenario uses it.

    Args:
        overridable: the cell that stands for the library's figures once filled.
        by_user: the factor in SI units, by the class of matrices or group of ranks that uses it; "" where all
            use the same.
        tables: the library's figures under each condition; one where they hold always.
        places: which of the tables holds, by user; None where there is only one.
        conditions: what each table holds for, and `of_condition` its figure; none where there is only one.
    """

    kind: FactorKind
    overridable: Overridable
    by_user: Mapping[str, Quantity]
    tables: tuple[LibraryFigures, ...]
    places: Mapping[str, Quantity | None]
    conditions: tuple[Named, ...]
    of_condition: tuple[Quantity, ...]

    @property
    def main(self) -> Quantity:
        """The factor; where it differs by class of matrices, as the class with most of them has it."""
        return self.by_user["ffn"] if "ffn" in self.by_user else next(iter(self.by_user.values()))

    def figures(self) -> tuple[Input, ...]:
        """All figures that the library has for it."""
        return tuple(figure for table in self.tables for figure in table.figures.values())

    def library_figure(self, quantity: Quantity, values: Mapping[Node, Any]) -> Input:
        """The library's figure that the fallback chain leads to, whether or not an override stands for it.

        Args:
            quantity: the factor of one user.
            values: of all quantities in a case.
        """
        user = next(user for user, factor in self.by_user.items() if factor is quantity)
        place = self.places[user]
        return self.tables[0 if place is None else int(values[place]) - 1].in_use(values)


@dataclass(frozen=True)
class Efficiency:
    """Factors in use, in SI units, and the rows they come from.

    Args:
        in_use: the factors that the model needs, by name, in order.
        sources: of the library's figures.
        rates: what follows from factors and hardware: times, FLOP/s and B/s that are reached.
        profile: key of the most specific profile.
    """

    in_use: dict[str, FactorInUse]
    sources: Sources
    rates: Mapping[str, Quantity]
    profile: Quantity
    sections: tuple[Section, ...]

    def __getitem__(self, name: str) -> Quantity:
        """A factor in use, or what follows from it and the hardware."""
        return self.rates[name] if name in self.rates else self.factors[name]

    @cached_property
    def factors(self) -> dict[str, Quantity]:
        """The factors by name.

        Those that differ by class of matrices as the class with most of them has them.
        """
        return {name: factor.main for name, factor in self.in_use.items()}

    @cached_property
    def by_user(self) -> dict[tuple[str, str], Quantity]:
        """The factors by name and the class of matrices or group of ranks that uses them."""
        return {
            (name, user): quantity
            for name, factor in self.in_use.items()
            for user, quantity in factor.by_user.items()
        }

    @cached_property
    def figures(self) -> dict[str, tuple[Input, ...]]:
        """All figures of the library, by the name of their factor."""
        return {name: factor.figures() for name, factor in self.in_use.items()}

    @property
    def overridable(self) -> tuple[Overridable, ...]:
        """The cells that stand for figures of the library once filled."""
        return tuple(factor.overridable for factor in self.in_use.values())


def efficiency(library: Library, formats: Formats, ir: ModelGraph, rows: Equations) -> Efficiency:
    """The rows of the Efficiency sheet.

    Args:
        rows: know hardware, formats and ranks; get what is reached.

    Raises:
        InputError: if the global profile lacks a factor, so that a chain would end in nothing.
    """
    fallback = Fallback(library, rows)
    _require_complete(next(profile for profile in fallback.profiles if profile.key == "global"))
    conditions = _conditions(formats, rows)
    in_use: dict[str, FactorInUse] = {}
    blocks: dict[str, list[Row]] = {}
    for kind in _kinds(ir, rows.features):
        in_use[kind.name], of_kind = _factor(kind, fallback, conditions)
        blocks.setdefault(kind.subject, []).extend(of_kind)
    rows.know(*(factor for found in in_use.values() for factor in found.by_user.values()))
    rows.make_in("link", *_links(in_use))
    of_peak = [identifier for *_, identifier in rows.places("efficiency") if ".fraction." in identifier]
    rows.know_as("efficiency.fractions", span([rows[identifier] for identifier in of_peak]))
    fractions, reached = rows.sections("efficiency", "Fractions of a peak", "What is reached")
    return Efficiency(
        in_use=in_use,
        sources=(sources := fallback.sources()),
        rates={row.id.removeprefix(_RATE): row for row in reached.figures() if isinstance(row, Quantity)},
        profile=rows["efficiency.profile_in_use"],
        sections=(
            *fallback.sections(),
            *rows.sections("fallback", "Profile"),
            conditions.section,
            *(Section(title, tuple(of_kind), _BESIDE) for title, of_kind in blocks.items()),
            fractions,
            reached,
            sources.listed.section,
        ),
    )


def _kinds(ir: ModelGraph, features: frozenset[str]) -> list[FactorKind]:
    """The factors that a model needs, and what is asked of it."""
    operations = ir.operations() | ({Vision} if ir.vision is not None else set())
    return [
        kind
        for kind in KINDS
        if (not kind.needs or operations & set(kind.needs)) and (not kind.when or kind.when in features)
    ]


@dataclass(frozen=True)
class _Conditions:
    """Which figures hold of factors that have several.

    Args:
        formats: place of the kernel format, by class of matrices.
        kv: place of the KV format.
        ranks: place of the number of ranks, by group of ranks.
        names: what figures may hold for.
    """

    formats: Mapping[str, Quantity]
    kv: Quantity
    ranks: Mapping[str, Quantity]
    names: Mapping[Condition | None, tuple[Named, ...]]
    section: Section

    def of(self, kind: FactorKind) -> tuple[Named, ...]:
        """What figures of a factor hold for."""
        return self.names.get(kind.condition, ())

    def places(self, kind: FactorKind) -> Mapping[str, Quantity | None]:
        """Who uses a factor, and the place of the condition that holds there."""
        match kind.condition:
            case "kv":
                return {"": self.kv}
            case "ranks":
                return {group: self.ranks[group] for group in kind.groups if group in self.ranks}
            case "format":
                of_experts = GroupedMatMul in kind.needs
                return {
                    name: place for name, place in self.formats.items() if (name == "experts") == of_experts
                }
        return {"": None}


def _links(in_use: Mapping[str, FactorInUse]) -> Iterator[Space]:
    """Factors of links between accelerators, by group of ranks where they differ."""
    for factor in in_use.values():
        kind = factor.kind
        if kind.fraction and kind.subject == _OF_LINKS:
            label = kind.label.removesuffix(" efficiency").lower()
            alike = len(kind.groups) == 1 or kind.condition is None
            for user, figure in factor.by_user.items():
                facts = {"name": label if alike else f"{label}, {user}"}
                yield Space(facts=facts | {"link": figure.id.removeprefix("efficiency.")})


def _conditions(formats: Formats, rows: Equations) -> _Conditions:
    plain = [name for name in formats.classes if name != _EXPERTS]
    rows.make_in("kernel format", *(Space(facts={"f": name}) for name in FORMATS))
    rows.make_in("KV format", *(Space(facts={"f": name}) for name in KV_FORMATS))
    rows.make_in("number of ranks", *(Space(facts={"n": str(number)}) for number in RANKS))
    rows.make_in("class of products", *map(_of_class, formats.classes))
    rows.make_in("class of plain products", *map(_of_class, plain))
    groups = [row.id.rpartition(".")[2] for row in rows.family("efficiency.ranks_in_use.*")]
    (section,) = rows.sections("efficiency", "Conditions")
    return _Conditions(
        formats={name: rows[f"efficiency.format_in_use.{name}"] for name in formats.classes},
        kv=rows["efficiency.kv_format_in_use"],
        ranks={group: rows[f"efficiency.ranks_in_use.{group}"] for group in groups},
        names={condition: rows.family(f"efficiency.{name}.*") for condition, name in _NAMES.items()},
        section=section,
    )


def _of_class(name: str) -> Space:
    return Space(facts={"c": name, "name": class_label(name)})


def _factor(kind: FactorKind, fallback: Fallback, conditions: _Conditions) -> tuple[FactorInUse, list[Row]]:
    """A factor: figures of the library, those of the highest level, the override, and what each user uses."""
    tables = [_table(kind, value, fallback) for value in DOMAINS[kind.condition]]
    of_level = [
        Quantity(
            f"efficiency.{kind.name}{_suffix(kind, value)}",
            f"{kind.label}{_suffix(kind, value).replace('.', ', ')}",
            kind.unit,
            figures.chosen(),
            note=kind.note,
            source=figures.choice.place.id.removeprefix("efficiency."),
            name=f"{lowered(kind.label)} by {CONDITIONS[kind.condition]}",
        )
        for value, figures in zip(DOMAINS[kind.condition], tables, strict=True)
        if kind.condition is not None
    ]
    cell = override_cell(f"efficiency.{kind.name}", kind.label, kind.unit, kind.low, kind.high)
    places = conditions.places(kind)
    named = len(places) > 1 or kind.condition == "format"
    defaults = {
        user: tables[0].chosen() if place is None else index(span(of_level), place)
        for user, place in places.items()
    }
    by_user = {
        user: _in_use(kind, unless_overridden(cell, default), user if named else "")
        for user, default in defaults.items()
    }
    factor = FactorInUse(
        kind=kind,
        overridable=Overridable(cell, tuple(by_user.values()), tuple(defaults.values())),
        by_user=by_user,
        tables=tuple(tables),
        places=places,
        conditions=conditions.of(kind),
        of_condition=tuple(of_level),
    )
    if of_level:
        beside = [(figure, table.row) for figure, table in zip(of_level, tables, strict=True)]
        return factor, [*beside, cell, *by_user.values()]
    if kind.unit == "1":
        return factor, [cell, (factor.main, tables[0].row)]
    return factor, [(cell, tables[0].row), factor.main]  # the one in SI, as the other is quoted


def _table(kind: FactorKind, value: object, fallback: Fallback) -> LibraryFigures:
    """The library's figures of a factor under one condition."""
    suffix = _suffix(kind, value)
    figures = {
        key: _library_figure(kind, key, factor, suffix)
        for key, factor in fallback.stated[kind.name]
        if kind.condition is None or getattr(factor, kind.condition) == value
    }
    widest = fallback.profiles[0].key
    if widest not in figures and kind.otherwise is not None:
        figures = {widest: _library_figure(kind, widest, unstated(kind), "")} | figures
    return fallback.figures(f"{kind.name}{suffix}", f"{kind.label}{suffix.replace('.', ', ')}", figures)


def unstated(kind: FactorKind) -> Factor:
    """The figure of a factor that a library does not state."""
    assert kind.otherwise is not None
    return Factor(
        factor=kind.name,
        value=kind.otherwise,
        status="assumed",
        date=date(2026, 11, 22),
        source="not stated by this library",
    )


def _suffix(kind: FactorKind, value: object) -> str:
    """What ids of figures of one condition end in."""
    return "" if value is None else f".tp{value}" if kind.condition == "ranks" else f".{value}"


def _library_figure(kind: FactorKind, key: str, factor: Factor, suffix: str) -> Input:
    condition = f" · {suffix[1:]}" if suffix else ""
    return Input(
        f"efficiency.{kind.name}.{key}{suffix}",
        f"{key}{condition} · {lowered(kind.label)}",
        kind.unit,
        factor.value,
        kind.note,
        f"{factor.status} {factor.date:%Y-%m}: {factor.source}",
        factor.status,
        shared=True,
        fixed=True,
        name=f"{lowered(kind.label)} in the library",
    )


def _in_use(kind: FactorKind, value: Node, user: str) -> Quantity:
    """A factor as it is used, in SI units."""
    unit = kind.unit
    if unit == "us":
        value, unit = value / MICRO, "s"
    elif unit in ("GB", "GB/s"):
        value, unit = value * GIGA, unit.replace("GB", "B")
    of_class = f".{user}" if user and GroupedMatMul not in kind.needs else ""
    of_user = class_label(user) if user.partition(".")[0] in CLASSES else {"tp": "TP"}.get(user, user)
    label = f", {of_user}" if user else ""
    return Quantity(
        f"efficiency.{kind.name}{of_class}",
        f"{kind.label} in use{label}",
        unit,
        value,
        note="" if kind.condition is not None else kind.note,
        name=lowered(kind.label),
        factor=True,
    )


def _require_complete(profile: EfficiencyProfile) -> None:
    have = {(factor.factor, factor.format, factor.kv, factor.ranks) for factor in profile.factors}
    for kind in KINDS:
        if kind.otherwise is not None:
            continue
        for value in DOMAINS[kind.condition]:
            key = tuple(
                value if condition == kind.condition else None for condition in ("format", "kv", "ranks")
            )
            if (kind.name, *key) not in have:
                raise InputError(
                    f"profiles/efficiency/global.yaml: factor {kind.name}{f' for {value}' if value else ''} "
                    "is missing; the global profile ends every fallback chain"
                )
