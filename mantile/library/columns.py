"""The columns of a scenario: every default filled in, every name checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mantile.library.architecture import Model
from mantile.library.device import DEVICE, flat
from mantile.library.documents import Strict
from mantile.library.errors import InputError, naming, near
from mantile.library.fields import DECODE, ScenarioField
from mantile.library.links import INFERRED, NO_PORT, LinkKind
from mantile.library.profiles import CHECKPOINT, Accelerator, DataType, Framework, Library, System
from mantile.library.scenario import Case, Measured, Override, Scenario, apply_model_overrides
from mantile.library.scenario_fields import (
    DEFAULT_SYSTEM,
    DEVICE_INPUTS,
    INPUT_NAMES,
    SAME,
    SCENARIO_FIELDS,
    WORKER_FIELDS,
    input_field,
)


class Column(Strict):
    """One scenario.

    `values` has all fields but those that follow from others until stated; `given` those it states.
    """

    name: str
    values: dict[str, str | int | float]
    given: tuple[str, ...]
    overrides: tuple[Override, ...]
    measured: Measured = Measured()


def columns(
    scenario: Scenario, model: Model, library: Library, name: str = "scenario", disaggregated: bool = False
) -> tuple[Column, ...]:
    """The columns of a scenario with every default filled in and every name checked.

    Args:
        disaggregated: whether decode workers have inputs of their own though no column of this scenario asks
            for them.

    Raises:
        InputError: for an unknown accelerator, framework or data type, or a replica larger than its system.
    """
    model = apply_model_overrides(model, scenario.overrides, name)
    followed = scenario.stated | ({"classes"} if scenario.classes else set())
    defaults: dict[str, Any] = {
        field.name: field.default
        for field in SCENARIO_FIELDS.values()
        if field.default is not None and field.follows not in followed
    }
    asked = _given(scenario)
    columns = []
    for number, case in enumerate((scenario, *scenario.variants)):
        given = _given(case)
        base = {field: value for field, value in asked.items() if f"inputs.{field}" not in case.without}
        if case.devices:  # a list of its own: nothing is left of that of the base
            base = {field: value for field, value in base.items() if field not in DEVICE_INPUTS}
        devices = len(case.devices or scenario.devices)
        engine = str((defaults | base | given)["framework"])
        wanted = (base | given).get("weights_dtype")
        counts = {
            f"{DEVICE}{one}_count": 1 if one <= devices else 0 for one in range(2, scenario.device_count + 1)
        }
        where = name if number == 0 else f"{name}, variant {number}"
        with naming(f"{where}: field weights_dtype", "unknown "):
            values = defaults | _published(model, wanted, engine, library) | counts | base | given
        if disaggregated or scenario.disaggregated:
            values.setdefault("serving", "aggregated")
        _require_use(given, model, where)
        _require_known(case.without, scenario.overrides, where)
        _check(values, library, where)
        columns.append(
            Column(
                name=case.name or _label(values),
                values=values,
                given=tuple(given),
                measured=case.measured,
                overrides=case.overrides
                if number == 0
                else _merge(scenario.overrides, case.overrides, case.without),
            )
        )
    return tuple(columns)


def _require_known(without: Iterable[str], overrides: Iterable[Override], where: str) -> None:
    """What a variant does not follow is an input, or an override of the base."""
    known = [
        *(override.id for override in overrides),
        *(f"inputs.{name}" for name in (*INPUT_NAMES, *DEVICE_INPUTS)),
    ]
    for identifier in without:
        if identifier not in known:
            raise InputError(
                f"{where}: without: the base has no input or override {identifier!r}; "
                f"{near(identifier, known)}"
            )


def _require_use(given: Iterable[str], model: Model, where: str) -> None:
    """Refuse fields that the model has no use for."""
    architecture = model.architecture
    lacking = {
        "experts": "" if architecture.value("experts") else "experts",
        "images": "" if architecture.vision else "vision tower",
        "embedding": "embedding beside its LM head" if architecture.value("tied_embeddings") else "",
    }
    for name in given:
        part = lacking.get(SCENARIO_FIELDS[name].needs or "") if name in SCENARIO_FIELDS else ""
        if part:
            raise InputError(f"{where}: field {name}: {model.id} has no {part}; leave it out")


def _given(case: Case) -> dict[str, Any]:
    """The fields a column states itself.

    Decode workers of its own make it disaggregated unless it says otherwise.
    """
    given = {name: value for name in SCENARIO_FIELDS if (value := getattr(case, name)) is not None}
    if case.decode is not None:
        given |= {
            f"{DECODE}{name}": value
            for name in WORKER_FIELDS
            if (value := getattr(case.decode, name)) is not None
        }
        given.setdefault("serving", "disaggregated")
    return given | flat(case.devices)


def _stored(model: Model, wanted: str | None) -> dict[str, Any]:
    """The data types of the checkpoint.

    Where a column asks for other weights, only what the checkpoint keeps in 16 bit stays.
    """
    stored = {
        field: choice.value
        for field, choice in model.architecture.choices.items()
        if field in SCENARIO_FIELDS and not SCENARIO_FIELDS[field].follows
    }
    if wanted in (None, stored["weights_dtype"]):
        return dict(stored)
    return {field: value for field, value in stored.items() if value in ("bf16", "fp16")}


def _published(model: Model, wanted: str | None, engine: str, library: Library) -> dict[str, Any]:
    """The data types in which the model is published for a framework.

    Those of the checkpoint, unless the framework has files of its own. There, a file of GGUF or MLX stays as
    it is, weights in a format that it keeps stay, and the head has the framework's format, or that of weights
    which are as wide.

    Args:
        wanted: the data type of weights that a column asks for.
    """
    stored = _stored(model, wanted)
    framework = next((item for item in library.frameworks if item.id == engine), None)
    is_file = "file" in model.architecture.choices and wanted is None
    if framework is None or framework.weights == CHECKPOINT or is_file:
        return stored  # an unknown name is refused below
    of_checkpoint = str(model.architecture.choices["weights_dtype"].value)
    formats = {field: value for field, value in stored.items() if not field.endswith("_dtype")}
    if wanted is None and of_checkpoint in framework.keeps:
        kept = {"weights_dtype": of_checkpoint, "attention_dtype": framework.attention}
        ends = dict.fromkeys(_ends(model), framework.attention)
        return formats | kept | ends
    weights = library.datatype(wanted or framework.weights, "weights")
    if weights.head is not None:
        return formats | {"weights_dtype": weights.id}
    head = library.datatype(framework.head, "weights")
    ends = dict.fromkeys(_ends(model), (weights if weights.bits >= head.bits else head).id)
    return formats | {"weights_dtype": weights.id} | ends


def _ends(model: Model) -> tuple[str, ...]:
    """Fields of the data types of embedding and LM head; a tied embedding is the head."""
    tied = model.architecture.value("tied_embeddings")
    return ("head_dtype",) if tied else ("head_dtype", "embedding_dtype")


def _merge(
    base: tuple[Override, ...], variant: tuple[Override, ...], without: tuple[str, ...]
) -> tuple[Override, ...]:
    merged = {override.id: override for override in base if override.id not in without} | {
        override.id: override for override in variant
    }
    return tuple(override for override in merged.values() if not override.id.startswith("model."))


def _check(values: dict[str, Any], library: Library, where: str) -> None:
    """Every name is known and gets the spelling of the library.

    Whether a plan is possible is said by the checks.
    """
    for name in (*INPUT_NAMES, *DEVICE_INPUTS):
        field = input_field(name)
        words = {INFERRED, NO_PORT} if field.listed == "links" else {field.default} & {DEFAULT_SYSTEM, SAME}
        stands_for_itself = values.get(name) in words
        if field.listed is not None and name in values and not stands_for_itself:
            try:
                if field.listed == "settings":
                    framework = values.get("framework", SCENARIO_FIELDS["framework"].default)
                    values[name] = library.framework(str(framework)).setting(name, str(values[name]))
                    continue
                values[name] = _find(library, field, str(values[name])).id
            except InputError as error:
                raise InputError(f"{where}: field {name}: {error}") from None


def _find(
    library: Library, field: ScenarioField, name: str
) -> Accelerator | System | Framework | DataType | LinkKind:
    """What a name stands for in the list of the library that a field names."""
    match field.listed:
        case "accelerators":
            return library.accelerator(name)
        case "systems":
            return library.system(name)
        case "frameworks":
            return library.framework(name)
        case "links":
            return library.link(name)
        case _:
            return library.datatype(name, field.role)


_DEGREES = (("attention_dp", "DPA"), ("cp", "CP"), ("dcp", "DCP"), ("ep", "EP"), ("pp", "PP"))


def _label(values: dict[str, Any]) -> str:
    """What a column is called that has no name: its degrees, those of decode workers behind an arrow."""

    def degrees(prefix: str) -> str:
        degree = {
            field: values.get(f"{prefix}{field}", values.get(field, 1))
            for field in ("dp", "tp", "attention_dp", "cp", "dcp", "ep", "pp")
        }
        parts = [f"{degree['dp']} ×"] if degree["dp"] > 1 else []
        parts.append(f"TP{degree['tp']}")
        for field, short in _DEGREES:
            if degree[field] > 1:
                parts.append(f"{short}{degree[field]}")
        return " ".join(parts)

    counts = [1, *(values[name] for name in DEVICE_INPUTS if name.endswith("_count") and name in values)]
    if len(counts) > 1:
        return f"{sum(1 for count in counts if count)} devices"
    return f"{degrees('')} → {degrees(DECODE)}" if values.get("serving") == "disaggregated" else degrees("")
