"""What prompts find in a cache: limits, pairs of tokens, room, turns; conversations and a cache simulated."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mantile.estimates.estimate import Estimate
from mantile.estimates.sweep import sweep
from mantile.library.scenario import parse_scenario

Make = Callable[..., Estimate]
PROMPT = 4096


def value(made: Estimate, identifier: str) -> float:
    """A figure of the base scenario."""
    return float(made.values()[made.figure(identifier)])


# --- limits -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"request_rate": 2.0, "concurrency": None}, {"batching": "static"}])
def test_nothing_found_is_as_without_a_cache(make: Make, more: dict[str, Any]) -> None:
    """To the last bit, whatever room there is for prefixes; the host has that room taken."""
    without = make(input_tokens=PROMPT, **more).results()
    found = make(input_tokens=PROMPT, prefix_hit_rate=0, prefix_host=50, prefixes=100, **more).results()
    assert found["prefix_hits"] == 0
    taken = found["ram_peak_bytes"] - without["ram_peak_bytes"]
    assert taken == pytest.approx(8 * 50e9)
    for one in (found, without):
        del one["ram_peak_bytes"], one["memory_range_80"]["ram_peak"]
    assert {name: figure for name, figure in found.items() if name in without} == without


def test_a_prompt_that_is_found_whole_works_out_its_last_block(make: Make) -> None:
    """Its last token is always worked out, with all of its block."""
    made = make(input_tokens=PROMPT, prefix_hit_rate=1, prefix_block=16)
    assert value(made, "prefix.computed") == 16
    assert value(make(input_tokens=PROMPT, prefix_hit_rate=1, prefix_block=1), "prefix.computed") == 1
    assert value(make(input_tokens=PROMPT + 5, prefix_hit_rate=1, prefix_block=16), "prefix.computed") == 5
    short = make(input_tokens=16).results()
    assert made.results()["ttft_s"] == pytest.approx(short["ttft_s"], rel=0.1)


def test_half_a_prompt_takes_half_the_products_and_three_quarters_of_the_pairs(make: Make) -> None:
    """Tokens of the second half attend to all before them."""
    whole, half = make(input_tokens=PROMPT), make(input_tokens=PROMPT, prefix_hit_rate=0.5)
    assert value(half, "prefill.ffn_up.flops") == pytest.approx(value(whole, "prefill.ffn_up.flops") / 2)
    assert value(half, "prefill.attention.flops") == pytest.approx(
        value(whole, "prefill.attention.flops") * 3 / 4
    )
    assert half.results()["prefix_hits"] == 0.5


def pairs(first: int, prompt: int, reach: int, chunk: int) -> float:
    """Tokens that tokens `first` to the last attend to on average, counted in the middle of each."""
    total = 0.0
    for place in range(first, prompt):
        before = place + 0.5
        total += min(before, reach) if not chunk else before % chunk
    return total / (prompt - first)


@pytest.mark.parametrize(
    ("model", "reach", "chunk", "span"),
    [
        ("gpt-oss-20b", 128, 0, "sliding_window"),
        ("llama-4-scout", 10**9, 8192, "attention_chunk"),
        ("llama-3.3-70b", 10**9, 0, ""),
    ],
)
@pytest.mark.parametrize("rate", [0.0, 0.01, 0.4, 0.95])
def test_pairs_of_tokens_are_those_that_are_counted(
    make: Make, model: str, reach: int, chunk: int, span: str, rate: float
) -> None:
    """In a window, in chunks and without limit."""
    made = make(model=model, input_tokens=10_000, prefix_hit_rate=rate, prefix_block=1, tp=4)
    contexts = {
        figure.id: number
        for figure, number in made.values().items()
        if str(getattr(figure, "id", "")).startswith("prefill.context")
    }
    wanted = next(
        number
        for name, number in contexts.items()
        if (name == "prefill.context" or name.endswith(span or ".full"))
        and "head" not in name
        and "whole" not in name
    )
    first = 10_000 - int(value(made, "prefix.computed"))
    assert float(wanted) == pytest.approx(pairs(first, 10_000, reach, chunk), rel=0.005)


# --- what is shared, and turns ------------------------------------------------------------------------------


def test_what_all_requests_share_lies_in_the_cache_once(make: Make) -> None:
    """Counted by hand: a batch of 16, each with the other half of its prompt and its output."""
    made, without = make(input_tokens=PROMPT, shared_prefix=2048), make(input_tokens=PROMPT)
    of_token = value(made, "memory.prefix_bytes_per_token")
    saved = value(without, "memory.kv") - value(made, "memory.kv")
    requests = value(made, "memory.seats")
    assert saved == pytest.approx((requests - 1) * 2048 * of_token)
    assert made.results()["kv_capacity_sequences"] > without.results()["kv_capacity_sequences"] * 1.5


def test_turns_are_those_of_a_simulated_conversation(make: Make) -> None:
    """Every prompt holds the shared prefix, all messages and answers so far, and a new message."""
    shared, message, answer, turns = 480, 160, 256, 5
    prompts = [shared + turn * (message + answer) + message for turn in range(turns)]
    before = [prompt - message for prompt in prompts]
    mean = sum(prompts) // turns
    assert mean * turns == sum(prompts)
    made = make(input_tokens=mean, output_tokens=answer, shared_prefix=shared, turns=turns)
    assert value(made, "prefix.hit_default") == pytest.approx(sum(before) / sum(prompts))


def test_a_prompt_shorter_than_its_head_is_no_plan(make: Make) -> None:
    """Answers of forty turns are longer than the prompt."""
    results = make(input_tokens=1000, output_tokens=256, turns=40).results()
    assert results["feasibility"] == "invalid" and results["ttft_s"] is None
    assert [check["code"] for check in results["checks"]["errors"]] == ["PREFIX_EXCEEDS_INPUT"]


# --- room ---------------------------------------------------------------------------------------------------


def test_the_share_that_is_found_is_that_of_a_simulated_cache(make: Make) -> None:
    """The prefix longest unused is thrown out; requests come back to each equally often."""
    made = make(input_tokens=PROMPT, prefix_hit_rate=0.5, prefixes=5000, tp=8)
    room = value(made, "memory.free") / (2048 * value(made, "memory.prefix_bytes_per_token"))
    kept: OrderedDict[int, None] = OrderedDict()
    dice, hits, asked = random.Random(1), 0, 0
    for number in range(120_000):
        prefix = dice.randrange(5000)
        if number > 20_000:
            asked += 1
            hits += prefix in kept
        kept[prefix] = None
        kept.move_to_end(prefix)
        if len(kept) > int(room):
            kept.popitem(last=False)
    assert value(made, "prefix.kept") == pytest.approx(hits / asked, rel=0.02)
    assert "PREFIXES_WITHOUT_ROOM" in {check["code"] for check in made.results()["checks"]["alerts"]}


def test_tiers_take_what_has_no_room_before_them(make: Make) -> None:
    """Host, then disk; what lies there is fetched at their bandwidth, which takes time."""
    asked = {"input_tokens": PROMPT, "prefix_hit_rate": 0.5, "prefixes": 5000, "tp": 8}
    bare = make(**asked)
    tiers = make(**asked, prefix_host=40, prefix_disk=60, prefix_disk_bandwidth=2)
    of_all = value(bare, "prefix.bytes")
    assert value(tiers, "prefix.here") == value(bare, "prefix.here")
    assert value(tiers, "prefix.on_host") == pytest.approx(40e9 / of_all)
    assert value(tiers, "prefix.on_disk") == pytest.approx(60e9 / of_all)
    size = 2048 * value(tiers, "memory.prefix_bytes_per_token")
    slow = size * value(tiers, "prefix.on_disk") / 2e9
    assert value(tiers, "prefix.fetch") > slow > 0
    assert tiers.results()["prefix_hits"] > bare.results()["prefix_hits"]
    assert tiers.results()["ttft_s"] < bare.results()["ttft_s"]
    none = make(**asked | {"accelerator": "tpu-v5e", "tp": 8}, prefix_host=40)
    if value(none, "prefix.on_host") == 0:
        assert "OFFLOAD_WITHOUT_HOST" in {check["code"] for check in none.results()["checks"]["errors"]}


@given(
    rate=st.floats(0, 1),
    block=st.integers(1, 512),
    prefixes=st.sampled_from([0, 1, 50, 3000]),
    host=st.sampled_from([0, 5, 500]),
    shared=st.sampled_from([0, 100, 3000]),
)
@settings(max_examples=10, deadline=None)
def test_more_never_hurts(
    make: Make, rate: float, block: int, prefixes: int, host: float, shared: int
) -> None:
    """More hits and more room never find less; what is worked out and what is found is the prompt."""
    asked: dict[str, Any] = {
        **{"input_tokens": PROMPT, "prefix_block": block, "prefixes": prefixes},
        **{"prefix_host": host, "shared_prefix": shared, "prefix_hit_rate": rate},
    }
    made, more = make(**asked), make(**asked | {"prefix_hit_rate": (1 + rate) / 2})
    wide = make(**asked | {"prefix_host": host * 2 + 1})
    assert value(made, "prefix.found") + value(made, "prefix.computed") == pytest.approx(PROMPT)
    assert value(made, "prefix.found") <= value(wide, "prefix.found") + 1e-9
    assert value(made, "prefix.computed") >= 1
    assert value(made, "serving.ttft") >= value(made, "floor.ttft") > 0
    if not prefixes:
        assert more.results()["ttft_s"] <= made.results()["ttft_s"] * (1 + 1e-9)
        assert more.results()["tpot_s"] <= made.results()["tpot_s"] * (1 + 1e-9)


def test_it_can_be_swept(make: Make) -> None:
    """Points are estimates, though the scenario itself states nothing of prefixes."""
    fields = {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 8}
    fields |= {"input_tokens": PROMPT, "output_tokens": 256, "concurrency": 16}
    table = sweep(parse_scenario(fields, "scenario"), {"prefix_hit_rate": [0, 0.5, 1], "turns": [1, 3]})
    assert len(table) == 6
    for _, point in table.iterrows():
        made = make(**fields | {"prefix_hit_rate": point["prefix_hit_rate"], "turns": point["turns"]})
        assert point["ttft_s"] == made.results()["ttft_s"]
    turns = sweep(parse_scenario(fields, "scenario"), {"turns": [1, 3]})
    assert turns["ttft_s"].iloc[1] < turns["ttft_s"].iloc[0]
