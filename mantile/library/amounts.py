"""Amounts as people say them: 2.4 ms, 31.6 GB, 1,234."""

from __future__ import annotations

import math
from typing import Any

_NOT_KNOWN = "not known"


def scaled(value: float | None, unit: str, digits: int = 3) -> str:
    """A value in the size of its unit that people say: 2.4 ms, 31.6 GB.

    >>> scaled(0.00243, "s"), scaled(3.16e10, "B"), scaled(95.0, "s"), scaled(None, "s")
    ('2.43 ms', '31.6 GB', '95 s', 'not known')
    """
    if value is None:
        return _NOT_KNOWN
    steps = SIZES.get(unit)
    if steps is None or not math.isfinite(value):
        return f"{number(value, digits)} {unit}"
    name, size = next(((name, size) for name, size in steps if abs(value) >= size), steps[-1])
    return f"{number(float(f'{value / size:.{digits}g}'), max(digits, 6))} {name}"


SIZES: dict[str, tuple[tuple[str, float], ...]] = {
    "s": (("h", 7200), ("min", 120), ("s", 1), ("ms", 1e-3), ("µs", 1e-6)),
    "B": (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)),
    "W": (("MW", 1e6), ("kW", 1e3), ("W", 1)),
    "USD": (("million USD", 1e6), ("thousand USD", 1e3), ("USD", 1)),
}


def number(value: Any, digits: int = 6) -> str:
    """A value for people: thousands separated, as many significant digits as asked for."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float):
        return str(value)
    if not math.isfinite(value):
        return "error"
    if value and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{places}f}".rstrip("0").rstrip(".") if places else f"{value:,.0f}"
