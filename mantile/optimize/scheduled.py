"""A search on the workers of dask.distributed, of this machine or of others.

What is worked out of plans is worked out in parts, each on a worker and by the same code; this process
counts, bounds the loads and ranks. So the answer is that of a search without workers, to the last digit.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from zlib import compress, decompress

import pandas as pd

from mantile.estimate.scheduled import (
    ATTEMPTS,
    collecting,
    connected,
    require_scheduler,
    require_version,
    result_of,
)
from mantile.library.version import __version__
from mantile.optimize.search import Search, silent

PLANS = 2**14  # of a part, at most


@dataclass
class Helped:
    """Workers that the plans of one search are handed to.

    Args:
        client: of their scheduler.
        most: plans of a part; fewer are worked out here.
    """

    client: Any
    most: int
    _packed: bytes = b""

    def __call__(self, search: Search, work: str, plans: pd.DataFrame) -> pd.DataFrame:
        """Columns of plans, in their order."""
        if len(plans) <= self.most:
            found: pd.DataFrame = getattr(search, work)(plans)
            return found
        self._packed = self._packed or packed_of(search)
        parts = [plans.iloc[first : first + self.most] for first in range(0, len(plans), self.most)]
        futures = [
            self.client.submit(
                _work_out, self._packed, work, part, __version__, pure=False, retries=ATTEMPTS - 1
            )
            for part in parts
        ]
        try:
            return pd.concat([result_of(future) for future in futures])
        finally:
            self.client.cancel(futures, force=True)


def packed_of(search: Search) -> bytes:
    """Everything that a worker needs, but for the graph: that is quicker made than sent."""
    evaluator = replace(search.evaluator)
    return compress(pickle.dumps(replace(search, evaluator=evaluator, step=silent, helped=None)))


@contextmanager
def helped(
    scheduler: str | None, workers: int | None = None, most: int | None = None
) -> Iterator[Callable[[Search, str, pd.DataFrame], pd.DataFrame] | None]:
    """Workers for a search, until the block ends; none without a scheduler.

    Args:
        scheduler: an address such as tcp://HOST:8786, or local: processes of this machine.
        workers: processes of this machine; None: one for each core.
        most: plans of a part at most; None: the usual.

    Raises:
        InputError: for a scheduler that does not answer, and where packages are absent.
    """
    if scheduler is None:
        yield None
        return
    require_scheduler(scheduler, workers)
    with collecting(), connected(scheduler, workers or os.cpu_count() or 1) as client:
        yield Helped(client, most or PLANS)


def _work_out(packed: bytes, work: str, plans: pd.DataFrame, version: str) -> pd.DataFrame:
    """A part, in a worker."""
    require_version(version)
    found: pd.DataFrame = getattr(_unpacked(packed), work)(plans)
    return found


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Search:
    found: Search = pickle.loads(decompress(packed))
    return found
