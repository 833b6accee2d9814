"""The decision on What-if: after edits it says what the engine says of the edited plans, each by itself."""

from __future__ import annotations

import math
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import few_of
from live import Typed, as_written, edit, few, typed_into
from office import asked_of_office, needs_office
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.decide import LIMIT, OBJECTIVE, ONE, OTHER, OWN_WEIGHTS, TAKE, WEIGHT, Decided
from mantile.equations.measures import MEASURES, Measure
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import Input, Quantity
from mantile.library.errors import InputError
from mantile.library.scenario import Scenario, parse_scenario
from mantile.roundtrip.import_workbook import import_workbook
from mantile.search.optimize import Optimum, optimize
from mantile.verification.compiled_formulas import CompiledSheets
from mantile.verification.verify import verify
from mantile.workbook.book import ACROSS, FIRST
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import read_cells, typed_inputs
from mantile.workbook.sheets.decide import DECISION
from mantile.workbook.sheets.folding import WHAT_IF

KEYS = (
    "usd_per_million_tokens_output",
    "output_tokens_per_s_per_accelerator",
    "tpot_s",
    "ttft_p95_s",
    "power_w",
    "accelerators",
)


@cache
def found() -> Optimum:
    """A choice among a few plans, one of them without a price."""
    return optimize(
        model="llama-3.1-8b",
        input_tokens=1000,
        output_tokens=200,
        concurrency=32,
        limits={"tpot": 0.03},
        over={
            "accelerator": ["h100-sxm", "l40s", "mi300x", "mi355x"],
            "tp": [1, 2],
            "pp": [1],
            "attention_dp": [1],
        },
        gpus_max=4,
        library=few(("h100-sxm", "l40s", "mi300x", "mi355x")),
    )


@cache
def book() -> EstimateBook:
    return lay_out(found().estimate)


def measures() -> dict[str, Measure]:
    return {of.key: of for of in MEASURES}


@cache
def cases() -> tuple[dict[Any, Any], ...]:
    """Values of every column as generated."""
    return tuple(book().values(book().generated_inputs())[:-1])


def said(typed: dict[str, Any], plans: dict[int, dict[str, Any]] | None = None) -> dict[str, Any]:
    """What the sheet says once something is typed on it, and into columns of plans; 0 is the base.

    What is typed on the sheet alone changes no column, unless another plan is taken.
    """
    inputs = book().generated_inputs()
    taken = typed.get(TAKE, 1)
    if plans or taken != 1:
        if taken in range(1, book().columns):
            inputs[0] |= {figure.id: inputs[taken][figure.id] for figure in book().taken_inputs}
        inputs[0] |= typed
        for plan, changes in (plans or {}).items():
            inputs[plan] |= changes
        columns: list[dict[Any, Any]] = book().values(inputs)[:-1]
    else:
        inputs[0] |= typed
        columns = [cases()[0] | guards().run(book().given(inputs)[0]), *cases()[1:]]
    across = sentences().run({}, columns)
    return {figure.id.removeprefix("decide."): across[figure] for figure in sentences().outputs}


@cache
def guards() -> Program:
    """What says of each cell of the sheet whether it can be."""
    return Program(figure for figure in book().addresses if is_guard(figure))


def is_guard(figure: Any) -> bool:
    return isinstance(figure, Quantity) and figure.id.startswith("typed.decide.")


@cache
def sentences() -> Program:
    """Everything that the sheet says."""
    return Program(
        figure
        for figure in book().addresses
        if isinstance(figure, Quantity) and figure.id.startswith("decide.")
    )


@cache
def as_generated() -> dict[str, Any]:
    """What the sheet says before anything is typed."""
    return said({})


def results(plan: int, changes: dict[str, Any]) -> dict[str, float | None]:
    """What the engine says of a plan by itself, with figures that were typed over."""
    return _results(plan, tuple(changes.items()))


@cache
def _results(plan: int, typed_over: tuple[tuple[str, Any], ...]) -> dict[str, float | None]:
    changes = dict(typed_over)
    scenario = found().scenario
    fields = scenario.variants[plan - 1].model_dump(
        exclude_none=True, exclude_defaults=True, exclude={"name"}
    )
    base = scenario.model_dump(exclude_none=True, exclude_defaults=True, exclude={"variants", "decision"})
    overrides = [
        {"id": identifier.removesuffix(".override"), "value": value} for identifier, value in changes.items()
    ]
    alone = parse_scenario(base | fields | {"overrides": overrides}, "alone")
    made: Estimate = estimate(alone, library=found().question.library)
    row = made.metrics()
    return {key: row.get(measures()[key].metric) for key in KEYS}


def best(typed: dict[str, Any], plans: dict[int, dict[str, Any]]) -> int:
    """The number of the plan that wins, worked out anew: 0 where none keeps every limit."""
    wanted = next((of for of in MEASURES if of.metric.label == typed[OBJECTIVE]), None)
    weights = {key: typed.get(f"{WEIGHT}{key}", 0.0) for key in KEYS}
    scores: dict[int, float] = {}
    for plan in range(1, len(found().scenario.variants) + 1):
        reached = results(plan, plans.get(plan, {}))
        kept = True
        for key in KEYS:
            bound = typed.get(f"{LIMIT}{key}")
            if bound is None:
                continue
            value, of = reached[key], measures()[key]
            shown = None if value is None else of.metric.shown(value)
            kept &= shown is not None and (shown <= bound if of.lower else shown >= bound)
        counts = {wanted.key: 1.0} if wanted else {key: weight for key, weight in weights.items() if weight}
        if not kept or any(reached[key] is None for key in counts):
            continue
        scores[plan] = sum(
            weight * (1 if measures()[key].lower else -1) * math.log(reached[key] or math.nan)
            for key, weight in counts.items()
        )
    return min(scores, key=lambda plan: (round(scores[plan], 9), plan)) if scores else 0


def edits(seed: int) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Something that people type: another objective, limits, weights, prices and factors of plans."""
    chosen = random.Random(seed)
    now = as_generated()
    labels = [measures()[key].metric.label for key in KEYS]
    typed: dict[str, Any] = {OBJECTIVE: chosen.choice([*labels, OWN_WEIGHTS])}
    typed |= {f"{WEIGHT}{key}": chosen.choice((0.0, 0.3, 1.0)) for key in KEYS}
    typed[f"{WEIGHT}{KEYS[0]}"] = 1.0
    typed[f"{LIMIT}tpot_s"] = None
    for key in chosen.sample(KEYS, chosen.randint(0, 2)):
        values = [now[f"{plan}.value.{key}"] for plan in range(1, len(found().scenario.variants) + 1)]
        known = sorted(value for value in values if not isinstance(value, str))
        typed[f"{LIMIT}{key}"] = chosen.choice(known) * chosen.choice((0.9, 1.03, 1.2))
    plans: dict[int, dict[str, Any]] = {}
    for plan in chosen.sample(range(1, len(found().scenario.variants) + 1), chosen.randint(0, 2)):
        changes = {
            "hardware.price_cloud.override": chosen.choice((0.3, 1.0, 9.0)),
            "efficiency.gemm_bandwidth.override": chosen.choice((0.3, 0.9)),
        }
        plans[plan] = dict(chosen.sample([*changes.items()], 1))
    return typed, plans


@pytest.mark.parametrize("seed", few_of(range(6), 0))
def test_the_winner_after_edits_is_that_of_plans_by_themselves(seed: int) -> None:
    typed, plans = edits(seed)
    now = said(typed, plans)
    expected = best(typed, plans)
    assert now["winner"] == expected
    ranks = [now[f"{plan}.rank"] for plan in range(1, len(found().scenario.variants) + 1)]
    placed = sorted(rank for rank in ranks if not isinstance(rank, str))
    assert placed == [*range(1, len(placed) + 1)]
    if expected:
        assert now[f"{expected}.lost"].startswith("the best")
        assert now["title"].startswith("Take ") and now[f"{expected}.name"] in now["title"]
    else:
        assert now["title"] in ("No plan keeps every limit", "No plan can be chosen")


def test_what_nobody_knows_has_no_rank_and_is_never_free() -> None:
    """A chip without a price is not the cheapest; by speed it has a rank."""
    number = next(
        number
        for number, variant in enumerate(found().scenario.variants, 1)
        if results(number, {})["usd_per_million_tokens_output"] is None
    )
    assert as_generated()[f"{number}.rank"] == "–"
    assert as_generated()[f"{number}.lost"] == "no cloud price, so no rank; rental price 2.10 USD/h"
    by_speed = said({OBJECTIVE: "TPOT", f"{LIMIT}tpot_s": None}, {})
    assert not isinstance(by_speed[f"{number}.rank"], str)


def wrong_values(figure: Input) -> tuple[Any, ...]:
    """What a yellow cell of the sheet cannot hold, of each kind."""
    if figure.choices:
        return ("cheapest", "", 3.0)
    if figure.integer:
        return ("two", -1.0, 0.0, 99.0, 1.5, None)
    return ("fast", "30 ms", -1.0) if figure.maximum is None else ("much", -0.1, 40.0)


def yellow() -> dict[str, Input]:
    return {name: figure for name, figure in book().own_inputs.items() if name.startswith("decide.")}


@pytest.mark.parametrize("every", few_of((False, True), False))
def test_what_cannot_be_makes_the_choice_invalid_and_names_its_cell(every: bool) -> None:
    """Of each yellow cell and each kind of value; no plan wins, none has a rank, a check fails.

    Unless each is asked for, of one cell of each kind.
    """
    assert len(yellow()) > 30
    few = (OBJECTIVE, TAKE, ONE, f"{LIMIT}tpot_s", f"{LIMIT}memory_headroom", f"{WEIGHT}tpot_s")
    for name, figure in yellow().items():
        if not every and name not in few:
            continue
        sheet, row, column = place(name)
        for wrong in wrong_values(figure):
            now = said({name: wrong})
            held = f"{wrong:g}" if isinstance(wrong, float) else "none" if wrong is None else wrong
            words = f"! {figure.label}, {sheet}!{xl_rowcol_to_cell(row, column)} holds '{held}'; expected "
            assert now["title"].startswith(words + figure.expected), (name, wrong, now["title"])
            assert now["winner"] == 0 and now["ranked"] == 0 and "% " not in now["title"], (name, wrong)
            for plan in range(1, book().columns):
                assert now[f"{plan}.rank"] == "–" and now[f"{plan}.price_due"] == "–", (name, wrong, plan)
                assert now[f"{plan}.lost"] == "no choice can be made: see above", (name, wrong, plan)
            if name.startswith(LIMIT):
                assert now[f"{name.removeprefix(LIMIT)}.said"] == "! cannot be"
            if name == TAKE:
                assert now["taken_said"] == "! there is no such plan" and now["taken"] == 1
    inputs = book().generated_inputs()
    inputs[0] |= {f"{LIMIT}tpot_s": "fast"}
    base = book().values(inputs)[0]
    told = {figure.id: base.get(figure) for figure in book().addresses if isinstance(figure, Quantity)}
    assert told["check.CHOICE_INVALID"] == 0


def check_sentence(now: dict[str, Any], plan: int) -> str:
    """Check a reason against the figures of the plan and of the winner; which kind it is."""
    told, best = now[f"{plan}.lost"], now["winner"]
    label = {of.metric.label: key for key, of in measures().items()}

    def value(key: str, number: int) -> Any:
        return now[f"{number}.value.{key}"]

    found = re.fullmatch(r"(.+) is ([\d.]+)% (higher|lower)", told)
    if found:
        key = label[found[1]]
        change = value(key, plan) / value(key, best) - 1
        assert abs(change) == pytest.approx(float(found[2]) / 100, abs=0.00051)
        assert (change > 0) == (found[3] == "higher") == measures()[key].lower
        assert now[f"{key}.weighs"] > 0
        return "measure"
    found = re.fullmatch(r"(.+) is ([\d.]+)% (above|below) its limit", told)
    if found:
        key = label[found[1]]
        beyond = value(key, plan) / now[f"{key}.bound"] - 1
        assert abs(beyond) == pytest.approx(float(found[2]) / 100, abs=0.00051)
        assert (beyond > 0) == (found[3] == "above") == measures()[key].lower
        return "limit"
    found = re.fullmatch(r"(.+) is not known: (its limit is not kept|it has no rank)", told)
    if found:
        assert isinstance(value(label[found[1]], plan), str) and now[f"{plan}.rank"] == "–"
        return "not known"
    of_tokens = now["usd_per_million_tokens_output.weighs"] > 0
    found = re.fullmatch(
        r"an accelerator costs (\d+)% more per hour|(\d+)% fewer tokens per accelerator", told
    )
    if found:
        price = now[f"{plan}.price"] / now[f"{best}.price"] - 1
        tokens = 1 - now[f"{plan}.tokens"] / now[f"{best}.tokens"]
        change = price if found[1] else tokens
        assert of_tokens and change == pytest.approx(float(found[1] or found[2]) / 100, abs=0.006)
        return "tokens"
    if told == "the best of those that keep every limit":
        assert plan == best and now[f"{plan}.rank"] == 1
    elif told == "as good as the winner, and listed after it":
        assert now[f"{plan}.behind"] <= 0.0005
    elif told.startswith("cannot be: "):
        assert now[f"{plan}.possible"] == 0
    elif told.startswith("no cloud price, so no rank"):
        assert now[f"{plan}.rank"] == "–" and isinstance(now[f"{plan}.price"], str)
    else:
        assert told.startswith("links take "), told
        assert of_tokens or now["tpot_s.weighs"] or now["output_tokens_per_s_per_accelerator.weighs"], told
    return told[:5]


def test_why_a_plan_lost_is_true_of_every_objective_and_limit() -> None:
    """Also of weights, and where a limit takes the winner away; ranges are of the measure that is wanted."""
    kinds = set()
    limits = (
        {},
        {f"{LIMIT}tpot_s": 6.0},
        {f"{LIMIT}usd_per_million_tokens_output": 0.15},
        {f"{LIMIT}power_w": 1.0},
    )
    weights = {f"{WEIGHT}tpot_s": 1.0, f"{WEIGHT}power_w": 0.2}
    for figure in yellow().values():
        for wanted in figure.choices:
            for limit in limits:
                now = said({OBJECTIVE: wanted, **(weights if wanted == OWN_WEIGHTS else {}), **limit})
                best, one = now["winner"], int(now["wanted"])
                for plan in range(1, book().columns):
                    kinds.add(check_sentence(now, plan))
                    ends = now[f"{plan}.low"], now[f"{plan}.high"]
                    assert one or ends == ("–", "–")
                    if wanted in ("Accelerators", "Evidence", "USD per hour") and ends != ("–", "–"):
                        assert ends[0] == ends[1], "what is no estimate has no range"
                if not best:
                    missed = all(now[f"{plan}.misses"] for plan in range(1, book().columns))
                    assert (now["title"] == "No plan keeps every limit") == missed, now["title"]
    assert kinds >= {"measure", "limit", "not known", "tokens", "the b"}, kinds


def test_an_empty_limit_is_none_and_so_is_0() -> None:
    free = said({f"{LIMIT}tpot_s": 1e9})["winner"]
    for empty in (None, 0.0):
        now = said({f"{LIMIT}tpot_s": empty})
        assert now["tpot_s.said"] == "no limit" and now["winner"] == free
    assert said({f"{WEIGHT}tpot_s": None})["winner"] == as_generated()["winner"]
    nothing = said({OBJECTIVE: OWN_WEIGHTS})
    assert nothing["title"].startswith("! nothing is wanted") and nothing["ranked"] == 0
    assert {nothing[f"{plan}.lost"] for plan in range(1, book().columns)} == {
        "no choice can be made: see above"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its workbook as a file."""
    return found().to_excel(tmp_path_factory.mktemp("decide") / "best.xlsx")


@pytest.mark.exhaustive
def test_the_sheet_is_as_models_are_to_be(built: Path) -> None:
    """That it verifies is seen below, where it is edited."""
    assert not lint(built)


def test_the_plan_taken_is_told_as_it_is() -> None:
    """After edits of Summary, of overrides and of the plan itself, and where another plan is taken."""
    file, places = as_written(book()), book().input_cells

    def told(typed: Typed) -> str:
        values, _ = typed_inputs(typed_into(file, typed))
        return str(sentences().run({}, book().values(values)[:-1])[taken_said])

    [taken_said] = [figure for figure in sentences().outputs if figure.id == "decide.taken_said"]
    same, differs = "Summary and all sheets show this plan", "is not as in this plan: all sheets show another"
    another = {places[TAKE, 0]: 3}
    assert told({}) == told(another) == same
    assert told(another | {places["inputs.concurrency", 0]: 64}) == same, "plans follow it"
    for identifier, column, value in (
        ("inputs.accelerator", 0, "l40s"),
        ("inputs.utilisation", 3, 0.5),
        ("hardware.price_cloud.override", 3, 1.5),
    ):
        said_of = told(another | {places[identifier, column]: value})
        sheet, row, at = places[identifier, 0]
        assert said_of.startswith("! ") and said_of.endswith(differs), said_of
        assert f", {sheet}!{xl_rowcol_to_cell(row, at)} " in said_of, said_of
    assert told({places["inputs.concurrency", 2]: 8}) == same, "another plan was edited"
    assert told(another | {places["inputs.kv_dtype", 3]: "fp8"}) == same, "the base follows"


def place(figure_id: str) -> tuple[str, int, int]:
    return book().input_cells[figure_id, 0]


def typing(changes: dict[str, Any]) -> Any:
    def change(file: Any) -> None:
        for identifier, value in changes.items():
            sheet, row, column = place(identifier)
            file[sheet].cell(row + 1, column + 1).value = value

    return change


@pytest.mark.exhaustive
def test_edits_are_recalculated_and_read_back(built: Path, tmp_path: Path) -> None:
    """The base is the plan that is taken, in the file and in the scenario that is read from it."""
    last = len(found().scenario.variants)
    changes = {
        TAKE: last,
        OBJECTIVE: "TPOT",
        f"{LIMIT}tpot_s": 25.0,
        f"{LIMIT}power_w": 3.0,
        f"{WEIGHT}tpot_s": 2.0,
    }
    edited = edit(built, tmp_path / "edited.xlsx", typing(changes))
    checked = verify(edited)
    assert not checked.mismatches and checked.to_dict()["compared"] > 10_000
    read = import_workbook(edited)
    decision = read.scenario.decision
    assert decision is not None
    assert (decision.take, decision.objective) == (last, "tpot_s")
    assert {limit.measure: pytest.approx(limit.bound) for limit in decision.limits} == {
        "tpot_s": 0.025,
        "power_w": 3000.0,
        "ttft_p95_s": 10.0,  # asked of every choice that states no limit of TTFT
    }
    plan = found().scenario.variants[last - 1]
    for name in ("accelerator", "framework", "weights_dtype", "tp", "dp"):
        assert getattr(read.scenario, name) == getattr(plan, name)
    base, *plans = (read.estimate.results(column) for column in range(last + 1))
    assert base["tpot_s"] == plans[last - 1]["tpot_s"]
    assert DECISION in lay_out(read.estimate).sheets[WHAT_IF].parts


def address(identifier: str) -> list[str]:
    """The sheet and cell of a figure of the choice."""
    at = next(
        at for figure, at in book().addresses.items() if getattr(figure, "id", "") == f"decide.{identifier}"
    )
    return [at.sheet, xl_rowcol_to_cell(at.row, at.column)]


def all_edits(sets: int) -> list[tuple[dict[str, Any], dict[int, dict[str, Any]]]]:
    """Sets of edits that can be, and some that cannot."""
    wrong: tuple[dict[str, Any], ...] = (
        {f"{LIMIT}tpot_s": "fast"},
        {f"{WEIGHT}power_w": -1.0},
        {OBJECTIVE: "cheapest"},
        {TAKE: 99.0},
        {ONE: "two", OBJECTIVE: "TPOT"},
        {OBJECTIVE: OWN_WEIGHTS},
    )
    return [edits(seed) for seed in range(sets)] + [(one, {}) for one in wrong]


def shown() -> tuple[str, ...]:
    """The sentences and ranks of the sheet, by id."""
    plans = range(1, len(found().scenario.variants) + 1)
    of_plans = (f"{plan}.{name}" for name in ("rank", "lost", "told", "by") for plan in plans)
    return ("winner", "title", "reason", "taken_said", "apart.told", *of_plans)


@pytest.mark.exhaustive
@needs_office
def test_edits_in_libreoffice_are_what_the_engine_says(built: Path, tmp_path: Path) -> None:
    """All sentences and every rank, once limits, objective, weights, prices and factors are typed."""
    cells = {name: address(name) for name in shown()}
    typed = all_edits(12)

    def typings(of_base: dict[str, Any], of_plans: dict[int, dict[str, Any]]) -> list[list[Any]]:
        columns = {0: of_base, **of_plans}
        return [
            [
                sheet,
                xl_rowcol_to_cell(row, column),
                what if what is None or isinstance(what, str) else float(what),
            ]
            for plan, changes in columns.items()
            for identifier, what in changes.items()
            for sheet, row, column in (book().input_cells[identifier, plan],)
        ]

    task = {"look": [*cells.values()], "edits": [typings(*one) for one in typed]}
    then, *seen, again = asked_of_office("libreoffice_edits.py", built, task, tmp_path)
    assert again == then and len(seen) == len(typed)
    winners = set()
    for (of_base, of_plans), one in zip(typed, seen, strict=True):
        now = said(of_base, of_plans)
        texts = {name: one["texts"]["!".join(cell)].strip() for name, cell in cells.items()}
        expected = {name: now[name] if isinstance(now[name], str) else f"{now[name]:.0f}" for name in cells}
        assert texts == expected and one["errors"] == then["errors"], (of_base, of_plans)
        assert now["winner"] == (0 if now["title"].startswith("!") else best(of_base, of_plans))
        winners.add(now["winner"])
    assert len(winners) > 2


@pytest.mark.exhaustive
def test_edits_in_formulas_are_what_the_engine_says(built: Path) -> None:
    """The same by the `formulas` package, which takes 2 s for each set of edits."""
    places = {figure.id: at for figure, at in book().addresses.items() if isinstance(figure, Quantity)}
    model, winners = CompiledSheets(read_cells(built).contents), set()
    for of_base, of_plans in all_edits(5):
        typed = {
            book().input_cells[identifier, plan]: what
            for plan, changes in {0: of_base, **of_plans}.items()
            for identifier, what in changes.items()
        }
        values, now = model.calculate([WHAT_IF], typed), said(of_base, of_plans)
        for name in shown():
            at = places[f"decide.{name}"]
            assert values[at.sheet, at.row, at.column] == now[name], (of_base, of_plans, name)
        assert now["winner"] == (0 if now["title"].startswith("!") else best(of_base, of_plans))
        winners.add(now["winner"])
    assert len(winners) > 2


@pytest.mark.exhaustive
def test_two_plans_are_as_far_apart_as_the_engine_says() -> None:
    """Whichever are chosen; those of which nobody knows it, and numbers of none, are told."""
    last = len(found().scenario.variants)
    costs = {plan: results(plan, {})["usd_per_million_tokens_output"] for plan in range(1, last + 1)}
    known = [plan for plan, cost in costs.items() if cost is not None]
    for one, other in ((known[0], known[1]), (known[2], known[1])):
        now = said({ONE: one, OTHER: other}, {})
        assert now["apart"] == pytest.approx((costs[other] or 0) / (costs[one] or 1) - 1, rel=1e-6)
        held = "within the error" if abs(now["apart"]) <= now["apart.error"] else "holds"
        assert now["apart.holds"] == held and now["apart.told"].endswith(held)
    same = said({ONE: known[0], OTHER: known[0]}, {})
    assert same["apart"] == 0 and same["apart.holds"] == "within the error"
    unknown = next(plan for plan, cost in costs.items() if cost is None)
    for wrong in (unknown, 99, "two", None):
        assert said({ONE: known[0], OTHER: wrong}, {})["apart.told"].startswith("! no difference")


@pytest.mark.exhaustive
def test_bars_and_the_line_of_the_limit_follow_what_is_typed() -> None:
    now = said({f"{LIMIT}tpot_s": 25.0}, {})
    assert now["limit_speed"] == pytest.approx(40)
    assert said({f"{LIMIT}tpot_s": None}, {})["limit_speed"] == 0
    winner = now["winner"]
    for plan in range(1, len(found().scenario.variants) + 1):
        ends = now[f"{plan}.bar.begin"] + now[f"{plan}.bar.below"] + now[f"{plan}.bar.above"]
        high = now[f"{plan}.high"]
        assert ends == pytest.approx(0 if isinstance(high, str) else high)
        assert (now[f"{plan}.bar.best.below"] > 0) == (plan == winner)


def test_plans_are_24_at_most_and_other_variants_seven() -> None:
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 1}
    fields |= {"input_tokens": 9, "output_tokens": 9, "variants": [{"tp": 1}] * 8}
    with pytest.raises(InputError, match="variants: expected at most 7, found 8"):
        parse_scenario(fields, "many")
    parse_scenario(fields | {"decision": {"objective": "tpot_s"}}, "plans")
    for plans in (0, 25, True, "all"):
        with pytest.raises(InputError, match="plans: expected a whole number from 1 to 24"):
            optimize(model="llama-3.1-8b", concurrency=1, input_tokens=9, output_tokens=9, plans=plans)


def test_a_decision_needs_its_plans() -> None:
    fields = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 9, "output_tokens": 9}
    with pytest.raises(InputError, match="take"):
        Scenario(**fields, concurrency=1, decision={"objective": "tpot_s"})
    assert isinstance(found().decided, Decided)


def test_a_base_that_is_none_of_the_plans_keeps_what_it_states(tmp_path: Path) -> None:
    """Cells follow the plan taken only where both say the same: the file recalculates to what it shows."""
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 1}
    fields |= {"input_tokens": 9, "output_tokens": 9, "tp": 4, "decision": {"objective": "tpot_s"}}
    plans = [{"name": "one", "tp": 2, "framework": "vllm"}, {"name": "two", "tp": 1, "framework": "sglang"}]
    made = estimate(parse_scenario(fields | {"framework": "vllm", "variants": plans}, "plans"))
    followed = {figure.id for figure in EstimateBook(made).taken_inputs}
    assert "inputs.framework" in followed and "inputs.tp" not in followed
    report = verify(made.to_excel(tmp_path / "plans.xlsx"))
    assert report.ok


@pytest.mark.exhaustive
def test_two_plans_are_not_compared_where_nothing_is_wanted() -> None:
    """No objective is no difference of 0 %."""
    assert "% " in as_generated()["apart.told"]
    assert said({OBJECTIVE: "best"}, {})["apart.told"].startswith("! no difference is known")


@pytest.mark.exhaustive
def test_limits_weights_and_what_is_wanted_count_as_edits() -> None:
    """Each is named with its cell, and what it held; nothing is edited as generated."""
    names = ("cell", "was", "now")

    def listed(typed: dict[str, Any]) -> list[list[Any]]:
        inputs = book().generated_inputs()
        inputs[0] |= typed
        base = book().values(inputs)[0]
        told = {
            figure.id: base[figure.body]
            for figure in book().addresses
            if figure.id.startswith("stamp.edit.") and isinstance(figure, Quantity)
        }
        rows = [[told[f"stamp.edit.{place}.{name}"] for name in names] for place in (1, 2, 3)]
        return [row for row in rows if row[0] != "–"]

    assert listed({}) == []
    sheet, row, column = place(f"{LIMIT}tpot_s")
    (one,) = listed({f"{LIMIT}tpot_s": 25.0})
    assert one[0].endswith(f"{sheet}!{xl_rowcol_to_cell(row, column)}") and one[1:] == [30.0, 25.0]
    assert [row[2] for row in listed({f"{LIMIT}tpot_s": math.nan})] == ["none"]
    found = listed({OBJECTIVE: OWN_WEIGHTS, f"{WEIGHT}tpot_s": 2.0})
    assert [row[2] for row in found] == [OWN_WEIGHTS, 2.0]


@pytest.mark.exhaustive
def test_a_plan_that_is_taken_is_the_edit_and_inputs_that_follow_it_are_none() -> None:
    """The base has the inputs of the plan; what is counted and named is the cell on What-if."""
    there = book().own_inputs[TAKE], book().input_cells[TAKE, 0]
    plan = len(found().scenario.variants)
    file = typed_into(as_written(book()), {there[1]: plan})
    values = book().values(typed_inputs(file)[0])
    edits, checks = book().sheets["Inputs"], book().sheets["Audit"]
    row = next(row for row, name in edits.ids.items() if name == "stamp.edit.count")
    counts = [values[column][edits.cells[row, FIRST + column].expression] for column in range(book().columns)]
    assert counts == [1, *[0] * plan]
    sentence = values[ACROSS][checks.cells[7, 0].expression]
    cell = f"What-if!{xl_rowcol_to_cell(*there[1][1:])}"
    assert f"A: Edited: {there[0].label}, {cell} held 1, holds {plan}. " in sentence, sentence
    assert sentence.count("Edited") == 1
