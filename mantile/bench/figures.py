"""Answers of a point as figures: percentiles, rates, failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from mantile.bench.load import Client
from mantile.bench.stream import Answer

PERCENTILES = (50, 95, 99)


def figures_of(answers: Sequence[Answer], output: int, client: Client) -> dict[str, float]:
    """The figures of a point, by name, in SI units.

    Args:
        answers: of all measured requests, at least one of them without failure.
        output: tokens that each should have.
        client: what the client took meanwhile.

    Returns:
        ttft, tpot, itl (time between two pieces) and e2e, each as `_mean_s`, `_p50_s`, `_p95_s`, `_p99_s`;
        `prefill_tokens_per_s`, prompt tokens over TTFT, and `decode_tokens_per_s`, 1 over TPOT, both of one
        request, means; `output_tokens_per_s` and `input_tokens_per_s` of all requests over the time from the
        first that was sent to the last piece; how many requests were sent, failed (in all and by reason) or
        had fewer tokens than asked; and of the client by how much its loop and its arrivals were late.
    """
    good = [answer for answer in answers if answer.failure is None]
    tpots = [answer.tpot for answer in good if answer.tpot is not None]
    gaps = [gap for answer in good for gap in np.diff(answer.pieces)]
    found: dict[str, float] = {}
    for name, values in (
        ("ttft", [answer.ttft for answer in good]),
        ("tpot", tpots),
        ("itl", gaps),
        ("e2e", [answer.e2e for answer in good]),
    ):
        if values:
            found[f"{name}_mean_s"] = float(np.mean(values))
            of_shares = np.percentile(values, PERCENTILES)
            found |= {
                f"{name}_p{share}_s": float(value)
                for share, value in zip(PERCENTILES, of_shares, strict=True)
            }
    wall = max(answer.pieces[-1] for answer in good) - min(answer.sent for answer in good)
    prompts = [answer.prompt_tokens for answer in good if answer.prompt_tokens]
    rates = [
        answer.prompt_tokens / answer.ttft for answer in good if answer.prompt_tokens and answer.ttft > 0
    ]
    if prompts:
        found |= {
            "input_tokens_mean": float(np.mean(prompts)),
            "input_tokens_per_s": sum(prompts) / wall,
            "prefill_tokens_per_s": float(np.mean(rates)),
        }
    if any(tpot > 0 for tpot in tpots):
        found["decode_tokens_per_s"] = float(np.mean([1 / tpot for tpot in tpots if tpot > 0]))
    failures = Counter(answer.failure for answer in answers if answer.failure is not None)
    late = [answer.sent - answer.due for answer in answers]
    return {
        **found,
        "output_tokens_mean": float(np.mean([answer.tokens for answer in good])),
        "output_tokens_per_s": sum(answer.tokens for answer in good) / wall,
        "requests": len(answers),
        "requests_failed": sum(failures.values()),
        **{f"failures.{reason}": number for reason, number in sorted(failures.items())},
        "requests_cut_short": sum(answer.tokens < output for answer in good),
        "pieces_per_token": sum(len(answer.pieces) for answer in good)
        / sum(answer.tokens for answer in good),
        "wall_s": wall,
        "client_lag_p50_s": float(np.median(client.lags or [0.0])),
        "client_lag_p95_s": float(np.percentile(client.lags or [0.0], 95)),
        "client_late_p95_s": float(np.percentile(late, 95)),
        "client_cpu_share": client.cpu,
    }


def run_metrics(figures: dict[str, float]) -> dict[str, float]:
    """Those of the figures that a measured run has, by the names it has for them."""
    named = {
        "ttft_s": "ttft_mean_s",
        "ttft_p50_s": "ttft_p50_s",
        "ttft_p95_s": "ttft_p95_s",
        "tpot_s": "tpot_mean_s",
        "tpot_p50_s": "tpot_p50_s",
        "e2e_s": "e2e_mean_s",
        "output_tokens_per_s": "output_tokens_per_s",
    }
    return {field: figures[name] for field, name in named.items() if name in figures and figures[name] > 0}
