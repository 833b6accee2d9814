# Links between machines: what their ports and networks reach, and the links of a system that both belong to.
# Ports of a family only reach ports of their own family. A link that nobody states is the fastest that both
# allow. Python says between which machines: {here} and {there} are what ids of each begin with.

for f in ethernet; thunderbolt
[link] Ports | each way
for side | inputs in here | {here_inputs}; there | {there_inputs}
{f}.{side}  Port, {f}, {side} [1] = index(link.port.{f}, match({inputs}accelerator, library.accelerators))
{f}.{side}.place  Its place, {f}, {side} [number] = match({f}.{side}, link.kinds)
{f}.{side}.raw  Its bandwidth, {f}, {side} [GB/s] = index(link.bandwidth, {f}.{side}.place)
{f}.{side}.rate  Rate of the port, {f}, {side} [GB/s] = {f}.{side}.raw * index(link.share, {f}.{side}.place)
{f}.{side}.latency  Latency of the port, {f}, {side} [us] = index(link.latency, {f}.{side}.place)

{f}.rate    Rate by {f} [GB/s] = min({f}.here.rate, {f}.there.rate) ; of the slower port
{f}.latency  Latency by {f} [us] = max({f}.here.latency, {f}.there.latency)

[link] Ports | each way
for side | of in here | {here}; there | {there}
over {space}ethernet.{side}.rate = where(ethernet.{side} == 'none', {of}hardware.scale_out_bandwidth *
            {of}efficiency.network_bandwidth / bytes_per_gb, it)
over {space}ethernet.{side}.latency = where(ethernet.{side} == 'none', {of}efficiency.network_latency *
            us_per_s, it)

# Only Ethernet reaches a switch.
over {space}thunderbolt.rate = where(devices.switched > 0, 0, it) | when devices, links
ports.rate  Rate by ports [GB/s] = max(ethernet.rate, thunderbolt.rate) ; of the faster family
ports.latency  Latency by ports [us]
            = where(thunderbolt.rate >= ports.rate, thunderbolt.latency, ethernet.latency)

define of_one_system = all({here_inputs}accelerator == {there_inputs}accelerator,
  {here_inputs}system == {there_inputs}system)
define in_one_system = of_one_system | when not links
define in_one_system = alike > 0 | when links

[link] Links of devices that are not alike | each cable
when links
alike       Both are accelerators of one system [flag] = where(of_one_system, 1 - devices.switched, 0)
            ; and no switch is between

system.rate  Rate in their system [GB/s]
            = where(all(in_one_system, {here}network.p2p.per_byte > 0), 1 / {here}network.p2p.per_byte /
            inputs.network_speed / bytes_per_gb, 0) ; where both are accelerators of one system
inferred.rate  Rate that is inferred [GB/s] = max(system.rate, ports.rate)
inferred.latency  Latency that is inferred [us]
            = where(all(system.rate > 0, system.rate >= inferred.rate), {here}network.p2p.latency * us_per_s,
            ports.latency)
kind        Kind of link [1] = where({cell} == 'inferred', 'none', {cell})
bandwidth_default  Bandwidth [GB/s]
            = where({cell} == 'inferred', inferred.rate, index(link.bandwidth, match(kind, link.kinds)))
            ; of its kind; where it is inferred, what a transfer reaches
latency_default  Latency [us]
            = where({cell} == 'inferred', inferred.latency, index(link.latency, match(kind, link.kinds)))
share       Share that transfers reach [1]
            = where({cell} == 'inferred', 1, index(link.share, match(kind, link.kinds)))
rate        Bytes a second that transfers reach [B/s]
            = {cell}_bandwidth * bytes_per_gb * share * inputs.network_speed
bandwidth   Bandwidth in use [GB/s] = 1 * {cell}_bandwidth
latency     Latency in use [s] = {cell}_latency / us_per_s
stated      Somebody stated it [flag]
            = where(all({cell} == 'inferred', {cell}_bandwidth == bandwidth_default), 0, 1)
