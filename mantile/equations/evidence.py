"""What the library knows of measured runs, for evidence.eq and drift.eq: tables of runs, ratios, changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from mantile.equations.metrics import (
    E2E,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S,
    POWER,
    PREFILL_TOKENS_PER_S,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.equations.tables import Equations
from mantile.equations.things import things
from mantile.graph.quantity import NOT_KNOWN, Input, Section, as_node, defined
from mantile.library.dates import serial
from mantile.library.evidence import EVIDENCE_LEVELS, Changed, Drawn, EvidenceBase, Pair, Seen

BANDED = {"tpot": TPOT, "ttft": TTFT, "throughput": OUTPUT_TOKENS_PER_S}
"""The results that have ranges, by the name that evidence has for them."""
RANGED = BANDED | {
    "e2e": E2E,
    "prefill_rate": PREFILL_TOKENS_PER_S,
    "interactivity": INTERACTIVITY,
    "usd_per_million_output_tokens": USD_PER_MILLION_OUTPUT_TOKENS,
    "power": POWER,
}
"""The same with those whose ranges follow from these, and power."""
PERCENTILES = ("p10", "p50", "p90")
_OVER_MONTHS = "logarithm, over the root of the months between two days"
_SEEN = {
    "vendor": "chips of the maker",
    "family": "models of the kind",
    "format": "weights of the format",
}
_CHANGED = {  # of a framework that was measured on several days: label, unit, note
    "framework": ("framework", "1", "of runs on several days"),
    "count": ("configurations", "number", "that were measured on several days"),
    "last": ("newest run", "date", ""),
    "p10": ("change, tenth percentile", "1", _OVER_MONTHS),
    "p90": ("change, ninetieth percentile", "1", _OVER_MONTHS),
}
_KINDS = {  # of a measured pair: its note and how sentences call it
    "pair": ("accelerator/framework", "the pair"),
    "runs": ("serving runs that factors were fitted to", "runs"),
    "framework": ("of the pair", "the framework of a pair"),
}


def evidence_features(base: EvidenceBase, disaggregated: bool, of_a_day: bool) -> Iterator[str]:
    """What a library has of evidence, by the names of `when`: those of older workbooks lack some.

    Args:
        of_a_day: whether a scenario states the day of its engine.
    """
    if of_a_day and base.drift:
        yield "drift"
    if base.seen:
        yield "kinds_seen"
    if any(pair.single_user for pair in base.pairs):
        yield "single_users"
    if base.power:
        yield "power_measured"
    if disaggregated and any(band.level == "apart" for band in base.bands):
        yield "apart_ranges"


def evidence(rows: Equations, base: EvidenceBase, family: str) -> tuple[Section, ...]:
    """Make known what was measured; the tables of runs.

    Args:
        family: kind of the model.
    """
    rows.know(defined("evidence.family", "Kind of model", "1", family, "of its operations"))
    _levels(rows, base)
    _power(rows, base)
    rows.know_table(
        "drift.changed", {what: [_changed(base, one, what) for one in base.drift] for what in _CHANGED}
    )
    return _pairs(rows, base), *(_kind(rows, base, kind) for kind in _SEEN if base.seen)


def _pairs(rows: Equations, base: EvidenceBase) -> Section:
    """Measured runs of accelerator and framework; those of a single user stand behind the others."""
    facts = {
        "pair": [_fact("pair", pair, f"Measured: {_key(pair)}", _key(pair), base) for pair in base.pairs],
        "runs": [_fact("runs", pair, f"Runs of {_key(pair)}", pair.runs, base) for pair in base.pairs],
    }
    shown = {"Pair": facts["pair"], "Runs": facts["runs"]}
    if not base.seen:
        facts["framework"] = [
            _fact("framework", pair, f"Framework of {_key(pair)}", pair.framework, base)
            for pair in base.pairs
        ]
        shown["Framework"] = facts["framework"]
    many = sum(not pair.single_user for pair in base.pairs)
    rows.know_table("evidence.measured", facts)
    rows.know_table("evidence.served", {name: figures[:many] for name, figures in facts.items()})
    rows.know_table("evidence.alone", {name: figures[many:] for name, figures in facts.items()})
    return things("Measured pairs", shown, "of accelerator and framework; those of a single user last")


def _fact(kind: str, pair: Pair, label: str, value: float | str, base: EvidenceBase) -> Input:
    """What is known of a measured pair."""
    note, called = _KINDS[kind]
    return defined(
        f"evidence.{kind}.{pair.accelerator}.{pair.framework}",
        label,
        "number" if kind == "runs" else "1",
        value,
        note,
        base.source,
        name=called,
        status="measured" if kind == "runs" else "defined",
    )


def _key(pair: Pair | Drawn) -> str:
    return f"{pair.accelerator}/{pair.framework}"


def _kind(rows: Equations, base: EvidenceBase, kind: str) -> Section:
    """Measured runs of frameworks by maker of the chip, kind of model or format."""
    entries = [entry for entry in base.seen if entry.kind == kind]
    keys = [_seen_fact(base, entry, "key") for entry in entries]
    counts = [_seen_fact(base, entry, "runs") for entry in entries]
    rows.know_table(f"evidence.seen.{kind}", {"key": keys, "runs": counts})
    return things(f"Measured with {_SEEN[kind]}", {"Measured": keys, "Runs": counts})


def _seen_fact(base: EvidenceBase, entry: Seen, what: Literal["key", "runs"]) -> Input:
    key = f"{entry.framework}/{entry.name}"
    return defined(
        f"evidence.seen.{entry.kind}.{key}.{what}".lower(),
        f"Measured with {_SEEN[entry.kind]}: {key}" if what == "key" else f"Runs of {key}",
        "1" if what == "key" else "number",
        key if what == "key" else entry.runs,
        f"framework and {_SEEN[entry.kind]}" if what == "key" else "serving runs that factors were fitted to",
        base.source,
        name=f"{_SEEN[entry.kind]} measured" if what == "key" else "runs",
        status="defined" if what == "key" else "measured",
    )


def _levels(rows: Equations, base: EvidenceBase) -> None:
    """The levels in words, and measured ÷ predicted of each; the last only where the library has ranges of
    it."""
    levels = dict(EVIDENCE_LEVELS)
    if "apart_ranges" not in rows.features:
        del levels["apart"]
    for number, name in enumerate(levels.values(), 1):
        words = {"note": "words for it", "name": "words for levels"}
        rows.know(defined(f"evidence.name.{number}", f"Level {number}", "1", name, **words))
    called = "level where decode is apart"
    apart = defined(
        "evidence.apart",
        called.capitalize(),
        "number",
        len(levels),
        "whatever was measured",
        name=called,
    )
    rows.know(apart)
    for metric, of in BANDED.items():
        for percentile in PERCENTILES:
            rows.know(
                *(
                    Input(
                        f"evidence.{metric}.{percentile}.{level}",
                        f"{of.label}, {percentile}, {meaning}",
                        "1",
                        getattr(base.band(metric, level), percentile),
                        "measured ÷ predicted",
                        base.source,
                        "fitted",
                        shared=True,
                        minimum=0.01,
                        maximum=100,
                        name=f"measured ÷ predicted, {percentile},",
                    )
                    for level, meaning in levels.items()
                )
            )


def _power(rows: Equations, base: EvidenceBase) -> None:
    """Power of GPUs that was measured, and in words where the range of power is known and why it is not."""
    where_measured = ", ".join(
        f"{entry.accelerator} with {entry.framework} ({entry.runs} runs)" for entry in base.power
    )
    unknown = f"{NOT_KNOWN}: power of GPUs was measured " + (
        f"at request rates alone, of {where_measured}" if base.power else "in no public run"
    )
    rows.know_as("evidence.power.unknown", as_node(unknown))
    known = ", ".join(f"{entry.runs} runs of {entry.framework}" for entry in base.power)
    for name, label, said in (
        ("known", "where it is known", f"GPUs measured at request rates, {known}; host as stated"),
        ("unknown", "where it is not", unknown),
    ):
        rows.know(defined(f"evidence.power.words.{name}", f"Range of power, {label}", "1", said, "in words"))
    rows.know_table(
        "evidence.drawn",
        {what: [_drawn(base, entry, what) for entry in base.power] for what in ("pair", *PERCENTILES)},
    )


def _drawn(base: EvidenceBase, entry: Drawn, what: str) -> Input:
    """The pair whose power was measured, or a percentile of measured ÷ estimated."""
    key, is_pair = _key(entry), what == "pair"
    return defined(
        f"evidence.power.{what}.{entry.accelerator}.{entry.framework}",
        f"Power measured: {key}" if is_pair else f"Power, {what}, {key}",
        "1",
        key if is_pair else getattr(entry, what),
        "accelerator/framework" if is_pair else "measured ÷ estimated power of a GPU",
        base.power_source,
        name="pair whose power was measured" if is_pair else f"measured ÷ estimated power, {what}",
        status="defined" if is_pair else "measured",
    )


def _changed(base: EvidenceBase, one: Changed, what: str) -> Input:
    """A figure of a framework that was measured on several days."""
    label, unit, note = _CHANGED[what]
    values = {"count": one.configurations, "last": serial(one.last)}
    return defined(
        f"drift.{what}.{one.framework}",
        f"{one.framework}: {label}",
        unit,
        values[what] if what in values else getattr(one, what),
        note,
        base.drift_source,
        status="defined" if what == "framework" else "measured",
        name=label,
    )
