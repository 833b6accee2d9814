"""A server that answers like an engine, with delays that are known: it writes down when it got each request
and when it sent each piece, by the clock of this process."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

ADDED = 3  # tokens that it adds to a prompt; a word of a prompt is two


@dataclass
class Request:
    """A request as the server saw it."""

    asked: dict[str, Any]
    received: float
    sent: list[float] = field(default_factory=list)
    failed: bool = False


@dataclass
class Server:
    """The server.

    Args:
        ttft, gap: seconds before the first piece, and between two.
        refused: a field that it does not know: HTTP 400.
        most, status: requests of more tokens, prompt and answer, get that status.
        fails: each request of that number fails: with HTTP 500, by an error in its stream, by a stream that
            stops, in turn. Requests of two tokens or less do not count.
        paths: further paths and what they answer.
    """

    ttft: float = 0.05
    gap: float = 0.01
    refused: str = ""
    most: int = 1_000_000
    status: int = 400
    fails: int = 0
    paths: dict[str, Any] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    url: str = ""
    _long: int = 0

    @property
    def streamed(self) -> list[Request]:
        """Requests that were answered in a stream of more than two tokens."""
        return [one for one in self.requests if one.asked.get("stream") and one.asked["max_tokens"] > 2]

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.headers.append(head)
                method, path, _ = head.split(" ", 2)
                length = next(
                    (
                        int(line[15:])
                        for line in head.lower().splitlines()
                        if line.startswith("content-length:")
                    ),
                    0,
                )
                body = await reader.readexactly(length)
                if method == "GET":
                    known = {
                        "/v1/models": {"data": [{"id": "llama-3.1-8b", "max_model_len": 4096}]}
                    } | self.paths
                    self._plain(writer, 200 if path in known else 404, known.get(path))
                elif not await self._completion(writer, path, json.loads(body)):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    def _plain(self, writer: asyncio.StreamWriter, status: int, data: Any) -> None:
        body = json.dumps(data).encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    async def _completion(self, writer: asyncio.StreamWriter, path: str, asked: dict[str, Any]) -> bool:
        request = Request(asked, perf_counter())
        self.requests.append(request)
        if self.refused and self.refused in asked:
            self._plain(writer, 400, {"error": "unknown field"})
            return True
        chat = path.endswith("chat/completions")
        prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
        usage = {"prompt_tokens": 2 * len(prompt.split()) + ADDED, "completion_tokens": asked["max_tokens"]}
        if sum(usage.values()) > self.most:
            self._plain(writer, self.status, {"error": "too long"})
            return True
        if not asked.get("stream"):
            self._plain(writer, 200, {"usage": usage, "choices": [{"text": "x"}]})
            return True
        fault = self._fault(asked)
        request.failed = fault is not None
        if fault == 0:
            self._plain(writer, 500, {"error": "out of order"})
            return True
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        if chat:
            await self._event(writer, {"choices": [{"delta": {"role": "assistant"}, "finish_reason": None}]})
        due = request.received + self.ttft
        for number in range(asked["max_tokens"]):
            await asyncio.sleep(max(0.0, due - perf_counter()))
            due += self.gap
            if fault == 1 and number == 1:
                await self._event(writer, {"error": {"message": "out of memory"}})
                break
            if fault == 2 and number == 1:
                return False  # without an end
            text: dict[str, Any] = {"delta": {"content": "x "}} if chat else {"text": "x "}
            request.sent.append(perf_counter())
            await self._event(writer, {"choices": [text | {"finish_reason": None}]})
        ending: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
        await self._event(writer, {"choices": [ending | {"finish_reason": "length"}]})
        await self._event(writer, {"choices": [], "usage": usage})
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
        return True

    def _fault(self, asked: dict[str, Any]) -> int | None:
        if not self.fails or asked["max_tokens"] <= 2:
            return None
        self._long += 1
        return (self._long // self.fails - 1) % 3 if self._long % self.fails == 0 else None

    async def _event(self, writer: asyncio.StreamWriter, data: Any) -> None:
        line = f"data: {json.dumps(data)}\n\n".encode()
        writer.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        await writer.drain()


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """A server in a thread of its own, at a free port of this machine."""
    ready, stops = threading.Event(), []

    async def run() -> None:
        stop = asyncio.Event()
        stops.extend([asyncio.get_running_loop(), stop])
        listening = await asyncio.start_server(server.connected, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        listening.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    assert ready.wait(10)
    turns = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # the client runs in this process too, and must not wait for its turn
    try:
        yield server
    finally:
        sys.setswitchinterval(turns)
        loop, stop = stops
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
