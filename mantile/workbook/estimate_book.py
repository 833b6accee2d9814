"""The book of an estimate.

Its sheets have a column for each scenario, and a file of it holds what it was made from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import isnan
from typing import Any

from xlsxwriter.utility import xl_rowcol_to_cell

from mantile.equations.decide import TAKE
from mantile.equations.display import LETTERS, SIDE_BY_SIDE, Currency, as_known, in_unit
from mantile.equations.engine import NAMES
from mantile.equations.ready_columns import NAME, READY
from mantile.equations.typed import NONE, Typed
from mantile.estimates.estimate import Estimate
from mantile.graph.quantity import Input, Named, Node, Span, Value, span
from mantile.library.device import DEVICE_FIELDS
from mantile.library.scenario import Measured
from mantile.library.scenario_fields import SCENARIO_FIELDS, own_name
from mantile.workbook import style
from mantile.workbook.book import Book, Cell, Document, Sheet
from mantile.workbook.bundle import BUNDLE_SHEET, Bundle

TAKEN = -1
"""As the scenario that an input of the base follows: the plan that a decision takes."""


class EstimateBook(Book):
    """All sheets of an estimate, with the places of its figures.

    `asked` is the estimate as it was asked for, `estimate` the same with a column for each that stands ready.

    Args:
        bundle: what the estimate came from, where it was read from a file: by whom and when it was made.
    """

    def __init__(self, estimate: Estimate, bundle: Bundle | None = None) -> None:
        self.asked, estimate = estimate, _with_ready_columns(estimate)
        self.estimate = estimate
        self.bundle = bundle or Bundle.of(self.asked)
        template = estimate.template
        document = Document(
            title=estimate.title,
            comment=self.imprint,
            footer=f"bundle {self.digest}",
            company=template.company,
            opens_on="Summary",
            made_on=self.bundle.made_on or self.date,
            palette=style.recoloured(template.palette.model_dump(exclude_none=True)),
            hidden={BUNDLE_SHEET: self.bundle.text},
        )
        super().__init__(document, len(estimate.columns))
        self.stamps: list[dict[str, Value]] = [{} for _ in estimate.columns]
        self.followers: dict[
            tuple[str, int], tuple[str, int, int]
        ] = {}  # cells that follow others, by the ids of the stamps that follow with them, and the scenario
        inputs = estimate.equations.typed.inputs
        self.cells = {item.cell: item.input for item in inputs}
        self.used = {item.input: item.used for item in inputs}
        self.guards = {item.input.id: item for item in inputs}
        self.later: list[tuple[Sheet, Input, int, Cell]] = []  # filled once everything stands that is typed
        self.own_lists: dict[str, Span] = {}  # cells that inputs of single sheets are chosen from, by id
        self.currency = _currency(estimate)

    def displayed(self, figure: Named, unit: str) -> Node:
        """A figure in another unit of the same kind; amounts in the currency of the front sheets.

        The one conversion that sheets make: everything else about a figure is made in equations.
        """
        if figure.unit.startswith("USD"):
            return as_known(figure, figure, self.currency.convert(figure))
        return in_unit(figure, unit)

    def library_choices(self, entry: Input) -> Span | None:
        """The block of library ids that an input is chosen from; None for inputs with a list of their own."""
        if entry.id in self.own_lists:
            return self.own_lists[entry.id]
        name = own_name(entry.id.removeprefix("sweep.").removeprefix("alternative.").removeprefix("inputs."))
        devices = self.estimate.equations.devices
        if devices is not None and name in DEVICE_FIELDS and DEVICE_FIELDS[name].listed == "links":
            return span(devices.table.kinds)
        if name in NAMES:
            names = self.estimate.equations.rows.node(f"engine.{NAMES[name]}")
            assert isinstance(names, Span)
            return names
        workers = self.estimate.equations.prefill_workers
        hardware, types = workers.hardware, workers.formats.types
        if name in ("accelerator", "system"):
            return span({"accelerator": hardware.accelerators, "system": hardware.systems}[name])
        field = SCENARIO_FIELDS.get(name)
        listed = () if field is None or field.role != "weights" else types.listed(entry)
        return span(listed) if listed else None

    def store_places(self, entries: Iterable[tuple[Input, Input]]) -> None:
        """Store words for the places of inputs.

        Args:
            entries: inputs, each with what takes the words for its cell.
        """
        for entry, cell in entries:
            for column, stamps in enumerate(self.stamps):
                sheet, row, at = self._cell(entry, column)
                stamps[cell.id] = f"{entry.label}, {sheet}!{xl_rowcol_to_cell(row, at)}"

    def store_inputs(self, items: Iterable[Typed]) -> None:
        """Store what the cells of inputs hold as generated, with words for their places.

        What a cell follows is followed, and not stored: it is no edit.
        """
        for item in items:
            self.store_places([(item.input, item.place)])
            for column, (stamps, values) in enumerate(zip(self.stamps, self.estimate_values, strict=True)):
                sheet, row, at = self._cell(item.input, column)
                if self.sheets[sheet].cells[row, at].follows is not None:
                    self.followers[item.held.id, column] = (sheet, row, at)
                    continue
                of_book = item.input.id in self.own_inputs
                value: Value | None = item.input.value if of_book else values[item.input]
                if value is not None and not isinstance(value, str):
                    value = NONE if isnan(value) else float(value)
                stamps[item.held.id] = NONE if value is None else value
        for place, figure, column, cell in self.later:
            if (figure.id, column) in self.followers:
                name, *at_cell = self.followers[figure.id, column]
                formula = self.formula_text(place, self.sheets[name].cells[at_cell[0], at_cell[1]])
                cell.expression, cell.reference = figure, formula.removeprefix("=")
            elif isinstance(stored := self.stamps[column][figure.id], str):
                cell.text = stored
            else:
                cell.number = float(stored)

    def store_place(self, entry: Input, cell: Input, case: int) -> None:
        """Store words for the place of an input of a further case."""
        sheet, row, at = self.input_cells[entry.id, case]
        for stamps in self.stamps:
            stamps[cell.id] = f"{entry.label}, {sheet}!{xl_rowcol_to_cell(row, at)}"

    def _cell(self, entry: Input, column: int) -> tuple[str, int, int]:
        """Sheet, row and column of what is typed, or of a fact that is locked as the structure follows it."""
        column = 0 if entry.id in self.own_inputs else column
        if entry.fixed:
            address = self.addresses[entry]
            assert address.column is not None
            return address.sheet, address.row, address.column
        return self.input_cells[entry.id, column]

    @property
    def ready(self) -> range:
        """Columns that stand ready for a further scenario."""
        return range(len(self.asked.columns), self.columns)

    def inputs(self, column: int) -> dict[str, Any]:
        """Inputs as generated of a scenario or further case."""
        if column >= self.columns:
            return super().inputs(column)
        return self.estimate.inputs(column) | ({NAME.id: ""} if column in self.ready else {})

    def given(self, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """All that values follow from; results as generated stand as they were stored."""
        own = {
            identifier: value
            for identifier, value in inputs[0].items()
            if identifier in self.own_inputs and identifier != NAME.id
        }  # cells of the workbook, which all scenarios see
        inputs = [inputs[0], *(own | values for values in inputs[1 : self.columns]), *inputs[self.columns :]]
        stamped = [
            values | stamps | self._guarded(inputs, column)
            for column, (values, stamps) in enumerate(zip(inputs, self.stamps, strict=False))
        ]
        for (held, column), (sheet, row, at) in self.followers.items():
            cell = self.sheets[sheet].cells[row, at]
            assert cell.follows is not None and cell.entry is not None
            if cell.follows[1] != column:  # else it follows its default
                value = self.followed(cell.follows, inputs)
                default = NONE if cell.entry.value is None else cell.entry.value
                stamped[column][held] = default if value is None else value
        return super().given([*stamped, *inputs[self.columns :]])

    def typed_cell(self, figure: Input) -> Input:
        """What the cell of an input holds, which is not used where it cannot be; itself without a guard."""
        return next((cell for cell, entry in self.cells.items() if entry is figure), figure)

    def followed(self, follows: tuple[str, int], inputs: Sequence[Mapping[str, Any]]) -> Any:
        """The value of an input of another scenario as it is used, None where that has none.

        Args:
            follows: the input, and the scenario, which may be the plan that a decision takes.
        """
        identifier, of = follows
        if of == TAKEN:
            taken = inputs[0].get(TAKE, self.own_inputs[TAKE].value)
            of = int(taken) if taken in range(1, self.columns) else 1
        value = inputs[of].get(identifier) if of < len(inputs) else None
        guard = self.guards.get(identifier)
        return self._in_place_of(guard, inputs, of) if guard is not None and guard.refuses(value) else value

    def _guarded(self, inputs: Sequence[Mapping[str, Any]], column: int) -> dict[str, Any]:
        """Numbers that an input cannot be stand in its cell; what it held when the file was made is used."""
        guarded: dict[str, Any] = {}
        for item in self.estimate.equations.typed.inputs:
            value = inputs[column].get(item.input.id)
            if item.refuses(value):
                guarded |= {item.cell.id: value, item.input.id: self._in_place_of(item, inputs, column)}
        return guarded

    def _in_place_of(self, item: Typed, inputs: Sequence[Mapping[str, Any]], column: int) -> Value | None:
        """What is used in place of what an input cannot be; None where its default is, or the library's."""
        if item.is_override:
            return None
        if (item.held.id, column) not in self.followers:
            return self.stamps[column][item.held.id]
        sheet, row, at = self.followers[item.held.id, column]
        follows = self.sheets[sheet].cells[row, at].follows
        return None if follows is None or follows[1] == column else self.followed(follows, inputs)

    @cached_property
    def estimate_values(self) -> list[dict[Node, Any]]:
        """Values of the graph's own figures as generated, for each scenario."""
        return [self.estimate.values(column) for column in range(self.columns)]

    @cached_property
    def taken_inputs(self) -> tuple[Input, ...]:
        """Inputs that differ among the plans of a decision: the base has those of the plan that is taken.

        Not those of which the base states something else. None without a decision.
        """
        estimate, decision = self.estimate, self.estimate.scenario.decision
        if decision is None:
            return ()
        base, *plans = (estimate.inputs(column) for column in range(self.columns))
        stated = [
            figure
            for figure in estimate.equations.inputs.named().values()
            if all(figure.id in of for of in plans)
        ]
        return tuple(
            figure
            for figure in stated
            if len({of[figure.id] for of in plans}) > 1
            and base.get(figure.id) == plans[decision.take - 1][figure.id]
        )

    @property
    def side_by_side(self) -> int:
        """Columns that sheets for the eye show; the plans of a decision behind them stand in it alone."""
        return min(self.columns, SIDE_BY_SIDE)

    @property
    def has_free_column(self) -> bool:
        """Whether a further scenario can be typed behind the last one."""
        if self.estimate.scenario.decision is not None or self.ready:
            return False  # the columns are plans that were searched for, or there are better ones
        return self.columns < SIDE_BY_SIDE and not self.estimate.template.formula_text

    @property
    def generator(self) -> str:
        """The program that made it, with its version, as the Summary says it."""
        return self.bundle.generator[:1].upper() + self.bundle.generator[1:]

    @property
    def imprint(self) -> str:
        """Generator, date and bundle digest, as they stand in footers."""
        return f"{self.generator}{f' · {self.date}' if self.date else ''} · bundle {self.digest}"

    @property
    def date(self) -> str | None:
        """The date that the scenario states, else the day on which the workbook was made."""
        return self.estimate.scenario.date or self.bundle.made_on

    @property
    def digest(self) -> str:
        """Eight hexadecimal digits of the bundle's SHA-256."""
        return f"{self.bundle.digest[:4]} {self.bundle.digest[4:8]}"


def _with_ready_columns(estimate: Estimate) -> Estimate:
    """The estimate with its ready columns, which are as the base and state nothing."""
    first = len(estimate.columns)
    ready = range(first, first + estimate.scenario.ready_columns)
    copies = (
        estimate.columns[0].model_copy(
            update={"name": f"{READY} {LETTERS[column]}", "given": (), "measured": Measured()}
        )
        for column in ready
    )
    return replace(estimate, columns=(*estimate.columns, *copies)) if ready else estimate


def _currency(estimate: Estimate) -> Currency:
    """The currency of the template; dollars if it names none."""
    currency = estimate.template.currency
    if currency is None:
        return Currency()
    rate = Input(
        id="template.exchange_rate",
        label=f"{currency.code} per USD",
        unit="1",
        value=currency.per_usd,
        note="of the template",
        source="assumed",
        shared=True,
        fixed=True,
    )
    return Currency(currency.code, currency.symbol, rate)
