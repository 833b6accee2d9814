"""Measured runs against predictions: what each run would be by the graph, how far off, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.constant import QUARTER
from mantile.equations.graph import EstimateGraph, build_graph
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node
from mantile.ir.build import build_ir
from mantile.library.architecture import Model
from mantile.library.errors import InputError, unknown
from mantile.library.models import load_model
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import Column, columns, with_own_accelerators
from mantile.measured.runs import Measurements, RejectedRun, Run

METRICS = {  # the field of a run's metrics that is compared, by what it is called in a report
    "tpot": "tpot_s",
    "ttft": "ttft_s",
    "ttft_p50": "ttft_p50_s",
    "throughput": "output_tokens_per_s_per_accelerator",
    "prefill": "prefill_s",
    "e2e": "e2e_s",
}
GROUPS = ("model", "accelerator", "framework", "precision", "parallelism", "concurrency", "lengths")


@dataclass(frozen=True)
class Case:
    """A run with its scenario filled in, ready to be predicted."""

    run: Run
    column: Column
    inputs: dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """Runs of one graph: the same model, with decode workers of their own or without.

    Args:
        inputs: by id, an array over the runs where they differ, else one value.
    """

    equations: EstimateGraph
    cases: tuple[Case, ...]
    inputs: dict[str, Any]

    def outputs(self) -> dict[str, Node]:
        """What is predicted, by the field of a run's metrics."""
        served = self.equations.serving
        return {
            "tpot_s": served.tpot,
            "ttft_s": served.ttft,
            "ttft_p50_s": served.ttft_p50,
            "e2e_s": served.e2e,
            "prefill_s": self.equations.prefill.time,
            "output_tokens_per_s_per_accelerator": served.output_tokens_per_s_per_accelerator,
        }

    @cached_property
    def program(self) -> Program:
        """The outputs, and whether the plan is possible, ready to run."""
        return Program([*self.outputs().values(), self.equations.checks.feasibility])

    def predict(self, changes: Mapping[str, Any] | None = None) -> dict[Node, np.ndarray]:
        """Values of the outputs for every run.

        Args:
            changes: ids of inputs to values that replace theirs.
        """
        values = self.program.sweep(self.inputs | dict(changes or {}), self.program.outputs)
        return {node: np.broadcast_to(np.asarray(value), len(self.cases)) for node, value in values.items()}


@dataclass(frozen=True)
class MatchedRuns:
    """Runs by the graphs that answer them, on one library, and those that none does."""

    library: Library
    batches: tuple[Batch, ...]
    refused: tuple[RejectedRun, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        """All runs, in the order of the batches."""
        return tuple(case for batch in self.batches for case in batch.cases)


def match_runs(
    runs: Sequence[Run],
    library: Library | None = None,
    step: Callable[[str], None] = lambda model: None,
    models: Mapping[str, Model] | None = None,
) -> MatchedRuns:
    """Runs to graphs and their inputs.

    Args:
        library: instead of the profiles we ship.
        step: told the model whose graph is made.
        models: by name, instead of loading them.
    """
    shipped = library or load_library()
    grouped: dict[tuple[str, bool, bool], list[Run]] = {}
    for run in runs:
        asked_for = run.scenario()
        grouped.setdefault((run.model, asked_for.disaggregated, asked_for.open_loop), []).append(run)
    batches: list[Batch] = []
    refused: list[RejectedRun] = []
    for (name, apart, rated), members in grouped.items():
        step(name)
        try:
            model = (models or {}).get(name) or load_model(name)
            equations = build_graph(build_ir(model), shipped, apart, rated)
        except InputError as error:
            refused += [RejectedRun(run.id, str(error)) for run in members]
            continue
        named = equations.inputs.named()
        known = equations.replaceable
        cases: list[Case] = []
        for run in members:
            try:
                scenario, own = with_own_accelerators(run.scenario(), shipped)
                if own is not shipped:
                    raise InputError(
                        "field accelerator: expected one of the library; a file of one's own is for scenarios"
                    )
                column = columns(scenario, model, shipped, run.id)[0]
                wrong = next((item.id for item in column.overrides if item.id not in known), None)
                if wrong is not None or any(item.id.startswith("model.") for item in scenario.overrides):
                    raise InputError(f"overrides: {wrong or 'model.*'}: expected figures of the library")
            except InputError as error:
                refused.append(RejectedRun(run.id, str(error).removeprefix(f"{run.id}: ")))
                continue
            given = {f"inputs.{field}": column.values[field] for field in named}
            cases.append(
                Case(run, column, given | {known[item.id].id: item.value for item in column.overrides})
            )
        if cases:
            batches.append(Batch(equations, tuple(cases), _stacked(cases)))
    return MatchedRuns(shipped, tuple(batches), tuple(refused))


def _stacked(cases: Sequence[Case]) -> dict[str, Any]:
    """Inputs of all cases as arrays; one value where all have the same."""
    found: dict[str, Any] = {}
    for identifier in dict.fromkeys(name for case in cases for name in case.inputs):
        values = [case.inputs.get(identifier, np.nan) for case in cases]
        same = all(value == values[0] for value in values)
        found[identifier] = values[0] if same else np.array(values)
    return found


@dataclass(frozen=True)
class Reconciliation:
    """Measured runs beside what is predicted for them.

    Args:
        table: one row a run: id, what was asked, each metric measured, predicted and as a ratio predicted ÷ measured; NaN where
            it was not measured.
        rows: records in the file; `rejected` those that were not read or not answered.
    """

    table: pd.DataFrame
    rows: int
    rejected: tuple[RejectedRun, ...]
    source: str = ""
    where: tuple[str, ...] = ()

    def metrics(self, table: pd.DataFrame | None = None) -> dict[str, dict[str, float]]:
        """Errors of each metric that was measured."""
        part = self.table if table is None else table
        found = {name: errors(part[f"{name}_ratio"].to_numpy(float)) for name in METRICS}
        return {name: figures for name, figures in found.items() if figures["n"]}

    def groups(self) -> dict[str, dict[str, dict[str, dict[str, float]]]]:
        """The same by model, accelerator and so on."""
        return {
            group: {str(key): self.metrics(part) for key, part in self.table.groupby(group, sort=False)}
            for group in GROUPS
        }

    def assumptions(self) -> dict[str, int]:
        """What reading the runs took for granted, with the number of runs."""
        return {
            str(words): int(count)
            for words, count in self.table["assumptions"].explode().dropna().value_counts().items()
        }

    def modes(self) -> dict[str, pd.DataFrame]:
        """The table of aggregated runs and that of disaggregated ones, as far as there are any; the first is the headline."""
        parts = ((mode, self.table[self.table["mode"] == mode]) for mode in ("aggregated", "disaggregated"))
        return {mode: part for mode, part in parts if len(part)}

    def extremes(
        self, count: int = 10, metric: str = "tpot", table: pd.DataFrame | None = None
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The runs that are best and worst predicted.

        Args:
            count: how many of each.
            metric: by which they are judged.
            table: a part of the table instead of all runs.
        """
        part = self.table if table is None else table
        known = part[part[f"{metric}_ratio"].notna()]
        order = np.log(known[f"{metric}_ratio"]).abs().sort_values(kind="stable").index
        return known.loc[order[:count]], known.loc[order[::-1][:count]]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        best, worst = self.extremes()
        apart = self.table["mode"] == "disaggregated"
        headline = self.table[~apart] if not apart.all() else self.table
        shown = ["id", *GROUPS, "tpot_measured", "tpot_predicted", "tpot_ratio"]
        return {
            "source": self.source,
            "where": list(self.where),
            "rows": self.rows,
            "answered": len(self.table),
            "metrics": self.metrics(headline),
            "modes": {
                mode: {"answered": len(part), "metrics": self.metrics(part)}
                for mode, part in self.modes().items()
            },
            "groups": self.groups(),
            "assumptions": self.assumptions(),
            "best": best[shown].to_dict("records"),
            "worst": worst[shown].to_dict("records"),
            "unanswered": [{"id": broken.id, "reason": broken.reason} for broken in self.rejected],
        }


def errors(ratios: np.ndarray) -> dict[str, float]:
    """How far predictions are off, from predicted ÷ measured; fractions, not percent.

    bias is the mean of ratio − 1, symmetric exp(mean |ln ratio|) − 1. MAPE alone rewards guessing low.
    """
    known = ratios[np.isfinite(ratios) & (ratios > 0)]
    if not len(known):
        return dict.fromkeys(("mape", "median", "p90", "bias", "symmetric", "rmse"), float("nan")) | {"n": 0}
    off = np.abs(known - 1)
    return {
        "mape": float(off.mean()),
        "median": float(np.median(off)),
        "p90": float(np.quantile(off, 0.9)),
        "bias": float((known - 1).mean()),
        "symmetric": float(np.expm1(np.abs(np.log(known)).mean())),
        "rmse": float(np.sqrt((off**2).mean())),
        "n": len(known),
    }


def reconcile(
    measured: Measurements,
    where: Iterable[str] = (),
    library: Library | None = None,
    source: str = "",
    changes: Mapping[str, float] | None = None,
    step: Callable[[str], None] = lambda model: None,
) -> Reconciliation:
    """Predict measured runs and compare.

    Args:
        where: conditions field=value or field!=value on what was asked; several values with commas; all must hold.
        library: instead of the profiles we ship.
        source: what the runs are called.
        changes: figures by id that replace the library's in all runs, in the unit of their cells.
        step: told the model that is worked on.

    Raises:
        InputError: for a condition on a field there is not, or if no run is left.
    """
    conditions = tuple(where)
    runs = selected(measured.runs, conditions, source)
    prepared = match_runs(runs, library, step)
    rows: list[dict[str, Any]] = []
    impossible: list[RejectedRun] = []
    replaced = [_replaced(batch, changes or {}) for batch in prepared.batches]
    lost = set(changes or {}) - {identifier for _, found in replaced for identifier in found}
    if lost and prepared.batches:
        raise InputError(
            f"--set: {unknown('figure', min(lost), {figure.id for figure in prepared.batches[0].equations.all_inputs()})}"
        )
    for batch, (inputs, _) in zip(prepared.batches, replaced, strict=True):
        values = batch.predict(inputs)
        for place, case in enumerate(batch.cases):
            verdict = str(values[batch.equations.checks.feasibility][place])
            if verdict == "invalid":
                impossible.append(
                    RejectedRun(case.run.id, "the plan is not possible: `mantile plan` says why")
                )
                continue
            predicted = {field: float(values[node][place]) for field, node in batch.outputs().items()}
            rows.append(_row(case, predicted, verdict))
    kept = tuple(broken for broken in measured.rejected) if not conditions else ()
    return Reconciliation(
        pd.DataFrame(rows, columns=_COLUMNS),
        len(runs) + len(kept),
        (*kept, *prepared.refused, *impossible),
        source,
        conditions,
    )


def _replaced(batch: Batch, changes: Mapping[str, float]) -> tuple[dict[str, float], set[str]]:
    """Inputs of a graph for figures that are replaced, by their override cell or as they stand in the library; and which figures it has."""
    known = {figure.id for figure in batch.equations.all_inputs()}
    cells = batch.equations.replaceable
    found = {
        identifier: cells[identifier].id if identifier in cells else identifier for identifier in changes
    }
    had = {identifier for identifier, cell in found.items() if cell in known}
    return {found[identifier]: changes[identifier] for identifier in had}, had


_COLUMNS = [
    "id",
    "mode",
    *GROUPS,
    "input_tokens",
    "output_tokens",
    "waves",
    "feasibility",
    *(f"{name}_{what}" for name in METRICS for what in ("measured", "predicted", "ratio")),
    "version",
    "date",
    "source",
    "assumptions",
]


def _row(case: Case, predicted: dict[str, float], verdict: str) -> dict[str, Any]:
    run, values = case.run, case.column.values
    given = run.metrics.given()
    if "output_tokens_per_s" in given and "output_tokens_per_s_per_accelerator" not in given:
        given["output_tokens_per_s_per_accelerator"] = given["output_tokens_per_s"] / _accelerators(values)
    elif (
        "output_tokens_per_s_per_accelerator" not in given
        and {"ttft_s", "tpot_s"} <= set(given)
        and "decode_tp" not in values
    ):
        given["output_tokens_per_s_per_accelerator"] = throughput(given, values)
    row: dict[str, Any] = {
        "id": run.id,
        "mode": "disaggregated" if run.decode is not None else "aggregated",
        **asked(case),
    }
    row |= {
        "input_tokens": values["input_tokens"],
        "output_tokens": values["output_tokens"],
        "waves": values["waves"],
        "feasibility": verdict,
    }
    for name, field in METRICS.items():
        measured = given.get(field, float("nan"))
        row |= {
            f"{name}_measured": measured,
            f"{name}_predicted": predicted[field],
            f"{name}_ratio": predicted[field] / measured,
        }
    return row | {
        "version": run.environment.framework_version,
        "date": run.date,
        "source": run.source,
        "assumptions": list(run.assumptions),
    }


def _accelerators(values: Mapping[str, Any]) -> int:
    """Accelerators of a deployment."""
    return int(np.prod([int(values[degree]) for degree in ("tp", "pp", "dp", "attention_dp", "cp")]))


def throughput(given: Mapping[str, float], values: Mapping[str, Any]) -> float:
    """Output tokens per second and accelerator that mean TTFT and TPOT of a closed loop come to."""
    seconds = given["ttft_s"] + (float(values["output_tokens"]) - 1) * given["tpot_s"]
    ramp = (
        1 - float(QUARTER.value or 0) / max(1.0, float(values["waves"])) if values["waves"] else 1.0
    )  # as serving.ramp
    return (
        ramp * float(values["concurrency"]) * float(values["output_tokens"]) / seconds / _accelerators(values)
    )


def asked(case: Case) -> dict[str, Any]:
    """What runs are grouped by."""
    run, values = case.run, case.column.values
    degrees = (("tp", "TP"), ("attention_dp", "DPA"), ("ep", "EP"), ("pp", "PP"), ("cp", "CP"), ("dp", "DP"))
    plan = " ".join(
        f"{short}{values[name]}" for name, short in degrees if name == "tp" or int(values[name]) > 1
    )
    return {
        "model": run.model,
        "accelerator": values["accelerator"],
        "framework": values["framework"],
        "precision": values["weights_dtype"],
        "parallelism": plan,
        "concurrency": values["concurrency"],
        "lengths": f"{values['input_tokens']}/{values['output_tokens']}",
    }


_CONDITION_FIELDS = {
    "system": "accelerator",
    "isl": "input_tokens",
    "osl": "output_tokens",
    "precision": "weights_dtype",
}


def selected(runs: Sequence[Run], where: Iterable[str], source: str = "") -> list[Run]:
    """The runs for which all conditions hold.

    Args:
        where: field=value or field!=value, several values with commas.
        source: what the runs are called in errors.

    Raises:
        InputError: for a condition on a field there is not, or if no run is left.
    """
    conditions = tuple(where)
    found = [run for run in runs if _holds(run, conditions)]
    if not found:
        raise InputError(f"{source or 'measurements'}: no run with {' '.join(conditions)}")
    return found


_UNSTATED = {"framework": "vllm", **dict.fromkeys(("tp", "pp", "dp", "ep", "attention_dp", "cp"), 1)}


def _stated(run: Run, field: str) -> Any:
    """A field of a run, or what it is where the run leaves it out."""
    if field == "mode":
        return "disaggregated" if run.decode is not None else "aggregated"
    value = getattr(run, field)
    if value is not None or field != "weights_dtype":
        return _UNSTATED.get(field) if value is None else value
    return _stored_format(run.model)


@cache
def _stored_format(model: str) -> Any:
    """Format of the weights of a checkpoint; None where there is no such model, which is said where the run is to be answered."""
    try:
        return load_model(model).architecture.choices["weights_dtype"].value
    except InputError:
        return None


def _holds(run: Run, conditions: Iterable[str]) -> bool:
    for condition in conditions:
        name, equals, wanted = condition.partition("=")
        negated = name.endswith("!")
        field = _CONDITION_FIELDS.get(name.rstrip("!"), name.rstrip("!"))
        if not equals or not (field in Run.model_fields or field == "mode"):
            raise InputError(
                f"--where {condition}: {unknown('field', field, [*Run.model_fields, *_CONDITION_FIELDS, 'mode'])}"
                if equals
                else f"--where {condition}: expected field=value"
            )
        if (str(_stated(run, field)) in wanted.split(",")) == negated:
            return False
    return True
