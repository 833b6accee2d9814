# Requests that decode where prefill has workers of its own, by Little's law.
#
# A request is either with the workers that prefill, or on its way from them, or in decode. How many decode
# follows from the time of each part. The decode step is taken as a line over the requests in it, and beside
# it the reading of routed experts, which follows the share of them that these requests touch: with both, the
# number has a closed form. It is taken three times. The first line leads from one request to all of them; the
# step waits for memory at first and for FLOPs later, so that this line lies above it. The next ones lead to
# the step worked out at the estimate before, as does the share of the experts.
when disaggregated

define of_few = disaggregated.one.decode.coverage_busiest

[disaggregated] Few requests in decode | one, or one in each part of a pipeline | again disaggregated.all
few         Few requests in decode [request]
            = min(decode.memory.batch, one_request * where(all(inputs.decode_pp > 1, inputs.microbatches > 0),
            inputs.microbatches, inputs.decode_pp))
            ; one, or one in each part into which a pipeline cuts the batch

# A closed loop of requests: each is away from decode, then takes its steps, and another follows.
[disaggregated] Requests in decode, estimate 0 | by Little's law | again disaggregated.one
away        Time of a request outside decode [s] = serving.first_token + prefill_used + serving.transfer
            ; without a wait
steps       Decode steps of a request [1] = max(smallest, inputs.output_tokens / emitted - 1)
            ; the first token comes from prefill
around      Decode steps around the prefill of a request [1]
            = min(1, max(0, slots - 1)) * efficiency.step_lag + half * inputs.receive_interval
            ; as long as others decode
most        Most requests per second that reach a decode worker [request/s]
            = one_request / serving.prefill_service * inputs.dp / inputs.decode_dp
            ; prefill workers can pass on no more
when routed_experts
reading     Time to read all experts [s] = sum(*[{time} * {layers} each experts_of_few]) / of_few
            ; from those that one request reads: its step does little else
reading_of_step  Time of a step to read all experts [s] = reading * one.serving.decode_step / one.decode.time
            ; a pass for each part of a pipeline's batch, on the fullest stage
touched     Experts touched at the start of the line [1]
            = where(decode.memory.batch > few, of_few, all.decode.coverage_busiest)

first       Step at the start of the line [s]
            = where(decode.memory.batch > few, one.serving.decode_step, all.serving.decode_step)
            ; the reading of routed experts apart
over disaggregated.first = it - reading_of_step * touched | when routed_experts
further     What the step grows by along the line [s]
            = max(0, all.serving.decode_step - one.serving.decode_step) ; the reading of routed experts apart
over disaggregated.further
            = max(0, all.serving.decode_step - one.serving.decode_step - reading_of_step *
            (all.decode.coverage_busiest - of_few)) | when routed_experts
slope       Step time per further request in decode [s]
            = where(decode.memory.batch > few, further / max(smallest, (decode.memory.batch - few) /
            one_request), 0) ; none up to few requests
fixed       Step time without requests in decode [s]
            = max(smallest * one.serving.decode_step, first - slope * (few / one_request))
            ; next to none where requests take longer than as many steps of one
fixed_0     Steps of a request, without others, estimate 0 [s] = steps * fixed
over disaggregated.fixed_0
            = steps * (fixed + reading_of_step * all.decode.coverage_busiest) | when routed_experts
slope_0     Time a request adds to the steps of another, estimate 0 [s] = steps * slope
around_0    Steps of a request with those around its prefill, against those alone, estimate 0 [1]
            = 1 + around / steps
half_0      Half of a request's time by itself, less what all others add, estimate 0 [s]
            = half * (away + fixed_0 * around_0 - slope_0 * (decode.memory.requests / one_request))
square_0    What the root is taken of, estimate 0 [s^2]
            = half_0 * half_0 + fixed_0 * around_0 * slope_0 * (decode.memory.requests / one_request)
in_decode_0  Requests in decode by the time they take, estimate 0 [request]
            = fixed_0 * decode.memory.requests / (half_0 + square_0**half)
            ; as many come to decode as leave it: a quadratic equation @ Little's law
passed_on_0  Requests in decode if prefill is never idle, estimate 0 [request]
            = most * fixed_0 / max(smallest, 1 - most * slope_0 / one_request) @ Little's law
requests_0  Requests in decode, estimate 0 [request]
            = max(one_request, min(decode.memory.batch, in_decode_0, passed_on_0))

# Beside the line the experts that an estimate touches, and how their share grows there; with the wait for a
# prefill worker at the estimate before.
for n | of | title in 1 | estimate_1 | Requests in decode, estimate 1; 2 | estimate_2 | Requests in decode
[disaggregated] {title} | by Little's law | again disaggregated.{of}
when routed_experts
line_touched_{n}  Experts touched at the start of the line, estimate {n-1} [1]
            = where(requests_{n-1} > few, of_few, {of}.decode.coverage_busiest)

line_first_{n}  Step at the start of the line, estimate {n-1} [s]
            = where(requests_{n-1} > few, one.serving.decode_step, {of}.serving.decode_step)
            ; the reading of routed experts apart
over disaggregated.line_first_{n} = it - reading_of_step * line_touched_{n} | when routed_experts
line_further_{n}  What the step grows by along the line, estimate {n-1} [s]
            = max(0, {of}.serving.decode_step - one.serving.decode_step) ; the reading of routed experts apart
over disaggregated.line_further_{n}
            = max(0, {of}.serving.decode_step - one.serving.decode_step - reading_of_step *
            ({of}.decode.coverage_busiest - of_few)) | when routed_experts
line_slope_{n}  Step time per further request in decode, estimate {n-1} [s]
            = where(requests_{n-1} > few, line_further_{n} / max(smallest, (requests_{n-1} - few) /
            one_request), 0) ; none up to few requests
line_fixed_{n}  Step time without requests in decode, estimate {n-1} [s]
            = max(smallest * one.serving.decode_step, line_first_{n} - line_slope_{n} * (few / one_request))
            ; next to none where requests take longer than as many steps of one
when routed_experts
growth_{n}  Growth of the time to read experts, with the requests in decode, estimate {n-1} [s]
            = reading_of_step * share_growth({of}.decode.coverage_busiest)
            ; for each per cent of requests, times a hundred
tangent_{n}  Step time without requests in decode, with experts, estimate {n-1} [s]
            = line_fixed_{n} + reading_of_step * {of}.decode.coverage_busiest - growth_{n}

step_{n}    Decode step, estimate {n-1} [s] = line_fixed_{n} + line_slope_{n} * (requests_{n-1} / one_request)
over disaggregated.step_{n}
            = tangent_{n} + (line_slope_{n} + growth_{n} * one_request / requests_{n-1}) * (requests_{n-1} /
            one_request) | when routed_experts
whole_{n}   Time of a request without that wait, estimate {n-1} [s] = away + (steps + around) * step_{n}
half_wait_{n}  Half of what prompts of others exceed that time by, estimate {n-1} [s]
            = half * (serving.prefill_others - whole_{n})
away_{n}    Time of a request outside decode, with the wait for a prefill worker, estimate {n-1} [s]
            = away + (half_wait_{n} + (half_wait_{n} * half_wait_{n} + half * serving.prefill_others *
            serving.prefill_service)**half)
fixed_{n}   Steps of a request, without others, estimate {n} [s] = steps * line_fixed_{n}
over disaggregated.fixed_{n} = steps * tangent_{n} | when routed_experts
slope_{n}   Time a request adds to the steps of another, estimate {n} [s] = steps * line_slope_{n}
over disaggregated.slope_{n}
            = steps * (line_slope_{n} + growth_{n} * one_request / requests_{n-1}) | when routed_experts
around_{n}  Steps of a request with those around its prefill, against those alone, estimate {n} [1]
            = 1 + around / steps
half_{n}    Half of a request's time by itself, less what all others add, estimate {n} [s]
            = half * (away_{n} + fixed_{n} * around_{n} - slope_{n} * (decode.memory.requests / one_request))
square_{n}  What the root is taken of, estimate {n} [s^2]
            = half_{n} * half_{n} + fixed_{n} * around_{n} * slope_{n} * (decode.memory.requests /
            one_request)
in_decode_{n}  Requests in decode by the time they take, estimate {n} [request]
            = fixed_{n} * decode.memory.requests / (half_{n} + square_{n}**half)
            ; as many come to decode as leave it: a quadratic equation @ Little's law
passed_on_{n}  Requests in decode if prefill is never idle, estimate {n} [request]
            = most * fixed_{n} / max(smallest, 1 - most * slope_{n} / one_request) @ Little's law
requests_{n}  Requests in decode, estimate {n} [request]
            = max(one_request, min(decode.memory.batch, in_decode_{n}, passed_on_{n}))
