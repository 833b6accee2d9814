"""GGUF files: the header is read, and the model is as exact as its tensors."""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import pytest

from mantile.estimates.estimate import Estimate
from mantile.ir.build import build_ir
from mantile.ir.counts import parameters
from mantile.library.errors import InputError
from mantile.library.gguf_header import read_gguf
from mantile.library.huggingface import read_config
from mantile.library.huggingface.gguf import TYPES
from mantile.library.huggingface.unread import why_unread
from mantile.library.models import load_model
from mantile.library.profiles import load_library
from mantile.workbook.layout import lay_out

Make = Callable[..., Estimate]
Tensors = list[tuple[str, tuple[int, ...], str]]
NUMBERS = {"f32": 0, "f16": 1, "q4_0": 2, "q8_0": 8, "q4_k": 12, "q6_k": 14, "q8_k": 15, "mxfp4": 39}
NUMBERS |= {"iq2_xxs": 16, "iq2_xs": 17, "iq3_xxs": 18, "iq1_s": 19, "iq3_s": 21, "iq2_s": 22, "iq1_m": 29}
BITS = {"f32": 16, "f16": 16, "q4_0": 4.5, "q8_0": 8.5, "q4_k": 4.5, "q6_k": 6.5625, "mxfp4": 4.25}
BLOCKS = {"iq1_s": 50, "iq1_m": 56, "iq2_xxs": 66, "iq2_xs": 74, "iq2_s": 82, "iq3_xxs": 98, "iq3_s": 110}
BITS |= {kind: size * 8 / 256 for kind, size in BLOCKS.items()}  # blocks of 256 values, in bytes
HIDDEN, KV, INNER, WORDS, LAYERS = 512, 128, 1024, 4096, 4
FIELDS: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 8192,
    "llama.embedding_length": HIDDEN,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": 8,
    "llama.attention.head_count_kv": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "tokenizer.ggml.tokens": ["a", "b", "c"],
    "tokenizer.ggml.scores": [0.5, 0.25],
}


def tensors(tied: bool = False) -> Tensors:
    """Those of a Q4_K_M file: values and the last matrix of the FFN in Q6_K in every other layer."""
    found: Tensors = [
        ("token_embd.weight", (HIDDEN, WORDS), "q4_k"),
        ("output_norm.weight", (HIDDEN,), "f32"),
    ]
    if not tied:
        found.append(("output.weight", (HIDDEN, WORDS), "q6_k"))
    for layer in range(LAYERS):
        more = "q6_k" if layer % 2 else "q4_k"
        matrices = {
            "attn_q": (HIDDEN, HIDDEN, "q4_k"),
            "attn_k": (HIDDEN, KV, "q4_k"),
            "attn_v": (HIDDEN, KV, more),
            "attn_output": (HIDDEN, HIDDEN, "q4_k"),
            "ffn_gate": (HIDDEN, INNER, "q4_k"),
            "ffn_up": (HIDDEN, INNER, "q4_k"),
            "ffn_down": (INNER, HIDDEN, more),
        }
        found += [(f"blk.{layer}.{name}.weight", (i, o), kind) for name, (i, o, kind) in matrices.items()]
        found += [(f"blk.{layer}.{name}.weight", (HIDDEN,), "f32") for name in ("attn_norm", "ffn_norm")]
    return found


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(value: Any) -> bytes:
    """A value of a field with its kind."""
    match value:
        case str():
            return struct.pack("<I", 8) + text(value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case _:
            kind = entry(value[0])[:4]
            items = b"".join(entry(item)[4:] for item in value)
            return struct.pack("<I", 9) + kind + struct.pack("<Q", len(value)) + items


def write(path: Path, fields: dict[str, Any], listed: Tensors, version: int = 3) -> Path:
    """A GGUF file of nothing but a header."""
    parts = [b"GGUF", struct.pack("<IQQ", version, len(listed), len(fields))]
    parts += [text(key) + entry(value) for key, value in fields.items()]
    for name, shape, kind in listed:
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        parts.append(text(name) + sizes + struct.pack("<IQ", NUMBERS[kind], 0))
    path.write_bytes(b"".join(parts))
    return path


def held(made: Estimate) -> float:
    """Bytes of all weights, on the accelerator and on the host, where llama.cpp reads the embedding."""
    values, on_host = made.values(), made.figure("memory.host_embedding")
    tied = made.equations.ir.facts["tied_embeddings"].value
    return float(
        values[made.equations.prefill_workers.rows["memory.weights"]] + (0 if tied else values[on_host])
    )


@pytest.mark.parametrize("tied", [False, True])
def test_parameters_and_bytes_are_those_of_the_file(make: Make, tmp_path: Path, tied: bool) -> None:
    """Tensor by tensor, with layers of two kinds; norms are counted in 16 bit."""
    listed = tensors(tied)
    file = write(tmp_path / "small-q4_k_m.gguf", FIELDS, listed)
    made = make(model=str(file), accelerator="rtx-4090", framework="llama.cpp", tp=1)
    assert made.results()["weights_dtype"] == "q4_k"
    assert made.model.name == "small-q4_k_m"
    assert made.model.architecture.facts["hidden_size"].source == "llama.embedding_length"
    assert made.model.architecture.choices["weights_dtype"].source.startswith("types of tensors: q4_k, q6_k")
    assert parameters(made.equations.ir)["total"] == sum(prod(shape) for _, shape, _ in listed)
    size = sum(prod(shape) * BITS[kind] / 8 for _, shape, kind in listed)
    assert held(made) == size
    assert len(made.model.architecture.groups()) == 2
    assert made.results()["head_dtype"] == ("q4_k" if tied else "q6_k")


@pytest.mark.parametrize("framework", ["llama.cpp", "vllm"])
@pytest.mark.parametrize(("kind", "dtype"), [("f16", "fp16"), ("q8_0", "q8_0"), ("q4_0", "q4_0")])
def test_a_file_is_taken_as_it_is(make: Make, tmp_path: Path, framework: str, kind: str, dtype: str) -> None:
    """Not quantised again where a framework has files of its own, unless other weights are asked for."""
    listed = [(name, shape, kind if len(shape) == 2 else "f32") for name, shape, _ in tensors()]
    asked = {"model": str(write(tmp_path / "m.gguf", FIELDS, listed)), "accelerator": "rtx-4090", "tp": 1}
    results = make(**asked, framework=framework).results()
    assert {results[name] for name in ("weights_dtype", "head_dtype", "embedding_dtype")} == {dtype}
    results = make(**asked, framework=framework, weights_dtype="q5_k").results()
    assert [results[name] for name in ("weights_dtype", "head_dtype")] == ["q5_k", "q6_k"]


def test_biases_of_the_class_and_experts_are_read(make: Make, tmp_path: Path) -> None:
    """Qwen2 has biases of queries, keys and values; experts lie together in one tensor."""
    listed = tensors()
    for layer in range(LAYERS):
        widths = {"q": HIDDEN, "k": KV, "v": KV}
        listed += [(f"blk.{layer}.attn_{name}.bias", (width,), "f32") for name, width in widths.items()]
    fields = {key.replace("llama.", "qwen2."): value for key, value in FIELDS.items()}
    fields["general.architecture"] = "qwen2"
    model = load_model(str(write(tmp_path / "m.gguf", fields, listed)))
    assert parameters(build_ir(model))["total"] == sum(prod(shape) for _, shape, _ in listed)
    experts, sizes = 4, {"gate": (HIDDEN, INNER), "up": (HIDDEN, INNER), "down": (INNER, HIDDEN)}
    listed = [item for item in tensors() if "ffn_" not in item[0] or "norm" in item[0]]
    for layer in range(LAYERS):
        listed.append((f"blk.{layer}.ffn_gate_inp.weight", (HIDDEN, experts), "f32"))
        listed += [
            (f"blk.{layer}.ffn_{name}_exps.weight", (*size, experts), "q4_k") for name, size in sizes.items()
        ]
    fields = FIELDS | {"llama.expert_count": experts, "llama.expert_used_count": 2}
    model = load_model(str(write(tmp_path / "e.gguf", fields, listed)))
    assert parameters(build_ir(model))["total"] == sum(prod(shape) for _, shape, _ in listed)
    assert model.architecture.choices["weights_dtype"].value == "q4_k"


def test_fused_matrices_have_the_type_of_their_tensor(make: Make, tmp_path: Path) -> None:
    """Phi-3 keeps query, key and value in one tensor, gate and up in ffn_up."""
    apart = ("attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up")
    listed = [item for item in tensors() if not any(name in item[0] for name in apart)]
    for layer in range(LAYERS):
        listed.append((f"blk.{layer}.attn_qkv.weight", (HIDDEN, HIDDEN + 2 * KV), "q6_k"))
        listed.append((f"blk.{layer}.ffn_up.weight", (HIDDEN, 2 * INNER), "q8_0"))
    fields = {key.replace("llama.", "phi3."): value for key, value in FIELDS.items()}
    file = write(tmp_path / "m.gguf", fields | {"general.architecture": "phi3"}, listed)
    made = make(model=str(file), accelerator="rtx-4090", framework="llama.cpp", tp=1)
    size = sum(prod(shape) * BITS[kind] / 8 for _, shape, kind in listed)
    assert held(made) == size


@pytest.mark.parametrize("kind", BLOCKS)
def test_types_of_few_bits_are_counted_by_their_blocks(make: Make, tmp_path: Path, kind: str) -> None:
    """Matrices of the layers in the type; head and embedding as the file has them."""
    ends = {"token_embd.weight": "q4_k", "output.weight": "q6_k"}
    listed = [
        (name, shape, ends.get(name, kind) if len(shape) == 2 else "f32") for name, shape, _ in tensors()
    ]
    file = write(tmp_path / "m.gguf", FIELDS, listed)
    made = make(model=str(file), accelerator="rtx-4090", framework="llama.cpp", tp=1)
    assert made.results()["weights_dtype"] == kind
    size = sum(prod(shape) * BITS[one] / 8 for _, shape, one in listed)
    assert held(made) == size


EXPERTS = 4
Widths = dict[str, tuple[int, ...]]


def experts(size: int, shared: int = 0) -> Widths:
    """Tensors of experts in a layer, by name; of shared ones too."""
    found: Widths = {f"ffn_{part}_exps": (HIDDEN, size, EXPERTS) for part in ("gate", "up")}
    found["ffn_down_exps"] = (size, HIDDEN, EXPERTS)
    if shared:
        found |= {f"ffn_{part}_shexp": (HIDDEN, shared) for part in ("gate", "up")}
        found["ffn_down_shexp"] = (shared, HIDDEN)
    return found


def dense(size: int) -> Widths:
    """Tensors of a dense FFN in a layer."""
    return {"ffn_gate": (HIDDEN, size), "ffn_up": (HIDDEN, size), "ffn_down": (size, HIDDEN)}


def attention(heads: int, kv_heads: int, size: int) -> Widths:
    return {
        "attn_q": (HIDDEN, heads * size),
        "attn_k": (HIDDEN, kv_heads * size),
        "attn_v": (HIDDEN, kv_heads * size),
        "attn_output": (heads * size, HIDDEN),
    }


def latent(is_split: bool, query_rank: int) -> Widths:
    """Latent attention of 8 heads of 48 + 16 and 32; the two halves of one matrix may stand apart."""
    rank, heads = 96, 8
    found: Widths = {"attn_kv_a_mqa": (HIDDEN, rank + 16), "attn_output": (heads * 32, HIDDEN)}
    if is_split:
        found |= {"attn_k_b": (48, rank, heads), "attn_v_b": (rank, 32, heads)}
    else:
        found["attn_kv_b"] = (rank, heads * (48 + 32))
    if not query_rank:
        return found | {"attn_q": (HIDDEN, heads * 64)}
    return found | {"attn_q_a": (HIDDEN, query_rank), "attn_q_b": (query_rank, heads * 64)}


def whole(layers: list[Widths], vectors: Widths, *, tied: bool = False, kind: str = "q4_k") -> Tensors:
    """A file of these matrices in every layer, and of vectors in 32 bit."""
    found: Tensors = [("token_embd.weight", (HIDDEN, WORDS), "q8_0")]
    found += [("output_norm.weight", (HIDDEN,), "f32")]
    found += [] if tied else [("output.weight", (HIDDEN, WORDS), "q8_0")]
    for layer, matrices in enumerate(layers):
        routed = any("exps" in name for name in matrices)
        for name, shape in matrices.items():
            found.append((f"blk.{layer}.{name}.weight", shape, "mxfp4" if "exps" in name else kind))
        for name, shape in {"attn_norm.weight": (HIDDEN,), **vectors}.items():
            if routed or name.partition(".")[0] not in ("ffn_gate_inp", "exp_probs_b"):
                found.append((f"blk.{layer}.{name}", shape, "f32"))
    return found


def fields_of(architecture: str, **more: Any) -> dict[str, Any]:
    """The fields of a small file, with an architecture's own; __ stands for a dot."""
    own = {f"{architecture}.{key.replace('__', '.')}": value for key, value in more.items()}
    usual = {key.replace("llama.", f"{architecture}."): FIELDS[key] for key in FIELDS if "llama" in key}
    return {"general.architecture": architecture} | usual | own


DEEPSEEK = {
    "attention__kv_lora_rank": 96,
    "attention__head_count_kv": 1,
    "rope__dimension_count": 16,
    "leading_dense_block_count": 1,
    "expert_count": EXPERTS,
    "expert_used_count": 2,
    "expert_shared_count": 2,
    "expert_feed_forward_length": 256,
    "expert_weights_scale": 2.5,
}
OLD = {"attention__key_length": 64, "attention__value_length": 32}
NEW = {"attention__key_length": 112, "attention__value_length": 96}
NEW |= {"attention__key_length_mla": 64, "attention__value_length_mla": 32}
HEADS = {"attention__key_length": 64, "attention__value_length": 64}
MIXED = {"expert_count": EXPERTS, "expert_feed_forward_length": 256}
FFN_NORM: Widths = {"ffn_norm.weight": (HIDDEN,)}
LATENT_NORM: Widths = {"attn_kv_a_norm.weight": (96,)}
ROUTER: Widths = {"ffn_gate_inp.weight": (HIDDEN, EXPERTS)}
BALANCE: Widths = {"exp_probs_b.bias": (EXPERTS,), "attn_q_a_norm.weight": (128,)}
AROUND: Widths = {"post_attention_norm.weight": (HIDDEN,), "post_ffw_norm.weight": (HIDDEN,)}
QK_NORMS: Widths = {f"attn_{name}_norm.weight": (64,) for name in "qk"}
BIASES: Widths = {
    **{"attn_q.bias": (512,), "attn_k.bias": (128,), "attn_v.bias": (128,), "attn_output.bias": (HIDDEN,)},
    **{"attn_sinks.weight": (8,), "ffn_gate_inp.bias": (EXPERTS,), "post_attention_norm.weight": (HIDDEN,)},
    **{f"ffn_{part}_exps.bias": (256, EXPERTS) for part in ("gate", "up")},
    "ffn_down_exps.bias": (HIDDEN, EXPERTS),
}
PARTS = (dense(INNER), *3 * [experts(256, 512)])
LLAMA4 = [attention(8, 2, 64) | part for part in 2 * [dense(INNER), experts(256, 256)]]
FILES: dict[str, tuple[str, dict[str, Any], Tensors]] = {
    "deepseek2, lite": (
        "deepseek_v2",
        fields_of("deepseek2", **DEEPSEEK, **OLD),
        whole([latent(False, 0) | part for part in PARTS], FFN_NORM | LATENT_NORM | ROUTER),
    ),
    "deepseek2, newer": (
        "deepseek_v3",
        fields_of("deepseek2", **DEEPSEEK, **NEW, attention__q_lora_rank=128, expert_gating_func=2),
        whole([latent(True, 128) | part for part in PARTS], FFN_NORM | LATENT_NORM | ROUTER | BALANCE),
    ),
    "gpt-oss": (
        "gpt_oss",
        fields_of("gpt-oss", **HEADS, **MIXED, attention__sliding_window=128, expert_used_count=2),
        whole(4 * [attention(8, 2, 64) | experts(256)], ROUTER | BIASES, kind="q8_0"),
    ),
    "llama4": (
        "llama4_text",
        fields_of("llama4", **HEADS, **MIXED, interleave_moe_layer_step=2, expert_used_count=1),
        whole(LLAMA4, FFN_NORM | ROUTER),
    ),
    "gemma3": (
        "gemma3_text",
        fields_of("gemma3", **HEADS, attention__sliding_window=512),
        whole(4 * [attention(8, 2, 64) | dense(INNER)], FFN_NORM | AROUND | QK_NORMS, tied=True),
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_other_architectures_are_as_exact_as_their_tensors(make: Make, tmp_path: Path, name: str) -> None:
    """Parameters, and bytes on the device; every field of the header is read, or known to change nothing.

    The vector that balances routing is no parameter.
    """
    model_type, fields, listed = FILES[name]
    file = write(tmp_path / "m.gguf", fields, listed)
    made = make(model=str(file), accelerator="rtx-4090", framework="llama.cpp", tp=1)
    assert made.model.architecture.model_type == model_type
    counted = [(shape, kind) for name, shape, kind in listed if "exp_probs_b" not in name]
    assert parameters(made.equations.ir)["total"] == sum(prod(shape) for shape, _ in counted)
    size = sum(prod(shape) * BITS[kind] / 8 for shape, kind in counted)
    assert held(made) == size
    unread = read_config(file).unread or {}
    assert [path for path, value in unread.items() if why_unread(path, value) is None] == []


@pytest.mark.parametrize(
    ("name", "more", "what"),
    [
        ("deepseek2, newer", {"deepseek2.nextn_predict_layers": 1}, "nextn_predict_layers"),
        ("llama4", {"llama4.attention.sliding_window": 0}, "attention without chunks"),
        ("gemma3", {"gemma3.attention.sliding_window_pattern": [1, 1, 1, 0]}, "pattern: expected one value"),
    ],
)
def test_what_other_architectures_may_have_besides_is_refused(
    tmp_path: Path, name: str, more: dict[str, Any], what: str
) -> None:
    _, fields, listed = FILES[name]
    with pytest.raises(InputError, match=rf"m\.gguf.*{what}.*[Gg]ive the config\.json"):
        read_config(write(tmp_path / "m.gguf", fields | more, listed))


def test_what_is_not_read_is_named(tmp_path: Path) -> None:
    """A field that is not known among it; what the tokenizer is made of is not."""
    more = {"llama.rope.scaling.factor": 8.0, "llama.vocab_size": WORDS, "llama.novelty": [1, 2]}
    unread = read_config(write(tmp_path / "m.gguf", FIELDS | more, tensors())).unread or {}
    why = {path: why_unread(path, value) for path, value in unread.items()}
    assert {path for path, reason in why.items() if reason is None} == {"llama.novelty"}
    assert why["llama.rope.scaling.factor"] == "angles of positions, the same work"
    assert unread["llama.novelty"] == '"a list of 2"'
    assert not any(path.startswith("tokenizer") for path in unread)


def test_a_file_in_parts_is_read_whole(tmp_path: Path) -> None:
    listed = tensors()
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    write(first, FIELDS, listed[:5])
    with pytest.raises(InputError, match=r"one of 2 parts; m-00002-of-00002\.gguf is missing"):
        read_gguf(first)
    write(second, {"split.no": 1}, listed[5:])
    model = load_model(str(first))
    assert parameters(build_ir(model))["total"] == sum(prod(shape) for _, shape, _ in listed)


@pytest.mark.parametrize(
    ("change", "more", "what"),
    [
        ({"general.architecture": "rwkv7"}, [], r"general.architecture 'rwkv7' is not read"),
        (
            {"llama.attention.key_length": 64, "llama.attention.value_length": 32},
            [],
            r"attention.value_length: expected 64",
        ),
        ({"llama.attention.head_count_kv": [2, 2, 1, 2]}, [], r"head_count_kv: expected one value"),
        (
            {},
            [("blk.0.ssm_in.weight", (HIDDEN, HIDDEN), "q4_k")],
            r"'blk.0.ssm_in.weight' is none that is read",
        ),
        ({}, [("blk.0.attn_q.bias", (HIDDEN,), "f32")], r"'blk.0.attn_q.bias' is none that is read"),
        ({}, [("blk.0.attn_q.weight", (HIDDEN, HIDDEN), "f32")], r"values of f32 are not read"),
        ({}, [("blk.0.attn_q.weight", (HIDDEN, HIDDEN), "q8_k")], r"values of q8_k are not read"),
        ({}, [("blk.0.attn_q.weight", (HIDDEN, HIDDEN), "iq2_xxs")], r"is of iq2_xxs, and another .* q4_k"),
    ],
)
def test_what_is_not_read_is_refused_with_a_way_out(
    tmp_path: Path, change: dict[str, Any], more: Tensors, what: str
) -> None:
    file = write(tmp_path / "m.gguf", FIELDS | change, [*tensors(), *more])
    with pytest.raises(InputError, match=rf"m\.gguf.*{what}.*[Gg]ive the config\.json"):
        read_config(file)


def test_a_field_that_is_wrong_is_named_as_the_file_calls_it(tmp_path: Path) -> None:
    file = write(tmp_path / "m.gguf", FIELDS | {"llama.attention.head_count": 0}, tensors())
    with pytest.raises(InputError, match=r"m\.gguf: field llama\.attention\.head_count: expected"):
        read_config(file)


def test_files_that_are_none_end_in_an_error(tmp_path: Path) -> None:
    """Never in another exception, wherever the header ends."""
    whole = write(tmp_path / "m.gguf", FIELDS, tensors()).read_bytes()
    for size in (0, 3, 4, 10, 60, 300, len(whole) - 1):
        (tmp_path / "cut.gguf").write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"cut\.gguf: (is no GGUF file|ends inside its header)"):
            read_gguf(tmp_path / "cut.gguf")
    write(tmp_path / "old.gguf", FIELDS, tensors(), version=1)
    with pytest.raises(InputError, match="GGUF version 1: expected 2 or 3"):
        read_gguf(tmp_path / "old.gguf")
    (tmp_path / "huge.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 1))
    with pytest.raises(InputError, match="expected at most 1,000,000"):
        read_gguf(tmp_path / "huge.gguf")


def test_types_of_values_are_data_types_of_the_library() -> None:
    library = load_library()
    for kind in TYPES:
        assert "weights" in library.datatype(kind, "weights").roles


LONGEST_LIST = 255  # characters of a list that stands in the rule of a cell: Excel takes no more


@pytest.mark.exhaustive
def test_weights_are_chosen_from_cells_that_hold_their_types(make: Make) -> None:
    """Lists of them are too long for a rule; "same" stands first where a class may be as the others are."""
    book = lay_out(make(model="qwen3-30b-a3b"))
    lists: dict[str, list[Any]] = {}
    for sheet in book.sheets.values():
        for entry in (cell.entry for cell in sheet.cells.values() if cell.entry is not None):
            members = book.library_choices(entry)
            if members is None:
                assert len(",".join(map(str, entry.choices))) <= LONGEST_LIST, entry.id
            elif "_dtype" in entry.id:
                lists[entry.id] = [member.value for member in members.members]
                assert lists[entry.id] == list(entry.choices), entry.id
    assert lists["inputs.weights_dtype"] == lists["inputs.head_dtype"] == lists["inputs.experts_dtype"][1:]
    assert lists["inputs.experts_dtype"][0] == "same"
