"""Who asks a price, where, on which terms and when, what others ask, and whether it is old."""

from __future__ import annotations

from collections.abc import Iterable

from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Workload
from mantile.equations.library import OFFER_PARTS
from mantile.graph.quantity import (
    Input,
    Quantity,
    all_of,
    count_where,
    equal,
    if_known,
    index,
    is_number,
    join,
    match,
    maximum,
    number_of,
    span,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.profile_facts import OWN_PRICE

MOST_DAYS = Input(
    id="offer.most_days",
    label="Days after which a price is old",
    unit="day",
    value=90.0,
    note="an alert says so",
    source="assumed 2026-11: rents of an H100 rose from 1.70 to 2.35 USD within five months",
    status="assumed",
    shared=True,
    minimum=0,
    maximum=3660,
)


def offer(
    rows: Rows, inputs: Workload, hardware: Hardware, used: Quantity, names: Iterable[Input]
) -> Quantity:
    """What is said of the price in use.

    Args:
        used: the price, which may not be known.
        names: of the price bases.

    Returns:
        1 if the price is not known, typed by hand, or at most so many days old; 0 if it is older or nobody
        knows its day.
    """
    columns = hardware.offers
    own = rows(
        "offer_own",
        "The price is one's own",
        "flag",
        index(span(tuple(hardware.own_prices.values())), match(inputs.price_basis, span(tuple(names)))),
        "1 where it was typed by hand: in the scenario, or over that of the library",
    )
    begins = hardware.prices["purchase"].id.removesuffix("purchase")
    typed = all_of(equal(inputs.price_basis, "owned"), hardware.owned_stated > 0)
    rows(
        "offer_figure",
        "Figure of the library that the price follows from",
        "1",
        where(typed, f"{begins}own", join(begins, inputs.price_basis)),
    )
    key = rows("offer_key", "Accelerator and basis", "1", join(inputs.accelerator, " ", inputs.price_basis))
    stated = rows(
        "offer_stated",
        "Somebody else states the price",
        "flag",
        where(all_of(is_number(used), own < 1), 1, 0),
    )
    known = rows(
        "offer_known",
        "The library has more to say of the price",
        "flag",
        where(stated > 0, count_where(span(columns["key"]), key), 0),
    )
    place = rows(
        "offer_number",
        "Place of the price",
        "number",
        where(known > 0, match(key, span(columns["key"])), 1),
        "the first place is that of none",
    )
    looked_up = {part: index(span(columns[part]), place) for part in columns}
    for part in ("provider", "region", "term"):
        kind = OFFER_PARTS[part]
        rows(f"offer_{part}", f"{kind.label} of the price", "1", where(own > 0, OWN_PRICE, looked_up[part]))
    found = {}
    for part in ("day", "lowest", "highest"):
        kind = OFFER_PARTS[part]
        found[part] = rows(f"offer_{part}", kind.label, kind.unit, looked_up[part], kind.note)
        if part != "day":
            by = OFFER_PARTS[f"{part}_by"]
            rows(f"offer_{part}_by", by.label, "1", looked_up[f"{part}_by"])
    day = found["day"]
    age = rows(
        "offer_age", "Age of the price", "day", if_known(inputs.as_of - day, day), "on the day asked for"
    )
    young = rows(
        "offer_young",
        "The price is at most so many days old",
        "flag",
        where(all_of(is_number(age), number_of(age) <= MOST_DAYS), 1, 0),
        "0 where nobody knows its day",
    )
    return rows(
        "offer_passed",
        "The price is not old",
        "flag",
        maximum(young, 1 - stated),
        "one's own is not judged, nor one that is not known",
    )
