"""Two estimates side by side: which inputs, formulas and results differ, by id and scenario."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import zip_longest
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIG_IGN, SIGINT, signal
from typing import Any

from mantile.equations.display import LETTERS
from mantile.equations.override import OVERRIDE
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.explain import formulas
from mantile.estimates.results import headline
from mantile.graph.evaluate import agree
from mantile.graph.quantity import Quantity
from mantile.graph.sentence import sentence
from mantile.library.architecture import Model
from mantile.library.brief import Brief
from mantile.library.profiles import Library
from mantile.library.scenario import Scenario, parse_scenario
from mantile.library.template import Template
from mantile.roundtrip.edits import edited
from mantile.workbook.bundle import read_document
from mantile.workbook.cell_diff import diff_cells
from mantile.workbook.read import open_file, same

TOLERANCE = 1e-9  # relative, of results; inputs differ beyond the sixteen digits that files keep


@dataclass(frozen=True, repr=False)
class Comparison(Brief):
    """What differs between A and B.

    Args:
        a, b: what they are called.
        inputs: `id`, `scenario` (None where all share it), `a` and `b`, None on the side that has no such
            input or scenario; of overrides `why`, their reasons. Facts of the model come first.
        formulas: `id`, `cell` where somebody typed it, `a` and `b` as formulas over ids; None on the side
            that has no such figure.
        other_versions: by `a` and `b` what cannot be told of a workbook that another version made: of it
            only the inputs count.
        headlines, results: `id`, `scenario`, `unit`, `a`, `b` and `relative`, which is b ÷ a − 1, None for
            texts and where a is 0.
    """

    a: str
    b: str
    inputs: tuple[dict[str, Any], ...]
    formulas: tuple[dict[str, Any], ...]
    headlines: tuple[dict[str, Any], ...]
    results: tuple[dict[str, Any], ...]
    other_versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def differ(self) -> bool:
        """Whether anything does, or may: of a workbook of another version it cannot be told."""
        return bool(self.inputs or self.formulas or self.headlines or self.results or self.other_versions)

    def to_dict(self) -> dict[str, Any]:
        """What `mantile compare --json` prints."""
        parts = {name: list(getattr(self, name)) for name in ("inputs", "formulas", "headlines", "results")}
        others = dict(self.other_versions)
        return {"a": self.a, "b": self.b, "differ": self.differ, **parts, "other_versions": others}


@dataclass(frozen=True)
class _Side:
    name: str
    estimate: Estimate
    typed: dict[str, dict[str, Any]]  # formulas and constants that were typed over formulas, by cell
    untold: str | None = None  # of a workbook of another version


@dataclass(frozen=True)
class _Said:
    """What a file says: enough to estimate it again, in another process too."""

    name: str
    scenario: Scenario
    typed: dict[str, dict[str, Any]]
    model: Model | None = None
    library: Library | None = None
    template: Template | None = None
    untold: str | None = None

    def side(self) -> _Side:
        if self.model is None:
            return _Side(self.name, estimate(self.scenario, name=self.name), self.typed)
        made = estimate(self.scenario, self.model, self.library, self.name, self.template)
        return _Side(self.name, made, self.typed, self.untold)


def compare(a: str | Path | Estimate, b: str | Path | Estimate, *, side_by_side: bool = False) -> Comparison:
    """What differs, as `mantile.compare` says it.

    Results of a workbook are worked out from the inputs in its cells by the formulas of its bundle; a formula
    that somebody edited is listed with its cell.
    """
    if side_by_side and not isinstance(b, Estimate):
        with _reading(b) as other:
            left, right = _opened(a), other()
    else:
        left, right = _opened(a), _opened(b)
    heads = {figure.id for opened in (left, right) for figure in headline(opened.estimate.equations).values()}
    results = tuple(_results(left.estimate, right.estimate))
    return Comparison(
        left.name,
        right.name,
        tuple(input_differences(left.estimate, right.estimate)),
        tuple(_formulas(left, right)),
        tuple(item for item in results if item["id"] in heads),
        tuple(item for item in results if item["id"] not in heads),
        {letter: side.untold for letter, side in (("a", left), ("b", right)) if side.untold},
    )


def _opened(what: str | Path | Estimate) -> _Side:
    return _Side(what.title, what, {}) if isinstance(what, Estimate) else _said(what).side()


def _said(what: str | Path) -> _Said:
    name = str(what)
    if Path(what).suffix.lower() == ".xlsx":
        file = open_file(Path(what))
        now, made = edited(file), file.book.estimate
        texts = diff_cells(file, len(now.added))
        typed = {item["cell"]: item for item in (*texts.formulas, *texts.overwritten)}
        untold = file.untold("inputs read")
        return _Said(name, now.scenario, typed, made.model, made.library, made.template, untold)
    fields, bundle = read_document(what)
    scenario = parse_scenario(fields, name)
    if bundle is None:
        return _Said(name, scenario, {})
    return _Said(name, scenario, {}, bundle.model, bundle.library, bundle.template)


@contextmanager
def _reading(what: str | Path) -> Iterator[Callable[[], _Side]]:
    """Read a file in another process; what is called waits for it. The process ends with the block."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, what), daemon=True)
    process.start()
    there.close()

    def wait() -> _Side:
        try:
            said = here.recv()
        except EOFError:  # it came to an end, for want of memory as a rule
            return _opened(what)
        if isinstance(said, Exception):
            raise said
        assert isinstance(said, _Said)
        return said.side()

    try:
        yield wait
    finally:
        process.kill()
        process.join()


def _send(there: Connection, what: str | Path) -> None:
    """Send what a file says, or why it cannot be read."""
    signal(SIGINT, SIG_IGN)  # whoever asked for it ends it
    gc.disable()
    try:
        there.send(_said(what))
    except Exception as error:
        there.send(error)


def input_differences(left: Estimate, right: Estimate) -> Iterator[dict[str, Any]]:
    """Inputs that differ: `id`, `scenario`, `a` and `b`, as in a `Comparison`."""

    def of(estimates: Estimate) -> list[dict[str, Any]]:
        """Values by id: those all scenarios share first, then those of each, with the name it was given."""
        figures = estimates.equations.all_inputs()
        values = [estimates.inputs(column) for column in range(len(estimates.columns))]
        cases = (estimates.scenario, *estimates.scenario.variants)
        return [
            {figure.id: values[0].get(figure.id, figure.value) for figure in figures if figure.shared},
            *(
                {"name": case.name}
                | {
                    figure.id: given.get(figure.id, figure.value)
                    for figure in figures
                    if not figure.shared and not figure.fixed
                }
                for case, given in zip(cases, values, strict=True)
            ),
        ]

    for number, (mine, theirs) in enumerate(zip_longest(of(left), of(right))):
        scenario = None if number == 0 else LETTERS[number - 1]
        if mine is None or theirs is None:
            names = [
                estimates.columns[number - 1].name if inputs is not None else None
                for estimates, inputs in ((left, mine), (right, theirs))
            ]
            yield {"id": "name", "scenario": scenario, "a": names[0], "b": names[1]}
            continue
        reasons = _reasons(left, number), _reasons(right, number)
        facts_first = sorted(dict.fromkeys((*mine, *theirs)), key=lambda each: not each.startswith("model."))
        for identifier in facts_first:
            if not (
                identifier in mine and identifier in theirs and same(mine[identifier], theirs[identifier])
            ):
                yield {
                    "id": identifier,
                    "scenario": scenario,
                    "a": mine.get(identifier),
                    "b": theirs.get(identifier),
                } | _why(identifier, reasons)


def _reasons(estimates: Estimate, number: int) -> dict[str, str]:
    """Why figures are overridden, by id: those that all scenarios share, or those of one."""
    of = estimates.scenario if number == 0 else estimates.columns[number - 1]
    return {item.id: item.reason for item in of.overrides}


def _why(identifier: str, reasons: tuple[dict[str, str], dict[str, str]]) -> dict[str, str]:
    """The reasons of an override in A and in B, as `why`; nothing where neither has one."""
    name = identifier.removesuffix(OVERRIDE)
    said = [(letter, of[name]) for letter, of in zip(LETTERS, reasons, strict=False) if name in of]
    words = "; ".join(f"user override in {letter}: {reason}" for letter, reason in said)
    return {"why": words} if words else {}


def _formulas(left: _Side, right: _Side) -> Iterator[dict[str, Any]]:
    def of(estimates: Estimate) -> dict[str, tuple[str, str]]:
        texts = formulas(estimates.equations)
        return {
            figure.id: (texts[figure.id], sentence(figure)) for figure in estimates.equations.quantities()
        }

    shared = left.estimate.equations is right.estimate.equations
    mine, theirs = ({}, {}) if shared else (of(left.estimate), of(right.estimate))
    for identifier in dict.fromkeys((*mine, *theirs)):
        left_texts, right_texts = mine.get(identifier), theirs.get(identifier)
        if left_texts != right_texts:
            # Where the formulas are the same, their explanations differ.
            part = bool(left_texts and right_texts and left_texts[0] == right_texts[0])
            yield {
                "id": identifier,
                "cell": None,
                "a": left_texts and left_texts[part],
                "b": right_texts and right_texts[part],
            }
    for cell in dict.fromkeys((*left.typed, *right.typed)):
        first, second = left.typed.get(cell), right.typed.get(cell)
        if first is None or second is None or first["found"] != second["found"]:
            item = first or second or {}
            contents = [edit["found"] if edit is not None else item["generated"] for edit in (first, second)]
            yield {"id": item["id"], "cell": cell, "a": contents[0], "b": contents[1]}


def _results(left: Estimate, right: Estimate) -> Iterator[dict[str, Any]]:
    for number in range(min(len(left.columns), len(right.columns))):
        mine, theirs = left.values(number), right.values(number)
        for figure in left.equations.quantities():
            other = right.equations.figures.get(figure.id)
            if not isinstance(other, Quantity):
                continue
            a, b = _plain(mine[figure]), _plain(theirs[other])
            if not agree(a, b, TOLERANCE):
                relative = None if isinstance(a, str) or isinstance(b, str) or not a else b / a - 1
                yield {
                    "id": figure.id,
                    "scenario": LETTERS[number],
                    "unit": figure.unit,
                    "a": a,
                    "b": b,
                    "relative": relative,
                }


def _plain(value: Any) -> str | float:
    return value if isinstance(value, str) else float(value)
