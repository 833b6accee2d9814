"""Numbers of channels as facts: which of the facts of a block a number is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from mantile.library.architecture import BY_DEFAULT, Fact, Size, size_of
from mantile.library.facts import FACTS

TERMS = 6  # of a sum: query, key and value, each with a gate
COUNTS = (
    "attention_heads", "kv_heads", "state_heads", "state_groups", "mixer_size", "experts",
    "experts_per_token", "shared_experts",
)  # fmt: skip


@dataclass
class FactBook:
    """The facts of an architecture, filled while its blocks are read.

    Args:
        config: whole numbers among the fields of the class, which fills in its defaults, by name.
        stated: those that the user's config holds.
        named_otherwise: those of it that the class has no field of this name for.
    """

    class_name: str
    config: Mapping[str, int] = field(default_factory=dict)
    stated: Mapping[str, int] = field(default_factory=dict)
    named_otherwise: Mapping[str, int] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)

    def add(self, role: str, value: int, block: str, at: str = "") -> str:
        """The name of a fact of a role with this value; named after its block where others differ.

        Args:
            at: the module where it was seen.
        """
        for name in (role, f"{role}.{block}", *(f"{role}.{block}_{number}" for number in range(2, 100))):
            if role in ("width", "parts") and name == role:
                continue
            if name not in self.facts:
                self.facts[name] = Fact(value=value, origin="code", source=self._source(role, value, at))
                return name
            if self.facts[name].value == value:
                return name
        raise AssertionError(role)

    def _source(self, role: str, value: int, at: str) -> str:
        """Where a fact was seen, and the field with this number whose name is nearest to what it means."""
        kind = FACTS[role]
        own, meant = _stems(role), _stems(f"{role} {kind.label} {kind.note} {_CALLED.get(role, '')}")

        def nearness(name: str) -> tuple[int, bool, int]:
            stems = _stems(name)
            return len(stems & own), self.stated.get(name) == value, len(stems & meant)

        fields = {**self.config, **self.stated}
        named = [name for name in fields if value > 2 and value in (self.config.get(name), fields[name])]
        nearest = max((name for name in named if _stems(name) & meant), key=nearness, default="")
        seen = f"{self.class_name}{': ' + at if at else ''}"
        if not nearest:
            return seen
        is_stated = self.stated.get(nearest) == value
        if not is_stated:  # the class may take it from a field that it calls otherwise
            others = [name for name, number in self.named_otherwise.items() if number == value]
            alike = max(others, key=lambda name: len(_stems(name) & own), default="")
            is_stated, nearest = (True, alike) if _stems(alike) & own else (False, nearest)
        return f"{seen}, {nearest} {'in the config' if is_stated else BY_DEFAULT}"


def _stems(words: str) -> set[str]:
    """The beginnings of words, but for those that say nothing: of tok and token, of head and heads."""
    return {word[:3] for word in re.split(r"[^a-z]+", words.lower()) if len(word) > 2} - _EMPTY


_CALLED = {"hidden_size": "embd model", "ffn_size": "inner", "state_chunk": "block"}  # in configs, besides
_EMPTY = {"the", "tha", "and", "for", "one", "num", "all", "wit", "are"}


@dataclass
class Sizes:
    """The sizes that a block is known to have, most likely first."""

    book: FactBook
    block: str
    known: list[tuple[int, Size]] = field(default_factory=list)

    def number(self, size: Size) -> int:
        """What a size comes to."""
        return size_of(size, self.book.facts)

    def know(self, *sizes: Size) -> None:
        """Add sizes that numbers may stand for."""
        self.known += [(self.number(size), size) for size in sizes]

    def know_first(self, *sizes: Size) -> None:
        """Add sizes that are likelier than those known so far."""
        self.known[:0] = [(self.number(size), size) for size in sizes]

    def first_of(self, number: int, sizes: Iterable[Size]) -> Size:
        """The first of some sizes that a number is; "" if it is none."""
        return next((size for size in sizes if self.number(size) == number), "")

    def made_of(self, number: int, sizes: Iterable[Size]) -> Size:
        """A number as the sum of as few of some sizes as can be, the first ones first; "" if none."""
        parts: dict[int, Size] = {}
        for size in sizes:
            parts.setdefault(self.number(size), size)
        for terms in range(1, TERMS + 1):
            for chosen in combinations_with_replacement(parts, terms):
                if sum(chosen) == number:
                    return " + ".join(parts[one] for one in chosen)
        return ""

    def of(self, number: int, at: str, prefer: Iterable[Size] = (), counts: bool = True) -> Size:
        """A number as a size: a preferred one, a known one, or a width of its own.

        Args:
            at: the module where it was seen.
            counts: whether it may be how many there are of something, such as heads, or a width over all.
        """
        preferred = self.first_of(number, prefer)
        if preferred or number == 1:
            return preferred or "1"
        for value, size in self.known:
            if value == number and (counts or re.split(r"[.*]", size)[0] not in COUNTS):
                return size
        for value, size in self.known:
            if value > 16 and number % value == 0 and number // value <= 4 and _may_repeat(size):
                return " + ".join([size] * (number // value))
        name = self.book.add("width", number, _identifier(at), at)
        self.know(name)
        return name

    def fact_of(self, number: int, at: str) -> str:
        """The fact that says how many there are of something."""
        for value, size in self.known:
            if value == number and "*" not in size and "+" not in size:
                return size
        return self.book.add("parts", number, _identifier(at), at)


def _may_repeat(size: Size) -> bool:
    """Whether a multiple of a size is that many of it: of heads, or one module's width, it is by chance."""
    return "*" not in size and size.partition(".")[0] not in ("width", *COUNTS)


def _identifier(at: str) -> str:
    """A module's name as a part of an id."""
    parts = [part for part in re.sub(r"[^a-z0-9_.]", "", at.lower().replace("-", "_")).split(".") if part]
    return "_".join(part for part in parts if not part.isdigit()) or "top"


assert "width" in FACTS
