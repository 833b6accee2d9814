"""Which modules a quantisation scheme names: one by one, with wildcards, or by regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from mantile.library.errors import InputError, quoted
from mantile.library.huggingface.config import Config
from mantile.library.huggingface.linear_patterns import LinearPatterns, TooMuch, Unsupported

_ROOTS = ("model.language_model.", "language_model.model.", "language_model.", "model.", "backbone.", "")
_MOST_EXPRESSIONS, _MOST_WILDCARDS = 200, 2000
_MOST_WAYS = 300_000_000  # that are gone through patterns which look ahead: a few seconds


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
        self._where = f"{config.name}: field {field}"
        self._names: set[str] = set()
        self._looking: list[tuple[re.Pattern[str], int, int]] = []
        self._ways = 0
        expressions, wildcards = [], []
        for text in texts:
            if text.startswith("re:") or re.search(r"[\\^$(|]", text):
                expressions.append(text.removeprefix("re:"))
            elif "*" in text or "?" in text:
                wildcards.append(_of_wildcards(text))
            else:
                name = text.strip(".").removesuffix(".weight")
                self._names.add(name.removeprefix(next(root for root in _ROOTS if name.startswith(root))))
        if len(expressions) > _MOST_EXPRESSIONS or len(wildcards) > _MOST_WILDCARDS:
            raise InputError(
                f"{self._where}: too many patterns: expected at most {_MOST_EXPRESSIONS} expressions and "
                f"{_MOST_WILDCARDS} wildcards"
            )
        self._has_expressions = bool(expressions or wildcards)
        linear = [text for text in expressions if not self._looks_around(text)]
        try:
            self._linear = LinearPatterns([*linear, *wildcards])
        except re.error as error:
            raise InputError(f"{self._where}: a wildcard is not understood: {error}") from error
        except TooMuch:
            raise self._too_much() from None

    def match(self, names: Iterable[str]) -> bool:
        """Whether a module is named that has one of these names; they begin at `layers`, or are `lm_head`."""
        return any(self._matches(name) for name in names)

    def _matches(self, name: str) -> bool:
        if not self._names.isdisjoint(_spans(name)):
            return True
        if not self._has_expressions:
            return False
        try:
            if any(self._linear.match(root + name) for root in _ROOTS):
                return True
        except TooMuch:
            raise self._too_much() from None
        return any(self._found(root + name) for root in _ROOTS) if self._looking else False

    def _found(self, name: str) -> bool:
        """Whether a pattern that looks around stands for a name."""
        for expression, repeats, choices in self._looking:
            self._ways += max(1, len(name)) ** repeats * 2**choices
            if self._ways > _MOST_WAYS:
                raise self._too_much()
            if expression.match(name):
                return True
        return False

    def _too_much(self) -> InputError:
        return InputError(f"{self._where}: the patterns repeat too much to be matched safely")

    def _looks_around(self, text: str) -> bool:
        """Whether a pattern looks ahead or back; it is then kept apart, if it is a simple one.

        Raises:
            InputError: for one that is no regular expression, or looks around and is not simple.
        """
        try:
            LinearPatterns([text])
            return False
        except TooMuch:
            raise self._too_much() from None
        except (re.error, OverflowError, RecursionError) as error:
            raise InputError(f"{self._where}: {quoted(text)} is no regular expression: {error}") from error
        except Unsupported:
            repeats = len(re.findall(r"(?<!\\)(?:[*+{]|(?<!\()\?)", text))
            choices = text.count("|")
            if (
                len(text) > 500
                or re.search(r"(?<!\\)\)[*+{?]|\\[1-9]|\(\?P=", text)
                or repeats > 3
                or choices > 8
            ):
                raise InputError(
                    f"{self._where}: the pattern {quoted(text)} repeats too much to be matched safely"
                ) from None
            self._looking.append((re.compile(text), repeats, choices))
            return True


@lru_cache(maxsize=4096)
def _spans(name: str) -> tuple[str, ...]:
    """All that a module lies in or may be called, without what stands before: a.b, a, b."""
    parts = name.split(".")
    return tuple(
        ".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 1, len(parts) + 1)
    )


def _of_wildcards(text: str) -> str:
    """A name with * and ? as a regular expression; what stands inside the module is meant too.

    Square brackets stand for one of several characters, as in file names.
    """
    return "".join(_part(part) for part in _PARTS.findall(text)) + r"(?:\..*)?\Z"


_PARTS = re.compile(r"\*+|\?|\[!?[^\]\\]+\]|.", re.DOTALL)


def _part(part: str) -> str:
    if part.startswith("*"):
        return "(?:.|\n)*"
    if part == "?":
        return "(?:.|\n)"
    if len(part) > 1:
        return f"[^{part[2:]}" if part.startswith("[!") else part
    return re.escape(part)
