"""What the library states of serving frameworks, rows "framework".

Whose chips they run on, in which formats they multiply, how they schedule, when they give a request its place
in the KV cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mantile.equations.things import things
from mantile.graph.quantity import Input, Section, defined
from mantile.library.profiles import SCHEDULERS, SIXTEEN_BIT, Framework, Library

MAKER, PADS, QUANTISED = "maker", "pads", "quantised"


def pairs(library: Library) -> tuple[Input, ...]:
    """What frameworks run on and do, as framework/what.

    framework/maker: runs on chips of the maker; maker/maker: it is stated which frameworks do;
    framework/maker/pads: pads heads there; framework/format: multiplies in a format below 16 bit;
    framework/quantised/int8: multiplies in int8 what is only stored in less than 16 bit.
    """
    said = {
        f"{MAKER}/{vendor}": "what runs on chips of the maker is stated"
        for vendor in dict.fromkeys(
            (
                *(vendor for framework in library.frameworks for vendor in framework.vendors),
                *(chip.vendor for chip in library.accelerators if chip.own_software),
            )
        )
    }
    for framework in library.frameworks:
        start = framework.id
        said |= {f"{start}/{vendor}": "framework/maker of the chip" for vendor in framework.vendors}
        said |= {f"{start}/{vendor}/{PADS}": "pads heads and columns" for vendor in framework.pads}
        said |= {f"{start}/{peak}": "multiplies in the format" for peak in framework.multiplies}
        if framework.quantised != SIXTEEN_BIT:
            said[f"{start}/{QUANTISED}/{framework.quantised}"] = "multiplies stored formats in it"
    return tuple(
        defined(
            f"framework.{key.lower()}.pair",
            f"Runs: {key}",
            "1",
            key,
            note,
            "framework's documentation",
            name="the pair",
        )
        for key, note in said.items()
    )


_OF_SEATS = "sampling is tried with so many when the engine starts"
_DEFAULTS = (
    ("name", "Framework", "1", "has what stands at its place below", "frameworks"),
    ("scheduler", "Scheduler", "1", "by default", "schedulers of the frameworks"),
    ("kv_admission", "KV admission", "1", "by default", "KV admission of the frameworks"),
    ("prompt_batch", "Prompt tokens in a pass", "token",
     "each pass reads the weights; 0: a prompt is one pass", "prompt tokens in a pass of the frameworks"),
    ("pipeline_batch", "Prompt tokens in a pipeline at once", "token", "the next ones wait; 0: all may be",
     "prompt tokens in a pipeline at once of the frameworks"),
    ("kv_pool", "KV pool", "1", "when it starts", "KV pools of the frameworks"),
    ("embedding", "Embedding", "1", "unless it is the LM head too",
     "where the frameworks have the embedding"),
    ("pads_hidden", "Multiple of the hidden size in mxfp4", "channel", "kernels pad experts to it",
     "multiples of the hidden size of the frameworks"),
    ("pads_expert", "Multiple of the expert size on a rank in mxfp4", "channel", "kernels pad experts to it",
     "multiples of the expert size on a rank of the frameworks"),
    ("cache_policy", "KV cache policy", "1", "of its current release", "KV cache policies of the frameworks"),
    ("memory_share", "Share of memory", "1", "of what it is", "shares of the frameworks"),
    ("seats_small", "Requests at once unless told", "request", _OF_SEATS,
     "requests at once of the frameworks, unless told"),
    ("seats_large", "Requests at once on large accelerators", "request", _OF_SEATS,
     "requests at once of the frameworks, on large accelerators"),
)  # fmt: skip
"""Of each default its column, label, unit, note, and what sentences call it."""
_SEATS = 256  # requests at once of a framework of which nobody states how many


@dataclass(frozen=True)
class Frameworks:
    """What the library states of each framework, in the same order.

    Args:
        columns: what each does by default, by the last part of ids.
        section: their table.
    """

    columns: Mapping[str, tuple[Input, ...]]
    section: Section


def frameworks(library: Library) -> Frameworks:
    """What frameworks do by default."""
    known = library.frameworks
    sources = [each.source for each in known]
    columns = {
        name: of_each(
            library,
            f"framework.{{}}.{name}",
            label,
            unit,
            [_default(each, name) for each in known],
            note,
            called,
            sources,
        )
        for name, label, unit, note, called in _DEFAULTS
    }
    facts = {label: columns[name] for name, label, *_ in _DEFAULTS}
    note = "what each does unless something else is asked for"
    return Frameworks(columns, things("Defaults of frameworks", facts, note, sources))


def _default(framework: Framework, name: str) -> str | int:
    """What a framework does by default; 0 where nobody states it."""
    if name == "name":
        return framework.id
    if name.startswith("seats_"):
        limit = framework.limits.on(name.removeprefix("seats_")) if framework.limits else None
        return (limit and limit.max_requests) or _SEATS
    value: str | int | None = getattr(framework, name)
    return value or 0


def of_each(
    library: Library,
    identifier: str,
    label: str,
    unit: str,
    values: Iterable[str | int],
    note: str,
    called: str,
    sources: Iterable[str],
) -> tuple[Input, ...]:
    """A figure for each framework.

    Args:
        identifier: {} stands for the framework.
        called: how sentences call all of them.
    """
    return tuple(
        defined(
            identifier.format(framework.id),
            f"{label}, {framework.id}",
            unit,
            value,
            note,
            source,
            name=called,
        )
        for framework, value, source in zip(library.frameworks, values, sources, strict=True)
    )


def kinds_of_schedulers() -> tuple[Input, ...]:
    """The schedulers that there are."""
    return tuple(
        defined(f"scheduler.{kind}", f"Scheduler {kind}", "1", kind, meaning, name="schedulers")
        for kind, meaning in SCHEDULERS.items()
    )
