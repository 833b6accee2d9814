"""The efficiency factors there are: what each means, its unit and range, and which operations need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mantile.ir.modules import Attention, GroupedMatMul, Indexer, LatentAttention, Recurrence, Vision

Condition = Literal["format", "kv", "ranks"]
RANKS = (2, 4, 8)
FORMATS = ("bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only")
KV_FORMATS = ("bf16", "fp8")
DOMAINS: dict[Condition | None, tuple[object, ...]] = {
    None: (None,),
    "format": FORMATS,
    "kv": KV_FORMATS,
    "ranks": RANKS,
}
CONDITIONS: dict[Condition | None, str] = {"format": "kernel format", "kv": "KV format", "ranks": "ranks"}


@dataclass(frozen=True)
class FactorKind:
    """A kind of efficiency factor.

    A factor that differs by kernel format is worked out for every class of matrices that uses it; one that
    differs by number of ranks for the groups of ranks that use it.

    Args:
        label, unit, note: of its block on the Efficiency sheet.
        low, high: the range in which it must lie.
        condition: what its figures differ by; None where one figure holds always.
        fraction: whether it is a share of a peak.
        needs: the operations of which a model must have one to need it; empty where every model does.
        groups: of ranks that use it: those of TP, or of a stage.
        otherwise: the figure where the library states none, as those made before the factor was there; None
            where each must.
    """

    name: str
    label: str
    unit: str
    note: str
    low: float
    high: float
    condition: Condition | None = None
    fraction: bool = False
    needs: tuple[type, ...] = ()
    groups: tuple[str, ...] = ("tp",)
    otherwise: float | None = None


KINDS = (
    FactorKind("gemm_launch", "GEMM launch overhead", "us",
               "time a matrix product takes before its first byte", 0, 500, "format"),
    FactorKind("gemm_compute", "GEMM compute efficiency", "1",
               "share of the dense peak a large product reaches", 0.05, 1, "format", True),
    FactorKind("gemm_bandwidth", "GEMM bandwidth efficiency", "1",
               "share of memory bandwidth a product reaches that streams its weights",
               0.05, 1, "format", True),
    FactorKind("gemm_bandwidth_scale", "GEMM bandwidth scale", "1",
               "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("launch_scale", "Launch overhead scale", "1",
               "serving runs with graphs against kernel timings", 0.1, 5),
    FactorKind("moe_launch", "Expert launch overhead", "us",
               "time the grouped products of a layer's experts take before their first byte",
               0, 1000, "format", needs=(GroupedMatMul,)),
    FactorKind("moe_compute", "Expert compute efficiency", "1",
               "share of the dense peak large grouped products reach",
               0.01, 1, "format", True, (GroupedMatMul,)),
    FactorKind("moe_sent", "Expert compute over sent tokens", "1",
               "rate of grouped products over tokens sent to their experts and sorted, against others",
               0.3, 10, needs=(GroupedMatMul,), otherwise=1),
    FactorKind("moe_bandwidth", "Expert bandwidth efficiency", "1",
               "share of memory bandwidth grouped products reach that stream experts",
               0.05, 1, "format", True, (GroupedMatMul,)),
    FactorKind("moe_widening", "Expert widening rate", "GB/s",
               "weight bytes per second that grouped products can widen to 16 bit, where they do not "
               "multiply in the format of the weights: a limit of the cores, whatever the memory",
               1, 1_000_000, needs=(GroupedMatMul,), otherwise=1_000_000),
    FactorKind("moe_launch_scale", "Expert launch scale", "1",
               "serving runs with graphs against kernel timings", 0.1, 5, needs=(GroupedMatMul,)),
    FactorKind("moe_bandwidth_scale", "Expert bandwidth scale", "1",
               "serving runs against kernel timings", 0.3, 1.3, needs=(GroupedMatMul,)),
    FactorKind("launch_current", "Launches of current engines", "1",
               "launches of engines released since May 2026 against those before",
               0.3, 2, needs=(GroupedMatMul,), otherwise=1),
    FactorKind("moe_early", "Early expert kernels", "1",
               "time of grouped products in engines released before December 2025 against later ones",
               1, 3, needs=(GroupedMatMul,)),
    FactorKind("routing_spread", "Routing spread", "1",
               "exponent of the tokens in the expert coverage; 1 if routing were uniform",
               0.3, 20, needs=(GroupedMatMul,)),
    FactorKind("expert_imbalance", "Expert imbalance", "1",
               "work of the busiest rank's experts against the mean", 1, 10, needs=(GroupedMatMul,)),
    FactorKind("attention_launch", "Attention launch overhead", "us",
               "time an attention kernel takes before its first byte",
               0, 500, needs=(Attention, Indexer, Vision)),
    FactorKind("attention_prefill", "Prefill attention efficiency", "1",
               "share of the bf16 peak in fused causal attention", 0.01, 1, None, True),
    FactorKind("attention_prefill_scale", "Prefill attention scale", "1",
               "serving runs against kernel timings", 0.3, 1.3),
    FactorKind("attention_prefill_fp8", "Prefill attention over an fp8 cache", "1",
               "its rate against that over a cache in 16 bit, by the kernels of the framework",
               0.3, 2, needs=(Attention,), otherwise=1),
    FactorKind("attention_decode", "Decode attention efficiency", "1",
               "share of memory bandwidth when the KV cache is read",
               0.05, 1, "kv", True, (Attention, Indexer)),
    FactorKind("attention_decode_scale", "Decode attention scale", "1",
               "serving runs against kernel timings", 0.3, 1.3, needs=(Attention, LatentAttention, Indexer)),
    FactorKind("latent_launch", "Latent attention launch overhead", "us",
               "time a latent attention kernel takes before its first byte",
               0, 500, needs=(LatentAttention,)),
    FactorKind("latent_decode", "Latent attention bandwidth", "1",
               "share of memory bandwidth when latents are read", 0.05, 1, "kv", True, (LatentAttention,)),
    FactorKind("latent_compute", "Latent attention compute", "1",
               "share of the bf16 peak in absorbed decode attention",
               0.05, 1, None, True, (LatentAttention,)),
    FactorKind("state_launch", "State update launch overhead", "us",
               "time a recurrent kernel takes before its first byte", 0, 500, needs=(Recurrence,)),
    FactorKind("state_bandwidth", "State bandwidth", "1",
               "share of memory bandwidth when recurrent states are read and written",
               0.05, 1, None, True, (Recurrence,)),
    FactorKind("small_kernel", "Small kernel overhead", "us",
               "time of a fused elementwise kernel before its bytes", 0, 100),
    FactorKind("elementwise_bandwidth", "Elementwise efficiency", "1",
               "share of memory bandwidth in norms and activations", 0.05, 1, None, True),
    FactorKind("step_host", "Host time per step", "us",
               "scheduler and sampling, once per forward pass", 0, 50_000),
    FactorKind("step_row", "Host time per request in a step", "us",
               "scheduler and sampling, per request in the batch", 0, 1_000),
    FactorKind("one_shot_latency", "One-shot latency", "us",
               "fixed part of an all-reduce in which every rank reads all others", 0, 1_000, "ranks"),
    FactorKind("one_shot_bandwidth", "One-shot bandwidth efficiency", "1",
               "share of the links such an all-reduce reaches", 0.01, 1, None, True),
    FactorKind("two_shot_latency", "Two-shot latency", "us",
               "fixed part of an all-reduce that scatters and gathers at once", 0, 1_000, "ranks"),
    FactorKind("two_shot_bandwidth", "Two-shot bandwidth efficiency", "1",
               "share of the links such an all-reduce reaches", 0.01, 1, "ranks", True),
    FactorKind("in_switch_latency", "In-switch latency", "us",
               "fixed part of an all-reduce that the switch sums", 0, 1_000),
    FactorKind("in_switch_bandwidth", "In-switch bandwidth efficiency", "1",
               "share of the links such an all-reduce reaches", 0.01, 1, None, True),
    FactorKind("ring_latency", "Ring start", "us",
               "fixed part of a collective around a ring", 0, 10_000),
    FactorKind("ring_step", "Ring step", "us",
               "fixed part of every step around the ring", 0, 10_000),
    FactorKind("ring_bandwidth", "Ring bandwidth efficiency", "1",
               "share of the links a ring reaches", 0.01, 1, None, True),
    FactorKind("torus_hop", "Torus hop", "us",
               "fixed part of every hop along an axis", 0, 1_000),
    FactorKind("torus_bandwidth", "Torus bandwidth efficiency", "1",
               "share of the links a collective over a torus reaches", 0.01, 1, None, True),
    FactorKind("all_reduce_latency_scale", "All-reduce latency scale", "1",
               "serving runs against kernel timings", 0.1, 5),
    FactorKind("gather_latency", "Gather latency", "us",
               "fixed part of an all-gather or a reduce-scatter", 0, 1_000, "ranks",
               groups=("tp", "stage", "dcp", "ffn")),
    FactorKind("gather_bandwidth", "Gather bandwidth efficiency", "1",
               "share of the links an all-gather or a reduce-scatter reaches",
               0.01, 1, "ranks", True, groups=("tp", "stage", "dcp", "ffn")),
    FactorKind("all_to_all_latency", "All-to-all latency", "us",
               "fixed part of an all-to-all", 0, 1_000, "ranks", needs=(GroupedMatMul,), groups=("stage",)),
    FactorKind("all_to_all_bandwidth", "All-to-all bandwidth efficiency", "1",
               "share of the links an all-to-all reaches",
               0.01, 1, "ranks", True, (GroupedMatMul,), ("stage",)),
    FactorKind("network_latency", "Network latency", "us",
               "fixed part of a step between domains", 0, 10_000),
    FactorKind("network_bandwidth", "Network efficiency", "1",
               "share of the network between domains that is reached", 0.01, 1, None, True),
    FactorKind("p2p_latency", "Point-to-point latency", "us",
               "fixed part of a message between pipeline stages", 0, 10_000),
    FactorKind("p2p_bandwidth", "Point-to-point efficiency", "1",
               "share of the link a message between stages reaches", 0.05, 1, None, True),
    FactorKind("all_reduce_overlap", "All-reduce overlap", "1",
               "share of all-reduce time hidden behind computation", 0, 1),
    FactorKind("gather_overlap", "Gather overlap", "1",
               "share of all-gather and reduce-scatter time hidden behind computation", 0, 1),
    FactorKind("all_to_all_overlap", "All-to-all overlap", "1",
               "share of all-to-all time hidden behind computation", 0, 1, needs=(GroupedMatMul,)),
    FactorKind("p2p_overlap", "Point-to-point overlap", "1",
               "share of the time between stages hidden behind computation", 0, 1),
    FactorKind("kv_transfer_overlap", "KV transfer overlap", "1",
               "share of the KV transfer that follows prefill layer by layer", 0, 1),
    FactorKind("host_link", "Host link efficiency", "1",
               "share of the link to host memory that is reached", 0.05, 1, None, True),
    FactorKind("interference", "Prefill interference", "1",
               "share of the other requests' prefill time that delays decode", 0, 2),
    FactorKind("queueing", "Prefill queueing", "1",
               "wait behind other prompts against the scheduler's closed form", 0, 10),
    FactorKind("eager_launch", "Eager launch", "us",
               "host time to start an operation of a prompt by itself, outside a graph",
               0, 5_000, otherwise=0),
    FactorKind("eager_mode_launch", "Launch in eager mode", "us",
               "host time to start an operation in an engine without graphs and compilation (enforce_eager)",
               0, 5_000, otherwise=0),
    FactorKind("step_lag", "First-step lag", "1",
               "decode steps that pass around a prefill: rest of the running one, scheduler and detokeniser",
               0, 10),
    FactorKind("cold_start", "Cold start", "us",
               "what the warm-up burst of a benchmark waits for: compilation, caches", 0, 60_000_000),
    FactorKind("expert_cold_start", "Cold start of experts", "us",
               "what the warm-up burst waits for, per billion parameters of routed experts",
               0, 1_000_000, needs=(GroupedMatMul,), otherwise=0),
    FactorKind("first_token", "First-token overhead", "us",
               "request handling, tokenizer and detokenizer", 0, 10_000_000),
    FactorKind("memory_usable", "Usable memory", "1",
               "share of memory the engine takes for weights and KV cache", 0.05, 1, None, True),
    FactorKind("runtime_reserve", "Runtime reserve", "GB",
               "context and all else outside the framework's own memory, of a rank by itself", 0, 100),
    FactorKind("communication_reserve", "Communication buffers", "GB",
               "of a rank that works together with others", 0, 100, otherwise=0),
    FactorKind("switch_reserve", "Buffers of the switch", "GB",
               "more of them where the switch reduces", 0, 100, otherwise=0),
    FactorKind("graph_memory", "Graphs of a layer", "GB",
               "captured graphs, per layer; twice as much where ranks work together", 0, 10, otherwise=0),
    FactorKind("graphs_inside", "Graphs inside the share of memory", "1",
               "1: they count in the share that the engine may use, 0: they come on top", 0, 1, otherwise=1),
    FactorKind("scores_held", "Scores of attention in memory", "1",
               "1 without flash attention: those of a step are written down", 0, 1, otherwise=0),
    FactorKind("logits_of_all", "Logits of all tokens of a step", "1",
               "1 where the engine has room for those of every token, not of the last", 0, 1, otherwise=0),
    FactorKind("host_process", "Host memory of a rank", "GB",
               "of the processes that serve a rank, without weights and KV cache", 0, 1_000, otherwise=0),
    FactorKind("sampler_copies", "Copies of logits in a start-up profile", "1",
               "of all requests that run at once: logits, probabilities, sorted ones", 0, 100, otherwise=0),
)  # fmt: skip

_SUBJECTS = {
    "gemm_launch": "Matrix products",
    "attention_launch": "Attention and states",
    "small_kernel": "Small kernels and host",
    "one_shot_latency": "Between accelerators",
    "host_link": "Host, queue and first token",
    "memory_usable": "Memory",
}  # by the first factor of each


def subject(kind: FactorKind) -> str:
    """What a factor is about."""
    names = [other.name for other in KINDS]
    return next(
        title for first, title in reversed(_SUBJECTS.items()) if names.index(first) <= names.index(kind.name)
    )


OF_TPOT = (
    "launch_scale",
    "gemm_bandwidth_scale",
    "attention_decode_scale",
    "moe_bandwidth_scale",
    "all_reduce_latency_scale",
    "interference",
    "step_row",
)
"""What is fitted to TPOT: a factor for each part of it that runs can tell apart."""
OF_TTFT = ("gemm_compute", "first_token", "queueing")
"""What is fitted to TTFT."""
