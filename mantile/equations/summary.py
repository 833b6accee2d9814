"""What the front page says of the base scenario: titles, the texts of the tiles, and what the charts show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mantile.equations import nearest
from mantile.equations.checks import TOLERANCE, Verdict
from mantile.equations.constant import LONG, TIMES_FROM
from mantile.equations.display import converted, in_unit, long_time, told
from mantile.equations.forward import Pass, group_names
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    E2E,
    GOODPUT_SHARE,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    PREFILL_TOKENS_PER_S,
    TPOT,
    TTFT,
    Metric,
)
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block
from mantile.equations.stamp import Stamp
from mantile.equations.workers import degrees
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    equal,
    if_error,
    if_known,
    index,
    is_number,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
    number_of,
    percent,
    rounded,
    span,
    text,
    where,
)

LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
_SHOWN_GROUPS = 8
_NOT_POSSIBLE = "not possible"
_NO_LIMITS = "What limits a plan that cannot be: not known"
_SMALLEST_SHARE = 0.05  # of a pass, of a block on the roofline chart


@dataclass(frozen=True)
class Heading:
    """The answer and the plan in words, or which input cannot be.

    `first`, `speeds`, `workload`, `asked` and other `parts` of them stand elsewhere.
    """

    first: Quantity
    speeds: Quantity
    parts: tuple[Quantity, ...]
    answer: Quantity
    workload: Quantity
    asked: Quantity
    plan: Quantity
    status: Quantity


@dataclass(frozen=True)
class Tile:
    """The texts of a tile below its number; no definition where that is a fixed text.

    Args:
        range: of the number, where the line or the definition says it.
        second: over the second number, where that is no fixed text.
        number: in place of the number where that is a time, in words if it is a long one.
        parts: of these that stand elsewhere.
    """

    line: Quantity
    definition: Quantity | None = None
    range: Quantity | None = None
    second: Quantity | None = None
    number: Node | None = None
    parts: tuple[Quantity, ...] = ()


@dataclass(frozen=True)
class Split:
    """The shares of compute, memory, network and overhead in the time of a pass, by phase."""

    title: Quantity
    shares: Mapping[str, Mapping[str, Quantity]]


@dataclass(frozen=True)
class MemoryPart:
    """What part of the memory of the fullest accelerator something takes, and how the chart calls it."""

    name: str
    amount: Quantity
    label: Quantity


@dataclass(frozen=True)
class MemoryUse:
    """The memory of the fullest accelerator, part by part."""

    title: Quantity
    parts: tuple[MemoryPart, ...]


@dataclass(frozen=True)
class ModuleGroup:
    """A group of modules: its name, number, and the time it is ranked by."""

    name: Input
    number: Input
    key: Quantity


@dataclass(frozen=True)
class RankedGroup:
    """The group of a rank, and its time by what limits it."""

    rank: Input
    entry: Quantity
    group: Quantity
    label: Quantity
    times: Mapping[str, Quantity]


@dataclass(frozen=True)
class ModuleTimes:
    """The groups of modules of a pass by their time, the largest first."""

    title: Quantity
    groups: tuple[ModuleGroup, ...]
    ranked: tuple[RankedGroup, ...]
    two_largest: Quantity
    time: Quantity


@dataclass(frozen=True)
class RooflinePoint:
    """FLOP per byte and TFLOP/s: on a roof, or of a block of modules."""

    intensity: Input | Quantity
    rate: Quantity


@dataclass(frozen=True)
class PlacedBlock:
    """A block of modules on the roofline chart; no label where the point has none."""

    phase: str
    block: Block
    label: str | None
    point: RooflinePoint


@dataclass(frozen=True)
class Roofline:
    """The roofs of the datasheet and of what is reached, each by three points, and blocks below them."""

    title: Quantity
    datasheet: tuple[RooflinePoint, ...]
    reached: tuple[RooflinePoint, ...]
    blocks: tuple[PlacedBlock, ...]


@dataclass(frozen=True)
class Trust:
    """How far one may trust the answer, in lines: evidence, checks, and results as generated.

    Args:
        nearest: the nearest measured run if it is near, the run, and the degrees here, of which that tells;
            None where the library has no measured runs.
        parts: of results as generated that stand elsewhere.
    """

    profile: Quantity
    ranges: Quantity
    checks: Quantity
    floors: Quantity
    advice: Quantity
    generated: Quantity
    live: Quantity
    nearest: tuple[Quantity, Quantity, Quantity] | None
    parts: tuple[Quantity, ...]


def heading(graph: EstimateGraph, model: str, verdict: Verdict) -> Heading:
    """The answer and the plan in words.

    Args:
        model: its name.
    """
    inputs = graph.inputs
    ttft, speed = graph.headlines[TTFT], graph.headlines[INTERACTIVITY]
    per_user = told(speed, join(", ", text(speed), " tokens/s per user"), "")
    time = number_of(ttft)
    short = _text(
        "short_first",
        "First token that comes soon",
        where(time >= 1, join(rounded(time, 2), " s"), join(text(converted(time, "s", "ms")), " ms")),
    )
    first = _text("first", "First token", where(time >= LONG, long_time(time), short))
    without = _text(
        "no_first",
        "Without a first token",
        where(graph.rows["checks.possible"] > 0, NOT_KNOWN, _NOT_POSSIBLE),
    )
    to_first = where(is_number(ttft), join(first, " to first token"), without)
    speeds = _text("speeds", "Speed for a user", join(to_first, per_user))
    told_first = _within_limits(graph, speeds)
    parts: tuple[Quantity, ...] = (short, without, told_first)
    why: list[Node] = [where(graph.rows["checks.possible"] > 0, "", join(", ", graph.rows["checks.reason"]))]
    if (overload := _overload(graph)) is not None:
        why.append(where(overload, ", overloaded", ""))
    in_full = _text(
        "in_full", "The answer in full", join(f"{model} on ", graph.machines, ": ", told_first, *why)
    )
    parts = (*parts, in_full)
    hits: list[Node | str] = []
    if "prefixes" in graph.rows.features:
        hits = [percent(graph.rows["prefix.hit_rate"], 0), " of them found in a cache, "]
    drafts, kind = graph.prefill_workers.speculation, inputs.speculation
    drafted: list[Node | str] = []
    if drafts is not None and kind is not None:
        faster_by = graph.rows["gain.speedup"]
        faster = (rounded(drafts.emitted, 1), " tokens a step, ", rounded(faster_by, 2), " × as fast, ")
        gained = _text("drafted", "What drafts bring", told(faster_by, join(kind, " drafts, ", *faster), ""))
        drafted = [where(drafts.on > 0, gained, "")]
        parts = (*parts, gained)
    workload = join(
        _count(inputs.input_tokens),
        " tokens in, ",
        *hits,
        _count(inputs.output_tokens),
        " out, ",
        *drafted,
        told(inputs.concurrency, text(inputs.concurrency)),
        " concurrent requests · ",
    )
    tokens = _text("workload", "Workload", workload)
    engine = (inputs.framework, " · ", inputs.batching, " batching")
    in_words = join(tokens, inputs.weights_dtype, " · ", *degrees(graph.workers), "· ", *engine)
    asked = _text("asked", "Workload and plan as asked", in_words)
    plan = where(graph.rows["checks.possible"] > 0, asked, graph.rows["checks.broken"])
    return Heading(
        first=first,
        speeds=speeds,
        parts=parts,
        answer=_text("answer", "The answer", if_error(in_full, f"{model}: {NOT_KNOWN}")),
        workload=tokens,
        asked=asked,
        plan=_text("plan", "Workload and plan", plan),
        status=status(verdict),
    )


def status(verdict: Verdict) -> Quantity:
    """Alerts, and whether inputs changed."""
    return _text("status", "Alerts and changes", join(verdict.alerts, " · ", verdict.stamp))


def tiles(graph: EstimateGraph) -> dict[str, Tile]:
    """The texts of the tiles."""
    serving, inputs = graph.serving, graph.inputs
    memory = graph.fullest
    used = percent(memory["memory.used"] / maximum(1, memory["memory.usable"]), 0)
    usable = percent(memory["memory.usable"] / maximum(1, memory["hardware.memory_capacity"]), 1)
    in_gb = rounded(in_unit(memory["hardware.memory_capacity"], "GB"), 1)
    accelerators = text(graph.rows["serving.accelerators"])
    return {
        "fits": _tile(
            "fits",
            join(
                graph.rows["checks.reason"],
                where(graph.rows["checks.possible"] > 0, join(": ", used, " of usable"), ""),
            ),
            join("usable: ", usable, " of ", in_gb, " GB"),
        ),
        "memory": _memory_tile(graph),
        "ttft": replace(_ranged(graph, TTFT, "ttft", _floor(graph, TTFT)), second=_prefill_rate(graph)),
        "tpot": _ranged(graph, TPOT, "tpot", _floor(graph, TPOT)),
        "e2e": _timed(
            graph,
            E2E,
            _tile(
                "e2e",
                told(
                    graph.headlines[E2E],
                    join(percent(serving.ttft / serving.e2e, 0), " of it to the first token"),
                ),
            ),
        ),
        "throughput": _ranged(
            graph,
            OUTPUT_TOKENS_PER_S,
            "throughput",
            join("whole deployment, ", text(inputs.concurrency), " requests in flight"),
        ),
        "per_accelerator": _tile("per_accelerator", join("accelerators: ", accelerators)),
        "cost": _tile("cost", join(inputs.price_basis, " price, ", percent(inputs.utilisation, 1), " used")),
        "power": _tile("power", join("accelerators: ", accelerators, ", PUE ", rounded(inputs.pue, 2))),
    }


def all_tokens(graph: EstimateGraph) -> Node:
    """Input and output tokens per second, where output tokens per second are known."""
    return if_known(graph.rows["serving.total_tokens_per_s"], graph.headlines[OUTPUT_TOKENS_PER_S])


def split(graph: EstimateGraph) -> Split:
    """What limits both phases."""
    possible = graph.rows["checks.possible"] > 0
    words = join("Prefill is limited by ", graph.prefill.bottleneck, ", decode by ", graph.decode.bottleneck)
    title = where(possible, words, _NO_LIMITS)
    return Split(
        title=_title("split", title),
        shares={
            name: {
                limit: Quantity(
                    f"summary.split.{name.lower()}.{limit}",
                    f"{name}, share of {limit}",
                    "1",
                    where(possible, phase.parts[limit] / phase.time, 0),
                )
                for limit in LIMITS
            }
            for name, phase in (("Prefill", graph.prefill), ("Decode", graph.decode))
        },
    )


def memory_use(graph: EstimateGraph) -> MemoryUse:
    """The memory of the fullest accelerator."""
    memory = graph.fullest
    parts = (
        ("weights", in_unit(memory["memory.weights"], "GB")),
        ("KV cache", in_unit(memory["memory.kv"], "GB")),
        ("activations", converted(memory["memory.activations"] + memory["memory.logits"], "B", "GB")),
        ("runtime", in_unit(memory["memory.reserve"], "GB")),
        ("free", in_unit(memory["memory.free"], "GB")),
        ("reserve", in_unit(memory["memory.outside"], "GB")),
    )
    title = join(
        rounded(in_unit(memory["memory.used"], "GB"), 1),
        " of ",
        rounded(in_unit(memory["hardware.memory_capacity"], "GB"), 1),
        " GB used: room for ",
        text(graph.decode_workers.rows["memory.capacity_sequences"]),
        " sequences",
    )
    return MemoryUse(_title("memory", title), tuple(_memory_part(name, amount) for name, amount in parts))


def module_times(graph: EstimateGraph, phase: Pass) -> ModuleTimes:
    """The groups of modules of a pass by their time."""
    name = phase.phase.id
    used = {figure.value for figure in phase.times.groups}
    labels = [label for label in group_names(graph.ir).values() if label in used]
    groups = tuple(_module_group(phase, number, label) for number, label in enumerate(labels, 1))
    keys, names = [group.key for group in groups], [group.name for group in groups]
    ranked = tuple(
        _ranked_group(phase, rank, keys, names, graph.rows["checks.possible"] > 0)
        for rank in range(1, min(_SHOWN_GROUPS, len(groups)) + 1)
    )
    first, second = (place.entry for place in ranked[:2])
    share = (index(span(keys), first) + index(span(keys), second)) / in_unit(phase.time, "ms")
    both = Quantity(f"summary.{name}.two_largest", "Two largest", "1", share)
    short = join(rounded(in_unit(phase.time, "ms"), 1), " ms")
    time = _text(f"{name}.time", "Time of a pass", where(phase.time >= LONG, long_time(phase.time), short))
    words = join(
        "Prefill, " if name == "prefill" else "Decode step, ",
        time,
        ": ",
        index(span(names), first),
        " and ",
        index(span(names), second),
        " take ",
        percent(both, 0),
    )
    title = where(graph.rows["checks.possible"] > 0, words, f"{name.capitalize()}: not known")
    return ModuleTimes(_title(name, title), groups, ranked, both, time)


def roofline(graph: EstimateGraph, values: Mapping[Node, Any]) -> Roofline:
    """The roofline of an accelerator that decodes.

    Args:
        values: as generated; they decide which blocks are large enough to be shown.
    """
    hardware, efficiency = graph.decode_workers.hardware, graph.decode_workers.efficiency
    classes = graph.decode_workers.formats.classes
    products = next(name for name in ("ffn", "attention") if name in classes)
    peak, bandwidth = graph.decode.peak, hardware.memory_bandwidth
    title = join(
        "Peak ",
        text(in_unit(peak, "TFLOP/s")),
        " TFLOP/s, memory ",
        text(in_unit(bandwidth, "GB/s")),
        " GB/s",
    )
    left, right = (
        Input(f"summary.roof.{name}", name, "FLOP/B", value, shared=True, fixed=True)
        for name, value in (("left", 1), ("right", 10_000))
    )
    datasheet = _roof("datasheet", peak, bandwidth, left, right, (left, right))
    reached = _roof(
        "reached",
        efficiency[f"gemm_flops.{products}"],
        efficiency[f"gemm_bytes.{products}"],
        left,
        right,
        [Quantity(f"{end.id}.reached", f"{end.label}, reached", end.unit, end) for end in (left, right)],
    )
    blocks = [block for phase in (graph.prefill, graph.decode) for block in _placed_blocks(phase, values)]
    return Roofline(_title("roofline", title), datasheet, reached, tuple(blocks))


def outlook(graph: EstimateGraph) -> Quantity:
    """Where the scenario stands between speed for a user and throughput."""
    speed, rate = graph.headlines[INTERACTIVITY], graph.headlines[OUTPUT_TOKENS_PER_S_PER_ACCELERATOR]
    now = join("Now ", text(speed), " tokens/s per user, ", text(rate), " per accelerator")
    return _title("curve", told(speed, now, "Speed for a user: not known"))


def trust(graph: EstimateGraph, verdict: Verdict, stamp: Stamp) -> Trust:
    """How far one may trust the answer."""
    profile = graph.prefill_workers.efficiency.profile
    ttft, tpot, rate = stamp.stored[:3]
    short = [
        _text(f"generated.{metric.attribute}.short", "A time as generated, if short", told(then, words))
        for metric, then in ((TTFT, ttft), (TPOT, tpot))
        for words in (join(_in_headline(metric, then), " ms"),)
    ]
    times = [
        _text(
            f"generated.{metric.attribute}",
            "A time as generated",
            where(time >= LONG, long_time(time), words),
        )
        for metric, time, words in zip((TTFT, TPOT), map(number_of, (ttft, tpot)), short, strict=True)
    ]
    return Trust(
        profile=_text(
            "profile",
            "Efficiency profile",
            join("Efficiency profile ", profile, ", wider ones where it is silent"),
        ),
        ranges=_text(
            "ranges",
            "Ranges",
            join("Ranges: 80 % of runs, ", if_error(graph.rows["evidence.name"], NOT_KNOWN)),
        ),
        checks=_text("checks", "Checks", join(verdict.headline, "; ", verdict.alerts)),
        floors=_text("floors", "Above the floors", _above_floors(graph)),
        advice=_text(
            "advice",
            "Advice",
            where(
                equal(verdict.master, 1),
                "Every formula cell can be recomputed: mantile verify FILE.xlsx",
                "Failing checks are listed on Audit with their reason",
            ),
        ),
        generated=_text(
            "generated",
            "Results as generated",
            join(
                "TTFT ", times[0], " · TPOT ", times[1], told(rate, join(" · ", text(rate), " tokens/s"), "")
            ),
        ),
        parts=(*times, *short),
        live=_text("live", "Live results", join("Live results: ", verdict.stamp)),
        nearest=_nearest_run(graph),
    )


def _nearest_run(graph: EstimateGraph) -> tuple[Quantity, Quantity, Quantity] | None:
    """The nearest measured run in words if it is near, the run, and the degrees here, of which they tell."""
    if not graph.nearest:
        return None
    plan = _text("degrees", "Degrees", graph.rows.node("nearest.degrees_here"))
    run = _text("nearest_run", "Run at the least distance", nearest.told(graph.rows, plan))
    near = if_error(nearest.if_near(graph.rows, run), "Nearest measured run: not known")
    return _text("nearest", "Nearest measured run", near), run, plan


def _text(name: str, label: str, content: Node) -> Quantity:
    return Quantity(f"summary.{name}", label, "1", content)


def _title(name: str, content: Node) -> Quantity:
    return Quantity(f"summary.title.{name}", "Chart title", "1", if_error(content, NOT_KNOWN))


def _tile(name: str, line: Node, definition: Node | None = None) -> Tile:
    return Tile(
        line=_text(f"tile.{name}", "Line of a tile", if_error(line, NOT_KNOWN)),
        definition=None
        if definition is None
        else _text(f"tile.{name}.definition", "Definition of a tile", if_error(definition, NOT_KNOWN)),
    )


def _memory_tile(graph: EstimateGraph) -> Tile:
    """KV cache, the range of what is in use after the start, and main memory of a machine."""
    kv, fullest = graph.fullest["memory.kv"], graph.fullest
    low, high = (rounded(in_unit(end, "GB"), 1) for end in fullest.ranges["peak_memory"])
    likely = _text("tile.memory_used.range", "Range of a tile", join("80\u00a0%: ", low, " to ", high, " GB"))
    on_host = text(in_unit(fullest["startup.host"], "GB"))
    words = join("fullest one; after the start ", likely, "; host memory ", on_host, " GB")
    tile = _tile("memory_used", join("KV cache ", rounded(in_unit(kv, "GB"), 1), " GB"), words)
    return replace(tile, range=likely)


def _prefill_rate(graph: EstimateGraph) -> Quantity:
    """How fast prompts are worked out, beside the share of the peak that this takes."""
    rate = graph.headlines[PREFILL_TOKENS_PER_S]
    words = told(rate, join("Prefill ", text(rate), " tokens/s, MFU"), "Prefill compute, MFU")
    return _text("tile.ttft.second", "Second line of a tile", words)


def _ranged(graph: EstimateGraph, metric: Metric, name: str, definition: Node) -> Tile:
    """A tile whose line is the range of its number.

    Args:
        name: of the ranges.
    """
    interval, parts = _likely(graph, metric, name)
    likely = _text(f"tile.{name}.range", "Range of a tile", interval)
    tile = replace(_tile(name, told(graph.headlines[metric], likely), definition), range=likely)
    return _timed(graph, metric, tile, *parts) if metric.unit == "s" else tile


def _timed(graph: EstimateGraph, metric: Metric, tile: Tile, *parts: Quantity) -> Tile:
    """A tile whose number is a time: minutes and hours are told in words."""
    figure, name = graph.headlines[metric], f"tile.{metric.attribute}"
    time, unit = number_of(figure), metric.display_unit
    long = _text(f"{name}.long", "A long time of a tile", long_time(time))
    body = where(time >= TIMES_FROM[1], long, converted(time, metric.unit, unit))
    shown = Quantity(f"summary.{name}.number", "Number of a tile", unit, body)
    return replace(tile, number=told(figure, shown), parts=(long, shown, *parts))


def _likely(graph: EstimateGraph, metric: Metric, name: str) -> tuple[Node, tuple[Quantity, ...]]:
    """The range of a result that holds 80 % of runs in words, and parts of them."""
    unit = metric.display_unit
    low, high = (graph.rows[f"evidence.{name}.{end}"] for end in ("p10", "p90"))
    values = [in_unit(end, unit) for end in (low, high)]
    ends = [where(value >= 1, rounded(value, metric.large_digits), rounded(value, 2)) for value in values]
    interval = join("80 %: ", ends[0], " to ", ends[1])
    if unit == metric.unit:
        return interval, ()
    short = _text(f"tile.{name}.range.short", "Range of a short time", join(interval, f" {unit}"))
    long = [
        _text(
            f"tile.{name}.range.{end}", f"{end.capitalize()} end of the range of a long time", long_time(time)
        )
        for end, time in (("low", low), ("high", high))
    ]
    return where(high >= LONG, join("80 %: ", long[0], " to ", long[1]), short), (short, *long)


def _floor(graph: EstimateGraph, metric: Metric) -> Node:
    """What a metric is, and its floor."""
    floor = graph.figures[f"floor.{metric.attribute}"]
    words = join(f"{metric.definition}; floor ", _in_headline(metric, floor), f" {metric.display_unit}")
    overload, duration = _overload(graph), graph.inputs.load_duration
    if metric is not TTFT or overload is None or duration is None:
        return words
    grows = join("overloaded: the queue grows; mean over a load of ", text(duration), " s")
    return where(overload, grows, words)


def _overload(graph: EstimateGraph) -> Node | None:
    """Whether more requests arrive than a plan that can be serves; None without a request rate."""
    load = graph.checks.load
    return None if load is None else all_of(graph.rows["checks.possible"] > 0, if_error(load, 0) > 1)


def _count(tokens: Input) -> Node:
    """A number of tokens as text; a mean over classes may lie half way between two."""
    return text(tokens) if tokens.follows is None else rounded(tokens, 0)


def _within_limits(graph: EstimateGraph, speeds: Quantity) -> Quantity:
    """The speed for a user and, where limits are stated, the share of requests within them."""
    inputs, share = graph.inputs, graph.headlines[GOODPUT_SHARE]
    needs: list[Node] = [is_number(share)]
    if graph.classes is None:
        needs.append(inputs.ttft_limit + inputs.tpot_limit + inputs.e2e_limit > 0)
    words = join(speeds, ", ", percent(share, 0), " of requests within limits")
    return _text("speeds_and_limits", "Speed for a user, and limits", where(all_of(*needs), words, speeds))


def _in_headline(metric: Metric, figure: Named) -> Node:
    """A value of a metric as the number of a headline."""
    return rounded(converted(figure, figure.unit, metric.display_unit), metric.large_digits)


def _above_floors(graph: EstimateGraph) -> Node:
    """How far results are above their independent floors."""
    times = []
    for metric in (TTFT, TPOT):
        figure = graph.headlines[metric]
        share = figure / graph.figures[f"floor.{metric.attribute}"]
        times.append(told(figure, join(rounded(share, 1), " ×")))
    return join("Above the independent floor: TTFT ", times[0], ", TPOT ", times[1])


def _memory_part(name: str, amount: Node) -> MemoryPart:
    part = Quantity(f"summary.memory.{name}", name, "GB", amount)
    label = _text(f"memory.{name}.label", f"Label, {name}", join(f"{name} ", rounded(part, 1)))
    return MemoryPart(name, part, label)


def _module_group(phase: Pass, number: int, label: str) -> ModuleGroup:
    """A group of modules, and its time.

    A billionth of it per place keeps groups of equal time in one order in every engine, and a billionth of a
    millisecond those without any. Less than that some engines take for equal.
    """
    name = phase.phase.id
    group = Input(f"summary.{name}.group.{number}", f"Group {number}", "1", label, shared=True, fixed=True)
    place = Input(
        f"summary.{name}.number.{number}", f"Number {number}", "number", number, shared=True, fixed=True
    )
    spent = converted(phase.times.of(group), "s", "ms")
    key = spent * (1 + place * TOLERANCE) + place * TOLERANCE
    return ModuleGroup(group, place, Quantity(f"summary.{name}.key.{number}", "Key", "ms", key))


def _ranked_group(
    phase: Pass, rank: int, keys: Sequence[Quantity], names: Sequence[Input], possible: Node
) -> RankedGroup:
    """The group of a rank, and its time by what limits it; no time where the plan cannot be."""
    name = phase.phase.id
    place = Input(f"summary.{name}.rank.{rank}", f"Rank {rank}", "number", rank, shared=True, fixed=True)
    largest = match(nth_largest(span(keys), place), span(keys))
    entry = Quantity(f"summary.{name}.entry.{rank}", "Entry", "number", largest)
    group = Quantity(f"summary.{name}.sorted.{rank}", "Group", "1", index(span(names), entry))
    spent = index(span(keys), entry)
    label = join(group, "   ", rounded(spent, 2))
    shown = all_of(possible, spent > (1 + entry) * TOLERANCE)
    return RankedGroup(
        rank=place,
        entry=entry,
        group=group,
        label=_text(f"{name}.label.{rank}", "Label", where(shown, label, "–")),
        times={
            limit: Quantity(
                f"summary.{name}.{limit}.{rank}",
                f"Time by {limit}",
                "ms",
                where(possible, converted(phase.shares[limit].of(group), "s", "ms"), 0),
            )
            for limit in LIMITS
            if phase.shares[limit].figures
        },
    )


def _roof(
    name: str,
    peak: Quantity,
    bandwidth: Quantity,
    left: Input,
    right: Input,
    ends: Sequence[Input | Quantity],
) -> tuple[RooflinePoint, ...]:
    """A roof from the left edge over the ridge to the right edge.

    Args:
        ends: what stands at the edges.
    """
    ridge = Quantity(f"summary.roof.{name}.ridge", f"Ridge, {name}", "FLOP/B", peak / bandwidth)
    rates = (
        Quantity(
            f"summary.roof.{name}.rate.{number}",
            f"Roof, {name}",
            "TFLOP/s",
            converted(minimum(peak, intensity * bandwidth), "FLOP/s", "TFLOP/s"),
        )
        for number, intensity in enumerate((left, ridge.body, right))
    )
    places = (ends[0], ridge, ends[1])
    return tuple(RooflinePoint(place, rate) for place, rate in zip(places, rates, strict=True))


def _placed_blocks(phase: Pass, values: Mapping[Node, Any]) -> list[PlacedBlock]:
    """The blocks of a pass that take long enough, and in decode the attention core.

    The largest has a label, in decode the attention core as well.
    """
    decode = phase.phase.id == "decode"
    blocks = [block for block in phase.blocks if block.flops is not None and block.bytes is not None]
    times = {block.id: float(values[block.time]) for block in blocks}
    largest = max(blocks, key=lambda block: times[block.id])
    cores = [block for block in blocks if block.group == "attention"] if decode else []
    core = max(cores, key=lambda block: times[block.id]) if cores else None
    return [
        PlacedBlock(
            phase.phase.id,
            block,
            _block_label(phase, block, block is core) if block in (largest, core) else None,
            _point(phase, block),
        )
        for block in blocks
        if times[block.id] >= _SMALLEST_SHARE * float(values[phase.time]) or block is core
    ]


def _block_label(phase: Pass, block: Block, core: bool) -> str:
    names = {"ffn": "FFN", "experts": "experts", "attention": "attention"}
    name = names.get(block.group, block.label.split(" ")[0])
    return name if core else f"{phase.phase.id} {name}"


def _point(phase: Pass, block: Block) -> RooflinePoint:
    assert block.flops is not None and block.bytes is not None
    name, label = f"summary.{phase.phase.id}.{block.id}", f"{phase.phase.id}, {block.label}"
    rate = converted(block.flops / block.layer_time, "FLOP/s", "TFLOP/s")
    return RooflinePoint(
        Quantity(f"{name}.intensity", f"FLOP per byte, {label}", "FLOP/B", block.flops / block.bytes),
        Quantity(f"{name}.rate", f"Rate, {label}", "TFLOP/s", rate),
    )
