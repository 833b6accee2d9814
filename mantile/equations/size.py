"""What a deployment needs in memory as a whole.

id behind "size"    function
----------------    ------------
.memory             size.needed
"""

from __future__ import annotations

from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import ACCELERATORS
from mantile.graph.quantity import Quantity


def needed(graph: EstimateGraph) -> Quantity:
    """Memory that is taken on all accelerators together, in B: that of the fullest on each."""
    each, count = graph.fullest["memory.used"], ACCELERATORS.of(graph.figures)
    return Quantity("size.memory", "Memory of all accelerators together", "B", each * count)
