"""Measured runs matched with the graphs that predict them; what was measured and what is predicted, as arrays
over the runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mantile.equations.checks import INSUFFICIENT, INVALID, OVERLOADED
from mantile.equations.correction import SHARES
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import OUTPUT_TOKENS_PER_S, PREFILL_TOKENS_PER_S, TPOT, TTFT
from mantile.equations.reasons import PLAN
from mantile.estimates.structure import graph_of
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node, where
from mantile.graph.rewrite import GraphRewrite
from mantile.library.architecture import Model
from mantile.library.brief import Brief
from mantile.library.columns import Column, columns
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.profiles import Library, load_library
from mantile.library.scenario import with_own_accelerators
from mantile.measured.coverage import RANGES
from mantile.measured.metrics import COMPARED, PREFILL_RATE, THROUGHPUT, Array
from mantile.measured.runs import RejectedRun, Run

PADDING = frozenset({"HEADS_NOT_DIVISIBLE", "KV_HEADS_NOT_DIVISIBLE", "FFN_NOT_DIVISIBLE"})
"""Checks of a plan that a run may not keep: what does not divide among the ranks was padded."""

PADDED = "padded"
NOT_COMPARED = {
    INSUFFICIENT: "INSUFFICIENT_MEMORY",
    OVERLOADED.lower(): OVERLOADED,
}
"""Why a run is neither compared nor fitted to, by what its plan is: the reason code."""
TOLD = {
    "INSUFFICIENT_MEMORY": "left out (INSUFFICIENT_MEMORY): it is said not to fit in memory, and ran",
    OVERLOADED: "left out (OVERLOADED): more requests arrive than can be served, so waits grow without end",
}
"""The same in words."""


@dataclass(frozen=True)
class MatchedRun:
    """A run with all fields of its scenario filled in, and the inputs of its graph by id."""

    run: Run
    column: Column
    inputs: dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """Runs that one graph predicts: the same model, aggregated or disaggregated, in a closed or an open loop.

    Args:
        equations: the graph.
        model: of which it is.
        runs: at least one.
        inputs: by id, an array over the runs where they differ, else one value.
    """

    equations: EstimateGraph
    model: Model
    runs: tuple[MatchedRun, ...]
    inputs: dict[str, Any]

    def outputs(self) -> dict[str, Node]:
        """The quantities that predict metrics, by the field of a run's metrics. Where no length is said to
        vary, all requests have the mean TPOT."""
        graph = self.equations
        rows = graph.decode_workers.rows
        others: dict[str, Node] = {
            "tpot_p50": graph.figures.get("serving.tpot_median", graph.serving.tpot),
            "prefill": graph.rows["serving.prefill_through"],
            "weights": rows["memory.weights"],
            "kv_tokens": rows["startup.kv_tokens"],
            "peak_memory": rows["startup.peak"],
        }
        return {
            compared.field: others[compared.name]
            if compared.metric is None
            else compared.metric.worked_out(graph.figures)
            for compared in COMPARED.values()
        }

    @cached_property
    def ranges(self) -> dict[str, tuple[Node, Node]]:
        """Both ends of the 80 % range of each compared metric that has one, in the unit of its prediction.

        Throughput is that of an accelerator, the time of a prefill as far off as its tokens per second.
        """
        rows, outputs = self.equations.rows, self.outputs()
        ends = {name: (rows[f"evidence.{of}.p10"], rows[f"evidence.{of}.p90"]) for name, of in RANGES.items()}
        accelerators = rows["serving.accelerators"]
        rate = PREFILL_TOKENS_PER_S.worked_out(self.equations.figures)
        prefill, (slow, fast) = outputs[COMPARED["prefill"].field], ends["prefill"]
        of_deployment = ends["throughput"]
        return ends | {
            "throughput": (of_deployment[0] / accelerators, of_deployment[1] / accelerators),
            "prefill": (prefill * rate / fast, prefill * rate / slow),
        }

    @property
    def evidence(self) -> Node:
        """What the ranges rest on, in words."""
        return self.equations.rows["evidence.name"]

    @cached_property
    def program(self) -> Program:
        """The outputs, their ranges and what these rest on, ready to run."""
        ends = (end for ends in self.ranges.values() for end in ends)
        return Program([*self.outputs().values(), *ends, self.evidence])

    def predict(self, changes: Mapping[str, Any] | None = None) -> dict[Node, Array]:
        """Values of the outputs, of both ends of their ranges and of the evidence in words, an array over the
        runs each.

        Args:
            changes: values that replace those of inputs, by id.
        """
        values = self.program.sweep(self.inputs | dict(changes or {}), self.program.outputs)
        return {node: self._over_runs(value) for node, value in values.items()}

    def shares(self) -> dict[str, Array]:
        """What share each limit has of a decode step, and the prompts of others of TPOT, over the runs."""
        nodes = {name: self.equations.rows.node(name) for name in SHARES}
        values = Program(list(nodes.values())).sweep(self.inputs)
        return {name: self._over_runs(values[node]) for name, node in nodes.items()}

    def unmet_plan_checks(self) -> list[tuple[str, ...]]:
        """Reason codes of the plan checks that do not hold, for each run."""
        checks = [check for check in self.equations.checks.checks if check.group == PLAN]
        values = Program([check.result for check in checks]).sweep(self.inputs)
        holds = {check.code: self._over_runs(values[check.result]) for check in checks}
        return [
            tuple(code for code, of_runs in holds.items() if not of_runs[place])
            for place in range(len(self.runs))
        ]

    def verdicts(self, changes: Mapping[str, Any] | None = None) -> tuple[list[str], list[tuple[str, ...]]]:
        """What the plan of each run is, and the codes of the plan checks that do not hold.

        A run was measured, so its plan was: heads and columns that do not divide among the ranks were padded.
        Any other check that does not hold is a misreading of the record.

        Args:
            changes: values that replace those of inputs, by id.
        """
        checks, inputs = self.equations.checks, self.inputs | dict(changes or {})
        room: Node = self.equations.figures["checks.room"]
        padded = room if checks.load is None else where(checks.load > 1, OVERLOADED.lower(), room)
        values = Program([checks.state, padded]).sweep(inputs)
        states, otherwise = (
            [str(one) for one in self._over_runs(values[of])] for of in (checks.state, padded)
        )
        unmet = self.unmet_plan_checks()
        verdicts = [
            (after if after in NOT_COMPARED else PADDED) if codes and set(codes) <= PADDING else state
            for state, after, codes in zip(states, otherwise, unmet, strict=True)
        ]
        return verdicts, unmet

    @cached_property
    def measured(self) -> dict[str, Array]:
        """What was measured, by the field of a run's metrics: an array over the runs, NaN where a run does
        not report it.

        Throughput per accelerator follows from that of the deployment, the time of a prefill from its tokens
        per second.
        """
        given = [run.run.metrics.given() for run in self.runs]
        fields = [metric.field for metric in COMPARED.values()]
        measured = {field: np.array([metrics.get(field, np.nan) for metrics in given]) for field in fields}
        rate = np.array([metrics.get(PREFILL_RATE, np.nan) for metrics in given])
        tokens = np.array([float(run.column.values["input_tokens"]) for run in self.runs])
        prefill = COMPARED["prefill"].field
        measured[prefill] = np.where(np.isnan(measured[prefill]), tokens / rate, measured[prefill])
        deployment = np.array([metrics.get(OUTPUT_TOKENS_PER_S.key, np.nan) for metrics in given])
        reported = measured[THROUGHPUT]
        measured[THROUGHPUT] = np.where(np.isnan(reported), deployment / self.accelerators, reported)
        return measured

    @cached_property
    def derived_throughput(self) -> Array:
        """Tokens per second and accelerator that the measured TTFT and TPOT of each run come to; NaN where
        they do not say it."""
        return self._throughput_of(self.measured[TTFT.key], self.measured[TPOT.key])

    @property
    def compared(self) -> dict[str, Array]:
        """What predictions are compared with: what was measured, and throughput that was derived where none
        was."""
        throughput = self.measured[THROUGHPUT]
        filled = np.where(np.isnan(throughput), self.derived_throughput, throughput)
        return self.measured | {THROUGHPUT: filled}

    @property
    def accelerators(self) -> Array:
        """How many each run used."""
        accelerators = self.equations.rows["serving.accelerators"]
        return self._over_runs(Program([accelerators]).sweep(self.inputs)[accelerators])

    def _throughput_of(self, ttft: Array, tpot: Array) -> Array:
        """Tokens per second and accelerator that mean TTFT and TPOT come to in the same loop; NaN for
        disaggregated runs, and for those without a loop, whose arrivals alone say it."""
        if any(run.run.decode is not None or run.run.concurrency is None for run in self.runs):
            return np.full(len(self.runs), np.nan)
        serving = self.equations.serving
        metrics = {
            figure: Input(f"measured_run.{name}", figure.label, figure.unit, None)
            for name, figure in (("ttft", serving.ttft), ("tpot", serving.tpot))
        }
        predicted = self.equations.rows["serving.output_tokens_per_s_per_accelerator"]
        measured = GraphRewrite(metrics, (), "measured_run.", ", measured", (predicted,)).rewrite(predicted)
        values = {metrics[serving.ttft].id: ttft, metrics[serving.tpot].id: tpot}
        return self._over_runs(Program([measured]).sweep(self.inputs | values)[measured])

    def _over_runs(self, value: Any) -> Array:
        return np.broadcast_to(np.asarray(value), len(self.runs))


@dataclass(frozen=True, repr=False)
class MatchedRuns(Brief):
    """Runs by the graphs that predict them, all on one library, and the runs that none does."""

    library: Library
    batches: tuple[Batch, ...]
    rejected: tuple[RejectedRun, ...]

    def on(self, library: Library) -> MatchedRuns:
        """The same runs, predicted with other profiles."""
        models = {run.run.model: batch.model for batch in self.batches for run in batch.runs}
        return match_runs([run.run for run in self.runs], library, models=models)

    def possible(self) -> MatchedRuns:
        """The same without the runs that nothing is fitted to, which are rejected with the reason: those
        whose plan is not possible, is said not to fit, or is overloaded."""
        batches: list[Batch] = []
        rejected: list[RejectedRun] = []
        for batch in self.batches:
            kept: list[MatchedRun] = []
            for run, verdict, codes in zip(batch.runs, *batch.verdicts(), strict=True):
                if verdict == INVALID:
                    rejected.append(RejectedRun(run.run.id, f"the plan is not possible: {', '.join(codes)}"))
                elif verdict in NOT_COMPARED:
                    rejected.append(RejectedRun(run.run.id, TOLD[NOT_COMPARED[verdict]]))
                else:
                    kept.append(run)
            if len(kept) == len(batch.runs):
                batches.append(batch)
            elif kept:
                follow = [figure.id for figure in batch.equations.all_inputs() if figure.follows is not None]
                batches.append(Batch(batch.equations, batch.model, tuple(kept), _stacked(kept, follow)))
        return MatchedRuns(self.library, tuple(batches), (*self.rejected, *rejected))

    @property
    def runs(self) -> tuple[MatchedRun, ...]:
        """All runs, in the order of the batches."""
        return tuple(run for batch in self.batches for run in batch.runs)


def match_runs(
    runs: Sequence[Run],
    library: Library | None = None,
    progress: Callable[[str], None] = lambda model: None,
    models: Mapping[str, Model] | None = None,
) -> MatchedRuns:
    """Match measured runs with the graphs that predict them: the first step of a calibration.

    Args:
        runs: as `load_measurements` reads them.
        library: profiles to predict with, instead of those we ship.
        progress: called with the name of the model whose graph is built next.
        models: models by name, instead of loading them.

    Returns:
        The runs in batches of one graph each. A run that no graph predicts is in `rejected`, with the reason.

    Example:
        measurements = load_measurements("runs.csv")
        matched = match_runs(measurements.runs)
        calibration = calibrate(matched)
    """
    library = library or load_library()
    groups: dict[tuple[str, tuple[bool, bool, bool, frozenset[str]]], list[Run]] = {}
    for run in runs:
        scenario = run.scenario()
        parts = scenario.parts
        groups.setdefault((run.model, parts), []).append(run)
    batches: list[Batch] = []
    rejected: list[RejectedRun] = []
    for (name, parts), members in groups.items():
        progress(name)
        try:
            model = (models or {}).get(name) or load_model(name)
            equations = graph_of(model, library, *parts)
        except InputError as error:
            rejected += [RejectedRun(run.id, str(error)) for run in members]
            continue
        matched: list[MatchedRun] = []
        for run in members:
            try:
                matched.append(_match(run, model, equations, library))
            except InputError as error:
                rejected.append(RejectedRun(run.id, str(error).removeprefix(f"{run.id}: ")))
        if matched:
            follow = [figure.id for figure in equations.all_inputs() if figure.follows is not None]
            batches.append(Batch(equations, model, tuple(matched), _stacked(matched, follow)))
    return MatchedRuns(library, tuple(batches), tuple(rejected))


def _match(run: Run, model: Model, equations: EstimateGraph, library: Library) -> MatchedRun:
    """A run with the inputs of its graph.

    Raises:
        InputError: for a field or an override that the graph has no use for.
    """
    scenario, own_library = with_own_accelerators(run.scenario(), library)
    if own_library is not library:
        raise InputError(
            "field accelerator: expected one of the library; a file of one's own is for scenarios"
        )
    column = columns(scenario, model, library, run.id)[0]
    cells = equations.replaceable
    unknown_id = next((override.id for override in column.overrides if override.id not in cells), None)
    if unknown_id is not None or any(override.id.startswith("model.") for override in scenario.overrides):
        raise InputError(f"overrides: {unknown_id or 'model.*'}: expected figures of the library")
    inputs: dict[str, Any] = {
        f"inputs.{field}": column.values[field]
        for field in equations.inputs.named()
        if field in column.values
    } | {cells[override.id].id: override.value for override in column.overrides}
    return MatchedRun(run, column, inputs)


def _stacked(runs: Sequence[MatchedRun], follow: Collection[str]) -> dict[str, Any]:
    """Inputs of all runs as arrays; one value where all have the same.

    Args:
        follow: inputs that follow from others where a run does not state them: None stands there, NaN for any
            other input.
    """
    stacked: dict[str, Any] = {}
    for identifier in dict.fromkeys(name for run in runs for name in run.inputs):
        missing = None if identifier in follow else np.nan
        values = [run.inputs.get(identifier, missing) for run in runs]
        same = all(value == values[0] for value in values)
        stacked[identifier] = values[0] if same else np.array(values, object if None in values else None)
    return stacked
