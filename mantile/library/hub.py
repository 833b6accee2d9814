"""Configs of the Hugging Face hub, through huggingface_hub and the user's own token (the `hub` extra)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from logging import CRITICAL
from pathlib import Path

from mantile.library.errors import InputError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(name: str) -> bool:
    """Whether a name has the form organisation/model."""
    return _HUB_ID.fullmatch(name) is not None


def fetch_config(hub_id: str, sidecar: str) -> tuple[Path, Path | None]:
    """The paths of a model's config.json and of the file beside it, if the model has one, in the hub's cache.

    Args:
        sidecar: name of the other file.

    Raises:
        InputError: if huggingface_hub is not installed, or the model does not exist, is gated, or cannot be
            reached.
    """
    try:
        import huggingface_hub.errors  # noqa: F401  # so that a missing package is noticed here
    except ImportError as error:
        raise InputError(
            f"{hub_id}: not a model we ship; reading it from the Hugging Face hub needs huggingface_hub: "
            "pip install 'mantile[hub]', or give the path of its config.json"
        ) from error
    with _silence():
        return _fetch_required(hub_id), _fetch_optional(hub_id, sidecar)


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


def _fetch_required(hub_id: str) -> Path:
    """The path of a model's config.json."""
    from huggingface_hub import errors, hf_hub_download

    try:
        return Path(hf_hub_download(hub_id, "config.json"))
    except errors.GatedRepoError as error:
        raise InputError(
            f"{hub_id}: gated on the hub: accept its terms on its page, then log in with `hf auth login` "
            "or set HF_TOKEN; or give the path of its config.json"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise InputError(
            f"{hub_id}: not on the hub, or private: check the spelling, or log in with `hf auth login`"
        ) from error
    except errors.LocalEntryNotFoundError as error:  # an EntryNotFoundError too, so it comes first
        raise InputError(
            f"{hub_id}: the hub cannot be reached and the config is not in its cache; "
            "give the path of its config.json"
        ) from error
    except errors.EntryNotFoundError as error:
        raise InputError(f"{hub_id}: has no config.json on the hub") from error
    except (errors.HfHubHTTPError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{hub_id}: reading it from the hub failed: {reason}") from error


def _fetch_optional(hub_id: str, file: str) -> Path | None:
    """The path of another file of a model whose config.json was found; None if it has no such file."""
    from huggingface_hub import errors, hf_hub_download

    try:
        return Path(hf_hub_download(hub_id, file))
    except errors.LocalEntryNotFoundError as error:
        raise InputError(
            f"{hub_id}: the hub cannot be reached, and a {file} there may say how it is quantised; "
            "give the path of its config.json"
        ) from error
    except errors.EntryNotFoundError:
        return None  # most models have none
    except (errors.HfHubHTTPError, OSError) as error:
        raise InputError(
            f"{hub_id}: reading its {file} from the hub failed: {type(error).__name__}"
        ) from error
