"""YAML and JSON documents to validated objects, with errors that name file, line and field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from typing_extensions import dataclass_transform

from mantile.library.brief import Counted
from mantile.library.clock import Clock
from mantile.library.compiled import compiled
from mantile.library.errors import HIDDEN, MOST_QUOTED, InputError, near, quoted
from mantile.library.yaml_loader import Loader

MAX_DEPTH = 60  # of nesting: the loader recurses in C and would crash the process
MAX_BYTES = 16 * 2**20  # far more than any real scenario or config.json has
MAX_ELEMENTS = 1_000_000  # keys, values and lists of a document, what aliases repeat included
MAX_CHARACTERS = 2 * MAX_BYTES  # of the texts of a document, what aliases repeat included
MAX_ITEMS = 50_000  # of one list or mapping that is validated: each that is wrong costs a kilobyte of errors
_KEPT = 1024  # files of ours: all that the library has
_MOST_PROBLEMS = 20  # of one document that are told
_PLAIN_TAGS = {
    None,
    "!",
    *(f"tag:yaml.org,2002:{kind}" for kind in ["str", "int", "float", "bool", "null", "seq", "map"]),
}


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
class _Validated(ModelMetaclass):
    """What is constructed in Python is checked like a file, with the same errors."""

    def __call__(cls, /, **fields: Any) -> Any:
        document = cast("type[Strict]", cls)
        return validate(document, document.spelled(fields), document.__name__)


class Strict(BaseModel, metaclass=_Validated):
    """Base of everything people hand us: immutable, and without fields that we do not know.

    Raises:
        InputError: when constructed with a field or value that there is not.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    @classmethod
    def field_names(cls) -> list[str]:
        """What its fields may be called."""
        return list(cls.model_fields)

    @classmethod
    def explained(cls, name: str) -> str | None:
        """What is to be said of a name that is no field of it; None if nothing is."""
        return None

    @classmethod
    def spelled(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Fields of a constructor as a file has them."""
        return fields

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Only what differs from the defaults, lists by their length."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if value != field.get_default(call_default_factory=True):
                yield name, Counted(value) if isinstance(value, tuple | dict) else value


Document = TypeVar("Document", bound=BaseModel)


def read_text(path: Path) -> str:
    """The text of a file of sane size.

    Raises:
        InputError: if it is missing, too large, or not text.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path}: {path.stat().st_size:,} bytes; expected at most {MAX_BYTES:,}")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def parse_yaml(text: str, name: str) -> Any:
    """YAML text to plain objects. `name` stands for the file in errors.

    Raises:
        InputError: if it is not valid YAML, is nested too deeply, or gives a key twice.
    """
    return _parsed(text, name, guarded=True)


def _parsed(text: str, name: str, guarded: bool) -> Any:
    try:
        if guarded:
            with Clock(name) as clock:
                _require_sane(text, name, clock)
        return yaml.load(text, Loader=Loader)  # noqa: S506  # a SafeLoader subclass
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{name}, line {mark.line + 1}, column {mark.column + 1}" if mark else name
        raise InputError(f"{where}: not valid YAML: {_short(str(error.problem))}") from error
    except InputError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(f"{name}: not valid YAML: {type(error).__name__}: {_short(str(error))}") from error


def _require_sane(text: str, name: str, clock: Clock) -> None:
    """Refuse YAML before objects are built of it: too deep, too large, or of other things than plain values.

    An alias counts as what it repeats: ten lines can stand for a billion elements.
    """
    sizes: dict[str | None, tuple[int, int]] = {}  # of what aliases repeat: elements, characters
    open_: list[tuple[str | None, int, int]] = []
    count = characters = 0
    event: Any
    for event in yaml.parse(text, Loader=Loader):
        kind = type(event)  # quicker than isinstance, and asked for every element; the most frequent first
        if kind is yaml.ScalarEvent or kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            anchor, length = event.anchor, 0
            if event.tag not in _PLAIN_TAGS:
                raise InputError(
                    f"{_line(event, name)}: {quoted(event.tag)}: expected a text, a number, true, false, "
                    "null, a list or a mapping"
                )
            if kind is yaml.ScalarEvent:
                length = len(event.value)
                if anchor is not None:
                    sizes[anchor] = 1, length
            else:
                sizes.pop(anchor, None)
                open_.append((anchor, count, characters))
            count, characters = count + 1, characters + length
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            opened, *before = open_.pop()
            if opened is not None:
                sizes[opened] = count - before[0], characters - before[1]
        elif kind is yaml.AliasEvent:
            anchor = event.anchor
            if anchor not in sizes and any(anchor == other for other, _, _ in open_):
                raise InputError(f"{_line(event, name)}: {quoted(anchor)} holds itself")
            elements, length = sizes.get(anchor, (1, 0))
            count, characters = count + elements, characters + length
        if len(open_) > MAX_DEPTH:
            raise InputError(f"{name}: nested deeper than {MAX_DEPTH} levels")
        if count > MAX_ELEMENTS:
            raise _too_large(name)
        if characters > MAX_CHARACTERS:
            raise InputError(
                f"{name}: more than {MAX_CHARACTERS:,} characters with what aliases repeat; expected fewer"
            )
        if not count % 4096:
            clock.check()


def _line(event: Any, name: str) -> str:
    return f"{name}, line {event.start_mark.line + 1}"


def _too_large(name: str) -> InputError:
    return InputError(f"{name}: more than {MAX_ELEMENTS:,} elements; expected at most that many")


def _short(text: str) -> str:
    """A message of a parser, with long words cut: it repeats what it found."""
    return re.sub(rf"\S{{{MOST_QUOTED + 1},}}", lambda word: f"{word[0][: MOST_QUOTED - 3]}...", text)


def parse_json(text: str, name: str) -> Any:
    """JSON text to plain objects. `name` stands for the file in errors.

    Infinity and NaN pass, because some config.json hold them in fields that we do not read.

    Raises:
        InputError: if it is not valid JSON, is nested too deeply, or gives a key twice.
    """

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise InputError(f"{name}: the key {quoted(twice)} is given twice")
        return fields

    if len(text) > MAX_ELEMENTS and text.count(",") > MAX_ELEMENTS:  # an element more than there are commas
        raise _too_large(name)
    try:
        return json.loads(text, object_pairs_hook=mapping)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{name}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}"
        ) from error
    except RecursionError as error:
        raise InputError(f"{name}: not valid JSON: nested too deeply") from error
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{name}: not valid JSON: {error}") from error


def json_text(data: Any) -> str:
    """Plain objects and numbers of NumPy as JSON text; NaN and infinity become null."""
    return json.dumps(json_data(data), ensure_ascii=False, indent=2, allow_nan=False)


def json_data(data: Any) -> Any:
    """Plain objects and numbers of NumPy as JSON holds them: lists, and None for NaN and infinity."""
    if isinstance(data, dict):
        return {key: json_data(item) for key, item in data.items()}
    if isinstance(data, list | tuple):
        return [json_data(item) for item in data]
    data = data.item() if hasattr(data, "item") else data
    return None if isinstance(data, float) and not math.isfinite(data) else data


def validate(document: type[Document], data: Any, name: str) -> Document:
    """Plain objects to a validated document. `name` stands for the file in errors.

    Raises:
        InputError: naming file and field, and what was expected; a line for each problem.
    """
    if not isinstance(data, dict):
        raise InputError(f"{name}: expected a mapping of fields, found {type(data).__name__}")
    require_readable(data, name)
    return _validated(document, data, name)


def _validated(document: type[Document], data: Any, name: str) -> Document:
    try:
        return document.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False)
        problems = [_problem(document, details) for details in found[:_MOST_PROBLEMS]]
        if len(found) > _MOST_PROBLEMS:
            problems.append(f"and {len(found) - _MOST_PROBLEMS:,} problems more")
        raise InputError("\n".join(f"{name}: {problem}" for problem in problems)) from error


def require_readable(data: Mapping[str, Any], name: str) -> None:
    """Refuse texts with hidden characters, with which one name can look like another, and endless lists."""
    open_: list[tuple[tuple[Any, ...], Any]] = [((), data)]
    while open_:
        path, value = open_.pop()
        if isinstance(value, str):
            found = HIDDEN.search(value)
            if found is not None:
                raise InputError(
                    f"{name}: field {_dotted(path)}: {quoted(value)} holds the hidden character "
                    f"U+{ord(found[0]):04X}; expected a text without"
                )
        elif isinstance(value, dict | list | tuple):
            if len(value) > MAX_ITEMS:
                where = f"{name}: field {_dotted(path)}" if path else name
                raise InputError(f"{where}: {len(value):,} items; expected at most {MAX_ITEMS:,}")
            if isinstance(value, dict):
                open_.extend((path, key) for key in value if isinstance(key, str) and not key.isprintable())
            parts = value.items() if isinstance(value, dict) else enumerate(value)
            open_.extend(((*path, place), part) for place, part in parts)


def _dotted(path: Iterable[Any]) -> str:
    """A place in a document as messages name it."""
    return ascii(".".join(f"{part:.60}" if isinstance(part, str) else str(part) for part in path))[1:-1]


def _problem(document: type[BaseModel], details: Any) -> str:
    """A problem that pydantic found: field, what was expected, and a short value that was found."""
    field = ".".join(f"{part:.60}" if isinstance(part, str) else str(part) for part in details["loc"])
    if details["type"] == "extra_forbidden":
        *outer, given = details["loc"]
        inner = _document_at(document, outer)
        said = inner.explained(str(given)) if issubclass(inner, Strict) else None
        return f"field {field}: there is no such field; {said or near(str(given), _field_names(inner))}"
    text = _expected(details)
    value = details.get("input")
    if not isinstance(value, dict | list) and details["type"] != "missing":
        text += f" (found {quoted(value)})"
    return f"field {field}: {text}" if field else text


def _expected(details: Any) -> str:
    """What pydantic found wrong, as what was expected."""
    context = details.get("ctx") or {}
    words = _EXPECTED.get(details["type"])
    if words is not None:
        return words.format(
            **{
                key: f"{value:,}" if isinstance(value, int | float) else value
                for key, value in context.items()
            }
        )
    return str(details["msg"]).removeprefix("Value error, ")


_EXPECTED = {
    "greater_than_equal": "expected at least {ge}",
    "greater_than": "expected more than {gt}",
    "less_than_equal": "expected at most {le}",
    "less_than": "expected less than {lt}",
    "literal_error": "expected one of {expected}",
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "float_type": "expected a number",
    "float_parsing": "expected a number",
    "string_type": "expected a text",
    "bool_type": "expected true or false",
    "finite_number": "expected a finite number",
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "dict_type": "expected names with values, as in {{name: value}}",
    "model_type": "expected names with values, as in {{name: value}}",
    "too_long": "{actual_length} items; expected at most {max_length}",
    "too_short": "{actual_length} items; expected at least {min_length}",
    "string_too_long": "expected at most {max_length} characters",
    "string_too_short": "expected at least {min_length} characters",
}
"""By the kind of problem."""


def _field_names(document: type[BaseModel]) -> list[str]:
    """What the fields of a document may be called."""
    return document.field_names() if issubclass(document, Strict) else list(document.model_fields)


def _document_at(document: type[BaseModel], location: Iterable[Any]) -> type[BaseModel]:
    """The document, or the one inside it that a place lies in."""
    inner: type[BaseModel] = document
    for part in location:
        if part in inner.model_fields:
            inner = _inner_document(inner.model_fields[part].annotation) or inner
    return inner


def _inner_document(annotation: Any) -> type[BaseModel] | None:
    """The document that a field holds: by itself, or in a collection."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((inner for part in get_args(annotation) if (inner := _inner_document(part))), None)


def load(document: type[Document], path: Path) -> Document:
    """Read and validate one YAML document.

    Raises:
        InputError: naming file and field, and what was expected.
    """
    return validate(document, parse_yaml(read_text(path), str(path)), str(path))


def load_ours(document: type[Document], path: Path) -> Document:
    """Read and validate a YAML document that we ship.

    What a stranger could do with one is not looked for at every start: nest it without end, let ten lines
    stand for a billion, hide characters. A test does, with `parse_yaml` and `validate`, of every file.

    Raises:
        InputError: naming file and field, and what was expected.
    """
    return cast(Document, _ours(document, read_text(path), str(path)))


@lru_cache(_KEPT)
def _ours(document: type[BaseModel], text: str, name: str) -> BaseModel:
    """What a file of ours says, read once: documents are immutable."""
    data = compiled(text)
    return _validated(document, _parsed(text, name, guarded=False) if data is None else data, name)
