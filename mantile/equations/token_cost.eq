# What input and output tokens cost where each pays for the accelerator time that it takes. A prompt takes the
# time for which it occupies the pipeline, an output token its share of a decode step. Where prefill has
# workers of its own, input tokens pay those and output tokens the others. Both together pay every hour:
# nothing is left over, and nothing is paid twice.

define share_of(kind, tokens) = if_known(kind / (tokens * seconds_per_hour) * tokens_per_million, kind)

[token_cost] Time of input and output | of the same accelerators
prompt_time  Time for the prompt of a request [s] = serving.prefill_service ; prefill
output_time  Time for the output of a request [s]
            = inputs.output_tokens / emitted * step_used / (decode.memory.batch / one_request)
            ; its share of decode steps
input_time_share  Share of prefill in the time of both [1] = prompt_time / (prompt_time + output_time)
            ; of the same accelerators

[token_cost] Input and output tokens
  | a prompt pays the time for which it occupies the accelerators, an output token its share of a decode
  step; with prefill workers, input tokens pay these
when disaggregated
prefill_share  Share of prefill workers in the cost [1]
            = if_known(cost.hourly / cost.usd_per_hour, cost.usd_per_hour)
input_share  Share of the cost that input tokens pay [1]
            = where(inputs.disaggregated > 0, prefill_share, input_time_share)
            ; that of prefill workers where there are such
over token_cost.input_per_hour = if_known(cost.usd_per_hour * input_share, cost.usd_per_hour)
over token_cost.output_per_hour = if_known(cost.usd_per_hour * (1 - input_share), cost.usd_per_hour)

input_per_hour  Cost per hour of input tokens [USD/h]
            = if_known(cost.usd_per_hour * input_time_share, cost.usd_per_hour)
output_per_hour  Cost per hour of output tokens [USD/h]
            = if_known(cost.usd_per_hour * (1 - input_time_share), cost.usd_per_hour)
for kind in input; output
usd_per_million_{kind}  Cost per million {kind} tokens, by their time [USD/Mtoken]
            = share_of({kind}_per_hour, cost.{kind}_tokens) ; at the utilisation above

paid        What all tokens of an hour pay [USD/h]
            = where(is_number(cost.usd_per_hour), (cost.input_tokens * usd_per_million_input +
            cost.output_tokens * usd_per_million_output) * seconds_per_hour / tokens_per_million, 0)
owed        What an hour costs [USD/h] = where(is_number(cost.usd_per_hour), cost.usd_per_hour, 0)
