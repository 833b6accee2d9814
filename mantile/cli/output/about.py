"""What the command line shows of a workbook as a whole: what it is, whether it verifies, what it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mantile.cli.output import look
from mantile.cli.output.tables import hung, number, open_console
from mantile.cli.output.verification import print_edits, signature_lines, verdict
from mantile.equations import metrics
from mantile.library.fields import DECODE

if TYPE_CHECKING:
    from mantile.roundtrip.about import About

_DEGREES = ("tp", "pp", "dp", "ep", "attention_dp", "cp")
_RESULTS = {
    "results": {
        "TTFT": metrics.TTFT,
        "TPOT": metrics.TPOT,
        "throughput": metrics.OUTPUT_TOKENS_PER_S,
    },
    "cost": {
        "per hour": metrics.USD_PER_HOUR,
        "per million output tokens": metrics.USD_PER_MILLION_OUTPUT_TOKENS,
        "power": metrics.POWER,
    },
}


def print_about(about: About, everything: bool = False) -> None:
    """The verdict and every edit first, then what the workbook is and says.

    Args:
        everything: with the whole list of edits.
    """
    console, results = open_console(), about.results()
    base = results[0]
    kv, weights = base["kv_dtype"], base["weights_dtype"]
    date, (first, second) = about.made_on or "not dated", (about.digest[:4], about.digest[4:8])
    then = ", as generated" if about.wrong else ""
    console.print(hung(Text(""), f"{about.path}: {_verdict(about)}"))
    if about.report is not None:
        print_edits(console, about.report, everything)
    for label, text in (
        ("title", f"{about.estimate.title}{then}"),
        ("model", f"{about.estimate.model.pin}, weights {weights}, KV cache {kv}{then}"),
        ("system", f"{_systems(base)}{then}"),
        ("plan", f"{_plans(base)}{then}"),
        ("workload", f"{_workload(base)}{then}"),
        ("made", f"{date} by {about.made_by}, digest {first} {second}"),
    ):
        _line(console, label, text)
    signed = [] if about.report is None else signature_lines(about.report)
    for place, text in enumerate(signed):
        _line(console, "" if place else "signed", text)
    if about.wrong:
        _line(console, "results", "not known: an input is not what it can be")
        return
    for label, shown in _RESULTS.items():
        for place, result in enumerate(results):
            name = f"{result['name']}: " if len(results) > 1 else ""
            _line(console, "" if place else label, name + _shown(result, shown))
    _print_checks(console, results)


def _line(console: Console, label: str, text: str) -> None:
    """What is said of something; of it alone as CSV, below it where a line has no room."""
    if look.now().form == "csv":
        grid = Table.grid()
        grid.add_row(label, text)
        console.print(grid)
    else:
        console.print(hung(Text(f"  {label:<9} "), text))


def _systems(base: dict[str, Any]) -> str:
    chips = [f"{base['accelerator']} in {base['system']}, {base['framework']}"]
    if f"{DECODE}accelerator" in base:
        decode = (base[f"{DECODE}{name}"] for name in ("accelerator", "system", "framework"))
        chips.append("decode {} in {}, {}".format(*decode))
    return f"{metrics.ACCELERATORS.text(base['accelerators'])}: {'; '.join(chips)}"


def _plans(base: dict[str, Any]) -> str:
    plans = [_plan(base, "")]
    if f"{DECODE}tp" in base:
        plans.append(f"decode {_plan(base, DECODE)}")
    return f"{'; '.join(plans)}; {base['feasibility']}"


def _plan(base: dict[str, Any], workers: str) -> str:
    """Degrees of parallelism: TP, and those above 1."""
    degrees = {name: base[f"{workers}{name}"] for name in _DEGREES if f"{workers}{name}" in base}
    said = (name for name, degree in degrees.items() if name == "tp" or degree != 1)
    return ", ".join(f"{name.replace('_', ' ').replace('dp', 'DP').upper()} {degrees[name]}" for name in said)


def _workload(base: dict[str, Any]) -> str:
    rate, concurrency = base.get("request_rate"), base["concurrency"]
    load = f"{number(rate)} requests/s" if rate else f"concurrency {number(concurrency)}"
    return f"{base['input_tokens']:,} input and {base['output_tokens']:,} output tokens, {load}"


def _verdict(about: About) -> str:
    report = about.report
    if about.wrong or report is None:
        return f"cannot be verified. {about.wrong.removeprefix(f'{about.path}: ')}"
    if report.made_by is not None:
        return f"{verdict(report)} Results below are by this version."
    if report.ok:
        return verdict(report)
    return f"{verdict(report)} Results below are by the formulas that it was made with."


def _shown(result: dict[str, Any], shown: Mapping[str, metrics.Metric]) -> str:
    return ", ".join(f"{name} {metric.text(_at(result, metric.key))}" for name, metric in shown.items())


def _at(result: Any, path: str) -> Any:
    for key in path.split("."):
        result = result[key]
    return result


def _print_checks(console: Console, results: Sequence[dict[str, Any]]) -> None:
    """The codes of checks that fail, a line in all."""
    failed = {kind: {check["code"]: None for result in results for check in result["checks"][kind]}
              for kind in ("errors", "alerts")}  # fmt: skip
    said = [f"{kind} {', '.join(codes)}" for kind, codes in failed.items() if codes]
    _line(console, "checks", "; ".join(said) or "all hold")
