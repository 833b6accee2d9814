"""The base scenario on another accelerator, chosen in a cell: as if it had been built for that one."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import DEFAULTS, Make, few_of
from live import as_written, few, typed_into
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.alternative import ACCELERATOR, COMPARED, PRICE
from mantile.equations.reasons import REASONS
from mantile.estimates.alternative import first_alternative
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import NOT_KNOWN, Quantity
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.edits import edited
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.alternative import ALTERNATIVE
from mantile.workbook.sheets.folding import WHAT_IF

OVERRIDDEN = [
    {"id": "hardware.memory_bandwidth", "value": 2500.0, "reason": "measured here"},
    {"id": "hardware.price_cloud", "value": 1.0, "reason": "an offer for A"},
    {"id": "efficiency.step_host", "value": 500.0, "reason": "measured here"},
]
SHAPES: dict[str, dict[str, Any]] = {
    "overridden": {"overrides": OVERRIDDEN, "system": "hgx-h100"},
    "apart at a rate": {"request_rate": 2.0, "concurrency": None, "decode": {"tp": 4}},
    "devices": {"devices": [{}, {"accelerator": "b200-sxm", "count": 8}], "device_split": "even"},
}


def made(**fields: Any) -> Estimate:
    """An estimate on a small library."""
    given = {key: value for key, value in (DEFAULTS | fields).items() if value is not None}
    return estimate(parse_scenario(given, "alternative"), library=few())


@pytest.fixture(scope="module", params=few_of(SHAPES, "overridden"))
def shape(request: pytest.FixtureRequest) -> tuple[dict[str, Any], EstimateBook]:
    """A workbook of each shape."""
    fields = SHAPES[request.param]
    return fields, lay_out(made(**fields))


def shown(book: EstimateBook, accelerator: str, price: float | None = None, **typed: Any) -> dict[str, Any]:
    """What the sheet says once an accelerator is chosen, by ids without their beginning."""
    inputs = book.generated_inputs()
    case = next(number for number, given in enumerate(inputs) if ACCELERATOR in given)
    inputs[case] |= {ACCELERATOR: accelerator, PRICE: price}
    inputs[0] |= typed
    across = book.values(inputs)[-1]
    return {
        figure.id.removeprefix("alternative."): across[figure.body]
        for figure in book.addresses
        if isinstance(figure, Quantity) and figure.id.startswith("alternative.") and figure.body in across
    }


@pytest.mark.parametrize("accelerator", ["mi300x", "rtx-4090"])
def test_it_is_as_if_built_for_that_one(shape: tuple[dict[str, Any], EstimateBook], accelerator: str) -> None:
    """Every result, whether it can be and why not; overrides of A are none of B's."""
    fields, book = shape
    there = made(**fields | {"accelerator": accelerator, "system": "default", "overrides": []})
    values, figures, said = there.values(), there.equations.figures, shown(book, accelerator)
    for metric in COMPARED:
        value = metric.known(values[metric.of(figures)])
        found = said[f"b.{metric.attribute}"]
        expected = NOT_KNOWN if value is None else metric.shown(value)
        assert found == (expected if value is None else pytest.approx(expected, rel=1e-12)), metric.label
    plan = values[there.equations.rows["checks.reason"]]
    assert said["b.plan"] == plan
    possible = values[there.equations.rows["checks.possible"]] > 0
    assert said["finding.plan"].startswith("✓ possible" if possible else "! not possible: ")
    if not possible:
        code = "MEMORY_EXCEEDED" if plan == "insufficient_memory" else str(plan).removeprefix("DECODE_")
        meaning = REASONS[code].meaning
        assert said["finding.plan"] == f"! not possible: {meaning}"
        assert said["finding.tpot"] == "TPOT: not known"


def test_a_itself_is_no_change(shape: tuple[dict[str, Any], EstimateBook]) -> None:
    """Without overrides B on the accelerator of A is A; with them the sheet says what they do."""
    fields, book = shape
    said = shown(book, "h100-sxm")
    changes = {key: value for key, value in said.items() if key.startswith("change.")}
    if "overrides" in fields:
        assert changes["change.tpot"] < 0 and changes["change.price"] == pytest.approx(1.95)
    else:
        assert changes and set(changes.values()) == {0}
        assert said["finding.tpot"] == "TPOT 0%"


@pytest.mark.exhaustive
def test_an_offer_for_b_is_its_price(shape: tuple[dict[str, Any], EstimateBook]) -> None:
    """Whatever the library says, and where it says nothing; A pays what it paid."""
    fields, book = shape
    for chip in ("b200-sxm", "m3-ultra"):
        without, said = shown(book, chip), shown(book, chip, 2.0)
        assert said["b.price"] == 2.0 and said["a.usd_per_hour"] == without["a.usd_per_hour"]
    half, full = shown(book, "b200-sxm", 2.0), shown(book, "b200-sxm", 4.0)
    once, twice = (one["b.usd_per_million_output_tokens"] for one in (half, full))
    if "devices" in fields:  # the other device costs what it did
        assert once < twice < 2 * once
    else:
        assert twice == pytest.approx(2 * once)
    assert half["finding.usd_per_million_output_tokens"].startswith("Cost per million output tokens ")


@pytest.mark.exhaustive
def test_it_follows_the_inputs_of_a(shape: tuple[dict[str, Any], EstimateBook]) -> None:
    """Longer outputs, and an override of A that says nothing of B."""
    _, book = shape
    before, after = shown(book, "b200-sxm"), shown(book, "b200-sxm", **{"inputs.input_tokens": 4096.0})
    assert after["b.ttft"] > before["b.ttft"] and after["a.ttft"] > before["a.ttft"]
    cells = [f"{of}hardware.memory_bandwidth.override" for of in ("", "decode.")]
    typed = shown(book, "b200-sxm", **dict.fromkeys(cells, 1000.0))
    assert typed["a.tpot"] > before["a.tpot"] and typed["b.tpot"] == before["b.tpot"]


def cell_of(book: EstimateBook, identifier: str) -> tuple[str, int, int]:
    """Where something of the alternative is typed."""
    return next(place for (of, _), place in book.input_cells.items() if of == identifier)


def named(book: EstimateBook, identifier: str) -> str:
    """How messages name this cell."""
    sheet, row, column = cell_of(book, identifier)
    return f"{book.own_inputs[identifier].label}, {sheet}!{xl_rowcol_to_cell(row, column)}"


def of(side: str, said: dict[str, Any]) -> dict[str, Any]:
    """The figures of A or of B."""
    return {key: value for key, value in said.items() if key.startswith(f"{side}.")}


@pytest.mark.parametrize("typed", ["", 7.0])
def test_what_is_no_accelerator_makes_the_choice_invalid(
    shape: tuple[dict[str, Any], EstimateBook], typed: Any
) -> None:
    """Its cell is named and nothing is known of B, whatever the price; of A all is as it was."""
    _, book = shape
    right = shown(book, "b200-sxm")
    for price in (None, -1.0):
        said = shown(book, typed, price)
        held = f"{typed:g}" if isinstance(typed, float) else typed
        words = f"! {named(book, ACCELERATOR)} holds '{held}'; expected a100-80gb-sxm, "
        assert said["finding.name"].startswith(words)
        assert said["finding.plan"] == f"! not possible: {REASONS['INPUT_INVALID'].meaning}"
        assert set(of("b", said).values()) == {NOT_KNOWN} and of("a", said) == of("a", right)
        assert {value for key, value in said.items() if key.startswith("change.")} == {NOT_KNOWN}
        assert said["finding.tpot"] == "TPOT: not known"


@pytest.mark.parametrize("typed", [0, "2,5 USD", 1e9])
def test_with_a_price_that_cannot_be_nobody_knows_what_b_costs(
    shape: tuple[dict[str, Any], EstimateBook], typed: Any
) -> None:
    """Its cell is named; power and money of B are not known, and nothing else changes."""
    fields, book = shape
    right, said = shown(book, "b200-sxm"), shown(book, "b200-sxm", typed)
    assert said["finding.name"].startswith(f"! {named(book, PRICE)} holds '")
    assert said["finding.name"].endswith(
        "expected a number from 0.001 to 1,000,000 in USD/h, or an empty cell"
    )
    assert said["finding.plan"] == right["finding.plan"] and of("a", said) == of("a", right)
    was, now = of("b", right), of("b", said)
    paid = {key for key in was if "usd" in key or key in ("b.price", "b.power")}
    paid |= {"b.price1"} if "decode" in fields else set()  # of decode workers; other devices are those of A
    assert {now[key] for key in paid} == {NOT_KNOWN} and len(paid) >= 7
    assert {key for key in was if was[key] != now[key]} == paid
    assert said["finding.usd_per_million_output_tokens"] == "Cost per million output tokens: not known"


def test_formulas_say_the_same_of_what_cannot_be(shape: tuple[dict[str, Any], EstimateBook]) -> None:
    """In every cell that somebody sees; put back, the sheet is as it was."""
    _, book = shape
    model = CompiledSheets(as_written(book).contents)
    cells = [cell_of(book, identifier) for identifier in (ACCELERATOR, PRICE)]
    places = {
        figure.id.removeprefix("alternative."): (place.sheet, place.row, place.column)
        for figure, place in book.addresses.items()
        if figure.id.startswith("alternative.") and place.column is not None
    }
    for typed in (("h1000", 2.0), ("b200-sxm", "2,5 USD"), ("b200-sxm", -1.0), ("b200-sxm", 2.0)):
        found = model.calculate([WHAT_IF], dict(zip(cells, typed, strict=True)))
        said = shown(book, *typed)
        seen = {key: found[places[key]] for key in said if key in places}
        assert len(seen) > 40
        for key, value in seen.items():
            expected = said[key] if isinstance(said[key], str) else pytest.approx(said[key], rel=1e-9)
            assert value == expected, (typed, key)


@pytest.mark.exhaustive
def test_the_choice_is_typed_and_comes_back(shape: tuple[dict[str, Any], EstimateBook]) -> None:
    """From a list of all accelerators of the library; into a scenario, and from it into a workbook."""
    _, book = shape
    places = {of: place for (of, _), place in book.input_cells.items() if of in (ACCELERATOR, PRICE)}
    cells = {of: book.sheets[sheet].cells[row, column] for of, (sheet, row, column) in places.items()}
    assert all(cell.style.unlocked for cell in cells.values())
    entry = cells[ACCELERATOR].entry
    assert entry is not None and book.library_choices(entry) is not None
    typed = typed_into(as_written(book), {places[ACCELERATOR]: "mi300x", places[PRICE]: 1.5})
    now = edited(typed)
    assert {change["id"] for change in now.changes} == {ACCELERATOR, PRICE}
    assert now.scenario.alternative is not None
    again = lay_out(estimate(now.scenario, library=few()))
    assert {ACCELERATOR: "mi300x", PRICE: 1.5} in again.generated_inputs()


def test_the_first_alternative_is_one_that_can_be_priced(make: Make) -> None:
    """The next faster of the same maker; what the scenario asks for; an error that names what there is."""
    assert first_alternative(make()) == "h200-sxm"
    assert first_alternative(make(alternative={"accelerator": "mi300x"})) == "mi300x"
    with pytest.raises(InputError, match=r"alternative: .*b2000"):
        first_alternative(make(alternative={"accelerator": "b2000"}))
    alone = estimate(
        parse_scenario(DEFAULTS, "alone"),
        library=few(("h100-sxm",)),
    )
    assert first_alternative(alone) is None and ALTERNATIVE not in lay_out(alone).sheets[WHAT_IF].parts
