"""What is asked: the deployment, the data types and the workload of one scenario."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mantile.graph.quantity import Input, Quantity, Section, equal, where
from mantile.library.profiles import Library

DEGREES = (1, 2, 3, 4, 5, 6, 7, 8)
REPLICAS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
CONTINUOUS, STATIC = "continuous", "static"


@dataclass(frozen=True)
class Workload:
    """The inputs of a scenario. Field names are the fields of a scenario file and the `in_` names of a workbook."""

    accelerator: Input
    framework: Input
    weights_dtype: Input
    activation_dtype: Input
    kv_dtype: Input
    tp: Input
    pp: Input
    dp: Input
    batching: Input
    input_tokens: Input
    output_tokens: Input
    concurrency: Input
    head_dtype: Input
    token_budget: Input

    def rows(self) -> tuple[Input, ...]:
        """All inputs, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def workload(library: Library) -> tuple[Workload, Quantity, tuple[Section, ...]]:
    """The inputs, whether batching is continuous (1 or 0), and their blocks."""

    def dtypes(role: str) -> tuple[str, ...]:
        return tuple(kind.id for kind in library.datatypes if role in kind.roles)

    def given(field: str, label: str, unit: str, value: float | str, note: str, /, **limits: object) -> Input:
        return Input(f"inputs.{field}", label, unit, value, note, "scenario", "given", **limits)  # type: ignore[arg-type]

    inputs = Workload(
        accelerator=given("accelerator", "Accelerator", "1", library.accelerators[0].id, "chip of the system",
                          choices=tuple(item.id for item in library.accelerators)),
        framework=given("framework", "Framework", "1", "vllm", "serving framework",
                        choices=tuple(item.id for item in library.frameworks)),
        weights_dtype=given("weights_dtype", "Weights", "1", "bf16", "data type of all matrices but embedding and LM head",
                            choices=dtypes("weights"), name="weights data type"),
        activation_dtype=given("activation_dtype", "Activations", "1", "bf16",
                               "data type in which matrices are multiplied, where the accelerator has it",
                               choices=dtypes("activations"), name="activation data type"),
        kv_dtype=given("kv_dtype", "KV cache", "1", "bf16", "data type of keys and values", choices=dtypes("kv"),
                       name="KV data type"),
        tp=given("tp", "Tensor parallel", "rank", 1, "ranks among which every layer is split", choices=DEGREES,
                 integer=True, minimum=1, maximum=8, name="TP"),
        pp=given("pp", "Pipeline parallel", "stage", 1, "stages among which the layers are divided", choices=DEGREES,
                 integer=True, minimum=1, maximum=8, name="PP"),
        dp=given("dp", "Data parallel", "replica", 1, "replicas that share the requests", choices=REPLICAS,
                 integer=True, minimum=1, maximum=64, name="DP"),
        batching=given("batching", "Batching", "1", CONTINUOUS,
                       "continuous: requests join and leave a running batch; static: a batch starts and ends together",
                       choices=(CONTINUOUS, STATIC)),
        input_tokens=given("input_tokens", "Input tokens", "token/request", 1024, "mean prompt length",
                           integer=True, minimum=1, maximum=10_000_000),
        output_tokens=given("output_tokens", "Output tokens", "token/request", 128, "mean generated length",
                            integer=True, minimum=1, maximum=10_000_000),
        concurrency=given("concurrency", "Concurrency", "request", 1, "requests in flight at any time, over all replicas",
                          integer=True, minimum=1, maximum=1_000_000),
        head_dtype=given("head_dtype", "Embedding, head", "1", "bf16", "data type of embedding and LM head",
                         choices=dtypes("weights"), name="embedding data type"),
        token_budget=given("token_budget", "Token budget", "token", 8192, "largest number of tokens in one step of the "
                           "engine; sizes its activation buffers", integer=True, minimum=1, maximum=10_000_000),
    )  # fmt: skip
    continuous = Quantity("inputs.continuous", "Batching is continuous", "flag",
                          where(equal(inputs.batching, CONTINUOUS), 1, 0), note="1 for continuous, 0 for static batching",
                          name="continuous")  # fmt: skip
    deployment = ("accelerator", "framework", "weights_dtype", "activation_dtype", "kv_dtype", "head_dtype", "tp", "pp", "dp")
    return inputs, continuous, (
        Section("Deployment", tuple(getattr(inputs, name) for name in deployment), "the base scenario's cells are on Summary"),
        Section("Workload", tuple(row for row in inputs.rows() if row.id.removeprefix("inputs.") not in deployment)
                + (continuous,), "closed loop: a finished request is followed by the next"),
    )  # fmt: skip
