"""What output tokens cost at other utilisations and other prices: all that follows from both made again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mantile.equations.constant import HOUR, MEGA
from mantile.equations.tables import Equations
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Quantity,
    Section,
    all_of,
    defined,
    if_known,
    is_number,
    where,
)
from mantile.graph.rewrite import GraphRewrite, order
from mantile.graph.rows import Rows

GRID = "Utilisation and price"
"""The block of the grid."""
UTILISATIONS = (20, 40, 60, 80, 100)
"""Percent of the paid hours."""
STEP = defined("grid.price_step", "Step of the price", "1", 0.2, "by which prices are lower and higher")


@dataclass(frozen=True)
class CostGrid:
    """USD per million output tokens.

    Args:
        cells: by percent of utilisation and by price: lower, same, higher.
        sections: the grid, and for each utilisation what leads to it.
    """

    cells: dict[tuple[int, str], Quantity]
    sections: tuple[Section, ...]


def cost_grid(
    utilisation: Input, equations: Equations, sections: Sequence[Section], payable: Quantity
) -> CostGrid:
    """Every utilisation with every price.

    A utilisation changes the tokens of a paid hour, and where accelerators are owned their electricity.

    Args:
        sections: of power and cost.
        payable: 1 if the plan can be, and it can be known what it costs.
    """
    rows, workings = Rows("grid"), []
    cells: dict[tuple[int, str], Quantity] = {}
    rows.add(STEP)
    originals = [figure for section in sections for figure in section.figures()]
    paid, served = equations["cost.usd_per_hour"], equations["cost.output_tokens"]
    roots = order(paid, served)
    for percent in UTILISATIONS:
        used = defined(
            f"grid.used{percent}", f"Utilisation, {percent} %", "1", percent / 100, "of the paid hours"
        )
        prefix, suffix = f"grid.used{percent}.", f", {percent} % used"
        rewrite = GraphRewrite({utilisation: used}, (), prefix, suffix, roots)
        roots = [step for step in roots if rewrite.depends(step[0])]  # the same for each utilisation
        hourly, tokens = rewrite.rewrite(paid), rewrite.rewrite(served)
        again = (rewrite.rewritten.get(figure) for figure in originals)
        made = tuple(figure for figure in again if isinstance(figure, Quantity))
        workings.append(
            Section(f"Cost at {percent} % utilisation", (used, *made), "what the utilisation changes")
        )
        same = rows(
            f"used{percent}.same",
            f"At {percent} % utilisation, price as it is",
            "USD/Mtoken",
            where(all_of(payable > 0, is_number(hourly)), hourly / (tokens * HOUR) * MEGA, NOT_KNOWN),
            "per million output tokens",
            called=f"that at {percent} %",
        )
        cells[percent, "same"] = same
        for name, (label, factor) in {"lower": ("−", 1 - STEP), "higher": ("+", 1 + STEP)}.items():
            cells[percent, name] = rows(
                f"used{percent}.{name}",
                f"At {percent} % utilisation, price {label}20 %",
                "USD/Mtoken",
                if_known(same * factor, same),
            )
    note = "cost per million output tokens at other utilisations and prices; as a table on What-if"
    return CostGrid(cells, (*workings, rows.section(GRID, note)))
