# Sessions: people or agents who send a request, wait for its answer, think, and send the next. They are the
# closed loop of a concurrency, with a think time in it. A session waits for its answer during a share of its
# time, so a request finds that share of all other sessions in flight. Steps and waits follow from the
# requests in flight, itself among them, as from a concurrency. The share follows from the time of a request,
# and that from the requests in flight: the rows of a closed loop are worked out at four numbers of them.
# Between two of these the time of a request is taken as a line, on which the requests in flight have a closed
# form: with a sessions that have a replica to themselves, o others and z seconds of thought, requests in
# flight n are a + o t / (t + z). On a line of requests that take t = c + d (n - a) seconds that is a square
# in n.
when sessions

define in_loop_of_sessions = sessions.concurrency | when not request_rate
define in_loop_of_sessions = sessions.concurrency_or_rate | when request_rate

define found_at(e2e) = sessions.alone + sessions.others * (e2e / (e2e + inputs.think_time))
define least_at(requests, e2e) = max(sessions.alone, inputs.sessions - requests * (inputs.think_time / e2e))

for k | words | requests in all | all sessions at once | every; 1 | sessions, estimate 0 | estimate_0;
  2 | sessions, estimate 1 | estimate_1; 3 | sessions, estimate 2 | estimate_2
again sessions.{k} | , {words} | inputs.concurrency = sessions.{requests} | when not request_rate
again sessions.{k} | , {words} | inputs.concurrency = sessions.{requests}; load.open = 0 | when request_rate

[sessions] Sessions | the closed loop at other numbers of requests in flight
alone       Sessions that have a replica to themselves [request]
            = min(inputs.sessions, inputs.decode_dp * one_request) ; one for each replica
others      All other sessions [request] = inputs.sessions - alone
every       Requests in flight, all sessions at once [request] = alone + others

[sessions] Requests in flight of sessions, estimate 0 | between two bounds | again sessions.all
highest     Most requests in flight of the sessions [request] = found_at(sessions.all.serving.e2e)
            ; if requests take as long as with all at once
lowest      Fewest requests in flight of the sessions [request]
            = min(highest, least_at(every, sessions.all.serving.e2e))
            ; if as many are served per second as with all at once @ Little's law
estimate_0  Requests in flight of the sessions, estimate 0 [request] = (lowest * highest)**half
            ; halfway on a logarithmic scale

# The estimate after another, on the line through two of the points that were worked out: the lowest so far
# with too many requests in flight, and the highest with too few, or the one above the former where there is
# none.
for n | e2e | high | high_e2e | low | low_e2e | next | after in
  1 | sessions.1.serving.e2e | every | sessions.all.serving.e2e | every | sessions.all.serving.e2e
  | estimate_1 | , estimate 1;
  2 | sessions.2.serving.e2e | upper_1 | upper_e2e_1 | lower_1 | lower_e2e_1 | estimate_2 | , estimate 2;
  3 | sessions.3.serving.e2e | upper_2 | upper_e2e_2 | lower_2 | lower_e2e_2 | in_flight |
[sessions] Requests in flight of sessions{after} | on a line between two points | again sessions.{n}
found_{n}   Requests in flight by the time they take, estimate {n} [request] = found_at({e2e})
            @ approximate mean value analysis of Bard and Schweitzer
few_{n}     The estimate before is too low, estimate {n} [flag]
            = where(estimate_{n-1} * (1 + sliver) < found_{n}, 1, 0) ; programs differ in the last digits
upper_{n}   Upper end of the line, estimate {n} [request] = where(few_{n} > 0, {high}, estimate_{n-1})
upper_e2e_{n}  Upper end of the line, end to end, estimate {n} [s] = where(few_{n} > 0, {high_e2e}, {e2e})
below_{n}   Other end, if the estimate is too high, estimate {n} [request]
            = where({low} < {high}, {low}, {high})
below_e2e_{n}  Other end, if the estimate is too high, end to end, estimate {n} [s]
            = where({low} < {high}, {low_e2e}, {high_e2e})
lower_{n}   Other end of the line, estimate {n} [request] = where(few_{n} > 0, estimate_{n-1}, below_{n})
lower_e2e_{n}  Other end of the line, end to end, estimate {n} [s] = where(few_{n} > 0, {e2e}, below_e2e_{n})
apart_{n}   Requests between both ends, estimate {n} [request] = upper_{n} - lower_{n}
slope_{n}   Time per further request in flight, estimate {n} [s]
            = where(abs(apart_{n}) > smallest * upper_{n}, max(0, (upper_e2e_{n} - lower_e2e_{n}) / (apart_{n}
            / one_request)), 0)
first_{n}   Time of a request with a replica to itself, on that line, estimate {n} [s]
            = upper_e2e_{n} - slope_{n} * ((upper_{n} - alone) / one_request)
half_{n}    Half of that and the think time, less what others add, estimate {n} [s]
            = half * (first_{n} + inputs.think_time - slope_{n} * (others / one_request))
root_{n}    Root of the square, estimate {n} [s]
            = max(0, half_{n} * half_{n} + slope_{n} * first_{n} * (others / one_request))**half
few_others_{n}  Others in flight, where they add little, estimate {n} [request]
            = others * (first_{n} / (max(0, half_{n}) + root_{n}))
many_others_{n}  Others in flight, where they add much, estimate {n} [request]
            = one_request * ((root_{n} - half_{n}) / max(smallest * half_{n}, slope_{n}))
            ; the same without a small difference of large figures
line_{n}    Requests in flight on that line, estimate {n} [request]
            = alone + where(half_{n} > 0, few_others_{n}, many_others_{n})
lowest_{n}  Fewest requests in flight, estimate {n} [request]
            = where(apart_{n} > 0, lower_{n}, least_at(upper_{n}, upper_e2e_{n}))
highest_{n}  Most requests in flight, estimate {n} [request] = where(apart_{n} > 0, upper_{n}, found_{n})
{next}      Requests in flight of the sessions{after} [request]
            = max(min(lowest_{n}, highest_{n}), min(line_{n}, highest_{n}))
            ; as a request finds them, itself among them

[sessions] Concurrency of the sessions | and whether the load follows from them
concurrency  Concurrency of the sessions [request]
            = where(is_number(in_flight), min(most_requests, in_flight), 1)
when request_rate
concurrency_or_rate  Concurrency of the sessions, or at the request rate [request]
            = where(by_sessions, concurrency, load.concurrency)
            ; a rate that is stated stands in place of sessions

lead        The load follows from sessions [flag]
            = where(all(by_sessions, inputs.concurrency >= in_flight, inputs.concurrency <= in_flight), 1, 0)
            ; not where a rate or a concurrency is stated beside them

[sessions] Sessions of this load | who wait for an answer, and who think
waiting     Share of its time in which a session waits for its answer [1] = serving.e2e / round_trip
told        Sessions that this load comes to [request]
            = serving.requests_per_s * (serving.e2e + inputs.think_time)
            ; who wait for an answer, and who think @ Little's law
