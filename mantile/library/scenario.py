"""A scenario file: what is asked, in one column or several. The same fields as the command line's flags.

title: 70B chat service
model: llama-3.3-70b
accelerator: h100-sxm
tp: 8
input_tokens: 2048        # ISL and the serving engines' spellings work too
output_tokens: 256
concurrency: 16
variants:
  - {name: 2 x TP4, tp: 4, dp: 2}
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, TypeVar

from pydantic import Field, field_validator, model_validator

from mantile.library.architecture import Model
from mantile.library.capacity import CapacityAsked
from mantile.library.correction import NO_CORRECTION
from mantile.library.decision import MOST_PLANS, Decision
from mantile.library.device import (
    AWAY,
    DEVICE_FIELDS,
    MOST_DEVICES,
    OF_FIRST,
    OF_LINK,
    Device,
    link_fields,
    of_device,
    with_links,
)
from mantile.library.documents import Strict, parse_yaml, read_text, validate
from mantile.library.errors import InputError
from mantile.library.fields import DECODE, PREFILL, Figure, Name, Text
from mantile.library.models import checkpoint_of
from mantile.library.profiles import Library, is_file, with_accelerator
from mantile.library.request_classes import CLASS_FIELDS, MOST_CLASSES, RequestClass
from mantile.library.scenario_fields import (
    FORMER_IDS,
    MOST_DRAFTS,
    PREFIX_FIELDS,
    REQUIRED,
    SCENARIO_FIELDS,
    STATED_FIELDS,
    Deployment,
    Inputs,
    Spread,
    field_name,
    own_names,
    renamed,
)
from mantile.library.since import Since, Version
from mantile.library.structure import MODEL, override_model
from mantile.library.template import STANDARD
from mantile.library.typed_numbers import typed

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
MOST_LISTED = 2_000  # overrides, profiles, ids of one column
MOST_SWEPT = 2_000  # values of a field that a sweep runs through


class Override(Strict):
    """A figure that replaces the library's or the checkpoint's, and why.

    `id` is that of the figure in use (efficiency.gemm_compute, hardware.memory_bandwidth) or of a fact
    (model.layers); `value` is in the unit of its cell.
    """

    id: Text
    value: Figure
    reason: Text = "no reason given"


def in_unit(given: Any, names: Iterable[str], unit: str, other: str, factor: float) -> Any:
    """Times of a document in the unit that its fields have.

    Args:
        given: the fields as they were written.
        names: of the fields.
        unit, other: what a name ends in, and what it may end in instead.
        factor: one of the other unit in that of the field.
    """
    if not isinstance(given, dict):
        return given
    fields = dict(given)
    for name in names:
        spelt = f"{name.removesuffix(unit)}{other}"
        if not name.endswith(unit) or spelt not in fields or name.endswith(f"per{unit}"):
            continue
        if name in fields:
            raise ValueError(f"expected {name} or {spelt}, not both")
        value = fields.pop(spelt)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fields[name] = value * factor if is_number else value
    return fields


class Measured(Strict):
    """What was measured of a column.

    Means in ms unless they say otherwise, and tokens per second of the whole deployment.
    """

    ttft_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    ttft_p50_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    tpot_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    output_tokens_per_s: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None

    @model_validator(mode="before")
    @classmethod
    def _in_milliseconds(cls, given: Any) -> Any:
        """Times may be in seconds: ttft_s, tpot_s."""
        return in_unit(given, Measured.model_fields, "_ms", "_s", 1e3)

    def given(self) -> dict[str, float]:
        """The values there are."""
        return {name: value for name in Measured.model_fields if (value := getattr(self, name)) is not None}


class Case(Inputs):
    """The fields of one column. What a variant leaves out follows the base, but for what was measured.

    `decode` are workers that only decode: with it the deployment above only prefills, unless `serving` is
    aggregated. `devices` are machines that are not alike and hold a part of the layers each, in order; the
    first is the deployment above. `without` are ids of overrides and of inputs of the base that a variant
    does not follow, such as inputs.concurrency where a request rate decides it. `draft_model` is a model, as
    `model` of a scenario, whose size, layers and cache stand for draft_parameters, draft_layers and
    draft_kv_channels.
    `acceptance_by_position` is how often each draft token is accepted, as engines report it; draft_tokens and
    acceptance_length follow from it.
    """

    name: Text | None = None
    draft_model: Name | None = None
    acceptance_by_position: Annotated[tuple[Share, ...], Field(max_length=MOST_DRAFTS)] = ()
    decode: Deployment | None = None
    devices: Annotated[tuple[Device, ...], Field(max_length=MOST_DEVICES)] = ()
    overrides: Annotated[tuple[Override, ...], Field(max_length=MOST_LISTED)] = ()
    without: Annotated[tuple[Text, ...], Field(max_length=MOST_LISTED)] = ()
    measured: Measured = Measured()

    @field_validator("acceptance_by_position", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        """Also as on a command line: 0.85,0.61,0.38."""
        return tuple(part.strip() for part in given.split(",")) if isinstance(given, str) else given

    @model_validator(mode="before")
    @classmethod
    def _by_checkpoint(cls, data: Any) -> Any:
        return with_checkpoint(own_names(cls, data)) if isinstance(data, Mapping) else data

    @model_validator(mode="before")
    @classmethod
    def _links_between(cls, data: Any) -> Any:
        """What a block of links states stands at the devices."""
        if not isinstance(data, dict) or not isinstance(data.get("links"), Mapping):
            return data
        devices = data.get("devices") or ()
        if not isinstance(devices, list | tuple):
            return data | {"links": None}  # the devices are what is wrong
        preset, devices = with_links(devices, data["links"])
        return data | {"links": preset, "devices": devices}

    @model_validator(mode="before")
    @classmethod
    def _first_device(cls, data: Any) -> Any:
        """What the first device states of the deployment stands there."""
        if not isinstance(data, dict) or not data.get("devices") or not _is_list(data["devices"]):
            return data
        first = data["devices"][0]
        stated = first if isinstance(first, dict) else getattr(first, "model_dump", dict)(exclude_none=True)
        moved = {OF_FIRST[name]: value for name, value in stated.items() if name in OF_FIRST}
        for name, value in moved.items():
            if data.get(name) not in (None, value):
                raise ValueError(
                    f"devices.0: {name}: expected what the deployment states, {data[name]!r:.60}; "
                    f"found {value!r:.60}"
                )
        rest = {name: value for name, value in stated.items() if name not in OF_FIRST}
        return data | moved | {"devices": [rest, *data["devices"][1:]]}

    @field_validator("acceptance_by_position")
    @classmethod
    def _falling(cls, shares: tuple[float, ...]) -> tuple[float, ...]:
        if any(later > earlier for earlier, later in pairwise(shares)):
            raise ValueError("expected shares that fall: a draft token is accepted after those before it")
        return shares


class Alternative(Strict):
    """The accelerator that the workbook compares the base scenario with.

    Args:
        usd_per_hour: of one accelerator, where the price of the library does not hold.
    """

    accelerator: Name
    usd_per_hour: Annotated[float, Field(gt=0, le=1e6)] | None = None


MOST_VARIANTS = 7
"""Variants of a scenario without a decision: with the base, eight columns side by side."""


class Scenario(Case):
    """A base column, with what belongs to the whole workbook, and variants of it.

    `profiles` are those wanted in an older version: accelerators/h100-sxm@2026-11. `prices` are USD per hour
    of one accelerator, by its id, in place of the library's on the price basis. `ready_columns` are columns
    of the workbook behind those of the variants, which follow the base until somebody types into them, and
    count once they have a name. `correction` is a file of multipliers that `mantile calibrate --multipliers`
    fitted, `shipped`, or `none`. `template` is one of templates/ or a file. `versions` came before this one.
    `sweep` are values of one field, or of two, that What-if runs through; `alternative` is the accelerator
    that the base is compared with; `decision` a choice among the variants, one of which the base is; `since`
    what changed since the workbook before; `sensitivity` percentages by which drivers are taken lower and
    higher, by id; `classes` of requests that the deployment serves, in place of one mean length; `capacity`
    is the demand that replicas of it carry, and what that costs.

    Example:
        scenario = mantile.Scenario(
            model="llama-3.1-8b",
            accelerator="h100-sxm",
            tp=2,
            input_tokens=1024,
            output_tokens=128,
            concurrency=8,
        )
        scenario.replace(tp=4, concurrency=64)    # checked as well
    """

    model: Name
    title: Text | None = None
    date: Annotated[Text | None, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = None
    why: Text = "first estimate"
    profiles: Annotated[tuple[Text, ...], Field(max_length=MOST_LISTED)] = ()
    prices: dict[Name, Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]] = Field(
        default_factory=dict, max_length=100
    )
    correction: Text = NO_CORRECTION
    variants: tuple[Case, ...] = Field(default=(), max_length=MOST_PLANS)
    ready_columns: Annotated[int, Field(ge=0, le=MOST_VARIANTS)] = 0
    template: Text = STANDARD
    versions: Annotated[tuple[Version, ...], Field(max_length=100)] = ()
    sweep: dict[
        Text, Annotated[tuple[int | float | Text, ...], Field(min_length=1, max_length=MOST_SWEPT)]
    ] = Field(default_factory=dict, max_length=2)
    alternative: Alternative | None = None
    decision: Decision | None = None
    since: Since | None = None
    sensitivity: dict[Text, Annotated[int, Field(ge=0, le=90, strict=True)]] = Field(default_factory=dict)
    classes: Annotated[tuple[RequestClass, ...], Field(max_length=MOST_CLASSES)] = ()
    capacity: CapacityAsked | None = None

    @field_validator("sweep", mode="before")
    @classmethod
    def _by_field(cls, given: Any) -> Any:
        pairs = isinstance(given, list) and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in given
        )
        swept = dict(given) if pairs else given
        return (
            {field_name(name): values for name, values in swept.items()} if isinstance(swept, dict) else swept
        )

    @field_validator("sensitivity", mode="before")
    @classmethod
    def _of_present_ids(cls, given: Any) -> Any:
        return (
            {FORMER_IDS.get(key, key): value for key, value in given.items()}
            if isinstance(given, dict)
            else given
        )

    @model_validator(mode="after")
    def _complete(self) -> Scenario:
        for name in REQUIRED:
            rated = self.request_rate or self.sessions
            follows = rated if name == "concurrency" else self.classes and name in CLASS_FIELDS
            if getattr(self, name) is None and not follows:
                raise ValueError(f"{name} is missing")
        if self.device_count and self.disaggregated:
            raise ValueError(
                "devices: expected no decode workers beside different devices; put each of the two into a "
                "file of its own"
            )
        for where, case in (("", self), *((f"variants.{n}.", one) for n, one in enumerate(self.variants))):
            for name in AWAY:
                if case.devices and getattr(case.devices[0], name):
                    raise ValueError(
                        f"{where}devices.0: {name}: expected a device before it, which holds them"
                    )
            for name in OF_LINK:
                if case.devices and getattr(case.devices[-1], name) is not None:
                    raise ValueError(
                        f"{where}devices.{len(case.devices) - 1}: {name}: expected no link of the last "
                        "device; a link leads to the next one"
                    )
            links = case.links or self.links
            for number, device in enumerate(case.devices, start=1):
                _require_links(device, number, len(case.devices), links, f"{where}devices.{number - 1}")
            if len(case.devices) == 1:
                raise ValueError(
                    f"{where}devices: expected at least two; one device is the deployment itself"
                )
        if self.decision is None and len(self.variants) > MOST_VARIANTS:
            raise ValueError(
                f"variants: expected at most {MOST_VARIANTS}, found {len(self.variants)}; only plans of a "
                "decision may be more"
            )
        if self.ready_columns and self.decision is not None:
            raise ValueError("ready_columns: expected none beside a decision, whose columns are its plans")
        if self.decision is None and len(self.variants) + self.ready_columns > MOST_VARIANTS:
            raise ValueError(
                f"ready_columns: expected at most {MOST_VARIANTS - len(self.variants)} beside "
                f"{len(self.variants)} variants, found {self.ready_columns}"
            )
        if self.decision is not None and self.decision.take > len(self.variants):
            raise ValueError(
                f"decision.take: expected the number of a variant, at most {len(self.variants)}; found "
                f"{self.decision.take}"
            )
        for index, variant in enumerate(self.variants):
            if any(override.id.startswith("model.") for override in variant.overrides):
                raise ValueError(
                    f"variants.{index}.overrides: a fact of the model is shared by all columns; override it "
                    "in the base"
                )
        return self

    @classmethod
    def spelled(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Fields of a constructor as a file has them; those of decode workers may be decode_<field>."""
        return merge_fields({}, fields, cls.__name__)

    def replace(self, **fields: Any) -> Scenario:
        """This scenario with other values of some fields, checked like a scenario file.

        Variants stay as they are. None takes a value back, so that the default holds again.

        >>> load_scenario("chat.yaml").replace(tp=4, decode_tp=8)  # doctest: +SKIP

        Args:
            fields: by name or alias; those of decode workers as decode_<field>.

        Raises:
            InputError: naming a field that there is not, with those that come near, or what was expected of a
                value.
        """
        data = self.model_dump(exclude_none=True)
        return validate(Scenario, merge_fields(data, fields, "scenario"), "scenario")

    @property
    def open_loop(self) -> bool:
        """Whether requests arrive at a rate, in some column at least."""
        return any(case.request_rate for case in (self, *self.variants))

    @property
    def classes_in_use(self) -> tuple[RequestClass, ...]:
        """Its classes of requests; one without a spread of lengths has that of a scenario without classes."""
        even, p95 = (
            SCENARIO_FIELDS[name].default if stated is None else stated
            for name, stated in (
                ("length_range_ratio", self.length_range_ratio),
                ("p95_output_ratio", self.p95_output_ratio),
            )
        )
        assert isinstance(even, float | int) and isinstance(p95, float | int)
        usual = {
            "input_spread": even / 2 / (1 - even / 2) / 3**0.5,
            "output_spread": (p95 - 1) / NormalDist().inv_cdf(0.95),
        }
        return tuple(
            one.model_copy(
                update={name: value for name, value in usual.items() if getattr(one, name) is None}
            )
            for one in self.classes
        )

    @property
    def caches_prefixes(self) -> bool:
        """Whether prompts find a part of themselves in a cache, in some column at least."""
        return _of_class(self.classes, "prefix cache") or any(
            getattr(case, name) is not None for case in (self, *self.variants) for name in PREFIX_FIELDS
        )

    @property
    def parts(self) -> tuple[bool, bool, bool, frozenset[str]]:
        """Which parts of the equations it asks for, in the order in which `build_graph` takes them."""
        return self.disaggregated, self.open_loop, self.caches_prefixes, self.stated

    @property
    def stated(self) -> frozenset[str]:
        """What `needs` says of the fields that only some scenarios have and a column here states."""
        return frozenset(
            need
            for name, need in STATED_FIELDS.items()
            if (need == "devices" and self.device_count)
            or _of_class(self.classes, need)
            or any(getattr(case, name) is not None for case in (self, *self.variants))
            or any(getattr(case.decode, name, None) is not None for case in (self, *self.variants))
        ) | frozenset(
            need
            for name, need in AWAY.items()
            if any(getattr(device, name) for case in (self, *self.variants) for device in case.devices)
        )

    @property
    def device_count(self) -> int:
        """Unlike devices of a replica, in the column that has most; 0 where accelerators are alike."""
        return max(len(case.devices) for case in (self, *self.variants))

    @property
    def disaggregated(self) -> bool:
        """Whether decode workers have inputs of their own, in some column at least."""
        return any(
            case.decode is not None or case.serving == "disaggregated" for case in (self, *self.variants)
        )


def _is_list(given: Any) -> bool:
    """Whether it is a list of fields with values, as far as that is seen without reading them."""
    return isinstance(given, list | tuple) and isinstance(given[0], Mapping | Strict)


def _require_links(device: Device, number: int, count: int, links: str | None, where: str) -> None:
    """Refuse a link to a device that is not there, and one that no preset of links has a use for."""
    for other in range(3, MOST_DEVICES + 1):
        for name in link_fields(1, other):
            if getattr(device, name) is None:
                continue
            if not number + 1 < other <= count:
                raise ValueError(
                    f"{where}: {name}: expected a device behind the next one, of {count}; `link` leads to "
                    "the next"
                )
            if links is None:
                raise ValueError(f"{where}: {name}: expected links: mesh, star or ring beside it")


def _of_class(classes: tuple[RequestClass, ...], need: str) -> bool:
    """Whether a class states a field that only some scenarios have."""
    names = [name for name, declared in CLASS_FIELDS.items() if declared.needs == need]
    return any(getattr(one, name) is not None for one in classes for name in names)


def load_scenario(path: str) -> Scenario:
    """Read a scenario file.

    Raises:
        InputError: naming file and field.

    Example:
        mantile.load_scenario("workbooks/llama-3.3-70b-h100.yaml").replace(concurrency=64)
    """
    return parse_scenario(parse_yaml(read_text(Path(path)), path), path)


def parse_scenario(data: Any, name: str) -> Scenario:
    """Plain objects to a scenario; dates may be YAML dates."""
    if isinstance(data, dict) and "date" in data and data["date"] is not None:
        data = data | {"date": str(data["date"])}
    return validate(Scenario, _as_typed(data, name), name)


def _as_typed(data: Any, where: str) -> Any:
    """A document with its fields as people type them: numbers such as "1,024" and 1k, names such as 5090.

    Raises:
        InputError: for a number that can be read in two ways.
    """
    if isinstance(data, list):
        return [_as_typed(part, where) for part in data]
    if not isinstance(data, dict):
        return data
    found = dict(data)
    for key, value in data.items():
        name = field_name(key) if isinstance(key, str) else ""
        declared = DEVICE_FIELDS.get(name) or SCENARIO_FIELDS.get(name)
        if key in ("decode", "prefill", "variants", "devices"):
            found[key] = _as_typed(value, where)
        elif declared is not None and declared.listed == "accelerators" and type(value) is int:
            found[key] = str(value)
        elif declared is not None and declared.kind in (int, float) and not declared.is_day:
            try:
                found[key] = typed(value)
            except InputError as error:
                raise InputError(f"{where}: field {key}: {error}") from None
    return found


def with_checkpoint(fields: Mapping[str, Any], files: bool = True) -> dict[str, Any]:
    """Fields of a scenario with the data type of the weights that the name of its model says.

    What the fields state stays.

    >>> with_checkpoint({"model": "zai-org/GLM-5.2-FP8"})
    {'model': 'zai-org/GLM-5.2-FP8', 'weights_dtype': 'fp8-block'}

    Args:
        files: as of `checkpoint_of`.
    """
    stored = None if fields.get("weights_dtype") is not None else _stored(fields.get("model"), files)
    return dict(fields) if stored is None else {**fields, "weights_dtype": stored}


def without_checkpoint(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a scenario without the data type of the weights that the name of its model says."""
    said = fields.get("weights_dtype") is not None and fields["weights_dtype"] == _stored(fields.get("model"))
    return {name: value for name, value in fields.items() if not (said and name == "weights_dtype")}


def _stored(model: Any, files: bool = True) -> str | None:
    """The data type of the weights that the name of a model says; None where it says none."""
    found = checkpoint_of(model, files) if isinstance(model, str) else None
    return None if found is None else found.weights_dtype


def merge_fields(data: Mapping[str, Any], fields: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of a scenario with others in their place, whatever the spelling of either; not validated.

    What decode workers are not given they follow from the deployment; what is given for prefill workers alone
    they do not. The name of a checkpoint states the data type of its weights where nothing else does.

    Args:
        data: as in a scenario file.
        fields: as in `data`, those of decode workers as decode_<field>, of prefill workers as
            prefill_<field>.
        where: stands for the scenario in errors.

    Raises:
        InputError: if a field is given twice, under two names.
    """
    try:
        merged = own_names(Scenario, data)
        given = renamed(fields, field_name)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    if "model" in given:
        merged = without_checkpoint(merged)
    of_workers: dict[str, dict[str, Any]] = {DECODE: {}, PREFILL: {}}
    for name, value in given.items():
        prefix = next((prefix for prefix in of_workers if name.startswith(prefix)), None)
        if of_device(name) is not None:
            merged["devices"] = with_device_field(merged.get("devices") or (), name, value, where)
        elif prefix is None:
            merged[name] = value
        else:
            of_workers[prefix][name.removeprefix(prefix)] = value
    prefill, decode = of_workers[PREFILL], of_workers[DECODE]
    if prefill or decode:
        stated = merged.get("decode") or {}
        stated = stated.model_dump(exclude_none=True) if isinstance(stated, Deployment) else stated
        if merged.get("engine_defaults") not in (None, "general"):
            own = {*own_names(Deployment, stated), *decode}
            for name in (name for name in prefill if _follows_engine(name) and name not in own):
                raise InputError(
                    f"{where}: {PREFILL}{name}: decode workers follow it with engine_defaults "
                    f"{merged['engine_defaults']}; expected {DECODE}{name} beside it"
                )
        shared = {name: merged.get(name, _default(name)) for name in prefill}
        shared = {name: value for name, value in shared.items() if value is not None}
        merged |= prefill | {"decode": shared | own_names(Deployment, stated) | decode}
    return with_checkpoint(merged)


def with_device_field(devices: Iterable[Any], name: str, value: Any, where: str) -> list[dict[str, Any]]:
    """The devices of a scenario file with another value of one field.

    Args:
        name: of the input: device2_layers.

    Raises:
        InputError: if there are not so many devices.
    """
    found = [dict(one) if isinstance(one, Mapping) else one.model_dump(exclude_none=True) for one in devices]
    place = of_device(name)
    assert place is not None
    number, of = place
    if number > len(found):
        raise InputError(f"{where}: {name}: there are {len(found)} devices; list it under devices first")
    found[number - 1][of] = value
    return found


def _follows_engine(name: str) -> bool:
    return name in SCENARIO_FIELDS and SCENARIO_FIELDS[name].follows == "engine defaults"


def _default(name: str) -> Any:
    return SCENARIO_FIELDS[name].default if name in SCENARIO_FIELDS else None


def with_fields(scenario: Scenario, fields: Mapping[str, Any], name: str) -> Scenario:
    """The base column of a scenario with other values of fields, those of decode workers as decode_<field>.

    Raises:
        InputError: as if they stood in a file of that name.
    """
    data = scenario.model_dump(exclude={"variants", "decision"}, exclude_none=True)
    return validate(Scenario, merge_fields(data, fields, name), name)


_Case = TypeVar("_Case", bound=Spread)


def with_own_accelerators(scenario: Scenario, library: Library) -> tuple[Scenario, Library]:
    """A scenario with ids in place of accelerators given as files, and the library that holds those.

    Raises:
        InputError: naming the file.
    """

    def named(case: _Case) -> _Case:
        nonlocal library
        changes: dict[str, Any] = {}
        if case.accelerator is not None and is_file(case.accelerator):
            library, chip = with_accelerator(library, Path(case.accelerator))
            changes["accelerator"] = chip.id
        if isinstance(case, Case) and case.decode is not None:
            changes["decode"] = named(case.decode)
        if isinstance(case, Scenario):
            changes["variants"] = tuple(named(variant) for variant in case.variants)
        return case.model_copy(update=changes)

    return named(scenario), library


def apply_model_overrides(model: Model, overrides: tuple[Override, ...], name: str) -> Model:
    """The model with facts replaced by those of a scenario, marked as overrides.

    Raises:
        InputError: naming the fact and what was expected.
    """
    stated = {item.id: (item.value, item.reason) for item in overrides if item.id.startswith(MODEL)}
    return override_model(model, stated, name)
