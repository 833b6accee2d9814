"""One file of measurements by the table of forms: its runs in our fields and units, what was not used of it,
and what it says nothing of; and the files of folders and archives."""

from __future__ import annotations

import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from mantile.library.brief import Brief
from mantile.library.clock import Clock
from mantile.library.documents import MAX_BYTES, read_text
from mantile.library.errors import InputError, quoted
from mantile.library.models import known_models
from mantile.measured.clients import recipes
from mantile.measured.forms import LARGEST, Cells, Form, cells_of, form_of
from mantile.measured.metric_columns import why_unread
from mantile.measured.recipes import ClientFlags
from mantile.measured.runs import Metrics
from mantile.measured.spellings import find_accelerator, find_model
from mantile.measured.syntax import records_of, syntax_of

MOST_FILES = 10_000  # of one folder or archive
MOST_BYTES = 2**30  # of one archive, unpacked
ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
ASKED = (
    *("model", "accelerator", "gpus", "framework", "framework_version", "weights_dtype", "kv_dtype"),
    *("tp", "pp", "ep", "dp", "attention_dp", "speculation"),
    *(
        f"{side}_{name}"
        for side in ("prefill", "decode")
        for name in ("tp", "ep", "attention_dp", "workers", "gpus")
    ),
    *("input_tokens", "output_tokens", "input_tokens_asked", "output_tokens_asked", "length_range_ratio"),
    *("depth_tokens", "concurrency", "request_rate", "prompts", "prompts_per_slot", "completed", "failed"),
    *("in_flight", "duration_s", "acceptance_length", "prefix_hit_rate", "image", "date"),
)
"""What was asked and how it ran, in the order of a table."""
_TIMES = tuple(
    f"{time}{statistic}_s"
    for time in ("ttft", "tpot", "itl", "e2e")
    for statistic in ("", "_p50", "_p90", "_p95", "_p99")
)
FIGURES = (
    *_TIMES,
    *("output_tokens_per_s", "output_tokens_per_s_per_accelerator", "input_tokens_per_s"),
    *("input_tokens_per_s_per_accelerator", "total_tokens_per_s", "requests_per_s"),
    *("prefill_s", "prefill_tokens_per_s", "kv_tokens", "weights_bytes", "peak_memory_bytes", "power_w"),
)
"""What was measured, SI."""
_DECIDES = {
    "model": "--model",
    "accelerator": "--gpu",
    "framework": "--engine",
    "weights_dtype": "--weights-dtype",
    "tp": "--tp",
    "input_tokens": "--isl",
    "output_tokens": "--osl",
}
"""Without these no run is predicted; the flag that states each."""
_OTHERS = {"concurrency": "--concurrency", "kv_dtype": "--kv-dtype", "prompts": "--prompts"}
_ALSO = ("framework_version", "kv_dtype", "prompts", "length_range_ratio")
_WORKERS = ("prefill_workers", "decode_workers")
_NAMES = ("id", "row_id", "run_id")
_TEXTS = (
    *("model", "accelerator", "framework", "framework_version", "weights_dtype", "kv_dtype", "speculation"),
    *("image", "date", "client_line", "ratio_meaning", "apart", "attention_over_ranks", "attention_dp"),
    *("prefill_attention_dp", "decode_attention_dp"),
)
"""Fields that hold words, or yes and no."""
_MAY_BE_0 = (
    *("completed", "failed", "depth_tokens", "range_ratio", "length_range_ratio", "prompts_per_slot"),
    *("prefix_hits", "prefix_hit_rate", "accepted_drafts"),
)
"""Numbers that may be 0; of others a 0 says that nobody knows them."""
_PLAN = ("tp", "pp", "ep", "dp", "attention_dp")
_WORDS = ("kv_dtype", "weights_dtype", "speculation")
"""What is taken as it is stated, in the words of a scenario."""


@dataclass(frozen=True, repr=False)
class MeasuredRow(Brief):
    """A run as a file has it.

    Args:
        id: of the run.
        fields: what was asked and how it ran, by the names of `ASKED`; only what is known.
        metrics: what was measured, by the names of `FIGURES`, SI; means unless the name has p50, p90, p95 or
            p99. ITL is the time between chunks of the stream, which is not TPOT.
        notes: what that assumes.
        excluded: why the run cannot be compared; empty where it can.
    """

    id: str
    fields: Mapping[str, Any]
    metrics: Mapping[str, float]
    notes: tuple[str, ...] = ()
    excluded: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For --json: every field, null where nobody knows it."""
        return {
            "id": self.id,
            **{name: self.fields.get(name) for name in ASKED},
            "metrics": {name: self.metrics.get(name) for name in FIGURES},
            "assumptions": list(self.notes),
            "excluded": self.excluded or None,
        }


@dataclass(frozen=True, repr=False)
class Read(Brief):
    """What one file of measurements became.

    Args:
        file: its name; of one in an archive behind that of the archive.
        form: id of its form in `mantile.measured.forms.form_table`, or what else it is.
        runs: in the order of the file.
        unread: keys and columns that are not used, with the reason.
        missing: fields that it says nothing of, in any run.
        rejected: records that could not be read: id and reason.
        keys: the key of the file behind each field.
    """

    file: str
    form: str
    runs: tuple[MeasuredRow, ...]
    unread: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    rejected: tuple[tuple[str, str], ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def not_compared(self) -> dict[str, str]:
        """Keys of figures that no prediction stands beside, with the reason."""
        of_figures = {key: why_unread(key) for name, key in self.keys.items() if name in FIGURES}
        compared = {self.keys[name] for name in self.keys if name in Metrics.model_fields}
        known = "not among the metrics of a run"
        return {
            key: known if why in ("not known", "another column holds the same") else why
            for key, why in of_figures.items()
            if key not in compared
        }

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "file": self.file,
            "form": self.form,
            "runs": [run.to_dict() for run in self.runs],
            "unread": list(self.unread),
            "because": dict(self.unread),
            "missing": list(self.missing),
            "rejected": [{"id": name, "reason": reason} for name, reason in self.rejected],
        }


@dataclass(frozen=True)
class Stated:
    """What is stated beside files.

    Args:
        fields: by flags; these count where a file is silent, that of the model always.
        lines: by launch line and client's line; these count where a file is silent.
        scenario: further fields of a scenario that the launch line says.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, Any] = field(default_factory=dict)
    scenario: Mapping[str, Any] = field(default_factory=dict)

    @property
    def in_tables(self) -> dict[str, Any]:
        """What lines state, as columns of a table of runs."""
        named = {name.removesuffix("_asked"): value for name, value in self.lines.items()}
        columns = (*_DECIDES, *_PLAN, "kv_dtype", "concurrency")
        return {name: value for name, value in named.items() if name in columns and value != "checkpoint"}


def stated(launched: str | None = None, client: str | None = None, **fields: Any) -> Stated:
    """What is stated of files that do not say it.

    Args:
        launched: launch line of the server, as `read_launch` takes it.
        client: line of the client: vllm bench serve ..., and others.
        fields: of a scenario: accelerator, tp, model, weights_dtype, framework, input_tokens, ...
    """
    from mantile.library.scenario_fields import SCENARIO_FIELDS, field_name

    given = {field_name(name): value for name, value in fields.items() if value is not None}
    unknown = next((name for name in given if name not in SCENARIO_FIELDS and name not in ASKED), None)
    if unknown is not None:
        raise InputError(f"{unknown}: expected a field of a run, one of {', '.join(ASKED)}")
    lines: dict[str, Any] = {}
    scenario: dict[str, Any] = {}
    if client is not None:
        from mantile.measured.client_lines import read_client

        lines |= read_client(client)
    if launched is not None:
        from mantile.library.launch import read_launch

        model = {"model": given["model"]} if "model" in given else {}
        launch = read_launch(launched, True, **model).fields
        lines |= {"tp": 1, "weights_dtype": "checkpoint"}
        lines |= {name: value for name, value in launch.items() if name in ASKED}
        scenario = {name: value for name, value in launch.items() if name not in ASKED}
    return Stated(given, lines, scenario)


def recognised(name: str, text: str, beside: Stated) -> tuple[Read, Form] | None:
    """A file in a form of the table; None for others.

    Raises:
        InputError: naming the file, where it is empty, or broken.
    """
    if not text.strip():
        raise InputError(
            f"{name}: no measured runs in it, nothing at all; expected the output of a benchmark, or a table"
        )
    with Clock(name) as clock:
        syntax = syntax_of(text)
        if syntax == "csv" and not _may_be_form(text):
            return None
        try:
            records = records_of(text, syntax, name, clock)
        except InputError as error:
            if syntax == "json":
                raise InputError(f"{error}; expected the whole output of a benchmark") from None
            raise
        form = form_of(records[0]) if records else None
        if form is None:
            return None
        if form.refused:
            raise InputError(f"{name}: {form.refused}")
        return _read(name, form, records, beside, clock), form


def _may_be_form(text: str) -> bool:
    """Whether the heading of a table is one of a form: rows of other tables are read by `load`."""
    heading = dict.fromkeys(text.lstrip("\ufeff").partition("\n")[0].strip().replace('"', "").split(","))
    return "Metric" in heading or form_of(heading) is not None


def _read(name: str, form: Form, records: Sequence[Any], beside: Stated, clock: Clock) -> Read:
    """The runs of a file in a form."""
    runs: list[MeasuredRow] = []
    unread: dict[str, str] = {}
    rejected: list[tuple[str, str]] = []
    keys: dict[str, str] = {}
    for record in _each(form, records):
        clock.check()
        number = len(runs) + len(rejected) + 1
        named = next((record[key] for key in _NAMES if record.get(key)), f"record {number}")
        if not form.each and not form.fits(record):
            rejected.append((f"record {number}", f"is not of the form {form.id}, as the others are"))
            continue
        try:
            cells = cells_of(form, record)
        except InputError as error:
            rejected.append((str(named), str(error)))
            continue
        unread |= {key: why for key, why in cells.unread.items() if key not in unread and key not in _NAMES}
        keys |= cells.keys
        runs.append(_run(str(named), form, cells, beside))
    if not runs:
        first = f"; the first: {': '.join(rejected[0])}" if rejected else ""
        raise InputError(f"{name}: no measured run in it{first}")
    for record in filter(form.fits, records) if form.each else ():
        unread |= {
            f"{key}.*" if isinstance(record[key], Mapping) else key: "of the whole file"
            for key in record
            if key != form.each
        }
    return Read(name, form.id, tuple(runs), unread, missing_of(runs), tuple(rejected), keys)


def _each(form: Form, records: Sequence[Any]) -> Iterator[Any]:
    for record in records:
        held = record.get(form.each) if form.each else [record]
        yield from (one for one in held if isinstance(one, Mapping)) if isinstance(held, list) else ()


def missing_of(runs: Sequence[MeasuredRow]) -> tuple[str, ...]:
    """What no run of a file says."""
    known = {name for run in runs for name in run.fields} | {name for run in runs for name in run.metrics}
    apart = any("decode_gpus" in run.fields for run in runs)
    wanted = [*_DECIDES, "concurrency", *_ALSO, "ttft_s", "tpot_s", "output_tokens_per_s"]
    also_known = {
        "concurrency": {"request_rate"},
        "output_tokens_per_s": {"output_tokens_per_s_per_accelerator"},
        "prompts": {"prompts_per_slot"},
        "tp": {"decode_tp"} if apart else set[str](),
    }
    return tuple(name for name in wanted if not known & {name, *also_known.get(name, ())})


# --- one run ------------------------------------------------------------------------------------------------


def _run(identifier: str, form: Form, cells: Cells, beside: Stated) -> MeasuredRow:
    """A run with what follows from its figures and what is stated beside it."""
    given, notes = dict(cells.fields), list(cells.notes)
    lines = dict(beside.lines)
    if given.get("client_line") and not beside.lines:
        from mantile.measured.client_lines import read_client

        try:
            lines = read_client(str(given["client_line"]))
        except InputError as error:
            notes.append(f"the line of the client in the file is not read: {error}")
    for name, value in beside.fields.items():
        found = given.get(name)
        counts = found is None or name == "model" or (name == "accelerator" and not _known_chip(str(found)))
        if found is not None and found != value:
            verb = "is" if counts else "is not"
            notes.append(f"{name} {verb} {value}, as stated: the file has {found}")
        given |= {name: value} if counts else {}
    given = {key: value for key, value in lines.items() if value is not None} | given
    _require_numbers(given, notes)
    _stored(given, notes)
    for step in (_load, _lengths, _single_stream, _devices, _rates, _waits):
        step(given, form, notes)
    assumed = {name: word for name, word in form.assumes.items() if given.get(name) is None}
    notes += [f"{name} is taken to be {word}: the file does not say it" for name, word in assumed.items()]
    excluded = cells.apart or _excluded({**given, **assumed})
    fields = {key: _plain(given[key]) for key in ASKED if given.get(key) is not None}
    metrics = {key: float(given[key]) for key in FIGURES if isinstance(given.get(key), int | float)}
    if not metrics and not excluded:
        excluded = "nothing that was measured is in it"
    return MeasuredRow(identifier, fields, metrics, tuple(dict.fromkeys(notes)), excluded)


def _require_numbers(given: dict[str, Any], notes: list[str]) -> None:
    """Leave out what is no number from 0 on where one is expected, and zeros of what is never 0."""
    for name, value in list(given.items()):
        if name in _TEXTS or value is None:
            continue
        number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < LARGEST
        if not number and not (name == "request_rate" and value in (inf, "inf", "trace")):
            given[name] = None
            notes.append(f"{name} is {quoted(value)}: expected a number, left out")
        elif value == 0 and name not in _MAY_BE_0:
            given[name] = None
            notes += [f"{name} is 0 in the file: not measured"] if name in FIGURES else []


def _stored(given: dict[str, Any], notes: list[str]) -> None:
    """The data type that the name of a checkpoint says; a server may quantise what is stored in 16 bits."""
    if given.get("weights_dtype") is not None or not given.get("model"):
        return
    with suppress(InputError):
        found = find_model(str(given["model"]))
        word = found.weights_dtype or known_models().stored[found.id]
        if word not in ("bf16", "fp16"):
            given["weights_dtype"] = word
            notes.append(f"weights in {word}: as the checkpoint of that name has them")


def _known_chip(name: str) -> bool:
    """Whether the library has a chip that a file names."""
    try:
        return bool(find_accelerator(name.partition(",")[0]))
    except InputError:
        return False


def _client(given: Mapping[str, Any], form: Form) -> ClientFlags:
    """What the client of a public benchmark did, by the table of recipes."""
    return recipes().client(str(given.get("framework")), form.name) or ClientFlags()


def _load(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """Prompts, concurrency and rate."""
    rate = given.get("request_rate")
    if isinstance(rate, str) or (isinstance(rate, float) and rate == inf):
        given["request_rate"] = None
    completed, failed = given.get("completed"), given.get("failed") or 0
    if given.get("prompts") is None and completed:
        given["prompts"] = None if form.id.endswith("-metrics") else completed + failed
    if failed and completed:
        notes.append(f"{failed} of {failed + completed} requests failed; figures are of those that succeeded")
    if given.get("concurrency") and (client := _client(given, form)).prompts_per_slot:
        given.setdefault("prompts_per_slot", client.prompts_per_slot)
    at_once = rate in (inf, "inf")
    if given.get("concurrency") is None and not given.get("request_rate"):
        if at_once and given.get("prompts"):
            given["concurrency"] = given["prompts"]
            notes.append("no cap on concurrency and no rate: all prompts are sent at once")
        elif given.get("in_flight"):
            given["concurrency"] = max(1, round(float(given["in_flight"])))
            notes.append("concurrency is the mean of requests in flight, as measured; the cap is not stated")
    if given.get("prompts_per_slot") is None and given.get("prompts") and given.get("concurrency"):
        given["prompts_per_slot"] = given["prompts"] / given["concurrency"]


def _lengths(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """Mean lengths as they ran; as asked where nobody counted them."""
    completed, drawn = given.get("completed"), _client(given, form).drawn_from
    ratio, meaning = given.get("range_ratio"), given.get("ratio_meaning") or form.ratio
    readings = {"around": 1.0, "below": 1.0} if ratio is None else {"around": 1.0, "below": (1 + ratio) / 2}
    for side in ("input", "output"):
        total, asked = given.get(f"{side}_tokens_total"), given.get(f"{side}_tokens_asked")
        if given.get(f"{side}_tokens") is None and total and completed:
            given[f"{side}_tokens"] = _plain(total / completed)
        if given.get(f"{side}_tokens") is None and asked and drawn is not None:
            given[f"{side}_tokens"] = max(1, round(asked * (1 + drawn) / 2))
        ran = given.get(f"{side}_tokens")
        if side == "input" and meaning == "either" and ratio not in (None, 0, 1) and ran and asked:
            meaning = min(readings, key=lambda reading: abs(readings[reading] * asked - ran))
        if ran is None and asked and meaning != "either":
            given[f"{side}_tokens"] = max(1, round(asked * (readings[meaning] if meaning else 1)))
            notes.append(f"{side}_tokens as asked: how many there were is not counted")
    if ratio is not None:
        if meaning == "either":
            meaning = "below" if ratio == 1 else "around" if ratio == 0 else None
        if meaning is None:
            notes.append("the range ratio has two readings: state input_tokens, output_tokens or the release")
        else:
            given["length_range_ratio"] = 1 - ratio if meaning == "below" else 2 * ratio / (1 + ratio)
    elif drawn is not None:
        given["length_range_ratio"] = round(1 - drawn, 9)


def _plain(value: Any) -> Any:
    """A whole number as such."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _single_stream(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """A prompt, generation, or both of one stream."""
    prompt, generated, rate = (
        given.get(key) or 0 for key in ("prompt_tokens", "generated_tokens", "stream_tokens_per_s")
    )
    if not rate or not (prompt or generated):
        return
    seconds = given.get("stream_s") or (prompt + generated) / rate
    if prompt and generated:
        given["e2e_s"] = seconds
        given |= {"input_tokens": prompt, "output_tokens": generated}
        notes.append("prompt and generation in one time: neither rate is known")
    elif prompt:
        given |= {"input_tokens": prompt, "prefill_tokens_per_s": rate, "prefill_s": seconds}
    else:
        given["tpot_s"], given["output_tokens"] = 1 / rate, generated
        given["input_tokens"] = given.get("depth_tokens") or None


def _devices(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """Accelerators: a list of the same names is so many of them; those of prefill and decode workers."""
    names = [name.strip() for name in str(given.get("accelerator") or "").split(",") if name.strip()]
    if len(names) > 1 and len(set(names)) == 1:
        given |= {"accelerator": names[0], "gpus": len(names)}
    if form.rows == "llama-bench":
        given.setdefault("gpus", 1)
        given["tp"] = 1
        given["pp"] = given["gpus"]
    ranks, groups = given.get("tp"), given.get("server_dp")
    if groups and groups > 1:
        over = given.get("attention_over_ranks") and ranks and ranks % groups == 0
        given |= {"tp": ranks // groups, "attention_dp": groups} if over and ranks else {"dp": groups}
    if form.rows != "inferencex":
        return
    apart = str(given.pop("apart", "")).lower() == "true"
    for name in ("attention_dp", "prefill_attention_dp", "decode_attention_dp"):
        if isinstance(given.get(name), str | bool):
            given[name] = str(given[name]).lower() == "true"
    if not apart:
        for name in ("tp", "ep", "attention_dp"):
            given[name] = given.get(name) or given.get(f"decode_{name}")
        if given["attention_dp"] is True:
            ranks = given["ep"] if (given["ep"] or 1) > 1 else given["tp"]
            given |= {"attention_dp": ranks, "tp": 1}
            notes.append("attention-DP without a number: over all ranks")
        else:
            given["attention_dp"] = 1
        given["gpus"] = (given.get("tp") or 0) * (given.get("attention_dp") or 0) or None
        for side in ("prefill", "decode"):
            for name in ("tp", "ep", "attention_dp", "workers", "gpus"):
                given.pop(f"{side}_{name}", None)
        return
    given["apart"] = True
    rates = [given.get(f"{side}_tokens_per_s_per_accelerator") or 0 for side in ("output", "input")]
    lengths = [given.get(f"{side}_tokens_asked") or 0 for side in ("input", "output")]
    if not given.get("decode_workers") and all(rates) and all(lengths) and given.get("prefill_tp"):
        total = given["prefill_tp"]
        share = rates[0] * lengths[0] / (rates[0] * lengths[0] + rates[1] * lengths[1])
        split = round(total * share)
        given |= {"prefill_gpus": split, "decode_gpus": total - split, "gpus": total}
        given |= {"prefill_tp": None, "decode_tp": None, "prefill_workers": None, "decode_workers": None}
        given |= {"prefill_attention_dp": None, "decode_attention_dp": None}
        return
    for side in ("prefill", "decode"):
        count, total = given.get(f"{side}_workers"), given.get(f"{side}_gpus")
        if count and total and total % count == 0:
            ranks, over = total // count, given.get(f"{side}_attention_dp") is True
            given[f"{side}_tp"] = 1 if over else ranks
            given[f"{side}_attention_dp"] = ranks if over else 1
            given[f"{side}_ep"] = min(given.get(f"{side}_ep") or 1, ranks)
    if given.get("prefill_gpus") and given.get("decode_gpus"):
        given["gpus"] = given["prefill_gpus"] + given["decode_gpus"]


def _rates(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """Throughput of the deployment where that of decode workers is stated, acceptance and cache."""
    of_one = given.get("output_tokens_per_s_per_accelerator")
    if of_one and given.get("apart") and given.get("decode_gpus"):
        given["output_tokens_per_s"] = of_one * given["decode_gpus"]
        given["output_tokens_per_s_per_accelerator"] = None
    if given.get("kv_blocks") and given.get("kv_block_tokens"):
        given["kv_tokens"] = given["kv_blocks"] * given["kv_block_tokens"]
    if given.get("prefix_queries"):
        given["prefix_hit_rate"] = (given.get("prefix_hits") or 0) / given["prefix_queries"]
    if given.get("drafts"):
        given["acceptance_length"] = 1 + (given.get("accepted_drafts") or 0) / given["drafts"]
    if given.get("speculation") in ("none", "None"):
        given["speculation"] = None
    if day := re.match(r"(20\d\d)-?([01]\d)-?([0-3]\d)", str(given.get("date") or "")):
        given["date"] = "-".join(day.groups())


def _waits(given: dict[str, Any], form: Form, notes: list[str]) -> None:
    """TPOT of what stands for it: a time per token with the first, or gaps that are one token each."""
    tokens, ttft = given.get("output_tokens"), given.get("ttft_s")
    decoding = (given.get("e2e_per_token_s") or 0) * (tokens or 0) - (ttft or inf)
    if given.get("tpot_s") is None and tokens and tokens > 1 and decoding > 0:
        given["tpot_s"] = decoding / (tokens - 1)
        notes.append("TPOT without the first token, of a time per token with it")
    gaps, total, completed = (given.get(key) or 0 for key in ("gaps", "output_tokens_total", "completed"))
    of_one_token = gaps and abs(gaps / max(1, total - completed) - 1) < 0.02
    if given.get("tpot_s") is None and given.get("itl_s") and of_one_token:
        given["tpot_s"] = given["itl_s"]
        notes.append("ITL is TPOT here: there are as many gaps as tokens after the first")


def row_of(run: MeasuredRow, form: Form, beside: Stated) -> dict[str, Any]:
    """A run as a row of the tables that `mantile.measured.dialects` reads.

    Args:
        form: of the file.
        beside: what is stated of it; formats of that are taken as they are.
    """
    held, given = {**form.assumes, **run.fields}, {**beside.lines, **beside.fields}
    row = {
        "model": held.get("model"),
        "system": held.get("accelerator"),
        "framework": held.get("framework"),
        "precision": held.get("weights_dtype"),
        "quant": held.get("weights_dtype"),
        "measured_on": held.get("date"),
        "source": form.name,
        "framework_version": held.get("framework_version"),
        "image": held.get("image"),
        "spec_decode": held.get("speculation"),
        "kv_dtype": held.get("kv_dtype"),
        "assumptions": run.notes,
        **{name: figure for name, figure in run.metrics.items() if name in Metrics.model_fields},
    }
    if form.rows == "llama-bench":
        row |= {"gpus": held.get("gpus"), "batch": 1, "depth": held.get("depth_tokens")}
        row |= {"prompt_len": held.get("input_tokens"), "gen_len": held.get("output_tokens")}
        row["pp_tok_s"] = run.metrics.get("prefill_tokens_per_s")
        row["tg_tok_s"] = 1 / run.metrics["tpot_s"] if "tpot_s" in run.metrics else None
        return {key: value for key, value in row.items() if value is not None}
    lengths = "_tokens_asked" if form.rows == "inferencex" else "_tokens"  # how those are drawn is known
    row |= {"isl": held.get(f"input{lengths}"), "osl": held.get(f"output{lengths}")}
    row |= {name: held.get(name) for name in ("concurrency", "request_rate", "tp", "pp", "ep")}
    row["dp_attention"] = held.get("attention_dp")
    row["concurrency"] = row["concurrency"] or ""
    if form.rows == "serving":
        row |= {"num_prompts": held.get("prompts"), "kv_dtype": held.get("kv_dtype") or ""}
        scenario = {name: held[name] for name in _PLAN if name in held}
        stated_words = {name: held.get(name) for name in _WORDS if given.get(name) == held.get(name)}
        scenario |= {name: word for name, word in stated_words.items() if word not in (None, "checkpoint")}
        row["spec_decode"] = None if "speculation" in scenario else held.get("speculation")
        row["length_range_ratio"] = held.get("length_range_ratio")
        row["scenario"] = {**beside.scenario, **scenario}
    elif held.get("decode_gpus"):
        row["mode"] = "disagg"
        for side in ("prefill", "decode"):
            row |= {
                f"{side}_num_workers": held.get(f"{side}_workers"),
                f"num_{side}_gpu": held[f"{side}_gpus"],
            }
            row |= {f"{side}_ep": held.get(f"{side}_ep")}
            row[f"{side}_dp_attention"] = (held.get(f"{side}_attention_dp") or 1) > 1
        row |= {"tp": held.get("decode_tp"), "ep": held.get("decode_ep")}
    return {key: value for key, value in row.items() if value is not None}


def _excluded(given: Mapping[str, Any]) -> str:
    """Why a run cannot be compared."""
    if given.get("completed") == 0:
        return "no request succeeded"
    if (given.get("acceptance_length") or 1) > 1 and not given.get("speculation"):
        accepted = given["acceptance_length"]
        return f"tokens were drafted ({accepted:g} a step); what drafts is not stated (--launched)"
    if given.get("apart") and not all(given.get(name) for name in _WORKERS):
        split = (given.get("prefill_gpus"), given.get("decode_gpus"))
        known = f"; by its rates {split[0]} accelerators prefill and {split[1]} decode" if all(split) else ""
        return f"expected how many prefill workers there are, and decode workers{known}"
    if given.get("prompt_tokens") and given.get("depth_tokens"):
        return "the prompt was timed behind tokens in the KV cache, which is not covered"
    lacks = [f"{name} ({flag})" for name, flag in _DECIDES.items() if given.get(name) is None]
    if given.get("apart"):
        lacks = [lack for lack in lacks if not lack.startswith("tp ")]
    single = given.get("stream_tokens_per_s")
    if single:
        lacks = [lack for lack in lacks if not lack.startswith(("input_", "output_"))]
    if given.get("concurrency") is None and given.get("request_rate") is None:
        lacks.append("concurrency or request_rate (--concurrency, --request-rate)")
    return f"not stated: {', '.join(lacks)}" if lacks else ""


# --- files --------------------------------------------------------------------------------------------------


def flag_of(name: str) -> str:
    """The flag that states a field; empty for one that none does."""
    return _DECIDES.get(name) or _OTHERS.get(name, "")


def is_many(path: Path) -> bool:
    """Whether a path is a folder or an archive of files."""
    return path.is_dir() or path.name.lower().endswith(ARCHIVES)


def texts_of(paths: Sequence[str | Path]) -> Iterator[tuple[str, str | InputError]]:
    """Name and text of each file of folders and archives; the error of one that is no text.

    Raises:
        InputError: naming what there is not, or holds no file.
    """
    if not paths:
        raise InputError(
            "expected a file, a folder or an archive of measurements; such as: mantile measured vllm.json"
        )
    for path in map(Path, paths):
        if path.is_dir():
            files = sorted(
                file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")
            )
            _require_few(path, len(files))
            yield from ((str(file), _text(file)) for file in files)
        elif path.name.lower().endswith(ARCHIVES) and path.is_file():
            yield from _packed(path)
        else:
            yield str(path), _text(path)


def _require_few(path: Path, files: int) -> None:
    if not files or files > MOST_FILES:
        found = f"{files:,} files" if files else "no file"
        raise InputError(f"{path}: {found} in it; expected 1 to {MOST_FILES:,} files of measurements")


def _text(path: Path) -> str | InputError:
    try:
        return read_text(path)
    except InputError as error:
        return (
            error if "UTF-8" not in str(error) else InputError(f"{error}; expected the output of a benchmark")
        )


def _packed(path: Path) -> Iterator[tuple[str, str | InputError]]:
    """The files of an archive; nothing is unpacked to disk."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                members = [one for one in archive.infolist() if not one.is_dir()]
                _require_small(path, [one.file_size for one in members])
                for one in members:
                    with archive.open(one) as opened:
                        yield _decoded(f"{path}/{one.filename}", opened.read(MAX_BYTES + 1))
            return
        with tarfile.open(path) as tar:
            held, unpacked = list[tarfile.TarInfo](), 0
            for inner in tar:
                held += [inner] if inner.isfile() else []
                unpacked += inner.size
                if unpacked > MOST_BYTES or len(held) > MOST_FILES:
                    break  # what is behind it is not unpacked to be looked at
            _require_small(path, [inner.size for inner in held])
            for inner in held:
                file = tar.extractfile(inner)
                yield _decoded(f"{path}/{inner.name}", file.read(MAX_BYTES + 1) if file else b"")
    except (
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
        tarfile.TarError,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
    ) as error:
        raise InputError(
            f"{path}: not an archive that can be read: {error}; expected .zip or .tar.gz"
        ) from error


def _require_small(path: Path, sizes: Sequence[int]) -> None:
    _require_few(path, len(sizes))
    if sum(sizes) > MOST_BYTES:
        raise InputError(f"{path}: {sum(sizes):,} bytes unpacked; expected at most {MOST_BYTES:,}")


def _decoded(name: str, data: bytes) -> tuple[str, str | InputError]:
    if len(data) > MAX_BYTES:
        return name, InputError(f"{name}: expected at most {MAX_BYTES:,} bytes")
    try:
        return name, data.decode("utf-8")
    except UnicodeDecodeError as error:
        return name, InputError(
            f"{name}: not UTF-8 text (byte {error.start}); expected the output of a benchmark"
        )
