"""What checkpoints call their tensors.

Keys are ours; the table of a family states what differs from llama's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

LLAMA = {
    "embedding": "embed_tokens",
    "positions": "wpe",
    "final_norm": "norm",
    "head": "lm_head",
    # norms before and after mixer and FFN
    "mixer_before": "input_layernorm",
    "mixer_after": "post_attention_layernorm",
    "ffn_before": "post_attention_layernorm",
    "ffn_after": "post_feedforward_layernorm",
    # attention
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "qkv": "self_attn.qkv_proj",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
    "sinks": "self_attn.sinks",
    "head_gate": "self_attn.g_proj",
    # latent attention
    "q_a": "self_attn.q_a_proj",
    "q_a_norm": "self_attn.q_a_layernorm",
    "q_b": "self_attn.q_b_proj",
    "kv_a": "self_attn.kv_a_proj_with_mqa",
    "kv_a_norm": "self_attn.kv_a_layernorm",
    "kv_b": "self_attn.kv_b_proj",
    "index_q": "self_attn.indexer.wq_b",
    "index_k": "self_attn.indexer.wk",
    "index_k_norm": "self_attn.indexer.k_norm",
    "index_weights": "self_attn.indexer.weights_proj",
    # FFN
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "gate_up": "mlp.gate_up_proj",
    "down": "mlp.down_proj",
    # experts
    "router": "mlp.gate",
    "correction": "mlp.gate.e_score_correction_bias",
    "expert_gate": "mlp.experts.{}.gate_proj",
    "expert_up": "mlp.experts.{}.up_proj",
    "expert_down": "mlp.experts.{}.down_proj",
    "experts_gate_up": "mlp.experts.gate_up_proj",
    "experts_down": "mlp.experts.down_proj",
    "shared_gate": "mlp.shared_experts.gate_proj",
    "shared_up": "mlp.shared_experts.up_proj",
    "shared_down": "mlp.shared_experts.down_proj",
    "shared_weight": "mlp.shared_expert_gate",
}


@dataclass(frozen=True)
class PredictionNames:
    """Names of the layers that predict further tokens.

    Args:
        layer: prefix of the tensors of their decoder layers.
        prefix: of their other tensors; `once` if those are stored once for all prediction layers.
        embedding_norm, hidden_norm: norms of the embedding and of the hidden state, before both are joined.
        join: the matrix that joins them.
        join_hidden: a second matrix, for the hidden state alone; empty where one matrix joins both.
        norm: behind the decoder layer.
        embedding, head: copies of embedding and LM head; empty where those of the model are used.
    """

    layer: str = "model.layers.{}."
    prefix: str = "model.layers.{}."
    embedding_norm: str = "enorm"
    hidden_norm: str = "hnorm"
    join: str = "eh_proj"
    join_hidden: str = ""
    norm: str = "shared_head.norm"
    embedding: str = "embed_tokens"
    head: str = "shared_head.head"
    once: bool = False


@dataclass(frozen=True)
class TensorNames:
    """Names of a family's tensors, and which matrices its checkpoints store as one.

    Args:
        table: our keys to the family's names, without prefix and suffix.
        top: prefix of what stands once.
        layers: what stands between `top` and the names inside a layer; {} is the number of the layer.
        head_prefix: prefix of the LM head.
        fused_qkv: query, key and value are one matrix.
        fused_gate_up: gate and up of the FFN are one matrix.
        fused_delta: a gated delta rule has two input matrices, not four.
        transposed: matrices are stored as [input, output].
        experts: every expert by itself; or all of a layer in one tensor, as [experts, output, input] or as
            [experts, input, output].
        prediction: names of the layers that predict further tokens.
    """

    table: Mapping[str, str] = field(default_factory=dict)
    top: str = "model."
    layers: str = "layers.{}."
    head_prefix: str = ""
    fused_qkv: bool = False
    fused_gate_up: bool = False
    fused_delta: bool = False
    transposed: bool = False
    experts: Literal["separate", "output first", "input first"] = "separate"
    prediction: PredictionNames = PredictionNames()

    def __getitem__(self, key: str) -> str:
        """A name without prefix and suffix, by our key.

        Raises:
            KeyError: if neither the family, llama nor a layer of linear attention has such a tensor.
        """
        return self.table.get(key) or LLAMA.get(key) or DELTA[key]

    def __contains__(self, key: str) -> bool:
        """Whether the family, or llama, has such a tensor."""
        return key in self.table or key in LLAMA

    @property
    def layer(self) -> str:
        """Prefix of what a layer holds."""
        return self.top + self.layers


MIXTRAL = {
    "router": "block_sparse_moe.gate", "correction": "block_sparse_moe.e_score_correction_bias",
    "expert_gate": "block_sparse_moe.experts.{}.w1", "expert_up": "block_sparse_moe.experts.{}.w3",
    "expert_down": "block_sparse_moe.experts.{}.w2",
}  # fmt: skip
QWEN_MOE = {
    "shared_gate": "mlp.shared_expert.gate_proj", "shared_up": "mlp.shared_expert.up_proj",
    "shared_down": "mlp.shared_expert.down_proj",
}  # fmt: skip
DELTA = {
    "delta_qkvz": "linear_attn.in_proj_qkvz", "delta_ba": "linear_attn.in_proj_ba",
    "delta_qkv": "linear_attn.in_proj_qkv", "delta_z": "linear_attn.in_proj_z",
    "delta_b": "linear_attn.in_proj_b", "delta_a": "linear_attn.in_proj_a",
    "delta_conv": "linear_attn.conv1d", "delta_decay": "linear_attn.A_log",
    "delta_step": "linear_attn.dt_bias", "delta_norm": "linear_attn.norm",
    "delta_out": "linear_attn.out_proj",
}  # fmt: skip
DEEPSEEK_V4 = {
    "embedding": "embed", "head": "head", "mixer_before": "attn_norm", "ffn_before": "ffn_norm",
    "q_a": "attn.wq_a", "kv": "attn.wkv", "q_a_norm": "attn.q_norm", "kv_norm": "attn.kv_norm",
    "q_b": "attn.wq_b", "sinks": "attn.attn_sink", "o_a": "attn.wo_a", "o_b": "attn.wo_b",
    "compressor_kv": "attn.compressor.wkv", "compressor_gate": "attn.compressor.wgate",
    "compressor_position": "attn.compressor.ape", "compressor_norm": "attn.compressor.norm",
    "index_q": "attn.indexer.wq_b", "index_weights": "attn.indexer.weights_proj",
    "index_compressor_kv": "attn.indexer.compressor.wkv",
    "index_compressor_gate": "attn.indexer.compressor.wgate",
    "index_compressor_position": "attn.indexer.compressor.ape",
    "index_compressor_norm": "attn.indexer.compressor.norm", "router": "ffn.gate",
    "correction": "ffn.gate.bias", "routing_table": "ffn.gate.tid2eid", "expert_gate": "ffn.experts.{}.w1",
    "expert_up": "ffn.experts.{}.w3", "expert_down": "ffn.experts.{}.w2",
    "shared_gate": "ffn.shared_experts.w1", "shared_up": "ffn.shared_experts.w3",
    "shared_down": "ffn.shared_experts.w2", "mixer_streams": "hc_attn", "ffn_streams": "hc_ffn",
    "head_streams": "hc_head",
}  # fmt: skip
KIMI_DELTA = {
    "delta_b": "self_attn.b_proj", "decay_in": "self_attn.f_a_proj", "decay_out": "self_attn.f_b_proj",
    "gate_in": "self_attn.g_a_proj", "gate_out": "self_attn.g_b_proj", "q_conv": "self_attn.q_conv1d",
    "k_conv": "self_attn.k_conv1d", "v_conv": "self_attn.v_conv1d", "delta_decay": "self_attn.A_log",
    "delta_step": "self_attn.dt_bias", "delta_norm": "self_attn.o_norm",
    "shared_gate": "block_sparse_moe.shared_experts.gate_proj",
    "shared_up": "block_sparse_moe.shared_experts.up_proj",
    "shared_down": "block_sparse_moe.shared_experts.down_proj",
    "correction": "block_sparse_moe.gate.e_score_correction_bias",
}  # fmt: skip
MAMBA2 = {
    "embedding": "embeddings", "final_norm": "norm_f", "mixer_before": "norm", "ffn_before": "norm",
    "mamba_in": "mixer.in_proj", "mamba_conv": "mixer.conv1d", "mamba_decay": "mixer.A_log",
    "mamba_skip": "mixer.D", "mamba_dt_bias": "mixer.dt_bias", "mamba_norm": "mixer.norm",
    "mamba_out": "mixer.out_proj",
}  # fmt: skip
NEMOTRON = MAMBA2 | {
    "q": "mixer.q_proj", "k": "mixer.k_proj", "v": "mixer.v_proj", "o": "mixer.o_proj", "up": "mixer.up_proj",
    "down": "mixer.down_proj", "router": "mixer.gate", "correction": "mixer.gate.e_score_correction_bias",
    "expert_up": "mixer.experts.{}.up_proj", "expert_down": "mixer.experts.{}.down_proj",
    "shared_up": "mixer.shared_experts.up_proj", "shared_down": "mixer.shared_experts.down_proj",
    "latent_down": "mixer.fc1_latent_proj", "latent_up": "mixer.fc2_latent_proj",
}  # fmt: skip
JAMBA = {
    "final_norm": "final_layernorm", "ffn_before": "pre_ff_layernorm", "gate": "feed_forward.gate_proj",
    "up": "feed_forward.up_proj", "down": "feed_forward.down_proj", "router": "feed_forward.router",
    "expert_gate": "feed_forward.experts.{}.gate_proj", "expert_up": "feed_forward.experts.{}.up_proj",
    "expert_down": "feed_forward.experts.{}.down_proj", "mamba_in": "mamba.in_proj",
    "mamba_x": "mamba.x_proj", "mamba_dt": "mamba.dt_proj", "mamba_conv": "mamba.conv1d",
    "mamba_decay": "mamba.A_log", "mamba_skip": "mamba.D", "mamba_out": "mamba.out_proj",
    "mamba_dt_norm": "mamba.dt_layernorm", "mamba_b_norm": "mamba.b_layernorm",
    "mamba_c_norm": "mamba.c_layernorm",
}  # fmt: skip

SANDWICH = {"ffn_before": "pre_feedforward_layernorm"}
GEMMA4 = SANDWICH | {
    "router": "router.proj", "router_scale": "router.scale", "expert_scale": "router.per_expert_scale",
    "shared_gate": "mlp.gate_proj", "shared_up": "mlp.up_proj", "shared_down": "mlp.down_proj",
    "experts_gate_up": "experts.gate_up_proj", "experts_down": "experts.down_proj",
    "shared_after": "post_feedforward_layernorm_1", "experts_before": "pre_feedforward_layernorm_2",
    "experts_after": "post_feedforward_layernorm_2", "layer_scale": "layer_scalar",
}  # fmt: skip
LLAMA4 = {
    "gate": "feed_forward.gate_proj", "up": "feed_forward.up_proj", "down": "feed_forward.down_proj",
    "router": "feed_forward.router", "experts_gate_up": "feed_forward.experts.gate_up_proj",
    "experts_down": "feed_forward.experts.down_proj", "shared_gate": "feed_forward.shared_expert.gate_proj",
    "shared_up": "feed_forward.shared_expert.up_proj", "shared_down": "feed_forward.shared_expert.down_proj",
}  # fmt: skip
GPT2 = {
    "embedding": "wte", "final_norm": "ln_f", "mixer_before": "ln_1", "ffn_before": "ln_2",
    "qkv": "attn.c_attn", "o": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj",
}  # fmt: skip
GPTJ = GPT2 | {
    "q": "attn.q_proj", "k": "attn.k_proj", "v": "attn.v_proj", "o": "attn.out_proj", "up": "mlp.fc_in",
    "down": "mlp.fc_out",
}  # fmt: skip
NEOX = {
    "embedding": "embed_in", "final_norm": "final_layer_norm", "head": "embed_out",
    "qkv": "attention.query_key_value", "o": "attention.dense", "up": "mlp.dense_h_to_4h",
    "down": "mlp.dense_4h_to_h",
}  # fmt: skip
FALCON = {
    "embedding": "word_embeddings", "final_norm": "ln_f", "qkv": "self_attention.query_key_value",
    "o": "self_attention.dense", "up": "mlp.dense_h_to_4h", "down": "mlp.dense_4h_to_h",
}  # fmt: skip
PHI = {
    "final_norm": "final_layernorm", "o": "self_attn.dense", "q_norm": "self_attn.q_layernorm",
    "k_norm": "self_attn.k_layernorm", "up": "mlp.fc1", "down": "mlp.fc2",
}  # fmt: skip

GLM4 = {"mixer_after": "post_self_attn_layernorm", "ffn_after": "post_mlp_layernorm"}
STABLELM = {"q_norm": "self_attn.q_layernorm.norms.{}", "k_norm": "self_attn.k_layernorm.norms.{}"}
GPT_OSS = {"router": "mlp.router"}
MIMO = {"sinks": "self_attn.attention_sink_bias"}
STEP = {  # gate and up of its experts are two tensors in its files
    "router": "moe.gate", "correction": "moe.router_bias",
    "experts_gate_up": "moe.gate_up_proj.weight", "experts_down": "moe.down_proj.weight",
    "shared_gate": "share_expert.gate_proj", "shared_up": "share_expert.up_proj",
    "shared_down": "share_expert.down_proj",
}  # fmt: skip
STARCODER2 = {"up": "mlp.c_fc", "down": "mlp.c_proj"}
QWEN_HYBRID = QWEN_MOE | DELTA
KIMI_LINEAR = MIXTRAL | KIMI_DELTA
FALCON_GROUPED = FALCON | {"mixer_before": "ln_attn", "ffn_before": "ln_mlp"}

QWEN_PREDICTION = PredictionNames(
    layer="mtp.layers.{}.",
    prefix="mtp.",
    embedding_norm="pre_fc_norm_embedding",
    hidden_norm="pre_fc_norm_hidden",
    join="fc",
    norm="norm",
    embedding="",
    head="",
    once=True,
)
DEEPSEEK_V4_PREDICTION = PredictionNames(
    layer="mtp.{}.",
    prefix="mtp.{}.",
    join="e_proj",
    join_hidden="h_proj",
    norm="norm",
    embedding="",
    head="",
)
NEMOTRON_PREDICTION = PredictionNames(
    layer="mtp.layers.{}.", prefix="mtp.layers.{}.", norm="final_layernorm", embedding="", head=""
)
GLM_DSA_PREDICTION = PredictionNames(embedding="", head="")
STEP_PREDICTION = PredictionNames(embedding="", head="shared_head.output")
