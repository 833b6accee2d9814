"""What the chosen accelerator and system offer: looked up in the library, overridable, in SI units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mantile.equations import framework, system
from mantile.equations import library as stated
from mantile.equations.constant import GIBI, GIGA, TERA
from mantile.equations.inputs import Workload
from mantile.equations.library import PEAKS, FactKind
from mantile.equations.override import Overridable, override_cell, unless_overridden
from mantile.equations.things import NOBODY, SourceList, things
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    all_of,
    equal,
    index,
    is_number,
    match,
    maximum,
    minimum,
    span,
    sum_of,
    where,
)
from mantile.graph.sentence import lowered
from mantile.library.profiles import Library
from mantile.library.scenario_fields import DEFAULT, DEFAULT_SYSTEM

_SOURCES = "Sources"
_OF_LIBRARY = "select a figure to read who states it; one that nobody states is empty, and counts as 0"
_SI = {"GiB": ("B", GIBI), "GB": ("B", GIGA), "GB/s": ("B/s", GIGA), "TFLOP/s": ("FLOP/s", TERA)}


@dataclass(frozen=True)
class Hardware:
    """Facts of the chosen accelerator and of the system it stands in.

    Peaks are in FLOP/s, by name; bandwidths in B/s and per direction; sizes in B, power in W, prices in USD.
    What an accelerator or system does not have is 0.

    Args:
        system_accelerators: of one scale-up domain; `domains` of them can be joined by `scale_out_bandwidth`.
        own_prices: by basis, 1 if somebody typed the price that it rests on.
        offers: what is said of every price in the library, by part.
        framework_runs: 1 if the framework runs on chips of this maker.
        framework_pads: 1 if it pads there what TP does not divide.
        pairs: what the library states of frameworks.
        memory_visible: what the accelerator may use of its memory.
        system_matches: 1 if the system is one of the accelerator's.
        machine: class of machine, text.
        host_accelerators: of one host; `hosts` of them make a domain.
        host_memory: of all hosts of a domain, as its bandwidth; `disk` and `disk_bandwidth` of all their
            disks, None where no scenario caches prefixes.
        topology: text; the flags beside it are 1 where it is so.
        direct: each accelerator reaches every other of its domain at once.
        sections: of accelerators and systems; the first is the list of accelerators.
        sources: who states what they say; `stated` of each accelerator and system, by what ids begin with.
        systems: ids, for the list of choices.
    """

    name: Quantity
    generation: Quantity
    vendor: Quantity
    framework_runs: Quantity
    framework_pads: Quantity
    pairs: framework.Pairs
    peaks: Mapping[str, Quantity]
    peak_keys: tuple[Input, ...]
    memory_bandwidth: Quantity
    memory_capacity: Quantity
    memory_visible: Quantity
    host_bandwidth: Quantity
    tdp: Quantity
    idle: Quantity
    prices: Mapping[str, Quantity]
    own_prices: Mapping[str, Quantity]
    offers: Mapping[str, tuple[Input, ...]]
    system: Quantity
    system_matches: Quantity
    topology: Quantity
    link: Quantity
    mesh: Quantity
    torus: Quantity
    direct: Quantity
    in_switch: Quantity
    system_accelerators: Quantity
    link_bandwidth: Quantity
    pair_bandwidth: Quantity
    torus_axes: Quantity
    domains: Quantity
    scale_out_bandwidth: Quantity
    hosts: Quantity
    host_accelerators: Quantity
    host_memory: Quantity
    host_memory_bandwidth: Quantity
    disk: Quantity | None
    disk_bandwidth: Quantity | None
    machine: Quantity
    whole_machine: Quantity
    accelerators: tuple[Input, ...]
    systems: tuple[Input, ...]
    sections: tuple[Section, ...]
    sources: SourceList
    stated: Mapping[str, tuple[Input, ...]]
    overridable: tuple[Overridable, ...]


def hardware(library: Library, inputs: Workload) -> Hardware:
    """The rows of the Hardware sheet about accelerator and system."""
    accelerators = stated.accelerators(library)
    place = _place("accelerator", inputs.accelerator, accelerators)
    chip = _Chosen(place, {"Accelerator": accelerators}, [place])
    texts = {kind.name: chip.text(kind, stated.texts(library, kind)) for kind in stated.TEXTS}
    peak_keys, peaks = _peaks(library, chip)
    facts = {kind.name: chip.fact(kind, stated.facts(library, kind)) for kind in stated.FACTS}
    prices = {
        kind.name.removeprefix("price_"): chip.fact(kind, stated.prices(library, kind))
        for kind in stated.PRICES
    }
    owned_stated = Quantity(
        "hardware.price_owned_stated",
        "A cost of owning of one's own",
        "flag",
        where(is_number(chip.cell("hardware.price_owned")), 1, 0),
        note="1 where the cell above is filled: it then stands for what is worked out",
    )
    own_prices = _own_prices(library, chip, owned_stated)
    offers = stated.offers(library)
    sources = SourceList("library", NOBODY)
    asked = things("Prices", {stated.OFFER_PARTS[part].label: said for part, said in offers.items()})
    systems = system.systems(library)
    chosen_system = _system(library, inputs, chip)
    place = _place("system", chosen_system, systems)
    domain = _Chosen(place, {"System": systems}, [chosen_system, place])
    of_accelerator = domain.text(system.ACCELERATOR, system.accelerators(library))
    topology = domain.text(system.TOPOLOGY, system.topologies(library))
    link = domain.text(system.LINK, system.links(library))
    machine = domain.text(system.MACHINE, system.machines(library))
    flags = {kind.name: domain.flag(kind, system.flags(library, kind)) for kind in system.FLAGS}
    kinds = system.FACTS if inputs.prefix_disk is None else (*system.FACTS, *system.DISKS)
    links = {kind.name: domain.fact(kind, system.facts(library, kind)) for kind in kinds}

    pairs = framework.pairs(library)
    runs, pads, frameworks = _framework_runs(pairs, inputs, texts["vendor"])
    listed, visible = _memory_visible(chip, facts)
    matches = Quantity(
        "hardware.system_matches",
        "The system holds this accelerator",
        "flag",
        where(equal(of_accelerator, inputs.accelerator), 1, 0),
    )
    topologies = _topologies(topology)
    direct = _direct(topologies, flags["peer_to_peer"])
    allowed = Section("Links", (matches, *topologies.values(), direct), "what the topology allows")
    hosts = Quantity(
        "hardware.hosts_of_domain", "Hosts that share a domain", "host", maximum(1, links["hosts"])
    )
    on_host = Quantity(
        "hardware.host_accelerators",
        "Accelerators of a host",
        "accelerator",
        links["accelerators"] / hosts,
    )
    for prefix, table in (("library", chip), ("system", domain)):
        keys, *stated_facts = table.facts.values()
        table.facts[_SOURCES] = sources.of_things(prefix, stated_facts, keys)
    return Hardware(
        name=texts["name"],
        generation=texts["generation"],
        vendor=texts["vendor"],
        framework_runs=runs,
        framework_pads=pads,
        pairs=pairs,
        peaks=peaks,
        peak_keys=peak_keys,
        memory_bandwidth=facts["memory_bandwidth"],
        memory_capacity=facts["memory_capacity"],
        memory_visible=visible,
        host_bandwidth=facts["host_bandwidth"],
        tdp=facts["tdp"],
        idle=facts["idle"],
        prices=prices,
        own_prices=own_prices,
        offers=offers,
        system=chosen_system,
        system_matches=matches,
        topology=topology,
        link=link,
        mesh=topologies["mesh"],
        torus=topologies["torus"],
        direct=direct,
        in_switch=flags["in_switch_reduction"],
        system_accelerators=links["accelerators"],
        link_bandwidth=links["link_bandwidth"],
        pair_bandwidth=links["pair_bandwidth"],
        torus_axes=links["torus_axes"],
        domains=links["domains"],
        scale_out_bandwidth=links["scale_out_bandwidth"],
        hosts=hosts,
        host_accelerators=on_host,
        host_memory=links["host_memory"],
        host_memory_bandwidth=links["host_memory_bandwidth"],
        disk=links.get("disk"),
        disk_bandwidth=links.get("disk_bandwidth"),
        machine=machine,
        whole_machine=flags["whole_machine"],
        accelerators=accelerators,
        systems=systems,
        sections=(
            *chip.sections("Accelerators", "Accelerator in use", sources),
            asked,
            Section("Memory that may be used", (listed, visible), "of the chosen accelerator"),
            *domain.sections("Systems", "System in use", sources),
            *frameworks,
            allowed,
            Section("Hosts", (hosts, on_host), "of a domain of the chosen system"),
        ),
        sources=sources,
        stated={"library": chip.facts[_SOURCES], "system": domain.facts[_SOURCES]},
        overridable=(*chip.overridable, *domain.overridable),
    )


@dataclass(frozen=True)
class _Chosen:
    """The table of what the library states of all things of a kind, and what holds for the chosen one.

    Args:
        place: of the chosen one among them.
        facts: of all of them, by what stands over their column; first the ids.
        rows, overridable: of the chosen one, made so far.
    """

    place: Quantity
    facts: dict[str, tuple[Input, ...]]
    rows: list[Named]
    overridable: list[Overridable] = field(default_factory=list)

    def sections(self, title: str, chosen: str, sources: SourceList) -> tuple[Section, ...]:
        """The table and what holds for the chosen one."""
        note = "what stands in the table above for the one chosen; an override comes first"
        return (
            things(title, self.facts, _OF_LIBRARY, sources=sources),
            Section(chosen, tuple(self.rows), note),
        )

    def text(self, kind: FactKind, rows: Sequence[Input]) -> Quantity:
        """The text of the chosen one."""
        return self._looked_up(kind, rows, "1")

    def flag(self, kind: FactKind, rows: Sequence[Input]) -> Quantity:
        """The flag of the chosen one."""
        return self._looked_up(kind, rows, "flag")

    def _looked_up(self, kind: FactKind, rows: Sequence[Input], unit: str) -> Quantity:
        body = index(span(rows), self.place)
        chosen = Quantity(f"hardware.{kind.name}", kind.label, unit, body, note=kind.note)
        self.facts[kind.label] = tuple(rows)
        self.rows.append(chosen)
        return chosen

    def fact(self, kind: FactKind, rows: Sequence[Input]) -> Quantity:
        """The fact of the chosen one or its override, in SI units."""
        cell = override_cell(f"hardware.{kind.name}", kind.label, kind.unit, kind.least, stated.MOST)
        default = index(span(rows), self.place)
        chosen = unless_overridden(cell, default)
        unit, scale = _SI.get(kind.unit, (kind.unit, None))
        used = Quantity(
            f"hardware.{kind.name}",
            f"{kind.label} in use",
            unit,
            chosen if scale is None else chosen * scale,
            note=kind.note,
            name=lowered(kind.label),
        )
        self.facts[kind.label] = tuple(rows)
        self.rows.extend((cell, used))
        self.overridable.append(Overridable(cell, (used,), (default,)))
        return used

    def cell(self, identifier: str) -> Input:
        """The override cell of a fact, by the fact's id."""
        return next(each.cell for each in self.overridable if each.id == identifier)


def _own_prices(library: Library, chip: _Chosen, owned_stated: Quantity) -> dict[str, Quantity]:
    """By basis, whether the price that it rests on is another than the library tells."""
    found = {}
    for basis, price in (("cloud", "cloud"), ("rental", "rental"), ("owned", "purchase")):
        kind = FactKind(f"price_{price}_own", f"{basis.capitalize()}: one's own price", "flag", "1 if so")
        in_library = chip.flag(kind, stated.own_prices(library, kind))
        typed = where(is_number(chip.cell(f"hardware.price_{price}")), 1, in_library)
        body = maximum(typed, owned_stated) if basis == "owned" else typed
        found[basis] = Quantity(
            f"hardware.price_{basis}_typed", f"The price was typed, {basis}", "flag", body
        )
    chip.rows.extend((owned_stated, *found.values()))
    return found


def _place(kind: str, chosen: Node, ids: Sequence[Input]) -> Quantity:
    """The place of the chosen accelerator or system in every block of the library."""
    return Quantity(f"hardware.{kind}_number", f"Place of the {kind}", "number", match(chosen, span(ids)))


def _peaks(library: Library, chip: _Chosen) -> tuple[tuple[Input, ...], dict[str, Quantity]]:
    """The names by which data types refer to dense peaks, and the peaks in use in the same order."""
    note = "without sparsity; 0 where there is no native path; int8 in TOP/s"
    peaks: dict[str, Quantity] = {}
    cells = len(chip.rows)
    for name in PEAKS:
        kind = FactKind(f"peak_{name}", f"Dense peak {name}", "TFLOP/s", note)
        peaks[name] = chip.fact(kind, stated.facts(library, kind))
    chip.rows[cells:] = [each.cell for each in chip.overridable] + list(peaks.values())  # these are a range
    keys = stated.peak_keys()
    chip.rows.extend(keys)
    return keys, peaks


def _system(library: Library, inputs: Workload, chip: _Chosen) -> Quantity:
    """The system asked for, or the one that the accelerator usually comes in."""
    usual = chip.text(stated.USUAL_SYSTEM, stated.usual_systems(library))
    return Quantity(
        "hardware.system",
        "System",
        "1",
        where(equal(inputs.system, DEFAULT_SYSTEM), usual, inputs.system),
    )


def _memory_visible(chip: _Chosen, facts: Mapping[str, Quantity]) -> tuple[Quantity, Quantity]:
    """Its memory as listed, and what it may use: all, or what its driver shows or the CPU leaves.

    Of a capacity that somebody types it may use the same share.
    """
    stated, whole = facts["memory_visible"], facts["memory_capacity"]
    (default,) = next(each.defaults for each in chip.overridable if each.id == whole.id)
    listed = Quantity("hardware.memory_listed", "Memory capacity as listed", "B", default * GIBI)
    visible = Quantity(
        "hardware.memory_seen",
        "Memory that the accelerator may use",
        "B",
        where(all_of(stated > 0, listed > 0), whole * minimum(1, stated / listed), whole),
        note="all of it where no driver shows less and no CPU shares it",
        name="memory for the accelerator",
    )
    return listed, visible


def _framework_runs(
    pairs: framework.Pairs, inputs: Workload, vendor: Quantity
) -> tuple[Quantity, Quantity, tuple[Section, ...]]:
    """Whether the framework runs on chips of this maker, and whether it pads heads there."""
    runs = Quantity(
        "hardware.framework_runs",
        "The framework runs on chips of this maker",
        "flag",
        where(pairs.states(vendor) > 0, pairs.holds(inputs.framework, vendor), 1),
        "of a maker that no framework names nobody knows it",
    )
    pads = Quantity(
        "hardware.framework_pads",
        "It pads heads and columns that TP does not divide",
        "flag",
        pairs.holds(inputs.framework, vendor, framework.PADS),
    )
    rows: tuple[Named, ...] = (runs, pads)
    if inputs.tp_padding is not None:
        told, pads = _padding(inputs.tp_padding, pads)
        rows = (*rows, told, pads)
    listed = things(
        "Frameworks",
        {"Runs": pairs.names},
        "which runs on whose chips, and does what there",
    )
    return runs, pads, (listed, Section("Framework on the chosen accelerator", rows))


def _padding(told: Input, pads: Quantity) -> tuple[Quantity, Quantity]:
    """Whether padding is asked for, and whether it is done: as told, or as the framework does."""
    asked = Quantity(
        "hardware.padding_asked", "Padding is asked for", "flag", where(equal(told, "padded"), 1, 0)
    )
    done = Quantity(
        "hardware.padding",
        "What TP does not divide is padded",
        "flag",
        where(equal(told, DEFAULT), pads, asked),
        note="as told, or as the framework does on such chips",
    )
    return asked, done


def _topologies(topology: Quantity) -> dict[str, Quantity]:
    """Flags: which topology it is."""
    return {
        kind: Quantity(
            f"hardware.is_{kind}", f"Topology is {kind}", "flag", where(equal(topology, kind), 1, 0)
        )
        for kind in ("switch", "mesh", "pcie", "torus")
    }


def _direct(topologies: Mapping[str, Quantity], peer_to_peer: Quantity) -> Quantity:
    return Quantity(
        "hardware.direct",
        "Every accelerator reaches every other at once",
        "flag",
        sum_of([topologies["switch"], topologies["mesh"], topologies["pcie"] * peer_to_peer]),
        note="over PCIe only where a message needs no stop in host memory",
    )
