"""What a workbook was made with, as it says itself: a digest of each row, and what each input held.

Any later version holds a file against it: the formulas of the version that made it need not be known. It is
the second text of the hidden sheet, in a column of its own.

A row has two digests: of its formulas and fixed numbers, and of its texts and number formats. In formulas ids
stand for rows, so that rows may be moved.
"""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mantile.equations.ready_columns import NAME
from mantile.library.documents import parse_json
from mantile.library.errors import InputError
from mantile.library.signing import Verdict, check, read_private_key, sign
from mantile.workbook.book import KEYS, NOT_AVAILABLE, Cell
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.number_formats import normal_number_format
from mantile.workbook.package_part import letters
from mantile.workbook.places import id_column
from mantile.workbook.references import Formula, Reference, one_cell, with_references

_CONTENT, _WORDS = 5, 3  # letters of digests, six bits each
_NOTHING = ""  # of a row in which nothing stands
_SIGNED_AS = "rows of a workbook"  # kind of document, in what a signature is of
Place = tuple[int, int]
Contents = Mapping[str, Mapping[Place, Any]]
Forms = Callable[[str, Place], Any]
"""The normal form of the number format of a cell, by sheet and place."""


@dataclass(frozen=True)
class Difference:
    """A row that is not as made: where it stands in the file, its id, and whether its content differs.

    Args:
        row: in the file, from 0; None if the row is gone.
        content: formulas or fixed numbers differ; else texts or number formats.
    """

    sheet: str
    row: int | None
    id: str
    content: bool


@dataclass(frozen=True)
class TypedOver:
    """An input whose cell holds something else than as made."""

    sheet: str
    place: Place
    id: str
    held: Any
    found: Any


@dataclass(frozen=True)
class Made:
    """What a workbook was made with.

    Args:
        ids: by sheet the column in which its rows say their ids; None without ids.
        keys: by sheet with things in rows the column of their keys, which stand for ids.
        rows: by sheet the digests of its rows, from the first.
        typed: what cells held in which something is typed, by row and column; null nothing.
        rooms: cells for free text, by row and column.
        signature: of all this, as the file holds it; None if nobody signed.
    """

    ids: Mapping[str, int | None]
    rows: Mapping[str, tuple[str, ...]]
    typed: Mapping[str, Any]
    rooms: frozenset[str]
    keys: Mapping[str, int] = field(default_factory=dict)
    signature: Any = None

    @property
    def text(self) -> str:
        """As it stands in the file."""
        data: dict[str, Any] = {
            "ids": dict(self.ids),
            **({"keys": dict(self.keys)} if self.keys else {}),
            "rows": {name: ",".join(rows) for name, rows in self.rows.items()},
            "typed": dict(self.typed),
            "rooms": sorted(self.rooms),
        }
        data |= {} if self.signature is None else {"signature": self.signature}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def parse(cls, text: str, name: str) -> Made:
        """From the text in a file.

        Raises:
            InputError: if it is none.
        """
        data = parse_json(text, name)
        try:
            return cls(
                ids={str(sheet): column for sheet, column in data["ids"].items()},
                rows={str(sheet): tuple(rows.split(",")) for sheet, rows in data["rows"].items()},
                typed=dict(data["typed"]),
                rooms=frozenset(map(str, data["rooms"])),
                keys=dict(data.get("keys", {})),  # a file from before tables had keys
                signature=data.get("signature"),
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"{name}: what the file was made with is damaged ({error!r:.60}); expected ids, rows, typed "
                "and rooms: make the file anew from its scenario"
            ) from error

    @property
    def unsigned(self) -> Made:
        """The same without its signature."""
        return replace(self, signature=None)

    @property
    def digest(self) -> str:
        """SHA-256 of what is signed, in hexadecimal."""
        return hashlib.sha256(self.unsigned.text.encode()).hexdigest()

    def signed(self, key: Path) -> Made:
        """The same, signed.

        Args:
            key: a private key, as `mantile config keys new` writes it.

        Raises:
            InputError: if the file is no such key.
        """
        return replace(self, signature=sign(_SIGNED_AS, self.digest, read_private_key(key)))

    def verdict(self, trusted: Mapping[bytes, str] | None = None) -> Verdict:
        """What its signature is worth.

        Args:
            trusted: public keys and their names, of `mantile.library.signing.read_trusted`.
        """
        return check(_SIGNED_AS, self.digest, self.signature, trusted)

    def missing(self, contents: Contents) -> tuple[str, ...]:
        """Sheets that were there."""
        return tuple(name for name in self.rows if name not in contents)

    def differences(self, contents: Contents, forms: Forms) -> Iterator[Difference]:
        """Rows of a file that are not as made, by sheet, from the first."""
        reader = _Reader(contents, self.ids, self.keys, {*self.typed, *self.rooms}, forms)
        for name, made in self.rows.items():
            if name in contents:
                yield from _compared(name, made, tuple(reader.rows(name)), reader)

    def typed_over(self, contents: Contents) -> Iterator[TypedOver]:
        """Inputs that hold something else than as made."""
        reader = _Reader(contents, self.ids, self.keys, set(), None)
        for name in self.rows:
            for place, key in reader.keys(name):
                held, found = self.typed.get(key, _NOTHING), reader.content(name, place)
                if key in self.typed and _plain(found) != held:
                    yield TypedOver(name, place, reader.id(name, place[0]), held, found)


def made(book: EstimateBook) -> Made:
    """What a workbook is made with."""
    contents: dict[str, dict[Place, Any]] = {}
    ids = {name: id_column(sheet) for name, sheet in book.sheets.items()}
    for name, sheet in book.sheets.items():
        found = ((place, _content(book, name, cell)) for place, cell in sheet.cells.items())
        contents[name] = {place: content for place, content in found if content is not None}
    keys = {name: KEYS for name, sheet in book.sheets.items() if any(at == KEYS for *_, at in sheet.tables)}
    reader = _Reader(contents, ids, keys, set(), lambda name, place: _form(book.sheets[name].cells[place]))
    typed: dict[str, Any] = {}
    rooms = set()
    for name, sheet in book.sheets.items():
        for place, cell in sheet.cells.items():
            is_free = cell.room is not None and cell.entry is not NAME
            if is_free or (cell.style.unlocked and cell.entry is None):
                rooms.add(reader.key(name, place))
            elif cell.entry is not None:
                typed[reader.key(name, place)] = _plain(reader.content(name, place))
    reader.skip({*typed, *rooms})
    rows = {name: tuple(reader.rows(name)) for name in book.sheets}
    return Made(ids, rows, typed, frozenset(rooms), keys)


class _Reader:
    """Digests of rows, of a book or of a file.

    Args:
        ids: by sheet the column of ids; `keys` that of what stands for them.
        skipped: keys of cells that are no part of a row.
    """

    def __init__(
        self,
        contents: Contents,
        ids: Mapping[str, int | None],
        keys: Mapping[str, int],
        skipped: set[str],
        forms: Forms | None,
    ) -> None:
        self.contents, self.forms = contents, forms
        self.skip(skipped)
        self._ids: dict[str, dict[int, str]] = {}
        self._names: dict[tuple[str, int], str] = {}
        for name, column in ids.items():
            cells = contents.get(name, {}).items()
            texts = {
                row: text
                for of in (keys.get(name), column)
                for (row, at), text in cells
                if at == of and type(text) is str
            }
            self._ids[name], seen = texts, Counter[str]()
            for row, text in sorted(texts.items()):
                self._names[name, row] = f"{name}!{text}" + "'" * seen[text]  # answers stand twice
                seen[text] += 1

    def skip(self, keys: set[str]) -> None:
        """Leave cells out of their rows."""
        self.skipped = keys
        self._skipped_rows = {key[: key.index("]") + 1] for key in keys}

    def id(self, name: str, row: int) -> str:
        """What the id column of a sheet says of a row."""
        return self._ids.get(name, {}).get(row, "")

    def key(self, name: str, place: Place) -> str:
        """What a cell is called: its row and the letter of its column."""
        return f"[{self._row(name, place[0])}]{letters(place[1] + 1)}"

    def keys(self, name: str) -> Iterator[tuple[Place, str]]:
        """All cells of rows of a sheet in which something stands, with empty ones among them."""
        cells = self.contents.get(name, {})
        width = max((column for _, column in cells), default=-1) + 1
        for row in sorted({row for row, _ in cells}):
            yield from (((row, column), self.key(name, (row, column))) for column in range(width))

    def content(self, name: str, place: Place) -> Any:
        """What a cell holds, ids in place of rows in a formula."""
        content = self.contents[name].get(place)
        if isinstance(content, Formula):
            return Formula(with_references(one_cell(content), name, self._reference))
        return content

    def rows(self, name: str) -> Iterator[str]:
        """The digests of the rows of a sheet."""
        by_row: dict[int, list[tuple[int, Any]]] = {}
        for (row, column), content in self.contents[name].items():
            by_row.setdefault(row, []).append((column, content))
        for row in range(max(by_row, default=-1) + 1):
            yield self._digest(name, row, sorted(by_row.get(row, ()), key=lambda cell: cell[0]))

    def _digest(self, name: str, row: int, cells: list[tuple[int, Any]]) -> str:
        content, words = [], []
        here = f"[{self._row(name, row)}]"
        skips = here in self._skipped_rows
        for column, value in cells:
            if (skips and self.key(name, (row, column)) in self.skipped) or not str(value).strip():
                continue
            if isinstance(value, str) and not isinstance(value, Formula):
                words.append(f"{column} {value.strip()}")
                continue
            content.append(f"{column} {_plain(self.content(name, (row, column)))}")
            words.append(f"{column} {self.forms and self.forms(name, (row, column))}")
        if not content and not words:
            return _NOTHING
        return _hash(content, _CONTENT) + _hash(words, _WORDS)

    def _row(self, name: str, row: int) -> str:
        return self._names.get((name, row)) or f"{name}!{row + 1}"

    def _reference(self, reference: Reference) -> str:
        first = self.key(reference.sheet, (reference.row, reference.column))
        if (reference.row, reference.column) == (reference.last_row, reference.last_column):
            return first
        last = self.key(reference.sheet, (reference.last_row, reference.last_column))
        return f"{first}:{last}"


def _compared(
    name: str, made: tuple[str, ...], found: tuple[str, ...], reader: _Reader
) -> Iterator[Difference]:
    """Rows that differ; where their number is another one, by the order of those that are the same."""
    pairs: list[tuple[int | None, int | None]] = []
    if len(made) == len(found):
        pairs = [(row, row) for row in range(len(made)) if made[row] != found[row]]
    else:
        for kind, a, b, c, d in SequenceMatcher(None, made, found, autojunk=False).get_opcodes():
            if kind != "equal":
                both = min(b - a, d - c)
                pairs += [(a + step, c + step) for step in range(both)]
                pairs += [(row, None) for row in range(a + both, b) if made[row]]
                pairs += [(None, row) for row in range(c + both, d) if found[row]]
    for then, now in pairs:
        before = "" if then is None else made[then][:_CONTENT]
        after = "" if now is None else found[now][:_CONTENT]
        yield Difference(name, now, "" if now is None else reader.id(name, now), before != after)


def _content(book: EstimateBook, name: str, cell: Cell) -> Any:
    """What stands in a cell of a book."""
    if cell.expression is not None:
        return Formula(book.formula_text(book.sheets[name], cell))
    if cell.number is not None:
        return Formula(NOT_AVAILABLE) if math.isnan(cell.number) else cell.number
    return cell.text or None


def _form(cell: Cell) -> Any:
    return normal_number_format(cell.style.form)


def _plain(content: Any) -> Any:
    """What a cell holds, the same whichever program saved it."""
    if isinstance(content, str):
        return str(content).replace("'", "") if isinstance(content, Formula) else content
    return content if content is None else float(f"{float(content):.12g}")


def _hash(parts: list[str], letters: int) -> str:
    return b64encode(blake2b("\n".join(parts).encode(), digest_size=6).digest()).decode()[:letters]
