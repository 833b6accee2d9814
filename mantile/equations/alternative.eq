# The base scenario, A, on another accelerator, B: a further case, worked out again beside it.
#
# B stands in its usual system, with the figures of the library. Overrides of A say nothing of another
# accelerator, and do not hold for it. A result has {key} in its ids; `shown.a` and `shown.b` are A's and B's
# as readers see them, `on_b` other figures of B.

[alternative] Constants | each alternative
no_override  Overrides of the alternative [1] := 'none' ; overrides of A do not hold for B
system       System of the alternative [1] := 'default' ; the one that the accelerator usually comes in

# What holds of what is typed: an accelerator of the library, else that of A; a price that can be, else that
# of the library. Cells that cannot be count among those of B.
[alternative] Used | each alternative
price_typed  Price typed, 0 where there is none [USD/h] = where(all(is_number(alternative.price),
             typed.valid.alternative.price > 0), alternative.price, 0)
accelerator_used  Accelerator B, as it is used [1]
             = where(typed.valid.alternative.accelerator > 0, alternative.accelerator, inputs.accelerator)
price_used   Price of an accelerator B, as it is used [USD/h]
             = where(price_typed > 0, price_typed, no_override)
for name | cell in inputs | accelerator; money | price
faults.{name}  {{name}_label}, with B [flag] = {{name}_faults} + (1 - typed.valid.alternative.{cell})

# What stands there whether or not the plan can be.
[alternative] There | each result
when known_apart
there.{key}  {label}, there [{unit}] = shown.b.{key}

[alternative] Reason | each alternative
check        Place of the plan check [number] = where(all(on_b.invalid > 0, on_b.faults <= 0),
             match(b.plan, codes), meanings.memory) ; that of memory where all hold
place        Place of the reason [number] = where(on_b.faults > 0, meanings.inputs, check)
why          Why it cannot be [1] = index([meaning.*], place)

for key | words in usd_per_million_output_tokens | Cost per million output tokens; tpot | TPOT;
    output_tokens_per_s | Output tokens per second
[alternative] Words | each alternative
words.{key}  {words}, in words [1] = join('{words} ', where(number_of(change.{key}) > 0, '+', ''),
             percent(number_of(change.{key}), 0))

[alternative] Names | each name
a.{name}     {label}, A [1] = in_case({figure}, 0, 'of A')
b.{name}     {label}, B [1] = where(known > 0, on_b.{name}, 'not known')

[alternative] Results | each result
a.{key}      {label}, A [{unit}] = shown.a.{key}
when known_apart, of_price
b.{key}      {label}, B [{unit}] = where(all(known > 0, priced > 0), there.{key}, 'not known')
when known_apart, not of_price
b.{key}      {label}, B [{unit}] = where(known > 0, there.{key}, 'not known')
when not known_apart
b.{key}      {label}, B [{unit}] = shown.b.{key}

change.{key} {label}, B against A [1] = where(all(is_number(a.{key}), is_number(b.{key}), a.{key} > 0),
             b.{key} / a.{key} - 1, 'not known')

[alternative] Finding | each alternative
finding.name Which [1] = where(all(known > 0, priced > 0),
             join(b.accelerator, ' in place of ', a.accelerator), join('! ', fault))
finding.plan Whether it can be [1]
             = where(on_b.possible > 0, join('✓ possible: ', b.plan), join('! not possible: ', why))
for key | words in usd_per_million_output_tokens | Cost per million output tokens; tpot | TPOT;
    output_tokens_per_s | Output tokens per second
finding.{key} {words} [1] = where(is_number(change.{key}), words.{key}, '{words}: not known')
