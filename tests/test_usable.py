"""A workbook that people use: what they see first, what they may do, what fits a screen and a page."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import few

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.scenario import parse_scenario
from mantile.roundtrip.import_workbook import import_workbook
from mantile.verification.verify import verify
from mantile.workbook import style
from mantile.workbook.book import ANSWERS, FIRST, HEAD_ROW, SHARED, Cell, Sheet
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.folding import EFFICIENCY, FOLDED, OUTLINED
from mantile.workbook.sheets.workings import HOW
from mantile.workbook.text_width import height, lines, width
from mantile.workbook.write import build_workbook, page_breaks, print_scale, printed_width, screen_zoom

BASE: dict[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
TWO = BASE | {"variants": [{"name": "two replicas of TP4", "tp": 4, "dp": 2, "accelerator": "mi300x"}]}
# Layers of four kinds, of up to 35 steps, and 42 kinds of module.
MANY = BASE | {"model": "deepseek-v4-flash", "accelerator": "mi355x", "ep": 8}
CHIPS = ("h100-sxm", "mi300x")
SCENARIOS = {"one": BASE, "two": TWO, "many": MANY}
_A4_WIDTH = 1047  # pixels between the margins
_SCREEN = 1366 - 90  # pixels without numbers of rows, signs of outlines and the bar to scroll
_COLUMN = 64  # pixels of a column of which nothing is said
_LEAST = 7.0  # points of the smallest text, on paper and screen


@pytest.fixture(scope="module")
def estimates() -> dict[str, Estimate]:
    return {name: estimate(parse_scenario(asked, name)) for name, asked in SCENARIOS.items()}


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workbook of a scenario, with a library of few accelerators."""
    made = estimate(parse_scenario(BASE, "one"), library=few(CHIPS))
    return build_workbook(made, tmp_path_factory.mktemp("one") / "run.xlsx")


@pytest.fixture(scope="module")
def books(estimates: dict[str, Estimate]) -> dict[str, EstimateBook]:
    return {name: lay_out(made) for name, made in estimates.items()}


def _folded(sheet: Sheet) -> set[int]:
    return {row for first, last in sheet.folds for row in range(first, last + 1)}


@pytest.mark.exhaustive
def test_answers_stand_first_and_repeat_rows_below(books: dict[str, EstimateBook]) -> None:
    """In the units people quote, live, on every sheet whose workings fold."""
    for book in books.values():
        for name in FOLDED:
            if name == EFFICIENCY:
                continue  # its factors in use stand open themselves
            sheet = book.sheets[name]
            rows = [row for row, section in sheet.sections.items() if section == ANSWERS]
            parts = sheet.parts.values() or [HEAD_ROW]
            assert {head + 3 for head in parts} == {row for row in rows if row - 1 not in rows}
            below = {identifier: row for row, identifier in sheet.ids.items() if row not in rows}
            for row in rows:
                assert below[sheet.ids[row]] > row
                formula = book.formula_text(sheet, sheet.cells[row, FIRST])
                assert f"H{below[sheet.ids[row]] + 1}" in formula
    calculation = books["one"].sheets["Calculation"]
    first = next(row for row, identifier in calculation.ids.items() if identifier == "prefill.time")
    assert calculation.cells[first, 2].text == "ms"


@pytest.mark.exhaustive
def test_of_the_library_what_is_used_stands_open(books: dict[str, EstimateBook]) -> None:
    """Rows of other accelerators, systems and profiles are folded, and stay in the file."""
    for name, chips in (("one", {"h100-sxm"}), ("two", {"h100-sxm", "mi300x"})):
        sheet = books[name].sheets["Hardware"]
        rows = {
            row: identifier.split(".")[1]
            for row, identifier in sheet.ids.items()
            if identifier.startswith("library.") and identifier.count(".") == 1
        }
        assert {chip for row, chip in rows.items() if row not in _folded(sheet)} == chips
        assert len(rows) > 40
    efficiency = books["two"].sheets["Efficiency"]
    shown = {row for row in efficiency.ids if row not in _folded(efficiency)}
    assert {row for row, one in efficiency.ids.items() if one.endswith(".override")} <= shown
    factors = {figure.id for figure in books["two"].estimate.equations.quantities() if figure.factor}
    assert factors <= {efficiency.ids[row] for row in shown}
    heads = {efficiency.cells[HEAD_ROW, column].text: column for column in efficiency.folded_columns}
    assert "ampere" in heads and not {"global", "hopper", "cdna3"} & heads.keys()


@pytest.mark.exhaustive
def test_protection_leaves_what_people_do(one: Path) -> None:
    """Filters, sorting, widths, heights and charts; outlines, which Excel opens on no protected sheet."""
    book = _read(one)
    for sheet in book.worksheets[:-1]:
        outlined = any(size.outlineLevel for size in sheet.row_dimensions.values())
        assert outlined == (sheet.title in OUTLINED), sheet.title
        assert sheet.protection.sheet is not outlined
        if outlined:
            rules = [rule for rule in sheet.data_validations.dataValidation if rule.type == "custom"]
            locked = [cell for row in sheet.iter_rows() for cell in row if cell.protection.locked]
            for kinds, style in (("f", "warning"), ("nd", "stop")):  # formulas ask, fixed figures refuse
                areas = [
                    area
                    for rule in rules
                    if (rule.errorStyle or "stop") == style and rule.formula1 == "0"
                    for area in rule.sqref.ranges
                ]
                guarded = {place for area in areas for place in area.cells}
                held = [cell for cell in locked if cell.data_type in kinds and cell.value is not None]
                assert {(cell.row, cell.column) for cell in held} == guarded, sheet.title
                assert sum(area.size["rows"] for area in areas) == len(guarded)
        else:
            forbidden = ("autoFilter", "sort", "formatColumns", "formatRows", "objects")
            assert not any(getattr(sheet.protection, what) for what in forbidden)
        assert sheet.freeze_panes is not None
        rules = sheet.data_validations.dataValidation
        places = [place for rule in rules for area in rule.sqref.ranges for place in area.cells]
        assert len(places) == len(set(places)), f"{sheet.title}: two rules of one cell"
    for name in ("Hardware", "Efficiency"):
        assert book[name].auto_filter.ref.startswith("A4:F")


@pytest.mark.exhaustive
def test_values_are_seen_on_a_laptop(books: dict[str, EstimateBook]) -> None:
    """The base, and with two scenarios both, beside what they are."""
    for book in books.values():
        for name in book.estimate.equations.sheets:
            assert sum(book.sheets[name].widths[: FIRST + book.columns]) <= _SCREEN
        for sheet in book.sheets.values():
            assert printed_width(sheet) * screen_zoom(sheet) <= 100 * _SCREEN


@pytest.mark.exhaustive
def test_every_text_can_be_read(books: dict[str, EstimateBook]) -> None:
    """At least 7 pt on screen and on A4; fixed texts are seen whole in their cells."""
    for book in books.values():
        for name, sheet in book.sheets.items():
            scale, zoom, folded = _scale(sheet), screen_zoom(sheet) / 100, _folded(sheet)
            clipped = []
            for (row, column), cell in sheet.cells.items():
                if row in folded or not _says_something(cell):
                    continue
                inside = sheet.print_area is None or _within(sheet.print_area, row, column)
                shrunk = _shrunk(sheet, column, cell) if cell.style.shrink else 1
                assert cell.style.size * shrunk * zoom >= _LEAST, (name, row, column)
                assert round(cell.style.size * (scale if inside else 1), 1) >= _LEAST, (name, row, column)
                if inside and cell.text and not _fits(sheet, row, column, cell):
                    clipped.append((name, row, column, cell.text))
            assert clipped == []


@pytest.mark.exhaustive
def test_the_standard_workbook_prints_on_few_pages(books: dict[str, EstimateBook]) -> None:
    """A page a sheet, with what it comes to; two of what is typed, and of the log with its trace."""
    pages = {name: 1 if s.one_page else _pages(s) for name, s in books["one"].sheets.items()}
    assert {name for name, count in pages.items() if count > 1} == {"Inputs", "Audit"}
    assert sum(pages.values()) == 11


@pytest.mark.exhaustive
def test_what_is_printed_answers_what_its_sheet_is_asked(books: dict[str, EstimateBook]) -> None:
    """Answers of Hardware and of Serving, all that is typed on Inputs, lines to sign; below the title."""
    for name, book in books.items():
        printed: dict[str, set[str]] = {}
        for sheet in book.sheets.values():
            assert sheet.print_area is not None
            first, _, last, _ = sheet.print_area
            assert not first or sheet.repeat_rows is None or sheet.repeat_rows[0] == 0, "titles stay"
            folded = _folded(sheet)
            rows = [row for row in range(first, last + 1) if row not in folded]
            printed[sheet.name] = {text for row in rows if (text := sheet.ids.get(row))} | {
                cell.text for (row, _), cell in sheet.cells.items() if row in rows and cell.text
            }
        typed = {one for one in book.sheets["Inputs"].ids.values() if one.startswith("inputs.")}
        shown = {one for one in typed if one in printed["Inputs"]}
        assert {"inputs.accelerator", "inputs.concurrency", "inputs.price_basis"} <= shown
        assert {"serving.ttft", "serving.tpot"} & printed["Calculation"] or {
            "metrics.ttft",
            "metrics.tpot",
        } <= printed["Calculation"]
        assert {"hardware.memory_bandwidth", "hardware.price_cloud"} <= printed["Hardware"]
        assert {"Prepared by", "Reviewed by", "Approved by"} <= printed["Audit"]
        assert ("Comparison" if name == "two" else "Sensitivity") in printed["What-if"]


@pytest.mark.exhaustive
def test_no_head_stands_alone_at_the_end_of_a_page(books: dict[str, EstimateBook]) -> None:
    """Air, the head of a block and its first row stay together; blocks of Layers are not cut."""
    for book in books.values():
        for name, sheet in book.sheets.items():
            cut, folded = set() if sheet.one_page else set(_ends(sheet)[1]), _folded(sheet)
            for first, last in sheet.blocks:
                shown = [row for row in range(first, last + 1) if row not in folded]
                first_row = next((place for place, row in enumerate(shown) if row in sheet.ids), 0)
                together = shown[1:] if name == "Layers" else shown[1 : max(3, first_row + 1)]
                assert not cut & set(together), (name, first)


@pytest.mark.exhaustive
def test_a_column_stands_ready_for_a_further_scenario(one: Path, tmp_path: Path) -> None:
    """Typing a value is enough; without one there is no scenario."""
    assert import_workbook(one).added == ()
    path, book = tmp_path / "run.xlsx", _read(one)
    row = _row(book, "Inputs", "inputs.tp")
    cell = book["Inputs"].cell(row, FIRST + 2)
    assert cell.value == f"=$H{row}" and not cell.protection.locked
    cell.value = 4
    book.save(path)
    imported = import_workbook(path)
    assert imported.added == ("Scenario B",) and imported.left_out == ()
    assert [column.values["tp"] for column in imported.estimate.columns] == [8, 4]
    assert [edit["found"] for edit in verify(path).inputs] == [4]
    book["Inputs"].cell(HEAD_ROW + 1, FIRST + 2).value = "half"
    book.save(path)
    assert import_workbook(path).added == ("half",)


@pytest.mark.exhaustive
def test_reasons_are_typed_beside_overrides(tmp_path: Path) -> None:
    """Kept by import, for all scenarios or by letter; shown again, on Assumptions and Log as well."""
    made = estimate(parse_scenario(TWO, "two"), library=few(CHIPS))
    path = build_workbook(made, tmp_path / "run.xlsx")
    book = _read(path)
    compute, price = (
        (sheet, _row(book, sheet, identifier))
        for sheet, identifier in (
            ("Efficiency", "efficiency.gemm_compute.override"),
            ("Hardware", "hardware.price_cloud.override"),
        )
    )
    for (sheet, row), values, reason in (
        (compute, (0.7, 0.5), "A: measured here · B: a guess"),
        (price, (2.5, None), "a quote"),
    ):
        for column, value in enumerate(values, FIRST + 1):
            book[sheet].cell(row, column).value = value
        book[sheet].cell(row, HOW + 1).value = reason
        assert not book[sheet].cell(row, HOW + 1).protection.locked
    idle = book["Hardware"].cell(_row(book, "Hardware", "hardware.idle.override"), HOW + 1)
    idle.value = "nothing stands beside this"
    book.save(path)
    imported = import_workbook(path)
    base, variant = (
        {item.id: item.reason for item in of.overrides}
        for of in (imported.scenario, imported.scenario.variants[0])
    )
    assert base == {"efficiency.gemm_compute": "measured here", "hardware.price_cloud": "a quote"}
    assert variant == {"efficiency.gemm_compute": "a guess"}
    assert [item["cell"] for item in imported.left_out] == [f"Hardware!{idle.coordinate}"]
    again = lay_out(imported.estimate)
    for name in ("Efficiency", "Audit"):
        texts = [cell.text for cell in again.sheets[name].cells.values() if cell.text]
        assert any("measured here" in text for text in texts), name


def _read(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving
        return openpyxl.load_workbook(path)


def _row(book: Any, sheet: str, identifier: str) -> int:
    return next(row for row in range(5, 5000) if book[sheet].cell(row, SHARED).value == identifier)


def _scale(sheet: Sheet) -> float:
    if not sheet.one_page:
        return print_scale(sheet)[0] / 100
    first, _, last, _ = sheet.print_area or (0, 0, 0, 0)
    high = sum(sheet.heights.get(row, sheet.default_height or 20) for row in range(first, last + 1))
    return min(1, _A4_WIDTH / printed_width(sheet), 731 / high)


def _pages(sheet: Sheet) -> int:
    return _ends(sheet)[0]


def _ends(sheet: Sheet) -> tuple[int, list[int]]:
    """Pages, and the rows before which one ends because it is full, not before a block that would be cut."""
    whole = (0, 0, max(row for row, _ in sheet.cells), 0)
    first, _, last, _ = sheet.print_area or whole
    folded, page, breaks = _folded(sheet), print_scale(sheet)[1], set(page_breaks(sheet))
    first_head, last_head = sheet.repeat_rows or (0, -1)
    head = sum(sheet.heights.get(row, 20) for row in range(first_head, last_head + 1))
    pages, used, full = 1, head if first else 0.0, []
    for row in range(first, last + 1):
        high = 0 if row in folded else sheet.heights.get(row, sheet.default_height or 20)
        if row in breaks or used + high > page:
            full += [row] if row not in breaks else []
            pages, used = pages + 1, head
        used += high
    return pages, full


def _shrunk(sheet: Sheet, column: int, cell: Cell) -> float:
    """How much smaller a text is shown that does not fit in its cell."""
    room = sheet.widths[column] if column < len(sheet.widths) else _COLUMN
    return min(1, (room - 5) / max(width(cell.text or "", cell.style.size), 1))


def _within(area: tuple[int, int, int, int], row: int, column: int) -> bool:
    return area[0] <= row <= area[2] and area[1] <= column <= area[3]


def _says_something(cell: Cell | None) -> bool:
    return cell is not None and bool(cell.text or cell.number is not None or cell.expression is not None)


def _fits(sheet: Sheet, row: int, column: int, cell: Cell) -> bool:
    mono = cell.style.font != style.LABEL.font
    if cell.style.wrap:
        count = lines(cell.text or "", cell.style.size, sheet.widths[column], mono=mono)
        high = sheet.heights.get(row, sheet.default_height or 20)
        return height(count, cell.style.size) <= high + 2
    step = -1 if cell.style.align == "right" else 1
    room = sum(sheet.widths[at] for at in _free(sheet, row, column, step))
    return width(cell.text or "", cell.style.size, mono=mono) <= room + 4


def _free(sheet: Sheet, row: int, column: int, step: int) -> Iterator[int]:
    """The columns over which a text that is not wrapped may reach."""
    yield column
    column += step
    while 0 <= column < len(sheet.widths) and not _says_something(sheet.cells.get((row, column))):
        yield column
        column += step
