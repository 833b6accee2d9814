"""LoRA adapters: their memory, what they cost in a pass, rows only where a scenario states any."""

from __future__ import annotations

from typing import Any

import pytest
from live import as_written, few, place

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.launch import read_launch
from mantile.library.launch_line import launch_line
from mantile.library.scenario import Scenario, parse_scenario
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.workbook.book import FIRST
from mantile.workbook.layout import lay_out

ASKED: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 512}
ASKED |= {"output_tokens": 64, "concurrency": 16}


def ask(**fields: Any) -> Estimate:
    """An estimate of a small scenario."""
    return estimate(Scenario(**ASKED | fields))


def of(made: Estimate, identifier: str) -> float:
    """A figure of the base column."""
    return float(made[identifier].value)


def test_an_adapter_has_the_parameters_that_trainers_print() -> None:
    """PEFT prints 41,943,040 for Llama 3.1 8B with rank 16 beside all linear layers."""
    plain, one, four = (of(ask(lora_adapters=count), "memory.weights") for count in (0, 1, 4))
    assert plain == of(ask(), "memory.weights")
    assert one - plain == pytest.approx(2 * 41_943_040)
    assert four - plain == pytest.approx(4 * 2 * 41_943_040)
    assert of(ask(lora_adapters=1, lora_rank=64), "memory.weights") - plain == pytest.approx(8 * 41_943_040)


def test_ranks_split_the_side_that_the_matrix_is_split_on() -> None:
    """32 layers of 4096, 14336 and 1024 KV channels: columns behind, rows before."""
    split = {"qkv": 3 * 4096 + (4096 + 2 * 1024) / 4, "output": 4096 / 4 + 4096}
    split |= {"ffn_up": 2 * 4096 + 2 * 14336 / 4, "ffn_down": 14336 / 4 + 4096}
    made = ask(tp=4, lora_adapters=1)
    assert of(made, "adapters.products") == pytest.approx(32 * 16 * sum(split.values()))
    without = of(ask(tp=4), "memory.weights")
    assert of(made, "memory.weights") - without == pytest.approx(2 * 32 * 16 * sum(split.values()))


def test_experts_have_adapters_each() -> None:
    """Qwen3-30B-A3B: 128 experts of 768 on 48 layers; a pass reads those of experts that it touches."""
    made = ask(model="qwen3-30b-a3b", lora_adapters=2, lora_rank=8, ep=2, tp=2)
    of_expert = 2 * 2048 + 2 * 768 + (768 + 2048)
    assert of(made, "adapters.of_experts") == pytest.approx(48 * 8 * 64 * of_expert)
    assert of(made, "decode.lora.of_experts") <= of(made, "adapters.of_experts")


def test_steps_read_the_adapters_that_somebody_asks_for() -> None:
    """Two kernels for each of four modules of 32 layers; of 16 adapters 16 requests choose 10.3."""
    made, alone = (ask(lora_adapters=16, concurrency=load) for load in (16, 1))
    assert of(made, "adapters.kernels") == 2 * 4 * 32
    assert of(made, "decode.lora.touched") == pytest.approx(16 * (1 - (15 / 16) ** 16))
    assert of(alone, "decode.lora.touched") == pytest.approx(1)
    read = of(made, "decode.lora.touched") * 2 * 41_943_040
    assert of(made, "decode.lora.bytes") == pytest.approx(read)
    assert of(made, "decode.lora.flops") == pytest.approx(2 * 16 * 41_943_040)
    times = [of(ask(lora_adapters=count, lora_rank=64), "serving.tpot") for count in (0, 1, 4, 16, 64)]
    assert times == sorted(times) and len(set(times)) == len(times)
    assert times[0] == of(ask(), "serving.tpot")
    assert of(made, "prefill.lora.time") > 0


def test_without_adapters_there_are_no_rows_of_them() -> None:
    """And a scenario that states none costs what one without the field does."""
    assert not [name for name in ask().equations.figures if "lora" in name or "adapters" in name]


@pytest.mark.exhaustive
def test_adapters_follow_their_cells() -> None:
    """Count and rank typed into the sheet, as another program works it out; 0 takes all of it away."""
    short = [{"id": "model.layers", "value": 2, "reason": "a short list of layers"}]
    asked = ASKED | {"lora_adapters": 4, "overrides": short}
    made = estimate(parse_scenario(asked, "scenario"), None, few())
    book = lay_out(made)
    sheets = CompiledSheets(as_written(book).contents)

    def found(**typed: Any) -> list[Any]:
        cells = {place(book, f"inputs.{name}"): value for name, value in typed.items()}
        solution = sheets.calculate(book.sheets, cells)
        addresses = [book.addresses[made.figure(name)] for name in ("memory.weights", "serving.tpot")]
        return [solution[address.sheet, address.row, FIRST] for address in addresses]

    for fields in ({}, {"lora_adapters": 16, "lora_rank": 64}, {"lora_adapters": 0}):
        again = estimate(parse_scenario(asked | fields, "scenario"), None, few())
        expected = [of(again, "memory.weights"), of(again, "serving.tpot")]
        assert found(**fields) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("vllm serve Qwen/Qwen3-8B --enable-lora --lora-modules a=/a b=/b", {"lora_adapters": 1}),
        (
            "vllm serve Qwen/Qwen3-8B --enable-lora --max-loras 4 --max-lora-rank 64",
            {"lora_adapters": 4, "lora_rank": 64},
        ),
        ("vllm serve Qwen/Qwen3-8B --max-loras 4", {}),
        (
            "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --lora-paths a=/a b=/b",
            {"lora_adapters": 8},
        ),
        (
            "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --enable-lora --max-loras-per-batch 2",
            {"lora_adapters": 2},
        ),
    ],
)
def test_launch_lines_say_adapters(line: str, fields: dict[str, int]) -> None:
    """Read by the engine's names, written again with the same meaning."""
    read = read_launch(line, **{name: ASKED[name] for name in ASKED if name != "model"})
    assert {name: value for name, value in read.fields.items() if name.startswith("lora")} == fields
    again = read_launch(launch_line(Scenario(**read.fields)))
    assert {name: value for name, value in again.fields.items() if name.startswith("lora")} == fields


def test_engines_without_such_flags_refuse_adapters_by_name() -> None:
    """A line that says less than the scenario is never written."""
    with pytest.raises(InputError, match="no flag of TensorRT-LLM says lora_adapters 4"):
        launch_line(Scenario(**ASKED | {"framework": "trtllm", "lora_adapters": 4}))
