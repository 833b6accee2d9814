"""How the deployment of a scenario is started: servers, their flags, and where each flag comes from."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

from mantile.estimates.estimate import Estimate
from mantile.estimates.start import start
from mantile.graph.evaluate import Program
from mantile.library.beside_cpu import is_beside_cpu
from mantile.library.columns import columns
from mantile.library.errors import InputError
from mantile.library.fields import DECODE
from mantile.library.hub import hub_name
from mantile.library.launch import MEMORY, Remark, read_launch
from mantile.library.launch_line import (
    ENGINE_FIELDS,
    MODEL,
    PUBLISHER,
    Said,
    length_of,
    memory_of,
    model_of,
    named,
    program_of,
    settings_of,
    table_of,
)
from mantile.library.launch_server import Across, Apart, cluster, said
from mantile.library.launch_table import LaunchTable, launch_tables
from mantile.library.models import known_models
from mantile.library.profiles import CHECKPOINT, Accelerator
from mantile.library.scenario import Override, Scenario
from mantile.library.scenario_fields import SCENARIO_FIELDS, WORKER_FIELDS

MODEL_PATH = "MODEL_PATH"
"""Stands for the model where no checkpoint of it is known."""
DRAFT_MODEL_PATH = "DRAFT_MODEL_PATH"
"""Stands for what drafts tokens."""
PLAN = (
    *("tp", "pp", "dp", "ep", "attention_dp", "cp"),
    *("weights_dtype", "kv_dtype", "offload_weights", "offload_kv", "kv_swap", "speculation", "draft_tokens"),
)
"""Fields of which a line must not mean anything else: what runs where, and in which format."""
_SHARES = ("gpu_memory_utilization", "mem_fraction_static")
_TOLD = ("framework", "accelerator", "serving", "model", *_SHARES)
_LOAD = ("accelerator", "input_tokens", "output_tokens")


REFUSES_TO_START = "REFUSES_TO_START"
"""The code of a plan whose engine does not start."""
_HELPS = 3  # changes that are stated one after the other until a server starts


class DoesNotFit(InputError):
    """The plan of a scenario does not work.

    Args:
        errors: the checks that do not hold, as an estimate has them.
    """

    def __init__(self, title: str, errors: list[dict[str, Any]]) -> None:
        self.errors = errors
        lines = [f"{error['code']}: {error['message']}" for error in errors]
        super().__init__("\n".join([f"{title}: the plan does not work", *lines]))


@dataclass(frozen=True)
class Server:
    """A server of the deployment, of which there may be several copies.

    Args:
        role: prefill or decode, where they are apart; else empty.
        model: what the line calls it.
        flags: of the plan, the model first.
        service: flags that say how it listens and what it is for.
        across: how its ranks are started on several machines, where it needs them.
        copies: that are started.
        machines: of one copy, with `accelerators` on each, and there `groups` of attention-DP.
        ram: bytes of host memory on each machine.
        not_expressed: what the scenario states and no flag says.
        left: what the engine takes where the line says nothing.
        blanks: what is to be filled in.
    """

    role: str
    table: LaunchTable
    chip: Accelerator
    model: str
    flags: tuple[Said, ...]
    service: tuple[Said, ...]
    across: Across | None
    copies: int
    machines: int
    accelerators: int
    groups: int
    ram: float
    not_expressed: tuple[Remark, ...]
    left: tuple[Remark, ...]
    blanks: tuple[Remark, ...]

    def flags_of(self, leads: bool = True, others: bool = True) -> tuple[Said, ...]:
        """Those of the plan and the service, and those by which machines find one another.

        Args:
            leads: whether those of the first machine are among them, `others` those of all others.
        """
        across = self.across
        if across is None:
            return (*self.flags, *self.service)
        source, field = said(across), "attention_dp" if across.groups else "tp, pp, attention_dp"
        words = (*across.words, *(across.joining if others or not leads else ()))
        filled = self._filled("HEAD_ADDRESS", "NODE_RANK", f"NODE_RANK * {self.groups}")
        started = [Said(across.program.format(**filled), None, field, source)] if across.program else []
        pairs = _pairs(tuple(word.format(**filled) for word in words), field, source)
        return (*self.flags, *self.service, *started, *pairs)

    def documents(self, others: Iterable[str] = ()) -> dict[str, int]:
        """Sources by their number in comments; `others` are named besides those of flags."""
        sources = [*(flag.source for flag in self.flags_of()), *others]
        return {source: number for number, source in enumerate(dict.fromkeys(sources), 1)}

    def _filled(self, head: str, rank: str, first: str) -> dict[str, Any]:
        of_groups = self.across is not None and self.across.groups
        return {
            "machines": self.machines,
            "ranks": self.machines * self.accelerators,
            "local": self.groups if of_groups else self.accelerators,
            "head": head,
            "rank": rank,
            "first": first,
        }

    @property
    def settings(self) -> tuple[Said, ...]:
        """Those that stand in the configuration file of the engine."""
        return tuple(flag for flag in (*self.flags, *self.service) if flag.setting)

    def words(self, head: str, rank: str, first: str, leads: bool = True) -> list[str]:
        """The line of one machine, without configuration file.

        Args:
            head: what stands for the address of the first machine, `rank` for the number of this one, `first`
                for that of its first group.
            leads: whether it is that of the first machine.
        """
        line = [*program_of(self.table)]
        for flag in (*self.flags, *self.service):
            line += () if flag.setting else flag.words
        if self.across is None:
            return line
        filled = self._filled(head, rank, first)
        own = (*self.across.words, *(() if leads else self.across.joining))
        program = self.across.program.format(**filled).split()
        return [*program, *line, *(word.format(**filled) for word in own)]


@dataclass(frozen=True)
class Router:
    """What hands requests to prefill and decode workers.

    Args:
        file: its configuration, where it has a file of it.
        source: the document.
    """

    words: tuple[str, ...]
    port: int
    source: str
    file: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Launch:
    """The servers of a deployment.

    Args:
        failing: checks that do not hold, where it is launched all the same.
    """

    title: str
    model: str
    servers: tuple[Server, ...]
    router: Router | None
    failing: tuple[dict[str, Any], ...]

    def flags(self) -> list[dict[str, Any]]:
        """Every flag: server, flag, value, field of the scenario that it comes from, source."""
        return [
            {
                "server": server.role or "server",
                "flag": flag.flag,
                "value": flag.value,
                "field": flag.field,
                "source": flag.source,
            }
            for server in self.servers
            for flag in server.flags_of()
        ]


def launch(estimate: Estimate, anyway: bool = False) -> Launch:
    """How the base column of an estimate is started.

    Args:
        anyway: whether a plan is launched of which checks do not hold.

    Raises:
        DoesNotFit: naming those checks.
        InputError: if the framework cannot run what is asked, has no table, or no flag says what the plan is.
    """
    errors = estimate.results(0)["checks"]["errors"]
    for error in errors:
        if error["code"].startswith("FRAMEWORK"):
            raise InputError(
                f"{error['code']}: {error['message']}; or another framework: "
                f"{_others(str(estimate.columns[0].values['framework']))}"
            )
    if errors and not anyway:
        raise DoesNotFit(estimate.title, errors)
    values = estimate.columns[0].values
    apart = values.get("serving") == "disaggregated"
    estimate, proven = _that_starts(estimate, anyway)
    if estimate.scenario.devices:
        servers: tuple[Server, ...] = (_beside_cpu(estimate),)
    else:
        servers = tuple(_server(estimate, role) for role in (("prefill", "decode") if apart else ("",)))
    return Launch(
        title=estimate.title,
        model=estimate.model.id,
        servers=tuple(_with_reasons(server, proven) for server in servers),
        router=_router(servers) if apart else None,
        failing=tuple(errors),
    )


def _others(framework: str) -> str:
    """Frameworks to try in place of one."""
    return f"--framework {' or '.join(other for other in launch_tables() if other != framework)}"


def _server(estimate: Estimate, role: str) -> Server:
    """A server of a role."""
    wanted = _wanted(estimate, role)
    table = table_of(str(wanted["framework"]))
    if role and wanted["framework"] != estimate.columns[0].values["framework"]:
        raise InputError(
            f"decode.framework {wanted['framework']}: no document says how it takes over the KV cache of "
            f"{estimate.columns[0].values['framework']}; expected the same framework for both"
        )
    if role and table.server.apart is None:
        raise InputError(
            f"decode: no document of {table.name} that was read launches prefill and decode apart"
        )
    workers = estimate.equations.decode_workers if role == "decode" else estimate.equations.prefill_workers
    system = str(estimate.values(0)[workers.rows["hardware.system"]])
    domain = int(float(estimate.values(0)[workers.rows["hardware.accelerators"]]))
    size = _size(wanted)
    machine = cluster().on_a_machine(system, domain)
    machines, across = spread(table, wanted, machine)
    copies = int(wanted["dp"])
    line = None
    for local in _divisors(copies):
        if local > 1 and (role or local * size > machine):
            continue
        try:
            line = _line(estimate, table, wanted | {"dp": local}, role)
        except InputError:  # groups and replicas that one flag would have to count
            if local == 1:
                raise
            continue
        if "dp" not in line.lost:
            break
    assert line is not None
    line.require_plan(table)
    per_machine = size // machines * local
    ram = workers.rows["startup.ram"]
    return Server(
        role=role,
        table=table,
        chip=estimate.library.accelerator(str(wanted["accelerator"])),
        model=line.model,
        flags=line.flags,
        service=_service(table, wanted, role, any(flag.setting for flag in line.flags)),
        across=across,
        copies=copies // local,
        machines=machines,
        accelerators=per_machine,
        groups=max(1, int(wanted["attention_dp"]) // machines),
        ram=per_machine * float(Program([ram]).run(estimate.inputs(0))[ram]),
        not_expressed=tuple(_not_expressed(estimate, table, line, wanted)),
        left=line.left,
        blanks=tuple(_blanks(estimate, table, line, wanted)),
    )


def _with_reasons(server: Server, reasons: Mapping[str, str]) -> Server:
    """A server whose flags say why they were added."""

    def explained(flag: Said) -> Said:
        why = reasons.get(flag.field or "")
        return flag if why is None else replace(flag, why=f"without it {why}")

    return replace(server, flags=tuple(map(explained, server.flags)))


def _that_starts(estimate: Estimate, anyway: bool) -> tuple[Estimate, dict[str, str]]:
    """An estimate whose server starts, with what was stated for it and why, by field.

    Args:
        anyway: whether a server is launched that does not start by what is known.

    Raises:
        DoesNotFit: where nothing helps, or the plan states what is refused.
    """
    stated: dict[str, str] = {}
    found = start(estimate)
    for _ in range(_HELPS):
        if found is None or found.verdict == "starts":
            return estimate, stated
        fixed = {*stated, *estimate.columns[0].given}
        helps = next((one for one in found.helps if not fixed & set(one.fields)), None)
        if helps is None:
            break
        estimate = estimate.again(estimate.scenario.replace(**helps.fields))
        stated |= dict.fromkeys(helps.fields, found.message)
        found = start(estimate)
    if found is not None and found.verdict == "refuses" and not anyway:
        error = {"code": REFUSES_TO_START, "message": found.message, "left": 1.0, "right": 0.0}
        raise DoesNotFit(estimate.title, [error])
    return estimate, stated


def _beside_cpu(estimate: Estimate) -> Server:
    """A server whose accelerators hold the last layers, and a CPU beside them the rest.

    Raises:
        InputError: for other devices that are not alike, and for an engine that has no flag for it.
    """
    table = table_of(str(estimate.columns[0].values["framework"]))
    layers_flag, experts_flag, cache_flag = (
        table.find(name) for name in ("--n-gpu-layers", "--n-cpu-moe", "--no-kv-offload")
    )
    stated = is_beside_cpu(estimate.scenario.model_dump(include={"devices"}))
    if layers_flag is None or experts_flag is None or cache_flag is None or not stated:
        raise InputError(
            f"devices: no flag of {table.name} says which device holds which layers; expected accelerators "
            "of one kind, or a CPU beside them (--cpu) with --framework llama.cpp"
        )
    host, card = estimate.results()["devices"]
    scenario = estimate.scenario.replace(
        devices=[],
        overrides=[],
        variants=[],
        device_split=None,
        system=None,
        accelerator=card["accelerator"],
        tp=card["accelerators"],
    )
    server = _server(estimate.again(scenario), "")
    on_card, below = card["layers"], host["layers"]
    flags = [
        Said(
            layers_flag.name,
            str(on_card if below else max(99, on_card + 1)),
            "devices",
            table.source(layers_flag),
        )
    ]
    if card.get("experts_away"):
        name, count = "--n-cpu-moe", below + card["experts_away"]  # counted from the first layer of the model
        flags.append(Said(name, str(count), "devices", table.source(experts_flag)))
    if card.get("kv_away"):
        flags.append(Said("--no-kv-offload", None, "devices", table.source(cache_flag)))
    return replace(server, flags=(*server.flags, *flags), ram=float(estimate.results()["ram_peak_bytes"]))


def _divisors(number: int) -> Iterator[int]:
    """From the largest."""
    return (part for part in range(number, 0, -1) if number % part == 0)


def _wanted(estimate: Estimate, role: str) -> dict[str, Any]:
    """The fields of the base column as they hold for a role."""
    values: dict[str, Any] = dict(estimate.columns[0].values)
    if role == "decode":
        own = ((name, values.get(f"{DECODE}{name}")) for name in WORKER_FIELDS)
        values |= {name: value for name, value in own if value is not None}
    results = estimate.results(0)
    for name in ("input_tokens", "output_tokens"):  # where classes of requests state them
        values.setdefault(name, ceil(results[name]))
    return {name: values[name] for name in SCENARIO_FIELDS if name in values and name != "serving"}


def _size(wanted: Mapping[str, Any]) -> int:
    """Accelerators of a replica."""
    return int(wanted["tp"]) * int(wanted["pp"]) * int(wanted["attention_dp"]) * int(wanted["cp"])


def spread(table: LaunchTable, wanted: Mapping[str, Any], machine: int) -> tuple[int, Across | None]:
    """The machines of a replica, and how a server over several of them is started; None on one.

    Args:
        wanted: its degrees.
        machine: accelerators of a machine.

    Raises:
        InputError: where no document says it.
    """
    size, machines = _size(wanted), 1
    while size % machines or size // machines > machine:
        machines += 1
    return machines, _across(table, wanted, machines, machine) if machines > 1 else None


def _across(table: LaunchTable, wanted: Mapping[str, Any], machines: int, machine: int) -> Across:
    """How a server over several machines is started.

    Raises:
        InputError: where no document says it.
    """
    ways = table.server.across
    group = int(wanted["tp"]) * int(wanted["pp"]) * int(wanted["cp"])
    of_groups = next((way for way in ways if way.groups), None)
    several = int(wanted["attention_dp"]) > 1
    if several and of_groups is not None and group <= machine and int(wanted["attention_dp"]) % machines == 0:
        return of_groups
    whole = next((way for way in ways if not way.groups), None)
    if whole is None or (several and of_groups is not None):
        raise InputError(
            f"{table.name}: no document that was read starts this plan on {machines} machines of "
            f"{machine} accelerators; expected a replica that lies within one"
            + (", or groups of attention-DP that do" if several and whole else "")
        )
    return whole


# --- the line -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """The flags of a line, and what they were read as.

    Args:
        lost: fields that mean something else, with what was wanted and what the line means.
    """

    model: str
    flags: tuple[Said, ...]
    lost: Mapping[str, tuple[Any, Any]]
    left: tuple[Remark, ...]

    def require_plan(self, table: LaunchTable) -> None:
        """Refuse a line that launches another plan.

        Raises:
            InputError: naming the fields, and what the line means.
        """
        lost = {name: self.lost[name] for name in PLAN if name in self.lost}
        if lost:
            told = "; ".join(
                f"{name} {asked} (a line means {means})" for name, (asked, means) in lost.items()
            )
            raise InputError(
                f"no flag of {table.name} says {told}; expected a plan that it can be told, or another "
                f"framework: {_others(table.id)}"
            )


def _line(estimate: Estimate, table: LaunchTable, wanted: dict[str, Any], role: str) -> _Line:
    """The flags of a plan; they are read back, and what they mean is compared with it."""
    bare = {name: wanted[name] for name in _LOAD} | {"concurrency": 1, "framework": table.id}
    by_default = _resolved(estimate, bare)
    stored = None if wanted["weights_dtype"] == by_default["weights_dtype"] else str(wanted["weights_dtype"])
    if stored:
        by_default = _resolved(estimate, bare | {"weights_dtype": stored})
    model = _model(estimate, table, str(wanted["accelerator"]), str(wanted["weights_dtype"]), stored)
    stated = {
        name: wanted[name]
        for name in ENGINE_FIELDS
        if name in wanted and name != "weights_dtype" and wanted[name] != by_default.get(name)
    }
    derived = _derived(estimate, table, wanted, role)
    slots = int(str(derived["max_requests"].value)) if "max_requests" in derived else 0
    drafting = wanted.get("speculation", "none") != "none"
    if drafting:
        stated["draft_tokens"] = wanted["draft_tokens"]
    stated |= {name: int(str(flag.value)) for name, flag in derived.items()}
    flags = [*model]
    for flag in settings_of(table, {name: stated[name] for name in stated if name != "max_model_len"}):
        origin = derived.get(flag.field or "")
        flags.append(replace(flag, field=origin.field, why=origin.why) if origin else flag)
    if drafting:
        flags += _drafts(estimate, table, wanted, flags)
    slots = (
        slots
        or int(wanted.get("max_requests") or 0)
        or int(not (wanted.get("request_rate") or wanted.get("sessions")))
    )
    flags += _lengths(table, wanted, slots)
    flags += memory_of(table, _shares(estimate, wanted))
    text = shlex.join([*program_of(table), *(word for flag in flags for word in flag.words)])
    known = flags[0].value == MODEL_PATH
    read = read_launch(text, model=_readable(estimate)) if known else read_launch(text)
    fields = {name: value for name, value in read.fields.items() if name in ENGINE_FIELDS}
    if known and stored:
        fields |= {"weights_dtype": stored}
    means = _resolved(estimate, bare | fields)
    asked = wanted | stated
    lost = {
        name: (asked[name], means.get(name))
        for name in ENGINE_FIELDS
        if name in asked and asked[name] != means.get(name)
    }
    if table.of_fact("split_mode") is not None:
        lost.pop("max_model_len", None)  # said as the context of all slots
    return _Line(str(flags[0].value), tuple(flags), lost, read.defaults)


def _drafts(
    estimate: Estimate, table: LaunchTable, wanted: Mapping[str, Any], flags: list[Said]
) -> Iterator[Said]:
    """What an engine is told of drafts besides kind and number: what drafts, where the model does not."""
    source = next((flag.source for flag in flags if flag.field == "speculation"), "")
    words = tuple(word.format(steps=int(wanted["draft_tokens"]) + 1) for word in table.server.drafts)
    yield from _pairs(words, "draft_tokens", source)
    if wanted["speculation"] in ("eagle", "draft-model") and table.server.drafter:
        stated = estimate.scenario.draft_model if wanted["speculation"] == "draft-model" else None
        named = known_models().hub_ids.get(stated or "", stated) or DRAFT_MODEL_PATH
        setting = not table.server.drafter.startswith("-")
        yield Said(table.server.drafter, named, "speculation", source, setting=setting)


def _readable(estimate: Estimate) -> str:
    """The model as a launch line may be told it in place of its own word."""
    return estimate.model.id if estimate.model.id in known_models().hub_ids else estimate.scenario.model


def _resolved(estimate: Estimate, fields: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of a scenario with their defaults."""
    scenario = Scenario(**({"model": estimate.scenario.model} | dict(fields)))
    return dict(columns(scenario, estimate.model, estimate.library)[0].values)


def _model(
    estimate: Estimate, table: LaunchTable, accelerator: str, weights: str, stored: str | None
) -> tuple[Said, ...]:
    """The model by its checkpoint.

    Args:
        weights: their data type; `stored`, where it is not that which the engine takes by itself.
    """
    framework = estimate.library.framework(table.id)
    if framework.weights != CHECKPOINT:
        own = str(estimate.model.architecture.choices["weights_dtype"].value)
        stored = None if weights == own and own in framework.keeps else weights
    known = known_models()
    asked = hub_name(estimate.scenario.model)
    of_files = table.of_fact("gguf_repository") is not None
    if asked is not None and stored is None and not of_files and not Path(estimate.scenario.model).exists():
        return (model_of(table, asked.id),)  # as the scenario calls it, which may be a tuned one of ours
    called = estimate.model.id if estimate.model.id in known.hub_ids else estimate.model.hub_id
    places = estimate.library.accelerator(accelerator).places
    flags = named(table, called, stored, places) if called else None
    return flags or (model_of(table, MODEL_PATH),)


def _derived(estimate: Estimate, table: LaunchTable, wanted: Mapping[str, Any], role: str) -> dict[str, Said]:
    """Limits that the estimate takes for granted and the engine does not, with the field they follow from."""
    found: dict[str, Said] = {}
    if wanted.get("token_budget") and table.of_field("token_budget"):
        why = "" if "token_budget" in estimate.columns[0].given else "as the estimate has it by default"
        found["token_budget"] = Said("", str(wanted["token_budget"]), "token_budget", "", why=why)
    most = _most(estimate, table, wanted)
    batch = estimate.results(0)["batch"]
    kept = wanted.get("concurrency") and not (wanted.get("request_rate") or wanted.get("sessions"))
    if wanted.get("max_requests") or role == "prefill" or not batch or not kept or most is None:
        return found
    if batch > most * int(wanted["attention_dp"]):
        groups = int(wanted["attention_dp"])
        why = f"the engine takes {most} by itself"
        found["max_requests"] = Said("", str(ceil(batch / groups) * groups), "concurrency", "", why=why)
    return found


def _most(estimate: Estimate, table: LaunchTable, wanted: Mapping[str, Any]) -> int | None:
    """Requests of a group that the engine takes by itself; None where nobody states it."""
    limits = estimate.library.framework(table.id).limits
    if limits is None:
        return None
    chip = estimate.library.accelerator(str(wanted["accelerator"]))
    workers = estimate.equations.decode_workers
    memory = float(estimate.values(0)[workers.rows["hardware.memory_capacity"]])
    large = memory >= (limits.large_from or 0) * 2**30 and chip.generation != limits.small_on
    return limits.on("large" if large else "small").max_requests


def _lengths(table: LaunchTable, wanted: Mapping[str, Any], slots: int) -> list[Said]:
    """The longest request; where slots have their part of one context, that of all of them."""
    longest = int(wanted.get("max_model_len") or 0)
    if table.of_fact("split_mode") is None:
        return list(length_of(table, longest, "max_model_len")) if longest else []
    if not slots:
        return []  # at a rate: nobody states how many requests are at work at once
    field = "max_model_len" if longest else "input_tokens, output_tokens"
    tokens = longest or int(wanted["input_tokens"]) + int(wanted["output_tokens"])
    why = f"{slots} slots of {tokens:,} tokens; longer requests do not fit a slot"
    return list(length_of(table, slots * tokens, field, why))


def _shares(estimate: Estimate, wanted: Mapping[str, Any]) -> Scenario:
    """A scenario with what states the share of memory alone."""
    fields = {name: wanted[name] for name in _SHARES if wanted.get(name)}
    stated = [override for override in estimate.columns[0].overrides if override.id == MEMORY]
    overrides = tuple(Override(**override.model_dump()) for override in stated)
    load = {name: wanted[name] for name in _LOAD}
    return Scenario(model="x", concurrency=1, overrides=overrides, **load, **fields)


# --- around it ----------------------------------------------------------------------------------------------


def _service(
    table: LaunchTable, wanted: Mapping[str, Any], role: str, has_settings: bool
) -> tuple[Said, ...]:
    """How it listens, and what it is for.

    Args:
        has_settings: whether flags of the plan stand in a configuration file.
    """
    listening = table.server.listening
    found = [*_pairs(listening.words, None, said(listening))]
    apart = table.server.apart
    if role and apart is not None:
        found += _of_role(apart, wanted, role)
    if has_settings or any(flag.setting for flag in found):
        flag = table.of_fact("config")
        assert flag is not None, f"profiles/launch/{table.id}.yaml has no flag of a configuration file"
        file = f"{role}-options.yaml" if role else "extra-options.yaml"
        found.append(Said(table.server.options, file, None, table.source(flag)))
    return tuple(found)


def _of_role(apart: Apart, wanted: Mapping[str, Any], role: str) -> Iterator[Said]:
    """What makes a server one of prefill or of decode."""
    words = apart.prefill if role == "prefill" else apart.decode
    yield from _pairs(tuple(word.format() for word in words), "serving", said(apart))
    settings = apart.prefill_settings if role == "prefill" else apart.decode_settings
    longest = wanted.get("max_model_len") or int(wanted["input_tokens"]) + int(wanted["output_tokens"])
    of_length = "max_model_len" if wanted.get("max_model_len") else "input_tokens, output_tokens"
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value).format(longest=longest)
        field = of_length if "{longest}" in str(value) else "serving"
        yield Said(name, text, field, said(apart), setting=True)


def _pairs(words: tuple[str, ...], field: str | None, source: str) -> Iterator[Said]:
    """Flags and their values."""
    for place, word in enumerate(words):
        if word.startswith("-"):
            behind = words[place + 1] if place + 1 < len(words) else "-"
            yield Said(word, None if behind.startswith("-") else behind, field, source)


def _not_expressed(
    estimate: Estimate, table: LaunchTable, line: _Line, wanted: Mapping[str, Any]
) -> Iterator[Remark]:
    """What the scenario states and the line does not say."""
    given = estimate.columns[0].given
    for name, (asked, means) in line.lost.items():
        if name in given:
            yield Remark(f"{name} {asked}", f"no flag of {table.name} stands for it")
        elif means is not None:
            yield Remark(f"{name} {asked}", f"{table.name} is taken to have {means}")
    longest = table.of_fact("longest")
    if table.of_fact("split_mode") and longest and all(flag.flag != longest.name for flag in line.flags):
        yield Remark("slots and context", "at a rate, their number is not known: state max_requests for it")
    fields = {flag.field for flag in line.flags}
    for name in _SHARES:
        if wanted.get(name) and name not in fields:
            yield Remark(f"{name} {wanted[name]:g}", f"no flag of {table.name} counts it so")
    for override in estimate.columns[0].overrides:
        if override.id != MEMORY or "overrides" not in fields:
            yield Remark(f"{override.id} {override.value:g}", "a figure of the estimate, not of the engine")
    others = [
        f"{name} {wanted[name]}" for name in given if name in wanted and name not in (*ENGINE_FIELDS, *_TOLD)
    ]
    if estimate.scenario.classes:
        others.append(f"classes {', '.join(one.name for one in estimate.scenario.classes)}")
    if others:
        yield Remark(", ".join(others), "of machine, load and price, not of the server")


def _blanks(
    estimate: Estimate, table: LaunchTable, line: _Line, wanted: Mapping[str, Any]
) -> Iterator[Remark]:
    """What somebody has to fill in; no checkpoint of it is known here."""
    weights = wanted["weights_dtype"]
    if line.model == MODEL_PATH:
        what = (
            "a file"
            if table.of_fact("gguf_repository") is not None
            else "the folder or hub id of a checkpoint"
        )
        yield Remark(
            MODEL_PATH, f"{what} of {estimate.model.name} with {weights} weights: none is known here"
        )
    if any(flag.value == DRAFT_MODEL_PATH for flag in line.flags):
        yield Remark(
            DRAFT_MODEL_PATH,
            f"the checkpoint that drafts for {estimate.model.name}, for {wanted['speculation']}",
        )
    if PUBLISHER in line.model:
        yield Remark(PUBLISHER, f"who publishes {weights} files of {estimate.model.name}: not known here")


def _router(servers: Iterable[Server]) -> Router:
    """What hands requests to the workers."""
    by_role = {server.role: server for server in servers}
    table = by_role["prefill"].table
    apart = table.server.apart
    assert apart is not None
    hosts = {
        role: [f"{role.upper()}_{n + 1}" for n in range(server.copies)] for role, server in by_role.items()
    }
    each = {"prefill": apart.each_prefill, "decode": apart.each_decode}
    lists = {
        f"{{{role}}}": [word.format(host=host) for host in hosts[role] for word in each[role]]
        for role in hosts
    }
    lists |= {f"{{{role}_ports}}": [str(table.server.listening.port)] * len(hosts[role]) for role in hosts}
    words = [part for word in apart.router for part in lists.get(word, [word])]
    file = None
    if apart.router_file:
        file = {
            "hostname": "0.0.0.0",
            "port": apart.router_port,
            "backend": "pytorch",
            **{
                name: {"num_instances": len(hosts[role]), "urls": lists[f"{{{role}}}"]}
                for name, role in (("context_servers", "prefill"), ("generation_servers", "decode"))
            },
        }
    return Router(tuple(words), apart.router_port, said(apart), file)


__all__ = ["MODEL", "DoesNotFit", "Launch", "Router", "Server", "launch"]
