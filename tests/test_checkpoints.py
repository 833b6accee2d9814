"""Bytes of the weights of checkpoints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mantile.estimate.estimate import Estimate
from mantile.ir.counts import parameters
from mantile.library.models import model_ids

Make = Callable[..., Estimate]

SERVED: dict[str, object] = {
    "accelerator": "b300-sxm",
    "tp": 1,
    "input_tokens": 128,
    "output_tokens": 16,
    "concurrency": 1,
}
# Bytes of a parameter, by what a name says: scales, and what stays in 16 bit, come on top.
NAMED = {"nvfp4": (0.55, 0.72), "mxfp4": (0.5, 0.7), "awq": (0.52, 0.75), "fp8": (1.0, 1.1)}
# The same of models whose name says nothing, and whose checkpoint is quantised all the same.
SILENT = {
    "deepseek-r1": (1.0, 1.01),
    "deepseek-v3": (1.0, 1.01),
    "deepseek-v3.1": (1.0, 1.01),
    "deepseek-v3.2": (1.0, 1.01),
    "deepseek-v4-flash": (0.5, 0.6),
    "deepseek-v4-pro": (0.5, 0.6),
    "devstral-2-123b": (1.0, 1.05),
    "devstral-small-2-24b": (1.0, 1.1),
    "gpt-oss-120b": (0.5, 0.7),
    "gpt-oss-20b": (0.5, 0.7),
    "kimi-k2": (1.0, 1.01),
    "kimi-k2.5": (0.5, 0.6),
    "mimo-v2-flash": (1.0, 1.01),
    "minimax-m2.5": (1.0, 1.01),
    "minimax-m2.7": (1.0, 1.01),
}
SIXTEEN_BIT = (2.0, 2.0)


def weights(made: Estimate) -> float:
    """Bytes of all weights of a model on one accelerator; layers that predict tokens are not among them."""
    return float(made.values()[made.equations.prefill_workers.memory.weights])


def expected(name: str) -> tuple[float, float]:
    """Least and most bytes of a parameter of a model that we ship."""
    said = next((limits for format, limits in NAMED.items() if name.endswith(f"-{format}")), None)
    return said or SILENT.get(name, SIXTEEN_BIT)


@pytest.mark.parametrize("name", model_ids())
def test_a_model_has_the_bytes_that_its_name_says(make: Make, name: str) -> None:
    """A checkpoint named after a format is not in 16 bit, and what is in 16 bit is not named otherwise."""
    made = make(**SERVED | {"model": name})
    least, most = expected(name)
    assert least <= weights(made) / parameters(made.equations.ir)["total"] <= most
