"""What several test files need: the library, a factory of estimates, and the reference tables."""

from __future__ import annotations

import gc
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.from_code.process import can_record
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import parse_scenario

os.environ.setdefault("SOURCE_DATE_EPOCH", "1795046400")  # 2026-11-19: prices do not age between two runs
os.environ.setdefault("COLUMNS", "200")  # as in a pipe without a terminal, wherever tests run
EVERY = "MANTILE_EVERY" in os.environ
BUDGET = float(os.environ.get("MANTILE_SECONDS", "inf"))  # behind which no exhaustive test is begun
BEGAN = time.monotonic()
MANY = 3  # cases of an exhaustive test, beyond which every other one runs
settings.register_profile(
    "mantile",
    deadline=None,
    derandomize=True,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("mantile")

DEFAULTS: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}

ESTIMATES = 256  # kept at a time: one takes some 2 MB
YOUNG = 2_000_000  # objects made before Python looks for garbage among them: one verification makes some

Make = Callable[..., Estimate]


def pytest_configure() -> None:
    """Python looks for garbage seldom.

    Objects are many and most of them stay, so that searches took a third of the time.
    """
    gc.set_threshold(YOUNG, 3, 10)


@pytest.fixture(scope="session")
def library() -> Library:
    """All profiles we ship."""
    return load_library()


@pytest.fixture(scope="session")
def make() -> Make:
    """Scenario fields to an estimate; what is left out is a 70B chat service on eight H100.

    Estimates are immutable: reuse.
    """

    @lru_cache(ESTIMATES)
    def made(fields: str) -> Estimate:
        return estimate(parse_scenario(json.loads(fields), "scenario"))

    def build(**fields: Any) -> Estimate:
        wanted = {name: value for name, value in (DEFAULTS | fields).items() if value is not None}
        return made(json.dumps(wanted, sort_keys=True))

    return build


Sum = Callable[[Estimate, int, float], float]


@pytest.fixture(scope="session")
def all_reduce() -> Sum:
    """Seconds of an all-reduce through a switch that can sum, by plain arithmetic.

    The cheapest of four algorithms.

    Of an estimate, its TP ranks and the bytes of a message.
    """

    def seconds(made: Estimate, ranks: int, message: float) -> float:
        values, reached = made.values(), made.equations.prefill_workers.efficiency.factors
        e = {name: float(values[factor]) for name, factor in reached.items()}
        link = float(values[made.figure("hardware.link_bandwidth")])
        each = 2 * (ranks - 1) / ranks * message
        times = {
            "ring": (
                e["ring_latency"] + 2 * (ranks - 1) * e["ring_step"],
                each / (e["ring_bandwidth"] * link),
            ),
            "one-shot": (e["one_shot_latency"], (ranks - 1) * message / (e["one_shot_bandwidth"] * link)),
            "two-shot": (e["two_shot_latency"], each / (e["two_shot_bandwidth"] * link)),
            "in-switch": (
                e["in_switch_latency"],
                (ranks + 1) / ranks * message / (e["in_switch_bandwidth"] * link),
            ),
        }
        return min(fixed * e["all_reduce_latency_scale"] + moved for fixed, moved in times.values()) * (
            1 - e["all_reduce_overlap"]
        )

    return seconds


KINDS = (
    "llama-2-70b",
    "deepseek-v3.2",
    "deepseek-v4-flash",
    "gpt-oss-120b",
    "hy3",
    "jamba-v0.1",
    "kimi-linear-48b-a3b",
    "llama-4-scout",
    "nemotron-3-nano",
    "qwen3-next-80b",
    "qwen3-vl-8b",
)
"""A model of every kind of layer.

Attention, latent with an indexer, compressed, windows, recorded, Mamba, delta, chunks, Mamba 2, gated delta,
vision.
"""


NOT_TRACED = {
    *("test_accelerators", "test_alternative", "test_architectures", "test_arrivals", "test_bundle"),
    *("test_calibration", "test_capacity", "test_checkpoints", "test_collectives", "test_comparable"),
    *("test_consumer", "test_cost", "test_decisions", "test_disaggregated", "test_dominance", "test_edits"),
    *("test_equations", "test_floors", "test_follow", "test_fuzz", "test_grid", "test_hostile", "test_house"),
    *("test_mutations", "test_nearest", "test_not_known", "test_optimize", "test_origins", "test_overrides"),
    *("test_percentiles", "test_plans", "test_prefix", "test_prices", "test_sensitivity", "test_serving"),
    *(
        "test_settings",
        "test_speculation",
        "test_speeds",
        "test_support",
        "test_templates",
        "test_token_cost",
    ),
    *("test_token_cost", "test_trace", "test_typed", "test_units", "test_wide_experts", "test_words"),
}
"""Tests that run hardly a line that others do not: coverage, which doubles their time, is not taken then."""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """No coverage of these tests nor of their fixtures; the marker `no_cover` leaves fixtures in."""
    plugin = item.config.pluginmanager.get_plugin("_cov")
    coverage = getattr(plugin, "cov_controller", None) if item.path.stem in NOT_TRACED else None
    if coverage is not None:
        coverage.pause()
    yield
    if coverage is not None:
        coverage.resume()


@pytest.fixture(autouse=True)
def _classes_are_not_run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are the same whether or not torch is installed; those that need it are marked so.

    What the recorder changes in transformers is as it was afterwards.
    """
    if "transformers" in request.keywords and can_record():
        from transformers.cache_utils import Cache

        for name in ("get_seq_length", "get_mask_sizes"):
            monkeypatch.setattr(Cache, name, getattr(Cache, name))
    elif "transformers" not in request.keywords:
        for place in ("mantile.library.from_code", "mantile.library.from_code.process"):
            monkeypatch.setattr(f"{place}.can_record", lambda: False)


def few_of(values: Iterable[Any], *few: Any) -> list[Any]:
    """Values of a parameter, or tuples of several: a few in every run, all others in the exhaustive one."""
    listed = list(values)
    assert all(value in listed for value in few), few
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in few else pytest.mark.exhaustive,
        )
        for value in listed
    ]


def today(paths: Iterable[Path]) -> list[Any]:
    """Profiles of today in every run; older versions, which no longer change, in the exhaustive one."""
    return [
        pytest.param(path, marks=pytest.mark.exhaustive if path.parent.name == "versions" else ())
        for path in paths
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What runs, and in which order."""
    if not EVERY:
        _one_in_two(config, items)
    if math.isfinite(BUDGET):
        _quick_first(items)


def _quick_first(items: list[pytest.Item]) -> None:
    """Of the part of the list that each worker begins with, exhaustive tests come last: where time ends, they
    are what is left."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    part = max(1, -(-len(items) // workers))
    items[:] = [
        item
        for start in range(0, len(items), part)
        for item in sorted(items[start : start + part], key=_is_exhaustive)
    ]


def _is_exhaustive(item: pytest.Item) -> bool:
    return item.get_closest_marker("exhaustive") is not None


def _one_in_two(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of an exhaustive test with many cases every other one runs; with MANTILE_EVERY all of them."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _is_exhaustive(item):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left = {item for of_test in cases.values() if len(of_test) > MANY for item in of_test[1::2]}
    if left:
        config.hook.pytest_deselected(items=sorted(left, key=items.index))
        items[:] = [item for item in items if item not in left]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """On a slow machine the last exhaustive tests are left out, and said to be."""
    if time.monotonic() - BEGAN > BUDGET and _is_exhaustive(item):
        pytest.skip(f"the {BUDGET:.0f} s of MANTILE_SECONDS are over")


def one_in(step: int, values: Iterable[Any], *always: Any, first: int = 0) -> list[Any]:
    """One value of so many, evenly spread, and some always; with MANTILE_EVERY all of them.

    Tests of the same list begin at different places of it, so that together they take all values.
    """
    return [value for place, value in enumerate(values) if EVERY or place % step == first or value in always]


def examples(count: int) -> int:
    """How many examples hypothesis makes up: so many with MANTILE_EVERY, else a third of them."""
    return count if EVERY else max(count // 3, 8)


@cache
def _one_of_each() -> tuple[str, ...]:
    """A model of every way of building layers, and of one family in three.

    Of every family with MANTILE_EVERY.
    """
    layers: dict[object, str] = {}
    families: dict[object, str] = {}
    for name in (*KINDS, *model_ids()):
        architecture = load_model(name).architecture
        kinds = frozenset(block.kind for block in architecture.blocks.values())
        layers.setdefault(kinds, name)
        families.setdefault((architecture.model_type, kinds), name)
    return tuple(one_in(3, families.values(), *KINDS, *layers.values()))


def models_to_try(*more: str) -> list[str]:
    """One of each of some architectures, and more; all models with MANTILE_EVERY."""
    return model_ids() if EVERY else list(dict.fromkeys([*_one_of_each(), *more]))


def few_models(*few: str) -> list[Any]:
    """Models to try: a few in every run, the others in the exhaustive one."""
    return few_of(models_to_try(*few), *few)


@pytest.fixture(scope="session", params=few_of(_one_of_each(), *KINDS))
def one_of_each(request: pytest.FixtureRequest) -> str:
    """A model of every architecture we ship, one after the other."""
    return str(request.param)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of reference tables that lies beside the project where it is developed."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(
            "reference tables are not beside this checkout; the figures carried in the tests still hold"
        )
    return folder
