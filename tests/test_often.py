"""Estimates of one structure one after the other: what is kept from call to call changes no digit."""

from __future__ import annotations

from typing import Any

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import CHOICES, Program
from mantile.library.scenario import parse_scenario

CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 8,
}
SLOWER = [{"id": "hardware.memory_bandwidth", "value": 2000, "reason": "measured"}]
CHANGES: list[dict[str, Any]] = [
    {},
    {"concurrency": 9},
    {"input_tokens": 77, "concurrency": 300},
    {"accelerator": "b200-sxm", "tp": 2},
    {"accelerator": "b200-sxm", "tp": 2, "output_tokens": 7},
    {"tp": 3},
    {"tp": 3, "concurrency": 5},
    {"activation_dtype": "fp8", "weights_dtype": "fp8"},
    {"weights_dtype": "fp8"},
    {"overrides": [{"id": "hardware.memory_bandwidth", "value": 2000, "reason": "measured"}]},
    {
        "overrides": [{"id": "hardware.memory_bandwidth", "value": 2000, "reason": "measured"}],
        "concurrency": 3,
    },
    {"output_tokens": 1},
    {"offload_weights": 4},
    {},
]


def made(changes: dict[str, Any]) -> Estimate:
    """The estimate of a chat service with changes."""
    return estimate(parse_scenario(CHAT | changes, "chat"))


def test_what_is_kept_changes_no_digit() -> None:
    """All figures, in three rounds, so that every choice is met again after others took its place."""
    alone = [made(changes) for changes in CHANGES]
    asked = [one.inputs(0) for one in alone]
    expected = [Program(one.program.outputs).run(inputs) for one, inputs in zip(alone, asked, strict=True)]
    assert len({frozenset(inputs.items()) for inputs in asked}) > CHOICES
    told = [one.results() for one in alone if one.values()]
    for _ in range(3):
        for changes, values, results in zip(CHANGES, expected, told, strict=True):
            assert made(changes).results() == results
            found = made(changes).values()
            assert found.keys() == values.keys()
            for node, value in values.items():
                same = found[node] == value or (value != value and found[node] != found[node])
                assert isinstance(value, list) or (same and type(found[node]) is type(value)), node
