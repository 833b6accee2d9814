"""What stands in the files of equations: subjects, blocks and lines, before anybody asks for a row.

README.md beside this file has the grammar; tables.py makes rows of it.
"""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b
from keyword import kwlist
from pathlib import Path

FOLDER = Path(__file__).parent
COMPILED = "subjects.pickle"
"""What a wheel holds beside this file: the digest of all texts, and what was read of them."""
_ROW = re.compile(
    r"(?P<id>\S+) +(?P<label>.+?)(?: \((?P<called>[^()]+)\))? \[(?P<unit>[^]]+?)(?P<factor>, factor)?\]"
    r" (?P<sign>:?=) (?P<body>.+?)(?: ; (?P<note>.+?))?(?: +@ (?P<source>.+))?"
)
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.(?:\w+|\*))+")
_FAMILY = re.compile(rf"\.(\d\w*|\*|{'|'.join(kwlist)})(?=\.|$)")
_PLACED = re.compile(r"(\S+)(?: without (\S+))?")
_OTHER = re.compile(r"[^\w.]")  # in names that stand in `backticks`: Python has a number in their place
_NUMBERED = re.compile(r"__(\d+)__")
_ALIAS = re.compile(r"define (\w+) = (.+?)(?: \| when (.+))?")


class EquationError(ValueError):
    """A line that cannot be read, a name that nobody has, or a circle; names file and line."""


@dataclass(frozen=True)
class Line:
    """A line of a block: a row, or what is laid over one.

    Args:
        id: of the row, without the space in which it is made; with a * of rows made elsewhere.
        parts: label, unit, body and so on; empty where the row is made elsewhere.
        when: features of which all must be there; with "not " in front, none.
        over: whether it is laid over a row.
        without: of rows made elsewhere, one that stands on another sheet.
        each: the spaces in which it is made, within those of its block; empty: once.
    """

    place: str
    subject: str
    id: str
    parts: Mapping[str, str]
    when: tuple[str, ...] = ()
    over: bool = False
    without: str = ""
    each: str = ""

    @property
    def stated(self) -> bool:
        """Whether it states a figure, which is the same in all spaces."""
        return self.parts.get("sign") == ":="


@dataclass(frozen=True)
class Block:
    """Rows under one title.

    Args:
        when: as of a line.
        each: the spaces in which it is made, by the name that Python has for them; empty: once.
        aside: whether its rows stand on no sheet of workings: a front sheet places them.
        part: the part of workings on which it stands; empty: that of its subject.
        again: what is made again, of which those rows stand before it that it and what follows need.
    """

    subject: str
    title: str
    note: str = ""
    total: str = ""
    when: tuple[str, ...] = ()
    each: str = ""
    aside: bool = False
    part: str = ""
    again: str = ""
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Again:
    """Figures made again with some replaced: `name.ROW` is a row as it is then.

    Args:
        replaced: names of figures, and the expression that stands for each.
    """

    line: Line
    suffix: str
    replaced: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Subject:
    """What stands in a file.

    Args:
        macros: names that stand for expressions with parameters; those of the own file first.
        names: that stand for an expression.
        agains: what is made again.
    """

    name: str
    blocks: tuple[Block, ...]
    macros: Mapping[str, tuple[tuple[str, ...], str]]
    names: tuple[Line, ...]
    agains: tuple[Again, ...] = ()


@cache
def subjects() -> Mapping[str, Subject]:
    """What stands in all files, by name."""
    texts = _texts()
    built = FOLDER / COMPILED
    if built.is_file():
        digest, found = pickle.loads(built.read_bytes())  # a file of the wheel
        if digest == _digest(texts):
            return dict(found)
    return {name.removesuffix(".eq"): read(text, name) for name, text in texts.items()}


def compile_subjects() -> bytes:
    """The file that a wheel holds: a text that is changed later is read anew."""
    return pickle.dumps((_digest(_texts()), dict(subjects())))


def _texts() -> Mapping[str, str]:
    return {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.eq"))}


def _digest(texts: Mapping[str, str]) -> str:
    return blake2b(repr(texts).encode()).hexdigest()


def read(text: str, file: str) -> Subject:
    """What stands in a file.

    Raises:
        EquationError: for a line that is neither head, row, `for`, `each`, `when`, `over`, `again` nor
            `define`.
    """
    subject = file.partition(".")[0]
    macros: dict[str, tuple[tuple[str, ...], str]] = {}
    names: list[Line] = []
    blocks: list[tuple[Block, dict[str, str], list[Line]]] = []
    heads = 0  # the last so many blocks stand under one head
    families: list[dict[str, str]] = [{}]
    when: tuple[str, ...] = ()
    each = ""
    agains: list[Again] = []
    of_file: tuple[str, ...] = ()
    rows: list[tuple[str, str]] = []

    def end_of_rows() -> None:
        for _, given, lines in blocks[-heads:]:
            for values in families:
                written = ((place, filled(filled(line, values), given)) for place, line in rows)
                lines += (_line(line, place, subject, when, filled(each, given)) for place, line in written)
        rows.clear()

    for number, line in [*_joined(text), (0, "")]:
        place = f"{file}:{number}"
        if rows and (not line or line.startswith(("for ", "when ", "each ", "["))):
            end_of_rows()
            families = [{}]
        if not line:
            families, when, each = [{}], (), ""
        elif line.startswith("define "):
            alias = _ALIAS.fullmatch(line)
            if alias is None:
                macros |= _macro(line, place)
            else:
                asked = _names(alias[3]) if alias[3] else ()
                names.append(Line(place, subject, alias[1], {"body": alias[2]}, asked))
        elif line.startswith("when "):
            if "{" in line:
                raise EquationError(f"{place}: expected names of features, found {line}")
            when = _names(line.removeprefix("when "))
            of_file = of_file if heads else when
        elif line.startswith("again "):
            agains += (_again(filled(line, values), place, subject) for values in families)
        elif line.startswith("each "):
            each = line.removeprefix("each ")
        elif line.startswith("for "):
            families = [outer | inner for outer in families for inner in _families(line, place)]
        elif line.startswith("["):
            blocks += ((_head(filled(line, given), place, subject), given, []) for given in families)
            heads, families = len(families), [{}]
        elif not heads:
            raise EquationError(f"{place}: a row before the first [head]")
        else:
            rows.append((place, line))
    return Subject(
        subject,
        tuple(replace(block, lines=tuple(lines), when=(*of_file, *block.when)) for block, _, lines in blocks),
        macros,
        tuple(names),
        tuple(
            replace(again, line=replace(again.line, when=(*of_file, *again.line.when))) for again in agains
        ),
    )


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, those that are indented behind the line before; without remarks."""
    kept: tuple[int, str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#"):
            continue
        if kept is not None and line[:1].isspace() and line.strip():
            kept = kept[0], f"{kept[1]} {line.strip()}"
            continue
        if kept is not None:
            yield kept
        kept = number, line.strip()
    if kept is not None:
        yield kept


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _head(line: str, place: str, subject: str) -> Block:
    """Title, note and conditions of `[subject] Title | note | when a | each pool | again name | part Decode |
    aside | total`."""
    found = re.fullmatch(r"\[(\w+)\] (.+)", line)
    if found is None or found[1] != subject:
        raise EquationError(f"{place}: expected [{subject}] and a title, found {line}")
    title, *rest = (part.strip() for part in found[2].split(" | "))
    block = Block(subject, title)
    for part in rest:
        if part == "when" or part.startswith("when "):
            block = replace(block, when=tuple(filter(None, _names(part.removeprefix("when")))))
        elif part.startswith("each "):
            block = replace(block, each=part.removeprefix("each "))
        elif part.startswith("again "):
            block = replace(block, again=part.removeprefix("again "))
        elif part.startswith("part "):
            block = replace(block, part=part.removeprefix("part "))
        elif part == "aside":
            block = replace(block, aside=True)
        elif part in ("subtotal", "total"):
            block = replace(block, total=part)
        else:
            block = replace(block, note=part)
    return block


def _again(line: str, place: str, subject: str) -> Again:
    """Name, end of labels and what is replaced, of `again NAME | SUFFIX | ROW = BY; ROW = BY | when a`."""
    name, *rest = (part.strip() for part in line.removeprefix("again ").split(" | "))
    if len(rest) not in (2, 3) or " = " not in rest[1]:
        raise EquationError(f"{place}: expected again NAME | SUFFIX | ROW = EXPRESSION; ..., found {line}")
    when = _names(rest[2].removeprefix("when ")) if len(rest) == 3 else ()
    pairs = (pair.strip().split(" = ", 1) for pair in rest[1].split(";"))
    replaced = tuple((left, right) for left, right in pairs)
    return Again(Line(place, subject, name, {}, when), rest[0], replaced)


def _macro(line: str, place: str) -> dict[str, tuple[tuple[str, ...], str]]:
    found = re.fullmatch(r"define (\w+)\(([\w, ]+)\) = (.+)", line)
    if found is None:
        raise EquationError(f"{place}: expected define NAME = or NAME(PARAMETERS) = EXPRESSION, found {line}")
    return {found[1]: (_names(found[2]), found[3])}


def _families(line: str, place: str) -> Iterator[dict[str, str]]:
    """What names stand for in each member: `for a | b in x | X; y | Y`, or `for h in 0..23`."""
    found = re.fullmatch(r"for ([\w| ]+?) in (.+)", line)
    if found is None:
        raise EquationError(f"{place}: expected for NAMES in VALUES, found {line}")
    names = [name.strip() for name in found[1].split("|")]
    numbers = re.fullmatch(r"(\d+)\.\.(\d+)", found[2])
    members = map(str, range(int(numbers[1]), int(numbers[2]) + 1)) if numbers else found[2].split(";")
    if numbers and int(numbers[1]) > int(numbers[2]):
        raise EquationError(f"{place}: expected LOW..HIGH, found {found[2]}")
    for member in members:
        values = [value.strip() for value in member.split("|")]
        if len(values) != len(names):
            raise EquationError(f"{place}: expected {len(names)} values, found {member.strip()}")
        yield dict(zip(names, values, strict=True))


def filled(line: str, values: Mapping[str, str]) -> str:
    """A line with values for {names}; {n-1} is the number before."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        return str(int(values[found[1]]) + int(found[2])) if found[2] else values[found[1]]

    return re.sub(r"\{(\w+)([+-]\d+)?\}", value, line) if values else line


def _line(line: str, place: str, subject: str, when: tuple[str, ...], each: str) -> Line:
    if line.startswith("over "):
        name, sign, rest = line.removeprefix("over ").partition(" = ")
        body, _, more = rest.partition(" | when ")
        if not sign:
            raise EquationError(f"{place}: expected over ROW = EXPRESSION, found {line}")
        asked = (*when, *(_names(more) if more else ()))
        return Line(place, subject, name.strip(), {"body": body}, asked, over=True, each=each)
    found = _ROW.fullmatch(line)
    if found is not None:
        parts = {name: part or "" for name, part in found.groupdict().items()}
        return Line(place, subject, f"{subject}.{found['id']}", parts, when, each=each)
    found = _PLACED.fullmatch(line)
    if found is None:
        raise EquationError(f"{place}: expected id, label, [unit] = expression, found {line}")
    without = f"{subject}.{found[2] or ''}"
    return Line(place, subject, f"{subject}.{found[1]}", {}, when, without=without, each=each)


@cache
def parsed(text: str) -> ast.expr:
    """An expression; parts of ids that begin with a digit, * or keywords stand in brackets for Python."""

    def in_brackets(found: re.Match[str]) -> str:
        return _FAMILY.sub(lambda part: "[:]" if part[1] == "*" else f"['{part[1]}']", found[0])

    quoted = re.split(r"('[^']*')", text)
    quoted[::2] = [_DOTTED.sub(in_brackets, re.sub("`(.+?)`", _for_python, part)) for part in quoted[::2]]
    return ast.parse("".join(quoted).strip(), mode="eval").body


def _for_python(quoted: re.Match[str]) -> str:
    return _OTHER.sub(lambda sign: f"__{ord(sign[0])}__", quoted[1])


def _as_written(name: str) -> str:
    return _NUMBERED.sub(lambda sign: chr(int(sign[1])), name)


def name_of(tree: ast.expr) -> str:
    match tree:
        case ast.Name(id=name):
            return _as_written(name)
        case ast.Attribute(value=value, attr=name):
            return f"{name_of(value)}.{_as_written(name)}"
        case ast.Subscript(value=value, slice=ast.Constant(value=str(number))):
            return f"{name_of(value)}.{number}"
        case ast.Subscript(value=value, slice=ast.Slice()):
            return f"{name_of(value)}.*"
    raise ValueError(f"{ast.unparse(tree)} is no name")
