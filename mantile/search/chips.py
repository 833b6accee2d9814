"""What becomes of each accelerator: its best plan, or why it has none, and whether more of them would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd

from mantile.equations.metrics import ACCELERATORS, USD_PER_HOUR
from mantile.equations.reasons import REASONS
from mantile.library.errors import InputError
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.search.objective import Limit, read_objective
from mantile.search.question import Question, at_most, plan_of, prepared
from mantile.search.search import INSUFFICIENT, NOT_KNOWN_CODE, USED, Search

MOST_LOOKED_AT = 1024
"""Accelerators, where more of them are looked for."""
NOT_OF_MAKERS = "NOT_OF_MAKERS"
_FURTHER = 64  # accelerators that are looked at where fewer do not do, at least

Best = Callable[[pd.DataFrame], "pd.Series[Any]"]
"""The plan that stands for an accelerator, of those that keep every limit."""


@dataclass(frozen=True)
class ChipAnswer:
    """What becomes of one accelerator.

    Args:
        accelerators: of its best plan; None where no plan keeps every limit.
        usd_per_hour: of that plan; None where nobody knows it.
        plan: the best; where none keeps the limits that which comes nearest, or None.
        code: why none keeps them; empty where one does.
        beyond: by how much the nearest misses the limit of the code, as a share; None of other codes.
        needs: how many of it keep every limit, where no plan on as many as are allowed does; None where that
            is not so, or nobody looked.
        why: why it has no plan or no place where money ranks, in words; empty where it has both.
    """

    accelerator: str
    name: str
    accelerators: int | None
    usd_per_hour: float | None
    plan: Mapping[str, Any] | None
    code: str
    beyond: float | None
    needs: int | None = None
    why: str = ""

    def to_dict(self) -> dict[str, Any]:
        """An accelerator of `asked_accelerators` in --json."""
        return {
            "plan": None if self.code else self.plan,
            "accelerators": self.accelerators,
            "why": self.why,
            "code": self.code,
            "nearest": self.plan if self.code else None,
            "beyond": self.beyond,
            "gpus_needed": self.needs,
        }


def chips_of(
    question: Question, names: Sequence[str], search: Search, plans: pd.DataFrame, best: Best
) -> tuple[ChipAnswer, ...]:
    """What becomes of accelerators, in their order.

    Of those that somebody asked for by name more are looked at too, where no plan keeps the limits.

    Args:
        names: ids of accelerators.
        search: that found the plans.
    """
    chips = [*_chips(question, tuple(dict.fromkeys(names)), search, plans, best)]
    lost = [
        chip.accelerator
        for chip in chips
        if chip.accelerator in question.asked and chip.code not in ("", NOT_KNOWN_CODE)
    ]
    most, needs = _needs(question, lost)
    return tuple(
        replace(chip, needs=needs.get(chip.accelerator), why=f"{chip.why}{_more(chip, needs, most)}")
        if chip.accelerator in lost
        else chip
        for chip in chips
    )


def _chips(
    question: Question, names: Sequence[str], search: Search, plans: pd.DataFrame, best: Best
) -> Iterator[ChipAnswer]:
    known = search.space.chosen["accelerator"]
    of_chip = dict(iter(plans.groupby("accelerator", sort=False))) if len(plans) else {}
    codes = _why(search, [chip for chip in names if chip in known and chip not in of_chip])
    for chip in names:
        rows, name = of_chip.get(chip), question.library.accelerator(chip).name
        kept = None if rows is None else rows[rows["code"] == ""]
        if kept is not None and len(kept):
            row = best(kept)
            usd = _known(row.get(USD_PER_HOUR.column, np.nan))
            told = "" if USD_PER_HOUR.column not in row or usd is not None else no_price(question, chip)
            yield ChipAnswer(chip, name, int(row[USED]), usd, plan_of(row.to_dict()), "", None, why=told)
            continue
        plan, code, beyond, told = None, codes.get(chip, NOT_OF_MAKERS), None, ""
        if rows is not None:
            unknown = rows[rows["code"] == NOT_KNOWN_CODE]
            miss = nearest(rows[rows["code"].str.startswith("LIMIT_")], question.limits)
            if len(unknown):  # keeps what can be told
                plan, code = plan_of(unknown.iloc[0].to_dict()), NOT_KNOWN_CODE
                told = _not_known(question, search, unknown.iloc[0], chip)
            elif miss is not None:
                plan, code, beyond = plan_of(miss[0]), miss[1].code, miss[2]
                told = f"{miss[1].words} is missed by {share(beyond)} ({at_most(question.most)})"
            else:
                code = str(rows["code"].value_counts().index[0])
        told = told or f"{code}: {meaning_of(code)} ({at_most(question.most)})"
        yield ChipAnswer(chip, name, None, None, plan, code, beyond, why=told)


def _more(chip: ChipAnswer, needs: Mapping[str, int], most: int | None) -> str:
    """Whether more of an accelerator keep every limit, as far as somebody looked."""
    if chip.accelerator in needs:
        return f"; {needs[chip.accelerator]} keep every limit"
    return "" if most is None else f"; up to {most} do not keep every limit"


def share(value: float) -> str:
    """By how much a limit is missed."""
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}" if value >= 0.001 else "less than 0.1%"


def no_price(question: Question, chip: str) -> str:
    """That nobody states the price of an accelerator on the basis asked for, and on which somebody does."""
    basis = str(question.fields.get("price_basis") or SCENARIO_FIELDS["price_basis"].default)
    found = question.library.accelerator(chip)
    prices = question.library.price(chip)
    ways = [
        f"{known.capitalize()} price {fact.value:,.2f} USD/h: --price-basis {known}"
        if known != "owned"
        else f"Purchase price {fact.value:,.0f} USD: --price-basis owned"
        for known, fact in ({} if prices is None else prices.bases).items()
        if known != basis
    ]
    ways = ways or ([f"State one: --price {chip}=USD"] if basis != "owned" else [])
    return ". ".join([f"No {basis} price for {found.name}, so no rank", *ways])


def _not_known(question: Question, search: Search, row: pd.Series[Any], chip: str) -> str:
    """What nobody knows of a plan that has no rank."""
    unknown = [of for of in search.shown if not np.isfinite(row[of.key])]
    if any("USD" in of.metric.unit for of in unknown):
        return no_price(question, chip)
    what = " and ".join(of.metric.label for of in unknown) or "What is wanted"
    return f"{what} is not known, so no rank"


def meaning_of(code: str) -> str:
    """What a code means, in words."""
    reason = REASONS.get(code.removeprefix("DECODE_"))
    if reason is not None:
        return reason.meaning
    return {
        NOT_OF_MAKERS: "no accelerator of the makers that may be chosen",
        NOT_KNOWN_CODE: "what is wanted or limited is not known, such as a price: no rank",
        INSUFFICIENT: "weights, or the cache of one request, do not fit",
        "NO_LAUNCH_LINE": "no flag of the engine says such a plan: `mantile launch` refuses it",
    }.get(code, "the limit is missed" if code.startswith("LIMIT_") else "the plan cannot be")


def nearest(plans: pd.DataFrame, limits: Sequence[Limit]) -> tuple[dict[str, Any], Limit, float] | None:
    """The plan whose worst miss is least, that limit, and the miss as a share; fewer accelerators first.

    None where nobody knows a miss.
    """
    if not len(plans) or not limits:
        return None
    misses = np.array([one.excess(plans[one.measure.key].to_numpy(float)) for one in limits])
    worst = np.where(np.isfinite(misses).all(axis=0), misses.max(axis=0), np.inf)
    place = int(np.lexsort((plans[USED].to_numpy(float), worst))[0])
    if not np.isfinite(worst[place]):
        return None
    row = cast("dict[str, Any]", plans.iloc[place].to_dict())
    return row, limits[int(misses[:, place].argmax())], float(worst[place])


def _why(search: Search, chips: Sequence[str]) -> dict[str, str]:
    """Why nothing runs on some accelerators: too little memory where any plan keeps the rules, else the rule
    that most plans break; that a framework is not made for the chip only where nothing else is against it.
    """
    if not chips:
        return {}
    space = replace(search.space, chosen={**search.space.chosen, "accelerator": tuple(chips)})
    plans = search.replicas_of(space)
    codes = pd.Series(search.codes(plans), index=plans["accelerator"].to_numpy())
    told: dict[str, str] = {}
    for chip in chips:
        counts = codes.loc[[chip]].value_counts() if chip in codes.index else pd.Series({"": 0})
        if INSUFFICIENT in counts.index or "" in counts.index:
            told[chip] = INSUFFICIENT
        else:
            others = counts.drop(index="FRAMEWORK_UNSUPPORTED", errors="ignore")
            told[chip] = str((others if len(others) else counts).index[0])
    return told


def _needs(question: Question, chips: Sequence[str]) -> tuple[int | None, dict[str, int]]:
    """Up to how many accelerators are looked at, and the fewest with which each keeps every limit.

    Prefill and decode are on the same workers there, and nothing lies on the host.
    """
    most = min(MOST_LOOKED_AT, max(_FURTHER, 2 * question.most))
    if not chips or most <= question.most:
        return None, {}
    asked = replace(
        question,
        fields={key: value for key, value in question.fields.items() if key != "accelerator"},
        over={**question.over, "accelerator": tuple(chips)},
        most=most,
        objective=read_objective(ACCELERATORS.column),
        searched=tuple(one for one in question.searched if one in ("cp",)),
        host_memory=0.0,
    )
    try:
        space, _, evaluator = prepared(asked)
        plans = Search(evaluator, space, asked.objective, asked.limits, not asked.load).run().plans
    except InputError:
        return None, {}  # more plans than are looked at
    least = plans[plans["code"] == ""].groupby("accelerator")[USED].min() if len(plans) else {}
    return most, {str(chip): int(count) for chip, count in least.items()}


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None
