"""Flags of long searches, declared once for all commands that choose a deployment: where parts are worked out
and kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.commands import RARELY, set_parameters
from mantile.library.errors import InputError

STOPPED = 130
"""Exit status of a run that was interrupted."""


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="Processes of --scheduler local.  [default: one for each core]", rich_help_panel=RARELY
    ),
]
_PART = typer.Option(
    min=1,
    help="Plans that are worked out at once, handed to a worker and kept.  [default: 16384]",
    rich_help_panel=RARELY,
)
_KEEP = typer.Option(
    metavar="FOLDER",
    help="Keep what is worked out there: the same command goes on with what a stopped run left.",
    rich_help_panel=RARELY,
)
_ADDED = (
    _parameter("workers", Workers),
    _parameter("partition_points", Annotated[int | None, _PART]),
    _parameter("keep", Annotated[Path | None, _KEEP]),
)


def with_parts(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of long searches; it receives what `solve` takes as its argument `parts`."""
    parameters = [*inspect.signature(command, eval_str=True).parameters.values()]
    place = [parameter.name for parameter in parameters].index("parts")
    given = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in (*parameters[:place], *_ADDED, *parameters[place + 1 :])
    ]

    @wraps(command)
    def run(**arguments: Any) -> None:
        workers, part, keep = (arguments.pop(parameter.name) for parameter in _ADDED)
        parts = _asked(arguments["flags"], workers, part, keep)
        command(**arguments, parts=parts)

    set_parameters(run, given)
    return run


def _asked(flags: dict[str, Any], workers: int | None, part: int | None, keep: Path | None) -> dict[str, Any]:
    from mantile.estimates.scheduled import require_scheduler, taken

    cluster = taken(flags)
    if cluster is not None:
        require_scheduler(cluster, workers)
    elif workers:
        raise InputError("--workers: only with --scheduler")
    elif part and keep is None:
        raise InputError("--partition-points: only with --scheduler or --keep")
    return {"cluster": cluster, "workers": workers, "part": part, "keep": keep}


@contextmanager
def going_on(folder: Path | None) -> Iterator[None]:
    """Where somebody stops what runs within, say that it goes on from what a folder keeps."""
    try:
        yield
    except KeyboardInterrupt:
        if folder is None:
            raise
        typer.echo(f"mantile: stopped; {folder}: the same command goes on from here", err=True)
        raise typer.Exit(STOPPED) from None
