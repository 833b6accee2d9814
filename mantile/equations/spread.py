"""How far the lengths of requests lie apart.

The seconds that requests wait, and the longest output of a static batch, follow from mean and standard
deviation of the lengths, whatever they are drawn from. Where one shape is needed it is a gamma distribution:
that of 0 spread is a length that all have, that of 1 an exponential one.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import (
    AT_P95,
    HALF,
    LONGEST,
    LONGEST_SKEWED,
    NINTH,
    NORMAL_EXPONENT,
    NORMAL_SCALE,
    ONE_REQUEST,
    QUARTER,
    THIRD,
)
from mantile.equations.inputs import Workload
from mantile.graph.quantity import Input, Node, Quantity, Section, maximum
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Spread:
    """Standard deviations of lengths over their means.

    Args:
        prompts, outputs: of both lengths.
        evenly: of lengths drawn evenly from the range that the scenario states.
        usual: of outputs, until somebody states it.
        prompts_squared, outputs_squared: squares of the first two.
        waits: what prompts wait for each other, against lengths drawn evenly.
    """

    prompts: Input
    outputs: Input
    evenly: Quantity
    usual: Quantity
    prompts_squared: Quantity
    outputs_squared: Quantity
    waits: Quantity
    section: Section


def spread(inputs: Workload) -> Spread:
    """How far lengths lie apart."""
    rows = Rows("spread")
    evenly = rows(
        "evenly",
        "Spread of lengths drawn evenly",
        "1",
        HALF * inputs.length_range_ratio / (1 - HALF * inputs.length_range_ratio) * THIRD**HALF,
        "standard deviation against the mean",
    )
    usual = rows(
        "usual",
        "Spread of outputs with that p95",
        "1",
        (inputs.p95_output_ratio - 1) / AT_P95,
        "as if they were normal",
    )
    prompts = rows("prompts", "Spread of prompts, squared", "1", inputs.input_spread * inputs.input_spread)
    outputs = rows("outputs", "Spread of outputs, squared", "1", inputs.output_spread * inputs.output_spread)
    waits = rows(
        "waits",
        "Waits behind prompts against lengths drawn evenly",
        "1",
        (1 + prompts) / (1 + evenly * evenly),
        "behind long prompts more requests wait",
        source="Pollaczek and Khinchine: single server, random arrivals",
    )
    return Spread(
        prompts=inputs.input_spread,
        outputs=inputs.output_spread,
        evenly=evenly,
        usual=usual,
        prompts_squared=prompts,
        outputs_squared=outputs,
        waits=waits,
        section=rows.section("Spread of lengths", "standard deviation against the mean"),
    )


def normal_percentile(share: Node) -> Node:
    """Standard deviations above the mean below which this share of a normal distribution lies.

    Within 1 % between 0.5 and 99.5 %, within 0.05 up to 99.99 %.
    """
    return (share**NORMAL_EXPONENT - (1 - share) ** NORMAL_EXPONENT) / NORMAL_SCALE


def longest(rows: Rows, lengths: Spread, batch: Quantity) -> Quantity:
    """The longest of a batch of outputs, against the mean.

    Args:
        batch: outputs that are drawn from a gamma distribution.
    """
    count = batch / ONE_REQUEST
    beyond = rows(
        "longest_beyond",
        "Share of all outputs that are longer than the longest of a batch",
        "1",
        (LONGEST - LONGEST_SKEWED * lengths.outputs) / (count + QUARTER * (1 + lengths.outputs)),
        "on average",
    )
    far = rows(
        "longest_far",
        "Longest output of a batch, in standard deviations",
        "1",
        normal_percentile(1 - beyond),
        "of the cube root of the lengths, which is nearly normal",
    )
    root = rows(
        "longest_root",
        "Cube root of the longest output of a batch, against the mean",
        "1",
        1 - NINTH * lengths.outputs_squared + THIRD * lengths.outputs * far,
        "of a gamma distribution",
        source="Wilson and Hilferty",
    )
    return rows(
        "longest_drawn",
        "Longest output of a batch, against the mean, of lengths as stated",
        "1",
        maximum(1, root * root * root),
    )
