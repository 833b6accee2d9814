"""Reads the equations that stand as text in `*.eq`: a row a line, found by its id, made when it is asked for.

README.md of this folder has the grammar on a page. Expressions are Python's, their operations those of
`graph/operations`, their names ids: of the own subject bare, of others behind their subject.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from mantile.graph import quantity as q
from mantile.graph.quantity import Input, Named, Node, Quantity, Section, ancestors
from mantile.graph.sentence import lowered

FOLDER = Path(__file__).parent
DECODE, _INPUTS = "decode.", "inputs."
_ROW = re.compile(
    r"(?P<id>\S+) +(?P<label>.+?)(?: \((?P<called>[^()]+)\))? \[(?P<unit>[^]]+?)(?P<factor>, factor)?\]"
    r" (?P<sign>:?=) (?P<body>.+?)(?: ; (?P<note>.+?))?(?: +@ (?P<source>.+))?"
)
_INPUT = re.compile(r"(?P<value>-?[\d.]+(?:e-?\d+)?|'[^']*')(?: in (?P<low>\S+) to (?P<high>\S+))?")
_DOTTED = re.compile(r"\b[A-Za-z_]\w*(?:\.(?:\w+|\*))+")
_FAMILY = re.compile(r"\.(\d+|\*)(?=\.|$)")
_PLACED = re.compile(r"(\S+)(?: without (\S+))?")
_SIGNS_OF_IDS = {"-": "__dash__", "+": "__plus__"}  # in names that stand in `backticks`, for Python
_ALIAS = re.compile(r"define (\w+) = (.+?)(?: \| when (.+))?")
_IT = re.compile(r"\bit\b")
# What the source of an input begins with.
_STATED = ("assumed", "measured", "fitted", "datasheet", "secondary")
_TOTALS = {"subtotal": Section.SUBTOTAL, "total": Section.TOTAL}
_CALLS: dict[str, Callable[..., Node]] = {
    call.__name__: call
    for call in (
        *(q.at_least, q.at_most, q.behind, q.below, q.choose, q.count_where, q.floor, q.if_error, q.if_known),
        *(q.index, q.is_empty, q.is_error, q.is_number, q.join, q.least, q.look_up, q.match, q.match_at_most),
        *(q.nth_largest, q.number_of, q.percent, q.remainder, q.round_up, q.rounded, q.sum_products),
        *(q.sum_where, q.text, q.trimmed, q.until, q.where),
    )
}
_CALLS |= {"abs": q.absolute, "all": q.all_of, "exp": q.exponential, "ln": q.logarithm}
_CALLS |= {"max": q.maximum, "min": q.minimum, "sum": q.sum_range}
_SIGNS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: q.equal,
}


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
        each: the spaces in which it is made, of a block that is made once; empty: once.
    """

    place: str
    subject: str
    id: str
    parts: Mapping[str, str]
    when: tuple[str, ...] = ()
    over: bool = False
    without: str = ""
    each: str = ""


@dataclass(frozen=True)
class Block:
    """Rows under one title.

    Args:
        when: as of a line.
        each: the spaces in which it is made, by the name that Python has for them; empty: once.
        aside: whether its rows stand on no sheet of workings: a front sheet places them.
    """

    subject: str
    title: str
    note: str = ""
    total: int = 0
    when: tuple[str, ...] = ()
    each: str = ""
    aside: bool = False
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Space:
    """Where a block is made once more, for other accelerators.

    Args:
        prefix: what its ids begin with; names of rows are looked for behind it first.
        suffix: what its labels end in.
        inputs: what ids of inputs begin with that it has to itself.
        again: whether it has rows of the space without prefix again: what follows from nothing that it
            has to itself is that of all, and sentences keep the suffix.
        facts: by name, what stands in {braces} in its lines: {space} the prefix, {own} that of what it has to
            itself even where its ids have none.
    """

    prefix: str = ""
    suffix: str = ""
    inputs: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    again: bool = False

    def filled(self, text: str) -> str:
        """A line with these facts."""
        return _filled(text, {"space": self.prefix, "own": self.prefix} | self.facts) if "{" in text else text


@dataclass(frozen=True)
class Subject:
    """What stands in a file.

    Args:
        macros: names that stand for expressions with parameters, in the file.
        names: of all files that stand for an expression.
    """

    name: str
    blocks: tuple[Block, ...]
    macros: Mapping[str, tuple[tuple[str, ...], str]]
    names: tuple[Line, ...]


@dataclass
class Equations:
    """The rows of one graph by id, each made once, when somebody asks for it.

    Args:
        features: what the scenarios ask for, by the names that stand behind `when`.

    Example:
        rows = Equations(frozenset({"capacity"}))
        rows.know(*figures)
        rows["capacity.peak"]; rows.sections("capacity")
    """

    features: frozenset[str] = frozenset()
    _spaces: dict[str, tuple[Space, ...]] = field(default_factory=dict)
    _known: dict[str, Named] = field(default_factory=dict)
    _nodes: dict[str, Node] = field(default_factory=dict)
    _aliases: dict[str, Line] = field(default_factory=dict)
    _rows: dict[str, tuple[Line, Space]] = field(default_factory=dict)
    _over: dict[str, list[Line]] = field(default_factory=dict)
    _names: dict[str, dict[str, None]] = field(default_factory=dict)
    _making: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for subject in subjects().values():
            self._aliases |= {line.id: line for line in subject.names if self._holds(line)}
        for block in self._blocks():
            if not block.each:
                self._make(block, Space())

    def make_in(self, name: str, *spaces: Space) -> None:
        """Make the blocks, and rows of blocks, that are made several times, in spaces of a name."""
        self._spaces[name] = spaces
        for block in self._blocks():
            for space in spaces:
                self._make(block, space, "" if block.each == name else name)

    def _make(self, block: Block, space: Space, each: str = "") -> None:
        for line in filter(self._holds, block.lines):
            if line.each != each or (each and block.each):
                continue
            identifier = space.filled(line.id)
            if line.over:
                filled = {name: space.filled(part) for name, part in line.parts.items()}
                self._over.setdefault(identifier, []).append(replace(line, parts=filled))
            elif line.parts:
                identifier = space.prefix + identifier
                if identifier in self._rows:
                    raise EquationError(f"{line.place}: {identifier} stands in {self.place(identifier)} too")
                self._rows[identifier] = line, space
                self._name(identifier)

    def know(self, *figures: Named) -> None:
        """Make figures that are made elsewhere known, with all that they follow from."""
        self._keep(figures)  # first themselves: what they follow from may ask for them
        self._keep(ancestors(*figures))

    def know_again(self, *figures: Named) -> None:
        """Make figures known in place of those with their ids that were made before."""
        self._known |= {figure.id: figure for figure in figures if figure.id in self._known}

    def _keep(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            if isinstance(node, Input | Quantity) and node.id not in self._known:
                self._known[node.id] = node
                self._name(node.id)

    def know_as(self, name: str, node: Node) -> None:
        """Make known what a name stands for, which depends on what the scenarios ask for."""
        self._nodes[name] = node

    def _name(self, identifier: str) -> None:
        self._names.setdefault(identifier.partition(".")[0], {})[identifier] = None

    def __contains__(self, identifier: str) -> bool:
        return identifier in self._known or identifier in self._rows

    def __getitem__(self, identifier: str) -> Quantity:
        """The row with an id.

        Raises:
            EquationError: where there is none, or it follows from itself.
        """
        made = self.figure(identifier)
        assert isinstance(made, Quantity), f"{identifier} is stated, not worked out"
        return made

    def figure(self, identifier: str) -> Named:
        """The row or input with an id."""
        if identifier not in self._known:
            if identifier not in self._rows:
                raise EquationError(f"no row {identifier}{_nearest(identifier, self._all())}")
            if identifier in self._making:
                circle = " <- ".join([*self._making[self._making.index(identifier) :], identifier])
                raise EquationError(f"{self.place(identifier)}: a circle: {circle}")
            self._making.append(identifier)
            self._known[identifier] = self._made(identifier, *self._rows[identifier])
            self._making.pop()
        return self._known[identifier]

    def place(self, identifier: str) -> str:
        """File and line of a row, as `serving.eq:112`; empty where it is not of the text."""
        return self._rows[identifier][0].place if identifier in self._rows else ""

    def of(self, subject: str) -> OfSubject:
        """The rows of a subject by their names in it."""
        return OfSubject(self, subject)

    def in_space(self, prefix: str) -> OfSpace:
        """The rows of a space by their ids without its prefix."""
        return OfSpace(self, prefix)

    def node(self, name: str) -> Node:
        """What a defined name stands for."""
        found = self._find(name, Line("", "", name, {}), Space())
        assert isinstance(found, Node)
        return found

    def each(self, name: str, identifier: str) -> tuple[Quantity, ...]:
        """A row in all spaces of a name."""
        return tuple(self[f"{space.prefix}{identifier}"] for space in self._spaces[name])

    def sections(self, subject: str, *titles: str, space: str | None = None) -> tuple[Section, ...]:
        """The blocks of a subject in order, or some, but for those that stand on no sheet of workings.

        Args:
            space: the prefix of the space in which they are made; None: of all.
        """
        return tuple(
            Section(f"{made_in.filled(block.title)}{made_in.suffix}", rows, block.note, block.total)
            for block in self._blocks()
            if block.subject == subject and not block.aside and (not titles or block.title in titles)
            for made_in in self._spaces_of(block)
            if space in {None, made_in.prefix} and (rows := tuple(self._placed(block, made_in)))
        )

    def _blocks(self) -> Iterator[Block]:
        for subject in subjects().values():
            yield from filter(self._holds, subject.blocks)

    def _holds(self, part: Block | Line) -> bool:
        return all(
            (name.removeprefix("not ") in self.features) != name.startswith("not ") for name in part.when
        )

    def _spaces_of(self, block: Block) -> tuple[Space, ...]:
        return self._spaces.get(block.each, ()) if block.each else (Space(),)

    def _placed(self, block: Block, space: Space) -> Iterator[Named]:
        for each, lines in groupby(filter(self._holds, block.lines), lambda line: line.each):
            rows = [line for line in lines if not line.over]
            for made_in in self._spaces.get(each, ()) if each else (space,):
                for line in rows:
                    yield from self._of_line(line, made_in)

    def _of_line(self, line: Line, space: Space) -> Iterator[Named]:
        """What stands at a line of a block; nothing where a space has the row of all."""
        identifier = space.filled(line.id)
        if "*" in identifier:
            yield from (figure for figure in self.family(identifier) if figure.id != line.without)
            return
        identifier = f"{space.prefix}{identifier}"
        if identifier not in self and not line.parts:  # of another subject
            identifier = identifier.replace(f"{line.subject}.", "", 1)
            if space.prefix and identifier not in self:
                return
        if (figure := self.figure(identifier)).id == identifier:
            yield figure

    def family(self, pattern: str) -> tuple[Named, ...]:
        """All rows of which the ids are alike but for one part, in order."""
        alike = re.compile(re.escape(pattern).replace(r"\*", "[^.]+"))
        names = self._names.get(pattern.partition(".")[0], ())
        return tuple(self.figure(name) for name in names if alike.fullmatch(name))

    def _all(self) -> list[str]:
        return [name for names in self._names.values() for name in names]

    def _made(self, identifier: str, line: Line, space: Space) -> Named:
        parts = line.parts
        called = space.filled(parts["called"]) or (
            lowered(parts["label"]) if space.suffix and not space.again else ""
        )
        label, note, source = f"{space.filled(parts['label'])}{space.suffix}", parts["note"], parts["source"]
        if parts["sign"] == ":=":
            stated = _INPUT.fullmatch(parts["body"])
            if stated is None:
                raise EquationError(f"{line.place}: expected := NUMBER, 'TEXT', or NUMBER in LOW to HIGH")
            return _input(identifier, label, parts["unit"], note, source, called, stated)
        body = q.as_node(self._laid_over([line, *self._over.get(identifier, ())], space))
        if self._is_shared(identifier, line, space, body):
            return self[identifier.removeprefix(space.prefix)]
        return Quantity(identifier, label, parts["unit"], body, note, source, called, bool(parts["factor"]))

    def _is_shared(self, identifier: str, line: Line, space: Space, body: Node) -> bool:
        """Whether a row of a space follows from nothing that the space has to itself."""
        shared = identifier.removeprefix(space.prefix)
        if not (space.again and space.prefix) or self._rows.get(shared, (None,))[0] is not line:
            return False
        own = (space.prefix, space.inputs or space.prefix)
        if any(isinstance(part, Input | Quantity) and part.id.startswith(own) for part in q.expression(body)):
            return False
        return repr(body) == repr(self[shared].body)

    def _laid_over(self, lines: Sequence[Line], space: Space) -> Any:
        """The expression of a row with what is laid over it, the last outermost; `it` is the one below."""
        *below, line = lines
        text = line.parts["body"]
        return self._read(
            line, text, space, {"it": self._laid_over(below, space)} if _IT.search(text) else {}
        )

    def _read(self, line: Line, text: str, space: Space, local: Mapping[str, Any] | None = None) -> Any:
        """What an expression stands for."""
        try:
            tree = _parsed(space.filled(text))
        except SyntaxError as error:
            raise EquationError(f"{line.place}: {text}: {error.msg}") from error
        try:
            return self._node(tree, line, space, local or {})
        except (TypeError, ValueError) as error:
            if isinstance(error, EquationError):
                raise
            raise EquationError(f"{line.place}: {text}: {error}") from error

    def _node(self, tree: ast.expr, line: Line, space: Space, local: Mapping[str, Any]) -> Any:
        def of(part: ast.expr) -> Any:
            return self._node(part, line, space, local)

        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in local:
                return local[name]
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._find(_name(tree), line, space)
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](of(left), of(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -of(operand)
            case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _SIGNS:
                return _SIGNS[type(sign)](of(left), of(right))
            case ast.List(elts=members):
                return q.span([figure for member in members for figure in _members(of(member))])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _CALLS:
                return _CALLS[name](*(each for argument in arguments for each in _given(of, argument)))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in self._macros(line):
                names, text = self._macros(line)[name]
                given = dict(zip(names, map(of, arguments), strict=True))
                return self._node(_parsed(space.filled(text)), line, space, given)
        raise EquationError(f"{line.place}: {ast.unparse(tree)} is no expression of the equations")

    @staticmethod
    def _macros(line: Line) -> Mapping[str, tuple[tuple[str, ...], str]]:
        return subjects()[line.subject].macros

    def _find(self, name: str, line: Line, space: Space) -> Any:
        """A figure by its name in a line: of the own subject, of another, or a constant."""
        names = [f"{line.subject}.{name}", name]
        if "." in name:
            names.reverse()  # an id, before what another subject has that is called alike
        if space.prefix:
            names = [candidate for each in names for candidate in (f"{space.prefix}{each}", each)]
        names.append(f"constant.{name}")
        if space.inputs and name.startswith(_INPUTS):
            names.insert(0, f"{space.inputs}{name.removeprefix(_INPUTS)}")
        for candidate in names:
            if candidate in self._nodes:
                return self._nodes[candidate]
            if "*" in candidate:
                if members := self.family(candidate):
                    return q.span(members)
            elif candidate in self:
                return self.figure(candidate)
        if name in self._aliases:
            alias = self._aliases[name]
            self._nodes[name] = q.as_node(self._read(alias, alias.parts["body"], Space()))
            return self._nodes[name]
        for own, shared in ((DECODE, ""), (f"{_INPUTS}decode_", _INPUTS)):
            if name.startswith(own):  # the same as for all where decode has no accelerators of its own
                return self._find(f"{shared}{name.removeprefix(own)}", line, Space())
        raise EquationError(f"{line.place}: no row {name}{_nearest(name, self._all())}")


@dataclass(frozen=True)
class OfSubject:
    """The rows of a subject by their names in it.

    Example:
        found = rows.of("capacity")
        found["peak"]; found.all("hour.*.needed")
    """

    rows: Equations
    subject: str

    def __getitem__(self, name: str) -> Named:
        return self.rows.figure(f"{self.subject}.{name}")

    def all(self, pattern: str) -> tuple[Named, ...]:
        return self.rows.family(f"{self.subject}.{pattern}")


class OfSpace:
    """The rows that some accelerators have to themselves, and those that all share, by ids without a prefix.

    Example:
        found = rows.in_space("decode.")
        found["startup.peak"]
    """

    def __init__(self, rows: Equations, prefix: str = "") -> None:
        self.rows, self.prefix = rows, prefix

    def __getitem__(self, identifier: str) -> Quantity:
        own = f"{self.prefix}{identifier}"
        return self.rows[own if own in self.rows else identifier]

    @property
    def features(self) -> frozenset[str]:
        """What the scenarios ask for."""
        return self.rows.features

    def sections(self, subject: str, *titles: str) -> tuple[Section, ...]:
        """The blocks of a subject that are made there, or some."""
        return self.rows.sections(subject, *titles, space=self.prefix)


@cache
def subjects() -> Mapping[str, Subject]:
    """What stands in all files, by name."""
    return {path.stem: read(path.read_text("utf-8"), path.name) for path in sorted(FOLDER.glob("*.eq"))}


def read(text: str, file: str) -> Subject:
    """What stands in a file.

    Raises:
        EquationError: for a line that is neither head, row, `for`, `when`, `over` nor `define`.
    """
    subject = file.removesuffix(".eq")
    macros: dict[str, tuple[tuple[str, ...], str]] = {}
    names: list[Line] = []
    blocks: list[tuple[Block, dict[str, str], list[Line]]] = []
    heads = 0  # the last so many blocks stand under one head
    families: list[dict[str, str]] = [{}]
    when: tuple[str, ...] = ()
    of_file: tuple[str, ...] = ()
    each = ""
    rows: list[tuple[str, str]] = []

    def end_of_rows() -> None:
        for _, given, lines in blocks[-heads:]:
            for values in families:
                lines += (
                    replace(_line(_filled(line, given | values), place, subject, when), each=each)
                    for place, line in rows
                )
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
            when = _names(line.removeprefix("when "))
            of_file = of_file if heads else when
        elif line.startswith("each "):
            each = line.removeprefix("each ")
        elif line.startswith("for "):
            families = [outer | inner for outer in families for inner in _families(line, place)]
        elif line.startswith("["):
            blocks += ((_head(_filled(line, given), place, subject), given, []) for given in families)
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
    """Title, note and conditions of `[subject] Title | note | when a, not b | each pool | total`."""
    found = re.fullmatch(r"\[(\w+)\] (.+)", line)
    if found is None or found[1] != subject:
        raise EquationError(f"{place}: expected [{subject}] and a title, found {line}")
    title, *rest = (part.strip() for part in found[2].split(" | "))
    block = Block(subject, title)
    for part in rest:
        if part.startswith("when "):
            block = replace(block, when=_names(part.removeprefix("when ")))
        elif part.startswith("each "):
            block = replace(block, each=part.removeprefix("each "))
        elif part == "aside":
            block = replace(block, aside=True)
        elif part in _TOTALS:
            block = replace(block, total=_TOTALS[part])
        else:
            block = replace(block, note=part)
    return block


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
    for member in members:
        values = [value.strip() for value in member.split("|")]
        if len(values) != len(names):
            raise EquationError(f"{place}: expected {len(names)} values, found {member.strip()}")
        yield dict(zip(names, values, strict=True))


def _filled(line: str, values: Mapping[str, str]) -> str:
    """A line with values for {names}; {n-1} is the number before."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            return found[0]
        return str(int(values[found[1]]) + int(found[2])) if found[2] else values[found[1]]

    return re.sub(r"\{(\w+)([+-]\d+)?\}", value, line) if values else line


def _line(line: str, place: str, subject: str, when: tuple[str, ...]) -> Line:
    if line.startswith("over "):
        name, sign, rest = line.removeprefix("over ").partition(" = ")
        body, _, more = rest.partition(" | when ")
        if not sign:
            raise EquationError(f"{place}: expected over ROW = EXPRESSION, found {line}")
        return Line(
            place, subject, name.strip(), {"body": body}, (*when, *(_names(more) if more else ())), over=True
        )
    found = _ROW.fullmatch(line)
    if found is not None:
        parts = {name: part or "" for name, part in found.groupdict().items()}
        return Line(place, subject, f"{subject}.{found['id']}", parts, when)
    found = _PLACED.fullmatch(line)
    if found is None:
        raise EquationError(f"{place}: expected id, label, [unit] = expression, found {line}")
    return Line(place, subject, f"{subject}.{found[1]}", {}, when, without=f"{subject}.{found[2] or ''}")


def _input(
    identifier: str, label: str, unit: str, note: str, source: str, called: str, stated: re.Match[str]
) -> Input:
    """A figure that stands in the text itself; one with a range may be edited."""
    value: Any = ast.literal_eval(stated["value"])
    low, high = stated["low"], stated["high"]
    status = source.partition(" ")[0]
    return Input(
        id=identifier,
        label=label,
        unit=unit,
        value=value,
        note=note,
        source=source or "definition",
        status=status if status in _STATED else "defined",
        shared=True,
        fixed=low is None,
        minimum=None if low is None else ast.literal_eval(low),
        maximum=None if high is None else ast.literal_eval(high),
        name=called,
    )


@cache
def _parsed(text: str) -> ast.expr:
    """An expression; parts of ids that are numbers, or *, stand in brackets for Python."""

    def in_brackets(found: re.Match[str]) -> str:
        return _FAMILY.sub(lambda part: f"[{':' if part[1] == '*' else part[1]}]", found[0])

    quoted = re.split(r"('[^']*')", text)
    quoted[::2] = [
        _DOTTED.sub(in_brackets, re.sub("`(.+?)`", lambda name: _for_python(name[1]), part))
        for part in quoted[::2]
    ]
    return ast.parse("".join(quoted).strip(), mode="eval").body


def _for_python(identifier: str) -> str:
    for sign, word in _SIGNS_OF_IDS.items():
        identifier = identifier.replace(sign, word)
    return identifier


def _as_id(name: str) -> str:
    for sign, word in _SIGNS_OF_IDS.items():
        name = name.replace(word, sign)
    return name


def _name(tree: ast.expr) -> str:
    match tree:
        case ast.Name(id=name):
            return _as_id(name)
        case ast.Attribute(value=value, attr=name):
            return f"{_name(value)}.{_as_id(name)}"
        case ast.Subscript(value=value, slice=ast.Constant(value=int(number))):
            return f"{_name(value)}.{number}"
        case ast.Subscript(value=value, slice=ast.Slice()):
            return f"{_name(value)}.*"
    raise ValueError(f"{ast.unparse(tree)} is no name")


def _given(of: Callable[[ast.expr], Any], argument: ast.expr) -> Iterator[Any]:
    """An argument; all members of a *[list]."""
    if isinstance(argument, ast.Starred):
        yield from _members(of(argument.value))
    else:
        yield of(argument)


def _members(node: Any) -> tuple[Named, ...]:
    return node.members if isinstance(node, q.Span) else (node,)


def _nearest(name: str, names: list[str]) -> str:
    """The name that was meant, if one is near."""
    near = get_close_matches(name, names, 1, 0.7)
    return f"; did you mean {near[0]}?" if near else ""
