"""One answer for a question, whoever asks: verdict, ranges, what is not stated, true ways out."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.answers.estimate import Answer
from mantile.answers.ways import SLOWEST, Way, smaller_of_family
from mantile.cli.application import app
from mantile.estimates.structure import _made
from mantile.library.beside_cpu import beside_cpu

SHORT = {"input_tokens": 2000, "output_tokens": 512}
FITS = {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 4, "concurrency": 16, **SHORT}
LACKS = {
    "home": {
        "model": "gpt-oss-120b",
        "accelerator": "rtx-4090",
        "framework": "llama.cpp",
        "concurrency": 1,
        **SHORT,
    },
    "dense": {
        "model": "llama-3.3-70b",
        "accelerator": "rtx-4090",
        "framework": "llama.cpp",
        "concurrency": 1,
        **SHORT,
    },
    "cloud": {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "concurrency": 16, **SHORT},
    "slots": {"model": "gpt-oss-120b", "accelerator": "h100-sxm", "concurrency": 16, **SHORT},
    "context": {
        "model": "llama-3.1-8b",
        "accelerator": "rtx-4090",
        "concurrency": 1,
        "input_tokens": 130_000,
        "output_tokens": 512,
    },
    "heads": {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "tp": 3, "concurrency": 8, **SHORT},
    "workers": {
        "model": "llama-3.3-70b",
        "accelerator": "h100-sxm",
        "tp": 1,
        "concurrency": 8,
        "serving": "disaggregated",
        **SHORT,
    },
    "macs": {
        "model": "qwen3-235b-a22b",
        "accelerator": "m3-ultra",
        "framework": "mlx",
        "weights_dtype": "bf16",
        "concurrency": 1,
        **SHORT,
    },
}


@pytest.fixture(scope="module")
def lacking() -> dict[str, Answer]:
    """Answers to plans that cannot be."""
    return {name: mt.answer(mt.estimate(**fields)) for name, fields in LACKS.items()}


@pytest.mark.parametrize("name", LACKS)
def test_every_way_out_is_the_estimate_it_says(lacking: dict[str, Answer], name: str) -> None:
    """Applied to the scenario, each way fits, is as fast as it says, and `launch` writes its command."""
    said = lacking[name]
    assert not said.possible and said.ways
    for way in said.ways:
        other = mt.estimate(way.applied(said.made.scenario))
        results = other.results()
        assert results["feasibility"] == way.feasibility in ("fits", "fits_with_offload"), way.words
        assert other.interactivity == pytest.approx(way.speed) and way.speed >= SLOWEST
        assert other.ttft == pytest.approx(way.ttft), way.words
        if results["framework"] != "mlx":  # which `launch` does not start
            assert mt.launch_files(other.scenario, anyway=True)


def test_ways_come_in_order_and_say_what_they_cost(lacking: dict[str, Answer]) -> None:
    """What needs nothing new comes first and costs nothing; then the cheapest."""
    for said in lacking.values():
        other = [way.other_accelerators for way in said.ways]
        assert other == sorted(other)
        assert all(way.to_buy == 0 for way in said.ways if not way.other_accelerators)
        costs = [way.to_buy if said.buys else way.usd_per_hour for way in said.ways if way.other_accelerators]
        known = [cost for cost in costs if cost is not None]
        assert known == sorted(known)


def _words(said: Answer) -> list[str]:
    return [way.words for way in said.ways]


def test_a_home_user_is_told_what_to_do(lacking: dict[str, Answer]) -> None:
    """Experts on the CPU before another model, more cards with their price; what does not help is named."""
    said = lacking["home"]
    assert _words(said)[:2] == ["experts of 24 layers on the CPU", "gpt-oss-20b"]
    assert "39.3 GB are missing" in said.verdict and "31.2 tokens/s" in said.verdict
    more = next(way for way in said.ways if way.words == "3 more GeForce RTX 4090")
    assert more.to_buy == 3 * 1599
    assert "smaller weights (none are published)" in said.no_help
    assert "Ryzen 9 9950X" in said.ways[0].assumes and "of main memory" in said.ways[0].assumes


def test_a_setting_of_the_engine_comes_before_another_accelerator(lacking: dict[str, Answer]) -> None:
    """gpt-oss-120b on one H100: fewer batch slots are enough, and one more accelerator is not needed."""
    [first, *_] = lacking["slots"].ways
    assert (
        first.words.startswith("at most ")
        and first.gives_up == "batch slots"
        and list(first.fields) == ["max_requests"]
    )


def test_rules_of_a_plan_have_ways_too(lacking: dict[str, Answer]) -> None:
    """TP 3 of 32 heads: the degrees below and above; no word of memory."""
    said = lacking["heads"]
    assert _words(said)[:2] == ["TP2", "TP4"] and "TP 3 does not divide 32" in said.verdict
    assert "Memory" not in dict(said.facts)


def test_fewest_bits_more_and_fewer_do_not_do(lacking: dict[str, Answer]) -> None:
    """The format with most bits and the fewest accelerators that fit: the next ones do not."""
    said = mt.answer(
        mt.estimate(
            model="qwen3-32b", accelerator="rtx-5090", concurrency=8, input_tokens=2048, output_tokens=256
        )
    )
    ways = {next(iter(way.fields)): way for way in said.ways if len(way.fields) == 1}
    assert ways["tp"].fields["tp"] == 4 and "weights_dtype" in ways
    for fields in ({"tp": 2}, {"weights_dtype": "fp8"}):
        assert not mt.estimate(said.made.scenario.replace(**fields)).results()["fits"]


def test_smaller_models_are_of_the_family() -> None:
    assert smaller_of_family("gpt-oss-120b") == ["gpt-oss-20b"]
    assert smaller_of_family("llama-3.3-70b")[0] == "llama-3.1-8b"
    assert all(name.startswith("qwen") and "vl" not in name for name in smaller_of_family("qwen3-32b"))
    assert not smaller_of_family("gpt-oss-20b")


def test_what_is_not_stated_moves_the_answer_as_far_as_it_says() -> None:
    """Each is the estimate with that value; a value that is stated is not among them."""
    said = mt.answer(mt.estimate(**FITS, speculation="eagle"))
    fields = {one.field: one for one in said.unstated}
    assert set(fields) == {"prompts_per_slot", "acceptance_rate", "kv_dtype", "prefix_hit_rate"}
    for name, one in fields.items():
        other = mt.estimate(said.made.scenario.replace(**{name: one.value}))
        assert (one.ttft[1], one.tpot[1]) == pytest.approx((other.ttft, other.tpot))
    assert {one.field for one in said.unstated if one.decides} == {"prompts_per_slot", "acceptance_rate"}
    stated = mt.answer(mt.estimate(**FITS, prompts_per_slot=4, kv_dtype="fp8", prefix_hit_rate=0.2))
    assert not stated.unstated


def test_lines_are_the_results_with_their_ranges() -> None:
    made = mt.estimate(**FITS)
    said = mt.answer(made)
    for line in said.lines[:-1]:
        assert line.value == getattr(made, line.metric.attribute)
        assert line.low < line.value < line.high
    assert said.lines[-1].value == made.memory_per_accelerator
    assert [line.label for line in said.lines][-2:] == ["Cost", "Memory per accelerator"]


def test_the_terminal_keeps_to_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for fields in (FITS, LACKS["home"], LACKS["cloud"]):
        ran = CliRunner().invoke(app, ["estimate", *_arguments(fields)])
        assert all(len(line) <= 80 for line in ran.stdout.splitlines()), ran.stdout
        assert ran.exit_code == (0 if fields is FITS else 1)


def _arguments(fields: dict[str, Any]) -> list[str]:
    flags = ((f"--{key.replace('_', '-')}", str(value)) for key, value in fields.items() if key != "model")
    return [str(fields["model"]), *(word for pair in flags for word in pair)]


def test_a_way_is_taken_by_its_number(lacking: dict[str, Answer]) -> None:
    """`estimate --way 1` is that way's estimate, `launch --way 1` its command; other numbers are refused."""
    asked = _arguments(LACKS["home"])
    ran = CliRunner().invoke(app, ["estimate", *asked, "--way", "1", "--json"])
    assert json.loads(ran.stdout)["tpot_s"] == pytest.approx(1 / lacking["home"].ways[0].speed)
    written = CliRunner().invoke(app, ["launch", *asked, "--way", "1"]).stdout
    words = shlex.split(written.partition("exec ")[2].replace("\\\n", " "))
    assert words[words.index("--n-cpu-moe") + 1] == "24" and words[words.index("-ngl") + 1] == "99"
    wrong = CliRunner().invoke(app, ["estimate", *asked, "--way", "99"])
    assert wrong.exit_code != 0 and "expected 1 to" in str(wrong.exception)


def test_json_has_what_the_terminal_says(lacking: dict[str, Answer]) -> None:
    ran = CliRunner().invoke(app, ["estimate", *_arguments(LACKS["home"]), "--json"])
    found = json.loads(ran.stdout)
    said = lacking["home"]
    assert found["sentence"] == said.verdict and found["no_help"] == list(said.no_help)
    assert [one["words"] for one in found["remedies"]] == _words(said)
    assert found["tpot_s"] is None and all(one["tpot_s"] for one in found["remedies"])


def test_devices_that_no_flag_says_are_refused_in_words() -> None:
    """`launch` of two machines that are not alike ends in a sentence, not in a traceback."""
    made = mt.estimate(
        model="llama-3.3-70b",
        accelerator="rtx-4090",
        framework="llama.cpp",
        concurrency=1,
        devices=[{"link": "10gbe"}, {"accelerator": "m3-ultra", "count": 1}],
        **SHORT,
    )
    with pytest.raises(mt.InputError, match=r"no flag of llama\.cpp says which device"):
        mt.launch_files(made.scenario, anyway=True)


def test_an_answer_is_shown_in_notebooks(lacking: dict[str, Answer]) -> None:
    assert repr(lacking["home"]).startswith("<Answer: gpt-oss-120b does not fit")
    assert "experts of 24 layers" in lacking["home"]._repr_html_()
    assert "Time to first token" in mt.answer(mt.estimate(**FITS))._repr_html_()


def test_a_way_applies_to_a_scenario_with_columns() -> None:
    """Ways are those of the base; what a way changes is all that it changes."""
    made = mt.estimate(mt.Scenario(**LACKS["cloud"], variants=[{"name": "two", "tp": 2}]))
    way: Way = mt.answer(made).ways[0]
    changed = way.applied(made.scenario)
    assert len(changed.variants) == 1
    assert {key: getattr(changed, key) for key in way.fields} == dict(way.fields)


def test_sums_over_kinds_of_layers_have_one_order() -> None:
    """A graph that is built again has the same formulas: else a workbook is refused as edited."""
    fields = {
        **LACKS["home"],
        "pp": None,
        **beside_cpu(mt.load_library(), "ryzen-9-9950x", "rtx-4090", 1, 36),
    }
    fields["devices"][1]["experts_away"] = 24
    formulas = set()
    kept = []
    for _ in range(6):
        made = mt.estimate(mt.Scenario(**{key: value for key, value in fields.items() if value is not None}))
        _made.cache_clear()
        kept.append(made)  # other addresses for the next
        formulas.add(made["devices.prefill.2.experts_share"].formula)
    assert len(formulas) == 1


def test_a_rate_that_is_too_high_has_no_speed_in_words() -> None:
    """What a deployment would reach that is overloaded, nobody has."""
    said = mt.answer(mt.estimate(model="llama-3.1-8b", accelerator="h100-sxm", request_rate=500, **SHORT))
    assert "500/s exceeds" in said.verdict and "first token" not in said.verdict


def test_a_price_that_is_stated_has_no_day_of_the_library() -> None:
    """Of the library's price its day and age are told; of one that is stated that it is."""
    fields = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 4, **SHORT}
    assert "days old" in dict(mt.answer(mt.estimate(**fields)).facts)["Price"]
    stated = {"overrides": [{"id": "hardware.price_cloud", "value": 2.0, "reason": "offer"}]}
    for own in (stated, {"prices": {"h100-sxm": 2.0}}):
        price = dict(mt.answer(mt.estimate(**fields, **own)).facts)["Price"]
        assert price.startswith("2 USD/h") and "2026-08" not in price, price


def test_workers_apart_have_a_plan_each() -> None:
    fields = {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 4, "serving": "disaggregated"}
    said = mt.answer(mt.estimate(**fields, decode_tp=8, concurrency=8, **SHORT))
    assert said.plan.startswith("prefill TP4 ") and "; decode TP8 " in said.plan
