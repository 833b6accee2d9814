"""What cash by year comes to: break-even, when it comes back, IRR, USD per token, and what moves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mantile.equations.capacity.fixed import (
    DOLLAR,
    DRIVERS,
    LITTLE,
    NEVER,
    NO_BREAK_EVEN,
    NOT_CLEAR,
    NUMBERS,
    OPTIONS,
    YEARS,
    at_year,
)
from mantile.equations.capacity.found import Ranked
from mantile.equations.checks import TOLERANCE
from mantile.equations.constant import (
    HALF,
    SMALLEST,
)
from mantile.equations.inputs import Workload
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    absolute,
    all_of,
    as_node,
    choose,
    if_known,
    index,
    is_number,
    join,
    match,
    maximum,
    minimum,
    nth_largest,
    number_of,
    span,
    sum_range,
    where,
)
from mantile.graph.rows import Rows

_HALVINGS, _POLISHED = 12, 3


def break_even(
    rows: Rows, used: Node, npv: Mapping[str, Quantity], parts: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """Utilisations at which options cost the same; in words that there is none."""

    def even(name: str, label: str, cost: Node, against: Node, *needed: Node) -> Quantity:
        """Where one cost comes to the other, both negative; less than a USD counts as one."""
        share = rows(
            f"{name}_at",
            f"{label}, worked out",
            "1",
            if_known(cost / minimum(-DOLLAR, against), *needed),
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


def spent_so_far(rows: Rows, cash: Mapping[str, tuple[Named, ...]]) -> dict[str, tuple[Quantity, ...]]:
    """What each option has paid so far, at the start and at the end of each year."""
    spent: dict[str, list[Quantity]] = {option: [] for option in cash}
    for option, flows in cash.items():
        for year, flow in enumerate(flows):
            before = spent[option][-1] if year else None
            body = if_known(-flow, flow) if before is None else if_known(before - flow, before, flow)
            label = f"Spent so far, {OPTIONS[option]}, {at_year(year)}"
            spent[option].append(rows(f"spent.{option}.{year}", label, "USD", body))
    return {option: tuple(figures) for option, figures in spent.items()}


def returns(
    rows: Rows, cash: Mapping[str, tuple[Named, ...]]
) -> tuple[tuple[Quantity, ...], dict[str, Quantity]]:
    """Cash of buying ahead of that of renting, when it comes back, and the IRR where that is clear."""
    buy, rent = cash["buy"], cash["rent"]
    each = [
        rows(
            f"ahead_in.{year}",
            f"Buying less renting, {at_year(year)}",
            "USD",
            if_known(of_buy - of_rent, of_buy, of_rent),
        )
        for year, (of_buy, of_rent) in enumerate(zip(buy, rent, strict=True))
    ]
    ahead: list[Quantity] = []
    for year, of in enumerate(each):
        body: Node = of if not year else if_known(ahead[-1] + of, ahead[-1], of)
        ahead.append(rows(f"ahead.{year}", f"Buying ahead of renting, {at_year(year)}", "USD", body))
    flags, times = [], []
    for year in range(1, YEARS + 1):
        at, then = ahead[year - 1], ahead[year]
        back = all_of(is_number(then), number_of(at) < 0, number_of(then) >= 0)
        flags.append(rows(f"back.{year}", f"Comes back in year {year}", "flag", where(back, 1, 0)))
    for year in range(1, YEARS + 1):
        owed, left = number_of(ahead[year - 1]), number_of(ahead[year])
        part = -owed / maximum(DOLLAR, left - owed)
        times.append(
            rows(f"back_at.{year}", f"Comes back, if in year {year}", "number", NUMBERS[year] - 1 + part)
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
    return tuple(ahead), {"payback": after, "irr": _irr(rows, each)}


def _irr(rows: Rows, each: Sequence[Quantity]) -> Quantity:
    """The rate at which buying against renting is worth nothing.

    Clear where cash changes its sign once and more comes back than was paid: the worth then has one root
    between a discount factor of 0 and of 1. It is halved down, and ends with two of Newton's steps.
    """
    flows = [
        rows(f"flow.{year}", f"As a number, {at_year(year)}", "USD", number_of(of))
        for year, of in enumerate(each)
    ]
    changes = [
        rows(
            f"turn.{year}",
            f"Cash turns, year {year}",
            "flag",
            where(flows[year - 1] * flows[year] / DOLLAR < 0, 1, 0),
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
                flows[year] * low ** (year - 1) * NUMBERS[year],
            )
            for year in range(1, YEARS + 1)
        )
        slope = rows(f"irr_slope.{step}", f"Slope there, {step}", "USD", sum_range(terms))
        moved = low - value / where(slope > 0, slope, DOLLAR)
        low = rows(f"irr_factor.{step}", f"Discount factor, {step}", "1", moved)
    unclear = rows("irr_none", "Where it is not clear", "1", where(is_number(each[-1]), NOT_CLEAR, NOT_KNOWN))
    return rows(
        "irr",
        "IRR of buying against renting",
        "1",
        where(clear > 0, 1 / maximum(SMALLEST, low) - 1, unclear),
        "only where cash turns once and more comes back than was paid",
    )


def per_token(
    rows: Rows,
    inputs: Workload,
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
        tokens * (1 + inputs.input_tokens / inputs.output_tokens),
    )
    return {
        f"{option}{of}": rows(
            f"price.{option}{of}",
            f"USD of a million {what}, {OPTIONS[option]}",
            "USD/Mtoken",
            if_known(-worth / maximum(LITTLE, count), worth, some),
        )
        for of, what, count in (("", "output tokens", tokens), ("_all", "tokens, both ways", both))
        for option, worth in npv.items()
    }


def curves_of(
    rows: Rows,
    used: Node,
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
        if_known(price["buy"] * load / minimum(-DOLLAR, buy), load, buy, price["buy"]),
    )
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


def ranked_by(rows: Rows, moves: Mapping[str, Quantity]) -> tuple[Ranked, ...]:
    """The drivers by what they move, the largest first; what is not known last, without a bar."""
    sizes = span(
        rows(
            f"size.{name}",
            f"Size of what {name} moves",
            "USD",
            absolute(number_of(figure)) + NUMBERS[place] * DOLLAR * TOLERANCE,
            "with a little more for each place, so that no two are alike",
        )
        for place, (name, figure) in enumerate(moves.items(), 1)
    )
    of = span(moves.values())
    names = span(
        rows(
            f"driver.{name}",
            f"{DRIVERS[name]}, in words",
            "1",
            join(DRIVERS[name], where(number_of(figure) < 0, " lower", " higher")),
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
            match(nth_largest(sizes, NUMBERS[place]), sizes),
        )
        size = rows(
            f"ranked_by.{place}", f"By so much, {place}", "USD", absolute(number_of(index(of, entry)))
        )
        name = rows(f"ranked_name.{place}", f"Its name, {place}", "1", index(names, entry))
        worse = rows(f"ranked_worse.{place}", f"The other way, {place}", "USD", -size)
        ranked.append(Ranked(name, size, worse))
    return tuple(ranked)


def moves_of(
    rows: Rows, swing: Node, npv: Mapping[str, Quantity], parts: Mapping[str, Quantity]
) -> dict[str, Quantity]:
    """What buying saves more if a driver is higher by the share stated; less by as much if lower."""
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
