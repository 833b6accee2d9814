"""The IR against the model classes of transformers, built from small configs of our own: needs torch and transformers.

Nothing is downloaded and no weight exists: models are built on torch's meta device, where a tensor is a shape.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from small_models import CONFIGS

from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters, prefill_flops, tensor_list
from mantile.ir.modules import ModelGraph
from mantile.library.architecture import Model
from mantile.library.huggingface import FAMILIES, NESTINGS, parse_config

pytestmark = pytest.mark.transformers

Shape = tuple[int, ...]
# transformers 5 keeps the experts of a layer in one tensor. Reversing that, and nothing else, makes the shapes of a checkpoint:
FUSED = ("gpt_oss", "llama4", "llama4_text", "gemma4", "gemma4_text")  # 1. here checkpoints hold the experts of a layer in one, too
TRANSPOSED = ("qwen3_vl_moe",)  # 2. and here, but stored input by output
EXPERTS = re.compile(r"\.experts\.(gate_up_proj|up_proj|down_proj)$")  # 3. everywhere else each expert has matrices of its own,


def stored(family: str, name: str, shape: Shape) -> list[Shape]:
    """The shapes in a checkpoint of a tensor that transformers holds."""
    fused = EXPERTS.search(name)
    if fused is None or family in FUSED:
        return [shape]
    experts, outputs, inputs = shape
    if family in TRANSPOSED:
        return [(experts, inputs, outputs)]
    if fused.group(1) == "gate_up_proj":  # 4. and gate and up apart
        return [(outputs // 2, inputs)] * (2 * experts)
    return [(outputs, inputs)] * experts


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """torch, or the test is skipped."""
    found: ModuleType = pytest.importorskip("torch", reason="torch builds the model classes; the figures carried in test_ir.py still hold")
    return found


@pytest.fixture(scope="module")
def transformers(torch: ModuleType) -> Iterator[ModuleType]:
    """transformers without its remarks on our small sizes, or the test is skipped."""
    found: ModuleType = pytest.importorskip(
        "transformers", minversion="5.23", reason="the model classes; the figures carried in test_ir.py still hold"
    )
    level = found.logging.get_verbosity()
    found.logging.set_verbosity_error()
    yield found
    found.logging.set_verbosity(level)


def built(torch: ModuleType, transformers: ModuleType, config: dict[str, Any], **more: Any) -> Any:
    """A model without weights."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modules that transformers imports at first use
        read = transformers.CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config))
        kind = transformers.AutoModelForImageTextToText if "vision_config" in config else transformers.AutoModelForCausalLM
        with torch.device("meta"):
            return kind.from_config(read, **more).eval()


def ours(config: dict[str, Any]) -> ModelGraph:
    """The IR of a config."""
    return build_ir(Model(id="small", name="small", source="test", architecture=parse_config(copy.deepcopy(config), "config.json")))


def test_every_family_is_built() -> None:
    """A family without a small config would be unproven; kimi_k2 is a deepseek_v3 that transformers does not know by its name."""
    assert {config["model_type"] for config in CONFIGS.values()} | {
        config["text_config"]["model_type"] for config in CONFIGS.values() if "text_config" in config
    } == {*FAMILIES, *NESTINGS} - {"kimi_k2"}


@pytest.mark.parametrize("name", CONFIGS)
def test_tensors_are_those_of_the_model_class(torch: ModuleType, transformers: ModuleType, name: str) -> None:
    """Every parameter and persistent buffer by shape and number; the head once where it is the embedding itself."""
    config = CONFIGS[name]
    model = built(torch, transformers, config)
    tensors = {id(tensor): (tensor_name, tensor) for tensor_name, tensor in model.state_dict(keep_vars=True).items()}
    theirs = Counter(shape for key, tensor in tensors.values() for shape in stored(config["model_type"], key, tuple(tensor.shape)))
    ir = ours(config)
    mine: Counter[Shape] = Counter()
    for entry in tensor_list(ir):
        mine[tuple(entry["shape"])] += entry["count"]
    assert mine == theirs
    assert parameters(ir)["total"] == sum(parameter.numel() for parameter in model.parameters())
