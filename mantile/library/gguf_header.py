"""The header of a GGUF file: what it says of the model, and every tensor with its type. No weight is read."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mantile.library.errors import InputError

_MAGIC = b"GGUF"
_NUMBERS = {kind: f"<{form}" for kind, form in zip((*range(8), 10, 11, 12), "BbHhIif?Qqd", strict=True)}
"""Kinds of numbers in a field, as struct has them."""
_TEXT, _LIST = 8, 9
_NAMES = (
    "f32 f16 q4_0 q4_1 - - q5_0 q5_1 q8_0 q8_1 q2_k q3_k q4_k q5_k q6_k q8_k iq2_xxs iq2_xs iq3_xxs iq1_s "
    "iq4_nl iq3_s iq2_s iq4_xs - - - - - iq1_m bf16 - - - - - - - - mxfp4"
)
_TYPES = {number: name for number, name in enumerate(_NAMES.split()) if name != "-"}
"""Types of values by their number in the file."""
_MOST = 1_000_000  # entries, tensors or characters: more is no header
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$")


@dataclass(frozen=True)
class GgufTensor:
    """A tensor of a GGUF file.

    Args:
        shape: dimensions, the one that lies together first.
        type: of its values, as llama.cpp calls it, small: q4_k.
    """

    name: str
    shape: tuple[int, ...]
    type: str


@dataclass(frozen=True)
class GgufHeader:
    """The header of a GGUF file, or of all parts of one.

    Args:
        name: of the file, for errors.
        fields: what it says by key; of a list only its length, as a range.
    """

    name: str
    fields: dict[str, Any]
    tensors: tuple[GgufTensor, ...]


def read_gguf(path: Path) -> GgufHeader:
    """The header of a GGUF file; of one in several parts, those of all of them.

    Raises:
        InputError: if it is no GGUF file, ends too early, or a part is missing.

    Example:
        read_gguf(Path("llama-3.1-8b-q4_k_m.gguf")).fields["general.architecture"]    # "llama"
    """
    files = _parts(path)
    headers = [_read(file) for file in files]
    tensors = tuple(tensor for header in headers for tensor in header.tensors)
    return GgufHeader(str(path), headers[0].fields, tensors)


def _parts(path: Path) -> list[Path]:
    """All parts of a file, this one alone if it is whole."""
    part = _PART.search(path.name)
    if part is None:
        return [path]
    stem, count = path.name[: part.start()], int(part.group(2))
    files = [path.with_name(f"{stem}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)]
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise InputError(f"{path}: one of {count} parts; {missing.name} is missing beside it")
    return files


def _read(path: Path) -> GgufHeader:
    try:
        with path.open("rb") as file:
            return _Reader(path, file).header()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error


class _Reader:
    """A header while it is read."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def header(self) -> GgufHeader:
        if self._bytes(4) != _MAGIC:
            raise InputError(f"{self._path}: is no GGUF file: it does not begin with GGUF")
        version = self._number("<I")
        if version not in (2, 3):
            raise InputError(f"{self._path}: GGUF version {version}: expected 2 or 3")
        tensors, entries = self._count("tensors"), self._count("fields")
        fields: dict[str, Any] = {}
        for _ in range(entries):
            key = self._text()
            fields[key] = self._value(self._number("<I"))
        return GgufHeader(str(self._path), fields, tuple(self._tensor() for _ in range(tensors)))

    def _tensor(self) -> GgufTensor:
        name, dimensions = self._text(), self._number("<I")
        if dimensions > 4:
            raise InputError(f"{self._path}: tensor {name!r:.80}: expected at most 4 dimensions")
        shape = tuple(self._number("<Q") for _ in range(dimensions))
        number = self._number("<I")
        self._number("<Q")  # where its values lie
        return GgufTensor(name, shape, _TYPES.get(number, f"type {number}"))

    def _value(self, kind: int) -> Any:
        """The value of a field; of a list its length, as a range."""
        if kind == _TEXT:
            return self._text()
        if kind == _LIST:
            kind, count = self._number("<I"), self._count("items")
            if kind in _NUMBERS:
                self._bytes(struct.calcsize(_NUMBERS[kind]) * count)
            else:
                for _ in range(count):
                    self._value(kind)
            return range(count)
        if kind not in _NUMBERS:
            raise InputError(f"{self._path}: a field of the header is of kind {kind}, which GGUF has not")
        return self._number(_NUMBERS[kind])

    def _count(self, what: str) -> int:
        count: int = self._number("<Q")
        if count > _MOST:
            raise InputError(f"{self._path}: the header has {count:,} {what}: expected at most {_MOST:,}")
        return count

    def _text(self) -> str:
        return self._bytes(self._count("characters")).decode("utf-8", "replace")

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))[0]

    def _bytes(self, count: int) -> bytes:
        read = self._file.read(count)
        if len(read) < count:
            raise InputError(f"{self._path}: ends inside its header: the download may not be complete")
        return read
