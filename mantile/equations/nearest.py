"""The measured run that is nearest to a scenario, what differs, and how well that run itself is estimated.

The distance is a sum, so that a reader can work it out in the head. What matters more for a time weighs
more: first the size of the model, then the accelerator, the framework, formats and the plan, and last the
lengths; `_WEIGHTS` has them all. Of active parameters, accelerators, requests per accelerator, input and
output tokens each doubling counts; the input tokens of a run whose first token was not timed count a tenth.
Of runs at the same distance the newest is taken. Beyond a limit no run is near, and none of another kind of
model is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from mantile.equations.display import converted
from mantile.equations.metrics import TPOT, TTFT
from mantile.equations.model import ModelSize
from mantile.equations.things import things
from mantile.equations.workers import Workers, degrees
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    defined,
    equal,
    index,
    is_number,
    join,
    least,
    logarithm,
    match,
    number_of,
    rounded,
    span,
    sum_of,
    text,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library
from mantile.library.runs import NOTHING_NEAR, MeasuredRun

NEAREST = "nearest."
"""What ids of these figures begin with."""
NOT_MEASURED = "not measured"
TIMES = {TTFT.key: TTFT, TPOT.key: TPOT}
"""The times that runs report, by the field of a run."""
KINDS = ("measured", "estimated")
DEGREES = ("degrees", "decode_degrees")
"""Fields with degrees of parallelism, which words tell as a plan."""

_WEIGHTS = {
    name: defined(f"nearest.weight.{name}", f"Weight of {what}", "1", value, "what it adds to a distance")
    for name, what, value in (
        ("active_parameters", "a doubling of active parameters", 16),
        ("model", "another model", 1),
        ("accelerator", "another accelerator", 16),
        ("framework", "another framework", 8),
        ("format", "another format of weights, or kind of serving", 2),
        ("plan", "other degrees, another KV format, a doubling of accelerators or their load", 0.25),
        ("length", "a doubling of input or output tokens", 0.125),
    )
}
_LIMIT = defined(
    "nearest.limit",
    "Distance beyond which no run is near",
    "1",
    24,
    "another accelerator and framework",
)
_DOUBLING = defined("nearest.doubling", "Doubling", "1", 2, "the ratio that counts once")
_BILLION = defined("nearest.billion", "Billion parameters", "parameter", 1e9, "in which words count them")
_ORDER = 1e-9  # of the newest run; keeps runs at the same distance in one order in every engine
_UNTIMED = 0.1  # what a doubling of the prompt counts where the first token was not timed

_PLACES = {
    name: defined(f"nearest.place_of.{name}", f"Place of {letters} in one number", "1", value)
    for name, letters, value in (
        ("tp", "TP", 1),
        ("ep", "EP", 1e3),
        ("attention_dp", "attention-DP", 1e6),
        ("pp", "PP", 1e9),
        ("cp", "CP", 1e11),
        ("dp", "DP", 1e13),
    )
}
"""By what each degree of parallelism is multiplied, so that all stand in one number that is compared."""
_IN_ONE = "all degrees in one number, each in digits of its own"

_Table = Mapping[str, tuple[Input, ...]]
"""Facts of the runs that can be near, by field."""


@dataclass(frozen=True)
class Compared:
    """A field that is compared: what stands here, and what the nearest run had.

    Args:
        words: of either; None where others say it.
    """

    here: Named
    there: Quantity
    words: Callable[[Node], Node] | None


@dataclass(frozen=True)
class Nearest:
    """The nearest measured run.

    Args:
        place: of the run among those that can be near, from 1; the first row of the last block.
        near: 1 where it is within the limit.
        id, source, date, distance: of the run.
        fields: what is compared, by name.
        measured, estimated: times of the run by field, in seconds; a text where it was not measured.
        estimated_by: the release that estimated it.
        short: the plan here, degrees of parallelism in a few letters; `plan` is that of the run.
        sections: the runs it is chosen from with their distances, and what is found.
    """

    place: Quantity
    near: Quantity
    id: Quantity
    source: Quantity
    date: Quantity
    distance: Quantity
    plan: Quantity
    fields: dict[str, Compared]
    measured: dict[str, Quantity]
    estimated: dict[str, Quantity]
    estimated_by: Input
    short: Node
    sections: tuple[Section, ...]

    @cached_property
    def words(self) -> Node:
        """The run and what differs, in a line."""
        return self.if_near(self.told(self.short))

    def told(self, plan: Node) -> Node:
        """The run, its times as measured and estimated, and what stands here in place of what it had.

        Args:
            plan: the degrees of parallelism here, in a few letters.
        """
        run: list[Node | str] = []
        differing: list[Node] = []
        for name, field in self.fields.items():
            if field.words is None:
                continue
            here = join(" · ", field.words(field.here))
            differing.append(where(equal(field.here, field.there), "", here))
            if name != "active_parameters":
                run += [field.words(field.there), ", "]
        alike = [equal(field.here, field.there) for name, field in self.fields.items() if name in DEGREES]
        differing.append(where(all_of(*alike) if len(alike) > 1 else alike[0], "", join(" · ", plan)))
        times = []
        for name, metric in TIMES.items():
            measured, estimated = (
                rounded(converted(number_of(time), "s", metric.display_unit), metric.large_digits)
                for time in (self.measured[name], self.estimated[name])
            )
            shown = join(
                f" · {metric.label} ", measured, f" {metric.display_unit} (estimated ", estimated, ")"
            )
            times.append(where(is_number(self.measured[name]), shown, ""))
        nothing = where(self.distance > 0, "", " · all alike")
        return join("Nearest run · ", *run, self.plan, *times, " · here", *differing, nothing)

    def if_near(self, told: Node) -> Node:
        """The same, or that nothing near was measured.

        Args:
            told: the run, as `told` has it.
        """
        return where(self.near > 0, told, NOTHING_NEAR.capitalize())


@dataclass(frozen=True)
class _Field:
    """What is compared.

    Args:
        name: of the field of a run.
        here: what stands here.
        words: of what stands here and of what a run had; None where others say it.
    """

    name: str
    label: str
    unit: str
    here: Named
    words: Callable[[Node], Node] | None


def nearest(
    library: Library,
    ir: ModelGraph,
    sets: tuple[Workers, ...],
    size: ModelSize,
    accelerators: Quantity,
) -> Nearest | None:
    """The rows of the nearest run; None in a library without a run that could be near.

    Args:
        sets: the accelerators: those that do everything, or prefill and decode workers.
        accelerators: of the whole deployment.
    """
    runs = library.measured.near(ir.model.id, ir.family, float(evaluate(size.active_parameters)))
    if not runs:
        return None
    here = Rows("nearest.here")
    fields = _fields(here, ir, sets, size, accelerators)
    table = _table(runs, fields)
    steps = _distances(fields, here, table)
    keys = span(steps[-1])
    found = Rows("nearest")
    place = found(
        "place", "Place of the nearest run", "number", match(least(keys), keys), "among those above"
    )

    def of_run(field: str, label: str, unit: str = "1") -> Quantity:
        return found(field, f"Nearest run: {label}", unit, index(span(table[field]), place))

    distance = found(
        "distance",
        "Distance of the nearest run",
        "1",
        index(keys, place) - index(span(table["order"]), place),
        "0: nothing of what is compared differs",
    )
    near = found("near", "It is near", "flag", where(distance <= _LIMIT, 1, 0), "within the limit")
    identifier = found(
        "id", "Nearest run: id", "1", where(near > 0, index(span(table["id"]), place), NOTHING_NEAR)
    )
    there = {field.name: of_run(field.name, field.label, field.unit) for field in fields}
    plan = of_run("plan", "plan")
    times = {
        kind: {
            name: of_run(f"{kind}.{name}", f"{metric.label}, {kind}", "s") for name, metric in TIMES.items()
        }
        for kind in KINDS
    }
    source, date = of_run("source", "source"), of_run("date", "date")
    version = defined(
        "nearest.estimated_by",
        "Release that estimated the runs",
        "1",
        library.measured.estimated_by,
        "with its profiles",
    )
    return Nearest(
        place=place,
        near=near,
        id=identifier,
        source=source,
        date=date,
        distance=distance,
        plan=plan,
        fields={field.name: Compared(field.here, there[field.name], field.words) for field in fields},
        measured=times["measured"],
        estimated=times["estimated"],
        estimated_by=version,
        short=join(*degrees(sets), ""),
        sections=(
            things("Measured runs", {facts[0].name: facts for facts in table.values()}, "that can be near"),
            Section(
                "Distances to measured runs",
                (
                    *(*_WEIGHTS.values(), _LIMIT, _DOUBLING, _BILLION, *_PLACES.values()),
                    *here.rows,
                    *(row for step in steps for row in step),
                ),
                "how far each is: the sum of what differs, by its weight",
            ),
            Section(
                "Nearest measured run",
                (*found.rows, version),
                "of the runs above the one at the least distance, as inputs are now",
            ),
        ),
    )


def _fields(
    here: Rows, ir: ModelGraph, sets: tuple[Workers, ...], size: ModelSize, accelerators: Quantity
) -> tuple[_Field, ...]:
    """What is compared, in the order in which it is told."""
    inputs = sets[0].inputs
    model = defined("nearest.here.model", "Model here", "1", ir.model.id, "its id", name="model here")
    here.add(model)

    def number(ending: str) -> Callable[[Node], Node]:
        return lambda value: join(text(value), ending)

    def tokens(figure: Input, ending: str) -> Callable[[Node], Node]:
        """A mean over classes of requests may lie half way between two."""
        return number(ending) if figure.follows is None else lambda value: join(rounded(value, 0), ending)

    def as_is(value: Node) -> Node:
        return value

    def billions(value: Node) -> Node:
        return join(rounded(value / _BILLION, 1), " B active")

    def one(name: str, label: str, figure: Named, words: Callable[[Node], Node] | None = None) -> _Field:
        return _Field(name, label, figure.unit, figure, words)

    return (
        one("model", "model", model, as_is),
        one("active_parameters", "active parameters", size.active_parameters, billions),
        one("accelerator", "accelerator", inputs.accelerator, as_is),
        one("framework", "framework", inputs.framework, as_is),
        one("weights_dtype", "weights", inputs.weights_dtype, as_is),
        one("kv_dtype", "KV cache", inputs.kv_dtype, lambda value: join("KV ", value)),
        one("serving", "serving", _serving(here, sets)),
        one("accelerators", "accelerators", accelerators),
        one("input_tokens", "input tokens", inputs.input_tokens, tokens(inputs.input_tokens, " in")),
        one("output_tokens", "output tokens", inputs.output_tokens, tokens(inputs.output_tokens, " out")),
        one("concurrency", "concurrency", inputs.concurrency, number(" at once")),
        *(one(name, name.replace("_", " of "), figure) for name, figure in _degrees(here, sets).items()),
    )


def _serving(here: Rows, sets: tuple[Workers, ...]) -> Named:
    """Whether prefill and decode have workers of their own, as runs say it."""
    apart = sets[0].ranks.disaggregated
    if apart is not None:
        return here("serving", "Serving here", "1", where(apart > 0, "disaggregated", "aggregated"))
    serving = defined("nearest.here.serving", "Serving here", "1", "aggregated", "of this workbook")
    here.add(serving)
    return serving


def _degrees(here: Rows, sets: tuple[Workers, ...]) -> dict[str, Quantity]:
    """The degrees of parallelism in a number; those of decode workers too, 0 where they are not apart."""

    def code(name: str, whose: str, workers: Workers, share: Node | None = None) -> Quantity:
        parts = [getattr(workers.inputs, degree) * place for degree, place in _PLACES.items()]
        inner = here(
            f"{name}.inner", f"TP, EP and attention-DP{whose} here", "rank", sum_of(parts[:3]), _IN_ONE
        )
        whole = sum_of([inner, *parts[3:]])
        return here(name, f"Degrees{whose} here", "rank", whole if share is None else share * whole, _IN_ONE)

    found = {"degrees": code("degrees", "", sets[0])}
    apart = sets[0].ranks.disaggregated
    if apart is not None:
        found["decode_degrees"] = code("decode_degrees", " of decode workers", sets[-1], apart)
    return found


def _code(degrees: Mapping[str, int]) -> float:
    """The degrees of a run in a number; 0 where it has no such workers."""
    return sum(degrees[name] * float(place.value or 0) for name, place in _PLACES.items()) if degrees else 0


def _table(runs: Sequence[MeasuredRun], fields: Sequence[_Field]) -> _Table:
    """The facts of runs."""
    columns: dict[str, tuple[Input, ...]] = {}

    def column(name: str, label: str, unit: str, values: Sequence[float | str], status: str) -> None:
        columns[name] = tuple(
            defined(
                f"nearest.run.{place}.{name}",
                f"{label}: {run.id}",
                unit,
                value,
                source=f"{status}: run {run.id}",
                status=status,
                name=label,
            )
            for place, (run, value) in enumerate(zip(runs, values, strict=True), 1)
        )

    for name, label in (("id", "run"), ("source", "source"), ("date", "date"), ("plan", "plan")):
        column(name, label, "1", [getattr(run, name) for run in runs], "measured")
    for field in fields:
        values = [getattr(run, field.name) for run in runs]
        if field.name in DEGREES:
            values = [_code(degrees) for degrees in values]
        column(field.name, field.label, field.unit, values, "measured")
    loads = [run.concurrency / run.accelerators for run in runs]
    column("load", "requests per accelerator", "request/accelerator", loads, "measured")
    for kind in KINDS:
        for name, metric in TIMES.items():
            known = [getattr(getattr(run, kind), name) for run in runs]
            times = [NOT_MEASURED if time is None else time for time in known]
            column(f"{kind}.{name}", f"{metric.label}, {kind}", "s", times, kind)
    prompts = [_UNTIMED if run.measured.ttft_s is None else 1 for run in runs]
    column("prompt", "part that the prompt counts", "1", prompts, "defined")
    order = [_ORDER * place for place in range(1, len(runs) + 1)]
    column("order", "order, the newest first", "1", order, "defined")
    return columns


def _distances(fields: Sequence[_Field], here: Rows, table: _Table) -> list[list[Quantity]]:
    """How far each run is from what is asked, in steps; the last is all of it, and the order of the run."""
    figures = {field.name: field.here for field in fields}
    figures["load"] = here(
        "load",
        "Requests per accelerator here",
        "request/accelerator",
        figures["concurrency"] / figures["accelerators"],
    )
    runs = []
    for place, run in enumerate(table["id"]):
        there = {name: column[place] for name, column in table.items()}
        runs.append(list(_distance(place + 1, str(run.value), figures, there)))
    return [list(step) for step in zip(*runs, strict=True)]


def _distance(
    place: int, run: str, here: Mapping[str, Named], there: Mapping[str, Input]
) -> Iterator[Quantity]:
    """The steps of the distance of a run, each with the one before."""

    def step(name: str, label: str, body: Node) -> Quantity:
        return Quantity(f"nearest.{name}.{place}", f"{label}: {run}", "1", body, name=f"{label} of the run")

    def other(name: str) -> Node:
        return where(equal(here[name], there[name]), 0, 1)

    def ratio(name: str) -> Node:
        return absolute(logarithm(here[name] / there[name]))

    one = logarithm(_DOUBLING)
    model = step(
        "kind",
        "order and other model",
        there["order"]
        + _WEIGHTS["active_parameters"] * ratio("active_parameters") / one
        + _WEIGHTS["model"] * other("model"),
    )
    yield model
    chip = step(
        "chip",
        "other accelerator or framework",
        model + sum_of([_WEIGHTS[name] * other(name) for name in ("accelerator", "framework")]),
    )
    yield chip
    if "decode_degrees" in here:
        both = 1 - other("serving")  # of a run that is served otherwise they count nothing further
        chip = step(
            "decode", "other decode workers", chip + _WEIGHTS["plan"] * both * other("decode_degrees")
        )
        yield chip
    form = step("form", "other form", chip + _WEIGHTS["format"] * (other("weights_dtype") + other("serving")))
    yield form
    plan = step("plan", "other plan", form + _WEIGHTS["plan"] * (other("kv_dtype") + other("degrees")))
    yield plan
    scale = step(
        "scale", "other scale", plan + _WEIGHTS["plan"] * (ratio("accelerators") + ratio("load")) / one
    )
    yield scale
    tokens = ratio("input_tokens") * there["prompt"] + ratio("output_tokens")
    yield step("key", "distance and order", scale + _WEIGHTS["length"] * tokens / one)
