"""What is wanted of a plan, and within which limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mantile.equations.measures import Measure, measure, score, weight
from mantile.equations.metrics import TTFT_P95
from mantile.graph.quantity import Node
from mantile.library.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]

DEFAULT = "cost"
"""What is wanted where nobody says it."""
LARGEST = "largest-model"
"""What is wanted where a model shall be chosen too: the largest that fits and keeps the limits."""
_WAITS = ("ttft", "e2e")  # what attributes of metrics begin with that limit the wait
_ATTENTION, _MOST_WAIT, _TOKENS_PER_S = 10.0, 60.0, 1000.0
_LATER = 1e-5  # weight of what decides among equals, against that of what is before it
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_LIMIT = re.compile(rf"\s*(?P<name>[\w. -]+?)\s*(?P<sign><=|>=|<|>|=)\s*(?P<bound>{_NUMBER})\s*")


@dataclass(frozen=True)
class Limit:
    """A bound of a measure that a plan must keep: at most, where less is better, else at least.

    Args:
        bound: in SI units, as the measure is.
    """

    measure: Measure
    bound: float

    @property
    def upper(self) -> bool:
        """Whether the measure is at most the bound."""
        return self.measure.lower

    @property
    def code(self) -> str:
        """The reason code of a plan that misses it."""
        return f"LIMIT_{self.measure.key.upper()}"

    @property
    def words(self) -> str:
        """The limit as it is read."""
        return f"{self.measure.metric.label} {'≤' if self.upper else '≥'} {self.measure.text(self.bound)}"

    def kept(self, values: Array) -> Array:
        """Whether values keep it; one that nobody knows does not."""
        with np.errstate(invalid="ignore"):
            return np.asarray(values <= self.bound if self.upper else values >= self.bound)

    def excess(self, values: Array) -> Array:
        """How far values miss it, as a share of the bound; 0 where they keep it, NaN where nobody knows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            beyond = values / self.bound - 1 if self.upper else self.bound / values - 1
        return np.maximum(beyond, 0)


@dataclass(frozen=True)
class Objective:
    """What is wanted: one measure, several in order, or several weighted.

    Args:
        terms: measures with their weights.
        weighted: whether logarithms are weighted and summed, so that units do not matter; else the second
            decides where the first is equal up to a thousandth of a percent, and so on.
    """

    terms: tuple[tuple[Measure, float], ...]
    weighted: bool = False

    @property
    def measures(self) -> tuple[Measure, ...]:
        """All that it looks at."""
        return tuple(of for of, _ in self.terms)

    @property
    def first(self) -> Measure:
        """What stands for it where one number is told."""
        return self.terms[0][0]

    @property
    def words(self) -> str:
        """What is wanted, in words."""
        if self.weighted:
            return " + ".join(f"{share:g} × {of.metric.label}" for of, share in self.terms)
        return ", then ".join(of.metric.label for of in self.measures)

    @property
    def text(self) -> str:
        """The same as it is asked for."""
        if self.weighted:
            return " + ".join(f"{share:g}*{of.key}" for of, share in self.terms)
        return ",".join(of.key for of in self.measures)

    @property
    def weights(self) -> dict[str, float]:
        """Weights by measure. In an order the first weighs so much that the second decides among equals."""
        if self.weighted:
            return {of.key: share for of, share in self.terms}
        return {of.key: _LATER**place for place, of in enumerate(self.measures)}

    def score(self, nodes: Mapping[str, Node]) -> Node:
        """What plans are ranked by, the least first; not known where a measure is not.

        Args:
            nodes: of each measure, by key.
        """
        return score([(nodes[of.key], of.lower, weight(of, self.weights[of.key])) for of in self.measures])


def is_largest(text: str) -> bool:
    """Whether a model shall be chosen too, in any spelling: largest-model, largest_model."""
    return text.strip().lower().replace("_", "-") == LARGEST


def read_objective(text: str, place: str = "--objective") -> Objective:
    """What is wanted, as it is typed.

    Args:
        text: a measure; several with commas, the first first; or weighted: 0.7*cost + 0.3*e2e.
        place: where it was typed, for errors.

    Raises:
        InputError: for a measure there is not, or a weight that is no number above 0.

    Example:
        read_objective("usd-per-million").words    # USD per million output tokens
    """
    if is_largest(text):
        raise InputError(
            f"{place}: {LARGEST} chooses among models: expected `mantile optimize all`, POST /v1/estimate "
            "without model_id, or mantile.largest_model(); or a measure of one model, such as cost"
        )
    parts = [part.strip() for part in text.split("+")]
    if len(parts) == 1 and "*" not in text:
        names = [name.strip() for name in text.split(",")]
        return Objective(tuple((measure(name, place), 1.0) for name in names))
    terms = []
    for part in parts:
        share, times, name = part.rpartition("*")
        if times and not re.fullmatch(_NUMBER, share.strip()):
            raise InputError(f"{place}: {text}: {share.strip()!r}: expected a weight, such as 0.7*cost")
        number = float(share) if times else 1.0
        if number <= 0:
            raise InputError(f"{place}: {text}: {share.strip()}: expected weights above 0")
        terms.append((measure(name, place), number))
    return Objective(tuple(terms), weighted=True)


def read_limit(text: str) -> Limit:
    """A limit as it is typed: ttft_p95_s<=2, usd_per_hour<=50; SI units.

    Raises:
        InputError: if it is not of that form, or there is no such measure.
    """
    found = _LIMIT.fullmatch(text)
    if found is None or found["sign"] == "=":
        raise InputError(f"--limit {text}: expected MEASURE<=NUMBER or MEASURE>=NUMBER, such as tpot_s<=0.04")
    made = limit(found["name"], float(found["bound"]), f"--limit {text}")
    if made.upper != found["sign"].startswith("<"):
        wanted = "<=" if made.upper else ">="
        raise InputError(
            f"--limit {text}: {made.measure.key}: expected {wanted}: {made.measure.better} is better"
        )
    return made


def limit(name: str, bound: float, where: str = "limits") -> Limit:
    """A limit of a measure.

    Args:
        bound: in SI units.

    Raises:
        InputError: for a measure there is not, or a bound that is no number above 0.
    """
    of = measure(name, where)
    if not (np.isfinite(bound) and bound > 0):
        raise InputError(f"{where}: {of.key}: expected a number above 0, found {bound:g}")
    return Limit(of, float(bound))


def default_limits(stated: Iterable[Limit], tokens: int) -> tuple[Limit, ...]:
    """What holds where nobody limits the wait for the first token or for the whole answer: a p95 TTFT of at
    most 10 s; of prompts above 10,000 tokens 1 s for each 1,000 tokens; never more than a minute.

    An assumption about services that people wait for. 10 s is about as long as a person's attention stays
    with a task (J. Nielsen, Usability Engineering, 1993, chapter 5). A long prompt takes its time to be read,
    and who sends it knows; nobody waits minutes. Of jobs that nobody waits for the limit is lifted.

    Args:
        tokens: of the longest prompt.

    Example:
        default_limits((), 32_000)[0].bound    # 32.0
    """
    if any(one.measure.metric.attribute.startswith(_WAITS) for one in stated):
        return ()
    bound = min(max(_ATTENTION, tokens / _TOKENS_PER_S), _MOST_WAIT)
    return (limit(TTFT_P95.column, bound),)


def merged(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Limits, the tightest of each measure."""
    kept: dict[str, Limit] = {}
    for one in limits:
        before = kept.get(one.measure.key)
        if before is None or (one.bound < before.bound) == one.upper:
            kept[one.measure.key] = one
    return tuple(kept.values())
