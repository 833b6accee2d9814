"""What a decode step works on."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.graph.quantity import Quantity


@dataclass(frozen=True)
class Decoding:
    """What a decode step works on.

    Args:
        batch: requests of a replica that decode at a time.
        microbatches: into which a pipeline cuts them.
    """

    batch: Quantity
    microbatches: Quantity
