"""The command that asks for every combination of values: sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.app import AsJson, app
from mantile.cli.estimates import What
from mantile.cli.flags import scenario as scenario_of
from mantile.cli.flags import swept_values, with_flags
from mantile.library.errors import InputError


@app.command()
@with_flags
def sweep(
    what: What,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES",
            help="A field or figure and its values: tp=1,2,4..32 (doublings), input_tokens=512:8192:512, "
            "accelerator=h100-sxm,b200-sxm or all, efficiency.gemm_bandwidth=0.6:0.9:0.05; repeatable, the "
            "last runs fastest.",
        ),
    ],
    flags: dict[str, Any],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="The table of all points, .csv or .parquet; repeatable."
        ),
    ] = None,
    feasible: Annotated[bool, typer.Option("--feasible", help="Keep only points that fit.")] = False,
    as_json: AsJson = False,
) -> None:
    """Work every combination of values out: a table of all points, and which of them no other beats. Variants
    of a scenario are left out.
    """
    values: dict[str, tuple[Any, ...]] = {}
    for text in over:
        name, swept = swept_values(text)
        if name in values:
            raise InputError(f"--over {text}: {name} is given twice")
        values[name] = swept
    from contextlib import ExitStack

    from mantile.cli.output.runs import progress
    from mantile.cli.output.sweep import ROWS, print_sweep
    from mantile.cli.output.tables import print_json
    from mantile.estimate.sweep import FRAME, Digest, grid
    from mantile.estimate.tables import table_file
    from mantile.library.scenario import REQUIRED, field_name

    first = {field_name(key): swept[0] for key, swept in values.items()}
    scenario, name, bundle = scenario_of(
        what, {key: first[key] for key in (*REQUIRED, "request_rate") if key in first} | flags
    )
    with ExitStack() as files:
        appends = [files.enter_context(table_file(path)) for path in output or ()]
        points = grid(
            scenario, values, bundle.model if bundle else None, bundle.library if bundle else None, name
        )
        digest = Digest(ROWS)
        with progress("sweeping", max(1, len(points) // FRAME)) as step:
            for table in points.tables(feasible):
                step(f"{digest.points:,} of {len(points):,} points")
                digest.add(table)
                for append in appends:
                    append(table)
    if as_json:
        print_json(digest.to_dict() | {"files": [str(path) for path in output or ()]})
    else:
        print_sweep(digest, [*points.over], scenario.title or scenario.model, output or ())
    if not digest.feasible:
        raise typer.Exit(1)
