"""The measured run that is nearest to a scenario, what differs, and how well that run itself is estimated.

The distance is a sum, so that a reader can work it out in the head. Another model, accelerator, framework,
format of weights or kind of serving counts 1, another plan or format of the KV cache a quarter; of active
parameters, accelerators, tokens and requests per accelerator each doubling counts 1. Of a run whose first
token was not timed the prompt counts 1 at most. Of runs at the same distance the newest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.display import converted
from mantile.equations.metrics import TPOT, TTFT
from mantile.equations.model import ModelSize
from mantile.equations.workers import Workers, degrees
from mantile.graph.evaluate import evaluate
from mantile.graph.quantity import (
    Input,
    Named,
    Node,
    Operand,
    Quantity,
    Section,
    absolute,
    defined,
    equal,
    index,
    is_number,
    join,
    least,
    logarithm,
    match,
    minimum,
    rounded,
    span,
    sum_of,
    text,
    until,
    where,
)
from mantile.graph.rows import Rows
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library
from mantile.library.runs import NOT_STATED, MeasuredRun

NEAREST = "nearest."
"""What ids of these figures begin with."""
NOT_MEASURED = "not measured"
TIMES = {TTFT.key: TTFT, TPOT.key: TPOT}
"""The times that runs report, by the field of a run."""

KINDS = ("measured", "estimated")
_Table = Mapping[str, tuple[Input, ...]]
"""Facts of the runs that can be near, by field."""

_PART = defined(
    "nearest.part", "Part of a difference", "1", 0.25, "what another plan or format of the KV cache counts"
)
_DOUBLING = defined("nearest.doubling", "Doubling", "1", 2, "what a ratio counts 1 for")
_BILLION = defined("nearest.billion", "Billion parameters", "parameter", 1e9, "in which words count them")


@dataclass(frozen=True)
class Nearest:
    """The nearest measured run.

    Args:
        place: of the run among those that can be near, from 1; the first row of the first block.
        id, source, date, distance: of the run.
        fields: what is compared, by name: here, and of the run.
        measured, estimated: times of the run by field, in seconds; a text where it was not measured.
        estimated_by: the release that estimated it.
        words: the run and its times, in a line; `differences` what stands here in its place.
        sections: what is found, the runs it is chosen from, and their distances.
    """

    place: Quantity
    id: Quantity
    source: Quantity
    date: Quantity
    distance: Quantity
    fields: dict[str, tuple[Named, Quantity]]
    measured: dict[str, Quantity]
    estimated: dict[str, Quantity]
    estimated_by: Input
    words: Quantity
    differences: Quantity
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Field:
    """What is compared: the field of a run, what stands here, and how words say a value of it.

    Args:
        weight: what another text counts; None of a number, of which doublings count.
        words: of a value; None where those of the plan say it.
    """

    name: str
    label: str
    unit: str
    here: Named
    weight: Operand | None = None
    words: Callable[[Node], Node] | None = None


def nearest(
    library: Library,
    ir: ModelGraph,
    sets: tuple[Workers, ...],
    size: ModelSize,
    accelerators: Quantity,
) -> Nearest | None:
    """The rows of the nearest run; None in a library without measured runs.

    Args:
        sets: the accelerators: those that do everything, or prefill and decode workers.
        accelerators: of the whole deployment.
    """
    measured = library.measured
    runs = measured.near(ir.model.id, ir.family, float(evaluate(size.active_parameters)))
    if not runs:
        return None
    here = Rows("nearest.here")
    fields = _fields(here, ir, sets, size, accelerators)
    table = _table(runs, fields)
    facts = tuple(fact for column in table.values() for fact in column)
    keys = _distances(fields, table)
    found = Rows("nearest")
    place = found(
        "place",
        "Place of the nearest run",
        "number",
        match(least(span(keys)), span(keys)),
        "among the measured runs below",
    )

    def of_run(field: str, label: str, unit: str) -> Quantity:
        return found(field, f"Nearest run: {label}", unit, index(span(table[field]), place))

    identifier = of_run("id", "id", "1")
    distance = found(
        "distance",
        "Distance of the nearest run",
        "1",
        index(span(keys), place) - place * TOLERANCE,
        "0: nothing of what is compared differs",
    )
    there = {field.name: of_run(field.name, field.label, field.unit) for field in fields}
    times = {
        kind: {
            name: of_run(f"{kind}.{name}", f"{metric.label}, {kind}", "s") for name, metric in TIMES.items()
        }
        for kind in KINDS
    }
    source, date = of_run("source", "source", "1"), of_run("date", "date", "1")
    version = defined(
        "nearest.estimated_by",
        "Release that estimated the runs",
        "1",
        measured.estimated_by,
        "estimates of measured runs are those of this release, with its profiles",
    )
    words = found("words", "Nearest run in words", "1", _words(fields, there, times, date))
    differences = _differences(found, fields, there, distance)
    return Nearest(
        place=place,
        id=identifier,
        source=source,
        date=date,
        distance=distance,
        fields={field.name: (field.here, there[field.name]) for field in fields},
        measured=times["measured"],
        estimated=times["estimated"],
        estimated_by=version,
        words=words,
        differences=differences,
        sections=(
            Section(
                "Nearest measured run",
                (*found.rows, version),
                "of the runs below the one at the least distance, as inputs are now",
            ),
            Section(
                "Distance of measured runs",
                (_PART, _DOUBLING, _BILLION, *here.rows, *keys),
                "another model, accelerator, framework, format or serving counts 1, and so does a doubling",
            ),
            Section("Measured runs", facts, "facts; estimates by the release named above"),
        ),
    )


def _fields(
    here: Rows, ir: ModelGraph, sets: tuple[Workers, ...], size: ModelSize, accelerators: Quantity
) -> tuple[_Field, ...]:
    """What is compared, in the order in which it is told."""
    inputs = sets[0].inputs
    model = defined("nearest.here.model", "Model here", "1", ir.model.id, "id of the model")
    here.add(model)
    disaggregated = sets[0].ranks.disaggregated
    serving = here(
        "serving",
        "Serving here",
        "1",
        until("aggregated", " ")
        if disaggregated is None
        else where(disaggregated > 0, "disaggregated", "aggregated"),
    )
    plan = here("plan", "Plan here", "1", until(join(*degrees(sets), " "), "  "), "degrees above 1")

    def number(ending: str) -> Callable[[Node], Node]:
        return lambda value: join(text(value, "0"), ending)

    def as_is(value: Node) -> Node:
        return value

    def billions(value: Node) -> Node:
        return join(rounded(value / _BILLION, 1), " B active")

    return (
        _Field("model", "model", "1", model, 1, as_is),
        _Field("active_parameters", "active parameters", "parameter", size.active_parameters, None, billions),
        _Field("accelerator", "accelerator", "1", inputs.accelerator, 1, as_is),
        _Field("framework", "framework", "1", inputs.framework, 1, as_is),
        _Field("weights_dtype", "weights", "1", inputs.weights_dtype, 1, as_is),
        _Field("kv_dtype", "KV cache", "1", inputs.kv_dtype, _PART, lambda value: join("KV ", value)),
        _Field("serving", "serving", "1", serving, 1),
        _Field("plan", "plan", "1", plan, _PART, as_is),
        _Field("accelerators", "accelerators", "accelerator", accelerators),
        _Field("input_tokens", "input tokens", "token/request", inputs.input_tokens, words=number(" in")),
        _Field("output_tokens", "output tokens", "token/request", inputs.output_tokens, words=number(" out")),
        _Field("concurrency", "concurrency", "request", inputs.concurrency, words=number(" at once")),
    )


def _table(runs: Sequence[MeasuredRun], fields: Sequence[_Field]) -> dict[str, tuple[Input, ...]]:
    """The facts of runs."""

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

    columns: dict[str, tuple[Input, ...]] = {}
    column("number", "number of the run", "number", list(range(1, len(runs) + 1)), "defined")
    for name, label in (("id", "run"), ("source", "source"), ("date", "date")):
        column(name, label, "1", [getattr(run, name) for run in runs], "measured")
    for field in fields:
        values = [getattr(run, field.name) for run in runs]
        column(field.name, field.label, field.unit, values, "measured")
    for kind in KINDS:
        for name, metric in TIMES.items():
            known = [getattr(getattr(run, kind), name) for run in runs]
            values = [NOT_MEASURED if time is None else time for time in known]
            column(f"{kind}.{name}", f"{metric.label}, {kind}", "s", values, kind)
    return columns


def _distances(fields: Sequence[_Field], table: _Table) -> list[Quantity]:
    """How far each run is from what is asked, and a billionth of its number.

    That keeps runs at the same distance in one order in every engine.
    """
    here = {field.name: field.here for field in fields}
    texts = {field.name: field.weight for field in fields if field.weight is not None}
    rows = Rows("nearest.distance")
    for place, run in enumerate(table["id"]):
        there = {name: column[place] for name, column in table.items()}
        ratio = {name: figure / there[name] for name, figure in here.items() if name not in texts}
        ratio["concurrency"] = ratio["concurrency"] / ratio["accelerators"]
        size = {name: absolute(logarithm(value)) for name, value in ratio.items()}
        one, prompt = logarithm(_DOUBLING), size["input_tokens"]
        timed = is_number(there[f"measured.{TTFT.key}"])
        size["input_tokens"] = where(timed, prompt, minimum(one, prompt))
        other = [where(equal(here[name], there[name]), 0, weight) for name, weight in texts.items()]
        far = [*other, sum_of(list(size.values())) / one, there["number"] * TOLERANCE]
        rows(str(place + 1), f"Distance of {run.value}", "1", sum_of(far))
    return list(rows.quantities())


def _differences(
    found: Rows, fields: Sequence[_Field], there: Mapping[str, Quantity], distance: Quantity
) -> Quantity:
    """What is compared and differs, as it is here, in words."""
    parts = [
        where(equal(field.here, there[field.name]), "", join(field.words(field.here), ", "))
        for field in fields
        if field.words is not None
    ]
    return found(
        "differences",
        "What differs here",
        "1",
        where(distance > 0, until(join(*parts, ", "), ", , "), "nothing"),
        "what stands here in place of what the run had",
    )


def _words(
    fields: Sequence[_Field],
    there: Mapping[str, Quantity],
    times: Mapping[str, Mapping[str, Quantity]],
    date: Quantity,
) -> Node:
    """The run, and its times as measured and estimated."""
    told = [field.words(there[field.name]) for field in fields if field.words is not None]
    run: list[Node | str] = [part for words in told for part in (words, ", ")]
    run[-1] = where(equal(date, NOT_STATED), "", join(", ", date))
    for name, metric in TIMES.items():
        measured, estimated = (
            join(
                rounded(converted(of_kind[name], "s", metric.display_unit), metric.large_digits),
                f" {metric.display_unit}",
            )
            for of_kind in times.values()
        )
        words = join(f"; {metric.label} ", measured, ", estimated ", estimated)
        run.append(where(is_number(times["measured"][name]), words, ""))
    return join(*run)
