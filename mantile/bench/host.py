"""What a record says of the machine that measured, without naming it."""

from __future__ import annotations

import hashlib
import hmac
import platform
import secrets
from contextlib import suppress
from pathlib import Path

from mantile.library.errors import InputError
from mantile.library.files import replacing

_SALT = 32  # bytes
_DIGITS = 16


def host_id(salt: Path | None = None) -> str:
    """A hash of this machine: the same in all its records, and no way back to its name.

    Args:
        salt: the file of random bytes that makes it so; in the user's folder of data if None. It is made when
            it is first needed, and nobody else may read it.

    Raises:
        InputError: if the file cannot be read or made.
    """
    if salt is None:
        from platformdirs import user_data_path

        salt = user_data_path("mantile") / "host.salt"
    return hmac.new(_salt(salt), _machine().encode(), hashlib.sha256).hexdigest()[:_DIGITS]


def _salt(path: Path) -> bytes:
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(InputError), replacing(path, overwrite=False, mode=0o600) as temporary:
                temporary.write_bytes(secrets.token_bytes(_SALT))  # unless another process was faster
        salt = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if len(salt) != _SALT:
        raise InputError(f"{path}: {len(salt)} bytes; expected {_SALT} random ones: delete it")
    return salt


def _machine() -> str:
    """What tells this machine from others."""
    with suppress(OSError):
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or platform.node()
    return platform.node()


def platform_words() -> dict[str, str]:
    """Operating system and Python."""
    return {"os": f"{platform.system()} {platform.machine()}"[:120], "python": platform.python_version()}
