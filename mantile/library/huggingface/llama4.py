"""Llama 4: attention inside chunks in most layers, experts in every or every other layer."""

from __future__ import annotations

from mantile.library.architecture import Architecture
from mantile.library.huggingface.assembly import block
from mantile.library.huggingface.common_facts import attention_biases, decoder_facts, ffn_facts, switched
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.layer_kinds import CHUNKED, assemble_layers, periodic_mixers, stated_mixers


def llama4(config: Config) -> Architecture:
    """Llama 4: every fourth layer attends without limit and has no positions."""
    mixers, ffns = _mixers(config), _ffns(config)
    normed = config.flag("use_qk_norm", default=True)
    facts = decoder_facts(config, 131_072, kv_heads=8, head_dim=128) | attention_biases(config)
    uses: dict[str, str] = {}
    if normed.value:  # in the layers with positions only
        uses = {"qk_norm": "chunked_qk_norm"}
        facts["chunked_qk_norm"] = switched(normed, 4, "heads normed without weights")
    if "chunked" in mixers:
        facts["attention_chunk"] = config.integer("attention_chunk_size", default=8192)
    if "moe" in ffns:
        facts |= {
            "experts": config.integer("num_local_experts"),
            "experts_per_token": config.integer("num_experts_per_tok", default=1),
            "expert_size": config.integer("intermediate_size"),
        }
    if "ffn" in ffns:
        facts |= ffn_facts(config, "intermediate_size_mlp")
    chunked = block("attention", chunk="attention_chunk", **uses)
    return assemble_layers(
        config,
        facts,
        mixers,
        {"moe": block("moe", shared_expert_size="expert_size"), "ffn": block("ffn")},
        ffns=ffns,
        mixer_blocks={"chunked": chunked, "full": block("attention")},
        pattern="layer_types or no_rope_layers, moe_layers or interleave_moe_layer_step",
    )


def _mixers(config: Config) -> list[str]:
    """Which mixer each layer has: layers with positions in chunks, the others without limit."""
    stated, by_positions = stated_mixers(config, CHUNKED), _by_positions(config)
    if stated and by_positions and stated != by_positions:
        raise config.invalid(
            "layer_types", "chunked_attention where no_rope_layers is 1, full_attention where it is 0"
        )
    return stated or by_positions or periodic_mixers(config, 4, CHUNKED, "no_rope_layer_interval")


def _by_positions(config: Config) -> list[str] | None:
    """The mixers as no_rope_layers has them, 1 for a layer with positions; None if it is missing or empty."""
    if config.data.get("no_rope_layers") == []:
        return None
    flags = config.integers("no_rope_layers", config.layers().value)
    return None if flags is None else ["chunked" if flag else "full" for flag in flags]


def _ffns(config: Config) -> list[str]:
    """Which FFN each layer has."""
    count = config.layers().value
    sparse = config.integers("moe_layers")
    if sparse is None:
        period = config.integer("interleave_moe_layer_step", default=1).value
        sparse = [layer for layer in range(count) if (layer + 1) % period == 0]
    elif any(not 0 <= layer < count for layer in sparse):
        raise config.invalid("moe_layers", f"layer numbers from 0 to {count - 1}")
    return ["moe" if layer in sparse else "ffn" for layer in range(count)]
