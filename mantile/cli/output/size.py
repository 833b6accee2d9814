"""What the command line shows of what is needed: three builds, a line for each accelerator, ways out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from mantile.cli.flags import field_flag
from mantile.cli.output.optimize import meaning_of
from mantile.cli.output.tables import new_table, number, open_console
from mantile.equations.metrics import TPOT, TTFT_P95, USD_PER_HOUR
from mantile.graph.quantity import NOT_KNOWN
from mantile.graph.units import number_in

if TYPE_CHECKING:
    from mantile.optimize.hardware_first import Machine
    from mantile.optimize.size import ChipSize, Size, Tier, Way

_LISTED = 20  # accelerators that keep the limits


def print_size(found: Size, written: Path | None) -> None:
    """The answer, at most 80 columns wide."""
    out = open_console()
    name = found.question.model.name
    limits = "; ".join(one.words for one in found.question.limits) or "no limits"
    out.print(Text(f"What {name} needs: {limits}", style="bold"))
    if found.assumed:
        taken = ", ".join(f"{key} {number(value)}" for key, value in found.assumed.items())
        out.print(f"Not stated, so taken: {taken}.")
    if found.has_answer:
        table = new_table("", "build", "GPUs", "USD/h", "TTFT p95, ms", "TPOT, ms", right=(2, 3, 4, 5))
        for tier, one in found.tiers.items():
            table.add_row(tier, *_cells(one))
        out.print(table)
        for tier, one in found.tiers.items():
            out.print(f"{tier}: {one.reason}")
    else:
        for line in _no_answer(found):
            out.print(line)
    if found.memory is not None:
        size = number(number_in(found.memory, "B", "GB"), 4)
        out.print(f"memory of all accelerators together, at least: {size} GB")
    for way in found.ways:
        out.print(f"{_way(way, found)}: {way.label}")
    out.print()
    chips = new_table("accelerator", "fewest", "USD/h", "why not", right=(1, 2))
    kept = [chip for chip in found.chips if chip.accelerators is not None]
    shown = sorted(kept, key=_order)[:_LISTED]
    for chip in shown:
        chips.add_row(chip.name, number(chip.accelerators), _price(chip.usd_per_hour), "")
    lost = [chip for chip in found.chips if chip.accelerators is None]
    for chip in sorted(lost, key=lambda of: (of.beyond is None, of.beyond or 0)):
        if chip.beyond is not None or len(found.chips) <= _LISTED:
            missed = "" if chip.beyond is None else f", by {chip.beyond:.0%}"
            chips.add_row(chip.name, "–", "–", f"{chip.code}{missed}")
    out.print(chips)
    for line in _left_out(found, shown):
        out.print(line)
    if written is not None and found.has_answer:
        out.print(f"{written}: written")


def _order(chip: ChipSize) -> tuple[bool, float, int]:
    price = chip.usd_per_hour
    return price is None, price or 0.0, chip.accelerators or 0


def _price(value: float | None) -> str:
    return NOT_KNOWN if value is None else number(value, 4)


def _cells(tier: Tier) -> tuple[str, str, str, str, str]:
    if tier.results is None:
        return "–", "–", "–", "–", "–"
    times = (tier.results.get(TTFT_P95.key), tier.results.get(TPOT.key))
    ttft, tpot = ("–" if value is None else number(number_in(value, "s", "ms"), 4) for value in times)
    label = str(tier.label).replace(" · ", " ")
    return label, number(tier.accelerators), _price(tier.usd_per_hour), ttft, tpot


def _no_answer(found: Size) -> Iterator[str]:
    miss = found.nearest_miss()
    if miss is not None:
        from mantile.optimize.optimize import plan_name

        name = plan_name(miss[0], found.question.library)
        yield f"No build keeps every limit. The nearest is {name}: {miss[1].words} is missed by {miss[2]:.1%}."
    elif len(found.found.plans):
        codes = ", ".join(dict.fromkeys(found.found.plans["code"]))
        yield f"No build is known to keep every limit: {codes}."
    else:
        yield f"Nothing fits on at most {found.space.most} accelerators."


def _way(way: Way, found: Size) -> str:
    if way.change == "accelerators":
        return f"it fits on {number(way.value)} accelerators (--gpus-max {number(way.value)})"
    if way.change == "input_tokens":
        asked = found.question.fields.get("input_tokens")
        return f"it fits with prompts of {number(way.value)} tokens instead of {number(asked)}"
    return f"it fits in {way.value} ({field_flag(way.change)} {way.value})"


def _left_out(found: Size, shown: list[ChipSize]) -> Iterator[str]:
    """How many accelerators no line was spent on, and why."""
    kept = sum(chip.accelerators is not None for chip in found.chips)
    if kept > len(shown):
        yield f"{kept - len(shown)} more accelerators keep the limits, in --json"
    lost: dict[str, int] = {}
    for chip in found.chips:
        if chip.accelerators is None and chip.beyond is None and len(found.chips) > _LISTED:
            lost[chip.code] = lost.get(chip.code, 0) + 1
    for code, count in sorted(lost.items(), key=lambda item: -item[1]):
        yield f"  {count:>3} without a line: {code}: {meaning_of(code)}"
    yield f"{found.found.tried:,} plans looked at; {USD_PER_HOUR.label} {NOT_KNOWN}: no place where money ranks"


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
            " ".join(one.label.split(" · ")[1::2]),
            number(one.context),
            NOT_KNOWN if one.interactivity is None else number(one.interactivity, 3),
        )
    if found.models:
        out.print(table)
    else:
        out.print("No model of the library fits.")
    if found.too_large:
        out.print(f"{len(found.too_large)} larger models do not fit; the smallest: {found.too_large[-1]}")
