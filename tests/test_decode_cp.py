"""Decode context parallelism: TP ranks that would hold the same KV heads divide the tokens instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live import few

from mantile.estimates.estimate import Estimate, estimate
from mantile.library.launch import read_launch
from mantile.library.launch_line import launch_line
from mantile.library.scenario import Scenario, parse_scenario
from mantile.verification.engines import with_formualizer
from mantile.workbook.layout import lay_out
from mantile.workbook.lint import lint
from mantile.workbook.read import read_cells
from mantile.workbook.write import write_workbook

LATENT: dict[str, Any] = {"model": "deepseek-r1", "accelerator": "h200-sxm", "tp": 8, "framework": "vllm"}
LATENT |= {"input_tokens": 8000, "output_tokens": 1000, "concurrency": 64}
HEADS = LATENT | {"model": "qwen3-30b-a3b", "concurrency": 16}  # of 4 KV heads


def ask(base: dict[str, Any], **fields: Any) -> Estimate:
    return estimate(parse_scenario(base | fields, "shared"), None, few(("h100-sxm", "h200-sxm")))


def value(made: Estimate, identifier: str) -> float:
    return float(made[identifier].value)


@pytest.mark.parametrize("base", [LATENT, HEADS], ids=["latents", "heads"])
def test_one_rank_is_none(base: dict[str, Any]) -> None:
    """To the last bit, in every headline result."""
    stated, plain = ask(base, dcp=1).results(), ask(base).results()
    assert stated.pop("dcp") == 1
    assert stated == plain


@pytest.mark.parametrize(("base", "dcp"), [(LATENT, 8), (LATENT, 2), (HEADS, 2)])
def test_ranks_divide_the_tokens_and_nothing_is_lost(base: dict[str, Any], dcp: int) -> None:
    """A rank keeps and reads its part; pairs of tokens and channels that ranks look at stay the same."""
    alone, shared = ask(base), ask(base, dcp=dcp)
    for identifier in ("memory.kv_bytes_per_request", "decode.context"):
        whole = value(alone, identifier)
        assert value(shared, identifier) == pytest.approx(whole / dcp, rel=1e-12), identifier
    core = "decode.latent" if base is LATENT else "decode.attention"
    figures = {
        identifier
        for identifier in shared.equations.figures
        if identifier.startswith(core) and identifier.endswith(".flops")
    }
    assert figures
    # The batch may be another, as more requests find room: per request.
    for identifier in figures:
        each = [value(made, identifier) / value(made, "decode.rank_requests") for made in (alone, shared)]
        assert each[1] == pytest.approx(each[0], rel=1e-9)


def test_what_it_brings_and_what_it_costs() -> None:
    """Long contexts gain, short ones pay for the messages; who has no link cannot."""
    long, short = LATENT, LATENT | {"input_tokens": 100, "output_tokens": 50, "concurrency": 4}
    assert ask(long, dcp=4).results()["tpot_s"] < 0.95 * ask(long).results()["tpot_s"]
    assert ask(short, dcp=4).results()["tpot_s"] > ask(short).results()["tpot_s"]
    assert (
        ask(long, dcp=8).results()["kv_capacity_sequences"] > 4 * ask(long).results()["kv_capacity_sequences"]
    )


@pytest.mark.parametrize(
    ("fields", "holds"),
    [
        (LATENT | {"dcp": 3}, False),
        (LATENT | {"dcp": 16}, False),
        (LATENT | {"dcp": 8}, True),
        (HEADS | {"dcp": 2}, True),
        (HEADS | {"dcp": 4}, False),  # TP 8 holds each head twice
        (HEADS | {"tp": 4, "dcp": 2}, False),
        (HEADS | {"tp": 2, "dcp": 2}, False),
    ],
)
def test_only_ranks_with_the_same_heads_divide_tokens(fields: dict[str, Any], holds: bool) -> None:
    checks = ask(fields).results()["checks"]
    failed = {check["code"]: check["message"] for check in checks["errors"]}
    assert ("DCP_NOT_DIVISOR" in failed) != holds
    if not holds:
        assert "use 1" in failed["DCP_NOT_DIVISOR"]


def test_ranks_with_the_same_cache_are_those_that_are_left() -> None:
    """TP 8 holds 4 heads twice: with DCP 2 nothing is there twice."""
    for dcp, copied in ((1, True), (2, False)):
        codes = {alert["code"] for alert in ask(HEADS, dcp=dcp).results()["checks"]["alerts"]}
        assert ("KV_COPIED" in codes) == copied


def test_a_launch_line_says_it() -> None:
    line = launch_line(Scenario(**LATENT | {"dcp": 4, "max_model_len": 16384}))
    assert "--decode-context-parallel-size 4" in line
    stated = {name: LATENT[name] for name in ("accelerator", "input_tokens", "output_tokens", "concurrency")}
    assert read_launch(line, **stated).fields["dcp"] == 4


@pytest.mark.exhaustive
def test_its_rows_are_live(tmp_path: Path) -> None:
    """The sheets keep the rules, and another degree in the cell is what the engine says of it."""
    made = ask(HEADS, dcp=1, variants=[{"name": "two", "dcp": 2}])
    book = lay_out(made)
    path = tmp_path / "shared.xlsx"
    write_workbook(book, path)
    assert lint(path) == []
    cells = read_cells(path)
    sheet, row, column = book.input_cells["inputs.dcp", 0]
    cells.contents[sheet][row, column] = 2
    found = with_formualizer(cells, tuple(book.sheets))
    two = ask(HEADS, dcp=2)
    for identifier in ("serving.tpot", "serving.ttft", "memory.used"):
        at = book.addresses[made.figure(identifier)]
        first = 7 if at.column is None else at.column
        assert found[at.sheet][at.row, first] == pytest.approx(value(two, identifier), rel=1e-9)
