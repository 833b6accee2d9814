"""The performance model, one subject per file.

Everything here builds quantities; nothing is computed or printed.

A newcomer holding a cell finds its formula by its id: the first part of the id is the file, the second the
function.

    first part of the id     file
    ----------------------   -----------------------------------------------------------------------
    inputs, constant         of that name: what a scenario asks for; the literals
    library, system,         of that name: what profiles state of accelerators, systems,
      framework, datatype      serving frameworks and data types
    hardware                 hardware.py: accelerator and system in use; about data types: formats.py
    efficiency               efficiency.py; which profile holds: fallback.py; efficiency.fraction and
                               efficiency.rate: rates.py; the factors there are: factors.py
    model                    model.py; facts and dimensions: mantile/ir
    tensor, tensors          tensors.py
    ir, layers               of that name: what IR and Layers show; order of layers: order.py
    plan, memory, network    of that name
    placement, topology      of that name: which accelerator holds what, domains and the links between them
    prefill, decode          of that name and phase.py: what enters a pass; then forward.py, and for each kind
                               of module linear.py, moe.py, attention.py, recurrence.py, elementwise.py,
                               vision.py on roofline.py; messages: collectives.py. A table in prefill.py
                               says which function for which id.
    single                   single.py: decode, once more for one request
    all_slots, estimate      load.eq: figures once more at other loads
    scheduler, load,         of that name
      serving, cost,
      evidence, measured,
      checks, stamp
    floor                    mantile/floors.py

What decode workers have to themselves has "decode." before it: decode.memory.batch is memory.batch of decode
workers. graph.py puts everything together.
"""
