"""The quantity graph: nodes, formula text against two independent parsers, and one case against many."""

from __future__ import annotations

import dataclasses
import math
import shutil
import subprocess
from typing import Any

import formualizer
import formulas
import numpy as np
import pytest
import schedula
import xlsxwriter
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mantile.graph import quantity as q
from mantile.graph.evaluate import CHUNK, Program, evaluate
from mantile.graph.excel import formula
from mantile.graph.operations import OPERATIONS, format_text
from mantile.graph.quantity import Apply, Cases, InCase, Input, Literal, Node, Quantity, Span, Table
from mantile.graph.sentence import sentence
from mantile.verification.engines import soffice, with_libreoffice
from mantile.verification.verify import difference
from mantile.workbook.read import read_cells

A, B, C, D = (
    Input(name, name.upper(), "1", value) for name, value in (("a", 3.0), ("b", 2.0), ("c", 1.5), ("d", 0.25))
)
VARIABLES = (A, B, C, D)
SAME = Input("same", "Same", "1", 3.0)
ZERO = Input("zero", "Zero", "1", 0.0)
EMPTY = Input("empty", "Empty", "1", None)
WORD = Input("word", "Word", "1", "beta")
TEXTS = tuple(Input(name, name, "1", name) for name in ("alpha", "Beta", "gamma", "alpha2"))
COLUMN = tuple(Input(f"n{n}", f"N{n}", "1", value) for n, value in enumerate((2.0, 4.0, 8.0, 4.0)))


class OneColumn:
    """Figures below each other in column A, in the order in which they are given."""

    def __init__(self, *figures: Input | Quantity) -> None:
        self.rows = {figure: row for row, figure in enumerate(figures, 1)}

    def cell(self, node: Input | Quantity) -> str:
        return f"A{self.rows[node]}"

    def across(self, node: InCase) -> str:
        return f"{'ABC'[node.case]}{self.rows[node.figure]}"

    def beside(self, node: Cases) -> str:
        return f"A{self.rows[node.figure]}:{'ABC'[node.count - 1]}{self.rows[node.figure]}"

    def range(self, members: Span) -> str:
        return f"A{self.rows[members.members[0]]}:A{self.rows[members.members[-1]]}"

    def grid(self, figures: Table) -> str:
        return f"A{self.rows[figures.members[0]]}:A{self.rows[figures.members[-1]]}"

    def lies_in_a_row(self, members: Span) -> bool:
        return False


CELLS = OneColumn(*VARIABLES, ZERO, EMPTY, WORD, *TEXTS, *COLUMN, SAME)


def excel_value(text: str, values: dict[str, Any]) -> Any:
    """The value of a formula by the `formulas` package."""
    with np.errstate(all="ignore"):
        compiled = formulas.Parser().ast(text)[1].compile()
        arguments = []
        for name in compiled.inputs:
            first, _, last = name.partition(":")
            rows = range(int(first[1:]), int((last or first)[1:]) + 1)
            held = [schedula.EMPTY if values[f"A{row}"] is None else values[f"A{row}"] for row in rows]
            block = np.array([[value] for value in held], dtype=object)
            arguments.append(block if last else block[0, 0])
        return np.asarray(compiled(*arguments), dtype=object).ravel()[0]


def cell_values() -> dict[str, Any]:
    """The figures' own values by cell."""
    return {CELLS.cell(figure): figure.value for figure in CELLS.rows if isinstance(figure, Input)}


# --- formula text -------------------------------------------------------------------------------------------

OPERATOR = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "power": "^",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "=",
    "join": "&",
}
FUNCTION = {
    "maximum": "MAX",
    "minimum": "MIN",
    "where": "IF",
    "all_of": "AND",
    "absolute": "ABS",
    "logarithm": "LN",
}


def as_parsed(node: Node) -> dict[str, Any]:
    """An expression as the tree a parser must find in its text."""
    if isinstance(node, Input):
        return {"node_type": "Reference", "reference": CELLS.cell(node)}
    if isinstance(node, Literal):
        return {"node_type": "Literal", "value": float(node.value)}
    assert isinstance(node, Apply)
    parts = [as_parsed(argument) for argument in node.arguments]
    if node.operation in OPERATOR:
        return {
            "node_type": "BinaryOp",
            "operator": OPERATOR[node.operation],
            "left": parts[0],
            "right": parts[1],
        }
    if node.operation == "negative":
        return {"node_type": "UnaryOp", "operator": "-", "operand": parts[0]}
    return {"node_type": "Function", "name": FUNCTION[node.operation], "args": parts}


def parsed(text: str) -> dict[str, Any] | None:
    """A formula's tree by `formualizer`, None if it is not a formula."""
    try:
        tree: dict[str, Any] = formualizer.parse(text).to_dict()
    except formualizer.ParserError:
        return None
    return tree


def without_each_pair(text: str) -> list[str]:
    """The text once for every pair of brackets that belongs to no function, without that pair."""
    found, stack = [], []
    for place, sign in enumerate(text):
        if sign == "(":
            stack.append(place)
        elif sign == ")":
            start = stack.pop()
            if not text[start - 1].isalpha():
                found.append(text[:start] + text[start + 1 : place] + text[place + 1 :])
    return found


leaves = st.sampled_from([*VARIABLES, Literal(0), Literal(1)])


def _grow(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    binary = st.sampled_from(
        [
            "add",
            "subtract",
            "multiply",
            "divide",
            "add",
            "subtract",
            "multiply",
            "divide",
            "maximum",
            "minimum",
        ]
    )
    condition = st.builds(
        q.apply, st.sampled_from(["less", "less_equal", "greater", "greater_equal"]), inner, inner
    )
    condition = condition | st.builds(q.all_of, condition, condition)
    return (
        st.builds(q.apply, binary, inner, inner)
        | st.builds(lambda base, exponent: base**exponent, inner, st.sampled_from([2.0, 3.0, -1.0]))
        | st.builds(lambda base, exponent: q.apply("power", base, exponent), inner, inner)
        | st.builds(q.apply, st.just("negative"), inner)
        | st.builds(q.where, condition, inner, inner)
    )


expressions: st.SearchStrategy[Node] = st.recursive(leaves, _grow, max_leaves=14)


def _strip_signs(tree: Any) -> Any:
    """A parser reads the exponent in a^-1 as minus applied to 1; the graph holds the number -1."""
    if isinstance(tree, dict):
        if tree["node_type"] == "UnaryOp" and tree["operand"]["node_type"] == "Literal":
            return {"node_type": "Literal", "value": -tree["operand"]["value"]}
        return {key: _strip_signs(value) for key, value in tree.items()}
    return [_strip_signs(item) for item in tree] if isinstance(tree, list) else tree


@settings(max_examples=130)
@given(expressions)
def test_a_parser_finds_the_expression_in_its_text_and_no_bracket_is_idle(node: Node) -> None:
    """Order of evaluation survives printing, and every pair of brackets is needed for that."""
    text = formula(node, CELLS)
    tree = _strip_signs(parsed(text))
    assert tree == _strip_signs(as_parsed(node)), text
    for shorter in without_each_pair(text):
        assert _strip_signs(parsed(shorter)) != tree, f"{shorter} says the same as {text}"


@settings(max_examples=40)
@given(expressions)
def test_a_formula_package_computes_what_we_compute(node: Node) -> None:
    """NumPy and the printed text, evaluated by others, agree to 1e-9."""
    values = Program([node]).run({})
    every = [np.asarray(value, dtype=float) for key, value in values.items() if isinstance(key, Apply)]
    assume(all(np.isfinite(value) and abs(value) < 1e12 for value in every))
    # Excel has no 0^0, and rounding may decide a comparison of nearly equal sums.
    for key in values:
        if isinstance(key, Apply) and key.operation == "power":
            assume(abs(values[key.arguments[0]]) > 1e-6)
    text = formula(node, CELLS)
    assume(text != "=0" and "A" in text)
    assert float(excel_value(text, cell_values())) == pytest.approx(
        float(values[node]), rel=1e-9, abs=1e-12
    ), text


@pytest.mark.parametrize(
    ("node", "text", "value"),
    [
        (-(A**B), "=-(A1^A2)", -9.0),
        ((-A) ** B, "=-A1^A2", 9.0),
        (A - (B - C), "=A1-(A2-A3)", 2.5),
        (A - B - C, "=A1-A2-A3", -0.5),
        (A / (B * C), "=A1/(A2*A3)", 1.0),
        (A / B * C, "=A1/A2*A3", 2.25),
        ((A**B) ** C, "=A1^A2^A3", 27.0),
        (A ** (B**C), "=A1^(A2^A3)", 3 ** (2**1.5)),
        (A**-B, "=A1^-A2", 1 / 9),
        (A**-1.0, "=A1^-1.0", 1 / 3),
        (A * -B, "=A1*-A2", -6.0),
        (-(A + B) * C, "=-(A1+A2)*A3", -7.5),
        ((A + B) * (1 - D), "=(A1+A2)*(1-A4)", 3.75),
        (A + (B + C), "=A1+(A2+A3)", 6.5),
        (q.where(A < B + C, A, -B), "=IF(A1<A2+A3,A1,-A2)", 3.0),
        (q.maximum(A - B, (A - B) * C) / D, "=MAX(A1-A2,(A1-A2)*A3)/A4", 6.0),
        (q.where(q.all_of(A > B, q.equal(WORD, "beta")), 1, 0), '=IF(AND(A1>A2,A7="beta"),1,0)', 1),
        (A**1e-16, "=A1^1E-16", 1.0),
        (A**1e16, "=A1^1E+16", math.inf),
    ],
)
def test_printed_text_is_exactly_this(node: Node, text: str, value: float) -> None:
    """Unary minus binds tighter than ^, and every operator is left-associative.

    Excel's rules, not Python's.
    """
    assert formula(node, CELLS) == text
    assert evaluate(node) == pytest.approx(value, rel=1e-12)


def test_text_and_quotes_are_printed_as_excel_reads_them() -> None:
    """Quotes double; a join binds looser than a sum and tighter than a comparison."""
    assert formula(q.join("say ", 'a "b"'), CELLS) == '="say "&"a ""b"""'
    assert formula(q.equal(q.join("x", q.text(A)), "x3"), CELLS) == '="x"&FIXED(ROUND(A1,0),0)="x3"'
    assert formula(q.join("x", q.rounded(A + B, 1), " GB"), CELLS) == '="x"&FIXED(ROUND(A1+A2,1),1)&" GB"'
    assert formula(q.join("x", q.percent(A + B, 1)), CELLS) == '="x"&ROUND((A1+A2)*100,1)+0&"%"'
    assert formula(Apply("join", (A + B, Literal("x"))), CELLS) == '=A1+A2&"x"'
    assert formula(InCase(B, 2), CELLS) == "=C2"
    assert formula(q.sum_range(Cases(B, 3, "all B")), CELLS) == "=SUM(A2:C2)"
    assert formula(q.sum_range(q.span(COLUMN)), CELLS) == "=SUM(A12:A15)"
    assert formula(q.index(q.span(COLUMN), A), CELLS) == "=INDEX(A12:A15,A1)"
    assert formula(q.index(q.span(COLUMN[:1]), A), CELLS) == "=CHOOSE(A1,A12)"


# --- every operation ----------------------------------------------------------------------------------------

NUMBERS, WORDS = q.span(COLUMN), q.span(TEXTS)
GRID = q.table([{0: figure} for figure in COLUMN], 1)
MIXED = q.span((TEXTS[3], *COLUMN[:2]))
CASES: dict[str, list[tuple[Node, Any]]] = {
    "add": [(A + B, 5.0), (A + WORD, math.nan)],
    "subtract": [(A - B, 1.0), (1 - A, -2.0)],
    "multiply": [(A * C, 4.5), (A * WORD, math.nan)],
    "divide": [(A / B, 1.5), (1 / D, 4.0), (A / ZERO, math.nan)],
    "power": [(A**B, 9.0), (A**-1, 1 / 3)],
    "negative": [(-A, -3.0)],
    "less": [(A < B, False), (B < A, True), (A < SAME, False)],
    "less_equal": [(A <= SAME, True), (A <= B, False)],
    "greater": [(A > B, True), (A > SAME, False), (A > WORD, False), (WORD > A, True)],
    "greater_equal": [(A >= SAME, True), (B >= A, False)],
    "equal": [
        (q.equal(A, SAME), True),
        (q.equal(A, B), False),
        (q.equal(WORD, "Beta"), True),
        (q.equal(WORD, "bet"), False),
    ],
    "all_of": [
        (q.all_of(A > B, B > C), True),
        (q.all_of(A > B, C > B), False),
        (q.all_of(A > B, B > C, C > B), False),
        (q.all_of(A > B, A / ZERO > B), math.nan),
        (q.all_of(B > A, A / ZERO > B), math.nan),
        (q.all_of(A / ZERO > B, B > A), math.nan),
    ],
    "where": [
        (q.where(A > B, "yes", "no"), "yes"),
        (q.where(A < B, A, C), 1.5),
        (q.where(A / ZERO > B, A, C), math.nan),
    ],
    "maximum": [(q.maximum(A, B, C), 3.0), (q.maximum(NUMBERS), 8.0), (q.maximum(MIXED), 4.0)],
    "minimum": [(q.minimum(A, B, C), 1.5), (q.minimum(NUMBERS), 2.0), (q.minimum(MIXED), 2.0)],
    "least": [(q.least(NUMBERS), 2.0), (q.least(MIXED), 2.0), (q.least(WORDS), 0.0)],
    "number": [(q.number_of(A), 3.0), (q.number_of(WORD), 0.0), (q.number_of(A / ZERO), math.nan)],
    "total": [(q.sum_range(NUMBERS), 18.0), (q.sum_range(A, B), 5.0), (q.sum_range(MIXED), 6.0)],
    "absolute": [(q.absolute(B - A), 1.0)],
    "logarithm": [
        (q.logarithm(A), math.log(3)),
        (q.logarithm(A / A), 0.0),
        (q.logarithm(ZERO), math.nan),
        (q.logarithm(B - A), math.nan),
    ],
    "exponential": [(q.exponential(ZERO), 1.0), (q.exponential(q.logarithm(A)), 3.0)],
    "round_up": [(q.round_up(A / B), 2.0), (q.round_up(B / A - B), -2.0), (q.round_up(A), 3.0)],
    "floor": [(q.floor(A / B), 1.0), (q.floor(A), 3.0)],
    "remainder": [(q.remainder(A, B), 1.0), (q.remainder(A, C), 0.0)],
    "choose": [
        (q.choose(1, A, WORD), 3.0),
        (q.choose(B, A, WORD), "beta"),
        (q.choose(A, A, WORD), math.nan),
    ],
    "look_up": [
        (q.look_up(GRID, 1, 1), 2.0),
        (q.look_up(GRID, A, 1), 8.0),
        (q.look_up(GRID, 1, B), math.nan),
        (q.look_up(GRID, A + A, 1), math.nan),
    ],
    "index": [
        (q.index(NUMBERS, 1), 2.0),
        (q.index(NUMBERS, A), 8.0),
        (q.index(WORDS, B), "Beta"),
        (q.index(NUMBERS, A + A), math.nan),
        (q.index(q.span(TEXTS[1:2]), A - B), "Beta"),  # of one cell
        (q.index(q.span(TEXTS[1:2]), B), math.nan),
    ],
    "match": [(q.match(WORD, WORDS), 2), (q.match(A + 1, NUMBERS), 2), (q.match("delta", WORDS), math.nan)],
    "match_at_most": [
        (q.match_at_most(A + B, q.span(COLUMN[:3])), 2),
        (q.match_at_most(1, NUMBERS), math.nan),
        (q.match_at_most(A * A, q.span(COLUMN[:3])), 3),
    ],
    "sum_where": [
        (q.sum_where(NUMBERS, WORDS, WORD), 4.0),
        (q.sum_where(NUMBERS, WORDS, "delta"), 0.0),
        (q.sum_where(NUMBERS, NUMBERS, A + 1), 8.0),
        (q.sum_where(NUMBERS, WORDS, WORD, NUMBERS, A + 1), 4.0),
        (q.sum_where(NUMBERS, WORDS, WORD, NUMBERS, A), 0.0),
        (q.sum_where(WORDS, NUMBERS, A + 1), 0.0),
        (q.sum_where(q.span((TEXTS[3], *COLUMN[:3])), NUMBERS, q.at_least(0)), 14.0),
    ],
    "sum_products": [
        (q.sum_products(NUMBERS), 18.0),
        (q.sum_products(NUMBERS, NUMBERS), 100.0),
        (q.sum_products(WORDS, NUMBERS), 0.0),
    ],
    "count_where": [
        (q.count_where(NUMBERS, A + 1), 2.0),
        (q.count_where(NUMBERS, A), 0.0),
        (q.count_where(WORDS, "BETA"), 1.0),
        (q.count_where(WORDS, "beta", NUMBERS, A + 1), 1.0),
    ],
    "at_least": [
        (q.count_where(NUMBERS, q.at_least(A + 1)), 3.0),
        (q.sum_where(NUMBERS, NUMBERS, q.at_least(A)), 16.0),
        (q.count_where(WORDS, q.at_least(0)), 0.0),
    ],
    "below": [
        (q.count_where(NUMBERS, q.below(A + 1)), 1.0),
        (q.count_where(NUMBERS, q.below(A + A), NUMBERS, q.at_least(A)), 2.0),
    ],
    "at_most": [
        (q.count_where(NUMBERS, q.at_most(A + 1)), 3.0),
        (q.count_where(NUMBERS, q.at_most(A + A), NUMBERS, q.at_least(A)), 2.0),
    ],
    "nth_largest": [
        (q.nth_largest(NUMBERS, 1), 8.0),
        (q.nth_largest(NUMBERS, A), 4.0),
        (q.nth_largest(NUMBERS, A + 1), 2.0),
    ],
    "is_number": [
        (q.is_number(A), True),
        (q.is_number(WORD), False),
        (q.is_number(EMPTY), False),
        (q.is_number(A / ZERO), False),
    ],
    "is_empty": [(q.is_empty(EMPTY), True), (q.is_empty(A), False), (q.is_empty(WORD), False)],
    "is_error": [(q.is_error(A / ZERO), True), (q.is_error(A), False), (q.is_error(WORD), False)],
    "if_error": [(q.if_error(A / ZERO, B), 2.0), (q.if_error(A, B), 3.0)],
    "rounded": [
        (q.join("n = ", q.text(A / B)), "n = 2"),
        (q.text(A**7), "2,187"),
        (q.join("n = ", q.rounded(A / B, 1)), "n = 1.5"),
        (q.join("n = ", q.rounded(A, 1), " of ", WORD), "n = 3.0 of beta"),
        (q.join("n = ", q.rounded(D, 1)), "n = 0.3"),
        (q.join("n = ", q.rounded(-D / A / A, 1)), "n = 0.0"),  # not -0
    ],
    "trimmed": [
        (q.join("n = ", q.trimmed(A, 1), " of ", WORD), "n = 3 of beta"),
        (q.join(q.trimmed(-D / A / A, 1), ""), "0"),
    ],
    "percent": [
        (q.percent(D, 1), "25%"),
        (q.join(q.percent(A + D, 0), " of ", WORD), "325% of beta"),
        (q.percent(-(D**9), 0), "0%"),
    ],
    "until": [(q.until(WORD, "t"), "be"), (q.until(WORD, ";"), "beta")],
    "behind": [
        (q.behind(WORD, "e", "000"), "ta"),
        (q.behind(WORD, "b", WORD), "eta"),
        (q.join("n", q.behind(WORD, ";", WORD)), "n"),
    ],
    "join": [(q.join("n = ", q.text(A), " of ", WORD), "n = 3 of beta")],
}


def test_an_empty_place_of_a_table_reads_as_zero() -> None:
    """As an empty cell does; beside the table there is nothing."""
    first, second = COLUMN[:2]
    figures = q.table([{0: first, 2: second}, {0: second}], 3)
    found = q.look_up(figures, 1, A)
    for place, expected in enumerate((math.nan, 2.0, 0.0, 4.0, math.nan)):
        np.testing.assert_equal(evaluate(found, {"a": place}), expected)
    assert evaluate(q.look_up(figures, B, 1)) == 4.0  # the second row
    of_cases = Program([found]).run({"a": np.array([1.0, 2.0, 3.0, 4.0])})[found]
    np.testing.assert_array_equal(of_cases, [2.0, 0.0, 4.0, math.nan])


def test_every_operation_of_the_table_has_a_case() -> None:
    """An operation without a hand-computed case is an operation nobody has checked."""
    assert set(CASES) == set(OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "node", "expected"), [(name, *case) for name, cases in CASES.items() for case in cases]
)
def test_an_operation_gives_the_value_worked_out_by_hand(operation: str, node: Apply, expected: Any) -> None:
    """NumPy gives the value; so does the formula package on the printed text; errors are errors in both."""
    value = evaluate(node)
    theirs = excel_value(formula(node, CELLS), cell_values())
    if isinstance(expected, float) and math.isnan(expected):
        assert math.isnan(value)
        assert str(theirs).startswith("#")
    elif isinstance(expected, str):
        assert value == expected
        assert theirs == expected
    else:
        assert value == pytest.approx(expected, rel=1e-12)
        assert float(theirs) == pytest.approx(float(expected), rel=1e-12)


@pytest.fixture(scope="module")
def other_engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Every case as `formualizer` works it out, and LibreOffice and Gnumeric where installed.

    "error" for an error.
    """
    path = tmp_path_factory.mktemp("cases") / "cases.xlsx"
    file, table = xlsxwriter.Workbook(path), formualizer.Workbook()
    sheet = file.add_worksheet("Cases")
    table.add_sheet("Cases")
    for place, value in cell_values().items():
        if value is not None:
            sheet.write(place, value)
            table.set_value("Cases", int(place[1:]), 1, value)
    texts = [formula(node, CELLS) for cases in CASES.values() for node, _ in cases]
    for row, text in enumerate(texts):
        sheet.write_formula(row, 3, text, None, "not recalculated")
        table.set_formula("Cases", row + 1, 4, text)
    file.close()
    found = {"formualizer": [table.evaluate_cell("Cases", row + 1, 4) for row in range(len(texts))]}
    if soffice() is not None:
        theirs = with_libreoffice(path)["Cases"]
        found["LibreOffice"] = [theirs[row, 3] for row in range(len(texts))]
    if shutil.which("ssconvert"):
        saved = path.with_name("gnumeric.xlsx")
        subprocess.run(["ssconvert", "--recalc", path, saved], check=True, capture_output=True)
        theirs = read_cells(saved).stored["Cases"]
        found["Gnumeric"] = [theirs[row, 3] for row in range(len(texts))]
    return {
        engine: [
            "error" if isinstance(value, dict) or str(value).startswith("#") else value for value in values
        ]
        for engine, values in found.items()
    }


def test_other_engines_give_the_values_worked_out_by_hand(other_engines: dict[str, list[Any]]) -> None:
    """The whole table in formualizer, and in LibreOffice and Gnumeric where installed."""
    every = [(name, expected) for name, cases in CASES.items() for _, expected in cases]
    for engine, values in other_engines.items():
        for (name, expected), value in zip(every, values, strict=True):
            wanted = "error" if isinstance(expected, float) and math.isnan(expected) else expected
            assert value == wanted or value == pytest.approx(wanted, rel=1e-12), (engine, name)


@pytest.mark.parametrize(
    ("number", "form", "text"),
    [
        (2.5, "0", "3"),
        (-2.5, "0", "-3"),
        (0.5, "0", "1"),
        (3.5, "0", "4"),
        (-0.4, "0", "0"),
        (1.005, "0.00", "1.01"),
        (0.125, "0%", "13%"),
        (0.0125, "0.0%", "1.3%"),
        (1234567.5, "#,##0", "1,234,568"),
        (1234.565, "#,##0.00", "1,234.57"),
        (999.5, "#,##0", "1,000"),
        (math.nan, "0", "#N/A"),
    ],
)
def test_numbers_in_text_round_half_away_from_zero(number: float, form: str, text: str) -> None:
    """Python rounds half to even, spreadsheets away from zero."""
    assert format_text(number, form) == text


# --- nodes --------------------------------------------------------------------------------------------------


def test_a_node_has_no_truth_value() -> None:
    """`if a < b` and `a < b < c` would silently drop a condition; they raise instead."""
    with pytest.raises(TypeError, match="where"):
        bool(A < B)
    with pytest.raises(TypeError):
        _ = A < B < C
    with pytest.raises(TypeError):
        _ = 1 if A else 0


@pytest.mark.parametrize("number", [2, 0.5, -1, 1e9])
def test_a_number_without_a_name_is_refused(number: float) -> None:
    """0, 1 and exponents may stand bare; everything else is an Input with a source."""
    for build in (
        lambda: A * number,
        lambda: number + A,
        lambda: q.maximum(A, number),
        lambda: q.where(A > B, number, 0),
    ):
        with pytest.raises(ValueError, match="magic number"):
            build()  # type: ignore[no-untyped-call]
    assert isinstance((A**number).arguments[1], Literal)
    assert evaluate(1 - A + 0) == -2.0


def test_nodes_are_immutable_and_differ_by_identity() -> None:
    """Two figures with the same content are two figures."""
    quantity = Quantity("q", "Q", "1", A + B)
    for node, field in (
        (A, "value"),
        (quantity, "body"),
        (A + B, "operation"),
        (Literal(1), "value"),
        (q.span([A]), "members"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(node, field, None)
    assert Quantity("q", "Q", "1", quantity.body) != quantity
    assert Literal(1) != Literal(1)


def test_precedents_and_dependents_are_each_others_inverse() -> None:
    """Direct ones only, each once, in order of appearance; spans count as their members."""
    first = Quantity("first", "First", "1", A + B * A)
    second = Quantity("second", "Second", "1", q.sum_range(q.span([C, D])) * first - A)
    third = Quantity("third", "Third", "1", q.where(second > 0, 1, 0))
    every = (*VARIABLES, first, second, third)
    assert q.precedents(first) == (A, B)
    assert q.precedents(second) == (C, D, first, A)
    assert q.precedents(third) == (second,)
    assert q.precedents(A) == ()
    assert q.dependents(A, every) == (first, second)
    assert q.dependents(first, every) == (second,)
    order = list(q.ancestors(third))
    assert len(order) == len(set(map(id, order)))
    assert all(order.index(child) < order.index(node) for node in order for child in q.children(node))


def test_figures_of_an_expression_are_replaced_and_bodies_left_alone() -> None:
    """By identity, at any depth, expressions too; what is replaced is not looked into again."""
    size = Quantity("size", "Size", "1", A * B)
    assert evaluate(q.substitute(A + B * size, {A: C, size: D})) == 1.5 + 2.0 * 0.25
    assert q.substitute(size, {A: C}) is size
    both = A * B
    assert evaluate(q.substitute(both - A, {both: D, A: both})) == 0.25 - 6.0
    assert formula(q.substitute(-(A + B), {A: C}), CELLS) == "=-(A3+A2)"


# --- one case and many --------------------------------------------------------------------------------------


def _sweepable() -> tuple[list[Node], dict[str, Any]]:
    size = Quantity(
        "size", "Size", "1", q.where(q.equal(WORD, "gamma"), q.index(NUMBERS, q.match(WORD, WORDS)), A * B)
    )
    share = Quantity("share", "Share", "1", q.sum_where(NUMBERS, WORDS, WORD) / q.maximum(A, B, size))
    label = Quantity(
        "label", "Label", "1", q.where(A > B, q.join("n ", q.join("", q.rounded(A, 2))), "small")
    )
    name = Quantity("name", "Name", "1", q.index(WORDS, q.match_at_most(A, q.span(COLUMN[:3]))))
    fixed = Quantity("fixed", "Fixed", "1", C + D)
    chosen = Quantity("chosen", "Chosen", "1", q.where(q.is_number(EMPTY), EMPTY, fixed))
    generator = np.random.default_rng(7)
    count = CHUNK + 37
    inputs = {
        "a": generator.uniform(2, 9, count),
        "b": generator.uniform(0.5, 12, count),
        "word": generator.choice(["alpha", "Beta", "gamma"], count),
        "empty": np.where(generator.random(count) < 0.5, np.nan, 5.0),
    }
    return [size, share, label, name, fixed, chosen], inputs


@pytest.mark.parametrize("many", ["run", "sweep"])
def test_many_cases_at_once_equal_one_case_at_a_time(many: str) -> None:
    """Numbers, texts and unset overrides, over more than one chunk, in both ways of running many."""
    outputs, inputs = _sweepable()
    program = Program(outputs)
    got = program.run(inputs) if many == "run" else program.sweep(inputs)
    count = len(inputs["a"])
    for case in [*range(40), CHUNK - 1, CHUNK, count - 1]:
        alone = program.run({name: values[case].item() for name, values in inputs.items()})
        for node in outputs:
            value = np.broadcast_to(np.asarray(got[node], dtype=object), count)[case]
            assert value == alone[node] or value == pytest.approx(alone[node], rel=1e-15), (node, case)


def test_cases_of_kinds_equal_one_case_at_a_time() -> None:
    """What follows from the kind alone is worked out once a kind: numbers, texts, look-ups, errors, criteria.

    One input is stated in some kinds and follows another one, which differs by case, in the others.
    """
    outputs, inputs = _sweepable()
    twice = Quantity("twice", "Twice", "1", A + A)
    follower = Input("follower", "Follower", "1", None, default=lambda: twice)
    counted = Quantity(
        "counted",
        "Counted",
        "number",
        q.count_where(NUMBERS, q.at_least(B)) + q.count_where(NUMBERS, q.below(A)),
    )
    outputs = [*outputs, counted, Quantity("both", "Both", "1", follower + A)]
    program = Program(outputs)
    kinds: dict[str, Any] = {
        "word": np.array(["alpha", "Beta", "gamma"]),
        "b": np.array([0.5, 3.0, 12.0]),
        "follower": np.array([None, 7.0, None], dtype=object),
    }
    places = np.random.default_rng(1).integers(0, 3, 200)
    each = {name: inputs[name][:200] for name in ("a", "empty")}
    found = program.of_kinds({}, kinds, [*each])(places, each)
    for case in range(200):
        own = {name: values[places[case]] for name, values in kinds.items()}
        given = {name: values[case].item() for name, values in each.items()}
        alone = program.run({**{name: value for name, value in own.items() if value is not None}, **given})
        for node in outputs:
            value = np.broadcast_to(np.asarray(found[node], dtype=object), 200)[case]
            assert value == alone[node] or value == pytest.approx(alone[node], rel=1e-15), (node, case)


def test_errors_of_many_cases_are_those_of_one() -> None:
    """Division by zero, what is compared with it, a lookup without an entry, of numbers and of texts.

    There is an error in that case only.
    """
    ratio = Quantity("ratio", "Ratio", "1", A / B)
    outputs = [
        ratio,
        Quantity("chosen", "Chosen", "1", q.where(ratio > 1, C, D)),
        Quantity("flag", "Flag", "1", q.if_error(q.where(ratio > 1, C, D), A)),
        Quantity("entry", "Entry", "1", q.index(NUMBERS, A)),
        Quantity("word", "Word", "1", q.index(WORDS, A)),
        Quantity("caught", "Caught", "1", q.if_error(q.index(WORDS, A), "none")),
        Quantity("same", "Same", "1", q.where(q.equal(ratio, 1), 1, 0)),
    ]
    program = Program(outputs)
    inputs = {"a": np.array([0.0, 1.0, 2.0, 99.0, 3.0]), "b": np.array([0.0, 1.0, 0.0, 4.0, 2.0])}
    for found in (program.run(inputs), program.sweep(inputs)):
        for case in range(5):
            alone = program.run({name: values[case].item() for name, values in inputs.items()})
            for node in outputs:
                assert found[node][case] == alone[node] or (
                    found[node][case] != found[node][case] and alone[node] != alone[node]
                ), (node, case)


def test_a_sweep_without_arrays_is_one_case_and_returns_what_is_kept() -> None:
    """`keep` limits what comes back, not what is worked out."""
    total, product = Quantity("sum", "Sum", "1", A + B), Quantity("product", "Product", "1", A * B)
    program = Program([total, product])
    assert program.sweep({"a": 4.0}, keep=[product]) == {product: 8.0}
    swept = program.sweep({"a": np.array([4.0, 5.0])}, keep=[total])
    assert list(swept) == [total]
    assert swept[total].tolist() == [6.0, 7.0]


def test_a_figure_across_cases_takes_the_value_of_that_case() -> None:
    """The difference between two columns is an expression like any other."""
    size = Quantity("size", "Size", "1", A * B)
    gain = Quantity("gain", "Gain", "1", InCase(size, 1) - InCase(size, 0))
    inner = Program([size])
    cases = [inner.run({"a": value}) for value in (2.0, 5.0)]
    assert Program([gain]).run({}, cases)[gain] == 6.0
    assert formula(gain.body, OneColumn(size)) == "=B1-A1"


def test_a_figure_in_several_cases_is_summed_and_counted() -> None:
    """One of three cases is not known: it is no part of the sum, and it is counted."""
    size = Quantity("size", "Size", "1", q.where(A > B + B, q.NOT_KNOWN, A * B))
    both = Quantity("both", "Both", "1", q.sum_range(Cases(size, 3, "all sizes")))
    unknown = Quantity("unknown", "Unknown", "1", q.count_where(Cases(size, 3, "all sizes"), q.NOT_KNOWN))
    cases = [Program([size]).run({"a": value}) for value in (2.0, 5.0, 4.0)]
    values = Program([both, unknown]).run({}, cases)
    assert values[both] == (2.0 + 4.0) * 2.0
    assert values[unknown] == 1
    assert sentence(both) == "sum of all sizes"


@pytest.mark.parametrize(
    ("number", "text"), [(1e-6, "0.000001"), (2.5e-5, "0.000025"), (1e-4, "0.0001"), (-1e-9, "-0.000000001")]
)
def test_a_small_number_in_a_text_has_no_exponent(number: float, text: str) -> None:
    """As Excel and LibreOffice join it; the package formulas writes another text for the same number."""
    assert evaluate(q.join("x", Literal(number))) == f"x{text}"
    assert difference(f"x {text}", f"x {number:.15g}") == 0


def test_a_text_of_an_error_is_an_error() -> None:
    """In spreadsheets too, so what stands in its place is shown."""
    error = Literal(math.nan)
    for words in (q.rounded(error, 1), q.percent(error, 0), q.text(error)):
        assert evaluate(q.if_error(q.join("floor ", words, " ms"), "not known")) == "not known"
