"""How many estimates a second a server of this machine answers, how late, and what builds beside them take.

Starts `mantile serve` with a process for each core, asks at a steady rate whatever the answers take, then
queues workbooks. Figures follow the machine: the ratio to one estimate in a process is what can be compared.

    python .ci/load.py --rate 200 --seconds 20 --builds 20
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CONNECTIONS = 32
PATIENCE = 300.0
HEADERS = "Host: 127.0.0.1\r\nContent-Type: application/json\r\n"


def asked(number: int) -> dict[str, Any]:
    """The body of an estimate; no two in a row are the same."""
    return {
        "model_id": ("llama-3.1-8b", "llama-3.3-70b", "gpt-oss-120b")[number % 3],
        "hardware": {"gpus": [{"gpu_id": ("h100-sxm", "b200-sxm")[number % 2], "count": 4}]},
        "workload": {
            "context_tokens": 512 + number % 997,
            "output_tokens": 128,
            "concurrency": 1 + number % 61,
        },
        "plan": {"tp": 4},
        "recommend": 0,
    }


def in_process(count: int) -> float:
    """Seconds of the processor that one such estimate takes here, with its answer as JSON."""
    from mantile.server.asked import EstimateAsked
    from mantile.server.estimates import answer
    from mantile.server.problems import json_bytes

    def one(number: int) -> None:
        json_bytes(answer(EstimateAsked.model_validate(asked(number)), False))

    for number in range(48):  # until what is kept of each model and chip is
        one(number)
    began = time.process_time()
    for number in range(count):
        one(number)
    return (time.process_time() - began) / count


@contextmanager
def server(processes: int, builds: int) -> Iterator[tuple[int, int]]:
    """A server of this machine: its process and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "mantile", "serve", "--port", str(port), "--rate", "0"]
        words += ["--processes", str(processes), "--builds", str(builds), "--seconds", str(int(PATIENCE))]
        words += ["--records", str(Path(folder) / "runs.db")]
        with subprocess.Popen(words, stderr=subprocess.DEVNULL) as running:
            try:
                yield running.pid, port
            finally:
                running.terminate()


async def post(streams: Any, path: str, body: bytes) -> tuple[int, bytes, bool]:
    """Status and body of the answer to POST, and whether the connection stays open."""
    reader, writer = streams
    writer.write(f"POST {path} HTTP/1.1\r\n{HEADERS}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(line for line in head.splitlines() if line.startswith("content-length:"))
    content = await reader.readexactly(int(length.partition(":")[2]))
    return int(head.split()[1]), content, "connection: close" not in head


async def opened(port: int) -> Any:
    """A connection, as soon as somebody listens."""
    for _ in range(600):
        try:
            return await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        except OSError:
            await asyncio.sleep(0.1)
    raise SystemExit("the server does not answer")


async def estimates(port: int, rate: float, seconds: float, first: int = 0) -> tuple[list[float], int]:
    """How late each answer was after it was due to be asked for, and how many were none."""
    free: asyncio.Queue[Any] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await opened(port))
    late: list[float] = []
    failed = 0
    began = time.perf_counter()

    async def one(number: int) -> None:
        nonlocal failed
        body = json.dumps(asked(first + number)).encode()
        streams = await free.get()
        status, _, stays = await post(streams, "/v1/estimate", body)
        if not stays:
            streams[1].close()
            streams = await opened(port)
        free.put_nowait(streams)
        late.append(time.perf_counter() - began - number / rate)
        failed += status != 200

    tasks = []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number)))
    await asyncio.gather(*tasks)
    while not free.empty():
        free.get_nowait()[1].close()
    return sorted(late), failed


async def builds(port: int, count: int) -> tuple[list[int], float]:
    """Sizes of so many workbooks that are asked for at once, 0 of one that did not come; seconds of all."""
    began = time.perf_counter()

    async def one(number: int) -> int:
        scenario = {"model": "llama-3.1-8b", "accelerator": "h100-sxm", "input_tokens": 1000 + number}
        scenario |= {"output_tokens": 128, "concurrency": 8}
        streams = await opened(port)
        status, content, _ = await post(streams, "/v1/workbooks", json.dumps({"scenario": scenario}).encode())
        streams[1].close()
        return len(content) if status == 200 and content[:2] == b"PK" else 0

    return list(await asyncio.gather(*map(one, range(count)))), time.perf_counter() - began


def family(root: int) -> set[int]:
    """A process and all that it started; itself alone where the system does not tell."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def memory(root: int) -> int:
    """Bytes in memory of a process and all that it started."""
    pages = 0
    for process in family(root):
        with contextlib.suppress(OSError):
            pages += int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def processor(root: int) -> float:
    """Seconds of the processor that a process and all that it started have taken."""
    ticks = 0
    for process in family(root):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def measured(port: int, process: int, wanted: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    peak = 0
    done = asyncio.Event()

    async def watch() -> None:
        nonlocal peak
        while not done.is_set():
            peak = max(peak, await asyncio.to_thread(memory, process))
            await asyncio.sleep(0.5)

    watching = asyncio.create_task(watch())
    await estimates(port, 20, 6)  # every process has its library and graphs then
    used = await asyncio.to_thread(processor, process)
    late, failed = await estimates(port, wanted.rate, wanted.seconds, 1000)
    used = await asyncio.to_thread(processor, process) - used
    before = await asyncio.to_thread(memory, process)
    found: dict[str, Any] = {
        "asked_per_s": wanted.rate,
        "answered": len(late),
        "answered_per_s": round(len(late) / (wanted.seconds + late[-1]), 1),
        "failed": failed,
        "median_ms": round(late[len(late) // 2] * 1e3, 1),
        "p99_ms": round(late[int(len(late) * 0.99)] * 1e3, 1),
        "server_processor_ms": round(used / len(late) * 1e3, 2),
        "memory_after_estimates_mb": round(before / 1e6),
    }
    if wanted.builds:
        sizes, took = await builds(port, wanted.builds)
        found |= {
            "builds": len(sizes),
            "builds_lost": sizes.count(0),
            "builds_s": round(took, 1),
        }
    done.set()
    await watching
    return found | {"memory_peak_mb": round(peak / 1e6)}


def main() -> None:
    """Ask, and print what came of it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=200, help="estimates a second that are asked for")
    parser.add_argument("--seconds", type=float, default=20, help="for how long")
    parser.add_argument("--builds", type=int, default=20, help="workbooks that are queued at once")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of the server")
    wanted = parser.parse_args()
    one = in_process(60)
    with server(wanted.processes, 1) as (process, port):
        found = asyncio.run(measured(port, process, wanted))
    found["cores"] = os.cpu_count()
    found["load_of_the_machine"] = round(os.getloadavg()[0], 1)
    found["one_in_process_ms"] = round(one * 1e3, 2)
    found["ratio_to_in_process"] = round(found["server_processor_ms"] / found["one_in_process_ms"], 2)
    found["most_per_s_on_these_cores"] = round((os.cpu_count() or 1) / found["server_processor_ms"] * 1e3)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
