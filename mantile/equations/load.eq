# Requests that arrive at a rate of their own: how many are in flight, how loaded the deployment is, how long
# they wait. A decode step is taken as a line between one request and the batch of the Decode part. Arrivals
# are random (Poisson), and prompts are served one after the other: waits are those of a single server with
# fixed service times. Beyond a load of 0.8 these forms no longer hold.
when request_rate

define steps_of_request = inputs.output_tokens / emitted
define replicas = inputs.decode_dp
define of_one = single.decode.time | when not launches
define of_one = load.single | when launches
define fewer = serving.decode_step - of_one | when not routed_experts
define fewer = serving.decode_step - of_one - load.reading * (decode.coverage_busiest -
  single.decode.coverage_busiest) | when routed_experts
define slope_below = load.slope | when not routed_experts
define slope_below = load.slope + load.slope_experts | when routed_experts
define slope_beyond = load.slope_above | when not routed_experts
define slope_beyond = load.slope_above + load.slope_experts | when routed_experts
define slope_used = where(load.decoding <= decode.batch, slope_below, slope_beyond)
define fixed_used = where(load.decoding <= decode.batch, load.fixed, load.fixed_above)
define all_further = all_slots.serving.decode_step - of_one | when not routed_experts
define all_further = all_slots.serving.decode_step - of_one - load.reading *
  (all_slots.decode.coverage_busiest - single.decode.coverage_busiest) | when routed_experts
define one_first = of_one | when not routed_experts
define one_first = of_one - load.reading * single.decode.coverage_busiest | when routed_experts
define fixed_for_all = load.line_fixed | when not routed_experts
define fixed_for_all = load.line_fixed + load.reading * all_slots.decode.coverage_busiest | when
  routed_experts
define settled = load.estimate | when not routed_experts
define settled = load.estimate_3 | when routed_experts
define before_decode = all_slots.load.wait_steady + all_slots.serving.prefill_through | when not disaggregated
define before_decode = all_slots.load.wait_steady + all_slots.serving.prefill_through +
  all_slots.serving.transfer | when disaggregated

define share_growth(share) = -decode.efficiency.routing_spread * max(smallest, 1 - share) * ln(max(smallest, 1
  - share))

# With all slots taken, and at an estimate of how many are: how long prompts hold up the slowest stage of a
# pipeline is taken against the paces of stages with all slots taken.
again all_slots | , all slots taken | decode.memory.batch = load.most; decode.memory.allowed
            = load.most; decode.batch = load.most_decoding; inputs.concurrency = load.seats
again estimate.1 | , estimate 0 | decode.batch = load.estimate_0; decode.memory.batch
            = load.estimate_0; inputs.concurrency = load.in_flight_0; serving.decode_pace.*
            = all_slots.serving.decode_pace.*; serving.decode_pace = all_slots.serving.decode_pace
again estimate.2 | , estimate 1 | decode.batch = load.estimate_1
again estimate.3 | , estimate 2 | decode.batch = load.estimate_2

[load] Batch slots | what follows from a request rate by Little's law
most        Most requests in a batch [request]
            = max(1, min(decode.memory.capacity_sequences, where(inputs.decode_max_requests > 0,
            inputs.decode_max_requests, decode.memory.capacity_sequences)))

[load] Requests that decode | what follows from a request rate by Little's law | again all_slots
most_decoding  Requests that decode with all slots taken [request]
            = where(riding > 0, max(1, min(most, all_slots.decode.most)), most)
when launches
single      Decode step with one request [s] = max(single.decode.time, serving.decode_host_of_one)

when routed_experts
reading     Time to read all experts [s]
            = sum(*[{time} * {layers} each experts_of_one]) / single.decode.coverage_busiest
            ; from those that one request reads: its step does little else

[load] Load | one replica; requests arrive at random, whatever is in flight | again all_slots
occupied    Time a prompt occupies the pipeline, work done again included [s]
            = serving.prefill_service + interrupting * decode.memory.redone * serving.prompt_delay
rate        Requests per second of a replica [request/s] = inputs.request_rate / replicas
delay       Time a prompt delays a step [s]
            = interrupting * efficiency.interference * (serving.prompt_delay * (1 + decode.memory.redone))
            ; 0 where prompts have workers of their own
seats       Batch slots of all replicas [request] = min(most_requests, most * replicas)
full_step   Decode step with all slots taken [s] = all_slots.serving.decode_step
limit       Most requests per second of a replica [request/s]
            = one_request / (delay + steps_of_request * full_step / (most_decoding / one_request))
            ; saturation: all slots are taken all the time
worst       Step and stalls with all slots taken [s]
            = full_step + delay * (most_decoding / one_request) / steps_of_request
prompts     Share of the time prompts are prefilled [1]
            = inputs.request_rate / inputs.dp * occupied / one_request
            ; of a replica, or of a worker that prefills
utilisation  Load [1] = max(rate / limit, prompts)
passed_on   Requests per second of a replica that reach decode [request/s] = rate / max(1, prompts)

# Lines through the step of the Decode part: for fewer requests, and for more. Experts apart, each goes to the
# step with one request, or with all slots taken. What more experts take grows as it does at the batch.
when routed_experts
slope_experts  Time to read more experts, per further request [s]
            = reading * share_growth(decode.coverage_busiest) / max(1, decode.batch / one_request)

slope       Step time per further request [s] = max(0, fewer) / max(1, decode.batch / one_request - 1)
            ; the reading of routed experts apart
all_longer  Step with all slots taken, longer than that of the batch [s]
            = all_slots.serving.decode_step - serving.decode_step
over load.all_longer = it - reading * (all_slots.decode.coverage_busiest - decode.coverage_busiest)
  | when routed_experts
slope_above  Step time per request beyond the batch [s]
            = where(most_decoding > decode.batch, max(0, all_longer) / max(1, (most_decoding - decode.batch) /
            one_request), 0) ; none where the batch has all that may decode; routed experts apart
fixed       Step time without requests [s] = serving.decode_step - slope_below * (decode.batch / one_request)
fixed_above  Step time without requests, beyond the batch [s]
            = serving.decode_step - slope_beyond * (decode.batch / one_request)

# Steps have the time that prompts and further requests leave; where they leave none all slots are taken.
for s | tpot | place | slope in | tpot_below | up to the batch | slope_below;
  _above | tpot_above | beyond the batch | slope_beyond
work{s}     Time a request adds to the steps of others, {place} [s] = delay + steps_of_request * {slope}
left{s}     Share of the time left for steps themselves, {place} [1]
            = max(smallest, 1 - passed_on * work{s} / one_request)
{tpot}      Step and stalls, {place} [s] = where(left{s} > smallest, fixed{s} / left{s}, worst)

tpot_least  TPOT of a request by itself at this rate [s]
            = of_one / max(smallest, 1 - passed_on * delay / one_request)
            ; prompts of others take their share of the time
decoding_below  Requests that decode, if up to the batch [request] = passed_on * steps_of_request * tpot_below
            @ Little's law
tpot        TPOT at this rate [s]
            = max(of_one, min(max(tpot_least, where(decoding_below <= decode.batch, tpot_below, tpot_above)),
            worst)) ; no step is shorter than that of one request
decoding    Requests that decode [request] = min(most_decoding, passed_on * steps_of_request * tpot)
            @ Little's law
step_below  Decode step, up to the batch [s] = fixed + slope_below * (decoding / one_request)
step_above  Decode step, beyond the batch [s] = fixed_above + slope_beyond * (decoding / one_request)
step        Decode step at this rate [s]
            = max(of_one, min(where(decoding <= decode.batch, step_below, step_above), full_step))
            ; no shorter than with one request, no longer than with all slots taken
stall       Prefill stall per token at this rate [s] = where(delay > 0, max(0, tpot - step), 0)
            ; none where prompts delay no step

# The mean wait of a prompt for its turn: if the queue does not grow, and as it is. Where more requests arrive
# than are served the queue grows as long as they do.
free        Share of the time without prompts [1] = max(smallest, 1 - prompts)
backlog     Wait of the last to arrive [s] = inputs.load_duration * max(0, utilisation - 1)
            ; where more requests arrive than are served, for as long as they do
wait_steady  Mean wait if the queue does not grow [s]
            = min(inputs.load_duration * half, half * prompts * (occupied * spread.waits) / free)
            @ single server, fixed service time, random arrivals
wait        Mean wait at this rate [s] = wait_steady + backlog * half
served      Requests per second that are served [request/s] = inputs.request_rate / max(1, utilisation)

# The requests in flight that follow from a request rate, in closed form and without a circle. Little's law
# needs the time of a request, which needs the batch. The step time is taken as a line over the batch, and
# beside it the reading of routed experts, which follows the share of them that the batch touches. On a line,
# the batch at which requests arrive as fast as they leave has a closed form. With experts it is taken three
# times: with the share that all slots touch, then twice with the share at the estimate before and how fast it
# grows there, which is Newton's method.
[load] Concurrency, estimate 0 | what follows from a request rate by Little's law | again all_slots
longest_delay  Longest time a prompt delays a step [s]
            = interrupting * efficiency.interference * all_slots.load.occupied
            ; as if nothing of it fitted into the waits of decode
line        Step time per request, from one request to all slots taken [s]
            = max(0, all_further) / max(1, most_decoding / one_request - 1) ; routed experts apart
line_fixed  Step time without requests, on that line [s] = one_first - line ; routed experts apart
line_left_0  Share of the time left for steps themselves, on that line, estimate 0 [1]
            = max(smallest, 1 - rate * (longest_delay + steps_of_request * line) / one_request)
filling_0   Requests that decode, per second of a step, estimate 0 [request/s]
            = rate * steps_of_request / line_left_0 ; as many as arrive while a request generates its tokens
            @ Little's law
estimate_0  Requests of a replica that decode, estimate 0 [request]
            = max(one_request, min(most_decoding, filling_0 * fixed_for_all)) @ Little's law
in_flight_0  Requests in flight, estimate 0 [request] = min(seats, estimate_0 * replicas) ; of all replicas

[load] Concurrency, estimate 1 | what follows from a request rate by Little's law | again estimate.1
line_left   Share of the time left for steps themselves, on that line [1]
            = max(smallest, 1 - rate * (estimate.1.load.delay + steps_of_request * line) / one_request)
filling     Requests that decode, per second of a step [request/s] = rate * steps_of_request / line_left
            ; as many as arrive while a request generates its tokens @ Little's law
when not routed_experts
estimate    Requests of a replica that decode [request] = min(most_decoding, filling * line_fixed)
            @ Little's law

when routed_experts
estimate_1  Requests of a replica that decode, estimate 1 [request]
            = max(one_request, min(most_decoding, filling * fixed_for_all)) @ Little's law

for n | in_slots in 2 | max(one_request, min(most_decoding, filling * line_fixed_2 / kept_2));
  3 | min(most_decoding, filling * line_fixed_3 / kept_3)
[load] Concurrency, estimate {n} | by Newton's method | again estimate.{n} | when routed_experts
growth_{n}  Growth of the share of the experts touched, estimate {n-1} [1]
            = share_growth(estimate.{n}.decode.coverage_busiest)
            ; for each per cent of requests, times a hundred
line_fixed_{n}  Step time without requests, estimate {n-1} [s]
            = line_fixed + reading * (estimate.{n}.decode.coverage_busiest - growth_{n})
kept_{n}    Share of the requests that more experts do not keep longer, estimate {n-1} [1]
            = max(smallest, 1 - filling * reading * growth_{n} / estimate_{n-1})
estimate_{n}  Requests of a replica that decode, estimate {n} [request] = {in_slots} @ Little's law

[load] Concurrency | what follows from a request rate by Little's law
batch_in_flight  Requests of a replica in flight [request] = settled + rate * before_decode @ Little's law
batch_whole  Requests in flight, at most all slots [request] = max(1, min(seats, batch_in_flight * replicas))
concurrency  Concurrency at the request rate [request] = where(is_number(batch_whole), batch_whole, 1)
            ; on average

# A concurrency typed beside the rate is the most that may be in flight. Where the rate needs more, so many
# are kept in flight, and the others wait outside.
[load] State | at the rate
open        Requests arrive at a rate (open loop) [flag]
            = where(all(inputs.request_rate > 0, concurrency <= inputs.concurrency), 1, 0)
            ; not where fewer may be in flight than the rate needs
calm        State below saturation [1] = where(open > 0, 'stable', 'closed loop')
borne       State below overload [1] = where(all(open > 0, utilisation > most_load), 'saturated', calm)
            ; beyond this load waits are no longer what the forms say
state       State [1] = where(all(open > 0, utilisation > 1), 'overloaded', borne)
            ; the queue grows for as long as the load lasts

[load] Requests in flight | at the rate
in_flight   Requests in flight [request] = where(load.open > 0, load.served * serving.e2e, inputs.concurrency)
            ; of all replicas @ Little's law
