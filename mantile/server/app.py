"""The application: endpoints, limits, and the page where it is installed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from fastapi import FastAPI

from mantile.library.version import __version__
from mantile.server.settings import Settings


def create_app(settings: Settings | None = None) -> FastAPI:
    """The application for an ASGI server; `app.state.settings` holds what it was told.

    Example:
        uvicorn.run(create_app(Settings(rate=600)), host="127.0.0.1", port=8000)
    """
    app = FastAPI(title="Mantile", version=__version__)
    app.state.settings = settings or Settings()
    if find_spec("mantile.server.page") is not None:
        app.include_router(import_module("mantile.server.page").router)
    return app
