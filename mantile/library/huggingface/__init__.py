"""A HuggingFace config.json to our architecture facts, without torch and without network.

A missing key is not null, defaults differ by model class, and some biases are implied by the class and stated
nowhere: each family states its own. What no family covers is refused by name, never guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.documents import parse_json, read_text, require_readable
from mantile.library.errors import InputError
from mantile.library.gguf_header import read_gguf
from mantile.library.huggingface.architectures import FIELD, OTHER_CLASS, read_class
from mantile.library.huggingface.config import Config, Uncovered
from mantile.library.huggingface.families import FAMILIES, read_architecture, type_of_class
from mantile.library.huggingface.gguf import config_of, words_of
from mantile.library.huggingface.mistral_params import FILE as PARAMS
from mantile.library.huggingface.mistral_params import WORDS, config_of_params, is_params
from mantile.library.huggingface.other_kinds import EMBEDDERS, lacking_config, refuse_other_kinds
from mantile.library.huggingface.own_words import OwnWords
from mantile.library.huggingface.unread import Recorded

SIDECAR = "hf_quant_config.json"


def parse_config(data: Any, name: str, sidecar: Any = None, trusted: Path | None = None) -> Architecture:
    """The content of a config.json, or of a params.json of Mistral, to an architecture.

    Args:
        data: the parsed JSON.
        name: stands for the file in errors.
        sidecar: the parsed hf_quant_config.json beside it, if there is one.
        trusted: the folder of the model's own code, where that may run; None runs no code of others.

    Raises:
        InputError: for an unsupported model_type, a class without an LM head, or a field that is missing or
            wrong, naming it.
    """
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected a JSON object, found {type(data).__name__}")
    if is_params(data):
        return _parse_other(config_of_params(data, name), name, WORDS, sidecar)
    fields = Recorded(data)
    model_type = fields.get("model_type")
    is_ours = isinstance(model_type, str) and model_type in FAMILIES
    of_type = is_ours and read_class(data, name, str(model_type))
    refuse_other_kinds(data, name)
    if not isinstance(model_type, str) or not model_type:
        likely = type_of_class(data.get("architectures"))
        hint = f'; expected "{likely}" by the class that it names' if likely else ""
        raise InputError(
            f"{name}: field model_type is missing or not a text{hint}; supported: {', '.join(FAMILIES)}"
        )
    if sidecar is not None and not isinstance(sidecar, dict):
        raise InputError(
            f"{name}: {SIDECAR} beside it: expected a JSON object, found {type(sidecar).__name__}"
        )
    if sidecar is not None:
        require_readable(sidecar, f"{name}: {SIDECAR} beside it")
    try:
        architecture = read_architecture(Config(name, model_type, fields, sidecar=sidecar))
    except Uncovered:
        from mantile.library.from_code import read_from_code
        from mantile.library.from_code.process import can_record

        if model_type in FAMILIES and not can_record():
            raise
        return read_from_code(Config(name, model_type, data, sidecar=sidecar), trusted)
    _refuse_contradiction(architecture, data, name, model_type)
    unread = fields.unread()
    named = unread.pop(FIELD, None)
    if named is not None and not of_type:
        unread[OTHER_CLASS] = named
    return architecture.model_copy(update={"unread": unread})


_LAYER_LISTS = ("hybrid_override_pattern", "layers_block_type", "layer_types", "block_configs")
"""Fields that list the kinds of layers: a mixture may have none of its experts there."""
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def _refuse_contradiction(
    architecture: Architecture, data: dict[str, Any], name: str, model_type: str
) -> None:
    """Refuse a file that counts experts where the class of its type has none.

    Raises:
        InputError: with both readings.
    """
    if architecture.value("experts") or any(name in data for name in _LAYER_LISTS):
        return
    for field in _EXPERTS:
        count = data.get(field)
        if isinstance(count, int) and count > 1:
            raise InputError(
                f"{name}: field {field}: {count} experts, but models of type {model_type} have none: "
                f"either the model is dense and {field} is wrong (leave it out, or 1), or it is a mixture "
                "and model_type is wrong (such as mixtral, qwen3_moe)"
            )


def _parse_other(data: dict[str, Any], name: str, words: OwnWords, sidecar: Any = None) -> Architecture:
    """A file of another form, as a config.json; sources and errors call its fields as it does."""
    try:
        return words.architecture(parse_config(data, name, sidecar))
    except InputError as error:
        raise InputError(words.text(str(error))) from error


def read_config(path: Path, trust_remote_code: bool = False) -> Architecture:
    """A config.json or params.json, the folder of one, or a GGUF file to an architecture.

    A hf_quant_config.json beside a config.json is read too.

    Raises:
        InputError: as `parse_config`; for a folder without any of these, with what it holds.
    """
    if path.suffix.lower() == ".gguf":
        header = read_gguf(path)
        return _parse_other(config_of(header), str(path), words_of(header))
    file = path
    if path.is_dir():
        names = ("config.json", PARAMS)
        file = next((path / name for name in names if (path / name).is_file()), path / names[0])
        if not file.is_file():
            raise lacking_config(str(path), _files_in(path), lambda name: _content(path / name))
    embedder = next((beside for beside in EMBEDDERS if file.with_name(beside).is_file()), None)
    if embedder is not None:
        raise InputError(f"{file}: an embedding model, as {embedder} beside it says; it writes no tokens")
    beside = file.with_name(SIDECAR)
    sidecar = _content(beside) if file.name == "config.json" and beside.is_file() else None
    return parse_config(_content(file), str(file), sidecar, file.parent if trust_remote_code else None)


def _content(file: Path) -> Any:
    return parse_json(read_text(file), str(file))


def _files_in(folder: Path) -> list[str]:
    """What a folder holds; of folders inside also a config.json, as the cache of the hub has it."""
    try:
        inside = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    configs = (*folder.glob("*/config.json"), *folder.glob("snapshots/*/config.json"))
    return [
        *(str(config.relative_to(folder)) for config in configs),
        *(f"{item.name}/" if item.is_dir() else item.name for item in inside),
    ]
