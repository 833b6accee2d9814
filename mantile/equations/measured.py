"""What was measured beside what is predicted: ratios, and one error that a solver can make small."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from mantile.equations.display import in_scenario, in_unit
from mantile.equations.efficiency import FactorInUse
from mantile.equations.factors import OF_TPOT, OF_TTFT
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, TPOT, TTFT, TTFT_P50, Metric
from mantile.equations.serving import Serving
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    defined,
    is_number,
    logarithm,
    span,
    sum_of,
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


@dataclass(frozen=True)
class Measured:
    """Measured values, empty until somebody types them, and how far predictions are from them.

    Args:
        values: the cells, by the field of a scenario's `measured`.
        error: sum of squared log ratios; 0 where nothing was measured.
        sections: the blocks of the Calibration sheet.
    """

    values: dict[str, Input]
    error: Quantity
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Result:
    """A result that may have been measured: its field in a scenario, its name, and its prediction."""

    field: str
    metric: Metric
    label: str
    meaning: str
    figure: Quantity

    @property
    def name(self) -> str:
        """The part of ids that stands for it."""
        return self.metric.attribute

    @property
    def unit(self) -> str:
        """The unit in which it is typed."""
        return self.metric.display_unit

    @property
    def body(self) -> Node:
        """The prediction in that unit."""
        return in_unit(self.figure, self.unit)


def measured(served: Serving) -> Measured:
    """The rows of the Calibration sheet."""
    texts = {
        TTFT: (f"{TTFT.label}, mean", "mean of all requests", served.ttft),
        TTFT_P50: (TTFT_P50.label, "half of the requests wait less", served.ttft_p50),
        TPOT: (TPOT.label, "mean of all requests, without their first token", served.tpot),
        OUTPUT_TOKENS_PER_S: (
            OUTPUT_TOKENS_PER_S.label,
            "of the whole deployment",
            served.output_tokens_per_s,
        ),
    }
    results = [_Result(field, metric, *texts[metric]) for field, metric in MEASURABLE.items()]
    values = {result.field: _value(result) for result in results}
    predicted, ratios, errors = Rows("measured.predicted"), Rows("measured.ratio"), Rows("measured.error")
    squared = [error(result, values[result.field], predicted, ratios, errors) for result in results]
    total = Rows("measured")(
        "error", "Error of the scenario", "1", sum_range(span(squared)), called="error of the scenario"
    )
    errors.add(total)
    return Measured(
        values=values,
        error=total,
        sections=(
            Section(
                "Measured",
                tuple(values.values()),
                "type what was measured of this very scenario; an empty cell is left out",
            ),
            predicted.section("Predicted", "as it stands now"),
            ratios.section("Predicted ÷ measured", "1 where both agree"),
            errors.section(
                "How far off", "what mantile calibrate makes small, and Excel's Solver can", Section.SUBTOTAL
            ),
        ),
    )


def _value(result: _Result) -> Input:
    """The cell for a measured value."""
    return Input(
        id=f"measured.{result.name}",
        label=f"Measured: {result.label}",
        unit=result.unit,
        value=None,
        note=f"empty: not measured; {result.meaning}",
        source="scenario",
        status="given",
        minimum=1e-9,
        maximum=1e9,
        name=f"measured {result.label}",
    )


def error(result: _Result, value: Input, predicted: Rows, ratios: Rows, errors: Rows) -> Quantity:
    """How far a prediction is off what was measured: its squared log ratio."""
    label = result.label
    prediction = predicted(
        result.name, f"Predicted: {label}", result.unit, result.body, called=f"predicted {label}"
    )
    ratio = ratios(
        result.name,
        f"Ratio: {label}",
        "1",
        where(is_number(value), prediction / value, 0),
        "above 1 more is predicted than was measured; 0 is not measured",
        called=f"ratio of {label}",
    )
    return errors(
        result.name,
        f"Squared log ratio: {label}",
        "1",
        where(ratio > 0, logarithm(ratio) ** 2, 0),
        "twice and half as much weigh the same; 0 is not measured",
    )


@dataclass(frozen=True)
class Tuning:
    """Factors that a solver may change, beside the error that it makes small.

    Args:
        cells: their override cells, which stand on Calibration instead of Efficiency.
        sections: blocks of the Calibration sheet: these cells, what is in use, the bounds.
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


def error_of_all(measured: Measured, scenarios: int) -> Quantity:
    """How far off the predictions of all scenarios are together."""
    return Quantity(
        "measured.error_of_all",
        "Error of all scenarios",
        "1",
        sum_of([in_scenario(measured.error, scenario) for scenario in range(scenarios)]),
        note="a solver makes it small by changing the factors above within their bounds",
    )
