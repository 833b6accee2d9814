"""Quantities made one after the other: a row each, ids under one prefix, in the order of the sheet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mantile.graph.quantity import Node, Quantity, Row, Section, sum_of
from mantile.graph.sentence import lowered


@dataclass
class Rows:
    """The rows of one block.

    Args:
        prefix: what ids begin with, such as "decode.qkv".
        suffix: what labels end in, such as ", QKV projection". Sentences within the block leave it out.
        rows: what the block holds so far.

    Example:
        rows = Rows("cost")
        draw = rows("draw", "Draw of an accelerator", "W", hardware.tdp * share)
        section = rows.section("Power", "of one accelerator")
    """

    prefix: str
    suffix: str = ""
    rows: list[Row] = field(default_factory=list)

    def __call__(
        self,
        name: str,
        label: str,
        unit: str,
        body: Node,
        note: str = "",
        *,
        called: str = "",
        source: str = "",
        factor: bool = False,
    ) -> Quantity:
        """Make a quantity and add it as the next row.

        Args:
            name: the id without the prefix.
            label, unit, body, note, source, factor: as for `Quantity`.
            called: how sentences call it; with a suffix, the label without it.
        """
        quantity = Quantity(
            f"{self.prefix}.{name}",
            f"{label}{self.suffix}",
            unit,
            body,
            note=note,
            source=source,
            name=called or (lowered(label) if self.suffix else ""),
            factor=factor,
        )
        self.rows.append(quantity)
        return quantity

    def added(self, name: str, label: str, unit: str, parts: Sequence[Node], most: int = 8) -> Node:
        """The sum of figures that stand apart; of many by sums of some, which are rows of their own.

        Args:
            most: how many a formula may add.
        """
        if len(parts) <= most:
            return sum_of(parts)
        some = [parts[start : start + most] for start in range(0, len(parts), most)]
        return sum_of(
            [
                self(f"{name}.{number}", f"{label}, part {number}", unit, sum_of(members))
                for number, members in enumerate(some, start=1)
            ]
        )

    def add(self, *rows: Row) -> None:
        """Add rows made elsewhere."""
        self.rows += rows

    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities so far, without inputs."""
        return tuple(row for row in self.rows if isinstance(row, Quantity))

    @property
    def last(self) -> Quantity:
        """The row made last."""
        quantity = self.rows[-1]
        assert isinstance(quantity, Quantity)
        return quantity

    def section(self, title: str, note: str = "", total: int = 0) -> Section:
        """The block of all rows so far."""
        return Section(title, tuple(self.rows), note, total)
