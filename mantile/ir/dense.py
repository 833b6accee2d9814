"""Dense decoder-only transformers: modules and tensors of llama, mistral, qwen2, qwen3 and starcoder2."""

from __future__ import annotations

from mantile.graph.quantity import Node, Quantity
from mantile.ir.modules import Kind, ModelGraph, Module, Split, Tensor, fact_inputs
from mantile.library.architecture import Model

_PLAIN_FFN = {"starcoder2": ("c_fc", "c_proj")}


def build_ir(model: Model) -> ModelGraph:
    """The modules of a model in execution order."""
    facts = fact_inputs(model.architecture)
    architecture = model.architecture
    query = Quantity("model.query_width", "Width of all query heads", "channel", facts.attention_heads * facts.head_dim)
    key_value = Quantity("model.kv_width", "Width of all key heads", "channel", facts.kv_heads * facts.head_dim,
                         name="width of all KV heads")  # fmt: skip
    hidden, ffn = facts.hidden_size, facts.ffn_size
    layer = "model.layers.{}."

    def matrix(name: str, rows: Node, columns: Node, split: Split, bias: int) -> tuple[Tensor, ...]:
        weight = Tensor(f"{layer}{name}.weight", (rows, columns), split)
        return (weight, Tensor(f"{layer}{name}.bias", (rows,), split, matrix=False)) if bias else (weight,)

    def norm(name: str, width: Node, per_layer: bool = True, bias: int = architecture.norm_bias.value) -> tuple[Tensor, ...]:
        prefix = layer if per_layer else "model."
        kinds = ("weight", "bias") if bias else ("weight",)
        return tuple(Tensor(f"{prefix}{name}.{kind}", (width,), "none", per_layer, matrix=False) for kind in kinds)

    def module(identifier: str, label: str, kind: Kind, *tensors: tuple[Tensor, ...], per_layer: bool = True) -> Module:
        return Module(identifier, label, kind, tuple(tensor for group in tensors for tensor in group), per_layer)

    qkv_bias, ffn_bias = architecture.qkv_bias.value, architecture.ffn_bias.value
    up_name, down_name = _PLAIN_FFN.get(architecture.model_type, ("up_proj", "down_proj"))
    up = matrix(f"mlp.{up_name}", ffn, hidden, "ffn columns", ffn_bias)
    if architecture.ffn_input_matrices.value == 2:
        up = matrix("mlp.gate_proj", ffn, hidden, "ffn columns", ffn_bias) + up
    gated = architecture.ffn_input_matrices.value == 2

    modules = [
        module("embedding", "Embedding", "embedding",
               (Tensor("model.embed_tokens.weight", (facts.vocabulary, hidden), "vocabulary", per_layer=False),),
               per_layer=False),
        module("attention_norm", "Attention norm", "norm", norm("input_layernorm", hidden)),
        module("qkv", "QKV projection", "linear",
               matrix("self_attn.q_proj", query, hidden, "heads", qkv_bias),
               matrix("self_attn.k_proj", key_value, hidden, "kv heads", qkv_bias),
               matrix("self_attn.v_proj", key_value, hidden, "kv heads", qkv_bias)),
    ]  # fmt: skip
    if architecture.qk_norm.value:
        modules.append(module("qk_norm", "QK norm", "qk_norm",
                              norm("self_attn.q_norm", facts.head_dim, bias=0),
                              norm("self_attn.k_norm", facts.head_dim, bias=0)))  # fmt: skip
    modules += [
        module("rope", "RoPE and KV write", "rope"),
        module("attention", "Attention core", "attention"),
        module("output", "Output projection", "linear",
               matrix("self_attn.o_proj", hidden, query, "heads", architecture.output_bias.value)),
        module("ffn_norm", "FFN norm", "norm", norm("post_attention_layernorm", hidden)),
        module("ffn_up", "FFN gate + up" if gated else "FFN up", "linear", up),
        module("activation", "Activation", "activation"),
        module("ffn_down", "FFN down", "linear", matrix(f"mlp.{down_name}", hidden, ffn, "ffn columns", ffn_bias)),
        module("final_norm", "Final norm", "norm", norm("norm", hidden, per_layer=False), per_layer=False),
        module("lm_head", "LM head", "lm_head",
               () if architecture.tied_embeddings.value
               else (Tensor("lm_head.weight", (facts.vocabulary, hidden), "vocabulary", per_layer=False),),
               per_layer=False),
    ]  # fmt: skip
    return ModelGraph(model, facts, tuple(modules), query, key_value)
