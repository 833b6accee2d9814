"""Power and cost: the published convention and bill, and what utilisation and PUE do.

Also what is said where nobody states a figure.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isfinite
from typing import Any

import pytest

from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.results import raised
from mantile.graph.quantity import NOT_KNOWN, Quantity
from mantile.library.profiles import Library
from mantile.library.scenario import parse_scenario

ASKED: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 500,
    "concurrency": 32,
}


def ask(**fields: Any) -> Estimate:
    """An 8B model on one H100 unless it says otherwise."""
    return estimate(parse_scenario(ASKED | fields, "test"))


def look(made: Estimate) -> Callable[[str], float]:
    """Values by id."""
    values = made.values()
    return lambda name: float(values[made.figure(name)])


def overrides(**figures: float) -> dict[str, Any]:
    """Fields with figures of the hardware replaced."""
    return {
        "overrides": [
            {"id": f"hardware.{name}", "value": value, "reason": "test"} for name, value in figures.items()
        ]
    }


# SemiAnalysisAI/InferenceX-app@77ca49a6 constants.ts: kW per GPU all included; USD per GPU and hour owned by
# a smaller cloud, and rented.
INFERENCEX = {
    "h100-sxm": (1.73, 1.69, 1.30),
    "h200-sxm": (1.73, 1.74, 1.60),
    "b200-sxm": (2.17, 2.34, 2.90),
    "b300-sxm": (2.17, 2.808, 3.48),
    "gb200-nvl72": (2.10, 2.75, 3.30),
    "gb300-nvl72": (2.10, 3.30, 3.96),
    "mi300x": (1.79, 1.40, 1.55),
    "mi325x": (2.18, 1.59, 1.80),
    "mi355x": (2.65, 1.90, 2.10),
}


@pytest.mark.parametrize("chip", INFERENCEX)
def test_the_inferencex_convention_is_reproduced(chip: str) -> None:
    """USD per GPU-hour ÷ (tokens per second and GPU × 3600 ÷ 1e6), for output, input and all tokens.

    Tokens per provisioned MW.
    """
    kilowatt, owned, rental = INFERENCEX[chip]
    for basis, price in (("owned", owned), ("rental", rental)):
        stated = overrides(price_owned=price) if basis == "owned" else {}
        made = ask(accelerator=chip, tp=4, dp=2, price_basis=basis, **stated)
        found = made.results()
        each = {
            "output": found["requests_per_s"] * 500 / 8,
            "input": found["requests_per_s"] * 1000 / 8,
            "blended": found["requests_per_s"] * 1500 / 8,
        }
        assert each["output"] == pytest.approx(found["output_tokens_per_s_per_accelerator"], rel=1e-12)
        for kind, rate in each.items():
            assert found["usd_per_million_tokens"][kind] == pytest.approx(
                price / (rate * 3600 / 1e6), rel=1e-12
            )
        assert found["usd_per_hour"] == pytest.approx(8 * price, rel=1e-12)
        assert look(made)("cost.tokens_per_provisioned_watt") == pytest.approx(
            each["output"] / (kilowatt * 1000), rel=1e-12
        )


def test_deepseeks_bill_of_a_day_is_reproduced() -> None:
    """226.75 nodes of 8 at 2 USD for 24 hours: 87,072 USD (deepseek-ai/open-infra-index, day 6)."""
    made = ask(
        model="deepseek-r1", accelerator="h200-sxm", tp=2, dp=907, concurrency=907, **overrides(price_cloud=2)
    )
    assert made.results()["accelerators"] == 226.75 * 8
    assert look(made)("cost.usd_per_day") == pytest.approx(87_072, rel=1e-12)
    assert look(made)("cost.usd_per_month") == pytest.approx(87_072 * 365.25 / 12, rel=1e-12)
    half = ask(
        model="deepseek-r1",
        accelerator="h200-sxm",
        tp=2,
        dp=907,
        concurrency=907,
        hours_per_day=12,
        **overrides(price_cloud=2),
    )
    assert look(half)("cost.usd_per_day") == pytest.approx(87_072 / 2, rel=1e-12)


def test_power_is_idle_and_load_with_host_and_building() -> None:
    """Eight H100 would draw what a DGX is rated for, 10.2 kW, times PUE, if compute bound all the time.

    What binds says how far between idle and limit they are; at half utilisation they idle half of the time.
    """
    all_compute = [
        {"id": f"cost.power_of_{name}", "value": 1, "reason": "test"} for name in ("memory", "rest")
    ]
    rated = look(ask(tp=8, overrides=all_compute))
    assert rated("cost.power") == pytest.approx(10_200 * 1.3, rel=1e-9)
    assert look(ask(tp=8, pue=1, overrides=all_compute))("cost.power") == pytest.approx(10_200, rel=1e-9)
    for share in (1, 0.5):
        at = look(ask(tp=8, utilisation=share))
        watts = 70 + share * at("cost.active") * (700 - 70)
        assert at("cost.power") == pytest.approx(10_200 * 1.3 * watts / 700, rel=1e-12)
        shares = [
            at(f"{phase}.bound.compute")
            + 0.4 * at(f"{phase}.bound.memory")
            + 0.1 * (at(f"{phase}.bound.network") + at(f"{phase}.bound.overhead"))
            for phase in ("prefill", "decode")
        ]
        parts = [
            share / at(f"{phase}.time") for share, phase in zip(shares, ("prefill", "decode"), strict=True)
        ]
        of_prompts = at("token_cost.input_time_share")
        active = of_prompts * parts[0] + (1 - of_prompts) * parts[1]
        assert at("cost.active") == pytest.approx(active, rel=1e-9)
    for fields in ({"tp": 8}, {"tp": 2, "utilisation": 0.3}, {"accelerator": "l40s", "pue": 1.56}):
        made = ask(**fields)
        found, at = made.results(), look(made)
        mean = found["output_tokens_per_s"] * fields.get("utilisation", 1)
        assert found["joules_per_output_token"] == pytest.approx(found["power_w"] / mean, rel=1e-12)
        assert at("cost.tokens_per_kwh") * found["joules_per_output_token"] == pytest.approx(3.6e6, rel=1e-12)
        assert at("cost.electricity_per_day") == pytest.approx(found["power_w"] / 1000 * 24 * 0.10, rel=1e-12)


@pytest.mark.parametrize("chip", ["b200-sxm", "l40s"])
def test_pue_counts_once(chip: str, library: Library) -> None:
    """A published all-in figure holds host and building already.

    What is worked out has both once; what is drawn has PUE once.
    """
    one, more = (look(ask(accelerator=chip, pue=pue)) for pue in (1, 1.5))
    price = library.price(chip)
    published = (
        price.provisioned_power.value if price is not None and price.provisioned_power is not None else None
    )
    assert (published is None) == (chip == "l40s")
    assert one("cost.provisioned") == (published or 350 * 1.8)
    assert more("cost.provisioned") == pytest.approx(published or 350 * 1.8 * 1.5, rel=1e-12)
    for name in (
        "cost.building",
        "cost.total_power",
        "cost.power",
        "cost.joules_per_output_token",
        "cost.electricity",
        "cost.electricity_per_day",
    ):
        assert more(name) == pytest.approx(1.5 * one(name), rel=1e-12), name
    assert more("cost.draw") == one("cost.draw")


def test_utilisation_divides() -> None:
    """Price of the hour, day and month stay.

    Tokens are fewer, so each costs more; power falls, but energy per token rises.
    """
    shares = (0.1, 0.25, 0.5, 0.7, 1)
    found = [ask(utilisation=share).results() for share in shares]
    for share, values in zip(shares, found, strict=True):
        for kind in ("output", "input", "blended"):
            assert values["usd_per_million_tokens"][kind] * share == pytest.approx(
                found[-1]["usd_per_million_tokens"][kind], rel=1e-12
            )
        for same in ("usd_per_hour", "output_tokens_per_s", "ttft_s", "tpot_s"):
            assert values[same] == found[-1][same]
    for less, more in pairwise(found):
        assert less["power_w"] < more["power_w"]
        assert less["joules_per_output_token"] > more["joules_per_output_token"]


@pytest.mark.exhaustive
def test_each_price_basis_is_that_of_its_source(library: Library) -> None:
    """Cloud and rental as the profile states them; owned is purchase, upkeep and electricity.

    Without a purchase price it is not known, whatever somebody publishes.
    """
    made = ask()
    for price in library.prices:
        for basis in ("cloud", "rental", "owned"):
            values = made.program.run(
                made.inputs(0) | {"inputs.accelerator": price.id, "inputs.price_basis": basis}
            )
            stated = getattr(price, "purchase" if basis == "owned" else basis)
            expected = stated.value if stated is not None and stated.value else None
            if basis == "owned" and expected:
                machine = 1 if library.usual_system(price.id).whole_machine else 1.6
                power = values[made.figure("cost.building")]
                owned = expected * machine * (1 / 4 + 0.08) / 8766
                expected = None if power == NOT_KNOWN else owned + power / 1000 * 0.10
            found = values[made.figure("cost.price")]
            wanted = NOT_KNOWN if expected is None else pytest.approx(expected, rel=1e-12)
            assert found == wanted, (price.id, basis)
            codes = {alert["code"] for alert in raised(made.equations, values, errors=False)}
            assert ("PRICE_UNKNOWN" in codes) == (expected is None), (price.id, basis)
            assert (values[made.figure("cost.tokens_per_usd")] == NOT_KNOWN) == (expected is None)


def test_what_is_owned_follows_life_purchase_electricity_and_hours_of_use() -> None:
    """Each of them moves the price; half the hours a day save electricity alone.

    A figure of one's own holds; a published one is only compared.
    """

    def hour(**fields: Any) -> float:
        return look(ask(price_basis="owned", **fields))("cost.price")

    def figure(name: str, value: float) -> dict[str, Any]:
        return {"overrides": [{"id": name, "value": value, "reason": "test"}]}

    base, electricity = hour(), look(ask())("cost.electricity")
    capital = look(ask())("cost.capital")
    assert hour(electricity_price=0.3) == pytest.approx(base + 2 * electricity, rel=1e-12)
    assert hour(**overrides(price_purchase=50_000)) == pytest.approx(2 * base - electricity, rel=1e-12)
    assert hour(**figure("cost.life", 2)) == pytest.approx(base + capital, rel=1e-12)
    assert hour(**figure("cost.upkeep_share", 0)) == pytest.approx(capital + electricity, rel=1e-12)
    assert hour(hours_per_day=12) == pytest.approx(2 * base - electricity, rel=1e-12)
    assert hour(**overrides(price_owned=1.2)) == 1.2
    assert ask(price_basis="owned", **overrides(price_purchase=0)).results()["usd_per_hour"] is None
    published = look(ask())("hardware.price_owned")
    assert look(ask())("cost.own_against_published") == pytest.approx(base / published, rel=1e-12)


def test_an_unknown_price_of_either_side_is_said() -> None:
    """A bill of two kinds of workers is a bill only if both have a price."""
    known, half, neither = (
        ask(decode={"accelerator": chip}, **base)
        for chip, base in (
            ("h200-sxm", {}),
            ("m3-ultra", {}),
            ("m3-ultra", {"accelerator": "dgx-spark-gb10", "system": "spark-10gbe"}),
        )
    )
    told = [
        "PRICE_UNKNOWN" in {alert["code"] for alert in made.results()["checks"]["alerts"]}
        for made in (known, half, neither)
    ]
    assert told == [False, True, True]
    hourly = [look(ask(accelerator=chip))("cost.usd_per_hour") for chip in ("h100-sxm", "h200-sxm")]
    assert known.results()["usd_per_hour"] == pytest.approx(sum(hourly), rel=1e-12)
    power = [look(known)(f"{workers}cost.total_power") for workers in ("", "decode.")]
    assert known.results()["power_w"] == pytest.approx(sum(power), rel=1e-12)


def test_power_follows_the_request_rate() -> None:
    """A deployment that is hardly asked draws little more than idle, and never less; more requests, more."""
    rates = (0.01, 0.1, 1, 10)
    asked = {name: value for name, value in ASKED.items() if name != "concurrency"}
    found = [look(estimate(parse_scenario(asked | {"request_rate": rate}, "test"))) for rate in rates]
    watts = [of("cost.draw") for of in found]
    assert 70 < watts[0] < 80 and all(less < more for less, more in pairwise(watts))
    assert all(of("cost.draw") <= of("cost.at_work") for of in found)


def test_a_machine_at_home_has_no_data_centre_around_it() -> None:
    """No PUE beyond 1 and no share of a server; what somebody states holds."""
    one = look(ask(accelerator="rtx-4090", concurrency=1, framework="llama.cpp"))
    assert one("inputs.pue") == 1 and one("cost.overhead") == 1.3
    assert one("cost.building_full") <= 450 * 1.3
    assert look(ask(accelerator="rtx-4090", pue=1.2))("inputs.pue") == 1.2
    assert look(ask())("inputs.pue") == 1.3
    spark = look(ask(accelerator="dgx-spark-gb10", framework="llama.cpp", concurrency=1))
    assert 60 < spark("cost.building") < 100  # 60 to 90 W were seen of the whole machine


def test_no_accelerator_leads_to_an_error_in_a_cell(library: Library) -> None:
    """Whatever nobody states about a chip, every figure is a number.

    Where the power is unknown, that is said instead of 0 J a token.
    """
    silent, broken = [], {}
    made = ask()
    for chip in library.accelerators:
        values = made.program.run(made.inputs(0) | {"inputs.accelerator": chip.id})
        wrong = [
            figure.id
            for figure in made.equations.figures.values()
            if isinstance(figure, Quantity)
            and not isinstance(values[figure], str)
            and not isfinite(values[figure])
        ]
        if wrong:
            broken[chip.id] = wrong
        told = "POWER_UNKNOWN" in {alert["code"] for alert in raised(made.equations, values, errors=False)}
        if told == bool(chip.tdp and chip.tdp.value):
            silent.append(chip.id)
    assert not broken
    assert not silent
