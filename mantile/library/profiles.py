"""Hardware, data types and frameworks, as they stand in profiles/.

Also the library of them and of all other profiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import Field, model_validator

from mantile.library.correction import Correction
from mantile.library.documents import Strict, load, load_ours, validate
from mantile.library.efficiency import EfficiencyProfile
from mantile.library.errors import InputError, quoted, unknown
from mantile.library.evidence import EvidenceBase
from mantile.library.ids import find_named, of_driver
from mantile.library.links import LinkKind, Links
from mantile.library.places import data_folder as data_folder
from mantile.library.profile_facts import (
    PriceFact,
    Profile,
    ProfileFact,
    Topology,
    as_promised,
    check_sources,
)
from mantile.library.runs import MeasuredRuns
from mantile.library.support import Block, Limits, Setting, Statement, Way
from mantile.library.versions import Shelf

KernelFormat = Literal["bf16", "fp8", "fp8-block", "nvfp4", "mxfp4-bf16", "mxfp4", "weight-only"]
Peak = Literal["bf16", "fp16", "fp8", "int8", "fp4"]
SchedulerKind = Literal["mixed", "prefill-first", "whole-prompts"]
SCHEDULERS: dict[str, str] = {
    "mixed": "chunks of prompts ride in decode steps",
    "prefill-first": "decode stops until prompts are done",
    "whole-prompts": "prompts join decode steps undivided",
}
SIXTEEN_BIT = "16-bit"
ALL, STATIC = "all", "static"  # a share of all memory, or of what is free for weights and KV cache
ON_HOST = "host"  # an embedding that is read there
FILLED = "filled"  # a KV pool that takes all room when the engine starts
CHECKPOINT = "checkpoint"  # the data type that a checkpoint has
AdmissionKind = Literal["guaranteed", "current-length"]
ADMISSIONS: dict[str, str] = {
    "guaranteed": "only with room for its whole output",
    "current-length": "with room for what it is now; where memory runs out, the newest starts again",
}


CACHE_POLICIES: dict[str, str] = {
    "saved": "layers with a window keep no more than it, latents are kept as they are",
    "full-windows": "layers with a window keep all tokens",
    "full": "so do they, and latents are kept as the keys and values that they stand for",
}
"""What a KV cache keeps of windows and latents."""


Machine = Literal["server", "workstation", "laptop", "single-board"]
MACHINES: dict[Machine, str] = {
    "server": "in a data centre",
    "workstation": "a desktop with cards",
    "laptop": "a laptop, or a Mac, whose power limit is that of the whole machine",
    "single-board": "a small machine around one chip, such as a DGX Spark",
}
"""Classes of machines: what stands around accelerators, and what it draws."""


class Accelerator(Profile):
    """A chip. Peaks are dense, without sparsity; None means that there is no native path.

    `system` is the one it usually comes in; None: it works alone. `host_bandwidth` leads to the memory of the
    host, per direction; None where memory is one. `memory_visible` is what it may use of a memory that it
    shares with the CPU, or what its driver shows; None: all of it. `memory_free` is what the system leaves of
    that at best, when nothing else runs; None: all of it. `own_software`: it runs programs of its
    maker only.
    """

    name: str
    vendor: str
    generation: str
    year: int | None = None
    system: str | None = None
    own_software: bool = False
    peak_fp32: ProfileFact | None = None
    peak_tf32: ProfileFact | None = None
    peak_bf16: ProfileFact
    peak_fp16: ProfileFact | None = None
    peak_fp8: ProfileFact
    peak_int8: ProfileFact | None = None
    peak_fp6: ProfileFact | None = None
    peak_fp4: ProfileFact
    memory_capacity: ProfileFact
    memory_visible: ProfileFact | None = None
    memory_free: ProfileFact | None = None
    memory_bandwidth: ProfileFact
    host_bandwidth: ProfileFact | None = None
    tdp: ProfileFact | None = None
    idle: ProfileFact | None = None
    note: str = ""

    UNITS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("peak_fp32", "peak_tf32", "peak_bf16", "peak_fp16", "peak_fp8", "peak_fp6", "peak_fp4"),
            "TFLOP/s",
        ),
        "peak_int8": "TOP/s",
        "memory_capacity": "GiB",
        "memory_visible": "GiB",
        "memory_free": "GiB",
        "memory_bandwidth": "GB/s",
        "host_bandwidth": "GB/s",
        "tdp": "W",
        "idle": "W",
    }

    @property
    def places(self) -> tuple[str, str]:
        """Its maker and its generation, by which statements name it."""
        return self.vendor, self.generation

    @model_validator(mode="after")
    def _complete(self) -> Accelerator:
        _require_units(self, self.UNITS)
        if not (self.peak_bf16.value or (self.peak_fp16 is not None and self.peak_fp16.value)):
            raise ValueError("peak_bf16 or peak_fp16 must be above 0: every other format falls back to it")
        for field in ("memory_capacity", "memory_bandwidth"):
            if not getattr(self, field).value:
                raise ValueError(f"{field}: expected a figure above 0")
        if self.memory_visible is not None:
            visible, whole = self.memory_visible.value, self.memory_capacity.value
            if not visible or whole is None or visible > whole:
                raise ValueError("memory_visible: expected a figure above 0 and at most memory_capacity")
        for field in self.UNITS:
            figure = getattr(self, field)
            if field.startswith("peak_") and figure is not None and figure.value is None and not figure.note:
                raise ValueError(
                    f"{field}: value is null, no native path; expected a note that says what is computed "
                    "instead"
                )
        return self


class System(Profile):
    """Accelerators of one kind and the links between them.

    Args:
        topology: how the accelerators of a domain are linked: through a switch, each pair by a link of its
            own (mesh), over PCIe, in a torus, over a network, or not at all (single).
        link: kind of link, where efficiency profiles tell it from others of the topology.
        accelerators: of one scale-up domain: all that share `link_bandwidth`.
        link_bandwidth: of one accelerator with all its links, per direction; `pair_bandwidth` that between
            two in a mesh.
        torus_axes: of a torus; each axis has two links.
        in_switch_reduction: whether the switch can sum.
        peer_to_peer: whether accelerators read one another's memory without the host.
        machine: what kind of machine it is: idle power, share of the host and PUE go by it where nobody
            states them.
        whole_machine: whether its accelerators are sold as whole machines, whose purchase price holds the
            host.
        domains: how many of them `scale_out_bandwidth`, per accelerator and direction, joins.
        node_power: nameplate of a whole domain with hosts and fans.
        hosts: of a domain, each with as many accelerators; None where all of them are on one.
        host_memory: of all hosts of a domain, and its bandwidth; `disk` their disks, and what is read from
            all of them in a second. None where nobody states it.
    """

    name: str
    accelerator: str
    topology: Topology
    link: str = ""
    accelerators: ProfileFact
    link_bandwidth: ProfileFact
    pair_bandwidth: ProfileFact | None = None
    torus_axes: ProfileFact | None = None
    in_switch_reduction: bool = False
    peer_to_peer: bool = True
    machine: Machine = "server"
    whole_machine: bool = False
    domains: ProfileFact | None = None
    scale_out_bandwidth: ProfileFact | None = None
    node_power: ProfileFact | None = None
    hosts: ProfileFact | None = None
    host_memory: ProfileFact | None = None
    host_memory_bandwidth: ProfileFact | None = None
    disk: ProfileFact | None = None
    disk_bandwidth: ProfileFact | None = None
    note: str = ""

    UNITS: ClassVar[dict[str, str]] = {
        "accelerators": "accelerator",
        "link_bandwidth": "GB/s",
        "pair_bandwidth": "GB/s",
        "torus_axes": "axis",
        "domains": "domain",
        "scale_out_bandwidth": "GB/s",
        "node_power": "W",
        "hosts": "host",
        "host_memory": "GiB",
        "host_memory_bandwidth": "GB/s",
        "disk": "GB",
        "disk_bandwidth": "GB/s",
    }

    @model_validator(mode="after")
    def _complete(self) -> System:
        _require_units(self, self.UNITS)
        for field, topology in (("pair_bandwidth", "mesh"), ("torus_axes", "torus")):
            if (getattr(self, field) is not None) != (self.topology == topology):
                raise ValueError(f"{field}: expected exactly where topology is {topology}")
        if (self.domains is None) != (self.scale_out_bandwidth is None):
            raise ValueError("domains and scale_out_bandwidth: expected both or neither")
        return self


class Prices(Profile):
    """What an hour of an accelerator costs, by basis, in USD; the id is that of the accelerator.

    Args:
        cloud: on demand, per accelerator and hour.
        rental: on a contract of three years.
        owned: all costs of owning as somebody publishes them, host, network and building included; to compare
            with what purchase, upkeep and electricity come to.
        purchase: of one accelerator or its share of a machine.
        provisioned_power: W per accelerator with host, network and its share of the facility.
    """

    cloud: PriceFact | None = None
    rental: PriceFact | None = None
    owned: PriceFact | None = None
    purchase: PriceFact | None = None
    provisioned_power: ProfileFact | None = None

    UNITS: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("cloud", "rental", "owned"), "USD/h"),
        "purchase": "USD",
        "provisioned_power": "W",
    }

    @property
    def bases(self) -> dict[str, PriceFact]:
        """Bases on which a price is known, with the figure that it follows from, of owned the purchase."""
        facts = {"cloud": self.cloud, "rental": self.rental, "owned": self.purchase}
        return {basis: fact for basis, fact in facts.items() if fact is not None and fact.value}

    @model_validator(mode="after")
    def _complete(self) -> Prices:
        _require_units(self, self.UNITS)
        return self


class Framework(Strict):
    """A serving framework, the makers whose chips it runs on, and what it does by default.

    What nothing is stated of is as in workbooks of before 0.8.0.

    Args:
        vendors: makers whose chips it runs on; `pads` those of them on whose chips it pads heads and columns
            that the TP ranks do not divide.
        scheduler: how prompts get their turn.
        kv_admission: when a request gets its place in the KV cache.
        multiplies: formats below 16 bit in which it multiplies where the accelerator has a peak for them.
        quantised: the format in which weights that are only stored in less than 16 bit are multiplied.
        prompt_batch: tokens of prompts in one pass, each of which reads the weights; None: the whole prompt.
        pipeline_batch: tokens of prompts that are in a pipeline at once, before it is emptied; None: all.
        kv_pool: whether it takes all room for its KV cache when it starts, or as much as requests need.
        embedding: where the embedding lies, unless it is the LM head too.
        pads_hidden, pads_expert: channels to whose multiple it pads experts in mxfp4, of the hidden size and
            of the expert size on a rank.
        cache_policy: what its KV cache keeps of windows and latents.
        memory_share: of what its share of memory is: of all, for all that it needs; of what is free, for
            weights and KV cache (static); of what is left beside all else, for the KV cache (left).
        weights, attention, head: data types in which models are published for it; "checkpoint": as the
            checkpoint has them. `keeps`: those of a checkpoint's weights that stay, with its attention in
            `attention`.
        release: the releases that its statements are about.
        former: whether a newer one of it is in the library: nobody would choose this one.
        support: what its documents say that it runs, and what it cannot run.
        limits: what it takes where a scenario asks for its defaults and states no others; sampling is tried
            with as many requests when it starts.
        block: tokens of a block of its KV cache.
        settings: what some of its settings may be.
    """

    id: str
    name: str
    source: str
    vendors: tuple[str, ...]
    pads: tuple[str, ...] = ()
    scheduler: SchedulerKind
    kv_admission: AdmissionKind = "guaranteed"
    multiplies: tuple[Literal["fp8", "int8", "fp4"], ...] = ("fp8", "int8", "fp4")
    quantised: Literal["16-bit", "int8"] = "16-bit"
    prompt_batch: int | None = Field(default=None, ge=1)
    pipeline_batch: int | None = Field(default=None, ge=1)
    kv_pool: Literal["filled", "asked"] = "filled"
    embedding: Literal["accelerator", "host"] = "accelerator"
    pads_hidden: int = Field(default=1, ge=1)
    pads_expert: int = Field(default=1, ge=1)
    cache_policy: Literal["saved", "full-windows", "full"] = "saved"
    memory_share: Literal["all", "static", "left"] = "all"
    weights: str = CHECKPOINT
    attention: str = CHECKPOINT
    head: str = CHECKPOINT
    keeps: tuple[str, ...] = ()
    release: str = ""
    former: bool = False
    support: tuple[Statement, ...] = ()
    limits: Limits | None = None
    block: Block | None = None
    settings: tuple[Setting, ...] = ()

    @property
    def experimental(self) -> tuple[Way, ...]:
        """Ways to spread a model that its documents call experimental."""
        return tuple(way for one in self.support if one.experimental for way in one.ways)

    def setting(self, field: str, name: str) -> str:
        """What a setting is called here, as its documents spell it.

        Raises:
            InputError: for a name that the release does not know, with those that it does.
        """
        names = next((one.names for one in self.settings if one.field == field), ())
        found = next((one for one in names if one.lower() == name.lower()), None)
        if found is not None:
            return found
        what = f"{field} {quoted(name)}: {self.name} {self.release}".strip()
        if not names:
            raise InputError(f"{what} has none that Mantile knows of: leave it out")
        raise InputError(f"{what} has no such; expected one of {', '.join(names)}")

    @model_validator(mode="after")
    def _formats(self) -> Framework:
        own = [self.weights != CHECKPOINT, self.head != CHECKPOINT]
        if any(own) != all(own) or (self.keeps and self.attention == CHECKPOINT):
            raise ValueError("weights and head: expected both or neither; attention where weights are kept")
        return self


class DataType(Strict):
    """A number format: what it costs to store, which peak it computes at, whose kernels it runs on.

    `kernels_bf16` are the kernels used when activations are 16 bit, `kernels_native` when they have their own
    peak. `family` is that of formats which frameworks read with the same programs; None: the id. `aliases`
    are other names for the format of weights; neither case nor - or _ matter. `head` and
    `embedding` are the data types that LM head and embedding have in files of such weights; None: 16 bit.
    """

    id: str
    name: str
    family: str | None = None
    aliases: tuple[str, ...] = ()
    bits: float = Field(ge=0.25, le=64, allow_inf_nan=False)
    roles: tuple[Literal["weights", "activations", "kv"], ...]
    peak: Peak
    kernels_bf16: KernelFormat
    kernels_native: KernelFormat
    head: str | None = None
    embedding: str | None = None
    source: str


class DataTypes(Strict):
    """All number formats."""

    datatypes: tuple[DataType, ...]


class Library(Strict):
    """All profiles one estimate may choose among; travels inside the workbook."""

    accelerators: tuple[Accelerator, ...]
    systems: tuple[System, ...]
    prices: tuple[Prices, ...] = ()
    frameworks: tuple[Framework, ...]
    datatypes: tuple[DataType, ...]
    efficiency: tuple[EfficiencyProfile, ...]
    evidence: EvidenceBase = EvidenceBase()
    measured: MeasuredRuns = MeasuredRuns()
    links: Links = Links()
    correction: Correction | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Library:
        for kind_of, entries in (
            ("accelerators", self.accelerators),
            ("systems", self.systems),
            ("prices", self.prices),
            ("frameworks", self.frameworks),
            ("datatypes", self.datatypes),
        ):
            ids = Counter(entry.id for entry in entries)
            twice = next((name for name, count in ids.items() if count > 1), None)
            if twice is not None:
                raise ValueError(f"{kind_of}: {twice!r:.60} stands there twice; expected every id once")
        keys = Counter(profile.key for profile in self.efficiency)
        if len(keys) < len(self.efficiency):
            raise ValueError(
                f"efficiency: two profiles hold for {keys.most_common(1)[0][0]:.60}; expected one"
            )
        accelerators = {accelerator.id for accelerator in self.accelerators}
        systems = {system.id: system for system in self.systems}
        generations = {accelerator.generation for accelerator in self.accelerators}
        for accelerator in self.accelerators:
            usual = self.usual_system(accelerator.id)
            if usual.id not in systems or usual.accelerator != accelerator.id:
                raise ValueError(
                    f"accelerator {accelerator.id}: field system: expected a system of profiles/systems with "
                    f"this accelerator, found {accelerator.system!r}"
                )
        for system in self.systems:
            if system.accelerator not in accelerators:
                raise ValueError(f"system {system.id}: unknown accelerator {system.accelerator}")
        stored = {kind.id for kind in self.datatypes if "weights" in kind.roles} | {CHECKPOINT}
        for kind in self.datatypes:
            others = {kind.head, kind.embedding} - stored - {None}
            if others:
                raise ValueError(f"data type {kind.id}: unknown data type of head or embedding {others}")
        for framework in self.frameworks:
            formats = {framework.weights, framework.attention, framework.head, *framework.keeps}
            if formats - stored:
                raise ValueError(
                    f"framework {framework.id}: unknown data type of weights {min(formats - stored)}"
                )
            self._check_statements(framework)
        for price in self.prices:
            if price.id not in accelerators:
                raise ValueError(f"prices {price.id}: unknown accelerator")
        for profile in self.efficiency:
            for field, identifiers in (  # an accelerator may be one of somebody's own, which is not here yet
                ("generation", generations),
                ("link", {system.link for system in self.systems}),
            ):
                if getattr(profile, field) and getattr(profile, field) not in identifiers:
                    raise ValueError(
                        f"efficiency profile {profile.id}: unknown {field} {getattr(profile, field)}"
                    )
        names = [_spelling(name) for kind in self.datatypes for name in (kind.id, *kind.aliases)]
        if len(set(names)) < len(names):
            raise ValueError(
                f"datatypes: {next(name for name in names if names.count(name) > 1)} is the name of two "
                "formats"
            )
        if "global" not in {profile.key for profile in self.efficiency}:
            raise ValueError("profiles/efficiency lacks global.yaml, the end of every fallback chain")
        return self

    def _check_statements(self, framework: Framework) -> None:
        """That the statements of a framework name formats there are, and do not contradict one another."""
        families = {kind.family or kind.id for kind in self.datatypes}
        said: dict[str, str] = {}
        for number, statement in enumerate(framework.support):
            wrong = [name for name in statement.formats if name not in families]
            if wrong:
                raise ValueError(
                    f"framework {framework.id}: field support.{number}: no data type is a {wrong[0]!r}"
                )
            for subject in statement.subjects(self.generations()):
                if said.setdefault(subject, statement.says) != statement.says:
                    raise ValueError(
                        f"framework {framework.id}: field support.{number}: {subject} both runs and cannot; "
                        "keep what the newer document says"
                    )

    def generations(self) -> dict[str, list[str]]:
        """The generations of chips of each maker."""
        found: dict[str, list[str]] = {}
        for chip in self.accelerators:
            of_maker = found.setdefault(chip.vendor, [])
            if chip.generation not in of_maker:
                of_maker.append(chip.generation)
        return found

    def accelerator(self, name: str) -> Accelerator:
        """An accelerator by id, or as people and drivers call it: 5090, m3 ultra, NVIDIA H100 80GB HBM3."""
        try:
            return _pick("accelerator", name, self.accelerators)
        except InputError:
            spelt = of_driver(name)
            found = next((chip for chip in self.accelerators if chip.id in spelt), None)
            if found is None:
                raise
            return found

    def system(self, name: str) -> System:
        """A system by id."""
        return _pick("system", name, self.systems)

    def usual_system(self, accelerator: str) -> System:
        """The system an accelerator usually comes in."""
        chip = self.accelerator(accelerator)
        return self.system(chip.system or alone(chip).id)

    def price(self, accelerator: str) -> Prices | None:
        """The prices of an accelerator, if any are known."""
        return next((price for price in self.prices if price.id == accelerator), None)

    def framework(self, name: str) -> Framework:
        """A framework by id, or by what people and tables call it: trt-llm, dynamo-vllm, SGLang 0.5.4."""
        try:
            return _pick("framework", name, self.frameworks)
        except InputError:
            parts = re.split(r"[-\s/(:]+", _spelling(name))
            called = (_ENGINES.get(part, part) for part in (parts[0], parts[-1]))
            by_id = {framework.id: framework for framework in self.frameworks}
            found = next((by_id[part] for part in called if part in by_id), None)
            if found is None:
                raise
            return found

    def link(self, name: str) -> LinkKind:
        """A kind of link between machines by id, or by what people call it: tb5, tb5-rdma, 10g."""
        plain = re.sub(r"^(tb|thunderbolt)-?(\d)", r"thunderbolt-\2", _spelling(name).replace(" ", "-"))
        plain = re.sub(r"^([\d.]+)-?(g|gb|gige|gbit|gbps)$", r"\1gbe", plain)
        known = any(kind.id == plain for kind in self.links.links)
        return _pick("link", plain if known else name, self.links.links)

    def datatype(self, name: str, role: str) -> DataType:
        """A number format by id or another name, which must be usable for weights, activations or kv."""
        usable = [kind for kind in self.datatypes if role in kind.roles]
        called = {_spelling(other): kind.id for kind in usable for other in (kind.id, *kind.aliases)}
        return _pick(f"{role} data type", called.get(_spelling(name), name), usable)

    def format_in(self, words: str) -> DataType:
        """The number format of weights among some words: int4-awq, gptq (4 bit), w4a16_marlin.

        Raises:
            InputError: for words that name none.
        """
        spelling = re.sub(r"[\s(),]+", "-", words.strip().lower()).strip("-")
        whole = re.sub(r"(\d)-bits?\b", r"\1bit", spelling)
        parts = [*whole.split("-"), *re.split("[-_]", whole)]
        if _METHODS & {*parts} and _EIGHT & {*parts}:
            return self.datatype("int8-g128", "weights")
        for name in (whole, *sorted(parts, key=_WIDTHS.__contains__)):
            try:
                return self.datatype(name, "weights")
            except InputError:
                continue
        return self.datatype(words, "weights")


_ENGINES = {"trt": "trtllm", "tensorrt": "trtllm", "llamacpp": "llama.cpp"}
"""Words that stand for a framework in longer names."""
_METHODS, _EIGHT = frozenset({"awq", "gptq"}), frozenset({"int8", "8bit", "w8a16"})
"""Ways of quantising, 4 bit where nothing beside them says that it is 8."""
_WIDTHS = frozenset({"w8a8", "w8a16"})
"""Widths, whole numbers unless a format stands beside them: w8a8-fp8."""


def alone(chip: Accelerator) -> System:
    """The system of an accelerator that names none: itself, without links."""
    count, links = (
        {
            "unit": unit,
            "source": "an accelerator without a system",
            "date": chip.memory_capacity.date,
            "status": "defined",
        }
        for unit in ("accelerator", "GB/s")
    )
    return System.model_validate(
        {
            "id": f"{chip.id}-alone",
            "version": chip.version,
            "name": f"One {chip.name}",
            "accelerator": chip.id,
            "topology": "single",
            "accelerators": count | {"value": 1},
            "link_bandwidth": links | {"value": None},
        }
    )


def with_accelerator(library: Library, path: Path) -> tuple[Library, Accelerator]:
    """The library with somebody's own accelerator in it, read from a file, and that accelerator.

    The system it names is read from a file of that name beside it, or in ../systems; without one it works
    alone. Its prices are read from ID-prices.yaml beside it, if there is one.

    Raises:
        InputError: naming the file, if it or its system is wrong, or if the library has another accelerator
            of that id.
    """
    chip = load(Accelerator, path)
    if chip in library.accelerators:
        return library, chip
    check_sources(chip, str(path))
    if any(chip.id == other.id for other in library.accelerators):
        raise InputError(f"{path}: field id: the library has another {chip.id}; expected an id of its own")
    places = [path.with_name(f"{chip.system}.yaml"), path.parent.parent / "systems" / f"{chip.system}.yaml"]
    place = next((place for place in places if place.is_file()), None)
    if chip.system and place is None:
        raise InputError(
            f"{path}: field system: expected the system in {places[0]} or {places[1]}, or no system: it then "
            "works alone"
        )
    system = load(System, place) if chip.system and place is not None else alone(chip)
    check_sources(system, str(place or path))
    if any(system.id == other.id for other in library.systems):
        raise InputError(
            f"{path}: field system: the library has another {system.id}; expected an id of its own"
        )
    parts: dict[str, Any] = {
        "accelerators": [*library.accelerators, chip],
        "systems": [*library.systems, system],
    }
    priced = path.with_name(f"{chip.id}-prices.yaml")
    if priced.is_file():
        parts["prices"] = [*library.prices, load(Prices, priced)]
    return validate(Library, dict(library) | parts, str(path)), chip


_Item = TypeVar("_Item", Accelerator, System, Framework, DataType, LinkKind)


def _spelling(name: str) -> str:
    """A name without regard to case and to what joins its parts."""
    return name.lower().replace("_", "-")


def _pick(kind: str, name: str, items: Iterable[_Item]) -> _Item:
    by_id = {item.id: item for item in items}
    if name in by_id:
        return by_id[name]
    if kind.endswith("data type"):  # int4 is no part of int4-kv: formats go by their own names alone
        raise unknown(kind, name, by_id)
    return by_id[find_named(kind, name, {item.id: item.name for item in by_id.values()})]


def _require_units(holder: Strict, expected: dict[str, str]) -> None:
    for field, unit in expected.items():
        figure = getattr(holder, field)
        if figure is not None and figure.unit != unit:
            raise ValueError(f"{field}: expected a figure in {unit}, found {figure.unit}")


FOLDERS: dict[str, type[Accelerator] | type[System] | type[Prices] | type[EfficiencyProfile]] = {
    "accelerators": Accelerator,
    "systems": System,
    "prices": Prices,
    "efficiency": EfficiencyProfile,
}


def shelf(folder: str) -> Shelf[Any]:
    """A folder of profiles with all their versions: accelerators, systems, prices or efficiency."""
    return Shelf(f"profiles/{folder}", data_folder("profiles") / folder, FOLDERS[folder], as_promised)


def load_library(pins: tuple[str, ...] = ()) -> Library:
    """All profiles we ship.

    Args:
        pins: profiles that are wanted in an older version, as folder/id@version:
            accelerators/h100-sxm@2026-11; or files of one's own efficiency profiles.

    Raises:
        InputError: naming the file and field that is wrong, or a version there is not.

    Example:
        mantile.load_library().accelerator("h100-sxm").name
        mantile.estimate(scenario, library=mantile.load_library())
    """
    return library_with(pins)  # one of each, however a caller spells "no pins"


@cache
def library_with(pins: tuple[str, ...]) -> Library:
    """All profiles we ship, some in an older version; read once."""
    folder = data_folder("profiles")
    profiles: dict[str, dict[str, Any]] = {name: {} for name in FOLDERS}
    for name in FOLDERS:
        entries = shelf(name)
        for identifier in entries.ids:
            item = entries.load(identifier)
            check_sources(item, str(entries.place / f"{identifier}.yaml"))
            profiles[name][identifier] = item
    for pin in pins:
        name, item = load_pinned(pin)
        profiles[name][item.id] = item
    chips = profiles["accelerators"].values()
    singles = [alone(chip) for chip in chips if chip.system is None]
    frameworks = [_framework(path) for path in sorted((folder / "frameworks").glob("*.yaml"))]
    return Library.model_validate(
        {
            **{name: list(items.values()) for name, items in profiles.items()},
            "systems": [
                *profiles["systems"].values(),
                *(single for single in singles if single.id not in profiles["systems"]),
            ],
            "frameworks": frameworks,
            "datatypes": load_ours(DataTypes, folder / "datatypes.yaml").datatypes,
            "evidence": load_ours(EvidenceBase, folder / "evidence.yaml"),
            "measured": load_ours(MeasuredRuns, folder / "runs.yaml"),
            "links": _links(folder / "links.yaml"),
        }
    )


def _links(path: Path) -> Links:
    known = load_ours(Links, path)
    for kind in known.links:
        check_sources(kind, f"{path}: {kind.id}")
    return known


def _framework(path: Path) -> Framework:
    framework = load_ours(Framework, path)
    check_sources(framework, str(path))
    return framework


def is_file(name: str) -> bool:
    """Whether what stands where an id may stand is a file."""
    return name.lower().endswith((".yaml", ".yml"))


def load_pinned(pin: str) -> tuple[str, Accelerator | System | Prices | EfficiencyProfile]:
    """A profile that is wanted, and the folder of its kind.

    Args:
        pin: folder/id@version, or a file of an efficiency profile of one's own.

    Raises:
        InputError: naming the pin or the file that is wrong.
    """
    if is_file(pin):
        return "efficiency", load(EfficiencyProfile, Path(pin))
    name, _, wanted = pin.partition("/")
    if name not in FOLDERS or "@" not in wanted:
        raise InputError(
            f"profiles: {pin}: expected {', '.join(FOLDERS)}, a slash and id@version, or a .yaml file of "
            "an efficiency profile"
        )
    return name, shelf(name).load(wanted)
