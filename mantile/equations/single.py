"""A decode step with one request: what of the running batch's step depends on the batch, made again."""

from __future__ import annotations

from dataclasses import replace

from mantile.equations.constant import ONE_REQUEST
from mantile.equations.forward import Pass
from mantile.equations.workers import Workers
from mantile.graph.quantity import Quantity, Section, ancestors
from mantile.graph.rewrite import GraphRewrite

SINGLE = "single."


def single(workers: Workers, batch: Quantity, step: Pass) -> Pass:
    """The step of one request, for the line between it and that of more.

    Args:
        workers: those that decode.
        batch: requests that decode at a time.
        step: of the batch.
    """
    figures = [figure for section in step.sections for figure in section.figures()]
    alone = dict.fromkeys((workers.rows["memory.batch"], workers.rows["memory.allowed"], batch), ONE_REQUEST)
    rewrite = GraphRewrite(alone, (), SINGLE, ", one request", tuple(figures))
    single_pass = rewrite.rewrite(step)
    needed = [
        node
        for node in ancestors(single_pass.time, single_pass.phase.requests)
        if isinstance(node, Quantity) and node.id.startswith(SINGLE)
    ]
    listed = {figure for section in single_pass.sections for figure in section.figures()}
    entering = Section(
        "What enters, one request",
        tuple(node for node in needed if node not in listed),
        "a decode step with one request in the batch",
    )
    blocks = (
        replace(section, rows=tuple(row for row in section.rows if row in needed), total=0)
        for section in single_pass.sections
    )
    return replace(single_pass, sections=tuple(section for section in (entering, *blocks) if section.rows))
