"""Weights in host memory: what is looked at where an accelerator has no plan without.

All weights of a rank stay on the host, half of them or a quarter, as far as host memory goes. The KV cache
does not: no engine has a flag for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.search.space import OFFLOADED

Array = np.ndarray[Any, np.dtype[Any]]

PARTS = (1.0, 0.5, 0.25)
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
    return plans.assign(**{OFFLOADED[0]: moved})[moved > 0]


def others(plans: pd.DataFrame, weights: Array, host: Mapping[str, float]) -> pd.DataFrame:
    """All other options of plans: each smaller part of the weights."""
    most = cast("Array", fullest(plans, weights, host)[OFFLOADED[0]].to_numpy(float))
    smaller = [(share, share < most) for share in (_up(weights * part) for part in PARTS)]
    made = [plans[kept].assign(**{OFFLOADED[0]: share[kept]}) for share, kept in smaller]
    return pd.concat(made, ignore_index=True)


def _room(plans: pd.DataFrame, host: Mapping[str, float]) -> Array:
    return np.asarray(plans["accelerator"].map(host), float)


def _up(sizes: Array) -> Array:
    """Sizes as multiples of the step, none smaller than it was."""
    return np.asarray(np.round(np.ceil(sizes / _STEP) * _STEP, 1))
