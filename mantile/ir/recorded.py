"""Blocks that were recorded when a model class was run: their steps as modules.

What tensor parallelism splits follows from the facts that a width is made of: heads, KV heads, heads that
keep a state and groups of them by head, FFN and expert widths and the vocabulary by column. All other widths
stand on every rank. A norm over the whole of a width that is split is summed over the ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mantile.graph.quantity import Input, Node, as_node, sum_of
from mantile.ir.builder import BlockFacts, DecoderBuilder, signature
from mantile.ir.modules import (
    FULL,
    Attention,
    AttentionSpan,
    Elementwise,
    GroupedMatMul,
    Indexer,
    LatentAttention,
    MatMul,
    Module,
    Operation,
    Part,
    Recurrence,
    Split,
    Tensor,
)
from mantile.library.architecture import Size, Step, StoredTensor, size_terms

_SPLITS: dict[str, Split] = {
    "attention_heads": "heads",
    "kv_heads": "kv heads",
    "state_heads": "heads",
    "state_groups": "kv heads",
    "mixer_size": "columns",
    "ffn_size": "columns",
    "expert_size": "columns",
    "shared_expert_size": "columns",
    "vocabulary": "columns",
}
_WIDTHS = {
    ("attention_heads", "head_dim"): ("query_width", "Width of all query heads"),
    ("attention_heads", "value_head_dim"): ("result_width", "Width of all results"),
    ("kv_heads", "head_dim"): ("kv_width", "Width of all key heads"),
    ("kv_heads", "value_head_dim"): ("value_width", "Width of all value heads"),
    ("attention_heads", "qk_nope_head_dim"): ("query_plain_width", "Width of all queries without position"),
    ("attention_heads", "qk_rope_head_dim"): ("query_rope_width", "Width of all queries with position"),
    ("attention_heads", "v_head_dim"): ("result_width", "Width of all results"),
    ("attention_heads", "kv_lora_rank"): ("absorbed_width", "Width of all absorbed queries"),
}
_FFN_PARTS: dict[str, Part] = {"experts": "experts", "router": "experts", "ffn": "ffn", "head": "head"}


def recorded(builder: DecoderBuilder, facts: BlockFacts) -> list[Module]:
    """The modules of one recorded block.

    Partial results that are added up without a norm between them, such as those of routed and shared experts,
    are summed over the ranks once: with those of routed experts, whose tokens may be sent to other ranks,
    else after the last.
    """
    modules = [_module(builder, step) for step in facts.steps]
    sums: list[int] = []
    for index, module in enumerate(modules):
        if module.reduces:
            sums.append(index)
        elif isinstance(module.operation, Elementwise) and module.operation.kind == "norm":
            _sum_once(modules, sums)
            sums = []
    _sum_once(modules, sums)
    return modules


def _sum_once(modules: list[Module], sums: Sequence[int]) -> None:
    """Of the modules whose partial results are added up, one is followed by the sum over the ranks."""
    alike: dict[object, list[int]] = {}
    for index in sums:
        alike.setdefault(signature(_outputs(modules, index)), []).append(index)
    for added in alike.values():
        routed = [index for index in added if isinstance(modules[index].operation, GroupedMatMul)]
        for index in added:
            if index != (routed or added)[-1]:
                modules[index] = replace(modules[index], reduces=False)


def _outputs(modules: Sequence[Module], index: int) -> Node:
    """The channels of a product; of experts in a latent those behind it, as a product keeps partial sums."""
    product = modules[index].operation
    behind = [module.operation for module in modules[index:] if module.step == "latent_up"]
    if behind and isinstance(product, GroupedMatMul):
        product = behind[0]
    assert isinstance(product, MatMul | GroupedMatMul)
    return product.outputs


def _module(builder: DecoderBuilder, step: Step) -> Module:
    operation = _operation(builder, step)
    return Module(
        id=step.step,
        step=step.step,
        label=step.label,
        short=step.short,
        part=_part(step, operation),
        operation=operation,
        tensors=tuple(_tensor(builder, step, tensor) for tensor in step.tensors),
        kind=step.kind,
        reduces=_reduces(step),
        remark=step.remark,
    )


def _operation(builder: DecoderBuilder, step: Step) -> Operation:
    """What a step computes."""
    sizes = {name: _size(builder, size) for name, size in step.sizes.items() if name != "macs"}
    match step.work:
        case "product":
            return MatMul(sizes["inputs"], sizes["outputs"], step.weights)
        case "experts":
            return GroupedMatMul(
                sizes["inputs"], sizes["outputs"], _fact(sizes["count"]), _fact(sizes["per_token"])
            )
        case "attention":
            return Attention(
                query=sizes["query"],
                result=sizes["result"],
                key=sizes["key"],
                value=sizes["value"],
                span=_span(sizes),
                kept="kept" not in sizes,
            )
        case "latent_attention":
            return LatentAttention(
                expanded=sizes["expanded"],
                absorbed=sizes["absorbed"],
                latent=sizes["latent"],
                span=_span(sizes),
            )
        case "indexer":
            return _indexer(sizes)
        case "recurrence":
            return Recurrence(
                state=sizes["state"],
                conv=sizes["conv"],
                kernel=_fact(sizes["kernel"]),
                macs=_macs(builder, step, sizes["state"]),
                chunk=_fact(sizes["chunk"]) if "chunk" in sizes else None,
            )
        case "norm" if _is_split(step.sizes["width"]):
            return Elementwise("qk_norm", sizes["width"], wide=True)
        case kind:
            return Elementwise(kind, sizes["width"])


def _macs(builder: DecoderBuilder, step: Step, state: Node) -> Node:
    """Multiply-adds of a token: with the others of its chunk, where heads are a factor, and with states."""
    chunk = step.sizes.get("chunk")
    sides: dict[str, list[Node]] = {}
    others: list[Node] = []
    for names in size_terms(step.sizes["macs"]):
        if names[2:] == (chunk,) and _split(names[0]):
            sides.setdefault(names[0], []).append(builder.facts[names[1]])
        else:
            others.append(state if "*".join(names) == step.sizes["state"] else _term(builder, names))
    within = [
        _term(builder, (heads,)) * builder.facts[str(chunk)] * sum_of(of) for heads, of in sides.items()
    ]
    return sum_of([*within, *others])


def _span(sizes: Mapping[str, Node]) -> AttentionSpan:
    """How far back attention looks."""
    if "window" in sizes:
        return AttentionSpan("sliding", _fact(sizes["window"]))
    if "selected" in sizes:
        return AttentionSpan("selected", _fact(sizes["selected"]))
    return FULL


def _indexer(sizes: Mapping[str, Node]) -> Indexer:
    """Scores of every token before, or of groups of them."""
    query, heads, key = sizes["query"], sizes["heads"], sizes["key"]
    if "every" not in sizes:
        return Indexer(query, heads, key)
    every = _fact(sizes["every"])
    return Indexer(query / every, heads / every, key, entry_tokens=every)


def _part(step: Step, operation: Operation) -> Part:
    """What a step belongs to where times are shown by kind."""
    if isinstance(operation, Elementwise):
        return "small"
    if isinstance(operation, MatMul | GroupedMatMul):
        return _FFN_PARTS.get(step.weights, "projections")
    return "attention"


def _fact(node: Node) -> Input:
    """A size that is one fact alone."""
    assert isinstance(node, Input)
    return node


def _size(builder: DecoderBuilder, size: Size) -> Node:
    """A size as an expression over facts, and over the widths that ranks split."""
    return sum_of([_term(builder, term) for term in size_terms(size)])


def _term(builder: DecoderBuilder, names: tuple[str, ...]) -> Node:
    """A product of facts; heads and their size are one width."""
    if names in (("0",), ("1",)):
        return as_node(int(names[0]))
    facts = [builder.facts[name] for name in names]
    roles = tuple(name.partition(".")[0] for name in names)
    split = _split(names[0])
    if split is None or split == "columns":
        result: Node = facts[0] if split is None else builder.count(facts[0], split)
        for fact in facts[1:]:
            result = result * fact
        return result
    if len(facts) == 1:
        return builder.count(facts[0], split)
    identifier, label = _WIDTHS.get((roles[0], roles[1]), (f"{names[0]}_{names[1]}", _label(facts)))
    width = builder.width(identifier, label, facts[0], facts[1], split)
    for fact in facts[2:]:
        width = width * fact
    return width


def _label(facts: list[Input]) -> str:
    return f"{facts[0].label} × {facts[1].label}"


def _reduces(step: Step) -> bool:
    """Whether its result is partial on a rank: its inputs are split and its outputs are not."""
    if step.work not in ("product", "experts"):
        return False
    return _is_split(step.sizes["inputs"]) and not _is_split(step.sizes["outputs"])


def _is_split(size: Size) -> bool:
    return any(_split(term[0]) for term in size_terms(size))


def _split(name: str) -> Split | None:
    """How ranks share what a fact counts; None if each has all of it."""
    return _SPLITS.get(name.partition(".")[0])


def _tensor(builder: DecoderBuilder, step: Step, tensor: StoredTensor) -> Tensor:
    tied = step.weights == "embedding" and builder.architecture.value("tied_embeddings")
    return Tensor(
        name=tensor.name,
        shape=tuple(_size(builder, size) for size in tensor.shape),
        copies=builder.facts[tensor.copies] if tensor.copies else None,
        matrix=tensor.matrix,
        weights="head" if tied else step.weights,
        routed=step.work == "experts",
        buffer=tensor.buffer,
    )
