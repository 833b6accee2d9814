"""A database of records: one SQLite file, to which records are added and in which none is changed.

Each record stands under its id with its signature. A counter and a digest over all ids in their order stand
beside them, so that a database that lacks a record is refused. Nothing of this stops somebody who writes the
whole database anew: what does is a signature, checked against trusted keys.

Several processes may add at once: each waits for the other.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mantile.library.errors import InputError
from mantile.library.signing import Signature, Verdict, check, sign
from mantile.records.record import KIND, Record, parse_record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SUFFIXES = (".db", ".sqlite")
MAGIC = b"SQLite format 3\x00"
_APPLICATION = 0x4D4E5431  # of the header of the file: MNT1
_PATIENCE = 60.0  # seconds that a writer waits for another
_TABLES = """
CREATE TABLE records (place INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body TEXT NOT NULL, signature TEXT);
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO head VALUES (1, 0, '');
CREATE TRIGGER unchanged BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records are immutable'); END;
CREATE TRIGGER kept BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records are immutable'); END;
"""


@dataclass(frozen=True)
class Stored:
    """A record of a database.

    Args:
        id: of the record.
        record: whole and as it was written.
        signature: who vouches for it; None if nobody.
        verdict: what the signature is worth.
    """

    id: str
    record: Record
    signature: Signature | None
    verdict: Verdict


def stored(
    record: Record, signature: Signature | None = None, key: Ed25519PrivateKey | None = None
) -> Stored:
    """A record to be added.

    Args:
        record: a record.
        signature: of somebody else, which is kept.
        key: to sign it with, where nobody has.
    """
    identifier = record.id
    if signature is None and key is not None:
        signature = sign(KIND, identifier, key)
    return Stored(identifier, record, signature, check(KIND, identifier, signature))


def add(path: Path, records: Sequence[Stored]) -> int:
    """Add records to a database, which is made if there is none; all of them or, where one is wrong, none.

    Returns:
        How many were new. A record that is there already is not added again.

    Raises:
        InputError: naming the file, if it is no database of records, is damaged, or cannot be written.
    """
    for one in records:
        if one.verdict.status == "does not hold":
            raise InputError(f"record {one.id[:12]}: its signature does not hold: {one.verdict.why}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}")
    with _connected(path, "rwc") as database:
        database.execute("BEGIN IMMEDIATE")
        _require_ours(database, path, make=True)
        count, digest = database.execute("SELECT count, digest FROM head").fetchone()
        new = 0
        for one in records:
            if database.execute("SELECT 1 FROM records WHERE id = ?", (one.id,)).fetchone():
                continue
            count, digest, new = count + 1, _chained(digest, one.id), new + 1
            signature = None if one.signature is None else json.dumps(dict(one.signature), sort_keys=True)
            database.execute(
                "INSERT INTO records VALUES (?, ?, ?, ?)", (count, one.id, one.record.text, signature)
            )
        database.execute("UPDATE head SET count = ?, digest = ?", (count, digest))
        database.execute("COMMIT")
        return new


def read(path: Path, trusted: Mapping[bytes, str] | None = None) -> list[Stored]:
    """All records of a database, in the order in which they were added, each verified.

    Args:
        path: of the database.
        trusted: keys of `mantile.library.signing.read_trusted`; with them, each record must be signed by one.

    Raises:
        InputError: naming the file, and the record, where one was changed or lacks, where a signature does
            not hold or is of none of the trusted keys, or where the file is damaged or no database.

    Example:
        for one in read(Path("records.db")):
            print(one.id, one.record.run["model"], one.verdict.status)
    """
    if not path.is_file():
        raise InputError(f"{path}: {'this is a folder, not a file' if path.is_dir() else 'no such file'}")
    with _connected(path, "rw") as database:
        database.execute("BEGIN")
        _require_ours(database, path, make=False)
        rows = database.execute("SELECT place, id, body, signature FROM records ORDER BY place").fetchall()
        count, digest = database.execute("SELECT count, digest FROM head").fetchone()
        database.execute("COMMIT")
    found = [_verified(row, path, trusted) for row in rows]
    if len(found) != count:
        raise InputError(
            f"{path}: {len(found):,} records, and {count:,} were added: it was cut short or records were "
            "taken out; expected all of them: take an export or a copy"
        )
    chain = ""
    for one in found:
        chain = _chained(chain, one.id)
    if chain != digest:
        raise InputError(f"{path}: its records are not those that were added, or not in their order")
    return found


def verified(
    identifier: str, body: str, signature: Signature | None, name: str, trusted: Mapping[bytes, str] | None
) -> Stored:
    """A record as it is held somewhere, checked.

    Raises:
        InputError: naming the record, where it or its signature is not as it should be.
    """
    record = parse_record(body, identifier, name)
    verdict = check(KIND, identifier, signature, trusted)
    if not verdict.ok:
        raise InputError(f"{name}: record {identifier[:12]}: {verdict.words}")
    return Stored(identifier, record, signature, verdict)


def _verified(row: tuple[object, ...], path: Path, trusted: Mapping[bytes, str] | None) -> Stored:
    place, identifier, body, text = row
    if not isinstance(identifier, str) or not isinstance(body, str) or not isinstance(text, str | None):
        raise InputError(f"{path}: record {place}: expected texts")
    try:
        signature = None if text is None else json.loads(text)
    except ValueError as error:
        raise InputError(f"{path}: record {identifier[:12]}: its signature is damaged") from error
    return verified(identifier, body, signature, str(path), trusted)


def _chained(digest: str, identifier: str) -> str:
    return hashlib.sha256(f"{digest}\n{identifier}".encode()).hexdigest()


def is_database(path: Path) -> bool:
    """Whether a file is a database of records by its name."""
    return path.suffix.lower() in SUFFIXES


@contextmanager
def _connected(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    """A database whose errors name its file."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a database of records, {' or '.join(SUFFIXES)}")
    address = f"{path.resolve().as_uri()}?mode={mode}"
    try:
        with closing(sqlite3.connect(address, timeout=_PATIENCE, isolation_level=None, uri=True)) as database:
            yield database
    except sqlite3.OperationalError as error:
        raise InputError(f"{path}: {error}") from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {_damage(path) or error}; take an export or a copy") from error


def _damage(path: Path) -> str:
    """What is wrong with a file that SQLite cannot read."""
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    if not header.startswith(MAGIC):
        return "no database of SQLite"
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    if size < expected:
        return f"cut short: {size:,} of {expected:,} bytes"
    return "damaged"


def _require_ours(database: sqlite3.Connection, path: Path, make: bool) -> None:
    """Refuse a database of something else; fill an empty one in a transaction that writes.

    Raises:
        InputError: naming the file.
    """
    application = database.execute("PRAGMA application_id").fetchone()[0]
    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if make and not tables and application in (0, _APPLICATION):
        for statement in filter(None, map(str.strip, _TABLES.split(";\n"))):
            database.execute(statement)
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
    elif application != _APPLICATION or not tables:
        raise InputError(f"{path}: no database of records; expected one that mantile wrote")
    else:
        pages, page = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        if path.stat().st_size < pages * page:  # SQLite fills what lacks of the last page with zeros
            raise sqlite3.DatabaseError("cut short")
