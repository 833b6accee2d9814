# The measured run that is nearest to a scenario, what differs, and how well that run itself is estimated.
#
# The distance is a sum, so that a reader can work it out in the head. What matters more for a time weighs
# more: first the size of the model, then the accelerator, the framework, formats and the plan, and last the
# lengths. Of active parameters, accelerators, requests per accelerator, input and output tokens each doubling
# counts; the input tokens of a run whose first token was not timed count a tenth. Of runs at the same
# distance the newest is taken. Beyond a limit no run is near, and none of another kind of model is.

define other(here, there) = where(here == there, 0, 1)
define ratio(here, there) = abs(ln(here / there))
define inner_degrees(tp, ep, attention_dp) = tp * place_of.tp + ep * place_of.ep + attention_dp *
  place_of.attention_dp
define all_degrees(inner, pp, cp, dp) = inner + pp * place_of.pp + cp * place_of.cp + dp * place_of.dp
define other_form(before) = before + weight.format * (other(inputs.weights_dtype, run.{n}.weights_dtype) +
  other(here.serving, run.{n}.serving))
define of_run(facts) = index(facts, place)

when near_runs

[nearest] Distance to run {n} | each measured run | aside
kind.{n}    order and other model: {run} (order and other model of the run) [1]
            = run.{n}.order + weight.active_parameters * ratio(model.active_parameters,
            run.{n}.active_parameters) / ln(doubling) + weight.model * other(here.model, run.{n}.model)
chip.{n}    other accelerator or framework: {run} (other accelerator or framework of the run) [1]
            = kind.{n} + (weight.accelerator * other(inputs.accelerator, run.{n}.accelerator) +
            weight.framework * other(inputs.framework, run.{n}.framework))
when disaggregated
decode.{n}  other decode workers: {run} (other decode workers of the run) [1]
            = chip.{n} + weight.plan * (1 - other(here.serving, run.{n}.serving)) *
            other(here.decode_degrees, run.{n}.decode_degrees)
over nearest.form.{n} = other_form(decode.{n})

form.{n}    other form: {run} (other form of the run) [1] = other_form(chip.{n})
plan.{n}    other plan: {run} (other plan of the run) [1]
            = form.{n} + weight.plan * (other(inputs.kv_dtype, run.{n}.kv_dtype) + other(here.degrees,
            run.{n}.degrees))
scale.{n}   other scale: {run} (other scale of the run) [1]
            = plan.{n} + weight.plan * (ratio(serving.accelerators, run.{n}.accelerators) + ratio(here.load,
            run.{n}.load)) / ln(doubling)
key.{n}     distance and order: {run} (distance and order of the run) [1]
            = scale.{n} + weight.length * (ratio(inputs.input_tokens, run.{n}.input_tokens) * run.{n}.prompt +
            ratio(inputs.output_tokens, run.{n}.output_tokens)) / ln(doubling)

[nearest] Distances to measured runs | how far each is: the sum of what differs, by its weight
for name | what | value in active_parameters | a doubling of active parameters | 16;
  model | another model | 1; accelerator | another accelerator | 16; framework | another framework | 8;
  format | another format of weights, or kind of serving | 2;
  plan | other degrees, another KV format, a doubling of accelerators or their load | 0.25;
  length | a doubling of input or output tokens | 0.125
weight.{name}  Weight of {what} [1] := {value} ; what it adds to a distance

limit       Distance beyond which no run is near [1] := 24 ; another accelerator and framework
doubling    Doubling [1] := 2 ; the ratio that counts once
billion     Billion parameters [parameter] := 1e9 ; in which words count them
# All degrees of parallelism stand in one number that is compared.
for name | letters | value in tp | TP | 1; ep | EP | 1e3; attention_dp | attention-DP | 1e6; pp | PP | 1e9;
  cp | CP | 1e11; dp | DP | 1e13
place_of.{name}  Place of {letters} in one number [1] := {value}

here.model
when not disaggregated
here.serving  Serving here [1] := 'aggregated' ; of this workbook
when disaggregated
here.serving  Serving here [1] = where(inputs.disaggregated > 0, 'disaggregated', 'aggregated')

here.degrees.inner  TP, EP and attention-DP here [rank]
            = inner_degrees(inputs.tp, inputs.ep, inputs.attention_dp)
            ; all degrees in one number, each in digits of its own
here.degrees  Degrees here [rank] = all_degrees(here.degrees.inner, inputs.pp, inputs.cp, inputs.dp)
            ; all degrees in one number, each in digits of its own
when disaggregated
here.decode_degrees.inner  TP, EP and attention-DP of decode workers here [rank]
            = inner_degrees(inputs.decode_tp, inputs.decode_ep, inputs.decode_attention_dp)
            ; all degrees in one number, each in digits of its own
here.decode_degrees  Degrees of decode workers here [rank]
            = inputs.disaggregated * all_degrees(here.decode_degrees.inner, inputs.decode_pp,
            inputs.decode_cp, inputs.decode_dp) ; all degrees in one number, each in digits of its own

here.load   Requests per accelerator here [request/accelerator] = inputs.concurrency / serving.accelerators
kind.*
chip.*
decode.*
form.*
plan.*
scale.*
key.*

[nearest] Nearest measured run
  | of the runs above the one at the least distance, as inputs are now
place       Place of the nearest run [number] = match(least([key.*]), [key.*]) ; among those above
distance    Distance of the nearest run [1] = of_run([key.*]) - of_run([run.*.order])
            ; 0: nothing of what is compared differs
near        It is near [flag] = where(distance <= limit, 1, 0) ; within the limit
id          Nearest run: id [1] = where(near > 0, of_run([run.*.id]), 'nothing near was measured')
for field | label | unit in model | model | 1; active_parameters | active parameters | parameter;
  accelerator | accelerator | 1; framework | framework | 1; weights_dtype | weights | 1;
  kv_dtype | KV cache | 1; serving | serving | 1; accelerators | accelerators | accelerator;
  input_tokens | input tokens | token/request; output_tokens | output tokens | token/request;
  concurrency | concurrency | request; degrees | degrees | rank
{field}     Nearest run: {label} [{unit}] = of_run([run.*.{field}])

when disaggregated
decode_degrees  Nearest run: decode of degrees [rank] = of_run([run.*.decode_degrees])

for field | label | unit in plan | plan | 1; measured.ttft_s | TTFT, measured | s;
  measured.tpot_s | TPOT, measured | s; estimated.ttft_s | TTFT, estimated | s;
  estimated.tpot_s | TPOT, estimated | s; source | source | 1; date | date | 1
{field}     Nearest run: {label} [{unit}] = of_run([run.*.{field}])

estimated_by
