"""What input and output tokens cost where each pays for the accelerator time that it takes.

A prompt takes the time for which it occupies the pipeline, an output token its share of a decode step. Where
prefill has workers of its own, input tokens pay those and output tokens the others. Both together pay every
hour: nothing is left over, and nothing is paid twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HOUR, MEGA, ONE_REQUEST
from mantile.equations.serving import Serving
from mantile.equations.workers import Workers
from mantile.graph.quantity import Quantity, Section, if_known, is_number, where
from mantile.graph.rows import Rows

RULE = (
    "a prompt pays the time for which it occupies the accelerators, an output token its share of a decode "
    "step; with prefill workers, input tokens pay these"
)


@dataclass(frozen=True)
class TokenCost:
    """USD per million tokens of each kind, and that both together pay what an hour costs.

    Args:
        paid: USD that all tokens of an hour pay; 0 without a price.
        owed: USD that an hour costs; 0 without a price.
    """

    usd_per_million_input: Quantity
    usd_per_million_output: Quantity
    paid: Quantity
    owed: Quantity
    section: Section


@dataclass(frozen=True)
class TimeShares:
    """Accelerator time of a prompt and of an output, and the share of prefill in both."""

    prefill: Quantity
    section: Section


def time_shares(of_decode: Workers, served: Serving) -> TimeShares:
    """What prompts and outputs take of the time of the same accelerators."""
    rows = Rows("token_cost")
    prompt = rows("prompt_time", "Time for the prompt of a request", "s", served.prefill_service, "prefill")
    output = rows(
        "output_time",
        "Time for the output of a request",
        "s",
        of_decode.inputs.output_tokens
        / of_decode.emitted
        * served.step
        / (of_decode.memory.batch / ONE_REQUEST),
        "its share of decode steps",
    )
    by_time = rows(
        "input_time_share",
        "Share of prefill in the time of both",
        "1",
        prompt / (prompt + output),
        "of the same accelerators",
    )
    return TimeShares(by_time, rows.section("Time of input and output", "of the same accelerators"))


def token_cost(
    of_prefill: Workers,
    times: TimeShares,
    hourly: tuple[Quantity, Quantity],
    tokens: tuple[Quantity, Quantity],
) -> TokenCost:
    """The rows of the Cost part.

    Args:
        of_prefill: workers that prefill, or do everything.
        hourly: USD per hour of the workers that prefill, and of all.
        tokens: input and output tokens per second, mean over the paid hours.
    """
    of_prefill_workers, of_all = hourly
    rows, by_time = Rows("token_cost"), times.prefill
    share = by_time
    apart = of_prefill.ranks.disaggregated
    if apart is not None:
        of_workers = rows(
            "prefill_share",
            "Share of prefill workers in the cost",
            "1",
            if_known(of_prefill_workers / of_all, of_all),
        )
        share = rows(
            "input_share",
            "Share of the cost that input tokens pay",
            "1",
            where(apart > 0, of_workers, by_time),
            "that of prefill workers where there are such",
        )
    of_input = rows(
        "input_per_hour",
        "Cost per hour of input tokens",
        "USD/h",
        if_known(of_all * share, of_all),
    )
    of_output = rows(
        "output_per_hour",
        "Cost per hour of output tokens",
        "USD/h",
        if_known(of_all * (1 - share), of_all),
    )
    per_million = {
        kind: rows(
            f"usd_per_million_{kind}",
            f"Cost per million {kind} tokens, by their time",
            "USD/Mtoken",
            if_known(paid / (per_second * HOUR) * MEGA, paid),
            "at the utilisation above",
        )
        for kind, paid, per_second in (("input", of_input, tokens[0]), ("output", of_output, tokens[1]))
    }
    both = (tokens[0] * per_million["input"] + tokens[1] * per_million["output"]) * HOUR / MEGA
    return TokenCost(
        usd_per_million_input=per_million["input"],
        usd_per_million_output=per_million["output"],
        paid=rows("paid", "What all tokens of an hour pay", "USD/h", where(is_number(of_all), both, 0)),
        owed=rows("owed", "What an hour costs", "USD/h", where(is_number(of_all), of_all, 0)),
        section=rows.section("Input and output tokens", RULE),
    )
