"""A launch line of a serving engine as the fields of a scenario.

What each flag means stands in profiles/launch/; here is how lines are read, and what follows from several
flags together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.documents import parse_json, parse_yaml, read_text, validate
from mantile.library.errors import InputError
from mantile.library.launch_table import LaunchFlag, LaunchTable
from mantile.library.launch_words import Words, split_line
from mantile.library.model_names import file_kind
from mantile.library.models import checkpoint_of, known_models, load_model
from mantile.library.profiles import load_library
from mantile.library.scenario import Scenario, merge_fields
from mantile.library.scenario_fields import REQUIRED, SCENARIO_FIELDS

MEMORY = "efficiency.memory_usable"
_ALL_LAYERS = 99  # what people write for all of them
_SIXTEEN_BIT = ("bf16", "fp16")
_ADAPTERS = ("lora_adapters", "lora_rank")
_HUMAN = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}


@dataclass(frozen=True)
class Remark:
    """A flag of a line, and what is to be said of it."""

    flag: str
    meaning: str


@dataclass(frozen=True)
class Launch:
    """What a launch line says.

    Args:
        framework: our id of the engine.
        fields: of a scenario, as a file has them.
        not_modelled: flags that change speed or memory, and that no field stands for.
        ignored: flags and variables that say nothing about speed, without their values.
        defaults: flags that the line leaves out, and what the engine then takes.
    """

    framework: str
    fields: Mapping[str, Any]
    not_modelled: tuple[Remark, ...]
    ignored: tuple[str, ...]
    defaults: tuple[Remark, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Fields that a scenario needs, and that nothing states."""
        given = self.fields
        return tuple(
            name
            for name in REQUIRED
            if name not in given and not (name == "concurrency" and given.get("request_rate"))
        )

    def with_fields(self, fields: Mapping[str, Any], defaults: Sequence[Remark] = ()) -> Launch:
        """The same with other fields of the scenario, and more that is left to the engine."""
        return replace(self, fields=fields, defaults=(*self.defaults, *defaults))

    def to_dict(self) -> dict[str, Any]:
        """The same as plain objects: scenario, not_modelled, ignored, missing, defaults."""
        return {
            "scenario": dict(self.fields),
            "not_modelled": [vars(remark) for remark in self.not_modelled],
            "ignored": list(self.ignored),
            "missing": list(self.missing),
            "defaults": [vars(remark) for remark in self.defaults],
        }


def read_launch(line: str, ignore_unknown: bool = False, **fields: Any) -> Launch:
    """Read a launch line of vLLM, SGLang, TensorRT-LLM or llama.cpp.

    Args:
        line: as it is typed, with continued lines, variables before it, or a container.
        ignore_unknown: whether flags that are in no table are passed over.
        fields: of the scenario, in place of what the line says: accelerator, input_tokens, tp, ...

    Raises:
        InputError: naming each flag that is unknown, that cannot be expressed and would make the answer wrong
            by much, or whose value is not what is expected.

    Example:
        launch = mantile.read_launch("vllm serve Qwen/Qwen3-32B -tp 2", accelerator="h100-sxm")
        launch.fields["tp"]     # 2
        launch.missing          # ("input_tokens", "output_tokens", "concurrency")
    """
    reading = _Reading(split_line(line), ignore_unknown, str(fields.pop("model", "")))
    merged = merge_fields(reading.scenario(), fields, "launch line")
    reading.check_lengths(merged)
    unstated = {name: SCENARIO_FIELDS[name].initial or "unstated" for name in REQUIRED if name not in merged}
    validate(Scenario, unstated | merged, "launch line")
    return Launch(
        reading.table.id,
        merged,
        tuple(reading.not_modelled),
        tuple(dict.fromkeys(reading.ignored)),
        tuple(reading.defaults()),
    )


def read_plan(table: LaunchTable, words: Sequence[str], architecture: Architecture) -> dict[str, Any]:
    """The fields of a plan that flags of an engine say of a model.

    Raises:
        InputError: for flags that contradict each other, or say what no field stands for.
    """
    return _Reading(Words(table, tuple(words), {}), False, "", architecture).plan()


@dataclass
class _Given:
    """A flag as a line gives it, and its value."""

    flag: LaunchFlag
    called: str
    value: str

    def wrong(self, expected: str) -> InputError:
        return InputError(f"{self.called} {self.value}: expected {expected}, found {self.value or 'nothing'}")


@dataclass
class _Reading:
    """The state of reading one line."""

    line: Words
    ignore_unknown: bool
    instead: str
    known: Architecture | None = None
    ignored: list[str] = field(default_factory=list)
    not_modelled: list[Remark] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    given: dict[str, _Given] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    called: dict[str, _Given] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read_variables()
        self._read_words(self.line.words)
        for given in list(self.given.values()):
            try:
                self._apply(given)
            except InputError as error:
                self.problems.append(str(error))
        if self.problems:
            raise InputError("\n".join(self.problems))

    @property
    def table(self) -> LaunchTable:
        return self.line.table

    def _read_variables(self) -> None:
        for name in self.line.environment:
            if self.table.flag_variables and name.startswith(self.table.flag_variables):
                self.problems.append(f"{name}: a variable that stands for a flag; expected the flag")
            elif name.startswith((*self.table.variables, "NCCL_")):
                self.not_modelled.append(Remark(name, "a variable of the engine; Mantile reads flags alone."))
            else:
                self.ignored.append(name)

    # --- words ----------------------------------------------------------------------------------------------

    def _read_words(self, words: Sequence[str]) -> None:
        rest = list(words)
        while rest:
            word = rest.pop(0)
            if not word.startswith("-") or word == "--":
                if word != "--":
                    self._positional(word)
                continue
            name, equals, value = word.partition("=")
            flag = self.table.find(name)
            if flag is None and self._switched_off(name):
                self.ignored.append(name)
            elif flag is None:
                self._unknown(name)
                if not equals and rest and not rest[0].startswith("-"):
                    rest.pop(0)
            elif equals and flag.takes == "none" and value.lower() in ("false", "0"):
                self.ignored.append(name)
            elif equals:
                self._give(flag, name, value)
            else:
                self._give(flag, name, self._value(flag, name, rest))

    def _switched_off(self, name: str) -> bool:
        """Whether it is --no-SWITCH of a switch that is off anyway."""
        switch = self.table.find(f"--{name.removeprefix('--no-')}") if name.startswith("--no-") else None
        return switch is not None and switch.takes == "none"

    def _value(self, flag: LaunchFlag, name: str, rest: list[str]) -> str:
        """The value behind a flag, taken off the words that follow."""
        if flag.takes == "none":
            return ""
        here = bool(rest) and (re.match(r"^-?\d", rest[0]) is not None or not rest[0].startswith("-"))
        if flag.takes == "one":
            if not here:
                self.problems.append(
                    f"{name}: expected a value, found {rest[0] if rest else 'the end of the line'}"
                )
                return ""
            return rest.pop(0)
        taken = []
        while here and rest and not rest[0].startswith("-"):
            taken.append(rest.pop(0))
            here = flag.takes == "many"
        return " ".join(taken)

    def _positional(self, word: str) -> None:
        flag = self.table.of_fact("model")
        if flag is None or not self.table.positional or flag.name in self.given:
            self.problems.append(
                f"{word}: expected a flag of {self.table.name}, found a word that belongs to none"
            )
            return
        self._give(flag, flag.name, word)

    def _unknown(self, name: str) -> None:
        if self.ignore_unknown:
            self.ignored.append(name)
        else:
            self.problems.append(self.table.unknown(name))

    def _give(self, flag: LaunchFlag, called: str, value: str) -> None:
        """Note a flag; the last of those given twice holds, as with the engines."""
        if flag.fact == "config":
            self._read_file(called, value)
        elif flag.fact == "setting":
            name, _, setting = value.partition("=")
            self._read_setting(name, setting, called)
        elif flag.fact == "nested":
            self._read_nested(flag, called, value)
        else:
            self.given.pop(flag.name, None)
            self.given[flag.name] = _Given(flag, called, value)

    def _read_nested(self, flag: LaunchFlag, called: str, value: str) -> None:
        """Keys of an object in JSON."""
        try:
            data = parse_json(value, called)
        except InputError as error:
            self.problems.append(str(error))
            return
        if not isinstance(data, dict) or not data:
            self.problems.append(f"{called}: what drafts tokens and how many is not in it")
            return
        for name, inner in _flat(data):
            key = f"{flag.name}.{name}"
            known = self.table.find(key)
            if known is None or known is flag:
                self._unknown(key)
            else:
                self._give(known, key, inner)

    def _read_file(self, called: str, path: str) -> None:
        """Flags of a configuration file; those of the line itself go before them."""
        if not _is_here(path):
            self.not_modelled.append(
                Remark(called, f"{path} is not here: what it sets is not in the scenario; give it as flags.")
            )
            return
        before = dict(self.given)
        for name, value in _flat(parse_yaml(read_text(Path(path)), path)):
            self._read_setting(name, value, path)
        self.given |= before

    def _read_setting(self, name: str, value: str, where: str) -> None:
        flag = self.table.find(name) or self.table.find(f"--{name}")
        if flag is None:
            self._unknown(name)
        elif flag.takes != "none":
            self._give(flag, name, value)
        elif value.lower() != "false":
            self._give(flag, name, "")

    # --- flags ----------------------------------------------------------------------------------------------

    def _apply(self, given: _Given) -> None:
        """What a flag means."""
        flag = given.flag
        if flag.ignored or given.value.lower() in flag.unless:
            self.ignored.append(given.called)
        elif flag.refused:
            raise InputError(f"{given.called}: {flag.refused}")
        elif flag.not_modelled:
            self.not_modelled.append(Remark(given.called, flag.not_modelled))
        else:
            self._set(given)

    def _set(self, given: _Given) -> None:
        """The field or fact that a flag sets."""
        flag = given.flag
        key = flag.field or str(flag.fact)
        value: Any = given.value
        if flag.pair is not None:
            self._require_pair(given)
        if value.lower() in flag.meanings:
            value = flag.meanings[value.lower()]
            if value is None:
                self._set_nothing(given)
                return
        elif flag.values and not _may_be_number(flag):
            raise given.wrong(f"one of {', '.join(flag.values)}")
        elif flag.stands_for is not None or flag.takes == "none":
            value = flag.stands_for or "on"
        else:
            value = self._number(given)
        if flag.field is not None and SCENARIO_FIELDS[flag.field].listed == "settings":
            value = load_library().framework(self.table.id).setting(key, str(value))
        if key in self.facts and self.facts[key] != value:
            other = self.called[key]
            raise given.wrong(f"the same as {other.called} {other.value}, which sets {key} too")
        self.facts[key], self.called[key] = value, given

    def _set_nothing(self, given: _Given) -> None:
        """Note a value with which a flag sets no field."""
        if given.flag.otherwise:
            self.not_modelled.append(Remark(given.called, given.flag.otherwise))
        else:
            self.ignored.append(given.called)

    def _require_pair(self, given: _Given) -> None:
        """The flag that must have the same value, such as K and V of the cache."""
        flag = self.table.by_name[str(given.flag.pair)]
        other = self.given.get(flag.name)
        if other is None and given.flag.meanings.get(given.value.lower(), "") is not None:
            raise InputError(
                f"{given.called} {given.value}: expected {flag.name} {given.value} beside it; K and V of "
                "different data types are not modelled"
            )

    def _number(self, given: _Given) -> Any:
        """The value of a flag as a number within the range of its field, or as the text it is."""
        flag = given.flag
        if flag.fact in ("memory", "static_memory", "free_memory"):
            return self._real(given, 0.05, 1)
        if flag.fact in ("longest", "dense_tp"):
            return self._whole(given, 1, None)
        if flag.field is None or SCENARIO_FIELDS[flag.field].kind is str:
            return given.value
        declared = SCENARIO_FIELDS[flag.field]
        least = declared.least if flag.least is None else flag.least
        if declared.kind is int:
            return self._whole(given, least, declared.most)
        most = None if declared.most is None else declared.most / flag.scale
        return round(self._real(given, least or 0, most) * flag.scale, 6)

    def _whole(self, given: _Given, least: float | None, most: float | None) -> int:
        text = given.value
        number = int(text) if re.fullmatch(r"-?[0-9]{1,15}", text) else None
        if (
            number is None
            and self.table.human_numbers
            and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?[kKmMgG]", text)
        ):
            number = int(float(text[:-1]) * _HUMAN[text[-1]])
        if number is None or (least is not None and number < least) or (most is not None and number > most):
            raise given.wrong(f"a whole number{_range(least, most)}")
        return number

    def _real(self, given: _Given, least: float, most: float | None) -> float:
        try:
            number = float(given.value)
        except ValueError:
            number = float("nan")
        if not (least <= number and (most is None or number <= most)):
            raise given.wrong(f"a number{_range(least, most)}")
        return number

    # --- what follows ---------------------------------------------------------------------------------------

    def scenario(self) -> dict[str, Any]:
        """The fields that follow from all flags.

        Raises:
            InputError: naming flags that contradict each other.
        """
        fields: dict[str, Any] = {"model": self.model[0], "framework": self.table.id}
        fields |= self.plan() | self._formats()
        if "max_requests" in fields and self.called["max_requests"].flag.per_group:
            fields["max_requests"] *= fields.get("attention_dp", 1)
        if "longest" in self.facts and not self.table.of_fact("split_mode"):
            fields["max_model_len"] = self.facts["longest"]
        fields |= self._adapters()
        overrides = list(self._overrides())
        return fields | ({"overrides": overrides} if overrides else {})

    def plan(self) -> dict[str, Any]:
        """Degrees of parallelism, and the fields that flags set by themselves.

        Raises:
            InputError: naming flags that contradict each other.
        """
        degrees = self._split() if self.table.of_fact("split_mode") else self._degrees()
        return degrees | {
            name: value
            for name, value in self.facts.items()
            if name in SCENARIO_FIELDS and name not in ("tp", "pp", "dp", "ep", *_ADAPTERS)
        }

    @cached_property
    def model(self) -> tuple[str, str | None]:
        """The model, ours where it is one we ship, and the data type of the weights if its name says it."""
        repository = None if self.instead else self.facts.get("gguf_repository")
        if repository is not None:
            return _of_repository(str(repository), str(self.facts.get("gguf_file", "")))
        name = self.instead or self.facts.get("model")
        if name is None:
            raise InputError(
                f"launch line: no model; expected one behind {self.table.starts[0][-1]} or --model"
            )
        found = checkpoint_of(str(name))
        return (str(name), None) if found is None else (found.id, found.weights_dtype)

    @cached_property
    def architecture(self) -> Architecture | None:
        """Of the model; None where its config is not to be had."""
        if self.known is not None:
            return self.known
        try:
            return load_model(self.model[0]).architecture
        except InputError:
            return None

    def _degrees(self) -> dict[str, int]:
        """Degrees of parallelism. Groups of attention-DP share the experts; replicas share nothing."""
        ranks, stages, copies = (int(self.facts.get(name, 1)) for name in ("tp", "pp", "dp"))
        groups = 1
        if self.table.tp_counts == "group":
            if copies > 1 and self._has_experts():
                groups, copies = copies, 1
        elif "dp_attention" in self.facts:
            groups, copies = (copies, 1) if self.table.of_field("dp") else (ranks, 1)
            if ranks % groups:
                raise self.called["dp"].wrong(f"a divisor of the {ranks} ranks, {self.called['tp'].called}")
            ranks //= groups
        experts = int(self.facts.get("ep", 1))
        if "all_to_all" in self.facts or ("all_experts" in self.facts and self._has_experts()):
            experts = ranks * groups
        elif "all_experts" in self.facts:
            self.ignored.append(self.called["all_experts"].called)
        plan = {"tp": ranks, "pp": stages, "dp": copies, "attention_dp": groups, "ep": experts}
        return {name: degree for name, degree in plan.items() if degree > 1} | self._ffns(plan)

    def _ffns(self, plan: Mapping[str, int]) -> dict[str, int]:
        """TP of dense FFNs, which the engine takes in models that have experts too.

        Each rank holds them whole, for tokens of its own. Shared experts stay as they are: over all ranks, or
        whole where tokens are sent to experts.
        """
        given, architecture = self.called.get("dense_tp"), self.architecture
        if given is None:
            return {}
        if self.facts["dense_tp"] not in (1, plan["tp"] * plan["attention_dp"]):
            raise given.wrong("1")
        has_both = architecture is None or {"ffn", "moe"} <= {
            part for of in architecture.sequence() for part in of
        }
        if self.facts["dense_tp"] > 1 or not has_both:
            self.ignored.append(given.called)
            return {}
        sent = plan["ep"] == plan["attention_dp"]
        shared = architecture is None or bool(architecture.value("shared_expert_size"))
        if plan["tp"] == 1 and plan["attention_dp"] > 1 and (sent or not shared):
            return {"ffn_tp": 1}
        self.not_modelled.append(
            Remark(
                given.called,
                "each rank holds dense FFNs whole for a share of the tokens; Mantile divides them as usual.",
            )
        )
        return {}

    def _has_experts(self) -> bool:
        """Whether the model has experts; a line that divides them says so."""
        if self.architecture is not None:
            return bool(self.architecture.value("experts"))
        if "all_experts" in self.facts:
            return True
        raise InputError(
            f"{self.called['dp'].called} {self.called['dp'].value}: groups of a model with experts "
            f"share them, those of another are replicas, and {self.model[0]} is not known here; give --model "
            "with its config.json, or an id of `mantile list models`"
        )

    def _split(self) -> dict[str, int]:
        """How several accelerators share a model where they are the parts of a list: stages or TP ranks.

        The stages of a batch follow one another: it is not cut.
        """
        self._require_all_layers()
        shares = str(self.facts["shares"]).split(",") if "shares" in self.facts else ["1"]
        count, mode = len(shares), self.facts.get("split_mode", "layer")
        if len(set(shares)) > 1:
            self.not_modelled.append(
                Remark(self.called["shares"].called, "unequal parts; Mantile divides the layers evenly.")
            )
        if count == 1 or mode == "none":
            return {}
        return {"tp": count} if mode == "tensor" else {"pp": count, "microbatches": 1}

    def _require_all_layers(self) -> None:
        layers = str(self.facts.get("gpu_layers", "auto"))
        if layers in ("auto", "all", "-1"):
            return
        given = self.called["gpu_layers"]
        if not re.fullmatch(r"[0-9]{1,9}", layers):
            raise given.wrong("a whole number, auto or all")
        whole = len(self.architecture.sequence()) if self.architecture is not None else _ALL_LAYERS
        if int(layers) < whole:
            raise given.wrong(
                f"at least all {whole} layers: those that the CPU computes are not modelled"
                if self.architecture is not None
                else f"all layers, such as {_ALL_LAYERS}: those that the CPU computes are not modelled"
            )

    def _formats(self) -> dict[str, str]:
        """Data types of the weights: those of the checkpoint, unless 16 bit are loaded as something else."""
        if self.model[1] is not None:
            return {"weights_dtype": self.model[1]}
        loaded = self.facts.get("quantization") or self.facts.get("sixteen_bit")
        if loaded is None:
            return {}
        stored = self.architecture and self.architecture.choices["weights_dtype"].value
        if stored is None:
            return {"weights_dtype": loaded} if loaded not in _SIXTEEN_BIT else {}
        if stored not in _SIXTEEN_BIT or stored == loaded:
            return {}
        return {"weights_dtype": loaded}

    def _adapters(self) -> dict[str, Any]:
        """Adapters of LoRA, where the line switches them on."""
        stated = {name: self.facts[name] for name in _ADAPTERS if name in self.facts}
        if "adapters" in self.facts:
            return {"lora_adapters": int(self.facts["adapters"])} | stated
        self.ignored += [self.called[name].called for name in stated]
        return {}

    def _overrides(self) -> Iterator[dict[str, Any]]:
        """Figures of the memory that the engine takes."""
        for fact in ("memory", "static_memory", "free_memory"):
            if fact in self.facts:
                given = self.called[fact]
                yield {
                    "id": MEMORY,
                    "value": self.facts[fact],
                    "reason": f"{given.flag.name} {self.facts[fact]:g}",
                }

    def check_lengths(self, fields: Mapping[str, Any]) -> None:
        """Refuse requests that are longer than the server takes."""
        asked = (fields.get("input_tokens"), fields.get("output_tokens"))
        if "longest" not in self.facts or None in asked:
            return
        tokens = sum(int(part) for part in asked if part is not None)
        if tokens > self.facts["longest"]:
            given = self.called["longest"]
            raise InputError(
                f"{given.called} {given.value}: the server refuses requests of {tokens:,} tokens; expected "
                f"input_tokens and output_tokens of {self.facts['longest']:,} together at most"
            )

    def defaults(self) -> Iterator[Remark]:
        """What the engine takes for flags that the line leaves out."""
        for default in self.table.defaults:
            flag = self.table.find(default.flag)
            if flag is not None and flag.name not in self.given:
                yield Remark(default.flag, f"not given: the engine takes {default.value}; {default.note}.")


def _is_here(path: str) -> bool:
    """Whether there is a file or folder of that name."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # too long for a name, and so on
        return False


def _may_be_number(flag: LaunchFlag) -> bool:
    """Whether a value that is not among the named ones may be a number."""
    if flag.field is not None:
        return SCENARIO_FIELDS[flag.field].kind is not str
    return flag.fact == "longest"


def _range(least: float | None, most: float | None) -> str:
    words = "" if least is None else f" from {least:,}"
    return words if most is None else f"{words} to {most:,.10g}"


def _flat(data: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """The settings of a file by their path, values as a line would have them."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            yield from _flat(value, f"{above}.{name}" if above else str(name))
    elif data is not None:
        yield above, str(data).lower() if isinstance(data, bool) else str(data)


def _of_repository(repository: str, file: str) -> tuple[str, str | None]:
    """The model of a repository of GGUF files, and the data type of the file that is named.

    Raises:
        InputError: if none of ours has that name, or the kind of file is not known.
    """
    bare, _, kind = repository.partition(":")
    title = re.sub(r"-GGUF$", "", bare, flags=re.IGNORECASE)
    said = kind or file_kind(re.sub(r"\.gguf$", "", file) or title)
    try:
        model = known_models().find(f"{bare}:{said}" if said else title.rpartition("/")[2])
    except InputError as error:
        raise InputError(f"-hf {repository}: {error}; or give --model") from error
    assert model is not None, "a name without an organisation is known or refused"
    return model.id, model.weights_dtype
