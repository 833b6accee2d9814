# Small streaming kernels: their overhead, and their bytes at streaming bandwidth.

for kind | note | values | kernels in
  norm | on every rank: add residual, normalise | add_norm_passes * its.width | {kernel};
  qk_norm | each query and key head | both_ways * its.width | {kernel};
  rope | rotate, write keys and values to the cache | both_ways * its.width | two_kernels * {kernel};
  activation | matrices read, product written | its.width | {kernel};
  embedding | one row per token | both_ways * its.width | {kernel};
  gate | gate and result read, product written | both_ways * its.width | {kernel};
  routing | scores, the best experts, tokens sorted by expert | both_ways * its.width | two_kernels * {kernel}
[elementwise] Small kernel | {note} | each kernel, {kind}
bytes         Bytes [B] = {tokens} * ({values}) * result_bytes
memory_time   Memory time [s] = bytes / efficiency.rate.streaming
launch_time   Launch time [s] = {kernels}
over {space}launch_time = it * passes | when in_prefill

[elementwise] Small kernel | one copy per token and expert; its launch is in that of the grouped products
  | each kernel, sorted
bytes         Bytes [B] = {tokens} * its.width * result_bytes
memory_time   Memory time [s] = bytes / efficiency.rate.streaming
