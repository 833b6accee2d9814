"""Where headline results come from: the path from each down to the figure of the library that matters most.

At every step the path takes the part that is largest: of TTFT the largest wait, of a pass what binds it, of
that the module that takes most. So it leads to the rate, launch or message that the module runs at, and to
the figure of the library behind that, with its source. All of it is looked up, and follows every edit.

    id behind "trace"                             function
    -------------------------------------------   ----------------------------------
    .METRIC.NUMBER                                path
    .parts.METRIC.NUMBER .via.METRIC.NUMBER       parts.parts
    .limit.NUMBER .module.NUMBER                  passes.limits
    .rate.NUMBER                                  passes.rates
    .figure.NUMBER                                figures.Figures
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.display import in_unit
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    OUTPUT_TOKENS_PER_S,
    TPOT,
    TTFT,
    Metric,
)
from mantile.equations.trace.breakdown import Part, all_parts, over, over_via, parts, prices
from mantile.equations.trace.figures import Figures
from mantile.equations.trace.lines import (
    FIGURES,
    LIMITS,
    MODULES,
    NOTHING,
    RATES,
    Line,
    Table,
    column,
    fixed_text,
    looked,
    looked_up,
)
from mantile.equations.trace.passes import limits, rates
from mantile.graph.quantity import Named, Node, choose, index, is_number, match, maximum, span, where


@dataclass(frozen=True)
class Trace:
    """Paths by headline result, and the tables behind them by what stands over them.

    Args:
        sources: status and source of prices and further figures, in words, live.
    """

    paths: Mapping[Metric, Table]
    tables: Mapping[str, Table]
    sources: Mapping[Named, tuple[Node, Node]]


def trace(
    graph: EstimateGraph, further: Sequence[Named] = (), reasons: Mapping[str, str] | None = None
) -> Trace:
    """The paths of all headline results.

    Args:
        further: figures whose sources are asked for as well.
        reasons: what stands beside the cells of overrides that are set, by id of the cell.
    """
    figures = Figures(graph, reasons or {})
    passes = (graph.prefill, graph.decode)
    reached = rates(graph, passes, figures)
    binding, modules = limits(passes)
    way = _Way(binding, modules, reached, figures)
    paths: dict[Metric, Table] = {}
    tables: dict[str, Table] = {}
    for metric, found in all_parts(graph, figures, paths):
        table, via = parts(metric, found)
        paths[metric] = path(graph, metric, table, via, found, way)
        tables[over(metric)] = table
        if via:
            tables[over_via(metric)] = via
    sources = {figure: figures.source(figure) for figure in dict.fromkeys(further)}
    return Trace(
        paths=paths,
        tables={
            **tables,
            LIMITS: binding,
            MODULES: modules,
            RATES: reached,
            FIGURES: tuple(figures.lines.values()),
        },
        sources={
            **sources,
            **prices(graph, figures),
        },
    )


@dataclass(frozen=True)
class _Way:
    """The tables that paths are looked up in."""

    limits: Table
    modules: Table
    rates: Table
    figures: Figures


_SHOWN = ("value", "name", "id")
_SAID = ("status", "said")


def path(
    graph: EstimateGraph, metric: Metric, table: Table, via: Table, found: Sequence[Part], way: _Way
) -> Table:
    """The path of a headline result: a line for each step, itself first."""
    figure = metric.of(graph.figures)
    line = f"{metric.attribute}"
    unit = metric.display_unit
    start = Line(
        {
            "value": looked(f"{line}.0.value", in_unit(figure, unit)),
            "name": fixed_text(f"{line}.0.name", metric.head),
            "id": fixed_text(f"{line}.0.id", figure.id),
        },
        figure,
    )
    known = is_number(start["value"])
    place = looked(f"{line}.1.place", _largest(table, found, known))

    def step(number: int, roles: Sequence[str], body: Callable[[str], Node]) -> dict[str, Named]:
        return {role: looked(f"{line}.{number}.{role}", body(role)) for role in roles}

    first = step(1, (*_SHOWN, "lead"), lambda role: where(known, index(column(table, role), place), NOTHING))
    lines = [start, Line(first | {"place": place}, listed=over(metric))]
    key = first["lead"]
    if via:
        lines.append(
            Line(
                step(2, _SHOWN, lambda role: where(known, index(column(via, role), place), NOTHING)),
                listed=over_via(metric),
            )
        )
    elif metric in (TTFT, TPOT, OUTPUT_TOKENS_PER_S):
        lines += _through_pass(step, line, key, way)
        key = lines[-1]["lead"]
    last = step(len(lines), (*_SHOWN, *_SAID), lambda role: looked_up(way.figures.table, role, key))
    return (*lines, Line(last, listed=FIGURES))


def _largest(table: Table, found: Sequence[Part], known: Node) -> Node:
    """The place of the largest part; the last, which is none of them, where that binds."""
    last = found[-1]
    values = span(line["value"] for line, part in zip(table, found, strict=True) if part.binds is None)
    place = match(maximum(values), values)
    if last.binds is None:
        return where(known, place, 1)
    return choose(1 + where(last.binds, 1, 0), place, table[-1]["place"])


def _through_pass(
    step: Callable[[int, Sequence[str], Callable[[str], Node]], dict[str, Named]],
    line: str,
    key: Named,
    way: _Way,
) -> list[Line]:
    """What binds the pass that a part follows from, the module that takes most, and what that runs at.

    Dashes where the part follows from a figure of the library at once.
    """
    keys = column(way.limits, "key")
    place = looked(f"{line}.2.place", where(is_number(match(key, keys)), match(key, keys), 0))

    def of(table: Table) -> Callable[[str], Node]:
        return lambda role: where(place > 0, index(column(table, role), place), NOTHING)

    module = step(3, (*_SHOWN, "lead"), of(way.modules))
    rate = step(4, (*_SHOWN, "status"), lambda role: looked_up(way.rates, role, module["lead"]))
    found = looked_up(way.rates, "lead", module["lead"])
    rate["lead"] = looked(f"{line}.4.lead", where(place > 0, found, key))
    return [
        Line(step(2, _SHOWN, of(way.limits)) | {"place": place}, listed=LIMITS),
        Line(module, listed=MODULES),
        Line(rate, listed=RATES),
    ]
