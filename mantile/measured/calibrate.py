"""Efficiency factors fitted to measured runs: least squares on log ratios, pulled towards the profiles they start from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.optimize import least_squares

from mantile.equations.factors import KINDS
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node
from mantile.library.efficiency import EfficiencyProfile, FitReport
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.measured.profile_versions import BAND, Array, Choice, Fit, Level, chain, updated_profiles
from mantile.measured.reconcile import Batch, MatchedRuns, errors, throughput
from mantile.measured.runs import Run

Kept = Literal["config", "model", "system", "framework"]
Loss = Literal["soft_l1", "cauchy"]
NOISE = 0.1  # spread of log ratios that no factor explains; beyond it an outlier pulls with constant force
SPREAD = 0.3  # of a log factor around that of its parent, before any run is seen
RANGE = 10.0  # a factor changes at most so many times


class Problem:
    """Log ratios of runs as a function of log factors.

    Args:
        prepared: the runs.
        choices: the factors that may move.
        metrics: fields of a run's metrics whose log ratios are made small.
    """

    def __init__(
        self, prepared: MatchedRuns, choices: Sequence[Choice], metrics: Sequence[str] = ("tpot_s",)
    ) -> None:
        self.library, self.choices, self.metrics = prepared.library, tuple(choices), tuple(metrics)
        self.batches = [_Batch(batch, self.metrics, self.choices) for batch in prepared.batches]
        self.runs: list[Run] = [case.run for batch in prepared.batches for case in batch.cases]
        values = [case.column.values for batch in prepared.batches for case in batch.cases]
        self.names: tuple[tuple[Choice, str], ...] = ()
        places = []
        for choice in self.choices:
            mine = [_group(value, choice.level, self.library) for value in values]
            groups = list(dict.fromkeys(mine))
            places.append([len(self.names) + groups.index(group) for group in mine])
            self.names += tuple((choice, group) for group in groups)
        self.place = np.array(places)  # choices by runs: which parameter each run follows

    def residuals(self, offsets: Array) -> Array:
        """Log ratios, predicted over measured: runs by metrics; NaN where not measured."""
        found: Array = self._evaluate(offsets[None, :])[0]
        return found

    def _evaluate(self, points: Array) -> Array:
        """Residuals at several points at once: points by runs by metrics."""
        start, found = 0, []
        for batch in self.batches:
            size = len(batch.batch.cases)
            factors = np.exp(points[:, self.place[:, start : start + size]])  # points by choices by runs
            found.append(batch.residuals(factors))
            start += size
        together: Array = np.concatenate(found, axis=1)
        return together

    def errors(self, residuals: Array) -> dict[str, dict[str, float]]:
        """Errors of each metric, from residuals."""
        return {metric: errors(np.exp(residuals[:, place])) for place, metric in enumerate(self.metrics)}

    def bounds(self) -> tuple[Array, Array]:
        """Of each parameter: figures stay in the range of their factor, and change at most by RANGE."""
        low, high = np.full(len(self.names), -np.log(RANGE)), np.full(len(self.names), np.log(RANGE))
        known = {kind.name: kind for kind in KINDS}
        for place, (choice, _) in enumerate(self.names):
            homes = self._homes(choice.factor)
            values = [
                float(figure.value)
                for batch in self.batches
                for figure in batch.figures.get(choice, ())
                if figure.value and homes & {figure.id, figure.id.rpartition(".")[0]}
            ]
            if values:
                kind = known[choice.factor]
                high[place] = min(high[place], np.log(kind.high / np.max(values)))
                low[place] = (
                    max(low[place], np.log(kind.low / np.min(values))) if kind.low > 0 else low[place]
                )
            high[place] = min(high[place], self._room(choice))
        return np.minimum(low, -1e-9), np.maximum(high, 1e-9)

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
        size = len(self.names)
        prior = NOISE / spread
        memory: dict[bytes, Array] = {}

        def both(offsets: Array) -> Array:
            """Residuals, and below them those of one parameter moved a little each."""
            key = offsets.tobytes()
            if key not in memory:
                memory.clear()
                memory[key] = self._evaluate(np.vstack([offsets, offsets + STEP * np.eye(size)]))
            return memory[key]

        def clean(residuals: Array) -> Array:
            kept = residuals[..., chosen, :].reshape(*residuals.shape[:-2], -1)
            return kept[..., self._known(chosen)]

        def function(offsets: Array) -> Array:
            return np.concatenate([clean(both(offsets)[0]), prior * offsets])

        def jacobian(offsets: Array) -> Array:
            values = clean(both(offsets))
            return np.vstack([((values[1:] - values[0]) / STEP).T, prior * np.eye(size)])

        def weigh(squares: Array) -> Array:
            """The loss of runs, and of the prior its square: value, slope and curvature."""
            runs, kept = squares[:-size], squares[-size:]
            return np.hstack([np.array(_LOSSES[loss](runs)), np.array([kept, np.ones(size), np.zeros(size)])])

        first = np.zeros(size) if start is None else start
        bounds = self.bounds()
        found = least_squares(
            function,
            np.clip(first, *bounds),
            jacobian,
            bounds,
            loss=weigh,
            f_scale=NOISE,
            max_nfev=steps,
            xtol=1e-4,
            ftol=1e-5,
        )
        values = clean(both(found.x))
        slopes = (values[1:] - values[0]) / STEP
        weights = np.array(_LOSSES[loss]((values[0] / NOISE) ** 2))[1]
        spreads = np.sqrt(
            np.diag(np.linalg.inv((slopes * weights) @ slopes.T / NOISE**2 + np.eye(size) / spread**2))
        )
        at_bound = tuple(bool(mask) for mask in found.active_mask)
        return Fit(self.names, found.x, spreads, at_bound)

    def _room(self, choice: Choice) -> float:
        """How far, as a logarithm, a factor may rise before a share of a peak, figure times scale, is above 1."""
        name = choice.factor.removesuffix("_scale")
        if not any(kind.name == name and kind.fraction for kind in KINDS) or not any(
            kind.name == f"{name}_scale" for kind in KINDS
        ):
            return float("inf")
        if choice.factor == name and any(other.factor == f"{name}_scale" for other in self.choices):
            return 0.0  # the scale takes what room there is
        largest = [
            max(
                (
                    float(figure.value)
                    for batch in self.batches
                    for figure in batch.batch.equations.prefill_workers.efficiency.figures.get(factor, ())
                    if figure.value and self._homes(factor) & {figure.id, figure.id.rpartition(".")[0]}
                ),
                default=1.0,
            )
            for factor in (name, f"{name}_scale")
        ]
        return float(-np.log(largest[0] * largest[1]))

    def _homes(self, factor: str) -> set[str]:
        """Ids of a factor's figures in profiles that hold for some run, without their conditions."""
        return {f"efficiency.{factor}.{key}" for key in self.reached}

    @cached_property
    def reached(self) -> set[str]:
        """Keys of the profiles that hold for some run: only their figures bound what a factor may do."""
        return {key for run in self.runs for key in chain(run, self.library)}

    @cached_property
    def _measured(self) -> Array:
        found: Array = np.isfinite(self.residuals(np.zeros(len(self.names))))
        return found

    def _known(self, chosen: Array) -> Array:
        known: Array = self._measured[chosen].reshape(-1)
        return known


STEP = 1e-4
_LOSSES: dict[Loss, Callable[[Array], tuple[Array, Array, Array]]] = {
    "soft_l1": lambda z: (2 * (np.sqrt(1 + z) - 1), 1 / np.sqrt(1 + z), -0.5 / (1 + z) ** 1.5),
    "cauchy": lambda z: (np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2),
}


class _Batch:
    """The runs of one graph, ready to be evaluated at many points."""

    def __init__(self, batch: Batch, metrics: Sequence[str], choices: Sequence[Choice]) -> None:
        self.batch = batch
        outputs = batch.outputs()
        self.outputs: list[Node] = [outputs[metric] for metric in metrics]
        self.program = Program(self.outputs)
        needed = {given.id for given in self.program.inputs}
        reached = batch.equations.prefill_workers.efficiency
        self.figures: dict[Choice, list[Input]] = {
            choice: [
                figure
                for figure in reached.figures[choice.factor]
                if figure.id in needed and choice.has(figure)
            ]
            for choice in choices
            if choice.factor in reached.figures
        }
        self.places = {choice: place for place, choice in enumerate(choices)}
        self.measured = np.log(
            np.array(
                [
                    [_measured(case.run, case.column.values, metric) for metric in metrics]
                    for case in batch.cases
                ]
            )
        )

    def residuals(self, factors: Array) -> Array:
        """Log ratios: points by runs by metrics, from factors: points by choices by runs."""
        points, _, runs = factors.shape
        inputs = {
            key: np.tile(value, points) if isinstance(value, np.ndarray) else value
            for key, value in self.batch.inputs.items()
        }
        scales: dict[Input, Any] = {}
        for choice, figures in self.figures.items():
            factor = factors[:, self.places[choice], :].reshape(-1)
            scales |= {figure: scales.get(figure, 1.0) * factor for figure in figures}
        inputs |= {figure.id: float(figure.value or 0) * scale for figure, scale in scales.items()}
        values = self.program.sweep(inputs, self.outputs)
        with np.errstate(invalid="ignore", divide="ignore"):
            predicted = np.stack(
                [np.log(np.broadcast_to(values[node], points * runs)) for node in self.outputs], axis=-1
            )
        ratios: Array = predicted.reshape(points, runs, -1) - self.measured
        return ratios


def _measured(run: Run, values: Mapping[str, Any], metric: str) -> float:
    given = run.metrics.given()
    if (
        metric == "output_tokens_per_s_per_accelerator"
        and metric not in given
        and {"ttft_s", "tpot_s"} <= set(given)
    ):
        return throughput(given, values)
    return given.get(metric, float("nan"))


def _group(values: Mapping[str, Any], level: Level, library: Library) -> str:
    match level:
        case "global":
            return "global"
        case "generation":
            return library.accelerator(str(values["accelerator"])).generation
        case "framework":
            return str(values["framework"])
        case "pair":
            return f"{values['accelerator']}--{values['framework']}"


def folds(runs: Sequence[Run], by: Kept, parts: int = 5) -> list[Array]:
    """Which runs are kept aside, for each part of a cross-validation.

    A configuration is everything but concurrency; configurations are dealt out in order of their names, so that parts are the same each time.
    """
    if by == "config":
        keys = [_configuration(run) for run in runs]
        dealt = {key: place % parts for place, key in enumerate(sorted(set(keys)))}
        return [np.array([dealt[key] == part for key in keys]) for part in range(parts)]
    keys = [
        str(getattr(run, {"model": "model", "system": "accelerator", "framework": "framework"}[by]))
        for run in runs
    ]
    return [np.array([key == kept for key in keys]) for kept in dict.fromkeys(keys)]


def _configuration(run: Run) -> str:
    fields = run.model_dump(
        exclude={
            "id",
            "name",
            "concurrency",
            "metrics",
            "environment",
            "source",
            "date",
            "assumptions",
            "status",
        },
        exclude_none=True,
    )
    return repr(sorted((key, repr(value)) for key, value in fields.items()))


def cross_validate(
    problem: Problem,
    by: Kept,
    spread: float = SPREAD,
    loss: Loss = "soft_l1",
    step: Callable[[int], None] = lambda part: None,
) -> Array:
    """Log ratios of runs as predicted without them: runs by metrics."""
    found = np.full((len(problem.runs), len(problem.metrics)), np.nan)
    whole = problem.fit(spread=spread, loss=loss)
    for number, kept in enumerate(folds(problem.runs, by)):
        step(number)
        if kept.all():
            raise InputError(f"--cross-validate {by}: all runs have the same {by}; expected at least two")
        fit = problem.fit(np.logical_not(kept), spread, start=whole.offsets, loss=loss)
        found[kept] = problem.residuals(fit.offsets)[kept]
    return found


@dataclass(frozen=True)
class Calibration:
    """Profiles with fitted figures, and what the fit did.

    Args:
        profiles: new versions; their `fit` says how they came about.
        fit: the parameters.
        before, after: errors by metric on the runs fitted; `aside` on runs kept aside, by what was.
    """

    profiles: tuple[EfficiencyProfile, ...]
    fit: Fit
    runs: int
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    aside: dict[str, dict[str, dict[str, float]]]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        moved = [
            {
                "factor": str(choice),
                "group": group,
                "change": float(np.exp(offset)),
                "low": float(np.exp(offset - BAND * deviation)),
                "high": float(np.exp(offset + BAND * deviation)),
                "at_bound": bound,
            }
            for (choice, group), offset, deviation, bound in zip(
                self.fit.names, self.fit.offsets, self.fit.deviations, self.fit.at_bound, strict=True
            )
        ]
        return {
            "runs": self.runs,
            "before": self.before,
            "after": self.after,
            "out_of_sample": self.aside,
            "moved": moved,
            "profiles": [f"{profile.id}@{profile.version}" for profile in self.profiles],
        }


FITTED = ("tpot_s", "ttft_s", "prefill_s")  # metrics that factors are fitted to; throughput follows from them
# What is fitted to a few runs unless something else is asked for: one factor for each part of a time that runs can tell apart.
USUAL = {
    "tpot_s": (
        "launch_scale",
        "gemm_bandwidth_scale",
        "attention_decode_scale",
        "moe_bandwidth_scale",
        "all_reduce_latency_scale",
        "interference",
        "step_row",
    ),
    "ttft_s": ("gemm_compute", "first_token", "queueing"),
    "prefill_s": ("gemm_compute",),
}
USUAL |= {"ttft_p50_s": USUAL["ttft_s"], "output_tokens_per_s_per_accelerator": USUAL["tpot_s"]}


def calibrate(
    prepared: MatchedRuns,
    choices: Sequence[Choice] = (),
    spread: float = SPREAD,
    validate: Sequence[Kept] = (),
    source: str = "measured runs",
    loss: Loss = "soft_l1",
    on: date | None = None,
    step: Callable[[str], None] = lambda what: None,
    fitted: Sequence[str] = FITTED,
) -> Calibration:
    """Fit factors to runs and write them into new versions of profiles.

    Args:
        prepared: the runs, on the profiles they start from.
        choices: factors that may move; the usual ones, by accelerator and framework, if none.
        spread: of a log factor around its parent's, before any run is seen; the smaller, the closer they stay.
        validate: what to keep aside in turn, to say how runs not seen are predicted.
        source: what the runs are called in the profiles.
        loss: how outliers count.
        on: the day, today if None.
        step: told what is worked on.
        fitted: metrics that count, as far as they were measured.
    """
    measured = {field for case in prepared.cases for field in case.run.metrics.given()}
    metrics = tuple(field for field in fitted if field in measured)
    if not metrics:
        raise InputError(f"{source}: expected runs with one of {', '.join(fitted)}")
    if not choices:
        needed = {
            kind.name
            for batch in prepared.batches
            for kind in batch.equations.prefill_workers.efficiency.kinds()
        }
        names = dict.fromkeys(name for metric in metrics for name in USUAL[metric] if name in needed)
        choices = [Choice(name, level="pair") for name in names]
    problem = Problem(prepared, choices, metrics)
    step("fitting")
    fit = problem.fit(spread=spread, loss=loss)
    before, after = (
        problem.errors(problem.residuals(offsets)) for offsets in (np.zeros(len(problem.names)), fit.offsets)
    )
    aside: dict[str, dict[str, dict[str, float]]] = {}
    for by in validate:
        step(f"cross-validation by {by}")
        aside[by] = problem.errors(cross_validate(problem, by, spread, loss))
    report = FitReport(
        runs=len(problem.runs),
        source=source,
        metrics=metrics,
        spread=spread,
        before=before,
        after=after,
        out_of_sample=aside,
        moved=(),
    )
    profiles = updated_profiles(problem.library, problem.reached, fit, report, on or date.today())
    return Calibration(profiles, fit, len(problem.runs), before, after, aside)
