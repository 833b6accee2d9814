"""Every plan of a space, worked out and ranked; where nobody states a load, at the best within the limits.

Plans are asked for the rules of the checker first, then for memory, then for times. None is left out without
a word: each is counted as feasible, or under the code of the rule or limit that it does not keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mantile.equations.checks import FITS, OVERLOADED, WITH_OFFLOAD
from mantile.equations.measures import EVIDENCE, Measure, measure
from mantile.equations.metrics import (
    ACCELERATORS,
    GOODPUT,
    INTERACTIVITY,
    KV_CAPACITY_SEQUENCES,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    REQUESTS_PER_S,
    USD_PER_DAY,
    USD_PER_HOUR,
    USD_PER_MONTH,
)
from mantile.graph.quantity import Node
from mantile.library.brief import Brief
from mantile.library.fields import DECODE
from mantile.search.evaluate import Array, Evaluator, numbers
from mantile.search.launchable import NO_LAUNCH_LINE, accepted
from mantile.search.objective import Limit, Objective
from mantile.search.offload import fullest, others
from mantile.search.space import APART, CONTEXT, DEGREES, FFN_TP, OF_DECODE, OFFLOADED, TOGETHER, Space

USED = "accelerators_used"
"""The column of plans that says how many accelerators they have."""
INSUFFICIENT = "INSUFFICIENT_MEMORY"
NOT_KNOWN_CODE = "NOT_KNOWN"
"""Of a plan whose objective or limit nobody knows: it is counted, and has no rank."""
TOO_LONG = "context_exceeds_memory"
"""The reason, as of a check, of a plan whose memory has no room for the longest request by itself."""
MOST_IN_FLIGHT = 65_536  # of a replica, where nobody states a load
FRONT = (INTERACTIVITY.column, OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.column)
_OF_ALL = frozenset(
    metric.column
    for metric in (
        OUTPUT_TOKENS_PER_S,
        REQUESTS_PER_S,
        POWER,
        USD_PER_HOUR,
        USD_PER_DAY,
        USD_PER_MONTH,
        ACCELERATORS,
    )
)
"""Measures of the whole deployment, which grow with the number of replicas."""
_GAINS = ("token/s", "token/s/accelerator", "request/s", "USD/Mtoken", "token/USD", "token/kWh", "J/token")
"""Units of measures that are better the more requests are in flight: what is made, and what that costs."""
_STAYS = frozenset(
    metric.column
    for metric in (ACCELERATORS, KV_CAPACITY_SEQUENCES, USD_PER_HOUR, USD_PER_DAY, USD_PER_MONTH, EVIDENCE)
)
"""Measures that do not follow the requests in flight."""
_PEAKS = GOODPUT.column
"""What gains by more requests as long as they are within their limits, then loses."""
_EQUAL = 1e-9  # scores that differ by less do so by rounding alone
_ALL_GB = 1e6  # more than a rank holds
_BYTES_PER_GB = 1e9
_STEPS = 8  # loads that are looked at between two others
KEPT = 8  # best plans whose order is exact where the load is searched for


@dataclass(repr=False)
class Found(Brief):
    """All plans that were looked at.

    Args:
        plans: those that can be, each with its fields, measures by key, `code` ("" if all limits are kept)
            and `rank` from 1, 0 without.
        tried: how many were looked at.
        infeasible: how many broke a rule, by reason code; how many missed a limit, by code.
        loads: where the load is searched for, plans at other loads that no other of these beats in speed and
            throughput at once; the same columns.
    """

    plans: pd.DataFrame
    tried: int
    infeasible: dict[str, int] = field(default_factory=dict)
    loads: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def ranked(self) -> pd.DataFrame:
        """Plans that keep every limit, the best first."""
        kept = self.plans[self.plans["rank"] > 0]
        return kept.sort_values("rank", kind="stable")

    @property
    def front(self) -> pd.DataFrame:
        """Of the plans with a rank those that no other beats in speed and throughput at once.

        Where the load is searched for, each plan counts at one request a replica, at each doubling of that,
        at the most that memory holds, and at the load that was found; those with a part on the host at the
        last alone, where others fit without.
        """
        kept = self.plans[self.plans["code"] == ""]
        return _front(pd.concat([kept, self.loads]) if len(self.loads) else kept)


WORK = ("rules", "memory_of", "measured")
"""What is worked out of plans, each by itself: methods of `Search`."""


def silent(words: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Search:
    """A question: which plan of a space is best.

    Args:
        evaluator: graph and scenario.
        searches_load: whether the number of requests in flight is looked for; else the scenario states the
            load, and every number of replicas is looked at.
        step: is told how many plans are done.
        helped: works plans out in parts: given the search, one of `WORK` and plans; None: in one piece.
        launched: whether a plan must have a launch line.
    """

    evaluator: Evaluator
    space: Space
    objective: Objective
    limits: tuple[Limit, ...]
    searches_load: bool
    step: Callable[[str], None] = silent
    helped: Callable[[Search, str, pd.DataFrame], pd.DataFrame] | None = None
    launched: bool = True

    def bare(self) -> Search:
        """The same question for another process: without what it has been told so far."""
        return replace(self, evaluator=replace(self.evaluator), step=silent, helped=None)

    def worked_out(self, work: str, plans: pd.DataFrame) -> pd.DataFrame:
        """Columns of plans, one of `WORK`: in one piece, or as `helped` has it done."""
        if self.helped is not None:
            return self.helped(self, work, plans)
        found: pd.DataFrame = getattr(self, work)(plans)
        return found

    @property
    def shown(self) -> tuple[Measure, ...]:
        """The measures that are worked out: of the objective, the limits and the front."""
        wanted = (*self.objective.measures, *(limit.measure for limit in self.limits), *map(measure, FRONT))
        return tuple(dict.fromkeys(wanted))

    def run(self) -> Found:
        """Look at all plans."""
        plans = self.replicas_of(self.space)
        infeasible: Counter[str] = Counter()
        tried = int(np.sum(self._copies(plans)))
        single = self._by_rules(plans, infeasible)
        plans = self._with_replicas(single)
        if self.space.apart:
            pairs = self.space.pairs().assign(serving=APART)
            tried += len(pairs)
            plans = pd.concat([plans, self._by_rules(pairs, infeasible)], ignore_index=True)
        self.step(f"{len(plans):,} of {tried:,} plans keep the rules")
        plans, reasons = self._by_memory(plans)
        infeasible.update(reasons)
        if self.space.host:
            more, count = self._offloaded(single, {*plans["accelerator"]}, infeasible)
            plans, tried = pd.concat([plans, more], ignore_index=True), tried + count
        if not self.searches_load:
            return self._ranked(self._at(plans), tried, infeasible)
        found = self._ranked(self._with_load(plans), tried, infeasible)
        own = (plans[[*OFFLOADED]] == 0).all(axis=1).to_numpy()
        for _, _, done in self._doubled(plans[own] if own.any() else plans):
            kept = done[(done["code"] == "") & np.isfinite(done["score"])]
            found.loads = _front(pd.concat([found.loads, kept]) if len(found.loads) else kept)
        return found

    def replicas_of(self, space: Space) -> pd.DataFrame:
        """Plans of a space of one replica each, with workers that do both."""
        plans = space.plans().assign(dp=1)
        if self.space.apart:
            plans = plans.assign(serving=TOGETHER, **{f"{DECODE}accelerator": plans["accelerator"]})
            plans = plans.assign(**{name: plans[name.removeprefix(DECODE)] for name in OF_DECODE})
        return plans

    def _offloaded(
        self, plans: pd.DataFrame, fitting: set[str], infeasible: Counter[str]
    ) -> tuple[pd.DataFrame, int]:
        """Plans with a part on the host that have room, and how many were tried: of accelerators that have
        none without, or of all where that is asked for.

        Args:
            plans: of one replica, without offload, that keep the rules.
            fitting: accelerators that have plans with room.
        """
        host = self.space.host
        lost = [chip for chip in host if self.space.host_for_all or chip not in fitting]
        plans = plans[plans["accelerator"].isin(lost)].reset_index(drop=True)
        if not len(plans):
            return plans.assign(room=[]), 0
        weights = self._weights(plans)
        most = fullest(plans, weights, host)
        if not len(most):
            return plans.iloc[:0].assign(room=[]), 0
        first = self._with_replicas(self._by_rules(most, infeasible))
        found, reasons = self._by_memory(first)
        infeasible.update(reasons)
        kinds = [name for name in plans if name not in (*OFFLOADED, "dp", OF_DECODE[-1])]
        roomy = plans.merge(found[kinds].drop_duplicates(), on=kinds)
        second = self._with_replicas(others(roomy, self._weights(roomy), host))
        rest, reasons = self._by_memory(second)
        infeasible.update(reasons)
        return pd.concat([found, rest]), int(np.sum(self._copies(most))) + len(second)

    def _weights(self, plans: pd.DataFrame) -> Array:
        """GB of weights of a rank."""
        wanted = {"weights": self.evaluator.graph.figures["memory.host_weights"]}
        values = self.evaluator.run(plans.assign(**{OFFLOADED[0]: _ALL_GB}), wanted)
        return np.asarray(numbers(values["weights"]) / _BYTES_PER_GB)

    def _copies(self, plans: pd.DataFrame) -> Array:
        """How many numbers of replicas each row stands for."""
        if "serving" in plans and (plans["serving"] == APART).any():
            return np.ones(len(plans), int)
        return np.array([len(self._replicas(int(ranks))) for ranks in _ranks(plans)], int)

    def _replicas(self, ranks: int) -> tuple[int, ...]:
        """Numbers of replicas of so many ranks."""
        most = self.space.most // ranks
        if self.space.replicas:
            return tuple(count for count in self.space.replicas if count <= most)
        if not self.searches_load:
            return tuple(range(1, most + 1))
        if not self._counts_replicas:
            return (1,) if most else ()
        return tuple(1 << place for place in range(most.bit_length()))

    @cached_property
    def _counts_replicas(self) -> bool:
        """Whether it matters how many replicas there are, where every one has its best load."""
        asked = (*self.objective.measures, *(limit.measure for limit in self.limits))
        return any(of.key in _OF_ALL for of in asked)

    def _by_rules(self, plans: pd.DataFrame, infeasible: Counter[str]) -> pd.DataFrame:
        """Plans that keep the rules of the checker, those of single ranks first."""
        names = [name for name in plans if name not in (*DEGREES, FFN_TP, "dp", *OF_DECODE)]
        ones = {name: int(name != FFN_TP) for name in plans if name not in names}
        single = plans.drop_duplicates(names).assign(**ones)
        codes = self._broken(single)
        broken = {
            tuple(row): code for row, code in zip(single[names].itertuples(index=False), codes, strict=True)
        }
        first = np.array([broken[tuple(row)] for row in plans[names].itertuples(index=False)])
        left = plans[first == ""]
        second = self._broken(left)
        for kept, found in ((plans, first), (left, second)):
            for code, copies in zip(found, self._copies(kept), strict=True):
                if code:
                    infeasible[str(code)] += int(copies)
        return left[second == ""]

    def _broken(self, plans: pd.DataFrame) -> Array:
        """The code of the first rule that each plan breaks; empty where it keeps all."""
        return np.array(self.worked_out("rules", plans)["code"], object)

    def rules(self, plans: pd.DataFrame) -> pd.DataFrame:
        """The code of the first rule that each plan breaks, as a column; empty where it keeps all.

        What `launch` refuses by itself is the last of the rules.
        """
        checks = self.evaluator.plan_checks
        results = self.evaluator.run(plans, {check.code: check.result for check in checks})
        codes = np.full(len(plans), "", object)
        if self.launched:
            told = accepted(plans, self.evaluator.model, self.evaluator.library)
            codes[~told] = NO_LAUNCH_LINE
        for check in reversed(checks):
            codes[results[check.code] <= 0] = check.code
        return pd.DataFrame({"code": codes}, index=plans.index)

    def codes(self, plans: pd.DataFrame) -> Array:
        """The first rule that each plan breaks, or that memory does not suffice; empty where it can be."""
        broken = self._broken(plans)
        kept = np.flatnonzero(broken == "")
        fitting, _ = Search._by_memory(self, plans.iloc[kept])
        broken[kept[~plans.index[kept].isin(fitting.index)]] = INSUFFICIENT
        return broken

    def _with_replicas(self, plans: pd.DataFrame) -> pd.DataFrame:
        counts = [self._replicas(int(ranks)) for ranks in _ranks(plans)]
        repeated = plans.loc[plans.index.repeat([len(of) for of in counts])].reset_index(drop=True)
        copies = [count for of in counts for count in of]
        both = {"dp": copies} | ({f"{DECODE}dp": copies} if f"{DECODE}dp" in plans else {})
        return repeated.assign(**both)

    def _by_memory(self, plans: pd.DataFrame) -> tuple[pd.DataFrame, Counter[str]]:
        """Plans in whose memory one request has room, with the room of a replica."""
        found = self.worked_out("memory_of", plans)
        fits = found["reason"].isin((FITS, WITH_OFFLOAD)).to_numpy(bool)
        codes = Counter(reason.upper() for reason in found["reason"][~fits])
        return plans.assign(room=found["room"])[fits], codes

    def memory_of(self, plans: pd.DataFrame) -> pd.DataFrame:
        """Whether one request has room in plans, and how many have in a replica: columns reason, room."""
        graph = self.evaluator.graph
        held = plans.assign(concurrency=_running(plans)) if self.searches_load else plans
        room = KV_CAPACITY_SEQUENCES.worked_out(graph.figures)
        wanted: dict[str, Node] = {"reason": graph.rows["checks.reason"], "room": room}
        wanted |= {"tokens": graph.decode_workers.rows["startup.kv_tokens"]} if self.space.contexts else {}
        values = self.evaluator.run(held, wanted)
        rooms = np.minimum(np.maximum(1, np.floor(numbers(values["room"]))), MOST_IN_FLIGHT)
        reasons = np.array([str(reason) for reason in values["reason"]], dtype=object)
        if self.space.contexts:
            short = ~(numbers(values["tokens"]) >= plans[CONTEXT].to_numpy())
            reasons[short & np.isin(reasons, (FITS, WITH_OFFLOAD))] = TOO_LONG
        return pd.DataFrame({"reason": reasons, "room": rooms}, index=plans.index)

    def _at(self, plans: pd.DataFrame) -> pd.DataFrame:
        """Plans with their measures at a load, and the first limit that each misses."""
        found = self.worked_out("measured", plans)
        return plans.assign(**{name: found[name] for name in found})

    @cached_property
    def _judged(self) -> dict[str, Node]:
        """What plans are judged by: measures by key, the score, and the checks of the load by code."""
        wanted: dict[str, Node] = {of.key: self.evaluator.measures[of.key] for of in self.shown}
        wanted["score"] = self.objective.score(wanted)
        checks = self.evaluator.graph.checks.checks
        return wanted | {check.code: check.result for check in checks if check.reason == OVERLOADED}

    def measured(self, plans: pd.DataFrame) -> pd.DataFrame:
        """Measures of plans at a load, the score, the first limit that each misses and by how much."""
        values = self.evaluator.run(plans, self._judged)
        shown = {of.key: numbers(values[of.key]) for of in self.shown}
        done = pd.DataFrame(shown | {"score": numbers(values["score"])}, index=plans.index)
        code = np.full(len(plans), "", dtype=object)
        for limit in reversed(self.limits):
            found = done[limit.measure.key].to_numpy()
            code[~limit.kept(found)] = limit.code
            code[~np.isfinite(found)] = NOT_KNOWN_CODE
        for check in self.evaluator.graph.checks.checks:
            if check.reason == OVERLOADED:
                code[values[check.code] <= 0] = check.code
        beyond = [limit.excess(done[limit.measure.key].to_numpy()) for limit in self.limits]
        return done.assign(code=code, beyond=np.max(beyond, axis=0) if beyond else 0.0)

    def _with_load(self, plans: pd.DataFrame) -> pd.DataFrame:
        """Each plan at the number of requests in flight that is best within the limits.

        Times grow with the requests in flight, and so does throughput, up to the room in memory; so the most
        that the limits allow is found by halving. Where what is wanted loses by more requests, it is one
        request a replica, or the fewest that the limits allow; where a part of it gains and a part loses, it
        lies between.
        """
        if self._wanted == {-1, 1}:
            return self._between(plans)
        single = self._at(plans.assign(concurrency=_running(plans)))
        full = self._at(plans.assign(concurrency=_running(plans) * plans["room"].to_numpy(int)))
        if self._wanted == {-1}:
            return self._fewest(plans, single, full)
        return self._past_peak(plans, self._most(plans, single, full))

    def _past_peak(self, plans: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
        """Plans that one request less a replica makes better, at their best load.

        Long prompts hold up decode steps so much that more requests may bring less.
        """
        loads = best["concurrency"].to_numpy(int) // _running(best)
        where = np.flatnonzero((loads > 1) & (best["code"] == "").to_numpy())
        part = plans.iloc[where]
        less = self._at(part.assign(concurrency=_running(part) * (loads[where] - 1)))
        was = best.iloc[where]
        gained = was["score"].to_numpy() - less["score"].to_numpy() > _EQUAL
        falling = where[gained & self._better(less, was)]
        if len(falling):
            best.iloc[falling] = self._between(plans.iloc[falling])[best.columns]
        return best

    @cached_property
    def _wanted(self) -> set[int]:
        """What more requests in flight do to what is wanted: 1 better, -1 worse."""
        peaks = [limit.measure for limit in self.limits if limit.measure.key == _PEAKS]
        return {gain for of in (*self.objective.measures, *peaks) for gain in _gains(of)}

    def _doubled(self, plans: pd.DataFrame) -> Iterator[tuple[Array, Array, pd.DataFrame]]:
        """Plans at one request a replica, at each doubling of that, and at the most that memory holds: which
        plans, how many requests, and what they reach. A plan is left out behind the first load that an upper
        limit forbids.
        """
        room = plans["room"].to_numpy(int)
        allowed = np.ones(len(plans), bool)
        for load in [*(1 << place for place in range(int(room.max(initial=1)).bit_length())), 0]:
            where = np.flatnonzero((room > load) & allowed)
            if len(where):
                loads = np.where(load > 0, load, room[where])
                part = plans.iloc[where]
                done = self._at(part.assign(concurrency=_running(part) * loads))
                allowed[where] = self._upper_kept(done)
                yield where, loads, done

    def _between(self, plans: pd.DataFrame) -> pd.DataFrame:
        """The requests in flight of each plan that are best where some of what is wanted gains by more of
        them, and some loses: it has one best load, beside which it is looked for in ever smaller steps.
        """
        best = self._at(plans.assign(concurrency=_running(plans)))
        low, at, high = (np.ones(len(plans), int) for _ in range(3))
        for where, loads, tried in self._doubled(plans):
            better = self._better(tried, best.iloc[where])
            best.iloc[where[better]] = tried[better][best.columns]
            at[where[better]] = loads[better]
        room = plans["room"].to_numpy(int)
        low, high = np.maximum(1, at // 2), np.minimum(room, at * 2)
        while (open_ := high - low > 1).any():
            self.step(f"{int(open_.sum()):,} plans: the best number of requests")
            where = np.flatnonzero(open_)
            part = plans.iloc[where]
            step = -(-(high - low)[where] // _STEPS)
            steps = [np.minimum(low[where] + count * step, high[where]) for count in range(_STEPS + 1)]
            every = [part.assign(concurrency=_running(part) * loads) for loads in steps]
            done = self._at(pd.concat(every, ignore_index=True))
            for count, loads in enumerate(steps):
                tried = done.iloc[count * len(part) : (count + 1) * len(part)]
                better = self._better(tried, best.iloc[where])
                best.iloc[where[better]] = tried[better][best.columns]
                at[where[better]] = loads[better]
            ended = step == 1
            low[where] = np.where(ended, at[where], np.maximum(low[where], at[where] - step))
            high[where] = np.where(ended, at[where], np.minimum(high[where], at[where] + step))
        return best

    def _better(self, tried: pd.DataFrame, best: pd.DataFrame) -> Array:
        """Whether a load is better than the best so far: less beyond the limits, then by what is wanted."""
        beyond, was_beyond = self._beyond(tried), self._beyond(best)
        less = tried["score"].fillna(np.inf).to_numpy() < best["score"].fillna(np.inf).to_numpy()
        return np.asarray((beyond < was_beyond) | ((beyond == was_beyond) & less))

    def _beyond(self, done: pd.DataFrame) -> Array:
        """How far plans are beyond their limits; infinite where nobody knows."""
        beyond = np.zeros(len(done))
        for limit in self.limits:
            beyond += limit.excess(done[limit.measure.key].to_numpy())
        return np.where(np.isfinite(beyond), beyond, np.inf)

    def _most(self, plans: pd.DataFrame, single: pd.DataFrame, full: pd.DataFrame) -> pd.DataFrame:
        """The most requests in flight of each plan within the upper limits.

        A plan whose best possible result is behind that of the best plans is not looked at further: it is
        told at the most requests that were found to be allowed.
        """
        low, high = np.ones(len(plans), int), plans["room"].to_numpy(int)
        best = single.copy()
        done = self._upper_kept(full)
        best[done] = full[done]
        low[done] = high[done]
        hopeless = ~self._upper_kept(single)
        high[hopeless] = 1
        bound = full
        while True:
            open_ = (high - low > 1) & self._may_win(best, bound, plans)
            if not open_.any():
                return best
            self.step(f"{int(open_.sum()):,} plans: the most requests within the limits")
            middle = (low + high) // 2
            part = plans[open_]
            tried = self._at(part.assign(concurrency=_running(part) * middle[open_]))
            kept = self._upper_kept(tried)
            where = np.flatnonzero(open_)
            low[where[kept]], high[where[~kept]] = middle[where[kept]], middle[where[~kept]]
            best.iloc[where[kept]] = tried[kept][best.columns]
            bound = bound.copy()
            bound.iloc[where[~kept]] = tried[~kept][bound.columns]

    def _fewest(self, plans: pd.DataFrame, single: pd.DataFrame, full: pd.DataFrame) -> pd.DataFrame:
        """The fewest requests in flight of each plan within the lower limits, such as of throughput."""
        low, high = np.ones(len(plans), int), plans["room"].to_numpy(int)
        best = full.copy()
        done = self._lower_kept(single)
        best[done] = single[done]
        high[done] = 1
        low[~self._lower_kept(full)] = high[~self._lower_kept(full)]
        while ((high - low) > 1).any():
            open_ = high - low > 1
            middle = (low + high) // 2
            part = plans[open_]
            tried = self._at(part.assign(concurrency=_running(part) * middle[open_]))
            kept = self._lower_kept(tried)
            where = np.flatnonzero(open_)
            high[where[kept]], low[where[~kept]] = middle[where[kept]], middle[where[~kept]]
            best.iloc[where[kept]] = tried[kept][best.columns]
        return best

    def _upper_kept(self, done: pd.DataFrame) -> Array:
        return self._kept(done, [limit for limit in self.limits if _grows(limit)])

    def _lower_kept(self, done: pd.DataFrame) -> Array:
        return self._kept(done, [limit for limit in self.limits if not _grows(limit)])

    def _kept(self, done: pd.DataFrame, limits: Sequence[Limit]) -> Array:
        kept = np.ones(len(done), bool)
        for limit in limits:
            kept &= limit.kept(done[limit.measure.key].to_numpy())
        return kept

    def _may_win(self, best: pd.DataFrame, bound: pd.DataFrame, plans: pd.DataFrame) -> Array:
        """Whether a plan may still be among the best, or the best of its accelerator.

        Its best possible result is that at the fewest requests which a limit forbids.
        """
        reached = np.where(self._kept(best, self.limits), best["score"].fillna(np.inf), np.inf)
        possible = bound["score"].fillna(np.inf).to_numpy()
        worst = np.sort(reached)[min(KEPT, len(reached)) - 1]
        of_chip = pd.Series(reached).groupby(plans["accelerator"].to_numpy()).transform("min").to_numpy()
        return np.asarray((possible <= worst) | (possible <= of_chip))

    def _ranked(self, done: pd.DataFrame, tried: int, infeasible: Counter[str]) -> Found:
        """Plans with their ranks; equal ones by fewer accelerators, then in the order of the space."""
        done = done.reset_index(drop=True)
        done[USED] = _accelerators(done)
        code = done["code"].to_numpy(object).copy()
        code[(code == "") & ~np.isfinite(done["score"])] = NOT_KNOWN_CODE
        done["code"] = code
        order = np.lexsort((done[USED], np.round(done["score"], 9), code != ""))
        rank = np.zeros(len(done), int)
        good = int((code == "").sum())
        rank[order[:good]] = np.arange(1, good + 1)
        missed = Counter(str(one) for one in code if one)
        return Found(done.assign(rank=rank), tried, dict(infeasible + missed))


def _grows(limit: Limit) -> bool:
    """Whether a limit that is missed stays so with more requests: of times, memory, cost per hour."""
    return 1 not in _gains(limit.measure)


def _gains(of: Measure) -> set[int]:
    """What more requests in flight do to a measure: 1 better, -1 worse; nothing where it stays."""
    if of.key == _PEAKS:
        return {1, -1}
    if of.key in _STAYS:
        return set()
    return {1} if of.metric.unit in _GAINS else {-1}


def _front(points: pd.DataFrame) -> pd.DataFrame:
    """The points that no other beats in speed and throughput at once."""
    from mantile.estimates.sweep import pareto

    return pareto(points.reset_index(drop=True), FRONT)


def _ranks(plans: pd.DataFrame) -> Array:
    """Accelerators of a replica."""
    return np.asarray(plans[["tp", "pp", "cp", "attention_dp"]].prod(axis=1), int)


def _accelerators(plans: pd.DataFrame) -> Array:
    """Accelerators of a deployment."""
    first = np.asarray(_ranks(plans) * np.asarray(plans["dp"], int))
    if "serving" not in plans:
        return first
    degrees = [f"{DECODE}{name}" for name in ("tp", "pp", "cp", "attention_dp", "dp")]
    last = np.asarray(plans[degrees].prod(axis=1), int)
    return np.asarray(first + np.where(plans["serving"] == APART, last, 0))


def _running(plans: pd.DataFrame) -> Array:
    """Workers that decode, each with requests of its own."""
    return np.asarray(plans[f"{DECODE}dp" if f"{DECODE}dp" in plans else "dp"], int)


def measures_of(row: Mapping[str, Any], shown: Sequence[Measure]) -> dict[str, float | None]:
    """Measures of a plan by key; None where nobody knows one."""
    return {of.key: float(row[of.key]) if np.isfinite(row[of.key]) else None for of in shown}
