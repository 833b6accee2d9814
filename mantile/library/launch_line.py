"""A scenario as the launch line of its engine."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.checkpoints import runs_on
from mantile.library.errors import InputError
from mantile.library.fields import DEPLOYMENT
from mantile.library.launch import MEMORY, Launch, read_launch, read_plan
from mantile.library.launch_table import LaunchFlag, LaunchTable, launch_tables
from mantile.library.models import checkpoint_of, known_models
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, with_own_accelerators
from mantile.library.scenario_fields import SCENARIO_FIELDS

_OF_ENGINE = (
    *("speculation", "draft_tokens"),
    *("serving", "batching", "token_budget", "microbatches", "max_requests", "scheduler", "kv_admission"),
    *("receive_interval", "batch_wait_steps", "max_model_len", "enforce_eager", "async_scheduling"),
    *("graph_max_batch", "schedule_policy", "attention_backend", "moe_backend"),
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
PUBLISHER = "ORGANISATION"  # of GGUF files: a scenario does not say whose


@dataclass(frozen=True)
class Said:
    """A flag of a line, and where it comes from.

    Args:
        flag: as it is written; "model" where the model stands without one.
        value: behind it; None: nothing.
        field: of the scenario, that it stands for; None: it comes from none.
        source: the document that describes it, with the day on which it was read.
        setting: whether it belongs to the configuration file of the engine.
        why: what is to be said of the value.
    """

    flag: str
    value: str | None
    field: str | None
    source: str
    setting: bool = False
    why: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """As a line has it."""
        if self.setting:
            return ("--set", f"{self.flag}={self.value}")
        if self.flag == MODEL:
            return (str(self.value),)
        return (self.flag,) if self.value is None else (self.flag, self.value)


MODEL = "model"  # the flag of a model that stands without one


def launch_line(scenario: Scenario) -> str:
    """The launch line of the base column of a scenario, for vLLM, SGLang, TensorRT-LLM or llama.cpp.

    What it says is read back and compared: a line that means anything else is never returned. Of llama.cpp
    the organisation that published the files is left to be filled in. `launch_files` writes more: it says
    where each flag comes from, and lists what no flag says.

    Raises:
        InputError: if the engine has no table, or cannot be told what a field says.

    Example:
        mantile.launch_line(mantile.load_scenario("workbooks/llama-3.3-70b-h100.yaml"))
        # "vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 8"
    """
    found = checkpoint_of(scenario.model)
    if found is not None and found.weights_dtype is not None:
        scenario = scenario.model_copy(update={"model": found.id})
    table = table_of(scenario.framework or str(SCENARIO_FIELDS["framework"].default))
    if scenario.disaggregated:
        raise InputError("decode: prefill and decode workers are launched by lines of their own")
    words = [word for flag in flags_of(table, scenario) for word in flag.words]
    line = shlex.join([*program_of(table), *words])
    _require_same(scenario, read_launch(line), table)
    return line


def table_of(framework: str) -> LaunchTable:
    """The flags of a framework.

    Raises:
        InputError: if it has none, with those that have.
    """
    table = launch_tables().get(framework)
    if table is None:
        raise InputError(
            f"framework {framework}: no table of its flags; expected one of {', '.join(launch_tables())}"
        )
    return table


def program_of(table: LaunchTable) -> tuple[str, ...]:
    """What its lines begin with."""
    start = table.starts[0]
    return ("python3", *start) if start[0] == "-m" else start


def flags_of(table: LaunchTable, scenario: Scenario) -> Iterator[Said]:
    """The flags that a scenario states."""
    values = {name: getattr(scenario, name) for name in ENGINE_FIELDS}
    values = {
        name: value for name, value in values.items() if value not in (None, SCENARIO_FIELDS[name].default)
    }
    case, library = with_own_accelerators(scenario, load_library())
    places = library.accelerator(case.accelerator).places if case.accelerator else ()
    yield from _model(table, scenario.model, values.pop("weights_dtype", None), places)
    yield from settings_of(table, values)
    longest = table.of_fact("longest")
    if scenario.max_model_len and longest is not None:
        yield from _flag(table, longest, scenario.max_model_len, "max_model_len")
    yield from memory_of(table, scenario)


def settings_of(table: LaunchTable, stated: Mapping[str, Any]) -> Iterator[Said]:
    """The flags of fields, but for the model, its weights, and shares of memory.

    Args:
        stated: by name, those whose value is to be said whatever the engine does by itself.
    """
    values = dict(stated)
    groups = values.pop("attention_dp", 1)
    if table.of_fact("split_mode") is not None:
        yield from _shares(table, values)
    else:
        yield from _groups(table, values, groups)
    switch = table.of_fact("adapters")
    if values.get("lora_adapters") and switch is not None:
        yield Said(switch.name, None, "lora_adapters", table.source(switch))
    for name, value in values.items():
        for flag in table.of_field(name):
            if flag.written_with and stated.get("speculation") not in flag.written_with:
                continue
            written = list(_flag(table, flag, value, name, groups if flag.per_group else 1))
            yield from written
            if written and flag.pair is None:
                break


def says(table: LaunchTable, plan: Mapping[str, Any], architecture: Architecture) -> bool:
    """Whether flags of an engine say degrees, KV cache and offload of a model: they are written, read and
    compared.

    Args:
        plan: fields of a scenario; others are as by default.
    """
    own = architecture.choices.get("kv_dtype")
    default = {name: SCENARIO_FIELDS[name].default for name in plan}
    default |= {"kv_dtype": own.value} if own is not None else {}
    stated = {name: value for name, value in plan.items() if value != default[name]}
    words = [word for flag in settings_of(table, stated) for word in flag.words]
    try:
        means = read_plan(table, words, architecture)
    except InputError:
        return False
    return all(means.get(name, default[name]) == value for name, value in plan.items())


def length_of(table: LaunchTable, tokens: int, field: str, why: str = "") -> Iterator[Said]:
    """The most tokens of a request, or of all slots together where an engine counts those."""
    longest = table.of_fact("longest")
    if longest is not None:
        for flag in _flag(table, longest, tokens, field):
            yield replace(flag, why=why)


def named(
    table: LaunchTable, model: str, stored: str | None, places: Collection[str]
) -> tuple[Said, ...] | None:
    """The model by the name of a checkpoint, and what makes the data type of its weights; None where no
    checkpoint is known that holds them, and no flag makes them.

    Args:
        model: an id of ours or of the hub.
        stored: data type of the weights; None: that of the entry.
        places: maker and generation of the accelerator.
    """
    of_files = table.of_fact("gguf_repository") is not None
    if of_files and model not in known_models().hub_ids:
        return None
    flags = tuple(_model(table, model, stored, places))
    listed = stored is not None and _checkpoint(table, model, stored, places) is not None
    return flags if stored is None or of_files or listed or len(flags) > 1 else None


def _checkpoint(table: LaunchTable, model: str, stored: str, places: Collection[str]) -> str | None:
    """The checkpoint that an entry lists for a data type, an accelerator and an engine."""
    listed = known_models().checkpoints.items()
    fitting = (key for key, of in listed if of == (model, stored) and runs_on(key, stored, places, table.id))
    return next(fitting, None)


def _model(table: LaunchTable, model: str, stored: str | None, places: Collection[str]) -> Iterator[Said]:
    known = known_models()
    if table.of_fact("gguf_repository") is not None:
        if model not in known.hub_ids:
            yield model_of(table, model)
            return
        title = known.hub_ids[model].rpartition("/")[2]
        flag = table.of_fact("gguf_repository")
        assert flag is not None
        repository = f"{PUBLISHER}/{title}-GGUF" + (f":{stored.upper()}" if stored else "")
        yield Said(flag.name, repository, "model", table.source(flag))
        return
    checkpoint = _checkpoint(table, model, stored, places) if stored else None
    yield model_of(table, checkpoint or known.hub_ids.get(model, model))
    if stored and not checkpoint:
        for fact in ("quantization", "sixteen_bit"):
            flag = table.of_fact(fact)
            if flag is not None and stored in flag.values.values():
                yield from _flag(table, flag, stored, "weights_dtype")


def model_of(table: LaunchTable, called: str) -> Said:
    """The model by whatever a line calls it."""
    flag = table.of_fact("model")
    assert flag is not None, f"profiles/launch/{table.id}.yaml has no flag of the model"
    return Said(MODEL if table.positional else flag.name, called, "model", table.source(flag))


def _groups(table: LaunchTable, values: dict[str, Any], groups: int) -> Iterator[Said]:
    """Degrees that the flags of an engine count otherwise than the fields."""
    ranks = values.get("tp", 1) * groups
    if groups > 1:
        if table.tp_counts == "ranks":
            values["tp"] = ranks
            flag = table.of_fact("dp_attention")
            if flag is not None:
                yield from _flag(table, flag, "on", "attention_dp")
        of_groups = table.of_field("dp")
        if of_groups:
            copies = groups * values.pop("dp", 1)
            yield from _flag(table, of_groups[0], copies, "attention_dp")
    dense = table.of_fact("dense_tp")
    if dense is not None and values.get("ffn_tp") == 1:
        del values["ffn_tp"]
        yield Said(dense.name, "1", "ffn_tp", table.source(dense))
    experts = table.of_fact("all_experts")
    if experts is not None and values.get("ep") == ranks:
        del values["ep"]
        yield Said(experts.name, None, "ep", table.source(experts))


def _shares(table: LaunchTable, values: dict[str, Any]) -> Iterator[Said]:
    """How several accelerators share a model, as the parts of a list."""
    mode, shares = table.of_fact("split_mode"), table.of_fact("shares")
    assert mode is not None and shares is not None
    for name, kind in (("pp", "layer"), ("tp", "tensor")):
        count = values.pop(name, 1)
        if count > 1:
            yield Said("--split-mode", kind, name, table.source(mode))
            yield Said("--tensor-split", ",".join("1" * count), name, table.source(shares))


def memory_of(table: LaunchTable, scenario: Scenario) -> Iterator[Said]:
    """The share of memory, where a field or an override states it."""
    figures = _shares_of_memory(scenario)
    flags = (table.of_fact("memory"), table.of_fact("static_memory"), table.of_fact("free_memory"))
    flag = next((flag for flag in flags if flag is not None), None)
    field = "overrides"
    if scenario.gpu_memory_utilization:
        flag, field = table.of_fact("memory"), "gpu_memory_utilization"
    elif scenario.mem_fraction_static:
        flag, field = table.of_fact("static_memory"), "mem_fraction_static"
    if MEMORY in figures and flag is not None:
        yield from _flag(table, flag, figures[MEMORY], field)


def _shares_of_memory(scenario: Scenario) -> dict[str, float]:
    """Overrides by id, with what fields say of the same figures."""
    figures = {override.id: override.value for override in scenario.overrides}
    if scenario.gpu_memory_utilization:
        return figures | {MEMORY: scenario.gpu_memory_utilization}
    if scenario.mem_fraction_static:
        return figures | {MEMORY: scenario.mem_fraction_static}
    return figures


def _flag(table: LaunchTable, flag: LaunchFlag, value: Any, field: str, groups: int = 1) -> Iterator[Said]:
    """A flag with a value of its field; nothing where it has no such value."""
    source = table.source(flag)
    if flag.stands_for is not None or flag.takes == "none":
        if flag.stands_for in (None, value):
            yield Said(flag.name, None, field, source)
        return
    said = next((own for own, ours in flag.values.items() if ours == value), None)
    if said is None:
        if isinstance(value, str) and not _by_its_own_name(flag):
            return
        said = value if isinstance(value, str) else f"{value / groups / flag.scale:.12g}"
    yield Said(flag.name, said, field, source, setting=not flag.name.startswith("-"))


def _by_its_own_name(flag: LaunchFlag) -> bool:
    """Whether a flag says a name of the engine's own, as the field has it."""
    return flag.field is not None and SCENARIO_FIELDS[flag.field].listed == "settings"


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
