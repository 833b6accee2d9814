# LoRA adapters in memory: two narrow matrices beside every matrix of the layers.
#
# An engine reserves as many places as it is told, each of the largest rank, for every matrix of mixers, FFNs
# and experts; router, embedding and LM head have none. On the side that tensor parallelism splits, a rank has
# its part of an adapter, on the other all of it, as in vLLM and SGLang by default. What they cost in a pass
# is in lora.eq. Which modules have any follows from the architecture: adapters.py says it.

[adapters] Adapters | on a rank, beside the weights | when adapters
each adapted module
matrices.{m}
when not of_experts
sides.{m}   Channels in and out on a rank, {label} [channel]
            = `matrices.{m}` * `inputs_of.{m}` + `outputs_of.{m}`
when of_experts
sides.{m}   Channels in and out on a rank, {label} [channel]
            = plan.experts * (`matrices.{m}` * `inputs_of.{m}` + `outputs_of.{m}`)

each adapted kind
held.{kind}  Adapters of a layer{name} [B]
            = inputs.lora_adapters * inputs.lora_rank *
            added(*[`adapters.sides.{m}` each module of kind {k}]) * vector_bytes ; in 16 bit
layer.{kind}  Weights of a layer with adapters{name} [B] = memory.layer_weights.{kind} + held.{kind}

# Of many modules in parts, to keep formulas short.
each part of an adapter
products_of.{p}  Parameters of an adapter, part {p} [channel]
            = added(*[`adapters.sides.{m}` * `{layers}` each module of part {p}])

each adapter
when not in_parts
products    Parameters of an adapter on a rank [parameter]
            = inputs.lora_rank * added(*[`adapters.sides.{m}` * `{layers}` each module of part 1])
            ; of all layers
when in_parts
products    Parameters of an adapter on a rank [parameter]
            = inputs.lora_rank * added(*[products_of.{p} each part of an adapter]) ; of all layers

when routed_experts
of_experts  Parameters of an adapter of experts on a rank [parameter]
            = inputs.lora_rank * added(*[`adapters.sides.{m}` * `{layers}` each adapted experts])
            ; of all layers

each group of adapted modules
modules.{g}

kernels     Kernels of adapters in a pass [number]
            = narrow_products * added(*[modules.{g} * `{layers}` each group of adapted modules])
            ; narrow, then widen
