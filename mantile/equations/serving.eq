# From passes to what users see: TTFT, TPOT, end to end, throughput, at a concurrency or a request rate.
#
# Continuous batching: prompts of other requests interrupt decode. A new request waits behind them and, where
# memory holds fewer requests than there are, for a batch slot. Static batching: a batch prefills together,
# then decodes. Disaggregated: nothing interrupts decode; the KV cache of a prompt goes from one worker to
# another.

define emitted = constant.tokens_per_step | when not speculation
define emitted = speculation.emitted | when speculation
define requests_of_floor = decode.requests | when not request_rate
define requests_of_floor = single.decode.requests | when request_rate
define step_used = serving.decode_step | when not request_rate
define step_used = serving.step_in_use | when request_rate
define stall_used = serving.stall | when not request_rate
define stall_used = serving.stall_in_use | when request_rate
define gap_used = serving.tpot | when not speculation
define gap_used = serving.step_and_stall | when speculation
define others_used = serving.others | when not request_rate
define others_used = where(load.open > 0, load.decoding / one_request, serving.others) | when request_rate
define lag_used = efficiency.step_lag | when not any_time
define lag_used = serving.lag_in_use | when any_time
define any_time = load.open | when request_rate, not sessions
define prefill_used = serving.prefill | when not prefixes
define prefill_used = serving.prefill_fetched | when prefixes
define interrupting = inputs.continuous | when not disaggregated
define interrupting = inputs.continuous * (1 - inputs.disaggregated) | when disaggregated
define in_loop = interrupting | when not request_rate
define in_loop = interrupting * (1 - load.open) | when request_rate
define riding = interrupting * (1 - scheduler.first)
define held = serving.service_time | when not disaggregated
define held = serving.slot_held | when disaggregated
define slot_waits = serving.seat_wait | when not disaggregated
define slot_waits = serving.seat_wait + serving.prefill_wait | when disaggregated
define slots = decode.memory.batch / one_request
define held_in_batch = held | when not request_rate
define held_in_batch = where(load.open > 0, 0, held) | when request_rate
define slots_in_use = decode.memory.batch | when not request_rate
define slots_in_use = where(load.open > 0, load.most, decode.memory.batch) | when request_rate
define going_round = inputs.concurrency | when not sessions
define going_round = serving.asking | when sessions
define round_trip = serving.e2e | when not sessions
define round_trip = serving.e2e + serving.thought | when sessions
define of_prefill_workers = inputs.disaggregated | when not request_rate
define of_prefill_workers = inputs.disaggregated * (1 - load.open) | when request_rate

define prompt_tokens = inputs.input_tokens | when not prefixes
define prompt_tokens = prefix.computed | when prefixes
define launch_of_prompt = efficiency.eager_launch | when not launches
define launch_of_prompt = serving.prefill_launch | when launches
define prefill_end = prefill.lm_head.time | when not speculation
define prefill_end = prefill.lm_head.time + prefill.draft.time | when speculation
define decode_end = decode.lm_head.time | when not speculation
define decode_end = decode.lm_head.time + decode.draft.time | when speculation
define decode_beside = decode.time | when not launches
define decode_beside = decode.time + serving.decode_idle | when launches
define delay_beyond = serving.prompt_delay | when not launches
define delay_beyond = serving.prompt_beyond | when launches
define by_sessions = inputs.sessions > 0 | when not request_rate
define by_sessions = all(inputs.sessions > 0, inputs.request_rate <= 0) | when request_rate

define fullest(layers, pp, layer, end) = max(layers * layer, floor(model.layers / pp) * layer + end)
define in_burst(share) = where(first_share > share, burst_first + (burst_last - burst_first) * (1 - share /
  max(smallest, first_share)), 0)

# A prompt from arrival to the workers that decode, without any wait. A prompt goes through the stages of a
# pipeline chunk by chunk: a stage works on a chunk while the next works on the one before.
[serving] A prompt by itself | through stages, chunk by chunk | part Prefill
when not devices
prefill_layer  Time of a mean layer [s] = (prefill.time - prefill_end) / model.layers
            ; with all but the LM head

prefill_stage  Time of the fullest prefill stage [s]
            = fullest(plan.layers, inputs.pp, prefill_layer, prefill_end)
            ; layers and LM head of the stage that has most
over serving.prefill_stage = devices.prefill.slowest | when devices
prefill_chunks  Chunks of a pass [1]
            = where(inputs.continuous > 0, max(1, prompt_tokens * one_request / memory.step_tokens), 1)
            ; the last may be a part; a static batch is prefilled in one pass
prefill_repeated  Time that every pass takes again, of all passes (repeated time of all passes) [s]
            = prefill.bound.overhead + prefill.host.time ; launches, and reads from host memory
prefill_fixed  Time that every chunk takes again [s] = prefill_repeated / prefill.passes
            ; a chunk is a pass of its own
prefill_chunk  Time of a chunk through all stages [s]
            = (prefill.time - prefill_repeated) / prefill_chunks + prefill_fixed
prefill_stage_fixed  Time that every chunk takes again on a stage [s] = prefill_fixed / inputs.pp
prefill_stage_chunk  Time of a chunk on the fullest stage [s]
            = where(inputs.pp > 1, max(0, prefill_stage - prefill_repeated / inputs.pp) / prefill_chunks +
            prefill_stage_fixed, prefill_chunk)
prefill_busy  Time a prefill pass occupies the pipeline [s] = prefill_chunks * prefill_stage_chunk
            ; a stage works on a chunk while the next works on the one before
prefill_at_once  Prompt tokens in the pipeline at once [token] = of_framework(framework.pipeline_batch)
            ; 0: as many as there are
prefill_fills  Times the pipeline is filled for a prompt [1]
            = where(prefill_at_once > 0, min(prefill_chunks, max(1, prompt_tokens * one_request /
            prefill_at_once)), 1)
prefill_through  Time of a prompt through the stages [s]
            = prefill_fills * prefill_chunk + (prefill_chunks - prefill_fills) * prefill_stage_chunk
            ; the first chunk of a filling through all stages, each other one on the fullest
prefill_stage_share  Share of a pass on the fullest stage [1]
            = where(inputs.pp > 1, prefill_stage / prefill.time, 1)
prefill_launches  Launches of a prompt, all chunks [s]
            = prefill_chunks * prefill.bound.overhead / prefill.passes
prefill_service  Time a prompt occupies the pipeline (prefill service time) [s]
            = prefill_busy / max(1, prefill.requests / one_request)
when launches
prefill_launch  Time of the host to start an operation of a prompt [s]
            = where(inputs.enforce_eager == 'on', efficiency.eager_mode_launch, efficiency.eager_launch)

when counted
each operations
operations.{group}
when in_layers
operations_of.{group}  Operations of all layers, group {group} [1] = operations.{group} * {layers}

operations  Operations of a prefill pass [1] = sum(*[{count} each operations])
prefill_host  Time of the host to start the operations of a prompt [s]
            = prefill_chunks * operations * launch_of_prompt ; one by one, those of a decode step as one graph
first_token  Request handling [s] = efficiency.first_token
prefill     Prefill of the prompt [s] = max(prefill_through, prefill_host)
            ; the host starts operations while others run
prefill_tokens_per_s  Prefill tokens per second [token/s] = prefill.rank_requests * prompt_tokens / prefill
            ; of a prompt by itself; of all prompts of a static batch
when prefixes
prefill_fetched  Prefill of the prompt, its prefix fetched [s] = prefill + prefix.fetch

when disaggregated
prefill_others  Prompts of all others at a prefill worker [s]
            = max(0, inputs.concurrency / inputs.dp / one_request - 1) * prefill_service

# The way of a prompt's KV cache to a decode worker. Layers that follow prefill one by one are hidden behind
# the layers after them, so no longer than prefill takes, and never the last.
[serving] KV transfer | from prefill to decode workers | part Prefill | when disaggregated
each reach without limit
transfer_tokens  Tokens handed over [token/request] = inputs.input_tokens

each window
transfer_tokens.{limit}  Tokens handed over, {words} [token/request]
            = where({length} > 0, min({length}, inputs.input_tokens), inputs.input_tokens)

each handed
transfer.{m}  KV cache of a prompt, {name} [B]
            = one_request * {tokens} * {handed}.width * {handed}.kept * {handed}.layers

transfer_bytes  KV cache of a prompt [B] = sum([transfer.{m} each handed]) ; recurrent states are left out
each ports
{row}

transfer_network  Bandwidth of the transfer by network [B/s]
            = min(network.out * inputs.tp * inputs.cp, decode.network.out * inputs.decode_tp *
            inputs.decode_cp) ; of the workers with less
when handover
transfer_known  Bandwidth between workers, by networks and ports [GB/s]
            = max(transfer_network, transfer_link.ports.rate * bytes_per_gb * inputs.network_speed) /
            bytes_per_gb ; until another is stated

transfer_bandwidth  Bandwidth of the transfer [B/s]
            = max(transfer_network, transfer_link.ports.rate * bytes_per_gb * inputs.network_speed)
            ; as stated, or of their networks, or of the ports of both machines
over serving.transfer_bandwidth = inputs.handover_bandwidth * bytes_per_gb | when handover
transfer_latency  Latency of the transfer [s]
            = where(transfer_network >= transfer_bandwidth, efficiency.network_latency,
            transfer_link.ports.latency / us_per_s)
transfer_time  Transfer, nothing hidden [s]
            = where(transfer_bandwidth > 0, transfer_latency + transfer_bytes / transfer_bandwidth, 'no way')
            ; there is none without a link
transfer_hidden  Hidden behind prefill [s]
            = where(is_number(transfer_time), efficiency.kv_transfer_overlap * (1 - 1 / model.layers) *
            min(transfer_time, prefill_through), 0) ; of all layers but the last, no longer than prefill takes
transfer    KV transfer [s]
            = where(all(inputs.disaggregated > 0, is_number(transfer_time)), transfer_time - transfer_hidden,
            0) ; what is not hidden behind prefill

# A pipeline is as fast as its fullest stage; without graphs the host starts the operations one by one.
[serving] Operations of a decode step | whatever is in its batch | part Operations | when launches
when counted
each decode_operations
decode_operations.{group}
when in_layers
decode_operations_of.{group}  Operations of all layers, group {group} [1]
            = decode_operations.{group} * {layers}

decode_operations  Operations of a decode step [1] = sum(*[{count} each decode_operations])
decode_host_of_one  Time of the host to start the operations of a decode step of one request [s]
            = where(inputs.enforce_eager == 'on', decode_operations * decode.efficiency.eager_mode_launch, 0)
            ; one by one; 0 where a graph holds them

again single | , one request | decode.memory.batch = one_request; decode.memory.allowed = one_request;
            decode.batch = one_request

[serving] One request | part One request | again single

[serving] Launches of a decode step | without graphs | part Decode | when launches
beyond_graphs  The batch is larger than the largest graph [flag]
            = where(all(inputs.graph_max_batch > 0, decode.rank_requests > inputs.graph_max_batch), 1, 0)
            ; of a rank
decode_host  Time of the host to start the operations of a decode step [s]
            = max(decode_host_of_one, beyond_graphs * decode_operations * decode.efficiency.eager_launch)
            ; one by one; 0 where a graph holds them

[serving] Decode step | of the running batch
when not devices
decode_layer  Time of a mean layer [s] = (decode.time - decode_end) / model.layers ; with all but the LM head

decode_stage  Time of the fullest decode stage [s]
            = fullest(decode.plan.layers, inputs.decode_pp, decode_layer, decode_end)
            ; layers and LM head of the stage that has most
over serving.decode_stage = devices.decode.slowest | when devices
when not devices
decode_pace.1  Decode step by the pace of a stage with most layers [s]
            = max(decode.time, decode.microbatches * (decode.plan.layers * decode_layer)) ; in a pipeline
decode_pace.2  Decode step by the pace of the last stage [s]
            = max(decode.time, decode.microbatches * (floor(model.layers / inputs.decode_pp) * decode_layer +
            decode_end)) ; in a pipeline

when devices
each stage
decode_pace.{d}  Decode step by the pace of device {d} [s]
            = max(decode.time, decode.microbatches * devices.decode.{d}.stage) ; in a pipeline

decode_pace  Decode step by its slowest stage [s] = max(*[decode_pace.*]) ; in a pipeline
when launches
decode_idle  Time of a decode step in which accelerators wait for the host [s]
            = max(0, decode_host - where(inputs.decode_pp > 1, decode_pace, decode.time))

decode_step  Decode step [s] = where(inputs.decode_pp > 1, decode_pace, decode.time)
over serving.decode_step = max(it, decode_host) | when launches
bubble      Idle share of the fullest stage [1]
            = where(inputs.decode_pp > 1, 1 - decode.microbatches * decode_stage / decode_step, 0)
            ; the pipeline's bubble

[serving] Prompts of others | in a closed loop: the next request follows each that ends
others      Other requests in the batch [1] = max(0, slots - 1)
prompts_per_step  Prompts in a full step [1] = memory.step_tokens / (prompt_tokens * one_request)
prompts_per_token  Prompts of others per step of a request [1]
            = (others + slots * decode.memory.redone) * emitted / inputs.output_tokens
            ; each of them prefills once while the request lives, and all again that lose their places
            @ closed loop
prompts_in_step  Prompts of others in a step [1]
            = where(scheduler.first > 0, prompts_per_token, min(prompts_per_token, prompts_per_step))
            ; steps that carry prompts hold a limited number
prompts_at_most  Most prompts in a step [1] = min(prompts_per_step, slots)
            ; as many as there are, and as the token budget allows
prompts_together  Prompts in a step that carries any [1]
            = min(prompts_at_most, max(min(1, prompts_per_step), prompts_in_step * max(1,
            max(inputs.receive_interval, inputs.batch_wait_steps))))
            ; all that arrive between two looks of the scheduler, or while it waits for more; a part of one
            where the token budget is smaller than a prompt

[serving] Time per output token | of a closed loop
prefill_added  Time a prompt adds to a step that runs anyway (prefill time in a step that runs anyway) [s]
            = mixed.longer / prompts_together ; weights are read once in a step, launches are paid by it
prompt_delay  Time a prompt delays the others [s]
            = prefill_added + where(scheduler.first > 0, prefill_launches * prefill_stage_share / max(1,
            prompts_together), 0) ; decode stops for it and its launches, or carries it in a step
prompt_host  Host time of a prompt [s] = prefill_host * prefill_stage_share / max(1, prompts_together)
            ; no graph holds a step with prompts: the host starts its operations one by one, once for all of
            them
prompt_covered  Host time that the decode beside a prompt covers [s]
            = where(scheduler.first > 0, 0, decode_beside * prefill_stage_share / prompts_together)
when launches
prompt_beyond  Time a prompt takes beyond what accelerators wait for the host [s]
            = max(0, prompt_delay - where(scheduler.first > 0, 0, decode_idle * prefill_stage_share /
            prompts_together)) ; it runs where they would wait

prompt_held  Time the others wait for a prompt [s] = max(delay_beyond, prompt_host - prompt_covered)
            ; no step with prompts is over before the host has started it
together    Requests start together [flag] = where(inputs.prompts_per_slot > 0, 1, 0)
            ; those of a benchmark; of a service nobody says it
alike       Requests of equal lengths, prompts first [flag]
            = where(all(scheduler.first > 0, inputs.length_range_ratio <= 0, inputs.output_tokens >
            tokens_per_step), 1, 0) ; with a second token at least
when sessions
thinking    Time between an answer and the next request [s] = where(by_sessions, inputs.think_time, 0)
            ; of sessions; else the next request follows at once
thought_apart  Share of a synchronous batch that think times take apart [1]
            = min(1, thinking / max(smallest * decode_step, others * prompt_held))
            ; all of it where they are as long as the prompts of all others

lockstep    Share of a synchronous batch [1] = interrupting * alike * half * (1 + together)
            ; of equal lengths: requests that start together end, and are prefilled, together; half where that
            is not known
over serving.lockstep = it * (1 - thought_apart) | when sessions
gaps        Output tokens against the gaps between them [1]
            = inputs.output_tokens / max(1, inputs.output_tokens - tokens_per_step)
            ; a synchronous batch has all its prompts in these gaps
stalled     Share of the prompts of others that stall a request [1] = 1 - lockstep + lockstep * half * gaps
            ; in a synchronous batch those after one's own
stall       Prefill stall per token [s]
            = interrupting * efficiency.interference * prompts_in_step * prompt_held * stalled
            ; in a synchronous batch prompts before one's own do not count

[serving] TPOT | mean gap between tokens of one request | subtotal
when request_rate
step_in_use  Decode step in use [s] = where(load.open > 0, load.step, decode_step)
stall_in_use  Prefill stall in use [s] = where(load.open > 0, load.stall, stall)

when speculation
step_and_stall  Decode step and its stalls [s] = step_used + stall_used
step_of_token  Share of a token in a decode step [s] = step_used * (tokens_per_step / speculation.emitted)
stall_of_token  Share of a token in its stalls [s] = stall_used * (tokens_per_step / speculation.emitted)
over serving.tpot = step_of_token + stall_of_token

tpot        Time per output token, TPOT (TPOT) [s] = step_used + stall_used

[serving] First token without a queue | on its own, while others decode | subtotal
batch_steps  Steps until a batch of prompts is full [1]
            = min(inputs.batch_wait_steps, prompts_per_step / max(prompts_per_token, smallest))
            ; so many prompts arrive in a step
wait_steps  Steps waited for a batch [1]
            = half * inputs.receive_interval + batch_steps * (1 + half * prompts_per_token * batch_steps) / (1
            + prompts_per_token * batch_steps) ; prompts that come later wait less
when sessions
any_time    Requests arrive at any time of a step [1] = min(1, thinking / step_used)
            ; at a rate, and after a think time as long as a step
over serving.any_time = max(load.open, it) | when request_rate

# Who arrives at any time waits for half of the running step and for those that are scheduled already; a
# prompt that rides along takes what its step has beyond the prefill by itself. The factor was fitted to
# clients that send the next request as one ends: it bounds the steps of those that arrive at any time.
when any_time
ride_beyond  Time of the step that carries a prompt, beyond its prefill [s]
            = (1 - scheduler.first) * max(0, prompt_delay + step_used - prefill_service)
            ; weights are read once for both
arrival_steps  Steps around a prefill of who arrives at any time [1]
            = half + steps_ahead + ride_beyond / step_used
            ; half the running step, those scheduled ahead, the rest of one's own
over serving.arrival_steps
            = half + where(inputs.async_scheduling == 'on', steps_ahead, 0) + ride_beyond / step_used | when
            launches
lag_in_use  First-step lag in use [1]
            = min(efficiency.step_lag, (1 - any_time) * efficiency.step_lag + any_time * arrival_steps)
            ; of who arrives at any time not above that of a closed loop

first_step  Running step [s] = inputs.continuous * min(1, others_used) * lag_used * step_used
            ; rest of the step that runs for others, and the token's way out
longest_output  Longest output of a batch, against the mean [1]
            = (1 - inputs.length_range_ratio / (slots + 1)) / (1 - half * inputs.length_range_ratio)
            ; of lengths drawn evenly
longest_beyond  Share of all outputs that are longer than the longest of a batch [1]
            = (longest - longest_skewed * inputs.output_spread) / (slots + quarter * (1 +
            inputs.output_spread)) ; on average
longest_far  Longest output of a batch, in standard deviations [1]
            = ((1 - longest_beyond)**normal_exponent - (1 - (1 - longest_beyond))**normal_exponent) /
            normal_scale ; of the cube root of the lengths, which is nearly normal
longest_root  Cube root of the longest output of a batch, against the mean [1]
            = 1 - ninth * spread.outputs + third * inputs.output_spread * longest_far
            ; of a gamma distribution @ Wilson and Hilferty
longest_drawn  Longest output of a batch, against the mean, of lengths as stated [1]
            = max(1, longest_root * longest_root * longest_root)
longest_in_use  Longest output of a batch in use, against the mean [1]
            = where(inputs.output_spread == spread.usual, longest_output, longest_drawn)
            ; drawn evenly until somebody states another spread
rest_of_batch  Steps between the end of a request and of its batch [1]
            = (longest_in_use - 1) * inputs.output_tokens / emitted
            ; a static batch ends with its longest output
held_back   Batching delay [s]
            = (inputs.continuous * wait_steps + (1 - inputs.continuous) * rest_of_batch) * gap_used
            ; steps until a scheduler takes a request up; a static batch waits for its longest output
base        First token without a queue [s] = first_token + prefill_used + first_step + held_back
over serving.base = it + transfer | when disaggregated

[serving] Waits | behind prompts of other requests
generation  Generation after the first token [s] = (inputs.output_tokens / tokens_per_step - 1) * tpot
prefill_share  Share of the time given to prompts of others [1] = stall_used / gap_used
full_launches  Launches of a full step [s] = prefill_launches * min(1, prompts_at_most) * prefill_stage_share
            ; where decode stops for prompts
full_host   Host time of a full step beyond its decode [s]
            = max(0, prefill_host * min(1, prompts_at_most) - where(scheduler.first > 0, 0, decode.time)) *
            prefill_stage_share ; no step with prompts is over before the host has started it
over serving.full_host
            = max(0, prefill_host * min(1, prompts_at_most) - where(scheduler.first > 0, 0, decode.time +
            decode_idle)) * prefill_stage_share | when launches
full_prompts  Prompts of a full step, or its host [s]
            = max(mixed.full.longer + where(scheduler.first > 0, full_launches, 0), full_host)
over serving.full_prompts
            = max(mixed.full.longer + where(scheduler.first > 0, full_launches, 0) - where(scheduler.first >
            0, 0, decode_idle), full_host) | when launches
full_step   Step full of prompts [s]
            = where(scheduler.first > 0, full_prompts, decode_step + efficiency.interference * full_prompts)
            ; theirs alone where decode stops for them
saturated   Service time of a prompt in full steps [s] = full_step / prompts_at_most
fills       Prompts may fill every step [1] = interrupting * where(lockstep < 1, 1, 0)
            ; not where all start together
over serving.fills = it * (1 - load.open) | when request_rate
saturation  Wait where prompts fill every step [s]
            = fills * max(0, slots * saturated * (1 + decode.memory.redone) - generation)
            ; the token budget cannot keep up
line        Prefills of all others [s] = others * saturated
            ; no wait behind prompts is longer; in a synchronous batch they are the queue
form_mean   Mean wait, closed form [s]
            = scheduler.mean.factor * prefill_used * prefill_share**scheduler.mean.share *
            others**scheduler.mean.others
wait_mean   Mean wait behind prompts [s]
            = min(efficiency.queueing * spread.waits * (lockstep * half * line + (1 - lockstep) * form_mean),
            line)
queue       Wait behind other prompts [s] = max(wait_mean, saturation - base)
            ; the mean; where prompts fill every step, what is left of that wait
over serving.queue = where(load.open > 0, load.wait, it) | when request_rate

[serving] Batch slots | the time of a request in the batch, and the wait for a slot
burst_steps  Steps before a prompt of the warm-up burst [1] = half * (slots / prompts_at_most + 1)
            ; all requests come at once
cold_start  Cold start of the warm-up burst [s] = efficiency.cold_start
            ; all requests of it wait for that; none where the server is warm
over serving.cold_start
            = it + efficiency.expert_cold_start * (model.expert_parameters / billion) | when routed_experts
burst       TTFT of the warm-up burst [s]
            = max(base, first_token + full_step * burst_steps + decode_step) + cold_start
first_share  Share of the warm-up burst [1]
            = where(inputs.prompts_per_slot > 0, in_loop / max(1, inputs.prompts_per_slot), 0)
            ; of the requests of a benchmark; a service in steady state has none, and none comes at a rate
burst_wait  Warm-up burst of a benchmark [s] = where(first_share > 0, first_share * (burst - base - queue), 0)
            ; by which its mean TTFT is longer
service_time  Time in the batch [s] = base + queue + burst_wait + generation
            ; from the first look at a request to its last token
when disaggregated
slot_held   Time a request holds its batch slot [s]
            = where(inputs.disaggregated > 0, generation, service_time)
            ; that of a decode worker from the first token on

slot_wait   Wait for a batch slot in steady state [s]
            = max(0, decode.memory.requests / decode.memory.batch * held - service_time)
            ; there are more requests than the batch holds @ Little's law
over serving.slot_wait
            = where(all(inputs.disaggregated > 0, decode.batch < decode.memory.batch), 0, it) | when
            disaggregated
over serving.slot_wait = (1 - load.open) * it | when request_rate
seat_wait   Wait for a batch slot [s] = slot_wait * (1 - half * first_share)
            ; in the warm-up burst of a benchmark half of it

# Prompts come to a prefill worker at random, so that those of others may be there before. The wait w of a
# server with fixed service time s and random arrivals is s/2 r/(1 - r). With the share of the time r =
# others' prompts / (time elsewhere + w) this is a quadratic equation. Where prefill is too slow all that are
# not in decode wait.
when disaggregated
prefill_rate  Requests per second of a prefill worker [request/s] = one_request / prefill_service
decode_rate  Requests per second of a decode worker [request/s]
            = decode.memory.batch * tokens_per_step / (inputs.output_tokens * tpot)
workers_ratio  Prefill workers per decode worker [1] = decode_rate / prefill_rate
            ; both are fully used at this ratio
matched_workers  Prefill workers that match [1] = workers_ratio * inputs.decode_dp
prefill_limit  Requests per second of all prefill workers [request/s] = prefill_rate * inputs.dp
prefill_away  Time of a request without that wait [s] = service_time + slot_wait ; prefill included
prefill_before  Prompts of all others before one's own [s] = of_prefill_workers * prefill_others
            ; if all came at once: no wait for a prefill worker is longer
prefill_backlog  Wait where prefill is too slow [s]
            = max(0, of_prefill_workers * inputs.concurrency / prefill_limit - prefill_away)
            ; requests that are not in decode @ Little's law
prefill_takes  Time of a prompt for which others wait, with the spread of lengths [s]
            = prefill_service * spread.waits
prefill_half  Half of what prompts of others exceed that time by [s] = half * (prefill_before - prefill_away)
prefill_wait  Wait for a prefill worker [s]
            = max(prefill_backlog, prefill_half + (prefill_half * prefill_half + half * prefill_before *
            prefill_takes)**half)
            ; the mean; who waits sends no other prompt, so a longer wait makes for fewer: a quadratic
            equation @ single server, fixed service time, requests that come again

[serving] Time to first token | mean, from arrival | subtotal
ttft_steady  TTFT in steady state [s] = base + queue + seat_wait
over serving.ttft_steady = it + prefill_wait | when disaggregated
ttft        Time to first token, TTFT (TTFT) [s] = ttft_steady + burst_wait ; mean

[serving] One request | as its user sees it, on average
e2e         End to end [s] = ttft + generation
interactivity  Interactivity [token/request/s] = tokens_per_step / tpot ; tokens per second that one user sees

# How far requests are from the mean: p50, p90, p95, p99 of TTFT, of gaps between tokens and of end to end.
# Mean and variance of the parts of a request are worked out one by one; parts are taken to be independent of
# each other, so that variances add up. The time of a request is then taken from a lognormal distribution with
# that mean and variance. A gap between tokens is that of a step without prompts, or of one that carries some.
[serving] Percentiles of TTFT | mean and variance of its parts; lognormal
interrupts  Prompts interrupt decode [flag] = interrupting
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
slot_time   Time a request holds its slot, never none [s] = max(held, smallest * ttft_steady)
            ; decode workers hold no request of one token
held_varies  Variance of the time a request holds its slot, against its square [1]
            = min(1, spread.outputs * (generation / slot_time) * (generation / slot_time))
ends_vary   Variance of the time between two slots that end, against its square [1]
            = held_varies + (1 - held_varies) * (1 - 1 / slots) / (1 + seat_wait / slot_time)
variance_slot  Variance of TTFT by the wait for a batch slot [1]
            = inputs.continuous * (seat_wait / ttft_steady) * (held / ttft_steady) / slots * ends_vary
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

# A benchmark of n requests one after the other takes n x the time of one. The last of all ends later by as
# much as its prompts are through after the mean and its outputs are longer, and sooner by what no prompt
# interrupts it.
[serving] Throughput | whole deployment, all replicas
slot_prompts  Requests of a benchmark one after the other [1] = max(1, inputs.prompts_per_slot)
slot_line   Prompts of a benchmark one by one [s] = slot_prompts * interrupting * line
            ; no benchmark is shorter
length_excess  Longest output of a benchmark against the mean, less 1 [1]
            = slot_prompts**half * half * inputs.length_range_ratio / (1 - half * inputs.length_range_ratio)
            ; of lengths drawn evenly, one draw after the other
ends_lengths  Longest outputs behind the mean [s] = min(half * e2e, length_excess * generation)
            ; no more than half of a request
ends_last   Last end behind the mean end [s]
            = max(0, half * slot_line / slot_prompts + ends_lengths - (inputs.output_tokens / emitted - 1) *
            stall_used) ; its prompt comes last, its outputs are longest, and no prompt interrupts it
all_requests  Time of a benchmark's requests in a slot [s] = slot_prompts * e2e
ramp        Mean load of a benchmark [1]
            = where(inputs.prompts_per_slot > 0, all_requests / max(slot_line, all_requests + ends_last), 1)
            ; requests run out at its end
benchmark_prompts  Prompts of a benchmark but one, of a replica [1]
            = max(0, max(1, inputs.prompts_per_slot) * decode.memory.requests / one_request - 1)
benchmark_least  Shortest a benchmark can be [s]
            = interrupting * benchmark_prompts * saturated * (1 + decode.memory.redone) + base + generation
            ; all its prompts in turn, then the last request
flight_most  Most requests of a benchmark in flight on average, against all [1]
            = where(all(inputs.prompts_per_slot > 0, decode.memory.requests > decode.memory.batch), max(1,
            inputs.prompts_per_slot) * e2e / benchmark_least, 1)
            ; as its prompts take their time, where there are more requests than slots @ Little's law
in_flight_share  Share of the requests that is in flight [1]
            = min(ramp * (1 - half * first_share * (1 - decode.memory.batch / decode.memory.requests)),
            flight_most) ; in the warm-up burst requests wait for a slot half as long
when sessions
asking      Requests kept in flight, or sessions [request]
            = where(sessions.lead > 0, inputs.sessions, inputs.concurrency)
thought     Think time in use [s] = where(sessions.lead > 0, inputs.think_time, 0)

requests_per_s  Requests per second [request/s] = in_flight_share * going_round / round_trip @ Little's law
over serving.requests_per_s = where(load.open > 0, load.served, it) | when request_rate
law_kept    Requests in flight, and sessions that think [request] = in_flight_share * going_round
over serving.law_kept = where(load.open > 0, load.in_flight, it) | when request_rate
law_served  The same by the requests per second [request] = requests_per_s * round_trip
            ; what a client has in flight or thinks over; both sides are equal @ Little's law
output_tokens_per_s  Output tokens per second [token/s] = requests_per_s * inputs.output_tokens
accelerators  Accelerators in use (accelerators in use) [accelerator] = plan.accelerators
over serving.accelerators = it + inputs.disaggregated * decode.plan.accelerators | when disaggregated
output_tokens_per_s_per_accelerator
            Output tokens per second and accelerator (output tokens per accelerator) [token/s/accelerator]
            = output_tokens_per_s / accelerators
total_tokens_per_s  Input and output tokens per second [token/s]
            = requests_per_s * (inputs.input_tokens + inputs.output_tokens)
