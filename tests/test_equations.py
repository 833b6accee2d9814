"""The equations: what is conserved, what may depend on what, which plans raise which reason codes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from mantile.equations.efficiency import FORMATS, KINDS
from mantile.equations.library import PEAKS
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.results import raised
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Quantity, ancestors, expression
from mantile.ir.counts import kv_bytes_per_token, parameters, prefill_flops, tensor_list
from mantile.library.efficiency import EfficiencyProfile
from mantile.library.errors import InputError
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario

Make = Callable[..., Estimate]
LINEAR = ("qkv", "output", "ffn_up", "ffn_down")


def look(made: Estimate, column: int = 0) -> Callable[[str], Any]:
    """Values of one column by id."""
    values = made.values(column)
    return lambda name: values[made.figure(name)]


def override(name: str, value: float) -> dict[str, Any]:
    """A scenario's fields with one figure replaced."""
    return {"overrides": [{"id": name, "value": value, "reason": "test"}]}


def overrides(figures: dict[str, float]) -> dict[str, Any]:
    """The same with several."""
    return {
        "overrides": [item for name, value in figures.items() for item in override(name, value)["overrides"]]
    }


# --- conservation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3-32b", "llama-2-7b"])
def test_shards_of_all_ranks_are_the_whole_model(make: Make, model: str, tp: int) -> None:
    """Weights, FLOPs and KV bytes of one rank times the ranks equal the IR's own counts, in whole numbers."""
    made = make(model=model, tp=tp, input_tokens=512, concurrency=3, accelerator="b200-sxm")
    at, ir = look(made), made.equations.ir
    facts = ir.model.architecture
    layers = facts.value("layers")
    matrices = [tensor for tensor in tensor_list(ir) if len(tensor["shape"]) == 2 and tensor["count"] > 1]
    whole = sum(tensor["shape"][0] * tensor["shape"][1] for tensor in matrices)
    assert (at("tensors.attention") + at("tensors.ffn")) * tp == whole
    for phase in ("prefill", "decode"):
        assert sum(at(f"{phase}.{module}.parameters") for module in LINEAR) * tp == whole
    head = facts.value("vocabulary") * facts.value("hidden_size")
    assert at("prefill.lm_head.parameters") * tp == head

    counted = prefill_flops(ir, 512)
    only_last = counted["linear"] - 2 * 511 * head
    assert at("prefill.flops") * tp == only_last + counted["attention_full_square"] / 2
    per_token = kv_bytes_per_token(ir)["all_layers"]
    context = at("decode.context")
    assert context == 512 + 256 / 2
    assert at("decode.attention.bytes") * layers * tp == 3 * context * per_token
    assert at("memory.kv_bytes_per_token") * tp == per_token
    vectors = (at("tensors.vectors") * layers + at("tensors.final_vectors")) * 2
    stored = parameters(ir)["total"] * 2
    if tp == 1:
        assert at("memory.weights") == stored
    assert at("memory.weights") * tp == stored + (tp - 1) * vectors


def test_a_cache_is_as_large_as_its_data_type_says(make: Make) -> None:
    """Llama-3.1-8B keeps 65,536 values for a token; scales are counted, and figures of 16 bit stand in."""
    bits = {"bf16": 16, "fp8": 8, "int8": 8, "int8-kv": 8.25, "int4-kv": 4.25, "q8_0": 8.5, "q4_0": 4.5}
    for kind, size in bits.items():
        at = look(make(model="llama-3.1-8b", accelerator="a100-80gb-sxm", tp=1, kv_dtype=kind))
        assert at("memory.kv_bytes_per_token") == 65_536 * size / 8, kind
        assert at("hardware.kv_format") == ("fp8" if kind == "fp8" else "bf16"), kind


def test_kv_heads_are_copied_where_there_are_more_ranks_than_heads(make: Make) -> None:
    """Four KV heads on eight ranks: half of the saving is gone, and every rank holds one whole head."""
    four, eight = (
        look(make(model="llama-3.2-3b", tp=4, **override("model.kv_heads", 4))),
        make(model="llama-3.2-3b", tp=8, **override("model.kv_heads", 4)),
    )
    at = look(eight)
    assert at("plan.kv_copies") == 2
    assert at("plan.kv_heads") == four("plan.kv_heads") == 1
    assert at("memory.kv_bytes_per_token") == four("memory.kv_bytes_per_token")
    assert at("tensors.attention") * 8 == four("tensors.attention") * 4 + 2 * 3072 * 4 * 128
    assert at("tensors.ffn") * 8 == four("tensors.ffn") * 4
    assert "KV_COPIED" in {alert["code"] for alert in eight.results()["checks"]["alerts"]}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tp": 2, "pp": 2},
        {"batching": "static"},
        {"model": "qwen3-8b", "tp": 1},
        {"accelerator": "l40s", "weights_dtype": "fp8"},
    ],
)
def test_module_times_and_limits_add_up_to_the_pass(make: Make, fields: dict[str, Any]) -> None:
    """Every module once; each module's time splits into its own limits; the pass into the four limits."""
    made = make(**fields)
    values = made.values()
    for phase in (made.equations.prefill, made.equations.decode):
        blocks = [*phase.blocks]
        times = phase.times.figures
        assert len(times) == len(blocks) + 1
        assert [values[time] for time in times[:-1]] == [values[block.time] for block in blocks]
        assert sum(values[time] for time in times) == pytest.approx(values[phase.time], rel=1e-12)
        assert sum(values[part] for part in phase.parts.values()) == pytest.approx(
            values[phase.time], rel=1e-12
        )
        for time, block in zip(times, [*(block.id for block in blocks), "step"], strict=True):
            parts = [
                part
                for held in phase.shares.values()
                for part in held.figures
                if part.id.endswith(f".{block}")
            ]
            assert sum(values[part] for part in parts) == pytest.approx(values[time], rel=1e-12), time.id
            assert all(values[part] >= 0 for part in parts), time.id
        largest = max(phase.parts, key=lambda kind: values[phase.parts[kind]])
        assert values[phase.bottleneck] == largest
    served = made.equations.serving
    assert sum(values[part] for part in served.ttft_parts) == pytest.approx(values[served.ttft], rel=1e-12)
    assert sum(values[part] for part in served.tpot_parts) == pytest.approx(values[served.tpot], rel=1e-12)


def test_one_rank_and_one_stage_send_nothing(make: Make) -> None:
    """And two of each do."""
    alone, spread = look(make(model="llama-3.1-8b", tp=1)), look(make(model="llama-3.1-8b", tp=2, pp=2))
    for phase in ("prefill", "decode"):
        for name in ("all_reduce", "p2p"):
            assert alone(f"{phase}.{name}.time") == 0
            assert spread(f"{phase}.{name}.time") > 0
        assert alone(f"{phase}.bound.network") == 0


def test_replicas_share_the_requests(make: Make) -> None:
    """Two replicas of half the requests each: the same times, twice the tokens, the same per accelerator."""
    one, two = make(tp=4, concurrency=8).results(), make(tp=4, dp=2, concurrency=16).results()
    for same in (
        "ttft_s",
        "tpot_s",
        "e2e_s",
        "batch",
        "memory_per_accelerator_bytes",
        "output_tokens_per_s_per_accelerator",
    ):
        assert one[same] == two[same], same
    assert two["output_tokens_per_s"] == 2 * one["output_tokens_per_s"]
    assert (one["accelerators"], two["accelerators"]) == (4, 8)


def test_a_full_memory_lets_requests_wait_for_a_seat(make: Make) -> None:
    """The batch is what memory holds.

    TTFT grows by the wait, TPOT does not, and throughput stays what the batch gives.
    """
    made = make(model="llama-3.1-8b", accelerator="l40s", tp=1, concurrency=400, input_tokens=4096)
    at = look(made)
    capacity = at("memory.capacity_sequences")
    assert 1 < capacity < 400
    assert at("memory.batch") == capacity
    waiting = (400 - capacity) / capacity * at("serving.service_time")
    assert at("serving.seat_wait") == pytest.approx(waiting, rel=1e-12)
    assert at("serving.requests_per_s") == pytest.approx(capacity / at("serving.service_time"), rel=1e-12)
    alone = look(
        make(model="llama-3.1-8b", accelerator="l40s", tp=1, concurrency=int(capacity), input_tokens=4096)
    )
    assert at("serving.tpot") == pytest.approx(alone("serving.tpot"), rel=0.1)
    assert {alert["code"] for alert in made.results()["checks"]["alerts"]} >= {"KV_QUEUE"}


# --- efficiency ---------------------------------------------------------------------------------------------


def deciding(made: Estimate, factor: str, weights: str = "ffn") -> tuple[str, float, int]:
    """The profile row whose figure is used: its id, its figure and the level of its profile."""
    values, in_use = made.values(), made.equations.prefill_workers.efficiency.in_use[factor]
    user = weights if weights in in_use.by_user else next(iter(in_use.by_user))
    figure = in_use.library_figure(in_use.by_user[user], values)
    levels = {profile.key: profile.level.number for profile in made.library.efficiency}
    row = figure.id.removeprefix(f"efficiency.{factor}.")
    key = max((key for key in levels if row == key or row.startswith(f"{key}.")), key=len)
    return row, float(values[figure]), levels[key]


@pytest.mark.parametrize(
    ("fields", "factor", "row", "level"),
    [
        ({}, "one_shot_latency", "hopper/vllm.tp8", 4),
        ({"tp": 7}, "one_shot_latency", "hopper/vllm.tp4", 4),
        ({"tp": 16}, "one_shot_latency", "hopper/vllm.tp8", 4),
        ({"accelerator": "b200-sxm", "framework": "sglang"}, "one_shot_latency", "blackwell/sglang.tp8", 4),
        ({"accelerator": "h100-pcie", "tp": 2}, "one_shot_latency", "topology/pcie.tp2", 5),
        ({"accelerator": "l40s"}, "one_shot_latency", "l40s.tp8", 6),
        (
            {"accelerator": "dgx-spark-gb10", "system": "spark-10gbe", "tp": 1},
            "network_latency",
            "link/ethernet-10g",
            8,
        ),
        ({"accelerator": "m3-ultra", "framework": "mlx", "tp": 1}, "first_token", "global/mlx", 2),
        ({}, "gemm_compute", "hopper.bf16", 3),
        ({"weights_dtype": "fp8-block"}, "gemm_compute", "hopper.fp8-block", 3),
        ({"weights_dtype": "fp8", "activation_dtype": "bf16"}, "gemm_compute", "hopper.weight-only", 3),
        ({"accelerator": "a100-80gb-sxm", "weights_dtype": "fp8"}, "gemm_launch", "ampere.weight-only", 3),
        ({"kv_dtype": "fp8"}, "attention_decode", "hopper/vllm.fp8", 4),
        ({"kv_dtype": "fp8", "framework": "atom"}, "attention_decode", "hopper.fp8", 3),
        ({"kv_dtype": "int4-kv"}, "attention_decode", "hopper/vllm.bf16", 4),
        ({}, "step_host", "global", 1),
    ],
)
def test_a_factor_comes_from_the_most_specific_profile_that_has_it(
    make: Make, fields: dict[str, Any], factor: str, row: str, level: int
) -> None:
    """Kind of link before accelerator before topology before generation before everything.

    Each with the framework comes before the same without it.
    """
    made = make(**fields)
    found, figure, height = deciding(made, factor)
    assert (found, height) == (row, level)
    kind = next(kind for kind in KINDS if kind.name == factor)
    for name in ("attention", "ffn") if kind.condition == "format" else ("",):
        assert look(made)(f"efficiency.{factor}{name and '.'}{name}") == pytest.approx(
            figure * {"us": 1e-6, "GB/s": 1e9, "GB": 1e9, "1": 1}[kind.unit], rel=1e-15
        )


def test_the_most_specific_level_wins_over_all_others(library: Library) -> None:
    """A profile of an accelerator with a framework is the end of the chain."""
    factor = (
        library.efficiency[0]
        .factors[0]
        .model_copy(update={"factor": "step_host", "value": 123.0, "format": None, "kv": None, "ranks": None})
    )
    own = EfficiencyProfile(
        id="h100-sxm--atom", version="1", accelerator="h100-sxm", framework="atom", factors=(factor,)
    )
    wider = EfficiencyProfile(
        id="any--atom", version="1", framework="atom", factors=(factor.model_copy(update={"value": 7.0}),)
    )
    others = [profile for profile in library.efficiency if profile.framework != "atom"]
    extended = library.model_copy(update={"efficiency": (*others, wider, own)})

    def using(**fields: object) -> Estimate:
        base = {
            "model": "llama-3.1-8b",
            "accelerator": "h100-sxm",
            "framework": "atom",
            "input_tokens": 100,
            "output_tokens": 10,
            "concurrency": 1,
        }
        return estimate(parse_scenario(base | fields, "scenario"), library=extended)

    assert deciding(using(), "step_host") == ("h100-sxm/atom", 123.0, 7)
    assert using().results()["efficiency_profile"] == "h100-sxm/atom"
    assert deciding(using(accelerator="h200-sxm"), "step_host") == ("global/atom", 7.0, 2)
    (shipped,) = (
        held.value
        for profile in library.efficiency
        if profile.key == "global"
        for held in profile.factors
        if held.factor == "step_host"
    )
    assert deciding(using(framework="sglang"), "step_host") == ("global", shipped, 1)


@pytest.mark.parametrize("model", ["llama-3.3-70b", "deepseek-v3.2", "nemotron-3-nano"])
def test_factors_depend_on_accelerator_framework_formats_and_ranks_only(make: Make, model: str) -> None:
    """No factor may see the model or the workload: that would be a fudge in disguise.

    A class sees its own data type only.
    """
    equations = make(model=model).equations
    allowed = {"accelerator", "system", "framework"}
    narrower = {"kv": {"kv_dtype"}, "ranks": {"tp", "attention_dp", "cp"}, None: set[str]()}

    def named(key: str) -> set[str]:
        """What has to be known to tell whether a profile holds."""
        place, _, framework = key.partition("/")
        if place in ("topology", "link"):
            return {"accelerator", "system"}
        return ({"framework"} if framework else set()) | ({"accelerator"} if place != "global" else set())

    needed = {
        name: {field for table in factor.tables for key in table.figures for field in named(key)}
        for name, factor in equations.prefill_workers.efficiency.in_use.items()
    }
    of_class = {
        name: {"weights_dtype", f"{name}_dtype", "activation_dtype"}
        for name in ("attention", "ffn", "experts")
    }
    of_class |= {"head": {"head_dtype", "activation_dtype"}, "router": {"activation_dtype"}}
    conditions = {kind.name: kind.condition for kind in KINDS}
    users: dict[str, set[str]] = {}
    for (name, user), factor in equations.prefill_workers.efficiency.by_user.items():
        users.setdefault(name, set()).add(user)
        # An input that follows others until it is stated, such as the activations' data type, stands for
        # itself.
        nodes = expression(factor, leaf=lambda node: isinstance(node, Input))
        seen = {node for node in nodes if isinstance(node, Input)}
        chosen = {node.id.removeprefix("inputs.") for node in seen if node.id.startswith("inputs.")}
        condition = conditions[name]
        own = of_class[user] if condition == "format" else narrower[condition]
        assert chosen <= allowed | (own if user == "stage" else own - {"attention_dp", "cp"}), factor.id
        assert chosen & allowed == needed[name], factor.id
        assert not [node.id for node in seen if node.id.startswith("model.")], factor.id
        # A data type falls back to bf16 kernels by the datasheet; nothing else of the hardware may decide a
        # factor.
        hardware = {node.id for node in seen if node.id.startswith("hardware.")}
        assert hardware <= {f"hardware.peak_{peak}.override" for peak in PEAKS}, factor.id
    assert set(users) == set(equations.prefill_workers.efficiency.factors)
    assert allowed in needed.values() or {"accelerator", "framework"} in needed.values()
    groups = {kind.name: set(kind.groups) for kind in KINDS}
    classes = set(equations.ir.weight_classes())
    for name, found in users.items():
        wanted = {"experts"} if name.startswith("moe_") else classes - {"experts", "embedding"}
        assert found == (
            wanted
            if conditions[name] == "format"
            else groups[name] - {"dcp", "ffn"}
            if conditions[name] == "ranks"
            else {""}
        ), name


@pytest.mark.exhaustive
@pytest.mark.parametrize("model", ["deepseek-v3.2", "gpt-oss-120b"])
def test_no_figure_of_the_library_reaches_more_than_a_peak(make: Make, library: Library, model: str) -> None:
    """Factors times scales, on every accelerator with every framework and format.

    Nothing moves bytes faster than the datasheet says.
    """
    made = make(model=model)
    chips, frameworks = (
        [chip.id for chip in library.accelerators],
        [framework.id for framework in library.frameworks],
    )
    weights, activations = (
        [kind.id for kind in library.datatypes if role in kind.roles] for role in ("weights", "activations")
    )
    cases = np.array([*product(chips, frameworks, weights, activations, ("bf16", "fp8"))])
    names = ("accelerator", "framework", "weights_dtype", "activation_dtype", "kv_dtype")
    fractions = [
        figure for name, figure in made.equations.figures.items() if name.startswith("efficiency.fraction.")
    ]
    assert len(fractions) > 10
    values = Program(fractions).sweep(
        made.inputs(0) | {f"inputs.{name}": cases[:, place] for place, name in enumerate(names)}
    )
    beyond = {figure.id: float(np.max(values[figure])) for figure in fractions if np.max(values[figure]) > 1}
    assert not beyond
    assert min(float(np.min(values[figure])) for figure in fractions) > 0


def test_a_model_needs_only_the_factors_of_what_it_computes(make: Make) -> None:
    """Factors of experts, latents and states stand where there are any.

    Every factor we know is needed by some model.
    """

    def names(model: str, **fields: Any) -> set[str]:
        return set(make(model=model, **fields).equations.prefill_workers.efficiency.factors)

    experts = {
        "moe_launch",
        "moe_compute",
        "moe_sent",
        "moe_bandwidth",
        "moe_launch_scale",
        "moe_widening",
        "moe_bandwidth_scale",
        "moe_early",
        "launch_current",
        "routing_spread",
        "expert_imbalance",
        "expert_cold_start",
        "all_to_all_latency",
        "all_to_all_bandwidth",
        "all_to_all_overlap",
    }
    latent, state = {"latent_launch", "latent_decode", "latent_compute"}, {"state_launch", "state_bandwidth"}
    keys = {"attention_prefill_fp8"}
    cache = {"attention_launch", "attention_decode"} | keys
    every = {kind.name for kind in KINDS} - {"kv_transfer_overlap", "eager_mode_launch"}
    assert names("llama-3.3-70b", enforce_eager="on") - names("llama-3.3-70b") == {"eager_mode_launch"}
    assert names("llama-3.3-70b", decode={"tp": 4}) - names("llama-3.3-70b") == {"kv_transfer_overlap"}
    assert every - names("llama-3.3-70b") == experts | latent | state
    assert every - names("mixtral-8x7b") == latent | state
    assert every - names("deepseek-v3") == state | cache
    assert every - names("deepseek-v3.2") == state | keys
    assert every - names("kimi-linear-48b-a3b") == cache
    assert every - names("jamba-v0.1") == latent
    assert every - names("mamba-codestral-7b") == experts | latent | cache | {"attention_decode_scale"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["gemm_compute", "interference", "runtime_reserve"])
def test_an_override_changes_only_what_depends_on_it(make: Make, name: str) -> None:
    """Everything else stays the same to the last bit; what depends on it follows up to the headline."""
    made = make()
    base = made.values()
    own = made.figure(f"efficiency.{name}.override")
    unit = {kind.name: kind.unit for kind in KINDS}[name]
    factor = made.equations.prefill_workers.efficiency.factors[name]
    current = float(base[factor]) / {"us": 1e-6, "GB": 1e9, "1": 1}[unit]
    other = make(**override(f"efficiency.{name}", current * 0.9))
    changed = other.values()
    moved = set()
    for identifier, figure in made.equations.figures.items():
        before, after = base[figure], changed[other.figure(identifier)]
        if isinstance(figure, Quantity) and before != after:
            moved.add(identifier)
            assert own in set(ancestors(figure)), identifier
    users = {
        figure.id
        for (kind, _), figure in made.equations.prefill_workers.efficiency.by_user.items()
        if kind == name
    }
    assert users <= moved and len(users) == (3 if name == "gemm_compute" else 1)
    headline = {"interference": "serving.tpot", "runtime_reserve": "memory.used"}.get(name, "serving.e2e")
    assert headline in moved
    if name == "interference":
        assert not {
            identifier for identifier in moved if identifier.startswith(("prefill.", "decode.", "memory."))
        }
    if name == "runtime_reserve":
        assert "serving.tpot" not in moved


def test_an_override_equal_to_the_library_changes_nothing(make: Make) -> None:
    """An empty override means the library's figure; so does that figure itself."""
    plain, stated = make(), make(**override("hardware.memory_bandwidth", 3350))
    assert plain.results() == stated.results()
    assert plain.inputs(0).keys() == stated.inputs(0).keys() - {"hardware.memory_bandwidth.override"}
    changed = make(**override("hardware.memory_bandwidth", 3000))
    assert look(changed)("hardware.memory_bandwidth") == 3000e9
    assert look(changed)("library.h100-sxm.memory_bandwidth") == 3350


def test_an_override_of_one_column_leaves_the_others_alone(make: Make) -> None:
    """A variant's own override wins over the base's; the base's holds in all columns."""
    name = "efficiency.gemm_compute"
    made = make(**override(name, 0.6), variants=[{"name": "same"}, {"name": "own", **override(name, 0.5)}])
    for user in ("attention", "ffn", "head"):
        assert [look(made, column)(f"{name}.{user}") for column in range(3)] == [0.6, 0.6, 0.5]


# --- data types ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accelerator", "weights", "activations", "peak", "kernels", "result_bytes"),
    [
        ("h100-sxm", "bf16", "bf16", "bf16", "bf16", 2),
        ("h100-sxm", "fp8", "fp8", "fp8", "fp8", 1),
        ("h100-sxm", "fp8", "bf16", "bf16", "weight-only", 2),
        ("a100-80gb-sxm", "fp8-block", "fp8", "bf16", "weight-only", 2),
        ("b200-sxm", "nvfp4", "nvfp4", "fp4", "nvfp4", 0.5625),
        ("b200-sxm", "mxfp4", "bf16", "bf16", "mxfp4-bf16", 2),
        ("b200-sxm", "mxfp4", "mxfp4", "fp4", "mxfp4", 0.53125),
        ("b200-sxm", "fp8-block", "fp8", "fp8", "fp8-block", 1),
    ],
)
def test_products_run_at_the_peak_the_chip_has(
    make: Make,
    library: Library,
    accelerator: str,
    weights: str,
    activations: str,
    peak: str,
    kernels: str,
    result_bytes: float,
) -> None:
    """A format without a native path is expanded to bf16: stored narrow, multiplied wide, and said so."""
    made = make(accelerator=accelerator, weights_dtype=weights, activation_dtype=activations)
    at = look(made)
    figure = getattr(library.accelerator(accelerator), f"peak_{peak}").value
    assert kernels in FORMATS
    for name in ("attention", "ffn"):
        assert at(f"hardware.{name}.linear_peak") == figure * 1e12
        assert at(f"hardware.{name}.kernel_format") == kernels
        assert at(f"hardware.{name}.activation_bytes") == result_bytes
        assert at(f"hardware.{name}.bytes") == library.datatype(weights, "weights").bits / 8
    assert (
        at("hardware.head.bytes"),
        at("hardware.head.kernel_format"),
        at("hardware.head.activation_bytes"),
    ) == (2, "bf16", 2)
    codes = [alert["code"] for alert in made.results()["checks"]["alerts"]]
    assert ("NO_NATIVE_FORMAT" in codes) == (activations != "bf16" and peak == "bf16")


# --- reason codes -------------------------------------------------------------------------------------------

BROKEN = [
    "PREFILL_SUM",
    "DECODE_SUM",
    "TTFT_BELOW_FLOOR",
    "TPOT_BELOW_FLOOR",
    "TTFT_BELOW_PREFILL",
    "LITTLES_LAW",
    "SLOTS_EXCEEDED",
    "STEPS_EXCEEDED",
    "PEAK_EXCEEDED",
    "PREFILL_MFU",
    "DECODE_MFU",
    "PREFILL_MBU",
    "DECODE_MBU",
]
CROSSING = ["TP_CROSSES_DOMAINS", "STAGE_CROSSES_DOMAINS", "REPLICA_CROSSES_DOMAINS"]
ODD: tuple[tuple[dict[str, Any], list[str], list[str]], ...] = (
    ({}, [], []),
    ({"tp": 3}, ["KV_DIFFERS", "HEADS_NOT_DIVISIBLE", "KV_HEADS_NOT_DIVISIBLE", "FFN_NOT_DIVISIBLE"], []),
    ({"model": "qwen2.5-7b", "tp": 7}, ["KV_HEADS_NOT_DIVISIBLE", "FFN_NOT_DIVISIBLE"], ["KV_COPIED"]),
    ({"model": "qwen2.5-7b", "tp": 8}, ["HEADS_NOT_DIVISIBLE"], ["KV_COPIED"]),
    ({"tp": 1}, ["MEMORY_EXCEEDED"], ["KV_QUEUE"]),
    ({"model": "llama-3.1-405b"}, ["MEMORY_EXCEEDED"], ["KV_QUEUE"]),
    ({"tp": 4, "concurrency": 2000}, [], ["KV_QUEUE"]),
    ({"tp": 1, "pp": 7}, [], ["LAYERS_UNEVEN"]),
    ({"tp": 2, "pp": 4, **override("model.layers", 3)}, ["PP_EXCEEDS_LAYERS"], ["LAYERS_UNEVEN"]),
    ({"model": "llama-2-7b", "tp": 1, "input_tokens": 4096}, ["CONTEXT_EXCEEDS_MODEL"], []),
    ({"model": "llama-2-7b", "tp": 1, "input_tokens": 3840}, [], []),
    (
        {"accelerator": "a100-80gb-sxm", "weights_dtype": "fp8", "activation_dtype": "fp8"},
        [],
        ["NO_NATIVE_FORMAT"],
    ),
    (override("hardware.accelerators", 4), [], CROSSING),
    (overrides({"hardware.accelerators": 4, "hardware.domains": 1}), ["REPLICA_EXCEEDS_SYSTEM"], CROSSING),
    ({"tp": 16}, [], [*CROSSING, "KV_COPIED"]),
    ({"ep": 2}, ["EP_WITHOUT_EXPERTS"], []),
    ({"system": "pcie-l40s"}, ["SYSTEM_MISMATCH"], []),
    ({"model": "mixtral-8x7b", "tp": 4, "ep": 8}, ["EP_NOT_DIVISOR"], []),
    (override("hardware.memory_capacity", 30), [], []),
)


@pytest.mark.parametrize(("fields", "errors", "alerts"), ODD)
def test_an_odd_plan_raises_exactly_its_reason_codes(
    make: Make, fields: dict[str, Any], errors: list[str], alerts: list[str]
) -> None:
    """Codes are public: programs act on them.

    How far TTFT lies from its floor is calibration unless a case is about it.
    """
    raised = make(**fields).results()["checks"]
    assert [error["code"] for error in raised["errors"]] == errors
    told = [alert["code"] for alert in raised["alerts"]]
    if "TTFT_FAR_FROM_FLOOR" not in alerts:
        told = [code for code in told if code != "TTFT_FAR_FROM_FLOOR"]
    assert told == alerts
    assert make(**fields).results()["fits"] == ("MEMORY_EXCEEDED" not in errors)


TYPED: tuple[tuple[str, float, list[str], list[str]], ...] = (
    ("efficiency.gemm_compute", 1.2, ["EFFICIENCY_ABOVE_ONE"], []),
    ("efficiency.gemm_bandwidth", 1.4, ["EFFICIENCY_ABOVE_ONE"], []),
    (
        "efficiency.attention_prefill",
        0.0003,
        ["EFFICIENCY_NOT_POSITIVE"],
        ["TTFT_FAR_FROM_FLOOR", "TPOT_FAR_FROM_FLOOR"],
    ),
    ("efficiency.step_host", 300_000, [], ["TTFT_FAR_FROM_FLOOR", "TPOT_FAR_FROM_FLOOR"]),
    (
        "hardware.memory_bandwidth",
        0,
        [*BROKEN[:2], "COST_NOT_PAID", *BROKEN[2:], "ERROR_VALUE", "COST_ERROR_VALUE"],
        ["TTFT_FAR_FROM_FLOOR", "TPOT_FAR_FROM_FLOOR"],
    ),
)


@pytest.mark.parametrize(("identifier", "value", "errors", "alerts"), TYPED)
def test_what_somebody_types_into_a_cell_is_checked(
    make: Make, identifier: str, value: float, errors: list[str], alerts: list[str]
) -> None:
    """A scenario file with such a figure is refused.

    In a workbook, where anything can be typed, a check fails.
    """
    with pytest.raises(InputError, match=f"{identifier}.*expected"):
        make(**override(identifier, value))
    made = make()
    values = made.program.run(made.inputs(0) | {f"{identifier}.override": value})
    assert [error["code"] for error in raised(made.equations, values, errors=True)] == errors
    assert [alert["code"] for alert in raised(made.equations, values, errors=False)] == alerts


def test_a_raised_check_tells_both_sides(make: Make) -> None:
    """Message with figures and unit; sides as numbers for programs."""
    (error,) = make(model="llama-2-7b", tp=1, input_tokens=4096).results()["checks"]["errors"]
    assert (
        error["message"]
        == "4,096 input and 256 output tokens are 4,352, the model takes 4,096: shorten one of them"
    )
    assert (error["left"], error["right"]) == (4352.0, 4096.0)


def test_codes_are_unique_and_every_check_stands_on_figures(make: Make) -> None:
    """Both sides are rows a reader can look at."""
    equations = make().equations
    codes = [check.code for check in equations.checks.checks]
    assert len(codes) == len(set(codes)) >= 44
    standing = set(equations.figures.values())
    assert all({check.left, check.right} <= standing for check in equations.checks.checks)


# --- windows and stages -------------------------------------------------------------------------------------


def test_a_sliding_window_limits_attention_and_cache(make: Make) -> None:
    """Mistral-7B looks back 4,096 tokens.

    Beyond that neither cache nor decode attention grow, prefill only linearly.
    """
    short, long, longer = (
        look(make(model="mistral-7b", tp=1, input_tokens=tokens, kv_admission="guaranteed"))
        for tokens in (2048, 8192, 16_384)
    )
    assert [at("memory.cached_tokens.sliding_window") for at in (short, long, longer)] == [
        2048 + 256,
        4096,
        4096,
    ]
    assert [at("decode.context") for at in (short, long, longer)] == [2048 + 128, 4096, 4096]
    assert [at("prefill.context") for at in (short, long, longer)] == [1024, 4096 * 0.75, 4096 * 0.875]
    assert long("memory.kv_bytes_per_request") == longer("memory.kv_bytes_per_request") == 4096 * 131_072
    assert long("decode.time") == longer("decode.time")
    assert long("floor.prompt_reach.attention") == 4096


def test_stages_share_the_batch_and_overlap_prompts(make: Make) -> None:
    """Two stages: half the layers and half the batch in each, a prompt occupies one stage at a time.

    A pass still crosses all layers.
    """
    one, two = look(make(model="llama-3.1-8b", tp=1)), look(make(model="llama-3.1-8b", tp=1, pp=2))
    assert (one("decode.requests"), two("decode.requests")) == (16, 8)
    assert (one("plan.layers"), two("plan.layers")) == (32, 16)
    assert two("memory.kv_bytes_per_token") == one("memory.kv_bytes_per_token")
    for stage in range(2):
        assert (
            two(f"memory.stage_kv.{stage}") * 2
            == one("memory.stage_kv.0")
            == one("memory.kv_bytes_per_request")
        )
    head, sent = two("prefill.lm_head.time"), two("prefill.p2p.time")
    slowest = (two("prefill.time") - head) / 2 + head
    assert two("serving.prefill_service") == pytest.approx(slowest, rel=1e-12)
    assert two("prefill.time") == pytest.approx(one("prefill.time") + sent, rel=1e-12)
    assert two("serving.prefill_through") == two(
        "prefill.time"
    )  # a prompt of one chunk crosses one stage after the other
    chunks = look(make(model="llama-3.1-8b", tp=1, pp=2, token_budget=512))
    assert chunks("serving.prefill_chunks") == 4
    assert slowest < chunks("serving.prefill_through") < chunks("prefill.time") * 4
    step = (two("decode.time") - two("decode.lm_head.time")) / 2 + two("decode.lm_head.time")
    assert two("serving.decode_step") == pytest.approx(
        2 * step, rel=1e-12
    )  # two micro-batches, each waiting for the last stage
    layer, ends = one("memory.layer_weights.attention.ffn"), one("memory.embedding_weights")
    assert one("memory.weights") == 32 * layer + 2 * ends + 4096 * 2
    assert two("memory.weights") == 16 * layer + ends + 4096 * 2
    assert (two("memory.stage_weights.0"), two("memory.stage_weights.1")) == (
        16 * layer + ends,
        16 * layer + ends + 4096 * 2,
    )
