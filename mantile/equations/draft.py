"""What drafting costs: time in a step, weights and KV cache.

A prediction layer is a layer like the model's own, by the same roofline. It works on all tokens that the step
checks, then on one token of every request for each further draft token, and the LM head after each. A draft
model is taken as one product with all its parameters, its layers launched and summed like the model's own.
The text so far costs nothing to look up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mantile.equations.constant import (
    BILLION,
    FLOPS_PER_MAC,
    HALF,
    JOINED,
    TOKENS_PER_STEP,
    VECTOR_BYTES,
)
from mantile.equations.phase import Phase
from mantile.equations.plan import Scope, scope
from mantile.equations.roofline import MEMORY, Block
from mantile.equations.workers import Workers
from mantile.graph.quantity import Named, Node, Quantity, Section, as_node, maximum
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph

AGAIN = "draft."
"""What ids of figures begin with that are made again for one token of a request."""


@dataclass(frozen=True)
class Drafter:
    """Drafting as a block of a pass.

    Args:
        again: makes `figures` of a decode step again for one token of each request; None of a prompt.
    """

    block: Block
    again: GraphRewrite | None
    figures: tuple[Named, ...] = ()

    def without(self, phase: Phase, times: Iterable[Quantity]) -> Plain | None:
        """The step with one token of each request and no drafter; None of a prompt.

        Args:
            times: seconds in the pass of all but the drafter.
        """
        if self.again is None:
            return None
        rows = Rows(f"{phase.id}.draft", ", no drafts")
        total = rows.added("plain_of", "Time", "s", [self.again.rewrite(time) for time in times])
        plain = rows("plain", "Time", "s", total, "one token of each request", called="step without drafts")
        return Plain(plain, rows.section("Without drafts", "what drafts are compared with"))

    @property
    def sections(self) -> tuple[Section, ...]:
        """Its rows, above them what is made again for one token."""
        if self.again is None:
            return (self.block.section,)
        rows = self.again.made(self.figures)
        note = "the step made again, for the drafter and for what it brings"
        return Section("One token of each request", rows, note), self.block.section


@dataclass(frozen=True)
class Plain:
    """A decode step with one token of each request and no drafter."""

    time: Quantity
    section: Section


def draft(
    phase: Phase,
    ir: ModelGraph,
    workers: Workers,
    blocks: Sequence[Block],
    after: Mapping[Scope, Block],
    host: Section,
) -> Drafter | None:
    """The drafter of a pass; None where no scenario speculates.

    Args:
        blocks: of the pass; `after` the messages that follow partial results; `host` the step overhead.
    """
    if workers.speculation is None:
        return None
    rows = Rows(f"{phase.id}.draft", ", drafter")
    by_id = {block.id: block for block in blocks}
    modules = dict.fromkeys(module for layer in ir.drafting for module in layer.modules)
    members = [by_id[module.id] for module in modules]
    sums = [after[scope(module)] for module in modules if module.reduces]
    layer = _layer(rows, "", "Layer on the tokens of the pass", members, sums)
    if not phase.decode:
        return _of_prompt(rows, phase, ir, workers, layer, _fixed(rows, members, ()))
    return _of_step(rows, phase, ir, workers, layer, members, sums, blocks, host)


def _layer(rows: Rows, name: str, label: str, members: Iterable[Block], sums: Iterable[Block]) -> Quantity:
    """Seconds of a layer like the model's own: modules, and the messages behind them."""
    times: list[Node] = [block.layer_time for block in (*members, *sums)]
    total = rows.added(f"layer{name}_of", label, "s", times)
    return rows(f"layer{name}", label, "s", total, "modules of a layer like the model's own, and messages")


def _fixed(rows: Rows, members: Iterable[Block], sums: Iterable[Block]) -> Quantity:
    """Seconds of such a layer that do not depend on its size: launches and messages."""
    parts: list[Node] = [block.launch for block in members if block.launch is not None]
    parts += [message.layer_time for message in sums]
    total = rows.added("fixed_of", "Launches and messages of a layer", "s", parts)
    return rows("fixed", "Launches and messages of a layer", "s", total)


def _of_prompt(
    rows: Rows, phase: Phase, ir: ModelGraph, workers: Workers, layer: Quantity, fixed: Quantity
) -> Drafter:
    """A prompt goes through the drafter as well: later drafts look back at it."""
    drafts = workers.speculation
    assert drafts is not None
    model = _model_pass(rows, phase, workers, fixed, phase.rank_tokens)
    body = drafts.by_layer * (layer + _join(rows, ir, workers, phase)) + drafts.by_model * model
    return _drafter(rows, workers, body, "the prompt, for later drafts to look back at")


def _of_step(
    rows: Rows,
    phase: Phase,
    ir: ModelGraph,
    workers: Workers,
    layer: Quantity,
    members: Sequence[Block],
    sums: Sequence[Block],
    blocks: Sequence[Block],
    host: Section,
) -> Drafter:
    """Draft tokens one after the other: the first from all tokens of the step, each other from one."""
    drafts = workers.speculation
    assert drafts is not None
    all_of_it = tuple(
        figure for part in (*(block.section for block in blocks), host) for figure in part.figures()
    )
    one: dict[Named, Node] = {drafts.checked: TOKENS_PER_STEP, drafts.check_time: as_node(0)}
    one |= {figure: figure for section in workers.memory.sections for figure in section.figures()}
    again = GraphRewrite(one, (), AGAIN, ", one token", all_of_it)  # with the batch there is
    head_time = again.rewrite(next(block for block in blocks if block.id == "lm_head").layer_time)
    alone_members, alone_sums = _rewritten(again, members, sums)
    alone = _layer(rows, "_alone", "Layer on one token of each request", alone_members, alone_sums)
    rounds = drafts.drafts / TOKENS_PER_STEP
    join = _join(rows, ir, workers, phase)
    by_layer = rows(
        "by_layer",
        "Draft tokens by a layer like the model's own",
        "s",
        layer + maximum(0, rounds - 1) * alone + rounds * (head_time + join),
        "the first draft token from all tokens of the step, each other from one",
    )
    inputs = workers.inputs
    length = rows(
        "length",
        "Tokens before, on average",
        "token/request",
        inputs.input_tokens + HALF * inputs.output_tokens,
    )
    tokens, cached = phase.rank_requests * TOKENS_PER_STEP, phase.rank_requests * length
    model = _model_pass(rows, phase, workers, _fixed(rows, alone_members, alone_sums), tokens, cached)
    of_model = rows("by_model", "Draft tokens by a draft model", "s", rounds * model)
    body = drafts.by_layer * by_layer + drafts.by_model * of_model
    note = "one draft token after the other; the text so far costs nothing"
    return replace(_drafter(rows, workers, body, note), again=again, figures=all_of_it)


def _rewritten(
    again: GraphRewrite, members: Sequence[Block], sums: Sequence[Block]
) -> tuple[list[Block], list[Block]]:
    """The blocks, with the times that are asked of them made again."""

    def of(block: Block) -> Block:
        return replace(block, layer_time=again.rewrite(block.layer_time), launch=again.rewrite(block.launch))

    return [of(block) for block in members], [of(block) for block in sums]


def _join(rows: Rows, ir: ModelGraph, workers: Workers, phase: Phase) -> Quantity:
    """Seconds of the product that joins an embedding and a hidden state."""
    efficiency, hidden = workers.efficiency, ir.facts["hidden_size"]
    size = rows(
        "join_parameters",
        "Parameters that join embedding and hidden state",
        "parameter",
        JOINED * hidden * hidden,
        "every rank has them whole, in 16 bit",
    )
    read = rows(
        "join_read", "Time to read them", "s", size * VECTOR_BYTES / efficiency["gemm_bytes.attention"]
    )
    product = rows(
        "join_product",
        "Time to multiply with them",
        "s",
        FLOPS_PER_MAC * phase.rank_tokens * size / efficiency["gemm_flops.attention"],
    )
    return rows(
        "join",
        "Time to join embedding and hidden state",
        "s",
        efficiency["gemm_launch_time.attention"] + maximum(read, product),
    )


def _model_pass(
    rows: Rows, phase: Phase, workers: Workers, fixed: Quantity, tokens: Node, cached: Node | None = None
) -> Quantity:
    """Seconds of a pass of a draft model: its parameters as one product, layers launched as the model's are.

    Args:
        fixed: seconds of launches and messages of a layer.
        tokens: on a rank; `cached` tokens of its cache that are read.
    """
    inputs, efficiency = workers.inputs, workers.efficiency
    assert inputs.draft_parameters is not None and inputs.draft_layers is not None
    assert inputs.draft_kv_channels is not None
    on_rank = rows(
        "parameters",
        "Parameters of a draft model on a rank",
        "parameter",
        inputs.draft_parameters * BILLION / inputs.tp,
    )
    product = rows(
        "product",
        "Time of its products",
        "s",
        FLOPS_PER_MAC * tokens * on_rank / efficiency["gemm_flops.attention"],
    )
    read = rows(
        "read",
        "Time to read its weights",
        "s",
        on_rank * VECTOR_BYTES / efficiency["gemm_bytes.attention"],
        "in 16 bit",
    )
    busy: Node = maximum(product, read)
    if cached is not None:
        busy = busy + rows(
            "cache",
            "Time to read its cache",
            "s",
            cached
            * inputs.draft_kv_channels
            * workers.formats.kv_bytes
            / inputs.tp
            / efficiency["gemm_bytes.attention"],
            "it looks back at all tokens before",
        )
    return rows(
        "model_pass",
        "Pass of a draft model",
        "s",
        inputs.draft_layers * fixed + busy,
        "launches and messages of a layer are those of the model",
    )


def _drafter(rows: Rows, workers: Workers, body: Node, note: str) -> Drafter:
    rate = workers.efficiency["gemm_bytes.attention"]
    limit = rows("bound", "Bound by", "1", as_node(MEMORY), "mostly weights and cache")
    time = rows("time", "Time", "s", body, note, called="time of the drafter")
    section = rows.section("Drafter", "what drafting adds to the pass", Section.SUBTOTAL)
    block = Block(
        id="draft",
        label="Drafter",
        section=section,
        time=time,
        bound=limit,
        layer_time=time,
        launch=None,
        compute=None,
        memory=time,
        flops=None,
        bytes=None,
        repeats=None,
        reached={MEMORY: rate},
    )
    return Drafter(block, None)
