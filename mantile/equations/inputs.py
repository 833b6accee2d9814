"""What is asked: the deployment, how a model is spread over it, the data types and the workload of one scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from mantile.equations.constant import RANKS_TO_ACCELERATORS
from mantile.graph.quantity import Input, Named, Quantity, Section, equal, where
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import SCHEDULERS, Library
from mantile.library.scenario import DEFAULT, DEFAULT_SYSTEM, MOST_RANKS, MOST_REPLICAS, MOST_STAGES, SAME

CONTINUOUS, STATIC = "continuous", "static"
AGGREGATED, DISAGGREGATED = "aggregated", "disaggregated"
ON, OFF = "on", "off"
CURRENT, EARLY = "current", "before 2025-12"
BASES = ("cloud", "rental", "owned")
DECODE = "decode_"  # before the name of an input that the decode workers have to themselves


@dataclass(frozen=True)
class Workload:
    """The inputs of a scenario. Field names are the fields of a scenario file and the `in_` names of a workbook.

    None where the model has no use for an input: experts in a dense model, images without a vision tower; and the inputs of
    decode workers in a workbook where the same accelerators prefill and decode.
    """

    accelerator: Input
    system: Input
    framework: Input
    weights_dtype: Input
    activation_dtype: Input
    kv_dtype: Input
    tp: Input
    pp: Input
    dp: Input
    ep: Input
    attention_dp: Input
    cp: Input
    sequence_parallel: Input
    microbatches: Input
    batching: Input
    input_tokens: Input
    output_tokens: Input
    concurrency: Input
    max_requests: Input
    release: Input | None
    waves: Input
    scheduler: Input
    receive_interval: Input
    batch_wait: Input
    length_spread: Input
    long_outputs: Input
    head_dtype: Input
    token_budget: Input
    attention_dtype: Input
    ffn_dtype: Input | None
    experts_dtype: Input | None
    image_tokens: Input | None
    offload_weights: Input
    offload_kv: Input
    price_basis: Input
    utilisation: Input
    electricity_price: Input
    pue: Input
    hours_per_day: Input
    request_rate: Input | None = None
    serving: Input | None = None
    decode_accelerator: Input | None = None
    decode_system: Input | None = None
    decode_framework: Input | None = None
    decode_tp: Input | None = None
    decode_pp: Input | None = None
    decode_dp: Input | None = None
    decode_ep: Input | None = None
    decode_attention_dp: Input | None = None
    decode_cp: Input | None = None

    def named(self) -> dict[str, Input]:
        """The inputs there are, by name, in order."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: figure for name, figure in found.items() if figure is not None}

    def of_decode(self) -> dict[Input, Input]:
        """The inputs that decode workers have to themselves, by what they stand for elsewhere."""
        found = self.named()
        return {
            found[name.removeprefix(DECODE)]: figure
            for name, figure in found.items()
            if name.startswith(DECODE)
        }


@dataclass(frozen=True)
class Ranks:
    """How many ranks work together. A rank is one accelerator.

    Args:
        continuous: 1 in continuous batching, 0 in static.
        disaggregated: 1 if prefill and decode have workers of their own; None in a workbook without.
        groups: attention groups of a stage: attention-DP x CP, each with a copy of the attention weights.
        stage: ranks of a pipeline stage: TP x groups. FFNs and experts are spread over all of them.
        replica: all stages.
        deployment: accelerators of all replicas.
    """

    continuous: Quantity
    disaggregated: Quantity | None
    groups: Quantity
    stage: Quantity
    replica: Quantity
    deployment: Quantity

    def rows(self) -> tuple[Quantity, ...]:
        """The rows of the Inputs sheet."""
        return (self.groups, self.stage, self.replica, self.deployment)


def _decode_inputs(shared: Mapping[str, Input], own: Mapping[str, Input]) -> dict[str, Input]:
    """Inputs of decode workers: each follows the deployment's until somebody types over it. The system follows only on
    the same accelerator: another one comes in its usual system."""
    decode_inputs = {
        f"{DECODE}{name}": replace(figure, default=_always(shared[name]))
        for name, figure in own.items()
        if name != "system"
    }
    system = Quantity(
        f"inputs.{DECODE}system_default",
        "System of decode workers by default",
        "1",
        where(
            equal(decode_inputs[f"{DECODE}accelerator"], shared["accelerator"]),
            shared["system"],
            DEFAULT_SYSTEM,
        ),
    )
    decode_inputs[f"{DECODE}system"] = replace(own["system"], default=_always(system))
    return {f"{DECODE}{name}": decode_inputs[f"{DECODE}{name}"] for name in own}


def _always(figure: Named) -> Callable[[], Named]:
    return lambda: figure


def workload(
    library: Library,
    ir: ModelGraph,
    defaults: Mapping[str, Named],
    disaggregated: bool,
    open_loop: bool = False,
) -> tuple[Workload, Ranks, tuple[Section, ...]]:
    """The inputs, the numbers of ranks they make, and their blocks.

    Args:
        defaults: what inputs follow until somebody states a value, by their names; filled while the graph is built.
        disaggregated: whether decode workers get inputs of their own.
        open_loop: whether requests may arrive at a rate.
    """
    classes = ir.weight_classes()

    def dtypes(role: str) -> tuple[str, ...]:
        return tuple(kind.id for kind in library.datatypes if role in kind.roles)

    def given(field: str, label: str, unit: str, value: float | str, note: str, /, **limits: object) -> Input:
        return Input(f"inputs.{field}", label, unit, value, note, "scenario", "given", **limits)  # type: ignore[arg-type]

    def degree(field: str, label: str, unit: str, note: str, most: int, name: str, least: int = 1) -> Input:
        return given(field, label, unit, least, note, integer=True, minimum=least, maximum=most, name=name)

    def stored(field: str, label: str, note: str) -> Input:
        return given(
            field,
            label,
            "1",
            SAME,
            f"{note}; {SAME}: as the weights",
            choices=(SAME, *dtypes("weights")),
            name=f"{label.lower()} data type",
        )

    accelerators = tuple(item.id for item in library.accelerators)
    systems = (DEFAULT_SYSTEM, *(item.id for item in library.systems))
    frameworks = tuple(item.id for item in library.frameworks)

    def deployed(prefix: str, words: str) -> dict[str, Input]:
        """The inputs that prefill and decode workers may have apart."""
        return {
            "accelerator": given(
                f"{prefix}accelerator",
                f"Accelerator{words}",
                "1",
                accelerators[0],
                "chip of the system",
                choices=accelerators,
            ),
            "system": given(
                f"{prefix}system",
                f"System{words}",
                "1",
                DEFAULT_SYSTEM,
                f"how accelerators are linked; {DEFAULT_SYSTEM}: the accelerator's usual system",
                choices=systems,
            ),
            "framework": given(
                f"{prefix}framework",
                f"Framework{words}",
                "1",
                "vllm",
                "serving framework",
                choices=frameworks,
            ),
            "tp": degree(
                f"{prefix}tp",
                f"Tensor parallel{words}",
                "rank",
                "ranks among which attention, and with it every layer, is split",
                MOST_RANKS,
                "TP",
            ),
            "pp": degree(
                f"{prefix}pp",
                f"Pipeline parallel{words}",
                "stage",
                "stages among which the layers are divided",
                MOST_STAGES,
                "PP",
            ),
            "dp": degree(
                f"{prefix}dp",
                f"Data parallel{words}",
                "replica",
                "replicas that share the requests; workers where prefill and decode are apart",
                MOST_REPLICAS,
                "DP",
            ),
            "ep": degree(
                f"{prefix}ep",
                f"Expert parallel{words}",
                "rank",
                "groups among which the experts of a layer are divided; must divide the ranks of a stage",
                MOST_RANKS,
                "EP",
            ),
            "attention_dp": degree(
                f"{prefix}attention_dp",
                f"Attention DP{words}",
                "rank",
                "groups that hold the attention weights each and share the "
                "requests; FFNs and experts are spread over all of them",
                MOST_RANKS,
                "attention-DP",
            ),
            "cp": degree(
                f"{prefix}cp",
                f"Context parallel{words}",
                "rank",
                "groups that share the tokens of a request: its prompt in prefill, its KV cache in decode",
                MOST_RANKS,
                "CP",
            ),
        }

    shared = deployed("", "")
    apart: dict[str, Input] = {}
    if disaggregated:
        apart = _decode_inputs(shared, deployed(DECODE, ", decode"))
        apart["serving"] = given(
            "serving",
            "Serving",
            "1",
            DISAGGREGATED,
            "disaggregated: prefill and decode have workers of their own; "
            "aggregated: the same accelerators do both",
            choices=(AGGREGATED, DISAGGREGATED),
        )
    if open_loop:
        apart["request_rate"] = given(
            "request_rate",
            "Request rate",
            "request/s",
            0,
            "requests that arrive per second, over all replicas, whatever is in "
            "flight; 0: concurrency is kept",
            minimum=0,
            maximum=1_000_000,
        )
    inputs = Workload(
        **shared,
        **apart,
        weights_dtype=given(
            "weights_dtype",
            "Weights",
            "1",
            "bf16",
            "data type of the matrices; classes of them may differ",
            choices=dtypes("weights"),
            name="weights data type",
        ),
        activation_dtype=given(
            "activation_dtype",
            "Activations",
            "1",
            "bf16",
            "data type in which matrices are multiplied, where the accelerator has it",
            choices=dtypes("activations"),
            name="activation data type",
            default=lambda: defaults.get("activation_dtype"),
        ),
        kv_dtype=given(
            "kv_dtype",
            "KV cache",
            "1",
            "bf16",
            "data type of keys and values",
            choices=dtypes("kv"),
            name="KV data type",
        ),
        sequence_parallel=given(
            "sequence_parallel",
            "Sequence parallel",
            "1",
            OFF,
            "on: norms work on a share of the tokens; all-reduces become a reduce-scatter and an all-gather",
            choices=(OFF, ON),
        ),
        microbatches=given(
            "microbatches",
            "Micro-batches",
            "number",
            0,
            "parts into which a pipeline cuts the running batch; 0: as many as stages",
            integer=True,
            minimum=0,
            maximum=1024,
        ),
        batching=given(
            "batching",
            "Batching",
            "1",
            CONTINUOUS,
            "continuous: requests join and leave a running batch; static: a batch starts and ends together",
            choices=(CONTINUOUS, STATIC),
        ),
        input_tokens=given(
            "input_tokens",
            "Input tokens",
            "token/request",
            1024,
            "mean prompt length",
            integer=True,
            minimum=1,
            maximum=10_000_000,
        ),
        output_tokens=given(
            "output_tokens",
            "Output tokens",
            "token/request",
            128,
            "mean generated length",
            integer=True,
            minimum=1,
            maximum=10_000_000,
        ),
        concurrency=given(
            "concurrency",
            "Concurrency",
            "request",
            1,
            "requests in flight at any time, over all replicas",
            integer=True,
            minimum=1,
            maximum=1_000_000,
            default=(lambda: defaults.get("concurrency")) if open_loop else None,
        ),
        max_requests=given(
            "max_requests",
            "Most requests in a batch",
            "request",
            0,
            "of a replica, as the engine is told; 0: as many as memory holds",
            integer=True,
            minimum=0,
            maximum=1_000_000,
        ),
        release=given(
            "release",
            "Engine release",
            "1",
            CURRENT,
            f"{EARLY}: its kernels for experts were slower",
            choices=(CURRENT, EARLY),
        )
        if "experts" in classes
        else None,
        waves=given(
            "waves",
            "Benchmark waves",
            "1",
            0,
            "prompts of a benchmark ÷ concurrency: its first wave arrives at once; 0: a service that runs on",
            minimum=0,
            maximum=1000,
        ),
        scheduler=given(
            "scheduler",
            "Scheduler",
            "1",
            DEFAULT,
            f"{DEFAULT}: the framework's; else "
            + "; ".join(f"{key}: {text}" for key, text in SCHEDULERS.items()),
            choices=(DEFAULT, *SCHEDULERS),
        ),
        receive_interval=given(
            "receive_interval",
            "Receive interval",
            "1",
            0,
            "decode steps between two looks for new requests; 0: every step",
            minimum=0,
            maximum=10_000,
        ),
        batch_wait=given(
            "batch_wait",
            "Batch wait",
            "1",
            0,
            "most decode steps for which prompts are held back until they fill a step; 0: none",
            minimum=0,
            maximum=10_000,
        ),
        length_spread=given(
            "length_spread",
            "Spread of lengths",
            "1",
            0.2,
            "lengths are drawn evenly from this share below the longest; 0: all alike",
            minimum=0,
            maximum=1,
        ),
        long_outputs=given(
            "long_outputs",
            "Long outputs",
            "1",
            1.1,
            "output that one request in twenty exceeds, ÷ the mean; 1.1 for lengths drawn evenly "
            "from the upper fifth",
            minimum=1,
            maximum=100,
        ),
        head_dtype=given(
            "head_dtype",
            "Embedding, head",
            "1",
            "bf16",
            "data type of embedding and LM head",
            choices=dtypes("weights"),
            name="embedding data type",
        ),
        token_budget=given(
            "token_budget",
            "Token budget",
            "token",
            8192,
            "largest number of tokens in one step of the engine; sizes its activation buffers",
            integer=True,
            minimum=1,
            maximum=10_000_000,
        ),
        attention_dtype=stored("attention_dtype", "Attention weights", "data type of the mixers' matrices"),
        ffn_dtype=stored("ffn_dtype", "FFN weights", "data type of dense FFNs and shared experts")
        if "ffn" in classes
        else None,
        experts_dtype=stored("experts_dtype", "Expert weights", "data type of routed experts")
        if "experts" in classes
        else None,
        image_tokens=given(
            "image_tokens",
            "Image tokens",
            "token/request",
            0,
            "input tokens that stand for images; the vision tower works on them",
            integer=True,
            minimum=0,
            maximum=10_000_000,
        )
        if ir.vision is not None
        else None,
        offload_weights=given(
            "offload_weights",
            "Weights on the host",
            "GB",
            0,
            "weights that stay in host memory, per accelerator; read over the host link in every pass",
            minimum=0,
            maximum=10_000,
        ),
        offload_kv=given(
            "offload_kv",
            "KV cache on the host",
            "GB",
            0,
            "part of the KV cache in host memory, per accelerator; read over the host "
            "link in every decode step",
            minimum=0,
            maximum=10_000,
        ),
        price_basis=given(
            "price_basis",
            "Price basis",
            "1",
            BASES[0],
            "cloud on demand, rental on a three-year contract, or owned",
            choices=BASES,
        ),
        utilisation=given(
            "utilisation",
            "Utilisation",
            "1",
            1,
            "share of the paid hours in which the deployment carries this load",
            minimum=0.001,
            maximum=1,
        ),
        electricity_price=given(
            "electricity_price",
            "Electricity price",
            "USD/kWh",
            0.10,
            "paid per kWh that enters the building",
            minimum=0,
            maximum=10,
        ),
        pue=given(
            "pue", "PUE", "1", 1.3, "power of the building over power of its machines", minimum=1, maximum=5
        ),
        hours_per_day=given(
            "hours_per_day",
            "Hours per day",
            "h/day",
            24,
            "hours a day for which the deployment is paid",
            minimum=0.01,
            maximum=24,
        ),
    )
    continuous = Quantity(
        "inputs.continuous",
        "Batching is continuous",
        "flag",
        where(equal(inputs.batching, CONTINUOUS), 1, 0),
        note="1 for continuous, 0 for static batching",
        name="continuous",
    )
    own = None
    if inputs.serving is not None:
        own = Quantity(
            "inputs.disaggregated",
            "Serving is disaggregated",
            "flag",
            where(equal(inputs.serving, DISAGGREGATED), 1, 0),
            note="1 if prefill and decode have workers of their own",
            name="disaggregated",
        )
    groups = Quantity(
        "plan.groups",
        "Attention groups of a stage",
        "rank",
        inputs.attention_dp * inputs.cp,
        name="attention groups",
        note="each holds the attention weights",
    )
    stage = Quantity(
        "plan.stage_ranks",
        "Ranks of a stage",
        "rank",
        inputs.tp * groups,
        note="FFNs and experts are spread over all of them",
    )
    replica = Quantity("plan.ranks_per_replica", "Ranks of a replica", "rank", stage * inputs.pp)
    deployment = Quantity(
        "plan.accelerators", "Accelerators", "accelerator", replica * inputs.dp * RANKS_TO_ACCELERATORS
    )
    ranks = Ranks(continuous, own, groups, stage, replica, deployment)
    found = inputs.named()
    money = ("price_basis", "utilisation", "electricity_price", "pue", "hours_per_day")
    load = (
        "serving",
        "batching",
        "input_tokens",
        "output_tokens",
        "concurrency",
        "request_rate",
        "token_budget",
        "image_tokens",
        "microbatches",
        "max_requests",
        "release",
        "waves",
        "scheduler",
        "receive_interval",
        "batch_wait",
        "length_spread",
        "long_outputs",
    )
    first = tuple(
        figure
        for name, figure in found.items()
        if name not in (*money, *load) and not name.startswith(DECODE)
    )
    second = tuple(figure for name, figure in found.items() if name.startswith(DECODE))
    system_default = inputs.decode_system.follows if inputs.decode_system is not None else None
    return (
        inputs,
        ranks,
        (
            Section("Deployment", first, "the base scenario's main cells are on Summary"),
            *(
                [
                    Section(
                        "Decode workers",
                        (*second, system_default),
                        "a cell follows the deployment above until it is typed over",
                    )
                ]
                if isinstance(system_default, Quantity)
                else []
            ),
            Section(
                "Workload",
                (
                    *(found[name] for name in load if name in found),
                    continuous,
                    *([own] if own is not None else []),
                ),
                "closed loop: a finished request is followed by the next",
            ),
            Section(
                "Power and price", tuple(found[name] for name in money), "what the Cost sheet is made of"
            ),
        ),
    )
