"""What was measured beside what is predicted: ratios, and one error that a solver can make small."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import MILLI
from mantile.equations.serving import Serving
from mantile.graph.quantity import (
    Input,
    Quantity,
    Section,
    all_of,
    is_number,
    logarithm,
    span,
    sum_range,
    where,
)


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


def measured(served: Serving) -> Measured:
    """The rows of the Calibration sheet."""
    results = {
        "ttft_ms": ("TTFT, mean", "ms", "mean of all requests", served.ttft * MILLI),
        "ttft_p50_ms": ("TTFT, median", "ms", "half of the requests wait less", served.ttft_p50 * MILLI),
        "tpot_ms": ("TPOT", "ms", "mean of all requests, without their first token", served.tpot * MILLI),
        "output_tokens_per_s": (
            "Output tokens per second",
            "token/s",
            "of the whole deployment",
            served.output_tokens_per_s,
        ),
    }
    given: dict[str, Input] = {}
    predicted: list[Quantity] = []
    ratios: list[Quantity] = []
    errors: list[Quantity] = []
    for field, (label, unit, says, body) in results.items():
        name = field.removesuffix("_ms")
        mine = Input(
            f"measured.{name}",
            f"Measured: {label}",
            unit,
            None,
            f"empty: not measured; {says}",
            "scenario",
            "given",
            minimum=0,
            maximum=1e9,
            name=f"measured {label}",
        )
        given[field] = mine
        predicted.append(
            Quantity(
                f"measured.predicted.{name}",
                f"Predicted: {label}",
                unit,
                body,
                name=f"predicted {label}",
                note="of Serving" + ("" if unit == "token/s" else ", × 1000"),
            )
        )
        ratios.append(
            Quantity(
                f"measured.ratio.{name}",
                f"Ratio: {label}",
                "1",
                where(all_of(is_number(mine), mine > 0), predicted[-1] / mine, 0),
                name=f"ratio of {label}",
                note="above 1: more is predicted than was measured; 0: not measured",
            )
        )
        errors.append(
            Quantity(
                f"measured.error.{name}",
                f"Squared log ratio: {label}",
                "1",
                where(ratios[-1] > 0, logarithm(ratios[-1]) ** 2, 0),
                note="ln(ratio)², in which twice and half as much weigh the same; 0: not measured",
            )
        )
    whole = Quantity(
        "measured.error",
        "Error of the scenario",
        "1",
        sum_range(span(errors)),
        note="sum of the rows above",
        name="error of the scenario",
    )
    return Measured(
        given,
        whole,
        (
            Section(
                "Measured",
                tuple(given.values()),
                "type what was measured of this very scenario; an empty cell is left out",
            ),
            Section("Predicted", tuple(predicted), "as it stands now"),
            Section("Predicted ÷ measured", tuple(ratios), "1 where both agree"),
            Section(
                "How far off",
                (*errors, whole),
                "what mantile calibrate makes small, and Excel's Solver can",
                Section.SUBTOTAL,
            ),
        ),
    )
