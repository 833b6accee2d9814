"""Commands killed at any moment: no half file under the final name, and the next run tidies up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

MOMENTS = int(os.environ.get("MANTILE_KILLED", "12"))
"""Of all commands together: MANTILE_KILLED=200 pytest tests/test_killed.py -s shows the table of so many."""
PLAN = ["llama-3.2-1b", "--accelerator", "h100-sxm", "--isl", "1000", "--osl", "100"]
RUNS = """row_id,source,source_ref,measured_on,framework,framework_version,image,model,system,gpus,precision,\
moe_precision,kv_dtype,mode,isl,osl,concurrency,tp,pp,ep,dp_attention,ttft_ms,tpot_ms,median_ttft_ms,\
median_tpot_ms,out_tok_s_gpu,spec_decode,len_sampling,notes
s1,a table,t,2026-02-01,vllm,0.19.0,v0.19.0,meta-llama/Llama-3.3-70B-Instruct,h100_sxm,8,fp8,,bf16,\
agg,1024,512,16,8,1,1,1,61.3,7.24,50,,,none,fixed,
"""
COMMANDS = {
    "build": ["build", *PLAN, "--concurrency", "4", "-o", "out/run.xlsx"],
    "sweep": ["sweep", *PLAN, "--over", "concurrency=1..3000", "-o", "out/points.csv"],
    "calibrate": ["calibrate", "runs.csv", "-o", "out"],
}

# Imports once; then each run is a fork that is killed, at a moment of the whole run or of its writing.
_KILLER = """
import contextlib, io, json, os, random, shutil, signal, sys, time, zipfile
from pathlib import Path
import mantile.cli.commands, mantile.cli.sweeps, mantile.cli.measured
import mantile.measured.calibrate, mantile.workbook.write
from mantile.cli import main

name, words, moments = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
rng, out = random.Random(name), Path("out")

def start():
    child = os.fork()
    if child:
        return child
    sys.argv = ["mantile", *words]
    status = 1
    try:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            main()
    except SystemExit as end:
        status = end.code or 0
    finally:
        os._exit(status)

def ended(child):
    return os.waitpid(child, os.WNOHANG)[0] == child

def partial():
    return list(out.glob(".mantile-*"))

def content(file):
    if file.suffix != ".xlsx":
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:  # a cut file has no table of contents
        assert archive.testzip() is None, file
        parts = [item for item in archive.infolist() if "docProps" not in item.filename]
        return sorted((item.filename, item.CRC) for item in parts)

def wait_for_partial(child):
    while not partial():
        if ended(child):
            return False
        time.sleep(0.0005)
    return True

def fresh(old):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    for file in old:
        (out / file).write_bytes(b"old")

fresh([])
began, child, wrote = time.monotonic(), start(), 0.0
if wait_for_partial(child):
    since = time.monotonic()
    while partial():
        time.sleep(0.0005)
    wrote = time.monotonic() - since
    assert os.waitpid(child, 0)[1] == 0
took = time.monotonic() - began
whole = {file.name: content(file) for file in out.iterdir()}
found = {"command": name, "moments": 0, "none": 0, "old": 0, "whole": 0, "partial left": 0, "half": []}
for moment in range(moments):
    old = list(whole) if name != "calibrate" and moment % 4 >= 2 else []  # calibrate never overwrites
    fresh(old)
    child = start()
    if moment % 2:
        done = not wait_for_partial(child)
        time.sleep(0 if done else rng.uniform(0, 1.2 * wrote))
    else:
        done = False
        time.sleep(rng.uniform(0, took))
    if not done:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    found["moments"] += 1
    found["partial left"] += bool(partial())
    for file in whole:
        there = (out / file).exists()
        if there and old and (out / file).stat().st_size == 3:
            found["old"] += 1
        elif not there:
            found["none"] += 1
        else:
            try:
                assert content(out / file) == whole[file]
                found["whole"] += 1
            except Exception as error:
                found["half"].append(f"{file}: {error!r}")
    found["half"] += [str(file) for file in out.iterdir() if file.name not in whole and file not in partial()]
left = partial()
for _ in range(100):  # as a killed run leaves one; a file is written in less than a millisecond
    if left:
        break
    fresh([])
    child = start()
    if wait_for_partial(child):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    left = partial()
for file in whole:
    (out / file).unlink(missing_ok=True)
os.waitpid(start(), 0)
found |= {"left before": len(left), "left after": len(partial()), "took": took, "wrote": wrote}
print(json.dumps(found | {"files": len(whole)}))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
def test_no_half_file_whenever_a_run_is_killed(tmp_path: Path, command: str) -> None:
    """There is no file, the one before, or the whole new one. What was half written the next run removes."""
    (tmp_path / "runs.csv").write_text(RUNS, encoding="utf-8")
    words = [command, json.dumps(COMMANDS[command]), str(max(1, MOMENTS // len(COMMANDS)))]
    done = subprocess.run(
        [sys.executable, "-c", _KILLER, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(found)
    assert (
        found["half"] == []
        and found["none"] + found["old"] + found["whole"] == found["moments"] * found["files"]
    )
    assert found["left before"] > 0 and found["left after"] == 0


SEARCH = ["llama-3.2-1b", "--accelerator", "h100-sxm,l40s", "--isl", "1000", "--osl", "100", "--tpot", "0.02"]
IN_PARTS = ["--keep", "parts", "--partition-points", "20", "--json"]


@pytest.mark.exhaustive
@pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_a_search_that_was_killed_goes_on(tmp_path: Path) -> None:
    """kill -9, twice, then to the end: the answer of a search in one piece; no part is worked out twice."""
    command = [sys.executable, "-m", "mantile", "size", *SEARCH, "--users", "20"]
    there: dict[str, int] = {}
    for _ in range(2):
        with subprocess.Popen([*command, *IN_PARTS], cwd=tmp_path, stdout=subprocess.DEVNULL) as killed:
            while len(_parts(tmp_path)) < len(there) + 3:
                assert killed.poll() is None, "it was over before it was killed"
                time.sleep(0.005)
            killed.kill()
        now = _parts(tmp_path)
        assert there.items() <= now.items()
        there = now
    ended = subprocess.run([*command, *IN_PARTS], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert there.items() <= _parts(tmp_path).items() and len(_parts(tmp_path)) > len(there)
    assert not [*(tmp_path / "parts").glob(".*")]
    whole = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(ended.stdout) == json.loads(whole.stdout)


def _parts(folder: Path) -> dict[str, int]:
    """Parts that are kept, with when each was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "parts").glob("[!.]*.parquet")}
