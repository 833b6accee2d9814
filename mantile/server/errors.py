"""Errors that a worker process may hand back; what reads them here needs no web framework."""

from __future__ import annotations

from typing import Any

from mantile.library.errors import InputError


class Refused(InputError):
    """Something that was asked cannot be, by a rule with a reason code.

    Args:
        code: as `mantile list checks` explains it.
        field: of the request; None where it is none alone.
    """

    def __init__(self, message: str, code: str, field: str | None = None) -> None:
        super().__init__(message)
        self.code, self.field = code, field

    def __reduce__(self) -> tuple[Any, ...]:
        """As it travels from a worker."""
        return type(self), (str(self), self.code, self.field)


class Limited(Exception):
    """A limit of the server, not a fault of what was handed in.

    Args:
        status: of the answer.
        after: seconds after which it may be tried again.
    """

    def __init__(self, status: int, message: str, after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.after = status, after

    def __reduce__(self) -> tuple[Any, ...]:
        """As it travels from a worker."""
        return type(self), (self.status, str(self), self.after)
