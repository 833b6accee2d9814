"""Which accelerator a workbook compares with at first: one may choose any other in its cell."""

from __future__ import annotations

from mantile.estimates.estimate import Estimate
from mantile.library.errors import InputError, unknown
from mantile.library.profiles import Accelerator


def first_alternative(estimate: Estimate) -> str | None:
    """The id of the accelerator asked for, else of the next faster one of the same maker by memory bandwidth.

    Of those with a price on the basis asked for whose domain holds a replica, where there are any. The next
    slower where none is faster, and of another maker where there is no other of this one. None in a library
    of one.

    Raises:
        InputError: if the scenario asks for one that the library does not have.
    """
    library, asked = estimate.library, estimate.scenario.alternative
    chips = {chip.id: chip for chip in library.accelerators}
    if asked is not None:
        if asked.accelerator not in chips:
            raise InputError(f"alternative: {unknown('accelerator', asked.accelerator, chips)}")
        return asked.accelerator
    values = estimate.columns[0].values
    base = chips[str(values["accelerator"])]
    others = [chip for chip in library.accelerators if chip.id != base.id]
    own = [chip for chip in others if chip.vendor == base.vendor]
    priced = [chip for chip in own if _priced(estimate, chip, str(values["price_basis"]))]
    graph = estimate.equations
    size = graph.inputs.tp if graph.devices is not None else graph.figures["checks.replica"]
    replica = float(estimate.values()[size])  # of unlike devices those of the first
    wide = [chip for chip in priced if _domain(estimate, chip) >= replica]
    chosen = wide or priced or own or others
    return _next(base, chosen).id if chosen else None


def _priced(estimate: Estimate, chip: Accelerator, basis: str) -> bool:
    price = estimate.library.price(chip.id)
    fact = None if price is None else getattr(price, {"owned": "purchase"}.get(basis, basis))
    return fact is not None and bool(fact.value)


def _domain(estimate: Estimate, chip: Accelerator) -> float:
    """Accelerators that the links of its usual system join."""
    return float(estimate.library.usual_system(chip.id).accelerators.value or 0)


def _next(base: Accelerator, others: list[Accelerator]) -> Accelerator:
    """The next faster one; the next slower where none is."""

    def bandwidth(chip: Accelerator) -> float:
        return float(chip.memory_bandwidth.value or 0)

    faster = [chip for chip in others if bandwidth(chip) > bandwidth(base)]
    return min(faster, key=bandwidth) if faster else max(others, key=bandwidth)
