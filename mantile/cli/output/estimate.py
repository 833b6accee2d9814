"""What the command line shows of an estimate: the results of all columns side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mantile.cli.output import look
from mantile.cli.output.capacity import demand_lines
from mantile.cli.output.tables import (
    FittedTable,
    hung,
    new_table,
    number,
    open_console,
    print_checks,
    scaled,
    told_errors,
)
from mantile.equations import metrics
from mantile.equations.checks import WITH_OFFLOAD
from mantile.equations.correction import LABELS, OF_MEMORY
from mantile.estimates.results import is_possible, of_requests
from mantile.library.model_names import taken_for_granted
from mantile.library.runs import NOTHING_NEAR

if TYPE_CHECKING:
    from mantile.estimates.estimate import Estimate

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
    ("Interactivity, 80 % from", "range_80.interactivity.p10", metrics.INTERACTIVITY.text),
    ("to", "range_80.interactivity.p90", metrics.INTERACTIVITY.text),
    _of(metrics.OUTPUT_TOKENS_PER_S),
    _of(metrics.OUTPUT_TOKENS_PER_S_PER_ACCELERATOR),
    _of(metrics.PREFILL_TOKENS_PER_S),
    ("Prefill, 80 % from", "range_80.prefill_rate.p10", metrics.PREFILL_TOKENS_PER_S.text),
    ("to", "range_80.prefill_rate.p90", metrics.PREFILL_TOKENS_PER_S.text),
    ("Prefill is bound by", "bottleneck.prefill", number),
    ("Decode is bound by", "bottleneck.decode", number),
    _of(metrics.PREFILL_MFU),
    _of(metrics.DECODE_MBU),
    _of(metrics.POWER),
    ("Power, 80 % from", "range_80.power.p10", metrics.POWER.text),
    ("to", "range_80.power.p90", metrics.POWER.text),
    ("Range of power", "power_range_basis", number),
    _of(metrics.USD_PER_HOUR),
    _of(metrics.USD_PER_MILLION_OUTPUT_TOKENS),
    (
        "Cost, 80 % from",
        "range_80.usd_per_million_output_tokens.p10",
        metrics.USD_PER_MILLION_OUTPUT_TOKENS.text,
    ),
    ("to", "range_80.usd_per_million_output_tokens.p90", metrics.USD_PER_MILLION_OUTPUT_TOKENS.text),
    ("Utilisation", "utilisation", _percent),
    ("Efficiency profile", "efficiency_profile", number),
    ("Evidence", "evidence", number),
)


_SIDE_BY_SIDE = (
    "Accelerators",
    "Feasibility",
    metrics.TTFT.label,
    metrics.TTFT_P95.label,
    metrics.TPOT.label,
    metrics.INTERACTIVITY.label,
    metrics.OUTPUT_TOKENS_PER_S.label,
    metrics.MEMORY_PER_ACCELERATOR.label,
    metrics.USD_PER_HOUR.label,
    metrics.USD_PER_MILLION_OUTPUT_TOKENS.label,
)
"""Rows that are shown of several columns where not all are asked for."""


def print_estimate(estimate: Estimate, everything: bool = False) -> None:
    """A verdict of five lines, of several columns a table of them, then the checks that do not hold.

    Args:
        everything: with all figures, classes, the nearest run and its source.
    """
    results = [estimate.results(column) for column in range(len(estimate.columns))]
    console = open_console()
    console.print(Text(estimate.title, style="bold"))
    granted = taken_for_granted(estimate.model.source)
    if granted:
        console.print(Text(f"{estimate.model.name}: {granted}", style="dim"))
    for line in verdict(estimate, results[0]):
        console.print(line)
    rows = [row for row in _ROWS if row[1].partition(".")[0] in results[0]]
    if not everything:
        rows = [row for row in rows if row[0] in _SIDE_BY_SIDE] if len(results) > 1 else []
    if rows or look.now().form == "csv":
        every = rows or [row for row in _ROWS if row[1].partition(".")[0] in results[0]]
        console.print(_beside(results, every, units_apart=len(results) > 1))
    _print_classes(console, results)
    if everything:
        _print_nearest(console, results)
    _print_profiles(console, estimate)
    print_checks(console, results if len(results) > 1 else [_not_said(results[0])])
    if not everything and look.now().form == "table" and not look.now().quiet:
        console.print(Text("--all shows every figure, with the nearest measured run", style="dim"))


def _what_fits(estimate: Estimate) -> str:
    """What has room instead, with how fast it is: --weights-dtype q8_0 (58 tokens/s/user) or --tp 2."""
    from mantile.search.room import what_fits

    return " or ".join(
        f"--{room.field.replace('_', '-')} {room.value} ({number(room.speed, 3)} tokens/s/user)"
        for room in what_fits(estimate)
    )


def _beside(results: list[dict[str, Any]], rows: list[_Row], units_apart: bool) -> FittedTable:
    """Rows of all columns side by side; units stand with the labels where there is little room."""
    table = new_table(
        "", *(result["name"] for result in results), right=range(1, len(results) + 1), keep=(0, 1)
    )
    by_key = {metric.key: metric for metric in metrics.METRICS}
    for label, path, written in rows:
        values = [_at(result, path) for result in results]
        metric = by_key.get(path) if units_apart else None
        if metric is None or metric.written_unit == "1":
            table.add_row(label, *map(written, values))
        else:
            cells = (look.NOT_KNOWN if value is None else number(metric.shown(value), 4) for value in values)
            table.add_row(metric.head, *cells)
    return table


def verdict(estimate: Estimate, result: dict[str, Any]) -> list[Text]:
    """What a reader asks first: does it fit, how fast, what it costs, what limits it, how sure."""
    if told_errors(result) and not is_possible(result["feasibility"]):
        rest = len(told_errors(result)) - 1
        more = f" (and {rest} more below)" if rest else ""
        why = hung(
            Text(f"  does not work ({told_errors(result)[0]['code']}): ", style="bold red"),
            f"{_fits(result)}{more}",
        )
        ways = _what_fits(estimate) if told_errors(result)[0]["code"] == "MEMORY_EXCEEDED" else ""
        return [why, hung(Text("  would fit  ", style="bold"), ways)] if ways else [why]
    lines = [("fits    ", _fits(result))]
    for error in told_errors(result):
        lines.append(("but     ", str(error["message"])))
    speed = f"TTFT {scaled(result['ttft_s'], 's')} mean, {scaled(result[metrics.TTFT_P95.key], 's')} p95"
    tpot = result["tpot_s"]
    if tpot is not None:
        speed += (
            f" · TPOT {scaled(tpot, 's')}, {number(result['interactivity_tokens_per_s'], 3)} tokens/s/user"
        )
    rate, per = result["output_tokens_per_s"], result["output_tokens_per_s_per_accelerator"]
    lines.append(("speed   ", speed))
    money = _at(result, metrics.USD_PER_MILLION_OUTPUT_TOKENS.key)
    hour = result[metrics.USD_PER_HOUR.key]
    price = (
        "price not known"
        if money is None or hour is None
        else f"{number(money, 3)} USD per million output tokens, {number(hour, 4)} USD/h "
        f"({result['price_basis']})"
    )
    lines.append(
        ("yield   ", f"{number(rate, 4)} output tokens/s, {number(per, 3)} per accelerator · {price}")
    )
    if "layers_in_words" in result:
        lines.append(("layers  ", result["layers_in_words"]))
    mfu, mbu = result["mfu"]["prefill"], result["mbu"]["decode"]
    limits = f"prefill by {result['bottleneck']['prefill']} (MFU {_share(mfu)})"
    if tpot is not None:
        limits += f", decode by {result['bottleneck']['decode']} (MBU {_share(mbu)})"
    lines.append(("limited ", limits))
    band = result["range_80"]
    sure = [
        f"{name} {scaled(ends['p10'], 's')} to {scaled(ends['p90'], 's')}"
        for name, ends in (("TTFT", band["ttft"]), ("TPOT", band["tpot"]))
        if ends["p10"] is not None
    ]
    lines.append(
        (
            "sure    ",
            f"80 % of runs: {', '.join(sure)}; by {result['evidence']}" if sure else result["evidence"],
        )
    )
    day = result.get("engine_day")
    if day is not None:
        lines.append(("engine  ", _engine_day(day)))
    for name, one in result.get("correction", {}).items():
        if isinstance(one, dict) and one["p50"] is not None:
            unit = OF_MEMORY.get(name, "s")
            behind = f"{one['runs']} runs, newest {one['newest']}" if one["runs"] else "no run of the kind"
            if not one["runs"] and one["multiplier"] != 1:
                behind += ", but of others"
            lines.append(
                (
                    "corrected ",
                    f"{LABELS[name]} {scaled(one['physics'], unit)} × {number(one['multiplier'], 3)} = "
                    f"{scaled(one['p50'], unit)}, 80 % from {scaled(one['p10'], unit)} to "
                    f"{scaled(one['p90'], unit)}; {behind}",
                )
            )
    if "capacity" in result:
        lines += demand_lines(estimate, result["capacity"])
    return [_hung(head, text) for head, text in lines]


def _engine_day(day: dict[str, Any]) -> str:
    """How old the evidence is on the engine's day, and the range of TPOT then."""
    if day["months"] is None:
        return "no run of the framework has a day: how old the evidence is, nobody knows"
    before = f"{number(abs(day['months']), 2)} months {'after' if day['months'] >= 0 else 'before'}"
    age, ends = f"{before} the newest run of the framework, {day['newest_run']}", day["tpot"]
    if ends["p10"] is None:
        return age
    return f"{age}: 80 % of TPOT {scaled(ends['p10'], 's')} to {scaled(ends['p90'], 's')}"


def _hung(head: str, text: str) -> Text:
    """A line of the verdict; what goes on in a second line stands below the first."""
    room = look.width() - len(head) - 2
    first, *rest = textwrap.wrap(text, max(30, room), break_long_words=False, break_on_hyphens=False) or [""]
    whole = Text.assemble("  ", (head, "bold"), first)
    for line in rest:
        whole.append(f"\n  {' ' * len(head)}{line}")
    return whole


def _not_said(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the errors that the verdict has told."""
    told = told_errors(result)
    said = told[:1] if not is_possible(result["feasibility"]) else told
    left = [error for error in told if error not in said]
    alerts = [] if told and not is_possible(result["feasibility"]) else result["checks"]["alerts"]
    return result | {"checks": {"errors": left, "alerts": alerts}}


def _share(value: float | None) -> str:
    return "not known" if value is None else _percent(value)


def _fits(result: dict[str, Any]) -> str:
    """Whether it fits, or why not."""
    errors = told_errors(result)
    used, room = result["memory_per_accelerator_bytes"], result["memory_capacity_bytes"]
    told = f"{scaled(used, 'B')} of {scaled(room, 'B')} per accelerator"
    if errors and not is_possible(result["feasibility"]):
        return str(errors[0]["message"])
    if not result["fits"]:
        return told
    seats = result["kv_capacity_sequences"]
    host = " with part of it on the host" if result["feasibility"] == WITH_OFFLOAD else ""
    if host or "devices" in result:
        host += f", {scaled(result['ram_peak_bytes'], 'B')} of main memory on a machine"
    return f"{told}{host}, room for {of_requests(seats)} of this length" if seats else told + host


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
        if len(results) > 1:
            console.print(Text(result["name"], style="bold"))
        if run is None:
            console.print(NOTHING_NEAR.capitalize())
            continue
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
        known = result[metrics.OUTPUT_TOKENS_PER_S.key] is not None
        speed = f"TTFT {ttft}, TPOT {tpot}, {rate}" if known else "latency and throughput not known"
        console.print(f"  {result['name']}: {speed}, {fits} ({used} of {capacity} per accelerator)")
    _print_profiles(console, estimate)
    print_checks(console, results)
