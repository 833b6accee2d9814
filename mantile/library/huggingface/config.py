"""Fields of a config.json as facts, each with its origin.

A missing key is not null, and no value is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from mantile.library.architecture import Choice, Fact
from mantile.library.errors import InputError

REQUIRED: Any = object()
MAX_LAYERS = 10_000
LARGEST = 100_000_000  # of any dimension: more is a typing error, and would not fit a cell's limits
Facts = dict[str, Fact]
_MISSPELT = 0.9  # how alike a field must be to be named; q_lora_rank and kv_lora_rank are not


class Uncovered(InputError):
    """A field turns on what our reader of the model type does not cover; its class may be read instead."""


@dataclass(frozen=True)
class Config:
    """A config.json, or one section of it, with what errors and sources need to name its fields.

    Args:
        name: of the file.
        model_type: of this section; `outer_type` is that of the whole file where this is a section of it.
        data: the fields.
        path: what stands before a field's name in errors and sources: "text_config." or nothing.
        sidecar: content of the hf_quant_config.json that lies beside the file, if there is one.
        parent: what this section is a section of.
        defaults: values of the model class, for fields that a nested section may leave out.
        decided: switches of this section that the file around it decides, whatever the section says.
    """

    name: str
    model_type: str
    data: Mapping[str, Any]
    path: str = ""
    outer_type: str = ""
    sidecar: Mapping[str, Any] | None = None
    parent: Config | None = None
    defaults: Mapping[str, int] = field(default_factory=dict)
    decided: Mapping[str, Fact] = field(default_factory=dict)

    def invalid(self, field: str, expected: str) -> InputError:
        """The error about a field: what was expected there, and what the file says."""
        if field not in self.data:
            alike = get_close_matches(field, [str(key) for key in self.data], n=1, cutoff=_MISSPELT)
            hint = f" (there is {alike[0]})" if alike else ""
            return InputError(
                f"{self.name}: field {self.path}{field} is missing{hint}; "
                f"model_type {self.model_type!r} needs {expected}"
            )
        return InputError(
            f"{self.name}: field {self.path}{field}: expected {expected}, found {self.data[field]!r:.60}"
        )

    def uncovered(self, field: str, expected: str) -> Uncovered:
        """The error that our reader does not cover what a field turns on."""
        return Uncovered(str(self.invalid(field, expected)))

    def section(self, field: str, default_type: str = "") -> Config:
        """A nested mapping of fields; `default_type` is its model_type if it states none.

        Raises:
            InputError: if it is missing or no mapping, or if nothing says what its model_type is.
        """
        data = self.data.get(field)
        if not isinstance(data, dict):
            raise self.invalid(field, "a mapping of fields")
        model_type = data.get("model_type") or default_type
        if not isinstance(model_type, str) or not model_type:
            raise InputError(f"{self.name}: field {self.path}{field}.model_type is missing or not a text")
        return replace(
            self,
            model_type=model_type,
            data=data,
            path=f"{self.path}{field}.",
            outer_type=self.outer_type or self.model_type,
            parent=self,
        )

    def has(self, field: str) -> bool:
        """Whether a field is there and not null."""
        return self.data.get(field) is not None

    def implied(self, value: int, why: str) -> Fact:
        """What the model class does and no field says."""
        return Fact(value=value, origin="default", source=f"{self.model_type} class: {why}")

    def derived(self, value: int, how: str) -> Fact:
        """What follows from other fields."""
        return Fact(value=value, origin="derived", source=how)

    def integer(self, *fields: str, default: Any = REQUIRED, least: int = 1, most: int = LARGEST) -> Fact:
        """A whole number, by the first of several spellings of the field that is there.

        Args:
            default: of the model class, where the field is missing. Null is not missing.
            least, most: the range that is accepted.

        Raises:
            InputError: if it is missing without a default, or no whole number of that range.
        """
        field = next((field for field in fields if field in self.data), fields[0])
        default = next((self.defaults[field] for field in fields if field in self.defaults), default)
        if field not in self.data and default is not REQUIRED:
            return self._class_default(field, default)
        value = self.data.get(field)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.invalid(field, f"a whole number from {least} to {most}")
        return Fact(value=value, origin="config", source=f"{self.path}{field}")

    def optional(self, *fields: str, why: str, value: int = 0) -> Fact:
        """A whole number, or `value` where it is missing or null; `why` says what that means."""
        field = next((field for field in fields if self.has(field)), None)
        if field is not None:
            return self.integer(field, least=0)
        is_null = any(field in self.data for field in fields)
        return Fact(
            value=value,
            origin="config" if is_null else "default",
            source=f"{self.path}{fields[0]} {'null' if is_null else 'absent'}: {why}",
        )

    def flag(self, *fields: str, default: bool) -> Fact:
        """A switch as 0 or 1; null counts as missing."""
        outside = next((self.decided[name] for name in fields if name in self.decided), None)
        if outside is not None:
            return outside
        field = next((field for field in fields if self.has(field)), fields[0])
        if not self.has(field):
            return self._class_default(field, int(default))
        if not isinstance(self.data[field], bool):
            raise self.invalid(field, "true or false")
        return Fact(value=int(self.data[field]), origin="config", source=f"{self.path}{field}")

    def text(self, *fields: str, default: str, among: Sequence[str] = ()) -> Choice:
        """A text; missing or null stands for the class default."""
        field = next((field for field in fields if self.has(field)), fields[0])
        value = self.data.get(field)
        if value is None:
            return Choice(value=default, origin="default", source=self._default_source(field))
        if not isinstance(value, str) or (among and value not in among):
            raise self.invalid(field, f"one of {', '.join(among)}" if among else "a text")
        return Choice(value=value, origin="config", source=f"{self.path}{field}")

    def texts(self, field: str, count: int | None = None, among: Sequence[str] = ()) -> list[str] | None:
        """A list of texts, of `count` where given, usually one per layer; None if missing or null."""
        value = self.data.get(field)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or not all(isinstance(item, str) and (not among or item in among) for item in value)
            or (count is not None and len(value) != count)
        ):
            expected = f"a list of {'texts' if count is None else f'{count} texts'}"
            raise self.invalid(field, expected + (f", each one of {', '.join(among)}" if among else ""))
        return value

    def integers(self, field: str, count: int | None = None) -> list[int] | None:
        """A list of whole numbers, of `count` where given; None if missing or null."""
        value = self.data.get(field)
        if value is None:
            return None
        if (
            not isinstance(value, list)
            or not all(isinstance(item, int) and not isinstance(item, bool) for item in value)
            or (count is not None and len(value) != count)
        ):
            raise self.invalid(field, f"a list of {'' if count is None else f'{count} '}whole numbers")
        return value

    def head_dim(
        self, hidden: Fact, heads: Fact, class_default: int | None = None, field: str = "head_dim"
    ) -> Fact:
        """Width of a head; where neither the file nor the class states it, hidden size ÷ heads."""
        if self.has(field):
            return self.integer(field)
        class_default = self.defaults.get(field, class_default)
        if class_default is not None and field not in self.data:
            return self._class_default(field, class_default)
        if hidden.value % heads.value:
            raise InputError(
                f"{self.name}: {hidden.source} {hidden.value} is not a multiple of "
                f"{heads.source} {heads.value} and {self.path}{field} is not given"
            )
        return self.derived(hidden.value // heads.value, f"{hidden.source} ÷ {heads.source}")

    def kv_heads(
        self, heads: Fact, class_default: int | None = None, field: str = "num_key_value_heads"
    ) -> Fact:
        """KV heads; null, or missing where the class has no default, means as many as query heads."""
        if self.has(field):
            return self.integer(field)
        class_default = self.defaults.get(field, class_default)
        if class_default is not None and field not in self.data:
            return self._class_default(field, class_default)
        return self.derived(heads.value, f"{self.path}{field} absent: as many as attention heads")

    def layers(self, *fields: str, default: Any = REQUIRED) -> Fact:
        """How many layers there are."""
        return self.integer(*(fields or ("num_hidden_layers",)), default=default, most=MAX_LAYERS)

    def _default_source(self, field: str) -> str:
        return f"{self.model_type} class default of {self.path}{field}"

    def _class_default(self, field: str, value: int) -> Fact:
        return Fact(value=value, origin="default", source=self._default_source(field))
