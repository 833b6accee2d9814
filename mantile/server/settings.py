"""What the server is told at its start: limits, and what it may reach."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """Limits of the server, and what it may reach.

    Args:
        hub: whether models may be read from the Hugging Face hub.
        records: a database of records for measured runs; None keeps them in memory until the end.
        hosts: names by which the server may be asked; "*" for any.
        origins: addresses of pages whose scripts may ask (CORS); "*" for any.
        most_body: bytes of a request's body.
        most_upload: bytes of an uploaded workbook.
        seconds: how long a job of a worker process may take.
        most_seconds: how long a request may take, waiting included.
        body_seconds: how long a body may take to come.
        patience: seconds after which a request is answered 202, with the address of its job.
        jobs: folder of jobs, shared by all processes; None for one that goes with the server.
        builds: workbooks, verifications and searches that are worked on at once.
        waiting: how many more of these may wait; others are turned away with status 503.
        rate: requests of one client in a minute; 0 for no limit.
        memory: bytes of address space of a worker process; 0 for no limit.
        jobs_per_worker: jobs after which a worker process is replaced.
        points: of a sweep, at most.
        kept: measured runs that are stored, at most.
        processes: that answer requests, this one among them.

    Example:
        app = create_app(Settings(rate=600))
    """

    hub: bool = False
    records: Path | None = None
    hosts: tuple[str, ...] = ("*",)
    origins: tuple[str, ...] = ()
    most_body: int = 1_000_000
    most_upload: int = 20_000_000
    seconds: float = 900.0
    most_seconds: float = 3600.0
    body_seconds: float = 60.0
    patience: float = 20.0
    jobs: Path | None = None
    builds: int = max(1, min(os.cpu_count() or 1, 4))
    waiting: int = 64
    rate: int = 30_000
    memory: int = 4_000_000_000
    jobs_per_worker: int = 50
    points: int = 100_000
    kept: int = 10_000
    processes: int = 1

    @property
    def catalog(self) -> tuple[Path, ...]:
        """The folder of hosts and runtimes that were sent, beside the database of records; none without."""
        return () if self.records is None else (self.records.with_name(f"{self.records.stem}-catalog"),)
