"""What the library states of limits and settings of engines, by the names that engines give them: tables.

Rows stand in engine.eq.
"""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.framework import of_each
from mantile.equations.inputs import Workload
from mantile.equations.tables import Equations
from mantile.graph.quantity import Input, defined
from mantile.library.profiles import Library
from mantile.library.support import Setting

NAMES = {
    "schedule_policy": "schedule_policies",
    "attention_backend": "attention_backends",
    "moe_backend": "moe_backends",
}
"""By setting, the column of names that its cell may hold: more than Excel takes in a list of their own."""
_UNSTATED = "no document was read"


def engines(library: Library, inputs: Workload, rows: Equations) -> None:
    """Make known what engines take where nothing is stated, and the names that they know."""
    if "engine_defaults" in rows.features:
        rows.know_table("engine", dict(_limits(library)))
    if "engine_settings" in rows.features:
        rows.know_table("engine", dict(_settings(library)))
        rows.know_table(
            "engine", {column: _names(name, inputs.named()[name]) for name, column in NAMES.items()}
        )


def follow_limits(inputs: Workload, rows: Equations) -> None:
    """Let limits follow the framework's until somebody states them."""
    for name, row in (
        ("token_budget", "token_budget"),
        ("max_requests", "max_requests"),
        ("prefix_block", "block"),
    ):
        if f"engine.{row}" in rows:
            inputs.set_default(name, rows[f"engine.{row}"])


def _limits(library: Library) -> Iterator[tuple[str, tuple[Input, ...]]]:
    """Limits of each framework."""

    def column(name: str, label: str, unit: str, values: list[str | int]) -> tuple[Input, ...]:
        return of_each(
            library,
            f"engine.{{}}.{name}",
            label,
            unit,
            values,
            "default of the engine",
            f"{label.lower()} of the frameworks",
            [each.limits.source if each.limits else _UNSTATED for each in known],
        )

    known = library.frameworks
    yield "names", column("limits", "Framework", "1", [each.id for each in known])
    for what, columns, label, unit in (
        ("token_budget", "token_budgets", "Token budget", "token"),
        ("max_requests", "requests", "Most requests", "request"),
    ):
        for size in ("small", "large"):
            limits = [each.limits.on(size) if each.limits else None for each in known]
            values = [getattr(limit, what, None) or 0 for limit in limits]
            yield f"{columns}_{size}", column(f"{what}_{size}", f"{label}, {size} memory", unit, values)
    large = [(each.limits and each.limits.large_from) or 0 for each in known]
    yield "large_memories", column("large_from", "Memory that counts as large", "GiB", [*large])
    small = [(each.limits and each.limits.small_on) or "none" for each in known]
    yield "small_generations", column("small_on", "Generation that counts as small", "1", [*small])
    yield (
        "blocks",
        of_each(
            library,
            "engine.{}.block",
            "Block of the KV cache",
            "token/request",
            [each.block.tokens if each.block else 0 for each in known],
            "0: nobody states it",
            "blocks of the frameworks",
            [each.block.source if each.block else _UNSTATED for each in known],
        ),
    )


def _settings(library: Library) -> Iterator[tuple[str, tuple[Input, ...]]]:
    """All names of settings, and which of them are not modelled."""
    known = {
        f"{each.id}/{one.field}/{name}": (one, name)
        for each in library.frameworks
        for one in each.settings
        for name in one.names
    }
    yield (
        "settings",
        tuple(
            defined(
                f"engine.{key.lower()}.name",
                f"Setting: {key}",
                "1",
                key,
                "of its release",
                _source(one),
                name="names of settings",
            )
            for key, (one, _) in known.items()
        ),
    )
    yield (
        "odd",
        tuple(
            defined(
                f"engine.{key.lower()}.odd",
                f"Not modelled: {key}",
                "flag",
                int(name not in one.usual),
                "0: as the estimate has it",
                _source(one),
                name="1 for what is not modelled",
            )
            for key, (one, name) in known.items()
        ),
    )


def _source(setting: Setting) -> str:
    return f"{setting.status} {setting.date:%Y-%m}: {setting.source}"


def _names(name: str, entry: Input) -> tuple[Input, ...]:
    """What may be stated of a setting."""
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
