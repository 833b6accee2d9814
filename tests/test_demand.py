"""Capacity and money: replicas follow the demand, cash follows the replicas, and each option breaks even."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live import loaded
from units import check_units

import mantile
from mantile.answers.text import scaled
from mantile.cli.output.capacity import demand_lines
from mantile.estimates.estimate import Estimate, estimate
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario

DAYS = 365.25  # of a year, on average of a calendar
ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 300,
    "concurrency": 32,
}
MONEY: dict[str, Any] = {
    "users": 2000,
    "requests_per_user": 360,
    "growth": 0.15,
    "purchase": 30_000,
    "rent": 2.5,
    "residual": 0.1,
    "api_input": 0.1,
    "api_output": 0.3,
    "colocation": 150,
    "staff": 40_000,
    "staff_rented": 15_000,
}


def ask(fields: dict[str, Any] | None = None, **money: Any) -> Estimate:
    """An 8B model on one H100, and a demand."""
    return estimate(parse_scenario(ASKED | (fields or {}) | {"capacity": MONEY | money}, "test"))


def test_more_users_never_need_fewer_replicas() -> None:
    counts = [ask(users=users).results()["capacity"]["replicas"][0] for users in (1, 300, 2000, 9000, 50_000)]
    assert counts == sorted(counts) and counts[0] == 2 and counts[-1] > 20
    more = ask(spares=3).results()["capacity"]["replicas"]
    assert [a - b for a, b in zip(more, ask().results()["capacity"]["replicas"], strict=True)] == [2] * 5


def test_replicas_carry_the_peak_without_the_spares() -> None:
    for factor in (1, 1.7):
        found = ask(peak_factor=factor).results()["capacity"]
        needed = found["peak_requests_per_s"][0] / found["requests_per_s_per_replica"]
        assert found["replicas"][0] - found["spares"] == int(np.ceil(needed))
        assert max(found["hours"]["needed"]) == int(np.ceil(needed))
        mean = np.mean(found["hours"]["requests"])
        used = mean / (found["replicas"][0] * found["requests_per_s_per_replica"])
        assert found["utilisation"]["mean"] == pytest.approx(used, rel=1e-9)


def test_without_growth_all_years_are_alike() -> None:
    cash = ask(growth=0, residual=0).results()["capacity"]["cash_usd"]
    for option in ("buy", "rent", "api"):
        assert cash[option][1:] == pytest.approx([cash[option][1]] * 5, rel=1e-12)
    assert cash["buy"][0] < 0 and cash["rent"][0] == cash["api"][0] == 0


@pytest.mark.parametrize("years", [1, 3, 5])
def test_npv_by_hand(years: int) -> None:
    found = ask(years=years, discount_rate=0.07).results()["capacity"]
    for option, worth in found["npv_usd"].items():
        flows = np.array(found["cash_usd"][option])
        assert not flows[years + 1 :].any()
        assert worth == pytest.approx(float((flows / 1.07 ** np.arange(6)).sum()), rel=1e-9)


def test_options_cost_the_same_where_they_break_even() -> None:
    """Rent at the share of the price, and a demand that fills the same replicas more or less."""
    found = ask(growth=0).results()["capacity"]
    share = found["break_even"]["buy_against_rent"]
    again = ask(growth=0, rent=2.5 * share).results()["capacity"]
    assert again["saving_usd"] == pytest.approx(0, abs=1e-6 * -found["npv_usd"]["rent"])
    even = ask(growth=0, rent=0.3).results()["capacity"]
    at = even["break_even"]["rent_against_api"]
    full = even["utilisation"]["mean"]
    scaled = even["npv_usd"]["api"] * at / full
    assert scaled == pytest.approx(even["npv_usd"]["rent"], rel=1e-9)


def test_the_terminal_says_replicas_money_and_break_even() -> None:
    """In units that people say; what nobody knows is in words."""

    def said(made: Estimate) -> dict[str, str]:
        return dict(demand_lines(made, made.results()["capacity"]))

    made = ask()
    found, lines = made.results()["capacity"], said(made)
    assert f": {found['replicas'][0]:.0f} replicas with 1 to spare; one carries" in lines["Demand"]
    for option, name in (("buy", "buy"), ("rent", "rent"), ("api", "API")):
        start, year = (-found["cash_usd"][option][at] for at in (0, 1))
        assert f"{name} {scaled(year, 'USD')}" in lines["A year"] and year > 0
        assert (f"and {scaled(start, 'USD')} at its start" in lines["A year"]) == (start > 0)
        assert f"{name} −{scaled(-found['npv_usd'][option], 'USD')}" in lines["NPV"]
    assert (
        f"buy against rent, of hours rented {100 * found['break_even']['buy_against_rent']:.3g} %"
        in lines["Even"]
    )
    silent = said(ask(api_output=0))
    assert "API not known" in silent["A year"] and "API not known" in silent["NPV"]
    late = said(ask({"tpot_limit": 1e-6}))
    assert "replicas not known" in late["Demand"] and "buy not known" in late["NPV"]


def test_what_nobody_knows_is_not_zero() -> None:
    """No price of an API, no power limit, and a deployment that misses its own limits."""
    silent = ask(api_output=0).results()["capacity"]
    assert silent["npv_usd"]["api"] is None and silent["break_even"]["rent_against_api"] is None
    assert silent["npv_usd"]["rent"] is not None
    late = ask({"tpot_limit": 1e-6}).results()["capacity"]
    assert late["requests_per_s_per_replica"] is None and late["replicas"] == [None] * 5
    assert late["npv_usd"]["buy"] is None
    dark = ask({"accelerator": "m4-max", "framework": "llama.cpp", "concurrency": 1}).results()["capacity"]
    assert dark["replicas"][0] and dark["npv_usd"]["buy"] is None


def test_a_rate_is_that_short_of_saturation_and_of_limits() -> None:
    free = {name: value for name, value in ASKED.items() if name != "concurrency"} | {"request_rate": 2}
    asked = parse_scenario(free | {"capacity": MONEY}, "test")
    open_loop = estimate(asked)
    rate = open_loop.results()["capacity"]["requests_per_s_per_replica"]
    assert open_loop.load is not None and rate == pytest.approx(2 / open_loop.load * 0.8, rel=1e-9)
    assert open_loop.tpot is not None
    limited = estimate(asked.replace(tpot_limit=1.2 * open_loop.tpot))
    assert 2 <= limited.results()["capacity"]["requests_per_s_per_replica"] < rate


def test_bad_demand_is_refused() -> None:
    for money, words in (
        ({"profile": "own"}, "24 shares"),
        ({"users": 0}, "users and requests_per_user"),
        ({"years": 6}, "years"),
    ):
        with pytest.raises(InputError, match=words):
            ask(**money)


def test_units() -> None:
    sections = ask().equations.rows.sections("capacity")
    check_units(figure for section in sections for figure in section.figures())


def apart(accelerator: str) -> Estimate:
    """One worker that prefills on an H100, and two that decode; all prices of the library."""
    free = {"purchase": None, "rent": None}
    return ask({"decode": {"accelerator": accelerator, "dp": 2}}, **free)


def test_workers_of_two_kinds_draw_what_each_kind_draws() -> None:
    """Idle, full and provided watts of a replica: one accelerator of the first kind, two of the second."""
    made = apart("l40s")
    values, figures = made.values(0), made.equations.figures
    value = {name: float(values[figures[name]]) for name in figures if ".building_" in name}
    value |= {name: float(values[figure]) for name, figure in figures.items() if "provisioned_total" in name}
    assert value["cost.building_idle"] != value["decode.cost.building_idle"]
    for name, of_one in (("idle", "building_idle"), ("full", "building_full")):
        drawn = value[f"cost.{of_one}"] + 2 * value[f"decode.cost.{of_one}"]
        assert values[figures[f"capacity.{name}"]] == pytest.approx(drawn, rel=1e-12)
    provided = value["cost.provisioned_total"] + value["decode.cost.provisioned_total"]
    assert values[figures["capacity.provided"]] == pytest.approx(provided, rel=1e-12)


def test_workers_of_one_kind_have_its_price() -> None:
    alike, one = apart("h100-sxm"), ask(purchase=None)
    of_apart, of_one = (made.values(0)[made.equations.figures["capacity.machine"]] for made in (alike, one))
    assert of_apart == pytest.approx(of_one, rel=1e-12) and of_one > 30_000


def test_where_nothing_is_paid_for_rent_there_is_no_break_even() -> None:
    """Years not asked for cost nothing either: no division by zero in any of them."""
    found = ask(years=1, growth=3).results()["capacity"]
    assert found["cash_usd"]["rent"][2:] == [0] * 4 and found["npv_usd"]["buy"] is not None
    silent = ask(api_output=1e-12, api_input=0).results()["capacity"]
    assert silent["break_even"]["rent_against_api"] is None and silent["npv_usd"]["api"] is not None


def by_hand(
    money: dict[str, Any], found: dict[str, Any], watts: tuple[float, float, float]
) -> dict[str, Any]:
    """Cash by year and NPV from the rate of a replica and its watts, written without the equations."""
    shares = found["hours"]["requests"]
    years = int(money["years"])
    rate, idle, full, provided = found["requests_per_s_per_replica"], *watts
    peak = max(shares) * money["peak_factor"]
    flows: dict[str, list[float]] = {option: [0.0] * 6 for option in ("buy", "rent", "api")}
    owned = [0] * (years + 2)
    for year in range(1, years + 1):
        grown = (1 + money["growth"]) ** (year - 1)
        count = math.ceil(peak * grown / (rate * money["busiest"]) * (1 - 1e-9)) + money["spares"]
        owned[year] = max(owned[year - 1], count)
        bought = (owned[year] - owned[year - 1]) * money["purchase"]
        flows["buy"][year - 1] -= bought
        energy = (
            sum(  # hour by hour
                count * idle + (full - idle) * share * grown / rate for share in shares
            )
            * DAYS
            / 1000
            * money["electricity"]
        )
        housed = count * provided / 1000 * money["colocation"] * 12
        upkeep = owned[year] * money["purchase"] * money["upkeep"]
        flows["buy"][year] -= energy + housed + money["staff"] + upkeep
        flows["rent"][year] -= count * money["rent"] * DAYS * 24 + money["staff_rented"]
        requests = sum(shares) / 24 * grown * DAYS * 24 * 3600
        price = (1000 * money["api_input"] + 300 * money["api_output"]) / 1e6
        flows["api"][year] -= requests * price
    flows["buy"][years] += owned[years] * money["purchase"] * money["residual"]
    worth = {
        option: sum(flow / (1 + money["discount_rate"]) ** year for year, flow in enumerate(cash))
        for option, cash in flows.items()
    }
    return {"cash": flows, "npv": worth}


def random_money(seed: int) -> dict[str, Any]:
    """A demand with prices, drawn at random."""
    draw = np.random.default_rng(seed)
    return {
        "users": int(draw.integers(200, 6000)),
        "requests_per_user": float(draw.uniform(10, 400)),
        "profile": str(draw.choice(["office day", "evening", "flat"])),
        "peak_factor": float(draw.uniform(1, 2)),
        "growth": float(draw.uniform(-0.2, 0.6)),
        "spares": int(draw.integers(0, 4)),
        "busiest": float(draw.uniform(0.5, 1)),
        "years": int(draw.integers(1, 6)),
        "discount_rate": float(draw.uniform(0, 0.2)),
        "purchase": float(draw.uniform(5_000, 60_000)),
        "residual": float(draw.uniform(0, 0.4)),
        "rent": float(draw.uniform(0.5, 6)),
        "api_input": float(draw.uniform(0, 2)),
        "api_output": float(draw.uniform(0.1, 5)),
        "electricity": float(draw.uniform(0.02, 0.4)),
        "colocation": float(draw.uniform(0, 300)),
        "staff": float(draw.uniform(0, 90_000)),
        "staff_rented": float(draw.uniform(0, 90_000)),
        "upkeep": float(draw.uniform(0, 0.1)),
    }


def test_cash_is_that_of_a_calculation_by_hand() -> None:
    """Twenty demands, typed into one graph: cash, NPV and IRR of another program."""
    made = ask()
    cells, found = made.equations.capacity, made.equations.rows.of("capacity")
    figures = made.equations.figures
    assert cells is not None
    names = ("capacity.idle", "capacity.full", "capacity.provided")
    for seed in range(20):
        money = random_money(seed)
        inputs = {cells.cells[name].id: value for name, value in money.items() if name != "profile"}
        values = made.program.run(made.inputs(0) | inputs | {cells.profile.id: money["profile"]})
        told = {
            "hours": {"requests": [float(values[hour]) for hour in found.all("hour.*.requests")]},
            "requests_per_s_per_replica": float(values[found["rate"]]),
        }
        expected = by_hand(money, told, tuple(float(values[figures[name]]) for name in names))
        paid = {
            "buy": (found["bought.0"], *found.all("cash.buy.*")),
            "rent": (found["nothing"], *found.all("cash.rent.*")),
            "api": (found["nothing"], *found.all("year.*.api")),
        }
        for option, cash in expected["cash"].items():
            assert [float(values[at]) for at in paid[option]] == pytest.approx(cash, rel=1e-9, abs=1e-6)
            assert float(values[found[f"npv.{option}"]]) == pytest.approx(expected["npv"][option], rel=1e-9)
        irr = values[found["irr"]]
        if not isinstance(irr, str):
            flows = np.subtract(expected["cash"]["buy"], expected["cash"]["rent"])
            worth = sum(flow / (1 + irr) ** year for year, flow in enumerate(flows))
            assert worth == pytest.approx(0, abs=1e-6 * np.abs(flows).max())


def test_a_profile_fills_the_hours_until_they_are_typed_over() -> None:
    made = ask()
    found = made.equations.capacity
    assert found is not None
    values = made.program.run(made.inputs(0) | {found.profile.id: "evening", found.shares[3].id: 77})
    at = [float(values[share]) for share in found.shares]
    assert at[:5] == [50, 34, 22, 77, 10]
    flat = ask(profile="flat").results()["capacity"]
    assert flat["utilisation"]["mean"] == pytest.approx(flat["utilisation"]["peak"], rel=1e-12)


def test_a_limit_of_p95_is_kept_at_the_rate_that_a_replica_carries() -> None:
    """The wait of TTFT at that rate, worked out as the deployment serves it; in words what binds."""
    free = {name: value for name, value in ASKED.items() if name != "concurrency"} | {"request_rate": 10}
    p95 = float(estimate(parse_scenario(free, "test")).results()["ttft_p95_s"])
    made = ask(free | {"concurrency": None}, ttft_p95=p95 * 0.9)
    found = made.results()["capacity"]
    assert found["bound_by"] == "the limit of TTFT, p95"
    rate = found["requests_per_s_per_replica"]
    assert 1 < rate < 10
    there = estimate(parse_scenario(free | {"request_rate": rate}, "test")).results()
    assert 0.93 < there["ttft_p95_s"] / (p95 * 0.9) < 1.02  # all else of TTFT is shorter at that rate
    assert ask(ttft_p95=1e-4).results()["capacity"]["requests_per_s_per_replica"] is None


def test_devices_that_are_not_alike_pay_and_draw_each_for_itself() -> None:
    """Power and machines of all devices that count; of equal ones as much as of a pipeline of two."""
    asked = {name: value for name, value in ASKED.items() if name not in ("tp", "accelerator")}
    two = {"devices": [{"accelerator": "h100-sxm"}, {"accelerator": "h100-sxm"}], "accelerator": "h100-sxm"}
    names = ("idle", "full", "provided", "machine_library", "accelerators")

    def of(fields: dict[str, Any]) -> list[float]:
        made = ask(asked | {"tp": None} | fields)
        rows = made.equations.rows.of("capacity")
        return [float(made.values(0)[rows[name]]) for name in names]

    assert of(two) == pytest.approx(of({"accelerator": "h100-sxm", "pp": 2}), rel=1e-9)
    mixed = two | {"devices": [{"accelerator": "h100-sxm"}, {"accelerator": "l40s"}]}  # all lies on the first
    assert of(mixed) == pytest.approx(of({"accelerator": "h100-sxm"}), rel=1e-9)


@pytest.mark.exhaustive
def test_the_workbook_keeps_the_rules_of_modelling(tmp_path: Path) -> None:
    """With workers of two kinds, which has all that one kind has."""
    assert mantile.lint(apart("l40s").to_excel(tmp_path / "capacity.xlsx")) == []


@pytest.mark.exhaustive
def test_a_workbook_is_live_and_comes_back(tmp_path: Path) -> None:
    """Both engines agree; an edited cell is read back, and gives what the scenario gives."""
    made = ask()
    path = made.to_excel(tmp_path / "capacity.xlsx")
    assert mantile.verify(path).ok
    book = loaded(path)
    sheet = book["Capacity"]
    row = next(cell.row for cell in sheet["A"] if cell.value == "Active users at the peak")
    sheet[f"B{row}"] = 5000
    book.save(path)
    imported = mantile.import_workbook(path)
    assert imported.estimate.results()["capacity"] == ask(users=5000).results()["capacity"]
    assert [change["id"] for change in imported.changes] == ["capacity.asked.users"]
