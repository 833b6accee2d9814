"""Vision-language models: a decoder in text_config, a vision tower in vision_config, and what lies between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from mantile.library.architecture import Architecture, Fact, Tower
from mantile.library.errors import InputError
from mantile.library.huggingface.reading import MAX_LAYERS, Config, Facts

Fields = dict[str, tuple[tuple[str, ...], int]]
"""Our name of a figure to the fields that may state it and the class default."""

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
    """The figures of a tower; class defaults are legitimate, as its config may be terse."""
    return {
        name: config.whole(*spellings, default=default, most=MAX_LAYERS if name == "layers" else 10_000_000)
        for name, (spellings, default) in fields.items()
    }


def _refuse(config: Config, field: str, expected: bool) -> None:
    """An error where a switch of structure is not as the class has it by default."""
    if bool(config.flag(field, default=expected).value) != expected:
        raise config.wrong(field, f"{str(expected).lower()}: nothing else is supported")


def _one_layer(config: Config, default: int) -> None:
    """An error where the projector takes the features of several layers."""
    value = config.data.get("vision_feature_layer", default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise config.wrong(
            "vision_feature_layer", "a whole number: features of several layers are not supported"
        )


def _assumed(config: Config, patches: int, image: str) -> Fact:
    """Patches of an image where the tower takes any size."""
    return Fact(
        value=patches,
        origin="default",
        source=f"assumed: {image}; {config.model_type} takes images of any size",
    )


def _encoder(config: Config) -> Tower:
    """The tower of a model that takes several: CLIP, SigLIP or Pixtral; the projector is added by the outer type."""
    match config.model_type:
        case "clip_vision_model":
            return Tower(kind="clip", projector="", facts=_facts(config, _CLIP))
        case "siglip_vision_model":
            pooled = config.flag("vision_use_head", default=True)
            return Tower(
                kind="siglip", projector="", facts=_facts(config, _ENCODER) | {"pooling_head": pooled}
            )
        case "pixtral":
            any_size = {"patches_per_image": _assumed(config, 4096, "64 x 64 patches")}
            return Tower(kind="pixtral", projector="", facts=_facts(config, _PIXTRAL) | any_size)
        case _:
            raise InputError(
                f"{config.name}: field {config.path}model_type: expected clip_vision_model, siglip_vision_model or pixtral, "
                f"found {config.model_type!r:.60}"
            )


def _with_projector(tower: Tower, projector: str, **facts: Fact) -> Tower:
    return Tower(kind=tower.kind, projector=projector, facts=tower.facts | facts)


def llava(config: Config, vision: Config) -> Tower:
    """A tower of its own training and a projector of two matrices; every patch is a token."""
    _one_layer(config, -2)
    return _with_projector(
        _encoder(vision), "llava", projector_bias=config.flag("multimodal_projector_bias", default=True)
    )


def mistral3(config: Config, vision: Config) -> Tower:
    """Pixtral; neighbouring patches are merged before the projector."""
    _one_layer(config, -1)
    return _with_projector(
        _encoder(vision),
        "mistral3",
        projector_bias=config.flag("multimodal_projector_bias", default=False),
        merge=config.whole("spatial_merge_size", default=2),
    )


def gemma3(config: Config, vision: Config) -> Tower:
    """SigLIP; patches are averaged to a fixed number of tokens per image."""
    return _with_projector(
        _encoder(vision), "gemma3", tokens_per_image=config.whole("mm_tokens_per_image", default=256)
    )


def gemma4(config: Config, vision: Config) -> Tower:
    """A tower with gated FFN and QK norm; square groups of patches are averaged to tokens."""
    if config.has("audio_config"):
        raise config.wrong("audio_config", "null: an audio tower is not supported")
    _refuse(vision, "attention_bias", expected=False)
    states = config if config.has("vision_soft_tokens_per_image") else vision
    tokens = states.whole("vision_soft_tokens_per_image", "default_output_length", default=280)
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
    _refuse(vision, "multi_modal_projector_bias", expected=False)
    facts = _facts(vision, _LLAMA4)
    ratio = vision.data.get("pixel_shuffle_ratio", 0.5)
    if (
        isinstance(ratio, bool)
        or not isinstance(ratio, int | float)
        or not 0.001 <= ratio <= 1
        or 1 / ratio != round(1 / ratio)
    ):
        raise vision.wrong("pixel_shuffle_ratio", "1 ÷ a whole number")
    if facts["adapter_input_size"].value != facts["adapter_size"].value:
        raise vision.wrong(
            "projector_output_dim", f"projector_input_dim, {facts['adapter_input_size'].value}"
        )
    merge = vision.derived(round(1 / ratio), f"1 ÷ {vision.path}pixel_shuffle_ratio")
    del facts["adapter_input_size"]
    return Tower(kind="llama4", projector="llama4", facts=facts | {"merge": merge})


def qwen2_vl(config: Config, vision: Config) -> Tower:
    """A tower for images of any size and for video, two frames at a time; a merger joins 2 x 2 patches."""
    facts = _facts(vision, _QWEN2_VL)
    ratio = vision.whole("mlp_ratio", default=4)
    return Tower(
        kind="qwen2_vl",
        projector="qwen2_vl",
        facts=facts
        | {
            "ffn_size": vision.derived(
                facts["hidden_size"].value * ratio.value, f"{facts['hidden_size'].source} × {ratio.source}"
            ),
            "patches_per_image": _assumed(vision, 1024, "32 x 32 patches"),
        },
    )


def qwen2_5_vl(config: Config, vision: Config) -> Tower:
    """The same with a gated FFN, RMSNorm, and attention inside windows in most layers."""
    facts = _facts(vision, _QWEN25_VL)
    full = vision.numbers("fullatt_block_indexes")
    whole = [7, 15, 23, 31] if full is None else full
    layers = facts["layers"].value
    if any(not 0 <= index < layers for index in whole) or len(set(whole)) < len(whole):
        raise vision.wrong("fullatt_block_indexes", f"different layers from 0 to {layers - 1}")
    source = f"{vision.path}fullatt_block_indexes"
    return Tower(
        kind="qwen2_5_vl",
        projector="qwen2_5_vl",
        facts=facts
        | {
            "full_layers": Fact(
                value=len(whole),
                origin="default" if full is None else "derived",
                source=f"{vision.model_type} class default of {source}"
                if full is None
                else f"length of {source}",
            ),
            "patches_per_image": _assumed(vision, 1024, "32 x 32 patches"),
        },
    )


def qwen3_vl(config: Config, vision: Config) -> Tower:
    """A tower with a table of positions; mergers at some layers hand features to the first layers of the decoder."""
    facts = _facts(vision, _QWEN3_VL)
    indexes = vision.numbers("deepstack_visual_indexes")
    source = f"{vision.path}deepstack_visual_indexes"
    count = (
        vision.implied(3, f"layers 8, 16 and 24 where {source} is not given")
        if indexes is None
        else vision.derived(len(indexes), f"length of {source}")
    )
    return Tower(
        kind="qwen3_vl",
        projector="qwen3_vl",
        facts=facts
        | {
            "deepstack": count,
            "patches_per_image": _assumed(vision, facts["positions"].value, "as many patches as positions"),
        },
    )


def qwen3_5(config: Config, vision: Config) -> Tower:
    """The same without deepstack."""
    facts = _facts(vision, _QWEN3_VL)
    return Tower(
        kind="qwen3_vl",
        projector="qwen3_vl",
        facts=facts
        | {
            "deepstack": vision.implied(0, "features of the last layer only"),
            "patches_per_image": _assumed(vision, facts["positions"].value, "as many patches as positions"),
        },
    )


def glm4v(config: Config, vision: Config) -> Tower:
    """A tower whose layers have FFNs of the output's width, and a strided convolution before the merger."""
    facts = _facts(vision, _GLM4V)
    return Tower(
        kind="glm4v",
        projector="glm4v",
        facts=facts | {"attention_bias": vision.flag("attention_bias", default=False)},
    )


def kimi_k25(config: Config, vision: Config) -> Tower:
    """MoonViT for images of any size, and a merger of 2 x 2 patches."""
    facts = _facts(vision, _KIMI)
    kernel = vision.numbers("merge_kernel_size", count=2) or [2, 2]
    if kernel[0] != kernel[1] or kernel[0] < 1:
        raise vision.wrong("merge_kernel_size", "two equal numbers of at least 1")
    patches = facts["position_rows"].value * facts["position_columns"].value
    projected = config if "projection_hidden_size" in config.data else vision
    return Tower(
        kind="kimi_k25",
        projector="kimi_k25",
        facts=facts
        | {
            "channels": vision.implied(3, "red, green and blue"),
            "merge": Fact(value=kernel[0], origin="config", source=f"{vision.path}merge_kernel_size")
            if vision.has("merge_kernel_size")
            else vision.implied(kernel[0], f"{vision.path}merge_kernel_size absent"),
            "merger_norm_size": projected.whole("projection_hidden_size", "mm_hidden_size", default=1152),
            "patches_per_image": _assumed(vision, patches, "as many patches as positions"),
        },
    )


@dataclass(frozen=True)
class Nesting:
    """A vision-language model type.

    Args:
        text: model types that text_config may have, with the class defaults it may leave out; the first is meant where it
            says nothing.
        tower: reads the tower from the whole config and its vision_config.
        vision_type: model type of a vision_config that says nothing.
        flat: fields of the decoder may stand at top level.
        default_tower: a config without vision_config has a tower in class defaults.
    """

    text: Mapping[str, Mapping[str, int]]
    tower: Callable[[Config, Config], Tower]
    vision_type: str
    flat: bool = False
    default_tower: bool = False


def _sizes(hidden: int, layers: int, heads: int, ffn: int, vocabulary: int, positions: int) -> dict[str, int]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
    }


_GEMMA3_TEXT = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262_208,
    "max_position_embeddings": 131_072,
}
_GEMMA4_TEXT = {
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "vocab_size": 262_144,
    "max_position_embeddings": 131_072,
}
_LLAMA4_TEXT = {
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16_384,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 202_048,
    "num_local_experts": 16,
    "max_position_embeddings": 131_072,
}


_LLAMA = _sizes(4096, 32, 32, 11_008, 32_000, 2048)
_MISTRAL = _sizes(4096, 32, 32, 14_336, 32_000, 131_072)
_MINISTRAL3 = _sizes(4096, 34, 32, 14_336, 131_072, 262_144)
_QWEN2 = _sizes(4096, 32, 32, 22_016, 151_936, 32_768)
_QWEN2_VL_TEXT = _sizes(8192, 80, 64, 29_568, 152_064, 32_768) | {
    "num_key_value_heads": 8,
    "max_window_layers": 80,
}
_QWEN3_VL_TEXT = _sizes(4096, 32, 32, 22_016, 151_936, 128_000)
_QWEN3_VL_MOE_TEXT = _sizes(2048, 24, 16, 5632, 151_936, 128_000) | {
    "num_key_value_heads": 16,
    "num_experts": 60,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1408,
}
_QWEN35_TEXT = _sizes(4096, 32, 16, 12_288, 248_320, 32_768)
_QWEN35_MOE_TEXT = {
    "hidden_size": 2048,
    "num_hidden_layers": 40,
    "num_attention_heads": 16,
    "vocab_size": 248_320,
    "num_experts": 256,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
_GLM4V_MOE_TEXT = _sizes(4096, 46, 96, 10_944, 151_424, 65_536) | {
    "n_routed_experts": 128,
    "moe_intermediate_size": 1408,
}
_DEEPSEEK_V3 = _sizes(7168, 61, 128, 18_432, 129_280, 4096) | {
    "n_routed_experts": 256,
    "moe_intermediate_size": 2048,
}
NESTINGS: dict[str, Nesting] = {
    "llava": Nesting(
        {"llama": _LLAMA, "mistral": _MISTRAL, "qwen2": _QWEN2, "qwen3": _QWEN2}, llava, "clip_vision_model"
    ),
    "mistral3": Nesting({"mistral": _MISTRAL, "ministral3": _MINISTRAL3}, mistral3, "pixtral"),
    "gemma3": Nesting({"gemma3_text": _GEMMA3_TEXT}, gemma3, "siglip_vision_model"),
    "gemma4": Nesting({"gemma4_text": _GEMMA4_TEXT}, gemma4, "gemma4_vision"),
    "llama4": Nesting({"llama4_text": _LLAMA4_TEXT}, llama4, "llama4_vision_model", default_tower=True),
    "qwen2_vl": Nesting({"qwen2_vl_text": _QWEN2_VL_TEXT}, qwen2_vl, "qwen2_vl_vision", flat=True),
    "qwen2_5_vl": Nesting({"qwen2_5_vl_text": _QWEN2_VL_TEXT}, qwen2_5_vl, "qwen2_5_vl_vision", flat=True),
    "qwen3_vl": Nesting({"qwen3_vl_text": _QWEN3_VL_TEXT}, qwen3_vl, "qwen3_vl_vision"),
    "qwen3_vl_moe": Nesting({"qwen3_vl_moe_text": _QWEN3_VL_MOE_TEXT}, qwen3_vl, "qwen3_vl_moe_vision"),
    "qwen3_5": Nesting({"qwen3_5_text": _QWEN35_TEXT}, qwen3_5, "qwen3_5_vision"),
    "qwen3_5_moe": Nesting({"qwen3_5_moe_text": _QWEN35_MOE_TEXT}, qwen3_5, "qwen3_5_moe_vision"),
    "glm4v_moe": Nesting({"glm4v_moe_text": _GLM4V_MOE_TEXT}, glm4v, "glm4v_moe_vision"),
    "kimi_k25": Nesting({"deepseek_v3": _DEEPSEEK_V3, "kimi_k2": _DEEPSEEK_V3}, kimi_k25, "kimi_k25_vision"),
}


def nested(config: Config, decoder: Callable[[Config], Architecture]) -> Architecture:
    """A vision-language config: its decoder, with the tower beside it. What the top level says of tied embeddings holds.

    Args:
        decoder: reads a decoder by the model type of its part.
    """
    nesting = NESTINGS[config.model_type]
    first = next(iter(nesting.text))
    if nesting.flat and not isinstance(config.data.get("text_config"), dict):
        text = replace(config, model_type=first, outer=config.model_type)
    else:
        text = config.part("text_config", first)
        if text.model_type == config.model_type:  # as some files say
            text = replace(text, model_type=first)
        if text.model_type not in nesting.text:
            raise InputError(
                f"{config.name}: field text_config.model_type: expected one of {', '.join(nesting.text)} inside "
                f"{config.model_type}, found {text.model_type!r:.60}"
            )
        text = replace(text, defaults=nesting.text[text.model_type])
    if nesting.default_tower and config.data.get("vision_config") is None:
        vision = replace(
            config, model_type=nesting.vision_type, data={}, path="vision_config.", outer=config.model_type
        )
    else:
        vision = config.part("vision_config", nesting.vision_type)
    found = decoder(text)
    facts = dict(found.facts)
    if config.has("tie_word_embeddings"):
        facts["tied_embeddings"] = config.flag("tie_word_embeddings", default=False)
    return found.model_copy(update={"facts": facts, "vision": nesting.tower(config, vision)})
