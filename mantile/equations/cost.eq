# Power and cost: of an accelerator per hour, of the whole deployment per token, hour, day and month.
#
# Power follows the load: an accelerator draws its idle power while nothing runs, all of its limit while it is
# bound by compute, and a share of what lies between while it waits for memory, links or the host. What a
# machine adds to its accelerators, and a building to its machines, goes by the class of the machine.

define of_class(shares) = index(shares, class_place)
define in_building(watts) = if_known(watts * overhead * inputs.pue, watts)
define of_all(one) = if_known(one * {own}plan.accelerators / accelerators_per_rank, one)
define at_share(share) = where(hardware.tdp > 0, idle + (hardware.tdp - idle) * share, 'not known')
define mean_draw(share) = where(hardware.tdp > 0, idle + (at_work - idle) * share * inputs.utilisation, 'not
  known')
define of_both(one, other) = if_known(one + inputs.disaggregated * other, one, other)
define a_million(tokens) = if_known(usd_per_hour / (tokens * seconds_per_hour) * tokens_per_million,
  usd_per_hour)
define stated(figure) = where(figure > 0, figure, 'not known')

[cost] Assumed of machines | where nobody states the figure
for n | name | meaning in 1 | server | in a data centre; 2 | workstation | a desktop with cards;
  3 | laptop | a laptop, or a Mac, whose power limit is that of the whole machine;
  4 | single-board | a small machine around one chip, such as a DGX Spark
machine_class.{n}  Class of machine {n} (classes of machines) [1] := '{name}' ; {meaning}

idle_share  Idle power, share of the limit [1] := 0.15 in 0 to 1 ; where nobody states idle power
            @ assumed 2026-08: rule of thumb of secondary pages
for of | value | why in workstation | 0.05 | 20 of 350 and 450 W of cards for desktops;
  laptop | 0.05 | 8 to 13 of 115 to 295 W of whole Macs: 0.03 to 0.1;
  single-board | 0.18 | 25 of 140 W of a DGX Spark
idle_share_{of}  Idle power, share of the limit, {of} [1] := {value} in 0 to 1
            ; where nobody states idle power @ assumed 2026-08: {why}

host_share  Machine over its accelerators [1] := 1.8 in 1 to 5
            ; power of a machine over that of its accelerators, where nobody states it
            @ assumed 2026-08: nameplates: DGX H100 1.82, DGX B200 1.79, DGX A100 2.03
for of | value | why in
  workstation | 1.3 | 100 to 170 W of CPU, board, fans and loss of the supply beside a card of 350 to 575 W;
  laptop | 1 | the limit that is stated is that of the whole machine;
  single-board | 1.2 | between 1 and 1.7, supply over chip of a DGX Spark, which draws 60 to 90 W
host_share_{of}  Machine over its accelerators, {of} [1] := {value} in 1 to 5
            ; power of a machine over that of its accelerators, where nobody states it
            @ assumed 2026-08: {why}

pue         PUE where none is stated [1] := 1.3 in 1 to 5 ; power of the building over power of its machines
            @ assumed 2026-08: between 1.1 of hyperscalers and 1.56, the mean of Uptime Institute's survey of
            2024
for of in workstation; laptop; single-board
pue_{of}    PUE where none is stated, {of} [1] := 1 in 1 to 5
            ; power of the building over power of its machines
            @ assumed 2026-08: it stands in a room without cooling of its own

power_of_memory  Power while memory binds [1] := 0.4 in 0 to 1 ; share of the power between idle and limit
            @ assumed 2026-08: decode drew up to 300 W of an H200 of 700 W: 0.36 (arXiv:2605.11999, abstract);
            60 to 90 W of a DGX Spark: 0.3 to 0.57
power_of_rest  Power while links or the host bind [1] := 0.1 in 0 to 1
            ; share of the power between idle and limit
            @ assumed 2026-08: decode drew 137 W at least of an H200 of 700 W: 0.1 (arXiv:2605.11999,
            abstract)
capital_share  Machine over its accelerators, price [1] := 1.6 in 1 to 5
            ; price of a machine with network over that of its accelerators
            @ assumed 2026-08: 8 x H100: node 300 to 350 thousand USD and 10 to 15 % for the network, against
            8 x 25 to 30 thousand
life        Economic life [year] := 4 in 0.5 to 20 ; over which a purchase is written off
            @ assumed 2026-08: InferenceX; 2 to 3 economic, 5 to 6 by the books elsewhere
upkeep_share  Upkeep of a year, share of the purchase price [1/year] := 0.08 in 0 to 1
            ; space, staff, spare parts, interest; electricity stands beside it
            @ assumed 2026-08: median by which InferenceX's cost of owning is above capital and electricity
            here; six chips, 0 to 0.2
for n | name in 1 | cloud; 2 | rental; 3 | owned
basis.{name}  Basis {n} (bases) [1] := '{name}' ; price basis

[cost] Load | how long accelerators run, and what they then draw of the power between idle and limit
for phase in prefill; decode
{phase}_active  Share of its power range that {phase} draws [1]
            = ({phase}.bound.compute + power_of_memory * {phase}.bound.memory + power_of_rest *
            ({phase}.bound.network + {phase}.bound.overhead)) / {phase}.time
            ; by what binds: all of it where compute does

active      Share of its power range that an accelerator draws while it runs [1]
            = token_cost.input_time_share * prefill_active + (1 - token_cost.input_time_share) * decode_active
            ; prefill and decode by the time they take
when sessions
busy_by_sessions  Share of the time in which a session waits for its answer [1]
            = where(all(sessions.lead > 0, sessions.waiting < 1), 1 - exp(inputs.sessions / inputs.decode_dp /
            one_request * ln(1 - sessions.waiting)), 1)
            ; one at least of a replica; 1 where the load is another
over cost.busy = busy_by_sessions

busy        Share of the time in which something runs [1] = 1
            ; at a request rate, or of sessions, that at least one request is there; else requests are there
            all the time @ requests that arrive at random and do not wait for one another
over cost.busy
            = where(load.open > 0, 1 - exp(-load.in_flight / inputs.decode_dp / one_request), it) | when
            request_rate

when disaggregated
prefill_busy  Share of the time in which prefill workers run [1]
            = where(inputs.disaggregated > 0, min(1, serving.requests_per_s / inputs.dp *
            serving.prefill_service / one_request), busy) ; prompts that arrive, each with its time
prefill_workers_active  Share of its power range that a prefill worker draws [1]
            = where(inputs.disaggregated > 0, prefill_active, active)
over cost.at_work = at_share(prefill_workers_active)
over cost.draw = mean_draw(prefill_busy)
over decode.cost.at_work = at_share(decode_active)

[cost] One accelerator | power and price of an hour | each pool
class_place  Place of the class of machine [number] = match(hardware.machine, [machine_class.*])
            ; in the assumptions above
pue_default  PUE by the class of machine [1]
            = max(1, of_class([pue, pue_workstation, pue_laptop, `pue_single-board`]))
            ; a building draws no less than what stands in it
idle_assumed  Idle power of an accelerator, assumed [W]
            = where(hardware.tdp > 0, of_class([idle_share, idle_share_workstation, idle_share_laptop,
            `idle_share_single-board`]) * hardware.tdp, 'not known')
idle        Idle power of an accelerator [W] = where(hardware.idle > 0, hardware.idle, idle_assumed)
at_work     Power of an accelerator while it runs [W] = at_share(active)
draw        Power of an accelerator [W] = mean_draw(busy) ; mean over the paid hours
host_share_used  Machine over its accelerators, by class [1]
            = of_class([host_share, host_share_workstation, host_share_laptop, `host_share_single-board`])
nameplate   Machine over its accelerators, nameplate [1]
            = where(all(hardware.node_power > 0, hardware.tdp > 0), hardware.node_power *
            accelerators_per_rank / (hardware.accelerators * hardware.tdp), host_share_used)
            ; that of the class where no nameplate is stated
overhead    Machine over its accelerators in use [1]
            = where(hardware.machine == 'server', nameplate, host_share_used)
            ; the nameplate of a server is that of its parts; that of a small machine is its power supply's
building_idle  Idle power of an accelerator in the building [W] = in_building(idle)
building_full  Power of an accelerator in the building while it runs [W] = in_building(at_work)
building    Power of an accelerator in the building [W] = in_building(draw)
total_power  Power of the deployment [W] = of_all(building)
provisioned_worked_out  Power to provide, worked out [W]
            = where(hardware.tdp > 0, hardware.tdp * nameplate * inputs.pue, 'not known')
provisioned  Power to provide for an accelerator [W]
            = where(hardware.price_provisioned_power > 0, hardware.price_provisioned_power,
            provisioned_worked_out) ; a published figure holds host and building
provisioned_total  Power to provide for all accelerators [W] = of_all(provisioned)
electricity  Electricity of an accelerator [USD/h]
            = if_known(building / watts_per_kilowatt * inputs.electricity_price, building)
machine_share  Machine over its accelerators in the price [1]
            = where(hardware.whole_machine > 0, 1, capital_share)
machine     Purchase price with its share of a machine [USD]
            = where(hardware.price_purchase > 0, hardware.price_purchase * machine_share, 'not known')
            ; host and network included
use_hours   Hours of use in a year [h/year] = inputs.hours_per_day * days_per_year
            ; what is owned costs as much while it stands still
capital     Capital cost of an accelerator [USD/h] = if_known(machine / (life * use_hours), machine)
upkeep      Upkeep of an accelerator [USD/h] = if_known(machine * upkeep_share / use_hours, machine)
own         Cost of owning, worked out [USD/h]
            = if_known(capital + upkeep + electricity, capital, electricity)
published   Cost of owning, published [USD/h] = stated(hardware.price_owned) ; to compare
own_against_published  Cost of owning against the published figure [1]
            = if_known(own / published, own, published)
by.cloud    Price of an accelerator, cloud [USD/h] = stated(hardware.price_cloud) ; on demand
by.rental   Price of an accelerator, rental [USD/h] = stated(hardware.price_rental) ; three-year contract
by.owned    Price of an accelerator, owned [USD/h]
            = where(hardware.price_owned_stated > 0, hardware.price_owned, own)
            ; a figure of one's own stands for what is worked out; a published one does not
price       Price of an accelerator [USD/h] = index([by.*], match(inputs.price_basis, [basis.*]))
hourly      Price of the deployment [USD/h] = of_all(price)
offer_own   The price is one's own [flag]
            = index([hardware.price_cloud_typed, hardware.price_rental_typed, hardware.price_owned_typed],
            match(inputs.price_basis, [basis.*]))
            ; 1 where it was typed by hand: in the scenario, or over that of the library
offer_figure  Figure of the library that the price follows from [1]
            = where(all(inputs.price_basis == 'owned', hardware.price_owned_stated > 0),
            '{space}hardware.price_own', join('{space}hardware.price_', inputs.price_basis))
offer_key   Accelerator and basis [1] = join(inputs.accelerator, ' ', inputs.price_basis)
offer_stated  Somebody else states the price [flag] = where(all(is_number(price), offer_own < 1), 1, 0)
offer_known  The library has more to say of the price [flag]
            = where(offer_stated > 0, count_where(library.price.key, offer_key), 0)
offer_number  Place of the price [number] = where(offer_known > 0, match(offer_key, library.price.key), 1)
            ; the first place is that of none
offer_provider  Provider of the price [1]
            = where(offer_own > 0, 'typed by hand', index(library.price.provider, offer_number))
offer_region  Region of the price [1]
            = where(offer_own > 0, 'typed by hand', index(library.price.region, offer_number))
offer_term  Term of the price [1]
            = where(offer_own > 0, 'typed by hand', index(library.price.term, offer_number))
offer_day   Day of the price [date] = index(library.price.day, offer_number)
            ; on which it was read, or of which it is
offer_lowest  Lowest price of others [USD/h] = index(library.price.lowest, offer_number)
            ; of those that were read
offer_lowest_by  Who asks the lowest price [1] = index(library.price.lowest_by, offer_number)
offer_highest  Highest price of others [USD/h] = index(library.price.highest, offer_number)
            ; of those that were read
offer_highest_by  Who asks the highest price [1] = index(library.price.highest_by, offer_number)
offer_age   Age of the price [day] = if_known(inputs.as_of - offer_day, offer_day) ; on the day asked for
offer_young  The price is at most so many days old [flag]
            = where(all(is_number(offer_age), number_of(offer_age) <= offer.most_days), 1, 0)
            ; 0 where nobody knows its day
offer_passed  The price is not old [flag] = max(offer_young, 1 - offer_stated)
            ; one's own is not judged, nor one that is not known

when capacity, devices
total_idle  Idle power of the deployment [W] = of_all(building_idle)
total_full  Power of the deployment while it runs [W] = of_all(building_full)
total_machine  Purchase price of the deployment [USD] = of_all(machine)

[cost] Devices that count | each with what it does, 0 where it holds no layers | each device
counted_power  Power of the deployment, counted [W] = where(plan.counted.{n} > 0, total_power, 0)
counted_provisioned  Power to provide, counted [W] = where(plan.counted.{n} > 0, provisioned_total, 0)
counted_hourly  Price of the deployment, counted [USD/h] = where(plan.counted.{n} > 0, hourly, 0)
counted_young  The price is not old, if it counts [flag] = where(plan.counted.{n} > 0, offer_passed, 1)
when capacity
counted_idle  Idle power of the deployment, counted [W] = where(plan.counted.{n} > 0, total_idle, 0)
counted_full  Power of the deployment while it runs, counted [W] = where(plan.counted.{n} > 0, total_full, 0)
counted_machine  Purchase price of the deployment, counted [USD]
            = where(plan.counted.{n} > 0, total_machine, 0)

[cost] PUE of devices | that of the first machine in use | each device, the last first
pue_from    PUE by the class of the first machine in use, from this one on [1]
            = where(plan.counted.{n} > 0, pue_default, {behind})

[cost] Tokens | mean over the paid hours
utilisation  Utilisation [1] = inputs.utilisation ; every figure per token holds at this load
output_tokens  Output tokens per second, mean [token/s] = serving.output_tokens_per_s * utilisation
input_tokens  Input tokens per second, mean [token/s]
            = serving.requests_per_s * inputs.input_tokens * utilisation
all_tokens  Input and output tokens per second, mean [token/s] = output_tokens + input_tokens

[cost] Power | in the building
power_known  Power limits are stated [flag] = where(min(hardware.tdp, decode.hardware.tdp) > 0, 1, 0)
power       Power in the building [W] = if_known(total_power, total_power) ; mean over the paid hours
joules_per_output_token  Energy per output token [J/token] = if_known(power / output_tokens, power)
tokens_per_kwh  Output tokens per kWh [token/kWh]
            = if_known(output_tokens * seconds_per_hour * watts_per_kilowatt / power, power)
provisioned_power  Power to provide for [W] = if_known(provisioned_total, provisioned_total)
tokens_per_provisioned_watt  Output tokens per second and provisioned watt [token/s/W]
            = if_known(serving.output_tokens_per_s / provisioned_power, provisioned_power) ; at full load
when disaggregated
over cost.power = of_both(total_power, decode.cost.total_power)
over cost.provisioned_power = of_both(provisioned_total, decode.cost.provisioned_total)
over cost.usd_per_hour = of_both(hourly, decode.cost.hourly)

when devices
over cost.power_known = where(min(hardware.tdp, *[devices.*.hardware.tdp]) > 0, 1, 0)
over cost.power
            = if_known(sum(counted_power, *[devices.*.cost.counted_power]), counted_power,
            *[devices.*.cost.counted_power])
over cost.provisioned_power
            = if_known(sum(counted_provisioned, *[devices.*.cost.counted_provisioned]), counted_provisioned,
            *[devices.*.cost.counted_provisioned])
over cost.usd_per_hour
            = if_known(sum(counted_hourly, *[devices.*.cost.counted_hourly]), counted_hourly,
            *[devices.*.cost.counted_hourly])
over cost.prices_young = where(known > 0, min(counted_young, *[devices.*.cost.counted_young], 1), 1)

[cost] Cost | on the price basis asked for
usd_per_hour  Cost per hour [USD/h] = if_known(hourly, hourly)
for kind | tokens in output | output_tokens; input | input_tokens; blended | all_tokens
usd_per_million_{kind}  Cost per million {kind} tokens [USD/Mtoken] = a_million({tokens})
            ; at the utilisation above @ InferenceX convention

usd_per_day  Cost per day [USD/day] = if_known(usd_per_hour * inputs.hours_per_day, usd_per_hour)
usd_per_month  Cost per month [USD/month] = if_known(usd_per_day * days_per_month, usd_per_day)
electricity_per_day  Electricity per day [USD/day]
            = if_known(power / watts_per_kilowatt * inputs.electricity_price * inputs.hours_per_day, power)
            ; part of the price, whatever its basis
tokens_per_day  Output tokens per day [token/day] = output_tokens * seconds_per_hour * inputs.hours_per_day
tokens_per_usd  Output tokens per USD [token/USD]
            = if_known(output_tokens * seconds_per_hour / usd_per_hour, usd_per_hour)
known       A price is known [flag] = where(is_number(usd_per_hour), 1, 0)
prices_young  No price is old [flag] = where(known > 0, min(offer_passed, decode.cost.offer_passed, 1), 1)
            ; or one is not known
errors      Errors in power and cost [flag]
            = where(is_error(number_of(power) * number_of(usd_per_hour) * number_of(usd_per_million_output)),
            1, 0)
