"""Configs of the Hugging Face hub, through huggingface_hub and the user's own token (the `hub` extra)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from logging import CRITICAL
from pathlib import Path
from threading import Thread
from typing import Any

from mantile.library.documents import parse_json, read_text
from mantile.library.errors import InputError
from mantile.library.huggingface.other_kinds import lacking_config

_PART = r"[A-Za-z0-9][\w.-]{0,95}"
_HUB_ID = re.compile(f"{_PART}/{_PART}")
_URL = re.compile(
    r"(?:hf://|(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)(?:/|$))([^?#]*)[^ ]*", re.IGNORECASE
)
_OTHER_PAGES = ("datasets", "spaces", "collections", "papers", "docs", "blog", "kernels")
_ENDPOINT = "https://huggingface.co"
_PATIENCE = 1.2  # seconds in which the hub must answer the first request
MAIN = "main"


@dataclass(frozen=True)
class HubName:
    """A model of the hub: organisation/model, and which revision of it."""

    id: str
    revision: str = MAIN

    @property
    def config_address(self) -> str:
        """Where its config.json can be downloaded by hand."""
        return f"{_ENDPOINT}/{self.id}/resolve/{self.revision}/config.json"


def hub_name(name: str) -> HubName | None:
    """A name of the form organisation/model, or the address of a model's page on the hub; None for any other.

    Raises:
        InputError: for an address of the hub that is no model's.

    Example:
        hub_name("https://huggingface.co/Qwen/Qwen3-8B/tree/main")   # HubName("Qwen/Qwen3-8B")
    """
    address = _URL.fullmatch(name.strip())
    if address is None:
        return HubName(name) if _HUB_ID.fullmatch(name) else None
    first, *rest = [part for part in address.group(1).split("/") if part] or [""]
    hub_id = "/".join((first, *rest[:1]))
    if first in _OTHER_PAGES or not re.fullmatch(rf"{_PART}(?:/{_PART})?", hub_id):
        raise InputError(f"{name}: expected the page of a model: {_ENDPOINT}/organisation/model")
    named = rest[1:3] if rest[1:2] and rest[1] in ("tree", "blob", "resolve", "raw", "commit") else []
    return HubName(hub_id, *named[1:])


def fetch_config(asked: HubName, sidecar: str) -> tuple[Path, Path | None]:
    """The paths of a model's config.json and of the file beside it, if the model has one, in the hub's cache.

    Where HF_HUB_OFFLINE is set, or the hub does not answer within 1.2 s, only the cache is asked.

    Args:
        sidecar: name of the other file.

    Raises:
        InputError: if huggingface_hub is not installed, or the model does not exist, is gated, or cannot be
            reached; with what to do.
    """
    if not _is_installed():
        raise InputError(
            f"{asked.id}: not a model we ship; reading it from the Hugging Face hub needs huggingface_hub: "
            f"pip install 'mantile[hub]', or {_by_hand(asked)}"
        )
    offline = _offline(asked)
    with _silence():
        return _Fetch(asked, offline).both(sidecar)


def fetch_code(asked: HubName) -> Path:
    """The folder with a model's config.json and its own code, in the hub's cache.

    Raises:
        InputError: if the hub cannot be reached, or the files cannot be read.
    """
    from huggingface_hub import errors, snapshot_download

    try:
        with _silence():
            return Path(
                snapshot_download(asked.id, revision=asked.revision, allow_patterns=["config.json", "*.py"])
            )
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        raise InputError(
            f"{asked.id}: reading its code from the hub failed: {type(error).__name__}"
        ) from error


def _is_installed() -> bool:
    try:
        return find_spec("huggingface_hub") is not None
    except ValueError:  # it was loaded without a specification
        return True


def _by_hand(asked: HubName) -> str:
    return f"download {asked.config_address} and give its path"


def _offline(asked: HubName) -> str:
    """Why the hub is not asked; empty if it is."""
    for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        if os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE"):
            return f"{variable} is set"
    answered: list[bool] = []
    probe = Thread(target=lambda: answered.append(_answers(asked)), daemon=True)
    import huggingface_hub.utils  # noqa: F401  # takes half a second, in which the hub is not asked

    probe.start()
    probe.join(_PATIENCE)
    return "" if any(answered) else "the hub cannot be reached"


def _answers(asked: HubName) -> bool:
    """Whether the hub answers at all, asked as a download asks it: same endpoint, proxy and certificates.

    A connection alone proves nothing: some firewalls take every one and then say no word.
    """
    from huggingface_hub import get_session, hf_hub_url

    try:
        get_session().head(hf_hub_url(asked.id, "config.json", revision=asked.revision), timeout=_PATIENCE)
    except Exception:  # of requests or of httpx, by the version of huggingface_hub
        return False
    return True


@contextmanager
def _silence() -> Iterator[None]:
    """huggingface_hub without its log, in which it writes every retry."""
    from huggingface_hub.utils.logging import get_verbosity, set_verbosity

    verbosity = get_verbosity()
    set_verbosity(CRITICAL)
    try:
        yield
    finally:
        set_verbosity(verbosity)


@dataclass(frozen=True)
class _Fetch:
    """Files of a model, from the hub or its cache.

    Args:
        offline: why only the cache is asked; empty where the hub is.
    """

    asked: HubName
    offline: str

    @property
    def _why_not(self) -> str:
        return self.offline or "the hub cannot be reached"

    def both(self, sidecar: str) -> tuple[Path, Path | None]:
        """config.json, and the file beside it."""
        return self._config(), self._optional(sidecar)

    def _download(self, file: str) -> Path:
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(self.asked.id, file, revision=self.asked.revision))

    def _cached(self, file: str) -> tuple[Path | None, bool]:
        """The path of a file in the cache, and whether it is known there that the model has no such file.

        The cache is read as it lies: a download makes requests even where it may use the cache alone.
        """
        from huggingface_hub import try_to_load_from_cache

        try:
            found = try_to_load_from_cache(self.asked.id, file, revision=self.asked.revision)
        except ValueError as error:
            raise InputError(f"{self.asked.id}: not an id that the hub can have: {error}") from error
        return (Path(found), False) if isinstance(found, str) else (None, found is not None)

    def _not_cached(self) -> InputError:
        return InputError(
            f"{self.asked.id}: {self._why_not}, and its config is not in the hub's cache: "
            f"{_by_hand(self.asked)}"
        )

    def _sidecar_not_cached(self, file: str) -> InputError:
        return InputError(
            f"{self.asked.id}: {self._why_not}, and a {file} there may say how it is quantised; "
            f"{_by_hand(self.asked)}"
        )

    def _config(self) -> Path:
        from huggingface_hub import errors

        hub_id, by_hand = self.asked.id, _by_hand(self.asked)
        if self.offline:
            path, _ = self._cached("config.json")
            if path is None:
                raise self._not_cached()
            return path
        try:
            return self._download("config.json")
        except errors.GatedRepoError as error:
            raise InputError(
                f"{hub_id}: gated on the hub: accept its terms on its page, then log in with `hf auth login` "
                f"or set HF_TOKEN; or {by_hand}"
            ) from error
        except errors.RepositoryNotFoundError as error:
            raise InputError(
                f"{hub_id}: not on the hub, or private: check the spelling, or log in with `hf auth login`"
            ) from error
        except errors.LocalEntryNotFoundError as error:  # an EntryNotFoundError too, so it comes first
            raise self._not_cached() from error
        except errors.EntryNotFoundError as error:
            raise self._lacking() from error
        except (errors.HfHubHTTPError, OSError, ValueError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(f"{hub_id}: reading it from the hub failed: {reason}; {by_hand}") from error

    def _optional(self, file: str) -> Path | None:
        """The path of another file of a model whose config.json was found; None if it has no such file."""
        from huggingface_hub import errors

        if self.offline:
            path, has_none = self._cached(file)
            if path is None and not has_none:
                raise self._sidecar_not_cached(file)
            return path
        try:
            return self._download(file)
        except errors.LocalEntryNotFoundError as error:
            raise self._sidecar_not_cached(file) from error
        except errors.EntryNotFoundError:
            return None  # most models have none
        except (errors.HfHubHTTPError, OSError) as error:
            raise InputError(
                f"{self.asked.id}: reading its {file} from the hub failed: {type(error).__name__}"
            ) from error

    def _lacking(self) -> InputError:
        """The error about a repository without config.json, by what it holds."""
        from huggingface_hub import errors, list_repo_files

        try:
            files = list(list_repo_files(self.asked.id, revision=self.asked.revision))
        except (errors.HfHubHTTPError, OSError):
            return InputError(f"{self.asked.id}: has no config.json on the hub")
        return lacking_config(f"{self.asked.id} on the hub", files, self._content)

    def _content(self, file: str) -> Any:
        """The content of a file that is JSON."""
        path = self._optional(file)
        return None if path is None else parse_json(read_text(path), f"{self.asked.id}/{file}")
