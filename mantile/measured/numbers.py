"""Columns of tables that hold numbers, checked before anything is worked out of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from mantile.library.errors import InputError, quoted

LARGEST = 1e12  # of any count, length or time in a table of runs
WHOLE = frozenset(
    {
        *("concurrency", "conc", "isl", "osl", "gpus", "tp", "pp", "ep", "dp", "batch", "depth", "gen_len"),
        *("prompt_len", "num_prefill_gpu", "num_decode_gpu", "prefill_num_workers", "decode_num_workers"),
        *("prefill_tp", "prefill_ep", "decode_tp", "decode_ep", "num_prompts"),
        *("max_model_len", "max_seqs", "token_budget"),
    }
)
"""Columns of whole numbers, in the tables of others."""
REAL = frozenset(
    {
        *("tg_tok_s", "pp_tok_s", "output_tput_per_gpu", "input_tput_per_gpu"),
        *("memory_gib_total", "memory_fraction", "weights_gib_per_gpu", "kv_gib_per_gpu", "kv_tokens"),
        *("activation_gib", "non_torch_gib", "graph_gib"),
    }
)
"""Columns of other numbers."""


def require_numbers(record: Mapping[str, Any], columns: Iterable[str] = WHOLE | REAL) -> None:
    """Refuse a record in which a column of numbers holds something else; an empty one is fine.

    Raises:
        InputError: naming the column and what it holds.
    """
    wanted = frozenset(columns)
    for column, value in record.items():
        if column not in wanted or value in ("", None) or isinstance(value, bool):
            continue
        try:
            number = float(value) if isinstance(value, str | int | float) else math.nan
        except (ValueError, OverflowError):
            number = math.nan
        whole = column not in WHOLE or number == int(number if abs(number) < LARGEST else 0)
        if not (0 <= number < LARGEST and whole):  # NaN is not, either
            kind = "whole number" if column in WHOLE else "number"
            raise InputError(
                f"field {column}: holds {quoted(value)}; expected a {kind} from 0 to {LARGEST:g}, or nothing"
            )


def whole(value: Any, otherwise: int = 1) -> int:
    """A whole number of a column that `require_numbers` passed; text of it as well.

    >>> whole("8.0"), whole("", 1)
    (8, 1)
    """
    return int(float(value)) if value not in ("", None) and float(value) else otherwise
