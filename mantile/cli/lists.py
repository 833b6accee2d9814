"""Commands that list what there is: by kind, by words, and jobs with the command that does each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import typer

from mantile.cli.application import AsJson, app
from mantile.library.errors import InputError, near

_KINDS = {
    "accelerators": "Chips, with what each is called",
    "systems": "Systems, with the accelerators that they have",
    "models": "The models of the library",
    "frameworks": "Serving frameworks, with the chips that they run on",
    "formats": "Data types, with bits and what they are for",
    "metrics": "Metrics, with what each means",
    "quantities": "Figures of an estimate, with unit",
    "checks": "Checks of a plan, with what each means",
    "prices": "Bases of a price",
    "presets": "What engines choose by default, each with its source",
    "evidence": "Degrees of evidence",
    "releases": "Releases of engines, with their days",
}
_MEANING = 30  # columns beside an id for what it means
Words = Annotated[list[str] | None, typer.Argument(metavar="[WORDS]", help="Only what has all these words.")]
lists = app.group(
    "list",
    "List what there is of a kind, each with what it means; with other words all that has them.",
    "Library and set-up",
    otherwise="all",
)


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


def has_words(texts: Iterable[str], words: Sequence[str] | None) -> bool:
    """Whether texts have all words, whatever joins their parts.

    >>> has_words(["h100-sxm", "H100 SXM"], ["h100sxm"])
    True
    """

    def plain(text: str) -> str:
        return "".join(character for character in text.lower() if character.isalnum())

    text = plain(" ".join(texts))
    return all(plain(word) in text for word in words or ())


def nothing_has(words: Sequence[str] | None, kind: str) -> InputError:
    """That nothing of a kind has words."""
    return InputError(f"{' '.join(words or ())!r:.60}: nothing among {kind}; `mantile list {kind}` has all")


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


def _list_of(kind: str) -> None:
    """The command that lists a kind."""

    @lists.command(kind, examples=(f"mantile list {kind}",), help=f"{_KINDS[kind]}.")
    def _list(words: Words = None, as_json: AsJson = False) -> None:
        found = [row for row in rows_of(kind) if has_words(row, words)]
        if not found:
            raise nothing_has(words, kind)
        from mantile.cli.output.tables import new_table, open_console, print_json

        if as_json:
            print_json({kind: [{"id": one, "meaning": said} for one, said in found]})
            return
        if _is_narrow(found):
            _print_in_pairs(found)
            return
        table = new_table(kind, f"{len(found):,} of them")
        for row in found:
            table.add_row(*row)
        open_console().print(table)


@lists.command("all", examples=('mantile list "all-reduce"', "mantile list all models"))
def find(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="Words to look for, in any order.")],
    as_json: AsJson = False,
) -> None:
    """All that is named, whatever its kind, that has these words; the word all may be left out."""
    found = [(kind, *row) for kind in _KINDS for row in rows_of(kind) if has_words(row, words)]
    if not found:
        raise InputError(
            f"{' '.join(words)!r:.60}: nothing has these words; try fewer of them, "
            f"or `mantile list` with a kind; {near(words[0], [*_KINDS, 'hardware', 'profiles', 'jobs'])}"
        )
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


for _kind in _KINDS:
    if _kind != "models":  # has more to show
        _list_of(_kind)


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
        "mantile import 'vllm serve Qwen/Qwen3-32B -tp 2' --gpu h100-sxm --isl 1k --osl "
        "128 --concurrency 16 -o chat.yaml",
    ),
    (
        "get the launch command",
        "mantile launch llama-3.3-70b --gpu h100-sxm --gpus 4 --isl 2k --osl 256 --concurrency 48",
    ),
    ("know where a number comes from", "mantile explain ttft"),
    ("add a new chip", "mantile list hardware add mychip"),
    ("compare with measured runs", "mantile reconcile runs.csv"),
    ("start a scenario file", "mantile config scenario chat.yaml"),
    ("set my defaults", "mantile config"),
)
"""What people ask how to do, and the command that does it."""
_ASKING = {"how", "do", "does", "can", "could", "should", "i", "we", "one", "a", "an", "the", "to", "my"}
"""Words of a question that say nothing of the job."""


@lists.command("jobs", examples=("mantile list jobs", "mantile list jobs cheapest"))
def jobs(words: Words = None, as_json: AsJson = False) -> None:
    """Answer "how do I ...": usual jobs, each with the command that does it."""
    from mantile.cli.output import look
    from mantile.cli.output.help import broken
    from mantile.cli.output.tables import new_table, open_console, print_json

    asked = [word for word in " ".join(words or ()).rstrip("?").split() if word.lower() not in _ASKING]
    found = [row for row in GUIDE if has_words(row, asked)]
    if not found:
        raise nothing_has(words, "jobs")
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
