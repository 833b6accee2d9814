"""The performance model, one subject per file.

Everything here builds quantities; nothing is computed or printed.

A newcomer holding a cell finds its formula by its id: the first part of the id is the file, the second the
row or the function. The file is NAME.eq, or NAME.py where there is no text. Exceptions:

    first part of the id     file
    ----------------------   -----------------------------------------------------------------------
    hardware                 hardware.eq: accelerator and system in use; about data types: formats.py
    system                   library.py
    efficiency               efficiency.py; which profile holds: fallback.py; efficiency.fraction and
                               efficiency.rate: rates.py; the factors there are: factors.py
    model                    model.py; facts and dimensions: mantile/ir
    tensor                   tensors.py
    ir, layers               of that name: what IR and Layers show; order of layers: order.py
    prefill, decode          of that name and phase.py: what enters a pass; then forward.py, and for each kind
                               of module linear.py, moe.py, attention.py, recurrence.py, elementwise.py,
                               vision.py on roofline.py; messages: messages.eq. A table in prefill.py
                               says which function for which id.
    single                   single.py: decode, once more for one request
    all_slots, estimate      load.eq: figures once more at other loads
    floor                    mantile/floors.py

What decode workers have to themselves has "decode." before it: decode.memory.batch is memory.batch of decode
workers. graph.py puts everything together.
"""
