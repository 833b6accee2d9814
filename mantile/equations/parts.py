"""What TTFT and TPOT are made of, for the text: what the modules of a pass read, and its messages.

The rows stand in parts.eq.
"""

from __future__ import annotations

from collections import defaultdict

from mantile.equations.forward import Pass
from mantile.equations.roofline import MEMORY, NETWORK
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Node, sum_of
from mantile.graph.sentence import lowered

_READ = {
    "weights": "weights read",
    "cache": "KV cache read",
    "states": "KV cache and states read",
    "activations": "activations moved",
    "offloaded": "host memory read",
    "draft": "drafts",
}
"""By part what is moved where the bandwidth limits."""
_KINDS = {
    "Attention core": "cache",
    "Attention core, states": "states",
    "Norms, elementwise": "activations",
    "Vision tower": "activations",
    "Host memory": "offloaded",
    "Drafter": "draft",
}
"""By group of modules the part; weights of all others."""


def make_parts(rows: Equations, work: Pass) -> None:
    """Make the parts of a pass that differ by model."""
    phase, labels = work.phase.id, {block.id: block.label for block in work.blocks}
    read: dict[str, list[Node]] = defaultdict(list)
    moved = work.shares[MEMORY]
    for figure, group in zip(moved.figures, moved.groups, strict=True):
        read[_KINDS.get(str(group.value), "weights")].append(figure)
    parts = []
    for part in filter(read.__contains__, _READ):
        rows.know_as(f"parts.{phase}.{part}", sum_of(read[part]))
        parts.append({"part": part, "label": _READ[part], "seconds": f"parts.{phase}.{part}"})
    for figure in work.shares[NETWORK].figures:
        message = figure.id.split(".", 2)[-1]
        parts.append({"part": message, "label": lowered(labels[message]), "seconds": figure.id})
    rows.make_in(f"part of {phase}", *(Space(facts=facts) for facts in parts))
