"""What is asked: the deployment, the data types and the workload of one scenario."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mantile.graph.quantity import Input, Quantity, Section, equal, where
from mantile.ir.modules import ModelGraph
from mantile.library.profiles import Library
from mantile.library.scenario import SAME

DEGREES = (1, 2, 3, 4, 5, 6, 7, 8)
REPLICAS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)
CONTINUOUS, STATIC = "continuous", "static"


@dataclass(frozen=True)
class Workload:
    """The inputs of a scenario. Field names are the fields of a scenario file and the `in_` names of a workbook.

    None where the model has no use for an input: experts in a dense model, images without a vision tower.
    """

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
    attention_dtype: Input
    ffn_dtype: Input | None
    experts_dtype: Input | None
    image_tokens: Input | None

    def named(self) -> dict[str, Input]:
        """The inputs there are, by name, in order."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: figure for name, figure in found.items() if figure is not None}


def workload(library: Library, ir: ModelGraph) -> tuple[Workload, Quantity, tuple[Section, ...]]:
    """The inputs, whether batching is continuous (1 or 0), and their blocks."""
    classes = ir.weight_classes()

    def dtypes(role: str) -> tuple[str, ...]:
        return tuple(kind.id for kind in library.datatypes if role in kind.roles)

    def given(field: str, label: str, unit: str, value: float | str, note: str, /, **limits: object) -> Input:
        return Input(f"inputs.{field}", label, unit, value, note, "scenario", "given", **limits)  # type: ignore[arg-type]

    def stored(field: str, label: str, note: str) -> Input:
        return given(field, label, "1", SAME, f"{note}; {SAME}: as the weights", choices=(SAME, *dtypes("weights")),
                     name=f"{label.lower()} data type")  # fmt: skip

    inputs = Workload(
        accelerator=given("accelerator", "Accelerator", "1", library.accelerators[0].id, "chip of the system",
                          choices=tuple(item.id for item in library.accelerators)),
        framework=given("framework", "Framework", "1", "vllm", "serving framework",
                        choices=tuple(item.id for item in library.frameworks)),
        weights_dtype=given("weights_dtype", "Weights", "1", "bf16", "data type of the matrices; classes of them may differ",
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
        attention_dtype=stored("attention_dtype", "Attention weights", "data type of the mixers' matrices"),
        ffn_dtype=stored("ffn_dtype", "FFN weights", "data type of dense FFNs and shared experts") if "ffn" in classes else None,
        experts_dtype=stored("experts_dtype", "Expert weights", "data type of routed experts") if "experts" in classes else None,
        image_tokens=given("image_tokens", "Image tokens", "token/request", 0, "input tokens that stand for images; the vision tower works on them",
                           integer=True, minimum=0, maximum=10_000_000) if ir.vision is not None else None,
    )  # fmt: skip
    continuous = Quantity("inputs.continuous", "Batching is continuous", "flag",
                          where(equal(inputs.batching, CONTINUOUS), 1, 0), note="1 for continuous, 0 for static batching",
                          name="continuous")  # fmt: skip
    deployment = ("accelerator", "framework", "weights_dtype", "attention_dtype", "ffn_dtype", "experts_dtype", "head_dtype",
                  "activation_dtype", "kv_dtype", "tp", "pp", "dp")  # fmt: skip
    found = inputs.named()
    return inputs, continuous, (
        Section("Deployment", tuple(found[name] for name in deployment if name in found), "the base scenario's cells are on Summary"),
        Section("Workload", tuple(figure for name, figure in found.items() if name not in deployment) + (continuous,),
                "closed loop: a finished request is followed by the next"),
    )  # fmt: skip
