"""The model library in models/, and what else a user may name as a model."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path

from mantile.library.architecture import Model
from mantile.library.documents import load, parse_json, read_text
from mantile.library.errors import InputError
from mantile.library.hub import MAIN, HubName, fetch_code, fetch_config, hub_name
from mantile.library.huggingface import SIDECAR, parse_config, read_config
from mantile.library.huggingface.other_kinds import GGUF, WEIGHTS
from mantile.library.mlx_names import format_not_stated, in_format, mixed_formats, of_mlx
from mantile.library.model_names import Known, Named, gguf_tag, names_an_embedder, usual_name
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
def known_models() -> Known:
    """What the models we ship are called, from the text of the files: validating them all takes seconds."""
    hub_ids: dict[str, str] = {}
    titles: dict[str, str] = {}
    checkpoints: dict[str, tuple[str, str | None]] = {}
    kinds: dict[str, str] = {}
    for identifier in model_ids():
        text = read_text(data_folder("models") / f"{identifier}.yaml")
        hub_id, title, own = (_stated(pattern, text) for pattern in (_HUB_ID, _TITLE, _OWN_FORMAT))
        hub_ids[identifier], titles[identifier], kinds[identifier] = hub_id, title, own
        for listed, stored in _CHECKPOINT.findall(text):
            checkpoints[listed] = identifier, None if stored == own else stored
    return Known(hub_ids, titles, checkpoints, kinds)


_HUB_ID = re.compile(r"^hub_id: *(\S+) *$", re.MULTILINE)
_TITLE = re.compile(r"^name: *(.+?) *$", re.MULTILINE)
_OWN_FORMAT = re.compile(r"^    weights_dtype: \{value: ([^,}]+)", re.MULTILINE)
_CHECKPOINT = re.compile(r"^  - \{hub_id: ([^,]+), weights_dtype: ([^,]+),", re.MULTILINE)


def _stated(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else found.group(1).strip("\"'")


def load_model(name: str, trust_remote_code: bool = False) -> Model:
    """A model by what a user calls it.

    Args:
        name: our id of it, in any spelling, or id@version; the path of a config.json, of a params.json of
            Mistral, of a folder that holds one, of a GGUF file, or of a file as models/ has them; its hub id
            or the address of its page there. A path that exists goes before a hub id. A hub id that we do not
            ship is read from the hub.
        trust_remote_code: whether code that lies beside its config.json may run, without network, where
            neither we nor transformers can read its type.

    Raises:
        InputError: if there is no such model, several could be meant, or its config is not one that we
            support; with what to do.

    Example:
        mantile.load_model("llama-3.1-8b").architecture.value("layers")
        mantile.load_model("llama-3.1-8b@1").version
    """
    if name in model_ids():
        return _shipped(name)
    if _is_path(name):
        return _from_path(Path(name).expanduser(), trust_remote_code)
    return named_model(name, True, trust_remote_code)


def checkpoint_of(name: str, files: bool = True) -> Named | None:
    """The model that we ship by any of its names, with the data type of the weights that the name says.

    Args:
        files: whether a path that exists goes before a name, as for `load_model`.

    Returns:
        None for a file, a model of the hub alone, and a name that nobody knows.

    Example:
        checkpoint_of("zai-org/GLM-5.2-FP8")        # id glm-5.2, weights_dtype fp8-block
    """
    to_find = len(name) <= _LONGEST and name not in model_ids()
    found = _named(known_models(), name) if to_find else None
    return None if found is None or (files and _is_path(name)) else found


_LONGEST = 300  # characters of a name


@lru_cache(1024)
def _named(known: Known, name: str) -> Named | None:
    try:
        return _ours(known, usual_name(name.partition("@")[0]))[0]
    except InputError:
        return None


def _is_path(name: str) -> bool:
    """Whether a name is that of a file or a folder, there or not."""
    path = Path(name).expanduser()
    suffix = path.suffix.lower()
    return bool(name) and (
        _exists(path) or suffix in (".json", ".yaml", GGUF, *WEIGHTS) or _PATH.match(name) is not None
    )


def named_model(name: str, hub: bool = False, trust_remote_code: bool = False) -> Model:
    """A model by its name alone: no file of the user is opened.

    Args:
        name: our id of it, in any spelling, or id@version; its hub id or the address of its page there.
        hub: whether a model that we do not ship may be read from the hub.
        trust_remote_code: as of `load_model`.

    Raises:
        InputError: if there is no such model, or several could be meant; with what to do.

    Example:
        named_model("meta-llama/Llama-3.1-8B-Instruct").id    # llama-3.1-8b
    """
    called, at, version = name.partition("@")
    if at and not version:
        raise InputError(f"model {name!r:.120}: expected a version after the @, or no @")
    called = usual_name(called)
    ours, asked = _ours(known_models(), called)
    if ours is not None:
        model = _shipped(f"{ours.id}{at}{version}")
        source = f"{model.source}; {ours.granted}"
        return model.model_copy(update={"source": source}) if ours.granted else model
    if asked is None:
        raise InputError(f"unknown model {name!r:.120}; `mantile list models` shows those that we ship")
    if at:
        raise InputError(f"{name}: only models that we ship have versions; expected {asked.id}")
    stored = _of_mlx(asked.id) if asked.revision == MAIN else None
    if stored is not None:
        return stored
    if not hub:
        nearest = _nearest(asked.id) or "expected an id of `mantile list models`"
        raise InputError(f"unknown model {name!r:.120}: the hub is not read here; {nearest}")
    return _from_hub(asked, trust_remote_code)


def is_model_file(name: str) -> bool:
    """Whether a path is that of a YAML file with a model, as `add_model` writes them, and no scenario."""
    path = Path(name).expanduser()
    if path.suffix.lower() != ".yaml" or not _exists(path) or path.is_dir():
        return False
    return re.search(r"^architecture:", read_text(path), re.MULTILINE) is not None


_PATH = re.compile(r"[~./\\]*[/\\]|[A-Za-z]:\\")  # what a path that is no hub id begins with


def _shipped(name: str) -> Model:
    """A model by id or id@version; its sources hold what their status promises."""
    model = shelf().load(name)
    check_sources(model, f"models/{model.id}.yaml")
    return model


def _ours(known: Known, called: str) -> tuple[Named | None, HubName | None]:
    """The model that we ship by a name, and its name on the hub; None for a revision of the hub."""
    asked = None if gguf_tag(called) else hub_name(called)
    if asked is None:
        return known.find(called[:120]), None
    return (known.find(asked.id) if asked.revision == MAIN else None), asked


def _of_mlx(hub_id: str) -> Model | None:
    """A model that we ship as a checkpoint of MLX, as EXO lists them; None for any other name."""
    mixed = mixed_formats(hub_id)
    found = mixed or of_mlx(hub_id)
    if found is None:
        return None
    title, form = found
    try:
        ours = known_models().find(title)
    except InputError:  # it is none that we ship: the hub is asked
        return None
    if ours is None:
        return None
    model = _shipped(ours.id)
    name = hub_id.rpartition("/")[2]
    says = f"of the checkpoint {hub_id}, assumed" if mixed else f"that the name {hub_id} says"
    return Model(
        id=_identifier(name),
        name=name,
        hub_id=hub_id,
        source=f"models/{model.id}.yaml in the format {says}: {model.source}",
        architecture=in_format(model.architecture, form) if form else model.architecture,
    )


def _nearest(hub_id: str) -> str:
    """What we ship that comes nearest to a name of the hub, as a way out; empty where nothing does."""
    found = format_not_stated(hub_id)
    if found is None:
        return known_models().nearest(hub_id)
    title, form, near = found
    try:
        ours = known_models().find(title)
    except InputError:
        ours = None
    told = f"its name ({form}) does not say which weights have how many bits, its config does"
    if ours is None:
        return told
    by_bits = f", the nearest of which is weights_dtype {near}" if near else "; MLX's here have more bits"
    return f"{told}; or give {ours.id} in another data type{by_bits}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name that is too long for a path, and so on
        return False


def _from_path(path: Path, trust_remote_code: bool) -> Model:
    """A model of the user, called like its folder, or like its file where that is not called config.json."""
    if not _exists(path):
        what = "a .gguf file" if path.suffix.lower() == GGUF else "a config.json, or its folder"
        raise InputError(f"{path}: No such file or folder; expected {what}")
    suffix = "" if path.is_dir() else path.suffix.lower()
    if suffix in WEIGHTS:
        raise InputError(f"{path}: a file of weights; expected the config.json that lies beside them")
    if suffix == ".yaml":
        return load(Model, path)
    if suffix not in ("", ".json", GGUF) or not (suffix or path.is_dir()):
        raise InputError(
            f"{path}: expected a .json file such as config.json, a folder that holds one, a .gguf file, or a "
            ".yaml file as `mantile list models add` writes them"
        )
    place = path.resolve()
    if not path.is_dir():
        place = place.parent if path.stem in ("config", "params") else place.with_suffix("")
    architecture = read_config(path, trust_remote_code)
    return Model(
        id=_identifier(place.name),
        name=place.name[:120] or "model",
        source=f"{path.name} given by the user",
        code=_code(path if path.is_dir() else path.parent) if trust_remote_code else {},
        architecture=architecture,
    )


def _code(folder: Path) -> dict[str, str]:
    """Digests of the code in a folder."""
    return {file.name: sha256(file.read_bytes()).hexdigest() for file in sorted(folder.glob("*.py"))}


def _from_hub(asked: HubName, trust_remote_code: bool) -> Model:
    hub_id = asked.id
    if names_an_embedder(hub_id):
        raise InputError(f"{hub_id}: named as an embedding model or reranker; it writes no tokens")
    try:
        config, sidecar = fetch_config(asked, SIDECAR)
        folder = fetch_code(asked) if trust_remote_code else None
    except InputError as error:
        nearest = _nearest(hub_id)
        raise InputError(f"{error}; {nearest}" if nearest else str(error)) from error
    architecture = parse_config(
        parse_json(read_text(config), f"{hub_id}/config.json"),
        f"{hub_id}/config.json",
        parse_json(read_text(sidecar), f"{hub_id}/{SIDECAR}") if sidecar is not None else None,
        folder,
    )
    title = hub_id.partition("/")[2]
    revision = "" if asked.revision == MAIN else f", revision {asked.revision}"
    return Model(
        id=_identifier(title),
        name=title,
        hub_id=hub_id,
        source=f"config.json of {hub_id}{revision}, read from the hub",
        code=_code(folder) if folder is not None else {},
        architecture=architecture,
    )


def _identifier(title: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", title.lower()).strip("-.") or "model"


def caches(model: Model) -> tuple[str, ...]:
    """Data types of the KV cache: the checkpoint's, and fp8."""
    own = model.architecture.choices.get("kv_dtype")
    return tuple(dict.fromkeys((str(own.value) if own is not None else "bf16", "fp8")))
