"""What the command line shows of start-up figures of servers."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from mantile.cli.output.runs import NOTHING, percent, print_rejected
from mantile.cli.output.tables import new_table, number, open_console
from mantile.measured.startup_errors import HEADLINES, StartUpErrors

_SHOWN = ("mape", "median", "bias")
_GB = 1e9


def print_startups(found: StartUpErrors) -> None:
    """Errors of weights, KV room and peak by framework and release, verdicts, and the worst rows."""
    out = open_console()
    count = len(found.servers) + len(found.rejected)
    out.print(Text(f"{found.source}: {len(found.servers)} of {count} servers estimated", style="bold"))
    out.print("errors in percent, predicted ÷ measured − 1")
    for name, groups in {"all": {"all": found.metrics()}, **found.groups()}.items():
        table = new_table(name, *HEADLINES.values(), right=range(1, 1 + len(HEADLINES)))
        for key, metrics in sorted(groups.items()):
            table.add_row(key, *(_cell(metrics.get(metric)) for metric in HEADLINES))
        out.print(table)
    out.print("each cell: servers, then MAPE / median / bias")
    verdicts = found.verdicts()
    out.print(
        f"verdicts right: {verdicts['right']} of {verdicts['of']}; of servers that ran out of memory or "
        f"refused their length: {verdicts['outgrown_right']} of {verdicts['outgrown']}; said to fit and did "
        f"not: {verdicts['false_positives']}; said not to fit and did: {verdicts['false_negatives']}"
    )
    _print_worst(found)
    print_rejected(found.rejected)


def _cell(figures: Mapping[str, float] | None) -> str:
    if figures is None:
        return NOTHING
    shares = " / ".join(percent(figures[key], key == "bias") for key in _SHOWN)
    return f"{number(figures['n'])}: {shares}"


def _print_worst(found: StartUpErrors) -> None:
    out = open_console()
    for metric, label in HEADLINES.items():
        unit = "tokens" if metric == "kv_tokens" else "GB"
        table = new_table(
            f"worst by {label}",
            "server",
            "model",
            f"measured, {unit}",
            f"predicted, {unit}",
            "error",
            right=range(3, 6),
        )
        for each in found.worst(metric):
            scale = 1.0 if metric == "kv_tokens" else _GB
            server = each.server
            table.add_row(
                server.id,
                f"{server.framework} {server.version}",
                server.scenario.model.rpartition("/")[2],
                number(server.measured[metric] / scale, 4),
                number(each.predicted[metric] / scale, 4),
                percent(each.ratio(metric) - 1, signed=True),
            )
        if table.row_count:
            out.print(table)
