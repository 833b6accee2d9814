"""The rows of equations that stand as text in `*.eq`: found by their ids, made when somebody asks for them.

README.md of this folder has the grammar on a page. Expressions are Python's, their operations those of
`graph/operations`, their names ids: of the own subject bare, of others behind their subject.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache, partial
from itertools import groupby
from typing import Any

from mantile.equations.text import Again, Block, EquationError, Line, filled, name_of, parsed, subjects
from mantile.graph import quantity as q
from mantile.graph.quantity import Input, Named, Node, Quantity, Section, ancestors
from mantile.graph.rewrite import GraphRewrite
from mantile.graph.sentence import lowered

DECODE, _FULLEST, _INPUTS = "decode.", "fullest.", "inputs."
_TOTALS = {"": 0, "subtotal": Section.SUBTOTAL, "total": Section.TOTAL}
_INPUT = re.compile(r"(?P<value>-?[\d.]+(?:e[+-]?\d+)?|'[^']*')(?: in (?P<low>\S+) to (?P<high>\S+))?")
_IT = re.compile(r"\bit\b")
_EACH = re.compile(r"\[([^\[\]]+) each ([\w ,]+)\]")
# What the source of an input begins with.
_STATED = ("assumed", "measured", "fitted", "datasheet", "secondary")
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
_CALLS |= {"added": lambda *parts: q.sum_of(parts), "in_case": q.in_case}
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


@dataclass(frozen=True)
class Space:
    """Where a block is made once more, for other accelerators.

    Args:
        prefix: what its ids begin with; names of rows are looked for behind it first.
        suffix: what its labels end in.
        inputs: what ids of inputs begin with that it has to itself.
        facts: by name, what stands in {braces} in its lines; {space} is what ids begin with, {own} the prefix
            of what it has to itself even where its ids have none.
        features: what stands behind `when` there, beside what scenarios ask for.
        within: what names of rows are looked for behind first, where its ids begin otherwise.
        called: whether sentences call its rows by their labels without the suffix.
        home: what stands in ids in place of the subject, where a pass has rows of several subjects.
        shares: whether it has rows of the space without prefix again: what follows from nothing that it has
            to itself is that of all, and sentences keep the suffix.
    """

    prefix: str = ""
    suffix: str = ""
    inputs: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    within: str = ""
    called: bool = True
    home: str = ""
    shares: bool = False

    @property
    def place(self) -> str:
        """What ids in it begin with."""
        return f"{self.home}." if self.home else self.prefix

    def id(self, line: Line) -> str:
        """The id of a row; what is stated has one for all spaces."""
        own = self.filled(line.id)
        if line.stated or not self.place:
            return own
        return self.place + (own.removeprefix(f"{line.subject}.") if self.home else own)

    def filled(self, text: str) -> str:
        """A line with these facts."""
        return filled(text, {"space": self.place, "own": self.prefix} | self.facts) if "{" in text else text

    def inside(self, outer: Space) -> Space:
        """The same within another space."""
        if outer == Space():
            return self
        return replace(
            outer,
            prefix=f"{outer.prefix}{self.prefix}",
            suffix=f"{self.suffix}{outer.suffix}",
            facts=outer.facts | self.facts,
            features=outer.features | self.features,
            within=self.within or outer.within,
        )


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
    _aliases: dict[str, dict[str, Line]] = field(default_factory=dict)
    _rows: dict[str, tuple[Line, Space]] = field(default_factory=dict)
    _over: dict[str, list[Line]] = field(default_factory=dict)
    _names: dict[str, dict[str, None]] = field(default_factory=dict)
    _making: list[str] = field(default_factory=list)
    _walked: set[Node] = field(default_factory=set)
    _following: dict[Node, None] = field(default_factory=dict)
    _again: dict[str, Again] = field(default_factory=dict)
    _asked: dict[str, dict[str, None]] = field(default_factory=dict)
    _rewrites: dict[str, GraphRewrite] = field(default_factory=dict)
    _blocks: list[Block] = field(default_factory=list)

    def __post_init__(self) -> None:
        for subject in subjects().values():
            self._blocks += filter(self._holds, subject.blocks)
            for line in filter(self._holds, subject.names):
                of_subjects = self._aliases.setdefault(line.id, {})
                if line.subject in of_subjects:
                    there = of_subjects[line.subject].place
                    raise EquationError(f"{line.place}: {line.id} stands in {there} too")
                of_subjects[line.subject] = line
            self._again |= {again.line.id: again for again in subject.agains if self._holds(again.line)}
        said = [line.parts["body"] for line in self._defined()]
        for body in (*said, *(by for again in self._again.values() for _, by in again.replaced)):
            self._ask(body)
        for block in self._blocks:
            if not block.each:
                self._make(block.lines, Space())

    def make_in(self, name: str, *spaces: Space) -> None:
        """Make the blocks and rows that are made several times, in spaces of a name.

        Rows within blocks of other spaces are made behind those: name these first.
        """
        self._spaces[name] = spaces
        for space in spaces:
            for fact in space.facts.values():
                self._ask(fact)
        for block in self._blocks:
            if block.each == name:
                for space in spaces:
                    self._make(block.lines, space)
            elif any(line.each == name for line in block.lines):
                for outer in self._spaces_of(block.each):
                    for space in spaces:
                        self._make(
                            [line for line in block.lines if line.each == name], space.inside(outer), name
                        )

    def _make(self, lines: Iterable[Line], space: Space, each: str = "") -> None:
        for line in lines:
            if line.each != each or not self._holds(line, space):
                continue
            identifier = space.id(line)
            self._ask(space.filled(line.parts.get("body", "")))
            if line.over:
                parts = {name: space.filled(part) for name, part in line.parts.items()}
                self._over.setdefault(space.filled(line.id), []).append(replace(line, parts=parts))
            elif line.parts and not (line.stated and space.place and identifier in self._rows):
                if identifier in self._rows:
                    raise EquationError(f"{line.place}: {identifier} stands in {self.place(identifier)} too")
                self._rows[identifier] = line, space
                self._name(identifier)

    def _ask(self, body: str) -> None:
        """Keep which rows an expression asks for as they are when made again."""
        for name in self._again:
            if f"{name}." in body:
                pattern = rf"(?<![\w.]){re.escape(name)}\.([\w.*]+)"
                self._asked.setdefault(name, {}).update(dict.fromkeys(re.findall(pattern, body)))

    def make_again(self, name: str, suffix: str, rewrite: GraphRewrite) -> None:
        """Name figures that are made again elsewhere."""
        self._again[name] = Again(Line("", "", name, {}), suffix, ())
        self._rewrites[name] = rewrite

    def _made_again(self, name: str) -> GraphRewrite:
        """What is made again, by name."""
        if name not in self._rewrites:
            again = self._again[name]
            replaced = {
                figure: partial(self._read, again.line, by, Space())
                for left, right in again.replaced
                for figure, by in self._pairs(left, right, again.line)
            }
            asked = self._asked.get(name, ())
            roots = tuple(figure for row in asked for figure in self._named(row, again.line))
            self._rewrites[name] = GraphRewrite(replaced, (), f"{name}.", again.suffix, roots)
        return self._rewrites[name]

    def _pairs(self, left: str, right: str, line: Line) -> Iterator[tuple[Named, str]]:
        """Figures that are replaced, with what stands for each: of a family, of the member that is meant."""
        start, family, end = left.partition("*")
        for figure in self._named(left, line):
            yield (
                figure,
                right.replace("*", figure.id[len(start) : len(figure.id) - len(end)]) if family else right,
            )

    def _named(self, name: str, line: Line) -> tuple[Named, ...]:
        return self.family(name) if "*" in name else (self._find(name, line, Space()),)

    def know(self, *figures: Named) -> None:
        """Make figures that are made elsewhere known, in place of others with their ids, and all that they
        follow from.
        """
        for figure in figures:  # first themselves: what they follow from may ask for them
            self._known.pop(figure.id, None)
        for figure in figures:
            self._keep(figure)
        for node in ancestors(*figures, *self._following, without=self._walked):
            if not isinstance(node, (Input, Quantity)):  # quicker than a union, and asked for every node
                continue
            self._keep(node)
            if isinstance(node, Input) and node.default is not None and node.follows is None:
                self._following[node] = None  # it is stated later
            else:
                self._following.pop(node, None)
                self._walked.add(node)

    def _keep(self, figure: Named) -> None:
        if figure.id not in self._known:
            self._known[figure.id] = figure
            self._name(figure.id)

    def fork(self) -> Equations:
        """The rows as they are so far; rows made or known there stay there."""
        twin = copy(self)
        twin._known, twin._nodes = dict(self._known), dict(self._nodes)
        twin._walked, twin._following = set(self._walked), dict(self._following)
        twin._rows, twin._spaces = dict(self._rows), dict(self._spaces)
        twin._over = {identifier: [*lines] for identifier, lines in self._over.items()}
        twin._names = {subject: dict(names) for subject, names in self._names.items()}
        return twin

    def know_as(self, name: str, node: Node) -> None:
        """Make known what a name stands for, which depends on what the scenarios ask for."""
        self._nodes[name] = node

    def know_table(self, name: str, columns: Mapping[str, Sequence[Named]]) -> None:
        """Make a table known: its figures, and each column as `name.column`."""
        for column, figures in columns.items():
            self.know(*figures)
            self.know_as(f"{name}.{column}", q.span(figures))

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
            try:
                self._known[identifier] = self._made(identifier, *self._rows[identifier])
            finally:
                self._making.pop()
        return self._known[identifier]

    def place(self, identifier: str) -> str:
        """File and line of a row, as `serving.eq:112`; empty where it is not of the text."""
        return self._rows[identifier][0].place if identifier in self._rows else ""

    def make_all(self) -> frozenset[str]:
        """Make every row of the text; the places in it of these, of what is laid over them, and of names."""
        for identifier in self._rows:
            self.figure(identifier)
        lines = [*(line for line, _ in self._rows.values()), *self._defined()]
        lines += (line for identifier, over in self._over.items() if identifier in self for line in over)
        return frozenset(line.place for line in lines)

    def __len__(self) -> int:
        return len(self._rows)

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

    def sections(
        self, subject: str, *titles: str, part: str = "", prefix: str | None = None
    ) -> tuple[Section, ...]:
        """The blocks of a subject in order, but for those that stand on no sheet of workings.

        Args:
            titles: of some blocks.
            part: of workings on which blocks stand that do not stand with their subject.
            prefix: of the only space of which blocks are asked for.
        """
        found: list[Section] = []
        places: dict[str, int] = {}
        for block in self._blocks:
            if block.subject != subject or block.aside:
                continue
            if block.title not in titles and (titles or block.part != part):
                continue
            if block.again:
                if block.again not in self._again:
                    raise EquationError(
                        f"{subject}.eq: {block.title}: nothing is made again as {block.again}"
                    )
                title = self._again[block.again].suffix.removeprefix(", ").capitalize()
                found.append(Section(title, (), again=block.again))
            for space in self._spaces_of(block.each):
                if prefix not in (None, space.place):
                    continue
                rows = tuple(self._placed(block, space))
                title = f"{space.filled(block.title)}{space.suffix}"
                at = places.setdefault(f"{title}: {space.place or space.facts}", len(found))
                if at == len(found):
                    found.append(Section(title, rows, space.filled(block.note), _TOTALS[block.total]))
                else:  # a head that came before
                    found[at] = replace(found[at], rows=(*found[at].rows, *rows))
        return tuple(section for section in self._with_again(found) if section.rows)

    def _with_again(self, sections: list[Section]) -> list[Section]:
        """Blocks with the rows made again that what follows needs, up to the next block of the same."""
        placed: set[Node] = set()
        for place, section in enumerate(sections):
            if not section.again:
                continue
            follow = sections[place + 1 :]
            after = next((k for k, other in enumerate(follow) if other.again == section.again), None)
            needed = None
            if after is not None:
                needed = set(ancestors(*(row for other in follow[:after] for row in other.figures())))
            rows = {
                original: row
                for original, row in self._made_again(section.again).rewritten.items()
                if isinstance(original, Quantity) and isinstance(row, Quantity)
                if row.id == f"{section.again}.{original.id}" and row not in placed
                if needed is None or row in needed
            }
            placed.update(rows.values())
            sections[place] = replace(section, rows=tuple(rows.values()), originals=tuple(rows))
        return sections

    def places(self, subject: str) -> Iterator[tuple[Block, Space, str]]:
        """Block, space and id of each row of a subject in order, without making it."""
        for block in self._blocks:
            for space in self._spaces_of(block.each) if block.subject == subject else ():
                for line, inner in self._lines(block, space):
                    if line.parts:
                        yield block, inner, inner.id(line)

    def _defined(self) -> Iterator[Line]:
        """The lines that give an expression a name."""
        return (line for of_subjects in self._aliases.values() for line in of_subjects.values())

    def _holds(self, part: Block | Line, space: Space | None = None) -> bool:
        features = self.features if space is None else self.features | space.features
        return all((name.removeprefix("not ") in features) != name.startswith("not ") for name in part.when)

    def _spaces_of(self, each: str) -> tuple[Space, ...]:
        return self._spaces.get(each, ()) if each else (Space(),)

    def _lines(self, block: Block, outer: Space) -> Iterator[tuple[Line, Space]]:
        """The lines of rows of a block in order, each with the space in which it is made."""
        for each, together in groupby(block.lines, lambda line: line.each):
            lines = [line for line in together if not line.over]
            for space in self._spaces_of(each) if each else (Space(),):
                within = space.inside(outer) if each else outer
                yield from ((line, within) for line in lines if self._holds(line, within))

    def _placed(self, block: Block, outer: Space) -> Iterator[Named]:
        for line, space in self._lines(block, outer):
            if line.stated and space.place:
                continue
            identifier = space.filled(line.id)
            column = self._nodes.get(identifier)
            if isinstance(column, q.Span) and not line.parts:
                yield from column.members
            elif "*" in identifier:
                yield from (figure for figure in self.family(identifier) if figure.id != line.without)
            else:
                yield from self._of_line(line, space)

    def _of_line(self, line: Line, space: Space) -> Iterator[Named]:
        """The row at a line of a block; none where a space has that of all."""
        identifier = space.id(line)
        if identifier not in self and not line.parts:  # of another subject
            identifier = identifier.replace(f"{line.subject}.", "", 1)
            if space.prefix and identifier not in self:
                return
        if (figure := self.figure(identifier)).id == identifier:
            yield figure

    def ids_of(self, subject: str) -> tuple[str, ...]:
        """The ids of a subject, in order."""
        return tuple(self._names.get(subject, ()))

    def family(self, pattern: str) -> tuple[Named, ...]:
        """All rows of which the ids are alike but for one part, in order."""
        start, alike = pattern.partition("*")[0], re.compile(re.escape(pattern).replace(r"\*", "[^.]+"))
        names = self._names.get(pattern.partition(".")[0], ())
        return tuple(self.figure(name) for name in names if name.startswith(start) and alike.fullmatch(name))

    def _all(self) -> list[str]:
        return [name for names in self._names.values() for name in names]

    def _made(self, identifier: str, line: Line, space: Space) -> Named:
        parts = line.parts
        label, source = space.filled(parts["label"]), parts["source"]
        called = space.filled(parts["called"]) or (lowered(label) if space.suffix and space.called else "")
        label, unit, note = f"{label}{space.suffix}", space.filled(parts["unit"]), space.filled(parts["note"])
        if parts["sign"] == ":=":
            stated = _INPUT.fullmatch(space.filled(parts["body"]))
            if stated is None:
                raise EquationError(f"{line.place}: expected := NUMBER, 'TEXT', or NUMBER in LOW to HIGH")
            return _input(identifier, label, unit, note, source, called, stated)
        body = q.as_node(self._laid_over([line, *self._over.get(identifier, ())], space))
        if self._is_shared(identifier, line, space, body):
            return self[identifier.removeprefix(space.prefix)]
        return Quantity(identifier, label, unit, body, note, source, called, bool(parts["factor"]))

    def _is_shared(self, identifier: str, line: Line, space: Space, body: Node) -> bool:
        """Whether a row of a space follows from nothing that the space has to itself."""
        shared = identifier.removeprefix(space.prefix)
        if not (space.shares and space.prefix) or self._rows.get(shared, (None,))[0] is not line:
            return False
        own = (space.prefix, space.inputs or space.prefix)
        if any(isinstance(part, Input | Quantity) and part.id.startswith(own) for part in q.expression(body)):
            return False
        return repr(body) == repr(self[shared].body)

    def _laid_over(self, lines: Sequence[Line], space: Space) -> Any:
        """The expression of a row with what is laid over it, the last outermost; `it` is the one below."""
        *below, line = lines
        text = line.parts["body"]
        is_over = bool(below) and _IT.search(text)
        return self._read(line, text, space, {"it": self._laid_over(below, space)} if is_over else {})

    def _read(self, line: Line, text: str, space: Space, local: Mapping[str, Any] | None = None) -> Any:
        """What an expression stands for."""
        try:
            tree = parsed(self._each_listed(space.filled(text), space))
        except SyntaxError as error:
            raise EquationError(f"{line.place}: {text}: {error.msg}") from error
        try:
            return self._node(tree, line, space, local or {})
        except (TypeError, ValueError) as error:
            if isinstance(error, EquationError):
                raise
            raise EquationError(f"{line.place}: {text}: {error}") from error

    def _each_listed(self, text: str, space: Space) -> str:
        """An expression with [NAME each SPACES] written out."""

        def listed(found: re.Match[str]) -> str:
            members = [inner.inside(space).filled(found[1]) for inner in self._spaces_of(found[2])]
            return f"[{', '.join(members)}]" if members else "0"

        return _EACH.sub(listed, text) if " each " in text else text

    def _node(self, tree: ast.expr, line: Line, space: Space, local: Mapping[str, Any]) -> Any:
        def of(part: ast.expr) -> Any:
            return self._node(part, line, space, local)

        match tree:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name) if name in local:
                return local[name]
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._find(name_of(tree), line, space)
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
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if macro := self._macro(
                name, line
            ):
                names, text = macro
                given = dict(zip(names, map(of, arguments), strict=True))
                return self._node(parsed(space.filled(text)), line, space, given)
        raise EquationError(f"{line.place}: {ast.unparse(tree)} is no expression of the equations")

    @staticmethod
    def _macro(name: str, line: Line) -> tuple[tuple[str, ...], str] | None:
        """Parameters and expression of a name, of the own file first."""
        of_files = subjects()
        for subject in (of_files[line.subject], *of_files.values()):
            if name in subject.macros:
                return subject.macros[name]
        return None

    def _find(self, name: str, line: Line, space: Space) -> Any:
        """A figure by its name in a line: of the own subject, of another, or a constant."""
        names = [f"{line.subject}.{name}", name]
        if "." in name:
            names.reverse()  # an id, before what another subject has that is called alike
        if within := space.within or space.prefix:
            names = [candidate for each in names for candidate in (f"{within}{each}", each)]
        names.append(f"constant.{name}")
        if space.home:
            names.insert(0, f"{space.home}.{name}")
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
            for again in self._again:
                full = name if again == line.subject else candidate  # an own name there is not made again
                if full.startswith(f"{again}."):
                    rewrite = self._made_again(again)
                    return rewrite.rewrite(self._find(full.removeprefix(f"{again}."), line, Space()))
        if name in self._aliases:
            of_subjects = self._aliases[name]
            own = of_subjects.get(line.subject)
            if own is None and len(of_subjects) > 1:
                raise EquationError(f"{line.place}: {name} is a name of {', '.join(of_subjects)}")
            alias = own or next(iter(of_subjects.values()))
            here = f"{space.place}{space.facts if '{' in alias.parts['body'] else ''}: {alias.place}"
            if here not in self._nodes:
                self._nodes[here] = q.as_node(self._read(alias, alias.parts["body"], space))
            return self._nodes[here]
        for prefix, shared in ((_FULLEST, DECODE), (DECODE, ""), (f"{_INPUTS}decode_", _INPUTS)):
            if name.startswith(prefix):  # the same as for all where there are no accelerators of their own
                return self._find(f"{shared}{name.removeprefix(prefix)}", line, Space())
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
        return self.rows.sections(subject, *titles, prefix=self.prefix)


@cache
def stated(subject: str) -> Mapping[str, Input]:
    """The figures that a file states, by id; the same for all graphs."""
    rows = Equations()
    figures = {identifier: rows.figure(identifier) for identifier in rows.ids_of(subject)}
    return {identifier: figure for identifier, figure in figures.items() if isinstance(figure, Input)}


def _input(
    identifier: str, label: str, unit: str, note: str, source: str, called: str, stated: re.Match[str]
) -> Input:
    """A figure that stands in the text itself; one with a range may be edited."""
    try:
        value, low, high = (None if end is None else ast.literal_eval(end) for end in stated.groups())
    except (SyntaxError, ValueError) as error:
        raise EquationError(f"{identifier}: expected := NUMBER in LOW to HIGH, found {stated[0]}") from error
    status = source.partition(" ")[0].removesuffix(":")
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
        minimum=low,
        maximum=high,
        name=called,
    )


def _given(of: Callable[[ast.expr], Any], argument: ast.expr) -> Iterator[Any]:
    """An argument; all members of a *[list]."""
    if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.List):
        for member in argument.value.elts:
            yield from _members(of(member))
    elif isinstance(argument, ast.Starred):
        yield from _members(of(argument.value))
    else:
        yield of(argument)


def _members(node: Any) -> tuple[Named, ...]:
    return node.members if isinstance(node, q.Span) else (node,)


def _nearest(name: str, names: list[str]) -> str:
    """The name that was meant, if one is near."""
    near = get_close_matches(name, names, 1, 0.7)
    return f"; did you mean {near[0]}?" if near else ""
