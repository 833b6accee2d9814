# Attention cores: fused and causal in prefill, reading a cache in decode. MHA, GQA and MQA, full, sliding or
# chunked; latent attention; the indexer of sparse attention.

# Prefill computes at the bf16 rate and moves next to nothing; decode reads keys and values within reach.
[attention] Attention | causal, fused: scores never leave the chip | each attention in prefill
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * (its.query + its.result)
compute_time  Compute time [s] = flops / efficiency.rate.cached_attention_flops
launch_time   Launch time [s] = efficiency.rate.attention_launch_time * passes

[attention] Attention | reads the KV cache of every request | each attention in decode
cache_bytes   Cache read [B] = rank_requests * {context} * ((its.key + its.value) * hardware.kv_bytes)
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * (its.query + its.result)
over {space}flops = it * inputs.dcp | when decode_CP
bytes         Bytes [B] = cache_bytes
compute_time  Compute time [s] = flops / (hardware.sixteen_peak * inputs.compute_speed)
memory_time   Memory time [s] = bytes / efficiency.rate.kv_read
launch_time   Launch time [s] = efficiency.rate.attention_launch_time

# Expanded per head in prefill, absorbed in decode, where every rank reads all latents. Where tokens of a
# prompt select theirs, prefill is absorbed too.
[attention] Latent attention | keys and values expanded per head; causal, fused
  | each latent attention, all expanded
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * its.expanded

[attention] Latent attention
  | of selected tokens latents are read as in decode, else keys and values expanded per head
  | each latent attention, some selected
pair_channels  Channels for a pair of tokens [channel]
            = where(inputs.input_tokens > {selected}, its.absorbed, its.expanded)
            ; absorbed where each token of the prompt selects its own
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * pair_channels

[attention] Latent attention | each latent attention in prefill
compute_time  Compute time [s] = flops / efficiency.rate.attention_flops
launch_time   Launch time [s] = efficiency.rate.latent_launch_time * passes

[attention] Latent attention | queries absorb the key projection; the latent is the same on every rank
  | each latent attention in decode
cache_bytes   Cache read [B] = rank_requests * {context} * (its.latent * hardware.kv_bytes)
when not decode_CP
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * its.absorbed
when decode_CP
flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * (its.absorbed * inputs.dcp)

bytes         Bytes [B] = cache_bytes
compute_time  Compute time [s] = flops / efficiency.rate.latent_flops
memory_time   Memory time [s] = bytes / efficiency.rate.latent_read
launch_time   Launch time [s] = efficiency.rate.latent_launch_time

# Scores of every earlier token, from which attention takes the best.
[attention] Indexer | the same on every rank; causal | each indexer in prefill
[attention] Indexer | the same on every rank; reads the indexer's keys of the whole context
  | each indexer in decode
[attention] Indexer | each indexer
score_rate    FLOP/s that scores reach [FLOP/s]
            = efficiency.rate.attention_flops * max(1, hardware.peak_fp8 / hardware.sixteen_peak)
            ; queries and keys are fp8 where the accelerator multiplies in it
when in_decode
cache_bytes   Cache read [B] = rank_requests * {context} * (its.key * index_bytes)

flops         FLOPs [FLOP] = flops_per_pair * rank_tokens * {context} * (its.query + its.heads)
when in_decode
bytes         Bytes [B] = cache_bytes

compute_time  Compute time [s] = flops / score_rate
when in_decode
memory_time   Memory time [s] = bytes / efficiency.rate.kv_read

launch_time   Launch time [s] = efficiency.rate.attention_launch_time
over {space}launch_time = it * passes | when in_prefill
