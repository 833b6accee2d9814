"""The measured runs that can be near a scenario, for nearest.eq, and the nearest of them in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mantile.equations.display import converted
from mantile.equations.metrics import TPOT, TTFT
from mantile.equations.tables import Equations, Space
from mantile.equations.things import things
from mantile.equations.workers import Workers, degrees
from mantile.graph.quantity import (
    Input,
    Node,
    Section,
    all_of,
    defined,
    equal,
    is_number,
    join,
    number_of,
    rounded,
    text,
    where,
)
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library
from mantile.library.runs import NOTHING_NEAR, MeasuredRun

NEAREST = "nearest."
"""What ids of these figures begin with."""
FEATURE = "near_runs"
NOT_MEASURED = "not measured"
TIMES = {TTFT.key: TTFT, TPOT.key: TPOT}
"""The times that runs report, by the field of a run."""
KINDS = ("measured", "estimated")
DEGREES = ("degrees", "decode_degrees")
"""Fields with degrees of parallelism, which words tell as a plan."""
HERE = {
    "model": ("nearest.here.model", "model"),
    "active_parameters": ("model.active_parameters", "active parameters"),
    "accelerator": ("inputs.accelerator", "accelerator"),
    "framework": ("inputs.framework", "framework"),
    "weights_dtype": ("inputs.weights_dtype", "weights"),
    "kv_dtype": ("inputs.kv_dtype", "KV cache"),
    "serving": ("nearest.here.serving", "serving"),
    "accelerators": ("serving.accelerators", "accelerators"),
    "input_tokens": ("inputs.input_tokens", "input tokens"),
    "output_tokens": ("inputs.output_tokens", "output tokens"),
    "concurrency": ("inputs.concurrency", "concurrency"),
    "degrees": ("nearest.here.degrees", "degrees"),
    "decode_degrees": ("nearest.here.decode_degrees", "decode of degrees"),
}
"""What is compared, in the order in which it is told: the id of what stands here, and what it is called."""
_ORDER = 1e-9  # of the newest run; keeps runs at the same distance in one order in every engine
_UNTIMED = 0.1  # what a doubling of the prompt counts where the first token was not timed
_PLACED = ("tp", "ep", "attention_dp", "pp", "cp", "dp")


def compared(rows: Equations) -> tuple[str, ...]:
    """The fields that are compared."""
    return tuple(name for name in HERE if name != "decode_degrees" or "disaggregated" in rows.features)


def nearest(
    rows: Equations, library: Library, ir: ModelGraph, sets: tuple[Workers, ...], runs: Sequence[MeasuredRun]
) -> tuple[Section, ...]:
    """Make known the runs that can be near, and the nearest in words; the table of these runs.

    Args:
        sets: the accelerators: those that do everything, or prefill and decode workers.
        runs: none in a library without a run that could be near.
    """
    if not runs:
        return ()
    by = library.measured.estimated_by
    rows.know(
        defined("nearest.here.model", "Model here", "1", ir.model.id, "its id", name="model here"),
        defined("nearest.estimated_by", "Release that estimated the runs", "1", by, "with its profiles"),
    )
    table = _table(rows, runs)
    for column in table.values():
        rows.know(*column)
    spaces = (Space(facts={"n": str(number), "run": run.id}) for number, run in enumerate(runs, 1))
    rows.make_in("measured run", *spaces)
    rows.know_as("nearest.degrees_here", join(*degrees(sets), ""))
    rows.know_as("nearest.told", told(rows, rows["summary.degrees"]))
    rows.know_as("nearest.words", if_near(rows, told(rows, rows.node("nearest.degrees_here"))))
    facts = {column[0].name: column for column in table.values()}
    return (things("Measured runs", facts, "that can be near"),)


def told(rows: Equations, plan: Node) -> Node:
    """The run, its times as measured and estimated, and what stands here in place of what it had.

    Args:
        plan: the degrees of parallelism here, in a few letters.
    """
    of, words = rows.of("nearest"), _words(rows)
    run: list[Node | str] = []
    differing: list[Node] = []
    for name, said in words.items():
        here = rows.figure(HERE[name][0])
        differing.append(where(equal(here, of[name]), "", join(" · ", said(here))))
        if name != "active_parameters":
            run += [said(of[name]), ", "]
    alike = [equal(rows.figure(HERE[name][0]), of[name]) for name in compared(rows) if name in DEGREES]
    differing.append(where(all_of(*alike) if len(alike) > 1 else alike[0], "", join(" · ", plan)))
    times = []
    for name, metric in TIMES.items():
        measured, estimated = (
            rounded(converted(number_of(of[f"{kind}.{name}"]), "s", metric.display_unit), metric.large_digits)
            for kind in KINDS
        )
        shown = join(f" · {metric.label} ", measured, f" {metric.display_unit} (estimated ", estimated, ")")
        times.append(where(is_number(of[f"measured.{name}"]), shown, ""))
    nothing = where(of["distance"] > 0, "", " · all alike")
    return join("Nearest run · ", *run, of["plan"], *times, " · here", *differing, nothing)


def if_near(rows: Equations, told: Node) -> Node:
    """The same, or that nothing near was measured.

    Args:
        told: the run, as `told` has it.
    """
    return where(rows["nearest.near"] > 0, told, NOTHING_NEAR.capitalize())


def _words(rows: Equations) -> dict[str, Callable[[Node], Node]]:
    """How what stands here and what a run had are told; without what others say."""

    def number(ending: str) -> Callable[[Node], Node]:
        return lambda value: join(text(value), ending)

    def tokens(name: str, ending: str) -> Callable[[Node], Node]:
        """A mean over classes of requests may lie half way between two."""
        figure = rows.figure(f"inputs.{name}")
        assert isinstance(figure, Input)
        return number(ending) if figure.follows is None else lambda value: join(rounded(value, 0), ending)

    def as_is(value: Node) -> Node:
        return value

    return {
        "model": as_is,
        "active_parameters": lambda value: join(
            rounded(value / rows.figure("nearest.billion"), 1), " B active"
        ),
        "accelerator": as_is,
        "framework": as_is,
        "weights_dtype": as_is,
        "kv_dtype": lambda value: join("KV ", value),
        "input_tokens": tokens("input_tokens", " in"),
        "output_tokens": tokens("output_tokens", " out"),
        "concurrency": number(" at once"),
    }


def _code(rows: Equations, degrees: Mapping[str, int]) -> float:
    """The degrees of a run in a number; 0 where it has no such workers."""
    code = 0.0
    for name in _PLACED if degrees else ():
        place = rows.figure(f"nearest.place_of.{name}")
        assert isinstance(place, Input)
        code += degrees[name] * float(place.value or 0)
    return code


def _table(rows: Equations, runs: Sequence[MeasuredRun]) -> dict[str, tuple[Input, ...]]:
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
    for name in compared(rows):
        values = [getattr(run, name) for run in runs]
        if name in DEGREES:
            values = [_code(rows, of_run) for of_run in values]
        identifier, label = HERE[name]
        column(name, label, rows.figure(identifier).unit, values, "measured")
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
