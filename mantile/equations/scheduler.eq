# How requests get their turn: the prefill that other requests' steps carry, and the wait for a first token.
# Three schedulers: mixed (chunks of prompts ride in decode steps), prefill first (decode stops for prompts),
# whole prompts (prompts join decode steps undivided). The closed forms were fitted to a step-by-step
# simulation of each under a closed loop, thousands of settings; their median error against it is 5 %.

[scheduler] Scheduler | how prompts get their turn | part Hardware
mixed
prefill-first
whole-prompts
in_use      Scheduler in use [1]
            = where(inputs.scheduler == 'default', of_framework(framework.scheduler), inputs.scheduler)
place       Place of the scheduler [number]
            = match(in_use, [scheduler.mixed, `scheduler.prefill-first`, `scheduler.whole-prompts`])
first       Decode stops for prompts (prefill first) [flag] = where(in_use == 'prefill-first', 1, 0)

[scheduler] Waits by scheduler | wait
            = factor × prefill alone × share of others' prefill ^ exponent × others ^ exponent
for f | meaning | mixed | first | whole in factor | factor | 0.086 | 0.098 | 0.069;
  share | exponent of the share | 0.68 | 0.80 | 0.65; others | exponent of the others | 0.52 | 0.44 | 0.51
mean.{f}.mixed  Mean wait, {meaning}, mixed ({meaning} by scheduler) [1] := {mixed} in 0 to 5
            ; median error 5 % @ fitted 2026-11: simulation
mean.{f}.prefill-first  Mean wait, {meaning}, prefill-first ({meaning} by scheduler) [1] := {first} in 0 to 5
            ; median error 5 % @ fitted 2026-11: simulation
mean.{f}.whole-prompts  Mean wait, {meaning}, whole-prompts ({meaning} by scheduler) [1] := {whole} in 0 to 5
            ; median error 5 % @ fitted 2026-11: simulation
mean.{f}    Mean wait, {meaning} in use (mean wait, {meaning}) [1] = index([scheduler.mean.{f}.*], place)
