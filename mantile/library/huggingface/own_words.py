"""Files in other forms than config.json: what is said of them is said in their own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mantile.library.architecture import Architecture


class OwnWords:
    """Fields of a config.json as another file calls them.

    Args:
        names: what the file calls a field, by its name in a config.json.

    Example:
        OwnWords({"hidden_size": "dim"}).text("text_config.hidden_size ÷ 8")    # "dim ÷ 8"
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._expression = re.compile(
            rf"(?<![\w.])(?:text_config\.)?({'|'.join(map(re.escape, names))})\b|\btext_config\."
        )

    def text(self, text: str) -> str:
        """A source, an error or a path in the words of the file."""
        return self._expression.sub(lambda found: self._names.get(found[1] or "", ""), text)

    def architecture(self, read: Architecture) -> Architecture:
        """An architecture whose sources are in the words of the file."""
        vision = read.vision
        return read.model_copy(
            update={
                "facts": self._sources(read.facts),
                "choices": self._sources(read.choices),
                "unread": {self.text(path): value for path, value in (read.unread or {}).items()},
                "vision": vision and vision.model_copy(update={"facts": self._sources(vision.facts)}),
            }
        )

    def _sources(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: fact.model_copy(update={"source": self.text(fact.source)}) for name, fact in facts.items()
        }
