"""At which price of its accelerators a scenario costs as much per output token as another."""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HOUR, MEGA, RANKS_TO_ACCELERATORS
from mantile.equations.serving import Serving
from mantile.graph.quantity import Node, Quantity, Section, if_known
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class BreakEven:
    """What a break-even price follows from.

    Args:
        price: USD per hour of an accelerator, mean over all there are; not known without a price.
        tokens: output tokens that an accelerator brings in a paid hour.
    """

    price: Quantity
    tokens: Quantity
    section: Section

    def at(self, usd_per_million: Node) -> Node:
        """USD per hour of an accelerator, all at one price, at which a million output tokens cost so much.

        Example:
            break_even.at(in_scenario(cost.usd_per_million_output, 0))
        """
        return usd_per_million * self.tokens / MEGA


def break_even(hourly: Quantity, output: Quantity, served: Serving) -> BreakEven:
    """The rows of the Cost part.

    Args:
        hourly: USD per hour of all accelerators.
        output: output tokens per second, mean over the paid hours.
    """
    rows = Rows("break_even")
    accelerators = served.accelerators / RANKS_TO_ACCELERATORS
    tokens = rows(
        "tokens",
        "Output tokens of an accelerator in an hour",
        "token/h",
        output * HOUR / accelerators,
        "of the paid hours; times USD per token it is the price at which a scenario breaks even",
    )
    price = rows(
        "price",
        "Price of an accelerator, mean",
        "USD/h",
        if_known(hourly / accelerators, hourly),
        "of all accelerators there are; What-if has the price at which each scenario costs what A does",
    )
    return BreakEven(price=price, tokens=tokens, section=rows.section("Break-even", "price per accelerator"))
