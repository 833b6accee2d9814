"""Bodies of requests, with their ranges and examples."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mantile.library.scenario_fields import MOST_RANKS, MOST_REQUESTS, MOST_TOKENS

Identifier = Annotated[str, Field(min_length=1, max_length=200)]
Words = Annotated[str, Field(max_length=200)]
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
    """Accelerators of one kind."""

    gpu_id: Identifier = Field(description="An accelerator, as GET /hardware lists them.")
    count: Degree = 1


class Hardware(Body):
    """What there is: a configuration by its id, or accelerators and what is around them."""

    hardware_id: Identifier | None = Field(
        default=None, description="An accelerator, or a system with all that are in it."
    )
    gpus: list[Gpus] = Field(default=[], max_length=8, description="In place of hardware_id.")
    interconnect: Words | None = Field(
        default=None,
        description="How accelerators are linked: id of a system, or a word of its name such as nvlink or "
        "pcie; of unlike accelerators a kind of link, such as 10gbe.",
    )
    cpu: Words | None = Field(
        default=None,
        description="With llama.cpp, where weights exceed the memory of gpus: layers run on it if it is one "
        "of GET /hardware. Else told back; no estimate follows from it.",
    )
    ram_gb: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None, description="Memory of the host: weights and KV cache may lie there."
    )
    storage: Words | None = Field(default=None, description="Told back; no estimate follows from it.")


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
                    "hardware": {"gpus": [{"gpu_id": "nvidia_h100_80gb", "count": 4}], "ram_gb": 512},
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
        default="cost", description="What is wanted: a measure of `mantile optimize --objective`."
    )
    plan: dict[str, Any] | None = Field(
        default=None,
        description="Fields of a scenario that state the plan, such as tp and weights_dtype; chosen where "
        "it is left out.",
    )
    scenario: Scenario | None = None
    recommend: int = Field(default=3, ge=0, le=12, description="Recommended plans of the answer.")


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

    tensor_parallel: Degree | None = Field(default=None, description="That of attention without.")
    sequence_parallel: bool | Degree = False
    dtype: Identifier | None = None


class OtherPlan(Body):
    """Norms or embedding: how they are stored, and what follows from the others."""

    tensor_parallel: Degree | None = Field(default=None, description="That of attention; none of its own.")
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
    search: list[Literal["cp", "disaggregated", "offload"]] = Field(default=[], max_length=3)
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

    `mantile reconcile --template` prints one with each field explained.
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

    id: Identifier
    model: Identifier
    metrics: dict[str, Any]
