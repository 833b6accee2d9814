"""Commands that ask about an estimate: build, estimate, explain."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app, must_exist
from mantile.cli.commands import RARELY
from mantile.cli.flags import scenario as scenario_of
from mantile.cli.flags import with_flags
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.estimates.estimate import Estimate

EXAMPLE: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}


def estimate_of(what: str, flags: dict[str, Any], way: int | None = None) -> Estimate:
    """The estimate of a model, a scenario file or a bundle, and flags.

    Args:
        way: of the ways out of a plan that cannot be, from 1, the one that is taken.
    """
    made = _estimate_of(what, flags)
    return made if way is None else _taken(made, way)


def _taken(made: Estimate, way: int) -> Estimate:
    """A way out in place of a plan that cannot be.

    Raises:
        InputError: for a way that there is not.
    """
    from mantile.answers.estimate import Answer
    from mantile.estimates.estimate import estimate

    answer = Answer(made)
    if not 1 <= way <= len(answer.ways):
        expected = f"1 to {len(answer.ways)}" if answer.ways else "it left out"
        why = "the plan works" if answer.possible else f"there are {len(answer.ways)} ways out"
        raise InputError(f"--way {way}: {why}; expected {expected}")
    chosen = answer.ways[way - 1]
    model = None if "model" in chosen.fields else made.model
    return estimate(chosen.applied(made.scenario), model, made.library, "command line", made.template)


def _estimate_of(what: str, flags: dict[str, Any]) -> Estimate:
    scenario, name, bundle = scenario_of(what, flags)
    from mantile.estimates.estimate import estimate

    if bundle is None:
        return estimate(scenario, name=name)
    made = estimate(
        scenario, bundle.model, bundle.library, name, None if "template" in flags else bundle.template
    )
    return made if flags else replace(made, made_on=bundle.made_on)


def _estimate_or_example(what: str | None, flags: dict[str, Any]) -> tuple[Estimate, str]:
    """An estimate and what to call it.

    Without a model or scenario, of a small example, changed by the flags.
    """
    if what is not None:
        estimates = estimate_of(what, flags)
        return estimates, estimates.title
    estimates = estimate_of(
        EXAMPLE["model"], {key: value for key, value in EXAMPLE.items() if key != "model"} | flags
    )
    values = estimates.columns[0].values
    return estimates, (
        f"{estimates.title}, {values['input_tokens']} input and {values['output_tokens']} output tokens, "
        f"concurrency {values['concurrency']} (no MODEL given: the built-in example)"
    )


def _exit_on_failed_checks(estimates: Estimate) -> None:
    """Exit status 1 where an error check of any column fails.

    What was asked for has been written or printed.
    """
    if any(estimates.results(column)["checks"]["errors"] for column in range(len(estimates.columns))):
        raise typer.Exit(1)


What = Annotated[
    str,
    typer.Argument(
        metavar="MODEL_OR_SCENARIO",
        help="Model id or id@version, config.json, model folder, hub id, scenario .yaml or bundle; a model "
        "needs --accelerator, --input-tokens, --output-tokens and --concurrency beside it.",
    ),
]
Maybe = Annotated[
    str | None,
    typer.Argument(
        metavar="[MODEL_OR_SCENARIO]", help="As in `mantile estimate`; a small example if left out."
    ),
]
_LARGEST_LOG = 64 * 2**20  # bytes; a start takes a few thousand lines
WayOut = Annotated[
    int | None,
    typer.Option(
        "--way",
        metavar="<n>",
        min=1,
        help="Of a plan that does not fit, way <n> out, as `mantile estimate` numbers them.",
        rich_help_panel=RARELY,
    ),
]
Figure = Annotated[str, typer.Argument(metavar="QUANTITY", help="Id of a figure, such as serving.tpot.")]


@app.command(
    group="Workbooks",
    examples=(
        "mantile build llama-3.3-70b --gpu h100 --gpus 4 --isl 2k --osl 256 --concurrency 16 -o run.xlsx",
    ),
)
@with_flags
def build(
    what: What,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.xlsx", help="The workbook to write.")
    ],
    flags: dict[str, Any],
    since: Annotated[
        Path | None,
        typer.Option(
            "--since",
            metavar="OLD.xlsx",
            help="The workbook before: Log says what differs from it.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    sign: Annotated[
        Path | None,
        typer.Option(
            "--sign",
            metavar="KEY",
            help="Private key, as `mantile config keys new` writes it: sign what is built.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    way: WayOut = None,
    show: Annotated[
        bool,
        typer.Option("--open", help="Open it with the program of this desktop, and say what it is."),
    ] = False,
) -> None:
    """Write the workbook of an estimate."""
    if output.suffix != ".xlsx":
        raise InputError(f"{output}: expected a file name that ends in .xlsx")
    if not output.parent.is_dir():
        raise InputError(f"{output}: there is no folder {output.parent}")
    from mantile.cli.output.estimate import print_built
    from mantile.cli.output.tables import working

    with working(f"building {output.name}"):
        estimates = estimate_of(what, flags, way)
        if since is not None:
            from mantile.roundtrip.since import since_workbook

            must_exist(since)
            estimates = since_workbook(estimates, since)
        from mantile.workbook.write import build_workbook

        build_workbook(estimates, output, sign)
    if show:
        _open(output)
    else:
        print_built(estimates, output)
    _exit_on_failed_checks(estimates)


def _open(workbook: Path) -> None:
    """Open a workbook that was just written, and say what it is."""
    from mantile.cli.workbooks import describe

    failed = typer.launch(str(workbook.resolve()))
    verifies = describe(workbook)
    if failed:
        raise InputError(f"{workbook}: written, but no program here opens it: expected a desktop for --open")
    if not verifies:
        raise typer.Exit(1)


@app.command(
    group="Ask about a deployment",
    examples=(
        "mantile estimate llama-3.3-70b --gpu h100 --gpus 4 --isl 2k --osl 256 --concurrency 16",
        "mantile estimate run.xlsx --concurrency 64",
        "mantile estimate scenario.yaml --plan",
    ),
)
@with_flags
def estimate(
    what: What,
    flags: dict[str, Any],
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Every figure, and the nearest measured run.")
    ] = False,
    plan: Annotated[
        bool,
        typer.Option("--plan", help="Instead which accelerator holds what, and the messages between them."),
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg",
            metavar="FILE.svg",
            help="With --plan also draw it: machines, links with bandwidth, the busiest link, dashed where "
            "inferred.",
            rich_help_panel=RARELY,
        ),
    ] = None,
    way: WayOut = None,
    as_json: AsJson = False,
) -> None:
    """Print the results of an estimate, without a workbook: does it work, what does it do, how sure, and the
    ways out where it does not.
    """
    if svg is not None and not plan:
        raise InputError("--svg: it draws the plan; expected --plan beside it")
    if svg is not None and svg.suffix != ".svg":
        raise InputError(f"--svg {svg}: expected a file name that ends in .svg")
    if svg is not None and not svg.parent.is_dir():
        raise InputError(f"--svg {svg}: there is no folder {svg.parent}")
    if plan and everything:
        raise InputError("--all: it shows every figure; leave --plan out")
    estimates = estimate_of(what, flags, way)
    if plan:
        _plan(estimates, svg, as_json)
        _exit_on_failed_checks(estimates)
        return
    from mantile.answers.estimate import Answer
    from mantile.cli.output.estimate import print_estimate
    from mantile.cli.output.tables import print_json

    answer = Answer(estimates)
    if as_json:
        print_json(estimates.to_dict() | answer.to_dict())
    else:
        print_estimate(answer, everything)
    _exit_on_failed_checks(estimates)
    if answer.refused:
        raise typer.Exit(1)


def _plan(estimates: Estimate, svg: Path | None, as_json: bool) -> None:
    """Print which accelerator holds what, the messages between them, and why a plan is not possible."""
    from mantile.cli.output.tables import print_json, print_plan
    from mantile.estimates import plan as planning

    plans = [planning.plan(estimates, column) for column in range(len(estimates.columns))]
    if svg is not None:
        from mantile.cli.output.topology import svg as drawn

        svg.write_text(drawn(plans, estimates.model.name), encoding="utf-8")
    if as_json:
        base, *variants = plans
        print_json(base | {"variants": variants} if variants else base)
    else:
        for placement, column in zip(plans, estimates.columns, strict=True):
            print_plan(placement, estimates.title, column.values["framework"] == "exo")


@app.command(
    group="Ask about a deployment",
    examples=(
        "mantile explain ttft",
        "mantile explain decode.time scenario.yaml",
        "mantile explain tpot --depth 2",
    ),
)
@with_flags
def explain(
    quantity: Figure,
    flags: dict[str, Any],
    what: Maybe = None,
    depth: Annotated[
        int | None,
        typer.Option(min=1, help="Instead the figures that it follows from, as a tree of so many levels."),
    ] = None,
    dependents: Annotated[
        bool,
        typer.Option(
            "--dependents", help="Instead the tree of what follows from it; 3 levels unless --depth."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Say what a figure is, how it is worked out, from what and why."""
    estimates, title = _estimate_or_example(what, flags)
    from mantile.cli.output.tables import print_explanation, print_json, print_trace
    from mantile.estimates import explain as explanation

    figure = _figure_id(estimates, quantity)
    if depth is None and not dependents:
        explained = explanation.explain(estimates, figure)
        print_json(explained.to_dict()) if as_json else print_explanation(explained, title)
        return
    root = explanation.trace(estimates, figure, depth=depth or 3, forward=dependents)
    print_json(root.to_dict()) if as_json else print_trace(root, title)


def _figure_id(estimates: Estimate, name: str) -> str:
    """The id of a figure by what people call it: ttft, tpot, a metric's key, or the id itself."""
    from mantile.equations.metrics import METRICS

    figures = estimates.equations.figures
    if name in figures:
        return name
    plain = name.lower().replace("-", "_")
    for metric in METRICS:
        called = (metric.attribute, metric.key, metric.column, metric.defined_name, metric.label.lower())
        if (plain in called or name.lower() in called) and metric.id in figures:
            return metric.id
    return name


@app.command(
    group="Ask about a deployment",
    examples=("mantile why server.log --gpu rtx-4090", "vllm serve MODEL 2>&1 | mantile why - --gpu h100"),
)
@with_flags
def why(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Start-up log of a server; - reads stdin.")],
    flags: dict[str, Any],
    as_json: AsJson = False,
) -> None:
    """Say why a server did not start, from its log: what it took, what was expected, and what helps."""
    from mantile.answers.start_log import Diagnosis
    from mantile.cli.asked import asked
    from mantile.cli.output.tables import print_json
    from mantile.cli.output.why_log import print_diagnosis
    from mantile.library.errors import InputError
    from mantile.measured.start_logs import log_text, read_start_log

    try:
        with sys.stdin.buffer if log == "-" else Path(log).open("rb") as file:
            content = file.read(_LARGEST_LOG + 1)
    except OSError as error:
        raise InputError(f"{log}: {error.strerror or error}") from error
    name = "log" if log == "-" else log
    if len(content) > _LARGEST_LOG:
        most = f"{_LARGEST_LOG / 2**20:g} MiB"
        raise InputError(f"{name}: expected at most {most}, such as: head -c 20M LOG | mantile why -")
    text = log_text(content)
    found = Diagnosis(read_start_log(text, name), asked({}, flags), name)
    if as_json:
        print_json(found.to_dict())
    else:
        print_diagnosis(found)
