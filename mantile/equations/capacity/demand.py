"""The demand: cells, hours of the day, what a replica carries within its limits, and replicas by hour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.capacity.fixed import (
    DAY,
    HOURLY,
    HOURS,
    PROFILE,
    WHOLE,
)
from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import (
    AT_P95,
    HALF,
    HOUR,
    MOST_LOAD,
    ONE_REQUEST,
    SMALLEST,
)
from mantile.equations.inputs import Workload
from mantile.equations.load import Arrivals
from mantile.equations.serving import Serving
from mantile.equations.serving.tails import Parts
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    choose,
    defined,
    exponential,
    if_known,
    index,
    least,
    logarithm,
    match,
    maximum,
    minimum,
    number_of,
    round_up,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.capacity import CAPACITY_FIELDS, OWN, PROFILES, CapacityAsked


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
class Profiles:
    """What each hour has by the profile that is chosen."""

    usual: tuple[Quantity, ...]
    sections: tuple[Section, ...]


def profiles_of(profile: Input) -> Profiles:
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
            choose(place, *(table[hour] for table in tables.values()), WHOLE),
        )
        for hour in range(HOURS)
    )
    listed = Section("Profiles", names, "that demand may follow")
    sections = (Section(f"Profile {name}", table, "100 is the peak") for name, table in tables.items())
    return Profiles(usual, (listed, *sections, rows.section("Profile of the demand", "as chosen")))


def shares_of(asked: CapacityAsked, profiles: Profiles) -> tuple[Input, ...]:
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


def cells_of(asked: CapacityAsked) -> dict[str, Input]:
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


def rate_of(
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
            left = rows(
                f"{one.name}_room",
                f"Share of time that the limit of {one.label} leaves to requests",
                "1",
                maximum(0, 1 - load.fixed / maximum(SMALLEST, one.bound)),
                "what a step takes without any is fixed",
            )
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
            solved[one.name] = _load_of_p95(rows, one, served.times, load) * share
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


def _load_of_p95(rows: Rows, limit: _Limit, times: Parts, load: Arrivals) -> Node:
    """Share of the time given to prompts at which the p95 of TTFT reaches its limit.

    TTFT is lognormal with a mean and a variance of the wait behind prompts and of the rest, which stays. The
    wait is found by halves, from below: it never comes to more than the limit allows.
    """
    rest = rows("p95_rest", "TTFT but for waits behind prompts", "s", times.ttft * (1 - times.wait))
    varies = rows(
        "p95_varies",
        "Variance of TTFT but for these waits",
        "1",
        (times.variance - times.wait * (times.wait + times.wait_varies)) * times.ttft * times.ttft,
        "square seconds",
    )
    by = rows("p95_wait_varies", "What these waits vary by", "s", times.wait_varies * times.ttft)
    room = rows("p95_room", "Longest wait within the limit", "s", maximum(0, limit.bound - rest))
    wait: Quantity | None = None
    for step in range(1, _HALVES + 1):
        part = room * HALF**step
        longer: Node = part if wait is None else wait + part
        tried = rows(f"p95_tried.{step}", f"Wait that is tried, step {step}", "s", longer)
        mean = rest + tried
        spread = rows(
            f"p95_spread.{step}",
            f"Mean square of TTFT against its squared mean, step {step}",
            "1",
            1 + (varies + tried * (tried + by)) / (mean * mean),
        )
        found = rows(
            f"p95_found.{step}",
            f"TTFT, p95, step {step}",
            "s",
            mean * exponential(AT_P95 * logarithm(spread) ** HALF) / spread**HALF,
        )
        wait = rows(
            f"p95_wait.{step}",
            f"Wait within the limit, step {step}",
            "s",
            where(found <= limit.bound, tried, 0 if wait is None else wait),
        )
    assert wait is not None
    return wait / maximum(SMALLEST, wait + HALF * load.takes)


_HALVES = 12


@dataclass(frozen=True)
class Demand:
    """Demand of the first year, and what it needs."""

    mean: Quantity
    peak: Quantity
    in_service: Quantity
    carried: tuple[Quantity, Quantity]
    hours: Mapping[str, tuple[Quantity, ...]]
    utilisation_peak: Quantity
    utilisation_mean: Quantity
    sections: tuple[Section, ...]


def replicas_for(peak: Node, rate: Quantity, cells: Mapping[str, Input]) -> Node:
    """Replicas for a peak, with spares: a billionth less, so that engines agree on a whole quotient."""
    return round_up(peak / (rate * cells["busiest"]) * (1 - TOLERANCE)) + cells["spares"]


def demand_of(cells: Mapping[str, Input], shares: Sequence[Input], rate: Quantity) -> Demand:
    rows = Rows("capacity")
    mean_share = rows("mean_share", "Mean share of the day", "1", sum_range(span(shares)) / (DAY / HOURLY))
    of_day = rows(
        "busiest_of_day",
        "Requests per second at a share of 100, of requests a day",
        "request/s",
        cells["requests_per_day"] / DAY / HOUR * WHOLE / maximum(TOLERANCE, mean_share),
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
    mean = rows("mean", "Requests per second, mean of the day", "request/s", full * mean_share / WHOLE)
    peak = rows(
        "peak",
        "Requests per second at the peak",
        "request/s",
        full * maximum(span(shares)) / WHOLE * cells["peak_factor"],
        "busiest minutes of the busiest hour",
    )
    total = rows(
        "in_service",
        "Replicas in service",
        "replica",
        if_known(replicas_for(peak, rate, cells), rate),
        "spares included",
    )
    sections = [rows.section("Demand", "of the first year")]
    hours: dict[str, tuple[Quantity, ...]] = {}
    made = Rows("capacity")
    hours["requests"] = tuple(
        made(f"hour.{hour}.requests", f"Requests per second at {hour} h", "request/s", full * share / WHOLE)
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
    return Demand(mean, peak, total, (carried, spared), hours, top, average, tuple(sections))
