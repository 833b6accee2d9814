"""A search in parts: here, or on the workers of dask.distributed, and kept in a folder where one is named.

What is worked out of plans is worked out in parts by the same code; this process counts, bounds the loads and
ranks. So the answer is that of a search in one piece, to the last digit. A part that is kept is the answer to
the same plans of the same question, so a search that was killed asks again and finds what it had.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import compress, decompress

import pandas as pd

from mantile.estimates.kept import COMMON, QUESTION, KeptParts, digest
from mantile.estimates.scheduled import (
    ATTEMPTS,
    collecting,
    connected,
    require_scheduler,
    require_version,
    result_of,
)
from mantile.estimates.tables import parquet
from mantile.library.version import __version__
from mantile.search.search import Search

PLANS = 2**14  # of a part, at most
MANIFEST = "search.json"
_NAMES = COMMON | {
    "space": "other plans to choose from",
    "objective": "another objective",
    "limits": "other limits",
    "load": "a load that is stated or not",
    "measures": "another command",
    "plans_per_part": "another size of parts",
}
"""What may differ between two questions, as errors call it."""


@dataclass
class InParts:
    """Works the plans of one search out in parts.

    Args:
        most: plans of a part.
        client: of the scheduler whose workers do it; None: here.
        path: the folder in which parts are kept; None: nowhere.
    """

    most: int
    client: Any = None
    path: Path | None = None
    _packed: bytes = b""
    _kept: list[KeptParts] = field(default_factory=list)

    def __call__(self, search: Search, work: str, plans: pd.DataFrame) -> pd.DataFrame:
        """Columns of plans, in their order."""
        if not len(plans) or (len(plans) <= self.most and self.path is None):
            return worked_out(search, work, plans)
        parts = [plans.iloc[first : first + self.most] for first in range(0, len(plans), self.most)]
        if self.path is None:
            return pd.concat([*self._done(search, work, parts)])
        folder = self._folder(search, self.path)
        names = [f"{work}-{_digest(part)}.parquet" for part in parts]
        found = [_read(folder, name, part) for name, part in zip(names, parts, strict=True)]
        missing = [place for place, table in enumerate(found) if table is None]
        done = self._done(search, work, [parts[place] for place in missing])
        for place, table in zip(missing, done, strict=True):
            folder.write(names[place], _written(table, folder.digest))
            found[place] = table
        return pd.concat([table for table in found if table is not None])

    def _folder(self, search: Search, path: Path) -> KeptParts:
        if not self._kept:
            self._kept.append(KeptParts(path, manifest(search, self.most), MANIFEST, _NAMES, "parts"))
        return self._kept[0]

    def _done(self, search: Search, work: str, parts: Sequence[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Parts that are worked out, in their order."""
        if self.client is None or len(parts) < 2:
            for part in parts:
                yield worked_out(search, work, part)
            return
        self._packed = self._packed or packed_of(search)
        futures = [
            self.client.submit(
                _work_out, self._packed, work, part, __version__, pure=False, retries=ATTEMPTS - 1
            )
            for part in parts
        ]
        stays = "" if self.path is None else f"; the parts that are done stay in {self.path}"
        try:
            for future in futures:
                yield result_of(future, stays)
        finally:
            self.client.cancel(futures, force=True)


def worked_out(search: Search, work: str, plans: pd.DataFrame) -> pd.DataFrame:
    """Columns of plans, in one piece."""
    found: pd.DataFrame = getattr(search, work)(plans)
    return found


def manifest(search: Search, most: int) -> dict[str, Any]:
    """What a search asks, so that another question can be told from it."""
    evaluator, space = search.evaluator, dict[str, Any]()
    for of in fields(search.space):
        value = getattr(search.space, of.name)
        space[of.name] = [*value.items()] if isinstance(value, Mapping) else value
    return {
        "about": "Parts of a search for the best plan, by the plans that they are of",
        "version": __version__,
        "scenario": digest(evaluator.scenario.model_dump(mode="json", exclude_none=True)),
        "model": digest(evaluator.model.model_dump(mode="json")),
        "library": digest(evaluator.library.model_dump(mode="json")),
        "space": digest(space),
        "objective": search.objective.text,
        "limits": {one.measure.key: one.bound for one in search.limits},
        "load": search.searches_load,
        "measures": [of.key for of in search.shown],
        "plans_per_part": most,
    }


def _digest(plans: pd.DataFrame) -> str:
    """The plans of a part as one word."""
    about = sha256(repr([*plans.columns]).encode())
    about.update(pd.util.hash_pandas_object(plans, index=False).to_numpy().tobytes())
    return about.hexdigest()[:32]


def _written(table: pd.DataFrame, question: str) -> bytes:
    """A part as a file; texts as categories."""
    file = BytesIO()
    texts = [name for name in table if table[name].dtype.kind not in "ifb"]
    with parquet(file, {QUESTION: question}) as append:
        append(table.reset_index(drop=True).astype(dict.fromkeys(texts, "category")))
    return file.getvalue()


def _read(folder: KeptParts, name: str, plans: pd.DataFrame) -> pd.DataFrame | None:
    """A part that is kept, as it was worked out of these plans; None where it is not there or not whole."""
    pieces: list[pd.DataFrame] = []
    if not folder.read(name, pieces.append) or sum(map(len, pieces)) != len(plans):
        return None
    table = pd.concat(pieces)
    texts = [column for column in table if isinstance(table[column].dtype, pd.CategoricalDtype)]
    return table.astype(dict.fromkeys(texts, object)).set_index(plans.index)


def packed_of(search: Search) -> bytes:
    """Everything that a worker needs, but for the graph: that is quicker made than sent."""
    return compress(pickle.dumps(search.bare()))


@contextmanager
def in_parts(
    scheduler: str | None, workers: int | None = None, most: int | None = None, keep: Path | None = None
) -> Iterator[Callable[[Search, str, pd.DataFrame], pd.DataFrame] | None]:
    """What works a search out in parts, until the block ends; None where it is to be in one piece.

    Args:
        scheduler: an address such as tcp://HOST:8786, or local: processes of this machine; None: here.
        workers: processes of this machine; None: one for each core.
        most: plans of a part at most; None: the usual.
        keep: a folder in which parts are kept; None: nothing is.

    Raises:
        InputError: for a scheduler that does not answer, and where packages are absent.
    """
    if scheduler is None and keep is None:
        yield None
        return
    with ExitStack() as stack:
        client = None
        if scheduler is not None:
            require_scheduler(scheduler, workers)
            stack.enter_context(collecting())
            client = stack.enter_context(connected(scheduler, workers or os.cpu_count() or 1))
        yield InParts(most or PLANS, client, keep)


def _work_out(packed: bytes, work: str, plans: pd.DataFrame, version: str) -> pd.DataFrame:
    """A part, in a worker."""
    require_version(version)
    found: pd.DataFrame = getattr(_unpacked(packed), work)(plans)
    return found


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Search:
    found: Search = pickle.loads(decompress(packed))
    return found
