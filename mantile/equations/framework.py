"""What the library states of serving frameworks, rows "framework".

Whose chips they run on, how they schedule, when they give a request its place in the KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Input, Node, Section, defined, index, match, span
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


@dataclass(frozen=True)
class Frameworks:
    """What the library states of each framework, in the same order.

    Args:
        names: their ids.
        schedulers, admissions: what they do by default.
    """

    names: tuple[Input, ...]
    schedulers: tuple[Input, ...]
    admissions: tuple[Input, ...]

    @property
    def section(self) -> Section:
        """Their block."""
        return Section(
            "Defaults of frameworks",
            (*self.names, *self.schedulers, *self.admissions),
            "what each does unless something else is asked for",
        )

    def of(self, figures: tuple[Input, ...], framework: Node) -> Node:
        """The figure of a framework."""
        return index(span(figures), match(framework, span(self.names)))


def frameworks(library: Library) -> Frameworks:
    """The rows of all frameworks."""
    return Frameworks(
        names=_of_each(library, "name", "Framework", "has what stands at its place below", "frameworks"),
        schedulers=_of_each(
            library, "scheduler", "Scheduler of", "by default", "schedulers of the frameworks"
        ),
        admissions=_of_each(
            library, "kv_admission", "KV admission of", "by default", "KV admission of the frameworks"
        ),
    )


def _of_each(library: Library, attribute: str, label: str, note: str, called: str) -> tuple[Input, ...]:
    return tuple(
        defined(
            f"framework.{framework.id}.{attribute}",
            f"{label} {framework.id}",
            "1",
            framework.id if attribute == "name" else getattr(framework, attribute),
            note,
            framework.source,
            name=called,
        )
        for framework in library.frameworks
    )
