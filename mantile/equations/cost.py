"""Power and cost: of an accelerator per hour, of the whole deployment per token, hour, day and month.

Power follows the load: an accelerator draws its idle power while nothing runs, all of its limit while it is
bound by compute, and a share of what lies between while it waits for memory, links or the host. What a
machine adds to its accelerators, and a building to its machines, goes by the class of the machine.

USD per million tokens = USD per hour ÷ (utilisation × tokens per second × 3600) × 1e6. With a utilisation
of 1 this is the InferenceX convention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mantile.equations.break_even import BreakEven, break_even
from mantile.equations.constant import DAYS, HOUR, KILO, MEGA, MONTH, ONE_REQUEST, RANKS_TO_ACCELERATORS
from mantile.equations.forward import Pass
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import BASES, Ranks, Workload
from mantile.equations.offer import MOST_DAYS, offer
from mantile.equations.serving import Serving
from mantile.equations.token_cost import TokenCost, time_shares, token_cost
from mantile.equations.workers import Workers
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Node,
    Quantity,
    Section,
    all_of,
    as_node,
    defined,
    equal,
    exponential,
    if_known,
    index,
    is_error,
    is_number,
    match,
    maximum,
    minimum,
    number_of,
    span,
    sum_of,
    where,
)
from mantile.graph.rows import Rows
from mantile.library.profiles import MACHINES


@dataclass(frozen=True)
class AcceleratorCost:
    """Watts of an accelerator and USD of an hour of it; both also of all accelerators of its kind.

    A text says so where nobody states power limit or price.

    Args:
        idle: W of one in the building while nothing runs; `full` while it runs all the time.
        building: W of one in the building, mean; `total` of all.
        provisioned: W to be reserved for all, host and building included; `provisioned_one` for one.
        machine: purchase price with its share of a machine, USD.
        price: USD per accelerator and hour on the basis asked for.
        hourly: USD per hour of all.
        price_young: 1 unless the price is old.
    """

    idle: Quantity
    full: Quantity
    building: Quantity
    total: Quantity
    provisioned: Quantity
    provisioned_one: Quantity
    pue_default: Quantity
    machine: Quantity
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
        pue_default: PUE by the class of the machine that prefills, or does everything.
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
    pue_default: Quantity
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
    """All accelerators: of one kind, of prefill and of decode workers, or of devices that are not alike.

    Args:
        counted: of devices that are not alike, the ranks that hold a part of the model.
        apart: 1 where decode workers count beside those that prefill; None where there are none.
    """

    pools: tuple[Workers, ...]
    costs: tuple[AcceleratorCost, ...]
    counted: tuple[Quantity, ...]
    apart: Quantity | None

    def sum_of(self, rows: Rows, name: str, figure: Callable[[AcceleratorCost], Quantity]) -> Node:
        """A figure of all accelerators; not known where that of some is not.

        Args:
            name: what ids of the rows begin with that say it of each device, where devices are not alike.
        """
        each = [figure(of) for of in self.costs]
        if self.apart is not None:
            return if_known(each[0] + self.apart * each[-1], *dict.fromkeys((each[0], each[-1])))
        counted: list[Quantity] = [
            rows(
                f"{name}.of_device.{number}",
                f"{own.label}, counted for device {number}",
                own.unit,
                where(count > 0, own, 0),
            )
            for number, (count, own) in enumerate(zip(self.counted, each, strict=False), start=1)
        ] or each
        return if_known(sum_of(counted), *dict.fromkeys(counted))

    def pue_default(self, rows: Rows) -> Quantity:
        """PUE by the class of the machine that prefills, or of the first device that counts."""
        each = [of.pue_default for of in self.costs]
        if not self.counted:
            return each[0]
        pue = each[-1]
        for place in reversed(range(len(each) - 1)):
            label = f"PUE by the class of the first machine in use, from device {place + 1} on"
            pue = rows(f"pue_from.{place + 1}", label, "1", where(self.counted[place] > 0, each[place], pue))
        return pue

    def young(self, rows: Rows) -> Iterator[Quantity]:
        """1 for each accelerator of which the price is not old, and for a device that does not count."""
        for place, of in enumerate(self.costs):
            young, label = of.price_young, f"The price of device {place + 1} is not old, if it counts"
            if self.counted:
                body = where(self.counted[place] > 0, young, 1)
                young = rows(f"prices_young.of_device.{place + 1}", label, "flag", body)
            yield young


def cost(
    prefill_workers: Workers,
    decode_workers: Workers,
    served: Serving,
    prefill: Pass,
    decode: Pass,
    pools: tuple[Workers, ...],
) -> Cost:
    """The rows of the Cost part.

    Args:
        prefill, decode: the passes, whose limits say what accelerators draw.
        pools: all accelerators that may differ: workers, or devices that are not alike.
    """
    names = tuple(
        defined(f"cost.basis.{name}", f"Basis {number}", "1", name, "price basis", name="bases")
        for number, name in enumerate(BASES, 1)
    )
    times = time_shares(decode_workers, served)
    load = of_load(Rows("cost"), prefill_workers, decode_workers, served, times.prefill, (prefill, decode))
    if prefill_workers.inputs.devices:
        accelerators = [
            accelerator_cost(
                f"devices.{number}.cost" if number > 1 else "cost",
                f", device {number}",
                of,
                load.prefill,
                names,
            )
            for number, of in enumerate(pools, start=1)
        ]
    else:
        accelerators = [accelerator_cost("cost", "", prefill_workers, load.prefill, names)]
        if decode_workers is not prefill_workers:
            accelerators.append(
                accelerator_cost("decode.cost", ", decode", decode_workers, load.decode, names)
            )
    prefill_cost = accelerators[0]
    ranks = prefill_workers.ranks
    deployment = _Deployment(pools, tuple(accelerators), ranks.counted, ranks.disaggregated)
    per_second, of_power, of_cost = Rows("cost"), Rows("cost"), Rows("cost")
    mean = tokens(per_second, prefill_workers.inputs, served)
    drawn = power(of_power, deployment, mean, served)
    hourly, per_million = usd_per_million(of_cost, deployment, mean)
    day, month, per_usd = usd_per_day(of_cost, prefill_workers.inputs, drawn.total, hourly, mean)
    by_time = token_cost(
        prefill_workers,
        times,
        (hourly if prefill_workers.inputs.devices else prefill_cost.hourly, hourly),
        (mean.prompt, mean.output),
    )
    even = break_even(hourly, mean.output, served)
    price_known = of_cost("known", "A price is known", "flag", where(is_number(hourly), 1, 0))
    young = of_cost(
        "prices_young",
        "No price is old",
        "flag",
        where(price_known > 0, minimum(*deployment.young(of_cost), 1), 1),
        "or one is not known",
    )
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
        pue_default=deployment.pue_default(of_power),
        accelerators=tuple(accelerators),
        sections=(
            Section("Assumed of machines", ASSUMED, "where nobody states the figure"),
            times.section,
            load.section,
            *(accelerator.section for accelerator in accelerators),
            per_second.section("Tokens", "mean over the paid hours"),
            of_power.section("Power", "in the building"),
            of_cost.section("Cost", "on the price basis asked for"),
            by_time.section,
            even.section,
        ),
    )


@dataclass(frozen=True)
class _Running:
    """How hard accelerators work.

    Args:
        busy: share of the time in which something runs on them.
        active: share of the power between idle and limit that they then draw.
    """

    busy: Quantity
    active: Quantity


@dataclass(frozen=True)
class Load:
    """How hard the accelerators work that prefill, or do everything, and those that decode."""

    prefill: _Running
    decode: _Running
    section: Section


def of_load(
    rows: Rows,
    prefill_workers: Workers,
    decode_workers: Workers,
    served: Serving,
    prompts: Quantity,
    passes: tuple[Pass, Pass],
) -> Load:
    """Shares of the time in which something runs, and of the power that it draws.

    Args:
        prompts: share of prefill in the time of both phases.
        passes: prefill and decode.
    """
    names = ("prefill", "decode")
    of_prefill, of_decode = (
        rows(
            f"{name}_active",
            f"Share of its power range that {name} draws",
            "1",
            (
                of.parts["compute"]
                + POWER_OF_MEMORY * of.parts["memory"]
                + POWER_OF_REST * (of.parts["network"] + of.parts["overhead"])
            )
            / of.time,
            "by what binds: all of it where compute does",
        )
        for name, of in zip(names, passes, strict=True)
    )
    both = rows(
        "active",
        "Share of its power range that an accelerator draws while it runs",
        "1",
        prompts * of_prefill + (1 - prompts) * of_decode,
        "prefill and decode by the time they take",
    )
    load = served.load
    running: Node = as_node(1)
    inputs = prefill_workers.inputs
    if served.asked_by is not None and served.waiting is not None and inputs.sessions is not None:
        of_replica = inputs.sessions / decode_workers.inputs.dp / ONE_REQUEST
        running = rows(
            "busy_by_sessions",
            "Share of the time in which a session waits for its answer",
            "1",
            where(served.asked_by.lead > 0, 1 - (1 - served.waiting) ** of_replica, 1),
            "one at least of a replica; 1 where the load is another",
        )
    if load is not None and load.in_flight is not None:
        at_rate = 1 - exponential(-load.in_flight / load.replicas / ONE_REQUEST)
        running = where(load.open > 0, at_rate, running)
    always = rows(
        "busy",
        "Share of the time in which something runs",
        "1",
        running,
        "at a request rate, or of sessions, that at least one request is there; else requests are there all "
        "the time",
        source="requests that arrive at random and do not wait for one another",
    )
    apart = prefill_workers.ranks.disaggregated
    if apart is None:
        alone = _Running(always, both)
        return Load(alone, alone, rows.section("Load", LOAD_NOTE))
    worked = rows(
        "prefill_busy",
        "Share of the time in which prefill workers run",
        "1",
        where(
            apart > 0,
            minimum(
                1, served.requests_per_s / prefill_workers.inputs.dp * served.prefill_service / ONE_REQUEST
            ),
            always,
        ),
        "prompts that arrive, each with its time",
    )
    drawn = rows(
        "prefill_workers_active",
        "Share of its power range that a prefill worker draws",
        "1",
        where(apart > 0, of_prefill, both),
    )
    return Load(_Running(worked, drawn), _Running(always, of_decode), rows.section("Load", LOAD_NOTE))


LOAD_NOTE = "how long accelerators run, and what they then draw of the power between idle and limit"


def accelerator_cost(
    prefix: str, suffix: str, workers: Workers, running: _Running, names: tuple[Input, ...]
) -> AcceleratorCost:
    """Power and price of one accelerator, and of all of its kind.

    Args:
        running: how hard it works.
        names: of the price bases; they stand in the block of the first kind of accelerator.
    """
    rows = Rows(prefix, suffix)
    drawn = draw(rows, workers.inputs, workers.ranks, workers.hardware, running)
    owned, machine = own(rows, workers.inputs, workers.hardware, drawn.building)
    if prefix == "cost":
        rows.add(*names)
    used, hourly = price(rows, workers, owned, names)
    young = offer(rows, workers.inputs, workers.hardware, used, names)
    return AcceleratorCost(
        idle=drawn.idle,
        full=drawn.full,
        building=drawn.building,
        total=drawn.total,
        provisioned=drawn.provisioned,
        provisioned_one=drawn.provisioned_one,
        pue_default=drawn.pue,
        machine=machine,
        price=used,
        hourly=hourly,
        price_young=young,
        section=rows.section(f"One accelerator{suffix}", "power and price of an hour"),
    )


@dataclass(frozen=True)
class _Draw:
    """W of an accelerator in the building: idle, running all the time, mean; of all; to be reserved for all
    and for one.

    Args:
        pue: that of the class of machine.
    """

    idle: Quantity
    full: Quantity
    building: Quantity
    total: Quantity
    provisioned: Quantity
    provisioned_one: Quantity
    pue: Quantity


def draw(rows: Rows, inputs: Workload, ranks: Ranks, hardware: Hardware, running: _Running) -> _Draw:
    """W of an accelerator in the building, of all of them, and to be reserved for all."""
    place = rows(
        "class_place",
        "Place of the class of machine",
        "number",
        match(hardware.machine, span(CLASSES)),
        "in the assumptions above",
    )
    pue = rows(
        "pue_default",
        "PUE by the class of machine",
        "1",
        maximum(1, index(span(PUES), place)),
        "a building draws no less than what stands in it",
    )
    assumed = rows(
        "idle_assumed",
        "Idle power of an accelerator, assumed",
        "W",
        where(hardware.tdp > 0, index(span(IDLE_SHARES), place) * hardware.tdp, NOT_KNOWN),
    )
    idle = rows("idle", "Idle power of an accelerator", "W", where(hardware.idle > 0, hardware.idle, assumed))
    at_work = rows(
        "at_work",
        "Power of an accelerator while it runs",
        "W",
        where(hardware.tdp > 0, idle + (hardware.tdp - idle) * running.active, NOT_KNOWN),
    )
    watts = rows(
        "draw",
        "Power of an accelerator",
        "W",
        where(hardware.tdp > 0, idle + (at_work - idle) * running.busy * inputs.utilisation, NOT_KNOWN),
        "mean over the paid hours",
    )
    by_class = rows(
        "host_share_used", "Machine over its accelerators, by class", "1", index(span(HOST_SHARES), place)
    )
    nameplate = rows(
        "nameplate",
        "Machine over its accelerators, nameplate",
        "1",
        where(
            all_of(hardware.node_power > 0, hardware.tdp > 0),
            hardware.node_power * RANKS_TO_ACCELERATORS / (hardware.system_accelerators * hardware.tdp),
            by_class,
        ),
        "that of the class where no nameplate is stated",
    )
    overhead = rows(
        "overhead",
        "Machine over its accelerators in use",
        "1",
        where(equal(hardware.machine, SERVER), nameplate, by_class),
        "the nameplate of a server is that of its parts; that of a small machine is its power supply's",
    )
    in_building = (
        rows(name, label, "W", if_known(of * overhead * inputs.pue, of))
        for name, label, of in (
            ("building_idle", "Idle power of an accelerator in the building", idle),
            ("building_full", "Power of an accelerator in the building while it runs", at_work),
            ("building", "Power of an accelerator in the building", watts),
        )
    )
    nothing, full, building = in_building
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
        where(hardware.tdp > 0, hardware.tdp * nameplate * inputs.pue, NOT_KNOWN),
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
    return _Draw(
        idle=nothing,
        full=full,
        building=building,
        total=total,
        provisioned=of_all,
        provisioned_one=provisioned,
        pue=pue,
    )


def own(rows: Rows, inputs: Workload, hardware: Hardware, building: Quantity) -> tuple[Quantity, Quantity]:
    """USD per hour of use of an accelerator that is bought, and its purchase price with its share of a
    machine; not known without a purchase price.

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
    return owned, machine


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
    pools = deployment.pools
    limits = [of.hardware.tdp for of in (pools if len(pools) > 1 else 2 * pools)]
    power_known = rows(
        "power_known",
        "Power limits are stated",
        "flag",
        where(minimum(*limits) > 0, 1, 0),
    )
    watts = rows(
        "power",
        "Power in the building",
        "W",
        deployment.sum_of(rows, "power", lambda of: of.total),
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
        deployment.sum_of(rows, "provisioned_power", lambda of: of.provisioned),
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
    hourly = rows(
        "usd_per_hour",
        "Cost per hour",
        "USD/h",
        deployment.sum_of(rows, "usd_per_hour", lambda of: of.hourly),
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


SERVER, *_OTHERS = MACHINES
CLASSES = tuple(
    defined(
        f"cost.class.{number}", f"Class of machine {number}", "1", name, meaning, name="classes of machines"
    )
    for number, (name, meaning) in enumerate(MACHINES.items(), 1)
)


def _by_class(
    name: str,
    label: str,
    limits: tuple[float, float],
    note: str,
    figures: tuple[tuple[float, str], ...],
) -> tuple[Input, ...]:
    """A figure of each class of machine, with its source."""
    return tuple(
        _assumed(
            f"{name}{'' if of == SERVER else f'_{of}'}",
            label if of == SERVER else f"{label}, {of}",
            "1",
            value,
            limits,
            note,
            source,
        )
        for of, (value, source) in zip(MACHINES, figures, strict=True)
    )


IDLE_SHARES = _by_class(
    "idle_share",
    "Idle power, share of the limit",
    (0, 1),
    "where nobody states idle power",
    (
        (0.15, "rule of thumb of secondary pages"),
        (0.05, "20 of 350 and 450 W of cards for desktops"),
        (0.05, "8 to 13 of 115 to 295 W of whole Macs: 0.03 to 0.1"),
        (0.18, "25 of 140 W of a DGX Spark"),
    ),
)
HOST_SHARES = _by_class(
    "host_share",
    "Machine over its accelerators",
    (1, 5),
    "power of a machine over that of its accelerators, where nobody states it",
    (
        (1.8, "nameplates: DGX H100 1.82, DGX B200 1.79, DGX A100 2.03"),
        (1.3, "100 to 170 W of CPU, board, fans and loss of the supply beside a card of 350 to 575 W"),
        (1, "the limit that is stated is that of the whole machine"),
        (
            1.2,
            "between 1 and 1.7, supply over chip of a DGX Spark, which draws 60 to 90 W",
        ),
    ),
)
PUES = _by_class(
    "pue",
    "PUE where none is stated",
    (1, 5),
    "power of the building over power of its machines",
    (
        (1.3, "between 1.1 of hyperscalers and 1.56, the mean of Uptime Institute's survey of 2024"),
        (1, "it stands in a room without cooling of its own"),
        (1, "it stands in a room without cooling of its own"),
        (1, "it stands in a room without cooling of its own"),
    ),
)
POWER_OF_MEMORY = _assumed(
    "power_of_memory",
    "Power while memory binds",
    "1",
    0.4,
    (0, 1),
    "share of the power between idle and limit",
    "decode drew up to 300 W of an H200 of 700 W: 0.36 (arXiv:2605.11999, abstract); 60 to 90 W of a DGX "
    "Spark: 0.3 to 0.57",
)
POWER_OF_REST = _assumed(
    "power_of_rest",
    "Power while links or the host bind",
    "1",
    0.1,
    (0, 1),
    "share of the power between idle and limit",
    "decode drew 137 W at least of an H200 of 700 W: 0.1 (arXiv:2605.11999, abstract)",
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
ASSUMED = (
    *CLASSES,
    *IDLE_SHARES,
    *HOST_SHARES,
    *PUES,
    POWER_OF_MEMORY,
    POWER_OF_REST,
    CAPITAL_SHARE,
    LIFE,
    UPKEEP,
    MOST_DAYS,
)
"""What stands in where nobody states a figure of machines."""
