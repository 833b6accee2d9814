"""The flags of a scenario, shared by the commands that need one: what is given becomes the fields of a scenario."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mantile.library.errors import InputError

if TYPE_CHECKING:
    from mantile.library.scenario import Scenario
    from mantile.workbook.bundle import Bundle

REQUIRED = ("accelerator", "input_tokens", "output_tokens", "concurrency")


def _option(words: str, *names: str) -> Any:
    return typer.Option(*names, help=words)


def _flags(
    accelerator: Annotated[
        str | None, _option("Accelerator id; `mantile hardware list` shows them. Or a file: chip.yaml.")
    ] = None,
    system: Annotated[str | None, _option("System id.  [default: the accelerator's usual one]")] = None,
    framework: Annotated[str | None, _option("Serving framework.  [default: vllm]")] = None,
    weights_dtype: Annotated[
        str | None, _option("Data type of the matrices.  [default: the checkpoint's]")
    ] = None,
    activation_dtype: Annotated[
        str | None, _option("Data type of products.  [default: follows the weights]")
    ] = None,
    kv_dtype: Annotated[
        str | None, _option("Data type of the KV cache.  [default: bf16]", "--kv-dtype", "--kv-cache-dtype")
    ] = None,
    head_dtype: Annotated[
        str | None, _option("Data type of embedding and LM head.  [default: the checkpoint's]")
    ] = None,
    attention_dtype: Annotated[
        str | None, _option("Data type of attention matrices.  [default: the checkpoint's]")
    ] = None,
    ffn_dtype: Annotated[
        str | None, _option("Data type of dense FFNs and shared experts.  [default: the checkpoint's]")
    ] = None,
    experts_dtype: Annotated[
        str | None, _option("Data type of routed experts.  [default: the checkpoint's]")
    ] = None,
    tp: Annotated[
        int | None, _option("Tensor-parallel ranks.  [default: 1]", "--tp", "--tensor-parallel-size")
    ] = None,
    pp: Annotated[
        int | None, _option("Pipeline stages.  [default: 1]", "--pp", "--pipeline-parallel-size")
    ] = None,
    dp: Annotated[int | None, _option("Replicas.  [default: 1]", "--dp", "--data-parallel-size")] = None,
    ep: Annotated[
        int | None, _option("Expert-parallel groups.  [default: 1]", "--ep", "--expert-parallel-size")
    ] = None,
    attention_dp: Annotated[
        int | None, _option("Attention groups that share the requests of a replica.  [default: 1]")
    ] = None,
    cp: Annotated[
        int | None, _option("Context-parallel groups.  [default: 1]", "--cp", "--context-parallel-size")
    ] = None,
    sequence_parallel: Annotated[
        str | None, _option("on or off: norms on a share of the tokens.  [default: off]")
    ] = None,
    microbatches: Annotated[
        int | None, _option("Micro-batches of a pipeline.  [default: as many as stages]")
    ] = None,
    prefill_tp: Annotated[int | None, _option("TP of prefill workers; decode workers keep --tp.")] = None,
    prefill_pp: Annotated[int | None, _option("PP of prefill workers.")] = None,
    prefill_ep: Annotated[int | None, _option("EP of prefill workers.")] = None,
    prefill_attention_dp: Annotated[int | None, _option("Attention groups of prefill workers.")] = None,
    prefill_workers: Annotated[int | None, _option("Prefill workers.")] = None,
    decode_accelerator: Annotated[
        str | None, _option("Accelerator of decode workers; prefill and decode are then apart.")
    ] = None,
    decode_system: Annotated[str | None, _option("System of decode workers.")] = None,
    decode_framework: Annotated[str | None, _option("Framework of decode workers.")] = None,
    decode_tp: Annotated[int | None, _option("TP of decode workers.")] = None,
    decode_pp: Annotated[int | None, _option("PP of decode workers.")] = None,
    decode_ep: Annotated[int | None, _option("EP of decode workers.")] = None,
    decode_attention_dp: Annotated[int | None, _option("Attention groups of decode workers.")] = None,
    decode_cp: Annotated[int | None, _option("CP of decode workers.")] = None,
    decode_workers: Annotated[
        int | None, _option("Decode workers.", "--decode-workers", "--decode-dp")
    ] = None,
    serving: Annotated[
        str | None, _option("aggregated or disaggregated.  [default: disaggregated with decode workers]")
    ] = None,
    batching: Annotated[str | None, _option("continuous or static.  [default: continuous]")] = None,
    input_tokens: Annotated[
        int | None, _option("Mean prompt length per request.", "--input-tokens", "--isl", "--input-len")
    ] = None,
    output_tokens: Annotated[
        int | None, _option("Mean generated length per request.", "--output-tokens", "--osl", "--output-len")
    ] = None,
    concurrency: Annotated[
        int | None, _option("Requests in flight over all replicas.", "--concurrency", "--max-concurrency")
    ] = None,
    request_rate: Annotated[
        float | None,
        _option("Requests that arrive per second, instead of a concurrency.", "--request-rate", "--qps"),
    ] = None,
    token_budget: Annotated[
        int | None,
        _option(
            "Most tokens in one engine step.  [default: 8192]", "--token-budget", "--max-num-batched-tokens"
        ),
    ] = None,
    max_requests: Annotated[
        int | None,
        _option(
            "Most requests in a batch.  [default: as many as memory holds]",
            "--max-requests",
            "--max-num-seqs",
        ),
    ] = None,
    release: Annotated[
        str | None,
        _option("current or 'before 2025-12', whose kernels for experts were slower.  [default: current]"),
    ] = None,
    waves: Annotated[
        float | None,
        _option("Prompts of a benchmark ÷ concurrency; 0: a service that runs on.  [default: 0]"),
    ] = None,
    scheduler: Annotated[
        str | None, _option("mixed, prefill-first or whole-prompts.  [default: the framework's]")
    ] = None,
    receive_interval: Annotated[
        float | None,
        _option(
            "Steps between two looks for new requests.  [default: 0]",
            "--receive-interval",
            "--scheduler-recv-interval",
        ),
    ] = None,
    batch_wait: Annotated[
        float | None, _option("Most steps for which prompts are held back to fill a step.  [default: 0]")
    ] = None,
    length_spread: Annotated[
        float | None,
        _option("Share below the longest from which lengths are drawn; 0: all alike.  [default: 0.2]"),
    ] = None,
    long_outputs: Annotated[
        float | None, _option("Output that one request in twenty exceeds ÷ the mean.  [default: 1.1]")
    ] = None,
    image_tokens: Annotated[
        int | None, _option("Input tokens that stand for images, per request.  [default: 0]")
    ] = None,
    offload_weights: Annotated[
        float | None,
        _option("GB of weights in host memory, per accelerator.", "--offload-weights", "--cpu-offload-gb"),
    ] = None,
    offload_kv: Annotated[float | None, _option("GB of KV cache in host memory, per accelerator.")] = None,
    price_basis: Annotated[str | None, _option("cloud, rental or owned.  [default: cloud]")] = None,
    utilisation: Annotated[float | None, _option("Share of paid hours under load.  [default: 1]")] = None,
    electricity_price: Annotated[float | None, _option("USD per kWh.  [default: 0.10]")] = None,
    pue: Annotated[
        float | None, _option("Power of the building over that of its machines.  [default: 1.3]")
    ] = None,
    hours_per_day: Annotated[float | None, _option("Hours a day that are paid.  [default: 24]")] = None,
    title: Annotated[str | None, _option("Title of the workbook.")] = None,
    template: Annotated[
        str | None,
        _option("standard, executive or audit, or a file of one's own: mine.yaml.  [default: standard]"),
    ] = None,
    date: Annotated[str | None, _option("Date of the workbook, YYYY-MM-DD.")] = None,
    name: Annotated[str | None, _option("Name of the base column.")] = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(metavar="FOLDER/ID@VERSION", help="Use an older version of a profile; repeatable."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="ID=VALUE", help="Replace a figure, in its cell's unit; repeatable."),
    ] = None,
) -> dict[str, Any]:
    """The flags of a scenario, as the fields they set; only those given."""
    given = {key: value for key, value in locals().items() if value is not None}
    if "override" in given:
        given["overrides"] = [_override(text) for text in given.pop("override")]
    if "profile" in given:
        given["profiles"] = given.pop("profile")
    return _apart(given)


def _apart(given: dict[str, Any]) -> dict[str, Any]:
    """Flags of prefill and decode workers as fields: the former set the deployment, the latter `decode`, which keeps the shared ones."""
    fields: dict[str, Any] = {}
    decode: dict[str, Any] = {}
    prefill: dict[str, Any] = {}
    for key, value in given.items():
        for prefix, into in (("prefill_", prefill), ("decode_", decode)):
            if key.startswith(prefix):
                name = key.removeprefix(prefix)
                into["dp" if name == "workers" else name] = value
                break
        else:
            fields[key] = value
    if prefill:
        decode = {name: fields.get(name, 1) for name in prefill} | decode
        fields |= prefill
    return fields | ({"decode": decode} if decode or prefill else {})


def _flag(field: str) -> str:
    """The flag that sets a field of a scenario."""
    return "--set" if field == "overrides" else f"--{field.replace('_', '-')}"


def replaced_figure(text: str) -> tuple[str, float]:
    """ID=VALUE to both.

    Raises:
        InputError: if it is not of that form.
    """
    from math import isfinite

    identifier, equals, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not (identifier.strip() and equals and isfinite(number)):
        raise InputError(
            f"--set {text}: expected ID=VALUE with a number, such as efficiency.gemm_compute=0.7"
        )
    return identifier.strip(), number


def swept_values(text: str) -> tuple[str, tuple[Any, ...]]:
    """NAME=VALUES to both: numbers and names with commas, LOW:HIGH:STEP for every step, LOW..HIGH for doublings.

    Raises:
        InputError: if it is not of that form.
    """
    name, equals, words = text.partition("=")
    parts = [part.strip() for part in words.split(",")]
    if not (name.strip() and equals and all(parts)):
        raise InputError(
            f"--over {text}: expected NAME=VALUES, such as tp=1,2,4..32 or efficiency.gemm_compute=0.5:0.9:0.1"
        )
    return name.strip(), tuple(value for part in parts for value in _values(part, text))


MOST_VALUES = 1_000_000  # of one range
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def _values(part: str, text: str) -> Iterator[Any]:
    """One value, every step of a range, or doublings; decimal arithmetic, so that steps of 0.05 stay what they are."""
    import re
    from decimal import Decimal

    def plain(number: Decimal) -> int | float:
        return int(number) if whole and number == number.to_integral_value() else float(number)

    whole = re.search(r"\d\.(?!\.)|[eE]", part) is None  # 2.0 is no whole number, as in a file
    if re.fullmatch(_NUMBER, part):
        yield plain(Decimal(part))
    elif found := re.fullmatch(f"({_NUMBER}):({_NUMBER}):({_NUMBER})", part):
        low, high, step = map(Decimal, found.groups())
        if step <= 0 or high < low:
            raise InputError(
                f"--over {text}: {part}: expected LOW:HIGH:STEP with LOW at most HIGH and STEP above 0"
            )
        if (high - low) / step >= MOST_VALUES:
            raise InputError(
                f"--over {text}: {part}: {int((high - low) / step) + 1:,} values; expected at most {MOST_VALUES:,}"
            )
        yield from (plain(low + place * step) for place in range(int((high - low) / step) + 1))
    elif found := re.fullmatch(r"(\d+)\.\.(\d+)", part):
        small, large = map(int, found.groups())
        if not 0 < small <= large:
            raise InputError(
                f"--over {text}: {part}: expected LOW..HIGH with whole numbers from 1, LOW at most HIGH"
            )
        yield from (small << place for place in range((large // small).bit_length()))
        if small << (large // small).bit_length() - 1 != large:
            raise InputError(
                f"--over {text}: {part}: {large} is no doubling of {small}; expected {small}..{small << (large // small).bit_length() - 1}"
            )
    elif re.fullmatch(r"[-+.:\d]+", part):
        raise InputError(f"--over {text}: {part}: expected a value, LOW:HIGH:STEP or LOW..HIGH")
    else:
        yield part


def _override(text: str) -> dict[str, Any]:
    identifier, number = replaced_figure(text)
    return {"id": identifier, "value": number, "reason": "set on the command line"}


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags of a scenario; it receives those given as its last argument, `flags`."""
    own = inspect.signature(command, eval_str=True)
    shared = inspect.signature(_flags, eval_str=True).parameters
    mine = [parameter for parameter in own.parameters.values() if parameter.name != "flags"]

    @wraps(command)
    def run(**arguments: Any) -> None:
        flags = _flags(**{key: arguments.pop(key) for key in shared})
        command(**arguments, flags=flags)

    run.__signature__ = own.replace(parameters=[*mine, *shared.values()])  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in (*mine, *shared.values())}
    return run


def scenario(what: str, flags: dict[str, Any]) -> tuple[Scenario, str, Bundle | None]:
    """A scenario file, a bundle or a model, and flags, to a scenario and the name that stands for it in errors; and the bundle, if it is one."""
    from mantile.library.scenario import Case, parse_scenario

    suffix = Path(what).suffix.lower()
    data, bundle = None, None
    if suffix in (".yaml", ".yml") or (suffix == ".json" and Path(what).is_file()):
        from mantile.workbook.bundle import read_document

        data, bundle = read_document(what)
    if bundle is None and suffix not in (".yaml", ".yml"):
        missing = [
            _flag(field)
            for field in REQUIRED
            if field not in flags and not (field == "concurrency" and "request_rate" in flags)
        ]
        if missing:
            raise InputError(
                f"{what}: missing {', '.join(missing)}; a model needs them, a scenario file may hold them"
            )
        return parse_scenario({"model": what, **flags}, "command line"), "command line", None
    if bundle is not None and "profiles" in flags:
        raise InputError(
            f"{what}: --profile: a bundle brings its own profiles; expected a scenario file or a model"
        )

    name = f"{what} with {', '.join(map(_flag, flags))}" if flags else what
    if isinstance(data, dict) and flags:
        data = dict(data)
        for field in flags:
            alias = Case.model_fields[field].validation_alias if field in Case.model_fields else None
            for spelling in getattr(alias, "choices", ()):
                data.pop(spelling, None)
        given = data.get("overrides") or []
        if "overrides" in flags and isinstance(given, list):
            fresh = {override["id"] for override in flags["overrides"]}
            kept = [
                override
                for override in given
                if not (isinstance(override, dict) and override.get("id") in fresh)
            ]
            flags = flags | {"overrides": [*kept, *flags["overrides"]]}
        data |= flags
    return parse_scenario(data, name), name, bundle
