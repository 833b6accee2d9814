"""What must hold between a deployment and its neighbours, and of each by itself, without a measurement.

A neighbour differs in one thing: an input, a figure of the hardware, the chip, or how the same is said. Where
a relation need not hold, it says so by `where`:

- In a closed loop requests come back sooner from what has become faster, and wait elsewhere. So TTFT may rise
  where less of the time goes into decode; end to end and throughput may not get worse. On decode workers TPOT
  may rise where more requests get there.
- A batch that grows decodes more slowly.
- At a request rate forms hold up to a load of 0.8.
- Prompts that a scheduler holds back until there are more of them, or for a number of steps, wait less where
  there are more.
- Preempted requests, and a cache on the host, make more requests in flight slower.
- More accelerators of a host share the bandwidth of its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from deployments import (
    BY_FORMAT,
    CAPACITY,
    E2E,
    E2E_P50,
    E2E_P95,
    HARDWARE,
    KV,
    PER_TOKEN,
    REQUESTS,
    TOKENS,
    TPOT,
    TTFT,
    TTFT_P50,
    TTFT_P95,
    UNITS,
    WEIGHTS,
    Array,
    Deployments,
    Figures,
    Serving,
)

from mantile.library.profile_facts import ProfileFact
from mantile.library.profiles import Library

Sign = Literal["<=", ">=", "=="]
Change = dict[str, Array]
Changing = Callable[[Deployments], Change | None]
Where = Callable[[Deployments, Figures, Figures], Array]
TINY = 1e-9
CALM = 0.8  # load up to which waits at a rate hold


@dataclass(frozen=True)
class Relation:
    """How a neighbour stands to a deployment.

    Args:
        change: the inputs that the neighbour has instead; None where there is no such neighbour.
        expected: by figure, how that of the neighbour stands to that of the deployment.
        tolerance: relative; beyond it the relation is violated.
        where: the deployments for which it holds, given the figures of both; `only` those of one figure.
        start: inputs that the deployment has instead.
        other: the way of serving by whose graph the neighbour is worked out.
        times: figures of the deployment are so many times as large before they are compared.
    """

    name: str
    change: Changing
    expected: Mapping[str, Sign]
    tolerance: float = 0.01
    where: tuple[Where, ...] = ()
    only: Mapping[str, Where] = field(default_factory=dict)
    start: Changing | None = None
    other: Callable[[Serving], Serving] | None = None
    times: Mapping[str, float] = field(default_factory=dict)


def relations(library: Library) -> list[Relation]:
    """All of them."""
    return [
        *of_hardware(),
        *of_workload(),
        *of_formats(),
        *of_scale(),
        *of_workers(),
        *of_money(),
        *of_spelling(library),
        *of_graphs(),
        *of_batching(),
        *of_continuity(),
        *of_chips(library),
    ]


# --- where relations hold -----------------------------------------------------------------------------------


def calm(_: Deployments, before: Figures, after: Figures) -> Array:
    """Both below saturation."""
    held: Array = np.maximum(before.get("load.utilisation", 0.0), after.get("load.utilisation", 0.0)) <= CALM
    return held


def prompt(d: Deployments, *_: Figures) -> Array:
    """No prompt is held back until there are more of them."""
    held: Array = (d["receive_interval"] == 0) & (d["batch_wait_steps"] == 0)
    return held


def same_batch(_: Deployments, before: Figures, after: Figures) -> Array:
    name = "decode.memory.batch" if "decode.memory.batch" in before else "memory.batch"
    held: Array = np.abs(before[name] - after[name]) <= TINY * before[name]
    return held


def not_preempted(_: Deployments, before: Figures, after: Figures) -> Array:
    """No more work is done again, and no cache lies on the host."""
    workers = "decode." if "decode.memory.redone" in before else ""
    held: Array = (after[f"{workers}memory.redone"] <= before.get(f"{workers}memory.redone", 0)) & (
        after[f"{workers}memory.host_kv"] == 0
    )
    return held


def not_sooner_back(d: Deployments, before: Figures, after: Figures) -> Array:
    """No request comes back to prefill sooner from decode."""
    if d.at_rate:
        return np.ones(len(d), bool)
    if d.apart:
        held: Array = after["serving.generation"] >= before["serving.generation"] * (1 - TINY)
        return held
    held = after["serving.prefill_share"] <= before["serving.prefill_share"] * (1 + TINY)
    return held


def as_few_in_decode(_: Deployments, before: Figures, after: Figures) -> Array:
    """No more requests decode than before."""
    held: Array = after["decode.batch"] <= before["decode.batch"] * (1 + TINY)
    return held


def no_more_in_decode(d: Deployments, before: Figures, after: Figures) -> Array:
    """Not where prefill passes more requests on to workers that decode."""
    return as_few_in_decode(d, before, after) if d.apart and not d.at_rate else np.ones(len(d), bool)


def backwards(where: Where) -> Where:
    """The same with deployment and neighbour in each other's place."""
    return lambda d, before, after: where(d, after, before)


# --- better hardware ----------------------------------------------------------------------------------------

PEAKS, LINKS = HARDWARE[:5], HARDWARE[6:9]
BANDWIDTH, MEMORY = ("hardware.memory_bandwidth",), ("hardware.memory_capacity",)
FASTER: Mapping[str, Sign] = {
    **dict.fromkeys((TTFT, TPOT, E2E, TTFT_P50, TTFT_P95, E2E_P50, E2E_P95), "<="),
    TOKENS: ">=",
}
SLOWER: Mapping[str, Sign] = {name: ">=" if sign == "<=" else "<=" for name, sign in FASTER.items()}
LOOPED: Mapping[str, Where] = {
    **dict.fromkeys((TTFT, TTFT_P50, TTFT_P95, E2E_P50, E2E_P95), not_sooner_back),
    TPOT: no_more_in_decode,
}
"""Where a figure may not get worse if something has become faster."""


def stated(d: Deployments, ids: Iterable[str], factor: Array) -> Change:
    """Figures of the hardware of all workers, those in use times a factor; none where nobody states one."""
    change: Change = {}
    for name in (*ids, *(f"decode.{identifier}" for identifier in ids)):
        overridable = d.equations.graph.overridable.get(name)
        if overridable is not None and name in d.figures:
            now = d.figures[name].astype(float)
            change[f"{name}.override"] = np.where(
                now > 0, now / UNITS[overridable.cell.unit] * factor, np.nan
            )
    return change


def more(words: str, ids: tuple[str, ...]) -> list[Relation]:
    """More of it is never slower, less never faster."""
    less = {name: backwards(where) for name, where in LOOPED.items()}
    return [
        Relation(
            f"more {words}", lambda d: stated(d, ids, d.factors(1.02, 4)), FASTER, where=(calm,), only=LOOPED
        ),
        Relation(
            f"less {words}", lambda d: stated(d, ids, d.factors(0.5, 0.98)), SLOWER, where=(calm,), only=less
        ),
    ]


def of_hardware() -> list[Relation]:
    """Better hardware. With more memory more requests run at once, each more slowly."""
    fits: Mapping[str, Sign] = {TOKENS: ">=", CAPACITY: ">=", PER_TOKEN: "<="}

    def memory(d: Deployments) -> Change:
        return stated(d, MEMORY, d.factors(1.02, 4))

    def in_loop(d: Deployments) -> Change | None:
        return None if d.at_rate else memory(d)

    return [
        *more("memory bandwidth", BANDWIDTH),
        *more("FLOP/s", PEAKS),
        *more("link bandwidth", LINKS),
        *more("of all speeds", (*PEAKS, *BANDWIDTH, *LINKS)),
        *(
            Relation(
                f"slower {words}",
                lambda d, name=name: {f"inputs.{name}": d.factors(0.05, 0.98)},
                SLOWER,
                where=(calm,),
                only={of: backwards(where) for of, where in LOOPED.items()},
            )
            for words, name in (("computation", "compute_speed"), ("links", "network_speed"))
        ),
        Relation("more memory", memory, fits, where=(calm, prompt, not_preempted)),
        Relation("more memory, end to end", in_loop, {E2E: "<="}, where=(prompt, not_preempted, steady)),
        Relation("more memory, same batch", memory, FASTER, where=(calm, same_batch)),
    ]


def steady(d: Deployments, *_: Figures) -> Array:
    """A service that runs on, not a benchmark with a warm-up burst."""
    held: Array = d["prompts_per_slot"] == 0
    return held


# --- more to do ---------------------------------------------------------------------------------------------


def times(name: str, most: float) -> Changing:
    """A field of the scenario, larger by a random factor, in whole numbers."""
    return lambda d: {f"inputs.{name}": np.ceil(d[name] * d.factors(1.02, most))}


def of_workload() -> list[Relation]:
    """More and longer requests."""
    slower: Mapping[str, Sign] = {**dict.fromkeys((TOKENS, TTFT, TTFT_P50, TTFT_P95, TPOT, E2E), ">=")}
    arriving: Mapping[str, Sign] = {**slower, "load.utilisation": ">=", "load.in_flight": ">="}
    longer: Mapping[str, Sign] = {E2E: ">=", E2E_P50: ">=", E2E_P95: ">=", REQUESTS: "<=", CAPACITY: "<="}
    prompts: Mapping[str, Sign] = {
        **dict.fromkeys((TTFT, TTFT_P50, TTFT_P95, E2E, "serving.prefill"), ">="),
        **dict.fromkeys((TOKENS, CAPACITY), "<="),
    }
    return [
        Relation(
            "more requests in flight",
            lambda d: None if d.at_rate else times("concurrency", 16)(d),
            slower,
            where=(prompt, not_preempted),
        ),
        Relation(
            "one more request in flight",
            lambda d: None if d.at_rate else {"inputs.concurrency": d["concurrency"] + 1},
            slower,
            where=(prompt, not_preempted),
        ),
        Relation(
            "more requests per second",
            lambda d: {"inputs.request_rate": d["request_rate"] * d.factors(1.01, 4)} if d.at_rate else None,
            arriving,
            where=(calm, prompt),
        ),
        Relation("longer outputs", times("output_tokens", 8), longer, where=(calm, prompt)),
        Relation("longer prompts", times("input_tokens", 8), prompts, where=(calm, prompt, not_preempted)),
    ]


# --- formats ------------------------------------------------------------------------------------------------

NARROWER = {
    "bf16": ("fp8", "fp8-block", "int8", "nvfp4", "int4", "mxfp4"),
    # not mxfp4: kernels pad its experts, and where many ranks share one that may take more
    **dict.fromkeys(("fp8", "fp8-block", "int8"), ("nvfp4", "int4")),
}


def narrower_weights(d: Deployments) -> Change:
    return {"inputs.weights_dtype": d.one_of([NARROWER.get(kind, (kind,)) for kind in d["weights_dtype"]])}


def narrower_with_padding(_: Deployments, before: Figures, after: Figures) -> Array:
    """Kernels do not pad experts of 4 bit, and a scale of 8 for 32 of them, beyond those of 16 bit."""
    names = [f"{of}memory.expert_padding" for of in ("", "decode.")]
    padded = [after[name] * (4 + 8 / 32) / 16 for name in names if name in after]
    held: Array = np.maximum.reduce(padded) <= 1 if padded else np.ones(len(after[WEIGHTS]), bool)
    return held


def narrower_cache(d: Deployments) -> Change:
    return {"inputs.kv_dtype": d.all_of("fp8")}


def same_factors(d: Deployments) -> Change:
    """Formats reach the same shares of peaks and bandwidths, and products run in 16 bit."""
    change: Change = {"inputs.activation_dtype": d.all_of("bf16")}
    for name in (*BY_FORMAT, *(f"decode.{factor}" for factor in BY_FORMAT)):
        if f"{name}.default" in d.figures:
            change[f"{name}.override"] = d.figures[f"{name}.default"].astype(float)
    return change


def of_formats() -> list[Relation]:
    """Fewer bits take less memory; by themselves they are never slower, but a format may reach less."""
    weights: Mapping[str, Sign] = {WEIGHTS: "<=", f"decode.{WEIGHTS}": "<=", CAPACITY: ">="}
    cache: Mapping[str, Sign] = {KV: "<=", f"decode.{KV}": "<=", CAPACITY: ">="}
    alike = {"start": same_factors, "tolerance": 0.02, "where": (calm, same_batch), "only": LOOPED}
    return [
        Relation(
            "narrower weights, memory",
            narrower_weights,
            weights,
            tolerance=TINY,
            where=(narrower_with_padding,),
        ),
        Relation("narrower KV cache, memory", narrower_cache, cache, tolerance=TINY),
        Relation("narrower weights, same factors", narrower_weights, FASTER, **alike),
        Relation("narrower KV cache, same factors", narrower_cache, FASTER, **alike),
    ]


# --- more accelerators --------------------------------------------------------------------------------------


def twice(d: Deployments) -> Change:
    """Twice the replicas or workers of each kind, and twice the requests."""
    names = ["dp", "request_rate" if d.at_rate else "concurrency", *(("decode_dp",) if d.apart else ())]
    return {f"inputs.{name}": d[name] * 2 for name in names}


def same_hosts(_: Deployments, before: Figures, after: Figures) -> Array:
    """Nothing is read from host memory, or no more slowly than before."""
    held = np.ones(len(before[WEIGHTS]), bool)
    for of in ("", "decode."):
        rate, weights, kv = (
            f"{of}{name}" for name in ("efficiency.rate.host_bytes", "memory.host_weights", "memory.host_kv")
        )
        if rate in before:
            unread = (after[weights] == 0) & (after[kv] == 0)
            held &= unread | (before[rate] == after[rate])
    return held


def of_scale() -> list[Relation]:
    """Replicas share requests; ranks share weights."""
    same: Mapping[str, Sign] = {
        **dict.fromkeys(FASTER, "=="),
        **dict.fromkeys(("cost.usd_per_hour", "cost.power", PER_TOKEN), "=="),
    }
    doubled = dict.fromkeys((TOKENS, "cost.usd_per_hour", "cost.power"), 2.0)
    smaller: Mapping[str, Sign] = {WEIGHTS: "<=", KV: "<="}
    apart = ("tp", "decode_tp"), ("pp", "decode_pp"), ("ep", "decode_ep")

    def doubling(names: tuple[str, str]) -> Changing:
        return lambda d: (
            {f"inputs.{name}": d[name] * 2 for name in names if f"inputs.{name}" in d.inputs} or None
        )

    def sent(d: Deployments, *_: Figures) -> Array:
        """Tokens are sent to experts either way; where that begins, ranks get a copy of shared experts."""
        held: Array = (d["ep"] > 1) | (d["attention_dp"] * d["cp"] == 1)
        return held

    return [
        Relation(
            "twice the replicas and requests",
            lambda d: None if d.at_rate else twice(d),
            same,
            tolerance=TINY,
            where=(same_hosts,),
            times=doubled,
        ),
        Relation(
            "twice the replicas and requests per second",
            lambda d: twice(d) if d.at_rate else None,
            same,
            where=(calm, same_hosts),
            times=doubled,
        ),
        Relation("wider TP, memory", doubling(apart[0]), {**smaller, CAPACITY: ">="}, tolerance=TINY),
        Relation("more stages, memory", doubling(apart[1]), smaller, tolerance=TINY),
        Relation("more EP ranks, memory", doubling(apart[2]), {WEIGHTS: "<="}, tolerance=TINY, where=(sent,)),
    ]


def of_workers() -> list[Relation]:
    """More replicas or workers, and decode on workers of its own."""

    def more_of(name: str) -> Changing:
        return lambda d: {f"inputs.{name}": d[name] * 2} if f"inputs.{name}" in d.inputs else None

    def apart(d: Deployments) -> Change | None:
        return None if d.apart else {"inputs.serving": d.all_of("disaggregated")}

    return [
        Relation(
            "more replicas",
            more_of("dp"),
            FASTER,
            where=(calm, prompt, not_preempted, same_hosts),
            only=LOOPED,
        ),
        Relation(
            "more decode workers",
            more_of("decode_dp"),
            {TPOT: "<=", E2E: "<=", TOKENS: ">="},
            where=(calm, prompt, same_hosts),
        ),
        Relation(
            "decode on workers of its own",
            apart,
            {TPOT: "<="},
            start=lambda d: {"inputs.batching": d.all_of("continuous")},
            other=lambda serving: replace(serving, apart=True),
            where=(calm, as_few_in_decode),
        ),
    ]


# --- money --------------------------------------------------------------------------------------------------


def of_money() -> list[Relation]:
    """At a fixed price what a token costs moves against tokens per second."""

    def other(d: Deployments) -> Change:
        lengths = ("input_tokens", "output_tokens")
        return {f"inputs.{name}": np.ceil(d[name] * d.factors(0.2, 5)) for name in lengths}

    used: Mapping[str, Sign] = {
        **dict.fromkeys(FASTER, "=="),
        **{PER_TOKEN: "<=", "cost.joules_per_output_token": "<=", "cost.power": ">="},
    }
    return [
        Relation("USD per token against tokens per second", other, {"cost.usd": "=="}, tolerance=TINY),
        Relation(
            "higher utilisation",
            lambda d: {"inputs.utilisation": d["utilisation"] ** 0.5},
            used,
            tolerance=TINY,
        ),
    ]


# --- the same, said otherwise -------------------------------------------------------------------------------

ALIKE: Mapping[str, Sign] = dict.fromkeys((*FASTER, CAPACITY, "cost.usd_per_hour"), "==")


def on_all(d: Deployments, name: str, value: Any) -> Change:
    """A value of all workers."""
    names = (name, f"decode_{name}")
    return {f"inputs.{item}": d.all_of(value) for item in names if f"inputs.{item}" in d.inputs}


def of_spelling(library: Library) -> list[Relation]:
    """What follows by default, stated; and what has no effect."""
    usual = {chip.id: library.usual_system(chip.id).id for chip in library.accelerators}
    schedulers = {item.id: item.scheduler for item in library.frameworks}
    admissions = {item.id: item.kv_admission for item in library.frameworks}

    def by(found: Mapping[str, str], name: str, of: str) -> Changing:
        def change(d: Deployments) -> Change:
            now = d[name] if f"inputs.{name}" in d.inputs else d.all_of("default")
            said = np.array([found[item] for item in d[of]], dtype=object)
            return {f"inputs.{name}": np.where(now == "default", said, now)}

        return change

    def most(requests: float) -> Changing:
        return lambda d: {"inputs.max_requests": d.all_of(requests)}

    def alone(field_: str, name: str, value: Any, otherwise: Any) -> dict[str, Any]:
        return {
            "change": lambda d: None if d.at_rate else {f"inputs.{name}": d.all_of(otherwise)},
            "start": lambda d: {**on_all(d, field_, 1), f"inputs.{name}": d.all_of(value)},
        }

    exact: dict[str, Any] = {"expected": ALIKE, "tolerance": TINY}
    return [
        Relation("the usual system by its name", by(usual, "system", "accelerator"), **exact),
        Relation("the scheduler by its name", by(schedulers, "scheduler", "framework"), **exact),
        Relation("KV admission by its name", by(admissions, "kv_admission", "framework"), **exact),
        Relation("a limit that no batch reaches", most(1e6), ALIKE, tolerance=0.001, start=most(5e5)),
        Relation(
            "sequence parallelism on one rank", **alone("tp", "sequence_parallel", "off", "on"), **exact
        ),
        Relation("micro-batches of one stage", **alone("pp", "microbatches", 1, 4), **exact),
    ]


def of_graphs() -> list[Relation]:
    """A graph that could serve otherwise; a rate against as many in flight, most of them in decode."""

    def in_flight(d: Deployments) -> Change | None:
        if not d.at_rate:
            return None
        return {"inputs.concurrency": np.maximum(d["decode_dp"] if d.apart else d["dp"], d["load.in_flight"])}

    def many(d: Deployments, before: Figures, _: Figures) -> Array:
        replicas = np.maximum(d["dp"], d["decode_dp"]) if d.apart else d["dp"]
        decoding = before["serving.generation"] > 0.8 * before[E2E]
        held: Array = (before["load.open"] > 0) & (before["load.in_flight"] > 4 * replicas) & decoding
        return held

    exact: dict[str, Any] = {"expected": ALIKE, "tolerance": TINY}
    return [
        Relation(
            "without a rate where there could be one",
            lambda d: None if d.at_rate else {"inputs.request_rate": d.all_of(0)},
            other=lambda serving: replace(serving, at_rate=True),
            **exact,
        ),
        Relation(
            "aggregated where it could be disaggregated",
            lambda d: None if d.apart else {"inputs.serving": d.all_of("aggregated")},
            other=lambda serving: replace(serving, apart=True),
            **exact,
        ),
        Relation(
            "at a rate as with as many in flight",
            in_flight,
            {TPOT: "==", TOKENS: "=="},
            start=lambda d: {"inputs.prompts_per_slot": d.all_of(0)},
            other=lambda serving: replace(serving, at_rate=False),
            where=(calm, many, prompt),
            tolerance=0.1,
        ),
    ]


def of_batching() -> list[Relation]:
    """One request by itself: only the host's launches tell a continuous batch from a static one."""

    def one(kind: str) -> Changing:
        def change(d: Deployments) -> Change | None:
            if d.apart or d.at_rate:
                return None
            quiet = ("receive_interval", "batch_wait_steps", "prompts_per_slot")
            asked = {f"inputs.{name}": d.all_of(0) for name in quiet}
            return {**asked, "inputs.concurrency": d["dp"], "inputs.batching": d.all_of(kind)}

        return change

    def one_stage(d: Deployments, *_: Figures) -> Array:
        """Chunks of a prompt overlap on several."""
        held: Array = d["pp"] == 1
        return held

    expected: Mapping[str, Sign] = {TPOT: "==", TTFT: ">=", TOKENS: "<="}
    return [
        Relation(
            "one request, static and continuous",
            one("continuous"),
            expected,
            start=one("static"),
            where=(one_stage,),
        )
    ]


# --- nothing jumps ------------------------------------------------------------------------------------------


def of_continuity() -> list[Relation]:
    """A hundredth more of something changes results by a few hundredths."""
    near: Mapping[str, Sign] = {E2E: "==", TPOT: "==", TOKENS: "=="}

    def slightly(name: str) -> Changing:
        return lambda d: None if d.at_rate else {f"inputs.{name}": d[name] * 1.01}

    def of(ids: tuple[str, ...]) -> Changing:
        return lambda d: None if d.at_rate else stated(d, ids, d.all_of(1.01))

    def several(d: Deployments, before: Figures, after: Figures) -> Array:
        """There are several requests, and the room for them is much the same."""
        room = np.abs(after[CAPACITY] / before[CAPACITY] - 1) <= 0.02
        held: Array = (d["concurrency"] >= 4 * d["dp"]) & room
        return held

    changes: dict[str, Changing] = {
        "requests in flight": slightly("concurrency"),
        "input tokens": slightly("input_tokens"),
        "output tokens": slightly("output_tokens"),
        "token budget": slightly("token_budget"),
        "memory bandwidth": of(BANDWIDTH),
        "FLOP/s": of(PEAKS),
        "link bandwidth": of(LINKS),
        "memory": of(MEMORY),
    }
    return [
        Relation(f"1 % more {words}", change, near, tolerance=0.04, where=(several,))
        for words, change in changes.items()
    ]


# --- chips --------------------------------------------------------------------------------------------------


def datasheets(library: Library) -> dict[str, Array]:
    """Peaks, memory, bandwidth and links of chips that serving engines run on; 0 where nobody states it."""

    def known(fact: ProfileFact | None) -> float:
        return 0.0 if fact is None or fact.value is None else float(fact.value)

    return {
        chip.id: np.array(
            [
                *map(known, (chip.peak_bf16, chip.peak_fp8, chip.peak_fp4)),
                *map(known, (chip.memory_capacity, chip.memory_bandwidth)),
                known(library.usual_system(chip.id).link_bandwidth),
            ]
        )
        for chip in library.accelerators
        if chip.vendor in ("NVIDIA", "AMD") and chip.peak_bf16.value
    }


def of_chips(library: Library) -> list[Relation]:
    """A chip that is at least as good in every figure of its datasheet, in bf16 or fp8 as both have them.

    Not all differences are errors: kernels of some chips reach less, as runs show.
    """
    sheets = datasheets(library)
    better = {
        chip: tuple(
            other for other, sheet in sheets.items() if other != chip and (sheet >= sheets[chip]).all()
        )
        for chip in sheets
    }

    def change(d: Deployments) -> Change:
        new = d.one_of([better.get(chip) or (chip,) for chip in d["accelerator"]])
        chips: Change = {"inputs.accelerator": new}
        if d.apart:
            shared = d["decode_accelerator"] == d["accelerator"]
            chips["inputs.decode_accelerator"] = np.where(shared, new, d["decode_accelerator"])
        return chips

    def served(d: Deployments, *_: Figures) -> Array:
        """There is a better one, and an engine for both."""
        return np.array(
            [
                bool(better.get(chip)) and framework in ("vllm", "sglang", "trtllm")
                for chip, framework in zip(d["accelerator"], d["framework"], strict=True)
            ]
        ) & np.isin(d["weights_dtype"].astype(str), ("bf16", "fp8"))

    where = (served, calm, same_batch)
    return [Relation("a better chip", change, FASTER, tolerance=0.02, where=where, only=LOOPED)]


# --- laws ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """What holds of each deployment by itself: one side is at most the other.

    Args:
        tolerance: relative; beyond it the law is violated.
    """

    name: str
    left: Array
    right: Array
    tolerance: float = TINY


STATED = ("OVERLOADED", "MEMORY_EXCEEDED", "DECODE_MEMORY_EXCEEDED")
"""Errors that say what a deployment cannot do; all others say that the estimate is wrong."""


def laws(d: Deployments) -> Iterator[Law]:
    """Orders of times, Little's law, and the standing checks."""
    f, one = d.figures, np.ones(len(d))
    yield Law("TTFT >= prefill", f["serving.prefill"] + f["serving.first_token"], f[TTFT])
    if not d.apart:
        steps = f["serving.full_step"] * f["serving.burst_steps"] * (f["scheduler.first"] > 0)
        yield Law("warm-up burst <= all prompts in turn", steps, f["memory.batch"] * f["serving.prompt_held"])
    yield Law("median TTFT <= p95", f[TTFT_P50], f[TTFT_P95])
    yield Law("median end to end <= p95", f[E2E_P50], f[E2E_P95])
    yield Law("mean TTFT <= p95", f[TTFT], f[TTFT_P95])
    yield Law("half the median TTFT <= mean", f[TTFT_P50] / 2, f[TTFT])
    yield Law("a twentieth of p95 TTFT <= mean", f[TTFT_P95] / 20, f[TTFT])
    yield Law("TTFT and further tokens <= end to end", f[TTFT] + (d["output_tokens"] - 1) * f[TPOT], f[E2E])
    for phase in ("prefill", "decode"):
        yield Law(f"bytes/s of {phase} <= bandwidth", f[f"{phase}.mbu"], one)
        yield Law(f"FLOP/s of {phase} <= peak", f[f"{phase}.mfu"], one)
    yield from _of_queues(d)
    for name, result in f.items():
        code = name.removeprefix("check.")
        if code != name and code not in STATED:
            yield Law(f"check {code}", one, result)


def _of_queues(d: Deployments) -> Iterator[Law]:
    """Little's law: requests per second × seconds = requests, in the batch, in decode and in flight."""
    f, one = d.figures, np.ones(len(d))
    slots = f["decode.memory.batch" if d.apart else "memory.batch"]
    replicas = d["decode_dp" if d.apart else "dp"]
    held = f["serving.slot_held" if d.apart else "serving.service_time"]
    in_decode = f[REQUESTS] * f["serving.generation"] / replicas
    if d.apart:
        yield Law(
            "prefill workers are busy all the time at most",
            f[REQUESTS] * f["serving.prefill_service"] / d["dp"],
            one,
            0.01,
        )
    if not d.at_rate:
        in_flight = d["concurrency"] * f["serving.in_flight_share"]
        yield Law("requests/s x end to end <= concurrency", f[REQUESTS] * f[E2E], in_flight, TINY)
        yield Law("concurrency <= requests/s x end to end", in_flight, f[REQUESTS] * f[E2E], TINY)
        yield Law("requests/s x time in the batch <= slots", f[REQUESTS] * held / replicas, slots, 0.01)
        most = np.maximum(1, f["decode.batch"])
        yield Law("requests/s x generation <= requests that decode", in_decode, most, 0.02)
        if d.apart:
            whole = np.where(most > 1, most, 0) * f["serving.in_flight_share"]
            quiet = prompt(d) & (d["output_tokens"] > 64)
            yield Law("requests that decode <= requests/s x generation", whole * quiet, in_decode, 0.05)
        return
    opened = f["load.open"]
    most = np.maximum(1, f["load.decoding"])
    yield Law("requests/s served <= asked for", f[REQUESTS] * opened, d["request_rate"] * one)
    yield Law("requests/s served <= limit", f["load.served"] * opened, f["load.limit"] * replicas)
    yield Law("requests/s x end to end = in flight", f[REQUESTS] * f[E2E] * opened, f["load.in_flight"])
    yield Law("requests/s x generation <= requests that decode, at a rate", in_decode * opened, most, 0.02)
