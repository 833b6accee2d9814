"""Wrong config.json files of every family.

Refused with file and field, or read with the origin of every figure, and nothing else.
"""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import CONFIGS

from mantile.ir.build import build_ir
from mantile.ir.counts import kv_bytes_per_token, parameters, prefill_flops, tensor_list
from mantile.ir.modules import ModelGraph
from mantile.library.architecture import Architecture, Choice, Fact, Model
from mantile.library.documents import parse_json
from mantile.library.errors import InputError
from mantile.library.facts import FACTS, VISION_FACTS
from mantile.library.huggingface import SIDECAR, parse_config, read_config

Path_ = tuple[str, ...]
NAME = "folder/config.json"


def paths(config: dict[str, Any], above: Path_ = ()) -> Iterator[Path_]:
    """Every field of a config, nested ones included."""
    for field, value in config.items():
        yield (*above, field)
        if isinstance(value, dict):
            yield from paths(value, (*above, field))


def changed(config: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """A copy with one field set, or left out for `...`.

    Where what it was part of is gone, nothing changes.
    """
    made = copy.deepcopy(config)
    part: Any = made
    for field in path[:-1]:
        part = part.get(field) if isinstance(part, dict) else None
    if isinstance(part, dict):
        if value is ...:
            part.pop(path[-1], None)
        else:
            part[path[-1]] = value
    return made


def given_at(config: dict[str, Any], dotted: str) -> Any:
    """What a file states under a dotted name, `...` if nothing."""
    part: Any = config
    for field in dotted.split("."):
        if not isinstance(part, dict) or field not in part:
            return ...
        part = part[field]
    return part


def told(architecture: Architecture) -> dict[str, Fact | Choice]:
    """Every figure and word with its provenance."""
    tower = (
        {}
        if architecture.vision is None
        else {f"vision.{name}": fact for name, fact in architecture.vision.facts.items()}
    )
    return {**architecture.facts, **architecture.choices, **tower}


FIELDS = {".".join(path) for config in CONFIGS.values() for path in paths(config)}
LEAVES = {path.rpartition(".")[2] for path in FIELDS} | {
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
}
KNOWN = LEAVES | set(FACTS) | set(VISION_FACTS) | {"model_type"}
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


def buffers(ir: ModelGraph) -> int:
    """Values stored that are no parameters."""
    held = [*ir.tensors(), *(ir.vision.tensors if ir.vision else ())]
    names = {tensor.name for tensor in held if tensor.buffer}
    return sum(
        math.prod(entry["shape"]) * entry["count"] for entry in tensor_list(ir) if entry["name"] in names
    )


def check(config: dict[str, Any]) -> Architecture | None:
    """The property: an architecture that can be counted, or an InputError.

    Every figure of the architecture says truly where it comes from.
    """
    try:
        found = parse_config(parse_json(json.dumps(config), NAME), NAME)
    except InputError as error:
        message = str(error)
        assert all(line.startswith(NAME) for line in message.splitlines()), message
        assert any(word.rpartition(".")[2] in KNOWN for word in WORD.findall(message.replace(NAME, ""))), (
            message
        )
        assert len(message) < 3000
        return None
    for name, fact in told(found).items():
        words = [word.rstrip(".") for word in WORD.findall(fact.source)]
        stated = [value for value in (given_at(config, word) for word in words) if value is not ...]
        assert fact.source.strip(), name
        if fact.origin == "config":
            assert stated, f"{name} is said to be in the file: {fact}"
            value = given_at(config, fact.source)
            assert isinstance(fact, Choice) or not isinstance(value, int) or fact.value == value, (
                f"{name}: {fact}"
            )
        if fact.origin == "default":
            assert re.search(r"\bclass\b|\babsent\b|\bassumed\b|\bnull\b| is false\b", fact.source), (
                f"{name} of no class: {fact}"
            )
        if fact.origin == "derived":
            assert {word.rpartition(".")[2] for word in words} & LEAVES, f"{name} from no field: {fact}"
    ir = build_ir(Model(id="fuzzed", name="fuzzed", source="test", architecture=found))
    size, kv, flops = parameters(ir), kv_bytes_per_token(ir), prefill_flops(ir, 7)
    assert size["total"] >= size["active"] > 0
    assert size["total"] == sum(
        math.prod(entry["shape"]) * entry["count"] for entry in tensor_list(ir)
    ) - buffers(ir)
    assert kv["all_layers"] >= kv["beyond_window"] >= 0
    assert flops["linear"] > 0
    return found


# --- one field ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONFIGS)
def test_a_small_config_is_read(name: str) -> None:
    """What the other tests start from; most of its figures are stated in the file."""
    found = check(CONFIGS[name])
    assert found is not None
    origins = [fact.origin for fact in found.facts.values()]
    assert origins.count("config") >= 5


READERS = (
    *("llama", "gemma3", "gemma4", "qwen2_moe", "qwen3_next", "qwen3_vl_moe", "deepseek_v3", "deepseek_v4"),
    *("glm_moe_dsa", "gpt2", "falcon", "mamba2", "nemotron_h", "jamba", "kimi_linear", "llama4", "step3p5"),
)
"""Families of which each has a reader of its own, or most fields."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", READERS)
def test_a_field_left_out_is_never_filled_in_silently(name: str) -> None:
    """Nor one that is null.

    A figure it stated is refused, or says that it is the class's or what it follows from.
    """
    config = CONFIGS[name]
    before = told(parse_config(config, NAME))
    for path in paths(config):
        dotted = ".".join(path)
        for value in (..., None):
            found = check(changed(config, path, value))
            for key, fact in told(found).items() if found is not None else ():
                if before.get(key) != fact and key in before and dotted in WORD.findall(before[key].source):
                    others = [
                        word
                        for word in WORD.findall(fact.source)
                        if word != dotted and given_at(config, word) is not ...
                    ]
                    assert fact.origin in ("default", "derived") or others or "null" in fact.source, (
                        dotted,
                        key,
                        fact,
                    )
                assert fact.origin != "config" or fact.source != dotted, (dotted, key, fact)
                if (
                    value is None
                    and key in before
                    and before[key].source == dotted
                    and type(given_at(config, dotted)) is int
                ):
                    assert fact.origin != "default", ("null is not missing", dotted, key, fact)


WRONG_NUMBERS = (
    "12",
    "",
    -3,
    2.5,
    48.0,
    math.nan,
    math.inf,
    [1],
    [],
    {"a": 1},
    True,
    10**30,
    10**400,
    [[[[]]]],
)
WRONG_FLAGS = ("true", "", 2, 0.5, math.nan, [True], {})


@pytest.mark.parametrize("name", CONFIGS)
def test_a_figure_that_is_no_whole_number_is_refused_by_field(name: str) -> None:
    """Every figure the file states.

    No text, fraction, NaN, list or slip of the keyboard passes for a number or a switch.
    """
    config = CONFIGS[name]
    tried = 0
    for fact in told(parse_config(config, NAME)).values():
        value = given_at(config, fact.source)
        if fact.origin != "config" or not isinstance(value, int):
            continue
        for wrong in WRONG_FLAGS if isinstance(value, bool) else WRONG_NUMBERS:
            text = json.dumps(changed(config, tuple(fact.source.split(".")), wrong))
            with pytest.raises(InputError) as caught:
                parse_config(parse_json(text, NAME), NAME)
            message = str(caught.value)
            assert message.startswith(f"{NAME}: field {fact.source}: expected "), message
            assert len(message) < 500
            tried += 1
    assert tried >= 50


# --- several fields, anything -------------------------------------------------------------------------------

NUMBERS = st.integers(-2, 20) | st.sampled_from([2**31, 2**63, 10**30, 10_000, 10_001, 100_000_000, 16_384])
ANYTHING = st.recursive(
    st.just(...)
    | st.none()
    | st.booleans()
    | NUMBERS
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        [
            "full_attention",
            "sliding_attention",
            "linear_attention",
            "moe",
            "dense",
            "sparse",
            "M*E-",
            "auto",
            "bfloat16",
        ]
    ),
    lambda inner: (
        st.lists(inner.filter(lambda item: item is not ...), max_size=6)
        | st.dictionaries(
            st.text(max_size=6) | st.sampled_from(sorted(LEAVES)),
            inner.filter(lambda item: item is not ...),
            max_size=3,
        )
    ),
    max_leaves=8,
)


def another(data: st.DataObject, value: Any) -> Any:
    """Something else for a field: of its kind, or anything."""
    match data.draw(st.integers(0, 3)), value:
        case 0, list():
            return data.draw(st.permutations(value))
        case 1, list():
            return [*value, *value][: data.draw(st.integers(0, 2 * len(value)))]
        case 2, list():
            return [data.draw(ANYTHING.filter(lambda item: item is not ...)), *value[1:]]
        case 0 | 1, str():
            return "".join(data.draw(st.lists(st.sampled_from(value), max_size=8))) if value else value
        case 0 | 1, _:
            return data.draw(NUMBERS)
    return data.draw(ANYTHING)


@settings(max_examples=150)
@given(data=st.data())
def test_any_config_is_read_with_its_origins_or_refused_by_field(data: st.DataObject) -> None:
    """A config with one to four fields changed to anything: of the right kind, of the wrong one, or gone."""
    config = CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))]
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(paths(config))))
        if path[-1] == "model_type":
            config = changed(
                config,
                path,
                data.draw(
                    st.sampled_from([..., None, 7, [], "", "llama", "qwen3", "deepseek_v3", "quantum_llama"])
                ),
            )
        else:
            config = changed(config, path, another(data, given_at(config, ".".join(path))))
    check(config)


@pytest.mark.exhaustive
@settings(max_examples=60)
@given(data=st.data())
def test_fields_of_another_family_change_nothing_silently(data: st.DataObject) -> None:
    """A file with fields that its family does not know, or knows under another name."""
    config = dict(CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))])
    other = CONFIGS[data.draw(st.sampled_from(sorted(CONFIGS)))]
    taken = data.draw(st.lists(st.sampled_from(sorted(other)), min_size=1, max_size=6))
    check({field: other[field] for field in taken} | config)
    check(config | {field: other[field] for field in taken if field != "model_type"})


@settings(max_examples=40)
@given(kinds=st.lists(st.sampled_from(["M", "*", "E", "-"]), min_size=1, max_size=60))
def test_any_order_of_layers_is_counted(kinds: list[str]) -> None:
    """Each kind as often as the pattern has it, in the order of the pattern."""
    found = check(
        CONFIGS["nemotron_h"] | {"hybrid_override_pattern": "".join(kinds), "num_hidden_layers": len(kinds)}
    )
    assert found is not None
    names = {"M": "mamba", "*": "attention", "E": "moe", "-": "ffn"}
    assert found.sequence() == [(names[kind],) for kind in kinds]


# --- files --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a good config.json."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIGS["llama"]), encoding="utf-8")
    assert read_config(tmp_path) == parse_config(CONFIGS["llama"], "config.json")
    return tmp_path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: not valid JSON"),
        (b"{", "line 1, column 2: not valid JSON"),
        (b"[]", "expected a JSON object, found list"),
        (b"null", "expected a JSON object, found NoneType"),
        (b"NaN", "expected a JSON object, found float"),
        (b'"llama"', "expected a JSON object, found str"),
        (b"{}", "field model_type is missing"),
        (b'{"model_type": null}', "field model_type is missing or not a text"),
        (b'{"model_type": ["llama"]}', "field model_type"),
        (
            b'{"model_type": "llama", "hidden_size": 1, "hidden_size": 2}',
            "the key 'hidden_size' is given twice",
        ),
        (b'{"model_type": "llama", "text_config": {"a": 1, "a": 2}}', "the key 'a' is given twice"),
        (b'{"model_type": "llama",}', "not valid JSON"),
        (b"{'model_type': 'llama'}", "not valid JSON"),
        (b'{"model_type": "llama", "hidden_size": ' + b"9" * 5000 + b"}", "config.json"),
        (b'{"model_type": "llama", "hidden_size": 1e999}', "field hidden_size: expected a whole number"),
        (b'{"model_type": "llama", "a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}", "nested too deeply"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deeply"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 text"),
        (b"\x00" * 100, "not valid JSON"),
        (b"\xef\xbb\xbf{}", "config.json"),
        (b"PK\x03\x04" + bytes(range(128)), "config.json"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_a_file_that_is_no_config_is_told_by_place(folder: Path, content: bytes, message: str) -> None:
    """Not JSON, JSON of another kind, keys given twice, nesting to crash a parser, impossible numbers."""
    (folder / "config.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_config(folder)
    assert str(caught.value).startswith(str(folder / "config.json"))
    assert message in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_a_file_of_a_hundred_megabytes_is_not_read(folder: Path) -> None:
    """Refused by its size alone; the file is a hole, so nothing is written either."""
    with (folder / "config.json").open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(InputError, match=r"config\.json: 104,857,600 bytes; expected at most 16,777,216"):
        read_config(folder)
    with (folder / SIDECAR).open("wb") as file:
        file.truncate(100 * 2**20)
    (folder / "config.json").write_text(json.dumps(CONFIGS["llama"]), encoding="utf-8")
    with pytest.raises(InputError, match=r"hf_quant_config\.json: 104,857,600 bytes"):
        read_config(folder)


@settings(max_examples=60)
@given(
    place=st.integers(0, 10_000),
    length=st.integers(0, 3),
    put=st.text(st.sampled_from('{}[]":,0123456789eE+-.ntf \\u\x00é'), max_size=4),
)
def test_a_slip_in_a_file_is_an_error_or_another_config(place: int, length: int, put: str) -> None:
    """Some characters replaced, inserted or lost."""
    text = json.dumps(CONFIGS["qwen3_next"])
    place %= len(text)
    try:
        data = parse_json(text[:place] + put + text[place + length :], NAME)
    except InputError as error:
        assert str(error).startswith(NAME)
        return
    if (
        isinstance(data, dict)
        and isinstance(data.get("model_type"), str)
        and data["model_type"] in ("qwen3_next", "qwen3")
    ):
        check(data)
        return
    with pytest.raises(InputError, match=r"^folder/config\.json: "):
        parse_config(data, NAME)


# --- the file beside it -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "hf_quant_config.json, line 1, column 1: not valid JSON"),
        ("[]", "expected a JSON object, found list"),
        ("1", "expected a JSON object, found int"),
        ('{"quantization": []}', "quantization"),
        ('{"quantization": "FP8"}', "quantization"),
        ('{"quantization": {"quant_algo": "FP9"}}', "quant_algo"),
        ('{"quantization": {"quant_algo": ["FP8"]}}', "quant_algo"),
        ('{"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": 8}}', "kv_cache_quant_algo"),
        ('{"quantization": {"quant_algo": "FP8", "exclude_modules": "lm_head"}}', "exclude_modules"),
        ('{"quantization": {"quant_algo": "FP8", "exclude_modules": [1]}}', "exclude_modules"),
        ('{"quantization": {"quant_algo": "FP8", "quant_algo": "NVFP4"}}', "given twice"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_wrong_sidecar_is_refused_by_name(folder: Path, content: str, message: str) -> None:
    """Never passed over: the weights would count as 16 bit."""
    (folder / SIDECAR).write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_config(folder)
    assert SIDECAR in str(caught.value)
    assert message in str(caught.value)


@settings(max_examples=60)
@given(
    sidecar=st.fixed_dictionaries(
        {
            "quantization": st.fixed_dictionaries(
                {},
                optional={
                    "quant_algo": st.sampled_from(
                        ["FP8", "NVFP4", "W4A16_AWQ", "MIXED_PRECISION", "fp8", "", None]
                    )
                    | ANYTHING,
                    "kv_cache_quant_algo": st.sampled_from(["FP8", None]) | ANYTHING,
                    "group_size": st.sampled_from([16, 128]) | ANYTHING,
                    "exclude_modules": st.lists(st.text(max_size=8), max_size=4) | ANYTHING,
                    "quantized_layers": ANYTHING,
                },
            )
        }
    )
)
def test_any_sidecar_is_read_or_refused(sidecar: dict[str, Any]) -> None:
    """An answer with the file as its source, or an InputError that names it."""
    sidecar = {
        "quantization": {field: value for field, value in sidecar["quantization"].items() if value is not ...}
    }
    try:
        found = parse_config(CONFIGS["mixtral"], NAME, sidecar).choices["weights_dtype"]
    except InputError as error:
        assert str(error).startswith(NAME)
        assert "quant" in str(error)
        return
    assert found.source.startswith(SIDECAR) or found.value == "bf16"
