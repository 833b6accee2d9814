# A forward pass beside its modules and messages: what is read of hosts, host time, and how the pass uses an
# accelerator.

# Weights, and in decode KV cache, that lie in host memory and are read over its link in every pass. The KV
# cache of a request that is stopped goes there once, and once back: of each step its share.
[forward] Host memory | nothing unless weights or KV cache are offloaded or parked | subtotal | each step
host.swapped  Bytes of stopped requests in a step, host memory (bytes of stopped requests in a step) [B]
            = memory.swapped * inputs.pp * rank_requests * emitted / inputs.output_tokens
            ; a request is in as many steps as it has output tokens
host.bytes  Bytes, host memory (bytes) [B]
            = (memory.host_weights + memory.host_kv * requests / memory.batch) * inputs.pp + host.swapped
            ; of all stages; of the cache what the requests in the pass have there

[forward] Host memory | nothing unless weights or KV cache are offloaded or parked | subtotal | each prompt
host.bytes  Bytes, host memory (bytes) [B] = memory.host_weights * inputs.pp * passes
            ; of all stages

[forward] Host memory | each pass
host.per_byte  Time per byte, host memory (time per byte) [s/B]
            = where(efficiency.rate.host_bytes > 0, 1 / efficiency.rate.host_bytes, 0)
host.bound  Bound by, host memory (bound by) [1] = 'memory' ; the host link
host.time   Time, host memory (time of the host memory) [s] = host.bytes * host.per_byte

[forward] Step overhead | once per pass: scheduler, sampling | subtotal | each prompt
step.time   Time, step overhead (step overhead) [s]
            = efficiency.step_host * passes + efficiency.step_row * (rank_requests / one_request)

[forward] Step overhead | once per pass: scheduler, sampling | subtotal | each step
when speculation
step.request  Host time for a request, check of its drafts included [s]
            = efficiency.step_row + speculation.check_time

step.time   Time, step overhead (step overhead) [s]
            = efficiency.step_host + time_of_request * (rank_requests / one_request)

define time_of_request = efficiency.step_row | when not speculation
define time_of_request = step.request | when speculation

for phase | where in prefill | prompt; decode | step
[forward] Use of the hardware | against the datasheet peaks | each {where}
each module with FLOPs in {phase}
flops.{m}   FLOPs in the pass, {label} [FLOP] = {m}.flops
over {space}flops.{m} = it * {m}.layers | when in_layers

flops       FLOPs of the pass [FLOP] = sum([flops.{m} each module with FLOPs in {phase}]) ; of one rank
each module that reads in {phase}
read.{m}    Read in the pass, {label} [B] = {m}.{reads}
over {space}read.{m} = it * {m}.layers | when in_layers

bytes       Weights and cache read in the pass (bytes read) [B]
            = sum([read.{m} each module that reads in {phase}]) ; of one rank
peak        Largest peak of its products [FLOP/s] = max(*peaks, hardware.sixteen_peak)
            ; attention runs in 16 bit
mfu         Compute used, MFU (MFU) [1] = flops / (time * peak)
mbu         Bandwidth used, MBU (MBU) [1] = bytes / (time * hardware.memory_bandwidth)
