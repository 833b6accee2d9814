"""Limits of the server, and what hostile requests come to."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
import sys
import time
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi")

from asking import Client
from serving import serving

from mantile.library.errors import InputError
from mantile.server.errors import Limited, Refused
from mantile.server.limits import HEADERS
from mantile.server.page.state import State
from mantile.server.pool import Pool
from mantile.server.settings import Settings

CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """One server for all that do not ask for settings of their own."""
    with Client(most_upload=2_000_000) as running:
        yield running


# --- what is asked for must not be opened -------------------------------------------------------------------

_seen: list[str] | None = None


def _watch(event: str, given: tuple[Any, ...]) -> None:
    if _seen is not None and event in ("open", "socket.connect", "socket.getaddrinfo", "subprocess.Popen"):
        _seen.append(f"{event} {given[0] if event == 'open' else given}")


sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[str]]:
    """What this process opens, looks up or connects to meanwhile."""
    global _seen
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None


CANARY = "canary-7f3a"
NAMED = [
    {"model": f"/{CANARY}/config.json"},
    {"model": f"../../{CANARY}"},
    {"model": f"{CANARY}.gguf"},
    {"model": f"someone/{CANARY}"},
    {"model": f"https://huggingface.co/someone/{CANARY}"},
    {"model": f"http://169.254.169.254/{CANARY}"},
    {"model": f"file:///{CANARY}"},
    {"accelerator": f"/{CANARY}.yaml"},
    {"decode": {"gpu": f"{CANARY}.YAML"}},
    {"variants": [{"decode_accelerator": f"{CANARY}.yml"}]},
    {"devices": [{"accelerator": f"{CANARY}.yaml"}, {"accelerator": "l40s"}]},
    {"device2_accelerator": f"{CANARY}.yaml"},
    {"alternative": {"accelerator": f"{CANARY}.yaml"}},
    {"sweep": {"Accelerator": [f"{CANARY}.yaml"]}},
    {"template": f"/{CANARY}.yaml"},
    {"profiles": [f"{CANARY}.yaml"]},
    {"profiles": [f"accelerators/../../{CANARY}@1"]},
    {"draft_model": f"someone/{CANARY}"},
    {"draft_model": f"./{CANARY}"},
]


@pytest.mark.parametrize("named", NAMED, ids=json.dumps)
def test_no_path_and_no_address_of_a_request_is_opened(client: Client, named: dict[str, Any]) -> None:
    """Whatever the field: refused, and neither a file of that name nor a socket was opened."""
    with watched() as seen:
        client.refused("/v1/estimate", {"scenario": CHAT | named})
    assert not [one for one in seen if CANARY in one or not one.startswith("open")]


@pytest.mark.parametrize("model", [f"/{CANARY}", f"someone/{CANARY}", f"http://127.0.0.1/{CANARY}"])
def test_no_other_endpoint_opens_them_either(client: Client, model: str) -> None:
    """Kinds of layers take a model by its name alone, as does every view of the page."""
    page = State(CHAT | {"model": model})
    body = {"model_id": model, "hardware_config": "h100"}
    one = {"layer_type": "norm", "seq_length": 9}
    with watched() as seen:
        assert client.get("/api/layers", params={"model_id": model}).status_code == 422
        client.refused("/config/layer-metrics", body | one)
        client.refused("/config/system-metrics", body | {"input_seq": 9, "output_seq": 9})
        client.refused("/v1/estimate", {"model_id": model, "hardware": {"hardware_id": f"{CANARY}.yaml"}})
        for path in ("/", "/drill", "/decide", "/sweep", "/text", "/workbook.xlsx", "/compare.xlsx"):
            assert CANARY in client.get(State(page.fields, (page.packed,)).link(path)).text
    assert not [one for one in seen if CANARY in one or not one.startswith("open")]


def test_the_hub_is_read_only_where_it_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With hub=True an id of the hub is read, but never a path."""
    from mantile.library import models
    from mantile.server import documents

    asked: list[str] = []

    def fetch(name: Any, trust: bool) -> Any:
        asked.append(name.id)
        raise InputError(f"{name.id}: not there")

    monkeypatch.setattr(models, "_from_hub", fetch)
    documents.model_of.cache_clear()
    for name in ("someone/thing", "/etc/passwd", "../x/config.json"):
        with pytest.raises(InputError):
            documents.estimate_of(CHAT | {"model": name}, True)
    assert asked == ["someone/thing"]


# --- bodies and headers -------------------------------------------------------------------------------------


def test_large_and_deep_bodies_are_refused_before_they_are_read(client: Client) -> None:
    """By what the header says, and by what comes where it says nothing."""
    large = b'{"scenario": {"why": "' + b"x" * 10_000_000 + b'"}}'
    for path in ("/v1/estimate", "/v1/ir", "/v1/workbooks"):
        assert "1,000,000 bytes" in client.refused(path, status=413, content=large, headers=JSON)["detail"]

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b" " * 100_000

    client.refused("/v1/estimate", status=413, content=pieces(), headers=JSON)
    deep = b'{"scenario":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
    assert client.post("/v1/estimate", content=deep, headers=JSON).status_code in (400, 422)
    nested: Any = 1
    for _ in range(200):
        nested = {"variants": [nested]}
    client.refused("/v1/estimate", {"scenario": CHAT | nested})
    many = {"scenario": CHAT | {"overrides": [{}] * 50_000}}
    client.refused("/v1/estimate", many)
    for path in ("/text", "/calibrate"):
        assert client.post(path, data={"text": "x" * 2_000_000}).status_code == 413
    files = {"file": ("big.xlsx", b"PK" + b"0" * 3_000_000)}
    found = client.request("POST", "/v1/workbooks/verify", files=files)
    assert found.status_code == 413


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    """Nor an answer that takes longer than a request may: the body is still on its way when that is said."""
    came = []

    async def pieces() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(600)
        came.append(True)
        yield b"}"

    with Client(body_seconds=1) as client:
        client.refused("/v1/estimate", status=408, content=pieces(), headers=JSON)
    with Client(most_seconds=0.01) as client:
        client.refused("/v1/optimize", {"scenario": CHAT}, status=504)
    assert not came


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"scenario": {"model": "\\ud800"}}',
        b'{"scenario": {"\\ud800": 1}}',
        b'{"scenario": {"tp": NaN}}',
        b'{"scenario": {"input_tokens": 1e999}}',
        b'{"scenario": {"input_tokens": ' + b"9" * 5000 + b"}}",
        b'{"scenario": {"model": "llama-3.1-8b", "model": "x"}}',
        b'{"scenario": {"model": ["a"]}}',
        b'{"scenario": {"model": "a\\u202eb\\u0000"}}',
        b'{"scenario": {"model": "llama-3.1-8b", "accelerator": {"a": 1}}}',
        b'{"scenario": {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "classes": 3}}',
    ],
    ids=lambda body: body[:60].decode("latin-1"),
)
def test_unreadable_bodies_are_problems(client: Client, body: bytes) -> None:
    """Never an error of the program."""
    found = client.post("/v1/estimate", content=body, headers=JSON)
    assert found.status_code in (400, 422), found.text
    assert found.json()["detail"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-length": "-1"}, 400),
        ({"content-length": "9" * 30}, 413),
        ({"content-encoding": "gzip"}, 415),
        ({"content-type": "text/plain"}, 422),
        ({"x-forwarded-for": "1.2.3.4", "x-forwarded-host": "evil", "forwarded": "host=evil"}, 200),
    ],
)
def test_headers_are_no_way_in(client: Client, headers: dict[str, str], status: int) -> None:
    """Lengths that lie, bodies that are packed, forms that another site could send, names of proxies."""
    body = json.dumps({"scenario": CHAT}).encode()
    found = client.post("/v1/estimate", content=body, headers=JSON | headers)
    assert found.status_code == status and "evil" not in found.text


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/v1/%00",
        "//evil.example/x",
        "/v1/catalog/..%2f..%2fmodels",
        "/" + "a" * 60_000,
        "/v1/estimate/",
    ],
    ids=lambda path: path[:30],
)
def test_paths_are_no_way_in(client: Client, path: str) -> None:
    """There is nothing but the endpoints."""
    found = client.get(path)
    assert found.status_code in (404, 405, 307) and "root:" not in found.text
    assert "evil.example" not in found.headers.get("location", "")


def test_other_names_of_the_host_are_refused() -> None:
    """A page of another site that resolves to this machine gets no answer."""
    with Client(hosts=("localhost",)) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get("/healthz", headers={"host": "localhost:8000"}).status_code == 200
        assert client.get("/healthz", headers={"host": "evil.example"}).status_code == 400


def test_markup_in_names_stays_text(client: Client) -> None:
    """Answers are JSON that no browser reads as a page, also where they repeat what was asked."""
    script = "<script>alert(1)</script>"
    for body in ({"model_id": script}, {"scenario": CHAT | {"model": script}}, {script: 1}):
        found = client.post("/v1/estimate", body)
        assert found.status_code == 422
        assert found.headers["content-type"] == "application/problem+json"
        assert found.headers["x-content-type-options"] == "nosniff"
    titled = client.answer("/v1/estimate", {"scenario": CHAT | {"title": script}})
    assert titled["scenario"]["title"] == script


def test_every_answer_has_the_headers_that_protect(client: Client) -> None:
    """Fine answers and refusals alike; nothing is loaded from elsewhere."""
    for path in ("/healthz", "/nope", "/hardware"):
        found = client.get(path)
        assert {name.lower(): value for name, value in HEADERS.items()}.items() <= dict(found.headers).items()
    assert "script-src" not in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


def bomb() -> bytes:
    """A file that unpacks to a thousand times its size."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", b"0" * 200_000_000)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04", b"not a workbook", bomb()], ids=["", "cut", "text", "bomb"]
)
def test_files_go_through_the_guard_of_files(client: Client, content: bytes) -> None:
    """What is no workbook of ours is refused under the name that was sent, and leaves nothing behind."""
    for path in ("verify", "import"):
        found = client.request("POST", f"/v1/workbooks/{path}", files={"file": ("a.xlsx", content)})
        assert found.status_code == 422 and found.json()["detail"].startswith("a.xlsx: "), found.text
    assert os.listdir(client.app.state.folder) == []


# --- rate, time, memory -------------------------------------------------------------------------------------


def test_a_client_that_asks_too_often_waits() -> None:
    """A tenth of a minute's requests at once, then one whenever there is room again."""
    with Client(rate=60) as client:
        statuses = [client.get("/healthz").status_code for _ in range(8)]
        last = client.get("/healthz")
    assert statuses[:6] == [200] * 6 and statuses[-1] == 429
    assert last.headers["retry-after"] == "1" and last.json()["status"] == 429


def test_counts_are_told(client: Client) -> None:
    """By path of the schema, status and time; a path that there is not counts as other."""
    client.get("/secret-path")
    text = client.get("/metrics").text
    assert 'path="/healthz",method="GET",status="200"' in text or 'path="/hardware"' in text
    assert "secret-path" not in text and 'path="other"' in text
    assert "mantile_jobs_waiting 0" in text and "mantile_request_seconds_count" in text


def run(*jobs: Any, **settings: Any) -> tuple[list[Any], Pool]:
    """What jobs come to that are asked for at once, errors among them."""

    async def all_of() -> tuple[list[Any], Pool]:
        pool = Pool(Settings(**{"builds": 1, **settings}))
        try:
            found = await asyncio.gather(*(pool.run(*job) for job in jobs), return_exceptions=True)
            return [*found], pool
        finally:
            pool.close()

    return asyncio.run(all_of())


def test_a_late_job_is_killed_and_the_next_one_done() -> None:
    """Whatever it does, after the time limit its process is gone; what waited is not lost."""
    (late, pid), pool = run((time.sleep, 3600), (os.getpid,), seconds=2)
    assert isinstance(late, Limited) and late.status == 504
    assert isinstance(pid, int) and pid != os.getpid() and pool.killed == 1
    assert pool.running == pool.waiting == 0


def test_workers_are_kept_and_replaced() -> None:
    """One process does several jobs, up to the number that is set; an error of a job is handed back."""
    (a, b, c, wrong), _ = run((os.getpid,), (os.getpid,), (os.getpid,), (json.loads, "{"), jobs_per_worker=2)
    assert a == b != c
    assert isinstance(wrong, json.JSONDecodeError)


def test_no_more_may_wait_than_is_set() -> None:
    """The rest is turned away at once, with a time after which to come again."""
    found, _ = run(*[(os.getpid,)] * 5, waiting=2)
    away = [one for one in found if isinstance(one, Limited)]
    assert len(away) == 2 and {one.status for one in away} == {503} and away[0].after


@pytest.mark.skipif(sys.platform != "linux", reason="memory of processes is limited on Linux")
def test_a_job_that_needs_too_much_memory_fails_alone() -> None:
    """The next job is done."""
    (large, pid), _ = run((bytes, 3_000_000_000), (os.getpid,), memory=2_000_000_000)
    assert isinstance(large, Limited) and large.status == 413 and isinstance(pid, int)


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, and status 2."""
    from mantile.cli import main

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr(sys, "argv", ["mantile", "serve"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "mantile: serve: needs uvicorn: pip install 'mantile[serve]'\n"


def test_errors_travel_from_workers() -> None:
    """With all that they hold."""
    import pickle

    refused = pickle.loads(pickle.dumps(Refused("no", "CODE", "tp")))
    assert (str(refused), refused.code, refused.field) == ("no", "CODE", "tp")
    limited = pickle.loads(pickle.dumps(Limited(503, "busy", 5)))
    assert (str(limited), limited.status, limited.after) == ("busy", 503, 5)


@pytest.mark.parametrize(("processes", "given_back"), [(1, False), (2, True)])
def test_a_busy_process_gives_connections_back_to_those_beside_it(processes: int, given_back: bool) -> None:
    with Client(processes=processes) as client:
        assert "connection" not in client.get("/healthz").headers
        client.app.state.counts.open += 10
        assert (client.get("/healthz").headers.get("connection") == "close") == given_back


def test_head_is_get_without_a_body(client: Client) -> None:
    for path in ("/healthz", "/v1/catalog/runtimes", "/"):
        got, head = client.get(path), client.request("HEAD", path)
        assert head.status_code == got.status_code == 200 and not head.content
        assert head.headers["content-length"] == str(len(got.content))
    assert client.request("HEAD", "/v1/estimate").status_code == 405


@pytest.mark.exhaustive
def test_a_head_without_end_is_not_kept() -> None:
    """However many bytes of it come, and whichever other parser of HTTP is installed."""
    with serving() as place:
        host, _, port = place.partition(":")
        with socket.create_connection((host, int(port))) as line, pytest.raises(OSError):
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: ")
            for _ in range(200):
                line.sendall(b"a" * 1_000_000)
