"""The command that chooses: optimize."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.commands import RARELY
from mantile.cli.flags import AUTO, swept_values, with_flags
from mantile.cli.in_parts import going_on, with_parts
from mantile.cli.limits import DefaultLimits, with_limits
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.search.objective import Limit
    from mantile.search.optimize import Optimum
    from mantile.search.question import Question

GpusMax = Annotated[
    int | None,
    typer.Option(
        "--gpus-max",
        "--gpus",
        "--num-gpus",
        metavar="<n>",
        help="Accelerators of a deployment, at most.  [default: 8]",
    ),
]
Makers = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Makers whose accelerators may be chosen; all without.",
        rich_help_panel=RARELY,
    ),
]
_LISTED = ("accelerator", "framework", "weights_dtype", "kv_dtype", "system")  # lists with commas


@app.command(
    group="Choose a deployment",
    examples=(
        "mantile optimize llama-3.3-70b --concurrency 200 --isl 2k --osl 300 --ttft-p95-max 2 "
        "--tpot-max 0.04 --gpu h100-sxm,b200-sxm",
        "mantile optimize llama-3.1-8b --device dgx-spark --device m3-ultra --framework exo --isl 8k "
        "--osl 32 --concurrency 1",
        "mantile optimize all --objective largest-model --gpu rtx-4090 --gpus 2 --isl 2k --osl 300 "
        "--concurrency 4 --tpot-max 0.05",
    ),
)
@with_flags
@with_limits
@with_parts
def optimize(
    what: Annotated[
        str,
        typer.Argument(
            metavar="MODEL_OR_SCENARIO",
            help="As in `mantile estimate`, for its workload; with --objective largest-model: all, or models "
            "with commas.",
        ),
    ],
    flags: dict[str, Any],
    limits: list[Any],
    parts: dict[str, Any],
    objective: Annotated[
        str,
        typer.Option(
            metavar="MEASURE",
            help="What is wanted: cost, throughput, throughput-per-accelerator, tpot, ttft-p95, e2e, power, "
            "tokens-per-kwh, accelerators, perf-per-dollar; several in order with commas, or weighted: "
            "0.7*cost+0.3*e2e. largest-model, with `all` or models with commas: the largest that fits.",
        ),
    ] = "cost",
    default_limits: DefaultLimits = True,
    gpus_max: GpusMax = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUES", help="What is chosen from, as in sweep: tp=2^0..2^3; repeatable."
        ),
    ] = None,
    makers: Makers = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="cp,disaggregated,offload",
            help="What is looked at beyond the usual.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    per_layer_type: Annotated[
        bool,
        typer.Option(
            "--per-layer-type",
            help="Try FFNs over fewer or more ranks than attention, where an engine can.",
            rich_help_panel=RARELY,
        ),
    ] = False,
    host_memory: Annotated[
        float | None,
        typer.Option(
            metavar="<GB>",
            help="Host memory for each accelerator, in which weights and KV cache may lie where nothing fits "
            "without; 0: none.  [default: 2 GB for each GiB of the accelerator]",
            rich_help_panel=RARELY,
        ),
    ] = None,
    plans: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Plans of the answer, at most 24: live columns of the workbook.",
            rich_help_panel=RARELY,
        ),
    ] = 12,
    top: Annotated[
        int, typer.Option(min=1, max=100, help="Plans that are listed.", rich_help_panel=RARELY)
    ] = 12,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The workbook of the answer, .xlsx; its scenario, .yaml; or all plans, .csv.",
        ),
    ] = None,
    launch: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="A folder for what starts the winner, as `mantile launch` writes it.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    kubernetes: Annotated[
        bool,
        typer.Option("--kubernetes", help="With --launch: write a manifest too.", rich_help_panel=RARELY),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the best deployment: every plan on every accelerator allowed, within limits, with reasons. With
    --device A --device B: what each of these machines shall do.
    """
    if output is not None and output.suffix not in (".xlsx", ".yaml", ".csv"):
        raise InputError(f"{output}: expected a file name that ends in .xlsx, .yaml or .csv")
    if launch is not None and (not launch.parent.is_dir() or (launch.exists() and not launch.is_dir())):
        raise InputError(
            f"--launch {launch}: expected a folder, or the name of a new one in a folder that is there"
        )
    if output is not None and not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    if "device" in flags:
        from mantile.cli.assignments import assign

        if limits or over or launch is not None or gpus_max is not None or any(parts.values()):
            raise InputError(
                "--device: expected no limits, --gpus, --over, --launch, --scheduler or --keep beside it; "
                "use --objective"
            )
        assign(what, flags, objective, output, as_json)
        return
    from mantile.search.largest import SPEED
    from mantile.search.objective import LARGEST, is_largest
    from mantile.search.question import ALL
    from mantile.search.space import PER_LAYER_TYPE

    searched = (*parts_of(search), *([PER_LAYER_TYPE] if per_layer_type else []))

    def asked_for(what: str, objective: str, host_memory: float | None) -> Question:
        return question_of(
            what,
            dict(flags),
            over or [],
            objective,
            limits,
            gpus_max,
            parts_of(makers),
            searched,
            plans,
            host_memory,
            default_limits,
        )

    if is_largest(objective):
        if any(parts.values()):
            raise InputError(f"--objective {LARGEST}: expected no --scheduler or --keep beside it")
        best = _largest(what, lambda model: asked_for(model, SPEED, host_memory or 0.0), as_json)
        if best is None:
            raise typer.Exit(1)
        _hand_over(best, output, launch, kubernetes)
        return
    if what == ALL:
        raise InputError(f"all: expected a model; --objective {LARGEST} looks at all models")
    question = asked_for(what, objective, host_memory)
    from mantile.cli.output.optimize import print_optimum
    from mantile.cli.output.tables import print_json, working
    from mantile.search.optimize import solve

    with working("looking at plans"), going_on(parts["keep"]):
        found = solve(question, **parts)
        _hand_over(found, output, launch, kubernetes)
    if as_json:
        print_json(found.to_dict())
    else:
        print_optimum(found, top, output)
    if not found.has_winner:
        raise typer.Exit(1)


def parts_of(text: str | None) -> tuple[str, ...]:
    """The parts of a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else ()


def question_of(
    what: str,
    flags: Mapping[str, Any],
    over: list[str],
    objective: str,
    limits: list[Limit],
    gpus_max: int | None,
    makers: tuple[str, ...] = (),
    search: tuple[str, ...] = (),
    plans: int = 12,
    host_memory: float | None = None,
    default_limits: bool = True,
) -> Question:
    """The question of a command line: a model, or the workload of a scenario file, and flags.

    What flags state is fixed, but for lists and auto.
    """
    from mantile.cli.flags import NO_DOCUMENT, document_of, with_overrides
    from mantile.library.scenario import merge_fields
    from mantile.library.scenario_fields import field_name
    from mantile.search.question import USUAL_MOST, ask, workload_of
    from mantile.search.space import CONTEXT

    varied: dict[str, tuple[Any, ...]] = {}
    for text in over:
        name, values = swept_values(text)
        varied[field_name(name)] = values
    data, bundle = document_of(what)
    name = "command line" if data is NO_DOCUMENT else what
    if data is not NO_DOCUMENT and not isinstance(data, dict):
        raise InputError(f"{what}: expected the fields of a scenario")
    from mantile.cli.asked import asked, own_model

    stated = asked(None if data is NO_DOCUMENT else data, flags)
    for field in _LISTED:
        value = stated.get(field)
        if isinstance(value, str) and ("," in value or value in (AUTO, "all")):
            stated.pop(field)
            varied |= {} if value == AUTO else {field: parts_of(value)}
    if stated.get(CONTEXT) == AUTO:
        varied[CONTEXT] = (stated.pop(CONTEXT),)
    given = {"model": own_model(what)} if data is NO_DOCUMENT else workload_of(data, name)
    fields = merge_fields(given, with_overrides(given, stated), name)
    return ask(
        {key: value for key, value in fields.items() if value != AUTO},
        objective,
        limits,
        USUAL_MOST if gpus_max is None else gpus_max,
        varied,
        makers,
        search,
        bundle.model if bundle else None,
        bundle.library if bundle else None,
        name,
        plans,
        host_memory,
        default_limits,
    )


def _largest(what: str, asked_for: Callable[[str], Question], as_json: bool) -> Optimum | None:
    """Print which of several models is the largest that fits; its best plan, None where none fits.

    Args:
        what: all, or models with commas.
    """
    from mantile.cli.flags import NO_DOCUMENT, document_of
    from mantile.cli.output.optimize import print_largest
    from mantile.cli.output.tables import print_json, working
    from mantile.search.largest import find_largest
    from mantile.search.objective import LARGEST
    from mantile.search.question import ALL

    if document_of(what)[0] is not NO_DOCUMENT:
        raise InputError(
            f"{what}: --objective {LARGEST} chooses the model; expected all, or models with commas"
        )
    with working("looking at models"):
        found = find_largest(asked_for, None if what == ALL else parts_of(what))
    if as_json:
        print_json(found.to_dict())
    else:
        print_largest(found)
    return None if found.winner is None else found.winner.best


def _hand_over(found: Optimum, output: Path | None, launch: Path | None, kubernetes: bool) -> None:
    """Write the files that are asked for."""
    if output is not None:
        _write(found, output)
    if launch is not None and found.has_winner:
        _launch(found, launch, kubernetes)


def _write(found: Optimum, path: Path) -> None:
    """The answer as a workbook, its scenario, or a table of all plans."""
    from mantile.library.dump import dump_scenario
    from mantile.library.files import replacing

    if path.suffix == ".xlsx":
        found.to_excel(path)
        return
    if path.suffix == ".csv":
        from mantile.estimates.tables import table_file

        with table_file(path) as append:
            append(found.to_frame())
        return
    with replacing(path) as temporary:
        fields = found.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        temporary.write_text(dump_scenario(fields), encoding="utf-8")


def _launch(found: Optimum, folder: Path, kubernetes: bool) -> None:
    """What starts the winner, in a folder."""
    from mantile.cli.output.launch import write_files
    from mantile.estimates.launch_files import launch_files

    alone = found.scenario.model_copy(update={"variants": (), "decision": None})
    write_files(launch_files(alone, kubernetes), folder)
    typer.echo(f"{folder}: what starts the winner is written", err=True)
