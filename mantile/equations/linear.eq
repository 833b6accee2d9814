# Matrix products: projections of mixers, FFN matrices, routers, LM head. Rows of tokens with a matrix of
# outputs x inputs channels, on each rank what it holds of both: weights read once, input and result moved
# once.

[linear] Matrix product | {note} | each side of a matrix product
{side}puts  Channels {side} per rank (channels {side}) [channel] = its.{side}puts

[linear] Matrix product | {note} | each matrix product
parameters  Parameters per rank (parameters) [parameter] = {in} * {out}

[linear] Matrix product | each data type of a matrix product
values.{kind}  Weights {kept} [parameter] = its.values.{n} ; of all layers
held.{kind}    Bytes {kept} [B] = `values.{kind}` * {size}

[linear] Matrix product | each matrix product
when several_types
weight_size  Bytes per weight [B] = ({held}) / ({values}) ; of matrices in several data types

weight_bytes  Weight bytes [B] = parameters * {size}
flops         FLOPs [FLOP] = flops_per_mac * {tokens} * parameters
bytes         Bytes [B]
            = weight_bytes + {tokens} * ({in} * {activations} + {out} * result_bytes)
compute_time  Compute time [s] = flops / efficiency.rate.gemm_flops.{class}
memory_time   Memory time [s] = bytes / efficiency.rate.gemm_bytes.{class}
launch_time   Launch time [s] = efficiency.rate.gemm_launch_time.{class}

when in_passes
over {space}weight_bytes = it * passes
over {space}launch_time = it * passes
