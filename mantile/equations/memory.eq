# What lies in the memory of the fullest accelerator, and how many sequences its KV cache holds.
#
# A request gets its place with room for its whole output, or for what it is now. Requests of a full cache are
# of all ages: on average half of the output is there. Which kinds of layer, classes of weights and stages
# there are follows from the architecture: memory.py says it; which caches and states: kv_cache.py.

define of_framework(figures) = index(figures, match(inputs.framework, framework.name))
define share_of_memory = index(framework.memory_share, match(inputs.framework, framework.name))
  | when not memory_share
define share_of_memory = engine.share_of | when memory_share
define kept_now = held_length | when not prefixes
define kept_now = own_tokens | when prefixes
define kept_at_end = sequence_length | when not prefixes
define kept_at_end = own_length | when prefixes
define token_groups = inputs.cp | when not decode_CP
define token_groups = inputs.cp * inputs.dcp | when decode_CP
define kept_once = prefix.shared | when not class_prefixes
define kept_once = prefix.once | when class_prefixes
define tokens_checked = constant.tokens_per_step | when not speculation
define tokens_checked = speculation.checked | when speculation
# Before the layers of the first stage, and behind those of the last.
define held_before = embedding_weights | when not vision_tower
define held_before = first_weights | when vision_tower
define held_behind = head_weights | when not speculation
define held_behind = draft_weights | when speculation

[memory] Weights of a layer | of a rank
when padded_experts
multiple_hidden  Multiple of the hidden size [channel] = of_framework(framework.pads_hidden)
multiple_expert  Multiple of the expert size on a rank [channel] = of_framework(framework.pads_expert)
padded_hidden  Padded against its size, hidden size [1]
            = round_up(model.hidden_size / multiple_hidden) * multiple_hidden / model.hidden_size
            ; of experts in mxfp4
padded_expert  Padded against its size, expert size on a rank [1]
            = round_up(expert_width / multiple_expert) * multiple_expert / expert_width
            ; of experts in mxfp4
expert_padding  Experts as stored against their size [1]
            = where(hardware.experts.dtype == 'mxfp4', padded_hidden * padded_expert, 1)
            ; kernels of mxfp4 pad them

each class of weights
weights.{class}  {title}, of a layer ({words}) [B] = `tensors.{class}` * {bytes}

each class of padded weights
weights.{class}  {title}, of a layer ({words}) [B] = `tensors.{class}` * {bytes} * expert_padding

each kind of layer
layer_weights.{kind}  Weights of a layer{name} [B] = {weights}

host_embedding  Embedding on the host [B]
            = tensors.embedding * embedding_bytes * where(of_framework(framework.embedding) == 'host', 1, 0)
            ; where the framework reads it there
embedding_weights  Weights of the embedding [B]
            = tensors.embedding * embedding_bytes - (1 - model.tied_embeddings) * host_embedding
            ; 0 where the framework reads it on the host, unless it is the LM head too
head_weights  Weights of the LM head (weights of the LM head) [B]
            = tensors.head * hardware.head.bytes + tensors.final_vectors * vector_bytes + where(inputs.pp > 1,
            model.tied_embeddings * embedding_weights, 0)
            ; the last of several stages needs a copy of a tied embedding
when vision_tower
vision_weights  Weights of the vision tower [B] = tensors.vision * vector_bytes / inputs.tp
            ; in 16 bit, on the first stage
first_weights  Weights of embedding and vision tower (weights of the first stage's start) [B]
            = embedding_weights + vision_weights

[memory] KV admission | how a request gets its place
admission   KV admission in use [1]
            = where(inputs.kv_admission == 'default', of_framework(framework.kv_admission),
            inputs.kv_admission)
held_share  Share of the output that has room (share of the output with room) [1]
            = where(all(admission == 'current-length', inputs.continuous > 0), half, 1)
            ; the requests of a static batch grow together
sequence_length  Length of a finished request [token/request] = inputs.input_tokens + inputs.output_tokens
held_length  Tokens that a running request has room for (tokens with room) [token/request]
            = inputs.input_tokens + held_share * inputs.output_tokens

[memory] KV cache of a request | of a layer and rank; states of recurrent layers included
when cache_policy
cache_policy  KV cache policy in use [1]
            = where(inputs.cache_policy == 'default', of_framework(framework.cache_policy),
            inputs.cache_policy)
when windows_saved
windows_saved  Layers with a window keep no more than it [flag] = where(cache_policy == 'saved', 1, 0)
window_step  Tokens of a pass that a window keeps beside its own [token/request]
            = of_framework(framework.prompt_batch) / one_request
            ; where prompts are taken in passes of fixed size
when latents_saved
latents_saved  Latents are kept as they are [flag] = where(cache_policy == 'full', 0, 1)
when prefixes
own_tokens  Tokens with room, without what all share [token/request] = held_length - prefix.shared
own_length  Length of a finished request, without what all share [token/request]
            = sequence_length - prefix.shared

# A window keeps what is in it, of all that requests share too.
each reach without limit
cached_tokens  Tokens a rank keeps of a request [token/request] = kept_now / token_groups

each window
when not windows_saved
cached_tokens.{limit}  Tokens a rank keeps of a request, {words} [token/request]
            = where({length} > 0, min(held_length, {length}), kept_now) / token_groups
when windows_saved
cached_tokens.{limit}  Tokens a rank keeps of a request, {words} [token/request]
            = where({length} * windows_saved > 0, min(held_length, {length} + window_step), kept_now) /
            token_groups

each reach without limit
tokens_to_come  Tokens it keeps at the end beside them [token/request]
            = kept_at_end / token_groups - cached_tokens

each window
when not windows_saved
tokens_to_come.{limit}  Tokens it keeps at the end beside them, {words} [token/request]
            = where({length} > 0, min(sequence_length, {length}), kept_at_end) / token_groups -
            cached_tokens.{limit}
when windows_saved
tokens_to_come.{limit}  Tokens it keeps at the end beside them, {words} [token/request]
            = where({length} * windows_saved > 0, min(sequence_length, {length} + window_step), kept_at_end) /
            token_groups - cached_tokens.{limit}

each cache of a module
when not expanded
kv_bytes_per_token.{module}  KV bytes per token of a layer, {label}
            (KV bytes per token of a layer, {label}) [B/token] = channels.{module} * {bytes}
when expanded
kv_bytes_per_token.{module}  KV bytes per token of a layer, {label}
            (KV bytes per token of a layer, {label}) [B/token]
            = where(latents_saved > 0, channels.{module}, expanded.{module}) * {bytes}

kv_bytes_per_token  KV bytes per token (KV bytes per token) [B/token]
            = added(*[`memory.kv_bytes_per_token.{module}` * `{layers}` each cache of a module])
each recurrence
state_values.{module}  State values per rank, {label} (state values per rank) [channel] = state.{module}
conv_channels.{module}  Convolution channels per rank, {label} (convolution channels per rank) [channel]
            = conv.{module}
layer_state.{module}  State of a layer and request, {label} (state of a layer and request) [B/request]
            = (state_values.{module} * state_bytes + conv_channels.{module} * ({kernel} - 1) * conv_bytes) /
            one_request ; the convolution keeps its last inputs

each cache of a module
kv_bytes_per_request.{module}  KV bytes per request of a layer, {label} [B/request]
            = kv_bytes_per_token.{module} * cached_tokens{limit}

each reach
kv_to_come{limit}  KV bytes that a request still gets{words} [B/request]
            = tokens_to_come{limit} * in_layers_of{limit} ; in all layers, on a rank

when prefixes
prefix_bytes_per_token  KV bytes of a token of a prefix on a rank [B/token]
            = in_layers_of_prefix * plan.layers / model.layers / token_groups
            ; on the fullest stage, in layers that look back without limit
shared_prefix  KV cache of what all requests share [B]
            = one_request * kept_once * prefix_bytes_per_token ; once

each kind of layer
layer_kv.{kind}  KV cache and states of a request in a layer{name} [B/request] = {kv}

[memory] Drafter | on a rank of the last stage | when speculation
each drafter
draft_layer  Weights of a prediction layer [B]
            = {weights} + joined * model.hidden_size * model.hidden_size * vector_bytes
            ; a layer like the model's own, and what joins its inputs, in 16 bit

draft_model  Weights of a draft model [B] = inputs.draft_parameters * billion * vector_bytes / inputs.tp
            ; in 16 bit
draft_weights  Weights behind the layers, drafter included [B]
            = head_weights + speculation.by_layer * draft_layer + speculation.by_model * draft_model
            ; on the last stage
draft_kept  Cache of a draft model for a token [B/token]
            = speculation.by_model * inputs.draft_kv_channels * hardware.kv_bytes / inputs.tp
each drafter
draft_kv    Cache of the drafter for a request [B/request]
            = speculation.by_layer * {kv} + draft_kept * held_length / inputs.cp

# Of many kinds of layer in parts, to keep formulas short.
[memory] Stages in memory | 0 beyond the last stage | when many_kinds
each part of a stage
stage_weights.{s}.{first}  Part {number} of stage {s}, stage weights [B]
            = added(*[{on_stages}.{s} * {of_weights} each kind from {first}])

[memory] Stages in memory | when many_kinds
each part of a stage
stage_kv.{s}.{first}  Part {number} of stage {s}, stage kv [B/request]
            = added(*[{on_stages}.{s} * {of_kv} each kind from {first}])

[memory] Stages in memory | 0 beyond the last stage
for s in 0..7
stage_weights.{s}  Weights of a rank on stage {s} [B]
            = added(*[{on_stages}.{s} * {of_weights} each kind in stages])
over memory.stage_weights.{s} = added(*[memory.stage_weights.{s}.{first} each part of stages])
            | when many_kinds
over memory.stage_weights.{s} = it + where(plan.stage.{s} + 1 == inputs.pp, held_behind, 0) | when not devices

over memory.stage_weights.0 = it + held_before | when not devices
each holder
over memory.stage_weights.{s} = it + where(plan.last.{s} > 0, held_behind, 0) +
            where(plan.first.{s} > 0, held_before, 0)

all_weights  Weights of the fullest stage [B] = max([stage_weights.*])
for s in 0..7
stage_kv.{s}  KV cache of a request on stage {s} [B/request]
            = added(*[{on_stages}.{s} * {of_kv} each kind in stages])
over memory.stage_kv.{s} = added(*[memory.stage_kv.{s}.{first} each part of stages]) | when many_kinds
over memory.stage_kv.{s} = it + where(plan.stage.{s} + 1 == inputs.pp, draft_kv, 0)
            | when speculation, not devices

when speculation
each holder
over memory.stage_kv.{s} = it + where(plan.last.{s} > 0, draft_kv, 0)

kv_bytes_per_request  KV bytes per request [B/request] = max([stage_kv.*])

[memory] Working memory | per accelerator
when not disaggregated
requests    Requests per replica [request] = max(1, inputs.concurrency / inputs.dp)

when disaggregated
requests    Requests per replica [request]
            = where(inputs.disaggregated > 0, min(max(1, inputs.concurrency / inputs.dp),
            inputs.attention_dp * one_request), max(1, inputs.concurrency / inputs.dp))
            ; prefill workers hold a prompt for every attention group

mixer_*.*.*
mixer_*.*
mixer_*
ffn_*.*.*
ffn_*.*
ffn_*
activation_width  Channels in memory per token (channels in memory) [channel]
            = streams * model.hidden_size + widest ; products of mixer and FFN are not held together
prompt_batch  Prompt tokens in a pass [token] = of_framework(framework.prompt_batch) ; 0: a prompt is one pass
step_tokens  Most tokens in a step [token]
            = where(prompt_batch > 0, min(inputs.token_budget, prompt_batch), inputs.token_budget)
            ; the token budget, or what the framework takes at once
runtime.large
runtime.small_seats
runtime.large_seats
runtime.default_seats
runtime.seats
runtime.sampler
runtime.scores
runtime.step_logits
beside_step  Scores or logits of a step [B] = max(runtime.scores, runtime.step_logits)
            ; one after the other
activations  Activations [B]
            = max(step_tokens * activation_width * result_bytes + beside_step, runtime.sampler)
            ; a full step, or sampling behind it
logits_per_request  Logits per request [B/request] = tokens_checked * plan.vocabulary * logit_bytes
runtime.context
runtime.together
runtime.communication
runtime.largest_graph
runtime.graph_sizes
runtime.graphs
runtime.graphs_on_top
reserve     Runtime [B] = runtime.context + runtime.communication + runtime.graphs

[memory] Capacity | how many requests run at once in a replica | subtotal
host_weights  Weights on the host [B] = min(inputs.offload_weights * bytes_per_gb, all_weights)
weights     Weights [B] = all_weights - host_weights
when other_models
runtime.seen

runtime.room_of_all
runtime.room_of_free
runtime.room_of_left
runtime.room_otherwise
room        Room beside all else [B]
            = where(share_of_memory == 'all', runtime.room_of_all, runtime.room_otherwise)
            ; by what the framework's share is of
usable      Usable memory [B]
            = max(0, min(hardware.memory_seen, weights + room + activations + reserve))
kv_room     Room for requests [B] = max(0, room)
when growing_cache
kv_growth   Room for one request to grow to its end [B]
            = one_request * added(*[kv_to_come{limit} each reach]) * plan.layers / model.layers
            ; on the fullest stage; the oldest one always ends

when not growing_cache
kv_growth   Room for one request to grow to its end [B] = 0
            ; on the fullest stage; the oldest one always ends

cache_room  Room for caches and logits [B] = kv_room + inputs.offload_kv * bytes_per_gb ; host memory too
over memory.cache_room = max(0, it - shared_prefix) | when prefixes
request_held  Room of a running request [B/request] = kv_bytes_per_request + logits_per_request
request_end  Room of a request at its end [B/request] = request_held + kv_growth / one_request
oldest      Requests with room to their end [request] = min(one_request, cache_room / request_end)
            ; the oldest one
rank_sequences  KV capacity of a rank in sequences [request]
            = min(oldest + max(0, cache_room - one_request * request_end) / request_held, kv_room /
            logits_per_request)
            ; others with what they have now; a KV cache may lie on the host, logits may not
capacity_sequences  KV capacity in sequences (KV capacity) [request] = rank_sequences * inputs.attention_dp
allowed     Requests that the engine would run [request]
            = where(inputs.max_requests > 0, min(requests, inputs.max_requests), requests)

# Requests that are stopped where memory runs out. A simulation, request by request, stops the newest where
# the KV cache is full: 0.02 prompts a request where the output is a tenth of the prompt, 0.6 where it is as
# long, 3.5 where it is five times as long. They are prefilled again, or their KV cache is parked on the host
# as far as there is room.
output_ratio  Output against the prompt [1] = inputs.output_tokens / inputs.input_tokens
kv_asked    Requests against KV capacity [1]
            = allowed / one_request / max(smallest, capacity_sequences / one_request)
kv_pressure  How full the KV cache is kept [1] = min(1, max(0, (kv_asked - calm) / (rush - calm)))
            ; all the time if 1
stopped     Prompts that lose their place, per request [1]
            = where(held_share < 1, kv_pressure * constant.redone * output_ratio * output_ratio /
            (output_ratio + redone_from), 0)
            ; older requests take it; with what they have generated so far @ simulation, 2026-11
parked_places  Requests that may be parked [request]
            = inputs.kv_swap * bytes_per_gb / kv_bytes_per_request * inputs.attention_dp ; in host memory
parked_share  Share of them that is parked [1]
            = where(stopped > 0, min(1, parked_places / max(one_request, parked * stopped *
            capacity_sequences)), 0) ; few are stopped at a time @ simulation, 2026-11
redone      Prompts prefilled again, per request [1] = (1 - parked_share) * stopped
            ; of requests that are stopped and not parked
swapped     KV bytes to the host and back, per request [B/request]
            = both_ways * parked_share * stopped * kv_bytes_per_request * inputs.input_tokens / held_length
            ; of a rank
batch       Batch [request] = max(1, min(allowed, capacity_sequences)) ; as far as the KV cache holds them

[memory] Memory used | weights + KV cache of the batch + working memory
seats       Requests on a rank [request] = max(1, batch / inputs.attention_dp)
all_kv      KV cache of the batch [B] = seats * kv_bytes_per_request + kv_growth
over memory.all_kv = it + shared_prefix | when prefixes
logits      Logits [B] = seats * logits_per_request
host_kv     KV cache on the host [B]
            = min(inputs.offload_kv * bytes_per_gb, max(0, all_kv + logits - kv_room))
            ; only what has no room goes there
kv          KV cache [B] = all_kv - host_kv
used        Memory used [B] = weights + kv + activations + logits + reserve
headroom    Headroom [B] = usable - used ; negative where it does not fit
free        Free memory [B] = max(0, headroom)
over memory.free = max(0, headroom - slack) | when prefixes
outside     Memory left to others [B] = hardware.memory_capacity - usable
limit       Most memory that may be used (usable memory with slack) [B] = usable + slack
            ; a full memory fits, however rounded
fits        Fits in memory [flag] = where(used <= limit, 1, 0)
