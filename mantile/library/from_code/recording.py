"""What the recorder wrote down, cut into layers and into what runs once."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

from mantile.library.errors import InputError

Shape = tuple[int, ...]
_NUMBER = re.compile(r"(^|\.)\d+(?=\.|$)")


@dataclass(frozen=True)
class Parameter:
    """A parameter or buffer of the class.

    Args:
        name: inside the part that holds it.
        stored: names in a checkpoint with {} for indices, shape, and how many there are.
        is_run: whether anything read it.
    """

    name: str
    shape: Shape
    buffer: bool
    stored: tuple[tuple[str, Shape, int], ...]
    is_run: bool = False

    @property
    def size(self) -> int:
        """Values in it."""
        return prod(self.shape)


@dataclass(frozen=True)
class Event:
    """A product, an attention core, a choice of the largest, rows of a table, or a module without children.

    Args:
        module: where, inside the part.
        weight: the matrix of a product, the kernel of a convolution, or the table of rows that are looked up;
            "" where both factors of a product are results.
        bias: the vector that is added.
        inputs, outputs: channels of a product of one matrix; a choice has how many it chooses.
        rows: how often a matrix is used, for a prompt of `Recording.tokens` tokens.
        source: the same number where two products read the same values.
        shapes: of the factors, or of query, key and value.
        window: how far back attention looks; 0 is without limit.
        class_name: of a module without children.
        over: channels that it takes the mean of, as a norm does; 0 where it was not seen to.
    """

    kind: str
    module: str
    weight: str = ""
    bias: str = ""
    inputs: int = 0
    outputs: int = 0
    rows: int = 0
    source: int = 0
    shapes: tuple[Shape, ...] = ()
    window: int = 0
    class_name: str = ""
    over: int = 0

    @property
    def parent(self) -> str:
        """The module around the module."""
        return self.module.rpartition(".")[0]


@dataclass(frozen=True)
class Part:
    """A layer, or what runs once before or after the layers."""

    events: tuple[Event, ...]
    parameters: tuple[Parameter, ...]
    caches: tuple[Mapping[str, Shape], ...] = ({},)

    @property
    def cache(self) -> Mapping[str, Shape]:
        """What its first mixer keeps."""
        return self.caches[0]

    def pieces(self) -> tuple[Part, ...]:
        """A part for each of its mixers, where it keeps as much as several layers."""
        modules = list(dict.fromkeys(event.module for event in self.events if event.kind == "attention"))
        if len(self.caches) == 1 or len(modules) != len(self.caches):
            return (self,)
        starts = [0, *(self._start(module) for module in modules[1:])]
        stretches = [self.events[start:end] for start, end in pairwise([*starts, len(self.events)])]
        held: list[list[Parameter]] = [[] for _ in stretches]
        for one in self.parameters:
            place = one.name.rpartition(".")[0]
            used = [any(event.module == place or event.weight == one.name for event in events)
                    for events in stretches]  # fmt: skip
            held[used.index(True) if any(used) else 0].append(one)
        return tuple(
            Part(events, tuple(parameters), (cache,))
            for events, parameters, cache in zip(stretches, held, self.caches, strict=True)
        )

    def _start(self, module: str) -> int:
        """The first event of a mixer: the norms before it are its own."""
        index = next(i for i, one in enumerate(self.events) if f"{one.module}.".startswith(f"{module}."))
        while self.events[index - 1].kind == "leaf" and "norm" in self.events[index - 1].class_name.lower():
            index -= 1
        return index

    @cached_property
    def signature(self) -> str:
        """The same for layers that are alike."""
        events = [(*(getattr(event, name) for name in _COMPARED),) for event in self.events]
        parameters = [
            (one.name, one.shape, one.buffer, [(name, shape, many) for name, shape, many in one.stored])
            for one in self.parameters
        ]
        return json.dumps([events, parameters, [sorted(cache.items()) for cache in self.caches]])


_COMPARED = (
    "kind", "module", "weight", "bias", "inputs", "outputs", "rows", "shapes", "window", "class_name",
    "over",
)  # fmt: skip


class Recording:
    """What the recorder wrote down.

    Args:
        name: stands for the config in errors.

    Raises:
        InputError: if the class runs no stack of layers, or runs something between them.
    """

    def __init__(self, data: Mapping[str, Any], name: str) -> None:
        self.name, self.data = name, data
        self.tokens: int = data["tokens"]
        self.config: Mapping[str, Any] = data["config"]
        self.class_name = f"{data['class']} of {data['library']}"
        shapes = {one["name"]: tuple(one["shape"]) for one in data["parameters"]}
        tied = {name: shapes[first] for name, first in data["tied"].items() if first in shapes}
        self._weights = shapes | tied
        self._stack = self._find_stack()
        self.layers: list[Part] = []
        self.before, self.after, self.never_run = self._cut()

    @property
    def built(self) -> int:
        """The layers of the class; one with several mixers is several of ours."""
        return int(self.data["lists"][self._stack])

    @property
    def zero_experts(self) -> int:
        """Experts without weights, which hand a token on as it is: a router scores them with the others."""
        stated = self.config.get("zero_expert_num")
        return stated if isinstance(stated, int) else 0

    def refusal(self, why: str) -> InputError:
        """The error that the class is not one that can be read."""
        return InputError(
            f"{self.name}: {self.class_name}: {why}; expected a decoder whose layers run in order"
        )

    def is_tied(self, weight: str) -> bool:
        """Whether the matrix of the LM head is one that stands before the layers."""
        return weight in self.data["tied"] or weight in {one.name for one in self.before.parameters}

    def _find_stack(self) -> str:
        """The list of modules that most products stand in."""
        counts = Counter(
            match.group(1)
            for event in self.data["events"]
            if event["kind"] in ("product", "attention")
            and (match := re.match(r"(.*?[^.\d]+)\.\d+\.", event["module"]))
            and match.group(1) in self.data["lists"]
        )
        if not counts:
            raise self.refusal("no list of layers was run")
        return counts.most_common(1)[0][0]

    def _cut(self) -> tuple[Part, Part, tuple[Parameter, ...]]:
        """The layers; what runs before them, after them, and never."""
        layer = re.compile(re.escape(self._stack) + r"\.(\d+)(?:\.|$)")
        places = [(int(match[1]) if (match := layer.match(event["module"])) else None, event)
                  for event in self.data["events"]]  # fmt: skip
        inside = [index for index, (place, _) in enumerate(places) if place is not None]
        first, last = inside[0], inside[-1]
        count = self.built
        held: list[list[Parameter]] = [[] for _ in range(count)]
        outside: list[Parameter] = []
        tables = {event["parameter"] for event in self.data["events"] if event["kind"] == "lookup"}
        named = Counter(
            name for one in self.data["parameters"] for name in {part for part, _ in one["stored"]}
        )
        for one in self.data["parameters"]:
            match = layer.match(one["name"])
            is_part = match and any(named[part] > 1 for part, _ in one["stored"])
            if is_part or (one["name"] in tables and len(one["stored"]) > 1):  # how it is put together or
                one = {**one, "stored": [[one["name"], one["shape"]]]}  # cut, one tensor does not tell
            target = held[int(match[1])] if match else outside
            target.append(_parameter(one, match.end() if match else 0, int(match[1]) if match else None))
        for place, event in places[first:last]:
            if place is None and event["kind"] not in ("leaf", "lookup"):
                raise self.refusal(f"{event['module']} runs between the layers")
        caches = self._caches(count)
        for index in range(count):
            prefix = f"{self._stack}.{index}."
            seen = [self._event(event, prefix) for place, event in places if place == index]
            events = _without_first_rows(_all_queries_at_once(seen, self.tokens), self.tokens)
            events, parameters = _stack_experts(events, _without_zero_experts(held[index], self.zero_experts))
            self.layers += Part(tuple(events), tuple(parameters), caches[index]).pieces()
        parts: list[Part] = []
        for stretch in (places[:first], places[last + 1 :]):
            events = [self._event(event, "") for _, event in stretch]
            taken = {one.name for part in parts for one in part.parameters}
            parts.append(self._around(events, [one for one in outside if one.name not in taken]))
        run = {one.name for part in parts for one in part.parameters}
        return parts[0], parts[1], tuple(one for one in outside if one.name not in run)

    def beside(self) -> tuple[Parameter, ...]:
        """What was never run, alike ones gathered: towers for images or sound."""
        counts: Counter[tuple[str, Shape, bool]] = Counter()
        for one in self.never_run:
            for name, shape, count in one.stored:
                counts[_NUMBER.sub(r"\1{}", name), shape, one.buffer] += count
        return tuple(
            Parameter(f"{name} {shape}", shape, buffer, ((name, shape, count),))
            for (name, shape, buffer), count in counts.items()
        )

    def _around(self, events: Sequence[Event], outside: Sequence[Parameter]) -> Part:
        """What ran outside the layers, with the parameters of its modules."""
        modules = {event.module for event in events}
        held = [one for one in outside if one.name.rpartition(".")[0] in modules or one.name in
                {name for event in events for name in (event.weight, event.bias)}]  # fmt: skip
        return Part(tuple(events), tuple(held))

    def _caches(self, layers: int) -> list[tuple[Mapping[str, Shape], ...]]:
        """What each layer keeps: once for each of its mixers."""
        found = [
            {name: tuple(shape) for name, shape in entry.items() if name != "class"}
            for entry in self.data["caches"]
        ]
        found += [{} for _ in range(layers - len(found))] if self._keeps_in_order(found) else []
        mixers = len(found) // layers
        if mixers > 1 and len(found) == mixers * layers and self._mixers() == {mixers}:
            return [tuple(found[start : start + mixers]) for start in range(0, len(found), mixers)]
        if found and len(found) != layers:
            raise self.refusal(f"{len(found)} of its {layers} layers have a cache, and it is not seen which")
        return [(cache,) for cache in found or [{}] * layers]

    def _mixers(self) -> set[int]:
        """In how many modules a layer looks back."""
        layer = re.compile(re.escape(self._stack) + r"\.(\d+)\.")
        modules = {event["module"] for event in self.data["events"] if event["kind"] == "attention"}
        return set(Counter(match[1] for module in modules if (match := layer.match(module))).values())

    def _keeps_in_order(self, found: Sequence[Mapping[str, Shape]]) -> bool:
        """Whether the caches are those of the first layers: keys are kept where attention was seen."""
        layer = re.compile(re.escape(self._stack) + r"\.(\d+)\.")
        attend = {
            int(match[1])
            for event in self.data["events"]
            if event["kind"] == "attention" and (match := layer.match(event["module"]))
        }
        return bool(attend) and attend == {index for index, cache in enumerate(found) if "keys" in cache}

    def _event(self, event: Mapping[str, Any], prefix: str) -> Event:
        """An event with names inside its part."""
        module = event["module"].removeprefix(prefix).removeprefix(prefix[:-1])
        match event["kind"]:
            case "leaf":
                shape, over = tuple(event["shape"]), event.get("over", 0)
                return Event("leaf", module, shapes=(shape,), class_name=event["class"], over=over)
            case "attention":
                shapes = tuple(tuple(event[name]) for name in ("query", "key", "value"))
                return Event("attention", module, shapes=shapes, window=event["window"])
            case "lookup":
                weight = (event["parameter"] or "").removeprefix(prefix)
                return Event("lookup", module, weight=weight, shapes=(tuple(event["shape"]),))
            case "choice":
                return Event("choice", module, outputs=event["chosen"])
        return self._product(event, module, prefix)

    def _product(self, event: Mapping[str, Any], module: str, prefix: str) -> Event:
        """A product: which of its factors is a parameter, and the channels that it joins."""
        shapes = [tuple(shape) for shape in event["shapes"]]
        owners = event["parameters"]
        if event["operation"] in ("addmm", "baddbmm"):
            added, *owners = owners
            _, *shapes = shapes
        else:
            added = owners[2] if event["operation"] == "convolution" and len(owners) > 2 else None
        weight, at = None, 0
        for index in (1, 0):
            owner = owners[index] if index < len(owners) else None
            if owner is not None and len(self._weights.get(owner, ())) > 1:
                weight, at = owner, index
        kind = "convolution" if event["operation"] == "convolution" else "product"
        left, right = shapes[0], shapes[1]
        inputs, outputs = (right[-2], right[-1]) if at == 1 else (left[-1], left[-2])
        rows = left[-2] if at == 1 else right[-1]
        batch = left[0] if len(left) == 3 else 1
        return Event(
            kind,
            module,
            weight=(weight or "").removeprefix(prefix),
            bias=(added or "").removeprefix(prefix),
            inputs=inputs,
            outputs=outputs,
            rows=batch * rows,
            source=event["source"],
            shapes=tuple(shapes),
        )


def _all_queries_at_once(events: list[Event], tokens: int) -> list[Event]:
    """What a class does for one token after the other, alike for each, as done for all of them together."""
    alike = [replace(event, source=0) for event in events]
    joined: list[Event] = []
    place = 0
    while place < len(events):
        period = next(
            (
                length
                for length in range(1, _LONGEST_ROUND + 1)
                if alike[place : place + length] * tokens == alike[place : place + length * tokens]
            ),
            0,
        )
        if not period:
            joined.append(events[place])
            place += 1
            continue
        joined += [_for_all(event, tokens) for event in events[place : place + period]]
        place += period * tokens
    return joined


_LONGEST_ROUND = 8  # events that are repeated for each token


def _for_all(event: Event, tokens: int) -> Event:
    """An event of one token as that of all; a module without children works on one row of each."""
    if event.kind == "leaf":
        return replace(event, shapes=((1, tokens, event.shapes[0][-1]),))
    return replace(event, rows=event.rows * tokens, shapes=tuple((tokens, *shape) for shape in event.shapes))


def _without_first_rows(events: list[Event], tokens: int) -> list[Event]:
    """Without products that a matrix makes of what stands before the first token, besides those of all."""
    whole = {one.weight for one in events if one.kind == "product" and one.weight and one.rows >= tokens}
    return [one for one in events if one.weight not in whole or one.rows >= tokens or one.kind != "product"]


def _stack_experts(events: list[Event], parameters: list[Parameter]) -> tuple[list[Event], list[Parameter]]:
    """Experts that stand below each other in one matrix as a parameter of three dimensions, read once.

    They are told by a router: it gives as many scores as the matrix is read in equal slices.
    """
    chooses = next((i for i, event in enumerate(events) if event.kind == "choice"), len(events))
    scores = {event.outputs for event in events[:chooses] if event.kind == "product" and event.weight}
    stacked = {}
    for one in parameters:
        slices = [event for event in events[chooses:] if event.kind == "product" and event.weight == one.name]
        values = {event.inputs * event.outputs for event in slices}
        count = one.size // values.pop() if len(values) == 1 else 0
        if len(one.shape) == 2 and count in scores and len(slices) >= count:
            stacked[one.name] = (count, one.shape[0] // count, one.shape[1])
    first = {name: next(i for i, event in enumerate(events) if event.weight == name) for name in stacked}
    return (
        [
            event
            for i, event in enumerate(events)
            if event.kind != "product" or first.get(event.weight, i) == i
        ],
        [replace(one, shape=stacked.get(one.name, one.shape)) for one in parameters],
    )


def _without_zero_experts(parameters: list[Parameter], zeros: int) -> list[Parameter]:
    """Experts in parameters of three dimensions, without room that a class makes for those without weights.

    Another parameter of the same experts is as long as there are experts with weights.
    """
    counts = {one.shape[0] for one in parameters if len(one.shape) == 3}
    longer = {count for count in counts if zeros and count - zeros in counts}
    return [
        replace(
            one,
            shape=(one.shape[0] - zeros, *one.shape[1:]),
            stored=tuple(_of_fewer(*part, one.shape[0], zeros) for part in one.stored),
        )
        if len(one.shape) == 3 and one.shape[0] in longer
        else one
        for one in parameters
    ]


def _of_fewer(name: str, shape: Shape, count: int, experts: int, zeros: int) -> tuple[str, Shape, int]:
    """What is stored of that many experts less: one by one, or together."""
    if count == experts:
        return name, shape, count - zeros
    return name, (shape[0] - zeros, *shape[1:]), count


def _parameter(data: Mapping[str, Any], start: int, layer: int | None) -> Parameter:
    """A parameter, its parts gathered by name and shape; {} stands for its layer, and for the parts."""
    counts: Counter[tuple[str, Shape]] = Counter()
    for name, shape in data["stored"]:
        if len(data["stored"]) > 1:
            name = _NUMBER.sub(r"\1{}", name)
        elif layer is not None:
            name = re.sub(rf"(^|\.){layer}(?=\.|$)", r"\1{}", name, count=1)
        counts[name, tuple(shape)] += 1
    stored = tuple((name, shape, count) for (name, shape), count in counts.items())
    return Parameter(data["name"][start:], tuple(data["shape"]), data["buffer"], stored, data["run"])
