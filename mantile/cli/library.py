"""Commands on the library: list models, list hardware, list profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mantile.cli.application import AsJson
from mantile.cli.commands import App
from mantile.cli.lists import Words, has_words, lists, nothing_has
from mantile.library.errors import InputError


def _stated(help: str, unit: str) -> Any:
    return typer.Option(metavar=f"<{unit}>", help=help, rich_help_panel="From the spec sheet, with --like")


def _library(kind: str, text: str, entry: str, example: str) -> App:
    """The commands list and show of one part of the library."""
    group = lists.group(kind, f"{text}.", otherwise="list", asks=False)

    @group.command(
        "list",
        examples=(f"mantile list {kind}", f"mantile list {kind} {example.partition('-')[0]} --json"),
        help=f"List {text[0].lower()}{text[1:]}; the word list may be left out.",
    )
    def _list(words: Words = None, as_json: AsJson = False) -> None:
        from mantile.cli.output.tables import print_json, print_rows
        from mantile.estimates import catalogue

        rows = [row for row in catalogue.listing(kind) if has_words(map(str, row.values()), words)]
        if not rows:
            raise nothing_has(words, kind)
        if as_json and kind == "models":
            rows = [row | {"meaning": row["hub_id"]} for row in rows]
        if as_json:
            print_json({kind: rows})
        else:
            print_rows(rows)

    @group.command(
        "show",
        examples=(f"mantile list {kind} show {example}",),
        help=f"Show one {entry}, every figure with its source.",
    )
    def _show(identifier: Annotated[str, typer.Argument(metavar="ID")], as_json: AsJson = False) -> None:
        from mantile.cli.output.tables import print_entry, print_json
        from mantile.estimates import catalogue

        shown = catalogue.entry(kind, identifier)
        if as_json:
            print_json(shown)
        else:
            print_entry(shown)

    return group


_models = _library("models", "The models of the library", "model", "llama-3.3-70b")
_hardware = _library(
    "hardware", "Accelerators and the systems they come in", "accelerator or system", "h100-sxm"
)
_profiles = _library(
    "profiles", "Efficiency profiles: how much of the hardware is reached", "efficiency profile", "hopper"
)


_Other = Annotated[
    str | None,
    typer.Argument(metavar="B", help="What to compare it with.  [default: the current version of A]"),
]
_Version = Annotated[str | None, typer.Option("--version", metavar="V", help="Take A in this version.")]


@_models.command("diff", examples=("mantile list models diff llama-3.1-70b llama-3.3-70b",))
def _diff(
    left: Annotated[
        str, typer.Argument(metavar="A", help="Model id, id@version, config.json, model folder or hub id.")
    ],
    right: _Other = None,
    version: _Version = None,
    as_json: AsJson = False,
) -> None:
    """Compare two models, or two versions of one, field by field: facts, layers, counts and tensors."""
    _print_diff("models", *_sides(left, right, version), as_json)


@_models.command("add", examples=("mantile list models add my-model/config.json -o models",))
def _add_model(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="config.json, model folder or hub id.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where ID.yaml goes.  [default: models if there is one, else here]",
        ),
    ] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Let code that lies beside the config.json run.")
    ] = False,
) -> None:
    """Write ID.yaml, all that is known of a model: afterwards neither its config, nor the network, nor the
    class that it was read from is needed.
    """
    from datetime import date

    from mantile.library.dump import add_model

    usual = Path("models")
    path = add_model(name, folder or (usual if usual.is_dir() else Path()), date.today(), trust_remote_code)
    typer.echo(f"{path}: written; give it as the model: mantile estimate {path} ...")


@_models.command("ir", examples=("mantile list models ir llama-3.3-70b",))
def ir(
    model: Annotated[
        str,
        typer.Argument(metavar="MODEL", help="Model id or id@version, config.json, model folder or hub id."),
    ],
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    tokens: Annotated[
        int | None, typer.Option(min=1, max=10_000_000, help="Count the FLOPs of a prompt of this length.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a model: parameters, KV-cache bytes, modules and tensors."""
    from mantile.cli.output.tables import print_description, print_json
    from mantile.ir.build import build_ir
    from mantile.ir.counts import describe
    from mantile.library.models import load_model

    description = describe(build_ir(load_model(model)), tokens, tensors)
    if as_json:
        print_json(description)
    else:
        print_description(description)


@_hardware.command("diff", examples=("mantile list hardware diff h100-sxm h200-sxm",))
def _hardware_diff(
    left: Annotated[str, typer.Argument(metavar="A", help="Accelerator or system, by id or id@version.")],
    right: _Other = None,
    version: _Version = None,
    as_json: AsJson = False,
) -> None:
    """Compare two accelerators, with system and prices, or two systems, or two versions of one, figure by
    figure.
    """
    _print_diff("hardware", *_sides(left, right, version), as_json)


@_profiles.command("diff", examples=("mantile list profiles diff hopper calibrated/hopper@2.yaml",))
def _profiles_diff(
    left: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Efficiency profile, by id or id@version, or its file, or that of a correction, or shipped.",
        ),
    ],
    right: _Other = None,
    version: _Version = None,
    as_json: AsJson = False,
) -> None:
    """Compare two efficiency profiles, or two versions of one, such as files that calibrate wrote, factor by
    factor; or two corrections, step by step.
    """
    _print_diff("profiles", *_sides(left, right, version), as_json)


@_hardware.command(
    "add",
    examples=(
        "mantile list hardware add mychip --like b200-sxm --fp8 2000 --memory 192 --bandwidth 8000 "
        "--link 900 --tdp 1000 --price 30000",
    ),
)
def _add(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Id of the accelerator, such as my-chip.")],
    folder: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Where ID.yaml lies.  [default: profiles/accelerators if there is one, else here]",
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing, only say what the file lacks.")
    ] = False,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="<chip>",
            help="The chip that is like it: what is not stated is as there, marked.",
        ),
    ] = None,
    bf16: Annotated[float | None, _stated("Peak of bf16, dense.", "TFLOP/s")] = None,
    fp8: Annotated[float | None, _stated("Peak of fp8, dense.", "TFLOP/s")] = None,
    fp4: Annotated[float | None, _stated("Peak of fp4, dense.", "TFLOP/s")] = None,
    memory: Annotated[float | None, _stated("Memory.", "GiB")] = None,
    bandwidth: Annotated[float | None, _stated("Bandwidth of the memory.", "GB/s")] = None,
    link: Annotated[float | None, _stated("Bandwidth to others, per direction.", "GB/s")] = None,
    tdp: Annotated[float | None, _stated("Power limit.", "W")] = None,
    price: Annotated[float | None, _stated("Purchase price of one.", "USD")] = None,
) -> None:
    """Write ID.yaml, an accelerator to fill in from its spec sheet; where it exists, say what it still lacks.
    Exit status 1 if anything. A file of a host (hardware_id, gpus, cpu, ram_gb) is stored under its id.
    """
    from mantile.cli.output.tables import print_datasheet
    from mantile.library import datasheet, machines

    if machines.is_record(Path(identifier), "hardware_id"):
        _add_record(Path(identifier))
        return
    usual = Path("profiles", "accelerators")
    path = (folder or (usual if usual.is_dir() else Path())) / f"{identifier.removesuffix('.yaml')}.yaml"
    figures = {
        "peak_bf16": bf16,
        "peak_fp8": fp8,
        "peak_fp4": fp4,
        "memory_capacity": memory,
        "memory_bandwidth": bandwidth,
        "link_bandwidth": link,
        "tdp": tdp,
    }
    stated = {name: float(value) for name, value in figures.items() if value is not None}
    if like is None and (stated or price is not None):
        raise InputError("--like: expected the chip that the rest is taken from, such as --like b200-sxm")
    if like is not None:
        _add_like(path, like, stated, price)
        return
    if not check and not path.exists():
        datasheet.write_skeleton(path.stem, path)
        typer.echo(
            f"{path}: written; fill it in, then `mantile list hardware add {path.stem} --check` says what it "
            "still lacks"
        )
        return
    problems, doubts = datasheet.check(path)
    print_datasheet(path, problems, doubts, f"--accelerator {path}")
    if problems:
        raise typer.Exit(1)


@_profiles.command("add", examples=("mantile list profiles add runtime.json",))
def _add_runtime(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A runtime: runtime_id, engine, version.")],
) -> None:
    """Store a runtime, an engine in a version, under its id: requests and measured runs may name it."""
    _add_record(file)


def _add_record(file: Path) -> None:
    from mantile.library import machines

    typer.echo(f"{machines.add(machines.read_record(file))}: written")


def _add_like(path: Path, like: str, stated: dict[str, float], price: float | None) -> None:
    """Write an accelerator that is like another, its system and its price."""
    from datetime import date

    from mantile.library.likeness import write_likeness
    from mantile.library.profiles import load_library

    wrong = next((name for name, value in {**stated, "price": price or 1.0}.items() if not value > 0), None)
    if wrong is not None:
        raise InputError(f"{wrong}: expected a number above 0")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    files = write_likeness(path.stem, like, stated, price, path.parent, load_library(), date.today())
    said = ", ".join(str(file) for file in files)
    typer.echo(f"{said}: written; what was not stated is as {like}, marked; use it with --accelerator {path}")


def _sides(left: str, right: str | None, version: str | None) -> tuple[str, str]:
    """What is compared, versions included.

    Raises:
        InputError: if a version is given twice, or nothing says what to compare with.
    """
    identifier, _, named = left.partition("@")
    if version is not None and named:
        raise InputError(f"--version {version}: {left} names a version already; expected one of the two")
    if not (version or named or right):
        raise InputError(
            f"missing B: expected what to compare {left} with, or --version to compare it with an older "
            "version of itself"
        )
    current = Path(identifier).name if left.endswith((".yaml", ".yml")) else identifier
    return f"{left}@{version}" if version else left, right or current


def _print_diff(kind: str, left: str, right: str, as_json: bool) -> None:
    from mantile.cli.output.tables import print_differences, print_json
    from mantile.estimates import catalogue

    differences = catalogue.differences(kind, left, right)
    if as_json:
        print_json(differences)
    else:
        print_differences(differences)
