"""Flags that state what files of measurements say nothing of: chip, plan, formats, load, typed lines."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.cli.commands import set_parameters
from mantile.cli.numbers import real, whole

if TYPE_CHECKING:
    from mantile.measured.reading import Stated

_PANEL = "What the file does not say"


def _flag(help: str, *names: str, metavar: str, parser: Any = None, rare: bool = False) -> Any:
    panel = f"{_PANEL} (rare)" if rare else _PANEL
    return typer.Option(*names, metavar=metavar, help=help, parser=parser, rich_help_panel=panel)


def _whole(help: str, *names: str, rare: bool = False) -> Any:
    return _flag(help, *names, metavar="<n>", parser=whole(1, 1_000_000_000), rare=rare)


def _flags(
    model: Annotated[str | None, _flag("The model.", "--model", metavar="MODEL")] = None,
    accelerator: Annotated[str | None, _flag("The chip.", "--gpu", "--accelerator", metavar="<chip>")] = None,
    framework: Annotated[
        str | None, _flag("The engine of the server.", "--engine", "--framework", metavar="<framework>")
    ] = None,
    weights_dtype: Annotated[
        str | None, _flag("Format of the weights.", "--weights-dtype", metavar="<format>")
    ] = None,
    kv_dtype: Annotated[
        str | None, _flag("Format of the KV cache.", "--kv-dtype", metavar="<format>")
    ] = None,
    tp: Annotated[int | None, _whole("Tensor parallel.", "--tp")] = None,
    pp: Annotated[int | None, _whole("Pipeline parallel.", "--pp", rare=True)] = None,
    ep: Annotated[int | None, _whole("Expert parallel.", "--ep", rare=True)] = None,
    dp: Annotated[int | None, _whole("Replicas.", "--dp", rare=True)] = None,
    attention_dp: Annotated[
        int | None, _whole("Groups of attention-DP.", "--attention-dp", rare=True)
    ] = None,
    input_tokens: Annotated[int | None, _whole("Mean input tokens.", "--isl", "--input-tokens")] = None,
    output_tokens: Annotated[int | None, _whole("Mean output tokens.", "--osl", "--output-tokens")] = None,
    concurrency: Annotated[int | None, _whole("Requests in flight at most.", "--concurrency")] = None,
    request_rate: Annotated[
        float | None,
        _flag("Requests that arrive per second.", "--request-rate", metavar="<n>", parser=real(1e-6, 1e9)),
    ] = None,
    prompts: Annotated[
        int | None, _whole("Prompts that the client sent.", "--prompts", "--num-prompts", rare=True)
    ] = None,
    launched: Annotated[
        str | None,
        _flag(
            "The launch line of the server: its model, plan and formats, where the file is silent.",
            "--launched",
            metavar="LINE",
        ),
    ] = None,
    client: Annotated[
        str | None,
        _flag(
            "The line of the client: lengths, load and prompts, where the file is silent.",
            "--client",
            metavar="LINE",
        ),
    ] = None,
) -> None:
    """The signature is what matters."""


def with_stated(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags; what they state is its argument `beside`."""
    own = inspect.signature(command, eval_str=True).parameters
    flags = inspect.signature(_flags, eval_str=True).parameters

    @wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in flags}
        command(**arguments, beside={name: value for name, value in given.items() if value is not None})

    set_parameters(run, [*(one for name, one in own.items() if name != "beside"), *flags.values()])
    return run


def stated_of(given: dict[str, Any]) -> Stated:
    """What flags state, for the reader of files.

    Raises:
        InputError: for a line that cannot be read.
    """
    from mantile.measured.reading import stated

    return stated(**given)
