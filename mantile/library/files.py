"""Writing files: they appear complete or not at all."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from platform import node
from zlib import crc32

from mantile.library.errors import InputError

_STARTED = time.time()  # whatever this process writes is younger


@contextmanager
def replacing(path: Path, overwrite: bool = True, mode: int = 0o644) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes the place of `path` once all went well, else nothing
    stays behind.

    Args:
        overwrite: whether a file of that name may be replaced.
        mode: who may read and write it, as for `os.chmod`; nobody else may while it is written.

    Raises:
        InputError: naming the file, if it cannot be written, or is there and must not be replaced.
    """
    start = f".mantile-{crc32(path.name.encode(errors='replace')):08x}-{crc32(node().encode()):08x}-"
    temporary = path.with_name(f"{start}{os.getpid()}-{secrets.token_hex(4)}{path.suffix}")
    try:  # its name is known before it is there: whenever this is interrupted, it goes
        _remove_left(path.parent, start)
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        temporary.chmod(mode)
        if overwrite:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)  # unlike a rename it fails where the name is taken
    except FileExistsError as error:
        raise InputError(f"{path}: there is such a file already; it is never overwritten") from error
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _remove_left(folder: Path, start: str) -> None:
    """Remove what runs that were killed while they wrote this file on this machine have left."""
    for left in folder.glob(f"{start}*"):
        process = left.name.removeprefix(start).partition("-")[0]
        with suppress(OSError):
            if process.isdigit() and not _writes(int(process), left):
                left.unlink(missing_ok=True)


def _writes(process: int, file: Path) -> bool:
    """Whether the process of that number may still write a file.

    In a container each run may have the number of the one before: a file older than this process is not its
    own.
    """
    return file.stat().st_mtime >= _STARTED if process == os.getpid() else _runs(process)


def _runs(process: int) -> bool:
    """Whether there is a process of that number; taken for granted where nobody can say."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
