"""A client of the server in its own process, for tests: no socket is opened."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any

import anyio.from_thread
import httpx
from fastapi import FastAPI

from mantile.server.app import create_app
from mantile.server.settings import Settings


class Client:
    """An application that runs until the block ends, and requests to it.

    Example:
        with Client(rate=0) as client:
            assert client.get("/healthz").status_code == 200
    """

    def __init__(self, **settings: Any) -> None:
        self.app: FastAPI = create_app(Settings(**{"builds": 1, "rate": 0, "patience": 1e6, **settings}))
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Client:
        self.portal = self._stack.enter_context(anyio.from_thread.start_blocking_portal())
        running = self.app.router.lifespan_context(self.app)
        self._stack.enter_context(self.portal.wrap_async_context_manager(running))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        """An answer; an error of the program is one with status 500."""

        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                return await client.request(method, path, **given)

        return self.portal.call(asked)

    def get(self, path: str, **given: Any) -> httpx.Response:
        """The answer to GET."""
        return self.request("GET", path, **given)

    def post(self, path: str, body: Any = None, **given: Any) -> httpx.Response:
        """The answer to POST with a body in JSON, or with what else is given."""
        return self.request("POST", path, **({"json": body} if body is not None else {}), **given)

    def answer(self, path: str, body: Any) -> Any:
        """What POST answers, which must be fine."""
        found = self.post(path, body)
        assert found.status_code == 200, found.text
        return found.json()

    def refused(self, path: str, body: Any = None, status: int = 422, **given: Any) -> dict[str, Any]:
        """The problem that POST answers."""
        found = self.post(path, body, **given)
        assert found.status_code == status, found.text
        assert found.headers["content-type"] == "application/problem+json"
        problem: dict[str, Any] = found.json()
        assert problem["status"] == status and problem["detail"] and "Traceback" not in found.text
        return problem
