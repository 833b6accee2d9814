"""Python's garbage collector, kept from looking through objects that all stay."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def gc_paused() -> Iterator[None]:
    """No search for garbage within: a command makes many objects and ends, so a search costs up to a quarter
    of the time and frees nothing.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
