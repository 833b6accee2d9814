"""The headline metrics: what an estimate is asked for, declared once.

Results of Python and of `mantile estimate --json`, columns of sweeps, defined names, front sheets and the
terminal follow from this list.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from mantile.equations.constant import LONG, TIMES_FROM, TOKENS_PER_STEP
from mantile.equations.display import Currency, Shown, long_time, number_in
from mantile.equations.fullest import FULLEST
from mantile.equations.workers import DECODE
from mantile.graph.evaluate import evaluate
from mantile.graph.operations import format_text, table_format
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Quantity,
    all_of,
    is_number,
    where,
)
from mantile.graph.quantity import (
    Literal as Number,
)

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
            return str(evaluate(long_time(Number(value))))
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


ACCELERATORS = Metric(
    attribute="accelerators",
    id="serving.accelerators",
    key="accelerators",
    label="Accelerators",
    unit="accelerator",
    definition="accelerators of the whole deployment",
    of_plan=False,
)
TTFT = Metric(
    attribute="ttft",
    id="serving.ttft",
    key="ttft_s",
    label="TTFT",
    unit="s",
    definition="arrival to first token, mean, queueing included",
    shown_unit="ms",
    digits=1,
    headline_digits=0,
    better="lower",
    defined_name="ttft",
)
TPOT = Metric(
    attribute="tpot",
    id="serving.tpot",
    key="tpot_s",
    label="TPOT",
    unit="s",
    definition="mean gap between tokens of one request",
    shown_unit="ms",
    digits=2,
    headline_digits=1,
    better="lower",
    defined_name="tpot",
    of_decode=True,
)
E2E = Metric(
    attribute="e2e",
    id="serving.e2e",
    key="e2e_s",
    label="End to end",
    unit="s",
    definition="TTFT and one TPOT for every further token",
    digits=2,
    better="lower",
    defined_name="e2e",
)
REQUESTS_PER_S = Metric(
    attribute="requests_per_s",
    id="serving.requests_per_s",
    key="requests_per_s",
    label="Requests per second",
    unit="request/s",
    definition="requests that the whole deployment finishes per second",
    digits=2,
    better="higher",
)
OUTPUT_TOKENS_PER_S = Metric(
    attribute="output_tokens_per_s",
    id="serving.output_tokens_per_s",
    key="output_tokens_per_s",
    label="Output tokens per second",
    unit="token/s",
    definition="output tokens per second of the whole deployment",
    better="higher",
    heading="output tokens/s",
    short_heading="tok/s",
    defined_name="output_tokens_per_s",
)
OUTPUT_TOKENS_PER_S_PER_ACCELERATOR = Metric(
    attribute="output_tokens_per_s_per_accelerator",
    id="serving.output_tokens_per_s_per_accelerator",
    key="output_tokens_per_s_per_accelerator",
    label="Output tokens per accelerator",
    unit="token/s/accelerator",
    definition="output tokens per second and accelerator",
    digits=1,
    headline_digits=0,
    better="higher",
    heading="output tokens/s per accelerator",
    short_heading="tok/s/acc",
    unit_text="token/s/acc",
    defined_name="output_tokens_per_s_per_accelerator",
)
INTERACTIVITY = Metric(
    attribute="interactivity",
    id="serving.interactivity",
    key="interactivity_tokens_per_s",
    label="Interactivity",
    unit="token/request/s",
    definition="output tokens per second that one user sees",
    digits=1,
    headline_digits=0,
    better="higher",
    heading="tokens/s per user",
    short_heading="tok/s/user",
    unit_text="token/s/user",
    defined_name="interactivity",
    of_decode=True,
)
PREFILL_TOKENS_PER_S = Metric(
    attribute="prefill_tokens_per_s",
    id="serving.prefill_tokens_per_s",
    key="prefill_tokens_per_s",
    label="Prefill tokens per second",
    unit="token/s",
    definition="tokens of a prompt that are worked out ÷ the time of its prefill, nothing beside it",
    better="higher",
    heading="prefill tokens/s",
)
MEMORY_PER_ACCELERATOR = Metric(
    attribute="memory_per_accelerator",
    id="memory.used",
    key="memory_per_accelerator_bytes",
    label="Memory per accelerator",
    unit="B",
    definition="weights, KV cache, activations and runtime, fullest one",
    shown_unit="GB",
    digits=1,
    better="lower",
    heading="memory used, GB",
    defined_name="memory_per_accelerator",
    of_plan=False,
)
MEMORY_CAPACITY = Metric(
    attribute="memory_capacity",
    id="hardware.memory_capacity",
    key="memory_capacity_bytes",
    label="Memory of an accelerator",
    unit="B",
    definition="memory of an accelerator as its datasheet states it",
    shown_unit="GB",
    digits=1,
    defined_name="memory_capacity",
    of_plan=False,
)
KV_CAPACITY_SEQUENCES = Metric(
    attribute="kv_capacity_sequences",
    id="memory.capacity_sequences",
    key="kv_capacity_sequences",
    label="Room for sequences",
    unit="request",
    definition="sequences for whose KV cache a replica has room",
    better="higher",
    unit_text="sequence",
    defined_name="kv_capacity_sequences",
    of_plan=False,
)
BATCH = Metric(
    attribute="batch",
    id="memory.batch",
    key="batch",
    label="Batch",
    unit="request",
    definition="requests that a replica decodes together",
    digits=1,
    of_plan=False,
)
PREFILL_MFU = Metric(
    attribute="prefill_mfu",
    id="prefill.mfu",
    key="mfu.prefill",
    label="Prefill MFU",
    unit="1",
    definition="share of the peak FLOP/s that prefill uses",
    shown_unit="%",
    digits=1,
    headline_digits=0,
)
DECODE_MFU = Metric(
    attribute="decode_mfu",
    id="decode.mfu",
    key="mfu.decode",
    label="Decode MFU",
    unit="1",
    definition="share of the peak FLOP/s that decode uses",
    shown_unit="%",
    digits=1,
    headline_digits=0,
    of_decode=True,
)
PREFILL_MBU = Metric(
    attribute="prefill_mbu",
    id="prefill.mbu",
    key="mbu.prefill",
    label="Prefill MBU",
    unit="1",
    definition="share of the memory bandwidth that prefill uses",
    shown_unit="%",
    digits=1,
    headline_digits=0,
)
DECODE_MBU = Metric(
    attribute="decode_mbu",
    id="decode.mbu",
    key="mbu.decode",
    label="Decode MBU",
    unit="1",
    definition="share of the memory bandwidth that decode uses",
    shown_unit="%",
    digits=1,
    headline_digits=0,
    of_decode=True,
)
POWER = Metric(
    attribute="power",
    id="cost.power",
    key="power_w",
    label="Power in the building",
    unit="W",
    definition="accelerators with their share of host and building, mean",
    shown_unit="kW",
    digits=1,
    better="lower",
    heading="power, kW",
    defined_name="power",
)
JOULES_PER_OUTPUT_TOKEN = Metric(
    attribute="joules_per_output_token",
    id="cost.joules_per_output_token",
    key="joules_per_output_token",
    label="Energy per output token",
    unit="J/token",
    definition="power ÷ output tokens per second, at the utilisation stated",
    digits=1,
    better="lower",
)
USD_PER_HOUR = Metric(
    attribute="usd_per_hour",
    id="cost.usd_per_hour",
    key="usd_per_hour",
    label="Cost per hour",
    unit="USD/h",
    definition="price of all accelerators per hour",
    digits=2,
    better="lower",
    defined_name="usd_per_hour",
)
USD_PER_MILLION_OUTPUT_TOKENS = Metric(
    attribute="usd_per_million_output_tokens",
    id="cost.usd_per_million_output",
    key="usd_per_million_tokens.output",
    label="USD per million output tokens",
    unit="USD/Mtoken",
    definition="all that an hour costs ÷ output tokens, at the utilisation stated",
    digits=3,
    better="lower",
    heading="USD per M output tokens",
    short_heading="USD/M out",
    unit_text="USD",
    defined_name="usd_per_million_tokens",
)
USD_PER_MILLION_INPUT_TOKENS = Metric(
    attribute="usd_per_million_input_tokens",
    id="cost.usd_per_million_input",
    key="usd_per_million_tokens.input",
    label="USD per million input tokens",
    unit="USD/Mtoken",
    definition="all that an hour costs ÷ input tokens, at the utilisation stated",
    digits=3,
    better="lower",
    heading="USD per M input tokens",
    unit_text="USD",
)
USD_PER_MILLION_BLENDED_TOKENS = Metric(
    attribute="usd_per_million_blended_tokens",
    id="cost.usd_per_million_blended",
    key="usd_per_million_tokens.blended",
    label="USD per million tokens",
    unit="USD/Mtoken",
    definition="all that an hour costs ÷ input and output tokens, at the utilisation stated",
    digits=3,
    better="lower",
    heading="USD per M tokens",
    unit_text="USD",
)
USD_PER_MILLION_INPUT_TOKENS_BY_TIME = Metric(
    attribute="usd_per_million_input_tokens_by_time",
    id="token_cost.usd_per_million_input",
    key="usd_per_million_tokens.input_by_time",
    label="USD per million input tokens, by their time",
    unit="USD/Mtoken",
    definition="what input tokens pay where both kinds pay for the accelerator time they take",
    digits=3,
    better="lower",
    heading="USD per M input tokens, by time",
    unit_text="USD",
    defined_name="usd_per_million_input_tokens_by_time",
)
USD_PER_MILLION_OUTPUT_TOKENS_BY_TIME = Metric(
    attribute="usd_per_million_output_tokens_by_time",
    id="token_cost.usd_per_million_output",
    key="usd_per_million_tokens.output_by_time",
    label="USD per million output tokens, by their time",
    unit="USD/Mtoken",
    definition="what output tokens pay: with the line above all that an hour costs",
    digits=3,
    better="lower",
    heading="USD per M output tokens, by time",
    unit_text="USD",
    defined_name="usd_per_million_output_tokens_by_time",
)
USD_PER_DAY = Metric(
    attribute="usd_per_day",
    id="cost.usd_per_day",
    key="usd_per_day",
    label="Cost per day",
    unit="USD/day",
    definition="cost of the paid hours of a day",
    digits=2,
    better="lower",
)
USD_PER_MONTH = Metric(
    attribute="usd_per_month",
    id="cost.usd_per_month",
    key="usd_per_month",
    label="Cost per month",
    unit="USD/month",
    definition="cost of the paid hours of a month",
    better="lower",
)
OUTPUT_TOKENS_PER_USD = Metric(
    attribute="output_tokens_per_usd",
    id="cost.tokens_per_usd",
    key="output_tokens_per_usd",
    label="Output tokens per USD",
    unit="token/USD",
    definition="output tokens ÷ cost, at the utilisation stated",
    better="higher",
)
OUTPUT_TOKENS_PER_KWH = Metric(
    attribute="output_tokens_per_kwh",
    id="cost.tokens_per_kwh",
    key="output_tokens_per_kwh",
    label="Output tokens per kWh",
    unit="token/kWh",
    definition="output tokens ÷ energy, at the utilisation stated",
    better="higher",
)
TTFT_P50 = Metric(
    attribute="ttft_p50",
    id="serving.ttft_p50",
    key="ttft_p50_s",
    label="TTFT, median",
    unit="s",
    definition="half of the requests wait less for their first token",
    shown_unit="ms",
    digits=1,
    headline_digits=0,
    better="lower",
)
TTFT_P90 = Metric(
    attribute="ttft_p90",
    id="serving.ttft_p90",
    key="ttft_p90_s",
    label="TTFT, p90",
    unit="s",
    definition="90 % of the requests wait less for their first token",
    shown_unit="ms",
    digits=1,
    headline_digits=0,
    better="lower",
)
TTFT_P95 = Metric(
    attribute="ttft_p95",
    id="serving.ttft_p95",
    key="ttft_p95_s",
    label="TTFT, p95",
    unit="s",
    definition="95 % of the requests wait less for their first token",
    shown_unit="ms",
    digits=1,
    headline_digits=0,
    better="lower",
)
TTFT_P99 = Metric(
    attribute="ttft_p99",
    id="serving.ttft_p99",
    key="ttft_p99_s",
    label="TTFT, p99",
    unit="s",
    definition="99 % of the requests wait less for their first token",
    shown_unit="ms",
    digits=1,
    headline_digits=0,
    better="lower",
)
ITL_P50 = Metric(
    attribute="itl_p50",
    id="serving.itl_p50",
    key="itl_p50_s",
    label="ITL, median",
    unit="s",
    definition="half of the gaps between tokens are shorter",
    shown_unit="ms",
    digits=2,
    headline_digits=1,
    better="lower",
    of_decode=True,
)
ITL_P90 = Metric(
    attribute="itl_p90",
    id="serving.itl_p90",
    key="itl_p90_s",
    label="ITL, p90",
    unit="s",
    definition="90 % of the gaps between tokens are shorter",
    shown_unit="ms",
    digits=2,
    headline_digits=1,
    better="lower",
    of_decode=True,
)
ITL_P95 = Metric(
    attribute="itl_p95",
    id="serving.itl_p95",
    key="itl_p95_s",
    label="ITL, p95",
    unit="s",
    definition="95 % of the gaps between tokens are shorter",
    shown_unit="ms",
    digits=2,
    headline_digits=1,
    better="lower",
    of_decode=True,
)
ITL_P99 = Metric(
    attribute="itl_p99",
    id="serving.itl_p99",
    key="itl_p99_s",
    label="ITL, p99",
    unit="s",
    definition="99 % of the gaps between tokens are shorter",
    shown_unit="ms",
    digits=2,
    headline_digits=1,
    better="lower",
    of_decode=True,
)
E2E_P50 = Metric(
    attribute="e2e_p50",
    id="serving.e2e_p50",
    key="e2e_p50_s",
    label="End to end, median",
    unit="s",
    definition="half of the requests take less from arrival to last token",
    digits=2,
    better="lower",
)
E2E_P90 = Metric(
    attribute="e2e_p90",
    id="serving.e2e_p90",
    key="e2e_p90_s",
    label="End to end, p90",
    unit="s",
    definition="90 % of the requests take less from arrival to last token",
    digits=2,
    better="lower",
)
E2E_P95 = Metric(
    attribute="e2e_p95",
    id="serving.e2e_p95",
    key="e2e_p95_s",
    label="End to end, p95",
    unit="s",
    definition="95 % of the requests take less from arrival to last token",
    digits=2,
    better="lower",
)
E2E_P99 = Metric(
    attribute="e2e_p99",
    id="serving.e2e_p99",
    key="e2e_p99_s",
    label="End to end, p99",
    unit="s",
    definition="99 % of the requests take less from arrival to last token",
    digits=2,
    better="lower",
)
GOODPUT_SHARE = Metric(
    attribute="goodput_share",
    id="goodput.share",
    key="goodput_share",
    label="Requests within limits",
    unit="1",
    definition="share of the requests within the limits of TTFT, TPOT and end to end",
    shown_unit="%",
    digits=1,
    better="higher",
)
GOODPUT = Metric(
    attribute="goodput",
    id="goodput.requests_per_s",
    key="goodput_requests_per_s",
    label="Goodput",
    unit="request/s",
    definition="requests per second within the limits of TTFT, TPOT and end to end",
    digits=2,
    better="higher",
)
LOAD = Metric(
    attribute="load",
    id="load.utilisation",
    key="load",
    label="Load",
    unit="1",
    definition="request rate ÷ the rate that the deployment keeps up with, where requests arrive at a rate",
    shown_unit="%",
    digits=1,
    headline_digits=0,
    of_plan=False,
)
PREFIX_HITS = Metric(
    attribute="prefix_hits",
    id="prefix.hit_rate",
    key="prefix_hits",
    label="Prefix hits",
    unit="1",
    definition="share of the prompt tokens that are found in a cache, where prompts may find any",
    shown_unit="%",
    digits=1,
    headline_digits=0,
    of_plan=False,
)
STEP_TOKENS = Metric(
    attribute="step_tokens",
    id="speculation.emitted",
    key="tokens_per_step",
    label="Tokens of a request in a step",
    unit="token/request",
    definition="accepted draft tokens and the model's own, where tokens are drafted",
    digits=2,
    of_plan=False,
)
DRAFT_GAIN = Metric(
    attribute="draft_gain",
    id="gain.speedup",
    key="draft_gain",
    label="Gain of drafts",
    unit="1",
    definition="tokens per second of a decode step with drafts ÷ without, where tokens are drafted",
    digits=2,
    better="higher",
    of_plan=False,
)
BREAK_EVEN_BATCH = Metric(
    attribute="break_even_batch",
    id="gain.break_even",
    key="break_even_batch",
    label="Drafts bring something up to",
    unit="request",
    definition="requests of a replica that decode at a time beyond which drafts make it slower",
    digits=0,
    of_plan=False,
)
WORKERS_RATIO = Metric(
    attribute="workers_ratio",
    id="serving.workers_ratio",
    key="workers_ratio",
    label="Prefill workers per decode worker",
    unit="1",
    definition="prefill workers that keep one decode worker busy, where both are apart",
    digits=2,
)


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


METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
"""All metrics, in the order in which results tell them."""


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
