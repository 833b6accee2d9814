# What the chosen accelerator and system offer: looked up in the tables of the library, in SI units. An
# override comes first. What an accelerator or system does not have is 0. Peaks are in FLOP/s; bandwidths per
# direction.

define unless_overridden(cell, stated) = where(is_number(cell), cell, stated)
define of_accelerator(stated) = index(stated, accelerator_number)
define of_system(stated) = index(stated, system_number)

[hardware] Accelerator in use | what stands in the table above for the one chosen; an override comes first
accelerator_number  Place of the accelerator [number] = match(inputs.accelerator, library.accelerators)

each text of accelerators
{name}      {label} [1] = of_accelerator(library.{name}) ; {note}

peak_*.override

each peak of accelerators
{name}      {label} in use ({called}) [{unit}]
            = unless_overridden({name}.override, of_accelerator(library.{name})){times} ; {note}

peak_keys

each fact of accelerators
{name}.override
{name}      {label} in use ({called}) [{unit}]
            = unless_overridden({name}.override, of_accelerator(library.{name})){times} ; {note}

each flag of accelerators
{name}      {label} [flag] = of_accelerator(library.{name}) ; {note}

price_owned_stated  A cost of owning of one's own [flag] = where(is_number(price_owned.override), 1, 0)
            ; 1 where the cell above is filled: it then stands for what is worked out
for basis in cloud; rental
price_{basis}_typed  The price was typed, {basis} [flag]
            = where(is_number(price_{basis}.override), 1, price_{basis}_own)

price_owned_typed  The price was typed, owned [flag]
            = max(where(is_number(price_purchase.override), 1, price_purchase_own), price_owned_stated)
usual_system  Usual system [1] = of_accelerator(library.usual_system)
            ; the system an accelerator usually comes in

[hardware] Memory that may be used | of the chosen accelerator
memory_listed  Memory capacity as listed [B] = of_accelerator(library.memory_capacity) * bytes_per_gib
# Of a capacity that somebody types it may use the same share.
memory_seen  Memory that the accelerator may use (memory for the accelerator) [B]
            = where(all(memory_visible > 0, memory_listed > 0), memory_capacity * min(1, memory_visible /
            memory_listed), memory_capacity) ; all of it where no driver shows less and no CPU shares it

[hardware] System in use | what stands in the table above for the one chosen; an override comes first
system      System [1] = where(inputs.system == 'default', usual_system, inputs.system)
system_number  Place of the system [number] = match(system, system.systems)

each text of systems
{name}      {label} [1] = of_system(system.{name}) ; {note}

each flag of systems
{name}      {label} [flag] = of_system(system.{name}) ; {note}

each fact of systems
{name}.override
{name}      {label} in use ({called}) [{unit}]
            = unless_overridden({name}.override, of_system(system.{name})){times} ; {note}

[hardware] Framework on the chosen accelerator
framework_runs  The framework runs on chips of this maker [flag]
            = where(count_where(framework.pairs, join('maker/', vendor)) > 0, count_where(framework.pairs,
            join(inputs.framework, '/', vendor)), 1) ; of a maker that no framework names nobody knows it
framework_pads  It pads heads and columns that TP does not divide [flag]
            = count_where(framework.pairs, join(inputs.framework, '/', vendor, '/pads'))
when TP_padding
padding_asked  Padding is asked for [flag] = where(inputs.tp_padding == 'padded', 1, 0)
padding     What TP does not divide is padded [flag]
            = where(inputs.tp_padding == 'default', framework_pads, padding_asked)
            ; as told, or as the framework does on such chips

[hardware] Links | what the topology allows
system_matches  The system holds this accelerator [flag] = where(of_accelerator == inputs.accelerator, 1, 0)
for kind in switch; mesh; pcie; torus
is_{kind}   Topology is {kind} [flag] = where(topology == '{kind}', 1, 0)

direct      Every accelerator reaches every other at once [flag]
            = is_switch + is_mesh + is_pcie * peer_to_peer
            ; over PCIe only where a message needs no stop in host memory

[hardware] Hosts | of a domain of the chosen system
hosts_of_domain  Hosts that share a domain [host] = max(1, hosts)
host_accelerators  Accelerators of a host [accelerator] = accelerators / hosts_of_domain
