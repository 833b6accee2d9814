"""The block `decision:` of a scenario: a choice among plans, and what a search found."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from mantile.library.documents import Strict
from mantile.library.fields import Name, Text

MOST_PLANS = 24
"""Plans of a decision at most; other scenarios have seven variants."""
_Number = Annotated[int, Field(ge=1, le=MOST_PLANS)]


class AskedLimit(Strict):
    """A limit that plans of a decision keep: of a measure, in SI units; at most where less is better."""

    measure: Text
    bound: Annotated[float, Field(gt=0, le=1e15, allow_inf_nan=False)]


class Tried(Strict):
    """A plan that a search looked at.

    Args:
        speed: output tokens per second that one user sees.
        throughput: output tokens per second and accelerator.
        front: whether no other plan beats it in both.
    """

    accelerator: Name
    plan: Text
    speed: Annotated[float, Field(ge=0, le=1e12)]
    throughput: Annotated[float, Field(ge=0, le=1e12)]
    front: bool = False


class Turned(Strict):
    """What a factor of a plan would have to be for it to win.

    Args:
        plan: its number.
        factor: id of the figure; `now` and `due` in its unit.
    """

    plan: _Number
    factor: Text
    now: Annotated[float, Field(ge=0, le=1e6)]
    due: Annotated[float, Field(ge=0, le=1e6)]


class Decision(Strict):
    """A choice among plans: what is wanted, and what a search found. The plans are the variants.

    Args:
        objective: a measure; `weights` by measure where several count.
        limits: that a plan keeps.
        take: number of the plan that the base scenario is; `pair` of two that are compared.
        plans: how many were looked at, by `infeasible` how many broke which rule or missed which limit, and
            some of them for a picture.
        turned: for some plans the factor that would have to change by least for it to win.
        searched: what was looked at, in words; `made_by` the program that did.
    """

    objective: Text
    weights: dict[Text, Annotated[float, Field(gt=0, le=1e6)]] = Field(default_factory=dict, max_length=8)
    limits: Annotated[tuple[AskedLimit, ...], Field(max_length=24)] = ()
    take: _Number = 1
    pair: tuple[_Number, _Number] | None = None
    plans: Annotated[int, Field(ge=0)] = 0
    infeasible: dict[Text, Annotated[int, Field(ge=0)]] = Field(default_factory=dict, max_length=80)
    shown: Annotated[tuple[Tried, ...], Field(max_length=400)] = ()
    turned: Annotated[tuple[Turned, ...], Field(max_length=MOST_PLANS)] = ()
    searched: Annotated[str, StringConstraints(max_length=400)] = ""
    made_by: Text = "nobody"
