"""The front page of the base scenario: what its rows, which stand in summary.eq, are made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mantile.equations.forward import Pass, group_names
from mantile.equations.metrics import TPOT, TTFT
from mantile.equations.roofline import COMPUTE, MEMORY, NETWORK, OVERHEAD, Block
from mantile.equations.tables import Equations, Space
from mantile.equations.workers import Workers, degrees
from mantile.graph.quantity import NOT_KNOWN, Input, Named, Node, Quantity, as_node, span
from mantile.ir.modules import ModelGraph

LIMITS = (COMPUTE, MEMORY, NETWORK, OVERHEAD)
_LABELS = {"ffn": "FFN", "experts": "experts", "attention": "attention"}  # of groups on the roofline chart
_SHOWN_GROUPS = 8
_SMALLEST_SHARE = 0.05  # of a pass, of a block on the roofline chart


def make_summary(
    rows: Equations, ir: ModelGraph, machines: Quantity, sets: tuple[Workers, ...], passes: Iterable[Pass]
) -> None:
    """Make the rows of the front page.

    Args:
        machines: what it runs on, in words.
        sets: the accelerators: those that do everything, or prefill and decode workers.
    """
    rows.know_as("summary.machines", machines)
    rows.know_as("summary.model_on", as_node(f"{ir.model.name} on "))
    rows.know_as("summary.model_not_known", as_node(f"{ir.model.name}: {NOT_KNOWN}"))
    for number, words in enumerate(degrees(sets), 1):
        rows.know_as(f"summary.words_of_degrees.{number}", words)
    for metric in (TTFT, TPOT):
        rows.know_as(f"summary.told.{metric.attribute}", as_node(f"{metric.definition}; floor "))
    products = next(name for name in ("ffn", "attention") if name in sets[-1].formats.classes)
    for what in ("flops", "bytes"):
        rows.know_as(f"summary.roof.{what}", sets[-1].efficiency[f"gemm_{what}.{products}"])
    groups, ranks, limits, blocks = (list[dict[str, str]]() for _ in range(4))
    for work in passes:
        p = work.phase.id
        of: dict[str, list[Named]] = {}
        for limit in ("pass", *LIMITS):
            start, ids = f"{p}.{limit}.group.", rows.ids_of(p)
            of[limit] = [rows.figure(each) for each in ids if each.startswith(start)]
            times = [rows[each.id.replace(start, f"{p}.{limit}.")] for each in of[limit]]
            rows.know_as(f"summary.{p}.times_{limit}", span(times))
            rows.know_as(f"summary.{p}.groups_{limit}", span(of[limit]))
        used = {each.value for each in of["pass"] if isinstance(each, Input)}
        labels = [label for label in group_names(ir).values() if label in used]
        numbers = range(1, min(_SHOWN_GROUPS, len(labels)) + 1)
        groups += ({"p": p, "n": f"{n}", "label": label} for n, label in enumerate(labels, 1))
        ranks += ({"p": p, "n": f"{n}"} for n in numbers)
        limits += ({"p": p, "n": f"{n}", "limit": limit} for n in numbers for limit in LIMITS if of[limit])
        blocks += (
            {"p": p, "block": block.id, "label": block.label}
            for block in work.blocks
            if all(f"{p}.{block.id}.{what}" in rows for what in ("flops", "bytes"))
        )
    for name, facts in (
        ("group of modules", groups),
        ("rank of groups", ranks),
        ("limit of a rank", limits),
        ("module on the roofline", blocks),
    ):
        rows.make_in(name, *(Space(facts=each) for each in facts))


def placed_blocks(rows: Equations, phase: Pass, values: Mapping[Node, Any]) -> Iterator[tuple[Block, str]]:
    """The modules of a pass that are shown below the roofs: those that take long enough, and in decode the
    attention core. Each with its label: the largest has one, and the core; others none.

    Args:
        values: as generated; they decide which modules are large enough.
    """
    name, smallest = phase.phase.id, _SMALLEST_SHARE * float(values[phase.time])
    blocks = [block for block in phase.blocks if f"summary.{name}.{block.id}.rate" in rows]
    times = {block.id: float(values[rows[f"{name}.{block.id}.time"]]) for block in blocks}
    largest = max(blocks, key=lambda block: times[block.id])
    cores = [block for block in blocks if block.group == "attention" and name == "decode"]
    core = max(cores, key=lambda block: times[block.id], default=None)
    for block in blocks:
        of_group = _LABELS.get(block.group, block.label.split(" ")[0])
        if block is core:
            yield block, of_group
        elif times[block.id] >= smallest:
            yield block, f"{name} {of_group}" if block is largest else ""
