"""The model library in models/, and what else a user may name as a model."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mantile.library.architecture import Model
from mantile.library.documents import parse_json, read_text
from mantile.library.errors import InputError, unknown
from mantile.library.hub import MAIN, HubName, fetch_config, hub_name
from mantile.library.huggingface import SIDECAR, parse_config, read_config
from mantile.library.huggingface.other_kinds import WEIGHTS
from mantile.library.model_names import Known, names_an_embedder
from mantile.library.profile_facts import check_sources
from mantile.library.profiles import data_folder
from mantile.library.versions import Shelf


def shelf() -> Shelf[Model]:
    """The models we ship, in all their versions."""
    return Shelf("models", data_folder("models"), Model)


@cache
def model_ids() -> tuple[str, ...]:
    """Ids of the models we ship."""
    return shelf().ids


@cache
def ids_by_hub_id() -> dict[str, str]:
    """Our id of each hub id that we ship."""
    return {hub_id: identifier for identifier, hub_id in known_models().hub_ids.items()}


@cache
def known_models() -> Known:
    """What the models we ship are called, from the text of the files: validating them all takes seconds."""
    hub_ids: dict[str, str] = {}
    checkpoints: dict[str, tuple[str, str | None]] = {}
    for identifier in model_ids():
        text = read_text(data_folder("models") / f"{identifier}.yaml")
        hub_id, own = (_stated(pattern, text) for pattern in (_HUB_ID, _OWN_FORMAT))
        hub_ids[identifier] = hub_id
        for listed, stored in _CHECKPOINT.findall(text):
            checkpoints[listed] = identifier, None if stored == own else stored
    return Known(hub_ids, checkpoints)


_HUB_ID = re.compile(r"^hub_id: *(\S+) *$", re.MULTILINE)
_OWN_FORMAT = re.compile(r"^    weights_dtype: \{value: ([^,}]+)", re.MULTILINE)
_CHECKPOINT = re.compile(r"^  - \{hub_id: ([^,]+), weights_dtype: ([^,]+),", re.MULTILINE)


def _stated(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else found.group(1).strip("\"'")


def load_model(name: str) -> Model:
    """A model by what a user calls it.

    Args:
        name: our id of it, in any spelling, or id@version; the path of a config.json, or of a folder that
            holds one; its hub id or the address of its page there. A path that exists goes before a hub id. A
            hub id that we do not ship is read from the hub.

    Raises:
        InputError: if there is no such model, several could be meant, or its config is not one that we
            support; with what to do.

    Example:
        mantile.load_model("llama-3.1-8b").architecture.value("layers")
        mantile.load_model("llama-3.1-8b@1").version
    """
    if name in model_ids():
        return _shipped(name)
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    if name and (_exists(path) or suffix == ".json" or suffix in WEIGHTS or _PATH.match(name)):
        return _from_path(path)
    called, at, version = name.partition("@")
    if at and not version:
        raise InputError(f"model {name!r:.120}: expected a version after the @, or no @")
    asked = hub_name(called)
    ours = _ours(called, asked)
    if ours is not None:
        identifier, taken_for_granted = ours
        model = _shipped(f"{identifier}{at}{version}")
        source = f"{model.source}; {taken_for_granted}"
        return model.model_copy(update={"source": source}) if taken_for_granted else model
    if asked is None:
        raise unknown("model", name[:120], model_ids())
    if at:
        raise InputError(f"{name}: only models that we ship have versions; expected {asked.id}")
    return _from_hub(asked)


_PATH = re.compile(r"[~./\\]*[/\\]|[A-Za-z]:\\")  # what a path that is no hub id begins with


def _shipped(name: str) -> Model:
    """A model by id or id@version; its sources hold what their status promises."""
    model = shelf().load(name)
    check_sources(model, f"models/{model.id}.yaml")
    return model


def _ours(called: str, asked: HubName | None) -> tuple[str, str] | None:
    """Our id of a model, and what that takes for granted; None for a model or a revision of the hub."""
    if asked is None:
        return known_models().find(called[:120])
    return known_models().find(asked.id) if asked.revision == MAIN else None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a path, and so on
        return False


def _from_path(path: Path) -> Model:
    """A model of the user, called like its folder, or like its file where that is not called config.json."""
    if not _exists(path):
        raise InputError(f"{path}: No such file or folder; expected a config.json, or its folder")
    if not path.is_dir() and path.suffix.lower() in WEIGHTS:
        raise InputError(f"{path}: a file of weights; expected the config.json that lies beside them")
    if not path.is_dir() and path.suffix.lower() != ".json":
        raise InputError(f"{path}: expected a .json file such as config.json, or a folder that holds one")
    place = path.resolve()
    if not path.is_dir():
        place = place.parent if path.stem == "config" else place.with_suffix("")
    return Model(
        id=_identifier(place.name),
        name=place.name[:120] or "model",
        source=f"{path.name} given by the user",
        architecture=read_config(path),
    )


def _from_hub(asked: HubName) -> Model:
    hub_id = asked.id
    if names_an_embedder(hub_id):
        raise InputError(f"{hub_id}: named as an embedding model or reranker; it writes no tokens")
    try:
        config, sidecar = fetch_config(asked, SIDECAR)
    except InputError as error:
        nearest = known_models().nearest(hub_id)
        raise InputError(f"{error}; {nearest}" if nearest else str(error)) from error
    architecture = parse_config(
        parse_json(read_text(config), f"{hub_id}/config.json"),
        f"{hub_id}/config.json",
        parse_json(read_text(sidecar), f"{hub_id}/{SIDECAR}") if sidecar is not None else None,
    )
    title = hub_id.partition("/")[2]
    revision = "" if asked.revision == MAIN else f", revision {asked.revision}"
    return Model(
        id=_identifier(title),
        name=title,
        hub_id=hub_id,
        source=f"config.json of {hub_id}{revision}, read from the hub",
        architecture=architecture,
    )


def _identifier(title: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.") or "model"
