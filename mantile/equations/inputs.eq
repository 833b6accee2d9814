# What inputs say, in numbers, and what cells of inputs follow until they are typed over.

[inputs] From inputs | what inputs say, in numbers
continuous  Batching is continuous (continuous) [flag] = where(inputs.batching == 'continuous', 1, 0)
            ; 1 for continuous, 0 for static batching
when disaggregated
disaggregated  Serving is disaggregated (disaggregated) [flag]
            = where(inputs.serving == 'disaggregated', 1, 0)
            ; 1 if prefill and decode have workers of their own
# The system follows only on the same accelerator: another one comes in its usual system.
decode_system_default  System of decode workers by default [1]
            = where(decode_accelerator == inputs.accelerator, inputs.system, 'default')

each numbered device
when not first
device{n}_system_default  System by default, device {n} [1]
            = where(device{n}_accelerator == inputs.accelerator, inputs.system, 'default')
