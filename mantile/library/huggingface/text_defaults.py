"""Values that a model class takes for fields which text_config of a vision-language model may leave out."""

from __future__ import annotations


def _fields(
    *, hidden: int, layers: int, heads: int, ffn: int, vocabulary: int, positions: int, **more: int
) -> dict[str, int]:
    """Class defaults by field; `more` are fields under their own names."""
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": ffn,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
        **more,
    }


LLAMA = _fields(hidden=4096, layers=32, heads=32, ffn=11_008, vocabulary=32_000, positions=2048)
MISTRAL = _fields(hidden=4096, layers=32, heads=32, ffn=14_336, vocabulary=32_000, positions=131_072)
MINISTRAL3 = _fields(hidden=4096, layers=34, heads=32, ffn=14_336, vocabulary=131_072, positions=262_144)
QWEN2 = _fields(hidden=4096, layers=32, heads=32, ffn=22_016, vocabulary=151_936, positions=32_768)
QWEN2_VL = _fields(
    hidden=8192,
    layers=80,
    heads=64,
    ffn=29_568,
    vocabulary=152_064,
    positions=32_768,
    num_key_value_heads=8,
    max_window_layers=80,
)
QWEN3_VL = _fields(hidden=4096, layers=32, heads=32, ffn=22_016, vocabulary=151_936, positions=128_000)
QWEN3_VL_MOE = _fields(
    hidden=2048,
    layers=24,
    heads=16,
    ffn=5632,
    vocabulary=151_936,
    positions=128_000,
    num_key_value_heads=16,
    num_experts=60,
    num_experts_per_tok=4,
    moe_intermediate_size=1408,
)
QWEN3_5 = _fields(hidden=4096, layers=32, heads=16, ffn=12_288, vocabulary=248_320, positions=32_768)
QWEN3_5_MOE = {
    "hidden_size": 2048,
    "num_hidden_layers": 40,
    "num_attention_heads": 16,
    "vocab_size": 248_320,
    "num_experts": 256,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
}
GEMMA3 = _fields(
    hidden=2304,
    layers=26,
    heads=8,
    ffn=9216,
    vocabulary=262_208,
    positions=131_072,
    num_key_value_heads=4,
    head_dim=256,
)
GEMMA4 = GEMMA3 | {"num_hidden_layers": 30, "vocab_size": 262_144}
LLAMA4 = _fields(
    hidden=5120,
    layers=48,
    heads=40,
    ffn=8192,
    vocabulary=202_048,
    positions=131_072,
    intermediate_size_mlp=16_384,
    num_key_value_heads=8,
    head_dim=128,
    num_local_experts=16,
)
GLM4V_MOE = _fields(
    hidden=4096,
    layers=46,
    heads=96,
    ffn=10_944,
    vocabulary=151_424,
    positions=65_536,
    n_routed_experts=128,
    moe_intermediate_size=1408,
)
DEEPSEEK_V3 = _fields(
    hidden=7168,
    layers=61,
    heads=128,
    ffn=18_432,
    vocabulary=129_280,
    positions=4096,
    n_routed_experts=256,
    moe_intermediate_size=2048,
)
