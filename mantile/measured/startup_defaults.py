"""What engines take where a start-up table does not say it, by their release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mantile.measured.startup_words import day_of, is_v0, release_of

_LONG = 32_768
"""Longer contexts have their prompts cut in the V0 engine of vLLM."""
_CHUNK_512, _CHUNK = 512, 2048
_V0_REQUESTS = 256
_GRAPHS_INSIDE = (0, 21)
_SHARE_RAISED = (0, 20)
_GRAPHS_DAY, _FLASH_DAY = "2026-05", "2025-09"
_STATIC = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87), (1, 0.88))


def share_of_memory(framework: str, version: str, ranks: int) -> float | None:
    """The share of memory that an engine takes unless it is told; None where its profile says it.

    Args:
        ranks: of a replica, on which that of SGLang depends.
    """
    if framework == "sglang":
        return next(share for least, share in _STATIC if ranks >= least)
    if framework == "vllm" and release_of(framework, version)[:2] < _SHARE_RAISED:
        return 0.9
    return None


def steps_and_requests(framework: str, version: str, longest: int) -> dict[str, int]:
    """Token budget and requests at once of the V0 engine of vLLM, which tries one prompt of full length."""
    if framework != "vllm" or not is_v0(version):
        return {}
    release = release_of(framework, version)
    chunk = _CHUNK_512 if release < (0, 6, 5) else _CHUNK
    cut = longest > _LONG and release >= (0, 5, 4)
    return {"token_budget": chunk if cut else max(longest, _CHUNK), "max_requests": _V0_REQUESTS}


def accounting(row: Mapping[str, str], framework: str) -> list[Mapping[str, Any]]:
    """Overrides for what a release counts otherwise than the current one."""
    release, day = release_of(framework, row.get("version", "")), day_of(row.get("source", ""))
    if framework == "llama.cpp" and day < _FLASH_DAY and not row.get("kv_dtype", "").startswith("q"):
        reason = "before September 2025 flash attention was off unless asked for"
        return [{"id": "efficiency.scores_held", "value": 1, "reason": reason}]
    if framework == "vllm" and (release[:2] < _GRAPHS_INSIDE if release else day < _GRAPHS_DAY):
        reason = "before 0.21 graphs came on top of the share of memory"
        return [{"id": "efficiency.graphs_inside", "value": 0, "reason": reason}]
    return []
