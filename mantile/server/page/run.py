"""The view `Run`: does it work, how fast, for how much, and is it to be believed?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd
from markupsafe import Markup

from mantile.equations.checks import FITS, INSUFFICIENT, WITH_OFFLOAD
from mantile.equations.forward import Pass, group_names
from mantile.equations.metrics import (
    INTERACTIVITY,
    JOULES_PER_OUTPUT_TOKEN,
    MEMORY_PER_ACCELERATOR,
    METRICS,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
    Metric,
)
from mantile.estimate.sweep import FRONT, pareto, possible, sweep
from mantile.graph.evaluate import Program
from mantile.graph.quantity import as_node
from mantile.library.errors import InputError
from mantile.library.scenario import with_fields
from mantile.optimize.size import size
from mantile.optimize.space import CHOSEN
from mantile.server.documents import fields_of
from mantile.server.page import charts
from mantile.server.page.answers import NAME, Answer, answer
from mantile.server.page.state import DEGREES, GPUS, START, State
from mantile.server.page.text import change, headline, number, parts, percent, scaled, signed

_MOST_GPUS = 1024
_LARGEST = 5  # modules of a pass that are shown
_PLANS = 3  # plans of the picture
_LOADS = tuple(2**power for power in range(9))
REMEDIES: Mapping[str, str] = {
    "PRICE": "price",
    "MEMORY": "weights_dtype",
    "HEADS": "tp",
    "KV_HEADS": "tp",
    "FFN": "tp",
    "EP": "ep",
    "PP": "pp",
    "CP": "cp",
    "TP": "tp",
    "REPLICA": "tp",
    "NO_LINK": "system",
    "SYSTEM": "system",
    "STAGE": "pp",
    "FRAMEWORK": "framework",
    "CONTEXT": "input_tokens",
    "REQUEST": "input_tokens",
    "KV_QUEUE": "concurrency",
    "SATURATED": "concurrency",
    "OVERLOADED": "concurrency",
    "NO_NATIVE": "weights_dtype",
    "WEIGHT_ONLY": "weights_dtype",
}
"""By the start of a code the field of the form that is its way out."""


@dataclass(frozen=True)
class Tile:
    """A headline figure.

    Args:
        id: of the figure behind it, for the way to how it is worked out.
        value, unit: as a headline writes them.
        strip: the value on its range.
        range: in words; empty where there is none.
        second: another figure below it: label, text and id.
    """

    id: str
    label: str
    value: str
    unit: str
    strip: Markup
    range: str
    definition: str
    second: tuple[str, str, str]


def at(results: Mapping[str, Any], key: str) -> Any:
    """The entry of nested results that keys joined by dots lead to; None where there is none."""
    value: Any = results
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def classes(found: Answer) -> list[tuple[str, bool]]:
    """The three classes, and which of them holds."""
    feasibility = str(found.results["feasibility"])
    names = (("In GPU memory", FITS), ("Runs with offload", WITH_OFFLOAD))
    listed = [(words, feasibility == name) for words, name in names]
    last = "Not enough memory" if feasibility != "invalid" else "Cannot be"
    return [*listed, (last, not any(holds for _, holds in listed))]


def verdict(found: Answer) -> str:
    """What it comes to, in one sentence."""
    results, title = found.results, found.estimate.title
    if not found.possible:
        short = results["feasibility"] == INSUFFICIENT
        return f"{title}: {'not enough memory' if short else 'this plan cannot be'}"
    users = number(float(results.get("batch") or results["concurrency"]))
    first = f"{title} answers in {headline(TTFT, results['ttft_s'])}"
    if results["tpot_s"] is None:
        return first
    pace = headline(INTERACTIVITY, results["interactivity_tokens_per_s"]).replace("/user", "")
    load = number(float(results["concurrency"]))
    whom = f"each of {load} users" if float(results["concurrency"]) > 1 else "one user"
    return f"{first}, then writes {pace} to {whom}" if users else first


def lead(found: Answer) -> str:
    """Whether it fits, with room to spare, and what limits it."""
    results = found.results
    if not found.possible:
        errors = results["checks"]["errors"]
        return str(errors[0]["message"]) if errors else "no check says why"
    used, room = results["memory_per_accelerator_bytes"], results["memory_capacity_bytes"]
    seats = results["kv_capacity_sequences"]
    said = [f"It fits: {scaled(used, 'B')} of {scaled(room, 'B')} on the fullest GPU"]
    if seats:
        said.append(f"room for {math.floor(seats):,} requests of this length")
    limits = f"{results['bottleneck']['prefill']} limits prefill".capitalize()
    if results["tpot_s"] is not None:
        limits += f", {results['bottleneck']['decode']} limits decode"
    return f"{', '.join(said)}. {limits}."


def tiles(found: Answer) -> list[tuple[str, list[Tile]]]:
    """The groups of headline figures, by the question they answer."""
    results, graph = found.results, found.estimate.equations
    values = found.estimate.values()
    bands = results["range_80"] if found.possible else {}
    floor = {
        TTFT: float(values[graph.floors.ttft]),
        TPOT: float(values[graph.floors.tpot]),
    }

    def tile(
        metric: Metric, label: str, definition: str, band: str, second: Metric | None, said: str
    ) -> Tile:
        value = at(results, metric.key) if found.possible or not metric.of_plan else None
        ends = bands.get(band, {})
        low, high = ends.get("p10"), ends.get("p90")
        shown, unit = ("–", "") if value is None and not found.possible else parts(headline(metric, value))
        words = ""
        if low is not None and high is not None:
            words = f"80\u00a0%: {parts(headline(metric, low))[0]} to {headline(metric, high)}"
        other = "–" if second is None or not found.possible else headline(second, at(results, second.key))
        return Tile(
            metric.id,
            label,
            shown,
            unit,
            charts.strip(value, low, high, floor.get(metric) if value is not None else None),
            words,
            definition,
            (said, other, "" if second is None else second.id),
        )

    money = tile(
        USD_PER_MILLION_OUTPUT_TOKENS,
        "Million output tokens",
        f"{results['price_basis']} price, utilisation {percent(results['utilisation'], 3)}",
        "",
        USD_PER_HOUR,
        "Per hour",
    )
    memory = _memory_tile(found)
    return [
        (
            "How fast for one user?",
            [
                tile(
                    TTFT,
                    "Time to first token",
                    "mean from arrival, queueing included; dotted: floor",
                    "ttft",
                    TTFT_P95,
                    "95th percentile",
                ),
                tile(
                    TPOT,
                    "Time per output token",
                    "mean gap between tokens of one request",
                    "tpot",
                    INTERACTIVITY,
                    "Per user",
                ),
            ],
        ),
        (
            "How much in total?",
            [
                tile(
                    OUTPUT_TOKENS_PER_S,
                    "Output tokens",
                    f"all {number(float(results['accelerators']))} GPUs together",
                    "throughput",
                    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
                    "Per GPU",
                )
            ],
        ),
        ("What does it cost?", [money]),
        ("Does it fit?", [memory]),
    ]


def _memory_tile(found: Answer) -> Tile:
    results = found.results
    used, capacity = results["memory_per_accelerator_bytes"], results["memory_capacity_bytes"]
    graph, values = found.estimate.equations, found.estimate.values()
    free = float(values[graph.fullest.free])
    shown, unit = parts(scaled(used, "B"))
    band = results["memory_range_80"]["peak_memory"]
    return Tile(
        MEMORY_PER_ACCELERATOR.id,
        "Memory per GPU",
        shown,
        unit,
        charts.strip(used, None, None, None if capacity is None else capacity / 1.2),
        f"peak while it runs, 80\u00a0%: {parts(scaled(band['p10'], 'B'))[0]} to {scaled(band['p90'], 'B')}",
        f"fullest GPU; dotted: its {scaled(capacity, 'B')}",
        ("Free for KV cache", scaled(max(free, 0.0), "B"), graph.fullest.free.id),
    )


@dataclass(frozen=True)
class Limited:
    """What limits a pass.

    Args:
        phase: prefill or decode; `id` of its time.
        parts: seconds by limit.
        modules: label, seconds, bar and group, the largest first.
    """

    phase: str
    id: str
    title: str
    chart: Markup
    parts: Sequence[tuple[str, str]]
    modules: Sequence[tuple[str, str, Markup, str]]
    foot: str
    count: int


def limited(found: Answer, phase: str) -> Limited:
    """What limits a pass: shares by limit, then the kinds of modules that take most."""
    graph, values = found.estimate.equations, found.estimate.values()
    work: Pass = graph.prefill if phase == "prefill" else graph.decode
    total = float(values[work.time])
    names = group_names(graph.ir)
    nodes = {name: work.times.of(as_node(name)) for name in names.values()}
    of_limit = {
        name: {limit: by.of(as_node(name)) for limit, by in work.shares.items()} for name in names.values()
    }
    wanted = [*nodes.values(), *(node for by in of_limit.values() for node in by.values())]
    worked = Program(wanted).run(found.estimate.inputs(0))
    seconds = {name: float(worked[node]) for name, node in nodes.items()}
    largest = sorted((name for name in seconds if seconds[name] > 0), key=lambda name: -seconds[name])
    longest = max(seconds.values(), default=0.0)
    split = {limit: float(values[part]) for limit, part in work.parts.items()}
    split |= {limit: 0.0 for limit in charts.LIMITS if limit not in split}
    first = max(split, key=lambda limit: split[limit])
    said = (
        f"{phase.capitalize()}, {scaled(total, 's')}: {first} {percent(split[first] / total if total else 0)}"
    )
    two = largest[:2]
    if two:
        share = sum(seconds[name] for name in two) / total if total else 0
        said += f"; {' and '.join(two)} take {percent(share)}"
    use = results_share(found, phase)
    return Limited(
        phase=phase,
        id=work.time.id,
        title=said,
        chart=charts.shares(split, f"{said}."),
        parts=[(limit, percent(split[limit] / total if total else 0)) for limit in charts.LIMITS],
        modules=[
            (
                name,
                scaled(seconds[name], "s"),
                charts.bar({limit: float(worked[node]) for limit, node in of_limit[name].items()}, longest),
                next(key for key, value in names.items() if value == name),
            )
            for name in largest[:_LARGEST]
        ],
        foot=use,
        count=len(largest),
    )


def results_share(found: Answer, phase: str) -> str:
    """How much of peak and bandwidth a pass uses, in words."""
    mfu, mbu = found.results["mfu"][phase], found.results["mbu"][phase]
    what = "one prompt" if phase == "prefill" else "a step of the running batch"
    return f"{what} · MFU {percent(mfu)} · MBU {percent(mbu)}"


def memory(found: Answer) -> dict[str, Any]:
    """The fullest accelerator: what lies in it, and what is free."""
    results, values = found.results, found.estimate.values()
    fullest = found.estimate.equations.fullest
    capacity = float(values[fullest.capacity])
    named = {
        "weights": ("weights", fullest.weights),
        "kv": ("KV cache", fullest.kv),
        "activations": ("activations", fullest.activations),
        "runtime": ("runtime", fullest.reserve),
        "free": ("free", fullest.free),
        "outside": ("left to others", fullest.outside),
    }
    sizes = {key: float(values[figure]) for key, (_, figure) in named.items()}
    rows = [(words, scaled(sizes[key], "B"), figure.id, key) for key, (words, figure) in named.items()]
    used = results["memory_per_accelerator_bytes"]
    short = sizes["free"] < 0
    title = (
        f"One GPU: {scaled(-sizes['free'], 'B')} are missing"
        if short
        else f"One GPU: {percent(used / capacity if capacity else None)} of {scaled(capacity, 'B')} used"
    )
    scale = capacity if not short else used
    drawn = [
        (key, f"{words} {scaled(sizes[key], 'B')}", max(sizes[key], 0.0)) for key, (words, _) in named.items()
    ]
    return {"title": title, "rows": rows, "chart": charts.memory_bar(drawn, scale, f"{title}.")}


def power_and_cost(found: Answer) -> list[tuple[str, str, str]]:
    """Label, text and id of figures of power and money."""
    results = found.results
    wanted = (POWER, JOULES_PER_OUTPUT_TOKEN, USD_PER_HOUR, USD_PER_MONTH, USD_PER_MILLION_OUTPUT_TOKENS)
    extra = [metric for metric in METRICS if metric.attribute == "usd_per_million_blended_tokens"]
    return [
        (metric.label, metric.text(at(results, metric.key)).replace(" ", "\u00a0"), metric.id)
        for metric in (*wanted, *extra)
        if metric.id in found.estimate.equations.figures
    ]


def nearest(found: Answer) -> dict[str, Any] | None:
    """The measured run that is nearest: measured, estimated, error, and in what it differs."""
    run = found.results["nearest_run"]
    if run is None:
        return None
    rows = []
    for name, metric in (("ttft_s", TTFT), ("tpot_s", TPOT)):
        seen, said = run["measured"].get(name), run["estimated"].get(name)
        if seen is None or said is None:
            continue
        rows.append(
            {
                "label": metric.label,
                "measured": metric.text(seen),
                "estimated": metric.text(said),
                "error": signed(said / seen - 1),
                "words": _off(metric.label, said / seen - 1),
            }
        )
    title = "; ".join(row["words"] for row in rows) or "no time of it was measured"
    return {
        "title": f"Nearest measured run: {title}",
        "rows": rows,
        "differs": [(name.replace("_", " "), *pair) for name, pair in run["differs"].items()],
        "run": run,
    }


def _off(label: str, relative: float) -> str:
    if abs(relative) < 0.0005:
        return f"estimated {label} is right"
    return f"estimated {label} is {percent(abs(relative))} {'high' if relative > 0 else 'low'}"


def notices(found: Answer) -> list[dict[str, str]]:
    """Errors, then alerts, each with its code and the field that is its way out."""
    checks = found.results["checks"]
    listed = [("error", one) for one in checks["errors"]]
    if found.possible:
        listed += [("warning", one) for one in checks["alerts"]]
    return [
        {"kind": kind, "code": one["code"], "message": one["message"], "field": _remedy(one["code"])}
        for kind, one in listed
    ]


def _remedy(code: str) -> str:
    plain = code.removeprefix("DECODE_")
    return next((field for start, field in REMEDIES.items() if plain.startswith(start)), "")


def plan_reasons(found: Answer, state: State) -> dict[str, Any]:
    """Why a plan was chosen, and the best of the others with what they lose."""
    optimum = found.optimum
    assert optimum is not None
    base = state.by_hand({})
    rows = [
        {
            "name": _short(one.name),
            "tpot": headline(TPOT, at(one.results, TPOT.key)),
            "usd": parts(
                USD_PER_MILLION_OUTPUT_TOKENS.text(at(one.results, USD_PER_MILLION_OUTPUT_TOKENS.key))
            )[0],
            "lost": one.lost_because,
            "told": one.told,
            "link": base.by_hand(one.plan).link(),
            "winner": place == 0,
        }
        for place, one in enumerate(optimum.candidates[:5])
    ]
    return {"words": optimum.words.removeprefix("[AUTO] "), "rows": rows, "tried": optimum.found.tried}


def _short(name: str) -> str:
    """A plan by its degrees: 2 × TP4 of H100 SXM · 2 × TP4 · bf16, bf16 KV · vllm."""
    return name.split(" · ")[1] if " · " in name else name


@lru_cache(maxsize=64)
def _tables(found: Answer) -> tuple[pd.DataFrame, ...]:
    scenario = found.scenario.model_copy(update={"variants": (), "decision": None})
    loads = sorted({*_LOADS, int(found.results["concurrency"])})
    plans: list[dict[str, Any]] = [{}]
    if found.optimum is not None:
        plans += [
            {name: int(one.plan.get(name, 1)) for name in DEGREES}
            for one in found.optimum.candidates[1:_PLANS]
        ]
    else:
        tp = int(found.results["tp"])
        plans += [{"tp": tp // 2}] if tp > 1 else [{"tp": 2}]
    tables = []
    for plan in plans:
        try:
            asked = with_fields(scenario, plan, "page") if plan else scenario
            tables.append(sweep(asked, {"concurrency": loads}).assign(plan=_plan_name(asked)))
        except InputError:
            continue
    return tuple(tables)


def _plan_name(scenario: Any) -> str:
    said = [
        f"{short}{value}"
        for name, short in (("tp", "TP"), ("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))
        if (value := getattr(scenario, name) or 1) > 1 or name == "tp"
    ]
    copies = scenario.dp or 1
    return f"{copies} × {' '.join(said)}" if copies > 1 else " ".join(said)


def standing(found: Answer) -> dict[str, Any] | None:
    """Where a run stands among other loads and plans: speed of a user against tokens of a GPU."""
    scenario = found.scenario
    loaded = not (scenario.request_rate or scenario.sessions or scenario.classes or scenario.devices)
    if not loaded or not found.possible or found.results["tpot_s"] is None:
        return None
    tables = [table[possible(table)] for table in _tables(found)]
    tables = [table for table in tables if len(table)]
    if not tables:
        return None
    every = pd.concat([table.astype({"plan": object}) for table in tables], ignore_index=True)
    front = pareto(every)
    across, up = (next(metric for metric in METRICS if metric.column == name) for name in FRONT)
    own = str(tables[0]["plan"].iloc[0])
    load = int(found.results["concurrency"])
    on_front = bool(((front["plan"] == own) & (front["concurrency"] == load)).any())
    here = float(found.results[FRONT[0]]), float(found.results[FRONT[1]])
    title = f"{own} at {load} requests is on the front: nothing shown here is better on both axes"
    if not on_front:
        better = front[(front[FRONT[0]] >= here[0]) & (front[FRONT[1]] >= here[1])]
        said = " and ".join(
            f"{row['plan']} at {int(row['concurrency'])}" for row in better.to_dict("records")
        )
        title = f"{said or 'another point'} beats {own} at {load} requests on both axes"
    series = [
        charts.Series(
            f"beaten plan{place}",
            [(x, y, "") for x, y in zip(table[FRONT[0]].tolist(), table[FRONT[1]].tolist(), strict=True)],
            mark=("circle", "square", "diamond")[place % 3],
        )
        for place, table in enumerate(tables)
    ]
    points = front.sort_values(FRONT[0])
    series.append(
        charts.Series(
            "front",
            [
                (float(row[FRONT[0]]), float(row[FRONT[1]]), f"{int(row['concurrency'])}")
                for row in points.to_dict("records")
                if not (row["plan"] == own and int(row["concurrency"]) == load)
            ],
        )
    )
    series.append(charts.Series("now", [(*here, f"now: {load} requests")], joined=False, mark="diamond"))
    rows = [
        (
            str(row["plan"]),
            f"{int(row['concurrency'])}",
            across.text(float(row[FRONT[0]])),
            up.text(float(row[FRONT[1]])),
        )
        for row in points.to_dict("records")
    ]
    return {
        "title": title,
        "chart": charts.chart(series, "tokens/s per user", "output tokens/s per GPU", f"{title}.", 380),
        "plans": [
            (str(table["plan"].iloc[0]), ("●", "■", "◆")[place % 3]) for place, table in enumerate(tables)
        ],
        "rows": rows,
    }


def what_if(found: Answer, state: State) -> list[dict[str, Any]]:
    """A few changes of one field, each worked out, and what they do."""
    if not found.possible:
        return []
    results, library = found.results, found.estimate.library
    changes: list[tuple[str, dict[str, Any]]] = []
    chip = library.accelerator(str(results["accelerator"]))
    if results["weights_dtype"] != "fp8":
        changes.append(("fp8 weights", {"weights_dtype": "fp8"}))
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
        if one.vendor == chip.vendor
        and one.id != chip.id
        and one.id in ("h200-sxm", "b200-sxm", "mi300x", "mi355x")
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
                "slower": change(other.results["tpot_s"], results["tpot_s"]),
                "open": changed.link(),
                "pin": state.with_pins((*state.pins, state.packed, changed.packed)).link("/compare"),
            }
        )
    return rows


def load_words(found: Answer) -> str:
    """What is asked of a run, in one line."""
    results = found.results
    load = f"{int(results['concurrency']):,} at once"
    return (
        f"{int(results['input_tokens']):,} in, {int(results['output_tokens']):,} out · {load} · "
        f"{results['framework']}"
    )


def phases(found: Answer) -> tuple[str, ...]:
    """The passes that there are: none of a plan that cannot be, no decode step where nothing is decoded."""
    if not found.possible:
        return ()
    return ("prefill",) if found.results["tpot_s"] is None else ("prefill", "decode")


def notice_title(notices: Sequence[Mapping[str, str]]) -> str:
    """How much there is to know."""
    errors = sum(1 for one in notices if one["kind"] == "error")
    rest = len(notices) - errors
    said = [f"{errors} error{'s' if errors > 1 else ''}"] if errors else []
    said += [f"{rest} thing{'s' if rest > 1 else ''} to know"] if rest else []
    return " and ".join(said).capitalize() or "Nothing to warn of"


def ways_out(state: State) -> list[dict[str, str]]:
    """What would work in place of a plan that cannot be: AUTO, more GPUs, other formats, shorter prompts."""
    auto = state.by_auto()
    if not state.auto and (found := _tried(auto)) is not None:
        return [{"words": f"Let AUTO choose: {found.estimate.title}", "link": auto.link()}]
    ways, most = [], state.fields.get(GPUS, START[GPUS])
    most = most if isinstance(most, int) and 0 < most <= _MOST_GPUS else START[GPUS]
    for count in (2 * most, 4 * most, 8 * most):
        more = auto.with_fields(**{GPUS: count})
        if count <= _MOST_GPUS and (found := _tried(more)) is not None:
            ways.append({"words": f"Up to {count} GPUs: {found.estimate.title}", "link": more.link()})
            break
    try:
        asked = {key: value for key, value in state.fields.items() if key not in (*DEGREES, GPUS)}
        fields, _ = fields_of(asked, False, NAME)
        needs = size(gpus_max=most, name=NAME, **({"framework": "vllm"} | fields))
    except (InputError, TypeError, ValueError):
        return ways
    least = needs.tiers["minimum"]
    if least.plan is not None:
        changed = {key: value for key, value in least.plan.items() if key in CHOSEN}
        ways.append(
            {
                "words": f"Other formats: {least.label}",
                "link": state.with_fields(**changed).by_hand(least.plan).link(),
            }
        )
    for way in needs.ways:
        if way.change == "input_tokens":
            shorter = auto.with_fields(input_tokens=way.value)
            ways.append({"words": f"Prompts of {way.value:,} tokens: {way.label}", "link": shorter.link()})
    return ways


def _tried(state: State) -> Answer | None:
    """The answer to a state where its plan can be."""
    try:
        found = answer(state)
    except InputError:
        return None
    return found if found.possible else None


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
