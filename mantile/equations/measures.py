"""What a plan can be judged by: the headline metrics that have a better direction, and what else decides.

Objectives, limits and rankings name a measure by its key, by an alias, or by the key of its metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    ACCELERATORS,
    E2E,
    E2E_P95,
    INTERACTIVITY,
    METRICS,
    OUTPUT_TOKENS_PER_KWH,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_USD,
    POWER,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
    Better,
    Metric,
)
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    logarithm,
    number_of,
    sum_of,
    where,
)
from mantile.library.errors import InputError, unknown

_ALIASES = {
    TTFT: ("ttft",),
    TTFT_P95: ("ttft-p95",),
    TPOT: ("tpot", "itl"),
    E2E: ("e2e", "latency"),
    E2E_P95: ("e2e-p95",),
    INTERACTIVITY: ("interactivity", "tokens-per-user", "decode-rate"),
    OUTPUT_TOKENS_PER_S: ("throughput",),
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR: ("throughput-per-accelerator",),
    USD_PER_MILLION_OUTPUT_TOKENS: ("cost", "usd-per-million", "usd-per-million-tokens"),
    USD_PER_HOUR: ("usd-per-hour",),
    USD_PER_MONTH: ("usd-per-month",),
    OUTPUT_TOKENS_PER_USD: ("perf-per-dollar", "tokens-per-usd"),
    OUTPUT_TOKENS_PER_KWH: ("tokens-per-kwh", "energy"),
    POWER: ("power",),
}


@dataclass(frozen=True)
class Measure:
    """Something by which one plan is better than another.

    Args:
        key: its name on the command line and in files.
        metric: whose unit, digits and words it has.
        better: the direction that is.
        of: the quantity in a graph; a text where nobody knows it.
        aliases: other names.
    """

    key: str
    metric: Metric
    better: Better
    of: Callable[[EstimateGraph], Named]
    aliases: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Callable[[str], Measure], tuple[str]]:
        return measure, (self.key,)  # another process has it by its key

    @property
    def lower(self) -> bool:
        """Whether less is better."""
        return self.better == "lower"

    def text(self, value: float | None) -> str:
        """A value with its unit; for None that it is not known."""
        return self.metric.text(value)


HEADROOM = Metric(
    attribute="memory_headroom",
    id="measures.headroom",
    key="memory_headroom",
    label="Memory headroom",
    unit="1",
    definition="share of the usable memory of the fullest accelerator that stays free",
    shown_unit="%",
    digits=1,
    better="higher",
    of_plan=False,
)


EVIDENCE = Metric(
    attribute="evidence_level",
    id="evidence.level",
    key="evidence_level",
    label="Evidence",
    unit="number",
    definition="3: runs of this chip, framework and kind of model; 2: of the framework on others; 1: none",
    better="higher",
    heading="evidence, 1 to 3",
    of_plan=False,
)


def headroom(graph: EstimateGraph) -> Quantity:
    """The share of usable memory that stays free on the fullest accelerator."""
    memory = graph.fullest
    share = where(memory["memory.usable"] > 0, 1 - memory["memory.used"] / memory["memory.usable"], NOT_KNOWN)
    return Quantity(HEADROOM.id, HEADROOM.label, HEADROOM.unit, share)


def weight(of: Measure, value: float) -> Input:
    """The weight of a measure in what is wanted."""
    return Input(
        f"measures.weight.{of.key}",
        f"Weight of {of.metric.label}",
        "1",
        value,
        "as asked",
        shared=True,
        fixed=True,
    )


def part(value: Node, lower: bool, weight: Node) -> Node:
    """What a measure adds to the score of a plan: its logarithm, weighted; 0 where it does not count."""
    size = logarithm(number_of(value))
    return where(all_of(weight > 0, number_of(value) > 0), (size if lower else -size) * weight, 0)


def lacks(value: Node, weight: Node) -> Node:
    """1 where a measure counts that nobody knows, or that is not above 0."""
    return where(all_of(weight > 0, number_of(value) <= 0), 1, 0)


def score(terms: Sequence[tuple[Node, bool, Node]]) -> Node:
    """What plans are ranked by, the least first: the weighted sum of logarithms; not known where one is not.

    Logarithms make it the same in every unit: a plan that is 1 % better in what has weight 1 gains 0.01.

    Args:
        terms: what is judged, whether less of it is better, and its weight; without weight it does not count.
    """
    unknown = sum_of([lacks(value, weight) for value, _, weight in terms])
    return where(unknown > 0, NOT_KNOWN, sum_of([part(*term) for term in terms]))


def _of(metric: Metric) -> Callable[[EstimateGraph], Named]:
    return lambda graph: metric.of(graph.figures)


MEASURES: tuple[Measure, ...] = (
    *(
        Measure(metric.column, metric, metric.better, _of(metric), _ALIASES.get(metric, ()))
        for metric in METRICS
        if metric.better is not None
    ),
    Measure(ACCELERATORS.column, ACCELERATORS, "lower", _of(ACCELERATORS), ("gpus", "fewest-accelerators")),
    Measure(HEADROOM.column, HEADROOM, "higher", headroom, ("headroom", "memory")),
    Measure(EVIDENCE.column, EVIDENCE, "higher", _of(EVIDENCE), ("evidence",)),
)
"""All measures; their keys are those of a row of `mantile sweep`."""


@cache
def _by_name() -> dict[str, Measure]:
    names: dict[str, Measure] = {}
    for measure in MEASURES:
        for name in (measure.key, measure.metric.key, measure.metric.attribute, *measure.aliases):
            names.setdefault(_plain(name), measure)
    return names


def _plain(name: str) -> str:
    return name.strip().lower().replace("_", "-").replace(".", "-").replace(" ", "-")


def measure(name: str, where: str = "objective") -> Measure:
    """A measure by its key or an alias, whatever joins its parts.

    Args:
        where: stands for the place in the error.

    Raises:
        InputError: for a name that stands for none, with those that come near.

    Example:
        measure("usd-per-million").metric.label    # USD per million output tokens
    """
    found = _by_name().get(_plain(name))
    if found is None:
        raise InputError(f"{where}: {unknown('measure', name, [*_by_name()])}")
    return found
