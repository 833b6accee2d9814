"""The model library in models/, and what else a user may name as a model."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mantile.library.architecture import Model
from mantile.library.documents import load, parse_json, read_text
from mantile.library.errors import InputError
from mantile.library.hub import fetch_config, is_hub_id
from mantile.library.huggingface import SIDECAR, parse_config, read_config
from mantile.library.ids import find_id
from mantile.library.profiles import data_folder


@cache
def model_ids() -> tuple[str, ...]:
    """Ids of the models we ship."""
    return tuple(sorted(path.stem for path in data_folder("models").glob("*.yaml")))


@cache
def ids_by_hub_id() -> dict[str, str]:
    """Our id of each hub id that we ship, from the text of the files: validating them all takes seconds."""
    ids = {}
    for identifier in model_ids():
        text = read_text(data_folder("models") / f"{identifier}.yaml")
        hub_id = re.search(r"^hub_id: *(\S+) *$", text, re.MULTILINE)
        if hub_id is not None:
            ids[hub_id.group(1).strip("\"'")] = identifier
    return ids


def load_model(name: str) -> Model:
    """A model by what a user calls it.

    Args:
        name: our id of it, in any spelling; its hub id; the path of a config.json, of a params.json of
            Mistral, of a folder that holds one, or of a GGUF file. A hub id that we do not ship is read from
            the hub.

    Raises:
        InputError: if there is no such model, several could be meant, or its config is not one that we
            support.

    Example:
        mantile.load_model("llama-3.1-8b").architecture.value("layers")
    """
    identifier = name if name in model_ids() else ids_by_hub_id().get(name)
    if identifier is not None:
        return _shipped(identifier)
    path = Path(name)
    if _is_folder(path, name) or path.suffix in (".json", ".gguf"):
        return _from_file(path)
    if is_hub_id(name):
        return _from_hub(name)
    return _shipped(find_id("model", name[:120], model_ids()))


def _shipped(identifier: str) -> Model:
    model = load(Model, data_folder("models") / f"{identifier}.yaml")
    if model.id != identifier:
        raise InputError(
            f"models/{identifier}.yaml: field id: expected {identifier!r}, as the file is called, "
            f"found {model.id!r}"
        )
    return model


def _is_folder(path: Path, name: str) -> bool:
    try:
        return bool(name) and path.is_dir()
    except OSError:  # a name that is too long for a path, and so on
        return False


def _from_file(path: Path) -> Model:
    """A model of the user, called like its folder, or like its file where that has a name of its own."""
    place = path.resolve()
    if not path.is_dir():
        place = place.parent if path.stem in ("config", "params") else place.with_suffix("")
    return Model(
        id=_identifier(place.name),
        name=place.name[:120] or "model",
        source=f"{path.name} given by the user",
        architecture=read_config(path),
    )


def _from_hub(hub_id: str) -> Model:
    config, sidecar = fetch_config(hub_id, SIDECAR)
    architecture = parse_config(
        parse_json(read_text(config), f"{hub_id}/config.json"),
        f"{hub_id}/config.json",
        parse_json(read_text(sidecar), f"{hub_id}/{SIDECAR}") if sidecar is not None else None,
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
