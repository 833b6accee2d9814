"""What an estimate answers: does it work, what does it do, how sure, and the ways out of what does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mantile.answers.text import number, percent, scaled
from mantile.answers.unstated import Unstated, unstated
from mantile.equations.checks import WITH_OFFLOAD
from mantile.equations.metrics import (
    INTERACTIVITY,
    MEMORY_CAPACITY,
    MEMORY_PER_ACCELERATOR,
    OUTPUT_TOKENS_PER_S,
    OUTPUT_TOKENS_PER_S_PER_ACCELERATOR,
    TPOT,
    TTFT,
    TTFT_P95,
    USD_PER_HOUR,
    USD_PER_MILLION_OUTPUT_TOKENS,
    Metric,
)
from mantile.estimates.estimate import Estimate
from mantile.estimates.html import html_table
from mantile.estimates.results import is_possible, missing_memory, of_requests, told_errors
from mantile.estimates.start import Start, start
from mantile.graph.evaluate import Program
from mantile.library.fields import DECODE
from mantile.library.profile_facts import OWN_PRICE

if TYPE_CHECKING:
    from mantile.answers.ways import Way, WaysOut

LIMITS = {
    "compute": "compute",
    "memory": "memory bandwidth",
    "network": "network",
    "overhead": "host",
}
"""What a pass waits for, as people call it."""
BASES = {"cloud": "on demand", "rental": "on a contract", "owned": "owned"}
"""Price bases as people call them."""
_SAID_ONCE = ("tok/s", "USD")  # units that stand beside the value, not in the range again
_PRICE = "hardware.price_"  # what ids of prices that may be overridden begin with
_DEGREES = {"tp": "TP", "pp": "PP", "dp": "DP", "ep": "EP", "attention_dp": "DPA", "cp": "CP"}


@dataclass(frozen=True)
class Line:
    """A headline figure.

    Args:
        metric: that it is.
        label: what it is called in an answer.
        value: in SI units; None where nobody knows it.
        low, high: the 80 % range; None where there is none.
        text, range: value and range as people say them; empty where there is no range.
        beside: another figure that belongs to it, with its words.
    """

    metric: Metric
    label: str
    value: float | None
    low: float | None
    high: float | None
    text: str
    range: str
    beside: str


class Answer:
    """The answer to "what does this deployment reach?", of the base scenario of an estimate.

    Terminal, page, HTTP and Python render this object: the same verdict, figures and ways out everywhere.

    Args:
        made: the estimate.

    Example:
        answer = Answer(mantile.estimate(model="llama-3.3-70b", accelerator="h100-sxm", tp=4, ...))
        answer.verdict    # "Llama-3.3-70B on 4 × H100 SXM fits: first token after 232 ms, ..."
    """

    def __init__(self, made: Estimate) -> None:
        self.made = made
        self.results = made.results()
        self._values = made.columns[0].values

    @property
    def possible(self) -> bool:
        """Whether the plan can be."""
        return is_possible(str(self.results["feasibility"]))

    @cached_property
    def machines(self) -> str:
        """The accelerators: 4 × H100 SXM, or one H100 SXM."""
        words = self.made.equations.machines
        machines = str(Program([words]).run(self.made.inputs(0))[words])
        return machines if " + " in machines else re.sub("^1 × ", "one ", machines)

    # ---- the verdict ----

    @cached_property
    def verdict(self) -> str:
        """Does it work, and what does it do: one or two sentences."""
        if self.possible:
            return self._works()
        missing, model = missing_memory(self.results), self.made.model.name
        if missing is None:
            errors = told_errors(self.results)
            why = errors[0]["message"] if errors else "no check says why"
            return f"{model} cannot run on {self.machines} with this plan: {why}."
        each = " on each" if float(self.results["accelerators"]) > 1 and "devices" not in self.results else ""
        said = f"{model} does not fit on {self.machines}: {scaled(missing, 'B')} are missing{each}."
        best = next(iter(self.ways), None)
        if best is None or best.speed is None:
            return said
        return f"{said} With {best.words} it would write {number(best.speed)} tokens/s."

    def _works(self) -> str:
        results = self.results
        name, errors = f"{self.made.model.name} on {self.machines}", told_errors(results)
        fits = "fits" if results["fits"] else "runs"
        if results["feasibility"] == WITH_OFFLOAD:
            fits = "runs with a part in main memory"
        said = [f"first token after {scaled(results[TTFT.key], 's')}"]
        pace = results[INTERACTIVITY.key]
        if pace is not None:
            said.append(f"then {number(pace)} tokens/s for {self.users}")
        money = results["usd_per_million_tokens"]["output"]
        if money is not None:
            said.append(f"{_usd(money)} per million output tokens")
        if errors:  # what it would reach without them, nobody has
            return f"{name} {fits}, but {errors[0]['message']}."
        return f"{name} {fits}{self._refusal}: {', '.join(said)}."

    @property
    def _refusal(self) -> str:
        """That the engine refuses to start, in half a sentence; empty where it does not."""
        if self.starts is None or self.starts.verdict == "starts":
            return ""
        engine = self.made.library.framework(str(self._values["framework"])).name
        may = "refuses" if self.starts.verdict == "refuses" else "may refuse"
        without = f" without {_flags(self.starts.helps[0].fields)}" if self.starts.helps else ""
        return f", but {engine} {may} to start{without}"

    @property
    def users(self) -> str:
        """For whom: each of 16 users."""
        scenario = self.made.scenario
        if scenario.request_rate or scenario.sessions:
            return f"each user at {number(float(self.results['requests_per_s']))} requests/s"
        load = int(self.results["concurrency"])
        return f"each of {load:,} users" if load > 1 else "one user"

    # ---- figures ----

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The headline figures with their ranges; empty where the plan cannot be."""
        if not self.possible:
            return ()
        results, bands = self.results, self.results["range_80"]
        lines = [
            self._line(TTFT, "Time to first token", bands["ttft"], "s", self._tail()),
        ]
        if results[TPOT.key] is not None:
            pace = f"{number(results[INTERACTIVITY.key])} tokens/s per user"
            lines.append(self._line(TPOT, "Time per output token", bands["tpot"], "s", pace))
        each = f"{number(results[OUTPUT_TOKENS_PER_S_PER_ACCELERATOR.key])} per accelerator"
        lines.append(self._line(OUTPUT_TOKENS_PER_S, "Throughput", bands["throughput"], "tok/s", each))
        money = results["usd_per_million_tokens"]["output"]
        beside = "per M output tokens"
        if money is None:
            beside = "no price known"
        band = bands["usd_per_million_output_tokens"]
        lines.append(self._line(USD_PER_MILLION_OUTPUT_TOKENS, "Cost", band, "USD", beside))
        return (*lines, self._memory_line())

    def _tail(self) -> str:
        tail = self.results.get(TTFT_P95.key)
        return "" if tail is None else f"95th percentile {scaled(tail, 's')}"

    def _line(self, metric: Metric, label: str, band: Mapping[str, Any], unit: str, beside: str) -> Line:
        value: Any = self.results
        for key in metric.key.split("."):
            value = value[key]
        low, high = band["p10"], band["p90"]
        shown = _range(low, high, unit)
        return Line(metric, label, value, low, high, _written(value, unit), shown, beside)

    def _memory_line(self) -> Line:
        used = self.results[MEMORY_PER_ACCELERATOR.key]
        room = self.results["kv_capacity_sequences"]
        if self.results["feasibility"] == WITH_OFFLOAD:
            beside = f"{scaled(self.results['ram_peak_bytes'], 'B')} of main memory"
        else:
            beside = f"room for {of_requests(room)}" if room else ""
        usable = f"of {scaled(self.usable, 'B')} usable"
        label = "Memory per accelerator"
        return Line(MEMORY_PER_ACCELERATOR, label, used, None, None, scaled(used, "B"), usable, beside)

    @property
    def usable(self) -> float:
        """Bytes of the fullest accelerator that a plan may fill."""
        return float(self.made.values()[self.made.equations.fullest["memory.usable"]])

    @cached_property
    def memory(self) -> tuple[tuple[str, float], ...]:
        """What lies in the fullest accelerator, or would have to, the largest first: words and bytes."""
        names = {
            "weights": "weights",
            "kv_cache": "KV cache",
            "activations": "buffers",
            "runtime": "runtime",
        }
        parts = [(words, float(self.results["memory_parts"][key])) for key, words in names.items()]
        return tuple(sorted((part for part in parts if part[1] > 0), key=lambda part: -part[1]))

    # ---- facts ----

    @cached_property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Bottleneck, confidence, plan and price, each in words."""
        return tuple(self._facts())

    def _facts(self) -> Iterator[tuple[str, str]]:
        results = self.results
        if not self.possible:
            if missing_memory(results) is not None:
                yield "Memory", self._needed()
            yield "Plan", self.plan
            return
        yield "Bottleneck", f"prefill: {self._bottleneck('prefill')}"
        if results[TPOT.key] is not None:
            yield "", f"decode: {self._bottleneck('decode')}"
        if "layers_in_words" in results:
            yield "Layers", str(results["layers_in_words"])
        yield "Confidence", self._confidence()
        yield "Plan", self.plan
        if self.start_told:
            yield "Start", self.start_told
        if results[USD_PER_HOUR.key] is not None:
            yield "Price", self._price()

    def _confidence(self) -> str:
        evidence = str(self.results["evidence"])
        return f"low: {evidence}" if evidence.startswith("no ") else f"80 % ranges by {evidence}"

    def _needed(self) -> str:
        used = self.results[MEMORY_PER_ACCELERATOR.key]
        capacity = self.results[MEMORY_CAPACITY.key]
        parts = " · ".join(f"{words} {scaled(size, 'B')}" for words, size in self.memory)
        room = f"usable {scaled(self.usable, 'B')} of {scaled(capacity, 'B')}"
        return f"needed {scaled(used, 'B')}, {room}: {parts}"

    def _bottleneck(self, phase: str) -> str:
        """What a phase waits for most, and how much of it is in use."""
        results = self.results
        limit = str(results["bottleneck"][phase])
        use = {"compute": results["mfu"][phase], "memory": results["mbu"][phase]}.get(limit)
        if use is None:
            use = results["split"][phase].get(limit)
            return f"{LIMITS.get(limit, limit)}, {percent(use)} of its time"
        return f"{LIMITS[limit]}, {percent(use)} of peak in use"

    @cached_property
    def plan(self) -> str:
        """Degrees, formats and engine: TP4 · fp8 weights · bf16 KV cache · vLLM."""
        if self.made.scenario.disaggregated:
            return f"prefill {self._plan_of('')}; decode {self._plan_of(DECODE)}"
        return self._plan_of("")

    def _plan_of(self, role: str) -> str:
        """The plan of all workers, or of those that decode."""

        def value(name: str) -> Any:
            own = self._values.get(f"{role}{name}")
            return self._values.get(name) if own is None else own

        degrees = " ".join(
            f"{words}{value(name)}" for name, words in _DEGREES.items() if (value(name) or 1) > 1
        )
        engine = self.made.library.framework(str(value("framework"))).name
        formats = (f"{value('weights_dtype')} weights", f"{value('kv_dtype')} KV cache")
        return " · ".join(filter(None, (degrees, *formats, engine)))

    def _price(self) -> str:
        results = self.results
        basis = str(results["price_basis"])
        hour = f"{number(results[USD_PER_HOUR.key])} USD/h, {BASES.get(basis, basis)}"
        price = self.made.library.price(str(results["accelerator"]))
        fact = None if price is None else price.bases.get(basis)
        typed = any(one.id.startswith(_PRICE) for one in self.made.columns[0].overrides)
        if typed or (fact is not None and fact.provider == OWN_PRICE):
            return f"{hour}, as stated"
        if fact is None or fact.date is None:
            return hour
        age = (date.fromisoformat(str(results["as_of"])) - fact.date).days
        return f"{hour}, price of {fact.date.isoformat()} ({age:,} days old)" if age > 0 else hour

    # ---- what is not stated, and ways out ----

    @cached_property
    def starts(self) -> Start | None:
        """Whether the server starts; None where the plan cannot be, and of engines with other rules."""
        return start(self.made) if self.possible else None

    @property
    def refused(self) -> bool:
        """Whether the engine refuses to start with a longest request that the scenario states."""
        return (
            self.starts is not None
            and self.starts.verdict == "refuses"
            and bool(self.made.scenario.max_model_len)
        )

    @property
    def start_told(self) -> str:
        """Whether it starts, and what helps; empty where nobody knows."""
        found = self.starts
        if found is None:
            return ""
        helps = " or ".join(_flags(one.fields) for one in found.helps)
        return f"{found.message}; {helps} helps" if helps else found.message

    @cached_property
    def unstated(self) -> tuple[Unstated, ...]:
        """What the scenario does not state, and how far it moves the answer."""
        return unstated(self.made) if self.possible else ()

    @cached_property
    def unstated_in_brief(self) -> tuple[Unstated, ...]:
        """Those of them that take no time to work out."""
        return unstated(self.made, quick=True) if self.possible else ()

    @cached_property
    def _out(self) -> WaysOut:
        from mantile.answers.ways import WaysOut  # searches are slow to import

        return WaysOut(self.made)

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Ways out of a plan that cannot be; none of one that can."""
        return () if self.possible else self._out.ways

    @cached_property
    def no_help(self) -> tuple[str, ...]:
        """What was tried and does not help."""
        return () if self.possible else self._out.no_help

    @property
    def buys(self) -> bool:
        """Whether ways are compared by what is to be bought; else by USD per hour."""
        return self._out.buys

    def to_dict(self) -> dict[str, Any]:
        """The keys that `mantile estimate --json` has beside the results."""
        return {
            "sentence": self.verdict,
            "starts": None if self.starts is None else self.starts.to_dict(),
            "unstated": [one.to_dict() for one in self.unstated],
            "remedies": [way.to_dict() for way in self.ways],
            "no_help": list(self.no_help),
        }

    def __repr__(self) -> str:
        return f"<Answer: {self.verdict}>"

    def _repr_html_(self) -> str:
        if self.possible:
            heads: tuple[str, ...] = ("", "estimate", "80 % range", "")
            rows = [(line.label, line.text, line.range, line.beside) for line in self.lines]
            rows += [(label, text, "", "") for label, text in self.facts]
        else:
            heads = ("way out", "tokens/s", "first token", "gives up")
            rows = [
                (way.words, number(way.speed or 0.0), scaled(way.ttft, "s"), way.gives_up or "nothing")
                for way in self.ways
            ]
        return html_table(self.verdict, heads, rows)


def answer(made: Estimate) -> Answer:
    """What an estimate answers: verdict, figures with ranges, what is not stated, and ways out.

    Example:
        made = mantile.estimate(
            model="gpt-oss-120b", accelerator="rtx-4090", input_tokens=2000, output_tokens=500, concurrency=1
        )
        said = mantile.answer(made)
        print(said.verdict)
        mantile.estimate(said.ways[0].applied(made.scenario))
    """
    return Answer(made)


def _flags(fields: Mapping[str, Any]) -> str:
    """Fields as flags of the command line."""
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in fields.items())


def _usd(value: float) -> str:
    return scaled(value, "USD")


def _written(value: float | None, unit: str) -> str:
    return f"{number(value)} tok/s" if unit == "tok/s" and value is not None else scaled(value, unit)


def _range(low: float | None, high: float | None, unit: str) -> str:
    """An 80 % range: 146 to 414 ms; the unit once where both have it."""
    if low is None or high is None:
        return ""
    first, last = _written(low, unit), _written(high, unit)
    number_of, _, own = first.partition(" ")
    last_number, _, last_unit = last.partition(" ")
    if unit in _SAID_ONCE and own == last_unit:
        return f"{number_of} to {last_number}"
    return f"{number_of if own == last_unit else first} to {last}"
