"""A folder with parts of long work, each of which appears complete or not at all, and with what was asked.

A run that was killed goes on where it was: the parts that are there and whole are read, the others are worked
out. Another question is refused by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from mantile.library.errors import InputError
from mantile.library.files import replacing

QUESTION = "mantile.question"
"""Beside the columns of a part: what it belongs to."""
COMMON = {
    "version": "made by another version of Mantile",
    "scenario": "another scenario",
    "model": "another model",
    "library": "other profiles",
}
"""What may differ between any two questions, as errors call it."""


class KeptParts:
    """The folder of a question.

    Args:
        path: is made where it is not there; the folder that it lies in is.
        manifest: what is asked, so that another question can be told from it.
        name: the file that holds the manifest.
        words: what may differ between two questions, by key of the manifest, as errors call it.
        of: what the parts hold, in errors.

    Raises:
        InputError: naming the folder, if it holds something else, or the answer to another question.
    """

    def __init__(
        self, path: Path, manifest: Mapping[str, Any], name: str, words: Mapping[str, str], of: str
    ) -> None:
        if find_spec("pyarrow") is None:
            raise InputError(f"{path}: {of} need pyarrow: pip install 'mantile[dask]'")
        if path.suffix in (".csv", ".parquet", ".xlsx") or path.is_file():
            raise InputError(f"{path}: expected a folder for the {of}, such as {path.with_suffix('')}/")
        if not path.parent.is_dir():
            raise InputError(f"{path}: there is no folder {path.parent}")
        self.path, self.digest, self._of = path, digest(manifest), of
        path.mkdir(exist_ok=True)
        if (path / name).is_file():
            self._require_same(path / name, manifest, words)
        elif any(path.iterdir()):
            raise InputError(
                f"{path}: holds other files; expected an empty folder or that of the same question"
            )
        else:
            with replacing(path / name) as temporary:
                temporary.write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        for left in path.glob(".*.parquet"):  # of a run that was killed while it wrote
            left.unlink(missing_ok=True)

    def _require_same(self, file: Path, manifest: Mapping[str, Any], words: Mapping[str, str]) -> None:
        try:
            held = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: cannot read: {error}; expected another folder") from error
        asked = json.loads(json.dumps(manifest))
        if held == asked:
            return
        differing = [*_differing(held if isinstance(held, dict) else {}, asked, words)]
        raise InputError(
            f"{self.path}: holds the {self._of} of another question ("
            f"{'; '.join(differing) or 'another form'}); expected the same question, or another folder"
        )

    def read(self, name: str, take: Callable[[pd.DataFrame], None]) -> bool:
        """Whether a part is there and whole; `take` gets its pieces in order, also those before a fault."""
        path = self.path / name
        if not path.is_file():
            return False
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            with ParquetFile(path, page_checksum_verification=True) as file:
                about = file.schema_arrow.metadata or {}
                if about.get(QUESTION.encode()) != self.digest.encode():
                    return False
                for group in range(file.num_row_groups):
                    take(file.read_row_group(group).to_pandas())
        except (ArrowException, OSError, ValueError):  # cut short, or not what was written
            return False
        return True

    def write(self, name: str, part: bytes) -> None:
        """Keep a part."""
        with replacing(self.path / name) as temporary:
            temporary.write_bytes(part)


def _differing(held: Mapping[str, Any], asked: Mapping[str, Any], words: Mapping[str, str]) -> Iterator[str]:
    """What two questions differ in, in words."""
    for key, told in words.items():
        before, now = held.get(key), asked[key]
        if before == now:
            continue
        if key == "over":
            one, other = ({str(axis["name"]): axis for axis in axes} for axes in (before or [], now))
            names = [name for name in {**one, **other} if one.get(name) != other.get(name)]
            yield f"{told} {', '.join(names)}" if names else "parameters in another order"
        elif key == "version":
            yield f"made by Mantile {before}, this is {now}"
        else:
            yield told


def digest(of: Any) -> str:
    """Anything that JSON holds as one word."""
    text = of if isinstance(of, str) else json.dumps(of, default=str)
    return sha256(text.encode()).hexdigest()[:32]
