"""Why one plan is slower than another: times of both, and the parts whose differences add up to theirs.

Every part is a row of the graph, in parts.eq; its difference is that of two columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, overload

from mantile.answers.text import number, scaled
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, USD_PER_MILLION_OUTPUT_TOKENS
from mantile.estimates.estimate import Estimate
from mantile.estimates.html import html_table
from mantile.estimates.results import is_possible, told_errors
from mantile.graph.quantity import Named
from mantile.library.dates import day_of
from mantile.library.documents import json_data
from mantile.library.fields import DECODE
from mantile.library.scenario_fields import DEVICE_INPUTS, SCENARIO_FIELDS, input_field
from mantile.roundtrip.compare import Comparison
from mantile.roundtrip.compare import compare as all_differences

TIE = 0.01
"""Times that differ by less are called a tie."""
_SMALL = 0.01  # of a difference: parts below are not told in the sentence
_NAMED = 3  # differences that the name of a plan tells
_TIMES = {"tpot": ("serving.tpot", "decode"), "ttft": ("serving.ttft", "prefill"), "e2e": ("serving.e2e", "")}
"""By metric its row, and the pass of which its parts have messages."""
_OF_REQUEST = {"serving.ttft": "time to the first token", "serving.generation": "all other tokens"}
_LABELS = {"tpot": "TPOT", "ttft": "TTFT", "e2e": "end to end"}
_LOADS = ("sessions", "request_rate", "concurrency", "think_time")
_PLAIN = re.compile(r"TP\d+|\d+ devices")
"""What the number of machines tells of a plan."""
_DEGREES = ("dp", "tp", "attention_dp", "cp", "dcp", "ep", "pp", "serving")
_IN_NAMES = {
    *(f"{prefix}{degree}" for prefix in ("", DECODE) for degree in _DEGREES),
    *(f"{prefix}accelerator" for prefix in ("", DECODE)),
    *DEVICE_INPUTS,
}
"""Fields that the degrees and machines of a plan tell."""
_WORDS = {
    "weights_dtype": "{} weights",
    "kv_dtype": "{} KV cache",
    "framework": "{}",
    "batching": "{} batching",
    "concurrency": "{} requests",
    "request_rate": "{} requests/s",
    "sessions": "{} sessions",
    "input_tokens": "{} tokens in",
    "output_tokens": "{} tokens out",
    "speculation": "{} drafts",
    "draft_tokens": "{} draft tokens",
    "price_basis": "{} price",
}
"""What a plan is called by a field; by others, label and value."""
_SPEAK = {"mtp": "MTP", "eagle": "EAGLE"}
"""Kinds of drafts as people write them."""
_MESSAGES = {
    "all_reduce": "all-reduces",
    "inner_reduce": "all-reduces inside mixers",
    "ffn_sum": "sums of FFNs",
    "sequence": "scatters and gathers",
    "gather": "gathers of tokens",
    "dispatch": "dispatches",
    "combine": "combines",
    "context": "context exchanges",
    "query_shares": "gathers of queries",
    "result_shares": "scatters of results",
    "p2p": "messages between stages",
}
_NOUNS = {"weights": "reading weights", "cache": "reading the KV cache", "states": "reading states"}
_SEVERAL = {"activations", "draft", "drafts_kept", "launches", "chunks", "pipeline", "stall", *_MESSAGES}
"""Parts of which sentences speak in the plural."""


@dataclass(frozen=True)
class Part:
    """A part of a time.

    Args:
        id: of its row; `name` what it is called.
        a_s, b_s: seconds of A and of B; 0 where a plan has no such part.
        counts: messages of a pass in A and in B; None of what is no message.
    """

    id: str
    name: str
    a_s: float
    b_s: float
    counts: tuple[int, int] | None = None

    @property
    def difference_s(self) -> float:
        """Seconds of B less those of A."""
        return self.b_s - self.a_s


@dataclass(frozen=True)
class Waterfall:
    """A time of two plans, and the parts whose differences add up to the difference.

    Args:
        metric: tpot, ttft or e2e.
        a_s, b_s: seconds of A and of B.
    """

    metric: str
    a_s: float
    b_s: float
    parts: tuple[Part, ...]

    def lines(self) -> Iterator[tuple[str, Part | Waterfall]]:
        """The lines of a table: each part with its name, then the whole."""
        yield from ((part.name, part) for part in self.parts)
        yield self.label, self

    @property
    def label(self) -> str:
        """What the time is called."""
        return _LABELS[self.metric]

    @property
    def difference_s(self) -> float:
        """Seconds of B less those of A."""
        return self.b_s - self.a_s


@dataclass(frozen=True)
class Plan:
    """One of the two plans.

    Args:
        name: what it is called by what it has and the other has not: TP8, fp8 weights.
        title: model and machines.
        scenario: its fields, as stated.
        metrics: headline metrics by their names in tables of sweeps, SI units; None where nobody knows one.
        missing: why it cannot be, and what is missing; empty where it can.
    """

    name: str
    title: str
    scenario: Mapping[str, Any]
    metrics: Mapping[str, float | None]
    missing: str = ""


@dataclass(frozen=True, repr=False)
class Why(Comparison):
    """What differs between two plans, and why one is slower.

    Prints its sentence; differences are those of B less those of A.

    Args:
        plans: A and B.
        waterfalls: TPOT, TTFT and end to end; none where a plan cannot be.
        sentences: who is slower and by which parts; TTFT; money and throughput.

    Example:
        why = mantile.compare(estimate, mantile.estimate(scenario.replace(tp=4)))
        why.sentence                       # TP4 is 44 % slower than TP8 for one user, ...
        why.waterfalls[0].parts[0].difference_s    # seconds
    """

    plans: tuple[Plan, ...] = ()
    waterfalls: tuple[Waterfall, ...] = ()
    sentences: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        a, b = self.plans
        rows = [
            (name, scaled(of.a_s, "s"), scaled(of.b_s, "s"), difference(of.difference_s))
            for times in self.waterfalls
            for name, of in times.lines()
        ]
        return html_table(self.sentence, ("", a.name, b.name, "difference"), rows)

    @property
    def sentence(self) -> str:
        """The answer in a few sentences."""
        return " ".join(self.sentences)

    def why(self) -> list[dict[str, Any]]:
        """Every part: metric, part, a_s, b_s and difference_s, in seconds."""
        return [
            {
                "metric": times.metric,
                "part": part.id,
                "name": part.name,
                "a_s": part.a_s,
                "b_s": part.b_s,
                "difference_s": part.difference_s,
            }
            for times in self.waterfalls
            for part in times.parts
        ]

    def to_dict(self) -> dict[str, Any]:
        """What `mantile compare --json` prints of two plans."""
        plans = {
            letter: {
                "name": plan.name,
                "title": plan.title,
                "missing": plan.missing or None,
                "scenario": dict(plan.scenario),
                "metrics": dict(plan.metrics),
            }
            for letter, plan in zip("ab", self.plans, strict=True)
        }
        whole = super().to_dict() | plans | {"sentence": self.sentence, "why": self.why()}
        found: dict[str, Any] = json_data(whole)
        return found


def difference(seconds: float) -> str:
    """A difference of times with its sign.

    >>> difference(0.0024), difference(-8.5e-05), difference(0.0)
    ('+2.40 ms', '−85.0 µs', '0')
    """
    return f"{'+' if seconds > 0 else '−'}{scaled(abs(seconds), 's')}" if seconds else "0"


@overload
def compare(a: Estimate, b: Estimate, *, side_by_side: bool = False) -> Why: ...


@overload
def compare(
    a: str | Path | Estimate, b: str | Path | Estimate, *, side_by_side: bool = False
) -> Comparison: ...


def compare(a: str | Path | Estimate, b: str | Path | Estimate, *, side_by_side: bool = False) -> Comparison:
    """Compare two workbooks, scenario files, bundles or estimates; of two estimates also why one is slower.

    Scenarios are matched by their place, base with base; why is told of the bases. Of a workbook the inputs
    in its cells count.

    Args:
        side_by_side: read B, a file, in a process of its own meanwhile. As that process imports what this
            program began with, a script that asks for it needs `if __name__ == "__main__":`.

    Raises:
        InputError: naming file and field or cell, for what cannot be read.

    Example:
        why = mantile.compare(estimate, mantile.estimate(scenario.replace(tp=4)))
        why.sentence
    """
    found = all_differences(a, b, side_by_side=side_by_side)
    if not (isinstance(a, Estimate) and isinstance(b, Estimate)):
        return found
    names = _names(a, b)
    plans = tuple(map(_plan, (a, b), names))
    falls = () if any(plan.missing for plan in plans) else tuple(_waterfalls(a, b))
    named = tuple(of.scenario.name for of in (a, b) if of.scenario.name)
    said = tuple(_begun(each, named) for each in _sentences(plans, falls, _load(a, b), found.differ))
    facts = {each.name: getattr(found, each.name) for each in fields(Comparison)}
    return Why(**facts, plans=plans, waterfalls=falls, sentences=said)


def _plan(estimate: Estimate, name: str) -> Plan:
    results = estimate.results()
    missing = ""
    if not is_possible(str(results["feasibility"])):
        missing = str(told_errors(results)[0]["message"]).rstrip(".")
    stated = estimate.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    metrics = {metric.column: value for metric, value in estimate.metrics().items()}
    return Plan(name, estimate.title, stated, metrics, missing)


def _waterfalls(a: Estimate, b: Estimate) -> Iterator[Waterfall]:
    """Those of times that both plans have."""
    known = [{metric.attribute: value for metric, value in of.metrics().items()} for of in (a, b)]
    for metric, (whole, phase) in _TIMES.items():
        if any(of[metric] is None for of in known):
            continue
        start = f"parts.{metric}."
        rows: list[dict[str, Named]] = [
            {each.id: each for each in of.equations.parts if each.id.startswith(start)}
            or {each: of.equations.figures[each] for each in _OF_REQUEST}
            for of in (a, b)
        ]
        parts = (_part(a, b, rows, each, phase) for each in _in_order(*rows))
        mine, theirs = (_value(of, of.equations.figures[whole]) for of in (a, b))
        yield Waterfall(metric, mine, theirs, tuple(part for part in parts if part.a_s or part.b_s))


def _in_order(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Ids of both, those that one has behind what comes before them there."""
    order = list(mine)
    at = 0
    for each in theirs:
        if each in mine:
            at = order.index(each) + 1
        else:
            order.insert(at, each)
            at += 1
    return order


def _part(a: Estimate, b: Estimate, rows: list[dict[str, Named]], identifier: str, phase: str) -> Part:
    figures = [of.get(identifier) for of in rows]
    name = next(figure.name for figure in figures if figure is not None)
    counts = [of.equations.figures.get(f"{phase}.{identifier.rpartition('.')[2]}.count") for of in (a, b)]
    return Part(
        identifier,
        _OF_REQUEST.get(identifier, name),
        _value(a, figures[0]),
        _value(b, figures[1]),
        None if counts == [None, None] else (round(_value(a, counts[0])), round(_value(b, counts[1]))),
    )


def _value(estimate: Estimate, figure: Named | None) -> float:
    """A figure of the base; 0 where there is none."""
    return 0.0 if figure is None else float(estimate.values()[figure])


def _names(a: Estimate, b: Estimate) -> tuple[str, str]:
    """What two plans are called: by what differs; A and B where nothing of it is said in a word."""
    columns = a.columns[0], b.columns[0]
    if a.scenario.name and b.scenario.name and a.scenario.name != b.scenario.name:
        return a.scenario.name, b.scenario.name
    told: tuple[list[str], list[str]] = ([], [])
    lacking: tuple[list[str], list[str]] = ([], [])

    def tell(*words: str, what: str = "") -> None:
        if words[0] != words[1]:
            for of, lacks, word in zip(told, lacking, words, strict=True):
                (of if word else lacks).append(word or f"no {what}")

    tell(a.model.name, b.model.name)
    machines = [str(of.values()[of.equations.machines]) for of in (a, b)]
    alike = len(set(map(_chips, machines))) == 1
    if not alike:
        tell(*machines)
    if alike or not all(_PLAIN.fullmatch(column.name) for column in columns):
        tell(*(column.name for column in columns))
    given = {name for column in columns for name in column.given} - _IN_NAMES
    if len({column.values["speculation"] for column in columns}) > 1:
        given = {name for name in given if not name.startswith(("draft_", "acceptance_"))}
    for name in sorted(given, key=lambda name: ([*SCENARIO_FIELDS, name].index(name), name)):
        tell(*(_word(of, name) for of in (a, b)), what=name.replace("_", " "))
    classes = [len(of.scenario.classes) for of in (a, b)]
    tell(*(f"{count} classes" if count else "" for count in classes), what="classes")
    over = [{item.id: item.value for item in column.overrides} for column in columns]
    for name in dict.fromkeys((*over[0], *over[1])):
        tell(*(f"{name} {_amount(of[name])}" if name in of else f"{name} unchanged" for of in over))
    prices = [of.scenario.prices or {} for of in (a, b)]
    for chip in dict.fromkeys((*prices[0], *prices[1])):
        tell(*(f"{_amount(of[chip])} USD/h" if chip in of else "price of the library" for of in prices))
    first, second = (" · ".join((of or lacks)[:_NAMED]) for of, lacks in zip(told, lacking, strict=True))
    return ("A", "B") if first == second else (first or "A", second or "B")


def _chips(machines: str) -> frozenset[str]:
    """The chips of machines in words, such as 2 × H100 SXM → 1 × H200 SXM."""
    return frozenset(words.partition(" × ")[2] for words in re.split(" [+→] ", machines))


def _word(of: Estimate, name: str) -> str:
    """A field of a plan in a word or two; nothing where it has none."""
    value, called = of.columns[0].values.get(name), name.replace("_", " ")
    if value is None or (not value and name in _LOADS):
        return ""
    if name == "speculation" and value == "none":
        return "no drafts"
    if value in (0, "default"):
        return f"{value or 'no'} {called}"
    field = input_field(name)
    if name == "framework":
        value = of.library.framework(str(value)).name
    elif field.is_day:
        value = day_of(float(value)).isoformat()
    shown = _SPEAK.get(value, value) if isinstance(value, str) else _amount(value)
    if name not in _WORDS:
        return f"{called} {shown}{f' {field.unit}' if field.kind is float and field.unit != '1' else ''}"
    words = _WORDS[name].format(shown)
    return words.replace("requests", "request") if words == "1 requests" else words


def _amount(value: float) -> str:
    """A number as somebody stated it, thousands apart.

    >>> _amount(2048), _amount(2.345), _amount(0.5)
    ('2,048', '2.345', '0.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,g}"


def _load(a: Estimate, b: Estimate) -> str:
    """Under which load both are, where it is the same."""
    asked = [[float(of.columns[0].values.get(name) or 0) for name in _LOADS[:3]] for of in (a, b)]
    if asked[0] != asked[1]:
        return ""
    sessions, rate, concurrency = asked[0]
    if sessions:
        return f" with {_amount(sessions)} sessions"
    if rate:
        return f" at {_amount(rate)} requests/s"
    return " for one user" if concurrency == 1 else f" with {_amount(concurrency)} requests in flight"


def _sentences(
    plans: tuple[Plan, ...], falls: tuple[Waterfall, ...], load: str, differ: bool
) -> Iterator[str]:
    if not differ:
        yield "A and B are the same plan."
    for plan in plans if differ else plans[:1]:
        if plan.missing:
            yield f"{plan.name if differ else 'It'} cannot be: {plan.missing}."
    if not differ:
        return
    for times in falls:
        if times.metric != "e2e":
            yield _slower(times, plans, load if times is falls[0] else "")
    if not any(plan.missing for plan in plans):
        yield from _money(plans)


def _begun(sentence: str, named: tuple[str, ...]) -> str:
    """A sentence with a capital in front, but for a term such as fp8 and a name that somebody gave.

    >>> _begun("static batching is slower", ()), _begun("fp8 weights are slower", ())
    ('Static batching is slower', 'fp8 weights are slower')
    """
    plain = sentence.partition(" ")[0].isalpha() and not sentence.startswith(named)
    return f"{sentence[0].upper()}{sentence[1:]}" if plain else sentence


def _slower(times: Waterfall, plans: tuple[Plan, ...], load: str) -> str:
    """Who is slower in a time, and by what."""
    at = 0 if times.a_s > times.b_s else 1
    slow, fast = (plans[place].name for place in (at, 1 - at))
    more, less = max(times.a_s, times.b_s), min(times.a_s, times.b_s)
    both = f"{times.label} {_against(scaled(more, 's'), scaled(less, 's'))}"
    if more <= less * (1 + TIE):
        amounts = _against(scaled(times.a_s, "s"), scaled(times.b_s, "s"))
        a, b = (plan.name for plan in plans)
        head = f"{a} and {b} differ by less than 1 % in {times.label}{load}, {amounts}"
    elif more < 2 * less:
        head = f"{slow} {_is(slow)} {(more / less - 1) * 100:.0f} % slower than {fast}{load}, {both}"
    else:
        long = f"{_takes(slow)} {number(more / less, 2)} times as long as"
        head = f"{slow} {long} {fast}{load}, {both}"
    sign = 1 if at else -1
    by_part = sorted(times.parts, key=lambda part: -sign * part.difference_s)
    least = _SMALL * max(more - less, TIE * more)
    told = [
        _cause(part, slow, fast, bool(at))
        for part, way in ((by_part[0], sign), (by_part[-1], -sign))
        if way * part.difference_s > least
    ]
    return f"{head}{': ' if told else ''}{', '.join(told)}."


def _is(plan: str) -> str:
    return "are" if _is_plural(plan) else "is"


def _takes(plan: str, verb: str = "take") -> str:
    return verb if _is_plural(plan) else f"{verb}s"


def _is_plural(plan: str) -> bool:
    """Whether a plan is called by several things, fp8 weights; what is told in parts is one plan.

    >>> [_is_plural(plan) for plan in ("fp8 weights", "TP8", "8 × H100 SXM", "TP2 · fp8 weights")]
    [True, False, False, False]
    """
    last = plan.split()[-1]
    return " · " not in plan and last.islower() and last.endswith("s") and last != "s"


def _against(more: str, less: str) -> str:
    """Two amounts; their unit once where it is the same."""
    value, _, unit = more.partition(" ")
    return f"{value} against {less}" if less.endswith(f" {unit}") else f"{more} against {less}"


def _cause(part: Part, slow: str, fast: str, b_is_slow: bool) -> str:
    """What a part adds to the slow plan, or saves it."""
    own, other = (part.b_s, part.a_s) if b_is_slow else (part.a_s, part.b_s)
    key = part.id.rpartition(".")[2]
    noun = _MESSAGES.get(key) or _NOUNS.get(key, part.name)
    if part.counts is not None and part.counts[b_is_slow]:
        noun = f"{part.counts[b_is_slow]:,} {noun}"
    one = "" if key in _SEVERAL else "s"
    time = scaled(abs(part.difference_s), "s")
    if min(own, other) < 0:
        return f"{noun} save{one} {fast if own > other else slow} {time}"
    if own > other:
        return f"{noun} take{one} {time}{' more' if other else ''}"
    return f"{noun} take{one} {time} less" if own else f"{noun} of {fast} take{one} {time}"


def _money(plans: tuple[Plan, ...]) -> Iterator[str]:
    usd, rate = (
        [plan.metrics.get(metric.column) for plan in plans]
        for metric in (USD_PER_MILLION_OUTPUT_TOKENS, OUTPUT_TOKENS_PER_S)
    )
    if usd[0] is None or usd[1] is None:
        unknown = " and ".join(plan.name for plan, value in zip(plans, usd, strict=True) if value is None)
        yield f"Costs of {unknown} are not known."
    else:
        at = 0 if usd[0] > usd[1] else 1
        high, low = usd[at], usd[1 - at]
        assert high is not None and low is not None
        amounts = f"{number(high, 3)} against {number(low, 3)} USD per million output tokens"
        if high <= low * (1 + TIE):
            yield f"Both cost the same within 1 %, {amounts}."
        else:
            by = f"{(high / low - 1) * 100:.0f} % more than"
            if high >= 2 * low:
                by = f"{number(high / low, 2)} times as much as"
            dear = plans[at].name
            yield f"{dear} {_takes(dear, 'cost')} {by} {plans[1 - at].name}, {amounts}."
    known = [value for value in rate if value is not None]
    if len(known) == len(plans):
        each = (f"{plan.name} {number(value, 3)}" for plan, value in zip(plans, known, strict=True))
        yield f"Output tokens/s: {', '.join(each)}."
