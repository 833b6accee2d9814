"""From passes to what users see: what of the Serving part Python says, in the order of the sheet."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from mantile.equations.classes import told
from mantile.equations.tables import Equations
from mantile.graph.quantity import Quantity, Section, precedents


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds; all others are rows of serving.eq.

    Args:
        ttft_parts, tpot_parts: what adds up to TTFT and to TPOT.
    """

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    ttft_parts: tuple[Quantity, ...]
    tpot_parts: tuple[Quantity, ...]
    sections: tuple[Section, ...]


def serving(rows: Equations) -> Serving:
    """The blocks of the Serving part."""
    *blocks, throughput = rows.sections("serving")
    step, others, per_token, *blocks = blocks
    slots, load, in_flight = _split(rows.sections("load"), "Load")
    asked, _, sessions = _split(rows.sections("sessions"), "Sessions of this load")
    return Serving(
        ttft=rows["serving.ttft"],
        tpot=rows["serving.tpot"],
        e2e=rows["serving.e2e"],
        ttft_parts=parts_of(rows["serving.ttft"], ("serving.ttft_steady", "serving.base")),
        tpot_parts=parts_of(rows["serving.tpot"]),
        sections=(
            *slots,
            *rows.sections("spread"),
            *rows.sections("scheduler"),
            step,
            others,
            *rows.sections("mixed"),
            per_token,
            *load,
            *blocks,
            *in_flight,
            *asked,
            throughput,
            *sessions,
            *told(rows),
            *rows.sections("goodput"),
        ),
    )


def _split(sections: tuple[Section, ...], title: str) -> tuple[tuple[Section, ...], ...]:
    """Blocks before one with a title, those from it on but for the last, and the last."""
    place = next((place for place, section in enumerate(sections) if section.title == title), 0)
    return sections[:place], sections[place:-1], sections[-1:]


def parts_of(total: Quantity, through: Container[str] = ()) -> tuple[Quantity, ...]:
    """What adds up to a row, with what some of these add up of.

    Args:
        through: ids of sums whose parts count in their place.
    """
    found: list[Quantity] = []
    for part in precedents(total):
        assert isinstance(part, Quantity), f"{part.id} is no part of {total.id}"
        found += parts_of(part, through) if part.id in through else (part,)
    return tuple(found)
