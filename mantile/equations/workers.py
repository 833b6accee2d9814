"""One set of accelerators and all that is known of it before any pass: the one that does everything, or prefill or decode workers."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.efficiency import Efficiency
from mantile.equations.formats import Formats
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.memory import Memory
from mantile.equations.network import Network
from mantile.equations.plan import Sharding
from mantile.equations.tensors import Tensors


@dataclass(frozen=True)
class Workers:
    """Accelerators, how a model is spread over them, what messages cost and what lies in their memory."""

    inputs: Workload
    ranks: Ranks
    hardware: Hardware
    formats: Formats
    efficiency: Efficiency
    plan: Sharding
    stored: Tensors
    network: Network
    memory: Memory
