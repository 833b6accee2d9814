"""The command that asks for every combination of values: sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.asked import swept as axes_of
from mantile.cli.commands import RARELY
from mantile.cli.estimates import What
from mantile.cli.flags import document_of, swept_values, with_flags
from mantile.cli.flags import scenario as scenario_of
from mantile.cli.in_parts import Workers, going_on
from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.cli.output.charts import Chart
    from mantile.estimates.partitions import Partitions
    from mantile.estimates.sweep import Digest, Grid, Grids
    from mantile.library.scenario import Scenario
    from mantile.workbook.bundle import Bundle


@app.command(
    group="Choose a deployment",
    examples=(
        "mantile sweep llama-3.3-70b --gpu h100 --isl 2k --osl 256 --over tp=1,2,4,8 --over "
        'concurrency=2^0..2^8 --where "ttft_p95_s < 2" --sort usd_per_million_tokens_output --top 10',
    ),
)
@with_flags
def sweep(
    what: What,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES",
            help="A field or figure and its values: tp=1,2,4; 1..8 is every whole number, "
            "1..8:2 each second, "
            "2^0..2^9 the powers of two, 0.6:0.9:0.05 steps; accelerator=h100-sxm,b200-sxm or "
            "all; model and profile too; repeatable, the last runs fastest, models and profiles slowest.",
        ),
    ],
    flags: dict[str, Any],
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The table of all points, .csv or .parquet, or a chart of them, .png, .svg or .html; "
            "repeatable. With --scheduler local or tcp://HOST:PORT a folder of partitions; the same command "
            "goes on with what a stopped run left.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="<front|histogram|heatmap>",
            help="The chart: the points that no other beats, how a figure is spread, or its best over the "
            "first two parameters.  [default: front]",
            rich_help_panel=RARELY,
        ),
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="COLUMN",
            help="What a histogram or heat map shows.  [default: output_tokens_per_s_per_accelerator]",
            rich_help_panel=RARELY,
        ),
    ] = None,
    feasible: Annotated[
        bool, typer.Option("--feasible", help="Keep only points that fit.", rich_help_panel=RARELY)
    ] = False,
    condition: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Keep points that keep it: ttft_p95_s < 2 and usd_per_hour < 50.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="COLUMN",
            help="Best first by this figure, lowest where lower is better; -COLUMN turns it around.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option("--top", min=1, max=1000, help="Show so many points.", rich_help_panel=RARELY),
    ] = None,
    workers: Workers = None,
    partition_points: Annotated[
        int | None,
        typer.Option(
            min=1, help="Points of a partition, at most.  [default: 1048576]", rich_help_panel=RARELY
        ),
    ] = None,
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
    values, flags = _beside_cpu(axes_of(values, lambda: document_of(what)[0], flags), flags)
    from mantile.cli.output.sweep import ROWS, json_rows, print_points, print_sweep
    from mantile.cli.output.tables import print_json
    from mantile.estimates.partitions import POINTS, partitions
    from mantile.estimates.scheduled import taken
    from mantile.estimates.sweep import grids
    from mantile.library.scenario_fields import field_name

    written = output or []
    chart, files, charts = _outputs(written, kind, figure, [*map(field_name, values)])
    if (condition or sort or top or chart) and is_scheduled(flags):
        raise InputError(
            "--where, --sort, --top and charts: not with --scheduler; read its partitions instead"
        )
    scheduler = taken(flags)
    if scheduler is None and (workers or partition_points):
        raise InputError(f"{'--workers' if workers else '--partition-points'}: only with --scheduler")
    if scheduler is not None:
        _require_folder(scheduler, workers, written)
    scenario, name, bundle = _scenario(what, values, flags)
    title = scenario.title or (f"{len(values['model'])} models" if "model" in values else scenario.model)
    model, library = (bundle.model, bundle.library) if bundle else (None, None)
    if scheduler is not None:
        asked = partitions(scenario, values, model, library, name, feasible, partition_points or POINTS, ROWS)
        digest = _in_partitions(asked, written[0], scheduler, workers)
    elif condition or sort or top:
        table, total, fits = _chosen_points(
            grids(scenario, values, model, library, name), condition, sort, top, files
        )
        _draw(chart, table, title, charts)
        if as_json:
            print_json({"points": total, "feasible": fits, "chosen": len(table), "rows": json_rows(table)})
        else:
            print_points(
                table,
                total,
                fits,
                [*map(field_name, values)],
                title,
                written,
                sort,
            )
        if not len(table):
            raise typer.Exit(1)
        return
    else:
        digest = _in_tables(grids(scenario, values, model, library, name), files, feasible, ROWS, chart)
        _draw(chart, None, title, charts)
    if as_json:
        print_json(digest.to_dict() | {"files": [str(path) for path in output or ()]})
    else:
        print_sweep(digest, [*map(field_name, values)], title, output or ())
    if not digest.feasible:
        raise typer.Exit(1)


def _outputs(
    written: Sequence[Path], kind: str | None, figure: str | None, parameters: Sequence[str]
) -> tuple[Chart | None, list[Path], list[Path]]:
    """The chart that was asked for, files of tables, and files of charts."""
    from mantile.cli.output.charts import ENDINGS, chart_of

    charts = [path for path in written if path.suffix.lower() in ENDINGS]
    if not charts and (kind or figure):
        raise InputError(f"--{'kind' if kind else 'figure'}: only with a chart: -o pareto.png, .svg or .html")
    chart = chart_of(kind, figure, parameters, charts) if charts else None
    return chart, [path for path in written if path not in charts], charts


def _draw(chart: Chart | None, table: Any, title: str, files: Sequence[Path]) -> None:
    """Write the charts, of a table where it was chosen, else of all that passed by."""
    if chart is None:
        return
    from mantile.cli.output.charts import write_chart
    from mantile.cli.output.tables import working

    if table is not None:
        chart.add(table)
    for path in files:
        with working(f"drawing {path.name}"):
            write_chart(chart, title, path)


def is_scheduled(flags: Mapping[str, Any]) -> bool:
    """Whether the points are worked out in partitions."""
    from mantile.estimates.scheduled import is_address

    return is_address(flags.get("scheduler"))


def _chosen_points(
    points: Grid | Grids, condition: str | None, sort: str | None, top: int | None, files: Sequence[Path]
) -> tuple[Any, int, int]:
    """The points that fit and keep a condition, in order; how many there are in all, and how many fit."""
    import pandas as pd

    from mantile.cli.conditions import column, where
    from mantile.cli.output.runs import counting
    from mantile.equations.metrics import METRICS
    from mantile.estimates.sweep import possible
    from mantile.estimates.tables import table_file

    kept, total, fits = [], 0, 0
    with counting("sweeping", len(points)) as step:
        for table in points.tables():
            total += len(table)
            step(total)
            table = table[possible(table)]
            fits += len(table)
            kept.append(table[where(condition, table)] if condition else table)
    found = pd.concat(kept, ignore_index=True) if len(kept) > 1 else kept[0]
    if sort:
        turned, name = sort.startswith("-"), column(sort.removeprefix("-"), found.columns, "--sort")
        higher = {metric.column for metric in METRICS if metric.better == "higher"}
        found = found.sort_values(
            name, ascending=(name not in higher) ^ turned, kind="stable", na_position="last"
        )
    found = found.head(top) if top else found
    for path in files:
        with table_file(path) as append:
            append(found)
    return found, total, fits


_OF_CPU = {"ngl": "layers", "n_cpu_moe": "experts_away"}
"""Flags of `estimate` with a CPU beside the accelerator, and the fields of that device which they are."""
_BESIDE_CPU = {
    "cpu": "accelerator",
    "accelerator": "device2_accelerator",
    "system": "device2_system",
    "tp": "device2_count",
}
"""Beside a CPU, which is the first device, these are fields of others than without."""


def _beside_cpu(
    values: Mapping[str, tuple[Any, ...]], flags: Mapping[str, Any]
) -> tuple[dict[str, tuple[Any, ...]], dict[str, Any]]:
    """What --over ngl and others are where a CPU is the first device: fields of it or of the second."""
    from mantile.library.scenario_fields import field_name

    if flags.get("cpu"):
        twice = [key for key, count in Counter(map(field_name, values)).items() if count > 1]
        if twice:
            raise InputError(f"--over: parameter {twice[0]}: given twice")
        values = {_BESIDE_CPU.get(field_name(key), key): of for key, of in values.items()}
    elif "cpu" in values:
        raise InputError("--over cpu: expected --cpu beside it, such as the first of them")
    named = {name: key for key in values if (name := key.replace("-", "_")) in _OF_CPU}
    if named and not flags.get("cpu"):
        raise InputError(f"--over {next(iter(named.values()))}: expected --cpu beside it")
    fields = {key: f"device2_{_OF_CPU[name]}" for name, key in named.items()}
    at_first = {name: values[key][0] for name, key in named.items()}
    return {fields.get(key, key): of for key, of in values.items()}, {**flags, **at_first}


def _scenario(
    what: str, values: Mapping[str, tuple[Any, ...]], flags: Mapping[str, Any]
) -> tuple[Scenario, str, Bundle | None]:
    """The scenario of a sweep; fields that it must state may be swept."""
    from mantile.library.scenario_fields import REQUIRED, field_name

    first = {field_name(key): swept[0] for key, swept in values.items()}
    return scenario_of(
        what,
        {key: first[key] for key in (*REQUIRED, "request_rate", "sessions") if key in first} | dict(flags),
    )


def _in_tables(
    points: Grid | Grids, files: Sequence[Path], feasible: bool, shown: int, chart: Chart | None
) -> Digest:
    """Work all points out here, and write them to files; all are counted, also those that do not fit."""
    from contextlib import ExitStack

    from mantile.cli.output.runs import counting
    from mantile.estimates.sweep import Digest, possible
    from mantile.estimates.tables import table_file

    with ExitStack() as stack:
        appends = [stack.enter_context(table_file(path)) for path in files]
        digest = Digest(shown, feasible)
        with counting("sweeping", len(points)) as step:
            for table in points.tables():
                digest.add(table)
                step(digest.points)
                if chart is not None:
                    chart.add(table)
                kept = table[possible(table)] if feasible else table
                for append in appends:
                    append(kept)
    return digest


def _require_folder(scheduler: str, workers: int | None, output: Sequence[Path]) -> None:
    """Refuse a sweep in partitions that cannot be, before anything is worked out."""
    from mantile.estimates.scheduled import require_scheduler

    require_scheduler(scheduler, workers)
    if len(output) != 1:
        raise InputError("--scheduler: expected one folder for the partitions: -o FOLDER")


def _in_partitions(asked: Partitions, path: Path, scheduler: str, workers: int | None) -> Digest:
    """Work all points out on the workers of a scheduler, into a folder."""
    from mantile.cli.output.runs import counting
    from mantile.estimates.partitions import PartitionFolder
    from mantile.estimates.scheduled import sweep_into

    folder = PartitionFolder(path, asked)
    with going_on(path), counting("sweeping", len(asked.grid)) as step:
        return sweep_into(folder, scheduler, workers, step)
