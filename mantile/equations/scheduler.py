"""How requests get their turn: the prefill that other requests' steps carry, and the wait for a first token.

Three schedulers: mixed (chunks of prompts ride in decode steps), prefill first (decode stops for prompts),
whole prompts (prompts join decode steps undivided). The closed forms were fitted to a step-by-step simulation
of each under a closed loop, thousands of settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.framework import Frameworks
from mantile.equations.inputs import Ranks, Workload
from mantile.graph.quantity import Input, Node, Quantity, Section, defined, equal, index, match, span, where
from mantile.library.profiles import SCHEDULERS
from mantile.library.scenario_fields import DEFAULT

PREFILL_FIRST = "prefill-first"
assert PREFILL_FIRST in SCHEDULERS

_SOURCE = "simulation, 2026-11"
_FIGURES = {"factor": "factor", "share": "exponent of the share", "others": "exponent of the others"}
# mean wait = factor x prefill alone x (share of time given to other prompts)^share x (other requests)^others,
# by scheduler; the median error of the fit against the simulation is 5 %
_WAITS: dict[str, tuple[float, float, float]] = {
    "mixed": (0.086, 0.68, 0.52),
    "prefill-first": (0.098, 0.80, 0.44),
    "whole-prompts": (0.069, 0.65, 0.51),
}


@dataclass(frozen=True)
class Scheduler:
    """The scheduler in use.

    Args:
        first: 1 if decode stops for prompts.
        waits: the three figures of its closed form.
        in_use: the block of which it is; `forms` of its closed forms.
    """

    first: Quantity
    waits: tuple[Quantity, Quantity, Quantity]
    in_use: Section
    forms: Section

    def wait(self, prompt_time: Quantity, share: Quantity, others: Node) -> Node:
        """Seconds that a request waits behind other prompts, on average.

        Args:
            prompt_time: seconds of a prompt by itself.
            share: of the time, given to other requests' prompts.
            others: other requests in the batch.
        """
        factor, of_share, of_others = self.waits
        return factor * prompt_time * share**of_share * others**of_others


def interleaved(ranks: Ranks) -> Node:
    """1 where prompts interrupt decode steps: in continuous batching of aggregated serving."""
    return ranks.continuous if ranks.disaggregated is None else ranks.continuous * (1 - ranks.disaggregated)


def mixed(turns: Scheduler, ranks: Ranks) -> Node:
    """1 where prompts ride in decode steps."""
    return interleaved(ranks) * (1 - turns.first)


def scheduler(known: Frameworks, inputs: Workload) -> Scheduler:
    """Which scheduler a framework has, or the one asked for, and its figures."""
    kinds = tuple(
        defined(f"scheduler.{kind}", f"Scheduler {kind}", "1", kind, meaning, name="schedulers")
        for kind, meaning in SCHEDULERS.items()
    )
    in_use = Quantity(
        "scheduler.in_use",
        "Scheduler in use",
        "1",
        where(
            equal(inputs.scheduler, DEFAULT),
            known.of(known.schedulers, inputs.framework),
            inputs.scheduler,
        ),
    )
    place = Quantity("scheduler.place", "Place of the scheduler", "number", match(in_use, span(kinds)))
    first = Quantity(
        "scheduler.first",
        "Decode stops for prompts",
        "flag",
        where(equal(in_use, PREFILL_FIRST), 1, 0),
        name="prefill first",
    )
    waits, rows = _waits(place)
    return Scheduler(
        first=first,
        waits=waits,
        in_use=Section("Scheduler", (*kinds, in_use, place, first), "how prompts get their turn"),
        forms=Section(
            "Waits by scheduler",
            tuple(rows),
            "wait = factor × prefill alone × share of others' prefill ^ exponent × others ^ exponent",
        ),
    )


def _waits(
    place: Quantity,
) -> tuple[tuple[Quantity, Quantity, Quantity], list[Input | Quantity]]:
    """The three figures of the closed form for the scheduler in use, and their rows for all schedulers."""
    rows: list[Input | Quantity] = []
    in_use: list[Quantity] = []
    for number, (name, meaning) in enumerate(_FIGURES.items()):
        by_scheduler = [
            Input(
                f"scheduler.mean.{name}.{kind}",
                f"Mean wait, {meaning}, {kind}",
                "1",
                _WAITS[kind][number],
                "median error 5 %",
                _SOURCE,
                "fitted",
                shared=True,
                minimum=0,
                maximum=5,
                name=f"{meaning} by scheduler",
            )
            for kind in SCHEDULERS
        ]
        in_use.append(
            Quantity(
                f"scheduler.mean.{name}",
                f"Mean wait, {meaning} in use",
                "1",
                index(span(by_scheduler), place),
                name=f"mean wait, {meaning}",
            )
        )
        rows += [*by_scheduler, in_use[-1]]
    return (in_use[0], in_use[1], in_use[2]), rows
