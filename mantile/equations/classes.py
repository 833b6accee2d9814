"""Classes of requests in one deployment: their cells. What follows from them stands in classes.eq.

The deployment serves the mixture: lengths with the mean and the standard deviation of all classes together.
A request of a class has a prompt and an output of its own length; waits, steps and slots are those of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Quantity, Section
from mantile.library.fields import ScenarioField
from mantile.library.request_classes import CLASS_FIELDS, RequestClass

SPACE = "class"
"""The name of blocks that are made for each class."""
_MIXED = (
    "Mixture of classes",
    "Parts of the mixture, {name}",
    "Means of the mixture",
    "Squares of the mixture, {name}",
    "Spread of the mixture",
)
_TOLD = ("Classes", "Class {name}", "All classes")


@dataclass(frozen=True)
class Classes:
    """The cells of classes of requests.

    Args:
        cells: of each class by the field of a scenario.
    """

    names: tuple[str, ...]
    cells: tuple[Mapping[str, Input], ...]

    @property
    def entries(self) -> tuple[Input, ...]:
        """All cells, class by class."""
        return tuple(cell for of_one in self.cells for cell in of_one.values())

    @property
    def section(self) -> Section:
        """The block of the cells."""
        note = "the deployment serves all of them; the same for all scenarios"
        return Section("Classes of requests", self.entries, note)

    @property
    def features(self) -> frozenset[str]:
        """What they ask for, by the names of `when`."""
        stated = {"turns": "class_prefixes", "think_time": "class_think_times"}
        return frozenset({"classes", *(name for field, name in stated.items() if field in self.cells[0])})


def request_classes(asked: Sequence[RequestClass]) -> Classes | None:
    """The classes of a scenario; None where it has none."""
    if not asked:
        return None
    return Classes(
        tuple(one.name for one in asked),
        tuple(
            {
                name: Input(
                    id=f"classes.{number}.{name}",
                    label=f"{field.label}, {one.name}",
                    unit=field.unit,
                    value=one.value(name),
                    note=field.meaning,
                    source="scenario",
                    status="given",
                    minimum=field.least,
                    maximum=field.most,
                    integer=field.kind is int,
                    shared=True,
                    name=f"{field.label[0].lower()}{field.label[1:]} of {one.name}",
                )
                for name, field in _asked(asked).items()
            }
            for number, one in enumerate(asked, start=1)
        ),
    )


def mix(rows: Equations, classes: Classes) -> None:
    """Make the rows of the classes known."""
    rows.know(*classes.entries)
    rows.make_in(
        SPACE,
        *(
            Space(facts={"n": str(number), "c": f"classes.{number}", "name": name})
            for number, name in enumerate(classes.names, start=1)
        ),
    )


def followed(rows: Equations) -> Iterator[tuple[str, Quantity]]:
    """What inputs follow until somebody types over them: their names, and the row of the mixture."""
    spread = "input_spread"
    yield "input_tokens", rows["classes.input_mean"]
    yield "output_tokens", rows["classes.output_mean"]
    yield "output_spread", rows["classes.output_spread"]
    if "class_prefixes" in rows.features:
        yield "shared_prefix", rows["classes.shared_prefix"]
        yield "prefix_hit_rate", rows["classes.before"]
        spread = "new_spread"
    yield "input_spread", rows[f"classes.{spread}"]
    if "class_think_times" in rows.features:
        yield "think_time", rows["classes.think_time"]


def of_mixture(rows: Equations) -> tuple[Section, ...]:
    """The blocks of the mixture."""
    return rows.sections("classes", *_MIXED)


def told(rows: Equations) -> tuple[Section, ...]:
    """The blocks of what requests of each class see; none without classes."""
    return rows.sections("classes", *_TOLD) if "classes" in rows.features else ()


def _asked(classes: Sequence[RequestClass]) -> dict[str, ScenarioField]:
    """The fields of a class: of those that only some scenarios have, the kinds that a class states."""
    stated = {
        field.needs
        for name, field in CLASS_FIELDS.items()
        if any(getattr(one, name) is not None for one in classes)
    }
    return {name: field for name, field in CLASS_FIELDS.items() if field.needs in {None, *stated}}
