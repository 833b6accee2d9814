"""Decode: what one step of the running batch brings into a pass."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_REQUEST
from mantile.equations.inputs import Workload
from mantile.equations.phase import Phase, SpanRows, context, coverage, norm_tokens, tokens_by_scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, all_of, maximum, minimum, where
from mantile.graph.rows import Rows
from mantile.ir.modules import AttentionSpan, ModelGraph


@dataclass(frozen=True)
class Decoding:
    """What a decode step works on.

    Args:
        batch: requests of a replica that decode at a time.
        mixed: 1 where prompts ride in decode steps; `most` requests decode where they fill every step.
        microbatches: into which a pipeline cuts them.
    """

    phase: Phase
    batch: Quantity
    mixed: Node
    most: Quantity
    microbatches: Quantity


def decode(workers: Workers, ir: ModelGraph, mixed: Node) -> Decoding:
    """One token for every request of a micro-batch, or as many as a step checks.

    Args:
        mixed: 1 where prompts ride in decode steps.
    """
    inputs, rows = workers.inputs, Rows("decode")
    most = rows(
        "most",
        "Requests that decode where prompts fill every step",
        "request",
        workers.rows["memory.step_tokens"]
        / (workers.prompt * (1 + workers.rows["memory.redone"]))
        * inputs.output_tokens
        / workers.emitted,
        "so many prompts enter in a step, and so many steps each stays",
    )
    running = rows(
        "batch",
        "Requests that decode at a time",
        "request",
        _of_slots(workers.rows["memory.batch"], mixed, most),
        "fewer than the batch where prompts fill every step: the others wait for their prefill",
        called="requests that decode",
    )
    parts = microbatches(rows, inputs, running)
    requests = rows(
        "requests",
        "Requests in the pass",
        "request",
        maximum(1, running / parts),
        "each stage works on one micro-batch at a time",
    )
    of_group = rows(
        "rank_requests",
        "Requests of an attention group",
        "request",
        maximum(1, requests / inputs.attention_dp),
    )
    tokens = rows("tokens", "Tokens in the pass", "token", requests * workers.checked, called="tokens")
    on_rank = rows(
        "rank_tokens",
        "Tokens of a rank in attention",
        "token",
        of_group * workers.checked,
        called="tokens of a rank",
    )
    scoped = tokens_by_scope(rows, tokens, on_rank, workers, ir)
    in_norms = norm_tokens(rows, on_rank, workers)
    length = rows(
        "length",
        "Mean length so far",
        "token/request",
        inputs.input_tokens + HALF * inputs.output_tokens,
        "on average half of the output is there",
    )
    contexts = context(rows, ir, lambda span, row: mean_context(span, row, length, inputs.token_groups))
    touched = coverage(rows, tokens, workers, ir)
    phase = Phase(
        id="decode",
        requests=requests,
        tokens=tokens,
        rank_requests=of_group,
        scoped=scoped,
        norm_tokens=in_norms,
        contexts=contexts,
        decode=True,
        coverage=touched,
        rows=tuple(rows.rows),
    )
    return Decoding(phase, running, mixed, most, parts)


def _of_slots(slots: Node, mixed: Node, most: Quantity) -> Node:
    return where(mixed > 0, maximum(1, minimum(slots, most)), slots)


def microbatches(rows: Rows, inputs: Workload, running: Quantity) -> Quantity:
    """Into how many parts a pipeline divides the batch."""
    return rows(
        "microbatches",
        "Micro-batches",
        "number",
        minimum(
            where(all_of(inputs.pp > 1, inputs.microbatches > 0), inputs.microbatches, inputs.pp),
            maximum(1, running / ONE_REQUEST),
        ),
        "at most one for each request; one stage needs none",
    )


def mean_context(span: AttentionSpan, _row: SpanRows, length: Node, groups: Node) -> tuple[Node, str]:
    """Tokens of a rank that a new token attends to on average, and why.

    Args:
        groups: ranks among which the tokens are divided.
    """
    limit = span.length
    if limit is None:
        return length / groups, ""
    if span.kind == "chunked":
        return where(
            length <= limit, length, HALF * limit
        ) / groups, "past its first chunk a token sees half of one"
    return where(limit > 0, minimum(length, limit), length) / groups, ""
