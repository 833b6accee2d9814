# Goodput: the share of requests within the limits that a scenario states, and how many a second that is. A
# request with a late first token ends late as well: end to end takes away what TTFT and TPOT leave, not what
# they take.

[goodput] Goodput | requests within the limits stated
when not classes
for time | label in ttft | TTFT; tpot | TPOT; e2e | end to end
{time}_far  Limit of {label}, standard deviations above the median [1]
            = far_from(inputs.{time}_limit, serving.{time}_median, serving.{time}_deviation)
            ; of the logarithm
{time}_share  Share of requests within the limit of {label} [1]
            = within(inputs.{time}_limit, {time}_far) ; no limit: all

share       Share of requests within all limits [1] = min(ttft_share * tpot_share, e2e_share)
            ; who is late to the first token is late to the last
over goodput.share = classes.good | when classes
requests_per_s  Goodput [request/s] = share * serving.requests_per_s ; requests within all limits
