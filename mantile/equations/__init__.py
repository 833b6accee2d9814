"""The performance model, one subject per file.

Everything here builds quantities; nothing is computed or printed.

A newcomer holding a cell finds its formula by its id: the first part of the id is the file, the second the
row or the function. The file is NAME.eq, or NAME.py where there is no text. Exceptions:

    first part of the id     file
    ----------------------   -----------------------------------------------------------------------
    hardware                 hardware.eq: accelerator and system in use; about data types: formats.eq
    system                   library.py
    efficiency               efficiency.eq: what is reached; the factors: efficiency.py, those there are:
                               factors.table, which profile holds: fallback.eq
    model                    model.py; facts and dimensions: mantile/ir
    tensor                   tensors.py
    ir, layers               of that name: what IR and Layers show; order of layers: order.py
    prefill, decode          phase.eq: what enters a pass; rows of a module by its kind: linear.eq, moe.eq,
                               attention.eq, recurrence.eq, elementwise.eq, vision.eq, lora.eq, all on
                               roofline.eq; messages.eq; the pass: forward.eq and forward.py
    single                   serving.eq: decode, once more for one request
    all_slots, estimate      load.eq: figures once more at other loads
    typed                    typed/: what cells hold
    floor                    mantile/floors.py

What decode workers have to themselves has "decode." before it: decode.memory.batch is memory.batch of decode
workers. build.py puts everything together.
"""
