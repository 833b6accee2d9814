"""Expert parallelism over many ranks: published figures of deployments, and the mechanisms behind them."""

from __future__ import annotations

import numpy as np
import pytest

import mantile
from mantile.graph.quantity import Input, Quantity
from mantile.library.scenario import parse_scenario

DEEPSEEK_V3 = {"model": "deepseek-r1", "framework": "sglang", "batching": "static", "tp": 1}
"""Static batches, so that a pass has as many prompts, or requests, as the published run."""


def estimated(**fields: object) -> dict[str, float]:
    """Figures of one deployment by id."""
    estimate = mantile.estimate(parse_scenario(DEEPSEEK_V3 | fields, "test"))
    values = estimate.values()
    return {
        name: float(np.ravel(values[figure])[0])
        for name, figure in estimate.equations.figures.items()
        if isinstance(figure, Input | Quantity) and np.ravel(values[figure]).dtype.kind == "f"
    }


def on_ranks(ranks: int, **fields: object) -> dict[str, float]:
    """Attention groups of one rank each, and experts over all of them."""
    return estimated(attention_dp=ranks, ep=ranks, **fields)


@pytest.mark.parametrize(
    ("phase", "accelerator", "ranks", "input_tokens", "requests", "published"),
    [
        # LMSYS, May 2025: nodes of 8 x H100, 57,674, 54,543 and 50,302 input tokens/s each, 22,282 output
        ("prefill", "h100-sxm", 32, 1024, 16, 57_674 / 8),
        ("prefill", "h100-sxm", 32, 2048, 8, 54_543 / 8),
        ("prefill", "h100-sxm", 32, 4096, 4, 50_302 / 8),
        ("decode", "h100-sxm", 72, 2000, 256, 22_282 / 8),
        # DeepSeek, February 2025: 14,800 output tokens/s per node of 8 x H800 at a mean length of 4,989
        ("decode", "h100-sxm", 144, 4739, 96, 14_800 / 8),
        # LMSYS, June 2025: GB200 NVL72, 7,583 output tokens/s per GPU
        ("decode", "gb200-nvl72", 48, 2000, 768, 7_583),
    ],
)
def test_published_figures_of_wide_deployments(
    phase: str, accelerator: str, ranks: int, input_tokens: int, requests: int, published: float
) -> None:
    """Tokens/s per accelerator of one phase by itself, within 25 %; nothing was fitted to them."""
    found = on_ranks(
        ranks,
        accelerator=accelerator,
        input_tokens=input_tokens,
        output_tokens=100 if input_tokens < 4500 else 500,
        concurrency=ranks * requests,
    )
    tokens = requests * (input_tokens if phase == "prefill" else 1)
    assert tokens / found[f"{phase}.time"] == pytest.approx(published, rel=0.25)


def test_the_busiest_rank_reads_more_experts_where_few_are_touched() -> None:
    """One token goes through 8 of 256 experts on 8 ranks: 2.6 on the busiest on average, by simulation."""
    random = np.random.default_rng(14)
    draws = [np.bincount(random.choice(256, 8, replace=False) // 32, minlength=8).max() for _ in range(4000)]
    common = {"accelerator": "h200-sxm", "input_tokens": 128, "output_tokens": 16}
    one = estimated(tp=8, ep=8, concurrency=1, **common)
    assert one["decode.experts_up.touched"] == pytest.approx(float(np.mean(draws)), rel=0.1)
    whole = estimated(tp=8, ep=1, concurrency=1, **common)
    assert whole["decode.coverage_busiest"] == whole["decode.coverage"]
    many = estimated(tp=8, ep=8, concurrency=1024, **common)
    assert many["decode.coverage_busiest"] == pytest.approx(1, abs=1e-3)


def test_a_token_goes_to_another_domain_once() -> None:
    """Four domains of eight ranks: at most three copies leave, where 7 ranks have one of its experts."""
    wide = on_ranks(32, accelerator="h100-sxm", input_tokens=1024, output_tokens=16, concurrency=64)
    copies, domains = wide["network.all_to_all.copies"], wide["network.all_to_all.domains"]
    assert copies == pytest.approx(32 * (1 - (31 / 32) ** 8))
    assert domains == pytest.approx(3 * (1 - (3 / 4) ** 8))
    assert wide["network.all_to_all.outside"] == pytest.approx(domains / copies)
    inside = on_ranks(8, accelerator="h100-sxm", input_tokens=1024, output_tokens=16, concurrency=64)
    assert inside["network.all_to_all.domains"] == 0 == inside["network.all_to_all.outside"]


def test_groups_that_send_tokens_keep_their_dense_layers_to_themselves() -> None:
    """No rank gathers the tokens of all others for the few dense layers, whose weights each then holds."""
    common = {"accelerator": "h200-sxm", "input_tokens": 1024, "output_tokens": 16, "concurrency": 64}
    sent = estimated(attention_dp=8, ep=8, **common)
    gathered = estimated(attention_dp=8, ep=1, **common)
    assert sent["decode.gather.time"] == 0 < gathered["decode.gather.time"]
    assert sent["decode.dispatch.time"] > 0 == gathered["decode.dispatch.time"]
    assert sent["plan.ffn"] == 8 * gathered["plan.ffn"]
