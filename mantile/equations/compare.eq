# Scenarios side by side: results, their changes against the base, and who is best at what.
#
# The scenarios are the columns {n} from 0 with their {letter}; those that stand ready count once they have a
# name. What is compared has {line} in its ids; `body.{line}` is what it is worked out as in every scenario.

define here(x) = in_case(x, {n}, 'of {letter}')
define lowest(key, limit) = where(key <= limit, 1, 0)
define highest(key, limit) = where(number_of(key) >= limit, 1, 0)
define rounding = number.{last} * checks.tolerance

[compare] Scenarios | each scenario
when ready
name.{n}     name [1] = join('{letter} · ', choose(1 + here(scenario.counts), 'ready', here(scenario.name)))
over compare.label.{n} = choose(1 + here(scenario.counts), name.{n}, it)

label.{n}    Label [1] = where({fits} > 0, name.{n}, join(name.{n}, ', not possible'))
# A text is above any number: a scenario without a place is not best.
won.{n+1}    Results at which it is best [1]
             = lowest(ttft.key.{n+1}, ttft.limit) + lowest(tpot.key.{n+1}, tpot.limit)
             + highest(output_tokens_per_s_per_accelerator.key.{n+1},
             output_tokens_per_s_per_accelerator.limit)
             + lowest(usd_per_million_output.key.{n+1}, usd_per_million_output.limit)

[compare] Finding | each comparison
most         Most results [1] = max([won.*])
sharing      Best equally often [1] = count_where([won.*], most)
ahead        Best most often [1] = index([name.*], match(most, [won.*]))
who          Who leads [1]
             = where(sharing > 1, join(text(sharing), ' scenarios lead'), join(ahead, ' leads'))
title        Finding [1] = where(most > 0, join(who, ' in ', text(most), ' headline results'),
             'No scenario is ahead of the others')
least        Least gain told [1] := 0.005

[compare] Lines | each line
each scenario
{n}          {label} [{unit}] = here(body.{line})
over compare.{line}.{n} = choose(1 + here(scenario.counts), '–', it) | when ready

each scenario
when changes, not base
change.{n}   Change of {label} [1]
             = where(all(is_number({line}.{n}), number_of({line}.0) > 0), {line}.{n} / {line}.0 - 1, '–')

# What is not possible, or not known, has no place. A billionth per place makes the first of equals the first
# in every engine.
[compare] Ranking | each ranked
each scenario
key.{n+1}    Ranked by [{unit}] = where(all(number_of({line}.{n}) > 0, {fits} > 0),
             {line}.{n} * (1 {worse} number.{n} * checks.tolerance), '–')

placed       Scenarios with a place [1] = count_where([key.*], at_least(0))
alike        All are alike [flag]
             = where(all(placed >= places, max([key.*]) - min([key.*]) <= rounding * max([key.*])), 1, 0)
best         Number of the best [1]
             = where(all(placed > 0, alike <= 0), match({first}([key.*]), [key.*]), 0)
none         In place of a letter [1] = where(alike > 0, '=', '–')
letter       Best, {label} [1] = where(best > 0, index([letter.*], max(1, best)), none)
when lower, headline
limit        Best up to [{unit}] = where(best > 0, min([key.*]) * (1 + rounding), 0)

when higher, headline
limit        Best from [{unit}] = where(best > 0, max([key.*]) * (1 - rounding), '–')

# A chart of a line: the best scenario, and the others that fit; 0 for the rest.
[compare] Charts | each chart
each scenario
chart.{n+1}  {chart} [{unit}] = where(best == number.{n}, number_of({line}.{n}), 0)
others.{n+1} {chart}, others [{unit}] = number_of({line}.{n}) * {fits} - chart.{n+1}

gain         Gain against the base [1] = where(all(best > 0, number_of({line}.0) > 0), {gain}, 0)
words        Gain in words [1]
             = where(gain >= least, join(', ', percent(gain * (1 + checks.tolerance), 0), ' {side} A'),
             ' is best')
title        Chart title [1]
             = join('{chart}: ', where(best > 0, join(index([name.*], max(1, best)), words), 'none is ahead'))
