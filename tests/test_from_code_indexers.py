"""Indexers of classes without a reader of ours: what they score, keep and choose."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from mantile.equations.ir import ir_sheet
from mantile.estimates.estimate import Estimate
from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters
from mantile.ir.modules import Attention, AttentionSpan, Indexer, ModelGraph
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.from_code import process, recorder
from mantile.library.from_code.read import read_recording
from mantile.library.huggingface.config import Config
from mantile.library.models import load_model

Make = Callable[..., Estimate]
needs_classes = [
    pytest.mark.exhaustive,
    pytest.mark.transformers,
    pytest.mark.skipif(not process.can_record(), reason="torch and transformers build the classes"),
]
GROUPS: dict[str, Any] = {
    "model_type": "glm5_next",
    "text_config": {
        **{"num_hidden_layers": 4, "vocab_size": 101, "pad_token_id": 0},
        **{"index_head_dim": 24, "index_n_heads": 6, "index_topk": 32, "index_kpool": 8},
    },
}
BY_QUERY: dict[str, Any] = {
    "model_type": "qwen4_exp_text",
    **{"num_hidden_layers": 4, "vocab_size": 101, "num_experts": 8, "num_experts_per_tok": 2},
    **{"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048},
    "indexer_compress_ratio": 16,
}
BLOCKS: dict[str, Any] = {
    "model_type": "minimax_m3_vl_text",
    **{"hidden_size": 96, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 12},
    **{"num_hidden_layers": 4, "vocab_size": 101, "intermediate_size": 88, "index_block_size": 8},
    **{"index_n_heads": 4, "index_head_dim": 12, "index_topk_blocks": 3, "num_local_experts": 6},
    "layer_types": ["full_attention", "minimax_m3_sparse", "full_attention", "minimax_m3_sparse"],
}


def graph(config: dict[str, Any]) -> ModelGraph:
    """The modules of a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = recorder.record({"config": copy.deepcopy(config), "folder": ""})
    architecture = read_recording(seen, Config("config.json", config["model_type"], config))
    return build_ir(Model(id="small", name="small", source="test", architecture=architecture))


def length_of(span: AttentionSpan) -> object:
    """How many tokens a span reaches; None without limit."""
    return None if span.length is None else span.length.value


class TestWithClasses:
    """What needs torch and transformers."""

    pytestmark = needs_classes

    def test_groups_of_tokens_are_scored_and_every_token_is_kept(self) -> None:
        """Eight tokens a group; key, gate and flag of each token are kept, as the class does."""
        ir = graph(GROUPS)
        facts = ir.model.architecture
        work = next(one.operation for one in ir.modules if isinstance(one.operation, Indexer))
        assert work.entry_tokens is not None and work.entry_tokens.value == 8
        assert facts.value("index_kept") == 2 * 24 + 1
        assert facts.value("index_topk") == 32
        latent = facts.value("kv_lora_rank") + facts.value("qk_rope_head_dim")
        assert kv_bytes_per_token(ir)["all_layers"] == 2 * (latent + 2 * 24 + 1)
        remark = next(one.remark for one in ir.modules if isinstance(one.operation, Indexer))
        assert "an engine may keep less" in remark

    def test_widths_beside_the_mixer_are_not_those_of_its_heads(self) -> None:
        """Its four residual streams are as wide as its 64 heads of 256 are: ranks do not split them."""
        ir = graph(GROUPS)
        steps = [step for block in ir.model.architecture.blocks.values() for step in block.steps]
        streams = [step for step in steps if "hc" in step.step and step.work == "product"]
        assert streams
        assert not any("heads" in step.sizes["inputs"] for step in streams)

    def test_attention_looks_at_the_blocks_that_are_chosen(self) -> None:
        """Three blocks of eight tokens; norms of the indexer have its widths, not those of the KV heads."""
        ir = graph(BLOCKS)
        spans = {one.operation.span for one in ir.modules if isinstance(one.operation, Attention)}
        assert {(span.kind, length_of(span)) for span in spans} >= {("selected", 24)}
        steps = [step for block in ir.model.architecture.blocks.values() for step in block.steps]
        own = [step for step in steps if "indexer" in step.step and step.work in ("norm", "qk_norm")]
        assert {size for step in own for size in step.sizes["width"].split(" + ")} == {
            "index_heads*index_head_dim",
            "index_head_dim",
        }

    def test_what_is_done_query_by_query_is_done_for_all_of_them(self) -> None:
        """Sixteen tokens a block, 2,048 of them chosen; each query of the prompt is scored by itself."""
        ir = graph(BY_QUERY)
        facts = ir.model.architecture
        [work] = [one.operation for one in ir.modules if isinstance(one.operation, Indexer)]
        assert work.entry_tokens is not None and work.entry_tokens.value == 16
        assert (facts.value("index_heads"), facts.value("index_head_dim")) == (4, 256)
        assert facts.value("index_topk") == 2048
        norms = [one for one in ir.modules if "indexer_k" in one.step]
        assert len(norms) == 1
        keys = 2 * (2 * 2 * 256 + 256)
        assert kv_bytes_per_token(ir)["all_layers"] == keys * facts.value("layers.attention.moe")

    def test_a_group_that_no_field_states_is_refused(self) -> None:
        """Two fields may both be the size of a group."""
        text = GROUPS["text_config"] | {"index_kpool": 16, "index_n_heads": 20}
        with pytest.raises(InputError, match="no field says how large a group is"):
            graph(GROUPS | {"text_config": text})


def test_shipped_minimax_m3_looks_at_chosen_blocks() -> None:
    """16 blocks of 128 tokens, as its config states them."""
    ir = build_ir(load_model("minimax-m3-nvfp4"))
    spans = [one.operation.span for one in ir.modules if isinstance(one.operation, Attention)]
    assert ("selected", 2048) in {(span.kind, length_of(span)) for span in spans}


def test_tables_that_tokens_are_looked_up_in_are_not_active() -> None:
    """Gemma-4-E2B: 35 layers have a table of 256 channels a token, which no product reads."""
    size = parameters(build_ir(load_model("gemma-4-e2b")))
    assert size["active"] - size["active_without_input_embedding"] == 262144 * 35 * 256 + size["vision"]


def test_towers_that_no_text_runs_are_not_in_the_sums(make: Make) -> None:
    """They stand apart; what runs is in the sums."""
    scenario = {"model": "gemma-4-e2b", "accelerator": "h100-sxm", "tp": 1}
    sheet = ir_sheet(make(**scenario).equations)
    assert "vision" not in {row.id for row in sheet.rows}
    assert [row.name.value for row in sheet.apart] == ["Towers, not run"]
    assert len(sheet.shares) == len(sheet.rows)
