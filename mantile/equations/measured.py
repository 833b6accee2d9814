"""What may be measured of a scenario, for measured.eq, and the factors that a solver may change."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.display import in_unit
from mantile.equations.efficiency import FactorInUse
from mantile.equations.factors import OF_TPOT, OF_TTFT
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, TPOT, TTFT, TTFT_P50, Metric
from mantile.equations.tables import Equations
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Cases,
    Input,
    Quantity,
    Section,
    count_where,
    defined,
    sum_range,
    where,
)
from mantile.graph.rows import Rows

MEASURABLE = {
    "ttft_ms": TTFT,
    "ttft_p50_ms": TTFT_P50,
    "tpot_ms": TPOT,
    "output_tokens_per_s": OUTPUT_TOKENS_PER_S,
}
"""What may be measured of a scenario, by the field of its `measured`, in the unit that people quote."""


def measured(rows: Equations, headlines: Mapping[Metric, Quantity]) -> dict[str, Input]:
    """The cells for measured values, by the field of a scenario's `measured`.

    Args:
        headlines: the metrics of the plan as readers see them.
    """
    texts = {
        TTFT: (f"{TTFT.label}, mean", "mean of all requests"),
        TTFT_P50: (TTFT_P50.label, "half of the requests wait less"),
        TPOT: (TPOT.label, "mean of all requests, without their first token"),
        OUTPUT_TOKENS_PER_S: (OUTPUT_TOKENS_PER_S.label, "of the whole deployment"),
    }
    cells = {field: _cell(metric, *texts[metric]) for field, metric in MEASURABLE.items()}
    rows.know(*(headlines[metric] for metric in MEASURABLE.values()))
    rows.know_table("measured", {"cells": [*cells.values()]})
    return cells


def _cell(metric: Metric, label: str, meaning: str) -> Input:
    """The cell for a measured value, in the unit that people quote; empty until somebody types it."""
    return Input(
        id=f"measured.{metric.attribute}",
        label=f"Measured: {label}",
        unit=metric.display_unit,
        value=None,
        note=f"empty: not measured; {meaning}",
        source="scenario",
        status="given",
        minimum=1e-9,
        maximum=1e9,
        name=f"measured {label}",
    )


@dataclass(frozen=True)
class Tuning:
    """Factors that a solver may change, beside the error that it makes small.

    Args:
        cells: their override cells, which stand together at Calibration.
        sections: blocks of Calibration: these cells, what is in use, the bounds.
    """

    cells: tuple[Input, ...]
    sections: tuple[Section, ...]


def tuning(workers: Sequence[Workers], figures: Container[str]) -> Tuning:
    """The factors that are fitted to TPOT and TTFT, with the bounds of each.

    Args:
        workers: the accelerators: those that do everything, or prefill and decode workers.
        figures: ids of what stands in the workbook; a factor that no worker needs has no cell there.
    """
    factors = [
        factor
        for own in workers
        for name in (*OF_TPOT, *OF_TTFT)
        if (factor := own.efficiency.in_use.get(name)) and factor.overridable.cell.id in figures
    ]
    cells = tuple(factor.overridable.cell for factor in factors)
    in_use = Rows("measured.in_use")
    for factor in factors:
        figure, unit = factor.main, factor.kind.unit
        in_use(_name(factor), figure.label, unit, in_unit(figure, unit))
    return Tuning(
        cells,
        (
            Section(
                "Factors to change", cells, "a solver's variables; empty: the figure of the library holds"
            ),
            in_use.section("Factors in use", "what to type above before a solver starts"),
            *(
                Section(end.capitalize(), tuple(_bound(end, factor) for factor in factors), note)
                for end, note in (
                    ("lowest", "constraint: each factor is at least this"),
                    ("highest", "constraint: each factor is at most this"),
                )
            ),
        ),
    )


def _bound(end: str, factor: FactorInUse) -> Input:
    """The lowest or highest figure that a factor may have."""
    kind = factor.kind
    return defined(
        f"measured.{end}.{_name(factor)}",
        f"{end.capitalize()}: {factor.main.label.replace(' in use', '')}",
        kind.unit,
        kind.low if end == "lowest" else kind.high,
        "what may be typed as its override",
        name=f"{end} {factor.main.name or factor.main.label}",
    )


def _name(factor: FactorInUse) -> str:
    """The part of ids that stands for a factor; of decode workers' with what tells them apart."""
    return factor.overridable.id.replace("efficiency.", "")


def error_of_all(rows: Equations, scenarios: int) -> Quantity:
    """How far off the predictions of all scenarios are together."""
    errors = Cases(rows["measured.error"], scenarios, "all errors")
    return Quantity(
        "measured.error_of_all",
        "Error of all scenarios",
        "1",
        where(count_where(errors, NOT_KNOWN) > 0, NOT_KNOWN, sum_range(errors)),
        note="a solver makes it small",
    )
