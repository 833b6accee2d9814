"""Vision towers and projectors: the tensors that each of them holds."""

from __future__ import annotations

from collections.abc import Callable

from mantile.graph.quantity import as_node
from mantile.ir.modules import Tensor
from mantile.ir.vision_builder import VisionBuilder

ONE = as_node(1)


def _clip(tower: VisionBuilder) -> None:
    width = tower["hidden_size"]
    tower.within("vision_tower.embeddings.")
    tower.vector("class_embedding", width)
    tower.matrix("patch_embedding", width, *tower.patch_pixels())
    tower.vector("position_embedding.weight", tower.grid() * tower.grid() + 1, width)
    tower.within("vision_tower.")
    tower.norms("pre_layrnorm", "post_layernorm")
    _clip_layers(tower)


def _clip_layers(tower: VisionBuilder) -> None:
    tower.within("vision_tower.encoder.layers.{}.", tower["layers"])
    tower.norms("layer_norm1", "layer_norm2")
    tower.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj")
    tower.ffn("mlp.fc1", down="mlp.fc2")


def _siglip(tower: VisionBuilder) -> None:
    width = tower["hidden_size"]
    tower.within("vision_tower.embeddings.")
    tower.matrix("patch_embedding", width, *tower.patch_pixels(), bias=width)
    tower.vector("position_embedding.weight", tower.grid() * tower.grid(), width)
    tower.within("vision_tower.")
    tower.norms("post_layernorm")
    _clip_layers(tower)
    if tower.has("pooling_head"):
        tower.within("vision_tower.head.", stage="")
        tower.vector("probe", ONE, ONE, width)
        tower.vector("attention.in_proj_weight", width + width + width, width)
        tower.vector("attention.in_proj_bias", width + width + width)
        tower.attention("attention.out_proj")
        tower.norms("layernorm")
        tower.ffn("mlp.fc1", down="mlp.fc2")


def _pixtral(tower: VisionBuilder) -> None:
    tower.within("vision_tower.")
    tower.matrix("patch_conv", tower["hidden_size"], *tower.patch_pixels())
    tower.norms("ln_pre", bias=False)
    tower.within("vision_tower.transformer.layers.{}.", tower["layers"])
    tower.norms("attention_norm", "ffn_norm", bias=False)
    tower.attention(
        "attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", bias=False
    )
    tower.ffn("feed_forward.gate_proj", "feed_forward.up_proj", down="feed_forward.down_proj", bias=False)


def _gemma4(tower: VisionBuilder) -> None:
    width, inner, patch, size = (
        tower["hidden_size"],
        tower["ffn_size"],
        tower["patch_size"],
        tower["head_dim"],
    )
    query, key = tower["heads"] * size, tower["kv_heads"] * size
    tower.within("model.vision_tower.patch_embedder.")
    tower.matrix("input_proj", width, tower["channels"] * patch * patch)
    tower.vector("position_embedding_table", tower["position_axes"], tower["positions"], width)
    tower.within("model.vision_tower.encoder.layers.{}.", tower["layers"])
    tower.norms(
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        bias=False,
    )
    tower.norms("self_attn.q_norm", "self_attn.k_norm", width=size, bias=False)
    for name, outputs, inputs in (
        ("self_attn.q_proj", query, width),
        ("self_attn.k_proj", key, width),
        ("self_attn.v_proj", key, width),
        ("self_attn.o_proj", width, query),
        ("mlp.gate_proj", inner, width),
        ("mlp.up_proj", inner, width),
        ("mlp.down_proj", width, inner),
    ):
        tower.matrix(f"{name}.linear", outputs, inputs)
        for limit in ("input_min", "input_max", "output_min", "output_max") if tower.has("clipped") else ():
            tower.vector(f"{name}.{limit}", buffer=True)
    tower.within("model.vision_tower.")
    for name in ("std_bias", "std_scale") if tower.has("standardised") else ():
        tower.vector(name, width, buffer=True)
    tower.within("model.embed_vision.", stage="token")
    tower.matrix("embedding_projection", tower.text, width)


def _llama4(tower: VisionBuilder) -> None:
    width, patch, adapter = tower["hidden_size"], tower["patch_size"], tower["adapter_size"]
    tower.within("vision_model.")
    tower.vector("class_embedding", width)
    tower.vector("positional_embedding_vlm", tower.grid() * tower.grid() + 1, width)
    tower.matrix("patch_embedding.linear", width, tower["channels"] * patch * patch)
    tower.norms("layernorm_pre", "layernorm_post")
    tower.within("vision_model.model.layers.{}.", tower["layers"])
    tower.norms("input_layernorm", "post_attention_layernorm")
    tower.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
    tower.ffn("mlp.fc1", down="mlp.fc2")
    tower.within("vision_model.vision_adapter.mlp.", stage="token")
    tower.matrix("fc1", adapter, tower["ffn_size"])
    tower.matrix("fc2", adapter, adapter)
    tower.within("multi_modal_projector.")
    tower.matrix("linear_1", tower.text, tower["output_size"])


def _qwen_blocks(tower: VisionBuilder, root: str, *ffn: str, norm_bias: bool, patch_bias: bool) -> None:
    width = tower["hidden_size"]
    tower.within(f"{root}patch_embed.")
    tower.matrix("proj", width, *tower.patch_pixels(), bias=width if patch_bias else None)
    tower.within(root + "blocks.{}.", tower["layers"])
    tower.norms("norm1", "norm2", bias=norm_bias)
    tower.matrix("attn.qkv", width + width + width, width, bias=width + width + width)
    tower.attention("attn.proj")
    tower.ffn(*ffn[:-1], down=ffn[-1])


def _qwen_merger(tower: VisionBuilder, prefix: str, first: str, second: str) -> None:
    joined = tower["hidden_size"] * tower.merged()
    tower.within(prefix, tower.count, stage="token")
    tower.matrix(first, joined, joined, bias=joined)
    tower.matrix(second, tower["output_size"], joined, bias=tower["output_size"])


def _qwen2_vl(tower: VisionBuilder) -> None:
    _qwen_blocks(tower, "visual.", "mlp.fc1", "mlp.fc2", norm_bias=True, patch_bias=False)
    tower.within("visual.merger.")
    tower.norms("ln_q")
    _qwen_merger(tower, "visual.merger.", "mlp.0", "mlp.2")


def _qwen2_5_vl(tower: VisionBuilder) -> None:
    _qwen_blocks(
        tower, "visual.", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", norm_bias=False, patch_bias=False
    )
    tower.within("visual.merger.")
    tower.norms("ln_q", bias=False)
    _qwen_merger(tower, "visual.merger.", "mlp.0", "mlp.2")


def _qwen3_vl(tower: VisionBuilder) -> None:
    _qwen_blocks(tower, "model.visual.", "mlp.linear_fc1", "mlp.linear_fc2", norm_bias=True, patch_bias=True)
    tower.within("model.visual.")
    tower.vector("pos_embed.weight", tower["positions"], tower["hidden_size"])
    tower.within("model.visual.merger.")
    tower.norms("norm")
    _qwen_merger(tower, "model.visual.merger.", "linear_fc1", "linear_fc2")
    if tower.has("deepstack"):
        tower.within("model.visual.deepstack_merger_list.{}.", tower["deepstack"])
        tower.norms("norm", width=tower["hidden_size"] * tower.merged())
        _qwen_merger(tower, tower.prefix, "linear_fc1", "linear_fc2")


def _glm4v(tower: VisionBuilder) -> None:
    width, merged, inner, merge = (
        tower["hidden_size"],
        tower["output_size"],
        tower["merger_size"],
        tower["merge"],
    )
    tower.within("model.visual.")
    tower.matrix("patch_embed.proj", width, *tower.patch_pixels(), bias=width)
    tower.vector("embeddings.position_embedding.weight", tower.grid() * tower.grid(), width)
    tower.norms("post_conv_layernorm", "post_layernorm", bias=False)
    tower.within("model.visual.blocks.{}.", tower["layers"])
    tower.norms("norm1", "norm2", bias=False)
    joined = width + width + width
    tower.matrix("attn.qkv", joined, width, bias=joined if tower.has("attention_bias") else None)
    tower.attention("attn.proj", bias=False)
    tower.matrix("mlp.gate_proj", merged, width)
    tower.matrix("mlp.up_proj", merged, width)
    tower.matrix("mlp.down_proj", width, merged)
    tower.within("model.visual.", stage="token")
    tower.matrix("downsample", merged, width, merge, merge, bias=merged)
    tower.matrix("merger.proj", merged, merged)
    tower.norms("merger.post_projection_norm", width=merged)
    tower.matrix("merger.gate_proj", inner, merged)
    tower.matrix("merger.up_proj", inner, merged)
    tower.matrix("merger.down_proj", merged, inner)


def _kimi(tower: VisionBuilder) -> None:
    width = tower["hidden_size"]
    tower.within("vision_tower.patch_embed.")
    tower.matrix("proj", width, *tower.patch_pixels(), bias=width)
    tower.vector("pos_emb.weight", tower["position_rows"], tower["position_columns"], width)
    tower.within("vision_tower.encoder.blocks.{}.", tower["layers"])
    tower.norms("norm0", "norm1")
    tower.matrix("wqkv", width + width + width, width, bias=width + width + width)
    tower.attention("wo")
    tower.ffn("mlp.fc0", down="mlp.fc1")
    tower.within("vision_tower.encoder.")
    tower.norms("final_layernorm")
    joined = width * tower.merged()
    tower.within("mm_projector.", stage="token")
    tower.norms("pre_norm", width=tower["merger_norm_size"])
    tower.matrix("proj.0", joined, joined, bias=joined)
    tower.matrix("proj.2", tower.text, joined, bias=tower.text)


def _two_matrices(tower: VisionBuilder) -> None:
    """LLaVA's projector."""
    bias = tower.text if tower.has("projector_bias") else None
    tower.within("multi_modal_projector.", stage="token")
    tower.matrix("linear_1", tower.text, tower["hidden_size"], bias=bias)
    tower.matrix("linear_2", tower.text, tower.text, bias=bias)


def _patch_merger(tower: VisionBuilder) -> None:
    """Mistral's projector."""
    width = tower["hidden_size"]
    tower.within("multi_modal_projector.", stage="token")
    tower.norms("norm", bias=False)
    tower.matrix("patch_merger.merging_layer", width, width * tower.merged())
    _two_matrices(tower)


def _averaged(tower: VisionBuilder) -> None:
    """Gemma 3's projector: one matrix, stored input by output."""
    weight = Tensor("multi_modal_projector.mm_input_projection_weight", (tower["hidden_size"], tower.text))
    tower.tensors.append(weight)
    tower.matrices["token"].append(weight)
    tower.within("multi_modal_projector.", stage="token")
    tower.norms("mm_soft_emb_norm", bias=False)


# By the kind of a tower.
TOWERS: dict[str, Callable[[VisionBuilder], None]] = {
    "clip": _clip,
    "siglip": _siglip,
    "pixtral": _pixtral,
    "gemma4": _gemma4,
    "llama4": _llama4,
    "qwen2_vl": _qwen2_vl,
    "qwen2_5_vl": _qwen2_5_vl,
    "qwen3_vl": _qwen3_vl,
    "glm4v": _glm4v,
    "kimi_k25": _kimi,
}
# By the projector of a tower, where it is not built with the tower.
PROJECTORS: dict[str, Callable[[VisionBuilder], None]] = {
    "llava": _two_matrices,
    "mistral3": _patch_merger,
    "gemma3": _averaged,
}
