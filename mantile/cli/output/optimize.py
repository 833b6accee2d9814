"""What the command line shows of a choice: the winner and why, other candidates, what was left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mantile.cli.output.tables import new_table, number, open_console
from mantile.equations.measures import MEASURES, Measure
from mantile.equations.metrics import (
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT_P95,
    USD_PER_MILLION_OUTPUT_TOKENS,
)

if TYPE_CHECKING:
    from mantile.search.devices import Assignment
    from mantile.search.largest import LargestModel
    from mantile.search.optimize import Candidate, Optimum
    from mantile.search.question import Question

_ALWAYS = (TTFT_P95, TPOT, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR, USD_PER_MILLION_OUTPUT_TOKENS)
_CODES = 8  # that are listed
_WORDS = 60  # columns of what is said of an accelerator


def print_assignments(found: Sequence[Assignment], written: Path | None) -> None:
    """What machines may do, the best first, and why."""
    out = open_console()
    best = found[0]
    out.print(Text(best.name if not best.refused else "no way to use these machines works", style="bold"))
    if not best.refused:
        out.print(f"{best.because[:1].upper()}{best.because[1:]}.")
    table = new_table("way", "TTFT s", "TPOT ms", "e2e s", "tokens/s", "why", right=(1, 2, 3, 4))
    for one in found:
        shown = one.results
        figures = [
            ("ttft_s", 1),
            ("tpot_s", 1e3),
            ("e2e_s", 1),
            ("output_tokens_per_s", 1),
        ]
        table.add_row(
            one.name,
            *("–" if shown.get(key) is None else number(shown[key] * by, 4) for key, by in figures),
            one.refused or one.because,
        )
    out.print(table)
    if written is not None and not best.refused:
        out.print(f"{written}: written")


def print_largest(found: LargestModel) -> None:
    """The largest models that fit, at most 80 columns wide, and which larger ones do not."""
    out = open_console()
    out.print(Text(f"{found.words}.", style="bold"))
    if found.models:
        table = new_table("model", "G param.", "weights", "chips", "tokens/s/user", right=(1, 3, 4))
        for one in found.models:
            winner = one.best.winner
            assert winner is not None
            table.add_row(
                one.best.question.model.id,
                number(one.parameters / 1e9, 4),
                str(winner.plan["weights_dtype"]),
                number(winner.results["accelerators"]),
                number(one.speed, 3),
            )
        out.print(table)
        for one in found.models:
            assert one.best.winner is not None
            out.print(f"{one.best.question.model.id}: {one.best.winner.name}")
        for line in held(found.models[0].best.question):
            out.print(line)
        larger = [one for one in found.too_large if one.parameters > found.models[0].parameters]
        if larger:
            last = larger[-1]
            out.print(f"{len(larger)} larger models do not do; the smallest is {last.model}: {last.why}.")


def print_optimum(found: Optimum, top: int, written: Path | None) -> None:
    """The answer, at most 80 columns wide.

    Args:
        top: plans that are listed at most.
        written: the file that was.
    """
    out = open_console()
    out.print(Text(found.title, style="bold"))
    miss = found.nearest_miss()
    if found.has_winner:
        out.print(f"{found.reason[:1].upper()}{found.reason[1:]}.")
    elif miss is not None:
        plan, limit, beyond = miss
        out.print(f"The nearest miss is {plan.name}: {limit.words} is missed by {beyond:.0%}.")
    for note in found.notes:
        out.print(f"{note}.")
    shown = _shown(found)
    table = new_table("", "chips", *map(_head, shown), "behind", right=range(7))
    for one in found.candidates[:top]:
        table.add_row(
            _rank(one),
            number(one.results["accelerators"]),
            *(_value(of, one.results) for of in shown),
            "–" if one.behind is None else f"{one.behind:.0%}",
        )
    out.print(table)
    listed = Table.grid(padding=(0, 1))
    for one in found.candidates[:top]:
        listed.add_row(_rank(one), one.name)
        listed.add_row("", Text(_words(one), style="dim"))
    out.print(listed)
    out.print()
    if len(found.chips) > 1 or any(chip.code for chip in found.chips):
        out.print(_asked(found))
        out.print()
    for line in held(found.question):
        out.print(line)
    out.print(_tried(found))
    counts = Table.grid(padding=(0, 1))
    counts.add_column(justify="right")
    for row in _counts(found):
        counts.add_row(*row)
    out.print(counts)
    if written is not None:
        out.print(f"{written}: written")


def held(question: Question) -> Iterator[str]:
    """What holds though nobody may have stated it: the most accelerators, and limits by default."""
    yield f"At most {number(question.most)} GPU{'s' if question.most > 1 else ''} (--gpus-max)."
    for one in question.unasked:
        yield f"{one.words} by default (change: --ttft-p95-max, lift: --no-default-limits)."


def _asked(found: Optimum) -> Table:
    """The best plan of each accelerator that was asked for, or why it has none."""
    from mantile.search.question import plan_name

    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(max_width=_WORDS)
    for chip in found.chips:
        plan = (
            ""
            if chip.plan is None or chip.code
            else plan_name(chip.plan, found.question.model, found.question.library)
        )
        table.add_row(chip.name, plan.partition(" · ")[2] or chip.why)
    return table


def _shown(found: Optimum) -> tuple[Measure, ...]:
    """Measures of the table: what is wanted first, then limits, then what is always shown; four of them."""
    question = found.question
    wanted = [*question.objective.measures, *(limit.measure for limit in question.limits)]
    always = [of for metric in _ALWAYS for of in MEASURES if of.metric is metric]
    listed = [of for of in dict.fromkeys((*wanted, *always)) if of.key != "accelerators"]
    return tuple(listed[:4])


def _head(of: Measure) -> str:
    return of.metric.short_heading or of.metric.head


def _value(of: Measure, results: Any) -> str:
    value: Any = results
    for part in of.metric.key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return of.metric.text(None) if value is None else number(of.metric.shown(float(value)), 4)


def _rank(one: Candidate) -> str:
    return "–" if one.rank is None else str(one.rank)


def _words(one: Candidate) -> str:
    """Why a plan lost, and whether that holds."""
    if one.rank == 1 or one.behind is None:
        return one.lost_because
    told = "within" if one.told.startswith("within") else "more than"
    return f"{one.lost_because}; {told} the error of {one.error:.0%}"


def _tried(found: Optimum) -> str:
    """How many plans were looked at."""
    all_plans = found.found
    return (
        f"{all_plans.tried:,} plans tried, {len(all_plans.ranked):,} keep every rule and limit, "
        f"{len(all_plans.front):,} on the front of speed and throughput. Out:"
    )


def _counts(found: Optimum) -> Iterator[tuple[str, str]]:
    """What was against plans: how many, and the code with its meaning."""
    from mantile.search.chips import meaning_of

    codes = sorted(found.found.infeasible.items(), key=lambda item: -item[1])
    for code, count in codes[:_CODES]:
        yield f"{count:,}", f"{code}: {meaning_of(code)}"
    if len(codes) > _CODES:
        yield f"{sum(count for _, count in codes[_CODES:]):,}", "other codes, in --json"
