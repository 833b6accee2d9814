"""From passes to what users see.

Against a step-by-step simulation of three schedulers, and which way figures must move.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from mantile.equations import constant
from mantile.equations.framework import frameworks, kinds_of_schedulers
from mantile.equations.inputs import workload
from mantile.equations.mixed import operations_of, steps_of
from mantile.equations.tables import Equations
from mantile.estimates.estimate import Estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input
from mantile.ir.build import build_ir
from mantile.library.errors import InputError
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import SCHEDULERS, Library

Make = Callable[..., Estimate]
MIXED, FIRST, WHOLE = "mixed", "prefill-first", "whole-prompts"
assert set(SCHEDULERS) == {MIXED, FIRST, WHOLE}

# --- a closed loop, step by step ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Loop:
    """A closed loop of requests on one engine, with times of steps that are known.

    Args:
        scheduler: mixed: chunks of prompts ride in decode steps; whole-prompts: undivided ones do;
            prefill-first: decode stops for them.
        requests: in flight at any time.
        fixed, each: seconds of a decode step, and of each request in it.
        prompt: seconds of a prompt of mean length; others in proportion.
        prompt_tokens, outputs: means.
        budget: most tokens of prompts in a step; a prompt longer than that is cut where prompts may be, else
            alone in its step.
        spread: lengths are drawn evenly from this share below the longest.
        per_slot: prompts of a benchmark for each request in flight; 0: a service.
    """

    scheduler: str
    requests: int
    fixed: float
    each: float
    prompt: float
    prompt_tokens: int
    outputs: int
    budget: int = 8192
    spread: float = 0.2
    per_slot: float = 0

    @property
    def step(self) -> float:
        """Seconds of a decode step of all requests."""
        return self.fixed + self.each * self.requests


def simulate(loop: Loop, waves: int, warm: int, together: bool) -> tuple[float, np.ndarray]:
    """Mean gap between tokens, and times to first token in order, both of what starts after `warm` waves.

    Args:
        waves: requests that end, for every place.
        together: all requests arrive at once; else the loop starts in the middle of things.
    """
    random = np.random.default_rng(3)
    count = loop.requests

    def drawn(mean: float) -> float:
        return float(mean * random.uniform(1 - loop.spread, 1) / (1 - loop.spread / 2))

    outputs = np.array([round(drawn(loop.outputs)) for _ in range(count)])
    left = outputs.copy()
    running, counted = np.ones(count, bool), np.zeros(count, bool)
    waiting: deque[list[float]] = deque()  # place, arrival, tokens of the prompt that are left
    if together:
        running[:] = False
        waiting.extend([place, 0.0, drawn(loop.prompt_tokens)] for place in range(count))
    else:
        left = np.maximum(1, np.rint(left * random.uniform(0, 1, count)))
    first = np.zeros(count)
    clock, gaps, tokens, ended = 0.0, 0.0, 0, 0
    started: list[float] = []
    while ended < waves * count:
        room, taken_up, ready = float(loop.budget), 0.0, []
        decodes = loop.scheduler != FIRST or not waiting
        while waiting and room > 0:
            size = waiting[0][2]
            if loop.scheduler != MIXED and size > room and taken_up:
                break
            taken = min(size, room) if loop.scheduler == MIXED else size
            room, taken_up = room - taken, taken_up + taken
            if taken < size:
                waiting[0][2] -= taken
                break
            ready.append(waiting.popleft())
        clock += taken_up / loop.prompt_tokens * loop.prompt + (
            loop.fixed + loop.each * running.sum() if decodes else 0
        )
        over: Any = ()
        if decodes:
            left[running] -= 1
            over = np.flatnonzero(running & (left <= 0))
        for place, arrival, _ in ready:
            here = int(place)
            running[here], first[here] = True, clock
            outputs[here] = max(2, round(drawn(loop.outputs)))
            left[here] = outputs[here] - 1
            started.append(clock - arrival)
            counted[here] = len(started) > warm * count
        for here in over:
            if counted[here]:
                gaps, tokens = gaps + clock - first[here], tokens + outputs[here] - 1
            running[here] = False
            waiting.append([float(here), clock, drawn(loop.prompt_tokens)])
            ended += 1
    return gaps / max(tokens, 1), np.array(started[warm * count :])


class Closed:
    """Our own equations of serving over passes whose times are given."""

    def __init__(self, made: Estimate) -> None:
        equations, side = made.equations, made.equations.prefill_workers
        self.whole, self.overhead, self.decode = (
            Input(f"given.{name}", name, "s", 0.0) for name in ("prefill", "overhead", "decode")
        )
        nothing = Input("given.nothing", "nothing", "s", 0.0)
        sections = (*side.sections(), *equations.prefill.sections, *equations.decode.sections)
        rows = Equations(frozenset())
        rows.know(*constant.ALL, *side.inputs.named().values(), *side.ranks.rows(), *kinds_of_schedulers())
        rows.know(*(figure for section in sections for figure in section.figures()))
        rows.know_table("framework", frameworks(made.library).columns)
        steps_of(rows, equations.prefill, equations.decode)
        operations_of(rows, "operations", equations.prefill)
        for name, figure in {
            "prefill.time": self.whole,
            "prefill.bound.overhead": self.overhead,
            "prefill.host.time": nothing,
            "decode.time": self.decode,
        }.items():
            rows.know_as(name, figure)
        for name in ("mixed.", "mixed.full."):  # nothing of a prompt fits into the waits of decode
            rows.know_as(f"{name}lm_head", nothing)
            rows.know_as(f"{name}added", rows[f"{name}share"] * self.whole)
        names = (
            "tpot",
            "ttft",
            "ttft_steady",
            "ttft_p50",
            "ttft_p95",
            "burst",
            "queue",
            "saturation",
            "generation",
        )
        self.outputs = {name: rows[f"serving.{name}"] for name in names}
        self.program = Program(list(self.outputs.values()))
        self.given = made.inputs(0)

    def __call__(self, loop: Loop) -> dict[str, float]:
        """Results for a loop, with nothing around its steps: no handling, no interference, no cold start."""
        lag = 0 if loop.scheduler == FIRST else 1  # a prompt that rides along takes a decode step as well
        factors = {
            "interference": 1,
            "queueing": 1,
            "eager_launch": 0,
            "step_lag": lag,
            "first_token": 0,
            "cold_start": 0,
        }
        values = self.program.run(
            self.given
            | {f"efficiency.{name}.override": value for name, value in factors.items()}
            | {
                "inputs.scheduler": loop.scheduler,
                "inputs.concurrency": loop.requests,
                "inputs.input_tokens": loop.prompt_tokens,
                "inputs.output_tokens": loop.outputs,
                "inputs.token_budget": loop.budget,
                "inputs.length_range_ratio": loop.spread,
                "inputs.prompts_per_slot": loop.per_slot,
                "given.prefill": loop.prompt,
                "given.overhead": 0.0,
                "given.decode": loop.step,
            }
        )
        return {name: float(values[figure]) for name, figure in self.outputs.items()}


@pytest.fixture(scope="module")
def closed(make: Make) -> Closed:
    """Equations of a small model on a large accelerator: any batch fits."""
    return Closed(make(model="llama-3.2-1b", accelerator="b300-sxm", tp=1))


def loaded(scheduler: str, requests: int, prompt_tokens: int, outputs: int, load: float, **more: Any) -> Loop:
    """A loop in which prompts of others take this share of the time."""
    loop = Loop(scheduler, requests, 0.01, 0.00005, 0.0, prompt_tokens, outputs, **more)
    return replace(loop, prompt=load / (1 - load) * loop.step * outputs / (requests - 1))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_closed_forms_follow_a_simulation(closed: Closed, scheduler: str) -> None:
    """TPOT within 2 %.

    Mean TTFT of a service that runs on within 15 % in half of the settings, 35 % in all; its median within
    8 % in half. p95 is a fifth too short here: requests of nearly one length come in groups.
    """
    gaps, firsts, medians, tails = [], [], [], []
    for requests, (prompt_tokens, outputs), load in product(
        (4, 16, 48), ((1000, 100), (3000, 200)), (0.15, 0.5)
    ):
        loop = loaded(scheduler, requests, prompt_tokens, outputs, load)
        gap, first = simulate(loop, waves=9, warm=3, together=False)
        ours = closed(loop)
        gaps.append(ours["tpot"] / gap - 1)
        firsts.append(ours["ttft"] / first.mean() - 1)
        medians.append(ours["ttft_p50"] / np.median(first) - 1)
        tails.append(ours["ttft_p95"] / np.quantile(first, 0.95) - 1)
    assert np.median(np.abs(medians)) < 0.08
    assert np.median(np.abs(tails)) < 0.25 and abs(np.median(tails)) < 0.2
    assert np.abs(gaps).max() < 0.02
    assert np.median(np.abs(firsts)) < 0.15
    assert np.max(np.abs(firsts)) < 0.35
    assert abs(np.median(firsts)) < 0.12


@pytest.mark.parametrize(("requests", "load"), [(4, 0.15), (16, 0.5), (48, 0.3)])
def test_requests_of_one_length_run_in_lockstep(closed: Closed, requests: int, load: float) -> None:
    """Where decode stops for prompts and all end together.

    TTFT is the mean of a queue, and half of the prompts stall a token: all in its 149 gaps, of which there is
    one less than of tokens.
    """
    loop = loaded(FIRST, requests, 1000, 150, load, budget=1000, spread=0.0, per_slot=10)
    gap, first = simulate(loop, waves=5, warm=2, together=True)
    ours = closed(loop)
    assert ours["ttft_steady"] == pytest.approx(first.mean(), rel=1e-9)
    assert ours["ttft_steady"] == pytest.approx(loop.prompt * (requests + 1) / 2, rel=1e-9)
    assert ours["tpot"] == pytest.approx(gap, rel=0.01)
    apart = closed(replace(loop, spread=0.2))
    stalled = 2 * (ours["tpot"] - loop.step) * 149 / 150
    assert apart["tpot"] - loop.step == pytest.approx(stalled, rel=1e-9)
    service = closed(replace(loop, per_slot=0))  # where nobody says that requests start together: half
    assert service["tpot"] == pytest.approx((ours["tpot"] + apart["tpot"]) / 2, rel=1e-9)
    for scheduler in (MIXED, WHOLE):
        one, other = (closed(replace(loop, scheduler=scheduler, spread=spread)) for spread in (0.0, 0.2))
        for name in ("tpot", "ttft", "queue"):
            assert one[name] == other[name]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("requests", [1, 6, 40])
@pytest.mark.parametrize("budget", [2000, 8000, 100_000])
def test_the_first_wave_waits_for_its_steps(
    closed: Closed, scheduler: str, requests: int, budget: int
) -> None:
    """All requests at once: mean TTFT of the first wave within a decode step and a tenth of it.

    However few prompts there are for a step.
    """
    loop = Loop(scheduler, requests, 0.01, 0.00005, 0.03, 1000, 100, budget)
    _, first = simulate(loop, waves=1, warm=0, together=True)
    ours = closed(loop)["burst"]
    assert ours == pytest.approx(first[:requests].mean(), rel=0.12, abs=1.5 * loop.step)


def test_prompts_that_fill_every_step_take_turns(closed: Closed) -> None:
    """Where the budget cannot keep up, throughput is that of full steps.

    Ours count all of the batch as decoding, so they are a little long.
    """
    loop = Loop(MIXED, 48, 0.01, 0.00005, 0.05, 2000, 20, budget=1000)
    gap, first = simulate(loop, waves=12, warm=4, together=False)
    ours = closed(loop)
    assert ours["saturation"] > 0
    there, here = first.mean() + 19 * gap, ours["ttft"] + ours["generation"]
    assert there * (1 - 0.02) < here < there * (1 + 0.08)


# --- which way figures move ---------------------------------------------------------------------------------

MODELS = ("llama-3.3-70b", "gpt-oss-120b")


def swept(made: Estimate, names: tuple[str, ...], **varied: Any) -> dict[str, np.ndarray]:
    """Figures of the serving block over arrays of inputs."""
    figures = {name: made.figure(f"serving.{name}" if "." not in name else name) for name in names}
    given = {
        (f"inputs.{name}" if not name.startswith("efficiency") else name.replace("__", ".")): value
        for name, value in varied.items()
    }
    values = Program(figures.values()).sweep(made.inputs(0) | given)
    size = max(np.size(value) for value in varied.values())
    return {name: np.broadcast_to(values[figure], size) for name, figure in figures.items()}


def grid(**domains: tuple[Any, ...]) -> dict[str, np.ndarray]:
    """Every combination, as arrays."""
    rows = list(product(*domains.values()))
    return {name: np.array([row[place] for row in rows]) for place, name in enumerate(domains)}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "scheduler"), [*((MODELS[0], scheduler) for scheduler in SCHEDULERS), (MODELS[1], MIXED)]
)
def test_more_requests_never_make_anything_faster(make: Make, model: str, scheduler: str) -> None:
    """TTFT and TPOT over concurrency, of a service and of a benchmark; within memory and beyond it.

    Where prompts fill every step and more of them are prefilled again, fewer requests decode in a step, so
    that a token may come up to 1 % earlier; requests end later all the same.
    """
    made, many = make(model=model), np.arange(1, 3000)
    for waves in (0, 1, 10):
        for budget in (512, 8192, 32_768):
            found = swept(
                made,
                ("ttft", "tpot", "ttft_p50", "ttft_p95", "e2e", "memory.redone"),
                concurrency=many,
                scheduler=scheduler,
                prompts_per_slot=waves,
                token_budget=budget,
            )
            again = np.diff(found.pop("memory.redone")) > 0
            for name, values in found.items():
                never = np.diff(values) >= -1e-12 * values[1:]
                assert (never | again if name == "tpot" else never).all(), (name, waves, budget)
            assert found["tpot"][again.argmax() :].min() >= 0.99 * found["tpot"][again.argmax()]
            assert found["ttft"][-1] > 2 * found["ttft"][0]


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", MODELS)
def test_half_of_the_requests_are_not_later_than_one_in_twenty(make: Make, model: str) -> None:
    """Percentiles in order, a first token before the last.

    No wait for a lone request of a service that runs on.
    """
    varied = grid(
        concurrency=(1, 2, 16, 250, 5000),
        scheduler=tuple(SCHEDULERS),
        prompts_per_slot=(0, 0.5, 1, 10),
        length_range_ratio=(0, 0.2),
        input_tokens=(64, 2000, 60_000),
        output_tokens=(1, 20, 1000),
        batching=("continuous", "static"),
        p95_output_ratio=(1, 1.1, 3),
    )
    names = (
        "ttft",
        "ttft_p50",
        "ttft_p95",
        "e2e",
        "e2e_p50",
        "e2e_p95",
        "queue",
        "stall",
        "seat_wait",
        "burst_wait",
        "base",
    )
    found = swept(make(model=model), names, **varied)
    tiny = 1 - 1e-12
    assert (found["ttft_p95"] >= found["ttft_p50"] * tiny).all()
    assert (found["e2e_p95"] >= found["e2e_p50"] * tiny).all()
    assert (found["e2e"] >= found["ttft"] * tiny).all()
    assert (found["e2e_p50"] >= found["ttft_p50"] * tiny).all()
    assert (found["e2e_p95"] >= found["ttft_p95"] * tiny).all()
    steady = (varied["prompts_per_slot"] == 0) & (varied["batching"] == "continuous")
    alone, pair = ((varied["concurrency"] == number) & steady for number in (1, 2))
    longest = 1 / (1 - varied["length_range_ratio"][pair] / 2)  # of prompts, against their mean
    assert (
        found["ttft_p95"][pair] <= 2 * found["base"][pair] * longest
    ).all()  # one other prompt to wait behind, and no more
    assert (found["stall"][varied["concurrency"] == 1] == 0).all()
    own = found["ttft_p95"][alone] / found["ttft"][alone]  # the own prompt alone may be longer
    assert ((own >= tiny) & (own * tiny <= 1 / (1 - varied["length_range_ratio"][alone] / 2))).all()


@pytest.mark.parametrize(
    ("lengths", "spread"), [((8192, 8), 0), ((8192, 64), 0), ((16, 4096), 0), ((1024, 1024), 0.5)]
)
def test_a_burst_ends_with_its_last_request(make: Make, lengths: tuple[int, int], spread: float) -> None:
    """100 requests at once: all are done when the last one is.

    With long prompts that is when the last prompt is through, with long outputs when all have theirs, with
    outputs of unequal length when the longest is there.
    """
    made = make(
        input_tokens=lengths[0],
        output_tokens=lengths[1],
        concurrency=100,
        prompts_per_slot=1,
        length_range_ratio=spread,
    )
    found = swept(
        made,
        ("requests_per_s", "ttft", "line", "generation", "stall", "ramp"),
        prompts_per_slot=np.array([1]),
    )
    done = 100 / float(found["requests_per_s"][0])
    ttft, line, generation = (float(found[name][0]) for name in ("ttft", "line", "generation"))
    free = generation - (lengths[1] - 1) * float(found["stall"][0])
    if lengths[0] == 8192:
        assert line < done == pytest.approx(line + free, rel=0.15)
        assert found["ramp"][0] < 0.6 or lengths[1] > 8
    elif spread == 0:
        assert done == pytest.approx(line + free, rel=0.05)
    else:
        longest = 1 / (1 - spread / 2)  # of lengths drawn evenly, against their mean
        assert ttft + longest * free < done < ttft + line + longest * generation


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_first_wave_is_a_share_of_a_benchmark(make: Make, scheduler: str) -> None:
    """Without prompts per slot a service that runs on; with one the burst alone; in between in proportion.

    Only the burst pays cold starts.
    """
    made = make(scheduler=scheduler, concurrency=64)
    waves = np.array([0, 0.5, 1, 2, 10, 1000])
    found = swept(
        made,
        (
            "ttft",
            "ttft_steady",
            "burst",
            "burst_wait",
            "ramp",
            "e2e",
            "requests_per_s",
            "line",
            "stall",
            "generation",
        ),
        prompts_per_slot=waves,
    )
    assert found["burst_wait"][0] == 0 and found["ttft"][0] == found["ttft_steady"][0]
    assert found["ramp"][0] == 1
    assert len(set(found["ttft_steady"])) == len(set(found["burst"])) == 1
    share = np.array([0, 1, 1, 1 / 2, 1 / 10, 1 / 1000])
    np.testing.assert_allclose(
        found["ttft"], found["ttft_steady"] + share * (found["burst"] - found["ttft_steady"]), rtol=1e-12
    )
    each = np.array([0, 1, 1, 2, 10, 1000])
    longest = np.minimum(found["e2e"] / 2, found["generation"] * each**0.5 * 0.2 / 1.8)
    last = found["line"] / 2 + longest - 255 * found["stall"]
    took = np.maximum(each * found["line"], each * found["e2e"] + np.maximum(0, last))
    np.testing.assert_allclose((64 * each / found["requests_per_s"])[1:], took[1:], rtol=1e-12)
    assert found["burst"][0] > found["ttft_steady"][0]
    cold = swept(
        made,
        ("ttft", "ttft_steady", "burst", "tpot"),
        prompts_per_slot=waves,
        efficiency__cold_start__override=7_000_000,
    )
    none = swept(
        made,
        ("ttft", "ttft_steady", "burst", "tpot"),
        prompts_per_slot=waves,
        efficiency__cold_start__override=0,
    )
    np.testing.assert_allclose(cold["ttft"] - none["ttft"], share * 7, rtol=1e-9, atol=1e-12)
    for name in ("ttft_steady", "tpot"):
        np.testing.assert_array_equal(cold[name], none[name])


def test_a_scheduler_that_looks_seldom_lets_requests_wait(make: Make) -> None:
    """Half of the steps between two looks, and steps to fill a batch of prompts.

    Fewer for those that come while it fills. Prompts that came in between share a step: where decode stops
    for them they cost less together; where they ride along, fewer steps lend them a wait for memory.
    """
    made = make(concurrency=64)
    names = ("ttft", "ttft_p50", "ttft_p95", "tpot", "held_back", "prompts_per_token", "prompts_per_step")
    intervals = np.array([0, 1, 10, 30])
    found = swept(made, names, receive_interval=intervals)
    assert found["tpot"][0] == found["tpot"][1] and (np.diff(found["tpot"])[1:] > 0).all()
    np.testing.assert_allclose(found["tpot"], found["tpot"][0], rtol=0.03)
    np.testing.assert_allclose(found["held_back"], intervals / 2 * found["tpot"], rtol=1e-9)
    for name in ("ttft", "ttft_p50", "ttft_p95"):
        assert (np.diff(found[name]) >= 0.9 * np.diff(found["held_back"])).all()
    first = swept(make(concurrency=64, framework="sglang"), names, receive_interval=intervals)
    assert first["tpot"][0] == first["tpot"][1] and (np.diff(first["tpot"])[1:] < 0).all()
    steps = np.array([0, 1, 5, 20, 10_000])
    found = swept(made, names, batch_wait_steps=steps)
    np.testing.assert_allclose(found["tpot"], found["tpot"][0], rtol=0.03)
    rate = 63 / 256
    assert found["prompts_per_token"][0] == pytest.approx(rate, rel=1e-12)
    most = 8192 / 2048 / rate
    assert found["prompts_per_step"][0] == 4 and 5 < most < 20
    waited = np.minimum(steps, most)
    expected = waited * (1 + rate * waited / 2) / (1 + rate * waited)
    np.testing.assert_allclose(found["held_back"], expected * found["tpot"], rtol=1e-9, atol=1e-12)
    assert (np.diff(found["ttft"])[:3] > 0).all()
    assert (np.diff(expected) >= 0).all()
    static = swept(
        make(batching="static", length_range_ratio=0),
        ("held_back", "first_step"),
        receive_interval=intervals,
        batch_wait_steps=20,
    )
    assert not static["held_back"].any() and not static["first_step"].any()


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_a_static_batch_ends_with_its_longest_output(make: Make, framework: str) -> None:
    """The mean request waits for the rest of its batch: the largest of B draws, by simulation.

    Continuous batching has no longer TTFT at any load, and a lone request the same.
    """
    fields = {"framework": framework, "model": "llama-3.1-8b", "tp": 1, "input_tokens": 1024}
    dice = np.random.default_rng(3)
    for requests, spread in ((1, 0.2), (2, 0.2), (8, 0.5), (64, 1.0)):
        asked = fields | {"output_tokens": 100, "concurrency": requests, "length_range_ratio": spread}
        drawn = dice.uniform(1 - spread, 1, (20_000, requests))
        longest = drawn.max(axis=1).mean() / drawn.mean()
        at, alike = (
            swept(make(**asked | {"batching": "static", "length_range_ratio": one}), ("ttft", "tpot"), tp=[1])
            for one in (spread, 0)
        )
        waits = (at["ttft"] - alike["ttft"]) / at["tpot"]
        assert waits == pytest.approx(100 * (longest - 1), rel=0.01, abs=1e-9)
        continuous = swept(make(**asked), ("ttft",), tp=[1])["ttft"]
        assert continuous <= at["ttft"] * (1 + 1e-12)
        assert requests > 1 or continuous == pytest.approx(at["ttft"], rel=1e-12)


@pytest.mark.parametrize("fields", [{"batching": "static"}, {"decode": {"tp": 8}}])
def test_no_prompt_disturbs_decode_that_is_apart(make: Make, fields: dict[str, Any]) -> None:
    """In static batching, or on workers of their own: no stall, no queue behind prompts, no first wave.

    Equal lengths change nothing.
    """
    made = make(model="llama-3.1-8b", **fields)
    varied = grid(
        scheduler=tuple(SCHEDULERS),
        length_range_ratio=(0, 0.2),
        prompts_per_slot=(0, 10),
        concurrency=(1, 40),
    )
    found = swept(made, ("stall", "queue", "burst_wait", "lockstep", "saturation"), **varied)
    for name, values in found.items():
        assert not values.any(), name


# --- limits and releases ------------------------------------------------------------------------------------


def test_an_engine_runs_no_more_requests_than_it_is_told(make: Make) -> None:
    """The batch ends at the limit, the others wait for a seat.

    Within the batch all is as for that many requests. 0 is no limit.
    """
    made = make(model="llama-3.1-8b", accelerator="h200-sxm", tp=1)
    names = ("memory.batch", "tpot", "base", "seat_wait", "ttft", "service_time")
    free = swept(made, names, concurrency=np.array([100, 40]))
    told = swept(made, names, concurrency=100, max_requests=np.array([0, 40, 100, 1000]))
    assert list(told["memory.batch"]) == [100, 40, 100, 100]
    assert told["tpot"][1] == free["tpot"][1] and told["base"][1] == free["base"][1]
    assert [told["tpot"][place] for place in (0, 2, 3)] == [free["tpot"][0]] * 3
    assert list(told["seat_wait"] > 0) == [False, True, False, False]
    assert told["seat_wait"][1] == pytest.approx(60 / 40 * told["service_time"][1], rel=1e-12)
    replicas = swept(made, names, concurrency=100, max_requests=np.array([40, 60]), dp=2)
    assert list(replicas["memory.batch"]) == [40, 50]
    groups = swept(made, names, concurrency=100, max_requests=np.array([40, 60]), attention_dp=2)
    assert list(groups["memory.batch"]) == [40, 60]


@pytest.mark.exhaustive
def test_engines_of_another_time(make: Make, library: Library) -> None:
    """Before December 2025 grouped products take longer by a factor, nothing else does.

    Since May 2026 launches are shorter by one, nothing else is; it is fitted for SGLang, 1 for others.
    A dense model has no such input.
    """
    for name in model_ids():
        model = load_model(name)
        inputs, _ = workload(library, build_ir(model), False)
        assert ("engine_release" in inputs.named()) == bool(model.architecture.value("experts")), name
    made = make(model="gpt-oss-120b", tp=1)
    now, last, then = (
        made.program.run(made.inputs(0) | {"inputs.engine_release": release})
        for release in ("current", "2025-12 to 2026-04", "before 2025-12")
    )
    slower = float(then[made.figure("efficiency.moe_slower")])
    assert slower == float(then[made.figure("efficiency.moe_early")]) > 1.05
    assert now[made.figure("efficiency.moe_slower")] == 1
    blocks = [block for phase in (made.equations.prefill, made.equations.decode) for block in phase.blocks]
    for block in blocks:
        before, after = float(then[block.time]), float(last[block.time])
        if block.id in ("experts_up", "experts_down"):
            assert 0.95 * slower < before / after <= slower * (1 + 1e-12), block.id  # rows move as before
        else:
            assert before == after, block.id
        assert now[block.time] == last[block.time]
    for name in ("ttft", "tpot"):
        figure = made.figure(f"serving.{name}")
        assert last[figure] < then[figure] < slower * last[figure]
    of_sglang = make(model="gpt-oss-120b", tp=1, framework="sglang")
    now, last = (
        of_sglang.program.run(of_sglang.inputs(0) | {"inputs.engine_release": release})
        for release in ("current", "2025-12 to 2026-04")
    )
    shorter = float(now[of_sglang.figure("efficiency.launch_current")])
    assert 0.5 < shorter < 0.9
    for phase in (of_sglang.equations.prefill, of_sglang.equations.decode):
        for block in phase.blocks:
            if block.launch is None or block.network:
                assert now[block.time] == last[block.time], block.id
            else:
                assert float(now[block.launch]) == pytest.approx(shorter * float(last[block.launch])), (
                    block.id
                )
    with pytest.raises(InputError, match=r"field engine_release: llama-3\.1-8b has no experts"):
        make(model="llama-3.1-8b", engine_release="before 2025-12")
    assert (
        make(model="mixtral-8x7b", engine_release="before 2025-12").results()["tpot_s"]
        > make(model="mixtral-8x7b").results()["tpot_s"]
    )


def test_a_framework_has_its_scheduler_unless_another_is_asked_for(make: Make, library: Library) -> None:
    """vLLM mixes, SGLang prefills first, TensorRT-LLM takes whole prompts.

    Figures of the waits are those of the one in use.
    """
    made = make()
    theirs = {framework.id: framework.scheduler for framework in library.frameworks}
    assert (theirs["vllm"], theirs["sglang"], theirs["trtllm"]) == (MIXED, FIRST, WHOLE)
    for framework, usual in theirs.items():
        for asked in ("default", *SCHEDULERS):
            values = made.program.run(
                made.inputs(0) | {"inputs.framework": framework, "inputs.scheduler": asked}
            )
            used = values[made.figure("scheduler.in_use")]
            assert used == (usual if asked == "default" else asked)
            assert values[made.figure("scheduler.first")] == (used == FIRST)
            for name in ("factor", "share", "others"):
                mine = values[made.figure(f"scheduler.mean.{name}")]
                assert mine == made.figure(f"scheduler.mean.{name}.{used}").value


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_a_lone_request_knows_no_batching(make: Make, framework: str) -> None:
    """Continuous or static: nothing else runs."""
    alone = [
        make(model="llama-3.1-8b", tp=1, concurrency=1, framework=framework, batching=batching).results()
        for batching in ("continuous", "static")
    ]
    for name in ("ttft_s", "tpot_s", "e2e_s"):
        assert alone[0][name] == pytest.approx(alone[1][name], rel=1e-9), name


@pytest.mark.parametrize(("framework", "stops"), [("sglang", True), ("trtllm", False)])
def test_a_step_with_prompts_is_not_over_before_its_host(make: Make, framework: str, stops: bool) -> None:
    """A graph holds decode steps; a step with prompts is started operation by operation, once for all prompts
    in it, chunk by chunk. Where that takes longer than the work, a faster chip does not help."""
    made = make(model="gpt-oss-20b", tp=1, framework=framework, input_tokens=256, output_tokens=256)
    named = (
        ("host", "serving.prompt_host"),
        ("delay", "serving.prompt_held"),
        ("added", "serving.prefill_added"),
        ("together", "serving.prompts_together"),
        ("launches", "serving.prefill_launches"),
        ("operations", "serving.operations"),
        ("step", "decode.time"),
        ("tpot", "serving.tpot"),
    )
    program = Program([made.figure(figure) for _, figure in named])

    def at(**fields: float) -> dict[str, float]:
        stated = {f"inputs.{name}": value for name, value in fields.items() if name != "eager"}
        values = program.run(
            made.inputs(0) | stated | {"efficiency.eager_launch.override": fields.get("eager", 40)}
        )
        return {name: float(values[made.figure(figure)]) for name, figure in named}

    for fields in ({"concurrency": 16}, {"concurrency": 256}, {"token_budget": 64}):
        found = at(**fields)
        once = found["operations"] * 40e-6 / min(1, found["together"])  # of a prompt, each of its chunks
        assert found["host"] == pytest.approx(once / max(1, found["together"]), rel=1e-9)
        work = found["added"] + stops * found["launches"] / max(1, found["together"])
        rest = found["host"] - (not stops) * found["step"] / found["together"]
        assert found["delay"] == pytest.approx(max(work, rest), rel=1e-9)
    assert at(concurrency=64, receive_interval=30)["together"] == pytest.approx(30 * 63 / 256)
    slow, none, slower = (at(concurrency=64, eager=value)["tpot"] for value in (100, 0, 200))
    assert none < slow < slower


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [({}, 512), ({"batching": "static"}, 4 * 512), ({"shared_prefix": 384}, 128)],
    ids=["alone", "static batch", "prefix found"],
)
def test_prefill_counts_the_tokens_that_are_worked_out(
    make: Make, fields: dict[str, Any], tokens: int
) -> None:
    """Tokens per second of a prefill with nothing beside it; none of a plan that cannot be."""
    made = make(model="llama-3.1-8b", tp=1, concurrency=4, input_tokens=512, **fields)
    rate = made.prefill_tokens_per_s
    assert rate is not None
    assert rate * made["serving.prefill"].value == pytest.approx(tokens, rel=1e-9)
    assert make(model="llama-3.1-405b", tp=1, input_tokens=512).prefill_tokens_per_s is None
