"""The page in a browser: what a person does on it, at three widths, by keyboard, light and dark."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("playwright")
pytest.importorskip("uvicorn")

import openpyxl
import uvicorn
from playwright import sync_api as sync

import mantile
from mantile.library.scenario import parse_scenario
from mantile.server.app import create_app
from mantile.server.page.state import State
from mantile.server.settings import Settings

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
AXE = os.environ.get("AXE_CORE")  # the path of axe.min.js; what it checks is left out without

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
    pytest.mark.exhaustive,
    pytest.mark.filterwarnings("ignore"),  # of browsers, sockets and openpyxl
]
CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
    "tp": 1,
}
STATE = State(CHAT)
FASTER = STATE.with_fields(weights_dtype="fp8")
VIEWS = (
    "/",
    STATE.by_auto().link(),
    State(CHAT | {"model": "llama-3.1-405b"}).link(),
    "/?input_tokens=abc",
    STATE.link("/drill"),
    STATE.link("/drill", id="decode.ffn_up.layer_time"),
    STATE.link("/drill", phase="prefill", block="qkv"),
    STATE.link("/drill", find="tpot"),
    State(CHAT, (STATE.packed, FASTER.packed)).link("/compare"),
    STATE.link("/decide"),
    STATE.link("/sweep"),
    STATE.link("/sweep", over="abc"),
    FASTER.link("/assumptions"),
    STATE.link("/placement"),
    STATE.link("/calibrate"),
    STATE.link("/text"),
    STATE.link("/upload"),
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server on a port of its own."""
    server = uvicorn.Server(
        uvicorn.Config(create_app(Settings(rate=0)), host="127.0.0.1", port=0, log_level="error")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(20)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """A wide window; errors of scripts and of the policy fail the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1440, "height": 900})
    opened, wrong = context.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda told: wrong.append(told.text) if "Security Policy" in told.text else None)
    yield opened
    context.close()
    assert not wrong


def test_a_field_updates_the_page_and_its_address(page: Any) -> None:
    """Run, AUTO: results follow what is typed, without a click, and the address is the permalink."""
    page.goto(STATE.link())
    before = page.inner_text("#verdict")
    with page.expect_response(lambda answer: "concurrency=64" in answer.url):
        page.fill("#f-concurrency", "64")
    page.wait_for_function("text => document.getElementById('verdict').textContent != text", arg=before)
    assert "64 users" in page.inner_text("#verdict") and page.input_value("#f-concurrency") == "64"
    assert page.inner_text("#live") == page.inner_text("#verdict")
    told = page.inner_text("#verdict")
    page.goto(page.url)  # the round trip of the permalink
    assert page.inner_text("#verdict") == told and page.input_value("#f-concurrency") == "64"
    page.check("input[name=plan][value=auto]", force=True)
    page.wait_for_selector(".reasons")
    assert "plans tried" in page.inner_text(".reasons")


def test_the_page_works_without_script(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, java_script_enabled=False)
    opened = context.new_page()
    opened.goto(STATE.link())
    opened.fill("#f-output_tokens", "300")
    opened.click("text=Estimate >> visible=true")
    assert "300 out" in opened.text_content(".asked")
    context.close()


def test_from_a_headline_to_a_datasheet(page: Any) -> None:
    """How, then step by step to the bandwidth of the chip and who states it."""
    page.goto(STATE.link())
    page.click(".tile:has-text('Time per output token') .how")
    assert "TPOT" in page.inner_text("h1")
    page.click("nav.crumbs a")
    page.click("section:has(h3:has-text('Decode')) >> a:has-text('FFN')")
    page.click("main table a:has-text('FFN gate + up') >> visible=true")
    page.click("main table a:has-text('Time per layer')")
    row = page.locator("tr", has_text="Memory bandwidth in use").first
    assert "3,350" in row.inner_text() and "2026" in row.inner_text()
    page.focus("[data-tree] a.node >> nth=0")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('ul ul') !== null")


def test_a_tampered_workbook_is_reported(page: Any, tmp_path: Path) -> None:
    """What the page builds verifies; a constant typed over a formula is named with its cell."""
    built = mantile.estimate(parse_scenario(CHAT, "t")).to_excel(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(built)
    cell = next(
        cell
        for row in book["Calculation"].iter_rows(min_row=30)
        for cell in row
        if isinstance(cell.value, str) and cell.value.startswith("=")
    )
    cell.value = 0.0123
    book.save(tmp_path / "tampered.xlsx")
    page.set_default_timeout(180_000)
    page.goto(STATE.link("/upload"))
    page.set_input_files("#file", tmp_path / "tampered.xlsx")
    page.click("text=Verify")
    page.wait_for_selector("text=not verified")
    assert "tampered" in page.inner_text("h1") and f"Calculation!{cell.coordinate}" in page.inner_text("main")


def test_a_text_is_written_at_the_pace(page: Any) -> None:
    """Nothing plays by itself; once pressed it starts empty and ends whole."""
    page.goto(STATE.link())
    whole = page.inner_text(".feel-text")
    page.click("#play")
    page.wait_for_function("() => !document.querySelector('[data-playing]')")
    assert page.inner_text(".feel-text") == whole


def test_theme_follows_the_system_and_the_button(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, color_scheme="dark")
    opened = context.new_page()
    opened.goto(STATE.link())
    ground = "getComputedStyle(document.body).backgroundColor"
    assert opened.evaluate(ground) == "rgb(14, 20, 27)"
    opened.click("#theme")
    assert opened.evaluate(ground) == "rgb(243, 245, 248)"
    opened.reload()
    assert opened.evaluate(ground) == "rgb(243, 245, 248)"
    context.close()


def test_the_keyboard_reaches_everything(page: Any) -> None:
    page.goto(STATE.link())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the results"
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    assert {"theme", "f-model", "f-accelerator", "f-input_tokens"} <= seen


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1000, "light"), (375, "dark")])
def test_no_view_scrolls_sideways_or_breaks_axe(browser: Any, address: str, width: int, scheme: str) -> None:
    context = browser.new_context(
        base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    wrong: dict[str, Any] = {}
    for view in VIEWS:
        opened.goto(view)
        if opened.evaluate("document.documentElement.scrollWidth") > width:
            wrong[view] = "scrolls sideways"
        if AXE:
            opened.evaluate(Path(AXE).read_text(encoding="utf-8"))
            found = opened.evaluate("axe.run(document, {resultTypes: ['violations']})")
            if found["violations"]:
                wrong[view] = [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]
    context.close()
    assert not wrong


def test_assumptions_open_in_a_drawer(page: Any) -> None:
    """From any view; Escape closes it, and who opened it has the focus again."""
    for view in (FASTER.link(), FASTER.link("/drill"), FASTER.link("/calibrate")):
        page.goto(view)
        page.focus("[data-drawer]")
        page.keyboard.press("Enter")
        page.wait_for_selector("#drawer[open] >> text=Export audit .json")
        beside = "document.querySelector('main').getBoundingClientRect().right <= innerWidth - 452"
        assert page.evaluate(beside)  # of a wide window the page makes room
        wider = (
            "[...document.querySelectorAll('.tile')].filter(one => one.scrollWidth > one.clientWidth).length"
        )
        assert page.evaluate(wider) == 0
        assert page.evaluate("document.activeElement.id") == "close"
        assert "FFN weights" in page.inner_text("#drawer") or "Weights" in page.inner_text("#drawer")
        if AXE:
            page.evaluate(Path(AXE).read_text(encoding="utf-8"))
            assert page.evaluate("axe.run('#drawer')")["violations"] == []
        page.keyboard.press("Escape")
        assert not page.is_visible("#drawer")
        assert page.evaluate("document.activeElement.hasAttribute('data-drawer')")
    page.set_viewport_size({"width": 1100, "height": 900})
    page.click("[data-drawer]")
    page.wait_for_selector("#drawer:modal")


def test_a_phone_begins_with_what_matters(browser: Any, address: str) -> None:
    """Views in a menu, what comes last closed; what is opened stays open when a field changes."""
    context = browser.new_context(base_url=address, viewport={"width": 375, "height": 800})
    opened = context.new_page()
    opened.goto(STATE.link())
    assert not opened.is_visible("text=Calibrate") and not opened.is_visible("text=pin both")
    assert opened.is_visible("text=What limits it") and not opened.is_visible("#fold-if table")
    opened.click("#fold-if > summary")
    opened.click("text=Edit")
    opened.fill("#f-concurrency", "9")
    opened.wait_for_selector("#verdict:has-text('9 users')", state="attached")
    opened.click("text=Done")
    assert opened.is_visible("#fold-if table") and not opened.is_visible("#fold-feel p")
    opened.click("#menu > summary")
    opened.click("text=Calibrate")
    opened.wait_for_url("**/calibrate?**")
    context.close()


def test_fields_of_a_phone_are_a_sheet(browser: Any, address: str) -> None:
    context = browser.new_context(base_url=address, viewport={"width": 375, "height": 800})
    opened = context.new_page()
    opened.goto(STATE.link())
    assert not opened.is_visible("#f-model")
    opened.click("text=Edit")
    assert opened.is_visible("#f-model")
    opened.click("text=Done")
    assert not opened.is_visible("#f-model") and opened.is_visible("#verdict")
    context.close()
