"""Long work as jobs: what is not answered soon is answered 202 with an address, and goes on.

`Prefer: respond-async` asks for that at once, `Prefer: wait=SECONDS` after so many seconds (RFC 7240).
State and answer of a job are files of one folder, so that all processes of a server know every job.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mantile.server.problems import Json, problem
from mantile.server.progress import PROGRESS

WAITING, RUNNING, DONE, FAILED, CANCELLED = "waiting", "running", "done", "failed", "cancelled"
_PATHS = ("/v1/", "/api/estimator/v1/")
_PREFER = re.compile(r"respond-async|wait\s*=\s*(?P<seconds>\d{1,5})")
_ID = re.compile(r"[0-9a-f]{32}")
_LOOK = 0.2  # s between two looks for a request to cancel
_KEPT = 3600.0  # s that an answer is kept
_MOST = 1_000  # jobs of the folder


@dataclass(frozen=True)
class Job:
    """A job: its id, and the files of it in the folder of all jobs."""

    folder: Path
    id: str

    @property
    def progress(self) -> Path:
        """The file of its progress."""
        return self._file("progress")

    @property
    def known(self) -> bool:
        """Whether there is such a job."""
        return _ID.fullmatch(self.id) is not None and self._file("state").is_file()

    def state(self) -> dict[str, Any]:
        """Its state as GET /v1/jobs/ID answers it."""
        found: dict[str, Any] = json.loads(self._file("state").read_text(encoding="utf-8"))
        with suppress(OSError, ValueError):
            found["progress"] = json.loads(self.progress.read_text(encoding="utf-8"))
        if found["status"] == RUNNING and self.cancel_asked:
            found["status"] = CANCELLED
        return found

    def write(self, status: str, **more: Any) -> None:
        """Write its state, whole or not at all."""
        self._put("state", json.dumps({"id": self.id, "status": status, "progress": None, **more}).encode())

    def answer(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body of what it came to."""
        head = json.loads(self._file("head").read_text(encoding="utf-8"))
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
        return head["status"], headers, self._file("body").read_bytes()

    def keep(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        """Keep what it came to."""
        named = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
        self._put("body", body)
        self._put("head", json.dumps({"status": status, "headers": named}).encode())

    @property
    def cancel_asked(self) -> bool:
        """Whether somebody asked to cancel it."""
        return self._file("cancel").exists()

    def cancel(self) -> None:
        """Ask the process that works on it to stop."""
        self._file("cancel").touch()

    def forget(self) -> None:
        """Delete its files."""
        for path in self.folder.glob(f"{self.id}.*"):
            path.unlink(missing_ok=True)

    def _file(self, kind: str) -> Path:
        return self.folder / f"{self.id}.{kind}"

    def _put(self, kind: str, content: bytes) -> None:
        part = self._file(f"{kind}.part")
        part.write_bytes(content)
        part.replace(self._file(kind))


def new_job(folder: Path) -> Job:
    """A job with an id that nobody guesses; old ones are deleted.

    Raises:
        OSError: if the folder cannot be written.
    """
    old = time.time() - _KEPT
    states = sorted(folder.glob("*.state"), key=lambda path: path.stat().st_mtime)
    for place, path in enumerate(states):
        job = Job(folder, path.name.partition(".")[0])
        if place < len(states) - _MOST or (
            path.stat().st_mtime < old and job.state()["status"] not in (WAITING, RUNNING)
        ):
            job.forget()
    return Job(folder, secrets.token_hex(16))


class Deferred:
    """Requests of /v1 that take long become jobs.

    Args:
        app: what answers.
        patience: seconds after which a request is answered 202.
        tasks: where what goes on is kept; `stop_jobs` ends it.
    """

    def __init__(self, app: ASGIApp, patience: float, tasks: set[asyncio.Task[None]]) -> None:
        self.app, self.patience, self._tasks = app, patience, tasks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say where the answer will be."""
        if scope["type"] != "http" or scope["method"] != "POST" or not scope["path"].startswith(_PATHS):
            await self.app(scope, receive, send)
            return
        folder: Path = scope["app"].state.jobs
        job, read = new_job(folder), asyncio.Event()
        direct, begun = True, asyncio.Event()
        kept: list[Message] = []

        async def body() -> Message:
            if read.is_set():  # the client may go: the work goes on unless it is cancelled
                if direct:
                    return await receive()
                await asyncio.Event().wait()
            message = await receive()
            if not message.get("more_body", False):
                read.set()
            return message

        async def answer(message: Message) -> None:
            begun.set()
            if direct:
                await send(message)
            else:
                kept.append(message)

        async def work() -> None:
            PROGRESS.set(job.progress)
            await self.app(scope, body, answer)

        task = asyncio.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            soon = await _soon(task, begun, read, _patience(scope, self.patience))
        except asyncio.CancelledError:
            task.cancel()
            raise
        if soon:
            with suppress(OSError):
                job.progress.unlink(missing_ok=True)
            await task
            return
        direct = False
        job.write(RUNNING, started=time.time())
        watch = asyncio.create_task(_watch(job, task, kept))
        self._tasks.add(watch)
        watch.add_done_callback(self._tasks.discard)
        await _accepted(job)(scope, receive, send)


async def stop_jobs(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel all jobs of this process."""
    going = [*tasks]
    for task in going:
        task.cancel()
    await asyncio.gather(*going, return_exceptions=True)


def _patience(scope: Scope, usual: float) -> float:
    found = _PREFER.search(Headers(scope=scope).get("prefer", ""))
    if found is None:
        return usual
    return float(found["seconds"] or 0)


async def _soon(task: asyncio.Task[None], begun: asyncio.Event, read: asyncio.Event, patience: float) -> bool:
    """Whether an answer begins within so many seconds of a body that was read."""
    events = [asyncio.create_task(event.wait()) for event in (begun, read)]
    try:
        await asyncio.wait({task, *events}, return_when=asyncio.FIRST_COMPLETED)
        if not (task.done() or begun.is_set()):
            await asyncio.wait({task, events[0]}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for event in events:
            event.cancel()
    return task.done() or begun.is_set()


async def _watch(job: Job, task: asyncio.Task[None], kept: list[Message]) -> None:
    """Wait for a job, cancel it where somebody asks, and keep what it comes to."""
    try:
        while not task.done():
            await asyncio.wait({task}, timeout=_LOOK)
            if job.cancel_asked:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                job.write(CANCELLED)
                return
    except asyncio.CancelledError:  # the server ends
        task.cancel()
        job.write(CANCELLED)
        raise
    if task.cancelled() or task.exception() is not None or not kept:
        refused = problem(500, "an error of the program, which its log tells")
        job.keep(500, refused.raw_headers, bytes(refused.body))
        job.write(FAILED, code=500)
        return
    status = int(kept[0]["status"])
    job.keep(status, [*kept[0]["headers"]], b"".join(one.get("body", b"") for one in kept[1:]))
    job.write(DONE if status < 400 else FAILED, code=status)


def _accepted(job: Job) -> Json:
    address = f"/v1/jobs/{job.id}"
    told = job.state() | {"address": address, "result": f"{address}/result"}
    return Json(told, 202, headers={"Location": address, "Retry-After": "1"})
