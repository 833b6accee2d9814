"""What the schema says of answers: the keys that an answer always has, and what each is."""

from __future__ import annotations

from typing import Any

_OR_NULL = "?"


def answered(**keys: str) -> dict[int | str, dict[str, Any]]:
    """An answer that is an object, for `responses` of an endpoint; it may have further keys.

    Args:
        keys: JSON type of each; with a question mark it may be null.

    Example:
        answered(id="string", winner="object?")
    """
    schema = {
        "type": "object",
        "properties": {
            name: {"type": [kind.removesuffix(_OR_NULL), "null"] if kind.endswith(_OR_NULL) else kind}
            for name, kind in keys.items()
        },
        "required": [*keys],
    }
    return {200: {"content": {"application/json": {"schema": schema}}}}
