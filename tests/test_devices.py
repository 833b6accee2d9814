"""Devices that are not alike: equal ones are a pipeline of equal ones, splits are the best there are."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import few_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from live import as_written, few

import mantile as mt
from mantile.cli.application import main
from mantile.estimates.sweep import sweep
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named, Quantity, expression, precedents
from mantile.library.errors import InputError
from mantile.library.models import load_model
from mantile.library.scenario import parse_scenario
from mantile.search.devices import assignments
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.book import ANSWERS, FIRST, HEAD_ROW
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.write import build_workbook

BASE: dict[str, Any] = {"framework": "vllm", "input_tokens": 2048, "output_tokens": 256}
HOME: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "framework": "llama.cpp",
    "weights_dtype": "q4_k_m",
    "input_tokens": 2048,
    "output_tokens": 128,
    "concurrency": 1,
}
UNLIKE = [{"accelerator": "rtx-4090"}, {"accelerator": "m3-ultra"}, {"accelerator": "dgx-spark-gb10"}]


def numbers(result: Any, place: str = "") -> dict[str, float]:
    """All numbers of a result, by where they stand."""
    if isinstance(result, dict):
        return {
            key: value for name in result for key, value in numbers(result[name], f"{place}.{name}").items()
        }
    return {place: float(result)} if isinstance(result, int | float) and not isinstance(result, bool) else {}


def ask(**fields: Any) -> mt.Estimate:
    return mt.estimate(mt.Scenario(**fields))


def values(estimate: mt.Estimate) -> dict[str, Any]:
    return {node.id: value for node, value in estimate.values().items() if hasattr(node, "id")}


@pytest.mark.parametrize(
    ("model", "accelerator", "tp", "pp", "concurrency"),
    [
        ("llama-3.1-8b", "h100-sxm", 2, 3, 64),  # 32 layers: stages are uneven
        pytest.param("qwen3-235b-a22b", "h200-sxm", 8, 2, 128, marks=pytest.mark.exhaustive),
    ],
)
def test_equal_devices_are_the_pipeline_of_equal_accelerators(
    model: str, accelerator: str, tp: int, pp: int, concurrency: int
) -> None:
    fields = BASE | {"model": model, "accelerator": accelerator, "concurrency": concurrency}
    alike = ask(**fields, tp=tp, pp=pp).to_dict()
    expected = {
        place: value
        for place, value in numbers(alike).items()
        if "checks" not in place and "nearest" not in place
    }
    assert len(expected) > 40
    for split in ("even", "solved"):
        apart = ask(**fields, device_split=split, devices=[{"count": tp}] * pp).to_dict()
        found = numbers(apart)
        for place, value in expected.items():
            assert found[place] == pytest.approx(value, rel=1e-12), (split, place)
        assert not apart["checks"]["errors"]


PRICED = [{"accelerator": "h100-sxm", "layers": 20}, {"accelerator": "a100-80gb-sxm", "layers": 12}]
IDLE: dict[str, dict[str, Any]] = {
    "heads do not divide": {"accelerator": "rtx-4090", "count": 3},
    "engine does not run there": {"accelerator": "m3-ultra"},
    "nothing fits": {"accelerator": "rtx-4090", "count": 8, "memory": 1.0},
    "of a larger machine": {"accelerator": "h100-sxm", "count": 8},
}
OF_FIRST = (".tp", ".nearest_run", ".device", ".evidence", ".range_80")
"""Beginnings of results that follow from the cells of the first device, or of each."""


@pytest.mark.parametrize(
    ("idle", "place"), few_of([(name, at) for name in IDLE for at in (0, 2)], ("heads do not divide", 0))
)
def test_a_device_without_layers_changes_nothing(idle: str, place: int) -> None:
    """No number, no check, no title: though no layer could run on it, and nobody states its price."""
    two = ask(**BASE, model="llama-3.1-8b", concurrency=4, devices=PRICED)
    devices = [*PRICED[:place], IDLE[idle] | {"layers": 0}, *PRICED[place:]]
    made = ask(**BASE, model="llama-3.1-8b", concurrency=4, devices=devices)
    results, expected = made.to_dict(), two.to_dict()
    found = numbers(results)
    assert expected["usd_per_hour"] > 0 and expected["power_w"] > 0 and expected["ram_peak_bytes"] > 0
    for name, value in numbers(expected).items():
        if not name.startswith(OF_FIRST):
            assert found[name] == pytest.approx(value, rel=1e-9), name
    assert results["feasibility"] == "fits" and results["fits"]
    codes = [[check["code"] for check in of["checks"]["alerts"]] for of in (results, expected)]
    assert not results["checks"]["errors"] and set(codes[0]) <= {*codes[1], "SPLIT_NOT_BEST"}
    assert made.title == two.title == "Llama-3.1-8B on 1 × H100 SXM + 1 × A100 80GB SXM"
    assert "counts neither as an accelerator nor in power and cost" in results["layers_in_words"]
    assert "counts neither" not in expected["layers_in_words"]


def test_the_price_that_lacks_is_that_of_a_device_with_layers() -> None:
    held = [UNLIKE[0] | {"layers": 20}, UNLIKE[1] | {"layers": 12}]
    made = ask(**HOME, devices=[UNLIKE[2] | {"layers": 0}, *held])
    alerts = {check["code"]: check["message"] for check in made.to_dict()["checks"]["alerts"]}
    assert alerts["PRICE_UNKNOWN"].startswith("nobody states a cloud price of M3 Ultra")


def test_a_device_drops_out_of_the_workbook_and_comes_back() -> None:
    """Its cell of layers holds 0, then what it held: by the formulas alone, and natively the same."""
    asked = BASE | {"model": "llama-3.1-8b", "concurrency": 4, "device_split": "even"}
    chips = [{"accelerator": "h100-sxm"}, {"accelerator": "a100-80gb-sxm"}]
    made = mt.estimate(mt.Scenario(**asked, devices=chips), library=few())
    book, graph = lay_out(made), made.equations
    model = CompiledSheets(as_written(book).contents)
    cells = [book.input_cells[f"inputs.device{number}_layers", 0] for number in (1, 2)]
    of_cost = (graph.rows["cost.usd_per_hour"], graph.rows["cost.power"])
    wanted = (graph.prefill_workers.ranks.deployment, *of_cost)
    sheet = book.sheets["Layers"]
    (row,) = (place[0] for place, cell in sheet.cells.items() if cell.text == "All devices")
    for layers, said in (
        ((32, 0), "1 × H100 SXM"),
        ((0, 32), "1 × A100 80GB SXM"),
        ((16, 16), "1 × H100 SXM + 1 × A100 80GB SXM"),
    ):
        shown = model.calculate(
            ("Summary", "Inputs", "Calculation", "Layers"), dict(zip(cells, layers, strict=True))
        )
        assert shown["Summary", 0, 1].startswith(f"Llama-3.1-8B on {said}: ")
        stated = [chip | {"layers": held} for chip, held in zip(chips, layers, strict=True)]
        there = mt.estimate(mt.Scenario(**asked, devices=stated), library=few())
        values = there.values()
        assert there.title == f"Llama-3.1-8B on {said}"
        for figure in wanted:
            place = book.addresses[figure]
            expected = values[there.equations.figures[figure.id]]
            assert shown[place.sheet, place.row, FIRST] == pytest.approx(expected, rel=1e-9), figure.id
        assert shown["Layers", row, 2] == sum(held > 0 for held in layers)


def test_a_point_of_a_sweep_is_the_estimate() -> None:
    """Each point has its own best split, as an estimate has; of other splits too."""
    asked = HOME | {"devices": UNLIKE}
    table = sweep(mt.Scenario(**asked), {"device_split": ["solved", "memory"], "concurrency": [1, 12]})
    for _, row in table.iterrows():
        alone = ask(**asked | {"device_split": row["device_split"], "concurrency": int(row["concurrency"])})
        assert row["tpot_s"] == pytest.approx(alone.tpot, rel=1e-12)
        assert row["ttft_s"] == pytest.approx(alone.ttft, rel=1e-12)
    with pytest.raises(InputError, match=r"expected at most 1,000 where each looks for the best split"):
        sweep(mt.Scenario(**asked), {"concurrency": range(1, 1200)})


def test_layers_bytes_and_times_are_those_of_the_model() -> None:
    """What devices hold adds up, and each takes as long as if the whole model ran on it, by its share."""
    made = ask(**HOME | {"concurrency": 8}, device_split="memory", devices=UNLIKE)
    found = values(made)
    layers = [found[f"inputs.device{number}_layers"] for number in (1, 2, 3)]
    assert sum(layers) == 32 and min(layers) > 0
    whole = ask(**HOME | {"concurrency": 8}, accelerator="m3-ultra")
    of_all = sum(found[f"devices.{number}.memory.all_weights"] for number in (1, 2, 3))
    assert of_all == pytest.approx(values(whole)["memory.all_weights"], rel=1e-9)
    stages = [found[f"devices.decode.{number}.stage"] for number in (1, 2, 3)]
    assert sum(stages) == pytest.approx(found["decode.time"], rel=1e-12)
    assert found["serving.decode_step"] >= found["decode.microbatches"] * max(stages) * (1 - 1e-12)


def test_each_device_is_what_a_deployment_of_it_is() -> None:
    """The time of a layer on a device is that of a deployment of such devices alone, at the same batch."""
    found = values(ask(**HOME, device_split="even", devices=UNLIKE))
    for number, chip in enumerate(("rtx-4090", "m3-ultra", "dgx-spark-gb10"), start=1):
        alone = values(ask(**HOME, accelerator=chip))
        for module in ("qkv", "attention", "ffn_up", "ffn_down"):
            here = found[f"devices.{number}.decode.{module}.layer_time"]
            assert here == pytest.approx(alone[f"decode.{module}.layer_time"], rel=1e-12), (chip, module)


def best_of_all(made: mt.Estimate, count: int) -> float:
    """The most tokens per second with any split of the layers over so many devices, each by the graph."""
    graph, total = made.equations, int(made.values()[made.equations.ir.total_layers])
    bars = combinations(range(total + count - 1), count - 1)
    splits = np.array([np.diff([-1, *bar, total + count - 1]) - 1 for bar in bars], float)
    figures = (graph.rows["checks.possible"], graph.figures["serving.output_tokens_per_s"])
    most = 0.0
    for part in np.array_split(splits, len(splits) // 4000 + 1):
        layers = {f"inputs.device{place}_layers": held for place, held in enumerate(part.T, start=1)}
        possible, speed = Program(figures).sweep({**made.inputs(0), **layers}).values()
        most = max(most, float(np.max(np.where(np.asarray(possible) > 0, speed, 0))))
    return most


@pytest.mark.parametrize(
    ("fields", "devices"),
    [
        (HOME | {"model": "llama-3.2-1b"}, [*UNLIKE, {"accelerator": "m4-max"}]),
        # what is fastest for one request has no room for many
        (BASE | {"model": "qwen3-32b", "concurrency": 128}, ["h100-sxm", "a100-80gb-sxm"]),
        (BASE | {"model": "qwen3-32b", "request_rate": 2}, ["a100-80gb-sxm", "h100-sxm"]),
        *(
            pytest.param(BASE | fields, devices, marks=pytest.mark.exhaustive)
            for fields, devices in (
                (
                    {"model": "llama-3.3-70b", "concurrency": 256},
                    ["h100-sxm", "l40s", "h200-sxm", "a100-80gb-sxm"],
                ),
                ({"model": "qwen3-30b-a3b", "concurrency": 1000}, ["l40s", "h100-sxm", "l4"]),
            )
        ),
    ],
)
def test_the_solved_split_is_the_best_of_all(fields: dict[str, Any], devices: list[Any]) -> None:
    """At the load that is asked for: every split is worked out by the graph."""
    listed = [{"accelerator": one} if isinstance(one, str) else one for one in devices]
    made = ask(**fields, devices=listed)
    found = made.to_dict()
    assert not found["checks"]["errors"]
    best = best_of_all(ask(**fields, devices=listed, device_split="even"), len(listed))
    assert found["output_tokens_per_s"] == pytest.approx(best, rel=1e-9)
    assert "SPLIT_NOT_BEST" not in [alert["code"] for alert in found["checks"]["alerts"]]


def test_the_alert_never_advises_the_split_in_use() -> None:
    """A layer is worked out by its kind: the first layer here is dense, all others have experts."""
    fields = BASE | {"model": "deepseek-v2-lite", "concurrency": 7, "output_tokens": 16}
    devices = [{"accelerator": "h200-sxm", "count": 4}, {"accelerator": "h100-sxm", "count": 4}]
    made = ask(**fields, device_split="even", devices=devices)
    found = values(made)
    assert "SPLIT_NOT_BEST" not in [alert["code"] for alert in made.to_dict()["checks"]["alerts"]]
    for here, other in (("serving.decode_step", "step"), ("prefill.time", "through")):
        assert found[f"devices.other.even.{other}"] == pytest.approx(found[here], rel=1e-9)
    uneven = [devices[0] | {"layers": 2}, devices[1] | {"layers": 25}]
    alerts = ask(**fields, devices=uneven).to_dict()["checks"]["alerts"]
    assert "SPLIT_NOT_BEST" in [alert["code"] for alert in alerts]


CHIPS = ("rtx-4090", "m3-ultra", "dgx-spark-gb10", "m4-max", "rtx-5060-ti-16gb", "ryzen-9-9950x", "h100-sxm")


@pytest.mark.parametrize(
    "model",
    [
        "llama-3.2-1b",  # its embedding is its head: both ends hold it
        pytest.param("gemma-3-4b", marks=pytest.mark.exhaustive),  # windows in some layers
    ],
)
def test_nothing_is_lost_or_made_between_devices(model: str) -> None:
    """Layers, bytes, KV cache and FLOPs of devices are those of the model on one accelerator, however they
    are split, whatever the devices are, none of which may hold anything.
    """
    fields = HOME | {"model": model, "concurrency": 4}
    made = ask(**fields, device_split="even", devices=[{"accelerator": chip} for chip in CHIPS[:4]])
    alone = ask(**fields, accelerator="h100-sxm")
    graph, whole = made.equations, alone.equations
    assert graph.devices is not None
    devices = graph.devices.devices
    found = [
        {
            "layers": device.layers,
            "weights": graph.figures[f"devices.{device.number}.memory.all_weights"],
            "kv": graph.figures[f"devices.{device.number}.memory.kv_bytes_per_request"],
            "stage": graph.devices.stages["decode"][device.number - 1].time,
        }
        for device in devices
    ]
    of_passes = {
        "cuts": graph.decoding.microbatches,
        "step": graph.decode.time,
        **{f"{phase}.{name}": graph.figures[f"{phase}.{name}"] for phase, name in PASSES},
    }
    program = Program([*(row for each in found for row in each.values()), *of_passes.values()])
    reference = Program(
        [
            *(whole.figures[f"{phase}.{name}"] for phase, name in PASSES),
            *(whole.figures[f"memory.{name}"] for name in ("all_weights", "kv_bytes_per_request")),
        ]
    )
    total = int(alone.values()[whole.ir.total_layers])
    shape = load_model(model).architecture
    norm = 2 * shape.value("hidden_size")  # stands before the head, once
    head = float(made.values()[devices[-1].workers.memory.ends[1]]) - norm

    @settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
    @given(
        chips=st.lists(st.sampled_from(CHIPS), min_size=4, max_size=4),
        cuts=st.lists(st.integers(0, total), min_size=3, max_size=3).map(sorted),
        concurrency=st.integers(1, 9),
        tokens=st.integers(1, 6000),
    )
    def holds(chips: list[str], cuts: list[int], concurrency: int, tokens: int) -> None:
        asked = {"inputs.concurrency": concurrency, "inputs.input_tokens": tokens}
        layers = [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]
        inputs = made.inputs(0) | asked | {"inputs.accelerator": chips[0]}
        inputs |= {f"inputs.device{n}_accelerator": chip for n, chip in enumerate(chips[1:], start=2)}
        inputs |= {f"inputs.device{n}_layers": count for n, count in enumerate(layers, start=1)}
        split, one = program.run(inputs), reference.run(alone.inputs(0) | asked)
        sums = {name: sum(split[each[name]] for each in found) for name in found[0]}
        assert sums["layers"] == total
        copies = head if shape.value("tied_embeddings") and layers.count(total) == 0 else 0
        expected = one[whole.figures["memory.all_weights"]] + copies
        assert sums["weights"] == pytest.approx(expected, rel=1e-9)
        assert sums["kv"] == pytest.approx(one[whole.figures["memory.kv_bytes_per_request"]], rel=1e-12)
        assert sums["stage"] == pytest.approx(split[of_passes["step"]], rel=1e-9)
        for phase, name in PASSES:
            times = split[of_passes["cuts"]] if phase == "decode" else 1
            expected = one[whole.figures[f"{phase}.{name}"]]
            assert times * split[of_passes[f"{phase}.{name}"]] == pytest.approx(expected, rel=1e-9), (
                phase,
                name,
            )

    holds()


@pytest.mark.parametrize(
    "model", ["llama-3.1-8b", pytest.param("gpt-oss-120b", marks=pytest.mark.exhaustive)]
)
def test_more_bandwidth_or_faster_products_of_a_device_never_lengthen_tpot(model: str) -> None:
    """However layers are split: prompts hold up the step of the slowest device, which may be another then."""
    asked = HOME | {"model": model, "concurrency": 8, "device_split": "even"}
    made = ask(**asked, devices=[{"accelerator": chip} for chip in CHIPS[:3]])
    tpot = made.equations.figures["serving.tpot"]
    program, total = Program([tpot]), int(made.values()[made.equations.ir.total_layers])

    @settings(max_examples=25, deadline=None, derandomize=True, phases=[Phase.generate])
    @given(
        chips=st.lists(st.sampled_from(CHIPS), min_size=3, max_size=3),
        cuts=st.lists(st.integers(0, total), min_size=2, max_size=2).map(sorted),
        concurrency=st.sampled_from((2, 8, 64)),
        tokens=st.sampled_from((200, 1000, 4000, 16000)),
        changed=st.sampled_from(("hardware.memory_bandwidth", "efficiency.gemm_compute")),
        device=st.sampled_from(("", "devices.2.", "devices.3.")),
    )
    def holds(
        chips: list[str], cuts: list[int], concurrency: int, tokens: int, changed: str, device: str
    ) -> None:
        inputs = made.inputs(0) | {"inputs.concurrency": concurrency, "inputs.input_tokens": tokens}
        inputs |= {"inputs.output_tokens": 50, "inputs.accelerator": chips[0]}
        inputs |= {f"inputs.device{n}_accelerator": chip for n, chip in enumerate(chips[1:], start=2)}
        layers = [end - start for start, end in zip([0, *cuts], [*cuts, total], strict=True)]
        inputs |= {f"inputs.device{n}_layers": count for n, count in enumerate(layers, start=1)}
        ranges = {"hardware.memory_bandwidth": (100, 8000), "efficiency.gemm_compute": (0.05, 1)}
        inputs[f"{device}{changed}.override"] = np.geomspace(*ranges[changed], 30)
        times = np.broadcast_to(program.run(inputs)[tpot], 30)
        assert np.all(np.diff(times) <= 1e-9 * times[:-1]), (chips, layers, device)

    holds()


PASSES = (("prefill", "flops"), ("prefill", "bytes"), ("decode", "flops"))


def test_a_slower_link_is_slower_and_none_is_no_plan() -> None:
    def step(**link: Any) -> mt.Estimate:
        devices = [UNLIKE[0] | {"layers": 16} | link, UNLIKE[1] | {"layers": 16}]
        return ask(**HOME, devices=devices)

    rates = [step(link="1gbe"), step(link="10gbe"), step(link="10gbe", link_bandwidth=5, link_latency=5)]
    times = [made.to_dict()["ttft_s"] for made in rates]
    assert times == sorted(times, reverse=True) and len(set(times)) == 3
    alone = step(link="none").to_dict()
    assert [check["code"] for check in alone["checks"]["errors"]] == ["NO_LINK_BETWEEN_DEVICES"]
    assert alone["ttft_s"] is None and alone["tpot_s"] is None
    assert "LINK_INFERRED" in [check["code"] for check in step().to_dict()["checks"]["alerts"]]
    assert "LINK_INFERRED" not in [check["code"] for check in rates[0].to_dict()["checks"]["alerts"]]


def test_devices_fit_where_each_has_room_for_its_own_layers() -> None:
    """Not where the first had room for the most that any of them holds."""
    for layers, fits in ((8, True), (24, False)):
        devices = [
            UNLIKE[0] | {"layers": layers, "memory": 3},
            UNLIKE[1] | {"layers": 32 - layers},
        ]
        assert ask(**HOME, devices=devices).to_dict()["fits"] is fits


def test_what_cannot_be_is_named() -> None:
    short = ask(**HOME, devices=[UNLIKE[0] | {"layers": 16}, UNLIKE[1] | {"layers": 10}]).to_dict()
    assert "LAYERS_ON_DEVICES" in [check["code"] for check in short["checks"]["errors"]]
    full = ask(
        **HOME | {"model": "llama-3.3-70b"}, devices=[UNLIKE[0] | {"layers": 79}, UNLIKE[1] | {"layers": 1}]
    )
    said = {check["code"]: check["message"] for check in full.to_dict()["checks"]["errors"]}
    words = said["DEVICE1_MEMORY_EXCEEDED"]
    assert words.startswith(
        "device 1, GeForce RTX 4090: needs 42.2 GB of 24.5 for 79 layers: fewer layers on it"
    )
    small = ask(
        **HOME, devices=[UNLIKE[0] | {"layers": 31, "memory": 2}, UNLIKE[1] | {"layers": 1}]
    ).to_dict()
    assert "DEVICE1_MEMORY_EXCEEDED" in [check["code"] for check in small["checks"]["errors"]]
    for wrong, words in (
        ({"devices": [UNLIKE[0]]}, "expected at least two"),
        ({"devices": [UNLIKE[0], UNLIKE[1] | {"link": "10gbe"}]}, "no link of the last device"),
        ({"devices": [UNLIKE[0] | {"link": "rope"}, UNLIKE[1]]}, "rope"),
        ({"devices": UNLIKE, "decode": {"tp": 1}}, "no decode workers"),
        (
            {"accelerator": "m4-max", "variants": [{"devices": UNLIKE}, {"serving": "disaggregated"}]},
            "no decode workers",
        ),
        ({"devices": UNLIKE, "accelerator": "m4-max"}, "devices.0"),
    ):
        with pytest.raises(InputError, match=words):
            mt.estimate(parse_scenario(HOME | wrong, "mixed.yaml"))


def test_fields_of_devices_are_fields_of_a_scenario() -> None:
    scenario = mt.Scenario(**HOME, devices=UNLIKE)
    assert scenario.replace(device2_layers=4).devices[1].layers == 4
    assert scenario.replace(device1_link="10gbe").devices[0].link == "10gbe"
    with pytest.raises(InputError, match="there are 3 devices"):
        scenario.replace(device7_layers=4)


def test_a_spark_and_a_mac_with_the_links_that_they_have() -> None:
    """EXO, Llama-3.1-8B in fp16, 8k prompt, 32 tokens: 2.32 s, 2.8 times the Mac, 1.9 times the Spark."""
    fields = HOME | {"framework": "exo", "weights_dtype": "fp16", "input_tokens": 8192, "output_tokens": 32}
    mac, spark = (
        ask(**fields, accelerator=chip).to_dict()["e2e_s"] for chip in ("m3-ultra", "dgx-spark-gb10")
    )
    made = ask(**fields, accelerator="dgx-spark-gb10", decode={"accelerator": "m3-ultra"}).to_dict()
    assert not made["checks"]["errors"]
    assert made["e2e_s"] == pytest.approx(2.32, rel=0.1)
    assert mac / made["e2e_s"] == pytest.approx(2.8, rel=0.1)
    assert spark / made["e2e_s"] == pytest.approx(1.9, rel=0.1)


@pytest.mark.exhaustive
def test_what_speaks_of_equal_ranks_is_not_said_of_unlike_devices() -> None:
    """Neither in a title, nor on Plan: its grid is of equal ranks."""
    made = ask(**HOME, device_split="even", devices=UNLIKE[:2])
    assert mt.plan(made)["sides"] == []
    assert made.title.endswith(" on 1 × GeForce RTX 4090 + 1 × M3 Ultra (80 GPU cores)")
    assert "Devices" in (parts := lay_out(made).sheets["Layers"].parts) and "Plan" not in parts


def test_rows_of_devices_stand_below_what_they_refer_to() -> None:
    """What all hold follows from what each does, and what each holds from the batch of all."""
    sheets = ask(**HOME, device_split="even", devices=UNLIKE).equations.sheets
    for name in ("Hardware", "Calculation"):
        rows = [figure for section in sheets[name] for figure in section.figures()]
        at = {figure: place for place, figure in enumerate(rows)}
        assert [
            (figure.id, precedent.id)
            for figure in rows
            if isinstance(figure, Quantity)
            for precedent in precedents(figure)
            if at.get(precedent, 0) > at[figure]
        ] == []


def test_columns_with_fewer_devices_are_as_without_the_others() -> None:
    """A device that only another column has costs nothing and changes nothing."""
    fewer, more = UNLIKE[:2], UNLIKE
    both = ask(**HOME, device_split="even", devices=fewer, variants=[{"devices": more}])
    for column, devices in enumerate((fewer, more)):
        alone = numbers(ask(**HOME, device_split="even", devices=devices).to_dict())
        found = numbers(both.results(column))
        assert not both.results(column)["checks"]["errors"]
        for name in ("ttft_s", "tpot_s", "output_tokens_per_s", "kv_capacity_sequences", "accelerators"):
            assert found[f".{name}"] == pytest.approx(alone[f".{name}"], rel=1e-12), (column, name)


LINKED = [UNLIKE[0] | {"layers": 20}, UNLIKE[1] | {"layers": 0}, UNLIKE[2] | {"layers": 12}]


def test_activations_go_by_the_links_that_a_preset_has() -> None:
    """From the first to the third of three, past one without layers: through it, by a switch, or straight."""
    between = [{"devices": [3, 1], "link": "100gbe"}, {"devices": [1, 2], "bandwidth": 2, "latency": 40}]
    written = HOME | {"devices": LINKED, "links": {"preset": "chain", "link": "10gbe", "between": between}}
    made = mt.estimate(parse_scenario(written, "mixed.yaml"))
    graph = made.equations
    assert graph.devices is not None
    links = {link.ends: link for link in graph.devices.links}
    wanted = [figure for link in links.values() for figure in (link.carried, link["rate"], link["latency"])]
    message, time = (graph.figures[name] for name in ("devices.prefill.sent_bytes", "prefill.p2p.time"))
    program = Program([*wanted, message, time])
    for preset, ways in {
        "chain": [(1, 2), (2, 3)],
        "ring": [(1, 3)],
        "star": [(1, 3)],
        "mesh": [(1, 3)],
    }.items():
        found = program.run(made.inputs(0) | {"inputs.links": preset})
        assert [ends for ends, link in links.items() if found[link.carried]] == ways, preset
        seconds = sum(
            found[links[way]["latency"]] + found[message] / found[links[way]["rate"]] for way in ways
        )
        assert found[time] == pytest.approx(seconds, rel=1e-12), preset
    assert found[links[1, 3]["rate"]] == pytest.approx(12.5e9 * 0.9)
    cut = program.run(made.inputs(0) | {"inputs.links": "mesh", "inputs.device1_link_to_3_bandwidth": 0})
    assert [ends for ends, link in links.items() if cut[link.carried]] == [(1, 2), (2, 3)]
    inferred = dict.fromkeys(("inputs.device1_link_to_3", "inputs.device1_link"), "inferred")
    switched = program.run(made.inputs(0) | inferred | {"inputs.links": "star"})
    assert switched[links[1, 3]["rate"]] == pytest.approx(
        0.3125e9 * 0.9
    )  # of the 2.5 GbE port of a desktop board


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ({"preset": "web"}, "links"),
        ({"between": [{"devices": [1, 9]}]}, "links.between.0.devices: expected two of the devices 1 to 3"),
        ({"between": [{"devices": [1, 2], "speed": 1}]}, "unknown field 'speed'"),
        ({"between": [{"devices": [1, 2], "link": "rope"}]}, "rope"),
    ],
)
def test_links_that_cannot_be_are_named(links: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        mt.estimate(parse_scenario(HOME | {"devices": LINKED, "links": links}, "mixed.yaml"))


def test_a_link_past_the_next_device_needs_a_preset() -> None:
    wrong = [LINKED[0] | {"link_to_3": "10gbe"}, *LINKED[1:]]
    with pytest.raises(InputError, match="expected links: mesh, star or ring beside it"):
        parse_scenario(HOME | {"devices": wrong}, "mixed.yaml")
    with pytest.raises(InputError, match="expected devices beside them"):
        parse_scenario(HOME | {"accelerator": "m3-ultra", "links": {"preset": "mesh"}}, "mixed.yaml")


@pytest.mark.exhaustive
def test_a_ring_is_gone_round_where_that_is_shorter_and_every_link_is_drawn(run: Run, tmp_path: Path) -> None:
    """Four devices of which the first, the second and the last hold layers."""
    devices = ("rtx-4090,layers=12", "m3-ultra,layers=10", "dgx-spark-gb10,layers=0", "m4-max,layers=10")
    given = [part for device in devices for part in ("--device", device)]
    drawn = tmp_path / "plan.svg"
    for preset, count, used in (("ring", 4, {(1, 2), (2, 3), (3, 4)}), ("mesh", 6, {(1, 2), (2, 4)})):
        asked = ("estimate", "--plan", "llama-3.1-8b", *FLAGS, *given, "--links", preset)
        plan = json.loads(run(*asked, "--json")[1])
        shown = plan["topology"]["links"]
        assert len(shown) == count
        ends = {(int(link["from"][-1]), int(link["to"][-1])) for link in shown if link["prefill_ms"]}
        assert ends == used, preset
        assert run(*asked, "--svg", str(drawn))[0] == 0
        root = ElementTree.parse(drawn).getroot()
        lines = [one for one in root.iter("{http://www.w3.org/2000/svg}line")]
        assert len(lines) == count + 4  # and the key
        words = [text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text")]
        assert sum("GB/s" in word and "of" not in word for word in words) == count
    star = json.loads(
        run("estimate", "--plan", "llama-3.1-8b", *FLAGS, *given, "--links", "star", "--json")[1]
    )
    assert {link["to"] for link in star["topology"]["links"]} == {"network"}
    edited = mt.Scenario(
        **HOME, devices=[{"accelerator": chip} for chip in ("rtx-4090", "m3-ultra")], links="ring"
    )
    assert mt.estimate(edited).to_dict()["links"]["others"] == []


FLAGS = ("--framework", "llama.cpp", "--isl", "2048", "--osl", "128", "--concurrency", "1")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Exit status, stdout and stderr of a command line."""

    def command(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mantile", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = int(stop.code or 0)
        return status, *capsys.readouterr()

    return command


def test_devices_of_a_command_line_are_those_of_a_scenario(run: Run) -> None:
    devices = ("--device", "rtx-4090,layers=20,link=10g", "--device", "m3-ultra:2,layers=12")
    status, out, _ = run("estimate", "llama-3.1-8b", *FLAGS, *devices, "--json")
    fields = HOME | {"weights_dtype": "default", "model": "llama-3.1-8b"}
    fields.pop("weights_dtype")
    listed = [UNLIKE[0] | {"layers": 20, "link": "10gbe"}, UNLIKE[1] | {"layers": 12, "count": 2}]
    expected = ask(**fields, devices=listed).to_dict()
    assert status == 0 and json.loads(out).items() >= json.loads(json.dumps(expected)).items()
    first, second = expected["devices"]
    assert (first["layers"], second["accelerators"], second["which_layers"]) == (20, 2, [21, 32])
    assert first["link"]["bandwidth_bytes_per_s"] == pytest.approx(1.125e9) and second["link"] is None
    assert first["link"]["busiest"] and not first["link"]["inferred"]
    assert first["decode_s"] + second["decode_s"] == pytest.approx(
        values(ask(**fields, devices=listed))["decode.time"], rel=1e-12
    )
    # what the last one states of a link is of the one that leads to it
    turned = ("--device", "rtx-4090,layers=20", "--device", "m3-ultra:2,layers=12,link=10g")
    assert run("estimate", "llama-3.1-8b", *FLAGS, *turned, "--json")[1] == out


@pytest.mark.parametrize(
    ("devices", "words"),
    [
        (["rtx-4090"], "expected 2 to 8 devices, found 1"),
        (["rtx-4090", "m3-ultra:many"], "count: expected a whole number, found 'many'"),
        (["rtx-4090", "m3-ultra,speed=2"], "speed=2: expected FIELD=VALUE of accelerator"),
        (["rtx-4090,link=10g", "m3-ultra,link=tb5"], "the device before states its link"),
        (["rtx-4090", ":2"], "expected CHIP or CHIP:COUNT first"),
    ],
)
def test_a_device_that_cannot_be_read_is_named(run: Run, devices: list[str], words: str) -> None:
    given = [part for device in devices for part in ("--device", device)]
    status, _, err = run("estimate", "llama-3.1-8b", *FLAGS, *given)
    assert status == 2 and words in err


def test_a_picture_has_every_link_with_its_bandwidth_and_marks_the_busiest(run: Run, tmp_path: Path) -> None:
    """Dashed where nobody states the link; a link without layers behind it is drawn, not as used."""
    drawn = tmp_path / "plan.svg"
    devices = ("rtx-4090,layers=16,link=2.5g", "m3-ultra,layers=16", "dgx-spark-gb10,layers=0")
    given = [part for device in devices for part in ("--device", device)]
    status, out, _ = run("estimate", "--plan", "llama-3.1-8b", *FLAGS, *given, "--svg", str(drawn))
    assert status == 0 and "busiest" in out and "unused, inferred" in out
    root = ElementTree.parse(drawn).getroot()
    lines = [one for one in root.iter("{http://www.w3.org/2000/svg}line") if float(one.get("y1", 0)) < 400]
    states = {str(one.get("class")): one for one in lines[:2]}
    assert set(states) == {"busiest", "unused"}
    assert states["unused"].get("stroke-dasharray") and not states["busiest"].get("stroke-dasharray")
    words = " ".join(text.text or "" for text in root.iter("{http://www.w3.org/2000/svg}text"))
    for part in ("2.5gbe · 0.2812 GB/s", "1.125 GB/s", "layers 17 – 32", "no layers"):
        assert part in words, part
    assert run("estimate", "--plan", "llama-3.1-8b", *FLAGS, *given, "--svg", "plan.png")[0] == 2


def test_the_network_is_the_busiest_link_only_where_ranks_of_a_layer_are_across_it() -> None:
    """Pipeline stages in two machines send little over it, one all-reduce over both of them much."""
    fields = BASE | {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 8}
    for degrees, busiest in (({"tp": 8, "pp": 2}, "domain0"), ({"tp": 16}, "network")):
        shown = mt.plan(ask(**fields, **degrees))["topology"]
        assert [box["id"] for box in shown["boxes"]] == ["domain0", "domain1", "network"]
        assert len(shown["boxes"][0]["accelerators"]) == 8
        marked = {link["to"] for link in shown["links"] if link["state"] == "busiest"}
        assert busiest in marked, degrees


EXO = {
    "framework": "exo",
    "accelerator": "m3-ultra",
    "input_tokens": 512,
    "output_tokens": 128,
    "concurrency": 1,
}
RDMA = "mac-m3-ultra-tb5-rdma"


def exo_speed(model: str, dtype: str, macs: int) -> float:
    """Tokens per second of one request on so many M3 Ultra, joined by Thunderbolt 5 with RDMA."""
    system: dict[str, Any] = {"system": RDMA} if macs > 1 else {}
    return 1 / float(
        ask(**EXO | {"model": model, "weights_dtype": dtype}, tp=macs, **system).to_dict()["tpot_s"]
    )


def test_macs_over_rdma_are_faster_by_what_exo_states() -> None:
    """1.8 times on two and 3.2 times on four, of a dense model (EXO's README, which says: up to)."""
    alone, two, four = (exo_speed("llama-3.3-70b", "fp16", macs) for macs in (1, 2, 4))
    assert two / alone == pytest.approx(1.8, rel=0.15)
    assert four / alone == pytest.approx(3.2, rel=0.15)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("model", "dtype", "macs", "measured", "within"),
    [
        ("qwen3-235b-a22b", "int8", 4, 31.9, 0.15),  # Geerling, December 2025, as snackonai.com quotes him
        ("deepseek-r1", "int4", 1, 17.5, 0.15),  # Dave2D, 17 to 18 tokens/s, as wccftech.com quotes him
    ],
)
def test_large_models_on_macs_reach_what_was_measured(
    model: str, dtype: str, macs: int, measured: float, within: float
) -> None:
    assert exo_speed(model, dtype, macs) == pytest.approx(measured, rel=within)


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["qwen3-235b-a22b", "kimi-k2"])
def test_four_macs_are_faster_than_two(model: str) -> None:
    assert exo_speed(model, "int4", 4) > exo_speed(model, "int4", 2)


def test_prefill_goes_where_compute_is_and_decode_where_bandwidth_is(run: Run, tmp_path: Path) -> None:
    """A Spark and a Mac, as EXO paired them; with one token to make there is nothing to hand over."""
    pair = ("--device", "dgx-spark", "--device", "m3-ultra", "--framework", "exo", "--weights-dtype", "fp16")
    asked = ("--isl", "8192", "--osl", "32", "--concurrency", "1")
    best = tmp_path / "best.yaml"
    status, out, _ = run("optimize", "llama-3.1-8b", *pair, *asked, "--json", "-o", str(best))
    found = json.loads(out)
    assert status == 0 and found["winner"]["name"] == "prefill on dgx-spark, decode on m3-ultra"
    times = [one["metrics"]["e2e_s"] for one in found["candidates"]]
    assert times == sorted(times) and len(times) == 5
    assert mt.estimate(mt.load_scenario(str(best))).to_dict()["e2e_s"] == pytest.approx(times[0], rel=1e-12)
    assert "decode" in found["winner"]["plan"] and "3.38 times" in found["winner"]["reason"]


@pytest.mark.parametrize(
    ("stated", "first", "refused"),
    [
        ({}, "prefill on dgx-spark-gb10, decode on m3-ultra", ()),
        ({"link": "none"}, "dgx-spark-gb10 alone", ("NO_LINK_BETWEEN_WORKERS",) * 2),
        ({"link_bandwidth": 0.01}, "dgx-spark-gb10 alone", ()),
        (
            {"memory": 10},
            "all as one pipeline",
            ("DECODE_MEMORY_EXCEEDED", "MEMORY_EXCEEDED", "MEMORY_EXCEEDED"),
        ),
    ],
)
def test_links_and_memory_of_machines_are_as_stated(
    stated: dict[str, Any], first: str, refused: tuple[str, ...]
) -> None:
    """However they are used: a pair hands its KV cache over the link that is stated, or cannot without."""
    asked = {"model": "llama-3.1-8b", "framework": "exo", "weights_dtype": "fp16"}
    asked |= {"input_tokens": 8192, "output_tokens": 32, "concurrency": 1}
    machines = [{"accelerator": "dgx-spark-gb10"} | stated, {"accelerator": "m3-ultra"}]
    found = assignments(asked, machines)
    assert found[0].name == first and len(found) == 5
    assert tuple(sorted(one.refused for one in found if one.refused)) == refused
    apart = next(one for one in found if one.name.startswith("prefill on dgx"))
    if "link_bandwidth" in stated:
        assert apart.results["ttft_s"] > 100


def test_accelerators_of_a_machine_are_tried_as_a_pipeline_too(run: Run) -> None:
    """Three do not divide the heads: the model runs on them only as stages."""
    asked = ("--framework", "exo", "--isl", "2048", "--osl", "32", "--concurrency", "1", "--json")
    status, out, _ = run("optimize", "llama-3.1-8b", "--device", "m3-ultra:3", *asked)
    best, other = json.loads(out)["candidates"]
    assert status == 0 and best["name"] == "pipeline of 3 m3-ultra alone" and best["plan"]["pp"] == 3
    assert other["name"] == "m3-ultra × 3 alone" and "HEADS_NOT_DIVISIBLE" in other["lost_because"]
    status, _, err = run("optimize", "llama-3.1-8b", "--device", "m3-ultra", *asked)
    assert status == 2 and "m3-ultra:3" in err


@pytest.mark.exhaustive
def test_what_machines_do_follows_the_prompt() -> None:
    """A short prompt and many tokens: the Mac alone."""
    fields = HOME | {"framework": "exo", "weights_dtype": "fp16", "input_tokens": 16, "output_tokens": 512}
    found = assignments(fields, [{"accelerator": "dgx-spark-gb10"}, {"accelerator": "m3-ultra"}])
    assert "decode on m3-ultra" in found[0].name or found[0].name in ("m3-ultra alone", "all as one pipeline")
    assert found[-1].name in ("dgx-spark-gb10 alone", "prefill on m3-ultra, decode on dgx-spark-gb10")


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["qwen3-235b", "kimi-k2"])
def test_three_macs_and_a_pc_hold_large_models(model: str) -> None:
    """Every layer is held, each device fits, and no split that a formula follows is faster."""
    scenario = Path(__file__).parent / "data" / "devices" / f"{model}-three-macs-and-a-pc.yaml"
    made = mt.estimate(mt.load_scenario(str(scenario)))
    found = made.to_dict()
    devices = found["devices"]
    assert not found["checks"]["errors"] and found["fits"]
    assert sum(device["layers"] for device in devices) == made.values()[made.equations.ir.total_layers]
    assert all(device["memory_used_bytes"] <= device["memory_usable_bytes"] for device in devices)
    assert "SPLIT_NOT_BEST" not in [check["code"] for check in found["checks"]["alerts"]]
    assert sum(1 for device in devices if device["link"] and device["link"]["busiest"]) == 1


@pytest.mark.parametrize(("link", "possible"), [(None, 1), ("none", 0)])
def test_a_split_over_no_link_is_none(link: str | None, possible: int) -> None:
    """Three devices of which the last holds no layer could all hold some, if something joined it."""
    second = {"accelerator": "rtx-3090", "layers": 16} | ({} if link is None else {"link": link})
    devices = [{"accelerator": "rtx-4090", "layers": 16}, second, {"accelerator": "rtx-4090", "layers": 0}]
    made = ask(**HOME | {"concurrency": 4}, devices=devices)
    assert not made.results()["checks"]["errors"]
    assert values(made)["devices.other.even.fits"] == possible


@pytest.mark.exhaustive
def test_devices_joined_any_to_any_have_short_formulas(tmp_path: Path) -> None:
    """No finding of the lint with three, as with two and four."""
    made = ask(**HOME, devices=UNLIKE, links={"preset": "mesh"})
    assert not lint(build_workbook(made, tmp_path / "three.xlsx"))


@pytest.mark.exhaustive
def test_formulas_of_devices_are_short_and_refer_upward() -> None:
    """On the sheet of workings that device rows stand on."""
    book = lay_out(ask(**HOME, device_split="even", devices=UNLIKE))
    sheet = book.sheets["Calculation"]
    for (row, _), cell in sheet.cells.items():
        if cell.expression is not None and row > HEAD_ROW:
            named = {part for part in expression(cell.expression) if isinstance(part, Named)}
            places = {book.addresses[part] for part in named if part in book.addresses}
            below = [at for at in places if at.sheet == sheet.name and at.row > row]
            assert not below or sheet.sections.get(row) == ANSWERS, (row, below)


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("llama-3.1-8b", {"speculation": "eagle", "acceptance_rate": 0.5, "concurrency": 4}),
        ("llama-3.1-8b", {"speculation": "n-gram", "request_rate": 2, "prefix_hit_rate": 0.3}),
        ("mixtral-8x7b", {"request_rate": 0.2}),
    ],
    ids=["drafts", "drafts, prefixes and a rate", "experts and a rate"],
)
def test_workbooks_of_devices_hold_all_their_rows(model: str, asked: dict[str, Any], tmp_path: Path) -> None:
    """What a drafter takes on each device stands on a sheet, and so does what a lone request reads there."""
    devices = [{"accelerator": "h100-sxm"}, {"accelerator": "a100-80gb-sxm"}]
    scenario = mt.Scenario(**(BASE | {"model": model, "concurrency": None, "devices": devices} | asked))
    made = mt.estimate(scenario, library=few(("h100-sxm", "a100-80gb-sxm")))
    book = made.to_excel(tmp_path / "devices.xlsx")
    assert mt.verify(book).ok


def test_another_split_has_the_ends_where_it_puts_the_layers() -> None:
    """Embedding and LM head lie where that split has them, whatever the first device holds as it is."""
    asked = HOME | {"framework": "vllm", "weights_dtype": "fp8"}
    chips = ({"accelerator": "rtx-4090", "count": 1}, {"accelerator": "rtx-3090", "count": 1})
    ends = []
    for layers in ((16, 16), (0, 32)):
        devices = [chip | {"layers": held} for chip, held in zip(chips, layers, strict=True)]
        made = mt.estimate(mt.Scenario(**asked, devices=devices))
        ends.append([made.values()[made.figure(f"devices.other.even.{n}.ends")] for n in (1, 2)])
    assert ends[0] == ends[1] and all(size > 0 for size in ends[0])
