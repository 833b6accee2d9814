"""What people type: whatever cells hold, the workbook says nothing false, and names the cell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from live import few
from office import asked_of_office, needs_office
from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.graph import PROFILED
from mantile.equations.metrics import OF_COST
from mantile.equations.override import OVERRIDE
from mantile.equations.stamp import stamp
from mantile.equations.typed import NONE, Typed
from mantile.equations.typed.cells import FAULT
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.evaluate import Program
from mantile.graph.quantity import NOT_KNOWN, Input, Node
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.workbook.estimate_book import EstimateBook
from mantile.workbook.layout import lay_out
from mantile.workbook.sheets.folding import WHAT_IF
from mantile.workbook.write import write_workbook

ASKED = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "date": "2026-11-21",
    "variants": [{"name": "fp8", "weights_dtype": "fp8"}],
}
EMPTY, ERROR = None, "=1/0"

# What is typed into the cell of an input: the sentence about it.
WRONG: tuple[tuple[str, Any, str], ...] = (
    (
        "inputs.tp",
        "two",
        "Tensor parallel, Summary!B7 holds 'two'; expected a whole number from 1 to 1,024",
    ),
    (
        "inputs.tp",
        0,
        "Tensor parallel, Summary!B7 holds '0'; expected a whole number from 1 to 1,024",
    ),
    ("inputs.tp", -2, "Tensor parallel, Summary!B7 holds '-2'; expected"),
    ("inputs.tp", 2.5, "Tensor parallel, Summary!B7 holds '2.5'; expected a whole number"),
    ("inputs.tp", "2", "Tensor parallel, Summary!B7 holds '2'; expected a whole number"),
    ("inputs.tp", ERROR, "Tensor parallel, Summary!B7 holds an error; expected a whole number"),
    ("inputs.pp", 9, "Pipeline parallel, Summary!C7 holds '9'; expected a whole number from 1 to 8"),
    (
        "inputs.dp",
        1e12,
        "Data parallel, Summary!D7 holds '1000000000000'; expected a whole number from 1 to 1,024",
    ),
    (
        "inputs.input_tokens",
        "1,024",
        "Input tokens, Summary!H7 holds '1,024'; expected a whole number from 1",
    ),
    ("inputs.output_tokens", 0, "Output tokens, Summary!I7 holds '0'; expected a whole number from 1"),
    ("inputs.concurrency", -8, "Concurrency, Summary!J7 holds '-8'; expected a whole number from 1"),
    ("inputs.concurrency", "many", "Concurrency, Summary!J7 holds 'many'; expected a whole number from 1"),
    ("inputs.accelerator", "h100", "Accelerator, Summary!B5 holds 'h100'; expected a10, a100-40gb-pcie"),
    ("inputs.accelerator", 100, "Accelerator, Summary!B5 holds '100'; expected a10"),
    ("inputs.system", "hgx", "System, Summary!C5 holds 'hgx'; expected default"),
    ("inputs.framework", "vLLM 2", "Framework, Summary!D5 holds 'vLLM 2'; expected"),
    ("inputs.weights_dtype", "int3", "Weights, Summary!E5 holds 'int3'; expected bf16"),
    (
        "inputs.kv_dtype",
        8,
        "KV cache, Summary!G5 holds '8'; expected bf16, fp16, fp8, int8 or another of its list of 8",
    ),
    (
        "inputs.batching",
        "dynamic",
        "Batching, Summary!H5 holds 'dynamic'; expected one of continuous, static",
    ),
    (
        "inputs.price_basis",
        "spot",
        "Price basis, Summary!I5 holds 'spot'; expected one of cloud, rental, owned",
    ),
    ("inputs.utilisation", 70, "Utilisation, Summary!J5 holds '70'; expected a number from 0.001 to 1"),
    ("inputs.utilisation", "0,7", "Utilisation, Summary!J5 holds '0,7'; expected a number from 0.001 to 1"),
    ("inputs.utilisation", 0, "Utilisation, Summary!J5 holds '0'; expected a number from 0.001 to 1"),
    ("inputs.pue", 0.9, "holds '0.9'; expected a number from 1 to 5"),
    ("inputs.hours_per_day", 25, "holds '25'; expected a number from 0.01 to 24 in h/day"),
    ("inputs.electricity_price", "12 ct", "holds '12 ct'; expected a number from 0 to 10 in USD/kWh"),
    ("inputs.token_budget", 0, "holds '0'; expected a whole number from 1 to 10,000,000"),
    ("model.layers", "all", "Layers, IR!G65 holds 'all'; expected a whole number from 1 to 100,000,000"),
    ("model.hidden_size", 0, "Hidden size, IR!G66 holds '0'; expected a whole number from 1"),
    ("model.kv_heads", ERROR, "holds an error; expected a whole number from 1"),
    ("model.head_dim", 127.5, "holds '127.5'; expected a whole number from 1"),
)
# What is typed over an assumption: what is said of it.
FIGURES = (
    ("network.one_shot_ranks", EMPTY, "holds ''; expected a"),
    ("network.one_shot_ranks", "eight", "holds 'eight'; expected a"),
    ("scheduler.mean.factor.mixed", ERROR, "holds an error; expected a number"),
    ("scheduler.mean.share.mixed", 70, "holds '70'; expected a number"),
    ("evidence.tpot.p50.unseen", 0, "TPOT, p50"),
    ("cost.idle_share", EMPTY, "Idle power, share of the limit"),
    ("cost.life", "four", "expected a number from 0.5 to 20"),
    ("offer.most_days", EMPTY, "expected a number from 0 to 3,660 in day"),
)
# Figures that no headline result depends on: these stay.
NOT_BEHIND = ("evidence.", "offer.")
# Cells from which only power and cost follow.
OF_MONEY = re.compile(
    r"inputs\.(price_basis|utilisation|electricity_price|pue|as_of|hours_per_day)$"
    r"|cost\.|(decode\.)?hardware\.(price_\w+|tdp|idle|node_power)\."
)
# Bandwidths of 0: no path, and the cell is named.
NO_PATH = (("hardware.link_bandwidth.override", "Override, Link bandwidth"),)
# Assumptions that are other than as generated, and the words about them.
MOVED = (({"offer.most_days": 31.0}, "{}"), ({"cost.life": 5.0}, "{}"))
# What is typed into the cell of an override, and the check that fails.
OVERRIDES = (
    ("efficiency.gemm_compute.override", "70%", "OVERRIDE_INVALID"),
    ("efficiency.gemm_compute.override", -0.5, "OVERRIDE_INVALID"),
    ("efficiency.gemm_compute.override", 70, "OVERRIDE_INVALID"),
    ("efficiency.gemm_compute.override", 0, "OVERRIDE_INVALID"),
    ("efficiency.step_host.override", "fast", "OVERRIDE_INVALID"),
    ("efficiency.step_host.override", ERROR, "OVERRIDE_INVALID"),
    ("hardware.memory_capacity.override", 0, "OVERRIDE_INVALID"),
    ("hardware.memory_capacity.override", "80 GB", "OVERRIDE_INVALID"),
)
# Plans that can be typed but cannot be, and the check that says why.
PLANS = (
    (("inputs.tp", 3), "HEADS_NOT_DIVISIBLE"),
    (("inputs.tp", 64), "HEADS_NOT_DIVISIBLE"),
    (("inputs.ep", 2), "EP_WITHOUT_EXPERTS"),
    (("inputs.pp", 8), ""),
    (("inputs.input_tokens", 200_000), "CONTEXT_EXCEEDS_MODEL"),
    (("inputs.concurrency", 1_000_000), ""),
    (("inputs.system", "hgx-b200"), "SYSTEM_MISMATCH"),
    (("inputs.offload_weights", 10), ""),
)


@cache
def worked_out() -> Estimate:
    """The scenario worked out."""
    return estimate(parse_scenario(ASKED, "test"))


@cache
def made() -> EstimateBook:
    """The book of the scenario."""
    return lay_out(worked_out())


def place(identifier: str) -> tuple[str, str]:
    """The cell in which an input of the base is typed."""
    if (identifier, 0) in made().input_cells:
        sheet, row, column = made().input_cells[identifier, 0]
        return sheet, xl_rowcol_to_cell(row, column)
    address = made().addresses[made().estimate.figure(identifier)]  # of a fact that is locked
    assert address.column is not None
    return address.sheet, xl_rowcol_to_cell(address.row, address.column)


def guarded() -> tuple[Typed, ...]:
    """Inputs and dimensions: cells that are filled."""
    equations = worked_out().equations
    filled = [item for item in equations.typed.inputs if not item.is_override]
    return (*filled, *equations.model.typed.typed)


def is_fault(state: float) -> bool:
    """Whether the state of a cell says that it cannot be."""
    assert isinstance(FAULT.value, int)
    return state >= FAULT.value


def told(values: dict[Node, Any], one: Estimate) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics by what they are about: times and memory, and power and cost."""
    metrics = {metric.id: values[figure] for metric, figure in one.equations.headlines.items()}
    paid = {name: value for name, value in metrics.items() if name.startswith(OF_COST)}
    return {name: value for name, value in metrics.items() if name not in paid}, paid


def wrongs(figure: Input) -> Iterator[Any]:
    """What a cell cannot hold: a text; a number below its range, far above it, and where it is a share 70."""
    yield "nothing like it"
    if not isinstance(figure.value, str):
        assert figure.minimum is not None and figure.maximum is not None, figure.id
        yield from (figure.minimum - 1, -1e12, figure.maximum * 1e3 + 1)
        yield from [70] if figure.maximum <= 1 else []
        yield from [0] if figure.minimum > 0 else []


@pytest.mark.parametrize("apart", [False, True], ids=["together", "apart"])
def test_every_cell_that_cannot_be_makes_the_plan_impossible_or_its_cost_unknown(apart: bool) -> None:
    """Inputs and overrides: no number is told that follows from what is wrong, all others stay, and the cell
    is named.
    """
    serving = {"serving": "disaggregated", "tp": 4, "decode": {"tp": 2}} if apart else {}
    one = estimate(parse_scenario(ASKED | {"variants": []} | serving, "test"), library=few())
    graph, items = one.equations, one.equations.typed.own
    cells = {figure for figure in graph.all_inputs() if figure.id.endswith(OVERRIDE)}
    assert {item.input for item in items} == {*graph.inputs.named().values(), *cells}
    program = Program(
        [
            *graph.headlines.values(),
            *(node for item in items for node in (item.state, item.used)),
            *(graph.rows["checks.reason"], graph.rows["checks.possible"], graph.rows["checks.payable"]),
            *(graph.checks.faults.message, graph.checks.of_money.message),
        ]
    )
    inputs = one.inputs(0)
    held = {item.held.id: inputs[item.input.id] for item in items if inputs.get(item.input.id) is not None}
    then = program.run(inputs | held)
    times, costs = told(then, one)
    for item in items:
        is_override, paid = item.input in cells, OF_MONEY.match(item.input.id) is not None
        assert then[item.state] == 0 and then[item.used] == (NONE if is_override else then[item.input])
        for wrong in wrongs(item.input):
            found = program.vary(then, {item.cell: wrong})
            seen, of_cost = told(found, one)
            said = (item.input.id, wrong)
            assert is_fault(found[item.state]) and found[item.used] == then[item.used], said
            assert set(of_cost.values()) == {NOT_KNOWN} and not found[graph.rows["checks.payable"]], said
            assert seen == times if paid else set(seen.values()) == {NOT_KNOWN}, said
            assert found[graph.rows["checks.possible"]] == paid, said
            kind = "OVERRIDE_INVALID" if is_override else "INPUT_INVALID"
            assert found[graph.rows["checks.reason"]] == (
                then[graph.rows["checks.reason"]] if paid else kind
            ), said
            faults = graph.checks.of_money if paid else graph.checks.faults
            assert f"{item.input.label} holds " in found[faults.message], said
    assert NOT_KNOWN not in times.values() and NOT_KNOWN not in costs.values()


def test_every_assumption_that_cannot_be_does_the_same() -> None:
    """With one that times follow from no plan can be; with one of power or price money is unknown."""
    one = estimate(parse_scenario(ASKED | {"variants": []}, "test"), library=few())
    checks, graph = one.equations.checks, one.equations
    items = (*graph.assumed.typed, *graph.paid.typed)
    program = Program(
        [
            *graph.headlines.values(),
            *(item.state for item in items),
            *(graph.rows["checks.reason"], graph.rows["checks.possible"], graph.rows["checks.payable"]),
            *(checks.faults.message, checks.of_money.message),
        ]
    )
    then = program.run(one.inputs(0))
    times, _ = told(then, one)
    for item in items:
        paid = OF_MONEY.match(item.input.id) is not None
        for wrong in wrongs(item.input):
            found = program.vary(then, {item.input: wrong})
            seen, of_cost = told(found, one)
            said = (item.input.id, wrong)
            assert is_fault(found[item.state]) and not found[graph.rows["checks.payable"]], said
            assert set(of_cost.values()) == {NOT_KNOWN}, said
            assert seen == times if paid else set(seen.values()) == {NOT_KNOWN}, said
            assert found[graph.rows["checks.possible"]] == paid, said
            assert found[graph.rows["checks.reason"]] == (
                then[graph.rows["checks.reason"]] if paid else "FIGURE_INVALID"
            ), said
            faults = checks.of_money if paid else checks.faults
            assert f"{item.input.label} holds " in found[faults.message], said


def test_every_dimension_is_looked_at() -> None:
    """Those of the model and of its vision tower: one that cannot be is a fault, and the plan cannot be."""
    asked = ASKED | {"model": "gemma-3-27b", "variants": []}
    one = estimate(parse_scenario(asked, "test"))
    dimensions, values = one.equations.model.typed.typed, one.values()
    assert {item.input for item in dimensions} == {
        figure
        for figure in one.equations.all_inputs()
        if figure.id.startswith("model.") and not (figure.fixed and figure.id.startswith("model.vision."))
    }
    assert any(item.input.id.startswith("model.vision.") for item in dimensions)
    for item in dimensions:
        assert values[item.state] == 0
        minimum = item.input.minimum
        assert minimum is not None
        found = one.program.run(one.inputs(0) | {item.input.id: minimum - 1})
        assert is_fault(found[item.state]) and found[one.equations.rows["checks.possible"]] == 0
        assert found[one.equations.rows["checks.reason"]] == "DIMENSION_INVALID"


def test_every_assumption_is_looked_at() -> None:
    """Each that may be typed over, once; figures of the library are looked up, and overridden."""
    one = worked_out()
    others = stamp(one.equations).others
    assert others is not None
    members = [item.input for of in (*one.equations.shared_cells[1:], others) for item in of.typed]
    assert len(set(members)) == len(members)
    assert set(members) == {
        figure
        for figure in one.equations.all_inputs()
        if figure.shared and not figure.fixed and not figure.id.startswith("model.")
    }
    stated = [figure for figure in one.equations.all_inputs() if figure.id.startswith(PROFILED)]
    assert all(figure.fixed for figure in stated if not figure.id.endswith(OVERRIDE))


@pytest.mark.parametrize(("tp", "fuller"), [((1, 8), "prefill"), ((8, 1), "decode")])
def test_the_fullest_accelerator_of_both_kinds_of_workers_is_shown(tp: tuple[int, int], fuller: str) -> None:
    """On Summary and in JSON, whichever it is."""
    prefill, decode = tp
    apart = {"serving": "disaggregated", "decode": {"tp": decode}, "tp": prefill, "variants": []}
    one = estimate(parse_scenario(ASKED | apart, "test"))
    values = one.values()
    used = {
        name: float(values[workers.rows["memory.used"]])
        for name, workers in zip(("prefill", "decode"), one.equations.workers, strict=True)
    }
    assert max(used, key=used.__getitem__) == fuller
    shown = one.to_dict()["memory_per_accelerator_bytes"]
    assert shown == one.memory_per_accelerator == used[fuller] > 2 * min(used.values())


def test_checks_have_both_sides_of_every_scenario() -> None:
    """Beside the results, those of further scenarios, each in the scenario's own numbers."""
    book = made()
    sheet = book.sheets["Audit"]
    row = next(row for row, code in sheet.ids.items() if code == "MEMORY_EXCEEDED")
    sides = [cell for (at, column), cell in sheet.cells.items() if at == row and cell.scenario == 1]
    values = book.estimate.values(1)
    shown = {values[cell.expression] for cell in sides if cell.expression in values}
    check = next(check for check in book.estimate.equations.checks.checks if check.code == "MEMORY_EXCEEDED")
    assert {values[check.left], values[check.right]} <= shown
    assert values[check.left] != book.estimate.values(0)[check.left]


def test_idle_power_is_not_known_where_nobody_states_power() -> None:
    """Neither it nor what follows from it is 0."""
    one = estimate(parse_scenario(ASKED | {"accelerator": "tpu7x", "variants": []}, "test"))
    values = one.values()
    assert values[one.figure("cost.idle")] == values[one.figure("cost.draw")] == "not known"


def listed() -> list[str]:
    """The cells of Audit in which edits are named."""
    head = made().sheets["Audit"].parts["Log"]
    return [f"Audit!B{row}" for row in range(head + 3, head + 20)]


class _Seen:
    """What the workbook says after an edit, beside what it says as generated."""

    def __init__(self, then: dict[str, Any], now: dict[str, Any]) -> None:
        self.texts: dict[str, str] = now["texts"]
        self.errors = [place for place in now["errors"] if place not in then["errors"]]
        codes = made().sheets["Audit"].ids.items()
        self.failed = {
            code
            for row, code in codes
            if now["texts"][f"Audit!H{row + 1}"] != then["texts"][f"Audit!H{row + 1}"]
        }
        self.title, self.plan, self.verdict = (self.texts[f"Summary!{cell}"] for cell in ("B1", "B2", "J1"))
        self.tiles = [self.texts[f"Summary!{column}11"] for column in "CDEFGHIJ"]
        self.message = self.texts["Audit!A8"]
        self.listed = [self.texts[place] for place in listed()]


def looked_at(profile: Path) -> list[dict[str, Any]]:
    """What LibreOffice makes of all edits; first and last of none."""
    book = made()
    path = write_workbook(book, profile / "run.xlsx")
    chips = [chip.id for chip in book.estimate.library.accelerators]
    deleted = [(item.input.id, EMPTY) for item in guarded()]
    wrong = [(identifier, what) for identifier, what, _ in (*WRONG, *FIGURES, *OVERRIDES)]
    moved = [[[*place(identifier), what] for identifier, what in edit.items()] for edit, _ in MOVED]
    others = (
        [(identifier, 0) for identifier, _ in NO_PATH]
        + [edit for edit, _ in PLANS]
        + [("inputs.accelerator", chip) for chip in chips]
    )
    edits = [[[*place(identifier), what]] for identifier, what in (*deleted, *wrong)]
    edits += moved + [[[*place(identifier), what]] for identifier, what in others]
    look = [
        ["Summary", cell] for cell in ("B1", "B2", "J1", "J2", *(f"{column}11" for column in "BCDEFGHIJ"))
    ]
    look += [["Audit", "A8"], *(["Audit", f"H{row + 1}"] for row in book.sheets["Audit"].ids)]
    look += [place.split("!") for place in listed()] + [["Summary", "J32"], ["Summary", "J33"]]
    found: list[dict[str, Any]] = asked_of_office(
        "libreoffice_edits.py", path, {"look": look, "edits": edits, "deleted": "What-if"}, profile
    )
    return found


@pytest.mark.exhaustive
@needs_office
def test_edits_as_people_make_them(tmp_path: Path) -> None:
    """No wrong statement, and no error value without a failed check that names the cell."""
    book, found = made(), looked_at(tmp_path)
    then, *seen, again, without = found
    assert again == then, "the edits were put back"
    notes = {without["texts"][f"Summary!J{row}"] for row in (32, 33)}
    left = [place for place in then["errors"] if not place.startswith("What-if!")]
    assert "! the sheet What-if is not there" in notes and without["errors"] == left, (
        notes,
        without["errors"],
    )
    after = iter(_Seen(then, one) for one in seen)
    assert len(seen) > 120

    generated = _Seen(then, then)

    def refused(one: _Seen, identifier: str, sentence: str, errors: int, code: str = "INPUT_INVALID") -> None:
        """The plan cannot be; or, of a cell of money, nobody knows power and cost."""
        assert sentence in one.message and one.verdict.startswith("✗"), (sentence, one.message)
        money = OF_MONEY.match(identifier) is not None
        beyond = [
            cell for cell in one.errors if not (money and cell.startswith("What-if!"))
        ]  # a gap of a chart
        assert len(beyond) <= errors, (sentence, beyond)
        if OF_MONEY.match(identifier):
            assert one.tiles == [*generated.tiles[:6], "not known", "not known"], (sentence, one.tiles)
            assert "ms to first token" in one.title and one.plan == generated.plan, (sentence, one.title)
            return
        assert one.title.endswith(f": not possible, {code}"), one.title
        assert sentence in one.plan and set(one.tiles[1:]) == {"not known"}, (sentence, one.tiles)

    for item in guarded():
        one = next(after)
        label, cell = item.input.label, "!".join(place(item.input.id))
        dimension = item.input.id.startswith("model.")
        code = "DIMENSION_INVALID" if dimension else "INPUT_INVALID"
        sentence = f"{label}, {cell} holds ''; expected {item.input.expected}"
        refused(one, item.input.id, sentence, 20 if dimension else 0, code)
        assert f"{label}, {cell}" in one.listed, (label, one.listed)
    for identifier, what, sentence in WRONG:
        one = next(after)
        dimension = identifier.startswith("model.")
        code = "DIMENSION_INVALID" if dimension else "INPUT_INVALID"
        refused(one, identifier, sentence, 20 if dimension else 2 if what == ERROR else 0, code)
        assert code in one.failed
    for identifier, _, words in FIGURES:
        one = next(after)
        assert "FIGURE_INVALID" in one.failed and one.verdict.startswith("✗"), (identifier, one.failed)
        sentence = f"{'!'.join(place(identifier))} holds "
        assert sentence in one.message and words in one.message, (identifier, one.message)
        assert "#" not in one.title + one.plan, (identifier, one.title, one.plan)
        if OF_MONEY.match(identifier):
            refused(one, identifier, sentence, 20)
            continue
        behind = not identifier.startswith(NOT_BEHIND)
        assert one.title.endswith(": not possible, FIGURE_INVALID") == behind, (identifier, one.title)
        assert (set(one.tiles[1:]) == {"not known"}) == behind, (identifier, one.tiles)
        assert (sentence in one.plan) == behind, (identifier, one.plan)
    for identifier, what, code in OVERRIDES:
        one = next(after)
        assert code in one.failed and one.verdict.startswith("✗"), (identifier, what, one.failed)
        refused(one, identifier, f"{'!'.join(place(identifier))} holds ", 2 if what == ERROR else 0, code)
        assert any("!".join(place(identifier)) in line for line in one.listed) or what == ERROR
    for edit, words in MOVED:
        one = next(after)
        told = words.format("!".join(place(next(iter(edit)))))
        assert "INPUTS_CHANGED" in one.failed and told in one.message, (edit, one.message)
        assert any(told in line for line in one.listed), (edit, one.listed)
    for identifier, words in NO_PATH:
        one = next(after)
        assert one.title.endswith(": not possible, NO_LINK_BETWEEN_RANKS"), (identifier, one.title)
        assert set(one.tiles[1:]) == {"not known"} and not one.errors, (identifier, one.tiles, one.errors)
        assert f"{words}, {'!'.join(place(identifier))}" in one.message, (identifier, one.message)
    for _, code in PLANS:
        one = next(after)
        assert not one.errors and (
            code in one.failed and code in one.title if code else "to first" in one.title
        )
    for chip in book.estimate.library.accelerators:
        one = next(after)
        assert all(error.startswith("What-if!") for error in one.errors), (chip.id, one.errors)
        assert chip.name in one.title
        if "not possible" in one.title:
            assert one.title.rpartition(", ")[2] in one.failed or "insufficient_memory" in one.title
            assert set(one.tiles[1:7]) == {"not known"}
        else:
            assert "ms to first token" in one.title
            assert (one.tiles[6] == "not known") == ("PRICE_UNKNOWN" in one.failed), (chip.id, one.tiles)
            assert (one.tiles[7] == "not known") == ("POWER_UNKNOWN" in one.failed), (chip.id, one.tiles)


FEATURES = Path(__file__).parent / "data" / "features.yaml"
# What is typed into cells of these, and what is said; words that begin with ( are of a check.
IN_FEATURES: tuple[tuple[str, Any, str], ...] = (
    (
        "classes.1.input_tokens",
        EMPTY,
        "Input tokens, chat, Inputs!{} holds ''; expected a whole number from 1",
    ),
    ("classes.1.input_tokens", "800 tokens", "holds '800 tokens'; expected a whole number from 1"),
    ("classes.2.output_tokens", 0, "holds '0'; expected a whole number from 1"),
    ("classes.1.share", -3, "holds '-3'; expected a number from"),
    ("classes.1.share", ERROR, "holds an error; expected a number from"),
    ("classes.2.ttft_limit", "5 s", "holds '5 s'; expected a number from 0 to 1,000,000 in s"),
    ("classes.1.output_spread", 70, "holds '70'; expected a number from 0 to 5"),
    ("inputs.prefix_hit_rate", EMPTY, "Prefix hit rate, Inputs!{} holds ''; expected a number from 0 to 1"),
    ("inputs.acceptance_rate", 80, "holds '80'; expected a number from 0 to 1"),
    ("inputs.draft_tokens", 0, "holds '0'; expected a whole number from 1"),
    ("inputs.mem_fraction_static", 88, "holds '88'; expected a number from 0 to 1"),
    ("inputs.ttft_limit", "2,0", "holds '2,0'; expected a number from 0"),
    ("inputs.speculation", "medusa", "holds 'medusa'; expected none, mtp, eagle, draft-model or another"),
    ("inputs.speculation", "draft-model", "(NO_DRAFT_MODEL)"),
    ("inputs.max_model_len", 70, "(REQUEST_TOO_LONG)"),
    ("inputs.turns", 70, "(PREFIX_EXCEEDS_INPUT)"),
)


@pytest.mark.exhaustive
@needs_office
def test_edits_of_classes_drafts_and_settings(tmp_path: Path) -> None:
    """As above; a variant that follows a deleted cell does not say that 0 stands there."""
    book = lay_out(estimate(load_scenario(str(FEATURES))))
    path = write_workbook(book, tmp_path / "run.xlsx")

    def cell(identifier: str) -> tuple[str, str]:
        sheet, row, column = book.input_cells[identifier, 0]
        return sheet, xl_rowcol_to_cell(row, column)

    broken = "speculation.check.sglang"
    edits = [(identifier, what) for identifier, what, _ in IN_FEATURES] + [(broken, "fast")]
    looked = [["Summary", at] for at in ("B1", "B2", "J1", *(f"{column}11" for column in "DEFGHI"))]
    task = {
        "look": [*looked, ["Audit", "A8"]],
        "edits": [[[*cell(identifier), what]] for identifier, what in edits],
    }
    then, *seen, again = asked_of_office("libreoffice_edits.py", path, task, tmp_path)
    assert again == then
    for (identifier, what, words), one in zip(IN_FEATURES, seen, strict=False):
        texts, errors = one["texts"], [place for place in one["errors"] if place not in then["errors"]]
        told = (identifier, what, texts, errors)
        assert {texts[f"Summary!{column}11"] for column in "DEFGHI"} == {"not known"}, told
        assert texts["Summary!J1"].startswith("✗") and len(errors) <= (what == ERROR), told
        if words.startswith("("):
            assert texts["Summary!B1"].endswith(f"not possible, {words.strip('()')}"), told
            continue
        assert texts["Summary!B1"].endswith("not possible, INPUT_INVALID"), told
        assert words.format(cell(identifier)[1]) in texts["Summary!B2"], told
        assert "holds '0'" not in texts["Audit!A8"] or what == 0, told
    texts = seen[-1]["texts"]
    assert f"{'!'.join(cell(broken))} holds 'fast'" in texts["Audit!A8"]
    assert texts["Summary!B1"].endswith("not possible, FIGURE_INVALID"), texts
    assert "!".join(cell(broken)) in texts["Summary!B2"] and "#" not in texts["Summary!B2"], texts


DRAFTED = ASKED | {
    "speculation": "draft-model",
    "draft_parameters": 1,
    "draft_layers": 16,
    "draft_kv_channels": 1024,
    "acceptance_rate": 0.7,
    "variants": [],
}


def test_a_draft_model_without_layers_is_none() -> None:
    """Its parameters alone would draft for nothing."""
    one = estimate(parse_scenario(DRAFTED, "test"))
    reason = one.equations.rows["checks.reason"]
    assert one.values()[reason] == "fits"
    for name in ("layers", "parameters"):
        found = one.program.run(one.inputs(0) | {f"inputs.draft_{name}": 0.0})
        assert found[reason] == "NO_DRAFT_MODEL"


WITH_DEMAND = ASKED | {
    "tp": 1,
    "capacity": {"users": 200, "requests_per_user": 36, "purchase": 30000, "rent": 2.5, "years": 2},
    "measured": {"ttft_ms": 60, "tpot_ms": 9},
}
# What is typed on Capacity and Calibration: the check that fails, none where it may be typed.
ON_SHEETS: tuple[tuple[str, Any, str], ...] = (
    ("capacity.asked.users", EMPTY, "FIGURE_INVALID"),
    ("capacity.asked.users", "many", "FIGURE_INVALID"),
    ("capacity.asked.users", -5, "FIGURE_INVALID"),
    ("capacity.asked.users", 0, ""),
    ("capacity.asked.growth", 70, "FIGURE_INVALID"),
    ("capacity.asked.residual", 12, "FIGURE_INVALID"),
    ("capacity.asked.spares", -1, "FIGURE_INVALID"),
    ("capacity.asked.spares", 0.5, "FIGURE_INVALID"),
    ("capacity.asked.years", 2.5, "FIGURE_INVALID"),
    ("capacity.asked.rent", "2,50", "FIGURE_INVALID"),
    ("capacity.asked.peak_factor", 0, "FIGURE_INVALID"),
    ("capacity.asked.requests_per_user", 1e12, "FIGURE_INVALID"),
    ("capacity.asked.years", 0, "FIGURE_INVALID"),
    ("capacity.hour.3.share", -1, "FIGURE_INVALID"),
    ("capacity.hour.3.share", "x", "FIGURE_INVALID"),
    ("measured.ttft", 0, ""),
    ("measured.ttft", "60 ms", "OVERRIDE_INVALID"),
    ("measured.tpot", -9, "OVERRIDE_INVALID"),
    ("measured.tpot", EMPTY, ""),
    ("efficiency.queueing.override", "x", "OVERRIDE_INVALID"),
    ("efficiency.queueing.override", 0, ""),
)


@pytest.mark.exhaustive
@needs_office
def test_edits_of_capacity_and_calibration(tmp_path: Path) -> None:
    """Findings say which cell cannot be, or are true; what was measured is a number or fails a check."""
    book = lay_out(estimate(parse_scenario(WITH_DEMAND, "test"), library=few()))
    path = write_workbook(book, tmp_path / "run.xlsx")

    def cell(identifier: str) -> tuple[str, str]:
        sheet, row, column = book.input_cells[identifier, 0]
        return sheet, xl_rowcol_to_cell(row, column)

    rows = {text.text: row + 1 for (row, column), text in book.sheets["Capacity"].cells.items() if not column}
    tokens = rows["A M tokens, both ways"]
    findings = [f"Capacity!A{row}" for row in (3, 40, tokens + 1, tokens + 2)]
    codes = {f"Audit!H{row + 1}": code for row, code in book.sheets["Audit"].ids.items()}
    look = [place.split("!") for place in (*findings, *codes, "Audit!A8", f"Capacity!D{tokens}")]
    parts = book.sheets[WHAT_IF].parts
    compared = range(parts["Comparison"], parts["Alternative"])
    look += [[WHAT_IF, xl_rowcol_to_cell(*at)] for at in book.sheets[WHAT_IF].cells if at[0] in compared]
    task = {"look": look, "edits": [[[*cell(identifier), what]] for identifier, what, _ in ON_SHEETS]}
    then, *seen, again = asked_of_office("libreoffice_edits.py", path, task, tmp_path)
    assert again == then
    for (identifier, what, code), one in zip(ON_SHEETS, seen, strict=True):
        texts, at = one["texts"], "!".join(cell(identifier))
        failed = {codes[place] for place in codes if texts[place] != then["texts"][place]}
        told = (identifier, what, {place: texts[place] for place in findings}, one["errors"])
        assert failed == {"INPUTS_CHANGED", code} - {""} and at in texts["Audit!A8"], (failed, told)
        assert not any("#" in texts[place] for place in findings), told
        if code == "FIGURE_INVALID":
            assert texts[findings[0]].startswith("! not known: ") and at in texts[findings[0]], told
            assert {texts[place] for place in findings[1:]} == {"not known"}, told
        else:
            new = [place for place in one["errors"] if place not in then["errors"]]
            assert all(place.startswith("Capacity!") for place in new), (
                told
            )  # of charts, which leave them out
        assert not any("#" in text for place, text in texts.items() if place.startswith("What-if!")), told
    none = seen[[what for _, what, _ in ON_SHEETS].index(0)]["texts"]
    assert none[f"Capacity!D{tokens}"] == "not known", "nothing is served, so a token has no price"
