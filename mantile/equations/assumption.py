"""What an estimate takes on trust: the figures in use beside those of generation."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.display import usual, usual_unit
from mantile.equations.sensitivity import SensitivityInput
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import Input, Literal, Quantity, absolute, where


@dataclass(frozen=True)
class Assumption:
    """A figure in the unit in which it is quoted.

    Args:
        value: in use.
        default: as generated.
        changed: whether both differ.
    """

    value: Quantity
    default: Input
    changed: Quantity


def assumption(item: SensitivityInput, generated: float) -> Assumption:
    """What is said of an input.

    Args:
        generated: its value when the workbook was made, in the unit of the figure.
    """
    figure, unit = item.figure, usual_unit(item.figure.unit)
    value = usual(figure, figure.unit)
    default = Input(
        f"assumption.{item.id}",
        f"As generated, {item.label}",
        unit,
        float(f"{evaluate(usual(Literal(generated), figure.unit)):.12g}"),
        shared=True,
        fixed=True,
    )
    differs = absolute(value - default) > TOLERANCE * absolute(default)
    return Assumption(
        value=Quantity(f"assumption.{item.id}.value", f"In use, {item.label}", unit, value),
        default=default,
        changed=Quantity(
            f"assumption.{item.id}.changed", f"Changed, {item.label}", "flag", where(differs, 1, 0)
        ),
    )
