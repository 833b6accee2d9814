# How much of the hardware is reached. A fraction is a factor times its scale, the share of a peak that is
# reached: what the checks look at. A rate is a fraction times the datasheet figure, in FLOP/s or B/s, worked
# out once for all operations; so are launch times. The factors, by fallback or overridden, are made in
# efficiency.py, as they follow from the library.

define launches_used = efficiency.launch_scale | when not routed_experts
define launches_used = efficiency.launch_in_use | when routed_experts
# Of devices that are not alike each is a machine of its own.
define ranks_of_machine = plan.accelerators | when not devices
define ranks_of_machine = plan.stage_ranks | when devices
define place_of_ranks(count) = match_at_most(max(count, efficiency.ranks.2), [efficiency.ranks.*])

[efficiency] Conditions | for which some factors differ
each kernel format
format.{f}  Kernel format {f} ({f}) [1] := '{f}' ; a figure may hold for this only

each KV format
kv_format.{f}  KV format {f} ({f}) [1] := '{f}' ; a figure may hold for this only

each number of ranks
ranks.{n}   Ranks {n} (measured ranks) [rank] := {n} ; collectives are measured on this many ranks

each class of products
format_in_use.{c}  Place of the kernel format, {name} [number]
            = match(`hardware.{c}.kernel_format`, [efficiency.format.*])

kv_format_in_use  Place of the KV format [number] = match(hardware.kv_format, [efficiency.kv_format.*])
ranks_in_use.tp  Place of the ranks whose collectives hold, TP [number] = place_of_ranks(inputs.tp)
ranks_in_use.stage  Place of the ranks whose collectives hold, stage [number]
            = place_of_ranks(plan.stage_ranks)
when decode_CP
ranks_in_use.dcp  Place of the ranks whose collectives hold, decode CP [number] = place_of_ranks(inputs.dcp)
when TP_of_FFNs
ranks_in_use.ffn  Place of the ranks whose collectives hold, FFN [number]
            = place_of_ranks(max(1, inputs.ffn_tp))

[efficiency] Fractions of a peak | factor × scale; what the checks look at
when routed_experts
launch_release  Launches against those of earlier engines [1]
            = where(inputs.engine_release == 'current', launch_current, 1)
launch_in_use  Launch overhead scale of the release [1] = launch_scale * launch_release
moe_slower  Expert kernels against current ones [1]
            = where(inputs.engine_release == 'before 2025-12', moe_early, 1)

each class of plain products
fraction.gemm_compute.{c}  Fraction, GEMM compute, {name} (GEMM compute, {name} fraction) [1]
            = `efficiency.gemm_compute.{c}`

[efficiency] Fractions of a peak
each class of plain products
fraction.gemm_bandwidth.{c}  Fraction, GEMM bandwidth, {name} (GEMM bandwidth, {name} fraction) [1]
            = `efficiency.gemm_bandwidth.{c}` * gemm_bandwidth_scale

when routed_experts
fraction.moe_compute  Fraction, expert compute (expert compute fraction) [1] = moe_compute / moe_slower
fraction.moe_bandwidth  Fraction, expert bandwidth (expert bandwidth fraction) [1]
            = moe_bandwidth * moe_bandwidth_scale / moe_slower

fraction.attention_prefill  Fraction, prefill attention (prefill attention fraction) [1]
            = attention_prefill * attention_prefill_scale
when cache_read
fraction.attention_decode  Fraction, decode attention (decode attention fraction) [1]
            = attention_decode * attention_decode_scale

when latent_attention
fraction.latent_decode  Fraction, latent attention (latent attention fraction) [1]
            = latent_decode * attention_decode_scale
fraction.latent_compute  Fraction, latent attention compute (latent attention compute fraction) [1]
            = latent_compute

when recurrent_states
fraction.state_bandwidth  Fraction, state update (state update fraction) [1] = state_bandwidth

fraction.elementwise  Fraction, elementwise (elementwise fraction) [1] = elementwise_bandwidth
fraction.memory_usable  Fraction, usable memory (usable memory fraction) [1] = memory_usable
fraction.host_link  Fraction, host link (host link fraction) [1] = host_link

each link
fraction.{link}  Fraction, {name} ({name} fraction) [1] = efficiency.{link}

largest     Largest fraction [1] = max(fractions)
smallest    Smallest fraction [1] = min(fractions)

[efficiency] What is reached | fraction × datasheet figure
when routed_experts
rate.small_kernel  Small kernel time [s] = small_kernel * launch_release

each class of plain products
rate.gemm_launch_time.{c}  GEMM launch time, {name} [s] = `efficiency.gemm_launch.{c}` * launches_used

[efficiency] What is reached
each class of plain products
rate.gemm_flops.{c}  GEMM FLOP/s reached, {name} [FLOP/s]
            = `efficiency.fraction.gemm_compute.{c}` * `hardware.{c}.linear_peak` * inputs.compute_speed

[efficiency] What is reached
each class of plain products
rate.gemm_bytes.{c}  GEMM bandwidth reached, {name} [B/s]
            = `efficiency.fraction.gemm_bandwidth.{c}` * hardware.memory_bandwidth

when routed_experts
rate.moe_launch_time  Expert launch time [s] = moe_launch * moe_launch_scale * launch_release * moe_slower
rate.moe_flops  Expert FLOP/s reached [FLOP/s]
            = fraction.moe_compute * hardware.experts.linear_peak * inputs.compute_speed
rate.moe_sent_flops  Expert FLOP/s reached over sent tokens [FLOP/s]
            = max(fraction.moe_compute, min(half, fraction.moe_compute * moe_sent)) *
            hardware.experts.linear_peak * inputs.compute_speed
rate.moe_widened  Expert widening reached [B/s] = moe_widening * inputs.compute_speed / moe_slower
rate.moe_bytes  Expert bandwidth reached [B/s]
            = where(hardware.experts.widened > 0, min(fraction.moe_bandwidth * hardware.memory_bandwidth,
            rate.moe_widened), fraction.moe_bandwidth * hardware.memory_bandwidth)

rate.attention_flops  Attention FLOP/s reached [FLOP/s]
            = fraction.attention_prefill * hardware.sixteen_peak * inputs.compute_speed
when plain_attention
rate.cached_attention_flops  Attention FLOP/s reached over the cache [FLOP/s]
            = rate.attention_flops * where(hardware.kv_format == 'fp8', attention_prefill_fp8, 1)

when attention_kernels
rate.attention_launch_time  Attention launch time [s] = attention_launch * launches_used

when cache_read
rate.kv_read  KV cache bandwidth reached [B/s] = fraction.attention_decode * hardware.memory_bandwidth

when latent_attention
rate.latent_launch_time  Latent attention launch time [s] = latent_launch * launches_used
rate.latent_read  Latent bandwidth reached [B/s] = fraction.latent_decode * hardware.memory_bandwidth
rate.latent_flops  Latent attention FLOP/s reached [FLOP/s]
            = fraction.latent_compute * hardware.sixteen_peak * inputs.compute_speed

when recurrent_states
rate.state_launch_time  State update launch time [s] = state_launch * launches_used
rate.state_bytes  State bandwidth reached [B/s] = fraction.state_bandwidth * hardware.memory_bandwidth

rate.streaming  Elementwise bandwidth reached [B/s] = fraction.elementwise * hardware.memory_bandwidth
rate.host_memory  Bandwidth of host memory for an accelerator [B/s]
            = where(hardware.host_memory_bandwidth > 0, hardware.host_memory_bandwidth /
            hardware.hosts_of_domain * accelerators_per_rank / min(ranks_of_machine,
            hardware.host_accelerators), hardware.host_bandwidth)
rate.host_bytes  Host link bandwidth reached [B/s]
            = fraction.host_link * min(hardware.host_bandwidth, rate.host_memory)
