"""Scripts that speak with LibreOffice, and the Python that runs them."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mantile.verification.engines import soffice

PYTHONS = ("/usr/bin/python3", "/usr/lib/libreoffice/program/python")


@cache
def python_with_uno() -> str | None:
    """A Python that speaks with LibreOffice."""
    for python in PYTHONS:
        if (
            Path(python).exists()
            and not subprocess.run([python, "-c", "import uno"], capture_output=True).returncode
        ):
            return python
    return None


needs_office = pytest.mark.skipif(
    soffice() is None or python_with_uno() is None, reason="LibreOffice with Python is not installed"
)


def asked_of_office(script: str, path: Path, task: dict[str, Any], folder: Path) -> Any:
    """What a script of this folder prints about a workbook.

    Args:
        folder: for the task and the office's profile.
    """
    (folder / "task.json").write_text(json.dumps(task))
    python = python_with_uno()
    assert python is not None
    told = subprocess.run(
        [python, str(Path(__file__).with_name(script)), str(path), str(folder / "task.json"),
         str(folder / "office")],
        capture_output=True,
        text=True,
        timeout=900,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout.splitlines()[-1])
