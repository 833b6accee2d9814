"""Charts of a sweep: what they show, that impossible points are on none, and what they refuse."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from mantile.cli import main
from mantile.cli.output import charts

ASKED = (
    *("llama-3.3-70b", "--gpu", "h100-sxm", "--isl", "2048", "--osl", "256"),
    *("--over", "tp=1..8", "--over", "concurrency=2^0..2^4"),
)
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run `mantile sweep` in an empty folder: exit status and what it said of errors."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["mantile", "sweep", *ASKED, *arguments])
        status = 0
        try:
            main()
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 0
        return status, capsys.readouterr().err

    return command


def _labels(text: str) -> list[str]:
    return re.findall(r"tp \d+, concurrency \d+", text)


@pytest.mark.exhaustive
def test_a_front_in_three_forms_has_the_points_of_the_table(run: Run, tmp_path: Path) -> None:
    """Labelled; those that cannot be, by memory or heads, are neither dots nor labels."""
    assert run("-o", "p.svg", "-o", "p.html", "-o", "p.png", "-o", "t.csv")[0] == 0
    table = pd.read_csv(tmp_path / "t.csv")
    can_be = table[table["feasibility"] == "fits"]
    assert 0 < len(can_be) < len(table)
    svg, page = (tmp_path / "p.svg").read_text(), (tmp_path / "p.html").read_text()
    names = {
        f"tp {tp}, concurrency {many}" for tp, many in zip(can_be["tp"], can_be["concurrency"], strict=True)
    }
    assert len(_labels(svg)) > 3 and set(_labels(svg)) <= names
    assert f"{len(can_be)} possible points" in svg and set(_labels(page)) == set(_labels(svg))
    dots = svg.partition('id="PathCollection_1"')[2].partition('<g id="')[0]
    assert dots.count("<use ") == len(can_be)
    assert "<svg" in page and page.count("<tr>") > 4 and not re.search(r'(src|href)="(?!#)', page)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_a_heat_map_and_a_histogram_of_a_figure(run: Run, tmp_path: Path) -> None:
    """In the unit in which people quote it, of the points that a condition keeps."""
    assert run("-o", "m.svg", "--kind", "heatmap", "--figure", "tpot", "--where", "tp >= 4")[0] == 0
    svg = (tmp_path / "m.svg").read_text()
    assert "TPOT, ms" in svg and ">concurrency<" in svg
    assert len(re.findall(r">\d\d\.\d+<", svg)) == 10  # TP 4 and 8 with five batches each
    assert run("-o", "h.svg", "--kind", "histogram", "--figure", "ttft_p95_s")[0] == 0
    assert "TTFT, p95, ms" in (tmp_path / "h.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "p.png", "--kind", "pie"), "expected one of front, histogram, heatmap"),
        (("-o", "p.png", "--figure", "tpot"), "expected --kind histogram or heatmap"),
        (("-o", "p.png", "--kind", "histogram", "--figure", "tpott"), "there is no such figure"),
        (("-o", "t.csv", "--kind", "front"), "--kind: only with a chart: -o pareto.png"),
        (("-o", "no/p.png"), "there is no folder no"),
        (("-o", "p.html", "--scheduler", "local"), "not with --scheduler"),
    ],
)
def test_what_no_chart_is_of(run: Run, tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Refused before anything is worked out; nothing is written."""
    status, said = run(*arguments)
    assert status == 2 and words in said and not list(tmp_path.iterdir())


def test_without_matplotlib_it_is_said_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one line."""
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    status, said = run("-o", "p.png")
    assert status == 2 and said.count("\n") == 1
    assert "p.png: charts need matplotlib: pip install 'mantile[charts]'; or a file name" in said
