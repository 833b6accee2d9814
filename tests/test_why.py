"""Why one plan is slower than another: parts that add up, and sentences of what they say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from live import exit_status

import mantile as mt
from mantile.answers.why import Why, compare
from mantile.estimates.estimate import Estimate

ONE = {"input_tokens": 1024, "output_tokens": 128}
DENSE = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 16, **ONE}
LARGE = DENSE | {"model": "llama-3.3-70b", "tp": 8, "concurrency": 1}
MOE = DENSE | {"model": "deepseek-r1", "accelerator": "h200-sxm", "tp": 8}
ARRIVING = {name: value for name, value in DENSE.items() if name != "concurrency"}
CLASSES = [
    {"name": "chat", "share": 1, "input_tokens": 500, "output_tokens": 200},
    {"name": "documents", "share": 1, "input_tokens": 4000, "output_tokens": 100},
]
DEVICES = LARGE | {
    "accelerator": "m3-ultra",
    "tp": 1,
    "framework": "exo",
    "devices": [{"accelerator": "m3-ultra"}, {"accelerator": "rtx-5090"}],
}
PLANS: dict[str, dict[str, Any]] = {
    "one": DENSE,
    "TP": DENSE | {"tp": 2},
    "PP": DENSE | {"pp": 2},
    "fp8": DENSE | {"weights_dtype": "fp8"},
    "rate": ARRIVING | {"request_rate": 4.0},
    "sessions": ARRIVING | {"sessions": 20, "think_time": 3.0},
    "classes": {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "concurrency": 16, "classes": CLASSES},
    "prefixes": DENSE | {"shared_prefix": 512},
    "static": DENSE | {"batching": "static"},
    "eager": DENSE | {"enforce_eager": "on"},
    "apart": DENSE | {"dp": 2, "decode_tp": 2, "decode_dp": 1},
    "another chip": DENSE | {"accelerator": "mi300x"},
    "another model": LARGE,
    "MoE": MOE,
    "drafts": MOE | {"speculation": "mtp", "draft_tokens": 2},
    "groups": MOE | {"tp": 1, "attention_dp": 8, "ep": 8},
    "devices": DEVICES,
}
PLAN = "llama-3.3-70b --gpu h100-sxm --tp 8 --isl 2k --osl 256 --concurrency 1"


def made(name: str) -> Estimate:
    """The estimate of a plan above."""
    return mt.estimate(**PLANS[name])


PAIRS = [("one", name) for name in PLANS if name != "one"] + [
    ("MoE", "drafts"),
    ("MoE", "groups"),
    ("devices", "another model"),
    ("apart", "rate"),
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_parts_add_up_to_the_difference(a: str, b: str) -> None:
    """Of every time, whatever the two plans have; and both times are those of the estimates."""
    estimates = made(a), made(b)
    why = compare(*estimates)
    assert [times.metric for times in why.waterfalls] == ["tpot", "ttft", "e2e"], why.sentence
    for times in why.waterfalls:
        for of, seconds, each in zip(estimates, (times.a_s, times.b_s), ("a_s", "b_s"), strict=True):
            assert seconds == pytest.approx(getattr(of, times.metric), rel=1e-12)
            assert sum(getattr(part, each) for part in times.parts) == pytest.approx(seconds, rel=1e-9)
        apart = abs(sum(part.difference_s for part in times.parts) - times.difference_s)
        assert apart <= 1e-9 * max(times.a_s, times.b_s)
    assert len(why.sentence) < 1000 and repr(why) == why.sentence and "A" not in why.plans[1].name.split()


def test_the_sentence_names_who_is_slower_and_by_what() -> None:
    """TP8 and TP4 for one user: weights against messages, with their number and the figures of the rows."""
    tp8, tp4 = (mt.estimate(**LARGE | {"tp": tp}) for tp in (8, 4))
    why = mt.compare(tp8, tp4)
    assert isinstance(why, Why)
    tpot = why.waterfalls[0]
    parts = {part.id: part for part in tpot.parts}
    reduces = parts["parts.tpot.all_reduce"]
    assert reduces.counts == (161, 161)
    assert reduces.a_s == pytest.approx(tp8["decode.network.all_reduce"].value)
    weights = parts["parts.tpot.weights"]
    assert weights.b_s == pytest.approx(2 * weights.a_s, rel=0.01) and reduces.difference_s < 0
    slower = tpot.b_s / tpot.a_s - 1
    said = (
        f"TP4 is {slower * 100:.0f} % slower than TP8 for one user, TPOT {tpot.b_s * 1e3:.1f} against "
        f"{tpot.a_s * 1e3:.1f} ms: reading weights takes {weights.difference_s * 1e3:.2f} ms more, 161 "
        f"all-reduces take {-reduces.difference_s * 1e6:.0f} µs less."
    )
    assert why.sentences[0] == said
    assert "TTFT" in why.sentences[1] and "USD per million output tokens" in why.sentences[2]
    assert mt.compare(tp4, tp8).sentences[0] == said, "the slower one is named first, whatever the order"
    assert said in why._repr_html_()


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (LARGE, LARGE, "A and B are the same plan."),
        (LARGE, LARGE | {"tp": 1}, "TP1 cannot be: needs "),
        (
            LARGE | {"tp": 1},
            LARGE | {"tp": 1, "accelerator": "l40s"},
            "1 × L40S cannot be: needs ",
        ),
        (DEVICES, LARGE, "are not known."),
        (LARGE, LARGE | {"utilisation": 0.5}, "differ by less than 1 % in TPOT for one user"),
        (MOE, PLANS["drafts"], "tokens of accepted drafts save MTP drafts "),
        (DENSE, PLANS["TP"], "65 all-reduces of TP2 take "),
        (DENSE, PLANS["static"], "Static batching takes "),
        (DENSE, DENSE | {"framework": "sglang"}, "SGLang is "),
        (DENSE, PLANS["TP"] | {"weights_dtype": "fp8"}, "TP1 · bf16 weights is "),
        (DENSE, DENSE | {"utilisation": 0.5}, "Utilisation 1 and utilisation 0.5 differ by "),
        (
            DENSE,
            DENSE | {"engine_date": "2025-01-01"},
            "No engine date and engine date 2025-01-01 differ by ",
        ),
        (LARGE, LARGE | {"request_rate": 2.0}, "No request rate and 2 requests/s differ by "),
        (DENSE, DENSE | {"prices": {"h100-sxm": 2.0}}, "than 2 USD/h, "),
    ],
)
def test_what_nobody_asked(a: dict[str, Any], b: dict[str, Any], words: str) -> None:
    """The same plan, one or two that do not fit, a price that nobody states, a tie, drafts, no messages."""
    why = compare(mt.estimate(**a), mt.estimate(**b))
    assert words in why.sentence
    assert bool(why.waterfalls) == ("cannot be" not in why.sentence)


def test_two_plans_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whole or as what differs; scenario files keep their table and exit status; wrong texts are named."""
    monkeypatch.setenv("COLUMNS", "80")
    assert exit_status("compare", PLAN, "... --tp 4", "--json") == 0
    short = json.loads(capsys.readouterr().out)
    assert exit_status("compare", PLAN, PLAN.replace("--tp 8", "--tp 4"), "--json") == 0
    assert json.loads(capsys.readouterr().out) == short
    assert {"a", "b", "sentence", "why", "inputs", "headlines"} <= set(short)
    assert short["a"]["scenario"]["tp"] == 8 and short["b"]["scenario"]["tp"] == 4
    assert short["b"]["metrics"]["tpot_s"] > short["a"]["metrics"]["tpot_s"]
    assert {"metric", "part", "a_s", "b_s", "difference_s"} <= set(short["why"][0])
    assert exit_status("compare", PLAN, "... --tp 4") == 0
    out = capsys.readouterr().out
    *lines, explain, build = out.splitlines()
    assert out.startswith("TP4 is ") and max(map(len, lines)) <= 80
    assert explain.startswith("mantile explain tpot llama-3.3-70b ") and "build" in build
    assert exit_status("compare", PLAN.replace("h100-sxm", "h100"), "... llama-3.1-8b") == 0
    said = capsys.readouterr()
    assert said.err.count("taken as h100-sxm") == 1, "a note is told once"
    assert exit_status(*shlex.split(said.out.splitlines()[-2])[1:]) == 0, "what is printed can be typed"
    assert "Llama-3.1-8B on 8 × H100 SXM" in capsys.readouterr().out
    assert (
        exit_status("compare", "llama-3.3-70b --tp 8", "... --tp 4", *PLAN.split()[1:3], *PLAN.split()[5:])
        == 0
    )
    assert "mantile explain" not in capsys.readouterr().out, "flags of both are not in the texts"
    files = [tmp_path / f"{tp}.yaml" for tp in (8, 4)]
    for file, tp in zip(files, (8, 4), strict=True):
        file.write_text(
            "\n".join(f"{name}: {value}" for name, value in (LARGE | {"tp": tp}).items()), encoding="utf-8"
        )
    assert exit_status("compare", *map(str, files)) == 1
    out = capsys.readouterr().out
    assert f"A: {files[0]}" in " ".join(out.split()) and "B ÷ A − 1" in out and "TP4 is " in out
    for text, named in (
        ("... --tpp 4", "--tpp"),
        ("nosuch --tp 4", "nosuch --tp 4: "),
        ("... 'x", "... 'x: "),
        ("", "'': expected a model"),
        ("--tp 4", "leave the quotes out"),
        ("... --all", "--all: it says nothing of a plan"),
        ("... -o plan.md", "--output: it says nothing of a plan"),
        ("nosuch.yaml", "mantile: nosuch.yaml: No such file"),
    ):
        assert exit_status("compare", PLAN, text) == 2
        assert named in capsys.readouterr().err
    assert exit_status("compare", "... --tp 4", PLAN) == 2
    assert "nothing stands before it" in capsys.readouterr().err
