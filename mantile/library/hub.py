"""Configs of the Hugging Face hub, through huggingface_hub and the user's own token (the `hub` extra)."""

from __future__ import annotations

import re
from logging import CRITICAL
from pathlib import Path

from mantile.library.errors import InputError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def is_hub_id(name: str) -> bool:
    """Whether a name has the form organisation/model."""
    return _HUB_ID.fullmatch(name) is not None


def fetch_config(hub_id: str, sidecar: str) -> tuple[Path, Path | None]:
    """The paths of a model's config.json and of its quantisation sidecar, if it has one, in the hub's cache.

    Raises:
        InputError: if the library is not installed, the model does not exist, is gated, or cannot be reached.
    """
    try:
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import (
            EntryNotFoundError,
            GatedRepoError,
            HfHubHTTPError,
            LocalEntryNotFoundError,
            RepositoryNotFoundError,
        )
        from huggingface_hub.utils.logging import set_verbosity
    except ImportError as error:
        raise InputError(
            f"{hub_id}: not a model we ship; reading it from the Hugging Face hub needs huggingface_hub: pip install 'mantile[hub]', "
            "or give the path of its config.json"
        ) from error

    set_verbosity(CRITICAL)  # it would print every retry

    def download(file: str) -> Path:
        return Path(hf_hub_download(hub_id, file))

    try:
        config = download("config.json")
    except GatedRepoError as error:
        raise InputError(
            f"{hub_id}: gated on the hub: accept its terms on its page, then log in with `hf auth login` or set HF_TOKEN; or give the "
            "path of its config.json"
        ) from error
    except RepositoryNotFoundError as error:
        raise InputError(
            f"{hub_id}: not on the hub, or private: check the spelling, or log in with `hf auth login`"
        ) from error
    except LocalEntryNotFoundError as error:  # an EntryNotFoundError too, so it comes first
        raise InputError(
            f"{hub_id}: the hub cannot be reached and the config is not in its cache; give the path of its config.json"
        ) from error
    except EntryNotFoundError as error:
        raise InputError(f"{hub_id}: has no config.json on the hub") from error
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise InputError(
            f"{hub_id}: reading it from the hub failed: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        ) from error
    try:
        return config, download(sidecar)
    except LocalEntryNotFoundError as error:
        raise InputError(
            f"{hub_id}: the hub cannot be reached, so whether a {sidecar} says how it is quantised is unknown; give the path of its "
            "config.json"
        ) from error
    except EntryNotFoundError:
        return config, None  # most models have none
    except (HfHubHTTPError, OSError) as error:
        raise InputError(
            f"{hub_id}: reading its {sidecar} from the hub failed: {type(error).__name__}"
        ) from error
