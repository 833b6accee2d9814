"""What the command line shows of an estimate: the results of all columns side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mantile.cli.output.tables import new_table, number, open_console, print_checks
from mantile.equations import metrics
from mantile.library.model_names import taken_for_granted

if TYPE_CHECKING:
    from mantile.estimate.estimate import Estimate

_Row = tuple[str, str, Callable[[Any], str]]  # label, path in the results, and how a value is written


def _of(metric: metrics.Metric) -> _Row:
    return metric.label, metric.key, metric.text


def _percent(value: float) -> str:
    return f"{number(100 * value, 3)} %"


_ROWS: tuple[_Row, ...] = (
    ("Accelerator", "accelerator", number),
    ("Accelerators", metrics.ACCELERATORS.key, number),
    ("Framework", "framework", number),
    ("Weights", "weights_dtype", number),
    ("KV cache", "kv_dtype", number),
    ("System", "system", number),
    ("TP", "tp", number),
    ("PP", "pp", number),
    ("DP", "dp", number),
    ("EP", "ep", number),
    ("Attention DP", "attention_dp", number),
    ("Input tokens", "input_tokens", number),
    ("Output tokens", "output_tokens", number),
    ("Concurrency", "concurrency", number),
    ("Feasibility", "verdict", number),
    _of(metrics.MEMORY_PER_ACCELERATOR),
    _of(metrics.MEMORY_CAPACITY),
    _of(metrics.KV_CAPACITY_SEQUENCES),
    ("Request rate, requests/s", "request_rate", number),
    ("Sessions", "sessions", number),
    _of(metrics.LOAD),
    _of(metrics.PREFIX_HITS),
    _of(metrics.STEP_TOKENS),
    _of(metrics.DRAFT_GAIN),
    _of(metrics.BREAK_EVEN_BATCH),
    ("Load is", "load_state", number),
    ("Load lasts, s", "load_duration", number),
    _of(metrics.TTFT),
    ("TTFT, 80 % from", "range_80.ttft.p10", metrics.TTFT.text),
    ("to", "range_80.ttft.p90", metrics.TTFT.text),
    _of(metrics.TTFT_P50),
    _of(metrics.TTFT_P90),
    _of(metrics.TTFT_P95),
    _of(metrics.TTFT_P99),
    _of(metrics.TPOT),
    ("TPOT, 80 % from", "range_80.tpot.p10", metrics.TPOT.text),
    ("to", "range_80.tpot.p90", metrics.TPOT.text),
    _of(metrics.ITL_P50),
    _of(metrics.ITL_P90),
    _of(metrics.ITL_P95),
    _of(metrics.ITL_P99),
    _of(metrics.E2E),
    _of(metrics.E2E_P90),
    _of(metrics.E2E_P99),
    _of(metrics.GOODPUT_SHARE),
    _of(metrics.GOODPUT),
    _of(metrics.INTERACTIVITY),
    _of(metrics.OUTPUT_TOKENS_PER_S),
    _of(metrics.OUTPUT_TOKENS_PER_S_PER_ACCELERATOR),
    ("Prefill is bound by", "bottleneck.prefill", number),
    ("Decode is bound by", "bottleneck.decode", number),
    _of(metrics.PREFILL_MFU),
    _of(metrics.DECODE_MBU),
    _of(metrics.POWER),
    _of(metrics.USD_PER_HOUR),
    _of(metrics.USD_PER_MILLION_OUTPUT_TOKENS),
    ("Utilisation", "utilisation", _percent),
    ("Efficiency profile", "efficiency_profile", number),
    ("Evidence", "evidence", number),
)


def print_estimate(estimate: Estimate) -> None:
    """The results of all columns side by side, then the checks that do not hold."""
    results = [estimate.results(column) for column in range(len(estimate.columns))]
    console = open_console()
    console.print(Text(estimate.title, style="bold"))
    granted = taken_for_granted(estimate.model.source)
    if granted:
        console.print(Text(f"{estimate.model.name}: {granted}", style="dim"))
    table = new_table("", *(result["name"] for result in results), right=range(1, len(results) + 1))
    for label, path, written in _ROWS:
        if path.partition(".")[0] in results[0]:
            table.add_row(label, *(written(_at(result, path)) for result in results))
    console.print(table)
    _print_classes(console, results)
    _print_nearest(console, results)
    _print_profiles(console, estimate)
    print_checks(console, results)


def _print_classes(console: Console, results: list[dict[str, Any]]) -> None:
    """What requests of each class see, where a scenario has classes."""
    for result in results:
        if "classes" not in result:
            continue
        heads: tuple[str, ...] = ("share", "TTFT", "p50", "p95", "End to end", "p50", "p95", "within limits")
        if "sessions" in result["classes"][0]:
            heads = (*heads, "sessions")
        table = new_table("Class", *heads, right=range(1, len(heads) + 1))
        for one in result["classes"]:
            times = [
                metric.text(one[key])
                for metric, key in (
                    (metrics.TTFT, "ttft_s"),
                    (metrics.TTFT, "ttft_p50_s"),
                    (metrics.TTFT, "ttft_p95_s"),
                    (metrics.E2E, "e2e_s"),
                    (metrics.E2E, "e2e_p50_s"),
                    (metrics.E2E, "e2e_p95_s"),
                )
            ]
            shares = [metrics.GOODPUT_SHARE.text(one[key]) for key in ("share", "goodput_share")]
            told = [number(one["sessions"])] if "sessions" in one else []
            table.add_row(one["name"], shares[0], *times, shares[1], *told)
        if len(results) > 1:
            console.print(Text(result["name"], style="bold"))
        console.print(table)


def _print_nearest(console: Console, results: list[dict[str, Any]]) -> None:
    """The measured run that is nearest to each scenario, in the words of the workbook."""
    for result in results:
        run = result["nearest_run"]
        if run is None:
            continue
        if len(results) > 1:
            console.print(Text(result["name"], style="bold"))
        console.print(Text(run["words"]))
        console.print(Text(f"  Source · {run['source']}"))


def _print_profiles(console: Console, estimate: Estimate) -> None:
    """Which factors of the profiles that were given are used, and what stands for the others."""
    for use in estimate.profile_usage():
        console.print(f"{use.pin}: in use: {', '.join(use.used) or 'nothing'}")
        others = ", ".join(f"{factor} ({by} is used)" for factor, by in use.not_used.items())
        if others:
            console.print(f"  not in use: {others}")
        if use.not_for:
            console.print(f"  not for {', '.join(use.not_for)}")


def _at(result: dict[str, Any], path: str) -> Any:
    """The entry of nested results that keys joined by dots lead to."""
    for key in path.split("."):
        result = result[key]
    return result


def print_built(estimate: Estimate, path: Path) -> None:
    """A short summary of a workbook just written."""
    results = [estimate.results(column) for column in range(len(estimate.columns))]
    console = open_console()
    console.print(f"{path}: {estimate.title}")
    for result in results:
        ttft, tpot, rate, used, capacity = (
            metric.text(result[metric.key])
            for metric in (
                metrics.TTFT,
                metrics.TPOT,
                metrics.OUTPUT_TOKENS_PER_S,
                metrics.MEMORY_PER_ACCELERATOR,
                metrics.MEMORY_CAPACITY,
            )
        )
        fits = "fits" if result["fits"] else "does not fit"
        console.print(
            f"  {result['name']}: TTFT {ttft}, TPOT {tpot}, {rate}, {fits} ({used} of {capacity} per "
            "accelerator)"
        )
    _print_profiles(console, estimate)
    print_checks(console, results)
