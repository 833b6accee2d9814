"""The application, what its commands share, and how it ends.

Exit status: 0 fine, 1 a check or verification failed, 2 the input was wrong.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from mantile.cli.commands import App, Commands
from mantile.cli.completion import completes_no_flag
from mantile.cli.flags import flagged
from mantile.cli.output.look import say
from mantile.library.errors import InputError
from mantile.library.gc_paused import gc_paused
from mantile.library.version import __version__

FORMER = {
    "audit": "verify --audit",
    "correct": "calibrate --multipliers",
    "drift": "records drift",
    "find": "list all",
    "from-command": "import",
    "from-trace": "import",
    "guide": "list jobs",
    "hardware": "list hardware",
    "init": "config scenario",
    "ir": "list models ir",
    "keys": "config keys",
    "lint": "verify --rules",
    "models": "list models",
    "open": "verify --about",
    "plan": "estimate --plan",
    "profiles": "list profiles",
    "trace": "explain --depth 3",
}
"""What commands of 0.22 are called now; their names are understood until 0.24."""


class Program(Commands):
    """The commands; one that takes a scenario gets the flags of its fields when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments begin with, under a former name too, and the rest of them."""
        now = FORMER.get(args[0])
        if now is not None:
            if not ctx.resilient_parsing:  # a shell that completes it is told nothing
                say(f"{args[0]!r} is now {now!r}")
            args = [*now.split(), *args[1:]]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if completes_no_flag() else flagged(command), rest


app = App(
    cls=Program,
    help="What an LLM deployment can really reach, as a workbook in which every number is a live formula.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on stdout, in SI units.")]

Workbook = Annotated[Path, typer.Argument(metavar="FILE", help="A workbook, .xlsx.")]


def must_exist(file: Path) -> None:
    """Refuse a path that is no file."""
    if not file.is_file():
        raise InputError(f"{file}: {'this is a folder, not a file' if file.is_dir() else 'no such file'}")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mantile {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line; wrong input becomes a message and exit status 2."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who called us: files are written all the same
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names may hold characters that the terminal's encoding lacks
            stream.reconfigure(errors="replace")
    try:
        with gc_paused():
            status = app(prog_name="mantile", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _end_of_pipe()
    except SystemExit as ended:  # typer and rich end with 1 where a pipe breaks
        if isinstance(ended.__context__, BrokenPipeError):
            _end_of_pipe()
        raise
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        if error.errno == errno.EPIPE:
            _end_of_pipe()
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except Exception as error:
        if type(error).__name__.startswith("NoArgs"):
            error.show()  # type: ignore[attr-defined]
            raise SystemExit(2) from None
        if type(error).__name__ == "Abort":
            raise SystemExit(130) from None
        if hasattr(error, "format_message"):  # a complaint of the parser that no command put in words
            _fail(str(error.format_message()))
        raise
    raise SystemExit(status or 0)


def _end_of_pipe() -> NoReturn:
    """Who reads has seen enough, as `head` does: that is no error."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    raise SystemExit(0)


def _fail(message: str) -> NoReturn:
    for line in message.splitlines():
        say(line)
    raise SystemExit(2)
