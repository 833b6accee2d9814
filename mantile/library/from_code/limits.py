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
    r"system|syscall|popen|v?fork|clone3?|exec.*|posix_spawnp?|kill.*|socket|connect|f?open.*|creat|mk.*|"
    r"remove|rmdir|unlink.*|rename.*|(sym)?link.*|f?truncate.*|f?ch(mod|own).*"
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
    "os.chown",
    "os.utime",
    "os.setxattr",
    "os.removexattr",
    "os.truncate",
    "sqlite3.connect",
)
OF_TWO = ("os.rename", "os.link", "os.symlink")  # paths
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    """Stop what a class has no need of."""
    paths = arguments[: 2 if event in OF_TWO else 1] if event in CHANGING else ()
    if event.startswith(REFUSED) or not all(map(_is_scratch, paths)):
        raise PermissionError(f"{event} is not allowed to the class of a model")
    if event.startswith("ctypes.dlsym") and C_CALLS.fullmatch(str(arguments[1])):
        raise PermissionError(f"{arguments[1]} of C is not allowed to the class of a model")
    if event.startswith("shutil.") and not _is_scratch(arguments[1 if event in COPYING else 0]):
        raise PermissionError(f"{event} is not allowed to the class of a model")
    if event == "open" and isinstance(arguments[0], str | bytes):
        mode, flags = arguments[1], arguments[2]
        writes = isinstance(mode, str) and any(letter in mode for letter in "wax+")
        if (writes or (isinstance(flags, int) and flags & WRITING)) and not _is_scratch(arguments[0]):
            raise PermissionError(f"writing {arguments[0]!r:.80} is not allowed to the class of a model")


def _is_scratch(path: object) -> bool:
    """Whether a file lies in the folder that is thrown away afterwards; of a relative path it is not known.

    It may be relative to a folder that was opened.
    """
    if not isinstance(path, str | bytes | os.PathLike) or not os.path.isabs(path):
        return False
    place = os.path.realpath(os.fsdecode(path))
    return place == os.devnull or place.startswith(os.path.realpath(os.environ["SCRATCH"]) + os.sep)


def _refuse_process(*_: object) -> None:
    raise PermissionError("a process is not allowed to the class of a model")


def main() -> None:
    """Set the limits, then become the recorder."""
    import resource  # not on every system

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.dont_write_bytecode = True
    tempfile.tempdir = os.environ["SCRATCH"]  # or Python looks for one by writing into each
    import _posixsubprocess

    import torch  # noqa: F401  (they look for libraries with the help of other processes)
    import transformers  # noqa: F401

    sys.addaudithook(refuse)
    # of multiprocessing, which no hook is told of
    _posixsubprocess.fork_exec = _refuse_process  # type: ignore[assignment]
    runpy.run_path(str(Path(__file__).with_name("recorder.py")), run_name="__main__")


if __name__ == "__main__":
    main()
