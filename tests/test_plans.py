"""Plans: which are possible and what is said of those that are not.

Also what all ranks together must hold, and the measured systems.
"""

from __future__ import annotations

import csv
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product, starmap
from math import ceil, isfinite, prod
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from live import few

from mantile.equations.placement import Placement
from mantile.estimates import results
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Named, Quantity
from mantile.ir.counts import tensor_list
from mantile.ir.modules import GroupedMatMul, Indexer, MatMul
from mantile.library.scenario import parse_scenario
from mantile.measured.load import load_measurements
from mantile.measured.match import match_runs
from mantile.workbook.layout import lay_out

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 8,
}


def ask(**fields: Any) -> Estimate:
    """An 8B model on one H100 unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


def override(name: str, value: float) -> dict[str, Any]:
    """Fields with one figure replaced."""
    return {"overrides": [{"id": name, "value": value, "reason": "test"}]}


def raised(made: Estimate, values: dict[Any, Any] | None = None) -> tuple[str, set[str], set[str]]:
    """Verdict, error codes and alert codes.

    How far times lie from their floors is calibration and left out.
    """
    values = made.values() if values is None else values
    errors, alerts = (
        [check["code"] for check in results.raised(made.equations, values, errors=kind)]
        for kind in (True, False)
    )
    assert len(errors) == len(set(errors)) and len(alerts) == len(set(alerts))
    return (
        str(values[made.equations.rows["checks.feasibility"]]),
        set(errors),
        {code for code in alerts if not code.endswith("_FAR_FROM_FLOOR")},
    )


# --- what is said of invalid and odd plans ------------------------------------------------------------------

FITS, OFFLOADED, TOO_BIG, INVALID = "fits", "fits_with_offload", "insufficient_memory", "invalid"
R1 = {"model": "deepseek-r1", "accelerator": "gb200-nvl72"}
MACS = {"accelerator": "m3-ultra", "framework": "mlx"}
QWEN = {"model": "qwen3-235b-a22b", "accelerator": "gb200-nvl72"}
FFN, HEADS, KV_HEADS, KV_SUM = (
    "FFN_NOT_DIVISIBLE",
    "HEADS_NOT_DIVISIBLE",
    "KV_HEADS_NOT_DIVISIBLE",
    "KV_DIFFERS",
)
CROSSES = "STAGE_CROSSES_DOMAINS REPLICA_CROSSES_DOMAINS"  # the ranks of a stage, and so those of a replica

PLANS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # what: fields, verdict, errors, alerts. Llama-3.1-8B: 32 heads, 8 KV heads, 14,336 = 2048 x 7 columns, 32
    # layers.
    "plain": ({}, FITS, "", ""),
    "all of a domain": ({"tp": 8}, FITS, "", ""),
    "heads, KV heads and columns by 3; 3 x 3 KV heads are more than 8": (
        {"tp": 3},
        INVALID,
        f"{HEADS} {KV_HEADS} {FFN} {KV_SUM}",
        "",
    ),
    "7 divides the columns of 8B but not its heads": ({"tp": 7}, INVALID, f"{HEADS} {KV_HEADS} {KV_SUM}", ""),
    "28 heads by 7; 4 KV heads and 18,944 columns not": (
        {"model": "qwen2.5-7b", "tp": 7},
        INVALID,
        f"{KV_HEADS} {FFN}",
        "KV_COPIED",
    ),
    "28 heads by 8; 4 KV heads twice": ({"model": "qwen2.5-7b", "tp": 8}, INVALID, HEADS, "KV_COPIED"),
    "8 KV heads on 16 ranks of one domain": ({"tp": 16, "accelerator": "gb200-nvl72"}, FITS, "", "KV_COPIED"),
    "32 heads on 64 ranks": ({"tp": 64, "accelerator": "gb200-nvl72"}, INVALID, HEADS, "KV_COPIED"),
    "latents are no KV heads: 128 heads and 2,048 columns by 6": (
        R1 | {"tp": 6},
        INVALID,
        f"{HEADS} {FFN}",
        "",
    ),
    "columns over 5 groups": ({"attention_dp": 5}, INVALID, FFN, ""),
    "columns over 2 x 4 ranks": ({"tp": 2, "attention_dp": 4}, FITS, "", ""),
    "columns of experts over what EP leaves: 2,048 by 3": (
        R1 | {"attention_dp": 12, "ep": 4, "concurrency": 12},
        INVALID,
        FFN,
        "",
    ),
    "two attention groups share a prompt": ({"cp": 2}, FITS, "", ""),
    # experts
    "EP in a dense model": ({"tp": 2, "ep": 2}, INVALID, "EP_WITHOUT_EXPERTS", ""),
    "EP in a dense model, on one rank": ({"ep": 2}, INVALID, "EP_WITHOUT_EXPERTS EP_NOT_DIVISOR", ""),
    "EP does not divide the stage, nor 128 experts": (
        QWEN | {"tp": 4, "ep": 3},
        INVALID,
        "EP_NOT_DIVISOR",
        "EXPERTS_UNEVEN",
    ),
    "EP is more than the stage": (QWEN | {"tp": 4, "ep": 8}, INVALID, "EP_NOT_DIVISOR", ""),
    "more groups than 128 experts": (
        QWEN | {"tp": 4, "attention_dp": 64, "ep": 256, "concurrency": 64},
        INVALID,
        "EP_EXCEEDS_EXPERTS",
        f"EXPERTS_UNEVEN {CROSSES}",
    ),
    "256 experts over a rack of 72": (
        R1 | {"attention_dp": 72, "ep": 72, "concurrency": 720},
        FITS,
        "",
        "EXPERTS_UNEVEN",
    ),
    "experts over ranks of TP": (R1 | {"tp": 8, "ep": 8}, FITS, "", ""),
    "experts over attention groups": (R1 | {"attention_dp": 8, "ep": 8}, FITS, "", ""),
    "experts over two nodes": (
        {"model": "gpt-oss-120b", "tp": 8, "attention_dp": 2, "ep": 16},
        FITS,
        "",
        CROSSES,
    ),
    "45 x 64 columns of an expert by 64; 64 heads by 64": (
        {"model": "gpt-oss-120b", "tp": 64, "accelerator": "gb200-nvl72"},
        FITS,
        "",
        "KV_COPIED",
    ),
    "45 x 64 columns of an expert by 128": (
        {
            "model": "gpt-oss-120b",
            "tp": 8,
            "attention_dp": 16,
            "accelerator": "gb200-nvl72",
            "concurrency": 16,
        },
        INVALID,
        FFN,
        CROSSES,
    ),
    # stages
    "layers by 5": ({"pp": 5}, FITS, "", "LAYERS_UNEVEN"),
    "52 layers of three kinds by 8": ({"model": "nemotron-3-nano", "pp": 8}, FITS, "", "LAYERS_UNEVEN"),
    "more stages than layers": (
        {"pp": 8, **override("model.layers", 4)},
        INVALID,
        "PP_EXCEEDS_LAYERS",
        "LAYERS_UNEVEN",
    ),
    "stages on two nodes": ({"tp": 8, "pp": 2}, FITS, "", "REPLICA_CROSSES_DOMAINS"),
    "as many replicas as one likes": ({"tp": 8, "dp": 100, "concurrency": 100}, FITS, "", ""),
    # systems
    "TP over two nodes": ({"tp": 16}, FITS, "", f"KV_COPIED TP_CROSSES_DOMAINS {CROSSES}"),
    "more than 64 nodes of 8 can be": (
        {"tp": 8, "attention_dp": 16, "pp": 8, "concurrency": 16},
        INVALID,
        "REPLICA_EXCEEDS_SYSTEM",
        CROSSES,
    ),
    "more cards than a workstation without a network holds": (
        {"accelerator": "rtx-4090", "tp": 2, "pp": 8},
        INVALID,
        "REPLICA_EXCEEDS_SYSTEM NO_LINK_BETWEEN_RANKS",
        "REPLICA_CROSSES_DOMAINS",
    ),
    "a system whose domain somebody made smaller": (
        {"tp": 8, "accelerator": "rtx-4090", **override("hardware.accelerators", 4)},
        INVALID,
        "REPLICA_EXCEEDS_SYSTEM NO_LINK_BETWEEN_RANKS",
        f"TP_CROSSES_DOMAINS {CROSSES}",
    ),
    "Macs on a switch": (MACS | {"tp": 2}, FITS, "", f"TP_CROSSES_DOMAINS {CROSSES} PRICE_UNKNOWN"),
    "experts on Macs on a switch": (
        MACS | {"model": "gpt-oss-120b", "attention_dp": 2, "ep": 2},
        FITS,
        "",
        f"{CROSSES} PRICE_UNKNOWN",
    ),
    "a program that does not run there": (
        {"accelerator": "m3-ultra", "framework": "vllm"},
        INVALID,
        "FRAMEWORK_UNSUPPORTED",
        "PRICE_UNKNOWN",
    ),
    "one card too many for a bridge": (
        {"accelerator": "h100-nvl", "system": "h100-nvl-pair", "tp": 4},
        INVALID,
        "REPLICA_EXCEEDS_SYSTEM NO_LINK_BETWEEN_RANKS",
        f"TP_CROSSES_DOMAINS {CROSSES}",
    ),
    "the system of another accelerator": ({"system": "hgx-b200"}, INVALID, "SYSTEM_MISMATCH", ""),
    "a whole pod": (
        {"accelerator": "tpu-v5p", "tp": 8, "attention_dp": 128, "concurrency": 128},
        FITS,
        "",
        "PRICE_OLD POWER_UNKNOWN",
    ),
    # data types
    "fp8 on a chip without": (
        {"accelerator": "a100-80gb-sxm", "weights_dtype": "fp8", "activation_dtype": "fp8"},
        FITS,
        "",
        "NO_NATIVE_FORMAT",
    ),
    "fp8 only stored": ({"accelerator": "a100-80gb-sxm", "weights_dtype": "fp8"}, FITS, "", ""),
    "bf16 on a chip that has fp16 only": (
        {"accelerator": "t4", "tp": 2},
        FITS,
        "",
        "NO_NATIVE_FORMAT PRICE_OLD",
    ),
    "fp16 on it": ({"accelerator": "t4", "tp": 2, "weights_dtype": "fp16"}, FITS, "", "PRICE_OLD"),
    "fp16 on a chip that has bf16 only": (
        {"accelerator": "tpu-v5p", "weights_dtype": "fp16"},
        FITS,
        "",
        "PRICE_OLD POWER_UNKNOWN",
    ),
    "int8 on a chip without": (
        MACS | {"framework": "exo", "weights_dtype": "int8"},
        FITS,
        "",
        "PRICE_UNKNOWN",
    ),
    "nvfp4 on Hopper": (
        {"weights_dtype": "nvfp4", "activation_dtype": "nvfp4"},
        FITS,
        "",
        "NO_NATIVE_FORMAT",
    ),
    "nvfp4 on Blackwell": (
        {"accelerator": "b200-sxm", "weights_dtype": "nvfp4", "activation_dtype": "nvfp4"},
        FITS,
        "",
        "",
    ),
    "fp8 weights, wider activations": (
        {"weights_dtype": "fp8", "activation_dtype": "bf16"},
        FITS,
        "",
        "WEIGHT_ONLY_FORMAT",
    ),
    # memory
    "405B in 8 x 80 GB": ({"model": "llama-3.1-405b", "tp": 8}, TOO_BIG, "MEMORY_EXCEEDED", "KV_QUEUE"),
    "70B in 80 GB": ({"model": "llama-3.3-70b"}, TOO_BIG, "MEMORY_EXCEEDED", "KV_QUEUE"),
    "the same with 100 GB on the host": (
        {"model": "llama-3.3-70b", "offload_weights": 100},
        OFFLOADED,
        "",
        "OFFLOADED",
    ),
    "the same with 10 GB on the host": (
        {"model": "llama-3.3-70b", "offload_weights": 10},
        TOO_BIG,
        "MEMORY_EXCEEDED",
        "KV_QUEUE OFFLOADED",
    ),
    "more requests than the cache holds": ({"concurrency": 2000}, FITS, "", "KV_QUEUE"),
    "all of them with a cache on the host": (
        {"concurrency": 1000, "offload_kv": 200},
        OFFLOADED,
        "",
        "OFFLOADED",
    ),
    "a cache on the host that nobody needs": ({"offload_kv": 200}, FITS, "", ""),
    "memory without a host": (
        MACS | {"offload_weights": 5},
        INVALID,
        "OFFLOAD_WITHOUT_HOST",
        "OFFLOADED PRICE_UNKNOWN",
    ),
    "a cache on the host of an SoC, not a byte of it": (
        MACS | {"offload_kv": 5},
        INVALID,
        "OFFLOAD_WITHOUT_HOST",
        "PRICE_UNKNOWN",
    ),
    "a parking place that such a SoC has not": (
        MACS | {"kv_swap": 5},
        INVALID,
        "OFFLOAD_WITHOUT_HOST",
        "PRICE_UNKNOWN",
    ),
    "a parking place nothing goes to": ({"kv_swap": 200}, FITS, "", ""),
    # lengths, groups and requests
    "beyond what the model has seen": (
        {"model": "llama-2-7b", "input_tokens": 3997},
        INVALID,
        "CONTEXT_EXCEEDS_MODEL",
        "",
    ),
    "all that the model has seen": ({"model": "llama-2-7b", "input_tokens": 3996}, FITS, "", ""),
    "a state cannot be cut": ({"model": "nemotron-3-nano", "cp": 2}, INVALID, "CP_WITH_STATE", ""),
    "16 ranks share 8 tokens": (
        {"cp": 16, "input_tokens": 8, "accelerator": "gb200-nvl72"},
        INVALID,
        "CP_EXCEEDS_INPUT",
        "",
    ),
    "images longer than the prompt": (
        {"model": "qwen3-vl-8b", "image_tokens": 1001},
        INVALID,
        "IMAGES_EXCEED_INPUT",
        "",
    ),
    "images as long as the prompt": ({"model": "qwen3-vl-8b", "image_tokens": 1000}, FITS, "", ""),
    "sequence parallel on one rank": ({"sequence_parallel": "on"}, FITS, "", "SP_WITHOUT_TP"),
    "sequence parallel on two": ({"sequence_parallel": "on", "tp": 2}, FITS, "", ""),
    "16 replicas for 8 requests": ({"dp": 16}, FITS, "", "MORE_GROUPS_THAN_REQUESTS"),
    "16 groups for 8 requests": ({"dp": 2, "attention_dp": 8}, FITS, "", "MORE_GROUPS_THAN_REQUESTS"),
    "8 groups for 8 requests": ({"attention_dp": 8}, FITS, "", ""),
    "a price nobody states": (
        {"accelerator": "a100-80gb-sxm", "price_basis": "rental"},
        FITS,
        "",
        "PRICE_UNKNOWN",
    ),
    # prefill and decode apart
    "two kinds of workers": ({"decode": {"accelerator": "h200-sxm"}}, FITS, "", ""),
    "static and apart": ({"decode": {}, "batching": "static"}, INVALID, "STATIC_DISAGGREGATED", ""),
    "workers that cannot reach one another": (
        {"accelerator": "v100-sxm2-32gb", "decode": {"accelerator": "rtx-4090"}},
        INVALID,
        "NO_LINK_BETWEEN_WORKERS",
        "NO_NATIVE_FORMAT",
    ),
    "decode workers out of reach": (
        {"decode": {"accelerator": "epyc-9654"}},
        INVALID,
        "NO_LINK_BETWEEN_WORKERS",
        "PRICE_UNKNOWN",
    ),
    "the same accelerators with two plans": (
        {"serving": "aggregated", "decode": {"tp": 2}},
        INVALID,
        "PHASES_DIFFER",
        "",
    ),
    "the same accelerators with one plan": ({"serving": "aggregated", "decode": {}}, FITS, "", ""),
    "one workstation, both phases": (
        {"accelerator": "rtx-4090", "serving": "aggregated", "decode": {}},
        FITS,
        "",
        "",
    ),
    "decode heads by 3": (
        {"decode": {"tp": 3}},
        INVALID,
        f"DECODE_{HEADS} DECODE_{KV_HEADS} DECODE_{FFN} {KV_SUM}",
        "",
    ),
    "prefill heads by 3": ({"tp": 3, "decode": {"tp": 1}}, INVALID, f"{HEADS} {KV_HEADS} {FFN}", ""),
    "decode workers too small": (
        {"model": "llama-3.3-70b", "tp": 4, "decode": {"tp": 1}},
        TOO_BIG,
        "DECODE_MEMORY_EXCEEDED",
        "KV_QUEUE",
    ),
    "decode system of another chip": (
        {"decode": {"accelerator": "h200-sxm", "system": "hgx-h100"}},
        INVALID,
        "DECODE_SYSTEM_MISMATCH",
        "",
    ),
    "KV heads copied where prompts are, not where decode is": (
        {"tp": 16, "accelerator": "gb200-nvl72", "decode": {"tp": 8}},
        FITS,
        "",
        "KV_COPIED",
    ),
    "KV heads copied where decode is": (
        {"tp": 8, "accelerator": "gb200-nvl72", "decode": {"tp": 16}},
        FITS,
        "",
        "DECODE_KV_COPIED",
    ),
    "more decode groups than requests": (
        {"decode": {"dp": 16}},
        FITS,
        "",
        "DECODE_MORE_GROUPS_THAN_REQUESTS",
    ),
    # several at once
    "all that can be wrong with a dense model": (
        {
            "tp": 3,
            "pp": 8,
            "ep": 2,
            "cp": 16,
            "system": "hgx-b200",
            "input_tokens": 8,
            "output_tokens": 200_000,
            **override("model.layers", 4),
        },
        INVALID,
        (
            f"{HEADS} {KV_HEADS} {FFN} {KV_SUM} EP_WITHOUT_EXPERTS PP_EXCEEDS_LAYERS SYSTEM_MISMATCH "
            "CP_EXCEEDS_INPUT CONTEXT_EXCEEDS_MODEL"
        ),
        f"LAYERS_UNEVEN {CROSSES}",
    ),
    "both sides wrong": (
        {
            "tp": 3,
            "batching": "static",
            "accelerator": "rtx-4090",
            "framework": "exo",
            "decode": {"ep": 2, "accelerator": "m3-ultra"},
            "offload_weights": 1,
        },
        INVALID,
        (
            f"{HEADS} {KV_HEADS} {FFN} DECODE_{HEADS} DECODE_{KV_HEADS} DECODE_{FFN} {KV_SUM} "
            "DECODE_EP_WITHOUT_EXPERTS DECODE_EP_NOT_DIVISOR DECODE_OFFLOAD_WITHOUT_HOST "
            "DECODE_FRAMEWORK_PARALLELISM STATIC_DISAGGREGATED"
        ),
        (
            "OFFLOADED DECODE_OFFLOADED DECODE_TP_CROSSES_DOMAINS DECODE_STAGE_CROSSES_DOMAINS "
            "DECODE_REPLICA_CROSSES_DOMAINS PRICE_UNKNOWN"
        ),
    ),
}


@pytest.mark.parametrize("what", PLANS)
def test_a_plan_is_judged_by_all_that_is_wrong_with_it(what: str) -> None:
    """Every code that holds and no other, worked out by hand. A plan that cannot be is never said to fit."""
    fields, verdict, errors, alerts = PLANS[what]
    assert raised(ask(**fields)) == (verdict, set(errors.split()), set(alerts.split()))


def test_a_full_cache_fits() -> None:
    """Where the cache limits the batch, memory is used to the last byte and no further.

    Whatever the lengths, with and without a host.
    """
    made = ask(model="deepseek-r1", accelerator="b200-sxm", attention_dp=8, ep=8, concurrency=50_000)
    held = made.equations.prefill_workers.rows
    program = Program(
        [
            held["memory.fits"],
            held["memory.used"],
            held["memory.usable"],
            held["memory.batch"],
            held["memory.requests"],
        ]
    )
    for tokens in range(1000, 50_000, 463):
        for host in (0, 20):
            values = program.run(made.inputs(0) | {"inputs.input_tokens": tokens, "inputs.offload_kv": host})
            assert values[held["memory.batch"]] < values[held["memory.requests"]]
            assert values[held["memory.used"]] == pytest.approx(values[held["memory.usable"]], rel=1e-9), (
                tokens,
                host,
            )
            assert values[held["memory.fits"]] == 1, (tokens, host)


WORKLOADS: dict[str, tuple[Any, ...]] = {
    "batching": ("continuous", "static"),
    "sequence_parallel": ("off", "on"),
    "microbatches": (0, 1, 4),
    "input_tokens": (1, 1000, 60_000),
    "output_tokens": (1, 100, 4000),
    "concurrency": (1, 16, 5000),
    "weights_dtype": ("bf16", "fp8", "nvfp4", "int4"),
    "kv_dtype": ("bf16", "fp8"),
    "offload_weights": (0, 20),
    "offload_kv": (0, 20),
    "kv_swap": (0, 20),
}


def _signed(figure: Quantity) -> bool:
    """Whether it is half of what one time exceeds another by, which may be less: a step to a wait."""
    return figure.label.startswith("Half of ")


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "apart"), [("gpt-oss-120b", True), ("nemotron-3-nano", False)])
def test_a_plan_that_is_possible_has_a_number_in_every_cell(name: str, apart: bool) -> None:
    """Any system, degrees for which it has accelerators, any workload: no error value, no negative time, and
    no error but lacking memory, unless the plan is said to be invalid.
    """
    made, dice = ask(model=name, **({"decode": {}} if apart else {})), random.Random(11)
    wrong: dict[str, object] = {}
    judged = 0
    for _ in range(300 if apart else 120):  # most pairs of workers cannot be
        asked: dict[str, Any] = {field: dice.choice(choices) for field, choices in WORKLOADS.items()}
        for prefix in ("", "decode_") if apart else ("",):
            system = dice.choice([system for system in made.library.systems if system.domains or not apart])
            left = min(
                1024,
                int(system.accelerators.value or 1) * int((system.domains and system.domains.value) or 1),
            )
            plan = {}
            for field in dice.sample(("tp", "pp", "attention_dp", "cp"), 4):
                plan[field] = dice.choice(
                    [degree for degree in (1, 2, 4, 8, 16) if degree <= min(left, 8 if field == "pp" else 16)]
                )
                left //= plan[field]
            stage = plan["tp"] * plan["attention_dp"] * plan["cp"]
            plan["ep"] = (
                dice.choice([degree for degree in (1, 2, 4, 8, 16) if stage % degree == 0])
                if "experts" in made.equations.ir.facts
                else 1
            )
            asked |= {
                f"{prefix}{field}": value
                for field, value in ({"accelerator": system.accelerator, "system": system.id} | plan).items()
            }
        values = made.program.run(
            made.inputs(0) | {f"inputs.{field}": value for field, value in asked.items()}
        )
        verdict, errors, _ = raised(made, values)
        if verdict == INVALID:
            continue
        judged += 1
        lacking = {code for code in errors if code.endswith("MEMORY_EXCEEDED")}
        problems = [*(errors - lacking), *(["verdict"] if bool(lacking) != (verdict == TOO_BIG) else [])]
        problems += [
            figure.id
            for figure in made.equations.quantities()
            if not isinstance(values[figure], str)
            and not (
                isfinite(values[figure]) and (figure.unit != "s" or values[figure] >= 0 or _signed(figure))
            )
        ]
        if problems:
            wrong.setdefault(problems[0], (problems[:4], asked))
    assert judged > 30
    assert not wrong, "\n".join(
        f"{problems}: {asked}"  # type: ignore[misc]
        for problems, asked in wrong.values()
    )


# --- what all ranks together hold and do --------------------------------------------------------------------

# How often the ranks of a stage hold a tensor, by the end of its name, as Megatron, vLLM and SGLang split it;
# and its bits.
#   heads, kv: over TP, KV heads copied beyond their number
#   columns, shared: of dense FFNs and of shared experts; over all ranks, or over TP where tokens are sent
#   expert: over EP, columns over what remains
#   result: of an expert, but not split by columns
#   every: whole on every rank
HELD = (
    (r"(q_proj|q_b_proj|kv_b_proj|o_proj)\.weight", "heads", "attention"),
    (r"(q_proj\.bias|sinks)", "heads", "vector"),
    (r"[kv]_proj\.weight", "kv", "attention"),
    (r"[kv]_proj\.bias", "kv", "vector"),
    (r"(q_a_proj|kv_a_proj_with_mqa|indexer\.(wq_b|wk|weights_proj))\.weight", "every", "attention"),
    (r"mixer\.(in_proj|out_proj)\.weight", "heads", "attention"),
    (r"mixer\.(conv1d\.(weight|bias)|A_log|D|dt_bias|norm\.weight)", "heads", "vector"),
    (r"shared_experts\.(gate|up|down)_proj\.weight", "shared", "ffn"),
    (r"experts\.(\{\}\.)?(gate_up|gate|up|down)_proj(\.weight)?", "expert", "experts"),
    (r"experts\.gate_up_proj_bias", "expert", "vector"),
    (r"experts\.down_proj_bias", "result", "vector"),
    (r"mlp\.(gate|up|down)_proj\.weight", "columns", "ffn"),
    (r"(router|mlp\.gate|mixer\.gate)\.weight", "every", "router"),
    (r"(layernorm|_norm|layers\.\{\}\.norm)\.(weight|bias)|o_proj\.bias|router\.bias", "every", "vector"),
)
ENDS = r"(embed_tokens|embeddings|lm_head|model\.norm|norm_f)\.weight"
BITS = {"bf16": 16.0, "fp8-block": 8 + 32 / 128**2, "mxfp4": 4.25}
MODELS = {  # KV heads, TP that divides all heads and groups, bits of experts, of other matrices
    "llama-3.1-8b": (8, (1, 2, 4, 8, 16, 32), "bf16", "bf16"),
    "deepseek-v3.2": (None, (1, 2, 4, 8, 16, 32), "fp8-block", "fp8-block"),
    "gpt-oss-120b": (8, (1, 2, 4, 8, 16, 32, 64), "mxfp4", "bf16"),
    "qwen3-235b-a22b": (4, (1, 2, 4, 8, 16, 32), "bf16", "bf16"),
    "nemotron-3-nano": (2, (1, 2, 4, 8), "bf16", "bf16"),
}


@dataclass(frozen=True)
class Plan:
    """Degrees of a deployment."""

    tp: int
    attention_dp: int
    cp: int
    ep: int
    pp: int

    @property
    def groups(self) -> int:
        """Copies of the attention weights in a stage."""
        return self.attention_dp * self.cp

    @property
    def stage(self) -> int:
        """Ranks of a stage."""
        return self.tp * self.groups

    @property
    def sends(self) -> bool:
        """Tokens go to their experts instead of all experts' ranks seeing all tokens."""
        return self.ep > 1 and self.groups > 1

    def copies(self, split: str, kv_heads: int | None) -> float:
        """How often the ranks of a stage hold a tensor, where every degree divides."""
        return {
            "heads": self.groups,
            "kv": self.groups * max(1, self.tp / (kv_heads or 1)),
            "columns": self.groups if self.sends else 1,
            "expert": 1,
            "result": self.stage / self.ep,
            "shared": self.groups if self.sends else 1,
            "every": self.stage,
        }[split]


class Built:
    """A model whose graph is built once and evaluated for many plans, in memory without end."""

    def __init__(self, name: str) -> None:
        self.made = ask(model=name, accelerator="gb200-nvl72", framework="sglang")  # pads nothing
        self.ir = self.made.equations.ir
        self.kv_heads, self.widths, experts, other = MODELS[name]
        self.bits = {
            "experts": BITS[experts],
            "attention": BITS[other],
            "ffn": BITS[other],
            "router": 16.0,
            "vector": 16.0,
        }
        self.base = self.made.inputs(0) | {
            "hardware.memory_capacity.override": 1e9,
            "inputs.scheduler": "prefill-first",  # all requests decode, however many prompts there are
            "inputs.kv_admission": "guaranteed",
        }
        self.tensors = list(self._tensors())

    def _tensors(self) -> Iterator[tuple[str, str, int]]:
        """Every tensor of the layers as (split, class, values in all layers)."""
        buffers = {tensor.name for tensor in self.ir.tensors() if tensor.buffer}
        for tensor in tensor_list(self.ir):
            if tensor["name"] in buffers or re.search(ENDS, tensor["name"]):
                continue
            split, kind = next(
                (split, kind) for pattern, split, kind in HELD if re.search(rf"({pattern})$", tensor["name"])
            )
            yield split, kind, prod(tensor["shape"]) * tensor["count"]

    def stored(self, plan: Plan) -> float:
        """Bytes of the layers that all ranks should hold, where every degree divides."""
        return sum(
            plan.copies(split, self.kv_heads) * size * self.bits[kind] / 8
            for split, kind, size in self.tensors
        )

    @cached_property
    def named(self) -> dict[str, Named]:
        """Figures and results of checks by id."""
        checks = self.made.equations.checks.checks
        return {**self.made.equations.figures, **{check.result.id: check.result for check in checks}}

    @cached_property
    def program(self) -> Program:
        """What the tests look at."""
        begins = ("memory.", "plan.", "check.", "prefill.flops.", "decode.flops.")
        ends = (".tokens", ".own_tokens", ".time", ".bound.network")
        return Program(
            [figure for name, figure in self.named.items() if name.startswith(begins) or name.endswith(ends)]
        )

    def run(self, plan: Plan, **inputs: Any) -> Callable[[str], float]:
        """Values by id for a plan, with concurrency 64 for every attention group and stage unless stated."""
        asked = {"concurrency": 64 * plan.attention_dp * plan.pp} | vars(plan) | inputs
        values = self.program.run(self.base | {f"inputs.{name}": value for name, value in asked.items()})
        return lambda name: float(values[self.named[name]])

    def stages(self, at: Callable[[str], float], what: str) -> list[float]:
        """A figure of all eight stages."""
        return [at(f"memory.{what}.{stage}") for stage in range(8)]


built = cache(Built)


@st.composite
def dividing(draw: st.DrawFn, name: str) -> Plan:
    """A plan whose degrees divide everything: powers of two, as far as heads and columns have them."""
    most = {
        "llama-3.1-8b": 2048,
        "deepseek-v3.2": 2048,
        "gpt-oss-120b": 64,
        "qwen3-235b-a22b": 512,
        "nemotron-3-nano": 64,
    }[name]
    tp = draw(st.sampled_from(MODELS[name][1]))
    attention_dp, cp = (
        draw(st.sampled_from((1, 2, 4, 8))),
        draw(st.sampled_from((1,) if name.startswith("nemotron") else (1, 2, 4))),
    )
    stage = tp * attention_dp * cp
    dense = name.startswith("llama")
    ep = (
        1
        if dense
        else draw(
            st.sampled_from([degree for degree in (1, 2, 4, 8, 16, 32, 64, 128) if stage % degree == 0])
        )
    )
    assume(stage // ep <= most)
    assume(name != "nemotron-3-nano" or stage <= 64 * (tp if ep > 1 else 1))
    return Plan(tp, attention_dp, cp, ep, draw(st.integers(1, 8)))


@pytest.mark.parametrize("name", few_of(MODELS, *list(MODELS)[:2]))
@settings(max_examples=8)
@given(data=st.data())
def test_all_ranks_hold_the_model_and_the_copies_they_need(name: str, data: st.DataObject) -> None:
    """Weights of every rank of a replica add up to the model's bytes times their copies.

    KV caches likewise; memory parts to capacity.
    """
    model, plan = built(name), data.draw(dividing(name))
    at = model.run(plan)
    weights = (
        sum(model.stages(at, "stage_weights")) - at("memory.embedding_weights") - at("memory.head_weights")
    )
    assert weights * plan.stage == pytest.approx(model.stored(plan), rel=1e-12)
    vocabulary = (
        model.made.equations.ir.facts["vocabulary"].value
        * model.made.equations.ir.facts["hidden_size"].value
        * 2
    )
    assert at("memory.embedding_weights") * plan.tp == vocabulary
    length = 1100
    facts = {fact: figure.value for fact, figure in model.ir.facts.items()}
    if model.kv_heads is None:  # latent and rotated key, and the indexer's key: the same on every TP rank
        kept, copies = ((512 + 64) * 2 + 132) * 61 * length, float(plan.tp)
    else:
        per_layer = 2 * model.kv_heads * facts["head_dim"] * 2
        full = {"gpt-oss-120b": 18, "nemotron-3-nano": 6}.get(name, facts.get("layers", 0))
        kept, copies = per_layer * full * length, max(1, plan.tp / model.kv_heads)
        if name == "gpt-oss-120b":
            kept += per_layer * 18 * 128
    if name == "nemotron-3-nano":  # 4-byte states of 64 heads x 64 x 128, and 3 last inputs of 6,144 channels
        states = 23 * (64 * 64 * 128 * 4 + 3 * 6144 * 2)
        assert sum(model.stages(at, "stage_kv")) * plan.tp == pytest.approx(kept * copies + states, rel=1e-12)
    else:
        assert sum(model.stages(at, "stage_kv")) * plan.tp * plan.cp == pytest.approx(
            kept * copies, rel=1e-12
        )
    used = (
        at("memory.weights")
        + at("memory.kv")
        + at("memory.activations")
        + at("memory.logits")
        + at("memory.reserve")
    )
    assert at("memory.used") == pytest.approx(used, rel=1e-12)
    assert used + at("memory.headroom") + at("memory.outside") == pytest.approx(
        at("hardware.memory_capacity"), rel=1e-12
    )
    assert at("memory.kv") == pytest.approx(64 * plan.pp * max(model.stages(at, "stage_kv")), rel=1e-12)


def piece(text: str) -> range:
    """A slice as the sheet Layers says it."""
    low, high = (0, -1) if text == "–" else map(int, text.replace(",", "").split(" – "))
    assert text == "–" or low <= high, text
    return range(low, high + 1)


@pytest.mark.parametrize("name", ["llama-3.1-8b", "deepseek-v3.2"])
def test_slices_of_all_accelerators_are_the_whole_model(name: str) -> None:
    """Every column, head, row and expert of a stage lies on as many ranks as it has copies."""
    model, most = built(name), 64
    (workers,), facts = model.made.equations.workers, model.ir.facts
    lines = {line.name: line.figures for line in Placement(workers, "placement", most).lines}
    program = Program([figure for figures in lines.values() for figure in figures])
    total = int(model.made.values()[model.ir.total_layers])
    sizes = {
        "heads": "attention_heads",
        "vocabulary": "vocabulary",
        "ffn_size": "ffn_size",
        "experts": "experts",
    }
    degrees = product((1, 2, 3, 8), (1, 2, 5), (1, 2), (1, 2, 4, 6), (1, 2, 3))
    dense = "experts" not in lines
    plans = [
        plan for plan in starmap(Plan, degrees) if plan.stage % plan.ep == 0 and (plan.ep == 1 or not dense)
    ]
    plans = [plan for plan in plans if 2 * plan.stage * plan.pp <= most]
    for plan in random.Random(13).sample(plans, 14):
        values = program.run(
            model.base | {f"inputs.{key}": of for key, of in (vars(plan) | {"dp": 2}).items()}
        )
        ranks = [
            {line: values[figures[at]] for line, figures in lines.items()}
            for at in range(2 * plan.stage * plan.pp)
        ]
        layers = Counter(layer for rank in ranks for layer in piece(rank["layers"]))
        assert layers == dict.fromkeys(range(1, total + 1), 2 * plan.stage), plan
        for replica, stage in product(range(2), range(plan.pp)):
            here = [rank for rank in ranks if (rank["replica"], rank["stage"]) == (replica, stage)]
            shared = plan.groups if plan.sends else 1
            copies = {"heads": plan.groups, "experts": plan.stage // plan.ep}
            copies["vocabulary"] = plan.groups if stage in (0, plan.pp - 1) else 0
            copies["ffn_size"] = (
                shared if stage == 0 or "experts" not in lines else 0
            )  # dense layers come first
            for line in lines.keys() & sizes.keys():
                held = Counter(part for rank in here for part in piece(rank[line]))
                whole = range(int(facts[sizes[line]].value))
                assert held == (dict.fromkeys(whole, copies[line]) if copies[line] else {}), (plan, line)
            if not dense:
                held = sum(len(piece(rank["experts"])) * len(piece(rank["expert_columns"])) for rank in here)
                assert held == facts["experts"].value * facts["expert_size"].value, plan


@pytest.mark.parametrize("name", few_of(MODELS, *list(MODELS)[:2]))
@settings(max_examples=8)
@given(data=st.data())
def test_odd_plans_never_hold_less_than_the_model(name: str, data: st.DataObject) -> None:
    """Where a degree does not divide, the fullest rank counts.

    All ranks together hold the model at least, and all checks but the plan's hold.
    """
    model, degree = built(name), st.integers(1, 12)
    tp, attention_dp, cp = (data.draw(degree) for _ in range(3))
    ep = data.draw(st.integers(1, min(128, tp * attention_dp * cp))) if "experts" in model.ir.facts else 1
    plan = Plan(tp, attention_dp, cp, ep, data.draw(st.integers(1, 8)))
    at = model.run(plan)
    weights = (
        sum(model.stages(at, "stage_weights")) - at("memory.embedding_weights") - at("memory.head_weights")
    )
    least = sum(
        max(1, plan.groups if split in ("heads", "kv") else plan.stage if split == "every" else 1)
        * size
        * model.bits[kind]
        / 8
        for split, kind, size in model.tensors
    )
    assert weights * plan.stage >= least * (1 - 1e-12)
    kv = [
        figure for figure in model.made.equations.figures if figure.startswith("memory.kv_bytes_per_token.")
    ]
    alone = model.run(Plan(1, 1, 1, 1, 1))
    assert all(at(figure) * plan.tp >= alone(figure) for figure in kv)
    assert {
        check.code
        for check in model.made.equations.checks.checks
        if check.group == "Structure" and not at(f"check.{check.code}")
    } <= {"KV_DIFFERS"}


@pytest.mark.parametrize("name", few_of(MODELS, *list(MODELS)[:2]))
@settings(max_examples=8)
@given(data=st.data())
def test_all_ranks_do_the_work_of_the_model(name: str, data: st.DataObject) -> None:
    """FLOPs of every rank add up to those of the model.

    Only what is stated to be copied is done more than once.

    In prefill CP ranks share the tokens of a prompt, in decode they all project each token and share its
    cache.
    """
    model, plan = built(name), data.draw(dividing(name))
    at = model.run(plan)
    facts = {fact: figure.value for fact, figure in model.ir.facts.items()}
    chosen = facts["experts_per_token"] / facts["experts"] if "experts" in facts else 0
    every_kv = max(1, plan.tp / (model.kv_heads or 1))
    alone = model.run(Plan(1, 1, 1, 1, 1), concurrency=64 * plan.attention_dp)
    for phase, tokens, again in (
        ("prefill", plan.attention_dp * 1000, 1),
        ("decode", 64 * plan.attention_dp, plan.cp),
    ):
        assert at(f"{phase}.tokens") == tokens
        often = {
            "heads": again,
            "kv": again * every_kv,
            "columns": again if plan.sends else 1,
            "expert": chosen,
            "shared": again if plan.sends else 1,
            "every": plan.tp * again,
        }
        parameters = sum(often[split] * size for split, kind, size in model.tensors if kind != "vector")
        head = (
            plan.cp
            * facts["vocabulary"]
            * facts["hidden_size"]
            * (tokens if phase == "decode" else plan.attention_dp)
        )
        products = {
            module.id for module in model.ir.modules if isinstance(module.operation, MatMul | GroupedMatMul)
        }
        done = sum(at(f"{phase}.flops.{module}") for module in products) * plan.stage
        assert done == pytest.approx(2 * (tokens * parameters + head), rel=1e-12)
        for module in model.ir.modules:
            if (
                not isinstance(module.operation, MatMul | GroupedMatMul)
                and f"{phase}.flops.{module.id}" in model.named
            ):
                once = alone(f"{phase}.flops.{module.id}") * tokens / alone(f"{phase}.tokens")
                copies = plan.tp if isinstance(module.operation, Indexer) else 1
                assert at(f"{phase}.flops.{module.id}") * plan.stage == pytest.approx(
                    once * copies, rel=1e-12
                ), module.id
        if plan.sends:
            sent, back = (at(f"{phase}.{way}.own_tokens") * plan.stage for way in ("dispatch", "combine"))
            assert sent == back == tokens
        assert (
            (at(f"{phase}.dispatch.time") > 0) == plan.sends
            if "experts" in facts
            else f"{phase}.dispatch.time" not in model.named
        )


@pytest.mark.parametrize("name", [*MODELS, "deepseek-r1", "qwen3-next-80b", "jamba-v0.1"])
def test_stages_hold_every_layer_once_and_none_more_than_one_above_another(name: str) -> None:
    """All kinds of layer, for every number of stages there can be."""
    made = ask(model=name, accelerator="gb200-nvl72")
    plan = made.equations.prefill_workers.plan
    program = Program(
        [plan.stages.fullest, *(figure for figures in plan.stages.layers.values() for figure in figures)]
    )
    total = sum(int(count.value or 0) for count in plan.stages.layers)
    for stages in range(1, 9):
        values = program.run(made.inputs(0) | {"inputs.pp": stages})
        for count, figures in plan.stages.layers.items():
            held = [values[figure] for figure in figures]
            assert sum(held) == count.value and not any(held[stages:])
        on_stage = [
            sum(values[figures[stage]] for figures in plan.stages.layers.values()) for stage in range(stages)
        ]
        assert sum(on_stage) == total and max(on_stage) - min(on_stage) <= 1
        assert max(on_stage) == values[plan.stages.fullest] == ceil(total / stages)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["gemma-3-27b", "deepseek-v4-flash", "jamba-v0.1"])
def test_plan_and_memory_tell_the_same_layers_of_each_stage(name: str) -> None:
    """Layers go to stages in order and as evenly as can be, the first stages take one more.

    On every sheet, for every PP.
    """
    asked = ASKED | {"model": name, "accelerator": "gb200-nvl72"}
    made = estimate(parse_scenario(asked, "test"), library=few(("gb200-nvl72", "h100-sxm")))
    book = lay_out(made)
    on_sheets = {figure.id: figure for figure in book.addresses if isinstance(figure, Quantity)}
    sequence = made.model.architecture.sequence()
    for stages in range(1, 9):
        values = book.values([made.inputs(0) | {"inputs.pp": stages}])[0]
        share, more = divmod(len(sequence), stages)
        sizes = [share + (stage < more) for stage in range(stages)]
        expected = [stage for stage, size in enumerate(sizes) for _ in range(size)]
        for kind in made.equations.ir.layers:
            count = kind.count.id.removeprefix("model.")
            own = [stage for blocks, stage in zip(sequence, expected, strict=True) if blocks == kind.blocks]
            planned = [values[made.figure(f"plan.{count}.{stage}")] for stage in range(8)]
            assert planned == [own.count(stage) for stage in range(8)], (kind.name, stages)
        for stage in range(stages):
            first = expected.index(stage) + 1
            last = first + sizes[stage] - 1
            assert values[on_sheets[f"placement.0.layer_count.{stage}"].body] == sizes[stage]
            assert values[on_sheets[f"placement.0.layers.{stage}"].body] == f"{first} – {last}"


@pytest.mark.parametrize("name", few_of(MODELS, *list(MODELS)[:2]))
def test_one_rank_says_nothing_to_anybody(name: str) -> None:
    """Degrees of 1, stated or not, are one accelerator and no messages.

    Whether workers of the same kind are described beside it or not.
    """
    fields = {"model": name, "accelerator": "gb200-nvl72", "weights_dtype": "fp8"}
    ones = dict.fromkeys(("tp", "pp", "dp", "ep", "attention_dp", "cp"), 1)
    plain, stated, apart = (
        ask(**fields),
        ask(**fields, **ones, sequence_parallel="off"),
        ask(**fields, **ones, serving="aggregated", decode={}),
    )
    assert plain.results() == stated.results()
    assert {
        key: value for key, value in apart.results().items() if key in plain.results() and key != "checks"
    } == {key: value for key, value in plain.results().items() if key != "checks"}
    values = plain.values()
    assert values[plain.figure("prefill.bound.network")] == values[plain.figure("decode.bound.network")] == 0
    assert plain.results()["accelerators"] == 1


# --- the measured systems -----------------------------------------------------------------------------------

SHAPE = ("model", "system", "tp", "pp", "ep", "dp_attention", "gpus", "precision")


@pytest.mark.exhaustive
def test_every_measured_system_is_answered(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each distinct model, system, plan and precision of the public table.

    A result, possible, and within memory.

    Systems that were measured with speculative decoding only are asked without it.
    """
    with (shared_data / "silicon_public.csv").open(encoding="utf-8") as file:
        rows = {tuple(row[name] for name in SHAPE): row for row in reversed(list(csv.DictReader(file)))}
    asked = [row | {"spec_decode": "none", "concurrency": row["concurrency"] or "1"} for row in rows.values()]
    with (tmp_path / "systems.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asked[0]))
        writer.writeheader()
        writer.writerows(asked)
    measured = load_measurements(tmp_path / "systems.csv")
    assert all("worker of a disaggregated run is not stated" in broken.reason for broken in measured.rejected)
    prepared = match_runs(measured.runs)
    assert not prepared.rejected
    unanswered = []
    for batch in prepared.batches:
        made = estimate(batch.runs[0].run.scenario())
        served = made.equations.serving
        for case in batch.runs:
            values = made.program.run(case.inputs)
            verdict, errors, _ = raised(made, values)
            if (
                verdict != FITS
                or errors
                or not all(0 < values[time] < float("inf") for time in (served.tpot, served.ttft, served.e2e))
            ):
                unanswered.append((case.run.id, case.column.name, case.run.model, verdict, errors))
    stated = len(measured.runs)
    with capsys.disabled():
        print(
            f"\n{stated - len(unanswered)} of {stated} measured systems answered; {len(rows) - stated} of "
            f"{len(rows)} state no worker"
        )
        for line in unanswered:
            print("  not:", *line)
    assert stated > 150 and len(rows) - stated <= 2
    assert len(unanswered) <= 0.01 * stated
