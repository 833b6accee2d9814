# Layers with a state that does not grow: gated delta rule, KDA, Mamba. A prompt is worked on in chunks;
# decode updates the state once per token. Convolution and state update of one layer.

for phase | note | form in prefill | the prompt in chunks | the chunked form;
  decode | one update of the state per token | a token by itself
[recurrence] Recurrent state | {note} | each recurrent state in {phase}
macs          Products per token and rank (products) [channel] = its.macs ; {form}

[recurrence] Recurrent state | each recurrent state
when not drafts
state_moved   States read and written [B] = both_ways * rank_requests * memory.layer_state.{m}
when drafts
state_moved   States read and written [B]
            = (1 + speculation.checked / tokens_per_step) * rank_requests * memory.layer_state.{m}
            ; one is read, and one kept behind each token until it is known which are right

flops         FLOPs [FLOP] = flops_per_mac * rank_tokens * (macs + memory.conv_channels.{m} * {kernel})
bytes         Bytes [B]
            = state_moved + rank_tokens * memory.conv_channels.{m} * both_ways * result_bytes
compute_time  Compute time [s] = flops / efficiency.rate.attention_flops
memory_time   Memory time [s] = bytes / efficiency.rate.state_bytes
launch_time   Launch time [s] = efficiency.rate.state_launch_time
over {space}launch_time = it * passes | when in_prefill
