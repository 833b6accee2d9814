# How many ranks work together. A rank is one accelerator. Python says which devices that are not alike there
# are, and what each holds.

[ranks] Ranks | accelerators that work together | each spread
groups      Attention groups of a stage (attention groups) [rank] = inputs.attention_dp * inputs.cp
            ; each holds the attention weights
stage_ranks  Ranks of a stage [rank] = inputs.tp * groups ; FFNs and experts are spread over all of them
each counted device
counted.{n}  Ranks of device {n} that hold a part of the model [rank]
            = where({held} > 0, {count} * groups, 0)
            ; without any it counts neither as accelerators nor in power and cost

ranks_per_replica  Ranks of a replica [rank] = {of_replica}
accelerators  Accelerators [accelerator] = ranks_per_replica * inputs.dp * accelerators_per_rank
