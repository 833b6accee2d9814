"""Vision towers and their projectors: the tensors they hold, and what a patch and an image token go through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mantile.graph.quantity import Input, Node, Quantity, as_node, floor, span, sum_range
from mantile.ir.modules import Tensor, Vision
from mantile.library.architecture import Tower
from mantile.library.facts import VISION_FACTS

ONE = as_node(1)


@dataclass
class VisionBuilder:
    """A tower being drawn up.

    Args:
        facts: its facts as inputs; `text` is the width of the decoder.
        stage: what runs through the tensors stored next: every patch, every image token, or nothing.
    """

    tower: Tower
    text: Input
    facts: dict[str, Input] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    matrices: dict[str, list[Tensor]] = field(default_factory=lambda: {"patch": [], "token": [], "": []})
    stage: str = "patch"
    prefix: str = ""
    count: Node | None = None

    def __post_init__(self) -> None:
        for name, fact in self.tower.facts.items():
            kind = VISION_FACTS[name]
            self.facts[name] = Input(
                id=f"model.vision.{name}",
                label=kind.label,
                unit=kind.unit,
                value=fact.value,
                note=kind.note,
                shared=True,
                integer=True,
                source=f"{fact.origin}: {fact.source}",
                status=fact.origin,
                fixed=kind.structural,
                minimum=min(kind.least, 1),
                maximum=10_000_000,
            )

    def __getitem__(self, name: str) -> Input:
        return self.facts[name]

    def has(self, flag: str) -> bool:
        """Whether a flag is set, or a count above 0, when the model is drawn up."""
        return flag in self.tower.facts and self.tower.facts[flag].value > 0

    def within(self, prefix: str, count: Node | None = None, stage: str | None = None) -> None:
        """Where the tensors stored next stand, how often, and what runs through them."""
        self.prefix, self.count = prefix, count
        self.stage = self.stage if stage is None else stage

    def matrix(self, name: str, *shape: Node, bias: Node | None = None) -> None:
        """A matrix or a convolution, and its bias, of the given width, where it has one."""
        weight = Tensor(f"{self.prefix}{name}.weight", shape, layers=self.count)
        self.tensors.append(weight)
        self.matrices[self.stage].append(weight)
        if bias is not None:
            self.vector(f"{name}.bias", bias)

    def vector(self, name: str, *shape: Node, buffer: bool = False) -> None:
        """What no product reads: norms, biases, tables of positions."""
        self.tensors.append(
            Tensor(f"{self.prefix}{name}", shape, layers=self.count, matrix=False, buffer=buffer)
        )

    def norms(self, *names: str, width: Node | None = None, bias: bool = True) -> None:
        """Norms of the tower's width, LayerNorm with a bias."""
        for name in names:
            for suffix in (".weight", ".bias") if bias else (".weight",):
                self.vector(name + suffix, self["hidden_size"] if width is None else width)

    def attention(self, *names: str, bias: bool = True) -> None:
        """Query, key, value and output matrices, all of the tower's width."""
        width = self["hidden_size"]
        for name in names:
            self.matrix(name, width, width, bias=width if bias else None)

    def ffn(self, *inputs: str, down: str, bias: bool = True) -> None:
        """A plain FFN, or a gated one of two input matrices."""
        width, inner = self["hidden_size"], self["ffn_size"]
        for name in inputs:
            self.matrix(name, inner, width, bias=inner if bias else None)
        self.matrix(down, width, inner, bias=width if bias else None)

    def grid(self) -> Node:
        """Patches along a side of the image."""
        return floor(self["image_size"] / self["patch_size"])

    def merged(self) -> Node:
        """Patches that become one token."""
        return self["merge"] * self["merge"]

    def patch_pixels(self) -> tuple[Node, ...]:
        """The shape of a patch behind its channels."""
        frames = (self["temporal_patch"],) if "temporal_patch" in self.facts else ()
        return (self["channels"], *frames, self["patch_size"], self["patch_size"])


def _clip(draft: VisionBuilder) -> None:
    width = draft["hidden_size"]
    draft.within("vision_tower.embeddings.")
    draft.vector("class_embedding", width)
    draft.matrix("patch_embedding", width, *draft.patch_pixels())
    draft.vector("position_embedding.weight", draft.grid() * draft.grid() + 1, width)
    draft.within("vision_tower.")
    draft.norms("pre_layrnorm", "post_layernorm")
    _clip_layers(draft)


def _clip_layers(draft: VisionBuilder) -> None:
    draft.within("vision_tower.encoder.layers.{}.", draft["layers"])
    draft.norms("layer_norm1", "layer_norm2")
    draft.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj")
    draft.ffn("mlp.fc1", down="mlp.fc2")


def _siglip(draft: VisionBuilder) -> None:
    width = draft["hidden_size"]
    draft.within("vision_tower.embeddings.")
    draft.matrix("patch_embedding", width, *draft.patch_pixels(), bias=width)
    draft.vector("position_embedding.weight", draft.grid() * draft.grid(), width)
    draft.within("vision_tower.")
    draft.norms("post_layernorm")
    _clip_layers(draft)
    if draft.has("pooling_head"):
        draft.within("vision_tower.head.", stage="")
        draft.vector("probe", ONE, ONE, width)
        draft.vector("attention.in_proj_weight", width + width + width, width)
        draft.vector("attention.in_proj_bias", width + width + width)
        draft.attention("attention.out_proj")
        draft.norms("layernorm")
        draft.ffn("mlp.fc1", down="mlp.fc2")


def _pixtral(draft: VisionBuilder) -> None:
    draft.within("vision_tower.")
    draft.matrix("patch_conv", draft["hidden_size"], *draft.patch_pixels())
    draft.norms("ln_pre", bias=False)
    draft.within("vision_tower.transformer.layers.{}.", draft["layers"])
    draft.norms("attention_norm", "ffn_norm", bias=False)
    draft.attention(
        "attention.q_proj", "attention.k_proj", "attention.v_proj", "attention.o_proj", bias=False
    )
    draft.ffn("feed_forward.gate_proj", "feed_forward.up_proj", down="feed_forward.down_proj", bias=False)


def _gemma4(draft: VisionBuilder) -> None:
    width, inner, side, size = draft["hidden_size"], draft["ffn_size"], draft["patch_size"], draft["head_dim"]
    query, key = draft["heads"] * size, draft["kv_heads"] * size
    draft.within("model.vision_tower.patch_embedder.")
    draft.matrix("input_proj", width, draft["channels"] * side * side)
    draft.vector("position_embedding_table", draft["position_axes"], draft["positions"], width)
    draft.within("model.vision_tower.encoder.layers.{}.", draft["layers"])
    draft.norms(
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        bias=False,
    )
    draft.norms("self_attn.q_norm", "self_attn.k_norm", width=size, bias=False)
    for name, outputs, inputs in (
        ("self_attn.q_proj", query, width),
        ("self_attn.k_proj", key, width),
        ("self_attn.v_proj", key, width),
        ("self_attn.o_proj", width, query),
        ("mlp.gate_proj", inner, width),
        ("mlp.up_proj", inner, width),
        ("mlp.down_proj", width, inner),
    ):
        draft.matrix(f"{name}.linear", outputs, inputs)
        for limit in ("input_min", "input_max", "output_min", "output_max") if draft.has("clipped") else ():
            draft.vector(f"{name}.{limit}", buffer=True)
    draft.within("model.vision_tower.")
    for name in ("std_bias", "std_scale") if draft.has("standardised") else ():
        draft.vector(name, width, buffer=True)
    draft.within("model.embed_vision.", stage="token")
    draft.matrix("embedding_projection", draft.text, width)


def _llama4(draft: VisionBuilder) -> None:
    width, side, adapter = draft["hidden_size"], draft["patch_size"], draft["adapter_size"]
    draft.within("vision_model.")
    draft.vector("class_embedding", width)
    draft.vector("positional_embedding_vlm", draft.grid() * draft.grid() + 1, width)
    draft.matrix("patch_embedding.linear", width, draft["channels"] * side * side)
    draft.norms("layernorm_pre", "layernorm_post")
    draft.within("vision_model.model.layers.{}.", draft["layers"])
    draft.norms("input_layernorm", "post_attention_layernorm")
    draft.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj")
    draft.ffn("mlp.fc1", down="mlp.fc2")
    draft.within("vision_model.vision_adapter.mlp.", stage="token")
    draft.matrix("fc1", adapter, draft["ffn_size"])
    draft.matrix("fc2", adapter, adapter)
    draft.within("multi_modal_projector.")
    draft.matrix("linear_1", draft.text, draft["output_size"])


def _qwen_blocks(draft: VisionBuilder, root: str, *ffn: str, norm_bias: bool, patch_bias: bool) -> None:
    width = draft["hidden_size"]
    draft.within(f"{root}patch_embed.")
    draft.matrix("proj", width, *draft.patch_pixels(), bias=width if patch_bias else None)
    draft.within(root + "blocks.{}.", draft["layers"])
    draft.norms("norm1", "norm2", bias=norm_bias)
    draft.matrix("attn.qkv", width + width + width, width, bias=width + width + width)
    draft.attention("attn.proj")
    draft.ffn(*ffn[:-1], down=ffn[-1])


def _qwen_merger(draft: VisionBuilder, prefix: str, first: str, second: str) -> None:
    joined = draft["hidden_size"] * draft.merged()
    draft.within(prefix, draft.count, stage="token")
    draft.matrix(first, joined, joined, bias=joined)
    draft.matrix(second, draft["output_size"], joined, bias=draft["output_size"])


def _qwen2_vl(draft: VisionBuilder) -> None:
    _qwen_blocks(draft, "visual.", "mlp.fc1", "mlp.fc2", norm_bias=True, patch_bias=False)
    draft.within("visual.merger.")
    draft.norms("ln_q")
    _qwen_merger(draft, "visual.merger.", "mlp.0", "mlp.2")


def _qwen2_5_vl(draft: VisionBuilder) -> None:
    _qwen_blocks(
        draft, "visual.", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", norm_bias=False, patch_bias=False
    )
    draft.within("visual.merger.")
    draft.norms("ln_q", bias=False)
    _qwen_merger(draft, "visual.merger.", "mlp.0", "mlp.2")


def _qwen3_vl(draft: VisionBuilder) -> None:
    _qwen_blocks(draft, "model.visual.", "mlp.linear_fc1", "mlp.linear_fc2", norm_bias=True, patch_bias=True)
    draft.within("model.visual.")
    draft.vector("pos_embed.weight", draft["positions"], draft["hidden_size"])
    draft.within("model.visual.merger.")
    draft.norms("norm")
    _qwen_merger(draft, "model.visual.merger.", "linear_fc1", "linear_fc2")
    if draft.has("deepstack"):
        draft.within("model.visual.deepstack_merger_list.{}.", draft["deepstack"])
        draft.norms("norm", width=draft["hidden_size"] * draft.merged())
        _qwen_merger(draft, draft.prefix, "linear_fc1", "linear_fc2")


def _glm4v(draft: VisionBuilder) -> None:
    width, merged, inner, side = (
        draft["hidden_size"],
        draft["output_size"],
        draft["merger_size"],
        draft["merge"],
    )
    draft.within("model.visual.")
    draft.matrix("patch_embed.proj", width, *draft.patch_pixels(), bias=width)
    draft.vector("embeddings.position_embedding.weight", draft.grid() * draft.grid(), width)
    draft.norms("post_conv_layernorm", "post_layernorm", bias=False)
    draft.within("model.visual.blocks.{}.", draft["layers"])
    draft.norms("norm1", "norm2", bias=False)
    joined = width + width + width
    draft.matrix("attn.qkv", joined, width, bias=joined if draft.has("attention_bias") else None)
    draft.attention("attn.proj", bias=False)
    draft.matrix("mlp.gate_proj", merged, width)
    draft.matrix("mlp.up_proj", merged, width)
    draft.matrix("mlp.down_proj", width, merged)
    draft.within("model.visual.", stage="token")
    draft.matrix("downsample", merged, width, side, side, bias=merged)
    draft.matrix("merger.proj", merged, merged)
    draft.norms("merger.post_projection_norm", width=merged)
    draft.matrix("merger.gate_proj", inner, merged)
    draft.matrix("merger.up_proj", inner, merged)
    draft.matrix("merger.down_proj", merged, inner)


def _kimi(draft: VisionBuilder) -> None:
    width = draft["hidden_size"]
    draft.within("vision_tower.patch_embed.")
    draft.matrix("proj", width, *draft.patch_pixels(), bias=width)
    draft.vector("pos_emb.weight", draft["position_rows"], draft["position_columns"], width)
    draft.within("vision_tower.encoder.blocks.{}.", draft["layers"])
    draft.norms("norm0", "norm1")
    draft.matrix("wqkv", width + width + width, width, bias=width + width + width)
    draft.attention("wo")
    draft.ffn("mlp.fc0", down="mlp.fc1")
    draft.within("vision_tower.encoder.")
    draft.norms("final_layernorm")
    joined = width * draft.merged()
    draft.within("mm_projector.", stage="token")
    draft.norms("pre_norm", width=draft["merger_norm_size"])
    draft.matrix("proj.0", joined, joined, bias=joined)
    draft.matrix("proj.2", draft.text, joined, bias=draft.text)


def _two_matrices(draft: VisionBuilder) -> None:
    """LLaVA's projector."""
    bias = draft.text if draft.has("projector_bias") else None
    draft.within("multi_modal_projector.", stage="token")
    draft.matrix("linear_1", draft.text, draft["hidden_size"], bias=bias)
    draft.matrix("linear_2", draft.text, draft.text, bias=bias)


def _patch_merger(draft: VisionBuilder) -> None:
    """Mistral's projector."""
    width = draft["hidden_size"]
    draft.within("multi_modal_projector.", stage="token")
    draft.norms("norm", bias=False)
    draft.matrix("patch_merger.merging_layer", width, width * draft.merged())
    _two_matrices(draft)


def _averaged(draft: VisionBuilder) -> None:
    """Gemma 3's projector: one matrix, stored input by output."""
    weight = Tensor("multi_modal_projector.mm_input_projection_weight", (draft["hidden_size"], draft.text))
    draft.tensors.append(weight)
    draft.matrices["token"].append(weight)
    draft.within("multi_modal_projector.", stage="token")
    draft.norms("mm_soft_emb_norm", bias=False)


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
# Projectors that are no part of the tower's own class.
PROJECTORS: dict[str, Callable[[VisionBuilder], None]] = {
    "llava": _two_matrices,
    "mistral3": _patch_merger,
    "gemma3": _averaged,
}


def vision(tower: Tower, text: Input) -> Vision:
    """A tower as tensors and what running it takes. `text` is the decoder's width."""
    draft = VisionBuilder(tower, text)
    TOWERS[tower.kind](draft)
    if tower.projector in PROJECTORS:
        PROJECTORS[tower.projector](draft)
    patches = _patches_per_image(draft)
    merged = Quantity(
        "model.vision.patches_per_token", "Patches per image token", "1", _patches_per_token(draft, patches)
    )
    patch_rows, patch_size = _parameters(draft, "patch")
    patch = Quantity(
        "model.vision.patch_parameters",
        "Matrix parameters per patch",
        "parameter",
        patch_size,
        note="matrices of the tower that every patch goes through",
    )
    token_rows, token_size = _parameters(draft, "token")
    token = Quantity(
        "model.vision.token_parameters",
        "Matrix parameters per image token",
        "parameter",
        token_size,
        note="matrices of merger and projector, behind the tower",
    )
    seen = Quantity(
        "model.vision.attended",
        "Patches attended to, all layers",
        "1",
        _attended(draft, patches),
        note="summed over the tower's layers",
    )
    return Vision(
        facts=draft.facts,
        tensors=tuple(draft.tensors),
        patches_per_image=patches,
        patches_per_token=merged,
        matrices=(*patch_rows, patch, *token_rows, token),
        patch_parameters=patch,
        token_parameters=token,
        attended=seen,
        width=_width(draft),
        layers=draft["layers"],
    )


def _patches_per_image(draft: VisionBuilder) -> Input | Quantity:
    if "patches_per_image" in draft.facts:
        return draft["patches_per_image"]
    several = "tokens_per_image" in draft.facts and "merge" in draft.facts
    body = draft["tokens_per_image"] * draft.merged() if several else draft.grid() * draft.grid()
    kind = VISION_FACTS["patches_per_image"]
    return Quantity("model.vision.patches_per_image", kind.label, kind.unit, body, note=kind.note)


def _patches_per_token(draft: VisionBuilder, patches: Node) -> Node:
    if "merge" in draft.facts:
        return draft.merged()
    return patches / draft["tokens_per_image"] if "tokens_per_image" in draft.facts else ONE


def _attended(draft: VisionBuilder, patches: Node) -> Node:
    if "window" not in draft.facts:
        return draft["layers"] * patches
    side = floor(draft["window"] / draft["patch_size"])
    return draft["full_layers"] * patches + (draft["layers"] - draft["full_layers"]) * side * side


def _width(draft: VisionBuilder) -> Input | Quantity:
    if "head_dim" in draft.facts:
        return Quantity(
            "model.vision.attention_width",
            "Width of all vision heads",
            "channel",
            draft["heads"] * draft["head_dim"],
        )
    return draft["hidden_size"]


def _parameters(draft: VisionBuilder, stage: str) -> tuple[tuple[Quantity, ...], Node]:
    """Values in the matrices of a stage: a row for each of them, and their sum."""
    rows = []
    for number, tensor in enumerate(draft.matrices[stage]):
        size = tensor.shape[0]
        for dimension in tensor.shape[1:]:
            size = size * dimension
        rows.append(
            Quantity(
                f"model.vision.{stage}_matrix.{number}",
                f"Values of {tensor.name.removesuffix('.weight').replace('{}', 'n')}",
                "parameter",
                size if tensor.layers is None else size * tensor.layers,
            )
        )
    return tuple(rows), sum_range(span(rows)) if rows else as_node(0)
