# What an engine holds beside weights, KV cache and the activations of a step; and of what its share of memory
# is.
#
# Sampling of all requests that may run is tried when an engine starts. Outside the framework's own memory lie
# the context of the driver, buffers of collectives, and graphs. The rows stand in the blocks of memory.eq.

define share_told = efficiency.memory_usable | when not memory_share
define share_told = engine.share | when memory_share
define memory_left = hardware.memory_seen | when not other_models
define memory_left = runtime.seen | when other_models
define share_of_all = share_told * hardware.memory_seen | when not other_models
define share_of_all = share_told * hardware.memory_seen - engine.taken | when other_models
define heads_held = plan.heads | when attention_heads
define heads_held = 0 | when not attention_heads

[runtime] Sampling when the engine starts | logits of all requests that may run at once | aside
large       Accelerator against a large one [1]
            = where(hardware.generation == 'ampere', 0, hardware.memory_seen / large_chip)
            ; from 1 on more requests run at once; A100 is left out
small_seats  Requests at once by default [request] = of_framework(framework.seats_small)
large_seats  Requests at once by default, large accelerator [request]
            = of_framework(framework.seats_large)
default_seats  Requests that run at once by default [request]
            = where(large >= 1, large_seats, small_seats) ; on this accelerator
seats       Requests with which sampling is tried [request]
            = where(inputs.max_requests > 0, min(memory.step_tokens / tokens_per_step, inputs.max_requests /
            inputs.attention_dp), default_seats)
            ; when the engine starts, on each rank; a step has a token for each
sampler     Sampling at the start [B]
            = efficiency.sampler_copies * seats * tokens_per_step * model.vocabulary * logit_bytes
            ; all columns of the vocabulary, on the rank that samples

[runtime] Beside the channels of a step
  | scores that attention writes down, or logits of all its tokens | aside
scores      Scores of attention [B]
            = efficiency.scores_held * heads_held * memory.step_tokens / one_token * (seats *
            memory.sequence_length / one_token) * score_bytes
            ; of a step against all that the KV cache may hold; 0 with flash attention
step_logits  Logits of a step [B]
            = efficiency.logits_of_all * memory.step_tokens * model.vocabulary * logit_bytes
            ; of all its tokens, where the engine has room for them

[runtime] Outside the framework's own memory | context, buffers, graphs | aside
context     Context of a rank [B] = efficiency.runtime_reserve
together    Ranks work together [flag] = where(plan.stage_ranks > 1, 1, 0) ; within a pipeline stage
communication  Buffers of collectives [B]
            = together * (efficiency.communication_reserve + hardware.in_switch_reduction *
            efficiency.switch_reserve) ; more where the switch reduces
largest_graph  Requests of the largest graph [request] = min(seats + seats, most_captured)
            ; twice as many as may run at once
graph_sizes  Sizes of batches with a graph [number]
            = first_graphs + (largest_graph + min(largest_graph, half * most_captured)) * half / graph_step
            ; 1, 2, 4, every 8th, and in the larger half every 16th
graphs      Graphs [B]
            = plan.layers * efficiency.graph_memory * (1 + together) * min(1, graph_sizes / all_graphs)
            ; of the layers of the fullest stage; collectives are captured as well
over runtime.graphs = where(inputs.enforce_eager == 'on', 0, it) | when launches
graphs_on_top  Graphs outside the share of memory [B] = (1 - efficiency.graphs_inside) * graphs

[runtime] Room for requests | by what the share of memory is of | aside
when other_models
seen        Memory that others leave [B] = max(0, hardware.memory_seen - engine.taken)

room_of_all  Room of a share of all memory [B]
            = share_of_all - memory.weights - memory.activations - memory.reserve + graphs_on_top
            ; for all that the engine needs
room_of_free  Room of a share of free memory [B]
            = share_told * (memory_left - context - communication) - memory.weights
            ; for weights and KV cache; activations and graphs lie in the rest
room_of_left  Room of a share of what is left [B]
            = share_told * (memory_left - memory.weights - memory.activations - memory.reserve)
            ; for the KV cache alone
room_otherwise  Room of a share of part of the memory [B]
            = where(share_of_memory == 'static', room_of_free, room_of_left)
