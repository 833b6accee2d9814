"""Our units, and the check that every quantity's declared unit follows from its body, scale included.

pint's own registry treats bytes as dimensionless and would miss the likeliest mistakes; here byte, FLOP,
token, request, accelerator and USD are base dimensions. Needed when building and testing only, never when
evaluating.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import pint

from mantile.graph.operations import OPERATIONS
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
    ancestors,
)

_DEFINITIONS = """
kilo- = 1e3 = k-
mega- = 1e6 = M-
giga- = 1e9 = G-
tera- = 1e12 = T-
milli- = 1e-3 = m-
micro- = 1e-6 = u-
kibi- = 2**10 = Ki-
mebi- = 2**20 = Mi-
gibi- = 2**30 = Gi-
second = [time] = s
minute = 60 * second = min
hour = 3600 * second = h
day = 24 * hour = date
month = 30.4375 * day
year = 365.25 * day
byte = [information] = B
FLOP = [computation]
token = [token]
request = [request]
accelerator = [accelerator]
USD = [currency]
watt = [power] = W
watt_hour = watt * hour = Wh
joule = watt * second = J
bit = byte / 8
pair = token ** 2 / request
count = []
parameter = count
layer = count
head = count
group = count
expert = count
channel = count
rank = count
stage = count
replica = count
kernel = count
matrix = count
row = count
flag = count
level = count
number = count
message = count
axis = count
domain = count
host = count
percent = 0.01 = _
"""


class UnitError(ValueError):
    """A quantity whose declared unit does not follow from its body."""


@cache
def registry() -> pint.UnitRegistry[float]:
    """The project's own unit registry."""
    return pint.UnitRegistry(_DEFINITIONS.splitlines())


@cache
def parse(unit: str) -> pint.Quantity[float]:
    """A unit as a pint quantity of size one; "1" is dimensionless.

    Raises:
        UnitError: for a unit we do not have.
    """
    try:
        return registry().Quantity(1.0, "dimensionless" if unit == "1" else unit)
    except (pint.UndefinedUnitError, pint.DefinitionSyntaxError) as error:
        raise UnitError(f"{unit!r} is not a unit of ours: {error}") from error


_Unit = pint.Quantity[float] | None  # None: a bare 0, 1 or text, which takes the unit of its neighbours


def check_units(figures: Iterable[Named]) -> None:
    """Check the units of figures and of all they follow from.

    Raises:
        UnitError: naming the first quantity whose declared unit its body does not have.
    """
    found: dict[Node, _Unit] = {}
    for node in ancestors(*figures):
        if isinstance(node, Literal | Words):
            found[node] = None
        elif isinstance(node, Input | InCase | Cases):
            found[node] = parse(node.unit if isinstance(node, Input) else node.figure.unit)
        elif isinstance(node, Span):
            contents = node.members[0].id.startswith("typed.")  # what cells hold or held, whatever that is
            units = [found[member] for member in node.members]
            found[node] = None if contents else _agree(node.members[0].id, units)
        elif isinstance(node, Table):
            found[node] = _agree(node.members[0].id, [found[member] for member in node.members])
        elif isinstance(node, Apply):
            found[node] = _derived(node, [found[argument] for argument in node.arguments])
        elif isinstance(node, Quantity):
            declared, follows = parse(node.unit), found[node.body]
            if follows is not None and not _equal(declared, follows):
                raise UnitError(f"{node.id}: declared {node.unit}, but its body is in {follows.units:~}")
            found[node] = declared


def _equal(left: pint.Quantity[float], right: pint.Quantity[float]) -> bool:
    if left.dimensionality != right.dimensionality:
        return False
    return bool(abs((left / right).to_base_units().magnitude - 1) < 1e-12)


def _agree(context: str, units: list[_Unit]) -> _Unit:
    stated = [unit for unit in units if unit is not None]
    for unit in stated[1:]:
        if not _equal(stated[0], unit):
            raise UnitError(f"{context}: {stated[0].units:~} meets {unit.units:~}")
    return stated[0] if stated else None


def _derived(node: Apply, units: list[Any]) -> Any:
    one = parse("1")
    context = f"{node.operation} of " + ", ".join(_named(argument) for argument in node.arguments)
    match OPERATIONS[node.operation].unit:
        case "same":
            return _agree(context, units)
        case "product":
            return (units[0] or one) * (units[1] or one)
        case "quotient":
            return (units[0] or one) / (units[1] or one)
        case "power":
            exponent = node.arguments[1]
            base = units[0] or one
            if isinstance(exponent, Literal):
                return base**exponent.value
            if not _equal(base, one):
                raise UnitError(f"{context}: only a pure number takes a variable exponent")
            return one
        case "comparison":
            _agree(context, units)
            return one
        case "branch":
            return _agree(context, units[1:])
        case "first":
            return units[0]
        case "number" | "truth":
            return None if node.operation == "join" else one  # a text may stand beside any number
        case rule:
            raise UnitError(f"{context}: no unit rule {rule!r}")


def _named(node: Node) -> str:
    if isinstance(node, Input | Quantity):
        return node.id
    return node.operation if isinstance(node, Apply) else type(node).__name__.lower()
