"""A scenario as the launch line of its engine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from mantile.library.errors import InputError
from mantile.library.fields import DEPLOYMENT
from mantile.library.launch import MEMORY, Launch, read_launch
from mantile.library.launch_table import LaunchFlag, LaunchTable, launch_tables
from mantile.library.models import known_models
from mantile.library.scenario import SCENARIO_FIELDS, Scenario

_OF_ENGINE = (
    *("speculation", "draft_tokens"),
    *("serving", "batching", "token_budget", "microbatches", "max_requests", "scheduler", "kv_admission"),
    *("receive_interval", "batch_wait_steps", "max_model_len"),
)
_OF_MACHINE = (
    *("accelerator", "system", "framework", "compute_speed", "network_speed", "memory_taken"),
    *("framework_support", "tp_padding", "gpu_memory_utilization", "mem_fraction_static"),
)
ENGINE_FIELDS: tuple[str, ...] = (
    *(name for name, own in SCENARIO_FIELDS.items() if own.group == DEPLOYMENT and name not in _OF_MACHINE),
    *_OF_ENGINE,
)
"""Fields that an engine must be told; the others are of the machine, the workload or the price."""
_REPOSITORY = "ORGANISATION"  # of GGUF files: a scenario does not say whose


def launch_line(scenario: Scenario) -> str:
    """The launch line of the base column of a scenario, for vLLM, SGLang, TensorRT-LLM or llama.cpp.

    What it says is read back and compared: a line that means anything else is never returned. Of llama.cpp
    the organisation that published the files is left to be filled in.

    Raises:
        InputError: if the engine has no table, or cannot be told what a field says.

    Example:
        mantile.launch_line(mantile.load_scenario("workbooks/llama-3.3-70b-h100.yaml"))
        # "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8"
    """
    framework = scenario.framework or str(SCENARIO_FIELDS["framework"].default)
    table = launch_tables().get(framework)
    if table is None:
        raise InputError(
            f"framework {framework}: no table of its flags; expected one of {', '.join(launch_tables())}"
        )
    if scenario.disaggregated:
        raise InputError("decode: prefill and decode workers are launched by lines of their own")
    start = table.starts[0]
    program = ("python3", *start) if start[0] == "-m" else start
    line = shlex.join([*program, *_words(table, scenario)])
    _require_same(scenario, read_launch(line), table)
    return line


def _words(table: LaunchTable, scenario: Scenario) -> Iterator[str]:
    values = {name: getattr(scenario, name) for name in ENGINE_FIELDS}
    values = {
        name: value for name, value in values.items() if value not in (None, SCENARIO_FIELDS[name].default)
    }
    yield from _model(table, scenario.model, values.pop("weights_dtype", None))
    groups = values.pop("attention_dp", 1)
    if table.of_fact("split_mode") is not None:
        yield from _shares(values)
    else:
        yield from _groups(table, values, groups)
    for name, value in values.items():
        for flag in table.of_field(name):
            said = list(_flag(flag, value, groups if flag.per_group else 1))
            yield from said
            if said and flag.pair is None:
                break
    longest = table.of_fact("longest")
    if scenario.max_model_len and longest is not None:
        yield from _flag(longest, scenario.max_model_len)
    yield from _memory(table, scenario)


def _model(table: LaunchTable, model: str, stored: str | None) -> Iterator[str]:
    """The model by the name of a checkpoint, and what makes the data type of its weights."""
    known = known_models()
    if table.of_fact("gguf_repository") is not None:
        if model not in known.hub_ids:
            yield from (_model_flag(table), model)
            return
        title = known.hub_ids[model].rpartition("/")[2]
        yield from ("-hf", f"{_REPOSITORY}/{title}-GGUF" + (f":{stored.upper()}" if stored else ""))
        return
    checkpoint = next((key for key, of in known.checkpoints.items() if of == (model, stored)), None)
    named = checkpoint if stored and checkpoint else known.hub_ids.get(model, model)
    yield from ((named,) if table.positional else (_model_flag(table), named))
    if stored and not checkpoint:
        for fact in ("quantization", "sixteen_bit"):
            flag = table.of_fact(fact)
            if flag is not None and stored in flag.values.values():
                yield from _flag(flag, stored)


def _model_flag(table: LaunchTable) -> str:
    flag = table.of_fact("model")
    assert flag is not None, f"profiles/launch/{table.id}.yaml has no flag of the model"
    return flag.name


def _groups(table: LaunchTable, values: dict[str, Any], groups: int) -> Iterator[str]:
    """Degrees that the flags of an engine count otherwise than the fields."""
    ranks = values.get("tp", 1) * groups
    if groups > 1:
        if table.tp_counts == "ranks":
            values["tp"] = ranks
            flag = table.of_fact("dp_attention")
            if flag is not None:
                yield from _flag(flag, "on")
        if table.of_field("dp"):
            values["dp"] = groups * values.get("dp", 1)
    experts = table.of_fact("all_experts")
    if experts is not None and values.get("ep") == ranks:
        del values["ep"]
        yield experts.name


def _shares(values: dict[str, Any]) -> Iterator[str]:
    """How several accelerators share a model, as the parts of a list."""
    for name, mode in (("pp", "layer"), ("tp", "tensor")):
        count = values.pop(name, 1)
        if count > 1:
            yield from ("--split-mode", mode, "--tensor-split", ",".join("1" * count))


def _memory(table: LaunchTable, scenario: Scenario) -> Iterator[str]:
    """The share of memory, where an override states it."""
    figures = _shares_of_memory(scenario)
    flags = (table.of_fact("memory"), table.of_fact("static_memory"), table.of_fact("free_memory"))
    flag = next((flag for flag in flags if flag is not None), None)
    if MEMORY in figures and flag is not None:
        yield from _flag(flag, figures[MEMORY])


def _shares_of_memory(scenario: Scenario) -> dict[str, float]:
    """Overrides by id, with what fields say of the same figures."""
    figures = {override.id: override.value for override in scenario.overrides}
    if scenario.gpu_memory_utilization:
        return figures | {MEMORY: scenario.gpu_memory_utilization}
    if scenario.mem_fraction_static:
        return figures | {MEMORY: scenario.mem_fraction_static}
    return figures


def _flag(flag: LaunchFlag, value: Any, groups: int = 1) -> Iterator[str]:
    """A flag with a value of its field; nothing where it has no such value."""
    if flag.stands_for is not None or flag.takes == "none":
        if flag.stands_for in (None, value):
            yield flag.name
        return
    said = next((own for own, ours in flag.values.items() if ours == value), None)
    if said is None:
        if isinstance(value, str):
            return
        said = f"{round(value / groups / flag.scale, 6):.12g}"
    if flag.name.startswith("-"):
        yield from (flag.name, said)
    else:
        yield from ("--set", f"{flag.name}={said}")


def _require_same(scenario: Scenario, said: Launch, table: LaunchTable) -> None:
    """Refuse a line that says less, or something else, than the scenario.

    Raises:
        InputError: naming the fields.
    """
    lost = [
        f"{name} {getattr(scenario, name)}"
        for name in ("model", *ENGINE_FIELDS)
        if _value(name, getattr(scenario, name)) != _value(name, said.fields.get(name))
    ]
    stated = _shares_of_memory(scenario)
    written = {override["id"]: override["value"] for override in said.fields.get("overrides", ())}
    if stated.get(MEMORY) != written.get(MEMORY):
        lost.append(f"{MEMORY} {stated[MEMORY]:g}")
    if lost:
        raise InputError(f"no flag of {table.name} says {', '.join(dict.fromkeys(lost))}")


def _value(name: str, value: Any) -> Any:
    """A value as it counts: what holds by default is none."""
    if name not in SCENARIO_FIELDS or value != SCENARIO_FIELDS[name].default:
        return value
    return None
