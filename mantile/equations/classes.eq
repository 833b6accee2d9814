# Classes of requests that share one deployment. It serves their mixture: mean lengths, and the standard
# deviation over all classes. Each class has its own TTFT, end to end, percentiles and share within limits:
# its own prompt and output, the waits of all. The running batch holds requests of mean length.

define square(spread) = 1 + spread * spread
define over_all(squares) = max(0, squares - 1)**half
define at(far, last) = min({c}.ttft_median * exp(far * {c}.ttft_deviation), last * exp(far * {c}.ttft_own))
define far_from(limit, median, deviation) = min(far, max(-far, ln(max(smallest, limit / median)) /
  max(smallest, deviation)))
define within(limit, far) = where(limit > 0, 1 / (1 + exp(-far * (normal_line + normal_cube * far * far))), 1)

when classes

[classes] Mixture of classes | lengths that the deployment sees
weights     Sum of the weights of all classes [1] = sum(*[classes.*.share])

[classes] Parts of the mixture, {name} | each class
{n}.part    Share of all requests, {name} [1] = {c}.share / weights
when class_prefixes
{n}.head    Shared prefix and answers before, {name} [token/request]
            = {c}.shared_prefix + half * ({c}.turns - 1) * {c}.output_tokens
            ; the first turn has none before it, the last all others
{n}.before  Share of a prompt that was there before, {name} [1]
            = 1 - max(0, {c}.input_tokens - {c}.head) / (1 + half * ({c}.turns - 1)) / {c}.input_tokens
            ; as many new tokens in each turn
{n}.prefix_part  Part of {name} in the mean shared prefix [token/request] = {c}.part * {c}.shared_prefix
{n}.before_part  Part of {name} in what was there before [token/request]
            = {c}.part * {c}.input_tokens * {c}.before
{n}.head_part  Head of a prompt against the prompt, {name} [1] = {c}.head / {c}.input_tokens

for side | label in input | prompts; output | outputs
{n}.{side}_part  Part of {name} in the mean of {label} [token/request] = {c}.part * {c}.{side}_tokens

when class_think_times
{n}.think_part  Part of {name} in the mean think time [s] = {c}.part * {c}.think_time

[classes] Means of the mixture
for side | label in input | prompts; output | outputs
{side}_mean  Mean length of {label} [token/request] = sum(*[classes.*.{side}_part])

when class_prefixes
shared_prefix  Mean shared prefix [token/request] = sum(*[classes.*.prefix_part])
            ; requests of a class share its own
before      Share of all prompts that was there before [1] = sum(*[classes.*.before_part]) / input_mean
shared_once  Shared prefixes of all classes [token/request] = sum(*[classes.*.shared_prefix])
            ; each lies in the KV cache once
head        Longest head of a prompt, against the prompt [1] = max(0, *[classes.*.head_part])
            ; shared prefix and answers before: above 1 no prompt holds them
new         Mean tokens of a prompt to work out [token/request] = max(smallest, 1 - before) * input_mean

when class_think_times
think_time  Mean think time [s] = sum(*[classes.*.think_part])

[classes] Squares of the mixture, {name} | each class
when not class_prefixes
{n}.input_square  Part of {name} in the mean square of prompts, against the square of the mean [1]
            = {c}.input_part / input_mean * ({c}.input_tokens / input_mean) * square({c}.input_spread)

{n}.output_square  Part of {name} in the mean square of outputs, against the square of the mean [1]
            = {c}.output_part / output_mean * ({c}.output_tokens / output_mean) * square({c}.output_spread)
when class_prefixes
{n}.new     Tokens to work out against the mean, {name} [1] = {c}.input_tokens * (1 - {c}.before) / new
{n}.new_square  Part of {name} in the mean square of what is new, against the square of the mean [1]
            = {c}.part * {c}.new * {c}.new * square({c}.input_spread)

[classes] Spread of the mixture
when not class_prefixes
input_spread  Spread of prompts over all classes [1] = over_all(sum(*[classes.*.input_square]))
            ; standard deviation against the mean

output_spread  Spread of outputs over all classes [1] = over_all(sum(*[classes.*.output_square]))
            ; standard deviation against the mean
when class_prefixes
new_spread  Spread of what is worked out of prompts, over all classes [1]
            = over_all(sum(*[classes.*.new_square]))
            ; standard deviation against the mean; who waits, waits behind that

[classes] Classes | what requests of a class see; gaps between tokens are those of all
own_prompt  What grows with a request's own prompt, against TTFT [1]
            = where(inputs.continuous > 0, serving.varies_prefill, serving.varies_prefill /
            (decode.memory.batch / one_request)) ; in a static batch prompts are prefilled together
others      Variance of TTFT but for one's own prompt, against its square [1]
            = max(0, serving.ttft_variance - own_prompt * own_prompt * inputs.input_spread *
            inputs.input_spread) ; for all classes alike
when class_prefixes
kept        What is found against what was there before [1] = prefix.hit_rate / max(smallest, before)
            ; of all classes alike: room for prefixes, whole blocks, or a rate that is typed

[classes] Class {name} | its own prompt and output, in place of those of the mixture | each class
{n}.longer  Prompt to work out against the mean, {name} [1] = {c}.input_tokens / inputs.input_tokens
over {c}.longer = {c}.input_tokens * (1 - min(1, {c}.before * kept)) / prefix.computed | when class_prefixes
{n}.ttft_steady  TTFT in steady state, {name} [s]
            = serving.ttft_steady * max(smallest, 1 + own_prompt * ({c}.longer - 1))
{n}.of_all  TTFT of all against that of {name} [1] = serving.ttft_steady / {c}.ttft_steady
{n}.own_prompt  Spread of TTFT by one's own prompt, against TTFT of all, {name} [1]
            = own_prompt * {c}.longer * {c}.input_spread ; standard deviation
{n}.ttft_variance  Variance of TTFT against its square, {name} [1]
            = (others + {c}.own_prompt * {c}.own_prompt) * {c}.of_all * {c}.of_all
{n}.ttft_deviation  TTFT, {name}, standard deviation of its logarithm [1] = ln(1 + {c}.ttft_variance)**half
{n}.ttft_median  TTFT, {name}, median in steady state [s]
            = {c}.ttft_steady * exp(-half * {c}.ttft_deviation * {c}.ttft_deviation)
{n}.ttft    TTFT, {name} [s] = {c}.ttft_steady + serving.burst_wait
{n}.generation  Generation after the first token, {name} [s]
            = max(0, {c}.output_tokens / tokens_per_step - 1) * serving.tpot
{n}.e2e_steady  End to end in steady state, {name} [s] = {c}.ttft_steady + {c}.generation
{n}.e2e     End to end, {name} [s] = {c}.ttft + {c}.generation
{n}.e2e_generation  Generation against end to end, {name} [1] = {c}.generation / {c}.e2e_steady
{n}.e2e_first  TTFT against end to end, {name} [1] = {c}.ttft_steady / {c}.e2e_steady
{n}.gap_variance  Variance of outputs and of their gaps, {name} [1]
            = {c}.output_spread * {c}.output_spread + serving.tpot_variance
            ; against the square of the generation
{n}.e2e_variance  Variance of end to end against its square, {name} [1]
            = {c}.ttft_variance * {c}.e2e_first * {c}.e2e_first + {c}.gap_variance * {c}.e2e_generation *
            {c}.e2e_generation
{n}.e2e_deviation  End to end, {name}, standard deviation of its logarithm [1]
            = ln(1 + {c}.e2e_variance)**half
{n}.e2e_median  End to end, {name}, median in steady state [s]
            = {c}.e2e_steady * exp(-half * {c}.e2e_deviation * {c}.e2e_deviation)
{n}.ttft_last  TTFT, {name}, behind the prompts of all others [s] = {c}.ttft_steady + serving.wait_spare
{n}.ttft_own  TTFT, {name}, standard deviation of the logarithm by the own prompt [1]
            = ln(square({c}.input_spread))**half
{n}.ttft_p50  TTFT, {name}, median (median TTFT, {name}) [s] = max({c}.ttft_median, serving.burst_p50)
for p in p90; p95; p99
{n}.ttft_{p}  TTFT, {name}, {p} ({p} TTFT, {name}) [s] = max(at(at_{p}, {c}.ttft_last), serving.burst_{p})

{n}.e2e_p50  End to end, {name}, median (median End to end, {name}) [s]
            = max({c}.e2e_median + ({c}.ttft_p50 - {c}.ttft_median), {c}.ttft_p50)
for p in p90; p95; p99
{n}.e2e_{p}  End to end, {name}, {p} ({p} End to end, {name}) [s]
            = max({c}.e2e_median * exp(at_{p} * {c}.e2e_deviation) + ({c}.ttft_p50 - {c}.ttft_median),
            {c}.ttft_{p})

for time | label in ttft | TTFT; tpot | TPOT; e2e | end to end
{n}.{time}_limit_in_use  Limit of {label}, {name}, in use [s]
            = where({c}.{time}_limit > 0, {c}.{time}_limit, inputs.{time}_limit)

for time | label | of in ttft | TTFT | {c}.ttft; tpot | TPOT | serving.tpot; e2e | end to end | {c}.e2e
{n}.good_{time}_far  Limit of {label}, {name}, standard deviations above the median [1]
            = far_from({c}.{time}_limit_in_use, {of}_median, {of}_deviation) ; of the logarithm
{n}.good_{time}_share  Share of requests within the limit of {label}, {name} [1]
            = within({c}.{time}_limit_in_use, {c}.good_{time}_far) ; no limit: all

{n}.good_share  Share of requests within all limits, {name} [1]
            = min({c}.good_ttft_share * {c}.good_tpot_share, {c}.good_e2e_share)
            ; who is late to the first token is late to the last
when sessions
{n}.sessions  Sessions, {name} [request] = serving.requests_per_s * {c}.part * ({c}.e2e + inputs.think_time)
            ; requests per second times the seconds of an answer and of the thought after it @ Little's law
over {c}.sessions = serving.requests_per_s * {c}.part * ({c}.e2e + {c}.think_time) | when class_think_times

{n}.good    Requests within limits, of all, {name} [1] = {c}.part * {c}.good_share

[classes] All classes | requests of each class by their share
good        Share of requests within the limits of their classes [1] = sum(*[classes.*.good])
