"""The IR against the model classes of transformers, from small configs: needs torch and transformers.

Nothing is downloaded and no weight exists: models are built on torch's meta device, where a tensor is a
shape.
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
from mantile.library.huggingface import parse_config
from mantile.library.huggingface.families import FAMILIES

pytestmark = [pytest.mark.exhaustive, pytest.mark.transformers]

Shape = tuple[int, ...]
CLASSES = {"kimi_k2": "deepseek_v3"}  # a model type that transformers does not know by its name
# transformers 5 stores some tensors otherwise than checkpoints do. Reversed by these rules, shapes are those
# of a checkpoint:
FUSED = (
    "gpt_oss",
    "llama4",
    "llama4_text",
    "gemma4",
    "gemma4_text",
)  # 1. experts of a layer in one tensor, in checkpoints too;
TRANSPOSED = ("qwen3_vl_moe",)  # 2. in one tensor in checkpoints too, but input by output;
EXPERTS = re.compile(
    r"\.experts\.(gate_up_proj|up_proj|down_proj)$"
)  # 3. elsewhere every expert has its own, gate and up apart.
CONVOLUTION = re.compile(r"\.conv1d\.weight$")  # 4. kimi_linear: convolutions of query, key and value apart.
TOWER = re.compile(
    r"vision_tower\..*\.([qkv])_proj\."
)  # 5. kimi_k25: query, key and value of its tower in one matrix.


def stored(family: str, name: str, shape: Shape) -> list[Shape]:
    """The shapes in a checkpoint of a tensor that transformers holds."""
    experts, tower = EXPERTS.search(name), TOWER.search(name)
    if experts is not None and family not in FUSED:
        count, outputs, inputs = shape
        if family in TRANSPOSED:
            return [(count, inputs, outputs)]
        return (
            [(outputs // 2, inputs)] * (2 * count)
            if experts.group(1) == "gate_up_proj"
            else [(outputs, inputs)] * count
        )
    if family == "kimi_linear" and CONVOLUTION.search(name):
        return [(shape[0] // 3, *shape[1:])] * 3
    if family == "kimi_k25" and tower is not None:
        return [(3 * shape[0], *shape[1:])] if tower.group(1) == "q" else []
    return [shape]


@pytest.fixture(scope="module")
def torch() -> ModuleType:
    """torch, or the test is skipped."""
    found: ModuleType = pytest.importorskip(
        "torch", reason="torch builds the model classes; the figures carried in test_ir.py still hold"
    )
    return found


@pytest.fixture(scope="module")
def transformers(torch: ModuleType) -> Iterator[ModuleType]:
    """transformers without its remarks on our small sizes, or the test is skipped."""
    found: ModuleType = pytest.importorskip(
        "transformers",
        minversion="5.23",
        reason="the model classes; the figures carried in test_ir.py still hold",
    )
    level = found.logging.get_verbosity()
    found.logging.set_verbosity_error()
    yield found
    found.logging.set_verbosity(level)


def built(torch: ModuleType, transformers: ModuleType, config: dict[str, Any]) -> Any:
    """A model without weights.

    Experts as batched products: the default is an operation that torch does not count.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of modules that transformers imports at first use
        kind = CLASSES.get(config["model_type"], config["model_type"])
        read = transformers.CONFIG_MAPPING[kind].from_dict(copy.deepcopy(config) | {"model_type": kind})
        auto = (
            transformers.AutoModelForImageTextToText
            if "vision_config" in config
            else transformers.AutoModelForCausalLM
        )
        with torch.device("meta"):
            return auto.from_config(read, experts_implementation="batched_mm").eval()


def ours(config: dict[str, Any]) -> ModelGraph:
    """The IR of a config."""
    return build_ir(
        Model(
            id="small",
            name="small",
            source="test",
            architecture=parse_config(copy.deepcopy(config), "config.json"),
        )
    )


NO_CLASS = ("step3p5",)  # transformers reads its config, and has no class that decodes by itself


def test_every_family_is_built() -> None:
    """A family without a small config would be unproven."""
    parts = [config["text_config"] for config in CONFIGS.values() if "text_config" in config]
    assert {config["model_type"] for config in (*CONFIGS.values(), *parts)} == FAMILIES.keys()


@pytest.mark.parametrize("name", [name for name in CONFIGS if name not in NO_CLASS])
def test_tensors_are_those_of_the_model_class(torch: ModuleType, transformers: ModuleType, name: str) -> None:
    """Every parameter and stored buffer by shape and number.

    The LM head once where it is the embedding itself.
    """
    config = CONFIGS[name]
    model = built(torch, transformers, config)
    tensors = {
        id(tensor): (key, tuple(tensor.shape)) for key, tensor in model.state_dict(keep_vars=True).items()
    }
    theirs = Counter(
        shape for key, whole in tensors.values() for shape in stored(config["model_type"], key, whole)
    )
    ir = ours(config)
    mine: Counter[Shape] = Counter()
    for entry in tensor_list(ir):
        mine[tuple(entry["shape"])] += entry["count"]
    assert mine == theirs
    assert parameters(ir)["total"] == sum(parameter.numel() for parameter in model.parameters())


# --- work ---------------------------------------------------------------------------------------------------

TOKENS = 24  # three chunks of the small state space models; no multiple of a chunk of the delta rules
KINDS = (
    *("llama", "gpt2", "falcon, grouped", "gemma3_text", "gpt_oss", "mimo_v2_flash", "llama4_text"),
    *("qwen3_moe", "deepseek_v2", "deepseek_v32", "deepseek_v4", "kimi_linear", "qwen3_next"),
    *("nemotron_h", "mamba2", "jamba", "qwen3_vl"),
)
"""A config of every kind of layer."""


def passing_of_states(ir: ModelGraph, tokens: int) -> int:
    """What Mamba 2 spends on handing states from chunk to chunk, each to every later one.

    The IR leaves it out as small.
    """
    facts = ir.model.architecture
    layers = sum("mamba" in layer for layer in facts.sequence()) if facts.value("mamba_heads") else 0
    state = facts.value("mamba_heads") * facts.value("mamba_head_dim") * facts.value("mamba_state")
    return 2 * (-(-tokens // facts.value("mamba_chunk")) + 1) ** 2 * state * layers if layers else 0


def experts_not_chosen(ir: ModelGraph, tokens: int) -> int:
    """What the class of Llama 4 spends on experts a token is not sent to: it runs all."""
    facts = ir.model.architecture
    layers = sum("moe" in layer for layer in facts.sequence())
    idle = facts.value("experts") - facts.value("experts_per_token")
    return 6 * tokens * facts.value("hidden_size") * facts.value("expert_size") * idle * layers


def values(thing: object) -> int:
    """Values that a cache holds."""
    if hasattr(thing, "numel"):
        return int(thing.numel())
    if isinstance(thing, dict):
        return sum(values(item) for item in thing.values())
    return sum(values(item) for item in thing) if isinstance(thing, list | tuple) else 0


@pytest.mark.parametrize("name", KINDS)
def test_flops_are_those_torch_counts(torch: ModuleType, transformers: ModuleType, name: str) -> None:
    """A forward pass over a prompt, matrix products and convolutions.

    Full squares of attention whatever the window.
    """
    from torch.utils.flop_counter import FlopCounterMode

    config = CONFIGS[name]
    model = built(torch, transformers, config)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros((1, TOKENS), dtype=torch.long, device="meta"), use_cache=True)
    ir = ours(config)
    flops = prefill_flops(ir, TOKENS)
    left_out = passing_of_states(ir, TOKENS)
    if config["model_type"].startswith("llama4"):
        left_out += experts_not_chosen(ir, TOKENS)
    assert (
        flops["linear"] + flops["attention_full_square"] + flops["other"] + left_out
        == counter.get_total_flops()
    )


@pytest.mark.parametrize("name", KINDS)
def test_the_cache_grows_as_that_of_the_model_class(
    torch: ModuleType, transformers: ModuleType, name: str
) -> None:
    """By so many bytes a token once every window is full.

    Recurrent states do not grow; entries stand for several tokens.
    """
    model = built(torch, transformers, CONFIGS[name])

    def held(tokens: int) -> int:
        with torch.no_grad():
            made = model(input_ids=torch.zeros((1, tokens), dtype=torch.long, device="meta"), use_cache=True)
        return (
            sum(values(vars(layer)) for layer in made.past_key_values.layers)
            if "past_key_values" in made
            else 0
        )

    growth = 2 * (held(64) - held(32)) // 32
    if name == "falcon, grouped":  # its class keeps every KV head once for each query head that shares it
        growth //= 2
    assert kv_bytes_per_token(ours(CONFIGS[name]))["beyond_window"] == growth
