"""The view `Drill down`: layer, module, and any number with formula and sources, in the graph's words."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup, escape

from mantile.equations.display import origin
from mantile.equations.forward import Pass, group_names
from mantile.equations.metrics import (
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    TPOT,
    TTFT,
    USD_PER_MILLION_OUTPUT_TOKENS,
)
from mantile.equations.roofline import Block
from mantile.equations.trace.figures import Figures
from mantile.estimates.estimate import Estimate
from mantile.estimates.explain import Branch, Term, explain, trace
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Named, Quantity, precedents
from mantile.ir.counts import describe
from mantile.library.errors import InputError
from mantile.server.page.answers import Answer
from mantile.server.page.state import DEGREES, State
from mantile.server.page.text import headline, percent, scaled, signed
from mantile.server.page.typeset import typeset

SIGNS: Mapping[str, str] = {
    "measured": "◆",
    "fitted": "≈",
    "datasheet": "▤",
    "secondary": "▥",
    "assumed": "?",
    "config": "{ }",
    "given": "✎",
    "override": "✎",
    "defined": "·",
    "worked out": "=",
}
"""A sign for each way in which a figure is known; the word always stands beside it."""
_LISTED = 24  # inputs of a figure that are shown at once
_FOLLOWERS = 30
_DEPTH = 3
_TABLES = ("library.", "system.", "framework.", "datatype.", "evidence.", "nearest.", "efficiency.", "link.")
"""What ids of rows begin with of which a figure takes one: not inputs of their own."""
_MOVED = (TTFT, TPOT, OUTPUT_TOKENS_PER_S, USD_PER_MILLION_OUTPUT_TOKENS, MEMORY_PER_ACCELERATOR)
"""Headline figures that a tenth more of a figure is judged by."""
_TENTH_MORE, _SEEN = 1.1, 0.0005
_COUNTED = ("flag", "number")
_ID = re.compile(r"[a-z][\w\-/]*(?:\.[\w\-/]+)+")


def layers(found: Answer, phase: str) -> dict[str, Any]:
    """The modules of a pass: those of each kind of layer, those that run once, and messages."""
    graph, values = found.estimate.equations, found.estimate.values()
    work: Pass = graph.prefill if phase == "prefill" else graph.decode
    total = float(values[work.time])
    blocks = {block.id: block for block in work.blocks}
    described = describe(graph.ir)["layer_groups"]
    in_layers = {name for group in described for name in group["modules"]}

    def row(block: Block) -> dict[str, Any]:
        time = float(values[block.time])
        return {
            "block": block.id,
            "label": block.label,
            "layer": scaled(values[block.layer_time], "s") if block.repeats is not None else "",
            "time": scaled(time, "s"),
            "share": percent(time / total if total else None),
            "bound": str(values[block.bound]),
            "note": block.section.note,
            "group": block.group,
            "zero": time == 0,
        }

    groups = []
    first = 1
    for group in described:
        last = first + int(group["count"]) - 1
        count = f"{first} to {last}" if last > first else f"{first}"
        groups.append(
            {
                "title": f"{' + '.join(group['blocks'])}: {int(group['count'])} layers",
                "note": f"layers {count} where they follow one another",
                "rows": [row(blocks[name]) for name in group["modules"] if name in blocks],
            }
        )
        first = last + 1
    once = [row(block) for block in work.blocks if block.id not in in_layers and not block.network]
    sent = [row(block) for block in work.blocks if block.network]
    rest = [
        {"title": "Once per pass", "note": "", "rows": [one for one in once if not one["zero"]]},
        {"title": "Messages", "note": "", "rows": [one for one in sent if not one["zero"]]},
    ]
    return {
        "phase": phase,
        "total": scaled(total, "s"),
        "id": work.time.id,
        "groups": [group for group in (*groups, *rest) if group["rows"]],
        "step": work.times.figures[-1].id,
        "step_time": scaled(values[work.times.figures[-1]], "s"),
        "names": group_names(graph.ir),
    }


def module(found: Answer, phase: str, name: str) -> dict[str, Any]:
    """The figures of a module in a pass, as the workings list them.

    Raises:
        InputError: if there is no such module.
    """
    graph, values = found.estimate.equations, found.estimate.values()
    work: Pass = graph.prefill if phase == "prefill" else graph.decode
    block = next((one for one in work.blocks if one.id == name), None)
    if block is None:
        raise InputError(f"there is no module {name[:60]!r} in {phase}")
    time, total = float(values[block.time]), float(values[work.time])
    share = percent(time / total if total else None)
    return {
        "label": block.label,
        "phase": phase,
        "title": f"{block.label} takes {scaled(time, 's')}, {share} of {_pass(phase)}, "
        f"bound by {values[block.bound]}",
        "note": block.section.note,
        "rows": [
            {
                "id": figure.id,
                "label": figure.label,
                "value": scaled(values.get(figure), figure.unit),
                "how": explain(found.estimate, figure.id).how,
            }
            for figure in block.section.figures()
            if figure.id in graph.figures
        ],
        "kind": block.module.kind if block.module is not None else "",
    }


def _pass(phase: str) -> str:
    return "the decode step" if phase == "decode" else "the prefill"


def figure(found: Answer, identifier: str, state: State) -> dict[str, Any]:
    """One figure: words, formula, numbers, what it follows from, what follows from it, and its inputs.

    Raises:
        InputError: if there is no such figure, with the nearest ids.
    """
    made = found.estimate
    explained = explain(made, identifier)
    known = {term.id: term for term in explained.precedents}
    sheet = next(
        (
            name
            for name, sections in made.equations.sheets.items()
            if any(explained.id == one.id for section in sections for one in section.figures())
        ),
        "",
    )
    named = made.equations.figures.get(explained.id)
    chosen = DEGREES if state.auto else ()
    inputs = list(_inputs(made, named, chosen)) if named is not None else []
    phase, _, rest = explained.id.partition(".")
    block = rest.partition(".")[0]
    in_pass = phase in ("prefill", "decode") and block in _blocks(made, phase)
    return {
        "id": explained.id,
        "label": explained.label,
        "value": scaled(explained.value, explained.unit, 4),
        "exact": explained.value if isinstance(explained.value, int | float) else None,
        "unit": explained.unit,
        "how": explained.how,
        "formula": _linked(explained.formula, known, state),
        "typeset": typeset(made, named),
        "sheet": sheet,
        "status": explained.status,
        "sign": SIGNS.get(explained.status, ""),
        "source": explained.source,
        "terms": [_term(term) for term in explained.precedents],
        "tree": trace(made, identifier, depth=_DEPTH) if explained.precedents else None,
        "dependents": [_term(term) for term in explained.dependents[:_FOLLOWERS]],
        "others": max(0, len(explained.dependents) - _FOLLOWERS),
        "more": _more(made, named) if found.possible else None,
        "inputs": inputs[:_LISTED],
        "rest": inputs[_LISTED:],
        "kinds": _kinds(inputs),
        "phase": phase if in_pass else "",
        "block": block if in_pass else "",
    }


def _more(made: Estimate, figure: Named | None) -> dict[str, Any] | None:
    """What headline figures would be if a figure were a tenth larger, whatever it follows from.

    None where that means nothing: a text, a flag, a whole number, nothing, and what leads to no headline.
    """
    values = made.values()
    value = values.get(figure) if figure is not None else None
    if figure is None or figure.unit in _COUNTED or (isinstance(figure, Input) and figure.integer):
        return None
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        return None
    varied = made.program.vary(values, {figure: value * _TENTH_MORE})
    rows, largest = [], (0.0, "")
    for metric in _MOVED:
        shown = metric.of(made.equations.figures)
        before, after = metric.known(values[shown]), metric.known(varied[shown])
        moved = None if before is None or after is None or not before else after / before - 1
        if moved is not None and abs(moved) > abs(largest[0]):
            named = metric.label if metric.label[:2].isupper() else metric.label.lower()
            largest = (moved, named)
        rows.append(
            {
                "label": metric.label,
                "id": metric.id,
                "now": headline(metric, before),
                "then": headline(metric, after),
                "change": signed(moved) if moved is not None and abs(moved) >= _SEEN else "same",
            }
        )
    moved, name = largest
    said = "would change no headline figure"
    if abs(moved) >= _SEEN:
        said = f"would give {percent(abs(moved), 2)} {'more' if moved > 0 else 'less'} {name}"
    return {"title": f"10\u00a0% more of it {said}", "rows": rows}


def _blocks(made: Estimate, phase: str) -> set[str]:
    graph = made.equations
    return {block.id for block in (graph.prefill if phase == "prefill" else graph.decode).blocks}


def _term(term: Term) -> dict[str, str]:
    return {
        "id": term.members[0] if term.members else term.id,
        "label": term.label,
        "value": "" if term.members else scaled(term.value, term.unit),
    }


def tree_rows(branch: Branch) -> Iterator[tuple[Term, str, tuple[Branch, ...], bool]]:
    """What a tree shows below a figure."""
    return rows_of(branch.branches)


def rows_of(branches: Sequence[Branch]) -> Iterator[tuple[Term, str, tuple[Branch, ...], bool]]:
    """Term, value in words and what is below, of each branch."""
    for below in branches:
        term = below.term
        yield term, "" if term.members else scaled(term.value, term.unit), below.branches, below.deeper


def _linked(formula: str, known: Mapping[str, Term], state: State) -> Markup:
    """A formula whose ids are links."""

    def one(found: re.Match[str]) -> str:
        name = found[0]
        term = known.get(name)
        if term is None or term.members:
            return str(escape(name))
        return str(Markup('<a href="{}">{}</a>').format(state.link("/drill", id=name), name))

    pieces, last = [], 0
    for found in _ID.finditer(formula):
        pieces.append(str(escape(formula[last : found.start()])))
        pieces.append(one(found))
        last = found.end()
    pieces.append(str(escape(formula[last:])))
    return Markup("".join(pieces))


def _inputs(made: Estimate, start: Named, chosen: Sequence[str]) -> Iterator[dict[str, str]]:
    """What a figure follows from in the end, the nearest first: what is stated, with status and source."""
    figures = Figures(made.equations, {item.id: item.reason for item in made.columns[0].overrides})
    seen: dict[Named, None] = {}
    ring: Sequence[Named] = [start]
    leaves: list[Named] = []
    while ring:
        following: list[Named] = []
        for one in ring:
            if one in seen:
                continue
            seen[one] = None
            if one is not start and (isinstance(one, Input) or one in figures.overridable):
                leaves.append(one)
            elif isinstance(one, Quantity):
                if one in figures.overridable:
                    leaves.append(one)
                else:
                    following += precedents(one)
        ring = following
    sources = {one: figures.source(one) for one in leaves if one in figures.overridable}
    values = made.values()
    said = Program([node for pair in sources.values() for node in pair]).run(made.inputs(0))
    for one in leaves:
        if one in sources:
            status, source = (str(said[node]) for node in sources[one])
        elif one.id.startswith(_TABLES) or (isinstance(one, Input) and one.fixed and one.status == "defined"):
            continue
        else:
            assert isinstance(one, Input)
            meaning, _ = origin(one)
            status, source = one.status or "given", meaning
            if one.id.startswith("inputs."):
                name = one.id.removeprefix("inputs.")
                given = name in made.columns[0].given
                status = "AUTO" if name in chosen else "given" if given else "default"
        kind, _, date = status.partition(" ")
        kind = "worked out" if status.startswith("worked out") else kind
        yield {
            "id": one.id,
            "label": one.label,
            "value": scaled(values.get(one), one.unit),
            "kind": "yours" if kind in ("given", "override", "own") else kind,
            "sign": SIGNS.get(kind, "✎" if kind in ("own", "default") else "·"),
            "date": date,
            "source": source,
        }


def _kinds(inputs: Sequence[Mapping[str, str]]) -> str:
    """How many inputs are known in which way."""
    counts: dict[str, int] = {}
    for one in inputs:
        counts[one["kind"]] = counts.get(one["kind"], 0) + 1
    listed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    return f"{len(inputs)} input{'s' if len(inputs) != 1 else ''}: {listed}" if inputs else "No inputs"


def search(found: Answer, words: str) -> list[dict[str, str]]:
    """Figures whose id or label has all of these words."""
    parts = words.lower().split()
    values = found.estimate.values()
    hits = [
        figure
        for figure in found.estimate.equations.figures.values()
        if not figure.id.startswith(_TABLES)
        and all(part in f"{figure.id} {figure.label}".lower() for part in parts)
    ]
    return [
        {"id": one.id, "label": one.label, "value": scaled(values.get(one), one.unit)} for one in hits[:60]
    ]
