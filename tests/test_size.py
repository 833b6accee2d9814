"""What is needed for a target, and what runs on a machine: against every combination, one estimate each."""

from __future__ import annotations

import json
import random
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of

import mantile
from mantile.cli import main
from mantile.estimates.estimate import Estimate
from mantile.search.hardware_first import Machine, fits, read_machine
from mantile.search.size import Size, size

CHIPS = ("h100-sxm", "l40s", "h20-sxm")  # of the last nobody knows a price
LENGTHS = {"input_tokens": 2000, "output_tokens": 300}
TPS, MOST = (1, 2, 4), 4
MODEL = "llama-3.1-8b"


def asked(limits: dict[str, float], chips: tuple[str, ...] = CHIPS, most: int = MOST, **load: Any) -> Size:
    """The answer on a small space: frameworks, formats and degrees but TP are fixed."""
    over = {
        "accelerator": chips,
        "tp": TPS,
        "pp": (1,),
        "attention_dp": (1,),
        "ep": (1,),
        "weights_dtype": ("bf16", "fp8"),
    }
    return size(
        model=MODEL,
        framework="vllm",
        kv_dtype="bf16",
        over=over,
        gpus_max=most,
        limits=limits,
        **LENGTHS,
        **load,
    )


def every(chips: tuple[str, ...] = CHIPS, **load: Any) -> list[dict[str, Any]]:
    """Every combination, estimated one by one."""
    rows = []
    for chip, weights, tp in product(chips, ("bf16", "fp8"), TPS):
        for dp in range(1, MOST // tp + 1):
            plan = {"accelerator": chip, "weights_dtype": weights, "tp": tp, "dp": dp}
            made = mantile.estimate(model=MODEL, framework="vllm", kv_dtype="bf16", **plan, **LENGTHS, **load)
            rows.append(plan | measured(made))
    return [row for row in rows if row["fits"]]


def measured(made: Estimate) -> dict[str, Any]:
    """What builds are judged by, read of an estimate."""
    results, values = made.results(), made.values()
    used, usable = (float(values[made.figure(f"memory.{name}")]) for name in ("used", "usable"))
    return {
        "fits": not results["checks"]["errors"],
        "ttft": made.ttft,
        "tpot": made.tpot,
        "speed": results["interactivity_tokens_per_s"],
        "usd": results["usd_per_hour"],
        "month": results["usd_per_month"],
        "cost": results["usd_per_million_tokens"]["output"],
        "count": results["accelerators"],
        "headroom": 1 - used / usable,
        "memory": used * results["accelerators"],
    }


def keeps(row: dict[str, Any], limits: dict[str, float], spare: float = 0.0) -> bool:
    """Whether an estimate keeps limits, with something to spare."""
    money = limits.get("usd_per_month")
    return (
        row["ttft"] <= limits.get("ttft", 1e9) * (1 - spare)
        and row["tpot"] <= limits.get("tpot", 1e9) * (1 - spare)
        and row["headroom"] >= spare
        and (money is None or (row["month"] is not None and row["month"] <= money))
    )


def same(found: Size, name: str, rows: list[dict[str, Any]], keys: tuple[str, ...]) -> None:
    """The tier is the first of the rows by some keys, and its figures are those of the estimate."""
    tier = found.tiers[name]
    if not rows:
        assert tier.plan is None and tier.accelerators is None and tier.usd_per_hour is None, tier
        return
    big = float("inf")

    def place(row: dict[str, Any]) -> list[float]:
        return [float(f"{big if row[key] is None else row[key]:.8g}") for key in keys]

    least = min(place(row) for row in rows)
    assert tier.plan is not None and tier.results is not None
    match = [
        row
        for row in rows
        if all(row[key] == tier.plan[key] for key in ("accelerator", "weights_dtype", "tp", "dp"))
    ]
    assert len(match) == 1 and place(match[0]) == least, (name, tier.plan, least)
    assert tier.accelerators == match[0]["count"] and tier.usd_per_hour == match[0]["usd"]
    assert tier.results["tpot_s"] == pytest.approx(match[0]["tpot"], rel=1e-12)


@pytest.mark.parametrize("seed", few_of((0, 2, 5), 0))
def test_the_builds_are_those_of_every_combination(seed: int) -> None:
    """Limits, load and budget drawn at random; a price that nobody knows has no place where money ranks."""
    draw = random.Random(seed)
    load = (
        {"concurrency": draw.choice((1, 40, 200))} if seed % 2 else {"request_rate": draw.choice((2.0, 12.0))}
    )
    rows = every(**load)
    limits = {
        "ttft": draw.choice(sorted(row["ttft"] for row in rows)) * 1.001,
        "tpot": draw.choice(sorted(row["tpot"] for row in rows)) * 1.001,
    }
    if seed >= 4:
        limits["usd_per_month"] = (
            draw.choice([row["month"] for row in rows if row["month"] is not None]) * 1.001
        )
    found = asked(limits, **load)
    kept = [row for row in rows if keeps(row, limits)]
    assert found.has_answer == bool(kept)
    same(found, "minimum", kept, ("count", "usd"))
    roomy = [row for row in kept if row["cost"] is not None and keeps(row, limits, 0.3)]
    same(found, "good", roomy, ("cost", "count"))
    for row in kept:
        row["slow"] = 1 / row["speed"]
    same(found, "best", kept, ("slow", "usd", "count"))
    for chip in found.chips:
        own = [(row["count"], row["usd"]) for row in kept if row["accelerator"] == chip.accelerator]
        least = min(own, key=lambda of: (of[0], of[1] or 0.0)) if own else (None, None)
        assert (chip.accelerators, chip.usd_per_hour) == least, chip
        assert bool(chip.code) != bool(own)
    if kept:
        assert found.memory == pytest.approx(min(row["memory"] for row in kept), rel=1e-12)
    else:
        misses = [max(row["ttft"] / limits["ttft"], row["tpot"] / limits["tpot"]) - 1 for row in rows]
        miss = found.nearest_miss()
        if "usd_per_month" not in limits:
            assert miss is not None and miss[2] == pytest.approx(min(misses), rel=1e-9)


@pytest.mark.exhaustive
def test_builds_may_have_prefill_and_decode_apart() -> None:
    """The builds are those of every combination of workers on three accelerators, together and apart."""
    fixed = {"accelerator": "h100-sxm", "framework": "vllm", "weights_dtype": "fp8", "kv_dtype": "fp8"}
    fixed |= {"input_tokens": 8000, "output_tokens": 200, "concurrency": 12}
    over = {"tp": (1, 2), "pp": (1,), "attention_dp": (1,)}
    limits = {"ttft_p95": 3.0, "tpot": 0.012}
    found = size(
        model=MODEL, limits=limits, gpus_max=3, over=over, spare=0, search=["disaggregated"], **fixed
    )
    reached = []
    for tp, dp, decode in (
        *((tp, dp, None) for tp, dp in ((1, 1), (1, 2), (1, 3), (2, 1))),
        *(
            (tp, dp, {"tp": other, "dp": more})
            for tp, dp in ((1, 1), (1, 2), (2, 1))
            for other, more in TPS_DPS
        ),
    ):
        used = tp * dp + (decode["tp"] * decode["dp"] if decode else 0)
        if used > 3:
            continue
        apart = {"serving": "disaggregated", "decode": decode} if decode else {}
        made = mantile.estimate(model=MODEL, tp=tp, dp=dp, **fixed, **apart).results()
        if made["tpot_s"] <= 0.012 and made["ttft_p95_s"] <= 3:
            reached.append(
                (used, made["usd_per_hour"], made["interactivity_tokens_per_s"], decode is not None)
            )
    assert found.found.tried == 9 and 1 < len(reached) < 9
    least, best = found.tiers["minimum"], found.tiers["best"]
    assert least.accelerators == min(reached)[0]
    assert best.results and best.results["interactivity_tokens_per_s"] == max(of[2] for of in reached)
    assert (best.plan or {}).get("serving") == "disaggregated" and max(reached, key=lambda of: of[2])[3]


TPS_DPS = ((1, 1), (1, 2), (2, 1))


def test_a_good_build_leaves_memory_free() -> None:
    """Where no limit binds it is the cheapest of those with 30 % of the memory free."""
    load = {"concurrency": 200}
    rows = every(("l40s", "h100-sxm"), **load)
    roomy = [row for row in rows if row["headroom"] >= 0.3]
    assert min(row["cost"] for row in roomy) > min(row["cost"] for row in rows), "the memory binds"
    same(asked({}, ("l40s", "h100-sxm"), **load), "good", roomy, ("cost", "count"))


def test_an_unknown_price_is_null_and_has_no_place_where_money_ranks() -> None:
    """The smallest build is told without a price; there is no cheapest, and none within a budget."""
    found = asked({}, chips=("h20-sxm",), concurrency=8)
    tiers = found.to_dict()["tiers"]
    assert tiers["minimum"]["accelerators"] == 1 and tiers["minimum"]["usd_per_hour"] is None
    assert tiers["good"]["plan"] is None and "nobody knows a price" in tiers["good"]["reason"]
    assert tiers["best"]["plan"] is not None
    both = asked({}, chips=("h20-sxm", "h100-sxm"), concurrency=8)
    least = both.tiers["minimum"]
    assert least.plan is not None and least.plan["accelerator"] == "h100-sxm", "of equal counts"
    assert {chip.accelerator: chip.accelerators for chip in both.chips} == {"h20-sxm": 1, "h100-sxm": 1}
    within = asked({"usd_per_month": 1e9}, chips=("h20-sxm",), concurrency=8)
    assert not within.has_answer and {chip.code for chip in within.chips} == {"NOT_KNOWN"}


@pytest.mark.exhaustive
def test_more_users_and_tighter_limits_never_need_less() -> None:
    """Of one accelerator neither fewer of them nor less money."""

    def needs(users: int, tpot: float) -> tuple[float, float]:
        one = asked({"tpot": tpot}, ("l40s",), users=users, requests_per_hour=60).chips[0]
        return (one.accelerators, one.usd_per_hour) if one.accelerators and one.usd_per_hour else (1e9, 1e9)

    by_users = [needs(users, 0.04) for users in (10, 300, 1200, 3000, 9000)]
    assert by_users == sorted(by_users) and [of[1] for of in by_users] == sorted(of[1] for of in by_users)
    by_limit = [needs(1200, tpot) for tpot in (0.1, 0.03, 0.015, 0.008, 0.004)]
    assert by_limit == sorted(by_limit) and [of[1] for of in by_limit] == sorted(of[1] for of in by_limit)
    assert len({*by_users, *by_limit}) > 2, "the limits bind somewhere"


def test_no_build_is_called_good_with_a_wait_of_minutes() -> None:
    """Where nobody limits the wait, p95 TTFT has a limit, which is told; lifted, the fewest are fewer."""
    asked_: dict[str, Any] = {"model": MODEL, "accelerator": "l4", "framework": "vllm", "users": 200}
    asked_ |= {"weights_dtype": "fp8", "kv_dtype": "fp8", "input_tokens": 8000, "output_tokens": 300}
    asked_ |= {"gpus_max": 24, "over": {"pp": [1], "attention_dp": [1]}}
    found, lifted = size(**asked_), size(**asked_, default_limits=False)
    told = found.to_dict()
    assert told["default_limits"] == {"ttft_p95_s": 10.0} and told["limits"] == {}
    built = [tier.results for tier in found.tiers.values() if tier.results is not None]
    assert len(built) >= 2 and all(results["ttft_p95_s"] <= 10 for results in built)
    fewest = lifted.tiers["minimum"]
    assert fewest.results is not None and fewest.results["ttft_p95_s"] > 60
    assert fewest.accelerators < found.tiers["minimum"].accelerators
    assert lifted.to_dict()["default_limits"] == {}


def test_an_accelerator_that_misses_says_how_many_would_do() -> None:
    """Above the most that are allowed; the build with so many is what the same question finds there."""
    few = asked({"tpot": 0.006, "ttft_p95": 5}, concurrency=64, most=2)
    told = few.to_dict()
    assert [*told["asked_accelerators"]] == [*CHIPS] and told["cap"] == {"gpus_max": 2}
    for chip in few.chips:
        more = asked({"tpot": 0.006, "ttft_p95": 5}, (chip.accelerator,), concurrency=64, most=64).chips[0]
        assert chip.accelerators is not None or chip.needs == more.accelerators, chip
        assert bool(chip.code) == told["asked_accelerators"][chip.accelerator]["why"].endswith("every limit")
    needed = {chip.accelerator: chip.needs for chip in few.chips}
    assert any(needed.values()) and not all(needed.values()), needed


def test_users_with_requests_are_a_rate_and_alone_are_in_flight() -> None:
    """200 users with 30 requests an hour are 1.667 a second."""
    found = asked({}, ("l40s",), users=200, requests_per_hour=30)
    assert found.base.request_rate == pytest.approx(200 * 30 / 3600) and found.assumed == {}
    assert asked({}, ("l40s",), users=7).base.concurrency == 7
    assert asked({}, ("l40s",)).assumed == {"concurrency": 1}


def test_what_does_not_fit_says_what_does() -> None:
    """The data type, the prompt and the accelerators with which an estimate fits, and with no less."""
    lengths = {"input_tokens": 120_000, "output_tokens": 300}
    plan = {"model": MODEL, "accelerator": "rtx-4090", "framework": "vllm", "kv_dtype": "bf16"}
    found = size(**plan, **lengths, weights_dtype="bf16", gpus_max=1)
    assert not found.has_answer and {chip.code for chip in found.chips} == {"INSUFFICIENT_MEMORY"}
    ways = {way.change: way for way in found.ways}

    def fitting(**fields: Any) -> bool:
        made = mantile.estimate(**{**plan, **lengths, "weights_dtype": "bf16", "concurrency": 1, **fields})
        return not made.results()["checks"]["errors"]

    assert not fitting()
    most = ways["input_tokens"].value
    assert fitting(input_tokens=most) and not fitting(input_tokens=most + 1)
    more = ways["accelerators"]
    assert fitting(**more.plan) and more.value == 2
    for way in ways.values():
        assert fitting(**(way.plan | ({"input_tokens": way.value} if way.change == "input_tokens" else {})))


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str
) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command."""
    monkeypatch.setattr(sys, "argv", ["mantile", *line.split()])
    status = 0
    try:
        main()
    except SystemExit as stop:
        status = int(stop.code or 0)
    done = capsys.readouterr()
    return status, done.out, done.err


def test_json_of_size(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys that others build on; a miss is told with exit status 1."""
    command = "size llama-3.1-8b --accelerator l40s --framework vllm --users 4 --gpus-max 2 --json"
    status, out, _ = run(monkeypatch, capsys, command)
    data = json.loads(out)
    assert status == 0 and {*data["tiers"]} == {"minimum", "good", "best"}
    for tier in data["tiers"].values():
        assert {*tier} == {"plan", "metrics", "accelerators", "usd_per_hour", "reason"}
    assert data["tiers"]["minimum"]["metrics"]["tpot_s"] > 0
    assert data["minimum_memory_bytes"] > 4e9
    assert data["assumed"] == {"input_tokens": 1024, "output_tokens": 256}
    status, out, _ = run(monkeypatch, capsys, f"{command} --tpot 0.0001")
    data = json.loads(out)
    assert status == 1 and data["nearest_miss"]["limit"] == "tpot_s" and data["nearest_miss"]["beyond"] > 1
    assert data["tiers"]["minimum"]["plan"] is None and data["tiers"]["minimum"]["usd_per_hour"] is None


def test_a_scenario_file_brings_its_own_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its load and lengths are taken; its plan is not."""
    path = tmp_path / "chat.yaml"
    path.write_text(
        "{model: llama-3.1-8b, accelerator: l4, tp: 8, input_tokens: 700, output_tokens: 90, concurrency: 9}",
        encoding="utf-8",
    )
    command = f"size {path} --accelerator l40s --framework vllm --gpus-max 1 --json"
    status, out, _ = run(monkeypatch, capsys, command)
    data = json.loads(out)
    assert status == 0 and data["assumed"] == {}
    metrics = data["tiers"]["minimum"]["metrics"]
    assert metrics["accelerators"] == 1 and metrics["batch"] > 1
    status, _, err = run(monkeypatch, capsys, f"{command} --users 3")
    assert status == 2 and "--concurrency states the load as well" in err


@pytest.mark.parametrize(
    "line, words",
    [
        ("size llama-3.1-8b --users 2 --concurrency 3", "--users: --concurrency states the load as well"),
        ("size llama-3.1-8b --requests-per-hour 3", "--requests-per-hour: is of each user; expected --users"),
        ("size llama-3.1-8b --users 0", "--users: expected a whole number from 1 on, found 0"),
        ("size llama-3.1-8b --tpot 0", "--tpot-max: tpot_s: expected a number above 0, found 0"),
        ("size llama-3.1-8b --budget-usd-month nan", "--budget-usd-month nan: expected a number"),
        ("size llama-3.1-8b --gpus-max 0", "--gpus-max: expected a whole number from 1"),
        ("size llama-3.1-8b --spare 1", "--spare: expected a share from 0 to below 1"),
        ("size llama-3.1-8b --accelerator foo", "--accelerator: unknown accelerator 'foo'"),
        ("size llama-3.1-8b --serving disaggregated", "builds have prefill and decode on the same workers"),
        ("size llama-3.1-8b --decode-tp 2", "builds have prefill and decode on the same workers"),
        ("size llama-3.1-8b -o needs.csv", "--output needs.csv: expected a file name that ends in .xlsx"),
        ("fits rtx-4090:x", "rtx-4090:x: expected ACCELERATOR[:COUNT]"),
        ("fits rtx-4090 --ram -1", "ram: expected GB above 0"),
        ("fits foo:2", "unknown accelerator 'foo'"),
    ],
)
def test_wrong_input_is_named(
    line: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Flag, what was expected, exit status 2."""
    status, _, err = run(monkeypatch, capsys, line)
    assert status == 2 and words in err, err


# --- hardware first -----------------------------------------------------------------------------------------

SMALL = ("llama-3.1-8b", "qwen3-14b", "qwen3-32b", "llama-3.3-70b", "gpt-oss-20b")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return fits("rtx-4090", 1, models=SMALL, top=5)


def test_the_largest_models_that_fit_come_first(machine: Machine) -> None:
    """Each in the data type with the most bits that an estimate says fits; too large ones are named."""
    assert machine.too_large == ("llama-3.3-70b",)
    sizes = [one.parameters for one in machine.models]
    assert [one.model for one in machine.models] == ["qwen3-32b", "gpt-oss-20b", "qwen3-14b", "llama-3.1-8b"]
    assert sizes == sorted(sizes, reverse=True)
    by_model = {one.model: one for one in machine.models}
    assert by_model["gpt-oss-20b"].plan["weights_dtype"] == "mxfp4", (
        "more bits than the checkpoint say nothing"
    )
    bits = {"q8_0": 8.5, "q6_k": 6.5625, "q5_1": 6.0, "q5_k_m": 5.65, "q5_k": 5.5, "q4_1": 5.0, "q4_k_m": 4.8}
    lengths = {"input_tokens": 1024, "output_tokens": 256, "concurrency": 1}

    def fitting(weights: str) -> bool:
        made = mantile.estimate(
            model="qwen3-32b", accelerator="rtx-4090", framework="llama.cpp", weights_dtype=weights, **lengths
        )
        return not made.results()["checks"]["errors"]

    most = max(number for name, number in bits.items() if fitting(name))
    assert bits[by_model["qwen3-32b"].plan["weights_dtype"]] == most


def test_context_and_speed_are_those_of_an_estimate(machine: Machine) -> None:
    """One token more does not fit, or is more than the model was made for."""
    for one in machine.models[:3]:
        plan = one.plan | {"model": one.model, "concurrency": 1, "output_tokens": 256}
        made = mantile.estimate(**plan, input_tokens=1024)
        assert made.results()["interactivity_tokens_per_s"] == pytest.approx(one.interactivity, rel=1e-12)
        held = mantile.estimate(**plan, input_tokens=one.context - 256)
        assert held.results()["fits"], one.model
        beyond = mantile.estimate(**plan, input_tokens=one.context - 255).results()
        made_for = mantile.load_model(one.model).architecture.value("max_positions")
        assert not beyond["fits"] or one.context == made_for, one.model


def test_host_memory_lets_larger_models_in() -> None:
    """Only where nothing fits without; the plan says how much moves."""
    found = fits("rtx-4090", 1, ram_gb=64, models=("llama-3.3-70b", "llama-3.1-8b"))
    large, small = found.models
    assert large.model == "llama-3.3-70b" and 0 < large.plan["offload_weights"] <= 64
    assert "offload_weights" not in small.plan
    assert large.interactivity is not None and small.interactivity is not None
    assert large.interactivity < small.interactivity


def test_machines_as_they_are_typed() -> None:
    """A count behind a colon; one without."""
    assert read_machine("rtx-4090:2") == ("rtx-4090", 2) and read_machine(" l40s") == ("l40s", 1)


@pytest.mark.exhaustive
def test_json_of_fits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The keys that others build on."""
    status, out, _ = run(monkeypatch, capsys, "fits m4-max --top 1 --json")
    (one,) = json.loads(out)["machines"]
    assert status == 0 and one["accelerator"] == "m4-max" and one["ram_gb"] is None
    keys = {
        "model",
        "parameters",
        "weights_dtype",
        "plan",
        "context_tokens",
        "interactivity_tokens_per_s",
        "ttft_s",
    }
    assert {*one["models"][0]} == keys
