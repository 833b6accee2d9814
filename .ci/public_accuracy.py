"""How far off predictions are on a table of public serving runs: fitted, not fitted, left out of a fit; and
what each part is worth.

    python .ci/public_accuracy.py FILE.csv            all of it, about a quarter of an hour
    python .ci/public_accuracy.py FILE.csv ablation   one part: kernels, ablation, tpot, shared, ttft, ranges
    python .ci/public_accuracy.py FILE.csv page       generated tables of workbooks/accuracy.md and README.md
    python .ci/public_accuracy.py FILE.csv OTHER.csv ranges   also runs of makers that no fit has seen
    python .ci/public_accuracy.py OTHER.csv tables    tables that no fit has seen, each as it can be judged
    python .ci/public_accuracy.py FILE.csv evidence   lines of profiles/evidence.yaml; of single users too

A fit starts from the tables before any fit to all of these runs (profiles @tables), or from kernels as they
were timed (@kernels).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from mantile.ir.build import build_ir
from mantile.library.efficiency import EfficiencyProfile, Factor
from mantile.library.files import replacing
from mantile.library.models import load_model
from mantile.library.profiles import Library, load_library
from mantile.measured.accuracy import accuracy_page, marked_lines, with_marked_lines
from mantile.measured.cross_validation import LeftOut, cross_validate
from mantile.measured.fit import FitProblem
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.measured.metrics import errors
from mantile.measured.profile_versions import FittedFactor
from mantile.measured.reconcile import reconcile
from mantile.measured.runs import Measurements, Run
from mantile.measured.select import mode_of

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
FIRST = ("first_token", "queueing", "step_lag", "cold_start", "expert_cold_start", "eager_launch")
SPREADS: dict[LeftOut, float] = {"config": 0.1, "model": 0.03, "system": 0.1, "framework": 0.03}
"""Of a fit by what is left out: the less that is like the other runs, the less the fit should change.
What ran on a chip that is left out ran on other chips too; a model or framework that is left out, nowhere."""

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
"""Parts of the model, and the figures that switch them off."""

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "workbooks" / "accuracy.md"
README = ROOT / "README.md"
SHOWN = ("mape", "median", "p90", "bias", "symmetric")


FIRST_TOKEN = tuple(
    f"efficiency/{name}" for name in ("global@3", "global--vllm@1", "global--sglang@1", "global--trtllm@1")
)
"""Versions before factors of the first token were fitted by framework."""


STARTS = {"eager_launch": 50.0, "expert_cold_start": 1000.0}
"""Figures from which a fit begins of factors that those versions do not have yet."""


def _with_starts(profile: EfficiencyProfile) -> EfficiencyProfile:
    """A profile of serving engines with figures to begin from."""
    if profile.id not in ("global", "global--vllm", "global--sglang", "global--trtllm"):
        return profile
    starts = [
        Factor(factor=name, value=value, status="assumed", date=date(2026, 11, 22), source="start of the fit")
        for name, value in STARTS.items()
    ]
    return profile.model_copy(update={"factors": (*profile.factors, *starts)})


def print_errors(name: str, log_ratios: Any) -> None:
    """One line: MAPE, median, p90, bias and symmetric error in percent."""
    figures = errors(np.exp(log_ratios))
    percents = "  ".join(f"{figure} {100 * figures[figure]:5.1f}" for figure in SHOWN)
    print(f"{name:64s} {figures['n']:5.0f}  {percents}", flush=True)


class Bench:
    """The aggregated runs of a table, and log ratios of runs left out of a fit, by metric and what was left
    out."""

    def __init__(self, file: Path, never_fitted: Sequence[Path] = ()) -> None:
        self.everything = load_measurements(file)
        self.never_fitted = [run for other in never_fitted for run in load_measurements(other).runs]
        aggregated = tuple(run for run in self.everything.runs if mode_of(run) == "aggregated")
        self.measured, self.runs = Measurements(aggregated), list(aggregated)
        self.left_out: dict[tuple[str, LeftOut], Any] = {}

    def problem(self, library: Library, factors: Iterable[str], metrics: Sequence[str]) -> FitProblem:
        """A fit of factors to all runs, in the order of `runs`."""
        matched = match_runs(self.runs, library)
        problem = FitProblem(matched, [FittedFactor.parse(name) for name in factors], metrics)
        self.runs = list(problem.runs)
        return problem

    def page(self) -> None:
        """Write the generated tables of workbooks/accuracy.md, and its five rows that README.md repeats."""
        selection = load_measurements(PAGE.with_suffix(".yaml"))
        page = accuracy_page(
            PAGE.read_text(encoding="utf-8"), reconcile(selection), reconcile(self.everything)
        )
        readme = with_marked_lines(README.read_text(encoding="utf-8"), "short", marked_lines(page, "short"))
        for path, text in ((PAGE, page), (README, readme)):
            with replacing(path) as temporary:
                temporary.write_text(text, encoding="utf-8")

    def kernels(self) -> None:
        """Kernels as they were timed, nothing fitted to serving runs; and the profiles as they are."""
        for name, pins in (
            ("kernels as timed, nothing fitted", KERNELS),
            ("tables before any fit to all runs", TABLES),
            ("profiles as they are", ()),
        ):
            table = reconcile(self.measured, library=load_library(pins)).table
            for metric in ("tpot", "throughput", "ttft", "ttft_p50"):
                print_errors(f"{name}: {metric}", np.log(table[f"{metric}_ratio"].to_numpy(float)))

    def ablation(self) -> None:
        """Every part switched off by its figures, nothing fitted again."""
        for name, changes in PARTS.items():
            table = reconcile(self.measured, changes=changes).table
            print_errors(f"TPOT, {name}", np.log(table["tpot_ratio"].to_numpy(float)))

    def tpot(self) -> None:
        """One set of factors for all runs, judged on configurations, models and systems it was not fitted
        to."""
        problem = self.problem(load_library(TABLES), GLOBAL, ["tpot_s"])
        for by, spread in SPREADS.items():
            self.left_out["tpot", by] = cross_validate(problem, by, spread)[:, 0]
            print_errors(f"TPOT, one set of factors, {by} left out", self.left_out["tpot", by])

    def shared(self) -> None:
        """The same from kernels as they were timed, with terms only that every model, system and framework
        sees."""
        problem = self.problem(load_library(KERNELS), SHARED, ["tpot_s"])
        for by in ("model", "system"):
            ratios = cross_validate(problem, by, 0.3)[:, 0]
            print_errors(f"TPOT, kernels and shared terms only, {by} left out", ratios)

    def ttft(self) -> None:
        """Factors of the first token by framework, pulled towards those for all; and those for all alone."""
        library = load_library(FIRST_TOKEN)
        later = [_with_starts(profile) for profile in library.efficiency if profile.id != "global--atom"]
        library = library.model_copy(update={"efficiency": tuple(later)})
        common = [f"{name}@global" for name in FIRST if name != "cold_start"]
        for name, factors in (
            ("one set", common),
            ("by framework", common + [f"{name}@framework" for name in FIRST]),
        ):
            problem = self.problem(library, factors, ["ttft_s", "ttft_p50_s"])
            for by, spread in SPREADS.items():
                ratios = cross_validate(problem, by, spread, "cauchy")
                self.left_out["ttft", by] = ratios[:, 0]
                print_errors(f"mean TTFT, {name}, {by} left out", ratios[:, 0])
                print_errors(f"median TTFT, {name}, {by} left out", ratios[:, 1])

    def ranges(self) -> None:
        """Percentiles of measured ÷ predicted of what was left out, each group with the same weight;
        throughput included."""
        if not self.left_out:
            self.tpot()
            self.ttft()
        for by in SPREADS:
            self.left_out["throughput", by] = self._throughput(by)
            print_errors(f"throughput, {by} left out", self.left_out["throughput", by])
        for (metric, by), log_ratios in self.left_out.items():
            if by != "config":
                field = "accelerator" if by == "system" else by
                groups = np.array([str(getattr(run, field)) for run in self.runs])
                print_range(f"{metric:10s} {by:9s}", groups, log_ratios)
        if self.never_fitted:
            self._unseen()

    def _unseen(self) -> None:
        """Ranges where no runs of a framework on chips of a maker were fitted: frameworks kept aside, and
        makers of which there are only runs that no fit has seen."""
        library = load_library()
        vendors = {chip.id: chip.vendor for chip in library.accelerators}
        seen = {(entry.framework, entry.name) for entry in library.evidence.seen if entry.kind == "vendor"}
        table = reconcile(Measurements(tuple(self.never_fitted))).table
        fitted = [
            (framework, vendors[chip]) in seen
            for framework, chip in zip(table["framework"], table["accelerator"], strict=True)
        ]
        table = table[np.logical_not(fitted)]
        for metric in ("tpot", "ttft", "throughput"):
            others = table[table[f"{metric}_ratio"].notna()]
            groups = np.array([str(run.framework) for run in self.runs] + list(others["accelerator"]))
            print_range(
                f"{metric:10s} unseen   ",
                groups,
                np.concatenate(
                    [self.left_out[metric, "framework"], np.log(others[f"{metric}_ratio"].to_numpy(float))]
                ),
            )

    def tables(self) -> None:
        """Errors of each table, and of the parts by which a table can be judged: the last date of each
        configuration, lengths that are fixed, steady states."""
        table = reconcile(self.everything).table
        for source, runs in table.groupby("source", sort=False):
            for name, part in parts_of_table(str(source), runs).items():
                for metric in ("tpot", "throughput", "ttft"):
                    if part[f"{metric}_ratio"].notna().any():
                        print_errors(
                            f"{name}: {metric}", np.log(part[f"{metric}_ratio"].dropna().to_numpy(float))
                        )

    def evidence(self) -> None:
        """Lines of profiles/evidence.yaml: of which chips, models and formats there are runs."""
        library = load_library()
        vendors = {chip.id: chip.vendor for chip in library.accelerators}
        counts: Counter[tuple[str, str, str]] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for matched in match_runs(self.runs, library).runs:
            values, engine = matched.column.values, evidence_engine(matched.run)
            if engine is None:
                continue
            pairs[values["accelerator"], engine] += 1
            for kind, name in (
                ("vendor", vendors[values["accelerator"]]),
                ("family", build_ir(load_model(matched.run.model)).family),
                ("format", values["weights_dtype"]),
            ):
                counts[kind, engine, name] += 1
        for (chip, framework), runs in sorted(pairs.items()):
            print(f"  - {{accelerator: {chip}, framework: {framework}, runs: {runs}}}")
        for (kind, framework, name), runs in sorted(counts.items()):
            print(f"  - {{kind: {kind}, framework: {framework}, name: {name}, runs: {runs}}}")

    def _throughput(self, by: LeftOut) -> Any:
        """Log ratios of throughput that follow from those of TTFT and TPOT: requests in flight over their
        time."""
        rest = np.array([float(run.output_tokens or 1) - 1 for run in self.runs])
        ttft, tpot = (
            np.array([getattr(run.metrics, name) or np.nan for run in self.runs])
            for name in ("ttft_s", "tpot_s")
        )
        predicted = ttft * np.exp(self.left_out["ttft", by]) + rest * tpot * np.exp(self.left_out["tpot", by])
        return np.log((ttft + rest * tpot) / predicted)


def evidence_engine(run: Run) -> str | None:
    """The engine that a run is evidence of: llama.cpp of early 2024 is llama.cpp. None for a run of a single
    user with an engine of which there are few, and for one that timed its prompt alone."""
    if run.metrics.tpot_s is None:
        return None
    engine = str(run.framework).removesuffix("-2024")
    return engine if run.metrics.ttft_s is not None or engine == "llama.cpp" else None


def print_range(name: str, groups: Any, log_ratios: Any) -> None:
    """Weighted percentiles of measured ÷ predicted, and how many runs of a group lie between them."""
    weights = np.array([1 / (groups == group).sum() for group in groups])
    order = np.argsort(-log_ratios)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    low, middle, high = np.exp(np.interp([0.1, 0.5, 0.9], places, -log_ratios[order]))
    inside = (np.exp(-log_ratios) >= low) & (np.exp(-log_ratios) <= high)
    shares = [float(inside[groups == group].mean()) for group in dict.fromkeys(groups)]
    print(
        f"{name} p10 {low:.3f}  p50 {middle:.3f}  p90 {high:.3f}  "
        f"inside {100 * np.mean(shares):.0f} % of the runs of a group, "
        f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %"
    )


CASE = ["model", "accelerator", "framework", "precision", "parallelism", "concurrency", "lengths"]
BURST = 10  # output tokens up to which a burst of requests is about the server's front end


def parts_of_table(source: str, runs: Any) -> dict[str, Any]:
    """A table of runs, and the parts of it by which it can be judged, by name."""
    parts = {source: runs}
    if source.startswith("InferenceX via"):
        last = runs.sort_values("date", kind="stable").groupby(CASE, sort=False).tail(1)
        parts[f"{source}, last date of a configuration"] = last
    if source.startswith("MLPerf"):
        parts[f"{source}, without deepseek-r1"] = runs[runs["model"] != "deepseek-r1"]
    if source.startswith("GPUStack"):  # of its lengths 128, 2,000, 4,000 and 32,000 in are drawn at random
        fixed = runs[(runs["input_tokens"] < 150) | (runs["input_tokens"] > 1900)]
        parts[f"{source}, fixed lengths"] = fixed
        parts[f"{source}, fixed lengths, no burst"] = fixed[fixed["output_tokens"] > BURST]
    return parts


ALL_PARTS = ("kernels", "ablation", "tpot", "shared", "ttft", "ranges")


def main(arguments: list[str]) -> None:
    """Print the parts asked for."""
    files = [Path(name) for name in arguments if name.endswith(".csv")]
    bench = Bench(files[0], files[1:])
    for part in [name for name in arguments if not name.endswith(".csv")] or ALL_PARTS:
        getattr(bench, part)()


if __name__ == "__main__":
    main(sys.argv[1:])
