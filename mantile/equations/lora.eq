# LoRA adapters in a pass: what those cost that its requests ask for. Their memory is in adapters.eq. Every
# token goes through the two narrow products of its adapter beside each matrix, in kernels of their own that
# follow one another. Each request asks for one adapter, all equally often: weights are read once for each
# that some request asks for, FLOPs are those of every token once.

[lora] Adapters | beside the matrices of all layers; nothing without adapters | each adapters
used          There are adapters [flag] = where(inputs.lora_adapters > 0, 1, 0)
draws         Requests that choose an adapter [1]
            = min(rank_requests / one_request, saturated * max(1, inputs.lora_adapters))
            ; of an attention group; so many that no more change anything
touched       Adapters that some request asks for [number]
            = inputs.lora_adapters * (1 - (1 - 1 / max(1, inputs.lora_adapters)) ** draws)
            ; one is left out by chance
when routed_experts
of_experts    Parameters of an adapter beside experts that are touched [parameter]
            = adapters.of_experts * coverage_busiest
by_experts    Tokens through adapters of experts [parameter*token]
            = adapters.of_experts * (expert_tokens * model.experts_per_token / plan.experts)
weight_bytes  Weight bytes [B] = touched * (adapters.products + of_experts) * vector_bytes
flops         FLOPs [FLOP] = flops_per_mac * used * (adapters.products * rank_tokens + by_experts)
when not routed_experts
weight_bytes  Weight bytes [B] = touched * adapters.products * vector_bytes
flops         FLOPs [FLOP] = flops_per_mac * used * (adapters.products * rank_tokens)

bytes         Bytes [B] = weight_bytes
compute_time  Compute time [s] = flops / efficiency.rate.gemm_flops.attention
memory_time   Memory time [s] = bytes / efficiency.rate.gemm_bytes.attention
launch_time   Launch time [s]
            = used * adapters.kernels * efficiency.rate.gemm_launch_time.attention
when in_prefill
over {space}weight_bytes = it * passes
over {space}launch_time = it * passes
