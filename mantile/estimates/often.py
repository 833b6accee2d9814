"""Results of many estimates of one structure: what none of them asks for is not worked out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node

Results = Callable[[Mapping[Node, Any]], dict[str, Any]]


class _Noted(dict[Node, Any]):
    """Values, and which of them were asked for."""

    def __init__(self, values: Mapping[Node, Any]) -> None:
        super().__init__(values)
        self.asked: dict[Node, None] = {}

    def __getitem__(self, node: Node) -> Any:
        self.asked[node] = None
        return super().__getitem__(node)


class _Part(dict[Node, Any]):
    """Some values; all of them are worked out once another is asked for, such as by a check that fails."""

    def __init__(self, values: Mapping[Node, Any], all_values: Callable[[], Mapping[Node, Any]]) -> None:
        super().__init__(values)
        self.all_values = all_values

    def __missing__(self, node: Node) -> Any:
        return self.all_values()[node]


_ASKED: WeakKeyDictionary[Program, tuple[Node, ...] | Program] = WeakKeyDictionary()
"""What results of a structure asked for first, by the program of all its figures; ready to run once that was
needed again."""


def results_of(
    whole: Program,
    inputs: Mapping[str, Any],
    varying: Collection[str],
    moving: Collection[str],
    all_values: Callable[[], Mapping[Node, Any]],
    results: Results,
) -> dict[str, Any]:
    """Results of an estimate, by what those of the same structure asked for before.

    Args:
        whole: of all figures of the structure.
        inputs, varying, moving: as `Program.run_often` takes them.
        all_values: of all figures.
        results: made of values, each of which it takes as `values[node]`.
    """
    part = _ASKED.get(whole)
    if part is None:
        noted = _Noted(all_values())
        found = results(noted)
        _ASKED[whole] = tuple(noted.asked)
        return found
    if not isinstance(part, Program):
        part = _ASKED[whole] = Program(part)
    return results(_Part(part.run_often(inputs, varying, moving), all_values))
