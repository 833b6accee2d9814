"""How requests get their turn: the prefill that other requests' steps carry, and the wait for a first token.

Three schedulers: mixed (chunks of prompts ride in decode steps), prefill first (decode stops for prompts), whole prompts (prompts join
decode steps undivided). The closed forms were fitted to a step-by-step simulation of each under a closed loop, thousands of settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.inputs import Workload
from mantile.graph.quantity import Input, Node, Quantity, Section, equal, index, match, span, where
from mantile.library.profiles import SCHEDULERS, Library
from mantile.library.scenario import DEFAULT

PREFILL_FIRST = "prefill-first"
assert PREFILL_FIRST in SCHEDULERS

_SOURCE = "simulation, 2026-11"
# wait = a x prefill alone x (share of time given to other prompts)^b x (other requests)^c, by scheduler; error of the fit against it
_WAITS: dict[str, tuple[str, str, dict[str, tuple[float, float, float]]]] = {
    "mean": (
        "Mean wait",
        "median error 5 %",
        {
            "mixed": (0.086, 0.68, 0.52),
            "prefill-first": (0.098, 0.80, 0.44),
            "whole-prompts": (0.069, 0.65, 0.51),
        },
    ),
    "p50": (
        "Median wait",
        "median error 4 to 5 %",
        {
            "mixed": (0.021, 0.81, 0.73),
            "prefill-first": (0.018, 1.04, 0.69),
            "whole-prompts": (0.007, 0.82, 0.88),
        },
    ),
    "p95": (
        "Wait of one in twenty",
        "median error 8 to 9 %",
        {
            "mixed": (0.72, 0.66, 0.32),
            "prefill-first": (0.92, 0.70, 0.24),
            "whole-prompts": (0.86, 0.61, 0.25),
        },
    ),
    "benchmark": (
        "Median wait in a benchmark",
        "median error 6 %",
        {
            "mixed": (0.10, 0.90, 0.60),
            "prefill-first": (0.16, 1.30, 0.49),
            "whole-prompts": (0.05, 0.92, 0.68),
        },
    ),
}


@dataclass(frozen=True)
class Scheduler:
    """The scheduler in use.

    Args:
        first: 1 if decode stops for prompts.
        waits: by statistic, the three figures of its closed form.
    """

    first: Quantity
    waits: dict[str, tuple[Quantity, Quantity, Quantity]]
    sections: tuple[Section, ...]

    def wait(self, statistic: str, alone: Quantity, share: Quantity, others: Node) -> Node:
        """Seconds that a request waits behind other prompts.

        Args:
            alone: seconds of a prompt by itself.
            share: of the time, given to other requests' prompts.
            others: other requests in the batch.
        """
        factor, of_share, of_others = self.waits[statistic]
        return factor * alone * share**of_share * others**of_others


def scheduler(library: Library, inputs: Workload) -> Scheduler:
    """Which scheduler a framework has, or the one asked for, and its figures."""
    names = tuple(
        _fact(
            f"framework.{framework.id}.name",
            f"Framework {framework.id}",
            framework.id,
            "has the scheduler of the same place below",
            framework.source,
            "frameworks",
        )
        for framework in library.frameworks
    )
    theirs = tuple(
        _fact(
            f"framework.{framework.id}.scheduler",
            f"Scheduler of {framework.id}",
            framework.scheduler,
            "by default",
            framework.source,
            "schedulers of the frameworks",
        )
        for framework in library.frameworks
    )
    kinds = tuple(
        _fact(f"scheduler.{kind}", f"Scheduler {kind}", kind, words, "definition", "schedulers")
        for kind, words in SCHEDULERS.items()
    )
    used = Quantity(
        "scheduler.in_use",
        "Scheduler in use",
        "1",
        where(
            equal(inputs.scheduler, DEFAULT),
            index(span(theirs), match(inputs.framework, span(names))),
            inputs.scheduler,
        ),
        note="the framework's, or as asked",
    )
    place = Quantity(
        "scheduler.place",
        "Place of the scheduler",
        "number",
        match(used, span(kinds)),
        note="among the schedulers",
    )
    first = Quantity(
        "scheduler.first",
        "Decode stops for prompts",
        "flag",
        where(equal(used, PREFILL_FIRST), 1, 0),
        name="prefill first",
        note="1 if prompts are prefilled before decode goes on",
    )
    rows: list[Input | Quantity] = []
    waits: dict[str, tuple[Quantity, Quantity, Quantity]] = {}
    for statistic, (label, error, figures) in _WAITS.items():
        found: list[Quantity] = []
        for number, (name, words) in enumerate(
            (("factor", "factor"), ("share", "exponent of the share"), ("others", "exponent of the others"))
        ):
            cells = [
                Input(
                    f"scheduler.{statistic}.{name}.{kind}",
                    f"{label}, {words}, {kind}",
                    "1",
                    figures[kind][number],
                    error,
                    _SOURCE,
                    "fitted",
                    shared=True,
                    minimum=0,
                    maximum=5,
                    name=f"{words} by scheduler",
                )
                for kind in SCHEDULERS
            ]
            found.append(
                Quantity(
                    f"scheduler.{statistic}.{name}",
                    f"{label}, {words} in use",
                    "1",
                    index(span(cells), place),
                    note="of the scheduler in use",
                    name=f"{label.lower()}, {words}",
                )
            )
            rows += [*cells, found[-1]]
        waits[statistic] = (found[0], found[1], found[2])
    return Scheduler(
        first,
        waits,
        (
            Section("Scheduler", (*names, *theirs, *kinds, used, place, first), "how prompts get their turn"),
            Section(
                "Waits by scheduler",
                tuple(rows),
                "wait = factor × prefill alone × share of others' prefill ^ exponent × others ^ exponent",
            ),
        ),
    )


def _fact(identifier: str, label: str, value: str, note: str, source: str, name: str) -> Input:
    return Input(identifier, label, "1", value, note, source, "defined", shared=True, fixed=True, name=name)
