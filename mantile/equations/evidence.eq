# How well results are known: which serving runs were measured, and the ranges that follow. From p10 to p90 of
# a result lie 80 % of the measured runs to which nothing was fitted.
#
# The level is 1 if no run of the framework was measured on chips of the maker, 2 if some were, 3 if some were
# measured of the accelerator with this kind of model, format, batching and client; 4 is disaggregated
# serving, whatever was measured. The library has the runs, and measured ÷ predicted of each level.

define measured_pair = join(inputs.decode_accelerator, '/', inputs.decode_framework)
define seen_framework = evidence.vendor_runs | when kinds_seen
define seen_framework = evidence.framework_runs | when not kinds_seen
define seen_pair = evidence.alike_runs | when kinds_seen
define seen_pair = evidence.pair_runs | when not kinds_seen
define at_level(ratios) = index(ratios, level)

[evidence] Accelerators of device {n} | each other device | aside
unlike.{n}  Accelerators of device {n} that differ from device 1 [rank]
            = where(inputs.device{n}_accelerator == inputs.accelerator, 0, plan.counted.{n})

[evidence] Evidence | 80 % of the measured runs that were not fitted lie between p10 and p90
when single_users
single_runs  Measured runs of the pair, one user [number] = sum_where(alone.runs, alone.pair, measured_pair)
over evidence.pair_runs = it + where(inputs.concurrency <= 1, single_runs, 0)

pair_runs   Measured runs of the pair [number] = sum_where(served.runs, served.pair, measured_pair)
            ; of a single user only where there is one request at a time
when not kinds_seen
framework_runs  Measured runs of the framework [number]
            = sum_where(measured.runs, measured.framework, inputs.decode_framework) ; on any accelerator

when kinds_seen
family

when kinds_seen
for kind | words | here in vendor | chips of the maker | decode.hardware.vendor;
  family | models of the kind | family; format | weights of the format | inputs.decode_weights_dtype
{kind}_runs  Measured runs of the framework, {words} [number]
            = sum_where(seen.{kind}.runs, seen.{kind}.key, join(inputs.decode_framework, '/', {here}))

# Equal lengths were measured in benchmarks, whose requests start together; a service of them was not. All
# runs held everything on accelerators that are alike, and had no drafts.
when kinds_seen
like_seen   Model and format were measured with the framework [flag]
            = where(all(family_runs > 0, format_runs > 0), 1, 0)
when kinds_seen, devices
unlike.*
unlike      Accelerators that differ from device 1 [rank] = sum([unlike.*])
over evidence.alike_runs = it * where(unlike <= 0, 1, 0)

when kinds_seen
alike_runs  Measured runs of the pair, for the like of this case [number]
            = where(all(like_seen > 0, inputs.continuous > 0, inputs.length_range_ratio +
            inputs.prompts_per_slot > 0, decode.memory.host_weights + decode.memory.host_kv <= 0), pair_runs,
            0)
            ; 0 where this kind of model, format, batching or client was not measured, nor a part elsewhere
over evidence.alike_runs = it * where(speculation.on <= 0, 1, 0) | when speculation

when apart_ranges
apart
over evidence.level = it * (1 - inputs.disaggregated) + apart * inputs.disaggregated

level       Evidence level [number] = 1 + where(seen_framework > 0, 1, 0) + where(seen_pair > 0, 1, 0)
over evidence.level = min(it, 1 + (1 - inputs.disaggregated) + 1) | when disaggregated, not apart_ranges
name.*
name        Evidence [1] = index([name.*], level)
for metric | label | of | unit in tpot | TPOT | serving.tpot | s; ttft | TTFT | serving.ttft | s;
  throughput | Output tokens per second | serving.output_tokens_per_s | token/s
for p in p10; p50; p90
{metric}.{p}.*
{metric}.{p}  {label}, {p} [{unit}] = {of} * at_level([{metric}.{p}.*])

for p in p10; p50; p90
e2e.{p}     End to end, {p} [s] = ttft.{p} + (serving.e2e - serving.ttft) * at_level([tpot.{p}.*])
            ; TTFT at its percentile, generation as far off as TPOT

# What is large where another result is small is as far off as that.
for p | inverse in p10 | p90; p50 | p50; p90 | p10
prefill_rate.{p}  Prefill tokens per second, {p} [token/s]
            = serving.prefill_tokens_per_s / at_level([ttft.{inverse}.*])
            ; as far off as TTFT, of which it is a part; nobody measured it apart

for p | inverse in p10 | p90; p50 | p50; p90 | p10
interactivity.{p}  Interactivity, {p} [token/request/s]
            = serving.interactivity / at_level([tpot.{inverse}.*]) ; as far off as TPOT, whose inverse it is

[evidence] Range of costs and power | by the measured runs that were not fitted; see Serving
for p | inverse in p10 | p90; p50 | p50; p90 | p10
usd_per_million_output_tokens.{p}  USD per million output tokens, {p} [USD/Mtoken]
            = where(is_number(cost.usd_per_million_output), cost.usd_per_million_output /
            at_level([throughput.{inverse}.*]), 'not known')
            ; as far off as the output tokens of an hour; prices are taken as stated

# The power of GPUs was measured at request rates alone, of a single server; host and building are as stated.
when power_measured, request_rate, not devices
drawn.pair
power.asked  As GPUs were measured: at a request rate, one server [flag]
            = where(inputs.request_rate > 0, 1, 0)
over evidence.power.asked = where(all(inputs.request_rate > 0, inputs.disaggregated <= 0), 1, 0) | when
            disaggregated

when power_measured, request_rate, not devices
for p in p10; p50; p90
drawn.{p}
power.ratio.{p}  Measured ÷ estimated power, {p}, in use [1]
            = power.asked * sum_where(drawn.{p}, drawn.pair, measured_pair) ; 0 where none was measured
over evidence.power.{p} = where(all(is_number(cost.power), power.ratio.{p} > 0), cost.power * power.ratio.{p},
            it)

when power_measured, request_rate, not devices
power.words.*
over evidence.power_basis = where(power.ratio.p50 > 0, power.words.known, power.words.unknown)

for p in p10; p50; p90
power.{p}   Power in the building, {p} [W] = 'not known'
            ; as far off as the power of GPUs; host and building as stated

power_basis  Range of power rests on [1] = power.unknown
