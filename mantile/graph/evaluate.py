"""Graph to numbers: one case, or arrays of cases on one axis, by the same code."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from mantile.graph.operations import OPERATIONS, Grid, Members, taken
from mantile.graph.quantity import (
    Apply,
    Cases,
    InCase,
    Input,
    Literal,
    Node,
    Quantity,
    Span,
    Table,
    Words,
    ancestors,
    children,
)

CHUNK = 8192  # cases at a time: a row of values then stays inside the processor's cache
CHOICES = 4  # of which `run_often` keeps what follows: one takes some 2 MB

Array = np.ndarray[Any, np.dtype[Any]]
_Step = tuple[Node, Callable[..., Any], tuple[Node, ...]]
_Again = Callable[[Mapping[str, Any]], dict[Node, Any]]


def _number(value: Any) -> Any:
    """Numbers as floats: whole numbers of NumPy would overflow without a word.

    An override nobody set is NaN.
    """
    if value is None:
        return np.nan
    if isinstance(value, np.ndarray):
        return value if value.dtype.kind in "USO" else value.astype(float)
    return value if isinstance(value, str) else float(value)


def _as_members(*members: Any) -> Members:
    return Members(members)


def _as_grid(node: Table) -> Callable[..., Grid]:
    return lambda *members: Grid(node.places, node.width, members)


def _itself(value: Any) -> Any:
    return value


class Program:
    """Nodes in an order in which each can be computed, ready to run on any inputs.

    Args:
        outputs: the nodes wanted; all they follow from is computed too.
    """

    def __init__(self, outputs: Iterable[Node]) -> None:
        self.outputs = tuple(outputs)
        self.inputs: list[Input] = []
        self.literals: list[Literal] = []
        self.across: list[InCase | Cases] = []
        self.words: dict[Words, Members] = {}
        self._runs = 0
        self._kept: _Again | None = None
        self._choices: dict[frozenset[Any], _Again] = {}
        self._chosen: list[frozenset[Any]] = []
        self.steps: list[_Step] = []
        for node in ancestors(*self.outputs):  # the most frequent kinds first
            if isinstance(node, Apply):
                self.steps.append((node, OPERATIONS[node.operation].numpy, node.arguments))
            elif isinstance(node, Quantity):
                self.steps.append((node, _itself, (node.body,)))
            elif isinstance(node, Input):
                self.inputs.append(node)
                if node.follows is not None:
                    self.steps.append((node, _itself, children(node)))
            elif isinstance(node, Literal):
                self.literals.append(node)
            elif isinstance(node, Span):
                self.steps.append((node, _as_members, node.members))
            elif isinstance(node, Table):
                self.steps.append((node, _as_grid(node), node.members))
            elif isinstance(node, InCase | Cases):
                self.across.append(node)
            elif isinstance(node, Words):
                self.words[node] = Members(node.texts)

    def run(self, inputs: Mapping[str, Any], cases: Sequence[Mapping[Node, Any]] = ()) -> dict[Node, Any]:
        """Values of all nodes.

        Args:
            inputs: input ids to a scalar, a text or an array; absent ones keep their value, or follow their
                default. None in an array stands for a case in which an input follows. Keys of words to other
                words.
            cases: values of each case, for expressions that look across cases.
        """
        values, steps = self._start(inputs, cases)
        _execute(steps, values)
        return values

    def run_often(
        self, inputs: Mapping[str, Any], varying: Collection[str], moving: Collection[str] = ()
    ) -> dict[Node, Any]:
        """The same as `run`, for many calls: from the second on, what follows from no input that may vary is
        kept from call to call; of the last few calls also what follows from none that moves.

        Args:
            inputs: as for `run`.
            varying: ids of the inputs that calls give, always the same.
            moving: those of them that change most, such as a workload, always the same.
        """
        chosen = frozenset((name, value) for name, value in inputs.items() if name not in moving)
        again = self._choices.pop(chosen, None)
        if again is None and chosen in self._chosen:
            again = self.partial(inputs, moving)
        if again is not None:
            self._choices[chosen] = again
            for oldest in list(self._choices)[:-CHOICES]:  # a copy: threads of a server share a program
                self._choices.pop(oldest, None)
            return again(inputs)
        self._chosen = [*self._chosen[-CHOICES:], chosen]
        self._runs += 1
        if self._runs == 1 or not all(name in varying for name in inputs):
            return self.run(inputs)
        if self._kept is None:
            self._kept = self.partial({}, varying)
        return self._kept(inputs)

    def _start(
        self, inputs: Mapping[str, Any], cases: Sequence[Mapping[Node, Any]]
    ) -> tuple[dict[Node, Any], list[_Step]]:
        """Values of what follows from nothing here, and the steps that remain."""
        values: dict[Node, Any] = {literal: _number(literal.value) for literal in self.literals}
        given, steps = _given(self.inputs, inputs, self.steps)
        values |= given
        for words, texts in self.words.items():
            asked = not inputs.keys().isdisjoint(words.keys)
            values[words] = Members(map(inputs.get, words.keys, texts)) if asked else texts
        for other in self.across:
            if isinstance(other, Cases):
                values[other] = Members(cases[one.case][one.figure] for one in other.each())
            else:
                values[other] = cases[other.case][other.figure]
        return values, steps

    def partial(
        self, inputs: Mapping[str, Any], varying: Collection[str]
    ) -> Callable[[Mapping[str, Any]], dict[Node, Any]]:
        """The program with its inputs given, to be run again with other values of some of them.

        What does not follow from an input that varies is computed once.

        Args:
            inputs: as for `run`.
            varying: ids of the inputs that the result takes anew each time; arrays it is given broadcast with
                those of `inputs`.
        """
        fixed = self.run(inputs)
        sources = [node for node in self.inputs if node.id in varying]
        moving: set[Node] = {*sources}
        steps = []
        constant = {identifier: value for identifier, value in inputs.items() if identifier not in varying}
        for step in _given(self.inputs, constant, self.steps)[1]:
            if step[0] in moving or any(argument in moving for argument in step[2]):
                moving.add(step[0])
                steps.append(step)

        def again(changes: Mapping[str, Any]) -> dict[Node, Any]:
            given, remaining = _given(sources, changes, steps)
            values = fixed | given
            _execute(remaining, values)
            return values

        return again

    def of_kinds(
        self, inputs: Mapping[str, Any], kinds: Mapping[str, Array], varying: Collection[str]
    ) -> Callable[[Array, Mapping[str, Array]], dict[Node, Any]]:
        """The program for cases of a few kinds: what follows from its kind alone is computed once a kind.

        Args:
            inputs: those that all cases share, as for `run`.
            kinds: other inputs, with the value in each kind.
            varying: ids of the inputs that the result takes anew for each case.

        Returns:
            Values of the outputs, as a function of the place of each case among the kinds, and of the inputs
            that vary.
        """
        unlike = [key for key, value in kinds.items() if value.dtype == object and None in value.tolist()]
        stated = {key: value for key, value in kinds.items() if key not in unlike}
        values, steps = self._start({**inputs, **stated}, ())
        sources = [node for node in self.inputs if node.id in varying or node.id in unlike]
        moving: set[Node] = {*sources}
        once: list[_Step] = []
        again: list[_Step] = []
        for step in steps:
            if step[0] in moving or not moving.isdisjoint(step[2]):
                moving.add(step[0])
                again.append(step)
            else:
                once.append(step)
        _execute(once, values)
        met = {part for _, _, parts in again for part in parts}.union(self.outputs)
        fixed = {node: values[node] for node in met if node not in moving}

        gone = _last_uses(again, self.outputs)

        def work(places: Array, changes: Mapping[str, Array]) -> dict[Node, Any]:
            of_cases = {node: taken(value, places) for node, value in fixed.items()}
            own = {key: kinds[key][places] for key in unlike}
            given, remaining = _given(sources, {**own, **changes}, again)
            of_cases |= given
            _execute(remaining, of_cases, gone)
            return of_cases

        return work

    def vary(self, values: Mapping[Node, Any], changes: Mapping[Node, Any]) -> dict[Node, Any]:
        """Values where some figures have others; what does not follow from these stays as it is.

        Args:
            values: of all nodes, as `run` returns them.
            changes: figures and the values they have instead, whatever they follow from.
        """
        varied = {**values, **changes}
        following: set[int] = set()
        waiting = [*changes]
        while waiting:
            for place in self._users.get(waiting.pop(), ()):
                node = self.steps[place][0]
                if place not in following and node not in changes and not _stated(node, values):
                    following.add(place)
                    waiting.append(node)
        _execute([self.steps[place] for place in sorted(following)], varied)
        return varied

    @cached_property
    def _users(self) -> dict[Node, list[int]]:
        """The steps that take a node, by the node."""
        users: dict[Node, list[int]] = {}
        for place, (_, _, arguments) in enumerate(self.steps):
            for argument in arguments:
                users.setdefault(argument, []).append(place)
        return users

    def sweep(self, inputs: Mapping[str, Any], keep: Sequence[Node] | None = None) -> dict[Node, Any]:
        """Values for many cases, in chunks on all cores.

        Args:
            inputs: input ids to 1-D arrays of one length, where they vary, or to scalars and texts.
            keep: the nodes to return, all outputs if None. Everything is computed either way.
        """
        keep = self.outputs if keep is None else keep
        varying = {key: np.asarray(value) for key, value in inputs.items() if np.ndim(value) == 1}
        if not varying:
            values = self.run(inputs)
            return {node: values[node] for node in keep}
        count = len(next(iter(varying.values())))
        if any(len(value) != count for value in varying.values()):
            raise ValueError(
                "inputs vary over different numbers of cases: "
                f"{ ({key: len(value) for key, value in varying.items()}) }"
            )
        first = {key: value[:1].tolist()[0] for key, value in varying.items()}
        again = self.partial({**inputs, **first}, varying)

        return in_chunks(
            lambda part: again({key: value[part] for key, value in varying.items()}), keep, count
        )


def in_chunks(
    values_of: Callable[[slice], Mapping[Node, Any]], keep: Sequence[Node], count: int
) -> dict[Node, Any]:
    """Values of nodes in many cases, worked out in chunks on all cores.

    Args:
        values_of: a part of the cases.
        keep: the nodes to return.
        count: number of cases, 1 at least.
    """

    def work(start: int) -> list[Any]:
        part = slice(start, min(start + CHUNK, count))
        values = values_of(part)
        return [_column(values[node], part.stop - start) for node in keep]

    starts = range(0, count, CHUNK)
    if len(starts) == 1:
        chunks = [work(0)]
    else:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            chunks = list(pool.map(work, starts))
    return {node: np.concatenate(parts) for node, parts in zip(keep, zip(*chunks, strict=True), strict=True)}


def _stated(node: Node, values: Mapping[Node, Any]) -> bool:
    """Whether an input has a value of its own instead of that of its default."""
    return isinstance(node, Input) and node.follows is not None and bool(values[node] != values[node.follows])


def _given(
    figures: Iterable[Input], inputs: Mapping[str, Any], steps: list[_Step]
) -> tuple[dict[Node, Any], list[_Step]]:
    """Values of inputs, and the steps that remain: an input that is stated does not follow its default."""
    values: dict[Node, Any] = {}
    replaced: dict[Node, _Step | None] = {}
    for figure in figures:
        value: Any = inputs.get(figure.id)
        if figure.follows is None:
            values[figure] = _number(inputs.get(figure.id, figure.value))
        elif isinstance(value, np.ndarray) and value.dtype == object and None in value.flat:
            replaced[figure] = _stated_where(figure, value)
        elif value is not None:
            values[figure] = _number(value)
            replaced[figure] = None
    if replaced:
        remaining = [replaced.get(step[0], step) for step in steps]
        steps = [step for step in remaining if step is not None]
    return values, steps


def _stated_where(figure: Input, value: Any) -> _Step:
    """The step of an input that some cases state and others do not."""
    absent = np.frompyfunc(lambda item: item is None, 1, 1)(value).astype(bool)
    stated = value.copy()
    stated[absent] = next((item for item in value.flat if item is not None), 0)
    stated = _number(np.array(stated.tolist()))
    return figure, lambda default: np.where(absent, default, stated), children(figure)


def _column(value: Any, count: int) -> Any:
    """A value for each case: numbers, or objects where there are texts."""
    values = np.broadcast_to(value, count)
    return values.astype(object if values.dtype.kind in "USO" else float)


def _execute(
    steps: Iterable[_Step],
    values: dict[Node, Any],
    gone: Mapping[Node, Sequence[Node]] = MappingProxyType({}),
) -> None:
    """Take the steps.

    Args:
        values: what is there, and what follows.
        gone: behind which step which values are not needed any more: memory that is used again is still in
            the processor's cache.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        for node, function, arguments in steps:  # a list of arguments takes longer than most functions do
            if function is _itself:
                values[node] = values[arguments[0]]
            elif len(arguments) == 2:
                left, right = arguments
                values[node] = function(values[left], values[right])
            else:
                values[node] = function(*[values[argument] for argument in arguments])
            if gone:
                for other in gone.get(node, ()):
                    values.pop(other, None)


def _last_uses(steps: Sequence[_Step], outputs: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that no later step takes, by the step that takes them last; outputs are never among them."""
    met: set[Node] = {*outputs}
    last: dict[Node, list[Node]] = {}
    for node, _, arguments in reversed(steps):
        fresh = {*arguments} - met
        if fresh:
            last[node] = [*fresh]
            met |= fresh
    return last


def agree(left: Any, right: Any, tolerance: float) -> bool:
    """Whether two values are the same: equal texts, numbers within a relative tolerance, or errors both."""
    if isinstance(left, str) or isinstance(right, str):
        return bool(left == right)
    return math.isclose(left, right, rel_tol=tolerance) or (math.isnan(left) and math.isnan(right))


def evaluate(node: Node, inputs: Mapping[str, Any] | None = None) -> Any:
    """The value of one node."""
    return Program([node]).run(inputs or {})[node]
