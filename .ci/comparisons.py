"""Predictions that can be compared: random deployments, and neighbours of each that differ in one thing.

    python .ci/comparisons.py --cases 23000            some six million comparisons, in minutes
    python .ci/comparisons.py --only "more requests"   relations with these words in their name

Which of two neighbours is better is known without a measurement: more bandwidth is never slower. The table
has for each relation and figure how many comparisons there were, in how many the relation does not hold by
more than its tolerance, and the worst of these, with what differs. It asserts nothing.

    --cases 2300       deployments, over all models and ways of serving
    --seed 1           of the random numbers
    --models A,B       instead of a model of every kind
    --all              lines without a violation as well
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from deployments import WAYS, Array, Deployments, Equations, Graphs, Serving, draw, possible
from relations import Change, Relation, laws, relations

from mantile.library.profiles import Library, load_library

MODELS = (
    *("llama-3.1-8b", "llama-3.3-70b", "gemma-3-27b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b"),
    *(
        "deepseek-v3.2",
        "llama-4-scout",
        "jamba-v0.1",
        "nemotron-3-nano",
        "qwen3-next-80b",
        "kimi-linear-48b-a3b",
    ),
)
LAW = "law"  # in place of a relation, of what holds of a deployment by itself


@dataclass
class Line:
    """A line of the table: comparisons, those in which the relation does not hold, and the worst of these.

    Args:
        worst: by how much it does not hold, relative; `example` where.
        tolerance: up to which it holds.
    """

    compared: int = 0
    violated: int = 0
    worst: float = 0.0
    example: str = ""
    tolerance: float = 0.0

    def add(self, excess: Array, held: Array, tolerance: float, say: Callable[[int], str]) -> None:
        """Take comparisons in.

        Args:
            excess: by how much each does not hold, relative; `held` where it must.
            say: which one it is.
        """
        excess, self.tolerance = np.where(held, excess, -np.inf), tolerance
        self.compared += int(held.sum())
        self.violated += int((excess > tolerance).sum())
        place = int(excess.argmax())
        if excess[place] > max(tolerance, self.worst):
            self.worst, self.example = float(excess[place]), say(place)


Table = dict[tuple[str, str], Line]


def above(left: Array, right: Array) -> Array:
    """By how much one side is above the other, relative; infinite where one alone is a number."""
    with np.errstate(all="ignore"):
        over = np.where(left == right, 0.0, np.where(right > 0, left / right - 1, np.inf))
    neither = np.isnan(left) & np.isnan(right)  # not known on either side
    return np.where(neither, 0.0, np.where(np.isfinite(left) & np.isfinite(right), over, np.inf))


class _Neighbours:
    """Deployments and neighbours, all those of a graph worked out at once."""

    def __init__(self, d: Deployments) -> None:
        self.d = d
        self.asked: dict[Serving, list[Change]] = {}
        self.equations: dict[Serving, Equations] = {}

    def ask(self, equations: Equations, change: Change) -> tuple[Serving, int]:
        """The place at which figures will be found."""
        self.equations[equations.serving] = equations
        listed = self.asked.setdefault(equations.serving, [])
        listed.append(change)
        return equations.serving, len(listed) - 1

    def figures(self) -> dict[Serving, list[dict[str, Array]]]:
        """By graph, the figures of all that was asked for."""
        return {serving: self._of(self.equations[serving], asked) for serving, asked in self.asked.items()}

    def _of(self, equations: Equations, asked: list[Change]) -> list[dict[str, Array]]:
        count = len(self.d)
        given = dict.fromkeys(name for change in asked for name in (*self.d.inputs, *change))
        names = [name for name in given if name in equations.inputs]
        empty = {name: equations.default(name, count) for name in names}
        inputs = {
            name: np.concatenate([change.get(name, self.d.inputs.get(name, empty[name])) for change in asked])
            for name in names
        }
        found = equations.figures(inputs)
        return [
            {name: values[place * count : (place + 1) * count] for name, values in found.items()}
            for place in range(len(asked))
        ]


def compare(d: Deployments, graphs: Graphs, chosen: Sequence[Relation], table: Table) -> None:
    """All relations on deployments of one model and way of serving."""
    neighbours = _Neighbours(d)
    asked: list[tuple[Relation, Change, Change, tuple[Serving, int] | None, tuple[Serving, int]]] = []
    for relation in chosen:
        start = relation.start(d) if relation.start else {}
        change = None if start is None else relation.change(d)
        if start is None or change is None:
            continue
        serving = relation.other(d.equations.serving) if relation.other else d.equations.serving
        from_ = neighbours.ask(d.equations, start) if start else None
        to = neighbours.ask(graphs(d.equations.model, serving), {**start, **change})
        asked.append((relation, start, change, from_, to))
    done = neighbours.figures()
    for relation, start, change, from_, (serving, place) in asked:
        before = d.figures if from_ is None else done[from_[0]][from_[1]]
        _enter(d, relation, start, change, before, done[serving][place], table)


def _enter(
    d: Deployments,
    relation: Relation,
    start: Change,
    change: Change,
    before: Mapping[str, Array],
    after: Mapping[str, Array],
    table: Table,
) -> None:
    """The comparisons of one relation."""
    held = possible(before) & possible(after)
    for where in relation.where:
        held = held & where(d, before, after)
    for name, sign in relation.expected.items():
        if name not in before or name not in after:
            continue
        was, now = before[name] * relation.times.get(name, 1), after[name]
        sides = {"<=": [(now, was)], ">=": [(was, now)], "==": [(now, was), (was, now)]}[sign]
        excess = np.maximum.reduce([above(*side) for side in sides])
        only = relation.only[name](d, before, after) if name in relation.only else True

        def say(place: int, was: Array = was, now: Array = now) -> str:
            told = " ".join(filter(None, (d.told(place), d.told(place, start))))
            return f"{told} | {d.told(place, change)} | {was[place]:.6g} -> {now[place]:.6g}"

        table.setdefault((relation.name, name), Line()).add(excess, held & only, relation.tolerance, say)


def by_themselves(d: Deployments, table: Table) -> None:
    """All laws on deployments of one model and way of serving."""
    for law in laws(d):

        def say(place: int, left: Array = law.left, right: Array = law.right) -> str:
            return f"{d.told(place)} | | {left[place]:.6g} above {right[place]:.6g}"

        line = table.setdefault((LAW, law.name), Line())
        line.add(above(law.left, law.right), np.ones(len(d), bool), law.tolerance, say)


def run(
    cases: int,
    models: Sequence[str] = MODELS,
    ways: Mapping[Serving, float] = WAYS,
    seed: int = 1,
    only: str = "",
    library: Library | None = None,
) -> Table:
    """Compare so many deployments with their neighbours.

    Args:
        models, ways: over which they are spread.
        seed: of the random numbers.
        only: relations with these words in their name; no laws then.
    """
    library = library or load_library()
    chosen = [relation for relation in relations(library) if only in relation.name]
    table: Table = {}
    for model in models:
        graphs = Graphs(library)
        for way, share in ways.items():
            dice = np.random.default_rng([seed, *map(ord, f"{model}, {way}")])
            count = max(1, round(cases * share / sum(ways.values()) / len(models)))
            d = draw(graphs(model, way), library, dice, count)
            compare(d, graphs, chosen, table)
            if not only:
                by_themselves(d, table)
    return table


def lines(table: Table, everything: bool = False) -> list[str]:
    """The table as text; below each line that is violated its worst case."""
    text = [f"{'relation':<46}{'figure':<52}{'compared':>11}{'violated':>10}{'worst':>10}"]
    for (name, figure), line in table.items():
        if line.violated or everything:
            worst = f"{line.worst:.1%}" if line.violated else ""
            text.append(f"{name:<46}{figure:<52}{line.compared:>11,}{line.violated:>10,}{worst:>10}")
        if line.violated:
            text.append(f"    {line.example}")
    compared, violated = (
        sum(getattr(line, what) for line in table.values()) for what in ("compared", "violated")
    )
    return [*text, f"{'all':<98}{compared:>11,}{violated:>10,}"]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--cases", type=int, default=2300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", default="")
    options.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    options.add_argument("--all", action="store_true")
    given: Any = options.parse_args()
    begun = time.perf_counter()
    table = run(given.cases, given.models, seed=given.seed, only=given.only)
    print("\n".join(lines(table, given.all)))
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
