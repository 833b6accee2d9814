"""FFNs over other ranks than attention: which engines have a flag for it, and the best plan without one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from mantile.search.launchable import accepted
from mantile.search.question import Question, plan_name, plan_of
from mantile.search.search import Found, Search, silent
from mantile.search.space import FFN_TP, PER_LAYER_TYPE


def notes_of(question: Question, search: Search, found: Found) -> tuple[str, ...]:
    """Sentences about FFNs over other ranks than attention; none where nobody asks.

    Example:
        notes_of(question, search, found)
        # ("Flags of SGLang say another TP of FFNs for MiMo-V2-Flash: FFN TP1",)
    """
    if PER_LAYER_TYPE not in question.searched:
        return ()
    if not search.space.ffns:
        return (f"{question.model.name} has no dense FFN and no shared expert: no TP of FFNs to choose",)
    plans = search.space.plans()
    plans = plans[plans[FFN_TP] > 0].reset_index(drop=True)
    names = {name: question.library.framework(name).name for name in search.space.chosen["framework"]}
    said = plans[accepted(plans, question.model, question.library)] if len(plans) else plans
    if len(said):
        return tuple(_said(said, names, question.model.name))
    engines = ", ".join(names.values())
    told = f"No flag of {engines} says another TP of FFNs for {question.model.name}"
    return (f"{told}; {_best(question, search, found)}",)


def _said(said: pd.DataFrame, names: dict[str, str], model: str) -> Iterator[str]:
    for framework, of in said.groupby("framework", sort=False):
        degrees = ", ".join(f"FFN TP{degree}" for degree in sorted(of[FFN_TP].unique()))
        yield f"Flags of {names[str(framework)]} say another TP of FFNs for {model}: {degrees}"


def _best(question: Question, search: Search, found: Found) -> str:
    """The best plan that has no launch line, against the best that has one."""
    others = tuple(degree for degree in search.space.ffns if degree)
    space = replace(search.space, ffns=others, apart=False)
    ranked = replace(search, space=space, launched=False, step=silent, helped=None).run().ranked
    if not len(ranked):
        return "no such plan fits and keeps the limits"
    first, own = ranked.iloc[0], found.ranked
    name = plan_name(plan_of(first.to_dict()), question.model, question.library)
    words = f"{name} has no launch line and no rank"
    wanted = question.objective.first
    if not len(own) or len(question.objective.terms) > 1:
        return words
    by = float(first[wanted.key]) / float(own.iloc[0][wanted.key]) - 1
    if not np.isfinite(by) or abs(by) < 5e-4:
        return f"{words}; {wanted.metric.label} would be the same"
    return f"{words}; {wanted.metric.label} would be {abs(by):.1%} {'less' if by < 0 else 'more'}"
