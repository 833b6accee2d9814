"""The time that reading a file may take, all its parts together."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from mantile.library.errors import InputError

MAX_SECONDS = 60.0  # of the processor; the largest of ours take some ten


@dataclass
class Clock:
    """How long the reading of a file has taken. What is done between two times of reading does not count.

    Args:
        name: of the file, in errors.
        seconds: of the processor, that it may take.
        spent: seconds that it took so far, up to the last time the clock was left.

    Example:
        with Clock("run.xlsx") as clock:
            clock.check()      # as often as there is something more to read
    """

    name: str
    seconds: float = MAX_SECONDS
    spent: float = 0.0
    _entered: float | None = field(default=None, init=False)

    def __enter__(self) -> Clock:
        self._entered = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self.spent, self._entered = self.read, None

    @property
    def read(self) -> float:
        """Seconds of the processor that reading has taken up to now."""
        return self.spent + (0.0 if self._entered is None else time.process_time() - self._entered)

    def check(self) -> None:
        """Refuse to read on once the time is over.

        Raises:
            InputError: naming the file.
        """
        if self.read > self.seconds:
            raise InputError(
                f"{self.name}: more than {self.seconds:g} s to read it; expected a file of the size that "
                "ours have: split it, or remove what is no part of it"
            )
