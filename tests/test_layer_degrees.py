"""Degrees of one kind of layer: FFNs over fewer ranks than attention, an embedding that each rank holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Make

from mantile.verification.verify import verify

SAME = ("ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s", "memory_per_accelerator_bytes")
MODELS = ("llama-3.3-70b", "deepseek-v3.1")
WIDE: dict[str, Any] = {"accelerator": "gb200-nvl72", "system": "gb200-nvl72", "concurrency": 4}


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        ({"tp": 8}, {"ffn_tp": 8}),
        ({"tp": 8}, {"ffn_tp": 0, "embedding_tp": 0}),
        ({"tp": 8}, {"embedding_tp": 8}),
        ({"tp": 2, "attention_dp": 4}, {"ffn_tp": 8}),
        ({"tp": 8, "sequence_parallel": "on"}, {"ffn_tp": 8}),
        ({"tp": 1}, {"ffn_tp": 1, "embedding_tp": 1}),
    ],
)
def test_what_follows_without_is_the_same_stated(make: Make, fields: dict[str, Any], stated: Any) -> None:
    base = make(model="qwen3-32b", **fields).results()
    other = make(model="qwen3-32b", **fields, **stated).results()
    assert {key: other[key] for key in SAME} == pytest.approx({key: base[key] for key in SAME}, rel=1e-12)


def test_groups_of_ranks_hold_copies_of_ffns(make: Make) -> None:
    """Memory by the columns that a rank holds, and fewer ranks are slower: each works on all tokens."""
    ffns = 80 * 3 * 8192 * 28672 * 2
    found = {ffn: make(**WIDE, tp=8, ffn_tp=ffn).results() for ffn in (1, 2, 4, 8)}
    for ffn, one in found.items():
        more = one["memory_parts"]["weights"] - found[8]["memory_parts"]["weights"]
        assert more == pytest.approx(ffns * (1 / ffn - 1 / 8), rel=1e-9)
    times = [(found[ffn]["ttft_s"], found[ffn]["tpot_s"]) for ffn in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)


def test_an_ffn_of_one_rank_needs_no_message(make: Make) -> None:
    """Messages after attention and the embedding stay."""
    made = make(**WIDE, tp=8, ffn_tp=1)
    values, figures = made.values(), made.equations.figures
    assert values[figures["decode.ffn_sum.time"]] == 0
    assert values[figures["decode.all_reduce.count"]] == 81
    some = make(**WIDE, tp=8, ffn_tp=2)
    assert some.values()[some.equations.figures["decode.ffn_sum.time"]] > 0


@pytest.mark.parametrize("model", MODELS)
def test_an_embedding_that_each_rank_holds(make: Make, model: str) -> None:
    """Its rows are on every rank, and no sum follows it."""
    split = make(**WIDE, model=model, tp=8)
    whole = make(**WIDE, model=model, tp=8, embedding_tp=1)
    facts = whole.model.architecture
    size = facts.value("vocabulary") * facts.value("hidden_size") * 2
    more = whole.results()["memory_parts"]["weights"] - split.results()["memory_parts"]["weights"]
    assert more == pytest.approx(size * 7 / 8, rel=1e-9)
    counts = [one.values()[one.equations.figures["decode.all_reduce.count"]] for one in (split, whole)]
    assert counts[0] - counts[1] == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"ffn_tp": 3}, "FFN_TP_NOT_POSSIBLE"),
        ({"ffn_tp": 16}, "FFN_TP_NOT_POSSIBLE"),
        ({"embedding_tp": 2}, "EMBEDDING_TP_NOT_POSSIBLE"),
        ({"embedding_tp": 16}, "EMBEDDING_TP_NOT_POSSIBLE"),
    ],
)
def test_degrees_that_no_ranks_have_are_refused(make: Make, fields: dict[str, Any], code: str) -> None:
    made = make(**WIDE, tp=8, **fields).results()
    assert code in [one["code"] for one in made["checks"]["errors"]] and made["tpot_s"] is None


@pytest.mark.exhaustive
def test_the_workbook_holds_them(make: Make, tmp_path: Path) -> None:
    made = make(**WIDE, model="deepseek-v3.1", tp=8, ffn_tp=2, embedding_tp=1)
    assert verify(made.to_excel(tmp_path / "a.xlsx")).ok
