# Small streaming kernels: their overhead, and their bytes at streaming bandwidth.

define launch = efficiency.rate.small_kernel | when routed_experts
define launch = efficiency.small_kernel | when not routed_experts

for kind | note | values | kernels in
  norm | on every rank: add residual, normalise | add_norm_passes * its.width | launch;
  qk_norm | each query and key head | both_ways * its.width | launch;
  rope | rotate, write keys and values to the cache | both_ways * its.width | two_kernels * launch;
  activation | matrices read, product written | its.width | launch;
  embedding | one row per token | both_ways * its.width | launch;
  gate | gate and result read, product written | both_ways * its.width | launch;
  routing | scores, the best experts, tokens sorted by expert | both_ways * its.width | two_kernels * launch
[elementwise] Small kernel | {note} | each kernel, {kind}
bytes         Bytes [B] = {tokens} * ({values}) * result_bytes
memory_time   Memory time [s] = bytes / efficiency.rate.streaming
launch_time   Launch time [s] = {kernels}
over {space}launch_time = it * passes | when in_prefill

[elementwise] Small kernel | one copy per token and expert; its launch is in that of the grouped products
  | each kernel, sorted
bytes         Bytes [B] = {tokens} * its.width * result_bytes
memory_time   Memory time [s] = bytes / efficiency.rate.streaming
