"""What several test files need: the library, a factory of estimates, and the reference tables."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.from_code.process import can_record
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import parse_scenario

os.environ.setdefault("SOURCE_DATE_EPOCH", "1795046400")  # 2026-11-19: prices do not age between two runs
os.environ.setdefault("COLUMNS", "200")  # as in a pipe without a terminal, wherever tests run
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
MORE = ("glm-4.5-air", "mamba-codestral-7b", "nemotron-h-56b", "qwen3.5-27b", "gemma-4-26b-a4b", "olmo-2-7b")
"""Further models, with which there is one of every set of kinds of block that a model is made of.

The last two have norms of their own: of each branch, and over all heads at once.
"""


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


def models_to_try(*more: str) -> list[str]:
    """One of each architecture, and more."""
    return list(dict.fromkeys([*KINDS, *MORE, *more]))


def few_models(*few: str) -> list[Any]:
    """Models to try: a few in every run, the others in the exhaustive one."""
    return few_of(models_to_try(*few), *few)


@pytest.fixture(scope="session", params=few_models(*KINDS))
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
