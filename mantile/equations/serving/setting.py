"""What serves, as all parts of the Serving part need it."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.decode import Decoding
from mantile.equations.efficiency import Efficiency
from mantile.equations.forward import Pass
from mantile.equations.inputs import Workload
from mantile.equations.scheduler import Scheduler, interleaved
from mantile.equations.serving.alone import Prompt
from mantile.equations.serving.stages import DecodeStep
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity
from mantile.ir.modules import ModelGraph


@dataclass(frozen=True)
class Setting:
    """What serves: the workers that prefill and those that decode, their passes and the scheduler."""

    ir: ModelGraph
    prefill_workers: Workers
    decode_workers: Workers
    prefill: Pass
    decode: Pass
    scheduler: Scheduler
    decoding: Decoding
    paced: DecodeStep
    prompt: Prompt

    @property
    def inputs(self) -> Workload:
        """What is asked."""
        return self.prefill_workers.inputs

    @property
    def emitted(self) -> Node:
        """Tokens of a request that a decode step gives, on average."""
        return self.decode_workers.emitted

    @property
    def efficiency(self) -> Efficiency:
        """Factors of the workers that prefill."""
        return self.prefill_workers.efficiency

    @property
    def continuous(self) -> Quantity:
        """1 in continuous batching, 0 in static."""
        return self.prefill_workers.ranks.continuous

    @property
    def disaggregated(self) -> Quantity | None:
        """1 where prefill and decode have workers of their own; None in a workbook without."""
        return self.prefill_workers.ranks.disaggregated

    @property
    def covers(self) -> Node:
        """Seconds of a decode step in which the host may start what runs beside it."""
        return self.decode.time if self.paced.idle is None else self.decode.time + self.paced.idle

    @property
    def interleaved(self) -> Node:
        """1 where prompts interrupt decode steps: in continuous batching of aggregated serving."""
        return interleaved(self.prefill_workers.ranks)
