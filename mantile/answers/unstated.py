"""What a scenario does not state, what is taken for it, and how far another value would move the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mantile.answers.text import scaled
from mantile.equations.metrics import (
    KV_CAPACITY_SEQUENCES,
    TPOT,
    TTFT,
)
from mantile.estimates.estimate import Estimate
from mantile.estimates.results import is_possible
from mantile.library.errors import InputError
from mantile.library.models import caches

MOVES = 0.1
"""Share of TTFT or TPOT by which a value has to move the answer to decide it."""
_OF_LOAD = ("prompts_per_slot", "acceptance_rate")  # fields that nobody chooses: they follow from who asks
_HALF = 0.5  # of each prompt that is in the prompt cache
_ROUNDS = 10  # that a benchmark sends for each request in flight, usually
_SHORT_DRAFTS = 0.4  # acceptance rate of texts that are hard to guess


@dataclass(frozen=True)
class Unstated:
    """A field that a scenario does not state.

    Args:
        field: of the scenario.
        label: what it is called in an answer.
        taken: what is taken for it, in words.
        otherwise: what another value would do, in words; `value` is that value.
        ttft, tpot: in s with that value; None where nobody knows it.
        decides: whether it moves one of them by more than 10 %.
    """

    field: str
    label: str
    taken: str
    value: Any
    otherwise: str
    ttft: tuple[float | None, float | None]
    tpot: tuple[float | None, float | None]
    decides: bool

    def to_dict(self) -> dict[str, Any]:
        """One of `unstated` in --json: TTFT and TPOT in s, from the lower to the higher."""
        return {
            "field": self.field,
            "taken": self.taken,
            "otherwise": self.value,
            "decides": self.decides,
            TTFT.key: _ordered(self.ttft),
            TPOT.key: _ordered(self.tpot),
        }


def unstated(made: Estimate, quick: bool = False) -> tuple[Unstated, ...]:
    """What moves the base scenario of an estimate, what decides first.

    Args:
        quick: only what the same graph answers; a prompt cache needs another, which takes as long as the
            estimate.
    """
    found = [one for one in _all(made, quick) if one is not None]
    return tuple(sorted(found, key=lambda one: not one.decides))


def _all(made: Estimate, quick: bool) -> Iterator[Unstated | None]:
    scenario, values = made.scenario, made.columns[0].values
    if scenario.disaggregated or scenario.devices:
        return
    loaded = not (scenario.request_rate or scenario.sessions)
    if loaded and scenario.prompts_per_slot is None and int(values["concurrency"]) > 1:
        label, words = "client", f"a benchmark of {_ROUNDS} rounds"
        yield _moved(made, "prompts_per_slot", label, "steady", float(_ROUNDS), words)
    if values.get("speculation", "none") != "none" and not (
        scenario.acceptance_rate or scenario.acceptance_length
    ):
        taken = f"{values['acceptance_rate']:g}" if values.get("acceptance_rate") else "as usual"
        words = f"{_SHORT_DRAFTS:g}"
        yield _moved(made, "acceptance_rate", "acceptance", taken, _SHORT_DRAFTS, words)
    if scenario.kv_dtype is None:
        other = next((name for name in caches(made.model) if name != values["kv_dtype"]), None)
        if other is not None and made.library.framework(str(values["framework"])).weights == "checkpoint":
            yield _moved(made, "kv_dtype", "KV cache", str(values["kv_dtype"]), other, other)
    cached = scenario.prefix_hit_rate or scenario.turns or scenario.prefixes or scenario.shared_prefix
    if not quick and not cached and not scenario.classes_in_use:
        words = "half of each prompt"
        yield _moved(made, "prefix_hit_rate", "prompt cache", "none", _HALF, words)


def _moved(made: Estimate, field: str, label: str, taken: str, value: Any, words: str) -> Unstated | None:
    """What another value of a field does; None where a scenario cannot have it, or nothing changes."""
    scenario = made.scenario.replace(variants=[], decision=None, **{field: value})
    try:
        other = made.again(scenario).results()
    except InputError:
        return None
    if not is_possible(other["feasibility"]):
        return None
    results = made.results()
    said, moved = [], {}
    for metric, name in ((TTFT, "TTFT"), (TPOT, "TPOT")):
        now, then = results[metric.key], other[metric.key]
        moved[metric.key] = now, then
        if _differs(now, then):
            said.append(f"{name} {scaled(then, 's')}")
    money = other["usd_per_million_tokens"]["output"]
    if _differs(results["usd_per_million_tokens"]["output"], money):
        said.append(scaled(money, "USD"))
    room, now = other[KV_CAPACITY_SEQUENCES.key], results[KV_CAPACITY_SEQUENCES.key]
    if field == "kv_dtype" and room and now:
        said.append(f"{room / now:.2g} times the room")
    if not said:
        return None
    decides = field in _OF_LOAD and any(_differs(*ends, MOVES) for ends in moved.values())
    told = f"{words}: {', '.join(said)}"
    return Unstated(field, label, taken, value, told, moved[TTFT.key], moved[TPOT.key], decides)


def _differs(now: float | None, then: float | None, by: float = 0.01) -> bool:
    return now is not None and then is not None and now > 0 and abs(then / now - 1) > by


def _ordered(ends: tuple[float | None, float | None]) -> list[float] | None:
    known = [end for end in ends if end is not None]
    return sorted(known) if len(known) == len(ends) else None
