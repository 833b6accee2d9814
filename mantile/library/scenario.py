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

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasChoices, Field, StringConstraints, field_validator, model_validator

from mantile.library.architecture import Architecture, Model
from mantile.library.documents import Strict, parse_yaml, read_text, validate
from mantile.library.errors import InputError
from mantile.library.profiles import Library, with_accelerator
from mantile.library.template import STANDARD

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x1f]*$")
]  # an id or a path
Text = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f]*$")]
Tokens = Annotated[int, Field(ge=1, le=10_000_000, strict=True)]
DEFAULT = "default"  # as the framework does
DEFAULT_SYSTEM = "default"  # the system an accelerator usually comes in
MOST_RANKS, MOST_STAGES, MOST_REPLICAS = 1024, 8, 1024


def _degree(name: str, most: int, *spelled: str) -> Any:
    """A whole number from 1 that says into how many parts something is divided, under several spellings."""
    return Annotated[
        Annotated[int, Field(ge=1, le=most, strict=True)] | None,
        Field(validation_alias=AliasChoices(name, *spelled)),
    ]


class Override(Strict):
    """A figure that replaces the library's or the checkpoint's, and why.

    `id` is that of the figure in use (efficiency.gemm_compute, hardware.memory_bandwidth) or of a fact (model.layers);
    `value` is in the unit of its cell.
    """

    id: Text
    value: Annotated[float, Field(allow_inf_nan=False)]
    reason: Text = "no reason given"


class Measured(Strict):
    """What was measured of a column: means in ms unless they say otherwise, and tokens per second of the whole deployment."""

    ttft_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    ttft_p50_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    tpot_ms: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    output_tokens_per_s: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None

    def given(self) -> dict[str, float]:
        """The values there are."""
        return {name: value for name in Measured.model_fields if (value := getattr(self, name)) is not None}


class Deployment(Strict):
    """Accelerators and how a model is spread over them. `accelerator` is an id, or a file of one's own: path/to/chip.yaml."""

    accelerator: Name | None = None
    system: Text | None = None
    framework: Text | None = None
    tp: _degree("tp", MOST_RANKS, "tensor_parallel_size", "tp_size") = None  # type: ignore[valid-type]
    pp: _degree("pp", MOST_STAGES, "pipeline_parallel_size", "pp_size") = None  # type: ignore[valid-type]
    dp: _degree("dp", MOST_REPLICAS, "data_parallel_size") = None  # type: ignore[valid-type]
    ep: _degree("ep", MOST_RANKS, "expert_parallel_size", "ep_size", "moe_ep_size") = None  # type: ignore[valid-type]
    attention_dp: _degree("attention_dp", MOST_RANKS, "dp_attention") = None  # type: ignore[valid-type]
    cp: _degree("cp", MOST_RANKS, "context_parallel_size", "cp_size") = None  # type: ignore[valid-type]


Share = Annotated[float | None, Field(gt=0, le=1, allow_inf_nan=False)]
Steps = Annotated[float | None, Field(ge=0, le=10_000, allow_inf_nan=False)]
Amount = Annotated[float | None, Field(ge=0, le=10_000, allow_inf_nan=False)]


class Case(Deployment):
    """The fields of one column. What a variant leaves out follows the base, but for what was measured.

    `decode` are workers that only decode: with it the deployment above only prefills, unless `serving` is aggregated.
    `without` are ids of overrides of the base that a variant does not follow.
    """

    name: Text | None = None
    weights_dtype: Text | None = None
    activation_dtype: Text | None = None
    kv_dtype: Annotated[Text | None, Field(validation_alias=AliasChoices("kv_dtype", "kv_cache_dtype"))] = (
        None
    )
    head_dtype: Text | None = None
    attention_dtype: Text | None = None
    ffn_dtype: Text | None = None
    experts_dtype: Text | None = None
    image_tokens: Annotated[int | None, Field(ge=0, le=10_000_000, strict=True)] = None
    sequence_parallel: Literal["on", "off"] | None = None
    microbatches: Annotated[int | None, Field(ge=0, le=1024, strict=True)] = None
    batching: Literal["continuous", "static"] | None = None
    serving: Literal["aggregated", "disaggregated"] | None = None
    input_tokens: Annotated[
        Tokens | None, Field(validation_alias=AliasChoices("input_tokens", "isl", "input_len"))
    ] = None
    output_tokens: Annotated[
        Tokens | None, Field(validation_alias=AliasChoices("output_tokens", "osl", "output_len"))
    ] = None
    concurrency: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None,
        Field(validation_alias=AliasChoices("concurrency", "max_concurrency")),
    ] = None
    request_rate: Annotated[
        Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)] | None,
        Field(validation_alias=AliasChoices("request_rate", "qps", "rps")),
    ] = None
    token_budget: Annotated[
        Tokens | None, Field(validation_alias=AliasChoices("token_budget", "max_num_batched_tokens"))
    ] = None
    max_requests: Annotated[
        Annotated[int, Field(ge=0, le=1_000_000, strict=True)] | None,
        Field(validation_alias=AliasChoices("max_requests", "max_num_seqs", "max_batch_size")),
    ] = None
    release: Literal["current", "before 2025-12"] | None = None
    waves: Annotated[float | None, Field(ge=0, le=1000, allow_inf_nan=False)] = None
    scheduler: Literal["default", "mixed", "prefill-first", "whole-prompts"] | None = None
    receive_interval: Annotated[
        Steps, Field(validation_alias=AliasChoices("receive_interval", "scheduler_recv_interval"))
    ] = None
    batch_wait: Annotated[
        Steps, Field(validation_alias=AliasChoices("batch_wait", "batch_wait_timeout_iters"))
    ] = None
    length_spread: Annotated[float | None, Field(ge=0, le=1, allow_inf_nan=False)] = None
    long_outputs: Annotated[float | None, Field(ge=1, le=100, allow_inf_nan=False)] = None
    offload_weights: Annotated[
        Amount, Field(validation_alias=AliasChoices("offload_weights", "cpu_offload_gb"))
    ] = None
    offload_kv: Annotated[Amount, Field(validation_alias=AliasChoices("offload_kv", "swap_space"))] = None
    price_basis: Literal["cloud", "rental", "owned"] | None = None
    utilisation: Share = None
    electricity_price: Annotated[float | None, Field(ge=0, le=10, allow_inf_nan=False)] = None
    pue: Annotated[float | None, Field(ge=1, le=5, allow_inf_nan=False)] = None
    hours_per_day: Annotated[float | None, Field(gt=0, le=24, allow_inf_nan=False)] = None
    decode: Deployment | None = None
    overrides: tuple[Override, ...] = ()
    without: tuple[Text, ...] = ()
    measured: Measured = Measured()


SAME = "same"  # a class of matrices that has the data type of the weights
CLASS_DTYPES = ("attention_dtype", "ffn_dtype", "experts_dtype")
FIELDS = tuple(
    name for name in Case.model_fields if name not in ("name", "decode", "overrides", "without", "measured")
)
APART = tuple(Deployment.model_fields)  # what decode workers may have to themselves, as decode_<field>
FOLLOWING = ("activation_dtype",)  # follow from other fields until stated, as do those of decode workers


class Version(Strict):
    """A version of a workbook before this one: when it was made, what it was, why, and its results for the base scenario."""

    date: Annotated[Text | None, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = None
    what: Text
    why: Text
    checks: Text = ""
    ttft_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tpot_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    usd_per_million: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0


class Scenario(Case):
    """A base column, with what belongs to the whole workbook, and variants of it.

    `profiles` are those wanted in an older version: accelerators/h100-sxm@2026-11. `template` is one of templates/ or a file. `versions` came
    before this one. `sweep` are values of one field, or of two, that the Sweep sheet runs through; `sensitivity` percentages by which drivers
    are taken lower and higher, by id.
    """

    model: Name
    title: Text | None = None
    date: Annotated[Text | None, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] = None
    why: Text = "first estimate"
    profiles: tuple[Text, ...] = ()
    variants: tuple[Case, ...] = Field(default=(), max_length=7)
    template: Text = STANDARD
    versions: Annotated[tuple[Version, ...], Field(max_length=100)] = ()
    sweep: dict[Text, Annotated[tuple[int | float | Text, ...], Field(min_length=1)]] = Field(
        default_factory=dict, max_length=2
    )
    sensitivity: dict[Text, Annotated[int, Field(ge=0, le=90, strict=True)]] = Field(default_factory=dict)

    @field_validator("sweep", mode="before")
    @classmethod
    def _of_pairs(cls, given: Any) -> Any:
        pairs = isinstance(given, list) and all(
            isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in given
        )
        return dict(given) if pairs else given

    @model_validator(mode="after")
    def _complete(self) -> Scenario:
        for field in ("accelerator", "input_tokens", "output_tokens", "concurrency"):
            if getattr(self, field) is None and not (field == "concurrency" and self.request_rate):
                raise ValueError(f"{field} is missing")
        for index, variant in enumerate(self.variants):
            if any(override.id.startswith("model.") for override in variant.overrides):
                raise ValueError(
                    f"variants.{index}.overrides: a fact of the model is shared by all columns; override it in the base"
                )
        return self

    def replace(self, **fields: Any) -> Scenario:
        """This scenario with other values of some fields, checked like a scenario file.

        Variants stay as they are. None takes a value back, so that the default holds again.

        >>> load_scenario("chat.yaml").replace(tp=4, decode_tp=8)  # doctest: +SKIP

        Args:
            fields: by name or alias; those of decode workers as decode_<field>.

        Raises:
            InputError: naming a field that there is not, with those that come near, or what was expected of a value.
        """
        data = self.model_dump(exclude_none=True)
        return validate(Scenario, merge_fields(data, fields), "scenario")

    @property
    def open_loop(self) -> bool:
        """Whether requests arrive at a rate, in some column at least."""
        return any(case.request_rate for case in (self, *self.variants))

    @property
    def disaggregated(self) -> bool:
        """Whether decode workers have inputs of their own, in some column at least."""
        return any(
            case.decode is not None or case.serving == "disaggregated" for case in (self, *self.variants)
        )


class Column(Strict):
    """One scenario: `values` of all fields but those that follow from others until stated; `given` are those it states."""

    name: str
    values: dict[str, str | int | float]
    given: tuple[str, ...]
    overrides: tuple[Override, ...]
    measured: Measured = Measured()


def load_scenario(path: str) -> Scenario:
    """Read a scenario file.

    Raises:
        InputError: naming file and field.
    """
    return parse_scenario(parse_yaml(read_text(Path(path)), path), path)


def parse_scenario(data: Any, name: str) -> Scenario:
    """Plain objects to a scenario; dates may be YAML dates."""
    if isinstance(data, dict) and "date" in data and data["date"] is not None:
        data = data | {"date": str(data["date"])}
    return validate(Scenario, data, name)


DECODE = "decode_"  # before the name of a field that decode workers have to themselves


def field_name(spelling: str) -> str:
    """Our name of a field that goes by several; what is no field stays as it is."""
    given = spelling.replace("-", "_")
    prefix = DECODE if given.startswith(DECODE) else ""
    given = given.removeprefix(prefix)
    if prefix and given == "workers":
        return f"{DECODE}dp"
    return next(
        (
            f"{prefix}{field}"
            for field in (APART if prefix else FIELDS)
            if given in getattr(Case.model_fields[field].validation_alias, "choices", (field,))
        ),
        spelling,
    )


def merge_fields(data: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a scenario with others in their place, in whatever spelling either has them; not validated.

    Args:
        data: as in a scenario file.
        fields: as in `data`, those of decode workers as decode_<field>.
    """
    merged = {field_name(spelling): value for spelling, value in data.items()}
    decode: dict[str, Any] = {}
    for spelling, value in fields.items():
        name = field_name(spelling)
        if name.startswith(DECODE):
            decode[name.removeprefix(DECODE)] = value
        else:
            merged[name] = value
    if decode:
        shared = merged.get("decode") or {}
        shared = shared.model_dump(exclude_none=True) if isinstance(shared, Deployment) else shared
        merged["decode"] = {field_name(spelling): value for spelling, value in shared.items()} | decode
    return merged


def with_fields(scenario: Scenario, fields: Mapping[str, Any], name: str) -> Scenario:
    """The base column of a scenario with other values of fields, those of decode workers as decode_<field>.

    Raises:
        InputError: as if they stood in a file of that name.
    """
    data = scenario.model_dump(exclude={"variants"}, exclude_none=True)
    return validate(Scenario, merge_fields(data, fields), name)


_Case = TypeVar("_Case", bound=Deployment)


def with_own_accelerators(scenario: Scenario, library: Library) -> tuple[Scenario, Library]:
    """A scenario with ids in place of accelerators given as files, and the library with those accelerators in it.

    Raises:
        InputError: naming the file.
    """

    def named(case: _Case) -> _Case:
        nonlocal library
        changes: dict[str, Any] = {}
        if case.accelerator is not None and case.accelerator.lower().endswith((".yaml", ".yml")):
            library, chip = with_accelerator(library, Path(case.accelerator))
            changes["accelerator"] = chip.id
        if isinstance(case, Case) and case.decode is not None:
            changes["decode"] = named(case.decode)
        if isinstance(case, Scenario):
            changes["variants"] = tuple(named(variant) for variant in case.variants)
        return case.model_copy(update=changes)

    return named(scenario), library


def columns(
    scenario: Scenario, model: Model, library: Library, name: str = "scenario", apart: bool = False
) -> tuple[Column, ...]:
    """The columns of a scenario with every default filled in and every name checked.

    Args:
        apart: whether decode workers have inputs of their own though no column of this scenario asks for them.

    Raises:
        InputError: for an unknown accelerator, framework or data type, or a replica larger than its system.
    """
    defaults: dict[str, Any] = {
        "system": DEFAULT_SYSTEM,
        "framework": "vllm",
        "kv_dtype": "bf16",
        "head_dtype": "bf16",
        "batching": "continuous",
        "token_budget": 8192,
        "image_tokens": 0,
        "sequence_parallel": "off",
        "microbatches": 0,
        "offload_weights": 0,
        "offload_kv": 0,
        "price_basis": "cloud",
        "max_requests": 0,
        "release": "current",
        "request_rate": 0,
        "waves": 0,
        "scheduler": DEFAULT,
        "receive_interval": 0,
        "batch_wait": 0,
        "length_spread": 0.2,
        "long_outputs": 1.1,
        "utilisation": 1,
        "electricity_price": 0.1,
        "pue": 1.3,
        "hours_per_day": 24,
        **dict.fromkeys(("tp", "pp", "dp", "ep", "attention_dp", "cp"), 1),
        **dict.fromkeys(CLASS_DTYPES, SAME),
        **_stored(model, scenario),
    }
    base = defaults | _given(scenario)
    result = []
    for number, case in enumerate((scenario, *scenario.variants)):
        given = _given(case)
        values = base | given
        if apart or scenario.disaggregated:
            values.setdefault("serving", "aggregated")
        where = name if number == 0 else f"{name}, variant {number}"
        for field, has in (
            ("experts_dtype", model.architecture.value("experts")),
            ("release", model.architecture.value("experts")),
            ("image_tokens", model.architecture.vision),
        ):
            if field in given and not has:
                raise InputError(
                    f"{where}: field {field}: {model.id} has no {'vision tower' if field == 'image_tokens' else 'experts'}"
                )
        _check(values, library, where)
        result.append(
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
    return tuple(result)


def _given(case: Case) -> dict[str, Any]:
    """The fields a column states itself. Decode workers of its own make it disaggregated unless it says otherwise."""
    found = {field: getattr(case, field) for field in FIELDS if getattr(case, field) is not None}
    if case.decode is not None:
        found |= {
            f"decode_{field}": getattr(case.decode, field)
            for field in APART
            if getattr(case.decode, field) is not None
        }
        found.setdefault("serving", "disaggregated")
    return found


def _stored(model: Model, scenario: Scenario) -> dict[str, Any]:
    """The data types of the checkpoint. Where a scenario asks for other weights, only what the checkpoint keeps in 16 bit stays."""
    stored = {
        field: choice.value
        for field, choice in model.architecture.choices.items()
        if field in FIELDS and field not in FOLLOWING
    }
    if scenario.weights_dtype is None or scenario.weights_dtype == stored["weights_dtype"]:
        return dict(stored)
    return {field: value for field, value in stored.items() if value in ("bf16", "fp16")}


def _merge(
    base: tuple[Override, ...], own: tuple[Override, ...], without: tuple[str, ...]
) -> tuple[Override, ...]:
    merged = {override.id: override for override in base if override.id not in without} | {
        override.id: override for override in own
    }
    return tuple(override for override in merged.values() if not override.id.startswith("model."))


_DTYPES = {
    "weights_dtype": "weights",
    "head_dtype": "weights",
    "activation_dtype": "activations",
    "kv_dtype": "kv",
    **dict.fromkeys(CLASS_DTYPES, "weights"),
}


def _check(values: dict[str, Any], library: Library, name: str) -> None:
    """Every name is known; data types get their own spelling. Whether a plan is possible is said by the checks."""
    for prefix in ("", "decode_"):
        if f"{prefix}accelerator" in values:
            _named(name, lambda prefix=prefix: library.accelerator(str(values[f"{prefix}accelerator"])))
        if f"{prefix}framework" in values:
            _named(name, lambda prefix=prefix: library.framework(str(values[f"{prefix}framework"])))
        if values.get(f"{prefix}system", DEFAULT_SYSTEM) != DEFAULT_SYSTEM:
            _named(name, lambda prefix=prefix: library.system(str(values[f"{prefix}system"])))
    for field, role in _DTYPES.items():
        if field in values and (values[field] != SAME or field not in CLASS_DTYPES):
            values[field] = _named(
                name, lambda field=field, role=role: library.datatype(str(values[field]), role)
            ).id


def _named(name: str, look: Any) -> Any:
    try:
        return look()
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _label(values: dict[str, Any]) -> str:
    """What a column is called that has no name: its degrees, those of decode workers behind an arrow."""

    def degrees(prefix: str) -> str:
        degree = {
            field: values.get(f"{prefix}{field}", values[field])
            for field in ("dp", "tp", "attention_dp", "cp", "ep", "pp")
        }
        parts = [f"{degree['dp']} ×"] if degree["dp"] > 1 else []
        parts.append(f"TP{degree['tp']}")
        for field, short in (("attention_dp", "DPA"), ("cp", "CP"), ("ep", "EP"), ("pp", "PP")):
            if degree[field] > 1:
                parts.append(f"{short}{degree[field]}")
        return " ".join(parts)

    return (
        f"{degrees('')} → {degrees('decode_')}" if values.get("serving") == "disaggregated" else degrees("")
    )


_VISION = "vision."  # after "model." in the ids of facts of the vision tower


def apply_model_overrides(model: Model, overrides: tuple[Override, ...], name: str) -> Model:
    """The model with facts replaced by those of a scenario, marked as overrides."""
    known = model.architecture.facts
    if model.architecture.vision is not None:
        known = known | {
            f"{_VISION}{fact}": figure for fact, figure in model.architecture.vision.facts.items()
        }
    facts: dict[str, Any] = {}
    for override in overrides:
        fact = override.id.removeprefix("model.")
        if not override.id.startswith("model."):
            continue
        if fact not in known or not float(override.value).is_integer():
            raise InputError(
                f"{name}: overrides: {override.id} = {override.value}: expected a whole number for one of "
                + ", ".join(f"model.{fact}" for fact in known)
            )
        facts[fact] = {
            "value": int(override.value),
            "origin": "override",
            "source": f"{override.reason}; was {known[fact].value} ({known[fact].source})",
        }
    if not facts:
        return model
    data = model.architecture.model_dump()
    data["facts"] |= {fact: figure for fact, figure in facts.items() if not fact.startswith(_VISION)}
    if data["vision"]:
        data["vision"]["facts"] |= {
            fact.removeprefix(_VISION): figure for fact, figure in facts.items() if fact.startswith(_VISION)
        }
    return model.model_copy(update={"architecture": validate(Architecture, data, f"{name}: overrides")})
