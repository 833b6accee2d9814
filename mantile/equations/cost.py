"""Power and cost: of an accelerator per hour, of the whole deployment per token, hour, day and month.

USD per million tokens = USD per hour ÷ (utilisation × tokens per second × 3600) × 1e6. With a utilisation
of 1 this is the InferenceX convention.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.break_even import BreakEven, break_even
from mantile.equations.constant import DAYS, HOUR, KILO, MEGA, MONTH, RANKS_TO_ACCELERATORS
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import BASES, Ranks, Workload
from mantile.equations.offer import MOST_DAYS, offer
from mantile.equations.serving import Serving
from mantile.equations.token_cost import TokenCost, token_cost
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    defined,
    if_known,
    index,
    is_error,
    is_number,
    match,
    minimum,
    number_of,
    span,
    where,
)
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class AcceleratorCost:
    """Watts of an accelerator and USD of an hour of it; both also of all accelerators of its kind.

    A text says so where nobody states power limit or price.

    Args:
        building: W of one in the building, mean; `total` of all.
        provisioned: W to be reserved for all, host and building included.
        price: USD per accelerator and hour on the basis asked for.
        hourly: USD per hour of all.
        price_young: 1 unless the price is old.
    """

    building: Quantity
    total: Quantity
    provisioned: Quantity
    price: Quantity
    hourly: Quantity
    price_young: Quantity
    section: Section


@dataclass(frozen=True)
class Cost:
    """Headline figures: W, J per token, USD per hour and per million tokens.

    Args:
        output_per_second: output tokens, mean over the paid hours.
        known: 1 if there is a price; `power_known` if power limits are stated, `prices_young` if none is old;
            `errors` if any of these is an error.
        accelerators: of those that prefill or do everything, and of those that decode where they are others.
    """

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
    token_cost: TokenCost
    output_per_second: Quantity
    break_even: BreakEven
    known: Quantity
    power_known: Quantity
    prices_young: Quantity
    errors: Quantity
    accelerators: tuple[AcceleratorCost, ...]
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class _Tokens:
    """Mean tokens per second over the paid hours."""

    output: Quantity
    prompt: Quantity
    blended: Quantity


@dataclass(frozen=True)
class _Power:
    """Whether power limits are stated; W of all accelerators, J per output token, output tokens per kWh."""

    known: Quantity
    total: Quantity
    joules_per_output_token: Quantity
    tokens_per_kwh: Quantity


@dataclass(frozen=True)
class _Deployment:
    """Accelerators that prefill and those that decode; the same ones in a workbook without decode workers."""

    prefill: Workers
    decode: Workers
    prefill_cost: AcceleratorCost
    decode_cost: AcceleratorCost

    def sum_of(self, prefill: Node, decode: Node, *needed: Node) -> Node:
        """A figure of all accelerators from those of prefill and of decode workers.

        Args:
            needed: figures without which it is not known.
        """
        disaggregated = self.prefill.ranks.disaggregated
        both = prefill if disaggregated is None else prefill + disaggregated * decode
        return if_known(both, *dict.fromkeys(needed))


def cost(prefill_workers: Workers, decode_workers: Workers, served: Serving) -> Cost:
    """The rows of the Cost sheet."""
    names = tuple(
        defined(f"cost.basis.{name}", f"Basis {number}", "1", name, "price basis", name="bases")
        for number, name in enumerate(BASES, 1)
    )
    prefill_cost = accelerator_cost("cost", "", prefill_workers, names)
    accelerators = [prefill_cost]
    if decode_workers is not prefill_workers:
        accelerators.append(accelerator_cost("decode.cost", ", decode", decode_workers, names))
    deployment = _Deployment(prefill_workers, decode_workers, prefill_cost, accelerators[-1])
    per_second, of_power, of_cost = Rows("cost"), Rows("cost"), Rows("cost")
    mean = tokens(per_second, prefill_workers.inputs, served)
    drawn = power(of_power, deployment, mean, served)
    hourly, per_million = usd_per_million(of_cost, deployment, mean)
    day, month, per_usd = usd_per_day(of_cost, prefill_workers.inputs, drawn.total, hourly, mean)
    young = of_cost(
        "prices_young", "No price is old", "flag", minimum(*[of.price_young for of in accelerators], 1)
    )
    by_time = token_cost(
        (prefill_workers, decode_workers),
        served,
        (prefill_cost.hourly, hourly),
        (mean.prompt, mean.output),
    )
    even = break_even(hourly, mean.output, served)
    price_known = of_cost("known", "A price is known", "flag", where(is_number(hourly), 1, 0))
    results = number_of(drawn.total) * number_of(hourly) * number_of(per_million["output"])
    errors = of_cost("errors", "Errors in power and cost", "flag", where(is_error(results), 1, 0))
    return Cost(
        power=drawn.total,
        joules_per_output_token=drawn.joules_per_output_token,
        usd_per_hour=hourly,
        usd_per_million_output=per_million["output"],
        usd_per_million_input=per_million["input"],
        usd_per_million_blended=per_million["blended"],
        usd_per_day=day,
        usd_per_month=month,
        tokens_per_usd=per_usd,
        tokens_per_kwh=drawn.tokens_per_kwh,
        token_cost=by_time,
        output_per_second=mean.output,
        break_even=even,
        known=price_known,
        power_known=drawn.known,
        prices_young=young,
        errors=errors,
        accelerators=tuple(accelerators),
        sections=(
            Section("Assumed of machines", ASSUMED, "where nobody states the figure"),
            *(accelerator.section for accelerator in accelerators),
            per_second.section("Tokens", "mean over the paid hours"),
            of_power.section("Power", "in the building"),
            of_cost.section("Cost", "on the price basis asked for"),
            by_time.section,
            even.section,
        ),
    )


def accelerator_cost(prefix: str, suffix: str, workers: Workers, names: tuple[Input, ...]) -> AcceleratorCost:
    """Power and price of one accelerator, and of all of its kind.

    Args:
        names: of the price bases; they stand in the block of the first kind of accelerator.
    """
    rows = Rows(prefix, suffix)
    building, total, provisioned = draw(rows, workers.inputs, workers.ranks, workers.hardware)
    owned = own(rows, workers.inputs, workers.hardware, building)
    if not suffix:
        rows.add(*names)
    used, hourly = price(rows, workers, owned, names)
    young = offer(rows, workers.inputs, workers.hardware, used, names)
    return AcceleratorCost(
        building=building,
        total=total,
        provisioned=provisioned,
        price=used,
        hourly=hourly,
        price_young=young,
        section=rows.section(f"One accelerator{suffix}", "power and price of an hour"),
    )


def draw(
    rows: Rows, inputs: Workload, ranks: Ranks, hardware: Hardware
) -> tuple[Quantity, Quantity, Quantity]:
    """W of an accelerator in the building, of all of them, and to be reserved for all."""
    assumed = rows(
        "idle_assumed",
        "Idle power of an accelerator, assumed",
        "W",
        where(hardware.tdp > 0, IDLE_SHARE * hardware.tdp, NOT_KNOWN),
    )
    idle = rows("idle", "Idle power of an accelerator", "W", where(hardware.idle > 0, hardware.idle, assumed))
    watts = rows(
        "draw",
        "Power of an accelerator",
        "W",
        where(hardware.tdp > 0, idle + (hardware.tdp - idle) * inputs.utilisation, NOT_KNOWN),
    )
    overhead = rows(
        "overhead",
        "Machine over its accelerators in use",
        "1",
        where(
            all_of(hardware.node_power > 0, hardware.tdp > 0),
            hardware.node_power * RANKS_TO_ACCELERATORS / (hardware.system_accelerators * hardware.tdp),
            HOST_SHARE,
        ),
        "the nameplate of the machine where it is stated",
    )
    building = rows(
        "building",
        "Power of an accelerator in the building",
        "W",
        if_known(watts * overhead * inputs.pue, watts),
    )
    total = rows(
        "total_power",
        "Power of the deployment",
        "W",
        if_known(building * ranks.deployment / RANKS_TO_ACCELERATORS, building),
    )
    worked_out = rows(
        "provisioned_worked_out",
        "Power to provide, worked out",
        "W",
        where(hardware.tdp > 0, hardware.tdp * overhead * inputs.pue, NOT_KNOWN),
    )
    published = hardware.prices["provisioned_power"]
    provisioned = rows(
        "provisioned",
        "Power to provide for an accelerator",
        "W",
        where(published > 0, published, worked_out),
        "a published figure holds host and building",
    )
    of_all = rows(
        "provisioned_total",
        "Power to provide for all accelerators",
        "W",
        if_known(provisioned * ranks.deployment / RANKS_TO_ACCELERATORS, provisioned),
    )
    return building, total, of_all


def own(rows: Rows, inputs: Workload, hardware: Hardware, building: Quantity) -> Quantity:
    """USD per hour of use of an accelerator that is bought; not known without a purchase price.

    Purchase and upkeep are paid by the year, whether or not it is in use; electricity only while it is.
    """
    purchase = hardware.prices["purchase"]
    electricity = rows(
        "electricity",
        "Electricity of an accelerator",
        "USD/h",
        if_known(building / KILO * inputs.electricity_price, building),
    )
    share = rows(
        "machine_share",
        "Machine over its accelerators in the price",
        "1",
        where(hardware.whole_machine > 0, 1, CAPITAL_SHARE),
    )
    machine = rows(
        "machine",
        "Purchase price with its share of a machine",
        "USD",
        where(purchase > 0, purchase * share, NOT_KNOWN),
        "host and network included",
    )
    use = rows(
        "use_hours",
        "Hours of use in a year",
        "h/year",
        inputs.hours_per_day * DAYS,
        "what is owned costs as much while it stands still",
    )
    capital = rows(
        "capital", "Capital cost of an accelerator", "USD/h", if_known(machine / (LIFE * use), machine)
    )
    upkeep = rows("upkeep", "Upkeep of an accelerator", "USD/h", if_known(machine * UPKEEP / use, machine))
    owned = rows(
        "own",
        "Cost of owning, worked out",
        "USD/h",
        if_known(capital + upkeep + electricity, capital, electricity),
    )
    stated = hardware.prices["owned"]
    published = rows(
        "published", "Cost of owning, published", "USD/h", where(stated > 0, stated, NOT_KNOWN), "to compare"
    )
    rows(
        "own_against_published",
        "Cost of owning against the published figure",
        "1",
        if_known(owned / published, owned, published),
    )
    return owned


def price(
    rows: Rows, workers: Workers, owned: Quantity, names: tuple[Input, ...]
) -> tuple[Quantity, Quantity]:
    """USD per hour of an accelerator on the basis asked for, and of all of them."""
    prices = workers.hardware.prices

    def published(basis: str) -> Node:
        return where(prices[basis] > 0, prices[basis], NOT_KNOWN)

    by_basis = (
        rows("by.cloud", "Price of an accelerator, cloud", "USD/h", published("cloud"), "on demand"),
        rows(
            "by.rental",
            "Price of an accelerator, rental",
            "USD/h",
            published("rental"),
            "three-year contract",
        ),
        rows(
            "by.owned",
            "Price of an accelerator, owned",
            "USD/h",
            where(workers.hardware.owned_stated > 0, prices["owned"], owned),
            "a figure of one's own stands for what is worked out; a published one does not",
        ),
    )
    used = rows(
        "price",
        "Price of an accelerator",
        "USD/h",
        index(span(by_basis), match(workers.inputs.price_basis, span(names))),
    )
    hourly = rows(
        "hourly",
        "Price of the deployment",
        "USD/h",
        if_known(used * workers.ranks.deployment / RANKS_TO_ACCELERATORS, used),
    )
    return used, hourly


def tokens(rows: Rows, inputs: Workload, served: Serving) -> _Tokens:
    """Tokens per second, mean over the paid hours."""
    load = rows(
        "utilisation", "Utilisation", "1", inputs.utilisation, "every figure per token holds at this load"
    )
    output = rows(
        "output_tokens", "Output tokens per second, mean", "token/s", served.output_tokens_per_s * load
    )
    prompt = rows(
        "input_tokens",
        "Input tokens per second, mean",
        "token/s",
        served.requests_per_s * inputs.input_tokens * load,
    )
    blended = rows("all_tokens", "Input and output tokens per second, mean", "token/s", output + prompt)
    return _Tokens(output, prompt, blended)


def power(rows: Rows, deployment: _Deployment, tokens: _Tokens, served: Serving) -> _Power:
    """What all accelerators draw, and what they make of it."""
    prefill, decode = deployment.prefill, deployment.decode
    both = (deployment.prefill_cost, deployment.decode_cost)
    power_known = rows(
        "power_known",
        "Power limits are stated",
        "flag",
        where(minimum(prefill.hardware.tdp, decode.hardware.tdp) > 0, 1, 0),
    )
    watts = rows(
        "power",
        "Power in the building",
        "W",
        deployment.sum_of(*[of.total for of in both], *[of.total for of in both]),
        "mean over the paid hours",
    )
    joules = rows(
        "joules_per_output_token",
        "Energy per output token",
        "J/token",
        if_known(watts / tokens.output, watts),
    )
    per_kwh = rows(
        "tokens_per_kwh",
        "Output tokens per kWh",
        "token/kWh",
        if_known(tokens.output * HOUR * KILO / watts, watts),
    )
    provided = rows(
        "provisioned_power",
        "Power to provide for",
        "W",
        deployment.sum_of(
            *[of.provisioned for of in both],
            *[of.provisioned for of in both],
        ),
    )
    rows(
        "tokens_per_provisioned_watt",
        "Output tokens per second and provisioned watt",
        "token/s/W",
        if_known(served.output_tokens_per_s / provided, provided),
        "at full load",
    )
    return _Power(known=power_known, total=watts, joules_per_output_token=joules, tokens_per_kwh=per_kwh)


def usd_per_million(
    rows: Rows, deployment: _Deployment, tokens: _Tokens
) -> tuple[Quantity, dict[str, Quantity]]:
    """USD per hour of all accelerators, and per million tokens of each kind."""
    both = (deployment.prefill_cost.hourly, deployment.decode_cost.hourly)
    hourly = rows(
        "usd_per_hour",
        "Cost per hour",
        "USD/h",
        deployment.sum_of(*both, *both),
    )
    kinds = {"output": tokens.output, "input": tokens.prompt, "blended": tokens.blended}
    return hourly, {
        name: rows(
            f"usd_per_million_{name}",
            f"Cost per million {name} tokens",
            "USD/Mtoken",
            if_known(hourly / (per_second * HOUR) * MEGA, hourly),
            "at the utilisation above",
            source="InferenceX convention",
        )
        for name, per_second in kinds.items()
    }


def usd_per_day(
    rows: Rows, inputs: Workload, watts: Quantity, hourly: Quantity, tokens: _Tokens
) -> tuple[Quantity, Quantity, Quantity]:
    """USD per day and per month, and output tokens per USD."""
    day = rows("usd_per_day", "Cost per day", "USD/day", if_known(hourly * inputs.hours_per_day, hourly))
    month = rows("usd_per_month", "Cost per month", "USD/month", if_known(day * MONTH, day))
    rows(
        "electricity_per_day",
        "Electricity per day",
        "USD/day",
        if_known(watts / KILO * inputs.electricity_price * inputs.hours_per_day, watts),
        "part of the price, whatever its basis",
    )
    rows(
        "tokens_per_day",
        "Output tokens per day",
        "token/day",
        tokens.output * HOUR * inputs.hours_per_day,
    )
    per_usd = rows(
        "tokens_per_usd",
        "Output tokens per USD",
        "token/USD",
        if_known(tokens.output * HOUR / hourly, hourly),
    )
    return day, month, per_usd


def _assumed(
    name: str, label: str, unit: str, value: float, limits: tuple[float, float], note: str, source: str
) -> Input:
    """A figure of machines that stands in where nobody states it, and its range."""
    return Input(
        id=f"cost.{name}",
        label=label,
        unit=unit,
        value=value,
        note=note,
        source=f"assumed 2026-08: {source}",
        status="assumed",
        shared=True,
        minimum=limits[0],
        maximum=limits[1],
    )


IDLE_SHARE = _assumed(
    "idle_share",
    "Idle power, share of the limit",
    "1",
    0.15,
    (0, 1),
    "where nobody states idle power",
    "rule of thumb of secondary pages",
)
HOST_SHARE = _assumed(
    "host_share",
    "Machine over its accelerators",
    "1",
    1.8,
    (1, 5),
    "power of a machine over that of its accelerators, where nobody states it",
    "nameplates: DGX H100 1.82, DGX B200 1.79, DGX A100 2.03",
)
CAPITAL_SHARE = _assumed(
    "capital_share",
    "Machine over its accelerators, price",
    "1",
    1.6,
    (1, 5),
    "price of a machine with network over that of its accelerators",
    "8 x H100: node 300 to 350 thousand USD and 10 to 15 % for the network, against 8 x 25 to 30 thousand",
)
UPKEEP = _assumed(
    "upkeep_share",
    "Upkeep of a year, share of the purchase price",
    "1/year",
    0.08,
    (0, 1),
    "space, staff, spare parts, interest; electricity stands beside it",
    "median by which InferenceX's cost of owning is above capital and electricity here; six chips, 0 to 0.2",
)
LIFE = _assumed(
    "life",
    "Economic life",
    "year",
    4,
    (0.5, 20),
    "over which a purchase is written off",
    "InferenceX; 2 to 3 economic, 5 to 6 by the books elsewhere",
)
ASSUMED = (IDLE_SHARE, HOST_SHARE, CAPITAL_SHARE, LIFE, UPKEEP, MOST_DAYS)
