"""Loads: so many requests in flight, or so many arriving per second; and what the client itself takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter

from mantile.bench.stream import Answer

Send = Callable[[bytes, "float | None"], Awaitable[Answer]]
"""Sends a request that is due at a moment, and waits for its answer."""

_PULSE = 0.01  # seconds between looks at how late the client is


async def closed_loop(send: Send, bodies: Sequence[bytes], slots: int) -> list[Answer]:
    """Send requests from so many slots, each the next as soon as it has its answer; all begin at once."""
    waiting = iter(bodies)

    async def slot() -> list[Answer]:
        return [await send(body, None) for body in waiting]

    return [answer for of_slot in await asyncio.gather(*(slot() for _ in range(slots))) for answer in of_slot]


async def open_loop(send: Send, bodies: Sequence[bytes], arrivals: Sequence[float]) -> list[Answer]:
    """Send each request when it arrives, whatever is in flight.

    Args:
        arrivals: seconds from the start, rising.
    """
    start = perf_counter()
    tasks = []
    for body, arrival in zip(bodies, arrivals, strict=True):
        await asyncio.sleep(max(0.0, start + arrival - perf_counter()))
        tasks.append(asyncio.create_task(_sent(send, body, start + arrival)))
    return list(await asyncio.gather(*tasks))


async def _sent(send: Send, body: bytes, due: float) -> Answer:
    return await send(body, due)


@dataclass
class Client:
    """What the client itself takes while it measures: `async with Client() as client`.

    Args:
        lags: seconds by which its loop was late, at each look: a piece that came meanwhile was seen so much
            late at most.
        cpu: share of a processor core that it took.
    """

    lags: list[float] = field(default_factory=list)
    cpu: float = 0.0
    _begun: tuple[float, float] = (0.0, 0.0)
    _task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Client:
        """Begin to look."""
        self._begun = perf_counter(), time.process_time()
        self._task = asyncio.create_task(self._look())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        wall, used = perf_counter() - self._begun[0], time.process_time() - self._begun[1]
        self.cpu = used / wall if wall > 0 else 0.0
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _look(self) -> None:
        while True:
            asked = perf_counter()
            await asyncio.sleep(_PULSE)
            self.lags.append(max(0.0, perf_counter() - asked - _PULSE))
