"""How well results are known: whether serving runs of the accelerator and framework were measured, and the range that follows."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Section,
    index,
    join,
    minimum,
    span,
    sum_where,
    where,
)
from mantile.library.evidence import BAND_METRICS, EVIDENCE_LEVELS
from mantile.library.profiles import Library


@dataclass(frozen=True)
class Evidence:
    """Ranges that hold four in five measured runs, as tenth and ninetieth percentile of a result.

    Args:
        level: 1 if no run of the framework was measured, 2 if some, 3 if some on the accelerator; 4 if prefill and decode are apart.
        name: the level in words.
        bands: by metric, the result at its tenth, fiftieth and ninetieth percentile.
    """

    level: Quantity
    name: Quantity
    bands: dict[str, tuple[Quantity, Quantity, Quantity]]
    section: Section


def evidence(
    library: Library, inputs: Workload, apart: Node | None, results: dict[str, Quantity]
) -> Evidence:
    """The rows of the evidence block.

    Args:
        inputs: of the accelerators that decode.
        apart: 1 if prefill and decode have workers of their own: such runs were not fitted.
        results: by metric, what the ranges are of.
    """
    known = library.evidence
    pairs = tuple(
        _fact(
            f"evidence.pair.{one.accelerator}.{one.framework}",
            f"Measured: {one.accelerator}/{one.framework}",
            "1",
            f"{one.accelerator}/{one.framework}",
            "accelerator/framework",
            known.source,
            "measured pairs",
        )
        for one in known.pairs
    )
    counts = tuple(
        _fact(
            f"evidence.runs.{one.accelerator}.{one.framework}",
            f"Runs of {one.accelerator}/{one.framework}",
            "number",
            one.runs,
            "serving runs that factors were fitted to",
            known.source,
            "runs",
        )
        for one in known.pairs
    )
    frameworks = tuple(
        _fact(
            f"evidence.framework.{one.accelerator}.{one.framework}",
            f"Framework of {one.accelerator}/{one.framework}",
            "1",
            one.framework,
            "of the pair",
            known.source,
            "their frameworks",
        )
        for one in known.pairs
    )
    mine = Quantity(
        "evidence.pair_runs",
        "Measured runs of the pair",
        "number",
        sum_where(span(counts), span(pairs), join(inputs.accelerator, "/", inputs.framework)),
        note="of this accelerator with this framework",
    )
    others = Quantity(
        "evidence.framework_runs",
        "Measured runs of the framework",
        "number",
        sum_where(span(counts), span(frameworks), inputs.framework),
        note="on any accelerator",
    )
    stated = apart is not None and any(
        band.level == "apart" for band in known.bands
    )  # libraries of older bundles have no such ranges
    levels = {key: words for key, words in EVIDENCE_LEVELS.items() if key != "apart" or stated}
    level: Node = 1 + where(others > 0, 1, 0) + where(mine > 0, 1, 0)
    last = _fact(
        "evidence.apart",
        "Level where decode is apart",
        "number",
        len(levels),
        "whatever was measured",
        "definition",
        "levels",
    )
    body, said = level, ""
    if apart is not None:
        body, said = (
            (level * (1 - apart) + last * apart, "; the last where decode is apart")
            if stated
            else (minimum(level, 1 + (1 - apart) + 1), "; at most 2 where decode is apart")
        )
    held = Quantity(
        "evidence.level",
        "Evidence level",
        "number",
        body,
        note=f"1, + 1 if the framework was measured, + 1 if on this accelerator{said}",
    )
    names = tuple(
        _fact(f"evidence.name.{number}", f"Level {number}", "1", name, "words for it", "definition", "levels")
        for number, name in enumerate(levels.values(), 1)
    )
    name = Quantity("evidence.name", "Evidence", "1", index(span(names), held), note="the level in words")
    rows: list[Input | Quantity] = []
    bands: dict[str, tuple[Quantity, Quantity, Quantity]] = {}
    for metric, label in BAND_METRICS.items():
        result = results[metric]
        found: list[Quantity] = []
        for percent in ("p10", "p50", "p90"):
            ratios = [
                Input(
                    f"evidence.{metric}.{percent}.{key}",
                    f"{label}, {percent}, {words}",
                    "1",
                    getattr(known.band(metric, key), percent),
                    "measured ÷ predicted",
                    known.source,
                    "fitted",
                    shared=True,
                    minimum=0.01,
                    maximum=100,
                    name=f"ratios {percent}",
                )
                for key, words in levels.items()
            ]
            found.append(
                Quantity(
                    f"evidence.{metric}.{percent}",
                    f"{label}, {percent}",
                    result.unit,
                    result * index(span(ratios), held),
                    note="result × measured ÷ predicted of its evidence level",
                )
            )
            rows += [*ratios, found[-1]]
        bands[metric] = (found[0], found[1], found[2])
    section = Section(
        "Evidence",
        (*pairs, *counts, *frameworks, mine, others, *([last] if stated else []), held, *names, name, *rows),
        "four in five measured runs that were not fitted lie between p10 and p90",
    )
    return Evidence(held, name, bands, section)


def _fact(
    identifier: str, label: str, unit: str, value: float | str, note: str, source: str, name: str
) -> Input:
    return Input(
        identifier,
        label,
        unit,
        value,
        note,
        source,
        "measured" if unit == "number" else "defined",
        shared=True,
        fixed=True,
        name=name,
    )
