"""The best plan is that of every combination worked out by itself, whatever is wanted within what limits."""

from __future__ import annotations

import json
import pickle
import random
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import few_of

from mantile import estimate, optimize, sweep
from mantile.cli import main
from mantile.estimates.sweep import FRONT, pareto
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario
from mantile.search.objective import default_limits, limit
from mantile.search.optimize import Optimum
from mantile.search.search import Search

MEASURES = {
    "cost": ("usd_per_million_tokens_output", 1),
    "throughput-per-accelerator": ("output_tokens_per_s_per_accelerator", -1),
    "tpot": ("tpot_s", 1),
    "ttft-p95": ("ttft_p95_s", 1),
    "e2e": ("e2e_s", 1),
    "interactivity": ("interactivity_tokens_per_s", -1),
    "accelerators": ("accelerators", 1),
}
OBJECTIVES = ("cost", "throughput-per-accelerator", "tpot", "ttft-p95", "e2e", "interactivity")
OBJECTIVES += ("accelerators,cost", "tpot,cost", "0.7*cost+0.3*e2e")
LIMITS = {
    "ttft_p95_s": "at most",
    "tpot_s": "at most",
    "e2e_s": "at most",
    "usd_per_hour": "at most",
    "usd_per_million_tokens_output": "at most",
    "interactivity_tokens_per_s": "at least",
    "output_tokens_per_s": "at least",
}
NAMES = ["accelerator", "framework", "weights_dtype", "kv_dtype", "tp", "pp", "attention_dp", "ep", "dp"]
MOST_IN_FLIGHT = 480


class Space:
    """Plans, a workload, what is wanted and limits, drawn at random; and every combination by itself."""

    def __init__(self, seed: int, load: str) -> None:
        dice = random.Random(f"{seed} {load}")
        searched = load == "searched"
        chips = ["h100-sxm", "l40s", "mi300x", "rtx-4090", "tpu7x"]
        self.over: dict[str, list[Any]] = {
            "accelerator": dice.sample(chips, dice.choice([2, 3])),
            "framework": dice.sample(["vllm", "sglang", "trtllm"], 2),
            "weights_dtype": dice.sample(["bf16", "fp8"], dice.choice([1, 2])),
            "kv_dtype": dice.sample(["bf16", "fp8"], dice.choice([1, 2])),
            "tp": [1, 2, 4],
            "pp": [1] if searched else dice.choice([[1], [1, 2]]),
            "attention_dp": dice.choice([[1], [1, 2]]),
            "ep": [1],
            "dp": [1, 2, 4],
        }
        self.most = dice.choice([2, 4])
        self.workload: dict[str, Any] = {
            "model": "llama-3.1-8b" if searched else dice.choice(["llama-3.1-8b", "qwen3-32b"]),
            "input_tokens": dice.choice([60_000, 100_000] if searched else [500, 4000]),
            "output_tokens": dice.choice([100, 800]),
        }
        if load == "stated":
            self.workload["concurrency"] = dice.choice([1, 8, 50])
        elif load == "rate":
            self.workload["request_rate"] = dice.choice([0.2, 2.0, 10.0])
        self.load = load
        self.objective = dice.choice(OBJECTIVES)
        self.points = self._points()
        self.limits: dict[str, float] = {}
        for name in dice.sample(sorted(LIMITS), dice.choice([0, 1, 2])):
            known = self.points.loc[self.points["possible"], name].dropna()
            if len(known):
                self.limits[name] = float(known.quantile(dice.choice([0.3, 0.5, 0.7])))
        self.points["score"] = self._score()
        self.good = self.points[self.points["possible"] & self._kept() & np.isfinite(self.points["score"])]

    def _points(self) -> pd.DataFrame:
        """Every combination, and at every number of requests for which memory has room."""
        fields = {**self.workload, "accelerator": self.over["accelerator"][0]}
        axes: dict[str, Any] = dict(self.over)
        if self.load == "searched":
            fields["concurrency"] = 1
            axes["concurrency"] = range(1, MOST_IN_FLIGHT + 1)
        found = sweep(parse_scenario(fields, "scenario"), axes)
        ranks = found[["tp", "pp", "attention_dp", "dp"]].prod(axis=1)
        found = found[ranks <= self.most].reset_index(drop=True)
        if self.load == "searched":
            each = found["concurrency"] / found["dp"]
            single = found[each == 1].set_index(NAMES)["kv_capacity_sequences"].rename("room")
            room = np.floor(found.join(single, on=NAMES)["room"]).clip(lower=1)
            assert (room * found["dp"]).max() <= MOST_IN_FLIGHT
            found = found[(each == each.round()) & (each <= room)].reset_index(drop=True)
        fits = found["feasibility"].isin(["fits", "fits_with_offload"])
        overloaded = found["reasons"].astype(str).str.contains("OVERLOADED")
        # groups of a model without experts are replicas of vLLM; of TensorRT-LLM every rank is a group
        alone, engine = found["attention_dp"] == 1, found["framework"]
        told = alone | (engine == "sglang") | ((engine == "trtllm") & (found["tp"] == 1))
        return found.assign(possible=fits & ~overloaded & told)

    def _score(self) -> pd.Series:
        """What is wanted, the least best: logarithms, so that units do not matter."""
        terms = [term.rpartition("*") for term in self.objective.split("+")]
        weighted = [(name, float(share)) for share, times, name in terms if times]
        if not weighted:
            weighted = [(name, 1e-5**place) for place, name in enumerate(self.objective.split(","))]
        parts = [
            share * MEASURES[name][1] * np.log(self.points[MEASURES[name][0]].where(lambda of: of > 0))
            for name, share in weighted
        ]
        return sum(parts[1:], start=parts[0])

    def _kept(self) -> pd.Series:
        kept = pd.Series(True, self.points.index)
        for name, bound in self.limits.items():
            values = self.points[name]
            kept &= values <= bound if LIMITS[name] == "at most" else values >= bound
        return kept

    def solve(self, library: Library, **changes: Any) -> Optimum | None:
        """What `optimize` finds; None where it says that no plan can be."""
        asked = {"objective": self.objective, "limits": self.limits, "over": self.over} | changes
        try:
            return optimize(
                **self.workload, gpus_max=self.most, default_limits=False, library=library, **asked
            )
        except InputError as error:
            assert "none of" in str(error) and not self.points["possible"].any()
            return None


def ends(points: pd.DataFrame) -> list[tuple[float, float]]:
    """A front as figures."""
    return [(round(x, 9), round(y, 9)) for x, y in zip(points[FRONT[0]], points[FRONT[1]], strict=True)]


@pytest.mark.parametrize("load", ["stated", "rate"])
@pytest.mark.parametrize("seed", few_of((0, 2, 4), 0))
def test_it_is_the_best_of_every_combination(seed: int, load: str, library: Library) -> None:
    """The same winner, the same plans with a rank, the same front; and no plan is dropped."""
    space = Space(seed, load)
    found = space.solve(library)
    if found is None:
        return
    ranked = found.found.ranked
    assert found.found.tried == len(space.points)
    assert len(ranked) + sum(found.found.infeasible.values()) == found.found.tried
    assert sorted(map(tuple, ranked[NAMES].to_numpy())) == sorted(map(tuple, space.good[NAMES].to_numpy()))
    assert ends(found.found.front) == ends(pareto(space.good))
    if len(ranked):
        assert ranked["score"].iloc[0] == pytest.approx(space.good["score"].min(), abs=1e-9)
        assert found.winner is not None and found.winner.plan["accelerator"] == ranked["accelerator"].iloc[0]


@pytest.mark.parametrize("seed", few_of((0, 2, 6, 10), 0))
def test_the_load_that_is_found_is_the_best_of_all(seed: int, library: Library) -> None:
    """As if every number of requests from one to the room in memory had been tried.

    The front is that of every doubling, and nothing in it is beaten by more than lies between doublings.
    """
    space = Space(seed, "searched")
    found = space.solve(library)
    assert found is not None
    ranked = found.found.ranked
    assert len(ranked) + sum(found.found.infeasible.values()) == found.found.tried
    assert bool(len(ranked)) == bool(len(space.good))
    if not len(ranked):
        return
    assert ranked["score"].iloc[0] == pytest.approx(space.good["score"].min(), abs=1e-9)
    chosen = ranked.iloc[0]
    [row] = space.good.merge(pd.DataFrame([chosen[[*NAMES, "concurrency"]]])).to_dict("records")
    assert row["score"] == pytest.approx(chosen["score"], abs=1e-9)
    each = space.good["concurrency"] // space.good["dp"]
    last = each == each.groupby([space.good[name] for name in NAMES], observed=True).transform("max")
    doubled = space.good[(np.log2(each) % 1 == 0) | last]
    # every point of the front is one of all loads, and none of a doubling beats it
    at_loads = {*ends(space.good)}
    front = ends(found.found.front)
    assert {*front} <= at_loads
    for x, y in ends(doubled[np.log2(each[doubled.index]) % 1 == 0]):
        assert any(a >= x and b >= y for a, b in front)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "load"), [(100, "stated"), (102, "searched")])
def test_more_to_choose_from_and_looser_limits_are_never_worse(
    seed: int, load: str, library: Library
) -> None:
    space = Space(seed, load)
    found = space.solve(library)
    more = space.over | {"accelerator": [*dict.fromkeys([*space.over["accelerator"], "b200-sxm"])]}
    further = space.solve(library, over=more)
    looser = {
        name: bound * (1.3 if LIMITS[name] == "at most" else 0.7) for name, bound in space.limits.items()
    }
    freer = space.solve(library, limits=looser)
    if found is None or not found.has_winner:
        return
    best = found.found.ranked["score"].iloc[0]
    for other in (further, freer):
        assert other is not None and other.found.ranked["score"].iloc[0] <= best + 1e-9


ASKED: Mapping[str, Any] = {
    "model": "llama-3.1-8b",
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 16,
    "gpus_max": 2,
}


def test_a_plan_without_a_price_has_no_rank_by_cost(library: Library) -> None:
    """It is counted and listed, never as 0 USD; by speed it has a rank."""
    over = {"accelerator": ["h100-sxm", "tpu7x"], "framework": ["vllm"]}
    found = optimize(**ASKED, over=over, library=library)
    plans = found.found.plans
    unpriced = plans[plans["accelerator"] == "tpu7x"]
    assert len(unpriced) and set(unpriced["rank"]) == {0} and set(unpriced["code"]) == {"NOT_KNOWN"}
    assert unpriced["usd_per_million_tokens_output"].isna().all()
    assert found.found.infeasible["NOT_KNOWN"] == len(unpriced)
    assert set(found.found.ranked["accelerator"]) == {"h100-sxm"}
    [beside] = [one for one in found.candidates if one.plan["accelerator"] == "tpu7x"][:1]
    assert beside.rank is None and beside.results["usd_per_million_tokens"]["output"] is None
    fast = optimize(**ASKED, over=over, objective="throughput-per-accelerator", library=library)
    assert set(fast.found.ranked["accelerator"]) == {"h100-sxm", "tpu7x"}


CHIPS = {"accelerator": ["h100-sxm", "mi355x"], "framework": ["vllm"], "tp": [1], "pp": [1], "ep": [1]}


def test_a_price_is_of_one_accelerator(library: Library) -> None:
    """Each stated price is that of its chip, in search, scenario and estimates; one for all is refused."""
    prices = {"mi355x": 1.5, "H100": 2.5}
    found = optimize(**ASKED, over=CHIPS, prices=prices, library=library)
    assert set(found.found.ranked["accelerator"]) == {"h100-sxm", "mi355x"}
    paid = {one.plan["accelerator"]: one.results for one in found.candidates}
    assert {chip: of["usd_per_hour"] / of["accelerators"] for chip, of in paid.items()} == pytest.approx(
        {"mi355x": 1.5, "h100-sxm": 2.5}, rel=1e-12
    )
    alone = found.scenario.model_copy(update={"variants": (), "decision": None})
    assert found.winner is not None
    assert estimate(alone).results()["usd_per_hour"] == found.winner.results["usd_per_hour"]
    rented = optimize(**ASKED, over=CHIPS, prices={"h100-sxm": 0.5}, price_basis="rental", library=library)
    [least] = {
        one.results["usd_per_hour"] / one.results["accelerators"]
        for one in rented.candidates
        if one.plan["accelerator"] == "mi355x"
    }
    assert least == pytest.approx(2.1, rel=1e-12), "the rental price of the library"
    for identifier, way in (
        ("price_cloud", "prices of the scenario"),
        ("memory_bandwidth", "a file of your own"),
    ):
        typed = [{"id": f"hardware.{identifier}", "value": 2000.0, "reason": "test"}]
        with pytest.raises(InputError, match=f"hold for all 2 accelerators; expected .*{way}"):
            optimize(**ASKED, over=CHIPS, overrides=typed, library=library)
        optimize(**ASKED, over=CHIPS | {"accelerator": ["h100-sxm"]}, overrides=typed, library=library)
    links = [{"id": "hardware.scale_out_bandwidth", "value": 50.0, "reason": "our network"}]
    assert optimize(**ASKED, over=CHIPS, overrides=links, library=library).has_winner


def test_an_accelerator_without_a_price_says_which_prices_it_has(library: Library) -> None:
    """On the bases on which a price is known: that of owning follows from a purchase price alone."""
    found = optimize(**ASKED, over=CHIPS, library=library)
    [chip] = [one for one in found.chips if one.code]
    assert chip.why == (
        "No cloud price for Instinct MI355X, so no rank. Rental price 2.10 USD/h: --price-basis rental"
    )
    lost = {one.lost_because for one in found.candidates if one.rank is None}
    assert lost == {"no cloud price, so no rank; rental price 2.10 USD/h"}


def test_every_accelerator_that_is_asked_for_is_in_the_answer(library: Library) -> None:
    """With its best plan, or why it has none and how many would do: so many do, and one less does not."""
    asked: dict[str, Any] = {**ASKED, "concurrency": 400, "limits": {"tpot": 0.012, "ttft_p95": 5}}
    over = {"framework": ["vllm"], "tp": [1], "pp": [1], "attention_dp": [1], "kv_dtype": ["bf16"]}
    names = ["h100-sxm", "l40s", "t4", "b200-sxm"]
    found = optimize(**asked | {"gpus_max": 4}, over=over | {"accelerator": names}, library=library)
    told = found.to_dict()
    assert [*told["asked_accelerators"]] == names and told["cap"] == {"gpus_max": 4}
    chips = told["asked_accelerators"]
    best = chips["b200-sxm"]
    assert best["plan"] and best["why"] == "" and best["accelerators"] <= 4
    for name in ("l40s", "t4"):
        assert chips[name]["plan"] is None and chips[name]["gpus_needed"] is None, chips[name]
        assert "up to 64 do not keep every limit" in chips[name]["why"]
    lost = chips["h100-sxm"]
    assert lost["plan"] is None and lost["code"] == "LIMIT_TPOT_S" and lost["beyond"] > 0
    needs = lost["gpus_needed"]
    assert needs > 4 and lost["why"].endswith(f"(at most 4 accelerators); {needs} keep every limit")
    alone = over | {"accelerator": ["h100-sxm"]}
    assert optimize(**asked | {"gpus_max": needs}, over=alone, library=library).has_winner
    assert not optimize(**asked | {"gpus_max": needs - 1}, over=alone, library=library).has_winner
    every = optimize(**ASKED, over={"framework": ["vllm"], "tp": [1]}, makers=["AMD"], library=library)
    assert every.to_dict()["asked_accelerators"] == {}, "of all nobody asked for one by name"
    beside = optimize(**ASKED, over=CHIPS, makers=["NVIDIA"], library=library)
    assert [chip.code for chip in beside.chips] == ["", "NOT_OF_MAKERS"]


def test_too_few_accelerators_say_how_many_would_do(library: Library) -> None:
    """Where memory lets no plan be, and where the degrees take more than are allowed."""
    asked = {**ASKED, "model": "llama-3.3-70b", "gpus_max": 1, "accelerator": "a10", "host_memory": 0}
    with pytest.raises(InputError, match=r"INSUFFICIENT_MEMORY.* on one accelerator .* expected \d+ × A10"):
        optimize(**asked, library=library)
    with pytest.raises(InputError, match="the degrees asked for take more than one accelerator"):
        optimize(**asked, tp=2, library=library)


@pytest.mark.parametrize(("tokens", "bound"), [(1_000, 10), (10_000, 10), (32_000, 32), (500_000, 60)])
def test_a_wait_has_a_limit_by_default(tokens: int, bound: float) -> None:
    """Of 10 s, more for long prompts, never more than a minute; not beside a limit of waiting."""
    [one] = default_limits((), tokens)
    assert (one.measure.key, one.bound) == ("ttft_p95_s", bound)
    assert len(default_limits((limit("tpot", 1), limit("cost", 1)), tokens)) == 1
    for name in ("ttft", "ttft_p95", "e2e", "e2e_p95"):
        assert default_limits((limit(name, 100),), tokens) == ()


def test_nothing_is_best_with_a_wait_of_minutes(library: Library) -> None:
    """Unless somebody lifts the limit or states another; what holds is told."""
    asked: dict[str, Any] = {
        **ASKED,
        "input_tokens": 8000,
        "concurrency": 400,
        "accelerator": "l4",
        "gpus_max": 8,
    }
    asked |= {"framework": "vllm", "weights_dtype": "fp8", "kv_dtype": "fp8", "pp": 1, "attention_dp": 1}
    lifted = optimize(**asked, default_limits=False, library=library)
    assert lifted.winner is not None and lifted.winner.results["ttft_p95_s"] > 60
    found = optimize(**asked, library=library)
    assert all((one.results["ttft_p95_s"] <= 10) == (one.rank is not None) for one in found.candidates)
    told = found.to_dict()
    assert told["default_limits"] == {"ttft_p95_s": 10.0} and told["limits"] == {}
    assert lifted.to_dict()["default_limits"] == {}
    own = optimize(**asked, limits={"ttft_p95": 1000}, library=library).to_dict()
    assert own["limits"] == {"ttft_p95_s": 1000.0} and own["default_limits"] == {}


def test_the_longest_request_is_chosen_as_far_as_memory_holds_one(library: Library) -> None:
    """Of plans that are equal otherwise the one that takes the longest; what memory does not hold is out."""
    lengths = [4096, 8192, 20_000, 131_072, 500]
    over = {"max_model_len": lengths, "tp": [1, 2], "kv_dtype": ["bf16", "fp8"]}
    fixed = {"accelerator": "l4", "framework": "vllm", "weights_dtype": "bf16"}
    workload = {"model": "llama-3.1-8b", "input_tokens": 1000, "output_tokens": 200, "concurrency": 2}
    asked: dict[str, Any] = {**workload, **fixed, "pp": 1, "attention_dp": 1, "dp": 1}
    found = optimize(**asked, over=over, gpus_max=2, host_memory=0, library=library)
    ranked = found.found.ranked
    holds: dict[tuple[int, str], float] = {}
    for tp in over["tp"]:
        for kept in over["kv_dtype"]:
            alone = parse_scenario(workload | fixed | {"tp": tp, "kv_dtype": kept}, "alone")
            results = estimate(alone, library=library).results()
            holds[tp, kept] = results["kv_capacity_tokens"]  # type: ignore[index, assignment]
    expected = {
        (*plan, length) for plan, tokens in holds.items() for length in lengths if 1200 <= length <= tokens
    }
    assert {*ranked[["tp", "kv_dtype", "max_model_len"]].itertuples(index=False, name=None)} == expected
    assert len(expected) in range(5, 15)
    out = found.found.infeasible
    assert out["REQUEST_TOO_LONG"] == len(holds)
    assert out["CONTEXT_EXCEEDS_MEMORY"] == len(holds) * (len(lengths) - 1) - len(expected)
    for candidate in found.candidates:
        plan = candidate.plan["tp"], candidate.plan["kv_dtype"]
        assert candidate.plan["max_model_len"] == max(one[2] for one in expected if one[:2] == plan)
    assert found.scenario.max_model_len == found.candidates[0].plan["max_model_len"]
    chosen = optimize(**asked, over=over | {"max_model_len": "auto"}, gpus_max=2, library=library)
    assert [*chosen.space.contexts] == [1 << place for place in range(17, 10, -1)]


COMMAND = (
    "llama-3.1-8b",
    "--accelerator",
    "h100-sxm",
    "--framework",
    "vllm",
    "--isl",
    "1000",
    "--osl",
    "200",
)


HOSTED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "framework": "vllm",
    "weights_dtype": "bf16",
    "kv_dtype": "bf16",
    "input_tokens": 20_000,
    "output_tokens": 100,
    "concurrency": 2,
    "gpus_max": 1,
}


def test_what_fits_nowhere_is_looked_for_on_the_host(library: Library) -> None:
    """Parts of the weights within host memory, all that fit and no others; never the KV cache."""
    found = optimize(**HOSTED, over={"accelerator": ["t4", "l4"]}, host_memory=14, library=library)
    table = found.to_frame()
    assert not table[table["accelerator"] == "l4"][["offload_weights", "offload_kv"]].to_numpy().any()
    hosted = table[table["accelerator"] == "t4"]
    assert not hosted["offload_kv"].any()
    shown = {row.offload_weights: row.interactivity_tokens_per_s for row in hosted.itertuples()}
    tried = (4.1, 8.1)  # of 16.06 GB; all of them are more than the host has
    fitting = {}
    for weights in tried:
        fields = {key: value for key, value in HOSTED.items() if key != "gpus_max"}
        case = parse_scenario({**fields, "accelerator": "t4", "offload_weights": weights}, "case")
        results = estimate(case, library=library).results()
        if results["feasibility"] == "fits_with_offload":
            fitting[weights] = results["interactivity_tokens_per_s"]
    assert shown == fitting and 0 < len(fitting) < len(tried)
    assert found.found.tried == len(tried) + 2
    assert found.found.infeasible["INSUFFICIENT_MEMORY"] == found.found.tried - len(table)
    [named] = {one.name for one in found.candidates if one.plan["accelerator"] == "t4"}
    assert named.endswith("GB on the host")


@pytest.mark.exhaustive
def test_the_host_is_looked_at_where_that_is_asked_or_allowed(library: Library) -> None:
    fitting = optimize(**HOSTED, accelerator="l4", search=["offload"], library=library).to_frame()
    assert fitting["offload_weights"].nunique() > 2
    with pytest.raises(InputError, match="INSUFFICIENT_MEMORY: 1"):
        optimize(**HOSTED, accelerator="t4", host_memory=0, library=library)


class Here:
    """A scheduler's client whose workers get only what travels; this process does their work."""

    def __init__(self) -> None:
        self.parts: list[int] = []

    def submit(self, work: Any, *arguments: Any, **_: Any) -> Any:
        function, given = pickle.loads(pickle.dumps((work, arguments)))
        self.parts.append(len(given[2]))
        return SimpleNamespace(result=lambda: function(*given))

    def cancel(self, futures: list[Any], force: bool) -> None:
        """Nothing is on its way."""


SPREAD: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "input_tokens": 60_000,
    "output_tokens": 100,
    "accelerator": "h100-sxm",
    "framework": "vllm",
    "limits": {"ttft_p95": 20, "tpot": 0.05},
    "gpus_max": 2,
    "weights_dtype": "fp8",
    "workers": 2,
    "part": 4,
}


@cache
def spread() -> Optimum:
    """The answer that is worked out here in one piece."""
    return optimize(**SPREAD)


def same(one: Optimum, other: Optimum) -> None:
    """Two answers are equal to the last digit."""
    pd.testing.assert_frame_equal(one.to_frame(), other.to_frame(), check_exact=True)
    assert one.to_dict() == other.to_dict()


@pytest.mark.exhaustive
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_parts_of_plans_on_workers_are_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans in parts, each from what travels alone, in the order of the plans."""
    client = Here()
    monkeypatch.setattr(sys.modules["mantile.search.scheduled"], "connected", lambda *_: nullcontext(client))
    stated = SPREAD | {"concurrency": 2}
    same(optimize(**stated), optimize(**stated, cluster="local"))
    assert len(client.parts) == 6 and max(client.parts) == 4


@pytest.mark.exhaustive
@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_what_is_kept_is_not_worked_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that are there and whole are read, to the same answer; one that is cut short is not."""
    folder = tmp_path / "parts"
    whole = spread()
    same(whole, optimize(**SPREAD, keep=folder))
    kept = sorted(folder.glob("measured-*.parquet"))
    assert len(kept) > 8
    worked_out: list[int] = []
    measured = Search.measured

    def counted(search: Search, plans: pd.DataFrame) -> pd.DataFrame:
        worked_out.append(len(plans))
        return measured(search, plans)

    monkeypatch.setattr(Search, "measured", counted)
    same(whole, optimize(**SPREAD, keep=folder))
    assert not worked_out
    kept[0].write_bytes(kept[0].read_bytes()[:-50])
    kept[1].unlink()
    same(whole, optimize(**SPREAD, keep=folder))
    assert len(worked_out) == 2
    for other, words in (
        ({"output_tokens": 90}, "another scenario"),
        ({"gpus_max": 1}, "other plans to choose from"),
        ({"objective": "tpot"}, "another objective"),
        ({"limits": {"tpot": 0.05}}, "other limits"),
        ({"part": 5}, "another size of parts"),
    ):
        with pytest.raises(InputError, match=rf"another question \([^)]*{words}"):
            optimize(**SPREAD | other, keep=folder)


@pytest.mark.exhaustive
@pytest.mark.skipif(find_spec("distributed") is None, reason="distributed is not installed")
def test_a_cluster_gives_the_same_answer() -> None:
    same(spread(), optimize(**SPREAD, cluster="local"))


def ran(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Exit status, what was printed, and errors."""
    monkeypatch.setattr(sys, "argv", ["mantile", "optimize", *COMMAND, *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    shown = capsys.readouterr()
    return int(stop.value.code or 0), shown.out, shown.err


def test_limits_that_nothing_meets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 1, the nearest miss, and by how much."""
    arguments = ("--concurrency", "16", "--gpus-max", "2", "--tpot-max", "0.0001", "--json")
    status, out, errors = ran(monkeypatch, capsys, *arguments)
    said = json.loads(out)
    assert (status, errors, said["winner"], said["feasible"]) == (1, "", None, 0)
    assert sum(said["infeasible"].values()) == said["tried"] == said["infeasible"]["LIMIT_TPOT_S"]
    miss = said["nearest_miss"]
    [plan] = [one for one in said["candidates"] if one["plan"] == miss["plan"]]
    assert miss["limit"] == "tpot_s" and miss["beyond"] == pytest.approx(plan["metrics"]["tpot_s"] / 1e-4 - 1)
    assert miss["beyond"] == min(one["metrics"]["tpot_s"] / 1e-4 - 1 for one in said["candidates"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--objective", "beauty"), "beauty"),
        (("--objective", "0*cost+1*e2e"), "expected weights above 0"),
        (("--limit", "tpot_s>=1"), "expected <="),
        (("--limit", "tpot_s"), "expected MEASURE<=NUMBER"),
        (("--tpot-max", "-1"), "expected a number above 0"),
        (("--gpus-max", "0"), "gpus_max"),
        (("--over", "tp=0"), "tp"),
        (("--over", "input_tokens=1,2"), "expected a field of a plan"),
        (("--over", "accelerator=b200-sxm"), "fixed and listed"),
        (("--makers", "nobody"), "nobody"),
        (("--search", "everything"), "expected cp, disaggregated, offload"),
        (("--workers", "2"), "only with --scheduler"),
        (("--scheduler", "http://there:1"), "expected local, or an address"),
        (("-o", "best.pdf"), "best.pdf"),
    ],
)
def test_what_cannot_be_asked(
    arguments: tuple[str, ...],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, errors = ran(monkeypatch, capsys, "--concurrency", "16", *arguments)
    assert (status, out) == (2, "") and words in errors and len(errors.splitlines()) == 1
