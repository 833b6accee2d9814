"""An accelerator of your own, entered from its spec sheet: a skeleton to fill in, and a check of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mantile.library.documents import load, parse_yaml, read_text
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.profiles import Accelerator, data_folder, load_library, with_accelerator

# How many times the 16-bit peak a dense peak is at most. Half the bits run twice as fast, a quarter four
# times, on a B300 six times.
MOST_FP8, MOST_FP4 = 2.1, 6.5
PARTS = ("source", "date", "status", "confidence")
FACTS = {
    "id": "the name of the file without .yaml",
    "name": "what people call it",
    "vendor": "who makes it",
    "generation": "the family of chips that share its kernels",
    "version": "one that is raised with every changed fact",
}
FALLBACK = "or null with a note that says what is computed instead"

_HEAD = """\
# {id}, from its spec sheet.
# Fill in every null, then run `mantile list hardware add {id} --check`: it says what is still missing.
#
# A fact is a value with its unit and
#   source      where it was read: "title; page, table, section or figure; URL" of a document of its vendor,
#               or "who says it, citing whom"
#   date        the day it was read there, YYYY-MM-DD
#   status      datasheet: a document of the vendor was read; secondary: somebody else says it; measured;
#               fitted: to measurements; assumed: source or note gives the reason; defined: a convention
#   confidence  high: read in a primary source; medium: at second hand, or worked out from parts;
#               low: an excerpt, a guess
#   note        what a reader should know (may stay empty)
#   others      what other sources state, if they disagree: [{{value: 3072, source: "..."}}]
id: {id}
name: null  # as people say it
vendor: null
# Chips of one generation have the same kernels and share efficiency profiles. There are some for
# {generations}.
# Any other name will do; then the global profiles are used.
generation: null
version: "1"  # raise it with every changed fact
# year: 2026
# own_software: true  # it runs programs of its maker alone: the frameworks listed here are then refused
# system: my-server  # my-server.yaml beside this file, as `mantile list hardware show hgx-h100` shows one;
#                    # without a system the accelerator works alone
"""
# Comments, and the facts below each with their remarks. A fact that is not required is commented out.
_BLOCKS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        """
# Peaks, dense. Marketed peaks are often twice as high because they assume 2:4 sparsity: enter half of those.
# With fp32 accumulation. A value of null means that there is no native path for the format. The note must
# then say the fallback: "no fp4 path: fp4 weights are expanded, products run in bf16". A format whose line
# stays commented out runs like one without a path.
""",
        {
            "peak_bf16": "null if there is only fp16",
            "peak_fp16": "as bf16 if left out",
            "peak_fp8": "",
            "peak_fp4": "",
            "peak_int8": "",
            "peak_fp6": "",
            "peak_fp32": "",
            "peak_tf32": "",
        },
    ),
    (
        """
# Memory. Capacity in GiB (2^30 B), as the driver reports it. Vendors write GB, but DRAM is built in powers of
# two: 80 GB on a sheet are mostly 80 GiB; SRAM is mostly decimal. Bandwidths in GB/s (1e9 B/s).
# host_bandwidth leads to the memory of the host, per direction: half of what is stated for both directions.
# Leave it out where accelerator and host share one memory.
""",
        {
            "memory_capacity": "",
            "memory_visible": "what the driver shows of it; all of it if left out",
            "memory_free": "what the system leaves of that, when nothing else runs; all of it if left out",
            "memory_bandwidth": "",
            "host_bandwidth": "per direction",
        },
    ),
    (
        """
# Power of one accelerator. A price is given with an estimate: --set hardware.price_cloud=2.5 in USD per hour.
""",
        {"tdp": "", "idle": ""},
    ),
)


def write_skeleton(identifier: str, path: Path) -> None:
    """Write the skeleton of an accelerator's profile; no file is ever replaced.

    Raises:
        InputError: if the id cannot be one, or is taken in the library, or the file or its folder cannot be
            written.
    """
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", identifier):
        raise InputError(
            f"{identifier!r}: expected an id of lower-case letters, digits, . and -, such as my-chip"
        )
    if (data_folder("profiles") / "accelerators" / f"{identifier}.yaml").exists():
        raise InputError(
            f"{identifier} is in the library, see `mantile list hardware show {identifier}`; "
            "expected an id that is not taken"
        )
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    with replacing(path, overwrite=False) as temporary:
        temporary.write_text(skeleton(identifier), encoding="utf-8")


def skeleton(identifier: str) -> str:
    """The profile of an accelerator without values: required facts as null, the others commented out."""
    generations = dict.fromkeys(
        profile.generation for profile in load_library().efficiency if profile.generation
    )
    text = _HEAD.format(id=identifier, generations=", ".join(generations))
    for comment, facts in _BLOCKS:
        text += comment
        for field, remark in facts.items():
            unit, required = Accelerator.UNITS[field], Accelerator.model_fields[field].is_required()
            text += (
                f"{'' if required else '# '}{field}: {{value: null, unit: {unit}, source: null, date: null, "
                f'status: null, confidence: null, note: ""}}{f"  # {remark}" if remark else ""}\n'
            )
    return text + '\n# note: ""  # of the accelerator as a whole\n'


def check(path: Path) -> tuple[list[str], list[str]]:
    """What is missing or wrong in an accelerator's profile, and what looks doubtful in a complete one.

    Returns:
        problems: a text for each field; none if an estimate can use the profile.
        doubts: a text for each doubtful fact, once there are no problems.

    Raises:
        InputError: if it cannot be read as YAML.
    """
    problems = _problems(path)
    return problems, [] if problems else doubts(load(Accelerator, path))


def _problems(path: Path) -> list[str]:
    data = parse_yaml(read_text(path), str(path))
    if not isinstance(data, dict):
        return [f"expected a mapping of fields, found {type(data).__name__}"]
    missing = _missing(data)
    if data.get("id") not in (None, path.stem):
        missing["id"] = f"field id: expected {path.stem}, as the file is called, found {data['id']}"
    try:
        load(Accelerator, path)
        if not missing:
            with_accelerator(load_library(), path)
    except InputError as error:
        wrong = [line.removeprefix(f"{path}: ") for line in str(error).splitlines()]
        return [
            *missing.values(),
            *(line for line in wrong if not any(re.match(rf"field {field}\b", line) for field in missing)),
        ]
    return list(missing.values())


def _missing(data: dict[Any, Any]) -> dict[str, str]:
    """What is missing, by field."""
    missing = {
        field: f"field {field}: missing; expected {expected}"
        for field, expected in FACTS.items()
        if data.get(field) is None
    }
    for field, unit in Accelerator.UNITS.items():
        fact, is_peak = data.get(field), field.startswith("peak_")
        if fact is None and Accelerator.model_fields[field].is_required():
            missing[field] = f"field {field}: missing; expected a value in {unit}"
        elif isinstance(fact, dict):
            parts = [part for part in PARTS if fact.get(part) is None]
            if fact.get("value") is None and not (is_peak and fact.get("note")):
                parts.insert(0, f"value ({unit}{', dense; ' + FALLBACK if is_peak else ''})")
            if parts:
                missing[field] = f"field {field}: missing {', '.join(parts)}"
    return missing


def doubts(accelerator: Accelerator) -> list[str]:
    """Peaks of an accelerator that look as if they assumed sparsity."""
    sixteen_bit = (accelerator.peak_bf16, accelerator.peak_fp16)
    base = max(peak.value or 0 for peak in sixteen_bit if peak is not None)
    return [
        f"field {field}: {peak.value:g} TFLOP/s is {peak.value / base:.1f} times the 16-bit peak, "
        f"more than {most}: is it dense?"
        for field, peak, most in (
            ("peak_fp8", accelerator.peak_fp8, MOST_FP8),
            ("peak_fp4", accelerator.peak_fp4, MOST_FP4),
        )
        if peak.value is not None and peak.value > most * base
    ]
