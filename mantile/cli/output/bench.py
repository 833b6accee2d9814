"""What a terminal shows of a sweep over a server, of records, and of drift."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from mantile.cli.output.tables import new_table, number, open_console, scaled

if TYPE_CHECKING:
    from mantile.bench.bench import Benched
    from mantile.measured.drift import Drift
    from mantile.records.store import Stored

_SHOWN = 10  # digits of an id
_WORST = ("client_lag_p95_s", "client_late_p95_s", "client_cpu_share")
_BUSY = 0.8  # share of a core above which the client may be what is measured


def print_bench(benched: Benched, records: Path, manifest: Path) -> None:
    """Each point of a sweep, what the client took, and where it is kept."""
    out = open_console()
    server, of = benched.server, benched.manifest.of
    engine = " ".join(filter(None, (of["framework"], server.version)))
    done = sum(point.state == "done" for point in benched.manifest.points.values())
    counts = (
        f"{number(done)} of {number(len(benched.manifest.points))} points, {number(benched.measured)} now"
    )
    out.print(Text(f"{server.model} with {engine} on {of['accelerator']}: {counts}", style="bold"))
    heads = ("TTFT p50", "TTFT p95", "TPOT p50", "TPOT p95", "ITL p99", "e2e p50", "tokens/s", "failed")
    table = new_table("point", *heads, right=range(1, 9), drop=(6, 5, 2, 4))
    for name, state in benched.manifest.points.items():
        record = benched.records.get(name)
        if record is None:
            failed = sum(state.failures.values())
            table.add_row(name, *([state.state] + ["–"] * 6), number(failed) if failed else "–")
            continue
        figures = record.metrics
        times = [
            scaled(figures[key], "s") if key in figures else "–"
            for key in ("ttft_p50_s", "ttft_p95_s", "tpot_p50_s", "tpot_p95_s", "itl_p99_s", "e2e_p50_s")
        ]
        table.add_row(
            name, *times, number(figures["output_tokens_per_s"], 4), number(int(figures["requests_failed"]))
        )
    out.print(table)
    _print_client(out, benched)
    for name, state in benched.manifest.points.items():
        if state.failures:
            reasons = ", ".join(f"{number(count)} {reason}" for reason, count in state.failures.items())
            out.print(f"{name}: requests failed: {reasons}")
    out.print(f"{records}: {number(done)} records of sweep {benched.manifest.id}")
    left = len(benched.manifest.open)
    rest = f"{number(left)} points failed; the same command asks them again" if left else "complete"
    out.print(f"{manifest}: {rest}")


def _print_client(out: Any, benched: Benched) -> None:
    """What the client itself took, in the worst point."""
    metrics = [record.metrics for record in benched.records.values()]
    if not metrics:
        return
    lag, late, cpu = (max(figures.get(name, 0.0) for figures in metrics) for name in _WORST)
    out.print(
        f"the client, p95 of its worst point: pieces seen {scaled(lag, 's')} late, requests sent "
        f"{scaled(late, 's')} late; {cpu * 100:.0f} % of a core"
    )
    if cpu > _BUSY:
        out.print("the client was as busy as a core can be: its own time may be in these figures")


def print_records(name: str, records: Sequence[Stored]) -> None:
    """A line for each record."""
    out = open_console()
    out.print(Text(f"{name}: {number(len(records))} records", style="bold"))
    table = new_table(
        "id", "time, UTC", "model", "accelerator", "engine", "in/out, load", "TTFT, ms", "TPOT, ms",
        "signature", right=(6, 7), drop=(8, 1, 4),
    )  # fmt: skip
    for one in records:
        flat = one.record.flat()
        metrics = flat["metrics"]
        rate = one.record.run.get("request_rate")
        table.add_row(
            one.id[:_SHOWN],
            flat["timestamp_utc"],
            str(flat["model_id"]),
            str(flat["hardware_id"]),
            str(flat["runtime_id"] or "–"),
            f"{flat['context_tokens']}/{flat['output_tokens']} "
            + (f"{rate:g}/s" if rate else f"c{flat['concurrency']}"),
            *(
                number(metrics[key] * 1e3, 4) if metrics.get(key) is not None else "–"
                for key in ("ttft_s", "tpot_s")
            ),
            one.verdict.signer or one.verdict.status,
        )
    out.print(table)


def print_record(one: Stored) -> None:
    """All of a record."""
    out = open_console()
    out.print(Text(f"record {one.id}", style="bold"))
    out.print(one.verdict.words)
    table = new_table("field", "value", keep=(1,))
    for name, value in _lines(one.record.flat()):
        if name != "run_id":
            table.add_row(
                name, "–" if value is None else number(value) if isinstance(value, float) else str(value)
            )
    out.print(table)


def _lines(data: dict[str, Any], above: str = "") -> Sequence[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in data.items():
        if isinstance(value, dict):
            found += _lines(value, f"{above}{name}.")
        else:
            found.append((f"{above}{name}", value))
    return found


def print_drift(found: Drift, files: Sequence[Path]) -> None:
    """Each group by month, alarms first, and the files that were written."""
    from mantile.cli.output.runs import percent, print_rejected

    out = open_console()
    alarms = found.alarms
    answered, rows = len(found.reconciliation.table), found.reconciliation.rows
    count = f"{number(len(alarms))} alarm{'s' * (len(alarms) != 1)}" if alarms else "no alarm"
    counts = f"{number(answered)} of {number(rows)} records predicted"
    out.print(Text(f"{found.reconciliation.source}: {count}; {counts}", style="bold"))
    for alarm in alarms:
        out.print(
            f"alarm: {alarm['model']} on {alarm['accelerator']} with {alarm['framework']} "
            f"{alarm['version']}, {alarm['month']}: {alarm['metric']} {percent(alarm['shift'], True)} %, "
            f"limit {percent(alarm['limit'])} %"
        )
    out.print("medians of measured ÷ predicted − 1, in percent; above 0 is slower or larger than predicted")
    metrics = tuple(found.limits)
    table = new_table(
        "model", "accelerator", "framework", "version", "month", "runs", *metrics, "alarm", right=range(5, 9)
    )
    for group, periods in found.groups.items():
        for period in periods:
            shifts = [period.shifts[metric] for metric in metrics]
            table.add_row(
                *group,
                period.month,
                number(len(period.ids)),
                *("–" if shift is None else percent(shift, signed=True) for shift in shifts),
                ", ".join(period.alarms),
            )
    out.print(table)
    print_rejected(found.reconciliation.unanswered())
    for path in files:
        out.print(f"{path}: written")
