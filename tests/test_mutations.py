"""Single formulas changed at random: verification must name each, whether or not any value changes."""

from __future__ import annotations

import json
import random
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from live import few
from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token

from mantile.cli import main
from mantile.estimates.estimate import estimate
from mantile.library.scenario import parse_scenario
from mantile.verification.verify import edited_names
from mantile.workbook.book import Sheet
from mantile.workbook.cell_diff import diff_cells, shortened
from mantile.workbook.package_part import column_number, letters
from mantile.workbook.read import File, open_file
from mantile.workbook.references import Formula
from mantile.workbook.write import build_workbook

FIELDS: dict[str, Any] = {
    "accelerator": "h100-sxm",
    "input_tokens": 2000,
    "output_tokens": 200,
    "concurrency": 16,
    "model": "qwen3-30b-a3b",
    "tp": 2,
    "ep": 2,
    "variants": [{"name": "other", "accelerator": "l40s", "ep": 1, "concurrency": 4}],
}
OF_EACH = 38  # mutations of each kind

Tokens = list[Token]
Change = Callable[[Tokens, random.Random], str | None]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    """A workbook of experts with a variant, built once."""
    path = tmp_path_factory.mktemp("mutations") / "run.xlsx"
    build_workbook(estimate(parse_scenario(FIELDS, "scenario"), library=few(("h100-sxm", "l40s"))), path)
    return open_file(path)


# --- what is done to a formula ------------------------------------------------------------------------------


def _one(
    tokens: Tokens, dice: random.Random, wanted: Callable[[Token], bool], other: Callable[[str], str]
) -> str | None:
    """One of the wanted tokens replaced."""
    places = [place for place, token in enumerate(tokens) if wanted(token)]
    if not places:
        return None
    chosen = dice.choice(places)
    return "=" + "".join(
        other(token.value) if place == chosen else token.value for place, token in enumerate(tokens)
    )


def _operator(tokens: Tokens, dice: random.Random) -> str | None:
    groups = [["+", "-", "*", "/"], ["<", ">", "<=", ">=", "=", "<>"]]
    return _one(
        tokens,
        dice,
        lambda token: token.type == Token.OP_IN and any(token.value in group for group in groups),
        lambda text: dice.choice(
            [other for group in groups if text in group for other in group if other != text]
        ),
    )


def _reference(tokens: Tokens, dice: random.Random) -> str | None:
    def moved(text: str) -> str:
        sheet, mark, cell = text.rpartition("!")
        match = re.match(r"(\$?)([A-Z]+)(\$?)(\d+)(.*)", cell)
        assert match is not None
        fixed, column, also, row, rest = match.groups()
        if dice.random() < 0.3:
            column = letters(column_number(column) + 1)
        else:
            row = str(max(1, int(row) + dice.choice((-2, -1, 1, 2))))
        return f"{sheet}{mark}{fixed}{column}{also}{row}{rest}"

    return _one(tokens, dice, lambda token: token.subtype == Token.RANGE, moved)


def _constant(tokens: Tokens, dice: random.Random) -> str | None:
    return _one(
        tokens,
        dice,
        lambda token: token.subtype == Token.NUMBER,
        lambda text: f"{float(text) + dice.choice((-1, 1, 0.5)):g}",
    )


def _dropped(tokens: Tokens, dice: random.Random) -> str | None:
    """An operator with the operand that follows it."""
    places = [
        place
        for place in range(len(tokens) - 1)
        if tokens[place].type == Token.OP_IN and tokens[place + 1].type == Token.OPERAND
    ]
    if not places:
        return None
    chosen = dice.choice(places)
    return "=" + "".join(
        token.value for place, token in enumerate(tokens) if place not in (chosen, chosen + 1)
    )


def _swapped(tokens: Tokens, dice: random.Random) -> str | None:
    """Two arguments of a function."""
    found = []
    for start, token in enumerate(tokens):
        if token.type != Token.FUNC or token.subtype != Token.OPEN:
            continue
        depth, cuts = 0, [start]
        for place in range(start + 1, len(tokens)):
            part = tokens[place]
            if depth == 0 and (
                part.type == Token.SEP or (part.type == Token.FUNC and part.subtype == Token.CLOSE)
            ):
                cuts.append(place)
                if part.type == Token.FUNC:
                    break
            depth += {Token.OPEN: 1, Token.CLOSE: -1}.get(part.subtype, 0)
        if len(cuts) > 2:
            found.append(cuts)
    if not found:
        return None
    cuts = dice.choice(found)
    texts = [token.value for token in tokens]
    given = ["".join(texts[first + 1 : last]) for first, last in pairwise(cuts)]
    one, two = dice.sample(range(len(given)), 2)
    given[one], given[two] = given[two], given[one]
    return "=" + "".join(texts[: cuts[0] + 1]) + ",".join(given) + "".join(texts[cuts[-1] :])


OTHERS = {
    "MAX(": "MIN(",
    "MIN(": "MAX(",
    "SUM(": "MAX(",
    "AND(": "OR(",
    "OR(": "AND(",
    "ROUNDUP(": "MOD(",
    "INT(": "ABS(",
    "ABS(": "INT(",
    "INDEX(": "CHOOSE(",
    "SUMIFS(": "COUNTIFS(",
    "SUMPRODUCT(": "SUM(",
    "EXP(": "LN(",
    "LN(": "EXP(",
    "SQRT(": "ABS(",
    "NOT(": "AND(",
    "FIXED(": "MAX(",
    "IF(": "OR(",
}


def _function(tokens: Tokens, dice: random.Random) -> str | None:
    return _one(
        tokens, dice, lambda token: token.subtype == Token.OPEN and token.value in OTHERS, OTHERS.__getitem__
    )


KINDS: dict[str, Change] = {
    "operator": _operator,
    "reference": _reference,
    "constant": _constant,
    "dropped term": _dropped,
    "swapped arguments": _swapped,
    "function": _function,
}


# --- where --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutation:
    """What stands in a cell instead of its formula."""

    kind: str
    sheet: Sheet
    row: int
    column: int
    content: Any

    @property
    def cell(self) -> str:
        """As verification names it."""
        return f"{self.sheet.name}!{letters(self.column + 1)}{self.row + 1}"

    @property
    def identifier(self) -> str:
        """The id of its row; rows of the front sheets have none."""
        return self.sheet.ids.get(self.row, "")


def _mutations(file: File, of_each: int, seed: str) -> list[Mutation]:
    """So many of every kind, over all sheets; what leaves the text as it was is none."""
    dice = random.Random(seed)
    by_sheet: dict[str, list[tuple[Sheet, int, int]]] = {}
    for sheet, row, column, cell in file.book.formulas():
        if cell.entry is None:
            by_sheet.setdefault(sheet.name, []).append((sheet, row, column))
    turns = dice.sample(sorted(by_sheet), len(by_sheet))
    found: list[Mutation] = []
    for kind in (*KINDS, "value", "neighbour"):
        made: set[tuple[str, int, int]] = set()
        turns = turns[1:] + turns[:1]
        shuffled = (dice.sample(by_sheet[name], len(by_sheet[name])) for name in turns)
        in_turn = (cell for cells in zip_longest(*shuffled) for cell in cells if cell is not None)
        for sheet, row, column in in_turn:
            text, content = file.contents[sheet.name][row, column], None
            if kind == "value":
                content = file.stored(sheet.name, row, column)
            elif kind == "neighbour":
                above = file.contents[sheet.name].get((row - 1, column))
                content = above if isinstance(above, Formula) else None
            elif (changed := KINDS[kind](Tokenizer(text).items, dice)) is not None:
                content = Formula(changed)
            if content is not None and content != text:
                found.append(Mutation(kind, sheet, row, column, content))
                made.add((sheet.name, row, column))
            if len(made) == of_each:
                break
        assert len(made) == of_each, f"too few formulas for {kind}"
    return found


def _edited(file: File) -> list[dict[str, Any]]:
    """Formulas that differ, and constants over formulas or over what formulas refer to."""
    texts = diff_cells(file)
    return texts.formulas + texts.overwritten


@pytest.mark.exhaustive
def test_every_mutation_is_named(file: File) -> None:
    """Some at a time: cell, id, what was generated and what was found of each; nothing else is reported."""
    mutations = _mutations(file, OF_EACH, "experts")
    assert _edited(file) == []
    for batch in _batches(mutations):
        expected = {}
        for mutation in batch:
            cells, place = file.contents[mutation.sheet.name], (mutation.row, mutation.column)
            before, cells[place] = cells[place], mutation.content
            expected[mutation.cell] = {
                "cell": mutation.cell,
                "id": mutation.identifier,
                "generated": before,
                "found": shortened(mutation.content),
            }
        found = _edited(file)
        for mutation in batch:
            file.contents[mutation.sheet.name][mutation.row, mutation.column] = expected[mutation.cell][
                "generated"
            ]
        known = {mutation.cell for mutation in batch if mutation.identifier}  # links have the id of a figure
        said = {item["cell"]: item | {"id": item["id"] if item["cell"] in known else ""} for item in found}
        assert said == expected and len(found) == len(batch)
    assert _edited(file) == []
    assert len(mutations) >= 300
    assert len({mutation.sheet.name for mutation in mutations}) > 8
    with_ids = {sheet.name for sheet in file.book.sheets.values() if sheet.ids}
    assert len(with_ids - {mutation.sheet.name for mutation in mutations if mutation.identifier}) <= 1


def _batches(mutations: list[Mutation], most: int = 32) -> list[list[Mutation]]:
    """So many at a time, no two of them in one cell."""
    batches: list[list[Mutation]] = []
    for mutation in mutations:
        room = (
            batch
            for batch in batches
            if len(batch) < most and mutation.cell not in {other.cell for other in batch}
        )
        batch = next(room, None)
        if batch is None:
            batches.append([mutation])
        else:
            batch.append(mutation)
    return batches


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_file_with_mutations_fails(
    file: File, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of them, and a name led elsewhere, typed into the file.

    Exit status 1, each named with cell and id.
    """
    of_cells = {mutation.cell: mutation for mutation in _mutations(file, 4, "a file")}
    chosen = random.Random(3).sample(list(of_cells.values()), 3)
    handle = random.Random(3).choice(sorted(file.book.names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # openpyxl warns of what it loses on saving
        book = openpyxl.load_workbook(file.path)
        for mutation in chosen:
            book[mutation.sheet.name].cell(mutation.row + 1, mutation.column + 1).value = mutation.content
        book.defined_names[handle].value = "Calculation!$H$5"
        book.save(tmp_path / "run.xlsx")
    monkeypatch.setattr(sys, "argv", ["mantile", "verify", str(tmp_path / "run.xlsx"), "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    edited = {  # cells that are links have the id of their figure
        (item["cell"], item["id"] if of_cells[item["cell"]].identifier else "", item["found"])
        for kind in ("formulas", "overwritten")
        for item in report["edited"][kind]
    }
    assert edited == {(mutation.cell, mutation.identifier, mutation.content) for mutation in chosen}
    assert [item["name"] for item in report["edited"]["names"]] == [handle] and report["edited"][
        "inputs"
    ] == []


@pytest.mark.exhaustive
def test_every_defined_name_is_held(file: File) -> None:
    """One after the other led to the next cell, to a formula, given to a sheet alone, and removed."""
    names = file.cells.package.names
    assert edited_names(file) == [] and len(file.book.names) > 30
    for place, (name, scope, text) in enumerate(names):
        if scope is not None:
            continue
        letter, row = text.rpartition("$")[0], int(text.rpartition("$")[2])
        other = (
            (name, None, f"{letter}${row + 1}"),
            (name, None, f"{text}*2"),
            (name, "Summary", text),
            None,
        )[place % 4]
        package = replace(
            file.cells.package, names=[*names[:place], *([other] if other else []), *names[place + 1 :]]
        )
        found = edited_names(replace(file, cells=replace(file.cells, package=package)))
        assert found and {item["name"].partition(" ")[0] for item in found} == {name}
        assert found[0]["generated"] == file.book.names[name]
