"""Random deployments as arrays, for checks that compare many of them: `python .ci/comparisons.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mantile.equations.build import build_graph
from mantile.equations.graph import EstimateGraph
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Node
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import Library

Array = np.ndarray[Any, np.dtype[Any]]
Figures = Mapping[str, Array]

FAST = ("a100-", "h100-s", "h200", "b200", "b300", "gb", "mi3")  # most deployments are on these
FORMATS = ("bf16", "fp8", "fp8-block", "int8", "nvfp4", "mxfp4", "int4")

HARDWARE = (
    *(f"hardware.peak_{kind}" for kind in ("bf16", "fp16", "fp8", "fp4", "int8")),
    *(f"hardware.{kind}_bandwidth" for kind in ("memory", "link", "pair", "scale_out")),
    "hardware.memory_capacity",
)
UNITS = {"GiB": 2**30, "GB/s": 1e9, "TFLOP/s": 1e12}  # of their cells, in those of the figures
BY_FORMAT = tuple(
    f"efficiency.{name}"
    for name in (
        *("gemm_launch", "gemm_compute", "gemm_bandwidth", "moe_launch", "moe_compute", "moe_bandwidth"),
        *("attention_decode", "latent_decode"),
    )
)
"""Efficiency factors that differ between formats of weights and caches."""

TTFT, TPOT, E2E = "serving.ttft", "serving.tpot", "serving.e2e"
TOKENS, REQUESTS = "serving.output_tokens_per_s", "serving.requests_per_s"
TTFT_P50, TTFT_P95, E2E_P50, E2E_P95 = (
    f"serving.{name}" for name in ("ttft_p50", "ttft_p95", "e2e_p50", "e2e_p95")
)
CAPACITY, WEIGHTS, KV = "memory.capacity_sequences", "memory.all_weights", "memory.kv_bytes_per_request"
PER_TOKEN = "cost.usd_per_million_output"
KEPT = (
    *(TTFT, TPOT, E2E, TOKENS, REQUESTS, TTFT_P50, TTFT_P95, E2E_P50, E2E_P95, CAPACITY, WEIGHTS, KV),
    *("memory.fits", "memory.batch", "memory.redone", "memory.host_kv"),
    *("decode.batch", "decode.mbu", "decode.mfu", "prefill.mbu", "prefill.mfu", "checks.invalid"),
    *("serving.prefill", "serving.prefill_service", "serving.prefill_share", "serving.first_token"),
    *(
        "serving.prompt_delay",
        "serving.prompt_held",
        "serving.full_step",
        "serving.burst_steps",
        "scheduler.first",
    ),
    *("serving.generation", "serving.service_time", "serving.slot_held", "serving.in_flight_share"),
    *("load.utilisation", "load.limit", "load.served", "load.in_flight", "load.open", "load.decoding"),
    *("efficiency.rate.host_bytes", "memory.host_weights", "memory.expert_padding"),
    *(PER_TOKEN, "cost.usd_per_hour", "cost.joules_per_output_token", "cost.power"),
)
"""Figures that relations look at; a graph without a request rate or decode workers lacks some."""


@dataclass(frozen=True)
class Serving:
    """A way of serving. A graph has rows for workers apart and for a request rate, or it has not.

    Args:
        apart: prefill and decode have workers of their own.
        at_rate: requests arrive at a rate.
    """

    apart: bool
    at_rate: bool

    def __str__(self) -> str:
        return f"{'disaggregated' if self.apart else 'aggregated'}{', at a rate' if self.at_rate else ''}"


WAYS = {
    Serving(False, False): 0.4,
    Serving(False, True): 0.2,
    Serving(True, False): 0.25,
    Serving(True, True): 0.15,
}
"""Ways of serving, and their shares of the deployments."""


@dataclass(frozen=True)
class Equations:
    """The equations of a model and way of serving, worked out over arrays of deployments."""

    model: str
    serving: Serving
    graph: EstimateGraph

    @cached_property
    def inputs(self) -> dict[str, Input]:
        """Every input by id."""
        return {item.id: item for item in self.graph.all_inputs()}

    @cached_property
    def kept(self) -> dict[str, Node]:
        """What is looked at, by id; <id>.default is what holds of a factor while nobody overrides it."""
        figures, workers = self.graph.figures, ("", "decode.") if self.serving.apart else ("",)
        wanted = [f"{of}{name}" for of in workers for name in (*HARDWARE, *KEPT)]
        kept: dict[str, Node] = {name: figures[name] for name in (*KEPT, *wanted) if name in figures}
        kept |= {check.result.id: check.result for check in self.graph.checks.checks if check.error}
        factors = {f"{of}{name}" for of in workers for name in BY_FORMAT} & set(self.graph.overridable)
        return kept | {f"{name}.default": self.graph.overridable[name].defaults[0] for name in factors}

    @cached_property
    def program(self) -> Program:
        return Program(list(dict.fromkeys(self.kept.values())))

    def figures(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """What is looked at, by id, of deployments whose inputs are arrays."""
        found = self.program.sweep(inputs)
        count = len(next(iter(inputs.values())))
        figures = {name: np.broadcast_to(found[node], count) for name, node in self.kept.items()}
        with np.errstate(all="ignore"):
            figures["cost.usd"] = figures[PER_TOKEN] * figures[TOKENS]
        return figures

    def default(self, name: str, count: int) -> Array:
        """What stands for an input that nobody states: nothing where it follows others."""
        figure = self.inputs[name]
        if name.endswith(".override"):
            return np.full(count, np.nan)
        if figure.follows is not None:
            return np.full(count, None, dtype=object)
        return np.full(count, figure.value, dtype=object if isinstance(figure.value, str) else float)


class Graphs:
    """The equations of each model and way of serving, made once."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._made: dict[tuple[str, Serving], Equations] = {}

    def __call__(self, model: str, serving: Serving) -> Equations:
        if (model, serving) not in self._made:
            graph = build_graph(build_ir(load_model(model)), self.library, serving.apart, serving.at_rate)
            self._made[model, serving] = Equations(model, serving, graph)
        return self._made[model, serving]


@dataclass(frozen=True)
class Deployments:
    """Deployments of a model that are possible.

    Args:
        inputs: by id, an entry for each.
        figures: what comes of them.
        dice: random numbers for what their neighbours differ in.
    """

    equations: Equations
    inputs: Mapping[str, Array]
    figures: Figures
    dice: np.random.Generator

    def __len__(self) -> int:
        return len(self.inputs["inputs.tp"])

    def __getitem__(self, name: str) -> Array:
        """An input by its name, or a figure by its id."""
        return self.inputs[f"inputs.{name}"] if f"inputs.{name}" in self.inputs else self.figures[name]

    @property
    def apart(self) -> bool:
        """Whether prefill and decode have workers of their own."""
        return self.equations.serving.apart

    @property
    def at_rate(self) -> bool:
        """Whether requests arrive at a rate."""
        return self.equations.serving.at_rate

    def factors(self, least: float, most: float) -> Array:
        """Random factors between two limits, small ones as often as large ones."""
        return np.exp(self.dice.uniform(np.log(least), np.log(most), len(self)))

    def all_of(self, value: Any) -> Array:
        """The same for all."""
        return np.full(len(self), value, dtype=object if value is None or isinstance(value, str) else float)

    def one_of(self, choices: Sequence[Sequence[str]]) -> Array:
        """For each deployment one of its own choices."""
        spots = self.dice.random(len(self))
        return np.array(
            [found[int(spot * len(found))] for found, spot in zip(choices, spots, strict=True)], dtype=object
        )

    def told(self, place: int, changes: Mapping[str, Array] | None = None) -> str:
        """A deployment, or its changes, as fields and their values."""
        stated = self.inputs if changes is None else changes
        values = {name.removeprefix("inputs."): array[place] for name, array in stated.items()}
        said = [
            f"{name}={value:.7g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in values.items()
            if changes is not None
            or (value is not None and value != DULL.get(name, "default") and name != "utilisation")
            if value == value  # no override of what is unknown
        ]
        serving = self.equations.serving
        return " ".join(said if changes is not None else [f"{self.equations.model}, {serving}:", *said])


DULL: Mapping[str, Any] = {
    **dict.fromkeys(("pp", "cp", "ep", "attention_dp"), 1),
    **dict.fromkeys(("offload_weights", "offload_kv", "max_requests", "prompts_per_slot", "microbatches"), 0),
    **dict.fromkeys(("receive_interval", "batch_wait_steps"), 0),
    **{"sequence_parallel": "off", "batching": "continuous", "length_range_ratio": 0.2},
    **{"serving": "disaggregated", "load_duration": 3600},
    **dict.fromkeys(("decode_pp", "decode_cp", "decode_ep", "decode_attention_dp"), 1),
}
"""Values of fields that are not told."""


def possible(figures: Figures) -> Array:
    """Whether a plan can be, and fits."""
    held: Array = (figures["checks.invalid"] == 0) & (figures["memory.fits"] > 0)
    return held & (figures["decode.memory.fits"] > 0) if "decode.memory.fits" in figures else held


def draw(equations: Equations, library: Library, dice: np.random.Generator, count: int) -> Deployments:
    """So many random deployments that are possible."""
    drawn: dict[str, list[Array]] = {}
    kept = 0
    while kept < count:
        inputs = _anything(equations, library, dice, 4 * count)
        found = possible(equations.figures(inputs))
        kept += int(found.sum())
        for name, values in inputs.items():
            drawn.setdefault(name, []).append(values[found])
    inputs = {name: np.concatenate(parts)[:count] for name, parts in drawn.items()}
    return Deployments(equations, inputs, equations.figures(inputs), dice)


class _Dice:
    """Draws values of a field for so many deployments."""

    def __init__(self, dice: np.random.Generator, count: int) -> None:
        self.dice, self.count = dice, count

    def spread(self, least: float, most: float) -> Array:
        """Whole numbers, small ones as often as large ones."""
        return np.round(np.exp(self.dice.uniform(np.log(least), np.log(most), self.count)))

    def of(self, *values: Any, odds: Sequence[float] | None = None) -> Array:
        """One of some values, with these odds."""
        shares = None if odds is None else np.array(odds) / sum(odds)
        texts = any(isinstance(value, str) or value is None for value in values)
        places = self.dice.choice(len(values), self.count, p=shares)
        return np.array(values, dtype=object if texts else float)[places]

    def mostly(self, value: Any, *others: Any, odds: float = 0.8) -> Array:
        """One value in most deployments, else one of others."""
        return self.of(value, *others, odds=(odds, *((1 - odds) / len(others) for _ in others)))

    def either(self, share: float, these: Array, those: Array) -> Array:
        """These in a share of the deployments, those in the rest."""
        return np.where(self.dice.random(self.count) < share, these, those)


def _anything(
    equations: Equations, library: Library, rng: np.random.Generator, count: int
) -> dict[str, Array]:
    """Deployments of every kind, sensible or not, as inputs."""
    dice, serving = _Dice(rng, count), equations.serving
    inputs = _plan(dice, library) | _workload(dice)
    if serving.apart:
        inputs |= _decode_workers(dice, library, inputs)
    if serving.apart or serving.at_rate:
        inputs["batching"] = dice.of("continuous")
    if serving.at_rate:
        inputs |= {"concurrency": dice.of(None), "load_duration": dice.mostly(3600.0, 60.0)}
    has = equations.graph.inputs.named()
    named = {f"inputs.{name}": values for name, values in inputs.items() if name in has}
    if serving.at_rate:
        load = equations.figures(named | {"inputs.request_rate": np.ones(count)})["load.utilisation"]
        with np.errstate(all="ignore"):
            rate = rng.uniform(0.02, 1.2, count) / load
        named["inputs.request_rate"] = np.nan_to_num(rate, nan=1.0, posinf=1.0)
    return named


def _plan(dice: _Dice, library: Library) -> dict[str, Array]:
    chips = [chip.id for chip in library.accelerators]
    fast = dice.of(*(chip for chip in chips if chip.startswith(FAST)))
    return {
        "accelerator": dice.either(0.8, fast, dice.of(*chips)),
        "framework": dice.of("vllm", "sglang", "trtllm", "llama.cpp", odds=(4, 3, 3, 1)),
        "tp": dice.of(1, 2, 4, 8),
        "pp": dice.mostly(1, 2, 3, 4),
        "dp": dice.mostly(1, 2, 3, 4, 8, odds=0.5),
        "attention_dp": dice.mostly(1, 2, 4, 8),
        "cp": dice.mostly(1, 2, odds=0.95),
        "ep": dice.mostly(1, 2, 4, 8, 16, odds=0.5),
        "sequence_parallel": dice.mostly("off", "on"),
        "weights_dtype": dice.mostly(*FORMATS, odds=0.3),
        "kv_dtype": dice.of("bf16", "fp8"),
        "offload_weights": dice.mostly(0, 5, odds=0.95),
        "offload_kv": dice.mostly(0, 20, odds=0.95),
        "microbatches": dice.mostly(0, 1, 4),
    }


def _workload(dice: _Dice) -> dict[str, Array]:
    return {
        "input_tokens": dice.spread(16, 65_536),
        "output_tokens": dice.spread(1, 8192),
        "concurrency": dice.spread(1, 2048),
        "token_budget": dice.of(512, 2048, 8192, 16_384),
        "max_requests": dice.either(0.75, dice.of(0), dice.spread(1, 1024)),
        "prompts_per_slot": dice.mostly(0, 1, 3, 10, odds=0.6),
        "scheduler": dice.mostly("default", "mixed", "prefill-first", "whole-prompts", odds=0.7),
        "kv_admission": dice.mostly("default", "guaranteed", "current-length"),
        "receive_interval": dice.mostly(0, 30, odds=0.95),
        "batch_wait_steps": dice.mostly(0, 20, odds=0.95),
        "length_range_ratio": dice.mostly(0.2, 0, 1),
        "utilisation": dice.dice.uniform(0.05, 1, dice.count),
        "batching": dice.mostly("continuous", "static", odds=0.85),
    }


def _decode_workers(dice: _Dice, library: Library, inputs: Mapping[str, Array]) -> dict[str, Array]:
    fast = dice.of(*(chip.id for chip in library.accelerators if chip.id.startswith(FAST)))
    return {
        "serving": dice.of("disaggregated"),
        "decode_accelerator": dice.either(0.8, inputs["accelerator"], fast),
        "decode_tp": dice.either(0.8, inputs["tp"], dice.of(1, 2, 4, 8)),
        "decode_pp": inputs["pp"],
        "decode_dp": dice.mostly(1, 2, 3, 4, 8, odds=0.4),
        "decode_attention_dp": inputs["attention_dp"],
        "decode_cp": dice.of(1),
        "decode_ep": inputs["ep"],
    }
