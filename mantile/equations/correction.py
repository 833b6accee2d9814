"""What a correction states, and of which results it has rows, for correction.eq."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from mantile.equations.metrics import E2E, TPOT, TTFT
from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Input, Quantity, defined, span
from mantile.library.correction import Along, Corrected, Correction, Group

LABELS = {
    "tpot": TPOT.label,
    "ttft": TTFT.label,
    "e2e": E2E.label,
    "prefill": "Prefill",
    "weights": "Weights",
    "kv_tokens": "KV tokens",
    "peak_memory": "Peak memory",
}
OF_MEMORY = {"weights": "B", "kv_tokens": "token", "peak_memory": "B"}
"""Results that are no times, and their units."""
ASKED = {
    "concurrency": "concurrency",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "ranks": "ranks of a replica",
    "engine_date": "engine day",
    "launch_share": "share of launches in a decode step",
    "compute_share": "share of compute in a decode step",
    "memory_share": "share of memory in a decode step",
    "network_share": "share of messages in a decode step",
    "stall_share": "share of other prompts in TPOT",
}
SHARES = ("launch_share", "compute_share", "memory_share", "network_share", "stall_share")
"""What share of a decode step each limit has, and what share of TPOT the prompts of others."""
NOWHERE = "none"
_SHOWN = 12  # characters of a digest


def corrections(
    rows: Equations,
    known: Correction,
    model: str,
    results: Mapping[str, Quantity],
    ranges: Mapping[str, tuple[Quantity, Quantity]],
    ranks: Quantity,
) -> None:
    """Make known what a correction states, and its rows. Only its groups of this model have rows.

    Args:
        known: as its file has it.
        model: id of the model.
        results: by metric.
        ranges: p10 and p90 of results, which hold where the correction has no runs.
        ranks: of a replica.
    """
    digest = known.digest[:_SHOWN] or NOWHERE
    not_as_fitted = "of its content, as its file begins it; none: it is not as it was fitted"
    rows.know(
        defined(
            "correction.version", f"Correction {known.id}", "1", known.version, "its version", known.source
        ),
        defined(
            "correction.digest", f"Correction {known.id}, digest", "1", digest, not_as_fitted, known.source
        ),
    )
    rows.know(*(end for ends in ranges.values() for end in ends))
    for one in known.metrics:
        stated = [*_groups(known, one, model), *_frameworks(known, one)]
        stated += [figure for along in one.along for figure in _table(rows, known, one, along)]
        rows.know_table(f"correction.{one.metric}", {"stated": stated})
        rows.know_as(f"correction.{one.metric}.result", results[one.metric])
    made = {one.metric: _facts(one, model, ranges.get(one.metric)) for one in known.metrics}
    along = [_along(rows, one, along, ranks) for one in known.metrics for along in one.along]
    rows.make_in("corrected", *(Space(facts=facts) for facts in made.values()))
    for name, everywhere in (("corrected everywhere", True), ("corrected by kind", False)):
        spaces = [Space(facts=made[one.metric]) for one in known.metrics if one.everywhere == everywhere]
        rows.make_in(name, *spaces)
    rows.make_in("step of a correction", *(Space(facts=facts) for facts in along))
    for one in known.metrics:
        own = [*_steps(one), *(["of_framework"] if one.everywhere else [])]
        rows.know_as(
            f"correction.{one.metric}.rows", span(rows[f"correction.{one.metric}.{name}"] for name in own)
        )


def version(rows: Equations, known: Correction) -> str:
    """A correction, its version and digest, in words."""
    digest = rows.figure("correction.digest")
    assert isinstance(digest, Input)
    return f"{known.id} {known.version}, digest {digest.value}"


def _steps(one: Corrected) -> list[str]:
    """The steps of which a multiplier consists, by the last part of their ids."""
    return [*([] if one.everywhere else ["step"]), *(along.what for along in one.along)]


def _facts(one: Corrected, model: str, known_range: tuple[Quantity, Quantity] | None) -> dict[str, str]:
    """What stands in the rows of a corrected result."""
    name = one.metric
    low, high = (f"{name}.p50 * exp({name}.{end}.fitted)" for end in ("p10", "p90"))
    without = ""
    if known_range is not None:
        more = f" * {name}.multiplier" if one.everywhere else ""
        low, high = (f"{end.id}{more}" for end in known_range)
        without = "without runs behind it: the range of the result"
        without += ", times the multiplier" if one.everywhere else " itself"
    return {
        "metric": name,
        "label": LABELS[name],
        "unit": OF_MEMORY.get(name, "s"),
        "model": model,
        "behind": "of_framework" if one.everywhere else "runs",
        "steps": " + ".join(f"{name}.{step}" for step in _steps(one)) or "0",
        "where": "the steps hold for all models and accelerators" if one.everywhere else "",
        "low": low,
        "high": high,
        "without": without,
    }


def _along(rows: Equations, one: Corrected, along: Along, ranks: Quantity) -> dict[str, str]:
    """What stands in the row of the step for what was asked."""
    asked = f"inputs.{along.what}"
    if along.what in SHARES:
        asked = along.what
    elif along.what == "ranks":
        asked = ranks.id
    unstated = along.what == "engine_date" and "engine_date" not in rows.features
    return {
        "metric": one.metric,
        "label": LABELS[one.metric],
        "what": along.what,
        "called": ASKED[along.what],
        "asked": f"max({one.metric}.{along.what}.starts)" if unstated else asked,
        "note": "nobody states its day: the newest one" if unstated else "",
    }


def _groups(known: Correction, one: Corrected, model: str) -> Iterator[Input]:
    """What is stated of the kinds of runs of this model, column by column, and the spread of all runs."""
    groups = [group for group in one.groups if group.model == model]
    none = Group(model=model, accelerator=NOWHERE, framework=NOWHERE, runs=1, step=0)
    columns: dict[str, tuple[str, Callable[[Group], float | str]]] = {
        "key": ("1", lambda group: f"{group.accelerator}/{group.framework}" if groups else NOWHERE),
        "runs": ("number", lambda group: group.runs if groups else 0),
        "step": ("1", lambda group: group.step),
        "newest": ("1", lambda group: group.newest or "not known"),
    }
    if one.everywhere:
        del columns["step"]
    for what, (unit, value) in columns.items():
        for number, group in enumerate(groups or [none], 1):
            yield _stated(known, one, f"{what}.{number}", what, unit, value(group))
    for percentile, spread in (("p10", one.low), ("p90", one.high)):
        yield _stated(known, one, f"{percentile}.fitted", percentile, "1", spread)


def _frameworks(known: Correction, one: Corrected) -> Iterator[Input]:
    """Measured runs of frameworks, where steps hold everywhere."""
    counts = Counter[str]()
    for group in one.groups if one.everywhere else ():
        counts[group.framework] += group.runs
    for number, framework in enumerate(sorted(counts), 1):
        yield _stated(known, one, f"framework.{number}", "framework", "1", framework)
    for number, framework in enumerate(sorted(counts), 1):
        yield _stated(known, one, f"framework_runs.{number}", "framework_runs", "number", counts[framework])


def _table(rows: Equations, known: Correction, one: Corrected, along: Along) -> Iterator[Input]:
    """Make known the steps along what was asked."""
    called = ASKED[along.what]
    columns = {
        column: [
            _stated(known, one, f"{along.what}.{name}.{number}", words, "1", value, f", {number}")
            for number, value in enumerate(values, 1)
        ]
        for column, name, words, values in (
            ("starts", "from", f"{called} from", along.starts),
            ("steps", "step", f"step of {called}", along.steps),
        )
    }
    rows.know_table(f"correction.{one.metric}.{along.what}", columns)
    for figures in columns.values():
        yield from figures


_WORDS = {
    "key": "accelerator and framework of runs",
    "runs": "runs",
    "step": "step of runs",
    "newest": "newest of runs",
    "framework": "framework of runs",
    "framework_runs": "runs of the framework",
    "p10": "spread below",
    "p90": "spread above",
}
_NOTES = {
    "runs": "that were fitted",
    "step": "logarithm of measured ÷ predicted",
    "p10": "logarithm of measured ÷ corrected, tenth percentile of runs that were not fitted",
    "p90": "logarithm of measured ÷ corrected, ninetieth percentile of runs that were not fitted",
}


def _stated(
    known: Correction, one: Corrected, name: str, what: str, unit: str, value: float | str, more: str = ""
) -> Input:
    """A figure of the file."""
    words, label = _WORDS.get(what, what), LABELS[one.metric]
    number = name.rpartition(".")[2]
    place = f" {number}" if number.isdigit() and not more else more
    return defined(
        f"correction.{one.metric}.{name}",
        f"{label}: {words}{place}",
        unit,
        value,
        _NOTES.get(what, ""),
        known.source,
        status="fitted",
        name=f"{words} of {label}",
    )
