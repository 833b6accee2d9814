"""What several test files need: the library, a factory of estimates, and the reference tables where they lie nearby."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mantile.estimate.estimate import Estimate, estimate
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import parse_scenario

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

Make = Callable[..., Estimate]


@pytest.fixture(scope="session")
def library() -> Library:
    """All profiles we ship."""
    return load_library()


@pytest.fixture(scope="session")
def make() -> Make:
    """Scenario fields to an estimate; what is left out is a 70B chat service on eight H100. Estimates are immutable: reuse."""
    made: dict[str, Estimate] = {}

    def build(**fields: Any) -> Estimate:
        wanted = {name: value for name, value in (DEFAULTS | fields).items() if value is not None}
        key = json.dumps(wanted, sort_keys=True)
        if key not in made:
            made[key] = estimate(parse_scenario(wanted, "scenario"))
        return made[key]

    return build


Sum = Callable[[Estimate, int, float], float]


@pytest.fixture(scope="session")
def all_reduce() -> Sum:
    """Seconds of an all-reduce through a switch that can sum, by plain arithmetic: the cheapest of four algorithms.

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


def _one_of_each() -> list[str]:
    """The first model of every family and way of building layers."""
    found: dict[object, str] = {}
    for name in model_ids():
        architecture = load_model(name).architecture
        kinds = frozenset(block.kind for block in architecture.blocks.values())
        found.setdefault((architecture.model_type, kinds), name)
    return list(found.values())


@pytest.fixture(scope="session", params=_one_of_each())
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
