"""What the chosen accelerator and system offer: looked up in the library, overridable, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.constant import GIBI, GIGA, TERA
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    equal,
    index,
    is_number,
    join,
    match,
    span,
    sum_of,
    sum_where,
    where,
)
from mantile.graph.sentence import called as called_
from mantile.library.figure import Figure
from mantile.library.profiles import Library, System
from mantile.library.scenario import DEFAULT_SYSTEM

PEAKS = ("bf16", "fp16", "fp8", "int8", "fp4")
_SI = {"GiB": ("B", GIBI), "GB/s": ("B/s", GIGA), "TFLOP/s": ("FLOP/s", TERA)}


@dataclass(frozen=True)
class Hardware:
    """Figures of the chosen accelerator and of the system it stands in.

    Peaks in FLOP/s by name, bandwidths in B/s and per direction, sizes in B, power in W, prices in USD; 0 where there is none.

    Args:
        system_accelerators: of one scale-up domain; `domains` of them can be joined by `scale_out_bandwidth`.
        framework_runs: 1 if the framework runs on chips of this maker.
        system_matches: 1 if the system is one of the accelerator's.
        topology: text; the flags beside it are 1 where it is so.
        direct: each accelerator reaches every other of its domain at once.
        sections: of accelerators and systems; the first is the list of accelerators.
        systems: ids, for the list of choices.
    """

    name: Quantity
    generation: Quantity
    framework_runs: Quantity
    peaks: Mapping[str, Quantity]
    peak_keys: tuple[Input, ...]
    memory_bandwidth: Quantity
    memory_capacity: Quantity
    host_bandwidth: Quantity
    tdp: Quantity
    idle: Quantity
    prices: Mapping[str, Quantity]
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
    node_power: Quantity
    whole_machine: Quantity
    accelerators: tuple[Input, ...]
    systems: tuple[Input, ...]
    sections: tuple[Section, ...]
    overrides: tuple[Input, ...]


def describe(figure: Figure) -> str:
    """Status, date and source of a figure, as a cell shows it."""
    return f"{figure.status} {figure.date:%Y-%m}: {figure.source}"


def _note(figure: Figure) -> str:
    """What is to be said of a figure: how sure it is, its note, and what other sources say."""
    others = "; ".join(f"{other.value} by {other.source}" for other in figure.others)
    sure = f"{figure.confidence} confidence" if figure.confidence else ""
    return "; ".join(part for part in (sure, figure.note, f"others: {others}" if others else "") if part)


def override(identifier: str, label: str, unit: str, called: str, low: float, high: float) -> Input:
    """An empty cell that replaces a looked-up figure once filled."""
    return Input(
        f"{identifier}.override",
        f"Override, {label}",
        unit,
        None,
        "empty: the figure of the library holds",
        "scenario",
        "given",
        minimum=low,
        maximum=high,
        name=f"override of {called}",
    )


class _Lookup:
    """Blocks of library figures, each with an override and what is in use."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.overrides: list[Input] = []

    def texts(
        self,
        name: str,
        title: str,
        note: str,
        values: Mapping[str, str],
        at: Quantity,
        prefix: str = "library",
    ) -> Quantity:
        """A text for every entry, and that of the chosen one."""
        rows = tuple(
            Input(
                f"{prefix}.{key}.{name}",
                f"{title}, {key}",
                "1",
                value,
                note,
                "library",
                "defined",
                shared=True,
                fixed=True,
                name=title.lower(),
            )
            for key, value in values.items()
        )
        chosen = Quantity(f"hardware.{name}", title, "1", index(span(rows), at), note="of the chosen one")
        self.sections.append(Section(title, (*rows, chosen), note))
        return chosen

    def row(
        self,
        name: str,
        title: str,
        unit: str,
        figures: Mapping[str, Figure | None],
        at: Quantity,
        least: float = 0,
        prefix: str = "library",
    ) -> tuple[list[Input], Input, Quantity]:
        """A figure for every entry, the override, and the figure in use in SI units."""
        rows = [
            Input(
                f"{prefix}.{key}.{name}",
                f"{title}, {key}",
                unit,
                (figure.value if figure else None) or 0.0,
                _note(figure) if figure else "none stated",
                describe(figure) if figure else "no source",
                figure.status if figure else "defined",
                shared=True,
                minimum=0,
                name=f"{title.lower()} in the library",
            )
            for key, figure in figures.items()
        ]
        mine = override(f"hardware.{name}", title, unit, title.lower(), least, 1e9)
        self.overrides.append(mine)
        base, scale = _SI.get(unit, (unit, None))
        chosen: Node = where(is_number(mine), mine, index(span(rows), at))
        return (
            rows,
            mine,
            Quantity(
                f"hardware.{name}",
                f"{title} in use",
                base,
                chosen if scale is None else chosen * scale,
                name=title.lower(),
                note="of the chosen one, or the override"
                + (f", × {called_(scale)}" if scale is not None else ""),
            ),
        )

    def figures(
        self,
        name: str,
        title: str,
        unit: str,
        figures: Mapping[str, Figure | None],
        at: Quantity,
        note: str = "",
        least: float = 0,
        prefix: str = "library",
    ) -> Quantity:
        """The same as a block."""
        rows, mine, quantity = self.row(name, title, unit, figures, at, least, prefix)
        self.sections.append(Section(title, (*rows, mine, quantity), note, Section.SUBTOTAL))
        return quantity

    def flags(self, name: str, title: str, note: str, values: Mapping[str, bool], at: Quantity) -> Quantity:
        """1 or 0 for every system, and that of the chosen one."""
        rows = [
            Input(
                f"system.{key}.{name}",
                f"{title}, {key}",
                "flag",
                int(value),
                note,
                "library",
                "defined",
                shared=True,
                fixed=True,
                name=title.lower(),
            )
            for key, value in values.items()
        ]
        chosen = Quantity(f"hardware.{name}", title, "flag", index(span(rows), at), note="of the system")
        self.sections.append(Section(title, (*rows, chosen), note))
        return chosen


def hardware(library: Library, inputs: Workload) -> Hardware:
    """The rows of the Hardware sheet that come from the library."""
    look = _Lookup()
    chips = {item.id: item for item in library.accelerators}
    ids = tuple(
        Input(
            f"library.{item.id}.id",
            f"Accelerator, {item.id}",
            "1",
            item.id,
            item.name if item.name.startswith(item.vendor) else f"{item.vendor} {item.name}",
            f"version {item.version}",
            "defined",
            shared=True,
            fixed=True,
            name="accelerators",
        )
        for item in library.accelerators
    )
    number = Quantity(
        "hardware.accelerator_number",
        "Number of the accelerator",
        "number",
        match(inputs.accelerator, span(ids)),
        note="place of the chosen accelerator in this block",
    )
    look.sections.append(Section("Accelerators", (*ids, number)))
    generation = look.texts(
        "generation",
        "Generation",
        "architecture; efficiency profiles fall back to it",
        {key: chip.generation for key, chip in chips.items()},
        number,
    )

    name = look.texts(
        "name", "Name", "as its maker calls it", {key: chip.name for key, chip in chips.items()}, number
    )
    vendor = look.texts(
        "vendor", "Maker", "of the chip", {key: chip.vendor for key, chip in chips.items()}, number
    )

    def of_chip(field: str) -> dict[str, Figure | None]:
        return {key: getattr(chip, field) for key, chip in chips.items()}

    found = {
        kind: look.row(f"peak_{kind}", f"Dense peak, {kind}", "TFLOP/s", of_chip(f"peak_{kind}"), number)
        for kind in PEAKS
    }
    peak_keys = tuple(
        Input(
            f"library.peak_key.{kind}",
            f"Peak {index}",
            "1",
            kind,
            "name of the peak in the data types below",
            "library",
            "defined",
            shared=True,
            fixed=True,
            name="peaks",
        )
        for index, kind in enumerate(PEAKS, 1)
    )
    peaks = {kind: quantity for kind, (_, _, quantity) in found.items()}
    figures = [row for rows, _, _ in found.values() for row in rows]
    look.sections.append(
        Section(
            "Dense peak",
            (*figures, *peak_keys, *(mine for _, mine, _ in found.values()), *peaks.values()),
            "without sparsity; 0 where there is no native path; int8 in TOP/s",
            Section.SUBTOTAL,
        )
    )
    capacity = look.figures(
        "memory_capacity",
        "Memory",
        "GiB",
        of_chip("memory_capacity"),
        number,
        note="as the driver reports it",
        least=0.001,
    )
    bandwidth = look.figures(
        "memory_bandwidth",
        "Memory bandwidth",
        "GB/s",
        of_chip("memory_bandwidth"),
        number,
        note="datasheet",
        least=0.001,
    )
    host = look.figures(
        "host_bandwidth",
        "Host link",
        "GB/s",
        of_chip("host_bandwidth"),
        number,
        note="to the memory of the host, per direction; 0 where memory is one",
    )
    tdp = look.figures(
        "tdp",
        "Power limit",
        "W",
        of_chip("tdp"),
        number,
        note="TDP of one accelerator; 0 where nobody states it",
    )
    idle = look.figures(
        "idle",
        "Idle power",
        "W",
        of_chip("idle"),
        number,
        note="of one accelerator; 0 where nobody states it",
    )
    prices = {
        name: look.figures(
            f"price_{name}",
            title,
            unit,
            {key: getattr(library.price(key), name, None) for key in chips},
            number,
            note=note,
        )
        for name, title, unit, note in (
            ("cloud", "Cloud price", "USD/h", "on demand, of one accelerator; 0 where none is known"),
            ("rental", "Rental price", "USD/h", "on a contract of three years; 0 where none is known"),
            ("owned", "Cost of owning", "USD/h", "with host, network and building; 0 where none is known"),
            ("purchase", "Purchase price", "USD", "of one accelerator; 0 where none is known"),
            (
                "provisioned_power",
                "Provisioned power",
                "W",
                "with host, network and its share of the facility; 0 where nobody states it",
            ),
        )
    }

    systems = {item.id: item for item in library.systems}
    usual = look.texts(
        "usual_system",
        "Usual system",
        "the system an accelerator usually comes in",
        {key: library.usual_system(key).id for key in chips},
        number,
    )
    system_ids = tuple(
        Input(
            f"system.{item.id}.id",
            f"System, {item.id}",
            "1",
            item.id,
            item.name,
            f"version {item.version}",
            "defined",
            shared=True,
            fixed=True,
            name="systems",
        )
        for item in library.systems
    )
    system = Quantity(
        "hardware.system",
        "System",
        "1",
        where(equal(inputs.system, DEFAULT_SYSTEM), usual, inputs.system),
        note="the one asked for, or the accelerator's usual one",
    )
    place = Quantity(
        "hardware.system_number",
        "Number of the system",
        "number",
        match(system, span(system_ids)),
        note="place of the system in this block",
    )
    look.sections.append(Section("Systems", (*system_ids, system, place)))
    held = _of_systems(look, systems, place)
    matches = Quantity(
        "hardware.system_matches",
        "The system holds this accelerator",
        "flag",
        where(equal(held["accelerator"], inputs.accelerator), 1, 0),
        note="1 if so",
    )
    kinds = {
        kind: Quantity(
            f"hardware.is_{kind}",
            f"Topology is {kind}",
            "flag",
            where(equal(held["topology"], kind), 1, 0),
            note="1 if so",
        )
        for kind in ("switch", "mesh", "pcie", "torus")
    }
    direct = Quantity(
        "hardware.direct",
        "Every accelerator reaches every other at once",
        "flag",
        sum_of([kinds["switch"], kinds["mesh"], kinds["pcie"] * held["peer_to_peer"]]),
        note="1 through a switch, over a full mesh, and over PCIe where accelerators read one another's memory",
    )
    pairs = [f"{framework.id}/{vendor}" for framework in library.frameworks for vendor in framework.vendors]
    known = tuple(
        Input(
            f"framework.{pair.lower()}.pair",
            f"Runs: {pair}",
            "1",
            pair,
            "framework/maker of the chip",
            "framework's documentation",
            "defined",
            shared=True,
            fixed=True,
            name="pairs",
        )
        for pair in pairs
    )
    ones = tuple(
        Input(
            f"framework.{pair.lower()}",
            f"One: {pair}",
            "flag",
            1,
            "counts the pair",
            "definition",
            "defined",
            shared=True,
            fixed=True,
            name="ones",
        )
        for pair in pairs
    )
    runs = Quantity(
        "hardware.framework_runs",
        "The framework runs on chips of this maker",
        "flag",
        sum_where(span(ones), span(known), join(inputs.framework, "/", vendor)),
        note="1 if framework and maker stand above",
    )
    look.sections.append(Section("Frameworks", (*known, *ones, runs), "which framework runs on whose chips"))
    look.sections.append(Section("Links", (matches, *kinds.values(), direct), "what the topology allows"))
    return Hardware(
        name=name,
        generation=generation,
        framework_runs=runs,
        peaks=peaks,
        peak_keys=peak_keys,
        memory_bandwidth=bandwidth,
        memory_capacity=capacity,
        host_bandwidth=host,
        tdp=tdp,
        idle=idle,
        prices=prices,
        system=system,
        system_matches=matches,
        topology=held["topology"],
        link=held["link"],
        mesh=kinds["mesh"],
        torus=kinds["torus"],
        direct=direct,
        in_switch=held["in_switch_reduction"],
        system_accelerators=held["accelerators"],
        link_bandwidth=held["link_bandwidth"],
        pair_bandwidth=held["pair_bandwidth"],
        torus_axes=held["torus_axes"],
        domains=held["domains"],
        scale_out_bandwidth=held["scale_out_bandwidth"],
        node_power=held["node_power"],
        whole_machine=held["whole_machine"],
        accelerators=ids,
        systems=system_ids,
        sections=tuple(look.sections),
        overrides=tuple(look.overrides),
    )


def _of_systems(look: _Lookup, systems: Mapping[str, System], place: Quantity) -> dict[str, Quantity]:
    """What the systems of the library are like, and what the chosen one is."""

    def each(field: str) -> dict[str, Figure | None]:
        return {key: getattr(item, field) for key, item in systems.items()}

    held = {
        "accelerator": look.texts(
            "of_accelerator",
            "Accelerator of the system",
            "which chip it holds",
            {key: item.accelerator for key, item in systems.items()},
            place,
            "system",
        ),
        "topology": look.texts(
            "topology",
            "Topology",
            "switch, mesh (a link for each pair), pcie, torus, network, or single",
            {key: item.topology for key, item in systems.items()},
            place,
            "system",
        ),
        "link": look.texts(
            "link",
            "Kind of link",
            "where efficiency profiles tell it from others of its topology",
            {key: item.link or item.topology for key, item in systems.items()},
            place,
            "system",
        ),
        "in_switch_reduction": look.flags(
            "in_switch_reduction",
            "The switch can sum",
            "1 if so",
            {key: item.in_switch_reduction for key, item in systems.items()},
            place,
        ),
        "peer_to_peer": look.flags(
            "peer_to_peer",
            "Accelerators read one another's memory",
            "0 where messages go through the host",
            {key: item.peer_to_peer for key, item in systems.items()},
            place,
        ),
        "whole_machine": look.flags(
            "whole_machine",
            "Accelerators are whole machines",
            "1 where the purchase price holds the host",
            {key: item.whole_machine for key, item in systems.items()},
            place,
        ),
    }
    for name, title, unit, note, least in (
        ("accelerators", "Accelerators in a domain", "accelerator", "that the links below join", 1),
        (
            "link_bandwidth",
            "Link bandwidth",
            "GB/s",
            "of an accelerator with all its links in the domain, per direction; 0 without links",
            0,
        ),
        (
            "pair_bandwidth",
            "Link of a pair",
            "GB/s",
            "between two accelerators of a full mesh, per direction; 0 elsewhere",
            0,
        ),
        ("torus_axes", "Axes of the torus", "axis", "each with two links; 0 elsewhere", 0),
        ("domains", "Domains", "domain", "that the network can join; 0 without one", 0),
        (
            "scale_out_bandwidth",
            "Network bandwidth",
            "GB/s",
            "of an accelerator out of its domain, per direction; 0 without a network",
            0,
        ),
        (
            "node_power",
            "Power of a domain",
            "W",
            "nameplate, with hosts and fans; 0 where nobody states it",
            0,
        ),
    ):
        held[name] = look.figures(name, title, unit, each(name), place, note, least, "system")
    return held
