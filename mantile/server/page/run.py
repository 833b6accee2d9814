"""The view `Run`: does it work, how fast, for how much, and is it to be believed?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from mantile.equations.checks import FITS, WITH_OFFLOAD
from mantile.equations.forward import Pass, group_names
from mantile.equations.metrics import (
    INTERACTIVITY,
    JOULES_PER_OUTPUT_TOKEN,
    MEMORY_PER_ACCELERATOR,
    METRICS,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    PREFILL_TOKENS_PER_S,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
    Metric,
)
from mantile.estimates.launch_files import launch_files
from mantile.estimates.results import missing_memory, of_requests
from mantile.graph.evaluate import Program
from mantile.graph.quantity import as_node
from mantile.library.errors import InputError
from mantile.library.scenario import Scenario
from mantile.server.documents import in_fields
from mantile.server.page import charts
from mantile.server.page.answers import Answer
from mantile.server.page.state import DEGREES, State
from mantile.server.page.text import headline, number, parts, percent, scaled, signed

_LARGEST = 5  # modules of a pass that are shown
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
    fits = "In memory of the devices" if "devices" in found.results else "In GPU memory"
    names = ((fits, FITS), ("Runs with offload", WITH_OFFLOAD))
    listed = [(words, feasibility == name) for words, name in names]
    last = "Not enough memory" if feasibility != "invalid" else "Cannot be"
    return [*listed, (last, not any(holds for _, holds in listed))]


def lead(found: Answer) -> str:
    """How much room there is, and what limits it; what the memory is needed for if it is short."""
    results = found.results
    if not found.possible:
        needed = dict(found.said.facts).get("Memory", "")
        return f"On each GPU {needed}." if needed else ""
    used, room = results["memory_per_accelerator_bytes"], results["memory_capacity_bytes"]
    seats = results["kv_capacity_sequences"]
    said = [f"{scaled(used, 'B')} of {scaled(room, 'B')} on the fullest GPU"]
    if seats:
        said.append(f"room for {of_requests(seats)} of this length")
    limits = f"{results['bottleneck']['prefill']} limits prefill".capitalize()
    if results["tpot_s"] is not None:
        limits += f", {results['bottleneck']['decode']} limits decode"
    held = f" {results['layers_in_words']}" if "layers_in_words" in results else ""
    starts = found.said.starts
    start = "" if starts is None or starts.verdict == "starts" else f" {in_fields(found.said.start_told)}."
    return f"{', '.join(said)}.{held} {limits}.{start}"


def ways(found: Answer, state: State) -> list[dict[str, Any]]:
    """Ways out of a plan that cannot be, as the terminal lists them, each with the address that takes it."""
    said = found.said
    base = state.by_hand({name: found.fields.get(name, 1) for name in DEGREES})
    fastest = max((way.speed or 0.0 for way in said.ways), default=0.0)
    return [
        {
            "words": way.words if "model" in way.fields else way.words[0].upper() + way.words[1:],
            "speed": "–" if way.speed is None else number(way.speed),
            "share": 0.0 if not fastest else 100 * (way.speed or 0.0) / fastest,
            "ttft": scaled(way.ttft, "s"),
            "cost": _cost(way.to_buy if said.buys else way.usd_per_hour, said.buys),
            "gives_up": way.gives_up or "nothing",
            "assumes": way.assumes,
            "link": base.with_fields(**way.fields).link(),
            "command": command(way.applied(found.scenario)) if place == 0 else "",
        }
        for place, way in enumerate(said.ways)
    ]


def _cost(money: float | None, buys: bool) -> str:
    if money is None:
        return "not known"
    return f"{money:,.0f}" if buys else number(money)


def command(scenario: Scenario) -> str:
    """The command that starts a scenario; empty where no engine's flags say it, or the engine refuses."""
    try:
        files = launch_files(scenario)
    except InputError:
        return ""
    script = files.get("launch.sh", "")
    return script.partition("\nset -eu\n")[2].strip().removeprefix("exec ")


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
        "usd_per_million_output_tokens",
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
                    "one GPU"
                    if results["accelerators"] == 1
                    else f"all {number(float(results['accelerators']))} GPUs together",
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
    free = float(values[graph.fullest["memory.free"]])
    shown, unit = parts(scaled(used, "B"))
    band = results["memory_range_80"]["peak_memory"]
    return Tile(
        MEMORY_PER_ACCELERATOR.id,
        "Memory per GPU",
        shown,
        unit,
        charts.strip(used, None, None, None if capacity is None else capacity / 1.2),
        f"with what is taken for the KV cache in advance, 80\u00a0%: {parts(scaled(band['p10'], 'B'))[0]} to "
        f"{scaled(band['p90'], 'B')}",
        f"fullest GPU; dotted: its {scaled(capacity, 'B')}",
        ("Free for KV cache", scaled(max(free, 0.0), "B"), graph.fullest["memory.free"].id),
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
    what = "a step of the running batch"
    if phase == "prefill":
        rate = PREFILL_TOKENS_PER_S.text(found.results[PREFILL_TOKENS_PER_S.key])
        band = found.results["range_80"]["prefill_rate"]
        what = f"one prompt · {rate}"
        if band["p10"] is not None:
            ends = PREFILL_TOKENS_PER_S.text(band["p10"]).split()[0], PREFILL_TOKENS_PER_S.text(band["p90"])
            what += f" (80 %: {ends[0]} to {ends[1]}, as wide as TTFT’s)"
    return f"{what} · MFU {percent(mfu)} · MBU {percent(mbu)}"


def memory(found: Answer) -> dict[str, Any]:
    """The fullest accelerator: what lies in it, and what is free."""
    results, values = found.results, found.estimate.values()
    fullest = found.estimate.equations.fullest
    capacity = float(values[fullest["hardware.memory_capacity"]])
    named = {
        "weights": ("weights", fullest["memory.weights"]),
        "kv": ("KV cache", fullest["memory.kv"]),
        "activations": ("activations", fullest["memory.activations"]),
        "runtime": ("runtime", fullest["memory.reserve"]),
        "free": ("free", fullest["memory.free"]),
        "outside": ("left to others", fullest["memory.outside"]),
    }
    sizes = {key: float(values[figure]) for key, (_, figure) in named.items()}
    rows = [(words, scaled(sizes[key], "B"), figure.id, key) for key, (words, figure) in named.items()]
    ends = results["memory_range_80"]["ram_peak"]
    rows.append(
        (
            f"main memory of a machine; likely {parts(scaled(ends['p10'], 'B'))[0]} to "
            f"{scaled(ends['p90'], 'B')}",
            scaled(results["ram_peak_bytes"], "B"),
            fullest["startup.host"].id,
            "outside",
        )
    )
    used = results["memory_per_accelerator_bytes"]
    missing = missing_memory(results)
    short = missing is not None
    title = (
        f"One GPU: {scaled(missing, 'B')} are missing"
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
        "differs": [(name.replace("_", " "), *map(_said, pair)) for name, pair in run["differs"].items()],
        "run": run,
    }


def _said(value: Any) -> str:
    return number(value, 4) if isinstance(value, float) else str(value)


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
        {
            "kind": kind,
            "code": one["code"],
            "message": in_fields(one["message"]),
            "field": _remedy(one["code"]),
        }
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


def load_words(found: Answer) -> str:
    """What is asked of a run, in one line."""
    results = found.results
    load = f"{int(results['concurrency']):,} at once"
    if found.scenario.request_rate:
        load = f"{number(found.scenario.request_rate)} requests/s"
    elif found.scenario.sessions:
        load = f"{number(found.scenario.sessions)} sessions"
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
