"""What `mantile verify --about` says of a workbook, and `mantile build --open`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live import few
from packages import Parts

import mantile
from mantile.cli.application import main
from mantile.roundtrip.about import about

SCENARIO: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "mi355x",  # nobody states its cloud price
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "run.xlsx"
    chips = few(("mi355x", "h100-sxm"))
    return mantile.estimate(mantile.Scenario(**SCENARIO), library=chips).to_excel(path)


@pytest.fixture
def edit(made: Path, tmp_path: Path) -> Callable[..., Path]:
    """Type into cells of a copy."""

    def typed(**cells: Any) -> Path:
        parts = Parts(made)
        for name, value in cells.items():
            place = re.search(rf'<definedName name="{name}">([^<]*)!([^<]*)<', parts.text("xl/workbook.xml"))
            assert place is not None, name
            parts.type(place[1].strip("'"), place[2].replace("$", ""), value)
        return parts.save(tmp_path / "edited.xlsx")

    return typed


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """A command line: its exit status, what it prints, and its errors."""

    def ran(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["mantile", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return ran


def test_says_what_a_workbook_is(run: Any, made: Path) -> None:
    """As generated, in ten lines, the verdict first; a price that nobody states is null in JSON."""
    status, out, err = run("verify", "--about", str(made))
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert (status, err, len(out.splitlines())) == (0, "", 10)
    assert out.startswith(f"{made}: agrees. All ")
    for label, word in (
        ("title", "on 1 × Instinct MI355X"),
        ("model", "llama-3.1-8b"),
        ("system", "mi355x"),
        ("plan", "TP 1; fits"),
        ("workload", "1,024 input and 128 output tokens, concurrency 8"),
        ("made", f"by mantile {mantile.__version__}"),
        (f"{made}:", f"{made}: agrees. All "),
        (f"{made}:", "no input edited."),
        ("cost", "per hour not known, per million output tokens not known"),
        ("checks", "PRICE_UNKNOWN"),
    ):
        assert word in lines[label]
    facts = json.loads(run("verify", "--about", str(made), "--json")[1])
    expected = mantile.estimate(mantile.Scenario(**SCENARIO)).results(0)
    assert facts["ok"] is True
    assert facts["digest"][:4] in lines["made"]
    assert facts["scenarios"] == json.loads(json.dumps([expected]))
    assert facts["scenarios"][0]["usd_per_hour"] is None


def test_edited_inputs_are_named_and_followed(run: Any, edit: Any) -> None:
    """Cell, was, is; the results are those of the edited inputs, and it still verifies."""
    path = edit(in_input_tokens=4096, in_concurrency=16)
    status, out, _ = run("verify", "--about", str(path))
    assert status == 0
    assert "2 inputs edited, which is fine." in out.splitlines()[0]
    assert re.search(r"Summary!H7, Input tokens: held 1,024, holds 4,096\n", out)
    assert re.search(r"Summary!J7, Concurrency: held 8, holds 16\n", out)
    expected = mantile.estimate(mantile.Scenario(**SCENARIO | {"input_tokens": 4096, "concurrency": 16}))
    assert about(path).estimate.ttft == pytest.approx(expected.ttft, rel=1e-12)


@pytest.mark.parametrize("value", ["four", None])
def test_no_results_where_an_input_cannot_be_read(run: Any, edit: Any, value: Any) -> None:
    """The line names the cell, and nothing that was generated passes for what the file says now."""
    path = edit(in_tp=value)
    status, out, err = run("verify", "--about", str(path))
    assert (status, err) == (1, "")
    assert "(inputs.tp)" in out
    assert "as generated" in out
    assert "TTFT" not in out
    if value is None:
        return
    facts = json.loads(run("verify", "--about", str(path), "--json")[1])
    assert (facts["ok"], facts["scenarios"], facts["edited"]) == (False, None, None)


def test_a_formula_typed_over_does_not_verify(run: Any, edit: Any) -> None:
    status, out, _ = run("verify", "--about", str(edit(ttft=0.001)))
    assert status == 1
    assert "does NOT agree. 1 cell overwritten; " in out.splitlines()[0]
    assert re.search(r"- Calculation!H\d+, .*: held =.*, holds 0\.001 \(overwritten\)\n", out)


def test_refuses_other_files(run: Any, tmp_path: Path) -> None:
    (tmp_path / "text.xlsx").write_text("no workbook")
    status, _, err = run("verify", "--about", str(tmp_path / "text.xlsx"))
    assert status == 2
    assert "text.xlsx" in err


def test_build_opens_what_it_wrote(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the program of the desktop; without one the file is there, and the message says so."""
    shown: list[str] = []
    status = 0

    def launch(path: str) -> int:
        shown.append(path)
        return status

    monkeypatch.setattr("typer.launch", launch)
    (tmp_path / "scenario.yaml").write_text(json.dumps(SCENARIO))
    arguments = ("build", str(tmp_path / "scenario.yaml"), "-o", str(tmp_path / "new.xlsx"), "--open")
    opened = run(*arguments)
    assert shown == [str(tmp_path / "new.xlsx")]
    assert (opened[0], opened[2]) == (0, "")
    assert opened[1] == run("verify", "--about", str(tmp_path / "new.xlsx"))[1]
    status = 1
    assert run(*arguments)[0] == 2
    assert (tmp_path / "new.xlsx").is_file()
