"""Classes of requests that a deployment serves, in place of one mean length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import StringConstraints, model_validator

from mantile.library.documents import Strict
from mantile.library.fields import Real, ScenarioField, Whole, field, read_fields
from mantile.library.scenario_fields import MOST_TOKENS

MOST_CLASSES = 8


class ClassFields(Strict):
    """What is stated of requests that are alike, among those of a deployment."""

    share: Real | None = field(
        "Share", "weight of the class among all requests", default=1, least=0.000001, most=1_000_000
    )
    input_tokens: Whole | None = field(
        "Input tokens", "mean prompt length", unit="token/request", required=True, least=1, most=MOST_TOKENS
    )
    output_tokens: Whole | None = field(
        "Output tokens",
        "mean generated length",
        unit="token/request",
        required=True,
        least=1,
        most=MOST_TOKENS,
    )
    input_spread: Real | None = field(
        "Spread of input lengths",
        "standard deviation ÷ mean",
        otherwise="follows from the range of lengths",
        least=0,
        most=5,
    )
    output_spread: Real | None = field(
        "Spread of output lengths",
        "standard deviation ÷ mean",
        otherwise="follows from the p95 of output lengths",
        least=0,
        most=5,
    )
    ttft_limit: Real | None = field(
        "Limit of TTFT", "0: that of the scenario", unit="s", default=0, least=0, most=1_000_000
    )
    tpot_limit: Real | None = field(
        "Limit of TPOT", "0: that of the scenario", unit="s", default=0, least=0, most=1_000_000
    )
    e2e_limit: Real | None = field(
        "Limit of end to end", "0: that of the scenario", unit="s", default=0, least=0, most=1_000_000
    )
    turns: Real | None = field(
        "Turns of a conversation",
        "prompts of a conversation, on average, each with all that was said before at its head",
        default=1,
        least=1,
        most=1000,
        needs="prefix cache",
    )
    shared_prefix: Whole | None = field(
        "Shared prefix",
        "tokens at the head of every prompt of the class, such as a system prompt and tools",
        unit="token/request",
        default=0,
        least=0,
        most=MOST_TOKENS,
        needs="prefix cache",
    )
    think_time: Real | None = field(
        "Think time",
        "mean seconds between an answer and the next request of the same session",
        unit="s",
        default=0,
        least=0,
        most=1_000_000,
        needs="sessions",
    )


CLASS_FIELDS: Mapping[str, ScenarioField] = {declared.name: declared for declared in read_fields(ClassFields)}
"""What is stated of a class of requests, in the order in which a reader meets it."""


class _OneClass(Strict):
    name: Annotated[str, StringConstraints(min_length=1, max_length=30, pattern=r"^[^\x00-\x1f]+$")]


class RequestClass(ClassFields, _OneClass):
    """Requests that are alike, among those of a deployment.

    Example: {name: chat, share: 3, input_tokens: 800, output_tokens: 300}
    """

    @model_validator(mode="after")
    def _complete(self) -> RequestClass:
        for name, declared in CLASS_FIELDS.items():
            if declared.required and getattr(self, name) is None:
                raise ValueError(f"{name} is missing")
        return self

    def value(self, name: str) -> float | int:
        """What is stated of it, or the default."""
        stated = getattr(self, name)
        default = CLASS_FIELDS[name].default if stated is None else stated
        assert isinstance(default, float | int)
        return default
