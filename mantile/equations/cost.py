"""Power and cost of the whole deployment: per token, per hour, day and month. Utilisation stands beside every figure per token.

USD per million tokens = USD per hour ÷ (utilisation × tokens per second × 3600) × 1e6, the InferenceX convention where
utilisation is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import HOUR, KILO, MEGA, MONTH
from mantile.equations.power import ASSUMED
from mantile.equations.serving import Serving
from mantile.equations.workers import Workers
from mantile.graph.quantity import Node, Quantity, Section, minimum, where


@dataclass(frozen=True)
class Cost:
    """Headline figures: W, J per token, USD per hour and per million tokens; `known` is 1 if there is a price, `power_known` if power limits are stated."""

    power: Quantity
    joules_per_output_token: Quantity
    usd_per_hour: Quantity
    usd_per_million_output: Quantity
    usd_per_million_input: Quantity
    usd_per_million_blended: Quantity
    usd_per_day: Quantity
    usd_per_month: Quantity
    tokens_per_usd: Quantity
    tokens_per_kwh: Quantity
    known: Quantity
    power_known: Quantity
    sections: tuple[Section, ...]


def cost(side: Workers, decoders: Workers, served: Serving) -> Cost:
    """The rows of the Cost sheet."""
    inputs, apart = side.inputs, side.ranks.disaggregated

    def row(name: str, label: str, unit: str, body: Node, note: str = "", source: str = "") -> Quantity:
        return Quantity(f"cost.{name}", label, unit, body, note=note, source=source)

    def both(mine: Quantity, theirs: Quantity) -> Node:
        return mine if apart is None else mine + apart * theirs

    load = row(
        "utilisation",
        "Utilisation",
        "1",
        inputs.utilisation,
        "share of the paid hours that carry this load; every figure per token holds at it",
    )
    output = row(
        "output_tokens",
        "Output tokens per second, mean",
        "token/s",
        served.output_tokens_per_s * load,
        "output tokens per second × utilisation",
    )
    prompt = row(
        "input_tokens",
        "Input tokens per second, mean",
        "token/s",
        served.requests_per_s * inputs.input_tokens * load,
        "requests per second × input tokens × utilisation",
    )
    blended = row("all_tokens", "Input and output tokens per second, mean", "token/s", output + prompt)
    watts = row(
        "power",
        "Power in the building",
        "W",
        both(side.power.total, decoders.power.total),
        "of all accelerators, mean",
    )
    energy = row("joules_per_output_token", "Energy per output token", "J/token", watts / output)
    per_kwh = row(
        "tokens_per_kwh",
        "Output tokens per kWh",
        "token/kWh",
        where(watts > 0, output * HOUR * KILO / watts, 0),
        "0 where nobody states the power limit",
    )
    provided = row(
        "provisioned_power", "Power to provide for", "W", _provided(side, decoders), "of all accelerators"
    )
    megawatt = row(
        "tokens_per_provisioned_watt",
        "Output tokens per second and provisioned watt",
        "token/s/W",
        where(provided > 0, served.output_tokens_per_s / provided, 0),
        "at full load; 0 where nobody states the power limit",
    )
    hourly = row(
        "usd_per_hour",
        "Cost per hour",
        "USD/h",
        both(side.power.hourly, decoders.power.hourly),
        "of all accelerators",
    )
    each = {
        name: row(
            f"usd_per_million_{name}",
            f"Cost per million {name if name != 'blended' else 'blended'} tokens",
            "USD/Mtoken",
            hourly / (tokens * HOUR) * MEGA,
            f"cost per hour ÷ ({words} tokens per second × 3600) × 1E6, at the utilisation above",
            source="InferenceX convention",
        )
        for name, words, tokens in (
            ("output", "output", output),
            ("input", "input", prompt),
            ("blended", "input and output", blended),
        )
    }
    day = row(
        "usd_per_day",
        "Cost per day",
        "USD/day",
        hourly * inputs.hours_per_day,
        "cost per hour × hours per day",
    )
    month = row("usd_per_month", "Cost per month", "USD/month", day * MONTH, "cost per day × days per month")
    bill = row(
        "electricity_per_day",
        "Electricity per day",
        "USD/day",
        watts / KILO * inputs.electricity_price * inputs.hours_per_day,
        "in the price where it is rented or in the cloud; in the cost of owning",
    )
    daily = row("tokens_per_day", "Output tokens per day", "token/day", output * HOUR * inputs.hours_per_day)
    per_usd = row(
        "tokens_per_usd",
        "Output tokens per USD",
        "token/USD",
        where(hourly > 0, output * HOUR / hourly, 0),
        "0 without a price",
    )
    known = row(
        "known",
        "A price is known",
        "flag",
        where(hourly > 0, 1, 0)
        if apart is None
        else where(minimum(side.power.price, decoders.power.price) > 0, 1, 0),
        "1 if so on the basis asked for",
    )
    stated = row(
        "power_known",
        "Power limits are stated",
        "flag",
        where(minimum(side.hardware.tdp, decoders.hardware.tdp) > 0, 1, 0),
        "1 if so",
    )
    sections = [Section("Assumed of machines", ASSUMED, "where nobody states the figure"), side.power.section]
    if decoders is not side:
        sections.append(decoders.power.section)
    sections += [
        Section("Tokens", (load, output, prompt, blended), "mean over the paid hours"),
        Section("Power", (stated, watts, energy, per_kwh, provided, megawatt), "in the building"),
        Section(
            "Cost",
            (hourly, *each.values(), day, month, bill, daily, per_usd, known),
            "on the price basis asked for",
        ),
    ]
    return Cost(
        watts,
        energy,
        hourly,
        each["output"],
        each["input"],
        each["blended"],
        day,
        month,
        per_usd,
        per_kwh,
        known,
        stated,
        tuple(sections),
    )


def _provided(side: Workers, decoders: Workers) -> Node:
    """W to provide for all accelerators."""
    mine = side.power.provisioned * side.ranks.replica * side.inputs.dp
    apart = side.ranks.disaggregated
    return (
        mine
        if apart is None
        else mine + apart * decoders.power.provisioned * decoders.ranks.replica * decoders.inputs.dp
    )
