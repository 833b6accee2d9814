# What one rank holds: heads, columns, experts, and layers by pipeline stage.
#
# A stage has TP x attention-DP x CP ranks. Attention is split over TP and copied in every attention group;
# FFNs and experts are spread over all ranks of the stage, experts over EP first and their columns over what
# remains. KV heads shard as far as they go and are copied beyond; latents and indexers stand on every TP
# rank. Where a degree does not divide, the fullest rank counts. Which dimensions are split, and over which
# ranks, follows from the architecture: plan.py says it.

define ranks_of_ffns = stage_ranks | when not shared_ffns
define ranks_of_ffns = shared_ranks | when shared_ffns
define ranks_of_dense = ranks_of_ffns | when not TP_of_FFNs
define ranks_of_dense = ffn_ranks | when TP_of_FFNs
define kv_ranks_off = remainder(inputs.tp, inputs.dcp) | when decode_CP, not kv_copies
define kv_ranks_off = added(*[remainder(inputs.tp, {units} * inputs.dcp) each copied heads])
  | when decode_CP, kv_copies

[plan] Shards | of the fullest rank
sequence    Ranks that share the tokens of a norm [rank]
            = where(inputs.sequence_parallel == 'on', inputs.tp, 1)
when routed_experts
sends_tokens  Tokens are sent to their experts [flag] = where(all(inputs.ep > 1, groups > 1), 1, 0)
            ; with one attention group every rank sees all tokens anyway
expert_tp   Ranks that share an expert [rank] = max(1, floor(stage_ranks / inputs.ep))
expert_groups  Groups of experts [rank] = min(inputs.ep, stage_ranks)
when shared_ffns
shared_ranks  Ranks that share a dense FFN or a shared expert [rank]
            = where(sends_tokens > 0, inputs.tp, stage_ranks)
            ; an attention group that sends tokens away keeps its own
shared_copies  Copies of dense FFNs and shared experts in a stage [1] = stage_ranks / shared_ranks
when TP_of_FFNs
ffn_ranks   Ranks that share a dense FFN [rank] = where(inputs.ffn_tp > 0, inputs.ffn_tp, ranks_of_ffns)

each dimension
when even
{name}      {label} per rank{user} [{unit}] = round_up({units} / {ranks})
when at_least_one
{name}      {label} per rank [{unit}] = max(1, round_up({units} / inputs.tp))
            ; beyond one for each rank they are copied
when copied
{copies}    Copies of each of {label} [1] = max(1, inputs.tp / {units})
when wide
{name}      {label} per rank [channel] = {heads} * {size}

when several_copies
most_copies  Copies of KV heads [1] = max(*[plan.{copies} each copied heads])

when routed_experts
experts     Experts per rank [expert] = round_up(model.experts / expert_groups)

when decode_CP
kv_ranks_left  Ranks left over by decode CP [rank] = where(inputs.dcp > 1, kv_ranks_off, 0)
            ; tokens are divided among ranks that would hold the same heads
when heads
heads_left  Heads left over [head] = added(*[remainder({units}, inputs.tp) each heads])
when kv_heads
kv_left     KV heads left over [head]
            = added(*[remainder(max({units}, inputs.tp), min({units}, inputs.tp)) each KV heads])
            ; one must divide the other
when ffns
ffn_left    FFN columns left over [channel] = added(*[remainder({units}, {ranks}) each columns])
when not ffns
ffn_left    FFN columns left over [channel] = inputs.tp - inputs.tp ; there is no FFN
when routed_experts
experts_left  Experts left over [expert] = remainder(model.experts, inputs.ep)
when not devices
layers_left  Layers left over [layer] = remainder(model.layers, inputs.pp)
when devices
layers_left  Layers left over [layer] = abs(model.layers - added(*[inputs.device{n}_layers each holder]))
            ; on no device, or on more than there are

ranks_left  Ranks left over by EP [rank] = remainder(stage_ranks, inputs.ep)

[plan] Stages | layers of each kind by pipeline stage; none beyond the last stage
for s in 0..7
stage.{s}   Stage {s} (stage) [number] := {s} ; number of a pipeline stage

# Layers go to the stages in order, the first stages take one more.
for s in 0..7
when not devices
before.{s}  Layers before stage {s} (layers before it) [layer]
            = where(stage.{s} < inputs.pp, stage.{s} * floor(model.layers / inputs.pp) + min(stage.{s},
            layers_left), model.layers)

# A stage is a device: it holds as many layers as its cell says.
when devices
before.0    Layers before stage 0 (layers before it) [layer] = 0 * inputs.device1_layers

each stage behind a device
before.{s}  Layers before stage {s} (layers before it) [layer]
            = min(model.layers, added(*[inputs.device{n}_layers each device before {s}]))

each stage behind all
before.{s}  Layers before stage {s} (layers before it) [layer] = model.layers

# Of rare kinds by where their layers stand, of the last kind what remains.
each rare kind
others.{kind}  Layers of other kinds, {name} [layer] = {others} ; {why}
place.{kind}.*
for s in 0..7
before.{kind}.{s}  Layers before stage {s}, {name} [layer]
            = max({left}.{s} - others.{kind}, min({count}, where({left}.{s} < place.{kind}.1, 0,
            match_at_most({left}.{s}, [place.{kind}.*]))))
for s in 0..7
before.not.{kind}.{s}  Other layers before stage {s}, {name} [layer] = {left}.{s} - before.{kind}.{s}

each kind on stages
for s in 0..6
{kind}.{s}  Layers on stage {s}{of} [layer] = {left}.{s+1} - {left}.{s}
for s in 7
{kind}.{s}  Layers on stage {s}{of} [layer] = {count} - {left}.{s}

when not devices
layers      Layers per stage [layer] = round_up(model.layers / inputs.pp)
when devices
layers      Layers of the fullest stage [layer] = max(*[inputs.device{n}_layers each holder])
each holder
first.{s}   Stage {s} holds the embedding [flag] = where(all(before.{s} <= 0, {end} > 0), 1, 0)

[plan] Stages
each holder
last.{s}    Stage {s} holds the LM head [flag]
            = where(all(before.{s} < model.layers, {end} >= model.layers), 1, 0)
