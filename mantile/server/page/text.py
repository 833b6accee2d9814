"""Figures as a page writes them: as an answer does, numbers and units kept together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from mantile.answers import text
from mantile.answers.text import number
from mantile.equations.metrics import Metric

__all__ = ["change", "headline", "number", "parts", "percent", "scaled", "signed", "together"]
_SPACE = "\u00a0"


def together(words: str) -> str:
    """Words that no line breaks.

    >>> together("2.43 ms")
    '2.43\\xa0ms'
    """
    return words.replace(" ", _SPACE)


def scaled(value: Any, unit: str = "1", digits: int = 3) -> str:
    """A value with its unit, in the size that people say; texts as they are.

    >>> scaled(0.00243, "s"), scaled(None, "s"), scaled("memory", "1")
    ('2.43\\xa0ms', 'not known', 'memory')
    """
    words = text.scaled(value, unit, digits)
    return words if value is None or isinstance(value, str) else together(words)


def percent(value: Any, digits: int = 2) -> str:
    """A share in per cent.

    >>> percent(0.5487)
    '55\\xa0%'
    """
    words = text.percent(value, digits)
    return words if value is None else together(words)


def change(now: float | None, then: float | None) -> str:
    """How much one number differs from another, in per cent with its sign; empty where nobody knows one.

    >>> change(0.84, 1.0), change(1.0, 1.0)
    ('−16\\xa0%', '=')
    """
    if now is None or not then:
        return ""
    return signed(now / then - 1)


def signed(relative: float | None) -> str:
    """A relative change with its sign."""
    if relative is None or not math.isfinite(relative):
        return ""
    if abs(relative) < 0.0005:
        return "="
    digits = 1 if abs(relative) < 0.01 else 0
    sign = "+" if relative > 0 else "−"
    return f"{sign}{abs(100 * relative):,.{digits}f}{_SPACE}%"


def headline(metric: Metric, value: float | None) -> str:
    """A metric with the digits that a headline has."""
    return together(replace(metric, digits=metric.large_digits).text(value))


def parts(words: str) -> tuple[str, str]:
    """Number and unit of a text that has both."""
    first, _, unit = words.replace(_SPACE, " ").partition(" ")
    return (first, unit) if first[:1].isdigit() or first[:1] in "−-" else (words, "")
