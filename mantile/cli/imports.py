"""The command that reads a scenario out of what there is: a workbook, a launch line, a trace of requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.commands import RARELY
from mantile.cli.flags import with_flags, with_overrides
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.launch import Launch


@app.command(
    "import",
    group="Workbooks",
    examples=(
        "mantile import run.xlsx -o edited.yaml",
        "mantile import 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100 --isl 1k --osl 128 --concurrency 16",
        "mantile import requests.csv -o load.yaml",
    ),
)
@with_flags
def import_(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A workbook, .xlsx; a launch line in quotes, as of vllm serve, sglang.launch_server, "
            "trtllm-serve, llama-server or a container of one, or - for stdin; or a trace, .csv, with a line "
            "for each request: arrival (seconds or a date), input tokens, output tokens, class, session, "
            "seconds that it took.",
        ),
    ],
    flags: dict[str, Any],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The scenario to write, .yaml; with --bundle .yaml or .json; needed of a workbook.  "
            "[default: stdout]",
        ),
    ] = None,
    bundle: Annotated[
        bool,
        typer.Option(
            "--bundle",
            help="Of a workbook, write model and library as well: needed where figures of the library were "
            "edited.",
            rich_help_panel=RARELY,
        ),
    ] = False,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEY", help="Private key: sign the bundle.", rich_help_panel=RARELY),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="The model, where a launch line has a path that is not here.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Pass over flags of a launch line that Mantile does not know."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read an edited workbook, the launch line of a serving engine, or a trace of requests into a scenario,
    and say what was changed, or what no field stands for.
    """
    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    ending = Path(source).suffix.lower()
    is_line = ending not in (".xlsx", ".csv") and not (len(source) < 256 and Path(source).is_file())
    if not is_line and (flags or model or ignore_unknown):
        raise InputError(f"{source}: flags are for a launch line; a scenario file takes them afterwards")
    if ending != ".xlsx" and (bundle or sign):
        raise InputError(f"{'--bundle' if bundle else '--sign'}: it is for a workbook, .xlsx")
    if ending != ".xlsx" and output is not None and output.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{output}: expected a file name that ends in .yaml")
    if ending == ".xlsx":
        _from_workbook(Path(source), output, bundle, sign, as_json)
    elif is_line:
        given = flags if model is None else flags | {"model": model}
        _from_line(source, output, given, ignore_unknown, as_json)
    else:
        _from_trace(Path(source), output, as_json)


def _from_workbook(file: Path, output: Path | None, bundle: bool, sign: Path | None, as_json: bool) -> None:
    """Read an edited workbook back, and say what was changed."""
    must_exist(file)
    if output is None:
        raise InputError(f"{file}: missing --output FILE; such as: mantile import {file} -o edited.yaml")
    if sign is not None and not bundle:
        raise InputError("--sign: a scenario is not signed; expected --bundle beside it")
    from mantile.cli.output.tables import print_json, working
    from mantile.cli.output.workbooks import print_import
    from mantile.roundtrip.import_workbook import import_workbook

    with working(f"reading {file.name}"):
        imported = import_workbook(file)
        imported.write(output, bundle, sign)
    if as_json:
        print_json(imported.to_dict() | {"written": str(output), "kind": "bundle" if bundle else "scenario"})
    else:
        print_import(imported, output)


def _from_line(
    line: str, output: Path | None, given: dict[str, Any], ignore_unknown: bool, as_json: bool
) -> None:
    """Read the launch line of a serving engine, and say which flags no field stands for."""
    from mantile.cli.output.launch import print_launch, scenario_text
    from mantile.cli.output.tables import print_json
    from mantile.library.files import replacing
    from mantile.library.launch import read_launch
    from mantile.library.scenario import merge_fields

    text = sys.stdin.read() if line == "-" else line
    launch = read_launch(text, ignore_unknown, **{key: given[key] for key in given if key != "overrides"})
    if "overrides" in given:
        added = with_overrides(launch.fields, {"overrides": given["overrides"]})
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


def _from_trace(trace: Path, output: Path | None, as_json: bool) -> None:
    """Summarise a trace of requests: rate, classes, mean lengths, their spread."""
    from mantile.cli.output.tables import print_json
    from mantile.library.dump import dump_yaml
    from mantile.library.files import replacing
    from mantile.library.request_trace import read_trace

    found = read_trace(trace)
    fields = found.fields()
    if output is not None:
        with replacing(output) as temporary:
            temporary.write_text(dump_yaml(fields), encoding="utf-8")
    if as_json:
        told = {"requests": found.requests, "left_out": found.left_out, "seconds": found.seconds}
        print_json(told | {"burstiness": found.burstiness, "fields": fields})
        return
    if output is None:
        typer.echo(dump_yaml(fields), nl=False)
    left = f", {found.left_out} without a prompt or an answer left out" if found.left_out else ""
    typer.echo(f"{trace}: {found.requests} requests{left}", err=True)
    if found.rate is None:
        typer.echo("no column says when requests came: state request_rate or concurrency", err=True)
    elif found.burstiness is not None and found.burstiness > 1.5:
        typer.echo(
            f"requests come in bursts: the time between two spreads {found.burstiness:.2f} times its mean; "
            "estimates take random arrivals, where it is 1, and wait less",
            err=True,
        )


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
