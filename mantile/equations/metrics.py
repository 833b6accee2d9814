"""The headline metrics: what an estimate is asked for, declared once, in metrics.table.

Results of Python and of `mantile estimate --json`, columns of sweeps, defined names, front sheets and the
terminal follow from this list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mantile.equations.constant import LONG, TIMES_FROM, TOKENS_PER_STEP
from mantile.equations.display import Currency, Shown, number_in, time_in_words
from mantile.equations.fullest import FULLEST
from mantile.equations.text import read
from mantile.equations.workers import DECODE
from mantile.graph.operations import format_text, table_format
from mantile.graph.quantity import NOT_KNOWN, Input, Named, Quantity, all_of, is_number, where

Better = Literal["lower", "higher"]

_COUNTED = ("token", "request", "accelerator", "sequence")  # units that have a plural
OF_COST = ("cost.", "token_cost.")
"""What ids of figures about power and money begin with."""
PER_DAY = ("electricity_per_day", "tokens_per_day")
"""What a day takes and brings that is no metric: the ends of ids."""
_FEWEST = 3  # significant digits of a small number in a text
_MOST_PLACES = 12


@dataclass(frozen=True)
class Metric:
    """A headline result.

    Args:
        attribute: of an estimate in Python: `estimate.tpot`.
        id: of the quantity. Where decode workers have figures of their own, theirs counts.
        key: in JSON; a dot leads into a nested object.
        label: what it is called.
        unit: of the quantity.
        shown_unit: in which people quote it; that of the quantity if empty. A share may be shown in %.
        digits: after the point in a table, in the unit shown.
        headline_digits: the same in a headline, where fewer are read; those of a table if None.
        better: the direction that is, where one plan can be better than another.
        definition: what it is, in half a sentence.
        heading: over a column or chart, with its unit; label and unit if empty.
        short_heading: over a column of a terminal; the heading if empty.
        unit_text: the unit as readers write it, where that is not the unit shown.
        defined_name: in workbooks; none if empty.
        of_plan: whether a plan that cannot be has none.
        of_decode: whether there is none without a second token.
    """

    attribute: str
    id: str
    key: str
    label: str
    unit: str
    definition: str
    shown_unit: str = ""
    digits: int = 0
    headline_digits: int | None = None
    better: Better | None = None
    heading: str = ""
    short_heading: str = ""
    unit_text: str = ""
    defined_name: str = ""
    of_plan: bool = True
    of_decode: bool = False

    @property
    def display_unit(self) -> str:
        """The unit in which people quote it."""
        return self.shown_unit or self.unit

    @property
    def written_unit(self) -> str:
        """The same as readers write it."""
        return self.unit_text or self.display_unit

    @property
    def head(self) -> str:
        """Over a column or chart."""
        return self.heading or f"{self.label}, {self.written_unit}"

    @property
    def column(self) -> str:
        """In tables of sweeps: the key in JSON, nested ones joined by _."""
        return self.key.replace(".", "_")

    @property
    def large_digits(self) -> int:
        """Digits after the point in a headline."""
        return self.digits if self.headline_digits is None else self.headline_digits

    @property
    def shown_id(self) -> str:
        """Of the quantity that readers see: a text where nobody knows the number."""
        return f"metrics.{self.attribute}" if self.of_plan else self.id

    def of(self, figures: Mapping[str, Named]) -> Quantity:
        """The quantity that readers see, among the figures of a graph by id.

        Raises:
            KeyError: where the graph has none, such as a load without a request rate.
        """
        return self._of_workers(figures, self.shown_id)

    def worked_out(self, figures: Mapping[str, Named]) -> Quantity:
        """The number behind it, also where the plan cannot be.

        Raises:
            KeyError: as for `of`.
        """
        return self._of_workers(figures, self.id)

    @staticmethod
    def _of_workers(figures: Mapping[str, Named], identifier: str) -> Quantity:
        apart = (f"{FULLEST}{identifier}", f"{DECODE}{identifier}")
        quantity = figures[next((name for name in apart if name in figures), identifier)]
        assert isinstance(quantity, Quantity)
        return quantity

    @staticmethod
    def known(value: float | str) -> float | None:
        """The value of the quantity that readers see; None where nobody knows it."""
        return None if isinstance(value, str) or not math.isfinite(value) else float(value)

    def shown(self, value: float) -> float:
        """A value of the quantity in the unit in which people quote it."""
        if self.display_unit == "%":
            return value * 100
        return number_in(value, self.unit, self.display_unit)

    def text(self, value: float | None) -> str:
        """A value of the quantity with its unit; for None that it is not known.

        Times from 10 s on and money from a million on are told in larger units.

        Example:
            TPOT.text(0.01234)    # 12.34 ms
            TTFT.text(109_496)    # 30.4 h
        """
        if value is None:
            return NOT_KNOWN
        least = LONG.value if self.display_unit == "ms" else TIMES_FROM[1].value
        if self.unit == "s" and float(least or 0) <= value < math.inf:
            return time_in_words(value)
        if self.unit.startswith("USD") and _MILLION <= abs(value) < math.inf:
            return f"{format_text(value / _MILLION, table_format(2))} M {self.written_unit}"
        number = self.shown(value)
        places = self.digits
        if number % 1 and abs(number) < 10.0 ** (1 - places):
            places = min(_MOST_PLACES, _FEWEST - 1 - math.floor(math.log10(abs(number))))
        written = format_text(number, table_format(places))
        if self.written_unit == "%":
            return f"{written} %"
        unit = self.written_unit if written == "1" else _plural(self.written_unit)
        return written if self.unit == "1" else f"{written} {unit}"

    def on(
        self, figures: Mapping[str, Named], key: str, currency: Currency, label: str | None = None
    ) -> Shown:
        """The metric as readers of a sheet see it.

        Args:
            key: a short name in ids of the sheet.
            label: the heading, if it is not given.
        """
        quantity = self.of(figures)
        unit = currency.code if quantity.unit.startswith("USD") else self.display_unit
        label = currency.named(self.head if label is None else label)
        return Shown(key, label, unit, quantity, currency, self.digits)


_MILLION = 1e6


def _plural(unit: str) -> str:
    first, slash, rest = unit.partition("/")
    return f"{first}s{slash}{rest}" if first in _COUNTED else unit


def _table() -> Iterator[Metric]:
    """The lines of metrics.table."""
    path = Path(__file__).with_name("metrics.table")
    (block,) = read(path.read_text("utf-8"), path.name).blocks
    for line in block.lines:
        parts, (definition, *options) = line.parts, line.parts["note"].split(" | ")
        said = {name: value for name, _, value in (option.partition(" ") for option in options)}
        attribute = line.id.removeprefix("metrics.")
        digits, _, in_headline = said.get("digits", "0").partition(", ")
        yield Metric(
            attribute=attribute,
            id=parts["body"],
            key=said.get("key", attribute),
            label=parts["label"],
            unit=parts["unit"],
            definition=definition,
            shown_unit=said.get("shown", ""),
            digits=int(digits),
            headline_digits=int(in_headline) if in_headline else None,
            better="lower" if "lower" in said else "higher" if "higher" in said else None,
            heading=said.get("heading", ""),
            short_heading=said.get("short", ""),
            unit_text=said.get("written", ""),
            defined_name=(said["defined"] or attribute) if "defined" in said else "",
            of_plan="always" not in said,
            of_decode="decode" in said,
        )


METRICS = tuple(_table())
"""All metrics, in the order in which results tell them."""
_BY_NAME = {metric.attribute: metric for metric in METRICS}


def _named(names: str) -> Iterator[Metric]:
    return map(_BY_NAME.__getitem__, names.split())


TTFT, TTFT_P50, TTFT_P90, TTFT_P95, TTFT_P99 = _named("ttft ttft_p50 ttft_p90 ttft_p95 ttft_p99")
TPOT, ITL_P50, ITL_P90, ITL_P95, ITL_P99 = _named("tpot itl_p50 itl_p90 itl_p95 itl_p99")
E2E, E2E_P90, E2E_P95, E2E_P99 = _named("e2e e2e_p90 e2e_p95 e2e_p99")
ACCELERATORS, REQUESTS_PER_S, INTERACTIVITY = _named("accelerators requests_per_s interactivity")
OUTPUT_TOKENS_PER_S, PREFILL_TOKENS_PER_S = _named("output_tokens_per_s prefill_tokens_per_s")
(OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,) = _named("output_tokens_per_s_per_accelerator")
MEMORY_PER_ACCELERATOR, MEMORY_CAPACITY = _named("memory_per_accelerator memory_capacity")
PREFILL_MFU, DECODE_MFU, DECODE_MBU, LOAD = _named("prefill_mfu decode_mfu decode_mbu load")
POWER, JOULES_PER_OUTPUT_TOKEN = _named("power joules_per_output_token")
USD_PER_HOUR, USD_PER_DAY, USD_PER_MONTH = _named("usd_per_hour usd_per_day usd_per_month")
(USD_PER_MILLION_OUTPUT_TOKENS,) = _named("usd_per_million_output_tokens")
(USD_PER_MILLION_INPUT_TOKENS_BY_TIME,) = _named("usd_per_million_input_tokens_by_time")
(USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME,) = _named("usd_per_million_output_tokens_by_time")
OUTPUT_TOKENS_PER_USD, OUTPUT_TOKENS_PER_KWH = _named("output_tokens_per_usd output_tokens_per_kwh")
GOODPUT, GOODPUT_SHARE, KV_CAPACITY_SEQUENCES = _named("goodput goodput_share kv_capacity_sequences")
PREFIX_HITS, STEP_TOKENS, DRAFT_GAIN = _named("prefix_hits step_tokens draft_gain")
(BREAK_EVEN_BATCH,) = _named("break_even_batch")


def headlines(
    figures: Mapping[str, Named], possible: Quantity, payable: Quantity, output_tokens: Input
) -> Iterator[tuple[Metric, Quantity]]:
    """The metrics of a plan as readers see them: a number, or in words that nobody knows it.

    Args:
        figures: by id, among them those that metrics are worked out as.
        possible: 1 if the plan can be; `payable` if moreover it can be known what it draws and costs.
    """
    second = output_tokens / TOKENS_PER_STEP > 1
    for metric in metrics_of(figures):
        if metric.of_plan:
            number = metric.worked_out(figures)
            can_be = payable if metric.id.startswith(OF_COST) else possible
            needs = [can_be > 0, *([second] if metric.of_decode else []), is_number(number)]
            yield (
                metric,
                Quantity(
                    metric.shown_id,
                    number.label if number.id.startswith(("serving.", *OF_COST)) else metric.label,
                    metric.unit,
                    where(all_of(*needs), number, NOT_KNOWN),
                    "there is none without a second token" if metric.of_decode else "",
                    name=number.name,
                ),
            )


def per_day(figures: Mapping[str, Named], payable: Quantity) -> tuple[Quantity, ...]:
    """What a day of the plan takes and brings, as readers see it beside the metrics; a text as there.

    Args:
        figures: by id, among them those of cost.
        payable: 1 if the plan can be, and it can be known what it draws and costs.
    """
    return tuple(
        Quantity(
            f"metrics.{name}",
            number.label,
            number.unit,
            where(all_of(payable > 0, is_number(number)), number, NOT_KNOWN),
        )
        for name in PER_DAY
        for number in (figures[f"cost.{name}"],)
    )


def worked_out_id(identifier: str) -> str:
    """The id of a figure; for a metric as readers see it, or a copy of it, that of the figure behind it."""
    copy, dot, name = identifier.rpartition("metrics.")
    behind = next((metric.id for metric in METRICS if dot and metric.attribute == name), None)
    return identifier if behind is None else f"{copy}{behind}"


def metrics_of(figures: Mapping[str, Named]) -> Iterator[Metric]:
    """The metrics that a graph has.

    A load where requests may arrive at a rate, a ratio where workers are apart.

    Args:
        figures: of the graph by id.
    """
    return (metric for metric in METRICS if metric.id in figures)
