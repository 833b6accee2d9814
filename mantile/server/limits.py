"""What every request passes: size, time and rate limits, headers of answers, and counts for /metrics."""

from __future__ import annotations

import re
import time
from collections import Counter, OrderedDict
from collections.abc import MutableMapping
from contextlib import suppress
from typing import Any

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mantile.server.problems import Json, problem
from mantile.server.settings import Settings

HEADERS = {
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Of every answer that does not state its own."""
UPLOADS = ("/v1/workbooks/", "/upload")
"""What paths of uploads begin with; `/api/estimator` may stand before it."""
_CLIENTS = 10_000  # whose requests are counted; those that asked longest ago are forgotten first
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MINUTE = 60.0
_BUSY = 6  # requests at once, from which on a process gives connections back to those beside it


_PORT = re.compile(r":\d*$")


class Counts:
    """Requests by path, method and status, and how long they took."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.within: Counter[float] = Counter()
        self.seconds = 0.0
        self.open = 0

    def add(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self.requests[path, method, status] += 1
        self.seconds += seconds
        for bound in _BUCKETS:
            if seconds <= bound:
                self.within[bound] += 1

    def lines(self) -> list[str]:
        """As Prometheus reads them."""
        total = sum(self.requests.values())
        return [
            "# TYPE mantile_requests_total counter",
            *(
                f'mantile_requests_total{{path="{path}",method="{method}",status="{status}"}} {count}'
                for (path, method, status), count in sorted(self.requests.items())
            ),
            "# TYPE mantile_request_seconds histogram",
            *(f'mantile_request_seconds_bucket{{le="{bound}"}} {self.within[bound]}' for bound in _BUCKETS),
            f'mantile_request_seconds_bucket{{le="+Inf"}} {total}',
            f"mantile_request_seconds_sum {self.seconds:.6f}",
            f"mantile_request_seconds_count {total}",
            "# TYPE mantile_requests_open gauge",
            f"mantile_requests_open {self.open}",
        ]


class _NotRead(Exception):
    """A body that is larger than it may be, or does not come."""


class Limits:
    """The application behind its limits.

    Args:
        app: what answers.
        counts: where answers are counted.
    """

    def __init__(self, app: ASGIApp, settings: Settings, counts: Counts) -> None:
        self.app, self.settings, self.counts = app, settings, counts
        self._tokens: OrderedDict[str, tuple[float, float]] = OrderedDict()  # left, and when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say which limit it is beyond."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, state = time.perf_counter(), {"status": 0}
        self.counts.open += 1
        if scope["method"] == "HEAD":  # as GET, without a body
            scope, of_head = {**scope, "method": "GET"}, True
        else:
            of_head = False

        async def answer(message: Message) -> None:
            if of_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if self.settings.processes > 1 and self.counts.open > _BUSY:
                    headers["Connection"] = "close"  # asked again, another process is as likely to take it
            await send(message)

        try:
            refused = self._refused(scope)
            if refused is not None:
                await refused(scope, receive, answer)
            else:
                await self._within(scope, receive, answer, state)
        finally:
            self.counts.open -= 1
            route = getattr(scope.get("route"), "path", None)
            path = "other" if route is None else route if scope.get("path_params") else scope["path"]
            method = "HEAD" if of_head else scope["method"] if scope["method"] in _METHODS else "other"
            self.counts.add(path, method, state["status"], time.perf_counter() - started)

    async def _within(
        self, scope: Scope, receive: Receive, send: Send, state: MutableMapping[str, Any]
    ) -> None:
        """Answer within the limits of time and size."""
        most, read, whole, late = self._most(scope), 0, False, False
        due = time.monotonic() + self.settings.body_seconds

        async def limited() -> Message:
            nonlocal read, whole, late
            if whole:  # what is left to come is that the client goes
                return await receive()
            with anyio.move_on_after(max(0.0, due - time.monotonic())) as clock:
                message = await receive()
            if clock.cancelled_caught:
                late = True
                raise _NotRead
            read += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if read > most:
                raise _NotRead
            return message

        async def kept(message: Message) -> None:
            if read <= most and not late:  # else the application says only that it could not read the body
                await send(message)

        with anyio.move_on_after(self.settings.most_seconds) as clock, suppress(_NotRead):
            await self.app(scope, limited, kept)
        refused: Json | None = None
        if late:
            refused = problem(408, f"the body did not come within {self.settings.body_seconds:g} s")
        elif read > most:
            refused = _too_large(most)
        elif clock.cancelled_caught:
            refused = problem(504, f"more than {self.settings.most_seconds:g} s: expected something smaller")
        if refused is not None and not state["status"]:
            refused.headers["Connection"] = "close"
            await refused(scope, receive, send)

    def _most(self, scope: Scope) -> int:
        path = str(scope["path"]).removeprefix("/api/estimator")
        return self.settings.most_upload if path.startswith(UPLOADS) else self.settings.most_body

    def _refused(self, scope: Scope) -> Json | None:
        """Why a request is not looked at any further, by its headers."""
        headers, most = Headers(scope=scope), self._most(scope)
        host = _PORT.sub("", headers.get("host", "")).lower()
        if self.settings.hosts != ("*",) and host not in self.settings.hosts:
            return problem(400, f"Host: expected one of {', '.join(self.settings.hosts)}")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return problem(400, "Content-Length: expected a whole number")
        if len(length) > 12 or int(length) > most:
            return _too_large(most)
        if headers.get("content-encoding", "identity") != "identity":
            return problem(415, "Content-Encoding: expected none: what is packed is not unpacked here")
        if self.settings.rate and not self._may(str((scope.get("client") or ("",))[0])):
            every = _MINUTE / self.settings.rate
            return problem(
                429,
                f"more than {self.settings.rate} requests a minute",
                headers={"Retry-After": str(max(1, round(every)))},
            )
        return None

    def _may(self, client: str) -> bool:
        """Whether a client may ask now: a bucket of a tenth of a minute's requests, which fills evenly."""
        now, size = time.monotonic(), max(1.0, self.settings.rate / 10)
        left, then = self._tokens.pop(client, (size, now))
        left = min(size, left + (now - then) * self.settings.rate / _MINUTE)
        self._tokens[client] = (left - 1 if left >= 1 else left), now
        while len(self._tokens) > _CLIENTS:
            with suppress(KeyError):
                self._tokens.popitem(last=False)
        return left >= 1


_METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")


def _too_large(most: int) -> Json:
    return problem(413, f"the body is larger than {most:,} bytes", headers={"Connection": "close"})
