"""What is asked: the deployment, how a model is spread over it, the data types and the workload.

Each input is a field of the table in `mantile.library.scenario_fields`: label, unit, range, choices and
meaning are stated there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import zip_longest
from typing import Any

from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import (
    Input,
    LateDefault,
    Named,
    Quantity,
    Section,
)
from mantile.ir.modules import ModelGraph
from mantile.library.dates import serial, today
from mantile.library.device import (
    AWAY,
    DEVICE,
    DEVICE_FIELDS,
    MOST_DEVICES,
    OF_FIRST,
    OF_LINK,
    device_name,
    link_fields,
    pairs,
)
from mantile.library.fields import DECODE, DEPLOYMENT, MONEY, WORKLOAD, ScenarioField
from mantile.library.links import INFERRED, NO_PORT
from mantile.library.profiles import Library
from mantile.library.scenario_fields import (
    DEFAULT_SYSTEM,
    INPUT_NAMES,
    SAME,
    SCENARIO_FIELDS,
    STATED_FIELDS,
    WORKER_FIELDS,
)

ON = "on"
CURRENT, LAST, EARLY = "current", "2025-12 to 2026-04", "before 2025-12"

_NOTES = {
    DEPLOYMENT: "the base scenario's main cells are on Summary",
    WORKLOAD: "closed loop: a finished request is followed by the next",
    MONEY: "what Cost is made of",
}
"""By block of the Inputs sheet, what stands beside its title."""


@dataclass(frozen=True)
class DeviceInputs:
    """What is asked of one of several unlike devices; of the first the deployment states what it is.

    Args:
        number: from 1.
        count: accelerators that split each of its layers.
        memory: of one of them, GB.
        link: kind of link to the next device, with its bandwidth in GB/s and latency in us; None of the last.
        experts_away: layers whose experts lie on the device before, `kv_away` whose KV cache does; None where
            no scenario states one.
        others: the same of the link to a device that is not the next, by its number; none where nobody says
            which links there are.
    """

    number: int
    accelerator: Input
    system: Input
    count: Input
    layers: Input
    memory: Input
    link: Input | None = None
    link_bandwidth: Input | None = None
    link_latency: Input | None = None
    experts_away: Input | None = None
    kv_away: Input | None = None
    others: Mapping[int, tuple[Input, Input, Input]] = field(default_factory=dict)

    def named(self) -> dict[str, Input]:
        """Its own inputs, by name."""
        return {
            device_name(self.number, name): getattr(self, name)
            for name in DEVICE_FIELDS
            if (self.number > 1 or name not in OF_FIRST) and getattr(self, name, None) is not None
        } | {
            device_name(self.number, name): entry
            for other, cells in self.others.items()
            for name, entry in zip(link_fields(self.number, other), cells, strict=True)
        }


@dataclass(frozen=True)
class Workload:
    """Inputs of a scenario by the names of their fields: `inputs.tp`; of decode workers `inputs.decode_tp`.

    None where the model has no use for an input (experts in a dense model, images without a vision tower);
    for decode workers, where the same accelerators prefill and decode.

    Args:
        cells: the inputs there are, by name, in the order of the table.
    """

    cells: Mapping[str, Input]
    devices: tuple[DeviceInputs, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name not in INPUT_NAMES:
            raise AttributeError(f"no field of scenarios is called {name}")
        return self.cells.get(name)

    def named(self) -> dict[str, Input]:
        """The inputs there are, by name, in the order of the table; those of unlike devices behind them."""
        of_devices = (device.named().items() for device in self.devices)
        return {**self.cells, **{name: entry for named in of_devices for name, entry in named}}

    def of_decode(self) -> dict[Input, Input]:
        """The inputs that decode workers have to themselves, by what they stand for elsewhere."""
        return {
            self.cells[name.removeprefix(DECODE)]: entry
            for name, entry in self.cells.items()
            if name.startswith(DECODE)
        }

    def following(self) -> tuple[Input, ...]:
        """What follows from other figures, alike for prefill and decode workers: data types, limits."""
        ends = (self.activation_dtype, self.head_dtype, self.embedding_dtype)
        limits = (
            (self.token_budget, self.max_requests, self.prefix_block)
            if self.engine_defaults is not None
            else ()
        )
        return tuple(entry for entry in (*ends, *limits) if entry is not None)

    def set_default(self, name: str, figure: Named) -> None:
        """State the figure, worked out from other inputs, that an input follows until somebody types over it.

        Once, while the graph is built, for an input whose field says what it follows from.
        """
        default = self.named()[name].default
        assert isinstance(default, LateDefault), f"{name} follows nothing"
        default.set(figure)


@dataclass(frozen=True)
class Ranks:
    """How many ranks work together. A rank is one accelerator.

    Args:
        continuous: 1 in continuous batching, 0 in static.
        disaggregated: 1 if prefill and decode have workers of their own; None in a workbook without.
        groups: attention groups of a stage: attention-DP x CP, each with a copy of the attention weights.
        stage: ranks of a pipeline stage: TP x groups. FFNs and experts are spread over all of them.
        counted: of each of unlike devices, the ranks that hold a part of the model.
        replica: all stages.
        deployment: accelerators of all replicas.
    """

    continuous: Quantity
    disaggregated: Quantity | None
    groups: Quantity
    stage: Quantity
    counted: tuple[Quantity, ...]
    replica: Quantity
    deployment: Quantity

    def rows(self) -> tuple[Quantity, ...]:
        """The rows of the Inputs sheet."""
        return (self.groups, self.stage, *self.counted, self.replica, self.deployment)


def workload(
    library: Library,
    ir: ModelGraph,
    disaggregated: bool,
    open_loop: bool = False,
    caches_prefixes: bool = False,
    stated: frozenset[str] = frozenset(),
    classes: Section | None = None,
    devices: int = 0,
) -> tuple[Workload, tuple[Section, ...]]:
    """The inputs, and their blocks.

    Inputs that follow what is worked out from others, such as the data type of activations, follow nothing
    yet: whoever builds the graph states it with `Workload.set_default`.

    Args:
        disaggregated: whether decode workers get inputs of their own.
        open_loop: whether requests may arrive at a rate.
        caches_prefixes: whether prompts may find a part of themselves in a cache.
        stated: what else a scenario asks for, as `needs` of its fields say.
        classes: inputs of classes of requests, where there are any: lengths follow them.
        devices: how many devices that are not alike hold a part of the layers; 0: accelerators are alike.
    """
    weights = ir.weight_classes()
    there_are = {
        "experts": "experts" in weights,
        "dense FFNs": "ffn" in weights,
        "images": ir.vision is not None,
        "embedding": "embedding" in weights,
        "decode workers": disaggregated,
        "request rate": open_loop,
        "prefix cache": caches_prefixes,
        "windows or latents": ir.saves_cache,
        "classes": classes is not None,
    } | {need: need in stated for need in STATED_FIELDS.values()}
    there_are["handover"] = there_are["handover"] and disaggregated
    there_are["another load"] = open_loop or there_are["sessions"]
    inputs = {}
    for declared in SCENARIO_FIELDS.values():
        if declared.needs is None or there_are[declared.needs]:
            follows = declared.follows if there_are.get(declared.follows, True) else ""
            inputs[declared.name] = scenario_input(declared, library, LateDefault() if follows else None)
    decode_inputs = _decode_inputs(inputs, library) if disaggregated else {}
    away = {name for name, need in AWAY.items() if need in stated}
    if not there_are["experts"]:
        away.discard("experts_away")
    asked = Workload({**inputs, **decode_inputs}, _device_inputs(inputs, library, devices, away))
    return asked, (*_sections(asked), *(() if classes is None else (classes,)))


def scenario_input(
    field: ScenarioField,
    library: Library,
    default: Callable[[], Named | None] | None = None,
    id_prefix: str = "",
    label_suffix: str = "",
) -> Input:
    """The input of a field.

    Args:
        default: what it follows until somebody types over it.
        id_prefix, label_suffix: of the same input of other workers.
    """
    choices = field.choices or _listed(field, library)
    made_today = serial(date.fromisoformat(today())) if field.is_day else None
    value = next(value for value in (field.default, field.initial, made_today, *choices) if value is not None)
    return Input(
        id=f"inputs.{id_prefix}{field.name}",
        label=f"{field.label}{label_suffix}",
        unit=field.unit,
        value=value,
        note=field.meaning,
        source="scenario",
        status="given",
        choices=choices,
        minimum=field.least,
        maximum=field.most,
        integer=field.kind is int,
        name=field.term,
        default=default,
    )


def _listed(field: ScenarioField, library: Library) -> tuple[str, ...]:
    """The ids a field may be, behind the word that stands for none of them."""
    no_id = tuple(word for word in (DEFAULT_SYSTEM, SAME) if word == field.default)
    match field.listed:
        case None:
            return ()
        case "accelerators":
            return tuple(accelerator.id for accelerator in library.accelerators)
        case "systems":
            return (*no_id, *(system.id for system in library.systems))
        case "frameworks":
            return tuple(framework.id for framework in library.frameworks)
        case "links":
            return (INFERRED, NO_PORT, *(kind.id for kind in library.links.links))
        case "settings":
            names = (
                name
                for each in library.frameworks
                for one in each.settings
                if one.field == field.name
                for name in one.names
            )
            return (*no_id, *dict.fromkeys(names))
        case "datatypes":
            return (*no_id, *(kind.id for kind in library.datatypes if field.role in kind.roles))


def _decode_inputs(shared: Mapping[str, Input], library: Library) -> dict[str, Input]:
    """Inputs of decode workers: each follows the deployment's until somebody types over it."""
    decode = {
        name: scenario_input(
            SCENARIO_FIELDS[name], library, _always(shared[name]), id_prefix=DECODE, label_suffix=", decode"
        )
        for name in WORKER_FIELDS
        if name in shared
    }
    decode["system"] = replace(decode["system"], default=LateDefault())
    return {f"{DECODE}{name}": entry for name, entry in decode.items()}


def _device_inputs(
    shared: Mapping[str, Input], library: Library, count: int, away: Container[str]
) -> tuple[DeviceInputs, ...]:
    """Inputs of unlike devices. Accelerator and system follow the first device; what follows from machines,
    such as memory and layers, is stated while the graph is built.

    Args:
        away: fields of what may lie on the device before that a scenario states.
    """
    devices = []
    joined = pairs(count) if "links" in shared else ()
    for number in range(1, count + 1):
        suffix = f", device {number}"
        own = [other for one, other in joined if one == number]
        left_out = {name for other in range(3, MOST_DEVICES + 1) for name in link_fields(1, other)} - {
            name for other in own for name in link_fields(number, other)
        }
        cells = {
            name: scenario_input(
                field,
                library,
                None if field.default is not None or name == "count" else LateDefault(),
                id_prefix=f"{DEVICE}{number}_",
                label_suffix=suffix,
            )
            for name, field in DEVICE_FIELDS.items()
            if (number > 1 or name not in OF_FIRST)
            and (number < count or name not in OF_LINK)
            and name not in left_out
            and (name not in AWAY or (name in away and number > 1))
        }
        if number == 1:
            cells |= {name: shared[of] for name, of in OF_FIRST.items()}
        else:
            cells["accelerator"] = replace(cells["accelerator"], default=_always(shared["accelerator"]))
            cells["system"] = replace(cells["system"], default=LateDefault())
        others = {}
        for other in own:
            kind, bandwidth, latency = (cells.pop(name) for name in link_fields(number, other))
            others[other] = kind, bandwidth, latency
        devices.append(DeviceInputs(number, **cells, others=others))
    return tuple(devices)


def _always(figure: Named) -> Callable[[], Named]:
    return lambda: figure


def ranks_of(inputs: Workload, rows: Equations) -> Ranks:
    """How many ranks work together; and the systems that other accelerators usually come in."""
    for name in rows.ids_of("inputs"):
        if name.endswith("_system_default"):
            inputs.set_default(name.removeprefix("inputs.").removesuffix("_default"), rows[name])
    counted = [f"counted.{device.number}" for device in inputs.devices]
    of_replica = " + ".join(counted) or "stage_ranks * inputs.pp"
    rows.make_in("spread", Space(home="plan", facts={"of_replica": of_replica}))
    rows.make_in("counted device", *_counted(inputs.devices))
    return Ranks(
        continuous=rows["inputs.continuous"],
        disaggregated=rows["inputs.disaggregated"] if "disaggregated" in rows.features else None,
        groups=rows["plan.groups"],
        stage=rows["plan.stage_ranks"],
        counted=tuple(rows[f"plan.{name}"] for name in counted),
        replica=rows["plan.ranks_per_replica"],
        deployment=rows["plan.accelerators"],
    )


def _counted(devices: Sequence[DeviceInputs]) -> Iterator[Space]:
    """What each device holds: layers, and parts of those of the next one."""
    for device, following in zip_longest(devices, devices[1:]):
        held = [device.layers.id]
        for part in () if following is None else (following.experts_away, following.kv_away):
            if part is not None:
                held.append(f"min({part.id}, {following.layers.id})")
        facts = {"n": str(device.number), "held": " + ".join(held), "count": device.count.id}
        yield Space(facts=facts)


def _sections(inputs: Workload) -> tuple[Section, ...]:
    """The blocks of what is typed, in the order of the table, decode workers below the deployment."""
    named = inputs.named()
    rows: dict[str, list[Named]] = {group: [] for group in _NOTES}
    for declared in SCENARIO_FIELDS.values():
        if declared.name in named:
            rows[declared.group].append(named[declared.name])
    blocks = [Section(group, tuple(rows[group]), note) for group, note in _NOTES.items()]
    if inputs.decode_system is not None:
        blocks.insert(
            1,
            Section(
                "Decode workers",
                tuple(entry for name, entry in named.items() if name.startswith(DECODE)),
                "a cell follows the deployment above until it is typed over",
            ),
        )
    if inputs.devices:
        cells = tuple(entry for device in inputs.devices for entry in device.named().values())
        note = "a pipeline of devices that are not alike; the first is the deployment above"
        blocks.insert(1, Section("Devices", cells, note))
    return tuple(blocks)
