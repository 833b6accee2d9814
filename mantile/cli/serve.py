"""The command that answers over HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from mantile.cli.app import app
from mantile.library.errors import InputError


@app.command(group="Ask about a deployment", examples=("mantile serve --port 8000",))
def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on.")] = 8000,
) -> None:
    """Answer over HTTP, and show a page to work on."""
    try:
        import uvicorn

        from mantile.server.app import create_app
    except ImportError as error:
        raise InputError(f"serve: needs {error.name}: pip install 'mantile[serve]'") from error
    uvicorn.run(create_app(), host=host, port=port)
