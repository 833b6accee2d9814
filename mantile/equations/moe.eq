# Routed experts: grouped products that read the experts some token goes through. The launch of the two
# products of a layer is shared between them.

[moe] Grouped product | experts divided over EP, each split over the ranks that share it
  | each side of a grouped product
{side}puts  Channels {side} per rank (channels {side}) [channel] = its.{side}puts

[moe] Grouped product | experts divided over EP, each split over the ranks that share it
  | each grouped product
rows        Tokens times experts on a rank (routed tokens) [token] = {tokens} * its.per_token
parameters  Parameters of an expert per rank (parameters of an expert) [parameter] = {in} * {out}
touched     Experts touched on the busiest rank [expert] = coverage_busiest * plan.experts

[moe] Grouped product | each data type of a grouped product
values.{kind}  Weights {kept} [parameter] = its.values.{n} ; of all layers
held.{kind}    Bytes {kept} [B] = `values.{kind}` * {size}

[moe] Grouped product | each grouped product
when several_types
weight_size  Bytes per weight [B] = ({held}) / ({values}) ; of matrices in several data types

weight_bytes  Weight bytes [B] = touched * parameters * {size}
row_bytes     Bytes of a row in and out (bytes of a row) [B/token]
            = {in} * hardware.experts.activation_bytes + {out} * result_bytes
row_product   Product of a row [s]
            = flops_per_mac * one_token * parameters / where(plan.sends_tokens > 0,
            efficiency.rate.moe_sent_flops, efficiency.rate.moe_flops)
row_moved     Row moved in and out [s] = one_token * row_bytes / efficiency.rate.streaming
rate          FLOP/s reached [FLOP/s]
            = where(plan.sends_tokens > 0, efficiency.rate.moe_sent_flops, efficiency.rate.moe_flops) *
            row_product / (row_product + row_moved)
            ; a tile has few rows: no product hides that they are moved
flops         FLOPs [FLOP] = flops_per_mac * rows * parameters * efficiency.expert_imbalance
bytes         Bytes [B] = weight_bytes + rows * row_bytes
compute_time  Compute time [s] = flops / rate
memory_time   Memory time [s] = bytes / efficiency.rate.moe_bytes
launch_time   Launch time [s] = half * efficiency.rate.moe_launch_time

when in_passes
over {space}weight_bytes = it * passes
over {space}launch_time = it * passes
