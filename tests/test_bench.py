"""Servers are measured as they are, and what is measured is kept once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_server import ADDED, Server, serving

pytest.importorskip("httpx")
pytest.importorskip("psutil")

from mantile.bench import bench as module
from mantile.bench import telemetry
from mantile.bench.bench import Benched, Target, bench
from mantile.bench.host import host_id
from mantile.bench.stream import Answer, _answer, ask
from mantile.bench.sweep import Sweep
from mantile.bench.words import arrivals
from mantile.cli import main
from mantile.library.errors import InputError
from mantile.library.signing import new_key, read_private_key, read_trusted
from mantile.records.store import read

DEPLOYMENT = {"accelerator": "H100", "framework": "vLLM"}
SMALL = Sweep(prompts=(65,), outputs=(6,), concurrency=(1,), repeats=3)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The salt of this machine lies where only this test sees it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that is up."""
    with serving(Server()) as up:
        yield up


def target(server: Server, folder: Path, **fields: Any) -> Target:
    """What is measured, kept in a folder."""
    return Target(server.url, DEPLOYMENT, folder / "records.db", folder / "bench.json", **fields)


def near(measured: float, true: float, late: float = 0) -> bool:
    """Right to 2 ms or 2 %, or to what the client was late."""
    return abs(measured - true) <= max(2e-3, 0.02 * true, late)


def measured(server: Server, sweep: Sweep, tmp_path: Path) -> tuple[Benched, list[Any]]:
    """A bench of a single point, and the requests that were measured, as the server saw them."""
    found = bench(target(server, tmp_path), sweep)
    return found, server.streamed[sweep.warmup * (sweep.concurrency or (1,))[0] :]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """When the client says that it sent each request of a measurement, by its prompt."""
    moments: dict[str, float] = {}

    async def watched(client: Any, path: str, body: bytes, due: float | None = None) -> Any:
        answer = await ask(client, path, body, due)
        moments[json.loads(body)["prompt"]] = answer.sent
        return answer

    monkeypatch.setattr(module, "ask", watched)
    return moments


def in_quiet(attempt: Callable[[int], list[str]]) -> None:
    """Make up to ten attempts to see nothing wrong: a machine with other work makes any one of them late,
    and a clock that is wrong is so each time."""
    wrong = [attempt(0)]
    while wrong[-1] and len(wrong) < 10:
        wrong.append(attempt(len(wrong)))
    assert [] in wrong, wrong


def test_times_are_those_of_the_server(sent: dict[str, float], tmp_path: Path) -> None:
    """TTFT, TPOT, time between pieces and percentiles, against when the server sent its pieces: right to 2 ms
    or 2 %; means and tails to what the client says that it was late."""

    def attempt(number: int) -> list[str]:
        (folder := tmp_path / str(number)).mkdir()
        with serving(Server()) as server:
            sweep = Sweep(prompts=(65,), outputs=(12,), concurrency=(2,), repeats=15, seed=number)
            found, requests = measured(server, sweep, folder)
        assert len(requests) == 30
        figures = found.records["in65-out12-c2"].metrics
        ttft = [one.sent[0] - sent[one.asked["prompt"]] for one in requests]
        tpot = [(one.sent[-1] - one.sent[0]) / 11 for one in requests]
        gaps = np.concatenate([np.diff(one.sent) for one in requests])
        late = figures["client_lag_p95_s"]
        on_the_way = float(np.min([one.received - sent[one.asked["prompt"]] for one in requests]))
        right = {"sent": 0 <= on_the_way < 2e-3}  # it had left by then
        for name, true in (("ttft", ttft), ("tpot", tpot), ("itl", gaps)):
            right |= {
                f"{name} p50": near(figures[f"{name}_p50_s"], float(np.median(true))),
                f"{name} mean": near(figures[f"{name}_mean_s"], float(np.mean(true)), late),
                f"{name} p95": near(figures[f"{name}_p95_s"], float(np.percentile(true, 95)), late),
            }
        assert figures["ttft_p50_s"] >= server.ttft and figures["tpot_p50_s"] >= 0.98 * server.gap
        assert figures["ttft_p50_s"] <= figures["ttft_p95_s"] <= figures["ttft_p99_s"]
        wall = max(one.sent[-1] for one in requests) - min(one.received for one in requests)
        assert figures["output_tokens_per_s"] == pytest.approx(30 * 12 / wall, rel=0.05)
        assert figures["decode_tokens_per_s"] == pytest.approx(1 / figures["tpot_mean_s"], rel=0.1)
        counts = [figures[f"requests{what}"] for what in ("", "_failed", "_cut_short")]
        assert counts == [30, 0, 0] and 0.0 < figures["client_cpu_share"] < 2
        return [name for name, fine in right.items() if not fine]

    in_quiet(attempt)


def test_in_flight_are_as_many_as_asked(server: Server, tmp_path: Path) -> None:
    """In a closed loop, never more; warm-up is over before anything is measured."""
    sweep = Sweep(prompts=(65,), outputs=(5,), concurrency=(3,), repeats=4, warmup=2)
    bench(target(server, tmp_path), sweep)
    warm, requests = server.streamed[:6], server.streamed[6:]
    assert len(requests) == 12
    assert max(one.sent[-1] for one in warm) < min(one.received for one in requests)
    for one in requests:
        assert sum(other.received <= one.received < other.sent[-1] for other in requests) <= 3


def test_arrivals_are_on_time(sent: dict[str, float], tmp_path: Path) -> None:
    """In an open loop requests leave when the seed says, whatever is in flight: to 2 ms, or 2 % in all."""

    def attempt(number: int) -> list[str]:
        (folder := tmp_path / str(number)).mkdir()
        with serving(Server(ttft=0.2)) as server:
            sweep = Sweep(prompts=(65,), outputs=(4,), rates=(20.0,), repeats=4, seed=number)
            found, requests = measured(server, sweep, folder)
        (name,) = found.records
        due = np.array(arrivals(number, name, 20.0, 40))
        left = np.sort([sent[one.asked["prompt"]] for one in requests])
        assert len(left) == 40
        run = found.records[name].run
        assert run["request_rate"] == 20.0 and "concurrency" not in run
        late = (left - due) - (left - due).min()  # the earliest was on time
        told = found.records[name].metrics["client_late_p95_s"]
        busy = 3 * found.records[name].metrics["client_lag_p50_s"]  # this machine has other work
        right = {
            "median": np.median(late) < max(2e-3, busy),
            "in all": abs((left[-1] - left[0]) / (due[-1] - due[0]) - 1) < 0.02,
            "tail": np.percentile(late, 95) < 2e-3 + told,
            "in flight": any(np.diff([one.received for one in requests]) < server.ttft),
        }
        return [name for name, fine in right.items() if not fine]

    in_quiet(attempt)


def test_arrivals_are_poisson() -> None:
    """Gaps have the mean of the rate, and as large a deviation."""
    gaps = np.diff(arrivals(1, "x", 20.0, 20_000))
    assert gaps.mean() == pytest.approx(1 / 20, rel=0.03) and gaps.std() == pytest.approx(1 / 20, rel=0.05)


def test_prompts_are_as_long_as_asked_and_never_twice_the_same(server: Server, tmp_path: Path) -> None:
    """By the server's own count; made-up words of the seed, none of which is kept."""
    sweep = Sweep(prompts=(101, 1501), outputs=(3,), concurrency=(1,), repeats=2)
    found = bench(target(server, tmp_path), sweep)
    prompts = [one.asked["prompt"] for one in server.streamed]
    lengths = sorted({2 * len(prompt.split()) + ADDED for prompt in prompts})
    assert lengths[0] == 101 and abs(lengths[1] - 1501) <= 15
    assert len({*prompts}) == len(prompts)
    kept = (tmp_path / "records.db").read_bytes() + (tmp_path / "bench.json").read_bytes()
    assert not any(word.encode() in kept for word in prompts[-1].split() if len(word) > 5)
    runs = [record.run for record in found.records.values()]
    assert [run["input_tokens"] for run in runs] == lengths
    assert {(run["accelerator"], run["framework"]) for run in runs} == {("h100-sxm", "vllm")}
    (tmp_path / "again").mkdir()
    with serving(Server()) as again:
        bench(target(again, tmp_path / "again"), sweep)
        assert [one.asked["prompt"] for one in again.streamed] == prompts


def test_what_a_server_refuses_is_left_out(tmp_path: Path) -> None:
    """Of the fields that engines add to the interface; and a chat begins with its first word."""
    with serving(Server(refused="ignore_eos")) as server:
        bench(target(server, tmp_path), SMALL.model_copy(update={"chat": True}))
        assert all("ignore_eos" not in one.asked and "messages" in one.asked for one in server.streamed)
        (one,) = read(tmp_path / "records.db")
        assert one.record.metrics["ttft_p50_s"] >= server.ttft and one.record.metrics["pieces_per_token"] == 1


def test_failures_are_counted_and_are_not_fatal(tmp_path: Path) -> None:
    """HTTP errors, errors in a stream, streams that stop; their times do not count."""
    with serving(Server(fails=3)) as server:
        sweep = Sweep(prompts=(65,), outputs=(6,), concurrency=(2,), repeats=9, warmup=0)
        found = bench(target(server, tmp_path), sweep)
        (state,) = found.manifest.points.values()
        assert state.failures == {"http_500": 2, "error_in_stream": 2, "broken_off": 2}
        figures = found.records["in65-out6-c2"].metrics
        assert (figures["requests"], figures["requests_failed"], figures["failures.http_500"]) == (18, 6, 2)
        assert figures["output_tokens_mean"] == 6
    with serving(Server(fails=1)) as server:  # all of them: no record, and a point to ask again
        found = bench(replace(target(server, tmp_path), manifest=tmp_path / "other.json"), sweep)
        assert [point.state for point in found.manifest.points.values()] == ["failed"]
        assert len(read(tmp_path / "records.db")) == 1


@pytest.mark.parametrize(
    ("most", "status", "state"), [(200, 400, "too long"), (304, 422, "too long"), (200, 503, "failed")]
)
def test_a_length_that_fails_ends_no_sweep(most: int, status: int, state: str, tmp_path: Path) -> None:
    """A server that does not tell how long prompts may be refuses some, or fails on them: the others are
    measured, and the same command asks again what failed."""
    paths = {"/v1/models": {"data": [{"id": "llama-3.1-8b"}]}}
    with serving(Server(paths=paths, ttft=0.001, gap=0.001, most=most, status=status)) as server:
        sweep = SMALL.model_copy(update={"prompts": (65, 301, 129)})
        found = bench(target(server, tmp_path), sweep)
        states = {name: point.state for name, point in found.manifest.points.items()}
        assert states == {"in65-out6-c1": "done", "in129-out6-c1": "done", "in301-out6-c1": state}
        assert [*found.manifest.points["in301-out6-c1"].failures] == [f"http_{status}"]
        assert bench(target(server, tmp_path), sweep).measured == (state == "failed")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"usage": "many", "choices": []}, (1, None, None)),
        ({"usage": {"prompt_tokens": "12", "completion_tokens": -5}}, (1, None, None)),
        ({"usage": {"prompt_tokens": 12, "completion_tokens": 5.5}}, (1, 12, None)),
        ({"choices": ["x", 3, None]}, (1, None, None)),
        ({"choices": {"text": "x"}}, (1, None, None)),
        ({"choices": [{"delta": "x"}]}, (1, None, None)),
        ({"choices": [{"text": "x"}]}, (2, None, None)),
    ],
    ids=str,
)
def test_what_a_server_tells_in_no_form_is_not_told(told: Any, expected: tuple[Any, ...]) -> None:
    """A stream of one token with something odd before its end: no counts, no choices."""
    events = [{"choices": [{"text": "x"}]}, told, {"choices": [{"text": "", "finish_reason": "length"}]}]
    lines = [(float(place), f"data: {json.dumps(event)}") for place, event in enumerate(events)]
    answer = _answer(0.0, 0.0, lines)
    assert answer.failure is None
    assert (len(answer.pieces), answer.prompt_tokens, answer.output_tokens) == expected
    assert _answer(0.0, 0.0, [(0.0, "data: " + "[" * 100_000)]).failure == "not_json"


def test_tokens_in_one_piece_say_nothing_of_their_time() -> None:
    """Ten tokens that come at once took no time each as far as the client sees, which is not known, not 0."""
    assert Answer(0.0, 0.0, (1.0,), output_tokens=10).tpot is None
    assert Answer(0.0, 0.0, (1.0, 1.9), output_tokens=10).tpot == pytest.approx(0.1)


@pytest.mark.exhaustive
def test_a_sweep_that_was_killed_goes_on(tmp_path: Path) -> None:
    """Nothing is lost and nothing is there twice, killed as the operating system kills."""
    with serving(Server(ttft=0.01, gap=0.002)) as server:
        command = [
            sys.executable, "-m", "mantile", "bench", server.url, "--isl", "65,129", "--osl", "4",
            "--concurrency", "1,2,3", "--accelerator", "h100-sxm", "--framework", "vllm", "--json",
        ]  # fmt: skip
        running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, env={**os.environ})
        while running.poll() is None:
            manifest = tmp_path / "bench.json"
            if manifest.exists() and '"done"' in manifest.read_text():
                break
            time.sleep(0.005)
        running.send_signal(signal.SIGKILL)
        running.wait()
        before = {one.id for one in read(tmp_path / "records.db")}
        assert 0 < len(before) < 6
        after = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        found = read(tmp_path / "records.db")
        assert before < {one.id for one in found} and len(found) == 6
        points = [one.record.sweep.point for one in found if one.record.sweep]
        assert sorted(points) == sorted({*points}) and len(points) == 6
        told = json.loads(after.stdout)
        assert told["measured"] == 6 - len(before)
        assert {point["run_id"] for point in told["points"]} == {one.id for one in found}


def test_a_record_that_the_manifest_does_not_know_yet_is_not_measured_twice(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the record and the manifest."""
    keep = module.save

    def killed(manifest: Any, path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "save", killed)
    with pytest.raises(KeyboardInterrupt):
        bench(target(server, tmp_path), SMALL)
    monkeypatch.setattr(module, "save", keep)
    assert len(read(tmp_path / "records.db")) == 1
    again = bench(target(server, tmp_path), SMALL)
    assert again.measured == 0 and [point.state for point in again.manifest.points.values()] == ["done"]
    with pytest.raises(
        InputError, match=r"bench.json: it is of another sweep: field repeats was 3, and 4 is"
    ):
        bench(target(server, tmp_path), SMALL.model_copy(update={"repeats": 4}))


@pytest.mark.parametrize(
    ("paths", "framework", "version", "setting"),
    [
        (
            {
                "/v1/models": {"data": [{"id": "llama-3.1-8b", "owned_by": "vllm", "max_model_len": 100}]},
                "/version": {"version": "0.11.0"},
            },
            "vllm",
            "0.11.0",
            {},
        ),
        (
            {"/get_server_info": {"version": "0.5.4", "tp_size": 4, "model_path": "/home/a/b", "host": "x.y",
                                  "api_key": "k", "quantization": "fp8"}},
            "sglang",
            "0.5.4",
            {"tp": 4, "quantization": "fp8"},
        ),
        (
            {"/props": {"build_info": "b6907-abc", "total_slots": 4,
                        "default_generation_settings": {"n_ctx": 4096}, "model_path": "/home/a/b.gguf"}},
            "llama.cpp",
            "b6907-abc",
            {"slots": 4, "context": 4096},
        ),
    ],
    ids=["vllm", "sglang", "llama.cpp"],
)  # fmt: skip
def test_a_server_tells_what_it_is(
    paths: dict[str, Any], framework: str, version: str, setting: dict[str, Any], tmp_path: Path
) -> None:
    """Its engine, release and settings; never a folder, a host or a key of it."""
    with serving(Server(paths=paths)) as server:
        asked = Target(
            server.url + "/v1", {"accelerator": "h100-sxm"}, tmp_path / "a.db", tmp_path / "b.json"
        )
        sweep = Sweep(prompts=(65, 2001), outputs=(5,), concurrency=(1,), repeats=1)
        found = bench(asked, sweep)
        record = found.records["in65-out5-c1"]
        assert (record.run["framework"], record.run["environment"]["framework_version"]) == (
            framework,
            version,
        )
        assert record.env.flags == setting and record.run.get("tp") == setting.get("tp")
        states = [point.state for point in found.manifest.points.values()]
        assert states == ["done", "too long" if framework == "vllm" else "done"]
        assert "home" not in record.text and "x.y" not in record.text and server.url not in record.text


@pytest.mark.parametrize(
    "listed", [None, {"data": {}}, {"data": [{"id": "other"}, {"id": "./tiny", "max_model_len": 300}]}]
)
def test_a_model_that_is_not_the_first_listed(listed: Any, tmp_path: Path) -> None:
    """It is asked by the name that is given; without one, and with none listed, that is what is missed."""
    with serving(Server(paths={"/v1/models": listed})) as server:
        deployment = DEPLOYMENT | {"model": "llama-3.1-8b"}
        asked = replace(target(server, tmp_path, served="./tiny"), deployment=deployment)
        found = bench(asked, SMALL.model_copy(update={"prompts": (65, 301)}))
        assert {one.asked["model"] for one in server.streamed} == {"./tiny"}
        states = [point.state for point in found.manifest.points.values()]
        assert states == ["done", "too long" if listed and listed["data"] else "done"]
        if not (listed and listed["data"]):
            with pytest.raises(InputError, match="/v1/models"):
                bench(replace(asked, served=None), SMALL)


def test_records_are_signed_and_name_no_machine(server: Server, tmp_path: Path) -> None:
    """The host is a hash with a salt of its own; a token is sent and not kept."""
    new_key(tmp_path / "me.key")
    asked = target(
        server, tmp_path, key=read_private_key(tmp_path / "me.key"), telemetry=True, token="s3cret"
    )
    bench(asked, SMALL)
    (one,) = read(tmp_path / "records.db", read_trusted(tmp_path / "me.pub"))
    assert one.verdict.signer == "me" and one.record.env.host == host_id()
    assert host_id(tmp_path / "other.salt") != host_id()
    assert (tmp_path / "other.salt").stat().st_mode & 0o777 == 0o600
    host = one.record.telemetry["host"]
    assert host["samples"] >= 2 and host["memory_used_bytes_max"] >= host["memory_used_bytes_mean"] > 1e7
    kept = (tmp_path / "records.db").read_bytes() + (tmp_path / "bench.json").read_bytes()
    assert any("Bearer s3cret" in head for head in server.headers) and b"s3cret" not in kept
    assert os.uname().nodename.encode() not in one.record.text.encode() or len(os.uname().nodename) < 4


class _Nvml:
    """NVML of two parts, the second of which tells no power."""

    NVMLError = RuntimeError
    NVML_TEMPERATURE_GPU = NVML_CLOCK_SM = NVML_PCIE_UTIL_RX_BYTES = 0
    NVML_CLOCK_MEM = NVML_PCIE_UTIL_TX_BYTES = 1

    def __init__(self) -> None:
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        read = {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda place: place,
            "nvmlDeviceGetTemperature": lambda handle, _: 61,
            "nvmlDeviceGetClockInfo": lambda handle, kind: (1980, 2619)[kind],
            "nvmlDeviceGetPcieThroughput": lambda handle, way: (2_000, 500)[way],
            "nvmlDeviceGetCurrPcieLinkGeneration": lambda handle: 5,
            "nvmlDeviceGetCurrPcieLinkWidth": lambda handle: 16,
            "nvmlSystemGetDriverVersion": lambda: "570.86",
            "nvmlSystemGetCudaDriverVersion": lambda: 12080,
        }
        if name not in read:
            raise AttributeError(name)
        return read[name]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        if handle:
            raise RuntimeError("not supported")
        self.looks += 1
        return 300_000 + 100_000 * self.looks

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        return type("Memory", (), {"used": 7 * 2**30 if self.looks == 1 else 5 * 2**30})

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return type("Rates", (), {"gpu": 50})


_ROCM_SMI = """#!/bin/sh
echo '{"card0": {"Average Graphics Package Power (W)": "321.5", "Temperature (Sensor edge) (C)": "55.0",
"VRAM Total Memory (B)": "100", "VRAM Total Used Memory (B)": "64", "GPU use (%)": "98",
"sclk clock speed:": "(2100Mhz)"}, "system": {"Driver version": "6.3"}}'
"""


class _OneLost(_Nvml):
    """NVML whose first part was lost."""

    def nvmlDeviceGetHandleByIndex(self, place: int) -> int:
        if not place:
            raise RuntimeError("GPU is lost")
        return place


def test_telemetry_leaves_out_what_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others keep their numbers."""
    monkeypatch.setitem(sys.modules, "pynvml", _OneLost())
    with telemetry.Telemetry(interval=10) as sampler:
        pass
    assert {name for name in sampler.summary() if name.startswith("gpu")} == {"gpu1"}


def test_telemetry_has_means_peaks_and_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML's milliwatts, megahertz and kilobytes as watts, hertz and bytes; figures that a part lacks are
    left out; rocm-smi where it is."""
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml())
    sampler = telemetry.Telemetry(interval=10)
    with sampler:
        time.sleep(0.2)
    with sampler:  # begins anew
        time.sleep(0.05)
    first = sampler.summary()["gpu0"]
    assert first["samples"] == 2
    monkeypatch.setitem(sys.modules, "pynvml", _Nvml())
    sampler = telemetry.Telemetry(interval=0.02)
    with sampler:
        while sampler.summary().get("gpu0", {}).get("samples", 0) < 3:
            time.sleep(0.01)
    found = sampler.summary()
    gpu = found["gpu0"]
    assert gpu["samples"] >= 3 and gpu["memory_used_bytes_max"] == 7 * 2**30 > gpu["memory_used_bytes_mean"]
    assert gpu["power_w_max"] == 300 + 100 * gpu["samples"]
    assert gpu["clock_hz_mean"] == 1.98e9 and gpu["memory_clock_hz_mean"] == 2.619e9
    assert gpu["pcie_received_bytes_per_s_mean"] == 2e6 and gpu["busy_share_mean"] == 0.5
    assert "power_w_mean" not in found["gpu1"] and found["gpu1"]["temperature_c_max"] == 61
    assert telemetry.driver_versions() == {"driver": "570.86", "cuda": "12.8"}
    tool = tmp_path / "rocm-smi"
    tool.write_text(_ROCM_SMI)
    tool.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with telemetry.Telemetry(interval=10) as sampler:
        pass
    card = sampler.summary()["gpu0"]
    assert (card["power_w_max"], card["memory_used_bytes_max"], card["busy_share_mean"]) == (321.5, 64, 0.98)
    assert card["clock_hz_mean"] == 2.1e9 and card["temperature_c_max"] == 55


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["localhost:1"], "localhost:1: expected an address such as http://localhost:8000"),
        (["URL", "--gpu", "h1000", "--framework", "vllm"], "unknown accelerator 'h1000'; did you mean h100"),
        (["http://["], "http://[: expected an address such as http://localhost:8000"),
        (["http://127.0.0.1:99999"], "http://127.0.0.1:99999: expected an address such as"),
        (["http://me:secret@127.0.0.1:9"], "expected an address without a name and a password"),
        (["URL", "--rate", "0"], "--request-rate 0: '0'; expected numbers above 0"),
        (["http://127.0.0.1:9"], "/v1/models: All connection attempts failed; expected an OpenAI-compatible"),
        (["URL"], "a server does not tell its accelerator; expected --accelerator"),
        (["URL", "--gpu", "h100-sxm"], "the server does not tell what engine it is; expected --framework"),
        (
            ["URL", "--gpu", "h100-sxm", "--framework", "vllm", "--model", "/srv/me/config.json"],
            "field model: expected an id, or a path relative to the folder of the records",
        ),
        (
            ["URL", "--isl", "1x"],
            "--input-tokens 1x: '1x'; expected whole numbers above 0 with commas, such as 256,2k",
        ),
        (
            ["URL", "--rate", "1", "--concurrency", "2"],
            "--concurrency and --request-rate: expected one of them",
        ),
        (
            ["URL", "--repeats", "9"],
            "--repeats 9: expected a whole number, such as 2048 or 2k, 10 to 100,000",
        ),
        (["URL", "--token-from", "NO_SUCH"], "--token-from NO_SUCH: there is no such environment variable"),
    ],
)
def test_what_is_wrong_is_said(
    words: list[str],
    said: str,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By name, before anything is measured, and nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["mantile", "bench", *(server.url if word == "URL" else word for word in words)]
    )
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2 and said in capsys.readouterr().err
    assert not (tmp_path / "records.db").exists() and not (tmp_path / "bench.json").exists()
