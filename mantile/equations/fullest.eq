# The memory of the fullest accelerator, where workers or devices have accelerators of their own: that of
# which the largest share of usable memory is taken. Where all are alike, it is that of any.

[fullest] Fullest accelerator | of both workers | when disaggregated
memory.of_prefill  Prefill workers are fuller [flag]
            = where(memory.used * decode.memory.usable > decode.memory.used * memory.usable, 1, 0)
            ; by the share of usable memory
for row | label in used | Memory used; usable | Usable memory; weights | Weights; kv | KV cache;
            activations | Activations; logits | Logits; reserve | Runtime; free | Free memory;
            outside | Memory left to others
memory.{row}  {label}, fullest accelerator [B]
            = where(memory.of_prefill > 0, memory.{row}, decode.memory.{row})

hardware.memory_capacity  Memory of the fullest accelerator [B]
            = where(memory.of_prefill > 0, hardware.memory_capacity, decode.hardware.memory_capacity)
for end | label in | ; .p10 | , p10; .p90 | , p90
startup.host{end}  Main memory of a machine{label}, the one with most [B]
            = max(startup.host{end}, decode.startup.host{end})

[fullest] Fullest device | by the share of usable memory | when devices
memory.share.*
memory.device  Fullest device [number] = match(max(*[memory.share.*]), [memory.share.*])
for row | label in used | Memory used; usable | Usable memory; weights | Weights; kv | KV cache;
            activations | Activations; logits | Logits; reserve | Runtime; free | Free memory;
            outside | Memory left to others
memory.{row}  {label}, fullest device [B] = choose(memory.device, *devices.memory.{row})

hardware.memory_capacity  Memory of the fullest accelerator [B]
            = choose(memory.device, *devices.hardware.memory_capacity)
startup.kv_tokens  Tokens for which the KV cache has room, device with least room [token]
            = min(*[devices.*.startup.kv_tokens])
startup.requests  Requests of this length that it holds [request] = min(*[devices.*.startup.requests])
startup.peak  Memory in use after the start, fullest device [B]
            = choose(memory.device, *[devices.*.startup.peak])
for p in 10; 90
startup.range.weights.p{p}  Weights, fullest device, p{p} [B]
            = choose(memory.device, *[devices.*.startup.weights.p{p}])
startup.range.kv_tokens.p{p}  Tokens of the KV cache, device with least room, p{p} [token]
            = min(*[devices.*.startup.tokens.p{p}])
startup.range.peak_memory.p{p}  Memory in use after the start, fullest device, p{p} [B]
            = choose(memory.device, *[devices.*.startup.peak.p{p}])

memory.alike.*.*
memory.alike.*
memory.together.*
for end | label in | ; .p10 | , p10; .p90 | , p90
startup.host{end}  Main memory of a machine{label}, the one with most [B]
            = devices.1.startup.host{end} * memory.together.1

[fullest] Share of a device | each numbered device | aside
memory.share.{n}  Share of usable memory, device {n} [1]
            = where(plan.counted.{n} > 0, 1, 0) * where(devices.{n}.memory.usable > 0,
            devices.{n}.memory.used / devices.{n}.memory.usable,
            1 + devices.{n}.memory.used / {machine}hardware.memory_capacity)
memory.alike.{n}  Ranks of devices like device {n} [accelerator] = sum([memory.alike.{n}.*])
memory.together.{n}  Ranks on the machine of device {n}, against its own [1]
            = where(plan.counted.{n} > 0, min(memory.alike.{n}, {machine}hardware.host_accelerators) /
            min(devices.{n}.plan.accelerators, {machine}hardware.host_accelerators), 0)

[fullest] Ranks of a device on the machine of another | each pair of devices | aside
memory.alike.{n}.{m}  Ranks of devices like device {n}, part {m} [accelerator]
            = where(all(plan.counted.{m} > 0, {of}accelerator == {other}accelerator,
            {of}system == {other}system), devices.{m}.plan.accelerators, 0)

[fullest] Machine of a device | each other device | aside
for end in ; .p10; .p90
over fullest.startup.host{end} = max(it, devices.{n}.startup.host{end} * memory.together.{n})
