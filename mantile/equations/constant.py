"""The literals of the model that Python asks for by name; all stand in constant.eq."""

from __future__ import annotations

from collections.abc import Iterable

from mantile.equations.tables import stated
from mantile.graph.quantity import Input, Node, Section, defined
from mantile.library.correction import MOST_CHANGE

_STATED = stated("constant")


def _of(name: str) -> Input:
    return _STATED[f"constant.{name}"]


HALF = _of("half")
NO_BOUND = _of("no_bound")
SLIVER = _of("sliver")
SATURATED = _of("saturated")
BOTH_WAYS = _of("both_ways")
TOKENS_PER_STEP = _of("tokens_per_step")
RANKS_TO_ACCELERATORS = _of("accelerators_per_rank")
VECTOR_BYTES = _of("vector_bytes")
INDEX_BYTES = _of("index_bytes")
STATE_BYTES = _of("state_bytes")
CONV_BYTES = _of("conv_bytes")
ONE_REQUEST = _of("one_request")
ONE_TOKEN = _of("one_token")
BITS_PER_BYTE = _of("bits_per_byte")
KILO = _of("watts_per_kilowatt")
MEGA = _of("tokens_per_million")
GIGA = _of("bytes_per_gb")
GIBI = _of("bytes_per_gib")
TERA = _of("flops_per_tflop")
MICRO = _of("us_per_s")
MILLI = _of("ms_per_s")
LONG = _of("long_time")
_TIMES = ("s", "min", "h")
TIMES_FROM, TIMES_SECONDS, TIMES_UNITS = (
    tuple(_of(f"long_time.{what}.{unit}") for unit in _TIMES) for what in ("from", "seconds", "unit")
)
CORRECTION_LEAST, CORRECTION_LARGEST = (
    defined(
        f"constant.correction_{end}",
        f"{end.capitalize()} multiplier",
        "1",
        value,
        "a correction is bounded",
        name=f"{end} multiplier",
    )
    for end, value in (("least", 1 / MOST_CHANGE), ("largest", MOST_CHANGE))
)
ALL = (*_STATED.values(), CORRECTION_LEAST, CORRECTION_LARGEST)


def section(used: Iterable[Node]) -> Section:
    """The constants that a model's equations use; those of times serve the front sheets of every workbook."""
    needed = {*used, MILLI, LONG, *TIMES_FROM, *TIMES_SECONDS, *TIMES_UNITS}
    return Section(
        "Constants",
        tuple(constant for constant in ALL if constant in needed),
        "definitions, the same for all scenarios",
    )
