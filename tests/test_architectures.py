"""The physics of every kind of layer by plain arithmetic.

Experts, latents, windows, states, images, data types by class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import KINDS, models_to_try

from mantile.equations.build import build_graph
from mantile.equations.graph import EstimateGraph
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Quantity
from mantile.ir.build import build_ir
from mantile.ir.counts import parameters, prefill_flops
from mantile.ir.modules import GroupedMatMul, MatMul, ModelGraph, Recurrence
from mantile.library.architecture import Model
from mantile.library.huggingface import parse_config
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario

Make = Callable[..., Estimate]

SIZES: dict[str, Any] = {
    "hidden_size": 512,
    "num_hidden_layers": 4,
    "vocab_size": 4096,
    "max_position_embeddings": 200_000,
}
MIXTURE: dict[str, Any] = SIZES | {
    "model_type": "mixtral",
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 1024,
    "num_local_experts": 16,
    "num_experts_per_tok": 3,
}
# No two widths are alike, so that none can stand for another.
LATENT: dict[str, Any] = SIZES | {
    "model_type": "deepseek_v3",
    "num_attention_heads": 8,
    "q_lora_rank": 192,
    "kv_lora_rank": 128,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 24,
    "intermediate_size": 1536,
    "n_routed_experts": 32,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 96,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
}
HEADS, RANK, NOPE, ROPE, VALUE = 8, 128, 32, 16, 24
SPARSE = LATENT | {"model_type": "deepseek_v32", "index_topk": 256, "index_n_heads": 4, "index_head_dim": 32}
ENTRIES: dict[str, Any] = SIZES | {
    "model_type": "deepseek_v4",
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "q_lora_rank": 192,
    "o_groups": 4,
    "o_lora_rank": 48,
    "sliding_window": 128,
    "n_routed_experts": 32,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 96,
    "compress_ratios": [4, 4, 4, 4],
    "num_hash_layers": 0,
    "index_topk": 64,
    "index_n_heads": 4,
    "index_head_dim": 32,
}
SLIDING: dict[str, Any] = SIZES | {
    "model_type": "gemma3_text",
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 1024,
    "sliding_window": 256,
    "layer_types": ["sliding_attention"] * 3 + ["full_attention"],
}
CHUNKED: dict[str, Any] = SIZES | {
    "model_type": "llama4_text",
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "intermediate_size": 256,
    "intermediate_size_mlp": 1024,
    "num_local_experts": 16,
    "num_experts_per_tok": 1,
    "attention_chunk_size": 256,
    "layer_types": ["chunked_attention"] * 3 + ["full_attention"],
    "interleave_moe_layer_step": 1,
}
BASE: dict[str, Any] = {
    "model": "small",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 2,
    "concurrency": 8,
    "batching": "static",
}
OUTPUT = 2  # the mean length in decode is the prompt and one token more


def model_of(config: dict[str, Any]) -> Model:
    """A config as a model."""
    return Model(id="small", name="Small", source="test", architecture=parse_config(config, "config.json"))


class SmallEstimate:
    """An estimate of a small model and its figures by id."""

    def __init__(self, config: dict[str, Any], **fields: Any) -> None:
        self.made = estimate(parse_scenario(BASE | fields, "scenario"), model_of(config))
        self._values = self.made.values()

    def __getitem__(self, name: str) -> float:
        value: float = self._values[self.made.figure(name)]
        return value

    def quantities(self) -> dict[str, Any]:
        """All worked-out figures by id."""
        return {figure.id: self._values[figure] for figure in self.made.equations.quantities()}


def overridden(name: str, value: float) -> dict[str, Any]:
    """A scenario's fields with one figure replaced."""
    return {"overrides": [{"id": name, "value": value, "reason": "test"}]}


def moved(one: SmallEstimate, other: SmallEstimate) -> set[str]:
    """Ids of the figures that differ, to the last bit."""
    before, after = one.quantities(), other.quantities()
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


# --- every architecture -------------------------------------------------------------------------------------

WIDE = {"weights_dtype": "bf16", "attention_dtype": "same", "head_dtype": "bf16", "activation_dtype": "bf16"}
# Steps of which every rank holds all: routers and gates of one channel, latents and indexers, residual
# streams.
REPEATED = {
    "router",
    "shared_weight",
    "latent_in",
    "latent_down",
    "latent_up",
    "index_query",
    "index_key",
    "index_weights",
    "index_compressor",
    "compressor",
    "mixer_streams",
    "ffn_streams",
    "head_streams",
}


def _wide(name: str) -> dict[str, Any]:
    """Fields that leave every matrix in 16 bit."""
    classes = build_ir(load_model(name)).weight_classes()
    return {
        "model": name,
        **WIDE,
        **{f"{each}_dtype": "same" for each in ("ffn", "experts") if each in classes},
    }


def test_the_models_to_try_have_every_kind_of_layer() -> None:
    """The few of every run have each kind that any model of ours has, images included; all of them, each set
    of kinds."""

    def kinds(name: str) -> frozenset[str]:
        return frozenset(block.kind for block in load_model(name).architecture.blocks.values())

    assert frozenset().union(*map(kinds, KINDS)) == frozenset().union(*map(kinds, model_ids()))
    assert {*map(kinds, models_to_try())} == {*map(kinds, model_ids())}
    assert any(load_model(name).architecture.vision for name in KINDS)


def test_one_rank_holds_the_whole_checkpoint(make: Make, one_of_each: str) -> None:
    """In 16 bit: two bytes for every parameter of the checkpoint, vision tower too, none for all else."""
    made = make(**_wide(one_of_each), tp=1)
    values, counted = made.values(), parameters(made.equations.ir)
    assert values[made.figure("tensors.parameters")] == counted["total"] - counted["vision"]
    assert values[made.equations.model.parameters] == counted["total"] - counted["vision"]
    assert values[made.equations.model.active_parameters] == counted["active"] - counted["vision"]
    assert values[made.equations.prefill_workers.rows["memory.weights"]] == 2 * counted["total"]


def test_one_rank_computes_every_product_once(make: Make, one_of_each: str) -> None:
    """FLOPs of the products of a prefill are those of the independent count.

    But for the LM head, which sees one token.
    """
    made = make(model=one_of_each, tp=1, batching="continuous", input_tokens=512)
    ir, values = made.equations.ir, made.values()
    products = [module for module in ir.modules if isinstance(module.operation, MatMul | GroupedMatMul)]
    computed = sum(values[made.figure(f"prefill.flops.{module.id}")] for module in products)
    head = 2 * 511 * values[made.figure("model.vocabulary")] * values[made.figure("model.hidden_size")]
    scans = [
        module.operation
        for module in ir.modules
        if isinstance(module.operation, Recurrence) and module.operation.chunk is None
    ]
    scanned = 0.0
    if scans:  # the count takes the element-wise scan of Mamba 1 for linear
        facts = {name: values[figure] for name, figure in ir.facts.items()}
        scanned = (
            2
            * 512
            * facts["mamba_inner"]
            * facts["mamba_state"]
            * sum(count for name, count in facts.items() if name.startswith("layers.mamba"))
        )
    assert computed == prefill_flops(ir, 512)["linear"] - head - scanned


DIVIDED = ("qkv", "output", "keys_values", "ffn_", "shared_", "experts_", "lm_head")
"""Steps of recorded blocks that ranks share, by what their names begin with."""


@pytest.mark.parametrize("tp", [2, 8])
def test_ranks_share_all_but_what_each_of_them_needs(make: Make, one_of_each: str, tp: int) -> None:
    """Each product is divided by the ranks.

    Those that are not are known by name, and KV heads beyond the ranks are copied.
    """
    one, many = make(model=one_of_each, tp=1), make(model=one_of_each, tp=tp)
    before, after = one.values(), many.values()
    copies = many.equations.prefill_workers.plan.kv_copies
    copied = copies is not None and after[copies] > 1
    facts = {name: before[figure] for name, figure in one.equations.ir.facts.items()}
    divides = all(
        facts[name] % tp == 0
        for name in facts
        if name.endswith("heads") and not name.endswith(("kv_heads", "index_heads"))
    )
    seen = {fact.origin for fact in one.model.architecture.facts.values()} == {"code"}
    shrunk: list[bool] = []
    for module in one.equations.ir.modules:
        if not isinstance(module.operation, MatMul | GroupedMatMul):
            continue
        name = f"decode.{module.id}.parameters"
        ratio = before[one.figure(name)] / after[many.figure(name)]
        if module.step in REPEATED:
            assert ratio == 1, module.id
        elif seen and not module.step.startswith(DIVIDED):
            assert ratio in (1, tp), module.id  # a width of the class's own, on every rank
        elif (
            module.step == "linear_in" and "linear_head_dim" in facts
        ):  # low-rank decay and gate stand on every rank
            assert 1 < ratio < tp
        elif module.step == "qkv" and copied:
            assert 1 < ratio <= tp
            shrunk.append(ratio < tp)
        elif divides and (module.step != "lm_head" or facts["vocabulary"] % tp == 0):
            assert ratio == tp, module.id
    assert any(shrunk) == bool(copied)


def test_messages_are_one_for_every_mixer_and_ffn(make: Make, one_of_each: str) -> None:
    """And one after the embedding; two where shared and routed experts are normed apart; inside mixers where
    a norm or a product needs all ranks.
    """
    made = make(model=one_of_each, tp=2)
    values, blocks = made.values(), made.model.architecture.sequence()
    kinds = made.model.architecture.blocks
    apart = made.model.architecture.value("branch_norms")
    after = sum(2 if apart and kinds[name].kind == "moe" else 1 for layer in blocks for name in layer)
    for phase in ("prefill", "decode"):
        assert values[made.figure(f"{phase}.all_reduce.count")] == after + 1
    wide = made.model.architecture.value("qk_norm") == 2
    inside = sum(
        kinds[name].kind == "mamba" or (wide and kinds[name].kind == "attention")
        for layer in blocks
        for name in layer
    )
    found = made.equations.figures.get("decode.inner_reduce.count")
    assert (0 if found is None else values[found]) == inside


def test_a_sum_inside_a_mixer_costs_a_message(
    make: Make, all_reduce: Callable[[Estimate, int, float], float]
) -> None:
    """Jamba: step, B and C of 28 mixers in 256 + 2 x 16 channels; OLMo 2: one figure of 32 norms.

    Nothing on one rank.
    """
    for model, count, width in (("jamba-v0.1", 28, 256 + 2 * 16), ("olmo-2-7b", 32, 1)):
        alone, four = make(model=model, tp=1), make(model=model, tp=4)
        values = four.values()
        assert alone.values()[alone.figure("decode.inner_reduce.time")] == 0
        for phase in ("prefill", "decode"):
            tokens = values[four.figure(f"{phase}.tokens")]
            one = count * all_reduce(four, 4, tokens * width * 2)
            assert values[four.figure(f"{phase}.inner_reduce.time")] == pytest.approx(one, rel=1e-12)


# --- experts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spread", [None, 1.0, 0.5])
@pytest.mark.parametrize("batch", [1, 2, 7, 64, 4096])
def test_a_batch_touches_the_experts_its_tokens_choose(
    library: Library, batch: int, spread: float | None
) -> None:
    """1 - (1 - k/E)^(T^spread).

    These are k experts for one token, all of them for many; the spread is that of the profile.
    """
    changed = {} if spread is None else overridden("efficiency.routing_spread", spread)
    at = SmallEstimate(MIXTURE, concurrency=batch, input_tokens=10, **changed)
    assert at["decode.tokens"] == batch
    (shipped,) = (
        held.value
        for profile in library.efficiency
        if profile.key == "global"
        for held in profile.factors
        if held.factor == "routing_spread"
    )
    assert 0.8 < shipped <= 1
    exponent = shipped if spread is None else spread
    for phase, tokens in (("decode", batch), ("prefill", 10 * batch)):
        share = 1 - (1 - 3 / 16) ** (tokens**exponent)
        assert at[f"{phase}.coverage"] == pytest.approx(share, rel=1e-12)
        for step, size in (("experts_up", 512 * 2 * 1024), ("experts_down", 1024 * 512)):
            assert at[f"{phase}.{step}.weight_bytes"] == pytest.approx(share * 16 * size * 2, rel=1e-12)
            assert (
                at[f"{phase}.{step}.flops"] == 2 * tokens * 3 * size
            )  # every token computes k experts, whatever is read
    if batch == 1:
        assert at["decode.coverage"] == pytest.approx(3 / 16, rel=1e-14)
    if batch == 4096:
        assert at["decode.coverage"] == pytest.approx(1, abs=1e-5)


def test_uniform_routing_is_what_dice_give() -> None:
    """With a spread of 1 the coverage is the mean share of experts touched when every token draws k of E."""
    dice = np.random.default_rng(3)
    at = SmallEstimate(MIXTURE, concurrency=5, **overridden("efficiency.routing_spread", 1))
    drawn = [
        len({int(expert) for _ in range(5) for expert in dice.permutation(16)[:3]}) for _ in range(20_000)
    ]
    assert at["decode.coverage"] == pytest.approx(np.mean(drawn) / 16, rel=0.005)


def test_all_experts_for_every_token_is_a_dense_model() -> None:
    """Where a token goes through all experts, all are read, by one token too."""
    at = SmallEstimate(MIXTURE | {"num_experts_per_tok": 16}, concurrency=1)
    assert at["decode.coverage"] == at["prefill.coverage"] == 1
    assert at["model.active_parameters"] == at["model.parameters"]
    assert at["floor.weights.experts_up"] == at["tensors.module.experts_up"]


def test_the_busiest_rank_computes_more_and_reads_no_more() -> None:
    """Expert imbalance scales the FLOPs of routed experts and nothing else; times follow."""
    even, uneven = (
        SmallEstimate(LATENT),
        SmallEstimate(LATENT, **overridden("efficiency.expert_imbalance", 1.7)),
    )
    for phase in ("prefill", "decode"):
        for step in ("experts_up", "experts_down"):
            assert uneven[f"{phase}.{step}.flops"] == pytest.approx(
                1.7 * even[f"{phase}.{step}.flops"], rel=1e-12
            )
    changed = moved(even, uneven)
    assert {name.split(".")[1] for name in changed if name.endswith(".flops") and name.count(".") == 2} == {
        "experts_up",
        "experts_down",
    }
    assert not {
        name
        for name in changed
        if name.endswith((".bytes", ".weight_bytes")) or name.startswith(("memory.", "floor."))
    }


def test_shared_experts_are_an_ffn_every_token_goes_through() -> None:
    """Two of 96 channels in each of three layers.

    Read in full by one token, of the class of the FFN, no matter how many others.
    """
    one, many = SmallEstimate(LATENT, concurrency=1), SmallEstimate(LATENT, concurrency=64)
    size = 3 * 512 * 2 * 96
    for at, tokens in ((one, 1), (many, 64)):
        assert at["decode.shared_up.weight_bytes"] + at["decode.shared_down.weight_bytes"] == 2 * size
        assert at["decode.shared_up.flops"] + at["decode.shared_down.flops"] == 2 * tokens * size
    assert one["decode.experts_up.weight_bytes"] < many["decode.experts_up.weight_bytes"]
    without = SmallEstimate(LATENT | {"n_shared_experts": 0})
    assert "decode.shared_up.flops" not in without.made.equations.figures
    assert many["model.parameters"] - without["model.parameters"] == 3 * size
    assert many["model.active_parameters"] == many["model.parameters"] - 3 * (32 - 4) * 3 * 512 * 96


def test_experts_in_a_latent_work_in_its_width(make: Make) -> None:
    """Nemotron 3 Super: the experts of a layer see 1,024 channels of 4,096.

    What leads there and back stands on every rank.
    """
    made = make(model="nemotron-3-super-nvfp4", tp=8, accelerator="b200-sxm")
    values = made.values()
    facts = {name: values[figure] for name, figure in made.equations.ir.facts.items()}
    hidden, latent, inner = facts["hidden_size"], facts["latent_size"], facts["expert_size"]
    assert (hidden, latent) == (4096, 1024)
    assert values[made.figure("decode.experts_up.parameters")] == latent * inner / 8
    assert (
        values[made.figure("decode.latent_down.parameters")]
        == values[made.figure("decode.latent_up.parameters")]
        == hidden * latent
    )


# --- latent attention ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 100, 5000])
def test_latents_are_absorbed_in_decode(length: int) -> None:
    """Per token and layer: 2H(d_nope r + (L+1)(r + d_rope) + (L+1) r + r d_v).

    It is not an expansion of the whole cache.
    """
    at = SmallEstimate(LATENT, input_tokens=length, concurrency=1)
    context = length + 1
    absorbed = 2 * HEADS * (NOPE * RANK + context * (RANK + ROPE) + context * RANK + RANK * VALUE)
    assert at["decode.keys_values.flops"] + at["decode.attention.flops"] == absorbed
    assert at["decode.attention.cache_bytes"] == context * (RANK + ROPE) * 2
    expanded = 2 * context * RANK * HEADS * (NOPE + VALUE) + 2 * context * HEADS * (NOPE + ROPE + VALUE)
    assert length < 100 or at["decode.keys_values.flops"] + at["decode.attention.flops"] < expanded / 2


def test_latents_are_expanded_in_prefill() -> None:
    """Keys and values of every token once, then attention in the widths of the heads, half of the square."""
    at = SmallEstimate(LATENT, concurrency=1)
    assert at["prefill.keys_values.flops"] == 2 * 1000 * RANK * HEADS * (NOPE + VALUE)
    assert at["prefill.attention.flops"] == 2 * 1000 * 500 * HEADS * (NOPE + ROPE + VALUE)
    assert "prefill.attention.bytes" not in at.made.equations.figures


def test_every_rank_holds_and_reads_all_latents() -> None:
    """KV bytes of a rank do not fall with TP, the FLOPs of its heads do.

    That is no copy of KV heads, and no check fails.
    """
    ranks = {tp: SmallEstimate(LATENT, tp=tp) for tp in (1, 2, 4, 8)}
    for tp, at in ranks.items():
        assert at["memory.kv_bytes_per_token"] == 4 * (RANK + ROPE) * 2
        assert at["decode.attention.cache_bytes"] == ranks[1]["decode.attention.cache_bytes"]
        assert at["decode.attention.flops"] * tp == ranks[1]["decode.attention.flops"]
        assert at["decode.latent_in.weight_bytes"] == ranks[1]["decode.latent_in.weight_bytes"]
        raised = at.made.results()["checks"]
        assert raised["errors"] == [] and "KV_COPIED" not in [alert["code"] for alert in raised["alerts"]]


def test_a_decode_step_of_a_large_mixture_is_what_plain_arithmetic_says(
    make: Make, all_reduce: Callable[[Estimate, int, float], float]
) -> None:
    """DeepSeek-V3 in its own fp8 on eight B200, written out once more from factors and dimensions alone."""
    made = make(model="deepseek-v3", accelerator="b200-sxm", tp=8, batching="static")
    values, reached = made.values(), made.equations.prefill_workers.efficiency

    def e(name: str, user: str = "") -> float:
        return float(values[reached.by_user[name, user]])

    batch, hidden, heads, tp, context = 16, 7168, 128 // 8, 8, 2048 + 128
    bandwidth, bf16, fp8 = (
        values[made.figure(f"hardware.{name}")] for name in ("memory_bandwidth", "peak_bf16", "peak_fp8")
    )
    block = (8 + 32 / 128**2) / 8  # bytes of a weight, the scale of its block included

    def product(
        inputs: float, outputs: float, user: str, size: float = block, moved: float = 1, peak: float = fp8
    ) -> float:
        flops = 2 * batch * inputs * outputs / (e("gemm_compute", user) * peak)
        traffic = inputs * outputs * size + batch * (inputs * moved + outputs * 2)
        read = traffic / (e("gemm_bandwidth", user) * e("gemm_bandwidth_scale") * bandwidth)
        return e("gemm_launch", user) * e("launch_scale") + max(flops, read)

    def small(channels: float, kernels: int = 1) -> float:
        return kernels * e("small_kernel") + 2 * batch * channels / (e("elementwise_bandwidth") * bandwidth)

    def grouped(inputs: float, outputs: float) -> float:
        touched = 256 * (1 - (1 - 8 / 256) ** (batch ** e("routing_spread")))
        flops = 2 * batch * 8 * inputs * outputs * e("expert_imbalance") / (e("moe_compute", "experts") * fp8)
        traffic = touched * inputs * outputs * block + batch * 8 * (inputs + 2 * outputs)
        read = traffic / (e("moe_bandwidth", "experts") * e("moe_bandwidth_scale") * bandwidth)
        return e("moe_launch", "experts") * e("moe_launch_scale") / 2 + max(flops, read)

    core = max(
        2 * batch * context * heads * (512 + 512 + 64) / (e("latent_compute") * bf16),
        batch * context * 576 * 2 / (e("latent_decode") * e("attention_decode_scale") * bandwidth),
    )
    mixer = (
        small(4 * hidden)
        + product(hidden, 1536 + 576, "attention")
        + small(4 * 1536)
        + small(4 * 512)
        + product(1536, heads * 192, "attention")
        + small(2 * (heads * 64 + 64 + 576), kernels=2)
        + product(512, heads * 256, "attention")
        + e("latent_launch") * e("launch_scale")
        + core
        + product(heads * 128, hidden, "attention")
    )

    def ffn(inner: int) -> float:
        return product(hidden, 2 * inner, "ffn") + small(3 * inner) + product(inner, hidden, "ffn")

    dense = small(4 * hidden) + ffn(18_432 // tp)
    experts = (
        small(4 * hidden)
        + product(hidden, 256, "router", 2, 2, bf16)
        + small(2 * 256, kernels=2)
        + 2 * (small((8 + 1) * hidden) - small(0))  # tokens by expert, and results by token
        + grouped(hidden, 2 * 2048 // tp)
        + small(3 * 2048 // tp * 8)
        + grouped(2048 // tp, hidden)
        + ffn(2048 // tp)
    )
    reduce = (2 * 61 + 1) * all_reduce(made, tp, batch * hidden * 2)
    step = (
        small(2 * hidden)
        + 61 * mixer
        + 3 * dense
        + 58 * experts
        + small(4 * hidden)
        + product(hidden, 129_280 // tp, "head", 2, 2, bf16)
        + reduce
        + e("step_host")
        + batch * e("step_row")
    )
    assert values[made.figure("decode.time")] == pytest.approx(step, rel=1e-12)


# --- how far attention looks --------------------------------------------------------------------------------


def test_selected_tokens_are_read_and_all_of_them_are_scored() -> None:
    """An indexer's keys of the whole context, latents of the best tokens only.

    Both are kept for every token.
    """
    length = 3000
    at = SmallEstimate(SPARSE, input_tokens=length, concurrency=5)
    context = length + 1
    assert at["decode.attention.cache_bytes"] == 5 * 256 * (RANK + ROPE) * 2
    assert at["decode.attention.flops"] == 5 * 256 * 2 * HEADS * (2 * RANK + ROPE)
    assert at["decode.indexer.cache_bytes"] == 5 * context * 33  # fp8, and a scale for 128 values
    assert at["decode.indexer.flops"] == 5 * context * 2 * (4 * 32 + 4)
    assert at["memory.kv_bytes_per_request"] == 4 * (length + OUTPUT) * ((RANK + ROPE) * 2 + 33)
    seen = np.minimum(np.arange(length) + 0.5, 256).mean()
    assert at["prefill.attention.flops"] == pytest.approx(
        5 * length * seen * 2 * HEADS * (2 * RANK + ROPE), rel=1e-12
    )  # every token has latents of its own to read: absorbed, as in decode
    assert at["prefill.indexer.flops"] == 5 * length * length / 2 * 2 * (4 * 32 + 4)
    short, full = SmallEstimate(SPARSE, input_tokens=200), SmallEstimate(LATENT, input_tokens=200)
    for name in ("decode.attention.cache_bytes", "decode.attention.flops", "prefill.attention.flops"):
        assert short[name] == full[name]  # nothing to choose from yet


def test_an_indexer_scores_in_fp8_and_keeps_fp8_keys_whatever_the_kv_cache() -> None:
    """61 x (576 + 132) B a token of DeepSeek-V3.2 in fp8; as vLLM's 47,700 B of GLM-5.2: 78 x 576 + 21 x 132.

    Scores run at the fp8 peak where there is one.
    """
    asked = {"model": "deepseek-v3.2", "tp": 8, "input_tokens": 8000, "output_tokens": 1000, "concurrency": 8}
    for chip, kv, kept, faster in (
        ("h200-sxm", "fp8", 576 + 132, 2),
        ("h200-sxm", "bf16", 1152 + 132, 2),
        ("a100-80gb-sxm", "bf16", 1152 + 132, 1),
    ):
        made = estimate(parse_scenario(asked | {"accelerator": chip, "kv_dtype": kv}, "scenario"))
        at = {figure.id: value for figure, value in made.values().items() if isinstance(figure, Quantity)}
        assert at["memory.kv_bytes_per_token"] == 61 * kept
        rate = at["prefill.indexer.flops"] / at["prefill.indexer.compute_time"]
        assert rate == pytest.approx(faster * at["efficiency.rate.attention_flops"], rel=0.01)


def test_every_rank_scores_all_tokens() -> None:
    """The indexer is not split: its keys and FLOPs are the same on every rank."""
    one, eight = SmallEstimate(SPARSE), SmallEstimate(SPARSE, tp=8)
    for name in (
        "decode.indexer.flops",
        "decode.indexer.cache_bytes",
        "prefill.indexer.flops",
        "decode.index_query.weight_bytes",
    ):
        assert one[name] == eight[name]


def test_compressed_entries_stand_for_several_tokens() -> None:
    """DeepSeek-V4: a window of tokens, one entry for every four of them, of which an indexer takes 64."""
    length = 4000
    at = SmallEstimate(ENTRIES, input_tokens=length, concurrency=1)
    context = length + 1
    assert at["decode.attention.cache_bytes"] == 128 * 64 * 2  # one head whose keys are its values
    assert at["decode.entries.cache_bytes"] == 64 * 64 * 2
    assert at["decode.entries.flops"] == 64 * 2 * (8 * 64 + 8 * 64)
    assert at["decode.indexer.cache_bytes"] == pytest.approx(context / 4 * 33, rel=1e-12)
    per_request = 4 * (128 * 64 * 2 + (length + OUTPUT) / 4 * (64 * 2 + 33))
    assert at["memory.kv_bytes_per_request"] == pytest.approx(per_request, rel=1e-12)
    assert at.made.results()["checks"]["errors"] == []


@pytest.mark.parametrize(
    ("config", "kind", "length"),
    [
        (SLIDING, "sliding", 1000),
        (SLIDING, "sliding", 200),
        (CHUNKED, "chunked", 1000),
        (CHUNKED, "chunked", 200),
        (CHUNKED, "chunked", 1024),
    ],
)
def test_windows_limit_attention_and_cache_in_their_layers(
    config: dict[str, Any], kind: str, length: int
) -> None:
    """Three layers look back 256 tokens, or inside chunks of 256; one looks at everything."""
    at = SmallEstimate(config, input_tokens=length, concurrency=2)
    width, tokens = 8 * 64, np.arange(length) + 0.5
    near = np.minimum(tokens, 256).mean() if kind == "sliding" else (tokens % 256).mean()
    assert at[f"prefill.{kind}.attention.flops"] == pytest.approx(
        2 * length * 2 * 2 * width * near, rel=1e-12
    )
    assert at["prefill.full.attention.flops"] == pytest.approx(
        2 * length * 2 * 2 * width * length / 2, rel=1e-12
    )
    context = length + 1
    reach = context if context <= 256 else 256 if kind == "sliding" else 128
    assert at[f"decode.{kind}.attention.cache_bytes"] == 2 * reach * 2 * 4 * 64 * 2
    assert at["decode.full.attention.cache_bytes"] == 2 * context * 2 * 4 * 64 * 2
    kept, per_token = min(length + OUTPUT, 256), 2 * 4 * 64 * 2
    assert at[f"memory.kv_bytes_per_request.{kind}.attention"] == kept * per_token
    assert at["memory.kv_bytes_per_request.full.attention"] == (length + OUTPUT) * per_token
    assert at["memory.kv_bytes_per_request"] == (3 * kept + length + OUTPUT) * per_token


@pytest.mark.parametrize(
    ("config", "field", "kind"),
    [
        (SLIDING, "sliding_window", "sliding"),
        (CHUNKED, "attention_chunk_size", "chunked"),
        (SPARSE, "index_topk", "selected"),
    ],
)
def test_a_wider_window_changes_its_own_layers_only(config: dict[str, Any], field: str, kind: str) -> None:
    """To the last bit: every FLOP and byte elsewhere stays."""
    narrow, wide = (
        SmallEstimate(config, input_tokens=3000),
        SmallEstimate(config | {field: 512}, input_tokens=3000),
    )
    counts = {
        name
        for name in moved(narrow, wide)
        if name.startswith(("prefill.", "decode."))
        and name.count(".") >= 2
        and name.endswith((".flops", ".cache_bytes", ".weight_bytes"))
    }
    core = "attention" if kind == "selected" else f"{kind}.attention"
    assert counts == {f"prefill.{core}.flops", f"decode.{core}.flops", f"decode.{core}.cache_bytes"}
    if kind == "selected":
        assert narrow["memory.kv_bytes_per_request"] == wide["memory.kv_bytes_per_request"]


# --- states -------------------------------------------------------------------------------------------------

# Per layer and request: values of the state in 32 bit, and the last inputs of the convolution in 16 bit.
STATES = {
    "mamba-codestral-7b": (64, 128 * 64 * 128, (128 * 64 + 2 * 8 * 128) * 3),
    "jamba-v0.1": (28, 8192 * 16, 8192 * 3),
    "nemotron-h-56b": (54, 256 * 64 * 256, (256 * 64 + 2 * 8 * 256) * 3),
    "qwen3-next-80b": (36, 32 * 128 * 128, (2 * 16 * 128 + 32 * 128) * 3),
    "kimi-linear-48b-a3b": (20, 32 * 128 * 128, 3 * 32 * 128 * 3),
}


@pytest.mark.parametrize("model", STATES)
def test_a_state_does_not_grow_with_the_context(make: Make, model: str) -> None:
    """Bytes of a request's state by plain arithmetic.

    The same at any length, split over the ranks, read and written in a step.
    """
    layers, state, conv = STATES[model]
    for tp, length in ((1, 100), (1, 100_000), (8, 3000)):
        made = make(model=model, tp=tp, input_tokens=length, batching="static", accelerator="b200-sxm")
        values = made.values()
        core = next(
            module.id for module in made.equations.ir.modules if isinstance(module.operation, Recurrence)
        )
        assert values[made.figure(f"memory.layer_state.{core}")] * tp == 4 * state + 2 * conv
        assert values[made.figure(f"memory.state_values.{core}")] * tp == state
        kinds = [
            kind for kind in made.equations.ir.layers if any(module.id == core for module in kind.modules)
        ]
        assert sum(values[kind.count] for kind in kinds) == layers
        requests = values[made.figure("decode.requests")]
        moved_in_step = values[made.figure(f"decode.{core}.state_moved")]
        assert moved_in_step * tp * layers == pytest.approx(
            2 * requests * layers * (4 * state + 2 * conv), rel=1e-12
        )
    codes = [check["code"] for check in made.results()["checks"]["errors"]]
    assert codes in ([], ["MEMORY_EXCEEDED"], ["CONTEXT_EXCEEDS_MODEL"])


def test_a_model_of_states_only_decodes_at_any_length_alike(make: Make) -> None:
    """No KV cache: neither the step nor the room a request takes depends on its length.

    Prefill is linear in it.
    """
    one, other, twice = (
        make(model="mamba-codestral-7b", tp=1, input_tokens=tokens, batching="static")
        for tokens in (100, 50_000, 100_000)
    )
    at = [
        {figure.id: value for figure, value in made.values().items() if isinstance(figure, Quantity)}
        for made in (one, other, twice)
    ]
    assert at[0]["decode.time"] == at[1]["decode.time"]
    assert at[0]["memory.kv_bytes_per_request"] == at[1]["memory.kv_bytes_per_request"]
    assert at[0]["memory.kv_bytes_per_token"] == 0
    head = at[1]["prefill.flops.lm_head"]
    assert (at[2]["prefill.flops"] - head) / (at[1]["prefill.flops"] - head) == pytest.approx(2, rel=1e-12)


def test_only_attention_of_a_hybrid_grows_with_the_context(make: Make) -> None:
    """Four of Jamba's 32 layers have a cache: 2 x 8 heads of 128 channels each."""
    short, long = (
        make(model="jamba-v0.1", tp=1, input_tokens=tokens, batching="static") for tokens in (1000, 100_000)
    )
    before, after = short.values(), long.values()
    assert after[long.figure("memory.kv_bytes_per_token")] == 4 * 2 * 8 * 128 * 2
    changed = {
        module.id
        for module in short.equations.ir.modules
        if before[short.figure(f"decode.{module.id}.layer_time")]
        != after[long.figure(f"decode.{module.id}.layer_time")]
    }
    assert changed == {"attention"}


def test_the_chunked_products_of_a_state_space_are_counted(make: Make) -> None:
    """Mamba 2, for every token and head: C with B, scores with values, and two products with the state.

    Then the convolution.
    """
    made = make(model="mamba-codestral-7b", tp=1, input_tokens=4096, batching="continuous")
    values = made.values()
    heads, size, state, chunk, conv = 128, 64, 128, 256, 128 * 64 + 2 * 8 * 128
    products = heads * (chunk * (state + size) + 2 * size * state)
    assert values[made.figure("prefill.mamba_core.flops")] == 2 * 4096 * (products + 4 * conv)
    alone = heads * ((state + size) + 2 * size * state)  # a token of decode has no chunk around it
    requests = values[made.figure("decode.requests")]
    assert values[made.figure("decode.mamba_core.flops")] == 2 * requests * (alone + 4 * conv)


# --- images -------------------------------------------------------------------------------------------------


def test_images_cost_a_pass_through_their_tower(make: Make) -> None:
    """LLaVA: 576 patches, each a token, through 24 layers of 1,024 channels and two matrices.

    Nothing without images.
    """
    image, none = (
        make(model="llava-1.5-7b", tp=2, batching="continuous", image_tokens=tokens) for tokens in (576, 0)
    )
    values, without = image.values(), none.values()
    patch = 3 * 14 * 14 * 1024 + 24 * (4 * 1024 * 1024 + 2 * 1024 * 4096)
    token = 1024 * 4096 + 4096 * 4096
    attention = 2 * 576 * 576 * 24 * (1024 + 1024)
    assert values[image.figure("prefill.vision.flops")] * 2 == 2 * 576 * (patch + token) + attention
    assert values[image.figure("prefill.vision.bytes")] * 2 == 2 * (patch + token)
    assert without[none.figure("prefill.vision.time")] == 0
    assert values[image.figure("prefill.time")] - without[none.figure("prefill.time")] == pytest.approx(
        values[image.figure("prefill.vision.time")], rel=1e-9
    )
    assert "decode.vision.time" not in image.equations.figures
    assert values[image.figure("decode.time")] == without[none.figure("decode.time")]
    counted = parameters(image.equations.ir)["vision"]
    assert (
        values[image.figure("memory.vision_weights")] * 2
        == without[none.figure("memory.vision_weights")] * 2
        == 2 * counted
    )


# --- data types by class ------------------------------------------------------------------------------------

OF_CLASS = {
    "attention": {"latent_in", "query", "keys_values", "output"},
    "ffn": {"ffn_up", "ffn_down", "shared_up", "shared_down"},
    "experts": {"experts_up", "experts_down"},
    "head": {"lm_head"},
    "embedding": set(),
}


@pytest.mark.parametrize("name", OF_CLASS)
@pytest.mark.parametrize(("kind", "bits"), [("fp8", 8), ("int4", 4.15625), ("mxfp4", 4.25)])
def test_the_data_type_of_a_class_changes_its_bytes_only(name: str, kind: str, bits: float) -> None:
    """In proportion to its bits.

    All other weights stay, to the last bit, and so do the caches and every FLOP.
    """
    wide, narrow = SmallEstimate(LATENT), SmallEstimate(LATENT, **{f"{name}_dtype": kind})
    for other, steps in OF_CLASS.items():
        for step in steps:
            for phase in ("prefill", "decode"):
                factor = bits / 16 if other == name else 1
                assert narrow[f"{phase}.{step}.weight_bytes"] == wide[f"{phase}.{step}.weight_bytes"] * factor
    changed = moved(wide, narrow)
    assert not {
        each
        for each in changed
        if each.endswith((".flops", ".parameters", "cache_bytes")) or each.startswith("tensors.")
    }
    held = {each for each in changed if each.startswith("memory.weights.")}
    classes = {"attention": "attention", "ffn": "ffn", "experts": "experts"}
    assert {each.split(".")[2] for each in held} == ({classes[name]} if name in classes else set())
    ends = {each for each in changed if each in ("memory.embedding_weights", "memory.head_weights")}
    assert ends == ({f"memory.{name}_weights"} if name in ("head", "embedding") else set())
    assert {
        each.split(".")[1]
        for each in changed
        if each.startswith("hardware.") and not each.endswith("_number")
    } <= {name}


def test_classes_without_a_data_type_follow_the_weights() -> None:
    """fp8 weights are those of every class, and the same as naming each.

    Routers, norms, embedding and LM head stay in 16 bit.
    """
    plain, all_at_once = SmallEstimate(LATENT), SmallEstimate(LATENT, weights_dtype="fp8")
    one_by_one = SmallEstimate(
        LATENT, activation_dtype="fp8", attention_dtype="fp8", ffn_dtype="fp8", experts_dtype="fp8"
    )
    # A typed activation format no longer follows the weights; what it would follow is worked out beside it.
    # Runs of the like are looked for by the format of the weights as a whole.
    beside = ("hardware.activation_", "evidence.", "typed.")
    assert {figure for figure in moved(all_at_once, one_by_one) if not figure.startswith(beside)} == set()
    assert all_at_once["hardware.router.bytes"] == all_at_once["hardware.head.bytes"] == 2
    for step in (*OF_CLASS["attention"], *OF_CLASS["ffn"], *OF_CLASS["experts"]):
        assert all_at_once[f"decode.{step}.weight_bytes"] * 2 == plain[f"decode.{step}.weight_bytes"]
    for step in ("router", "lm_head"):
        assert all_at_once[f"decode.{step}.weight_bytes"] == plain[f"decode.{step}.weight_bytes"]
    assert all_at_once["memory.weights.vectors"] == plain["memory.weights.vectors"]


def test_each_class_runs_on_the_kernels_of_its_format() -> None:
    """Experts in int4 under fp8 attention: three peaks and three rows of efficiency tables in one model."""
    at = SmallEstimate(LATENT, weights_dtype="fp8", experts_dtype="int4")
    values = at.quantities()
    kernels = {
        name: values[f"hardware.{name}.kernel_format"]
        for name in ("attention", "ffn", "experts", "router", "head")
    }
    assert kernels == {
        "attention": "fp8",
        "ffn": "fp8",
        "experts": "weight-only",
        "router": "bf16",
        "head": "bf16",
    }
    assert (
        at["hardware.attention.linear_peak"]
        == at["hardware.peak_fp8"]
        > at["hardware.experts.linear_peak"]
        == at["hardware.peak_bf16"]
    )
    for name, form in kernels.items():
        if name != "experts":
            assert at[f"efficiency.gemm_compute.{name}"] == at[f"efficiency.gemm_compute.{form}"]
    assert at["efficiency.moe_compute"] == at["efficiency.moe_compute.weight-only"]
    assert at["prefill.peak"] == at["hardware.peak_fp8"]
    everywhere = SmallEstimate(
        LATENT, weights_dtype="fp8", experts_dtype="int4", **overridden("efficiency.gemm_compute", 0.5)
    )
    assert {everywhere[f"efficiency.gemm_compute.{name}"] for name in kernels if name != "experts"} == {0.5}
    assert everywhere["efficiency.moe_compute"] == at["efficiency.moe_compute"]


# --- what the structural checks catch -----------------------------------------------------------------------


def _broken(
    library: Library, config: dict[str, Any], change: Callable[[ModelGraph], ModelGraph]
) -> list[str]:
    """Structural checks that fail on a model that was tampered with."""
    equations: EstimateGraph = build_graph(change(build_ir(model_of(config))), library)
    values = Program([check.result for check in equations.checks.checks]).run({"inputs.tp": 2})
    return [
        check.code
        for check in equations.checks.checks
        if check.group == "Structure" and not values[check.result]
    ]


def _with_module(ir: ModelGraph, identifier: str, **changes: Any) -> ModelGraph:
    module = ir.module(identifier)
    other = dataclasses.replace(module, **changes)
    return dataclasses.replace(ir, modules=tuple(other if each is module else each for each in ir.modules))


def _narrower(identifier: str) -> Callable[[ModelGraph], ModelGraph]:
    """The product of a module with fewer outputs than its matrix has."""

    def change(ir: ModelGraph) -> ModelGraph:
        work: Any = ir.module(identifier).operation
        return _with_module(
            ir, identifier, operation=dataclasses.replace(work, outputs=ir.facts["kv_lora_rank"])
        )

    return change


def _twice(identifier: str) -> Callable[[ModelGraph], ModelGraph]:
    """A module with a second tensor like its first."""

    def change(ir: ModelGraph) -> ModelGraph:
        first, *rest = ir.module(identifier).tensors
        return _with_module(
            ir, identifier, tensors=(first, dataclasses.replace(first, name=f"other.{first.name}"), *rest)
        )

    return change


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (lambda ir: ir, []),
        (_narrower("query"), ["TENSORS_DIFFER", "SHARDS_DIFFER"]),
        (_narrower("experts_up"), ["TENSORS_DIFFER", "SHARDS_DIFFER"]),
        (_narrower("shared_up"), ["TENSORS_DIFFER", "SHARDS_DIFFER"]),
        (_narrower("lm_head"), ["TENSORS_DIFFER"]),
        (_twice("output"), ["TENSORS_DIFFER", "SHARDS_DIFFER"]),
        (_twice("ffn_down"), ["TENSORS_DIFFER", "SHARDS_DIFFER"]),
        (_twice("attention_norm"), []),
    ],
    ids=[
        "as it is",
        "query",
        "experts",
        "shared experts",
        "head",
        "a matrix twice",
        "a matrix of some layers twice",
        "a norm twice",
    ],
)
def test_a_product_that_is_not_its_matrix_is_caught(library: Library, change: Any, codes: list[str]) -> None:
    """Parameters by the modules against the tensors, and products against what a rank holds."""
    assert _broken(library, LATENT, change) == codes


def test_tables_that_are_no_matrices_do_not_disturb_the_checks(library: Library) -> None:
    """Residual streams are mixed by products with small tables, in the same layers as the router."""
    assert _broken(library, ENTRIES, lambda ir: ir) == []
