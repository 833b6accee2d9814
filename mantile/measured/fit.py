"""Efficiency factors fitted to measured runs: least squares on log ratios, pulled towards the profiles they
start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.optimize import least_squares

from mantile.equations.factors import KINDS
from mantile.equations.metrics import TPOT, TTFT
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node
from mantile.library.profiles import Library
from mantile.measured.match import Batch, MatchedRuns
from mantile.measured.metrics import COMPARED, THROUGHPUT, Array, errors
from mantile.measured.profile_versions import Case, Fit, FittedFactor, Scope, cases_of, matching_keys
from mantile.measured.runs import Run

Loss = Literal["soft_l1", "cauchy"]
NOISE = 0.1  # spread of log ratios that no factor explains; beyond it an outlier pulls with constant force
SPREAD = 0.3  # of a log factor around that of its parent, before any run is seen
RANGE = 10.0  # a factor changes at most so many times
STEP = 1e-4  # of a log factor, for slopes
_LOSSES: dict[Loss, Callable[[Array], tuple[Array, Array, Array]]] = {
    "soft_l1": lambda z: (2 * (np.sqrt(1 + z) - 1), 1 / np.sqrt(1 + z), -0.5 / (1 + z) ** 1.5),
    "cauchy": lambda z: (np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2),
}
"""Value, slope and curvature of a loss at a squared residual."""


class FitProblem:
    """Log ratios of runs as a function of log factors.

    Args:
        matched: the runs.
        factors: that may change.
        metrics: fields of a run's metrics whose log ratios are made small.
    """

    def __init__(
        self, matched: MatchedRuns, factors: Sequence[FittedFactor], metrics: Sequence[str] = ("tpot_s",)
    ) -> None:
        self.library, self.factors, self.metrics = matched.library, tuple(factors), tuple(metrics)
        self.batches = [_FitBatch(batch, self.metrics, self.factors) for batch in matched.batches]
        self.runs: list[Run] = [run.run for run in matched.runs]
        values = [run.column.values for run in matched.runs]
        self.names: tuple[tuple[FittedFactor, str], ...] = ()
        parameters = []
        for factor in self.factors:
            of_runs = [_group(value, factor.scope, self.library) for value in values]
            groups = list(dict.fromkeys(of_runs))
            parameters.append([len(self.names) + groups.index(group) for group in of_runs])
            self.names += tuple((factor, group) for group in groups)
        of_run = np.array(parameters, int).reshape(len(self.factors), len(self.runs))
        self.parameters = of_run  # factors by runs: which parameter each run follows

    def residuals(self, offsets: Array) -> Array:
        """Log ratios, predicted over measured: runs by metrics; NaN where not measured."""
        residuals: Array = self.evaluate(offsets[None, :])[0]
        return residuals

    def evaluate(self, points: Array) -> Array:
        """Residuals at several points at once: points by runs by metrics."""
        start, parts = 0, []
        for batch in self.batches:
            end = start + len(batch.batch.runs)
            parts.append(batch.residuals(np.exp(points[:, self.parameters[:, start:end]])))
            start = end
        residuals: Array = np.concatenate(parts, axis=1)
        return residuals

    def errors(self, residuals: Array) -> dict[str, dict[str, float]]:
        """Errors of each metric, from residuals."""
        return {metric: errors(np.exp(residuals[:, place])) for place, metric in enumerate(self.metrics)}

    def fit(
        self,
        rows: Array | None = None,
        spread: float = SPREAD,
        start: Array | None = None,
        steps: int = 12,
        loss: Loss = "soft_l1",
    ) -> Fit:
        """The factors that explain runs best.

        Args:
            rows: which runs; all if None.
            spread: of a log factor around its parent's, before the runs are seen.
            start: log factors to begin from.
            steps: of the least squares, at most.
            loss: how outliers count: less than squared, or, where runs hold cold starts, hardly at all.
        """
        chosen = np.ones(len(self.runs), bool) if rows is None else rows
        objective = _Objective(self, chosen, spread, loss)
        bounds = self.bounds()
        solution = least_squares(
            objective.residuals,
            np.clip(np.zeros(len(self.names)) if start is None else start, *bounds),
            objective.jacobian,
            bounds,
            loss=objective.loss,
            f_scale=NOISE,
            max_nfev=steps,
            xtol=1e-4,
            ftol=1e-5,
        )
        return Fit(
            names=self.names,
            offsets=solution.x,
            deviations=objective.deviations(solution.x),
            at_bound=tuple(bool(mask) for mask in solution.active_mask),
        )

    def bounds(self) -> tuple[Array, Array]:
        """Of each parameter: figures stay in the range of their factor, and change at most by RANGE."""
        low, high = np.full(len(self.names), -np.log(RANGE)), np.full(len(self.names), np.log(RANGE))
        kinds = {kind.name: kind for kind in KINDS}
        for place, (factor, _) in enumerate(self.names):
            kind = kinds[factor.factor]
            values = [
                value
                for batch in self.batches
                for value in self._matching(factor.factor, batch.figures.get(factor, ()))
            ]
            if values:
                high[place] = min(high[place], np.log(kind.high / max(values)))
                if kind.low > 0:
                    low[place] = max(low[place], np.log(kind.low / min(values)))
            high[place] = min(high[place], self._room(factor))
        return np.minimum(low, -1e-9), np.maximum(high, 1e-9)

    def _room(self, factor: FittedFactor) -> float:
        """How far a log factor may rise before a share of a peak, figure times scale, is above 1."""
        name = factor.factor.removesuffix("_scale")
        kinds = {kind.name: kind for kind in KINDS}
        if name not in kinds or not kinds[name].fraction or f"{name}_scale" not in kinds:
            return float("inf")
        if factor.factor == name and any(other.factor == f"{name}_scale" for other in self.factors):
            return 0.0  # the scale takes what room there is
        largest = [
            max(
                (
                    value
                    for batch in self.batches
                    for value in self._matching(factor_name, batch.efficiency.figures.get(factor_name, ()))
                ),
                default=1.0,
            )
            for factor_name in (name, f"{name}_scale")
        ]
        return float(-np.log(largest[0] * largest[1]))

    def _matching(self, factor: str, figures: Sequence[Input]) -> Iterator[float]:
        """Values of a factor's figures whose profile holds for some run; an id may end in a condition."""
        ids = {f"efficiency.{factor}.{key}" for key in self.matching_profiles}
        for figure in figures:
            if figure.value and ids & {figure.id, figure.id.rpartition(".")[0]}:
                yield float(figure.value)

    @cached_property
    def matching_profiles(self) -> set[str]:
        """Keys of the profiles that hold for some run: their figures alone bound how a factor may change."""
        return {key for run in self.runs for key in matching_keys(run, self.library)}

    def cases(self) -> list[list[Case]]:
        """The fallback chains of the runs that follow each parameter."""
        chains = [cases_of(run, self.library) for run in self.runs]
        return [
            list(dict.fromkeys(case for place in np.flatnonzero(followed) for case in chains[place]))
            for followed in ((self.parameters == number).any(axis=0) for number in range(len(self.names)))
        ]

    @cached_property
    def measured(self) -> Array:
        """Whether a residual is known: runs by metrics."""
        measured: Array = np.isfinite(self.residuals(np.zeros(len(self.names))))
        return measured


class _Objective:
    """What least squares make small: log ratios of the chosen runs, and how far log factors are from where
    they start."""

    def __init__(self, problem: FitProblem, chosen: Array, spread: float, loss: Loss) -> None:
        self.problem, self.chosen, self.spread = problem, chosen, spread
        self.size = len(problem.names)
        self.prior = NOISE / spread
        self._loss = _LOSSES[loss]
        self._known = problem.measured[chosen].reshape(-1)
        self._point, self._values = b"", np.empty(0)

    def residuals(self, offsets: Array) -> Array:
        """Log ratios that were measured, and behind them the prior's."""
        return np.concatenate([self._evaluated(offsets)[0], self.prior * offsets])

    def jacobian(self, offsets: Array) -> Array:
        """Slopes of the residuals: residuals by parameters."""
        return np.vstack([self._slopes(offsets).T, self.prior * np.eye(self.size)])

    def loss(self, squares: Array) -> Array:
        """The loss of runs, and the square of the prior: value, slope and curvature."""
        runs, prior = squares[: -self.size], squares[-self.size :]
        return np.hstack([self._loss(runs), [prior, np.ones(self.size), np.zeros(self.size)]])

    def deviations(self, offsets: Array) -> Array:
        """Standard deviations of log factors after the runs were seen."""
        slopes = self._slopes(offsets)
        weights = self._loss((self._evaluated(offsets)[0] / NOISE) ** 2)[1]
        precision = (slopes * weights) @ slopes.T / NOISE**2 + np.eye(self.size) / self.spread**2
        deviations: Array = np.sqrt(np.diag(np.linalg.inv(precision)))
        return deviations

    def _slopes(self, offsets: Array) -> Array:
        values = self._evaluated(offsets)
        slopes: Array = (values[1:] - values[0]) / STEP
        return slopes

    def _evaluated(self, offsets: Array) -> Array:
        """Residuals of the chosen runs, and below them those with one parameter moved by a step each."""
        if self._point != offsets.tobytes():
            points = np.vstack([offsets, offsets + STEP * np.eye(self.size)])
            values = self.problem.evaluate(points)[:, self.chosen, :]
            self._point, self._values = offsets.tobytes(), values.reshape(len(points), -1)[:, self._known]
        return self._values


class _FitBatch:
    """The runs of one graph, ready to be evaluated at many points."""

    def __init__(self, batch: Batch, metrics: Sequence[str], factors: Sequence[FittedFactor]) -> None:
        self.batch = batch
        outputs = batch.outputs()
        self.outputs: list[Node] = [outputs[metric] for metric in metrics]
        self.program = Program(self.outputs)
        self.efficiency = batch.equations.prefill_workers.efficiency
        self.places = {factor: place for place, factor in enumerate(factors)}
        needed = {figure.id for figure in self.program.inputs}
        self.figures: dict[FittedFactor, list[Input]] = {
            factor: [
                figure
                for figure in self.efficiency.figures[factor.factor]
                if figure.id in needed and factor.has_figure(figure)
            ]
            for factor in factors
            if factor.factor in self.efficiency.figures
        }
        self.measured = np.log(np.stack([counted(batch, metric) for metric in metrics], axis=-1))

    def residuals(self, factors: Array) -> Array:
        """Log ratios: points by runs by metrics, from factors: points by factors by runs."""
        points, _, runs = factors.shape
        inputs = {
            key: np.tile(value, points) if isinstance(value, np.ndarray) else value
            for key, value in self.batch.inputs.items()
        }
        scales: dict[Input, Any] = {}
        kinds = {kind.name: kind for kind in KINDS}
        for fitted, figures in self.figures.items():
            factor = factors[:, self.places[fitted], :].reshape(-1)
            scales |= {figure: scales.get(figure, 1.0) * factor for figure in figures}
        for figure, scale in scales.items():  # several factors may share a figure: it stays in its range
            kind = kinds[figure.id.split(".")[1]]
            inputs[figure.id] = np.clip(float(figure.value or 0) * scale, kind.low, kind.high)
        values = self.program.sweep(inputs, self.outputs)
        with np.errstate(invalid="ignore", divide="ignore"):
            predicted = np.stack(
                [np.log(np.broadcast_to(values[node], points * runs)) for node in self.outputs], axis=-1
            )
        ratios: Array = predicted.reshape(points, runs, -1) - self.measured
        return ratios


def counted(batch: Batch, metric: str) -> Array:
    """What was measured of a metric, as far as a fit counts it: throughput only in runs without mean TTFT or
    TPOT, which come to it, and median TTFT only in runs without a mean."""
    values = batch.measured[metric]
    if metric == COMPARED["ttft_p50"].field:
        return np.where(np.isfinite(batch.measured[TTFT.key]), np.nan, values)
    if metric != THROUGHPUT:
        return values
    both = np.isfinite(batch.measured[TTFT.key]) & np.isfinite(batch.measured[TPOT.key])
    return np.where(both, np.nan, values)


def _group(values: Mapping[str, Any], scope: Scope, library: Library) -> str:
    """The runs with which a run shares a factor of a scope."""
    match scope:
        case "global":
            return "global"
        case "generation":
            return library.accelerator(str(values["accelerator"])).generation
        case "framework":
            return str(values["framework"])
        case "pair":
            return f"{values['accelerator']}--{values['framework']}"
