"""How far long work is: a file beside the job, which its worker process writes and GET /v1/jobs/ID reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

Answer = TypeVar("Answer")

PROGRESS: ContextVar[Path | None] = ContextVar("PROGRESS", default=None)
"""The file for the progress of this request; None where nobody can ask for it."""


def report(done: int, total: int | None, what: str) -> None:
    """Write how many of how many steps are done, and of what; None where nobody knows how many there will be.

    Example: report(3, 12, "points")
    """
    path = PROGRESS.get()
    if path is not None:
        part = path.with_suffix(".part")
        with suppress(OSError):  # the job was deleted: nobody asks
            part.write_text(json.dumps({"done": done, "total": total, "what": what}), encoding="utf-8")
            part.replace(path)


def told_to(path: Path | None, job: Callable[..., Answer], *given: Any) -> Answer:
    """Run a job in a worker process, which reports to that file."""
    PROGRESS.set(path)
    return job(*given)
