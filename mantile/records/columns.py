"""Records as a table in columns, Parquet: for other programs to read, and for mantile to import again.

Columns are those of the flat form, its metrics each in one of their own, and the whole record with its
signature. What is imported is the record; columns that do not agree with it are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.records.record import Record, canonical
from mantile.records.store import Stored, verified

_METRIC = "metrics."
_TEXTS = ("run_id", "timestamp_utc", "model_id", "runtime_id", "hardware_id", "quant", "parallelism", "env")
_COUNTS = ("context_tokens", "output_tokens", "concurrency")
_WHOLE = ("record", "signature")
MOST = 1_000_000  # rows of a table


def write_parquet(path: Path, records: Sequence[Stored]) -> Path:
    """Write records as a table, which appears complete or not at all.

    Raises:
        InputError: naming the file, if it cannot be written or pyarrow is absent.
    """
    _require_pyarrow(path)
    import pyarrow
    from pyarrow.parquet import write_table

    rows = [_row(one.record) for one in records]
    metrics = sorted({name for row in rows for name in row if name.startswith(_METRIC)})
    columns: dict[str, Any] = {
        **{name: pyarrow.array([row[name] for row in rows], pyarrow.string()) for name in _TEXTS},
        **{name: pyarrow.array([row[name] for row in rows], pyarrow.int64()) for name in _COUNTS},
        **{name: pyarrow.array([row.get(name) for row in rows], pyarrow.float64()) for name in metrics},
        "record": pyarrow.array([one.record.text for one in records], pyarrow.string()),
        "signature": pyarrow.array(
            [None if one.signature is None else json.dumps(dict(one.signature)) for one in records],
            pyarrow.string(),
        ),
    }
    with replacing(path) as temporary:
        write_table(pyarrow.table(columns), temporary)
    return path


def read_parquet(path: Path, trusted: Mapping[bytes, str] | None = None) -> list[Stored]:
    """The records of a table that `write_parquet` wrote, each verified.

    Raises:
        InputError: naming the file, and the record, where one was changed, its signature does not hold, or a
            column does not agree with it.
    """
    _require_pyarrow(path)
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(path)
        if file.metadata.num_rows > MOST:
            raise InputError(f"{path}: {file.metadata.num_rows:,} rows; expected at most {MOST:,}")
        rows = file.read().to_pylist()
    except (ArrowException, OSError) as error:
        raise InputError(f"{path}: not a table in Parquet, or damaged") from error
    found = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row.get("record"), str) or not isinstance(row.get("run_id"), str):
            raise InputError(f"{path}, row {number}: expected columns run_id and record, as mantile exports")
        one = verified(row["run_id"], row["record"], _signature(row, path, number), str(path), trusted)
        expected = _row(one.record)
        shown = {name: value for name, value in row.items() if name not in _WHOLE and value is not None}
        stated = {name: value for name, value in expected.items() if value is not None}
        if shown != stated:
            name = min(name for name in {*shown, *stated} if shown.get(name) != stated.get(name))
            raise InputError(f"{path}: record {one.id[:12]}: column {name} does not agree with the record")
        found.append(one)
    return found


def _row(record: Record) -> dict[str, Any]:
    flat = record.flat()
    metrics = {f"{_METRIC}{name}": float(value) for name, value in flat.pop("metrics").items()}
    flat |= {name: canonical(flat[name]) for name in ("parallelism", "env")}
    return flat | metrics


def _signature(row: Mapping[str, Any], path: Path, number: int) -> Any:
    text = row.get("signature")
    try:
        return None if text is None else json.loads(text)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}, row {number}: its signature is damaged") from error


def _require_pyarrow(path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise InputError(f"{path}: Parquet needs pyarrow: pip install 'mantile[parquet]'")
