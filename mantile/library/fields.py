"""What is said of a field of a scenario, all in one place.

The classes of `scenario` are the table of fields: each field of theirs is declared with `field`, once. From
it follow what a file may hold, the flags of the command line, the rows of the Inputs sheet with their ranges
and dropdowns, the defaults, and the reference page workbooks/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from mantile.library.typed_numbers import switched

DEPLOYMENT, WORKLOAD, MONEY = "Deployment", "Workload", "Power and price"  # blocks of the Inputs sheet
DECODE = "decode_"  # before the name of a field that decode workers have to themselves
PREFILL = "prefill_"  # before the name of a flag that holds for prefill workers alone
WORKERS = "workers"  # what decode and prefill workers call their data parallelism

Whole = Annotated[int, Field(strict=True)]
Real = Annotated[float, Field(allow_inf_nan=False)]
LEAST_FIGURE, MOST_FIGURE = 1e-12, 1e15  # of any figure in its unit: products of several stay numbers


def of_this_world(value: float | None) -> float | None:
    """A figure that no product or sum of ours turns into infinity.

    Raises:
        ValueError: saying what is expected.
    """
    if value and not LEAST_FIGURE <= abs(value) < MOST_FIGURE:
        raise ValueError(f"expected 0, or a number from {LEAST_FIGURE:g} to under {MOST_FIGURE:g}")
    return value


Figure = Annotated[Real, AfterValidator(of_this_world)]
Switch = Annotated[Literal["off", "on"], BeforeValidator(switched)]
Name = Annotated[
    str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]*$")
]  # an id or a path
Text = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]*$")]
Value = str | int | float
Listed = Literal["accelerators", "systems", "frameworks", "datatypes", "links", "settings"]
Needs = Literal[
    "experts",
    "dense FFNs",
    "embedding",
    "images",
    "decode workers",
    "request rate",
    "sessions",
    "launches",
    "prefix cache",
    "speculation",
    "own build",
    "memory share",
    "other models",
    "adapters",
    "longest request",
    "engine settings",
    "engine defaults",
    "TP padding",
    "engine date",
    "decode CP",
    "handover",
    "windows or latents",
    "devices",
    "links",
]


@dataclass(frozen=True)
class ScenarioField:
    """A field of a scenario.

    Args:
        name: in a file; with - for _ its flag; with inputs. before it the id of its row.
        label, meaning, unit: as the Inputs sheet has them.
        group: the block of the Inputs sheet.
        default: what holds where a scenario says nothing. None: it is needed, or `otherwise` says what holds.
        otherwise: the default in words, where the value alone does not say it.
        initial: value of the row in a graph without a scenario, where there is no default.
        required: whether a scenario must state it.
        follows: what it follows from until a scenario states it; empty if nothing.
        kind: int, float or str.
        least, most: the range of a number.
        choices: the texts it may be.
        listed, role: instead of `choices`, the list of the library whose ids it may be; of data types those
            with that role.
        term: what sentences call it; the label where empty.
        aliases: what serving engines call it.
        former: what it was called in earlier versions.
        needs: what a model must have, or a scenario ask for, to have such a row; None if there always is one.
        hint: what the command line adds to the meaning.
        common: whether most people who ask set it; help shows the others only if asked for all.
    """

    label: str
    meaning: str
    group: str
    unit: str = "1"
    default: Value | None = None
    otherwise: str = ""
    initial: Value | None = None
    required: bool = False
    follows: str = ""
    least: float | None = None
    most: float | None = None
    listed: Listed | None = None
    role: str = ""
    term: str = ""
    aliases: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    needs: Needs | None = None
    hint: str = ""
    common: bool = False
    name: str = ""
    kind: type[int] | type[float] | type[str] = str
    choices: tuple[str, ...] = ()

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add what the schema of a field does not say by itself; called by pydantic."""
        schema |= {"title": self.label, "description": self.meaning, "unit": self.unit}
        schema["aliases"] = [*self.aliases, *self.former]

    @property
    def is_day(self) -> bool:
        """Whether it is a day: 2026-11-23 in a file, a date in a cell."""
        return self.unit == "date"

    @property
    def default_words(self) -> str:
        """The default as a reader is told it; empty for a field that a scenario must state."""
        if self.otherwise or self.default is None:
            return self.otherwise
        return f"{self.default:g}" if isinstance(self.default, float) else str(self.default)


def field(
    label: str,
    meaning: str,
    *,
    group: str = WORKLOAD,
    aliases: tuple[str, ...] = (),
    former: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
    **facts: Any,
) -> Any:
    """Declare a field of a scenario in the body of a class; the arguments are those of `ScenarioField`.

    Name, kind and choices are read off the annotation:
    `batching: Literal["continuous", "static"] | None = field(...)`.
    """
    declared = ScenarioField(
        label, meaning, group, aliases=aliases, former=former, least=least, most=most, **facts
    )
    return Field(default=None, ge=least, le=most, json_schema_extra=declared)


def read_fields(document: type[BaseModel]) -> Iterator[ScenarioField]:
    """The fields of a document, in order.

    Raises:
        TypeError: for one that was not declared with `field`.
    """
    for name, info in document.model_fields.items():
        declared = info.json_schema_extra
        if not isinstance(declared, ScenarioField):
            raise TypeError(
                f"{document.__name__}.{name}: declare it with field(), with its label and meaning"
            )
        kind, choices = _kind(info.annotation)
        yield replace(declared, name=name, kind=kind, choices=choices)


def _kind(annotation: Any) -> tuple[type[int] | type[float] | type[str], tuple[str, ...]]:
    """Kind and choices of what a field may hold besides None."""
    if get_origin(annotation) is Literal:
        return str, get_args(annotation)
    if annotation in (int, float, str):
        return annotation, ()
    inner = next(part for part in get_args(annotation) if part is not type(None))
    return _kind(inner)
