"""The table of fields of a scenario: the rows of the Inputs sheet and the flags of the command line.

What a field is called, its unit, bounds and default stand here once; of workers and devices as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import PlainSerializer, ValidationInfo, field_validator, model_validator

from mantile.library.dates import day_of, serial, today
from mantile.library.device import DEVICE_FIELDS, MOST_DEVICES, OF_FIRST, of_device
from mantile.library.documents import Strict
from mantile.library.errors import InputError
from mantile.library.fields import (
    DECODE,
    DEPLOYMENT,
    MONEY,
    PREFILL,
    WORKERS,
    Name,
    Real,
    ScenarioField,
    Switch,
    Text,
    Whole,
    field,
    read_fields,
)
from mantile.library.profiles import ADMISSIONS, CACHE_POLICIES, SCHEDULERS
from mantile.library.releases import release_day

FIRST_DAY, LAST_DAY = serial(date(2000, 1, 1)), serial(date(2099, 12, 31))
_DAY = re.compile(r"\d{4}-\d\d?-\d\d?")
Day = Annotated[Whole, PlainSerializer(lambda day: day_of(day).isoformat(), when_used="json")]
DEFAULT = "default"  # as the framework does
DEFAULT_SYSTEM = "default"  # the system an accelerator usually comes in
SAME = "same"  # a class of matrices that has the data type of the weights
MOST_RANKS, MOST_STAGES, MOST_REPLICAS = 1024, 8, 1024
MOST_TOKENS, MOST_REQUESTS, MOST_STEPS = 10_000_000, 1_000_000, 10_000
MOST_DRAFTS = 8
_CHECKPOINT = "the checkpoint's"


def plain_spelling(name: object) -> str:
    """A name of a field without regard to case and to what joins its parts."""
    return re.sub(r"[-. ]", "_", str(name).lower())


@cache
def _spellings(document: type[Strict]) -> Mapping[str, str]:
    """By other spelling, the name of the field of a document."""
    return {
        spelling: name
        for name, info in document.model_fields.items()
        if isinstance(info.json_schema_extra, ScenarioField)
        for spelling in (*info.json_schema_extra.aliases, *info.json_schema_extra.former, name)
    }


def own_names(document: type[Strict], data: Mapping[Any, Any]) -> dict[Any, Any]:
    """The fields of a document under our names; what is no field of it stays as it is.

    Raises:
        InputError: if a field is given twice, under two names.
    """
    spellings = _spellings(document)
    return renamed(data, lambda given: spellings.get(plain_spelling(given), given))


def renamed(data: Mapping[Any, Any], name_of: Callable[[Any], Any]) -> dict[Any, Any]:
    """Fields under other names.

    Raises:
        InputError: if two of them get the same.
    """
    found: dict[Any, Any] = {}
    for given, value in data.items():
        name = name_of(given)
        if name in found:
            raise InputError(f"field {name}: given twice, once as {given}")
        found[name] = value
    return found


class Spread(Strict):
    """Accelerators and how a model is spread over them."""

    accelerator: Name | None = field(
        "Accelerator",
        "chip of the system",
        group=DEPLOYMENT,
        required=True,
        listed="accelerators",
        hint="an id of `mantile list hardware`, or a file: chip.yaml",
        common=True,
        aliases=("gpu",),
    )
    system: Text | None = field(
        "System",
        f"how accelerators are linked; {DEFAULT_SYSTEM}: the accelerator's usual system",
        group=DEPLOYMENT,
        default=DEFAULT_SYSTEM,
        otherwise="the accelerator's usual one",
        listed="systems",
    )
    framework: Text | None = field(
        "Framework",
        "serving framework",
        group=DEPLOYMENT,
        default="vllm",
        listed="frameworks",
        common=True,
        aliases=("engine",),
    )
    tp: Whole | None = field(
        "Tensor parallel",
        "ranks among which attention, and with it every layer, is split",
        group=DEPLOYMENT,
        unit="rank",
        default=1,
        least=1,
        most=MOST_RANKS,
        term="TP",
        aliases=("tensor_parallel_size", "tp_size", "tensor_parallel"),
        common=True,
    )
    pp: Whole | None = field(
        "Pipeline parallel",
        "stages among which the layers are divided",
        group=DEPLOYMENT,
        unit="stage",
        default=1,
        otherwise="1; follows from the devices, if there are any",
        follows="devices",
        least=1,
        most=MOST_STAGES,
        term="PP",
        aliases=("pipeline_parallel_size", "pp_size", "pipeline_parallel"),
    )
    dp: Whole | None = field(
        "Data parallel",
        "replicas that share the requests; workers where prefill and decode are apart",
        group=DEPLOYMENT,
        unit="replica",
        default=1,
        least=1,
        most=MOST_REPLICAS,
        term="DP",
        aliases=("data_parallel_size", "data_parallel"),
    )
    ep: Whole | None = field(
        "Expert parallel",
        "groups among which the experts of a layer are divided; must divide the ranks of a stage",
        group=DEPLOYMENT,
        unit="rank",
        default=1,
        least=1,
        most=MOST_RANKS,
        term="EP",
        aliases=("expert_parallel_size", "ep_size", "moe_ep_size", "expert_parallel"),
    )
    attention_dp: Whole | None = field(
        "Attention DP",
        (
            "groups that hold the attention weights each and share the requests; FFNs and experts are spread "
            "over all of them"
        ),
        group=DEPLOYMENT,
        unit="rank",
        default=1,
        least=1,
        most=MOST_RANKS,
        term="attention-DP",
        aliases=("dp_attention",),
    )
    cp: Whole | None = field(
        "Context parallel",
        "groups that share the tokens of a request: its prompt in prefill, its KV cache in decode",
        group=DEPLOYMENT,
        unit="rank",
        default=1,
        least=1,
        most=MOST_RANKS,
        term="CP",
        aliases=("context_parallel_size", "cp_size"),
    )

    @classmethod
    def field_names(cls) -> list[str]:
        """What its fields may be called, aliases included."""
        return [*super().field_names(), *_spellings(cls)]

    @classmethod
    def explained(cls, name: str) -> str | None:
        """What a setting of an engine means that no field stands for."""
        from mantile.library.engine_words import meaning_of

        return meaning_of(name)

    @model_validator(mode="before")
    @classmethod
    def _by_own_names(cls, data: Any) -> Any:
        """The fields of a file under our names, whatever their spelling."""
        return own_names(cls, data) if isinstance(data, Mapping) else data


class Inputs(Spread):
    """All fields of a scenario that are rows of the Inputs sheet and flags of the command line."""

    framework_support: Literal["documented", "own build"] | None = field(
        "Framework support",
        (
            "documented: what the framework cannot run by its documents is refused; own build: yours is "
            "taken to run whatever is asked of it"
        ),
        group=DEPLOYMENT,
        default="documented",
        needs="own build",
    )
    sequence_parallel: Switch | None = field(
        "Sequence parallel",
        "on: norms work on a share of the tokens; all-reduces become a reduce-scatter and an all-gather",
        group=DEPLOYMENT,
        default="off",
    )
    weights_dtype: Text | None = field(
        "Weights",
        "data type of the matrices; classes of them may differ",
        group=DEPLOYMENT,
        otherwise=_CHECKPOINT,
        initial="bf16",
        listed="datatypes",
        role="weights",
        term="weights data type",
        common=True,
        aliases=(
            "dtype",
            "quantization",
        ),
    )
    activation_dtype: Text | None = field(
        "Activations",
        "data type in which matrices are multiplied, where the accelerator has it",
        group=DEPLOYMENT,
        otherwise="follows the weights",
        initial="bf16",
        follows="accelerator and weights",
        listed="datatypes",
        role="activations",
        term="activation data type",
    )
    kv_dtype: Text | None = field(
        "KV cache",
        "data type of keys and values",
        group=DEPLOYMENT,
        default="bf16",
        listed="datatypes",
        role="kv",
        term="KV data type",
        aliases=("kv_cache_dtype",),
        common=True,
    )
    head_dtype: Text | None = field(
        "LM head",
        "data type of the LM head, and of a tied embedding",
        group=DEPLOYMENT,
        otherwise="the checkpoint's; with other weights as files in their data type have it",
        initial="bf16",
        follows="weights",
        listed="datatypes",
        role="weights",
        term="LM head data type",
    )
    embedding_dtype: Text | None = field(
        "Embedding",
        "data type of an embedding that is not the LM head",
        group=DEPLOYMENT,
        otherwise="the checkpoint's; with other weights as files in their data type have it",
        initial="bf16",
        follows="weights",
        listed="datatypes",
        role="weights",
        term="embedding data type",
        needs="embedding",
    )
    attention_dtype: Text | None = field(
        "Attention weights",
        f"data type of the mixers' matrices; {SAME}: as the weights",
        group=DEPLOYMENT,
        default=SAME,
        otherwise=_CHECKPOINT,
        listed="datatypes",
        role="weights",
        term="attention weights data type",
    )
    ffn_dtype: Text | None = field(
        "FFN weights",
        f"dense FFNs and shared experts; {SAME}: as the weights",
        group=DEPLOYMENT,
        default=SAME,
        otherwise=_CHECKPOINT,
        listed="datatypes",
        role="weights",
        term="ffn weights data type",
        needs="dense FFNs",
    )
    experts_dtype: Text | None = field(
        "Expert weights",
        f"data type of routed experts; {SAME}: as the weights",
        group=DEPLOYMENT,
        default=SAME,
        otherwise=_CHECKPOINT,
        listed="datatypes",
        role="weights",
        term="expert weights data type",
        needs="experts",
    )
    offload_weights: Real | None = field(
        "Weights on the host",
        "weights that stay in host memory, per accelerator; read over the host link in every pass",
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=10_000,
        aliases=("cpu_offload_gb",),
    )
    offload_kv: Real | None = field(
        "KV cache on the host",
        "part of the KV cache in host memory, per accelerator; read over the host link in every decode step",
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=10_000,
    )
    kv_swap: Real | None = field(
        "Parked KV cache on the host",
        (
            "host memory, per accelerator, for the KV cache of requests that are stopped when memory runs "
            "out: it goes there and comes back once; 0: they prefill again, as in the V1 engine of vLLM"
        ),
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=10_000,
        aliases=("swap_space",),
    )
    gpu_memory_utilization: Real | None = field(
        "Share of memory for the engine",
        (
            "share of each accelerator's memory for weights, buffers and KV cache; "
            "0: efficiency.memory_usable, or mem_fraction_static"
        ),
        group=DEPLOYMENT,
        default=0,
        least=0,
        most=1,
        needs="memory share",
    )
    mem_fraction_static: Real | None = field(
        "Share of memory for weights and KV cache",
        "as SGLang counts it: graphs and buffers lie outside that share; 0: another share holds",
        group=DEPLOYMENT,
        default=0,
        least=0,
        most=1,
        needs="memory share",
    )
    memory_taken: Real | None = field(
        "Memory that others take",
        "other models or programs on the same accelerators: their memory, per accelerator",
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=10_000,
        needs="other models",
    )
    lora_adapters: Whole | None = field(
        "LoRA adapters",
        (
            "adapters that an accelerator holds at once, beside every matrix of the layers; each request "
            "asks for one, all equally often; 0: none"
        ),
        group=DEPLOYMENT,
        unit="number",
        default=0,
        least=0,
        most=1024,
        aliases=("max_loras", "max_loras_per_batch", "loras"),
        needs="adapters",
    )
    lora_rank: Whole | None = field(
        "Rank of adapters",
        "largest rank: engines keep room for it and work with it, whatever rank an adapter has",
        group=DEPLOYMENT,
        unit="channel",
        default=16,
        least=1,
        most=512,
        aliases=("max_lora_rank",),
        needs="adapters",
    )
    tp_padding: Literal["default", "padded", "refused"] | None = field(
        "TP padding",
        (
            f"heads and columns that TP does not divide; {DEFAULT}: as the framework does on such chips; "
            "padded: the fullest rank counts; refused: the plan cannot be"
        ),
        group=DEPLOYMENT,
        default=DEFAULT,
        otherwise="the framework's",
        needs="TP padding",
    )
    ffn_tp: Whole | None = field(
        "TP of FFNs",
        (
            "ranks that share a dense FFN or a shared expert: a divisor of TP, each group with a copy, "
            "or all ranks of a stage; 0: all ranks of a stage, or TP where tokens are sent to experts"
        ),
        group=DEPLOYMENT,
        unit="rank",
        default=0,
        least=0,
        most=MOST_RANKS,
        aliases=("moe_dense_tp_size", "dense_tp"),
        needs="TP of FFNs",
    )
    embedding_tp: Whole | None = field(
        "TP of the embedding",
        "ranks that share the rows of the embedding: 1, where each holds them all, or TP; 0: TP",
        group=DEPLOYMENT,
        unit="rank",
        default=0,
        least=0,
        most=MOST_RANKS,
        needs="TP of the embedding",
    )
    dcp: Whole | None = field(
        "Decode context parallel",
        (
            "ranks of TP among which the tokens of a KV cache are divided that all of them would hold; each "
            "looks at its tokens for the heads of all. It divides TP ÷ KV heads, or TP where latents are kept"
        ),
        group=DEPLOYMENT,
        unit="rank",
        default=1,
        least=1,
        most=MOST_RANKS,
        term="DCP",
        aliases=("dcp_size",),
        needs="decode CP",
    )
    device_split: Literal["solved", "memory", "bandwidth", "even", "rest"] | None = field(
        "Layers per device",
        (
            "how devices share the layers: solved for the most tokens per second at this load (equal devices "
            "evenly), by memory, bandwidth, evenly; rest: the first holds what others do not state, as the "
            "CPU beside -ngl of llama.cpp"
        ),
        group=DEPLOYMENT,
        default="solved",
        needs="devices",
    )
    links: Literal["chain", "ring", "star", "mesh"] | None = field(
        "Links between devices",
        (
            "which there are: chain: from each device to the next; ring: also from the last to the first; "
            "star: of each to a switch; mesh: between any two"
        ),
        group=DEPLOYMENT,
        default="chain",
        needs="links",
    )
    compute_speed: Real | None = field(
        "Compute speed",
        "all FLOP/s reached, against those that datasheet and efficiency give; 0.5: half as fast",
        group=DEPLOYMENT,
        default=1,
        least=0.01,
        most=1,
    )
    network_speed: Real | None = field(
        "Network speed",
        "bandwidth of all links between accelerators, against that of the datasheet; 0.5: half as fast",
        group=DEPLOYMENT,
        default=1,
        least=0.01,
        most=1,
    )
    serving: Literal["aggregated", "disaggregated"] | None = field(
        "Serving",
        (
            "disaggregated: prefill and decode have workers of their own; aggregated: the same accelerators "
            "do both"
        ),
        otherwise="disaggregated where decode workers are given",
        initial="disaggregated",
        needs="decode workers",
    )
    handover_bandwidth: Real | None = field(
        "Bandwidth of the handover",
        "over which the KV cache of prompts goes to decode workers; 0: there is no way",
        unit="GB/s",
        initial=0,
        otherwise="that of their networks, or of the ports of both machines",
        follows="networks",
        needs="handover",
        least=0,
        most=100_000,
    )
    batching: Literal["continuous", "static"] | None = field(
        "Batching",
        "continuous: requests join and leave a running batch; static: a batch starts and ends together",
        default="continuous",
    )
    input_tokens: Whole | None = field(
        "Input tokens",
        "mean prompt length",
        unit="token/request",
        required=True,
        initial=1024,
        otherwise="follows from the classes of requests, if there are any",
        follows="classes",
        least=1,
        most=MOST_TOKENS,
        aliases=("isl", "input_len", "prompt_tokens"),
        common=True,
    )
    output_tokens: Whole | None = field(
        "Output tokens",
        "mean generated length",
        unit="token/request",
        required=True,
        initial=128,
        otherwise="follows from the classes of requests, if there are any",
        follows="classes",
        least=1,
        most=MOST_TOKENS,
        aliases=("osl", "output_len", "max_tokens"),
        common=True,
    )
    concurrency: Whole | None = field(
        "Concurrency",
        (
            "requests in flight at any time, over all replicas; with a request rate: at most so many; with "
            "sessions: in place of those that follow from them"
        ),
        unit="request",
        required=True,
        otherwise="follows from the request rate or from sessions, if there are any",
        initial=1,
        follows="another load",
        least=1,
        most=MOST_REQUESTS,
        aliases=("max_concurrency", "batch_size"),
        common=True,
    )
    request_rate: Real | None = field(
        "Request rate",
        "requests that arrive per second, over all replicas, whatever is in flight; 0: concurrency is kept",
        unit="request/s",
        default=0,
        least=0,
        most=MOST_REQUESTS,
        aliases=("qps", "rps"),
        needs="request rate",
        common=True,
    )
    load_duration: Real | None = field(
        "Duration of the load",
        "seconds for which requests arrive at the rate; an overload makes the queue grow for so long",
        unit="s",
        default=3600,
        least=1,
        most=31_536_000,
        needs="request rate",
    )
    sessions: Real | None = field(
        "Sessions",
        (
            "people or agents who send a request, wait for its answer, think and send the next, over all "
            "replicas; the concurrency follows; 0: nobody says how many"
        ),
        unit="request",
        default=0,
        least=0,
        most=100 * MOST_REQUESTS,
        aliases=("num_sessions", "closed_loop_users"),
        needs="sessions",
    )
    think_time: Real | None = field(
        "Think time",
        "mean seconds between an answer and the next request of the same session",
        unit="s",
        default=0,
        otherwise="follows from the classes of requests, if there are any",
        follows="classes",
        least=0,
        most=1_000_000,
        needs="sessions",
    )
    engine_defaults: Literal["general", "framework"] | None = field(
        "Defaults of the engine",
        (
            "of token budget and most requests until they are stated; framework: what its documents state; "
            "general: 8,192 tokens, and as many requests as memory holds"
        ),
        default="general",
        needs="engine defaults",
    )
    token_budget: Whole | None = field(
        "Token budget",
        "largest number of tokens in one step of the engine; sizes its activation buffers",
        unit="token",
        default=8192,
        follows="engine defaults",
        least=1,
        most=MOST_TOKENS,
        aliases=("max_num_batched_tokens", "chunked_prefill_size", "max_num_tokens"),
    )
    enforce_eager: Switch | None = field(
        "Without graphs",
        (
            "on: the host starts operations of a decode step one by one, and no memory goes to graphs; "
            "off: as one graph, the default of vLLM, SGLang and TensorRT-LLM"
        ),
        default="off",
        aliases=("disable_cuda_graph",),
        needs="launches",
    )
    async_scheduling: Switch | None = field(
        "Asynchronous scheduling",
        (
            "on: the next step is prepared while one runs, and who arrives does not join it, the default of "
            "vLLM from 0.14; off: who arrives at a rate joins the next step. The host time that a step of "
            "its own then shows nobody states: it is not in the estimate"
        ),
        default="on",
        aliases=("overlap_schedule",),
        needs="launches",
    )
    graph_max_batch: Whole | None = field(
        "Largest graph",
        (
            "requests of a rank in the largest graph that is captured: a larger batch is started operation "
            "by operation; 0: there are graphs for all"
        ),
        unit="request",
        default=0,
        least=0,
        most=MOST_REQUESTS,
        aliases=("cuda_graph_max_bs", "max_cudagraph_capture_size", "max_seq_len_to_capture"),
        needs="launches",
    )
    schedule_policy: Text | None = field(
        "Order of requests",
        (
            "in which the engine takes them up, by the name it has there; the estimate has first come, first "
            "served"
        ),
        default=DEFAULT,
        otherwise="the framework's",
        listed="settings",
        aliases=("scheduling_policy",),
        needs="engine settings",
    )
    attention_backend: Text | None = field(
        "Attention back end",
        "kernels of attention, by the engine's name; efficiency factors stand for the usual ones",
        default=DEFAULT,
        otherwise="the framework's",
        listed="settings",
        aliases=("attn_backend",),
        needs="engine settings",
    )
    moe_backend: Text | None = field(
        "MoE back end",
        "kernels of routed experts, by the engine's name; efficiency factors stand for the usual ones",
        default=DEFAULT,
        otherwise="the framework's",
        listed="settings",
        aliases=("moe_runner_backend",),
        needs="engine settings",
    )
    max_model_len: Whole | None = field(
        "Longest request",
        "prompt and output together, as the engine is told: a longer one is refused; 0: any",
        unit="token/request",
        default=0,
        least=0,
        most=MOST_TOKENS,
        aliases=("max_seq_len", "context_length"),
        needs="longest request",
    )
    prefix_hit_rate: Real | None = field(
        "Prefix hit rate",
        "share of the prompt tokens whose keys and values lie in a cache; they are not worked out again",
        otherwise="follows from shared prefix and turns",
        initial=0,
        follows="prefix cache",
        least=0,
        most=1,
        aliases=("cache_hit_rate", "prefix_cache_hit_rate"),
        needs="prefix cache",
    )
    shared_prefix: Whole | None = field(
        "Shared prefix",
        "tokens at the head of every prompt that all requests share, such as a system prompt",
        unit="token/request",
        default=0,
        follows="classes",
        least=0,
        most=MOST_TOKENS,
        aliases=("system_prompt_tokens", "shared_prefix_len"),
        needs="prefix cache",
    )
    turns: Real | None = field(
        "Turns of a conversation",
        "prompts of a conversation, on average, each with all that was said before at its head",
        unit="1",
        default=1,
        least=1,
        most=1000,
        needs="prefix cache",
    )
    prefixes: Whole | None = field(
        "Different prefixes",
        (
            "conversations or documents that requests come back to, over all replicas, each in any order; "
            "0: there is room for all of them"
        ),
        unit="request",
        default=0,
        least=0,
        most=MOST_REQUESTS,
        needs="prefix cache",
    )
    prefix_block: Whole | None = field(
        "Block of the prefix cache",
        "tokens that are found or missed together: 16 in vLLM, 1 in SGLang and llama.cpp, 32 in TensorRT-LLM",
        unit="token/request",
        default=16,
        follows="engine defaults",
        least=1,
        most=4096,
        aliases=("block_size", "page_size", "tokens_per_block"),
        needs="prefix cache",
    )
    prefix_host: Real | None = field(
        "Prefixes on the host",
        "host memory, per accelerator, for prefixes that have no room beside the batch; fetched when found",
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=10_000,
        aliases=("kv_offloading_size", "hicache_size"),
        needs="prefix cache",
    )
    prefix_disk: Real | None = field(
        "Prefixes on disk",
        "room on disk, per accelerator, for prefixes that the host has no room for; fetched when found",
        group=DEPLOYMENT,
        unit="GB",
        default=0,
        least=0,
        most=1_000_000,
        needs="prefix cache",
    )
    prefix_disk_bandwidth: Real | None = field(
        "Bandwidth of the disk",
        "at which prefixes are read from disk, per accelerator; 5 GB/s is a usual SSD of one's own",
        group=DEPLOYMENT,
        unit="GB/s",
        default=5,
        least=0.001,
        most=10_000,
        needs="prefix cache",
    )
    speculation: Literal["none", "mtp", "eagle", "draft-model", "n-gram"] | None = field(
        "Speculation",
        "what drafts tokens that a step then checks: mtp: the model's own prediction layers; eagle: a layer "
        "trained for it; draft-model: a smaller model; n-gram: the text so far",
        default="none",
        needs="speculation",
    )
    draft_tokens: Whole | None = field(
        "Draft tokens",
        "drafted for every request in a step, one after the other",
        unit="token/request",
        default=3,
        least=1,
        most=MOST_DRAFTS,
        aliases=("num_speculative_tokens", "num_nextn_predict_layers", "speculative_num_steps"),
        needs="speculation",
    )
    acceptance_rate: Real | None = field(
        "Acceptance rate",
        "chance that the first draft token is accepted; 0.85 to 0.9 was published of DeepSeek-V3's MTP",
        default=0.85,
        least=0,
        most=1,
        needs="speculation",
    )
    acceptance_decline: Real | None = field(
        "Decline of the acceptance",
        "chance of a further draft token, once those before it are accepted, against that of the one before",
        default=0.85,
        least=0,
        most=1,
        needs="speculation",
    )
    acceptance_length: Real | None = field(
        "Acceptance length",
        "tokens of a request that a step gives on average, the one that is always right included",
        unit="token/request",
        otherwise="follows from rate, decline and draft tokens",
        initial=1,
        follows="speculation",
        least=1,
        most=MOST_DRAFTS + 1,
        aliases=("accept_length", "mean_acceptance_length"),
        needs="speculation",
    )
    draft_parameters: Real | None = field(
        "Parameters of a draft model",
        "in billions, that a token goes through, LM head included; draft_model states the model instead",
        unit="1",
        default=0,
        least=0,
        most=10_000,
        needs="speculation",
    )
    draft_layers: Whole | None = field(
        "Layers of a draft model",
        "each is launched, and its parts summed, like a layer of the model",
        default=0,
        least=0,
        most=1000,
        needs="speculation",
    )
    draft_kv_channels: Real | None = field(
        "Cache of a draft model",
        "values that it keeps of every token, in all layers",
        unit="channel",
        default=0,
        least=0,
        most=10_000_000,
        needs="speculation",
    )
    image_tokens: Whole | None = field(
        "Image tokens",
        "input tokens that stand for images; the vision tower works on them",
        unit="token/request",
        default=0,
        least=0,
        most=MOST_TOKENS,
        needs="images",
    )
    microbatches: Whole | None = field(
        "Micro-batches",
        "parts into which a pipeline cuts the running batch; 0: as many as stages",
        unit="number",
        default=0,
        least=0,
        most=1024,
    )
    max_requests: Whole | None = field(
        "Most requests in a batch",
        (
            "of a replica, as the engine is told; 0: as many as memory holds. Of prefill workers prompts "
            "in a pass; each attention group has one at most"
        ),
        unit="request",
        default=0,
        follows="engine defaults",
        least=0,
        most=MOST_REQUESTS,
        aliases=("max_num_seqs", "max_batch_size", "max_running_requests"),
    )
    engine_release: Literal["current", "2025-12 to 2026-04", "before 2025-12"] | None = field(
        "Engine release",
        "current: since May 2026, with shorter launches; before 2025-12: kernels for experts were slower",
        default="current",
        former=("release",),
        needs="experts",
    )
    engine_date: Day | None = field(
        "Day of the engine",
        "day of the engine's release or build: how old the newest evidence is then, and what that does to "
        "the range of TPOT; today: the day on which the scenario is read",
        hint="or a release, as vllm 0.10.0; `mantile list releases` has them",
        unit="date",
        otherwise="not asked for; today where another column states one",
        least=FIRST_DAY,
        most=LAST_DAY,
        needs="engine date",
    )
    cache_policy: Literal["default", "saved", "full-windows", "full"] | None = field(
        "KV cache policy",
        f"what is kept of windows and latents; {DEFAULT}: as the framework's current release does; else "
        + "; ".join(f"{policy}: {meaning}" for policy, meaning in CACHE_POLICIES.items()),
        group=DEPLOYMENT,
        default=DEFAULT,
        otherwise="the framework's",
        needs="windows or latents",
    )
    prompts_per_slot: Real | None = field(
        "Prompts per batch slot",
        "prompts of a benchmark ÷ concurrency: it begins with a warm-up burst; 0: a service that runs on",
        default=0,
        least=0,
        most=1000,
        former=("waves",),
    )
    scheduler: Literal["default", "mixed", "prefill-first", "whole-prompts"] | None = field(
        "Scheduler",
        f"{DEFAULT}: the framework's; else "
        + "; ".join(f"{scheduler}: {meaning}" for scheduler, meaning in SCHEDULERS.items()),
        default=DEFAULT,
        otherwise="the framework's",
    )
    kv_admission: Literal["default", "guaranteed", "current-length"] | None = field(
        "KV admission",
        f"when a request gets its place in the KV cache; {DEFAULT}: the framework's; else "
        + "; ".join(f"{policy}: {meaning}" for policy, meaning in ADMISSIONS.items()),
        default=DEFAULT,
        otherwise="the framework's",
        aliases=("capacity_scheduler_policy",),
    )
    receive_interval: Real | None = field(
        "Receive interval",
        "decode steps between two looks for new requests; 0: every step",
        default=0,
        least=0,
        most=MOST_STEPS,
        aliases=("scheduler_recv_interval",),
    )
    batch_wait_steps: Real | None = field(
        "Batch wait",
        "most decode steps for which prompts are held back until they fill a step; 0: none",
        default=0,
        least=0,
        most=MOST_STEPS,
        aliases=("batch_wait_timeout_iters",),
        former=("batch_wait",),
    )
    length_range_ratio: Real | None = field(
        "Range of lengths",
        "lengths are drawn evenly from this share below the longest; 0: all alike",
        default=0.2,
        least=0,
        most=1,
        former=("length_spread",),
    )
    p95_output_ratio: Real | None = field(
        "p95 of output lengths",
        "p95 of the output length ÷ its mean; 1.1 for lengths drawn evenly from the upper fifth",
        default=1.1,
        least=1,
        most=100,
        former=("long_outputs",),
    )
    input_spread: Real | None = field(
        "Spread of input lengths",
        "standard deviation of the prompt length ÷ its mean",
        otherwise="follows from the range of lengths",
        initial=0,
        follows="spread",
        least=0,
        most=5,
        aliases=("input_cv", "isl_cv"),
    )
    output_spread: Real | None = field(
        "Spread of output lengths",
        "standard deviation of the generated length ÷ its mean",
        otherwise="follows from the p95 of output lengths",
        initial=0,
        follows="spread",
        least=0,
        most=5,
        aliases=("output_cv", "osl_cv"),
    )
    ttft_limit: Real | None = field(
        "Limit of TTFT",
        "a request is good if its first token comes within so long; 0: whenever it comes",
        unit="s",
        default=0,
        least=0,
        most=1_000_000,
        aliases=("ttft_slo",),
    )
    tpot_limit: Real | None = field(
        "Limit of TPOT",
        "a request is good if its mean gap between tokens is no longer; 0: whatever it is",
        unit="s",
        default=0,
        least=0,
        most=1_000_000,
        aliases=("tpot_slo", "itl_slo"),
    )
    e2e_limit: Real | None = field(
        "Limit of end to end",
        "a request is good if its last token comes within so long; 0: whenever it comes",
        unit="s",
        default=0,
        least=0,
        most=1_000_000,
        aliases=("e2e_slo", "e2el_slo"),
    )
    price_basis: Literal["cloud", "rental", "owned"] | None = field(
        "Price basis",
        "cloud on demand, rental on a three-year contract, or owned: purchase, upkeep and electricity",
        group=MONEY,
        default="cloud",
    )
    utilisation: Real | None = field(
        "Utilisation",
        "share of the paid hours in which the deployment carries this load",
        group=MONEY,
        default=1,
        least=0.001,
        most=1,
        aliases=("utilization",),
    )
    electricity_price: Real | None = field(
        "Electricity price",
        "paid per kWh that enters the building",
        group=MONEY,
        unit="USD/kWh",
        default=0.1,
        least=0,
        most=10,
    )
    pue: Real | None = field(
        "PUE",
        "power of the building over power of its machines",
        group=MONEY,
        otherwise="by the class of machine: 1.3 in a data centre, else 1",
        initial=1.3,
        follows="machine",
        least=1,
        most=5,
    )
    as_of: Day | None = field(
        "Prices as of",
        "the day on which prices are looked at: an alert says which are old then",
        group=MONEY,
        unit="date",
        otherwise="the day on which the estimate or its workbook is made",
        least=FIRST_DAY,
        most=LAST_DAY,
    )
    hours_per_day: Real | None = field(
        "Hours per day",
        "hours a day for which the deployment is paid; of use where it is owned",
        group=MONEY,
        unit="h/day",
        default=24,
        least=0.01,
        most=24,
    )

    @field_validator("as_of", "engine_date", mode="before")
    @classmethod
    def _counted(cls, day: Any, info: ValidationInfo) -> Any:
        """A day as spreadsheets count it, from 2026-11-23, a date, or that number; that of a release."""
        if isinstance(day, str) and day.isdigit():
            return int(day)
        if day == "today":
            day = today()
        if isinstance(day, str) and info.field_name == "engine_date" and not _DAY.fullmatch(day):
            day = release_day(day, info.data.get("framework")) or day
        try:
            return serial(date.fromisoformat(str(day))) if isinstance(day, date | str) else day
        except ValueError as error:
            also = " or a release such as vllm 0.10.0" if info.field_name == "engine_date" else ""
            raise ValueError(f"expected a day such as 2026-11-23{also}") from error


SCENARIO_FIELDS: Mapping[str, ScenarioField] = {declared.name: declared for declared in read_fields(Inputs)}
"""The table of fields, in the order in which a reader meets them."""


def _as_shared(name: str) -> Any:
    """The field of decode workers that is declared as that of a scenario."""
    return Inputs.model_fields[name]


class Deployment(Spread):
    """What decode workers may have to themselves."""

    weights_dtype: Text | None = _as_shared("weights_dtype")
    token_budget: Whole | None = _as_shared("token_budget")
    max_requests: Whole | None = _as_shared("max_requests")
    dcp: Whole | None = _as_shared("dcp")


WORKER_FIELDS: tuple[str, ...] = tuple(Deployment.model_fields)
"""What decode workers may have to themselves, as decode_<field>."""

INPUT_NAMES: tuple[str, ...] = (*SCENARIO_FIELDS, *(f"{DECODE}{name}" for name in WORKER_FIELDS))
"""All that a column may state."""

REQUIRED: tuple[str, ...] = tuple(name for name, declared in SCENARIO_FIELDS.items() if declared.required)
CLASS_DTYPES: tuple[str, ...] = tuple(
    name for name, declared in SCENARIO_FIELDS.items() if declared.default == SAME
)
DEVICE_INPUTS: Mapping[str, ScenarioField] = {
    f"device{number}_{name}": declared
    for number in range(1, MOST_DEVICES + 1)
    for name, declared in DEVICE_FIELDS.items()
    if number > 1 or name not in OF_FIRST
}
"""What unlike devices may state, by the name of the input."""


def own_name(name: str) -> str:
    """What an input of workers or devices is called among inputs of its kind.

    >>> own_name("decode_tp"), own_name("device2_system")
    ('tp', 'system')
    """
    return DEVICE_INPUTS[name].name if name in DEVICE_INPUTS else name.removeprefix(DECODE)


def input_field(name: str) -> ScenarioField:
    """What is said of an input of a column, whichever accelerators it is of."""
    return DEVICE_INPUTS[name] if name in DEVICE_INPUTS else SCENARIO_FIELDS[name.removeprefix(DECODE)]


FORMER_IDS: Mapping[str, str] = {
    f"inputs.{former}": f"inputs.{declared.name}"
    for declared in SCENARIO_FIELDS.values()
    for former in declared.former
}
"""Ids that rows had in earlier versions, to those they have now."""


PREFIX_FIELDS = tuple(item.name for item in SCENARIO_FIELDS.values() if item.needs == "prefix cache")
"""What prompts may find in a cache, and where: an estimate has rows of it where a scenario states one."""

_STATED = (
    "launches",
    "sessions",
    "speculation",
    "own build",
    "memory share",
    "other models",
    "adapters",
    "longest request",
    "engine settings",
    "engine defaults",
    "TP padding",
    "TP of FFNs",
    "TP of the embedding",
    "engine date",
    "decode CP",
    "handover",
    "devices",
    "links",
)
STATED_FIELDS: Mapping[str, str] = {
    item.name: item.needs for item in SCENARIO_FIELDS.values() if item.needs in _STATED
}
"""Fields that an estimate has rows of only where a scenario states one of their kind, and that kind."""

LEADING = ("sessions", "engine_defaults")
"""Fields that others follow where they are stated."""


def field_name(spelling: str) -> str:
    """Our name of a field that goes by several.

    Those of workers become decode_<field> and prefill_<field>; what is no field stays as it is.
    """
    plain = plain_spelling(spelling)
    if of_device(plain) is not None:
        return plain
    for prefix in (DECODE, PREFILL):
        if plain.startswith(prefix):
            of_worker = plain.removeprefix(prefix)
            name = "dp" if of_worker == WORKERS else _spellings(Deployment).get(of_worker)
            return spelling if name is None else f"{prefix}{name}"
    return _spellings(Inputs).get(plain, spelling)
