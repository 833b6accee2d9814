"""The time that reading a file may take, all its parts together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mantile.library.errors import InputError

MAX_SECONDS = 60.0  # of the processor; the largest of ours take some ten


@dataclass
class Clock:
    """How long the reading of a file has taken.

    Args:
        name: of the file, in errors.
        seconds: of the processor, that it may take.

    Example:
        clock = Clock("run.xlsx")
        clock.check()      # as often as there is something more to read
    """

    name: str
    seconds: float = MAX_SECONDS
    started: float = field(default_factory=lambda: time.process_time())

    def check(self) -> None:
        """Refuse to read on once the time is over.

        Raises:
            InputError: naming the file.
        """
        if time.process_time() - self.started > self.seconds:
            raise InputError(
                f"{self.name}: more than {self.seconds:g} s to read it; expected a file of the size that "
                "ours have: split it, or remove what is no part of it"
            )
