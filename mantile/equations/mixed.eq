# A step that carries prompts beside the tokens of running requests, operation by operation, by the same
# roofline as the passes by themselves. Weights are read once for all tokens of the step: where decode waits
# for memory, the FLOPs of prompts fit into that wait and add nothing. Devices that are not alike do so each
# for itself: one may wait for memory where another computes. A step is full with as many prompts as there can
# be.

[mixed] Prefill beside products of weights | as long in a step with other tokens; launches left out
when devices
each beside_on_device
beside.{d}.{m}  Prefill pass without its products of weights, {name} [s] = {time}
over mixed.beside.{d}.{m} = it - {launch} | when launched
over mixed.beside.{d}.{m} = it * {repeats}

when devices
each stage
beside.{d}.layers  Prefill pass without its products of weights, layers of device {d} [s]
            = sum([beside.{d}.{m} each beside_in_layers])

each beside
beside.{m}  Prefill pass without its products of weights, {name} [s] = {time}
over mixed.beside.{m} = it - {launch} | when launched
over mixed.beside.{m} = it * {repeats} | when repeated
over mixed.beside.{m} = sum(*[beside.{d}.{m} each stage]) | when on_devices

beside.whole  Prefill pass without its products of weights [s] = sum([beside.{m} each beside])
            ; launches left out

[mixed] Step with prompts | time that prompts add to a decode step | each carried
{s}share    Prompts in a step, against those of a prefill pass [1]
            = {prompts} * one_request / prefill.requests
{s}reads    Reads of the weights for them, against those of a prefill pass [1]
            = where(prefill.passes > 1, max(1, {s}share * prefill.passes), 1) / prefill.passes
            ; once, or for each part in which the framework takes prompts
{s}decode_runs  Decode runs in the same step [flag] = 1 - scheduler.first
each product
{s}{w}.weights  Weight bytes of the step, {name} [B]
            = max({s}reads * {prefill}.weight_bytes, {s}decode_runs * {decode}.weight_bytes) ; read once
{s}{w}.bytes  Bytes of the step, {name} [B]
            = mixed.{s}{w}.weights + ({s}share * ({prefill}.bytes - {prefill}.weight_bytes) + {s}decode_runs *
            ({decode}.bytes - {decode}.weight_bytes))
{s}{w}.time  Time of the step with prompts, {name} [s]
            = max({s}share * {prefill}.compute_time + {s}decode_runs * {decode}.compute_time,
            mixed.{s}{w}.bytes * ({prefill}.memory_time / {prefill}.bytes)) ; launches left out
when in_layers
{s}{w}.added  Time prompts add, {name} [s]
            = max(0, mixed.{s}{w}.time - {s}decode_runs * max({decode}.compute_time, {decode}.memory_time)) *
            {repeats}

each added
{s}{m}      Time prompts add to a step, {name} [s]
            = max(0, mixed.{s}{m}.time - {s}decode_runs * max({decode}.compute_time, {decode}.memory_time))
over mixed.{s}{m} = it * {repeats} | when repeated
over mixed.{s}{m} = sum(*[mixed.{s}{d}.{m}.added each stage]) | when on_devices

{s}added    Time prompts add to a step [s] = {s}share * beside.whole + sum([mixed.{s}{m} each added])
when speculation
{s}at_end   Time prompts add at the end of the last stage [s] = {s}share * beside.draft + {s}lm_head

when not devices
{s}layer    Time prompts add on a mean layer [s] = ({s}added - {s}{end}) / model.layers
            ; with all but the LM head
{s}pace     Step with prompts by its slowest stage [s]
            = max(decode.plan.layers * {s}layer + serving.decode_pace.1, floor(model.layers /
            inputs.decode_pp) * {s}layer + {s}{end} + serving.decode_pace.2)

when devices
each stage
{s}{d}.layers  Time prompts add in the layers of device {d} [s]
            = {s}share * beside.{d}.layers + sum(*[mixed.{s}{d}.{m}.added each added_in_layers])

when devices
{s}elsewhere  Time prompts add outside layers [s]
            = {s}added - sum(*[mixed.{s}{d}.layers each stage]) - {s}{end} ; spread over the layers

when devices
each stage
{s}pace.{d}  Step with prompts by the pace of device {d} [s]
            = serving.decode_pace.{d} + mixed.{s}{d}.layers + {s}elsewhere * device.{d}.part +
            where(device.{d}.last, {s}{end}, 0)

when devices
{s}pace     Step with prompts by its slowest stage [s] = max(*[mixed.{s}pace.{d} each stage])

{s}longer   Time prompts hold up a step [s]
            = where(inputs.decode_pp > 1, {s}pace - serving.decode_pace, {s}added)
            ; in a pipeline its slowest stage, which may be another with them
