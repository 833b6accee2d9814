"""Records of measured runs: as they were written, all of them, by whoever signed; or refused by name."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mantile.cli import main
from mantile.library.errors import InputError
from mantile.library.signing import new_key, read_private_key, read_trusted
from mantile.measured.load import load_measurements
from mantile.measured.reconcile import reconcile
from mantile.measured.recorded import record_of, run_of
from mantile.measured.runs import parse_run
from mantile.records.columns import read_parquet, write_parquet
from mantile.records.record import Record
from mantile.records.store import Stored, add, read, stored

RUN = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "framework": "vllm",
    "tp": 2,
    "weights_dtype": "fp8",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "metrics": {"ttft_s": 0.05, "tpot_s": 0.0085},
    "environment": {"framework_version": "0.11.0"},
    "source": "our own",
    "date": "2026-11-20",
}


def record(**fields: Any) -> Record:
    """A record of a run, with other fields."""
    beside = {name: fields.pop(name) for name in ("metrics_beside", "env") if name in fields}
    if "metrics_beside" in beside:
        beside["metrics"] = beside.pop("metrics_beside")
    return record_of(parse_run({**RUN, **fields}, "r1"), **beside)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with two keys."""
    new_key(tmp_path / "me.key")
    new_key(tmp_path / "other.key")
    return tmp_path


@pytest.fixture
def database(tmp_path: Path, keys: Path) -> Path:
    """Three records, all signed."""
    key = read_private_key(keys / "me.key")
    add(tmp_path / "records.db", [stored(record(concurrency=load), key=key) for load in (1, 2, 4)])
    return tmp_path / "records.db"


def test_a_record_is_found_under_its_content(database: Path, keys: Path) -> None:
    """Its id follows from its content; the same again is not added, and reads as the run that it was."""
    found = read(database, read_trusted(keys / "me.pub"))
    assert [one.id for one in found] == [one.record.id for one in found]
    assert [one.record.run["concurrency"] for one in found] == [1, 2, 4]
    assert all((one.verdict.status, one.verdict.signer) == ("holds", "me") for one in found)
    assert add(database, [stored(record(concurrency=2)), stored(record(concurrency=16))]) == 1
    assert len(read(database)) == 4
    run = run_of(found[0], "x")
    assert run.scenario() == parse_run({**RUN, "concurrency": 1}, "r1").scenario()
    assert run.metrics.tpot_s == 0.0085 and run.date == "2026-11-20" and run.id == found[0].id[:12]


def test_the_flat_form_has_the_names_of_others(tmp_path: Path) -> None:
    """And what it does not know is null; reconcile reads it back as the same run."""
    flat = record(metrics_beside={"ttft_p99_s": 0.09}, env={"host": "0123456789abcdef"}).flat()
    assert {name: flat[name] for name in list(flat)[2:10]} == {
        "model_id": "llama-3.1-8b",
        "runtime_id": "vllm 0.11.0",
        "hardware_id": "h100-sxm",
        "quant": "fp8",
        "context_tokens": 1024,
        "output_tokens": 128,
        "concurrency": 8,
        "parallelism": {"tp": 2},
    }
    assert flat["metrics"] == {"ttft_s": 0.05, "tpot_s": 0.0085, "ttft_p99_s": 0.09}
    assert flat["env"] == {"framework_version": "0.11.0", "host": "0123456789abcdef"}
    rate = record(concurrency=None, request_rate=2.5, weights_dtype=None).flat()
    assert rate["quant"] is None and rate["concurrency"] is None and len(flat["run_id"]) == 64
    (tmp_path / "flat.json").write_text(json.dumps({"runs": [flat, rate]}))
    first, second = load_measurements(tmp_path / "flat.json").runs
    assert first.scenario() == parse_run(RUN, "r1").scenario()
    assert first.metrics.given() == RUN["metrics"] and first.environment.framework_version == "0.11.0"
    assert second.request_rate == 2.5 and second.concurrency is None


CHANGED = {
    "metric": (
        "UPDATE records SET body = replace(body, '0.0085', '0.0065') WHERE place = 2",
        "it was changed",
    ),
    "id": ("UPDATE records SET id = 'ab' || substr(id, 3) WHERE place = 2", "it was changed"),
    "form": ("UPDATE records SET body = replace(body, ',', ', ') WHERE place = 2", "it was changed"),
    "signature": (
        "UPDATE records SET signature = (SELECT signature FROM records WHERE place = 1) WHERE place = 2",
        "does not hold: the content was changed since it was signed",
    ),
    "no signature": (
        "UPDATE records SET signature = NULL WHERE place = 2",
        "unsigned: anybody may have changed",
    ),
    "broken signature": ("UPDATE records SET signature = '{' WHERE place = 2", "its signature is damaged"),
}


@pytest.mark.parametrize("change", CHANGED)
def test_a_changed_record_is_refused_by_name(change: str, database: Path, keys: Path) -> None:
    """Whatever was changed of it, by whoever goes around the database's own guard."""
    statement, said = CHANGED[change]
    name = read(database)[1].id[:12]
    with sqlite3.connect(database) as connection:
        with pytest.raises(sqlite3.IntegrityError, match="records are immutable"):
            connection.execute(statement)
        connection.execute("DROP TRIGGER unchanged")
        connection.execute(statement)
    connection.close()
    shown = "ab" + name[2:] if change == "id" else name
    with pytest.raises(InputError, match=f"records.db: record {shown}: .*{said}"):
        read(database, read_trusted(keys / "me.pub"))
    if change != "no signature":
        with pytest.raises(InputError, match="record"):
            load_measurements(database)


def test_records_that_lack_are_missed(database: Path) -> None:
    """The first, the last, or their order."""
    whole = database.read_bytes()
    for statement, said in (
        ("DELETE FROM records WHERE place = 1", "2 records, and 3 were added"),
        ("DELETE FROM records WHERE place = 3", "2 records, and 3 were added"),
        ("UPDATE records SET place = 9 WHERE place = 1", "not those that were added, or not in their order"),
    ):
        database.write_bytes(whole)
        with sqlite3.connect(database) as connection:
            connection.executescript("DROP TRIGGER unchanged; DROP TRIGGER kept")
            connection.execute(statement)
        connection.close()
        with pytest.raises(InputError, match=f"records.db: .*{said}"):
            read(database)


def test_wrong_keys_are_refused(database: Path, keys: Path) -> None:
    """Another key than the trusted one, and a record that nobody signed."""
    with pytest.raises(InputError, match=r"record [0-9a-f]{12}: signed by key .* none of the trusted ones"):
        read(database, read_trusted(keys / "other.pub"))
    assert {one.verdict.status for one in read(database)} == {"unknown key"}
    forged = stored(record(concurrency=64), read(database)[0].signature)
    with pytest.raises(InputError, match="signature does not hold"):
        add(database, [forged])
    assert len(read(database)) == 3


def test_a_database_that_was_cut_short_is_refused(database: Path, tmp_path: Path) -> None:
    """At any byte; and what is no database, or another's, is never written to."""
    whole = database.read_bytes()
    for size in range(0, len(whole), 509):
        database.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"records.db: (cut short|no database|damaged)"):
            read(database)
    database.write_bytes(whole[:-1])
    with pytest.raises(InputError, match=rf"cut short: {len(whole) - 1:,} of {len(whole):,} bytes"):
        read(database)
    with pytest.raises(InputError, match="cut short"):
        add(database, [stored(record())])
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(InputError, match="no database of records"):
        add(other, [stored(record())])
    assert other.read_bytes() == before
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none.db")


WRITER = """
import sys
from pathlib import Path
from mantile.measured.recorded import record_of
from mantile.measured.runs import parse_run
from mantile.records.store import add, stored
import json
run, who = json.loads(sys.argv[2]), int(sys.argv[3])
for number in range(25):
    asked = {**run, "concurrency": 1 + number, "input_tokens": 100 + who * (number % 5 != 0)}
    add(Path(sys.argv[1]), [stored(record_of(parse_run(asked, "r")))])
"""


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    """At once, into a database that neither finds there; what both have is there once."""
    path = tmp_path / "records.db"
    command = [sys.executable, "-c", WRITER, str(path), json.dumps(RUN)]
    running = [subprocess.Popen([*command, str(who)], stderr=subprocess.PIPE, text=True) for who in (1, 2)]
    for writer in running:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    found = [(one.record.run["concurrency"], one.record.run["input_tokens"]) for one in read(path)]
    asked = {(1 + number, 100 + who * (number % 5 != 0)) for number in range(25) for who in (1, 2)}
    assert len(found) == len({*found}) == 45 and {*found} == asked


def test_a_table_in_columns_holds_whole_records(database: Path, keys: Path, tmp_path: Path) -> None:
    """Out and in again with signatures; a changed record, and a column that says another, are refused."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    found = read(database)
    path = write_parquet(tmp_path / "records.parquet", found)
    back = read_parquet(path, read_trusted(keys / "me.pub"))
    assert [(one.id, one.record, one.signature) for one in back] == [
        (one.id, one.record, one.signature) for one in found
    ]
    table = pandas.read_parquet(path)
    assert list(table["metrics.tpot_s"]) == [0.0085] * 3 and list(table["concurrency"]) == [1, 2, 4]
    for column, value, said in (
        ("metrics.tpot_s", 0.001, r"record [0-9a-f]{12}: column metrics.tpot_s does not agree"),
        ("record", table["record"][0].replace("0.0085", "0.0001"), "record [0-9a-f]{12}: it was changed"),
        ("signature", table["signature"][1], "does not hold"),
    ):
        wrong = table.copy()
        wrong.loc[0, column] = value
        wrong.to_parquet(path)
        with pytest.raises(InputError, match=f"records.parquet: .*{said}"):
            read_parquet(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"records.parquet: not a table in Parquet, or damaged"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"model": "/home/somebody/config.json"}, "a record names no folder of a machine"),
        ({"model": "~/m/config.json"}, "a record names no folder of a machine"),
        ({"model": "../m/config.json"}, "a record names no folder of a machine"),
        ({"date": None}, "field date: expected the day of the run"),
        ({"env": {"host": "node17.example.org"}}, "env.host"),
        ({"env": {"prompt": "hello"}}, "prompt"),
        ({"metrics_beside": {"answer": "hello"}}, "metrics.answer"),
    ],
)
def test_what_names_somebody_or_says_something_is_no_record(fields: dict[str, Any], said: str) -> None:
    """There is no place for texts, names and folders."""
    with pytest.raises(InputError, match=re.escape(said)):
        record(**fields)


@pytest.fixture
def say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run a command in the folder: its status and what it says."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mantile", *words])
        with pytest.raises(SystemExit) as stop:
            main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out + told.err

    return run


def test_every_reader_takes_trusted_keys(
    database: Path, keys: Path, say: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """What is signed by another key is refused before anything is compared, fitted or watched."""
    (tmp_path / "runs.json").write_text(json.dumps([{**RUN, "id": "a"}]))
    for command in ("reconcile", "calibrate", "correct", "drift"):
        status, text = say(command, "records.db", "--trusted", "other.pub")
        assert status == 2 and "none of the trusted ones" in text, command
    status, text = say("reconcile", "runs.json", "--trusted", "me.pub")
    assert status == 2 and "nobody signs a file of runs" in text
    assert len(load_measurements(database, read_trusted(keys / "me.pub")).runs) == 3


@pytest.mark.exhaustive
def test_commands(database: Path, say: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """List, show, export, import and verify; reconcile and calibrate take a database as a file of runs."""
    status, text = say("records", "list", "records.db", "--json", "--trusted", "me.pub")
    listed = json.loads(text)["records"]
    assert status == 0 and [one["concurrency"] for one in listed] == [1, 2, 4]
    status, text = say("records", "list", "records.db")
    assert status == 0 and listed[0]["run_id"][:10] in text and "llama-3.1-8b" in text
    status, text = say("records", "show", "records.db", listed[1]["run_id"][:8], "--json")
    shown = json.loads(text)
    assert shown["run"]["concurrency"] == 2 and shown["signature"]["status"] == "unknown key"
    assert say("records", "show", "records.db", "zz")[0] == 2
    assert say("records", "export", "records.db", "-o", "out.parquet")[0] == 0
    assert say("records", "export", "records.db", "-o", "out.json")[0] == 0
    assert "3 new records" in say("records", "import", "copy.db", "out.parquet", "--trusted", "me.pub")[1]
    assert "0 new records; 3 it had already" in say("records", "import", "copy.db", "records.db")[1]
    (tmp_path / "runs.json").write_text(json.dumps([{**RUN, "id": "a"}, {**RUN, "id": "b", "date": None}]))
    status, text = say("records", "import", "copy.db", "runs.json", "--sign", "other.key")
    assert status == 0 and "1 new records" in text and "not taken: b: field date" in text
    assert say("records", "verify", "copy.db")[0] == 0
    assert say("records", "verify", "copy.db", "--trusted", "me.pub")[0] == 1
    status, text = say("reconcile", "copy.db", "--json")
    assert status == 0 and json.loads(text)["answered"] == 4
    status, text = say("calibrate", "copy.db", "-o", "profiles", "--json")
    assert status == 0 and json.loads(text)["runs"] == 4
    with sqlite3.connect(database) as connection:
        connection.execute("DROP TRIGGER unchanged")
        connection.execute("UPDATE records SET body = replace(body, '0.0085', '0.0065')")
    connection.close()
    for words in (("verify", "records.db", "--json"), ("list", "records.db")):
        status, text = say("records", *words)
        assert status == (1 if words[0] == "verify" else 2) and "it was changed" in text
    assert say("reconcile", "records.db")[0] == 2


def test_runs_of_a_database_are_those_of_a_file(database: Path, tmp_path: Path) -> None:
    """The same errors, whichever they are read from."""
    runs = [{**RUN, "id": f"r{load}", "concurrency": load} for load in (1, 2, 4)]
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    of_file, of_database = (
        reconcile(load_measurements(tmp_path / name)).metrics() for name in ("runs.json", "records.db")
    )
    assert of_file == of_database and of_file["tpot"]["n"] == 3


def test_stored_is_what_was_given(tmp_path: Path) -> None:
    """Numbers to the last digit, and all texts."""
    odd = record(metrics={"tpot_s": 0.1 + 0.2}, source="Jörg’s “bench” 日本", metrics_beside={"a.b": 1e-300})
    add(tmp_path / "r.db", [stored(odd)])
    (one,) = read(tmp_path / "r.db")
    assert isinstance(one, Stored) and one.record == odd and one.record.run["metrics"]["tpot_s"] == 0.1 + 0.2
