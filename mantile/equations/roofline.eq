# One operation: its launch, then the larger of compute and memory time. Every module of a pass is such a
# block; what it multiplies and moves, and how fast, stands in the text of its kind: linear.eq, attention.eq,
# moe.eq, recurrence.eq, elementwise.eq, vision.eq, lora.eq.

[roofline] Operation | each operation
when computes, moves
limit       Larger of compute and memory [1] = where(compute_time >= memory_time, 'compute', 'memory')
layer_time  {run} [s] = max(compute_time, memory_time)
bound       Bound by [1] = limit
over {space}bound = where(launch_time > max(compute_time, memory_time), 'overhead', it) | when launched
when computes, not moves
layer_time  {run} [s] = compute_time
bound       Bound by [1] = 'compute'
over {space}bound = where(launch_time > compute_time, 'overhead', it) | when launched
when moves, not computes
layer_time  {run} [s] = memory_time
bound       Bound by [1] = 'memory'
over {space}bound = where(launch_time > memory_time, 'overhead', it) | when launched

time        Time (time of the {low}) [s] = layer_time
over {space}layer_time = launch_time + it | when launched
over {space}time = it * layers | when in_layers
