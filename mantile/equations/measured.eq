# What was measured beside what is predicted: ratios, and one error that a solver can make small.

[measured] Measured | type what was measured of this very scenario; an empty cell is left out
cells
for name | label | unit in ttft | TTFT, mean | ms; ttft_p50 | TTFT, median | ms; tpot | TPOT | ms;
  output_tokens_per_s | Output tokens per second | token/s
read.{name}  Measured, as read: {label} ({label} as read) [{unit}] = where(is_number({name}), {name}, 0)
            ; 0: not measured; a text or a negative number fails a check

[measured] Predicted | as it stands now
for name | label in ttft | TTFT, mean; ttft_p50 | TTFT, median; tpot | TPOT
predicted.{name}  Predicted: {label} (predicted {label}) [ms]
            = if_known(metrics.{name} * ms_per_s, metrics.{name})

predicted.output_tokens_per_s
            Predicted: Output tokens per second (predicted Output tokens per second) [token/s]
            = metrics.output_tokens_per_s

[measured] Predicted ÷ measured
  | 1 where both agree, above 1 more is predicted; 0: not measured, or not predicted
for name | label in ttft | TTFT, mean; ttft_p50 | TTFT, median; tpot | TPOT;
  output_tokens_per_s | Output tokens per second
ratio.{name}  Ratio: {label} (ratio of {label}) [1]
            = where(all(read.{name} > 0, is_number(predicted.{name})), predicted.{name} / read.{name}, 0)

[measured] How far off | what mantile calibrate makes small, and Excel's Solver can | subtotal
for name | label in ttft | TTFT, mean; ttft_p50 | TTFT, median; tpot | TPOT;
  output_tokens_per_s | Output tokens per second
error.{name}  Squared log ratio: {label} [1] = where(ratio.{name} > 0, ln(ratio.{name})**2, 0)
            ; twice and half as much weigh the same; 0 is not measured or not predicted

for name | label in ttft | TTFT, mean; ttft_p50 | TTFT, median; tpot | TPOT;
  output_tokens_per_s | Output tokens per second
missing.{name}  Not predicted: {label} (whether {label} is not predicted) [flag]
            = where(read.{name} > 0, 1, 0) * where(is_number(predicted.{name}), 0, 1)
            ; 1 where it was measured of a plan that cannot be

error       Error of the scenario (error of the scenario) [1]
            = where(sum([missing.*]) > 0, 'not known', sum([error.*]))
