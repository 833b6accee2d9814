"""What the command line shows of workbooks: what lint finds, imports, comparisons and audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from mantile.cli.output import look
from mantile.cli.output.tables import new_table, number, open_console
from mantile.equations.metrics import METRICS

if TYPE_CHECKING:
    from mantile.library.signing import Verdict
    from mantile.roundtrip.audit import Audit
    from mantile.roundtrip.compare import Comparison
    from mantile.roundtrip.import_workbook import Imported
    from mantile.workbook.bundle import Bundle
    from mantile.workbook.lint import Finding

_NAMED = 6  # ids of a line
_LISTED = 40  # lines of a table; --json has all
_BEHIND = 12  # lines of what only explains other lines
_SHOWN_DIGITS = 4
_DIGITS = 12


def print_import(imported: Imported, output: Path) -> None:
    """What was edited, what was left out, and where it went."""
    console = open_console()
    table = new_table("id", "cell", "scenario", "from", "to", right=(3, 4))
    for change in imported.changes:
        table.add_row(
            change["id"],
            change["cell"],
            change["scenario"],
            number(change["from"], _DIGITS),
            number(change["to"], _DIGITS),
        )
    if imported.changes:
        console.print(table)
    for name in imported.added:
        console.print(f"  added scenario: {name}")
    for item in imported.left_out:
        console.print(f"  not carried over: {item['cell']}, {str(item['found'])!r:.80}")
    _print_ids(console, "numbers that this version does not have", imported.unknown)
    _print_ids(console, "inputs that the file does not have, as by default", imported.lacking)
    if imported.other_version is not None:
        console.print(f"  {imported.other_version}")
    counted = f"{len(imported.changes):,} edited inputs" if imported.changes else "no input was edited"
    console.print(
        f"{output}: written from {imported.path}, {counted}; "
        f"build it with mantile build {output} -o FILE.xlsx"
    )


def print_comparison(comparison: Comparison) -> None:
    """What differs: results first, then the inputs they follow from, then all else."""
    console = open_console()
    for name, untold in comparison.other_versions.items():
        console.print(f"{getattr(comparison, name)}: {untold}")
    found = comparison.inputs or comparison.formulas or comparison.headlines or comparison.results
    if not found:
        of = " of inputs" if comparison.other_versions else ""
        console.print(f"{comparison.a} and {comparison.b}: no difference{of}")
        return
    console.print(f"A: {comparison.a}\nB: {comparison.b}")
    _headlines(console, comparison.headlines)
    why = ("why",) if any("why" in item for item in comparison.inputs[:_LISTED]) else ()
    _differences(console, "Inputs", comparison.inputs, ("id", "scenario", "a", "b", *why), _LISTED)
    _differences(
        console,
        "Other figures",
        comparison.results,
        ("id", "scenario", "unit", "a", "b", "relative"),
        _BEHIND,
    )
    _differences(console, "Formulas", comparison.formulas, ("id", "cell", "a", "b"), _BEHIND)


def _headlines(console: Console, items: Sequence[dict[str, Any]]) -> None:
    """Headline results that differ, as people call them and in the units in which they quote them."""
    metrics = {metric.shown_id: metric for metric in METRICS}
    order = {identifier: place for place, identifier in enumerate(metrics)}
    known = sorted(
        (item for item in items if item["id"] in metrics),
        key=lambda item: (item["scenario"], order[item["id"]]),
    )
    if not known:
        console.print("Results: the same")
        return
    several = len({item["scenario"] for item in known}) > 1
    heads = ("result", *(("scenario",) if several else ()), "A", "B", "B ÷ A − 1")
    table = new_table(*heads, right=range(len(heads) - 3, len(heads)))
    for item in known:
        metric = metrics[item["id"]]
        cells = (
            value if isinstance(value, str) else number(metric.shown(value), _SHOWN_DIGITS)
            for value in (item["a"], item["b"])
        )
        said = (item["scenario"],) if several else ()
        table.add_row(metric.head, *said, *cells, _relative(item["relative"]))
    console.print(table)


def _differences(
    console: Console, title: str, items: Sequence[dict[str, Any]], keys: Sequence[str], most: int
) -> None:
    if not items:
        return
    one = len({item["scenario"] for item in items} - {None}) <= 1 if "scenario" in keys else False
    keys = [key for key in keys if not (key == "scenario" and one)]
    heads = {"a": "A", "b": "B", "relative": "B ÷ A − 1"}
    table = new_table(
        *(heads.get(key, key) for key in keys),
        right=[keys.index(key) for key in ("a", "b", "relative") if key in keys and "unit" in keys],
        drop=[keys.index("unit")] if "unit" in keys else (),
    )
    for item in items[:most]:
        table.add_row(
            *(
                _relative(item[key])
                if key == "relative"
                else ""
                if key in ("scenario", "cell", "why") and item.get(key) is None
                else number(item[key], _DIGITS)
                for key in keys
            )
        )
    console.print(f"{title}: {len(items):,}")
    console.print(table)
    if len(items) > most:
        console.print(f"  {len(items) - most:,} more; --json lists all")


def _relative(value: float | None) -> str:
    return "" if value is None else f"{value:+.2%}" if abs(value) >= 1e-4 else f"{value:+.1e}"


def print_audit(audit: Audit, outputs: Sequence[Path]) -> None:
    """How much was written, and what an auditor would look at first."""
    console = open_console()
    console.print(
        f"{', '.join(map(str, outputs))}: {len(audit.rows):,} rows, {len(audit.assumptions):,} assumptions, "
        f"{len(audit.overrides):,} overrides, {len(audit.edits):,} edited cells, {len(audit.checks):,} "
        "checks"
    )
    failed = [check for check in audit.checks if not check["passed"]]
    for check in failed:
        console.print(
            f"  {check['kind']} {check['code']}, {check['scenario']}: {number(check['left'])} against "
            f"{number(check['right'])}"
        )
    for kind in ("formula", "overwritten"):
        for edit in [edit for edit in audit.edits if edit["kind"] == kind][:_LISTED]:
            console.print(
                f"  {kind}: {edit['cell']} {edit['id']}: {number(edit['to'], _DIGITS)} instead of "
                f"{number(edit['from'], _DIGITS)}"
            )
    if audit.facts["other_version"] is not None:
        console.print(f"  {audit.facts['other_version']}")
    console.print(
        f"  bundle {audit.facts['digest']}, made by {audit.facts['generator']}, "
        f"{audit.facts['date'] or 'not dated'}"
    )


def print_bundle(bundle: Bundle, verdict: Verdict, path: Path) -> None:
    """What a bundle says of itself, and what its signature is worth."""
    console = open_console()
    protected = "" if bundle.data["format"] > 1 else "; unprotected: format 1 states no digest"
    console.print(f"  made by {bundle.generator:.60}\n  digest {bundle.digest}{protected}\n  {verdict.words}")
    said = "the content is that of its digest" if verdict.ok else "verification FAILED"
    console.print(f"{path}: {said}")


def _print_ids(console: Console, head: str, ids: Sequence[str]) -> None:
    if ids:
        more = f" and {len(ids) - _NAMED:,} more; --json lists all" if len(ids) > _NAMED else ""
        console.print(f"  {head}: {', '.join(ids[:_NAMED])}{more}")


def print_findings(findings: Sequence[Finding], path: Path) -> None:
    """Every broken rule with its cell."""
    console = open_console()
    table = new_table("rule", "sheet", "cell", "message")
    for finding in findings:
        table.add_row(finding.rule, finding.sheet, finding.cell, finding.message)
    if findings or look.now().form == "csv":
        console.print(table)
    console.print(f"{path}: {f'{len(findings):,} findings' if findings else 'no findings'}")


def print_rules(rules: Mapping[str, str]) -> None:
    """The rules that lint checks: name and meaning."""
    table = new_table("rule", "meaning")
    for name, meaning in rules.items():
        table.add_row(name, meaning)
    open_console().print(table)
