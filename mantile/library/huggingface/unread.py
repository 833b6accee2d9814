"""Which fields of a config.json nobody read, and why they change nothing."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from typing import Any

LONGEST = 60  # characters of a value that is kept

_WHY = {
    "says how the file was made": """
        _name_or_path dtype model_type producer tokenizer_class torch_dtype
        torchscript transformers_version use_bfloat16 return_dict prefix task_specific_params problem_type
        id2label label2id quantization_status observer observer_kwargs""",
    "code beside the file, which is not run: the class is read by its model type": "auto_map",
    "its class is that of the model type": "architectures",
    "training only": """
        aux_loss_alpha attention_dropout attention_probs_dropout_prob attn_pdrop embd_pdrop embedding_dropout
        finetuning_task hidden_dropout ignore_index initializer_range init_std moe_shared_expert_overlap
        output_router_logits pretraining_tp pruned_heads rescale_prenorm_residual resid_pdrop residual_dropout
        router_aux_loss_coef router_jitter_noise seq_aux summary_activation summary_first_dropout
        summary_proj_to_labels summary_type summary_use_proj tf_legacy_loss tie_encoder_decoder
        time_step_floor time_step_limit time_step_max time_step_min""",
    "a number of the special tokens": "video_placeholder",
    "how a program generates text": """
        bad_words_ids begin_suppress_tokens cache_implementation diversity_penalty do_sample early_stopping
        encoder_no_repeat_ngram_size exponential_decay_length_penalty length_penalty max_length min_length
        no_repeat_ngram_size num_beam_groups num_beams num_logits_to_keep num_return_sequences
        output_activations output_attentions output_hidden_states output_scores remove_invalid_values
        repetition_penalty return_dict_in_generate runner_max_sequence_length suppress_tokens temperature
        top_k top_p typical_p use_cache chunk_size_feed_forward""",
    "how a program runs it: the plan says": """
        _attn_implementation ep_size use_mamba_kernels mamba_ssm_cache_dtype mamba_ssm_dtype moe_router_dtype
        need_fp32_gate
        attention_softmax_in_fp32 scale_attention_softmax_in_fp32 residual_in_fp32 activation_scheme scale_fmt
        dequantize dynamic actorder symmetric block_structure""",
    "a number in a formula, the same work": """
        attention_multiplier embedding_multiplier logits_scaling residual_multiplier attention_value_scale
        attn_logit_softcapping final_logit_softcapping hc_eps layer_norm_eps layer_norm_rms_epsilon
        layer_norm_epsilon layernorm_epsilon logit_scale norm_eps norm_epsilon projector_ln_eps
        query_pre_attn_scalar rms_norm_eps routed_scaling_factor scale_attn_weights swiglu_limit
        norm_topk_prob moe_renormalize norm_before_gate expert_weights_scale expert_weights_norm
        moe_router_scaling_factor norm_expert_weight swiglu_limits swiglu_limits_shared""",
    "another function of as much work": """
        activation_function hidden_act hidden_activation mamba_hidden_act projector_hidden_act scoring_func
        moe_router_activation moe_router_activation_func""",
    "iterations over a few values, left out": "hc_sinkhorn_iters",
    "angles of positions, the same work": """
        compress_rope_theta indexer_rope_interleave initial_context_length llama_4_scaling
        original_max_position_embeddings partial_rotary_factors yarn yarn_only_types
        partial_rotary_factor rope_interleave rope_local_base_freq rope_parameters rope_scaling rope_theta
        rotary rotary_dim rotary_emb_base rotary_pct swa_rope_theta mla_use_nope use_mrope init_pos_emb_time
        pos_emb_type tokens_per_second""",
    "which experts, not how many": """
        n_group num_expert_group topk_group topk_method use_grouped_topk""",
    "not used by this class here": """
        attention_chunk_size expand expert_intermediate_size experts_per_token first_k_dense_replace
        feed_forward_length full_attention_interval global_head_dim head_dim image_size
        index_skip_topk_offset index_topk_freq intermediate_size intermediate_size_mlp
        max_position_embeddings max_window_layers mlp_only_layers mlp_type
        max_seq_len model_max_length n_ctx n_shared_experts norm_type num_attention_heads num_heads
        num_key_value_heads projection_dim qk_head_dim qk_rope_head_dim qkv_bias rms_norm
        shared_expert_intermediate_size sliding_window text_hidden_size time_step_rank top_k_experts
        use_double_wide_mlp use_moe use_parallel_residual use_qk_norm use_routing_bias vocab_size
        vocab_size_per_layer_input vt_num_attention_heads mm_projector_type merge_type
        deepstack_visual_indexes spatial_patch_size""",
    "the field of the whole file decides": "tie_word_embeddings",
    "prediction layers are not run": """
        index_share_for_mtp_iteration mtp_transformer_layers num_mtp_modules use_mtp""",
    "the scenario states image tokens": """
        default_output_length image_seq_length max_image_size mm_tokens_per_image use_unified_vision_chunk
        video_attn_type video_seq_length vision_feature_select_strategy""",
    "an encoder, which the class has not": """
        add_cross_attention cross_attention_hidden_size is_decoder is_encoder_decoder""",
    "said by the scheme of the experts": "expert_dtype",
    "said by hf_quant_config.json beside it": """
        config_groups ignore kv_cache_quant_algo quant_algo quantized_layers group_size""",
}
_REASONS = {key: why for why, keys in _WHY.items() for key in keys.split()}
_OF_PARTS = {"architectures": "the class of the whole file decides"}
_NOTHING = ("null", "[]", "{}", '""', "0", "false")
_TOKENS = ("token_id", "token_index", "token_ids")


def why_unread(path: str, value: str) -> str | None:
    """Why a field that nobody read changes nothing; None for a field that is not known.

    One that is not known says nothing where it is null or empty, and one of experts or ranks where it is 0.

    Args:
        value: of the field, as JSON.

    Example:
        why_unread("text_config.initializer_range", "0.02")    # "training only"
    """
    key = path.rpartition(".")[2]
    if key.endswith(_TOKENS):
        return "a number of the special tokens"
    if ".rope." in path:
        return "angles of positions, the same work"
    why = _OF_PARTS.get(key) if "." in path else None
    why = why or _REASONS.get(key)
    return "says nothing" if why is None and value in _NOTHING else why


def unknown_fields(data: Mapping[str, Any], known: Container[str], path: str = "") -> dict[str, str]:
    """The fields that a class does not have, by their path, as JSON; long values are cut.

    A section is a field called config, such as text_config; any other field is known as a whole.

    Example:
        unknown_fields({"hidden_size": 64, "mtp": 1}, {"hidden_size"})    # {"mtp": "1"}
    """
    left: dict[str, str] = {}
    for key, value in data.items():
        if isinstance(value, dict) and key in known and key.endswith("config"):
            left |= unknown_fields(value, known, f"{path}{key}.")
        elif key not in known:
            left[f"{path}{key}"] = _as_json(value)
    return left


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


class Recorded(dict[str, Any]):
    """The fields of a file, which keep in mind which of them were asked for.

    Example:
        fields = Recorded({"hidden_size": 64, "pad_token_id": 0})
        fields["hidden_size"]
        fields.unread()    # {"pad_token_id": "0"}
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(
            {key: Recorded(value) if isinstance(value, dict) else value for key, value in data.items()}
        )
        self._read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dictionary."""
        self._read.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._read.add(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._read.update(super().keys())
        return super().__iter__()

    def items(self) -> Any:
        """As of a dictionary."""
        self._read.update(super().keys())
        return super().items()

    def values(self) -> Any:
        """As of a dictionary."""
        self._read.update(super().keys())
        return super().values()

    def unread(self, path: str = "") -> dict[str, str]:
        """The fields that nobody asked for, by their path, as JSON; long values are cut."""
        left: dict[str, str] = {}
        for key, value in super().items():
            if key in self._read:
                left |= value.unread(f"{path}{key}.") if isinstance(value, Recorded) else {}
            else:
                left[f"{path}{key}"] = _as_json(value)
        return left
