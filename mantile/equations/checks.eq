# Sides of checks that are no rows of other subjects, and the verdict on the plan: which cells hold what
# cannot be, which check of the plan is the first that does not hold, and whether all lies in memory.

define of_replica = serving.requests_per_s / inputs.decode_dp
define room(known, held) = where(known / hardware.hosts_of_domain > 0, known / hardware.hosts_of_domain, held)

[checks] Fixed sides
tolerance
fixed.flag.0  Fixed: 0, flag [flag] := 0 ; fixed side of a check
fixed.flag.1  Fixed: 1, flag [flag] := 1 ; fixed side of a check
for unit | number in head | 0; channel | 0; rank | 0; rank | 1; layer | 0; layer | 1; expert | 0; expert | 1;
  B | 0; domain | 1; stage | 1
fixed.{unit}.{number}  Fixed: {number}, {unit} [{unit}] := {number} ; fixed side of a check

for number in 0; 1; 0.8; 0.05
fixed.1.{number}  Fixed: {number} [1] := {number} ; fixed side of a check

fixed.token_per_request.1  Fixed: 1, token/request [token/request] := 1 ; fixed side of a check
fixed.1.0.001  Fixed: smallest sensible fraction [1] := 0.001 ; fixed side of a check
fixed.1.20  Fixed: far from the floor [1] := 20 ; fixed side of a check
fixed.1.200  Fixed: far from the floor [1] := 200 ; fixed side of a check

[checks] Sums in parts | each part of a sum
{sum}.{number}  {label}, part {number} [{unit}] = {terms}

[checks] Passes
prefill_sum  Prefill time by what binds [s]
            = prefill.bound.compute + prefill.bound.memory + prefill.bound.network + prefill.bound.overhead
decode_sum  Decode time by what binds [s]
            = decode.bound.compute + decode.bound.memory + decode.bound.network + decode.bound.overhead

# Weights of a class in layers of a kind, as products of a pass use them and as they lie in memory.
[checks] Weights as multiplied | each multiplied matrix
used.{name}  {title}, as multiplied [parameter] = ({products}) * {layers}

[checks] Weights as held | each held matrix
held.{name}  {title}, as held [parameter] = {parameters} * {layers}

[checks] Latents that a framework may expand | each expanded cache
kv_width.{name}  Channels of {of} that all TP ranks keep [channel]
            = where({as_they_are} > 0, {latent}, {expanded})

[checks] KV bytes of a token | each checked cache
kv_of_ranks.{name}  {label}, on the ranks of an attention group [B/token] = {bytes} * {tp} * {layers}
kv_of_model.{name}  {label}, of the model with copies [B/token] = {width} * {kept_bytes} * {layers}

[checks] Layers of a kind | each kind of layers
layers_on_stages.{name}  Layers on all stages, {kind} [layer] = sum([{stages}])

[checks] The model on the ranks
multiplied  Matrix weights on a rank, as multiplied [parameter]
            = sum([`checks.used.{name}` each multiplied matrix])
held_weights  Matrix weights on a rank, as held [parameter] = sum([`checks.held.{name}` each held matrix])
memory_sum  Memory used, headroom and rest [B]
            = decode.memory.used + decode.memory.headroom + decode.memory.outside
kv_of_ranks  KV bytes of a token on all ranks [B/token]
            = sum(*[`checks.kv_of_ranks.{name}` each checked cache])
kv_of_model  KV bytes of a token, with copies [B/token]
            = sum(*[`checks.kv_of_model.{name}` each checked cache])
when TP_padding
kv_padded   KV bytes of a token, with copies and padding [B/token]
            = where(decode.hardware.padding > 0, max(kv_of_ranks, kv_of_model), kv_of_model)
            ; padded heads are in no model: what the ranks hold counts

layers_on_stages  Layers on all stages [layer] = sum(*[`checks.layers_on_stages.{name}` each kind of layers])
when routed_experts
for message in dispatch; combine
tokens_{message}  Tokens of {message}, all ranks [token]
            = decode.{message}.own_tokens * decode.plan.stage_ranks

# What a degree leaves over is no fault where the framework pads it: the fullest rank counts anyway.
[checks] Plan of a pool | each checked pool
{of}columns_left  FFN columns left over and not padded [channel] = plan.ffn_left * (1 - {pads})
when heads
{of}heads_left  Heads left over and not padded [head] = plan.heads_left * (1 - {pads})
when kv_heads
{of}kv_heads_left  KV heads left over and not padded [head] = plan.kv_left * (1 - {pads})

{of}stages  Stages [layer] = inputs.pp * fixed.layer.1 ; a layer for each at least
{of}reach   Accelerators the system can join [accelerator] = hardware.accelerators * max(1, hardware.domains)
{of}replica  Accelerators of a replica [accelerator] = plan.ranks_per_replica * accelerators_per_rank
when TP_of_FFNs
{of}ffn_tp_wrong  TP of FFNs that no ranks have [flag]
            = where(all(inputs.ffn_tp > 0, abs(inputs.ffn_tp - plan.stage_ranks) > 0,
            remainder(inputs.tp, max(1, inputs.ffn_tp)) > 0), 1, 0)
when TP_of_the_embedding
{of}embedding_tp_wrong  Embedding TP that no ranks have [flag]
            = where(all(inputs.embedding_tp > 1, abs(inputs.embedding_tp - inputs.tp) > 0), 1, 0)
when routed_experts
{of}expert_groups  Expert-parallel groups [expert] = inputs.ep * fixed.expert.1 ; an expert for each at least

{of}host_used  Bytes on the host [B] = memory.host_weights + memory.host_kv
when not prefixes
{of}host_asked  Memory asked of the host [GB] = inputs.offload_weights + inputs.offload_kv + inputs.kv_swap
when prefixes
{of}host_asked  Memory asked of the host [GB]
            = inputs.offload_weights + inputs.offload_kv + inputs.kv_swap + inputs.prefix_host

{of}host_possible  Host link, or none needed [flag]
            = where(all({of}host_asked > 0, efficiency.rate.host_bytes <= 0), 0, 1)
{of}host_room  Memory of a host [B] = room(hardware.host_memory, startup.host) ; if it is known
when prefixes
{of}disk_held  Kept on the disks of a host [B]
            = inputs.prefix_disk * bytes_per_gb * min(plan.accelerators, hardware.host_accelerators) /
            accelerators_per_rank ; by as many ranks as it has accelerators in use
{of}disk_room  Room on the disks [B] = room(hardware.disk, {of}disk_held) ; if it is known
when kv_copies, decode_CP
{of}same_cache  Ranks that hold the same KV cache [1] = {copies} / inputs.dcp
            ; those with the same heads, by ranks that divide the tokens

{of}stored_only  Weights in a native format multiplied in 16 bit [flag] = max(*[hardware.*.stored_only])
            ; wider activations leave the peak of the weights' format unused
{of}request_groups  Groups that share the requests [request] = inputs.dp * inputs.attention_dp * one_request

[checks] Requests
when max_positions
length      Input and output tokens [token/request] = inputs.input_tokens + inputs.output_tokens
when longest_request
request     Tokens of a request [token/request] = inputs.input_tokens + inputs.output_tokens
longest     Longest request that the engine takes [token/request]
            = where(inputs.max_model_len > 0, inputs.max_model_len, request) ; any where it is told none

context_groups  Groups that share a prompt [token/request] = inputs.cp * fixed.token_per_request.1
            ; a token for each at least
when speculation
asks_prediction  Prediction layers draft [flag] = where(inputs.speculation == 'mtp', 1, 0)
holds_prediction
draft_stated  A draft model is stated [flag]
            = where(all(inputs.draft_parameters > 0, inputs.draft_layers > 0), 1, 0)

sequence_useless  Sequence parallelism without TP [flag]
            = where(all(inputs.sequence_parallel == 'on', inputs.tp <= 1), 1, 0)

[checks] Inputs of decode workers | each input of decode
differs.{name}  Prefill and decode differ, {label} [flag] = where({shared} == {own}, 0, 1)

[checks] Workers apart | when disaggregated
static_apart  Static batching with workers apart [flag] = inputs.disaggregated * (1 - inputs.continuous)
linked      Workers reach one another [flag]
            = max(1 - inputs.disaggregated, where(serving.transfer_bandwidth > 0, 1, 0))
            ; by a network of both systems, or by ports of both machines
differences  Differences in aggregated serving [flag] = (1 - inputs.disaggregated) * sum([checks.differs.*])

[checks] Devices | each group of devices
unlinked    Links that are missing [flag] = {missing}
inferred    Links in use that are inferred [flag] = {inferred}
holding     Devices that hold layers [stage] = {holding}
split       Shortest decode step of other splits, with what is no difference [s]
            = devices.other.best * (1 + split_margin)

[checks] Results
when request_rate
load        Load at the request rate [1] = load.open * load.utilisation

in_batch    Requests in the batch of a replica [request] = of_replica * held_in_batch
            ; none where requests arrive at a rate @ Little's law
slots       Batch slots of a replica [request] = decode.memory.batch * (1 + tolerance)
decoded     Tokens decoded per second by a replica [token/s]
            = of_replica * max(0, inputs.output_tokens - tokens_per_step)
by_steps    Tokens of steps without prompts [token/s] = slots_in_use * emitted / step_used * (1 + tolerance)
peak_share_prefill  Share of the peak that prompts need [1]
            = serving.requests_per_s / inputs.dp * prefill.flops /
            (prefill.requests * inputs.pp * prefill.peak)
peak_share_decode  Share of the peak that output tokens need [1]
            = decoded * decode.flops / (decode.tokens * inputs.decode_pp * decode.peak)
peak_share  Share of the peak that served requests need [1] = peak_share_prefill + peak_share_decode
over checks.peak_share = where(inputs.disaggregated > 0, max(peak_share_prefill, peak_share_decode), it)
  | when disaggregated
errors      Errors among the headline results [flag]
            = where(is_error(number_of(serving.ttft) * number_of(serving.tpot) * number_of(serving.e2e) *
            number_of(serving.output_tokens_per_s) * number_of(decode.memory.used)), 1, 0)
            ; what is not known is a text, and none
when sessions
of_sessions  Requests in flight of the sessions, by the time of a request [request]
            = sessions.alone + sessions.others * (serving.e2e / (serving.e2e + inputs.think_time))
sessions_differ  Concurrency against those requests in flight [1]
            = where(inputs.sessions > 0, abs(inputs.concurrency / of_sessions - 1), 0)
when not devices
ttft_times  TTFT against its floor [1] = serving.ttft / floor.ttft
tpot_times  TPOT against its floor [1] = serving.tpot / floor.tpot
when speculation
drafted_for  Requests of a replica that decode with drafts [request] = speculation.on * decode.batch
when config
config_unknown
when remarks
remarks

[checks] Verdict
plan_holds  Plan checks that hold [flag] = sum(checks_of_plan)
faults      Inputs, dimensions and assumptions that cannot be [flag]
            = typed.faults + typed.dimensions.faults + typed.assumptions.faults
message.fixed  The first of dimensions and assumptions, in words [1]
            = where(typed.dimensions.faults > 0, typed.dimensions.message, typed.assumptions.message)
message     The first of them, in words [1] = where(typed.faults > 0, typed.message, message.fixed)
plan_checks
invalid     Inputs that cannot be, and plan checks that do not hold [flag]
            = plan_checks - plan_holds + faults
held        Feasible in memory [1]
            = where(sum(*[checks.{of}host_used each checked pool]) > 0, 'fits_with_offload', 'fits')
            ; offload if anything lies on the host
has_room    By memory, as a flag [flag]
            = where(min(*[check.{OF}MEMORY_EXCEEDED each checked pool]) > 0, 1, 0)
room        By memory [1] = where(has_room > 0, held, 'insufficient_memory')
cause.fixed  Which cells cannot be but for inputs [1]
            = where(typed.dimensions.faults > 0, 'DIMENSION_INVALID', 'FIGURE_INVALID')
            ; where there are such
cause       Which cells cannot be [1] = where(typed.faults > 0, typed.cause, cause.fixed)
            ; where there are such
first_place  The first plan check that does not hold [number]
            = where(invalid > faults, match(0, checks_of_plan), 1) ; 1 where all hold
first       First reason why the plan cannot be [1] = where(faults > 0, cause, index(plan_codes, first_place))
broken.plan  The first of plan and memory that does not hold [1]
            = join('Does not hold: ', where(invalid > 0, index(plan_labels, first_place), memory_label))
feasibility  Feasibility [1] = where(invalid > 0, 'invalid', room)
possible    The plan can be [flag] = where(invalid > 0, 0, has_room)
faults.money  Cells of power and price that cannot be [flag]
            = typed.money.faults + typed.assumptions.power_and_price.faults
message.money  The first of them, in words, power and price [1]
            = where(typed.assumptions.power_and_price.faults > 0, typed.assumptions.power_and_price.message,
            typed.money.message)
payable     The plan can be, and what it costs be known [flag] = where(faults.money > 0, 0, possible)
when request_rate
state       Feasibility, or overload [1]
            = where(all(possible > 0, load > fixed.1.1), 'overloaded', feasibility)

reason      Feasibility with its reason [1] = where(invalid > 0, first, room)
            ; the first plan check that does not hold
broken      What does not hold, in words [1] = where(faults > 0, message, broken.plan)
error_values  Errors among the headline results, and in the verdict [flag]
            = where(is_error(possible + payable), 1, errors)
