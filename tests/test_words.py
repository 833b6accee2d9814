"""How it is worked out: printed from the body, names every precedent, and is what the sheets show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from conftest import DEFAULTS, KINDS, Make
from live import few, loaded

from mantile.estimates.estimate import estimate
from mantile.graph.quantity import (
    Input,
    Node,
    Quantity,
    Span,
    all_of,
    apply,
    equal,
    expression,
    floor,
    index,
    is_named,
    is_number,
    join,
    match,
    maximum,
    minimum,
    remainder,
    round_up,
    span,
    sum_range,
    sum_where,
    where,
)
from mantile.graph.sentence import called, how_worked_out, names, sentence
from mantile.library.scenario import parse_scenario
from mantile.workbook.book import LINKED_IN
from mantile.workbook.write import build_workbook

HOW = re.compile(r"[×÷−+]|\bsum of\b|\brounded up\b|\bthe largest of\b|\blargest of\b|\bthe rows above\b")


def _figure(name: str, unit: str = "1", value: float = 1, called: str = "") -> Input:
    return Input(f"t.{name}", name, unit, value, name=called)


A, B, C, D = (_figure(name) for name in ("A1", "B1", "C1", "D1"))
SWITCH, MESH = (_figure(name, "flag") for name in ("it is a switch", "it is a mesh"))
RING, TREE = _figure("Time, ring"), _figure("Time, tree")
KEYS = (_figure("key 1", called="keys"), _figure("key 2", called="keys"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (A + B * (C - D), "A1 + B1 × (C1 − D1)"),
        (A - (B - C), "A1 − (B1 − C1)"),
        (A + (B - C), "A1 + B1 − C1"),
        (A + (B + B) + C + B, "A1 + 3 × B1 + C1"),
        (1 * A * (B * C), "A1 × B1 × C1"),
        (A / (B * C), "A1 ÷ (B1 × C1)"),
        (A * SWITCH * B * (1 - MESH), "A1 × (1 if it is a switch and not (it is a mesh), else 0) × B1"),
        (A * (B / C), "A1 × B1 ÷ C1"),
        (where(A > B, C, where(equal(A, 1), D, 0)), "C1 if A1 is above B1, D1 if A1 is 1, else 0"),
        (where(A > 0, A, B) * C, "(A1 if above 0, else B1) × C1"),
        (where(is_number(A), A, B), "A1 if set, else B1"),
        (where(all_of(is_number(A), A > 0), B, 0), "B1 if A1 is set and above 0, else 0"),
        (where(SWITCH > 0, A, B), "A1 if it is a switch, else B1"),
        (where(equal(A, "x"), 1, 0), '1 if A1 is "x", else 0'),
        (A * (1 - SWITCH), "A1 × (1 if not (it is a switch), else 0)"),
        (A * SWITCH, "A1 × (1 if it is a switch, else 0)"),
        (maximum(SWITCH, MESH), "1 if it is a switch or it is a mesh, else 0"),
        (where(maximum(SWITCH, MESH) > 0, A, B), "A1 if it is a switch or it is a mesh, else B1"),
        (maximum(1, A / B), "A1 ÷ B1, at least 1"),
        (maximum(0, A) + B, "(A1, at least 0) + B1"),
        (minimum(A, B) * C, "(the smaller of A1 and B1) × C1"),
        (maximum(A, minimum(B, C), D), "the largest of A1, (the smaller of B1 and C1) and D1"),
        (round_up(A / B) * C, "(A1 ÷ B1, rounded up) × C1"),
        (floor((A + B) / C), "(A1 + B1) ÷ C1, rounded down"),
        (remainder(A + B, C), "remainder of (A1 + B1) ÷ C1"),
        (A**B * C, "(A1 to the power B1) × C1"),
        (-(A + B), "−(A1 + B1)"),
        (sum_range(span((A, B, C))), "sum of A1, B1 and C1"),
        (sum_range(span((RING, TREE))), "sum of time: ring and tree"),
        (sum_range(span((A,))), "A1"),
        (index(span((A, B)), C), "A1 … B1 at C1"),
        (index(span((A, B)), match(C, span(KEYS))), "A1 … B1, looked up for C1 in keys"),
        (
            index(span(KEYS), match(maximum(span((A, B))), span((A, B)))),
            "keys at the place of the largest of A1 and B1",
        ),
        (sum_where(span((A, B)), span(KEYS), C), "sum of A1 … B1 where keys is C1"),
        (join("in ", A, ", held as ", B), '"in [A1], held as [B1]"'),
        (apply("match_at_most", A, span((B, C)), 1), "place of the last of B1 … C1 up to A1"),
    ],
)  # fmt: skip
def test_a_sentence_reads_like_this(body: Node, words: str) -> None:
    assert how_worked_out(Quantity("t.q", "Q", "1", body)) == words


def test_figures_called_the_same_get_their_labels() -> None:
    """Two times of a block each: the sentence tells them apart."""
    left, right = (_figure(f"Time, {block}", called="time") for block in ("head", "host"))
    assert how_worked_out(Quantity("t.q", "Q", "s", left + right)) == "time, head + time, host"
    assert how_worked_out(Quantity("t.q", "Q", "s", left + left)) == "2 × time, head"


def test_a_precedent_that_is_labelled_as_the_quantity_keeps_its_name() -> None:
    """Only what stands behind a comma is left out."""
    assert how_worked_out(Quantity("t.q", "A1", "1", A + B)) == "A1 + B1"


def test_what_a_block_leaves_out_of_its_names_comes_back_outside() -> None:
    """Within the block of the head "time" is its time; elsewhere it is the time of the head."""
    time = _figure("Time, head", called="time")
    assert how_worked_out(Quantity("t.q", "Share, head", "1", time / C)) == "time ÷ C1"
    assert how_worked_out(Quantity("t.q", "Share", "1", time / C)) == "time, head ÷ C1"
    assert how_worked_out(Quantity("t.q", "Time in the pass, Head", "1", time * C)) == "time × C1"


def test_a_common_ending_is_left_out() -> None:
    """ "Draw, decode" follows from "limit", not "limit, decode", unless it follows from both."""
    limit, other = (_figure(label, called="limit") for label in ("Limit", "Limit, decode"))
    idle = _figure("Idle, decode")
    assert (
        how_worked_out(Quantity("x", "Smaller", "1", minimum(limit, other)))
        == "the smaller of limit and limit, decode"
    )
    assert how_worked_out(Quantity("x", "Draw, decode", "1", other + idle)) == "limit + idle"
    assert how_worked_out(Quantity("x", "Draw", "1", other + idle)) == "limit, decode + idle, decode"
    assert how_worked_out(Quantity("x", "Draw, decode", "1", limit + other)) == "limit + limit, decode"


def test_a_note_says_why_behind_a_dot() -> None:
    """An input says what it means, a quantity how and why."""
    quantity = Quantity("t.q", "Q", "1", A + B, note="one of each is kept")
    assert sentence(quantity) == "A1 + B1 · one of each is kept"
    assert sentence(Input("t.i", "I", "1", 1, "what it means")) == "what it means"


def _quantities(made: Any) -> list[Quantity]:
    return [figure for figure in made.equations.figures.values() if isinstance(figure, Quantity)]


def _unnamed(quantity: Quantity) -> list[str]:
    """Precedents that neither the sentence names nor a span in it."""
    how, alone = how_worked_out(quantity), names(quantity)
    ending = ", " + quantity.label.rpartition(", ")[2].replace(" + ", " and ")
    missing = [figure.id for figure, name in alone.items() if name not in how]
    for node in expression(quantity.body, leaf=lambda node: is_named(node) or isinstance(node, Span)):
        if isinstance(node, Span):
            ends = [called(member).removesuffix(ending) for member in (node.members[0], node.members[-1])]
            missing += [end for end in ends if not all(part in how for part in re.split(", |: ", end))]
    return missing


SCENARIOS: list[dict[str, Any]] = [
    *({"model": model} for model in KINDS),
    {"model": "deepseek-r1", "decode": {"tp": 4}},
    {"model": "llava-1.5-7b", "decode": {"tp": 4}},
    {"model": "llava-1.5-7b", "request_rate": 0.2, "concurrency": None},
]


@pytest.mark.parametrize("fields", SCENARIOS, ids=lambda fields: "-".join(map(str, fields.values())))
def test_sentences_name_every_precedent_and_notes_say_why(make: Make, fields: dict[str, Any]) -> None:
    """Of every quantity: with one set of workers, with decode workers, and at a request rate."""
    for quantity in _quantities(make(**fields)):
        assert not _unnamed(quantity), f"{quantity.id}: {how_worked_out(quantity)}"
        assert not HOW.search(quantity.note), f"{quantity.id}: printed from the body: {quantity.note}"


@pytest.mark.exhaustive
def test_sheets_show_the_sentences(tmp_path: Path) -> None:
    """The fourth column of a workings sheet, "how it is worked out", found by the id beside it.

    Rows of cells that are typed into leave it to the heads of their blocks, links to where they lead.
    """
    fields = DEFAULTS | {"model": "qwen3-next-80b", "decode": {"tp": 4}}
    made = estimate(parse_scenario(fields, "scenario"), library=few(("h100-sxm", "l40s")))
    book = loaded(build_workbook(made, tmp_path / "run.xlsx"))
    shown: dict[str, str] = {}
    for sheet in book.worksheets:
        for row in sheet.iter_rows(max_col=6, values_only=True):
            of_figure = len(row) == 6 and isinstance(row[5], str) and row[5] in made.equations.figures
            if of_figure and row[0] != LINKED_IN and not row[5].startswith(("typed.", "stamp.")):
                shown[row[5]] = str(row[3] or "")
    expected = {quantity.id: sentence(quantity) for quantity in _quantities(made) if quantity.id in shown}
    assert len(expected) > 500
    assert {identifier: shown[identifier] for identifier in expected} == expected
