"""Measured runs in the forms others publish them, read as our own records; each run says what that assumes.

- serving: a table of serving runs with columns model, system, framework, precision, isl, osl, tp, ttft_ms,
  tpot_ms, ...; under other names as well, such as gpu_model, input_seq_len, tensor_parallel, mean_ttft_ms
- InferenceMAX: agg_bmk.json, a list of records with hw, conc, mean_ttft, mean_tpot, tput_per_gpu, ...
- llama-bench: a table of single-user runs with columns model, quant, system, pp_tok_s, tg_tok_s, ...
- flat: records as `mantile records export` writes them, with model_id, runtime_id, hardware_id, metrics, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from mantile.equations.inputs import EARLY, LAST
from mantile.library.documents import validate
from mantile.library.errors import InputError, quoted
from mantile.library.profiles import Accelerator
from mantile.measured.clients import recipes, sent, source_of
from mantile.measured.numbers import require_numbers, whole
from mantile.measured.runs import Metrics, Run, parse_run
from mantile.measured.spellings import (
    architecture_of,
    cache_format,
    find_accelerator,
    framework_id,
    model_id,
    weight_formats,
)

Record = dict[str, Any]
Reader = Callable[[Record, str], Iterable[Run]]
"""A record and its name to the runs in it.

Raises:
    InputError: saying what is wrong with the record.
"""

EARLY_ENGINES = "2025-12"  # before it, kernels for experts were slower
CURRENT_ENGINES = "2026-05"  # since then, launches are shorter
NO_SPECULATION = (None, "", "none", "none_assumed", "none_inferred")
PREDICTION = ("mtp", "mtp_suspected")
EARLY_BUILDS = "2024-06"  # llama.cpp before it: no CUDA graphs, no flash attention by default


def reader_of(record: Record, name: str) -> Reader:
    """The reader for records like this one.

    Args:
        name: stands for the file in errors.

    Raises:
        InputError: with the columns of each form that is known.
    """
    if any(load in record for load in _LOADS) and set(record) >= _OWN:
        return _own
    for needs, reader in _READERS:
        if needs <= set(record):
            return reader
    if set(_renamed(record)) >= _SERVING:
        return lambda row, row_name: serving(_renamed(row), row_name)
    raise InputError(f"{name}: not a form of measured runs that is known; {_nearest(record)}")


def _nearest(record: Record) -> str:
    """What a record lacks of the form that it is nearest to; the columns of all forms where that is much."""
    forms = {
        "the fields of a run": (_OWN | {"concurrency"}) - set(record),
        "a table of serving runs": _SERVING - set(_renamed(record)),
    }
    form, lacks = min(forms.items(), key=lambda one: len(one[1]))
    if len(lacks) <= _NEAR:
        named = [f"{what} ({_COLUMNS[what][0]})" if what in _COLUMNS else what for what in sorted(lacks)]
        return f"it lacks of {form}: {', '.join(named)}"
    columns = [", ".join(sorted(needs)) for needs, _ in _READERS]
    return (
        f"expected the fields of a run ({', '.join(sorted(_OWN))}, concurrency, metrics such as tpot_s), or "
        f"those of {'; or '.join(columns)}"
    )


def _own(record: Record, name: str) -> Iterable[Run]:
    return [parse_run(record, name)]


# --- serving runs -------------------------------------------------------------------------------------------


def serving(record: Record, name: str) -> Iterable[Run]:
    """A row of a table of serving runs. Times are milliseconds."""
    require_numbers(record)
    if not record["concurrency"]:
        raise InputError("field concurrency is empty")
    notes: list[str] = []
    model = _model(record, notes)
    accelerator = find_accelerator(str(record["system"]))
    disaggregated = record.get("mode") == "disagg"
    fields: Record = {
        "model": model,
        **_deployment(record, accelerator, model, disaggregated, notes),
        **weight_formats(
            model,
            accelerator,
            framework_id(record["framework"]),
            str(record["precision"]),
            str(record.get("moe_precision", "")),
            notes,
        ),
        "concurrency": whole(record["concurrency"]),
        "kv_dtype": cache_format(record.get("kv_dtype"), notes),
    }
    fields |= sent(record, fields, notes)
    fields |= _release(record, model, notes)
    fields |= _speculation(record, notes)
    if not disaggregated:
        _apply_recipes(fields, record, notes)
    metrics = {
        "ttft_s": _seconds(record.get("ttft_ms")),
        "tpot_s": _seconds(record.get("tpot_ms")),
        "ttft_p50_s": _seconds(record.get("median_ttft_ms")),
        "tpot_p50_s": _seconds(record.get("median_tpot_ms")),
        "e2e_s": _seconds(record.get("e2e_ms")),
        "prefill_tokens_per_s": record.get("prefill_tokens_per_s") or None,
        "output_tokens_per_s": record.get("out_tok_s") or None,
        "output_tokens_per_s_per_accelerator": record.get("out_tok_s_gpu") or None,
    }
    return [_run(name, record, fields, metrics, notes)]


def _speculation(record: Record, notes: list[str]) -> Record:
    """What drafts tokens. How many, and how many are accepted, tables of runs do not say.

    Raises:
        InputError: where nobody says what drafts.
    """
    stated = record.get("spec_decode")
    if stated in NO_SPECULATION:
        return {}
    if stated not in PREDICTION:
        raise InputError(f"spec_decode is {stated}: expected none or mtp; what drafts tokens is not known")
    notes.append("prediction layers draft; how many tokens are accepted is assumed")
    return {"speculation": "mtp"}


def _release(record: Record, model: str, notes: list[str]) -> Record:
    """The release of the engine, which matters in models with experts alone."""
    month = str(record.get("measured_on") or "")[:7]
    if month >= CURRENT_ENGINES or not architecture_of(model).value("experts"):
        return {}
    if month and month < EARLY_ENGINES:
        notes.append(f"engines of runs before {EARLY_ENGINES} are early releases")
        return {"engine_release": EARLY}
    if not month:
        notes.append(f"without a date: engines are taken to be older than {CURRENT_ENGINES}")
    return {"engine_release": LAST}


def _deployment(
    record: Record, accelerator: Accelerator, model: str, disaggregated: bool, notes: list[str]
) -> Record:
    """Accelerator, framework and parallelism; of a disaggregated run those of a decode worker, as tables
    state no more."""
    fields: Record = {"accelerator": accelerator.id, "framework": framework_id(record["framework"])}
    plan = _plan(record, model, disaggregated, notes)
    if not disaggregated:
        return fields | plan | _replicas(record, plan, notes)
    notes.append(
        "disaggregated: prefill workers are taken to be like the decode worker, which takes all requests"
    )
    return fields | plan | {"decode": plan}


def _replicas(record: Record, plan: dict[str, int], notes: list[str]) -> dict[str, int]:
    """Replicas of the plan on the accelerators of the run, where these are so many times as many.

    Raises:
        InputError: if accelerators are left over.
    """
    ranks = plan["tp"] * plan["pp"] * plan["attention_dp"]
    accelerators = whole(record.get("gpus"), ranks)
    if accelerators < ranks or accelerators == ranks:
        return {}
    if accelerators % ranks:
        raise InputError(f"gpus is {accelerators}, which is no multiple of the {ranks} ranks of the plan")
    notes.append("several replicas of the plan on the accelerators of the run")
    return {"dp": accelerators // ranks}


def _plan(record: Record, model: str, disaggregated: bool, notes: list[str]) -> dict[str, int]:
    """The degrees of parallelism of a worker.

    - A number of attention-DP groups above 1: so many groups, TP 1. "true": over all ranks of the worker,
      which are EP, else TP.
    - Disaggregated runs without a number of accelerators have in `tp` those of all workers. The decode worker
      is the largest power of two in it, attention-DP with its experts over all ranks.
    """
    tp, pp, ep = (max(1, whole(record.get(name))) for name in ("tp", "pp", "ep"))
    groups = str(record.get("dp_attention", "")).lower()
    over_all_ranks, unstated = groups == "true", disaggregated and tp == ep == 1
    if disaggregated:
        total = tp if tp & (tp - 1) else 0
        if over_all_ranks and unstated and record.get("gpus"):
            total = whole(record["gpus"])
        if total:
            ranks = 2 ** (total.bit_length() - 1)
            notes.append(
                "widths of all workers are summed in the table: the decode worker is taken as the largest "
                "power of two in it"
            )
            return {"tp": 1, "pp": pp, "ep": ranks, "attention_dp": ranks}
    if over_all_ranks:
        notes.append("attention-DP without a number: over all ranks")
        return {"tp": 1, "pp": pp, "ep": ep, "attention_dp": ep if ep > 1 else tp}
    if groups not in ("", "false", "true"):
        require_numbers({"dp": groups}, ("dp",))
        if whole(groups) > 1:
            return {"tp": 1, "pp": pp, "ep": ep, "attention_dp": whole(groups)}
    if unstated and not record.get("gpus") and architecture_of(model).value("experts") > 128:
        raise InputError("tp and ep are 1 and gpus is empty: the worker of a disaggregated run is not stated")
    return {"tp": tp, "pp": pp, "ep": ep, "attention_dp": 1}


def _apply_recipes(fields: Record, record: Record, notes: list[str]) -> None:
    """Fill in how the server was started, from the benchmark's public scripts, if a row is one of its
    runs."""
    if not any(name in source_of(record) for name in recipes().names):
        return
    flags: Record = {}
    for recipe in recipes().recipes:
        if recipe.match.holds(fields, record):
            flags = recipe.set.model_dump(exclude_none=True) | flags
    if not flags:
        return
    notes.append("flags of the server as in the benchmark's public scripts")
    if flags.pop("warm", False):
        warm = {"id": "efficiency.cold_start", "value": 0, "reason": "the harness warms the server up"}
        fields["overrides"] = [warm]
    if flags.pop("experts", None):
        ranks = fields["tp"] * fields["attention_dp"]
        fields |= {"tp": ranks, "ep": ranks, "attention_dp": 1}
        notes.append("experts over all ranks, no attention-DP: what the script did, whatever the table says")
    if flags.get("token_budget") == "prompt":
        flags["token_budget"] = -(-(fields["concurrency"] + whole(record["isl"]) + 64) // 64) * 64
    if flags.get("max_requests") == "concurrency":
        flags["max_requests"] = -(-fields["concurrency"] // fields.get("dp", 1))
    if "kv_dtype" in flags:
        notes[:] = [note for note in notes if not note.startswith("KV cache")]
    fields |= flags


def inferencemax(record: Record, name: str) -> Iterable[Run]:
    """A record of InferenceMAX's agg_bmk.json. Times are seconds."""
    require_numbers(record)
    speculation = str(record.get("spec_decoding") or "none")
    row = {
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
        "spec_decode": speculation,
        "gpus": sum(whole(record.get(key), 0) for key in ("num_prefill_gpu", "num_decode_gpu")) or "",
        "ttft_ms": _milliseconds(record.get("mean_ttft")),
        "tpot_ms": _milliseconds(record.get("mean_tpot")),
        "median_ttft_ms": _milliseconds(record.get("median_ttft")),
        "median_tpot_ms": _milliseconds(record.get("median_tpot")),
        "out_tok_s_gpu": record.get("output_tput_per_gpu") or "",
        "image": record.get("image", ""),
        "measured_on": record.get("date", ""),
        "source": "InferenceMAX agg_bmk.json",
    }
    return serving(row, name)


# --- single-user runs ---------------------------------------------------------------------------------------


def llama_bench(record: Record, name: str) -> Iterable[Run]:
    """A row of a table of single-user runs: generation from an empty or a filled context, and a prompt, each
    a run of its own."""
    require_numbers(record)
    notes: list[str] = []
    model = _model(record, notes)
    accelerators, batch, depth = (
        whole(record.get(key), otherwise) for key, otherwise in (("gpus", 1), ("batch", 1), ("depth", 0))
    )
    chip = find_accelerator(str(record["system"]))
    framework = _build(framework_id(record["framework"]), record, notes)
    fields: Record = {
        "model": model,
        "accelerator": chip.id,
        "framework": framework,
        "pp": accelerators,
        "concurrency": batch,
        **weight_formats(model, chip, framework, str(record["quant"]), "", notes),
    }
    if accelerators > 1:
        fields["microbatches"] = 1
        notes.append(
            "several accelerators: layers divided among them, a request goes through one after the other"
        )
    if batch > 1:
        fields["batching"] = "static"
    runs = []
    if record.get("tg_tok_s"):
        lengths = {"input_tokens": max(1, depth), "output_tokens": whole(record.get("gen_len"), 128)}
        metrics = {"tpot_s": batch / float(record["tg_tok_s"])}
        runs.append(_run(f"{name}-tg", record, fields | lengths, metrics, notes))
    if record.get("pp_tok_s") and record.get("prompt_len") and batch == 1 and not depth:
        lengths = {"input_tokens": whole(record["prompt_len"]), "output_tokens": 1}
        metrics = {"prefill_s": float(record["prompt_len"]) / float(record["pp_tok_s"])}
        runs.append(_run(f"{name}-pp", record, fields | lengths, metrics, notes))
    if not runs and record.get("pp_tok_s") and depth:
        raise InputError("the prompt was timed behind tokens in the KV cache, which is not covered")
    if not runs:
        raise InputError("neither generation with its length nor a prompt with its length")
    return runs


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _build(framework: str, record: Record, notes: list[str]) -> str:
    """The framework of a bench, by the day or month that its table states: llama.cpp of early 2024 is one of
    its own."""
    stated = f"{record.get('measured_on') or ''} {record.get('source_ref') or ''}"
    day = re.search(r"\b(20\d\d-\d\d)", stated)
    month = re.search(r"\b([A-Z][a-z]{2})[a-z]* (20\d\d)\b", stated)
    when = day.group(1) if day else ""
    if not when and month and month.group(1).lower() in _MONTHS:
        when = f"{month.group(2)}-{_MONTHS.index(month.group(1).lower()) + 1:02}"
    if framework != "llama.cpp" or not when or when >= EARLY_BUILDS:
        return framework
    notes.append(f"builds before {EARLY_BUILDS} are of early 2024")
    return "llama.cpp-2024"


# --- all ----------------------------------------------------------------------------------------------------


def _model(record: Record, notes: list[str]) -> str:
    identifier, note = model_id(str(record["model"]))
    if note:
        notes.append(note)
    return identifier


# --- flat records -------------------------------------------------------------------------------------------


def flat(record: Record, name: str) -> Iterable[Run]:
    """A run as one mapping: model_id, runtime_id, hardware_id, quant, context_tokens, metrics, env."""
    metrics, env, degrees = (record.get(key) or {} for key in ("metrics", "env", "parallelism"))
    if not all(isinstance(part, dict) for part in (metrics, env, degrees)):
        raise InputError("fields metrics, env and parallelism: expected mappings")
    engine, _, release = str(record["runtime_id"] or "").partition(" ")
    fields = {
        "model": str(record["model_id"]),
        "accelerator": str(record["hardware_id"]),
        "framework": framework_id(engine) or None,
        "weights_dtype": record.get("quant"),
        "input_tokens": record["context_tokens"],
        "output_tokens": record.get("output_tokens"),
        "concurrency": record.get("concurrency"),
        "request_rate": metrics.get("request_rate"),
        **degrees,
    }
    return [
        parse_run(
            {key: value for key, value in fields.items() if value is not None}
            | {
                "id": str(record.get("run_id") or name)[:12],
                "metrics": {key: value for key, value in metrics.items() if key in Metrics.model_fields},
                "environment": {"framework_version": release} if release else {},
                "source": "flat record",
                "date": str(record.get("timestamp_utc") or "")[:10] or None,
            },
            name,
        )
    ]


def _run(name: str, record: Record, fields: Record, metrics: Record, notes: list[str]) -> Run:
    """A run of fields of a scenario and metrics, with environment, source and day as the record has them."""
    columns = {"framework_version": "framework_version", "image": "image", "note": "notes"}
    environment = {
        field: str(record[column])
        for field, column in columns.items()
        if record.get(column) not in ("", None)
    }
    return validate(
        Run,
        {
            "id": name,
            **fields,
            "metrics": {metric: value for metric, value in metrics.items() if value},
            "environment": environment,
            "source": source_of(record)[:300] or "not stated",
            "date": str(record.get("measured_on") or "") or None,
            "assumptions": tuple(notes),
        },
        name,
    )


def _seconds(milliseconds: Any) -> float | None:
    if milliseconds in ("", None):
        return None
    try:
        return float(milliseconds) / 1e3
    except (TypeError, ValueError) as error:
        raise InputError(f"a time of {quoted(milliseconds)}: expected a number") from error


def _milliseconds(seconds: Any) -> Any:
    """What is no number stays what it is: who reads the row says so."""
    try:
        return "" if seconds in ("", None) else float(seconds) * 1e3
    except (TypeError, ValueError):
        return seconds


_COLUMNS: dict[str, tuple[str, ...]] = {
    "model": ("model_name", "model_id"),
    "system": ("gpu_model", "gpu", "gpu_type", "gpu_name", "hardware", "accelerator", "device"),
    "framework": ("backend", "engine", "runtime", "serving_framework", "inference_engine"),
    "framework_version": ("engine_version", "backend_version", "runtime_version"),
    "precision": ("quantization", "quant", "dtype", "weight_dtype", "weights_dtype", "weight_precision"),
    "kv_dtype": ("kv_cache_dtype", "kv_precision"),
    "isl": ("input_seq_len", "input_len", "input_length", "input_tokens", "prompt_tokens", "prompt_len"),
    "osl": ("output_seq_len", "output_len", "output_length", "output_tokens", "gen_len", "max_tokens"),
    "concurrency": (
        "conc",
        "max_concurrency",
        "concurrent_requests",
        "batch_size",
    ),
    "tp": ("tensor_parallel", "tensor_parallel_size", "tp_size"),
    "pp": ("pipeline_parallel", "pipeline_parallel_size", "pp_size"),
    "ep": ("expert_parallel", "expert_parallel_size", "ep_size"),
    "dp_attention": ("attention_dp", "dp_attention_size"),
    "gpus": ("num_gpus", "gpu_count", "n_gpus", "num_accelerators", "world_size"),
    "ttft_ms": ("mean_ttft_ms", "avg_ttft_ms", "time_to_first_token_ms"),
    "tpot_ms": ("mean_tpot_ms", "avg_tpot_ms", "time_per_output_token_ms", "mean_itl_ms", "itl_ms"),
    "median_ttft_ms": ("p50_ttft_ms", "ttft_p50_ms"),
    "median_tpot_ms": ("p50_tpot_ms", "tpot_p50_ms"),
    "e2e_ms": ("mean_e2e_ms", "mean_e2el_ms", "e2e_latency_ms", "latency_ms"),
    "prefill_tokens_per_s": ("prefill_tok_s", "prefill_throughput"),
    "out_tok_s_gpu": ("output_tput_per_gpu", "tokens_per_s_per_gpu", "throughput_per_gpu"),
    "out_tok_s": ("output_throughput", "output_tokens_per_s", "throughput_tok_s", "output_tok_s"),
    "measured_on": ("date", "timestamp", "run_date"),
    "row_id": ("id", "run_id"),
}
"""Columns of tables of serving runs, and other names of each."""


def _renamed(record: Record) -> Record:
    """A row of a table of serving runs with our names of its columns; a column that it has twice stays.

    Times in seconds become milliseconds; a single accelerator is TP 1 where nothing is said of the plan.
    """
    plain = {re.sub(r"[\s-]+", "_", str(key).strip().lower()): cell for key, cell in record.items()}
    for key in [key for key in plain if key.endswith(("_s", "_sec", "_seconds")) and "per" not in key]:
        stem, _, _ = key.rpartition("_")
        if any(f"{stem}_ms" in (name, *others) for name, others in _COLUMNS.items()):
            plain.setdefault(f"{stem}_ms", _milliseconds(plain.pop(key)))
    for name, others in _COLUMNS.items():
        found = next((other for other in others if other in plain), None)
        if found is not None and name not in plain:
            plain[name] = plain.pop(found)
    if "tp" not in plain and plain.get("gpus") in (1, "1", 1.0):
        plain["tp"] = 1
    if isinstance(plain.get("measured_on"), str):
        plain["measured_on"] = plain["measured_on"][:10]
    return plain


_OWN = {"model", "accelerator", "input_tokens", "output_tokens"}
_LOADS = ("concurrency", "request_rate", "sessions")
_SERVING = {"model", "system", "framework", "precision", "isl", "osl", "concurrency", "tp"}
_NEAR = 3  # columns that a record may lack to be near to a form

_READERS: tuple[tuple[set[str], Reader], ...] = (
    (_SERVING, serving),
    ({"model", "hw", "precision", "isl", "osl", "conc"}, inferencemax),
    ({"model", "system", "quant", "framework", "tg_tok_s"}, llama_bench),
    ({"model_id", "runtime_id", "hardware_id", "context_tokens", "metrics"}, flat),
)
