"""What TTFT and TPOT are made of, for the text: what the modules of a pass read, and its messages.

The rows stand in parts.eq.
"""

from __future__ import annotations

from collections import defaultdict

from mantile.equations.forward import Pass
from mantile.equations.roofline import MEMORY, NETWORK, Block
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Quantity, span
from mantile.graph.sentence import lowered
from mantile.ir.modules import Recurrence

_READ = {
    "weights": "weights read",
    "cache": "KV cache read",
    "states": "states read",
    "activations": "activations moved",
    "offloaded": "host memory read",
    "draft": "drafts",
}
"""By part what is moved where the bandwidth limits."""
_KINDS = {
    "attention": "cache",
    "small": "activations",
    "vision": "activations",
    "host": "offloaded",
    "draft": "draft",
}
"""By group of modules the part; weights where there is none."""


def make_parts(rows: Equations, work: Pass) -> None:
    """Make the parts of a pass that differ by model."""
    phase, blocks = work.phase.id, {block.id: block for block in work.blocks}
    read: dict[str, list[Quantity]] = defaultdict(list)
    for figure in work.shares[MEMORY].figures:
        read[_part(blocks[_module(figure)])].append(figure)
    parts = []
    for part in filter(read.__contains__, _READ):
        rows.know_as(f"parts.{phase}.{part}", span(read[part]))
        parts.append({"part": part, "label": _READ[part], "seconds": f"sum(parts.{phase}.{part})"})
    for figure in work.shares[NETWORK].figures:
        message = _module(figure)
        parts.append({"part": message, "label": lowered(blocks[message].label), "seconds": figure.id})
    rows.make_in(f"part of {phase}", *(Space(facts=facts) for facts in parts))


def _part(block: Block) -> str:
    if block.module is not None and isinstance(block.module.operation, Recurrence):
        return "states"
    return _KINDS.get(block.group, "weights")


def _module(figure: Quantity) -> str:
    """The module of a row by module."""
    return figure.id.split(".", 2)[-1]
