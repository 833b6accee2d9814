"""One estimate: a model, a scenario with its columns, and the numbers of the graph for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

from mantile.equations.display import LETTERS
from mantile.equations.graph import EstimateGraph
from mantile.equations.library import FACTS, PEAKS, PRICES
from mantile.equations.metrics import METRICS, OUTPUT_TOKENS_PER_S, TPOT, TTFT, Metric
from mantile.estimates.drafts import with_drafts
from mantile.estimates.explain import Explanation, explain
from mantile.estimates.html import html_table
from mantile.estimates.often import results_of
from mantile.estimates.results import metric_values, raised, results
from mantile.estimates.split import solved
from mantile.estimates.structure import graph_of
from mantile.estimates.writers import writer
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named, Node
from mantile.library.architecture import Model
from mantile.library.columns import Column, columns
from mantile.library.dates import serial
from mantile.library.documents import json_data
from mantile.library.errors import InputError, naming, near, unknown
from mantile.library.given import (
    Usage,
    given_profiles,
    require_use,
    usage,
    with_correction,
    with_prices,
    workers_of,
)
from mantile.library.models import load_model
from mantile.library.profiles import Library, is_file, load_library
from mantile.library.scenario import (
    Override,
    Scenario,
    apply_model_overrides,
    with_fields,
    with_own_accelerators,
)
from mantile.library.scenario_fields import FORMER_IDS
from mantile.library.template import Template, load_template

if TYPE_CHECKING:
    import pandas as pd

_FRAME_HEADS = ("label", "unit")
_WORKLOAD = frozenset(f"inputs.{name}" for name in ("input_tokens", "output_tokens", "concurrency"))
"""What changes most from one estimate of a model to the next."""


@dataclass(frozen=True, repr=False)
class Estimate:
    """A scenario worked out.

    Every headline metric of the base scenario is an attribute: a number in SI units, None where nobody knows
    it and where the plan cannot be. `estimate["serving.tpot"]` explains a figure.

    Args:
        scenario: as given, with ids in place of accelerators given as files.
        model: as loaded, before overrides of its facts.
        columns: one per case, base first.
        equations: the graph.
        template: how its workbook is laid out.
        made_on: the day on which its workbook was made, as 2026-11-23, where it was read from one.
        reads_files: whether profiles that the scenario gives as files may be read: not where it came with a
            library.

    Example:
        estimate = mantile.estimate(
            model="llama-3.1-8b", accelerator="h100-sxm", input_tokens=1024, output_tokens=128, concurrency=8
        )
        estimate.tpot, estimate.usd_per_million_output_tokens    # seconds, US dollars
        estimate["serving.tpot"].formula                         # =serving.decode_step+serving.stall
        estimate.to_frame()                                      # metrics as rows, scenarios as columns
        estimate.to_excel("run.xlsx")
    """

    scenario: Scenario
    model: Model
    library: Library
    columns: tuple[Column, ...]
    equations: EstimateGraph
    template: Template
    made_on: str | None = None
    reads_files: bool = False

    def again(self, scenario: Scenario, library: Library | None = None, name: str = "scenario") -> Estimate:
        """Another scenario on the same model, with the same template.

        The library is the same unless another is given.
        """
        made = estimate(scenario, self.model, library or self.library, name, self.template)
        return replace(made, reads_files=self.reads_files)

    def __getattr__(self, name: str) -> float | None:
        """A headline metric of the base scenario."""
        if name.startswith("_"):
            raise AttributeError(name)
        for metric in METRICS:
            if metric.attribute == name:
                return self.metrics().get(metric)
        raise AttributeError(f"an estimate has no {name}; {near(name, self.__dir__())}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(metric.attribute for metric in METRICS)})

    def __getitem__(self, identifier: str) -> Explanation:
        """A figure of the base scenario explained.

        Its value is that of the workbook's cell, also where the plan cannot be.

        Raises:
            InputError: if there is no such figure, with the nearest ids.
        """
        return explain(self, identifier)

    def __repr__(self) -> str:
        more = f", {len(self.columns)} scenarios" if len(self.columns) > 1 else ""
        metrics = self.metrics()
        ttft, tpot, rate = (metric.text(metrics[metric]) for metric in (TTFT, TPOT, OUTPUT_TOKENS_PER_S))
        told = "" if metrics[TPOT] is None else f", TTFT {ttft}, TPOT {tpot}, {rate}"
        return f"<Estimate: {self.title}{more}: {self._verdict(0)}{told}>"

    def _repr_html_(self) -> str:
        columns = range(len(self.columns))
        metrics = [self.metrics(column) for column in columns]
        rows = [("Plan", *(self._verdict(column) for column in columns))]
        rows += [(metric.label, *(metric.text(of[metric]) for of in metrics)) for metric in metrics[0]]
        return html_table(self.title, ("", *self._column_names()), rows)

    def _verdict(self, column: int) -> str:
        """Whether the plan can be, with the codes of the checks that do not hold."""
        values = self.values(column)
        codes = [check["code"] for check in raised(self.equations, values, errors=True)]
        return " ".join([str(values[self.equations.checks.state]), *codes])

    def _column_names(self) -> list[str]:
        """Names of the scenarios, with their letters where two have the same."""
        names = [column.name for column in self.columns]
        if len({*names, *_FRAME_HEADS}) == len(names) + len(_FRAME_HEADS):
            return names
        return [f"{letter} · {name}" for letter, name in zip(LETTERS, names, strict=False)]

    def metrics(self, column: int = 0) -> dict[Metric, float | None]:
        """The headline metrics of one column in SI units.

        None where nobody knows one or the plan cannot be.
        """
        return metric_values(self.equations, self.values(column))

    def to_dict(self) -> dict[str, Any]:
        """What `mantile estimate --json` prints.

        Results of the base scenario, those of variants under `variants`.
        """
        base, *variants = (self.results(column) for column in range(len(self.columns)))
        if variants:
            base["variants"] = variants
        if self.scenario.profiles:
            base["profiles"] = [asdict(use) for use in self.profile_usage()]
        return cast("dict[str, Any]", json_data(base))

    def profile_usage(self) -> tuple[Usage, ...]:
        """What becomes of the efficiency profiles that were given: which of their figures are used.

        Of files that are still there, as the library holds them.
        """
        workers = [worker for column in self.columns for worker in workers_of(column.values, self.library)]
        overridden = set.intersection(
            *(
                {override.id.removeprefix("efficiency.") for override in column.overrides}
                for column in self.columns
            )
        )
        found = []
        for pin in self.scenario.profiles:
            if is_file(pin) and not self.reads_files:
                continue
            try:
                (given,) = given_profiles([pin])
            except InputError:
                continue
            use = usage(given, self.library, workers, overridden)
            if use is not None and given.profile in self.library.efficiency:
                found.append(use)
        return tuple(found)

    def to_frame(self, all: bool = False) -> pd.DataFrame:
        """A table with label, unit and a column for each scenario, in SI units.

        Args:
            all: every figure of the graph, by id; else the headline metrics, by attribute.

        Example:
            estimate.to_frame().loc["tpot"]
            estimate.to_frame(all=True).loc["serving.decode_step"]
        """
        import pandas as pd

        names = self._column_names()
        rows: dict[str, tuple[Any, ...]] = {}
        if all:
            values = [self.values(column) for column in range(len(names))]
            for figure in self.equations.figures.values():
                numbers = [json_data(of.get(figure)) for of in values]
                rows[figure.id] = (figure.label, figure.unit, *numbers)
        else:
            metrics = [self.metrics(column) for column in range(len(names))]
            for metric in metrics[0]:
                rows[metric.attribute] = (metric.label, metric.unit, *(of[metric] for of in metrics))
        frame = pd.DataFrame.from_dict(rows, orient="index", columns=[*_FRAME_HEADS, *names])
        return (
            frame.rename_axis("id")
            if all
            else frame.rename_axis("metric").astype(dict.fromkeys(names, float))
        )

    def to_excel(self, path: str | Path) -> Path:
        """Write the workbook.

        Args:
            path: ends in .xlsx.

        Raises:
            InputError: naming the file, if it cannot be written; nothing half-written stays behind.

        Example:
            mantile.verify(estimate.to_excel("run.xlsx")).ok
        """
        path = Path(path)
        return writer(path)(self, path)

    @property
    def title(self) -> str:
        """What the workbook is called: the template's or the scenario's title, or model and accelerators."""
        if self.template.title or self.scenario.title:
            return str(self.template.title or self.scenario.title)
        return f"{self.model.name} on {self.values()[self.equations.machines]}"

    def inputs(self, column: int) -> dict[str, Any]:
        """Values of all inputs that differ from the graph's own, for one column."""
        return dict(self._inputs[column])

    @cached_property
    def _inputs(self) -> list[dict[str, Any]]:
        named, rows = self.equations.inputs.named(), []
        for chosen in self.columns:
            values: dict[str, Any] = {
                f"inputs.{name}": chosen.values[name] for name in named if name in chosen.values
            }
            if self.made_on is not None and "as_of" not in chosen.values:
                values["inputs.as_of"] = serial(date.fromisoformat(self.made_on))
            for override in chosen.overrides:
                if not override.id.startswith("model."):
                    values[self.equations.replaceable[override.id].id] = override.value
            rows.append(
                values
                | {
                    self.equations.measured[field].id: value
                    for field, value in chosen.measured.given().items()
                }
            )
        return rows

    @property
    def program(self) -> Program:
        """Every figure of the graph, every check, the efficiency profiles in use and words, ready to run."""
        return self.equations.program

    def values(self, column: int = 0) -> dict[Node, Any]:
        """All numbers of one column."""
        return self._values[column]

    @cached_property
    def _values(self) -> list[dict[Node, Any]]:
        columns = range(len(self.columns))
        return [self.program.run_often(self.inputs(column), self._fields, _WORKLOAD) for column in columns]

    @property
    def _fields(self) -> frozenset[str]:
        """Ids of the inputs that scenarios give."""
        return frozenset(f"inputs.{name}" for name in self.equations.inputs.named())

    def figure(self, identifier: str) -> Named:
        """A figure by id, of an input also by one it had in an earlier version.

        Raises:
            InputError: with the nearest ids.
        """
        figures = self.equations.figures
        identifier = FORMER_IDS.get(identifier, identifier)
        if identifier not in figures:
            raise unknown("quantity", identifier, figures)
        return figures[identifier]

    def results(self, column: int = 0) -> dict[str, Any]:
        """The headline results of one column in SI units; the keys of `mantile estimate --json`.

        A figure that nobody knows is None, as are latencies, throughput and prices of a plan that cannot be.
        """
        named = {
            "model": self.model.id,
            "model_version": self.model.version or None,
            "name": self.columns[column].name,
        }

        def told(values: Mapping[Node, Any]) -> dict[str, Any]:
            return results(self.equations, values)

        if "_values" in vars(self):
            return named | told(self.values(column))
        inputs, values = self.inputs(column), partial(self.values, column)
        return named | results_of(self.program, inputs, self._fields, _WORKLOAD, values, told)


@overload
def estimate(
    scenario: Scenario,
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
    template: Template | None = None,
) -> Estimate: ...


@overload
def estimate(*, model: str, accelerator: str, library: Library | None = None, **fields: Any) -> Estimate: ...


def estimate(
    scenario: Scenario | None = None,
    model: Model | str | None = None,
    library: Library | None = None,
    name: str | None = None,
    template: Template | str | None = None,
    **fields: Any,
) -> Estimate:
    """Work a scenario out: one that is given, or one of these fields.

    Args:
        scenario: what is asked; or its fields by name, those of decode workers as decode_<field>.
        model: instead of loading the model the scenario names; with fields, its id, or the path of a
            config.json.
        library: instead of the profiles we ship.
        name: stands for the scenario in errors; with fields, its name.
        template: instead of the one the scenario names; with fields, its name.

    Raises:
        InputError: naming the field that is wrong and what was expected.

    Example:
        estimate = mantile.estimate(mantile.load_scenario("workbooks/llama-3.3-70b-h100.yaml"))
        estimate = mantile.estimate(
            model="llama-3.1-8b",
            accelerator="h100-sxm",
            tp=2,
            input_tokens=1024,
            output_tokens=128,
            concurrency=8,
        )
        estimate.tpot    # seconds
    """
    if scenario is None:
        texts = {"model": model, "name": name, "template": template}
        given = fields | {field: text for field, text in texts.items() if text is not None}
        return _estimate(Scenario(**given), None, library, "scenario", None)
    if fields or isinstance(model, str) or isinstance(template, str):
        raise InputError(
            "estimate: expected a scenario or its fields, not both; scenario.replace changes fields"
        )
    return _estimate(scenario, model, library, name or "scenario", template)


def _estimate(
    scenario: Scenario, model: Model | None, library: Library | None, name: str, template: Template | None
) -> Estimate:
    pins, reads_files = (scenario.profiles, True) if library is None else ((), False)
    library = library or with_correction(load_library(scenario.profiles), scenario.correction, name)
    scenario, library = with_own_accelerators(scenario, library)
    library = with_prices(library, scenario.prices, scenario.price_basis, name)
    scenario = with_drafts(scenario, name)
    if model is None:
        with naming(f"{name}: field model", "unknown ", "model "):
            model = load_model(scenario.model)
    changed = apply_model_overrides(model, scenario.overrides, name)
    with naming(name, "profiles/"):
        equations = graph_of(
            changed,
            library,
            *scenario.parts,
            scenario.classes_in_use,
            scenario.capacity,
            scenario.device_count,
        )
    cases = columns(scenario, model, library, name)
    require_use(
        pins, library, [worker for case in cases for worker in workers_of(case.values, library)], name
    )
    for column in cases:
        for override in column.overrides:
            if not override.id.startswith("model."):
                require_override(equations, override, name)
    _require_own_overrides(scenario, equations, name)
    template = template or load_template(scenario.template)
    made = Estimate(scenario, model, library, cases, equations, template, reads_files=reads_files)
    if equations.devices is not None:
        in_full = solved(made)
        if in_full is not None:
            return replace(made, scenario=in_full, columns=columns(in_full, model, library, name))
    return made


def _require_own_overrides(scenario: Scenario, equations: EstimateGraph, name: str) -> None:
    """Refuse an override of a variant that all columns share."""
    replaceable = equations.replaceable
    for number, variant in enumerate(scenario.variants):
        for identifier in (*(override.id for override in variant.overrides), *variant.without):
            if identifier in replaceable and replaceable[identifier].shared:
                raise InputError(
                    f"{name}: variants.{number}: {identifier} is shared by all columns; override it in the "
                    "base"
                )


def at_points(base: Estimate, points: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Inputs of the base scenario with other values of some fields, and what follows from them by default.

    Args:
        points: fields of a scenario, those of decode workers as decode_<field>, and their values.

    Raises:
        InputError: for a field or value that a scenario cannot have.
    """
    inputs = []
    for point in points:
        scenario = with_fields(base.scenario, point, "sweep")
        at_point = replace(
            base,
            scenario=scenario,
            columns=columns(scenario, base.model, base.library, "sweep", base.scenario.disaggregated),
        )
        inputs.append(at_point.inputs(0))
    return inputs


def require_override(equations: EstimateGraph, override: Override, name: str) -> None:
    """Refuse an override of a figure there is not, or beyond what its cell may hold.

    Raises:
        InputError: with the nearest ids, or the range.
    """
    replaceable = equations.replaceable
    if override.id in Scenario.model_fields:
        flag = override.id.replace("_", "-")
        raise InputError(
            f"{name}: overrides: {override.id} is a field of the scenario, not a figure: state it there "
            f"(--{flag} on the command line)"
        )
    if override.id not in replaceable:
        raise InputError(f"{name}: overrides: {unknown('figure', override.id, replaceable)}")
    wrong = replaceable[override.id].outside(override.value)
    if wrong:
        raise InputError(f"{name}: overrides: {override.id} = {override.value:g}: expected {wrong}")


OF_CHIP = (
    *(f"hardware.{kind.name}" for kind in (*FACTS, *PRICES)),
    *(f"hardware.peak_{name}" for name in PEAKS),
)
"""Figures of one accelerator; other figures of hardware are of how accelerators are linked and hosted."""


def require_own_chip(overrides: Iterable[Override], chips: Iterable[str], name: str) -> None:
    """Refuse a figure of one accelerator where it would stand for that of several.

    Args:
        chips: accelerators that are looked at.

    Raises:
        InputError: with a way to state it of one of them.
    """
    several = tuple(dict.fromkeys(chips))
    for override in overrides if len(several) > 1 else ():
        figure = override.id.removeprefix("decode.")
        if figure not in OF_CHIP:
            continue
        way = "one accelerator, or a file of your own with that figure"
        if figure in ("hardware.price_cloud", "hardware.price_rental"):
            way = f"a price for each: prices of the scenario (--price {several[0]}={override.value:g})"
        raise InputError(
            f"{name}: overrides: {override.id} = {override.value:g} would hold for all {len(several)} "
            f"accelerators; expected {way}"
        )
