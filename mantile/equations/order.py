"""Which layers of a model are of a kind, in words that follow when their number is edited."""

from __future__ import annotations

from collections.abc import Sequence

from mantile.graph.quantity import Node, Quantity, as_node, equal, join, sum_of, text, where
from mantile.ir.modules import Layer, ModelGraph

_RUNS = 3  # runs of layers in words: the first, the second, the last


class LayerOrder:
    """The order of layers.

    Where every kind stands in one run, first and last layers follow from how many there are. Where kinds
    interleave, the words are those of the model as it was made, until a number of layers is edited.

    Args:
        as_made: 1 while the numbers of layers are those of the model as made; None where nothing needs it.
    """

    def __init__(self, ir: ModelGraph, prefix: str) -> None:
        self.kinds, self.sequence = ir.layers, ir.model.architecture.sequence()
        self.total = ir.total_layers
        self.as_made: Quantity | None = None
        if any(len(self.runs([kind])) > 1 for kind in self.kinds):
            counts = [text(kind.count) for kind in self.kinds]
            made = " ".join(str(kind.count.value) for kind in self.kinds)
            body = join(*[part for count in counts for part in (" ", count)][1:])
            self.as_made = Quantity(
                f"{prefix}.as_made", "Layers as made", "flag", where(equal(body, made), 1, 0)
            )

    def words(self, kinds: Sequence[Layer]) -> Node:
        """Which layers are of some kinds."""
        if len(kinds) == len(self.kinds):
            return join("1 – ", text(self.total))
        count = sum_of([kind.count for kind in kinds])
        if self.as_made is not None:
            return where(
                self.as_made > 0,
                _listed(self.runs(kinds)),
                join(text(count), " of ", text(self.total)),
            )
        first = next(kind for kind in self.kinds if kind in kinds)
        order = sorted(self.kinds, key=lambda kind: self._places([kind])[:1])
        before = [kind.count for kind in order[: order.index(first)] if kind not in kinds]
        start: Node = sum_of(list(before)) if before else as_node(0)
        last = count + start if before else count
        return where(count > 0, join(text(start + 1) if before else "1", " – ", text(last)), "none")

    def runs(self, kinds: Sequence[Layer]) -> list[tuple[int, int]]:
        """Layers of some kinds as made: first and last of each run, from 1."""
        return _runs(self._places(kinds))

    def _places(self, kinds: Sequence[Layer]) -> list[int]:
        """The numbers of the layers of some kinds, from 1."""
        blocks = [kind.blocks for kind in kinds]
        return [number for number, kind in enumerate(self.sequence, 1) if kind in blocks]


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """Numbers in order as runs, each from its first to its last."""
    runs: list[tuple[int, int]] = []
    for place in places:
        if runs and place == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def _listed(runs: Sequence[tuple[int, int]]) -> str:
    """Runs in words; of many the first two and the last."""
    words = [str(first) if first == last else f"{first} – {last}" for first, last in runs]
    return ", ".join(words) if len(words) <= _RUNS else f"{words[0]}, {words[1]}, … {words[-1]}"
