"""Where the data folders lie."""

from __future__ import annotations

from pathlib import Path


def data_folder(name: str) -> Path:
    """Where profiles/, models/ and templates/ lie.

    Inside an installed wheel or beside the package in a checkout.
    """
    package = Path(__file__).resolve().parents[1]
    return next(
        (folder for folder in (package / name, package.parent / name) if folder.is_dir()), package / name
    )
