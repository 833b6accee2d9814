"""Target first: what do I need? The smallest build that keeps the limits, a good one and the best.

Every plan of the space is looked at, on every accelerator that may be chosen, at the load that is asked for.
A price that nobody knows is never 0: such a build has no place where money ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.equations.measures import HEADROOM, Measure, measure
from mantile.equations.metrics import (
    ACCELERATORS,
    INTERACTIVITY,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MONTH,
)
from mantile.equations.size import needed
from mantile.graph.quantity import Node
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.models import caches
from mantile.library.profiles import CHECKPOINT, Library
from mantile.library.scenario import Scenario, merge_fields
from mantile.search.chips import MOST_LOOKED_AT, ChipAnswer, chips_of, nearest
from mantile.search.evaluate import Array, numbers
from mantile.search.objective import Limit, limit
from mantile.search.optimize import Optimum, scenario_of
from mantile.search.question import (
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
from mantile.search.search import USED, Found, Search
from mantile.search.space import APART, OFFLOAD, Space, published

USUAL: Mapping[str, int] = {"input_tokens": 1024, "output_tokens": 256}
"""Lengths where nobody states them."""
SPARE = 0.3
"""What a good build has to spare, as a share: of every limit of time and speed, and of the memory."""
MINIMUM, GOOD, BEST = "minimum", "good", "best"
ORDER = "accelerators,usd-per-hour"
"""What the smallest build is judged by."""
NEEDED = "memory_needed"
_SERVICE = ("s", "token/s", "token/s/accelerator", "token/request/s", "request/s", "1")
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, repr=False)
class Tier:
    """A build of the answer; None in every field but the reason where there is none.

    Args:
        plan: fields of a scenario.
        results: as `mantile estimate --json` prints them.
        usd_per_hour: of the deployment; None also where nobody knows it.
    """

    label: str | None
    plan: Mapping[str, Any] | None
    results: Mapping[str, Any] | None
    accelerators: int | None
    usd_per_hour: float | None
    reason: str

    def __repr__(self) -> str:
        return f"<Tier: {self.label or 'none'}; {self.reason}>"

    def to_dict(self) -> dict[str, Any]:
        """Keys of `mantile size --json`."""
        return {
            "plan": self.plan,
            "metrics": self.results,
            "accelerators": self.accelerators,
            "usd_per_hour": self.usd_per_hour,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Way:
    """A change with which the model fits, looked for among plans.

    Args:
        change: weights_dtype, input_tokens or accelerators.
        value: to which.
        plan: the plan that then fits.
    """

    change: str
    value: Any
    plan: Mapping[str, Any]
    label: str


@dataclass(frozen=True)
class Sizes(Search):
    """A search that also holds what builds are told by: prices, memory, headroom."""

    ruled: list[pd.DataFrame] = field(default_factory=list)  # plans that keep the rules, each search one

    def bare(self) -> Sizes:
        """As of any search."""
        return replace(cast("Sizes", super().bare()), ruled=[])

    @property
    def shown(self) -> tuple[Measure, ...]:
        """Measures of every plan."""
        told = (INTERACTIVITY, USD_PER_HOUR, USD_PER_MILLION_OUTPUT_TOKENS, HEADROOM)
        return tuple(dict.fromkeys((*super().shown, *(measure(metric.column) for metric in told))))

    def _by_memory(self, plans: pd.DataFrame) -> tuple[pd.DataFrame, Counter[str]]:
        self.ruled.append(plans)
        return super()._by_memory(plans)

    def measured(self, plans: pd.DataFrame) -> pd.DataFrame:
        """As of any search, and the memory of all accelerators."""
        return super().measured(plans).assign(**{NEEDED: self.memory(plans)})

    def memory(self, plans: pd.DataFrame) -> Array:
        """Memory of all accelerators together, in B."""
        return numbers(self.evaluator.run(plans, {NEEDED: self._needed})[NEEDED])

    @cached_property
    def _needed(self) -> Node:
        return needed(self.evaluator.graph)

    def fitting(self, space: Space) -> pd.DataFrame:
        """Plans of one replica that keep the rules and have room for a request."""
        plans = self._by_rules(self.replicas_of(space), Counter())
        return super()._by_memory(plans.reset_index(drop=True))[0]

    def most_input(self, plans: pd.DataFrame, most: int) -> Array:
        """Input tokens of a request at most with which each plan has room for one; 0 where none has."""
        low, high = np.zeros(len(plans), int), np.full(len(plans), most + 1)
        while (high - low > 1).any():
            middle = (low + high) // 2
            tried = plans.reset_index(drop=True).assign(input_tokens=np.maximum(1, middle))
            fits = np.isin(np.arange(len(plans)), super()._by_memory(tried)[0].index)
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return low


@dataclass(frozen=True, repr=False)
class Size:
    """The answer: three builds, what is needed of every accelerator, and what was left out.

    Args:
        assumed: fields that nobody stated, with what was taken.
        spare: what a good build has to spare, as a share.
        plans: every plan that can be, with its measures.
        memory: B that the model and its load take at least, on all accelerators together: of the builds that
            keep the limits, else of all that keep the rules.
        ways: changes with which the model fits, where no plan has the memory.
    """

    question: Question
    assumed: Mapping[str, Any]
    spare: float
    found: Found
    space: Space
    base: Scenario
    memory: float | None
    chips: tuple[ChipAnswer, ...]
    ways: tuple[Way, ...]

    def __repr__(self) -> str:
        least = self._rows[MINIMUM]
        told = "no build keeps every limit"
        if least is not None:
            chip = self.question.library.accelerator(str(least["accelerator"]))
            told = f"at least {int(least[USED])} × {chip.name}"
        return f"<Size: {self.question.model.name} needs {told}; {self.found.tried:,} plans looked at>"

    @property
    def has_answer(self) -> bool:
        """Whether any build keeps every limit."""
        return bool((self.found.plans["code"] == "").any())

    @property
    def asked(self) -> tuple[ChipAnswer, ...]:
        """What becomes of the accelerators that somebody asked for by name."""
        return tuple(chip for chip in self.chips if chip.accelerator in self.question.asked)

    @cached_property
    def _rows(self) -> dict[str, pd.Series[Any] | None]:
        kept = self.found.plans[self.found.plans["code"] == ""]
        priced = kept[np.isfinite(kept[_COST.key])]
        roomy = priced[_all_kept(priced, spared(self.question.limits, self.spare))]
        return {
            MINIMUM: _first(kept, (USED, _USD.key)),
            GOOD: _first(roomy, (_COST.key, USED)),
            BEST: _first(kept.assign(slow=1 / kept[_SPEED.key]), ("slow", _USD.key, USED)),
        }

    @cached_property
    def optimum(self) -> Optimum | None:
        """The builds as candidates of a choice of the fewest accelerators, then the least USD per hour.

        None where no build keeps the limits.
        """
        rows = [row for row in self._rows.values() if row is not None]
        if not rows:
            return None
        chosen = pd.DataFrame(rows)
        chosen = chosen[~chosen.index.duplicated()]
        scenario = scenario_of(self.question, self.base, self.found, chosen)
        return Optimum(self.question, scenario, self.found, self.space)

    @cached_property
    def tiers(self) -> dict[str, Tier]:
        """The builds by name: minimum, good, best."""
        made: dict[str, Tier] = {}
        places = dict.fromkeys(int(cast("int", row.name)) for row in self._rows.values() if row is not None)
        order = {index: place for place, index in enumerate(places)}
        for name, row in self._rows.items():
            if row is None:
                made[name] = Tier(None, None, None, None, None, self._no_tier(name))
                continue
            assert self.optimum is not None
            one = self.optimum.candidates[order[int(cast("int", row.name))]]
            made[name] = Tier(
                label=one.name,
                plan=one.plan,
                results=one.results,
                accelerators=int(row[USED]),
                usd_per_hour=_known(row[_USD.key]),
                reason=self._reason(name, row),
            )
        return made

    def _no_tier(self, name: str) -> str:
        if not self.has_answer:
            return "no build keeps every limit"
        if name == GOOD and not np.isfinite(self.found.ranked[_COST.key]).any():
            return "nobody knows a price of a build that keeps every limit"
        tight = spared(self.question.limits, self.spare)
        priced = self.found.ranked
        miss = nearest(priced[np.isfinite(priced[_COST.key])], tight)
        words = "" if miss is None else f"; the nearest misses {miss[1].words} by {miss[2]:.1%}"
        return f"no build has {self.spare:.0%} to spare{words}"

    def _reason(self, name: str, row: pd.Series[Any]) -> str:
        least = self._rows[MINIMUM]
        assert least is not None
        if name == MINIMUM:
            price = _USD.text(_known(row[_USD.key]))
            return f"the fewest accelerators, then the least USD per hour ({price}); {self._smaller(row)}"
        beside = "the same as the minimum" if row.name == least.name else _beside(row, least)
        if name == GOOD:
            cost = _COST.text(_known(row[_COST.key]))
            least_of = f"the least of builds with {self.spare:.0%} to spare"
            return f"{cost} per million output tokens, {least_of}; {beside}"
        budget = any(one.measure.metric is USD_PER_MONTH for one in self.question.limits)
        within = "within the budget" if budget else f"on {at_most(self.space.most)}"
        return f"the fastest for one user {within}, {_SPEED.text(float(row[_SPEED.key]))}; {beside}"

    def _smaller(self, row: pd.Series[Any]) -> str:
        """Why nothing with fewer accelerators does."""
        plans = self.found.plans
        smaller = plans[plans[USED] < row[USED]]
        if not len(smaller):
            return (
                "nothing smaller has the memory" if row[USED] > 1 else "one accelerator is the least there is"
            )
        miss = nearest(smaller[smaller["code"].str.startswith("LIMIT_")], self.question.limits)
        if miss is None:
            return "nothing smaller is known to keep the limits"
        name = plan_name(plan_of(miss[0]), self.question.model, self.question.library)
        return f"the nearest smaller one, {name}, misses {miss[1].words} by {miss[2]:.1%}"

    def nearest_miss(self) -> tuple[dict[str, Any], Limit, float] | None:
        """The build that comes nearest, the limit that it misses most, and by how much as a share.

        None where a build keeps every limit, or none can be.
        """
        if self.has_answer:
            return None
        plans = self.found.plans
        miss = nearest(plans[plans["code"].str.startswith("LIMIT_")], self.question.limits)
        return None if miss is None else (plan_of(miss[0]), miss[1], miss[2])

    def to_dict(self) -> dict[str, Any]:
        """What `mantile size --json` prints; SI units, None for what nobody knows."""
        miss = self.nearest_miss()
        return {
            "tiers": {name: tier.to_dict() for name, tier in self.tiers.items()},
            "minimum_memory_bytes": self.memory,
            "accelerators": [
                {
                    "accelerator": chip.accelerator,
                    "name": chip.name,
                    "accelerators": chip.accelerators,
                    "usd_per_hour": chip.usd_per_hour,
                    "plan": chip.plan,
                    "code": chip.code,
                    "beyond": chip.beyond,
                }
                for chip in self.chips
            ],
            "asked_accelerators": {chip.accelerator: chip.to_dict() for chip in self.asked},
            **self.question.bounds(),
            "spare": self.spare,
            "assumed": dict(self.assumed),
            "notes": [] if self.optimum is None else [*self.optimum.notes],
            "tried": self.found.tried,
            "feasible": int((self.found.plans["code"] == "").sum()),
            "infeasible": dict(sorted(self.found.infeasible.items(), key=lambda item: -item[1])),
            "nearest_miss": None
            if miss is None
            else {"plan": miss[0], "limit": miss[1].measure.key, "beyond": miss[2]},
            "ways": [{"change": way.change, "value": way.value, "plan": way.plan} for way in self.ways],
        }

    def to_frame(self) -> pd.DataFrame:
        """What is needed of every accelerator, a row each."""
        return pd.DataFrame(self.to_dict()["accelerators"]).drop(columns="plan")

    def to_excel(self, path: str | Path) -> Path:
        """Write the workbook of the minimum, with the other builds as live columns, ranked on What-if.

        Raises:
            InputError: where no build keeps the limits; naming the file, if it cannot be written.
        """
        if self.optimum is None:
            raise InputError(f"{path}: no build keeps every limit, so there is none to write")
        return self.optimum.to_excel(path)


def size(
    scenario: Scenario | None = None,
    users: int | None = None,
    requests_per_hour: float | None = None,
    limits: Mapping[str, float] | Iterable[Limit] = (),
    budget_usd_month: float | None = None,
    gpus_max: int = USUAL_MOST,
    spare: float = SPARE,
    over: Mapping[str, Iterable[Any]] | None = None,
    makers: Sequence[str] = (),
    search: Sequence[str] = (),
    model: Model | str | None = None,
    library: Library | None = None,
    name: str = "size",
    step: Callable[[str], None] = lambda words: None,
    cluster: str | None = None,
    workers: int | None = None,
    part: int | None = None,
    keep: str | Path | None = None,
    default_limits: bool = True,
    **fields: Any,
) -> Size:
    """Say what is needed: the smallest build that keeps the limits, a good one and the best.

    minimum: the fewest accelerators, and of those the least USD per hour. good: the cheapest per million
    output tokens of builds that keep every limit of time and speed with `spare` to spare (at most 70 % of a
    time, at least 130 % of a rate) and leave as much of the memory free. best: the fastest for one user
    within the budget.

    Args:
        scenario: what is asked; its workload is taken, not its plan.
        users: who ask at the same time; with `requests_per_hour` of each they make a request rate.
        limits: bounds in SI units by measure: at most where less is better, else at least.
        budget_usd_month: a limit of every build.
        gpus_max: accelerators of a deployment at most.
        spare: what a good build has to spare, as a share from 0 to below 1.
        over, makers, search, model, library, name, step, default_limits: as for `optimize`; nothing lies on
            the host but with `search` offload.
        fields: of a scenario. Without a load a single user is meant.

    Raises:
        InputError: naming a field, measure or value that is wrong.

    Example:
        found = mantile.size(model="llama-3.3-70b", users=200, requests_per_hour=30, input_tokens=2000,
                             output_tokens=300, limits={"ttft_p95": 2, "tpot": 0.04})
        found.tiers["minimum"].plan, found.memory
    """
    given = {} if scenario is None else workload_of(scenario.model_dump(exclude_none=True), name)
    stated = {key: value for key, value in fields.items() if value is not None}
    if isinstance(model, str):
        stated["model"], model = model, None
    bounds = [limit(key, float(bound), f"{name}: limits") for key, bound in _items(limits)]
    bounds += [] if isinstance(limits, Mapping) else [*limits]
    if budget_usd_month is not None:
        bounds.append(limit(USD_PER_MONTH.column, float(budget_usd_month), f"{name}: budget_usd_month"))
    asked, assumed = with_load(merge_fields(given, stated, name), users, requests_per_hour, name)
    question = ask(
        asked,
        ORDER,
        bounds,
        gpus_max,
        over or {},
        makers,
        search,
        model,
        library,
        name,
        default_limits=default_limits,
    )
    where = None if keep is None else Path(keep)
    return size_of(question, spare, assumed, step, cluster, workers, part, where)


def _items(limits: Mapping[str, float] | Iterable[Limit]) -> Iterable[tuple[str, float]]:
    return limits.items() if isinstance(limits, Mapping) else ()


def with_load(
    fields: Mapping[str, Any],
    users: int | None,
    requests_per_hour: float | None,
    name: str,
    spelled: Callable[[str], str] = str,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fields with the load that is asked for, and those of them that nobody stated.

    Args:
        users: who ask at the same time; with `requests_per_hour` of each they make a request rate.
        spelled: how the caller spells a field, in errors.

    Raises:
        InputError: for a load that is stated twice or cannot be.
    """
    load = next(
        (key for key in ("concurrency", "request_rate", "sessions") if fields.get(key) is not None), None
    )
    if users is not None and load is not None:
        raise InputError(
            f"{name}: {spelled('users')}: {spelled(load)} states the load as well; expected one of both"
        )
    if users is not None and (isinstance(users, bool) or not isinstance(users, int) or users < 1):
        raise InputError(f"{name}: {spelled('users')}: expected a whole number from 1 on, found {users!r}")
    if requests_per_hour is not None and users is None:
        raise InputError(
            f"{name}: {spelled('requests_per_hour')}: is of each user; expected {spelled('users')} beside it"
        )
    if requests_per_hour is not None and not (np.isfinite(requests_per_hour) and requests_per_hour > 0):
        raise InputError(
            f"{name}: {spelled('requests_per_hour')}: expected a number above 0, found {requests_per_hour:g}"
        )
    asked = dict(fields)
    assumed: dict[str, Any] = {}
    if users is not None and requests_per_hour is not None:
        asked["request_rate"] = users * requests_per_hour / _SECONDS_PER_HOUR
    elif users is not None:
        asked["concurrency"] = users
    elif load is None:
        assumed["concurrency"] = 1
    assumed |= {key: value for key, value in USUAL.items() if key not in asked and not asked.get("classes")}
    return asked | assumed, assumed


def size_of(
    question: Question,
    spare: float = SPARE,
    assumed: Mapping[str, Any] | None = None,
    step: Callable[[str], None] = lambda words: None,
    cluster: str | None = None,
    workers: int | None = None,
    part: int | None = None,
    keep: Path | None = None,
) -> Size:
    """Look at every plan of a question with a load, as `size` does.

    Raises:
        InputError: for a share to spare that cannot be, or a measure that the workload does not have.
    """
    if not 0 <= spare < 1:
        raise InputError(f"{question.name}: spare: expected a share from 0 to below 1, found {spare:g}")
    if question.fields.get("serving") == APART or question.fields.get("decode"):
        raise InputError(
            f"{question.name}: serving: builds have prefill and decode on the same workers; workers of their "
            "own: --search disaggregated"
        )
    space, base, evaluator = prepared(
        question if OFFLOAD in question.searched else replace(question, host_memory=0.0)
    )
    objective = replace(question.objective, terms=_FEWEST)
    with in_parts(cluster, workers, part, keep) as parts:
        sizes = Sizes(evaluator, space, objective, question.limits, False, step, parts)
        found = sizes.run()
        if not len(found.plans):
            empty = pd.DataFrame({key: [] for key in ("code", USED, NEEDED, *(of.key for of in sizes.shown))})
            found = replace(found, plans=empty.astype({"code": object}).assign(rank=0))
        return Size(
            question=question,
            assumed=assumed or {},
            spare=spare,
            found=found,
            space=space,
            base=base,
            memory=_least_memory(found.plans, sizes),
            chips=chips_of(
                question, (*space.chosen["accelerator"], *question.asked), sizes, found.plans, _fewest
            ),
            ways=() if len(found.plans) else tuple(_ways(question, space, sizes)),
        )


_USD, _COST, _SPEED = (
    measure(metric.column) for metric in (USD_PER_HOUR, USD_PER_MILLION_OUTPUT_TOKENS, INTERACTIVITY)
)
_FEWEST = ((measure(ACCELERATORS.column), 1.0),)


def _first(plans: pd.DataFrame, keys: Sequence[str]) -> pd.Series[Any] | None:
    """The plan that is least by some columns in order, what nobody knows last; of equal ones the fastest.

    None of none. Equal are figures up to a billionth, which is what rounding leaves.
    """
    if not len(plans):
        return None
    columns = [_comparable(plans[key].to_numpy(float)) for key in (*keys, _SPEED.key)]
    columns[-1] = -columns[-1]
    return cast("pd.Series[Any]", plans.iloc[int(np.lexsort(columns[::-1])[0])])


def _comparable(values: Array) -> Array:
    """Logarithms of positive figures without what rounding left; infinite of what nobody knows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(np.round(np.log(values), 9), nan=np.inf, posinf=np.inf))


def _fewest(plans: pd.DataFrame) -> pd.Series[Any]:
    """Of plans that keep every limit that with the fewest accelerators, then the least USD per hour."""
    found = _first(plans, (USED, _USD.key))
    assert found is not None  # one of none is not asked for
    return found


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _beside(row: pd.Series[Any], least: pd.Series[Any]) -> str:
    """A build against the minimum, in words."""
    speed = f"{row[_SPEED.key] / least[_SPEED.key]:.2f} × the speed of the minimum"
    price = row[_USD.key] / least[_USD.key]
    return f"{speed} for {price:.2f} × its USD per hour" if np.isfinite(price) else speed


def spared(limits: Sequence[Limit], spare: float) -> tuple[Limit, ...]:
    """Limits with something to spare: of time, speed and memory; those of money and power stay."""
    tight = [
        replace(one, bound=one.bound * (1 - spare if one.upper else 1 + spare))
        if one.measure.metric.unit in _SERVICE and one.measure.metric is not HEADROOM
        else one
        for one in limits
    ]
    if spare > 0:
        tight.append(Limit(measure(HEADROOM.column), spare))
    return tuple(tight)


def _all_kept(plans: pd.DataFrame, limits: Sequence[Limit]) -> Array:
    kept = np.ones(len(plans), bool)
    for one in limits:
        kept &= one.kept(plans[one.measure.key].to_numpy(float))
    return kept


def _least_memory(plans: pd.DataFrame, sizes: Sizes) -> float | None:
    kept = plans[plans["code"] == ""]
    if len(kept):
        return float(kept[NEEDED].min())
    ruled = sizes.ruled[0]
    return float(sizes.memory(ruled[ruled["dp"] == 1]).min()) if (ruled["dp"] == 1).any() else None


def formats_of(model: Model, library: Library, chip: str, framework: str) -> tuple[str, ...]:
    """Data types of weights that a framework may be given on an accelerator: published ones, and all of its
    own files.
    """
    of = library.framework(framework)
    usual = published(model, of, library.accelerator(chip))
    if of.weights == CHECKPOINT or str(model.architecture.choices["weights_dtype"].value) in of.keeps:
        return usual
    family = library.datatype(of.weights, "weights").family
    own = (kind.id for kind in library.datatypes if kind.family == family and "weights" in kind.roles)
    return tuple(dict.fromkeys((*usual, *own)))


def bits_of(weights: str, model: Model, library: Library) -> float:
    """Bits of a data type of weights; no more than the checkpoint has, as more say nothing."""
    own = library.datatype(str(model.architecture.choices["weights_dtype"].value), "weights").bits
    return min(library.datatype(weights, "weights").bits, own)


def _ways(question: Question, space: Space, sizes: Sizes) -> Iterable[Way]:
    """Changes with which the model fits: of the data type, the length of prompts, the accelerators."""
    model, library = question.model, question.library
    space = replace(space, replicas=(1,))
    ruled = sizes.ruled[0]

    def way(change: str, value: Any, row: pd.Series[Any]) -> Way:
        plan = plan_of(cast("dict[str, Any]", row.to_dict()))
        return Way(change, value, plan, plan_name(plan, model, library))

    every = {pair: formats_of(model, library, *pair) for pair in space.formats}
    cache = tuple(dict.fromkeys((*space.chosen["kv_dtype"], *caches(model))))
    chosen = {**space.chosen, "kv_dtype": cache}
    smaller = replace(space, formats=every, chosen=chosen)
    fitting = sizes.fitting(smaller)
    if len(fitting):
        bits = {name: bits_of(name, model, library) for name in fitting["weights_dtype"].unique()}
        cached = {name: library.datatype(name, "kv").bits for name in fitting["kv_dtype"].unique()}
        fitting = fitting.assign(
            bits=-fitting["weights_dtype"].map(bits),
            cached=-fitting["kv_dtype"].map(cached),
            used=_accelerators(fitting),
        )
        row = fitting.sort_values(["bits", "cached", "used"], kind="stable").iloc[0]
        yield way("weights_dtype", str(row["weights_dtype"]), row)
    single = ruled[ruled["dp"] == 1].reset_index(drop=True)
    asked = question.fields.get("input_tokens")
    if len(single) and asked is not None and not question.fields.get("classes"):
        most = sizes.most_input(single, int(asked))
        if most.max() > 0:
            tokens = int(most.max())
            yield way("input_tokens", tokens, single.iloc[int(most.argmax())])
    count = 2 * space.most
    chips = tuple(dict.fromkeys(single["accelerator"])) or space.chosen["accelerator"]
    while count <= MOST_LOOKED_AT:
        larger = prepared(replace(question, most=count))[0]
        chosen = {**larger.chosen, "accelerator": chips}
        degrees = {**larger.degrees, "attention_dp": (1,)}
        fitting = sizes.fitting(replace(larger, chosen=chosen, degrees=degrees, replicas=(1,)))
        if len(fitting):
            used = _accelerators(fitting)
            row = fitting.assign(used=used).sort_values("used", kind="stable").iloc[0]
            yield way("accelerators", int(row["used"]), row)
            return
        count *= 2


def _accelerators(plans: pd.DataFrame) -> Array:
    return np.asarray(plans[["tp", "pp", "cp", "attention_dp"]].prod(axis=1), int)
