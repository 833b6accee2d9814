"""The command that answers over HTTP."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import app
from mantile.library.errors import InputError

_LOCAL = ("127.0.0.1", "localhost", "::1")


@app.command(
    group="Ask about a deployment",
    examples=("mantile serve", "mantile serve --host 0.0.0.0 --port 80 --name mantile.example.com"),
)
def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 for all.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on.")] = 8000,
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="HOST",
            help="Name by which browsers ask for it; repeatable. Requests by other names are refused.  "
            "[default: this machine's own, or any with --host]",
        ),
    ] = None,
    origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            metavar="ADDRESS",
            help="Address of a page whose scripts may ask (CORS), or * for any; repeatable.",
        ),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", min=1, max=64, help="Server processes; each works on one core.")
    ] = 1,
    builds: Annotated[
        int | None,
        typer.Option(
            "--builds",
            min=1,
            max=64,
            help="Workbooks, verifications and searches at once in each.  [default: one a core, at most 4]",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, max=3600, help="What one of these may take.")
    ] = 900,
    memory: Annotated[
        float, typer.Option("--memory", min=1, max=1024, help="GB of memory that one of these may take.")
    ] = 4,
    rate: Annotated[
        int, typer.Option("--rate", min=0, help="Requests of one client in a minute; 0 for no limit.")
    ] = 30_000,
    records: Annotated[
        Path | None,
        typer.Option(
            "--records",
            metavar="FILE.db",
            help="Database of records for measured runs that are sent; kept until the end without it.",
        ),
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Read models from the Hugging Face hub.")] = False,
) -> None:
    """Answer over HTTP, and show a page to work on."""
    try:
        import uvicorn

        from mantile.server.app import ENVIRONMENT, create_app, settle, told
        from mantile.server.settings import Settings
    except ImportError as error:
        raise InputError(f"serve: needs {error.name}: pip install 'mantile[serve]'") from error
    if processes > 1 and records is None:
        raise InputError("--processes: several share a file of measured runs: expected --records beside it")
    hosts = tuple(name or (("*",) if host not in _LOCAL else (*_LOCAL[:2], "[::1]")))
    usual = Settings()
    settings = Settings(
        hub=hub,
        records=records,
        hosts=hosts,
        origins=tuple(origin or ()),
        seconds=seconds,
        rate=rate,
        memory=int(memory * 1e9),
        processes=processes,
        builds=builds or usual.builds,
    )
    shared: dict[str, Any] = {
        "host": host,
        "port": port,
        "http": "h11",  # the other one takes heads of any length
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
        "timeout_graceful_shutdown": int(seconds) + 1,
    }
    if processes == 1:
        settle()
        uvicorn.run(create_app(settings), **shared)
        return
    with tempfile.TemporaryDirectory(prefix="mantile-", ignore_cleanup_errors=True) as folder:
        os.environ[ENVIRONMENT] = told(replace(settings, jobs=Path(folder)))
        uvicorn.run("mantile.server.app:from_environment", factory=True, workers=processes, **shared)
