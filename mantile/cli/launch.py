"""Commands about launch lines of serving engines: from-command reads one, launch writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.estimates import WayOut, What, estimate_of
from mantile.cli.flags import with_flags, with_overrides
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.launch import Launch


@app.command(
    "from-command",
    group="Measured runs, traces and launch lines",
    examples=(
        "mantile from-command 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100 --isl 1k --osl 128 "
        "--concurrency 16 -o chat.yaml",
    ),
)
@with_flags
def from_command(
    line: Annotated[
        str,
        typer.Argument(
            metavar="LINE",
            help="A launch line in quotes: 'vllm serve ...', 'python -m sglang.launch_server ...', "
            "'trtllm-serve ...', 'llama-server ...', or a container of one; - reads it from stdin.",
        ),
    ],
    flags: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The scenario to write, .yaml.  [default: stdout]"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="The model, where the line has a path that is not here."
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool, typer.Option("--ignore-unknown", help="Pass over flags that Mantile does not know.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read the launch line of a serving engine into a scenario, and say which flags no field stands for."""
    if output is not None and output.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{output}: expected a file name that ends in .yaml")
    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    from mantile.cli.output.launch import print_launch, scenario_text
    from mantile.cli.output.tables import print_json
    from mantile.library.files import replacing
    from mantile.library.launch import read_launch
    from mantile.library.scenario import merge_fields

    text = sys.stdin.read() if line == "-" else line
    given = flags if model is None else flags | {"model": model}
    launch = read_launch(text, ignore_unknown, **{key: given[key] for key in given if key != "overrides"})
    if "overrides" in flags:
        added = with_overrides(launch.fields, {"overrides": flags["overrides"]})
        launch = launch.with_fields(merge_fields(launch.fields, added, "command line"))
    launch = _with_limits(launch)
    if output is not None:
        with replacing(output) as temporary:
            temporary.write_text(scenario_text(launch), encoding="utf-8")
    if as_json:
        print_json(launch.to_dict())
    elif output is None:
        print(scenario_text(launch), end="")
    else:
        print_launch(launch, output)


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
        bool, typer.Option("--anyway", help="Also launch a plan that does not work by the estimate.")
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


def _with_limits(launch: Launch) -> Launch:
    """The limits that an engine has unless it is told otherwise, where the load goes beyond them."""
    from mantile.library.launch import Remark
    from mantile.measured.clients import most_requests

    fields, notes = dict(launch.fields), list[str]()
    if "max_requests" in fields or not {"accelerator", "concurrency"} <= fields.keys():
        return launch
    limits = most_requests(fields, notes)
    return launch.with_fields(
        fields | {name: limits[name] for name in limits if name not in fields},
        [Remark("batch", f"{note}.") for note in notes],
    )
