"""What every command has: options that all share, help in groups with an example, and errors in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
import typer.core

from mantile.cli.completion import completed
from mantile.cli.numbers import real, span, whole
from mantile.library.errors import InputError, near, quoted
from mantile.library.typed_numbers import SWITCHES

FORMATS = ("table", "markdown", "csv", "json")
RARELY = "Options (rare)"
"""The group of a command's own options that only `--help-all` shows, as of any group that ends so."""
SHARED = "Output"
_ENDINGS = {".md": "markdown", ".csv": "csv", ".json": "json"}
_PROGRAM = "mantile"
SWITCH = "[on|off]"
"""In place of the value of an option that is on where it stands without one."""


class Command(typer.core.TyperCommand):
    """A command whose help has groups and an example, and which tells wrong words in one line."""

    examples: tuple[str, ...] = ()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: what it does, an example, options by group; rare ones only if asked for."""
        from mantile.cli.output.help import command_help

        formatter.write(command_help(self, ctx, every=ctx.meta.get(_EVERY, False)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the command.

        Raises:
            InputError: in the words of who typed them.
        """
        given = [*args]
        try:
            return super().parse_args(ctx, [*self._with_values(args)])
        except Exception as error:
            if not hasattr(error, "format_message"):
                raise
            raise InputError(explained(error, self, ctx, given)) from None

    def _with_values(self, words: list[str]) -> Iterator[str]:
        """The words, with the value of switches that stand without one: --enforce-eager=on."""
        switches = {name for param in self.params if param.metavar == SWITCH for name in param.opts}
        for word, after in zip(words, [*words[1:], ""], strict=False):
            bare = word in switches and after.lower() not in SWITCHES
            yield f"{word}=on" if bare else word


_EVERY = "mantile.help_all"


class Commands(typer.core.TyperGroup):
    """Commands in groups.

    `otherwise` is the one that gets words which begin with none of them; without it that is an error.
    """

    otherwise = ""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that the arguments begin with, and the rest of them.

        Raises:
            InputError: for a command that there is not, with those that come near.
        """
        if args and self.get_command(ctx, args[0]) is None:
            if args[0].startswith("-"):
                raise InputError(
                    f"{args[0]}: there is no such option before a command; {ctx.command_path} --help"
                )
            raise InputError(
                f"{quoted(args[0])}: there is no such command; {near(args[0], self.commands)} "
                f"`{ctx.command_path} --help` lists them"
            )
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: commands in groups."""
        from mantile.cli.output.help import group_help

        formatter.write(group_help(self, ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before a command.

        Raises:
            InputError: in the words of who typed them.
        """
        given = [*args]
        first = args[0] if args else ""
        if self.otherwise and first not in (*self.commands, *ctx.help_option_names):
            asks = self.no_args_is_help or ctx.resilient_parsing  # a shell asks what may follow
            args = args if asks and not args else [self.otherwise, *args]
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if not hasattr(error, "format_message") or type(error).__name__.startswith("NoArgs"):
                raise
            raise InputError(explained(error, self, ctx, given)) from None


def explained(error: Any, command: Any, ctx: Any, given: Sequence[str]) -> str:
    """A complaint of the parser in the words of who typed: what is wrong, and a way out."""
    name, param = type(error).__name__, getattr(error, "param", None)
    path = ctx.command_path
    if name.startswith("NoSuch"):
        return _no_such(error.option_name, command, ctx)
    if name == "MissingParameter" and param is not None:
        return f"{_missing(param)}; such as: {_example(command, path)}"
    if param is not None:
        flag = _spelt(param, given)
        value = _value_of(param, given)
        said = str(getattr(error, "message", "")).strip().rstrip(".")
        said = said[:1].lower() + said[1:] if not said.startswith("expected") else said
        return f"{flag}{f' {value}' if value else ''}: {said}"
    if name == "BadOptionUsage" or name == "BadArgumentUsage":
        option = getattr(error, "option_name", "") or ""
        found = next((one for one in command.get_params(ctx) if option in getattr(one, "opts", ())), None)
        if found is not None and getattr(found, "is_flag", False):
            return f"{option}: it takes no value; leave out what follows the ="
        return f"{option}: expected a value behind it{_of(found)}; {path} --help explains it"
    message = str(error.format_message()).strip().rstrip(".")
    if "extra argument" in message:
        extra = message.rpartition("(")[2].rstrip(")")
        return f"{path}: did not expect {extra!r:.120}; {_shape(command, ctx)}; quote a name that has blanks"
    return f"{path}: {message[:1].lower()}{message[1:]}; such as: {_example(command, path)}"


def _of(param: Any) -> str:
    shown = getattr(param, "metavar", None)
    return f", {shown}" if shown else ""


def _no_such(option: str, command: Any, ctx: Any) -> str:
    """Of a flag that is a setting of an engine, what it means; of any other those that come near."""
    from mantile.library.engine_words import meaning_of

    word = option.partition("=")[0]
    if " " in word:
        return f"{word}: options in one pair of quotes; leave the quotes out, or begin with a model or ..."
    said = meaning_of(word) if word.startswith("--") else None
    if said is not None:
        return f"{word}: there is no such flag; {said}"
    if any(word in getattr(param, "opts", ()) for param in _params_behind(command, ctx)):
        return f"{word}: it belongs behind the command: {ctx.command_path} COMMAND {word}"
    names = [
        opt for param in command.get_params(ctx) for opt in getattr(param, "opts", ()) if opt[:2] == "--"
    ]
    found = near(word, names) if word.startswith("--") and len(word) > 3 else ""
    close = f" {found}" if found.startswith("did") else ""
    every = "--help" if hasattr(command, "commands") else "--help-all"
    return f"{word}: there is no such option;{close} `{ctx.command_path} {every}` lists them"


def _params_behind(command: Any, ctx: Any) -> Iterator[Any]:
    """The options of all commands of a group, as far as they are declared."""
    for one in getattr(command, "commands", {}).values():
        yield from one.get_params(ctx)


def _missing(param: Any) -> str:
    shown = getattr(param, "metavar", None) or param.name.upper()
    if param.param_type_name == "argument":
        return f"missing {shown}"
    what = (param.help or "").partition(": ")[0].partition(";")[0].rstrip(".")
    return f"missing {param.opts[-1]} {shown}: {what[:1].lower()}{what[1:]}"


def _example(command: Any, path: str) -> str:
    examples = getattr(command, "examples", ())
    return examples[0] if examples else f"{path} --help"


def _shape(command: Any, ctx: Any) -> str:
    words = [param.metavar or param.name.upper() for param in command.get_params(ctx) if _is_argument(param)]
    return f"expected {' '.join(words)} and options" if words else "expected options only"


def _is_argument(param: Any) -> bool:
    return bool(param.param_type_name == "argument")


def _spelt(param: Any, given: Sequence[str]) -> str:
    """An option as it was typed, an argument as help calls it."""
    if _is_argument(param):
        return str(param.metavar or param.name.upper())
    typed = next((word.partition("=")[0] for word in given if word.partition("=")[0] in param.opts), None)
    return typed or str(param.opts[0])


def _value_of(param: Any, given: Sequence[str]) -> str:
    """What was typed behind an option, shortened."""
    for place, word in enumerate(given):
        name, equals, value = word.partition("=")
        if name in getattr(param, "opts", ()):
            text = value if equals else next(iter(given[place + 1 : place + 2]), "")
            return text if text.isprintable() and len(text) <= 60 else f"{text[:60]!a}"
    return ""


class App(typer.Typer):
    """The application: its commands get the options that all share; they are made once in a process."""

    def group(self, name: str, help: str, panel: str = "", otherwise: str = "", asks: bool = True) -> App:
        """A command that has others.

        Args:
            panel: the part of the help it stands in.
            otherwise: the one of them that gets words which begin with none.
            asks: whether without words there is help, in place of `otherwise`.
        """
        group = App(
            cls=type("Commands", (Commands,), {"otherwise": otherwise}),
            help=help,
            no_args_is_help=asks,
            rich_markup_mode=None,
            context_settings={"help_option_names": ["-h", "--help"]},
        )
        self.add_typer(group, name=name, rich_help_panel=panel or None)
        return group

    @cached_property
    def _commands(self) -> Any:
        return typer.main.get_command(self)

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Run the command that is asked for.

        Args:
            arguments, settings: of the `main` of typer's groups.

        Example:
            app(["models", "list"], standalone_mode=False)
        """
        return self._commands(*arguments, **settings)

    def parsed(self, name: str, words: Sequence[str]) -> dict[str, Any]:
        """What words behind a command give for its parameters, without running it.

        Raises:
            InputError: for words that it does not take.

        Example:
            app.parsed("estimate", ["llama-3.1-8b", "--tp", "8"])["tp"]
        """
        given = [name, *words]
        above = self._commands.make_context(_PROGRAM, [name])
        called, command, rest = self._commands.resolve_command(above, given)
        found: dict[str, Any] = command.make_context(called, rest, parent=above).params
        return found

    def command(
        self, name: str | None = None, *, examples: Sequence[str] = (), group: str = "", **settings: Any
    ) -> Callable[..., Any]:
        """Register a command.

        Args:
            examples: lines that can be typed; the first stands in errors too.
            group: the part of `mantile --help` it stands in.
        """
        made = type("Command", (Command,), {"examples": tuple(examples)})
        register = super().command(
            name,
            cls=made,
            context_settings={"help_option_names": ["-h", "--help"]},
            rich_help_panel=group or None,
            **settings,
        )

        def add(function: Callable[..., Any]) -> Callable[..., Any]:
            register(shared(function))
            return function

        return add


def shared(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command with the options that all share, and numbers as people type them."""
    parameters = [*inspect.signature(function, eval_str=True).parameters.values()]
    own = {parameter.name for parameter in parameters}
    parameters = [_numeric(parameter) for parameter in parameters]
    as_json = "as_json" in own
    writes = any("-o" in names_of(parameter) for parameter in parameters)
    extra = [_quiet(), _help_all()]
    extra += [_format()] if as_json else []
    extra += [_output()] if not writes else []

    @wraps(function)
    def run(**arguments: Any) -> None:
        given = {parameter.name: arguments.pop(parameter.name) for parameter in extra}
        form, path = given.get("shown_as"), given.get("written_to")
        form = form or form_of(path)
        if as_json:
            form = "json" if arguments["as_json"] and form is None else form
            arguments["as_json"] = form == "json"
        with shown(form or "table", bool(given["quiet"]), path):
            function(**arguments)

    set_parameters(run, [*map(completed, parameters), *map(completed, extra)])
    return run


def form_of(path: Path | None) -> str | None:
    """The form that the ending of a file says; None where it says none."""
    return None if path is None else _ENDINGS.get(path.suffix.lower())


@contextmanager
def shown(form: str, quiet: bool, path: Path | None) -> Iterator[None]:
    """Within, tables are shown in a form, and what is printed goes to a file where one is named."""
    from mantile.cli.output import look

    with look.as_asked(form, quiet):
        if path is None:
            yield
            return
        import contextlib
        import io

        from mantile.library.files import replacing

        if not path.parent.is_dir():
            raise InputError(f"--output {path}: there is no folder {path.parent}")
        if path.is_dir():
            raise InputError(f"--output {path}: this is a folder; expected the name of a file")
        text = io.StringIO()
        status: BaseException | None = None
        with contextlib.redirect_stdout(text):
            try:
                yield
            except Exception as error:
                if not hasattr(error, "exit_code") or hasattr(error, "format_message"):
                    raise
                status = error  # a check failed: what was asked for is written all the same
        with replacing(path) as temporary:
            temporary.write_text(text.getvalue(), encoding="utf-8")
        if status is not None:
            raise status


def names_of(parameter: inspect.Parameter) -> tuple[str, ...]:
    """The spellings of an option; typer holds the first one as the default until it has read the option."""
    info = _info(parameter)
    first = (info.default,) if info is not None and isinstance(info.default, str) else ()
    return (*first, *(getattr(info, "param_decls", None) or ()))


def _info(parameter: inspect.Parameter) -> Any:
    return next((part for part in get_args(parameter.annotation)[1:] if hasattr(part, "param_decls")), None)


def _numeric(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter whose number may be 1k or 2.5M."""
    info = _info(parameter)
    if (
        info is None
        or get_origin(parameter.annotation) is not Annotated
        or info.parser
        or getattr(info, "click_type", None)
    ):
        return parameter
    kinds = {kind for kind in get_args(get_args(parameter.annotation)[0]) if kind is not type(None)} or {
        get_args(parameter.annotation)[0]
    }
    if kinds not in ({int}, {float}):
        return parameter
    from copy import copy

    info = copy(info)
    limits = span(info.min, info.max)
    info.parser = (whole if kinds == {int} else real)(info.min, info.max)
    info.metavar = info.metavar or ("<n>" if kinds == {int} else "<number>")
    info.help = f"{(info.help or '').rstrip('.')}, {limits}." if limits else info.help
    info.min = info.max = None
    return parameter.replace(annotation=Annotated[get_args(parameter.annotation)[0], info])


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _quiet() -> inspect.Parameter:
    option = typer.Option(
        "--quiet", "-q", help="No notes, no progress: the answer alone.", rich_help_panel=f"{SHARED} (rare)"
    )
    return _parameter("quiet", Annotated[bool, option], False)


def _help_all() -> inspect.Parameter:
    def show(ctx: typer.Context, wanted: bool) -> None:
        if wanted:
            ctx.meta[_EVERY] = True
            typer.echo(ctx.get_help())
            raise typer.Exit

    option = typer.Option(
        "--help-all",
        is_eager=True,
        callback=show,
        help="All options in groups.",
        rich_help_panel=f"{SHARED} (rare)",
    )
    return _parameter("help_all", Annotated[bool, option], False)


def _format() -> inspect.Parameter:
    def check(text: Any) -> Any:
        if isinstance(text, str) and text not in FORMATS:
            raise typer.BadParameter(f"expected one of {', '.join(FORMATS)}")
        return text

    option = typer.Option(
        "--format",
        metavar=f"<{'|'.join(FORMATS)}>",
        parser=check,
        help="How it is shown; csv has the tables alone.",
        rich_help_panel=f"{SHARED} (rare)",
    )
    return _parameter("shown_as", Annotated[str | None, option])


def _output() -> inspect.Parameter:
    option = typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write it to a file instead; .md, .csv and .json say the format.",
        rich_help_panel=SHARED,
    )
    return _parameter("written_to", Annotated[Path | None, option])


def set_parameters(function: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give a function parameters that typer reads."""
    order = sorted(parameters, key=lambda parameter: parameter.default is not inspect.Parameter.empty)
    plain = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in order]
    function.__signature__ = inspect.Signature(plain)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in plain}
