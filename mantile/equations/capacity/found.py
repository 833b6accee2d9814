"""What is found of a demand: the figures by name, for results and sheets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.typed import Faults
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    as_node,
    if_error,
    is_number,
    join,
    where,
)


@dataclass(frozen=True)
class Ranked:
    """A driver in the order of what it moves: its name, and both ends of the saving."""

    name: Quantity
    better: Quantity
    worse: Quantity


@dataclass(frozen=True)
class Capacity:
    """What the demand needs and costs. Money is USD, cash out negative; years from 1, cash also at the start.

    Args:
        rate: requests per second that a replica sustains; a text where it sustains none within its limits.
        hours: requests per second, replicas needed and utilisation, by hour.
        cash: of each option, at the start and at the end of each year; `npv` what it is worth today.
        break_even: utilisations, or that there is none.
        in_service: replicas of the first year; `carried` requests per second with and without the spares.
        cells: what is asked; `parts` what each option pays, by year; `titles` what it comes to, how busy
            replicas are and where options break even, in words, and `told` parts of it.
        moves: by how much a driver moves what buying saves against renting; `ranked` the largest first,
            with `room` for bars and labels on both sides.
        binds: what keeps a replica from carrying more, in words.
        ahead: how far cash of buying is ahead of renting, at the start and at the end of each year;
            `spent` what each option has paid so far, at the same times, the numbers of `years`;
            `returned` when it comes back, in words and numbers.
        price: USD of a million tokens by option, of output tokens and of all.
        curves: the same by mean utilisation, at the utilisations of `use`.
        assumptions: in words, each with the figure that it rests on.
    """

    rate: Quantity
    replicas: tuple[Quantity, ...]
    peak: tuple[Quantity, ...]
    spares: Input
    hours: Mapping[str, tuple[Quantity, ...]]
    mean: Quantity
    utilisation_peak: Quantity
    utilisation_mean: Quantity
    cash: Mapping[str, tuple[Named, ...]]
    npv: Mapping[str, Quantity]
    saving: Quantity
    break_even: Mapping[str, Quantity]
    moves: Mapping[str, Quantity]
    in_service: Quantity
    carried: tuple[Quantity, Quantity]
    cells: Mapping[str, Input]
    parts: Mapping[str, tuple[Quantity, ...]]
    titles: tuple[Quantity, ...]
    told: tuple[Quantity, ...]
    profile: Input
    shares: tuple[Input, ...]
    binds: Quantity
    ahead: tuple[Quantity, ...]
    spent: Mapping[str, tuple[Quantity, ...]]
    years: tuple[Input, ...]
    returned: Mapping[str, Quantity]
    price: Mapping[str, Quantity]
    use: tuple[Input, ...]
    curves: Mapping[str, tuple[Quantity, ...]]
    ranked: tuple[Ranked, ...]
    room: tuple[Quantity, Quantity]
    assumptions: tuple[tuple[Quantity, Named], ...]
    sections: tuple[Section, ...]


NO_POINT = Input(
    "capacity.no_point", "Where there is no point", "1", math.nan, status="defined", shared=True, fixed=True
)


def point(figure: Named, shown: Node) -> Node:
    """A figure as a chart draws it: no point where nobody knows it."""
    return shown if isinstance(figure, Input) else where(is_number(figure), shown, NO_POINT)


def figures_of(found: Capacity) -> tuple[Named, ...]:
    """All of them, in the order of the sheet."""
    return tuple(figure for section in found.sections for figure in section.figures())


def shown(titles: tuple[Quantity, ...], faults: Faults) -> tuple[Quantity, ...]:
    """Findings in words, where all figures can be that they follow from.

    Those of `titles` stand elsewhere.

    Args:
        faults: cells that cannot be, such as what is typed here, and prices.
    """
    refused = (join("! not known: ", faults.message), *[as_node(NOT_KNOWN)] * (len(titles) - 1))
    return tuple(
        Quantity(
            f"capacity.shown.{title.id.rpartition('.')[2]}",
            title.label,
            "1",
            where(faults.count > 0, instead, if_error(title, NOT_KNOWN)),
        )
        for title, instead in zip(titles, refused, strict=True)
    )
