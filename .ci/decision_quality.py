"""Would the plan that estimates choose have been the best one? Judged by measured runs alone.

    python .ci/decision_quality.py FILE.csv [--beside OTHER.csv]

Measured runs of the same model, accelerator, framework, precision and lengths, at several numbers of requests
in flight, are a curve of each plan: output tokens per second and accelerator against tokens per second and
user. At a speed that at least four measured plans reach, the estimates choose a plan; what it reaches at that
speed by its own measured curve, against the best of the measured plans, is what the choice costs.

OTHER.csv has what another estimator says of the same plans: case and plan as this script prints them with
`--plans`, tokens per second and user (speed), output tokens per second and accelerator (throughput). Choices
that it answers are then judged for both.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from public_accuracy import KERNELS

from mantile.equations.metrics import TPOT
from mantile.library.models import load_model
from mantile.library.profiles import load_library
from mantile.measured.load import load_measurements
from mantile.measured.match import MatchedRun, match_runs
from mantile.measured.metrics import THROUGHPUT

CASE = ("model", "accelerator", "framework", "weights_dtype", "input_tokens", "output_tokens")
PLAN = ("tp", "pp", "ep", "attention_dp", "dp")
PLANS = 4  # that are compared at a speed, at least
LEVELS = 5  # speeds of a case, spread evenly over those that so many plans reach
LOADS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # of what was measured: an estimate reaches a speed elsewhere
CLOSE = 0.03  # a loss up to which a choice is as good as the best: runs repeat no better
GRID = 400  # speeds that are looked at to find those that enough plans reach
Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Curve:
    """Throughput per accelerator against tokens per second and user, on logarithmic scales."""

    speed: Array
    throughput: Array

    @classmethod
    def of(cls, speed: Array, throughput: Array) -> Curve:
        """Through points in any order; of points of one speed the one with the most throughput."""
        known = np.isfinite(speed) & np.isfinite(throughput) & (speed > 0) & (throughput > 0)
        points = pd.DataFrame({"speed": np.log(speed[known]), "throughput": np.log(throughput[known])})
        best = points.groupby("speed", as_index=False).max().sort_values("speed")
        return cls(best["speed"].to_numpy(), best["throughput"].to_numpy())

    def at(self, speed: float) -> float:
        """Throughput at a speed, by a line between the points beside it; NaN outside of them."""
        return float(np.interp(speed, self.speed, self.throughput, left=np.nan, right=np.nan))

    def at_least(self, speed: float) -> float:
        """The most throughput at a speed or above it; NaN where it is not reached."""
        return float(np.fmax.reduce(np.append(self.throughput[self.speed >= speed], self.at(speed))))


def main(arguments: Sequence[str]) -> None:
    """Print what choices by estimates lose, with the profiles as they are and with nothing fitted."""
    file = Path(arguments[0])
    if "--plans" in arguments:
        for case, curves in _cases(file, ()):
            print(*(f"{case},{plan}" for plan in curves), sep="\n")
        return
    other = pd.read_csv(arguments[2]) if arguments[1:2] == ["--beside"] else None
    for name, pins in (("profiles as they are", ()), ("kernels as timed, nothing fitted", KERNELS)):
        cases = list(_cases(file, pins))
        choices = pd.DataFrame([choice for case in cases for choice in _choices(*case)])
        print(f"== {name}: {len(cases)} cases of {PLANS} plans or more, {choices['case'].nunique()} compared")
        _print(choices)
        if other is not None:
            own, theirs = _paired(cases, other)
            print(f"-- {len(own)} choices that the other estimator answers: by {name}, then by the other")
            _print(own)
            _print(theirs)


def _paired(
    cases: Sequence[tuple[str, dict[str, tuple[Curve, Curve]]]], other: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The choices that another estimator answers, by ours and by its estimates."""
    said = {key: of for key, of in other.dropna().groupby(["case", "plan"])}
    nothing = Curve(np.array([np.nan]), np.array([np.nan]))
    pairs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for case, curves in cases:
        theirs = {plan: (measured, nothing) for plan, (measured, _) in curves.items()}
        for plan in curves:
            of = said.get((case, plan))
            if of is not None and of["speed"].nunique() > 1:
                estimated = Curve.of(of["speed"].to_numpy(float), of["throughput"].to_numpy(float))
                theirs[plan] = theirs[plan][0], estimated
        answered = {choice["speed"]: choice for choice in _choices(case, theirs)}
        pairs += [(one, answered[one["speed"]]) for one in _choices(case, curves) if one["speed"] in answered]
    return pd.DataFrame([one for one, _ in pairs]), pd.DataFrame([one for _, one in pairs])


def _cases(file: Path, pins: tuple[str, ...]) -> Iterator[tuple[str, dict[str, tuple[Curve, Curve]]]]:
    """Measured and estimated curves of the plans of each case that has enough."""
    runs = [
        run
        for run in load_measurements(file).runs
        if run.decode is None and run.speculation in (None, "none")
    ]
    rows: list[dict[str, Any]] = []
    for batch in match_runs(runs, load_library(pins)).batches:
        tpot = batch.outputs()[TPOT.key]
        throughput = batch.outputs()[THROUGHPUT]
        concurrency = np.array([float(run.column.values["concurrency"]) for run in batch.runs])
        estimates = [
            batch.predict({"inputs.concurrency": np.maximum(1, np.round(concurrency * load))})
            for load in LOADS
        ]
        measured = batch.compared
        for place, matched in enumerate(batch.runs):
            rows.append(
                {
                    "case": _words(matched, CASE),
                    "plan": _words(matched, PLAN),
                    "concurrency": concurrency[place],
                    "date": str(matched.run.date or ""),
                    "model": matched.run.model,
                    "measured": (1 / measured[TPOT.key][place], measured[THROUGHPUT][place]),
                    "estimated": [
                        (1 / float(values[tpot][place]), float(values[throughput][place]))
                        for values in estimates
                    ],
                }
            )
    table = pd.DataFrame(rows)
    newest = table.sort_values("date", kind="stable").drop_duplicates(
        ["case", "plan", "concurrency"], keep="last"
    )
    for case, of_case in newest.groupby("case", sort=True):
        curves = {}
        for plan, of_plan in of_case.groupby("plan", sort=True):
            measured_points = np.array([*of_plan["measured"]])
            estimated_points = np.array([point for points in of_plan["estimated"] for point in points])
            measured_curve, estimated_curve = Curve.of(*measured_points.T), Curve.of(*estimated_points.T)
            if len(measured_curve.speed) > 1 and len(estimated_curve.speed) > 1:
                curves[str(plan)] = measured_curve, estimated_curve
        if len(curves) >= PLANS:
            yield str(case), curves


def _words(matched: MatchedRun, fields: Sequence[str]) -> str:
    values = {**matched.column.values, "model": matched.run.model}
    return " ".join(
        f"{field} {values[field]:g}" if isinstance(values[field], int | float) else str(values[field])
        for field in fields
    )


def _choices(case: str, curves: dict[str, tuple[Curve, Curve]]) -> Iterator[dict[str, Any]]:
    """What is chosen at each speed, and what that costs."""
    low = min(measured.speed[0] for measured, _ in curves.values())
    high = max(measured.speed[-1] for measured, _ in curves.values())
    speeds = [
        speed
        for speed in np.linspace(low, high, GRID)
        if sum(np.isfinite(measured.at(speed)) for measured, _ in curves.values()) >= PLANS
    ]
    if not speeds:
        return
    for place in range(LEVELS):
        speed = speeds[round((place + 0.5) / LEVELS * (len(speeds) - 1))]
        reached = {plan: of.at(speed) for plan, (of, _) in curves.items() if np.isfinite(of.at(speed))}
        estimated = {plan: curves[plan][1].at_least(speed) for plan in reached}
        known = {plan: value for plan, value in estimated.items() if np.isfinite(value)}
        if not known:
            continue
        chosen, best = max(known, key=known.__getitem__), max(reached, key=reached.__getitem__)
        losses = {plan: 1 - np.exp(value - reached[best]) for plan, value in reached.items()}
        yield {
            "case": case,
            "model": case.split()[0],
            "experts": bool(load_model(case.split()[0]).architecture.value("experts")),
            "speed": np.exp(speed),
            "plans": len(reached),
            "chosen": chosen,
            "best": best,
            "loss": losses[chosen],
            "drawn": np.mean([*losses.values()]),
            "not known": len(estimated) - len(known),
        }


def _print(choices: pd.DataFrame) -> None:
    """Shares and losses of all choices, and by model."""
    heads = ("best", f"<={CLOSE:.0%}", "mean", "median", "p90", "most", "median", "p90", "median", "p90")
    print(f"{'':24s} {'choices':>7s}  {'':18s}{'lost:':36s}{'if not best:':18s}drawn:")
    print(f"{'':32s}  " + "".join(f"{head:>9s}" for head in heads))
    kinds = choices.groupby(np.where(choices["experts"], "mixtures of experts", "dense"))
    for name, part in [("all", choices), *kinds, *choices.groupby("model")]:
        loss, drawn = part["loss"], part["drawn"]
        figures = [
            *((loss == 0).mean(), (loss <= CLOSE).mean()),
            *(loss.mean(), loss.median(), loss.quantile(0.9), loss.max()),
            *(of.quantile(share) for of in (loss[loss > 0], drawn) for share in (0.5, 0.9)),
        ]
        print(f"{name:24s} {len(part):7d}  " + "".join(f"{100 * value:7.1f} %" for value in figures))
    print(f"plans of which estimates say that they do not reach a speed: {choices['not known'].sum()}")
    for row in choices.sort_values("loss", ascending=False).head(5).to_dict("records"):
        print(
            f"  {row['loss']:.1%}  {row['case']} at {row['speed']:.0f}: {row['chosen']}, best {row['best']}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
