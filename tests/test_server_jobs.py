"""Long work as jobs, several estimates in one request, scripts of other pages, and the pages of endpoints."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi")

from asking import Client

CHAT: dict[str, Any] = {
    "model": "llama-3.1-8b",
    "accelerator": "h100-sxm",
    "input_tokens": 1024,
    "output_tokens": 128,
    "concurrency": 8,
}
LATER = {"Prefer": "respond-async"}
LOOKS = 600


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as running:
        yield running


def ended(client: Client, address: str) -> dict[str, Any]:
    """The state of a job that is no longer running."""
    for _ in range(LOOKS):
        found: dict[str, Any] = client.get(address).json()
        if found["status"] != "running":
            return found
        time.sleep(0.1)
    raise AssertionError(found)


def test_the_answer_of_a_job_is_that_of_the_request(client: Client) -> None:
    """Status, type and body; a failure too."""
    body = {"requests": [{"scenario": CHAT, "recommend": 0}]}
    taken = client.post("/v1/estimates", body, headers=LATER)
    assert taken.status_code == 202 and taken.headers["location"] == taken.json()["address"]
    assert ended(client, taken.headers["location"])["status"] == "done"
    result = client.get(taken.json()["result"])
    direct = client.post("/v1/estimates", body)
    assert result.status_code == 200 and result.content == direct.content
    assert result.headers["content-type"] == direct.headers["content-type"]

    wrong = client.post("/v1/optimize", {"scenario": CHAT | {"tp": -1}}, headers=LATER)
    assert ended(client, wrong.headers["location"])["status"] == "failed"
    assert client.get(wrong.json()["result"]).json()["field"] == "tp"


def test_work_that_is_not_done_soon_becomes_a_job() -> None:
    """In place of a time-out; what is quick is answered as ever."""
    with Client(patience=0.05) as client:
        assert client.get("/models").status_code == 200
        taken = client.post("/v1/optimize", {"scenario": CHAT, "gpus_max": 2})
        assert taken.status_code == 202 and taken.headers["retry-after"]
        assert ended(client, taken.headers["location"])["status"] == "done"
        assert client.get(taken.json()["result"]).json()["winner"]


def test_a_job_is_cancelled_with_its_process(client: Client) -> None:
    """It has no result then, and the next job is done."""
    over = {"tp": [1, 2, 4, 8], "concurrency": [*range(1, 2000)]}
    taken = client.post("/v1/sweep", {"scenario": CHAT, "over": over}, headers=LATER)
    address = taken.headers["location"]
    assert client.request("DELETE", address).json()["status"] in ("cancelled", "done")
    assert ended(client, address)["status"] == "cancelled"
    assert client.get(taken.json()["result"]).status_code == 404
    for _ in range(LOOKS):
        if not client.app.state.pool.running:
            break
        time.sleep(0.1)
    assert client.app.state.pool.running == 0
    assert client.answer("/v1/estimate", {"scenario": CHAT})["feasibility"] == "in_vram"


def test_progress_is_told_and_a_stream_is_kept_whole(client: Client) -> None:
    over = {"tp": [1, 2, 4, 8], "concurrency": [*range(1, 1501)]}
    body = {"scenario": CHAT, "over": over}
    taken = client.post("/v1/sweep", body, headers=LATER)
    found = ended(client, taken.headers["location"])
    assert found["progress"]["total"] > 1 and found["progress"]["what"] == "parts"
    assert client.get(taken.json()["result"]).content == client.post("/v1/sweep", body).content


def test_a_search_tells_its_steps(client: Client) -> None:
    body = {"scenario": CHAT, "gpus_max": 2}
    found = ended(client, client.post("/v1/optimize", body, headers=LATER).headers["location"])
    assert found["progress"]["done"] >= 1 and found["progress"]["total"] is None
    assert "plans" in found["progress"]["what"]


@pytest.mark.parametrize("name", ["", "0" * 32, "../state", "%2e%2e", "x" * 200])
def test_a_job_that_there_is_not_is_not_found(client: Client, name: str) -> None:
    assert client.get(f"/v1/jobs/{name}").status_code in (404, 422)
    assert client.request("DELETE", f"/v1/jobs/{name}").status_code in (404, 405, 422)


def test_several_estimates_in_one_request(client: Client) -> None:
    """Each is what it is by itself; one that is wrong spoils no other."""
    asked = [{"scenario": CHAT}, {"scenario": CHAT | {"tp": -1}}, {"scenario": CHAT | {"concurrency": 9}}]
    one, wrong, other = client.answer("/v1/estimates", {"requests": asked})["answers"]
    assert one == client.answer("/v1/estimate", asked[0])
    assert wrong["status"] == 422 and wrong["field"] == "tp"
    assert other == client.answer("/v1/estimate", asked[2])
    client.refused("/v1/estimates", {"requests": []})


def test_scripts_of_other_pages_may_ask_only_where_it_was_said() -> None:
    asking = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    with Client() as client:
        assert "access-control-allow-origin" not in client.get("/models", headers=asking).headers
    with Client(origins=("https://app.example",)) as client:
        allowed = client.request("OPTIONS", "/v1/estimate", headers=asking)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == "https://app.example"
        other = client.get("/models", headers={"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_pages_of_the_endpoints_load_nothing_from_elsewhere(client: Client, path: str) -> None:
    page = client.get(path)
    assert page.status_code == 200 and "/openapi.json" in page.text
    named = re.findall(r"""(?:src|href)=["']([^"']+)""", page.text)
    assert named and all(name.startswith("/docs/files/") for name in named)
    for name in named:
        assert client.get(name).status_code == 200


def test_the_catalogue_says_what_a_model_is(client: Client) -> None:
    """Shape, attention, mixture, vocabulary and published formats; what nobody states is null."""
    rows = {row["model_id"]: row for row in client.get("/v1/catalog/models").json()["models"]}
    llama = rows["llama-3.3-70b"]
    assert (llama["hidden_size"], llama["heads"], llama["kv_heads"]) == (8192, 64, 8)
    assert (llama["intermediate_size"], llama["max_positions"], llama["layers"]) == (28672, 131072, 80)
    assert llama["attention"] == "grouped-query" and llama["mixture"] is None
    assert {"fp8", "nvfp4", "bf16"} <= {one["format"] for one in llama["formats"]}
    deepseek = rows["deepseek-r1"]
    assert deepseek["attention"] == "latent (MLA)" and deepseek["kv_heads"] is None
    assert (deepseek["mixture"]["experts"], deepseek["mixture"]["top_k"]) == (256, 8)
