# What a message costs: every algorithm of every collective as a fixed time and a time per byte. A collective
# takes latency + bytes x time per byte; a pass works all algorithms out for its message and takes the
# cheapest. Forms: NCCL's tuner and performance notes for rings, in-switch sums and hierarchies; the TPU
# scaling book for tori; one read of all peers (one-shot) and scatter and gather at once (two-shot) as
# TensorRT-LLM and vLLM do it. What the links do not allow has no time: words stand in its place. Ranks that
# no algorithm joins make a plan that is not possible; their messages are left out.

define in_domain(ranks) = ranks / (hardware.accelerators / accelerators_per_rank)
define mesh(pairs, links) = where(hardware.is_mesh > 0, pairs, links)
define yes(condition) = where(condition, 1, 0)
define no_algorithm(ranks, latencies) = yes(all(ranks > 1, count_where(latencies, at_least(0)) <= 0))
define ring_of(ranks) = efficiency.ring_latency + (ranks - 1) * efficiency.ring_step

[network] Network | between domains | each machine
out         Network bandwidth reached [B/s]
            = efficiency.network_bandwidth * hardware.scale_out_bandwidth * inputs.network_speed
            ; of one accelerator out of its domain
p2p.inside  Bandwidth between stages in a domain [B/s]
            = efficiency.p2p_bandwidth * inputs.network_speed * mesh(hardware.pair_bandwidth,
            hardware.link_bandwidth) ; in a mesh there is one link to the next stage

for g | words | size | when in tp | TP | inputs.tp |; stage | stage | plan.stage_ranks |;
  dcp | decode CP | inputs.dcp | decode_CP; ffn | FFN | max(1, inputs.ffn_tp) | TP_of_FFNs, ffns
[network] Group: {words} | ranks that work together, and their links | when {when} | each machine
{g}.inside  Ranks in a domain, {words} ({words} ranks in a domain) [rank]
            = min({size}, hardware.accelerators / accelerators_per_rank)
{g}.domains  Domains spanned, {words} (domains of {words} ranks) [domain] = round_up(in_domain({size}))
{g}.bandwidth  Link bandwidth of a rank, {words} (link bandwidth of {words} ranks) [B/s]
            = inputs.network_speed * mesh(max(1, {g}.inside - 1) * hardware.pair_bandwidth,
            hardware.link_bandwidth) ; in a mesh there is one link to each of the others
{g}.joined  Links join the ranks in a domain, {words} (links join {words} ranks in a domain) [flag]
            = where(all({g}.inside > 1, {g}.bandwidth <= 0), 0, 1)
            ; a bandwidth of 0 is no link; a rank alone needs none
{g}.one     In one domain, joined, {words} (in one domain, joined) [flag]
            = yes(all({g}.domains <= 1, {g}.joined > 0))
{g}.spread  In several domains, joined in each, {words} (in several domains, joined in each) [flag]
            = yes(all({g}.domains > 1, {g}.joined > 0))
{g}.share   Share of the message a rank sends, {words} (share sent by {words} ranks) [1]
            = ({size} - 1) / {size}
{g}.axes    Axes in use, {words} (axes in use) [axis] = max(1, hardware.torus_axes) ; only a torus has several
{g}.hops    Hops across the torus, {words} (hops between {words} ranks) [1]
            = half * {g}.axes * {size}**(1 / {g}.axes)
            ; ranks stand in a cube, the farthest half a side away along every axis
{g}.start   Fixed time inside a domain, {words} (fixed time in a domain of {words} ranks) [s]
            = where(hardware.is_torus > 0, half * {g}.axes * {g}.inside**(1 / {g}.axes) *
            efficiency.torus_hop, efficiency.gather_latency.{g}) ; of a gather
{g}.reached  Link bandwidth reached inside a domain, {words} (link bandwidth reached inside a domain) [B/s]
            = {g}.bandwidth * where(hardware.is_torus > 0, efficiency.torus_bandwidth,
            efficiency.gather_bandwidth.{g})
{g}.inner   Time per byte inside a domain, {words} (time per byte inside a domain of {words} ranks) [s/B]
            = where(all({g}.inside > 1, {g}.reached > 0), ({g}.inside - 1) / {g}.inside / {g}.reached, 0)
            ; scattered or gathered once
{g}.outer   Time per byte between domains, {words} (time per byte between domains of {words} ranks) [s/B]
            = where(out > 0, ({g}.domains - 1) / {g}.domains / {g}.inside / out, 0)
            ; each rank passes on its share of the message

[network] All-reduce, common parts | over the TP ranks | each machine
one_shot_ranks  Most ranks of a one-shot all-reduce [rank] := 8 in 2 to 1024
            ; largest group for which engines have such a kernel @ assumed: one node
all_reduce.ring_time  Steps of an all-reduce ring [s]
            = efficiency.ring_latency + ring_phases * (inputs.tp - 1) * efficiency.ring_step
all_reduce.share  Share of the message a rank sends in an all-reduce (all-reduce share) [1]
            = ring_phases * tp.share

[network] All-reduce | over the ranks of TP | each machine
for n | a | way | factor in 1 | ring | ring | ring_latency; 2 | one_shot | one-shot | one_shot_latency;
  3 | two_shot | two-shot | two_shot_latency; 4 | in_switch | in-switch | in_switch_latency;
  5 | torus | torus | torus_hop; 6 | hierarchical | hierarchical | network_latency
all_reduce.{a}.name  Algorithm {n}, all-reduce (algorithms) [1] := '{way}'
            ; name of an algorithm, and the factor of its fixed time @ efficiency.{factor}

for a | way | allowed | time | source in
  ring | ring | tp.one > 0, hardware.link_bandwidth > 0 |
  efficiency.all_reduce_latency_scale * all_reduce.ring_time | NCCL performance notes;
  one_shot | one-shot | tp.one > 0, hardware.direct > 0, inputs.tp <= one_shot_ranks |
  efficiency.all_reduce_latency_scale * efficiency.one_shot_latency | custom all-reduce of engines;
  two_shot | two-shot | tp.one > 0, hardware.direct > 0 |
  efficiency.all_reduce_latency_scale * efficiency.two_shot_latency | NVIDIA MultiShot;
  in_switch | in-switch | tp.one > 0, hardware.in_switch_reduction > 0 |
  efficiency.all_reduce_latency_scale * efficiency.in_switch_latency | NVLink SHARP;
  torus | torus | tp.one > 0, hardware.is_torus > 0 |
  ring_phases * tp.hops * efficiency.torus_hop | TPU scaling book;
  hierarchical | hierarchical | tp.spread > 0, out > 0 |
  ring_phases * (tp.start + (tp.domains - 1) * efficiency.network_latency) | inside, between, inside
all_reduce.{a}.latency  Fixed time, {way} all-reduce [s] = where(all({allowed}), {time}, 'no way') @ {source}

for a | way | time in
  ring | ring | all_reduce.share / (efficiency.ring_bandwidth * tp.bandwidth);
  one_shot | one-shot | (inputs.tp - 1) / (efficiency.one_shot_bandwidth * tp.bandwidth);
  two_shot | two-shot | all_reduce.share / (efficiency.two_shot_bandwidth * tp.bandwidth);
  in_switch | in-switch | (inputs.tp + 1) / inputs.tp / (efficiency.in_switch_bandwidth * tp.bandwidth);
  torus | torus | all_reduce.share / (efficiency.torus_bandwidth * tp.bandwidth);
  hierarchical | hierarchical | ring_phases * (tp.inner + tp.outer)
all_reduce.{a}.per_byte  Time per byte, {way} all-reduce [s/B]
            = where(is_number(all_reduce.{a}.latency), {time}, 0)

all_reduce.unlinked  No way, all-reduce [flag] = no_algorithm(inputs.tp, [all_reduce.*.latency])
            ; no algorithm has links that join the ranks

# An all-gather, or a reduce-scatter, which takes as long.
for c | over | words | g | size | when in sequence | TP | TP | tp | inputs.tp |;
  gather | a stage | stage | stage | plan.stage_ranks | ffns;
  shares | decode CP | decode CP | dcp | inputs.dcp | decode_CP;
  ffn_sum | FFN ranks | FFN | ffn | max(1, inputs.ffn_tp) | TP_of_FFNs, ffns
[network] Gather over {over} | over the ranks of {words} | when {when} | each machine
for n | a | factor in 1 | direct | gather_latency.{g}; 2 | ring | ring_latency; 3 | torus | torus_hop;
  4 | hierarchical | network_latency
{c}.{a}.name  Algorithm {n}, gather over {over} (algorithms) [1] := '{a}'
            ; name of an algorithm, and the factor of its fixed time @ efficiency.{factor}

for a | allowed | time | source in
  direct | {g}.one > 0, hardware.direct > 0 | efficiency.gather_latency.{g} | NCCL performance notes;
  ring | {g}.one > 0, hardware.link_bandwidth > 0 | ring_of({size}) | NCCL performance notes;
  torus | {g}.one > 0, hardware.is_torus > 0 | {g}.hops * efficiency.torus_hop | TPU scaling book;
  hierarchical | {g}.spread > 0, out > 0 | {g}.start + ({g}.domains - 1) * efficiency.network_latency |
  inside, between, inside
{c}.{a}.latency  Fixed time, {a} gather over {over} [s] = where(all({allowed}), {time}, 'no way') @ {source}

for a | time in direct | {g}.share / (efficiency.gather_bandwidth.{g} * {g}.bandwidth);
  ring | {g}.share / (efficiency.ring_bandwidth * {g}.bandwidth);
  torus | {g}.share / (efficiency.torus_bandwidth * {g}.bandwidth); hierarchical | {g}.inner + {g}.outer
{c}.{a}.per_byte  Time per byte, {a} gather over {over} [s/B] = where(is_number({c}.{a}.latency), {time}, 0)

{c}.unlinked  No way, gather over {over} [flag] = no_algorithm({size}, [{c}.*.latency])
            ; no algorithm has links that join the ranks

# Every rank of a stage sends every other a part of its own. A token goes to a rank once, whatever it needs
# there, and to another domain once: a rank there passes it on to the others. Between domains and inside them
# the copies move at the same time: the slower of the two counts.
[network] All-to-all, common parts | experts are chosen evenly over the ranks | when routed_experts
  | each machine
all_to_all.copies  Ranks a token goes to [1]
            = plan.stage_ranks * (1 - (1 - 1 / inputs.ep)**model.experts_per_token)
            ; several experts of a token may stand on one rank
all_to_all.domains  Other domains a token goes to [1]
            = (stage.domains - 1) * (1 - (1 - 1 / stage.domains)**model.experts_per_token)
            ; once to each, where a rank passes it on
all_to_all.inside  Share passed on inside domains (share passed on inside domains) [1]
            = (stage.inside - 1) / stage.inside ; of all copies, those from other domains as well
all_to_all.outside  Sent out of the domain, against all copies (share sent out of the domain) [1]
            = all_to_all.domains / all_to_all.copies
all_to_all.inner_torus  Time per byte inside the domain, across a torus [s/B]
            = where(all(hardware.is_torus > 0, stage.joined > 0), quarter * stage.inside /
            (efficiency.torus_bandwidth * stage.bandwidth), 0)
all_to_all.inner_direct  Time per byte inside the domain, direct [s/B]
            = where(all(stage.inside > 1, stage.joined > 0, hardware.is_torus <= 0), all_to_all.inside /
            (efficiency.all_to_all_bandwidth * stage.bandwidth), 0)
all_to_all.start  Fixed time of an all-to-all inside a domain [s]
            = where(hardware.is_torus > 0, stage.start, efficiency.all_to_all_latency)

[network] All-to-all | over the ranks of stage | when routed_experts | each machine
for n | a | factor in 1 | direct | all_to_all_latency; 2 | ring | ring_latency; 3 | torus | torus_hop;
  4 | hierarchical | network_latency
all_to_all.{a}.name  Algorithm {n}, all-to-all (algorithms) [1] := '{a}'
            ; name of an algorithm, and the factor of its fixed time @ efficiency.{factor}

for a | allowed | time | source in
  direct | stage.one > 0, hardware.direct > 0 | efficiency.all_to_all_latency | NCCL performance notes;
  ring | stage.one > 0, hardware.link_bandwidth > 0 | ring_of(plan.stage_ranks) | NCCL performance notes;
  torus | stage.one > 0, hardware.is_torus > 0 | stage.hops * efficiency.torus_hop | TPU scaling book;
  hierarchical | stage.spread > 0, out > 0 | all_to_all.start + efficiency.network_latency |
  inside, between, inside
all_to_all.{a}.latency  Fixed time, {a} all-to-all [s] = where(all({allowed}), {time}, 'no way') @ {source}

for a | time in direct | all_to_all.inside / (efficiency.all_to_all_bandwidth * stage.bandwidth);
  ring | half * (plan.stage_ranks - 1) / (efficiency.ring_bandwidth * stage.bandwidth);
  torus | quarter * plan.stage_ranks / (efficiency.torus_bandwidth * stage.bandwidth);
  hierarchical | max(all_to_all.inner_torus + all_to_all.inner_direct, all_to_all.outside / out)
all_to_all.{a}.per_byte  Time per byte, {a} all-to-all [s/B]
            = where(is_number(all_to_all.{a}.latency), {time}, 0)

all_to_all.unlinked  No way, all-to-all [flag] = no_algorithm(plan.stage_ranks, [all_to_all.*.latency])
            ; no algorithm has links that join the ranks

[network] Stage to stage | from one pipeline stage to the next | each hop
p2p.crosses  A replica spans domains [flag]
            = yes(plan.ranks_per_replica > hardware.accelerators / accelerators_per_rank)
p2p.bandwidth  Bandwidth between stages [B/s] = where(p2p.crosses > 0, out, p2p.inside)
p2p.latency  Fixed time, stage to stage [s]
            = where(p2p.crosses > 0, efficiency.network_latency, efficiency.p2p_latency)
p2p.per_byte  Time per byte, stage to stage [s/B] = where(p2p.bandwidth > 0, 1 / p2p.bandwidth, 0)
p2p.unlinked  No way, stage to stage [flag] = yes(all(max(inputs.pp, inputs.cp) > 1, p2p.bandwidth <= 0))
over {space}network.p2p.unlinked = yes(all(inputs.cp > 1, p2p.bandwidth <= 0)) | when devices

[network] Links | of all kinds of messages | each hop
unlinked    Kinds of messages without a way [flag]
            = all_reduce.unlinked + sequence.unlinked + p2p.unlinked
            ; no link joins the ranks that would send them
over {space}network.unlinked = it + gather.unlinked | when ffns
over {space}network.unlinked = it + shares.unlinked | when decode_CP
over {space}network.unlinked = it + ffn_sum.unlinked | when TP_of_FFNs, ffns
over {space}network.unlinked = it + all_to_all.unlinked | when routed_experts
