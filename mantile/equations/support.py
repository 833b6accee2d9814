"""What the library states of what frameworks run and cannot run; rows stand in support.eq."""

from __future__ import annotations

from collections.abc import Iterator

from mantile.equations.formats import CLASSES
from mantile.equations.tables import Equations, Space
from mantile.equations.things import SourceList, things
from mantile.graph.quantity import Section, defined
from mantile.library.profiles import Library
from mantile.library.support import WAYS, Statement

MULTIPLIED = ("attention", "ffn", "experts", "head")
"""Classes of matrices that products read: an embedding is a table, and every framework routes in 16 bit."""
KV = "kv"
DEGREES = tuple(way for way in WAYS if way != "disaggregated")


def support(library: Library, rows: Equations, sources: SourceList) -> tuple[Section, ...]:
    """What the framework cannot run of what is asked.

    Args:
        rows: know the data types in use.
        sources: get who states it.
    """
    generations = library.generations()
    said = {
        f"{framework.id}/{subject}": statement
        for framework in library.frameworks
        for statement in framework.support
        for subject in statement.subjects(generations)
    }
    names = tuple(
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
    )
    flags = tuple(
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
    )
    if not said:  # a library may state nothing
        names = (defined("support.none.name", "Statement: none", "1", "none"),)
        flags = (defined("support.none", "Cannot run: none", "flag", 0),)
    rows.know_table("support", {"name": names, "flag": flags})
    rows.make_in("format asked", *_asked(rows))
    table = things(
        "What frameworks run and cannot run",
        {"Statement": names, "Cannot run": flags},
        "as their documents say; what nobody settles is allowed",
        sources=sources,
    )
    return (table, *rows.sections("support"))


def _asked(rows: Equations) -> Iterator[Space]:
    """The data types that are asked for."""
    for name in MULTIPLIED:
        if (number := f"hardware.{name}.number") in rows:
            facts = {"of": name, "words": CLASSES[name], "role": "weights", "number": number}
            yield Space(facts=facts)
    yield Space(facts={"of": KV, "words": "KV cache", "role": KV, "number": "hardware.kv_number"})


def _note(statement: Statement) -> str:
    needs = f"needs {statement.needs}" if statement.needs else ""
    return "; ".join(filter(None, (needs, statement.note))) or f"it {statement.says}"


def _source(statement: Statement) -> str:
    return f"{statement.status} {statement.date:%Y-%m}: {statement.source}"
