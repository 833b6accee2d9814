"""How well results are known: which serving runs were measured, and the range of results that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mantile.equations.inputs import Workload
from mantile.equations.metrics import (
    E2E,
    INTERACTIVITY,
    OF_COST,
    OUTPUT_TOKENS_PER_S,
    POWER,
    PREFILL_TOKENS_PER_S,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.equations.things import things
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    Span,
    all_of,
    as_node,
    defined,
    equal,
    index,
    is_number,
    join,
    minimum,
    span,
    sum_where,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.evidence import EVIDENCE_LEVELS, Drawn, EvidenceBase, Pair, Seen
from mantile.library.profiles import Library

BANDED = {"tpot": TPOT, "ttft": TTFT, "throughput": OUTPUT_TOKENS_PER_S}
"""The results that have ranges, by the name that evidence has for them."""
INVERSE = {
    "prefill_rate": (PREFILL_TOKENS_PER_S, "ttft"),
    "interactivity": (INTERACTIVITY, "tpot"),
    "usd_per_million_output_tokens": (USD_PER_MILLION_OUTPUT_TOKENS, "throughput"),
}
"""What is large where another result is small, and is as far off as that."""
_WHY = {
    "prefill_rate": "as far off as TTFT, of which it is a part; nobody measured it apart",
    "interactivity": "as far off as TPOT, whose inverse it is",
    "usd_per_million_output_tokens": "as far off as the output tokens of an hour; prices are taken as stated",
}
PERCENTILES = ("p10", "p50", "p90")


@dataclass(frozen=True)
class Evidence:
    """Ranges that hold 80 % of measured runs, as tenth and ninetieth percentile of a result.

    Args:
        level: 1 if no run of the framework was measured, 2 if some, 3 if some on the accelerator; 4 if
            prefill and decode have workers of their own.
        name: the level in words.
        bands: by metric of `BANDED` and `INVERSE`, of e2e and of power, the result at its tenth, fiftieth and
            ninetieth percentile.
        power_basis: what the range of power rests on, or why it is not known.
        money: the ranges that stand with costs.
    """

    level: Quantity
    name: Quantity
    bands: dict[str, tuple[Quantity, Quantity, Quantity]]
    power_basis: Quantity
    sections: tuple[Section, ...]
    money: Section


def evidence(library: Library, ir: ModelGraph, workers: Workers, results: Mapping[str, Quantity]) -> Evidence:
    """The rows of the evidence block.

    Args:
        workers: those that decode.
        results: by metric, what the ranges are of.
    """
    base, disaggregated = library.evidence, workers.ranks.disaggregated
    of_pair, of_framework, pairs, measured = _runs(base, workers.inputs)
    like, kinds, seen = _seen(base, ir, workers)
    if base.seen:
        rows_of_pair, of_pair = _all_seen(of_pair, like, workers)
        of_framework, seen = like["vendor"], (*seen, *rows_of_pair, of_pair)
    levels = _levels(base, disaggregated)
    level, of_disaggregated = _level(of_pair, of_framework, disaggregated, levels)
    names = tuple(
        defined(
            f"evidence.name.{number}", f"Level {number}", "1", name, "words for it", name="words for levels"
        )
        for number, name in enumerate(levels.values(), 1)
    )
    name = Quantity("evidence.name", "Evidence", "1", index(span(names), level))
    bands: dict[str, tuple[Quantity, Quantity, Quantity]] = {}
    ratios: dict[str, list[Span]] = {}
    rows: list[Input | Quantity] = []
    for metric in BANDED:
        bands[metric], ratios[metric], added = _band(base, metric, results[metric], level, levels)
        rows += added
    bands["e2e"] = _end_to_end(bands["ttft"], results, ratios["tpot"], level)
    rows += bands["e2e"]
    money: list[Input | Quantity] = []
    for inverse, (metric_of, other) in INVERSE.items():
        bands[inverse] = _inverse(inverse, metric_of, results[inverse], ratios[other], level)
        (money if metric_of.id.startswith(OF_COST) else rows).extend(bands[inverse])
    bands["power"], basis, measured_power = _power(base, results["power"], workers)
    money += (*measured_power, *bands["power"], basis)
    section = Section(
        "Evidence",
        (*measured, *seen, *of_disaggregated, level, *names, name, *rows),
        "80 % of the measured runs that were not fitted lie between p10 and p90",
    )
    costs = Section(
        "Range of costs and power", tuple(money), "by the measured runs that were not fitted; see Serving"
    )
    return Evidence(
        level=level,
        name=name,
        bands=bands,
        power_basis=basis,
        sections=(pairs, *kinds, section),
        money=costs,
    )


def _power(
    base: EvidenceBase, result: Quantity, workers: Workers
) -> tuple[tuple[Quantity, Quantity, Quantity], Quantity, tuple[Input | Quantity, ...]]:
    """Power at its percentiles, what they rest on, and what was measured.

    Known where GPUs of the accelerator were measured with the framework at a request rate, one server for
    prefill and decode; host and building follow as stated.
    """
    inputs, apart = workers.inputs, workers.ranks.disaggregated
    where_measured = ", ".join(
        f"{entry.accelerator} with {entry.framework} ({entry.runs} runs)" for entry in base.power
    )
    unknown = f"{NOT_KNOWN}: power of GPUs was measured " + (
        f"at request rates alone, of {where_measured}" if base.power else "in no public run"
    )
    facts: list[Input | Quantity] = []
    ratios: dict[str, Quantity] = {}
    basis: Node = as_node(unknown)
    if inputs.request_rate is not None and base.power and not inputs.devices:
        pairs = [_drawn(base, entry, "pair") for entry in base.power]
        here = join(inputs.accelerator, "/", inputs.framework)
        at_rate: Node = inputs.request_rate > 0
        asked = Quantity(
            "evidence.power.asked",
            "As GPUs were measured: at a request rate, one server",
            "flag",
            where(at_rate if apart is None else all_of(at_rate, apart <= 0), 1, 0),
        )
        facts += [*pairs, asked]
        for percentile in PERCENTILES:
            each = [_drawn(base, entry, percentile) for entry in base.power]
            ratios[percentile] = Quantity(
                f"evidence.power.ratio.{percentile}",
                f"Measured ÷ estimated power, {percentile}, in use",
                "1",
                asked * sum_where(span(each), span(pairs), here),
                note="0 where none was measured",
            )
            facts += [*each, ratios[percentile]]
        known = ", ".join(f"{entry.runs} runs of {entry.framework}" for entry in base.power)
        words = [
            defined(f"evidence.power.words.{name}", f"Range of power, {label}", "1", text, "in words")
            for name, label, text in (
                ("known", "where it is known", f"GPUs measured at request rates, {known}; host as stated"),
                ("unknown", "where it is not", unknown),
            )
        ]
        facts += words
        basis = where(ratios["p50"] > 0, *words)
    first, middle, last = (
        Quantity(
            f"evidence.power.{percentile}",
            f"{POWER.label}, {percentile}",
            POWER.unit,
            where(all_of(is_number(result), ratios[percentile] > 0), result * ratios[percentile], NOT_KNOWN)
            if ratios
            else as_node(NOT_KNOWN),
            note="as far off as the power of GPUs; host and building as stated",
        )
        for percentile in PERCENTILES
    )
    rests_on = Quantity("evidence.power_basis", "Range of power rests on", "1", basis)
    return (first, middle, last), rests_on, tuple(facts)


def _drawn(base: EvidenceBase, entry: Drawn, what: str) -> Input:
    """The pair whose power was measured, or a percentile of measured ÷ estimated."""
    key = f"{entry.accelerator}/{entry.framework}"
    is_pair = what == "pair"
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


def _runs(base: EvidenceBase, inputs: Workload) -> tuple[Quantity, Quantity, Section, tuple[Named, ...]]:
    """Measured runs of accelerator and framework, of the framework on any accelerator, a table and rows.

    Runs of a single user stand behind the others, and count for a single user. The second are those of the
    pair in a library that states runs by maker, model and format.
    """
    here = join(inputs.accelerator, "/", inputs.framework)
    pairs = [_fact("pair", pair, f"Measured: {_key(pair)}", _key(pair), base) for pair in base.pairs]
    counts = [_fact("runs", pair, f"Runs of {_key(pair)}", pair.runs, base) for pair in base.pairs]
    many = sum(not pair.single_user for pair in base.pairs)
    served = sum_where(span(counts[:many]), span(pairs[:many]), here)
    alone: tuple[Quantity, ...] = ()
    if many < len(pairs):
        single = sum_where(span(counts[many:]), span(pairs[many:]), here)
        alone = (Quantity("evidence.single_runs", "Measured runs of the pair, one user", "number", single),)
    of_pair = Quantity(
        "evidence.pair_runs",
        "Measured runs of the pair",
        "number",
        served + where(inputs.concurrency <= 1, alone[0], 0) if alone else served,
        note="of a single user only where there is one request at a time" if alone else "",
    )
    facts: dict[str, Sequence[Input]] = {"Pair": pairs, "Runs": counts}
    note = "of accelerator and framework; those of a single user last"
    if base.seen:
        return of_pair, of_pair, things("Measured pairs", facts, note), (*alone, of_pair)
    frameworks = [
        _fact("framework", pair, f"Framework of {_key(pair)}", pair.framework, base) for pair in base.pairs
    ]
    of_framework = Quantity(
        "evidence.framework_runs",
        "Measured runs of the framework",
        "number",
        sum_where(span(counts), span(frameworks), inputs.framework),
        note="on any accelerator",
    )
    table = things("Measured pairs", facts | {"Framework": frameworks}, note)
    return of_pair, of_framework, table, (*alone, of_pair, of_framework)


_SEEN = {
    "vendor": "chips of the maker",
    "family": "models of the kind",
    "format": "weights of the format",
}


def _seen(
    base: EvidenceBase, ir: ModelGraph, workers: Workers
) -> tuple[dict[str, Quantity], tuple[Section, ...], tuple[Named, ...]]:
    """Measured runs of the framework on chips of the maker, with such models, and with such weights.

    By kind, with a table of each, and their rows.
    """
    if not base.seen:
        return {}, (), ()
    family = defined("evidence.family", "Kind of model", "1", ir.family, "of its operations")
    values: dict[str, Node] = {
        "vendor": workers.hardware.vendor,
        "family": family,
        "format": workers.inputs.weights_dtype,
    }
    rows: list[Named] = [family]
    like: dict[str, Quantity] = {}
    tables: list[Section] = []
    for kind, value in values.items():
        entries = [entry for entry in base.seen if entry.kind == kind]
        keys = [_seen_fact(base, entry, "key") for entry in entries]
        counts = [_seen_fact(base, entry, "runs") for entry in entries]
        like[kind] = Quantity(
            f"evidence.{kind}_runs",
            f"Measured runs of the framework, {_SEEN[kind]}",
            "number",
            sum_where(span(counts), span(keys), join(workers.inputs.framework, "/", value)),
        )
        tables.append(things(f"Measured with {_SEEN[kind]}", {"Measured": keys, "Runs": counts}))
        rows.append(like[kind])
    return like, tuple(tables), tuple(rows)


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


def _all_seen(
    of_pair: Quantity, like: Mapping[str, Quantity], workers: Workers
) -> tuple[tuple[Quantity, ...], Quantity]:
    """Runs of the pair, where model and format were measured with the framework too, and batching as here.

    With the rows that they follow from.

    Equal lengths were measured in benchmarks, whose requests start together; a service of them was not. All
    runs held everything on accelerators that are alike.
    """
    devices, counted = workers.inputs.devices, workers.ranks.counted
    client = workers.inputs.length_range_ratio + workers.inputs.prompts_per_slot
    rows = Rows("evidence")
    both = all_of(like["family"] > 0, like["format"] > 0)
    seen = rows("like_seen", "Model and format were measured with the framework", "flag", where(both, 1, 0))
    needs = [seen > 0, workers.ranks.continuous > 0, client > 0]
    if workers.speculation is not None:
        needs.append(workers.speculation.on <= 0)  # what was fitted were runs without drafts
    on_host: Node = workers.rows["memory.host_weights"] + workers.rows["memory.host_kv"]
    if devices:
        first, label = workers.inputs.accelerator, "Accelerators that are not as the first"
        unlike = [
            where(equal(device.accelerator, first), 0, count)
            for device, count in zip(devices[1:], counted[1:], strict=True)
        ]
        on_host = rows("on_host", "What lies on the host", "B", on_host)
        needs.append(rows("unlike", label, "rank", rows.added("unlike", label, "rank", unlike, most=2)) <= 0)
    needs.append(on_host <= 0)
    return rows.quantities(), Quantity(
        "evidence.alike_runs",
        "Measured runs of the pair, for the like of this case",
        "number",
        where(
            all_of(*needs),
            of_pair,
            0,
        ),
        note="0 where this kind of model, format, batching or client was not measured, nor a part elsewhere",
    )


_KINDS = {  # of a measured pair: its note and how sentences call it
    "pair": ("accelerator/framework", "the pair"),
    "runs": ("serving runs that factors were fitted to", "runs"),
    "framework": ("of the pair", "the framework of a pair"),
}


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


def _key(pair: Pair) -> str:
    return f"{pair.accelerator}/{pair.framework}"


def _levels(base: EvidenceBase, disaggregated: Node | None) -> dict[str, str]:
    """The evidence levels in words; the last only where it may hold and the library has ranges for it."""
    stated = disaggregated is not None and any(band.level == "apart" for band in base.bands)
    return {key: meaning for key, meaning in EVIDENCE_LEVELS.items() if key != "apart" or stated}


def _level(
    of_pair: Quantity, of_framework: Quantity, disaggregated: Node | None, levels: Mapping[str, str]
) -> tuple[Quantity, tuple[Input, ...]]:
    """The evidence level, and the level of disaggregated serving where the library has ranges for it."""
    body: Node = 1 + where(of_framework > 0, 1, 0) + where(of_pair > 0, 1, 0)
    last: tuple[Input, ...] = ()
    if disaggregated is not None and "apart" in levels:
        last = (
            defined(
                "evidence.apart",
                "Level where decode is apart",
                "number",
                len(levels),
                "whatever was measured",
                name="level where decode is apart",
            ),
        )
        body = body * (1 - disaggregated) + last[0] * disaggregated
    elif disaggregated is not None:  # libraries of older bundles: at most 2 where decode is apart
        body = minimum(body, 1 + (1 - disaggregated) + 1)
    return Quantity("evidence.level", "Evidence level", "number", body), last


def _band(
    base: EvidenceBase, metric: str, result: Quantity, level: Quantity, levels: Mapping[str, str]
) -> tuple[tuple[Quantity, Quantity, Quantity], list[Span], list[Input | Quantity]]:
    """A result at its tenth, fiftieth and ninetieth percentile, the ratios of each, and all these rows."""
    label = BANDED[metric].label
    rows: list[Input | Quantity] = []
    percentiles: list[Quantity] = []
    spans: list[Span] = []
    for percentile in PERCENTILES:
        ratios = [
            Input(
                f"evidence.{metric}.{percentile}.{key}",
                f"{label}, {percentile}, {meaning}",
                "1",
                getattr(base.band(metric, key), percentile),
                "measured ÷ predicted",
                base.source,
                "fitted",
                shared=True,
                minimum=0.01,
                maximum=100,
                name=f"measured ÷ predicted, {percentile},",
            )
            for key, meaning in levels.items()
        ]
        spans.append(span(ratios))
        percentiles.append(
            Quantity(
                f"evidence.{metric}.{percentile}",
                f"{label}, {percentile}",
                result.unit,
                result * index(spans[-1], level),
            )
        )
        rows += [*ratios, percentiles[-1]]
    return (percentiles[0], percentiles[1], percentiles[2]), spans, rows


def _end_to_end(
    ttft: tuple[Quantity, Quantity, Quantity],
    results: Mapping[str, Quantity],
    ratios: Sequence[Span],
    level: Quantity,
) -> tuple[Quantity, Quantity, Quantity]:
    """End to end at its percentiles: TTFT at its own, and generation as far off as TPOT."""
    first, middle, last = (
        Quantity(
            f"evidence.e2e.{percentile}",
            f"{E2E.label}, {percentile}",
            E2E.unit,
            start + (results["e2e"] - results["ttft"]) * index(of_tpot, level),
            note="TTFT at its percentile, generation as far off as TPOT",
        )
        for percentile, start, of_tpot in zip(PERCENTILES, ttft, ratios, strict=True)
    )
    return first, middle, last


def _inverse(
    name: str, metric: Metric, result: Quantity, ratios: Sequence[Span], level: Quantity
) -> tuple[Quantity, Quantity, Quantity]:
    """What is known as well as another result, and small where that is large."""
    first, middle, last = (
        Quantity(
            f"evidence.{name}.{percentile}",
            f"{metric.label}, {percentile}",
            result.unit,
            where(is_number(result), result / index(of_other, level), NOT_KNOWN)
            if metric.id.startswith(OF_COST)
            else result / index(of_other, level),
            note=_WHY[name],
        )
        for percentile, of_other in zip(PERCENTILES, reversed(ratios), strict=True)
    )
    return first, middle, last
