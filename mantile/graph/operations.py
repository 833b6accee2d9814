"""Every operation an estimate may use, one line each: NumPy, Excel, words, precedence, unit, MathML.

Precedence is Excel's own: unary minus binds tighter than ^, every binary operator is left-associative.
An operation that is not in the table does not exist. The Excel side stays inside the subset on which Excel,
LibreOffice and the `formulas` package agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property, reduce
from operator import add, and_, eq, ge, gt, le, lt, mul, sub
from string import Formatter
from typing import Any

import numpy as np

ATOM, NEGATIVE, POWER, PRODUCT, SUM, TEXT, COMPARISON = 9, 7, 6, 5, 4, 3, 2


@dataclass(frozen=True, slots=True)
class Operation:
    """How one operation computes, prints, reads, binds and what its unit is.

    Args:
        numpy: function of scalars or arrays; a span arrives as a list, `Members`.
        excel: template with {0}, {1}, ... or {all} for any number of arguments.
        sentence: the same in words. Brackets go round a function in {0}, round all but a name in {0:atom},
            round nothing in {0:bare}.
        precedence: of the printed form; arguments that bind less tightly get brackets.
        unit: name of the rule by which its unit follows from its arguments' units.
        mathml: a template of MathML. {0} gets brackets where it binds less tightly, {0:atom} round all but a
            symbol, {0:bare} never; {all}, {rest}, {and}, {pairs} and {product} are any number of arguments.
            Empty for a text, which is no formula.
    """

    name: str
    numpy: Callable[..., Any]
    excel: str
    sentence: str
    precedence: int
    unit: str
    mathml: str


def _flat(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments and members of spans without texts, which MIN, MAX and SUM pass over; 0 if none is left."""
    flat = [
        item for argument in arguments for item in (argument if isinstance(argument, list) else [argument])
    ]
    return [item for item in flat if not isinstance(item, str)] or [0.0]


def _plain(value: Any) -> Any:
    """A number of NumPy as Python's own, of the same bits: Python works with these much quicker."""
    return float(value) if type(value) is np.float64 else value


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Arithmetic; a text makes an error of it, as in Excel."""

    def calculate(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, str):
                return math.nan
        return _plain(function(*arguments))

    return calculate


def _of_two(
    function: Callable[[Any, Any], Any], of_floats: Callable[[float, float], float]
) -> Callable[[Any, Any], Any]:
    """The same of two numbers.

    Args:
        of_floats: the same of two floats, to the last bit: without arrays Python's own is much quicker.
    """
    of_all = _of_numbers(function)

    def calculate(left: Any, right: Any) -> Any:
        if isinstance(left, float) and isinstance(right, float):
            return of_floats(left, right)
        return of_all(left, right)

    return calculate


def _beside(value: Any, others: Sequence[Any]) -> Any:
    """A value of cases beside others: a text that says that a number is not known is NaN there."""
    return math.nan if isinstance(value, str) and not all(map(_is_text, others)) else value


def _is_text(value: Any) -> bool:
    """Whether a value is a text, or an array of texts, errors among them."""
    return isinstance(value, str) or (isinstance(value, np.ndarray) and value.dtype.kind in "USO")


def _logarithm(value: Any) -> Any:
    """An error where there is none, as in Excel: NumPy has minus infinity for 0."""
    if isinstance(value, float):
        return np.log(value) if value > 0 else math.nan
    return np.where(np.asarray(value) > 0, np.log(value), np.nan)[()]


def _maximum(*arguments: Any) -> Any:
    if len(arguments) == 2 and type(arguments[0]) is type(arguments[1]) is float:
        left, right = arguments
        return left if left >= right or left != left else right
    return _plain(reduce(np.maximum, _flat(arguments)))


def _minimum(*arguments: Any) -> Any:
    if len(arguments) == 2 and type(arguments[0]) is type(arguments[1]) is float:
        left, right = arguments
        return left if left <= right or left != left else right
    return _plain(reduce(np.minimum, _flat(arguments)))


def _total(*arguments: Any) -> Any:
    return _plain(reduce(np.add, _flat(arguments)))


def _least(members: list[Any]) -> Any:
    """The smallest of the members that are numbers; where there are cases, of those that are in a case."""
    numbers = _flat((members,))
    if all(isinstance(number, float) for number in numbers):
        return _plain(np.array(numbers).min())
    return reduce(np.fmin if any(np.ndim(number) for number in numbers) else np.minimum, numbers)


def _number_or_nothing(value: Any) -> Any:
    """A number as it is, 0 for a text; where there are cases, for what is no number."""
    if isinstance(value, float):
        return value
    if _is_text(value):
        return 0.0
    return value if np.ndim(value) == 0 else np.where(np.isnan(value), 0.0, value)


def _all_of(*arguments: Any) -> Any:
    """An error among conditions is one, whatever the others are."""
    if all(isinstance(condition, bool | np.bool_) for condition in arguments):
        return all(arguments)
    holds = reduce(np.logical_and, arguments)
    errors = [np.isnan(condition) for condition in arguments if not _all_finite(condition)]
    if not errors:
        return holds
    is_error = reduce(np.logical_or, errors)
    if np.ndim(is_error) == 0:
        return math.nan if is_error else holds
    return _unless(is_error, holds)


def _all_finite(value: Any) -> bool:
    """Whether no case is an error; the sum of an array says so in one pass."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "USbiu" or (
            value.dtype.kind == "f" and math.isfinite(np.add.reduce(value, axis=None))
        )
    return isinstance(value, str) or math.isfinite(value)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(condition, bool | np.bool_):
        return then if condition else otherwise
    if isinstance(condition, float) or np.ndim(condition) == 0:
        if isinstance(condition, float) and math.isnan(condition):
            return math.nan
        return then if condition else otherwise
    chosen = np.where(condition, _beside(then, [otherwise]), _beside(otherwise, [then]))
    return chosen if _all_finite(condition) else _unless(np.isnan(condition), chosen)


def _unless(wrong: Any, values: Any) -> Any:
    """Values, with an error where something is wrong; texts become objects then."""
    return np.where(wrong, np.nan, values.astype(object) if values.dtype.kind in "US" else values)


def _same(left: Any, right: Any) -> Any:
    """Excel compares texts without case."""
    if isinstance(left, str) and isinstance(right, str):
        return left.lower() == right.lower()
    return np.equal(left, right)


def _alike(left: Any, right: Any) -> Any:
    """Whether a member is the key. In cases NaN stands for what is no number, and is alike."""
    same = _same(left, right)
    if isinstance(left, str) or not np.ndim(same):
        return same
    return same | (np.isnan(left) & np.isnan(right))


def _divide_floats(left: float, right: float) -> float:
    return left / right if right else math.nan


def _divide(left: Any, right: Any) -> Any:
    if np.ndim(left) == 0 and np.ndim(right) == 0 and right == 0:
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.divide(left, right)
    return quotient if np.all(right) else _unless(np.equal(right, 0), quotient)


def _index(members: list[Any], position: Any) -> Any:
    if isinstance(position, float | int) or np.ndim(position) == 0:
        if math.isnan(position) or not 1 <= position <= len(members):
            return math.nan
        return members[int(position) - 1]
    position = np.asarray(position)
    there = (position >= 1) & (position <= len(members))
    complete = there.all()
    index = (position if complete else np.where(there, position, 1)).astype(np.intp) - 1
    members = [_beside(member, members) for member in members]
    if all(np.ndim(member) == 0 for member in members):
        chosen = np.asarray(members)[index]
    else:
        stacked = np.stack(np.broadcast_arrays(*members, index)[:-1])
        chosen = np.take_along_axis(stacked, index[np.newaxis], axis=0)[0]
    return chosen if complete else _unless(~there, chosen)


def _look_up(cells: Grid, row: Any, column: Any) -> Any:
    inside = (column >= 1) & (column <= cells.width)
    return _index(cells, _plain(np.where(inside, (row - 1) * cells.width + column, math.nan)[()]))


def _choose(position: Any, *operands: Any) -> Any:
    return _index(list(operands), position)


def _match(key: Any, members: list[Any], _exact: int) -> Any:
    if isinstance(members, Members) and members.scalars and isinstance(key, str | float):
        return members.places.get(key.lower() if isinstance(key, str) else key, math.nan)
    if np.ndim(key) == 0 and all(np.ndim(member) == 0 for member in members):
        return next(
            (
                i
                for i, member in enumerate(members, 1)
                if isinstance(member, str) == isinstance(key, str) and _same(member, key)
            ),
            math.nan,
        )
    place: Any = np.nan
    for i in range(len(members), 0, -1):
        if _is_text(members[i - 1]) == _is_text(key):
            place = np.where(np.equal(members[i - 1], key), i, place)
    return place


def _match_at_most(key: Any, members: list[Any], _ascending: int) -> Any:
    count = reduce(np.add, (np.less_equal(member, key).astype(float) for member in members))
    return _plain(np.where(count > 0, count, np.nan)[()])


@dataclass(frozen=True, slots=True)
class _Criterion:
    """What a number must be to be counted: at least, at most, or below, a bound."""

    compare: Callable[[Any, Any], Any]
    bound: Any


def _at_least(bound: Any) -> _Criterion:
    return _Criterion(ge, bound)


def _below(bound: Any) -> _Criterion:
    return _Criterion(lt, bound)


def _at_most(bound: Any) -> _Criterion:
    return _Criterion(le, bound)


class Grid(list[Any]):
    """The values of a table, row by row, 0 where there is none, as an empty cell reads."""

    def __init__(self, places: Sequence[tuple[int, int]], width: int, values: Sequence[Any]) -> None:
        super().__init__([0.0] * (width * (places[-1][0] + 1)))
        self.width = width
        for (row, column), value in zip(places, values, strict=True):
            self[row * width + column] = value


class Members(list[Any]):
    """The values of a span; what look-ups need of scalars is worked out once."""

    @cached_property
    def scalars(self) -> bool:
        """Whether no member is an array over cases."""
        return not any(isinstance(member, np.ndarray) for member in self)

    @cached_property
    def places(self) -> dict[Any, int]:
        """The first place of each text, without case, and of each number; an error has none."""
        found: dict[Any, int] = {}
        for place, member in enumerate(self, 1):
            text = isinstance(member, str)
            if text or member == member:
                found.setdefault(member.lower() if text else float(member), place)
        return found

    @cached_property
    def are_texts(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Whether each member is a text."""
        return np.array([isinstance(member, str) for member in self], bool)

    @cached_property
    def texts(self) -> tuple[dict[str, int], np.ndarray[Any, np.dtype[Any]]]:
        """A number for each text as Excel compares them, without case; and that of each member, −1 of what
        is no text.
        """
        known: dict[str, int] = {}
        numbers = [
            known.setdefault(member.lower(), len(known)) if isinstance(member, str) else -1 for member in self
        ]
        return known, np.array(numbers, int)

    @cached_property
    def numbers(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Numbers; NaN where there is a text."""
        return np.array([np.nan if isinstance(member, str) else member for member in self], float)


def taken(value: Any, places: np.ndarray[Any, np.dtype[np.intp]]) -> Any:
    """A value of other cases: that at its place for each; what is the same in all cases stays."""
    if isinstance(value, Members):
        return value if value.scalars else Members(taken(member, places) for member in value)
    if isinstance(value, _Criterion):
        return _Criterion(value.compare, taken(value.bound, places))
    return value[places] if isinstance(value, np.ndarray) and value.ndim else value


def _flags(keys: Members, key: Any) -> Any:
    """Whether each member is the key or meets a criterion, which a text never does.

    An array, or a list where there are cases.
    """
    criterion = key if isinstance(key, _Criterion) else None
    if keys.scalars and np.ndim(key if criterion is None else criterion.bound) == 0:
        if criterion is not None:
            return criterion.compare(keys.numbers, criterion.bound)
        if isinstance(key, str):
            known, numbers = keys.texts
            return numbers == known.get(key.lower(), -2)
        return keys.numbers == key
    if criterion is None:
        return [_is_text(member) == _is_text(key) and _alike(member, key) for member in keys]
    return [not isinstance(member, str) and criterion.compare(member, criterion.bound) for member in keys]


def _conditions(pairs: Sequence[Any]) -> Any:
    """Whether all conditions hold, each a span and what its member must be: as `_flags`."""
    flags = [_flags(keys, key) for keys, key in zip(pairs[::2], pairs[1::2], strict=True)]
    if all(isinstance(flag, np.ndarray) for flag in flags):
        return reduce(and_, flags)
    return [reduce(and_, holds) for holds in zip(*flags, strict=True)]


def _sum_where(values: Members, *pairs: Any) -> Any:
    """The sum of the numbers for which all conditions hold; texts do not count."""
    flags = _conditions(pairs)
    if isinstance(flags, np.ndarray) and values.scalars:
        return float(values.numbers[flags & ~values.are_texts].sum())
    return _total(
        *(
            np.where(flag, value, 0)
            for value, flag in zip(values, flags, strict=True)
            if not isinstance(value, str)
        )
    )


def _count_where(*pairs: Any) -> Any:
    """How often all conditions hold."""
    flags = _conditions(pairs)
    return float(flags.sum()) if isinstance(flags, np.ndarray) else _total(*map(np.float64, flags))


def _sum_products(*blocks: Members) -> Any:
    """The sum of the products of members that stand side by side; what is no number counts as 0."""
    if all(block.scalars for block in blocks):
        return float(np.nansum(reduce(np.multiply, (block.numbers for block in blocks))))
    products = (reduce(np.multiply, map(_number_or_nothing, row)) for row in zip(*blocks, strict=True))
    return _total(*products)


def _is_number(value: Any) -> Any:
    if isinstance(value, float):
        return value == value
    if value is None or _is_text(value):
        return False
    return ~np.isnan(value)


def _is_empty(value: Any) -> Any:
    """Whether nobody set it: NaN stands for an empty cell."""
    return False if _is_text(value) else np.isnan(value)


def _is_error(value: Any) -> Any:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "USO":
        return np.not_equal(value, value) if value.dtype.kind == "O" else False  # texts, errors among them
    return False if isinstance(value, str) else ~np.isfinite(value)


def _if_error(value: Any, otherwise: Any) -> Any:
    return _where(_is_error(value), otherwise, value)


def _nth_largest(members: list[Any], rank: Any) -> Any:
    ordered = np.sort(np.stack(np.broadcast_arrays(*members)), axis=0)[::-1]
    return _plain(ordered[int(rank) - 1]) if rank <= len(ordered) else np.nan  # as LARGE, an error beyond it


def _round_up(value: Any, _digits: int) -> Any:
    return np.copysign(np.ceil(np.abs(value)), value)


def table_format(digits: int) -> str:
    """The number format of a table."""
    return "#,##0" if digits == 0 else f"#,##0.{'0' * digits}"


def format_text(value: float, form: str) -> str:
    """A number in a format such as "0", "#,##0.00" or "0%", rounded half away from zero as Excel does.

    Formulas take no formats, whose signs for decimals and thousands are others in programs of another
    language.
    """
    if not math.isfinite(value):
        return "#N/A"
    if abs(value) >= 1e20:  # beyond anything a text should show, and beyond Decimal's default precision
        return f"{value:.3E}"
    scaled = Decimal(repr(float(value))) * (100 if form.endswith("%") else 1)
    digits = len(form.rstrip("%").partition(".")[2])
    rounded = scaled.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    if rounded == 0:
        rounded = abs(rounded)
    return f"{rounded:{',' if form.startswith('#,') else ''}.{digits}f}{'%' if form.endswith('%') else ''}"


def _rounded(value: Any, digits: Any) -> Any:
    def shown(number: float) -> str:
        return format_text(float(number), table_format(int(digits)))

    if np.ndim(value) == 0:
        return math.nan if _is_text(value) or _is_error(value) else shown(value)
    return np.vectorize(shown, otypes=[str])(value)


def _percent(value: Any, digits: Any) -> Any:
    return _each(lambda share: f"{trimmed_text(share * 100, digits)}%", value)


def _trimmed(value: Any, digits: Any) -> Any:
    return _each(lambda number: trimmed_text(number, digits), value)


def _each(text_of: Callable[[float], str], value: Any) -> Any:
    if np.ndim(value) == 0:
        return math.nan if _is_text(value) or _is_error(value) else text_of(float(value))
    return np.vectorize(text_of, otypes=[str])(value)


def trimmed_text(value: float, digits: float) -> str:
    """A number with at most so many decimals, as a formula joins it to a text: without zeros at its end.

    Formulas add 0: some engines have a negative 0, which they would show.
    """
    if not math.isfinite(value):
        return "#N/A"
    if abs(value) >= 1e15:  # beyond the digits of a number
        return f"{value:.14E}"
    rounded = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-int(digits)), ROUND_HALF_UP)
    whole, _, decimals = f"{rounded:f}".partition(".")
    decimals = decimals.rstrip("0")
    shown = f"{whole}.{decimals}" if decimals else whole
    return "0" if shown == "-0" else shown


def _as_text(value: Any) -> str:
    """A number in a text as Excel puts it there: at most 15 digits, 0.000001 and not 1e-06."""
    if isinstance(value, str):
        return value
    digits = f"{float(value):.15g}"
    return f"{Decimal(digits):f}" if "e-0" in digits else digits


def _join(left: Any, right: Any) -> Any:
    if np.ndim(left) == 0 and np.ndim(right) == 0 and not (_is_error(left) or _is_error(right)):
        return _as_text(left) + _as_text(right)
    if any(np.ndim(part) == 0 and not isinstance(part, str | np.str_) for part in (left, right)):
        return math.nan  # an error on either side is one
    if not (_is_text(left) and _is_text(right)):
        return np.full(np.broadcast_shapes(np.shape(left), np.shape(right)), math.nan)
    return np.char.add(left, right)


def _until(value: Any, sign: Any) -> Any:
    return str(value).partition(str(sign))[0] if np.ndim(value) == 0 and isinstance(value, str) else math.nan


def _behind(value: Any, sign: Any, pattern: Any) -> Any:
    if any(np.ndim(text) or not isinstance(text, str) for text in (value, pattern)):
        return math.nan
    return value.partition(sign)[2][: len(pattern)]


def _finite(left: float, right: float) -> bool:
    return math.isfinite(left) and math.isfinite(right)


def _compare(
    function: Callable[[Any, Any], Any], of_floats: Callable[[float, float], bool]
) -> Callable[[Any, Any], Any]:
    def compare(left: Any, right: Any) -> Any:
        if isinstance(left, float) and isinstance(right, float):
            return bool(of_floats(left, right)) if _finite(left, right) else math.nan
        if isinstance(left, str) and isinstance(right, str):
            return function(left, right)
        if _is_text(left) != _is_text(right):  # a text is more than any number
            left, right = (np.where(_is_error(side), math.nan, _is_text(side)) for side in (left, right))
            left, right = left[()], right[()]
        if np.ndim(left) == 0 and np.ndim(right) == 0 and (_is_error(left) or _is_error(right)):
            return math.nan
        holds = function(left, right)
        if np.ndim(holds) == 0 or (_all_finite(left) and _all_finite(right)):
            return holds
        return _unless(np.logical_or(_is_error(left), _is_error(right)), holds)

    return compare


_CASES = (
    "<mo>{{</mo><mtable><mtr><mtd>{1:bare}</mtd><mtd><mtext>if&#160;</mtext>{0:bare}</mtd></mtr>"
    "<mtr><mtd>{2:bare}</mtd><mtd><mtext>else</mtext></mtd></mtr></mtable>"
)


def _of(function: str) -> str:
    """A function of all arguments."""
    return f"<mi>{function}</mi><mo>(</mo>{{all}}<mo>)</mo>"


def _words(sentence: str) -> str:
    """An operation that mathematics has no sign for: words, and arguments between them."""
    pieces = re.split(r"(\{\w+\})", sentence)
    spoken = (part.strip() for part in pieces[::2])
    shown = [f"<mtext>&#160;{part}&#160;</mtext>" if part else "" for part in spoken]
    return "".join(
        f"{word}{part.replace('}', ':atom}') if part[1:-1].isdigit() else part}"
        for word, part in zip(shown, [*pieces[1::2], ""], strict=True)
    )


# ruff: disable[E501]
_TABLE = (
    #         name             NumPy                       Excel                  words                                 binds       unit           MathML
    Operation("add",           _of_two(np.add, add),       "{0}+{1}",             "{0} + {1}",                          SUM,        "same",            "{0}<mo>+</mo>{1}"),
    Operation("subtract",      _of_two(np.subtract, sub),  "{0}-{1}",             "{0} − {1}",                          SUM,        "same",            "{0}<mo>−</mo>{1}"),
    Operation("multiply",      _of_two(np.multiply, mul),  "{0}*{1}",             "{0} × {1}",                          PRODUCT,    "product",         "{0}<mo>·</mo>{1}"),
    Operation("divide",        _of_two(_divide, _divide_floats), "{0}/{1}",             "{0} ÷ {1}",                          PRODUCT,    "quotient",  "<mfrac>{0:bare}{1:bare}</mfrac>"),
    Operation("power",         _of_numbers(np.power),      "{0}^{1}",             "{0} to the power {1}",               POWER,      "power",           "<msup>{0:atom}{1:bare}</msup>"),
    Operation("negative",      _of_numbers(np.negative),   "-{0}",                "−{0}",                               NEGATIVE,   "same",            "<mo>−</mo>{0}"),
    Operation("less",          _compare(np.less, lt),      "{0}<{1}",             "{0} is below {1}",                   COMPARISON, "comparison",      "{0}<mo>&lt;</mo>{1}"),
    Operation("less_equal",    _compare(np.less_equal, le), "{0}<={1}",            "{0} is at most {1}",                 COMPARISON, "comparison",     "{0}<mo>≤</mo>{1}"),
    Operation("greater",       _compare(np.greater, gt),   "{0}>{1}",             "{0} is above {1}",                   COMPARISON, "comparison",      "{0}<mo>&gt;</mo>{1}"),
    Operation("greater_equal", _compare(np.greater_equal, ge), "{0}>={1}",            "{0} is at least {1}",                COMPARISON, "comparison",  "{0}<mo>≥</mo>{1}"),
    Operation("equal",         _compare(_same, eq),        "{0}={1}",             "{0} is {1}",                         COMPARISON, "comparison",      "{0}<mo>=</mo>{1}"),
    Operation("all_of",        _all_of,                    "AND({all})",          "{0} and {1}",                        ATOM,       "truth",           "{and}"),
    Operation("where",         _where,                     "IF({0},{1},{2})",     "{1} if {0:bare}, else {2}",          ATOM,       "branch",          _CASES),
    Operation("maximum",       _maximum,                   "MAX({all})",          "the largest of {0}",                 ATOM,       "same",            _of("max")),
    Operation("minimum",       _minimum,                   "MIN({all})",          "the smallest of {0}",                ATOM,       "same",            _of("min")),
    Operation("least",         _least,                     "MIN({0})",            "the smallest number of {0}",         ATOM,       "same",            _of("min")),
    Operation("number",        _number_or_nothing,         "N({0})",              "{0}",                                ATOM,       "same",            "{0:atom}"),
    Operation("total",         _total,                     "SUM({all})",          "sum of {0}",                         ATOM,       "same",            "<mo>∑</mo><mo>(</mo>{all}<mo>)</mo>"),
    Operation("absolute",      _of_numbers(np.abs),        "ABS({0})",            "size of {0:atom}",                   ATOM,       "same",            "<mo>|</mo>{0:bare}<mo>|</mo>"),
    Operation("logarithm",     _of_numbers(_logarithm),    "LN({0})",             "natural logarithm of {0:atom}",      ATOM,       "number",          _of("ln")),
    Operation("exponential",   _of_numbers(np.exp),        "EXP({0})",            "e to the power {0:atom}",            ATOM,       "number",          "<msup><mi>e</mi>{0:bare}</msup>"),
    Operation("round_up",      _of_numbers(_round_up),     "ROUNDUP({0},{1})",    "{0}, rounded up",                    ATOM,       "first",           "<mo>⌈</mo>{0:bare}<mo>⌉</mo>"),
    Operation("floor",         _of_numbers(np.floor),      "INT({0})",            "{0}, rounded down",                  ATOM,       "first",           "<mo>⌊</mo>{0:bare}<mo>⌋</mo>"),
    Operation("remainder",     _of_numbers(np.mod),        "MOD({0},{1})",        "remainder of {0:atom} ÷ {1:atom}",   ATOM,       "first",           _of("mod")),
    Operation("index",         _index,                     "INDEX({0},{1})",      "{0} at {1}",                         ATOM,       "first",           "<msub><mrow><mo>[</mo>{0:bare}<mo>]</mo></mrow>{1:bare}</msub>"),
    Operation("look_up",       _look_up,                   "INDEX({0},{1},{2})",  "{0} in column {2}",                  ATOM,       "first",           "<msub><mrow><mo>[</mo>{0:bare}<mo>]</mo></mrow>{2:bare}</msub>"),
    Operation("choose",        _choose,                    "CHOOSE({all})",       "number {0}",                         ATOM,       "branch",          _words("number {0} of {rest}")),
    Operation("match",         _match,                     "MATCH({0},{1},{2})",  "place of {0} in {1}",                ATOM,       "number",          _words("place of {0} in {1}")),
    Operation("match_at_most", _match_at_most,             "MATCH({0},{1},{2})",  "place of the last of {1} up to {0}", ATOM,       "number",          _words("place of the last of {1} up to {0}")),
    Operation("sum_where",     _sum_where,                 "SUMIFS({all})",       "sum of {0} where {1} is {2}",        ATOM,       "first",           "<mo>∑</mo>{0:atom}" + _words("where {pairs}")),
    Operation("count_where",   _count_where,               "COUNTIFS({all})",     "number of {0} that are {1}",         ATOM,       "number",          _words("how often {pairs}")),
    Operation("sum_products",  _sum_products,              "SUMPRODUCT({all})",   "sum of the products of {0}",         ATOM,       "number",          "<mo>∑</mo><mo>(</mo>{product}<mo>)</mo>"),
    Operation("at_least",      _at_least,                  '">="&{0}',            "at least {0}",                       TEXT,       "first",           "<mo>≥</mo>{0}"),
    Operation("below",         _below,                     '"<"&{0}',             "below {0}",                          TEXT,       "first",           "<mo>&lt;</mo>{0}"),
    Operation("at_most",       _at_most,                   '"<="&{0}',            "at most {0}",                        TEXT,       "first",           "<mo>≤</mo>{0}"),
    Operation("nth_largest",   _nth_largest,               "LARGE({0},{1})",      "number {1} in size of {0}",          ATOM,       "first",           _words("number {1} in size of {0}")),
    Operation("is_number",     _is_number,                 "ISNUMBER({0})",       "{0} is set",                         ATOM,       "truth",           _words("{0} is known")),
    Operation("is_empty",      _is_empty,                  "ISBLANK({0})",        "{0} is empty",                       ATOM,       "truth",           _words("{0} is empty")),
    Operation("is_error",      _is_error,                  "ISERROR({0})",        "{0} is an error",                    ATOM,       "truth",           _words("{0} is an error")),
    Operation("if_error",      _if_error,                  "IFERROR({0},{1})",    "{0}, or {1} on an error",            ATOM,       "same",            _words("{0}, or {1} on an error")),
    Operation("rounded",       _rounded,                   "FIXED(ROUND({0},{1}),{1})", "{0}",                          ATOM,       "truth",           ""),
    Operation("trimmed",       _trimmed,                   "ROUND({0},{1})+0",    "{0}",                                SUM,        "truth",           ""),
    Operation("percent",       _percent,                   'ROUND(({0})*100,{1})+0&"%"', "{0}",                       ATOM,       "truth",           ""),
    Operation("until",         _until,                     "LEFT({0},FIND({1},{0}&{1})-1)", "{0} up to {1}",            ATOM,       "truth",           ""),
    Operation("behind",        _behind,                    "MID({0},FIND({1},{0}&{1})+LEN({1}),LEN({2}))", "{0} behind {1}", ATOM,       "truth",           ""),
    Operation("join",          _join,                      "{0}&{1}",             "{0}{1}",                             TEXT,       "truth",           ""),
)  # fmt: skip
# ruff: enable[E501]

OPERATIONS = {operation.name: operation for operation in _TABLE}

ARITIES = {
    operation.name: None
    if "{all}" in operation.excel
    else len({name for _, name, _, _ in Formatter().parse(operation.excel) if name})
    for operation in _TABLE
}
"""How many arguments each operation takes; None for any number from one."""
