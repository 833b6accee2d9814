"""How often measured figures lie inside the 80 % ranges that are stated for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mantile.measured.metrics import COMPARED

if TYPE_CHECKING:
    import pandas as pd

RANGES = {"tpot": "tpot", "ttft": "ttft", "throughput": "throughput", "prefill": "prefill_rate", "e2e": "e2e"}
"""The compared metrics that have a range, and what evidence calls it."""
FEWEST = 20
"""Runs from which on a share is judged."""
HOLDS = (0.76, 0.86)
"""Shares of runs between which an 80 % range holds."""


def coverage(table: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Runs of a table of a reconciliation, and those inside their range, by metric and by words of evidence.

    Args:
        table: with METRIC_inside and evidence; a run whose METRIC_inside is not known does not count.

    Returns:
        by metric `n`, `inside` and `by_evidence`, the same two by words; metrics without a run are left out.
    """
    found: dict[str, dict[str, Any]] = {}
    for name in COMPARED:
        if name not in RANGES:
            continue
        known = table[table[f"{name}_inside"].notna()]
        inside = known[f"{name}_inside"].astype(bool)
        if len(known):
            found[name] = _counts(inside) | {
                "by_evidence": {
                    str(words): _counts(part) for words, part in inside.groupby(known["evidence"], sort=True)
                }
            }
    return found


def _counts(inside: pd.Series[bool]) -> dict[str, int]:
    return {"n": len(inside), "inside": int(inside.sum())}


def held(n: int, inside: int) -> str:
    """What a range holds, in words; of 20 runs and more also whether it is too narrow or too wide.

    Args:
        n: runs.
        inside: those of them inside their range.

    >>> held(50, 31), held(50, 41), held(50, 49), held(10, 2)
    ('62 %: too narrow', '82 %', '98 %: too wide', '20 %')
    """
    share, (least, most) = inside / n, HOLDS
    verdict = "" if n < FEWEST or least <= share <= most else "too narrow" if share < least else "too wide"
    return f"{100 * share:.0f} %" + (f": {verdict}" if verdict else "")
