"""Figures as people say them: three digits, units by size."""

from __future__ import annotations

import math
from typing import Any

from mantile.graph.quantity import NOT_KNOWN

SIZES: dict[str, tuple[tuple[str, float, float], ...]] = {
    "s": (("h", 7200, 3600), ("min", 120, 60), ("s", 1, 1), ("ms", 1e-3, 1e-3), ("µs", 0, 1e-6)),
    "B": (("TB", 1e12, 1e12), ("GB", 1e9, 1e9), ("MB", 1e6, 1e6), ("kB", 1e3, 1e3), ("B", 0, 1)),
    "B/s": (("TB/s", 1e13, 1e12), ("GB/s", 1e9, 1e9), ("MB/s", 1e6, 1e6), ("B/s", 0, 1)),
    "FLOP": (
        ("PFLOP", 1e15, 1e15),
        ("TFLOP", 1e12, 1e12),
        ("GFLOP", 1e9, 1e9),
        ("MFLOP", 1e6, 1e6),
        ("FLOP", 0, 1),
    ),
    "FLOP/s": (("PFLOP/s", 1e16, 1e15), ("TFLOP/s", 1e12, 1e12), ("GFLOP/s", 1e9, 1e9), ("FLOP/s", 0, 1)),
    "W": (("MW", 1e6, 1e6), ("kW", 1e3, 1e3), ("W", 0, 1)),
    "USD": (("million USD", 1e6, 1e6), ("thousand USD", 1e5, 1e3), ("USD", 0, 1)),
}
"""Units by size: a name, from which value on it is used, and how much of it one is."""


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands apart.

    >>> number(1234.5), number(0.01234), number(2048.0)
    ('1,234', '0.0123', '2,048')
    """
    if not math.isfinite(value):
        return NOT_KNOWN
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{float(f'{value:.{max(digits, 1)}g}') if not places else value:,.{places}f}"


def scaled(value: Any, unit: str = "1", digits: int = 3) -> str:
    """A value with its unit, in the size that people say; texts as they are.

    >>> scaled(0.00243, "s"), scaled(9000.0, "s"), scaled(180.0, "s"), scaled(None, "s")
    ('2.43 ms', '2.50 h', '3.00 min', 'not known')
    """
    if value is None:
        return NOT_KNOWN
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    value = float(value)
    if unit == "flag":
        return "yes" if value else "no"
    if not math.isfinite(value):
        return NOT_KNOWN
    steps = SIZES.get(unit)
    if steps is not None and value:
        name, size = next(((name, size) for name, least, size in steps if abs(value) >= least))
        return f"{number(value / size, digits)} {name}"
    written = number(value, max(digits, 4))
    return written if unit in ("1", "", "number") else f"{written} {unit}"


def percent(value: Any, digits: int = 2) -> str:
    """A share in per cent.

    >>> percent(0.5487)
    '55 %'
    """
    return NOT_KNOWN if value is None else f"{number(100 * float(value), digits)} %"
