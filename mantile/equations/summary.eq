# What the front page says of the base scenario: titles, the texts of the tiles, and what the charts show.
# Nothing follows from these rows; the page places them.
#
# A billionth of its time per place keeps groups of modules of equal time in one order in every engine, and a
# billionth of a millisecond those without any. Less than that some engines take for equal.

define can_be = checks.possible > 0
define overloaded = all(can_be, if_error(checks.load, 0) > 1)
define or_not_known(words) = if_error(words, 'not known')
define in_gb(bytes) = bytes / bytes_per_gb
define of_seconds(seconds) = match_at_most(seconds, [constant.long_time.from.*])
define long_time(seconds) = join(rounded(seconds / index([constant.long_time.seconds.*], of_seconds(seconds)),
  1), ' ', index([constant.long_time.unit.*], of_seconds(seconds)))
define told_long(seconds, words) = where(seconds >= constant.long_time, long_time(seconds), words)
define up_to(low, high) = join('80 %: ', low, ' to ', high)
define end_of_range(value, digits) = where(value >= 1, rounded(value, digits), rounded(value, 2))
define ends_of_range(low, high, digits) = up_to(end_of_range(low, digits), end_of_range(high, digits))
define with_floor(words, floor, digits) = join(words, rounded(floor * ms_per_s, digits), ' ms')
define above_floor(figure, floor) = if_known(join(rounded(figure / floor, 1), ' ×'), figure)
define all_tokens = if_known(serving.total_tokens_per_s, metrics.output_tokens_per_s)
define tokens_in = join(text(inputs.input_tokens), ' tokens in, ') | when not prefixes
define tokens_in = join(text(inputs.input_tokens), ' tokens in, ', percent(prefix.hit_rate, 0),
  ' of them found in a cache, ') | when prefixes
define tokens_out = join(tokens_in, text(inputs.output_tokens), ' out, ') | when not speculation
define tokens_out = join(tokens_in, text(inputs.output_tokens), ' out, ',
  where(speculation.on > 0, drafted, '')) | when speculation
define with_degrees = join(workload, inputs.weights_dtype, ' · ', words_of_degrees.1) | when not disaggregated
define with_degrees = join(workload, inputs.weights_dtype, ' · ', words_of_degrees.1, words_of_degrees.2)
  | when disaggregated
define has_limits = all(is_number(metrics.goodput_share),
  inputs.ttft_limit + inputs.tpot_limit + inputs.e2e_limit > 0) | when not classes
define has_limits = all(is_number(metrics.goodput_share)) | when classes
define peak_low = fullest.startup.peak.p10 | when not devices
define peak_low = fullest.startup.range.peak_memory.p10 | when devices
define peak_high = fullest.startup.peak.p90 | when not devices
define peak_high = fullest.startup.range.peak_memory.p90 | when devices

[summary] The answer and the plan | aside
short_first First token that comes soon [1] = where(number_of(metrics.ttft) >= 1,
            join(rounded(number_of(metrics.ttft), 2), ' s'),
            join(text(number_of(metrics.ttft) * ms_per_s), ' ms'))
first       First token [1] = told_long(number_of(metrics.ttft), short_first)
no_first    Without a first token [1] = where(can_be, 'not known', 'not possible')
speeds      Speed for a user [1]
            = join(where(is_number(metrics.ttft), join(first, ' to first token'), no_first),
            where(is_number(metrics.interactivity),
            join(', ', text(metrics.interactivity), ' tokens/s per user'), ''))
speeds_and_limits  Speed for a user, and limits [1] = where(has_limits,
            join(speeds, ', ', percent(metrics.goodput_share, 0), ' of requests within limits'), speeds)
in_full     The answer in full [1] = join(model_on, machines, ': ', speeds_and_limits,
            where(can_be, '', join(', ', checks.reason)))
answer      The answer [1] = if_error(in_full, model_not_known)
workload    Workload [1] = join(tokens_out, if_known(text(inputs.concurrency), inputs.concurrency),
            ' concurrent requests · ')
asked       Workload and plan as asked [1]
            = join(with_degrees, '· ', inputs.framework, ' · ', inputs.batching, ' batching')
plan        Workload and plan [1] = where(can_be, asked, checks.broken)
when request_rate
over summary.in_full = join(it, where(overloaded, ', overloaded', ''))

when speculation
drafted     What drafts bring [1] = where(is_number(gain.speedup), join(inputs.speculation, ' drafts, ',
            rounded(speculation.emitted, 1), ' tokens a step, ', rounded(gain.speedup, 2), ' × as fast, '),
            '')

[summary] Tiles | aside
tile.fits   Line of a tile [1] = or_not_known(join(checks.reason, where(can_be,
            join(': ', percent(fullest.memory.used / max(1, fullest.memory.usable), 0), ' of usable'), '')))
tile.fits.definition  Definition of a tile [1] = or_not_known(join('usable: ',
            percent(fullest.memory.usable / max(1, fullest.hardware.memory_capacity), 1), ' of ',
            rounded(in_gb(fullest.hardware.memory_capacity), 1), ' GB'))
tile.memory_used  Line of a tile [1]
            = or_not_known(join('KV cache ', rounded(in_gb(fullest.memory.kv), 1), ' GB'))
tile.memory_used.range  Range of a tile [1] = join('80\u00a0%: ', rounded(in_gb(peak_low), 1), ' to ',
            rounded(in_gb(peak_high), 1), ' GB')
tile.memory_used.definition  Definition of a tile [1] = or_not_known(join('fullest one; after the start ',
            tile.memory_used.range, '; host memory ', text(in_gb(fullest.startup.host)), ' GB'))
tile.ttft.second  Second line of a tile [1] = where(is_number(metrics.prefill_tokens_per_s),
            join('Prefill ', text(metrics.prefill_tokens_per_s), ' tokens/s, MFU'), 'Prefill compute, MFU')
tile.e2e    Line of a tile [1] = or_not_known(if_known(
            join(percent(serving.ttft / serving.e2e, 0), ' of it to the first token'), metrics.e2e))
tile.throughput.range  Range of a tile [1]
            = ends_of_range(evidence.throughput.p10, evidence.throughput.p90, 0)
tile.throughput  Line of a tile [1]
            = or_not_known(if_known(tile.throughput.range, metrics.output_tokens_per_s))
tile.throughput.definition  Definition of a tile [1]
            = or_not_known(join('whole deployment, ', text(inputs.concurrency), ' requests in flight'))
tile.per_accelerator  Line of a tile [1] = or_not_known(join('accelerators: ', text(serving.accelerators)))
tile.cost   Line of a tile [1]
            = or_not_known(join(inputs.price_basis, ' price, ', percent(inputs.utilisation, 1), ' used'))
tile.power  Line of a tile [1] = or_not_known(join('accelerators: ', text(serving.accelerators), ', PUE ',
            rounded(inputs.pue, 2)))

[summary] Tiles of times | aside
for name | digits in ttft | 0; tpot | 1
tile.{name}.range.low  Low end of the range of a long time [1] = long_time(evidence.{name}.p10)
tile.{name}.range.high  High end of the range of a long time [1] = long_time(evidence.{name}.p90)
tile.{name}.range.short  Range of a short time [1] = join(ends_of_range(evidence.{name}.p10 * ms_per_s,
            evidence.{name}.p90 * ms_per_s, {digits}), ' ms')
tile.{name}.range  Range of a tile [1] = where(evidence.{name}.p90 >= constant.long_time,
            up_to(tile.{name}.range.low, tile.{name}.range.high), tile.{name}.range.short)
tile.{name}  Line of a tile [1] = or_not_known(if_known(tile.{name}.range, metrics.{name}))
tile.{name}.definition  Definition of a tile [1]
            = or_not_known(with_floor(told.{name}, floor.{name}, {digits}))

for name | unit | shown in ttft | ms | * ms_per_s; tpot | ms | * ms_per_s; e2e | s |
tile.{name}.long  A long time of a tile [1] = long_time(number_of(metrics.{name}))
tile.{name}.number  Number of a tile [{unit}]
            = where(number_of(metrics.{name}) >= constant.long_time.from.min, tile.{name}.long,
            number_of(metrics.{name}) {shown})

when request_rate
over summary.tile.ttft.definition = or_not_known(where(overloaded,
            join('overloaded: the queue grows; mean over a load of ', text(inputs.load_duration), ' s'),
            with_floor(told.ttft, floor.ttft, 0)))

[summary] What limits it | aside
title.split Chart title [1] = or_not_known(where(can_be, join('Prefill is limited by ', prefill.bottleneck,
            ', decode by ', decode.bottleneck), 'What limits a plan that cannot be: not known'))
for p | name in prefill | Prefill; decode | Decode
for limit in compute; memory; network; overhead
split.{p}.{limit}  {name}, share of {limit} [1] = where(can_be, {p}.bound.{limit} / {p}.time, 0)

[summary] Memory of the fullest accelerator | aside
title.memory  Chart title [1] = or_not_known(join(rounded(in_gb(fullest.memory.used), 1), ' of ',
            rounded(in_gb(fullest.hardware.memory_capacity), 1), ' GB used: room for ',
            text(decode.memory.capacity_sequences), ' sequences'))
for part | name | bytes in weights | weights | fullest.memory.weights; kv | KV cache | fullest.memory.kv;
            activations | activations | (fullest.memory.activations + fullest.memory.logits);
            runtime | runtime | fullest.memory.reserve; free | free | fullest.memory.free;
            reserve | reserve | fullest.memory.outside
memory.{part}  {name} [GB] = in_gb({bytes})
memory.{part}.label  Label, {name} [1] = join('{name} ', rounded(summary.memory.{part}, 1))

[summary] Groups of modules in a pass | each group of modules | aside
{p}.group.{n}  Group {n} [1] := '{label}'
{p}.number.{n}  Number {n} [number] := {n}
{p}.key.{n}  Key [ms] = sum_where({p}.times_pass, {p}.groups_pass, {p}.group.{n}) * ms_per_s *
            (1 + {p}.number.{n} * checks.tolerance) + {p}.number.{n} * checks.tolerance

[summary] Groups of modules in a pass, the largest first | each rank of groups | aside
{p}.rank.{n}  Rank {n} [number] := {n}
{p}.entry.{n}  Entry [number] = match(nth_largest([{p}.key.*], {p}.rank.{n}), [{p}.key.*])
{p}.sorted.{n}  Group [1] = index([{p}.group.*], {p}.entry.{n})
{p}.label.{n}  Label [1]
            = where(all(can_be, index([{p}.key.*], {p}.entry.{n}) > (1 + {p}.entry.{n}) * checks.tolerance),
            join({p}.sorted.{n}, '   ', rounded(index([{p}.key.*], {p}.entry.{n}), 2)), '–')

[summary] The same by what limits them | each limit of a rank | aside
{p}.{limit}.{n}  Time by {limit} [ms] = where(can_be,
            sum_where({p}.times_{limit}, {p}.groups_{limit}, {p}.sorted.{n}) * ms_per_s, 0)

[summary] Time of a pass | aside
for p | name | what in prefill | Prefill | Prefill; decode | Decode | Decode step
{p}.two_largest  Two largest [1] = (index([{p}.key.*], {p}.entry.1) + index([{p}.key.*], {p}.entry.2)) /
            ({p}.time * ms_per_s)
{p}.time    Time of a pass [1] = told_long({p}.time, join(rounded({p}.time * ms_per_s, 1), ' ms'))
title.{p}   Chart title [1] = or_not_known(where(can_be, join('{what}, ', summary.{p}.time, ': ',
            index([{p}.group.*], {p}.entry.1), ' and ', index([{p}.group.*], {p}.entry.2), ' take ',
            percent({p}.two_largest, 0)), '{name}: not known'))

[summary] Roofline of an accelerator that decodes | aside
title.roofline  Chart title [1] = or_not_known(join('Peak ', text(decode.peak / flops_per_tflop),
            ' TFLOP/s, memory ', text(in_gb(decode.hardware.memory_bandwidth)), ' GB/s'))
roof.left   left [FLOP/B] := 1
roof.right  right [FLOP/B] := 10000
for end in left; right
roof.{end}.reached  {end}, reached [FLOP/B] = roof.{end}

for roof | peak | bandwidth in datasheet | decode.peak | decode.hardware.memory_bandwidth;
            reached | roof.flops | roof.bytes
roof.{roof}.ridge  Ridge, {roof} [FLOP/B] = {peak} / {bandwidth}
roof.{roof}.rate.0  Roof, {roof} [TFLOP/s] = min({peak}, roof.left * {bandwidth}) / flops_per_tflop
roof.{roof}.rate.1  Roof, {roof} [TFLOP/s]
            = min({peak}, {peak} / {bandwidth} * {bandwidth}) / flops_per_tflop
roof.{roof}.rate.2  Roof, {roof} [TFLOP/s] = min({peak}, roof.right * {bandwidth}) / flops_per_tflop

[summary] Modules below the roofs | each module on the roofline | aside
{p}.{block}.intensity  FLOP per byte, {p}, {label} [FLOP/B] = {p}.{block}.flops / {p}.{block}.bytes
{p}.{block}.rate  Rate, {p}, {label} [TFLOP/s]
            = {p}.{block}.flops / {p}.{block}.layer_time / flops_per_tflop

[summary] How far one may trust it | aside
title.curve Chart title [1] = or_not_known(where(is_number(metrics.interactivity),
            join('Now ', text(metrics.interactivity), ' tokens/s per user, ',
            text(metrics.output_tokens_per_s_per_accelerator), ' per accelerator'),
            'Speed for a user: not known'))
profile     Efficiency profile [1]
            = join('Efficiency profile ', efficiency.profile_in_use, ', wider ones where it is silent')
ranges      Ranges [1] = join('Ranges: 80 % of runs, ', or_not_known(evidence.name))
floors      Above the floors [1] = join('Above the independent floor: TTFT ',
            above_floor(metrics.ttft, floor.ttft), ', TPOT ', above_floor(metrics.tpot, floor.tpot))
when near_runs
degrees     Degrees [1] = nearest.degrees_here
nearest_run Run at the least distance [1] = nearest.told
nearest     Nearest measured run [1] = if_error(
            where(nearest.near > 0, nearest_run, 'Nothing near was measured'),
            'Nearest measured run: not known')

[summary] Of the workbook | when workbook | aside
status      Alerts and changes [1] = join(checks.alerts, ' · ', checks.stamp)
checks      Checks [1] = join(checks.headline, '; ', checks.alerts)
advice      Advice [1]
            = where(checks.master == 1, 'Every formula cell can be recomputed: mantile verify FILE.xlsx',
            'Failing checks are listed on Audit with their reason')
live        Live results [1] = join('Live results: ', checks.stamp)
for name | digits in ttft | 0; tpot | 1
generated.{name}.short  A time as generated, if short [1] = if_known(
            join(rounded(stamp.serving.{name} * ms_per_s, {digits}), ' ms'), stamp.serving.{name})
generated.{name}  A time as generated [1]
            = told_long(number_of(stamp.serving.{name}), generated.{name}.short)

generated   Results as generated [1] = join('TTFT ', generated.ttft, ' · TPOT ', generated.tpot,
            where(is_number(stamp.serving.output_tokens_per_s),
            join(' · ', text(stamp.serving.output_tokens_per_s), ' tokens/s'), ''))
