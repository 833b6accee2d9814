"""Corrections: multipliers of results fitted to what measured runs leave over of the physics.

Each kind of run (model, accelerator, framework) gets a step, the median of what is left of it. Boosted trees
of one split each, fitted to the median, then give steps along what was asked; a sum of such trees is one
table for each of these, which a workbook looks up. They do not fall as requests or tokens grow, nor do the
results then, which physics lets only grow. The spread is that of runs whose configuration was not fitted
(split conformal).

Where such steps do not hold (what a kind of run leaves over changes with the releases of an engine), steps
may still hold everywhere that are fitted to how runs of one kind and day differ among each other: along what
was asked and what a decode step is bound by. They are judged by models, accelerators and days that were left
out. Steps along what binds may go down as requests or tokens grow, and a corrected result with them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from mantile.equations.correction import SHARES
from mantile.library.correction import MOST_CHANGE, MOST_STEPS, Along, Corrected, Correction, Group
from mantile.library.dates import serial
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.releases import release_day
from mantile.measured.cross_validation import folds
from mantile.measured.match import match_runs
from mantile.measured.metrics import COMPARED, Array
from mantile.measured.runs import Run
from mantile.measured.select import mode_of

if TYPE_CHECKING:
    import pandas as pd

METRICS = ("tpot", "ttft", "e2e", "prefill", "weights", "kv_tokens", "peak_memory")
OF_LOAD = ("tpot", "ttft", "e2e", "prefill")
"""Those that grow with what was asked; memory after the start does not."""
ASKED = ("concurrency", "input_tokens", "output_tokens", "ranks")
LEFT_OUT = {"model": "model", "accelerator": "accelerator", "fold": "configuration"}
"""What steps that hold everywhere are judged by: columns, and what they are called. Of a configuration only
whether they are better over all: of one model on one accelerator with one framework there are few runs."""
DAY = "engine_date"
"""The day of the engine of a run, as spreadsheets count days: of its release where the run states one whose
day is known, else of the run. It counts where all runs have one."""
_YEAR = 365.25
GROUP = ("model", "accelerator", "framework")
THIN = 10.0  # runs of a group at which its correction counts half, as the equations have it
LEAST_RUNS = 20  # of a metric, for a spread that means something
LEAST_FOR_STEPS = 40  # of a metric, for steps along what was asked
WORSE = 0.01
"""How much worse the median error of a group may get before a correction is refused."""
CUTS = (0.5, 0.75)
"""Shares of dated runs before a day, from which on runs are taken for later ones."""
TREES, RATE, LEAST_IN_LEAF = 40, 0.1, 15
TREES_EVERYWHERE, LEAST_IN_LEAF_EVERYWHERE = 100, 40
LEAST_KINDS = 3  # models and accelerators, for steps that hold everywhere
_MOST = log(MOST_CHANGE)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}$")


@dataclass(frozen=True)
class Fit:
    """The steps of one metric: of groups and along what was asked, or only these, which hold everywhere."""

    groups: tuple[Group, ...] = ()
    along: tuple[Along, ...] = ()
    everywhere: bool = False


@dataclass(frozen=True)
class Split:
    """Errors of runs that were left out, with steps that hold everywhere.

    Args:
        left_out: model, accelerator, configuration, or the day from which on runs are later ones.
        runs: how many.
        without, corrected: median and mean error without them, and with them.
        worst: by how much the median of what was left out gets worse at most, as a fraction, and what.
    """

    left_out: str
    runs: int
    without: tuple[float, float]
    corrected: tuple[float, float]
    worst: tuple[float, str]

    @property
    def no_worse(self) -> bool:
        """Neither over all nor, by more than a point, for one of its parts."""
        return self.corrected[0] <= self.without[0] and self.worst[0] <= WORSE

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "left_out": self.left_out,
            "runs": self.runs,
            "without": dict(zip(("median", "mean"), self.without, strict=True)),
            "corrected": dict(zip(("median", "mean"), self.corrected, strict=True)),
            "worst": {"change": self.worst[0], "group": self.worst[1]},
        }


@dataclass(frozen=True)
class Judged:
    """Errors |predicted ÷ measured − 1| of a metric, of runs whose configuration was not fitted.

    Args:
        runs: how many.
        without, corrected, linear, nearest: median and mean error without a correction, with it, and with two
            baselines: a linear fit of the same columns, and the mean of the five nearest runs of the group.
        worst: by how much the median of a group gets worse at most, as a fraction, and the group.
        covered: share of runs within the range, the mean of groups.
        later: how many days the runs were cut at, and at how many of them a correction fitted to those before
            was no worse for those after, over all and for each framework.
        kept: whether the correction is written.
        splits: of steps that hold everywhere, where they were tried.
        everywhere: whether these are written.
    """

    metric: str
    runs: int
    without: tuple[float, float]
    corrected: tuple[float, float]
    linear: tuple[float, float]
    nearest: tuple[float, float]
    worst: tuple[float, str]
    covered: float
    later: tuple[int, int]
    kept: bool
    splits: tuple[Split, ...] = ()
    everywhere: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "metric": self.metric,
            "runs": self.runs,
            **{
                name: dict(zip(("median", "mean"), getattr(self, name), strict=True))
                for name in ("without", "corrected", "linear", "nearest")
            },
            "worst_group": {"change": self.worst[0], "group": self.worst[1]},
            "covered": self.covered,
            "later": dict(zip(("days", "no_worse"), self.later, strict=True)),
            "kept": self.kept,
            "everywhere": self.everywhere,
            "left_out": [split.to_dict() for split in self.splits],
        }


@dataclass(frozen=True)
class Learned:
    """A correction and how it was judged. `correction` is None where nothing gets better by one."""

    correction: Correction | None
    judged: tuple[Judged, ...]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        made = self.correction
        return {
            "correction": None
            if made is None
            else {"id": made.id, "version": made.version, "digest": made.digest},
            "metrics": [one.to_dict() for one in self.judged],
        }


def learn(
    runs: Sequence[Run],
    library: Library | None = None,
    name: str = "correction",
    source: str = "measured runs",
    on: date | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Learned:
    """Fit a correction to measured runs, and judge it on configurations it was not fitted to.

    A metric is corrected only where that is better over all such runs and in no group worse by more than a
    point, and where one that is fitted to earlier runs is no worse for later ones. Else by steps that hold
    everywhere, where these are better for models, accelerators and configurations that were left out, and for
    no model, no accelerator and no framework of later days worse by more than a point. Runs of many kinds and
    several days get no others: what a kind leaves over is of its days.

    Args:
        runs: as `load_measurements` reads them; those with prefill or drafts apart, and those at a rate of
            requests, do not count.
        library: profiles to predict with, instead of those we ship.
        name: id of the correction.
        source: what the runs are called.
        on: the day of the version; today where it is not stated.
        progress: told what is done next.

    Raises:
        InputError: if too few runs can be used, or if scikit-learn is not installed.

    Example:
        learned = learn(load_measurements("runs.csv").runs)
        learned.correction    # None where the physics alone is as good
    """
    require_sklearn()
    table = residuals(runs, library, progress)
    judged: list[Judged] = []
    metrics: list[Corrected] = []
    for metric in METRICS:
        part = table[np.isfinite(table[metric].to_numpy(float))]
        if len(part) < LEAST_RUNS or part["fold"].nunique() < 2:
            continue
        progress(f"fitting {COMPARED[metric].label_inside}")
        one, spread = judge(metric, part)
        judged.append(one)
        if one.kept:
            fit = fitted_everywhere(part, metric) if one.everywhere else fitted(part, metric)
            metrics.append(
                Corrected(
                    metric=metric,  # type: ignore[arg-type]
                    everywhere=fit.everywhere,
                    groups=fit.groups,
                    along=fit.along,
                    low=_rounded(min(0.0, spread[0])),
                    high=_rounded(max(0.0, spread[1])),
                )
            )
    if not judged:
        raise InputError(
            f"{source}: expected at least {LEAST_RUNS} aggregated runs of one metric in two configurations, "
            f"found {len(table)} aggregated runs"
        )
    if not metrics:
        return Learned(None, tuple(judged))
    days = days_of(table)
    told = f"{source}, {len(table)} runs" + (f", {days[0]} to {days[-1]}" if days else "")
    made = Correction(id=name, version=str(on or date.today()), source=told[-120:], metrics=tuple(metrics))
    return Learned(made.sealed(), tuple(judged))


def require_sklearn() -> None:
    """Refuse to fit without scikit-learn.

    Raises:
        InputError: saying how to get it.
    """
    try:
        import sklearn  # noqa: F401
    except ImportError:
        raise InputError(
            "mantile calibrate --multipliers: expected scikit-learn, which fits corrections: "
            "pip install 'mantile[learn]'; a correction that is there needs it no more"
        ) from None


def residuals(
    runs: Sequence[Run],
    library: Library | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> pd.DataFrame:
    """What measured runs leave over: a row each with group, what was asked, day of the run and of its engine,
    fold of its configuration, and by metric the logarithm of measured ÷ predicted, NaN where it was not
    measured."""
    import pandas as pd

    aggregated = [run for run in runs if mode_of(run) == "aggregated" and run.concurrency is not None]
    matched = match_runs(aggregated, library, progress).possible()
    rows: list[dict[str, Any]] = []
    for batch in matched.batches:
        outputs, measured, values = batch.outputs(), batch.compared, batch.predict()
        shares = batch.shares()
        with np.errstate(divide="ignore", invalid="ignore"):
            left = {
                metric: np.log(
                    measured[COMPARED[metric].field] / values[outputs[COMPARED[metric].field]].astype(float)
                )
                for metric in METRICS
            }
        for place, run in enumerate(batch.runs):
            asked: dict[str, Any] = dict(run.column.values)
            rows.append(
                {
                    "id": run.run.id,
                    **{what: asked[what] for what in GROUP if what != "model"},
                    "model": batch.model.id,
                    **{what: float(asked[what]) for what in ASKED if what in asked},
                    "ranks": float(asked["tp"] * asked["attention_dp"] * asked["cp"] * asked["pp"]),
                    "date": run.run.date,
                    DAY: _engine_day(run.run),
                    **{name: float(of_runs[place]) for name, of_runs in shares.items()},
                    **{metric: float(of_runs[place]) for metric, of_runs in left.items()},
                }
            )
    table = pd.DataFrame(rows, columns=["id", *GROUP, *ASKED, "date", DAY, *SHARES, *METRICS])
    parts = folds([run.run for run in matched.runs], "config")
    table["fold"] = np.select(parts, range(len(parts)), 0) if len(table) else 0
    table["group"] = table[list(GROUP)].astype(str).agg("/".join, axis=1) if len(table) else ""
    return table


def _engine_day(run: Run) -> float:
    """The day of the engine of a run; NaN where nobody knows it."""
    day: date | None = None
    with suppress(InputError):
        day = release_day(run.environment.framework_version or "", run.framework)
    if day is None and _DAY.match(str(run.date)):
        with suppress(ValueError):
            day = date.fromisoformat(str(run.date))
    return float("nan") if day is None else float(serial(day))


def _asked(table: pd.DataFrame) -> list[str]:
    """What a correction may go along: the day of the engine too, where all runs have one."""
    return [*ASKED] if table[DAY].isna().any() else [*ASKED, DAY]


def judge(metric: str, table: pd.DataFrame, by: str = "fold") -> tuple[Judged, tuple[float, float]]:
    """A correction on runs it was not fitted to, beside baselines; and the logarithms between which 80 % of
    measured ÷ corrected lie.

    Args:
        table: of `residuals`, with the metric in every row.
        by: the column whose values are left out in turn.
    """
    left = table[metric].to_numpy(float)
    of_models: dict[str, Array] = {name: np.zeros(len(table)) for name in ("corrected", "linear", "nearest")}
    for part in dict.fromkeys(table[by]):
        out = (table[by] == part).to_numpy()
        seen, unseen = table[~out], table[out]
        if not len(seen):
            continue
        of_models["corrected"][out] = applied(unseen, fitted(seen, metric))
        of_models["linear"][out] = _linear(seen, unseen, metric)
        of_models["nearest"][out] = _nearest(seen, unseen, metric)
    errors = {"without": off(left)} | {name: off(left - change) for name, change in of_models.items()}
    medians = {
        name: table.assign(off=errors[name]).groupby("group")["off"].median()
        for name in ("without", "corrected")
    }
    change = medians["corrected"] - medians["without"]
    worst = (float(change.max()), str(change.idxmax()))
    rest = left - of_models["corrected"]
    spread, covered = conformal(rest, table["group"].to_numpy(), table[by].to_numpy())
    figures = {name: (float(np.median(of_one)), float(of_one.mean())) for name, of_one in errors.items()}
    better = figures["corrected"][0] < figures["without"][0]
    days, no_worse = judged_later(metric, table)
    judged = Judged(
        metric,
        len(table),
        without=figures["without"],
        corrected=figures["corrected"],
        linear=figures["linear"],
        nearest=figures["nearest"],
        worst=worst,
        covered=covered,
        later=(days, no_worse),
        kept=better and worst[0] <= WORSE and days == no_worse,
    )
    if not _has_kinds(metric, table) or (judged.kept and not days):
        return judged, spread
    splits, rest = judged_everywhere(metric, table)
    of_kinds = [split for split in splits if split.left_out in LEFT_OUT.values()]
    holds = all(split.corrected[0] < split.without[0] for split in of_kinds) and all(
        split.no_worse for split in splits if split.left_out != LEFT_OUT["fold"]
    )
    if not holds:
        return replace(judged, splits=splits, kept=False), spread
    spread, covered = conformal(rest, table["group"].to_numpy(), table[by].to_numpy())
    return replace(judged, splits=splits, everywhere=True, kept=True, covered=covered), spread


def _has_kinds(metric: str, table: pd.DataFrame) -> bool:
    """Whether there are models and accelerators to leave out, and runs for steps along what was asked."""
    return (
        metric in OF_LOAD
        and len(table) >= LEAST_FOR_STEPS
        and min(table["model"].nunique(), table["accelerator"].nunique()) >= LEAST_KINDS
    )


def judged_everywhere(metric: str, table: pd.DataFrame) -> tuple[tuple[Split, ...], Array]:
    """Steps that hold everywhere, on kinds of runs and days that were left out; and what they leave over of
    runs whose configuration was left out."""
    splits: list[Split] = []
    rest = np.zeros(len(table))
    for by, left_out in LEFT_OUT.items():
        change = np.zeros(len(table))
        for part in dict.fromkeys(table[by]):
            out = (table[by] == part).to_numpy()
            if not out.all():
                change[out] = applied(table[out], fitted_everywhere(table[~out], metric))
        rest = table[metric].to_numpy(float) - change
        splits.append(_split(metric, table, change, left_out, by))
    for day, seen, unseen in _cuts(table):
        change = applied(unseen, fitted_everywhere(seen, metric))
        splits.append(_split(metric, unseen, change, day, "framework"))
    return tuple(splits), rest


def _split(metric: str, table: pd.DataFrame, change: Array, left_out: str, by: str) -> Split:
    left = table[metric].to_numpy(float)
    by = "group" if by == "fold" else by
    errors = {"without": off(left), "corrected": off(left - change)}
    medians = table[[by]].assign(**errors).groupby(by)[["without", "corrected"]].median()
    moved = medians["corrected"] - medians["without"]
    without, corrected = ((float(np.median(one)), float(one.mean())) for one in errors.values())
    return Split(left_out, len(table), without, corrected, (float(moved.max()), str(moved.idxmax())))


def _cuts(table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
    """Days at a half and at three quarters of the dated runs, with the runs before and after; not where
    either side has too few."""
    dated = table[table["date"].astype(str).str.match(_DAY)]
    of_runs = dated["date"].astype(str)
    days = sorted(of_runs)
    for day in sorted({days[int(len(days) * share)] for share in CUTS} if days else ()):
        before = (of_runs < day).to_numpy()
        seen, unseen = dated[before], dated[~before]
        if min(len(seen), len(unseen)) >= LEAST_RUNS:
            yield day, seen, unseen


def judged_later(metric: str, table: pd.DataFrame) -> tuple[int, int]:
    """At how many days dated runs can be cut, and at how many of them a correction that is fitted to those
    before is no worse for those after: in the median of all, nor by a point for a framework.
    """
    splits = [
        _split(metric, unseen, applied(unseen, fitted(seen, metric)), day, "framework")
        for day, seen, unseen in _cuts(table)
    ]
    return len(splits), sum(split.no_worse for split in splits)


def learned_from(metric: str, table: pd.DataFrame) -> Fit:
    """The steps of a correction, none where it is not kept. Arguments as of `judge`."""
    one, _ = judge(metric, table)
    if not one.kept:
        return Fit()
    return fitted_everywhere(table, metric) if one.everywhere else fitted(table, metric)


def off(log_ratios: Array) -> Array:
    """|predicted ÷ measured − 1| of logarithms of measured ÷ predicted."""
    return np.abs(np.expm1(-log_ratios))


def conformal(
    rest: Array, groups: Array, parts: Array, share: float = 0.8
) -> tuple[tuple[float, float], float]:
    """Ends between which a share of what is left lies, and how much of a part lies between those of the
    others: the mean of groups.

    Each group has the same weight. The quantile of n values is taken at (n + 1)/n of its place, as split
    conformal prediction does, so that a new value lies inside as often as is said.
    """
    inside = np.zeros(len(rest), bool)
    for part in dict.fromkeys(parts.tolist()):
        out = parts == part
        if out.all():
            continue
        low, high = _ends(rest[~out], groups[~out], share)
        inside[out] = (rest[out] >= low) & (rest[out] <= high)
    shares = [float(inside[groups == group].mean()) for group in dict.fromkeys(groups.tolist())]
    return _ends(rest, groups, share), float(np.mean(shares))


def _ends(rest: Array, groups: Array, share: float) -> tuple[float, float]:
    counts: Mapping[Any, int] = dict(zip(*np.unique(groups, return_counts=True), strict=True))
    weights = np.array([1 / counts[group] for group in groups])
    order = np.argsort(rest)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    tail = max(0.0, (1 - share) / 2 * (1 + 1 / len(rest)) - 1 / len(rest))
    low, high = np.interp([tail, 1 - tail], places, rest[order])
    return float(low), float(high)


def fitted(table: pd.DataFrame, metric: str) -> Fit:
    """The steps of a correction.

    Args:
        table: of `residuals`, with the metric in every row.
    """
    left = np.clip(table[metric].to_numpy(float), -_MOST, _MOST)
    medians = table.assign(left=left).groupby("group")["left"].median()
    along: tuple[Along, ...] = ()
    if metric in OF_LOAD and len(table) >= LEAST_FOR_STEPS:
        rest = left - medians[table["group"]].to_numpy(float)
        along = _along(table, rest, _asked(table), TREES, LEAST_IN_LEAF)
        rest = left - _steps(table, along)
        medians = table.assign(left=rest).groupby("group")["left"].median().clip(-_MOST, _MOST)
    return Fit(_groups(table, medians), along)


def fitted_everywhere(table: pd.DataFrame, metric: str) -> Fit:
    """Steps that hold everywhere: along what was asked and what a decode step is bound by.

    They are fitted to how runs of one group and day differ among each other, and are 0 for half of the runs:
    the level of a group, and how it moves with the releases of an engine, is left to the physics.
    """
    left = np.clip(table[metric].to_numpy(float), -_MOST, _MOST)
    kinds = [table["group"], table["date"].fillna("").astype(str)]
    level = table.assign(left=left).groupby(kinds)["left"].transform("median").to_numpy(float)
    names = [*ASKED, *SHARES]
    along = _along(table, left - level, names, TREES_EVERYWHERE, LEAST_IN_LEAF_EVERYWHERE)
    if along:
        usual = float(np.median(_steps(table, along)))
        first = along[0]
        steps = tuple(_rounded(float(np.clip(step - usual, -_MOST, _MOST))) for step in first.steps)
        along = (first.model_copy(update={"steps": steps}), *along[1:])
    return Fit(_groups(table, None), along, everywhere=True)


def _groups(table: pd.DataFrame, steps: Mapping[str, float] | None) -> tuple[Group, ...]:
    """Runs by group, with the step of each; 0 without."""
    groups = []
    for key, part in table.groupby("group", sort=True):
        days = days_of(part)
        groups.append(
            Group(
                **{what: str(part[what].iloc[0]) for what in GROUP},
                runs=len(part),
                newest=days[-1] if days else None,
                step=0.0 if steps is None else _rounded(float(steps[str(key)])),
            )
        )
    return tuple(groups)


def days_of(table: pd.DataFrame) -> list[str]:
    """The days of runs that state one, in order; a month, or a span of time, is none."""
    return sorted(day for day in table["date"].dropna().astype(str) if _DAY.match(day))


def applied(table: pd.DataFrame, fit: Fit) -> Array:
    """Logarithms of the multipliers of runs, as the equations have them."""
    if fit.everywhere:
        of_framework = Counter[str]()
        for group in fit.groups:
            of_framework[group.framework] += group.runs
        count = table["framework"].map(of_framework).fillna(0).to_numpy(float)
        everywhere: Array = np.clip(count / (count + THIN) * _steps(table, fit.along), -_MOST, _MOST)
        return everywhere
    known = {f"{group.model}/{group.accelerator}/{group.framework}": group for group in fit.groups}
    found = [known.get(key) for key in table["group"]]
    step = np.array([0.0 if group is None else group.step for group in found])
    runs = np.array([0.0 if group is None else float(group.runs) for group in found])
    change: Array = np.clip(runs / (runs + THIN) * (step + _steps(table, fit.along)), -_MOST, _MOST)
    return change


def _steps(table: pd.DataFrame, along: Sequence[Along]) -> Array:
    total = np.zeros(len(table))
    for one in along:
        values = table[one.what].fillna(np.inf).to_numpy(float)  # of an engine without a day the newest
        places = np.searchsorted(one.starts, values, side="right") - 1
        total += np.array(one.steps)[places]
    return total


def _along(
    table: pd.DataFrame, rest: Array, names: Sequence[str], trees_of: int, least_in_leaf: int
) -> tuple[Along, ...]:
    """Steps along what was asked, read off boosted trees of one split each.

    Args:
        rest: logarithms that they are fitted to.
        names: columns to go along.
        trees_of, least_in_leaf: how many trees, and the fewest runs on a side of a split.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    asked = table[list(names)].to_numpy(float)
    counts = table.groupby("group")["group"].transform("size").to_numpy(float)
    trees = HistGradientBoostingRegressor(
        loss="quantile",
        quantile=0.5,
        max_leaf_nodes=2,
        max_iter=trees_of,
        learning_rate=RATE,
        min_samples_leaf=least_in_leaf,
        monotonic_cst=[0 if what in ("ranks", DAY, *SHARES) else 1 for what in names],
        early_stopping=False,
        random_state=0,
    )
    usual = np.median(asked, axis=0)
    with threadpool_limits(1):  # threads that wait for one another cost more than they bring
        trees.fit(asked, rest, sample_weight=1 / np.sqrt(counts))
        base = float(trees.predict(usual[np.newaxis])[0])
        found = []
        for place, what in enumerate(names):
            values = np.unique(asked[:, place])
            points = np.repeat(usual[np.newaxis], len(values), axis=0)
            points[:, place] = values
            of_values = trees.predict(points) - base
            made = _table(values, of_values)
            if len(made) > 1:
                found.append(Along(what=what, starts=tuple(made), steps=tuple(made.values())))  # type: ignore[arg-type]
    return tuple(found)


def _table(values: Array, steps: Array) -> dict[float, float]:
    """A step function as its starts and steps; where there are too many, the smallest changes go."""
    found = {0.0: float(steps[0])}
    for before, value, step in zip(values, values[1:], steps[1:], strict=False):
        if step != list(found.values())[-1]:
            found[_rounded(float(before + value) / 2)] = float(step)
    while len(found) > MOST_STEPS:
        starts, of_starts = list(found), list(found.values())
        changes = np.abs(np.diff(of_starts))
        del found[starts[int(np.argmin(changes)) + 1]]
    return {start: _rounded(float(np.clip(step, -_MOST, _MOST))) for start, step in found.items()}


def _columns(table: pd.DataFrame, names: Sequence[str]) -> Array:
    """What was asked in logarithms, days in years."""
    values: Array = table[list(names)].to_numpy(float)
    is_day = np.array([name == DAY for name in names])
    return np.where(is_day, values / _YEAR, np.log(values))


def _shared(seen: pd.DataFrame, unseen: pd.DataFrame) -> list[str]:
    return [name for name in _asked(seen) if name in _asked(unseen)]


def _linear(seen: pd.DataFrame, unseen: pd.DataFrame, metric: str) -> Array:
    """A linear fit of the same columns, with a constant for each group."""
    from sklearn.linear_model import Ridge

    groups, names = list(dict.fromkeys(seen["group"])), _shared(seen, unseen)

    def of(table: pd.DataFrame) -> Array:
        marks = [(table["group"] == group).to_numpy(float) for group in groups]
        return np.column_stack([_columns(table, names), *marks])

    left = np.clip(seen[metric].to_numpy(float), -_MOST, _MOST)
    found: Array = np.clip(Ridge(1.0).fit(of(seen), left).predict(of(unseen)), -_MOST, _MOST)
    return found


def _nearest(seen: pd.DataFrame, unseen: pd.DataFrame, metric: str, most: int = 5) -> Array:
    """The mean of the nearest runs of the same group; 0 where it has none."""
    left = np.clip(seen[metric].to_numpy(float), -_MOST, _MOST)
    names = _shared(seen, unseen)
    here, there = _columns(unseen, names), _columns(seen, names)
    groups = seen["group"].to_numpy()
    found = np.zeros(len(unseen))
    for place, group in enumerate(unseen["group"]):
        same = np.flatnonzero(groups == group)
        if len(same):
            distance = np.abs(there[same] - here[place]).sum(axis=1)
            found[place] = left[same[np.argsort(distance, kind="stable")[:most]]].mean()
    return found


def _rounded(value: float) -> float:
    return round(value, 6)
