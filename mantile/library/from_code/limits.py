"""What the recorder may not do; this file is run alone, and starts the recorder.

Memory and processor time are bounded by the operating system. An audit hook of Python refuses connections,
processes and files opened to be written, after the libraries are imported. This stops accidents and what is
written in Python; machine code that a model brings along could go around it, so trust is still asked for.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

MEMORY = 12 * 2**30  # bytes of address space; torch maps some 5 GiB of it
SECONDS = 120
REFUSED = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.kill",
)
C_CALLS = re.compile(
    r"system|popen|v?fork|clone3?|exec.*|posix_spawnp?|socket|connect|open.*|creat|unlink|rename"
)
COPYING = ("shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.move")
CHANGING = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.chmod",
    "os.truncate",
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Stop what a class has no need of."""
    if event.startswith(REFUSED) or (event in CHANGING and not _is_scratch(arguments[0])):
        raise PermissionError(f"{event} is not allowed to the class of a model")
    if event == "ctypes.dlsym" and C_CALLS.fullmatch(str(arguments[1])):
        raise PermissionError(f"{arguments[1]} of C is not allowed to the class of a model")
    if event.startswith("shutil.") and not _is_scratch(arguments[1 if event in COPYING else 0]):
        raise PermissionError(f"{event} is not allowed to the class of a model")
    if event == "open" and isinstance(arguments[0], str | bytes):
        mode, flags = arguments[1], arguments[2]
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if (writes or (isinstance(flags, int) and flags & WRITING)) and not _is_scratch(arguments[0]):
            raise PermissionError(f"writing {arguments[0]!r:.80} is not allowed to the class of a model")


def _is_scratch(path: object) -> bool:
    """Whether a file lies in the folder that is thrown away afterwards."""
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    place = os.path.realpath(os.fsdecode(path))
    return place == os.devnull or place.startswith(os.path.realpath(os.environ["SCRATCH"]) + os.sep)


def main() -> None:
    """Set the limits, then become the recorder."""
    import resource  # not on every system

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.dont_write_bytecode = True
    tempfile.tempdir = os.environ["SCRATCH"]  # or Python looks for one by writing into each
    import torch  # noqa: F401  (they look for libraries with the help of other processes)
    import transformers  # noqa: F401

    sys.addaudithook(refuse)
    runpy.run_path(str(Path(__file__).with_name("recorder.py")), run_name="__main__")


if __name__ == "__main__":
    main()
