"""Gates: errors that predictions must keep to, for a check that passes or fails."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.library.errors import InputError, unknown
from mantile.measured.metrics import ERROR_FIGURES

METRICS = {
    "decode": "tpot",
    "ttft": "ttft",
    "prefill": "prefill",
    "throughput": "throughput",
    "e2e": "e2e",
    "memory": "peak_memory",
    "weights": "weights",
    "kv_tokens": "kv_tokens",
}
"""The metric of a comparison that each gate is about; the last three are of start-up figures of servers."""
FIGURE = "mape"


@dataclass(frozen=True)
class Gate:
    """An error that must not be larger.

    Args:
        name: of METRICS; `figure` of ERROR_FIGURES.
        limit: a fraction.
    """

    name: str
    figure: str
    limit: float

    @classmethod
    def parse(cls, text: str) -> Gate:
        """A gate from decode=10 or ttft.median=15, in percent.

        Raises:
            InputError: saying what is expected.
        """
        named, _, value = text.strip().partition("=")
        name, _, figure = named.strip().partition(".")
        try:
            limit = float(value.strip().removesuffix("%")) / 100
        except ValueError:
            limit = math.nan
        if not 0 < limit < math.inf:
            raise InputError(f"--gate {text}: expected METRIC=PERCENT, such as decode=10 or ttft.median=15")
        for given, known, what in ((name, METRICS, "metric"), (figure or FIGURE, ERROR_FIGURES, "error")):
            if given not in known:
                raise InputError(f"--gate {text}: {unknown(what, given, known)}")
        return cls(name, figure or FIGURE, limit)


@dataclass(frozen=True)
class Passed:
    """A gate and what was found. `error` is None where nothing was measured: then it is not passed."""

    gate: Gate
    error: float | None

    @property
    def passed(self) -> bool:
        """Whether the error is known and not beyond the limit, either way."""
        return self.error is not None and abs(self.error) <= self.gate.limit

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "metric": self.gate.name,
            "figure": self.gate.figure,
            "limit": self.gate.limit,
            "error": self.error,
            "passed": self.passed,
        }


def judged(gates: Sequence[Gate], errors: Mapping[str, Mapping[str, float]]) -> list[Passed]:
    """Whether each gate is passed.

    Args:
        errors: by metric and figure, as `Reconciliation.metrics` or `StartUpErrors.metrics` gives them.

    Example:
        judged([Gate.parse("decode=10")], reconcile(measured).metrics())[0].passed
    """
    return [Passed(gate, errors.get(METRICS[gate.name], {}).get(gate.figure)) for gate in gates]
