"""What capacity and money come to, in words: titles, and assumptions with the figure of each."""

from __future__ import annotations

from collections.abc import Mapping

from mantile.equations.capacity.demand import Demand
from mantile.equations.capacity.fixed import MILLION, THOUSAND
from mantile.equations.display import counted
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    absolute,
    choose,
    is_number,
    join,
    number_of,
    percent,
    rounded,
    where,
)
from mantile.graph.rows import Rows


def assumptions_of(
    cells: Mapping[str, Input], found: Quantity, binds: Quantity, profile: Input, one: Mapping[str, Quantity]
) -> tuple[tuple[Quantity, Named], ...]:
    """What the answer rests on, in words, each with the figure."""
    rows = Rows("capacity")

    def told(name: str, words: Node, figure: Named) -> tuple[Quantity, Named]:
        return rows(f"told.{name}", "Assumption in words", "1", words), figure

    def whole(figure: Node) -> Node:
        return where(is_number(figure), rounded(number_of(figure), 0), NOT_KNOWN)

    def fine(figure: Node) -> Node:
        return where(is_number(figure), rounded(number_of(figure), 2), NOT_KNOWN)

    rate = join("A replica carries ", fine(found), " requests/s: ", binds)
    power = join("A replica draws ", whole(one["idle"]), " W idle, ", whole(one["full"]), " W at work")
    return (
        told("rate", rate, found),
        told("day", join("Every day of the year is like this one: ", profile), profile),
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
                counted(cells["years"], " year", " years"),
            ),
            cells["residual"],
        ),
    )


def titles_of(
    rows: Rows,
    parts: Rows,
    cells: Mapping[str, Input],
    demand: Demand,
    binds: Quantity,
    saving: Quantity,
    even: Mapping[str, Quantity],
    returned: Mapping[str, Quantity],
) -> tuple[Quantity, Quantity, Quantity, Quantity]:
    """What it comes to, how busy replicas are and where options break even, in words.

    Args:
        rows: of the titles.
        parts: of what they are made of.
    """
    count = demand.in_service
    size = absolute(number_of(saving))
    number = number_of(count)
    enough = parts(
        "told.enough",
        "Replicas in words",
        "1",
        join(
            counted(number, " replica carries", " replicas carry"),
            " the peak with ",
            rounded(cells["spares"], 0),
            " to spare",
        ),
    )
    none = join("! no rate is sustained within the limits (", binds, "): replicas not known")
    carried = parts(
        "told.carried", "What carries the peak, in words", "1", where(is_number(count), enough, none)
    )
    money = parts(
        "told.money",
        "Money in words",
        "1",
        where(
            size >= MILLION,
            join(rounded(size / MILLION, 2), " M USD"),
            join(rounded(size / THOUSAND, 0), " thousand USD"),
        ),
    )
    saved = parts(
        "told.saved",
        "What is saved, in words",
        "1",
        choose(
            1 + where(is_number(saving), 1, 0) + where(number_of(saving) < 0, 1, 0),
            "what buying saves is not known",
            join("buying saves ", money),
            join("renting saves ", money),
        ),
    )
    over = join(" over ", counted(cells["years"], " year", " years"))
    title = join(carried, "; ", saved, choose(1 + where(is_number(saving), 1, 0), "", over))

    def share(figure: Node) -> Node:
        return where(is_number(figure), percent(number_of(figure), 0), figure)

    used = join(
        "Utilisation: ",
        share(demand.utilisation_mean),
        " in the mean of the day, ",
        share(demand.utilisation_peak),
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
