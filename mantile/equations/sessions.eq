when sessions

[sessions] Sessions of this load | who wait for an answer, and who think
waiting     Share of its time in which a session waits for its answer [1] = serving.e2e / round_trip
told        Sessions that this load comes to [request]
            = serving.requests_per_s * (serving.e2e + inputs.think_time)
            ; who wait for an answer, and who think @ Little's law
