# Which accelerator holds what: its replica, stage and ranks, its slices of the model, its memory. They are
# counted from 0: tensor-parallel ranks stand next to each other, then attention-DP groups, then CP groups,
# then stages, then replicas. The sheet Layers places the rows, for the accelerators that placement.py counts;
# notes stand there beside the lines.

define in_use = plan.accelerators / accelerators_per_rank
define working = (memory.activations + memory.logits + memory.reserve) / bytes_per_gb
# From the first to the last of what an accelerator holds, where it does; of slices the last may be shorter.
define run(held, first, last) = where(all(held, last >= first), join(text(first), ' – ', text(last)), '–')
define slice(held, number, size, whole) = run(held, number * size, min(whole, (number + 1) * size) - 1)
define experts_from(held, first) = run(held, first, min(model.experts, first + plan.experts) - 1)
define before_of(stage) = index([plan.before.*], stage + 1)

[placement] Held | each accelerator | aside
used.{n}    In use [flag] = where(number.{n} < in_use, 1, 0) ; 1 if the plan uses it
domain.{n}  Domain [number] = floor(number.{n} * accelerators_per_rank / hardware.accelerators)
            ; number ÷ accelerators of a domain
replica.{n}  Replica [number] = floor(number.{n} / plan.ranks_per_replica) ; number ÷ ranks of a replica
stage.{n}   Pipeline stage [number] = floor(remainder(number.{n}, plan.ranks_per_replica) / plan.stage_ranks)
            ; number; colour = stage
rank.{n}    Tensor-parallel rank [number] = remainder(number.{n}, inputs.tp) ; remainder of number ÷ TP
place.{n}   Rank in its stage [number] = remainder(number.{n}, plan.stage_ranks)
            ; remainder of number ÷ ranks of a stage
group.{n}   Attention-DP group [number]
            = remainder(floor(remainder(number.{n}, plan.stage_ranks) / inputs.tp), inputs.attention_dp)
            ; rank in its stage ÷ TP
context.{n}  Context-parallel part [number] = floor(place.{n} / (inputs.tp * inputs.attention_dp))
            ; rank in its stage ÷ (TP × attention-DP)
layer_count.{n}  Layers held [layer]
            = used.{n} * added(*[index({on_stages}.*, stage.{n} + 1) each kind in stages])
            ; layers of the stage, of all kinds
layers.{n}  Layers [1]
            = run(used.{n} > 0, before_of(stage.{n}) + 1, before_of(stage.{n}) +
            added(*[index({on_stages}.*, stage.{n} + 1) each kind in stages])) ; from – to, in order of stages
when attention_heads
heads.{n}   Query heads [1] = slice(used.{n} > 0, rank.{n}, plan.heads, model.attention_heads) ; heads ÷ TP
when kv_heads_alike
kv_first.{n}  First KV head [head] = used.{n} * floor(rank.{n} * model.kv_heads / inputs.tp)
            ; TP rank × KV heads ÷ TP
kv_last.{n}  Last KV head [head] = used.{n} * (min(model.kv_heads, kv_first.{n} + plan.kv_heads) - 1)
            ; copied where there are more ranks than heads
when ffn_columns
ffn_size.{n}  FFN columns [1]
            = slice(used.{n} * added(*[index({on_stages}.*, stage.{n} + 1) each kind with FFN columns]) > 0,
            remainder(place.{n}, ranks_of_dense), plan.ffn, model.ffn_size)
            ; columns ÷ ranks, on stages with such layers

vocabulary.{n}  Vocabulary rows [1]
            = slice(used.{n} * (1 - min(1, stage.{n} * (inputs.pp - 1 - stage.{n}))) > 0,
            remainder(place.{n}, inputs.tp), plan.vocabulary, model.vocabulary)
            ; rows ÷ TP; first and last stage
when routed_experts
experts.{n}  Experts [1]
            = experts_from(used.{n} > 0, floor(remainder(number.{n}, plan.stage_ranks) / plan.expert_tp) *
            plan.experts) ; experts ÷ EP, by rank in its stage
expert_columns.{n}  Columns of an expert [1]
            = slice(used.{n} > 0, remainder(place.{n}, plan.expert_tp), plan.expert_size, model.expert_size)
            ; columns ÷ ranks that share it

weights.{n}  Weights [GB]
            = used.{n} * max(0, index([memory.stage_weights.*], stage.{n} + 1) - memory.host_weights) /
            bytes_per_gb
kv.{n}      KV cache [GB]
            = used.{n} * max(0, memory.seats * index([memory.stage_kv.*], stage.{n} + 1) - memory.host_kv) /
            bytes_per_gb
working.{n}  Activations, logits, runtime [GB] = used.{n} * working
sum.{n}     Used [GB] = weights.{n} + kv.{n} + working.{n}

[placement] All | each placement | aside
title       Title [1]
            = join('{start}', 'TP ', text(inputs.tp), ' × groups ', text(plan.groups), ' × stages ',
            text(inputs.pp), ' × replicas ', text(inputs.dp), '; ', rounded(memory.used / bytes_per_gb, 1),
            ' GB used on the fullest accelerator')
beyond      Accelerators not shown [1]
            = where(in_use - number.{last} - 1 > 0, join('! ', text(in_use - number.{last} - 1),
            ' more accelerators are not shown'), 'all accelerators in use are shown')

# Accelerators behind the first band in short, and what each stage holds.
[placement] In short | each placement with more | aside
further     Further accelerators [1]
            = join('{start}', where(in_use > number.8, join('accelerators 8 – ', text(min(in_use - 1,
            number.{last})), ' in short'), 'no accelerator behind the first eight'))
for s in 0..7
stage_layers.{s}  Layers of stage {s} [1]
            = run(plan.stage.{s} < inputs.pp, plan.before.{s} + 1, plan.before.{s} +
            added(*[{on_stages}.{s} each kind in stages]))
stage_held.{s}  Weights and KV cache on an accelerator of stage {s} [GB]
            = (max(0, memory.stage_weights.{s} - memory.host_weights) + max(0, memory.seats *
            memory.stage_kv.{s} - memory.host_kv)) / bytes_per_gb
stage_used.{s}  Used by an accelerator of stage {s} [GB]
            = where(plan.stage.{s} < inputs.pp, stage_held.{s} + working, 0)

[placement] In short | each further accelerator | aside
stage_in_use.{n}  Stage if it is in use, accelerator {n} [number]
            = where(number.{n} < in_use, floor(remainder(number.{n}, plan.ranks_per_replica) /
            plan.stage_ranks), nowhere)
place_in_use.{n}  Replica, group, TP rank, accelerator {n} [1]
            = where(stage_in_use.{n} >= 0, join('r', text(floor(number.{n} / plan.ranks_per_replica)), ' g',
            text(remainder(floor(remainder(number.{n}, plan.stage_ranks) / inputs.tp), inputs.attention_dp)),
            ' t', text(remainder(number.{n}, inputs.tp))), '–')
when routed_experts
experts_in_use.{n}  Experts, accelerator {n} [1]
            = experts_from(stage_in_use.{n} >= 0, floor(remainder(number.{n}, plan.stage_ranks) /
            plan.expert_tp) * plan.experts)
