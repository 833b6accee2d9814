"""Settings of an engine by the names that engines give them: rows "engine".

There are rows only of what a scenario states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from mantile.equations.constant import GENERAL_BLOCK, GENERAL_TOKENS, GIBI, GIGA
from mantile.equations.efficiency import Efficiency
from mantile.equations.framework import Frameworks
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    defined,
    equal,
    index,
    is_number,
    join,
    match,
    span,
    sum_of,
    sum_where,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.profiles import ALL, STATIC, Library
from mantile.library.scenario_fields import DEFAULT
from mantile.library.support import SETTINGS, Setting


@dataclass(frozen=True)
class Share:
    """What an engine may use of the memory of an accelerator.

    Args:
        part: the share that it is told, or takes.
        of: of what memory that is a share: one of `SHARES`, a text.
        taken: B that others take; None where no scenario says so.
    """

    part: Node
    of: Node
    taken: Quantity | None
    section: Section | None


def share(inputs: Workload, efficiency: Efficiency, known: Frameworks) -> Share:
    """The share of memory: of the framework, or what the engine is told; and what others take."""
    rows = Rows("engine")
    part: Node = efficiency["memory_usable"]
    of: Node = known.of(known.shares, inputs.framework)
    if inputs.gpu_memory_utilization is not None and inputs.mem_fraction_static is not None:
        of_framework = rows("share_of_framework", "What the share of memory is of", "1", of)
        static = rows(
            "static",
            "Share of memory for weights and KV cache alone",
            "1",
            where(inputs.mem_fraction_static > 0, inputs.mem_fraction_static, part),
        )
        of_static = rows(
            "of_static",
            "What the share is of, where none of all memory is told",
            "1",
            where(inputs.mem_fraction_static > 0, STATIC, of_framework),
        )
        part = rows(
            "share",
            "Share of memory in use",
            "1",
            where(inputs.gpu_memory_utilization > 0, inputs.gpu_memory_utilization, static),
        )
        of = rows("share_of", "What it is of", "1", where(inputs.gpu_memory_utilization > 0, ALL, of_static))
    taken = None
    if inputs.memory_taken is not None:
        taken = rows("taken", "Memory that others take", "B", inputs.memory_taken * GIGA)
    section = rows.section("Memory for the engine", "what it is told, and what others take")
    return Share(part, of, taken, section if section.rows else None)


@dataclass(frozen=True)
class Limits:
    """What token budget and most requests are until somebody states them.

    Args:
        token_budget: tokens of a step.
        max_requests: of a replica; 0: as many as memory holds.
        block: tokens of a block; None where no scenario caches prefixes.
    """

    token_budget: Quantity
    max_requests: Quantity
    block: Quantity | None
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Settings:
    """Settings by the engine's names.

    Args:
        unknown: of them, those that the framework does not know; `left_out` those whose effect is not
            modelled.
        choices: by field what its cell may hold: more names than Excel takes in a list of their own.
    """

    unknown: Quantity
    left_out: Quantity
    choices: Mapping[str, tuple[Input, ...]]
    sections: tuple[Section, ...]


def settings(library: Library, inputs: Workload) -> Settings | None:
    """Whether the framework knows the names that are stated; None where no scenario states any."""
    asked = {name: getattr(inputs, name) for name in SETTINGS if getattr(inputs, name) is not None}
    if not asked:
        return None
    known = {
        f"{each.id}/{one.field}/{name}": (each.id, one, name)
        for each in library.frameworks
        for one in each.settings
        for name in one.names
    }
    names = _of_settings(known, "name", {key: key for key in known})
    odd = _of_settings(
        known, "odd", {key: int(name not in one.usual) for key, (_, one, name) in known.items()}
    )
    choices = {name: _choices(name, entry) for name, entry in asked.items()}
    rows = Rows("engine")
    unknown: list[Node] = []
    left_out: list[Node] = []
    for name, entry in asked.items():
        key = join(inputs.framework, f"/{name}/", entry)
        places = where(is_number(match(key, span(names))), 1, 0)
        listed = rows(f"{name}_listed", f"The framework has it, {entry.label.lower()}", "flag", places)
        stated = where(equal(entry, DEFAULT), 0, 1)
        told = rows(f"{name}_stated", f"It is stated, {entry.label.lower()}", "flag", stated)
        unknown.append(told * (1 - listed))
        other = sum_where(span(odd), span(names), key)
        left_out.append(rows(f"{name}_left_out", f"Not modelled, {entry.label.lower()}", "flag", other))
    return Settings(
        unknown=rows(
            "settings_unknown", "Settings that the framework does not have", "flag", sum_of(unknown)
        ),
        left_out=rows(
            "settings_left_out",
            "Settings whose effect is not modelled",
            "flag",
            sum_of(left_out),
            "the estimate is that of the usual ones",
        ),
        choices=choices,
        sections=(
            Section(
                "Names of settings", tuple(chain(*choices.values())), "of all frameworks, to choose from"
            ),
            Section("Settings of frameworks", (*names, *odd), "by the names that each has for them"),
            rows.section("Settings", "as they are stated"),
        ),
    )


def _choices(name: str, entry: Input) -> tuple[Input, ...]:
    return tuple(
        defined(
            f"engine.{name}.choice.{word}",
            f"{entry.label}: {word}",
            "1",
            word,
            "what may be stated",
            entry.source,
            name=f"names of {name}",
        )
        for word in entry.choices
    )


def _of_settings(
    known: Mapping[str, tuple[str, Setting, str]], name: str, values: Mapping[str, str | int]
) -> tuple[Input, ...]:
    label, unit = {"name": ("Setting", "1"), "odd": ("Not modelled", "flag")}[name]
    return tuple(
        defined(
            f"engine.{key.lower()}.{name}",
            f"{label}: {key}",
            unit,
            values[key],
            "of its release" if name == "name" else "0: as the estimate has it",
            f"{one.status} {one.date:%Y-%m}: {one.source}",
            name="names of settings" if name == "name" else "1 for what is not modelled",
        )
        for key, (_, one, _) in known.items()
    )


SMALL, LARGE = "small", "large"


def limits(library: Library, inputs: Workload, hardware: Hardware) -> Limits | None:
    """What the framework takes where nothing is stated; None where no scenario asks for it."""
    if inputs.engine_defaults is None:
        return None
    names = _of_each(library, "limits", "Framework", "1", {each.id: each.id for each in library.frameworks})
    sizes = {
        (size, what): _of_each(
            library,
            f"{what}_{size}",
            f"{_LIMITS[what]}, {size} memory",
            unit,
            {
                each.id: getattr(each.limits.on(size), what) or 0 if each.limits else 0
                for each in library.frameworks
            },
        )
        for what, unit in (("token_budget", "token"), ("max_requests", "request"))
        for size in (SMALL, LARGE)
    }
    least = _of_each(
        library,
        "large_from",
        "Memory that counts as large",
        "GiB",
        {each.id: (each.limits.large_from or 0) if each.limits else 0 for each in library.frameworks},
    )
    but = _of_each(
        library,
        "small_on",
        "Generation that counts as small",
        "1",
        {each.id: (each.limits.small_on if each.limits else "") or "none" for each in library.frameworks},
    )
    rows = Rows("engine")
    place = rows("place", "Place of the framework", "number", match(inputs.framework, span(names)))
    asked = rows(
        "asked",
        "Defaults are the framework's",
        "flag",
        where(equal(inputs.engine_defaults, "framework"), 1, 0),
    )
    enough = rows(
        "large_from",
        "Memory that counts as large",
        "B",
        index(span(least), place) * GIBI,
        "as the framework says",
    )
    but_not = rows("small_on", "Generation that counts as small", "1", index(span(but), place))
    large = rows(
        "large",
        "The accelerator has a large memory",
        "flag",
        where(hardware.memory_capacity >= enough, 1, 0) * where(equal(but_not, hardware.generation), 0, 1),
        "as the framework counts it",
    )

    def stated(what: str) -> Quantity:
        small, big = (index(span(sizes[size, what]), place) for size in (SMALL, LARGE))
        return rows(
            f"{what}_stated",
            f"{_LIMITS[what]} that is stated",
            sizes[SMALL, what][0].unit,
            where(large > 0, big, small),
        )

    budget, most = stated("token_budget"), stated("max_requests")
    tokens = rows(
        "token_budget",
        "Token budget by default",
        "token",
        where(all_of(asked > 0, budget > 0), budget, GENERAL_TOKENS),
    )
    requests = rows(
        "max_requests",
        "Most requests by default",
        "request",
        most * asked * inputs.attention_dp,
        "each group has its own; 0: as many as memory holds",
    )
    blocks: tuple[Input, ...] = ()
    block = None
    if inputs.prefix_block is not None:
        blocks = _blocks(library)
        of_engine = rows("block_stated", "Block that is stated", "token/request", index(span(blocks), place))
        block = rows(
            "block",
            "Block of the prefix cache by default",
            "token/request",
            where(all_of(asked > 0, of_engine > 0), of_engine, GENERAL_BLOCK),
        )
    table = tuple(figure for figures in (names, *sizes.values(), least, but, blocks) for figure in figures)
    return Limits(
        token_budget=tokens,
        max_requests=requests,
        block=block,
        sections=(
            Section(
                "Limits of frameworks", table, "what each takes where nothing is stated; 0: nobody states it"
            ),
            rows.section("Limits by default", "until somebody types over them"),
        ),
    )


_LIMITS = {"token_budget": "Token budget", "max_requests": "Most requests"}


def _blocks(library: Library) -> tuple[Input, ...]:
    """Tokens of a block of the KV cache, of each framework."""
    return tuple(
        defined(
            f"engine.{each.id}.block",
            f"Block of the KV cache, {each.id}",
            "token/request",
            each.block.tokens if each.block else 0,
            "0: nobody states it",
            each.block.source if each.block else "no document was read",
            name="blocks of the frameworks",
        )
        for each in library.frameworks
    )


def _of_each(
    library: Library, name: str, label: str, unit: str, values: dict[str, str | int]
) -> tuple[Input, ...]:
    sources = {
        each.id: each.limits.source if each.limits else "no document was read" for each in library.frameworks
    }
    return tuple(
        defined(
            f"engine.{key}.{name}",
            f"{label}, {key}",
            unit,
            value,
            "default of the engine",
            sources[key],
            name=f"{label.lower()} of the frameworks",
        )
        for key, value in values.items()
    )
