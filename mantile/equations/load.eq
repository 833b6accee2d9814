when request_rate

[load] Requests in flight | at the rate
in_flight   Requests in flight [request] = where(load.open > 0, load.served * serving.e2e, inputs.concurrency)
            ; of all replicas @ Little's law
