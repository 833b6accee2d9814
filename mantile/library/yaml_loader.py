"""The loader of YAML 1.2: PyYAML follows YAML 1.1, which reads 4.8e12 as a text and `no` as False."""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from mantile.library.errors import quoted

_MERGE, _TEXT, _LIST, _MAPPING = (f"tag:yaml.org,2002:{kind}" for kind in ("merge", "str", "seq", "map"))
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Loader(_Base):  # type: ignore[misc]  # the base is C where PyYAML was built with it
    """YAML 1.2 core schema for numbers and booleans; a key given twice is an error."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    def construct_document(self, node: Any) -> Any:
        return self._plain(node)

    def _plain(self, node: Any) -> Any:
        """Texts, lists and mappings as they are, without the generators that PyYAML makes of each."""
        kind, tag = type(node), node.tag
        if kind is yaml.ScalarNode and tag == _TEXT:
            return node.value
        if kind is yaml.SequenceNode and tag == _LIST:
            return [self._plain(part) for part in node.value]
        if kind is not yaml.MappingNode or tag != _MAPPING:
            return self.construct_object(node, deep=True)
        fields: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag != _TEXT or key.value in fields:  # merged, or to be refused
                return self.construct_object(node, deep=True)
            fields[key.value] = self._plain(value)
        return fields

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key_node.tag != _MERGE and not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"expected a text as key, found {quoted(key)}; put it in quotes",
                    key_node.start_mark,
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {quoted(key)} is given twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)"
        r"|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    ("merge", r"^(?:<<)$", "<"),
):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def _decimal(loader: Any, node: Any) -> int:
    """YAML 1.2 has no octal numbers with a leading zero."""
    return int(loader.construct_scalar(node))


Loader.add_constructor("tag:yaml.org,2002:int", _decimal)
