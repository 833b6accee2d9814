"""Scenarios of requests: what they name must be ids; no path, address or file of them is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.architecture import Model
from mantile.library.correction import NO_CORRECTION, SHIPPED
from mantile.library.errors import InputError, naming, quoted
from mantile.library.models import named_model
from mantile.library.profiles import is_file, load_library
from mantile.library.scenario import Scenario, merge_fields, parse_scenario, with_checkpoint
from mantile.library.scenario_fields import field_name
from mantile.library.template import Template, load_template
from mantile.server.errors import Refused

NAME = "scenario"
"""Stands for the document in errors."""
MOST_COLUMNS = 25
_DEPTH = 12  # of nesting; a scenario has fewer levels
_AUTO = "auto"
_FIELD = re.compile(rf"(?:\b{NAME}: )?\bfield (\w+)")
_SET = re.compile(r"--set (?:(states)|([\w.]+)=([^\s,;)]+))")
_FLAG = re.compile(r"--([a-z][a-z-]*)")
_OF_FLAGS = {
    "ngl": "layers",
    "n-cpu-moe": "experts_away",
    "no-kv-offload": "kv_away",
    "device": "devices",
    "price": "prices",
}
"""Fields whose flags have other names."""


@lru_cache(256)
def model_of(name: str, hub: bool) -> Model:
    """A model by id or hub id; read from the hub only where that is allowed.

    Raises:
        InputError: if there is no such model.
    """
    model = named_model(name, hub)
    if not model.version and Path(name).exists():  # others would read it in place of the hub's
        raise InputError(f"model {quoted(name)}: there is a file of that name here; none is read")
    return model


def scenario_of(data: Mapping[str, Any], hub: bool, name: str = NAME) -> tuple[Scenario, Model]:
    """A scenario as a request has it, and its model; fields that are `auto` are chosen.

    Raises:
        InputError: naming the field that is wrong, or that names a file.
    """
    fields, model = fields_of(data, hub, name)
    if any(value == _AUTO for value in fields.values()):
        from mantile.search.auto import chosen

        fields, _ = chosen(fields, name)
    return parse_scenario(fields, name), model


def fields_of(data: Mapping[str, Any], hub: bool, name: str = NAME) -> tuple[dict[str, Any], Model]:
    """The fields of a scenario by our names, with ids of models as we spell them, and the model.

    Raises:
        InputError: naming the field that names a file, or a model that there is not.
    """
    fields = merge_fields(by_ids(data, hub, name), {}, name)
    if not isinstance(fields.get("model"), str):
        raise InputError(f"{name}: field model: expected an id, such as llama-3.3-70b")
    return fields, model_of(str(data["model"]), hub)


def estimate_of(data: Mapping[str, Any], hub: bool, name: str = NAME) -> Estimate:
    """The estimate of a scenario as a request has it.

    Raises:
        InputError: naming the field that is wrong, or that names a file.
    """
    scenario, model = scenario_of(data, hub, name)
    return estimate(scenario, model, name=name, template=_template(scenario.template))


@cache
def _template(name: str) -> Template:
    return load_template(name)


@contextmanager
def asked_as(names: Mapping[str, str]) -> Iterator[None]:
    """Errors name fields as a request has them.

    Args:
        names: of fields of the request, by the field of a scenario that each becomes.
    """

    def named(found: re.Match[str]) -> str:
        return f"field {names[found[1]]}" if found[1] in names else found[0]

    try:
        yield
    except Refused:
        raise
    except InputError as error:
        raise InputError(_FIELD.sub(named, str(error))) from error


def in_fields(message: str) -> str:
    """What a check says, with fields of a scenario where the command line has flags.

    >>> in_fields("needs 36 GB of 31.6: a smaller data type (--weights-dtype), or --set hardware.tdp=W")
    'needs 36 GB of 31.6: a smaller data type (weights_dtype), or an override of hardware.tdp (W)'
    """

    def stated(found: re.Match[str]) -> str:
        return "an override states" if found[1] else f"an override of {found[2]} ({found[3]})"

    def field(found: re.Match[str]) -> str:
        return _OF_FLAGS.get(found[1], found[1].replace("-", "_"))

    return _FLAG.sub(field, _SET.sub(stated, message))


def by_ids(data: Any, hub: bool, name: str) -> Any:
    """A document with ids of models and accelerators in place of what they are called.

    Raises:
        InputError: naming the field that names a file, or what there is not.
    """

    def walked(value: Any, key: str, path: str, depth: int) -> Any:
        if depth > _DEPTH:
            raise InputError(f"{name}: field {path}: nested deeper than {_DEPTH} levels")
        if isinstance(value, Mapping):
            value = with_checkpoint(value, files=False)
            return {
                one: walked(part, field_name(str(one)[:80]), _path(path, one), depth + 1)
                for one, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [walked(part, key, path, depth + 1) for part in value]
        checked = next((check for end, check in _CHECKED.items() if key.endswith(end)), None)
        return checked(value, path, hub, name) if checked and isinstance(value, str) else value

    return walked(data, "", "", 0)


def _path(path: str, key: Any) -> str:
    text = f"{key}"[:60]
    return f"{path}.{text}" if path else text


def _framework(value: str, path: str, hub: bool, name: str) -> str:
    if value in (_AUTO, "all"):
        return value
    with naming(f"{name}: field {path}", "unknown "):
        return load_library().framework(value).id


def _template_id(value: str, path: str, hub: bool, name: str) -> str:
    _no_file(value, path, hub, name)
    with naming(f"{name}: field {path}", "unknown "):
        _template(value)
    return value


def _no_file(value: str, path: str, hub: bool, name: str) -> str:
    if is_file(value):
        raise InputError(f"{name}: field {path}: {quoted(value)} names a file; expected an id")
    return value


def _chip(value: str, path: str, hub: bool, name: str) -> str:
    _no_file(value, path, hub, name)
    if value in (_AUTO, "all"):
        return value
    with naming(f"{name}: field {path}", "unknown ", "accelerator "):
        return load_library().accelerator(value[:200]).id


def _model(value: str, path: str, hub: bool, name: str) -> str:
    with naming(f"{name}: field {path}", "unknown ", "model "):
        model = model_of(value, hub)
    return value if not model.version else model.pin if "@" in value else model.id


def _draft(value: str, path: str, hub: bool, name: str) -> str:
    """A draft model is one that we ship."""
    return _model(value, path, False, name)


def _no_correction(value: str, path: str, hub: bool, name: str) -> str:
    """A correction is the one that is shipped, else a file of somebody's own."""
    if value not in (NO_CORRECTION, SHIPPED):
        raise InputError(
            f"{name}: field {path}: {quoted(value)} names a file; expected {NO_CORRECTION} or {SHIPPED}"
        )
    return value


_CHECKED: Mapping[str, Callable[[str, str, bool, str], str]] = {
    "accelerator": _chip,
    "draft_model": _draft,
    "model": _model,
    "framework": _framework,
    "template": _template_id,
    "profiles": _no_file,
    "correction": _no_correction,
}
"""What is done with texts of fields, by the end of their names; the first that fits."""
