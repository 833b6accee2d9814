"""The server as a process of its own: lines of its README, requests that are made up, and how it ends."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from serving import serving
from test_documents import COLUMNS, FILES, blocks

README = "mantile/server/README.md"
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
EXAMPLES = 4  # of each operation, beside those that the schema has
SCHEMATHESIS = shutil.which("schemathesis", path=str(Path(sys.executable).parent))


def lines() -> Iterator[tuple[str, str]]:
    """The lines of curl in the README, each with what stands below it; a line ends where its quotes do."""
    for block in blocks(README):
        if block.language != "console":
            continue
        assert max(map(len, block.text.splitlines())) <= COLUMNS, block
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            ends = (found.start() for found in re.finditer("\n", part))
            end = next(place for place in ends if part.count("'", 0, place) % 2 == 0)
            yield part[:end], part[end:].strip("\n")


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_lines_of_the_readme_answer_what_stands_there(tmp_path: Path) -> None:
    """In its order, against a server of this machine; `...` stands for anything."""
    (tmp_path / "config.json").write_text(FILES["config.json"], encoding="utf-8")
    asked = [*lines()]
    with serving("--seconds", "120") as place:
        for line, shown in asked:
            command = ["bash", "-c", line.replace("localhost:8000", place)]
            found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert found.returncode == 0, (line, found.stderr)
            printed = found.stdout.strip("\n")
            told = shown if "\n" in printed else shown.replace("\n", "")
            pattern = ".*?".join(map(re.escape, told.split("...")))
            assert re.fullmatch(pattern, printed), f"{line}\nanswers\n{printed[:3000]}"
    assert len(asked) >= 18 and (tmp_path / "run.xlsx").read_bytes()[:2] == b"PK"


@pytest.mark.exhaustive
@pytest.mark.skipif(SCHEMATHESIS is None, reason="needs schemathesis")
def test_requests_that_are_made_up_break_nothing(tmp_path: Path) -> None:
    """What schemathesis makes of the schema: no error of the program, no answer that the schema lacks."""
    assert SCHEMATHESIS is not None
    with serving("--rate", "0", "--seconds", "120") as place:
        found = subprocess.run(
            [
                SCHEMATHESIS,
                *("run", f"http://{place}/openapi.json", "--checks", CHECKS, "--no-color"),
                *("--phases", "examples,fuzzing", "--max-examples", str(EXAMPLES), "--seed", "14"),
                *("--request-timeout", "200"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    assert found.returncode == 0, found.stdout[-6000:]
    cases = re.search(r"(\d+) generated, (\d+) passed", found.stdout)
    assert cases is not None and cases[1] == cases[2] and int(cases[1]) > 80, found.stdout[-2000:]


@pytest.mark.exhaustive
def test_several_processes_answer_and_end(tmp_path: Path) -> None:
    """One file of measured runs, and no process that stays behind."""
    import httpx

    with (
        serving("--processes", "2", "--records", str(tmp_path / "runs.db")) as place,
        httpx.Client(base_url=f"http://{place}", timeout=60) as client,
    ):
        assert client.get("/healthz").json()["status"] == "ok"
        assert client.get("/v1/calibrate").json() == {"runs": [], "total": 0}
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400
