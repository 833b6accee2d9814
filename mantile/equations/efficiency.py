"""How much of the hardware is reached: efficiency factors of the profiles, by fallback, overridable per scenario.

A profile holds for everything, a generation or an accelerator, with or without a framework. Of the figures that hold
for a scenario the most specific is used; its level stands beside each figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mantile.equations.constants import GIGA, MICRO
from mantile.equations.hardware import Hardware, override
from mantile.equations.workload import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Row,
    Section,
    as_node,
    element,
    equal,
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
from mantile.library.errors import InputError
from mantile.library.profiles import EfficiencyProfile, Factor, Library

Condition = Literal["format", "kv", "ranks"]
RANKS = (2, 4, 8)
FORMATS = ("bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only")
KV_FORMATS = ("bf16", "fp8")


@dataclass(frozen=True)
class FactorKind:
    """What a factor means, in which unit, over which range, and whether it is a fraction of a peak."""

    name: str
    label: str
    unit: str
    note: str
    low: float
    high: float
    condition: Condition | None = None
    fraction: bool = False


KINDS = (
    FactorKind("gemm_launch", "GEMM launch overhead", "us", "time a matrix product takes before its first byte", 0, 500,
               "format"),
    FactorKind("gemm_compute", "GEMM compute efficiency", "1", "share of the dense peak a large product reaches", 0.05, 1,
               "format", True),
    FactorKind("gemm_bandwidth", "GEMM bandwidth efficiency", "1", "share of memory bandwidth a product reaches that streams "
               "its weights", 0.05, 1, "format", True),
    FactorKind("gemm_bandwidth_scale", "GEMM bandwidth scale", "1", "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("launch_scale", "Launch overhead scale", "1", "serving runs with graphs against kernel timings", 0.1, 5),
    FactorKind("attention_launch", "Attention launch overhead", "us", "time an attention kernel takes before its first byte",
               0, 500),
    FactorKind("attention_prefill", "Prefill attention efficiency", "1", "share of the bf16 peak in fused causal attention",
               0.05, 1, None, True),
    FactorKind("attention_prefill_scale", "Prefill attention scale", "1", "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("attention_decode", "Decode attention efficiency", "1", "share of memory bandwidth when the KV cache is read",
               0.05, 1, "kv", True),
    FactorKind("attention_decode_scale", "Decode attention scale", "1", "serving runs against kernel timings", 0.3, 1.3),
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
    """Factors in use, by name, in SI units, and the rows they come from."""

    factors: dict[str, Quantity]
    rates: dict[str, Quantity]
    largest: Quantity
    smallest: Quantity
    profile: Quantity
    sections: tuple[Section, ...]
    overrides: tuple[Input, ...]

    def __getitem__(self, name: str) -> Quantity:
        """A factor in use, or what follows from it and the hardware: a time, a FLOP/s or a B/s that is reached."""
        return self.rates[name] if name in self.rates else self.factors[name]


def efficiency(library: Library, inputs: Workload, hardware: Hardware) -> Efficiency:
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
    ranks_in_use = Quantity("efficiency.ranks_in_use", "Ranks whose all-reduce holds", "rank",
                            element(span(ranks), position_at_most(maximum(inputs.tp, ranks[0]), span(ranks))),
                            note="largest measured number of ranks not above TP")  # fmt: skip
    conditions: dict[str, tuple[Node, dict[object, Input]]] = {
        "format": (hardware.kernel_format, dict(zip(FORMATS, formats, strict=True))),
        "kv": (hardware.kv_format, dict(zip(KV_FORMATS, kv_formats, strict=True))),
        "ranks": (ranks_in_use, dict(zip(RANKS, ranks, strict=True))),
    }
    sections = [
        Section("Fallback chain", (*chain, *numbers), "from wide to specific"),
        Section("Profiles", (*profile_rows, best), "each with the level at which it holds; 0 where it does not",
                Section.SUBTOTAL),
        Section("Conditions", (*formats, *kv_formats, *ranks, ranks_in_use), "for which some factors differ"),
    ]  # fmt: skip
    factors: dict[str, Quantity] = {}
    overrides: list[Input] = []
    for kind in KINDS:
        figures: list[Input] = []
        applies: list[Quantity] = []
        for profile in profiles:
            for factor in profile.factors:
                if factor.factor == kind.name:
                    figure, level = _library_row(kind, profile, factor, levels[profile.key], conditions)
                    figures.append(figure)
                    applies.append(level)
        mine = override(f"efficiency.{kind.name}", kind.label, kind.unit, kind.label.lower(), kind.low, kind.high)
        overrides.append(mine)
        found = element(span(figures), position(maximum(span(applies)), span(applies)))
        chosen: Node = where(is_number(mine), mine, found)
        if kind.unit == "us":
            chosen, unit, note = chosen / MICRO, "s", "figure of the highest level, or the override, ÷ 1E6"
        elif kind.unit in ("GB", "GB/s"):
            chosen, unit, note = chosen * GIGA, kind.unit.replace("GB", "B"), "figure of the highest level, or the override, × 1E9"
        else:
            unit, note = kind.unit, "figure of the highest level, or the override"
        factors[kind.name] = Quantity(f"efficiency.{kind.name}", f"{kind.label} in use", unit, chosen, note=note,
                                      name=kind.label if kind.label.startswith("GEMM") else kind.label.lower(), factor=True)  # fmt: skip
        rows: tuple[Row, ...] = tuple(zip(figures, applies, strict=True))
        sections.append(Section(kind.label, (*rows, mine, factors[kind.name]), kind.note, Section.SUBTOTAL))
    rates, fractions = _rates(factors, hardware)
    largest = Quantity("efficiency.largest", "Largest fraction", "1", maximum(*fractions), note="of a peak; must not exceed 1")
    smallest = Quantity("efficiency.smallest", "Smallest fraction", "1", minimum(*fractions), note="of a peak; must exceed 0")
    sections.append(Section("What is reached", (*rates.values(), largest, smallest), "factor × scale × datasheet figure"))
    return Efficiency(factors, rates, largest, smallest, best, tuple(sections), tuple(overrides))


def _rates(factors: dict[str, Quantity], hardware: Hardware) -> tuple[dict[str, Quantity], list[Quantity]]:
    """What factors and hardware come to, once for all blocks; and the fractions of a peak to be checked."""

    def rate(name: str, label: str, unit: str, body: Node) -> Quantity:
        return Quantity(f"efficiency.rate.{name}", label, unit, body)

    reached_gemm = Quantity("efficiency.gemm_bandwidth_reached", "GEMM bandwidth fraction", "1",
                            factors["gemm_bandwidth"] * factors["gemm_bandwidth_scale"])  # fmt: skip
    reached_kv = Quantity("efficiency.attention_decode_reached", "Decode attention fraction", "1",
                          factors["attention_decode"] * factors["attention_decode_scale"])  # fmt: skip
    reached_prefill = Quantity("efficiency.attention_prefill_reached", "Prefill attention fraction", "1",
                               factors["attention_prefill"] * factors["attention_prefill_scale"])  # fmt: skip
    bandwidth = hardware.memory_bandwidth
    rates = {
        "gemm_fraction": reached_gemm,
        "kv_fraction": reached_kv,
        "prefill_fraction": reached_prefill,
        "gemm_launch_time": rate("gemm_launch", "GEMM launch time", "s", factors["gemm_launch"] * factors["launch_scale"]),
        "gemm_flops": rate("gemm_flops", "GEMM FLOP/s reached", "FLOP/s", factors["gemm_compute"] * hardware.linear_peak),
        "head_flops": rate("head_flops", "LM head FLOP/s reached", "FLOP/s", factors["gemm_compute"] * hardware.peak_bf16),
        "gemm_bytes": rate("gemm_bytes", "GEMM bandwidth reached", "B/s", reached_gemm * bandwidth),
        "attention_launch_time": rate("attention_launch", "Attention launch time", "s",
                                      factors["attention_launch"] * factors["launch_scale"]),
        "attention_flops": rate("attention_flops", "Attention FLOP/s reached", "FLOP/s", reached_prefill * hardware.peak_bf16),
        "kv_read": rate("kv_read", "KV cache bandwidth reached", "B/s", reached_kv * bandwidth),
        "streaming": rate("streaming", "Elementwise bandwidth reached", "B/s", factors["elementwise_bandwidth"] * bandwidth),
        "all_reduce_time": rate("all_reduce_time", "All-reduce fixed time", "s",
                                factors["all_reduce_latency"] * factors["all_reduce_latency_scale"]),
        "p2p_bytes": rate("p2p_bytes", "Stage-to-stage bandwidth reached", "B/s",
                          factors["p2p_bandwidth"] * hardware.link_bandwidth),
    }  # fmt: skip
    plain = [factors[kind.name] for kind in KINDS if kind.fraction
             and kind.name not in ("gemm_bandwidth", "attention_decode", "attention_prefill")]  # fmt: skip
    return rates, [reached_gemm, reached_kv, reached_prefill, *plain]


def _link(name: str, label: str, body: Node, note: str) -> Quantity:
    return Quantity(f"efficiency.chain.{name}", label, "1", body, note=note, name="fallback chain")


def _library_row(kind: FactorKind, profile: EfficiencyProfile, factor: Factor, level: Quantity,
                 conditions: dict[str, tuple[Node, dict[object, Input]]]) -> tuple[Input, Quantity]:  # fmt: skip
    body: Node = level
    suffix = ""
    if kind.condition is not None:
        value = getattr(factor, kind.condition)
        in_use, keys = conditions[kind.condition]
        body = where(equal(in_use, keys[value]), level, 0)
        suffix = f".{value}" if kind.condition != "ranks" else f".tp{value}"
    words = f" · {suffix[1:]}" if suffix else ""
    identifier = f"efficiency.{kind.name}.{profile.key}{suffix}"
    figure = Input(identifier, f"{profile.key}{words} · {kind.label.lower().replace('gemm', 'GEMM')}", kind.unit, factor.value,
                   kind.note, f"{factor.status} {factor.date:%Y-%m}: {factor.source}", factor.status, shared=True,
                   minimum=kind.low, maximum=kind.high, name=f"{kind.label.lower()} figures")  # fmt: skip
    applies = Quantity(f"{identifier}.level", f"Level of {figure.label}", "level", body,
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
    domains: dict[str | None, tuple[object, ...]] = {None: (None,), "format": FORMATS, "kv": KV_FORMATS, "ranks": RANKS}
    have = {(factor.factor, factor.format, factor.kv, factor.ranks) for factor in profile.factors}
    for kind in KINDS:
        for value in domains[kind.condition]:
            key = tuple(value if condition == kind.condition else None for condition in ("format", "kv", "ranks"))
            if (kind.name, *key) not in have:
                raise InputError(f"profiles/efficiency/global.yaml: factor {kind.name}{f' for {value}' if value else ''} is "
                                 "missing; the global profile ends every fallback chain")  # fmt: skip
