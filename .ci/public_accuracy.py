"""How far off predictions are on a table of public serving runs, fitted, unfitted and on runs kept aside; and what each part is worth.

    python .ci/public_accuracy.py FILE.csv            all of it, about a quarter of an hour
    python .ci/public_accuracy.py FILE.csv ablation   one part: kernels, ablation, tpot, shared, ttft or ranges

The starting point of a fit is the tables before any fit to all of these runs (profiles @tables), or kernels as they were timed (@kernels).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mantile.library.profiles import Library, load_library
from mantile.measured.cross_validation import LeftOut, cross_validate
from mantile.measured.fit import FitProblem
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.measured.metrics import errors
from mantile.measured.profile_versions import FittedFactor
from mantile.measured.reconcile import reconcile
from mantile.measured.runs import Measurements

GENERATIONS = ("global", "hopper", "blackwell", "cdna3", "cdna4")
TABLES, KERNELS = (
    tuple(f"efficiency/{name}@{version}" for name in GENERATIONS) for version in ("tables", "kernels")
)
SHARED = (
    "launch_scale",
    "moe_launch_scale",
    "gemm_bandwidth_scale",
    "moe_bandwidth_scale",
    "attention_decode_scale",
    "all_reduce_latency_scale",
    "interference",
    "small_kernel",
    "moe_compute",
    "routing_spread",
)
STEP = ("step_row", "step_host")
BY_FORMAT = (
    "gemm_launch[bf16]",
    "gemm_launch[fp8]",
    "gemm_launch[nvfp4]",
    "gemm_launch[fp8-block]",
    "gemm_bandwidth[nvfp4]",
    "attention_decode[fp8]",
    "moe_bandwidth[mxfp4]",
    "moe_bandwidth[nvfp4]",
    "moe_bandwidth[fp8-block]",
    "latent_launch",
    "latent_decode",
    "moe_early",
)
GLOBAL = ("launch_scale@generation", *(name for name in SHARED if name != "launch_scale"), *STEP, *BY_FORMAT)
FIRST = ("first_token", "queueing", "step_lag", "cold_start", "prefill_alone")
# The less a group kept aside is like the others, the less a fit should move.
SPREADS: dict[LeftOut, float] = {"config": 0.1, "model": 0.03, "system": 0.03, "framework": 0.03}
# What each part is worth: the figures that switch it off.
PARTS: dict[str, dict[str, float]] = {
    "all parts": {},
    "expert coverage: every expert read": {"efficiency.routing_spread": 20},
    "prefill interference: none": {"efficiency.interference": 0},
    "launches of kernels: a tenth": {
        "efficiency.launch_scale": 0.1,
        "efficiency.moe_launch_scale": 0.1,
        "efficiency.small_kernel": 0,
    },
    "launches by generation: the same": {"efficiency.launch_scale": 1},
    "all-reduce latency: a tenth": {"efficiency.all_reduce_latency_scale": 0.1},
    "host time per step and request: none": {"efficiency.step_host": 0, "efficiency.step_row": 0},
    "fp8 by blocks: as plain fp8": {
        "efficiency.gemm_launch.hopper.fp8-block": 7.6,
        "efficiency.gemm_launch.blackwell.fp8-block": 7.6,
        "efficiency.moe_bandwidth.hopper.fp8-block": 0.85,
        "efficiency.moe_bandwidth.blackwell.fp8-block": 0.85,
    },
    "KV capacity: no limit": {"hardware.memory_capacity": 100_000},
    "early expert kernels: as later ones": {"efficiency.moe_early": 1},
}


def line(name: str, ratios: Any) -> None:
    """One line: MAPE, median, p90, bias and symmetric factor in percent."""
    found = errors(np.exp(ratios))
    print(
        f"{name:64s} {found['n']:5.0f}  "
        + "  ".join(
            f"{key} {100 * found[key]:5.1f}" for key in ("mape", "median", "p90", "bias", "symmetric")
        ),
        flush=True,
    )


def without_pairs(library: Library) -> Library:
    """The profiles without those fitted to the runs of one accelerator with one serving engine."""
    mine = {"vllm", "sglang", "trtllm", "atom"}
    return library.model_copy(
        update={
            "efficiency": tuple(
                one for one in library.efficiency if not (one.accelerator and one.framework in mine)
            )
        }
    )


class Bench:
    """The aggregated runs of a table, and what has been predicted for runs kept aside, by what was kept and metric: log ratios."""

    def __init__(self, file: Path) -> None:
        everything = load_measurements(file)
        self.measured = Measurements(tuple(run for run in everything.runs if run.decode is None))
        self.runs = list(self.measured.runs)
        self.aside: dict[tuple[str, LeftOut], Any] = {}

    def problem(self, library: Library, choices: Iterable[str], metrics: Sequence[str]) -> FitProblem:
        """A fit of factors to all runs, in the order of `runs`."""
        found = FitProblem(
            match_runs(self.runs, library), [FittedFactor.parse(name) for name in choices], metrics
        )
        self.runs = list(found.runs)
        return found

    def kernels(self) -> None:
        """Kernels as they were timed, nothing fitted to serving runs; and the profiles as they are."""
        for name, pins in (
            ("kernels as timed, nothing fitted", KERNELS),
            ("tables before any fit to all runs", TABLES),
            ("profiles as they are", ()),
        ):
            table = reconcile(self.measured, library=load_library(pins)).table
            for metric in ("tpot", "throughput", "ttft", "ttft_p50"):
                line(f"{name}: {metric}", np.log(table[f"{metric}_ratio"].to_numpy(float)))

    def ablation(self) -> None:
        """Every part switched off by its cells, nothing fitted again."""
        for name, changes in PARTS.items():
            line(
                f"TPOT, {name}",
                np.log(reconcile(self.measured, changes=changes).table["tpot_ratio"].to_numpy(float)),
            )

    def tpot(self) -> None:
        """One set of factors for all runs, judged on configurations, models and systems it was not fitted to."""
        problem = self.problem(load_library(TABLES), GLOBAL, ["tpot_s"])
        for kept, spread in SPREADS.items():
            self.aside["tpot", kept] = cross_validate(problem, kept, spread)[:, 0]
            line(f"TPOT, one set of factors, by {kept} not fitted", self.aside["tpot", kept])

    def shared(self) -> None:
        """The same from kernels as they were timed, with terms only that every model, system and framework sees."""
        problem = self.problem(load_library(KERNELS), SHARED, ["tpot_s"])
        for kept in ("model", "system"):
            line(
                f"TPOT, kernels and shared terms only, by {kept} not fitted",
                cross_validate(problem, kept, 0.3)[:, 0],
            )

    def ttft(self) -> None:
        """Factors of the first token by accelerator and framework, pulled towards those for all; and those for all alone."""
        library = without_pairs(load_library())
        common = [f"{name}@global" for name in FIRST if name != "cold_start"]
        for words, choices in (
            ("one set", common),
            ("by accelerator and framework", common + [f"{name}@pair" for name in FIRST]),
        ):
            problem = self.problem(library, choices, ["ttft_s", "ttft_p50_s"])
            for kept in SPREADS:
                found = cross_validate(problem, kept, 0.6, "cauchy")
                self.aside["ttft", kept] = found[:, 0]
                line(f"mean TTFT, {words}, by {kept} not fitted", found[:, 0])
                line(f"median TTFT, {words}, by {kept} not fitted", found[:, 1])

    def ranges(self) -> None:
        """Percentiles of measured ÷ predicted of what was kept aside, each group with the same weight; and throughput from TTFT and TPOT."""
        if not self.aside:
            self.tpot()
            self.ttft()
        rest = np.array([float(run.output_tokens or 1) - 1 for run in self.runs])
        first, token = (
            np.array([getattr(run.metrics, name) or np.nan for run in self.runs])
            for name in ("ttft_s", "tpot_s")
        )
        for kept in SPREADS:
            slower = first * np.exp(self.aside["ttft", kept]) + rest * token * np.exp(
                self.aside["tpot", kept]
            )
            self.aside["throughput", kept] = np.log((first + rest * token) / slower)
            line(f"throughput, by {kept} not fitted", self.aside["throughput", kept])
        for (metric, kept), ratios in self.aside.items():
            if kept == "config":
                continue
            groups = np.array(
                [str(getattr(run, {"system": "accelerator"}.get(kept, kept))) for run in self.runs]
            )
            weights = np.array([1 / (groups == group).sum() for group in groups])
            order = np.argsort(-ratios)
            places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
            low, middle, high = np.exp(np.interp([0.1, 0.5, 0.9], places, -ratios[order]))
            inside = (np.exp(-ratios) >= low) & (np.exp(-ratios) <= high)
            shares = [float(inside[groups == group].mean()) for group in dict.fromkeys(groups)]
            print(
                f"{metric:10s} {kept:9s} p10 {low:.3f}  p50 {middle:.3f}  p90 {high:.3f}  inside {100 * np.mean(shares):.0f} % of the runs of a group, "
                f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"
            )


def main(arguments: list[str]) -> None:
    """Print the parts asked for."""
    bench = Bench(Path(arguments[0]))
    for part in arguments[1:] or ("kernels", "ablation", "tpot", "shared", "ttft", "ranges"):
        getattr(bench, part)()


if __name__ == "__main__":
    main(sys.argv[1:])
