# The vision tower with its projector: what the images of a prompt cost before the decoder sees them, in
# 16 bit, split over the TP ranks.

[vision] Vision tower | before the decoder; nothing without images | each vision tower
image_tokens  Image tokens in the pass [token] = rank_requests * inputs.image_tokens
patches       Patches in the pass [token] = image_tokens * its.patches_per_token
product_flops  FLOPs of products [FLOP]
            = flops_per_mac * (patches * its.patch_parameters + image_tokens * its.token_parameters)
attention_flops  FLOPs of attention [FLOP]
            = flops_per_mac * patches * its.attended * (its.width + its.width)
            ; once for scores, once for weighted values
weight_bytes  Weight bytes [B]
            = (its.patch_parameters + its.token_parameters) * vector_bytes / inputs.tp
used          Images in the prompt [flag] = where(image_tokens > 0, 1, 0)
flops         FLOPs [FLOP] = (product_flops + attention_flops) / inputs.tp
bytes         Bytes [B] = used * weight_bytes
compute_time  Compute time [s] = flops / efficiency.rate.gemm_flops.head
memory_time   Memory time [s] = bytes / efficiency.rate.gemm_bytes.head
launch_time   Launch time [s]
            = used * its.layers * (vision_products * efficiency.rate.gemm_launch_time.head +
            efficiency.rate.attention_launch_time + two_kernels * launch)
