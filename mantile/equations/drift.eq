# How old the evidence is on the day for which an engine is asked, and what that does to the range of TPOT.
#
# Engines change: the same configuration measured on two days differs. By how much was read off such pairs of
# days, by framework. A rate of the days before some day did not hold for those after it, so the middle of the
# range stays where it is and only its ends move, with the root of the months between.

define of_changes(column) = sum_where(column, changed.framework, inputs.framework)

when drift

[drift] Engine on a day | how far TPOT may have moved since the newest run
changed.framework
changed.count
changed.last
changed.p10
changed.p90
configurations  Configurations measured on several days [number] = of_changes(changed.count)
            ; with the framework
newest      Newest run of the framework [date]
            = where(configurations > 0, of_changes(changed.last), 'not known')
            ; of those that estimates were compared with
months      Age of the evidence on the engine's day [month]
            = if_known((inputs.engine_date - newest) / days_per_month, newest)
            ; below 0: the engine is older than the evidence
down        Change of TPOT, tenth percentile [1] = of_changes(changed.p10)
up          Change of TPOT, ninetieth percentile [1] = of_changes(changed.p90)
root        Root of the months between [1] = (min(abs(number_of(months)), drift_longest) / one_month)**half
            ; no two days of a configuration lie further apart than the limit
for end | side | here | there | farther | sign in p10 | below | down | up | min | -;
  p90 | above | up | down | max |
{side}      Change until that day, {side} [1] = root * where(number_of(months) < 0, -{there}, {here})
            ; seen from the newest run: backwards where the engine is older
range_{side}  Range of TPOT {side}, logarithm [1] = ln(evidence.tpot.{end} / serving.tpot)
both_{side}  Range and change {side} [1]
            = ({farther}(range_{side}, 0) * {farther}(range_{side}, 0) + {side} * {side})**half
            ; independent of each other
{end}       TPOT on the engine's day, {end} [s] = serving.tpot * exp({sign}both_{side})
