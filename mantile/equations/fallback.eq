# Which efficiency profile holds. Rows stand under efficiency. A profile holds for everything, a generation or
# an accelerator, with or without a framework, or for how accelerators are linked. Of the profiles that hold
# for a scenario and have a factor, the one of the highest level is used; fallback.py has its column, factor
# by factor.

define column_of(place) = where(is_number(place), place, 1)

[fallback] Fallback chain | from wide to specific
each level
chain.{name}  Level {n}: {label} (key of level {n}) [1] = {key}

each narrower level
place.{name}  Column of level {n} [number] = column_of(match(chain.{name}, fallback.profiles))
            ; that of everything where no profile has the name

[fallback] Profile | of everything, generations and accelerators | subtotal | each chain
profile_in_use  Most specific profile [1]
            = look_up(fallback.keys, 1, max(*[place.{name} each level of chips]))
            ; profiles about links left out; factors that it lacks come from wider ones
