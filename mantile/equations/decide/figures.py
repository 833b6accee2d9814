"""Figures of a choice under ids that begin alike, as each plan has them, and the figures that all share."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.measures import Measure
from mantile.graph.quantity import (
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    precedents,
    substitute,
)

NONE = "–"
SPREAD = Input(
    "decide.percentile", "p90 of a normal distribution", "1", 1.2816, "in standard deviations", "defined",
    shared=True, fixed=True,
)  # fmt: skip
SHARED = Input(
    "decide.shared",
    "Share of the error that two plans on one chip and framework have in common",
    "1",
    0.2,
    "it cancels in their difference",
    "fitted: residuals of throughput of 2,106 public serving runs; pairs of other plans of one model, chip "
    "and framework have 0.19 in common, pairs on other chips or frameworks 0.0 to 0.1; November 2026",
    shared=True,
    fixed=True,
)
SMALL = Input(
    "decide.small",
    "Least difference that is one",
    "1",
    0.0005,
    "below it 0.0 % would be said",
    shared=True,
    fixed=True,
)
TOLD_MORE = Input(
    "decide.more",
    "Least difference told",
    "1",
    0.05,
    "of a price, or of a share of a step",
    shared=True,
    fixed=True,
)


@dataclass(frozen=True)
class Judged:
    """A measure of the plans.

    Args:
        measure: which it is.
        unit: in which it is shown; that of amounts is USD.
        label: the measure, for formulas.
        limit, weight: what is typed.
        limited: 1 where a limit is a number above 0; `said` what holds of it, in words, `none` the same where
            there is none; `bound` the limit or 0. `own` the weight that is typed, 0 where one measure is
            wanted.
        weighs: the weight that counts, by what is wanted.
        values: of each plan, in that unit; texts where nobody knows them.
        missed: 1 where a plan does not keep the limit.
    """

    measure: Measure
    unit: str
    label: Input
    limit: Input
    weight: Input
    limited: Quantity
    said: Quantity
    none: Quantity
    weighs: Quantity
    bound: Quantity
    own: Quantity
    values: tuple[Quantity, ...]
    missed: tuple[Quantity, ...]


class Figures:
    """Quantities by name, under ids that begin alike.

    Args:
        begin: of ids.
        end: of ids.
    """

    def __init__(self, begin: str, end: str = "") -> None:
        self.begin, self.end = begin, end
        self.figures: dict[str, Quantity] = {}

    def __call__(self, name: str, label: str, unit: str, body: Node, note: str = "") -> Quantity:
        made = Quantity(f"{self.begin}{name}{self.end}", label, unit, body, note)
        self.figures[name] = made
        return made

    def __getitem__(self, name: str) -> Quantity:
        return self.figures[name]


def as_typed(figure: Named) -> InCase:
    """What stands in a cell of the choice, or follows from it."""
    return InCase(figure, 0, "as typed")


def in_case(body: Node, case: int) -> Node:
    """An expression as a plan has it."""
    parts: tuple[Named, ...] = (body,) if isinstance(body, Input | Quantity) else precedents(body)
    varying = [part for part in parts if not (isinstance(part, Input) and part.fixed)]
    return substitute(body, {part: InCase(part, case, f"of plan {case}") for part in varying})
