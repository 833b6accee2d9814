# What drafts bring: how much faster a decode step gives its tokens, and up to how many requests.
#
# A step that checks drafts reads weights once for several tokens of each request: with few requests it takes
# little longer, with many it multiplies more. What it saves is taken of the step as it is, with one request
# and with as many as memory holds, and on a straight line between them: far from the batch at which drafts
# bring nothing any more that batch is known to two fifths.

when speculation

define without(plain) = speculation.emitted / tokens_per_step * plain
define saved_in(plain, step) = speculation.on * (without(plain) - step)

again gain.most | , most requests | decode.memory.batch = gain.most; decode.memory.allowed = gain.most;
            decode.batch = gain.most

[gain] Most requests | that memory holds
most        Most requests in a batch [request] = max(1, decode.memory.capacity_sequences)

[gain] Most requests | again gain.most

[gain] Gain of drafts | against the same step without them
speedup     Gain of drafts [1] = where(speculation.on > 0, without(decode.draft.plain) / decode.time, 1)
            ; tokens per second of a step
saved       Time that drafts save in a step [s] = saved_in(decode.draft.plain, decode.time)
saved_one   Time that drafts save in a step, one request [s]
            = saved_in(single.decode.draft.plain, single.decode.time)
saved_most  Time that drafts save in a step, most requests [s]
            = saved_in(gain.most.decode.draft.plain, gain.most.decode.time)
start       Saved with fewer requests [s] = where(saved < 0, saved_one, saved)
end         Saved with more requests [s] = where(saved < 0, saved, saved_most)
fewest      Fewer requests [request] = where(saved < 0, one_request, decode.batch)
further     More requests [request] = max(fewest, where(saved < 0, decode.batch, most))
share       Way from fewer to more requests on which drafts save time [1]
            = where(end < 0, max(0, start) / max(smallest * decode.draft.plain, start - end), 1)
            ; what they save lies on a straight line
break_even  Requests up to which drafts bring something [request]
            = where(saved_one > 0, fewest + share * (further - fewest), 0)
            ; of a replica, that decode at a time; at most as many as memory holds
