"""Figures whose formula stands in the formulas that read them: fewer rows, the same values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from mantile.graph.evaluate import Program
from mantile.graph.excel import formula
from mantile.graph.inline import Inlined
from mantile.graph.quantity import (
    NOT_KNOWN,
    Cases,
    InCase,
    Input,
    Named,
    Node,
    Quantity,
    Span,
    Words,
    all_of,
    at_least,
    count_where,
    if_known,
    is_number,
    least,
    maximum,
    span,
    sum_of,
    where,
)


@dataclass(frozen=True)
class Ids:
    """Figures stand at their ids."""

    def cell(self, node: Input | Quantity) -> str:
        return node.id

    def across(self, node: InCase) -> str:
        return node.figure.id

    def beside(self, node: Cases) -> str:
        return node.figure.id

    def range(self, members: Span) -> str:
        return f"{members.members[0].id}:{members.members[-1].id}"

    def words(self, node: Words) -> str:
        return self.range(node.span)

    def lies_in_a_row(self, members: Span) -> bool:
        return False


X, Y = (Input(name, name, "1", 3.0) for name in "XY")


def figure(name: str, body: Node) -> Quantity:
    return Quantity(name, name, "1", body)


def inlined(root: Quantity, *made: Quantity, most: int = 400) -> dict[str, str]:
    """Formulas that are left, by id; their values are those from before, on any inputs."""
    found = Inlined([root], [*made, root], Ids(), most).figures
    for x in (3.0, 0.0, -2.0, "none", math.nan):
        for y in (3.0, 0.0, "none"):
            inputs = {"X": x, "Y": y}
            before, after = Program([root]).run(inputs)[root], Program([found[root]]).run(inputs)[found[root]]
            assert before == after or (before != before and after != after), (inputs, before, after)
    named: dict[Named, Quantity] = dict(found)
    return {of.id: formula(of.body, Ids()) for of in named.values()}


def test_a_step_stands_in_what_reads_it() -> None:
    step = figure("STEP", X + Y)
    assert inlined(figure("ROOT", step * step), step) == {"ROOT": "=(X+Y)*(X+Y)"}


@pytest.mark.parametrize("most", [60, 120, 400])
def test_no_formula_gets_too_long(most: int) -> None:
    """As many stay as it takes."""
    steps = [figure("STEP0", X + Y)]
    for number in range(1, 30):
        steps.append(figure(f"STEP{number}", sum_of([steps[-1], X, Y, steps[number // 2]])))
    found = inlined(figure("ROOT", steps[-1] * X), *steps, most=most)
    assert max(map(len, found.values())) <= most
    assert 1 < len(found) < 31


def test_no_if_stands_in_an_if() -> None:
    """Unless its condition holds there, or it is 1 or 0: then it is none."""
    chosen = figure("CHOSEN", where(X > 0, Y, 0))
    assert len(inlined(figure("ROOT", where(Y > 0, chosen + 1, 0)), chosen)) == 2
    assert inlined(figure("ROOT", where(X > 0, chosen + 1, 0)), chosen) == {"ROOT": "=IF(X>0,Y+1,0)"}
    flag = figure("FLAG", where(X > 0, 1, 0))
    assert inlined(figure("ROOT", where(flag > 0, Y, 0)), flag) == {"ROOT": "=IF(X>0,Y,0)"}
    other = figure("FLAG", where(X > 0, 0, 1))
    assert inlined(figure("ROOT", where(Y > 0, other + 1, 0)), other) == {"ROOT": "=IF(Y>0,1-(X>0)*1+1,0)"}


def test_what_is_known_only_if_another_is_asks_once() -> None:
    """A figure that is a number where a condition holds; a condition that may be an error stays apart."""
    step = figure("STEP", if_known(X * Y, X))
    root = figure("ROOT", where(all_of(Y > 0, is_number(step)), step * Y, NOT_KNOWN))
    assert inlined(root, step) == {"ROOT": f'=IF(AND(Y>0,ISNUMBER(X),ISNUMBER(X*Y)),X*Y*Y,"{NOT_KNOWN}")'}
    unsure = figure("STEP", where(X > 0, X * Y, NOT_KNOWN))
    assert len(inlined(figure("ROOT", if_known(unsure * Y, unsure)), unsure)) == 2


def test_a_text_in_a_cell_is_passed_over_where_one_in_a_formula_is_not() -> None:
    """MAX passes over a cell with a text, and fails on a text that is worked out in it."""
    step = figure("STEP", if_known(X * Y, X))
    assert len(inlined(figure("ROOT", maximum(step, Y)), step)) == 2
    assert len(inlined(figure("ROOT", maximum(step + 1, Y)), step)) == 1


def test_members_of_a_span_stay() -> None:
    """They stand below each other; what reads them may still go."""
    members = [figure(f"MEMBER{number}", if_known(X + Y, X)) for number in range(2)]
    cheapest = where(count_where(span(members), at_least(0)) > 0, least(span(members)), NOT_KNOWN)
    step = figure("STEP", cheapest)
    root = figure("ROOT", where(all_of(Y > 0, is_number(step)), step, 0))
    found = inlined(root, *members, step)
    assert [*found] == ["MEMBER0", "MEMBER1", "ROOT"]
