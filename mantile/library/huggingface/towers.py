"""Vision towers in vision_config, each with the projector between it and the decoder."""

from __future__ import annotations

from mantile.library.architecture import Fact, Tower
from mantile.library.errors import InputError
from mantile.library.huggingface.config import MAX_LAYERS, Config, Facts

Fields = dict[str, tuple[tuple[str, ...], int]]
"""Our name of a fact to the fields that may state it, and the class default."""

_ENCODER: Fields = {
    "layers": (("num_hidden_layers",), 12),
    "hidden_size": (("hidden_size",), 768),
    "ffn_size": (("intermediate_size",), 3072),
    "channels": (("num_channels",), 3),
    "patch_size": (("patch_size",), 16),
    "image_size": (("image_size",), 224),
}
_CLIP = _ENCODER | {"patch_size": (("patch_size",), 32)}
_PIXTRAL: Fields = {
    "layers": (("num_hidden_layers",), 24),
    "hidden_size": (("hidden_size",), 1024),
    "ffn_size": (("intermediate_size",), 4096),
    "channels": (("num_channels",), 3),
    "patch_size": (("patch_size",), 16),
}
_LLAMA4 = _ENCODER | {
    "layers": (("num_hidden_layers",), 34),
    "ffn_size": (("intermediate_size",), 5632),
    "patch_size": (("patch_size",), 14),
    "image_size": (("image_size",), 448),
    "adapter_input_size": (("projector_input_dim",), 4096),
    "adapter_size": (("projector_output_dim",), 4096),
    "output_size": (("vision_output_dim",), 7680),
}
_GEMMA4: Fields = {
    "layers": (("num_hidden_layers",), 16),
    "hidden_size": (("hidden_size",), 768),
    "ffn_size": (("intermediate_size",), 3072),
    "heads": (("num_attention_heads",), 12),
    "kv_heads": (("num_key_value_heads",), 12),
    "head_dim": (("head_dim",), 64),
    "patch_size": (("patch_size",), 16),
    "positions": (("position_embedding_size",), 10_240),
    "merge": (("pooling_kernel_size",), 3),
}
_QWEN: Fields = {
    "layers": (("depth",), 32),
    "channels": (("in_channels", "in_chans"), 3),
    "patch_size": (("patch_size", "spatial_patch_size"), 14),
    "temporal_patch": (("temporal_patch_size",), 2),
    "merge": (("spatial_merge_size",), 2),
}
_QWEN2_VL = _QWEN | {"hidden_size": (("embed_dim",), 1280), "output_size": (("hidden_size",), 3584)}
_QWEN25_VL = _QWEN | {
    "hidden_size": (("hidden_size",), 3584),
    "ffn_size": (("intermediate_size",), 3420),
    "output_size": (("out_hidden_size",), 3584),
    "window": (("window_size",), 112),
}
_QWEN3_VL = _QWEN | {
    "layers": (("depth",), 27),
    "hidden_size": (("hidden_size",), 1152),
    "ffn_size": (("intermediate_size",), 4304),
    "patch_size": (("patch_size",), 16),
    "output_size": (("out_hidden_size",), 3584),
    "positions": (("num_position_embeddings",), 2304),
}
_GLM4V = _QWEN | {
    "layers": (("depth",), 24),
    "hidden_size": (("hidden_size",), 1536),
    "output_size": (("out_hidden_size",), 4096),
    "merger_size": (("intermediate_size",), 13_696),
    "image_size": (("image_size",), 336),
}
_KIMI: Fields = {
    "layers": (("vt_num_hidden_layers", "num_hidden_layers"), 27),
    "hidden_size": (("vt_hidden_size", "hidden_size"), 1152),
    "ffn_size": (("vt_intermediate_size", "intermediate_size"), 4304),
    "patch_size": (("patch_size",), 14),
    "position_rows": (("init_pos_emb_height", "pos_emb_height"), 64),
    "position_columns": (("init_pos_emb_width", "pos_emb_width"), 64),
}


def _facts(config: Config, fields: Fields) -> Facts:
    """The facts of a tower. All fields have a class default, because a vision_config may leave them out."""
    return {
        name: config.integer(*spellings, default=default, most=MAX_LAYERS if name == "layers" else 10_000_000)
        for name, (spellings, default) in fields.items()
    }


def _require(config: Config, field: str, expected: bool) -> None:
    """Raise where a switch that changes the structure is not as the class has it by default."""
    if bool(config.flag(field, default=expected).value) != expected:
        raise config.invalid(field, f"{str(expected).lower()}: nothing else is supported")


def _require_one_layer(config: Config, default: int) -> None:
    """Raise where the projector takes the features of several layers."""
    value = config.data.get("vision_feature_layer", default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise config.invalid(
            "vision_feature_layer", "a whole number: features of several layers are not supported"
        )


def _assumed_patches(config: Config, patches: int, image: str) -> Fact:
    """Patches of an image for a tower that takes any size; `image` says which one is assumed."""
    source = f"assumed: {image}; {config.model_type} takes images of any size"
    return Fact(value=patches, origin="default", source=source)


def _encoder(config: Config, projector: str, **facts: Fact) -> Tower:
    """A tower of a model type that takes several: CLIP, SigLIP or Pixtral, with the projector's facts."""
    match config.model_type:
        case "clip_vision_model":
            kind, own = "clip", _facts(config, _CLIP)
        case "siglip_vision_model":
            pooled = config.flag("vision_use_head", default=True)
            kind, own = "siglip", _facts(config, _ENCODER) | {"pooling_head": pooled}
        case "pixtral":
            patches = _assumed_patches(config, 4096, "64 x 64 patches")
            kind, own = "pixtral", _facts(config, _PIXTRAL) | {"patches_per_image": patches}
        case _:
            raise InputError(
                f"{config.name}: field {config.path}model_type: expected clip_vision_model, "
                f"siglip_vision_model or pixtral, found {config.model_type!r:.60}"
            )
    return Tower(kind=kind, projector=projector, facts=own | facts)


def llava(config: Config, vision: Config) -> Tower:
    """CLIP, SigLIP or Pixtral, and a projector of two matrices; every patch is a token."""
    _require_one_layer(config, -2)
    bias = config.flag("multimodal_projector_bias", default=True)
    return _encoder(vision, "llava", projector_bias=bias)


def mistral3(config: Config, vision: Config) -> Tower:
    """Pixtral; neighbouring patches are merged before the projector."""
    _require_one_layer(config, -1)
    return _encoder(
        vision,
        "mistral3",
        projector_bias=config.flag("multimodal_projector_bias", default=False),
        merge=config.integer("spatial_merge_size", default=2),
    )


def gemma3(config: Config, vision: Config) -> Tower:
    """SigLIP; patches are averaged to a fixed number of tokens per image."""
    tokens = config.integer("mm_tokens_per_image", default=256)
    return _encoder(vision, "gemma3", tokens_per_image=tokens)


def gemma4(config: Config, vision: Config) -> Tower:
    """A tower with gated FFN and QK norm; square groups of patches are averaged to tokens."""
    if config.has("audio_config"):
        raise config.uncovered("audio_config", "null: an audio tower is not supported")
    _require(vision, "attention_bias", expected=False)
    section = config if config.has("vision_soft_tokens_per_image") else vision
    tokens = section.integer("vision_soft_tokens_per_image", "default_output_length", default=280)
    return Tower(
        kind="gemma4",
        projector="gemma4",
        facts=_facts(vision, _GEMMA4)
        | {
            "channels": vision.implied(3, "red, green and blue"),
            "position_axes": vision.implied(2, "a table for each axis of the image"),
            "tokens_per_image": tokens,
            "clipped": vision.flag("use_clipped_linears", default=False),
            "standardised": vision.flag("standardize", default=False),
        },
    )


def llama4(config: Config, vision: Config) -> Tower:
    """A tower on tiles of an image; pixel shuffle joins neighbouring patches."""
    _require(vision, "multi_modal_projector_bias", expected=False)
    facts = _facts(vision, _LLAMA4)
    adapter_input = facts.pop("adapter_input_size")
    facts["merge"] = _pixel_shuffle(vision)
    if adapter_input.value != facts["adapter_size"].value:
        raise vision.invalid("projector_output_dim", f"{adapter_input.value}, as projector_input_dim")
    return Tower(kind="llama4", projector="llama4", facts=facts)


def _pixel_shuffle(vision: Config) -> Fact:
    """Patches along a side that pixel shuffle joins."""
    ratio = vision.data.get("pixel_shuffle_ratio", 0.5)
    if (
        isinstance(ratio, bool)
        or not isinstance(ratio, int | float)
        or not 0.001 <= ratio <= 1
        or 1 / ratio != round(1 / ratio)
    ):
        raise vision.invalid("pixel_shuffle_ratio", "1 ÷ a whole number")
    return vision.derived(round(1 / ratio), f"1 ÷ {vision.path}pixel_shuffle_ratio")


def qwen2_vl(config: Config, vision: Config) -> Tower:
    """A tower for images of any size and for video, two frames at a time; a merger joins 2 x 2 patches."""
    facts = _facts(vision, _QWEN2_VL)
    hidden, ratio = facts["hidden_size"], vision.integer("mlp_ratio", default=4)
    facts["ffn_size"] = vision.derived(hidden.value * ratio.value, f"{hidden.source} × {ratio.source}")
    facts["patches_per_image"] = _assumed_patches(vision, 1024, "32 x 32 patches")
    return Tower(kind="qwen2_vl", projector="qwen2_vl", facts=facts)


def qwen2_5_vl(config: Config, vision: Config) -> Tower:
    """As qwen2_vl with a gated FFN, RMSNorm, and attention inside windows in most layers."""
    facts = _facts(vision, _QWEN25_VL)
    facts["full_layers"] = _layers_without_window(vision, facts["layers"].value)
    facts["patches_per_image"] = _assumed_patches(vision, 1024, "32 x 32 patches")
    return Tower(kind="qwen2_5_vl", projector="qwen2_5_vl", facts=facts)


def _layers_without_window(vision: Config, layers: int) -> Fact:
    """How many layers of the tower attend to the whole image."""
    stated = vision.integers("fullatt_block_indexes")
    indexes = [7, 15, 23, 31] if stated is None else stated
    if any(not 0 <= index < layers for index in indexes) or len(set(indexes)) < len(indexes):
        raise vision.invalid("fullatt_block_indexes", f"different layers from 0 to {layers - 1}")
    field = f"{vision.path}fullatt_block_indexes"
    if stated is not None:
        return vision.derived(len(indexes), f"length of {field}")
    source = f"{vision.model_type} class default of {field}"
    return Fact(value=len(indexes), origin="default", source=source)


def qwen3_vl(config: Config, vision: Config) -> Tower:
    """A tower with a table of positions; mergers at some layers feed layers of the decoder (deepstack)."""
    indexes = vision.integers("deepstack_visual_indexes")
    field = f"{vision.path}deepstack_visual_indexes"
    if indexes is None:
        return _qwen3_vl(vision, vision.implied(3, f"layers 8, 16 and 24 where {field} is not given"))
    return _qwen3_vl(vision, vision.derived(len(indexes), f"length of {field}"))


def qwen3_5(config: Config, vision: Config) -> Tower:
    """As qwen3_vl without deepstack."""
    return _qwen3_vl(vision, vision.implied(0, "features of the last layer only"))


def _qwen3_vl(vision: Config, deepstack: Fact) -> Tower:
    facts = _facts(vision, _QWEN3_VL)
    facts["deepstack"] = deepstack
    facts["patches_per_image"] = _assumed_patches(
        vision, facts["positions"].value, "as many patches as positions"
    )
    return Tower(kind="qwen3_vl", projector="qwen3_vl", facts=facts)


def glm4v(config: Config, vision: Config) -> Tower:
    """A tower whose layers have FFNs of the output's width, and a strided convolution before the merger."""
    bias = vision.flag("attention_bias", default=False)
    return Tower(kind="glm4v", projector="glm4v", facts=_facts(vision, _GLM4V) | {"attention_bias": bias})


def kimi_k25(config: Config, vision: Config) -> Tower:
    """MoonViT for images of any size, and a merger of 2 x 2 patches."""
    facts = _facts(vision, _KIMI)
    kernel = vision.integers("merge_kernel_size", count=2) or [2, 2]
    if kernel[0] != kernel[1] or kernel[0] < 1:
        raise vision.invalid("merge_kernel_size", "two equal numbers of at least 1")
    patches = facts["position_rows"].value * facts["position_columns"].value
    field = f"{vision.path}merge_kernel_size"
    merge = (
        Fact(value=kernel[0], origin="config", source=field)
        if vision.has("merge_kernel_size")
        else vision.implied(kernel[0], f"{field} absent")
    )
    norm = config if "projection_hidden_size" in config.data else vision
    return Tower(
        kind="kimi_k25",
        projector="kimi_k25",
        facts=facts
        | {
            "channels": vision.implied(3, "red, green and blue"),
            "merge": merge,
            "merger_norm_size": norm.integer("projection_hidden_size", "mm_hidden_size", default=1152),
            "patches_per_image": _assumed_patches(vision, patches, "as many patches as positions"),
        },
    )
