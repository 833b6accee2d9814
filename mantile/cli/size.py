"""The commands that ask what is needed: size, target first, and fits, hardware first."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.asked import own_file
from mantile.cli.commands import RARELY
from mantile.cli.flags import AUTO, document_of, field_flag, with_flags
from mantile.cli.in_parts import going_on, with_parts
from mantile.cli.limits import DefaultLimits, with_limits
from mantile.cli.optimize import GpusMax, Makers, parts_of, question_of
from mantile.library.errors import InputError


@app.command(
    group="Choose a deployment",
    examples=(
        "mantile size gpt-oss-120b --users 8 --isl 4k --osl 500 --interactivity-min 20 --gpu "
        "rtx-5090,m3-ultra",
    ),
)
@with_flags
@with_limits
@with_parts
def size(
    what: Annotated[
        str,
        typer.Argument(metavar="MODEL_OR_SCENARIO", help="As in `mantile estimate`, for its workload."),
    ],
    flags: dict[str, Any],
    limits: list[Any],
    parts: dict[str, Any],
    users: Annotated[int | None, typer.Option(help="Users who ask at the same time.")] = None,
    requests_per_hour: Annotated[
        float | None,
        typer.Option(metavar="<request/h>", help="Requests of each user; with --users it is a request rate."),
    ] = None,
    default_limits: DefaultLimits = True,
    gpus_max: GpusMax = None,
    spare: Annotated[
        float,
        typer.Option(
            metavar="<share>",
            help="What the good build has to spare of every limit of time and speed, and of the memory.",
            rich_help_panel=RARELY,
        ),
    ] = 0.3,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES",
            help="What is chosen from, as in sweep: tp=2^0..2^3; repeatable.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    makers: Makers = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="cp,disaggregated", help="What is looked at beyond the usual.", rich_help_panel=RARELY
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The workbook of the answer, .xlsx."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is needed for a target: the smallest build that keeps the limits, a good one, the best, and
    what is needed of every accelerator. Exit status 1 if nothing keeps the limits.
    """
    from mantile.search.question import workload_of
    from mantile.search.size import ORDER, size_of, with_load

    if output is not None and output.suffix != ".xlsx":
        raise InputError(f"--output {output}: expected a file name that ends in .xlsx")
    if output is not None and not output.parent.is_dir():
        raise InputError(f"--output {output}: there is no folder {output.parent}")
    if not 0 <= spare < 1:
        raise InputError(f"--spare: expected a share from 0 to below 1, such as 0.3, found {spare:g}")
    if gpus_max is not None and not 1 <= gpus_max <= 1024:
        raise InputError(f"--gpus-max: expected a whole number from 1 to 1,024, found {gpus_max}")
    if isinstance(flags.get("accelerator"), str):
        flags = {**flags, "accelerator": _with_files(flags["accelerator"])}
    data, _ = document_of(what)
    stated = workload_of(data, what) if isinstance(data, dict) else {}
    merged, assumed = with_load({**stated, **flags}, users, requests_per_hour, what, field_flag)
    loaded = {key: value for key, value in merged.items() if key in flags or key not in stated}
    question = question_of(
        what,
        loaded,
        over or [],
        ORDER,
        limits,
        gpus_max,
        parts_of(makers),
        parts_of(search),
        default_limits=default_limits,
    )
    from mantile.cli.output.size import print_size
    from mantile.cli.output.tables import print_json, working

    with working("looking at plans"), going_on(parts["keep"]):
        found = size_of(question, spare, assumed, **parts)
        if output is not None and found.has_answer:
            found.to_excel(output)
    if as_json:
        print_json(found.to_dict())
    else:
        print_size(found, output)
    if not found.has_answer:
        raise typer.Exit(1)


def _with_files(text: str) -> str:
    """Accelerators with the files of one's own in place of their names.

    Raises:
        InputError: for one that no library has.
    """
    from mantile.library.profiles import is_file, load_library

    names = [own_file(name) for name in parts_of(text)]
    for name in names:
        if name not in ("all", AUTO) and not is_file(name):
            try:
                load_library().accelerator(name)
            except InputError as error:
                raise InputError(f"--accelerator: {error}; mantile list hardware shows them") from None
    return ",".join(names)


@app.command(group="Choose a deployment", examples=("mantile fits rtx-4090:2",))
def fits(
    machines: Annotated[
        list[str],
        typer.Argument(
            metavar="ACCELERATOR[:COUNT]", help="A machine, by id, and how many accelerators it has."
        ),
    ],
    input_tokens: Annotated[int, typer.Option("--input-tokens", "--isl", help="Tokens of a prompt.")] = 1024,
    output_tokens: Annotated[
        int, typer.Option("--output-tokens", "--osl", help="Tokens of an answer.")
    ] = 256,
    ram: Annotated[
        float | None,
        typer.Option(metavar="<GB>", help="Host memory that may hold weights, of all accelerators together."),
    ] = None,
    bits_min: Annotated[
        float,
        typer.Option(
            metavar="<bit>", help="Bits of a weight at least; a checkpoint with fewer keeps its own."
        ),
    ] = 4.0,
    top: Annotated[int, typer.Option(min=1, max=200, help="Models of each machine.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Say what runs on a machine that is there: the largest models of the library that fit, in their best
    data type, with context and speed for one user. Exit status 1 if none fits.
    """
    from mantile.cli.output.size import print_fits
    from mantile.cli.output.tables import print_json, working
    from mantile.search.hardware_first import fits as largest
    from mantile.search.hardware_first import read_machine

    asked = [read_machine(text) for text in machines]
    with working("looking at models"):
        found = [largest(*machine, input_tokens, output_tokens, ram, top, bits_min) for machine in asked]
    if as_json:
        print_json({"machines": [one.to_dict() for one in found]})
    else:
        for one in found:
            print_fits(one)
    if not all(one.models for one in found):
        raise typer.Exit(1)
