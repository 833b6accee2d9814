"""The class that a config names in `architectures`: what it says beside the model type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mantile.library.errors import InputError

FIELD = "architectures"
OTHER_CLASS = "architectures[0]"
"""The path of a class that is not of the model type, which nobody reads."""
_DRAFT = re.compile(r"eagle|medusa|dflash|nextn(?:model)?$|mtp(?:model)?$|draft", re.IGNORECASE)
_HEADLESS = re.compile(
    r"(?<!LMHead)Model$|ForSequenceClassification|ForTokenClassification|ForQuestionAnswering|ForMaskedLM"
    r"|Reward|ForEmbedding|ForRegression"
)
_OF_OTHERS = {"kimi_k2": ("deepseekv3",), "falcon": ("rw",), "stablelm": ("stablelm",)}
"""Beginnings of the names of classes, small, that a model type has beside its own."""


def read_class(fields: Mapping[str, Any], name: str, model_type: str) -> bool:
    """Whether the class that a config names is one of its model type; true where it names none.

    Args:
        name: of the file, for errors.

    Raises:
        InputError: for a class that drafts tokens for another model, or that has no LM head.

    Example:
        read_class({"architectures": ["LlamaForCausalLM"]}, "config.json", "llama")    # True
    """
    stated = fields.get(FIELD)
    classes = [one for one in stated if isinstance(one, str)] if isinstance(stated, list) else []
    named = next((one for one in classes if not _HEADLESS.search(one)), classes[0] if classes else None)
    if not isinstance(named, str):
        return True
    if _DRAFT.search(named):
        raise InputError(
            f"{name}: field {FIELD}: {named!r:.80} drafts tokens for another model, which is not estimated; "
            "give the config of the model that it drafts for, with speculation in the scenario"
        )
    if _HEADLESS.search(named):
        raise InputError(
            f"{name}: field {FIELD}: expected a class with an LM head, such as LlamaForCausalLM, found "
            f"{named!r:.80}: its checkpoint has none and generates no tokens. To estimate its decoder with "
            f"an LM head all the same, leave {FIELD} out"
        )
    plain = _plain(model_type.removesuffix("_text"))
    return _plain(named).startswith((plain, *_OF_OTHERS.get(model_type, ())))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
