"""Traces of requests in numbers of a scenario: what was drawn comes back; other columns; refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from live import exit_status

from mantile.estimates.estimate import estimate
from mantile.library.documents import parse_yaml
from mantile.library.errors import InputError
from mantile.library.request_classes import MOST_CLASSES
from mantile.library.request_trace import OTHERS, read_trace
from mantile.library.scenario import parse_scenario


def written(folder: Path, heads: str, rows: list[str]) -> Path:
    """A trace."""
    path = folder / "trace.csv"
    path.write_text("\n".join([heads, *rows]) + "\n", encoding="utf-8")
    return path


def test_what_was_drawn_comes_back(tmp_path: Path) -> None:
    """Rate, shares, means and spreads of two classes that arrive at random; the fields are a scenario's."""
    dice = np.random.default_rng(4)
    times = np.cumsum(dice.exponential(1 / 7, 20_000))
    rows = []
    for time in times:
        chat = dice.random() < 0.7
        mean, spread = (500, 0.6) if chat else (6000, 0.2)
        prompt = dice.gamma(1 / spread**2, mean * spread**2)
        rows.append(
            f"{time},{max(1, round(prompt))},{round(dice.integers(50, 351))},{'chat' if chat else 'rag'}"
        )
    trace = read_trace(written(tmp_path, "arrived_at,num_prefill_tokens,num_decode_tokens,Class", rows))
    assert trace.rate == pytest.approx(7, rel=0.03) and trace.burstiness == pytest.approx(1, abs=0.05)
    chat, rag = trace.classes
    assert (chat.name, rag.name) == ("chat", "rag") and chat.requests + rag.requests == 20_000
    assert chat.input_tokens == pytest.approx(500, rel=0.03) and chat.input_spread == pytest.approx(
        0.6, rel=0.05
    )
    assert rag.input_tokens == pytest.approx(6000, rel=0.02) and rag.input_spread == pytest.approx(
        0.2, rel=0.05
    )
    assert chat.output_tokens == pytest.approx(200, rel=0.03)
    assert chat.output_spread == pytest.approx(300 / 12**0.5 / 200, rel=0.03)
    scenario = {"model": "llama-3.1-8b", "accelerator": "b300-sxm"} | trace.fields()
    told = estimate(parse_scenario(scenario, "test")).results()
    assert told["input_tokens"] == pytest.approx(0.7 * 500 + 0.3 * 6000, rel=0.05)
    assert [one["name"] for one in told["classes"]] == ["chat", "rag"]


def test_the_columns_of_public_traces_are_known(tmp_path: Path) -> None:
    """Dates with seven decimals, and requests that failed; without times there is no rate."""
    lengths = ("374,44", "396,0", "26,8")
    rows = [f"2023-11-16 18:15:{46 + 2 * place}.6805900,{both}" for place, both in enumerate(lengths)]
    trace = read_trace(written(tmp_path, "TIMESTAMP,ContextTokens,GeneratedTokens", rows))
    assert (trace.requests, trace.left_out) == (2, 1) and trace.rate == pytest.approx(0.25)
    assert trace.fields() == {
        "request_rate": 0.25,
        "input_tokens": 200,
        "output_tokens": 26,
        "input_spread": 0.87,
        "output_spread": 0.6923,
    }
    untimed = read_trace(written(tmp_path, "Request tokens,Response tokens", ["10,20"]))
    assert untimed.rate is None and "request_rate" not in untimed.fields()


def test_sessions_of_a_trace(tmp_path: Path) -> None:
    """Turns where prompts have what was said before, and the time from an answer to the next prompt."""
    rows = []
    for user in range(40):
        clock, prompt = 100.0 * user, 200
        for turn in range(user % 3 + 2):
            rows.append(f"{clock},{prompt},50,{'chat' if user % 2 else 'agent'},u{user},1.5")
            clock += 1.5 + (8 if user % 2 else 2) + turn % 2
            prompt += 50 + 30
    trace = read_trace(written(tmp_path, "time,isl,osl,kind,user_id,latency", rows))
    told = {one.name: one for one in trace.classes}
    assert told["chat"].turns == 2.95 and told["agent"].turns == 3
    assert told["chat"].think_time == pytest.approx(8.4, abs=0.1)
    assert told["agent"].think_time == pytest.approx(2.4, abs=0.1)
    scenario = parse_scenario({"model": "llama-3.1-8b", "accelerator": "h100-sxm"} | trace.fields(), "test")
    results = estimate(scenario).results()
    assert results["prefix_hits"] > 0.2
    assert results["sessions"] == pytest.approx(sum(one["sessions"] for one in results["classes"]), rel=0.01)
    alike = [f"{place},100,50,u{place % 5}" for place in range(20)]  # prompts do not grow: nothing is known
    plain = read_trace(written(tmp_path, "time,isl,osl,session", alike))
    assert plain.classes[0].turns is None and plain.classes[0].think_time is None
    with pytest.raises(InputError, match="line 2: seconds of a request: 'long'"):
        read_trace(written(tmp_path, "time,isl,osl,latency", ["0,1,1,long"]))


def test_small_classes_are_together(tmp_path: Path) -> None:
    """No more classes than a scenario may have, and no request is lost."""
    rows = [f"{10 + kind},5,kind {kind}" for kind in range(12) for _ in range(20 - kind)]
    trace = read_trace(written(tmp_path, "isl,osl,kind", rows))
    assert len(trace.classes) == MOST_CLASSES and trace.classes[-1].name == OTHERS
    assert sum(one.requests for one in trace.classes) == len(rows) == trace.requests
    mean = sum(one.requests * one.input_tokens for one in trace.classes) / trace.requests
    assert mean == pytest.approx(np.mean([float(row.split(",")[0]) for row in rows]))


@pytest.mark.parametrize(
    ("heads", "rows", "told"),
    [
        ("input_tokens,tokens", ["1,2"], "no column output_tokens; expected one of"),
        ("isl,osl", ["1,many"], "line 2: output_tokens: 'many'; expected a number"),
        ("isl,osl", ["-1,3"], "line 2: input_tokens: '-1'; expected a number"),
        ("time,isl,osl", ["noon,1,3"], "line 2: arrival: 'noon'; expected seconds"),
        ("isl,osl", ["3,0"], "no request with a prompt and an answer"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, heads: str, rows: list[str], told: str) -> None:
    """Naming file and line."""
    path = written(tmp_path, heads, rows)
    with pytest.raises(InputError, match=r"trace\.csv: ") as raised:
        read_trace(path)
    assert told in str(raised.value)


def test_the_command_writes_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """To stdout, to a file, or as JSON."""
    path = written(tmp_path, "time,isl,osl", ["0,10,20", "1,30,40", "2,20,30"])
    assert exit_status("import", str(path)) == 0
    fields = parse_yaml(capsys.readouterr().out, "stdout")
    assert fields["request_rate"] == 1 and fields["input_tokens"] == 20
    assert exit_status("import", str(path), "-o", str(tmp_path / "load.yaml"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["fields"] == fields
    assert parse_yaml((tmp_path / "load.yaml").read_text(encoding="utf-8"), "load.yaml") == fields
    assert exit_status("import", str(path), "-o", str(tmp_path / "load.txt")) == 2
