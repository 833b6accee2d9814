# ruff: noqa: E501, S506
"""Hostile files for the five readers, and command lines: each is read or refused, in bounded time and space.

    python .ci/fuzz.py --reader workbook --seconds 36000      for hours
    python .ci/fuzz.py --seconds 150                          all of them, the time shared
    python .ci/fuzz.py --reader config --count 10000          so many
    python .ci/fuzz.py --reader config --case 4711            that one again

A case is made of a seed and its number, so it can be made again. What fails is kept in the folder of
`--keep`. While a case runs, its input lies there as `current-READER`: what ends the process is found as well.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, get_args

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "tests" / "data" / "fuzz"
GIGABYTE = 2**30
MOST_MEMORY = 4 * GIGABYTE  # of the process
LONGEST_MESSAGE = 60_000
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
ODD_TEXTS = (
    "", "0", "-1", "1e400", "-1e308", "1e-320", "null", "~", "[]", "{}", '"', ",", ":", "true", "&a ", "*a", "!!set ",
    "\n", "\t", "\x00", "\ufffe", "\u202e", "\u200b", "NaN", ".inf", "1: ", "- ", "<<: ", "'", "#", "|", "[" * 70,
    "9" * 5000, "=1+1", "@x", "../../etc/passwd", "/etc/passwd", "auto", "%", "0x10", "2026-99-99", "\ud800", "é" * 300,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3, 7, 0.5, -0.0, 1e-300, 1e300, float("nan"), float("inf"), 10**30, 10**400, 2**63,
    "", "0", "1", "auto", "=1+1", "x" * 5000, "\u202ex", "\ufffe", "/etc/passwd", "llama-3.2-1b", "h100-sxm", [], {},
    [1], [[]], {"a": 1}, [None], {"": None}, "2026-11-25", "re:.*a.*b.*c", [[[[[[1]]]]]],
)  # fmt: skip


TELL = 300  # seconds between two rows of what there is so far


class TooLong(BaseException):
    """A case has run for longer than it may; no handler of ours takes it for something else."""


class TooMuch(Exception):
    """A case gave something that is no answer: a number that is none, a message without the file."""


@dataclass
class Reader:
    """What reads files of one kind.

    Args:
        suffix: of the file, with its name.
        clean: inputs that are right, from which others are made.
        mutate: makes another of one.
        read: reads a file; returns plain objects, or raises an InputError.
        seconds: of the processor, that one may take.
    """

    name: str
    file: str
    clean: Callable[[], list[bytes]]
    mutate: Callable[[random.Random, bytes], bytes]
    read: Callable[[Path], Any]
    seconds: float


@dataclass
class Found:
    """What came of the cases of a reader."""

    reader: str
    tried: int = 0
    read: int = 0
    refused: int = 0
    failed: list[int] = field(default_factory=list)
    seconds: float = 0.0
    memory: int = 0
    clean_seconds: float = 0.0
    clean_memory: int = 0

    def row(self) -> str:
        """As a row of the table."""
        return (
            f"| {self.reader} | {self.tried:,} | {self.read:,} | {self.refused:,} | {len(self.failed):,} "
            f"| {self.clean_seconds:.2f} | {self.seconds:.2f} | {self.clean_memory / 2**20:.0f} "
            f"| {self.memory / 2**20:.0f} |"
        )


HEAD = (
    "| reader | tried | read | refused | failed | s, clean | s, most | MiB, clean | MiB, most |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
)


# --- how a text is changed ----------------------------------------------------------------------------------


def spliced(rng: random.Random, text: str) -> str:
    """Some characters lost, put in, doubled, moved; numbers changed; cut short."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        start = rng.randrange(len(text) + 1)
        if rng.random() < 0.6:
            start = min(start, rng.randrange(2000))  # where the fields are, not the tables
        length = int(rng.expovariate(1 / 8))
        match rng.randrange(6):
            case 0 | 1:
                text = text[:start] + rng.choice(ODD_TEXTS) + text[start + length :]
            case 2:
                text = text[:start] + text[start + rng.randrange(200) :]
            case 3:
                text = text[:start] + text[start : start + 200] * rng.choice((2, 3, 50)) + text[start:]
            case 4:
                numbers = list(re.finditer(r"-?\d[\d.eE+-]*", text[start : start + 4000]))
                if numbers:
                    found = rng.choice(numbers)
                    put = rng.choice(ODD_TEXTS[:8])
                    text = text[: start + found.start()] + put + text[start + found.end() :]
            case _:
                text = (
                    text[:start]
                    if rng.random() < 0.1
                    else text[:start] + text[start + 1 :] + text[start : start + 1]
                )
    return text


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: what holds it, and its key."""
    open_ = [data]
    while open_:
        part = open_.pop()
        keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
        for key in keys:
            yield part, key
            open_.append(part[key])


def reshaped(rng: random.Random, data: Any, more: tuple[Any, ...] = ()) -> Any:
    """Values replaced, removed, moved, doubled, nested or made many."""
    data = copy.deepcopy(data)
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        all_ = list(places(data))
        if not 0 < len(all_) < 50_000:
            return data
        shallow = [place for place in all_ if place[0] is data]
        part, key = rng.choice(shallow if shallow and rng.random() < 0.4 else all_)
        value = part[key]
        match rng.choice((0, 0, 3, 4, 5, 5, 5, 5, 6, 7, 8)):
            case 0:
                part[key] = copy.deepcopy(rng.choice(more if more and rng.random() < 0.5 else ODD_VALUES))
            case 3:
                del part[key]
            case 4:
                other, there = rng.choice(all_)
                with contextlib.suppress(KeyError, IndexError):
                    part[key] = copy.deepcopy(other[there])
            case 5 if isinstance(value, bool):
                part[key] = not value
            case 5 if isinstance(value, int | float) and abs(value) < 1e300:
                others = (value * 10, value * 2, value + 1, value - 1, value // 3, value / 3, 0, 1, 4, 64)
                part[key] = rng.choice((*others, *others, -value, str(value), value * 1e12))
            case 5 if isinstance(value, str) and len(value) < 10_000:
                part[key] = spliced(rng, value)
            case 6:
                part[key] = [value] * rng.choice((2, 30, 3000))
            case 7:
                for _ in range(rng.choice((1, 2, 80))):
                    value = [value] if rng.random() < 0.5 else {"a": value}
                part[key] = value
            case _:
                if isinstance(part, dict):
                    name = rng.choice((*(str(other) for _, other in all_), *ODD_TEXTS[:30]))
                    part[name] = part.pop(key) if rng.random() < 0.5 else copy.deepcopy(value)
    return data


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(
    rng: random.Random, data: bytes, load: Callable[[str], Any], dump: Callable[[Any], str], more: Any = ()
) -> bytes:
    """A document changed as text, or as what it holds."""
    text = data.decode()
    if rng.random() < 0.4:
        return _encoded(spliced(rng, text))
    with contextlib.suppress(ValueError, OverflowError):  # a number too long to be written, or halved
        text = dump(reshaped(rng, load(text), more))
    return _encoded(spliced(rng, text) if rng.random() < 0.1 else text)


def _json(rng: random.Random, data: bytes) -> bytes:
    return _text(rng, data, json.loads, json.dumps)


def _yaml(rng: random.Random, data: bytes) -> bytes:
    import yaml

    loader, dumper = (
        getattr(yaml, "CSafeLoader", yaml.SafeLoader),
        getattr(yaml, "CSafeDumper", yaml.SafeDumper),
    )
    return _text(
        rng,
        data,
        lambda text: yaml.load(text, loader),
        lambda made: yaml.dump(made, Dumper=dumper),
        _scenario_values(),
    )


def _scenario_values() -> tuple[Any, ...]:
    """What fields of scenarios may be: its choices, and lists of those."""
    from mantile.library.scenario_fields import SCENARIO_FIELDS

    return tuple(choice for declared in SCENARIO_FIELDS.values() for choice in declared.choices)


# --- the readers --------------------------------------------------------------------------------------------


@cache
def _tests() -> None:
    sys.path.insert(0, str(ROOT / "tests"))


def _corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted(CORPUS.glob(f"{name}*")) if path.is_file()]


def _answer(made: Any) -> Any:
    return [made.results(column) for column in range(len(made.columns))]


def _configs() -> list[bytes]:
    _tests()
    from small_models import CONFIGS

    return [json.dumps(config, indent=1).encode() for config in CONFIGS.values()] + _corpus("config")


def _read_config(path: Path) -> Any:
    from mantile.ir.build import build_ir
    from mantile.ir.counts import describe
    from mantile.library.architecture import Model
    from mantile.library.huggingface import read_config

    found = read_config(path)
    return describe(build_ir(Model(id="x", name="x", source="test", architecture=found)), 7)


def _scenarios() -> list[bytes]:
    files = [*sorted((ROOT / "workbooks").glob("*.yaml")), ROOT / "tests" / "data" / "features.yaml"]
    return [file.read_bytes() for file in files if file.stem != "accuracy"] + _corpus("scenario")


def _read_scenario(path: Path) -> Any:
    from mantile.estimates.estimate import estimate
    from mantile.library.scenario import load_scenario

    scenario = load_scenario(str(path))
    return _answer(estimate(scenario, name=str(path))) if len(scenario.variants) < 20 else None


@cache
def _estimate() -> Any:
    _tests()
    from live import few

    from mantile.estimates.estimate import estimate
    from mantile.library.scenario import parse_scenario

    fields = {"model": "llama-3.2-1b", "accelerator": "h100-sxm", "input_tokens": 1000, "output_tokens": 100}
    more = {"concurrency": 4, "title": "small", "variants": [{"tp": 2, "name": "two"}]}
    return estimate(parse_scenario(fields | more, "scenario"), library=few(("h100-sxm",)))


@cache
def _bundles() -> list[bytes]:
    from mantile.workbook.bundle import Bundle

    return [json.dumps(json.loads(Bundle.of(_estimate()).text), indent=1).encode(), *_corpus("bundle")]


def _bundle(rng: random.Random, data: bytes) -> bytes:
    """A bundle changed; mostly with the digest that its content has, so that it is read on."""
    from mantile.workbook.bundle import Bundle

    if rng.random() < 0.3:
        return _json(rng, data)
    whole = json.loads(data)
    part = rng.choice(("", "scenario", "scenario", "model", "library"))
    if part:
        whole[part] = reshaped(rng, whole[part])
    else:
        whole = reshaped(rng, whole)
    try:
        if isinstance(whole, dict):
            whole["digest"] = Bundle(
                {key: value for key, value in whole.items() if key != "digest"}, "b"
            ).digest
        return _encoded(json.dumps(whole))
    except (ValueError, TypeError, KeyError):
        return data[: len(data) // 2]


def _read_bundle(path: Path) -> Any:
    from mantile.workbook.bundle import read_document

    bundle = read_document(path)[1]
    return None if bundle is None else _answer(bundle.estimate())


def _measurements() -> list[bytes]:
    return _corpus("measurements")


def _table(rng: random.Random, data: bytes) -> bytes:
    if data[:1] in (b"{", b"["):
        return _json(rng, data)
    if b"," not in data[:200]:
        return _yaml(rng, data)
    rows = [line.split(",") for line in data.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice(rows)
        match rng.randrange(5):
            case 0 | 1 | 2:
                row[rng.randrange(len(row))] = rng.choice(ODD_TEXTS)
            case 3:
                rng.shuffle(row)
            case _:
                rows.extend([row] * rng.choice((1, 2000)))
    text = "\n".join(",".join(row) for row in rows)
    return _encoded(spliced(rng, text) if rng.random() < 0.3 else text)


def _read_measurements(path: Path) -> Any:
    from mantile.library.documents import json_data
    from mantile.measured.load import load_measurements
    from mantile.measured.reconcile import reconcile
    from mantile.measured.startup_errors import reconcile_startups
    from mantile.measured.startups import is_startup_table, load_startups

    if is_startup_table(path):
        return json_data(reconcile_startups(load_startups(path), _library(), path.name).to_dict())
    measured = load_measurements(path)
    if len(measured.runs) > 50:
        return None
    return json_data(reconcile(measured, (), _library(), path.name).to_dict())


@cache
def _library() -> Any:
    from mantile.library.profiles import load_library

    return load_library()


@cache
def _workbooks() -> list[bytes]:
    """One of a small model, as cases of a workbook take longest."""
    _tests()
    from engines_agree import dense
    from live import few

    from mantile.estimates.estimate import estimate
    from mantile.library.profiles import Library
    from mantile.library.scenario import parse_scenario
    from mantile.library.template import Template
    from mantile.workbook.write import build_workbook

    whole = few(("h100-sxm",)).model_dump()
    parts = {"frameworks": [one for one in whole["frameworks"] if one["id"] == "vllm"]}
    parts["efficiency"] = [one for one in whole["efficiency"] if one["framework"] in ("vllm", None)]
    fields = {"model": "dense", "accelerator": "h100-sxm", "input_tokens": 1000, "output_tokens": 100}
    made = estimate(
        parse_scenario(fields | {"concurrency": 4, "title": "small"}, "scenario"),
        dense(),
        library=Library.model_validate(whole | parts),
        template=Template(drivers=2),
    )
    with tempfile.TemporaryDirectory() as folder:
        return [build_workbook(made, Path(folder) / "run.xlsx").read_bytes(), *_corpus("workbook")]


@cache
def _parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _workbook(rng: random.Random, data: bytes) -> bytes:
    """A workbook with its bytes, its parts, their XML or its cells changed."""
    match rng.randrange(8):
        case 0:
            changed = bytearray(data)
            for _ in range(rng.choice((1, 3, 30))):
                changed[rng.randrange(len(changed))] = rng.randrange(256)
            return bytes(changed[: rng.choice((len(changed), rng.randrange(len(changed))))])
        case 1:
            parts = dict(_parts(data))
            names = sorted(parts)
            one, other = rng.choice(names), rng.choice(names)
            match rng.randrange(4):
                case 0:
                    parts.pop(one)
                case 1:
                    parts[one], parts[other] = parts[other], parts[one]
                case 2:
                    parts[rng.choice(("xl/new.xml", "../x", f"{one}2", one.upper(), "xl/a\\b"))] = parts[one]
                case _:
                    parts[one] = rng.choice(
                        (b"", b"<a/>", b"\x00" * 100, b"<a>" * 200, parts[one][: len(parts[one]) // 2])
                    )
        case 2 | 3 | 4:
            parts = dict(_parts(data))
            for _ in range(rng.choice((1, 1, 2, 5))):
                name = _part(rng, parts)
                parts[name] = _changed_xml(rng, parts[name])
        case _:
            parts = dict(_parts(data))
            sheets = [name for name in sorted(parts) if name.startswith("xl/worksheets/sheet")]
            for _ in range(rng.choice((1, 1, 3, 10))):
                name = rng.choice(sheets)
                parts[name] = _changed_cell(rng, parts[name])
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _part(rng: random.Random, parts: dict[str, bytes]) -> str:
    names = [name for name in sorted(parts) if name.endswith((".xml", ".rels")) and parts[name]]
    return rng.choice([name for name in names if rng.random() < 0.3 or "sheet" not in name] or names)


def _changed_xml(rng: random.Random, data: bytes) -> bytes:
    """An attribute, an element or a text of it changed."""
    text = data.decode("utf-8", "replace")
    match rng.randrange(6):
        case 0 | 1:
            found = list(re.finditer(r'="([^"]*)"', text))
            if found:
                put = rng.choice(
                    (*ODD_TEXTS, "rId1", "A1:XFD1048576", "http://x", *(one[1] for one in found[:20]))
                )
                one = rng.choice(found)
                put = put.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
                text = text[: one.start(1)] + put + text[one.end(1) :]
        case 2:
            found = list(re.finditer(r"<([\w:]+)[^<>]*/>", text))
            if found:
                one = rng.choice(found)
                text = text[: one.start()] + one[0] * rng.choice((0, 2, 500)) + text[one.end() :]
        case 3:
            found = list(re.finditer(r">([^<>]+)<", text))
            if found:
                one = rng.choice(found)
                text = text[: one.start(1)] + rng.choice(ODD_TEXTS).replace("&", "&amp;") + text[one.end(1) :]
        case 4:
            found = list(re.finditer(r"[\w:]+", text))
            if len(found) > 1:
                one = rng.choice(found)
                text = text[: one.start()] + rng.choice(found)[0] + text[one.end() :]
        case _:
            text = spliced(rng, text)
    return _encoded(text)


def _changed_cell(rng: random.Random, data: bytes) -> bytes:
    """What a cell holds, its type, its style or its place."""
    text = data.decode()
    cells = list(re.finditer(r'<c r="([A-Z]+\d+)"([^>]*)>(.*?)</c>', text))
    if not cells:
        return data
    one = rng.choice(cells)
    value = rng.choice(
        ("1,024", "70%", "\uff11\uff10", "12 ", "0,65", "x", "1e308", "-1", "0", "TRUE", "=1+1", "\u202e")
    )
    new = rng.choice(
        (
            "",
            f'<c r="{one[1]}"/>',
            f'<c r="{one[1]}" t="inlineStr"><is><t>{value}</t></is></c>',
            f'<c r="{one[1]}" t="str"><v>{value}</v></c>',
            f'<c r="{one[1]}"><v>{value}</v></c>',
            f'<c r="{one[1]}" t="s"><v>{rng.choice(("0", "7", "99999999", "-1", "x"))}</v></c>',
            f'<c r="{one[1]}" t="e"><v>#REF!</v></c>',
            f'<c r="{one[1]}" t="b"><v>1</v></c>',
            f"<c{one[2]}>{one[3]}</c>",
            one[0].replace(
                "<f>", rng.choice(('<f t="array" ref="A1:Z9">', '<f t="shared" si="0">', "<f>1+", "<f>-("))
            ),
            one[0].replace("<v>", "<v>9"),
            rng.choice(cells)[0],
        )
    )
    return _encoded(text[: one.start()] + new + text[one.end() :])


@cache
def _laid_out() -> None:
    """A bundle that was laid out before is not laid out again: most cases leave it as it is."""
    from mantile.workbook import read

    made: dict[str, Any] = {}
    lay_out = read.lay_out

    def kept(estimates: Any, bundle: Any) -> Any:
        if bundle.text not in made:
            if len(made) > 3:
                made.pop(next(reversed(made)))
            made[bundle.text] = lay_out(estimates, bundle)
        return made[bundle.text]

    read.lay_out = kept


_tried_workbooks = 0


def _read_workbook(path: Path) -> Any:
    """All that looks at a workbook; one in 40 is calculated by another engine as well."""
    from mantile.library.documents import json_data
    from mantile.verification import verify as verifying
    from mantile.workbook.read import open_file

    global _tried_workbooks
    _laid_out()
    _tried_workbooks += 1
    verification = verifying._Verification(open_file(path), "formulas")
    if _tried_workbooks % 40 == 1:
        return json_data(verification.run().to_dict())
    report = verification.report
    return json_data(
        [report.inputs, report.formulas, report.overwritten, report.names, report.visibility, report.shown]
    )


# --- command lines ------------------------------------------------------------------------------------------

_ARGUMENTS = {
    "verify": ("run.xlsx",),
    "import": ("run.xlsx", "vllm serve meta-llama/Llama-3.1-8B -tp 2", "llama-server -m x.gguf", "ls"),
    **dict.fromkeys(("reconcile", "calibrate"), ("m.csv",)),
    "list": ("llama-3.1-8b", "h100-sxm", "mi300x"),
    "explain": ("serving.tpot", "decode.weights", "nothing.at_all"),
    "fits": ("h100-sxm:8", "rtx-4090:1", "m3-ultra"),
    "compare": ("run.xlsx", "s.yaml", "llama-3.1-8b"),
}
_SLOW = (
    "optimize",
    "size",
    "fits",
    "calibrate",
    "sweep",
)  # seconds each: one in ten of the others


@cache
def _group() -> Any:
    import typer.main

    from mantile.cli.application import app

    return typer.main.get_command(app)


def _command(rng: random.Random, _: bytes) -> bytes:
    """A command line: words as JSON. Half of them have what they need; flags of all kinds may join."""
    from mantile.cli.flags import flagged

    group = _group()
    name = rng.choice([name for name in sorted(group.commands) if name not in _SLOW or rng.random() < 0.1])
    words, command = [name], group.commands[name]
    while getattr(command, "commands", None):
        words.append(rng.choice(sorted(command.commands)))
        command = command.commands[words[-1]]
    command = flagged(command)
    models = ("llama-3.2-1b", "llama-3.1-8b", "gpt-oss-20b", "c.json", "s.yaml")
    usual = _ARGUMENTS.get(name, models)
    words.append(rng.choice(usual if rng.random() < 0.9 else ("nothing", "", *models, "run.xlsx", "m.csv")))
    if name == "compare":
        words.append(rng.choice(usual))
    named_options = {option.name: option for option in command.params if option.opts[0].startswith("-")}
    if "accelerator" in named_options and words[-1] != "s.yaml" and rng.random() < 0.95:
        words += ["--accelerator", rng.choice(("h100-sxm", "h100-sxm", "mi300x", "rtx-4090"))]
        words += ["--input-tokens", rng.choice(("1000", "1", "100000000", *["500"] * 9))]
        words += [
            "--output-tokens",
            rng.choice(("100", "1", "7")),
            "--concurrency",
            rng.choice(("100000", *("4", "1") * 6)),
        ]
    if "output" in named_options and rng.random() < 0.9:
        words += ["--output", {"import": "o.yaml", "verify": "o.json"}.get(name, "o.xlsx")]
    options = sorted(named_options)
    for option in rng.sample(options, min(len(options), rng.choice((0, 1, 1, 1, 2, 3, 8)))):
        words.append(rng.choice(named_options[option].opts))
        if not named_options[option].is_flag:
            words.append(_value_of(rng, named_options[option]))
    if rng.random() < 0.1:
        words[rng.randrange(len(words))] = rng.choice(ODD_TEXTS[:40])
    return _encoded(json.dumps([word[:300].replace("\x00", "").replace("\ud800", "") for word in words]))


def _value_of(rng: random.Random, option: Any) -> str:
    annotation = option.type_descriptor.annotation
    choices = [*get_args(annotation), *re.findall(r"[\w.-]+", option.metavar or "")]
    numbers = ("0", "-1", "1", "2", "8", "0.5", "1e300", "nan", "1000000", "1e-300", "inf", "2.5")
    if choices and rng.random() < 0.5:
        return str(rng.choice(choices))
    if option.name in ("output", "since"):
        return rng.choice(("o.xlsx", "o.yaml", "o.csv", "nowhere/o.xlsx", "o.json", "."))
    figures = (
        "efficiency.gemm_compute",
        "hardware.memory_bandwidth",
        "datatype.bf16.bits",
        "hardware.price_cloud",
    )
    if option.name == "overrides":
        return f"{rng.choice(figures)}={rng.choice(numbers)}"
    if annotation in (int, float) and rng.random() < 0.8:
        return rng.choice(numbers if rng.random() < 0.3 else ("1", "2", "4", "8", "0.5", "0.1", "100"))
    return rng.choice((*numbers, *ODD_TEXTS[:20], "h100-sxm", "tp=1,2", "2026-11-25", "fp8"))


def _run_command(path: Path) -> Any:
    """A command line in this process; its answer is its exit status."""
    from mantile.cli import main
    from mantile.library.errors import InputError

    words = json.loads(path.read_bytes())
    out, wrong = io.StringIO(), io.StringIO()
    folder, here, argv = path.parent / "commands", Path.cwd(), sys.argv
    folder.mkdir(exist_ok=True)
    (folder / "c.json").write_bytes(_configs()[0])
    (folder / "s.yaml").write_bytes(_scenarios()[0])
    (folder / "m.csv").write_bytes(_measurements()[0])
    if not (folder / "run.xlsx").exists():
        (folder / "run.xlsx").write_bytes(_workbooks()[0])
    os.chdir(folder)
    sys.argv = ["mantile", *words]
    status: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(wrong):
            main()
    except SystemExit as end:
        status = end.code or 0
    finally:
        os.chdir(here)
        sys.argv = argv
    said, told = out.getvalue(), wrong.getvalue()
    left = [file.name for file in folder.iterdir() if file.name.startswith((".mantile-", "tmp"))]
    if status not in (0, 1, 2) or "Traceback" in said + told or left:
        raise TooMuch(f"exit status {status}, left {left}: {told[:2000]}")
    if re.search(r"(?<![\w-])(?:nan|inf|NaN|Infinity)(?![\w-])", said):
        raise TooMuch(f"a number that is none: {said[:2000]}")
    if status == 2:
        raise InputError(f"{path}: {told}")
    return status


READERS = {
    reader.name: reader
    for reader in (
        Reader("config", "config.json", _configs, _json, _read_config, 10),
        Reader("scenario", "scenario.yaml", _scenarios, _yaml, _read_scenario, 20),
        Reader("bundle", "bundle.json", _bundles, _bundle, _read_bundle, 10),
        Reader("measurements", "measurements.csv", _measurements, _table, _read_measurements, 30),
        Reader("workbook", "run.xlsx", _workbooks, _workbook, _read_workbook, 30),
        Reader("command", "command.json", lambda: [b""], _command, _run_command, 60),
    )
}


# --- one case -----------------------------------------------------------------------------------------------


def case(reader: Reader, number: int, seed: int = 0) -> bytes:
    """The input of a case: the same for the same seed and number."""
    rng = random.Random(f"{reader.name} {seed} {number}")
    return reader.mutate(rng, rng.choice(reader.clean()))


def named(reader: Reader, folder: Path, data: bytes) -> Path:
    """An input as a file, whose name ends as its kind does."""
    file = reader.file
    if reader.name == "measurements":
        file = (
            f"measurements.{'json' if data[:1] in (b'{', b'[') else 'csv' if b',' in data[:200] else 'yaml'}"
        )
    path = folder / file
    path.write_bytes(data)
    return path


def tried(reader: Reader, path: Path) -> bool:
    """Read a file: whether it was read; False where it was refused as it should be.

    Raises:
        TooMuch, TooLong, MemoryError, or anything else: what no reader may raise.
    """
    from mantile.library.errors import InputError

    try:
        answer = reader.read(path)
    except InputError as error:
        message = str(error)
        if path.name not in message or _HIDDEN.search(message) or len(message) > LONGEST_MESSAGE:
            raise TooMuch(f"a message that is none: {message[:2000]!r}") from error
        return False
    json.dumps(answer, allow_nan=False)
    return True


def _too_long(*_: Any) -> None:
    raise TooLong


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Bound what is done in time of the processor, and in memory."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    before = signal.signal(signal.SIGPROF, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, limits[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _memory(of: str) -> int:
    """Bytes of this process: VmRSS as it is, VmHWM at most since `_forget`; 0 where the system does not say."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(of):
                return int(line.split()[1]) * 1024
    return 0


def _forget() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measured(reader: Reader, path: Path) -> tuple[bool, float, int]:
    """Read a file: whether it was read, seconds of the processor, bytes on top of those before."""
    _forget()
    before, started = _memory("VmRSS"), time.process_time()
    with limited(reader.seconds), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        read = tried(reader, path)
    return read, time.process_time() - started, max(0, _memory("VmHWM") - before)


def run(reader: Reader, count: int, seconds: float, seed: int, keep: Path, first: int = 0) -> Found:
    """So many cases, or as many as the time allows."""
    found = Found(reader.name)
    ends, told = time.monotonic() + seconds, time.monotonic()
    current = keep / f"current-{reader.name}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for data in (*reader.clean(), reader.clean()[0]) if reader.name != "command" else ():
            read, took, memory = measured(reader, named(reader, folder, data))
            if not read and data in reader.clean()[:1]:
                raise AssertionError(f"{reader.name}: the clean input is refused")
            found.clean_seconds, found.clean_memory = (
                took,
                memory,
            )  # of the last: all that is imported is there
        for number in range(first, first + count):
            if time.monotonic() > ends:
                break
            if time.monotonic() > told + TELL:
                told = time.monotonic()
                print(f"so far, up to {number}: {found.row()}", file=sys.stderr, flush=True)
            data = case(reader, number, seed)
            current.write_bytes(data)
            path = named(reader, folder, data)
            found.tried += 1
            try:
                read, took, memory = measured(reader, path)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                found.failed.append(number)
                kept = keep / f"{reader.name}-{seed}-{number}-{path.name}"
                kept.write_bytes(data)
                lines = traceback.format_exception(error)
                print(
                    f"{reader.name} {number}: {type(error).__name__}, {kept}\n{''.join(lines)[-1500:]}",
                    flush=True,
                )
                continue
            found.read += read
            found.refused += not read
            found.seconds, found.memory = max(found.seconds, took), max(found.memory, memory)
    current.unlink(missing_ok=True)
    return found


def main() -> None:
    """Run, print the table; exit status 1 where anything failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--reader", choices=sorted(READERS), action="append", help="repeatable; all if left out"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for all readers together")
    parser.add_argument("--count", type=int, default=10**9, help="cases of each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="one case again")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder of what failed")
    given = parser.parse_args()
    given.keep.mkdir(exist_ok=True)
    readers = [READERS[name] for name in given.reader or READERS]
    first, count = (given.first, given.count) if given.case is None else (given.case, 1)
    found = []
    for reader in readers:
        found.append(run(reader, count, given.seconds / len(readers), given.seed, given.keep, first))
        print(f"{found[-1].row()}  {found[-1].failed or ''}", flush=True)
    print(HEAD, *(one.row() for one in found), sep="\n")
    with contextlib.suppress(OSError):
        given.keep.rmdir()
    raise SystemExit(any(one.failed for one in found))


if __name__ == "__main__":
    main()
