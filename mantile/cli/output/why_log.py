"""What the command line shows of a start-up log: the cause, what was taken and expected, what helps."""

from __future__ import annotations

import textwrap

from rich.text import Text

from mantile.answers.start_log import Diagnosis
from mantile.answers.text import number, scaled
from mantile.cli.output import look
from mantile.cli.output.estimate import print_fact
from mantile.cli.output.tables import open_console

_MOST_WAYS = 3


def print_diagnosis(found: Diagnosis) -> None:
    """The sentence first, then what the log says beside the estimate, then what helps and what does not."""
    console, log = open_console(), found.log
    for line in textwrap.wrap(found.sentence, min(look.width(), 80), break_on_hyphens=False):
        console.print(Text(line, style="bold"))
    console.print()
    told = [
        f"{found.engine} {log.release}".strip(),
        log.model or found.made.model.name,
        found.answer.machines,
    ]
    print_fact(console, "Log", " · ".join(told))
    if log.said:
        print_fact(console, "It says", log.said)
    console.print()
    console.print(Text(f"  {'one accelerator':22}{'log':>12}{'estimate':>12}", style="dim"))
    for words, took, expected in found.rows:
        console.print(Text(f"  {words:22}{_size(took):>12}{_size(expected):>12}"))
    tokens = log.took.get("kv_tokens")
    if tokens is not None:
        room = number(float(round(found.predicted["kv_tokens"])))
        console.print(Text(f"  {'tokens in the cache':22}{number(tokens):>12}{room:>12}"))
    if not log.cause:
        return
    console.print()
    if found.no_help:
        print_fact(console, "No help", ", ".join(found.no_help))
    for title, sure in (("Helps", True), ("Try", False)):
        helps = [one for one in found.helps if one.sure == sure]
        for place, one in enumerate(helps):
            print_fact(console, "" if place else title, f"{one.words}: {one.why}")
    for place, way in enumerate(found.ways[:_MOST_WAYS]):
        speed = "" if way.speed is None else f": {number(way.speed)} tokens/s"
        print_fact(console, "" if place else "Or", f"{way.words}{speed}")


def _size(size: float | None) -> str:
    return "–" if size is None else scaled(size, "B")
