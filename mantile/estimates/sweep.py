"""Sweeps: every combination of values of fields and figures of a scenario, worked out at once.

Each parameter is an axis of the arrays, and arrays broadcast: what follows from two parameters of five is
computed for the combinations of those two. A point is what `mantile estimate` says of the scenario with these
values.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice, product
from math import isfinite, nan, prod
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    INTERACTIVITY,
    METRICS,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.estimates.estimate import require_override, require_own_chip
from mantile.estimates.results import headline, is_possible
from mantile.estimates.split import SOLVED, best_split
from mantile.estimates.structure import graph_of
from mantile.graph.evaluate import Program
from mantile.graph.quantity import NOT_KNOWN, Input, Named
from mantile.library.architecture import Model
from mantile.library.columns import Column, columns
from mantile.library.device import device_name, of_device
from mantile.library.documents import validate
from mantile.library.errors import InputError, naming, unknown
from mantile.library.fields import DECODE
from mantile.library.given import Worker, require_use, with_prices, workers_of
from mantile.library.models import load_model
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import (
    Case,
    Override,
    Scenario,
    apply_model_overrides,
    with_fields,
    with_own_accelerators,
)
from mantile.library.scenario_fields import (
    INPUT_NAMES,
    LEADING,
    PREFIX_FIELDS,
    SCENARIO_FIELDS,
    STATED_FIELDS,
    field_name,
)

MOST_POINTS = 100_000_000
MOST_IN_PARTITIONS = 10_000_000_000  # points of a sweep that is worked out in partitions
BLOCK = 16_384  # points that a core works on at a time
FRAME = 2**18  # points of a table, about
MOST_SOLVED = 1_000  # points that each look for the best split of layers
ALL = "all"  # in place of names: all there are
# Another field may follow from several of these together, such as activations from accelerator and weights.
LEADERS = ("accelerator", "system", f"{DECODE}accelerator", "framework", "weights_dtype")
_APART = {"model": "model", "profile": "profiles", "profiles": "profiles"}
NO_PROFILE = "none"
OTHER_FORMULAS = ("model", "cpu", "profile", "profiles", "correction")  # each value has formulas of its own
FRONT = (
    INTERACTIVITY.column,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column,
)  # both are wanted as large as can be
BEST = (
    TTFT,
    TPOT,
    USD_PER_MILLION_OUTPUT_TOKENS,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
)  # of these the best point is told

Array = np.ndarray[Any, np.dtype[Any]]
Block = tuple[slice, ...]  # a part of each axis
_Coded = tuple[Array, Sequence[Any]]  # texts as their places in a list; -1 is an error


@dataclass(frozen=True)
class Grid:
    """Every combination of values, the last parameter running fastest.

    Args:
        over: values by parameter: a field of a scenario, or the id of a figure that is overridden.
        inputs: of the graph, at the first point.
        arrays: inputs that vary: an axis for each parameter, of length 1 where the input does not follow from
            it.
    """

    equations: EstimateGraph
    over: Mapping[str, tuple[Any, ...]]
    inputs: Mapping[str, Any]
    arrays: Mapping[str, Array]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(map(len, self.over.values()))

    def __len__(self) -> int:
        return prod(self.shape)

    def blocks(self, most: int) -> list[Block]:
        """Parts of at most so many points each, in order."""
        return [*_blocks(self.shape, most)[0]]

    def part(self, block: Block) -> Grid:
        """The points of a part, as a grid of their own; a point is the same there."""
        over = {
            name: values[part] if isinstance(values[0], str) else (*np.array(values)[part].tolist(),)
            for part, (name, values) in zip(block, self.over.items(), strict=True)
        }
        arrays = {name: _part(array, block) for name, array in self.arrays.items()}
        return Grid(self.equations, over, self.inputs, arrays)

    def tables(self, feasible: bool = False, threads: int | None = None) -> Iterator[pd.DataFrame]:
        """All points in order, a row each, some hundred thousand at a time.

        Columns are the parameters; the keys of `mantile estimate --json`, nested ones joined by _, without a
        number where nobody knows one or the plan cannot be; and `reasons`, the codes of error checks that do
        not hold.

        Args:
            feasible: only points that fit.
            threads: that work at once; None: one for each core.
        """
        figures: dict[str, Named] = {
            key.replace(".", "_"): figure for key, figure in headline(self.equations).items()
        }
        results = {metric.column for metric in METRICS}
        checks = {check.code: check.result for check in self.equations.checks.checks if check.error}
        concurrency = self.equations.inputs.concurrency
        if concurrency.follows is not None and concurrency.id not in self.inputs:
            figures = {"concurrency": concurrency, **figures}
        blocks, first_uncut = _blocks(self.shape, BLOCK)
        first = {
            name: _part(
                array, tuple(slice(1) if axis < first_uncut else slice(None) for axis in range(array.ndim))
            )
            for name, array in self.arrays.items()
        }
        moving = {name for name, array in self.arrays.items() if prod(array.shape[:first_uncut]) > 1}
        again = Program([*figures.values(), *checks.values()]).partial({**self.inputs, **first}, moving)

        def work(block: Block) -> tuple[Block, dict[str, Array | _Coded]]:
            given = {name: _part(array, block) for name, array in self.arrays.items()}
            arrays: dict[str, Array | _Coded] = {}
            values = again(given)
            arrays |= {
                name: _numbers(values[node]) if name in results else _coded(_plain(node, values[node]))
                for name, node in figures.items()
            }
            arrays["reasons"] = _reasons({code: values[node] for code, node in checks.items()})
            return block, arrays

        with ThreadPoolExecutor(max_workers=threads or os.cpu_count()) as pool:
            while window := [*islice(blocks, FRAME // BLOCK)]:
                table = self._table([*pool.map(work, window)])
                yield table[possible(table)] if feasible else table

    def _table(self, done: Sequence[tuple[Block, Mapping[str, Array | _Coded]]]) -> pd.DataFrame:
        """Blocks as rows."""
        shapes = [
            tuple(len(range(*part.indices(length))) for part, length in zip(block, self.shape, strict=True))
            for block, _ in done
        ]
        series: dict[str, Any] = {}
        for axis, (name, values) in enumerate(self.over.items()):
            places = np.arange(len(values)).reshape(_along(axis, len(self.shape)))
            column = _joined([_part(places, block) for block, _ in done], shapes)
            series[name] = (
                pd.Categorical.from_codes(column, values)
                if isinstance(values[0], str)
                else np.array(values)[column]
            )
        for name in done[0][1]:
            parts = [values[name] for _, values in done]
            if not isinstance(parts[0], tuple):
                series[name] = _joined(parts, shapes)
                continue
            texts: dict[Any, int] = {}
            spots = [
                np.array([*(texts.setdefault(text, len(texts)) for text in part[1]), -1], np.int32)[part[0]]
                for part in parts
            ]
            series[name] = pd.Categorical.from_codes(_joined(spots, shapes), [*texts])
        return pd.DataFrame(series)


def _numbers(value: Any) -> Array:
    """A metric: a number, or NaN where nobody knows it."""
    values = np.asarray(value)
    if values.dtype.kind in "USO":  # in words where nobody knows it
        known = [nan if isinstance(one, str) and one == NOT_KNOWN else float(one) for one in values.flat]
        values = np.array(known).reshape(values.shape)
    numbers = values.astype(float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def possible(table: pd.DataFrame) -> Array:
    """Whether the plan of each point can be."""
    verdicts = table["feasibility"].cat
    can_be = np.array([*map(is_possible, verdicts.categories), False])  # the last is an error
    chosen: Array = can_be[verdicts.codes.to_numpy()]
    return chosen


def _joined(parts: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> Array:
    """Arrays that broadcast to blocks, point by point."""
    return np.concatenate(
        [np.broadcast_to(part, shape).ravel() for part, shape in zip(parts, shapes, strict=True)]
    )


def _along(axis: int, axes: int) -> tuple[int, ...]:
    """The shape of an array that lies along one axis."""
    return tuple(-1 if other == axis else 1 for other in range(axes))


def _part(array: Array, block: Block) -> Array:
    """What a block needs of an array."""
    return array[
        tuple(part if length > 1 else slice(None) for part, length in zip(block, array.shape, strict=True))
    ]


def _blocks(shape: tuple[int, ...], most: int) -> tuple[Iterator[Block], int]:
    """Parts of a grid in order, of at most so many points, and the axis from which on all axes are whole in
    every part.
    """
    first_uncut = next(axis for axis in range(len(shape) + 1) if prod(shape[axis:]) <= most)
    if first_uncut == 0:
        return iter([(slice(None),) * len(shape)]), 0
    step = most // prod(shape[first_uncut:])
    outer = [[slice(place, place + 1) for place in range(length)] for length in shape[: first_uncut - 1]]
    cut = [slice(start, start + step) for start in range(0, shape[first_uncut - 1], step)]
    blocks = ((*front, *(slice(None) for _ in shape[first_uncut:])) for front in product(*outer, cut))
    return blocks, first_uncut


def _plain(figure: Named, value: Any) -> Any:
    """Values as a scenario file holds them: whole numbers of some inputs, also where they follow a mean."""
    return np.floor(value) if isinstance(figure, Input) and figure.integer else value


def _coded(value: Any) -> Array | _Coded:
    """Numbers as they are, texts as places in a list of them."""
    array = np.asarray(value)
    if array.dtype.kind not in "USO":
        return array
    places, texts = pd.factorize(array.ravel().astype(object))
    return places.reshape(array.shape), texts


def _reasons(results: Mapping[str, Any]) -> _Coded:
    """The codes of checks that do not hold, joined by blanks."""
    broken = {code: np.equal(result, 0) for code, result in results.items()}
    codes = [code for code, raised in broken.items() if raised.any()]
    bitsets = np.zeros((), np.int64)
    for place, code in enumerate(codes):
        bitsets = bitsets + broken[code] * (1 << place)
    places, sets = pd.factorize(bitsets.ravel())
    return places.reshape(bitsets.shape), [
        " ".join(code for place, code in enumerate(codes) if int(bitset) >> place & 1) for bitset in sets
    ]


@dataclass(frozen=True)
class Question:
    """What is swept, and all that the points share.

    Args:
        scenario: without variants and without overrides of figures that are swept.
        over: values by parameter.
        swept: the parameters that are figures of the library.
        apart: whether decode workers have inputs of their own at some point.
        name: stands for the scenario in errors.
    """

    scenario: Scenario
    over: Mapping[str, tuple[Any, ...]]
    swept: frozenset[str]
    apart: bool
    model: Model
    library: Library
    name: str

    def resolved(self, **fields: Any) -> Column:
        """The scenario with values of some parameters and the first ones of the others.

        Also every default that follows.
        """
        first = {key: values[0] for key, values in self.over.items()}
        values = {key: value for key, value in (first | fields).items() if key not in self.swept}
        where = f"{self.name} with {', '.join(f'{key} {value}' for key, value in (fields or values).items())}"
        case, _ = with_own_accelerators(with_fields(self.scenario, values, where), self.library)
        # A variant so that fields of decode workers are filled in.
        beside = (Case(serving="disaggregated"),) if self.apart else ()
        return columns(case.model_copy(update={"variants": beside}), self.model, self.library, where)[0]

    def array(self, group: tuple[str, ...], values: Sequence[Any]) -> Array:
        """Values along the axes of parameters that are resolved together."""
        return np.array(values).reshape([len(of) if key in group else 1 for key, of in self.over.items()])


def grid(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]],
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
) -> Grid:
    """The points of a sweep, ready to be worked out.

    Args:
        scenario: its base column holds for all that is not swept; variants are left out.
        over: values by parameter: a field of a scenario file (those of decode workers as decode_tp and so
            on), or the id of a figure of the library that is overridden. The last parameter runs fastest.
            `all` stands for all accelerators or frameworks.
        model: instead of loading the model the scenario names.
        library: instead of the profiles we ship.
        name: stands for the scenario in errors.

    Raises:
        InputError: naming the parameter and value that is wrong and what was expected.
    """
    return grid_of(question_of(scenario, over, model, library, name))


@dataclass(frozen=True)
class Grids:
    """Grids with formulas of their own, one after the other.

    Args:
        apart: values of the parameters by which they differ: models, profiles.
        parts: the grid of each combination of these, the last parameter running fastest.
        left_out: a column that nobody asked for.
    """

    apart: Mapping[str, tuple[str, ...]]
    parts: tuple[Grid, ...]
    left_out: str | None = None

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def tables(self, feasible: bool = False, threads: int | None = None) -> Iterator[pd.DataFrame]:
        """As of `Grid`, with the parameters by which the grids differ in front."""
        places = product(*(range(len(values)) for values in self.apart.values()))
        for part, codes in zip(self.parts, places, strict=True):
            for table in part.tables(feasible, threads):
                if self.left_out is not None:
                    del table[self.left_out]
                for column, (code, (key, values)) in enumerate(zip(codes, self.apart.items(), strict=True)):
                    series = pd.Categorical.from_codes(np.full(len(table), code), [*values])
                    table.insert(column, key, series)
                yield table


def grids(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]],
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
) -> Grid | Grids:
    """As `grid`, where models and efficiency profiles may be parameters too: each is a grid of its own.

    Args:
        over: `model` by id or file; `profiles`: one each, as `profiles` of a scenario names it, or none.

    Raises:
        InputError: as `grid`; for profiles beside a library.
    """
    apart: dict[str, tuple[str, ...]] = {}
    others: dict[str, Iterable[Any]] = {}
    for key, listed in over.items():
        field = _APART.get(field_name(key))
        if field is None:
            others[key] = listed
        elif field in apart:
            raise InputError(f"{name}: parameter {key}: given twice")
        else:
            values = [listed] if isinstance(listed, str) else [*listed]
            apart[field] = tuple(dict.fromkeys(map(str, values)))
    if not apart:
        return grid(scenario, over, model, library, name)
    if "profiles" in apart and library is not None:
        raise InputError(f"{name}: parameter profiles: a bundle or a library brings its own; leave it out")
    alone = None if others else "input_tokens"
    if alone is not None:
        others = {alone: [scenario.input_tokens]}
    parts = []
    for combination in product(*apart.values()):
        chosen = dict(zip(apart, combination, strict=True))
        changes: dict[str, Any] = {"variants": ()}
        if "profiles" in chosen:
            changes["profiles"] = () if chosen["profiles"] == NO_PROFILE else (chosen["profiles"],)
        own = scenario.replace(model=chosen["model"]) if "model" in chosen else scenario
        case = own.model_copy(update=changes)
        where = f"{name} with {', '.join(f'{key} {value}' for key, value in chosen.items())}"
        parts.append(grid(case, others, None if "model" in chosen else model, library, where))
    count = sum(map(len, parts))
    if count > MOST_POINTS:
        raise InputError(f"{name}: {count:,} points; expected at most {MOST_POINTS:,}")
    return Grids(apart, tuple(parts), alone)


def grid_of(asked: Question) -> Grid:
    """The points of a question, ready to be worked out.

    Raises:
        InputError: as `grid`.
    """
    base = asked.resolved()
    equations = _graph(asked)
    arrays: dict[str, Array] = {}
    for group in _groups(asked.over):
        arrays |= _varied_figure(asked, equations, group) if group[0] in asked.swept else {}
        arrays |= _varied_fields(asked, equations, group) if group[0] not in asked.swept else {}
    named = equations.inputs.named()
    inputs = {f"inputs.{field}": base.values[field] for field in named if field in base.values}
    inputs |= {
        f"{override.id}.override": override.value
        for override in base.overrides
        if not override.id.startswith("model.")
    }
    whole = Grid(equations, asked.over, inputs, arrays)
    swept = {of for key in asked.over if (of := of_device(key)) is not None and of[1] == "layers"}
    if equations.devices is None or swept or any(one.layers is not None for one in asked.scenario.devices):
        return whole
    return replace(whole, arrays=arrays | _solved(asked, whole))


def _solved(asked: Question, points: Grid) -> dict[str, Array]:
    """Layers of each device at each point where the best split is looked for; elsewhere a rule gives them.

    Raises:
        InputError: if that are too many points: each takes a second.
    """
    count, field = len(asked.scenario.devices), "inputs.device_split"
    ways = np.broadcast_to(
        np.array(points.arrays.get(field, points.inputs.get(field, SOLVED)), object), points.shape
    )
    places = [place for place in np.ndindex(points.shape) if ways[place] == SOLVED]
    if len(places) > MOST_SOLVED:
        raise InputError(
            f"{asked.name}: {len(places):,} points of devices that are not alike: expected at most "
            f"{MOST_SOLVED:,} where each looks for the best split; or device_split memory, bandwidth, even, "
            "or layers of each device"
        )
    names = [f"inputs.{device_name(number, 'layers')}" for number in range(1, count + 1)]
    layers = {name: np.full(points.shape, None, object) for name in names}
    for place in places:
        at_point = {
            name: np.broadcast_to(array, points.shape)[place] for name, array in points.arrays.items()
        }
        inputs = {**points.inputs, **{name: value for name, value in at_point.items() if value is not None}}
        values = points.equations.program.run(inputs)
        for name, held in zip(names, best_split(points.equations, inputs, values, count), strict=True):
            layers[name][place] = float(held)
    whole = len(places) == ways.size  # else None: a rule gives them
    return {name: held.astype(float) if whole else held for name, held in layers.items()}


def question_of(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]],
    model: Model | None,
    library: Library | None,
    name: str,
    most: int | None = None,
) -> Question:
    """What is swept, as far as it can be told without a graph.

    Args:
        most: points that there may be; as many as in one process where it is not stated.

    Raises:
        InputError: as `grid`.
    """
    pins = scenario.profiles if library is None else ()
    library = library or load_library(scenario.profiles)
    if model is None:
        with naming(f"{name}: field model", "unknown ", "model "):
            model = load_model(scenario.model)
    scenario, library = with_own_accelerators(scenario, library)
    axes, library = _axes(over, scenario, library, name)
    library = with_prices(library, scenario.prices, scenario.price_basis, name)
    require_own_chip(scenario.overrides, axes.get("accelerator", ()), name)
    if pins:
        require_use(pins, library, _workers(scenario, library, axes), name)
    count = prod(len(values) for values in axes.values())
    if count > (most or MOST_POINTS):
        further = "" if most else f", or up to {MOST_IN_PARTITIONS:,} with --scheduler"
        raise InputError(
            f"{name}: {' × '.join(f'{len(values):,} {key}' for key, values in axes.items())}: {count:,} "
            f"points; expected at most {most or MOST_POINTS:,}{further}"
        )
    swept = frozenset(key for key in axes if "." in key)
    kept = tuple(override for override in scenario.overrides if override.id not in swept)
    apart = (
        scenario.disaggregated
        or any(key.startswith(DECODE) for key in axes)
        or "disaggregated" in axes.get("serving", ())
    )
    led = {key: axes[key][0] for key in LEADING if key in axes and getattr(scenario, key) is None}
    if "sessions" in axes:  # which stand in place of other loads
        led |= {load: None for load in ("concurrency", "request_rate") if load not in axes}
    scenario = scenario.model_copy(update={"overrides": kept, **led})
    return Question(scenario, axes, swept, apart, model, library, name)


def _workers(scenario: Scenario, library: Library, axes: Mapping[str, tuple[Any, ...]]) -> list[Worker]:
    """The workers of all points: accelerators, systems and frameworks in every combination."""
    names = ("accelerator", "system", "framework")
    base = [axes.get(name) or (getattr(scenario, name),) for name in names]
    apart = [
        axes.get(f"{DECODE}{name}") or ((stated,) if stated else followed)
        for name, followed in zip(names, base, strict=True)
        for stated in [getattr(scenario.decode, name, None)]
    ]
    found: dict[Worker, None] = {}
    for chosen in (*product(*base), *product(*apart)):
        values = dict(zip(names, chosen, strict=True))
        values["framework"] = values["framework"] or SCENARIO_FIELDS["framework"].default
        found |= dict.fromkeys(workers_of(values, library))
    return list(found)


def _graph(asked: Question) -> EstimateGraph:
    """The equations of all points.

    Raises:
        InputError: for a parameter that the model has no use for, or an override there cannot be.
    """
    scenario, name = asked.scenario, asked.name
    model = apply_model_overrides(asked.model, scenario.overrides, name)
    rated = "request_rate" in asked.over or scenario.open_loop
    prefixes = scenario.caches_prefixes or not asked.over.keys().isdisjoint(PREFIX_FIELDS)
    stated = scenario.stated | {STATED_FIELDS[key] for key in asked.over if key in STATED_FIELDS}
    equations = graph_of(
        model,
        asked.library,
        asked.apart,
        rated,
        prefixes,
        stated,
        scenario.classes_in_use,
        devices=scenario.device_count,
    )
    named = equations.inputs.named()
    unused = next((key for key in asked.over if key not in asked.swept and key not in named), None)
    if unused is not None:
        raise InputError(f"{name}: parameter {unused}: {asked.model.id} has no use for it")
    for override in scenario.overrides:
        if not override.id.startswith("model."):
            require_override(equations, override, name)
    return equations


def _varied_figure(asked: Question, equations: EstimateGraph, group: tuple[str, ...]) -> dict[str, Array]:
    """The override cell of a figure that is swept."""
    [identifier] = group
    values = [_number(value, identifier, asked.name) for value in asked.over[identifier]]
    for value in (min(values), max(values)):
        override = validate(Override, {"id": identifier, "value": value}, asked.name)
        require_override(equations, override, asked.name)
    return {f"{identifier}.override": asked.array(group, values)}


def _varied_fields(asked: Question, equations: EstimateGraph, group: tuple[str, ...]) -> dict[str, Array]:
    """Fields that are swept together, and those that follow from them."""
    values = asked.over[group[0]]
    numbers = values if all(isinstance(value, int | float) for value in values) else ()
    points = _ends(group[0], numbers) if numbers else _combinations(group, asked.over)
    resolved = [asked.resolved(**point).values for point in points]
    return {
        # What follows from a number is that number; None where nobody states it, so that it follows.
        f"inputs.{field}": asked.array(group, numbers or [column.get(field) for column in resolved])
        for field in equations.inputs.named()
        if any(column.get(field) != resolved[0].get(field) for column in resolved)
    }


def _axes(
    over: Mapping[str, Iterable[Any]], scenario: Scenario, library: Library, name: str
) -> tuple[dict[str, tuple[Any, ...]], Library]:
    """Values by parameter in our spelling, each once.

    And the library with accelerators of one's own that are among them.
    """
    axes: dict[str, tuple[Any, ...]] = {}
    for given, listed in over.items():
        values = [listed] if isinstance(listed, str | int | float) else [*listed]
        key = field_name(given)
        if key.startswith("model."):
            raise InputError(
                f"{name}: parameter {given}: facts of the model make a model of its own; expected a field or "
                "a figure of the library"
            )
        if key in OTHER_FORMULAS:
            raise InputError(
                f"{name}: parameter {given}: no axis here, as each value has formulas of its own; "
                "compare two with `mantile compare A B`, or estimate each"
            )
        if "." not in key and key not in INPUT_NAMES and of_device(key) is None:
            raise InputError(
                f"{name}: {unknown('parameter', given, [*INPUT_NAMES, 'efficiency.*', 'hardware.*'])}"
            )
        if key in axes:
            raise InputError(f"{name}: parameter {given}: given twice")
        kind = key.removeprefix(DECODE)
        if kind == "accelerator":
            values = [str(value) for value in values]  # 5090
        if values == [ALL] and kind in ("accelerator", "framework"):
            values = [
                item.id for item in (library.accelerators if kind == "accelerator" else library.frameworks)
            ]
        if kind == "accelerator":
            for place, value in enumerate(values):
                case, library = with_own_accelerators(
                    with_fields(scenario, {"accelerator": value}, name), library
                )
                values[place] = case.accelerator
        axes[key] = tuple(
            dict.fromkeys(value.item() if isinstance(value, np.generic) else value for value in values)
        )
        if any(isinstance(value, float) and not isfinite(value) for value in axes[key]):
            raise InputError(f"{name}: parameter {given}: expected finite numbers")
        if not axes[key]:
            raise InputError(f"{name}: parameter {given}: expected one value at least")
    if not axes:
        raise InputError(f"{name}: expected one parameter at least")
    return axes, library


def _groups(asked: Iterable[str]) -> list[tuple[str, ...]]:
    """Parameters that are resolved together.

    All from which another field may follow, and every other by itself.
    """
    leaders = tuple(key for key in asked if key in LEADERS)
    return [*([leaders] if leaders else []), *((key,) for key in asked if key not in leaders)]


def _combinations(group: tuple[str, ...], asked: Mapping[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(group, point, strict=True)) for point in product(*(asked[key] for key in group))]


def _ends(key: str, numbers: Sequence[int | float]) -> list[dict[str, Any]]:
    """What says of all numbers whether they may be asked for.

    The ends, as fields have ranges, and one that is no whole number.
    """
    return [
        {key: value}
        for value in (
            min(numbers),
            max(numbers),
            *[number for number in numbers if isinstance(number, float)][:1],
        )
    ]


def _number(value: Any, key: str, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{name}: parameter {key}: expected a number, found {value!r:.60}")
    return float(value)


def sweep(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]] | None = None,
    feasible: bool = False,
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
    **fields: Iterable[Any],
) -> pd.DataFrame:
    """Work every combination of values out.

    Args:
        scenario, over, model, library, name: as for `grids`.
        feasible: only points that fit.
        fields: more values by field, behind those of `over`.

    Returns:
        A row for each point, the last parameter running fastest; columns as in `Grid.tables`, texts as
        categories. Some 300 bytes a point: for many millions write the tables of a grid to a file instead.

    Raises:
        InputError: naming the parameter and value that is wrong and what was expected.

    Example:
        table = mantile.sweep(scenario, tp=[1, 2, 4, 8], concurrency=range(8, 65, 8))
        table[table["feasibility"] == "fits"].nsmallest(3, "usd_per_million_tokens_output")
        mantile.sweep(scenario, {"efficiency.gemm_compute": [0.6, 0.7, 0.8]})
    """
    twice = next((field for field in fields if field in (over or {})), None)
    if twice is not None:
        raise InputError(f"{name}: parameter {twice}: given twice")
    tables = [*grids(scenario, {**(over or {}), **fields}, model, library, name).tables(feasible)]
    joined: dict[str, Any] = {}
    for key in [*tables[0].columns]:
        parts = [table.pop(key) for table in tables]
        text = isinstance(parts[0].dtype, pd.CategoricalDtype)
        joined[key] = pd.api.types.union_categoricals(parts) if text else np.concatenate(parts)
    return pd.DataFrame(joined)


class Digest:
    """What is remembered of tables that pass by.

    How many points, how many of them fit, the best of these and their Pareto front.

    Args:
        shown: so many points are kept as they come.
        feasible: of these only such as fit; all are counted.
    """

    def __init__(self, shown: int = 0, feasible: bool = False) -> None:
        self.points = self.feasible = 0
        self.shown, self._only_feasible = shown, feasible
        self.first = self.front = pd.DataFrame()
        self._best: dict[str, pd.DataFrame] = {}

    def add(self, table: pd.DataFrame) -> None:
        """Take a table in."""
        fits = table[possible(table)]
        kept = fits if self._only_feasible else table
        self.first = _below(self.first, kept.head(self.shown - len(self.first)))
        self.points += len(table)
        self.feasible += len(fits)
        self.front = pareto(_below(self.front, pareto(fits)))
        for metric in BEST:
            key, least = metric.column, metric.better == "lower"
            column = fits[key].dropna()
            if len(column):
                self._keep(metric, fits.loc[[column.idxmin() if least else column.idxmax()]])

    def join(self, later: Digest) -> None:
        """Take in what is remembered of tables that come behind."""
        self.first = _below(self.first, later.first.head(self.shown - len(self.first)))
        self.points += later.points
        self.feasible += later.feasible
        self.front = pareto(_below(self.front, later.front)) if len(later.front) else self.front
        for metric in BEST:
            key = metric.column
            if key in later._best:
                self._keep(metric, later._best[key])

    def _keep(self, metric: Metric, row: pd.DataFrame) -> None:
        """The better of the best point so far and another one."""
        key, least = metric.column, metric.better == "lower"
        both = _below(self._best[key], row) if key in self._best else row
        self._best[key] = both.nsmallest(1, key) if least else both.nlargest(1, key)

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "points": self.points,
            "feasible": self.feasible,
            "pareto": self.front.to_dict("records"),
            "best": {key: row.to_dict("records")[0] for key, row in self._best.items()},
        }


def _below(upper: pd.DataFrame, lower: pd.DataFrame) -> pd.DataFrame:
    parts = [part for part in (upper, lower) if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else lower


def pareto(table: pd.DataFrame, by: tuple[str, str] = FRONT) -> pd.DataFrame:
    """The points of a table that no other beats in both figures at once.

    The largest of the first figure comes first; of equal points the first stays.
    """
    points = table[np.isfinite(table[by[0]]) & np.isfinite(table[by[1]])]
    order = np.lexsort((-points[by[1]].to_numpy(), -points[by[0]].to_numpy()))
    second = points[by[1]].to_numpy()[order]
    highest = np.maximum.accumulate(np.concatenate([[-np.inf], second[:-1]])) if len(second) else second
    return points.iloc[order[second > highest]]
