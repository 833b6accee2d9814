"""What is said of prices: who asks them, where, when, what others ask, and an alert where they are old."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from live import as_written, edit, few, place

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.results import raised
from mantile.estimates.sweep import sweep
from mantile.graph.quantity import NOT_KNOWN
from mantile.library.dates import day_of, serial
from mantile.library.documents import load
from mantile.library.errors import InputError
from mantile.library.likeness import write_likeness
from mantile.library.profile_facts import PriceFact, check_sources
from mantile.library.profiles import Library, Prices, data_folder, load_library
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.bundle import Bundle
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import write_workbook

H100 = data_folder("profiles") / "prices" / "h100-sxm.yaml"
CHIPS = ("h100-sxm", "mi355x", "t4")
BASES = {"cloud": "cloud", "rental": "rental", "owned": "purchase"}
FIELDS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 200,
    "concurrency": 16,
    "as_of": "2026-11-19",
}


def ask(library: Library | None = None, **fields: Any) -> Estimate:
    return estimate(parse_scenario(FIELDS | fields, "test"), library=library)


def codes(made: Estimate) -> set[str]:
    return {alert["code"] for alert in made.results()["checks"]["alerts"]}


@pytest.mark.parametrize("part", ["provider", "region", "term"])
def test_a_price_that_is_silent_of_something_is_refused(tmp_path: Path, part: str) -> None:
    """With file and field; null says that nobody states it."""
    text = re.sub(rf'{part}: (?:null|"[^"]*"), ', "", H100.read_text(encoding="utf-8"), count=1)
    (tmp_path / "h100-sxm.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"h100-sxm\.yaml: field cloud: says nothing of {part}; expected"):
        check_sources(load(Prices, tmp_path / "h100-sxm.yaml"), str(tmp_path / "h100-sxm.yaml"))


@pytest.mark.parametrize(
    "basis", ["cloud", *(pytest.param(basis, marks=pytest.mark.exhaustive) for basis in ("rental", "owned"))]
)
def test_cost_says_what_the_file_says_of_the_price_in_use(library: Library, basis: str) -> None:
    """Of every accelerator: provider, region, term, day, lowest and highest of others; else not known."""
    made = ask()
    figures = {part: made.figure(f"cost.offer_{part}") for part in ("provider", "region", "term", "day")}
    ends = {part: made.figure(f"cost.offer_{part}") for part in ("lowest", "highest")}
    cases = [{"inputs.accelerator": chip.id, "inputs.price_basis": basis} for chip in library.accelerators]
    told = 0
    for chip, values in zip(library.accelerators, map(made.program.run, cases), strict=True):
        price = library.price(chip.id)
        fact: PriceFact | None = getattr(price, BASES[basis]) if price else None
        if values[made.figure("cost.price")] == NOT_KNOWN:  # nor can it be worked out
            fact = None
        for part in ("provider", "region", "term"):
            assert values[figures[part]] == ((fact and getattr(fact, part)) or NOT_KNOWN), chip.id
        known = fact is not None and fact.status != "assumed"
        assert values[figures["day"]] == (serial(fact.date) if fact and known else NOT_KNOWN), chip.id
        others = [other.value for other in fact.others if not isinstance(other.value, str)] if fact else []
        others = others if basis != "owned" else []
        assert values[ends["lowest"]] == (min(others) if others else NOT_KNOWN), chip.id
        assert values[ends["highest"]] == (max(others) if others else NOT_KNOWN), chip.id
        told += fact is not None
    assert told > 8


@pytest.mark.parametrize(
    ("fields", "old"),
    [
        ({}, False),  # 90 days
        ({"as_of": "2026-11-20"}, True),
        ({"as_of": date(2026, 8, 1)}, False),
        ({"accelerator": "t4"}, True),  # a price that nobody read has no day
        ({"accelerator": "mi355x", "as_of": "2030-01-01"}, False),  # there is none
        ({"price_basis": "rental"}, True),
        (
            {
                "as_of": "2030-01-01",
                "overrides": [{"id": "hardware.price_cloud", "value": 2, "reason": "offered today"}],
            },
            False,
        ),
    ],
)
def test_an_old_price_raises_an_alert(fields: dict[str, Any], old: bool) -> None:
    """After 90 days, or where nobody knows its day; one that was typed by hand is one's own affair."""
    assert ("PRICE_OLD" in codes(ask(few(CHIPS), **fields))) == old


@pytest.mark.parametrize("basis", ["cloud", "rental"])
def test_a_price_of_the_scenario_is_of_one_accelerator(basis: str) -> None:
    """On its basis, and one's own; in an estimate, beside another accelerator, and in a sweep over both."""
    prices = {"mi355x": 1.25, "H100": 9.0}
    variants = [
        {"accelerator": "mi355x"},
        {"accelerator": "t4", "weights_dtype": "q4_0", "framework": "llama.cpp"},
    ]
    made = ask(price_basis=basis, prices=prices, variants=variants)
    paid = [made.values(column)[made.figure("cost.price")] for column in range(3)]
    t4 = load_library().price("t4")
    own = getattr(t4, basis)
    assert paid == [9.0, 1.25, NOT_KNOWN if own is None else own.value]
    assert made.values()[made.figure("cost.offer_provider")] == "typed by hand"
    assert not {"PRICE_OLD", "PRICE_UNKNOWN"} & codes(made)
    fields = {key: value for key, value in FIELDS.items() if key != "accelerator"}
    over = {"accelerator": ["h100-sxm", "mi355x"]}
    table = sweep(
        parse_scenario(fields | {"accelerator": "l4", "price_basis": basis, "prices": prices}, "test"), over
    )
    assert (table["usd_per_hour"] / table["accelerators"]).tolist() == pytest.approx([9.0, 1.25])
    typed = {"overrides": [{"id": f"hardware.price_{basis}", "value": 2, "reason": "offered"}]}
    with pytest.raises(InputError, match="would hold for all 2 accelerators; expected a price for each"):
        sweep(parse_scenario(FIELDS | typed, "test"), over)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"prices": {"h100-sxm": 0}}, "prices"),
        ({"prices": {"no-such": 2}}, "field prices: unknown accelerator 'no-such'"),
        ({"prices": {"h100-sxm": 2, "H100 SXM": 3}}, "named twice"),
        ({"prices": {"h100-sxm": 2}, "price_basis": "owned"}, "expected price_basis cloud or rental"),
    ],
)
def test_a_price_that_cannot_be_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ask(**fields)


@pytest.mark.parametrize("chip", ["mi355x", "m3-ultra", "h20-sxm", "l40"])
def test_an_unknown_price_names_the_bases_on_which_there_is_one(chip: str) -> None:
    """With each basis that is named, and no other, a price is known; a published cost of owning is none."""
    made = ask()

    def told(basis: str) -> tuple[bool, str]:
        values = made.program.run(made.inputs(0) | {"inputs.accelerator": chip, "inputs.price_basis": basis})
        alerts = {one["code"]: one["message"] for one in raised(made.equations, values, errors=False)}
        return values[made.figure("cost.price")] != NOT_KNOWN, alerts.get("PRICE_UNKNOWN", "")

    message = told("cloud")[1]
    known = [basis for basis in ("rental", "owned") if told(basis)[0]]
    named = re.findall(r"--price-basis (\w+)(?: or (\w+))?", message)
    assert [one for one in (named[0] if named else ()) if one] == known, message


def test_without_a_day_asked_for_it_is_the_day_on_which_the_workbook_was_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And stays that when it is read on a later day."""
    fields = {key: value for key, value in FIELDS.items() if key != "as_of"}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1787400000")  # 2026-08-22
    bundle = Bundle.of(estimate(parse_scenario(fields, "test"), library=few(CHIPS)))
    assert "as_of" not in bundle.data["scenario"] and bundle.made_on == "2026-08-22"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1893456000")  # 2030
    read = bundle.estimate()
    assert day_of(read.values()[read.equations.inputs.as_of]).isoformat() == "2026-08-22"
    assert "PRICE_OLD" not in codes(read)
    assert "PRICE_OLD" in codes(estimate(read.scenario, library=read.library))


@pytest.mark.exhaustive
def test_a_later_day_typed_into_the_workbook_raises_the_alert(tmp_path: Path) -> None:
    """In every formula, natively the same, and read back into a scenario as a day."""
    made = ask(few(CHIPS))
    book = lay_out(made)
    model = CompiledSheets(as_written(book).contents)
    check = next(check for check in made.equations.checks.checks if check.code == "PRICE_OLD")
    where = book.addresses[check.result]
    cell = place(book, "inputs.as_of")
    later = serial(date(2027, 1, 1))
    for day, holds in ((serial(date(2026, 11, 19)), 1), (later, 0)):
        solution = model.calculate(book.sheets, {cell: day})
        assert solution[where.sheet, where.row, _column(book)] == holds
        assert made.program.run({"inputs.as_of": day})[check.result] == holds

    def change(opened: Any) -> None:
        opened[cell[0]].cell(cell[1] + 1, cell[2] + 1).value = date(2027, 1, 1)  # as a person types it

    edited = edit(write_workbook(book, tmp_path / "run.xlsx"), tmp_path / "edited.xlsx", change)
    imported = import_workbook(edited)
    assert imported.estimate.scenario.as_of == later and "PRICE_OLD" in codes(imported.estimate)
    assert imported.estimate.scenario.model_dump(mode="json")["as_of"] == "2027-01-01"


def _column(book: EstimateBook) -> int:
    return place(book, "inputs.as_of")[2]


def test_a_price_that_was_told_when_a_chip_was_added_is_ones_own(tmp_path: Path) -> None:
    """No alert on the same day, nor later; of one that is assumed it says so."""
    library = load_library()
    write_likeness(
        "my-chip", "b200-sxm", {"peak_fp8": 2000.0}, 30_000.0, tmp_path, library, date(2026, 8, 22)
    )
    fields = FIELDS | {"accelerator": str(tmp_path / "my-chip.yaml"), "price_basis": "owned"}
    assert "PRICE_OLD" not in codes(estimate(parse_scenario(fields, "test")))
    alerts = estimate(parse_scenario(FIELDS | {"accelerator": "t4"}, "test")).results()["checks"]["alerts"]
    assert any("is assumed, nobody read it" in alert["message"] for alert in alerts)
