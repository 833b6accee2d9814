"""The command that writes launch lines of serving engines: launch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.commands import RARELY
from mantile.cli.estimates import WayOut, What, estimate_of
from mantile.cli.flags import with_flags
from mantile.library.errors import InputError


@app.command(
    group="Choose a deployment",
    examples=("mantile launch llama-3.3-70b --gpu h100 --gpus 4 --isl 2k --osl 256 --concurrency 48",),
)
@with_flags
def launch(
    what: What,
    flags: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="The folder to write the files to.  [default: stdout]"
        ),
    ] = None,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="Write a manifest too: Deployment or LeaderWorkerSet, Service."),
    ] = False,
    way: WayOut = None,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Also launch a plan that does not work by the estimate.", rich_help_panel=RARELY
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the commands and files that start a deployment, and say where each flag comes from. Exit status 1
    if the plan does not work.
    """
    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    if output is not None and output.exists() and not output.is_dir():
        raise InputError(f"{output}: this is a file; expected a folder to write to")
    estimates = estimate_of(what, flags, way)
    from mantile.cli.output.launch import launch_dict, print_files, print_refused, write_files
    from mantile.cli.output.tables import print_json
    from mantile.estimates.launch import DoesNotFit
    from mantile.estimates.launch import launch as launched
    from mantile.estimates.launch_files import files_of

    try:
        started = launched(estimates, anyway)
    except DoesNotFit as error:
        if as_json:
            print_json({"files": {}, "checks": {"errors": error.errors}})
        else:
            print_refused(error)
        raise typer.Exit(1) from None
    files = files_of(started, kubernetes)
    if output is not None:
        write_files(files, output)
    if as_json:
        print_json(launch_dict(started, files))
    else:
        print_files(started, files, output)
