"""A HuggingFace config.json to our architecture facts, without torch and without network.

A missing key is not null, defaults differ by model class, and some biases are implied by the class and stated
nowhere: each family states its own. What no family covers is refused by name, never guessed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.documents import parse_json, read_text
from mantile.library.errors import InputError
from mantile.library.gguf_header import read_gguf
from mantile.library.huggingface.architectures import FIELD, OTHER_CLASS, read_class
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.families import FAMILIES, read_architecture
from mantile.library.huggingface.gguf import config_of, words_of
from mantile.library.huggingface.mistral_params import FILE as PARAMS
from mantile.library.huggingface.mistral_params import WORDS, config_of_params, is_params
from mantile.library.huggingface.own_words import OwnWords
from mantile.library.huggingface.unread import Recorded

SIDECAR = "hf_quant_config.json"


def parse_config(data: Any, name: str, sidecar: Any = None) -> Architecture:
    """The content of a config.json, or of a params.json of Mistral, to an architecture.

    Args:
        data: the parsed JSON.
        name: stands for the file in errors.
        sidecar: the parsed hf_quant_config.json beside it, if there is one.

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
    if not isinstance(model_type, str):
        raise InputError(
            f"{name}: field model_type is missing or not a text; supported: {', '.join(FAMILIES)}"
        )
    if sidecar is not None and not isinstance(sidecar, dict):
        raise InputError(
            f"{name}: {SIDECAR} beside it: expected a JSON object, found {type(sidecar).__name__}"
        )
    of_type = read_class(data, name, model_type)
    architecture = read_architecture(Config(name, model_type, fields, sidecar=sidecar))
    unread = fields.unread()
    named = unread.pop(FIELD, None)
    if named is not None and not of_type:
        unread[OTHER_CLASS] = named
    return architecture.model_copy(update={"unread": unread})


def _parse_other(data: dict[str, Any], name: str, words: OwnWords, sidecar: Any = None) -> Architecture:
    """A file of another form, as a config.json; sources and errors call its fields as it does."""
    try:
        return words.architecture(parse_config(data, name, sidecar))
    except InputError as error:
        raise InputError(words.text(str(error))) from error


def read_config(path: Path) -> Architecture:
    """A config.json or params.json, the folder of one, or a GGUF file to an architecture.

    A hf_quant_config.json beside a config.json is read too.
    """
    if path.suffix == ".gguf":
        header = read_gguf(path)
        return _parse_other(config_of(header), str(path), words_of(header))
    file = path
    if path.is_dir():
        names = ("config.json", PARAMS)
        file = next((path / name for name in names if (path / name).is_file()), path / names[0])
    beside = file.with_name(SIDECAR)
    sidecar = (
        parse_json(read_text(beside), str(beside))
        if file.name == "config.json" and beside.is_file()
        else None
    )
    return parse_config(parse_json(read_text(file), str(file)), str(file), sidecar)
