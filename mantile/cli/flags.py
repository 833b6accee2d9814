"""The flags of a scenario, shared by the commands that need one.

What is given becomes the fields of a scenario.

Flags of fields are made of the table of fields, when a command that has them is called: the table is slow to
import.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.main

from mantile.cli.commands import SWITCH, Command, names_of, set_parameters, shared
from mantile.cli.numbers import real, span, whole
from mantile.library.errors import InputError
from mantile.library.typed_numbers import number_of

if TYPE_CHECKING:
    from mantile.library.fields import ScenarioField
    from mantile.library.scenario import Scenario
    from mantile.workbook.bundle import Bundle

AUTO = "auto"
"""The value of a field that shall be chosen."""
_CHOSEN = ("tp", "pp", "dp", "ep", "attention_dp", "cp", "max_model_len")  # whole numbers that may be chosen
NO_DOCUMENT: Any = object()
"""In place of what a file holds, of what is none."""
_BOOK = "Model and workbook"  # groups of flags in help
_GROUPS = {"prefill": "Prefill workers (rare)", "decode": "Decode workers (rare)"}
_FORMERLY = "_formerly"  # behind the name of a flag that is kept for its old spellings, and is not shown
WITH_FLAGS = "with_flags"  # attribute of a command that gets the flags of a scenario


def _option(help: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=f"{_BOOK} (rare)")


def _document_flags(
    model: Annotated[
        str | None,
        _option(
            "The model, in place of MODEL_OR_SCENARIO or of that in the scenario.",
            "--model",
            metavar="MODEL",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            "--gpus",
            "--num-gpus",
            metavar="<n>",
            parser=whole(1, 1_000_000),
            help="Accelerators in all: TP takes those that other degrees leave, or DP where TP is stated.",
            rich_help_panel="Deployment",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="CHIP:COUNT,FIELD=VALUE",
            help="A machine of a pipeline over unlike ones, in order; repeatable. Behind the chip what it "
            "states: layers, memory (GB), system, and of the cable to the next device (of the last: from the "
            "one before) link, bandwidth (GB/s), latency (us): m3-ultra:2,link=10gbe.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    cpu: Annotated[
        str | None,
        typer.Option(
            "--cpu",
            metavar="CHIP",
            help="A CPU that computes the layers which the accelerator does not hold, in memory of its own: "
            "ryzen-9-9950x. Without --ngl as many layers as is fastest go on the accelerator.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    ngl: Annotated[
        int | None,
        typer.Option(
            "--ngl",
            "--n-gpu-layers",
            metavar="<n>",
            parser=whole(0, 1000),
            help="Layers on the accelerator beside --cpu, the last ones, as llama.cpp takes them; 99: all.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    n_cpu_moe: Annotated[
        int | None,
        typer.Option(
            "--n-cpu-moe",
            metavar="<n>",
            parser=whole(0, 1000),
            help="Layers on the accelerator whose experts lie on --cpu and are computed there; 99: all.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    no_kv_offload: Annotated[
        bool | None,
        typer.Option(
            "--no-kv-offload",
            help="The KV cache of layers on the accelerator stays on --cpu, which computes attention.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="<vllm|sglang|trtllm|llama.cpp|ollama|lmstudio|mlx>",
            help="As that engine is deployed by default: its formats, KV cache, budget, blocks; "
            "what it chose is told.",
            rich_help_panel="Deployment (rare)",
        ),
    ] = None,
    title: Annotated[str | None, _option("Title of the workbook.")] = None,
    template: Annotated[
        str | None,
        _option("standard, executive or audit, or a file of one's own: mine.yaml.  [default: standard]"),
    ] = None,
    date: Annotated[str | None, _option("Date of the workbook, YYYY-MM-DD.")] = None,
    ready_columns: Annotated[
        int | None,
        _option(
            "Columns of the workbook that follow the base until you type a name and what differs, 0 to 7.  "
            "[default: 0]",
            metavar="<n>",
        ),
    ] = None,
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
            rich_help_panel=f"{_BOOK} (rare)",
        ),
    ] = None,
    correction: Annotated[
        str | None,
        _option(
            "Multipliers beside the results: none, shipped, or a file of `mantile calibrate --multipliers`.  "
            "[default: none]"
        ),
    ] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            metavar="CHIP=USD",
            help="What an hour of one accelerator costs you, in place of the library's cloud or rental "
            "price; repeatable: h100-sxm=2.10.",
            rich_help_panel="Power and price (rare)",
        ),
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="ID=VALUE",
            help="Replace a figure, or a fact of the model such as model.layers, in its cell's unit; why may "
            "follow: 'efficiency.gemm_compute=0.7 timed'; repeatable.",
            rich_help_panel=_BOOK,
        ),
    ] = None,
) -> None:
    """Flags of what belongs to the whole workbook: their signature is what matters."""


def _field_parameters() -> Iterator[inspect.Parameter]:
    """The flags of all fields.

    Those of prefill and decode workers stand behind the deployment they are part of.
    """
    from mantile.library.fields import DECODE, DEPLOYMENT, PREFILL
    from mantile.library.scenario_fields import SCENARIO_FIELDS, WORKER_FIELDS

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
    of_worker = name.partition("_")[0] if name.startswith(("prefill_", "decode_")) else ""
    chosen = declared.name in _CHOSEN and not of_worker
    parser: Any = {int: whole(auto=chosen), float: real()}.get(kind)
    option = typer.Option(
        *names,
        metavar="<n|auto>" if chosen else _metavar(declared),
        help=help,
        hidden=hidden,
        parser=parser,
        rich_help_panel=_GROUPS.get(of_worker) or f"{declared.group}{'' if declared.common else ' (rare)'}",
    )
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Annotated[kind | None, option]
    )


def _metavar(declared: ScenarioField) -> str | None:
    """What stands for the value of a flag: its choices, or its unit where it is not a count."""
    if declared.choices == ("off", "on"):
        return SWITCH
    if declared.choices:
        return f"<{'|'.join(declared.choices)}>"
    if declared.is_day:
        return "<day|release>" if declared.name == "engine_date" else "<YYYY-MM-DD>"
    if declared.listed is not None:
        return _METAVARS[declared.listed]
    if declared.kind is float:
        return f"<{declared.unit}>" if declared.unit != "1" else "<number>"
    return "<n>" if declared.kind is int else "<text>"


_METAVARS = {
    "accelerators": "<chip>",
    "systems": "<system>",
    "frameworks": "<framework>",
    "datatypes": "<format>",
    "settings": "<name>",
}


def flag_help(declared: ScenarioField) -> str:
    """What the command line says of a field; its label where that says more than the flag."""
    text = declared.meaning
    if declared.label.lower().replace(" ", "_") != declared.name:
        text = f"{declared.label}: {text}"
    elif not text.startswith(declared.choices):
        text = f"{text[0].upper()}{text[1:]}"
    hint = f"; {declared.hint}" if declared.hint else ""
    notes = [span(declared.least, declared.most)] if declared.kind is not str and not declared.is_day else []
    notes += [f"default: {declared.default_words}"] if declared.default_words else []
    told = "; ".join(note for note in notes if note)
    return f"{text}{hint}{_ALLOWED.get(declared.listed or '', '')}.{f'  [{told}]' if told else ''}"


_ALLOWED = {
    "accelerators": "",  # its hint says it
    "systems": "; `mantile list systems` has them",
    "frameworks": "; `mantile list frameworks` has them",
    "datatypes": "; `mantile list formats` has them",
}


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
            raise InputError(f"{field_flag(field)}: given twice, once under another name; leave one out")
        given[field] = value
    if "overrides" in given:
        given["overrides"] = [override(text) for text in given["overrides"]]
    if "prices" in given:
        given["prices"] = dict(map(_price, given["prices"]))
    return given


def field_flag(field: str) -> str:
    """The flag that sets a field of a scenario."""
    own = {"overrides": "--set", "profiles": "--profile", "prices": "--price"}
    return own.get(field, f"--{field.replace('_', '-')}")


def replaced_figure(text: str) -> tuple[str, float]:
    """ID=VALUE to both.

    Raises:
        InputError: if it is not of that form.
    """
    expected = "expected ID=VALUE with a number, such as efficiency.gemm_compute=0.7"
    return _with_number(text, f"--set {text}: {expected}")


def _price(text: str) -> tuple[str, float]:
    return _with_number(text, f"--price {text}: expected CHIP=USD with a number, such as h100-sxm=2.10")


def _with_number(text: str, expected: str) -> tuple[str, float]:
    from math import isfinite

    name, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not (name.strip() and equals and isfinite(number)):
        raise InputError(expected)
    return name.strip(), number


def swept_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """NAME=VALUES to both: values with commas, LOW..HIGH for each, LOW..HIGH:STEP, 2^0..2^9 for powers.

    Raises:
        InputError: if it is not of that form.
    """
    name, equals, values = text.partition("=")
    parts = [part.strip() for part in values.split(",")]
    if not (name.strip() and equals and all(parts)):
        raise InputError(
            f"--over {text}: expected NAME=VALUES, such as tp=1,2,4, concurrency=2^0..2^8 or "
            "efficiency.gemm_compute=0.5:0.9:0.1"
        )
    return name.strip(), tuple(value for part in parts for value in _values(part, text))


MOST_VALUES = 1_000_000  # of one range
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def _values(part: str, text: str) -> Iterator[Any]:
    """One value, every step of a range, or powers.

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
    elif match := re.fullmatch(r"(\d+)\^(\d+)\.\.(\d+)\^(\d+)", part):
        base, first, other, last = map(int, match.groups())
        if base != other or base < 2 or first > last or last > 64:
            raise InputError(f"--over {text}: {part}: expected powers of one number, such as 2^0..2^9")
        yield from (base**power for power in range(first, last + 1))
    elif match := re.fullmatch(r"(\d+)\.\.(\d+)(?::(\d+))?", part):
        small, large, each = int(match[1]), int(match[2]), int(match[3] or 1)
        if small > large or each < 1:
            raise InputError(
                f"--over {text}: {part}: expected LOW..HIGH or LOW..HIGH:STEP with LOW at most "
                f"HIGH, such as 1..8:2"
            )
        if (large - small) // each >= MOST_VALUES:
            raise InputError(
                f"--over {text}: {part}: {(large - small) // each + 1:,} values; expected at "
                f"most {MOST_VALUES:,}"
            )
        yield from range(small, large + 1, each)
    elif re.fullmatch(r"\d{4}-\d\d?-\d\d?", part):
        yield part  # a day
    elif re.fullmatch(r"[-+.:^\d]+", part):
        raise InputError(
            f"--over {text}: {part}: expected a value, 1..8 (each), 1..8:2 (steps), 2^0..2^9 "
            f"(powers) or LOW:HIGH:STEP"
        )
    elif (scaled := number_of(part)) is not None and re.fullmatch(r"[\d.,]+\s*\w+", part):
        yield scaled
    else:
        yield part


def override(text: str) -> dict[str, Any]:
    """An override of a scenario.

    Raises:
        InputError: if it is not of that form.

    Example:
        override("model.tied_embeddings=1 our finetune shares them")
    """
    name, equals, rest = text.partition("=")
    value, _, why = rest.strip().partition(" ")
    identifier, number = replaced_figure(f"{name}{equals}{value}")
    return {"id": identifier, "value": number, "reason": why.strip() or "set on the command line"}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a scenario; it receives those given as its argument `flags`.

    It is listed without them: `flagged` makes the one that is called.
    """

    parameters = inspect.signature(command, eval_str=True).parameters.values()

    @wraps(command)
    def listed(**arguments: Any) -> None:
        raise AssertionError(f"{command.__name__} is called without the flags of a scenario")

    set_parameters(listed, [parameter for parameter in parameters if parameter.name != "flags"])
    setattr(listed, WITH_FLAGS, command)
    return listed


@cache
def flagged(command: Any) -> Any:
    """A command of the application, with the flags of a scenario if it takes them."""
    function = getattr(command.callback, WITH_FLAGS, None)
    if function is None:
        return command

    own = [*inspect.signature(function, eval_str=True).parameters.values()]
    taken = {name for parameter in own for name in names_of(parameter)} | {
        field_flag(parameter.name) for parameter in own
    }
    document = inspect.signature(_document_flags, eval_str=True).parameters.values()
    names = {parameter.name for parameter in own}
    flags = [
        flag
        for flag in (*_field_parameters(), *document)
        if taken.isdisjoint(names_of(flag)[:1]) and flag.name not in names
    ]
    asks = next((parameter for parameter in own if parameter.name == "what"), None)

    @wraps(function)
    def run(**arguments: Any) -> None:
        given = _given({flag.name: arguments.pop(flag.name) for flag in flags})
        if asks is not None:
            arguments["what"] = _what(arguments["what"], given)
            if arguments["what"] is None and asks.default is inspect.Parameter.empty:
                raise InputError(f"missing MODEL_OR_SCENARIO; such as: {command.examples[0]}")
        function(**arguments, flags=given)

    kept = [
        parameter.replace(default=None, annotation=_optional(parameter.annotation))
        if parameter is asks
        else parameter
        for parameter in own
        if parameter.name != "flags"
    ]
    set_parameters(run, [*kept, *flags])
    delattr(run, WITH_FLAGS) if hasattr(run, WITH_FLAGS) else None
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    cls = type(command) if isinstance(command, Command) else Command
    settings = {"help_option_names": ["-h", "--help"]}
    app.command(command.name, cls=cls, context_settings=settings)(shared(run))
    return typer.main.get_command(app)


_SPELT = {"as_json": "json", "everything": "all", "shown_as": "format", "written_to": "output"}
"""Options by their parameters, where these are called otherwise."""


def asked_in(arguments: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """The model or scenario that arguments of a command name, and the flags of a scenario.

    Raises:
        InputError: for an option that is neither.

    Example:
        asked_in(app.parsed("estimate", ["llama-3.1-8b", "--tp", "8"]))    # ("llama-3.1-8b", {"tp": 8})
    """
    document = inspect.signature(_document_flags, eval_str=True).parameters
    names = {flag.name for flag in _field_parameters()} | {*document}
    stated = {name: value for name, value in arguments.items() if value not in (None, (), [], False)}
    other = next((name for name in stated if name not in names | {"what"}), None)
    if other is not None:
        spelt = _SPELT.get(other, other).replace("_", "-")
        raise InputError(f"--{spelt}: it says nothing of a plan; expected flags of a scenario")
    given = _given({name: value for name, value in stated.items() if name in names})
    return _what(stated.get("what"), given), given


def _optional(annotation: Any) -> Any:
    """The annotation of an argument that may be left out, as a flag stands for it."""
    return Annotated[str | None, annotation.__metadata__[0]]


def _what(what: str | None, given: dict[str, Any]) -> str | None:
    """The model or scenario of a command: the argument, else the flag."""
    if "model" not in given:
        return what
    if what is None:
        return str(given.pop("model"))
    if document_of(what)[0] is NO_DOCUMENT:
        raise InputError(f"--model {given['model']}: {what} is the model already; leave one out")
    return what


def scenario(what: str, flags: dict[str, Any]) -> tuple[Scenario, str, Bundle | None]:
    """A scenario file, a bundle or a model, and flags, to a scenario.

    Also the name that stands for it in errors; and the bundle, if it is one.
    """
    from mantile.cli.asked import asked, own_model
    from mantile.library.scenario import merge_fields, parse_scenario

    data, bundle = document_of(what)
    if data is NO_DOCUMENT:
        flags = asked(None, flags, what)
        _require_fields(what, flags)
        name = "command line"
        stated = merge_fields({"model": own_model(what)}, flags, name)
        return parse_scenario(_chosen(stated, name), name), name, None
    flags = asked(data if isinstance(data, dict) else {}, flags)
    if bundle is not None and "profiles" in flags:
        raise InputError(
            f"{what}: --profile: a bundle brings its own profiles; expected a scenario file or a model"
        )
    own = next((name for name in ("correction", "prices") if bundle is not None and name in flags), None)
    if own is not None:
        raise InputError(
            f"{what}: {field_flag(own)}: a bundle brings its own; expected a scenario file or a model"
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
    from mantile.search.auto import chosen

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
    if suffix == ".xlsx":
        return _of_workbook(Path(what))
    if suffix in (".yaml", ".yml") or (suffix == ".json" and Path(what).is_file()):
        from mantile.workbook.bundle import read_document

        data, bundle = read_document(what)
        if bundle is not None or suffix != ".json":
            return data, bundle
    return NO_DOCUMENT, None


def _of_workbook(path: Path) -> tuple[Any, Bundle | None]:
    """The scenario in a workbook, edits included, with its own library."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a workbook, a scenario .yaml or a model")
    from mantile.roundtrip.import_workbook import import_workbook
    from mantile.workbook.bundle import Bundle

    found = import_workbook(path)
    data = found.scenario.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return data, Bundle.of(found.estimate)


def _require_fields(model: str, flags: Mapping[str, Any]) -> None:
    """Refuse a model without the flags that a scenario needs."""
    from mantile.library.scenario_fields import REQUIRED

    missing = [
        field_flag(field)
        for field in REQUIRED
        if field not in flags and not (field == "concurrency" and ({"request_rate", "sessions"} & set(flags)))
    ]
    if missing:
        if "/" not in model:  # a name that there is not comes before what it would need
            from mantile.cli.asked import own_model
            from mantile.library.models import load_model

            load_model(own_model(model))
        raise InputError(
            f"{model}: missing {', '.join(missing)}; a model needs them, a scenario file may hold them: "
            f"mantile estimate {model} --gpu h100 --isl 1k --osl 256 --concurrency 8"
        )


def with_overrides(data: Mapping[str, Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Flags whose overrides and prices stand beside those of a scenario file, in place of the same ones."""
    if "prices" in flags and isinstance(data.get("prices"), dict):
        flags = flags | {"prices": data["prices"] | flags["prices"]}
    stated = data.get("overrides") or []
    if "overrides" not in flags or not isinstance(stated, list):
        return flags
    replaced = {override["id"] for override in flags["overrides"]}
    kept = [
        override for override in stated if not (isinstance(override, dict) and override.get("id") in replaced)
    ]
    return flags | {"overrides": [*kept, *flags["overrides"]]}
