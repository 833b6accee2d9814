"""Sweeps in partitions: a folder with a Parquet file for each part of the points, and what was asked.

A partition appears complete or not at all, so a run that was killed goes on where it was: the partitions that
are there are read, the others are worked out.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any
from zlib import compress

from mantile.estimate.sweep import MOST_IN_PARTITIONS, Digest, Grid, Question, grid_of, question_of
from mantile.estimate.tables import parquet
from mantile.library.architecture import Model
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.profiles import Library
from mantile.library.scenario import Scenario, with_own_accelerators
from mantile.library.version import __version__

POINTS = 2**20  # of a partition, at most
MANIFEST = "sweep.json"
_QUESTION = "mantile.question"  # beside the columns of a partition: what it belongs to
_NAMES = {
    "version": "made by another version of Mantile",
    "scenario": "another scenario",
    "model": "another model",
    "library": "other profiles",
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
        digest, file = Digest(self.shown), BytesIO()
        with parquet(file, {_QUESTION: self.digest}) as append:
            for table in self.grid.part(self._blocks[place]).tables(self.feasible, threads):
                digest.add(table)
                append(table)
        digest.points = self.points(place)  # also of those that are left out
        return file.getvalue(), digest

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What is asked, so that another question can be told from it."""
        asked = self.question
        return {
            "about": f"Points of a sweep in {file_name(0)} and so on, the last parameter runs fastest",
            "version": __version__,
            "scenario": _digest(asked.scenario.model_dump(mode="json", exclude_none=True)),
            "model": _digest(asked.model.model_dump(mode="json")),
            "library": _digest(asked.library.model_dump(mode="json")),
            "over": [
                {
                    "name": name,
                    "values": len(values),
                    "first": values[0],
                    "last": values[-1],
                    "digest": _digest([*values]),
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
        return _digest(self.manifest)


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
        if find_spec("pyarrow") is None:
            raise InputError(f"{path}: partitions need pyarrow: pip install 'mantile[dask]'")
        if path.suffix in (".csv", ".parquet", ".xlsx") or path.is_file():
            raise InputError(f"{path}: expected a folder for the partitions, such as {path.with_suffix('')}/")
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}")
        self.path, self.asked = path, asked
        path.mkdir(exist_ok=True)
        manifest = path / MANIFEST
        if manifest.is_file():
            self._require_same(manifest)
        elif any(path.iterdir()):
            raise InputError(f"{path}: holds other files; expected an empty folder or that of the same sweep")
        else:
            with replacing(manifest) as temporary:
                temporary.write_text(json.dumps(asked.manifest, indent=1) + "\n", encoding="utf-8")
        for left in path.glob(".*.parquet"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)

    def _require_same(self, manifest: Path) -> None:
        try:
            held = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{manifest}: cannot read: {error}; expected another folder") from error
        asked = json.loads(json.dumps(self.asked.manifest))
        if held == asked:
            return
        differing = [*_differing(held if isinstance(held, dict) else {}, asked)]
        raise InputError(
            f"{self.path}: holds the points of another question ({'; '.join(differing) or 'another form'}); "
            "expected the same question, or another folder"
        )

    def read(self, place: int) -> Digest | None:
        """What is remembered of a partition that is there and whole; None of any other."""
        path = self.path / file_name(place)
        if not path.is_file():
            return None
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        digest = Digest(self.asked.shown)
        try:
            with ParquetFile(path, page_checksum_verification=True) as file:
                about = file.schema_arrow.metadata or {}
                if about.get(_QUESTION.encode()) != self.asked.digest.encode():
                    return None
                for group in range(file.num_row_groups):
                    digest.add(file.read_row_group(group).to_pandas())
        except (ArrowException, OSError, ValueError):  # cut short, or not what was written
            return None
        if not self.asked.feasible and digest.points != self.asked.points(place):
            return None
        digest.points = self.asked.points(place)
        return digest

    def write(self, place: int, partition: bytes) -> None:
        """Keep a partition."""
        with replacing(self.path / file_name(place)) as temporary:
            temporary.write_bytes(partition)


def _differing(held: Mapping[str, Any], asked: Mapping[str, Any]) -> Iterator[str]:
    """What two questions differ in, in words."""
    for key, words in _NAMES.items():
        before, now = held.get(key), asked[key]
        if before == now:
            continue
        if key == "over":
            one, other = ({str(axis["name"]): axis for axis in axes} for axes in (before or [], now))
            names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
            yield f"{words} {', '.join(names)}" if names else "parameters in another order"
        elif key == "version":
            yield f"made by Mantile {before}, this is {now}"
        else:
            yield words


def _digest(of: Any) -> str:
    text = of if isinstance(of, str) else json.dumps(of, default=str)
    return sha256(text.encode()).hexdigest()[:32]
