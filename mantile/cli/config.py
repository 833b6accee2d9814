"""What a user wants by default: a file of settings, and environment variables.

# ~/.config/mantile/config.yaml
defaults: {framework: sglang, price_basis: owned}
library: [~/chips]
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mantile.cli.output import look
from mantile.library.errors import InputError, near

VARIABLE = "MANTILE_CONFIG"
PREFIX = "MANTILE_"
LIBRARY = "MANTILE_LIBRARY"
_KEYS = ("defaults", "library", "format")
TEMPLATE = """\
# Settings of Mantile. Flags and scenario files go before them; `mantile config` shows what holds.
# Fields of a scenario that hold where a command line names a model and does not state them:
defaults:
  # accelerator: h100-sxm
  # framework: vllm
  # price_basis: cloud
# Folders with accelerators and models of your own: ID.yaml as `mantile list hardware add` writes it.
library:
  # - ~/mantile
"""


def config_path() -> Path:
    """Where the file of settings lies: $MANTILE_CONFIG, else in the user's folder of settings."""
    stated = os.environ.get(VARIABLE)
    if stated:
        return Path(stated).expanduser()
    from platformdirs import user_config_path

    return user_config_path("mantile") / "config.yaml"


@cache
def _read(path: Path) -> Mapping[str, Any]:
    """The settings of a file; none where there is no file.

    Raises:
        InputError: naming file and key.
    """
    if not path.is_file():
        if os.environ.get(VARIABLE):
            raise InputError(
                f"{VARIABLE}: {path}: no such file; unset it, or `mantile config --init` writes one"
            )
        return {}
    from mantile.library.documents import parse_yaml, read_text

    data = parse_yaml(read_text(path), str(path)) or {}
    if not isinstance(data, dict):
        raise InputError(f"{path}: expected keys such as defaults and library")
    wrong = next((key for key in data if key not in _KEYS), None)
    if wrong is not None:
        raise InputError(f"{path}: unknown key {wrong!r}; {near(str(wrong), _KEYS)}")
    return data


def settings() -> Mapping[str, Any]:
    """The settings of the user's file."""
    return _read(config_path())


def library_folders() -> list[Path]:
    """Folders with accelerators and models of the user's own, those of the environment first."""
    stated = [part for part in os.environ.get(LIBRARY, "").split(os.pathsep) if part]
    listed = settings().get("library") or []
    if not isinstance(listed, list) or not all(isinstance(folder, str) for folder in listed):
        raise InputError(f"{config_path()}: key library: expected a list of folders")
    folders = [Path(folder).expanduser() for folder in (*stated, *listed)]
    missing = next((folder for folder in folders if not folder.is_dir()), None)
    if missing is not None:
        raise InputError(
            f"{config_path() if str(missing) not in stated else LIBRARY}: {missing}: no such folder"
        )
    return folders


def wanted() -> dict[str, tuple[Any, str]]:
    """By field, the default that the user states, and where: environment variables go before the file.

    Raises:
        InputError: for what is no field.
    """
    from mantile.library.scenario_fields import INPUT_NAMES, field_name

    known = set(INPUT_NAMES) | {"model"}
    stated = settings().get("defaults") or {}
    if not isinstance(stated, dict):
        raise InputError(
            f"{config_path()}: key defaults: expected fields of a scenario, such as framework: vllm"
        )
    found: dict[str, tuple[Any, str]] = {}
    for key, value in stated.items():
        name = field_name(str(key))
        if name not in known:
            raise InputError(f"{config_path()}: defaults: unknown field {key!r}; {near(str(key), known)}")
        if value is not None:
            found[name] = value, str(config_path())
    for variable, text in os.environ.items():
        name = field_name(variable.removeprefix(PREFIX).lower())
        if variable.startswith(PREFIX) and name in known and text:
            found[name] = _typed(name, text, variable), variable
    return found


def _typed(name: str, text: str, variable: str) -> Any:
    from mantile.library.fields import DECODE
    from mantile.library.scenario_fields import SCENARIO_FIELDS
    from mantile.library.typed_numbers import number_of

    declared = SCENARIO_FIELDS.get(name.removeprefix(DECODE))
    if declared is None or declared.kind is str or declared.is_day:
        return text
    value = number_of(text)
    if value is None:
        raise InputError(f"{variable}={text}: expected a number, such as 2048 or 2k")
    return value


def defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the user wants by default and a command line does not state; they are told."""
    from mantile.library.scenario_fields import field_name

    stated = {field_name(name) for name in given}
    if "gpus" in given:
        stated |= {"tp", "dp"}
    if "request_rate" in stated:
        stated |= {"concurrency"}
    taken = {name: (value, place) for name, (value, place) in wanted().items() if name not in stated}
    taken.pop("model", None)
    if taken:
        by_place: dict[str, list[str]] = {}
        for name, (value, place) in taken.items():
            by_place.setdefault(place, []).append(f"{name} {value}")
        look.note("; ".join(f"{', '.join(said)} by {place}" for place, said in by_place.items()))
    return {name: value for name, (value, _) in taken.items()}
