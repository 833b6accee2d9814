"""The program: a process of its own, also as `python -m mantile`."""

from __future__ import annotations

import atexit
import gc

from mantile.cli import main


def run() -> None:
    """One command, after which the process ends.

    The system takes back what it made, nothing looks for garbage before.
    """
    gc.disable()
    atexit.register(gc.freeze)
    main()


if __name__ == "__main__":
    run()
