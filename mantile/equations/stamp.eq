# Inputs and headline results as they were when a workbook was made, and what differs from them now.
#
# An edit is a cell of inputs, overrides, assumptions or dimensions that holds something else than as
# generated. Of each scenario the first eight are listed: those of its own cells, then those of cells that all
# share, which count in the base. Without a name nothing in a ready column counts.

when workbook

define changes = stamp.edit.count + stamp.changed
define of_edit(place, further, own, shared) = where(place > 0, index(own, place),
  choose(1 + min(1, further), '–', index(shared, max(1, further))))
define near(value) = where(is_number(value),
  floor(number_of(value) * edit.million + half) / edit.million, value)

[stamp] As generated | headline results stored as values; live ones differ once an input is edited
stored
each headline
{id}.changed  Changed: {label} [flag]
            = where(abs(number_of({shown}) - number_of(stamp.{id})) <=
            checks.tolerance * number_of(stamp.{id}), 0, 1)

changed     Headline results that changed [flag] = sum([stamp.{id}.changed each headline])
none        No change [flag] := 0 ; fixed side of a check
when choice
choice_faults  Cells of the decision that hold what cannot be, in the base [flag]
            = faults_of_choice * edit.of_base

[stamp] All assumptions
assumptions.faults  Cells of assumptions that cannot be, of all [flag] = faults_of_kinds
when demand
assumptions.demand.faults  Cells that cannot be, behind what a demand costs [flag]
            = typed.assumptions.of_no_result.faults + checks.faults.money
assumptions.demand.message  The first of them in words [1] = where(typed.assumptions.of_no_result.faults > 0,
            typed.assumptions.of_no_result.message, checks.message.money)

[stamp] What was edited
  | inputs, overrides, assumptions and dimensions that hold something else than as generated
edit.invalid  Overrides and measured values that cannot be [flag] = invalid_cells ; or are below 0
edit.of_base
edit.of_own Cells of the scenario that hold something else [flag] = count_where(own.state, at_least(1))
edit.of_all Cells of all scenarios that hold something else [flag]
            = count_where(shared.state, at_least(1)) * edit.of_base
edit.count  Cells that hold something else [flag] = edit.of_own + edit.of_all
            ; inputs and overrides; in the base also what all scenarios share: dimensions, assumptions, limits
for n in 1..8
edit.{n}.number  Edit {n} [flag] := {n} ; its turn
edit.{n}.place  Edit {n}, place [number] = where(edit.{n}.number <= edit.of_own,
            match(nth_largest(own.state, edit.{n}.number), own.state), 0) ; 0: there are fewer
edit.{n}.shared_place  Edit {n}, place among cells of all scenarios [number]
            = where(all(edit.{n}.number > edit.of_own, edit.{n}.number <= edit.count),
            match(nth_largest(shared.state, max(1, edit.{n}.number - edit.of_own)), shared.state), 0)
            ; 0: it is none of these
edit.{n}.cell  Edit {n}, cell [1] = of_edit(edit.{n}.place, edit.{n}.shared_place, own.place, shared.place)
edit.{n}.was  Edit {n}, as generated [1]
            = of_edit(edit.{n}.place, edit.{n}.shared_place, own.held, shared.held)
edit.{n}.now  Edit {n}, now [1]
            = of_edit(edit.{n}.place, edit.{n}.shared_place, own.content, shared.content)

when ready
edit.counted
edit.named  A ready column was named [flag] = scenario.counts - edit.counted
edit.any    Cells and results that changed [flag] = changes * scenario.counts
over stamp.edit.all = edit.any + edit.named

edit.all    Inputs and headline results that changed [flag] = changes
edit.million  Million [1] := 1e6 ; to round to six decimals
edit.first.was  The first edit, as generated [1] = near(edit.1.was)
edit.first.now  The first edit, now [1] = near(edit.1.now)
edit.first  The first edit [1] = join(edit.1.cell, ' held ', edit.first.was, ', holds ', edit.first.now)
edit.found  The first edit, where cells can be read [1]
            = where(edit.count > 0, join('Edited: ', edit.first, '. '), '–')
edit.told   The first edit in words [1]
            = where(is_error(edit.found), 'Edited: a cell holds an error. ', edit.found)
