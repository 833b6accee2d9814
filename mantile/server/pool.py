"""Worker processes for what takes long, or must not share a process: builds, verifications, searches.

Each process has an executor of its own, so that one can be killed at the time limit without the others.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from multiprocessing import get_context
from typing import Any, TypeVar

from mantile.library.errors import InputError
from mantile.server.errors import Limited
from mantile.server.progress import PROGRESS, told_to
from mantile.server.settings import Settings

Answer = TypeVar("Answer")


def _begin(memory: int) -> None:
    """Limit the memory of a worker process; leave Ctrl-C to the server."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory:
        with suppress(ImportError, ValueError, OSError):  # not on Windows; not where the system has no such
            import resource

            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


class Worker:
    """One process, and how many jobs it has done."""

    def __init__(self, memory: int) -> None:
        self.executor = ProcessPoolExecutor(
            1, mp_context=get_context("spawn"), initializer=_begin, initargs=(memory,)
        )
        self.jobs = 0
        self._process = self.executor.submit(os.getpid)

    async def run(self, job: Callable[..., Answer], *given: Any) -> Answer:
        """What a function of a module makes of what is given, there."""
        self.jobs += 1
        return await asyncio.wrap_future(self.executor.submit(told_to, PROGRESS.get(), job, *given))

    def kill(self) -> None:
        """End it whatever it does; as soon as it has started, where it has not yet."""
        self._process.add_done_callback(_end)
        self.executor.shutdown(wait=False, cancel_futures=True)


def _end(process: Future[int]) -> None:
    """End a process that has told its number; one that was never started is none."""
    if not process.cancelled() and process.exception() is None:
        with suppress(ProcessLookupError):
            os.kill(process.result(), getattr(signal, "SIGKILL", signal.SIGTERM))


class Pool:
    """Workers that are started when they are needed, replaced after some jobs, and killed when late.

    Args:
        settings: how many run at once, how many jobs may wait, how long a job may take.

    Example:
        async with pool.worker() as run:
            answer = await run(verify, path)
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.running = self.waiting = self.killed = 0
        self._free: list[Worker] = []
        self._places = asyncio.Semaphore(settings.builds)

    @asynccontextmanager
    async def worker(self) -> AsyncIterator[Callable[..., Any]]:
        """A worker for several jobs, one after the other; each within the time limit.

        Raises:
            Limited: where too many wait already, a job takes too long, or it needs too much memory.
        """
        if self.waiting >= self.settings.waiting:
            raise Limited(503, f"{self.waiting} jobs wait already; try again later", after=5)
        self.waiting += 1
        try:
            await self._places.acquire()
        finally:
            self.waiting -= 1
        self.running += 1
        worker = self._free.pop() if self._free else Worker(self.settings.memory)
        fine = False

        async def run(job: Callable[..., Answer], *given: Any) -> Answer:
            nonlocal fine
            fine = False
            try:
                answer = await asyncio.wait_for(worker.run(job, *given), self.settings.seconds)
            except asyncio.TimeoutError:
                raise Limited(
                    504, f"more than {self.settings.seconds:g} s: expected something smaller"
                ) from None
            except (BrokenExecutor, MemoryError):
                raise Limited(
                    413, "it needs more memory than a job may take, or its process was ended"
                ) from None
            except InputError:
                fine = True
                raise
            fine = True
            return answer

        try:
            yield run
        finally:
            if fine and worker.jobs < self.settings.jobs_per_worker:
                self._free.append(worker)
            else:
                self.killed += not fine
                worker.kill()
            self.running -= 1
            self._places.release()

    async def run(self, job: Callable[..., Answer], *given: Any) -> Answer:
        """One job on a worker.

        Raises:
            Limited: as of `worker`.
        """
        async with self.worker() as run:
            answer: Answer = await run(job, *given)
            return answer

    def close(self) -> None:
        """End the workers that have nothing to do."""
        while self._free:
            self._free.pop().kill()
