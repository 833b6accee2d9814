"""A run otherwise: what a change of one field would do, what would work in its place, and how it feels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS
from mantile.library.errors import InputError
from mantile.search.space import published
from mantile.server.page.answers import Answer, answer
from mantile.server.page.run import at
from mantile.server.page.state import DEGREES, State
from mantile.server.page.text import change, headline, parts, percent, scaled

_MOST_GPUS = 1024
_NEWER = ("h200-sxm", "b200-sxm", "mi300x", "mi355x")  # chips that are offered to those of the same maker


def what_if(found: Answer, state: State) -> list[dict[str, Any]]:
    """A few changes of one field, each worked out, and what they do."""
    if not found.possible:
        return []
    results, library = found.results, found.estimate.library
    changes: list[tuple[str, dict[str, Any]]] = []
    chip = library.accelerator(str(results["accelerator"]))
    framework = library.framework(str(found.estimate.columns[0].values["framework"]))
    for name in published(found.estimate.model, framework, chip):
        if results["weights_dtype"] != name:
            changes.append((f"{name} weights", {"weights_dtype": name}))
    if results["kv_dtype"] != "fp8":
        changes.append(("fp8 KV cache", {"kv_dtype": "fp8"}))
    load = int(results["concurrency"])
    if not (found.scenario.request_rate or found.scenario.sessions):
        changes.append((f"{2 * load:,} requests at once", {"concurrency": 2 * load}))
        if load > 1:
            changes.append((f"{load // 2:,} requests at once", {"concurrency": load // 2}))
    newer = [
        one
        for one in library.accelerators
        if one.id in _NEWER and one.vendor == chip.vendor and one.id != chip.id
    ]
    changes += [(one.name, {"accelerator": one.id}) for one in newer]
    base = state.by_hand({name: found.fields.get(name, 1) for name in DEGREES})
    rows = []
    for words, fields in changes:
        changed = base.with_fields(**fields)
        try:
            other = answer(changed)
        except InputError:
            continue
        if not other.possible:
            continue
        rows.append(
            {
                "words": words,
                "ttft": headline(TTFT, other.results["ttft_s"]),
                "tpot": headline(TPOT, other.results["tpot_s"]),
                "rate": parts(headline(OUTPUT_TOKENS_PER_S, other.results["output_tokens_per_s"]))[0],
                "usd": parts(
                    USD_PER_MILLION_OUTPUT_TOKENS.text(at(other.results, USD_PER_MILLION_OUTPUT_TOKENS.key))
                )[0],
                "effect": change(
                    at(other.results, USD_PER_MILLION_OUTPUT_TOKENS.key),
                    at(results, USD_PER_MILLION_OUTPUT_TOKENS.key),
                ),
                "saves": _saving(found, other),
                "slower": change(other.results["tpot_s"], results["tpot_s"]),
                "open": changed.link(),
                "pin": state.with_pins((*state.pins, state.packed, changed.packed)).link("/compare"),
            }
        )
    return rows


def _saving(found: Answer, other: Answer) -> float | None:
    """By which share a million tokens is cheaper; None where nobody knows a price."""
    before, after = (at(one.results, USD_PER_MILLION_OUTPUT_TOKENS.key) for one in (found, other))
    return 1 - after / before if before and after is not None else None


def finding(rows: Sequence[Mapping[str, Any]]) -> str:
    """The title of changes: the one that makes tokens cheapest, where one makes them cheaper."""
    cheaper = [row for row in rows if row["saves"] is not None and row["saves"] > 0]
    if not cheaper:
        return "What if"
    best = max(cheaper, key=lambda row: float(row["saves"]))
    return f"What if: {best['words']} would make a million tokens {percent(best['saves'], 2)} cheaper"


_SAMPLE = (
    "The first token waits for the whole prompt to be read: that is the time to first token. Every further "
    "token reads all weights once more, so the pace you see now is what memory bandwidth, messages between "
    "the accelerators and the work of the host leave of it. Other users share each of these steps, which is "
    "why a busier deployment writes more in all and more slowly to each of them."
)


def feel(found: Answer) -> dict[str, Any] | None:
    """A text to be written at the pace that is predicted; None where there is no pace."""
    ttft, tpot = found.results["ttft_s"], found.results["tpot_s"]
    if not found.possible or ttft is None or tpot is None:
        return None
    tokens = len(_SAMPLE.split())
    return {
        "ttft": f"{ttft:.6g}",
        "tpot": f"{tpot:.6g}",
        "first": headline(TTFT, ttft),
        "each": headline(TPOT, tpot),
        "text": _SAMPLE,
        "count": tokens,
        "lasts": scaled(ttft + (tokens - 1) * tpot, "s"),
    }
