"""What a framework cannot run by its documents: rows "support".

The library states it of data types, chips and ways to spread a model. What no document settles is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mantile.equations.formats import Formats, class_label
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.things import things
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    defined,
    equal,
    index,
    join,
    span,
    sum_range,
    sum_where,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.profiles import Library
from mantile.library.support import WAYS, Statement

MULTIPLIED = ("attention", "ffn", "experts", "head")
"""Classes of matrices that products read: an embedding is a table, and every framework routes in 16 bit."""
DEGREES = tuple(way for way in WAYS if way != "disaggregated")


@dataclass(frozen=True)
class Stated:
    """What the library states of frameworks: framework/what, and 1 where it cannot, 0 where it runs.

    framework/weights/family, framework/kv/family and framework/way: a family of data types, and a way to
    spread a model, on all chips; with a generation of chips behind it, on those; framework/chip/generation:
    the chip itself.
    """

    names: tuple[Input, ...]
    flags: tuple[Input, ...]

    def cannot(self, *what: Node | str) -> Node:
        """Above 0 if a framework cannot run what is named."""
        asked = join(*what) if len(what) > 1 else what[0]
        return sum_where(span(self.flags), span(self.names), asked)


def stated(library: Library) -> Stated:
    """The rows of all statements of the library."""
    generations = library.generations()
    said = {
        f"{framework.id}/{subject}": statement
        for framework in library.frameworks
        for statement in framework.support
        for subject in statement.subjects(generations)
    }
    if not said:  # a library of before 0.12 states nothing
        return Stated(names=(), flags=())
    return Stated(
        names=tuple(
            defined(
                f"support.{key.lower()}.name",
                f"Statement: {key}",
                "1",
                key,
                _note(statement),
                _source(statement),
                name="what is stated",
            )
            for key, statement in said.items()
        ),
        flags=tuple(
            defined(
                f"support.{key.lower()}",
                f"Cannot run: {key}",
                "flag",
                int(statement.says == "cannot"),
                "0 where a document says that it runs",
                _source(statement),
                name="1 for what a framework cannot run",
            )
            for key, statement in said.items()
        ),
    )


def _note(statement: Statement) -> str:
    needs = f"needs {statement.needs}" if statement.needs else ""
    return "; ".join(filter(None, (needs, statement.note))) or f"it {statement.says}"


def _source(statement: Statement) -> str:
    return f"{statement.status} {statement.date:%Y-%m}: {statement.source}"


@dataclass(frozen=True)
class Support:
    """What is asked of a framework that it cannot run: each above 0 where there is such.

    Args:
        chip: the generation of the accelerator.
        formats: classes of matrices in data types that it does not read, and such a KV cache.
        ways: degrees of parallelism above 1 that it does not have.
        disaggregated: workers of their own; None where none are described.
        parts: the rows that add up to `formats` and `ways`; `keys` what data types are stated as.
    """

    chip: Quantity
    formats: Quantity
    ways: Quantity
    disaggregated: Quantity | None
    parts: Mapping[str, Quantity]
    keys: Mapping[str, Quantity]
    sections: tuple[Section, ...]


def support(
    library: Library, inputs: Workload, ranks: Ranks, hardware: Hardware, formats: Formats
) -> Support:
    """The rows of the Hardware sheet about what the framework cannot run."""
    said, rows = stated(library), Rows("support")

    counts = None  # 0 where a build of one's own is taken to run everything
    if inputs.framework_support is not None:
        counts = rows(
            "counts",
            "What documents say counts",
            "flag",
            where(equal(inputs.framework_support, "documented"), 1, 0),
            "a build of one's own is taken to run everything",
        )

    def cannot(*what: Node | str) -> Node:
        return said.cannot(*what) if said.names else where(ranks.stage > 0, 0, 0)

    def counted(found: Node) -> Node:
        return found if counts is None else found * counts

    asked_chip = counted(cannot(inputs.framework, "/chip/", hardware.generation))
    chip = rows("chip", "It cannot run on this generation", "flag", asked_chip)
    places = {
        name: ("weights", class_label(name), kind.number)
        for name, kind in formats.stored.items()
        if name in MULTIPLIED
    } | {"kv": ("kv", "KV cache", formats.kv_number)}
    keys = {
        name: rows(
            f"{name}.key",
            f"As stated, {label}",
            "1",
            join(inputs.framework, f"/{role}/", index(span(formats.families), number)),
            "framework and family of the data type",
        )
        for name, (role, label, number) in places.items()
    }
    parts = {
        name: rows(
            f"{name}.cannot",
            f"It cannot run the data type, {places[name][1]}",
            "flag",
            cannot(key) + cannot(key, "/", hardware.generation),
            "on any chip, or on those of this generation",
        )
        for name, key in keys.items()
    }
    of_formats = rows(
        "formats",
        "Data types that it cannot run",
        "flag",
        counted(sum_range(span(list(parts.values())))),
    )
    degrees = {
        way: rows(
            way,
            f"{WAYS[way][0].upper()}{WAYS[way][1:]} that it does not have",
            "flag",
            where(getattr(inputs, way) > 1, cannot(inputs.framework, f"/{way}"), 0),
        )
        for way in DEGREES
        if getattr(inputs, way) is not None
    }
    ways = rows(
        "ways",
        "Degrees above 1 that it does not have",
        "flag",
        counted(sum_range(span(list(degrees.values())))),
    )
    apart = None
    if ranks.disaggregated is not None:
        apart = rows(
            "disaggregated",
            "Workers of their own that it does not have",
            "flag",
            counted(where(ranks.disaggregated > 0, cannot(inputs.framework, "/disaggregated"), 0)),
        )
    table = things(
        "What frameworks run and cannot run",
        {"Statement": said.names, "Cannot run": said.flags},
        "as their documents say; what nobody settles is allowed",
        sources=hardware.sources,
    )
    chosen = rows.section("What the framework cannot run", "of what is asked; 0 where it runs or nobody says")
    return Support(
        chip=chip,
        formats=of_formats,
        ways=ways,
        disaggregated=apart,
        parts=parts | degrees,
        keys=keys,
        sections=(*((table,) if said.names else ()), chosen),
    )
