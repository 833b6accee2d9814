"""Conditions on points of a sweep: names, numbers, comparisons, and, or, not; nothing else is read."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mantile.library.errors import InputError, near

if TYPE_CHECKING:
    import pandas as pd

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
_LONGEST = 1000
EXAMPLE = '--where "ttft_p95_s < 2 and usd_per_hour < 50"'


def where(text: str, table: pd.DataFrame) -> Any:
    """Which rows of a table keep a condition; a figure that nobody knows keeps none.

    Raises:
        InputError: naming what is no column or no comparison.
    """
    if len(text) > _LONGEST:
        raise InputError(f"--where: {len(text):,} characters; expected at most {_LONGEST:,}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InputError(f"--where {text!r:.80}: this is no condition; such as {EXAMPLE}") from None
    return _of(tree, table, text)


def _of(node: ast.expr, table: pd.DataFrame, text: str) -> Any:
    """The rows that a part of a condition holds for."""
    if isinstance(node, ast.BoolOp):
        parts = [_of(part, table, text) for part in node.values]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part if isinstance(node.op, ast.And) else whole | part
        return whole
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ~_of(node.operand, table, text)
    if isinstance(node, ast.Compare):
        sides = [_side(side, table, text) for side in (node.left, *node.comparators)]
        whole = None
        for left, how, right in zip(sides[:-1], node.ops, sides[1:], strict=True):
            name = _COMPARE.get(type(how))
            if name is None or not (hasattr(left, "lt") or hasattr(right, "lt")):
                raise InputError(f"--where {text!r:.80}: expected comparisons of columns; such as {EXAMPLE}")
            part = _compared(left, name, right)
            whole = part if whole is None else whole & part
        return whole
    raise InputError(f"--where {text!r:.80}: expected comparisons with and, or, not; such as {EXAMPLE}")


def _compared(left: Any, name: str, right: Any) -> Any:
    if not hasattr(left, "lt"):
        left, right, name = right, left, {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}.get(name, name)
    if isinstance(right, str) or left.dtype.kind not in "iufb":
        left = left.astype(str)
        right = right if isinstance(right, str) or hasattr(right, "lt") else str(right)
        if name not in ("eq", "ne"):
            raise InputError(
                f"--where: {left.name} is a text: expected == or !=, such as {left.name} == 'fp8'"
            )
    return getattr(left, name)(right)


def _side(node: ast.expr, table: pd.DataFrame, text: str) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int | float)
    ):
        return -node.operand.value
    name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute) else None
    if name is None:
        raise InputError(f"--where {text!r:.80}: expected names and numbers; such as {EXAMPLE}")
    if name.endswith("_ms") and f"{name.removesuffix('_ms')}_s" in table.columns:
        return table[f"{name.removesuffix('_ms')}_s"] * 1e3
    return table[column(name, table.columns, "--where")]


def column(name: str, columns: Iterable[str], flag: str) -> str:
    """The column that a name stands for.

    Raises:
        InputError: with those that come near.
    """
    from mantile.library.scenario_fields import field_name

    known = [*columns]
    for spelling in (name, name.replace(".", "_"), field_name(name), f"{name}_s"):
        if spelling in known:
            return spelling
    raise InputError(f"{flag} {name!r:.60}: there is no such column; {near(name, known)}")
