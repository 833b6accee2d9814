"""Partitions of a sweep on the workers of dask.distributed, of this machine or of others.

A worker works a partition out by the same code as any sweep and hands it back; only this process writes. So
many partitions are on their way at once that no worker waits; memory does not grow with the points.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from importlib.util import find_spec
from threading import current_thread, main_thread
from typing import Any
from zlib import decompress

from mantile.estimates.partitions import PartitionFolder, Partitions
from mantile.estimates.sweep import Digest
from mantile.library.errors import InputError
from mantile.library.version import __version__

LOCAL = "local"
"""In place of an address: workers of this machine, for this sweep alone."""
_AHEAD = 2  # partitions on their way for each worker
ATTEMPTS = 3  # at a partition whose worker is lost
_WAIT = 10  # seconds for a scheduler to answer


def is_address(text: str | None) -> bool:
    """Whether a text names a scheduler of workers: `LOCAL`, or where one listens."""
    return text is not None and (text == LOCAL or "://" in text)


def taken(flags: dict[str, Any]) -> str | None:
    """The scheduler of workers, out of flags; one of an engine, which has the same flag, stays there."""
    return flags.pop("scheduler") if is_address(flags.get("scheduler")) else None


def require_scheduler(scheduler: str, workers: int | None) -> None:
    """Refuse what cannot be.

    Raises:
        InputError: for an address of another kind, workers that are not ours to start, or absent packages.
    """
    if scheduler != LOCAL and not scheduler.startswith(("tcp://", "tls://")):
        raise InputError(f"--scheduler {scheduler}: expected {LOCAL}, or an address such as tcp://HOST:8786")
    if workers is not None and scheduler != LOCAL:
        raise InputError(f"--workers: only with --scheduler {LOCAL}; {scheduler} has workers of its own")
    if find_spec("distributed") is None:
        raise InputError("--scheduler: needs dask.distributed: pip install 'mantile[dask]'")


def sweep_into(
    folder: PartitionFolder,
    scheduler: str,
    workers: int | None = None,
    step: Callable[[int], None] = lambda points: None,
) -> Digest:
    """Work out the partitions that a folder lacks, and say what is remembered of all.

    Args:
        folder: made for the question.
        scheduler: an address, or `LOCAL`.
        workers: processes of this machine; None: one for each core.
        step: is told how many points are done, those that were there included.

    Raises:
        InputError: for a scheduler that does not answer, workers that cannot work, or a folder that cannot be
            written.
        KeyboardInterrupt: once the workers have stopped; partitions that are done stay.
    """
    require_scheduler(scheduler, workers)
    asked = folder.asked
    done, points, missing = _InOrder(asked.shown), 0, []
    step(points)
    for place in range(len(asked)):
        found = folder.read(place)
        if found is None:
            missing.append(place)
        else:
            done.add(place, found)
            points += asked.points(place)
            step(points)
    if missing:
        with collecting(), connected(scheduler, min(workers or os.cpu_count() or 1, len(missing))) as client:
            for place, partition, found in _worked_out(client, asked, missing):
                folder.write(place, partition)
                done.add(place, found)
                points += asked.points(place)
                step(points)
    return done.joined


class _InOrder:
    """What is remembered of partitions that come in any order, joined in theirs."""

    def __init__(self, shown: int) -> None:
        self.joined = Digest(shown)
        self._next = 0
        self._early: dict[int, Digest] = {}

    def add(self, place: int, digest: Digest) -> None:
        """Take a partition in."""
        self._early[place] = digest
        while self._next in self._early:
            self.joined.join(self._early.pop(self._next))
            self._next += 1


@contextmanager
def collecting() -> Iterator[None]:
    """Garbage is looked for within: commands do without, but a long run would keep what it has written."""
    running = gc.isenabled()
    gc.enable()
    try:
        yield
    finally:
        if not running:
            gc.disable()


@contextmanager
def _deaf() -> Iterator[None]:
    """Processes that start within do not hear Ctrl-C: this one stops them."""
    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def connected(scheduler: str, workers: int) -> Iterator[Any]:
    """A connection to a scheduler; one of our own has no dashboard, and only this machine reaches it.

    Raises:
        InputError: for a scheduler that does not answer.
    """
    from distributed import Client, LocalCluster

    connect: Any = Client
    cluster: Any = LocalCluster

    with ExitStack() as stack:
        address: Any = scheduler
        if scheduler == LOCAL:
            with _deaf():
                address = stack.enter_context(
                    cluster(
                        n_workers=workers,
                        threads_per_worker=1,
                        processes=True,
                        host="127.0.0.1",
                        dashboard_address=None,
                        worker_dashboard_address=None,
                        memory_limit=0,
                        silence_logs=logging.CRITICAL,
                    )
                )
        try:
            client = stack.enter_context(connect(address, timeout=_WAIT, set_as_default=False))
        except (OSError, ValueError) as error:
            raise InputError(f"--scheduler {scheduler}: no answer: {error}") from error
        yield client


def _worked_out(client: Any, asked: Partitions, missing: list[int]) -> Iterator[tuple[int, bytes, Digest]]:
    """Partitions as they are done."""
    from distributed import as_completed

    following: Any = as_completed
    packed = asked.packed()
    waiting, places = iter(missing), {}

    def send(count: int) -> Iterator[Any]:
        for place in (next(waiting, None) for _ in range(count)):
            if place is not None:
                key = f"mantile-{asked.digest}-{place}"
                future = client.submit(
                    _work_out, packed, place, __version__, key=key, pure=False, retries=ATTEMPTS - 1
                )
                places[future] = place
                yield future

    coming: Any = following([*send(_AHEAD * max(1, sum(client.nthreads().values())))], loop=client.loop)
    try:
        for future in coming:
            place = places.pop(future)
            partition, digest = _partition(future)
            future.release()
            coming.update([*send(1)])
            yield place, partition, digest
            del partition
    finally:
        client.cancel([*places], force=True)


def _partition(future: Any) -> tuple[bytes, Digest]:
    """A partition that a worker hands back."""
    found: tuple[bytes, Digest] = result_of(future, "; the partitions that are done stay")
    return found


def result_of(future: Any, stays: str = "") -> Any:
    """What a worker hands back; `stays` are words on what is kept where it could not.

    Raises:
        InputError: where it could not.
    """
    try:
        return future.result()
    except InputError:
        raise
    except Exception as error:  # a worker raises whatever it lacks
        raise InputError(
            f"--scheduler: a worker failed: {type(error).__name__}: {error}; expected workers with "
            f"mantile[dask] {__version__}{stays}"
        ) from error


def _work_out(packed: bytes, place: int, version: str) -> tuple[bytes, Digest]:
    """A partition, in a worker."""
    require_version(version)
    return _unpacked(packed).work_out(place, threads=1)


def require_version(version: str) -> None:
    """Refuse work of another version of Mantile, in a worker."""
    if version != __version__:
        raise InputError(f"--scheduler: a worker has Mantile {__version__}; expected {version}")


@lru_cache(maxsize=1)
def _unpacked(packed: bytes) -> Partitions:
    found: Partitions = pickle.loads(decompress(packed))
    return found
