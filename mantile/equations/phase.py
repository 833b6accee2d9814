"""What enters a forward pass, for the text: how far the attention of a model looks back.

The rows stand in phase.eq.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.plan import scope
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Quantity, Row
from mantile.ir.modules import FULL, AttentionSpan, Elementwise, GroupedMatMul, Indexer, ModelGraph, Module


@dataclass(frozen=True)
class Phase:
    """A forward pass: prefill or decode.

    Args:
        id: prefix of its quantities.
        requests: requests in the pass of a replica.
        tokens: tokens that enter the pass, of all attention groups.
        rank_requests: requests of the busiest attention group.
        rows: of what enters, in the order in which they are shown.
        passes: over the weights that the tokens take; None where it is one.
        coverage: share of a layer's experts that some token goes through; None in a model without experts.
    """

    id: str
    requests: Quantity
    tokens: Quantity
    rank_requests: Quantity
    rows: tuple[Row, ...]
    passes: Quantity | None = None
    coverage: Quantity | None = None

    @property
    def decode(self) -> bool:
        """Whether keys and values come from the cache; in prefill they are still on chip."""
        return self.id == "decode"


def make_spans(rows: Equations, ir: ModelGraph) -> None:
    """Make the rows of each span of a model's attention and indexers."""
    spans = []
    for span, suffix in suffixes(ir).items():
        words, kind, limit = "", "unlimited", ""
        if span.length is not None:
            rows.know(span.length)
            kind, limit = "chunked" if span.kind == "chunked" else "windowed", span.length.id
        if suffix:
            words = ", full" if span.length is None else f", {span.length.label.lower()}"
        facts = {"whole": "context", "label": "Mean tokens attended to", "called": f"mean context{words}"}
        if "prefixes" in rows.features:
            facts = {"whole": "context_whole", "label": "Mean of the whole prompt", "called": ""}
        facts |= {"s": suffix, "words": words, "limit": limit}
        spans.append(Space(facts=facts, features=frozenset({kind})))
    rows.make_in("span", *spans)
    for module in ir.modules:
        if isinstance(module.operation, GroupedMatMul):
            rows.know_as("phase.experts", module.operation.count)
            rows.know_as("phase.chosen", module.operation.per_token)
            break


def suffixes(ir: ModelGraph) -> dict[AttentionSpan, str]:
    """What ids of each span of a model's attention and indexers end in; nothing of a lone one."""
    spans = list(ir.spans())
    if Indexer in ir.operations() and FULL not in spans:
        spans.append(FULL)
    if len(spans) == 1:
        return {spans[0]: ""}
    return {
        span: f".{span.kind}" if span.length is None else f".{span.length.id.removeprefix('model.')}"
        for span in spans
    }


def phase_of(rows: Equations, name: str) -> Phase:
    """What enters prefill or decode, from the rows that are made."""
    (section,) = rows.sections("phase", prefix=f"{name}.")
    of = {row.id.removeprefix(f"{name}."): row for row in section.figures() if isinstance(row, Quantity)}
    return Phase(
        id=name,
        requests=of["requests"],
        tokens=of["tokens"],
        rank_requests=of["rank_requests"],
        rows=section.rows,
        passes=of.get("passes"),
        coverage=of.get("coverage_busiest"),
    )


def tokens_name(module: Module) -> str:
    """What the text calls the tokens on which a rank works in a module."""
    if isinstance(module.operation, Elementwise) and module.operation.kind == "norm":
        return "norm_tokens"
    of_stage = dict.fromkeys(("stage", "shared"), "tokens_of_ffns")
    return {"attention": "rank_tokens", "experts": "expert_tokens", **of_stage}[scope(module)]
