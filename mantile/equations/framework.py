"""What the library states of serving frameworks, rows "framework".

Whose chips they run on, how they schedule.
"""

from __future__ import annotations

from mantile.graph.quantity import Input, defined
from mantile.library.profiles import Library


def pairs(library: Library) -> tuple[tuple[Input, ...], tuple[Input, ...]]:
    """Frameworks with the makers of the chips that they run on: framework/maker, and a 1 to count each."""
    keys = [f"{framework.id}/{vendor}" for framework in library.frameworks for vendor in framework.vendors]
    names = tuple(
        defined(
            f"framework.{key.lower()}.pair",
            f"Runs: {key}",
            "1",
            key,
            "framework/maker of the chip",
            "framework's documentation",
            name="the pair",
        )
        for key in keys
    )
    ones = tuple(
        defined(f"framework.{key.lower()}", f"One: {key}", "flag", 1, "counts the pair", name="1 for a pair")
        for key in keys
    )
    return names, ones


def names(library: Library) -> tuple[Input, ...]:
    """The ids of the frameworks."""
    return tuple(
        defined(
            f"framework.{framework.id}.name",
            f"Framework {framework.id}",
            "1",
            framework.id,
            "has the scheduler of the same place below",
            framework.source,
            name="frameworks",
        )
        for framework in library.frameworks
    )


def schedulers(library: Library) -> tuple[Input, ...]:
    """The scheduler of each framework, in the order of their names."""
    return tuple(
        defined(
            f"framework.{framework.id}.scheduler",
            f"Scheduler of {framework.id}",
            "1",
            framework.scheduler,
            "by default",
            framework.source,
            name="schedulers of the frameworks",
        )
        for framework in library.frameworks
    )
