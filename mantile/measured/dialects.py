"""Measured runs in the forms others publish them, read as our own records; what that takes for granted is said in each.

- serving: a table of serving runs with columns model, system, framework, precision, isl, osl, tp, ttft_ms, tpot_ms, ...
- InferenceMAX: agg_bmk.json, a list of records with hw, conc, mean_ttft, mean_tpot, tput_per_gpu, ...
- llama-bench: a table of single-user runs with columns model, quant, system, pp_tok_s, tg_tok_s, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from mantile.library.architecture import Architecture
from mantile.library.documents import load, validate
from mantile.library.errors import InputError, unknown
from mantile.library.models import load_model, model_ids
from mantile.library.profiles import Accelerator, data_folder, load_library
from mantile.measured.recipes import Recipes
from mantile.measured.runs import Run, own

Reader = Callable[[dict[str, Any], str], Iterable[Run]]

WAVES = 10  # prompts for every place of an InferenceMAX run
EARLY = "2025-12"  # before it, kernels for experts were slower
DRAWN = 0.9  # mean of lengths drawn evenly from the upper fifth of what is stated


def dialect(record: dict[str, Any], name: str) -> Reader:
    """Who reads records like this one.

    Raises:
        InputError: naming the columns that are missing from the nearest form.
    """
    for needs, reader in _READERS:
        if needs <= set(record):
            return reader
    raise InputError(
        f"{name}: not a form of measured runs that is known; expected the fields of a run ({', '.join(sorted(_READERS[0][0]))}, metrics "
        f"such as tpot_s), or those of " + "; or ".join(", ".join(sorted(needs)) for needs, _ in _READERS[1:])
    )


# --- serving runs -------------------------------------------------------------------------------------------------------------


def serving(record: dict[str, Any], name: str) -> Iterable[Run]:
    """A row of a table of serving runs. Times are milliseconds."""
    notes: list[str] = []
    apart = record.get("mode") == "disagg"
    if record.get("spec_decode") not in (None, "", "none", "none_assumed", "none_inferred"):
        raise InputError(f"spec_decode is {record['spec_decode']}: speculative decoding is not covered")
    model = _model(record["model"], notes)
    chip = _accelerator(record["system"])
    fields: dict[str, Any] = {
        "model": model,
        **_deployment(record, chip, model, apart, notes),
        **_formats(model, chip, str(record["precision"]), str(record.get("moe_precision", "")), notes),
        "concurrency": int(record["concurrency"] or _missing("concurrency")),
        "kv_dtype": _cache_format(record, notes),
    }
    drawn = "uniform" in str(record.get("len_sampling", "uniform"))
    if drawn:
        notes.append(f"lengths are drawn from 0.8 to 1 of what is stated: {DRAWN} of it on average")
    notes.append(f"{WAVES} prompts for every place")
    share = DRAWN if drawn else 1
    fields |= {
        "input_tokens": max(1, round(share * record["isl"])),
        "output_tokens": max(1, round(share * record["osl"])),
        "waves": WAVES,
    }
    if not drawn:
        notes.append("lengths are all alike")
        fields["length_spread"] = 0
        if fields["framework"] == "trtllm" and "decode" not in fields:
            fields["max_requests"] = max(1, fields["concurrency"] - 1)
            notes.append(
                "one place less than concurrency: the TTFT of these runs grows by output x TPOT / concurrency"
            )
    if (
        str(record.get("measured_on", ""))[:7] < EARLY
        and record.get("measured_on")
        and _architecture(model).value("experts")
    ):
        fields["release"] = f"before {EARLY}"
        notes.append(f"engines of runs before {EARLY} are early releases")
    _by_recipe(fields, record, notes)
    metrics = {
        "ttft_s": _milli(record.get("ttft_ms")),
        "tpot_s": _milli(record.get("tpot_ms")),
        "ttft_p50_s": _milli(record.get("median_ttft_ms")),
        "tpot_p50_s": _milli(record.get("median_tpot_ms")),
        "output_tokens_per_s_per_accelerator": record.get("out_tok_s_gpu") or None,
    }
    return [_run(name, record, fields, metrics, notes)]


@cache
def _recipes() -> Recipes:
    return load(Recipes, data_folder("profiles") / "recipes.yaml")


def _by_recipe(fields: dict[str, Any], record: dict[str, Any], notes: list[str]) -> None:
    """Fill in how the server was started, from the public scripts of the benchmark, where a row is one of its runs."""
    if "decode" in fields or not any(
        name in f"{record.get('source', '')} {record.get('source_ref', '')}" for name in _recipes().names
    ):
        return
    found: dict[str, Any] = {}
    for recipe in _recipes().recipes:
        if recipe.match.holds(fields, record):
            found = recipe.set.model_dump(exclude_none=True) | found
    if not found:
        return
    notes.append("flags of the server as in the benchmark's public scripts")
    if found.pop("warm", False):
        cold = {"id": "efficiency.cold_start", "value": 0, "reason": "the harness warms the server up"}
        fields["overrides"] = [cold]
    if found.pop("experts", None):
        ranks = fields["tp"] * fields["attention_dp"]
        fields |= {"tp": ranks, "ep": ranks, "attention_dp": 1}
        notes.append("experts over all ranks, no attention-DP: what the script did, whatever the table says")
    if found.get("token_budget") == "prompt":
        found["token_budget"] = -(-(fields["concurrency"] + int(record["isl"]) + 64) // 64) * 64
    if "kv_dtype" in found:
        notes[:] = [note for note in notes if not note.startswith("KV cache")]
    fields |= found


def inferencemax(record: dict[str, Any], name: str) -> Iterable[Run]:
    """A record of InferenceMAX's agg_bmk.json. Times are seconds."""
    told = {
        "model": record["model"],
        "system": re.sub(r"-(trt|vllm|sglang|nv.*|amd.*|docker)$", "", str(record["hw"])),
        "framework": record.get("framework", "vllm"),
        "precision": record["precision"],
        "isl": record["isl"],
        "osl": record["osl"],
        "concurrency": record["conc"],
        "tp": record.get("tp") or record.get("decode_tp") or 1,
        "ep": record.get("ep") or record.get("decode_ep") or 1,
        "dp_attention": str(record.get("dp_attention", "false")).lower(),
        "mode": "disagg" if record.get("disagg") in (True, "true") else "agg",
        "spec_decode": {"": "none", "none": "none"}.get(
            str(record.get("spec_decoding", "none")), str(record.get("spec_decoding"))
        ),
        "gpus": sum(int(record.get(key) or 0) for key in ("num_prefill_gpu", "num_decode_gpu")) or "",
        "ttft_ms": _times(record.get("mean_ttft"), 1e3),
        "tpot_ms": _times(record.get("mean_tpot"), 1e3),
        "median_ttft_ms": _times(record.get("median_ttft"), 1e3),
        "median_tpot_ms": _times(record.get("median_tpot"), 1e3),
        "out_tok_s_gpu": record.get("output_tput_per_gpu") or "",
        "image": record.get("image", ""),
        "measured_on": record.get("date", ""),
        "source": "InferenceMAX agg_bmk.json",
    }
    return serving(told, name)


_FRAMEWORKS = {
    "trt": "trtllm",
    "trt-llm": "trtllm",
    "tensorrt-llm": "trtllm",
    "dynamo-trt": "trtllm",
    "dynamo-trtllm": "trtllm",
    "dynamo-sglang": "sglang",
    "dynamo-vllm": "vllm",
    "exo 1.0": "exo",
    "llama.cpp/lm studio": "llama.cpp",
    "llama.cpp (wsl2)": "llama.cpp",
}


def _framework(name: Any) -> str:
    found = str(name).strip().lower()
    if found.startswith("vllm"):
        found = "vllm"
    return _FRAMEWORKS.get(found, found)


def _deployment(
    record: dict[str, Any], chip: Accelerator, model: str, apart: bool, notes: list[str]
) -> dict[str, Any]:
    """The plan of a run; of a disaggregated one that of a decode worker, which is all that tables state.

    - A number of attention-DP groups above 1: so many groups, TP 1. "true": over all ranks of the worker, which are EP, else TP.
    - Disaggregated runs without a number of accelerators have in `tp` those of all workers. The decode worker is the largest power of two
      in it, attention-DP with its experts over all ranks.
    """
    tp, pp, ep = (max(1, int(record.get(name) or 1)) for name in ("tp", "pp", "ep"))
    groups = str(record.get("dp_attention", "")).lower()
    plan = {"tp": tp, "pp": pp, "ep": ep, "attention_dp": 1}
    total = tp if tp & (tp - 1) else 0
    if groups == "true" and tp == ep == 1 and record.get("gpus"):
        total = int(record["gpus"])
    if apart and total:
        wide = 2 ** (total.bit_length() - 1)
        plan = {"tp": 1, "pp": pp, "ep": wide, "attention_dp": wide}
        notes.append(
            "widths of all workers are summed in the table: the decode worker is taken as the largest power of two in it"
        )
    elif groups == "true":
        plan = {"tp": 1, "pp": pp, "ep": ep, "attention_dp": ep if ep > 1 else tp}
        notes.append("attention-DP without a number: over all ranks")
    elif groups not in ("", "false") and float(groups) > 1:
        plan = {"tp": 1, "pp": pp, "ep": ep, "attention_dp": int(float(groups))}
    elif apart and not record.get("gpus") and tp == ep == 1 and _architecture(model).value("experts") > 128:
        raise InputError("tp and ep are 1 and gpus is empty: the worker of a disaggregated run is not stated")
    found: dict[str, Any] = {"accelerator": chip.id, "framework": _framework(record["framework"])}
    if not apart:
        return found | plan
    notes.append(
        "disaggregated: prefill workers are taken to be like the decode worker, which takes all requests"
    )
    return found | plan | {"decode": plan}


@cache
def _architecture(model: str) -> Architecture:
    return load_model(model).architecture


def _formats(model: str, chip: Accelerator, precision: str, experts: str, notes: list[str]) -> dict[str, str]:
    """Formats of the weights behind a word for the precision of a run."""
    architecture = _architecture(model)
    stored = architecture.choices["weights_dtype"].value
    mixture = bool(architecture.value("experts"))
    if precision in ("bf16", "fp16"):
        return {"weights_dtype": precision}
    if precision == "fp8":
        block = mixture or "block" in experts
        if block and "block" not in experts:
            notes.append("fp8 of a mixture of experts: scaled by blocks, as their publishers release it")
        return {"weights_dtype": "fp8-block" if block else "fp8"}
    if precision != "fp4":
        raise InputError(f"precision is {precision!r}; expected bf16, fp16, fp8 or fp4")
    if stored == "mxfp4":
        return {}
    found = "mxfp4" if chip.vendor == "AMD" else "nvfp4"
    notes.append(f"fp4 is {found}" + (", attention stays bf16" if mixture else ""))
    return {"weights_dtype": found} | ({"attention_dtype": "bf16"} if mixture else {})


def _cache_format(record: dict[str, Any], notes: list[str]) -> str:
    told = str(record.get("kv_dtype", ""))
    if "fp8" in told:
        if told != "fp8":
            notes.append("KV cache in fp8: likely, not stated")
        return "fp8"
    if told not in ("bf16", "fp16"):
        notes.append("KV cache in bf16: not stated")
    return "bf16"


# --- single-user runs ---------------------------------------------------------------------------------------------------------


def llama_bench(record: dict[str, Any], name: str) -> Iterable[Run]:
    """A row of a table of single-user runs: generation from an empty or a filled context, and a prompt, each a run of its own."""
    notes: list[str] = []
    model = _model(record["model"], notes)
    chip = _accelerator(record["system"])
    gpus, batch, depth = (
        int(record.get(key) or fallback) for key, fallback in (("gpus", 1), ("batch", 1), ("depth", 0))
    )
    fields: dict[str, Any] = {
        "model": model,
        "accelerator": chip.id,
        "framework": _framework(record["framework"]),
        "pp": gpus,
        "concurrency": batch,
        "token_budget": 512,
        **_quantised(model, str(record["quant"]).upper()),
    }
    if gpus > 1:
        fields["microbatches"] = 1
        notes.append(
            "several accelerators: layers divided among them, one request goes through one after the other"
        )
    if batch > 1:
        fields["batching"] = "static"
    found = []
    if record.get("tg_tok_s"):
        asked = fields | {"input_tokens": max(1, depth), "output_tokens": int(record.get("gen_len") or 128)}
        found.append(_run(f"{name}-tg", record, asked, {"tpot_s": batch / float(record["tg_tok_s"])}, notes))
    if record.get("pp_tok_s") and record.get("prompt_len") and batch == 1 and not depth:
        asked = fields | {"input_tokens": int(record["prompt_len"]), "output_tokens": 1}
        found.append(
            _run(
                f"{name}-pp",
                record,
                asked,
                {"prefill_s": float(record["prompt_len"]) / float(record["pp_tok_s"])},
                notes,
            )
        )
    if not found:
        raise InputError("neither generation with its length nor a prompt with its length")
    return found


def _quantised(model: str, quant: str) -> dict[str, str]:
    """Formats of a file of weights by its name; its embedding and head are quantised as well."""
    if quant == "MXFP4":
        return (
            {"attention_dtype": "q8_0", "head_dtype": "q8_0"}
            if _architecture(model).choices["weights_dtype"].value == "mxfp4"
            else {"weights_dtype": "mxfp4"}
        )
    if quant in ("F16", "FP16"):
        return {"weights_dtype": "fp16", "head_dtype": "fp16", "activation_dtype": "fp16"}
    weights = {"4BIT": "int4-g64"}.get(quant, quant.lower())
    return {
        "weights_dtype": weights,
        "head_dtype": {"q4_0": "q8_0", "nvfp4": "bf16", "int4-g64": "bf16"}.get(weights, weights),
    }


# --- names --------------------------------------------------------------------------------------------------------------------

_SUFFIXES = re.compile(r"-(instruct|it|chat|hf|fp8|fp4|nvfp4|mxfp4|bf16|preview|dynamic|v2|0528|turbo)$")
_SAME_SHAPE = {"llama-3-8b": "llama-3.1-8b", "llama-3-70b": "llama-3.1-70b", "qwen2.5-coder-7b": "qwen2.5-7b"}


def _bare(name: str) -> str:
    """A model's name without publisher, and without what says how it was tuned or stored."""
    bare = name.rsplit("/", 1)[-1].lower().removeprefix("meta-")
    while (shorter := _SUFFIXES.sub("", bare)) != bare:
        bare = shorter
    return bare


@cache
def _model_id(name: str) -> tuple[str, str]:
    bare = _bare(name)
    if bare in model_ids():
        return bare, "" if bare == name else f"{name} is {bare}"
    if bare in _SAME_SHAPE:
        return _SAME_SHAPE[bare], f"{name} has the shapes of {_SAME_SHAPE[bare]}"
    raise InputError(str(unknown("model", name, model_ids())))


def _model(name: Any, notes: list[str]) -> str:
    found, note = _model_id(str(name))
    if note:
        notes.append(note)
    return found


@cache
def _accelerator(name: Any) -> Accelerator:
    """An accelerator by one of the names it goes by: b200_sxm, gb200, RTX 4090, M2 Ultra 76-Core GPU 192GB."""
    library = load_library()
    known = {chip.id: chip for chip in library.accelerators}
    bare = str(name).lower().replace("\u2011", "-").replace("_", "-")
    bare = re.sub(r"\b\d+(-core gpu|c\b|gb\b)", "", bare)
    bare = re.sub(r"\b(nvidia|amd|apple|geforce|hbm3|blackwell|radeon)\b", "", bare)
    words = "-".join(re.sub(r"\([^)]*\)", "", bare).split())
    memory = re.search(r"(\d+) ?gb", str(name).lower())
    found = [words, f"{words}-sxm", f"{words}-nvl72", f"rtx-{words}", f"{words}-bw", f"{words}-80gb-sxm"]
    if memory and words.startswith("a100"):
        kind = words.removeprefix("a100").strip("-") or "sxm"
        found.insert(0, f"a100-{memory.group(1)}gb-{kind}")
    for candidate in found:
        if candidate in known:
            return known[candidate]
    raise InputError(str(unknown("accelerator", str(name), known)))


# --- common -------------------------------------------------------------------------------------------------------------------


def _run(
    name: str, record: dict[str, Any], fields: dict[str, Any], metrics: dict[str, Any], notes: list[str]
) -> Run:
    environment = {
        key: str(record[column])
        for key, column in (("framework_version", "framework_version"), ("image", "image"), ("note", "notes"))
        if record.get(column) not in ("", None)
    }
    reference = (
        ", ".join(str(record[key]) for key in ("source", "source_ref") if record.get(key)) or "not stated"
    )
    return validate(
        Run,
        {
            "id": name,
            "model": _model_id(str(record["model"]))[0],
            **fields,
            "metrics": {key: value for key, value in metrics.items() if value},
            "environment": environment,
            "source": reference[:300],
            "date": str(record.get("measured_on") or "") or None,
            "assumptions": tuple(notes),
        },
        name,
    )


def _milli(value: Any) -> float | None:
    return None if value in ("", None) else float(value) / 1e3


def _times(value: Any, factor: float) -> float | str:
    return "" if value in ("", None) else float(value) * factor


def _missing(field: str) -> Any:
    raise InputError(f"field {field} is empty")


_READERS: tuple[tuple[set[str], Reader], ...] = (
    ({"model", "accelerator", "input_tokens", "output_tokens", "concurrency"}, own),
    ({"model", "system", "framework", "precision", "isl", "osl", "concurrency", "tp"}, serving),
    ({"model", "hw", "precision", "isl", "osl", "conc"}, inferencemax),
    ({"model", "system", "quant", "framework", "tg_tok_s"}, llama_bench),
)
