"""Capacity and money: how many replicas a demand needs, and what it costs to buy, to rent, or to call an API.

Demand follows the hours of a day. Replicas carry its peak, with spares. Each year is a column of the life of
the purchase: cash out is negative, a purchase stands at the start of the year that needs it, all else at the
end of its year.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import (
    BEYOND_P95,
    DAYS,
    HALF,
    HOUR,
    KILO,
    MEGA,
    MONTH,
    MOST_LOAD,
    ONE_REQUEST,
    RANKS_TO_ACCELERATORS,
    SMALLEST,
)
from mantile.equations.cost import Cost
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.load import Arrivals
from mantile.equations.serving import Serving
from mantile.equations.typed import Faults
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    absolute,
    all_of,
    as_node,
    choose,
    defined,
    if_error,
    if_known,
    index,
    is_number,
    join,
    least,
    logarithm,
    match,
    maximum,
    minimum,
    nth_largest,
    number_of,
    percent,
    round_up,
    rounded,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.capacity import CAPACITY_FIELDS, OWN, PROFILES, CapacityAsked

PROFILE = "capacity.asked.profile"
"""The id of the cell of the demand profile."""
YEARS = 5
HOURS = 24
_WHOLE = defined("capacity.whole", "Share of the busiest hour", "1", 100, "100 is the peak", name="100")
_DAY = defined("capacity.day", "Hours of a day", "h/day", HOURS, "definition", name="24 h a day")
_HOURLY = defined("capacity.hourly", "One share an hour", "h/day", 1, "shares stand for hours", name="1 h")
_YEAR = defined("capacity.one_year", "One year", "year", 1, "turns what is paid by the year into an amount")
_NUMBERS = tuple(
    defined(f"capacity.number.{year}", f"Year {year}", "number", year, "its number", name=f"year {year}")
    for year in range(YEARS + 1)
)


@dataclass(frozen=True)
class Ranked:
    """A driver in the order of what it moves: its name, and both ends of the saving."""

    name: Quantity
    better: Quantity
    worse: Quantity


@dataclass(frozen=True)
class Capacity:
    """What the demand needs and costs. Money is USD, cash out negative; years from 1, cash also at the start.

    Args:
        rate: requests per second that a replica sustains; a text where it sustains none within its limits.
        hours: requests per second, replicas needed and utilisation, by hour.
        cash: of each option, at the start and at the end of each year; `npv` what it is worth today.
        break_even: utilisations, or that there is none.
        in_service: replicas of the first year; `carried` requests per second with and without the spares.
        cells: what is asked; `parts` what each option pays, by year; `titles` what it comes to, how busy
            replicas are and where options break even, in words.
        moves: by how much a driver moves what buying saves against renting; `ranked` the largest first,
            with `room` for bars and labels on both sides.
        binds: what keeps a replica from carrying more, in words.
        ahead: how far cash of buying is ahead of renting, at the start and at the end of each year;
            `spent` what each option has paid so far, at the same times, the numbers of `years`;
            `returned` when it comes back, in words and numbers.
        price: USD of a million tokens by option, of output tokens and of all.
        curves: the same by mean utilisation, at the utilisations of `use`.
        assumptions: in words, each with the figure that it rests on.
    """

    rate: Quantity
    replicas: tuple[Quantity, ...]
    peak: tuple[Quantity, ...]
    spares: Input
    hours: Mapping[str, tuple[Quantity, ...]]
    mean: Quantity
    utilisation_peak: Quantity
    utilisation_mean: Quantity
    cash: Mapping[str, tuple[Named, ...]]
    npv: Mapping[str, Quantity]
    saving: Quantity
    break_even: Mapping[str, Quantity]
    moves: Mapping[str, Quantity]
    in_service: Quantity
    carried: tuple[Quantity, Quantity]
    cells: Mapping[str, Input]
    parts: Mapping[str, tuple[Quantity, ...]]
    titles: tuple[Quantity, ...]
    profile: Input
    shares: tuple[Input, ...]
    binds: Quantity
    ahead: tuple[Quantity, ...]
    spent: Mapping[str, tuple[Quantity, ...]]
    years: tuple[Input, ...]
    returned: Mapping[str, Quantity]
    price: Mapping[str, Quantity]
    use: tuple[Input, ...]
    curves: Mapping[str, tuple[Quantity, ...]]
    ranked: tuple[Ranked, ...]
    room: tuple[Quantity, Quantity]
    assumptions: tuple[tuple[Quantity, Named], ...]
    sections: tuple[Section, ...]


def capacity(
    asked: CapacityAsked,
    profile: Input,
    inputs: Workload,
    ranks: tuple[Ranks, Ranks],
    served: Serving,
    cost: Cost,
    possible: Quantity,
) -> Capacity:
    """The rows of the Finance sheet.

    Args:
        profile: the cell of the demand profile.
        ranks: of the workers that prefill, or do everything, and of those that decode.
        possible: 1 if the plan of the scenario can be.
    """
    cells = _cells(asked)
    profiles = _profiles(profile)
    shares = _shares(asked, profiles)
    rows = Rows("capacity")
    units: Node = (
        inputs.dp / as_node(1)
        if ranks[0].disaggregated is None
        else where(ranks[0].disaggregated > 0, 1, inputs.dp)
    )
    units = rows(
        "units", "Replicas of the scenario", "replica", units, "with workers apart all of them are one"
    )
    rate, binds = _rate(rows, units, inputs, served, possible, cells)
    one_replica = rows.section("One replica", "what the scenario sustains, and so what a replica carries")
    demand = _demand(cells, shares, rate)
    money = _Money(cells, units, inputs, ranks, served, cost, rate, demand, profile, shares, binds)
    return money.worked_out(
        (
            Section(
                "Demand and money",
                (
                    *cells.values(),
                    _WHOLE,
                    _DAY,
                    _HOURLY,
                    _YEAR,
                    _THOUSAND,
                    _DOLLAR,
                    _NOTHING,
                    _LITTLE,
                    *_NUMBERS,
                ),
                "what is asked; typed on Capacity",
            ),
            *profiles.sections,
            Section("Demand by hour", shares, "share of the busiest hour; of the profile until typed over"),
            one_replica,
            *demand.sections,
        )
    )


def demand_profile(asked: CapacityAsked) -> Input:
    """The cell of the demand profile, which fills the shares of the hours."""
    stated = asked.profile != CapacityAsked.model_fields["profile"].default
    return Input(
        id=PROFILE,
        label="Demand profile",
        unit="1",
        value=asked.profile,
        note="fills the 24 shares of the hours, but for those typed over; own: the peak until typed",
        source="scenario" if stated else "assumed 2026-11: nobody stated it",
        status="given" if stated else "assumed",
        choices=(*PROFILES, OWN),
        shared=True,
    )


@dataclass(frozen=True)
class _Profiles:
    """What each hour has by the profile that is chosen."""

    usual: tuple[Quantity, ...]
    sections: tuple[Section, ...]


def _profiles(profile: Input) -> _Profiles:
    names = tuple(
        defined(f"capacity.profile.{number}", f"Profile {number}", "1", name, "of demand")
        for number, name in enumerate((*PROFILES, OWN), 1)
    )
    tables = {
        name: tuple(
            defined(
                f"capacity.profile.{number}.{hour}",
                f"{name.capitalize()}, at {hour} h",
                "1",
                share,
                "shape of a day, assumed 2026-11",
            )
            for hour, share in enumerate(shares)
        )
        for number, (name, shares) in enumerate(PROFILES.items(), 1)
    }
    rows = Rows("capacity")
    place = rows("profile_place", "Which profile is chosen", "number", match(profile, span(names)))
    usual = tuple(
        rows(
            f"hour.{hour}.usual",
            f"Demand at {hour} h by the profile",
            "1",
            choose(place, *(table[hour] for table in tables.values()), _WHOLE),
        )
        for hour in range(HOURS)
    )
    listed = Section("Profiles", names, "that demand may follow")
    sections = (Section(f"Profile {name}", table, "100 is the peak") for name, table in tables.items())
    return _Profiles(usual, (listed, *sections, rows.section("Profile of the demand", "as chosen")))


def _shares(asked: CapacityAsked, profiles: _Profiles) -> tuple[Input, ...]:
    """The cells of the hours. One that nobody stated follows the profile."""

    def share(hour: int, value: float, usual: Quantity) -> Input:
        return Input(
            f"capacity.hour.{hour}.share",
            f"Demand at {hour} h",
            "1",
            value,
            "of the busiest hour of the day, 100 the peak",
            "scenario" if asked.hours else "assumed 2026-11: shape of a day",
            "given" if asked.hours else "assumed",
            shared=True,
            minimum=0,
            maximum=100,
            default=None if asked.hours else lambda: usual,
        )

    return tuple(
        share(hour, value, usual)
        for hour, (value, usual) in enumerate(zip(asked.shares(), profiles.usual, strict=True))
    )


def _cells(asked: CapacityAsked) -> dict[str, Input]:
    return {
        name: Input(
            id=f"capacity.asked.{name}",
            label=field.label,
            unit=field.unit,
            value=asked.value(name),
            note=field.meaning,
            source="scenario" if getattr(asked, name) is not None else "assumed 2026-11: nobody stated it",
            status="given" if getattr(asked, name) is not None else "assumed",
            minimum=field.least,
            maximum=field.most,
            integer=field.kind is int,
            shared=True,
        )
        for name, field in CAPACITY_FIELDS.items()
    }


@dataclass(frozen=True)
class _Limit:
    """A limit of the scenario or of the demand: what it is of, its bound (0: none), what is found."""

    name: str
    label: str
    bound: Input
    found: Quantity


def _stated(inputs: Workload, cells: Mapping[str, Input], served: Serving) -> tuple[_Limit, ...]:
    """All limits that may be stated."""
    of_scenario = (
        ("ttft", "TTFT, mean", inputs.ttft_limit, served.ttft),
        ("tpot", "TPOT", inputs.tpot_limit, served.tpot),
        ("e2e", "end to end, mean", inputs.e2e_limit, served.e2e),
    )
    return (
        *(
            _Limit(name, label, bound, found)
            for name, label, bound, found in of_scenario
            if bound is not None
        ),
        _Limit("ttft_p95", "TTFT, p95", cells["ttft_p95"], served.ttft_p95),
        _Limit("tpot_asked", "TPOT of the demand", cells["tpot"], served.tpot),
        _Limit("e2e_p95", "end to end, p95", cells["e2e_p95"], served.e2e_p95),
    )


def _rate(
    rows: Rows,
    units: Node,
    inputs: Workload,
    served: Serving,
    possible: Quantity,
    cells: Mapping[str, Input],
) -> tuple[Quantity, Quantity]:
    """Requests per second that a replica carries within the limits, and what keeps it from more, in words.

    Where requests arrive at a rate, limits of TTFT and of TPOT are solved for the rate that just keeps them;
    those of end to end are known to hold at the rate of the scenario. Where so many requests are kept in
    flight, all limits have to hold with so many.
    """
    limits = _stated(inputs, cells, served)
    missed = {
        one.name: rows(
            f"missed.{one.name}",
            f"Limit of {one.label}, missed at the load of the scenario",
            "flag",
            where(all_of(one.bound > 0, one.found > one.bound), 1, 0),
        )
        for one in limits
    }
    flags = span(missed.values())
    count = rows("missed", "Limits missed at the load of the scenario", "number", sum_range(flags))
    first = rows(
        "missed_first", "The first of them", "number", where(count > 0, match(1, flags), 1), "in their order"
    )
    kept = rows(
        "rate_kept",
        "Requests per second of a replica at the concurrency",
        "request/s",
        where(count > 0, 0, served.requests_per_s / units),
        "so many requests are kept in flight; 0 where a limit is missed",
    )
    load = served.load
    is_rated = load is not None and inputs.request_rate is not None
    names = _names_of(rows, limits, is_rated)
    binds: Node = rows(
        "binds_kept",
        "What keeps a replica from more, at the concurrency",
        "1",
        where(count > 0, index(span(names[-len(limits) :]), first), "the concurrency of the scenario"),
    )
    sustained: Node = kept
    if load is not None and is_rated:
        bounds = _bounds(rows, limits, missed, inputs, served, units)
        lowest = rows("rate_lowest", "The lowest of these rates", "request/s", least(span(bounds)))
        place = rows("rate_lowest_of", "Which of them it is", "number", match(lowest, span(bounds)))
        at_rate = rows(
            "binds_rate",
            "What keeps a replica from more, at a rate",
            "1",
            index(span(names), place),
        )
        sustained = where(load.open > 0, lowest, kept)
        binds = where(load.open > 0, at_rate, binds)
    rate = rows("rate_within", "Requests per second of a replica within limits", "request/s", sustained)
    found = rows(
        "rate",
        "Requests per second that a replica carries",
        "request/s",
        where(all_of(possible > 0, rate > 0), rate, NOT_KNOWN),
        "not known where the scenario misses its own limits or cannot be",
    )
    limiting = rows("binds_within", "What keeps a replica from more, of a plan that can be", "1", binds)
    words = where(possible > 0, limiting, "a plan that cannot be")
    return found, rows("binds", "What keeps a replica from more", "1", words)


def _names_of(rows: Rows, limits: Sequence[_Limit], is_rated: bool) -> list[Input]:
    """What may keep a replica from more, in words: saturation at a rate, then each limit."""
    texts = (*(("saturation",) if is_rated else ()), *(f"the limit of {one.label}" for one in limits))
    names = [
        defined(f"capacity.limit.{number}", f"What may bind, {number}", "1", words, "in words")
        for number, words in enumerate(texts)
    ]
    rows.add(*names)
    return names


def _bounds(
    rows: Rows,
    limits: Sequence[_Limit],
    missed: Mapping[str, Quantity],
    inputs: Workload,
    served: Serving,
    units: Node,
) -> list[Quantity]:
    """Rates that a replica does not exceed: short of saturation, then by each limit, one below the other."""
    load = served.load
    assert load is not None and inputs.request_rate is not None
    most = rows(
        "rate_most",
        "Requests per second of a replica at the largest load",
        "request/s",
        where(load.load > 0, inputs.request_rate / maximum(TOLERANCE, load.load) * MOST_LOAD / units, 0),
    )
    own = rows("rate_own", "Requests per second of a replica in the scenario", "request/s", load.rate)
    share = rows(
        "prompt_load",
        "Requests per second that would fill the time with prompts",
        "request/s",
        where(load.prompts > 0, own / maximum(SMALLEST, load.prompts), most),
    )
    work = rows(
        "work", "Time a request adds to the steps of others", "s", load.delay + load.steps * load.slope
    )
    solved: dict[str, Node] = {}
    for one in limits:
        if one.name in ("tpot", "tpot_asked"):
            left = maximum(0, 1 - load.fixed / maximum(SMALLEST, one.bound))
            solved[one.name] = left / maximum(SMALLEST, work) * ONE_REQUEST
        elif one.name == "ttft":
            room = rows(
                "ttft_room",
                "Wait that the limit of mean TTFT leaves",
                "s",
                maximum(0, one.bound - one.found + load.wait),
                "all else of TTFT as at the rate of the scenario",
            )
            solved[one.name] = room / (room + HALF * load.takes) * share
        elif one.name == "ttft_p95":
            solved[one.name] = _load_of_p95(rows, one, load) * share
        else:
            solved[one.name] = where(missed[one.name] > 0, 0, own)
    found = {
        one.name: rows(
            f"solved.{one.name}",
            f"Requests per second at which {one.label} reaches its limit",
            "request/s",
            solved[one.name],
            "end to end: the rate of the scenario, where it is known" if one.name.startswith("e2e") else "",
        )
        for one in limits
    }
    saturated = rows(
        "rate_saturated",
        "Requests per second of a replica, short of saturation",
        "request/s",
        most,
        "beyond that load waits are far longer than closed forms say",
    )
    return [
        saturated,
        *(
            rows(
                f"rate_{one.name}",
                f"Requests per second within the limit of {one.label}",
                "request/s",
                where(one.bound > 0, minimum(saturated, found[one.name]), saturated),
            )
            for one in limits
        ),
    ]


def _load_of_p95(rows: Rows, limit: _Limit, load: Arrivals) -> Node:
    """Share of the time given to prompts at which the p95 of TTFT reaches its limit.

    The p95 of the wait is that of one server: takes / 2 / (1 - load) x ln(load / 0.05). With the wait that
    the limit leaves this is ln(load / 0.05) = turns x (1 - load), which Newton's steps solve from below: the
    load never comes to more than the limit allows.
    """
    room = rows(
        "p95_room",
        "Wait that the limit of TTFT, p95, leaves",
        "s",
        limit.bound - limit.found + load.wait_p95,
        "all else of TTFT as at the rate of the scenario",
    )
    turns = rows(
        "p95_turns",
        "That wait in halves of a prompt",
        "1",
        maximum(0, room) / maximum(SMALLEST, HALF * load.takes),
    )
    at: Quantity = rows(
        "p95_load.0",
        "Share of the time given to prompts, start",
        "1",
        where(room > 0, BEYOND_P95, 0),
        "up to it fewer than 1 in 20 wait",
    )
    for step in range(1, _NEWTON + 1):
        left = rows(
            f"p95_left.{step}",
            f"What is left to the limit, step {step}",
            "1",
            turns * (1 - at) - logarithm(maximum(SMALLEST, at) / BEYOND_P95),
        )
        at = rows(
            f"p95_load.{step}",
            f"Share of the time given to prompts, step {step}",
            "1",
            where(room > 0, at + left / (1 / maximum(SMALLEST, at) + turns), 0),
        )
    return at


_NEWTON = 5


@dataclass(frozen=True)
class _Demand:
    """Demand of the first year, and what it needs."""

    mean: Quantity
    peak: Quantity
    in_service: Quantity
    carried: tuple[Quantity, Quantity]
    hours: Mapping[str, tuple[Quantity, ...]]
    utilisation_peak: Quantity
    utilisation_mean: Quantity
    sections: tuple[Section, ...]


def _replicas(peak: Node, rate: Quantity, cells: Mapping[str, Input]) -> Node:
    """Replicas for a peak, with spares: a billionth less, so that engines agree on a whole quotient."""
    return round_up(peak / (rate * cells["busiest"]) * (1 - TOLERANCE)) + cells["spares"]


def _demand(cells: Mapping[str, Input], shares: Sequence[Input], rate: Quantity) -> _Demand:
    rows = Rows("capacity")
    mean_share = rows("mean_share", "Mean share of the day", "1", sum_range(span(shares)) / (_DAY / _HOURLY))
    of_day = rows(
        "busiest_of_day",
        "Requests per second at a share of 100, of requests a day",
        "request/s",
        cells["requests_per_day"] / _DAY / HOUR * _WHOLE / maximum(TOLERANCE, mean_share),
    )
    full = rows(
        "busiest_hour",
        "Requests per second at a share of 100",
        "request/s",
        where(
            cells["requests_per_day"] > 0,
            of_day,
            cells["users"] * cells["requests_per_user"] / HOUR,
        ),
        "of requests a day where they are stated, else of users",
    )
    mean = rows("mean", "Requests per second, mean of the day", "request/s", full * mean_share / _WHOLE)
    peak = rows(
        "peak",
        "Requests per second at the peak",
        "request/s",
        full * maximum(span(shares)) / _WHOLE * cells["peak_factor"],
        "busiest minutes of the busiest hour",
    )
    total = rows(
        "in_service",
        "Replicas in service",
        "replica",
        if_known(_replicas(peak, rate, cells), rate),
        "spares included",
    )
    sections = [rows.section("Demand", "of the first year")]
    hours: dict[str, tuple[Quantity, ...]] = {}
    made = Rows("capacity")
    hours["requests"] = tuple(
        made(f"hour.{hour}.requests", f"Requests per second at {hour} h", "request/s", full * share / _WHOLE)
        for hour, share in enumerate(shares)
    )
    sections.append(made.section("Requests by hour", "requests per second"))
    made = Rows("capacity")
    hours["needed"] = tuple(
        made(
            f"hour.{hour}.needed",
            f"Replicas needed at {hour} h",
            "replica",
            if_known(round_up(of * cells["peak_factor"] / (rate * cells["busiest"]) * (1 - TOLERANCE)), rate),
        )
        for hour, of in enumerate(hours["requests"])
    )
    sections.append(made.section("Replicas needed by hour", "without spares"))
    made = Rows("capacity")
    most = made(
        "needed_most", "Most replicas needed in an hour", "replica", maximum(0, span(hours["needed"]))
    )
    hours["busy"] = tuple(
        made(
            f"hour.{hour}.busy",
            f"Requests per second at {hour} h, if it needs the most",
            "request/s",
            where(number_of(needed) >= most, of, 0),
        )
        for hour, (of, needed) in enumerate(zip(hours["requests"], hours["needed"], strict=True))
    )
    hours["calm"] = tuple(
        made(
            f"hour.{hour}.calm",
            f"Requests per second at {hour} h, if fewer do",
            "request/s",
            of - busy,
        )
        for hour, (of, busy) in enumerate(zip(hours["requests"], hours["busy"], strict=True))
    )
    sections.append(made.section("Busiest hours", "hours that need the most replicas"))
    made = Rows("capacity")
    hours["utilisation"] = tuple(
        made(
            f"hour.{hour}.utilisation",
            f"Utilisation at {hour} h",
            "1",
            if_known(of / (total * rate), rate),
        )
        for hour, of in enumerate(hours["requests"])
    )
    top = made("utilisation_peak", "Utilisation at the peak", "1", if_known(peak / (total * rate), rate))
    average = made(
        "utilisation_mean", "Utilisation, mean of the day", "1", if_known(mean / (total * rate), rate)
    )
    carried = made(
        "carried", "Requests per second that all replicas carry", "request/s", if_known(total * rate, rate)
    )
    spared = made(
        "carried_without_spares",
        "Requests per second that replicas carry without the spares",
        "request/s",
        if_known((total - cells["spares"]) * rate, rate),
    )
    sections.append(made.section("Utilisation by hour", "spares count"))
    return _Demand(mean, peak, total, (carried, spared), hours, top, average, tuple(sections))


@dataclass(frozen=True)
class _Money:
    """What makes the cash of each option."""

    cells: Mapping[str, Input]
    units: Node
    inputs: Workload
    ranks: tuple[Ranks, Ranks]
    served: Serving
    cost: Cost
    rate: Quantity
    demand: _Demand
    profile: Input
    shares: tuple[Input, ...]
    binds: Quantity

    def worked_out(self, before: tuple[Section, ...]) -> Capacity:
        cells, rate, demand = self.cells, self.rate, self.demand
        prices = Rows("capacity")
        one = self._one(prices)
        sections = [*before, prices.section("Prices and power", "")]
        by_year: dict[str, list[Quantity]] = {}
        for year in range(1, YEARS + 1):
            rows = Rows(f"capacity.year.{year}")
            self._year(rows, year, one, by_year)
            sections.append(rows.section(f"Year {year}", "0 beyond the years asked for"))
        cash_rows = Rows("capacity")
        cash = self._cash(cash_rows, one, by_year)
        sections.append(cash_rows.section("Cash", "out is negative; start, then the end of each year"))
        of_years = Rows("capacity")
        discount = tuple(
            of_years(
                f"discount.{year}",
                f"Worth today of a USD {'at the start' if not year else f'after year {year}'}",
                "1",
                (1 + cells["discount_rate"]) ** -_NUMBERS[year],
            )
            for year in range(YEARS + 1)
        )
        options = {
            option: self._worth_by_year(
                of_years, f"npv.{option}", f"Cash, {_OPTIONS[option]}", flows, discount
            )
            for option, flows in cash.items()
        }
        spent = {
            name: self._worth_by_year(of_years, f"worth.{name}", label, by_year[name], discount[1:])
            for name, label in _PARTS.items()
        }
        sections.append(of_years.section("Worth today", "of each year: what is paid later is worth less"))
        ends = Rows("capacity")
        npv = {
            option: self._worth(ends, f"npv.{option}", f"NPV, {_OPTIONS[option]}", flows)
            for option, flows in options.items()
        }
        saving = ends(
            "saving",
            "What buying saves against renting",
            "USD",
            if_known(npv["buy"] - npv["rent"], npv["buy"], npv["rent"]),
            "today's worth; negative where renting is cheaper",
        )
        parts = {
            name: self._worth(ends, f"worth.{name}", f"{label}, worth today", spent[name])
            for name, label in _PARTS.items()
        }
        even = self._break_even(ends, npv, parts)
        moves = self._moves(ends, npv, parts)
        sections.append(ends.section("NPV, break-even and what moves it", "of the years asked for"))
        told = Rows("capacity")
        ahead, returned = self._returns(told, cash)
        spent_by = self._spent(told, cash)
        sections.append(
            told.section(
                "Bought, ahead of rent", "cash of buying less that of renting, and what each option has spent"
            )
        )
        told = Rows("capacity")
        price = self._per_token(told, npv, by_year["output"], discount[1:])
        sections.append(told.section("Price of a million tokens", "of the years, all worth today"))
        used_at = tuple(
            defined(
                f"capacity.use.{place}",
                f"Mean utilisation, {place} of {_POINTS}",
                "1",
                place / _POINTS,
                "a point of the curves",
                name=f"{place} of {_POINTS}",
            )
            for place in range(_FIRST_POINT, _POINTS + 1)
        )
        told = Rows("capacity")
        curves = self._curves(told, used_at, price, npv, parts)
        sections += [
            Section("Utilisations", used_at, "where the curves of break-even have a point"),
            told.section("Curves of break-even", "USD per million output tokens over the mean utilisation"),
        ]
        told = Rows("capacity")
        ranked = self._ranked(told, moves)
        wide = told("ranked_room", "Room of the chart", "USD", ranked[0].better + ranked[0].better * HALF)
        room = (wide, told("ranked_room_worse", "Room on the other side", "USD", -wide))
        sections.append(told.section("What moves the saving most", "the largest first"))
        titles = self._titles(Rows("capacity"), saving, even, returned)
        return Capacity(
            rate=rate,
            replicas=tuple(by_year["replicas"]),
            peak=tuple(by_year["peak"]),
            spares=cells["spares"],
            hours=demand.hours,
            mean=demand.mean,
            utilisation_peak=demand.utilisation_peak,
            utilisation_mean=demand.utilisation_mean,
            cash=cash,
            npv=npv,
            saving=saving,
            break_even=even,
            moves=moves,
            in_service=demand.in_service,
            carried=demand.carried,
            cells=cells,
            parts={name: tuple(figures) for name, figures in by_year.items()},
            titles=titles,
            profile=self.profile,
            shares=self.shares,
            binds=self.binds,
            ahead=ahead,
            spent=spent_by,
            years=_NUMBERS,
            returned=returned,
            price=price,
            use=used_at,
            curves=curves,
            ranked=ranked,
            room=room,
            assumptions=self._assumptions(one),
            sections=tuple(sections),
        )

    def _worth_by_year(
        self, rows: Rows, name: str, label: str, flows: Sequence[Named], discount: Sequence[Quantity]
    ) -> list[Quantity]:
        """What is paid at the start or in a year, worth today; one below the other."""
        first = YEARS + 1 - len(flows)
        return [
            rows(
                f"{name}.{year}",
                f"{label}, worth today, {f'year {year}' if year else 'start'}",
                "USD",
                if_known(flow * of, flow),
            )
            for year, (flow, of) in enumerate(zip(flows, discount, strict=True), first)
        ]

    def _worth(self, rows: Rows, name: str, label: str, by_year: Sequence[Quantity]) -> Quantity:
        """Their sum. What is not known in the last year is not known in any but at the start."""
        return rows(name, label, "USD", if_known(sum_range(span(by_year)), by_year[0], by_year[-1]))

    def _one(self, rows: Rows) -> dict[str, Quantity]:
        """What an accelerator or a replica costs and draws.

        Prefill and decode workers of their own each count with their own watts and price.
        """
        cells = self.cells
        count = rows(
            "accelerators", "Accelerators of a replica", "accelerator", self.served.accelerators / self.units
        )
        counts = self._counts(rows, count)

        def of_replica(figures: Sequence[Quantity]) -> Node:
            return sum_of([of * number for of, number in zip(figures, counts, strict=True)])

        def watts(name: str, label: str, figures: Sequence[Quantity]) -> Quantity:
            return rows(name, label, "W", if_known(of_replica(figures) / RANKS_TO_ACCELERATORS, *figures))

        kinds = self.cost.accelerators
        machines = [kind.machine for kind in kinds]
        library = rows(
            "machine_library",
            "Purchase price of an accelerator with host and network, of the library",
            "USD/accelerator",
            if_known(of_replica(machines) / RANKS_TO_ACCELERATORS / count, *machines),
            "mean of prefill and decode workers where these are others",
        )
        price = rows(
            "machine",
            "Purchase price of an accelerator with host and network",
            "USD/accelerator",
            where(cells["purchase"] > 0, cells["purchase"] + cells["hosts"] + cells["network"], library),
            "of the library where none is typed",
        )
        paid = rows(
            "rent_library",
            "Rent of an accelerator on the price basis of the scenario",
            "USD/h/accelerator",
            if_known(self.cost.usd_per_hour / self.served.accelerators, self.cost.usd_per_hour),
            "mean of all accelerators",
        )
        rent = rows(
            "rent_used",
            "Rent of an accelerator",
            "USD/h/accelerator",
            where(cells["rent"] > 0, cells["rent"], paid),
            "on the price basis of the scenario where none is typed",
        )
        idle = watts("idle", "Power of a replica while nothing runs", [kind.idle for kind in kinds])
        full = watts("full", "Power of a replica while it runs", [kind.full for kind in kinds])
        provided = watts(
            "provided", "Power to provide for a replica", [kind.provisioned_one for kind in kinds]
        )
        hours = rows("year_hours", "Hours of a year", "h", _DAY * DAYS * _YEAR)
        return {
            "count": count,
            "price": price,
            "rent": rent,
            "idle": idle,
            "full": full,
            "provided": provided,
            "hours": hours,
            "seconds": rows("year_seconds", "Seconds of a year", "s", hours * HOUR),
            "electricity": rows(
                "year_watt", "Electricity of a watt all year", "USD/W", hours * cells["electricity"] / KILO
            ),
            "colocation": rows(
                "year_provided",
                "Colocation of a watt all year",
                "USD/W",
                cells["colocation"] / KILO * (DAYS / MONTH) * _YEAR,
            ),
        }

    def _counts(self, rows: Rows, count: Quantity) -> list[Quantity]:
        """Accelerators of a replica: all of them, or those that prefill and those of decode workers."""
        apart = self.ranks[0].disaggregated
        if apart is None or len(self.cost.accelerators) == 1:
            return [count]
        first, last = (ranks.deployment / self.units for ranks in self.ranks)
        return [
            rows("accelerators_prefill", "Accelerators of a replica, prefill workers", "accelerator", first),
            rows(
                "accelerators_decode",
                "Accelerators of a replica, decode workers",
                "accelerator",
                apart * last,
            ),
        ]

    def _year(
        self, rows: Rows, year: int, one: Mapping[str, Quantity], by_year: dict[str, list[Quantity]]
    ) -> None:
        """A year: demand, replicas, and what each option pays in it."""
        cells, number = self.cells, _NUMBERS[year]

        def row(name: str, label: str, unit: str, body: Node, *needed: Node) -> Quantity:
            told = if_known(body, *needed) if needed else body
            made = rows(name, f"{label}, year {year}", unit, told)
            by_year.setdefault(name, []).append(made)
            return made

        on = row("asked", "The year counts", "flag", where(number <= cells["years"], 1, 0))
        row("last", "The year is the last", "flag", where(cells["years"] <= number, on, 0))
        grown = row("growth", "Demand against the first year", "1", (1 + cells["growth"]) ** (number - 1))
        peak = row("peak", "Requests per second at the peak", "request/s", self.demand.peak * grown)
        replicas = row(
            "replicas", "Replicas, with spares", "replica", _replicas(peak, self.rate, cells), self.rate
        )
        used = row(
            "utilisation",
            "Utilisation",
            "1",
            self.demand.mean * grown / (replicas * self.rate),
            replicas,
        )
        chips = row("accelerators", "Accelerators", "accelerator", replicas * one["count"] * on, replicas)
        before = by_year["owned"][-1] if year > 1 else None
        owned = row(
            "owned",
            "Accelerators bought so far",
            "accelerator",
            chips if before is None else maximum(before, chips),
            *([chips] if before is None else [before, chips]),
        )
        requests = row("requests", "Requests", "request", self.demand.mean * grown * one["seconds"] * on)
        tokens = row("output", "Output tokens", "Mtoken", requests * self.inputs.output_tokens / MEGA)
        prompts = row("input", "Input tokens", "Mtoken", requests * self.inputs.input_tokens / MEGA)
        idle = row(
            "energy_idle",
            "Electricity while nothing runs",
            "USD",
            -(replicas * one["idle"] * one["electricity"] * on),
            replicas,
            one["idle"],
        )
        load = row(
            "energy_load",
            "Electricity that follows load",
            "USD",
            -(replicas * (one["full"] - one["idle"]) * used * one["electricity"] * on),
            replicas,
            one["idle"],
        )
        energy = row("energy", "Electricity", "USD", idle + load, idle, load)
        housed = row(
            "colocation",
            "Colocation",
            "USD",
            -(replicas * one["provided"] * one["colocation"] * on),
            replicas,
            one["provided"],
        )
        staff = row("staff", "Staff", "USD", -(cells["staff"] * _YEAR * on))
        upkeep = row(
            "upkeep",
            "Upkeep",
            "USD",
            -(owned * one["price"] * cells["upkeep"] * _YEAR * on),
            owned,
            one["price"],
        )
        row(
            "running",
            "Running costs of what is bought",
            "USD",
            energy + housed + staff + upkeep,
            energy,
            housed,
            upkeep,
        )
        row(
            "rent",
            "Rent of accelerators",
            "USD",
            -(chips * one["rent"] * one["hours"]),
            chips,
            one["rent"],
        )
        row(
            "depreciation",
            "Depreciation, no cash",
            "USD",
            -(owned * one["price"] * (1 - cells["residual"]) / cells["years"] * on),
            owned,
            one["price"],
        )
        row("staff_rented", "Staff where rented", "USD", -(cells["staff_rented"] * _YEAR * on))
        row(
            "api",
            "API",
            "USD",
            where(
                cells["api_output"] > 0,
                -(tokens * cells["api_output"] + prompts * cells["api_input"]),
                NOT_KNOWN,
            ),
        )

    def _cash(
        self, rows: Rows, one: Mapping[str, Quantity], by_year: Mapping[str, list[Quantity]]
    ) -> dict[str, tuple[Named, ...]]:
        """Cash of each option at the start and at the end of each year."""
        owned, price = by_year["owned"], one["price"]
        bought = [
            rows(
                f"bought.{year}",
                f"Accelerators bought, {'start' if not year else f'end of year {year}'}",
                "USD",
                if_known(
                    -((owned[year] - (owned[year - 1] if year else as_node(0))) * price), owned[year], price
                )
                if year
                else if_known(-(owned[0] * price), owned[0], price),
            )
            for year in range(YEARS)
        ]
        whole = rows(
            "residual",
            "Residual value",
            "USD",
            if_known(owned[-1] * price * self.cells["residual"], owned[-1], price),
        )
        buy: list[Named] = [bought[0]]
        rent: list[Named] = [_NOTHING]
        api: list[Named] = [_NOTHING]
        for year in range(1, YEARS + 1):
            at = {name: figures[year - 1] for name, figures in by_year.items()}
            later = [bought[year]] if year < YEARS else []
            buy.append(
                rows(
                    f"cash.buy.{year}",
                    f"Cash, buy, year {year}",
                    "USD",
                    if_known(sum_of([at["running"], *later, whole * at["last"]]), at["running"], whole),
                )
            )
            rent.append(
                rows(
                    f"cash.rent.{year}",
                    f"Cash, rent, year {year}",
                    "USD",
                    if_known(at["rent"] + at["staff_rented"], at["rent"]),
                )
            )
            api.append(at["api"])
        return {"buy": tuple(buy), "rent": tuple(rent), "api": tuple(api)}

    def _break_even(
        self, rows: Rows, npv: Mapping[str, Quantity], parts: Mapping[str, Quantity]
    ) -> dict[str, Quantity]:
        """Utilisations at which options cost the same; in words that there is none."""
        used = self.demand.utilisation_mean

        def even(name: str, label: str, cost: Node, against: Node, *needed: Node) -> Quantity:
            """Where one cost comes to the other, both negative; less than a USD counts as one."""
            share = rows(
                f"{name}_at",
                f"{label}, worked out",
                "1",
                if_known(cost / minimum(-_DOLLAR, against), *needed),
            )
            found = all_of(number_of(share) > 0, number_of(share) <= 1)
            place = 1 + where(is_number(share), 1, 0) + where(found, 1, 0)
            return rows(name, label, "1", choose(place, NOT_KNOWN, NO_BREAK_EVEN, share))

        load = parts["energy_load"]
        return {
            "buy_against_rent": even(
                "break_even.buy_against_rent",
                "Share of the hours for which renting costs as much as buying",
                npv["buy"] - parts["staff_rented"],
                parts["rent"],
                npv["buy"],
                parts["rent"],
            ),
            "rent_against_api": even(
                "break_even.rent_against_api",
                "Utilisation at which renting costs as much as an API",
                used * npv["rent"],
                npv["api"],
                npv["rent"],
                npv["api"],
            ),
            "buy_against_api": even(
                "break_even.buy_against_api",
                "Utilisation at which buying costs as much as an API",
                used * (npv["buy"] - load),
                npv["api"] - load,
                npv["buy"],
                npv["api"],
            ),
        }

    def _spent(self, rows: Rows, cash: Mapping[str, tuple[Named, ...]]) -> dict[str, tuple[Quantity, ...]]:
        """What each option has paid so far, at the start and at the end of each year."""
        spent: dict[str, list[Quantity]] = {option: [] for option in cash}
        for option, flows in cash.items():
            for year, flow in enumerate(flows):
                before = spent[option][-1] if year else None
                body = if_known(-flow, flow) if before is None else if_known(before - flow, before, flow)
                label = f"Spent so far, {_OPTIONS[option]}, {_at(year)}"
                spent[option].append(rows(f"spent.{option}.{year}", label, "USD", body))
        return {option: tuple(figures) for option, figures in spent.items()}

    def _returns(
        self, rows: Rows, cash: Mapping[str, tuple[Named, ...]]
    ) -> tuple[tuple[Quantity, ...], dict[str, Quantity]]:
        """Cash of buying ahead of that of renting, when it comes back, and the IRR where that is clear."""
        buy, rent = cash["buy"], cash["rent"]
        each = [
            rows(
                f"ahead_in.{year}",
                f"Buying less renting, {_at(year)}",
                "USD",
                if_known(of_buy - of_rent, of_buy, of_rent),
            )
            for year, (of_buy, of_rent) in enumerate(zip(buy, rent, strict=True))
        ]
        ahead: list[Quantity] = []
        for year, of in enumerate(each):
            body: Node = of if not year else if_known(ahead[-1] + of, ahead[-1], of)
            ahead.append(rows(f"ahead.{year}", f"Buying ahead of renting, {_at(year)}", "USD", body))
        flags, times = [], []
        for year in range(1, YEARS + 1):
            at, then = ahead[year - 1], ahead[year]
            back = all_of(is_number(then), number_of(at) < 0, number_of(then) >= 0)
            flags.append(rows(f"back.{year}", f"Comes back in year {year}", "flag", where(back, 1, 0)))
        for year in range(1, YEARS + 1):
            owed, left = number_of(ahead[year - 1]), number_of(ahead[year])
            part = -owed / maximum(_DOLLAR, left - owed)
            times.append(
                rows(f"back_at.{year}", f"Comes back, if in year {year}", "number", _NUMBERS[year] - 1 + part)
            )
        found = rows("back", "Years in which it comes back", "number", sum_range(span(flags)))
        first = rows("back_first", "The first of them", "number", where(found > 0, match(1, span(flags)), 1))
        known = is_number(ahead[-1])
        never = rows("back_never", "Where it does not", "1", where(known, NEVER, NOT_KNOWN))
        after = rows(
            "payback",
            "Years after which buying overtakes renting",
            "number",
            where(found > 0, index(span(times), first), never),
            "cash of both, not discounted; within a year in a straight line",
        )
        return tuple(ahead), {"payback": after, "irr": self._irr(rows, each)}

    def _irr(self, rows: Rows, each: Sequence[Quantity]) -> Quantity:
        """The rate at which buying against renting is worth nothing.

        Clear where cash changes its sign once and more comes back than was paid: the worth then has one root
        between a discount factor of 0 and of 1. It is halved down, and ends with two of Newton's steps.
        """
        flows = [
            rows(f"flow.{year}", f"As a number, {_at(year)}", "USD", number_of(of))
            for year, of in enumerate(each)
        ]
        changes = [
            rows(
                f"turn.{year}",
                f"Cash turns, year {year}",
                "flag",
                where(flows[year - 1] * flows[year] / _DOLLAR < 0, 1, 0),
            )
            for year in range(1, YEARS + 1)
        ]
        turns = rows("turns", "Turns of cash", "number", sum_range(span(changes)))
        total = rows("flows", "Sum of cash, buying less renting", "USD", sum_range(span(flows)))
        clear = rows(
            "irr_clear",
            "The IRR is clear",
            "flag",
            where(all_of(is_number(each[-1]), flows[0] < 0, turns <= 1, total > 0), 1, 0),
            "paid first, back later, and more than was paid",
        )

        def worth(name: str, label: str, at: Node) -> Quantity:
            late = rows(
                f"{name}_late",
                f"{label}, of year 3 and later, as of then",
                "USD",
                (flows[5] * at + flows[4]) * at + flows[3],
            )
            return rows(name, label, "USD", ((late * at + flows[2]) * at + flows[1]) * at + flows[0])

        low: Node = as_node(0)
        for step in range(1, _HALVINGS + 1):
            middle = rows(f"irr_middle.{step}", f"Discount factor tried, {step}", "1", low + HALF**step)
            value = worth(f"irr_worth.{step}", f"Worth at it, {step}", middle)
            low = rows(
                f"irr_low.{step}",
                f"Discount factor at most, {step}",
                "1",
                where(value <= 0, middle, low),
            )
        for step in range(1, _POLISHED + 1):
            value = worth(f"irr_at.{step}", f"Worth there, {step}", low)
            terms = span(
                rows(
                    f"irr_slope.{step}.{year}",
                    f"Slope there, {step}, of year {year}",
                    "USD",
                    flows[year] * low ** (year - 1) * _NUMBERS[year],
                )
                for year in range(1, YEARS + 1)
            )
            slope = rows(f"irr_slope.{step}", f"Slope there, {step}", "USD", sum_range(terms))
            moved = low - value / where(slope > 0, slope, _DOLLAR)
            low = rows(f"irr_factor.{step}", f"Discount factor, {step}", "1", moved)
        unclear = rows(
            "irr_none", "Where it is not clear", "1", where(is_number(each[-1]), NOT_CLEAR, NOT_KNOWN)
        )
        return rows(
            "irr",
            "IRR of buying against renting",
            "1",
            where(clear > 0, 1 / maximum(SMALLEST, low) - 1, unclear),
            "only where cash turns once and more comes back than was paid",
        )

    def _per_token(
        self,
        rows: Rows,
        npv: Mapping[str, Quantity],
        output: Sequence[Quantity],
        discount: Sequence[Quantity],
    ) -> dict[str, Quantity]:
        """USD of a million tokens by option: what is paid over what is served, both worth today."""
        served = [
            rows(f"tokens.{year}", f"Output tokens, discounted, year {year}", "Mtoken", of * by)
            for year, (of, by) in enumerate(zip(output, discount, strict=True), 1)
        ]
        tokens = rows("tokens", "Output tokens, discounted", "Mtoken", sum_range(span(served)))
        some = rows(
            "tokens_some",
            "Output tokens, discounted, where there are any",
            "Mtoken",
            where(tokens > 0, tokens, NOT_KNOWN),
        )
        both = rows(
            "tokens_all",
            "Input and output tokens, discounted",
            "Mtoken",
            tokens * (1 + self.inputs.input_tokens / self.inputs.output_tokens),
        )
        return {
            f"{option}{of}": rows(
                f"price.{option}{of}",
                f"USD of a million {what}, {_OPTIONS[option]}",
                "USD/Mtoken",
                if_known(-worth / maximum(_LITTLE, count), worth, some),
            )
            for of, what, count in (("", "output tokens", tokens), ("_all", "tokens, both ways", both))
            for option, worth in npv.items()
        }

    def _curves(
        self,
        rows: Rows,
        used_at: Sequence[Input],
        price: Mapping[str, Quantity],
        npv: Mapping[str, Quantity],
        parts: Mapping[str, Quantity],
    ) -> dict[str, tuple[Quantity, ...]]:
        """USD of a million output tokens over mean utilisation, replicas as they are."""
        load, buy = parts["energy_load"], npv["buy"]
        follows = rows(
            "price.load",
            "Of it electricity that follows load",
            "USD/Mtoken",
            if_known(price["buy"] * load / minimum(-_DOLLAR, buy), load, buy, price["buy"]),
        )
        used = self.demand.utilisation_mean
        points: dict[str, list[Quantity]] = {"buy": [], "rent": []}
        for number, at in enumerate(used_at, 1):
            for option, needed in (("buy", (follows, used)), ("rent", (price["rent"], used))):
                whole = price[option]
                body = (whole - follows) * used / at + follows if option == "buy" else whole * used / at
                points[option].append(
                    rows(
                        f"curve.{option}.{number}",
                        f"USD of a million output tokens, {option}, point {number}",
                        "USD/Mtoken",
                        if_known(body, *needed),
                    )
                )
        return {option: tuple(figures) for option, figures in points.items()}

    def _ranked(self, rows: Rows, moves: Mapping[str, Quantity]) -> tuple[Ranked, ...]:
        """The drivers by what they move, the largest first; what is not known last, without a bar."""
        sizes = span(
            rows(
                f"size.{name}",
                f"Size of what {name} moves",
                "USD",
                absolute(number_of(figure)) + _NUMBERS[place] * _DOLLAR * TOLERANCE,
                "with a little more for each place, so that no two are alike",
            )
            for place, (name, figure) in enumerate(moves.items(), 1)
        )
        of = span(moves.values())
        names = span(
            rows(
                f"driver.{name}",
                f"{_DRIVERS[name]}, in words",
                "1",
                join(_DRIVERS[name], where(number_of(figure) < 0, " lower", " higher")),
                "the way in which buying gains",
            )
            for name, figure in moves.items()
        )
        ranked = []
        for place in range(1, len(moves) + 1):
            entry = rows(
                f"ranked.{place}",
                f"Driver that moves it most, {place}",
                "number",
                match(nth_largest(sizes, _NUMBERS[place]), sizes),
            )
            size = rows(
                f"ranked_by.{place}", f"By so much, {place}", "USD", absolute(number_of(index(of, entry)))
            )
            name = rows(f"ranked_name.{place}", f"Its name, {place}", "1", index(names, entry))
            worse = rows(f"ranked_worse.{place}", f"The other way, {place}", "USD", -size)
            ranked.append(Ranked(name, size, worse))
        return tuple(ranked)

    def _assumptions(self, one: Mapping[str, Quantity]) -> tuple[tuple[Quantity, Named], ...]:
        """What the answer rests on, in words, each with the figure."""
        cells, rows = self.cells, Rows("capacity")

        def told(name: str, words: Node, figure: Named) -> tuple[Quantity, Named]:
            return rows(f"told.{name}", "Assumption in words", "1", words), figure

        def whole(figure: Node) -> Node:
            return where(is_number(figure), rounded(number_of(figure), 0), NOT_KNOWN)

        def fine(figure: Node) -> Node:
            return where(is_number(figure), rounded(number_of(figure), 2), NOT_KNOWN)

        rate = join("A replica carries ", fine(self.rate), " requests/s: ", self.binds)
        power = join("A replica draws ", whole(one["idle"]), " W idle, ", whole(one["full"]), " W at work")
        return (
            told("rate", rate, self.rate),
            told("day", join("Every day of the year is like this one: ", self.profile), self.profile),
            told("growth", join("Demand grows ", percent(cells["growth"], 0), " each year"), cells["growth"]),
            told(
                "spares",
                join("Replicas that may fail at the peak: ", rounded(cells["spares"], 0)),
                cells["spares"],
            ),
            told(
                "machine",
                join("An accelerator with its share of a machine costs ", whole(one["price"]), " USD"),
                cells["purchase"],
            ),
            told("rent", join("Rent stays at ", fine(one["rent"]), " USD/h"), cells["rent"]),
            told(
                "api",
                where(
                    cells["api_output"] > 0,
                    join("API: ", cells["api_input"], " and ", cells["api_output"], " USD/M in, out"),
                    "The price of an API is not known",
                ),
                cells["api_output"],
            ),
            told("power", power, one["idle"]),
            told(
                "residual",
                join(
                    percent(cells["residual"], 0),
                    " of the purchase is left after ",
                    rounded(cells["years"], 0),
                    " years",
                ),
                cells["residual"],
            ),
        )

    def _titles(
        self,
        rows: Rows,
        saving: Quantity,
        even: Mapping[str, Quantity],
        returned: Mapping[str, Quantity],
    ) -> tuple[Quantity, Quantity, Quantity, Quantity]:
        """What it comes to, how busy replicas are and where options break even, in words."""
        count = self.demand.in_service
        thousands = rounded(absolute(number_of(saving)) / _THOUSAND, 0)
        title = join(
            where(
                is_number(count),
                join(
                    rounded(number_of(count), 0),
                    " replicas carry the peak with ",
                    rounded(self.cells["spares"], 0),
                    " to spare; ",
                ),
                join("! no rate is sustained within the limits (", self.binds, "): replicas not known; "),
            ),
            choose(
                1 + where(is_number(saving), 1, 0) + where(number_of(saving) < 0, 1, 0),
                "what buying saves is not known",
                "buying saves ",
                "renting saves ",
            ),
            where(
                is_number(saving),
                join(thousands, " thousand USD over ", rounded(self.cells["years"], 0), " years"),
                "",
            ),
        )

        def share(figure: Node) -> Node:
            return where(is_number(figure), percent(number_of(figure), 0), figure)

        used = join(
            "Utilisation: ",
            share(self.demand.utilisation_mean),
            " in the mean of the day, ",
            share(self.demand.utilisation_peak),
            " at the peak",
        )

        words = join(
            "Break-even at mean utilisation: rent against API ",
            share(even["rent_against_api"]),
            ", buy against API ",
            share(even["buy_against_api"]),
            "; at hours rented of all: buy against rent ",
            share(even["buy_against_rent"]),
        )
        after, irr = returned["payback"], returned["irr"]
        overtakes = where(
            is_number(after),
            join("Buying overtakes renting after ", rounded(number_of(after), 1), " years"),
            join("When buying overtakes renting: ", after),
        )
        back = join(overtakes, "; IRR against rent: ", share(irr))
        return (
            rows("title", "Finding", "1", title),
            rows("title_used", "Utilisation in words", "1", used),
            rows("title_even", "Break-even in words", "1", words),
            rows("title_back", "When buying pays, in words", "1", back),
        )

    def _moves(
        self, rows: Rows, npv: Mapping[str, Quantity], parts: Mapping[str, Quantity]
    ) -> dict[str, Quantity]:
        """What buying saves more if a driver is higher by the share stated; less by as much if lower."""
        swing = self.cells["swing"]
        running = parts["energy_idle"] + parts["energy_load"] + parts["colocation"] + parts["staff"]
        drivers: dict[str, tuple[str, Node, tuple[Node, ...]]] = {
            "rent": ("Rent", -parts["rent"], (parts["rent"],)),
            "purchase": ("Purchase price, with upkeep and residual", npv["buy"] - running, (npv["buy"],)),
            "electricity": (
                "Electricity",
                parts["energy_idle"] + parts["energy_load"],
                (parts["energy_idle"], parts["energy_load"]),
            ),
            "colocation": ("Colocation", parts["colocation"], (parts["colocation"],)),
            "staff": ("Staff", parts["staff"] - parts["staff_rented"], ()),
        }
        return {
            name: rows(
                f"moves.{name}",
                f"Saving moves with {label[0].lower()}{label[1:]}",
                "USD",
                if_known(worth * swing, *needed) if needed else worth * swing,
                "the driver higher by the share stated; lower: as much the other way",
            )
            for name, (label, worth, needed) in drivers.items()
        }


_THOUSAND = defined("capacity.thousand", "Thousand", "1", 1000, "definition", name="1000")
_DOLLAR = defined("capacity.dollar", "One USD", "USD", 1, "the least that a cost is divided by", name="1 USD")
_NOTHING = defined(
    "capacity.nothing", "Cash at the start, rent and API", "USD", 0, "nothing is paid in advance"
)
_OPTIONS = {"buy": "buy", "rent": "rent", "api": "API"}
_PARTS = {
    "rent": "Rent of accelerators",
    "energy_idle": "Electricity while nothing runs",
    "energy_load": "Electricity that follows load",
    "colocation": "Colocation",
    "staff": "Staff",
    "staff_rented": "Staff where rented",
}
_DRIVERS = {
    "rent": "Rent",
    "purchase": "Purchase",
    "electricity": "Electricity",
    "colocation": "Colocation",
    "staff": "Staff",
}
NO_BREAK_EVEN = "no break-even"
NEVER = "not within the years"
NOT_CLEAR = "not clear"
_HALVINGS, _POLISHED = 12, 3
_FIRST_POINT, _POINTS = 2, 20  # of the curves: from 10 % in steps of 5
_LITTLE = defined(
    "capacity.little", "Least tokens", "Mtoken", 1e-9, "the least that is divided by", name="1e-9"
)


def _at(year: int) -> str:
    return f"year {year}" if year else "start"


NO_POINT = Input(
    "capacity.no_point", "Where there is no point", "1", math.nan, status="defined", shared=True, fixed=True
)


def point(figure: Named, shown: Node) -> Node:
    """A figure as a chart draws it: no point where nobody knows it."""
    return shown if isinstance(figure, Input) else where(is_number(figure), shown, NO_POINT)


def figures_of(found: Capacity) -> tuple[Named, ...]:
    """All of them, in the order of the sheet."""
    return tuple(figure for section in found.sections for figure in section.figures())


def shown(titles: tuple[Quantity, ...], faults: Faults | None) -> tuple[Quantity, ...]:
    """Findings in words, where all figures can be that they follow from.

    Those of `titles` stand elsewhere.

    Args:
        faults: what is wrong in tables of figures that no result of a plan depends on, such as what is typed
            here; None without such tables.
    """
    if faults is None:
        return titles
    refused = (join("! not known: ", faults.message), *[as_node(NOT_KNOWN)] * (len(titles) - 1))
    return tuple(
        Quantity(
            f"capacity.shown.{title.id.rpartition('.')[2]}",
            title.label,
            "1",
            where(faults.count > 0, instead, if_error(title, NOT_KNOWN)),
        )
        for title, instead in zip(titles, refused, strict=True)
    )
