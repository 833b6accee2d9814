"""What enters a forward pass, on each rank: the part that prefill and decode have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mantile.equations.constant import HALF, ONE_TOKEN, SATURATED
from mantile.equations.plan import Scope, scope
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Row, logarithm, minimum, where
from mantile.graph.rows import Rows
from mantile.ir.modules import FULL, AttentionSpan, Elementwise, GroupedMatMul, Indexer, ModelGraph, Module


@dataclass(frozen=True)
class Phase:
    """A forward pass: prefill or decode.

    Args:
        id: prefix of its quantities.
        requests: requests in the pass of a replica.
        tokens: tokens that enter the pass, of all attention groups.
        rank_requests: requests of the busiest attention group.
        scoped: tokens that a rank works on, by the ranks a module is spread over.
        norm_tokens: the same of a norm between mixer and FFN.
        contexts: mean number of tokens a token attends to, per request, by attention span.
        decode: keys and values come from the cache; in prefill they are still on chip.
        rows: of these figures, in the order in which they are shown.
        passes: over the weights that the tokens take; None where it is one.
        coverage: share of a layer's experts that some token goes through; None in a model without experts.
    """

    id: str
    requests: Quantity
    tokens: Quantity
    rank_requests: Quantity
    scoped: Mapping[Scope, Quantity]
    norm_tokens: Quantity
    contexts: Mapping[AttentionSpan, Quantity]
    decode: bool
    rows: tuple[Row, ...]
    passes: Quantity | None = None
    coverage: Quantity | None = None

    def in_all_passes(self, once: Node) -> Node:
        """What comes again in every pass over the weights: reading them, and launches."""
        return once if self.passes is None else once * self.passes

    @property
    def rank_tokens(self) -> Quantity:
        """Tokens that a rank of an attention group works on."""
        return self.scoped["attention"]

    def tokens_of(self, module: Module) -> Quantity:
        """Tokens that a rank works on in a module."""
        if isinstance(module.operation, Elementwise) and module.operation.kind == "norm":
            return self.norm_tokens
        return self.scoped[scope(module)]


@dataclass(frozen=True)
class SpanRows:
    """Where the rows of one attention span go.

    Args:
        rows: of the pass.
        id_suffix, label_suffix: what tells the span from others of the model; empty where there is one only.
    """

    rows: Rows
    id_suffix: str
    label_suffix: str

    def of(self, part: str) -> SpanRows:
        """Where the rows of a part of the prompt go."""
        return SpanRows(self.rows, f"{self.id_suffix}.{part}", f"{self.label_suffix}, {part}")

    def __call__(self, name: str, label: str, body: Node, note: str = "", called: str = "") -> Quantity:
        """A row of tokens per request."""
        return self.rows(
            f"{name}{self.id_suffix}",
            f"{label}{self.label_suffix}",
            "token/request",
            body,
            note,
            called=f"{called}{self.label_suffix}" if called else "",
        )


def suffixes(ir: ModelGraph) -> dict[AttentionSpan, tuple[str, str]]:
    """What ids and labels of each span of a model's attention and indexers end in; nothing of a lone one."""
    spans = list(ir.spans())
    if Indexer in ir.operations() and FULL not in spans:
        spans.append(FULL)
    if len(spans) == 1:
        return {spans[0]: ("", "")}
    return {
        span: (f".{span.kind}", ", full")
        if span.length is None
        else (f".{span.length.id.removeprefix('model.')}", f", {span.length.label.lower()}")
        for span in spans
    }


def context_name(span: AttentionSpan, ir: ModelGraph) -> str:
    """The row of a pass that says how many tokens a token attends to."""
    return f"context{suffixes(ir)[span][0]}"


def context(
    rows: Rows, ir: ModelGraph, mean: Callable[[AttentionSpan, SpanRows], tuple[Node, str]]
) -> dict[AttentionSpan, Quantity]:
    """Mean number of tokens attended to, for every span of a model's attention and indexers.

    Args:
        rows: of the pass; gets the rows.
        mean: for a span, the expression and why it is so; it may add rows of its own before.
    """
    contexts: dict[AttentionSpan, Quantity] = {}
    for span, suffix in suffixes(ir).items():
        row = SpanRows(rows, *suffix)
        body, why = mean(span, row)
        contexts[span] = row("context", "Mean tokens attended to", body, why, called="mean context")
    return contexts


def tokens_name(module: Module, workers: Workers) -> str:
    """The row of a pass that says on how many tokens a rank works in a module."""
    if isinstance(module.operation, Elementwise) and module.operation.kind == "norm":
        return "norm_tokens"
    of_stage = "shared_tokens" if "routed_experts" in workers.rows.features else "tokens"
    if workers.inputs.own_ffns is not None:
        of_stage = "ffn_tokens"
    names = {"attention": "rank_tokens", "stage": of_stage, "shared": of_stage, "experts": "expert_tokens"}
    return names[scope(module)]


def tokens_by_scope(
    rows: Rows, tokens: Quantity, on_rank: Quantity, workers: Workers, ir: ModelGraph
) -> dict[Scope, Quantity]:
    """Tokens that a rank works on, by the ranks a module is spread over; adds rows for experts."""
    scopes = {scope(module) for module in ir.modules}
    routed = "routed_experts" in workers.rows.features
    scoped: dict[Scope, Quantity] = {"attention": on_rank, "stage": tokens}
    if scopes & {"stage", "shared"} and routed:
        scoped["stage"] = scoped["shared"] = rows(
            "shared_tokens",
            "Tokens of a rank in dense FFNs and shared experts",
            "token",
            where(workers.rows["plan.sends_tokens"] > 0, on_rank, tokens),
        )
    own = workers.inputs.own_ffns
    if own is not None:
        scoped["stage"] = scoped["shared"] = rows(
            "ffn_tokens", "Tokens of a rank in dense FFNs", "token", where(own, on_rank, scoped["stage"])
        )
    if "experts" in scopes and routed:
        scoped["experts"] = rows(
            "expert_tokens",
            "Tokens of a rank's experts",
            "token",
            tokens / workers.rows["plan.expert_groups"],
            "experts are chosen evenly",
        )
    return scoped


def norm_tokens(rows: Rows, on_rank: Quantity, workers: Workers) -> Quantity:
    """Tokens of a rank in the norms between mixer and FFN."""
    return rows("norm_tokens", "Tokens of a rank in norms", "token", on_rank / workers.rows["plan.sequence"])


def coverage(rows: Rows, tokens: Node, workers: Workers, ir: ModelGraph) -> Quantity | None:
    """Share of its experts that the busiest rank reads in a pass; None in a model without experts.

    On average a share of 1 - (1 - k/E)^(T^spread) is touched: a token misses an expert with probability
    1 - k/E, and the exponent of T is below 1 because routing is skewed. How many of its experts a rank reads
    scatters like independent draws, and the layer waits for the rank that reads most. The largest of n such
    numbers lies about sqrt(ln n) deviations above their mean.
    """
    routed = [module.operation for module in ir.modules if isinstance(module.operation, GroupedMatMul)]
    if not routed:
        return None
    per_token, count = routed[0].per_token, routed[0].count
    if not isinstance(tokens, Quantity):
        tokens = rows("pass_tokens", "Tokens in one pass", "token", tokens)
    missed = 1 - per_token / count
    draws = minimum(
        (tokens / ONE_TOKEN) ** workers.efficiency["routing_spread"], SATURATED * count / per_token
    )  # LibreOffice knows no smaller power
    untouched = rows(
        "untouched",
        "Share of the experts not touched",
        "1",
        missed**draws,
        "a token misses an expert by chance; skewed routing counts as fewer tokens",
    )
    share = rows(
        "coverage",
        "Share of the experts touched",
        "1",
        1 - untouched,
        called="expert coverage",
    )
    deviation = rows(
        "coverage_deviation",
        "Deviation of that share between ranks",
        "1",
        (share * untouched / workers.rows["plan.experts"]) ** HALF,
        "as of independent draws",
        called="deviation of the coverage",
    )
    return rows(
        "coverage_busiest",
        "Share of its experts that the busiest rank reads",
        "1",
        minimum(1, share + deviation * logarithm(workers.rows["plan.expert_groups"]) ** HALF),
        "a layer waits for it; of n draws the highest lies about sqrt(ln n) deviations above their mean",
        called="coverage on the busiest rank",
    )
