"""No estimate may beat physics: independent floors, published examples, and which way figures must move."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import KINDS, few_models, few_of
from hypothesis import given, settings
from hypothesis import strategies as st

import mantile.floors
from mantile.equations.inputs import CURRENT, EARLY, LAST
from mantile.estimates.estimate import Estimate
from mantile.floors import Core, Dimensions, Machine, Weights, floors
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Quantity, precedents
from mantile.library.profiles import ADMISSIONS, CACHE_POLICIES, SCHEDULERS, Library
from mantile.library.scenario_fields import CLASS_DTYPES, DEFAULT, DEFAULT_SYSTEM, SAME, SCENARIO_FIELDS

Make = Callable[..., Estimate]
PLANS = tuple((tp, pp) for tp in range(1, 9) for pp in range(1, 9) if tp * pp <= 8)
DEGREES = (1, 1, 1, 2, 3, 4, 8)  # of attention-DP, CP and EP
CASES = 120  # of each model
UNKNOWN = re.compile(
    r"network\.|evidence\.usd_|metrics\.|measured\.|cost\.|token_cost\.|break_even\.|grid\.|.*\.by\.|.*\.cheapest$"
    r"|nearest\.(?:measured|estimated)\.|machines\."
)
"""What may be a text: ways that no link allows, results of plans that cannot be, prices nobody states, times
that a measured run does not report."""


def dtypes(library: Library, role: str) -> list[str]:
    """Number formats usable for a role."""
    return [kind.id for kind in library.datatypes if role in kind.roles]


def anything(library: Library, made: Estimate, seed: int, count: int = CASES) -> dict[str, np.ndarray]:
    """Plans of every kind, sensible or not, as arrays of the inputs a model has."""
    generator = np.random.default_rng(seed)
    plans = np.array(PLANS)[generator.integers(len(PLANS), size=count)]

    def spread(largest: int) -> np.ndarray:
        return np.exp(generator.uniform(0, np.log(largest), count)).astype(int)

    prompts = spread(131_072)
    inputs = {
        "inputs.accelerator": generator.choice([item.id for item in library.accelerators], count),
        "inputs.system": np.where(
            generator.random(count) < 0.7,
            DEFAULT_SYSTEM,
            generator.choice([item.id for item in library.systems], count),
        ),
        "inputs.framework": generator.choice([item.id for item in library.frameworks], count),
        "inputs.weights_dtype": generator.choice(dtypes(library, "weights"), count),
        "inputs.head_dtype": generator.choice(dtypes(library, "weights"), count),
        "inputs.activation_dtype": generator.choice(dtypes(library, "activations"), count),
        "inputs.kv_dtype": generator.choice(dtypes(library, "kv"), count),
        "inputs.batching": generator.choice(["continuous", "static"], count),
        "inputs.tp": np.where(
            generator.random(count) < 0.9, plans[:, 0], generator.choice([16, 72, 1024], count)
        ),
        "inputs.pp": plans[:, 1],
        "inputs.dp": generator.choice([1, 2, 3, 8, 64, 1024], count),
        **{f"inputs.{name}": generator.choice(DEGREES, count) for name in ("attention_dp", "cp")},
        "inputs.ep": generator.choice([*DEGREES, 16, 64, 1024], count),
        "inputs.sequence_parallel": generator.choice(["on", "off"], count),
        "inputs.microbatches": generator.choice([0, 1, 2, 7], count),
        **{
            f"inputs.{name}": generator.choice([0, 0, 1, 20.5, 10_000], count)
            for name in ("offload_weights", "offload_kv", "kv_swap")
        },
        "inputs.price_basis": generator.choice(SCENARIO_FIELDS["price_basis"].choices, count),
        "inputs.utilisation": generator.uniform(0.001, 1, count),
        "inputs.electricity_price": generator.choice([0, 0.1, 10], count),
        "inputs.pue": generator.uniform(1, 5, count),
        "inputs.hours_per_day": generator.uniform(0.01, 24, count),
        "inputs.input_tokens": prompts,
        "inputs.output_tokens": spread(16_384),
        "inputs.concurrency": spread(4_096),
        "inputs.token_budget": generator.choice([512, 2048, 8192, 32_768], count),
        "inputs.max_requests": np.where(generator.random(count) < 0.7, 0, spread(4_096)),
        "inputs.engine_release": generator.choice([CURRENT, LAST, EARLY], count),
        "inputs.prompts_per_slot": generator.choice([0, 0.3, 1, 10, 1000], count),
        "inputs.scheduler": generator.choice([DEFAULT, *SCHEDULERS], count),
        "inputs.cache_policy": generator.choice([DEFAULT, *CACHE_POLICIES], count),
        "inputs.kv_admission": generator.choice([DEFAULT, *ADMISSIONS], count),
        "inputs.receive_interval": generator.choice([0, 0, 1, 30, 10_000], count),
        "inputs.batch_wait_steps": generator.choice([0, 0, 20, 10_000], count),
        "inputs.length_range_ratio": generator.choice([0, 0.2, 1], count),
        "inputs.p95_output_ratio": generator.choice([1, 1.1, 100], count),
        "inputs.input_spread": generator.choice([0, 0.06, 1, 5], count),
        "inputs.output_spread": generator.choice([0, 0.06, 0.5], count),
        **{f"inputs.{name}_limit": generator.choice([0, 0.1, 10], count) for name in ("ttft", "tpot", "e2e")},
        **{
            f"inputs.{name}": generator.choice([SAME, *dtypes(library, "weights")], count)
            for name in CLASS_DTYPES
        },
        "inputs.image_tokens": (prompts * generator.choice([0, 0.3, 1], count)).astype(int),
        "inputs.as_of": generator.choice([46_000, 46_349, 60_000], count),
        "inputs.compute_speed": generator.choice([1, 1, 1, 0.5, 0.01], count),
        "inputs.network_speed": generator.choice([1, 1, 1, 0.5, 0.01], count),
        "inputs.embedding_dtype": generator.choice(dtypes(library, "weights"), count),
    }
    has = made.equations.inputs.named()
    assert {name.removeprefix("inputs.") for name in inputs} >= set(has), "an input that no case varies"
    return {name: values for name, values in inputs.items() if name.removeprefix("inputs.") in has}


def test_floors_share_nothing_with_the_equations() -> None:
    """A floor that reused an equation would inherit its mistakes."""
    tree = ast.parse(Path(mantile.floors.__file__).read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    ours = {name for name in imported if name.startswith("mantile")}
    assert ours == {"mantile.graph.quantity"}


@pytest.mark.parametrize("model", few_models(*KINDS))
def test_nothing_beats_its_floor(library: Library, make: Make, model: str) -> None:
    """Times above the floor, use of the hardware at most 1, all finite, and sums that add up, on any plan."""
    made = make(model=model, tp=1)
    inputs = anything(library, made, seed=sum(map(ord, model)))
    values = made.program.sweep(inputs)

    def figure(name: str) -> np.ndarray:
        found: np.ndarray = values[made.figure(name)]
        return found

    for quantity in made.equations.quantities():
        if values[quantity].dtype != object and not UNKNOWN.match(quantity.id):
            assert np.isfinite(values[quantity]).all(), quantity.id
    tiny = 1e-12
    assert (figure("serving.ttft") >= figure("floor.ttft") * (1 - tiny)).all()
    assert (figure("serving.tpot") >= figure("floor.tpot") * (1 - tiny)).all()
    assert (figure("floor.ttft") > 0).all()
    assert (figure("floor.tpot") > 0).all()
    for phase in ("prefill", "decode"):
        assert (figure(f"{phase}.mfu") <= 1).all()
        assert (figure(f"{phase}.mbu") <= 1).all()
        limits = sum(figure(f"{phase}.bound.{kind}") for kind in ("compute", "memory", "network", "overhead"))
        np.testing.assert_allclose(limits, figure(f"{phase}.time"), rtol=1e-12)
    parts = sum(figure(f"memory.{part}") for part in ("weights", "kv", "activations", "logits", "reserve"))
    np.testing.assert_allclose(parts, figure("memory.used"), rtol=1e-12)
    np.testing.assert_allclose(
        figure("memory.used") + figure("memory.headroom") + figure("memory.outside"),
        figure("hardware.memory_capacity"),
        rtol=1e-12,
    )
    # The KV cache of the batch never exceeds the room there is, except for the one request of a rank without
    # which nothing runs, and where weights alone leave no room: what lies on the host does not help them.
    # Nor where a share of free memory leaves less beside it than the rest takes: such a plan does not fit.
    beside = sum(figure(f"memory.{part}") for part in ("weights", "kv_room", "activations", "reserve"))
    fits = (figure("memory.seats") > 1) & (figure("memory.kv_room") > 0)
    fits &= beside <= figure("hardware.memory_seen")
    assert (figure("memory.used")[fits] <= figure("memory.usable")[fits] * (1 + tiny)).all()
    waits = figure("serving.slot_wait") > 0  # in the warm-up burst for half as long
    ramp = figure("serving.ramp")  # requests run out at the end of a benchmark
    assert ((ramp > 0.5 * (1 - tiny)) & (ramp <= 1)).all()
    assert (ramp[inputs["inputs.prompts_per_slot"] == 0] == 1).all()
    # A benchmark of more requests than slots is no shorter than its prompts one after the other.
    turns = figure("serving.in_flight_share") == figure("serving.flight_most")
    turns &= figure("memory.requests") > figure("memory.batch")
    alone = np.where(waits | turns, 0, 1)
    np.testing.assert_allclose(
        figure("serving.requests_per_s") * figure("serving.e2e") * alone,
        inputs["inputs.concurrency"] * ramp * alone,
        rtol=1e-12,
    )
    alike = figure("serving.service_time") * figure("memory.requests") / figure("memory.batch")
    in_slots = figure("serving.requests_per_s") * alike
    most = inputs["inputs.concurrency"] * ramp
    np.testing.assert_allclose(in_slots[waits & ~turns], most[waits & ~turns], rtol=1e-12)
    assert (in_slots[turns & waits] <= most[turns & waits] * (1 + tiny)).all()
    named = sum(figure(part.id) for part in made.equations.serving.ttft_parts)
    np.testing.assert_allclose(named, figure("serving.ttft"), rtol=1e-12)
    for late, early in (
        ("ttft_p95", "ttft_p50"),
        ("e2e_p95", "e2e_p50"),
        ("e2e", "ttft"),
        ("e2e_p50", "ttft_p50"),
        ("e2e_p95", "ttft_p95"),
    ):
        assert (figure(f"serving.{late}") >= figure(f"serving.{early}") * (1 - tiny)).all(), late


@pytest.mark.exhaustive
@settings(max_examples=12)
@given(st.data())
def test_the_same_holds_on_the_way_users_take(library: Library, make: Make, data: st.DataObject) -> None:
    """Scenario to results.

    Of a plan whose degrees divide no check fails but those that say how it is too large.
    """
    draw = data.draw
    tp, pp = draw(st.sampled_from([plan for plan in PLANS if plan[0] in (1, 2, 4, 8)]))
    model = draw(
        st.sampled_from(
            [
                "llama-3.1-8b",
                "qwen3-32b",
                "mistral-7b",
                "llama-2-70b",
                "mixtral-8x7b",
                "deepseek-v3.2",
                "jamba-v0.1",
                "kimi-linear-48b-a3b",
            ]
        )
    )
    by_vendor = {vendor: item.id for item in reversed(library.frameworks) for vendor in item.vendors}
    chip = draw(st.sampled_from([item.id for item in library.accelerators if item.vendor in by_vendor]))
    groups = draw(st.sampled_from([1, 1, 2]))
    context = draw(st.sampled_from([1, 1, 2])) if model not in ("jamba-v0.1", "kimi-linear-48b-a3b") else 1
    stage = tp * groups * context
    sparse = model in ("mixtral-8x7b", "deepseek-v3.2", "jamba-v0.1", "kimi-linear-48b-a3b")
    made = make(
        model=model,
        tp=tp,
        pp=pp,
        accelerator=chip,
        framework=by_vendor[library.accelerator(chip).vendor],
        framework_support="own build",
        dp=draw(st.integers(1, 64)),
        attention_dp=groups,
        cp=context,
        ep=draw(st.sampled_from([ranks for ranks in (1, 2, 4, 8) if stage % ranks == 0])) if sparse else 1,
        weights_dtype=draw(st.sampled_from(dtypes(library, "weights"))),
        kv_dtype=draw(st.sampled_from(dtypes(library, "kv"))),
        input_tokens=draw(st.integers(2, 2_000)),
        output_tokens=draw(st.integers(1, 2_000)),
        concurrency=draw(st.integers(1, 500)),
        batching=draw(st.sampled_from(["continuous", "static"])),
        sequence_parallel=draw(st.sampled_from(["on", "off"])),
    )
    results = made.results()
    home = library.usual_system(chip)
    joined = (home.accelerators.value or 1) * max(1, (home.domains.value if home.domains else None) or 1)
    wanted = {"REPLICA_EXCEEDS_SYSTEM"} if stage * pp > joined else set()
    codes = {error["code"] for error in results["checks"]["errors"]}
    if stage * pp > (home.accelerators.value or 1) and home.domains is None:
        wanted |= codes & {"NO_LINK_BETWEEN_RANKS"}
    assert codes - {"MEMORY_EXCEEDED"} == wanted
    assert results["fits"] == ("MEMORY_EXCEEDED" not in codes)
    assert results["feasibility"] == (
        "invalid" if wanted else "fits" if results["fits"] else "insufficient_memory"
    )
    first, token, total = (made[f"serving.{name}"].value for name in ("ttft", "tpot", "e2e"))
    assert total == pytest.approx(first + (results["output_tokens"] - 1) * token, rel=1e-12)
    assert results["e2e_s"] == (total if results["feasibility"] == "fits" else None)
    for phase in ("prefill", "decode"):
        assert sum(results["split"][phase].values()) == pytest.approx(1, rel=1e-12)


# --- which way figures move ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    few_of(["mistral-7b", "deepseek-v3.2", "nemotron-3-nano"], "deepseek-v3.2"),
)
@pytest.mark.parametrize(
    "changed",
    [
        "hardware.memory_bandwidth",
        "hardware.peak_bf16",
        "hardware.link_bandwidth",
        "hardware.scale_out_bandwidth",
    ],
)
def test_better_hardware_never_makes_anything_slower(
    library: Library, make: Make, model: str, changed: str
) -> None:
    """Bandwidth, peak, link and network, times 1.5, all else equal.

    Only the first token may come later, as requests that decode faster come back sooner: where the token
    budget is what limits, or by a little where prompts then take a larger share of the time. End to end
    nothing is slower.
    """
    made = make(model=model, tp=1)
    inputs = anything(library, made, seed=5)
    inputs["inputs.activation_dtype"] = np.full(CASES, "bf16")
    before = made.program.sweep(inputs)
    own = made.figure(changed)
    unit = 1e12 if "peak" in changed else 1e9
    after = made.program.sweep(inputs | {f"{changed}.override": before[own] / unit * 1.5})
    np.testing.assert_allclose(after[own], before[own] * 1.5, rtol=1e-12)
    full = after[made.figure("serving.saturation")] > after[made.figure("serving.base")]
    share = made.figure("serving.prefill_share")
    assert full.mean() < 0.2
    for name in (
        "serving.tpot",
        "serving.e2e",
        "serving.base",
        "serving.ttft",
        "prefill.time",
        "decode.time",
        "floor.ttft",
        "floor.tpot",
    ):
        figure = made.figure(name)
        if name == "serving.ttft":
            more = after[share] > before[share]
            faster = after[figure] <= before[figure] * (1 + np.where(more, 0.02, 1e-12))
            assert (after[figure] <= before[figure] * (1 + 1e-12)).mean() > 0.95
        else:
            faster = after[figure] <= before[figure] * (1 + 1e-12)
        assert (faster | full if name == "serving.ttft" else faster).all(), name
    moved = made.figure(
        "decode.p2p.time"
        if "link" in changed or "scale" in changed
        else "decode.time"
        if "bandwidth" in changed
        else "prefill.time"
    )
    assert (after[moved] < before[moved] * 0.999).any()


@pytest.mark.parametrize(
    "model",
    few_of(["mistral-7b", "mixtral-8x7b", "kimi-linear-48b-a3b"], "mixtral-8x7b"),
)
def test_more_requests_never_serve_fewer_tokens_while_memory_holds_them(
    library: Library, make: Make, model: str
) -> None:
    """Twice the concurrency: a longer gap between tokens, no lower throughput; longer prompts: the reverse.
    At full speed: a static batch at a hundredth of it was seen to lose 2e-5, as it waits for all requests.
    Of plans that can be, and while no cache lies on the host. Outputs are equally long, as a static batch
    waits for the longest, which is longer in a larger one. Prompts are not held back to fill a step: there
    more and longer ones wait less.

    Where the token budget is what limits, requests pass at the rate of full steps; those grow with what
    decodes beside, and near that rate the ends of a benchmark weigh a little less with more requests.
    """
    made = make(model=model, tp=1)
    inputs = anything(library, made, seed=11, count=6000)
    inputs["inputs.concurrency"] = inputs["inputs.concurrency"] * inputs["inputs.dp"]
    none = ("receive_interval", "batch_wait_steps", "output_spread")
    inputs |= {f"inputs.{name}": np.zeros(6000) for name in none}
    inputs |= {f"inputs.{name}": np.ones(6000) for name in ("compute_speed", "network_speed")}
    tpot, ttft, steady, output, capacity, host, invalid, base, limit, served, share, places = (
        made.figure(name)
        for name in (
            "serving.tpot",
            "serving.ttft",
            "serving.ttft_steady",
            "serving.output_tokens_per_s",
            "memory.capacity_sequences",
            "memory.host_kv",
            "checks.invalid",
            "serving.base",
            "serving.saturation",
            "serving.saturated",
            "serving.prompts_per_token",
            "serving.prompts_per_step",
        )
    )
    requests = made.figure("memory.requests")
    program = Program(
        [tpot, ttft, steady, output, capacity, host, invalid, base, limit, served, share, places, requests]
    )
    before = program.sweep(inputs)

    def holds(values: dict[Any, np.ndarray]) -> np.ndarray:
        held: np.ndarray = (
            (values[requests] <= values[capacity]) & (values[host] == 0) & (before[invalid] == 0)
        )
        assert held.sum() > 15
        return held

    tiny = 1e-12
    after = program.sweep(inputs | {"inputs.concurrency": inputs["inputs.concurrency"] * 2})
    held = holds(after)
    full = after[limit] > after[base]
    assert (full & held).sum() < 0.2 * held.sum()
    assert (after[output] >= before[output] * (1 - tiny))[held & ~full].all()
    assert (after[output] * after[served] >= before[output] * before[served] * 0.998)[held & full].all()
    assert (after[tpot] >= before[tpot] * (1 - tiny))[held].all()
    assert (after[ttft] >= before[ttft] * (1 - tiny))[held].all()
    longer = program.sweep(inputs | {"inputs.input_tokens": inputs["inputs.input_tokens"] * 2})
    held = holds(longer) & (before[share] <= before[places])
    long = (
        inputs["inputs.input_tokens"] > 512
    )  # of shorter ones a first wave shares what ours counts for each: weights read, launches
    assert (held & long).sum() > 1
    assert (longer[steady] >= before[steady] * (1 - tiny))[held].all()
    assert (longer[ttft] >= before[ttft] * (1 - tiny))[held & long].all()
    assert (longer[output] <= before[output] * (1 + tiny))[held & long].all()
    assert (longer[capacity] <= before[capacity] * (1 + tiny)).all()


def test_narrower_weights_and_caches_take_less_memory(make: Make) -> None:
    """In proportion to their bits."""
    wide, narrow = make(), make(weights_dtype="fp8", kv_dtype="fp8")
    one, other = wide.values(), narrow.values()
    assert (
        other[narrow.figure("memory.kv_bytes_per_token")] * 2 == one[wide.figure("memory.kv_bytes_per_token")]
    )
    vectors = one[wide.figure("memory.weights.vectors")]
    assert (
        vectors == other[narrow.figure("memory.weights.vectors")] == one[wide.figure("tensors.vectors")] * 2
    )
    layer = "memory.layer_weights.attention.ffn"
    assert (other[narrow.figure(layer)] - vectors) * 2 == one[wide.figure(layer)] - vectors


# --- published worked examples ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "step_ms", "tokens_per_s"),
    [
        (1, "4.98", "200.61"),
        (8, "12.13", "659.30"),
        (16, "20.30", "787.99"),
        (32, "36.65", "873.21"),
        (64, "69.33", "923.13"),
        (240, "249.09", "963.53"),
    ],
)
def test_the_scaling_book_is_reproduced_to_the_printed_digit(
    batch: int, step_ms: str, tokens_per_s: str
) -> None:
    """LLaMA-2-13B in bf16 on eight TPU v5e at 6.56e12 B/s.

    26 GB of weights and 6.7 GB of KV cache per sequence.
    """
    layers, hidden, heads, head_dim, ffn, vocabulary, context = 40, 5120, 40, 128, 13_824, 32_000, 8192
    attention, ffn_weights = layers * hidden * head_dim * 2 * 2 * heads, layers * 3 * hidden * ffn
    weights = attention + ffn_weights + hidden * vocabulary
    channels = context * 2 * heads * head_dim * layers

    def given_(name: str, unit: str, value: float) -> Input:
        return Input(name, name, unit, value)

    def held(name: str, parameters: int) -> Weights:
        return Weights(name, given_(name, "parameter", parameters), weight_bytes)

    # The book rounds to 26 and 6.7 GB; bytes per value carry the rounding, so that the floor's own sums give
    # these totals.
    weight_bytes = given_("weight_bytes", "B", 26e9 / weights)
    assert weight_bytes.value == pytest.approx(2, rel=0.02)
    core = Core(
        "attention",
        given_("layers", "1", layers),
        given_("query", "1", 2 * heads * head_dim),
        given_("kept", "1", 2 * heads * head_dim),
        given_("window", "token/request", 0),
    )
    chips = Machine(
        given_("peak", "FLOP/s", 197e12), given_("bandwidth", "B/s", 6.56e12 / 8), given_("ranks", "rank", 8)
    )
    lowest = floors(
        Dimensions(
            weights=(held("attention", attention), held("ffn", ffn_weights)),
            head=held("head", hidden * vocabulary),
            cores=(core,),
            kv_bytes=given_("kv_bytes", "B/token", 6.7e9 / channels),
            prefill=chips,
            decode=chips,
            prompts=given_("prompts", "request", 1),
            prompt_tokens=given_("prompt_tokens", "token/request", context),
            input_tokens=given_("input_tokens", "token/request", context),
            output_tokens=given_("output_tokens", "token/request", 0),
            decode_requests=given_("decode_requests", "request", batch),
        )
    )
    step = float(Program([lowest.tpot]).run({})[lowest.tpot])
    assert f"{step * 1000:.2f}" == step_ms
    assert f"{batch / step:.2f}" == tokens_per_s


@pytest.mark.parametrize(
    ("framework", "batching"), [("vllm", "static"), ("trtllm", "static"), ("trtllm", "continuous")]
)
def test_a_published_70b_estimate_lies_where_others_put_it(make: Make, framework: str, batching: str) -> None:
    """Llama-3.1-70B bf16, eight H100, TP8, batch 16, 2048/256.

    Others say 7.9 ms at the roofline and up to 15.6 ms.
    """
    made = make(model="llama-3.1-70b", framework=framework, batching=batching)
    values = made.values()
    floor, tpot = values[made.figure("floor.tpot")], values[made.figure("serving.tpot")]
    assert floor <= 0.0079
    assert 0.0079 <= tpot <= 0.0156


def test_the_floor_of_a_70b_model_is_plain_arithmetic(make: Make) -> None:
    """Weights without the input embedding and the KV cache at the mean length, over eight times 3.35 TB/s."""
    made = make(model="llama-3.1-70b", batching="static")
    values = made.values()
    norms = (2 * 80 + 1) * 8192
    weights = 2 * (69_503_033_344 - norms)
    cache = 16 * (2048 + 128) * 327_680
    assert values[made.figure("floor.tpot")] == pytest.approx((weights + cache) / (8 * 3.35e12), rel=1e-12)
    flops = 16 * 2048 * 2 * (69_503_033_344 - norms - 128_256 * 8192) + 16 * 2 * 2048 * 2048 * 8192 * 80
    peak = values[made.figure("hardware.peak_bf16")]
    assert peak == pytest.approx(989e12, rel=0.01)
    assert values[made.figure("floor.ttft")] == pytest.approx(flops / (8 * peak), rel=1e-12)


def test_a_floor_is_a_figure_with_a_name() -> None:
    """Everything a floor is made of stands on the sheet, so that it can be followed like any other number."""
    given_ = [Input(f"given.{number}", f"Given {number}", "1", 1.0) for number in range(25)]
    spare = iter(given_)
    plain: dict[str, Any] = {
        field: Machine(next(spare), next(spare), next(spare))
        if field in ("prefill", "decode")
        else next(spare)
        for field in Dimensions.__dataclass_fields__
        if field not in ("weights", "head", "cores")
    }
    held = [Weights(name, next(spare), next(spare)) for name in ("attention", "experts", "head")]
    cores = (
        Core("full", next(spare), next(spare), next(spare), None),
        Core("sliding", next(spare), None, next(spare), next(spare)),
    )
    found = floors(Dimensions(weights=tuple(held[:2]), head=held[2], cores=cores, **plain))
    standing: set[Any] = {*found.section.figures(), *given_}
    used: set[Any] = set()
    for quantity in found.section.figures():
        if isinstance(quantity, Quantity):
            used |= set(precedents(quantity))
    assert used <= standing
    assert used >= set(given_), "a dimension that no floor looks at"


def test_a_floor_counts_what_lies_in_reach(make: Make) -> None:
    """Layer by layer.

    Sliding layers to their window, selecting ones to what is selected, an indexer to the whole context.
    """
    made = make(model="deepseek-v3.2", input_tokens=8192, batching="static", accelerator="b200-sxm")
    at = {figure.id: value for figure, value in made.values().items() if isinstance(figure, Quantity)}
    length, step = 8192 + 128, 16 * 2  # mean length; requests x bytes of a cached value
    assert at["floor.kv_bytes.attention"] == step * 2048 * 576 * 61
    assert at["floor.kv_bytes.indexer"] == pytest.approx(16 * length * 132 * 61, rel=1e-12)
    assert at["floor.attention_flops.attention"] == 16 * 8192 * 2048 * 128 * (192 + 128) * 61
    # Of the routed experts one token's share counts, of everything else all.
    experts = 58 * 8 * 3 * 7168 * 2048
    assert at["floor.weights.experts_up"] + at["floor.weights.experts_down"] == experts
    recurrent = make(model="mamba-codestral-7b", input_tokens=8192, batching="static")
    assert not [name for name in recurrent.equations.figures if name.startswith("floor.kv_bytes")]
