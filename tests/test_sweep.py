"""Sweeps: a point is the estimate of that scenario, whatever is swept; what is written, shown and refused."""

from __future__ import annotations

import json
import math
import random
import sys
import tracemalloc
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mantile import sweep
from mantile.cli import main
from mantile.cli.flags import swept_values
from mantile.estimates import sweep as sweeping
from mantile.estimates.estimate import estimate
from mantile.estimates.sweep import BLOCK, FRAME, FRONT, Digest, grid, pareto
from mantile.estimates.tables import table_file
from mantile.library.beside_cpu import beside_cpu
from mantile.library.errors import InputError
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, parse_scenario

BASE = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "tp": 8,
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
MOE = {
    "model": "deepseek-r1",
    "accelerator": "gb200-nvl72",
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 512,
    "overrides": [{"id": "efficiency.gemm_compute", "value": 0.5, "reason": "as given"}],
}
RATED = {name: value for name, value in BASE.items() if name != "concurrency"} | {"request_rate": 1.0}
FITTING = ("fits", "fits_with_offload")


def asked(**fields: Any) -> Scenario:
    """The base scenario with other fields."""
    return parse_scenario(BASE | fields, "scenario")


def at(base: Mapping[str, Any], point: Mapping[str, Any]) -> Scenario:
    """The scenario file that somebody would write for a point."""
    data = dict(base)
    decode, overrides = (
        dict(data.get("decode", {})),
        [item for item in data.get("overrides", []) if item["id"] not in point],
    )
    for name, value in point.items():
        if "." in name:
            overrides.append({"id": name, "value": value, "reason": "swept"})
        elif name.startswith("decode_"):
            decode[name.removeprefix("decode_")] = value
        else:
            data[name] = value
    return parse_scenario(data | {"overrides": overrides} | ({"decode": decode} if decode else {}), "point")


def flat(results: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested results under keys joined by _."""
    found: dict[str, Any] = {}
    for key, value in results.items():
        found |= flat(value, f"{prefix}{key}_") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


def place(point: Sequence[int], over: Mapping[str, Sequence[Any]]) -> int:
    """The row of a point: the last parameter runs fastest."""
    row = 0
    for index, values in zip(point, over.values(), strict=True):
        row = row * len(values) + index
    return row


def require_equal(
    base: Mapping[str, Any], over: Mapping[str, Sequence[Any]], count: int, seed: int = 0
) -> set[str]:
    """Random points equal the estimate of their scenario, to the last bit; the verdicts met."""
    table = sweep(parse_scenario(base, "scenario"), over)
    assert len(table) == prod(map(len, over.values()))
    dice = random.Random(seed)
    verdicts = set()
    for _ in range(count):
        indices = [dice.randrange(len(values)) for values in over.values()]
        point = {name: values[index] for index, (name, values) in zip(indices, over.items(), strict=True)}
        row = table.iloc[place(indices, over)].to_dict()
        made = estimate(at(base, point)).results()
        found = flat(made) | {"reasons": " ".join(check["code"] for check in made["checks"]["errors"])}
        verdicts.add(made["feasibility"])
        same_sides = (
            point.get("serving") == "aggregated"
        )  # the columns of one workbook: what is said of one side is said of the other
        for name, value in row.items():
            if name in point and name not in (
                "system",
                "decode_system",
            ):  # there the system that `default` stands for
                assert value == point[name], (point, name)
            elif name not in found and name in ("decode_system", "workers_ratio", "load", "load_state"):
                continue  # other points have decode workers or a load
            elif same_sides and name == "reasons":
                assert {code.removeprefix("DECODE_") for code in value.split()} == set(found[name].split()), (
                    point
                )
            else:
                assert value == found[name] or (value != value and found[name] is None), (
                    point,
                    name,
                    value,
                    found[name],
                )
    return verdicts


# --- a point is an estimate ---------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_points_equal_estimates_of_hardware_formats_and_figures() -> None:
    """Fields that others follow from, other names of formats, figures overridden, plans that do not work."""
    verdicts = require_equal(
        BASE,
        {
            "accelerator": ["h100-sxm", "a100-80gb-sxm", "tpu-v5e", "dgx-spark-gb10"],
            "weights_dtype": ["bf16", "nvfp4", "int8"],
            "kv_dtype": ["bf16", "fp8"],
            "tp": [1, 3, 8, 1024],
            "pp": [1, 3],
            "concurrency": [1, 70, 1_000_000],
            "input_tokens": [1, 5000, 10_000_000],
            "framework": ["vllm", "llama.cpp"],
            "batching": ["continuous", "static"],
            "efficiency.gemm_bandwidth": [0.05, 0.7],
            "hardware.memory_bandwidth": [1.0, 3000.0],
            "price_basis": ["cloud", "owned"],
        },
        14,
    )
    assert {"invalid", "fits"} <= verdicts


@pytest.mark.exhaustive
def test_points_equal_estimates_of_plans_and_workloads() -> None:
    verdicts = require_equal(
        BASE,
        {
            "framework": ["vllm", "trtllm", "exo"],
            "microbatches": [0, 3],
            "sequence_parallel": ["off", "on"],
            "tp": [1, 4],
            "pp": [1, 8],
            "dp": [1, 7],
            "cp": [1, 5],
            "attention_dp": [1, 2],
            "activation_dtype": ["bf16", "fp8"],
            "attention_dtype": ["same", "fp8"],
            "utilisation": [0.3, 1],
            "output_tokens": [300, 1, 20],
            "offload_weights": [50.5, 0, 7],
            "prompts_per_slot": [0, 4],
            "scheduler": ["default", "whole-prompts"],
        },
        14,
    )
    assert {"invalid", "fits", "fits_with_offload"} <= verdicts


@pytest.mark.exhaustive
def test_points_equal_estimates_where_phases_differ() -> None:
    """Decode workers follow what is swept of the others, unless they are swept themselves.

    An override of the file gives way to one swept.
    """
    require_equal(
        MOE,
        {
            "accelerator": ["gb200-nvl72", "h200-sxm"],
            "decode_accelerator": ["gb200-nvl72", "b200-sxm"],
            "decode_tp": [1, 8],
            "decode_dp": [1, 3],
            "ep": [1, 8],
            "attention_dp": [1, 8],
            "decode_ep": [1, 64],
            "weights_dtype": ["fp8", "nvfp4"],
            "experts_dtype": ["same", "fp8"],
            "tp": [1, 4],
            "efficiency.gemm_compute": [0.3, 0.9],
        },
        8,
    )
    require_equal(
        MOE | {"decode": {"accelerator": "h200-sxm", "tp": 8}},
        {
            "accelerator": ["h100-sxm", "h200-sxm"],
            "system": ["default", "hgx-h200"],
            "framework": ["vllm", "sglang"],
            "cp": [1, 2, 4, 5],
        },
        5,
    )
    bare = {name: value for name, value in MOE.items() if name != "overrides"}
    require_equal(
        bare,
        {
            "serving": ["aggregated", "disaggregated"],
            "tp": [1, 8],
            "engine_release": ["current", "before 2025-12"],
        },
        4,
    )


@pytest.mark.exhaustive
def test_points_equal_estimates_under_a_request_rate() -> None:
    """Where no concurrency is given it follows from the rate, point by point.

    Beyond any load figures are errors, as in an estimate.
    """
    over = {
        "request_rate": [0.1, 1.0, 3.0, 100.0],
        "tp": [1, 4, 8],
        "input_tokens": [100, 9000],
        "batching": ["continuous", "static"],
    }
    require_equal(RATED, over, 8)
    require_equal(BASE, {"request_rate": [0, 1.0, 3.0, 100.0], "tp": [1, 4, 8], "concurrency": [3, 50]}, 5)
    table = sweep(parse_scenario(RATED, "scenario"), over)
    assert table["concurrency"].nunique() > 4


@pytest.mark.parametrize(
    "shape",
    [(3, 5, 7), (BLOCK // 4 + 1, 8), (BLOCK + 1, 2), (2, BLOCK + 1), (FRAME // BLOCK + 1, BLOCK // 2 + 1)],
)
def test_points_are_in_order_across_blocks_and_tables(shape: tuple[int, ...]) -> None:
    """The last parameter runs fastest, wherever blocks end; results belong to the parameters of their row."""
    names = ("input_tokens", "output_tokens", "concurrency")[: len(shape)]
    over = {name: range(10, 10 + length) for name, length in zip(names, shape, strict=True)}
    table = sweep(asked(), over)
    expected = np.stack([part.ravel() for part in np.meshgrid(*over.values(), indexing="ij")], axis=1)
    assert (table[[*names]].to_numpy() == expected).all()
    made = estimate(asked())
    for row in {0, len(table) // 2, len(table) - 1, min(BLOCK, len(table)) - 1, min(BLOCK, len(table) - 1)}:
        given = {f"inputs.{name}": float(table[name].iloc[row]) for name in names}
        values = made.program.run(made.inputs(0) | given)
        assert table["ttft_s"].iloc[row] == float(values[made.equations.serving.ttft])
        assert table["usd_per_day"].iloc[row] == float(values[made.equations.rows["cost.usd_per_day"]])


def test_values_may_come_from_numpy_and_in_any_order() -> None:
    """Each once; whole numbers stay whole."""
    table = sweep(
        asked(), {"utilisation": np.array([0.5, 1.0, 0.3, 0.5]), "concurrency": np.array([9, 3, 7])}
    )
    assert table["utilisation"].tolist() == [0.5] * 3 + [1.0] * 3 + [0.3] * 3
    assert table["concurrency"].tolist() == [9, 3, 7] * 3 and table["concurrency"].dtype.kind == "i"
    expected = [
        estimate(asked(utilisation=row[0], concurrency=row[1])).results()["usd_per_day"]
        for row in ((0.5, 9), (1.0, 3), (0.3, 7))
    ]
    assert table["usd_per_day"].tolist()[::4] == expected


def test_all_stands_for_all_there_are() -> None:
    table = sweep(asked(), {"accelerator": ["all"], "framework": ["all"]})
    library = estimate(asked()).library
    assert list(zip(table["accelerator"], table["framework"], strict=True)) == [
        *product([chip.id for chip in library.accelerators], [item.id for item in library.frameworks])
    ]


def test_accelerators_of_ones_own(tmp_path: Path) -> None:
    """A file stands beside ids; the table names it by its own id."""
    file = tmp_path / "chip.yaml"
    source = "'Zeta sheet; page 2; https://zeta.example'"
    figure = f"{{{{value: {{}}, unit: {{}}, source: {source}, date: 2026-01-01, status: datasheet{{}}}}}}"
    file.write_text(
        "\n".join(
            [
                "id: my-chip",
                'version: "1"',
                "name: Mine",
                "vendor: NVIDIA",
                "generation: hopper",
                f"peak_bf16: {figure.format(900, 'TFLOP/s', '')}",
                f"peak_fp8: {figure.format('null', 'TFLOP/s', ', note: none')}",
                f"peak_fp4: {figure.format('null', 'TFLOP/s', ', note: none')}",
                f"memory_capacity: {figure.format(192, 'GiB', '')}",
                f"memory_bandwidth: {figure.format(4000, 'GB/s', '')}",
            ]
        )
    )
    table = sweep(asked(tp=1), {"accelerator": ["h100-sxm", str(file)], "weights_dtype": ["bf16", "fp8"]})
    assert table["accelerator"].tolist() == ["h100-sxm", "h100-sxm", "my-chip", "my-chip"]
    assert table["tpot_s"].iloc[2] == estimate(asked(tp=1, accelerator=str(file))).results()["tpot_s"]


# --- what is kept -------------------------------------------------------------------------------------------


def test_plans_that_do_not_work_are_kept_with_their_reasons() -> None:
    over = {"tp": [1, 3, 8], "concurrency": [1, 16]}
    table = sweep(asked(), over)
    assert table["feasibility"].tolist() == ["insufficient_memory"] * 2 + ["invalid"] * 2 + ["fits"] * 2
    assert "HEADS_NOT_DIVISIBLE" in table["reasons"].iloc[2].split()
    assert table["reasons"].iloc[0] == "MEMORY_EXCEEDED" and table["reasons"].iloc[5] == ""
    fitting = sweep(asked(), over, feasible=True)
    assert fitting["tp"].tolist() == [8, 8] and set(fitting["feasibility"]) == {"fits"}
    assert [*fitting.columns] == [*table.columns]
    assert len(sweep(asked(), {"tp": [3]}, feasible=True)) == 0


def test_a_figure_that_nobody_knows_at_any_point_has_no_number() -> None:
    """Of a chip without a price."""
    table = sweep(asked(model="llama-3.1-8b", accelerator="a40", tp=1), concurrency=[1, 2])
    assert table["usd_per_hour"].isna().all() and table["tpot_s"].notna().all()


def test_the_front_and_the_best_are_those_of_the_whole_table() -> None:
    """However the points come in, over several tables; what does not fit is not among them."""
    scenario, over = (
        asked(),
        {"accelerator": ["h100-sxm", "l40s", "tpu7x"], "tp": [1, 2, 4, 8], "concurrency": range(1, 200)},
    )
    table = sweep(scenario, over)
    digest = Digest(5)
    for start in range(0, len(table), 500):
        digest.add(table.iloc[start : start + 500])
    found = digest.to_dict()
    fits = table[table["feasibility"].isin(FITTING)]
    assert (found["points"], found["feasible"]) == (len(table), len(fits))
    assert digest.first["concurrency"].tolist() == [1, 2, 3, 4, 5]
    x, y = (fits[key].to_numpy() for key in FRONT)
    undominated = [not ((x >= a) & (y >= b) & ((x > a) | (y > b))).any() for a, b in zip(x, y, strict=True)]
    expected = set(zip(x[undominated], y[undominated], strict=True))
    assert [(point[FRONT[0]], point[FRONT[1]]) for point in found["pareto"]] == sorted(expected, reverse=True)
    priced = fits[fits["usd_per_million_tokens_output"] > 0]
    assert (
        found["best"]["usd_per_million_tokens_output"]["usd_per_million_tokens_output"]
        == priced["usd_per_million_tokens_output"].min()
    )
    assert found["best"]["output_tokens_per_s"]["output_tokens_per_s"] == fits["output_tokens_per_s"].max()
    assert pareto(fits.iloc[:0]).empty


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables pass by: three times the points take no more memory."""
    monkeypatch.setattr(sweeping, "FRAME", 2 * BLOCK)
    peaks = []
    for most in (4, 12):
        points = grid(asked(), {"output_tokens": range(1, most + 1), "concurrency": range(1, BLOCK // 2 + 1)})
        tracemalloc.start()
        for table in points.tables():
            assert len(table) <= 2 * BLOCK
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0], peaks  # a table that is being made, and the one before


# --- values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4..8", (1, 2, 4, 5, 6, 7, 8)),
        ("1..8:3", (1, 4, 7)),
        ("2^0..2^5", (1, 2, 4, 8, 16, 32)),
        ("2026-01-01,2026-6-1", ("2026-01-01", "2026-6-1")),
        ("1k,2.5M", (1000, 2_500_000)),
        ("7..7", (7,)),
        ("0.6:0.9:0.05", (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)),
        ("512:2048:512", (512, 1024, 1536, 2048)),
        ("1:8:3", (1, 4, 7)),
        ("0:1:0.5,2", (0.0, 0.5, 1.0, 2)),
        ("1e-3, .5", (0.001, 0.5)),
        ("h100-sxm,b200-sxm", ("h100-sxm", "b200-sxm")),
        ("before 2025-12", ("before 2025-12",)),
        ("../my/chip.yaml", ("../my/chip.yaml",)),
    ],
)
def test_values_in_words(text: str, values: tuple[Any, ...]) -> None:
    name, found = swept_values(f"name={text}")
    assert (name, found) == ("name", values)
    assert [*map(type, found)] == [*map(type, values)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tp", "expected NAME=VALUES"),
        ("tp=", "expected NAME=VALUES"),
        ("=1", "expected NAME=VALUES"),
        ("tp=1,,2", "expected NAME=VALUES"),
        ("tp=2^0..3^4", "powers of one number"),
        ("tp=8..1", "LOW at most HIGH"),
        ("tp=1..8:0", "LOW at most HIGH"),
        ("x=1:2", "expected a value, 1..8"),
        ("x=1:2:0", "STEP above 0"),
        ("x=2:1:1", "LOW at most HIGH"),
        ("x=0:1:1e-9", "1,000,000,001 values; expected at most"),
    ],
)
def test_values_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words.replace("..", r"\.\.")):
        swept_values(text)


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({"concurency": [1]}, ("unknown parameter 'concurency'", "concurrency")),
        (
            {"efficiency.gem_compute": [0.5]},
            ("unknown figure 'efficiency.gem_compute'", "efficiency.gemm_compute"),
        ),
        ({"efficiency.gemm_compute": [0.5, 1.5]}, ("efficiency.gemm_compute = 1.5", "expected")),
        (
            {"efficiency.gemm_compute": ["fast"]},
            ("efficiency.gemm_compute", "expected a number, found 'fast'"),
        ),
        ({"model.layers": [40]}, ("model.layers", "facts of the model")),
        ({"tp": []}, ("parameter tp", "expected one value at least")),
        ({}, ("expected one parameter at least",)),
        ({"isl": [1, 2], "input_tokens": [1]}, ("input_tokens", "given twice")),
        ({"tp": [1, 2, 0]}, ("tp 0", "field tp", "at least 1")),
        ({"tp": [1, 2, 4.5, 8]}, ("field tp", "whole number")),
        ({"tp": ["many"]}, ("field tp", "whole number", "many")),
        ({"accelerator": ["h100-sxm", "h101"]}, ("unknown accelerator 'h101'", "did you mean")),
        ({"utilisation": [0.5, float("nan")]}, ("parameter utilisation", "expected finite numbers")),
        ({"weights_dtype": ["fp8", "fp7"]}, ("unknown weights data type 'fp7'",)),
        ({"decode_pipes": [1]}, ("unknown parameter 'decode_pipes'", "decode_pp")),
        ({"experts_dtype": ["fp8"]}, ("experts_dtype", "has no experts")),
        (
            {"input_tokens": range(1, 20_001), "output_tokens": range(1, 20_001)},
            ("400,000,000 points", "at most 100,000,000"),
        ),
    ],
)
def test_what_cannot_be_swept(over: dict[str, Any], words: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as refused:
        sweep(asked(), over)
    for word in words:
        assert word in str(refused.value)


def test_models_and_profiles_are_parameters_too() -> None:
    """Each has formulas of its own; the table is that of the estimates, one below the other."""
    models = ["llama-3.1-8b", "gpt-oss-20b"]
    table = sweep(asked(), {"model": models, "concurrency": [1, 8]})
    assert [*table["model"]] == ["llama-3.1-8b"] * 2 + ["gpt-oss-20b"] * 2
    for _, row in table.iterrows():
        made = estimate(asked(model=row["model"], concurrency=int(row["concurrency"]))).results()
        assert row["tpot_s"] == pytest.approx(made["tpot_s"], rel=1e-12)
    alone = sweep(asked(concurrency=8), {"model": models})
    assert [*alone["tpot_s"]] == [*table["tpot_s"][1::2]] and "input_tokens" not in alone
    pinned = sweep(asked(), {"profile": ["none", "efficiency/hopper--vllm@1"], "tp": [1, 2]})
    assert [*pinned["profiles"]] == ["none"] * 2 + ["efficiency/hopper--vllm@1"] * 2
    assert len({*pinned["tpot_s"]}) == 4
    for over, said in (
        ({"model": ["llama-3.1-8b", "nope"]}, "unknown model 'nope'"),
        ({"profile": ["none"], "profiles": ["none"]}, "given twice"),
        ({"cpu": ["ryzen-9-9950x"]}, "no axis here"),
    ):
        with pytest.raises(InputError, match=said):
            sweep(asked(), over)


def test_a_rate_of_nothing_needs_a_concurrency() -> None:
    with pytest.raises(InputError, match="concurrency is missing"):
        sweep(parse_scenario(RATED, "scenario"), {"request_rate": [0, 1.0, 2.0]})


# --- files --------------------------------------------------------------------------------------------------


def _pieces(count: int = 3) -> Iterator[pd.DataFrame]:
    for number in range(count):
        yield pd.DataFrame(
            {
                "tp": np.arange(40) % 4 + number,
                "s": np.linspace(0.1, 1e-9, 40),
                "usd": np.where(np.arange(40) % 2, 1 / 3, np.nan),
                "verdict": pd.Categorical.from_codes(
                    np.arange(40) % 2, ["fits", f"text {number}, with a comma"]
                ),
            }
        )


def test_csv_is_what_pandas_writes_of_the_whole(tmp_path: Path) -> None:
    """Every digit, texts with commas, errors as empty cells; one line of heads."""
    with table_file(tmp_path / "a.csv") as append:
        for piece in _pieces():
            append(piece)
    pd.concat([piece.astype({"verdict": str}) for piece in _pieces()]).to_csv(tmp_path / "b.csv", index=False)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_parquet_has_a_row_group_for_each_piece(tmp_path: Path) -> None:
    from pyarrow.parquet import ParquetFile

    path = tmp_path / "a.parquet"
    with table_file(path) as append:
        for piece in _pieces():
            append(piece)
        append(next(_pieces()).iloc[:0])
    found = ParquetFile(path)
    assert found.num_row_groups >= 3
    table = found.read().to_pandas()
    expected = pd.concat([piece.astype({"verdict": str}) for piece in _pieces()], ignore_index=True)
    pd.testing.assert_frame_equal(table.astype({"verdict": str}), expected, check_dtype=False)


def test_parquet_without_its_package_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mantile.estimates.tables"], "find_spec", lambda name: None)
    with (
        pytest.raises(
            InputError, match=r"a\.parquet: Parquet needs pyarrow: pip install 'mantile\[parquet\]'"
        ),
        table_file(tmp_path / "a.parquet"),
    ):
        pass
    assert not [*tmp_path.iterdir()]


def test_nothing_half_written_stays_behind(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), table_file(tmp_path / "a.csv") as append:
        append(next(_pieces()))
        raise RuntimeError("out of something")
    assert not [*tmp_path.iterdir()]


# --- command line -------------------------------------------------------------------------------------------

FLAGS = ("--isl", "2048", "--osl", "256", "--accelerator", "h100-sxm")


class Ran:
    """What a command printed and its exit status."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Run `mantile sweep` in an empty folder, in this process."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Ran:
        monkeypatch.setattr(sys, "argv", ["mantile", "sweep", *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0
        shown = capsys.readouterr()
        return Ran(status, shown.out, shown.err)

    return command


def test_a_few_points_are_all_shown(run: Any) -> None:
    """With verdict and reasons where not all fit, and nothing on stderr in a pipe.

    Required fields may be swept.
    """
    ran = run("llama-3.3-70b", *FLAGS, "--over", "tp=3,8", "--over", "concurrency=2^0..2^2")
    assert ran.status == 0 and ran.err == ""
    assert "6 points, 3 of them fit" in ran.out
    assert "HEADS_NOT_DIVISIBLE" in ran.out and "Pareto" not in ran.out
    assert (
        "feasibility"
        not in run("llama-3.3-70b", *FLAGS, "--over", "tp=8", "--over", "concurrency=2^0..2^2").out
    )


def test_of_many_points_the_front_is_shown_and_all_are_written(run: Any, tmp_path: Path) -> None:
    ran = run(
        "llama-3.3-70b", *FLAGS, "--over", "tp=2^0..2^3", "--over", "concurrency=1:200:1", "-o", "t.csv"
    )
    assert ran.status == 0 and ran.err == ""
    assert (
        "800 points" in ran.out
        and "Pareto front" in ran.out
        and " 20 of " in ran.out
        and "t.csv: written" in ran.out
    )
    assert len(ran.out.splitlines()) < 30
    table = pd.read_csv(tmp_path / "t.csv", keep_default_na=False)
    assert len(table) == 800 and table["tp"].iloc[-1] == 8
    assert float(table["tpot_s"].iloc[-1]) == sweep(asked(), {"concurrency": [200]})["tpot_s"].iloc[0]
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_json_is_one_object(run: Any, tmp_path: Path) -> None:
    ran = run(
        "llama-3.3-70b",
        *FLAGS,
        "--over",
        "tp=2^0..2^3",
        "--over",
        "concurrency=2^0..2^8",
        "--feasible",
        "-o",
        "t.csv",
        "--json",
    )
    found = json.loads(ran.out)
    assert {"points", "feasible", "pareto", "best", "files"} == set(found)
    assert found["points"] == 36 > found["feasible"] == len(pd.read_csv(tmp_path / "t.csv"))
    assert found["best"]["tpot_s"]["tp"] == 8
    assert all(point["feasibility"] in FITTING for point in found["pareto"])
    assert all(
        math.isfinite(value)
        for point in found["pareto"]
        for value in point.values()
        if isinstance(value, float)
    )


def test_a_scenario_file_is_swept_from_its_base(run: Any, tmp_path: Path) -> None:
    """Its overrides hold, its variants are left out, flags come before it and what is swept before both."""
    (tmp_path / "s.yaml").write_text(
        json.dumps(
            BASE | {"overrides": [{"id": "efficiency.gemm_compute", "value": 0.3}], "variants": [{"tp": 4}]}
        )
    )
    found = json.loads(run("s.yaml", "--osl", "99", "--over", "concurrency=5,6", "--json").out)
    made = estimate(
        asked(overrides=[{"id": "efficiency.gemm_compute", "value": 0.3}], output_tokens=99, concurrency=5)
    ).results()
    assert found["points"] == 2 and found["best"]["ttft_s"]["ttft_s"] == made["ttft_s"]


def test_accelerators_in_all_are_an_axis(run: Any) -> None:
    """They are TP, or DP where TP is stated; what the degrees cannot make is refused with a way out."""
    load = ("--gpu", "h100-sxm", "--isl", "1k", "--osl", "128", "--concurrency", "8")
    found = json.loads(run("llama-3.1-8b", *load, "--over", "gpus=1,2,4", "--json").out)
    assert found["points"] == 3 and {point["tp"] for point in found["pareto"]} == {1, 2, 4}
    found = json.loads(run("llama-3.1-8b", *load, "--tp", "2", "--over", "gpus=2,4", "--json").out)
    assert found["points"] == 2 and {point["dp"] for point in found["pareto"]} == {1, 2}
    for arguments, said in (
        (("--tp", "2", "--over", "gpus=2,3"), "3: the degrees given need a multiple of 2"),
        (("--over", "gpus=1,2", "--over", "pp=1,2"), "--over gpus beside --over pp"),
        (("--gpus", "2", "--over", "gpus=1,2"), "beside --gpus"),
        (("--over", "as=vllm,sglang"), "a sweep for each, with --as"),
    ):
        ran = run("llama-3.1-8b", *load, *arguments)
        assert ran.status == 2 and said in ran.err


def test_beside_a_cpu_axes_are_those_of_the_accelerator(run: Any, tmp_path: Path) -> None:
    """Each point is what `estimate` says with these flags; the CPU is an axis of its own."""
    asked_for = {"input_tokens": 512, "output_tokens": 64, "concurrency": 1, "framework": "llama.cpp"}
    flags = ("--isl", "512", "--osl", "64", "--concurrency", "1", "--framework", "llama.cpp", "--ngl", "10")
    given = ("llama-3.1-8b", *flags, "--gpu", "rtx-4090")
    for axis, column, values in (
        ("gpu", "device2_accelerator", ["rtx-4090", "rtx-3090"]),
        ("cpu", "accelerator", ["ryzen-9-9950x", "core-i7-8700"]),
        ("tp", "device2_count", ["1", "2"]),
    ):
        over = f"{axis}={','.join(values)}"
        run(*given, "--cpu", "ryzen-9-9950x", "--over", over, "-o", f"{axis}.csv")
        table = pd.read_csv(tmp_path / f"{axis}.csv")
        assert [*table[column].astype(str)] == values
        for value, tpot in zip(values, table["tpot_s"], strict=True):
            chosen = {"cpu": "ryzen-9-9950x", "gpu": "rtx-4090", "tp": "1"} | {axis: value}
            fields = beside_cpu(load_library(), chosen["cpu"], chosen["gpu"], int(chosen["tp"]), 10)
            made = estimate(parse_scenario({"model": "llama-3.1-8b"} | asked_for | fields, "scenario"))
            assert tpot == pytest.approx(made.results()["tpot_s"], rel=1e-9), (axis, value)
    for words in (("gpu=rtx-4090", "accelerator=rtx-3090"), ("profile=none", "profiles=none")):
        over = [word for one in words for word in ("--over", one)]
        twice = run(*given, "--cpu", "ryzen-9-9950x", *over)
        assert twice.status == 2 and ("given twice" in twice.err or "leave one out" in twice.err)
    alone = run(*given, "--over", "cpu=ryzen-9-9950x")
    assert "--over cpu: expected --cpu beside it" in alone.err


def test_nothing_that_fits_is_exit_status_1(run: Any, tmp_path: Path) -> None:
    """And a table that has heads all the same."""
    ran = run(
        "llama-3.3-70b", *FLAGS, "--over", "tp=3", "--over", "concurrency=1,2", "--feasible", "-o", "t.csv"
    )
    assert ran.status == 1
    assert (tmp_path / "t.csv").read_text().startswith("tp,concurrency,")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--over", "tp=1,2", "--concurrency", "4", "-o", "t.xlsx"),
            "expected a file name that ends in .csv or .parquet",
        ),
        (("--over", "tp=1,2", "--concurrency", "4", "-o", "no/t.csv"), "there is no folder no"),
        (("--over", "tp=1,2"), "missing --concurrency"),
        (("--over", "concurrency=1:2"), "expected a value, 1..8 (each)"),
        (("--over", "concurrency=1", "--over", "concurrency=2"), "concurrency is given twice"),
        (("--over", "concurrency=1,2", "--over", "tpp=1", "-o", "t.csv"), "unknown parameter 'tpp'"),
    ],
)
def test_what_is_refused(run: Any, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Status 2, a plain message, no file."""
    ran = run("llama-3.3-70b", *FLAGS, *arguments)
    assert ran.status == 2 and ran.out == ""
    assert words in ran.err and all(line.startswith("mantile: ") for line in ran.err.splitlines())
    assert not [*tmp_path.iterdir()]


def test_points_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_POINTS", 5)
    assert len(grid(asked(), {"tp": [1, 2, 4, 8]})) == 4
    with pytest.raises(InputError, match="2 tp × 3 concurrency: 6 points; expected at most 5"):
        grid(asked(), {"tp": [1, 2], "concurrency": [1, 2, 3]})
