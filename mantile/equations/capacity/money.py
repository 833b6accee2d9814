"""Cash of buying, renting and an API by year, and all that is found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mantile.equations.capacity.demand import Demand, replicas_for
from mantile.equations.capacity.fixed import (
    DAY,
    FIRST_POINT,
    NOTHING,
    NUMBERS,
    OPTIONS,
    PARTS,
    POINTS,
    YEAR,
    YEARS,
)
from mantile.equations.capacity.found import Capacity
from mantile.equations.capacity.words import assumptions_of, titles_of
from mantile.equations.capacity.worth import (
    break_even,
    curves_of,
    moves_of,
    per_token,
    ranked_by,
    returns,
    spent_so_far,
)
from mantile.equations.constant import (
    DAYS,
    HALF,
    HOUR,
    KILO,
    MEGA,
    MONTH,
    RANKS_TO_ACCELERATORS,
)
from mantile.equations.cost import Cost
from mantile.equations.inputs import Ranks, Workload
from mantile.equations.serving import Serving
from mantile.graph.quantity import (
    NOT_KNOWN,
    Input,
    Named,
    Node,
    Quantity,
    Section,
    as_node,
    defined,
    if_known,
    maximum,
    span,
    sum_of,
    sum_range,
    where,
)
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class Money:
    """What makes the cash of each option."""

    cells: Mapping[str, Input]
    units: Node
    inputs: Workload
    ranks: tuple[Ranks, Ranks]
    served: Serving
    cost: Cost
    rate: Quantity
    demand: Demand
    profile: Input
    shares: tuple[Input, ...]
    binds: Quantity

    def worked_out(self, before: tuple[Section, ...]) -> Capacity:
        cells, rate, demand = self.cells, self.rate, self.demand
        prices = Rows("capacity")
        one = self._one(prices)
        sections = [*before, prices.section("Prices and power", "")]
        by_year: dict[str, list[Quantity]] = {}
        for year in range(1, YEARS + 1):
            rows = Rows(f"capacity.year.{year}")
            self._year(rows, year, one, by_year)
            sections.append(rows.section(f"Year {year}", "0 beyond the years asked for"))
        cash_rows = Rows("capacity")
        cash = self._cash(cash_rows, one, by_year)
        sections.append(cash_rows.section("Cash", "out is negative; start, then the end of each year"))
        of_years = Rows("capacity")
        discount = tuple(
            of_years(
                f"discount.{year}",
                f"Worth today of a USD {'at the start' if not year else f'after year {year}'}",
                "1",
                (1 + cells["discount_rate"]) ** -NUMBERS[year],
            )
            for year in range(YEARS + 1)
        )
        options = {
            option: self._worth_by_year(
                of_years, f"npv.{option}", f"Cash, {OPTIONS[option]}", flows, discount
            )
            for option, flows in cash.items()
        }
        spent = {
            name: self._worth_by_year(of_years, f"worth.{name}", label, by_year[name], discount[1:])
            for name, label in PARTS.items()
        }
        sections.append(of_years.section("Worth today", "of each year: what is paid later is worth less"))
        ends = Rows("capacity")
        npv = {
            option: self._worth(ends, f"npv.{option}", f"NPV, {OPTIONS[option]}", flows)
            for option, flows in options.items()
        }
        saving = ends(
            "saving",
            "What buying saves against renting",
            "USD",
            if_known(npv["buy"] - npv["rent"], npv["buy"], npv["rent"]),
            "today's worth; negative where renting is cheaper",
        )
        parts = {
            name: self._worth(ends, f"worth.{name}", f"{label}, worth today", spent[name])
            for name, label in PARTS.items()
        }
        even = break_even(ends, demand.utilisation_mean, npv, parts)
        moves = moves_of(ends, cells["swing"], npv, parts)
        sections.append(ends.section("NPV, break-even and what moves it", "of the years asked for"))
        told = Rows("capacity")
        ahead, returned = returns(told, cash)
        spent_by = spent_so_far(told, cash)
        sections.append(
            told.section(
                "Bought, ahead of rent", "cash of buying less that of renting, and what each option has spent"
            )
        )
        told = Rows("capacity")
        price = per_token(told, self.inputs, npv, by_year["output"], discount[1:])
        sections.append(told.section("Price of a million tokens", "of the years, all worth today"))
        used_at = tuple(
            defined(
                f"capacity.use.{place}",
                f"Mean utilisation, {place} of {POINTS}",
                "1",
                place / POINTS,
                "a point of the curves",
                name=f"{place} of {POINTS}",
            )
            for place in range(FIRST_POINT, POINTS + 1)
        )
        told = Rows("capacity")
        curves = curves_of(told, demand.utilisation_mean, used_at, price, npv, parts)
        sections += [
            Section("Utilisations", used_at, "where the curves of break-even have a point"),
            told.section("Curves of break-even", "USD per million output tokens over the mean utilisation"),
        ]
        told = Rows("capacity")
        ranked = ranked_by(told, moves)
        wide = told("ranked_room", "Room of the chart", "USD", ranked[0].better + ranked[0].better * HALF)
        room = (wide, told("ranked_room_worse", "Room on the other side", "USD", -wide))
        sections.append(told.section("What moves the saving most", "the largest first"))
        in_words = Rows("capacity")
        titles = titles_of(Rows("capacity"), in_words, cells, demand, self.binds, saving, even, returned)
        return Capacity(
            rate=rate,
            replicas=tuple(by_year["replicas"]),
            peak=tuple(by_year["peak"]),
            spares=cells["spares"],
            hours=demand.hours,
            mean=demand.mean,
            utilisation_peak=demand.utilisation_peak,
            utilisation_mean=demand.utilisation_mean,
            cash=cash,
            npv=npv,
            saving=saving,
            break_even=even,
            moves=moves,
            in_service=demand.in_service,
            carried=demand.carried,
            cells=cells,
            parts={name: tuple(figures) for name, figures in by_year.items()},
            titles=titles,
            told=in_words.quantities(),
            profile=self.profile,
            shares=self.shares,
            binds=self.binds,
            ahead=ahead,
            spent=spent_by,
            years=NUMBERS,
            returned=returned,
            price=price,
            use=used_at,
            curves=curves,
            ranked=ranked,
            room=room,
            assumptions=assumptions_of(cells, rate, self.binds, self.profile, one),
            sections=tuple(sections),
        )

    def _worth_by_year(
        self, rows: Rows, name: str, label: str, flows: Sequence[Named], discount: Sequence[Quantity]
    ) -> list[Quantity]:
        """What is paid at the start or in a year, worth today; one below the other."""
        first = YEARS + 1 - len(flows)
        return [
            rows(
                f"{name}.{year}",
                f"{label}, worth today, {f'year {year}' if year else 'start'}",
                "USD",
                if_known(flow * of, flow),
            )
            for year, (flow, of) in enumerate(zip(flows, discount, strict=True), first)
        ]

    def _worth(self, rows: Rows, name: str, label: str, by_year: Sequence[Quantity]) -> Quantity:
        """Their sum. What is not known in the last year is not known in any but at the start."""
        return rows(name, label, "USD", if_known(sum_range(span(by_year)), by_year[0], by_year[-1]))

    def _one(self, rows: Rows) -> dict[str, Quantity]:
        """What an accelerator or a replica costs and draws.

        Prefill and decode workers of their own each count with their own watts and price.
        """
        cells = self.cells
        count = rows(
            "accelerators", "Accelerators of a replica", "accelerator", self.served.accelerators / self.units
        )
        counts = self._counts(rows, count)

        def of_replica(figures: Sequence[Quantity]) -> Node:
            return sum_of([of * number for of, number in zip(figures, counts, strict=True)])

        def watts(name: str, label: str, figures: Sequence[Quantity]) -> Quantity:
            return rows(name, label, "W", if_known(of_replica(figures) / RANKS_TO_ACCELERATORS, *figures))

        kinds = self.cost.accelerators
        machines = [kind.machine for kind in kinds]
        library = rows(
            "machine_library",
            "Purchase price of an accelerator with host and network, of the library",
            "USD/accelerator",
            if_known(of_replica(machines) / RANKS_TO_ACCELERATORS / count, *machines),
            "mean of prefill and decode workers where these are others",
        )
        price = rows(
            "machine",
            "Purchase price of an accelerator with host and network",
            "USD/accelerator",
            where(cells["purchase"] > 0, cells["purchase"] + cells["hosts"] + cells["network"], library),
            "of the library where none is typed",
        )
        paid = rows(
            "rent_library",
            "Rent of an accelerator on the price basis of the scenario",
            "USD/h/accelerator",
            if_known(self.cost.usd_per_hour / self.served.accelerators, self.cost.usd_per_hour),
            "mean of all accelerators",
        )
        rent = rows(
            "rent_used",
            "Rent of an accelerator",
            "USD/h/accelerator",
            where(cells["rent"] > 0, cells["rent"], paid),
            "on the price basis of the scenario where none is typed",
        )
        idle = watts("idle", "Power of a replica while nothing runs", [kind.idle for kind in kinds])
        full = watts("full", "Power of a replica while it runs", [kind.full for kind in kinds])
        provided = watts(
            "provided", "Power to provide for a replica", [kind.provisioned_one for kind in kinds]
        )
        hours = rows("year_hours", "Hours of a year", "h", DAY * DAYS * YEAR)
        return {
            "count": count,
            "price": price,
            "rent": rent,
            "idle": idle,
            "full": full,
            "provided": provided,
            "hours": hours,
            "seconds": rows("year_seconds", "Seconds of a year", "s", hours * HOUR),
            "electricity": rows(
                "year_watt", "Electricity of a watt all year", "USD/W", hours * cells["electricity"] / KILO
            ),
            "colocation": rows(
                "year_provided",
                "Colocation of a watt all year",
                "USD/W",
                cells["colocation"] / KILO * (DAYS / MONTH) * YEAR,
            ),
        }

    def _counts(self, rows: Rows, count: Quantity) -> list[Quantity]:
        """Accelerators of a replica: all of them, or those that prefill and those of decode workers."""
        apart = self.ranks[0].disaggregated
        if apart is None or len(self.cost.accelerators) == 1:
            return [count]
        first, last = (ranks.deployment / self.units for ranks in self.ranks)
        return [
            rows("accelerators_prefill", "Accelerators of a replica, prefill workers", "accelerator", first),
            rows(
                "accelerators_decode",
                "Accelerators of a replica, decode workers",
                "accelerator",
                apart * last,
            ),
        ]

    def _year(
        self, rows: Rows, year: int, one: Mapping[str, Quantity], by_year: dict[str, list[Quantity]]
    ) -> None:
        """A year: demand, replicas, and what each option pays in it."""
        cells, number = self.cells, NUMBERS[year]

        def row(name: str, label: str, unit: str, body: Node, *needed: Node) -> Quantity:
            told = if_known(body, *needed) if needed else body
            made = rows(name, f"{label}, year {year}", unit, told)
            by_year.setdefault(name, []).append(made)
            return made

        on = row("asked", "The year counts", "flag", where(number <= cells["years"], 1, 0))
        row("last", "The year is the last", "flag", where(cells["years"] <= number, on, 0))
        grown = row("growth", "Demand against the first year", "1", (1 + cells["growth"]) ** (number - 1))
        peak = row("peak", "Requests per second at the peak", "request/s", self.demand.peak * grown)
        replicas = row(
            "replicas", "Replicas, with spares", "replica", replicas_for(peak, self.rate, cells), self.rate
        )
        used = row(
            "utilisation",
            "Utilisation",
            "1",
            self.demand.mean * grown / (replicas * self.rate),
            replicas,
        )
        chips = row("accelerators", "Accelerators", "accelerator", replicas * one["count"] * on, replicas)
        before = by_year["owned"][-1] if year > 1 else None
        owned = row(
            "owned",
            "Accelerators bought so far",
            "accelerator",
            chips if before is None else maximum(before, chips),
            *([chips] if before is None else [before, chips]),
        )
        requests = row("requests", "Requests", "request", self.demand.mean * grown * one["seconds"] * on)
        tokens = row("output", "Output tokens", "Mtoken", requests * self.inputs.output_tokens / MEGA)
        prompts = row("input", "Input tokens", "Mtoken", requests * self.inputs.input_tokens / MEGA)
        idle = row(
            "energy_idle",
            "Electricity while nothing runs",
            "USD",
            -(replicas * one["idle"] * one["electricity"] * on),
            replicas,
            one["idle"],
        )
        load = row(
            "energy_load",
            "Electricity that follows load",
            "USD",
            -(replicas * (one["full"] - one["idle"]) * used * one["electricity"] * on),
            replicas,
            one["idle"],
        )
        energy = row("energy", "Electricity", "USD", idle + load, idle, load)
        housed = row(
            "colocation",
            "Colocation",
            "USD",
            -(replicas * one["provided"] * one["colocation"] * on),
            replicas,
            one["provided"],
        )
        staff = row("staff", "Staff", "USD", -(cells["staff"] * YEAR * on))
        upkeep = row(
            "upkeep",
            "Upkeep",
            "USD",
            -(owned * one["price"] * cells["upkeep"] * YEAR * on),
            owned,
            one["price"],
        )
        row(
            "running",
            "Running costs of what is bought",
            "USD",
            energy + housed + staff + upkeep,
            energy,
            housed,
            upkeep,
        )
        row(
            "rent",
            "Rent of accelerators",
            "USD",
            -(chips * one["rent"] * one["hours"]),
            chips,
            one["rent"],
        )
        row(
            "depreciation",
            "Depreciation, no cash",
            "USD",
            -(owned * one["price"] * (1 - cells["residual"]) / cells["years"] * on),
            owned,
            one["price"],
        )
        row("staff_rented", "Staff where rented", "USD", -(cells["staff_rented"] * YEAR * on))
        row(
            "api",
            "API",
            "USD",
            where(
                cells["api_output"] > 0,
                -(tokens * cells["api_output"] + prompts * cells["api_input"]),
                NOT_KNOWN,
            ),
        )

    def _cash(
        self, rows: Rows, one: Mapping[str, Quantity], by_year: dict[str, list[Quantity]]
    ) -> dict[str, tuple[Named, ...]]:
        """Cash of each option at the start and at the end of each year.

        What is bought from the start on, and what it is worth in the end, join `by_year`.
        """
        owned, price = by_year["owned"], one["price"]
        bought = [
            rows(
                f"bought.{year}",
                f"Accelerators bought, {'start' if not year else f'end of year {year}'}",
                "USD",
                if_known(
                    -((owned[year] - (owned[year - 1] if year else as_node(0))) * price), owned[year], price
                )
                if year
                else if_known(-(owned[0] * price), owned[0], price),
            )
            for year in range(YEARS)
        ]
        whole = rows(
            "residual",
            "Residual value",
            "USD",
            if_known(owned[-1] * price * self.cells["residual"], owned[-1], price),
        )
        left = [
            rows(
                f"residual.{year}",
                f"Residual value, year {year}",
                "USD",
                if_known(whole * last, whole),
                "in the last year that is asked for",
            )
            for year, last in enumerate(by_year["last"], 1)
        ]
        buy: list[Named] = [bought[0]]
        rent: list[Named] = [NOTHING]
        api: list[Named] = [NOTHING]
        for year in range(1, YEARS + 1):
            at = {name: figures[year - 1] for name, figures in by_year.items()}
            later = [bought[year]] if year < YEARS else []
            buy.append(
                rows(
                    f"cash.buy.{year}",
                    f"Cash, buy, year {year}",
                    "USD",
                    if_known(sum_of([at["running"], *later, left[year - 1]]), at["running"], whole),
                )
            )
            rent.append(
                rows(
                    f"cash.rent.{year}",
                    f"Cash, rent, year {year}",
                    "USD",
                    if_known(at["rent"] + at["staff_rented"], at["rent"]),
                )
            )
            api.append(at["api"])
        by_year |= {"bought": bought, "residual": left}
        return {"buy": tuple(buy), "rent": tuple(rent), "api": tuple(api)}
