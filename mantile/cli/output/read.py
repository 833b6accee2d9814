"""What the command line shows of a file of measurements: its runs, what is not used, what is missing."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path

from rich.text import Text

from mantile.cli.output.runs import print_unused
from mantile.cli.output.tables import new_table, number, open_console
from mantile.library.files import replacing
from mantile.measured.forms import form_table
from mantile.measured.reading import ASKED, FIGURES, MeasuredRow, Read, flag_of

_MOST_RUNS = 40  # lines of one file; --json and -o have all
_SHOWN = (("ttft_s", "TTFT ms", 1e3), ("tpot_s", "TPOT ms", 1e3), ("e2e_s", "e2e s", 1.0))
_COLUMNS = {"accelerator": "system", "weights_dtype": "precision", "prompts": "num_prompts"}
_COLUMNS |= {"completed": "requests_completed"}  # of a page of metrics since the server started: no prompts
"""Names in a table of serving runs, which `reconcile` reads."""


def print_read(reads: Sequence[Read], files: Sequence[Path]) -> None:
    """One file in full; of several a line each.

    Args:
        files: that were written.
    """
    out = open_console()
    if len(reads) == 1:
        _print_file(reads[0])
    else:
        table = new_table("file", "form", "runs", "comparable", "does not say", right=(2, 3), keep=(0,))
        for read in reads:
            rejected = "; ".join(reason for _, reason in read.rejected[:1])
            comparable = sum(not run.excluded for run in read.runs)
            told = ", ".join(read.missing) or rejected
            table.add_row(read.file, read.form, number(len(read.runs)), number(comparable), told)
        out.print(table)
        failed = sum(not read.runs for read in reads)
        runs = sum(len(read.runs) for read in reads)
        out.print(f"{number(len(reads))} files, {number(runs)} runs; {number(failed)} files without a run")
    for path in files:
        out.print(f"{path}: written")


def _print_file(read: Read) -> None:
    out = open_console()
    out.print(Text(f"{read.file}: {read.form}, {number(len(read.runs))} runs", style="bold"))
    heads = (
        "run",
        "model",
        "chip",
        "engine",
        "plan",
        "weights",
        "in / out",
        "load",
        *(head for _, head, _ in _SHOWN),
    )
    table = new_table(*heads, "out tok/s", right=(*range(8, len(heads) + 1),), keep=(0,))
    for run in read.runs[:_MOST_RUNS]:
        table.add_row(*_cells(run))
    out.print(table)
    if len(read.runs) > _MOST_RUNS:
        out.print(f"and {number(len(read.runs) - _MOST_RUNS)} runs more: --json has all")
    if read.missing:
        out.print(f"not in the file: {', '.join(map(_with_flag, read.missing))}")
    for reason, count in _reasons(read).items():
        out.print(f"not compared, {number(count)} of {number(len(read.runs) + len(read.rejected))}: {reason}")
    for note in dict.fromkeys(note for run in read.runs for note in run.notes):
        out.print(f"assumed: {note}")
    print_unused(read.unread)


def _with_flag(name: str) -> str:
    flag = flag_of(name)
    return f"{name} ({flag})" if flag else name


def _reasons(read: Read) -> dict[str, int]:
    reasons = [run.excluded for run in read.runs if run.excluded] + [reason for _, reason in read.rejected]
    return {reason: reasons.count(reason) for reason in reasons}


def _cells(run: MeasuredRow) -> list[str]:
    held, figures = run.fields, run.metrics
    sides = ["".join(_plan(held, side)) for side in ("prefill_", "decode_")]
    plan = " + ".join(side for side in sides if side) or "".join(_plan(held, ""))
    rate = held.get("request_rate")
    load = f"{number(rate)} req/s" if rate else number(held.get("concurrency"))
    times = [number(figures[name] * factor if name in figures else None, 4) for name, _, factor in _SHOWN]
    output = figures.get("output_tokens_per_s")
    of_one = figures.get("output_tokens_per_s_per_accelerator")
    told = f"{number(of_one, 5)} a GPU" if output is None and of_one else number(output, 5)
    names = [str(held.get(name) or "\u2013") for name in ("model", "accelerator", "framework")]
    lengths = f"{number(held.get('input_tokens'))} / {number(held.get('output_tokens'))}"
    weights = str(held.get("weights_dtype") or "\u2013")
    return [run.id, *names, plan or "\u2013", weights, lengths, load, *times, told]


def _plan(held: Mapping[str, object], side: str) -> list[str]:
    names = {"workers": "x", "tp": "TP", "pp": "PP", "ep": "EP", "attention_dp": "DPA"}
    parts = {name: held.get(f"{side}{name}") for name in names}
    if parts["tp"] is None:
        return []
    workers = f"{parts.pop('workers')} x " if parts.get("workers") else ""
    return [
        workers,
        " ".join(
            f"{names[name]}{value}"
            for name, value in parts.items()
            if value not in (None, 1, "") or name == "tp"
        ),
    ]


def write_runs(reads: Sequence[Read], path: Path) -> None:
    """All runs as a table, .csv, in the columns of a table of serving runs, which `reconcile` reads.

    Raises:
        InputError: if it cannot be written; nothing half-written stays behind.
    """
    assumed = {form.id: form.assumes for form in form_table().forms}
    held = [
        (read, run, assumed.get(read.form, {}) | dict(run.fields) | dict(run.metrics))
        for read in reads
        for run in read.runs
    ]
    known = {name for _, _, cells in held for name in cells}
    names = [name for name in (*ASKED, *FIGURES) if name in known]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", "source", "form", *(_COLUMNS.get(name, name) for name in names), "excluded"])
    for read, run, values in held:
        cells = [values.get(name, "") for name in names]
        name = f"{read.file}: {run.id}" if len(reads) > 1 else run.id
        writer.writerow([name, read.file, read.form, *cells, run.excluded])
    with replacing(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
