"""How old evidence is on the day for which an engine is asked, and what that does to the range of TPOT.

Engines change: the same configuration measured on two days differs. By how much was read off such pairs of
days, by framework. A rate of the days before some day did not hold for those after it, so the middle of the
range stays where it is and only its ends move, with the root of the months between.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import DRIFT_LONGEST, HALF, MONTH, ONE_MONTH
from mantile.equations.evidence import Evidence
from mantile.equations.inputs import Workload
from mantile.equations.metrics import TPOT
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Section,
    absolute,
    defined,
    exponential,
    if_known,
    logarithm,
    maximum,
    minimum,
    number_of,
    span,
    sum_where,
    where,
)
from mantile.library.dates import serial
from mantile.library.evidence import Changed, EvidenceBase


@dataclass(frozen=True)
class Drift:
    """TPOT on the day for which an engine is asked.

    Args:
        newest: day of the newest run of the framework; a text where none has a day.
        months: from it to the day asked for, below 0 where that is earlier; a text likewise.
        ends: the tenth and ninetieth percentile of TPOT on that day, seconds.
    """

    newest: Quantity
    months: Quantity
    ends: tuple[Quantity, Quantity]
    section: Section


def drift(base: EvidenceBase, inputs: Workload, tpot: Quantity, evidence: Evidence) -> Drift | None:
    """The rows of an engine's day; None where no scenario states one, or the library has no pairs of days."""
    if inputs.engine_date is None or not base.drift:
        return None
    stated = {what: [_stated(base, one, what) for one in base.drift] for what in _WHAT}
    keys = span(stated["framework"])

    def of_framework(what: str) -> Node:
        return sum_where(span(stated[what]), keys, inputs.framework)

    pairs = Quantity(
        "drift.configurations",
        "Configurations measured on several days",
        "number",
        of_framework("count"),
        note="with the framework",
    )
    newest = Quantity(
        "drift.newest",
        "Newest run of the framework",
        "date",
        where(pairs > 0, of_framework("last"), NOT_KNOWN),
        note="of those that estimates were compared with",
    )
    months = Quantity(
        "drift.months",
        "Age of the evidence on the engine's day",
        "month",
        if_known((inputs.engine_date - newest) / MONTH, newest),
        note="below 0: the engine is older than the evidence",
    )
    root = Quantity(
        "drift.root",
        "Root of the months between",
        "1",
        (minimum(absolute(number_of(months)), DRIFT_LONGEST) / ONE_MONTH) ** HALF,
        note="no two days of a configuration lie further apart than the limit",
    )
    down = Quantity("drift.down", "Change of TPOT, tenth percentile", "1", of_framework("p10"))
    up = Quantity("drift.up", "Change of TPOT, ninetieth percentile", "1", of_framework("p90"))
    ends, rows = [], []
    earlier = number_of(months) < 0
    low, _, high = evidence.bands["tpot"]
    for name, label, here, there, band in (
        ("p10", "below", down, up, low),
        ("p90", "above", up, down, high),
    ):
        moved = Quantity(
            f"drift.{label}",
            f"Change until that day, {label}",
            "1",
            root * where(earlier, -there, here),
            note="seen from the newest run: backwards where the engine is older",
        )
        known = Quantity(
            f"drift.range_{label}", f"Range of TPOT {label}, logarithm", "1", logarithm(band / tpot)
        )
        beyond = minimum(known, 0) if name == "p10" else maximum(known, 0)
        both = Quantity(
            f"drift.both_{label}",
            f"Range and change {label}",
            "1",
            (beyond * beyond + moved * moved) ** HALF,
            note="independent of each other",
        )
        end = Quantity(
            f"drift.{name}",
            f"{TPOT.label} on the engine's day, {name}",
            "s",
            tpot * exponential(-both if name == "p10" else both),
        )
        ends.append(end)
        rows += [moved, known, both, end]
    section = Section(
        "Engine on a day",
        (*(row for rows in stated.values() for row in rows), pairs, newest, months, down, up, root, *rows),
        "how far TPOT may have moved since the newest run",
    )
    return Drift(newest=newest, months=months, ends=(ends[0], ends[1]), section=section)


_WHAT = {
    "framework": ("framework", "1", "of runs on several days"),
    "count": ("configurations", "number", "that were measured on several days"),
    "last": ("newest run", "date", ""),
    "p10": ("change, tenth percentile", "1", "logarithm, over the root of the months between two days"),
    "p90": ("change, ninetieth percentile", "1", "logarithm, over the root of the months between two days"),
}


def _stated(base: EvidenceBase, one: Changed, what: str) -> Input:
    """A figure of a framework that was measured on several days."""
    label, unit, note = _WHAT[what]
    value: float | str = {
        "framework": one.framework,
        "count": one.configurations,
        "last": serial(one.last),
        "p10": one.p10,
        "p90": one.p90,
    }[what]  # type: ignore[assignment]
    return defined(
        f"drift.{what}.{one.framework}",
        f"{one.framework}: {label}",
        unit,
        value,
        note,
        base.drift_source,
        status="defined" if what == "framework" else "measured",
        name=label,
    )
