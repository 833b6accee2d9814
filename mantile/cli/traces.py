"""The command that summarises traces of requests: from-trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mantile.cli.application import AsJson, app
from mantile.library.errors import InputError


@app.command(
    "from-trace",
    group="Measured runs, traces and launch lines",
    examples=("mantile from-trace requests.csv -o load.yaml",),
)
def from_trace(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE.csv",
            help=(
                "A line for each request: arrival (seconds or a date), input tokens, output tokens, class, "
                "session, seconds that it took."
            ),
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The fields to write, .yaml.  [default: stdout]"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Summarise a trace of requests as fields of a scenario: rate, classes, mean lengths, their spread."""
    if output is not None and output.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{output}: expected a file name that ends in .yaml")
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
