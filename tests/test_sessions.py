"""Sessions with think time: the rate they come to, against a step-by-step simulation and Little's law."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import few_of
from live import edit, few, place
from simulation import MIXED, Engine, Kind, simulate

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.sweep import sweep
from mantile.graph.evaluate import Program, evaluate
from mantile.graph.quantity import Literal, Quantity
from mantile.graph.rewrite import GraphRewrite
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.verify import verify
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook

Make = Callable[..., Estimate]
SLOTS = 128
ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "b300-sxm",
    "max_requests": SLOTS,
    "kv_admission": "guaranteed",
    "scheduler": MIXED,
    "sessions": 10,
}
# what a simulated engine does not have
NOTHING = {"interference": 1, "queueing": 1, "eager_launch": 0, "first_token": 0, "cold_start": 0}
CHAT = {"name": "chat", "share": 3, "input_tokens": 1500, "output_tokens": 250, "think_time": 20}
AGENTS = {"name": "agents", "share": 1, "input_tokens": 12000, "output_tokens": 100, "think_time": 2}


@pytest.mark.parametrize(
    ("sessions", "think"), few_of([(3, 1), (60, 0.5), (250, 1), (600, 0.5), (2000, 1)], (60, 0.5))
)
def test_sessions_follow_a_simulation(sessions: int, think: float) -> None:
    """Requests per second and mean end to end of two classes; 250 of them nearly saturate the engine, where a
    simulation needs more requests to settle."""
    classes = [
        one | {"think_time": one["think_time"] * think, "output_spread": 0.5} for one in (CHAT, AGENTS)
    ]
    made = estimate(parse_scenario(ASKED | {"classes": classes}, "test"))
    known = made.equations.figures
    names = ("serving.", "classes.", "load.", "sessions.", "decode.batch", "inputs.")
    figures = {name: known[name] for name in known if name.startswith(names)}
    program = Program([figure for figure in figures.values() if isinstance(figure, Quantity)])
    given = made.inputs(0) | {f"efficiency.{name}.override": value for name, value in NOTHING.items()}

    def rows(**inputs: Any) -> dict[str, float]:
        values = program.run(given | {name.replace("_", ".", 1): value for name, value in inputs.items()})
        numbers = {name: values.get(figure) for name, figure in figures.items()}
        return {name: float(value) for name, value in numbers.items() if isinstance(value, float | int)}

    one = rows(inputs_sessions=0, inputs_concurrency=1)
    many = rows(inputs_sessions=0, inputs_concurrency=64, inputs_max_requests=64)
    each = (many["serving.decode_step"] - one["serving.decode_step"]) / 63
    told = rows(inputs_sessions=sessions)
    delay, service = told["serving.prompt_delay"], told["serving.prefill_service"]
    step = told["serving.decode_step"]
    given["efficiency.step_lag.override"] = max(0.0, (delay + step - service) / step + 0.5)
    told = rows(inputs_sessions=sessions)
    kinds = tuple(
        Kind(
            share=float(kind["share"]),
            prompt=float(kind["input_tokens"]),
            output=float(kind["output_tokens"]),
            output_cv=0.5,
            think=float(kind["think_time"]),
        )
        for kind in classes
    )
    prompt = sum(kind.share * kind.prompt for kind in kinds) / sum(kind.share for kind in kinds)
    engine = Engine(one["serving.decode_step"] - each, each, delay / prompt, max(0.0, service - delay), SLOTS)
    count = 16_000 if sessions == 250 else max(4000, 4 * sessions)
    seen = simulate(engine, kinds, 0, sessions, count, max(1500, 2 * sessions))
    rate = len(seen.e2e) / (seen.clock - seen.started)
    end = float(np.mean(seen.e2e))
    assert told["serving.requests_per_s"] == pytest.approx(rate, rel=0.03)
    assert told["serving.e2e"] == pytest.approx(end, rel=0.06 if sessions == 250 else 0.04)
    of_classes = [told[f"classes.{number}.sessions"] for number in (1, 2)]
    assert sum(of_classes) == pytest.approx(sessions, rel=1e-9)
    thinking = np.mean(np.array(seen.kind) == 1)
    assert told["classes.2.part"] == pytest.approx(thinking, abs=0.03)


PLANS: dict[str, dict[str, Any]] = {
    "dense": {"model": "llama-3.3-70b", "tp": 8, "input_tokens": 2048, "output_tokens": 256},
    "long": {"input_tokens": 16_000, "output_tokens": 1000, "framework": "vllm", "dp": 4},
    "experts": {"model": "qwen3-30b-a3b", "pp": 2, "framework": "sglang"},
    "equal lengths": {"length_range_ratio": 0, "scheduler": "prefill-first"},
    "few slots": {"max_requests": 8, "framework": "trtllm"},
    "static": {"batching": "static", "max_requests": 64},
    "apart": {"serving": "disaggregated", "decode": {"dp": 2}},
    "experts apart": {"model": "qwen3-30b-a3b", "serving": "disaggregated", "decode": {}},
}
LOADS = np.array([1, 2, 16, 200, 1000.0])
THOUGHTS = np.concatenate([[0], np.geomspace(0.05, 1000, 20)])


@pytest.mark.parametrize("plan", few_of(("dense", "few slots", "static", "experts apart"), "dense"))
def test_sessions_that_do_not_think_are_a_concurrency(make: Make, plan: str) -> None:
    """Every result is the same but for the names of what was asked, at any load."""
    for load in (1, 7, 200):
        kept = make(**PLANS[plan], concurrency=load).results()
        asked = make(**PLANS[plan], concurrency=None, sessions=load).results()
        assert asked["sessions"] == pytest.approx(load, rel=1e-12)
        for name, figure in kept.items():
            assert asked[name] == figure or asked[name] == pytest.approx(figure, rel=1e-12), (load, name)


@pytest.mark.parametrize("plan", few_of(PLANS, "equal lengths", "experts", "apart"))
def test_sessions_keep_littles_law(make: Make, plan: str) -> None:
    """Requests per second times end to end and think time are the sessions; the requests in flight that steps
    follow from are those of the sessions; a longer thought makes for shorter waits, and more sessions for
    longer ones.
    """
    made = make(**PLANS[plan], concurrency=None, sessions=16, think_time=3)
    sessions, thought = np.meshgrid(LOADS, THOUGHTS, indexing="ij")
    names = (
        "serving.requests_per_s",
        "serving.e2e",
        "serving.ttft",
        "inputs.concurrency",
        "check.LITTLES_LAW",
    )
    known = made.equations.figures | {check.result.id: check.result for check in made.equations.checks.checks}
    values = Program([known[name] for name in names]).run(
        made.inputs(0) | {"inputs.sessions": sessions.ravel(), "inputs.think_time": thought.ravel()}
    )
    rate, e2e, ttft, in_flight, holds = (
        np.broadcast_to(np.asarray(values[known[name]], float), sessions.size).reshape(sessions.shape)
        for name in names
    )
    assert (holds == 1).all()
    np.testing.assert_allclose(rate * (e2e + thought), sessions, rtol=1e-12)
    replicas = np.minimum(sessions, (PLANS[plan].get("decode") or PLANS[plan]).get("dp", 1))
    seen = replicas + (sessions - replicas) * e2e / (e2e + thought)
    np.testing.assert_allclose(in_flight, seen, rtol=0.05)
    assert np.median(np.abs(in_flight / seen - 1)) < 1e-4
    for time in (e2e, ttft):
        assert (np.diff(time, axis=1) <= 1e-9).all() and (np.diff(time, axis=0) >= -1e-9).all()


@pytest.mark.parametrize("think", few_of([0.0, 2.0, 20.0], 2.0))
def test_sessions_follow_a_simulation_with_workers_apart(make: Make, think: float) -> None:
    """A prefill worker and a decode worker, from light loads to more than they serve."""
    asked: dict[str, Any] = {"accelerator": "b300-sxm", "tp": 1, "serving": "disaggregated", "decode": {}}
    made = make(**asked, concurrency=None, sessions=1, kv_admission="guaranteed", max_requests=SLOTS)
    names = ("decode_step", "prefill_service", "transfer", "requests_per_s", "e2e")
    known = {name: made.figure(f"serving.{name}") for name in names}
    known["batch"] = made.figure("decode.batch")
    program = Program(list(known.values()))
    nothing = {f"efficiency.{name}.override": value for name, value in (NOTHING | {"step_lag": 0}).items()}

    def at(sessions: int) -> dict[str, float]:
        given = {"inputs.sessions": sessions, "inputs.think_time": think}
        values = program.run(made.inputs(0) | nothing | given)
        return {name: float(values[figure]) for name, figure in known.items()}

    one, many = at(1), at(200)
    each = (many["decode_step"] - one["decode_step"]) / (many["batch"] - one["batch"])
    kind = Kind(prompt=2048, output=256, think=think)
    for sessions in (1, 10, 60, 300):
        told = at(sessions)
        engine = Engine(
            fixed=one["decode_step"] - each,
            each=each,
            token=told["prefill_service"] / kind.prompt,
            slots=SLOTS,
            mode="apart",
            handed=told["transfer"],
        )
        seen = simulate(engine, (kind,), 0, sessions, 3000, 1000)
        rate = len(seen.e2e) / (seen.clock - seen.started)
        assert told["requests_per_s"] == pytest.approx(rate, rel=0.04), sessions
        assert told["e2e"] == pytest.approx(float(np.mean(seen.e2e)), rel=0.06), sessions


def test_nobody_else_asks(make: Make) -> None:
    """One session waits for nobody; a rate that is typed wins; no session leaves the concurrency."""
    alone = make(concurrency=1).results()
    one = make(concurrency=None, sessions=1, think_time=1e5).results()
    assert one["tpot_s"] == pytest.approx(alone["tpot_s"], rel=0.01)
    for stated in ({"request_rate": 2.0, "concurrency": None}, {"concurrency": 4}):
        typed, plain = (make(**stated, **more).results() for more in ({"sessions": 50, "think_time": 3}, {}))
        assert typed["tpot_s"] == plain["tpot_s"]
        assert typed["requests_per_s"] == pytest.approx(plain["requests_per_s"], rel=0.02)
        assert typed["sessions"] == pytest.approx(typed["requests_per_s"] * (typed["e2e_s"] + 3), rel=1e-12)
        assert "SESSIONS_DIFFER" in {alert["code"] for alert in typed["checks"]["alerts"]}
    none = make(sessions=0, think_time=3).results()
    plain = make().results()
    assert none["ttft_s"] == pytest.approx(plain["ttft_s"]) and none["tpot_s"] == plain["tpot_s"]


def test_a_class_finds_its_own_prefix(make: Make) -> None:
    """Shared prefixes lie in the cache once each; the share that is found is by token."""
    lengths = {"input_tokens": None, "output_tokens": None, "concurrency": None, "request_rate": 3.0}
    shared = [
        {"name": "a", "input_tokens": 4000, "output_tokens": 100, "shared_prefix": 3200},
        {"name": "b", "input_tokens": 1000, "output_tokens": 100, "shared_prefix": 160},
        {"name": "c", "input_tokens": 1000, "output_tokens": 200, "turns": 5},
    ]
    made = make(**lengths, classes=shared)
    known = made.results()["prefix_hits"]
    said = 200 * 2
    own = 1 - (1000 - said) / 3 / 1000
    found = (3200 + 160 + own * 1000) / 6000
    assert known == pytest.approx(found, rel=0.02)
    assert made["prefix.once"].value == 3200 + 160
    first, second, third = made.results()["classes"]
    assert first["ttft_s"] == pytest.approx(second["ttft_s"], rel=0.05)  # 800 and 840 tokens to work out
    assert third["ttft_s"] < second["ttft_s"]
    without = [{key: value for key, value in one.items() if key != "turns"} for one in shared]
    plain = make(**lengths, classes=[one | {"shared_prefix": 0} for one in without]).results()
    assert plain["prefix_hits"] == 0 and plain["classes"][0]["ttft_s"] > first["ttft_s"]


def test_a_head_longer_than_its_prompt_is_no_plan(make: Make) -> None:
    """Shared prefix and answers before belong to the prompt."""
    one = {"name": "a", "input_tokens": 500, "output_tokens": 300, "turns": 10}
    other = {"name": "b", "input_tokens": 5000, "output_tokens": 300}
    told = make(
        input_tokens=None, output_tokens=None, concurrency=None, request_rate=1.0, classes=[one, other]
    ).results()
    assert "PREFIX_EXCEEDS_INPUT" in {item["code"] for item in told["checks"]["errors"]}


def test_sessions_need_no_other_load() -> None:
    """A scenario without any load is refused."""
    plain = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 100, "output_tokens": 10}
    with pytest.raises(InputError, match="concurrency is missing"):
        parse_scenario(plain | {"think_time": 4}, "test")
    assert not parse_scenario(plain | {"sessions": 4}, "test").open_loop


def test_sessions_can_be_swept(make: Make) -> None:
    """As a field that the scenario has, or has not."""
    for stated in ({"concurrency": None, "sessions": 5}, {}):
        table = sweep(make(**stated, think_time=2).scenario, sessions=[5, 50])
        assert table["requests_per_s"].iloc[1] > table["requests_per_s"].iloc[0], stated


@pytest.mark.exhaustive
def test_sessions_are_live_in_the_workbook(tmp_path: Path) -> None:
    """Think time and sessions typed into cells come back, with the numbers of the workbook."""
    classes = [CHAT | {"turns": 4, "shared_prefix": 200}, AGENTS | {"turns": 15, "shared_prefix": 4000}]
    scenario = parse_scenario(ASKED | {"classes": classes, "sessions": 90}, "test")
    made = estimate(scenario, library=few(("b300-sxm", "h100-sxm")))
    file = tmp_path / "sessions.xlsx"
    build_workbook(made, file)
    assert lint(file) == []
    assert verify(file).ok
    layout = lay_out(made)
    edited = file
    for number, (cell, value) in enumerate((("inputs.sessions", 400.0), ("classes.2.think_time", 9.0))):
        sheet, row, column = place(layout, cell)
        target = tmp_path / f"edited{number}.xlsx"
        edited = edit(edited, target, lambda book: book[sheet].cell(row + 1, column + 1, value))  # noqa: B023
    back = import_workbook(edited)
    assert back.scenario.sessions == 400
    again = estimate(back.scenario).results()
    assert again["sessions"] == pytest.approx(400, rel=0.05)
    assert again["requests_per_s"] > made.results()["requests_per_s"]


@pytest.mark.parametrize("load", [{"request_rate": 8.0}, {"concurrency": 64}, {"sessions": 200}])
@pytest.mark.parametrize(
    ("waves", "drawn"), [(0, {"length_range_ratio": 0.6, "p95_output_ratio": 1.5}), (10, {})]
)
def test_one_class_is_none(load: dict[str, float], waves: float, drawn: dict[str, float]) -> None:
    """One class with all requests: every figure is that of a scenario without classes."""
    lengths = {"input_tokens": 2048, "output_tokens": 256}
    asked = {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 8, "prompts_per_slot": waves}
    plain = estimate(parse_scenario(asked | load | drawn | lengths, "test")).results()
    one = {"name": "all", "share": 1} | lengths
    classes = estimate(parse_scenario(asked | load | drawn | {"classes": [one]}, "test")).results()
    [told] = classes.pop("classes")
    for name, value in plain.items():
        if isinstance(value, float):
            assert classes[name] == pytest.approx(value, rel=1e-9), name
    for name in ("ttft_s", "ttft_p50_s", "ttft_p95_s", "e2e_s", "e2e_p50_s", "e2e_p99_s"):
        assert told[name] == pytest.approx(plain[name], rel=1e-9), name


def many_sessions() -> Estimate:
    """So many that somebody always waits: the chance that nobody does is below what a number can be."""
    asked = ASKED | {"accelerator": "h100-sxm", "input_tokens": 6000, "output_tokens": 256}
    asked |= {"sessions": 2000, "think_time": 1}
    return estimate(parse_scenario(asked, "test"), library=few(("h100-sxm",)))


def test_no_power_of_a_small_share_is_needed_for_many_sessions() -> None:
    """LibreOffice has an error for a power below 1e-308, and power and cost would not be known."""
    made = many_sessions()
    busy = made.figure("cost.busy_by_sessions")
    assert made.values()[busy] == 1
    assert made["cost.busy_by_sessions"].words.startswith("1 − (e to the power (sessions")


def test_an_estimate_that_rounding_alone_makes_too_low_is_not_too_low() -> None:
    """Programs differ in the last digits, and would go on from other ends of the line."""
    made = many_sessions()
    few_of_2, at = made.figure("sessions.few_2"), made.figure("sessions.found_2")
    assert isinstance(few_of_2, Quantity)
    for found, too_low in ((100 * (1 + 1e-14), 0), (100.001, 1)):
        given = {"sessions.estimate_1": 100.0, "sessions.found_2": found}
        fixed = {figure: Literal(given[figure.id]) for figure in (at, made.figure("sessions.estimate_1"))}
        assert evaluate(GraphRewrite(fixed, (), "", "", (few_of_2.body,)).rewrite(few_of_2.body)) == too_low
