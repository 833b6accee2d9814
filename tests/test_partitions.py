"""Sweeps in partitions: the table of an unbroken sweep, also after a kill; other questions are refused."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mantile import sweep
from mantile.cli import main
from mantile.cli.flags import swept_values
from mantile.estimates.partitions import MANIFEST, PartitionFolder, Partitions, file_name, partitions
from mantile.estimates.sweep import FRONT, Digest, grid
from mantile.library.errors import InputError
from mantile.library.scenario import Scenario, parse_scenario

needs_pyarrow = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
needs_dask = pytest.mark.skipif(
    find_spec("pyarrow") is None or find_spec("distributed") is None, reason="distributed is not installed"
)

BASE = {
    "model": "llama-3.3-70b",
    "accelerator": "h100-sxm",
    "input_tokens": 2048,
    "output_tokens": 256,
    "concurrency": 16,
}
OVER = {
    "framework": ["vllm", "sglang"],
    "tp": [1, 3, 8],
    "utilisation": [1, 0.5],
    "concurrency": range(1, 60),
}
POINTS = 2 * 3 * 2 * 59
ROOT = Path(__file__).resolve().parents[1]


def asked(most: int = 50, **fields: Any) -> Partitions:
    """A small sweep in small partitions."""
    over = fields.pop("over", OVER)
    feasible = fields.pop("feasible", False)
    return partitions(scenario(**fields), over, feasible=feasible, most=most, shown=5)


def scenario(**fields: Any) -> Scenario:
    return parse_scenario(BASE | fields, "scenario")


def filled(path: Path, of: Partitions, places: Iterator[int] | range | None = None) -> Digest:
    """A folder with partitions, worked out here, and what is remembered of them."""
    folder, digest = PartitionFolder(path, of), Digest(5)
    for place in range(len(of)) if places is None else places:
        data, found = of.work_out(place)
        folder.write(place, data)
        digest.join(found)
    return digest


def table_of(path: Path) -> pd.DataFrame:
    """The partitions of a folder, in order."""
    from pyarrow.parquet import ParquetFile

    parts = [ParquetFile(part).read().to_pandas() for part in sorted(path.glob("part-*.parquet"))]
    return pd.concat([_plain(part) for part in parts if len(part)], ignore_index=True)


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """Texts as texts, as each part has categories of its own."""
    texts = {name: object for name in table if isinstance(table[name].dtype, pd.CategoricalDtype)}
    return table.astype(texts)


# --- the same points ----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", [1, 50, 59, 10_000])
def test_parts_are_the_grid_cut(most: int) -> None:
    """Every point once and in order, whatever the size of parts; the types of columns do not depend on it."""
    points = grid(scenario(), OVER | {"concurrency": range(1, 6)} if most == 1 else OVER)
    whole = pd.concat([_plain(table) for table in points.tables()], ignore_index=True)
    blocks = points.blocks(most)
    parts = [_plain(table) for block in blocks for table in points.part(block).tables(threads=1)]
    assert max(map(len, parts)) <= most
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole, check_exact=True)
    assert {tuple(part.dtypes) for part in parts} == {tuple(whole.dtypes)}


@pytest.mark.exhaustive
@needs_pyarrow
@pytest.mark.parametrize("feasible", [False, True])
def test_a_folder_holds_the_table_of_the_sweep(tmp_path: Path, feasible: bool) -> None:
    """Also what is remembered is the same: counts, first points, front and best ones."""
    digest = filled(tmp_path / "points", asked(feasible=feasible))
    whole = sweep(scenario(), OVER, feasible)
    pd.testing.assert_frame_equal(table_of(tmp_path / "points"), _plain(whole), check_exact=True)
    expected = Digest(5)
    expected.add(whole)
    expected.points = POINTS  # those that are left out are counted
    assert digest.to_dict() == expected.to_dict()
    assert _plain(digest.first).equals(_plain(expected.first.astype(digest.first.dtypes)))
    assert len(digest.front) and digest.points == POINTS > digest.feasible


def test_accelerators_of_ones_own_travel_with_the_question(tmp_path: Path) -> None:
    """A worker elsewhere has no files of this machine: what is packed holds all that is needed."""
    chip = tmp_path / "mine.yaml"
    figures = (
        "unit: {}, source: 'Zeta sheet; page 2; https://zeta.example', date: 2026-01-01, status: datasheet"
    )
    known = {
        "peak_bf16": (900, "TFLOP/s"),
        "memory_capacity": (192, "GiB"),
        "memory_bandwidth": (4000, "GB/s"),
    }
    lines = ["id: mine", 'version: "1"', "name: Mine", "vendor: NVIDIA", "generation: hopper"]
    lines += [f"{name}: {{value: {value}, {figures.format(unit)}}}" for name, (value, unit) in known.items()]
    lines += [
        f"{name}: {{value: null, {figures.format('TFLOP/s')}, note: none}}"
        for name in ("peak_fp8", "peak_fp4")
    ]
    chip.write_text("\n".join(lines), encoding="utf-8")
    made = asked(accelerator=str(chip), over={"tp": [4, 8], "accelerator": ["h200-sxm", str(chip)]})
    packed = made.packed()
    chip.unlink()
    there = pickle.loads(zlib.decompress(packed))
    assert there.digest == made.digest
    [table] = there.grid.tables()
    assert table["accelerator"].tolist() == ["h200-sxm", "mine"] * 2


# --- going on -----------------------------------------------------------------------------------------------


@needs_pyarrow
def test_what_is_there_and_whole_is_read(tmp_path: Path) -> None:
    """A file that is cut short, of another question, or half written is worked out again."""
    of = asked()
    filled(tmp_path, of, range(4))
    filled(tmp_path / "others", asked(output_tokens=300), range(3))
    (tmp_path / "others" / file_name(2)).replace(tmp_path / file_name(2))
    cut = tmp_path / file_name(1)
    cut.write_bytes(cut.read_bytes()[:-100])
    broken = bytearray((tmp_path / file_name(3)).read_bytes())
    broken[len(broken) // 3] ^= 0xFF
    (tmp_path / file_name(3)).write_bytes(broken)
    left = tmp_path / ".left.parquet"
    left.touch()
    (tmp_path / "others").rename(tmp_path.parent / "others")
    folder = PartitionFolder(tmp_path, of)
    assert not left.exists()
    assert [folder.read(place) is not None for place in range(5)] == [True, False, False, False, False]


@needs_pyarrow
@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"output_tokens": 300}, "another scenario"),
        ({"model": "llama-3.1-8b"}, "another model"),
        ({"over": OVER | {"concurrency": range(1, 61)}}, "other values of concurrency"),
        ({"over": dict(reversed(OVER.items()))}, "parameters in another order"),
        ({"feasible": True}, "with and without --feasible"),
        ({"most": 60}, "another size of partitions"),
    ],
)
def test_another_question_is_refused_by_name(tmp_path: Path, other: dict[str, Any], words: str) -> None:
    filled(tmp_path, asked(), range(0))
    PartitionFolder(tmp_path, asked())
    with pytest.raises(InputError, match=words):
        PartitionFolder(tmp_path, asked(**other))


@needs_pyarrow
def test_other_versions_and_other_files_are_refused(tmp_path: Path) -> None:
    filled(tmp_path, asked(), range(0))
    held = json.loads((tmp_path / MANIFEST).read_text())
    (tmp_path / MANIFEST).write_text(json.dumps(held | {"version": "0.1.0"}))
    with pytest.raises(InputError, match=r"made by Mantile 0\.1\.0, this is "):
        PartitionFolder(tmp_path, asked())
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(InputError, match=r"sweep\.json: cannot read"):
        PartitionFolder(tmp_path, asked())
    (tmp_path / MANIFEST).rename(tmp_path / "notes.txt")
    with pytest.raises(InputError, match="holds other files"):
        PartitionFolder(tmp_path, asked())
    for path, words in (("a.parquet", "expected a folder"), ("none/points", "there is no folder")):
        with pytest.raises(InputError, match=words):
            PartitionFolder(tmp_path / path, asked())
    assert [item.name for item in tmp_path.iterdir()] == ["notes.txt"]


# --- on workers ---------------------------------------------------------------------------------------------

COMMAND = ("llama-3.3-70b", "--isl", "2048", "--osl", "256", "--accelerator", "h100-sxm")
SWEPT = ("--over", "tp=1,2,4,8", "--over", "input_tokens=100:1000:100", "--over", "concurrency=1:200:1")


def _process(folder: Path, *more: str) -> subprocess.Popen[str]:
    arguments = (*COMMAND, *SWEPT, "--scheduler", "local", "--workers", "1", "--partition-points", "100")
    return subprocess.Popen(
        [sys.executable, "-m", "mantile", "sweep", *arguments, "-o", str(folder), "--json", *more],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=_hears_interrupts,
    )


def _hears_interrupts() -> None:
    """A shell that runs the tests in the background makes all of them deaf to Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _when(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something holds."""
    while not holds():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


def _count(folder: Path) -> int:
    return len([*folder.glob("part-*.parquet")])


@pytest.mark.exhaustive
@needs_dask
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_killed_interrupted_and_resumed_it_is_the_same_table(tmp_path: Path) -> None:
    """kill -9 of the command, then Ctrl-C, then to the end: the table of an unbroken sweep.

    Partitions that were there are not written again.
    """
    folder = tmp_path / "points"
    killed = _process(folder)
    _when(lambda: _count(folder) >= 3, killed)
    killed.kill()
    killed.communicate()
    there = _count(folder)
    stopped = _process(folder)
    _when(lambda: _count(folder) > there + 2, stopped)
    os.killpg(stopped.pid, signal.SIGINT)  # as a terminal does, to all processes
    _, told = stopped.communicate(timeout=60)
    assert (stopped.returncode, told) == (
        130,
        f"mantile: stopped; {folder}: the same command goes on from here\n",
    )
    kept = {path.name: path.stat().st_mtime_ns for path in folder.glob("part-*.parquet")}
    assert there < len(kept) < 80, "the sweep was over before it was stopped"
    ended = _process(folder)
    out, errors = ended.communicate(timeout=300)
    assert (ended.returncode, errors) == (0, "")
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}.items()
    assert not [*folder.glob(".*")] and _count(folder) == 80
    over = dict(swept_values(text) for text in SWEPT[1::2])
    whole = sweep(scenario(), over)
    pd.testing.assert_frame_equal(table_of(folder), _plain(whole), check_exact=True)
    digest, said = Digest(), json.loads(out)
    digest.add(whole)
    assert (said["points"], said["feasible"]) == (8_000, digest.feasible)
    assert [point[FRONT[0]] for point in said["pareto"]] == digest.front[FRONT[0]].tolist()
    _duckdb(folder, whole)


def _duckdb(folder: Path, whole: pd.DataFrame) -> None:
    """The queries of mantile/cli/README.md, where DuckDB is here."""
    if find_spec("duckdb") is None:
        return
    import duckdb

    readme = (ROOT / "mantile" / "cli" / "README.md").read_text(encoding="utf-8")
    _, _, rest = readme.partition("```text\nSELECT")
    assert rest, "no query in mantile/cli/README.md"
    query = f"SELECT{rest.partition('```')[0]}".replace("points/", f"{folder}/")
    rows = [duckdb.sql(one).fetchall() for one in query.split(";") if one.strip()]
    fits = whole[whole["feasibility"] == "fits"]
    assert rows[0] == [(8_000, len(fits))]
    fast = fits[fits["interactivity_tokens_per_s"] >= 40]
    best = fast.groupby("tp")["usd_per_million_tokens_output"].min().sort_values()
    assert [(row[0], row[-1]) for row in rows[1]] == [*best.items()]


@needs_dask
def test_what_cannot_be_asked_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit status 2, and nothing is left behind but for an empty folder."""

    def said(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["mantile", "sweep", *COMMAND, "--over", "tp=4,8", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        [line] = capsys.readouterr().err.splitlines()
        return line

    folder = str(tmp_path / "points")
    load = ("--concurrency", "4")
    assert "expected local, or an address" in said(*load, "--scheduler", "http://there:1", "-o", folder)
    assert "workers of its own" in said(*load, "--scheduler", "tcp://there:1", "--workers", "2", "-o", folder)
    assert "expected one folder" in said(*load, "--scheduler", "local")
    assert "expected a folder" in said(*load, "--scheduler", "local", "-o", f"{folder}.parquet")
    assert "--workers: only with --scheduler" in said(*load, "--workers", "2")
    assert "--partition-points: only with" in said(*load, "--partition-points", "2")
    assert "unknown" in said("--concurrency", "4", "--over", "tpp=1", "--scheduler", "local", "-o", folder)
    assert not [*tmp_path.iterdir()]
    scheduled = sys.modules["mantile.estimates.scheduled"]
    monkeypatch.setattr(scheduled, "_WAIT", 0.5)
    assert "no answer" in said(*load, "--scheduler", "tcp://127.0.0.1:9", "-o", folder)
    monkeypatch.setattr(scheduled, "find_spec", lambda name: None)
    assert said(*load, "--scheduler", "local", "-o", folder).endswith("pip install 'mantile[dask]'")


def test_the_scheduler_of_an_engine_keeps_its_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (*COMMAND, "--concurrency", "4", "--over", "tp=4,8", "--scheduler", "whole-prompts", "--json")
    monkeypatch.setattr(sys, "argv", ["mantile", "sweep", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code in (None, 0)
    expected = Digest()
    expected.add(sweep(scenario(concurrency=4, scheduler="whole-prompts"), {"tp": [4, 8]}))
    assert json.loads(capsys.readouterr().out)["best"] == expected.to_dict()["best"]
