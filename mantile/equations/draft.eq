# What drafting costs: time in a step, weights and KV cache.
#
# A prediction layer is a layer like the model's own, by the same roofline. It works on all tokens that the
# step checks, then on one token of every request for each further draft token, and the LM head after each. A
# draft model is taken as one product with all its parameters, its layers launched and summed like the model's
# own. The text so far costs nothing to look up. A prompt goes through the drafter as well: later drafts look
# back at it.

when speculation

define rounds = speculation.drafts / tokens_per_step

[draft] Drafter | what drafting adds to the pass | subtotal | each drafted pass
each part of a layer
draft.layer_of.{n}  Layer on the tokens of the pass, part {n} [s] = {times}

each drafter of a pass
draft.layer  Layer on the tokens of the pass [s] = {layer}
            ; modules of a layer like the model's own, and messages

when step
each part of a layer alone
draft.layer_alone_of.{n}  Layer on one token of each request, part {n} [s] = {times}

when step
each drafter of a pass
draft.layer_alone  Layer on one token of each request [s] = {alone}
            ; modules of a layer like the model's own, and messages

each drafter of a pass
draft.join_parameters  Parameters that join embedding and hidden state [parameter]
            = joined * model.hidden_size * model.hidden_size ; every rank has them whole, in 16 bit
draft.join_read  Time to read them [s]
            = draft.join_parameters * vector_bytes / efficiency.rate.gemm_bytes.attention
draft.join_product  Time to multiply with them [s]
            = flops_per_mac * rank_tokens * draft.join_parameters / efficiency.rate.gemm_flops.attention
draft.join  Time to join embedding and hidden state [s]
            = efficiency.rate.gemm_launch_time.attention + max(draft.join_read, draft.join_product)
when step
draft.by_layer  Draft tokens by a layer like the model's own [s]
            = draft.layer + max(0, rounds - 1) * draft.layer_alone + rounds *
            (draft.decode.lm_head.layer_time + draft.join)
            ; the first draft token from all tokens of the step, each other from one

when prompt
each part of launches
draft.fixed_of.{n}  Launches and messages of a layer, part {n} [s] = {times}

when step
each part of launches alone
draft.fixed_of.{n}  Launches and messages of a layer, part {n} [s] = {times}

each drafter of a pass
when prompt
draft.fixed  Launches and messages of a layer [s] = {launches}
when step
draft.fixed  Launches and messages of a layer [s] = {fixed}

each drafter of a pass
draft.parameters  Parameters of a draft model on a rank [parameter]
            = inputs.draft_parameters * billion / inputs.tp
when prompt
draft.product  Time of its products [s]
            = flops_per_mac * rank_tokens * draft.parameters / efficiency.rate.gemm_flops.attention
when step
draft.product  Time of its products [s]
            = flops_per_mac * (rank_requests * tokens_per_step) * draft.parameters /
            efficiency.rate.gemm_flops.attention

each drafter of a pass
draft.read  Time to read its weights [s]
            = draft.parameters * vector_bytes / efficiency.rate.gemm_bytes.attention ; in 16 bit
when step
draft.cache  Time to read its cache [s]
            = rank_requests * length / inputs.cp * inputs.draft_kv_channels * hardware.kv_bytes / inputs.tp /
            efficiency.rate.gemm_bytes.attention ; it looks back at all tokens before
draft.model_pass  Pass of a draft model [s]
            = inputs.draft_layers * draft.fixed + (max(draft.product, draft.read) + draft.cache)
            ; launches and messages of a layer are those of the model
draft.by_model  Draft tokens by a draft model [s] = rounds * draft.model_pass
when prompt
draft.model_pass  Pass of a draft model [s]
            = inputs.draft_layers * draft.fixed + max(draft.product, draft.read)
            ; launches and messages of a layer are those of the model

each drafter of a pass
draft.bound  Bound by [1] = 'memory' ; mostly weights and cache
when prompt
draft.time  Time (time of the drafter) [s]
            = speculation.by_layer * (draft.layer + draft.join) + speculation.by_model * draft.model_pass
            ; the prompt, for later drafts to look back at
when step
draft.time  Time (time of the drafter) [s]
            = speculation.by_layer * draft.by_layer + speculation.by_model * draft.by_model
            ; one draft token after the other; the text so far costs nothing

[draft] Without drafts | what drafts are compared with | each drafted pass
when step
each part of a step
draft.plain_of.{n}  Time, part {n} [s] = {times}

when step
each plain step
draft.plain  Time (step without drafts) [s] = {times} ; one token of each request
