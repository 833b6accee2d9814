"""Sheets that say what a model is made of and where in a pass its time goes: IR, Shapes, Layers, Plan."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import pytest
from conftest import few_models
from live import exit_status, few, loaded
from small_models import CONFIGS

from mantile.equations.ir import ir_sheet
from mantile.equations.layers import layers
from mantile.equations.order import LayerOrder
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.plan import plan
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Node, Quantity
from mantile.ir.build import build_ir
from mantile.ir.counts import describe
from mantile.library.errors import InputError
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.unread import why_unread
from mantile.library.models import Model, load_model, model_ids
from mantile.library.scenario import parse_scenario
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.write import build_workbook

ASKED: dict[str, Any] = {
    "model": "deepseek-v3",
    "accelerator": "gb200-nvl72",
    "tp": 4,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 64,
}
FEW = ("deepseek-v3", "gemma-3-27b", "nemotron-3-nano")


def ask(**fields: Any) -> Estimate:
    """DeepSeek-V3 on four ranks unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


def run(made: Estimate, nodes: list[Node], edited: dict[str, Any] | None = None) -> dict[Node, Any]:
    """Values of what a sheet shows, with some inputs edited."""
    return Program(nodes).run(made.inputs(0) | (edited or {}))


def shown(book: EstimateBook, sheet: str, edited: dict[str, Any] | None = None) -> dict[str, Any]:
    """Values on a sheet by the ids of its figures."""
    values = book.values([book.estimate.inputs(0) | (edited or {})])[0]
    return {
        figure.id: values[figure.body]
        for figure, address in book.addresses.items()
        if address.sheet == sheet and isinstance(figure, Quantity)
    }


@pytest.mark.parametrize("name", few_models(*FEW))
def test_modules_and_shapes_hold_every_parameter_once(name: str) -> None:
    """Rows sum to the model, every shape multiplies out, and a module's bytes are those of its tensors."""
    made = ask(model=name)
    sheet, equations = ir_sheet(made.equations), made.equations.rows
    stored, tower = equations["tensors.parameters"], "tensors.vision"
    rows = [*sheet.rows, *sheet.apart]
    nodes: list[Node] = [sheet.parameters, sheet.check, stored]
    for row in rows:
        nodes += [row.parameters, row.bytes]
    for tensor in sheet.tensors:
        nodes += [*tensor.shape, tensor.values, tensor.bytes, tensor.size]
        nodes += [figure for figure in (tensor.tensor.layers, tensor.tensor.copies) if figure is not None]
    values = run(made, [*nodes, *([equations[tower]] if tower in equations else [])])
    runs = made.equations.ir.vision is not None  # other towers stand apart
    vision = values[equations[tower]] if runs else 0
    assert values[sheet.parameters] == values[stored] + vision
    assert str(values[sheet.check]).startswith("✓")
    assert len(sheet.rows) == len(made.equations.ir.modules) + runs
    for tensor in sheet.tensors:
        often = [figure for figure in (tensor.tensor.layers, tensor.tensor.copies) if figure is not None]
        assert prod(values[node] for node in (*tensor.shape, *often)) == values[tensor.values]
        assert values[tensor.bytes] == pytest.approx(values[tensor.values] * values[tensor.size], rel=1e-12)
    for row in rows:
        of_module = [tensor for tensor in sheet.tensors if tensor.module == row.number]
        assert values[row.bytes] == pytest.approx(
            sum(values[tensor.bytes] for tensor in of_module), rel=1e-12
        )
        parameters = sum(values[tensor.values] for tensor in of_module if not tensor.tensor.buffer)
        if row not in sheet.apart:
            assert values[row.parameters] == parameters, row.name.value


@pytest.mark.parametrize("name", few_models(*FEW))
def test_ranges_cover_each_layer_once(name: str) -> None:
    """However the kinds of layers interleave; words in one run are first and last layer."""
    made = ask(model=name)
    ir = made.equations.ir
    order = LayerOrder(ir, "test")
    total = int(made.values()[ir.total_layers])
    covered = [
        layer for kind in ir.layers for low, high in order.runs([kind]) for layer in range(low, high + 1)
    ]
    assert sorted(covered) == list(range(1, total + 1))
    for kind in ir.layers:
        runs, words = order.runs([kind]), order.words([kind])
        if len(runs) == 1:
            low, high = runs[0]
            said = str(run(made, [words])[words])
            assert said in (f"{low} – {high}", str(low) if low == high else "")


@pytest.mark.parametrize("name", few_models(*FEW))
def test_the_matrix_sums_to_the_pass(name: str) -> None:
    """Of both phases: columns to a layer, layers and ends to the pass, bars to cells, steps to a layer."""
    made = ask(model=name, pp=2)
    matrix = layers(made.equations, made.values())
    groups = [(phase, kind, group) for phase, m in matrix.phases.items() for kind, group in m.groups.items()]
    nodes: list[Node] = [
        node for m in matrix.phases.values() for node in (m.shown, m.time, m.sums, *m.columns)
    ]
    for _, _, group in groups:
        nodes += [group.time, *group.cells, *group.bars.values()]
    for step in matrix.steps:
        nodes += [figure for t in step.timings.values() for figure in (t.time, t.start) if figure is not None]
    values = run(made, nodes)
    for phase, m in matrix.phases.items():
        assert values[m.shown] == pytest.approx(values[m.time], rel=1e-12)
        assert values[m.time] == made.values()[getattr(made.equations, phase).time] * 1000
        assert str(values[m.sums]).startswith("✓")
        drawn = [t for step in matrix.steps if (t := step.timings[phase]).start is not None]
        end = 0.0
        for timing in drawn:
            assert timing.start is not None
            assert values[timing.start] == pytest.approx(end, rel=1e-12, abs=1e-9)
            end += values[timing.time]
        assert end == pytest.approx(values[m.groups[matrix.main].time], rel=1e-12)
    for _, kind, group in groups:
        assert sum(values[cell] for cell in group.cells) == pytest.approx(values[group.time], rel=1e-12)
        for place, cell in enumerate(group.cells):
            bars = [values[bar] for (column, _), bar in group.bars.items() if column == place]
            assert sum(bars) == pytest.approx(values[cell], rel=1e-12), (kind.name, place)


@pytest.mark.exhaustive
def test_sheets_follow_edits_of_plan_format_and_model() -> None:
    """TP, the data type of weights, and how many layers and experts there are."""
    made = estimate(parse_scenario(ASKED | {"accelerator": "b200-sxm"}, "test"), library=few())
    book = lay_out(made)
    edited = {
        "inputs.tp": 2,
        "inputs.weights_dtype": "bf16",
        "model.layers.attention.moe": 70,
        "model.experts": 128,
    }
    before, after = shown(book, "IR"), shown(book, "IR", edited)
    assert after["ir.parameters"] != before["ir.parameters"]
    up = next(row for row in ir_sheet(book.estimate.equations).rows if row.name.value == "Experts gate + up")
    number = f"ir.parameters.{up.number}"
    assert before[number] == 58 * 256 * 4096 * 7168
    assert after[number] == 70 * 128 * 4096 * 7168
    assert after[f"ir.bytes.{up.number}"] == 2 * after[number]
    values = book.values([book.estimate.inputs(0) | edited])[0]
    texts = {
        str(values[c.expression])
        for c in book.sheets["IR"].cells.values()
        if c.expression is not None and c.scenario >= 0
    }
    assert {"4 – 73", "1 – 3", "heads ÷ 2", "all 128, each ÷ 2", "✓ sums to the tensor list"} <= texts
    said = shown(book, "Layers", edited)
    assert said["layers.title"].startswith("Layers: 70 equal layers take ")
    assert said["layers.shown.decode"] == pytest.approx(said["layers.pass.decode"], rel=1e-12)


def test_interleaved_layers_say_that_their_numbers_were_edited() -> None:
    """Nothing is said of an order that no longer is."""
    made = ask(model="gemma-3-27b")
    order = LayerOrder(made.equations.ir, "test")
    words = [order.words([kind]) for kind in made.equations.ir.layers]
    plain = run(made, words)
    assert [plain[word] for word in words] == ["1 – 5, 7 – 11, … 61 – 62", "6, 12, … 60"]
    edited = run(made, words, {"model.layers.full.ffn": 11})
    assert [edited[word] for word in words] == ["52 of 63", "11 of 63"]


@pytest.mark.exhaustive
def test_plan_says_how_many_accelerators_it_does_not_show() -> None:
    """Of prefill and of decode workers; nothing is left out in silence."""
    made = ask(model="llama-3.1-8b", accelerator="h100-sxm", tp=2, serving="disaggregated", decode={"tp": 4})
    book = lay_out(made)
    for identifier, degrees in (
        ("placement.0.beyond", {"inputs.tp": 8, "inputs.pp": 2, "inputs.dp": 6}),
        ("placement.0.decode.beyond", {"inputs.decode_tp": 32, "inputs.decode_pp": 3}),
    ):
        assert shown(book, "Layers")[identifier] == "all accelerators in use are shown"
        said = shown(book, "Layers", degrees)[identifier]
        assert said == "! 24 more accelerators are not shown"


@pytest.mark.exhaustive
def test_grid_and_picture_of_plan_follow_an_edit_beyond_the_size_at_generation() -> None:
    """As the plan of the edited scenario has it; what is not in use is told apart from what is."""
    fields = {"model": "qwen3-30b-a3b", "accelerator": "h100-sxm", "concurrency": 8}
    made = ask(**fields, tp=4, ep=4)
    book = lay_out(made)
    for degrees in (
        {"tp": 16, "ep": 16},
        {"tp": 8, "ep": 8, "pp": 3},
        {"tp": 4, "ep": 4, "dp": 5},
        {"tp": 1},
    ):
        degrees = {"tp": 4, "ep": 1, "pp": 1, "dp": 1} | degrees
        found = shown(book, "Layers", {f"inputs.{name}": value for name, value in degrees.items()})
        expected = plan(ask(**fields, **degrees))
        (side,) = expected["sides"]
        used = [one for one in side["accelerators"] if one["in_use"]]
        stages = {one["number"]: one["stage"] for one in used}
        assert [found[f"placement.0.stage_in_use.{at}"] for at in range(8, 72)] == [
            stages.get(at, -1) for at in range(8, 72)
        ]
        for one in used[8:]:
            stage, number = int(one["stage"]), one["number"]
            assert found[f"placement.0.stage_used.{stage}"] == pytest.approx(one["used_gb"], rel=1e-12)
            assert found[f"placement.0.stage_layers.{stage}"] == one["layers"]
            assert found[f"placement.0.experts_in_use.{number}"] == one["experts"]
            place = f"r{one['replica']:.0f} g{one['group']:.0f} t{one['rank']:.0f}"
            assert found[f"placement.0.place_in_use.{number}"] == place
        topology = expected["topology"]
        boxes = [len(box["accelerators"]) for box in topology["boxes"] if box["accelerators"]]
        assert [found[f"topology.0.count.{at}"] for at in range(6)] == (boxes + [0] * 6)[:6]
        for name, inside in (("inside", True), ("outside", False)):
            links = [link for link in topology["links"] if (link["from"] == link["to"]) == inside]
            sent = max((link["prefill_ms"] or 0 for link in links), default=0)
            assert found[f"topology.0.{name}"] == pytest.approx(sent, rel=1e-12)
        kinds = [found[f"topology.0.{kind}"] for kind in ("ranks", "stage", "stages")]
        assert sum(kinds) == pytest.approx(found["topology.0.inside"] + found["topology.0.outside"])
        messages = sum(message["seconds"] for message in expected["messages"]["prefill"])
        assert sum(kinds) == pytest.approx(1e3 * messages)


def test_every_unread_field_of_our_models_has_a_reason() -> None:
    """So that the alert about fields that are not known is clear."""
    recorded = 0
    for name in model_ids():
        architecture = load_model(name).architecture
        if {fact.origin for fact in architecture.facts.values()} == {"code"}:
            continue  # its class knows the field or not; the alert lists what it does not know
        unread = architecture.unread
        recorded += unread is not None
        assert [path for path, value in (unread or {}).items() if why_unread(path, value) is None] == [], name
    assert recorded >= 70


@pytest.mark.parametrize(
    ("field", "value", "known"),
    [
        ("num_experts", 1, False),
        ("num_experts", 0, True),
        ("num_experts", None, True),
        ("q_lora_rank", 1536, False),
        ("block_configs", [{"attention": {"n_heads_in_group": 8}}], False),
        ("block_configs", [], True),
        ("auto_map", {"AutoModel": "modeling.Own"}, True),
        ("architectures", ["LlamaForCausalLM"], None),
    ],
)
def test_a_field_that_contradicts_the_class_is_not_silent(field: str, value: Any, known: bool | None) -> None:
    """Listed as not used, in `ir` too; without a reason where it would change the model."""
    data = CONFIGS["llama"] | {field: value}
    architecture = parse_config(data, "config.json")
    model = Model(id="m", name="M", source="test", architecture=architecture)
    told = {item["field"]: item["why"] for item in describe(build_ir(model))["not_used"]}
    assert (field in told) == (known is not None)
    assert (told.get(field) is not None) == bool(known)


def test_a_class_of_another_model_type_is_told() -> None:
    """In files of 0.10 a class stands there that is of the model type: it raises no alert."""
    read = parse_config(CONFIGS["llama"] | {"architectures": ["MixtralForCausalLM"]}, "config.json")
    unread = read.unread or {}
    assert unread["architectures[0]"] == '["MixtralForCausalLM"]' and "architectures" not in unread
    assert why_unread("architectures[0]", unread["architectures[0]"]) is None
    assert why_unread("architectures", '["LlamaForCausalLM"]') == "its class is that of the model type"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("LlamaForCausalLMEagle3", "drafts tokens for another model"),
        ("Eagle3LlamaForCausalLM", "drafts tokens for another model"),
        ("DeepSeekMTPModel", "drafts tokens for another model"),
        ("LlamaModel", "leave architectures out"),
        ("Qwen3ForSequenceClassification", "leave architectures out"),
        ("Qwen2ForRewardModel", "leave architectures out"),
    ],
)
def test_a_class_that_generates_nothing_is_refused(name: str, what: str) -> None:
    """Draft heads, and checkpoints without an LM head, with a way out."""
    with pytest.raises(InputError, match=rf"field architectures: .*{name}.*{what}"):
        parse_config(CONFIGS["llama"] | {"architectures": [name]}, "config.json")
    parse_config(CONFIGS["llama"] | {"architectures": ["LlamaForCausalLM"]}, "config.json")


@pytest.mark.exhaustive
def test_an_unknown_field_is_amber_and_raises_an_alert() -> None:
    """Never silent; one that was read is not listed."""
    config = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "expert_gate_scale": 0.5,
        "rope_theta": 10000,
    }
    architecture = parse_config(config, "config.json")
    assert architecture.unread == {"expert_gate_scale": "0.5", "rope_theta": "10000"}
    model = Model(id="m", name="M", source="test", architecture=architecture)
    made = estimate(parse_scenario(ASKED | {"model": "m", "tp": 1}, "test"), model=model)
    assert "CONFIG_FIELDS_UNKNOWN" in {alert["code"] for alert in made.results()["checks"]["alerts"]}
    texts = [cell.text for cell in lay_out(made).sheets["IR"].cells.values()]
    assert "! expert_gate_scale" in texts and "not known: check the model class" in texts
    known = parse_config({key: value for key, value in config.items() if "gate" not in key}, "config.json")
    known_model = model.model_copy(update={"architecture": known})
    made = estimate(parse_scenario(ASKED | {"model": "m", "tp": 1}, "test"), model=known_model)
    assert "CONFIG_FIELDS_UNKNOWN" not in {alert["code"] for alert in made.results()["checks"]["alerts"]}


@pytest.mark.exhaustive
def test_an_edited_file_is_what_the_engine_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TP, PP and the data type of weights typed in the file; both engines agree on every cell."""
    scenario = parse_scenario(ASKED | {"model": "qwen3-next-80b"}, "test")
    made = estimate(scenario, library=few(("gb200-nvl72",)))
    path = build_workbook(made, tmp_path / "run.xlsx")
    book = loaded(path)
    for handle, value in (("in_tp", 2), ("in_pp", 2), ("in_weights_dtype", "fp8")):
        sheet, cell = next(iter(book.defined_names[handle].destinations))
        book[sheet][cell.replace("$", "")].value = value
    book.save(path)
    assert exit_status("verify", str(path), "--json") in (0, 1)  # inputs were edited
    report = json.loads(capsys.readouterr().out)
    assert report["mismatches"] == []
    assert len(report["edited"]["inputs"]) == 3
