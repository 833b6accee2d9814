"""The model library in models/, and what else a user may name as a model."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mantile.library.architecture import Model
from mantile.library.documents import load
from mantile.library.errors import InputError, unknown
from mantile.library.huggingface import read_config
from mantile.library.profiles import data_folder


@cache
def model_ids() -> tuple[str, ...]:
    """Ids of the models we ship."""
    return tuple(sorted(path.stem for path in data_folder("models").glob("*.yaml")))


@cache
def _hub_ids() -> dict[str, str]:
    """Hub id of each model we ship."""
    return {identifier: load(Model, data_folder("models") / f"{identifier}.yaml").hub_id for identifier in model_ids()}


def load_model(name: str) -> Model:
    """A model by our id or its hub id, or from a config.json or a folder that holds one.

    Raises:
        InputError: if there is no such model, or its config is not one we support.
    """
    if name in model_ids():
        model = load(Model, data_folder("models") / f"{name}.yaml")
        if model.id != name:
            raise InputError(f"models/{name}.yaml: field id: expected {name!r} as the file is called, found {model.id!r}")
        return model
    by_hub_id = {hub_id: identifier for identifier, hub_id in _hub_ids().items() if hub_id}
    if name in by_hub_id:
        return load_model(by_hub_id[name])
    path = Path(name)
    try:
        is_folder = bool(name) and path.is_dir()
    except OSError:
        is_folder = False
    if is_folder or path.suffix == ".json":
        title = path.resolve().name if path.is_dir() else path.resolve().parent.name if path.stem == "config" else path.stem
        identifier = re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.") or "model"
        return Model(id=identifier, name=title[:120] or "model", source=f"{path.name} given by the user",
                     architecture=read_config(path))  # fmt: skip
    raise unknown("model", name[:120], model_ids())
