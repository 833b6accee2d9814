"""Writing files: they appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mantile.library.errors import InputError


@contextmanager
def replacing(path: Path, overwrite: bool = True) -> Iterator[Path]:
    """A new file beside `path` to write to; it takes the place of `path` once all went well, else nothing
    stays behind.

    Args:
        overwrite: whether a file of that name may be replaced.

    Raises:
        InputError: naming the file, if it cannot be written, or is there and must not be replaced.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=".", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        if overwrite:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)  # unlike a rename it fails where the name is taken
    except FileExistsError as error:
        raise InputError(f"{path}: there is such a file already; it is never overwritten") from error
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
