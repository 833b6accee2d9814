"""Which deployment should I run? The question as it is asked, and the answer with its reasons."""

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
from mantile.graph.quantity import Named
from mantile.library.architecture import Model
from mantile.library.decision import MOST_PLANS
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.models import load_model
from mantile.library.profiles import Library, is_file, load_library, with_accelerator
from mantile.library.scenario import Scenario, merge_fields, parse_scenario, with_own_accelerators
from mantile.library.scenario_fields import INPUT_NAMES, field_name
from mantile.library.version import __version__
from mantile.search.evaluate import Evaluator
from mantile.search.launchable import unpublished
from mantile.search.objective import DEFAULT, Limit, Objective, limit, merged, read_objective
from mantile.search.scheduled import in_parts
from mantile.search.search import FRONT, NOT_KNOWN_CODE, Found, Search, measures_of, silent
from mantile.search.space import (
    APART,
    CHOSEN,
    CONTEXT,
    DEGREES,
    OF_DECODE,
    OFFLOAD,
    OFFLOADED,
    TOGETHER,
    Space,
    usual_space,
)
from mantile.search.turned import turned

_OF_PAIRS = ("serving", f"{DECODE}accelerator", *OF_DECODE)
PLANNED = (*CHOSEN, *DEGREES, "dp", *OFFLOADED)
"""Fields that a plan states; beside them concurrency, where the load is searched for."""
CANDIDATES = 12
"""Plans of an answer where nobody asks for more or fewer; a workbook holds each as live columns."""
USUAL_MOST = 8  # accelerators, where nobody states a limit
SEARCHED = ("cp", APART, OFFLOAD)
"""What is looked at beyond the usual, where somebody asks for it."""
_SHOWN = 300  # points of a picture
_PLAIN = {"system": "default", "offload_weights": 0.0, "offload_kv": 0.0}


@dataclass(frozen=True)
class Question:
    """What is asked: a workload, and which plans may be chosen.

    Args:
        fields: of a scenario, without those that are chosen.
        over: fields to choose from, with their values.
        plans: of the answer, at most.
        host_memory: GB for each accelerator in which weights and KV cache may lie where nothing fits without;
            None: as `usual_space` assumes it.
        load: whether the fields state a concurrency or a request rate.
    """

    fields: Mapping[str, Any]
    over: Mapping[str, tuple[Any, ...]]
    objective: Objective
    limits: tuple[Limit, ...]
    most: int
    makers: tuple[str, ...]
    searched: tuple[str, ...]
    model: Model
    library: Library
    name: str
    plans: int = CANDIDATES
    host_memory: float | None = None

    @property
    def load(self) -> bool:
        """Whether a load is stated; else the best one within the limits is looked for."""
        return any(self.fields.get(name) for name in ("concurrency", "request_rate", "sessions"))


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Optimum:
    """The answer: the winner, what else was looked at, and why.

    Args:
        scenario: the winner, with the best other plans as variants and with the decision.
        found: every plan that was looked at.
        space: what was looked at.
    """

    question: Question
    scenario: Scenario
    found: Found
    space: Space

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
        wanted: list[Named] = [decided.title, decided.reason]
        wanted += [figure for plan in decided.plans for figure in plan.figures.values()]
        cases = [self.estimate.values(column) for column in range(len(self.estimate.columns))]
        typed = Program(decided.guards.rows).run({})
        return Program(wanted).run({}, [cases[0] | typed, *cases[1:]])

    @property
    def title(self) -> str:
        """What it comes to, in words."""
        return str(self._values[self.decided.title])

    @property
    def reason(self) -> str:
        """How far the winner is ahead, and whether that holds."""
        return str(self._values[self.decided.reason])

    @cached_property
    def candidates(self) -> tuple[Candidate, ...]:
        """The winner first, then the other plans that the workbook holds."""
        values, found = self._values, []
        for place, plan in enumerate(self.decided.plans, 1):
            rank, behind = values[plan.rank], values[plan.behind]
            found.append(
                Candidate(
                    rank=None if isinstance(rank, str) else int(rank),
                    name=str(values[plan.name]),
                    plan=plan_of(self.scenario.variants[place - 1].model_dump(exclude_none=True)),
                    results=self.estimate.results(place),
                    lost_because=str(values[plan.lost]),
                    told=str(values[plan.told]),
                    behind=None if isinstance(behind, str) else float(behind),
                    error=float(values[plan.error]),
                )
            )
        return tuple(found)

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
        reason = f"{self.reason[:1].upper()}{self.reason[1:]}"
        return ". ".join([f"[AUTO] {self.title}", *self.notes, f"{reason} ({counted})"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be said of weights that somebody asked for and nobody publishes."""
        model, library = self.question.model, self.question.library
        said = (unpublished(one.plan, model, library) for one in self.candidates)
        return tuple(dict.fromkeys(note for note in said if note))

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
            "limits": {one.measure.key: one.bound for one in self.question.limits},
            "nearest_miss": None
            if miss is None
            else {"plan": miss[0].plan, "limit": miss[1].measure.key, "beyond": miss[2]},
        }

    def to_excel(self, path: str | Path) -> Path:
        """Write the workbook of the winner, with the candidates as live columns and a sheet Decide.

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
        search: what is looked at beyond the usual: cp, disaggregated, offload.
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
    )
    return solve(question, step, cluster, workers, part, None if keep is None else Path(keep))


def workload_of(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The fields of a scenario that say nothing of a plan: the workload, prices and overrides."""
    fields = merge_fields(data, {}, name)
    left_out = (
        *PLANNED,
        "variants",
        "decision",
        "decode",
        "serving",
        "name",
        "versions",
        "since",
        "measured",
    )
    return {key: value for key, value in fields.items() if key not in left_out}


def prepared(question: Question) -> tuple[Space, Scenario, Evaluator]:
    """The plans of a question, the scenario that they are put into, and its graph.

    Raises:
        InputError: for a measure that the workload does not have.
    """
    space = usual_space(
        {
            key: value
            for key, value in question.fields.items()
            if key in (*PLANNED, "input_tokens", "output_tokens")
        },
        question.over,
        question.model,
        question.library,
        question.most,
        question.searched,
        question.makers,
        question.host_memory,
    )
    base = _base(question, space)
    evaluator = Evaluator(base, question.model, question.library, question.name)
    for one in (*question.objective.measures, *(limit_.measure for limit_ in question.limits)):
        if not evaluator.has(one):
            raise InputError(
                f"{question.name}: {one.key}: this workload has no {one.metric.label}; state what it follows "
                "from, such as a limit or a spread of lengths"
            )
    return space, base, evaluator


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
        broken = ", ".join(f"{code}: {count:,}" for code, count in _most_first(found.infeasible)[:6])
        raise InputError(
            f"{question.name}: none of {found.tried:,} plans can be ({broken}); expected more accelerators "
            "(gpus_max), other accelerators, or smaller data types"
        )
    rows = _selected(found, question.plans)
    could = [*turned(evaluator, question.objective, rows)] if len(found.ranked) else []
    return Optimum(question, scenario_of(question, base, found, rows, could), found, space)


def _most_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: -item[1])


def ask(
    fields: Mapping[str, Any],
    objective: str | Objective,
    limits: Sequence[Limit],
    most: int,
    over: Mapping[str, Iterable[Any]],
    makers: Sequence[str] = (),
    search: Sequence[str] = (),
    model: Model | None = None,
    library: Library | None = None,
    name: str = "optimize",
    plans: int = CANDIDATES,
    host_memory: float | None = None,
) -> Question:
    """A question, checked.

    Args:
        fields: of a scenario by our names; those of a plan are fixed. All else as for `optimize`.

    Raises:
        InputError: naming the field that is wrong and what was expected.
    """
    if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= 1024:
        raise InputError(f"{name}: gpus_max: expected a whole number from 1 to 1,024, found {most!r}")
    if isinstance(plans, bool) or not isinstance(plans, int) or not 1 <= plans <= MOST_PLANS:
        raise InputError(f"{name}: plans: expected a whole number from 1 to {MOST_PLANS}, found {plans!r}")
    wrong = next((one for one in search if one not in SEARCHED), None)
    if wrong is not None:
        raise InputError(f"{name}: search: {wrong!r}: expected {', '.join(SEARCHED)}")
    if host_memory is not None and not (np.isfinite(host_memory) and host_memory >= 0):
        raise InputError(f"{name}: host_memory: expected GB from 0 on, found {host_memory!r:.40}")
    given = dict(fields)
    varied = _varied(over, given, name)
    library = library or load_library(tuple(given.get("profiles", ())))
    if "model" not in given and model is None:
        raise InputError(f"{name}: model: expected an id, such as llama-3.3-70b")
    model = model or load_model(str(given["model"]))
    if "accelerator" in given:
        case, library = with_own_accelerators(_probe(given, name), library)
        given["accelerator"] = case.accelerator
    for field in ("accelerator", f"{DECODE}accelerator"):
        if field in varied:
            library, varied[field] = _own_among(varied[field], library)
    return Question(
        fields=given,
        over=varied,
        objective=read_objective(objective) if isinstance(objective, str) else objective,
        limits=merged(limits),
        most=most,
        makers=tuple(makers),
        searched=tuple(search),
        model=model,
        library=library,
        name=name,
        plans=plans,
        host_memory=host_memory,
    )


def _own_among(names: tuple[Any, ...], library: Library) -> tuple[Library, tuple[Any, ...]]:
    """The library with accelerators of one's own, given as files, among some; and ids in place of files."""
    found: list[Any] = []
    for name in names:
        if isinstance(name, str) and is_file(name):
            library, chip = with_accelerator(library, Path(name))
            found.append(chip.id)
        else:
            found.append(name)
    return library, tuple(found)


def _probe(given: Mapping[str, Any], name: str) -> Scenario:
    return parse_scenario(merge_fields({"concurrency": 1}, dict(given), name), name)


def _varied(
    over: Mapping[str, Iterable[Any]], given: Mapping[str, Any], name: str
) -> dict[str, tuple[Any, ...]]:
    """What is chosen from, by our names."""
    varied: dict[str, tuple[Any, ...]] = {}
    for key, listed in over.items():
        field = field_name(key)
        if field not in (*PLANNED, CONTEXT, f"{DECODE}accelerator"):
            known = field in INPUT_NAMES
            raise InputError(
                f"{name}: {key}: expected a field of a plan: {', '.join((*PLANNED, CONTEXT))}"
                + ("; other fields have one value" if known else "")
            )
        if field in given:
            raise InputError(f"{name}: {key}: fixed and listed; expected one of both")
        values = (listed,) if isinstance(listed, str | int | float) else tuple(listed)
        if not values:
            raise InputError(f"{name}: {key}: expected one value at least")
        varied[field] = values
    return varied


def _base(question: Question, space: Space) -> Scenario:
    """The scenario that plans are put into: the workload, and the first accelerator there is."""
    fields = {key: value for key, value in question.fields.items() if key not in PLANNED}
    fields |= {} if question.load else {"concurrency": 1}
    fields |= {"model": question.fields.get("model", question.model.id)}
    fields["accelerator"] = space.chosen["accelerator"][0]
    fields |= {CONTEXT: space.contexts[0]} if space.contexts else {}
    fields |= {"serving": APART} if space.apart else {}
    return parse_scenario(merge_fields({}, fields, question.name), question.name)


def plan_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plan that say something, as plain objects."""
    plan = {}
    flat = dict(row) | {f"{DECODE}{key}": value for key, value in (row.get("decode") or {}).items()}
    row = flat
    for name in (*PLANNED, *_OF_PAIRS, CONTEXT, "concurrency"):
        if name not in row or row[name] is None or row[name] == _PLAIN.get(name):
            continue
        value = row[name]
        plan[name] = value.item() if isinstance(value, np.generic) else value
    return plan


def plan_name(plan: Mapping[str, Any], model: Model, library: Library) -> str:
    """A plan as people call it: B200 SXM · 3 × TP1 · nvfp4 instead of bf16 · trtllm."""
    chip = library.accelerator(str(plan["accelerator"])).name
    degrees = [
        f"{short}{int(plan[field])}"
        for field, short in (("tp", "TP"), ("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP"))
        if field == "tp" or int(plan.get(field, 1)) > 1
    ]
    copies = f"{int(plan['dp'])} × " if int(plan.get("dp", 1)) > 1 else ""
    if plan.get("serving") == APART:
        decode = {key.removeprefix(DECODE): value for key, value in plan.items() if key.startswith(DECODE)}
        last = plan_name({**plan, **decode, "serving": TOGETHER}, model, library).split(" · ")
        first = plan_name({**plan, "serving": TOGETHER}, model, library).split(" · ")
        where = first[0] if first[0] == last[0] else f"{first[0]} → {last[0]}"
        return " · ".join([where, f"{first[1]} → {last[1]}", *first[2:]])
    formats, own = str(plan["weights_dtype"]), str(model.architecture.choices["weights_dtype"].value)
    formats += "" if formats == own else f" instead of {own}"
    cache = str(plan.get("kv_dtype", ""))
    formats += f", {cache} KV" if cache and cache != "bf16" else ""
    words = [chip, f"{copies}{' '.join(degrees)}", formats, str(plan["framework"])]
    hosted = [
        f"{float(plan[field]):g} GB of {what}"
        for field, what in zip(OFFLOADED, ("weights", "KV"), strict=True)
        if float(plan.get(field) or 0)
    ]
    words += [f"{int(plan[CONTEXT]):,} tokens at most"] if plan.get(CONTEXT) else []
    return " · ".join([*words, *([f"{' and '.join(hosted)} on the host"] if hosted else [])])


def _selected(found: Found, count: int) -> pd.DataFrame:
    """The plans of the answer: the best, the best others, the best of other accelerators, and what nearly is.

    Of plans that differ in the number of replicas alone the best stands for all.
    """
    ranked = found.ranked
    kinds = [
        name for name in (*CHOSEN, *DEGREES, *_OF_PAIRS) if name in found.plans and name != f"{DECODE}dp"
    ]
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
    data = base.model_dump(exclude_none=True, exclude_defaults=True, exclude={"decode", "serving"})
    data |= _fields(plans[0])
    data["variants"] = [
        {
            "name": plan_name(plan, question.model, question.library)[:120],
            **_fields({"system": "default", **plan}),
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
        "searched": f"{question.objective.words}; at most {question.most} accelerators",
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
