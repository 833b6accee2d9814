"""The fields of the form: what stands in them, what may, and what holds where nothing does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mantile.library.errors import InputError
from mantile.library.fields import DEPLOYMENT, MONEY, WORKLOAD, ScenarioField
from mantile.library.models import model_ids
from mantile.library.profiles import Library, load_library
from mantile.library.scenario_fields import CLASS_DTYPES, DEFAULT_SYSTEM, SAME, SCENARIO_FIELDS
from mantile.server.documents import model_of
from mantile.server.page.answers import HUB, Answer, FieldError
from mantile.server.page.state import DEGREES, GPUS, PRICED, START, TYPED, State, is_link

FRONT = (
    "model",
    "accelerator",
    "system",
    "framework",
    *DEGREES,
    "input_tokens",
    "output_tokens",
    "concurrency",
    "weights_dtype",
    "activation_dtype",
    "kv_dtype",
    "batching",
    "price_basis",
    "utilisation",
)
"""Fields that have a place of their own; all others stand below them."""
_MORE = (DEPLOYMENT, WORKLOAD, MONEY)
_SHORT = {"activation_dtype": "Activations", "concurrency": "Requests at once", "price_basis": "Price basis"}
_UNSAID = ("1", "flag", "date", "token", "token/request", "request", "rank", "stage", "replica", "number")
_DEGREE_LABELS = {"tp": "TP", "pp": "PP", "dp": "DP", "ep": "EP", "attention_dp": "Attention DP", "cp": "CP"}


@dataclass(frozen=True)
class FormField:
    """A field as the form shows it.

    Args:
        name: in an address, and of the field of a scenario.
        value: what somebody typed; empty if nobody did.
        default: what holds then, in words.
        options: value and words of a choice; none of a number or a text.
        error: what is wrong with it; empty if nothing is.
        changed: whether it differs from its default.
    """

    name: str
    label: str
    value: str
    default: str
    hint: str
    unit: str = ""
    options: tuple[tuple[str, str], ...] = ()
    listed: bool = False
    error: str = ""
    whole: bool = False

    @property
    def changed(self) -> bool:
        """Whether somebody stated something else than holds by itself."""
        return bool(self.value) and not self.required and self.value != self.default

    @property
    def required(self) -> bool:
        """Whether nothing holds by itself."""
        return self.name in ("model", "accelerator", "input_tokens", "output_tokens", "concurrency", GPUS)


@dataclass(frozen=True)
class Form:
    """All fields.

    Args:
        error: one that is of no field that the form has.
    """

    front: Mapping[str, FormField]
    more: Mapping[str, tuple[FormField, ...]]
    auto: bool
    error: str
    about: str

    def __getitem__(self, name: str) -> FormField:
        return self.front[name]

    @property
    def degrees(self) -> Iterator[FormField]:
        """Those of a plan by hand."""
        yield from (self.front[name] for name in DEGREES if name in self.front)

    @property
    def wrong(self) -> FormField | None:
        """The first field with an error."""
        every = [*self.front.values(), *(one for group in self.more.values() for one in group)]
        return next((one for one in every if one.error), None)


def form_of(state: State, found: Answer | None, error: FieldError | None = None) -> Form:
    """The form of a state; its defaults follow from the answer where there is one."""
    fields, library = state.fields, load_library()
    wrong = {field_of(error, fields): str(error)} if error is not None else {}
    values: dict[str, Any] = {}
    if found is not None:
        stated = {name: found.results[name] for name in SCENARIO_FIELDS if name in found.results}
        values = {**found.estimate.columns[0].values, **stated}
    lacking = _lacking(str(fields.get("model")))
    names = [name for name in SCENARIO_FIELDS if SCENARIO_FIELDS[name].needs not in lacking]

    def one(name: str) -> FormField:
        return _field(name, SCENARIO_FIELDS[name], fields, values, library, wrong.get(name, ""))

    front = {name: one(name) for name in FRONT if name in names}
    front["model"] = FormField(
        "model",
        "Model",
        str(fields.get("model", "")),
        "",
        "an id of the library",
        options=tuple((identifier, identifier) for identifier in model_ids()),
        listed=True,
        error=wrong.get("model", ""),
    )
    most = FormField(
        GPUS, "GPUs, at most", str(fields.get(GPUS, START[GPUS])), "8", "AUTO may take fewer", whole=True
    )
    front[GPUS] = most if GPUS not in wrong else _with_error(most, wrong[GPUS])
    front["price"] = _price(fields, values, found, wrong)
    more = {
        group: tuple(
            one(name) for name in names if name not in FRONT and SCENARIO_FIELDS[name].group == group
        )
        for group in _MORE
    }
    known = {*front, *(item.name for group in more.values() for item in group)}
    loose = next((said for field, said in wrong.items() if field not in known), "")
    named = next((field for field in wrong if field and field not in known), "")
    told = loose if loose.startswith(named) else f"{named}: {loose}"
    return Form(front, more, state.auto, told, _about(fields))


def field_of(error: FieldError, fields: Mapping[str, Any]) -> str:
    """The field of a form that an error is of, that of links among them."""
    name, _, place = error.field.partition(".")
    if name == "devices" and place:
        number, _, of_device = place.partition(".")
        return f"device{int(number) + 1}_{of_device}"
    if name != "overrides":
        return GPUS if name == "gpus_max" else name
    stated = fields.get(name)
    identifier = str(error).partition(" = ")[0]
    if place and isinstance(stated, list) and isinstance(stated[int(place)], dict):
        identifier = str(stated[int(place)].get("id"))
    own = f"hardware.price_{fields.get('price_basis', 'cloud')}"
    return "price" if identifier == own else identifier if is_link(identifier) else name


def _with_error(field: FormField, error: str) -> FormField:
    return FormField(**{**field.__dict__, "error": error})


def _field(
    name: str,
    declared: ScenarioField,
    fields: Mapping[str, Any],
    values: Mapping[str, Any],
    library: Library,
    error: str,
) -> FormField:
    given = fields.get(name)
    default = declared.default_words
    if name not in fields and name in values and name not in ("concurrency", "as_of"):
        default = _written(values[name]) if declared.kind is not str else str(values[name])
    return FormField(
        name=name,
        label=_DEGREE_LABELS.get(name) or _SHORT.get(name) or declared.label,
        value="" if given is None or given == "auto" else _written(given),
        default=default,
        hint=declared.meaning,
        unit="" if declared.unit in _UNSAID else declared.unit,
        options=_options(name, declared, library, str(given or "")),
        listed=declared.listed in ("accelerators",),
        error=error,
        whole=declared.kind is int,
    )


def _written(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if abs(value) < 1e6 else f"{value!r}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else f"{value}"


def _options(name: str, declared: ScenarioField, library: Library, given: str) -> tuple[tuple[str, str], ...]:
    names: Iterable[str] = declared.choices
    match declared.listed:
        case "accelerators":
            names = [chip.id for chip in library.accelerators]
        case "systems":
            names = [DEFAULT_SYSTEM, *(system.id for system in library.systems)]
        case "frameworks":
            names = [framework.id for framework in library.frameworks]
        case "datatypes":
            first = [SAME] if name in CLASS_DTYPES else []
            names = [*first, *(kind.id for kind in library.datatypes if declared.role in kind.roles)]
        case "links" | "settings":
            return ()
    listed = [(text, text) for text in dict.fromkeys(names)]
    if not listed:
        return ()
    if given and given not in dict(listed):
        listed.append((given, given))
    return tuple(listed)


def _price(
    fields: Mapping[str, Any], values: Mapping[str, Any], found: Answer | None, wrong: Mapping[str, str]
) -> FormField:
    """The price of an accelerator by the basis that is chosen; a field of its own, as it is a figure."""
    basis = str(fields.get("price_basis", "cloud"))
    identifier = f"hardware.price_{basis}"
    stated = fields.get("overrides")
    typed = next(
        (
            item.get("value")
            for item in (stated if isinstance(stated, list) else [])
            if isinstance(item, dict) and item.get("id") == identifier and item.get("reason") == TYPED
        ),
        None,
    )
    default = ""
    if found is not None and basis in PRICED:
        figure = found.estimate.equations.figures.get(identifier)
        value = None if figure is None else found.estimate.values().get(figure)
        if typed is None and isinstance(value, float | int) and value > 0:
            default = f"{float(value):g}"
    return FormField(
        "price",
        "Price of a GPU",
        "" if typed is None else f"{typed}",
        default or ("the library's" if basis in PRICED else ""),
        "of an accelerator, as you pay it",
        "USD/h",
        error=wrong.get("price", ""),
    )


@lru_cache(maxsize=256)
def _lacking(model: str) -> frozenset[str]:
    """What a model does not have, so that fields about it are of no use."""
    if model not in model_ids():
        return frozenset()
    architecture = model_of(model, False).architecture
    return frozenset(
        [
            *([] if architecture.value("experts") else ["experts"]),
            *([] if architecture.vision else ["images"]),
            *(["embedding"] if architecture.value("tied_embeddings") else []),
        ]
    )


@lru_cache(maxsize=256)
def _counts(model: str, hub: bool) -> tuple[float, int, str]:
    from mantile.ir.build import build_ir
    from mantile.ir.counts import parameters

    entry = model_of(model, hub)
    return parameters(build_ir(entry))["total"], len(entry.architecture.sequence()), entry.source


def _about(fields: Mapping[str, Any]) -> str:
    """Size of the model in half a line."""
    try:
        total, layers, _ = _counts(str(fields.get("model")).partition("@")[0], HUB.get())
    except InputError:
        return ""
    return f"{total / 1e9:,.1f} B parameters, {layers} layers"
