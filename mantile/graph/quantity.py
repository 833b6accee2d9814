"""What a number of the estimate is: immutable nodes that neither compute nor print.

`Input` is a figure somebody states, `Quantity` a named figure worked out from others, `Apply` one operation
inside a quantity's body, `Span` a block of named figures that stand together. Readers of these nodes
(`evaluate`, `excel`, `sentence`) live in files of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn, cast

from mantile.graph.operations import ARITIES

Number = int | float
Value = Number | str

_LISTED = 4  # choices that are named
NOT_KNOWN = "not known"
"""In place of a number that nobody knows. What is worked out from it is an error."""


class Node:
    """Anything that can stand in an expression. Arithmetic builds `Apply` nodes; nothing is computed."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} has no truth value: a quantity is not a number. Use where(condition, then, otherwise)."
        )

    def __add__(self, other: Operand) -> Apply:
        return apply("add", self, other)

    def __radd__(self, other: Operand) -> Apply:
        return apply("add", other, self)

    def __sub__(self, other: Operand) -> Apply:
        return apply("subtract", self, other)

    def __rsub__(self, other: Operand) -> Apply:
        return apply("subtract", other, self)

    def __mul__(self, other: Operand) -> Apply:
        return apply("multiply", self, other)

    def __rmul__(self, other: Operand) -> Apply:
        return apply("multiply", other, self)

    def __truediv__(self, other: Operand) -> Apply:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Operand) -> Apply:
        return apply("divide", other, self)

    def __pow__(self, exponent: Operand) -> Apply:
        power = Literal(exponent) if isinstance(exponent, int | float) else exponent
        return apply("power", self, power)

    def __neg__(self) -> Apply:
        return apply("negative", self)

    def __lt__(self, other: Operand) -> Apply:
        return apply("less", self, other)

    def __le__(self, other: Operand) -> Apply:
        return apply("less_equal", self, other)

    def __gt__(self, other: Operand) -> Apply:
        return apply("greater", self, other)

    def __ge__(self, other: Operand) -> Apply:
        return apply("greater_equal", self, other)


Operand = Node | int | float | str


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Node):
    """A bare constant: 0, 1, an exponent, or a text such as a format. Every other figure has a name."""

    value: Value


@dataclass(frozen=True, eq=False, slots=True)
class Apply(Node):
    """One operation of the table in `operations` on other nodes.

    Raises:
        ValueError: for an operation that is not in the table, or a number of arguments it does not take.
    """

    operation: str
    arguments: tuple[Node, ...]

    def __post_init__(self) -> None:
        if self.operation not in ARITIES:
            raise ValueError(f"no operation {self.operation!r} in the table")
        wanted = ARITIES[self.operation]
        if len(self.arguments) != wanted if wanted is not None else not self.arguments:
            raise ValueError(
                f"{self.operation} takes {'one argument or more' if wanted is None else wanted}, not "
                f"{len(self.arguments)}"
            )


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Input(Node):
    """A figure that somebody states.

    Args:
        id: unique in the whole estimate, never re-used; the handle in every reader.
        label: what it is, unique among its neighbours.
        unit: as "GB/s" or "token/request"; "1" if there is none. Texts carry "1".
        value: what holds unless a case says otherwise. None is an override that nobody has set.
        note: what it means, in a sentence.
        source: where it comes from, with date.
        status: measured, fitted, datasheet, secondary, assumed, given (by the user), config, defined.
        shared: one value for all cases.
        fixed: part of the structure, not for editing.
        choices: the texts or numbers it may take.
        minimum, maximum, integer: the range it may take.
        name: how a sentence calls it; the label where empty.
        default: gives the figure that it follows until a case states a value. A `LateDefault` where that
            figure is made after the input.
    """

    id: str
    label: str
    unit: str
    value: Value | None
    note: str = ""
    source: str = ""
    status: str = ""
    shared: bool = False
    fixed: bool = False
    choices: tuple[Value, ...] = ()
    minimum: Number | None = None
    maximum: Number | None = None
    integer: bool = False
    name: str = ""
    default: Callable[[], Named | None] | None = None

    @property
    def follows(self) -> Named | None:
        """The figure that it follows until a case states a value; None where `value` holds."""
        return None if self.default is None else self.default()

    def outside(self, value: Number) -> str:
        """What is expected instead of a number that it cannot be; empty where it can."""
        low, high = self.minimum, self.maximum
        if (
            (low is None or low <= value)
            and (high is None or value <= high)
            and not (self.integer and value != int(value))
        ):
            return ""
        return self.expected

    @property
    def expected(self) -> str:
        """What it may be, in words."""
        if isinstance(self.value, str):
            listed = ", ".join(map(str, self.choices[:_LISTED]))
            more = f" or another of its list of {len(self.choices)}" if len(self.choices) > _LISTED else ""
            return f"one of {listed}{more}" if not more else f"{listed}{more}"
        low, high = self.minimum, self.maximum
        if self.fixed and low is not None and low == high:
            return f"{low:,.15g}, as generated: a scenario file changes it"
        kind = "a whole number" if self.integer else "a number"
        limits = (
            f" from {low:,.15g} to {high:,.15g}"
            if low is not None and high is not None
            else f" of at least {low:,.15g}"
            if low is not None
            else ""
        )
        return f"{kind}{limits}{'' if self.unit == '1' or self.integer else f' in {self.unit}'}"

    def __repr__(self) -> str:
        return f"Input({self.id!r})"


@dataclass(eq=False, slots=True)
class LateDefault:
    """The figure that an input follows, worked out from other inputs and so made after it.

    Stated with `set`, once.

    Until then the input follows nothing.
    """

    figure: Named | None = None

    def set(self, figure: Named) -> None:
        """State the figure.

        Raises:
            ValueError: if it was stated before.
        """
        if self.figure is not None:
            raise ValueError(f"the default is {self.figure.id} already, not {figure.id}")
        self.figure = figure

    def __call__(self) -> Named | None:
        return self.figure


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Quantity(Node):
    """A named figure and the expression it follows from.

    Args:
        id, label, unit, name: as for `Input`.
        body: the expression. Its unit must be `unit`, scale included.
        note: why it is worked out so. How it is worked out is never typed: `sentence` prints it from the
            body.
        source: the assumption or reference behind the form, if any.
        factor: an efficiency factor, which the reader may want to calibrate.
    """

    id: str
    label: str
    unit: str
    body: Node
    note: str = ""
    source: str = ""
    name: str = ""
    factor: bool = False

    def __repr__(self) -> str:
        return f"Quantity({self.id!r})"


Named = Input | Quantity


@dataclass(frozen=True, eq=False, slots=True)
class Span(Node):
    """Named figures that stand below or beside each other, for lookups and sums."""

    members: tuple[Named, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Table(Node):
    """Figures in rows and columns, of which some places are empty.

    Args:
        members: the figures, row by row; the first place of each row has one.
        places: of each member its row and column, counted from 0.
        width: number of columns.
        id, label: of a table of one row that stands on a line of its own.
        in_use: the column whose figure is in use, for readers to see.
        note: what is said of that line.
        sources: of each member the number of its source; 0 where nobody states it, empty where nobody counts.
    """

    members: tuple[Input, ...]
    places: tuple[tuple[int, int], ...]
    width: int
    id: str = ""
    label: str = ""
    in_use: Quantity | None = None
    note: str = ""
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Words(Node):
    """What stands in words beside figures that stand below each other: their labels, ids or sources.

    Args:
        members: the figures.
        what: the words, by the head of their column: quantity, how it is worked out, source, id.
        texts: of each member.
    """

    members: tuple[Named, ...]
    what: str
    texts: tuple[str, ...]

    @property
    def span(self) -> Span:
        """The figures themselves."""
        return Span(self.members)

    @property
    def keys(self) -> tuple[str, ...]:
        """What the words of each figure are called among inputs."""
        return tuple(f"{figure.id} {self.what}" for figure in self.members)


@dataclass(frozen=True, slots=True)
class InCase(Node):
    """A figure as one case has it, for expressions that look across cases.

    Args:
        words: which case that is, behind the name of the figure in a sentence: "of B".
    """

    figure: Named
    case: int
    words: str = ""


@dataclass(frozen=True, slots=True)
class Cases(Node):
    """A figure as the first cases have it, side by side, for sums and counts across cases.

    Args:
        count: of the cases.
        words: what the figures are called in a sentence: "errors of all scenarios".
    """

    figure: Named
    count: int
    words: str

    def each(self) -> tuple[InCase, ...]:
        """The figure in one case after the other."""
        return tuple(InCase(self.figure, case) for case in range(self.count))


@dataclass(frozen=True, eq=False, slots=True)
class Line:
    """Several figures on one line.

    Args:
        id, label: of the line.
        number: shared by all cases.
        figures: those of each case, one for each of the columns of its section.
        fixed: shared by all cases, side by side.
        how: stands in the column of how a figure is worked out.
    """

    id: str
    label: str
    number: Input
    figures: tuple[Named, ...]
    fixed: tuple[Input, ...]
    how: str

    @property
    def members(self) -> tuple[Named, ...]:
        """All figures."""
        return (self.number, *self.figures, *self.fixed)


Row = Named | Table | Line | tuple[Named, Input | Table]
"""What stands on one line: a figure, a row of a table, several figures, or a figure of each case and beside
it a shared word about it or a row of a table."""


@dataclass(frozen=True, eq=False, slots=True)
class Section:
    """Quantities that are read together, in order.

    Args:
        title: of the block.
        rows: its inputs and quantities.
        note: what the block stands for: how often, how sharded.
        total: 0 if no row is emphasised, 1 if the last row is a subtotal, 2 if it is the total of the phase.
        heads: what stands over the columns of tables beside its rows, in the head of the sheet.
        columns: what stands over the columns of its rows where these are things and facts: rows of a table,
            the first figure of each its key.
        over: what stands over the figures of lines: a column for each case, or one for all.
        part: of the sheet on which it stands, where that has several.
        again: in what case its rows are made again, of `originals`; empty where they are not.
    """

    title: str
    rows: tuple[Row, ...]
    note: str = ""
    total: int = 0
    heads: Table | None = None
    columns: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    part: str = ""
    again: str = ""
    originals: tuple[Named, ...] = ()

    SUBTOTAL: ClassVar[int] = 1
    TOTAL: ClassVar[int] = 2

    def figures(self) -> tuple[Named, ...]:
        """Every input and quantity of the block, one after the other."""
        rows: list[Node | Line] = [] if self.heads is None else [self.heads]
        rows += [part for row in self.rows for part in (row if isinstance(row, tuple) else (row,))]
        return tuple(
            figure
            for part in rows
            for figure in (part.members if isinstance(part, Table | Line) else (cast(Named, part),))
        )


def defined(
    id: str,
    label: str,
    unit: str,
    value: Value,
    note: str = "",
    source: str = "definition",
    *,
    status: str = "defined",
    name: str = "",
) -> Input:
    """A figure that belongs to the structure: the same in all cases, not for editing."""
    return Input(id, label, unit, value, note, source, status, shared=True, fixed=True, name=name)


def as_node(operand: Operand) -> Node:
    """Wrap a plain 0, 1 or text. Any other number must be an `Input` with a label and a unit.

    Raises:
        ValueError: for a magic number.
    """
    if isinstance(operand, Node):
        return operand
    if isinstance(operand, str) or (
        operand in (0, 1) and isinstance(operand, int) and not isinstance(operand, bool)
    ):
        return Literal(operand)
    raise ValueError(f"{operand!r} is a magic number: state it as an Input with a label, a unit and a source")


def apply(operation: str, *arguments: Operand) -> Apply:
    """An operation of the table on operands."""
    return Apply(operation, tuple(as_node(argument) for argument in arguments))


def span(members: Iterable[Named]) -> Span:
    """A block of figures that stand below or beside each other."""
    return Span(tuple(members))


def table(rows: Iterable[Mapping[int, Input]], width: int, id: str = "", label: str = "") -> Table:
    """Figures by their column, counted from 0, in rows of so many columns."""
    placed = [((at, column), figure) for at, row in enumerate(rows) for column, figure in row.items()]
    return Table(tuple(figure for _, figure in placed), tuple(place for place, _ in placed), width, id, label)


def maximum(*operands: Operand) -> Apply:
    return apply("maximum", *operands)


def minimum(*operands: Operand) -> Apply:
    return apply("minimum", *operands)


def where(condition: Node, then: Operand, otherwise: Operand) -> Apply:
    return apply("where", condition, then, otherwise)


def if_known(value: Node, *needed: Node) -> Apply:
    """A value; in words that it is not known where a figure that it needs is no number.

    Example:
        if_known(hourly * hours, hourly)    # IF(ISNUMBER(hourly),hourly*hours,"not known")
    """
    known = [is_number(figure) for figure in needed]
    return where(all_of(*known) if len(known) > 1 else known[0], value, NOT_KNOWN)


def equal(left: Operand, right: Operand) -> Apply:
    """Equality of texts or of whole numbers; never of measured figures."""
    return apply("equal", left, right)


def all_of(*conditions: Operand) -> Apply:
    return apply("all_of", *conditions)


def sum_of(parts: Sequence[Node]) -> Node:
    """The sum of figures that do not stand below each other; `total` of a span where they do."""
    result: Node = parts[0]
    for part in parts[1:]:
        result = result + part
    return result


def sum_range(*operands: Operand) -> Apply:
    return apply("total", *operands)


def round_up(quotient: Node) -> Apply:
    """The next whole number. For whole-number quotients only: engines disagree about ties."""
    return apply("round_up", quotient, 0)


def least(members: Span) -> Apply:
    """The smallest of the members that are numbers; 0 where there is none."""
    return apply("least", members)


def number_of(operand: Operand) -> Apply:
    """A number as it is, 0 for a text: for bars and ranks, where nothing is not drawn and not best."""
    return apply("number", operand)


def remainder(dividend: Operand, divisor: Operand) -> Apply:
    return apply("remainder", dividend, divisor)


def floor(quotient: Node) -> Apply:
    """The whole part. For whole-number quotients only."""
    return apply("floor", quotient)


def index(members: Span | Words | Cases, position: Operand) -> Apply:
    """The member at a position counted from 1."""
    return apply("index", members, position)


def look_up(figures: Table, row: Operand, column: Operand) -> Apply:
    """The figure in a row and a column of a table, both counted from 1; 0 where there is none."""
    return apply("look_up", figures, row, column)


def choose(position: Operand, *operands: Operand) -> Apply:
    """The operand at a position counted from 1, for figures that do not stand together."""
    return apply("choose", position, *operands)


def match(key: Operand, members: Span | Words) -> Apply:
    """Where a text or whole number stands in a span, counted from 1."""
    return apply("match", key, members, 0)


def match_at_most(key: Operand, members: Span) -> Apply:
    """Where the largest member not above the key stands, for ascending members."""
    return apply("match_at_most", key, members, 1)


def sum_where(values: Span, *conditions: Operand) -> Apply:
    """The sum of the values for which all conditions hold.

    Args:
        values: the numbers.
        conditions: in pairs: keys, a span with as many members as `values`, and what its member must be: a
            text, a whole number, or a criterion: `at_least`, `at_most` or `below` a figure.
    """
    return apply("sum_where", values, *conditions)


def count_where(*conditions: Operand) -> Apply:
    """How often all conditions hold; in pairs as for `sum_where`."""
    return apply("count_where", *conditions)


def sum_products(*blocks: Span) -> Apply:
    """The sum of the products of members that stand side by side; texts and empty cells count as 0."""
    return apply("sum_products", *blocks)


def at_least(bound: Operand) -> Apply:
    """A criterion of `sum_where` and `count_where`: a number from this on."""
    return apply("at_least", bound)


def below(bound: Operand) -> Apply:
    """A criterion of `sum_where` and `count_where`: a number smaller than this."""
    return apply("below", bound)


def at_most(bound: Operand) -> Apply:
    """A criterion of `sum_where` and `count_where`: a number up to this."""
    return apply("at_most", bound)


def is_number(operand: Operand) -> Apply:
    return apply("is_number", operand)


def is_empty(operand: Operand) -> Apply:
    """Whether the cell of an input is empty; of the input itself, since a link to an empty cell shows 0."""
    return apply("is_empty", operand)


def is_error(operand: Operand) -> Apply:
    return apply("is_error", operand)


def if_error(operand: Operand, otherwise: Operand) -> Apply:
    return apply("if_error", operand, otherwise)


def logarithm(operand: Operand) -> Apply:
    """Natural logarithm of a plain number above 0."""
    return apply("logarithm", operand)


def exponential(operand: Operand) -> Apply:
    """e to the power of a plain number."""
    return apply("exponential", operand)


def absolute(operand: Operand) -> Apply:
    return apply("absolute", operand)


def nth_largest(members: Span, rank: Operand) -> Apply:
    return apply("nth_largest", members, rank)


def text(operand: Operand) -> Apply:
    """A number as the text of a whole one, its thousands apart by the sign of the reader's language."""
    return rounded(operand, 0)


def rounded(operand: Operand, digits: int) -> Apply:
    """A number in a text with so many decimals, both signs as in the reader's language."""
    return apply("rounded", operand, Literal(digits))


def trimmed(operand: Operand, digits: int) -> Apply:
    """A number in a text with at most so many decimals, below a thousand. It stands in a `join`."""
    return apply("trimmed", operand, Literal(digits))


def percent(operand: Operand, digits: int) -> Apply:
    """A share in a text, as a percentage with at most so many decimals. It stands in a `join`."""
    return apply("percent", operand, Literal(digits))


def behind(words: Operand, sign: str, pattern: Operand) -> Apply:
    """What stands in a text behind a sign, as many letters as a pattern has; nothing where the sign lacks."""
    return apply("behind", words, Literal(sign), pattern)


def until(words: Operand, sign: str) -> Apply:
    """A text up to a sign, or all of it."""
    return apply("until", words, Literal(sign))


def join(*parts: Operand) -> Apply:
    """Texts one after the other."""
    first, *rest = parts
    result: Node = as_node(first)
    for part in rest:
        result = apply("join", result, part)
    assert isinstance(result, Apply)
    return result


def substitute(node: Node, replacements: Mapping[Node, Node]) -> Node:
    """An expression with some of its figures replaced by others; bodies of figures are left alone."""
    if node in replacements:
        return replacements[node]
    if isinstance(node, Input | Quantity | InCase | Cases):
        return node
    return rebuilt(node, lambda part: substitute(part, replacements))


def in_case(node: Node, case: int, words: str) -> Node:
    """An expression as one case has it; definitions are the same in all."""
    figures = (node,) if isinstance(node, Input | Quantity) else precedents(node)
    varying = (part for part in figures if not (isinstance(part, Input) and part.fixed and part.shared))
    return substitute(node, {part: InCase(part, case, words) for part in varying})


def rebuilt(node: Node, part: Callable[[Node], Node]) -> Node:
    """A node of an expression with something else for each of its parts; itself where all parts stay."""
    parts = children(node)
    others = tuple(part(child) for child in parts)
    if all(other is child for other, child in zip(others, parts, strict=True)):
        return node
    if isinstance(node, Apply):
        return Apply(node.operation, others)
    assert isinstance(node, Span), f"{node!r} has no parts to replace"
    return Span(cast(tuple[Named, ...], others))


def children(node: Node) -> tuple[Node, ...]:
    """The nodes an expression is made of, one level down; of an input the figure that it follows."""
    kind = type(node)  # quicker than isinstance, and asked for every node
    if kind is Apply:
        return cast(Apply, node).arguments
    if kind is Quantity:
        return (cast(Quantity, node).body,)
    if kind is Span or kind is Table:
        return cast(Span | Table, node).members
    if kind is Input:
        followed = cast(Input, node).follows
        return () if followed is None else (followed,)
    return ()


def is_named(node: Node) -> bool:
    """Whether a node is a figure with an id."""
    return isinstance(node, (Input, Quantity))  # quicker than a union, and asked for every node


def expression(*nodes: Node, leaf: Callable[[Node], bool] = is_named) -> Iterator[Node]:
    """The nodes that expressions are made of, in order of appearance, down to leaves and not beyond them."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        yield node
        if not leaf(node):
            stack.extend(reversed(children(node)))


def precedents(node: Node) -> tuple[Named, ...]:
    """The named figures a quantity follows from directly, in order of appearance, each once."""
    return tuple(
        dict.fromkeys(part for part in expression(*children(node)) if isinstance(part, Input | Quantity))
    )


def ancestors(*nodes: Node, without: Collection[Node] = ()) -> Iterator[Node]:
    """The nodes and all they follow from, every node once, precedents first.

    Args:
        without: nodes that are left out, with what only they follow from.
    """
    met: set[Node] = set()
    above: list[Node] = []  # nodes whose precedents are under way
    stack: list[Node | None] = list(reversed(nodes))  # None: all that the last one above is made of is done
    while stack:
        node = stack.pop()
        if node is None:
            yield above.pop()
        elif node not in met and node not in without:
            met.add(node)
            parts = node.arguments if type(node) is Apply else children(node)  # most nodes are of this kind
            if parts:
                above.append(node)
                stack.append(None)
                stack += parts[::-1]
            else:
                yield node


def same_in_all_cases(*nodes: Node) -> set[Node]:
    """The nodes, and what they follow from, that follow from shared inputs only."""
    same: set[Node] = set()
    for node in ancestors(*nodes):
        shared = node.shared if isinstance(node, Input) else not isinstance(node, InCase | Cases)
        if shared and same.issuperset(() if isinstance(node, Input) else children(node)):
            same.add(node)
    return same


def dependents(figure: Named, among: Iterable[Named]) -> tuple[Named, ...]:
    """The figures of a collection that follow directly from a figure."""
    return tuple(other for other in among if figure in precedents(other))
