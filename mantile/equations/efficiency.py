"""How much of the hardware is reached: efficiency factors of the profiles, by fallback, overridable per scenario.

A profile holds for everything, a generation or an accelerator, with or without a framework. Of the figures that hold
for a scenario the most specific is used; which profile that is among several is worked out once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mantile.equations.constant import GIGA, MICRO
from mantile.equations.factors import CONDITIONS, DOMAINS, FORMATS, KINDS, KV_FORMATS, RANKS, FactorKind
from mantile.equations.formats import CLASSES, Formats
from mantile.equations.hardware import Hardware, override
from mantile.equations.inputs import EARLY, Ranks, Workload
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    as_node,
    equal,
    index,
    is_number,
    join,
    match,
    match_at_most,
    maximum,
    minimum,
    span,
    where,
)
from mantile.ir.modules import GroupedMatMul, ModelGraph, Vision
from mantile.library.efficiency import EfficiencyProfile, Factor
from mantile.library.errors import InputError
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Efficiency:
    """Factors in use, in SI units, and the rows they come from.

    Args:
        factors: by name; one that differs by class of matrices as the class with most of them has it.
        by_user: factors by name and the class of matrices or group of ranks that uses them.
        figures: the library's figures for each factor.
        in_use: the same, each with the key of its profile.
        chain: the keys a scenario looks for, from level 1, which holds for everything.
        rates: what follows from factors and hardware: times, FLOP/s and B/s that are reached.
    """

    factors: dict[str, Quantity]
    by_user: dict[tuple[str, str], Quantity]
    figures: dict[str, tuple[Input, ...]]
    in_use: dict[str, tuple[tuple[Input, str], ...]]
    chain: tuple[Quantity, ...]
    rates: dict[str, Quantity]
    largest: Quantity
    smallest: Quantity
    profile: Quantity
    sections: tuple[Section, ...]
    overrides: tuple[Input, ...]

    def __getitem__(self, name: str) -> Quantity:
        """A factor in use, or what follows from it and the hardware."""
        return self.rates[name] if name in self.rates else self.factors[name]

    def level(self, key: str, values: Mapping[Node, Any]) -> int:
        """The level at which a profile holds for a case with these values; 0 where it does not."""
        return next((number for number, link in enumerate(self.chain, 1) if values[link] == key), 0)

    def kinds(self) -> tuple[FactorKind, ...]:
        """The factors the model needs, in order."""
        return tuple(kind for kind in KINDS if kind.name in self.factors)


def efficiency(
    library: Library, inputs: Workload, ranks: Ranks, hardware: Hardware, formats: Formats, ir: ModelGraph
) -> Efficiency:
    """The rows of the Efficiency sheet.

    Raises:
        InputError: if the global profile lacks a factor, so that a chain would end in nothing.
    """
    profiles = sorted(
        library.efficiency, key=lambda profile: (_of_links(profile), _level(profile), profile.id)
    )
    _require_complete(next(profile for profile in profiles if profile.key == "global"))

    chain = (
        _link("global", "Level 1: everything", as_node("global"), "holds for every scenario"),
        _link("framework", "Level 2: framework", join("global/", inputs.framework), "global/framework"),
        _link("generation", "Level 3: generation", hardware.generation, "generation of the accelerator"),
        _link(
            "generation_framework",
            "Level 4: generation and framework",
            join(hardware.generation, "/", inputs.framework),
            "generation/framework",
        ),
        _link(
            "topology",
            "Level 5: topology",
            join("topology/", hardware.topology),
            "how accelerators are linked",
        ),
        _link("accelerator", "Level 6: accelerator", inputs.accelerator, "the accelerator itself"),
        _link(
            "accelerator_framework",
            "Level 7: accelerator and framework",
            join(inputs.accelerator, "/", inputs.framework),
            "accelerator/framework",
        ),
        _link("link", "Level 8: kind of link", join("link/", hardware.link), "kind of link of the system"),
    )
    keys = tuple(
        Input(
            f"efficiency.profile.{profile.key}",
            f"Profile {profile.key}",
            "1",
            profile.key,
            "holds where the fallback chain has its name",
            f"version {profile.version}",
            "defined",
            shared=True,
            fixed=True,
            name="profiles",
        )
        for profile in profiles
    )
    choice = _Choice(profiles, chain)
    of_chips = [profile.key for profile in profiles if not _of_links(profile)]
    best = Quantity(
        "efficiency.profile_in_use",
        "Most specific profile",
        "1",
        index(span(keys[: len(of_chips)]), choice.among(tuple(of_chips))),
        note="of everything, generations and accelerators the profile of the highest level; factors it lacks come from others",
    )

    names = _labels("format", "Kernel format", FORMATS)
    kv_formats = _labels("kv_format", "KV format", KV_FORMATS)
    measured = tuple(
        Input(
            f"efficiency.ranks.{n}",
            f"Ranks {n}",
            "rank",
            n,
            "collectives are measured on this many ranks",
            "definition",
            "defined",
            shared=True,
            fixed=True,
            name="measured ranks",
        )
        for n in RANKS
    )
    groups = {
        name: Quantity(
            f"efficiency.ranks_in_use.{name}",
            f"Place of the ranks whose collectives hold, {words}",
            "number",
            match_at_most(maximum(size, measured[0]), span(measured)),
            note="largest measured number of ranks not above those of the group",
        )
        for name, words, size in (("tp", "TP", inputs.tp), ("stage", "stage", ranks.stage))
    }
    kv_in_use = Quantity(
        "efficiency.kv_format_in_use",
        "Place of the KV format",
        "number",
        match(formats.kv_format, span(kv_formats)),
        note="among the KV formats",
    )
    places = {
        name: Quantity(
            f"efficiency.format_in_use.{name}",
            f"Place of the kernel format, {CLASSES[name]}",
            "number",
            match(held.kernel_format, span(names)),
            note="among the kernel formats",
        )
        for name, held in formats.classes.items()
    }
    have = ir.operations() | ({Vision} if ir.vision is not None else set())
    kinds = [
        kind
        for kind in KINDS
        if (not kind.needs or have & set(kind.needs))
        and (kind.name != "kv_transfer_overlap" or ranks.disaggregated is not None)
    ]
    tables = {kind.name: _library_rows(kind, choice) for kind in kinds}
    sections = [
        Section("Profiles", keys, "of the library; one holds where its name is in the fallback chain"),
        Section("Fallback chain", chain, "from wide to specific"),
        *choice.sections(),
        Section("Profile", (best,), "of everything, generations and accelerators", Section.SUBTOTAL),
        Section(
            "Conditions",
            (*names, *kv_formats, *measured, *places.values(), kv_in_use, *groups.values()),
            "for which some factors differ",
        ),
    ]
    factors: dict[str, Quantity] = {}
    by_user: dict[tuple[str, str], Quantity] = {}
    figures: dict[str, tuple[Input, ...]] = {}
    in_use: dict[str, tuple[tuple[Input, str], ...]] = {}
    overrides: list[Input] = []
    for kind in kinds:
        users: dict[str, Quantity | None] = {"": None}
        if kind.condition == "kv":
            users = {"": kv_in_use}
        elif kind.condition == "ranks":
            users = {name: groups[name] for name in kind.groups}
        elif kind.condition == "format":
            users = {
                name: place
                for name, place in places.items()
                if (name == "experts") == (GroupedMatMul in kind.needs)
            }
        rows, found, used = tables[kind.name]
        mine = override(f"efficiency.{kind.name}", kind.label, kind.unit, kind.low, kind.high)
        overrides.append(mine)
        figures[kind.name] = tuple(figure for figure, _ in used)
        in_use[kind.name] = tuple(used)
        results = {}
        for user, place in users.items():
            picked = found[0] if place is None else index(span(found), place)  # type: ignore[arg-type]
            results[user] = _in_use(
                kind, mine, picked, user if len(users) > 1 or kind.condition == "format" else ""
            )
            by_user[kind.name, user] = results[user]
        factors[kind.name] = results["ffn"] if "ffn" in results else next(iter(results.values()))
        sections.append(Section(kind.label, (*rows, mine, *results.values()), kind.note, Section.SUBTOTAL))
    rates, fractions, early = _rates(factors, by_user, inputs, hardware, formats)
    largest = Quantity(
        "efficiency.largest",
        "Largest fraction",
        "1",
        maximum(span(fractions)),
        note="of a peak; must not exceed 1",
    )
    smallest = Quantity(
        "efficiency.smallest",
        "Smallest fraction",
        "1",
        minimum(span(fractions)),
        note="of a peak; must exceed 0",
    )
    sections += [
        Section(
            "Fractions of a peak",
            (*early, *fractions, largest, smallest),
            "factor × scale; what the checks look at",
        ),
        Section("What is reached", tuple(rates.values()), "fraction × datasheet figure"),
    ]
    return Efficiency(
        factors,
        by_user,
        figures,
        in_use,
        chain,
        rates,
        largest,
        smallest,
        best,
        tuple(sections),
        tuple(overrides),
    )


class _Choice:
    """Which of several profiles holds, once for every set of profiles that some factor is found in."""

    def __init__(self, profiles: list[EfficiencyProfile], chain: tuple[Quantity, ...]) -> None:
        self.profiles, self.chain = profiles, chain
        self._places: dict[tuple[str, ...], Quantity] = {}
        self._sections: list[Section] = []

    def among(self, keys: tuple[str, ...]) -> Quantity:
        """The place of the profile with the highest level."""
        if keys not in self._places:
            number = len(self._places) + 1
            here = [
                Input(
                    f"efficiency.choice.{number}.{key}",
                    f"Choice {number}: {key}",
                    "1",
                    key,
                    "a profile that has the figures",
                    "definition",
                    "defined",
                    shared=True,
                    fixed=True,
                    name=f"profiles of choice {number}",
                )
                for key in keys
            ]
            rows: list[Quantity] = []
            place: Node = as_node(1)  # global, which has every figure
            levels = sorted({_level(profile) for profile in self.profiles if profile.key in keys} - {1})
            for level in levels:
                found = match(self.chain[level - 1], span(here))
                place = Quantity(
                    f"efficiency.choice.{number}{'' if level == levels[-1] else f'.level_{level}'}",
                    f"Choice {number}: place of the profile, up to level {level}",
                    "number",
                    where(is_number(found), found, place),
                    note="the one of this level if there is one, else as before",
                    name=f"choice {number} up to level {level}",
                )
                rows.append(place)
            self._places[keys] = rows[-1]
            self._sections.append(
                Section(
                    f"Choice {number}",
                    (*here, *rows),
                    "for figures found in just these profiles",
                    Section.SUBTOTAL,
                )
            )
        return self._places[keys]

    def sections(self) -> tuple[Section, ...]:
        """Their blocks."""
        return tuple(self._sections)


def _library_rows(
    kind: FactorKind, choice: _Choice
) -> tuple[list[Named], list[Node], list[tuple[Input, str]]]:
    """The library's figures for a factor; under each condition the one of the highest level; figures with the keys of their profiles."""
    rows: list[Named] = []
    found: list[Node] = []
    used: list[tuple[Input, str]] = []
    for value in DOMAINS[kind.condition]:
        suffix = "" if value is None else f".tp{value}" if kind.condition == "ranks" else f".{value}"
        group = {
            profile.key: _library_figure(kind, profile, factor, suffix)
            for profile in choice.profiles
            for factor in profile.factors
            if factor.factor == kind.name
            and (kind.condition is None or getattr(factor, kind.condition) == value)
        }
        used += [(figure, key) for key, figure in group.items()]
        rows += group.values()
        figures = tuple(group.values())
        picked: Node = figures[0] if len(figures) == 1 else index(span(figures), choice.among(tuple(group)))
        if value is None:
            found = [picked]
            continue
        name = kind.label if kind.label.startswith("GEMM") else kind.label.lower()
        found.append(
            Quantity(
                f"efficiency.{kind.name}{suffix}",
                f"{kind.label}{suffix.replace('.', ', ')}",
                kind.unit,
                picked,
                note="figure of the highest level",
                name=f"{name} by {CONDITIONS[kind.condition]}",
            )
        )
    return rows + [row for row in found if isinstance(row, Quantity)], found, used


def _in_use(kind: FactorKind, mine: Input, picked: Node, user: str) -> Quantity:
    """A factor as it is used, in SI units: the override, or what the library has."""
    chosen: Node = where(is_number(mine), mine, picked)
    if kind.unit == "us":
        chosen, unit, note = chosen / MICRO, "s", "figure of the highest level, or the override, ÷ 1E6"
    elif kind.unit in ("GB", "GB/s"):
        chosen, unit, note = (
            chosen * GIGA,
            kind.unit.replace("GB", "B"),
            "figure of the highest level, or the override, × 1E9",
        )
    else:
        unit, note = kind.unit, "figure of the highest level, or the override"
    low = kind.label if kind.label.startswith("GEMM") else kind.label.lower()
    identifier = f"efficiency.{kind.name}" + (f".{user}" if user and GroupedMatMul not in kind.needs else "")
    words = f", {CLASSES.get(user, {'tp': 'TP'}.get(user, user))}" if user else ""
    return Quantity(identifier, f"{kind.label} in use{words}", unit, chosen, note=note, name=low, factor=True)


def _rates(
    factors: dict[str, Quantity],
    by_user: dict[tuple[str, str], Quantity],
    inputs: Workload,
    hardware: Hardware,
    formats: Formats,
) -> tuple[dict[str, Quantity], list[Quantity], list[Quantity]]:
    """What factors and hardware come to, once for all blocks; the fractions of a peak to be checked; and what those need."""
    rates: dict[str, Quantity] = {}
    early: list[Quantity] = []
    fractions: dict[str, Quantity] = {}
    bandwidth = hardware.memory_bandwidth

    def rate(name: str, label: str, unit: str, body: Node) -> None:
        rates[name] = Quantity(f"efficiency.rate.{name}", label, unit, body)

    def fraction(name: str, label: str, body: Node) -> Quantity:
        fractions[name] = Quantity(
            f"efficiency.fraction.{name}", f"Fraction, {label}", "1", body, name=f"{label} fraction"
        )
        return fractions[name]

    for (kind, name), factor in by_user.items():
        words = CLASSES.get(name, "")
        match kind:
            case "gemm_launch":
                rate(
                    f"gemm_launch_time.{name}",
                    f"GEMM launch time, {words}",
                    "s",
                    factor * factors["launch_scale"],
                )
            case "gemm_compute":
                reached = fraction(f"gemm_compute.{name}", f"GEMM compute, {words}", factor)
                rate(
                    f"gemm_flops.{name}",
                    f"GEMM FLOP/s reached, {words}",
                    "FLOP/s",
                    reached * formats.classes[name].linear_peak,
                )
            case "gemm_bandwidth":
                reached = fraction(
                    f"gemm_bandwidth.{name}",
                    f"GEMM bandwidth, {words}",
                    factor * factors["gemm_bandwidth_scale"],
                )
                rate(f"gemm_bytes.{name}", f"GEMM bandwidth reached, {words}", "B/s", reached * bandwidth)
    if "moe_launch" in factors:
        assert inputs.release is not None
        slower = Quantity(
            "efficiency.moe_slower",
            "Expert kernels against current ones",
            "1",
            where(equal(inputs.release, EARLY), factors["moe_early"], 1),
            note="time of early kernels where the engine is one",
            name="expert kernels against current ones",
        )
        early.append(slower)
        rate(
            "moe_launch_time",
            "Expert launch time",
            "s",
            factors["moe_launch"] * factors["moe_launch_scale"] * slower,
        )
        reached = fraction("moe_compute", "expert compute", factors["moe_compute"] / slower)
        rate("moe_flops", "Expert FLOP/s reached", "FLOP/s", reached * formats.classes["experts"].linear_peak)
        reached = fraction(
            "moe_bandwidth",
            "expert bandwidth",
            factors["moe_bandwidth"] * factors["moe_bandwidth_scale"] / slower,
        )
        rate("moe_bytes", "Expert bandwidth reached", "B/s", reached * bandwidth)
    reached = fraction(
        "attention_prefill",
        "prefill attention",
        factors["attention_prefill"] * factors["attention_prefill_scale"],
    )
    rate("attention_flops", "Attention FLOP/s reached", "FLOP/s", reached * formats.sixteen_peak)
    if "attention_launch" in factors:
        rate(
            "attention_launch_time",
            "Attention launch time",
            "s",
            factors["attention_launch"] * factors["launch_scale"],
        )
    if "attention_decode" in factors:
        reached = fraction(
            "attention_decode",
            "decode attention",
            factors["attention_decode"] * factors["attention_decode_scale"],
        )
        rate("kv_read", "KV cache bandwidth reached", "B/s", reached * bandwidth)
    if "latent_launch" in factors:
        reached = fraction(
            "latent_decode", "latent attention", factors["latent_decode"] * factors["attention_decode_scale"]
        )
        rate(
            "latent_launch_time",
            "Latent attention launch time",
            "s",
            factors["latent_launch"] * factors["launch_scale"],
        )
        rate("latent_read", "Latent bandwidth reached", "B/s", reached * bandwidth)
        reached = fraction("latent_compute", "latent attention compute", factors["latent_compute"])
        rate("latent_flops", "Latent attention FLOP/s reached", "FLOP/s", reached * formats.sixteen_peak)
    if "state_launch" in factors:
        rate(
            "state_launch_time",
            "State update launch time",
            "s",
            factors["state_launch"] * factors["launch_scale"],
        )
        reached = fraction("state_bandwidth", "state update", factors["state_bandwidth"])
        rate("state_bytes", "State bandwidth reached", "B/s", reached * bandwidth)
    reached = fraction("elementwise", "elementwise", factors["elementwise_bandwidth"])
    rate("streaming", "Elementwise bandwidth reached", "B/s", reached * bandwidth)
    fraction("memory_usable", "usable memory", factors["memory_usable"])
    reached = fraction("host_link", "host link", factors["host_link"])
    rate("host_bytes", "Host link bandwidth reached", "B/s", reached * hardware.host_bandwidth)
    links = {
        kind.name: kind for kind in KINDS if kind.fraction and kind.name.removesuffix("_bandwidth") in _LINKS
    }
    for (name, user), factor in by_user.items():
        if name in links:
            alone = len(links[name].groups) == 1 or links[name].condition is None
            words = links[name].label.removesuffix(" efficiency").lower()
            fraction(name if alone else f"{name}.{user}", words if alone else f"{words}, {user}", factor)
    return rates, list(fractions.values()), early


_LINKS = ("one_shot", "two_shot", "in_switch", "ring", "torus", "gather", "all_to_all", "network", "p2p")


def _link(name: str, label: str, body: Node, note: str) -> Quantity:
    return Quantity(f"efficiency.chain.{name}", label, "1", body, note=note, name="fallback chain")


def _library_figure(kind: FactorKind, profile: EfficiencyProfile, factor: Factor, suffix: str) -> Input:
    words = f" · {suffix[1:]}" if suffix else ""
    return Input(
        f"efficiency.{kind.name}.{profile.key}{suffix}",
        f"{profile.key}{words} · {kind.label.lower().replace('gemm', 'GEMM')}",
        kind.unit,
        factor.value,
        kind.note,
        f"{factor.status} {factor.date:%Y-%m}: {factor.source}",
        factor.status,
        shared=True,
        minimum=kind.low,
        maximum=kind.high,
        name=f"{kind.label.lower()} figures",
    )


def _labels(what: str, label: str, names: tuple[str, ...]) -> tuple[Input, ...]:
    return tuple(
        Input(
            f"efficiency.{what}.{name}",
            f"{label} {name}",
            "1",
            name,
            "a figure may hold for this only",
            "definition",
            "defined",
            shared=True,
            fixed=True,
            name=name,
        )
        for name in names
    )


def _of_links(profile: EfficiencyProfile) -> bool:
    return bool(profile.topology or profile.link)


def _level(profile: EfficiencyProfile) -> int:
    if profile.link or profile.topology:
        return 8 if profile.link else 5
    place = 6 if profile.accelerator else 3 if profile.generation else 1
    return place + (1 if profile.framework else 0)


def _require_complete(profile: EfficiencyProfile) -> None:
    have = {(factor.factor, factor.format, factor.kv, factor.ranks) for factor in profile.factors}
    for kind in KINDS:
        for value in DOMAINS[kind.condition]:
            key = tuple(
                value if condition == kind.condition else None for condition in ("format", "kv", "ranks")
            )
            if (kind.name, *key) not in have:
                raise InputError(
                    f"profiles/efficiency/global.yaml: factor {kind.name}{f' for {value}' if value else ''} is "
                    "missing; the global profile ends every fallback chain"
                )
