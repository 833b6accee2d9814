[offer] Age of prices | from when on one is old
most_days   Days after which a price is old [day] := 90.0 in 0 to 3660 ; an alert says so
            @ assumed 2026-11: rents of an H100 rose from 1.70 to 2.35 USD within five months
