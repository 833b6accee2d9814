"""What the chosen accelerator and system offer, for the text: tables of the library, and cells over them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations import framework
from mantile.equations import library as stated
from mantile.equations.inputs import Workload
from mantile.equations.library import FactKind, Things
from mantile.equations.override import Overridable, override_cell
from mantile.equations.tables import Equations, Space
from mantile.equations.things import NOBODY, SourceList, things
from mantile.graph.quantity import Apply, Input, Node, Quantity, Section, expression
from mantile.graph.sentence import lowered
from mantile.library.profiles import Library

_OF_LIBRARY = "select a figure to read who states it; one that nobody states is empty, and counts as 0"
_SI = {
    "GiB": ("B", "bytes_per_gib"),
    "GB": ("B", "bytes_per_gb"),
    "GB/s": ("B/s", "bytes_per_gb"),
    "TFLOP/s": ("FLOP/s", "flops_per_tflop"),
}
_KINDS = {
    "text of accelerators": stated.TEXTS,
    "peak of accelerators": stated.PEAK_FACTS,
    "fact of accelerators": (*stated.FACTS, *stated.PRICES),
    "flag of accelerators": stated.OWN_PRICES,
    "text of systems": stated.SYSTEM_TEXTS,
    "flag of systems": stated.SYSTEM_FLAGS,
    "fact of systems": (*stated.SYSTEM_FACTS, *stated.DISKS),
}


@dataclass(frozen=True)
class Hardware:
    """Tables of the library, and what holds for the chosen accelerator and system.

    Args:
        ids: of accelerators and systems, by the field that names one.
        sections: of accelerators and systems.
        sources: who states what the library says.
    """

    ids: Mapping[str, tuple[Input, ...]]
    sections: tuple[Section, ...]
    sources: SourceList
    overridable: tuple[Overridable, ...]


def hardware(library: Library, inputs: Workload, rows: Equations) -> Hardware:
    """The rows of the Hardware sheet about accelerator and system."""
    pairs, offers = framework.pairs(library), stated.offers(library)
    rows.know_table("framework", {"pairs": pairs})
    rows.know_table("hardware", {"peak_keys": stated.peak_keys()})
    rows.know_table("library.price", offers)
    sources, unused = SourceList("library", NOBODY), stated.DISKS if inputs.prefix_disk is None else ()
    chips, systems = stated.accelerators(library), stated.systems(library)
    of_chips, of_systems = (_known(rows, of, sources, unused) for of in (chips, systems))
    cells = {
        kind: override_cell(f"hardware.{kind.name}", kind.label, kind.unit, kind.least, stated.MOST)
        for name, kinds in _KINDS.items()
        for kind in kinds
        if name.startswith(("peak", "fact")) and kind not in unused
    }
    rows.know(*cells.values())
    for name, kinds in _KINDS.items():
        rows.make_in(name, *(_space(kind) for kind in kinds if kind not in unused))

    asked = things("Prices", {stated.OFFER_PARTS[part].label: said for part, said in offers.items()})
    runs = things("Frameworks", {"Runs": pairs}, "which runs on whose chips, and does what there")
    return Hardware(
        ids={"accelerator": chips.ids, "system": systems.ids},
        sections=(
            of_chips,
            *rows.sections("hardware", "Accelerator in use"),
            asked,
            *rows.sections("hardware", "Memory that may be used"),
            of_systems,
            *rows.sections("hardware", "System in use"),
            runs,
            *rows.sections("hardware", "Framework on the chosen accelerator", "Links", "Hosts"),
        ),
        sources=sources,
        overridable=tuple(
            Overridable(cell, (used,), (_while_empty(used),))
            for kind, cell in cells.items()
            for used in (rows[f"hardware.{kind.name}"],)
        ),
    )


def _known(rows: Equations, of: Things, sources: SourceList, unused: tuple[FactKind, ...]) -> Section:
    """The table of all accelerators or systems, made known column by column: `library.tdp`."""
    facts = {kind: said for kind, said in of.facts.items() if kind not in unused}
    numbers = sources.of_things(of.prefix, facts.values(), of.ids)
    columns = {kind.name: said for kind, said in facts.items()}
    rows.know_table(of.prefix, {of.kind: of.ids, **columns, "sources": numbers})
    said = {of.kind.removesuffix("s").capitalize(): of.ids}
    said |= {kind.label: figures for kind, figures in facts.items()} | {"Sources": numbers}
    return things(of.kind.capitalize(), said, _OF_LIBRARY, sources=sources)


def _while_empty(used: Quantity) -> Node:
    """What a figure is while its cell is empty: the last part of the condition in its expression."""
    conditions = (
        part for part in expression(used.body) if isinstance(part, Apply) and part.operation == "where"
    )
    return next(conditions).arguments[-1]


def _space(kind: FactKind) -> Space:
    """Where the rows of a fact are made."""
    unit, scale = _SI.get(kind.unit, (kind.unit, ""))
    facts = {"name": kind.name, "label": kind.label, "called": lowered(kind.label), "unit": unit}
    return Space(facts=facts | {"times": f" * {scale}" if scale else "", "note": kind.note})
