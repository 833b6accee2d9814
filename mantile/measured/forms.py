"""The forms in which benchmarks and servers write what they measured: profiles/forms.yaml, a table.

A form says by which keys it is recognised, and which of our fields, in which unit, each key is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from math import inf
from typing import Any, Literal

from pydantic import Field

from mantile.library.documents import Strict, load_ours
from mantile.library.errors import InputError
from mantile.library.profiles import data_folder
from mantile.measured.metric_columns import SECONDS
from mantile.measured.syntax import flat, holds

UNITS = SECONDS | {"": 1.0, "mean": 1.0, "percent": 1e-2, "ns": 1e-9, "MB": 1e6, "GB": 1e9, "GiB": 2.0**30}
"""What a figure is multiplied by to be SI."""
LARGEST = 1e15  # of any number in a file
_COMMA = re.compile(r"\s*\d{1,3}(\.\d{3})+,\d+\s*|\s*\d+,(\d{1,2}|\d{4,})\s*")
_LONGEST_TEXT = 1_000
OF_KEY, OF_ALL = "unit", "mean"
"""Behind a field: the key `.unit` beside the figure says its unit; the mean of all keys counts."""
_STAT = r"(?P<stat>mean|avg|average|median|p\d\d)"
_PARTS = {"{stat}": _STAT, "{side}": "(?P<side>prefill|decode)", "{args}": "(?:args|config)", "*": ".*"}
_TOKEN = re.compile(r"(\{\w+\}|\*|\[[^\]]*\])")


class Form(Strict):
    """A row of the table of forms; profiles/forms.yaml says what each field means."""

    id: str
    source: str = Field(min_length=3)
    date: date
    name: str
    has: tuple[tuple[str, ...], ...] = Field(min_length=1)
    each: str | None = None
    read: dict[str, str] = Field(default_factory=dict)
    split: dict[str, str] = Field(default_factory=dict)
    when: dict[str, dict[str, dict[str, Any]]] = Field(default_factory=dict)
    constants: dict[str, Any] = Field(default_factory=dict, alias="is")
    assumes: dict[str, str] = Field(default_factory=dict)
    known: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] = ()
    apart: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    refused: str = ""
    ratio: Literal["around", "below"] | None = None
    rows: Literal["serving", "llama-bench", "inferencex"] = Field("serving", alias="as")

    @property
    def documented(self) -> str:
        """The line of the form in mantile/measured/README.md."""
        ways = "; or ".join(
            ", ".join(" or ".join(f"`{key}`" for key in keys.split("|")) for keys in way) for way in self.has
        )
        return f"| `{self.id}` | {self.name} | {ways} |"

    def fits(self, record: Any) -> bool:
        """Whether a record is of the form."""
        return any(
            all(any(holds(record, key) for key in keys.split("|")) for keys in way) for way in self.has
        )


class ClientTool(Strict):
    """A client of benchmarks: how its line begins, what its flags are, and what it does without them.

    Args:
        starts: words with which a line begins.
        flags: flag to our field.
        otherwise: what holds where a flag is left out.
        random: what holds as well where the lengths are those of random texts.
        dataset: the flag of the data set, and the words that stand for random texts.
        ratio: what a range ratio means, as of a form; both where that depends on the release.
    """

    id: str
    source: str = Field(min_length=3)
    date: date
    starts: tuple[str, ...]
    flags: dict[str, str]
    otherwise: dict[str, Any] = Field(default_factory=dict)
    random: dict[str, Any] = Field(default_factory=dict)
    dataset: str | None = None
    ratio: Literal["around", "below", "either"] | None = None


class FormTable(Strict):
    """All forms, the first that fits counts, and all clients."""

    forms: tuple[Form, ...]
    clients: tuple[ClientTool, ...] = ()


@cache
def form_table() -> FormTable:
    """The table of forms that we ship."""
    return load_ours(FormTable, data_folder("profiles") / "forms.yaml")


def form_of(record: Any) -> Form | None:
    """The form of a record, by its keys; None for one that is in no table."""
    return next((form for form in form_table().forms if form.fits(record)), None)


@dataclass
class Cells:
    """What a record says in our fields.

    Args:
        fields: by name, SI; a time with a statistic is `ttft_p50_s`.
        keys: the key of the file behind each field.
        notes: what reading assumes.
        unread: keys that are not used, with the reason.
        apart: why the run is not compared; empty where nothing speaks against it.
    """

    fields: dict[str, Any]
    keys: dict[str, str]
    notes: list[str]
    unread: dict[str, str]
    apart: str = ""


def cells_of(form: Form, record: Any) -> Cells:
    """A record in our fields, by the table of its form.

    Example:
        cells_of(form_of(record), record).fields["ttft_s"]      # seconds

    Raises:
        InputError: for numbers with a decimal comma: 10.500 would be one of several.
    """
    labels: Mapping[str, str] = getattr(record, "columns", {})
    cells = {key: value for key, value in flat(record) if value not in ("", None)}
    made = dict(_split(form, cells))
    held = made | cells
    _require_points(form, held)
    fields, keys, used, notes = dict[str, Any](), dict[str, str](), set[str](), [*form.notes]
    for pattern, words in form.when.items():
        for key in _matching(pattern, held):
            used.add(key)
            for name, value in words.get(str(held[key]), {}).items():
                if isinstance(value, str) and value.startswith("="):
                    if value[1:] in held:
                        held[name] = held[value[1:]]
                        used.add(value[1:])
                else:
                    fields[name] = value
    for pattern, place in form.read.items():
        target, _, unit = place.partition(" ")
        found: dict[str, list[float]] = {}
        for key, match in _matching(pattern, held).items():
            named = match.groupdict()
            name = _named(target, named)
            used.add(key)
            value = _si(
                held[key], unit, held.get(f"{key.rpartition('.')[0]}.unit"), notes, labels.get(key, key)
            )
            if value is None or (unit != OF_ALL and name in fields):
                continue
            if unit == OF_ALL:
                found.setdefault(name, []).append(float(value))
            else:
                fields[name], keys[name] = value, labels.get(key, key)
        fields |= {name: sum(values) / len(values) for name, values in found.items()}
    used |= {key for pattern in form.split for key in _matching(pattern, cells) if not used.isdisjoint(made)}
    apart = _apart(form, cells)
    used |= {key for pattern in form.apart for key in _matching(pattern, cells)}
    unread = _unread(form, cells, used, labels)
    return Cells(form.constants | fields, keys, notes, unread, apart)


def _require_points(form: Form, cells: Mapping[str, Any]) -> None:
    """Refuse numbers with a decimal comma among the keys that are read."""
    texts = {key: text for key, text in cells.items() if isinstance(text, str) and _COMMA.fullmatch(text)}
    for key in (key for pattern in form.read for key in _matching(pattern, texts)):
        raise InputError(f"{key} is {texts[key]}: a decimal comma; expected a decimal point in all numbers")


def _split(form: Form, cells: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Parts of texts as cells of their own."""
    for pattern, parts in form.split.items():
        for key in _matching(pattern, cells):
            text = cells[key][0] if isinstance(cells[key], list) and cells[key] else cells[key]
            if match := re.fullmatch(parts, str(text)[:_LONGEST_TEXT]):
                yield from ((name, value) for name, value in match.groupdict().items() if value is not None)


def _apart(form: Form, cells: Mapping[str, Any]) -> str:
    """Why a run is not compared."""
    for key, words in form.apart.items():
        if key in cells and str(cells[key]) not in words:
            return f"{key} is {cells[key]}: expected {' or '.join(words)}"
    return ""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """A key of the table as an expression."""
    parts = (
        f"(?:{re.escape(part[1:-1])})?" if part[:1] == "[" else _PARTS.get(part, re.escape(part))
        for part in _TOKEN.split(text)
    )
    return re.compile("".join(parts))


def _matching(pattern: str, cells: Mapping[str, Any]) -> dict[str, re.Match[str]]:
    """The keys that a key of the table means."""
    if not _TOKEN.search(pattern):
        return {pattern: re.match(".*", "")} if pattern in cells else {}  # type: ignore[dict-item]
    expression = _pattern(pattern)
    return {key: match for key in cells if (match := expression.fullmatch(key))}


def _named(target: str, named: Mapping[str, str]) -> str:
    """The field of a key: ttft_s with a median is ttft_p50_s."""
    target = target.replace("{side}", named.get("side") or "")
    stat = {"mean": "", "avg": "", "average": "", "median": "p50"}.get(
        named.get("stat", ""), named.get("stat")
    )
    if not stat:
        return target
    return f"{target.removesuffix('_s')}_{stat}_s" if target.endswith("_s") else f"{target}_{stat}"


def _si(value: Any, unit: str, beside: Any, notes: list[str], key: str) -> Any:
    """A figure in SI units, or a word; None for what is no figure that somebody measured."""
    if isinstance(value, list):
        value = value[0] if value else None
    if isinstance(value, str):
        text = value.strip().removesuffix(".") if value.strip() != "." else value
        value = _number(text) if _number(text) is not None else (text or None)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return None if value.lower() in ("none", "null", "n/a", "nan", "not set", "auto") else value
    if value != value:
        return None
    if abs(value) > LARGEST:
        return inf  # a whole number may be too large for a float
    factor = UNITS.get(str(beside) if unit == OF_KEY else unit)
    if factor is None:
        notes.append(f"{key}: its unit is {beside}, which is not known: left out")
        return None
    return value * factor if factor != 1.0 else value


def _number(text: str) -> int | float | None:
    """A number, with commas between thousands; None for another text."""
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", text) else text
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            continue
    return None


def _unread(
    form: Form, cells: Mapping[str, Any], used: set[str], labels: Mapping[str, str]
) -> dict[str, str]:
    """Keys that are not used and why; of a part of the file in which none is, the part."""
    beside = {f"{key.rpartition('.')[0]}.unit" for key in used}  # the unit of a figure that is read
    left = [key for key in cells if key not in used and key not in beside]
    inner: dict[str, int] = {}
    for key in used:
        for end in _ends(key):
            inner[end] = inner.get(end, 0) + 1
    found: dict[str, str] = {}
    for key in left:
        why = next((why for pattern, why in form.known.items() if _matching(pattern, {key: 0})), "")
        whole = next((end for end in _ends(key) if end not in inner), key)
        if whole != key and labels.get(key, key) == key:
            found.setdefault(f"{whole}.*", why or "not known")
        else:
            found.setdefault(labels.get(key, key), why or _spread(labels.get(key, key)))
    return found


def _ends(key: str) -> list[str]:
    """The parts of a file that hold a key, the largest first."""
    parts = key.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def _spread(key: str) -> str:
    spread = r"(^|[_.])(std|stddev|std_dev|variance)($|[_.])|(\.|: )(min|max|mode|sum|median|p\d+)$|^(p\d+)_"
    return "spread, an extreme, or another percentile" if re.search(spread, key) else "not known"
