# How far requests are from the mean: p50, p90, p95, p99 of TTFT, of gaps between tokens and of end to end.
# Mean and
# variance of the parts of a request are worked out one by one; parts are taken to be independent of each
# other, so
# that variances add up. The time of a request is then taken from a lognormal distribution with that mean and
# variance. A gap between tokens is that of a step without prompts, or of one that carries some.

define in_burst(share) = where(first_share > share, burst_first + (burst_last - burst_first) * (1 - share /
  max(smallest, first_share)), 0)

[serving] Percentiles of TTFT | mean and variance of its parts; lognormal
interrupts  Prompts interrupt decode [flag] = inputs.continuous
over serving.interrupts = it * (1 - inputs.disaggregated) | when disaggregated
varies_prefill  Time of a prompt that grows with its length, against TTFT [1]
            = where(interrupts > 0, prompt_delay, prefill) / ttft_steady
over serving.varies_prefill
            = where(interrupts > 0, prompt_delay, prefill_fetched) / ttft_steady | when prefixes
variance_prompt  Variance of TTFT by the lengths of prompts [1]
            = spread.prompts * varies_prefill * varies_prefill / where(inputs.continuous > 0, 1, slots)
            ; of all variances against the square of TTFT; in a static batch prompts are prefilled together
when request_rate
backlog_in_loop  Prompts before one that nothing hides, in a closed loop [s]
            = interrupts * max(0, queue - wait_mean)
over serving.backlog_in_loop = it + prefill_backlog | when disaggregated

backlog     Wait behind prompts that all have [s] = interrupts * max(0, queue - wait_mean)
            ; more prompts than are served
over serving.backlog = it + prefill_backlog | when disaggregated
over serving.backlog = where(load.open > 0, load.wait - load.wait_steady, backlog_in_loop) | when request_rate
wait_share  Waits behind prompts against TTFT [1] = queue / ttft_steady
over serving.wait_share = (queue + prefill_wait) / ttft_steady | when disaggregated
wait_common  Part of these waits that all have, against TTFT [1] = min(wait_share, backlog / ttft_steady)
wait_rest   The rest of these waits, against TTFT [1] = wait_share - wait_common
wait_service  Time a prompt occupies the pipeline, against TTFT [1] = prefill_service / ttft_steady
            ; at a rate with the step that it has to wait for
over serving.wait_service
            = (prefill_service + interrupts * any_time * step_used) / ttft_steady | when any_time
wait_single  What waits for a single server vary by, against TTFT [1]
            = (third + third) * wait_service * (1 + spread.prompts + spread.prompts)
            @ single server, random arrivals
wait_longest  Prompts of all others, against TTFT [1] = line / ttft_steady
over serving.wait_longest = (line + prefill_before) / ttft_steady | when disaggregated
wait_most   Largest variance of these waits, against the square of TTFT [1]
            = wait_share * max(0, wait_longest - wait_share)
            ; none is below 0 or beyond the prompts of all others
wait_varies  What the rest of these waits varies by, against TTFT [1]
            = min(wait_single, wait_most / max(smallest, wait_rest) - wait_rest)
            ; in a closed loop no wait is longer than the prompts of all others
over serving.wait_varies = where(load.open > 0, wait_single, it) | when request_rate
variance_wait  Variance of TTFT by the rest of these waits [1] = wait_rest * (wait_rest + wait_varies)
variance_common  Variance of TTFT by the part that all have [1]
            = wait_common * (wait_service * spread.prompts)
over serving.variance_common
            = wait_common * where(load.open > 0, third * wait_common, wait_service * spread.prompts) | when
            request_rate
wait_spare  The longest of these waits beyond the mean [s] = max(0, wait_longest - wait_share) * ttft_steady
            ; prompts of all others; at a rate there is no longest
over serving.wait_spare = where(load.open > 0, far * far * ttft_steady, it) | when request_rate
slot_time   Time a request holds its slot, never none [s] = max(service_time, smallest * ttft_steady)
            ; decode workers hold no request of one token
over serving.slot_time = max(slot_held, smallest * ttft_steady) | when disaggregated
held_varies  Variance of the time a request holds its slot, against its square [1]
            = min(1, spread.outputs * (generation / slot_time) * (generation / slot_time))
ends_vary   Variance of the time between two slots that end, against its square [1]
            = held_varies + (1 - held_varies) * (1 - 1 / slots) / (1 + seat_wait / slot_time)
variance_slot  Variance of TTFT by the wait for a batch slot [1]
            = inputs.continuous * (seat_wait / ttft_steady) * (service_time / ttft_steady) / slots * ends_vary
            ; where there are more requests than slots
over serving.variance_slot
            = inputs.continuous * (seat_wait / ttft_steady) * (slot_held / ttft_steady) / slots * ends_vary |
            when disaggregated
varies_output  Generation against TTFT [1] = generation / ttft_steady
variance_rest  Variance of TTFT by the rest of a static batch [1]
            = (1 - inputs.continuous) * spread.outputs * varies_output * varies_output * (1 - 1 / (slots *
            slots)) ; the longest output less that of the request before
when any_time
varies_step  Step against TTFT [1] = step_used / ttft_steady
variance_step  Variance of TTFT by the step that runs [1]
            = interrupts * any_time * half * half * third * varies_step * varies_step
            ; a request arrives at any time of it
over serving.ttft_variance = it + variance_step

ttft_variance  Variance of TTFT against its square [1]
            = variance_prompt + variance_wait + variance_common + variance_slot + variance_rest
ttft_deviation  TTFT, standard deviation of its logarithm [1] = ln(1 + ttft_variance)**half
ttft_median  TTFT, median in steady state [s] = ttft_steady * exp(-half * ttft_deviation * ttft_deviation)
burst_first  TTFT of the first request of the warm-up burst [s] = base + cold_start + slot_waits
burst_last  TTFT of the last request of the warm-up burst [s]
            = max(burst_first, burst + slot_waits + (burst + slot_waits - burst_first))
            ; as far beyond the mean as the first is below
for p | name | share in p50 | median | half_left; p90 | p90 | one_in_ten; p95 | p95 | one_in_twenty;
  p99 | p99 | one_in_hundred
burst_{p}   TTFT of the warm-up burst, {name} of all [s] = in_burst({share})
            ; its requests lie evenly, and beyond all others; 0: none of them is so late

ttft_last   TTFT, behind the prompts of all others [s] = ttft_steady + wait_spare
ttft_own    TTFT, standard deviation of the logarithm by the own prompt [1] = ln(1 + spread.prompts)**half
ttft_p50    TTFT, median (median TTFT) [s] = max(ttft_median, burst_p50)
for p in p90; p95; p99
ttft_{p}    TTFT, {p} ({p} TTFT) [s]
            = max(min(ttft_median * exp(at_{p} * ttft_deviation), ttft_last * exp(at_{p} * ttft_own)),
            burst_{p})

[serving] Percentiles of gaps between tokens | steps with prompts and without
gap_parts   Steps that carry a prompt [1] = where(scheduler.first > 0, 1, max(1, 1 / prompts_per_step))
            ; of the size that the token budget allows
gap_delay   Time by which a prompt delays a step [s] = prompt_delay / gap_parts
gap_prompts  Prompts in a gap between tokens [1] = stall_used / gap_delay ; on average
gap_none    Share of the gaps without prompts [1] = exp(-gap_prompts) ; prompts come at random
gap_variance  Variance of the mean gap of a request by its prompts, against the square of TPOT [1]
            = gap_prompts * (1 + spread.prompts) / max(1, inputs.output_tokens / emitted - 1) * (gap_delay /
            gap_used) * (gap_delay / gap_used)
when request_rate
step_slope  Step time per further request in use [s] = slope_used
step_fixed  Step time without requests in use [s] = fixed_used
step_left   Share of the time left for steps themselves, in use [1]
            = where(load.open > 0, min(1, max(smallest, step_fixed / gap_used)), 1)
running     Requests that decode at the rate [1] = load.decoding / one_request
running_variance  Variance of the requests that decode [1]
            = load.open * min(running * running, running / (step_left * step_left))
            ; they come at random, but a step that gets longer keeps them longer
step_share  Step against TPOT [1] = step_used / gap_used
over serving.step_variance = running_variance * (step_slope / step_used) * (step_slope / step_used)
over serving.tpot_variance
            = (third + third) * step_variance * step_share * step_share + min(1, gap_variance / (step_left *
            step_left))

step_variance  Variance of a step by the requests that decode, against its square [1] = 0 * gap_none
            ; a closed loop keeps them
tpot_variance  Variance of the mean gap of a request against its square [1] = min(1, gap_variance)
            ; requests that are there together see the same
gap_some    Share of the gaps with prompts [1] = 1 - gap_none
gap_added   Time that prompts add to a gap that has some [s]
            = where(gap_some > smallest, gap_prompts * gap_delay / gap_some, 0)
gap_moment  Second moment of that time against its square [1]
            = where(gap_some > smallest, max(1, gap_some * (1 + (1 + spread.prompts) / gap_prompts)), 1)
            ; so many prompts at random, of lengths that vary
gap_deviation  Standard deviation of its logarithm [1] = ln(gap_moment)**half
gap_step    Standard deviation of a step by the requests that decode [s] = step_used * step_variance**half
gap_median  Median of that time [s] = gap_added / gap_moment**half
for p | name | share | beyond in p50 | median | half_left | 0; p90 | p90 | one_in_ten | at_p90 * gap_step;
  p95 | p95 | one_in_twenty | at_p95 * gap_step; p99 | p99 | one_in_hundred | at_p99 * gap_step
gap_within_{p}  Share of the gaps with prompts up to the {name} of all [1]
            = 1 - min(1, {share} / max(smallest, gap_some))
gap_far_{p}  Place of the {name} among gaps with prompts [1]
            = (gap_within_{p}**normal_exponent - (1 - gap_within_{p})**normal_exponent) / normal_scale
            ; standard deviations of a normal distribution
itl_{p}     ITL, {name} ({name} ITL) [s]
            = step_used + where({share} < gap_some, gap_median * exp(gap_far_{p} * gap_deviation), {beyond})
            ; gap between two tokens

tpot_deviation  TPOT of a request, standard deviation of its logarithm [1] = ln(1 + tpot_variance)**half
tpot_median  TPOT of a request, median in steady state [s]
            = tpot * exp(-half * tpot_deviation * tpot_deviation)

[serving] Percentiles of end to end | mean and variance of its parts; lognormal
e2e_steady  End to end in steady state [s] = ttft_steady + generation
e2e_first   TTFT against end to end [1] = ttft_steady / e2e_steady
e2e_generation  Generation against end to end [1] = generation / e2e_steady
e2e_variance  Variance of end to end against its square [1]
            = ttft_variance * e2e_first * e2e_first + (spread.outputs + tpot_variance) * e2e_generation *
            e2e_generation ; a late first token, a long output, slow gaps
e2e_deviation  End to end, standard deviation of its logarithm [1] = ln(1 + e2e_variance)**half
e2e_median  End to end, median in steady state [s] = e2e_steady * exp(-half * e2e_deviation * e2e_deviation)
e2e_burst   Median TTFT with the burst beyond that without [s] = ttft_p50 - ttft_median
e2e_p50     End to end, median (median End to end) [s] = max(e2e_median + e2e_burst, ttft_p50)
for p in p90; p95; p99
e2e_{p}     End to end, {p} ({p} End to end) [s]
            = max(e2e_median * exp(at_{p} * e2e_deviation) + e2e_burst, ttft_{p})
