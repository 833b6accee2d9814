"""What an estimate takes on trust: the figures in use beside those of generation."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.display import number_in, usual, usual_unit
from mantile.equations.override import unless_overridden
from mantile.equations.sensitivity import SensitivityInput
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Value,
    absolute,
    defined,
    number_of,
    until,
    where,
)

TYPED, TYPED_SOURCE = "typed", "typed into its cell since"
"""Status and source of an input that was edited."""


@dataclass(frozen=True)
class Origin:
    """How a figure is known, and where it comes from."""

    status: Quantity
    source: Quantity


@dataclass(frozen=True)
class Assumption:
    """A figure in the unit in which it is quoted.

    Args:
        value: in use.
        default: as generated, without an override.
        changed: whether both differ.
    """

    value: Quantity
    default: Named
    changed: Quantity


def assumption(item: SensitivityInput, generated: Value) -> Assumption:
    """What is said of an input.

    Args:
        generated: its value without an override when the workbook was made, in the unit of the figure.
    """
    figure, unit = item.figure, usual_unit(item.figure.unit)
    value = usual(figure, figure.unit)
    default = Input(
        f"assumption.{item.id}",
        f"As generated, {item.label}",
        unit,
        generated if isinstance(generated, str) else float(f"{number_in(generated, figure.unit, unit):.12g}"),
        shared=True,
        fixed=True,
    )
    return Assumption(
        value=Quantity(f"assumption.{item.id}.value", f"In use, {item.label}", unit, value),
        default=default,
        changed=_changed(f"assumption.{item.id}", item.label, value, default),
    )


def origin(item: SensitivityInput, changed: Quantity, found: tuple[Node, Node] | None) -> Origin:
    """How an input is known and where it comes from, live; of a long source what stands before a semicolon.

    Args:
        changed: whether it is another than when the file was made.
        found: of a figure of the library, status and source of its row in use.
    """
    status, source = found or (
        where(changed > 0, TYPED, item.status),
        where(changed > 0, TYPED_SOURCE, item.source),
    )
    return Origin(
        Quantity(f"assumption.{item.id}.status", f"Status, {item.label}", "1", status),
        Quantity(
            f"assumption.{item.id}.source",
            f"Source, {item.label}",
            "1",
            until(source, ";") if found else source,
        ),
    )


def overridden(identifier: str, label: str, cell: Named, default: Node | float) -> Assumption:
    """What is said of an override, in the unit of its cell.

    Args:
        identifier: what the ids of its figures begin with.
        label: what the override stands for.
        cell: that holds the override.
        default: what holds while the cell is empty; a number where the cell always holds one.
    """
    named: Named
    if isinstance(default, Node):
        named = Quantity(f"{identifier}.default", f"Default, {label}", cell.unit, default)
        in_use: Node = unless_overridden(cell, named)
    else:
        named = defined(f"{identifier}.default", f"Default, {label}", cell.unit, default)
        in_use = cell
    value = Quantity(f"{identifier}.value", f"In use, {label}", cell.unit, in_use)
    return Assumption(value=value, default=named, changed=_changed(identifier, label, value, named))


def _changed(identifier: str, label: str, value: Node, default: Named) -> Quantity:
    now, before = number_of(value), number_of(default)
    differs = absolute(now - before) > TOLERANCE * absolute(before)
    return Quantity(f"{identifier}.changed", f"Changed, {label}", "flag", where(differs, 1, 0))
