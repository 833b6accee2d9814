"""The efficiency factors there are, declared once, in factors.table."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from mantile.equations.text import read
from mantile.ir.modules import Attention, GroupedMatMul, Indexer, LatentAttention, Recurrence, Vision

Condition = Literal["format", "kv", "ranks"]
RANKS = (2, 4, 8)
FORMATS = ("bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only")
KV_FORMATS = ("bf16", "fp8")
DOMAINS: dict[Condition | None, tuple[object, ...]] = {
    None: (None,),
    "format": FORMATS,
    "kv": KV_FORMATS,
    "ranks": RANKS,
}
CONDITIONS: dict[Condition | None, str] = {"format": "kernel format", "kv": "KV format", "ranks": "ranks"}


@dataclass(frozen=True)
class FactorKind:
    """A kind of efficiency factor.

    A factor that differs by kernel format is worked out for every class of matrices that uses it; one that
    differs by number of ranks for the groups of ranks that use it.

    Args:
        label, unit, note: of its block on the Efficiency sheet; `subject` what it is about.
        low, high: the range in which it must lie.
        condition: what its figures differ by; None where one figure holds always.
        fraction: whether it is a share of a peak.
        needs: the operations of which a model must have one to need it; empty where every model does.
        when: what a scenario must ask for; empty where it is needed whatever is asked.
        groups: of ranks that use it: those of TP, or of a stage.
        otherwise: the figure where the library states none, as those made before the factor was there; None
            where each must.
    """

    name: str
    label: str
    unit: str
    note: str
    subject: str
    low: float
    high: float
    condition: Condition | None = None
    fraction: bool = False
    needs: tuple[type, ...] = ()
    when: str = ""
    groups: tuple[str, ...] = ("tp",)
    otherwise: float | None = None


_OPERATIONS: dict[str, type] = {
    "experts": GroupedMatMul,
    "attention": Attention,
    "indexers": Indexer,
    "latents": LatentAttention,
    "states": Recurrence,
    "vision": Vision,
}


def _table() -> Iterator[FactorKind]:
    """The lines of factors.table."""
    text = Path(__file__).with_name("factors.table").read_text("utf-8")
    for block in read(text, "factors.table").blocks:
        for line in block.lines:
            limits, *options = line.parts["body"].split(", ")
            low, high = map(ast.literal_eval, limits.split(" to "))
            said = {name: value for name, _, value in (option.partition(" ") for option in options)}
            condition, _, groups = said.get("by", "").partition(" of ")
            yield FactorKind(
                name=line.id.removeprefix("factors."),
                label=line.parts["label"],
                unit=line.parts["unit"],
                note=line.parts["note"],
                subject=block.title,
                low=low,
                high=high,
                condition=cast(Condition, condition) if condition else None,
                fraction="a" in said,
                needs=tuple(_OPERATIONS[name] for name in said["for"].split(" + ")) if "for" in said else (),
                when=said.get("when", ""),
                groups=tuple(groups.split(" + ")) if groups else ("tp",),
                otherwise=ast.literal_eval(said["else"]) if "else" in said else None,
            )


KINDS = tuple(_table())
"""All factors, in the order of the sheet."""

OF_TPOT = (
    "launch_scale",
    "gemm_bandwidth_scale",
    "attention_decode_scale",
    "moe_bandwidth_scale",
    "all_reduce_latency_scale",
    "interference",
    "step_row",
)
"""What is fitted to TPOT: a factor for each part of it that runs can tell apart."""
OF_TTFT = ("gemm_compute", "first_token", "queueing")
"""What is fitted to TTFT."""
