"""A serving engine, step by step: requests of drawn lengths, a batch with a token budget, prompts that wait.

Nothing here is taken from the equations but the seconds of a step, which are given: fixed, for each request
that decodes, and for each token of a prompt.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

MIXED, FIRST, WHOLE = "mixed", "prefill-first", "whole-prompts"


@dataclass(frozen=True)
class Kind:
    """Requests that are alike: mean lengths, standard deviation over mean of both.

    Lengths are drawn from a gamma distribution, or evenly where `evenly`. A user thinks for so many seconds
    before the next request.
    """

    share: float = 1.0
    prompt: float = 1000.0
    output: float = 100.0
    prompt_cv: float = 0.0
    output_cv: float = 0.0
    think: float = 0.0
    evenly: bool = False


@dataclass(frozen=True)
class Engine:
    """One replica.

    Args:
        fixed, each: seconds of a decode step, and of each request in it; `token` of a token of a prompt.
        alone: seconds that a step of prompts alone takes beside them.
        slots: most requests in the batch; `budget` most tokens of prompts in a step.
        mode: continuous, static or apart: prompts have workers of their own, so many as `prefillers`.
        handed: seconds on the way from a worker that prefills to one that decodes.
    """

    fixed: float
    each: float
    token: float
    alone: float = 0.0
    slots: int = 1000
    budget: float = 8192
    scheduler: str = MIXED
    mode: str = "continuous"
    prefillers: int = 1
    handed: float = 0.0


@dataclass
class Seen:
    """What clients see: of each request its kind, seconds to its first token, mean gap, end to end.

    `gaps` are seconds between tokens, and how many there are of each.
    """

    kind: list[int] = field(default_factory=list)
    ttft: list[float] = field(default_factory=list)
    tpot: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    clock: float = 0.0
    started: float = 0.0
    arrived: int = 0

    def percentile(self, name: str, share: float) -> float:
        """Of the times of requests, or of gaps between tokens ("itl")."""
        if name != "itl":
            return float(np.quantile(getattr(self, name), share))
        gaps = np.array(sorted(self.gaps))
        counted = np.cumsum(gaps[:, 1])
        return float(gaps[np.searchsorted(counted, share * counted[-1]), 0])


@dataclass
class _Request:
    kind: int
    arrival: float
    prompt: float
    output: int
    left: float = 0.0
    first: float = 0.0


def _drawn(dice: np.random.Generator, mean: float, cv: float, evenly: bool) -> float:
    if cv <= 0:
        return mean
    if evenly:
        return float(mean * (1 + cv * 3**0.5 * dice.uniform(-1, 1)))
    return float(dice.gamma(1 / cv**2, mean * cv**2))


class _Source:
    """Requests as they arrive: at a rate, or after each that ended."""

    def __init__(
        self, dice: np.random.Generator, kinds: tuple[Kind, ...], rate: float, users: int, spread_over: float
    ) -> None:
        self.dice, self.kinds, self.rate = dice, kinds, rate
        self.shares = np.cumsum([kind.share for kind in kinds])
        self.coming: list[tuple[float, int, int]] = []
        self.number = 0
        if rate > 0:
            self._add(dice.exponential(1 / rate))
        else:
            for _ in range(users):
                self._add(dice.uniform(0, spread_over))

    def _add(self, time: float, kind: int | None = None) -> None:
        if kind is None:
            kind = int(np.searchsorted(self.shares, self.dice.uniform(0, self.shares[-1])))
        self.number += 1
        heapq.heappush(self.coming, (time, self.number, kind))

    @property
    def next(self) -> float:
        return self.coming[0][0] if self.coming else np.inf

    def until(self, clock: float) -> Iterator[_Request]:
        while self.coming and self.coming[0][0] <= clock:
            time, _, number = heapq.heappop(self.coming)
            kind = self.kinds[number]
            if self.rate > 0:
                self._add(time + self.dice.exponential(1 / self.rate))
            prompt = max(1.0, _drawn(self.dice, kind.prompt, kind.prompt_cv, kind.evenly))
            output = max(1, round(_drawn(self.dice, kind.output, kind.output_cv, kind.evenly)))
            yield _Request(number, time, prompt, output, left=prompt)

    def ended(self, clock: float) -> None:
        if self.rate > 0:
            return
        number = int(np.searchsorted(self.shares, self.dice.uniform(0, self.shares[-1])))
        think = self.kinds[number].think
        self._add(clock + (self.dice.exponential(think) if think > 0 else 0.0), number)


def simulate(
    engine: Engine,
    kinds: tuple[Kind, ...],
    rate: float = 0,
    users: int = 0,
    requests: int = 3000,
    warm: int = 800,
    seed: int = 1,
) -> Seen:
    """What clients see of so many requests after the first `warm` ones.

    Args:
        rate: requests per second that arrive at random; 0: so many `users` send one after the other.
    """
    dice = np.random.default_rng(seed)
    mean = sum(kind.share * kind.output for kind in kinds) / sum(kind.share for kind in kinds)
    around = mean * (engine.fixed + engine.each * max(users, 1))
    source = _Source(dice, kinds, rate, users, around)
    seen = Seen()
    run = {"continuous": _continuous, "static": _static, "apart": _apart}[engine.mode]
    run(engine, source, seen, requests, warm)
    return seen


class _Ends:
    """Notes requests that ended, from the first that counts on."""

    def __init__(self, seen: Seen, source: _Source, warm: int) -> None:
        self.seen, self.source, self.warm, self.count = seen, source, warm, 0

    def __call__(self, request: _Request, clock: float) -> None:
        self.count += 1
        self.source.ended(clock)
        if self.count <= self.warm:
            self.seen.started = clock
            return
        seen = self.seen
        seen.kind.append(request.kind)
        seen.ttft.append(request.first - request.arrival)
        seen.e2e.append(clock - request.arrival)
        seen.output.append(request.output)
        seen.tpot.append((clock - request.first) / max(1, request.output - 1))
        seen.clock = clock


def _continuous(engine: Engine, source: _Source, seen: Seen, requests: int, warm: int) -> None:
    waiting: deque[_Request] = deque()  # for a slot
    prompts: deque[_Request] = deque()  # in a slot, for their prefill
    running: list[tuple[int, int, _Request]] = []  # by the decode step after which they end
    ended, clock, decoded, number, gap = _Ends(seen, source, warm), 0.0, 0, 0, 0.0
    while ended.count < requests + warm:
        waiting.extend(source.until(clock))
        while waiting and len(running) + len(prompts) < engine.slots:
            prompts.append(waiting.popleft())
        if not prompts and not running:
            clock = source.next
            continue
        room, tokens, ready = engine.budget, 0.0, []
        while prompts and room > 0:
            head = prompts[0]
            if engine.scheduler != MIXED and head.left > room and tokens:
                break
            taken = min(head.left, room) if engine.scheduler == MIXED else head.left
            room, tokens = room - taken, tokens + taken
            head.left -= taken
            if head.left > 0:
                break
            ready.append(prompts.popleft())
        decodes = running and not (engine.scheduler == FIRST and tokens)
        step = tokens * engine.token + (engine.fixed + engine.each * len(running) if decodes else 0.0)
        if not decodes:
            step += engine.alone
        steps = 1
        if decodes and not tokens:
            until = source.next if len(running) < engine.slots else np.inf
            steps = max(
                1, min(running[0][0] - decoded, int(min(1e6 * step, max(0, until - clock)) // step) + 1)
            )
        gap += step
        clock += step * steps
        if decodes:
            decoded += steps
            if ended.count >= warm:
                seen.gaps.append((gap, float(len(running))))
                if steps > 1:
                    seen.gaps.append((step, float(len(running) * (steps - 1))))
            gap = 0.0
            while running and running[0][0] <= decoded:
                ended(heapq.heappop(running)[2], clock)
        elif not running:
            gap = 0.0
        for request in ready:
            request.first = clock
            number += 1
            if request.output == 1:
                ended(request, clock)
            else:
                heapq.heappush(running, (decoded + request.output - 1, number, request))


def _static(engine: Engine, source: _Source, seen: Seen, requests: int, warm: int) -> None:
    waiting: deque[_Request] = deque()
    ended, clock = _Ends(seen, source, warm), 0.0
    while ended.count < requests + warm:
        waiting.extend(source.until(clock))
        if not waiting:
            clock = source.next
            continue
        batch = [waiting.popleft() for _ in range(min(len(waiting), engine.slots))]
        clock += sum(request.prompt for request in batch) * engine.token
        for request in batch:
            request.first = clock
        step = engine.fixed + engine.each * len(batch)  # places that are done stay in the batch
        for request in sorted(batch, key=lambda one: one.output):
            ended(request, clock + (request.output - 1) * step)
        seen.gaps.append((step, float(sum(request.output - 1 for request in batch))))
        clock += (max(request.output for request in batch) - 1) * step


def _apart(engine: Engine, source: _Source, seen: Seen, requests: int, warm: int) -> None:
    free, dice = [0.0] * engine.prefillers, source.dice
    handed: list[tuple[float, int, _Request]] = []  # by the end of their prefill
    waiting: deque[_Request] = deque()
    running: list[tuple[int, int, _Request]] = []
    ended, clock, decoded, number = _Ends(seen, source, warm), 0.0, 0, 0
    while ended.count < requests + warm:
        for request in source.until(clock):
            number += 1
            turn = int(dice.integers(engine.prefillers))
            start = max(free[turn], request.arrival)
            free[turn] = start + request.prompt * engine.token
            request.first = free[turn] + engine.handed
            heapq.heappush(handed, (request.first, number, request))
        while handed and handed[0][0] <= clock:
            waiting.append(heapq.heappop(handed)[2])
        while waiting and len(running) < engine.slots:
            request = waiting.popleft()
            if request.left < 0:
                request.first = clock
            number += 1
            heapq.heappush(running, (decoded + request.output, number, request))
        for request in waiting:
            request.left = -1.0  # who found no slot has the first token with one
        coming = min(source.next, handed[0][0] if handed else np.inf)
        if not running:
            clock = coming
            continue
        step = engine.fixed + engine.each * len(running)
        steps = max(1, min(running[0][0] - decoded, int(min(1e6 * step, max(0, coming - clock)) // step) + 1))
        clock, decoded = clock + step * steps, decoded + steps
        if ended.count >= warm:
            seen.gaps.append((step, float(len(running) * steps)))
        while running and running[0][0] <= decoded:
            ended(heapq.heappop(running)[2], clock)
