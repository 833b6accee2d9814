"""What `mantile verify` says of a workbook, with --about too: the verdict, then every edit in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from mantile.cli.output import look
from mantile.cli.output.tables import hung, new_table, number, open_console
from mantile.equations.signature import HOLDS
from mantile.verification.severity import ANSWER, COSMETIC, SEVERITIES, SHOWN

if TYPE_CHECKING:
    from mantile.verification.report import Report, Reports

_LISTED = 6  # edits of a kind; --all lists the others
_DIGITS = 12
_WIDEST = 70  # characters of a formula or a text
_BEFORE = 20  # characters of a long formula ahead of the first difference
_INPUTS = "inputs edited: fine, every formula follows them"
_COUNTS = {"cells": "cells", "formulas": "formulas", "compared": "compared"}
_COUNTS_OF_EDITS = {
    "mismatches": "differ",
    "edited_inputs": "edited\ninputs",
    "edited_formulas": "edited\nformulas",
    "overwritten": "over-\nwritten",
}


def print_report(report: Report, path: Path, everything: bool = False) -> None:
    """The verdict in a sentence, every edit in words, the facts of the file.

    Args:
        everything: with the whole list of edits, and the counts by sheet.
    """
    console = open_console()
    console.print(hung(Text(""), f"{path}: {verdict(report)}"))
    print_edits(console, report, everything)
    for line in signature_lines(report):
        console.print(hung(Text("  "), line))
    console.print(f"  model {report.model}")
    unprotected = (
        "" if report.protected else "; unprotected: format 1 states no digest, it may have been changed"
    )
    console.print(hung(Text("  "), f"digest {report.digest[:4]} {report.digest[4:8]}{unprotected}"))
    console.print(hung(Text("  "), report.signature.words))
    if not report.stored_values:
        said = "the file holds no stored values: it was saved by a program that does not calculate"
        console.print(hung(Text("  "), said))
    if everything or look.now().form == "csv":
        _print_sheets(console, report)
    else:
        console.print(f"  {len(report.sheets)} sheets; --all counts cells and edits of each")


def print_reports(reports: Reports, path: Path, everything: bool = False) -> None:
    """What each engine found: all of the first one, of the others the verdict and what differs."""
    console = open_console()
    for place, report in enumerate(reports.engines.values()):
        if place == 0:
            print_report(report, path, everything)
            continue
        error = max((sheet["max_relative_error"] for sheet in report.sheets), default=0.0)
        said = f"{path}: {verdict(report)} Largest relative error {number(error, 2)}."
        console.print(hung(Text(""), said))
        _print_list(
            console, [_mismatch(report, item) for item in report.mismatches], _differing(report), everything
        )
    for engine, why in reports.refused.items():
        console.print(hung(Text(""), f"{path}: verification FAILED ({engine}): {why}"))
    if reports.not_installed:
        console.print(f"  not installed: {', '.join(reports.not_installed)}")


def verdict(report: Report) -> str:
    """Whether a workbook says what it was made to say, with the counts that matter."""
    compared = sum(sheet["compared"] for sheet in report.sheets)
    differing = _differing(report)
    if report.other_version is not None:
        stored = f" {compared:,} stored values recomputed, {differing:,} differ." if compared else ""
        return f"cannot be verified. It was {report.other_version}.{stored}"
    edited = report.to_dict()["edited"]
    others = [item["severity"] for kind in ("names", "sheets", "shown") for item in edited[kind]]
    grave = {severity: others.count(severity) for severity in SEVERITIES}
    inputs = len(report.inputs)
    fine = f"{_count(inputs, 'input')} edited, which is fine" if inputs else "no input edited"
    if grave[COSMETIC]:
        fine += f"; {_count(grave[COSMETIC], 'cosmetic change')}"
    if report.ok and report.made_by is not None:
        return (
            f"agrees with the digests of its rows that {report.made_by:.40} stored, and with its formulas. "
            f"All {compared:,} recomputed (engine {report.engine}), not compared with this version's; {fine}."
        )
    if report.ok:
        return f"agrees. All {compared:,} formulas give the expected value (engine {report.engine}); {fine}."
    found = {
        f"{_count(len(report.formulas), 'formula')} edited": len(report.formulas),
        f"{_count(len(report.overwritten), 'cell')} overwritten": len(report.overwritten),
        f"{differing:,} of {compared:,} formulas differ (engine {report.engine})": differing,
        f"{_count(grave[ANSWER], 'setting or name')} changed": grave[ANSWER],
        f"{_count(grave[SHOWN], 'change')} of what is shown": grave[SHOWN],
        "the signature of the file fails": not report.signature.ok,
    }
    return f"does NOT agree. {'; '.join(said for said, count in found.items() if count)}; {fine}."


def print_edits(console: Console, report: Report, everything: bool) -> None:
    """What was edited, the gravest first, edited inputs last; each with its cell, what it held and holds."""
    edited = report.to_dict()["edited"]
    kinds: dict[str, list[list[str]]] = {
        ANSWER: [
            [_held(report, item, "formula edited") for item in report.formulas],
            [_held(report, item, "overwritten") for item in report.overwritten],
            [_mismatch(report, item) for item in report.mismatches],
        ],
        SHOWN: [],
        COSMETIC: [],
    }
    for severity in SEVERITIES:
        for kind, line in (("names", _name), ("sheets", _sheet), ("shown", _shown)):
            kinds[severity].append([line(item) for item in edited[kind] if item["severity"] == severity])
    kinds[_INPUTS] = [[_held(report, item, "") for item in report.inputs]]
    for head, lists in kinds.items():
        if any(lists):
            console.print(f"  {head}")
        for lines in lists:
            is_mismatches = head == ANSWER and lines is lists[2]
            _print_list(console, lines, _differing(report) if is_mismatches else len(lines), everything)


def _print_list(console: Console, lines: Sequence[str], count: int, everything: bool) -> None:
    """Lines of a kind of edit, of which there are so many: a report lists 200 cells that differ."""
    listed = lines if everything else lines[:_LISTED]
    for line in listed:
        console.print(hung(Text("  - "), line))
    if count > len(listed):
        hint = "" if everything else f": --all lists {'them' if count == len(lines) else len(lines)}"
        console.print(f"  - and {count - len(listed):,} more{hint}")


def _differing(report: Report) -> int:
    return sum(sheet["mismatches"] for sheet in report.sheets)


def _print_sheets(console: Console, report: Report) -> None:
    """Counts by sheet; those of edits where there are any."""
    heads = _COUNTS | {"max_relative_error": "error"} | _COUNTS_OF_EDITS
    totals: dict[str, Any] = {key: sum(sheet[key] for sheet in report.sheets) for key in heads}
    totals["max_relative_error"] = max((sheet["max_relative_error"] for sheet in report.sheets), default=0.0)
    if look.now().form == "table":
        totals = {key: total for key, total in totals.items() if total or key not in _COUNTS_OF_EDITS}
    else:
        heads = {key: key.replace("_", " ") for key in totals}
    table = new_table("sheet", *(heads[key] for key in totals), right=range(1, len(totals) + 1))
    for sheet in report.sheets:
        table.add_row(sheet["sheet"], *(number(sheet[key], 2) for key in totals))
    table.add_section()
    table.add_row("all", *(number(value, 2) for value in totals.values()))
    console.print(table)


def _held(report: Report, item: dict[str, Any], what: str) -> str:
    before, after = _values(item["generated"], item["found"])
    words = f"{_place(report, item)}: held {before}, holds {after}"
    return f"{words} ({what})" if what else words


def _mismatch(report: Report, item: dict[str, Any]) -> str:
    says = "the file holds" if item["source"] == "stored value" else "its formula gives"
    expected, found = _values(item["expected"], item["found"])
    return f"{_place(report, item)}: should be {expected}, {says} {found}"


def _place(report: Report, item: dict[str, Any]) -> str:
    """A cell with the label of its row and the scenario of its column."""
    return ", ".join(part for part in (item["cell"], report.labels.get(item["cell"], "")) if part)


def _name(item: dict[str, Any]) -> str:
    if item["generated"] is None:
        return f"defined name {item['name']}: added, leads to {item['found']}"
    return f"defined name {item['name']}: led to {item['generated']}, leads to {item['found'] or 'nothing'}"


def _sheet(item: dict[str, Any]) -> str:
    return f"sheet {item['sheet']}: was {item['generated'] or 'not there'}, is {item['found']}"


def _shown(item: dict[str, Any]) -> str:
    """Where something is shown otherwise, what it is, how it was and how it is."""
    sheet, cell = item["sheet"], item["cell"]
    first, _, last = cell.partition(":")
    if first and first == last:  # a whole row or column
        cell = f"{'row' if first.isdigit() else 'column'} {first}"
    place = f"{sheet}{' ' if ' ' in cell else '!'}{cell}, " if cell else f"sheet {sheet}, " if sheet else ""
    if not item["expected"]:
        return f"{place}{item['kind']}: {item['found']!s:.{_WIDEST}}"
    before, after = _values(item["expected"], item["found"])
    return f"{place}{item['kind']}: was {before}, is {after if item['found'] else 'gone'}"


def _values(*values: Any) -> Iterator[str]:
    """Values in words, texts in quotation marks; of long ones the part around the first difference."""
    texts = ["nothing" if value is None else number(value, _DIGITS) for value in values]
    differs = next((at for at, signs in enumerate(zip(*texts, strict=False)) if len({*signs}) > 1), 0)
    start = max(0, differs - _BEFORE) if max(map(len, texts)) > _WIDEST else 0
    for value, text in zip(values, texts, strict=True):
        mark = '"' if isinstance(value, str) and not value.startswith("=") else ""
        head, tail = "…" if start else "", "…" if len(text) > start + _WIDEST else ""
        yield f"{mark}{head}{text[start : start + _WIDEST]}{tail}{mark}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def signature_lines(report: Report) -> list[str]:
    """Who signed, and whether it holds, a line each."""
    return [f"{_signer(item)}: {_standing(item, report)} ({item['cell']})" for item in report.signed()]


def _signer(item: dict[str, Any]) -> str:
    when = f" on {item['date']}" if item["date"] else ""
    return f"{item['role'].lower()} {item['name'] or 'nobody'}{when}, digest {item['digest'] or 'not typed'}"


def _standing(item: dict[str, Any], report: Report) -> str:
    """Whether a signature holds; what its formula says, unless the file says more."""
    if item["status"] == HOLDS and not item["holds"]:
        return "does not hold: " + ("an input was edited" if report.ok else "the workbook does not verify")
    said, here = str(item["status"]).lstrip("✓! "), report.digest[:8]
    if item["digest"] and "".join(str(item["digest"]).split()).lower() != here:
        return f"{said}: the digest of this file is {here[:4]} {here[4:]}"
    return said
