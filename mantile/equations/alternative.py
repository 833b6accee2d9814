"""The base scenario on another accelerator: a further case, worked out again beside it.

The alternative stands in its usual system, with the figures of the library. Overrides of the base scenario
say nothing of another accelerator, and do not hold for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mantile.equations.display import Currency, Shown
from mantile.equations.graph import EstimateGraph
from mantile.equations.metrics import (
    INTERACTIVITY,
    KV_CAPACITY_SEQUENCES,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    POWER,
    TPOT,
    TTFT,
    USD_PER_HOUR,
    USD_PER_MILLION_INPUT_TOKENS_BY_TIME,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME,
    USD_PER_MONTH,
)
from mantile.equations.reasons import PLAN, REASONS
from mantile.equations.typed.choice import ChoiceTyped, choice_typed
from mantile.equations.variation import Variation, Variations
from mantile.graph.excel import Cells
from mantile.graph.quantity import (
    NOT_KNOWN,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    all_of,
    index,
    is_number,
    join,
    match,
    number_of,
    percent,
    span,
    where,
)
from mantile.library.scenario_fields import DEFAULT_SYSTEM

COMPARED = (
    TTFT,
    TPOT,
    INTERACTIVITY,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    MEMORY_PER_ACCELERATOR,
    KV_CAPACITY_SEQUENCES,
    POWER,
    USD_PER_HOUR,
    USD_PER_MONTH,
    USD_PER_MILLION_OUTPUT_TOKENS,
    USD_PER_MILLION_INPUT_TOKENS_BY_TIME,
    USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME,
)
ACCELERATOR, PRICE = "alternative.accelerator", "alternative.price"
"""Ids of what is typed: the accelerator, and what an hour of it costs."""
_WITHOUT_PLAN = (MEMORY_PER_ACCELERATOR.attribute, KV_CAPACITY_SEQUENCES.attribute)  # known without a plan
_OF_HOURS = ("price_cloud", "price_rental", "price_owned")  # what a price typed stands for
_A, _B = "of A", "of B"
_FOUND = {
    USD_PER_MILLION_OUTPUT_TOKENS.attribute: "Cost per million output tokens",
    TPOT.attribute: "TPOT",
    OUTPUT_TOKENS_PER_S.attribute: "Output tokens per second",
}
"""What the finding says of the alternative, by the metric."""

NO_OVERRIDE = Input(
    "alternative.no_override",
    "Overrides of the alternative",
    "1",
    "none",
    "overrides of A do not hold for B",
    shared=True,
    fixed=True,
)
USUAL_SYSTEM = Input(
    "alternative.system",
    "System of the alternative",
    "1",
    DEFAULT_SYSTEM,
    "the one that the accelerator usually comes in",
    shared=True,
    fixed=True,
)


@dataclass(frozen=True)
class Compared:
    """A result of both, in one unit.

    Args:
        change: of B against A; not known where one of them is not.
    """

    result: Shown
    base: Quantity
    other: Quantity
    change: Quantity


@dataclass(frozen=True)
class Alternative:
    """The base scenario and the same on another accelerator.

    Args:
        accelerator, price: what is typed: which it is, and what an hour of one costs if the library's price
            does not hold.
        guards: what the cells hold, and whether it can be.
        used: what holds of both where something else was typed, and what it makes impossible or unknown.
        finding: what it comes to, in words.
        names: what both are: name, system, feasibility, by what it is.
        lines: results.
        constants, worked_out: what only the words need, and what stands for figures of A.
        variation: every figure that follows.
    """

    accelerator: Input
    price: Input
    guards: ChoiceTyped
    used: tuple[Quantity, ...]
    finding: tuple[Quantity, ...]
    names: Mapping[str, tuple[Quantity, Quantity]]
    lines: tuple[Compared, ...]
    constants: tuple[Input, ...]
    worked_out: tuple[Quantity, ...]
    variation: Variation


def typed(graph: EstimateGraph) -> tuple[Input, Input]:
    """What is typed of the alternative: its accelerator, and the price of an hour of one."""
    accelerator = replace(
        graph.inputs.accelerator,
        id=ACCELERATOR,
        label="Accelerator B",
        note="any of the library; every number beside it follows",
        default=None,
    )
    price = Input(
        id=PRICE,
        label="Price of an accelerator B",
        unit="USD/h",
        value=None,
        note="an offer, per accelerator and hour; empty: the price of the library",
        source="typed by hand",
        status="override",
        minimum=0.001,
        maximum=1e6,
    )
    return accelerator, price


def alternative(
    graph: EstimateGraph, inputs: tuple[Input, Input], case: int, currency: Currency, cells: Cells
) -> Alternative:
    """The base scenario on another accelerator.

    Args:
        inputs: what is typed.
        case: the number of the case.
        cells: where figures stand.
    """
    accelerator, price = inputs
    guards = choice_typed(
        inputs, graph.prefill_workers.hardware.accelerators, "alternative", "the alternative"
    )
    used = _used(graph, accelerator, price, guards)
    results = {
        metric.attribute: metric.on(graph.figures, metric.attribute, currency, metric.label)
        for metric in COMPARED
    }
    texts = {
        "Accelerator": graph.decode_workers.hardware.name,
        "System": graph.decode_workers.hardware.system,
        "Plan": graph.rows["checks.reason"],
    }
    prices = {f"price{place or ''}": of for place, of in enumerate(graph.rows.each("pool", "cost.price"))}
    wanted: dict[str, Named] = {key: of.figure for key, of in results.items()}
    possible = graph.rows["checks.possible"]
    variation = Variations(
        graph,
        wanted
        | texts
        | prices
        | {
            "possible": possible,
            "invalid": graph.figures["checks.invalid"],
            "faults": graph.checks.faults.count,
        },
        cells,
    ).vary(dict(_replaced(graph, used)), "alternative.", " · B")
    is_known, is_price = (InCase(guards.valid[cell.id], case, "as typed") > 0 for cell in inputs)
    names = {
        name: (
            _told(f"a.{name.lower()}", f"{name}, A", InCase(figure, 0, _A)),
            _told(
                f"b.{name.lower()}",
                f"{name}, B",
                where(is_known, variation.in_case(name, case, _B), NOT_KNOWN),
            ),
        )
        for name, figure in texts.items()
    }
    shown_prices = {
        key: Shown(key, figure.label, figure.unit, figure, currency, 2) for key, figure in prices.items()
    }
    shown = shown_prices | results
    shown_there = {key: of.of(variation.in_case(key, case, _B)) for key, of in shown.items()}
    unmasked = {  # what stands there whether or not the plan can be
        key: Quantity(f"alternative.there.{key}", f"{of.label}, there", of.unit, shown_there[key])
        for key, of in shown.items()
        if key in shown_prices or key in _WITHOUT_PLAN
    }
    of_b = {*shown_prices} if graph.devices is None else {"price"}  # other devices are those of A
    shown_there |= {
        key: where(all_of(is_known, is_price) if key in of_b else is_known, of, NOT_KNOWN)
        for key, of in unmasked.items()
    }
    lines = tuple(_compared(key, of, shown_there[key]) for key, of in shown.items())
    change = {line.result.key: line.change for line in lines}
    is_possible = variation.in_case("possible", case, _B) > 0
    words, meanings = _words(change), _meanings(graph)
    of_inputs, last = (
        Input(f"alternative.meanings.{name}", f"Place of {name}", "number", number, shared=True, fixed=True)
        for name, number in (("inputs", len(meanings)), ("memory", len(meanings) - 1))
    )
    first = match(names["Plan"][1], span(graph.checks.codes))
    invalid = variation.in_case("invalid", case, _B) > 0
    faults = variation.in_case("faults", case, _B)
    of_check = Quantity(
        "alternative.check",
        "Place of the plan check",
        "number",
        where(all_of(invalid, faults <= 0), first, last),
        "that of memory where all hold",
    )
    place = Quantity(
        "alternative.place", "Place of the reason", "number", where(faults > 0, of_inputs, of_check)
    )
    why = _told("why", "Why it cannot be", index(span(meanings), place))
    return Alternative(
        accelerator=accelerator,
        price=price,
        used=used,
        guards=guards,
        finding=tuple(
            _finding(
                (is_known, is_price),
                InCase(guards.faults.message, case, "as typed"),
                is_possible,
                names,
                why,
                words,
                change,
            )
        ),
        constants=(NO_OVERRIDE, USUAL_SYSTEM, *meanings, of_inputs, last),
        worked_out=(*unmasked.values(), of_check, place, why, *words.values()),
        names=names,
        lines=lines,
        variation=variation,
    )


def how_to_keep(figures: Alternative, case: int, letter: str, name: str, cells: str, prices: str) -> Quantity:
    """What to type so that a ready column is the alternative, in words.

    Args:
        letter: of the column.
        name, cells, prices: the cells of its name, of its accelerators, and of what an hour costs.
    """
    chip = InCase(figures.used[1], case, _B)
    price = f" over {cells}; a price of your own over that of the basis, {prices}."
    words = join(f"To keep it as scenario {letter}: type a name over {name}, ", chip, price)
    return _told("keep", "How to keep it", words)


def _used(
    graph: EstimateGraph, accelerator: Input, price: Input, guards: ChoiceTyped
) -> tuple[Quantity, ...]:
    """What holds of what is typed: an accelerator of the library, else that of A; a price that can be, else
    that of the library. Cells that cannot be count among those of B.
    """
    is_known, is_price = (guards.valid[cell.id] for cell in (accelerator, price))
    chosen = where(is_known > 0, accelerator, graph.inputs.accelerator)
    number = Quantity(
        "alternative.price_typed",
        "Price typed, 0 where there is none",
        price.unit,
        where(all_of(is_number(price), is_price > 0), price, 0),
    )
    offered = where(number > 0, number, NO_OVERRIDE)
    return (
        number,
        _told("accelerator_used", "Accelerator B, as it is used", chosen),
        Quantity("alternative.price_used", "Price of an accelerator B, as it is used", price.unit, offered),
        _faults("inputs", graph.typed.faults.count, is_known),
        _faults("money", graph.typed.of_money.count, is_price),
    )


def _faults(name: str, of_base: Quantity, valid: Quantity) -> Quantity:
    """Cells that cannot be: those of A, and what is typed of B."""
    return Quantity(f"alternative.faults.{name}", f"{of_base.label}, with B", "flag", of_base + (1 - valid))


def _replaced(graph: EstimateGraph, used: tuple[Quantity, ...]) -> Iterator[tuple[Named, Named]]:
    """What stands for inputs of the base scenario, for all of its accelerators."""
    _, accelerator, price, faults, of_money = used
    yield graph.typed.faults.count, faults
    yield graph.typed.of_money.count, of_money
    for workers in graph.workers:
        yield workers.inputs.accelerator, accelerator
        yield workers.inputs.system, USUAL_SYSTEM
        for overridable in workers.overridable():
            is_price = overridable.id.removeprefix("decode.").removeprefix("hardware.") in _OF_HOURS
            yield overridable.cell, price if is_price else NO_OVERRIDE


def _compared(key: str, result: Shown, there: Node) -> Compared:
    base = Quantity(
        f"alternative.a.{key}", f"{result.label}, A", result.unit, result.of(InCase(result.figure, 0, _A))
    )
    other = Quantity(f"alternative.b.{key}", f"{result.label}, B", result.unit, there)
    known = all_of(is_number(base), is_number(other), base > 0)
    change = Quantity(
        f"alternative.change.{key}",
        f"{result.label}, B against A",
        "1",
        where(known, other / base - 1, NOT_KNOWN),
    )
    return Compared(result, base, other, change)


def _told(name: str, label: str, value: Node) -> Quantity:
    return Quantity(f"alternative.{name}", label, "1", value)


def _finding(
    can_be: tuple[Node, Node],
    fault: Node,
    possible: Node,
    names: Mapping[str, tuple[Quantity, Quantity]],
    why: Quantity,
    words: Mapping[str, Quantity],
    change: Mapping[str, Quantity],
) -> Iterator[Quantity]:
    """What the alternative comes to: which it is, whether it can be, cost, speed and throughput.

    Args:
        can_be: accelerator and price, as they are typed; `fault` the first of them that cannot be, in words.
    """
    is_known, is_price = can_be
    name_a, name_b = names["Accelerator"]
    which = join(name_b, " in place of ", name_a)
    yield _told("finding.name", "Which", where(all_of(is_known, is_price), which, join("! ", fault)))
    verdict = where(possible, join("✓ possible: ", names["Plan"][1]), join("! not possible: ", why))
    yield _told("finding.plan", "Whether it can be", verdict)
    for key, label in _FOUND.items():
        known = where(is_number(change[key]), words[key], f"{label}: not known")
        yield _told(f"finding.{key}", label, known)


def _words(change: Mapping[str, Quantity]) -> dict[str, Quantity]:
    """Changes in words, with their sign."""
    return {
        key: _told(
            f"words.{key}",
            f"{label}, in words",
            join(
                f"{label} ",
                where(number_of(change[key]) > 0, "+", ""),
                percent(number_of(change[key]), 0),
            ),
        )
        for key, label in _FOUND.items()
    }


def _meanings(graph: EstimateGraph) -> tuple[Input, ...]:
    """What each plan check means that does not hold, in the order of the codes; then memory, and inputs."""
    plan = [check for check in graph.checks.checks if check.group == PLAN]
    texts = [REASONS[check.reason].meaning for check in plan] + [
        REASONS[code].meaning for code in ("MEMORY_EXCEEDED", "INPUT_INVALID")
    ]
    return tuple(
        Input(f"alternative.meaning.{place}", f"Meaning {place}", "1", text, shared=True, fixed=True)
        for place, text in enumerate(texts, 1)
    )
