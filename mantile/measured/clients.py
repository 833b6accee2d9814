"""How the client of a published run sent its prompts: how long they were, how many, whether all at once.

Tables say so in words, if at all. What they leave out is known of some benchmarks, of others it stays
unknown: what was seen in one campaign is no rule for the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from mantile.library.documents import load
from mantile.library.errors import InputError
from mantile.library.profiles import data_folder
from mantile.measured.numbers import whole
from mantile.measured.recipes import ClientFlags, Recipes

Record = dict[str, Any]

_Form = tuple[str, float, Record, str]
UPPER_FIFTH = "lengths are drawn from 0.8 to 1 of what is stated: 0.9 of it on average"
_LENGTHS: tuple[_Form, ...] = (
    (r"uniform\[0\.8", 0.9, {}, UPPER_FIFTH),
    (r"0\.8-1", 1, {}, "lengths are drawn from an upper fifth; their means are stated"),
    ("fixed", 1, {"length_range_ratio": 0}, "all requests have the same lengths"),
    (
        "1 to 2x",
        1,
        {"length_range_ratio": 1, "p95_output_ratio": 1.9},
        "lengths are drawn evenly up to twice their mean",
    ),
    (
        "means|sharegpt",
        1,
        {"length_range_ratio": 1, "p95_output_ratio": 2.5},
        "lengths of real requests: their means are known, p95 of outputs is taken as 2.5 x the mean",
    ),
)
"""Words for how lengths were drawn, mean ÷ what is stated, the fields that follow, and what that assumes."""

_LATENCIES = ("ttft_s", "tpot_s", "ttft_p50_s", "tpot_p50_s")


@cache
def recipes() -> Recipes:
    """How public benchmarks were run."""
    return load(Recipes, data_folder("profiles") / "recipes.yaml")


def source_of(record: Record) -> str:
    """Where a row comes from, in one line."""
    return ", ".join(str(record[key]) for key in ("source", "source_ref") if record.get(key))


def sent(record: Record, fields: Record, metrics: Mapping[str, float], notes: list[str]) -> Record:
    """Lengths, prompts and batch slots of a serving run, as fields of a scenario.

    Args:
        record: the row.
        fields: what is known of its scenario: framework, accelerator, concurrency, plan.
        metrics: what was measured.
        notes: gets what that assumes.
    """
    client = recipes().client(fields["framework"], source_of(record))
    known = client or ClientFlags()
    asked = lengths(record, known, notes)
    timed = any(metrics.get(name) for name in _LATENCIES)
    if fields.get("concurrency"):
        asked |= prompts(record, known, fields["concurrency"], timed, notes)
    if known.batching:
        asked["batching"] = known.batching
    limits = most_requests(fields, notes) if fields.get("concurrency") else {}
    if known.free_slot and "decode" not in fields and fields.get("concurrency", 1) > 1:
        limits["max_requests"] = fields["concurrency"] - 1
        notes.append("one batch slot fewer than concurrency, as fitted to the runs of this campaign")
    return asked | limits


def lengths(record: Record, client: ClientFlags, notes: list[str]) -> Record:
    """Mean lengths and how they are drawn."""
    for column in ("isl", "osl"):
        if record.get(column) in ("", None):
            raise InputError(f"field {column}: holds nothing; expected a number of tokens")
    words = str(record.get("len_sampling") or "").lower()
    if not words and client.drawn_from:
        words = "uniform[0.8"
    unstated: _Form = ("", 1, {}, "lengths are taken as means; how they were drawn is not stated")
    forms = (form for form in _LENGTHS if words and re.search(form[0], words))
    _, share, fields, note = next(forms, unstated)
    if record.get("length_range_ratio") not in ("", None):
        share, fields, note = 1, {"length_range_ratio": record["length_range_ratio"]}, ""
    notes += [note] if note else []
    return {
        "input_tokens": max(1, round(share * float(record["isl"]))),
        "output_tokens": max(1, round(share * float(record["osl"]))),
        **fields,
    }


def prompts(record: Record, client: ClientFlags, concurrency: int, timed: bool, notes: list[str]) -> Record:
    """Prompts of the benchmark for each slot, as far as the record or its campaign says it.

    A run that reports throughput alone handed all its prompts over at once: concurrency is their number.

    Args:
        timed: whether the run reports latencies.
    """
    if record.get("prompts_per_slot") not in ("", None):
        return {"prompts_per_slot": record["prompts_per_slot"]}
    if record.get("num_prompts"):
        return {"prompts_per_slot": whole(record["num_prompts"]) / concurrency}
    count = re.search(r"\b(\d{1,9}) prompts", str(record.get("notes") or ""))
    if count is not None:
        notes.append("prompts of the benchmark as its notes say")
        return {"prompts_per_slot": int(count.group(1)) / concurrency}
    if client.prompts_per_slot is not None:
        notes.append(f"{client.prompts_per_slot:g} prompts per batch slot, as the benchmark does")
        return {"prompts_per_slot": client.prompts_per_slot}
    if not timed:
        notes.append("throughput alone: all prompts handed over at once, start and end left out")
        return {"prompts_per_slot": 0}
    notes.append("how many prompts the benchmark sent is not stated: taken as a service that runs on")
    return {}


def most_requests(fields: Record, notes: list[str]) -> Record:
    """Limits of the engine, where a run has more requests than its default; of a replica, that decodes where
    workers are apart."""
    fields = fields | fields.get("decode", {})
    limits = recipes().engine(fields["framework"], fields["accelerator"])
    if limits is None:
        return {}
    most = limits.max_requests * int(fields.get("attention_dp") or 1)
    if fields["concurrency"] <= most * int(fields.get("dp") or 1):
        return {}
    notes.append(f"at most {limits.max_requests} requests in a batch, the default of the engine")
    return {"max_requests": most} | ({"token_budget": limits.token_budget} if limits.token_budget else {})
