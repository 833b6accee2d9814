# A choice among plans: what each reaches, which limits it misses, who wins, and whether that is certain.
#
# The plans are the variants of a scenario, columns {n} from 1; the base is the one of them that was taken.
# What is wanted and every limit is a cell: the choice follows each edit of them, of a price or of a factor.
# Ids of a plan begin with its number (`decide.2.rank`), those of a measure with its {key}
# (`decide.tpot_s.bound`); `body.{key}` is what the measure is worked out as in every plan.

define here(x) = in_case(x, {n}, 'of plan {n}')
define as_typed(x) = in_case(x, 0, 'as typed')
define as_replicas(dp, tp) = where(dp > 1, join(rounded(dp, 0), ' × TP', rounded(tp, 0)),
             join('TP', rounded(tp, 0)))
define offered(price, words, unit) = where(price > 0, join(words, rounded(price, 2), unit), '')
define apart(one, other, same) = one * one + other * other - same * one * (other + other)
define apart_by(score, best) = if_error((number_of(score) - number_of(best)) / asks, 0)
define range_of(variance) = exp(percentile * variance ** 0.5) - 1
define both_known = all(is_number(pair.one.score), is_number(pair.other.score), faults <= 0, asks > 0)
define can_be = as_typed(typed.valid.decide.limit.{key}) > 0

[decide] Constants | each choice
percentile   p90 of a normal distribution [1] := 1.2816 ; in standard deviations @ defined
shared       Share of the error that two plans on one chip and framework have in common [1] := 0.2
             ; it cancels in their difference
             @ fitted: residuals of throughput of 2,106 public serving runs; pairs of other plans of one
             model, chip and framework have 0.19 in common, pairs on other chips or frameworks 0.0 to 0.1;
             November 2026
more         Least difference told [1] := 0.05 ; of a price, or of a share of a step
small        Least difference that is one [1] := 0.0005 ; below it 0.0 % would be said
rank_two     Rank of the second [number] := 2
last         Key of what has no rank [1] := 1e6

[decide] Choice | each choice
faults       Cells that hold what cannot be [flag] = as_typed(typed.decide.faults)
taken        Plan that the base scenario is [number]
             = where(as_typed(typed.valid.decide.take) > 0, as_typed(decide.take), 1)
place        Place of what is wanted [number] = if_error(match(as_typed(decide.objective), [label.*]), 0)
wanted       Measure that is wanted, 0 with weights of one's own [number]
             = where(place > measures.1, 0, place)
asks         Weights that count [1] = sum([decide.*.weighs]) ; 0: nothing is wanted
band         Range of what is wanted [number] = index([band.*], max(1, wanted))
winner       Number of the winner, 0 without [number] = if_error(match(1, [decide.*.rank]), 0)
at           Place of the winner [number] = max(1, winner)
ranked       Plans with a rank [number] = count_where([decide.*.rank], at_least(1))
second       Number of the second, 0 without [number] = if_error(match(rank_two, [decide.*.rank]), 0)
next         Place of the second [number] = max(1, second)
no_choice    Nothing is wanted, or cells hold what cannot be [flag] = where(asks > 0, faults, 1)
cost_first   Cost per million of the winner [USD/Mtoken] = where(winner > 0, index([decide.*.cost], at), '–')
cost_second  Cost per million of the second [USD/Mtoken]
             = where(second > 0, index([decide.*.cost], next), '–')
best         The winner's [1] = index([decide.*.wanted], at)
name         Name of the winner [1] = index([decide.*.name], at)
speed        The winner's speed, for the picture [1]
             = number_of(index([decide.*.value.interactivity_tokens_per_s], at))
rate         The winner's rate, for the picture [1]
             = number_of(index([decide.*.value.output_tokens_per_s_per_accelerator], at))
what         What is wanted, in words [1] = index([amount.*], max(1, wanted))
best_said    The winner's, as it is said [1] = number_of(best) * index([scale.*], max(1, wanted))
said         The same with its digits [1]
             = where(best_said >= 1, rounded(best_said, 2), join(trimmed(best_said, 4), ''))
amount       The winner, and what it reaches [1] = where(wanted > 0, join(name, ': ', said, ' ', what), name)
no_plan      Why none has a rank [1] = where(count_where([decide.*.misses], at_least(1)) >= plan.{plans},
             'No plan keeps every limit', 'No plan can be chosen')
none         Why none wins [1]
             = where(asks > 0, no_plan, '! nothing is wanted: choose an objective, or type weights')
found        Finding, of cells that can be [1] = where(winner > 0, join('Take ', amount), none)
title        Finding [1] = where(faults > 0, join('! ', as_typed(typed.decide.message)), found)
second_name  Name of the second [1] = index([decide.*.name], next)
second_behind The second, behind [1] = number_of(index([decide.*.behind], next))
second_told  Whether that holds [1] = index([decide.{n}.told each plan], next)
ahead_said   The winner against the second, in words [1] = where(second_behind > small,
             join(percent(second_behind, 1), ' ahead of ', second_name, ': ', second_told),
             join('no better than ', second_name, ', which is listed after it'))
ahead        The winner against the second [1] = where(second > 0, ahead_said, 'no other plan has a rank')
against      Why none [1] = where(faults > 0, 'no plan has a rank until that cell is mended',
             'what is against each plan stands below')
reason       Why [1] = where(winner > 0, ahead, against)
for end in one; other
pair.{end}.at  Place of the {end} plan [number]
             = where(as_typed(typed.valid.decide.{end}) > 0, as_typed(decide.{end}), 1)

for name in score; deviation; chip; name
for end in one; other
pair.{end}.{name}  {name} of the {end} plan [1] = index([decide.*.{name}], pair.{end}.at)

apart        The other plan against the one [1]
             = where(both_known, exp(apart_by(pair.other.score, pair.one.score)) - 1, '–')
apart.shared Error that both share [1] = where(pair.one.chip == pair.other.chip, shared, 0)
apart.variance Variance of their difference [1]
             = apart(number_of(pair.one.deviation), number_of(pair.other.deviation), apart.shared)
             ; what both plans share cancels
apart.error  Range of their difference [1] = range_of(apart.variance)
apart.within The same of known ones [1]
             = where(abs(number_of(apart)) <= apart.error, 'within the error', 'holds')
apart.holds  Whether the difference holds [1] = where(both_known, apart.within, '–')
apart.way    Which way [1] = where(number_of(apart) < 0, 'better', 'worse')
apart.told   Two plans, in words [1] = where(both_known, join(pair.other.name, ' is ',
             percent(abs(number_of(apart)), 1), ' ', apart.way, ' than ', pair.one.name,
             ', range ± ', percent(apart.error, 0), ': ', apart.holds),
             '! no difference is known: type numbers of two plans of which what is wanted is known')
limit_speed  Least speed that limits allow, 0 without [token/s]
             = max(0, interactivity_tokens_per_s.bound, if_error(ms_per_s / tpot_s.bound, 0))

[decide] Measures | each measure
bound        Limit of {label} that holds, or 0 [{unit}]
             = where(all(can_be, is_number(as_typed(decide.limit.{key}))), as_typed(decide.limit.{key}), 0)
limited      {label} has a limit [flag] = where(bound > 0, 1, 0)
none         No limit of {label}, in words [1] = where(can_be, 'no limit', '! cannot be')
said         Limit of {label}, in words [1] = where(limited > 0, '{kind}', none)
own          Own weight of {label} [1]
             = where(wanted > 0, 0, max(0, number_of(as_typed(decide.weight.{key}))))
weighs       {label} counts [1] = where(wanted == place.{place}, 1, own)

[decide] Keys | each key
sorted.{n}   Key {n} [1] = nth_largest([decide.*.key], plan.{n})

define degrees_in_words = name.pp | when not disaggregated
define degrees_in_words = name.both | when disaggregated

# What a plan is called, from its cells: B200 SXM · 3 × TP1 · nvfp4 instead of bf16, fp8 KV · trtllm. With
# prefill workers: their degrees, an arrow, and those of decode workers.
[decide] Plans | each plan
each measure
value.{key}  {label} [{unit}] = here(body.{key})
missed.{key} {label} misses its limit [flag] = {key}.limited * (1 - where(all(is_number(value.{key}),
             number_of(value.{key}) {within} {key}.bound * (1 {room} checks.tolerance)), 1, 0))

name.replicas Replicas and TP, in words [1] = as_replicas(here(inputs.decode_dp), here(inputs.decode_tp))
for name | short | last in attention_dp | DPA | replicas; cp | CP | attention_dp; ep | EP | cp; pp | PP | ep
name.{name}  Degrees to {short}, in words [1] = where(here(inputs.decode_{name}) > 1,
             join(name.{last}, ' {short}', rounded(here(inputs.decode_{name}), 0)), name.{last})

name.weights Weights, in words [1]
             = where(here(inputs.decode_weights_dtype) == own_weights.1, own_weights.1,
             join(here(inputs.decode_weights_dtype), ' instead of ', own_weights.1))
             ; what the checkpoint has, if the plan has something else
name.formats Data types, in words [1] = join(name.weights, ', ', here(inputs.decode_kv_dtype), ' KV')
when disaggregated
name.prefill Prefill workers, in words [1] = as_replicas(here(inputs.dp), here(inputs.tp))
name.prefill_dpa The same, with DPA [1] = where(here(inputs.attention_dp) > 1,
             join(name.prefill, ' DPA', rounded(here(inputs.attention_dp), 0)), name.prefill)
name.both    Both, in words [1] = where(here(inputs.serving) == 'disaggregated',
             join(name.prefill_dpa, ' → ', name.pp), name.pp)

name.moved   Memory asked of the host [GB]
             = here(inputs.decode_offload_weights) + here(inputs.decode_offload_kv)
name.host    Framework and host memory, in words [1] = where(name.moved > 0,
             join(here(inputs.decode_framework), ' · ', rounded(name.moved, 0), ' GB on the host'),
             here(inputs.decode_framework))
name         Plan [1] = join(here(decode.hardware.name), ' · ', degrees_in_words, ' · ', name.formats, ' · ',
             name.host)
possible     Can be [flag] = here(checks.possible)
reason       Reason code [1] = here(checks.reason)
misses       Limits that it misses [number] = sum([missed.*])
first        First limit missed [number] = if_error(match(1, [missed.*]), 1)
each measure
part.{key}   Part of {label} in the score [1] = where(all({key}.weighs > 0, number_of(value.{key}) > 0),
             {sign}ln(number_of(value.{key})) * {key}.weighs, 0)

[decide] Plans | each plan
each measure
lacks.{key}  {label} is wanted and not known [flag]
             = where(all({key}.weighs > 0, number_of(value.{key}) <= 0), 1, 0)

unknown      Measures that are wanted and not known [number] = sum([lacks.*])
lacking      The first of them [1] = index([label.*], if_error(match(1, [lacks.*]), 1))
score        Score, the least is best [1] = where(unknown > 0, 'not known', sum([part.*]))
good         Has a rank [flag]
             = where(all(possible > 0, misses <= 0, is_number(score), asks > 0, faults <= 0), 1, 0)
key          Ranked by, the largest is best [1]
             = where(good > 0, -number_of(score), -last) - plan.{n} * checks.tolerance
for name in tpot; ttft; throughput
deviation.{name}  Standard deviation of {name}, as a share [1]
             = if_error(ln(here(evidence.{name}.p90) / here(evidence.{name}.p10))
             / (percentile + percentile), 0)

deviation.exact The same of counts, and of prices of an hour [1] = 0
deviation    Standard deviation of what is wanted, as a share [1]
             = where(decide.wanted > 0, index([deviation.*], band), max([deviation.*]))
             ; with weights of one's own the largest of them
chip         Chip and framework [1]
             = join(here(inputs.decode_accelerator), ' ', here(inputs.decode_framework))
price        Price of an accelerator per hour [USD/h]
             = where(here(checks.faults.money) <= 0, here(break_even.price), 'not known')
price_known  It is known [flag] = where(is_number(price), 1, 0)
offers       No price, in words [1] = join('no ', here(inputs.price_basis), ' price, so no rank',
             offered(here(decode.hardware.price_cloud), '; cloud price ', ' USD/h'),
             offered(here(decode.hardware.price_rental), '; rental price ', ' USD/h'),
             offered(here(decode.hardware.price_purchase), '; purchase price ', ' USD'))
cost         USD per million output tokens [USD/Mtoken] = here(metrics.usd_per_million_output_tokens)
hourly_tokens Output tokens of an accelerator in an hour [token/h]
             = where(here(checks.faults.money) <= 0, here(break_even.tokens), 'not known')
share        Share of links in a decode step [1] = if_error(here(decode.bound.network) / here(decode.time), 0)
tokens       Output tokens per accelerator [token/s/accelerator]
             = number_of(value.output_tokens_per_s_per_accelerator)
value        What its first missed limit bounds [1] = index([value.*], first)
value_known  It is known [flag] = where(is_number(value), 1, 0)
limit        That limit [1] = index([decide.*.bound], first)
label        Which it is [1] = index([label.*], first)
beyond       Beyond the limit [1] = if_error(abs(number_of(value) / limit - 1), 0)
rank         Rank [number] = where(good > 0, match(key, [sorted.*]), '–')
# beside the winner: how far behind it is, whether that is more than the error, and why
gap          Behind the winner, as a logarithm [1] = apart_by(score, index([decide.*.score], at))
behind       Worse than the winner [1] = where(is_number(rank), exp(gap) - 1, '–')
same         On the chip and framework of the winner [1]
             = where(chip == index([decide.*.chip], at), shared, 0)
best_deviation Standard deviation of the winner [1] = index([decide.*.deviation], at)
variance     Variance of the difference [1] = apart(deviation, best_deviation, same)
             ; what both plans share cancels
error        Range of the difference [1] = range_of(variance)
holds        Whether the difference holds [1] = where(number_of(behind) <= error, 'within the error', 'holds')
real         Whether it holds, of a plan with a rank [1] = where(is_number(rank), holds, '–')
told         The difference, in words [1] = where(rank == 1, 'winner', real)
even         Cost per million to break even with [USD/Mtoken] = where(rank == 1, cost_second, cost_first)
price_due    Price at which it costs what the winner does [USD/h]
             = where(even == '–', '–', if_error(even * hourly_tokens / tokens_per_million, 'not known'))
             ; per accelerator and hour; of the winner, what the second costs
price_change Change of the price [1] = if_error(price_due / price - 1, 'not known')
dearer       Dearer per accelerator and hour [1] = if_error(price / index([decide.*.price], at) - 1, 0)
fewer        Fewer tokens per accelerator [1] = if_error(1 - tokens / index([decide.*.tokens], at), 0)
best_share   Share of links, the winner's [1] = index([decide.*.share], at)
each measure
loss.{key}   Loss in {label} [1] = part.{key} - index([decide.*.part.{key}], at)

lead         Where it loses most [number] = match(max([loss.*]), [loss.*])
lead.label   Where it loses most: which it is [1] = index([label.{place} each measure], lead)
lead.weighs  Where it loses most: its weight [1] = index([decide.*.weighs], lead)
for name in sign; per_token; by_steps
lead.{name}  Where it loses most: {name} [1] = index([{name}.*], lead)

lead.change  Where it loses most: against the winner [1]
             = exp(if_error(lead.sign * index([loss.*], lead) / lead.weighs, 0)) - 1
# why it lost: the first cause that holds
more_share   Share of links, more than the winner's [1] = share - best_share
for cause | holds in invalid | no_choice > 0; cannot | possible <= 0;
    unknown | all(misses > 0, value_known <= 0); missed | misses > 0;
    unpriced | all(unknown > 0, price_known <= 0); unranked | unknown > 0; won | plan.{n} == winner;
    even | number_of(behind) <= small;
    links | all(lead.by_steps > 0, more_share >= more, more_share + more_share >= abs(lead.change));
    price | all(lead.per_token > 0, dearer >= more, dearer >= fewer);
    tokens | all(lead.per_token > 0, fewer >= more)
cause.{cause} Cause: {cause} [flag] = where({holds}, 1, 0)

cause.else   Cause: else [flag] = 1
words.invalid Words: invalid [1] = 'no choice can be made: see above'
words.cannot Words: cannot [1] = join('cannot be: ', reason)
words.unknown Words: unknown [1] = join(label, ' is not known: its limit is not kept')
words.missed Words: missed [1] = join(label, ' is ', percent(beyond, 1),
             where(number_of(value) > limit, ' above its limit', ' below its limit'))
words.unpriced Words: unpriced [1] = offers
words.unranked Words: unranked [1] = join(lacking, ' is not known: it has no rank')
words.won    Words: won [1] = 'the best of those that keep every limit'
words.even   Words: even [1] = 'as good as the winner, and listed after it'
words.links  Words: links [1] = join('links take ', percent(share, 0), ' of a step; the winner\x27s ',
             percent(best_share, 0))
words.price  Words: price [1] = join('an accelerator costs ', percent(dearer, 0), ' more per hour')
words.tokens Words: tokens [1] = join(percent(fewer, 0), ' fewer tokens per accelerator')
words.else   Words: else [1] = join(lead.label, ' is ', percent(abs(lead.change), 1),
             where(lead.sign > 0, ' higher', ' lower'))
lost         Why it lost [1] = index([words.*], match(1, [cause.*]))
by           What the search found [1]
             = where(rank == 1, 'of the winner: the price at which the second costs as much', found)
wanted       What is wanted [1] = index([value.*], max(1, decide.wanted))
low          Lower end of 80 % [1]
             = where(decide.wanted > 0, if_error(wanted / exp(percentile * deviation), '–'), '–')
high         Upper end of 80 % [1]
             = where(decide.wanted > 0, if_error(wanted * exp(percentile * deviation), '–'), '–')
bar.begin    Where the bar begins [1] = number_of(low)
bar.below    From there to what is expected [1] = number_of(wanted) - number_of(low)
bar.above    From what is expected to its end [1] = number_of(high) - number_of(wanted)
for part in below; above
bar.best.{part}  The same {part}, of the winner [1] = where(rank == 1, bar.{part}, 0)
bar.other.{part} The same {part}, of others [1] = where(rank == 1, 0, bar.{part})
