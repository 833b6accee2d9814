# Speculative decoding: how many tokens of a request a step checks, and how many it gives.
#
# A drafter proposes tokens one after the other. The next step works on all of them and on the token before,
# and keeps those up to the first that the model itself would not have chosen, and one of its own. Acceptance
# is a chance by position: the first draft token has the acceptance rate, and each further one, once those
# before it are accepted, that of the one before times the decline.

when speculation

[speculation] Speculation | tokens of a request in a decode step
on          Tokens are drafted [flag] = where(inputs.speculation == 'none', 0, 1)
by_layer    A layer like the model's own drafts [flag]
            = where(inputs.speculation == 'mtp', 1, 0) + where(inputs.speculation == 'eagle', 1, 0)
by_model    Another model drafts [flag] = where(inputs.speculation == 'draft-model', 1, 0)
drafts      Draft tokens of a request in a step [token/request] = on * inputs.draft_tokens
checked     Tokens of a request that a step works on (tokens to check) [token/request]
            = tokens_per_step + drafts ; draft tokens, and the one before
number.1    Draft token 1 [token/request] := 1 ; a position
for n in 2..8
number.{n}  Draft token {n} [token/request] := {n} ; a position
chance.{n}  Chance of draft token {n} once those before it are accepted [1]
            = chance.{n-1} * inputs.acceptance_decline

over speculation.chance.2 = inputs.acceptance_rate * inputs.acceptance_decline
over speculation.position.1 = where(drafts >= number.1, 1 * inputs.acceptance_rate, 0)
for n in 1..8
position.{n}  Chance that draft tokens up to {n} are accepted [1]
            = where(drafts >= number.{n}, position.{n-1} * chance.{n}, 0) ; 0 beyond the last

length      Tokens of a request in a step by chance of each position [token/request]
            = tokens_per_step * (1 + sum([position.*])) ; one is the model's own
emitted     Tokens of a request that a step gives (tokens of a step) [token/request]
            = where(on > 0, max(tokens_per_step, min(checked, inputs.acceptance_length)), tokens_per_step)
            ; on average; at least the model's own
# What the server does, the same on all chips: the host accepts and rejects drafts of one request after the
# other.
for framework | us in sglang | 140; trtllm | 60
check.{framework}  Check of a request's drafts, {framework} [us] := {us} in 0 to 100000
            ; beyond the work of the accelerator: requests are accepted one by one
            @ fitted 2026-04: 131 public runs with prediction layers, DeepSeek-R1 and Qwen3.5, since 2026-01

check.others  Check of a request's drafts, other frameworks [us] := 100 in 0 to 100000
            ; the mean of those that were measured
            @ assumed 2026-04: 131 public runs with prediction layers, DeepSeek-R1 and Qwen3.5, since 2026-01
check_sglang  Check of a request's drafts, sglang or as before [us]
            = where(inputs.framework == 'sglang', check.sglang, check.others)
check_trtllm  Check of a request's drafts, trtllm or as before [us]
            = where(inputs.framework == 'trtllm', check.trtllm, check_sglang)
check_time  Check of a request's drafts [s] = on * check_trtllm / us_per_s
published_rate
as_published  Nobody states how many are accepted [flag]
            = on * where(all(inputs.acceptance_rate == published_rate, inputs.acceptance_length == length), 1,
            0)
assumed     Acceptance is that of another model's layer [flag] = as_published * by_layer
unknown     Nobody can say how many are accepted [flag] = as_published * (1 - by_layer)
            ; of draft models and n-grams it differs too much
