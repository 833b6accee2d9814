# How far lengths of requests lie from their mean.

[spread] Spread of lengths | standard deviation against the mean
evenly      Spread of lengths drawn evenly [1]
            = half * inputs.length_range_ratio / (1 - half * inputs.length_range_ratio) * third**half
            ; standard deviation against the mean
usual       Spread of outputs with that p95 [1] = (inputs.p95_output_ratio - 1) / at_p95
            ; as if they were normal
prompts     Spread of prompts, squared [1] = inputs.input_spread * inputs.input_spread
outputs     Spread of outputs, squared [1] = inputs.output_spread * inputs.output_spread
waits       Waits behind prompts against lengths drawn evenly [1] = (1 + prompts) / (1 + evenly * evenly)
            ; behind long prompts more requests wait
            @ Pollaczek and Khinchine: single server, random arrivals
