"""The recorder in a process of its own, with limits: it may neither write files nor open connections."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, BinaryIO

from mantile.library.errors import InputError
from mantile.library.from_code.limits import MEMORY, SECONDS

NEEDED = ("torch", "transformers")
_OFFLINE = {"PATH": os.defpath, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
LONGEST = 200  # characters of an error of a class
_HEADING = re.compile(r":$|\bvalidation errors? for \S+$")  # what only says that there is more below
_HERE = Path(__file__).parent


def can_record() -> bool:
    """Whether torch and transformers are installed."""
    return all(importlib.util.find_spec(name) is not None for name in NEEDED)


def record(config: dict[str, Any], name: str, folder: Path | None = None) -> dict[str, Any]:
    """What the class of a config does, as the recorder writes it down.

    Args:
        config: the content of a config.json.
        name: stands for the file in errors.
        folder: with the model's own code, where the user trusts it; None runs no code of others.

    Raises:
        InputError: if the class cannot be built or run, takes too long or too much memory.
    """
    request = json.dumps({"config": config, "folder": str(folder.resolve()) if folder else ""})
    reading, writing = os.pipe()
    command = [sys.executable, "-I", "-X", "faulthandler=0", str(_HERE / "limits.py"), str(writing)]
    with (
        tempfile.TemporaryDirectory() as scratch,
        os.fdopen(reading, "rb") as answer,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(writing,),
            cwd=scratch,
            env=_OFFLINE | {"SCRATCH": scratch, "HOME": scratch, "HF_HOME": scratch},
        ) as process,
    ):
        os.close(writing)
        return _answer(process, request, answer, name)


def _answer(process: subprocess.Popen[bytes], request: str, pipe: BinaryIO, name: str) -> dict[str, Any]:
    """What the recorder says, or why it said nothing."""
    stop = threading.Timer(SECONDS, process.kill)
    stop.start()
    try:
        assert process.stdin is not None
        try:
            process.stdin.write(request.encode())
            process.stdin.close()
        except BrokenPipeError:
            pass  # it died before it read: said below
        text = pipe.read()
        process.wait()
    finally:
        stop.cancel()
    if not text:
        raise InputError(
            f"{name}: its class did not come to an end within {SECONDS} s and {MEMORY / 2**30:.0f} GiB; "
            "expected a model whose class can be built without weights"
        )
    answer: dict[str, Any] = json.loads(text)
    if "error" in answer:
        packages = missing(answer["error"])
        if packages:
            raise InputError(
                f"{name}: its class needs {' and '.join(packages)}, not installed here; expected them "
                f"beside torch and transformers: pip install 'mantile[transformers]' {' '.join(packages)}"
            )
        why = meaning(answer["error"])
        raise InputError(f"{name}: its class cannot be built or run without weights: {why}")
    return answer


def missing(error: str) -> list[str]:
    """The packages that an error asks for, as pip calls them; [] of any other error.

    Example:
        missing("ImportError: ... You can install it with pip: `pip install timm`.")    # ["timm"]
    """
    if not error.startswith(("ImportError:", "ModuleNotFoundError:")):
        return []
    asked = re.findall(r"pip install ([A-Za-z][\w.-]*\w)`", error)
    return list(dict.fromkeys(asked)) or re.findall(r"No module named '(\w+)", error)[:1]


def meaning(error: str) -> str:
    """The first line of an error that says what is wrong, with the field that stands alone before it."""
    lines = [" ".join(line.split()) for line in error.splitlines()]
    said = [line for line in lines if line and not _HEADING.search(line)] or lines[:1]
    text = ": ".join(said[: 1 if " " in said[0] else 2])
    return "".join(letter for letter in text if letter.isprintable())[:LONGEST]
