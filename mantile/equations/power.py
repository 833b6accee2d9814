"""What an accelerator draws, with its share of host and building, and what an hour of it costs on each price basis."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import KILO, RANKS_TO_ACCELERATORS, YEAR
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import BASES, Ranks, Workload
from mantile.graph.quantity import Input, Node, Quantity, Section, all_of, index, match, span, where


def _assumed(
    name: str, label: str, unit: str, value: float, low: float, high: float, note: str, source: str
) -> Input:
    return Input(
        f"cost.{name}",
        label,
        unit,
        value,
        note,
        f"assumed 2026-08: {source}",
        "assumed",
        shared=True,
        minimum=low,
        maximum=high,
    )


IDLE_SHARE = _assumed(
    "idle_share",
    "Idle power, share of the limit",
    "1",
    0.15,
    0,
    1,
    "where nobody states idle power",
    "rule of thumb of secondary pages",
)
HOST_SHARE = _assumed(
    "host_share",
    "Machine over its accelerators",
    "1",
    1.8,
    1,
    5,
    "power of a machine over that of its accelerators, where nobody states it",
    "nameplates: DGX H100 1.82, DGX B200 1.79, DGX A100 2.03",
)
CAPITAL_SHARE = _assumed(
    "capital_share",
    "Machine over its accelerators, price",
    "1",
    1.6,
    1,
    5,
    "price of a machine with network over that of its accelerators",
    "8 x H100: node 300 to 350 thousand USD and 10 to 15 % for the network, against 8 x 25 to 30 thousand",
)
LIFE = _assumed(
    "life",
    "Economic life",
    "year",
    4,
    0.5,
    20,
    "over which a purchase is written off",
    "InferenceX; 2 to 3 economic, 5 to 6 by the books elsewhere",
)
ASSUMED = (IDLE_SHARE, HOST_SHARE, CAPITAL_SHARE, LIFE)


@dataclass(frozen=True)
class Power:
    """Watts of one accelerator and USD of an hour of it.

    Args:
        draw: mean of the accelerator; `building` with host and PUE; `total` of the deployment in the building.
        provisioned: to be reserved for it, all included.
        price: USD per accelerator and hour on the basis asked for; 0 where none is known.
    """

    draw: Quantity
    building: Quantity
    total: Quantity
    provisioned: Quantity
    electricity: Quantity
    price: Quantity
    hourly: Quantity
    section: Section


def power(inputs: Workload, ranks: Ranks, hardware: Hardware) -> Power:
    """The rows of one deployment on the Cost sheet."""

    def row(name: str, label: str, unit: str, body: Node, note: str = "", source: str = "") -> Quantity:
        return Quantity(f"cost.{name}", label, unit, body, note=note, source=source)

    idle = row(
        "idle",
        "Idle power of an accelerator",
        "W",
        where(hardware.idle > 0, hardware.idle, IDLE_SHARE * hardware.tdp),
        "as stated, else a share of the limit",
    )
    draw = row(
        "draw",
        "Power of an accelerator",
        "W",
        idle + (hardware.tdp - idle) * inputs.utilisation,
        "idle + (limit − idle) × utilisation",
    )
    overhead = row(
        "overhead",
        "Machine over its accelerators in use",
        "1",
        where(
            all_of(hardware.node_power > 0, hardware.tdp > 0),
            hardware.node_power * RANKS_TO_ACCELERATORS / (hardware.system_accelerators * hardware.tdp),
            HOST_SHARE,
        ),
        "nameplate of the machine ÷ limits of its accelerators, else as assumed",
    )
    building = row(
        "building",
        "Power of an accelerator in the building",
        "W",
        draw * overhead * inputs.pue,
        "power × machine over its accelerators × PUE",
    )
    everything = row(
        "total_power",
        "Power of the deployment",
        "W",
        building * ranks.deployment / RANKS_TO_ACCELERATORS,
        "accelerators × power in the building",
    )
    provisioned = row(
        "provisioned",
        "Power to provide for an accelerator",
        "W",
        where(
            hardware.prices["provisioned_power"] > 0,
            hardware.prices["provisioned_power"],
            hardware.tdp * overhead * inputs.pue,
        ),
        "the published all-in figure, which holds host and building; else limit × machine over its accelerators × PUE",
    )
    electricity = row(
        "electricity",
        "Electricity of an accelerator",
        "USD/h",
        building / KILO * inputs.electricity_price,
        "kW in the building × electricity price",
    )
    capital = row(
        "capital",
        "Capital cost of an accelerator",
        "USD/h",
        hardware.prices["purchase"] * where(hardware.whole_machine > 0, 1, CAPITAL_SHARE) / (LIFE * YEAR),
        "purchase price × machine over its accelerators, 1 where they are whole machines, ÷ life",
    )
    ours = row(
        "own",
        "Cost of owning, worked out",
        "USD/h",
        where(capital > 0, capital + electricity, 0),
        "capital cost + electricity; 0 without a purchase price",
    )
    names = tuple(
        Input(
            f"cost.basis.{name}",
            f"Basis {number}",
            "1",
            name,
            "price basis",
            "definition",
            "defined",
            shared=True,
            fixed=True,
            name="bases",
        )
        for number, name in enumerate(BASES, 1)
    )
    owned = hardware.prices["owned"]
    prices = [
        row("by.cloud", "Price of an accelerator, cloud", "USD/h", hardware.prices["cloud"], "on demand"),
        row(
            "by.rental",
            "Price of an accelerator, rental",
            "USD/h",
            hardware.prices["rental"],
            "three-year contract",
        ),
        row(
            "by.owned",
            "Price of an accelerator, owned",
            "USD/h",
            where(owned > 0, owned, ours),
            "published cost of owning, else as worked out",
        ),
    ]
    price = row(
        "price",
        "Price of an accelerator",
        "USD/h",
        index(span(prices), match(inputs.price_basis, span(names))),
        "on the basis asked for",
    )
    hourly = row(
        "hourly",
        "Price of the deployment",
        "USD/h",
        price * ranks.deployment / RANKS_TO_ACCELERATORS,
        "accelerators × price",
    )
    section = Section(
        "One accelerator",
        (
            idle,
            draw,
            overhead,
            building,
            everything,
            provisioned,
            electricity,
            capital,
            ours,
            *names,
            *prices,
            price,
            hourly,
        ),
        "power and price of an hour",
    )
    return Power(draw, building, everything, provisioned, electricity, price, hourly, section)
