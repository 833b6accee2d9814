"""What comes from elsewhere opens no file, takes no long time, and leaves nothing behind."""

from __future__ import annotations

import copy
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live import exit_status, few

from mantile.cli.output.plain import written
from mantile.estimates.estimate import Estimate, estimate
from mantile.graph.quantity import Input
from mantile.library.documents import parse_json, parse_yaml
from mantile.library.errors import InputError
from mantile.library.files import replacing
from mantile.library.huggingface import parse_config, read_config
from mantile.library.huggingface.linear_patterns import LinearPatterns
from mantile.library.scenario import load_scenario, parse_scenario
from mantile.measured.load import load_measurements
from mantile.verification.verify import verify
from mantile.workbook.bundle import Bundle, read_bundle, read_document, write_bundle
from mantile.workbook.read import coerced
from mantile.workbook.write import build_workbook

SCENARIO: dict[str, Any] = {
    "model": "llama-3.2-1b",
    "accelerator": "h100-sxm",
    "input_tokens": 1000,
    "output_tokens": 100,
    "concurrency": 4,
}
SECRET = "id: x\npassword: hunter2\nhunter2: [hunter2]\n"


@pytest.fixture(scope="module")
def small() -> Estimate:
    """An estimate on a small library."""
    return estimate(parse_scenario(SCENARIO, "scenario"), library=few(("h100-sxm",)))


# --- files of others ----------------------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that nobody asked for."""
    path = tmp_path / "secret.yaml"
    path.write_text(SECRET, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "fields",
    [
        lambda path: {"accelerator": path},
        lambda path: {"Accelerator": path},
        lambda path: {"decode": {"accelerator": path}},
        lambda path: {"variants": [{"accelerator": path}]},
        lambda path: {"variants": [{"decode": {"accelerator": path}}]},
        lambda path: {"draft_model": path},
        lambda path: {"variants": [{"draft_model": path}]},
        lambda path: {"accelerator": "auto", "model": path},
    ],
)
def test_a_bundle_opens_no_file(
    tmp_path: Path, small: Estimate, secret: Path, capsys: pytest.CaptureFixture[str], fields: Any
) -> None:
    """What it names is an id of its own library: a path is refused, unread."""
    data = copy.deepcopy(Bundle.of(small).data)
    if "Accelerator" in (given := fields(str(secret))):
        del data["scenario"]["accelerator"]
    data["scenario"] |= given
    path = write_bundle(Bundle(data, "bundle"), tmp_path / "run.json")
    for command in (
        ("estimate",),
        ("estimate", "--concurrency", "9"),
        ("build", "-o", str(tmp_path / "a.xlsx")),
    ):
        name, *flags = command
        assert exit_status(name, str(path), *flags) == 2
        told = capsys.readouterr().err
        assert "hunter2" not in told and "password" not in told and "Traceback" not in told
        assert "run.json" in told
    assert not (tmp_path / "a.xlsx").exists()


def test_what_a_bundle_brings_is_not_read_again(
    tmp_path: Path, small: Estimate, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model, profiles and template it was made from were files of somebody: they stand in the bundle."""
    data = copy.deepcopy(Bundle.of(small).data)
    data["scenario"] |= {"model": str(secret), "profiles": [str(secret)], "template": str(secret)}
    path = write_bundle(Bundle(data, "bundle"), tmp_path / "run.json")
    secret.unlink()
    secret.mkdir()  # whoever opens it fails
    assert read_bundle(path).estimate().results() == small.results()
    assert exit_status("estimate", str(path), "--concurrency", "9") == 0
    assert "secret" not in capsys.readouterr().err


def test_errors_quote_little_of_a_value() -> None:
    """At most 60 characters, and none that turn the text around."""
    long = "x" * 5000
    documents: list[Callable[[], Any]] = [
        lambda: parse_scenario(SCENARIO | {"accelerator": "a" * 900, "tp": long}, "s"),
        lambda: parse_scenario(SCENARIO | {long: 1}, "s"),
        lambda: estimate(parse_scenario(SCENARIO | {"accelerator": "a" * 900}, "s"), library=few()),
        lambda: parse_yaml(f"{long}: 1\n{long}: 2", "s"),
        lambda: parse_json(f'{{"{long}": 1, "{long}": 2}}', "s"),
        lambda: parse_yaml(f"- !{long} 1", "s"),
        lambda: parse_yaml(f"- *{long}", "s"),
        lambda: Bundle.parse(
            {"format": long, "scenario": 1, "model": 1, "library": 1, "generator": long}, "s"
        ),
    ]
    for read in documents:
        with pytest.raises(InputError) as caught:
            read()
        pass
        assert "x" * 61 not in str(caught.value)
    with pytest.raises(InputError, match=r"h100\\u202e"):
        estimate(parse_scenario(SCENARIO | {"accelerator": "h100\u202e"}, "s"), library=few())


# --- what a document may take -------------------------------------------------------------------------------

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(12)
)


def measured(text: str, kind: str = "csv") -> Callable[[], Any]:
    """Reading a table of measured runs."""

    def read() -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"m.{kind}"
            path.write_text(text, encoding="utf-8")
            return load_measurements(path)

    return read


DOCUMENTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a text again and again": (
        lambda: parse_yaml(f"a: &a {'x' * 1000}\nb: [{'*a,' * 900_000}]", "s"),
        "s: more than 33,554,432 characters",
    ),
    "a text again and again, in lists": (
        lambda: parse_yaml(f"a: &a [&b {'x' * 9000}, *b, *b]\nb: [{'*a,' * 9000}]", "s"),
        "s: more than 33,554,432 characters",
    ),
    "columns of nothing": (measured(",".join(f"c{n}" for n in range(900)) + "\n" + "x\n" * 900_000), "cells"),
    "many columns": (measured(",".join(f"c{n}" for n in range(900_000)) + "\n" + "x\n" * 9000), "columns"),
    "many wrong records": (measured("id,accelerator\n" + "x,y\n" * 300_000), "m.csv"),
    "many wrong runs": (measured(json.dumps([{"id": "x"}] * 400_000), "json"), "m.json"),
    "keys twice": (
        lambda: parse_json("{" + ", ".join(f'"{n % 199_999}": 1' for n in range(200_000)) + "}", "s"),
        "s: the key '0' is given twice",
    ),
    "laughs": (lambda: parse_yaml(LAUGHS, "s"), "s: more than 1,000,000 elements"),
    "a million items": (
        lambda: parse_scenario(SCENARIO | {"variants": [1] * 1_000_000}, "s"),
        "s: field variants: 1,000,000 items; expected at most 50,000",
    ),
    "a million profiles": (
        lambda: parse_scenario(SCENARIO | {"profiles": [1] * 1_000_000}, "s"),
        "s: field profiles",
    ),
    "a million overrides": (
        lambda: parse_scenario(SCENARIO | {"overrides": [1] * 1_000_000}, "s"),
        "s: field overrides",
    ),
    "a million left out": (
        lambda: parse_scenario(SCENARIO | {"without": [1] * 1_000_000}, "s"),
        "s: field without",
    ),
    "unknown fields": (
        lambda: parse_scenario(SCENARIO | {f"f{n}": n for n in range(200_000)}, "s"),
        "s: 200,005 items; expected at most 50,000",
    ),
    "commas": (lambda: parse_json(f"[{'1,' * 2_000_000}1]", "s"), "s: more than 1,000,000 elements"),
    "sweep": (
        lambda: parse_scenario(
            SCENARIO | {"sweep": {"tp": list(range(1, 20_001)), "input_tokens": list(range(1, 20_001))}}, "s"
        ),
        "s: field sweep.tp: 20,000 items; expected at most 2,000",
    ),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_document_takes_neither_time_nor_space(case: str) -> None:
    """A few lines of error, before it is read."""
    read, message = DOCUMENTS[case]
    with pytest.raises(InputError) as caught:
        read()
    assert message in str(caught.value) and len(str(caught.value)) < 60_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1: 2", "line 1.*expected a text as key, found 1"),
        ("a: !!binary aGFsbG8=", "line 1: .*binary': expected a text"),
        ("a: !!timestamp 2026-01-01", "timestamp"),
        ("a: !!set {b, c}", "set"),
        ("a: &a [1, *a]", "line 1: 'a' holds itself"),
        ("a: !!python/name:os.system x", "expected a text"),
    ],
)
def test_other_values_than_plain_ones(text: str, message: str) -> None:
    """YAML can hold what no document of ours means."""
    with pytest.raises(InputError, match=f"s, .*{message}"):
        parse_yaml(text, "s")


# --- patterns of strangers ----------------------------------------------------------------------------------

CONFIG = {
    "model_type": "llama",
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 200,
    "intermediate_size": 5632,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
PIECES = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", "^", "$", r"\.", "[a-c1]", r"[^\d]"]),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,3}", "{2,}"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        )
    ),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(pattern=PIECES, text=st.text("ab1.", max_size=8))
def test_patterns_match_as_those_of_python(pattern: str, text: str) -> None:
    """The same answer, without going back."""
    assert LinearPatterns([pattern]).match(text) == bool(re.match(pattern, text))


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("patterns", "layers"),
    [
        ([f"re:{'.*a' * 6}X"] * 30, 200),
        ([f"re:.*a{number}.*b.*c" for number in range(200)], 10_000),
        ([f"re:{'.*a' * 250}X"], 10_000),
        (["re:" + "(.|.)" * 60 + "X"], 200),
        (["re:" + ".?" * 60 + "X"], 200),
        ([f"re:(?!.*{number}).*a.*b" for number in range(200)], 10_000),
        ([f"*{number}*a*b*c*d*e*f" for number in range(2000)], 200),
    ],
)
def test_patterns_of_a_config_take_no_long_time(patterns: list[str], layers: int) -> None:
    """They are matched in a time that grows with the text, or refused by name."""
    config = CONFIG | {
        "num_hidden_layers": layers,
        "quantization_config": {"quant_method": "fp8", "modules_to_not_convert": patterns},
    }
    try:
        parse_config(config, "config.json")
    except InputError as error:
        assert str(error).startswith("config.json: field quantization_config.modules_to_not_convert: ")


class Columns:
    """A table as output has them."""

    columns = ()

    def __init__(self, rows: list[list[str]]) -> None:
        self.rows = rows

    def lines(self) -> list[list[str]]:
        """Heads, then rows."""
        return [[""] * len(self.rows[0]), *self.rows]


# --- names that are not what they look like -----------------------------------------------------------------


@pytest.mark.parametrize(
    "hidden",
    [
        "\ufffe",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\x9b",
        "\xad",
        "\u2028",
        "\u3164",
        "\u2800",
        "\ufe00",
        "\U000e0041",
        "\U0001ffff",
    ],
)
def test_hidden_characters_are_refused(hidden: str) -> None:
    """Wherever a text of a user stands; they are shown as what they are."""
    for fields in (
        {"title": f"a{hidden}b"},
        {"variants": [{"name": f"a{hidden}b"}]},
        {"overrides": [{"id": "efficiency.step_host", "value": 1, "reason": f"a{hidden}b"}]},
    ):
        with pytest.raises(InputError, match=rf"U\+{ord(hidden):04X}; expected a text without") as caught:
            parse_scenario(SCENARIO | fields, "s")
        assert hidden not in str(caught.value)


@pytest.mark.exhaustive
def test_every_title_that_is_accepted_survives(tmp_path: Path) -> None:
    """A workbook of names that spreadsheets, XML or Excel take for something else verifies."""
    names = ["&P&D<b>&amp;", " two  blanks ", "1e5", "{=1}"]
    fields = SCENARIO | {
        "title": "_x005F_x0041_ and _x000D_",
        "name": "-2+3",
        "why": "'quoted",
        "overrides": [
            {"id": "efficiency.step_host", "value": 700, "reason": "@SUM(1) e\u0301 \U0001f600"},
            {"id": "efficiency.step_row", "value": 3, "reason": "#REF!"},
            {"id": "efficiency.first_token", "value": 90, "reason": "TRUE"},
        ],
        "variants": [{"name": name} for name in names],
    }
    made = estimate(parse_scenario(fields, "scenario"), library=few(("h100-sxm",)))
    report = verify(build_workbook(made, tmp_path / "run.xlsx"), "formualizer").to_dict()
    assert report["ok"] and not any(report["edited"].values())


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@x", "-2+3", "-A1", "-1 and =2"])
def test_tables_that_are_copied_hold_no_formula(text: str) -> None:
    """As CSV a text gets an apostrophe in front; numbers, with their units, stay."""
    table = Columns([[text, "-1,024.5", "-5 ms", "-3 %", "-", "+12"]])
    first, *rest = written([table], "csv").replace('"', "").strip().split(",")
    assert first == f"'{text}" and rest == ["-1024.5", "-5 ms", "-3 %", "-", "+12"]


def test_a_table_of_plans_holds_no_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that begins like one gets an apostrophe in front, as in every table."""
    from mantile.cli.optimize import _write

    class Found:
        def to_frame(self) -> pd.DataFrame:
            return pd.DataFrame({"name": ["=1+1", "@x", "plain"], "value": [-1.5, 2, 3]})

    _write(Found(), tmp_path / "plans.csv")  # type: ignore[arg-type]
    text = (tmp_path / "plans.csv").read_text(encoding="utf-8")
    assert text == "name,value\n'=1+1,-1.5\n'@x,2.0\nplain,3.0\n"


# --- bundles and figures that are none ----------------------------------------------------------------------

BUNDLES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    **{
        f"two {kind}": (
            lambda data, kind=kind: data["library"][kind].append(data["library"][kind][0]),
            f"{kind}: .* twice|two profiles hold for",
        )
        for kind in ("accelerators", "systems", "prices", "frameworks", "datatypes", "efficiency")
    },
    "format true": (lambda data: data.update(format=True), "bundle format True"),
    "format 1.0": (lambda data: data.update(format=1.0), "bundle format 1.0"),
    "no such day": (lambda data: data.update(made_on="2026-99-99"), "a day as made_on"),
    "keys": (lambda data: data["scenario"].update({3: 4}), "texts as keys"),
    "itself": (lambda data: data["scenario"].update(title=data), "damaged"),
    "a set": (lambda data: data["scenario"].update(title={1}), "plain values"),
    "bits": (lambda data: data["library"]["datatypes"][0].update(bits=1e300), "bits"),
    "no number": (
        lambda data: data["library"]["accelerators"][0]["memory_bandwidth"].update(value=float("nan")),
        "memory_bandwidth",
    ),
    **{
        f"{figure} of {value:g}": (
            lambda data, figure=figure, value=value: data["library"]["accelerators"][0][figure].update(
                value=value
            ),
            rf"{figure}\.value: expected 0, or a number from 1e-12 to under 1e\+15",
        )
        for figure, value in (("peak_bf16", 1e300), ("memory_capacity", 1e300), ("host_bandwidth", 1e-300))
    },
    "no bandwidth": (
        lambda data: data["library"]["accelerators"][0]["memory_bandwidth"].update(value=0),
        "memory_bandwidth",
    ),
    "infinite link": (
        lambda data: data["library"]["systems"][0]["link_bandwidth"].update(value=float("inf")),
        "link_bandwidth",
    ),
}


@pytest.mark.parametrize("case", BUNDLES)
def test_a_bundle_of_odd_values_is_refused(small: Estimate, case: str) -> None:
    """By field, whatever digest it states."""
    change, message = BUNDLES[case]
    data = copy.deepcopy(Bundle.of(small).data)
    change(data)
    with pytest.raises(InputError, match=message):
        try:
            digest = Bundle(data, "b").digest
        except (TypeError, ValueError):
            digest = ""
        Bundle.parse(data | {"digest": digest}, "b").estimate()


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300])
@pytest.mark.parametrize("figure", ["hardware.link_bandwidth", "hardware.peak_bf16", "hardware.price_cloud"])
def test_no_figure_is_out_of_this_world(figure: str, value: float) -> None:
    """Sums of 1e300 USD say nothing."""
    with pytest.raises(
        InputError, match=r"overrides\.0\.value: expected 0, or a number from 1e-12 to under 1e\+15"
    ):
        parse_scenario(SCENARIO | {"overrides": [{"id": figure, "value": value}]}, "s")


# --- work that is broken off --------------------------------------------------------------------------------

_WRITES = """
import signal, sys, time
from pathlib import Path
from mantile.library.files import replacing
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what runs in the background
with replacing(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("half", flush=True)
    time.sleep(3600)
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_work_that_is_broken_off_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    """Interrupted it takes its file along at once; what a killed run left the next one removes."""
    path = tmp_path / "run.csv"
    command, pipe = [sys.executable, "-c", _WRITES, path], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe) as run:
        assert run.stdout is not None and run.stdout.readline() == b"half\n"
        run.send_signal(how)
        run.communicate()
    left = [file.name for file in tmp_path.iterdir()]
    assert left == [] if how == signal.SIGINT else [name.startswith(".mantile-") for name in left] == [True]
    other = tmp_path / f".mantile-{'0' * 8}-{'0' * 8}-1-{'0' * 8}.csv"
    other.touch()  # of another file, or another machine
    with replacing(path) as temporary:
        temporary.write_text("whole", encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == [other, path] and path.read_text(encoding="utf-8") == "whole"


_BUILD = "build llama-3.2-1b --accelerator h100-sxm --isl 1000 --osl 100 --concurrency 4"


@pytest.mark.exhaustive
def test_a_disk_that_is_full_is_told_in_one_line(tmp_path: Path) -> None:
    """Files end at 100 kB here; a workbook has 600."""
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000));"
    command = [sys.executable, "-c", f"{limited} from mantile.cli import main; main()", *_BUILD.split()]
    done = subprocess.run(
        [*command, "-o", "run.xlsx"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr == "mantile: run.xlsx: cannot write: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_who_has_seen_enough_closes_the_pipe() -> None:
    """As `head` does: that is no error, whatever prints."""
    command = [sys.executable, "-m", "mantile", "estimate", *_BUILD.split()[1:], "--all"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert (run.stderr.read(), run.wait(60)) == (b"", 0)


def test_a_run_of_the_same_number_left_a_file(tmp_path: Path) -> None:
    """In a container each run may have the number of the one before; its own files are younger."""
    path = tmp_path / "run.csv"
    with replacing(path) as own:
        own.write_text("half", encoding="utf-8")
        old = own.with_name(own.name.replace(own.stem[-8:], "0" * 8))
        old.touch()
        os.utime(old, (1e9, 1e9))
        with replacing(path) as other:
            other.write_text("other", encoding="utf-8")
        assert own.exists() and not old.exists()
    assert list(tmp_path.iterdir()) == [path] and path.read_text(encoding="utf-8") == "half"


def test_an_interrupt_at_the_first_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after the file was made, before anybody has its name."""

    def interrupted(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("mantile.library.files.os.close", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "run.xlsx"):
        pass
    assert list(tmp_path.iterdir()) == []


# --- numbers as they are pasted -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1,024", 1024),
        ("12,345,678.5", 12345678.5),
        ("70%", 0.7),
        ("70 %", 0.7),
        ("\uff11\uff10\uff12\uff14", 1024),
        ("1024 ", 1024),
        ("\u00a01024", 1024),
        ("0,65", 0.65),
        ("\u22125", -5),
        ("1e3", 1000),
        ("1_024", None),
        ("1,02,4", None),
        ("70%%", None),
        ("nan", None),
        ("1e999", None),
        ("", None),
    ],
)
def test_a_pasted_number_is_taken_where_it_can_be_only_one(text: str, number: float | None) -> None:
    """Else the cell is refused, with what it holds."""
    figure = Input("inputs.x", "x", "1", 1.0)
    if number is not None:
        assert coerced(figure, text, "run.xlsx: Inputs!H7") == pytest.approx(number)
    else:
        with pytest.raises(InputError, match=r"run\.xlsx: Inputs!H7.*holds"):
            coerced(figure, text, "run.xlsx: Inputs!H7")


def test_what_can_be_two_numbers_is_refused_with_both() -> None:
    with pytest.raises(InputError) as caught:
        coerced(Input("inputs.x", "x", "1", 1.0), "0,650", "run.xlsx: Inputs!H7")
    assert str(caught.value) == (
        "run.xlsx: Inputs!H7 (inputs.x): '0,650' could be 650 or 0.65; expected a number without a comma"
    )


# --- what a digest says -------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_verify_tells_the_digest(
    tmp_path: Path, small: Estimate, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And that one of format 1 protects nothing: it states none."""
    data = Bundle.of(small).data | {"format": 1, "generator": "mantile 0.3.0"}
    bundle = Bundle(data, "bundle")
    monkeypatch.setattr(Bundle, "of", classmethod(lambda cls, made: bundle))
    path = build_workbook(small, tmp_path / "run.xlsx")
    monkeypatch.undo()
    exit_status("verify", str(path))
    told = " ".join(capsys.readouterr().out.split())
    assert f"digest {bundle.digest[:4]} {bundle.digest[4:8]}" in told
    assert "unprotected: format 1 states no digest" in told


# --- mutated files ------------------------------------------------------------------------------------------

EXAMPLES = int(os.environ.get("MANTILE_FUZZ", "60"))
"""Files tried of each kind: MANTILE_FUZZ=100000 pytest tests/test_elsewhere.py -k mutated runs for hours."""
SPLICES = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 40),
        st.sampled_from(
            ["", "0", "-1", "1e400", "null", "[]", "{}", '"', ",", ":", "true", "&a ", "*a", "!!set ",
             "\n", "\t",
             "\x00", "\ufffe", "\u202e", "NaN", "1: ", "- ", "<<: ", "'", "#", "|", "[" * 70, "9" * 5000]
        ),
    ),
    min_size=1,
    max_size=4,
)  # fmt: skip


@pytest.mark.parametrize("kind", ["bundle.json", "bundle.yaml", "scenario.yaml", "config.json"])
def test_mutated_files_are_read_or_refused(tmp_path: Path, small: Estimate, kind: str) -> None:
    """With an error that names the file, in seconds: nothing else is raised."""
    path = tmp_path / kind
    if kind.startswith("bundle"):
        write_bundle(Bundle.of(small), path)
    else:
        data = SCENARIO | {"variants": [{"tp": 2}], "title": "a"} if kind == "scenario.yaml" else CONFIG
        path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    text = path.read_text(encoding="utf-8")

    def read() -> None:
        if kind.startswith("bundle"):
            _, bundle = read_document(path)
            if bundle is not None:
                bundle.estimate()
        elif kind == "scenario.yaml":
            load_scenario(str(path))
        else:
            read_config(path)

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES == 60, database=None)
    @given(splices=SPLICES)
    def tried(splices: list[tuple[float, int, str]]) -> None:
        changed = text
        for place, length, put in splices:
            start = int(place * min(len(changed), 3000))
            changed = changed[:start] + put + changed[start + length :]
        path.write_text(changed, encoding="utf-8")
        try:
            read()
        except InputError as error:
            assert kind in str(error) and "\u202e" not in str(error) and len(str(error)) < 60_000

    tried()
