# What a server prints of its memory when it starts: the room for its KV cache, before the first request.
# Start-up figures are those of the fullest rank.

define filled(pools) = index(pools, match(inputs.framework, framework.name)) == 'filled'
define on_rank(process) = process + memory.host_embedding + memory.host_weights + memory.host_kv +
  inputs.kv_swap * bytes_per_gb

[startup] Start of the server | what its log says | each rank
request     KV cache of a finished request [B/request]
            = memory.kv_bytes_per_request + memory.kv_growth / one_request
requests    Requests of this length that the KV cache of a rank holds [request]
            = where(request > 0, memory.kv_room / request, no_bound)
            ; at their full length; no bound where a device holds none of the KV cache
kv_tokens   Tokens for which the KV cache of a rank has room (KV capacity in tokens) [token]
            = requests * memory.sequence_length ; in requests of this length, as engines print it
kv_cache    KV cache after the start [B] = where(filled(framework.kv_pool), memory.kv_room, memory.kv)
            ; all of the room, where the engine takes it at once
peak        Memory in use after the start [B]
            = memory.weights + memory.activations + memory.reserve + kv_cache
holds       Room against one request [1] = where(filled(framework.kv_pool), requests / one_request, 1)
            ; 1 where the engine takes as much as requests need
starts      The server starts [flag] = where(all(peak <= {seen} + slack, holds >= 1), 1, 0)
            ; it has the memory, and room for one request of this length
buffers     Weights, KV cache and activations after the start [B] = peak - memory.reserve
            ; without the runtime

for p in 10; 90
weights.p{p}  Weights, p{p} [B] = memory.weights * weights_p{p} ; of 100 servers
            @ spread of predicted ÷ printed on 96 start-up logs of 2023 to 2026
tokens.p{p}  KV tokens that fit, p{p} [token] = kv_tokens * tokens_p{p} ; of 100 servers
            @ spread of predicted ÷ printed on 96 start-up logs of 2023 to 2026
peak.p{p}   Memory in use after the start, p{p} [B] = peak * peak_p{p} ; of 100 servers
            @ spread of predicted ÷ printed on 96 start-up logs of 2023 to 2026

shared      Main memory is that of the accelerator [flag]
            = where(all(hardware.host_bandwidth <= 0, hardware.accelerators <= accelerators_per_rank), 1, 0)
            ; a CPU, or a chip beside one; no link leads from it to a host
when prefixes
on_host.1   On the host for a rank, part 1 [B] = on_rank(efficiency.host_process)
on_host.2   On the host for a rank, part 2 [B] = inputs.prefix_host * bytes_per_gb
over {space}startup.ram = where(shared > 0, memory.used, on_host.1 + on_host.2)

ram         Main memory of a rank [B] = where(shared > 0, memory.used, on_rank(efficiency.host_process))
            ; its processes and what lies on the host for it; all that it holds where memory is shared
host_ranks  Ranks on a machine [rank]
            = min(plan.accelerators, hardware.host_accelerators) / accelerators_per_rank
host        Main memory of a machine [B] = ram * host_ranks ; of all ranks on it
host.p10    Main memory of a machine, p10 [B]
            = where(shared > 0, peak.p10, ram - efficiency.host_process * (1 - ram_process_p10)) * host_ranks
            @ assumed, by single reports of vLLM
host.p90    Main memory of a machine, p90 [B] = where(shared > 0, peak.p90, ram * ram_p90) * host_ranks
            @ assumed, by single reports of vLLM
