"""The largest model that fits accelerators and keeps the limits: the objective that chooses among models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mantile.equations.display import number_in
from mantile.equations.metrics import INTERACTIVITY
from mantile.library.brief import Brief
from mantile.library.errors import InputError
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library
from mantile.library.scenario import merge_fields
from mantile.search.chips import share
from mantile.search.hardware_first import BITS_OF_A_BYTE, largest_first
from mantile.search.objective import LARGEST, Limit, limit
from mantile.search.optimize import NoPlan, Optimum, solve
from mantile.search.question import ALL, USUAL_MOST, Question, ask
from mantile.search.search import silent
from mantile.search.space import published

SPEED = "interactivity"
"""What decides between plans of a model, and between models with as many parameters."""
MODELS = 3
"""Models of the answer."""


@dataclass(frozen=True)
class Fitting:
    """A model that fits and keeps the limits.

    Args:
        parameters: of the model, all of them.
        best: its fastest plan, as `optimize` finds it.
    """

    parameters: int
    best: Optimum

    @property
    def speed(self) -> float:
        """Output tokens per second of one user."""
        assert self.best.winner is not None
        return float(self.best.winner.results[INTERACTIVITY.key] or 0)

    def to_dict(self) -> dict[str, Any]:
        """A model of the answer, as --json prints it."""
        winner = self.best.winner
        assert winner is not None
        return {
            "model": self.best.question.model.id,
            "parameters": self.parameters,
            "name": winner.name,
            "plan": winner.plan,
            "metrics": winner.results,
        }


@dataclass(frozen=True)
class TooLarge:
    """A larger model that is not the answer, and why."""

    model: str
    parameters: int
    why: str


@dataclass(frozen=True, repr=False)
class LargestModel(Brief):
    """The answer: models that fit and keep the limits, the largest first.

    Args:
        models: with their plans; those with as many parameters by speed.
        too_large: larger ones than the last of them that do not fit or miss a limit, the largest first.
        looked_at: models that were looked at.
    """

    models: tuple[Fitting, ...]
    too_large: tuple[TooLarge, ...]
    looked_at: int

    @property
    def winner(self) -> Fitting | None:
        """The largest model; None where none fits and keeps the limits."""
        return self.models[0] if self.models else None

    @property
    def words(self) -> str:
        """The answer in one sentence."""
        if self.winner is None:
            last = f"; the smallest is {self.too_large[-1].model}: {self.too_large[-1].why}"
            return (
                f"None of {self.looked_at} models fits and keeps the limits{last if self.too_large else ''}"
            )
        assert self.winner.best.winner is not None
        model = self.winner.best.question.model.name
        size = f"{self.winner.parameters / 1e9:,.4g} billion parameters"
        return f"The largest model is {model}, {size}: {self.winner.best.winner.name}"

    def to_dict(self) -> dict[str, Any]:
        """What `mantile optimize all --objective largest-model --json` prints."""
        return {
            "objective": LARGEST,
            "winner": None if self.winner is None else self.winner.to_dict(),
            "models": [one.to_dict() for one in self.models],
            "too_large": [
                {"model": one.model, "parameters": one.parameters, "why": one.why} for one in self.too_large
            ],
            "looked_at": self.looked_at,
            **(self.models[0].best.question.bounds() if self.models else {}),
        }


def find_largest(
    ask_for: Callable[[str], Question],
    models: Sequence[str] | None = None,
    step: Callable[[str], None] = silent,
) -> LargestModel:
    """The largest models that fit and keep the limits, each in its fastest plan.

    Args:
        ask_for: the question of a model, by its id.
        models: ids that are looked at; None: all of the library.
        step: is told which model is looked at.

    Raises:
        InputError: as `optimize`; where nobody names an accelerator.
    """
    found: list[Fitting] = []
    lost: list[TooLarge] = []
    names = [load_model(name).id for name in models] if models else model_ids()
    for model, total, least in largest_first(names):
        if len(found) >= MODELS and total < found[-1].parameters:
            break
        step(model.name)
        question = ask_for(model.id)
        if not question.asked:
            raise InputError(
                f"{question.name}: accelerator: {LARGEST} asks what fits on an accelerator; expected an id, "
                "such as h100-sxm (--gpu h100-sxm)"
            )
        best, why = _solved(question, least)
        if best is None:
            lost.append(TooLarge(model.id, total, why))
        else:
            found.append(Fitting(total, best))
    found.sort(key=lambda one: (-one.parameters, -one.speed))
    return LargestModel(tuple(found), tuple(lost), len(found) + len(lost))


def _solved(question: Question, least: int) -> tuple[Optimum | None, str]:
    """The best plan of a model; None, and why not.

    Args:
        least: parameters that lie on an accelerator in any case.
    """
    missing = _missing(question, least)
    if missing:
        return None, missing
    try:
        best = solve(question)
    except NoPlan as error:
        return None, f"does not fit ({error.reasons})" if error.reasons else "does not fit"
    miss = best.nearest_miss()
    if miss is not None:
        return None, f"{miss[1].words} is missed by {share(miss[2])}"
    return (best, "") if best.has_winner else (None, "its speed is not known")


def _missing(question: Question, least: int) -> str:
    """That the memory has no room for the weights in the smallest published data type; empty where it may."""
    library = question.library
    chips = [library.accelerator(chip) for chip in question.asked]
    names = question.over.get("framework", (question.fields.get("framework", ALL),))
    named = {str(name) for name in names}
    weights = question.over.get("weights_dtype") or (
        (question.fields["weights_dtype"],) if question.fields.get("weights_dtype") else ()
    )
    kinds = set(map(str, weights)) or {
        kind
        for chip in chips
        for framework in library.frameworks
        if ALL in named or framework.id in {library.framework(name).id for name in named}
        for kind in published(question.model, framework, chip)
    }
    bits = min(library.datatype(kind, "weights").bits for kind in kinds)
    room = max((chip.memory_capacity.value or 0.0) for chip in chips) + (question.host_memory or 0.0)
    need = number_in(least * bits / BITS_OF_A_BYTE, "B", "GiB")
    if need <= room * question.most:
        return ""
    memory = f"{room * question.most:,.0f} GiB of memory"
    return f"does not fit: {need:,.0f} GiB of weights at {bits:g} bits, {memory}"


def largest_model(
    limits: Mapping[str, float] | Iterable[Limit] = (),
    gpus_max: int = USUAL_MOST,
    over: Mapping[str, Iterable[Any]] | None = None,
    models: Sequence[str] | None = None,
    search: Sequence[str] = (),
    library: Library | None = None,
    name: str = LARGEST,
    host_memory: float = 0.0,
    step: Callable[[str], None] = silent,
    default_limits: bool = True,
    **fields: Any,
) -> LargestModel:
    """The largest model of the library that fits accelerators in a published data type and keeps the limits.

    Args:
        limits, gpus_max, over, search, library, name, step, default_limits: as for `optimize`.
        models: ids that are looked at; None: all of the library.
        host_memory: GB of host memory for each accelerator in which weights may lie; 0: none.
        fields: of a scenario; the accelerator is one of them, or stands in `over`.

    Raises:
        InputError: naming a field, measure or value that is wrong.

    Example:
        found = mantile.largest_model(
            accelerator="rtx-4090", gpus_max=2, input_tokens=2000, output_tokens=300, concurrency=4
        )
        found.winner.best.question.model.id, found.words
    """
    if "model" in fields:
        raise InputError(f"{name}: model: {LARGEST} chooses it; expected models, or no model for all")
    asked = limits.items() if isinstance(limits, Mapping) else ()
    bounds = [limit(key, float(bound), f"{name}: limits") for key, bound in asked]
    bounds += [] if isinstance(limits, Mapping) else [*limits]
    stated = merge_fields({}, {key: value for key, value in fields.items() if value is not None}, name)

    def ask_for(model: str) -> Question:
        return ask(
            stated | {"model": model},
            SPEED,
            bounds,
            gpus_max,
            over or {},
            (),
            search,
            library=library,
            name=name,
            host_memory=host_memory,
            default_limits=default_limits,
        )

    return find_largest(ask_for, models, step)
