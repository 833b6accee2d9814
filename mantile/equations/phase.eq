# What enters a forward pass, on each rank. Prefill: with continuous batching one prompt for each attention
# group, with static batching all prompts of the batch. Decode: one token for every request of a micro-batch,
# or as many as a step checks.

[phase] What enters | workload of one pass | each prompt
requests    Prompts in the pass [request]
            = where(inputs.continuous > 0, min(inputs.attention_dp * one_request, memory.allowed, max(1,
            memory.capacity_sequences)), memory.batch)
            ; continuous batching prefills one prompt for each attention group, static batching the whole
            batch
rank_requests  Prompts of an attention group [request] = max(1, requests / inputs.attention_dp)
tokens      Tokens in the pass (tokens) [token] = requests * prompt_tokens
rank_tokens  Tokens of a rank in attention (tokens of a rank) [token]
            = rank_requests * prompt_tokens / inputs.cp

[phase] What enters | workload of one pass | each step
most        Requests that decode where prompts fill every step [request]
            = memory.step_tokens / (prompt_tokens * (1 + memory.redone)) * inputs.output_tokens / emitted
            ; so many prompts enter in a step, and so many steps each stays
batch       Requests that decode at a time (requests that decode) [request]
            = where(riding > 0, max(1, min(memory.batch, most)), memory.batch)
            ; fewer than the batch where prompts fill every step: the others wait for their prefill
microbatches  Micro-batches [number]
            = min(where(all(inputs.pp > 1, inputs.microbatches > 0), inputs.microbatches, inputs.pp), max(1,
            batch / one_request)) ; at most one for each request; one stage needs none
requests    Requests in the pass [request] = max(1, batch / microbatches)
            ; each stage works on one micro-batch at a time
rank_requests  Requests of an attention group [request] = max(1, requests / inputs.attention_dp)
tokens      Tokens in the pass (tokens) [token] = requests * tokens_checked
rank_tokens  Tokens of a rank in attention (tokens of a rank) [token] = rank_requests * tokens_checked

# Tokens that a rank works on, by the ranks that a module is spread over.
define of_stage = tokens | when not shared_ffns
define of_stage = shared_tokens | when shared_ffns
define tokens_of_ffns = of_stage | when not TP_of_FFNs
define tokens_of_ffns = ffn_tokens | when TP_of_FFNs

[phase] What enters | each pass
when shared_ffns
shared_tokens  Tokens of a rank in dense FFNs and shared experts [token]
            = where(plan.sends_tokens > 0, rank_tokens, tokens)
when TP_of_FFNs
ffn_tokens  Tokens of a rank in dense FFNs [token] = where(own_ffns, rank_tokens, of_stage)
when routed_experts
expert_tokens  Tokens of a rank's experts [token] = tokens / plan.expert_groups
            ; experts are chosen evenly

norm_tokens  Tokens of a rank in norms [token] = rank_tokens / plan.sequence

# Tokens that a token attends to on average, by span of attention. In prefill of a prompt, or, where its head
# was found, all pairs of the prompt but those of its head.
define before_all(prompt) = half * prompt
define before_in_chunk(prompt, limit, last) =
            half * (floor(prompt / limit) * limit * limit + last * last) / prompt
define in_reach(limit, prompt) = where(limit > 0, min(limit, prompt), prompt)
define before_in_window(prompt, reach) = reach * (1 - half * reach / prompt)

[phase] What enters | each prompt
each span
when chunked
last_chunk{s}  Length of the last chunk{words} [token/request] = remainder(inputs.input_tokens, {limit})
when windowed
window{s}   Reach of attention{words} [token/request] = in_reach({limit}, inputs.input_tokens)
when unlimited
{whole}{s}  {label}{words} ({called}) [token/request] = before_all(inputs.input_tokens)
            ; every token attends to all before it
when chunked
{whole}{s}  {label}{words} ({called}) [token/request]
            = before_in_chunk(inputs.input_tokens, {limit}, last_chunk{s})
            ; every token attends to those before it in its chunk
when windowed
{whole}{s}  {label}{words} ({called}) [token/request] = before_in_window(inputs.input_tokens, window{s})
            ; the first tokens see less than the window
when prefixes
head{s}     Head of the prompt that is found{words} [token/request]
            = max(one_token / one_request, prefix.found)
when prefixes, chunked
last_chunk{s}.head  Length of the last chunk{words}, head [token/request] = remainder(head{s}, {limit})
when prefixes, windowed
window{s}.head  Reach of attention{words}, head [token/request] = in_reach({limit}, head{s})
when prefixes, unlimited
context_head{s}  Mean of the head that is found{words} [token/request] = before_all(head{s})
when prefixes, chunked
context_head{s}  Mean of the head that is found{words} [token/request]
            = before_in_chunk(head{s}, {limit}, last_chunk{s}.head)
when prefixes, windowed
context_head{s}  Mean of the head that is found{words} [token/request]
            = before_in_window(head{s}, window{s}.head)
when prefixes
context{s}  Mean tokens attended to{words} (mean context{words}) [token/request]
            = (context_whole{s} * inputs.input_tokens - context_head{s} * prefix.found) / prefix.computed
            ; of what is not found

[phase] What enters | each step
length      Mean length so far [token/request] = inputs.input_tokens + half * inputs.output_tokens
            ; on average half of the output is there
each span
when unlimited
context{s}  Mean tokens attended to{words} (mean context{words}) [token/request] = length / token_groups
when chunked
context{s}  Mean tokens attended to{words} (mean context{words}) [token/request]
            = where(length <= {limit}, length, half * {limit}) / token_groups
            ; past its first chunk a token sees half of one
when windowed
context{s}  Mean tokens attended to{words} (mean context{words}) [token/request]
            = where({limit} > 0, min(length, {limit}), length) / token_groups

# The share of its experts that the busiest rank reads in a pass. On average a share of 1 - (1 -
# k/E)^(T^spread) is touched: a token misses an expert with probability 1 - k/E, and the exponent of T is
# below 1 because routing is skewed. How many of its experts a rank reads scatters like independent draws,
# and the layer waits for the rank that reads most. The largest of n such numbers lies about sqrt(ln n)
# deviations above their mean. LibreOffice knows no smaller power than that of saturated draws.
define missed_by(tokens) =
            (1 - chosen / experts) ** min((tokens / one_token) ** efficiency.routing_spread, saturated *
            experts / chosen)

[phase] What enters | each prompt
passes      Passes over the weights (passes) [1]
            = where(memory.prompt_batch > 0, max(1, tokens / memory.prompt_batch), 1)
            ; several where the framework takes a prompt in parts
when routed_experts
pass_tokens  Tokens in one pass [token] = tokens / passes
untouched   Share of the experts not touched [1] = missed_by(pass_tokens)
            ; a token misses an expert by chance; skewed routing counts as fewer tokens

[phase] What enters | when routed_experts | each step
untouched   Share of the experts not touched [1] = missed_by(tokens)
            ; a token misses an expert by chance; skewed routing counts as fewer tokens

[phase] What enters | when routed_experts | each pass
coverage    Share of the experts touched (expert coverage) [1] = 1 - untouched
coverage_deviation  Deviation of that share between ranks (deviation of the coverage) [1]
            = (coverage * untouched / plan.experts) ** half ; as of independent draws
coverage_busiest  Share of its experts that the busiest rank reads (coverage on the busiest rank) [1]
            = min(1, coverage + coverage_deviation * ln(plan.expert_groups) ** half)
            ; a layer waits for it; of n draws the highest lies about sqrt(ln n) deviations above their mean
