"""Ways out of a plan that does not fit: fewer bits, fewer requests, more or other accelerators, the host.

Each way is a change of fields of the scenario, worked out like any other scenario. `launch` accepts each of
them, if it knows the engine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, isfinite
from typing import Any

import pandas as pd

from mantile.answers.text import scaled
from mantile.equations.metrics import (
    ACCELERATORS,
    INTERACTIVITY,
    MEMORY_PER_ACCELERATOR,
    TPOT,
    TTFT,
    USD_PER_HOUR,
)
from mantile.estimates.estimate import Estimate, estimate
from mantile.estimates.launch_files import launch_files
from mantile.estimates.results import is_possible, missing_memory, of_requests
from mantile.estimates.sweep import possible, sweep
from mantile.ir.build import build_ir
from mantile.ir.counts import parameters
from mantile.library.beside_cpu import ALL, beside_cpu
from mantile.library.errors import InputError
from mantile.library.launch_table import launch_tables
from mantile.library.models import caches, load_model, model_ids
from mantile.library.profiles import CHECKPOINT
from mantile.library.scenario import Scenario
from mantile.library.scenario_fields import DEFAULT_SYSTEM
from mantile.search.size import bits_of, formats_of
from mantile.search.space import published

ON_CPUS = "llama.cpp"
"""The engine that computes layers on a CPU beside accelerators."""
USUAL_CPU = "ryzen-9-9950x"
"""The CPU that is assumed beside accelerators of a desk machine."""
SLOWEST = 1.0
"""Tokens per second of one user below which nobody uses a deployment."""
_GIVES_UP = (
    *("", "batch slots", "spare memory", "precision", "throughput", "long prompts"),
    *("speed", "another model"),
)
"""What a way may give up, from the least on."""
_COUNTS = (1, 2, 4, 8, 16, 32, 64)
_MOST_OTHERS = 8  # accelerators of another kind
_PATIENCE, _LATER = 2.0, 10  # TTFT in s, or times that of the fastest, up to which others are listed
_SLOTS = (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
_SHARES = (0.95, 0.97)  # of GPU memory that an engine may be told to take
_HALVES = 6  # times that prompts are halved
_SHORTEST = 256  # tokens of a prompt
_MODELS = 4  # smaller models that are tried
_GB = 1e9
_STEP = 0.1  # GB of weights on the host
_SOME_MORE = (1.0, 1.05, 1.2, 1.5)  # of what is missing: buffers for weights on the host take some


@dataclass(frozen=True)
class Way:
    """A change with which a plan fits.

    Args:
        words: what is changed.
        fields: of the scenario; None: left to its default.
        feasibility: as an estimate says it.
        speed: tokens per second of one user; None where nobody knows it.
        ttft: in s.
        usd_per_hour: of the whole plan; None where nobody knows it.
        to_buy: USD for what is not there yet; 0 where nothing is bought, None where nobody knows the price.
        gives_up: what is lost; empty where nothing is.
        assumes: what is taken for there; empty where nothing is.
        other_accelerators: whether it needs accelerators that the plan does not have.
    """

    words: str
    fields: Mapping[str, Any]
    feasibility: str
    speed: float | None
    ttft: float | None
    usd_per_hour: float | None
    to_buy: float | None
    gives_up: str = ""
    assumes: str = ""
    other_accelerators: bool = False

    def to_dict(self) -> dict[str, Any]:
        """One of `remedies` in --json, in SI units."""
        tpot = 1 / self.speed if self.speed else None
        return {
            "words": self.words,
            "fields": dict(self.fields),
            "feasibility": self.feasibility,
            TPOT.key: tpot,
            TTFT.key: self.ttft,
            USD_PER_HOUR.key: self.usd_per_hour,
            "to_buy_usd": self.to_buy,
            "gives_up": self.gives_up,
            "assumes": self.assumes,
        }

    def applied(self, scenario: Scenario) -> Scenario:
        """A scenario with this change.

        Example:
            mantile.estimate(answer.ways[0].applied(scenario))
        """
        return scenario.replace(**dict(self.fields))


class WaysOut:
    """What helps a plan that cannot be, and what does not.

    Args:
        made: its estimate; ways are those of its base scenario.

    Example:
        WaysOut(mantile.estimate(model="gpt-oss-120b", accelerator="rtx-4090", ...)).ways[0].words
        # "experts of 24 layers on the CPU"
    """

    def __init__(self, made: Estimate) -> None:
        self._made, self._scenario = made, made.scenario.replace(variants=[], decision=None)
        self._results, self._values = made.results(), made.columns[0].values
        self._library, self._model = made.library, made.model
        self._framework = self._library.framework(str(self._values["framework"]))
        self._chip = self._library.accelerator(str(self._values["accelerator"]))
        self._count = int(self._results["accelerators"])
        self._no_help: list[str] = []

    @cached_property
    def missing(self) -> float | None:
        """Bytes that the fullest accelerator lacks; None where memory is not what is missing."""
        return missing_memory(self._results)

    @cached_property
    def buys(self) -> bool:
        """Whether people buy such a machine; others are paid by the hour."""
        return self._desk(self._chip.id)

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """What helps: first what needs no other accelerators, by what it gives up, then by cost."""
        found = [way for way in self._all() if (way.speed or inf) >= SLOWEST and self._launches(way)]
        return tuple(sorted(found, key=self._order))

    @cached_property
    def no_help(self) -> tuple[str, ...]:
        """What was tried and does not help."""
        _ = self.ways  # which tries everything
        return tuple(self._no_help)

    def _desk(self, chip: str) -> bool:
        return self._library.usual_system(chip).machine != "server"

    def _order(self, way: Way) -> tuple[float, ...]:
        if not way.other_accelerators:
            return 0, _GIVES_UP.index(way.gives_up), 0, -(way.speed or 0)
        return 1, 0, self._cost(way), -(way.speed or 0)

    def _cost(self, way: Way) -> float:
        cost = way.to_buy if self.buys else way.usd_per_hour
        return inf if cost is None else cost

    def _all(self) -> Iterator[Way]:
        alike = not self._scenario.devices and not self._scenario.disaggregated
        if self.missing is None:
            if alike:
                yield from self._degrees()
                yield from self._engines()
            return
        same = [*self._settings(), *self._formats(), *self._caches()]
        yield from same
        yield from self._requests()
        yield from self._prompts()
        if alike:
            if not same or self._framework.id == ON_CPUS:  # what fits is faster than what comes over a slot
                yield from self._host()
            yield from self._accelerators()
        yield from self._smaller()

    def _launches(self, way: Way) -> bool:
        """Whether `launch` accepts a way; it is not asked about engines that it does not start."""
        scenario = way.applied(self._scenario)
        if (scenario.framework or self._framework.id) not in launch_tables():
            return True
        try:
            launch_files(scenario)
        except InputError:
            return False
        return True

    # ---- a change of one field ----

    def _swept(self, **over: Sequence[Any]) -> pd.DataFrame:
        """Results at values of fields; empty where a scenario cannot have them."""
        if not all(over.values()):
            return pd.DataFrame()
        try:
            return sweep(self._scenario, over, model=self._model, library=self._library)
        except InputError:
            return pd.DataFrame()

    def _first(
        self, words: Callable[[Any], str], gives_up: str, tried: str = "", **over: Sequence[Any]
    ) -> Iterator[Way]:
        """The first of some values with which the plan fits.

        Args:
            words: of a value.
            tried: what is said where none does; empty: nothing.
            over: the field, and its values from the one that changes least on.
        """
        [name] = over
        table = self._swept(**over)
        if not len(table):
            return
        rows = table[possible(table)]
        if len(rows):
            value = rows.iloc[0][name]
            value = value if isinstance(value, str) else value.item()
            yield self._way(words(value), rows.iloc[0], {name: value}, gives_up)
        elif tried:
            saved = float(table[MEMORY_PER_ACCELERATOR.column].min()) - self._used
            self._no_help.append(f"{tried} (−{scaled(-saved, 'B')})" if saved < 0 else tried)

    @property
    def _used(self) -> float:
        return float(self._results[MEMORY_PER_ACCELERATOR.key])

    def _way(self, words: str, row: Mapping[str, Any], fields: Mapping[str, Any], gives_up: str = "") -> Way:
        """A way by a row of a sweep, or by results."""
        chip, count = str(fields.get("accelerator", self._chip.id)), int(row[ACCELERATORS.key])
        return Way(
            words,
            fields,
            str(row["feasibility"]),
            _known(row[INTERACTIVITY.key]),
            _known(row[TTFT.key]),
            _known(row[USD_PER_HOUR.key]),
            self._to_buy(chip, count),
            gives_up,
            other_accelerators=chip != self._chip.id or count > self._count,
        )

    def _to_buy(self, chip: str, count: int) -> float | None:
        """USD for accelerators that the plan does not have yet."""
        more = count - (self._count if chip == self._chip.id else 0)
        price = self._library.price(chip)
        fact = None if price is None else price.bases.get("owned")
        return 0.0 if more <= 0 else None if fact is None or fact.value is None else more * fact.value

    def _settings(self) -> Iterator[Way]:
        """Fewer batch slots, for which an engine sets memory aside at its start, or a larger share of it."""
        if not self._scenario.max_requests:
            load = int(self._values.get("concurrency") or 1)
            fewer = [count for count in _SLOTS if count >= load]
            yield from self._first("at most {:,} batch slots".format, "batch slots", max_requests=fewer)
        if self._scenario.gpu_memory_utilization is None and self._framework.id == "vllm":
            yield from self._first(
                "GPU memory utilization {:g}".format, "spare memory", gpu_memory_utilization=_SHARES
            )

    def _formats(self) -> Iterator[Way]:
        """The data type of weights with most bits."""
        bits = {
            name: bits_of(name, self._model, self._library)
            for name in formats_of(self._model, self._library, self._chip.id, self._framework.id)
        }
        held = bits_of(str(self._values["weights_dtype"]), self._model, self._library)
        fewer = sorted((name for name in bits if bits[name] < held), key=lambda name: -bits[name])
        if not fewer:
            self._no_help.append("smaller weights (none are published)")
            return
        yield from self._first("{} weights".format, "precision", f"{fewer[-1]} weights", weights_dtype=fewer)

    def _caches(self) -> Iterator[Way]:
        kinds = list(caches(self._model))
        if self._framework.weights != CHECKPOINT:
            family = self._library.datatype(self._framework.weights, "weights").family
            own = [one for one in self._library.datatypes if one.family == family and "kv" in one.roles]
            kinds = [one.id for one in sorted(own, key=lambda one: -one.bits)] or kinds
        kinds = [name for name in kinds if name != self._values["kv_dtype"]]
        if kinds:
            yield from self._first("{} KV cache".format, "precision", f"{kinds[-1]} KV cache", kv_dtype=kinds)

    def _requests(self) -> Iterator[Way]:
        load = int(self._values.get("concurrency") or 1)
        if self._scenario.request_rate or self._scenario.sessions:
            return
        fewer = [load >> power for power in range(1, load.bit_length())]
        yield from self._first(
            lambda count: f"{of_requests(count)} at once", "throughput", "fewer requests", concurrency=fewer
        )

    def _prompts(self) -> Iterator[Way]:
        tokens = int(self._values["input_tokens"])
        shorter = [tokens >> power for power in range(1, _HALVES) if tokens >> power >= _SHORTEST]
        yield from self._first(
            "prompts of {:,} tokens".format, "long prompts", "shorter prompts", input_tokens=shorter
        )

    # ---- accelerators and engines ----

    @property
    def _spread(self) -> tuple[str, Sequence[int]]:
        """The degree that spreads weights over accelerators, and its values."""
        return ("pp", _COUNTS[:4]) if "tp" in self._framework.experimental else ("tp", _COUNTS)

    def _degrees(self) -> Iterator[Way]:
        """The nearest degrees below and above."""
        name, values = self._spread
        table = self._swept(**{name: values})
        rows = table[possible(table)] if len(table) else table
        now = int(self._values[name])
        for side in (rows[rows[name] < now].tail(1), rows[rows[name] > now].head(1)) if len(rows) else ():
            for _, row in side.iterrows():
                yield self._way(f"{name.upper()}{int(row[name])}", row, {name: int(row[name])})

    def _engines(self) -> Iterator[Way]:
        """Other engines, the three that are fastest for one user."""
        others = [one.id for one in self._library.frameworks if one.id != self._framework.id]
        table = self._swept(framework=others)
        rows = table[possible(table)] if len(table) else table
        if len(rows):
            for _, row in rows.sort_values(INTERACTIVITY.column, ascending=False).head(3).iterrows():
                name = str(row["framework"])
                yield self._way(self._library.framework(name).name, row, {"framework": name})

    def _accelerators(self) -> Iterator[Way]:
        """More of the same accelerator, and others, none of which a cheaper one beats in speed."""
        degree, values = self._spread
        chips = [chip.id for chip in self._library.accelerators if self._desk(chip.id) == self.buys]
        table = self._swept(accelerator=chips, **{degree: values})
        if not len(table):
            return
        least = table[possible(table)].sort_values(ACCELERATORS.column, kind="stable")
        others = []
        for _, row in least.drop_duplicates("accelerator").iterrows():
            chip, count = self._library.accelerator(str(row["accelerator"])), int(row[ACCELERATORS.column])
            if chip.id == self._chip.id:
                more = count - self._count
                words = f"{more} more {chip.name}" if more > 0 else f"{degree.upper()}{int(row[degree])}"
                yield self._way(words, row, {degree: int(row[degree])})
            elif count <= _MOST_OTHERS:
                fields = {"accelerator": chip.id, degree: int(row[degree]), "system": DEFAULT_SYSTEM}
                words = chip.name if count == 1 else f"{count} × {chip.name}"
                others.append((chip.vendor == self._chip.vendor, self._way(words, row, fields)))
        first = min((way.ttft for _, way in others if way.ttft), default=0.0)
        usable = [(own, way) for own, way in others if (way.ttft or 0) <= max(_PATIENCE, _LATER * first)]
        yield from self._worth_it([way for own, way in usable if own], 2)
        yield from self._worth_it([way for own, way in usable if not own], 1)

    def _worth_it(self, ways: Iterable[Way], most: int) -> Iterator[Way]:
        """The cheapest, and those that no cheaper one beats in speed; of unknown cost none."""
        best, listed = 0.0, 0
        for way in sorted(ways, key=self._order):
            if isfinite(self._cost(way)) and (way.speed or 0) > best and listed < most:
                yield way
                best, listed = way.speed or 0, listed + 1

    # ---- the host ----

    def _host(self) -> Iterator[Way]:
        if self._framework.id == ON_CPUS:
            yield from self._beside_cpu()
        elif self._chip.host_bandwidth is not None and self.missing is not None:
            sizes = [round(ceil(self.missing / _GB * more / _STEP) * _STEP, 1) for more in _SOME_MORE]
            yield from self._first(
                lambda size: f"{scaled(size * _GB, 'B')} of weights in main memory",
                "speed",
                offload_weights=sizes,
            )

    def _beside_cpu(self) -> Iterator[Way]:
        """Experts of some layers, else whole layers, on a CPU beside the accelerators."""
        if self._scenario.overrides or not self.buys:
            return
        layers = sum(part.times * len(part.layers) for part in self._model.architecture.stack)
        experts = bool(self._model.architecture.value("experts"))
        name, values = (
            ("experts_away", range(1, layers + 1)) if experts else ("layers", range(layers - 1, -1, -1))
        )
        on_card = ALL if experts else 0
        try:
            cpu = self._library.accelerator(USUAL_CPU)
            beside = beside_cpu(
                self._library, cpu.id, self._chip.id, self._count, on_card, self._model.id, int(experts)
            )
            scenario = self._scenario.replace(pp=None, **beside)
            table = sweep(scenario, {f"device2_{name}": [*values]}, model=self._model, library=self._library)
        except InputError:
            return
        rows = table[possible(table)]
        if not len(rows):
            self._no_help.append(f"layers on the CPU ({cpu.name})")
            return
        moved = int(rows.iloc[0][f"device2_{name}"])
        first, second = beside["devices"]
        fields = {"pp": None, **beside, "devices": [first, {**second, name: moved}]}
        results = estimate(self._scenario.replace(**fields), self._model, self._library).results()
        words = f"experts of {moved} layers" if experts else f"{layers - moved} of {layers} layers"
        way = self._way(f"{words} on the CPU", results, fields, "speed")
        assumes = f"{cpu.name} and {scaled(results['ram_peak_bytes'], 'B')} of main memory"
        yield replace(way, to_buy=0.0, assumes=assumes, other_accelerators=False)

    # ---- another model ----

    def _smaller(self) -> Iterator[Way]:
        """The largest smaller model of the family that fits."""
        for name in smaller_of_family(self._model.id)[:_MODELS]:
            model = load_model(name)
            fields: dict[str, Any] = {"model": name}
            stated = self._scenario.weights_dtype
            if stated is not None and stated not in published(model, self._framework, self._chip):
                fields["weights_dtype"] = None
            try:
                results = estimate(self._scenario.replace(**fields), library=self._library).results()
            except InputError:
                continue
            if is_possible(results["feasibility"]):
                yield self._way(model.name, results, fields, "another model")
                return


def smaller_of_family(name: str) -> list[str]:
    """Smaller models of the same family, those of the nearest version first, then the largest.

    >>> smaller_of_family("gpt-oss-120b")
    ['gpt-oss-20b']
    """

    def family(identifier: str) -> frozenset[str]:
        return frozenset(word for word in re.split(r"[-.\d]+", identifier) if len(word) > 1)

    def version(identifier: str) -> float:
        number = re.search(r"\d+(?:\.\d+)?", identifier)
        return float(number.group()) if number else 0.0

    sizes = {
        other: parameters(build_ir(load_model(other)))["total"]
        for other in model_ids()
        if family(other) == family(name)
    }
    own = sizes.get(name)
    smaller = [other for other, size in sizes.items() if own is not None and size < own]
    return sorted(
        smaller,
        key=lambda other: (
            abs(int(version(other)) - int(version(name))),
            -round(sizes[other] / 1e8),
            abs(version(other) - version(name)),
        ),
    )


def _known(value: Any) -> float | None:
    return float(value) if value is not None and isfinite(value) else None
