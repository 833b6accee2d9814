# How many replicas a demand needs, and what it costs to buy, to rent, or to call an API. Demand follows the
# hours of a day; replicas carry its peak, with spares. Each year is a column of the life of the purchase:
# cash out is negative, a purchase stands at the start of the year that needs it, all else at the end of its
# year.

define in_percent(x) = where(is_number(x), percent(number_of(x), 0), x)
define in_whole(x) = where(is_number(x), text(number_of(x)), 'not known')
define in_hundredths(x) = where(is_number(x), rounded(number_of(x), 2), 'not known')
define replicas_for(requests) = round_up(requests / (rate * asked.busiest) * (1 - checks.tolerance))
define of_replica(one) = if_known(one * accelerators / accelerators_per_rank, one)
define of_workers(one, other) = one * accelerators_prefill + other * accelerators_decode
define of_all_workers(one, other) = if_known(of_workers(one, other) / accelerators_per_rank, one, other)
define clear(share) = choose(1 + where(is_number(share), 1, 0) + where(all(number_of(share) > 0,
  number_of(share) <= 1), 1, 0), 'not known', 'no break-even', share)
define worth(factor, late) = ((late * factor + flow.2) * factor + flow.1) * factor + flow.0
define worth_late(factor) = (flow.5 * factor + flow.4) * factor + flow.3

when capacity

[capacity] Demand and money | what is asked; typed on Capacity
asked.* without asked.profile
whole       Share of the busiest hour (100) [1] := 100 ; 100 is the peak
day         Hours of a day (24 h a day) [h/day] := 24 ; definition
hourly      One share an hour (1 h) [h/day] := 1 ; shares stand for hours
one_year    One year [year] := 1 ; turns what is paid by the year into an amount
thousand    Thousand (1000) [1] := 1000 ; definition
million     A million USD (1,000,000 USD) [USD] := 1000000 ; definition
dollar      One USD (1 USD) [USD] := 1 ; the least that a cost is divided by
nothing     Cash at the start, rent and API [USD] := 0 ; nothing is paid in advance
little      Least tokens (1e-9) [Mtoken] := 1e-9 ; the least that is divided by
for year in 0..5
number.{year}  Year {year} (year {year}) [number] := {year} ; its number

[capacity] Profiles | that demand may follow
profile.*

for n | name in 1 | office day; 2 | evening; 3 | flat
[capacity] Profile {name} | 100 is the peak
profile.{n}.*

[capacity] Profile of the demand | as chosen
profile_place  Which profile is chosen [number] = match(asked.profile, [profile.*])
for h in 0..23
hour.{h}.usual  Demand at {h} h by the profile [1]
            = choose(profile_place, profile.1.{h}, profile.2.{h}, profile.3.{h}, whole)

[capacity] Demand by hour | share of the busiest hour; of the profile until typed over
hour.*.share

[capacity] One replica | what the scenario sustains, and so what a replica carries
units       Replicas of the scenario [replica] = inputs.dp / 1 ; with workers apart all of them are one
for name | of | limit | found in ttft | TTFT, mean | inputs.ttft_limit | serving.ttft;
  tpot | TPOT | inputs.tpot_limit | serving.tpot; e2e | end to end, mean | inputs.e2e_limit | serving.e2e;
  ttft_p95 | TTFT, p95 | asked.ttft_p95 | serving.ttft_p95;
  tpot_asked | TPOT of the demand | asked.tpot | serving.tpot;
  e2e_p95 | end to end, p95 | asked.e2e_p95 | serving.e2e_p95
missed.{name}  Limit of {of}, missed at the load of the scenario [flag]
            = where(all({limit} > 0, {found} > {limit}), 1, 0)

missed      Limits missed at the load of the scenario [number] = sum([missed.*])
missed_first  The first of them [number] = where(missed > 0, match(1, [missed.*]), 1) ; in their order
rate_kept   Requests per second of a replica at the concurrency [request/s]
            = where(missed > 0, 0, serving.requests_per_s / units)
            ; so many requests are kept in flight; 0 where a limit is missed
when request_rate
bound.saturation  What may bind: saturation [1] := 'saturation' ; in words

for name | of in ttft | TTFT, mean; tpot | TPOT; e2e | end to end, mean; ttft_p95 | TTFT, p95;
  tpot_asked | TPOT of the demand; e2e_p95 | end to end, p95
limit.{name}  What may bind: limit of {of} [1] := 'the limit of {of}' ; in words

binds_kept  What keeps a replica from more, at the concurrency [1]
            = where(missed > 0, index([limit.*], missed_first), 'the concurrency of the scenario')
when request_rate
rate_most   Requests per second of a replica at the largest load [request/s]
            = where(load.utilisation > 0, inputs.request_rate / max(checks.tolerance, load.utilisation) *
            most_load / units, 0)
rate_own    Requests per second of a replica in the scenario [request/s] = load.rate
prompt_load  Requests per second that would fill the time with prompts [request/s]
            = where(load.prompts > 0, rate_own / max(smallest, load.prompts), rate_most)
work        Time a request adds to the steps of others [s]
            = load.delay + inputs.output_tokens / emitted * slope_used
ttft_room   Wait that the limit of mean TTFT leaves [s] = max(0, inputs.ttft_limit - serving.ttft + load.wait)
            ; all else of TTFT as at the rate of the scenario

when request_rate
for name | of | limit in tpot | TPOT | inputs.tpot_limit; tpot_asked | TPOT of the demand | asked.tpot
{name}_room  Share of time that the limit of {of} leaves to requests [1]
            = max(0, 1 - fixed_used / max(smallest, {limit})) ; what a step takes without any is fixed
solved.{name}  Requests per second at which {of} reaches its limit [request/s]
            = {name}_room / max(smallest, work) * one_request

# TTFT is lognormal, with mean and variance of the wait behind prompts and of the rest, which stays. The wait
# at which its p95 reaches the limit is found by halves, from below: it never comes to more than that.
when request_rate
p95_rest    TTFT but for waits behind prompts [s] = serving.ttft_steady * (1 - serving.wait_rest)
p95_varies  Variance of TTFT but for these waits [1]
            = (serving.ttft_variance - serving.wait_rest * (serving.wait_rest + serving.wait_varies)) *
            serving.ttft_steady * serving.ttft_steady ; square seconds
p95_wait_varies  What these waits vary by [s] = serving.wait_varies * serving.ttft_steady
p95_room    Longest wait within the limit [s] = max(0, asked.ttft_p95 - p95_rest)
over capacity.p95_tried.1 = p95_room * half**1
over capacity.p95_wait.1 = where(p95_found.1 <= asked.ttft_p95, p95_tried.1, 0)

when request_rate
for n in 1..12
p95_tried.{n}  Wait that is tried, step {n} [s] = p95_wait.{n-1} + p95_room * half**{n}
p95_spread.{n}  Mean square of TTFT against its squared mean, step {n} [1]
            = 1 + (p95_varies + p95_tried.{n} * (p95_tried.{n} + p95_wait_varies)) / ((p95_rest +
            p95_tried.{n}) * (p95_rest + p95_tried.{n}))
p95_found.{n}  TTFT, p95, step {n} [s]
            = (p95_rest + p95_tried.{n}) * exp(at_p95 * ln(p95_spread.{n})**half) / p95_spread.{n}**half
p95_wait.{n}  Wait within the limit, step {n} [s]
            = where(p95_found.{n} <= asked.ttft_p95, p95_tried.{n}, p95_wait.{n-1})

when request_rate
solved.ttft  Requests per second at which TTFT, mean reaches its limit [request/s]
            = ttft_room / (ttft_room + half * (load.occupied * spread.waits)) * prompt_load
solved.ttft_p95  Requests per second at which TTFT, p95 reaches its limit [request/s]
            = p95_wait.12 / max(smallest, p95_wait.12 + half * (load.occupied * spread.waits)) * prompt_load

when request_rate
for name | of in e2e | end to end, mean; e2e_p95 | end to end, p95
solved.{name}  Requests per second at which {of} reaches its limit [request/s]
            = where(missed.{name} > 0, 0, rate_own) ; end to end: the rate of the scenario, where it is known

when request_rate
rate_within.saturation  Requests per second of a replica, short of saturation [request/s] = rate_most
            ; beyond that load waits are far longer than closed forms say
for name | of | limit in ttft | TTFT, mean | inputs.ttft_limit; tpot | TPOT | inputs.tpot_limit;
  e2e | end to end, mean | inputs.e2e_limit; ttft_p95 | TTFT, p95 | asked.ttft_p95;
  tpot_asked | TPOT of the demand | asked.tpot; e2e_p95 | end to end, p95 | asked.e2e_p95
rate_within.{name}  Requests per second within the limit of {of} [request/s]
            = where({limit} > 0, min(rate_within.saturation, solved.{name}), rate_within.saturation)

when request_rate
rate_lowest  The lowest of these rates [request/s] = least([rate_within.*])
rate_lowest_of  Which of them it is [number] = match(rate_lowest, [rate_within.*])
binds_rate  What keeps a replica from more, at a rate [1] = index([bound.saturation, limit.*], rate_lowest_of)
over capacity.rate_within = where(load.open > 0, rate_lowest, it)
over capacity.binds_within = where(load.open > 0, binds_rate, it)

rate_within  Requests per second of a replica within limits [request/s] = rate_kept
rate        Requests per second that a replica carries [request/s]
            = where(all(checks.possible > 0, rate_within > 0), rate_within, 'not known')
            ; not known where the scenario misses its own limits or cannot be
binds_within  What keeps a replica from more, of a plan that can be [1] = binds_kept
binds       What keeps a replica from more [1]
            = where(checks.possible > 0, binds_within, 'a plan that cannot be')

[capacity] Demand | of the first year
mean_share  Mean share of the day [1] = sum([hour.*.share]) / (day / hourly)
busiest_of_day  Requests per second at a share of 100, of requests a day [request/s]
            = asked.requests_per_day / day / seconds_per_hour * whole / max(checks.tolerance, mean_share)
busiest_hour  Requests per second at a share of 100 [request/s]
            = where(asked.requests_per_day > 0, busiest_of_day, asked.users * asked.requests_per_user /
            seconds_per_hour) ; of requests a day where they are stated, else of users
mean        Requests per second, mean of the day [request/s] = busiest_hour * mean_share / whole
peak        Requests per second at the peak [request/s]
            = busiest_hour * max([hour.*.share]) / whole * asked.peak_factor
            ; busiest minutes of the busiest hour
in_service  Replicas in service [replica] = if_known(replicas_for(peak) + asked.spares, rate)
            ; spares included

[capacity] Requests by hour | requests per second
for h in 0..23
hour.{h}.requests  Requests per second at {h} h [request/s] = busiest_hour * hour.{h}.share / whole

[capacity] Replicas needed by hour | without spares
for h in 0..23
hour.{h}.needed  Replicas needed at {h} h [replica]
            = if_known(replicas_for(hour.{h}.requests * asked.peak_factor), rate)

[capacity] Busiest hours | hours that need the most replicas
needed_most  Most replicas needed in an hour [replica] = max(0, [hour.*.needed])
for h in 0..23
hour.{h}.busy  Requests per second at {h} h, if it needs the most [request/s]
            = where(number_of(hour.{h}.needed) >= needed_most, hour.{h}.requests, 0)

for h in 0..23
hour.{h}.calm  Requests per second at {h} h, if fewer do [request/s] = hour.{h}.requests - hour.{h}.busy

[capacity] Utilisation by hour | spares count
for h in 0..23
hour.{h}.utilisation  Utilisation at {h} h [1] = if_known(hour.{h}.requests / (in_service * rate), rate)

utilisation_peak  Utilisation at the peak [1] = if_known(peak / (in_service * rate), rate)
utilisation_mean  Utilisation, mean of the day [1] = if_known(mean / (in_service * rate), rate)
carried     Requests per second that all replicas carry [request/s] = if_known(in_service * rate, rate)
carried_without_spares  Requests per second that replicas carry without the spares [request/s]
            = if_known((in_service - asked.spares) * rate, rate)

[capacity] Prices and power
accelerators  Accelerators of a replica [accelerator] = serving.accelerators / units
when disaggregated
accelerators_prefill  Accelerators of a replica, prefill workers [accelerator] = plan.accelerators / units
accelerators_decode  Accelerators of a replica, decode workers [accelerator]
            = inputs.disaggregated * (decode.plan.accelerators / units)
over capacity.units = where(inputs.disaggregated > 0, 1, it)
over capacity.machine_library
            = if_known(of_workers(cost.machine, decode.cost.machine) / accelerators_per_rank / accelerators,
            cost.machine, decode.cost.machine)
over capacity.idle = of_all_workers(cost.building_idle, decode.cost.building_idle)
over capacity.full = of_all_workers(cost.building_full, decode.cost.building_full)
over capacity.provided = of_all_workers(cost.provisioned, decode.cost.provisioned)

when devices
over capacity.machine_library
            = if_known(sum(cost.counted_machine, *[devices.*.cost.counted_machine]) / serving.accelerators,
            cost.counted_machine, *[devices.*.cost.counted_machine])
over capacity.idle
            = if_known(sum(cost.counted_idle, *[devices.*.cost.counted_idle]) / units, cost.counted_idle,
            *[devices.*.cost.counted_idle])
over capacity.full
            = if_known(sum(cost.counted_full, *[devices.*.cost.counted_full]) / units, cost.counted_full,
            *[devices.*.cost.counted_full])
over capacity.provided
            = if_known(sum(cost.counted_provisioned, *[devices.*.cost.counted_provisioned]) / units,
            cost.counted_provisioned, *[devices.*.cost.counted_provisioned])

machine_library  Purchase price of an accelerator with host and network, of the library [USD/accelerator]
            = if_known(cost.machine * accelerators / accelerators_per_rank / accelerators, cost.machine)
            ; mean of prefill and decode workers where these are others
machine     Purchase price of an accelerator with host and network [USD/accelerator]
            = where(asked.purchase > 0, asked.purchase + asked.hosts + asked.network, machine_library)
            ; of the library where none is typed
rent_library  Rent of an accelerator on the price basis of the scenario [USD/h/accelerator]
            = if_known(cost.usd_per_hour / serving.accelerators, cost.usd_per_hour) ; mean of all accelerators
rent_used   Rent of an accelerator [USD/h/accelerator] = where(asked.rent > 0, asked.rent, rent_library)
            ; on the price basis of the scenario where none is typed
idle        Power of a replica while nothing runs [W] = of_replica(cost.building_idle)
full        Power of a replica while it runs [W] = of_replica(cost.building_full)
provided    Power to provide for a replica [W] = of_replica(cost.provisioned)
year_hours  Hours of a year [h] = day * days_per_year * one_year
year_seconds  Seconds of a year [s] = year_hours * seconds_per_hour
year_watt   Electricity of a watt all year [USD/W] = year_hours * asked.electricity / watts_per_kilowatt
year_provided  Colocation of a watt all year [USD/W]
            = asked.colocation / watts_per_kilowatt * (days_per_year / days_per_month) * one_year

for y in 1..5
[capacity] Year {y} | 0 beyond the years asked for
year.{y}.asked  The year counts, year {y} [flag] = where(number.{y} <= asked.years, 1, 0)
year.{y}.last  The year is the last, year {y} [flag] = where(asked.years <= number.{y}, year.{y}.asked, 0)
year.{y}.growth  Demand against the first year, year {y} [1] = (1 + asked.growth)**(number.{y} - 1)
year.{y}.peak  Requests per second at the peak, year {y} [request/s] = peak * year.{y}.growth
year.{y}.replicas  Replicas, with spares, year {y} [replica]
            = if_known(replicas_for(year.{y}.peak) + asked.spares, rate)
year.{y}.utilisation  Utilisation, year {y} [1]
            = if_known(mean * year.{y}.growth / (year.{y}.replicas * rate), year.{y}.replicas)
year.{y}.accelerators  Accelerators, year {y} [accelerator]
            = if_known(year.{y}.replicas * accelerators * year.{y}.asked, year.{y}.replicas)
year.{y}.owned  Accelerators bought so far, year {y} [accelerator]
            = if_known(max(year.{y-1}.owned, year.{y}.accelerators), year.{y-1}.owned, year.{y}.accelerators)
year.{y}.requests  Requests, year {y} [request] = mean * year.{y}.growth * year_seconds * year.{y}.asked
year.{y}.output  Output tokens, year {y} [Mtoken]
            = year.{y}.requests * inputs.output_tokens / tokens_per_million
year.{y}.input  Input tokens, year {y} [Mtoken] = year.{y}.requests * inputs.input_tokens / tokens_per_million
year.{y}.energy_idle  Electricity while nothing runs, year {y} [USD]
            = if_known(-(year.{y}.replicas * idle * year_watt * year.{y}.asked), year.{y}.replicas, idle)
year.{y}.energy_load  Electricity that follows load, year {y} [USD]
            = if_known(-(year.{y}.replicas * (full - idle) * year.{y}.utilisation * year_watt *
            year.{y}.asked), year.{y}.replicas, idle)
year.{y}.energy  Electricity, year {y} [USD]
            = if_known(year.{y}.energy_idle + year.{y}.energy_load, year.{y}.energy_idle,
            year.{y}.energy_load)
year.{y}.colocation  Colocation, year {y} [USD]
            = if_known(-(year.{y}.replicas * provided * year_provided * year.{y}.asked), year.{y}.replicas,
            provided)
year.{y}.staff  Staff, year {y} [USD] = -(asked.staff * one_year * year.{y}.asked)
year.{y}.upkeep  Upkeep, year {y} [USD]
            = if_known(-(year.{y}.owned * machine * asked.upkeep * one_year * year.{y}.asked), year.{y}.owned,
            machine)
year.{y}.running  Running costs of what is bought, year {y} [USD]
            = if_known(year.{y}.energy + year.{y}.colocation + year.{y}.staff + year.{y}.upkeep,
            year.{y}.energy, year.{y}.colocation, year.{y}.upkeep)
year.{y}.rent  Rent of accelerators, year {y} [USD]
            = if_known(-(year.{y}.accelerators * rent_used * year_hours), year.{y}.accelerators, rent_used)
year.{y}.depreciation  Depreciation, no cash, year {y} [USD]
            = if_known(-(year.{y}.owned * machine * (1 - asked.residual) / asked.years * year.{y}.asked),
            year.{y}.owned, machine)
year.{y}.staff_rented  Staff where rented, year {y} [USD] = -(asked.staff_rented * one_year * year.{y}.asked)
year.{y}.api  API, year {y} [USD]
            = where(asked.api_output > 0, -(year.{y}.output * asked.api_output + year.{y}.input *
            asked.api_input), 'not known')

[capacity] Cash | out is negative; start, then the end of each year
over capacity.year.1.owned = if_known(year.1.accelerators, year.1.accelerators)
bought.0    Accelerators bought, start [USD] = if_known(-(year.1.owned * machine), year.1.owned, machine)
for y in 1..4
bought.{y}  Accelerators bought, end of year {y} [USD]
            = if_known(-((year.{y+1}.owned - year.{y}.owned) * machine), year.{y+1}.owned, machine)

residual    Residual value [USD] = if_known(year.5.owned * machine * asked.residual, year.5.owned, machine)
for y in 1..5
residual.{y}  Residual value, year {y} [USD] = if_known(residual * year.{y}.last, residual)
            ; in the last year that is asked for

for y in 1..4
cash.buy.{y}  Cash, buy, year {y} [USD]
            = if_known(year.{y}.running + bought.{y} + residual.{y}, year.{y}.running, residual)
cash.rent.{y}  Cash, rent, year {y} [USD] = if_known(year.{y}.rent + year.{y}.staff_rented, year.{y}.rent)

cash.buy.5  Cash, buy, year 5 [USD] = if_known(year.5.running + residual.5, year.5.running, residual)
cash.rent.5  Cash, rent, year 5 [USD] = if_known(year.5.rent + year.5.staff_rented, year.5.rent)

[capacity] Worth today | of each year: what is paid later is worth less
discount.0  Worth today of a USD at the start [1] = (1 + asked.discount_rate)**(-number.0)
for y in 1..5
discount.{y}  Worth today of a USD after year {y} [1] = (1 + asked.discount_rate)**(-number.{y})

for option | name | start | later in buy | buy | bought.0 | cash.buy; rent | rent | nothing | cash.rent
npv.{option}.0  Cash, {name}, worth today, start [USD] = if_known({start} * discount.0, {start})
npv.{option}.1  Cash, {name}, worth today, year 1 [USD] = if_known({later}.1 * discount.1, {later}.1)
npv.{option}.2  Cash, {name}, worth today, year 2 [USD] = if_known({later}.2 * discount.2, {later}.2)
npv.{option}.3  Cash, {name}, worth today, year 3 [USD] = if_known({later}.3 * discount.3, {later}.3)
npv.{option}.4  Cash, {name}, worth today, year 4 [USD] = if_known({later}.4 * discount.4, {later}.4)
npv.{option}.5  Cash, {name}, worth today, year 5 [USD] = if_known({later}.5 * discount.5, {later}.5)

npv.api.0   Cash, API, worth today, start [USD] = if_known(nothing * discount.0, nothing)
for y in 1..5
npv.api.{y}  Cash, API, worth today, year {y} [USD] = if_known(year.{y}.api * discount.{y}, year.{y}.api)

for part | name in rent | Rent of accelerators; energy_idle | Electricity while nothing runs;
  energy_load | Electricity that follows load; colocation | Colocation; staff | Staff;
  staff_rented | Staff where rented
for y in 1..5
worth.{part}.{y}  {name}, worth today, year {y} [USD]
            = if_known(year.{y}.{part} * discount.{y}, year.{y}.{part})

[capacity] NPV, break-even and what moves it | of the years asked for
for option | name in buy | buy; rent | rent; api | API
npv.{option}  NPV, {name} [USD] = if_known(sum([npv.{option}.*]), npv.{option}.0, npv.{option}.5)

saving      What buying saves against renting [USD] = if_known(npv.buy - npv.rent, npv.buy, npv.rent)
            ; today's worth; negative where renting is cheaper
for part | name in rent | Rent of accelerators; energy_idle | Electricity while nothing runs;
  energy_load | Electricity that follows load; colocation | Colocation; staff | Staff;
  staff_rented | Staff where rented
worth.{part}  {name}, worth today [USD] = if_known(sum([worth.{part}.*]), worth.{part}.1, worth.{part}.5)

break_even.buy_against_rent_at  Share of the hours for which renting costs as much as buying, worked out [1]
            = if_known((npv.buy - worth.staff_rented) / min(-dollar, worth.rent), npv.buy, worth.rent)
break_even.buy_against_rent  Share of the hours for which renting costs as much as buying [1]
            = clear(break_even.buy_against_rent_at)
break_even.rent_against_api_at  Utilisation at which renting costs as much as an API, worked out [1]
            = if_known(utilisation_mean * npv.rent / min(-dollar, npv.api), npv.rent, npv.api)
break_even.rent_against_api  Utilisation at which renting costs as much as an API [1]
            = clear(break_even.rent_against_api_at)
break_even.buy_against_api_at  Utilisation at which buying costs as much as an API, worked out [1]
            = if_known(utilisation_mean * (npv.buy - worth.energy_load) / min(-dollar, npv.api -
            worth.energy_load), npv.buy, npv.api)
break_even.buy_against_api  Utilisation at which buying costs as much as an API [1]
            = clear(break_even.buy_against_api_at)
moves.rent  Saving moves with rent [USD] = if_known(-worth.rent * asked.swing, worth.rent)
            ; the driver higher by the share stated; lower: as much the other way
moves.purchase  Saving moves with purchase price, with upkeep and residual [USD]
            = if_known((npv.buy - (worth.energy_idle + worth.energy_load + worth.colocation + worth.staff)) *
            asked.swing, npv.buy) ; the driver higher by the share stated; lower: as much the other way
moves.electricity  Saving moves with electricity [USD]
            = if_known((worth.energy_idle + worth.energy_load) * asked.swing, worth.energy_idle,
            worth.energy_load) ; the driver higher by the share stated; lower: as much the other way
moves.colocation  Saving moves with colocation [USD]
            = if_known(worth.colocation * asked.swing, worth.colocation)
            ; the driver higher by the share stated; lower: as much the other way
moves.staff  Saving moves with staff [USD] = (worth.staff - worth.staff_rented) * asked.swing
            ; the driver higher by the share stated; lower: as much the other way

[capacity] Bought, ahead of rent | cash of buying less that of renting, and what each option has spent
ahead_in.0  Buying less renting, start [USD] = if_known(bought.0 - nothing, bought.0, nothing)
for y in 1..5
ahead_in.{y}  Buying less renting, year {y} [USD]
            = if_known(cash.buy.{y} - cash.rent.{y}, cash.buy.{y}, cash.rent.{y})

ahead.0     Buying ahead of renting, start [USD] = ahead_in.0
for y in 1..5
ahead.{y}   Buying ahead of renting, year {y} [USD]
            = if_known(ahead.{y-1} + ahead_in.{y}, ahead.{y-1}, ahead_in.{y})

for y in 1..5
back.{y}    Comes back in year {y} [flag]
            = where(all(is_number(ahead.{y}), number_of(ahead.{y-1}) < 0, number_of(ahead.{y}) >= 0), 1, 0)

for y in 1..5
back_at.{y}  Comes back, if in year {y} [number]
            = number.{y} - 1 + -number_of(ahead.{y-1}) / max(dollar, number_of(ahead.{y}) -
            number_of(ahead.{y-1}))

back        Years in which it comes back [number] = sum([back.*])
back_first  The first of them [number] = where(back > 0, match(1, [back.*]), 1)
back_never  Where it does not [1] = if_known('not within the years', ahead.5)
payback     Years after which buying overtakes renting [number]
            = where(back > 0, index([back_at.*], back_first), back_never)
            ; cash of both, not discounted; within a year in a straight line
flow.0      As a number, start [USD] = number_of(ahead_in.0)
for y in 1..5
flow.{y}    As a number, year {y} [USD] = number_of(ahead_in.{y})

for y in 1..5
turn.{y}    Cash turns, year {y} [flag] = where(flow.{y-1} * flow.{y} / dollar < 0, 1, 0)

turns       Turns of cash [number] = sum([turn.*])
flows       Sum of cash, buying less renting [USD] = sum([flow.*])
irr_clear   The IRR is clear [flag]
            = where(all(is_number(ahead_in.5), flow.0 < 0, turns <= 1, flows > 0), 1, 0)
            ; paid first, back later, and more than was paid
over capacity.irr_middle.1 = 0 + half**1
over capacity.irr_low.1 = where(irr_worth.1 <= 0, irr_middle.1, 0)
for n in 1..12
irr_middle.{n}  Discount factor tried, {n} [1] = irr_low.{n-1} + half**{n}
irr_worth_late.{n}  Worth at it, {n}, of year 3 and later, as of then [USD] = worth_late(irr_middle.{n})
irr_worth.{n}  Worth at it, {n} [USD] = worth(irr_middle.{n}, irr_worth_late.{n})
irr_low.{n}  Discount factor at most, {n} [1] = where(irr_worth.{n} <= 0, irr_middle.{n}, irr_low.{n-1})

# Three steps of Newton's method from there.
irr_factor.0  Discount factor, found by halves [1] = irr_low.12
for n in 1..3
irr_at_late.{n}  Worth there, {n}, of year 3 and later, as of then [USD] = worth_late(irr_factor.{n-1})
irr_at.{n}  Worth there, {n} [USD] = worth(irr_factor.{n-1}, irr_at_late.{n})
irr_slope.{n}.1  Slope there, {n}, of year 1 [USD] = flow.1 * irr_factor.{n-1}**0 * number.1
irr_slope.{n}.2  Slope there, {n}, of year 2 [USD] = flow.2 * irr_factor.{n-1}**1 * number.2
irr_slope.{n}.3  Slope there, {n}, of year 3 [USD] = flow.3 * irr_factor.{n-1}**2 * number.3
irr_slope.{n}.4  Slope there, {n}, of year 4 [USD] = flow.4 * irr_factor.{n-1}**3 * number.4
irr_slope.{n}.5  Slope there, {n}, of year 5 [USD] = flow.5 * irr_factor.{n-1}**4 * number.5
irr_slope.{n}  Slope there, {n} [USD] = sum([irr_slope.{n}.*])
irr_factor.{n}  Discount factor, {n} [1]
            = irr_factor.{n-1} - irr_at.{n} / where(irr_slope.{n} > 0, irr_slope.{n}, dollar)

irr_none    Where it is not clear [1] = if_known('not clear', ahead_in.5)
irr         IRR of buying against renting [1]
            = where(irr_clear > 0, 1 / max(smallest, irr_factor.3) - 1, irr_none)
            ; only where cash turns once and more comes back than was paid
spent.buy.0  Spent so far, buy, start [USD] = if_known(-bought.0, bought.0)
for y in 1..5
spent.buy.{y}  Spent so far, buy, year {y} [USD]
            = if_known(spent.buy.{y-1} - cash.buy.{y}, spent.buy.{y-1}, cash.buy.{y})

spent.rent.0  Spent so far, rent, start [USD] = if_known(-nothing, nothing)
for y in 1..5
spent.rent.{y}  Spent so far, rent, year {y} [USD]
            = if_known(spent.rent.{y-1} - cash.rent.{y}, spent.rent.{y-1}, cash.rent.{y})

spent.api.0  Spent so far, API, start [USD] = if_known(-nothing, nothing)
for y in 1..5
spent.api.{y}  Spent so far, API, year {y} [USD]
            = if_known(spent.api.{y-1} - year.{y}.api, spent.api.{y-1}, year.{y}.api)

[capacity] Price of a million tokens | of the years, all worth today
for y in 1..5
tokens.{y}  Output tokens, discounted, year {y} [Mtoken] = year.{y}.output * discount.{y}

tokens      Output tokens, discounted [Mtoken] = sum([tokens.*])
tokens_some  Output tokens, discounted, where there are any [Mtoken] = where(tokens > 0, tokens, 'not known')
tokens_all  Input and output tokens, discounted [Mtoken]
            = tokens * (1 + inputs.input_tokens / inputs.output_tokens)
for option | name in buy | buy; rent | rent; api | API
price.{option}  USD of a million output tokens, {name} [USD/Mtoken]
            = if_known(-npv.{option} / max(little, tokens), npv.{option}, tokens_some)

for option | name in buy | buy; rent | rent; api | API
price.{option}_all  USD of a million tokens, both ways, {name} [USD/Mtoken]
            = if_known(-npv.{option} / max(little, tokens_all), npv.{option}, tokens_some)

[capacity] Utilisations | where the curves of break-even have a point
for n | share in 1 | 0.1; 2 | 0.15; 3 | 0.2; 4 | 0.25; 5 | 0.3; 6 | 0.35; 7 | 0.4; 8 | 0.45; 9 | 0.5;
  10 | 0.55; 11 | 0.6; 12 | 0.65; 13 | 0.7; 14 | 0.75; 15 | 0.8; 16 | 0.85; 17 | 0.9; 18 | 0.95; 19 | 1.0
use.{n}     Mean utilisation of point {n} [1] := {share} ; a point of the curves

[capacity] Curves of break-even | USD per million output tokens over the mean utilisation
price.load  Of it electricity that follows load [USD/Mtoken]
            = if_known(price.buy * worth.energy_load / min(-dollar, npv.buy), worth.energy_load, npv.buy,
            price.buy)
for n in 1..19
curve.buy.{n}  USD of a million output tokens, buy, point {n} [USD/Mtoken]
            = if_known((price.buy - price.load) * utilisation_mean / use.{n} + price.load, price.load,
            utilisation_mean)
curve.rent.{n}  USD of a million output tokens, rent, point {n} [USD/Mtoken]
            = if_known(price.rent * utilisation_mean / use.{n}, price.rent, utilisation_mean)

[capacity] What moves the saving most | the largest first
for n | driver in 1 | rent; 2 | purchase; 3 | electricity; 4 | colocation; 5 | staff
size.{driver}  Size of what {driver} moves [USD]
            = abs(number_of(moves.{driver})) + number.{n} * dollar * checks.tolerance
            ; with a little more for each place, so that no two are alike

for driver | name in rent | Rent; purchase | Purchase; electricity | Electricity; colocation | Colocation;
  staff | Staff
driver.{driver}  {name}, in words [1]
            = join('{name}', where(number_of(moves.{driver}) < 0, ' lower', ' higher'))
            ; the way in which buying gains

for n in 1..5
ranked.{n}  Driver that moves it most, {n} [number] = match(nth_largest([size.*], number.{n}), [size.*])
ranked_by.{n}  By so much, {n} [USD] = abs(number_of(index([moves.*], ranked.{n})))
ranked_name.{n}  Its name, {n} [1] = index([driver.*], ranked.{n})
ranked_worse.{n}  The other way, {n} [USD] = -ranked_by.{n}

ranked_room  Room of the chart [USD] = ranked_by.1 + ranked_by.1 * half
ranked_room_worse  Room on the other side [USD] = -ranked_room

[capacity] In words | aside
told.enough  Replicas in words [1]
            = join(text(number_of(in_service)), where(number_of(in_service) == 1, ' replica carries', '
            replicas carry'), ' the peak with ', text(asked.spares), ' to spare')
told.carried  What carries the peak, in words [1]
            = where(is_number(in_service), told.enough, join('! no rate is sustained within the limits (',
            binds, '): replicas not known'))
told.money  Money in words [1]
            = where(abs(number_of(saving)) >= million, join(rounded(abs(number_of(saving)) / million, 2), ' M
            USD'), join(text(abs(number_of(saving)) / thousand), ' thousand USD'))
told.saved  What is saved, in words [1]
            = choose(1 + where(is_number(saving), 1, 0) + where(number_of(saving) < 0, 1, 0), 'what buying
            saves is not known', join('buying saves ', told.money), join('renting saves ', told.money))
title       Finding [1]
            = join(told.carried, '; ', told.saved, choose(1 + where(is_number(saving), 1, 0), '', join(' over
            ', join(text(asked.years), where(asked.years == 1, ' year', ' years')))))
title_used  Utilisation in words [1]
            = join('Utilisation: ', in_percent(utilisation_mean), ' in the mean of the day, ',
            in_percent(utilisation_peak), ' at the peak')
title_even  Break-even in words [1]
            = join('Break-even at mean utilisation: rent against API ',
            in_percent(break_even.rent_against_api), ', buy against API ',
            in_percent(break_even.buy_against_api), '; at hours rented of all: buy against rent ',
            in_percent(break_even.buy_against_rent))
title_back  When buying pays, in words [1]
            = join(where(is_number(payback), join('Buying overtakes renting after ',
            rounded(number_of(payback), 1), ' years'), join('When buying overtakes renting: ', payback)), ';
            IRR against rent: ', in_percent(irr))

[capacity] What the answer rests on | aside
told.rate   Assumption in words [1] = join('A replica carries ', in_hundredths(rate), ' requests/s: ', binds)
told.day    Assumption in words [1] = join('Every day of the year is like this one: ', asked.profile)
told.growth  Assumption in words [1] = join('Demand grows ', percent(asked.growth, 0), ' each year')
told.spares  Assumption in words [1] = join('Replicas that may fail at the peak: ', text(asked.spares))
told.machine  Assumption in words [1]
            = join('An accelerator with its share of a machine costs ', in_whole(machine), ' USD')
told.rent   Assumption in words [1] = join('Rent stays at ', in_hundredths(rent_used), ' USD/h')
told.api    Assumption in words [1]
            = where(asked.api_output > 0, join('API: ', asked.api_input, ' and ', asked.api_output, ' USD/M
            in, out'), 'The price of an API is not known')
told.power  Assumption in words [1]
            = join('A replica draws ', in_whole(idle), ' W idle, ', in_whole(full), ' W at work')
told.residual  Assumption in words [1]
            = join(percent(asked.residual, 0), ' of the purchase is left after ', join(text(asked.years),
            where(asked.years == 1, ' year', ' years')))
