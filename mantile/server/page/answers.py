"""The answer to what a page was asked: the estimate, and why its plan was chosen. The last ones are kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from mantile.answers import estimate as answers
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.results import is_possible
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, parse_scenario
from mantile.library.scenario_fields import MOST_RANKS, MOST_STAGES, SCENARIO_FIELDS
from mantile.search.auto import chosen
from mantile.search.optimize import NoPlan, Optimum
from mantile.server.documents import fields_of
from mantile.server.page.state import AUTO, DEGREES, GPUS, START, State, unpacked
from mantile.workbook.bundle import Bundle

NAME = "page"
"""Stands for the scenario in errors."""
KEPT = 64  # answers
HUB: ContextVar[bool] = ContextVar("hub", default=False)
"""Whether models may be read from the Hugging Face hub: as the server that is asked was told at its start."""
_FIELD = re.compile(
    r"(?:field |^)(?:decode\.)?(overrides\.\d+|devices\.\d+\.[a-z_0-9]+|[a-z_0-9]+)(?:\.[^:]*)?: (.*)",
    re.DOTALL,
)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a page says.

    Args:
        fields: of the scenario, its plan chosen.
        estimate: worked out; `results` of its base as `mantile estimate --json` prints them.
        optimum: what was looked at where the plan was left to be chosen.
    """

    fields: Mapping[str, Any]
    estimate: Estimate
    results: Mapping[str, Any]
    optimum: Optimum | None

    @cached_property
    def said(self) -> answers.Answer:
        """What is answered, as the terminal says it too."""
        return answers.Answer(self.estimate)

    @property
    def possible(self) -> bool:
        """Whether the plan can be."""
        return is_possible(str(self.results["feasibility"]))

    @cached_property
    def digest(self) -> str:
        """Of the bundle in the workbook, as its footers say it."""
        digest = Bundle.of(self.estimate).digest
        return f"{digest[:4]} {digest[4:8]}"

    @property
    def scenario(self) -> Scenario:
        """As it is worked out."""
        return self.estimate.scenario


class FieldError(InputError):
    """An error of one field of the form; `field` is empty where it is of none."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


def answer(state: State) -> Answer:
    """The answer to a state.

    Raises:
        FieldError: for what cannot be asked.
    """
    try:
        return _answer(state.packed, HUB.get())
    except FieldError:
        raise
    except InputError as error:
        raise field_error(error) from error


@lru_cache(maxsize=KEPT)
def _answer(packed: str, hub: bool) -> Answer:
    asked = unpacked(packed)
    most, optimum = asked.pop(GPUS, None), None
    fields, model = fields_of(asked, hub, NAME)
    if any(fields.get(name) == AUTO for name in DEGREES):
        most = START[GPUS] if most is None else most
        try:
            fields, optimum = chosen(fields, NAME, most=most)
        except NoPlan:
            fields = _on_all(fields, int(most))
    worked = estimate(parse_scenario(fields, NAME), model, name=NAME)
    worked.values()  # of all figures, which a page shows: results are taken from them
    return Answer(fields, worked, worked.results(), optimum)


def _on_all(fields: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Fields whose degrees spread the model over as many accelerators as may be, where no plan can be."""
    kept = {name: value for name, value in fields.items() if value != AUTO}
    framework = load_library().framework(str(fields.get("framework") or SCENARIO_FIELDS["framework"].default))
    spread = "pp" if "tp" in framework.experimental else "tp"
    largest = MOST_STAGES if spread == "pp" else MOST_RANKS
    left = max(1, most // prod(int(kept.get(name) or 1) for name in DEGREES if name != spread))
    return kept | {spread: min(1 << (left.bit_length() - 1), largest)}


def field_error(error: InputError) -> FieldError:
    """An error with the field that it is of, and without the name of the document."""
    text = str(error).removeprefix(f"{NAME}: ")
    found = _FIELD.search(text)
    if found is None:
        return FieldError(text)
    return FieldError(found[2], found[1])
