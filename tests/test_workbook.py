"""The workbook as a file: rules, bytes, handles, and texts that must not execute."""

from __future__ import annotations

import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import few
from openpyxl.styles import Protection
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.formula import ArrayFormula

from mantile.estimates import structure
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.models import Model
from mantile.library.profiles import load_library
from mantile.library.scenario import parse_scenario
from mantile.workbook import style
from mantile.workbook.book import ANSWERS
from mantile.workbook.bundle import BUNDLE_SHEET
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import RULES, lint
from mantile.workbook.write import build_workbook, write_workbook

BASE = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
TWO = BASE | {"variants": [{"name": "2 x TP4", "tp": 4, "dp": 2}]}


def _read(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it would lose on saving
        return openpyxl.load_workbook(path)


def _made(fields: dict[str, Any], model: Model | None = None) -> Estimate:
    """With a library of few accelerators: workbooks are half the size."""
    return estimate(parse_scenario(fields, "scenario"), model, few(("h100-sxm", "b200-sxm", "l40s")))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workbook of two scenarios, built once."""
    return build_workbook(_made(TWO), tmp_path_factory.mktemp("two") / "run.xlsx")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "fields",
    [
        {
            "model": "mistral-7b",
            "accelerator": "l40s",
            "framework": "sglang",
            "tp": 3,
            "input_tokens": 9000,
            "output_tokens": 100,
            "concurrency": 64,
            "variants": [{"weights_dtype": "fp8"}, {"tp": 1, "dp": 4}],
        },
        # Experts; latents with an indexer; compressed entries; recurrent mixers; images.
        BASE
        | {
            "model": "mixtral-8x7b",
            "experts_dtype": "int4",
            "tp": 2,
            "variants": [{"experts_dtype": "fp8", "pp": 2}],
        },
        BASE | {"model": "deepseek-v3.2", "accelerator": "b200-sxm", "variants": [{"tp": 4, "pp": 2}]},
        BASE | {"model": "deepseek-v4-flash", "accelerator": "b200-sxm"},
        BASE | {"model": "kimi-linear-48b-a3b"},
        BASE | {"model": "nemotron-3-super-nvfp4", "accelerator": "b200-sxm", "batching": "static"},
        BASE | {"model": "qwen3-vl-8b", "tp": 1, "image_tokens": 1000, "variants": [{"image_tokens": 0}]},
        {field: value for field, value in BASE.items() if field != "concurrency"}
        | {"request_rate": 0.5, "capacity": {"users": 500, "requests_per_user": 10}},
    ],
    ids=lambda fields: f"{fields['model']}-{fields['accelerator']}",
)
def test_every_workbook_is_lint_clean(fields: dict[str, Any], tmp_path: Path) -> None:
    """Also where the plan is odd or does not fit: those are failing checks, not broken sheets."""
    assert lint(build_workbook(_made(fields), tmp_path / "run.xlsx")) == []


@pytest.mark.parametrize(
    "fields",
    [
        TWO,
        TWO | {"serving": "disaggregated", "tp": 4, "decode": {"tp": 2}, "variants": []},
        TWO | {"decision": {"objective": "tpot_s"}, "capacity": {"requests_per_day": 1e6}},
    ],
    ids=["standard", "disaggregated", "decision"],
)
def test_links_lead_to_rows_that_stand_open(fields: dict[str, Any]) -> None:
    """To the figure that is told, among the answers of its sheet where it stands there."""
    book, links = lay_out(estimate(parse_scenario(fields, "scenario"), library=few())), 0
    for sheet in book.sheets.values():
        for (row, _), cell in sheet.cells.items():
            match = re.fullmatch(r"internal:'(.+)'!([A-Z]+)(\d+)", cell.link or "")
            if match is None:
                continue
            target, place, links = book.sheets[match[1]], int(match[3]) - 1, links + 1
            folded = any(first <= place <= last for first, last in target.folds)
            assert not folded, (sheet.name, row + 1, cell.link)
            if target.ids.get(place) in {figure.id for figure in target.answers}:
                assert target.sections[place] == ANSWERS, (sheet.name, row + 1, cell.link)
    assert links > 400


@pytest.mark.exhaustive
def test_the_linter_sees_what_is_wrong(two: Path, tmp_path: Path) -> None:
    """Each broken rule is reported at its cell."""
    path, book = tmp_path / "run.xlsx", _read(two)
    calculation = book["Calculation"]
    row = next(row for row in range(5, 999) if calculation.cell(row, 6).value == "prefill.qkv.flops")
    calculation.cell(row, 8).value = calculation.cell(row, 8).value + "*3"
    calculation.cell(row + 1, 9).value = "=1"
    calculation.cell(row + 2, 8).value = "=IF(H1>0,IF(H2>0,1,0),0)"
    calculation.cell(row + 3, 8).value = "=OFFSET(H1,1,0)"
    calculation.cell(row + 4, 8).value = f"=H{row + 30}"
    calculation.cell(row + 5, 8).value = "=Layers!H10"
    calculation.cell(row + 6, 2).value = calculation.cell(row, 2).value
    book["Layers"].sheet_state = "hidden"
    book["IR"].merge_cells("A40:B41")
    book.save(path)
    findings = {(finding.rule, finding.sheet, finding.cell) for finding in lint(path)}
    for rule, cell in (
        ("magic-number", f"H{row}"),
        ("inconsistent-formula", f"I{row + 1}"),
        ("nested-if", f"H{row + 2}"),
        ("volatile-function", f"H{row + 3}"),
        ("refers-down", f"H{row + 4}"),
        ("refers-right", f"H{row + 5}"),
        ("duplicate-label", ""),
    ):
        assert (rule, "Calculation", cell) in findings
    assert {
        ("hidden-sheet", "Layers", ""),
        ("merged-cells", "IR", "A40:B41"),
    } <= findings


@pytest.mark.exhaustive
def test_every_rule_can_be_broken(two: Path, tmp_path: Path) -> None:
    """The linter reports all rules of its table and no others."""
    path, book = tmp_path / "run.xlsx", _read(two)
    calculation, model = book["Calculation"], book["IR"]
    row = next(row for row in range(5, 999) if calculation.cell(row, 6).value == "prefill.qkv.flops")
    for offset, formula in enumerate(
        (
            f"=H{row + 30}",
            "=Layers!H10",
            "=" + "+".join(["H12345"] * 30),
            "=IF(H1>0,IF(H2>0,1,0),0)",
            "=H1*3",
            '=TEXT(H1,"0.0")',
            "=NOW()",
            "=VLOOKUP(H1,H2,1)",
            ArrayFormula(f"H{row + 7}", "=H1"),
            "=H1)",
            "=SUM(H1:H200000)",
            "=in_tp",
            "#N/A",
        )
    ):
        calculation.cell(row + offset, 8).value = formula
    calculation.cell(row, 3).value = None
    calculation.cell(row + 1, 6).value = "prefill.qkv.flops"
    calculation.cell(row + 2, 2).value = calculation.cell(row + 3, 2).value
    calculation["A4"].value = "part"
    calculation["Z4"].protection = Protection(locked=False)
    calculation.freeze_panes = None
    book["Layers"].protection.sheet = False  # Calculation has outlines and is not protected
    calculation.page_setup.orientation = "portrait"
    calculation.column_dimensions["C"].hidden = True
    tile = next(cell for cell in book["Summary"][11] if cell.hyperlink is not None)
    leads, _, there = tile.hyperlink.location.replace("'", "").partition("!")
    book[leads].row_dimensions[book[leads][there].row].hidden = True
    model.merge_cells("A40:B41")
    validation = DataValidation()
    validation.add("A1:J200000")
    model.add_data_validation(validation)
    book["Layers"].sheet_state = "hidden"
    book[BUNDLE_SHEET].sheet_state = "hidden"
    del book.defined_names["master_check"]
    book.move_sheet("Calculation", -3)
    book.save(path)
    assert {finding.rule for finding in lint(path)} == set(RULES)


@pytest.mark.exhaustive
def test_same_scenario_same_bytes(two: Path, tmp_path: Path) -> None:
    """Two runs, two graphs, one file; a changed figure gives another."""
    structure._made.cache_clear()
    second = build_workbook(_made(TWO), tmp_path / "b.xlsx")
    assert two.read_bytes() == second.read_bytes()
    third = build_workbook(_made(TWO | {"concurrency": 17}), tmp_path / "c.xlsx")
    assert third.read_bytes() != two.read_bytes()


@pytest.mark.exhaustive
def test_handles_lead_to_inputs_and_results(two: Path) -> None:
    """The defined names of the contract, each on a cell with the engine's value."""
    made, book = _made(TWO), _read(two)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values = openpyxl.load_workbook(two, data_only=True)
    results = made.results()
    expected = {
        "in_accelerator": "h100-sxm",
        "in_framework": "vllm",
        "in_weights_dtype": "bf16",
        "in_kv_dtype": "bf16",
        "in_tp": 8,
        "in_pp": 1,
        "in_dp": 1,
        "in_attention_dtype": "same",
        "in_ffn_dtype": "same",
        "in_head_dtype": "bf16",
        "in_token_budget": 8192,
        "in_input_tokens": 2048,
        "in_output_tokens": 256,
        "in_concurrency": 16,
        "in_system": "default",
        "in_ep": 1,
        "in_attention_dp": 1,
        "in_cp": 1,
        "in_sequence_parallel": "off",
        "in_microbatches": 0,
        "in_offload_weights": 0,
        "in_offload_kv": 0,
        "in_kv_swap": 0,
        "in_price_basis": "cloud",
        "in_utilisation": 1,
        "in_electricity_price": 0.1,
        "in_pue": 1.3,
        "in_hours_per_day": 24,
        "ttft": results["ttft_s"],
        "tpot": results["tpot_s"],
        "e2e": results["e2e_s"],
        "output_tokens_per_s": results["output_tokens_per_s"],
        "output_tokens_per_s_per_accelerator": results["output_tokens_per_s_per_accelerator"],
        "memory_per_accelerator": results["memory_per_accelerator_bytes"],
        "memory_capacity": results["memory_capacity_bytes"],
        "fits": 1,
        "feasibility": "fits",
        "power": results["power_w"],
        "usd_per_hour": results["usd_per_hour"],
        "usd_per_million_tokens": results["usd_per_million_tokens"]["output"],
        "interactivity": results["interactivity_tokens_per_s"],
        "kv_capacity_sequences": results["kv_capacity_sequences"],
        "master_check": 1,
    }
    assert results["usd_per_hour"] > 0
    assert {name for name in book.defined_names if name.startswith("in_")} == {
        f"in_{name}" for name in made.equations.inputs.named()
    }
    for name, value in expected.items():
        sheet, cell = book.defined_names[name].attr_text.replace("'", "").replace("$", "").split("!")
        found = values[sheet][cell].value
        assert found == value or found == pytest.approx(value, rel=1e-14), name


@pytest.mark.exhaustive
def test_names_that_look_like_formulas_stay_texts(tmp_path: Path) -> None:
    """Titles and names from outside are written as strings."""
    fields = BASE | {
        "title": "=1+1",
        "name": "@SUM(A1)",
        "why": "+cmd|' /C calc'!A0",
        "variants": [{"name": "-2+3", "tp": 4}],
    }
    path = build_workbook(_made(fields), tmp_path / "run.xlsx")
    book = _read(path)
    texts = {"=1+1": 0, "+cmd|' /C calc'!A0": 0}
    for sheet in book.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                if isinstance(cell.value, str) and cell.value in texts:
                    assert cell.data_type == "s"
                    texts[cell.value] += 1
    assert min(texts.values()) > 0
    with zipfile.ZipFile(path) as archive:
        formulas = [
            text
            for name in archive.namelist()
            if name.startswith("xl/worksheets/sheet")
            for text in re.findall(r"<f>([^<]*)</f>", archive.read(name).decode())
        ]
    assert formulas and not any("cmd" in text or text in ("1+1", "SUM(A1)") for text in formulas)


@pytest.mark.exhaustive
def test_the_bundle_is_everything(tmp_path: Path) -> None:
    """The very-hidden sheet holds scenario, model and library, in chunks Excel can store."""
    path = build_workbook(estimate(parse_scenario(TWO, "scenario")), tmp_path / "run.xlsx")
    sheet = _read(path)[BUNDLE_SHEET]
    chunks = [row[0].value for row in sheet.iter_rows()]
    assert sheet.sheet_state == "veryHidden" and max(map(len, chunks)) <= 32_000
    bundle = json.loads("".join(chunks))
    assert bundle["scenario"]["variants"] == [{"name": "2 x TP4", "tp": 4, "dp": 2}]
    assert bundle["model"]["architecture"]["facts"]["layers"]["value"] == 80
    assert bundle["model"]["architecture"]["stack"] == [{"times": 80, "layers": [["attention", "ffn"]]}]
    library = load_library()
    for name in ("accelerators", "systems", "prices", "frameworks", "efficiency"):
        assert [item["id"] for item in bundle["library"][name]] == [
            item.id for item in getattr(library, name)
        ]
    assert len(bundle["library"]["accelerators"]) >= 52


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "classes"),
    [
        ("deepseek-v3.2", ["attention", "ffn", "experts"]),
        ("mamba-codestral-7b", ["attention"]),
        ("qwen3-vl-8b", ["attention", "ffn"]),
    ],
)
def test_dropdowns_offer_what_the_engine_accepts(tmp_path: Path, model: str, classes: list[str]) -> None:
    """Every choice of the base scenario's selectors is a list.

    A model has selectors for the classes of its matrices only.
    """
    made = _made(BASE | {"model": model})
    book = _read(build_workbook(made, tmp_path / "run.xlsx"))
    rules = {
        (name, str(rule.sqref)): rule
        for name in ("Summary", "Inputs")
        for rule in book[name].data_validations.dataValidation
    }
    assert {cell for (sheet, cell), rule in rules.items() if sheet == "Summary" and rule.type == "list"} == {
        "B5",
        "C5",
        "D5",
        "E5",
        "F5",
        "G5",
        "H5",
        "I5",
    }
    for name, figure in made.equations.inputs.named().items():
        place = tuple(book.defined_names[f"in_{name}"].attr_text.replace("$", "").split("!"))
        rule = rules[place]
        if not figure.choices:
            assert rule.type == ("whole" if figure.integer else "decimal"), name
            assert (float(rule.formula1), float(rule.formula2)) == (figure.minimum, figure.maximum), name
            continue
        assert rule.type == "list", name
        if rule.formula1.startswith('"'):
            assert len(rule.formula1) <= 257, name  # Excel takes 255 and quotes
            offered = rule.formula1.strip('"').split(",")
        else:
            sheet, first, last = re.fullmatch(  # type: ignore[union-attr]
                r"'?(\w+)'?!\$B\$(\d+):\$B\$(\d+)", rule.formula1
            ).groups()
            offered = [book[sheet].cell(row, 2).value for row in range(int(first), int(last) + 1)]
        if name == "system":
            offered = ["default", *offered]
        assert tuple(offered) == figure.choices, name
    assert rules["Summary", "B5"].formula1.startswith("'Hardware'!$B$")
    assert [
        name for name in ("attention", "ffn", "experts") if f"in_{name}_dtype" in book.defined_names
    ] == classes
    assert ("in_image_tokens" in book.defined_names) == (model == "qwen3-vl-8b")


@pytest.mark.exhaustive
def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure while writing leaves the old file and no other."""
    made = _made(BASE)
    path = tmp_path / "run.xlsx"
    path.write_text("kept")
    book = lay_out(made)
    monkeypatch.setattr(
        "mantile.workbook.write._Writer._hidden",
        lambda self, name, text: (_ for _ in ()).throw(OSError(28, "No space left")),
    )
    with pytest.raises(InputError, match="No space left"):
        write_workbook(book, path)
    assert path.read_text() == "kept" and [item.name for item in tmp_path.iterdir()] == ["run.xlsx"]
    with pytest.raises(InputError, match="ends in"):
        write_workbook(book, tmp_path / "run.xls")


@pytest.mark.exhaustive
def test_a_model_of_another_shape_lays_out(tmp_path: Path) -> None:
    """LayerNorm with bias, plain FFN, biases and QK norms change rows, not rules."""
    for number, extra in enumerate(
        ({"model_type": "starcoder2", "num_key_value_heads": 1}, {"model_type": "qwen3", "head_dim": 24})
    ):
        config = {
            "hidden_size": 96,
            "num_attention_heads": 4,
            "num_hidden_layers": 3,
            "intermediate_size": 200,
            "vocab_size": 500,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": True,
        } | extra
        model = Model(id="odd", name="Odd", source="test", architecture=parse_config(config, "config.json"))
        fields = BASE | {"model": "odd", "tp": 2}
        made = _made(fields, model)
        assert made.results()["checks"]["errors"] == []
        assert lint(build_workbook(made, tmp_path / f"{number}.xlsx")) == []


@pytest.mark.exhaustive
def test_the_log_tells_overrides_and_the_live_results() -> None:
    """However many overrides stand above it, the live row holds both results before and after."""
    overrides = [
        {"id": "efficiency.gemm_compute", "value": 0.72, "reason": "measured on our cluster"},
        {"id": "hardware.memory_bandwidth", "value": 2500, "reason": "throttled"},
    ]
    for count in (0, 2):
        sheet = lay_out(_made(BASE | {"overrides": overrides[:count]})).sheets["Audit"]
        cells, first = sheet.cells, sheet.parts["Log"] + 4
        told = [cells[row, 3].text for row in range(first, first + count)]
        assert told == [override["reason"] for override in overrides[:count]]
        live = first + count
        assert cells[live, 0].text == "live"
        assert all(cells[live, column].expression is not None for column in range(4, 11))
        beyond = [cells[live, column] for column in range(11, 15) if (live, column) in cells]
        assert all(cell.expression is None and not cell.text and cell.number is None for cell in beyond)


@pytest.mark.exhaustive
def test_the_cover_tells_where_a_model_comes_from_to_the_last_word() -> None:
    run = _made(BASE | {"model": "devstral-2-123b"})
    cells = lay_out(run).sheets["Summary"].cells
    words = " ".join(
        cell.text
        for (_, column), cell in sorted(cells.items(), key=lambda item: item[0])
        if column == 6 and cell.text
    )
    assert len(run.model.source) > 200
    assert run.model.source in words


def _contrast(text: str, ground: str) -> float:
    """Ratio of luminances, as WCAG 2 has it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2]

    lighter, darker = sorted((luminance(text), luminance(ground)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.exhaustive
def test_every_text_stands_out_from_its_ground() -> None:
    """At least 4.5 to 1, in cells and in what conditions make of them.

    Also on the bars behind numbers and in the labels of charts.
    """
    book = lay_out(
        estimate(
            parse_scenario(
                {
                    "model": "mixtral-8x7b",
                    "accelerator": "h100-sxm",
                    "tp": 8,
                    "input_tokens": 2048,
                    "output_tokens": 256,
                    "concurrency": 16,
                    "variants": [{"tp": 4, "dp": 2}],
                },
                "test",
            )
        )
    )
    pairs = {
        (cell.style.colour, cell.style.fill or style.WHITE, name)
        for name, sheet in book.sheets.items()
        for cell in sheet.cells.values()
    }
    for name, sheet in book.sheets.items():
        for (top, left, bottom, right), rule in sheet.conditional:
            under = [
                sheet.cells[row, column].style
                for row in range(top, bottom + 1)
                for column in range(left, right + 1)
                if (row, column) in sheet.cells
            ]
            made = rule.get("format")
            pairs |= {
                (made.colour if made else cell.colour, ground, f"{name}, conditional")
                for cell in under
                for ground in (
                    [made.fill or cell.fill or style.WHITE]
                    if made
                    else [rule[key] for key in ("bar_color", "bar_negative_color") if key in rule]
                )
            }
    pairs |= {(style.WHITE, ground, "label") for ground in (style.COMPUTE, style.NAVY)}
    pairs |= {
        (style.INK, ground, "label")
        for ground in (style.MEMORY, style.NETWORK, style.OVERHEAD, *style.STAGES)
    }
    hidden = {pair for pair in pairs if pair[0] == pair[1]}  # on Plan, of accelerators that are not in use
    assert not {pair for pair in pairs - hidden if _contrast(pair[0], pair[1]) < 4.5}
