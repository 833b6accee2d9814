"""Graph to words: how a quantity is worked out, in one sentence that names everything it follows from.

The sentence of an operation stands in the table of `operations`. Some combinations read better otherwise:
a choice ("A if X, B if Y, else C"), a lookup by key, the larger of two, a bound ("at least 1"), a text put
together. Those are the functions listed in `_FORMS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from mantile.graph.operations import ATOM, COMPARISON, OPERATIONS, PRODUCT, SUM
from mantile.graph.quantity import (
    Apply,
    Cases,
    InCase,
    Input,
    Literal,
    Named,
    Node,
    Quantity,
    Span,
    Table,
    Words,
    expression,
    is_named,
)

AND, PHRASE = 1, 0
"""How loosely conditions and functions read in words: inside an operator or a list they get brackets."""
_SENTENCES = 16_384  # kept for the next workbook of the same graph: a standard one has some 3,800
LINE = 100
"""Parts of a sum are named one by one where that takes no more characters than this."""


def sentence(figure: Named) -> str:
    """How a quantity is worked out and, where a note says so, why; what an input means."""
    if isinstance(figure, Input):
        return figure.note
    how = how_worked_out(figure)
    return f"{how} · {figure.note}" if figure.note else how


@lru_cache(_SENTENCES)
def how_worked_out(quantity: Quantity) -> str:
    """How a quantity is worked out, printed from its body."""
    return _Printer(names(quantity), _ending(quantity)).phrase(quantity.body).text


def called(figure: Named) -> str:
    """How sentences call a figure: its name, or its label without the capital of an ordinary word.

    A plus sign of a label, as in "FFN gate + up", would read as a sum.
    """
    return (figure.name or lowered(figure.label)).replace(" + ", " and ")


def names(quantity: Quantity) -> dict[Named, str]:
    """What the sentence of a quantity calls its precedents: their labels where several are called the same.

    A fixed text, such as the name of a limit, is called by its value. What labels of the quantity and of a
    precedent both end in is left out: "Draw, decode" follows from "idle power".
    """
    figures: dict[Named, str] = {}
    for node in expression(quantity.body, leaf=lambda node: is_named(node) or isinstance(node, Span | Table)):
        figure = node.figure if isinstance(node, InCase) else node
        if isinstance(figure, Input | Quantity):
            text = figure.value if isinstance(figure, Input) and figure.fixed else None
            figures[figure] = f'"{text}"' if isinstance(text, str) else _in_full(figure, quantity)
    count = Counter(figures.values())
    for figure, name in figures.items():
        if count[name] > 1:
            figures[figure] = lowered(figure.label).replace(" + ", " and ")
    short = {figure: name.removesuffix(_ending(quantity)) for figure, name in figures.items()}
    count = Counter(short.values())
    return {figure: short[figure] if count[short[figure]] == 1 else name for figure, name in figures.items()}


def _in_full(figure: Named, quantity: Quantity) -> str:
    """How a quantity calls a figure.

    One that leaves out the ending of its block gets it back outside of it.
    """
    short, comma, _ = figure.label.rpartition(", ")
    if comma and figure.name == lowered(short) and _ending(figure).lower() != _ending(quantity).lower():
        return lowered(figure.label).replace(" + ", " and ")
    return called(figure)


def _ending(figure: Named) -> str:
    """What the labels of a block end in, such as ", QKV projection" or ", decode"."""
    _, comma, ending = figure.label.rpartition(", ")
    return (comma + ending).replace(" + ", " and ") if comma else ""


def lowered(label: str) -> str:
    """A label without the capital of an ordinary first word: "weights read", but "KV cache"."""
    head = label.split(" ", 1)[0]
    ordinary = head[:1].isupper() and (head[1:].islower() or head == "A")
    return label[0].lower() + label[1:] if ordinary else label


@dataclass(frozen=True, slots=True)
class _Phrase:
    """Words for a node, and how tightly they bind.

    In a template of the table, `{0}` gets brackets where a function stands, `{0:atom}` where anything but a
    name stands, and `{0:bare}` never.
    """

    text: str
    binds: int = ATOM

    def __format__(self, how: str) -> str:
        return self.within({"bare": 0, "atom": ATOM, "": COMPARISON}[how])

    def within(self, least: int) -> str:
        """The words in brackets unless they bind so tightly."""
        return self.text if self.binds >= least else f"({self.text})"


@dataclass(frozen=True, slots=True)
class _Printer:
    names: dict[Named, str]
    ending: str

    def phrase(self, node: Node) -> _Phrase:
        """Words for any node."""
        if isinstance(node, Input | Quantity):
            return _Phrase(self.names[node])
        if isinstance(node, Cases):
            return _Phrase(node.words)
        if isinstance(node, InCase):
            return _Phrase(f"{self.names[node.figure]} {node.words}".rstrip())
        if isinstance(node, Literal):
            return _Phrase(f'"{node.value}"' if isinstance(node.value, str) else str(node.value))
        if isinstance(node, Span):
            return _Phrase(self.ends(node))
        if isinstance(node, Table):
            return _Phrase(called(node.members[0]))
        if isinstance(node, Words):
            return _Phrase(f"{node.what} of {self.ends(node.span)}")
        assert isinstance(node, Apply)
        flag = self.flag(node)
        if flag is not None:
            return _Phrase(f"1 if {flag.text}, else 0", PHRASE)
        form = _FORMS.get(node.operation)
        special = form(self, *node.arguments) if form is not None else None
        return special if special is not None else self.plain(node)

    def plain(self, node: Apply) -> _Phrase:
        """An operation in the words of the table."""
        operation = OPERATIONS[node.operation]
        if operation.precedence in (ATOM, COMPARISON):
            parts = [self.phrase(argument) for argument in node.arguments]
            binds = COMPARISON if operation.unit in ("comparison", "truth") else PHRASE
            return _Phrase(operation.sentence.format(*parts), binds)
        texts = [
            self.operand(argument).within(operation.precedence + (place > 0))
            for place, argument in enumerate(node.arguments)
        ]
        if node.operation == "power":  # in a product its base would not be seen
            return _Phrase(operation.sentence.format(*texts), COMPARISON)
        return _Phrase(operation.sentence.format(*texts), operation.precedence)

    def operand(self, node: Node) -> _Phrase:
        """Words for what is reckoned with: a flag counts as 1 or 0."""
        flag = self.flag(node) if is_named(node) else None
        return self.phrase(node) if flag is None else _Phrase(f"1 if {flag.text}, else 0", PHRASE)

    def condition(self, node: Node) -> _Phrase:
        """Words for what is true or not."""
        flag = self.flag(node)
        if flag is not None:
            return flag
        if isinstance(node, Apply) and node.operation == "greater" and _is(node.arguments[1], 0):
            flag = self.flag(node.arguments[0])
            if flag is not None:
                return flag
        if isinstance(node, Apply) and node.operation == "less_equal" and _is(node.arguments[1], 0):
            flag = self.flag(node.arguments[0])
            if flag is not None:
                return _not(flag)
        return self.phrase(node)

    def flag(self, node: Node) -> _Phrase | None:
        """What holds where a node is 1 and not where it is 0; None for a node that counts or measures."""
        if isinstance(node, Input | Quantity):
            return _Phrase(self.names[node]) if _is_flag(node) else None
        if not isinstance(node, Apply):
            return None
        first, *others = node.arguments
        if node.operation == "where":
            return self._chosen_flag(first, *others)
        if node.operation == "subtract" and _is(first, 1):
            flag = self.flag(others[0])
            return None if flag is None else _not(flag)
        word = {"multiply": "and", "minimum": "and", "maximum": "or"}.get(node.operation)
        if word is None or not others:
            return None
        flags = [self.flag(argument) for argument in node.arguments]
        if None in flags:
            return None
        return self.combined(
            word,
            [
                (_subject(argument), flag)
                for argument, flag in zip(node.arguments, flags, strict=True)
                if flag
            ],
        )

    def _chosen_flag(self, test: Node, then: Node, otherwise: Node) -> _Phrase | None:
        if _is(then, 0) and _is(otherwise, 1):
            return _not(self.condition(test))
        first = (_subject(test), self.condition(test))
        if _is(otherwise, 0):
            flag = self.flag(then)
            return (
                first[1]
                if _is(then, 1)
                else None
                if flag is None
                else self.combined("and", [first, (_subject(then), flag)])
            )
        flag = self.flag(otherwise) if _is(then, 1) else None
        return None if flag is None else self.combined("or", [first, (_subject(otherwise), flag)])

    def combined(self, word: str, conditions: list[tuple[Node | None, _Phrase]]) -> _Phrase:
        """Conditions of which all or one hold; "A is set and above 0" says the subject once."""
        texts: list[str] = []
        before: Node | None = None
        for subject, condition in conditions:
            loose = condition.binds < AND if word == "and" else condition.binds == AND
            text = f"({condition.text})" if loose else condition.text
            if subject is not None and subject is before:
                text = text.removeprefix(f"{self.phrase(subject)} is ")
            before = subject
            texts.append(text)
        return _Phrase(f" {word} ".join(texts), AND if word == "and" else PHRASE)

    def listed(self, nodes: tuple[Node, ...]) -> str:
        """Several parts in a row; the members of a span one by one where they fit a line."""
        texts: list[str] = []
        for node in nodes:
            if isinstance(node, Span) and (members := self.members(node)):
                if len(nodes) == 1:
                    return members
                texts.append(f"({members})")
            else:
                texts.append(f"{self.phrase(node)}")
        separator = "; " if any(", " in text for text in texts) and len(texts) > 2 else ", "
        return texts[0] if len(texts) == 1 else f"{separator.join(texts[:-1])} and {texts[-1]}"

    def members(self, span: Span) -> str:
        """All members of a span by name, what they share said once; "" where they do not fit a line."""
        texts = self._members(span.members)
        if len(texts) == 1:
            return texts[0]
        head = _head(texts)
        texts = [text.removeprefix(head) for text in texts]
        line = head.replace(", ", ": ") + ", ".join(texts[:-1]) + " and " + texts[-1]
        return line if len(line) <= LINE else ""

    def ends(self, span: Span) -> str:
        """The first and the last figure of a span, or what all of them are called."""
        texts = self._members((span.members[0], span.members[-1]))
        return texts[0] if len(texts) == 1 else f"{texts[0]} … {texts[1].removeprefix(_head(texts))}"

    def _members(self, figures: tuple[Named, ...]) -> list[str]:
        return list(dict.fromkeys(called(figure).removesuffix(self.ending) for figure in figures))


Form = Callable[..., _Phrase | None]


def _where(printer: _Printer, test: Node, then: Node, otherwise: Node) -> _Phrase:
    """ "A if X, B if Y, else C"; what is asked about the result itself leaves it out: "A if set, else B"."""
    condition = printer.condition(test).text
    result = printer.phrase(then)
    subject = f"{result} "
    if isinstance(test, Apply) and test.arguments[0] is then and condition.startswith(f"{subject}is "):
        condition = condition.removeprefix(f"{subject}is ")
    rest = printer.phrase(otherwise)
    chained = (
        isinstance(otherwise, Apply) and otherwise.operation == "where" and printer.flag(otherwise) is None
    )
    return _Phrase(
        f"{result} if {condition}, " + (rest.text if chained else f"else {rest}"),
        PHRASE,
    )


def _all_of(printer: _Printer, *conditions: Node) -> _Phrase:
    """ "A is set and above 0"."""
    return printer.combined("and", [(_subject(node), printer.condition(node)) for node in conditions])


def _extreme(more: str, most: str, bound: str) -> Form:
    """ "A, at least 1", "the larger of A and B", "the largest of A, B and C"."""

    def form(printer: _Printer, *nodes: Node) -> _Phrase:
        if len(nodes) == 1 and not isinstance(nodes[0], Span):
            return printer.phrase(nodes[0])
        if len(nodes) == 2:
            for limit, other in (nodes, nodes[::-1]):
                if isinstance(limit, Literal) and not isinstance(other, Span):
                    return _Phrase(f"{printer.phrase(other)}, {bound} {limit.value}", PHRASE)
        two = len(nodes) == 2 and not any(isinstance(node, Span) for node in nodes)
        return _Phrase(f"the {more if two else most} of {printer.listed(nodes)}", PHRASE)

    return form


def _add(printer: _Printer, *nodes: Node) -> _Phrase:
    """ "A + 2 × B" for A + B + B; a sum within a sum needs no brackets."""
    terms = [term for node in nodes for term in _chain("add", node)]
    count = Counter(terms)
    texts = []
    for term in count:
        least = SUM if count[term] == 1 else PRODUCT
        text = printer.operand(term).within(least)
        texts.append(text if count[term] == 1 else f"{count[term]} × {text}")
    return _Phrase(" + ".join(texts), SUM if len(texts) > 1 else PRODUCT)


def _multiply(printer: _Printer, *nodes: Node) -> _Phrase:
    """ "A × B × C": a product within a product needs no brackets, once is not said, flags hold together."""
    factors = [factor for node in nodes for factor in _chain("multiply", node) if not _is(factor, 1)]
    flags = {factor: flag for factor in factors if (flag := printer.flag(factor)) is not None}
    parts = [printer.phrase(factor) for factor in factors if factor not in flags]
    if flags:
        together = printer.combined("and", [(_subject(factor), flag) for factor, flag in flags.items()])
        parts.insert(factors.index(next(iter(flags))), _Phrase(f"1 if {together.text}, else 0", PHRASE))
    if len(parts) == 1:
        return parts[0]
    return _Phrase(" × ".join(part.within(PRODUCT) for part in parts), PRODUCT)


def _chain(operation: str, node: Node) -> list[Node]:
    """The parts of a chain of one operation, however it was put together."""
    if isinstance(node, Apply) and node.operation == operation:
        return [part for argument in node.arguments for part in _chain(operation, argument)]
    return [node]


def _total(printer: _Printer, *nodes: Node) -> _Phrase:
    """ "sum of A, B and C"; one part is that part."""
    several = isinstance(nodes[0], Cases) or (isinstance(nodes[0], Span) and len(nodes[0].members) > 1)
    if len(nodes) == 1 and not several:
        return printer.phrase(nodes[0])
    return _Phrase(f"sum of {printer.listed(nodes)}", PHRASE)


def _index(printer: _Printer, members: Span, position: Node) -> _Phrase:
    """ "A … B, looked up for K in the keys"; "A … B at the place of the largest of the keys"."""
    if isinstance(position, Apply) and position.operation == "match":
        key, keys, _ = position.arguments
        if isinstance(keys, Span) and not _is_extreme(key, keys):
            looked_up = (
                f"{printer.phrase(members)}, looked up for {printer.phrase(key)} in {printer.ends(keys)}"
            )
            return _Phrase(looked_up, COMPARISON)
    place = printer.phrase(position)
    article = "the " if place.text.startswith("place ") else ""
    return _Phrase(f"{printer.phrase(members)} at {article}{place:bare}", COMPARISON)


def _look_up(printer: _Printer, figures: Table, _row: Node, column: Node) -> _Phrase:
    """ "A at column C of the table"."""
    return _Phrase(f"{printer.phrase(figures)} in the {printer.phrase(column):bare}", COMPARISON)


def _choose(printer: _Printer, position: Node, *nodes: Node) -> _Phrase:
    """ "number N of A, B and C"."""
    return _Phrase(f"number {printer.phrase(position):bare} of {printer.listed(nodes)}", PHRASE)


def _match(printer: _Printer, key: Node, members: Span, _exact: Node) -> _Phrase:
    """ "place of K in the keys", "place of the largest of the keys"."""
    if _is_extreme(key, members):
        return _Phrase(f"place of {printer.phrase(key):bare}", PHRASE)
    return _Phrase(f"place of {printer.phrase(key)} in {printer.ends(members)}", PHRASE)


def _is_extreme(key: Node, members: Span) -> bool:
    """Whether a key is the largest or smallest of the members."""
    if not isinstance(key, Apply) or key.operation not in ("maximum", "minimum"):
        return False
    among = key.arguments[0]
    return isinstance(among, Span) and among.members == members.members


def _sum_where(printer: _Printer, values: Span, *pairs: Node) -> _Phrase:
    """ "sum of the values where the keys are K and other keys at least B"."""
    return _Phrase(f"sum of {printer.ends(values)} where {_conditions(printer, pairs)}", PHRASE)


def _count_where(printer: _Printer, *pairs: Node) -> _Phrase | None:
    """ "how often the keys are K and other keys at least B"; one condition as in the table."""
    return _Phrase(f"how often {_conditions(printer, pairs)}", PHRASE) if len(pairs) > 2 else None


def _conditions(printer: _Printer, pairs: tuple[Node, ...]) -> str:
    """Spans and what their members are, in pairs."""
    texts = [printer.phrase(node) for node in pairs]
    return " and ".join(f"{keys} is {key}" for keys, key in zip(texts[::2], texts[1::2], strict=True))


def _join(printer: _Printer, left: Node, right: Node) -> _Phrase:
    """A text with what is put in between square brackets: "in [data type]"."""
    return _Phrase(f'"{_inside(printer, left)}{_inside(printer, right)}"')


def _inside(printer: _Printer, node: Node) -> str:
    if isinstance(node, Literal):
        return str(node.value)
    if isinstance(node, Apply) and node.operation == "join":
        return "".join(_inside(printer, part) for part in node.arguments)
    return f"[{printer.phrase(node).text}]"


_FORMS: dict[str, Form] = {
    "add": _add,
    "multiply": _multiply,
    "where": _where,
    "all_of": _all_of,
    "maximum": _extreme("larger", "largest", "at least"),
    "minimum": _extreme("smaller", "smallest", "at most"),
    "total": _total,
    "index": _index,
    "look_up": _look_up,
    "choose": _choose,
    "match": _match,
    "sum_where": _sum_where,
    "count_where": _count_where,
    "join": _join,
}


def _subject(node: Node) -> Node | None:
    """What a comparison is about."""
    if isinstance(node, Apply) and node.operation == "where":
        return _subject(node.arguments[0])
    return node.arguments[0] if isinstance(node, Apply) else None


def _is_flag(figure: Named) -> bool:
    """Whether a figure says yes or no; a number of flags is a count."""
    if figure.unit != "flag":
        return False
    if isinstance(figure, Input):
        return figure.value in (None, 0, 1)
    body = figure.body
    if not isinstance(body, Apply):
        return True
    differs = body.operation == "subtract" and not _is(body.arguments[0], 1)
    return body.operation != "total" and not differs


def _is(node: Node, value: int) -> bool:
    return isinstance(node, Literal) and node.value == value


def _not(flag: _Phrase) -> _Phrase:
    text = flag.text
    for positive, negative in ((" is above ", " is at most "), (" is at most ", " is above ")):
        if text.count(" is ") == 1 and positive in text:
            return _Phrase(text.replace(positive, negative), flag.binds)
    return _Phrase(f"not ({text})" if " " in text else f"not {text}", COMPARISON)


def _head(texts: list[str]) -> str:
    """What names begin with in common, up to a comma or colon: "time, " of "time, ring" and "time, torus"."""
    first = texts[0]
    for mark in (", ", ": "):
        head, separator, _ = first.partition(mark)
        if separator and all(text.startswith(head + mark) for text in texts):
            return head + mark
    return ""
