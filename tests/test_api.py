"""What a notebook user asks of the package: scenarios, estimates, figures by id, tables, workbooks."""

from __future__ import annotations

import inspect
import json
import re
import runpy
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import mantile as mt
from mantile.cli import app
from mantile.equations.metrics import METRICS, TPOT, Metric
from mantile.estimates.sensitivity import sensitivity
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Quantity, substitute
from mantile.measured.calibrate import Calibration
from mantile.roundtrip.audit import Audit
from mantile.roundtrip.compare import Comparison
from mantile.verification.report import Report, Reports

ROOT = Path(__file__).resolve().parents[1]
FIELDS: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
FLAGS = [
    word
    for name, value in FIELDS.items()
    if name != "model"
    for word in (f"--{name.replace('_', '-')}", str(value))
]
VARIANTS = [{"name": "one <b>GPU</b>", "tp": 1}, {"name": "too much", "tp": 1, "offload_weights": 0}]
# What takes many measured runs is only compiled.
COMPILED = ("calibrate", "calibrate_workbook", "load_measurements", "match_runs", "reconcile")


@pytest.fixture(scope="module")
def estimate() -> mt.Estimate:
    return mt.estimate(**FIELDS)


@pytest.fixture(scope="module")
def several() -> mt.Estimate:
    return mt.estimate(mt.Scenario(**FIELDS, variants=VARIANTS))


@pytest.fixture(scope="module")
def impossible() -> mt.Estimate:
    return mt.estimate(**FIELDS | {"model": "llama-3.3-70b", "tp": 1})


@pytest.fixture(scope="module")
def workbook(estimate: mt.Estimate, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return estimate.to_excel(tmp_path_factory.mktemp("api") / "run.xlsx")


def at(results: dict[str, Any], key: str) -> Any:
    """The entry of nested results that a key with dots leads to."""
    for part in key.split("."):
        results = results[part]
    return results


def test_fields_a_scenario_and_the_command_line_give_the_same(estimate: mt.Estimate) -> None:
    ran = CliRunner().invoke(app, ["estimate", str(FIELDS["model"]), *FLAGS, "--json"])
    assert ran.exit_code == 0
    assert estimate.to_dict() == mt.estimate(mt.Scenario(**FIELDS)).to_dict()
    assert json.loads(ran.stdout) == estimate.to_dict() | mt.answer(estimate).to_dict()


def test_variants_stand_beside_the_base(several: mt.Estimate) -> None:
    told = several.to_dict()
    assert [told["tpot_s"], told["variants"][0]["tpot_s"]] == [
        several.tpot,
        several.results(1)["tpot_s"],
    ]
    frame = several.to_frame()
    assert list(frame.columns) == ["label", "unit", several.columns[0].name, "one <b>GPU</b>", "too much"]
    assert frame.loc["tpot", "one <b>GPU</b>"] == several.results(1)["tpot_s"]


def test_every_metric_is_an_attribute_a_key_a_row_and_its_quantity(
    estimate: mt.Estimate, impossible: mt.Estimate
) -> None:
    for made in (estimate, impossible):
        results, frame, values = made.to_dict(), made.to_frame(), made.values()
        for metric in made.metrics():
            value = getattr(made, metric.attribute)
            assert value == at(results, metric.key), metric.key
            shown = frame.loc[metric.attribute, made.columns[0].name]
            assert shown == value or (value is None and np.isnan(shown))
            assert metric.of(made.equations.figures).unit == metric.unit, metric.key
            assert value is None or value == values[metric.of(made.equations.figures)]
    assert estimate.tpot is not None and estimate.load is None  # no request rate
    assert {metric.attribute for metric in METRICS} <= set(dir(estimate))


def test_metrics_are_told_apart_and_shown_in_the_unit_people_quote() -> None:
    for field in ("attribute", "id", "key", "label"):
        values = [getattr(metric, field) for metric in METRICS]
        assert len(set(values)) == len(values), field
    names = [metric.defined_name for metric in METRICS if metric.defined_name]
    assert len(set(names)) == len(names)
    assert [TPOT.text(value) for value in (0.01234, 12e-9, 2.5, None)] == [
        "12.34 ms",
        "0.0000120 ms",
        "2,500.00 ms",
        "not known",
    ]
    assert TPOT.shown(2.0) == 2000 and TPOT.better == "lower"


def test_what_nobody_knows_or_cannot_be_is_none(impossible: mt.Estimate) -> None:
    told = impossible.to_dict()
    assert told["feasibility"] == "insufficient_memory"
    assert [check["code"] for check in told["checks"]["errors"]] == ["MEMORY_EXCEEDED"]
    assert impossible.tpot is impossible.ttft_p95 is impossible.usd_per_hour is None
    assert impossible.memory_per_accelerator > impossible.memory_capacity  # type: ignore[operator]
    assert "MEMORY_EXCEEDED" in repr(impossible) and "MEMORY_EXCEEDED" in impossible._repr_html_()
    unpriced = mt.estimate(
        **FIELDS | {"accelerator": "m3-ultra", "framework": "mlx", "tp": 1, "price_basis": "rental"}
    )
    assert unpriced.usd_per_hour is None and unpriced.tpot is not None
    assert unpriced.to_dict()["usd_per_million_tokens"] == dict.fromkeys(
        ("output", "input", "blended", "input_by_time", "output_by_time")
    )


@pytest.mark.exhaustive
def test_a_figure_is_found_by_id_with_formula_words_and_precedents(estimate: mt.Estimate) -> None:
    tpot = estimate["serving.tpot"]
    assert (tpot.id, tpot.value, tpot.unit) == ("serving.tpot", estimate.tpot, "s")
    assert tpot.formula == "=serving.decode_step+serving.stall"
    assert tpot.words == "decode step + prefill stall per token"
    assert [term.id for term in tpot.precedents] == ["serving.decode_step", "serving.stall"]
    assert sum(term.value for term in tpot.precedents) == pytest.approx(tpot.value, rel=1e-12)
    values = estimate.values()
    for figure in list(estimate.equations.figures.values())[::160]:
        value = values.get(figure)
        told = estimate[figure.id].value
        assert told == value or (told is None and (value is None or not np.isfinite(value))), figure.id
    with pytest.raises(mt.InputError, match=r"serving\.tpott'; did you mean serving\.tpot"):
        estimate["serving.tpott"]
    with pytest.raises(AttributeError, match="did you mean tpot"):
        estimate.tpott  # noqa: B018


def test_precedents_worked_out_again_give_the_figure(estimate: mt.Estimate) -> None:
    """Each figure from the told values of its precedents alone."""
    figures, inputs = estimate.equations.figures, estimate.inputs(0)
    for metric in estimate.metrics():
        explained = estimate[metric.of(figures).id]
        terms = {term.id: term for term in explained.precedents}
        assert terms, metric.key
        if any(term.members for term in terms.values()):
            continue  # a table of figures
        stand_ins = {identifier: _stand_in(figures[identifier]) for identifier in terms}
        body = metric.of(figures).body
        again = Quantity(
            "again",
            "Again",
            metric.unit,
            substitute(body, {figures[key]: cell for key, cell in stand_ins.items()}),
        )
        told = {stand_ins[identifier].id: term.value for identifier, term in terms.items()}
        assert Program([again]).run(inputs | told)[again] == pytest.approx(explained.value, rel=1e-12), (
            metric.key
        )


def _stand_in(figure: Input | Quantity) -> Input:
    return Input(f"told.{figure.id}", figure.label, figure.unit, 0)


def test_all_figures_make_a_table(several: mt.Estimate) -> None:
    frame = several.to_frame(all=True)
    assert list(frame.index) == list(several.equations.figures)
    assert frame.loc["serving.tpot", several.columns[0].name] == several.tpot
    assert frame.loc["memory.used", "unit"] == "B"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tp": -4}, r"field tp: .*at least 1 \(found -4\)"),
        ({"tpp": 4}, r"field tpp: there is no such field; did you mean tp"),
        ({"decode_tp": 0.5}, r"field decode\.tp: .*found 0\.5"),
        ({"accelerator": None}, "accelerator is missing"),
        ({"model": 8}, r"field model: expected a text \(found 8\)"),
        ({"variants": [{"concurency": 1}]}, r"field variants\.0\.concurency: .*did you mean concurrency"),
    ],
)
def test_wrong_input_names_the_field(fields: dict[str, Any], message: str) -> None:
    for construct in (mt.Scenario, mt.estimate):
        with pytest.raises(mt.InputError, match=message):
            construct(**FIELDS | fields)
    with pytest.raises(mt.InputError, match=message):
        mt.Scenario(**FIELDS).replace(**fields)


def test_estimate_takes_a_scenario_or_fields_and_spellings_of_engines() -> None:
    with pytest.raises(mt.InputError, match="not both"):
        mt.estimate(mt.Scenario(**FIELDS), tp=4)  # type: ignore[call-overload]
    spelled = {name: value for name, value in FIELDS.items() if name not in ("input_tokens", "tp")}
    scenario = mt.Scenario(**spelled, isl=1024, tensor_parallel_size=2)  # type: ignore[call-arg]
    assert scenario == mt.Scenario(**FIELDS)
    apart = mt.estimate(**FIELDS, decode_tp=4)
    assert apart.workers_ratio is not None and apart.to_dict()["decode_tp"] == 4


class _Texts(HTMLParser):
    """Texts of cells, and tags in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_what_is_printed_is_short_and_escaped(several: mt.Estimate) -> None:
    assert len(repr(several)) < 250 and "3 scenarios" in repr(several) and "TPOT" in repr(several)
    assert len(repr(several.scenario)) < 250 and "variants=<2>" in repr(several.scenario)
    assert "utilisation" not in repr(several.scenario)  # a default
    assert len(repr(several["serving.tpot"])) < 250 and len(repr(mt.trace(several, "serving.tpot"))) < 250
    page = _Texts(several._repr_html_())
    assert "one <b>GPU</b>" in page.texts and "b" not in page.tags
    place = page.texts.index("TPOT")
    assert page.texts[place + 1 : place + 4] == [
        TPOT.text(several.results(column)["tpot_s"]) for column in range(3)
    ]


def test_a_sweep_is_a_table_of_fields_then_results(estimate: mt.Estimate, impossible: mt.Estimate) -> None:
    table = mt.sweep(impossible.scenario, tp=[1, 4], concurrency=range(8, 17, 8))
    assert [*table.columns[:2]] == ["tp", "concurrency"] and len(table) == 4
    assert [*table["reasons"]] == ["MEMORY_EXCEEDED"] * 2 + [""] * 2
    metrics = [metric for metric in METRICS if metric.column in table]
    assert len(metrics) >= len(estimate.metrics())
    for place, point in enumerate(({"tp": 1}, {"tp": 4, "concurrency": 16})):
        row = table.iloc[0 if place == 0 else 3]
        of_point = mt.estimate(impossible.scenario.replace(**point)).metrics()
        for metric, value in of_point.items():
            told = row[metric.column]
            assert np.isnan(told) if value is None else told == pytest.approx(value, rel=1e-12), metric.key
    assert mt.sweep(estimate.scenario, tp=2)["tpot_s"].iloc[0] == estimate.tpot
    with pytest.raises(mt.InputError, match="given twice"):
        mt.sweep(estimate.scenario, {"tp": [1]}, tp=[2])


def test_drivers_are_the_effects_as_a_table(estimate: mt.Estimate) -> None:
    table, effects = mt.drivers(estimate), sensitivity(estimate)
    assert [*table.index] == [item.input.id for item in effects]
    assert table.loc["cost.price", "usd"] == pytest.approx(0.4) and table.loc["cost.price", "tpot"] == 0


def test_a_trace_is_data(estimate: mt.Estimate) -> None:
    tree = mt.trace(estimate, "serving.tpot", depth=1).to_dict()
    assert [branch["id"] for branch in tree["branches"]] == ["serving.decode_step", "serving.stall"]
    assert all(branch["deeper"] for branch in tree["branches"])


@pytest.mark.exhaustive
def test_the_workbook_of_an_estimate_verifies(workbook: Path, estimate: mt.Estimate) -> None:
    assert mt.verify(workbook).ok
    assert mt.import_workbook(workbook).estimate.to_dict() == estimate.to_dict()
    with pytest.raises(mt.InputError, match=r"run\.csv: expected a file name that ends in \.xlsx"):
        estimate.to_excel("run.csv")


def examples(documented: object) -> str:
    """The code under `Example:` in a docstring."""
    text = inspect.getdoc(documented) or ""
    found = re.search(r"^Example:\n((?:[ ]{4}.*\n?|\n)+)", text, re.MULTILINE)
    return dedent(found[1]) if found else ""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in mt.__all__ if name != "__version__"])
def test_every_public_name_has_an_example_that_runs(
    name: str,
    estimate: mt.Estimate,
    workbook: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    code = compile(examples(getattr(mt, name)) or "raise AssertionError('no example')", name, "exec")
    if name in COMPILED:
        return
    (tmp_path / "workbooks").symlink_to(ROOT / "workbooks")
    (tmp_path / "run.xlsx").write_bytes(workbook.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(code, {"mantile": mt, "scenario": estimate.scenario, "estimate": estimate, name: getattr(mt, name)})


@pytest.mark.exhaustive
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    script = ROOT / "workbooks" / "notebook.py"
    monkeypatch.setattr("sys.argv", [str(script), str(tmp_path)])
    cells = runpy.run_path(str(script))
    told = capsys.readouterr().out
    assert "MEMORY_EXCEEDED" in told and "=serving.decode_step+serving.stall" in told
    assert isinstance(cells["table"], pd.DataFrame) and (tmp_path / "notebook.xlsx").is_file()


def test_what_a_function_returns_is_printed_in_few_words(estimate: mt.Estimate, tmp_path: Path) -> None:
    """However much it holds, but for tables and plain objects. What reads workbooks is filled by hand."""
    scenario = estimate.scenario
    asked: dict[str, Any] = {key: FIELDS[key] for key in FIELDS if key not in ("accelerator", "tp")}
    asked |= {"over": {"accelerator": ["h100-sxm"], "framework": ["vllm"], "tp": [1]}, "gpus_max": 2}
    record = FIELDS | {"id": "own", "source": "a test", "date": "2026-11-20", "metrics": {"tpot_s": 0.009}}
    runs = tmp_path / "runs.yaml"
    runs.write_text(json.dumps({"runs": [record]}), encoding="utf-8")
    measured = mt.load_measurements(runs)
    best, needed = mt.optimize(**asked), mt.size(**asked)
    many = [{"id": "serving.tpot", "value": 1.0}] * 5000
    filled = [
        kind(*(many for _ in fields(kind))) for kind in (Audit, Calibration, Comparison, Report, Reports)
    ]
    results = [
        *(estimate, scenario, best, needed, measured, mt.match_runs(measured.runs), mt.reconcile(measured)),
        *(mt.explain(estimate, TPOT.id), mt.trace(estimate, TPOT.id), *filled),
        *(mt.launch_line(scenario), mt.launch_files(scenario), mt.read_launch("vllm serve x/y -tp 2")),
        *(mt.load_model("deepseek-v3"), mt.load_library(), mt.fits("l4", models=["llama-3.1-8b"])),
        *(best.question, best.found, best.chips),
        *(best.candidates, best.decided, needed.tiers, needed.question),
    ]
    long = [f"{type(one).__name__}: {len(repr(one)):,}" for one in results if len(repr(one)) >= 2000]
    assert not long, long


def test_metrics_are_declared_in_one_place() -> None:
    """No other file of the package writes the JSON key of a metric in a table of its own."""
    keys = {metric.key for metric in METRICS if metric.unit == "s"}
    readers = {
        "measured/dialects.py",
        "measured/runs.py",
        "measured/template.py",
        "bench/bench.py",
        "bench/figures.py",
        "server/asked.py",
    }  # fields of measured runs as others write them
    package = Path(mt.__file__).parent
    for path in package.rglob("*.py"):
        place = path.relative_to(package).as_posix()
        if place in readers or place == "equations/metrics.py":
            continue
        for key in keys:
            assert f'"{key}": ' not in path.read_text(encoding="utf-8"), f"{place}: {key}"


def test_metric_is_immutable() -> None:
    with pytest.raises(AttributeError):
        TPOT.label = "other"  # type: ignore[misc]
    assert isinstance(TPOT, Metric)
