"""The page: its numbers are the estimate's, its address holds the scenario, and nothing typed is markup."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from html import unescape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import openpyxl
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("jinja2")

from asking import Client
from typer.testing import CliRunner

import mantile
from mantile.cli.application import app
from mantile.equations.metrics import TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS
from mantile.library import models
from mantile.library.errors import InputError
from mantile.library.scenario import parse_scenario
from mantile.server.documents import estimate_of
from mantile.server.page import charts, drill, files
from mantile.server.page.answers import answer
from mantile.server.page.compare import as_scenario, pinned
from mantile.server.page.drawn import VIEWS, page
from mantile.server.page.run import at
from mantile.server.page.state import MOST_LINK, TYPED, State, elsewhere, packed, state_of, unpacked
from mantile.server.page.text import headline, scaled

CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "tp": 2,
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
STATE = State(CHAT)
PAGE = Path(mantile.__file__).parent / "server" / "page"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """One server for all."""
    with Client() as running:
        yield running


def shown(client: Client, address: str, status: int = 200) -> str:
    """The words of a page, without its markup."""
    found = client.get(address)
    assert found.status_code == status, found.text[-500:]
    assert found.headers["content-type"].startswith("text/html")
    text = re.sub(r"<[^>]+>", " ", found.text[found.text.index("<body>") :])
    return re.sub(r"\s+", " ", unescape(text))


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.exhaustive
def test_numbers_of_run_are_those_of_the_estimate(client: Client) -> None:
    """Headlines, ranges, memory and the nearest run are what `mantile estimate --json` says."""
    text = shown(client, STATE.link())
    results = mantile.estimate(parse_scenario(CHAT, "test")).results()
    assert plain(headline(TTFT, results["ttft_s"])) in text
    for end in ("p10", "p90"):
        assert plain(headline(TPOT, results["range_80"]["tpot"][end])).split()[0] in text
    usd = USD_PER_MILLION_OUTPUT_TOKENS.text(results["usd_per_million_tokens"]["output"])
    assert plain(usd) in text
    for size in results["memory_parts"].values():
        if size > 1e8:
            assert plain(scaled(size, "B")) in text
    assert results["nearest_run"]["id"] in text
    for check in results["checks"]["alerts"]:
        assert check["code"] in text


def test_a_permalink_holds_the_whole_scenario(client: Client) -> None:
    """What the form shows, and what it does not; the link of the page leads to the same page."""
    fields = CHAT | {
        "overrides": [{"id": "efficiency.gemm_compute", "value": 0.7, "reason": "ours & <theirs>"}],
        "length_range_ratio": 0.5,
        "title": "Ω chat",
    }
    state = State(fields, (STATE.packed,))
    again = state_of(
        [(key, value) for key, values in parse_qs(urlsplit(state.link()).query).items() for value in values]
    )
    assert again == state and unpacked(packed(fields)) == fields
    page = client.get(state.link()).text
    link = re.search(r'data-link="([^"]+)"', page)
    assert link is not None and unescape(link[1]) == state.link()
    expected = mantile.estimate(parse_scenario(fields, "test")).results()["ttft_s"]
    assert plain(headline(TTFT, expected)) in shown(client, state.link())


def test_fields_of_the_form_go_before_the_address(client: Client) -> None:
    """A value that is typed replaces, an empty one takes away, another field stays."""
    state = state_of(
        [("s", packed(CHAT | {"kv_dtype": "fp8"})), ("tp", "4"), ("kv_dtype", ""), ("concurrency", "1,024")]
    )
    assert state.fields == CHAT | {"tp": 4, "concurrency": 1024}
    priced = state_of([("s", packed(CHAT)), ("price", "3.5")])
    assert priced.fields["overrides"][0]["id"] == "hardware.price_cloud"
    assert "overrides" not in state_of([("s", priced.packed), ("price", "")]).fields


@pytest.mark.parametrize("text", ["abc", "!!!", packed({})[:-3], "A" * (MOST_LINK + 1), packed(CHAT)[2:]])
def test_a_broken_address_is_told(client: Client, text: str) -> None:
    with pytest.raises(InputError, match="address"):
        state_of([("s", text)])
    assert "Not estimated" in shown(client, f"/?s={text}", 422)


def test_an_address_cannot_be_a_bomb() -> None:
    """A few thousand characters do not unpack to gigabytes."""
    import base64
    import zlib

    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * 10_000_000, 9)).decode().rstrip("=")
    assert len(bomb) < MOST_LINK
    with pytest.raises(InputError, match="no scenario"):
        unpacked(bomb)


def test_auto_says_why(client: Client) -> None:
    """AUTO shows the plan it took, and opens others by hand with the same numbers."""
    asked = {key: value for key, value in CHAT.items() if key != "tp"} | {"gpus": 4}
    state = State(asked).by_auto()
    page = client.get(state.link()).text
    assert "AUTO" in page and "plans tried" in page
    other = re.search(r'<table>.*?<tr><th scope="row"><a href="([^"]+)">TP', page, re.DOTALL)
    assert other is not None
    opened = state_of([("s", parse_qs(urlsplit(unescape(other[1])).query)["s"][0])])
    assert not opened.auto and client.get(opened.link()).status_code == 200
    by_hand = client.get(state.link() + "&plan=hand").text
    assert 'name="tp"' in by_hand and 'name="gpus"' not in by_hand


@pytest.mark.parametrize("field", ["title", "name"])
def test_what_is_typed_is_never_markup(client: Client, field: str) -> None:
    nasty = "<script>alert(1)</script>\"'><img src=x>"
    for state in (
        State(CHAT | {field: nasty}),
        State(CHAT | {"model": nasty}),
        State(CHAT | {"framework": nasty}),
    ):
        for path, _ in VIEWS:
            text = client.get(state.link(path)).text
            assert "<script>alert" not in text and "<img src=x" not in text
    for address in ("/drill?find=", "/drill?id=", "/drill?block=", "/sweep?over=", "/calibrate?ttft="):
        text = client.get(address, params={address.partition("?")[2][:-1]: nasty}).text
        assert "<script>alert" not in text
    posted = client.post("/text", data={"text": f"model: {nasty!r}\n"})
    assert posted.status_code == 422 and "<script>alert" not in posted.text


def test_what_an_uploaded_file_says_is_never_markup() -> None:
    """Names, ids, contents of cells and refusals of a file that somebody made."""
    nasty = "<script>alert(1)</script>\"'><img src=x>"
    item = {name: nasty for name in ("cell", "id", "sheet", "name", "kind", "generated", "found", "expected")}
    kinds = ("formulas", "overwritten", "names", "shown", "sheets", "inputs")
    report = {"ok": False, "edited": {kind: [item] for kind in kinds}, "mismatches": [item]}
    report |= dict.fromkeys(("model", "digest", "other_version"), nasty) | {"signature": {"status": nasty}}
    report |= dict.fromkeys(("cells", "compared", "formulas", "max_relative_error"), 1)
    told = files.told_of(report, {"refused": nasty}, nasty, STATE)
    for given in ({"report": told, "error": ""}, {"report": None, "error": nasty}):
        text = bytes(page("upload.html", STATE, "/upload", **given).body).decode()
        assert "&lt;script&gt;alert" in text and "<script>alert" not in text and "<img src=x" not in text


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # of openpyxl
def test_the_title_of_an_uploaded_workbook_is_never_markup() -> None:
    """As it comes back: in the report, and on the page that opens it as a run."""
    nasty = "<script>alert(1)</script>"
    with Client(seconds=300) as client:
        built = client.post("/v1/workbooks", {"scenario": CHAT | {"title": nasty, "template": "executive"}})
        sent = {"file": ("<img src=x>.xlsx", built.content)}
        text = client.request("POST", "/upload", files=sent).text
        opened = re.search(r'<a class="button[^"]*" href="(/\?s=[^"]+)"', text)
        assert opened is not None, text
        run = client.get(unescape(opened[1])).text
    assert "every formula recomputed" in text and "<script>alert" not in text and "<img src=x" not in text
    assert "&lt;script&gt;alert" in run and "<script>alert" not in run


def test_an_error_stands_at_its_field_with_a_way_out(client: Client) -> None:
    found = client.get(STATE.with_fields(input_tokens=-4).link())
    assert found.status_code == 422
    box = found.text[found.text.index('id="box-input_tokens"') :]
    assert 'aria-invalid="true"' in box[:600] and "expected at least 1" in box[:900]
    assert 'href="#f-input_tokens"' in found.text
    none = client.get(State(CHAT | {"tp": "auto", "gpus": 0}).link()).text
    assert 'aria-invalid="true"' in none[none.index('id="box-gpus"') :][:400]
    lost = shown(client, State(CHAT | {"model": "llama-3.1-9b"}).link(), 422)
    assert "llama-3.1-8b" in lost


@pytest.mark.parametrize("name", ["/etc/passwd", "../x.yaml", "https://example.org/model", "config.json"])
def test_nothing_that_is_named_is_opened(client: Client, name: str) -> None:
    for fields in ({"model": name}, {"accelerator": name}, {"profiles": [name]}, {"draft_model": name}):
        text = shown(client, State(CHAT | fields).link(), 422)
        assert "root:" not in text and "Not estimated" in text


@pytest.mark.parametrize("hub", [False, True])
def test_the_hub_is_read_only_where_the_server_was_told_so(
    monkeypatch: pytest.MonkeyPatch, hub: bool
) -> None:
    read: list[str] = []

    def fetch(name: Any, trust: bool) -> Any:
        read.append(name.id)
        raise InputError(f"{name.id}: not there")

    monkeypatch.setattr(models, "_from_hub", fetch)
    with Client(hub=hub) as client:
        for path in ("/", "/drill", "/compare.xlsx", "/workbook.xlsx"):
            pin = State(CHAT | {"model": f"someone/thing-{hub}"})
            assert client.get(State(pin.fields, (pin.packed,)).link(path)).status_code == 422
    assert set(read) == ({"someone/thing-True"} if hub else set())


def test_a_plan_that_cannot_be_shows_no_times(client: Client) -> None:
    """No tiles; how many GB are missing, the code, and ways out."""
    state = State(CHAT | {"model": "llama-3.1-405b", "tp": 1})
    page = client.get(state.link()).text
    text = shown(client, state.link())
    assert "Not enough memory" in text and "MEMORY_EXCEEDED" in text
    assert re.search(r"does not fit on one H100 SXM: [\d.]+ GB are missing", plain(text))
    assert 'class="tiles"' not in page and "Ways out" in text and "What does not help" in text
    assert "tokens/s to" not in text


def test_unknown_is_not_known(client: Client) -> None:
    """A price that nobody states is no zero."""
    chip = "a40"
    assert mantile.estimate(parse_scenario(CHAT | {"accelerator": chip}, "t")).usd_per_hour is None
    page = client.get(State(CHAT | {"accelerator": chip}).link()).text
    tile = plain(page[page.index("What does it cost?") : page.index("Does it fit?")])
    assert "not known" in tile and "0.00" not in tile and "PRICE_UNKNOWN" in page


def test_a_figure_leads_to_its_datasheet(client: Client) -> None:
    """From a module to the bandwidth of the chip, with formula, value and source."""
    text = shown(client, STATE.link("/drill", phase="decode", block="ffn_up"))
    assert "Time per layer" in text
    page = client.get(STATE.link("/drill", id="decode.ffn_up.layer_time")).text
    explained = mantile.explain(mantile.estimate(parse_scenario(CHAT, "test")), "decode.ffn_up.layer_time")
    assert plain(explained.how) in shown(client, STATE.link("/drill", id=explained.id))
    for term in explained.precedents:
        assert f"id={term.id}" in page
    formulas = re.findall(r"<math[^>]*>.*?</math>", page)
    assert "<msub><mi>t</mi><mtext>memory</mtext></msub>" in formulas[1]  # symbols, then numbers of each side
    assert "<mi>max</mi>" in formulas[3] and "<mtext>&#160;µs</mtext>" in formulas[3]
    row = page[page.index("Memory bandwidth in use", page.index("inputs-table")) :][:900]
    assert "3,350" in row and re.search(r"datasheet|secondary", row)
    assert "did you mean" in shown(client, STATE.link("/drill", id="decode.ffn_up.layer_tme"), 404)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")  # of openpyxl
def test_cells_are_those_of_the_workbook(client: Client) -> None:
    """Address and formula beside a number, and the digest in the footer, are those of the file."""
    content = client.get(STATE.link("/workbook.xlsx")).content
    book = openpyxl.load_workbook(io.BytesIO(content))
    for identifier in ("serving.tpot", "decode.ffn_up.layer_time", "hardware.memory_bandwidth"):
        page = client.get(STATE.link("/drill", id=identifier)).text
        found = re.search(
            r'in the workbook</dt><dd><span class="mono">(\w+)!([A-Z]+\d+) <[^>]*>([^<]+)', page
        )
        assert found is not None
        assert book[found[1]][found[2]].value == unescape(found[3])
        assert book[found[1]][f"F{book[found[1]][found[2]].row}"].value == identifier
    digest = re.search(r"bundle (\w{4} \w{4})", page)
    assert digest is not None and digest[0] in str(book["Summary"].oddFooter.right.text)


def test_a_tenth_more_is_what_an_override_does(client: Client) -> None:
    """Of a figure that may be replaced, the graph says the same where it is typed."""
    found = answer(STATE)
    bandwidth = found.estimate["hardware.memory_bandwidth"].value
    more = drill.figure(found, "hardware.memory_bandwidth", STATE)["more"]
    typed = [{"id": "hardware.memory_bandwidth", "value": bandwidth * 1.1e-9, "reason": "a tenth more"}]
    other = mantile.estimate(parse_scenario(CHAT | {"overrides": typed}, "test"))
    then = {row["id"]: row["then"] for row in more["rows"]}
    assert other.tpot is not None and found.estimate.tpot is not None and other.tpot < found.estimate.tpot
    assert then[TPOT.id] == headline(TPOT, other.tpot) and "more output tokens" in more["title"]
    for identifier in ("inputs.tp", "memory.fits", "hardware.name"):  # a whole number, a flag, a text
        assert drill.figure(found, identifier, STATE)["more"] is None


def test_a_pass_shows_every_layer(client: Client) -> None:
    """In the order of the model, of which each opens; layers of unlike kinds take unlike times."""
    state = State(CHAT | {"model": "gpt-oss-20b", "input_tokens": 8192, "tp": 1})
    page = client.get(state.link("/drill", phase="prefill", layer=2)).text
    bar = page[page.index('class="pass"') :].partition("</svg>")[0]
    layers = re.findall(r'aria-label="Layer (\d+), ([^:]+): ([^,]+)', bar)
    assert [int(number) for number, _, _ in layers] == list(range(1, 25))
    assert layers[0][1:] == layers[2][1:] and layers[0][2] != layers[1][2]
    assert f"Layer 2 of 24 lasts {layers[1][2]}" in page
    assert "Layer 1 of 24" in client.get(state.link("/drill", layer="-7")).text


def test_pinned_runs_are_columns_of_one_workbook(client: Client) -> None:
    """Each with the results that it has by itself, what it leaves out as well; not of unlike models."""
    slower = [{"id": "hardware.memory_bandwidth", "value": 2000, "reason": "measured"}]
    base = STATE.with_fields(utilisation=0.5)
    runs = [
        base,
        STATE.with_fields(weights_dtype="fp8"),
        State({key: value for key, value in CHAT.items() if key != "concurrency"} | {"request_rate": 4}),
        base.with_fields(overrides=slower, accelerator="h200-sxm"),
    ]
    pins = tuple(run.packed for run in runs)
    made = estimate_of(as_scenario(pinned(State(CHAT, pins))), False)
    for place, run in enumerate(runs):
        alone = answer(run).results
        for metric in (TPOT, TTFT, USD_PER_MILLION_OUTPUT_TOKENS):
            assert made.metrics(place)[metric] == pytest.approx(at(alone, metric.key), rel=1e-12)
    other = State(CHAT, (STATE.packed, STATE.with_fields(model="qwen3-8b").packed))
    assert "differs from A in model" in shown(client, other.link("/compare.xlsx"), 422)


@pytest.mark.exhaustive
def test_the_workbook_of_pinned_runs_comes(client: Client) -> None:
    state = State(CHAT, (STATE.packed, STATE.with_fields(weights_dtype="fp8").packed))
    assert "/compare.xlsx" in client.get(state.link("/compare")).text
    assert client.get(state.link("/compare.xlsx")).content[:2] == b"PK"


def test_labels_of_a_chart_keep_off_each_other() -> None:
    """Of points that crowd, those that have room are named; the tier always is."""
    crowd = [(0.1 * place, 50 + place, f"{place} × B200 SXM") for place in range(30)]
    series = [charts.Series("front", crowd), charts.Series("tier", [(1.5, 65, "minimum, good")], False)]
    drawn = str(charts.chart(series, "USD per hour", "ms", "crowded"))
    found = re.findall(
        r'<text x="([\d.]+)%" dx="(-?\d+)" y="([\d.]+)" text-anchor="(\w+)" class="label \w+">([^<]+)', drawn
    )
    boxes = []
    for x, dx, y, anchor, words in found:
        start, width = float(x) * 4.6 + int(dx), 6 * len(words)
        boxes.append((start if anchor == "start" else start - width, float(y), width))
    assert "minimum, good" in drawn and 2 < len(boxes) < 20
    for place, (left, y, width) in enumerate(boxes):
        for other, height, _ in boxes[:place]:
            assert abs(y - height) >= 12 or not other - width < left < other + width


def test_a_label_has_the_side_without_a_line() -> None:
    """Of a point on a falling line there is room below on the left; on a rising one on the right."""
    for ends, side in (([(0, 10), (10, 0)], "end"), ([(0, 0), (10, 10)], "start")):
        line = [(float(x), float(y), "") for x, y in ends]
        drawn = str(
            charts.chart(
                [charts.Series("front", line), charts.Series("now", [(5, 5, "here")], False)], "", "", ""
            )
        )
        assert f'text-anchor="{side}" class="label now"' in drawn


def test_compare_says_better_and_worse(client: Client) -> None:
    """Deltas of pinned runs to the first, with the sign and the word of each."""
    faster = STATE.with_fields(weights_dtype="fp8")
    state = State(CHAT, (STATE.packed, faster.packed))
    base, other = (mantile.estimate(parse_scenario(dict(one.fields), "test")).tpot for one in (STATE, faster))
    assert base is not None and other is not None
    text = shown(client, state.link("/compare"))
    assert f"−{round(100 * (1 - other / base))} % better" in text
    third = State(CHAT, (STATE.packed, faster.packed, STATE.with_fields(tp=4).packed))
    page = client.get(third.link("/compare")).text
    row = page[page.index("Cost per hour") :].partition("</tr>")[0]
    assert row.count("★") == 2  # A and B cost the same, less than C
    assert "Cost per hour" not in page[page.index("Which is best for what") :]
    rows = list(csv.reader(io.StringIO(client.get(state.link("/compare.csv")).text)))
    tpot = next(row for row in rows if row[0] == "tpot_s")
    assert [float(value) for value in tpot[2:]] == [base, other]


def test_a_sweep_is_a_chart_a_table_and_a_file(client: Client) -> None:
    address = STATE.link("/sweep.csv", x="concurrency", over="1, 2..4", by="tp", values="1,2", y="tpot_s")
    rows = list(csv.DictReader(io.StringIO(client.get(address).text)))
    assert [(row["concurrency"], row["tp"]) for row in rows] == [
        (str(c), str(t)) for c, t in product(range(1, 5), (1, 2))
    ]
    one = mantile.estimate(parse_scenario(CHAT | {"concurrency": 4}, "test"))
    assert float(rows[-1]["tpot_s"]) == pytest.approx(one.tpot, rel=1e-12)
    text = shown(client, address.replace("/sweep.csv", "/sweep"))
    assert re.search(r"Tensor parallel: ● 1 · ■ 2", text)
    assert "8 of 8 points can be" in text and TPOT.text(one.tpot) in text
    assert "expected whole numbers" in shown(client, STATE.link("/sweep", over="x"), 422)
    assert "at most" in shown(client, STATE.link("/sweep", over="1..100000"), 422)


def test_assumptions_name_every_field_with_its_effect(client: Client) -> None:
    state = STATE.with_fields(
        kv_dtype="fp8", overrides=[{"id": "hardware.price_cloud", "value": 3.5, "reason": "our contract"}]
    )
    text = shown(client, state.link("/assumptions"))
    assert "our contract" in text and "KV cache" in text and "Prefill interference" in text
    assert "3 fields or figures" in text  # tp, kv_dtype, the price


def test_facts_of_the_model_are_replaced_on_assumptions(client: Client) -> None:
    """Several at once, with a reason; one of them is taken back; what no model can have is refused."""
    address = STATE.link("/assumptions", set="model.tied_embeddings=1 model.layers=30", why="our finetune")
    text = shown(client, address)
    assert "our finetune" in text and "Tied embeddings" in text and "model.ffn_input_matrices" in text
    state = state_of(parse_qsl(urlsplit(address).query))
    assert state.fields["overrides"] == [
        {"id": "model.tied_embeddings", "value": 1, "reason": "our finetune"},
        {"id": "model.layers", "value": 30, "reason": "our finetune"},
    ]
    back = state_of(parse_qsl(urlsplit(state.link("/assumptions", set="model.layers=")).query))
    assert [item["id"] for item in back.fields["overrides"]] == ["model.tied_embeddings"]
    for wrong, said in (
        ("model.experts=8", "say which layers are a mixture"),
        ("model.tied_embeddings=2", "from 0 to 1"),
        ("model.layers", "expected ID=VALUE"),
    ):
        assert said in shown(client, STATE.link("/assumptions", set=wrong), 422)


def test_placement_and_links_that_are_typed(client: Client) -> None:
    usual = shown(client, STATE.link("/placement"))
    assert "450 GB/s" in usual
    assert "200 GB/s" in shown(client, STATE.link("/placement") + "&hardware.link_bandwidth=200")


@pytest.mark.exhaustive
def test_links_of_devices_can_be_typed(client: Client) -> None:
    """Of each pair that has one; the drawing says which is the busiest, and an empty field gives it back."""
    devices = [{"accelerator": "m3-ultra"}, {"accelerator": "m3-ultra"}, {"accelerator": "dgx-spark-gb10"}]
    fields = {key: value for key, value in CHAT.items() if key not in ("accelerator", "tp")}
    state = State(
        fields | {"devices": devices, "framework": "exo", "links": "mesh", "device_split": "memory"}
    )
    page = client.get(state.link("/placement")).text
    names = re.findall(r'name="(device[^"]+)"', page)
    assert names == [f"device{name}_bandwidth" for name in ("1_link", "2_link", "1_link_to_3")]
    slow = state_of([("s", state.packed), ("device1_link_bandwidth", "0.25")])
    text = shown(client, slow.link("/placement"))
    assert "busiest link is M3 Ultra (80 GPU cores) – M3 Ultra" in text and "0.25 GB/s" in text
    wires = [
        re.findall(r'class="wire (\w+)"', client.get(one.link("/placement")).text) for one in (state, slow)
    ]
    assert wires == [["quiet", "busy"], ["busy", "quiet"]]
    before, after = (answer(one).results["ttft_s"] for one in (state, slow))
    assert after > before
    assert state_of([("s", slow.packed), ("device1_link_bandwidth", "")]) == state
    wrong = client.get(state.link("/placement") + "&device2_link_bandwidth=x").text
    assert "device2_link_bandwidth: expected a number" in wrong and "as the library has it" in wrong


@pytest.mark.parametrize("typed", ["fast", "-3"])
def test_a_wrong_link_is_told_by_name_and_can_be_taken_back(client: Client, typed: str) -> None:
    """No field of the form has it: who typed it gets back to the drawing."""
    page = client.get(STATE.link("/placement") + f"&hardware.link_bandwidth={typed}")
    text = page.text[page.text.index('id="verdict"') :]
    assert page.status_code == 422 and "hardware.link_bandwidth" in text and "Price of a GPU" not in text
    back = re.search(r'href="(/placement\?[^"]+)">Try it', text)
    assert back is not None and "450 GB/s" in shown(client, unescape(back[1]))
    priced = client.get(STATE.link() + f"&price={typed}").text
    assert 'aria-invalid="true"' in priced[priced.index('id="box-price"') :][:400]


def test_text_goes_out_and_comes_back(client: Client) -> None:
    """The YAML of a page, pasted, is the same run."""
    page = client.get(STATE.link("/text")).text
    found = re.search(r'<textarea id="yaml"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    assert found is not None
    posted = client.post("/text", data={"text": unescape(found[1])})
    assert posted.status_code == 303
    opened = state_of([("s", parse_qs(urlsplit(posted.headers["location"]).query)["s"][0])])
    assert parse_scenario(dict(opened.fields), "t") == parse_scenario(CHAT, "t")


def test_no_page_needs_inline_code_or_another_host(client: Client) -> None:
    """What a strict policy forbids is not there, and the policy is."""
    for path, _ in (*VIEWS, ("/assumptions", ""), ("/text", ""), ("/upload", "")):
        found = client.get(STATE.link(path))
        assert not re.search(
            r"<style|\sstyle=|\son\w+=|javascript:|https?://(?!localhost)", found.text.split("</head>")[0]
        )
        assert not re.search(r"<style|\sstyle=|\son(click|load|error|input)=|<script(?! src)", found.text)
        assert "'unsafe-inline'" not in found.headers["content-security-policy"]
    assert client.get("/static/../routes.py").status_code == 404
    assert client.get("/static/page.css").headers["content-type"].startswith("text/css")


_PAIRS = (
    *product(("ink", "grey", "navy", "link"), ("canvas", "surface", "panel")),
    ("mute", "surface"),
    ("on-button", "button"),
    ("input-text", "input"),
    ("good", "good-fill"),
    ("good", "canvas"),
    ("warn", "warn-fill"),
    ("bad", "bad-fill"),
    ("bad", "surface"),
    ("fitted", "fitted-fill"),
    ("ink", "chip"),
    ("on-compute", "compute"),
    ("on-memory", "memory"),
    ("on-memory", "network"),
    ("on-overhead", "overhead"),
    ("grey", "input"),
)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast_of_text_is_enough(theme: int) -> None:
    """Every pair of text and ground has 4.5 to 1, the edge of a field 3 to 1, by the formula of WCAG."""
    css = (PAGE / "static" / "page.css").read_text(encoding="utf-8")
    colours = {
        name: (light, dark)[theme]
        for name, light, dark in re.findall(r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", css)
    }

    def light(name: str) -> float:
        parts = [int(colours[name][place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        high, low = sorted((light(one), light(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    poor = {pair: round(contrast(*pair), 2) for pair in _PAIRS if contrast(*pair) < 4.5}
    assert not poor
    assert contrast("input-edge", "input") >= 3 and contrast("ring", "canvas") >= 3


def test_a_price_that_was_typed_is_of_its_accelerator() -> None:
    """It goes along where other accelerators are looked at, the other figures of the chip stay behind."""
    link = {"id": "hardware.link_bandwidth", "value": 300, "reason": TYPED}
    typed = [{"id": name, "value": 3.5, "reason": TYPED} for name in ("hardware.price_cloud", "hardware.tdp")]
    state = State(CHAT | {"overrides": [*typed, link]})
    moved = state.with_fields(accelerator="b200-sxm").fields
    assert moved["prices"] == {"h100-sxm": 3.5} and moved["overrides"] == [link]
    assert state.with_fields(tp=4).fields["overrides"] == [*typed, link]
    owned = elsewhere(state.fields | {"price_basis": "owned"})
    assert "prices" not in owned and owned["overrides"] == [link]


@pytest.mark.exhaustive
def test_decide_says_what_holds_and_what_becomes_of_each_accelerator(client: Client) -> None:
    """The most GPUs, the limit where no wait is typed, why an accelerator has no build; prices of each."""
    address = STATE.link("/decide", go=1, chips="l4", users=40, ttft="", tpot="20", budget="", most=2)
    told = shown(client, address)
    assert "at most 2 accelerators each. TTFT, p95 ≤ 10.0 s by default" in told
    assert re.search(
        r"is missed by .* \(at most 2 accelerators\); (\d+ keep|up to 64 do not keep) every", told
    )
    priced = STATE.with_fields(overrides=[{"id": "hardware.price_cloud", "value": 3.5, "reason": TYPED}])
    all_chips = shown(client, priced.link("/decide", go=1, chips="maker:NVIDIA", users=8, budget="", most=1))
    assert "3.50" in all_chips and "0.79" in all_chips


@pytest.mark.exhaustive
def test_a_build_of_decide_is_the_run_that_it_opens(client: Client) -> None:
    """To the digit; and what nothing keeps is told with the limit that is missed."""
    page = client.get(
        STATE.link("/decide", go=1, chips="h100-sxm", users=8, ttft=500, tpot=50, budget=20)
    ).text
    opened = re.search(r'<a class="button" href="([^"]+)">Open as run', page)
    assert opened is not None
    state = state_of([("s", parse_qs(urlsplit(unescape(opened[1])).query)["s"][0])])
    results = mantile.estimate(parse_scenario(dict(state.fields), "test")).results()
    assert results["concurrency"] == 8 and results["ttft_s"] <= 0.5 and results["tpot_s"] <= 0.05
    assert headline(TTFT, results["ttft_s"]) in page and headline(TPOT, results["tpot_s"]) in page
    lost = shown(client, STATE.link("/decide", go=1, chips="h100-sxm", users=8, tpot="0.1"))
    assert "Nothing keeps every limit" in lost and "TPOT" in lost
    assert "expected a number" in shown(client, STATE.link("/decide", go=1, users="many"), 422)


@pytest.mark.exhaustive
def test_measured_figures_move_factors_and_nothing_else(client: Client) -> None:
    """A slower run than estimated is met better with the factors; a text that is none is told."""
    tpot = mantile.estimate(parse_scenario(CHAT, "test")).tpot
    assert tpot is not None
    text = shown(client, STATE.link("/calibrate", tpot=1300 * tpot))
    assert "would move most" in text
    before, after = (float(one) for one in re.findall(r"TPOT ([\d.]+) % ([\d.]+) %", text)[0])
    assert after < before and before == pytest.approx(100 * (1 - 1 / 1.3), abs=0.6)
    assert mantile.estimate(parse_scenario(CHAT, "test")).tpot == tpot
    heads = "id,model,accelerator,tp,input_tokens,output_tokens,concurrency,tpot_ms"
    table = f"{heads}\na,llama-3.1-8b,h100-sxm,1,1024,128,8,9\n"
    assert "would move most" in client.post("/calibrate", data={"text": table}).text
    wrong = client.post("/calibrate", data={"text": "model: ../../etc/passwd"})
    assert wrong.status_code == 422 and "/tmp" not in wrong.text


# --- the same answer everywhere -----------------------------------------------------------------------------

_SHORT = {"input_tokens": 2000, "output_tokens": 512}
QUESTIONS: tuple[dict[str, Any], ...] = (
    CHAT,
    {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 4, "concurrency": 16, **_SHORT},
    {"model": "llama-3.3-70b", "accelerator": "h100-sxm", "tp": 1, "concurrency": 16, **_SHORT},
    {
        "model": "gpt-oss-120b",
        "accelerator": "rtx-4090",
        "framework": "llama.cpp",
        "concurrency": 1,
        **_SHORT,
    },
    {"model": "llama-3.1-8b", "accelerator": "rtx-4090", "tp": 1, "request_rate": 2, **_SHORT},
    {"model": "qwen3.5-27b", "accelerator": "rtx-pro-6000-bw", "tp": 1, "concurrency": 16, **_SHORT},
)


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_whoever_is_asked_gives_the_same_answer(number: int, client: Client, tmp_path: Path) -> None:
    """Python, the command line, HTTP and the page: the same sentence, figures and ways out."""
    fields = QUESTIONS[number]
    said = mantile.answer(mantile.estimate(parse_scenario(fields, "test")))
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(fields), encoding="utf-8")
    printed = json.loads(CliRunner().invoke(app, ["estimate", str(file), "--json"]).stdout)
    told = client.answer("/v1/estimate", {"scenario": fields, "recommend": 0})
    text = plain(shown(client, State(fields).link()))
    assert printed["sentence"] == told["sentence"] == said.verdict and said.verdict.rstrip(".") in text
    assert printed["remedies"] == told["remedies"] == [way.to_dict() for way in said.ways]
    for way in said.ways:
        assert way.words[1:] in text
    for line in said.lines[:2]:
        assert printed[line.metric.key] == told["estimate"][line.metric.key] == line.value
        assert plain(headline(line.metric, line.value)) in text


def test_a_model_that_fits_nowhere_is_answered(client: Client) -> None:
    """AUTO without a plan that can be: a page with the missing memory and ways out, not an error."""
    fields = QUESTIONS[3] | {"tp": "auto", "gpus": 1}
    text = shown(client, State(fields).link())
    assert "39.3 GB are missing" in plain(text) and "Ways out" in text and "--n-cpu-moe 24" in text
