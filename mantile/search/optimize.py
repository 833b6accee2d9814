"""Which deployment should I run? The answer with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.equations.decide import OWN_WEIGHTS, Decided, decide
from mantile.equations.display import Currency
from mantile.equations.measures import MEASURES
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.profiles import Library
from mantile.library.scenario import Scenario, merge_fields, parse_scenario
from mantile.library.version import __version__
from mantile.search.chips import ChipAnswer, chips_of
from mantile.search.launchable import unpublished
from mantile.search.objective import DEFAULT, Limit, limit
from mantile.search.per_layer import notes_of
from mantile.search.question import (
    CANDIDATES,
    OF_PAIRS,
    USUAL_MOST,
    Question,
    ask,
    at_most,
    plan_name,
    plan_of,
    prepared,
    workload_of,
)
from mantile.search.scheduled import in_parts
from mantile.search.search import FRONT, NOT_KNOWN_CODE, Found, Search, measures_of, silent
from mantile.search.space import CHOSEN, DEGREES, FFN_TP, OFFLOADED, Space
from mantile.search.turned import turned

_SHOWN = 300  # points of a picture


@dataclass(frozen=True, repr=False)
class Candidate:
    """A plan of the answer.

    Args:
        rank: from 1; None of a plan that misses a limit, or of which nobody knows what is wanted.
        plan: fields of a scenario.
        results: as `mantile estimate --json` prints them.
        lost_because: why it is not the winner, in words.
        told: whether its difference to the winner is more than the error: holds, within the error.
        behind: how much worse than the winner it is, as a share; None without a rank.
        error: the range of that difference that holds 80 % of outcomes, up and down.
    """

    rank: int | None
    name: str
    plan: Mapping[str, Any]
    results: Mapping[str, Any]
    lost_because: str
    told: str
    behind: float | None
    error: float

    def __repr__(self) -> str:
        return f"<Candidate {'without a rank' if self.rank is None else self.rank}: {self.name}>"


@dataclass(frozen=True, repr=False)
class Optimum:
    """The answer: the winner, what else was looked at, and why.

    Args:
        scenario: the winner, with the best other plans as variants and with the decision.
        found: every plan that was looked at.
        space: what was looked at.
        of_layers: sentences about FFNs over other ranks than attention, where that is asked for.
    """

    question: Question
    scenario: Scenario
    found: Found
    space: Space
    of_layers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ranked = self.found.ranked
        best = "no plan keeps every limit"
        if len(ranked):
            best = plan_name(plan_of(ranked.iloc[0].to_dict()), self.question.model, self.question.library)
        return f"<Optimum: {best}; {self.found.tried:,} plans tried, {len(ranked):,} keep every limit>"

    @property
    def has_winner(self) -> bool:
        """Whether any plan keeps every limit."""
        return bool(len(self.found.ranked))

    @cached_property
    def estimate(self) -> Estimate:
        """The winner and the other candidates, worked out; the base column is the winner."""
        return estimate(self.scenario, self.question.model, self.question.library, self.question.name)

    @cached_property
    def decided(self) -> Decided:
        """The choice among the candidates, as quantities."""
        assert self.scenario.decision is not None
        plans = len(self.scenario.variants)
        return decide(self.estimate.equations, self.scenario.decision, plans, Currency())

    @cached_property
    def _values(self) -> dict[Any, Any]:
        decided = self.decided
        wanted = [decided["title"], decided["reason"]]
        wanted += (figure for plan, _ in enumerate(decided.numbers, 1) for figure in decided.of_plan(plan))
        cases = [self.estimate.values(column) for column in range(len(self.estimate.columns))]
        typed = Program(decided.guards.rows).run({})
        return Program(wanted).run({}, [cases[0] | typed, *cases[1:]])

    @property
    def title(self) -> str:
        """What it comes to, in words."""
        return str(self._values[self.decided["title"]])

    @property
    def reason(self) -> str:
        """How far the winner is ahead, and whether that holds."""
        return str(self._values[self.decided["reason"]])

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The winner first, then the other plans that the workbook holds."""
        values, found = self._values, []
        names = ("rank", "behind", "name", "lost", "told", "error")
        for place, variant in enumerate(self.scenario.variants, 1):
            rank, behind, name, lost, told, error = (values[self.decided[f"{place}.{of}"]] for of in names)
            found.append(
                Candidate(
                    rank=None if isinstance(rank, str) else int(rank),
                    name=str(name),
                    plan=plan_of(variant.model_dump(exclude_none=True)),
                    results=self.estimate.results(place),
                    lost_because=str(lost),
                    told=str(told),
                    behind=None if isinstance(behind, str) else float(behind),
                    error=float(error),
                )
            )
        return tuple(found)

    @cached_property
    def chips(self) -> tuple[ChipAnswer, ...]:
        """What becomes of each accelerator that somebody asked for by name: its best plan, or why none."""
        asked = self.question
        space, _, evaluator = prepared(asked)
        search = Search(evaluator, space, asked.objective, asked.limits, not asked.load)
        return chips_of(
            asked, asked.asked, search, self.found.plans, lambda kept: kept.loc[kept["rank"].idxmin()]
        )

    @property
    def winner(self) -> Candidate | None:
        """The best plan; None where no plan keeps every limit."""
        return self.candidates[0] if self.has_winner else None

    @property
    def words(self) -> str:
        """The answer in one sentence."""
        counted = (
            f"{self.found.tried:,} plans tried, {self.found.tried - len(self.found.ranked):,} of them out"
        )
        for one in self.question.unasked:
            counted += f"; {one.words} by default" if one.code in self.found.infeasible else ""
        miss = self.nearest_miss()
        if miss is not None:
            plan, one, by = miss
            return f"[AUTO] {plan.name} comes nearest: {one.words} is missed by {by:.0%} ({counted})"
        reason = f"{self.reason[:1].upper()}{self.reason[1:]}"
        return ". ".join([f"[AUTO] {self.title}", *self.notes, f"{reason} ({counted})"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of weights that nobody publishes, and of FFNs with a degree of their own."""
        model, library = self.question.model, self.question.library
        said = (unpublished(one.plan, model, library) for one in self.candidates)
        return (*dict.fromkeys(note for note in said if note), *self.of_layers)

    def nearest_miss(self) -> tuple[Candidate, Limit, float] | None:
        """Of plans that miss a limit the one that misses by least, that limit, and by how much as a share.

        None where a plan keeps all limits, or none can be.
        """
        missed = [] if self.has_winner else [(plan, *self._worst(plan)) for plan in self.candidates]
        known = [(plan, of, by) for plan, of, by in missed if of is not None and np.isfinite(by)]
        return min(known, key=lambda one: one[2]) if known else None

    def _worst(self, plan: Candidate) -> tuple[Limit | None, float]:
        values = {of.key: _measured(plan.results, of.metric.key) for of in MEASURES}
        worst = [
            (one, float(one.excess(np.array(value))))
            for one in self.question.limits
            if (value := values.get(one.measure.key)) is not None
        ]
        return max(worst, key=lambda of: of[1]) if worst else (None, np.nan)

    def to_frame(self) -> pd.DataFrame:
        """All plans that can be, a row each: fields, measures in SI units, code and rank, the best first."""
        plans = self.found.plans.drop(columns=["room", "score", "beyond"])
        return plans.sort_values(
            ["rank"], key=lambda rank: rank.where(rank > 0, np.inf), kind="stable", ignore_index=True
        )

    @property
    def _turned(self) -> dict[int, dict[str, Any]]:
        """By number of a plan the factor that would have to change by least for it to win."""
        assert self.scenario.decision is not None
        return {
            of.plan: {"factor": of.factor, "now": of.now, "due": of.due}
            for of in self.scenario.decision.turned
        }

    def to_dict(self) -> dict[str, Any]:
        """What `mantile optimize --json` prints; SI units, None for what nobody knows."""
        front = self.found.front
        shown = [of for of in MEASURES if of.key in front.columns]
        miss = self.nearest_miss()
        return {
            "winner": None
            if self.winner is None
            else {
                "plan": self.winner.plan,
                "metrics": self.winner.results,
                "reason": self.words,
            },
            "candidates": [
                {
                    "rank": one.rank,
                    "name": one.name,
                    "plan": one.plan,
                    "metrics": one.results,
                    "lost_because": one.lost_because,
                    "behind": one.behind,
                    "error_80": one.error,
                    "difference": one.told,
                    "would_win_with": self._turned.get(place),
                }
                for place, one in enumerate(self.candidates, 1)
            ],
            "pareto": [
                {"plan": plan_of(row), "metrics": measures_of(row, shown)} for row in front.to_dict("records")
            ],
            "notes": [*self.notes],
            "tried": self.found.tried,
            "feasible": len(self.found.ranked),
            "infeasible": dict(sorted(self.found.infeasible.items(), key=lambda item: -item[1])),
            "objective": self.question.objective.text,
            **self.question.bounds(),
            "asked_accelerators": {chip.accelerator: chip.to_dict() for chip in self.chips},
            "nearest_miss": None
            if miss is None
            else {"plan": miss[0].plan, "limit": miss[1].measure.key, "beyond": miss[2]},
        }

    def to_excel(self, path: str | Path) -> Path:
        """Write the workbook of the winner, with the candidates as live columns, ranked on What-if.

        Raises:
            InputError: naming the file, if it cannot be written.
        """
        return self.estimate.to_excel(path)


def optimize(
    scenario: Scenario | None = None,
    objective: str = DEFAULT,
    limits: Mapping[str, float] | Iterable[Limit] = (),
    gpus_max: int = USUAL_MOST,
    over: Mapping[str, Iterable[Any]] | None = None,
    makers: Sequence[str] = (),
    search: Sequence[str] = (),
    model: Model | str | None = None,
    library: Library | None = None,
    name: str = "optimize",
    plans: int = CANDIDATES,
    host_memory: float | None = None,
    step: Callable[[str], None] = silent,
    cluster: str | None = None,
    workers: int | None = None,
    part: int | None = None,
    keep: str | Path | None = None,
    default_limits: bool = True,
    **fields: Any,
) -> Optimum:
    """Look at every plan, and say which is best and why.

    Args:
        scenario: what is asked. Without `fields` that state other ones its workload holds; its accelerator,
            framework and degrees are not taken.
        objective: what is wanted: a measure, several in order with commas, or weighted: 0.7*cost + 0.3*e2e.
        limits: bounds in SI units by measure: at most where less is better, else at least.
        gpus_max: accelerators of a deployment at most.
        over: fields to choose from: accelerators, frameworks, data types, degrees. What is neither there nor
            among the fields is chosen among what is usual.
        makers: whose accelerators may be chosen; all without.
        search: what is looked at beyond the usual: cp, disaggregated, offload; per-layer-type for FFNs over
            other ranks than attention.
        model, library, name: as for `estimate`.
        plans: of the answer, at most 24; the workbook holds each as a live column.
        host_memory: GB of host memory for each accelerator. Where no plan of an accelerator fits, weights and
            KV cache may lie there, with `search` offload those of all accelerators. None: 2 GB for each GiB
            of the accelerator; 0: none.
        step: is told how far the search is.
        cluster: address of a scheduler of dask.distributed, such as tcp://HOST:8786, or local for processes
            of this machine: plans are worked out there, and the answer is the same. None: here.
        workers: processes with local; None: one for each core.
        part: plans that are worked out at once and kept together, at most; None: 16,384.
        keep: a folder that keeps what is worked out: the same question goes on there once it was stopped.
        default_limits: whether p95 TTFT has a limit where `limits` has none of TTFT or end-to-end time: 10 s,
            and more with prompts above 10,000 tokens.
        fields: of a scenario. Those of a plan are fixed; without concurrency and request rate the best load
            within the limits is looked for.

    Raises:
        InputError: naming a field, measure or value that is wrong; where the rules leave no plan.

    Example:
        found = mantile.optimize(
            model="llama-3.3-70b", input_tokens=2000, output_tokens=300, concurrency=200,
            limits={"ttft_p95": 2, "tpot": 0.04}, over={"accelerator": ["h100-sxm", "b200-sxm"]}, gpus_max=32,
        )
        found.winner.plan["accelerator"], found.words
    """
    given = {} if scenario is None else workload_of(scenario.model_dump(exclude_none=True), name)
    stated = {key: value for key, value in fields.items() if value is not None}
    asked = limits.items() if isinstance(limits, Mapping) else ()
    bounds = [limit(key, float(bound), f"{name}: limits") for key, bound in asked]
    bounds += [] if isinstance(limits, Mapping) else [*limits]
    if isinstance(model, str):
        stated["model"], model = model, None
    question = ask(
        merge_fields(given, stated, name),
        objective,
        bounds,
        gpus_max,
        over or {},
        makers,
        search,
        model,
        library,
        name,
        plans,
        host_memory,
        default_limits,
    )
    return solve(question, step, cluster, workers, part, None if keep is None else Path(keep))


def solve(
    question: Question,
    step: Callable[[str], None] = silent,
    cluster: str | None = None,
    workers: int | None = None,
    part: int | None = None,
    keep: Path | None = None,
) -> Optimum:
    """Look at every plan of a question; with a scheduler on its workers, to the same answer.

    Args:
        cluster, workers, part, keep: as for `optimize`.

    Raises:
        InputError: where the rules leave no plan; for a scheduler that does not answer.
    """
    space, base, evaluator = prepared(question)
    with in_parts(cluster, workers, part, keep) as parts:
        search = Search(evaluator, space, question.objective, question.limits, not question.load, step, parts)
        found = search.run()
    if not len(found.plans):
        raise NoPlan(question.name, Optimum(question, base, found, space))
    rows = _selected(found, question.plans)
    could = [*turned(evaluator, question.objective, rows)] if len(found.ranked) else []
    notes = notes_of(question, search, found)
    return Optimum(question, scenario_of(question, base, found, rows, could), found, space, notes)


class NoPlan(InputError):
    """No plan that was asked for can be: why, and how many accelerators would do.

    Args:
        name: stands for the scenario.
        lost: what was looked at.
    """

    def __init__(self, name: str, lost: Optimum) -> None:
        self.reasons = _broken(lost)
        super().__init__(f"{name}: {_nothing(lost)}")


def _broken(lost: Optimum) -> str:
    return ", ".join(f"{code}: {count:,}" for code, count in _most_first(lost.found.infeasible)[:6])


def _nothing(lost: Optimum) -> str:
    most = at_most(lost.question.most)
    if not lost.found.tried:
        return (
            f"no plans can be: the degrees asked for take more than {most.removeprefix('at most ')} "
            "(gpus_max); expected more of them, or smaller degrees"
        )
    more = " or ".join(f"{chip.needs} × {chip.name}" for chip in lost.chips if chip.needs is not None)
    return (
        f"none of {lost.found.tried:,} plans can be ({_broken(lost)}) on {most} (gpus_max); expected "
        f"{more or 'more of them'}, other accelerators, or smaller data types"
    )


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


def _selected(found: Found, count: int) -> pd.DataFrame:
    """The plans of the answer: the best, the best others, the best of other accelerators, and what nearly is.

    Of plans that differ in the number of replicas alone the best stands for all.
    """
    ranked = found.ranked
    names = (*CHOSEN, *DEGREES, FFN_TP, *OF_PAIRS)
    kinds = [name for name in names if name in found.plans and name != f"{DECODE}dp"]
    alike = ranked.drop_duplicates(kinds)
    of_chips = alike.drop_duplicates("accelerator")
    first = alike.head(3)
    chosen = pd.concat([first, of_chips]).drop_duplicates(kinds).head(count)
    missed = found.plans[found.plans["rank"] == 0]
    if len(missed) and len(chosen) < count:
        beside = missed[~missed["accelerator"].isin(chosen["accelerator"])]
        order = np.lexsort((beside["beyond"].fillna(np.inf), beside["code"] != NOT_KNOWN_CODE))
        chosen = pd.concat([chosen, beside.iloc[order].drop_duplicates("accelerator").head(2)]).head(count)
    if len(chosen) < count:
        chosen = pd.concat([chosen, alike]).drop_duplicates(kinds).head(count)
    if not len(ranked):
        nearest = missed.sort_values(["beyond", "score"])
        chosen = pd.concat(
            [nearest.head(1), nearest.drop_duplicates("accelerator"), nearest.drop_duplicates(kinds)]
        )
        chosen = chosen.drop_duplicates(kinds).head(count)
    place = chosen["rank"].where(chosen["rank"] > 0, np.inf)
    return chosen.assign(place=place).sort_values("place", kind="stable").drop(columns="place")


def scenario_of(
    question: Question,
    base: Scenario,
    found: Found,
    rows: pd.DataFrame,
    could: Sequence[Mapping[str, Any]] = (),
) -> Scenario:
    """The winner as a scenario, the candidates as its variants, and the decision.

    Args:
        could: what would have to change for others to win.
    """
    searched = not question.load
    plans = []
    for row in rows.to_dict("records"):
        plan = plan_of(cast("dict[str, Any]", row))
        if not searched:
            plan.pop("concurrency", None)
        plans.append(plan)
    data = base.model_dump(
        exclude_none=True, exclude_defaults=True, exclude={"decode", "serving", "ready_columns"}
    )
    data |= _fields(plans[0])
    plain: dict[str, Any] = {"system": "default"}
    plain |= {name: 0 for name in (*OFFLOADED, FFN_TP) if name in plans[0]}
    data["variants"] = [
        {
            "name": plan_name(plan, question.model, question.library)[:120],
            **_fields(plain | plan),
        }
        for plan in plans
    ]
    data.setdefault("title", f"Which deployment for {question.model.name}?")
    data["name"] = "taken"
    data["decision"] = {
        "objective": OWN_WEIGHTS if len(question.objective.terms) > 1 else question.objective.first.key,
        "weights": question.objective.weights if len(question.objective.terms) > 1 else {},
        "limits": [{"measure": one.measure.key, "bound": one.bound} for one in question.limits],
        "plans": found.tried,
        "infeasible": dict(_most_first(found.infeasible)[:80]),
        "shown": _points(found),
        "turned": could,
        "searched": "; ".join(
            [
                question.objective.words,
                at_most(question.most),
                *(f"{one.words} as nobody stated a limit of waiting" for one in question.unasked),
            ]
        ),
        "made_by": f"Mantile {__version__}",
    }
    return parse_scenario(data, question.name)


def _fields(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as fields of a scenario, those of decode workers in a block of their own."""
    decode = {key.removeprefix(DECODE): value for key, value in plan.items() if key.startswith(DECODE)}
    own = {key: value for key, value in plan.items() if not key.startswith(DECODE)}
    return own | ({"decode": decode} if decode else {})


def _points(found: Found) -> list[dict[str, Any]]:
    """Plans for a picture: the front, and an even part of the others that can be."""
    known = found.plans[np.isfinite(found.plans[FRONT[0]]) & np.isfinite(found.plans[FRONT[1]])]
    front = found.front.head(100)
    others = known.iloc[:: max(1, len(known) // max(1, _SHOWN - len(front)) + 1)]
    rows = [(row, True) for row in front.to_dict("records")]
    rows += [(row, False) for row in others.to_dict("records")]
    return [
        {
            "accelerator": row["accelerator"],
            "plan": f"TP{row['tp']} × {row['dp']}",
            "speed": float(f"{row[FRONT[0]]:.5g}"),
            "throughput": float(f"{row[FRONT[1]]:.5g}"),
            "front": is_front,
        }
        for row, is_front in rows
    ]


def _measured(results: Mapping[str, Any], key: str) -> float | None:
    value: Any = results
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
