"""Sweeps in partitions: a folder with a Parquet file for each part of the points, and what was asked.

A partition appears complete or not at all, so a run that was killed goes on where it was: the partitions that
are there are read, the others are worked out.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any
from zlib import compress

from mantile.estimates.kept import COMMON, QUESTION, KeptParts, digest
from mantile.estimates.sweep import MOST_IN_PARTITIONS, Digest, Grid, Question, grid_of, question_of
from mantile.estimates.tables import parquet
from mantile.library.architecture import Model
from mantile.library.profiles import Library
from mantile.library.scenario import Scenario, with_own_accelerators
from mantile.library.version import __version__

POINTS = 2**20  # of a partition, at most
MANIFEST = "sweep.json"
_NAMES = COMMON | {
    "over": "other values of",
    "feasible_only": "with and without --feasible",
    "points_per_partition": "another size of partitions",
}
"""What may differ between two questions, as errors call it."""


@dataclass(frozen=True)
class Partitions:
    """A sweep, cut into parts of so many points at most.

    Args:
        question: with everything that it needs: another machine has neither files nor profiles of this one.
        feasible: only points that fit are kept.
        most: points of a part, before points that do not fit are left out.
        shown: first points that are remembered.
    """

    question: Question
    feasible: bool
    most: int
    shown: int

    @cached_property
    def grid(self) -> Grid:
        """All points."""
        return grid_of(self.question)

    @cached_property
    def _blocks(self) -> list[tuple[slice, ...]]:
        return self.grid.blocks(self.most)

    def __len__(self) -> int:
        return len(self._blocks)

    def points(self, place: int) -> int:
        """Number of points of a part."""
        block = self._blocks[place]
        return prod(len(range(*part.indices(n))) for part, n in zip(block, self.grid.shape, strict=True))

    def packed(self) -> bytes:
        """Everything that a worker needs, but for the graph: that is quicker made than sent."""
        return compress(pickle.dumps(replace(self)))

    def work_out(self, place: int, threads: int | None = None) -> tuple[bytes, Digest]:
        """A part as a Parquet file, and what is remembered of it."""
        seen, file = Digest(self.shown), BytesIO()
        with parquet(file, {QUESTION: self.digest}) as append:
            for table in self.grid.part(self._blocks[place]).tables(self.feasible, threads):
                seen.add(table)
                append(table)
        seen.points = self.points(place)  # also of those that are left out
        return file.getvalue(), seen

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What is asked, so that another question can be told from it."""
        asked = self.question
        return {
            "about": f"Points of a sweep in {file_name(0)} and so on, the last parameter runs fastest",
            "version": __version__,
            "scenario": digest(asked.scenario.model_dump(mode="json", exclude_none=True)),
            "model": digest(asked.model.model_dump(mode="json")),
            "library": digest(asked.library.model_dump(mode="json")),
            "over": [
                {
                    "name": name,
                    "values": len(values),
                    "first": values[0],
                    "last": values[-1],
                    "digest": digest([*values]),
                }
                for name, values in asked.over.items()
            ],
            "feasible_only": self.feasible,
            "points_per_partition": self.most,
            "points": len(self.grid),
            "partitions": len(self),
        }

    @cached_property
    def digest(self) -> str:
        """What is asked as one word."""
        return digest(self.manifest)


def partitions(
    scenario: Scenario,
    over: Mapping[str, Iterable[Any]],
    model: Model | None = None,
    library: Library | None = None,
    name: str = "scenario",
    feasible: bool = False,
    most: int = POINTS,
    shown: int = 0,
) -> Partitions:
    """A sweep that is worked out in parts.

    Args:
        scenario, over, model, library, name: as for `grid`.
        feasible: only points that fit are kept.
        most: points of a partition at most.
        shown: first points that are remembered.

    Raises:
        InputError: naming the parameter and value that is wrong and what was expected.
    """
    asked = question_of(scenario, over, model, library, name, MOST_IN_PARTITIONS)
    own, with_own = with_own_accelerators(
        asked.scenario.model_copy(update={"variants": (), "profiles": ()}), asked.library
    )
    made = Partitions(replace(asked, scenario=own, library=with_own), feasible, most, shown)
    made.manifest  # noqa: B018  what is wrong is told before anything is written
    return made


def file_name(place: int) -> str:
    """The file of a partition."""
    return f"part-{place:05d}.parquet"


class PartitionFolder:
    """The folder of a sweep.

    Args:
        path: is made where it is not there; the folder that it lies in is.

    Raises:
        InputError: naming the folder, if it holds something else, or the answer to another question.
    """

    def __init__(self, path: Path, asked: Partitions) -> None:
        self.asked = asked
        self._parts = KeptParts(path, asked.manifest, MANIFEST, _NAMES, "partitions")

    def read(self, place: int) -> Digest | None:
        """What is remembered of a partition that is there and whole; None of any other."""
        seen = Digest(self.asked.shown)
        if not self._parts.read(file_name(place), seen.add):
            return None
        if not self.asked.feasible and seen.points != self.asked.points(place):
            return None
        seen.points = self.asked.points(place)
        return seen

    def write(self, place: int, partition: bytes) -> None:
        """Keep a partition."""
        self._parts.write(file_name(place), partition)
