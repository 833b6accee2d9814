"""Commands for who looks for a word: list, find, guide; and to set up: init, config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson, app
from mantile.cli.completion import beginning
from mantile.library.errors import InputError, near

_KINDS = (
    "accelerators",
    "systems",
    "models",
    "frameworks",
    "formats",
    "metrics",
    "quantities",
    "checks",
    "prices",
    "presets",
    "evidence",
    "releases",
)
_LIBRARY = "Library and set-up"
_MEANING = 30  # columns beside an id for what it means
Words = Annotated[list[str] | None, typer.Argument(metavar="[WORDS]", help="Only what has all these words.")]


def rows_of(kind: str) -> Iterator[tuple[str, str]]:
    """Ids of a kind, each with what it is."""
    from mantile.library.profiles import load_library

    library = load_library()
    if kind == "accelerators":
        yield from ((one.id, f"{one.name}, {one.vendor}") for one in library.accelerators)
    elif kind == "systems":
        chips = {chip.id: chip.name for chip in library.accelerators}
        for system in library.systems:
            usual = ", the usual one" if library.usual_system(system.accelerator).id == system.id else ""
            yield system.id, f"{system.name}: {chips[system.accelerator]} ({system.accelerator}){usual}"
    elif kind == "models":
        from mantile.library.models import known_models

        yield from known_models().hub_ids.items()
    elif kind == "frameworks":
        for framework in library.frameworks:
            former = "; former release" if framework.former else ""
            yield framework.id, f"{framework.name} on chips of {', '.join(framework.vendors)}{former}"
    elif kind == "formats":
        for form in library.datatypes:
            called = f"; also {', '.join(form.aliases)}" if form.aliases else ""
            yield form.id, f"{form.name}; {form.bits:g} bits; for {', '.join(form.roles)}{called}"
    elif kind == "metrics":
        from mantile.equations.metrics import METRICS

        yield from ((metric.key, f"{metric.label}: {metric.definition}") for metric in METRICS)
    elif kind == "checks":
        from mantile.equations.reasons import REASONS

        yield from ((one.code, f"{one.group}: {one.meaning}") for one in REASONS.values())
    elif kind == "prices":
        yield "cloud", "what a cloud asks on demand, per accelerator and hour"
        yield "rental", "per accelerator and hour on a contract of three years"
        yield "owned", "purchase, upkeep and electricity over the years of use"
    elif kind == "presets":
        from mantile.cli.presets import PRESETS

        for name, choices in PRESETS.items():
            for field, one in choices.items():
                yield f"{name}.{field}", f"{one.value}; {one.status}, {one.date}: {one.source}"
    elif kind == "releases":
        from mantile.library.releases import known_releases

        for engine, releases in known_releases().items():
            for version, (day, source) in releases.items():
                yield f"{engine} {version}", f"{day}; {source}"
    elif kind == "evidence":
        yield "3", "serving runs of this chip, framework, kind of model and format were measured"
        yield "2", "serving runs of the framework were measured on other chips"
        yield "1", "no serving runs: datasheet and factors of others"
    else:
        from mantile.cli.estimates import EXAMPLE, estimate_of

        made = estimate_of(EXAMPLE["model"], {key: value for key, value in EXAMPLE.items() if key != "model"})
        for identifier, figure in made.equations.figures.items():
            yield identifier, f"{figure.label}{f', {figure.unit}' if figure.unit != '1' else ''}"


def _having(rows: Iterator[tuple[str, str]], words: list[str]) -> list[tuple[str, str]]:
    """Rows with all words, whatever joins their parts."""

    def plain(text: str) -> str:
        return "".join(character for character in text.lower() if character.isalnum())

    wanted = [plain(word) for word in words]
    return [row for row in rows if all(word in plain(" ".join(row)) for word in wanted)]


def _is_narrow(rows: list[tuple[str, str]]) -> bool:
    """Whether the terminal has no room for what ids mean beside them."""
    from mantile.cli.output import look

    return look.now().form == "table" and max(len(one) for one, _ in rows) + _MEANING > look.width()


def _print_in_pairs(rows: list[tuple[str, str]]) -> None:
    """Each id in a line of its own, and below it what it means."""
    from textwrap import fill

    from mantile.cli.output import look

    for one, said in rows:
        typer.echo(one)
        indent = "    "
        typer.echo(fill(said, look.width(), initial_indent=indent, subsequent_indent=indent))


@app.command("list", group=_LIBRARY, examples=("mantile list systems", "mantile list formats 4 bit"))
def list_(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"One of {', '.join(_KINDS)}.",
            autocompletion=lambda incomplete: beginning(_KINDS, incomplete),
        ),
    ],
    words: Words = None,
    as_json: AsJson = False,
) -> None:
    """List what there is of a kind, each with what it means; with words only what has them."""
    if kind not in _KINDS:
        raise InputError(f"{kind!r:.40}: there is no such list; {near(kind, _KINDS)}")
    found = _having(rows_of(kind), words or [])
    if not found:
        raise InputError(
            f"{' '.join(words or ())!r:.60}: nothing among {kind}; `mantile list {kind}` has all"
        )
    from mantile.cli.output.tables import new_table, open_console, print_json

    if as_json:
        print_json({kind: [{"id": one, "meaning": said} for one, said in found]})
        return
    heads = kind, f"{len(found):,} of them"
    if _is_narrow(found):
        _print_in_pairs(found)
        return
    table = new_table(*heads)
    for row in found:
        table.add_row(*row)
    open_console().print(table)


@app.command(group=_LIBRARY, examples=('mantile find "all-reduce"',))
def find(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words to look for, in any order.")],
    as_json: AsJson = False,
) -> None:
    """Find words among all that is named: chips, formats, metrics, figures, checks."""
    found = [(kind, *row) for kind in _KINDS for row in _having(rows_of(kind), words)]
    if not found:
        raise InputError(f"{' '.join(words)!r:.60}: nothing has these words; try fewer of them")
    from mantile.cli.output.tables import new_table, number, open_console, print_json

    if as_json:
        print_json({"found": [{"kind": kind, "id": one, "meaning": said} for kind, one, said in found]})
        return
    out = open_console()
    shown = [(one, f"{said} ({kind})") for kind, one, said in found[:40]]
    if _is_narrow(shown):
        _print_in_pairs(shown)
    else:
        table = new_table("id", "meaning", "of", drop=(2,))
        for kind, one, said in found[:40]:
            table.add_row(one, said, kind)
        out.print(table)
    if len(found) > 40:
        out.print(f"{number(len(found) - 40)} more; further words narrow it, --json has all")


GUIDE: tuple[tuple[str, str], ...] = (
    (
        "see what one deployment reaches",
        "mantile estimate llama-3.3-70b --gpu h100-sxm --gpus 4 --isl 2k --osl 256 --concurrency 16",
    ),
    (
        "find the cheapest plan under limits",
        "mantile optimize llama-3.3-70b --concurrency 200 --isl 2k --osl 300 --ttft-p95-max 2 "
        "--tpot-max 0.04 --gpu h100-sxm,b200-sxm",
    ),
    (
        "size for a number of users",
        "mantile size gpt-oss-120b --users 8 --isl 4k --osl 500 --interactivity-min 20 --gpu "
        "rtx-5090,m3-ultra",
    ),
    ("see what runs on my machine", "mantile fits rtx-4090:2"),
    (
        "try many values",
        "mantile sweep llama-3.3-70b --gpu h100-sxm --isl 2k --osl 256 --over tp=1,2,4,8 --over "
        'concurrency=2^0..2^8 --where "ttft_p95_s < 2" --sort usd_per_million_tokens_output --top 10',
    ),
    (
        "get an Excel workbook",
        "mantile build llama-3.3-70b --gpu h100-sxm --gpus 4 --isl 2k --osl 256 --concurrency 16 -o run.xlsx",
    ),
    (
        "read a launch line",
        "mantile from-command 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100-sxm --isl 1k --osl "
        "128 --concurrency 16 -o chat.yaml",
    ),
    (
        "get the launch command",
        "mantile launch llama-3.3-70b --gpu h100-sxm --gpus 4 --isl 2k --osl 256 --concurrency 48",
    ),
    ("know where a number comes from", "mantile explain ttft"),
    ("add a new chip", "mantile hardware add mychip"),
    ("compare with measured runs", "mantile reconcile runs.csv"),
    ("start a scenario file", "mantile init chat.yaml"),
    ("set my defaults", "mantile config"),
)
"""What people ask how to do, and the command that does it."""
_ASKING = {"how", "do", "does", "can", "could", "should", "i", "we", "one", "a", "an", "the", "to", "my"}
"""Words of a question that say nothing of the job."""


@app.command(group=_LIBRARY, examples=("mantile guide", "mantile guide cheapest"))
def guide(words: Words = None, as_json: AsJson = False) -> None:
    """Answer "how do I ...": commands for usual jobs."""
    from mantile.cli.output import look
    from mantile.cli.output.help import broken
    from mantile.cli.output.tables import new_table, open_console, print_json

    asked = [word for word in " ".join(words or ()).rstrip("?").split() if word.lower() not in _ASKING]
    found = _having(iter(GUIDE), asked)
    if not found:
        raise InputError(
            f"{' '.join(words or ())!r:.60}: no job here has these words; `mantile guide` has all"
        )
    if as_json:
        print_json({"jobs": [{"job": job, "command": line} for job, line in found]})
        return
    if look.now().form != "table":
        table = new_table("how do I", "command")
        for row in found:
            table.add_row(*row)
        open_console().print(table)
        return
    for job, line in found:
        typer.echo("\n".join((f"How do I {job}?", *(f"  {part}" for part in broken(line, look.width())), "")))


@app.command(group=_LIBRARY, examples=("mantile init chat.yaml --model llama-3.3-70b --gpu h100-sxm",))
def init(
    path: Annotated[Path, typer.Argument(metavar="FILE.yaml", help="The scenario to write; not there yet.")],
    model: Annotated[
        str, typer.Option("--model", metavar="MODEL", help="The model in it.")
    ] = "llama-3.3-70b",
    gpu: Annotated[
        str, typer.Option("--accelerator", "--gpu", metavar="<chip>", help="The accelerator in it.")
    ] = "h100-sxm",
) -> None:
    """Write a scenario with a comment on each field that most people set."""
    from mantile.library.files import replacing
    from mantile.library.models import load_model
    from mantile.library.profiles import load_library
    from mantile.library.scenario_fields import SCENARIO_FIELDS

    if path.suffix.lower() not in (".yaml", ".yml"):
        raise InputError(f"{path}: expected a file name that ends in .yaml")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    load_model(model)
    stated: dict[str, Any] = {
        "accelerator": load_library().accelerator(gpu).id,
        "tp": 4,
        "input_tokens": 2048,
        "output_tokens": 256,
        "concurrency": 16,
    }
    lines = [f"# A scenario: mantile estimate {path.name}", f"model: {model}"]
    for name, declared in SCENARIO_FIELDS.items():
        if not declared.common:
            continue
        choices = f" ({', '.join(declared.choices)})" if declared.choices else ""
        lines.append(f"\n# {declared.label}: {declared.meaning}{choices}")
        default = declared.default if declared.default is not None else ""
        lines.append(f"{name}: {stated[name]}" if name in stated else f"# {name}: {default}".rstrip())
    with replacing(path, overwrite=False) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    typer.echo(f"{path}: written; change it, then: mantile estimate {path}")


@app.command(group=_LIBRARY, examples=("mantile config", "mantile config --init"))
def config(
    write: Annotated[bool, typer.Option("--init", help="Write the file of settings, commented.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show your settings: the file, defaults of fields, folders of your own; MANTILE_ variables count too."""
    from mantile.cli.config import TEMPLATE, config_path, library_folders, wanted
    from mantile.cli.output import look
    from mantile.cli.output.tables import new_table, open_console, print_json

    path = config_path()
    if write:
        from mantile.library.files import replacing

        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, overwrite=False) as temporary:
            temporary.write_text(TEMPLATE, encoding="utf-8")
        typer.echo(f"{path}: written")
        return
    folders = [str(folder) for folder in library_folders()]
    held = wanted()
    if as_json:
        print_json(
            {
                "file": str(path),
                "there": path.is_file(),
                "library": folders,
                "defaults": {name: value for name, (value, _) in held.items()},
            }
        )
        return
    out = open_console()
    out.print(f"{path}{'' if path.is_file() else ' (not there; --init writes it)'}")
    table = new_table("default", "value", "from")
    for name, (value, place) in held.items():
        table.add_row(name, str(value), place)
    if held or look.now().form == "csv":
        out.print(table)
    for folder in folders:
        out.print(f"library folder {folder}")
