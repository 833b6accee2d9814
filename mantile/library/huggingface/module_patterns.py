"""Which modules a quantisation scheme names: one by one, with wildcards, or by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate

from mantile.library.errors import InputError
from mantile.library.huggingface.config import Config

_ROOTS = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.", "")
_MOST_EXPRESSIONS, _MOST_WILDCARDS = 200, 2000


class ModulePatterns:
    """The modules that a list of texts names; what stands inside a named module is named too.

    Args:
        config: the file, for errors.
        field: where the list stands, for errors.
        texts: names, names with * and ?, or regular expressions, with or without "re:" before them.

    Raises:
        InputError: if there are too many patterns, or one that is no regular expression or repeats too much.
    """

    def __init__(self, config: Config, field: str, texts: Iterable[str]) -> None:
        self._names: set[str] = set()
        self._expressions: list[re.Pattern[str]] = []
        wildcards = []
        for text in texts:
            if text.startswith("re:") or re.search(r"[\\^$(|]", text):
                self._expressions.append(_expression(config, field, text.removeprefix("re:")))
            elif "*" in text or "?" in text:
                wildcards.append(re.sub(r"\\[Zz]$", "", translate(text)) + r"(?:\..*)?\Z")
            else:
                name = text.strip(".").removesuffix(".weight")
                self._names.add(name.removeprefix(next(root for root in _ROOTS if name.startswith(root))))
        if len(self._expressions) > _MOST_EXPRESSIONS or len(wildcards) > _MOST_WILDCARDS:
            raise InputError(
                f"{config.name}: field {field}: too many patterns: expected at most "
                f"{_MOST_EXPRESSIONS} expressions and {_MOST_WILDCARDS} wildcards"
            )
        if wildcards:
            self._expressions.append(re.compile("|".join(wildcards)))

    def match(self, names: Iterable[str]) -> bool:
        """Whether a module is named that has one of these names; they begin at `layers`, or are `lm_head`."""
        return any(self._matches(name) for name in names)

    def _matches(self, name: str) -> bool:
        parts = name.split(".")
        if self._names and any(
            ".".join(parts[start:end]) in self._names
            for start in range(len(parts))
            for end in range(start + 1, len(parts) + 1)
        ):
            return True
        return any(expression.match(root + name) for expression in self._expressions for root in _ROOTS)


def _expression(config: Config, field: str, text: str) -> re.Pattern[str]:
    """A regular expression that cannot take forever: no repeated groups and few repetitions."""
    if len(text) > 500 or re.search(r"(?<!\\)\)[*+{]", text) or len(re.findall(r"(?<!\\)[*+{]", text)) > 6:
        raise InputError(
            f"{config.name}: field {field}: the pattern {text!r:.80} repeats too much to be matched safely"
        )
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"{config.name}: field {field}: {text!r:.80} is no regular expression: {error}"
        ) from error
