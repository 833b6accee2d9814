# What the time to the first token and the time per output token are made of: parts that add up to them. Two
# plans differ by the differences of these parts. A part is a row of a pass, or what a later row adds to the
# pass. No sheet has them; nothing follows from them.
for t | T | p in ttft | TTFT | prefill; tpot | TPOT | decode
[parts] Parts of {T} | aside
each part of {p}
{t}.{part}  {T}, {label} ({label}) [s] = {seconds}

{t}.compute {T}, compute (compute) [s] = {p}.bound.compute
{t}.launches  {T}, launches (launches) [s] = {p}.bound.overhead - {p}.overhead.step
{t}.step    {T}, step overhead (step overhead) [s] = {p}.overhead.step ; scheduler, sampling

[parts] Parts of TTFT | aside
ttft.chunks TTFT, chunks and stages (chunks and stages) [s] = serving.prefill_through - prefill.time
            ; launches of every chunk; less where stages of a pipeline work on several chunks at a time
ttft.host   TTFT, wait for the host (wait for the host) [s] = serving.prefill - serving.prefill_through
when prefixes
ttft.prefix TTFT, prefix fetched (prefix fetched) [s] = serving.prefill_fetched - serving.prefill

when disaggregated
ttft.transfer  TTFT, KV transfer (KV transfer) [s] = serving.transfer

ttft.first_token  TTFT, request handling (request handling) [s] = serving.first_token
ttft.first_step  TTFT, running step (running step) [s] = serving.first_step
ttft.held_back  TTFT, batching delay (batching delay) [s] = serving.held_back
ttft.queue  TTFT, wait behind prompts (wait behind prompts) [s] = serving.queue
ttft.slot   TTFT, wait for a batch slot (wait for a batch slot) [s] = serving.seat_wait
when disaggregated
ttft.worker TTFT, wait for a prefill worker (wait for a prefill worker) [s] = serving.prefill_wait

ttft.burst  TTFT, warm-up burst (warm-up burst) [s] = serving.burst_wait

[parts] Parts of TPOT | aside
tpot.pipeline  TPOT, other micro-batches (other micro-batches) [s]
            = where(inputs.decode_pp > 1, serving.decode_pace - decode.time, 0) ; in a pipeline
when launches
tpot.host   TPOT, wait for the host (wait for the host) [s] = serving.decode_idle

when request_rate
tpot.rate   TPOT, batch at this rate (batch at this rate) [s] = serving.step_in_use - serving.decode_step
            ; it holds more or fewer requests than that of the Decode part

tpot.stall  TPOT, prompts of others (prompts of others) [s] = stall_used
when speculation
tpot.drafts_kept  TPOT, tokens of accepted drafts (tokens of accepted drafts) [s]
            = serving.tpot - serving.step_and_stall ; a step and its stalls give several tokens
