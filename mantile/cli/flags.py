"""The flags of a scenario, shared by the commands that need one.

What is given becomes the fields of a scenario.

Flags of fields are made of the table of fields, when a command that has them is called: the table is slow to
import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.fields import ScenarioField
    from mantile.library.scenario import Scenario
    from mantile.workbook.bundle import Bundle

AUTO = "auto"
"""The value of a field that shall be chosen."""
_CHOSEN = ("tp", "pp", "dp", "ep", "attention_dp", "cp")  # whole numbers that may be chosen
NO_DOCUMENT: Any = object()
"""In place of what a file holds, of what is none."""
_FORMERLY = "_formerly"  # behind the name of a flag that is kept for its old spellings, and is not shown
_WITH_FLAGS = "with_flags"  # attribute of a command that gets the flags of a scenario


def _option(help: str, *names: str, metavar: str | None = None, hidden: bool = False) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, hidden=hidden)


def _document_flags(
    title: Annotated[str | None, _option("Title of the workbook.")] = None,
    template: Annotated[
        str | None,
        _option("standard, executive or audit, or a file of one's own: mine.yaml.  [default: standard]"),
    ] = None,
    date: Annotated[str | None, _option("Date of the workbook, YYYY-MM-DD.")] = None,
    name: Annotated[str | None, _option("Name of the base column.")] = None,
    draft_model: Annotated[
        str | None, _option("Model that drafts tokens: an id, a path or a hub id, as MODEL.")
    ] = None,
    acceptance_by_position: Annotated[
        str | None, _option("How often each draft token is accepted, as engines report it: 0.85,0.61,0.38.")
    ] = None,
    profiles: Annotated[
        list[str] | None,
        typer.Option(
            "--profile",
            metavar="FOLDER/ID@VERSION",
            help="Use an older version of a profile, or a file that calibrate wrote; repeatable.",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=VALUE", help="Replace a figure, in its cell's unit; repeatable."),
    ] = None,
) -> None:
    """Flags of what belongs to the whole workbook: their signature is what matters."""


def _field_parameters() -> Iterator[inspect.Parameter]:
    """The flags of all fields.

    Those of prefill and decode workers stand behind the deployment they are part of.
    """
    from mantile.library.fields import DECODE, DEPLOYMENT, PREFILL
    from mantile.library.scenario import SCENARIO_FIELDS, WORKER_FIELDS

    deployment = [declared for declared in SCENARIO_FIELDS.values() if declared.group == DEPLOYMENT]
    others = [declared for declared in SCENARIO_FIELDS.values() if declared.group != DEPLOYMENT]
    for declared in deployment:
        yield from _parameters(declared)
    for prefix in (PREFILL, DECODE):
        for name in WORKER_FIELDS:
            yield from _worker_parameters(SCENARIO_FIELDS[name], prefix)
    for declared in others:
        yield from _parameters(declared)


def _parameters(declared: ScenarioField) -> Iterator[inspect.Parameter]:
    """The flag of a field, also under the names that serving engines have for it, and its old spellings."""
    spellings = (declared.name, *declared.aliases)
    yield _parameter(declared, declared.name, spellings, flag_help(declared))
    if declared.former:
        yield _parameter(declared, f"{declared.name}{_FORMERLY}", declared.former, "", hidden=True)


def _worker_parameters(declared: ScenarioField, prefix: str) -> Iterator[inspect.Parameter]:
    """The flag of a field for prefill or decode workers alone.

    What serving engines call it is understood, but not shown.
    """
    from mantile.library.fields import PREFILL, WORKERS

    workers = "prefill workers" if prefix == PREFILL else "decode workers"
    shown = (WORKERS, declared.name) if declared.name == "dp" else (declared.name,)
    what = "Number" if declared.name == "dp" else declared.term or declared.label
    text = f"{what[0].upper()}{what[1:]} of {workers}."
    if declared.required:
        text = f"{text[:-1]}; prefill and decode are then apart."
    yield _parameter(
        declared, f"{prefix}{declared.name}", tuple(f"{prefix}{spelling}" for spelling in shown), text
    )
    if declared.aliases:
        spellings = tuple(f"{prefix}{alias}" for alias in declared.aliases)
        yield _parameter(declared, f"{prefix}{declared.name}{_FORMERLY}", spellings, "", hidden=True)


def _parameter(
    declared: ScenarioField, name: str, spellings: tuple[str, ...], help: str, hidden: bool = False
) -> inspect.Parameter:
    names = tuple(field_flag(spelling) for spelling in spellings)
    kind = str if declared.is_day else declared.kind
    option = _option(help, *names, metavar=_metavar(declared), hidden=hidden)
    if declared.name in _CHOSEN and not name.startswith(("prefill_", "decode_")):
        option = typer.Option(
            *names, metavar="<INTEGER|auto>", help=help, hidden=hidden, parser=_whole_or_auto
        )
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[kind | None, option]
    )


def _whole_or_auto(text: str) -> Any:
    """A whole number, or auto: what shall be chosen."""
    if text == AUTO or not isinstance(text, str):
        return text
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a valid integer, nor auto.") from None


def _metavar(declared: ScenarioField) -> str | None:
    """What stands for the value of a flag: its choices, or its unit where it is not a count."""
    if declared.choices:
        return f"<{'|'.join(declared.choices)}>"
    if declared.is_day:
        return "<YYYY-MM-DD>"
    return f"<{declared.unit}>" if declared.kind is float and declared.unit != "1" else None


def flag_help(declared: ScenarioField) -> str:
    """What the command line says of a field; its label where that says more than the flag."""
    text = declared.meaning
    if declared.label.lower().replace(" ", "_") != declared.name:
        text = f"{declared.label}: {text}"
    elif not text.startswith(declared.choices):
        text = f"{text[0].upper()}{text[1:]}"
    hint = f"; {declared.hint}" if declared.hint else ""
    default = f"  [default: {declared.default_words}]" if declared.default_words else ""
    return f"{text}{hint}.{default}"


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that flags set, those of workers as prefill_<field> and decode_<field>.

    Raises:
        InputError: for a field that is given twice, under an old spelling as well.
    """
    given: dict[str, Any] = {}
    for name, value in arguments.items():
        if value is None:
            continue
        field = name.removesuffix(_FORMERLY)
        if field in given:
            raise InputError(f"{field_flag(field)}: given twice, once under another name")
        given[field] = value
    if "overrides" in given:
        given["overrides"] = [_override(text) for text in given["overrides"]]
    return given


def field_flag(field: str) -> str:
    """The flag that sets a field of a scenario."""
    return {"overrides": "--set", "profiles": "--profile"}.get(field, f"--{field.replace('_', '-')}")


def replaced_figure(text: str) -> tuple[str, float]:
    """ID=VALUE to both.

    Raises:
        InputError: if it is not of that form.
    """
    from math import isfinite

    identifier, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not (identifier.strip() and equals and isfinite(number)):
        raise InputError(
            f"--set {text}: expected ID=VALUE with a number, such as efficiency.gemm_compute=0.7"
        )
    return identifier.strip(), number


def swept_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """NAME=VALUES to both: numbers and names with commas, LOW:HIGH:STEP for steps, LOW..HIGH for doublings.

    Raises:
        InputError: if it is not of that form.
    """
    name, equals, values = text.partition("=")
    parts = [part.strip() for part in values.split(",")]
    if not (name.strip() and equals and all(parts)):
        raise InputError(
            f"--over {text}: expected NAME=VALUES, such as tp=1,2,4..32 or "
            "efficiency.gemm_compute=0.5:0.9:0.1"
        )
    return name.strip(), tuple(value for part in parts for value in _values(part, text))


MOST_VALUES = 1_000_000  # of one range
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def _values(part: str, text: str) -> Iterator[Any]:
    """One value, every step of a range, or doublings.

    Decimal arithmetic, so that steps of 0.05 stay what they are.
    """
    import re
    from decimal import Decimal

    def plain(number: Decimal) -> int | float:
        return int(number) if integers and number == number.to_integral_value() else float(number)

    integers = re.search(r"\d\.(?!\.)|[eE]", part) is None  # 2.0 is no whole number, as in a file
    if re.fullmatch(_NUMBER, part):
        yield plain(Decimal(part))
    elif match := re.fullmatch(f"({_NUMBER}):({_NUMBER}):({_NUMBER})", part):
        low, high, step = map(Decimal, match.groups())
        if step <= 0 or high < low:
            raise InputError(
                f"--over {text}: {part}: expected LOW:HIGH:STEP with LOW at most HIGH and STEP above 0"
            )
        if (high - low) / step >= MOST_VALUES:
            raise InputError(
                f"--over {text}: {part}: {int((high - low) / step) + 1:,} values; expected at most "
                f"{MOST_VALUES:,}"
            )
        yield from (plain(low + place * step) for place in range(int((high - low) / step) + 1))
    elif match := re.fullmatch(r"(\d+)\.\.(\d+)", part):
        small, large = map(int, match.groups())
        if not 0 < small <= large:
            raise InputError(
                f"--over {text}: {part}: expected LOW..HIGH with whole numbers from 1, LOW at most HIGH"
            )
        yield from (small << place for place in range((large // small).bit_length()))
        if small << (large // small).bit_length() - 1 != large:
            raise InputError(
                f"--over {text}: {part}: {large} is no doubling of {small}; expected "
                f"{small}..{small << (large // small).bit_length() - 1}"
            )
    elif re.fullmatch(r"[-+.:\d]+", part):
        raise InputError(f"--over {text}: {part}: expected a value, LOW:HIGH:STEP or LOW..HIGH")
    else:
        yield part


def _override(text: str) -> dict[str, Any]:
    identifier, number = replaced_figure(text)
    return {"id": identifier, "value": number, "reason": "set on the command line"}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a scenario; it receives those given as its argument `flags`.

    It is listed without them: `flagged` makes the one that is called.
    """
    parameters = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def listed(**arguments: Any) -> None:
        raise AssertionError(f"{command.__name__} is called without the flags of a scenario")

    _set_parameters(listed, [parameter for parameter in parameters if parameter.name != "flags"])
    setattr(listed, _WITH_FLAGS, command)
    return listed


def flagged(command: Any) -> Any:
    """A command of the application, with the flags of a scenario if it takes them."""
    function = getattr(command.callback, _WITH_FLAGS, None)
    if function is None:
        return command
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    document = inspect.signature(_document_flags, eval_str=True).parameters.values()
    flags = [*_field_parameters(), *document]

    @wraps(function)
    def run(**arguments: Any) -> None:
        given = _given({flag.name: arguments.pop(flag.name) for flag in flags})
        function(**arguments, flags=given)

    _set_parameters(run, [*(parameter for parameter in parameters if parameter.name != "flags"), *flags])
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(command.name)(run)
    made = typer.main.get_command(app)
    parse = made.parse_args

    def parsed(context: Any, words: list[str]) -> list[str]:
        try:
            return parse(context, words)
        except Exception as error:  # of the parser, whose classes are its own
            raise _explained(error) from None

    made.parse_args = parsed  # type: ignore[method-assign, assignment]
    return made


def _explained(error: Exception) -> Exception:
    """Of a flag that is a setting of an engine, what it means; of any other the error itself."""
    name = getattr(error, "option_name", None)
    if name is None or not type(error).__name__.startswith("NoSuch"):
        return error
    from mantile.library.engine_words import meaning_of

    said = meaning_of(name)
    return error if said is None else InputError(f"{name}: there is no such flag; {said}")


def _set_parameters(function: Callable[..., None], parameters: list[inspect.Parameter]) -> None:
    """Give a function parameters that typer reads."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}


def scenario(what: str, flags: dict[str, Any]) -> tuple[Scenario, str, Bundle | None]:
    """A scenario file, a bundle or a model, and flags, to a scenario.

    Also the name that stands for it in errors; and the bundle, if it is one.
    """
    from mantile.library.scenario import merge_fields, parse_scenario

    data, bundle = document_of(what)
    if data is NO_DOCUMENT:
        _require_fields(what, flags)
        name = "command line"
        return parse_scenario(_chosen(merge_fields({"model": what}, flags, name), name), name), name, None
    if bundle is not None and "profiles" in flags:
        raise InputError(
            f"{what}: --profile: a bundle brings its own profiles; expected a scenario file or a model"
        )
    name = f"{what} with {', '.join(map(field_flag, flags))}" if flags else what
    if isinstance(data, dict) and flags:
        data = merge_fields(data, with_overrides(data, flags), name)
    if bundle is not None and AUTO in _texts_of(data):
        raise InputError(f"{what}: auto: a bundle holds a plan; expected a scenario file or a model")
    return parse_scenario(_chosen(data, name), name), name, bundle


def _chosen(data: Any, name: str) -> Any:
    """Fields of a scenario with a plan in place of auto; why it was chosen is told beside the answer."""
    if not isinstance(data, dict) or AUTO not in _texts_of(data):
        return data
    from mantile.optimize.auto import chosen

    fields, found = chosen(data, name)
    typer.echo(found.words, err=True)
    return fields


def _texts_of(data: Mapping[str, Any]) -> Iterator[Any]:
    """The texts of a scenario's fields, those of variants and decode workers included."""
    for key, value in data.items():
        if key == "variants" and isinstance(value, list):
            for case in value:
                yield from _texts_of(case) if isinstance(case, dict) else ()
        elif key == "decode" and isinstance(value, dict):
            yield from _texts_of(value)
        elif isinstance(value, str):
            yield value


def document_of(what: str) -> tuple[Any, Bundle | None]:
    """What a scenario file or a bundle holds, and the bundle; NO_DOCUMENT of what stands for a model."""
    from mantile.library.models import is_model_file

    suffix = "" if is_model_file(what) else Path(what).suffix.lower()
    if suffix in (".yaml", ".yml") or (suffix == ".json" and Path(what).is_file()):
        from mantile.workbook.bundle import read_document

        data, bundle = read_document(what)
        if bundle is not None or suffix != ".json":
            return data, bundle
    return NO_DOCUMENT, None


def _require_fields(model: str, flags: Mapping[str, Any]) -> None:
    """Refuse a model without the flags that a scenario needs."""
    from mantile.library.scenario import REQUIRED

    missing = [
        field_flag(field)
        for field in REQUIRED
        if field not in flags and not (field == "concurrency" and ({"request_rate", "sessions"} & set(flags)))
    ]
    if missing:
        raise InputError(
            f"{model}: missing {', '.join(missing)}; a model needs them, a scenario file may hold them"
        )


def with_overrides(data: Mapping[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Flags whose overrides stand beside those of a scenario file, in place of those of the same figure."""
    stated = data.get("overrides") or []
    if "overrides" not in flags or not isinstance(stated, list):
        return flags
    replaced = {override["id"] for override in flags["overrides"]}
    kept = [
        override for override in stated if not (isinstance(override, dict) and override.get("id") in replaced)
    ]
    return flags | {"overrides": [*kept, *flags["overrides"]]}
