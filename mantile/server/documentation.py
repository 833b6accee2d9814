"""GET /docs and /redoc: the endpoints as pages, from files of this installation alone."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.openapi.docs import get_redoc_html, get_swagger_ui_html
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

_FILES = "/docs/files"
_SCRIPTS = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
_OTHERS = "img-src 'self' data:; worker-src blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
_POLICY = {"Content-Security-Policy": _SCRIPTS + _OTHERS}
"""Both pages begin with a script in their markup."""


def add(app: FastAPI) -> None:
    """Add both pages and their files, which the package fastapi-offline brings along."""
    app.mount(_FILES, StaticFiles(packages=[("fastapi_offline", "static")]))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return _page(
            get_swagger_ui_html(
                openapi_url="/openapi.json",
                title=app.title,
                swagger_js_url=f"{_FILES}/swagger-ui-bundle.js",
                swagger_css_url=f"{_FILES}/swagger-ui.css",
                swagger_favicon_url=f"{_FILES}/favicon.png",
            )
        )

    @app.get("/redoc", include_in_schema=False)
    async def redoc() -> HTMLResponse:
        return _page(
            get_redoc_html(
                openapi_url="/openapi.json",
                title=app.title,
                redoc_js_url=f"{_FILES}/redoc.standalone.js",
                redoc_favicon_url=f"{_FILES}/favicon.png",
                with_google_fonts=False,
            )
        )


def _page(page: HTMLResponse) -> HTMLResponse:
    page.headers.update(_POLICY)
    return page
