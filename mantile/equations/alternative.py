"""The base scenario on another accelerator: what is typed, and its figures made again.

The rows that set both beside each other stand in alternative.eq.
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
from mantile.equations.tables import Equations, Space
from mantile.equations.typed.choice import ChoiceTyped, choice_typed
from mantile.equations.variation import Variation, Variations
from mantile.graph.excel import Cells
from mantile.graph.quantity import InCase, Input, Named, Quantity, defined, join, span

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
_A, _B, NAMES = "of A", "of B", ("Accelerator", "System", "Plan")


@dataclass(frozen=True)
class Alternative:
    """The base scenario and the same on another accelerator.

    Args:
        accelerator, price: what is typed: which it is, and what an hour of one costs if the library's price
            does not hold.
        guards: what the cells hold, and whether it can be.
        results: by their names in ids.
        meanings: of what makes it impossible, and their places.
        rows: where those of alternative.eq are.
        variation: every figure that follows.
    """

    accelerator: Input
    price: Input
    guards: ChoiceTyped
    results: Mapping[str, Shown]
    meanings: tuple[Input, ...]
    rows: Equations
    variation: Variation

    def __getitem__(self, name: str) -> Quantity:
        return self.rows[f"alternative.{name}"]

    @property
    def constants(self) -> tuple[Input, ...]:
        """What stands for what is stated of A, and meanings."""
        (section,) = self.rows.sections("alternative", "Constants")
        return (*(figure for figure in section.figures() if isinstance(figure, Input)), *self.meanings)

    def figures(self, *titles: str) -> Iterator[Quantity]:
        """The rows of some blocks, in order."""
        for section in self.rows.sections("alternative", *titles):
            yield from (figure for figure in section.figures() if isinstance(figure, Quantity))


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
    graph: EstimateGraph, inputs: tuple[Input, Input], case: int, currency: Currency, cells: Cells | None
) -> Alternative:
    """The base scenario on another accelerator.

    Args:
        inputs: what is typed.
        case: the number of the case.
        cells: where figures stand; None where nobody lays them out.
    """
    accelerator, price = inputs
    machine, rows = graph.decode_workers.rows, graph.rows.fork()
    chips = graph.prefill_workers.hardware.ids["accelerator"]
    guards = choice_typed(inputs, chips, "alternative", "the alternative")
    meanings = tuple(_meanings(graph))
    faults = {"inputs": graph.typed.faults.count, "money": graph.typed.of_money.count}
    rows.know(*inputs, *guards.rows, *meanings, *faults.values())
    rows.know_as("alternative.codes", span(graph.checks.codes))
    typed_cells = {"known": guards.valid[ACCELERATOR], "priced": guards.valid[PRICE]}
    for name, figure in (typed_cells | {"fault": guards.faults.message}).items():
        rows.know_as(f"alternative.{name}", InCase(figure, case, "as typed"))
    facts = {f"{name}_faults": figure.id for name, figure in faults.items()}
    facts |= {f"{name}_label": figure.label for name, figure in faults.items()}
    rows.make_in("alternative", Space(facts=facts))
    texts = dict(
        zip(
            NAMES,
            (machine["hardware.name"], machine["hardware.system"], graph.rows["checks.reason"]),
            strict=True,
        )
    )
    rows.make_in("name", *(_name(name, figure) for name, figure in texts.items()))
    of_metrics = {
        metric.attribute: metric.on(graph.figures, metric.attribute, currency, metric.label)
        for metric in COMPARED
    }
    prices = {
        key: Shown(key, figure.label, figure.unit, figure, currency, 2)
        for place, figure in enumerate(graph.rows.each("pool", "cost.price"))
        for key in (f"price{place or ''}",)
    }
    flags = {
        "possible": graph.rows["checks.possible"],
        "invalid": graph.figures["checks.invalid"],
        "faults": graph.checks.faults.count,
    }
    results = prices | of_metrics
    others = {name.lower(): figure for name, figure in texts.items()}
    wanted: dict[str, Named] = {key: of.figure for key, of in of_metrics.items()}
    wanted |= others | {key: of.figure for key, of in prices.items()} | flags
    variation = Variations(graph, wanted, cells).vary(
        dict(_replaced(graph, rows, faults)), "alternative.", " · B"
    )
    for name in others | flags:
        rows.know_as(f"on_b.{name}", variation.in_case(name, case, _B))
    for key, of in results.items():
        rows.know_as(f"shown.a.{key}", of.of(InCase(of.figure, 0, _A)))
        rows.know_as(f"shown.b.{key}", of.of(variation.in_case(key, case, _B)))
    of_b = {*prices} if graph.devices is None else {"price"}  # other devices are those of A
    apart = {*prices, *_WITHOUT_PLAN}
    spaces = {key: _result(of, key in apart, key in of_b) for key, of in results.items()}
    rows.make_in("result", *spaces.values())
    return Alternative(accelerator, price, guards, results, meanings, rows, variation)


def _name(name: str, figure: Quantity) -> Space:
    return Space(facts={"name": name.lower(), "label": name, "figure": figure.id})


def _result(of: Shown, apart: bool, of_b: bool) -> Space:
    """Where the rows of a result are made.

    Args:
        apart: whether it is known where the plan cannot be.
        of_b: whether it follows from the price of B.
    """
    has = {"known_apart": apart, "of_price": of_b}
    facts = {"key": of.key, "label": of.label, "unit": of.unit}
    return Space(facts=facts, features=frozenset(name for name, is_so in has.items() if is_so))


def how_to_keep(figures: Alternative, case: int, letter: str, name: str, cells: str, prices: str) -> Quantity:
    """What to type so that a ready column is the alternative, in words.

    Args:
        letter: of the column.
        name, cells, prices: the cells of its name, of its accelerators, and of what an hour costs.
    """
    chip = InCase(figures["accelerator_used"], case, _B)
    price = f" over {cells}; a price of your own over that of the basis, {prices}."
    words = join(f"To keep it as scenario {letter}: type a name over {name}, ", chip, price)
    return Quantity("alternative.keep", "How to keep it", "1", words)


def _replaced(
    graph: EstimateGraph, rows: Equations, faults: Mapping[str, Quantity]
) -> Iterator[tuple[Named, Named]]:
    """What stands for inputs of the base scenario, for all of its accelerators."""
    names = ("accelerator_used", "system", "price_used", "no_override")
    accelerator, system, price, none = (rows.figure(f"alternative.{name}") for name in names)
    for name, figure in faults.items():
        yield figure, rows[f"alternative.faults.{name}"]
    for workers in graph.workers:
        yield workers.inputs.accelerator, accelerator
        yield workers.inputs.system, system
        for overridable in workers.overridable():
            is_price = overridable.id.removeprefix("decode.").removeprefix("hardware.") in _OF_HOURS
            yield overridable.cell, price if is_price else none


def _meanings(graph: EstimateGraph) -> Iterator[Input]:
    """What each plan check means that does not hold, in the order of the codes; then memory, and inputs."""
    codes = [check.reason for check in graph.checks.checks if check.group == PLAN]
    codes += ["MEMORY_EXCEEDED", "INPUT_INVALID"]
    for place, code in enumerate(codes, 1):
        yield defined(f"alternative.meaning.{place}", f"Meaning {place}", "1", REASONS[code].meaning)
    for name, place in (("inputs", len(codes)), ("memory", len(codes) - 1)):
        yield defined(f"alternative.meanings.{name}", f"Place of {name}", "number", place)
