# A pipeline over devices that are not alike: each holds some of the layers and works at its own pace. Layers
# are split by a rule until their cells are stated; the engine finds the solved split. A link that nobody
# states is the fastest that the ports of both machines allow (link.eq).
#
# Python says which devices and links there are: {n} is the number of a device, {stage} that of its stage,
# {machine} what ids of its accelerators begin with, {count} the cell with its accelerators; {one} and {other}
# are the ends of a link.

when devices

# Weights of devices are added up in their order; a device ends where the share of all so far ends. Of an even
# share that is no whole number the first devices take one more; others are cut off.
define even_end(weight, all_weights) = weight * floor(model.layers / all_weights) + min(weight,
  remainder(model.layers, all_weights))
define end_by_share(weight, all_weights) = floor(model.layers * weight / all_weights + sliver)

for way | words | unit | weight | end in
  even | evenly | 1 | where({count} > 0, 1, 0) |
  even_end(devices.{n}.even_so_far, devices.{last}.even_so_far);
  memory | by memory | GB | {count} * inputs.device{n}_memory |
  end_by_share(devices.{n}.memory_so_far, devices.{last}.memory_so_far);
  bandwidth | by bandwidth | B/s | {count} * {machine}hardware.memory_bandwidth |
  end_by_share(devices.{n}.bandwidth_so_far, devices.{last}.bandwidth_so_far)
[devices] Devices | layers of each, and the links between them
each device in line
{n}.{way}_so_far  Weight of devices up to {n}, {way} [{unit}] = {weight}

each later device
over devices.{n}.{way}_so_far = devices.{n-1}.{way}_so_far + it

each device in line
{n}.{way}_end  Last layer of device {n}, {way} [layer] = {end}
{n}.{way}  Layers of device {n}, split {words} [layer] = 1 * devices.{n}.{way}_end

each later device
over devices.{n}.{way} = devices.{n}.{way}_end - devices.{n-1}.{way}_end

[devices] Devices
each device in line
{n}.by_weight  Layers of device {n}, by memory or bandwidth [layer]
            = where(inputs.device_split == 'memory', devices.{n}.memory, devices.{n}.bandwidth)
{n}.by_rule  Layers of device {n}, by a rule [layer]
            = where(inputs.device_split == 'even', devices.{n}.even, devices.{n}.by_weight)
when first
{n}.rest    Layers that other devices leave [layer]
            = max(0, model.layers - added(*[inputs.device{m}_layers each later device]))
{n}.split   Layers of device {n}, as they are split [layer]
            = where(inputs.device_split == 'rest', devices.{n}.rest, devices.{n}.by_rule)
            ; what its cell follows; where the split was solved, the engine states the cells
when not first
{n}.split   Layers of device {n}, as they are split [layer]
            = where(inputs.device_split == 'rest', 0, devices.{n}.by_rule)
            ; what its cell follows; where the split was solved, the engine states the cells

stages      Devices that hold layers [stage]
            = max(1, added(*[where(inputs.device{n}_layers > 0, 1, 0) each device in line]))
when links
switched    Links go through a switch [flag] = where(inputs.links == 'star', 1, 0)
            ; only Ethernet reaches one

# Activations go from a device to the next with layers. In a chain they pass the devices between; in a ring
# too, or the other way round where that has fewer links; in a mesh as in a chain where two devices have no
# link of their own.

[devices] What goes over links
when links
any_two     Links join any two [flag] = switched + where(inputs.links == 'mesh', 1, 0)

each device in line
when links
{n}.there   There is a device {n} [flag] = where({count} > 0, 1, 0)

when links
there       Devices that there are [device] = added(*[devices.{n}.there each device in line])

each earlier device
when links
{n}.is_last  Device {n} is the last [flag] = devices.{n}.there * (1 - devices.{n+1}.there)

each cable
when links, to the next
passes      Activations go from the one to the other [flag]
            = where(all(inputs.device{one}_layers > 0, inputs.device{other}_layers > 0), 1, 0)
when links, not to the next
passes      Activations go from the one to the other [flag]
            = where(all(inputs.device{one}_layers > 0, inputs.device{other}_layers > 0,
            plan.before.{other-1} <= plan.before.{one}), 1, 0) ; no device between them holds a layer
straight    By a link of their own [flag] = where(rate + devices.switched > 0, devices.any_two, 0)
links_between  Links of the chain between them [number] = {between}
round       The other way round has fewer links [flag]
            = where(all(inputs.links == 'ring', devices.there - links_between < links_between), 1, 0)
when links, not to the next, of the first
laid        There is such a link [flag] = devices.any_two + where(inputs.links == 'ring', {is_last}, 0)
            ; of a ring from the last to the first
when links, not to the next, not of the first
laid        There is such a link [flag] = 1 * devices.any_two
when links, not to the next
direct      Sent by it [flag] = passes * straight
along       Sent along the chain [flag] = passes * (1 - straight) * (1 - round)
around      Sent the other way round [flag] = passes * round

[devices] What goes over links
each cable
when not links, not parts
used        Activations go over it [flag]
            = where(all(inputs.device{one}_layers > 0, plan.before.{one} < model.layers), 1, 0)
when not links, parts
carried     Transfers over it [number]
            = where(all(inputs.device{one}_layers > 0, plan.before.{one} < model.layers), 1, 0)
when links
carried     Transfers over it [number] = {carried}
when parts
back        Activations go over it and back [flag]
            = where(all(inputs.device{other}_layers > 0, {count} > 0, {parts} > 0), 1, 0)
used        Activations go over it [flag] = where(all(carried <= 0, back <= 0), 0, 1)
when links, not parts
used        Activations go over it [flag] = where(carried > 0, 1, 0)

each cable
missing     No way [flag] = where(all(used > 0, rate <= 0), 1, 0)

# Seconds that the activations of a pass are on the way, over each link; 0 over one that is not used. Those to
# parts of layers on the device before go there and back.

[devices] Activations over links | each pass of devices
sent_bytes  Activations from a device to the next [B] = {phase}.activations

[devices] Activations over links | each transfer
{name}.sent  Activations from {words} [s]
            = {carried} * where({link}.rate > 0, {link}.latency + sent_bytes / {link}.rate, 0) *
            (1 - efficiency.p2p_overlap)

[devices] All activations over links | each transfer
when over
{name}.over  All activations from {words} [s] = {space}{name}.sent + {over}

[devices] The busiest link | each prefill of devices
longest_sent  Longest time of a link [s]
            = max(*[devices.prefill.{name}.{sent} each transfer of a prefill])

[devices] The busiest link | each transfer of a prefill
{name}.busiest  The link of {words} is the busiest [flag]
            = where(all({space}{name}.{sent} > 0, {space}{name}.{sent} >= longest_sent), 1, 0)

# What another split would give, at the batch as it is now. A device keeps the layers' weights and caches; the
# embedding stands on the device with the first layer then, the LM head on that with the last.

for phase in prefill; decode
[devices] Other ways to split layers | at the batch as it is now | each way to split
{phase}.end  LM head and drafter, {phase} [s] = {phase}.at_end

each device in line
{phase}.{n}.layers  Time of the layers of device {n}, {phase} [s]
            = added(*[{space}plan.{kind}.{stage} * devices.{phase}.{n}.layer.{kind} each kind in line])

{phase}.layers  Time of all layers, {phase} [s] = added(*[{space}{phase}.{n}.layers each device in line])
{phase}.common  Time of all else, {phase} [s] = {phase}.time - devices.{phase}.layers - {phase}.end
            ; as it is now

each device in line
{phase}.{n}.stage  Time on device {n}, {phase} [s]
            = {phase}.{n}.layers + {phase}.common * (devices.{n}.{way} / model.layers) +
            where({space}plan.last.{stage} > 0, {phase}.end, 0)

[devices] Other ways to split layers | each way to split
slowest     Slowest device [s] = max(*[{space}decode.{n}.stage each device in line])
step        Decode step [s]
            = max(decode.layers + decode.common + decode.end, decode.microbatches * slowest)
through     Prefill pass through all devices [s] = prefill.layers + prefill.common + prefill.end
prefill.slowest  Slowest device, prefill [s] = max(*[{space}prefill.{n}.stage each device in line])

each device in line
{n}.layers  Layers and caches, device {n} [B]
            = added(*[{space}plan.{kind}.{stage} * ({weights} + memory.seats * {cache}) each kind in line])
{n}.ends    Embedding and LM head, device {n} [B]
            = where({space}plan.first.{stage} > 0, {start}, 0) +
            where({space}plan.last.{stage} > 0, {behind}, 0)
{n}.beside  Beside layers and caches, device {n} [B]
            = where(devices.{n}.{way} > 0, memory.activations + memory.logits + memory.reserve, 0)
{n}.used    Memory used by device {n} [B] = {space}{n}.layers + {space}{n}.ends + {space}{n}.beside

room        Every device has room [flag]
            = where(all(*[{space}{n}.used <= devices.{n}.memory.limit each device in line]), 1, 0)

# In a ring, a star or a mesh there may be another way: nothing is said of those.
each earlier device
when not links
{n}.no_way  No way from device {n} to the next [flag]
            = where(all(devices.{n}.link.rate <= 0, plan.before.{n} > 0, plan.before.{n} < model.layers),
            1, 0)
when links
{n}.no_way  No way from device {n} to the next [flag]
            = where(all(devices.{n}.link.rate <= 0, plan.before.{n} > 0, plan.before.{n} < model.layers,
            inputs.links == 'chain'), 1, 0)

fits        Possible [flag] = where(added(*[{space}{n}.no_way each earlier device]) > 0, 0, room)
            ; with room, and a way from each device to the next
stages      Devices that hold layers [stage]
            = added(*[where(devices.{n}.{way} > 0, 1, 0) each device in line])
as_soon     Prefill takes no longer [flag]
            = where(all(through <= prefill.time * (1 + sliver),
            prefill.slowest <= devices.prefill.slowest * (1 + sliver)), 1, 0) ; on the slowest device too
counted     Decode step if nothing else is worse [s]
            = where(all(fits > 0, as_soon > 0, stages == inputs.pp), step, no_bound_time)
            ; as many devices hold layers and have room for the batch, and prefill takes no longer

[devices] Other ways to split layers
other.best  Shortest decode step of other splits [s]
            = min(*[devices.other.{way}.counted each way to split])
            ; of those with which nothing else is worse; a day where there is none

# Who holds which layers, in words. Parts of a device's layers may lie on the device before.

define away(cell) = where({count_before} > 0, cell, 0)

[devices] Who holds layers | in words
each device in line
when experts_away, not first
{n}.words.experts  Where experts of device {n} lie, in words [1]
            = choose(1 + min(1, away(inputs.device{n}_experts_away)), '', join(', with experts of ',
            min(away(inputs.device{n}_experts_away), inputs.device{n}_layers), ' layers on ',
            devices.{n-1}.hardware.name))
when KV_cache_away, not first
{n}.words.kv  Where the KV cache of device {n} lies, in words [1]
            = choose(1 + min(1, away(inputs.device{n}_kv_away)), '', join(', with the KV cache of ',
            min(away(inputs.device{n}_kv_away), inputs.device{n}_layers), ' layers on ',
            devices.{n-1}.hardware.name))

each device in line
{n}.words.none  Where device {n} has no layers, in words [1]
            = join('No layers run on ', {machine}hardware.name, where(plan.counted.{n} > 0, '. ',
            ': it counts neither as an accelerator nor in power and cost. '))
{n}.words   Layers of device {n}, in words [1]
            = where(inputs.device{n}_layers > 0, join(inputs.device{n}_layers, ' layers run on ',
            {machine}hardware.name, {words}'. '), devices.{n}.words.none)

words       Layers of devices, in words [1] = join(*[devices.{n}.words each device in line])

# What the part Devices of Layers says: expressions of its cells.

define from_to(before, held) = join(text(before + 1), ' – ', text(before + held))

[devices] Cells of Layers | aside
shown.finding  What it comes to, in words [1]
            = join(text(serving.output_tokens_per_s), ' tokens/s from ', text(inputs.pp),
            where(inputs.pp > 1, ' devices; ', ' device; '),
            choose(min(*[where(devices.decode.{n}.stage >= devices.decode.slowest, plan.stage.{stage},
            plan.stage.{last-1}) each device in line]) + 1, *[{machine}hardware.name each device in line]),
            ' takes longest in decode')
shown.counted  Accelerators of all devices [accelerator] = added(*[plan.counted.{n} each device in line])
shown.layers  Layers of all devices [layer] = added(*[inputs.device{n}_layers each device in line])
shown.split  Layers of the devices, in words [1]
            = join(text(inputs.device1_layers),
            *[join(' · ', text(inputs.device{m}_layers)) each later device])
when links
shown.links  Which links there are, in words [1] = join('links: ', inputs.links)

shown.possible  Whether the split as it is fits [1] = where(checks.possible > 0, 'yes', 'no')

each device in line
{n}.shown.count  Accelerators of device {n} [rank] = 1 * {count}
{n}.shown.layers  Layers of device {n} [layer] = 1 * inputs.device{n}_layers
{n}.shown.which  Which layers device {n} holds [1] = where(inputs.device{n}_layers > 0,
            from_to(plan.before.{stage}, inputs.device{n}_layers), '–')
{n}.shown.room  Requests for whose KV cache device {n} has room [request]
            = where({holds} > 0, memory.capacity_sequences, '–')
{n}.shown.box  Device {n} in the picture [1]
            = where({count} > 1, join(text({count}), ' × ', {machine}hardware.name), {machine}hardware.name)
{n}.shown.box_layers  Its layers in the picture, device {n} [1]
            = where(inputs.device{n}_layers > 0,
            join('layers ', from_to(plan.before.{stage}, inputs.device{n}_layers)), 'no layers')
{n}.shown.box_memory  Its memory in the picture, device {n} [1]
            = join(text({machine}hardware.memory_bandwidth / bytes_per_gb), ' GB/s · ',
            rounded(memory.used / bytes_per_gb, 1), ' of ', rounded(memory.usable / bytes_per_gb, 1), ' GB')
when last
{n}.shown.way  Link of device {n} to the next, in words [1] = join('the last', ' of the list')

[devices] Cells of Layers | aside
each cable
shown.way   In words [1]
            = join(rounded(bandwidth, 2), ' GB/s, ', rounded({cell}_latency, 0), ' us, ',
            where(stated > 0, {cell}, 'inferred from ports'))
shown.kind  Kind and rate, in words [1]
            = join(where(stated > 0, {cell}, 'inferred'), ' · ', rounded(rate / bytes_per_gb, 2), ' GB/s')
shown.line  Line of the picture [1] = where(stated > 0, '━━━━━━━━━━━━━━▶', '╍ ╍ ╍ ╍ ╍ ╍ ╍ ╍▶')
shown.details  Latency and use, in words [1]
            = join(rounded(latency * us_per_s, 0), ' us · ',
            where(used > 0, join(rounded(devices.prefill.{name}.{sent} * ms_per_s, 2), ' ms of a prefill'),
            'not used'), where(devices.prefill.{name}.busiest > 0, ' · busiest', ''))
when links
shown.reached  What transfers reach, in GB/s [1]
            = where({exists}, join(rounded(rate / bytes_per_gb, 2), choose(1 + stated, ' ~', '')), 'none')
shown.used  Whether anything goes over it, in a word [1]
            = where({exists}, choose(1 + used + devices.prefill.{name}.busiest, 'not used', 'in use',
            'busiest'), 'none')

[devices] Cells of Layers | aside | each way to split
shown.possible  Whether it fits [1] = where(fits > 0, 'yes', 'no')
shown.split  Layers of the devices, in words [1]
            = join(text(devices.1.{way}), *[join(' · ', text(devices.{m}.{way})) each later device])
