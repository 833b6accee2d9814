"""The application: endpoints, limits, and the page where it is installed."""

from __future__ import annotations

import gc
import json
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware

from mantile.library.profiles import load_library
from mantile.library.version import __version__
from mantile.server import documentation, problems
from mantile.server.deferred import Deferred, stop_jobs
from mantile.server.limits import Counts, Limits
from mantile.server.pool import Pool
from mantile.server.records import Records
from mantile.server.routes import router
from mantile.server.settings import Settings

ENVIRONMENT = "MANTILE_SERVER"
"""The variable that tells the settings to the processes of a server."""
_THREADS = 2  # estimates at a time in a process: Python works on one
_YOUNG = 50_000  # objects made before Python looks for garbage among them


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application for an ASGI server.

    Its `state` has `settings`, and while it runs `pool` (worker processes), `records` (measured runs),
    `folder` (for files, gone when it ends) and `counts`.

    Example:
        uvicorn.run(create_app(Settings(rate=600)), host="127.0.0.1", port=8000)
    """
    settings = settings or Settings()

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        """What is there as long as the application runs."""
        await anyio.to_thread.run_sync(load_library)  # takes seconds, which nobody shall wait for
        app.state.threads = anyio.CapacityLimiter(_THREADS)
        app.state.pool = Pool(settings)
        app.state.records = Records(settings.records, settings.kept)
        with tempfile.TemporaryDirectory(prefix="mantile-", ignore_cleanup_errors=True) as folder:
            app.state.folder, app.state.jobs = Path(folder, "files"), settings.jobs or Path(folder, "jobs")
            for made in (app.state.folder, app.state.jobs):
                made.mkdir(exist_ok=True)
            try:
                yield
            finally:
                await stop_jobs(app.state.tasks)
                app.state.pool.close()

    app = FastAPI(
        title="Mantile",
        version=__version__,
        description="What an LLM deployment can really reach. Every number is one of the graph's, as "
        "`mantile estimate --json` prints it; units are SI unless a name says another.",
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        docs_url=None,
        redoc_url=None,
        lifespan=running,
        default_response_class=problems.Json,
    )
    app.state.settings, app.state.counts, app.state.tasks = settings, Counts(), set()
    problems.handle(app)
    app.include_router(router)
    if find_spec("mantile.server.page") is not None:
        app.include_router(import_module("mantile.server.page").router)
    documentation.add(app)
    app.add_middleware(Deferred, patience=settings.patience, tasks=app.state.tasks)
    app.add_middleware(Limits, settings=settings, counts=app.state.counts)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Content-Type", "Prefer"],
            expose_headers=["Content-Disposition", "Location", "Retry-After", "X-Points"],
        )
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    return app


def _schema(app: FastAPI) -> dict[str, Any]:
    """OpenAPI of the application, with the form of problems."""
    if app.openapi_schema is None:
        made: dict[str, Any] = FastAPI.openapi(app)
        schema = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        parts = made.setdefault("components", {}).setdefault("schemas", {})
        parts |= schema.pop("$defs", {}) | {"Problem": schema}
        for unused in ("HTTPValidationError", "ValidationError"):
            parts.pop(unused, None)
        app.openapi_schema = made
    return app.openapi_schema


def settle() -> None:
    """Load the library, and let the garbage collector look for garbage seldom and never through the library.

    For a process of the server's own: as often as Python does by itself it takes as long as estimates do.
    """
    load_library()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 20)
    gc.enable()


def told(settings: Settings) -> str:
    """Settings as text, for the environment of further processes."""
    return json.dumps(asdict(settings), default=str)


def from_environment() -> FastAPI:
    """The application with the settings of the environment: for servers of several processes."""
    settle()
    given = json.loads(os.environ.get(ENVIRONMENT, "{}"))
    given |= {name: tuple(given[name]) for name in ("hosts", "origins") if name in given}
    given |= {name: Path(given[name]) for name in ("records", "jobs") if given.get(name)}
    return create_app(Settings(**given))
