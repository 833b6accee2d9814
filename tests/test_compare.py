"""The comparison on What-if: every number is that of its scenario, changes, who is best at what.

All of it follows edits.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from live import edit, few
from openpyxl.formula import Tokenizer

from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.excel import formula
from mantile.graph.quantity import NOT_KNOWN, Quantity, span, sum_range
from mantile.library.architecture import Model
from mantile.library.huggingface import parse_config
from mantile.library.scenario import parse_scenario
from mantile.verification.engines import with_formulas
from mantile.verification.verify import TOLERANCE, difference, scale_of
from mantile.workbook.book import ACROSS, _Cells
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import open_file, typed_inputs
from mantile.workbook.sheets.alternative import ALTERNATIVE
from mantile.workbook.sheets.compare import COMPARISON
from mantile.workbook.sheets.folding import WHAT_IF
from mantile.workbook.sheets.frame import fits_on_page
from mantile.workbook.write import write_workbook

DENSE = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
SMALL = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 8,
}
CASES: dict[str, dict[str, Any]] = {
    "two, arrivals": DENSE
    | {"name": "TP8", "variants": [{"name": "2 × TP4", "tp": 4, "dp": 2, "request_rate": 2.5}]},
    "three, workers apart": SMALL
    | {
        "tp": 2,
        "decode": {"tp": 1, "dp": 4},
        "variants": [
            {"serving": "aggregated", "decode": {"tp": 2, "dp": 1}},
            {"decode": {"accelerator": "b200-sxm"}},
        ],
    },
    # One does not fit, one is no plan, one has no price.
    "eight": DENSE
    | {
        "concurrency": 64,
        "variants": [
            {"tp": 4, "dp": 2},
            {"weights_dtype": "fp8", "kv_dtype": "fp8"},
            {"accelerator": "b200-sxm", "tp": 4},
            {"tp": 4, "pp": 2, "price_basis": "rental"},
            {"accelerator": "l40s", "tp": 1},
            {"tp": 7},
            {"accelerator": "m3-ultra", "tp": 1},
        ],
    },
}
MEASURES = {
    "Time to first token, TTFT": ("ttft_s", 1e3),
    "Time per output token, TPOT": ("tpot_s", 1e3),
    "End to end": ("e2e_s", 1),
    "Interactivity": ("interactivity_tokens_per_s", 1),
    "Output tokens per second": ("output_tokens_per_s", 1),
    "Output tokens per accelerator": ("output_tokens_per_s_per_accelerator", 1),
    "Requests per second": ("requests_per_s", 1),
    "Power in the building": ("power_w", 1e-3),
    "Per hour, all accelerators": ("usd_per_hour", 1),
    "Per month, all accelerators": ("usd_per_month", 1),
    "Room for sequences": ("kv_capacity_sequences", 1),
    "Accelerators": ("accelerators", 1),
    "Tensor parallel": ("tp", 1),
    "Price basis": ("price_basis", None),
    "Weights": ("weights_dtype", None),
    "KV cache": ("kv_dtype", None),
    "Concurrency": ("concurrency", 1),
}

HEADLINES = (
    "Time to first token, TTFT",
    "Time per output token, TPOT",
    "Output tokens per accelerator",
    "Per million output tokens",
)


class Table:
    """The comparison as it reads.

    By label the direction, values and changes of scenarios, and the best; texts of other cells.
    """

    def __init__(self, book: EstimateBook, inputs: list[dict[str, Any]] | None = None) -> None:
        native = book.values(inputs or book.generated_inputs())
        sheet = book.sheets[WHAT_IF]
        last = 2 * book.columns + 2
        at = {
            place: cell.text if cell.expression is None else native[cell.scenario][cell.expression]
            for place, cell in sheet.cells.items()
        }
        columns = [3, *range(4, last, 2)]
        compared = (row for row, identifier in sheet.ids.items() if identifier.startswith("compare."))
        rows = {str(at[row, 0]): row for row in compared}
        self.row = rows
        self.better = {label: at.get((row, 2)) for label, row in rows.items()}
        self.values = {label: [at[row, column] for column in columns] for label, row in rows.items()}
        self.changes = {
            label: [at.get((row, column + 1)) for column in columns[1:]] for label, row in rows.items()
        }
        self.best = {label: at.get((row, last)) for label, row in rows.items()}
        finding = sheet.parts[COMPARISON] + 1
        self.finding = at[finding, 0]
        self.titles = [text for (row, _), text in sorted(at.items()) if row == finding + 1]


def _estimate(fields: dict[str, Any]) -> Estimate:
    return estimate(parse_scenario(fields, "scenario"), None, few())


@pytest.fixture(scope="module", params=few_of(CASES, next(iter(CASES))))
def book(request: pytest.FixtureRequest) -> EstimateBook:
    """A workbook with several scenarios, not yet written."""
    return lay_out(_estimate(CASES[request.param]))


@pytest.mark.exhaustive
def test_numbers_are_those_of_the_scenarios_and_the_best_is_best(book: EstimateBook) -> None:
    """Values against the estimate of each column; changes and the best worked out by hand from them."""
    made, table = book.estimate, Table(book)
    results = [made.results(column) for column in range(book.columns)]
    possible = [column for column, result in enumerate(results) if result["tpot_s"] is not None]
    assert possible

    def of_possible(label: str) -> list[Any]:
        """What a line shows of plans that can be; results of others are None."""
        return [table.values[label][column] for column in possible]

    for label, (name, scale) in MEASURES.items():
        if label in table.values:
            wanted = [results[column][name] for column in possible]
            if scale is None:
                assert of_possible(label) == wanted, label
            else:
                assert of_possible(label) == pytest.approx(
                    [(value or 0) * scale for value in wanted], rel=1e-12
                ), label
    assert of_possible("Per million output tokens") == pytest.approx(
        [results[column]["usd_per_million_tokens"]["output"] or 0 for column in possible], rel=1e-12
    )
    assert of_possible("Decode is limited by") == [
        results[column]["bottleneck"]["decode"] for column in possible
    ]
    assert of_possible("Network share of decode") == pytest.approx(
        [results[column]["split"]["decode"]["network"] for column in possible], rel=1e-12
    )
    for label in ("Decode is limited by", *HEADLINES):
        shown = {table.values[label][column] for column in range(book.columns) if column not in possible}
        assert shown <= {NOT_KNOWN}, label
    fits = table.values["Fits, and the plan is possible"]
    assert fits == [result["feasibility"] in ("fits", "fits_with_offload") for result in results]
    ranked = {label: better for label, better in table.better.items() if better}
    assert len(ranked) == 14 and set(ranked.values()) == {"lower", "higher"}
    wins: list[str] = []
    for label, better in ranked.items():
        values = [0 if value == NOT_KNOWN else value for value in table.values[label]]
        for value, change, told in zip(
            values[1:], table.changes[label], table.values[label][1:], strict=True
        ):
            assert change == (
                "–"
                if told == NOT_KNOWN or values[0] <= 0
                else pytest.approx(value / values[0] - 1, rel=1e-12, abs=1e-15)
            )
        among = [value for value, fit in zip(values, fits, strict=True) if fit and value > 0]
        ends = [
            value
            for value in among
            if value == pytest.approx(min(among) if better == "lower" else max(among), rel=1e-12)
        ]
        alike = len(among) == len(values) and max(among) - min(among) <= 1e-12 * max(among)
        letters = "".join(
            letter
            for letter, value, fit in zip("ABCDEFGH", values, fits, strict=False)
            if fit and value in ends
        )
        assert table.best[label] == ("=" if alike else letters[0]), (label, values)
        if label in HEADLINES:
            wins.append("" if alike else letters)
    assert not any(table.best[label] for label in table.better if label not in ranked)
    most = max("".join(wins).count(letter) for letter in "ABCDEFGH")
    leaders = [
        column
        for letter, column in zip("ABCDEFGH", made.columns, strict=False)
        if "".join(wins).count(letter) == most
    ]
    who = (
        f"{len(leaders)} scenarios lead"
        if len(leaders) > 1
        else f"{'ABCDEFGH'[made.columns.index(leaders[0])]} · {leaders[0].name} leads"
    )
    assert len(wins) == 4 and table.finding == f"{who} in {most} headline results"
    for title, label in zip(
        table.titles,
        ("Time per output token, TPOT", "Output tokens per accelerator", "Per million output tokens"),
        strict=True,
    ):
        winner, values = "ABCDEFGH".index(table.best[label]), table.values[label]
        gain = abs(values[winner] / values[0] - 1)
        side = "below" if ranked[label] == "lower" else "above"
        assert re.search(
            rf": {table.best[label]} · .*{f', {gain:.0%} {side} A' if winner else ' is best'}$", title
        ), title


@pytest.mark.exhaustive
def test_it_keeps_the_rules(book: EstimateBook, tmp_path: Path) -> None:
    """Lint of two, and though the sheet collects: short formulas without many references.

    The base's numbers lead to their rows; one page.
    """
    if book.columns == 2:
        assert lint(write_workbook(book, tmp_path / "run.xlsx")) == []
    sheet = book.sheets[WHAT_IF]
    rows = range(sheet.parts[COMPARISON], sheet.parts[ALTERNATIVE])
    texts = {
        place: book.formula_text(sheet, cell)
        for place, cell in sheet.cells.items()
        if cell.expression is not None and place[0] in rows
    }
    assert len(texts) < 115 * book.columns
    for text in texts.values():
        operands = [
            token for token in Tokenizer(text).items if token.type == "OPERAND" and token.subtype == "RANGE"
        ]
        assert len(text) <= 120 and len(operands) <= 8, text
    for row in (row for row in sheet.ids if row in rows):
        link = str(sheet.cells[row, 3].link).removeprefix("internal:").replace("'", "")
        name, _, cell = link.partition("!")
        figures = book.sheets[name].ids
        told = {figures.get(int(at) - 1) for at in re.findall(rf"{name}!\$?[A-Z]+\$?(\d+)", texts[row, 3])}
        assert figures[int(cell[1:]) - 1] in told or name == "Inputs"  # where it is typed, not used
    assert sum(row in rows for row, _, _ in sheet.charts) == 3
    assert fits_on_page(sheet, rows[0] - 1, max(row for row in sheet.ids if row in rows))
    assert list(book.sheets).index(WHAT_IF) == list(book.sheets).index("Layers") + 1
    assert any(cell.text == COMPARISON for cell in book.sheets["Summary"].cells.values())


@pytest.mark.exhaustive
def test_one_scenario_has_nothing_to_compare() -> None:
    """Neither the part nor its line on the Cover."""
    book = lay_out(_estimate(SMALL))
    assert COMPARISON not in book.sheets[WHAT_IF].parts
    assert not any(cell.text == COMPARISON for cell in book.sheets["Summary"].cells.values())


@pytest.mark.parametrize(
    "fields",
    [SMALL | {"variants": [{}]}, DENSE | {"accelerator": "l40s", "tp": 1, "variants": [{"concurrency": 4}]}],
    ids=["alike", "none fits"],
)
def test_nobody_is_ahead_where_all_are_alike_or_none_fits(fields: dict[str, Any]) -> None:
    table = Table(lay_out(_estimate(fields)))
    bests = {best for label, best in table.best.items() if table.better[label]}
    assert bests == {"=" if "variants" in fields and fields["variants"] == [{}] else "–"}
    assert table.finding == "No scenario is ahead of the others"
    assert all(title.endswith(": none is ahead") for title in table.titles)


@pytest.mark.exhaustive
def test_blocks_stand_below_or_beside_each_other() -> None:
    """Both are printed; figures that stand apart are refused."""
    book = lay_out(_estimate(SMALL | {"variants": [{}]}))
    found = {figure.id: figure for figure in book.addresses if isinstance(figure, Quantity)}
    keys = [found[f"compare.won.{number}"] for number in (1, 2)]
    place = book.addresses[keys[0]]
    assert (
        formula(sum_range(span(keys)), _Cells(book, WHAT_IF, ACROSS))
        == f"=SUM(D{place.row + 1}:E{place.row + 1})"
    )
    assert (
        formula(sum_range(span(keys)), _Cells(book, "Audit", ACROSS))
        == f"=SUM('What-if'!$D${place.row + 1}:$E${place.row + 1})"
    )
    with pytest.raises(AssertionError, match="neither below nor beside"):
        formula(sum_range(span([keys[0], found["compare.most"]])), _Cells(book, WHAT_IF, ACROSS))


@pytest.mark.exhaustive
def test_edits_of_either_scenario_are_followed(tmp_path: Path) -> None:
    """The file edited and recalculated by another engine.

    Every cell as ours, and what the sheet says changed with it.
    """
    config = {
        "model_type": "llama",
        "hidden_size": 2048,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "num_hidden_layers": 3,
        "intermediate_size": 5632,
        "vocab_size": 32000,
        "max_position_embeddings": 2048,
    }
    model = Model(id="small", name="Small", source="test", architecture=parse_config(config, "config.json"))
    fields = SMALL | {
        "model": "small",
        "sweep": {"concurrency": [8]},
        "variants": [{"name": "A100", "accelerator": "a100-80gb-sxm"}],
    }
    book = lay_out(
        estimate(parse_scenario(fields, "scenario"), model, few(("a100-80gb-sxm", "h100-sxm", "l40s")))
    )
    path = write_workbook(book, tmp_path / "run.xlsx")
    before = Table(book)

    def change(opened: Any) -> None:
        for identifier, column, value in (
            ("inputs.accelerator", 0, "l40s"),
            ("inputs.tp", 1, 4),
            ("inputs.concurrency", 0, 64),
        ):
            sheet, row, place = book.input_cells[identifier, column]
            opened[sheet].cell(row + 1, place + 1).value = value

    file = open_file(edit(path, tmp_path / "edited.xlsx", change))
    inputs, _ = typed_inputs(file)
    native, theirs = file.book.values(inputs), with_formulas(file.cells, tuple(file.book.sheets))[WHAT_IF]
    for place, cell in file.book.sheets[WHAT_IF].cells.items():
        if cell.expression is not None:
            assert (
                difference(
                    native[cell.scenario][cell.expression],
                    theirs[place],
                    scale_of(cell.expression, native[cell.scenario]),
                )
                <= TOLERANCE
            ), place
    after = Table(file.book, inputs)
    assert (before.best["Time per output token, TPOT"], after.best["Time per output token, TPOT"]) == (
        "A",
        "B",
    )
    assert (
        after.values["Accelerator"] == ["l40s", "a100-80gb-sxm"]
        and after.values["Concurrency"] == [64, 64]
        and after.values["Accelerators"] == [1, 4]
    )
    assert (
        before.finding.startswith("A · TP1 leads in ")
        and after.finding == "2 scenarios lead in 2 headline results"
    ), (before.finding, after.finding)
