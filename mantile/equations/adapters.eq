# LoRA adapters in memory: two narrow matrices beside every matrix of the layers.
#
# An engine reserves as many places as it is told, each of the largest rank, for every matrix of mixers, FFNs
# and experts; router, embedding and LM head have none. On the side that tensor parallelism splits, a rank has
# its part of an adapter, on the other all of it, as in vLLM and SGLang by default.

when adapters

[adapters] Adapters | on a rank, beside the weights
each adapted module
matrices.{m}  Matrices with an adapter, {name} [number] := {count} ; of the list of tensors
sides.{m}   Channels in and out on a rank, {name} [channel] = matrices.{m} * {inputs} + {outputs}
over adapters.sides.{m} = plan.experts * it | when grouped

each adapted layer
held.{kind}  Adapters of a{name} layer [B]
            = inputs.lora_adapters * inputs.lora_rank * ({sides}) * vector_bytes ; in 16 bit
layer.{kind}  Weights of a{name} layer, adapters included [B]
            = memory.layer_weights.{kind} + adapters.held.{kind}

each part of adapters
products_of.{n}  Parameters of an adapter, part {n} [channel] = {sum}

each adapted model
products    Parameters of an adapter on a rank [parameter] = inputs.lora_rank * ({products}) ; of all layers

[adapters] Adapters
each part of adapters of experts
of_experts_of.{n}  Parameters of an adapter of experts, part {n} [channel] = {sum}

each adapted model
when grouped
of_experts  Parameters of an adapter of experts on a rank [parameter] = inputs.lora_rank * ({of_experts})
            ; of all layers

each group of adapted layers
modules.{n}  Modules of a layer with an adapter, group {n} [number] := {count} ; of the list of modules

each adapted model
kernels     Kernels of adapters in a pass [number] = narrow_products * ({kernels}) ; narrow, then widen
