"""What the command line shows of an estimate: the results of all columns side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mantile.answers.text import number as significant
from mantile.answers.text import scaled
from mantile.cli.output import look
from mantile.cli.output.capacity import demand_lines
from mantile.cli.output.tables import (
    FittedTable,
    new_table,
    number,
    open_console,
    print_checks,
)
from mantile.equations import metrics
from mantile.equations.correction import LABELS, OF_MEMORY
from mantile.estimates.results import is_possible, told_errors
from mantile.library.model_names import taken_for_granted
from mantile.library.runs import NOTHING_NEAR

if TYPE_CHECKING:
    from mantile.answers.estimate import Answer
    from mantile.answers.unstated import Unstated
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


def print_estimate(answer: Answer, everything: bool = False) -> None:
    """The answer to the base scenario, of several columns a table of them, then checks that do not hold.

    Args:
        everything: with all figures, classes, the nearest run and its source.
    """
    estimate = answer.made
    results = [estimate.results(column) for column in range(len(estimate.columns))]
    console = open_console()
    if estimate.scenario.title:
        console.print(Text(estimate.scenario.title, style="bold"))
    granted = taken_for_granted(estimate.model.source)
    if granted:
        console.print(Text(f"{estimate.model.name}: {granted}", style="dim"))
    _print_answer(console, answer, everything)
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
    print_checks(console, results if everything or len(results) > 1 else [_not_said(results[0])])
    if not everything and look.now().form == "table" and not look.now().quiet:
        console.print()
        more = _TAKE if answer.ways else _MORE
        console.print(Text(more, style="dim"))


_MORE = "More: --all, mantile launch …, mantile explain tpot, mantile build … -o x.xlsx"
_TAKE = "Take one: mantile estimate … --way 1; its command: mantile launch … --way 1"


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


def _print_answer(console: Console, answer: Answer, everything: bool) -> None:
    """The answer to one scenario: verdict, figures with ranges, why, what is not stated, or the ways out."""
    room = min(look.width(), 80)
    for place, line in enumerate(textwrap.wrap(answer.verdict, room, break_on_hyphens=False)):
        console.print(Text(line, style="bold" if place < _LINES_OF_VERDICT else ""))
    if answer.lines:
        console.print()
        _print_lines(console, answer)
    console.print()
    for label, text in (*answer.facts, *_more_facts(answer)):
        print_fact(console, label, text)
    unstated = answer.unstated if everything else answer.unstated_in_brief
    if unstated:
        console.print()
        _print_unstated(console, unstated)
    if not answer.possible:
        _print_ways(console, answer)


_LINES_OF_VERDICT = 3
_HEAD = 13  # columns of the head of a fact


def _print_lines(console: Console, answer: Answer) -> None:
    console.print(Text(f"  {'':22} {'estimate':>11}   80 % range", style="dim"))
    for line in answer.lines:
        row = f"  {line.label:22} {line.text:>11}   {line.range:17}  {line.beside}"
        console.print(Text(row.rstrip()))


def print_fact(console: Console, label: str, text: str, style: str = "dim", head: int = _HEAD) -> None:
    """A text behind its label; further lines stand below the first."""
    lines = textwrap.wrap(text, min(look.width(), 80) - head - 2, break_on_hyphens=False) or [""]
    console.print(Text.assemble("  ", (f"{label:{head}}", style), lines[0]))
    for line in lines[1:]:
        console.print(Text(f"  {'':{head}}{line}"))


def _print_unstated(console: Console, unstated: Sequence[Unstated]) -> None:
    """What the scenario does not state; "!" where it moves the answer by more than 10 %."""
    console.print(Text(f"  {'Not stated, taken as':31}otherwise", style="dim"))
    for one in unstated:
        flag = f" (--{one.field.replace('_', '-')} {one.value:g})" if one.decides else ""
        label = f"{'!' if one.decides else ' '} {one.label:13} {one.taken:13}"
        print_fact(console, label, one.otherwise + flag, "yellow" if one.decides else "", 31)


def _print_ways(console: Console, answer: Answer) -> None:
    """Ways out of a plan that cannot be, numbered as --way takes them, and what does not help."""
    ways = answer.ways
    if ways:
        wide = max(20, *(len(way.words) for way in ways))
        cost = "to buy" if answer.buys else "USD/h"
        console.print()
        heads = f"{'tokens/s':>9}{'1st token':>11}{cost:>8}"
        console.print(Text(f"  {'Ways out':{wide + 2}}{heads}  gives up", style="dim"))
        for place, way in enumerate(ways, start=1):
            money = way.to_buy if answer.buys else way.usd_per_hour
            speed = "–" if way.speed is None else significant(way.speed)
            paid = "unknown" if money is None else f"{money:,.0f}" if answer.buys else significant(money)
            paid = paid if money != 0 else "–"
            figures = f"{speed:>9}{scaled(way.ttft, 's'):>11}{paid:>8}"
            console.print(Text(f"  {place:<2}{way.words:{wide}}{figures}  {way.gives_up or '–'}"))
    facts = [("No help", " · ".join(answer.no_help))] if answer.no_help else []
    facts += [
        ("Assumed", f"way {place}: {way.assumes}; state yours with --cpu")
        for place, way in enumerate(ways, start=1)
        if way.assumes
    ]
    if facts:
        console.print()
    for label, text in facts:
        print_fact(console, label, text)


def _more_facts(answer: Answer) -> Iterator[tuple[str, str]]:
    """The engine's day, corrections and a demand, where a scenario has them."""
    result = answer.results
    if not answer.possible:
        return
    day = result.get("engine_day")
    if day is not None:
        yield "Engine", _engine_day(day)
    for name, one in result.get("correction", {}).items():
        if isinstance(one, dict) and one["p50"] is not None:
            unit = OF_MEMORY.get(name, "s")
            behind = f"{one['runs']} runs, newest {one['newest']}" if one["runs"] else "no run of the kind"
            if not one["runs"] and one["multiplier"] != 1:
                behind += ", but of others"
            yield (
                "Corrected",
                f"{LABELS[name]} {scaled(one['physics'], unit)} × {number(one['multiplier'], 3)} = "
                f"{scaled(one['p50'], unit)}, 80 % from {scaled(one['p10'], unit)} to "
                f"{scaled(one['p90'], unit)}; {behind}",
            )
    if "capacity" in result:
        yield from demand_lines(answer.made, result["capacity"])


def _engine_day(day: dict[str, Any]) -> str:
    """How old the evidence is on the engine's day, and the range of TPOT then."""
    if day["months"] is None:
        return "no run of the framework has a day: how old the evidence is, nobody knows"
    before = f"{number(abs(day['months']), 2)} months {'after' if day['months'] >= 0 else 'before'}"
    age, ends = f"{before} the newest run of the framework, {day['newest_run']}", day["tpot"]
    if ends["p10"] is None:
        return age
    return f"{age}: 80 % of TPOT {scaled(ends['p10'], 's')} to {scaled(ends['p90'], 's')}"


def _not_said(result: dict[str, Any]) -> dict[str, Any]:
    """A result without the checks that the answer has told."""
    possible, told = is_possible(result["feasibility"]), told_errors(result)
    said = told if possible else told[:1]
    left = [error for error in told if error not in said]
    alerts = [one for one in result["checks"]["alerts"] if possible and one["code"] != "PRICE_OLD"]
    return result | {"checks": {"errors": left, "alerts": alerts}}


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
