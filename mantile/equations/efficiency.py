"""How much of the hardware is reached: efficiency factors of the profiles, by fallback, overridable per scenario.

A profile holds for everything, a generation or an accelerator, with or without a framework. Of the figures that hold
for a scenario the most specific is used; its level stands beside each figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mantile.equations.constants import GIGA, MICRO
from mantile.equations.hardware import CLASSES, Hardware, override
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    element,
    is_number,
    join,
    maximum,
    minimum,
    position,
    position_at_most,
    span,
    sum_where,
    where,
)  # fmt: skip
from mantile.ir.modules import Attention, Experts, Indexer, LatentAttention, ModelGraph, Recurrence, Vision
from mantile.library.errors import InputError
from mantile.library.profiles import EfficiencyProfile, Factor, Library

Condition = Literal["format", "kv", "ranks"]
RANKS = (2, 4, 8)
FORMATS = ("bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only")
KV_FORMATS = ("bf16", "fp8")
DOMAINS: dict[Condition | None, tuple[object, ...]] = {None: (None,), "format": FORMATS, "kv": KV_FORMATS, "ranks": RANKS}
_CONDITIONS: dict[Condition | None, str] = {"format": "kernel format", "kv": "KV format", "ranks": "ranks"}


@dataclass(frozen=True)
class FactorKind:
    """What a factor means, in which unit, over which range, whether it is a fraction of a peak, and which operations need it.

    A factor conditional on the kernel format is worked out for every class of matrices that uses it.
    """

    name: str
    label: str
    unit: str
    note: str
    low: float
    high: float
    condition: Condition | None = None
    fraction: bool = False
    needs: tuple[type, ...] = ()


KINDS = (
    FactorKind("gemm_launch", "GEMM launch overhead", "us", "time a matrix product takes before its first byte", 0, 500,
               "format"),
    FactorKind("gemm_compute", "GEMM compute efficiency", "1", "share of the dense peak a large product reaches", 0.05, 1,
               "format", True),
    FactorKind("gemm_bandwidth", "GEMM bandwidth efficiency", "1", "share of memory bandwidth a product reaches that streams "
               "its weights", 0.05, 1, "format", True),
    FactorKind("gemm_bandwidth_scale", "GEMM bandwidth scale", "1", "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("launch_scale", "Launch overhead scale", "1", "serving runs with graphs against kernel timings", 0.1, 5),
    FactorKind("moe_launch", "Expert launch overhead", "us", "time the grouped products of a layer's experts take before their first byte",
               0, 1000, "format", needs=(Experts,)),
    FactorKind("moe_compute", "Expert compute efficiency", "1", "share of the dense peak large grouped products reach", 0.01, 1,
               "format", True, (Experts,)),
    FactorKind("moe_bandwidth", "Expert bandwidth efficiency", "1", "share of memory bandwidth grouped products reach that stream experts",
               0.05, 1, "format", True, (Experts,)),
    FactorKind("moe_launch_scale", "Expert launch scale", "1", "serving runs with graphs against kernel timings", 0.1, 5, needs=(Experts,)),
    FactorKind("moe_bandwidth_scale", "Expert bandwidth scale", "1", "serving runs against kernel timings", 0.3, 1.3, needs=(Experts,)),
    FactorKind("routing_spread", "Routing spread", "1", "exponent of the tokens in the expert coverage; 1 if routing were uniform", 0.3, 1,
               needs=(Experts,)),
    FactorKind("expert_imbalance", "Expert imbalance", "1", "work of the busiest rank's experts against the mean", 1, 10, needs=(Experts,)),
    FactorKind("attention_launch", "Attention launch overhead", "us", "time an attention kernel takes before its first byte",
               0, 500, needs=(Attention, Indexer, Vision)),
    FactorKind("attention_prefill", "Prefill attention efficiency", "1", "share of the bf16 peak in fused causal attention",
               0.05, 1, None, True),
    FactorKind("attention_prefill_scale", "Prefill attention scale", "1", "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("attention_decode", "Decode attention efficiency", "1", "share of memory bandwidth when the KV cache is read",
               0.05, 1, "kv", True, (Attention, Indexer)),
    FactorKind("attention_decode_scale", "Decode attention scale", "1", "serving runs against kernel timings", 0.3, 1.3,
               needs=(Attention, LatentAttention, Indexer)),
    FactorKind("latent_launch", "Latent attention launch overhead", "us", "time a latent attention kernel takes before its first byte",
               0, 500, needs=(LatentAttention,)),
    FactorKind("latent_decode", "Latent attention bandwidth", "1", "share of memory bandwidth when latents are read", 0.05, 1, "kv", True,
               (LatentAttention,)),
    FactorKind("latent_compute", "Latent attention compute", "1", "share of the bf16 peak in absorbed decode attention", 0.05, 1, None, True,
               (LatentAttention,)),
    FactorKind("state_launch", "State update launch overhead", "us", "time a recurrent kernel takes before its first byte", 0, 500,
               needs=(Recurrence,)),
    FactorKind("state_bandwidth", "State bandwidth", "1", "share of memory bandwidth when recurrent states are read and written", 0.05, 1,
               None, True, (Recurrence,)),
    FactorKind("small_kernel", "Small kernel overhead", "us", "time of a fused elementwise kernel before its bytes", 0, 100),
    FactorKind("elementwise_bandwidth", "Elementwise efficiency", "1", "share of memory bandwidth in norms and activations",
               0.05, 1, None, True),
    FactorKind("step_host", "Host time per step", "us", "scheduler and sampling, once per forward pass", 0, 50_000),
    FactorKind("step_row", "Host time per request in a step", "us", "scheduler and sampling, per request in the batch",
               0, 1_000),
    FactorKind("all_reduce_latency", "All-reduce latency", "us", "fixed part of one all-reduce over the ranks", 0, 1_000,
               "ranks"),
    FactorKind("all_reduce_latency_scale", "All-reduce latency scale", "1", "serving runs against kernel timings", 0.1, 5),
    FactorKind("all_reduce_bandwidth", "All-reduce bus bandwidth", "GB/s", "of large messages, per direction", 0.1, 5_000,
               "ranks"),
    FactorKind("p2p_latency", "Point-to-point latency", "us", "fixed part of a message between pipeline stages", 0, 10_000),
    FactorKind("p2p_bandwidth", "Point-to-point efficiency", "1", "share of the link a message between stages reaches", 0.05, 1,
               None, True),
    FactorKind("interference", "Prefill interference", "1", "share of the other requests' prefill time that delays decode",
               0, 2),
    FactorKind("queueing", "Prefill queueing", "1", "share of the other requests' prefill time a new request waits for", 0, 2),
    FactorKind("first_token", "First-token overhead", "us", "request handling, tokenizer and detokenizer", 0, 10_000_000),
    FactorKind("memory_usable", "Usable memory", "1", "share of memory the engine takes for weights and KV cache", 0.05, 1,
               None, True),
    FactorKind("runtime_reserve", "Runtime reserve", "GB", "context, graphs and communication buffers", 0, 100),
)  # fmt: skip


@dataclass(frozen=True)
class Efficiency:
    """Factors in use, in SI units, and the rows they come from.

    Args:
        factors: by name; one that differs by class of matrices as the class with most of them has it.
        by_class: factors that differ by class, as (name, class).
        figures: the library's figures for each factor, and its override.
        rates: what follows from factors and hardware: times, FLOP/s and B/s that are reached.
    """

    factors: dict[str, Quantity]
    by_class: dict[tuple[str, str], Quantity]
    figures: dict[str, tuple[Input, ...]]
    in_use: dict[str, tuple[tuple[Input, Quantity], ...]]
    rates: dict[str, Quantity]
    largest: Quantity
    smallest: Quantity
    profile: Quantity
    sections: tuple[Section, ...]
    overrides: tuple[Input, ...]

    def __getitem__(self, name: str) -> Quantity:
        """A factor in use, or what follows from it and the hardware."""
        return self.rates[name] if name in self.rates else self.factors[name]

    def kinds(self) -> tuple[FactorKind, ...]:
        """The factors the model needs, in order."""
        return tuple(kind for kind in KINDS if kind.name in self.factors)


def efficiency(library: Library, inputs: Workload, hardware: Hardware, ir: ModelGraph) -> Efficiency:
    """The rows of the Efficiency sheet.

    Raises:
        InputError: if the global profile lacks a factor, so that a chain would end in nothing.
    """
    profiles = sorted(library.efficiency, key=lambda profile: (_level(profile), profile.id))
    _require_complete(next(profile for profile in profiles if profile.key == "global"))

    chain = (
        _link("global", "Level 1: everything", as_node("global"), "holds for every scenario"),
        _link("framework", "Level 2: framework", join("global/", inputs.framework), "global/framework"),
        _link("generation", "Level 3: generation", hardware.generation, "generation of the accelerator"),
        _link("generation_framework", "Level 4: generation and framework",
              join(hardware.generation, "/", inputs.framework), "generation/framework"),
        _link("accelerator", "Level 5: accelerator", inputs.accelerator, "the accelerator itself"),
        _link("accelerator_framework", "Level 6: accelerator and framework",
              join(inputs.accelerator, "/", inputs.framework), "accelerator/framework"),
    )  # fmt: skip
    numbers = tuple(
        Input(f"efficiency.level.{n}", f"Level number {n}", "level", n, "the higher, the more specific", "definition", "defined",
              shared=True, fixed=True, name="level numbers")
        for n in range(1, len(chain) + 1)
    )  # fmt: skip
    levels: dict[str, Quantity] = {}
    profile_rows: list[Row] = []
    for profile in profiles:
        key = Input(f"efficiency.profile.{profile.key}", f"Profile {profile.key}", "1", profile.key,
                    "level at which it holds for the scenario; 0 if it does not", f"version {profile.version}", "defined",
                    shared=True, fixed=True, name=f"profile {profile.key}")  # fmt: skip
        levels[profile.key] = Quantity(f"efficiency.profile.{profile.key}.level", f"Level of {profile.key}", "level",
                                       sum_where(span(numbers), span(chain), key),
                                       note="level at which it holds for the scenario", name=f"level of {profile.key}")  # fmt: skip
        profile_rows.append((key, levels[profile.key]))
    keys = tuple(key for key, _ in (row for row in profile_rows if isinstance(row, tuple)))
    level_span = span(levels.values())
    best = Quantity("efficiency.profile_in_use", "Most specific profile", "1",
                    element(span(keys), position(maximum(level_span), level_span)),
                    note="the profile of the highest level; factors it lacks come from lower levels")  # fmt: skip

    formats = _labels("format", "Kernel format", FORMATS)
    kv_formats = _labels("kv_format", "KV format", KV_FORMATS)
    ranks = tuple(
        Input(f"efficiency.ranks.{n}", f"Ranks {n}", "rank", n, "all-reduce is measured on this many ranks", "definition", "defined",
              shared=True, fixed=True, name="measured ranks")
        for n in RANKS
    )  # fmt: skip
    ranks_in_use = Quantity("efficiency.ranks_in_use", "Place of the ranks whose all-reduce holds", "number",
                            position_at_most(maximum(inputs.tp, ranks[0]), span(ranks)),
                            note="largest measured number of ranks not above TP")  # fmt: skip
    kv_in_use = Quantity("efficiency.kv_format_in_use", "Place of the KV format", "number", position(hardware.kv_format, span(kv_formats)),
                         note="among the KV formats")  # fmt: skip
    places = {
        name: Quantity(f"efficiency.format_in_use.{name}", f"Place of the kernel format, {CLASSES[name]}", "number",
                       position(held.kernel_format, span(formats)), note="among the kernel formats")
        for name, held in hardware.classes.items()
    }  # fmt: skip
    sections = [
        Section("Fallback chain", (*chain, *numbers), "from wide to specific"),
        Section("Profiles", (*profile_rows, best), "each with the level at which it holds; 0 where it does not",
                Section.SUBTOTAL),
        Section("Conditions", (*formats, *kv_formats, *ranks, *places.values(), kv_in_use, ranks_in_use), "for which some factors differ"),
    ]  # fmt: skip
    chosen_by: dict[str, dict[str, Quantity]] = {"kv": {"": kv_in_use}, "ranks": {"": ranks_in_use}}
    factors: dict[str, Quantity] = {}
    by_class: dict[tuple[str, str], Quantity] = {}
    figures: dict[str, tuple[Input, ...]] = {}
    in_use: dict[str, tuple[tuple[Input, Quantity], ...]] = {}
    overrides: list[Input] = []
    have = ir.operations() | ({Vision} if ir.vision is not None else set())
    for kind in KINDS:
        if kind.needs and not have & set(kind.needs):
            continue
        users = {"": None} if kind.condition is None else chosen_by.get(kind.condition) or {
            name: place for name, place in places.items() if (name == "experts") == (Experts in kind.needs)}  # fmt: skip
        rows, found, used = _library_rows(kind, profiles, levels)
        mine = override(f"efficiency.{kind.name}", kind.label, kind.unit, kind.label.lower(), kind.low, kind.high)
        overrides.append(mine)
        figures[kind.name] = tuple(figure for figure, _ in used)
        in_use[kind.name] = tuple(used)
        results = {}
        for user, place in users.items():
            picked = found[0] if place is None else element(span(found), place)  # type: ignore[arg-type]
            results[user] = _in_use(kind, mine, picked, user)
            by_class[kind.name, user] = results[user]
        factors[kind.name] = results["ffn"] if "ffn" in results else next(iter(results.values()))
        sections.append(Section(kind.label, (*rows, mine, *results.values()), kind.note, Section.SUBTOTAL))
    rates, fractions = _rates(factors, by_class, hardware)
    largest = Quantity("efficiency.largest", "Largest fraction", "1", maximum(span(fractions)), note="of a peak; must not exceed 1")
    smallest = Quantity("efficiency.smallest", "Smallest fraction", "1", minimum(span(fractions)), note="of a peak; must exceed 0")
    sections += [
        Section("Fractions of a peak", (*fractions, largest, smallest), "factor × scale; what the checks look at"),
        Section("What is reached", tuple(rates.values()), "fraction × datasheet figure"),
    ]
    return Efficiency(factors, by_class, figures, in_use, rates, largest, smallest, best, tuple(sections), tuple(overrides))


def _library_rows(kind: FactorKind, profiles: list[EfficiencyProfile],
                  levels: dict[str, Quantity]) -> tuple[list[Row], list[Node], list[tuple[Input, Quantity]]]:  # fmt: skip
    """The library's figures for a factor; under each condition the one of the highest level; figures with their levels."""
    rows: list[Row] = []
    found: list[Node] = []
    used: list[tuple[Input, Quantity]] = []
    for value in DOMAINS[kind.condition]:
        suffix = "" if value is None else f".tp{value}" if kind.condition == "ranks" else f".{value}"
        group = [
            _library_row(kind, profile, factor, levels[profile.key], suffix)
            for profile in profiles
            for factor in profile.factors
            if factor.factor == kind.name and (kind.condition is None or getattr(factor, kind.condition) == value)
        ]  # fmt: skip
        used += group
        rows += group
        here = span(level for _, level in group)
        picked: Node = element(span(figure for figure, _ in group), position(maximum(here), here))
        if value is not None:
            name = kind.label if kind.label.startswith("GEMM") else kind.label.lower()
            picked = Quantity(f"efficiency.{kind.name}{suffix}", f"{kind.label}{suffix.replace('.', ', ')}", kind.unit, picked,
                              note="figure of the highest level", name=f"{name} by {_CONDITIONS[kind.condition]}")  # fmt: skip
            found.append(picked)
        else:
            found = [picked]
    return rows + [row for row in found if isinstance(row, Quantity)], found, used


def _in_use(kind: FactorKind, mine: Input, picked: Node, user: str) -> Quantity:
    """A factor as it is used, in SI units: the override, or what the library has."""
    chosen: Node = where(is_number(mine), mine, picked)
    if kind.unit == "us":
        chosen, unit, note = chosen / MICRO, "s", "figure of the highest level, or the override, ÷ 1E6"
    elif kind.unit in ("GB", "GB/s"):
        chosen, unit, note = chosen * GIGA, kind.unit.replace("GB", "B"), "figure of the highest level, or the override, × 1E9"
    else:
        unit, note = kind.unit, "figure of the highest level, or the override"
    low = kind.label if kind.label.startswith("GEMM") else kind.label.lower()
    identifier = f"efficiency.{kind.name}" + (f".{user}" if user and Experts not in kind.needs else "")
    words = f", {CLASSES[user]}" if user else ""
    return Quantity(identifier, f"{kind.label} in use{words}", unit, chosen, note=note, name=low, factor=True)


def _rates(factors: dict[str, Quantity], by_class: dict[tuple[str, str], Quantity],
           hardware: Hardware) -> tuple[dict[str, Quantity], list[Quantity]]:  # fmt: skip
    """What factors and hardware come to, once for all blocks; and the fractions of a peak to be checked."""
    rates: dict[str, Quantity] = {}
    fractions: dict[str, Quantity] = {}
    bandwidth = hardware.memory_bandwidth

    def rate(name: str, label: str, unit: str, body: Node) -> None:
        rates[name] = Quantity(f"efficiency.rate.{name}", label, unit, body)

    def fraction(name: str, label: str, body: Node) -> Quantity:
        fractions[name] = Quantity(f"efficiency.fraction.{name}", f"Fraction, {label}", "1", body, name=f"{label} fraction")
        return fractions[name]

    for (kind, name), factor in by_class.items():
        words = CLASSES.get(name, "")
        match kind:
            case "gemm_launch":
                rate(f"gemm_launch_time.{name}", f"GEMM launch time, {words}", "s", factor * factors["launch_scale"])
            case "gemm_compute":
                reached = fraction(f"gemm_compute.{name}", f"GEMM compute, {words}", factor)
                rate(f"gemm_flops.{name}", f"GEMM FLOP/s reached, {words}", "FLOP/s", reached * hardware.classes[name].linear_peak)
            case "gemm_bandwidth":
                reached = fraction(f"gemm_bandwidth.{name}", f"GEMM bandwidth, {words}", factor * factors["gemm_bandwidth_scale"])
                rate(f"gemm_bytes.{name}", f"GEMM bandwidth reached, {words}", "B/s", reached * bandwidth)
    if "moe_launch" in factors:
        rate("moe_launch_time", "Expert launch time", "s", factors["moe_launch"] * factors["moe_launch_scale"])
        reached = fraction("moe_compute", "expert compute", factors["moe_compute"])
        rate("moe_flops", "Expert FLOP/s reached", "FLOP/s", reached * hardware.classes["experts"].linear_peak)
        reached = fraction("moe_bandwidth", "expert bandwidth", factors["moe_bandwidth"] * factors["moe_bandwidth_scale"])
        rate("moe_bytes", "Expert bandwidth reached", "B/s", reached * bandwidth)
    reached = fraction("attention_prefill", "prefill attention", factors["attention_prefill"] * factors["attention_prefill_scale"])
    rate("attention_flops", "Attention FLOP/s reached", "FLOP/s", reached * hardware.peak_bf16)
    if "attention_launch" in factors:
        rate("attention_launch_time", "Attention launch time", "s", factors["attention_launch"] * factors["launch_scale"])
    if "attention_decode" in factors:
        reached = fraction("attention_decode", "decode attention", factors["attention_decode"] * factors["attention_decode_scale"])
        rate("kv_read", "KV cache bandwidth reached", "B/s", reached * bandwidth)
    if "latent_launch" in factors:
        reached = fraction("latent_decode", "latent attention", factors["latent_decode"] * factors["attention_decode_scale"])
        rate("latent_launch_time", "Latent attention launch time", "s", factors["latent_launch"] * factors["launch_scale"])
        rate("latent_read", "Latent bandwidth reached", "B/s", reached * bandwidth)
        reached = fraction("latent_compute", "latent attention compute", factors["latent_compute"])
        rate("latent_flops", "Latent attention FLOP/s reached", "FLOP/s", reached * hardware.peak_bf16)
    if "state_launch" in factors:
        rate("state_launch_time", "State update launch time", "s", factors["state_launch"] * factors["launch_scale"])
        reached = fraction("state_bandwidth", "state update", factors["state_bandwidth"])
        rate("state_bytes", "State bandwidth reached", "B/s", reached * bandwidth)
    reached = fraction("elementwise", "elementwise", factors["elementwise_bandwidth"])
    rate("streaming", "Elementwise bandwidth reached", "B/s", reached * bandwidth)
    rate("all_reduce_time", "All-reduce fixed time", "s", factors["all_reduce_latency"] * factors["all_reduce_latency_scale"])
    reached = fraction("p2p", "stage to stage", factors["p2p_bandwidth"])
    rate("p2p_bytes", "Stage-to-stage bandwidth reached", "B/s", reached * hardware.link_bandwidth)
    fraction("memory_usable", "usable memory", factors["memory_usable"])
    return rates, list(fractions.values())


def _link(name: str, label: str, body: Node, note: str) -> Quantity:
    return Quantity(f"efficiency.chain.{name}", label, "1", body, note=note, name="fallback chain")


def _library_row(kind: FactorKind, profile: EfficiencyProfile, factor: Factor, level: Quantity,
                 suffix: str) -> tuple[Input, Quantity]:  # fmt: skip
    words = f" · {suffix[1:]}" if suffix else ""
    identifier = f"efficiency.{kind.name}.{profile.key}{suffix}"
    figure = Input(identifier, f"{profile.key}{words} · {kind.label.lower().replace('gemm', 'GEMM')}", kind.unit, factor.value,
                   kind.note, f"{factor.status} {factor.date:%Y-%m}: {factor.source}", factor.status, shared=True,
                   minimum=kind.low, maximum=kind.high, name=f"{kind.label.lower()} figures")  # fmt: skip
    applies = Quantity(f"{identifier}.level", f"Level of {figure.label}", "level", level,
                       note="level at which the figure holds for the scenario", name="levels")  # fmt: skip
    return figure, applies


def _labels(what: str, label: str, names: tuple[str, ...]) -> tuple[Input, ...]:
    return tuple(
        Input(f"efficiency.{what}.{name}", f"{label} {name}", "1", name, "a figure may hold for this only", "definition",
              "defined", shared=True, fixed=True, name=name)
        for name in names
    )  # fmt: skip


def _level(profile: EfficiencyProfile) -> int:
    place = 5 if profile.accelerator else 3 if profile.generation else 1
    return place + (1 if profile.framework else 0)


def _require_complete(profile: EfficiencyProfile) -> None:
    have = {(factor.factor, factor.format, factor.kv, factor.ranks) for factor in profile.factors}
    for kind in KINDS:
        for value in DOMAINS[kind.condition]:
            key = tuple(value if condition == kind.condition else None for condition in ("format", "kv", "ranks"))
            if (kind.name, *key) not in have:
                raise InputError(f"profiles/efficiency/global.yaml: factor {kind.name}{f' for {value}' if value else ''} is "
                                 "missing; the global profile ends every fallback chain")  # fmt: skip
