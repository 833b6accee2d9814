"""Graph to numbers: one case, or arrays of cases on one axis, by the same code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mantile.graph.operations import OPERATIONS
from mantile.graph.quantity import Apply, Input, Literal, Node, Quantity, Span, ancestors

CHUNK = 8192  # cases at a time: the working set then stays inside the processor's cache


class Program:
    """Nodes in an order in which each can be computed, ready to run on any inputs.

    Args:
        outputs: the nodes wanted.
    """

    def __init__(self, outputs: Iterable[Node]) -> None:
        self.outputs = tuple(outputs)
        self.order = tuple(ancestors(*self.outputs))

    def run(self, inputs: Mapping[str, Any]) -> dict[Node, Any]:
        """Values of all nodes. `inputs` maps input ids to a scalar, a text or an array; absent ones keep their value."""
        values: dict[Node, Any] = {}
        with np.errstate(invalid="ignore", divide="ignore"):
            for node in self.order:
                if isinstance(node, Apply):
                    operation = OPERATIONS[node.operation]
                    values[node] = operation.numpy(*[values[argument] for argument in node.arguments])
                elif isinstance(node, Quantity):
                    values[node] = values[node.body]
                elif isinstance(node, Input):
                    value = inputs.get(node.id, node.value)
                    values[node] = np.nan if value is None else value
                elif isinstance(node, Span):
                    values[node] = [values[member] for member in node.members]
                elif isinstance(node, Literal):
                    values[node] = node.value
        return values

    def sweep(self, inputs: Mapping[str, Any]) -> dict[Node, Any]:
        """Values of the outputs for many cases, computed in chunks that stay inside the cache.

        Inputs that vary are 1-D arrays of one length; the rest are scalars.
        """
        varying = {key: np.asarray(value) for key, value in inputs.items() if np.ndim(value) == 1}
        if not varying:
            values = self.run(inputs)
            return {output: values[output] for output in self.outputs}
        count = len(next(iter(varying.values())))
        parts: dict[Node, list[Any]] = {output: [] for output in self.outputs}
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            chunk = {key: value[start:stop] for key, value in varying.items()}
            values = self.run({**inputs, **chunk})
            for output in self.outputs:
                parts[output].append(np.broadcast_to(values[output], (stop - start,)))
        return {output: np.concatenate(part) for output, part in parts.items()}


def evaluate(node: Node, inputs: Mapping[str, Any] | None = None) -> Any:
    """The value of one node."""
    return Program([node]).run(inputs or {})[node]
