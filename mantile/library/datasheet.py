"""An accelerator of one's own, entered from its spec sheet: a skeleton to fill in, and what a filled one still lacks."""

from __future__ import annotations

import re
from pathlib import Path

from mantile.library.documents import load, parse_yaml, read_text
from mantile.library.errors import InputError
from mantile.library.profiles import Accelerator, data_folder, load_library, with_accelerator

MOST_FP8, MOST_FP4 = (
    2.1,
    6.5,
)  # times the 16-bit peak: half the bits run twice as fast, a quarter four times, on a B300 six times
PARTS = ("source", "date", "status", "confidence")
FACTS = {
    "id": "the name of the file without .yaml",
    "name": "what people call it",
    "vendor": "who makes it",
    "generation": "the family of chips that share its kernels",
    "version": "one that is raised with every changed figure",
}
FALLBACK = "or null with a note that says what is computed instead"

_HEAD = """\
# {id}, from its spec sheet. Fill in every null, then run `mantile hardware add {id} --check`: it says what is
# still missing.
#
# A figure is a value with its unit and
#   source      where it stands: the document and its edition, a page, a file and its commit
#   date        the day it was read there, YYYY-MM-DD
#   status      datasheet: the vendor states it; measured; fitted: to measurements; assumed: nobody states it;
# defined: a convention   confidence  high: read in a primary source; medium: at second hand, or worked out
# from parts; low: an excerpt, from memory, a guess   note        what a reader should know (may stay empty)
# others      what other sources state, if they disagree: [{{value: 3072, source: "..."}}]
id: {id}
name: null  # as people say it
vendor: null
generation: null  # of chips with the same kernels: they share efficiency profiles. There are some for {generations}.
                  # Any other name will do: the global ones hold then.
version: "1"  # raise it with every changed figure
# year: 2026
# system: my-server  # a file my-server.yaml beside this one, like what `mantile hardware show hgx-h100`
# shows; without, it works alone
"""
_BLOCKS: tuple[tuple[str, dict[str, str]], ...] = (
    (
        """
# Peaks, dense: marketed figures are often twice as high because they assume 2:4 sparsity; enter half of
# those. With fp32 accumulation. A value of null means that there is no native path for the format. The note
# must then say the fallback: "no fp4 path: fp4 weights are expanded, products run in bf16". A format whose
# line stays commented out runs like one without a path.
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
# two: a sheet's 80 GB is mostly 80 GiB; SRAM is mostly decimal. Bandwidths in GB/s (1e9 B/s). host_bandwidth
# leads to the memory of the host, per direction: half of a figure that is stated for both; left out where
# memory is one.
""",
        {"memory_capacity": "", "memory_bandwidth": "", "host_bandwidth": "per direction"},
    ),
    (
        """
# Power of one accelerator. Its price is given with an estimate: --set hardware.price_cloud=2.5 in USD per
# hour.
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
            f"{identifier} is in the library, see `mantile hardware show {identifier}`; expected an id of its own"
        )
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    text = skeleton(identifier)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} exists and is left as it is") from None
    except OSError:
        path.unlink(missing_ok=True)  # nothing half-written stays
        raise


def skeleton(identifier: str) -> str:
    """The profile of an accelerator with every value left open: what is required as null, the rest commented out."""
    generations = dict.fromkeys(
        profile.generation for profile in load_library().efficiency if profile.generation
    )
    lines = [_HEAD.format(id=identifier, generations=", ".join(generations))]
    for words, figures in _BLOCKS:
        lines.append(words)
        for field, remark in figures.items():
            line = (
                f"{field}: {{value: null, unit: {Accelerator.UNITS[field]}, source: null, date: null, status: null, confidence: null, "
                f'note: ""}}{f"  # {remark}" if remark else ""}\n'
            )
            lines.append(line if Accelerator.model_fields[field].is_required() else f"# {line}")
    return "".join(lines) + '\n# note: ""  # of the accelerator as a whole\n'


def check(path: Path) -> tuple[list[str], list[str]]:
    """What is missing or wrong in an accelerator's profile, field by field; nothing if an estimate can use it. Then what looks doubtful.

    Raises:
        InputError: if it cannot be read as YAML.
    """
    found = _problems(path)
    return found, [] if found else doubts(load(Accelerator, path))


def _problems(path: Path) -> list[str]:
    data = parse_yaml(read_text(path), str(path))
    if not isinstance(data, dict):
        return [f"expected a mapping of fields, found {type(data).__name__}"]
    missing = {
        field: f"field {field}: missing; expected {words}"
        for field, words in FACTS.items()
        if data.get(field) is None
    }
    for field, unit in Accelerator.UNITS.items():
        figure = data.get(field)
        if figure is None and Accelerator.model_fields[field].is_required():
            missing[field] = f"field {field}: missing; expected a figure in {unit}"
        elif isinstance(figure, dict):
            parts = [part for part in PARTS if figure.get(part) is None]
            if figure.get("value") is None and not (field.startswith("peak_") and figure.get("note")):
                parts.insert(
                    0, f"value ({unit}{', dense; ' + FALLBACK if field.startswith('peak_') else ''})"
                )
            if parts:
                missing[field] = f"field {field}: missing {', '.join(parts)}"
    if data.get("id") not in (None, path.stem):
        missing["id"] = f"field id: expected {path.stem} as the file is called, found {data['id']}"
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


def doubts(chip: Accelerator) -> list[str]:
    """Peaks of an accelerator that look as if they assumed sparsity."""
    full = max(peak.value or 0 for peak in (chip.peak_bf16, chip.peak_fp16) if peak is not None)
    return [
        f"field {field}: {peak.value:g} TFLOP/s is {peak.value / full:.1f} times the 16-bit peak, more than {most}: is it dense?"
        for field, peak, most in (
            ("peak_fp8", chip.peak_fp8, MOST_FP8),
            ("peak_fp4", chip.peak_fp4, MOST_FP4),
        )
        if peak.value is not None and peak.value > most * full
    ]
