"""What would have room where a plan has none: fewer bits, or more accelerators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mantile.equations.metrics import INTERACTIVITY
from mantile.estimates.estimate import Estimate
from mantile.estimates.sweep import possible, sweep
from mantile.library.errors import InputError
from mantile.search.size import bits_of, formats_of

_DEGREES = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True)
class Room:
    """A change of one field with which a plan has room.

    Args:
        field, value: what is changed, and to what.
        speed: tokens per second of a request then.
    """

    field: str
    value: str | int
    speed: float


def what_fits(made: Estimate) -> Iterator[Room]:
    """The data type of weights with most bits, and the smallest TP, with which the base scenario has room.

    In place of TP stages of a framework whose TP is experimental. Nothing where devices are not alike, or
    neither helps.

    Example:
        list(what_fits(mantile.estimate(scenario)))
    """
    scenario, asked = made.scenario.replace(variants=[]), made.columns[0].values
    if scenario.devices or scenario.disaggregated:
        return
    held = bits_of(str(asked["weights_dtype"]), made.model, made.library)
    chip, framework = str(asked["accelerator"]), str(asked["framework"])
    formats = {
        name: bits_of(name, made.model, made.library)
        for name in formats_of(made.model, made.library, chip, framework)
    }
    way = "pp" if "tp" in made.library.framework(framework).experimental else "tp"
    fewer = sorted((name for name in formats if formats[name] < held), key=lambda name: -formats[name])
    for field, values in (
        ("weights_dtype", fewer),
        (way, [degree for degree in _DEGREES if degree > float(asked[way])]),
    ):
        if not values:
            continue
        try:
            table = sweep(scenario, {field: values}, model=made.model, library=made.library)
        except InputError:
            continue  # no such change can be asked for
        rows = table[possible(table)]
        if len(rows):
            row = rows.iloc[0]
            value = row[field]
            yield Room(
                field, value if isinstance(value, str) else int(value), float(row[INTERACTIVITY.column])
            )
