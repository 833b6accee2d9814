"""Bodies of requests, with their ranges and examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue

from mantile.library.scenario_fields import MOST_RANKS, MOST_REQUESTS, MOST_TOKENS

Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Field(max_length=200)]
Figure = Annotated[float, Field(gt=0, le=1e7, allow_inf_nan=False)]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Requests = Annotated[int, Field(ge=1, le=MOST_REQUESTS)]
Degree = Annotated[int, Field(ge=1, le=MOST_RANKS)]
Scenario = Annotated[
    dict[str, Any],
    Field(
        description="Fields of a scenario file, whatever their spelling; a field of a plan may be auto.",
        examples=[
            {
                "model": "llama-3.1-8b",
                "accelerator": "h100-sxm",
                "input_tokens": 1024,
                "output_tokens": 128,
                "concurrency": 8,
            }
        ],
    ),
]

_WORKLOAD: dict[str, JsonValue] = {"context_tokens": 1024, "output_tokens": 128, "concurrency": 8}
_SCENARIO: dict[str, JsonValue] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}


class Body(BaseModel):
    """A body: fields that it does not have are refused."""

    model_config = ConfigDict(extra="forbid")


class Gpus(Body):
    """Accelerators of one kind; of a card that is not in the library, its figures too."""

    sku: Identifier = Field(
        validation_alias=AliasChoices("gpu_id", "sku"),
        description="An accelerator, as GET /hardware lists them, or one's own card; `gpu_id` is the same.",
    )
    count: Degree = 1
    vram_gb: Figure | None = Field(default=None, description="Memory of one, GiB.")
    mem_bw_gbps: Figure | None = Field(default=None, description="Bandwidth of its memory, GB/s.")
    fp16_tflops: Figure | None = Field(default=None, description="Dense peak in fp16, TFLOP/s.")
    pcie_gen: Annotated[int, Field(ge=1, le=8)] | None = None
    pcie_lanes: Annotated[int, Field(ge=1, le=32)] | None = None


class Interconnect(Body):
    """What joins the accelerators."""

    type: Words
    bw_gbps: Figure | None = Field(default=None, description="GB/s of one accelerator per direction.")
    latency_us: Figure | None = Field(default=None, description="Told back: timed latencies are used.")


class Cpu(Body):
    """The processor of a host."""

    sku: Words
    cores: Degree | None = None
    mem_bw_gbps: Figure | None = None
    numa_nodes: Degree | None = None


class Storage(Body):
    """The disks of a host."""

    type: Words
    read_gbps: Figure | None = None


class Hardware(Body):
    """What there is: a configuration or host by its id, or accelerators and what is around them."""

    hardware_id: Identifier | None = Field(
        default=None,
        description="A host, an accelerator, or a system with all that are in it; beside gpus a name only.",
    )
    gpus: list[Gpus] = Field(default=[], max_length=8, description="In place of hardware_id.")
    interconnect: Words | Interconnect | None = Field(
        default=None,
        description="How accelerators are linked: id of a system, or a word of its name such as nvlink or "
        "pcie; of unlike accelerators a kind of link, such as 10gbe.",
    )
    cpu: Words | Cpu | None = Field(
        default=None,
        description="With llama.cpp, where weights exceed the memory of gpus: layers run on it if it is one "
        "of GET /hardware. Else told back; no estimate follows from it.",
    )
    ram_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="Memory of the host: weights and KV cache may lie there."
    )
    storage: Words | Storage | None = Field(
        default=None, description="Told back; no estimate follows from it."
    )


class HostAsked(Hardware):
    """A host to store: `sku` of its GPUs is an accelerator, or a card of one's own with its figures."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"hardware_id": "my-host", "gpus": [{"sku": "RTX 4090", "count": 2}], "ram_gb": 128}]
        }
    )

    hardware_id: Identifier
    gpus: list[Gpus] = Field(min_length=1, max_length=8)
    interconnect: Interconnect | None = None
    cpu: Cpu | None = None
    ram_gb: Figure | None = None
    storage: Storage | None = None
    source: Words | None = None


class RuntimeAsked(Body):
    """An engine in a version."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"runtime_id": "our-vllm", "engine": "vllm", "version": "0.10.0", "cuda": "12.8"}]
        }
    )

    runtime_id: Identifier
    engine: Identifier
    version: Words | None = None
    cuda: Words | None = None
    kernel_flags: dict[str, str | bool | float] = Field(default={}, max_length=100)
    supported_formats: list[Words] = Field(default=[], max_length=100)
    scheduler: Words | None = None
    source: Words | None = None


class Workload(Body):
    """What is asked of it, on average."""

    context_tokens: Tokens = Field(description="Tokens of a prompt.")
    output_tokens: Tokens
    concurrency: Requests = 1


class EstimateAsked(Body):
    """A model, what it runs on, and what is asked of it; or a scenario in place of these."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": "llama_3.3_70b",
                    "runtime_id": "vllm",
                    "hardware": {"gpus": [{"sku": "nvidia_h100_80gb", "count": 4}], "ram_gb": 512},
                    "workload": _WORKLOAD,
                    "objective": "cost",
                },
                {"scenario": _SCENARIO, "recommend": 0},
            ]
        }
    )

    model_id: Identifier | None = None
    runtime_id: Identifier = Field(default="vllm", description="As GET /v1/catalog/runtimes lists them.")
    hardware: Hardware | None = None
    workload: Workload | None = None
    objective: Words = Field(
        default="cost",
        description="What is wanted: a measure of `mantile optimize --objective`; largest_model, without "
        "model_id: the largest model of the catalogue that fits.",
    )
    plan: dict[str, Any] | None = Field(
        default=None,
        description="Fields of a scenario that state the plan, such as tp and weights_dtype; chosen where "
        "it is left out.",
    )
    scenario: Scenario | None = None
    recommend: int = Field(default=3, ge=0, le=12, description="Recommended plans of the answer.")


class EstimatesAsked(Body):
    """Several requests of POST /v1/estimate."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"requests": [{"scenario": _SCENARIO, "recommend": 0}]}]}
    )

    requests: list[EstimateAsked] = Field(min_length=1, max_length=100)


LayerType = Literal["attention", "feedforward", "norm", "embedding"]


class LayerMetricsAsked(Body):
    """A kind of layer of a model on a configuration."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": "llama_3.3_70b",
                    "hardware_config": "nvidia_h100_80gb",
                    "layer_type": "attention",
                    "batch_size": 8,
                    "seq_length": 2048,
                    "dtype": "bf16",
                    "tensor_parallel": 4,
                    "context_parallel": 1,
                    "sequence_parallel": False,
                }
            ]
        }
    )

    model_id: Identifier
    hardware_config: Identifier
    layer_type: LayerType
    batch_size: Requests = 1
    seq_length: Tokens
    dtype: Identifier | None = Field(default=None, description="Of its weights; the checkpoint's without.")
    tensor_parallel: Degree = 1
    context_parallel: Degree = 1
    sequence_parallel: bool | Degree = Field(
        default=False, description="Whether norms work on a share of the tokens; as a degree, that of TP."
    )


class AttentionPlan(Body):
    """How attention is spread, and its data type."""

    tensor_parallel: Degree = 1
    context_parallel: Degree = 1
    dtype: Identifier | None = None


class FeedforwardPlan(Body):
    """How FFNs are spread, and their data type."""

    tensor_parallel: Degree | None = Field(
        default=None,
        description="That of attention without. More: attention-DP; fewer: copies of dense FFNs, and EP.",
    )
    sequence_parallel: bool | Degree = False
    dtype: Identifier | None = None


class OtherPlan(Body):
    """Norms or embedding: how they are spread and stored."""

    tensor_parallel: Degree | None = Field(
        default=None, description="1: replicated on all ranks. That of attention: the embedding is split."
    )
    dtype: Identifier | None = None


class LayersPlan(Body):
    """Degrees and data types by kind of layer."""

    attention: AttentionPlan = AttentionPlan()
    feedforward: FeedforwardPlan = FeedforwardPlan()
    norm: OtherPlan = OtherPlan()
    embedding: OtherPlan = OtherPlan()


class SystemMetricsAsked(Body):
    """A model on a configuration, with degrees and data types by kind of layer."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_id": "llama_3.3_70b",
                    "hardware_config": "nvidia_nvl72_rack",
                    "batch_size": 8,
                    "input_seq": 2048,
                    "output_seq": 256,
                    "layers": {
                        "attention": {"tensor_parallel": 4, "context_parallel": 1, "dtype": "bf16"},
                        "feedforward": {"tensor_parallel": 4, "sequence_parallel": False, "dtype": "fp8"},
                        "norm": {},
                        "embedding": {},
                    },
                }
            ]
        }
    )

    model_id: Identifier
    hardware_config: Identifier
    batch_size: Requests = 1
    input_seq: Tokens
    output_seq: Tokens
    layers: LayersPlan = LayersPlan()


class ScenarioAsked(Body):
    """A scenario."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"scenario": _SCENARIO}]})

    scenario: Scenario


class OptimizeAsked(Body):
    """A workload, and which plans may be chosen."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "scenario": {key: _SCENARIO[key] for key in _SCENARIO if key != "accelerator"},
                    "over": {"accelerator": ["h100-sxm", "l40s"], "framework": ["vllm"]},
                    "objective": "cost",
                    "limits": {"ttft_p95": 2, "tpot": 0.04},
                    "gpus_max": 4,
                }
            ]
        }
    )

    scenario: Scenario = Field(description="Fields of a scenario; those of a plan are fixed.")
    over: dict[str, list[Any]] = Field(
        default={}, max_length=12, description="Fields of a plan, with values to choose from."
    )
    objective: Words = "cost"
    limits: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default={}, max_length=20, description="Bounds of measures, in SI units."
    )
    default_limits: bool = Field(
        default=True,
        description="Whether p95 TTFT is limited where limits hold none of TTFT or end-to-end time: 10 s, "
        "more of prompts above 10,000 tokens, 60 s at most.",
    )
    gpus_max: Degree = Field(default=8, description="Accelerators of a deployment, at most.")
    plans: int = Field(default=12, ge=1, le=24)
    search: list[Literal["cp", "disaggregated", "offload", "per-layer-type"]] = Field(
        default=[],
        max_length=4,
        description="What is looked at beyond the usual; per-layer-type: FFNs with a TP of their own.",
    )
    host_memory: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="GB of the host for each accelerator; 0 for none."
    )


class SweepAsked(Body):
    """A scenario, and values of fields or figures, of which every combination is worked out."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"scenario": _SCENARIO, "over": {"tp": [1, 2], "concurrency": [4, 16, 64]}, "feasible": True}
            ]
        }
    )

    scenario: Scenario
    over: dict[str, list[Any]] = Field(min_length=1, max_length=8)
    feasible: bool = Field(default=False, description="Only points that fit.")
    format: Literal["ndjson", "csv"] = "ndjson"


class RunRecord(BaseModel):
    """A measured run: a case of a scenario with its model, metrics, source and date.

    `mantile reconcile --template` prints one with each field explained. Or a flat record as `mantile records
    export` writes it: run_id, timestamp_utc, model_id, runtime_id, hardware_id, quant, context_tokens,
    output_tokens, concurrency, parallelism, metrics, env.
    """

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "examples": [
                {
                    "id": "my-run-1",
                    "model": "llama-3.1-8b",
                    "accelerator": "h100-sxm",
                    "framework": "vllm",
                    "tp": 1,
                    "input_tokens": 1024,
                    "output_tokens": 128,
                    "concurrency": 8,
                    "metrics": {"ttft_s": 0.07, "tpot_s": 0.0084},
                    "source": "our own run",
                    "date": "2026-11-20",
                }
            ]
        },
    )

    metrics: dict[str, Any]
