"""Equations that stand as text: what the reader makes of them, and what it says of lines that cannot be."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, cast

import pytest

from mantile.equations import tables, text
from mantile.equations.build import build_graph
from mantile.equations.tables import Equations, Space
from mantile.equations.text import FOLDER, EquationError, read, subjects
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Apply, InCase, Input, Literal, Quantity, ancestors, defined, maximum
from mantile.ir.build import build_ir
from mantile.library.models import load_model
from mantile.library.profiles import Library
from mantile.library.request_classes import RequestClass
from mantile.library.scenario_fields import STATED_FIELDS
from tests.test_demand import ask

SAID: dict[str, Any] = {"input_tokens": 900, "output_tokens": 90, "input_spread": 0.1, "output_spread": 0}
TEXT = """
# A shop.
define with_tax(net) = net * (1 + tax)

[shop] Prices | of one basket
tax       Tax [1] := 0.2 in 0 to 1 ; share of the price @ assumed 2026-11: guess
for fruit | price in apple | 3; pear | 4
price.{fruit}  Price of an {fruit} [USD] := {price} ; by weight

for n in 1..3
step.{n}  Step {n} [USD] = step.{n-1} + price.apple

over shop.step.1 = price.apple
sum       All of them (the basket) [USD] = sum([price.*]) + stall.rent
paid      Paid [USD] = with_tax(sum) ; at the till @ the law

[shop] Reduced | | when season
when sale, not holiday
cut       Cut [1] := 0.5 ; of the price

over shop.sum = it * cut | when sale, not holiday
"""

MODULES = ("linear", "attention", "moe", "recurrence", "elementwise", "vision", "lora")
OF_PASSES = ("phase", "forward", "messages", "roofline", *MODULES)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A reader of texts that stand in no file."""

    def rows(text: str, *features: str) -> Equations:
        monkeypatch.setattr(tables, "subjects", lambda: {"shop": read(text, "shop.eq")})
        made = Equations(frozenset(features))
        made.know(defined("stall.rent", "Rent", "USD", 10))
        return made

    return rows


def test_a_row_is_read_when_it_is_asked_for(shop: Any) -> None:
    """Names of the own subject and of others, families, macros, words, and what a feature lays over a row."""
    rows = shop(TEXT)
    paid = rows["shop.paid"]
    assert (paid.label, paid.unit, paid.note, paid.source) == ("Paid", "USD", "at the till", "the law")
    assert rows["shop.sum"].name == "the basket"
    tax = rows.figure("shop.tax")
    assert isinstance(tax, Input)
    assert (tax.value, tax.minimum, tax.maximum, tax.status, tax.fixed) == (0.2, 0, 1, "assumed", False)
    values = Program([paid, rows["shop.step.3"]]).run({})
    assert values[paid] == pytest.approx((3 + 4 + 10) * 1.2)
    assert values[rows["shop.step.3"]] == 9
    assert rows.place("shop.paid") == "shop.eq:15"
    assert [section.title for section in rows.sections("shop")] == ["Prices"]
    sale = shop(TEXT, "season", "sale")
    assert Program([sale["shop.paid"]]).run({})[sale["shop.paid"]] == pytest.approx((3 + 4 + 10) * 0.5 * 1.2)
    assert [section.title for section in sale.sections("shop")] == ["Prices", "Reduced"]
    assert "shop.cut" not in shop(TEXT, "season", "sale", "holiday")


BASKETS = """
[shop] Fruit | of each basket | each basket
{b}.count   Fruit of {b} [fruit] := 3
each fruit
{b}.{fruit}  Price of {fruit} in {b} [USD] = {price} * shop.{b}.count
over shop.{b}.{fruit} = it * {b}.cut | when reduced

{b}.cut     Cut of {b} [1] := 0.5
{b}.sum     All fruit of {b} [USD] = sum([shop.{b}.{fruit} each fruit])

[shop] No fruit | of a kind that nobody names
nothing     Nothing [USD] = stall.rent + sum([shop.{kind} each kind])
"""


def test_rows_stand_once_for_each_thing_that_python_names(shop: Any) -> None:
    """Lines of a block in spaces of their own, within those of the block; features of one space alone."""
    rows = shop(BASKETS)
    rows.make_in("basket", Space(facts={"b": "small"}), Space(facts={"b": "large"}))
    reduced = Space(facts={"fruit": "pear", "price": "stall.rent"}, features=frozenset({"reduced"}))
    rows.make_in("fruit", Space(facts={"fruit": "apple", "price": "stall.rent"}), reduced)
    small, _, _ = rows.sections("shop")
    assert [row.id for row in small.figures()] == [
        f"shop.small.{name}" for name in ("count", "apple", "pear", "cut", "sum")
    ]
    total, nothing = rows["shop.large.sum"], rows["shop.nothing"]
    values = Program([total, nothing]).run({})
    assert (values[total], values[nothing]) == (10 * 3 * 1.5, 10)


def test_rows_of_several_columns_are_made_apart(shop: Any) -> None:
    """A figure as another column has it, and what all columns share. Spaces of a fork stay there."""
    text = "[shop] Stalls | each stall\nrent.{n}  Rent [USD] = in_case(stall.paid * tax, {n}, 'of B')\n"
    rows = shop(f"{text}\n[shop] Words\nwords  Words [1] = 'take it'\n")
    rows.know(defined("shop.tax", "Tax", "1", 2))
    rows.know(Quantity("stall.paid", "Paid", "USD", rows.figure("stall.rent") * Input("n", "N", "1", 1)))
    forks = [rows.fork() for _ in "ab"]
    for fork in forks:
        fork.make_in("stall", Space(facts={"n": "1"}))
    paid, tax = cast(Apply, forks[1]["shop.rent.1"].body).arguments
    assert paid == InCase(rows["stall.paid"], 1, "of B") and tax is rows.figure("shop.tax")
    assert "shop.rent.1" not in rows and cast(Literal, rows["shop.words"].body).value == "take it"


AGAIN = """
again late | , in the evening | stall.rent = shop.half; shop.price.* = shop.cut.*

[shop] Day
half        Half the rent [USD] = stall.rent * cut
cut         Cut [1] := 0.5
for f in a; b
price.{f}   Price of {f} [USD] = stall.rent + stall.rent
cut.{f}     Reduced {f} [USD] = price.{f} * cut

sum         All [USD] = sum(*[price.*]) + stall.rent
fee         Fee [USD] := 2

[shop] Evening | what the day takes less | again late
less        Less [USD] = sum - late.shop.sum + late.shop.fee
"""


def test_figures_are_made_again_with_some_replaced(shop: Any) -> None:
    """What follows from nothing that is replaced is shared; rows made again stand before those that ask."""
    rows = shop(AGAIN)
    less = rows["shop.less"]
    day, again, evening = rows.sections("shop")
    assert (day.title, again.title, evening.title) == ("Day", "In the evening", "Evening")
    assert [(row.id, row.label) for row in again.figures()] == [("late.shop.sum", "All, in the evening")]
    assert Program([less]).run({})[less] == (20 + 20 + 10) - (10 + 10 + 5) + 2


def test_a_table_of_python_stands_by_its_columns(shop: Any) -> None:
    """On the sheet and in expressions, whatever ids its figures have."""
    rows = shop("[shop] Stock\nstock.pieces\nall  All pieces [1] = sum(stock.pieces)\n")
    pieces = [defined(f"shop.pieces.{kind}", kind, "1", 2) for kind in ("apple", "pear.green")]
    rows.know_table("shop.stock", {"pieces": pieces})
    assert rows.sections("shop")[0].rows == (*pieces, rows["shop.all"])
    assert Program([rows["shop.all"]]).run({})[rows["shop.all"]] == 4


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a  A [1] = pirce.apple", r"shop.eq:3: no row pirce.apple; did you mean shop.price.apple\?"),
        ("a  A [1] = b\nb  B [1] = a", "shop.eq:3: a circle: shop.a <- shop.b <- shop.a"),
        ("a  A [1] = 7 * price.apple", "shop.eq:3: 7 . price.apple: 7 is a magic number"),
        ("a  A [1] = price.apple if 1 else 0", "shop.eq:3: price.apple if 1 else 0 is no expression"),
        ("a  A [1] = round(price.apple)", "shop.eq:3: round.price.apple. is no expression"),
        ("a  A [1] = price.apple +", "shop.eq:3: price.apple .: invalid syntax"),
        ("a  A = price.apple", "shop.eq:3: expected id, label"),
        ("for x | y in a | b | c\na  A [1] = price.apple", "shop.eq:3: expected 2 values, found a | b | c"),
        ("for n in 5..2\na  A [1] = price.apple", "shop.eq:3: expected LOW..HIGH, found 5..2"),
        ("when {season}\na  A [1] = price.apple", "shop.eq:3: expected names of features"),
        ("over shop.price", "shop.eq:3: expected over ROW = EXPRESSION"),
        ("price.apple  Price [USD] := 4", "shop.eq:3: shop.price.apple stands in shop.eq:2 too"),
        ("define twice(x) 2", "shop.eq:3: expected define NAME"),
    ],
)
def test_a_line_that_cannot_be_is_named(shop: Any, line: str, said: str) -> None:
    text = f"[shop] Prices\nprice.apple  Price [USD] := 3\n{line}\n"
    with pytest.raises(EquationError, match=said):
        shop(text).figure("shop.a")


def test_rows_of_a_space_are_found_behind_what_its_ids_lack(shop: Any) -> None:
    """Names are looked for behind `within` first, where ids begin otherwise; units, notes have facts too."""
    text = (
        "[shop] Prices | in {unit} | each stall\n"
        "{name}.price.0.05  Price [{unit}] = rent + 0 * `stall.rent-a+b`\n"
    )
    rows = shop(text)
    rows.know(defined("stall.rent-a+b", "Rent of both", "USD", 10))
    rows.know(defined("south.shop.rent", "Rent", "USD", 7))
    rows.make_in("stall", Space(facts={"name": "south", "unit": "USD"}, within="south."))
    ((block, space, identifier),) = rows.places("shop")
    assert (block.title, space.within, identifier) == ("Prices", "south.", "shop.south.price.0.05")
    price = rows[identifier]
    assert price.unit == "USD" and Program([price]).run({})[price] == 7
    assert rows.node("shop.south.price.0.05") is price
    assert [section.note for section in rows.sections("shop")] == ["in USD"]


def test_a_space_within_another_looks_behind_what_it_says(shop: Any) -> None:
    """Names are looked for where the inner space says; figures that stand apart are added one by one."""
    text = "[shop] Prices | each day\neach stall\n{day}.{name}  Price [USD] = stall.rent\n\n"
    rows = shop(f"{text}[shop] All\nall  All [USD] = added(*[shop.{{day}}.a each day]) ; of a\n")
    rows.know(defined("a.stall.rent", "Rent of a", "USD", 7))
    rows.make_in("day", Space(facts={"day": "mon"}), Space(facts={"day": "tue"}))
    rows.make_in("stall", Space(facts={"name": "a"}, within="a."), Space(facts={"name": "b"}))
    found = Program([rows["shop.mon.a"], rows["shop.mon.b"], rows["shop.all"]]).run({})
    assert [found[rows[f"shop.{name}"]] for name in ("mon.a", "all")] == [7, 14]
    assert rows["shop.mon.b"].body is rows.figure("stall.rent")
    assert repr(rows["shop.all"].body) == repr(rows["shop.mon.a"] + rows["shop.tue.a"])


def test_places_of_rows_are_those_of_lines_made_several_times_too(shop: Any) -> None:
    """In the order of the sheet; a figure that is stated for each has facts in it."""
    text = "[shop] Prices\nrent  Rent [USD] := 5\neach fruit\n{fruit}.price  Price [USD] := {usd}\n\n"
    rows = shop(f"{text}dear  The dearest price [USD] = max(shop.*.price)\n")
    rows.make_in(
        "fruit", *(Space(facts={"fruit": name, "usd": usd}) for name, usd in (("fig", "3"), ("pear", "2")))
    )
    names = ["shop.rent", "shop.fig.price", "shop.pear.price", "shop.dear"]
    assert [identifier for *_, identifier in rows.places("shop")] == names
    assert Program([rows["shop.dear"]]).run({})[rows["shop.dear"]] == 3


def test_parts_of_ids_begin_with_digits(shop: Any) -> None:
    """And a text may have the word that stands for the row below."""
    rows = shop("[shop] A\nboth  Both [1] = join('what it is: ', text(shop.1_to_3.rent))\n")
    rows.know(defined("shop.1_to_3.rent", "Rent", "USD", 7))
    assert Program([rows["shop.both"]]).run({})[rows["shop.both"]] == "what it is: 7"


def test_a_row_stands_under_a_head() -> None:
    with pytest.raises(EquationError, match=r"shop.eq:1: a row before the first"):
        read("a  A [1] = 1\n", "shop.eq")
    with pytest.raises(EquationError, match=r"shop.eq:1: expected \[shop\] and a title, found \[stall\] A"):
        read("[stall] A\n", "shop.eq")


@pytest.mark.parametrize("drawn", range(10))
def test_every_row_of_the_text_can_be_made(library: Library, drawn: int) -> None:
    """Whatever scenarios ask for together: every name resolves, no circle; all are rows of their subject."""
    draw = random.Random(drawn)
    devices = draw.choice([0, 0, 2])
    of_class, needed = draw.choice([({}, ""), ({"turns": 2}, ""), ({"think_time": 9.0}, "sessions")])
    a, b = (RequestClass(name=name, **SAID, **of_class) for name in "ab")
    stated = set(draw.sample(sorted(set(STATED_FIELDS.values()) - {"devices", "links"}), 4))
    graph = build_graph(
        build_ir(load_model(draw.choice(["llama-3.1-8b", "qwen3-30b-a3b"]))),
        library,
        not devices and draw.random() < 0.5,
        draw.random() < 0.5,
        draw.random() < 0.5 or "turns" in of_class,
        frozenset(stated | ({needed} - {""}) | ({"devices"} if devices else set())),
        (a, b) if of_class or draw.random() < 0.5 else (),
        draw.choice([None, ask().scenario.capacity]),
        devices,
    )
    rows, figures = graph.rows, graph.figures
    behind = [node for node in ancestors(*figures.values()) if isinstance(node, Quantity)]
    assert all(figures.get(node.id, node) is node for node in behind), "two rows of one id"
    assert not {identifier for identifier in rows._over if identifier not in rows}
    homes = {"link": {"transfer_link"}, "memory": {"runtime"}, "formats": {"hardware", "model"}}
    homes |= {subject: {"prefill", "decode"} for subject in OF_PASSES}
    homes |= {"hardware": {"peak_key"}, "ranks": {"plan"}, "fallback": {"efficiency"}}
    for subject in subjects():
        for part in ("", "Hardware", "Prefill", "Operations", "Decode"):
            for section in rows.sections(subject, part=part):
                one = subject.removesuffix("s")  # rows of a tensor among those of tensors
                of = {f".{name}." for name in {subject, one, *homes.get(subject, ())}}
                ids = [f".{figure.id}" for figure in section.figures() if not section.again]
                assert not [name for name in ids if not any(part in name for part in of)], subject


def test_a_block_for_each_of_a_family_and_in_each_space(shop: Any) -> None:
    """A condition for some members, values that name outer ones, a stated figure that all spaces share."""
    text = """
for n | size | name | when in a | 1 | left |; b | 2 | right | sale
[shop] Shelf {name} | when {when} | each floor
{n}.width  Width of the {name} shelf [m] := {size} ; of wood @ measured: tape
for side | body in long | {n}.width + {n}.width; short | {n}.width
{n}.{side}  {side} side [m] = {body}
"""
    for features, count in ((), 1), (("sale",), 2):
        rows = shop(text, *features)
        rows.make_in("floor", Space(), Space("upper.", ", upper", called=False))
        sections = rows.sections("shop")
        assert [section.title for section in rows.sections("shop", prefix="upper.")] == [
            f"Shelf {name}, upper" for name in ("left", "right")[:count]
        ]
        assert [figure.id for figure in sections[0].figures()] == [
            "shop.a.width",
            "shop.a.long",
            "shop.a.short",
        ]
        assert [figure.id for figure in sections[1].figures()] == ["upper.shop.a.long", "upper.shop.a.short"]
        assert (rows["upper.shop.a.long"].label, rows["upper.shop.a.long"].name) == ("long side, upper", "")
        assert Program([rows["upper.shop.a.long"]]).run({})[rows["upper.shop.a.long"]] == 2
    width = rows.figure("shop.b.width")
    assert isinstance(width, Input)
    assert (width.status, width.value, "upper.shop.b.width" in rows) == ("measured", 2, False)


def test_the_things_of_a_block_may_differ_by_member(shop: Any) -> None:
    """What stands for a name of a block stands in `each` within it too."""
    text = """
for n in left; right
[shop] Shelf {n}
each thing on the {n}
{n}.{t}   {t} on the {n} [m] = stall.rent
"""
    rows = shop(text)
    rows.make_in("thing on the left", Space(facts={"t": "Book"}), Space(facts={"t": "Cup"}))
    rows.make_in("thing on the right", Space(facts={"t": "Pot"}))
    ids = [[figure.id for figure in section.figures()] for section in rows.sections("shop")]
    assert ids == [["shop.left.Book", "shop.left.Cup"], ["shop.right.Pot"]]


def test_a_space_has_a_home_of_its_own(shop: Any) -> None:
    """Ids in place of those of the subject, blocks that go on, and defined names by the space."""
    text = """
define dear = price
[shop] Till | of each | subtotal | each counter
[shop] Drawer | each counter
drawer  Drawer [USD] = dear + price
[shop] Till | each counter
price   Price [USD] = stall.rent
over {space}price = it + it | when sale
"""
    rows = shop(text, "sale")
    rows.make_in("counter", Space(home="left"), Space(home="right"))
    till, drawer = rows.sections("shop", prefix="right.")
    assert (till.title, till.note, till.total, [row.id for row in till.figures()]) == (
        "Till",
        "of each",
        1,
        ["right.price"],
    )
    assert [row.id for row in drawer.figures()] == ["right.drawer"]
    values = Program([rows["left.drawer"], rows["right.drawer"]]).run({})
    assert values[rows["right.drawer"]] == 40
    assert "left" not in repr(rows["right.drawer"].body)
    again = Quantity("right.price", "Price", "USD", rows.figure("stall.rent"))
    rows.know(again)
    assert rows["right.price"] is again


def test_lines_are_no_longer_than_a_page_is_wide() -> None:
    for path in FOLDER.glob("*.eq"):
        long = [
            number for number, line in enumerate(path.read_text("utf-8").splitlines(), 1) if len(line) > 110
        ]
        assert not long, f"{path.name}: {long}"


def test_operations_are_those_of_the_graph(shop: Any) -> None:
    """An expression is the same whether it is read or written in Python."""
    rows = shop(TEXT)
    apple = rows.figure("shop.price.apple")
    read_ = shop(
        "[shop] A\nprice.apple  P [USD] := 3\nmore  M [USD] = max(price.apple, 0) ** 2 / price.apple\n"
    )
    made = Quantity("shop.more", "M", "USD", maximum(apple, 0) ** 2 / apple)
    assert Program([made]).run({})[made] == Program([read_["shop.more"]]).run({})[read_["shop.more"]] == 3


SPACES = """
[shop] Stalls | rows of each, {n} | each stall
weight   Weight [kg] = stall.weight
price    Price [USD] = stall.rent
sum      Sum [USD/kg] = price / weight
over {space}shop.sum = it + it | when sale
cell.{n}.{n}  Cell [USD] = stall.rent
stall.rent

[shop] Aside | made once | aside
cells    Cells [USD] = sum([cell.*.*])
"""


def test_a_space_has_rows_again(shop: Any) -> None:
    """What follows from nothing of its own is that of all; names of rows elsewhere stand in a block too."""
    rows = shop(SPACES, "sale")
    rows.know(defined("stall.weight", "Weight", "kg", 2), defined("b.stall.weight", "Weight", "kg", 4))
    again = [Space(facts={"n": "1"}), Space("b.", ", b", facts={"n": "1"}, shares=True, called=False)]
    rows.make_in("stall", *again)
    own, shared = rows.in_space("b.")["shop.sum"], rows.in_space("b.")["shop.price"]
    assert (own.id, own.label, own.name) == ("b.shop.sum", "Sum, b", "")
    assert shared is rows["shop.price"]
    values = Program([own, rows["shop.sum"], rows["shop.cells"]]).run({})
    assert (values[own], values[rows["shop.sum"]], values[rows["shop.cells"]]) == (5, 10, 10)
    ids = [[figure.id for figure in section.figures()] for section in rows.sections("shop")]
    assert ids == [
        ["shop.weight", "shop.price", "shop.sum", "shop.cell.1.1", "stall.rent"],
        ["b.shop.weight", "b.shop.sum"],
    ]
    of_b = rows.in_space("b.").sections("shop")[0]
    assert (of_b.title, of_b.note) == ("Stalls, b", "rows of each, 1")


def test_rows_of_a_block_are_made_for_each(shop: Any) -> None:
    """For all that Python says there is; an id may have signs and words that Python's grammar has not."""
    each = "each fruit\nprice.{n}  Price, {n} [USD] = stall.rent\n\n"
    text = f"[shop] A\n{each}sum  Sum [USD] = `price.a+b` + price.c + `price.with`\n"
    rows = shop(text)
    rows.make_in("fruit", *(Space(facts={"n": n}) for n in ("a+b", "c", "with")))
    ids = [figure.id for figure in rows.sections("shop")[0].figures()]
    assert ids == ["shop.price.a+b", "shop.price.c", "shop.price.with", "shop.sum"]
    assert Program([rows["shop.sum"]]).run({})[rows["shop.sum"]] == 30


def test_words_of_python_stand_in_ids_and_texts(shop: Any) -> None:
    """An id may have a word of Python in it, a text the word `it`; a stated figure may be a fact."""
    rows = shop(
        """
[shop] Places | each place
place.{n}   Place {n} [1] := {n} ; where it stands

[shop] Words
way.from    First place [1] = place.1
words       Words [1] = join('it is ', sum([place.*]), ' less ', way.from)
"""
    )
    rows.make_in("place", *(Space(facts={"n": f"{n}"}) for n in (1, 2)))
    assert Program([rows["shop.words"]]).run({})[rows["shop.words"]] == "it is 3 less 1"


def test_an_id_comes_before_a_name_of_the_own_subject(shop: Any) -> None:
    rows = shop(
        "[shop] A\nstall.rent  Rent [USD] = stall.rent\ntwice  Twice [USD] = shop.stall.rent + stall.rent\n"
    )
    assert Program([rows["shop.twice"]]).run({})[rows["shop.twice"]] == 20


def test_a_wheel_holds_the_subjects_until_a_text_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "one.eq"
    file.write_text("[one] Title\na  A [1] := 1\n", "utf-8")
    monkeypatch.setattr(text, "FOLDER", tmp_path)
    text.subjects.cache_clear()
    (tmp_path / text.COMPILED).write_bytes(text.compile_subjects())
    text.subjects.cache_clear()
    with monkeypatch.context() as without_reader:
        without_reader.setattr(text, "read", None)
        assert [line.id for line in text.subjects()["one"].blocks[0].lines] == ["one.a"]
    file.write_text("[one] Title\nb  B [1] := 1\n", "utf-8")
    text.subjects.cache_clear()
    try:
        assert [line.id for line in text.subjects()["one"].blocks[0].lines] == ["one.b"]
    finally:
        monkeypatch.undo()
        text.subjects.cache_clear()


def test_parts_are_added_one_by_one(shop: Any) -> None:
    """Of one part it is the part itself; "not" is a part of an id."""
    rows = shop(
        "[shop] A\nprice.a  P [USD] := 3\nprice.not.a  P [USD] = added(*[stall.rent * {n} each two])\n"
        "one  One [USD] = added(price.not.a)\nnone  None [USD] = added(*[stall.rent each none])\n"
    )
    rows.make_in("two", Space(facts={"n": "1"}), Space(facts={"n": "stall.rent"}))
    rent, both = rows.figure("stall.rent"), rows["shop.price.not.a"]
    assert repr(both.body) == repr(rent * 1 + rent * rent)
    assert rows["shop.one"].body is both and Program([rows["shop.none"]]).run({})[rows["shop.none"]] == 0


def test_a_fork_has_spaces_of_its_own(shop: Any) -> None:
    """Rows that it makes stand there alone, and again in the next."""
    rows = shop("[shop] Stalls | each stall | aside\nprice  Price [USD] = rent\n")
    for number in (1, 2):
        fork, home = rows.fork(), f"stalls.{number}"
        fork.know(defined(f"{home}.rent", "Rent", "USD", number))
        fork.make_in("stall", Space(home=home))
        ((_, _, identifier),) = fork.places("shop")
        assert Program([fork[identifier]]).run({})[fork[identifier]] == number
        assert identifier == f"{home}.price" and identifier not in rows


def test_a_file_uses_the_names_that_it_defines(shop: Any) -> None:
    """Another file may have its own; in spaces that differ in facts a name stands for each of them."""
    text = "define cheap = price.{n} <= stall.rent\n[shop] A\neach fruit\nprice.{n}  Price [USD] := {n}\n"
    rows = shop(f"{text}cheap.{{n}}  Cheap [flag] = where(cheap, 1, 0)\n")
    rows.make_in("fruit", Space(facts={"n": "1"}), Space(facts={"n": "30"}))
    cheap = [rows["shop.cheap.1"], rows["shop.cheap.30"]]
    found = Program(cheap).run({})
    assert [found[one] for one in cheap] == [1, 0]
