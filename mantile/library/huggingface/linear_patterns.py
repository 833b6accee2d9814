"""Regular expressions of strangers, matched in a time that grows with the length of the text alone.

All ways through a pattern are followed at once, and what was found out of them is kept: no pattern makes
anything go back. Python's own `re` goes back, and a pattern of 30 characters can keep it busy for years.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

_parser: Any = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
_MOST_STATES = 50_000  # of all patterns together
_MOST_WORK = 5_000_000  # states looked at: a few seconds
_BEGINNINGS, _ENDS = {"AT_BEGINNING", "AT_BEGINNING_STRING"}, {"AT_END", "AT_END_STRING"}
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_NOT_DIGIT": lambda char: not char.isdecimal(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda char: not char.isspace(),
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
    "CATEGORY_NOT_WORD": lambda char: not (char.isalnum() or char == "_"),
}
Test = Callable[[str], bool]


class Unsupported(Exception):
    """A pattern asks for what cannot be followed so: to look ahead or back, to repeat what was found."""


class TooMuch(Exception):
    """Patterns are too large, or take too long."""


class _Set:
    """Places in the patterns that a text may have led to, and where each next character leads."""

    __slots__ = ("accepts", "at_end", "next", "tests")

    def __init__(self, tests: Sequence[tuple[Test, int]], accepts: bool, at_end: bool) -> None:
        self.tests, self.accepts, self.at_end = tests, accepts, at_end
        self.next: dict[str, _Set] = {}


class LinearPatterns:
    """Patterns, any of which may match from the beginning of a text, as `re.match` does.

    >>> LinearPatterns(["layers\\\\.[0-3]\\\\."]).match("layers.2.mlp")
    True

    Raises:
        re.error: for what is no regular expression.
        Unsupported: for one that looks ahead or back, or refers to what it found.
        TooMuch: if they are too large.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._tests: dict[int, tuple[Test, int]] = {}
        self._empty: list[tuple[int, ...]] = [()]  # where a state leads without a character; 0 accepts
        self._when: dict[int, str] = {}  # states that hold only at the beginning or the end
        self._sets: dict[frozenset[int], _Set] = {}
        self._work = 0
        starts = []
        for text in texts:
            parsed = _parser.parse(text)
            if parsed.state.flags & ~re.UNICODE:
                raise Unsupported
            starts.append(self._sequence(parsed, 0))
        self._start = self._set(starts, beginning=True)

    def match(self, text: str) -> bool:
        """Whether a pattern matches a text from its beginning on.

        Raises:
            TooMuch: if all that was matched so far took too long.
        """
        now = self._start
        if not (now.tests or now.accepts or now.at_end):
            return False
        self._spend(len(text) // 10)
        for char in text:
            if now.accepts:
                return True
            following = now.next.get(char)
            if following is None:
                self._spend(len(now.tests))
                following = now.next[char] = self._set(to for test, to in now.tests if test(char))
            now = following
        return now.accepts or now.at_end

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > _MOST_WORK:
            raise TooMuch

    def _set(self, starts: Iterable[int], beginning: bool = False) -> _Set:
        """The set of all states that some lead to without a character."""
        open_, found = list(starts), set[int]()
        while open_:
            state = open_.pop()
            if state not in found:
                found.add(state)
                if self._when.get(state) != "end" and (beginning or self._when.get(state) != "beginning"):
                    open_.extend(self._empty[state])
        self._spend(len(found))
        key = frozenset(found)
        if beginning or key not in self._sets:
            tests = [self._tests[state] for state in sorted(found) if state in self._tests]
            made = _Set(tests, 0 in found, self._reaches_end(found, beginning))
            if beginning:
                return made
            self._sets[key] = made
        return self._sets[key]

    def _reaches_end(self, found: Iterable[int], beginning: bool) -> bool:
        """Whether the end of the text is all that is missing."""
        open_, seen = [state for state in found if self._when.get(state) == "end"], set[int]()
        while open_:
            state = open_.pop()
            if state not in seen:
                seen.add(state)
                if beginning or self._when.get(state) != "beginning":
                    open_.extend(self._empty[state])
        return 0 in seen

    def _state(self, *leads: int) -> int:
        self._empty.append(leads)
        if len(self._empty) > _MOST_STATES:
            raise TooMuch
        return len(self._empty) - 1

    def _sequence(self, items: Any, then: int) -> int:
        """The first state of items one after another, which lead to a state."""
        for operation, value in reversed(list(items)):
            then = self._item(str(operation), value, then)
        return then

    def _item(self, operation: str, value: Any, then: int) -> int:
        match operation:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                state = self._state()
                self._tests[state] = (_test(operation, value), then)
                return state
            case "BRANCH":
                return self._state(*(self._sequence(branch, then) for branch in value[1]))
            case "SUBPATTERN" if not value[1] and not value[2]:
                return self._sequence(value[3], then)
            case "AT" if str(value) in _BEGINNINGS | _ENDS:
                state = self._state(then)
                self._when[state] = "beginning" if str(value) in _BEGINNINGS else "end"
                return state
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = value
                return self._repeat(least, most, inner, then)
        raise Unsupported

    def _repeat(self, least: int, most: Any, items: Any, then: int) -> int:
        if most == _parser.MAXREPEAT:
            loop = self._state()
            self._empty[loop] = (self._sequence(items, loop), then)
            then = loop
        else:
            after = then
            for _ in range(most - least):
                then = self._state(self._sequence(items, then), after)
        for _ in range(least):
            then = self._sequence(items, then)
            self._state()  # so that nothing, repeated often, is counted too
        return then


def _test(operation: str, value: Any) -> Test:
    """Whether a character is one that a part of a pattern stands for."""
    match operation:
        case "LITERAL":
            return chr(value).__eq__
        case "NOT_LITERAL":
            return chr(value).__ne__
        case "ANY":
            return "\n".__ne__
        case "CATEGORY":
            if str(value) not in _CATEGORIES:
                raise Unsupported
            return _CATEGORIES[str(value)]
        case "RANGE":
            low, high = map(chr, value)
            return lambda char: low <= char <= high
    (first, _), *_ = value
    negated = str(first) == "NEGATE"
    tests = [_test(str(kind), part) for kind, part in (value[1:] if negated else value)]
    return lambda char: any(test(char) for test in tests) != negated
