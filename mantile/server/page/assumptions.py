"""The view `Assumptions`: every field and figure not by default, its source and what it moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.equations.metrics import TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS
from mantile.estimates.overrides import overrides, shared_overrides
from mantile.estimates.sensitivity import sensitivity
from mantile.library.errors import InputError
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.server.page.answers import Answer, answer
from mantile.server.page.drill import SIGNS
from mantile.server.page.run import at
from mantile.server.page.state import AUTO, DEGREES, State
from mantile.server.page.text import change, scaled, signed

_JUDGED = (("TTFT", TTFT), ("TPOT", TPOT), ("USD/M", USD_PER_MILLION_OUTPUT_TOKENS))
_KEYS = ("ttft", "tpot", "usd")
_NEEDED = ("model", "accelerator", "input_tokens", "output_tokens", "concurrency")
_MOST = 24


def panel(found: Answer, state: State) -> dict[str, Any]:
    """What somebody stated, with its effect against the default; and what the results rest on most."""
    stated = [_stated(name, found, state) for name in SCENARIO_FIELDS if name in state.fields]
    own = [item for item in (*overrides(found.estimate), *shared_overrides(found.estimate))]
    moved = sensitivity(found.estimate)
    return {
        "stated": stated,
        "facts": [f"model.{name}" for name in found.estimate.equations.ir.facts],
        "overrides": [
            {
                "label": item.cell.label,
                "id": item.id,
                "value": scaled(item.value, item.cell.unit),
                "default": scaled(item.default, item.cell.unit),
                "source": item.reason or "typed since",
                "effects": [
                    (name, signed(item.effects[key])) for key, (name, _) in zip(_KEYS, _JUDGED, strict=True)
                ],
            }
            for item in own
        ],
        "matters": [_matters(item, found) for item in moved[:_MOST]],
        "count": len(moved),
    }


def _stated(name: str, found: Answer, state: State) -> dict[str, Any]:
    """A field that is stated: its value, its default, and what going back to the default does."""
    declared, value = SCENARIO_FIELDS[name], state.fields[name]
    chosen = value == AUTO
    effects: list[tuple[str, str]] = []
    said = "needed" if declared.required else declared.default_words
    if not declared.required and name not in DEGREES:
        without = state.by_hand(found.fields).with_fields(**{name: None})
        try:
            other = answer(without)
        except InputError as error:
            said = f"{said}; with it: {error}"
        else:
            effects = [
                (head, change(at(found.results, metric.key), at(other.results, metric.key)) or "–")
                for head, metric in _JUDGED
            ]
    return {
        "name": name,
        "label": declared.label,
        "value": f"AUTO: {found.fields.get(name, 1)}" if chosen else f"{value}",
        "default": said,
        "source": "chosen, with its reasons on Run" if chosen else "stated in this scenario",
        "kind": "AUTO" if chosen else "yours",
        "effects": effects,
        "meaning": declared.meaning,
    }


def _matters(item: Any, found: Answer) -> dict[str, Any]:
    """A figure that moves a result: from the low to the high end of its range."""
    figure = item.input.figure
    kind = item.input.status
    value = found.estimate.values().get(figure)
    return {
        "label": item.input.label,
        "id": figure.id,
        "value": scaled(value, figure.unit),
        "kind": kind,
        "sign": SIGNS.get(kind, "·"),
        "source": item.input.source,
        "range": item.input.range_percent,
        "effects": [
            (name, signed(item.effects[key]) or "–") for key, (name, _) in zip(_KEYS, _JUDGED, strict=True)
        ],
    }


def count(state: State) -> int:
    """How many fields and figures somebody stated beyond those that a scenario needs, AUTO left out."""
    stated: Mapping[str, Any] = state.fields
    fields = [
        name for name in stated if name in SCENARIO_FIELDS and name not in _NEEDED and stated[name] != AUTO
    ]
    listed = stated.get("overrides")
    return len(fields) + (len(listed) if isinstance(listed, list) else 0)
