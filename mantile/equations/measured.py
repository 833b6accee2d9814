"""What was measured beside what is predicted: ratios, and one error that a solver can make small."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from mantile.equations.display import converted, in_unit
from mantile.equations.efficiency import FactorInUse
from mantile.equations.factors import OF_TPOT, OF_TTFT
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, TPOT, TTFT, TTFT_P50, Metric
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Cases,
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    count_where,
    defined,
    if_known,
    is_number,
    logarithm,
    span,
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
        error: sum of squared log ratios; 0 where nothing was measured, a text where something was that is
            not known.
        sections: the blocks of Calibration, on Efficiency.
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
        """The prediction in that unit, where there is one."""
        if self.figure.unit == self.unit:
            return self.figure
        return if_known(converted(self.figure, self.figure.unit, self.unit), self.figure)


@dataclass(frozen=True)
class _Blocks:
    """Rows of each result: what was measured and is predicted, how that compares, and how far it is off."""

    read: Rows = field(default_factory=lambda: Rows("measured.read"))
    predicted: Rows = field(default_factory=lambda: Rows("measured.predicted"))
    ratios: Rows = field(default_factory=lambda: Rows("measured.ratio"))
    missing: Rows = field(default_factory=lambda: Rows("measured.missing"))
    errors: Rows = field(default_factory=lambda: Rows("measured.error"))


def measured(headlines: Mapping[Metric, Quantity]) -> Measured:
    """The rows of Calibration, on Efficiency.

    Args:
        headlines: the metrics of the plan as readers see them.
    """
    texts = {
        TTFT: (f"{TTFT.label}, mean", "mean of all requests"),
        TTFT_P50: (TTFT_P50.label, "half of the requests wait less"),
        TPOT: (TPOT.label, "mean of all requests, without their first token"),
        OUTPUT_TOKENS_PER_S: (OUTPUT_TOKENS_PER_S.label, "of the whole deployment"),
    }
    results = [
        _Result(field, metric, *texts[metric], headlines[metric]) for field, metric in MEASURABLE.items()
    ]
    values = {result.field: _value(result) for result in results}
    blocks = _Blocks()
    squared = [error(result, values[result.field], blocks) for result in results]
    missing = blocks.missing.quantities()
    blocks.errors.add(*missing)
    total = Rows("measured", rows=blocks.errors.rows)(
        "error",
        "Error of the scenario",
        "1",
        where(sum_range(span(missing)) > 0, NOT_KNOWN, sum_range(span(squared))),
        called="error of the scenario",
    )
    return Measured(
        values=values,
        error=total,
        sections=(
            Section(
                "Measured",
                (*values.values(), *blocks.read.quantities()),
                "type what was measured of this very scenario; an empty cell is left out",
            ),
            blocks.predicted.section("Predicted", "as it stands now"),
            blocks.ratios.section(
                "Predicted ÷ measured",
                "1 where both agree, above 1 more is predicted; 0: not measured, or not predicted",
            ),
            blocks.errors.section(
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


def error(result: _Result, value: Input, blocks: _Blocks) -> Quantity:
    """How far a prediction is off what was measured: its squared log ratio."""
    label = result.label
    prediction = blocks.predicted(
        result.name, f"Predicted: {label}", result.unit, result.body, called=f"predicted {label}"
    )
    read = blocks.read(
        result.name,
        f"Measured, as read: {label}",
        result.unit,
        where(is_number(value), value, 0),
        "0: not measured; a text or a negative number fails a check",
        called=f"{label} as read",
    )
    ratio = blocks.ratios(
        result.name,
        f"Ratio: {label}",
        "1",
        where(all_of(read > 0, is_number(prediction)), prediction / read, 0),
        called=f"ratio of {label}",
    )
    blocks.missing(
        result.name,
        f"Not predicted: {label}",
        "flag",
        where(read > 0, 1, 0) * where(is_number(prediction), 0, 1),
        "1 where it was measured of a plan that cannot be",
        called=f"whether {label} is not predicted",
    )
    return blocks.errors(
        result.name,
        f"Squared log ratio: {label}",
        "1",
        where(ratio > 0, logarithm(ratio) ** 2, 0),
        "twice and half as much weigh the same; 0 is not measured or not predicted",
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


def error_of_all(measured: Measured, scenarios: int) -> Quantity:
    """How far off the predictions of all scenarios are together."""
    errors = Cases(measured.error, scenarios, "all errors")
    return Quantity(
        "measured.error_of_all",
        "Error of all scenarios",
        "1",
        where(count_where(errors, NOT_KNOWN) > 0, NOT_KNOWN, sum_range(errors)),
        note="a solver makes it small",
    )
