"""A server in a process of its own on this machine, for tests that need its socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mantile


@contextmanager
def serving(*flags: str) -> Iterator[str]:
    """`mantile serve` until the block ends: where it listens, as 127.0.0.1:8000."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = str(Path(mantile.__file__).resolve().parents[1])
    environment = os.environ | {"PYTHONPATH": root}
    command = [sys.executable, "-m", "mantile", "serve", "--port", str(port), *flags]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        try:
            _wait(f"http://127.0.0.1:{port}/healthz", server)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()
            _, said = server.communicate()
    assert "Traceback" not in said, said


def _wait(address: str, server: subprocess.Popen[str]) -> None:
    """Until it answers."""
    while True:
        assert server.poll() is None, "the server ended"
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
