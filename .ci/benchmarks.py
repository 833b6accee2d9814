"""How fast Mantile is on this machine: `python .ci/benchmarks.py`. A script, not a test; it asserts nothing.

Every line is the median of several runs, with the fastest and the slowest beside it. Runs that are compared
with each other take turns, so that a machine that gets busy slows both. The first run of each is discarded.

    --cases 200000      cases of the sweep
    --runs 5            runs of each line; the stock model of `formulas` runs at most three times
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sweep import grid
from mantile.graph.evaluate import Program
from mantile.library.scenario import parse_scenario
from mantile.verification.engines import with_formulas
from mantile.verification.verify import verify
from mantile.workbook.read import read_cells

STANDARD: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
GRID: dict[str, Any] = {
    "accelerator": ["all"],
    "tp": [1, 2, 4, 8],
    "weights_dtype": ["bf16", "fp8"],
    "input_tokens": range(512, 25_601, 512),
    "concurrency": range(1, 51),
}
FLAGS = [
    part
    for name, value in STANDARD.items()
    if name != "model"
    for part in (f"--{name.replace('_', '-')}", str(value))
]
mantile = [sys.executable, "-m", "mantile"]


def timed(*actions: Callable[[], object], runs: int) -> list[list[float]]:
    """Seconds of every run of every action; the actions take turns."""
    seconds: list[list[float]] = [[] for _ in actions]
    for number in range(runs + 1):
        for action, kept in zip(actions, seconds, strict=True):
            start = time.perf_counter()
            action()
            if number:
                kept.append(time.perf_counter() - start)
    return seconds


def process(*arguments: str) -> Callable[[], object]:
    """A command as its user runs it, interpreter start included."""
    return lambda: subprocess.run([*mantile, *arguments], check=True, capture_output=True)


def cases(made: Estimate, count: int) -> dict[str, np.ndarray]:
    """Random inputs of the sweep; the seed is fixed."""
    random = np.random.default_rng(0)
    chips = np.array([chip.id for chip in made.library.accelerators])
    return {
        "inputs.accelerator": random.choice(chips, count),
        "inputs.tp": random.choice([1, 2, 4, 8], count),
        "inputs.input_tokens": random.integers(128, 32_768, count),
        "inputs.output_tokens": random.integers(16, 2_048, count),
        "inputs.concurrency": random.integers(1, 512, count),
    }


def line(what: str, median: str, spread: str) -> None:
    """A row of the table."""
    print(f"{what:<62} {median:>18}   {spread}")


def spread(seconds: list[float], number: Callable[[float], str]) -> str:
    """Fastest and slowest run."""
    return f"{number(min(seconds))} to {number(max(seconds))}, {len(seconds)} runs"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.0f} ms"


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--cases", type=int, default=200_000)
    options.add_argument("--runs", type=int, default=5)
    given = options.parse_args()
    slow = min(given.runs, 3)
    made = estimate(parse_scenario(STANDARD, "benchmark"))
    quantities = made.equations.quantities()

    print(
        f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} at the start"
    )
    print(f"llama-3.3-70b: {len(quantities):,} worked-out quantities\n")
    line("", "median", "fastest to slowest")

    program = Program(quantities)
    varied = cases(made, given.cases)
    served = made.equations.serving
    keep = (served.ttft, served.tpot, made.equations.rows["serving.output_tokens_per_s"])
    [seconds] = timed(lambda: program.sweep(varied, keep), runs=given.runs)
    line(
        f"all quantities, sweep of {given.cases:,} random cases",
        f"{given.cases / statistics.median(seconds):,.0f} cases/s",
        spread(seconds, lambda value: f"{given.cases / value:,.0f}"),
    )
    [single] = timed(lambda: program.run(made.inputs(0)), runs=given.runs)
    line(
        "all quantities, one case",
        f"{statistics.median(single) * 1e3:.2f} ms",
        spread(single, lambda value: f"{value * 1e3:.2f} ms"),
    )
    asked = parse_scenario(STANDARD, "benchmark")
    points = len(grid(asked, GRID))
    [gridded] = timed(lambda: [len(table) for table in grid(asked, GRID).tables()], runs=given.runs)
    line(
        f"all results, grid of {points:,} points",
        f"{points / statistics.median(gridded):,.0f} points/s",
        spread(gridded, lambda value: f"{points / value:,.0f}"),
    )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.xlsx"
        helped, built = timed(
            process("--help"), process("build", STANDARD["model"], *FLAGS, "-o", str(path)), runs=given.runs
        )
        formulas = verify(path).to_dict()["formulas"]
        cells = read_cells(path)
        sheets = tuple(name for name in cells.contents if not name.startswith("_"))
        [verified] = timed(process("verify", str(path)), runs=slow)
        compiled, stock = timed(
            lambda: with_formulas(cells, sheets), lambda: with_formulas(cells, sheets, fast=False), runs=slow
        )

    line("mantile --help, whole process", _ms(statistics.median(helped)), spread(helped, _ms))
    line("mantile build, whole process", _s(statistics.median(built)), spread(built, _s))
    line(
        f"mantile verify, whole process, {formulas:,} formula cells",
        _s(statistics.median(verified)),
        spread(verified, _s),
    )
    ratios = [slower / faster for faster, slower in zip(compiled, stock, strict=True)]
    line("re-evaluation only, patterns compiled once", _s(statistics.median(compiled)), spread(compiled, _s))
    line("re-evaluation only, stock model of formulas", _s(statistics.median(stock)), spread(stock, _s))
    line(
        "stock model against compiled patterns",
        f"{statistics.median(ratios):.1f} times",
        spread(ratios, lambda value: f"{value:.1f}"),
    )


if __name__ == "__main__":
    main()
