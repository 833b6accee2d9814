"""The form of a file of measured runs, documented, with an example."""

from __future__ import annotations

import csv
from io import StringIO

from mantile.library.scenario_fields import SCENARIO_FIELDS

_METRICS = {
    "ttft_s": "mean time to first token; every time may also be in milliseconds: ttft_ms: 210",
    "ttft_p50_s": "its median",
    "ttft_p95_s": "its 95th percentile",
    "tpot_s": "mean time per output token after the first",
    "tpot_p50_s": "its median",
    "e2e_s": "mean time of a whole request",
    "prefill_s": "time of the prefill pass alone",
    "prefill_tokens_per_s": "tokens of the prompt over that time",
    "output_tokens_per_s": "of the whole deployment",
    "output_tokens_per_s_per_accelerator": "of one accelerator",
    "weights_bytes": "weights that an accelerator holds",
    "kv_tokens": "tokens for which the KV cache of a rank has room",
    "peak_memory_bytes": "memory of an accelerator in use at most",
}
"""What each metric is; at least one is needed."""
_ENVIRONMENT = {
    "framework_version": "release of the engine",
    "image": "container",
    "driver": "release of the driver",
    "flags": "of the launch line",
    "note": "anything else",
}
_ASKED = ("accelerator", "framework", "tp", "weights_dtype", "input_tokens", "output_tokens", "concurrency")
_EXAMPLE = {
    "id": "r0001",
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "framework": "vllm",
    "tp": 8,
    "weights_dtype": "bf16",
    "input_tokens": 922,
    "output_tokens": 922,
    "concurrency": 16,
}
_MEASURED = {"ttft_s": 0.21, "tpot_s": 0.0147}
_BEHIND = {"framework_version": "0.11.0", "source": "our own run", "date": "2026-11-20"}


def run_template(form: str) -> str:
    """A file of one run to change, with a line on each field.

    Args:
        form: csv, or yaml.

    Example:
        print(run_template("yaml"))
    """
    return _csv() if form == "csv" else _yaml()


def _csv() -> str:
    """One row; a table has no room for comments, so that its columns are told beside it."""
    text = StringIO()
    row = _EXAMPLE | _MEASURED | _BEHIND
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(row)
    writer.writerow(row.values())
    return text.getvalue()


def _yaml() -> str:
    lines = [
        "# Measured runs: mantile reconcile runs.yaml. A table, .csv, has the same names as columns.",
        "# A run is what was asked, the fields of a scenario, and what was measured.",
        "runs:",
    ]
    said = {
        "id": "a name of the run, once in the file",
        "model": "an id of `mantile list models`, a path or a hub id",
        **{name: SCENARIO_FIELDS[name].meaning for name in _ASKED},
    }
    for place, (name, value) in enumerate(_EXAMPLE.items()):
        lines.append(f"  {'-' if place == 0 else ' '} {name}: {value}  # {said[name]}")
    lines.append("    # further fields of a scenario may follow: `mantile estimate --help-all` has them")
    lines.append("    metrics:  # at least one of these")
    lines += _group(_METRICS, _MEASURED)
    lines.append("    environment:")
    lines += _group(_ENVIRONMENT, _BEHIND)
    lines.append(f"    source: {_BEHIND['source']}  # who measured")
    lines.append(f"    date: {_BEHIND['date']}")
    return "\n".join(lines) + "\n"


def _group(said: dict[str, str], example: dict[str, float] | dict[str, str]) -> list[str]:
    """Fields with a line on each; those that the example leaves out are comments."""
    return [
        f"      {name}: {example[name]}  # {text}" if name in example else f"      # {name}:  {text}"
        for name, text in said.items()
    ]
