# What a deployment runs on, in words: how many accelerators of which name. Titles say it. A device that holds
# no part of the model is left out.

define counted(count, name) = join(count, ' × ', name)

[machines] What it runs on | accelerators by name | when not devices
words       What it runs on [1] = counted(plan.accelerators, hardware.name)
over machines.words = join(it, where(inputs.disaggregated > 0, join(' → ', counted(decode.plan.accelerators,
            decode.hardware.name)), '')) | when disaggregated

[machines] What it runs on | accelerators by name, devices that hold any | when devices
each numbered device
alike.{n}   Accelerators alike up to device {n} [accelerator] = plan.counted.{n}
ended.{n}   Accelerators of a kind that ends there, {n} [accelerator] = alike.{n}
over machines.alike.{n} = it + where({before}hardware.name == {machine}hardware.name, alike.{n-1}, 0)
            | when not first
over machines.ended.{n} = where({after}hardware.name == {machine}hardware.name, 0, it) | when not last
when not first
with.{n}    Devices up to {n}, if it holds any of the model [1]
            = where(words.{n-1} == '–', counted(ended.{n}, {machine}hardware.name), join(words.{n-1}, ' + ',
            counted(ended.{n}, {machine}hardware.name)))
over machines.words.{n} = where(ended.{n} > 0, machines.with.{n}, words.{n-1})

each numbered device
words.{n}   What it runs on, devices up to {n} [1]
            = where(ended.{n} > 0, counted(ended.{n}, {machine}hardware.name), '–')
