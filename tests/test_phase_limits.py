"""What prefill and decode workers have to themselves: limits of a step, and how a KV cache is divided."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import few

from mantile import estimate
from mantile.estimates.estimate import Estimate
from mantile.estimates.launch import launch
from mantile.library.errors import InputError
from mantile.library.scenario import merge_fields, parse_scenario
from mantile.verification.verify import verify

APART: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 2000,
    "output_tokens": 500,
    "concurrency": 64,
}
SAME = ("ttft_s", "tpot_s", "e2e_s", "output_tokens_per_s", "memory_per_accelerator_bytes")


def results(**fields: Any) -> dict[str, Any]:
    """Of a scenario with decode workers."""
    return estimate(parse_scenario(merge_fields(APART | {"decode": {}}, fields, "test"), "test")).results()


def test_stated_as_the_other_phase_nothing_changes() -> None:
    """Decode workers follow the deployment; the same value stated for them is the same."""
    plain = results(max_requests=16, token_budget=4096)
    stated = results(max_requests=16, token_budget=4096, decode_max_num_seqs=16, decode_token_budget=4096)
    assert {key: plain[key] for key in SAME} == {key: stated[key] for key in SAME}


def test_requests_of_a_decode_step_are_limited_by_themselves() -> None:
    """Fewer in a step are faster, and fewer; the limit of prefill workers does not touch them."""
    free = results()
    found = [results(decode_max_requests=most) for most in (4, 8, 16)]
    assert [one["batch"] for one in found] == [4, 8, 16] and free["batch"] > 16
    times = [one["tpot_s"] for one in (*found, free)]
    assert times == sorted(times) and times[0] < times[-1]
    made = results(prefill_max_requests=1)
    assert made["batch"] == free["batch"] and made["tpot_s"] == free["tpot_s"]


def test_prompts_of_a_prefill_step_are_limited_by_themselves() -> None:
    """Each attention group takes a prompt, as far as the limit allows; decode keeps its batch."""
    moe: dict[str, Any] = {"model": "deepseek-v2-lite", "attention_dp": 4, "decode": {"attention_dp": 4}}
    scenario = merge_fields(APART | moe, {"prefill_max_num_seqs": 2}, "test")
    limited, free = (estimate(parse_scenario(data, "test")) for data in (scenario, APART | moe))
    prompts = [made.values()[made.equations.figures["prefill.requests"]] for made in (limited, free)]
    assert prompts == [2, 4]
    assert limited.results()["batch"] == free.results()["batch"]
    full: dict[str, Any] = {"concurrency": 1000, "output_tokens": 20}  # prefill workers pass on all they can
    rates = [
        results(**moe, **full, prefill_max_requests=most)["output_tokens_per_s"] for most in (1, 2, 4, 8)
    ]
    assert rates[0] < rates[1] < rates[2] == rates[3]


def test_a_token_budget_of_decode_workers_is_memory_of_theirs() -> None:
    """Prefill workers keep theirs."""
    found = []
    for limits in ({}, {"decode_token_budget": 4096}):
        data = merge_fields(
            APART | {"decode": {}}, {"token_budget": 16384, "max_requests": 16, **limits}, "test"
        )
        made = estimate(parse_scenario(data, "test"))
        values, figures = made.values(), made.equations.figures
        found.append([values[figures[f"{phase}memory.activations"]] for phase in ("", "decode.")])
    assert found[0][0] == found[0][1] == found[1][0] > found[1][1]


def test_launch_lines_of_each_phase_say_its_limit() -> None:
    """The flags of the decode server say its limits; those of the prefill server its own."""
    data = merge_fields(
        APART | {"decode": {}}, {"prefill_max_requests": 8, "decode_max_requests": 32}, "test"
    )
    first, last = launch(estimate(parse_scenario(data, "test"))).servers
    said = [
        next(flag.value for flag in server.flags if flag.flag == "--max-num-seqs") for server in (first, last)
    ]
    assert said == ["8", "32"]


def test_the_same_workers_have_one_limit() -> None:
    """Where both phases share workers, another limit of decode is refused."""
    made = results(serving="aggregated", max_requests=8, decode_max_requests=4)
    assert "PHASES_DIFFER" in [one["code"] for one in made["checks"]["errors"]]


def test_prefill_alone_beside_defaults_of_the_engine_names_the_way_out() -> None:
    with pytest.raises(InputError, match=r"prefill_max_requests: .*expected decode_max_requests beside it"):
        results(engine_defaults="framework", prefill_max_requests=4)
    both = results(engine_defaults="framework", prefill_max_requests=4, decode_max_requests=8)
    assert both["batch"] == 8


LATENT: dict[str, Any] = {"model": "deepseek-v2-lite", "tp": 4, "decode": {"tp": 4}}


def test_ranks_of_decode_workers_alone_divide_the_tokens_of_a_cache() -> None:
    """Their caches hold more requests; prefill workers keep theirs. Stated for both it is that of each."""
    plain, both = results(**LATENT), results(**LATENT, dcp=2)
    decode, prefill = results(**LATENT, decode_dcp=2), results(**LATENT, prefill_dcp=2)
    for key in ("tpot_s", "kv_capacity_sequences"):
        assert decode[key] == both[key] != plain[key] == prefill[key], key
    assert decode["kv_capacity_sequences"] > 1.9 * plain["kv_capacity_sequences"]
    assert decode["ttft_s"] == pytest.approx(plain["ttft_s"], rel=0.05)


def test_ranks_that_hold_other_heads_divide_no_tokens() -> None:
    """Refused of decode workers by themselves."""
    made = results(tp=2, decode_tp=2, decode_dcp=2)
    assert [one["code"] for one in made["checks"]["errors"]] == ["DECODE_DCP_NOT_DIVISOR"]


def test_the_launch_line_of_decode_workers_says_it() -> None:
    data = merge_fields(APART | LATENT, {"decode_dcp": 2}, "test")
    first, last = launch(estimate(parse_scenario(data, "test"))).servers
    said = [{flag.flag: flag.value for flag in server.flags} for server in (first, last)]
    assert [of.get("--decode-context-parallel-size") for of in said] == [None, "2"]


@pytest.mark.exhaustive
def test_the_workbook_holds_them(tmp_path: Path) -> None:
    limits = {"decode_max_requests": 8, "decode_token_budget": 2048}
    data = merge_fields(APART | {"decode": {}}, LATENT | {"decode_dcp": 2} | limits, "test")
    made = estimate(parse_scenario(data, "test"), library=few(("h100-sxm",)))
    assert verify(made.to_excel(tmp_path / "a.xlsx")).ok


def test_decode_workers_may_hold_other_weights() -> None:
    """Their memory and step are those of a deployment in that format, the prompt of workers apart stays as it
    was; the launch line of decode workers names it.
    """
    lengths = {"input_tokens": 4000, "output_tokens": 500}
    asked = {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 4, "concurrency": 8, **lengths}
    apart, own = (
        estimate(parse_scenario(asked | {"decode": {"weights_dtype": dtype}}, "test"))
        for dtype in ("bf16", "fp8")
    )

    def at(made: Estimate, name: str) -> float:
        return float(made.values()[made.figure(name)])

    assert at(own, "memory.weights") == at(apart, "memory.weights")
    assert at(own, "prefill.time") == at(apart, "prefill.time")
    whole = estimate(parse_scenario(asked | {"weights_dtype": "fp8", "activation_dtype": "bf16"}, "test"))
    assert at(own, "decode.memory.weights") == pytest.approx(at(whole, "memory.weights"), rel=1e-9)
    assert at(own, "decode.memory.weights") < 0.6 * at(apart, "decode.memory.weights")
    assert own.results()["tpot_s"] < 0.9 * apart.results()["tpot_s"]
    assert ["FP8" in server.model for server in launch(own).servers] == [False, True]
