"""Figures in the units that people quote, for sheets and for the texts on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.constant import (
    GIBI,
    GIGA,
    KILO,
    MICRO,
    MILLI,
    TERA,
    TIMES_FROM,
    TIMES_SECONDS,
    TIMES_UNITS,
)
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import (
    NOT_KNOWN,
    Apply,
    Cases,
    InCase,
    Input,
    Literal,
    Named,
    Node,
    Quantity,
    Words,
    equal,
    if_error,
    index,
    is_number,
    join,
    match_at_most,
    rounded,
    span,
    sum_of,
    sum_range,
    text,
    where,
)

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXY"  # of scenarios
SIDE_BY_SIDE = 8
"""Scenarios that sheets for the eye show beside each other; plans of a decision may be more."""

_MULTIPLIED = {("s", "ms"): MILLI, ("s", "us"): MICRO}
_DIVIDED = {
    ("B", "GB"): GIGA,
    ("B", "GiB"): GIBI,
    ("B/s", "GB/s"): GIGA,
    ("FLOP/s", "TFLOP/s"): TERA,
    ("W", "kW"): KILO,
}
_USUAL = {"s": "us", "B": "GB", "B/s": "GB/s"}
_DIGITS = {"us": 1, "GB": 1, **dict.fromkeys(("1", "USD/h", "USD/kWh", "request/s"), 2)}


@dataclass(frozen=True)
class Currency:
    """The currency of the front sheets.

    Args:
        code, symbol: such as EUR and €.
        rate: what a US dollar is in it; None for dollars themselves.
    """

    code: str = "USD"
    symbol: str = "$"
    rate: Input | None = None

    def convert(self, usd: Node) -> Node:
        """An amount in US dollars in this currency."""
        return usd if self.rate is None else usd * self.rate

    def named(self, label: str) -> str:
        """A unit or heading in this currency."""
        return label.replace("USD", self.code)

    def number_format(self, form: str) -> str:
        """A number format in this currency."""
        return form.replace("$", self.symbol)


@dataclass(frozen=True)
class Shown:
    """A figure of the graph as readers see it.

    Args:
        key: a short name.
        label: what it is called.
        shown_unit: the unit in which readers see it, as they write it.
        currency: of amounts.
        digits: after the point; None where it is no amount, such as yes or no.
    """

    key: str
    label: str
    shown_unit: str
    figure: Quantity
    currency: Currency
    digits: int | None = None

    @property
    def is_money(self) -> bool:
        """Whether it is an amount."""
        return self.figure.unit.startswith("USD")

    @property
    def unit(self) -> str:
        """The unit in which it is shown; that of amounts is USD in every currency."""
        return self.figure.unit if self.is_money else self.shown_unit

    def of(self, value: Node) -> Node:
        """A value of the figure, such as that of another case, in the unit in which it is shown."""
        if self.is_money:
            return as_known(self.figure, value, self.currency.convert(value))
        return as_known(self.figure, value, converted(value, self.figure.unit, self.unit))


def in_scenario(figure: Named, scenario: int) -> InCase:
    """A figure as a scenario has it, which sentences call by its letter."""
    return InCase(figure, scenario, f"of {LETTERS[scenario]}")


def sum_across(figure: Named, scenarios: int, words: str) -> Node:
    """A figure summed over scenarios, as many as a formula names one by one, else as a range.

    Args:
        words: what the figures are called in a sentence: "edits of all scenarios".
    """
    if scenarios > SIDE_BY_SIDE:
        return sum_range(Cases(figure, scenarios, words))
    return sum_of([in_scenario(figure, scenario) for scenario in range(scenarios)])


def in_unit(figure: Named, unit: str) -> Node:
    """A figure in another unit of the same kind; the text that says so where nobody knows it.

    Example:
        in_unit(serving.ttft, "ms")
    """
    return as_known(figure, figure, converted(figure, figure.unit, unit))


def as_known(figure: Named, value: Node, worked_out: Node) -> Node:
    """What is worked out from a value of a figure; the text that says so where nobody knows it."""
    if worked_out is value or not may_be_unknown(figure):
        return worked_out
    return where(is_number(value), worked_out, value)


def may_be_unknown(figure: Named) -> bool:
    """Whether a figure may be a text in place of a number."""
    body = figure.body if isinstance(figure, Quantity) else None
    last = body.arguments[-1] if isinstance(body, Apply) else None
    return isinstance(last, Literal) and last.value == NOT_KNOWN


def converted(value: Node, unit: str, to: str) -> Node:
    """An expression of a unit in another unit of the same kind.

    Raises:
        KeyError: if there is no way from one unit to the other.
    """
    if unit == to:
        return value
    if (unit, to) in _MULTIPLIED:
        return value * _MULTIPLIED[unit, to]
    return value / _DIVIDED[unit, to]


def number_in(value: float, unit: str, to: str) -> float:
    """A number of a unit in another unit of the same kind."""
    return float(evaluate(converted(Literal(value), unit, to)))


def usual_unit(unit: str) -> str:
    """The unit in which people quote figures of a unit where any size may occur: microseconds, GB, GB/s."""
    return _USUAL.get(unit, unit)


def usual(value: Node, unit: str) -> Node:
    """An expression of a unit in the unit in which people quote it."""
    return converted(value, unit, usual_unit(unit))


def usual_text(value: Node, unit: str) -> Node:
    """A number in its usual unit as text, with the digits that are read of it."""
    return rounded(value, _DIGITS.get(unit, 0))


def in_ms(figure: Named) -> Node:
    """Seconds in ms; a text stays one."""
    return where(is_number(figure), converted(figure, "s", "ms"), figure)


def long_time(seconds: Node) -> Node:
    """A long time in words, in the unit that people say: 24.9 s, 8.1 min, 30.4 h."""
    place = match_at_most(seconds, span(TIMES_FROM))
    amount = rounded(seconds / index(span(TIMES_SECONDS), place), 1)
    return join(amount, " ", index(span(TIMES_UNITS), place))


def time_in_words(seconds: float) -> str:
    """A number of seconds in the same words."""
    return str(evaluate(long_time(Literal(seconds))))


def told(figure: Named, words: Node, otherwise: str = NOT_KNOWN) -> Node:
    """Words with a figure in them, where somebody knows it."""
    return where(is_number(figure), words, otherwise)


def counted(count: Node, one: str, several: str) -> Node:
    """A number of things in words: " replica carries", " replicas carry" behind it."""
    return join(text(count), where(equal(count, 1), one, several))


HOW = "how it is worked out"
"""The head over what workings say of a row; of an override, why it is set."""


def origin(figure: Input) -> tuple[str, str]:
    """What workings say beside an input: what it means and who states it; how that is known, since when."""
    status, _, source = figure.source.partition(": ")
    if not source:
        return figure.note, figure.source
    parts = (source,) if figure.id.startswith("efficiency.") else (figure.note, source)
    if figure.id.startswith(("library.", "system.")):  # of a figure of the library first who states it
        parts = (source, figure.note)
    return " · ".join(part for part in parts if part), status


def words(figures: Sequence[Input], what: str) -> Words:
    """What stands beside inputs of workings: their quantity, how it is worked out, source or id."""
    texts = {
        "quantity": lambda figure: figure.label,
        HOW: lambda figure: origin(figure)[0],
        "source": lambda figure: origin(figure)[1],
        "id": lambda figure: figure.id,
    }
    return Words(tuple(figures), what, tuple(map(texts[what], figures)))


def or_not_known(figure: Node | str) -> Node:
    """A figure; in words that it is not known where it is an error."""
    return if_error(figure, NOT_KNOWN)
