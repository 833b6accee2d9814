# Results times multipliers that were fitted to measured runs: beside the results, never in their place.
#
# A multiplier is the sum of steps, logarithms, by how many runs stand behind it: a step of the kind of runs
# (model, accelerator, framework), and steps along what was asked or what binds a decode step. Where steps
# hold everywhere, the runs are those of the framework, and kinds have none of their own.

define launch_share = decode.bound.overhead / decode.time
define compute_share = decode.bound.compute / decode.time
define memory_share = decode.bound.memory / decode.time
define network_share = decode.bound.network / decode.time
define stall_share = stall_used / serving.tpot | when not speculation
define stall_share = serving.stall_of_token / serving.tpot | when speculation

when correction

[correction] Correction | physics × multiplier, beside the results: nothing else is worked out from it
version
digest
key         Accelerator and framework [1] = measured_pair
applies     Correction applies [flag] = inputs.continuous
            ; fitted to runs with continuous batches, without drafts, whose workers prefill and decode
over correction.applies = it * (1 - inputs.disaggregated) | when disaggregated
over correction.applies = it * (1 - speculation.on) | when speculation

[correction] Step of the kind of runs, {label} | each corrected by kind | aside
{metric}.step  Step of the kind of runs, {label} [1] = sum_where([{metric}.step.*], [{metric}.key.*], key)

[correction] Step of {called}, {label} | each step of a correction | aside
{metric}.{what}  Step of {called}, {label} [1]
            = index({metric}.{what}.steps, match_at_most({asked}, {metric}.{what}.starts)) ; {note}

[correction] Runs of the framework, {label} | each corrected everywhere | aside
{metric}.of_framework  Measured runs of the framework, {label} [number]
            = sum_where([{metric}.framework_runs.*], [{metric}.framework.*], inputs.decode_framework) *
            applies ; of all models and accelerators

[correction] Correction of {label} | each corrected
{metric}.stated
{metric}.runs  Measured runs behind it, {label} [number]
            = sum_where([{metric}.runs.*], [{metric}.key.*], key) * applies
            ; of {model}, this accelerator and this framework
{metric}.rows
{metric}.weight  Weight of the correction, {label} [1]
            = {metric}.{behind} / ({metric}.{behind} + correction_thin)
            ; few runs count for little: without any the multiplier is 1
{metric}.logarithm  Logarithm of the multiplier, {label} [1] = {metric}.weight * ({steps}) ; {where}
{metric}.multiplier  Multiplier, {label} [1]
            = min(max(exp({metric}.logarithm), correction_least), correction_largest)
{metric}.p50  {label}, corrected [{unit}] = {metric}.result * {metric}.multiplier
{metric}.p10  {label}, corrected, p10 [{unit}]
            = where({metric}.runs > 0, {metric}.p50 * exp({metric}.p10.fitted), {low}) ; {without}
{metric}.p90  {label}, corrected, p90 [{unit}]
            = where({metric}.runs > 0, {metric}.p50 * exp({metric}.p90.fitted), {high}) ; {without}
{metric}.newest  Newest run behind it, {label} [1]
            = where({metric}.runs > 0, index([{metric}.newest.*], match(key, [{metric}.key.*])), 'none')
