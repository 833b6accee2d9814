"""Speculative decoding: how many tokens of a request a step checks, and how many it gives.

A drafter proposes tokens one after the other. The next step works on all of them and on the token before, and
keeps those up to the first that the model itself would not have chosen, and one of its own. Acceptance is a
chance by position: the first draft token has the acceptance rate, and each further one, once those before it
are accepted, that of the one before times the decline. What drafting costs is in draft.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import MICRO, TOKENS_PER_STEP
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    defined,
    equal,
    maximum,
    minimum,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.scenario_fields import MOST_DRAFTS, SCENARIO_FIELDS

NONE, MTP, EAGLE, DRAFT_MODEL = "none", "mtp", "eagle", "draft-model"


@dataclass(frozen=True)
class Speculation:
    """Tokens of a request in a decode step.

    Args:
        on: 1 where anything is drafted.
        drafts: tokens that are drafted; `checked` are these and the one before; `emitted` what a step gives.
        by_layer, by_model: 1 where a layer like the model's own drafts, or another model.
        check_time: seconds by which a step is longer for each request whose drafts it checks.
        length: tokens that a step gives, until somebody states how many.
        assumed: 1 where nobody does and a layer drafts that was trained for it; `unknown` for other drafters.
    """

    on: Quantity
    drafts: Quantity
    checked: Quantity
    emitted: Quantity
    by_layer: Quantity
    by_model: Quantity
    check_time: Quantity
    length: Quantity
    assumed: Quantity
    unknown: Quantity
    section: Section


def checked(speculation: Speculation | None) -> Node:
    """Tokens of a request that a decode step works on."""
    return TOKENS_PER_STEP if speculation is None else speculation.checked


def emitted(speculation: Speculation | None) -> Node:
    """Tokens of a request that a decode step gives, on average."""
    return TOKENS_PER_STEP if speculation is None else speculation.emitted


def speculation(inputs: Workload) -> Speculation | None:
    """Tokens of a step; None where no scenario speculates."""
    method = inputs.speculation
    if method is None:
        return None
    assert inputs.draft_tokens is not None and inputs.acceptance_length is not None
    rows = Rows("speculation")
    on = rows("on", "Tokens are drafted", "flag", where(equal(method, NONE), 0, 1))
    by_layer = rows(
        "by_layer",
        "A layer like the model's own drafts",
        "flag",
        where(equal(method, MTP), 1, 0) + where(equal(method, EAGLE), 1, 0),
    )
    by_model = rows("by_model", "Another model drafts", "flag", where(equal(method, DRAFT_MODEL), 1, 0))
    drafts = rows("drafts", "Draft tokens of a request in a step", "token/request", on * inputs.draft_tokens)
    checks = rows(
        "checked",
        "Tokens of a request that a step works on",
        "token/request",
        TOKENS_PER_STEP + drafts,
        "draft tokens, and the one before",
        called="tokens to check",
    )
    positions = accepted(rows, inputs, drafts)
    length = rows(
        "length",
        "Tokens of a request in a step by chance of each position",
        "token/request",
        TOKENS_PER_STEP * (1 + sum_range(span(positions))),
        "one is the model's own",
    )
    gives = rows(
        "emitted",
        "Tokens of a request that a step gives",
        "token/request",
        where(on > 0, maximum(TOKENS_PER_STEP, minimum(checks, inputs.acceptance_length)), TOKENS_PER_STEP),
        "on average; at least the model's own",
        called="tokens of a step",
    )
    check_time = _check_time(rows, inputs, on)
    published = _as_published(rows, inputs, on, length)
    return Speculation(
        on=on,
        drafts=drafts,
        checked=checks,
        emitted=gives,
        by_layer=by_layer,
        by_model=by_model,
        check_time=check_time,
        length=length,
        assumed=rows(
            "assumed",
            "Acceptance is that of another model's layer",
            "flag",
            published * by_layer,
        ),
        unknown=rows(
            "unknown",
            "Nobody can say how many are accepted",
            "flag",
            published * (1 - by_layer),
            "of draft models and n-grams it differs too much",
        ),
        section=rows.section("Speculation", "tokens of a request in a decode step"),
    )


_CHECKS = {"sglang": 140, "trtllm": 60}
"""Microseconds for each request, as the host accepts and rejects drafts one request after the other."""
_SOURCE = "131 public runs with prediction layers, DeepSeek-R1 and Qwen3.5, 2026-01 to 2026-04"


def _check_time(rows: Rows, inputs: Workload, on: Quantity) -> Quantity:
    """Seconds for each request whose drafts a step checks: what the server does, the same on all chips."""
    entries = [
        Input(
            f"speculation.check.{framework}",
            f"Check of a request's drafts, {framework}",
            "us",
            microseconds,
            "beyond the work of the accelerator: requests are accepted one by one",
            _SOURCE,
            "fitted",
            shared=True,
            minimum=0,
            maximum=100_000,
        )
        for framework, microseconds in _CHECKS.items()
    ]
    others = Input(
        "speculation.check.others",
        "Check of a request's drafts, other frameworks",
        "us",
        sum(_CHECKS.values()) / len(_CHECKS),
        "the mean of those that were measured",
        _SOURCE,
        "assumed",
        shared=True,
        minimum=0,
        maximum=100_000,
    )
    rows.add(*entries, others)
    in_use: Node = others
    for framework, entry in zip(_CHECKS, entries, strict=True):
        in_use = rows(
            f"check_{framework}",
            f"Check of a request's drafts, {framework} or as before",
            "us",
            where(equal(inputs.framework, framework), entry, in_use),
        )
    return rows("check_time", "Check of a request's drafts", "s", on * in_use / MICRO)


def _as_published(rows: Rows, inputs: Workload, on: Quantity, length: Quantity) -> Quantity:
    """1 where nobody states how many drafts are accepted."""
    assert inputs.acceptance_rate is not None and inputs.acceptance_length is not None
    rate = SCENARIO_FIELDS["acceptance_rate"].default
    assert isinstance(rate, float)
    published = defined(
        "speculation.published_rate", "Acceptance rate by default", "1", rate, "published of one model"
    )
    rows.add(published)
    same = all_of(equal(inputs.acceptance_rate, published), equal(inputs.acceptance_length, length))
    return rows("as_published", "Nobody states how many are accepted", "flag", on * where(same, 1, 0))


def accepted(rows: Rows, inputs: Workload, drafts: Quantity) -> list[Quantity]:
    """Chance of each position to be accepted, with all before it; 0 beyond the last draft token."""
    assert inputs.acceptance_rate is not None and inputs.acceptance_decline is not None
    chance: Node = inputs.acceptance_rate
    numbers: list[Input] = []
    each: list[Node] = []
    for position in range(1, MOST_DRAFTS + 1):
        numbers.append(
            defined(
                f"speculation.number.{position}",
                f"Draft token {position}",
                "token/request",
                position,
                "a position",
            )
        )
        rows.add(numbers[-1])
        if position > 1:
            chance = rows(
                f"chance.{position}",
                f"Chance of draft token {position} once those before it are accepted",
                "1",
                chance * inputs.acceptance_decline,
            )
        each.append(chance)
    with_all_before: Node = as_node(1)
    chances: list[Quantity] = []
    for number, chance in zip(numbers, each, strict=True):
        with_all_before = rows(
            f"position.{number.value}",
            f"Chance that draft tokens up to {number.value} are accepted",
            "1",
            where(drafts >= number, with_all_before * chance, 0),
            "0 beyond the last",
        )
        chances.append(with_all_before)
    return chances
