"""Start-up figures of servers against estimates: how far off they are, by framework and release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.measured.metrics import errors
from mantile.measured.runs import RejectedRun
from mantile.measured.startups import StartUp, StartUps

FIGURES = {
    "weights": "memory.weights",
    "kv_tokens": "startup.kv_tokens",
    "peak_memory": "startup.peak",
    "activations": "memory.activations",
    "kv_cache": "startup.kv_cache",
}
"""Ids of the quantities that predict what logs say, by metric."""
HEADLINES = {"weights": "Weights", "kv_tokens": "KV tokens that fit", "peak_memory": "Peak memory"}
"""Metrics that are judged, and what they are called; the others explain them."""
OF_ROOM = ("kv_tokens", "kv_cache")
"""Metrics that need the memory of the accelerator."""
_ASK_FOR_WHAT_THEY_NEED = ("llama.cpp", "mlx", "exo")
"""Frameworks whose caches do not fill a share of it; the peak of all others needs it too."""

Errors = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Compared:
    """A server beside its estimate.

    Args:
        predicted: by metric, for those that were measured.
        outgrown: whether the estimate says that it runs out of memory or has no room for one request; None
            where its accelerator is not known.
    """

    server: StartUp
    predicted: Mapping[str, float]
    outgrown: bool | None

    def ratio(self, metric: str) -> float:
        """Predicted ÷ measured; NaN where there is nothing to compare."""
        if metric not in self.predicted:
            return float("nan")
        return self.predicted[metric] / self.server.measured[metric]

    @property
    def right(self) -> bool | None:
        """Whether the verdict is that of the log; None where either is not known."""
        if self.outgrown is None or self.server.outgrown is None:
            return None
        return self.outgrown == self.server.outgrown


@dataclass(frozen=True)
class StartUpErrors:
    """Servers beside their estimates, and those that could not be estimated."""

    servers: tuple[Compared, ...]
    rejected: tuple[RejectedRun, ...]
    source: str = ""

    def metrics(self, servers: Sequence[Compared] | None = None) -> Errors:
        """Errors of each metric that was measured, as `mantile.measured.metrics.errors` gives them.

        Args:
            servers: some of them instead of all.
        """
        chosen = self.servers if servers is None else servers
        found = {
            metric: errors(np.array([each.ratio(metric) for each in chosen], dtype=float))
            for metric in FIGURES
        }
        return {metric: figures for metric, figures in found.items() if figures["n"]}

    def groups(self) -> dict[str, dict[str, Errors]]:
        """The same by framework, and by framework and release."""
        return {
            name: {key: self.metrics(members) for key, members in self._by(key_of).items()}
            for name, key_of in _GROUPS.items()
        }

    def _by(self, key_of: Callable[[Compared], str]) -> dict[str, list[Compared]]:
        members: dict[str, list[Compared]] = {}
        for each in self.servers:
            members.setdefault(key_of(each), []).append(each)
        return members

    def verdicts(self) -> dict[str, int]:
        """How many verdicts are known and right; `outgrown` counts servers that did not fit.

        `false_positives` are said to fit and did not, `false_negatives` are said not to fit and did.
        """
        judged = [each for each in self.servers if each.right is not None]
        refused = [each for each in judged if each.server.outgrown]
        return {
            "of": len(judged),
            "right": sum(bool(each.right) for each in judged),
            "outgrown": len(refused),
            "outgrown_right": sum(bool(each.right) for each in refused),
            "false_positives": sum(not each.right for each in refused),
            "false_negatives": sum(not each.right for each in judged if not each.server.outgrown),
        }

    def worst(self, metric: str, count: int = 8) -> list[Compared]:
        """The servers whose metric is predicted worst, those with the largest error first."""
        known = [each for each in self.servers if each.ratio(metric) > 0]
        return sorted(known, key=lambda each: -abs(np.log(each.ratio(metric))))[:count]

    def to_dict(self) -> dict[str, Any]:
        """For --json: sizes in bytes per accelerator, tokens of a rank."""
        return {
            "source": self.source,
            "rows": len(self.servers) + len(self.rejected),
            "answered": len(self.servers),
            "metrics": self.metrics(),
            "groups": self.groups(),
            "verdicts": self.verdicts(),
            "servers": [
                {
                    "id": each.server.id,
                    "framework": each.server.framework,
                    "version": each.server.version,
                    "model": each.server.scenario.model,
                    "measured": dict(each.server.measured),
                    "predicted": dict(each.predicted),
                    "out_of_memory": {"measured": each.server.outgrown, "predicted": each.outgrown},
                    "assumptions": list(each.server.assumptions),
                }
                for each in self.servers
            ],
            "unanswered": [{"id": run.id, "reason": run.reason} for run in self.rejected],
        }


_GROUPS: Mapping[str, Callable[[Compared], str]] = {
    "framework": lambda each: each.server.framework,
    "release": lambda each: f"{each.server.framework} {each.server.generation}",
}


def reconcile_startups(
    startups: StartUps,
    library: Library | None = None,
    source: str = "",
    progress: Callable[[str], None] = lambda model: None,
) -> StartUpErrors:
    """Estimate servers and compare with what they printed.

    Args:
        startups: as `load_startups` reads them.
        library: profiles to estimate with, instead of those we ship.
        source: what the servers are called.
        progress: called with the name of the model that is worked on next.

    Example:
        found = reconcile_startups(load_startups(Path("memory_logs.csv")))
        found.metrics()["weights"]["mape"]    # a fraction
    """
    compared: list[Compared] = []
    rejected = list(startups.rejected)
    for server in startups.servers:
        progress(server.scenario.model)
        try:
            compared.append(_compared(server, estimate(server.scenario, library=library)))
        except InputError as error:
            rejected.append(RejectedRun(server.id, str(error).splitlines()[0]))
    return StartUpErrors(tuple(compared), tuple(rejected), source)


def _needs_room(metric: str, framework: str) -> bool:
    """Whether a metric depends on how much memory the accelerator has."""
    fills = framework not in _ASK_FOR_WHAT_THEY_NEED
    return metric in OF_ROOM or (metric == "peak_memory" and fills)


def _compared(server: StartUp, estimated: Estimate) -> Compared:
    values, figures = estimated.values(), estimated.equations.figures
    predicted = {
        metric: float(values[figures[server.figure_of.get(metric, FIGURES[metric])]])
        for metric in server.measured
        if server.chip_known or not _needs_room(metric, server.framework)
    }
    outgrown = bool(values[figures["startup.starts"]] < 1) if server.chip_known else None
    return Compared(server, predicted, outgrown)
