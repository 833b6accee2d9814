"""Every fact an architecture may state: what it is called, its unit, and what it means."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class FactKind:
    """A kind of fact.

    Args:
        note: what it means, in one sentence.
        structural: it decides which tensors and modules exist, so a workbook cannot change it.
        least, most: the smallest and the largest value; None where there is no largest.
    """

    label: str
    unit: str
    note: str
    structural: bool = False
    least: int = 1
    most: int | None = None


def _flag(label: str, note: str, most: int = 1) -> FactKind:
    return FactKind(label, "flag", note, structural=True, least=0, most=most)


FACTS: dict[str, FactKind] = {
    "layers": FactKind("Layers", "layer", "transformer blocks"),
    "hidden_size": FactKind("Hidden size", "channel", "width of the residual stream"),
    "vocabulary": FactKind("Vocabulary", "row", "rows of the embedding"),
    "max_positions": FactKind(
        "Longest context", "token/request", "positions that the model was trained or extended for"
    ),
    "position_rows": FactKind("Position rows", "row", "rows of the table of learned positions"),
    # attention
    "attention_heads": FactKind("Query heads", "head", "attention heads of the queries"),
    "kv_heads": FactKind(
        "KV heads", "head", "heads of keys and values: fewer than query heads in GQA, one in MQA"
    ),
    "head_dim": FactKind("Head size", "channel", "width of one attention head"),
    "value_head_dim": FactKind("Value head size", "channel", "width of one head of the values"),
    "sliding_window": FactKind(
        "Sliding window", "token/request", "how far back attention looks; 0 means without limit", least=0
    ),
    "attention_chunk": FactKind(
        "Attention chunk", "token/request", "attention stays inside chunks of this length"
    ),
    "sliding_heads": FactKind(
        "Query heads, sliding layers", "head", "attention heads of layers with a window"
    ),
    "sliding_kv_heads": FactKind("KV heads, sliding layers", "head", "KV heads of layers with a window"),
    "sliding_head_dim": FactKind(
        "Head size, sliding layers", "channel", "width of a head in layers with a window"
    ),
    "sliding_value_head_dim": FactKind(
        "Value head size, sliding layers", "channel", "width of a value head in layers with a window"
    ),
    "global_kv_heads": FactKind("KV heads, full layers", "head", "KV heads of layers without a window"),
    "global_head_dim": FactKind(
        "Head size, full layers", "channel", "width of a head in layers without a window"
    ),
    # multi-head latent attention
    "q_lora_rank": FactKind(
        "Query rank",
        "channel",
        "width of the compressed query; 0 where queries are projected directly",
        least=0,
    ),
    "kv_lora_rank": FactKind("KV rank", "channel", "width of the latent that stands for keys and values"),
    "qk_nope_head_dim": FactKind(
        "Key size without position", "channel", "part of a head that carries no position"
    ),
    "qk_rope_head_dim": FactKind(
        "Key size with position", "channel", "part of a head that is rotated; shared by all heads"
    ),
    "v_head_dim": FactKind("Value size", "channel", "width of one head of the values"),
    "index_heads": FactKind("Indexer heads", "head", "heads that score which tokens are attended to"),
    "index_head_dim": FactKind(
        "Indexer head size", "channel", "width of an indexer head, and of its key cache"
    ),
    "index_group": FactKind("Tokens per indexer group", "row", "tokens that an indexer scores together"),
    "index_kept": FactKind(
        "Indexer channels kept", "channel", "values of a token that an indexer keeps, its key among them"
    ),
    "index_topk": FactKind(
        "Tokens selected", "token/request", "tokens that the indexer selects for attention"
    ),
    "sparse_ratio": FactKind(
        "Tokens per entry, sparse layers",
        "row",
        "tokens compressed into one entry where an indexer selects entries",
    ),
    "heavy_ratio": FactKind(
        "Tokens per entry, other layers",
        "row",
        "tokens compressed into one entry where all entries are attended to",
    ),
    "output_groups": FactKind(
        "Output groups", "group", "groups of heads whose results are compressed together"
    ),
    "output_rank": FactKind("Output rank", "channel", "width of the compressed results of a group"),
    # linear attention and state space layers
    "linear_heads": FactKind(
        "Linear heads", "head", "heads of linear attention, each with a state of its own"
    ),
    "linear_head_dim": FactKind(
        "Linear head size", "channel", "width of keys and of values of a head of linear attention"
    ),
    "linear_key_heads": FactKind("Linear key heads", "head", "key heads of linear attention"),
    "linear_value_heads": FactKind(
        "Linear value heads", "head", "value heads of linear attention, each with a state of its own"
    ),
    "linear_key_dim": FactKind("Linear key size", "channel", "width of a key head of linear attention"),
    "linear_value_dim": FactKind("Linear value size", "channel", "width of a value head of linear attention"),
    "linear_chunk": FactKind(
        "Linear attention chunk", "row", "tokens that linear attention works through at once in prefill"
    ),
    "mamba_heads": FactKind("Mamba heads", "head", "heads of the state space, each with a state of its own"),
    "mamba_head_dim": FactKind("Mamba head size", "channel", "width of one head of the state space"),
    "mamba_groups": FactKind("Mamba groups", "group", "groups of heads that share B and C"),
    "mamba_state": FactKind("Mamba state size", "channel", "state kept for each channel"),
    "mamba_chunk": FactKind(
        "Mamba chunk", "row", "tokens that the state space works through at once in prefill"
    ),
    "mamba_inner": FactKind("Mamba inner size", "channel", "channels inside the mixer"),
    "mamba_dt_rank": FactKind("Mamba step rank", "channel", "width of the compressed time step"),
    "conv_kernel": FactKind("Convolution length", "number", "tokens that the short convolution looks at"),
    "conv_bias": _flag("Convolution bias", "1 if the short convolution has a bias"),
    # feed-forward network and experts
    "ffn_size": FactKind("FFN size", "channel", "width inside the feed-forward network"),
    "ffn_input_matrices": FactKind(
        "FFN input matrices",
        "matrix",
        "2 in a gated FFN (gate and up), 1 in a plain one",
        most=2,
    ),
    "experts": FactKind("Experts", "expert", "routed experts of a layer"),
    "experts_per_token": FactKind("Experts per token", "expert", "routed experts that a token goes through"),
    "zero_experts": FactKind(
        "Experts without weights", "expert", "experts that hand a token on as it is: no weights, no work"
    ),
    "expert_size": FactKind("Expert size", "channel", "width inside one routed expert"),
    "latent_size": FactKind("Expert latent size", "channel", "width that the experts work in"),
    "shared_expert_size": FactKind(
        "Shared expert size", "channel", "width of all shared experts together; every token goes through them"
    ),
    "shared_experts": FactKind("Shared experts", "expert", "that one parameter holds side by side"),
    "shared_expert_gate": _flag("Shared expert gate", "1 if a gate weighs the shared expert"),
    "router_bias": _flag("Router bias", "1 if the router has a bias"),
    "expert_bias": _flag("Expert bias", "1 if the experts' matrices have biases"),
    "hash_routing": _flag(
        "Routing table",
        "1 if in some layers a stored table says which experts a token of the vocabulary goes through",
    ),
    "hash_correction": _flag(
        "Routing correction, table", "1 if a stored vector balances the routing by a table"
    ),
    "branch_norms": _flag(
        "Branch norms", "1 if dense FFN and experts, side by side, have norms of their own"
    ),
    "router_scales": _flag(
        "Router scales", "1 if the router has a norm of its own, and scales before and after it"
    ),
    "layer_scale": _flag("Layer scale", "1 if a stored number scales the output of every layer"),
    "correction_bias": _flag("Routing correction", "1 if a stored vector balances the routing"),
    # structure
    "residual_streams": FactKind(
        "Residual streams", "number", "copies of the residual stream that hyper-connections mix"
    ),
    "tied_embeddings": FactKind(
        "Tied embeddings", "flag", "1 if the LM head is the embedding itself", least=0, most=1
    ),
    "learned_positions": _flag("Learned positions", "1 if a table of positions is added to the embedding"),
    "qkv_bias": _flag("QKV bias", "1 if query, key and value projections have a bias"),
    "output_bias": _flag("Output bias", "1 if the attention output projection has a bias"),
    "ffn_bias": _flag("FFN bias", "1 if the FFN matrices have a bias"),
    "norm_bias": _flag("Norm bias", "1 if norms have a bias, as LayerNorm does"),
    "head_bias": _flag("LM head bias", "1 if the LM head has a bias"),
    "projection_bias": _flag("Mixer bias", "1 if projections of the state space mixer have a bias"),
    "qk_norm": _flag(
        "QK norm",
        "1 if every query and key head is normalised, 2 if their whole width is, 3 if every head has weights "
        "of its own, 4 if no weights are stored",
        most=4,
    ),
    "qk_norm_bias": _flag("QK norm bias", "1 if the norm of queries and keys has a bias"),
    "chunked_qk_norm": _flag(
        "QK norm, chunked layers", "as QK norm, in layers whose attention stays inside chunks", most=4
    ),
    "output_gate": _flag("Output gate", "1 if the query projection also makes a gate of its width"),
    "head_gate": _flag("Head gate", "1 if a projection makes a gate for the result of every head"),
    "sinks": _flag("Attention sinks", "1 if every head has a learned sink"),
    "values_are_keys": _flag("Values are keys", "1 if there is no value projection"),
    "global_values_are_keys": _flag(
        "Values are keys, full layers", "1 if layers without a window have no value projection"
    ),
    "sliding_sinks": _flag(
        "Attention sinks, sliding layers", "1 if heads of layers with a window have a learned sink"
    ),
    "mixer_size": FactKind("Mixer size", "channel", "width inside a mixer that keeps a state"),
    "state_heads": FactKind("State heads", "head", "heads that keep a state"),
    "state_groups": FactKind(
        "State groups", "group", "groups of heads that share keys and queries of a state"
    ),
    "state_rows": FactKind("State rows", "channel", "rows of the state of a head"),
    "state_columns": FactKind("State columns", "channel", "columns of the state of a head"),
    "state_chunk": FactKind("State chunk", "row", "tokens that a state is worked through at once in prefill"),
    "parts": FactKind("Parts", "1", "how often a stored tensor is repeated"),
    "width": FactKind("Width", "channel", "channels inside a step that the model class was seen to run"),
    # multi-token prediction
    "mtp_layers": FactKind(
        "Prediction layers",
        "layer",
        "extra layers that predict further tokens; no estimate runs them",
        least=0,
    ),
}

VISION_FACTS: dict[str, FactKind] = {
    "layers": FactKind("Vision layers", "layer", "transformer blocks of the tower"),
    "hidden_size": FactKind("Vision width", "channel", "width of a patch inside the tower"),
    "ffn_size": FactKind("Vision FFN size", "channel", "width inside the tower's feed-forward network"),
    "heads": FactKind("Vision query heads", "head", "attention heads of the tower"),
    "kv_heads": FactKind("Vision KV heads", "head", "heads of keys and values"),
    "head_dim": FactKind("Vision head size", "channel", "width of one attention head"),
    "channels": FactKind("Colour channels", "channel", "channels of the image"),
    "patch_size": FactKind("Patch side", "1", "pixels along a side of a patch"),
    "temporal_patch": FactKind(
        "Frames per patch", "1", "frames of a video in one patch; an image is repeated to as many"
    ),
    "image_size": FactKind("Image side", "1", "pixels along a side of the image that the tower takes"),
    "patches_per_image": FactKind("Patches per image", "1", "patches that attend to each other"),
    "positions": FactKind("Positions", "row", "rows of the position table"),
    "position_rows": FactKind("Position table height", "row", "rows of the position grid"),
    "position_columns": FactKind("Position table width", "row", "columns of the position grid"),
    "position_axes": FactKind("Position tables", "1", "tables, one for each axis"),
    "merge": FactKind("Patches per side of a token", "1", "patches along each side that become one token"),
    "tokens_per_image": FactKind("Tokens per image", "1", "tokens that the decoder gets for an image"),
    "output_size": FactKind("Vision output size", "channel", "width of the tower's output"),
    "merger_size": FactKind("Merger size", "channel", "width inside the merger"),
    "merger_norm_size": FactKind("Merger norm size", "channel", "width of the norm before the merger"),
    "adapter_size": FactKind("Adapter size", "channel", "width of the adapter behind the tower"),
    "deepstack": FactKind(
        "Deepstack mergers", "1", "layers whose features are merged and given to the decoder as well", least=0
    ),
    "window": FactKind(
        "Attention window", "1", "pixels along a side of the windows that patches attend inside"
    ),
    "full_layers": FactKind(
        "Layers without window", "layer", "layers of the tower that attend to the whole image", least=0
    ),
    "pooling_head": _flag(
        "Pooling head", "1 if the checkpoint holds an attention pool, which no token goes through"
    ),
    "projector_bias": _flag("Projector bias", "1 if the projector's matrices have a bias"),
    "attention_bias": _flag(
        "Vision QKV bias", "1 if the tower's query, key and value projections have a bias"
    ),
    "clipped": _flag("Clipped matrices", "1 if limits of input and output are stored beside each matrix"),
    "standardised": _flag(
        "Standardised output", "1 if the tower's output is shifted and scaled by stored vectors"
    ),
}
"""Facts of a vision tower; flags decide which tensors exist."""


_BLOCK_TITLES = {"ffn": "FFN", "moe": "MoE", "hash_moe": "hash MoE", "mamba": "Mamba"}


def block_title(name: str) -> str:
    """What a block is called where people read it."""
    return _BLOCK_TITLES.get(name, name.replace("_", " "))


def fact_kind(name: str) -> FactKind | None:
    """What a fact of a decoder is; None if there is no such fact.

    The layers of one kind are a fact too, called by its blocks: `layers.linear.moe`. A fact that differs from
    block to block names the block behind a point, `head_dim.sliding`, and so does a width that plays no role
    we have a name for: `width.in_proj`.
    """
    if name.startswith("layers."):
        kind = " + ".join(block_title(block) for block in name.split(".")[1:])
        return FactKind(
            f"{kind[:1].upper()}{kind[1:]} layers", "layer", "layers made of these blocks", least=0
        )
    role, _, block = name.partition(".")
    found = FACTS.get(role)
    if not block or found is None:
        return found
    return replace(found, label=f"{found.label}, {block.replace('_', ' ')}")


def fact_order(name: str) -> tuple[int, str]:
    """Where a fact stands among the others: counts of layers first, then as listed above."""
    position = {fact: number for number, fact in enumerate(FACTS, 1)}
    role = name.partition(".")[0]
    return (0 if name.startswith("layers.") else position.get(role, len(position) + 1), name)
