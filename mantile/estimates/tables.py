"""Tables to files, a piece at a time.

CSV without formulas in it, or Parquet with a row group for each piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from mantile.library.errors import InputError
from mantile.library.files import replacing

REPEATED = 4  # rows for each value of a column from which on each value is made a text once
RISKY = ("=", "+", "-", "@", "\t", "\r")  # spreadsheets take a text that begins so for a formula


@contextmanager
def table_file(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A table to be written in pieces of the same columns; the file appears complete or not at all.

    Args:
        path: ends in .csv or .parquet.

    Raises:
        InputError: naming the file, if it is of another kind, cannot be written, or needs a package that is
            absent.
    """
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path}: expected a file name that ends in .csv or .parquet")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    if path.suffix == ".parquet" and find_spec("pyarrow") is None:
        raise InputError(
            f"{path}: Parquet needs pyarrow: pip install 'mantile[parquet]'; or a file name that ends in .csv"
        )
    with replacing(path) as temporary, (_csv if path.suffix == ".csv" else parquet)(temporary) as append:
        yield append


@contextmanager
def _csv(path: Path) -> Iterator[Callable[[pd.DataFrame], None]]:
    with path.open("w", encoding="utf-8", newline="") as file:

        def append(table: pd.DataFrame) -> None:
            file.write(csv_text(table, file.tell() == 0))

        yield append


def csv_text(table: pd.DataFrame, head: bool) -> str:
    """A table as CSV in which no text is read as a formula.

    Args:
        head: whether the names of the columns stand in the first line.
    """
    texts = pd.DataFrame({name: _as_texts(table[name]) for name in table})
    return str(texts.to_csv(None, index=False, header=head))


def _as_texts(column: pd.Series) -> Any:
    """A column for CSV.

    No text is read as a formula. Values that repeat become texts once, as formatting numbers is slow.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column.cat.rename_categories(_harmless)
    if not pd.api.types.is_numeric_dtype(column):
        return column.map(_harmless, na_action="ignore")
    places, values = pd.factorize(column)
    return (
        pd.Categorical.from_codes(places, pd.Index(values).astype(str))
        if len(values) * REPEATED < len(column)
        else column
    )


def _harmless(value: Any) -> Any:
    """A value with an apostrophe in front, if it is a text that spreadsheets would take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(RISKY) else value


@contextmanager
def parquet(
    path: Path | BinaryIO, about: Mapping[str, str] | None = None
) -> Iterator[Callable[[pd.DataFrame], None]]:
    """A table in columns to be written in pieces.

    Args:
        about: what a reader finds beside the columns.
    """
    import pyarrow
    from pyarrow.parquet import ParquetWriter

    writer: Any = None

    def append(table: pd.DataFrame) -> None:
        nonlocal writer
        texts = {
            key: pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
            for key in table
            if isinstance(table[key].dtype, pd.CategoricalDtype)
        }
        schema = pyarrow.schema(
            [(key, texts.get(key) or pyarrow.from_numpy_dtype(table[key].dtype)) for key in table],
            metadata=about,
        )
        piece = pyarrow.Table.from_arrays(
            [pyarrow.array(table[key]).cast(schema.field(key).type) for key in table], schema=schema
        )
        numbers = [field.name for field in schema if pyarrow.types.is_floating(field.type)]
        writer = writer or ParquetWriter(
            path,
            schema,
            use_dictionary=[field.name for field in schema if field.name not in numbers],
            use_byte_stream_split=numbers,  # smaller by two fifths, and sooner written
            compression="zstd",
            write_page_checksum=True,
        )
        writer.write_table(piece)

    try:
        yield append
    finally:
        if writer is not None:
            writer.close()
