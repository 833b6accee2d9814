"""The memory of the fullest accelerator, as readers ask for it; its rows stand in fullest.eq."""

from __future__ import annotations

from mantile.equations.tables import Equations, Space
from mantile.graph.quantity import Quantity

FULLEST, _APART = "fullest.", ("fullest.", "decode.", "")
_RANGED = {"weights": "weights", "kv_tokens": "tokens", "peak_memory": "peak"}


class Fullest:
    """Rows of the fullest accelerator, by the ids that they have where all accelerators are alike.

    What prefill and decode workers have apart is that of decode where it is of no accelerator in particular.

    Example:
        graph.fullest["memory.used"]
    """

    def __init__(self, rows: Equations) -> None:
        self.rows = rows

    def __getitem__(self, identifier: str) -> Quantity:
        return self.rows[next(f"{name}{identifier}" for name in _APART if f"{name}{identifier}" in self.rows)]

    @property
    def ranges(self) -> dict[str, tuple[Quantity, Quantity]]:
        """p10 and p90 of weights, KV tokens and memory in use after the start."""
        return {name: (self._end(name, "p10"), self._end(name, "p90")) for name in _RANGED}

    def _end(self, name: str, percentile: str) -> Quantity:
        of_devices = f"{FULLEST}startup.range.{name}.{percentile}"
        return (
            self.rows[of_devices]
            if of_devices in self.rows
            else self[f"startup.{_RANGED[name]}.{percentile}"]
        )


def make_devices(rows: Equations, count: int) -> None:
    """Make the rows of so many devices that are not alike."""
    numbers = range(1, count + 1)
    machine = {n: f"devices.{n}." if n > 1 else "" for n in numbers}
    of = {n: f"inputs.device{n}_" if n > 1 else "inputs." for n in numbers}
    for_each = []
    for n in numbers:
        ends = frozenset(name for name, end in (("first", 1), ("last", count)) if n == end)
        around = {"before": machine.get(n - 1, ""), "after": machine.get(n + 1, "")}
        for_each.append(Space(facts={"n": str(n), "machine": machine[n]} | around, features=ends))
    rows.make_in("numbered device", *for_each)
    pairs = ({"n": str(n), "m": str(m), "of": of[n], "other": of[m]} for n in numbers for m in numbers)
    rows.make_in("pair of devices", *(Space(facts=facts) for facts in pairs))
