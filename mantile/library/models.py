"""The model library in models/, and what else a user may name as a model."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mantile.library.architecture import Model
from mantile.library.documents import load, parse_json, read_text
from mantile.library.errors import InputError, unknown
from mantile.library.hub import fetch_config, is_hub_id
from mantile.library.huggingface import SIDECAR, parse_config, read_config
from mantile.library.profiles import data_folder


@cache
def model_ids() -> tuple[str, ...]:
    """Ids of the models we ship."""
    return tuple(sorted(path.stem for path in data_folder("models").glob("*.yaml")))


@cache
def _hub_ids() -> dict[str, str]:
    """Our id of each hub id we ship; read from the files' text, since validating them all would take seconds."""
    found = {}
    for identifier in model_ids():
        text = read_text(data_folder("models") / f"{identifier}.yaml")
        hub_id = re.search(r"^hub_id: *(\S+) *$", text, re.MULTILINE)
        if hub_id is not None:
            found[hub_id.group(1).strip("\"'")] = identifier
    return found


def load_model(name: str) -> Model:
    """A model by our id or its hub id, from a config.json or a folder that holds one, or from the hub.

    Raises:
        InputError: if there is no such model, or its config is not one we support.
    """
    if name in model_ids():
        model = load(Model, data_folder("models") / f"{name}.yaml")
        if model.id != name:
            raise InputError(
                f"models/{name}.yaml: field id: expected {name!r} as the file is called, found {model.id!r}"
            )
        return model
    if name in _hub_ids():
        return load_model(_hub_ids()[name])
    path = Path(name)
    try:
        is_folder = bool(name) and path.is_dir()
    except OSError:
        is_folder = False
    if is_folder or path.suffix == ".json":
        title = (
            path.resolve().name
            if path.is_dir()
            else path.resolve().parent.name
            if path.stem == "config"
            else path.stem
        )
        return Model(
            id=_identifier(title),
            name=title[:120] or "model",
            source=f"{path.name} given by the user",
            architecture=read_config(path),
        )
    if is_hub_id(name):
        return _from_hub(name)
    raise unknown("model", name[:120], model_ids())


def _from_hub(hub_id: str) -> Model:
    config, sidecar = fetch_config(hub_id, SIDECAR)
    beside = parse_json(read_text(sidecar), f"{hub_id}/{SIDECAR}") if sidecar is not None else None
    architecture = parse_config(
        parse_json(read_text(config), f"{hub_id}/config.json"), f"{hub_id}/config.json", beside
    )
    title = hub_id.partition("/")[2]
    return Model(
        id=_identifier(title),
        name=title,
        hub_id=hub_id,
        source=f"config.json of {hub_id}, read from the hub",
        architecture=architecture,
    )


def _identifier(title: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.") or "model"
