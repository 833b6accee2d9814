"""What a page was asked: a scenario that may leave its plan to be chosen, and runs that are pinned.

A permalink holds all of it. `s` is the scenario as JSON, compressed, in the alphabet of URLs; fields of the
form stand beside it and go before it; `pin` are the scenarios of pinned runs, in the same form.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from mantile.estimates.estimate import OF_CHIP
from mantile.library.documents import parse_json
from mantile.library.errors import InputError
from mantile.library.models import checkpoint_of, load_model, model_ids
from mantile.library.scenario_fields import SCENARIO_FIELDS
from mantile.library.typed_numbers import plain_number

AUTO = "auto"
GPUS = "gpus"
"""Accelerators that a plan may have at most where it shall be chosen; no field of a scenario."""
DEGREES = ("tp", "pp", "dp", "ep", "attention_dp", "cp")
PRICED = ("cloud", "rental")
"""Price bases that rest on one figure, which the form can state."""
FIGURES = ("hardware.link_bandwidth", "hardware.pair_bandwidth", "hardware.scale_out_bandwidth")
"""Figures of the library that a form may state by their ids."""
_OF_DEVICE = re.compile(r"device([1-9])_(link(?:_to_[1-9])?_bandwidth)")
START: Mapping[str, Any] = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
    "tp": AUTO,
    "pp": AUTO,
    "dp": AUTO,
    GPUS: 8,
}
"""What a page shows that nobody has asked anything."""
MOST_LINK = 16_000  # characters of a scenario in an address
MOST_TEXT = 400_000  # of it unpacked
MOST_PINS = 6
TYPED = "typed on the page"
"""The reason of an override that was typed on the page."""


def packed(fields: Mapping[str, Any]) -> str:
    """A scenario as text for an address.

    >>> unpacked(packed({"model": "llama-3.1-8b", "tp": 2})) == {"model": "llama-3.1-8b", "tp": 2}
    True
    """
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(zlib.compress(text.encode(), 9)).decode().rstrip("=")


def unpacked(text: str) -> dict[str, Any]:
    """The scenario in an address.

    Raises:
        InputError: for what is none, or is larger than a page takes.
    """
    if len(text) > MOST_LINK:
        raise InputError(f"address: s has {len(text):,} characters; expected at most {MOST_LINK:,}")
    broken = InputError("address: s is no scenario; expected a permalink as this page makes them, whole")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        opened = zlib.decompressobj()
        plain = opened.decompress(data, MOST_TEXT)
    except (binascii.Error, zlib.error, ValueError):
        raise broken from None
    if not opened.eof:
        raise broken
    try:
        fields = parse_json(plain.decode(), "address")
    except UnicodeDecodeError:
        raise broken from None
    if not isinstance(fields, dict):
        raise broken
    return fields


@dataclass(frozen=True)
class State:
    """What a page was asked.

    Args:
        fields: of a scenario; degrees may be auto, and `gpus` says how many accelerators there are then.
        pins: packed scenarios of runs that are pinned, the first is A.
    """

    fields: Mapping[str, Any]
    pins: tuple[str, ...] = ()
    packed: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed", packed(self.fields))

    @property
    def auto(self) -> bool:
        """Whether the plan shall be chosen."""
        return any(self.fields.get(name) == AUTO for name in DEGREES)

    def link(self, path: str = "/", **more: Any) -> str:
        """The address of a view of it."""
        pairs = [("s", self.packed), *(("pin", pin) for pin in self.pins)]
        pairs += [(key, str(value)) for key, value in more.items() if value is not None]
        return f"{path}?{urlencode(pairs)}"

    def with_fields(self, **fields: Any) -> State:
        """The same with other values of some fields; None takes one away."""
        moved = "accelerator" in fields and fields["accelerator"] != self.fields.get("accelerator")
        own = elsewhere(self.fields) if moved else self.fields
        changed = {key: value for key, value in {**own, **fields}.items() if value is not None}
        return State(changed, self.pins)

    def with_pins(self, pins: Iterable[str]) -> State:
        """The same with other pinned runs, each once."""
        return State(self.fields, tuple(dict.fromkeys(pins))[:MOST_PINS])

    def pinned(self) -> State:
        """The same with itself among the pinned runs."""
        return self.with_pins((*self.pins, self.packed))

    def by_auto(self) -> State:
        """The same with a plan that shall be chosen: degrees that the model has a use for."""
        names = ("tp", "pp", "dp", *(("ep", "attention_dp") if _has_experts(self.fields) else ()))
        kept = {key: value for key, value in self.fields.items() if key not in DEGREES}
        return State({GPUS: START[GPUS], **kept, **dict.fromkeys(names, AUTO)}, self.pins)

    def without_link(self, name: str) -> State:
        """With the library's bandwidth of a link where one was typed."""
        return State(_with_link(dict(self.fields), name, ""), self.pins)

    def by_hand(self, plan: Mapping[str, Any]) -> State:
        """The same with the degrees of a plan."""
        kept = {key: value for key, value in self.fields.items() if key not in (*DEGREES, GPUS)}
        degrees = {name: plan[name] for name in DEGREES if plan.get(name, 1) != 1}
        return State({**kept, **degrees}, self.pins)


def elsewhere(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields for other accelerators than the one they name: a price that was typed is of that one, and its
    other figures are left out.
    """
    stated, basis = fields.get("overrides"), fields.get("price_basis", PRICED[0])
    listed = [item for item in (stated if isinstance(stated, list) else []) if isinstance(item, dict)]
    kept = [item for item in listed if item.get("id") not in OF_CHIP]
    typed = next((item.get("value") for item in listed if item.get("id") == f"hardware.price_{basis}"), None)
    prices = dict(fields.get("prices") or {})
    if typed is not None and basis in PRICED:
        prices[fields.get("accelerator")] = typed
    found = {key: value for key, value in fields.items() if key not in ("overrides", "prices")}
    return found | ({"overrides": kept} if kept else {}) | ({"prices": prices} if prices else {})


def _has_experts(fields: Mapping[str, Any]) -> bool:
    name = str(fields.get("model"))
    found = checkpoint_of(name, files=False)
    name = name if found is None else found.id
    return name in model_ids() and bool(load_model(name).architecture.value("experts"))


def state_of(query: Iterable[tuple[str, str]]) -> State:
    """What an address asks.

    Raises:
        InputError: for a permalink that is broken. What its fields hold is not looked at.
    """
    pairs = list(query)
    texts: dict[str, str] = dict(pairs)
    pins = tuple(dict.fromkeys(value for key, value in pairs if key == "pin"))[:MOST_PINS]
    for pin in pins:
        unpacked(pin)
    fields = unpacked(texts["s"]) if texts.get("s") else dict(START)
    form = {key: value for key, value in texts.items() if key in (*SCENARIO_FIELDS, "model", GPUS)}
    fields |= {key: value for key, text in form.items() if (value := _value(key, text)) is not None}
    for key, text in form.items():
        if not text.strip():
            fields.pop(key, None)
    if "price" in texts:
        fields = _priced(fields, texts["price"])
    for key, text in texts.items():
        if is_link(key):
            fields = _with_link(fields, key, text)
    if texts.get("set"):
        fields = _with_overrides(fields, texts["set"], texts.get("why", "").strip() or TYPED)
    state = State(fields, pins)
    return state.by_auto() if texts.get("plan") == AUTO else state


def _with_overrides(fields: dict[str, Any], text: str, why: str) -> dict[str, Any]:
    """Fields with the overrides of a text, each ID=VALUE; ID= takes one away.

    Raises:
        InputError: for a word of another form.
    """
    stated = fields.get("overrides")
    listed = [item for item in (stated if isinstance(stated, list) else []) if isinstance(item, dict)]
    for word in text.split():
        identifier, equals, value = word.partition("=")
        if not (identifier and equals):
            raise InputError(f"{word:.60}: expected ID=VALUE, such as model.tied_embeddings=1")
        listed = [item for item in listed if item.get("id") != identifier]
        if value:
            number = _value("electricity_price", value)
            listed.append({"id": identifier, "value": number, "reason": why})
    kept = {key: one for key, one in fields.items() if key != "overrides"}
    return kept | ({"overrides": listed} if listed else {})


def is_link(name: str) -> bool:
    """Whether a field is the bandwidth of a link: a figure of the library, or of a device."""
    return name in FIGURES or _OF_DEVICE.fullmatch(name) is not None


def _with_link(fields: dict[str, Any], name: str, text: str) -> dict[str, Any]:
    """Fields with a bandwidth that was typed; without one that was typed before where there is none."""
    found, devices = _OF_DEVICE.fullmatch(name), fields.get("devices")
    if found is None:
        return _with_figure(fields, name, text)
    place, field_ = int(found[1]) - 1, found[2]
    if not (isinstance(devices, list) and place < len(devices) and isinstance(devices[place], dict)):
        return fields
    own = {key: value for key, value in devices[place].items() if key != field_}
    value = _value("electricity_price", text)
    own |= {} if value is None else {field_: value}
    return fields | {"devices": [*devices[:place], own, *devices[place + 1 :]]}


def _value(key: str, text: str) -> Any:
    """What was typed into a field: a number where the field has one and the text is one; None of nothing."""
    text = text.strip()
    if not text:
        return None
    kind = int if key == GPUS else SCENARIO_FIELDS[key].kind if key in SCENARIO_FIELDS else str
    if kind is str or text == AUTO:
        return text
    try:
        plain = plain_number(text)
    except InputError:
        return text  # in two ways: the scenario says what it expected
    for number in (int, float):
        try:
            found = number(plain)
        except ValueError:
            continue
        return found
    return text  # the scenario says what it expected


def _priced(fields: dict[str, Any], text: str) -> dict[str, Any]:
    """Fields with a price that was typed, of the basis that is chosen."""
    basis = fields.get("price_basis", "cloud")
    others = [f"hardware.price_{one}" for one in PRICED if one != basis]
    for identifier in others:
        fields = _with_figure(fields, identifier, "")
    return _with_figure(fields, f"hardware.price_{basis}", text) if basis in PRICED else fields


def _with_figure(fields: dict[str, Any], identifier: str, text: str) -> dict[str, Any]:
    """Fields with a figure of the library that was typed; without one that was typed before where there is
    none."""
    stated = fields.get("overrides")
    listed = stated if isinstance(stated, list) else []
    value = _value("electricity_price", text)

    def stays(item: Any) -> bool:
        own = isinstance(item, dict) and item.get("id") == identifier
        return not own or (value is None and item.get("reason") != TYPED)

    kept = [item for item in listed if stays(item)]
    if value is not None:
        kept.append({"id": identifier, "value": value, "reason": TYPED})
    fields = {key: one for key, one in fields.items() if key != "overrides"}
    return fields | ({"overrides": kept} if kept else {})
