"""The view `Calibrate`: type or paste measured figures, and see which factors they would move."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.equations.metrics import METRICS
from mantile.library.errors import InputError
from mantile.library.typed_numbers import plain_number
from mantile.server.page.answers import Answer
from mantile.server.page.files import scenario_fields
from mantile.server.page.form import FormField
from mantile.server.page.run import at
from mantile.server.page.text import number, percent, scaled, signed

FIELDS = (
    ("ttft", "ttft_s", "TTFT, mean", "ms", 1e-3),
    ("tpot", "tpot_s", "TPOT, mean", "ms", 1e-3),
    ("rate", "output_tokens_per_s", "Output tokens of all GPUs", "token/s", 1.0),
)
"""Name in the form, metric of a run, label, unit as it is typed, and that in SI units."""
SAMPLE = """id,model,accelerator,framework,tp,input_tokens,output_tokens,concurrency,ttft_ms,tpot_ms
"""
_OF_NO_RUN = (
    "title",
    "variants",
    "ready_columns",
    "decision",
    "why",
    "versions",
    "since",
    "measured",
    "template",
    "capacity",
    "sensitivity",
    "sweep",
    "classes",
    "alternative",
    "date",
    "profiles",
)


def fields_of(query: Mapping[str, str], found: Answer, errors: Mapping[str, str]) -> list[FormField]:
    """The form: what was typed, and beside it what is estimated."""
    listed = []
    for name, key, label, unit, size in FIELDS:
        value = at(found.results, key)
        said = "" if value is None else f"estimated: {number(value / size, 4)}"
        listed.append(FormField(name, label, query.get(name, ""), "", said, unit, error=errors.get(name, "")))
    return listed


def metrics_of(query: Mapping[str, str]) -> tuple[dict[str, float], dict[str, str]]:
    """What was measured, in SI units, and what is wrong with it by field."""
    metrics, errors = {}, {}
    for name, key, _, _, size in FIELDS:
        text = query.get(name, "").strip()
        if not text:
            continue
        try:
            value = float(plain_number(text))
        except InputError as error:
            errors[name] = str(error)
            continue
        except ValueError:
            errors[name] = f"expected a number (found {text[:20]!r})"
            continue
        if not 0 < value < 1e9:
            errors[name] = "expected a number above 0"
            continue
        metrics[key] = value * size
    return metrics, errors


def record_of(found: Answer, metrics: Mapping[str, float]) -> dict[str, Any]:
    """A measured run of the scenario on the page."""
    fields = {key: value for key, value in scenario_fields(found).items() if key not in _OF_NO_RUN}
    return {"id": "typed on the page", **fields, "metrics": dict(metrics), "source": "typed on the page"}


def moved(told: Mapping[str, Any]) -> dict[str, Any]:
    """What a fit did: factors, errors before and after, and each figure."""
    metrics = {metric.key: metric for metric in METRICS}

    def text(key: str, value: float) -> str:
        metric = metrics.get(key)
        return metric.text(value) if metric is not None else scaled(value)

    factors = [
        {
            "factor": one["factor"],
            "group": one["group"],
            "change": signed(one["change"] - 1) if one["change"] else "",
            "range": f"{signed(one['low'] - 1)} to {signed(one['high'] - 1)}",
            "bound": one["at_bound"],
            "far": abs(one["change"] - 1),
        }
        for one in told["moved"]
    ]
    factors.sort(key=lambda one: -one["far"])
    largest = factors[0] if factors else None
    title = (
        f"{largest['factor']} would move most: {largest['change']}"
        if largest is not None and largest["far"] > 0.0005
        else "No factor would move: the estimate holds"
    )
    return {
        "title": title,
        "runs": told["runs"],
        "factors": factors,
        "errors": [
            (
                metrics[key].label if key in metrics else key,
                percent(told["before"][key].get("mape")),
                percent(told["after"].get(key, {}).get("mape")),
            )
            for key in told["before"]
            if told["before"][key].get("n")
        ],
        "predicted": [
            {
                "id": one["id"],
                "label": metrics[one["metric"]].label if one["metric"] in metrics else one["metric"],
                "measured": text(one["metric"], one["measured"]),
                "before": text(one["metric"], one["before"]),
                "after": text(one["metric"], one["after"]),
            }
            for one in told["predicted"][:60]
        ],
        "holds_for": told["holds_for"],
        "rejected": told["rejected"][:20],
        "unused": told["unused_columns"],
    }
