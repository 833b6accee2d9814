"""The equations of a model, made once for all estimates that share them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from mantile.equations.build import build_graph
from mantile.equations.graph import EstimateGraph
from mantile.ir.build import build_ir
from mantile.library.architecture import Model
from mantile.library.capacity import CapacityAsked
from mantile.library.profiles import Library
from mantile.library.request_classes import RequestClass

GRAPHS = 32  # kept at a time: one takes some 5 MB


@dataclass(frozen=True)
class _Structure:
    """What equations follow from: two that are equal have the same graph.

    Args:
        key: the object the library is, which the cache keeps alive, and all else in full.
    """

    key: tuple[Any, ...]
    model: Model = field(compare=False)
    library: Library = field(compare=False)
    parts: tuple[bool, bool, bool, frozenset[str]] = field(compare=False)
    classes: tuple[RequestClass, ...] = field(compare=False)
    demand: CapacityAsked | None = field(compare=False)
    devices: int = field(compare=False)


def graph_of(
    model: Model,
    library: Library,
    disaggregated: bool = False,
    open_loop: bool = False,
    caches_prefixes: bool = False,
    stated: frozenset[str] = frozenset(),
    classes: tuple[RequestClass, ...] = (),
    demand: CapacityAsked | None = None,
    devices: int = 0,
) -> EstimateGraph:
    """The equations of a model, as `build_graph` makes them.

    They hold no number of a scenario, so that estimates of one structure share them. The last four stay.

    Raises:
        InputError: for a model that the equations do not know.

    Example:
        graph_of(load_model("llama-3.1-8b"), load_library(), open_loop=True)
    """
    parts = disaggregated, open_loop, caches_prefixes, stated
    texts = (part.model_dump_json() for part in (model, *classes, *(() if demand is None else (demand,))))
    key = id(library), *texts, len(classes), *parts, devices
    return _made(_Structure(key, model, library, parts, classes, demand, devices))


@lru_cache(GRAPHS)
def _made(asked: _Structure) -> EstimateGraph:
    return build_graph(
        build_ir(asked.model), asked.library, *asked.parts, asked.classes, asked.demand, asked.devices
    )
