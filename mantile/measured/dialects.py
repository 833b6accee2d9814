"""Measured runs in the forms others publish them, read as our own records; each run says what that assumes.

- serving: a table of serving runs with columns model, system, framework, precision, isl, osl, tp, ttft_ms,
  tpot_ms, ...; under other names as well, such as gpu_model, input_seq_len, tensor_parallel, mean_ttft_ms
- llama-bench: a table of single-user runs with columns model, quant, system, pp_tok_s, tg_tok_s, ...
- flat: records as `mantile records export` writes them, with model_id, runtime_id, hardware_id, metrics, ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import inf, prod
from typing import Any

from mantile.equations.inputs import EARLY, LAST
from mantile.library.documents import validate
from mantile.library.errors import InputError
from mantile.library.machines import card_of, find, hosts, runtimes
from mantile.library.profiles import Accelerator, Library, load_library
from mantile.library.scenario_fields import field_name
from mantile.measured.clients import recipes, sent, source_of
from mantile.measured.metric_columns import NOT_KNOWN, NoMetric, metric_column, metric_columns, plain_name
from mantile.measured.numbers import require_numbers, whole
from mantile.measured.rows import Row
from mantile.measured.runs import METRIC_COLUMNS, Metrics, Run, parse_run
from mantile.measured.spellings import (
    architecture_of,
    cache_format,
    find_accelerator,
    find_model,
    runner_engine,
    weight_formats,
)

Record = dict[str, Any]
Reader = Callable[[Row, str], Iterable[Run]]
"""A row and its name to the runs in it.

Raises:
    InputError: saying what is wrong with the row.
"""

EARLY_ENGINES = "2025-12"  # before it, kernels for experts were slower
CURRENT_ENGINES = "2026-05"  # since then, launches are shorter
NO_SPECULATION = (None, "", "none", "none_assumed", "none_inferred")
CHECKPOINT = "checkpoint"  # in place of a format of weights
PREDICTION = ("mtp", "mtp_suspected")
EARLY_BUILDS = "2024-06"  # llama.cpp before it: no CUDA graphs, no flash attention by default


def reader_of(record: Row, name: str) -> Reader:
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
    named = set(_renamed(record))
    if named >= _SERVING - ({"concurrency"} if "request_rate" in named else set()):
        return serving
    raise InputError(f"{name}: not a form of measured runs that is known; {_nearest(record)}")


def _nearest(record: Row) -> str:
    """What a record lacks of the form that it is nearest to; the columns of all forms where that is much."""
    forms = {
        "the fields of a run": (_OWN | {"concurrency"}) - set(record),
        "a table of serving runs": _SERVING - set(_renamed(record)),
    }
    form, lacks = min(forms.items(), key=lambda one: len(one[1]))
    if len(lacks) <= _NEAR:
        named = [f"{what} ({_COLUMNS[what][0]})" if what in _COLUMNS else what for what in sorted(lacks)]
        way_out = "; --model states it" if lacks == {"model"} else ""
        return f"it lacks of {form}: {', '.join(named)}{way_out}"
    columns = [", ".join(sorted(needs)) for needs, _ in _READERS]
    return (
        f"expected the fields of a run ({', '.join(sorted(_OWN))}, concurrency, metrics such as tpot_s), or "
        f"those of {'; or '.join(columns)}"
    )


def reader_named(form: str) -> Reader:
    """The reader for rows that were made of another form: serving, llama-bench or inferencex."""
    return llama_bench if form == "llama-bench" else serving


def names_field(record: Row, field: str) -> bool:
    """Whether a record has a column for a field of a run, under one of its names."""
    names = next((name for name, others in _COLUMNS.items() if field in (name, *others)), field)
    return bool({plain_name(column) for column in record} & {names, field, *_COLUMNS.get(names, ())})


def _own(record: Row, name: str) -> Iterable[Run]:
    """A run in our own form; its metrics may be columns under the names of others."""
    record.note(*record)
    others = metric_columns({key: cell for key, cell in record.items() if key not in METRIC_COLUMNS})
    spelled = {column for column, _ in others.values()}
    fields = {key: cell for key, cell in record.items() if key not in spelled}
    return [parse_run(fields | _figures(record, others), name)]


# --- serving runs -------------------------------------------------------------------------------------------


def serving(record: Row, name: str) -> Iterable[Run]:
    """A row of a table of serving runs, under any names of its columns."""
    return _serving(_renamed(record), name)


def _serving(record: Row, name: str) -> Iterable[Run]:
    """The same under our names of its columns."""
    require_numbers(record)
    if not record.get("concurrency") and not _rate(record):
        raise InputError("field concurrency is empty")
    stated = dict(record.get("scenario") or {})
    notes: list[str] = [*(record.get("assumptions") or ())]
    model = _model(record, notes)
    accelerator = find_accelerator(str(record["system"]))
    disaggregated = record.get("mode") == "disagg"
    metrics = _figures(record, metric_columns(record))
    if not metrics:
        raise _nothing_measured(record)
    fields: Record = {
        "model": model,
        **_deployment(record, accelerator, model, disaggregated, notes),
        **_weights(record, model, accelerator, notes),
        **_load(record),
        **stated,
    }
    fields["kv_dtype"] = _cache(record, fields, notes)
    fields |= sent(record, fields, metrics, notes)
    fields |= _release(record, model, notes)
    fields |= _speculation(record, notes)
    if not disaggregated:
        _apply_recipes(fields, record, notes)
    return [_run(name, record, fields | stated, metrics, notes)]


def _weights(record: Row, model: str, accelerator: Accelerator, notes: list[str]) -> Record:
    """Data types of the weights; none where they are as the checkpoint has them."""
    word = str(record["precision"])
    if word == CHECKPOINT:
        notes.append("weights as the checkpoint has them: the launch line states no other format")
        return {}
    engine = load_library().framework(str(record["framework"])).id
    experts = str(record.get("moe_precision", ""))
    return weight_formats(model, accelerator, engine, word, experts, notes)


def _load(record: Row) -> Record:
    """Requests in flight, or those that arrive per second."""
    held: Record = {"concurrency": whole(record["concurrency"])} if record.get("concurrency") else {}
    return held | _rate(record)


def _cache(record: Row, fields: Record, notes: list[str]) -> str:
    """Data type of the KV cache; of a table without a column for it that of the public scripts for this model
    with this engine, if there are any."""
    if "kv_dtype" not in record:
        for recipe in recipes().recipes:
            if recipe.set.kv_dtype and recipe.match.holds(fields, record):
                notes.append(
                    f"KV cache in {recipe.set.kv_dtype}: as in public scripts for this model and engine"
                )
                return recipe.set.kv_dtype
    return cache_format(record.get("kv_dtype"), notes)


def _nothing_measured(record: Row) -> InputError:
    """What to say of a row without a metric: which of its columns are near to one."""
    near = {column: metric_column(column) for column, cell in record.items() if cell not in ("", None)}
    told = [
        f"{record.columns.get(column, column)}: {place.why}"
        for column, place in near.items()
        if isinstance(place, NoMetric) and place is not NOT_KNOWN and column not in _COLUMNS
    ]
    expected = f"expected at least one of {', '.join(Metrics.model_fields)}"
    return InputError("; ".join([f"nothing that was measured: {expected}", *told]))


def _figures(record: Row, columns: Mapping[str, tuple[str, float]]) -> dict[str, float]:
    """Metrics of a row in SI units, by field.

    Args:
        columns: column and factor of each.

    Raises:
        InputError: naming a column that holds no number.
    """
    require_numbers(record, (column for column, _ in columns.values()))
    return {field: float(record[column]) * factor for field, (column, factor) in columns.items()}


def _rate(record: Row) -> Record:
    """Requests that arrive per second; nothing where all were handed over at once, or none is stated.

    Raises:
        InputError: for what is no rate.
    """
    stated = record.get("request_rate")
    if stated in ("", None) or str(stated).lower() in ("inf", "infinity"):
        return {}
    require_numbers({"request_rate": stated}, ("request_rate",))
    return {"request_rate": float(stated)} if float(stated) else {}


def _speculation(record: Row, notes: list[str]) -> Record:
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


def _release(record: Row, model: str, notes: list[str]) -> Record:
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
    record: Row, accelerator: Accelerator, model: str, disaggregated: bool, notes: list[str]
) -> Record:
    """Accelerator, framework and parallelism. Of a disaggregated run those of both kinds of workers; where a
    table states one worker alone, those of a decode worker."""
    framework = load_library().framework(str(record["framework"])).id
    fields: Record = {"accelerator": accelerator.id, "framework": framework}
    if disaggregated and "decode_num_workers" in record:
        return fields | _workers(record, "prefill") | {"decode": _workers(record, "decode")}
    plan = _plan(record, model, disaggregated, notes)
    if not disaggregated:
        return fields | plan | _replicas(record, plan, notes)
    notes.append(
        "disaggregated: prefill workers are taken to be like the decode worker, which takes all requests"
    )
    return fields | plan | {"decode": plan}


def _workers(record: Row, side: str) -> dict[str, int]:
    """The plan of prefill or decode workers, `dp` how many there are.

    A worker has the accelerators of its side over its workers: the TP that a table states is 1 where
    attention is data-parallel.

    Raises:
        InputError: where it is not stated how many workers there are, or accelerators are left over.
    """
    workers, accelerators = f"{side}_num_workers", f"num_{side}_gpu"
    count, total = (whole(record.get(name), 0) for name in (workers, accelerators))
    if not count or not total:
        raise InputError(
            f"fields {workers}, {accelerators}: expected how many {side} workers there are, and "
            "their accelerators"
        )
    if total % count:
        raise InputError(f"{accelerators} is {total}, which is no multiple of {workers}, {count}")
    ranks, experts = total // count, max(1, whole(record.get(f"{side}_ep")))
    groups = str(record.get(f"{side}_dp_attention", "")).lower() not in ("", "false", "0", "1", "none")
    record.note(f"{side}_tp")
    return {
        "tp": 1 if groups else ranks,
        "ep": min(experts, ranks),
        "attention_dp": ranks if groups else 1,
        "dp": count,
    }


def _replicas(record: Row, plan: dict[str, int], notes: list[str]) -> dict[str, int]:
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


def _plan(record: Row, model: str, disaggregated: bool, notes: list[str]) -> dict[str, int]:
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


def _apply_recipes(fields: Record, record: Row, notes: list[str]) -> None:
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


# --- single-user runs ---------------------------------------------------------------------------------------


def llama_bench(record: Row, name: str) -> Iterable[Run]:
    """A row of a table of single-user runs: generation from an empty or a filled context, and a prompt, each
    a run of its own."""
    require_numbers(record)
    notes: list[str] = [*(record.get("assumptions") or ())]
    model = _model(record, notes)
    accelerators, batch, depth = (
        whole(record.get(key), otherwise) for key, otherwise in (("gpus", 1), ("batch", 1), ("depth", 0))
    )
    chip = find_accelerator(str(record["system"]))
    framework = _build(load_library().framework(str(record["framework"])).id, record, notes)
    fields: Record = {
        "model": model,
        "accelerator": chip.id,
        "framework": framework,
        "pp": accelerators,
        "concurrency": batch,
        **weight_formats(model, chip, framework, str(record["quant"]), "", notes),
    }
    if record.get("kv_dtype"):
        fields["kv_dtype"] = load_library().datatype(str(record["kv_dtype"]), "kv").id
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
    if record.get("e2e_s") and record.get("prompt_len") and batch == 1 and not depth:
        lengths = {"input_tokens": whole(record["prompt_len"]), "output_tokens": whole(record["gen_len"])}
        metrics = {"e2e_s": float(record["e2e_s"])}
        runs.append(_run(f"{name}-pg", record, fields | lengths, metrics, notes))
    if not runs and record.get("pp_tok_s") and depth:
        raise InputError("the prompt was timed behind tokens in the KV cache, which is not covered")
    if not runs:
        raise InputError("neither generation with its length nor a prompt with its length")
    return runs


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _build(framework: str, record: Row, notes: list[str]) -> str:
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


def _model(record: Row, notes: list[str]) -> str:
    found = find_model(str(record["model"]))
    notes += [found.granted] if found.granted else []
    return found.id


# --- flat records -------------------------------------------------------------------------------------------


GIB = 2**30
FLAT = {"model_id", "runtime_id", "hardware_id", "context_tokens", "metrics"}
"""What a flat record has at least."""


def flat(record: Row, name: str) -> Iterable[Run]:
    """A run as one mapping: model_id, runtime_id, hardware_id, quant, context_tokens, metrics, env.

    `runtime_id` and `hardware_id` are records of the library, or names of an engine and an accelerator.
    """
    for key in ("metrics", "env", "parallelism"):
        if not isinstance(record.get(key) or {}, dict):
            raise InputError("fields metrics, env and parallelism: expected mappings")
    metrics, degrees, env = record.inside("metrics"), record.get("parallelism") or {}, record.inside("env")
    library, notes = load_library(), list[str]()
    model = find_model(str(record["model_id"]))
    notes += [model.granted] if model.granted else []
    words, _, release = str(record["runtime_id"] or "").partition(" ")
    runtime = find(runtimes(), words)
    engine, version = (words, release or None) if runtime is None else (runtime.engine, runtime.version)
    fields = {
        "model": model.id,
        "weights_dtype": model.weights_dtype,
        **_hardware_of(str(record["hardware_id"]), library),
        "framework": library.framework(engine).id if engine else None,
        "input_tokens": record["context_tokens"],
        "output_tokens": record.get("output_tokens"),
        "concurrency": record.get("concurrency"),
        "request_rate": metrics.get("request_rate"),
        **{field_name(degree): value for degree, value in degrees.items()},
    }
    chip, quant = library.accelerator(str(fields["accelerator"])), record.get("quant")
    if quant:
        del fields["weights_dtype"]
        fields |= weight_formats(model.id, chip, str(fields["framework"]), str(quant), "", notes)
    others = metric_columns({key: cell for key, cell in metrics.items() if key not in METRIC_COLUMNS})
    own = {key: metrics[key] for key in metrics if key in Metrics.model_fields}
    figures = own | _figures(metrics, others)
    held, ranks = figures.get("peak_memory_bytes"), prod(int(value) for value in degrees.values() if value)
    if held is not None and ranks > 1 and held > (chip.memory_capacity.value or inf) * GIB:
        figures["peak_memory_bytes"] = held / ranks
        notes.append("peak memory is of all GPUs together: one has less")
    environment = {
        "framework_version": version,
        "driver": env.get("driver"),
        "image": env.get("container_hash"),
        "note": env.get("os"),
    }
    return [
        parse_run(
            {key: value for key, value in fields.items() if value is not None}
            | {
                "id": str(record.get("run_id") or name)[:12],
                "metrics": figures,
                "environment": {key: str(value) for key, value in environment.items() if value},
                "source": "flat record",
                "date": str(record.get("timestamp_utc") or "")[:10] or None,
                "assumptions": notes,
            },
            name,
        )
    ]


def _hardware_of(name: str, library: Library) -> Record:
    """The fields of a run for a host of the library, or for an accelerator."""
    host = find(hosts(), name)
    if host is None:
        return {"accelerator": find_accelerator(name).id}
    if len(host.gpus) != 1:
        raise InputError(f"field hardware_id: {name}: expected a host with GPUs of one kind")
    return {"accelerator": card_of(host.gpus[0], library, f"host {host.hardware_id}.gpus").accelerator}


def _run(name: str, record: Row, fields: Record, metrics: Record, notes: list[str]) -> Run:
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
    "request_rate": ("rate", "qps"),
    "num_prompts": ("prompts", "num_requests", "completed"),
    "measured_on": ("date", "timestamp", "run_date"),
}
"""Columns of tables of serving runs, and other names of each."""


def _renamed(record: Row) -> Row:
    """A row of a table of serving runs with our names of its columns; a column that it has twice stays.

    A single accelerator is TP 1 where nothing is said of the plan.
    """
    plain = {plain_name(key): key for key in record}
    for name, others in _COLUMNS.items():
        found = next((other for other in others if other in plain), None)
        if found is not None and name not in plain:
            plain[name] = plain.pop(found)
    held = {**record}
    cells = {name: held[key] for name, key in plain.items()}
    if "framework" not in cells and (engine := runner_engine(str(cells.get("system")))) is not None:
        cells["framework"] = engine
    if "tp" not in cells and cells.get("gpus") in (1, "1", 1.0):
        cells["tp"] = 1
    if day := re.match(r"\d{4}-\d\d-\d\d", str(cells.get("measured_on", ""))):
        cells["measured_on"] = day.group()  # without the time
    return Row(cells, plain, record.read)


_OWN = {"model", "accelerator", "input_tokens", "output_tokens"}
_LOADS = ("concurrency", "request_rate", "sessions")
_SERVING = {"model", "system", "framework", "precision", "isl", "osl", "concurrency", "tp"}
_NEAR = 3  # columns that a record may lack to be near to a form

_READERS: tuple[tuple[set[str], Reader], ...] = (
    (_SERVING, serving),
    ({"model", "system", "quant", "framework", "tg_tok_s"}, llama_bench),
    (FLAT, flat),
)
