"""Prefill and decode apart.

Each side is what it would be alone, what is handed over, who waits for whom; and together nothing changes.
"""

from __future__ import annotations

import functools
import heapq
import random
import statistics
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Quantity
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario
from mantile.workbook.layout import lay_out

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 4000,
    "output_tokens": 400,
    "concurrency": 64,
}


def ask(**fields: Any) -> Estimate:
    """An 8B model on one H100 unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


def look(made: Estimate, column: int = 0) -> Callable[[str], Any]:
    """Values by id."""
    values = made.values(column)
    return lambda name: values[made.figure(name)]


def override(**figures: float) -> dict[str, Any]:
    """Fields with factors replaced; __ stands for a dot."""
    return {
        "overrides": [
            {"id": name.replace("__", "."), "value": value, "reason": "test"}
            for name, value in figures.items()
        ]
    }


def chosen(made: Estimate) -> dict[tuple[str, ...], int]:
    """The column of the profile in use, by factor and the profiles that have it."""
    values = made.values()
    return {
        (name, *table.figures): int(values[table.choice.place])
        for name, factor in made.equations.workers[0].efficiency.in_use.items()
        for table in factor.tables
    }


# --- aggregated ---------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_variant_alone_may_have_decode_workers() -> None:
    """The base is built with its sweep, and its titles name no decode workers."""
    book = lay_out(ask(variants=[{"name": "apart", "decode": {"tp": 2, "accelerator": "b200-sxm"}}]))
    values = book.values(book.generated_inputs())[0]
    title, line = (str(values[book.sheets["Summary"].cells[row, 1].expression]) for row in (0, 1))
    assert title.startswith("Llama-3.1-8B on 1 × H100 SXM: ") and "→" not in line


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tp": 8, "pp": 2, "dp": 2},
        {"batching": "static"},
        {"model": "deepseek-r1", "accelerator": "gb200-nvl72", "attention_dp": 16, "ep": 16},
        {"model": "gpt-oss-120b", "tp": 4, "ep": 2, "sequence_parallel": "on"},
        {"model": "nemotron-3-nano", "tp": 2, "offload_weights": 5},
        {"accelerator": "rtx-4090", "weights_dtype": "fp8", "concurrency": 4},
        {"accelerator": "dgx-spark-gb10", "concurrency": 4},
    ],
)
def test_aggregated_serving_is_the_estimate_without_decode_workers(fields: dict[str, Any]) -> None:
    """In a workbook with both, the aggregated column says what a workbook without says.

    Every result and every figure.
    """
    one = ask(**fields)
    column = ask(**fields, serving="aggregated", variants=[{"name": "apart", "serving": "disaggregated"}])
    for two in (column, ask(**fields, serving="aggregated", decode={})):
        found, expected = two.results(), one.results()
        for results in (found, expected):
            checks = results.pop("checks")
            for (
                kind,
                raised,
            ) in (
                checks.items()
            ):  # where the workers are the same, what is said of one side is said of the other
                results[kind] = {check["code"].removeprefix("DECODE_") for check in raised}
        assert {name: value for name, value in found.items() if name in expected and name != "name"} == {
            name: value for name, value in expected.items() if name != "name"
        }
        here, there = one.values(), two.values()
        for name, figure in one.equations.figures.items():
            other = two.equations.figures.get(name)
            if (
                other is not None
                and not name.startswith(("checks.", "efficiency.source.", "typed.number."))
                and not name.endswith(".override")
            ):
                assert here[figure] == there[other] or (
                    name.startswith("measured.")
                    and here[figure] != here[figure]
                    and there[other] != there[other]
                ), name
        mine, theirs = chosen(one), chosen(two)
        assert mine and mine.items() <= theirs.items()


# --- each side alone ----------------------------------------------------------------------------------------


SIDES = (
    ({"accelerator": "b200-sxm", "tp": 2}, {"accelerator": "h200-sxm", "tp": 1, "dp": 2}),
    (
        {"model": "deepseek-r1", "accelerator": "b200-sxm", "tp": 8, "dp": 4},
        {"accelerator": "gb200-nvl72", "tp": 1, "dp": 1, "attention_dp": 32, "ep": 32},
    ),
    ({"model": "gpt-oss-120b", "tp": 2}, {"accelerator": "mi300x", "tp": 1, "framework": "sglang"}),
    (
        {"model": "qwen3-235b-a22b", "weights_dtype": "fp8", "tp": 4, "cp": 2},
        {"tp": 8, "cp": 1, "ep": 8, "pp": 2},
    ),
)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("prefill", "decode"), SIDES)
def test_each_side_is_what_its_accelerators_do_alone(prefill: dict[str, Any], decode: dict[str, Any]) -> None:
    """Prefill passes are those of the prefill chip and plan.

    Decode passes, memory and batch those of the decode chip and plan.
    """
    apart = look(ask(**prefill, decode=decode))
    first = look(ask(**prefill))
    fields = prefill | decode
    # the activation format follows the first accelerator
    alone = ask(**fields, activation_dtype=ask(**prefill).results()["activation_dtype"])
    last = look(alone)
    assert apart("prefill.time") == pytest.approx(first("prefill.time"), rel=1e-12)
    assert apart("disaggregated.all.decode.time") == pytest.approx(last("decode.time"), rel=1e-12)
    steps = [
        alone.figure(name)
        for name in ("decode.time", "decode.requests", "serving.decode_step", "serving.bubble", "decode.mbu")
    ]
    requests = apart("decode.batch") * fields.get("dp", 1)
    of_those_in_decode = Program(steps).run(alone.inputs(0) | {"inputs.concurrency": requests})
    for step in steps:
        assert apart(step.id) == pytest.approx(of_those_in_decode[step], rel=1e-12), step.id
    for name in (
        "memory.weights",
        "memory.batch",
        "memory.capacity_sequences",
        "memory.used",
        "plan.stage_ranks",
    ):
        assert apart(f"decode.{name}") == pytest.approx(last(name), rel=1e-12), name
    # alone either does both phases, so that it is busier
    assert 0 < apart("cost.power") <= first("cost.power") + last("cost.power")
    assert apart("cost.usd_per_hour") == pytest.approx(
        first("cost.usd_per_hour") + last("cost.usd_per_hour"), rel=1e-12
    )
    assert apart("serving.accelerators") == first("serving.accelerators") + last("serving.accelerators")


@pytest.mark.parametrize("tp", [1, 4])
def test_nothing_stalls_decode_where_prefill_is_elsewhere(tp: int) -> None:
    """TPOT is the decode step, whatever prefill takes; together a step has more requests, and a stall.

    Of the transfer only the last layer is seen: the others follow prefill.
    """
    free = override(efficiency__kv_transfer_overlap=1)
    apart, together = look(ask(tp=tp, decode={}, **free)), look(ask(tp=tp))
    assert apart("serving.stall") == apart("serving.queue") == 0
    assert 0 < apart("serving.transfer") < apart("serving.prefill") / 100
    assert (
        apart("serving.tpot")
        == apart("serving.decode_step")
        < together("serving.decode_step")
        < together("serving.tpot")
    )
    assert apart("serving.prefill") == together("serving.prefill")
    slower = look(ask(accelerator="a100-80gb-sxm", tp=tp, decode={"accelerator": "h100-sxm"}, **free))
    assert slower("disaggregated.all.decode.time") == apart("disaggregated.all.decode.time")
    assert slower("decode.batch") < apart("decode.batch") and slower("serving.tpot") < apart("serving.tpot")
    assert slower("serving.prefill") > apart("serving.prefill")
    alone = look(ask(tp=tp, decode={}, concurrency=1, **free))
    together = look(ask(tp=tp, concurrency=1))
    expected = together("serving.ttft") + alone("serving.transfer")
    assert alone("serving.ttft") == pytest.approx(expected, rel=1e-12)


# --- what is handed over ------------------------------------------------------------------------------------

# Bytes of a token in all layers, from the architectures: layers x (keys and values of all KV heads, or latent
# and rotated key) x 2
PER_TOKEN = {
    "llama-3.1-8b": 32 * 2 * 8 * 128 * 2,
    "qwen3-235b-a22b": 94 * 2 * 4 * 128 * 2,
    "deepseek-r1": 61 * (512 + 64) * 2,
    "deepseek-v3.2": 61 * (1152 + 132),
}
PLANS: tuple[dict[str, int], ...] = (
    {},
    {"tp": 4},
    {"tp": 8},
    {"tp": 16},
    {"cp": 4},
    {"tp": 2, "cp": 2},
    {"attention_dp": 4},
    {"pp": 4},
    {"dp": 3},
)


@pytest.mark.parametrize("model", PER_TOKEN)
def test_a_prompts_cache_is_handed_over_once(model: str) -> None:
    """KV bytes of a token x tokens of the prompt.

    However many ranks hold copies of KV heads or latents, or shares of the prompt.
    """
    made = ask(model=model, accelerator="gb200-nvl72", decode={})
    program = Program([made.figure("serving.transfer_bytes")])
    found = {
        str(plan): float(
            program.run(made.inputs(0) | {f"inputs.{name}": value for name, value in plan.items()})[
                program.outputs[0]
            ]
        )
        for plan in PLANS
    }
    assert found == {plan: PER_TOKEN[model] * 4000 for plan in found}


def test_a_window_hands_over_no_more_than_it_keeps() -> None:
    """gpt-oss: 18 of 36 layers look back 128 tokens; the others keep all of the prompt."""
    layer = 2 * 8 * 64 * 2
    assert look(ask(model="gpt-oss-120b", decode={}))("serving.transfer_bytes") == 18 * layer * (4000 + 128)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "deepseek-r1"])
def test_overlap_hides_the_transfer(model: str) -> None:
    """Behind the layers that follow, so no longer than prefill lasts, and never that of the last layer."""
    fields = {
        "model": model,
        "accelerator": "gb200-nvl72",
        "attention_dp": 8,
        "ep": 8 if model == "deepseek-r1" else 1,
        "decode": {},
    }

    def transfer(share: float, network: float) -> tuple[float, float, float]:
        factors = override(efficiency__kv_transfer_overlap=share, hardware__scale_out_bandwidth=network)
        at = look(ask(**fields, **factors))
        return at("serving.transfer_time"), at("serving.transfer"), at("serving.prefill_through")

    layers = len(load_model(model).architecture.sequence())
    for network in (0.1, 100.0):
        whole, seen, prefill = transfer(0, network)
        assert seen == whole >= PER_TOKEN[model] * 4000 / (network * 1e9)
        for share in (0.5, 1):
            hidden = share * (1 - 1 / layers) * min(whole, prefill)
            assert transfer(share, network)[1] == pytest.approx(whole - hidden, rel=1e-9)
    assert transfer(1, 0.1)[0] > prefill  # a slow network is not hidden


# --- who waits for whom -------------------------------------------------------------------------------------


def test_workers_match_where_their_rates_do() -> None:
    """Prefill workers per decode worker.

    Prompts a decode worker finishes in a second over prompts a prefill worker does.
    """
    made = ask(accelerator="h100-sxm", dp=2, decode={"accelerator": "h200-sxm", "dp": 3}, concurrency=300)
    at = look(made)
    prefill = 1 / at("prefill.time")
    decode = at("decode.memory.batch") / (400 * at("serving.tpot"))
    assert (
        at("serving.workers_ratio")
        == made.results()["workers_ratio"]
        == pytest.approx(decode / prefill, rel=1e-12)
    )
    assert at("serving.matched_workers") == pytest.approx(3 * decode / prefill, rel=1e-12)
    assert at("serving.prefill_limit") == pytest.approx(2 * prefill, rel=1e-12)
    assert made.results()["requests_per_s"] <= at("serving.prefill_limit") * (1 + 1e-12)


@pytest.mark.exhaustive
@settings(max_examples=25)
@given(
    attention_dp=st.sampled_from((1, 2, 4, 8)),
    concurrency=st.integers(1, 3000),
    tokens=st.integers(100, 60_000),
    decoders=st.integers(1, 8),
)
def test_more_prefill_workers_never_make_anybody_wait_longer(
    attention_dp: int, concurrency: int, tokens: int, decoders: int
) -> None:
    """Waits never rise with prefill workers, throughput never falls; as more decode, steps are longer.

    Prefill is never asked for more than it can do.
    """
    made, program, wanted = prefilling()
    found = []
    for workers in (1, 2, 3, 4, 8, 16, 64):
        values = program.run(
            made.inputs(0)
            | {
                "inputs.dp": workers,
                "inputs.attention_dp": attention_dp,
                "inputs.concurrency": concurrency,
                "inputs.input_tokens": tokens,
                "inputs.decode_dp": decoders,
            }
        )
        found.append({name: float(values[figure]) for name, figure in wanted.items()})
    for fewer, more in pairwise(found):
        assert more["prefill_wait"] <= fewer["prefill_wait"] + 1e-9
        assert more["requests_per_s"] >= fewer["requests_per_s"] * (1 - 1e-3)
        assert more["tpot"] >= fewer["tpot"] * (1 - 1e-9)
    assert all(each["requests_per_s"] <= each["prefill_limit"] * (1 + 1e-9) for each in found)


@settings(max_examples=8)
@given(
    model=st.sampled_from(("llama-3.1-8b", "gpt-oss-120b")),
    concurrency=st.integers(1, 2000),
    tokens=st.integers(100, 60_000),
    outputs=st.integers(20, 3000),
    prefillers=st.integers(1, 16),
    decoders=st.integers(1, 8),
)
def test_requests_in_decode_follow_from_littles_law(
    model: str, concurrency: int, tokens: int, outputs: int, prefillers: int, decoders: int
) -> None:
    """As many as arrive there while one generates: the time of a step and the number of requests agree."""
    program, inputs = in_decode(model)
    values = {
        figure.id: value
        for figure, value in program.run(
            inputs
            | {
                "inputs.concurrency": concurrency,
                "inputs.input_tokens": tokens,
                "inputs.output_tokens": outputs,
                "inputs.dp": prefillers,
                "inputs.decode_dp": decoders,
            }
        ).items()
        if isinstance(figure, Quantity)
    }
    arriving = values["serving.requests_per_s"] / decoders
    assert values["decode.batch"] == pytest.approx(
        max(1, arriving * values["serving.generation"]), rel=0.06, abs=0.5
    )
    assert values["decode.batch"] <= values["decode.memory.batch"] * (1 + 1e-12)


@pytest.mark.parametrize(
    ("concurrency", "prefillers"), [(8, 1), (24, 2), (42, 2), (64, 2), (128, 4), (96, 8)]
)
def test_waits_for_prefill_workers_are_those_of_a_simulation(concurrency: int, prefillers: int) -> None:
    """Requests come back after their time elsewhere, and are routed in turn or at random: between the two."""
    at = look(ask(concurrency=concurrency, dp=prefillers, input_tokens=16_000, output_tokens=256, decode={}))
    service = at("serving.prefill_service")
    elsewhere = at("serving.prefill_away") - service
    in_turn, at_random = (
        simulated_waits(concurrency, prefillers, service, elsewhere, routed) for routed in (True, False)
    )
    rest = at("serving.ttft") - at("serving.prefill_wait")
    for statistic in ("", "_p50", "_p95"):
        wait, bounds = at(f"serving.ttft{statistic}") - rest, (in_turn[statistic], at_random[statistic])
        assert 0.8 * min(bounds) - 0.3 * service <= wait <= 1.4 * max(bounds) + 0.3 * service, statistic


def simulated_waits(
    requests: int, workers: int, service: float, elsewhere: float, in_turn: bool
) -> dict[str, float]:
    """Mean, median and p95 of waits for one of several servers, request by request."""
    dice = random.Random(1)
    free, waits = [0.0] * workers, list[float]()
    arriving = [(dice.random() * elsewhere, request) for request in range(requests)]
    heapq.heapify(arriving)
    while len(waits) < 30_000:
        time, request = heapq.heappop(arriving)
        worker = len(waits) % workers if in_turn else dice.randrange(workers)
        start = max(time, free[worker])
        free[worker] = start + service
        waits.append(start - time)
        heapq.heappush(arriving, (start + service + elsewhere * dice.uniform(0, 2), request))
    steady = sorted(waits[8000:])
    return {
        "": statistics.mean(steady),
        "_p50": statistics.median(steady),
        "_p95": steady[int(0.95 * len(steady))],
    }


@functools.cache
def in_decode(model: str) -> tuple[Program, dict[str, Any]]:
    """A workbook with decode workers, built once."""
    made = ask(model=model, accelerator="b200-sxm", decode={"accelerator": "h200-sxm"})
    names = ("serving.requests_per_s", "serving.generation", "decode.batch", "decode.memory.batch")
    return Program([made.figure(name) for name in names]), made.inputs(0)


_BUILT: list[tuple[Estimate, Program, dict[str, Any]]] = []


def prefilling() -> tuple[Estimate, Program, dict[str, Any]]:
    """Prefill workers of any number, built once."""
    if not _BUILT:
        made = ask(accelerator="b200-sxm", decode={"accelerator": "h200-sxm"})
        wanted = {
            name: made.figure(f"serving.{name}")
            for name in ("prefill_wait", "tpot", "requests_per_s", "prefill_limit")
        }
        _BUILT.append((made, Program(wanted.values()), wanted))
    return _BUILT[0]


# --- measured -----------------------------------------------------------------------------------------------


def test_a_spark_prefills_for_a_mac(capsys: pytest.CaptureFixture[str]) -> None:
    """EXO: Llama-3.1-8B in fp16, 8k prompt, 32 tokens.

    Mac alone 6.42 s, Spark alone 4.34 s, prefill on the Spark 2.32 s: 2.8 and 1.9 times.
    """
    fields = {
        "framework": "exo",
        "weights_dtype": "fp16",
        "input_tokens": 8192,
        "output_tokens": 32,
        "concurrency": 1,
    }
    mac = ask(**fields, accelerator="m3-ultra").results()
    spark = ask(**fields, accelerator="dgx-spark-gb10").results()
    split = ask(
        **fields,
        accelerator="dgx-spark-gb10",
        system="spark-10gbe",
        decode={"accelerator": "m3-ultra", "system": "mac-m3-ultra"},
    )
    both = split.results()
    with capsys.disabled():
        print(
            f"\nEXO: Mac {mac['e2e_s']:.2f} s (6.42 measured), Spark {spark['e2e_s']:.2f} (4.34), split "
            f"{both['e2e_s']:.2f} (2.32): {mac['e2e_s'] / both['e2e_s']:.2f} times the Mac (2.8), "
            f"{spark['e2e_s'] / both['e2e_s']:.2f} times the Spark (1.9)"
        )
    assert both["feasibility"] == "fits" and not both["checks"]["errors"]
    assert 1.5 <= mac["e2e_s"] / both["e2e_s"] <= 5
    assert 1.2 <= spark["e2e_s"] / both["e2e_s"] <= 3
