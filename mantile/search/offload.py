"""Weights and KV cache in host memory: what is looked at where an accelerator has no plan without.

All weights of a rank stay on the host, half of them or a quarter, as far as host memory goes; the KV cache
gets what is left of it, or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.search.space import OFFLOADED

Array = np.ndarray[Any, np.dtype[Any]]

PARTS = (1.0, 0.5, 0.25, 0.0)
"""Parts of the weights of a rank that may lie on the host, the largest first."""
_STEP = 0.1  # GB; sizes are multiples of it


def fullest(plans: pd.DataFrame, weights: Array, host: Mapping[str, float]) -> pd.DataFrame:
    """Plans with as much on the host as goes there: where these have no room, no other option has.

    Args:
        plans: without offload.
        weights: GB of a rank of each plan.
        host: GB of host memory for each accelerator, by id.
    """
    room = _room(plans, host)
    moved = np.zeros(len(plans))
    for part in reversed(PARTS):
        share = _up(weights * part)
        moved = np.where(share <= room, share, moved)
    return _with(plans, moved, room - moved)


def others(plans: pd.DataFrame, weights: Array, host: Mapping[str, float]) -> pd.DataFrame:
    """All other options of plans: each part of the weights that has room, with and without KV cache."""
    room = _room(plans, host)
    most = cast("Array", fullest(plans, weights, host)["offload_weights"].to_numpy(float))
    made = []
    for part in PARTS:
        share = _up(weights * part)
        for cached in (0.0, 1.0):
            kept = (share <= room) & ((cached == 0) | (share != most)) & (share + cached > 0)
            made.append(_with(plans[kept], share[kept], cached * (room - share)[kept]))
    return pd.concat(made, ignore_index=True)


def _room(plans: pd.DataFrame, host: Mapping[str, float]) -> Array:
    return np.asarray(plans["accelerator"].map(host), float)


def _up(sizes: Array) -> Array:
    """Sizes as multiples of the step, none smaller than it was."""
    return np.asarray(np.round(np.ceil(sizes / _STEP) * _STEP, 1))


def _with(plans: pd.DataFrame, weights: Array, cache: Array) -> pd.DataFrame:
    weights_, cache_ = OFFLOADED
    return plans.assign(**{weights_: weights, cache_: np.maximum(0.0, np.round(cache, 1))})
