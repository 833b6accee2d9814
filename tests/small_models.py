"""A small config.json of every family, for tests.

None is of a published model; no two dimensions have the same size.
"""

from __future__ import annotations

from typing import Any

Fields = dict[str, Any]

# Five layers, three KV heads, an odd vocabulary, and as few defaults of a class as can be.
BASE: Fields = {
    "hidden_size": 48,
    "num_hidden_layers": 5,
    "num_attention_heads": 6,
    "num_key_value_heads": 3,
    "intermediate_size": 88,
    "vocab_size": 101,
    "max_position_embeddings": 500,
    "pad_token_id": None,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
EXPERTS: Fields = {"num_experts_per_tok": 2, "moe_intermediate_size": 26}
LATENT: Fields = {
    "kv_lora_rank": 20,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 14,
    "num_key_value_heads": 6,
    "q_lora_rank": 18,
}
DEEPSEEK: Fields = (
    LATENT
    | EXPERTS
    | {
        "n_routed_experts": 8,
        "n_shared_experts": 3,
        "first_k_dense_replace": 2,
        "n_group": 2,
        "topk_group": 1,
    }
)
INDEXER: Fields = {"index_n_heads": 4, "index_head_dim": 12, "index_topk": 9}
DELTA: Fields = {
    "head_dim": 16,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 12,
    "linear_value_head_dim": 10,
    "linear_conv_kernel_dim": 3,
    "full_attention_interval": 3,
    "mtp_num_hidden_layers": 1,
}
CLIP: Fields = {
    "model_type": "clip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 52,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_channels": 3,
    "patch_size": 7,
    "image_size": 49,
}
QWEN_TOWER: Fields = {
    "depth": 4,
    "hidden_size": 32,
    "intermediate_size": 52,
    "num_heads": 4,
    "in_channels": 3,
    "patch_size": 7,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "out_hidden_size": 48,
    "num_position_embeddings": 49,
}


def _of(model_type: str, *parts: Fields, without: tuple[str, ...] = (), **more: Any) -> Fields:
    """A config: the base, what several families share, what this one has of its own."""
    config: Fields = {"model_type": model_type}
    for part in (BASE, *parts, more):
        config |= part
    return {name: value for name, value in config.items() if name not in without}


def _around(model_type: str, text: Fields, vision: Fields, **more: Any) -> Fields:
    """A vision-language config."""
    return {
        "model_type": model_type,
        "text_config": text,
        "vision_config": vision,
        "tie_word_embeddings": False,
    } | more


CONFIGS: dict[str, Fields] = {
    # dense
    "llama": _of("llama", attention_bias=True, mlp_bias=True, head_dim=10),
    "llama, tied": _of("llama", tie_word_embeddings=True),
    "mistral": _of("mistral", head_dim=16, sliding_window=7),
    "ministral3": _of("ministral3", head_dim=16),
    "ministral": _of(
        "ministral",
        head_dim=16,
        sliding_window=7,
        layer_types=["sliding_attention"] * 2 + ["full_attention"] + ["sliding_attention"] * 2,
    ),
    "qwen2": _of("qwen2", use_sliding_window=False),
    "qwen3": _of("qwen3", head_dim=16, attention_bias=True),
    "starcoder2": _of("starcoder2", use_bias=True, sliding_window=7),
    "starcoder2, no bias": _of("starcoder2", use_bias=False, sliding_window=None),
    "phi3": _of("phi3", sliding_window=7),
    "cohere": _of("cohere", attention_bias=True),
    "olmo2": _of("olmo2"),
    "glm": _of("glm", head_dim=16, attention_bias=True),
    "glm4": _of("glm4", head_dim=16, attention_bias=True),
    "granite": _of("granite", attention_bias=True, mlp_bias=True),
    "nemotron": _of("nemotron", head_dim=16, attention_bias=True),
    "stablelm": _of("stablelm", use_qkv_bias=True, qk_layernorm=False, use_parallel_residual=False),
    "phi": _of("phi", qk_layernorm=False, partial_rotary_factor=0.5),
    # the first years
    "gpt2": {
        "model_type": "gpt2",
        "n_embd": 48,
        "n_layer": 5,
        "n_head": 6,
        "n_inner": 88,
        "n_positions": 50,
        "vocab_size": 101,
    },
    "gptj": {
        "model_type": "gptj",
        "n_embd": 48,
        "n_layer": 5,
        "n_head": 6,
        "n_inner": 88,
        "n_positions": 50,
        "vocab_size": 101,
        "rotary_dim": 4,
        "tie_word_embeddings": False,
    },
    "gpt_bigcode": {
        "model_type": "gpt_bigcode",
        "n_embd": 48,
        "n_layer": 5,
        "n_head": 6,
        "n_inner": 88,
        "n_positions": 50,
        "vocab_size": 101,
        "multi_query": True,
    },
    "gpt_bigcode, many heads": {
        "model_type": "gpt_bigcode",
        "n_embd": 48,
        "n_layer": 5,
        "n_head": 6,
        "n_positions": 50,
        "vocab_size": 101,
        "multi_query": False,
    },
    "gpt_neox": _of("gpt_neox", without=("num_key_value_heads",), attention_bias=True),
    "falcon": _of(
        "falcon",
        without=("num_key_value_heads", "intermediate_size"),
        multi_query=True,
        bias=False,
        parallel_attn=True,
        new_decoder_architecture=False,
        alibi=False,
    ),
    "falcon, grouped": _of(
        "falcon",
        without=("num_key_value_heads", "intermediate_size"),
        new_decoder_architecture=True,
        num_kv_heads=3,
        bias=False,
        alibi=False,
        ffn_hidden_size=88,
    ),
    "falcon, in sequence": _of(
        "falcon",
        without=("num_key_value_heads", "intermediate_size"),
        multi_query=False,
        bias=True,
        parallel_attn=False,
        new_decoder_architecture=False,
        alibi=True,
    ),
    # windows
    "gemma": _of("gemma", head_dim=16, tie_word_embeddings=True),
    "gemma2": _of("gemma2", head_dim=16, sliding_window=7, tie_word_embeddings=True),
    "gemma3_text": _of(
        "gemma3_text", head_dim=16, sliding_window=7, tie_word_embeddings=True, sliding_window_pattern=3
    ),
    "gemma4_text": _of(
        "gemma4_text",
        head_dim=16,
        global_head_dim=20,
        num_global_key_value_heads=2,
        attention_k_eq_v=True,
        sliding_window=7,
        layer_types=[
            "sliding_attention",
            "sliding_attention",
            "full_attention",
            "sliding_attention",
            "full_attention",
        ],
        hidden_size_per_layer_input=0,
        num_kv_shared_layers=0,
        enable_moe_block=True,
        num_experts=8,
        top_k_experts=2,
        moe_intermediate_size=26,
        tie_word_embeddings=True,
        vocab_size_per_layer_input=101,
    ),
    "cohere2": _of("cohere2", sliding_window=7, layer_types=["sliding_attention"] * 4 + ["full_attention"]),
    "olmo3": _of("olmo3", sliding_window=7, layer_types=["sliding_attention"] * 4 + ["full_attention"]),
    "gpt_oss": _of(
        "gpt_oss",
        head_dim=16,
        sliding_window=7,
        num_local_experts=8,
        num_experts_per_tok=2,
        layer_types=["sliding_attention", "full_attention"] * 2 + ["full_attention"],
    ),
    "mimo_v2_flash": _of(
        "mimo_v2_flash",
        EXPERTS,
        head_dim=16,
        v_head_dim=12,
        swa_num_attention_heads=6,
        swa_num_key_value_heads=6,
        swa_head_dim=16,
        swa_v_head_dim=12,
        sliding_window=7,
        hybrid_layer_pattern=[0, 1, 1, 0, 1],
        moe_layer_freq=[0, 1, 1, 0, 1],
        layer_types=[
            "full_attention",
            "sliding_attention",
            "sliding_attention",
            "full_attention",
            "sliding_attention",
        ],
        mlp_layer_types=["dense", "sparse", "sparse", "dense", "sparse"],
        n_routed_experts=8,
        add_swa_attention_sink_bias=True,
        add_full_attention_sink_bias=False,
        attention_bias=False,
        n_shared_experts=None,
        n_group=1,
        topk_group=1,
    ),
    "step3p5": _of(
        "step3p5",
        head_dim=16,
        num_attention_groups=3,
        attention_other_setting={"num_attention_heads": 9, "num_attention_groups": 3, "head_dim": 16},
        sliding_window=7,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"] * 2,
        moe_layers_enum="1,2,4",
        moe_num_experts=8,
        moe_top_k=2,
        moe_intermediate_size=26,
        share_expert_dim=28,
        num_nextn_predict_layers=1,
    ),
    "llama4_text": _of(
        "llama4_text",
        head_dim=16,
        attention_chunk_size=9,
        num_local_experts=8,
        num_experts_per_tok=1,
        intermediate_size_mlp=90,
        interleave_moe_layer_step=2,
        no_rope_layers=[1, 1, 1, 0, 1],
    ),
    # experts
    "mixtral": _of("mixtral", num_local_experts=8, num_experts_per_tok=2, head_dim=16, sliding_window=None),
    "phimoe": _of(
        "phimoe",
        num_local_experts=8,
        num_experts_per_tok=2,
        attention_bias=True,
        lm_head_bias=True,
        sliding_window=None,
    ),
    "qwen2_moe": _of(
        "qwen2_moe",
        EXPERTS,
        num_experts=8,
        shared_expert_intermediate_size=28,
        decoder_sparse_step=1,
        mlp_only_layers=[0, 3],
    ),
    "qwen3_moe": _of(
        "qwen3_moe", EXPERTS, num_experts=8, head_dim=16, decoder_sparse_step=2, mlp_only_layers=[]
    ),
    "glm4_moe": _of(
        "glm4_moe",
        EXPERTS,
        n_routed_experts=8,
        n_shared_experts=1,
        first_k_dense_replace=2,
        head_dim=16,
        attention_bias=True,
        use_qk_norm=True,
        n_group=1,
        topk_group=1,
    ),
    "minimax_m2": _of(
        "minimax_m2", num_local_experts=8, num_experts_per_tok=2, head_dim=16, use_qk_norm=True
    ),
    # latent attention
    "deepseek_v2": _of("deepseek_v2", DEEPSEEK, topk_method="greedy"),
    "deepseek_v2, direct": _of("deepseek_v2", DEEPSEEK, q_lora_rank=None, n_shared_experts=1),
    "deepseek_v3": _of("deepseek_v3", DEEPSEEK, num_nextn_predict_layers=1),
    "kimi_k2": _of("kimi_k2", DEEPSEEK, q_lora_rank=None, attention_bias=True),
    "deepseek_v32": _of("deepseek_v32", DEEPSEEK, INDEXER),
    "glm_moe_dsa": _of(
        "glm_moe_dsa", DEEPSEEK, INDEXER, indexer_types=["full", "full", "shared", "shared", "full"]
    ),
    "glm4_moe_lite": _of("glm4_moe_lite", DEEPSEEK, first_k_dense_replace=1),
    "deepseek_v4": _of(
        "deepseek_v4",
        EXPERTS,
        INDEXER,
        without=("intermediate_size",),
        num_key_value_heads=1,
        head_dim=16,
        q_lora_rank=18,
        o_groups=3,
        o_lora_rank=14,
        qk_rope_head_dim=6,
        n_routed_experts=8,
        n_shared_experts=1,
        num_hash_layers=2,
        hc_mult=3,
        sliding_window=7,
        layer_types=[
            "sliding_attention",
            "heavily_compressed_attention",
            "compressed_sparse_attention",
            "heavily_compressed_attention",
            "compressed_sparse_attention",
        ],
        compress_rates={"compressed_sparse_attention": 2, "heavily_compressed_attention": 4},
    ),
    # recurrent mixers
    "kimi_linear": _of(
        "kimi_linear",
        DEEPSEEK,
        without=("n_routed_experts", "n_shared_experts", "num_experts_per_tok", "q_lora_rank", "n_group"),
        q_lora_rank=None,
        num_experts=8,
        num_shared_experts=1,
        num_experts_per_token=2,
        num_expert_group=1,
        linear_attn_config={
            "kda_layers": [1, 2, 4],
            "full_attn_layers": [3, 5],
            "num_heads": 4,
            "head_dim": 12,
            "short_conv_kernel_size": 3,
        },
    ),
    "qwen3_next": _of(
        "qwen3_next",
        DELTA,
        EXPERTS,
        num_experts=8,
        shared_expert_intermediate_size=28,
        decoder_sparse_step=1,
        mlp_only_layers=[1],
    ),
    "qwen3_5_text": _of("qwen3_5_text", DELTA),
    "qwen3_5_moe_text": _of(
        "qwen3_5_moe_text",
        DELTA,
        EXPERTS,
        without=("intermediate_size",),
        num_experts=8,
        shared_expert_intermediate_size=28,
    ),
    "nemotron_h": _of(
        "nemotron_h",
        EXPERTS,
        hybrid_override_pattern="M-*EM",
        head_dim=16,
        mamba_num_heads=6,
        mamba_head_dim=10,
        n_groups=2,
        ssm_state_size=14,
        conv_kernel=3,
        chunk_size=8,
        use_conv_bias=True,
        n_routed_experts=8,
        moe_shared_expert_intermediate_size=28,
        n_shared_experts=1,
        mlp_hidden_act="relu2",
        n_group=1,
        topk_group=1,
    ),
    "mamba2": _of(
        "mamba2",
        without=(
            "num_attention_heads",
            "num_key_value_heads",
            "intermediate_size",
            "max_position_embeddings",
        ),
        num_heads=8,
        head_dim=12,
        expand=2,
        n_groups=2,
        state_size=14,
        conv_kernel=3,
        chunk_size=8,
        use_conv_bias=True,
    ),
    "jamba": _of(
        "jamba",
        attn_layer_period=4,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=8,
        num_experts_per_tok=2,
        mamba_d_state=14,
        mamba_d_conv=3,
        mamba_expand=2,
        mamba_dt_rank=7,
    ),
}

_SCALING: Fields = {"rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1], "rope_type": "default"}}
CONFIGS |= {
    # with a vision tower
    "llava": _around("llava", CONFIGS["llama"], CLIP, vision_feature_layer=-2, image_token_index=99),
    "mistral3": _around(
        "mistral3",
        CONFIGS["mistral"],
        {
            "model_type": "pixtral",
            "hidden_size": 32,
            "intermediate_size": 52,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_channels": 3,
            "patch_size": 7,
            "image_size": 49,
            "head_dim": 8,
        },
        spatial_merge_size=2,
        vision_feature_layer=-1,
        image_token_index=99,
    ),
    "gemma3": _around(
        "gemma3",
        CONFIGS["gemma3_text"],
        CLIP | {"model_type": "siglip_vision_model", "vision_use_head": False},
        mm_tokens_per_image=49,
        image_token_index=99,
        tie_word_embeddings=True,
    ),
    "gemma4": _around(
        "gemma4",
        CONFIGS["gemma4_text"],
        {
            "model_type": "gemma4_vision",
            "hidden_size": 32,
            "intermediate_size": 52,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "patch_size": 7,
            "position_embedding_size": 50,
            "pooling_kernel_size": 3,
            "use_clipped_linears": False,
        },
        image_token_id=99,
        audio_config=None,
        tie_word_embeddings=True,
    ),
    "llama4": _around(
        "llama4",
        CONFIGS["llama4_text"],
        {
            "model_type": "llama4_vision_model",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_channels": 3,
            "patch_size": 7,
            "image_size": 56,
            "projector_input_dim": 36,
            "projector_output_dim": 36,
            "vision_output_dim": 36,
            "pixel_shuffle_ratio": 0.5,
        },
        image_token_index=99,
    ),
    "qwen2_vl": _around(
        "qwen2_vl",
        _of("qwen2_vl_text", _SCALING),
        {
            "depth": 4,
            "embed_dim": 32,
            "hidden_size": 48,
            "num_heads": 4,
            "mlp_ratio": 3,
            "in_channels": 3,
            "patch_size": 7,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
    ),
    "qwen2_5_vl": _around(
        "qwen2_5_vl",
        _of("qwen2_5_vl_text", _SCALING),
        QWEN_TOWER | {"window_size": 28, "fullatt_block_indexes": [1, 3]},
    ),
    "qwen3_vl": _around(
        "qwen3_vl",
        _of("qwen3_vl_text", _SCALING, head_dim=16),
        QWEN_TOWER | {"deepstack_visual_indexes": [1, 2]},
    ),
    "qwen3_vl_moe": _around(
        "qwen3_vl_moe",
        _of("qwen3_vl_moe_text", EXPERTS, _SCALING, num_experts=8, head_dim=16, mlp_only_layers=[2]),
        QWEN_TOWER | {"deepstack_visual_indexes": [1, 2]},
    ),
    "qwen3_5": _around("qwen3_5", CONFIGS["qwen3_5_text"], QWEN_TOWER),
    "qwen3_5_moe": _around("qwen3_5_moe", CONFIGS["qwen3_5_moe_text"], QWEN_TOWER),
    "glm4v_moe": _around(
        "glm4v_moe",
        CONFIGS["glm4_moe"] | {"model_type": "glm4v_moe_text", "use_qk_norm": False} | _SCALING,
        QWEN_TOWER | {"intermediate_size": 60, "image_size": 49, "attention_bias": False},
    ),
    "kimi_k25": _around(
        "kimi_k25",
        CONFIGS["deepseek_v3"],
        {
            "hidden_size": 32,
            "intermediate_size": 52,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "patch_size": 7,
            "pos_emb_height": 9,
            "pos_emb_width": 8,
            "merge_kernel_size": [2, 2],
        },
        projection_hidden_size=32,
    ),
}

_WIDER = {
    4: """
        num_attention_heads num_key_value_heads num_heads n_head num_kv_heads linear_num_key_heads
        linear_num_value_heads mamba_num_heads n_groups index_n_heads swa_num_attention_heads
        swa_num_key_value_heads num_global_key_value_heads""",
    16: """
        head_dim global_head_dim v_head_dim swa_head_dim swa_v_head_dim qk_nope_head_dim qk_rope_head_dim
        linear_key_head_dim linear_value_head_dim mamba_head_dim index_head_dim rotary_dim mamba_dt_rank
        kv_lora_rank q_lora_rank mrope_section""",
    64: """
        hidden_size n_embd embed_dim out_hidden_size intermediate_size n_inner ffn_hidden_size
        intermediate_size_mlp moe_intermediate_size shared_expert_intermediate_size
        moe_shared_expert_intermediate_size vocab_size vocab_size_per_layer_input max_position_embeddings
        sliding_window attention_chunk_size index_topk projector_input_dim projector_output_dim
        vision_output_dim projection_hidden_size""",
    256: "n_positions",
}
_BY = {name: factor for factor, names in _WIDER.items() for name in names.split()}


def wide(config: Fields) -> Fields:
    """A config of `CONFIGS` as wide as published models are: work that takes longer than starting it.

    Heads are so many that four ranks share them.
    """
    return {name: _wider(name, value) for name, value in config.items()}


def _wider(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return wide(value)
    if isinstance(value, list) and name in _BY:
        return [_wider(name, one) for one in value]
    return value * _BY[name] if name in _BY and isinstance(value, int) else value


COUNTED: dict[str, tuple[int, int, int, int]] = {
    "llama": (118_744, 83, 6_038_784, 600),
    "llama, tied": (103_296, 47, 5_485_824, 480),
    "mistral": (142_704, 48, 7_697_664, 0),
    "ministral3": (142_704, 48, 7_697_664, 960),
    "ministral": (142_704, 48, 7_697_664, 192),
    "qwen2": (108_624, 63, 5_485_824, 480),
    "qwen3": (144_064, 78, 7_697_664, 960),
    "starcoder2": (88_952, 84, 4_472_064, 0),
    "starcoder2, no bias": (87_552, 54, 4_472_064, 480),
    "phi3": (108_144, 33, 5_485_824, 0),
    "cohere": (108_624, 63, 5_485_824, 480),
    "olmo2": (108_504, 58, 5_485_824, 480),
    "glm": (143_664, 58, 7_697_664, 960),
    "glm4": (144_144, 68, 7_697_664, 960),
    "granite": (109_984, 83, 5_485_824, 480),
    "nemotron": (123_312, 74, 6_683_904, 960),
    "stablelm": (109_152, 74, 5_485_824, 480),
    "phi": (88_573, 75, 4_472_064, 480),
    "gpt2": (98_264, 64, 5_025_024, 960),
    "gptj": (99_373, 55, 5_025_024, 960),
    "gpt_bigcode": (78_664, 64, 4_103_424, 160),
    "gpt_bigcode, many heads": (148_704, 64, 7_421_184, 960),
    "gpt_neox": (100_712, 64, 5_025_024, 960),
    "falcon": (129_312, 34, 6_499_584, 160),
    "falcon, grouped": (87_552, 44, 4_472_064, 480),
    "falcon, in sequence": (151_152, 64, 7_421_184, 960),
    "gemma": (137_856, 47, 7_697_664, 960),
    "gemma2": (138_336, 57, 7_697_664, 384),
    "gemma3_text": (138_496, 67, 7_697_664, 192),
    "gemma4_text": (290_424, 110, 9_660_672, 320),
    "cohere2": (107_904, 43, 5_485_824, 96),
    "olmo3": (108_504, 58, 5_485_824, 96),
    "gpt_oss": (598_374, 88, 10_831_104, 576),
    "mimo_v2_flash": (199_170, 120, 7_034_112, 336),
    "step3p5": (223_648, 75, 8_672_256, 384),
    "llama4_text": (347_088, 54, 8_992_512, 192),
    "mixtral": (588_144, 158, 10_831_104, 960),
    "phimoe": (554_933, 190, 8_619_264, 480),
    "qwen2_moe": (173_856, 141, 5_382_144, 480),
    "qwen3_moe": (178_192, 102, 7_236_864, 960),
    "glm4_moe": (208_048, 151, 7_545_600, 960),
    "minimax_m2": (588_864, 173, 10_831_104, 960),
    "deepseek_v2": (214_222, 138, 7_817_472, 260),
    "deepseek_v2, direct": (201_748, 128, 7_223_040, 260),
    "deepseek_v3": (214_222, 141, 7_817_472, 260),
    "kimi_k2": (224_582, 141, 8_301_312, 260),
    "deepseek_v32": (222_502, 166, 8_508_672, 380),
    "glm_moe_dsa": (219_190, 156, 8_232_192, 332),
    "glm4_moe_lite": (243_118, 167, 8_126_208, 260),
    "deepseek_v4": (253_016, 259, 8_156_160, 72),
    "kimi_linear": (200_008, 161, 10_718_784, 104),
    "qwen3_next": (213_944, 166, 11_112_320, 192),
    "qwen3_5_text": (126_968, 70, 11_250_560, 192),
    "qwen3_5_moe_text": (235_688, 200, 11_077_760, 192),
    "nemotron_h": (79_612, 50, 3_386_976, 192),
    "mamba2": (98_104, 48, 5_665_824, 0),
    "jamba": (337_916, 124, 8_716_032, 96),
    "llava": (160_200, 158, 6_038_784, 600),
    "mistral3": (192_016, 90, 7_697_664, 0),
    "gemma3": (177_488, 138, 7_697_664, 192),
    "gemma4": (332_696, 165, 9_660_672, 320),
    "llama4": (393_536, 128, 8_992_512, 192),
    "qwen2_vl": (183_296, 118, 5_485_824, 480),
    "qwen2_5_vl": (178_432, 117, 5_485_824, 480),
    "qwen3_vl": (253_616, 127, 7_697_664, 960),
    "qwen3_vl_moe": (324_272, 127, 6_776_064, 960),
    "qwen3_5": (191_800, 127, 11_250_560, 192),
    "qwen3_5_moe": (300_520, 257, 11_077_760, 192),
    "glm4v_moe": (271_264, 182, 7_545_600, 960),
    "kimi_k25": (275_150, 200, 7_817_472, 260),
}
"""Counted on the model classes of transformers 5.23: parameters, tensors, FLOPs at 24 tokens without experts
that are not chosen, and bytes by which the cache grows per token once every window is full.
"""
