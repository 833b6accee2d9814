"""What the command line shows of what is needed: three builds, a line for each accelerator, ways out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from mantile.cli.flags import field_flag
from mantile.cli.output.optimize import held
from mantile.cli.output.tables import new_table, number, open_console
from mantile.equations.display import number_in
from mantile.equations.measures import measure
from mantile.equations.metrics import (
    INTERACTIVITY,
    TPOT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)

if TYPE_CHECKING:
    from mantile.search.chips import ChipAnswer
    from mantile.search.hardware_first import Fit, Machine
    from mantile.search.size import Size, Tier, Way

_SHOWN = {
    "USD/h": USD_PER_HOUR,
    "USD/M out": USD_PER_MILLION_OUTPUT_TOKENS,
    "TTFT p95, ms": TTFT_P95,
    "TPOT, ms": TPOT,
    "tokens/s/user": INTERACTIVITY,
}
_MISSED = 10  # accelerators that miss a limit, the nearest first
_OTHERS = 10  # accelerators of which each has a line, whatever the reason


def print_size(found: Size, written: Path | None) -> None:
    """The answer, at most 80 columns wide."""
    out = open_console()
    name = found.question.model.name
    asked = found.question
    limits = "; ".join(one.words for one in asked.limits if one not in asked.unasked)
    told = f": {limits}" if limits else "" if asked.unasked else ": no limits"
    out.print(Text(f"What {name} needs{told}", style="bold"))
    for line in held(found.question):
        out.print(line)
    if found.assumed:
        taken = ", ".join(f"{key} {number(value)}" for key, value in found.assumed.items())
        out.print(f"Not stated, so taken: {taken}.")
    if found.has_answer:
        table = new_table("", "GPUs", *_SHOWN, right=range(1, len(_SHOWN) + 2))
        for tier, one in found.tiers.items():
            table.add_row(tier, *_cells(one))
        out.print(table)
        for tier, one in found.tiers.items():
            out.print(f"{tier}: {one.reason if one.label is None else f'{one.label}: {one.reason}'}")
    else:
        for line in _no_answer(found):
            out.print(line)
    for note in () if found.optimum is None else found.optimum.notes:
        out.print(f"{note}.")
    if found.memory is not None:
        size = number(number_in(found.memory, "B", "GB"), 4)
        out.print(f"memory of all accelerators together, at least: {size} GB")
    for way in found.ways:
        out.print(f"{_way(way, found)}: {way.label}")
    out.print()
    out.print(_chips(found))
    for line in _left_out(found):
        out.print(line)
    if written is not None and found.has_answer:
        out.print(f"{written}: written")


def _order(chip: ChipAnswer) -> tuple[bool, float, int]:
    price = chip.usd_per_hour
    return price is None, price or 0.0, chip.accelerators or 0


def _price(value: float | None) -> str:
    return USD_PER_HOUR.text(None) if value is None else number(value, 4)


def _cells(tier: Tier) -> tuple[str, ...]:
    count = "–" if tier.accelerators is None else number(tier.accelerators)
    return count, *(_cell(metric, tier.results) for metric in _SHOWN.values())


def _cell(metric: Metric, results: Any) -> str:
    if results is None:
        return "–"
    value: Any = results
    for part in metric.key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return metric.text(None) if value is None else number(metric.shown(float(value)), 4)


def _no_answer(found: Size) -> Iterator[str]:
    miss = found.nearest_miss()
    if miss is not None:
        from mantile.search.question import plan_name

        name = plan_name(miss[0], found.question.model, found.question.library)
        yield f"No build keeps every limit. The nearest is {name}:"
        yield f"{miss[1].words} is missed by {miss[2]:.1%}."
    elif len(found.found.plans):
        codes = ", ".join(dict.fromkeys(found.found.plans["code"]))
        yield f"No build is known to keep every limit: {codes}."
    else:
        from mantile.search.question import at_most

        yield f"Nothing fits on {at_most(found.space.most)}."


def _way(way: Way, found: Size) -> str:
    if way.change == "accelerators":
        return f"it fits on {number(way.value)} accelerators (--gpus-max {number(way.value)})"
    if way.change == "input_tokens":
        asked = found.question.fields.get("input_tokens")
        return f"it fits with prompts of {number(way.value)} tokens instead of {number(asked)}"
    return f"it fits in {way.value} ({field_flag(way.change)} {way.value})"


def _chips(found: Size) -> Table:
    """What is needed of each accelerator, the cheapest first; then those that miss a limit by least."""
    table = new_table("accelerator", "fewest", "USD/h", "why not", right=(1, 2))
    kept = [chip for chip in found.chips if chip.accelerators is not None]
    for chip in sorted(kept, key=_order):
        table.add_row(chip.name, number(chip.accelerators), _price(chip.usd_per_hour), "")
    for chip in _missed(found):
        table.add_row(chip.name, "–", "–", _why_not(chip))
    return table


def _missed(found: Size) -> list[ChipAnswer]:
    lost = [chip for chip in found.chips if chip.accelerators is None]
    lost.sort(key=lambda of: (of.beyond is None, of.beyond or 0.0))
    if found.question.asked or len(found.chips) <= _OTHERS:
        return lost
    return [chip for chip in lost if chip.beyond is not None][:_MISSED]


def _why_not(chip: ChipAnswer) -> str:
    from mantile.search.chips import share

    more = f"; {number(chip.needs)} would do" if chip.needs is not None else ""
    if chip.beyond is None:
        return f"{chip.code}{more}"
    of = measure(chip.code.removeprefix("LIMIT_"))
    return f"{of.metric.label} missed by {share(chip.beyond)}{more}"


def _left_out(found: Size) -> Iterator[str]:
    """How many accelerators no line was spent on, and why; what is not known."""
    from mantile.search.chips import meaning_of
    from mantile.search.search import NOT_KNOWN_CODE

    shown = {chip.accelerator for chip in _missed(found)}
    lost = Counter(
        chip.code for chip in found.chips if chip.accelerators is None and chip.accelerator not in shown
    )
    for code, count in lost.most_common():
        yield f"{count} more: {code}: {meaning_of(code)}"
    unpriced = [chip for chip in found.chips if chip.code in ("", NOT_KNOWN_CODE) and chip.why]
    if found.question.asked:
        yield from (f"{chip.why}." for chip in unpriced)
    elif unpriced:
        yield f"{len(unpriced)} of them without a known price: they have no place where money ranks"
    yield f"{found.found.tried:,} plans looked at"


def print_fits(found: Machine) -> None:
    """What runs on a machine, at most 80 columns wide."""
    out = open_console()
    host = "" if found.ram_gb is None else f" with {number(found.ram_gb)} GB of host memory"
    title = f"{found.count} × {found.name}{host}, one user"
    out.print(Text(title, style="bold"))
    out.print(f"{number(found.input_tokens)} input and {number(found.output_tokens)} output tokens")
    table = new_table("model", "G param.", "weights", "plan", "context", "tokens/s", right=(1, 4, 5))
    for one in found.models:
        table.add_row(
            one.model,
            number(one.parameters / 1e9, 3),
            str(one.plan["weights_dtype"]),
            _plan(one),
            number(one.context),
            INTERACTIVITY.text(None) if one.interactivity is None else number(one.interactivity, 3),
        )
    if found.models:
        out.print(table)
    else:
        out.print("No model of the library fits.")
    if found.too_large:
        out.print(f"{len(found.too_large)} larger models do not fit; the smallest: {found.too_large[-1]}")


def _plan(one: Fit) -> str:
    moved = one.plan.get("offload_weights")
    degrees, framework = one.label.split(" · ")[1::2]
    return f"{degrees} {framework}" + (f", {number(moved, 3)} GB on host" if moved else "")
