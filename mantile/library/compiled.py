"""What YAML files of ours say, read when a wheel was built: JSON is read in a tenth of the time.

A text is found by its digest, so a file that was changed since is read as YAML, as all are in a checkout.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

FILE = "compiled.json"


def digest(text: str) -> str:
    """What a text is found by."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def compiled(text: str) -> Any:
    """What a YAML text says; None where no wheel holds it."""
    found = _compiled()
    return found.get(digest(text)) if found else None


def compile_profiles(folder: Path) -> str:
    """The JSON that a wheel holds: what all current profiles in a folder say. Older versions stay YAML."""
    import yaml

    from mantile.library.yaml_loader import Loader

    files = (path for path in sorted(folder.rglob("*.yaml")) if "versions" not in path.parts)
    texts = [path.read_text(encoding="utf-8") for path in files]
    said = {digest(text): yaml.load(text, Loader=Loader) for text in texts}  # noqa: S506  # a SafeLoader
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


@cache
def _compiled() -> dict[str, Any]:
    path = Path(__file__).with_name(FILE)
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
