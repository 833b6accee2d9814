"""The literals of the model, each with a name and a unit, so that no formula carries a bare number."""

from __future__ import annotations

from mantile.graph.quantity import Input, Section


def _constant(name: str, label: str, unit: str, value: float, note: str, called: str = "") -> Input:
    return Input(f"constant.{name}", label, unit, value, note, "definition", "defined", shared=True, fixed=True, name=called)


FLOPS_PER_MAC = _constant("flops_per_mac", "FLOPs per weight and token", "FLOP/token", 2,
                          "one multiplication and one addition", "FLOPs per MAC")  # fmt: skip
FLOPS_PER_PAIR = _constant("flops_per_pair", "FLOPs per channel of a query-key pair", "FLOP/pair", 2,
                           "one multiplication and one addition", "FLOPs per MAC")  # fmt: skip
QK_AND_PV = _constant("qk_and_pv", "Products in attention", "number", 2, "queries with keys, and scores with values",
                      "2 products")  # fmt: skip
KEYS_AND_VALUES = _constant("keys_and_values", "Tensors in the KV cache", "number", 2, "keys and values", "keys and values")
HALF = _constant("half", "Half", "1", 0.5, "mean share of a triangle or of a run that is half done", "half")
BOTH_WAYS = _constant("both_ways", "Read and write", "number", 2, "every value is read once and written once", "read and write")
ADD_NORM_PASSES = _constant("add_norm_passes", "Passes of a fused add and norm", "number", 4,
                            "residual and input are read, residual and output are written", "4 passes")  # fmt: skip
RING_PHASES = _constant("ring_phases", "Phases of an all-reduce", "number", 2, "reduce-scatter, then all-gather",
                        "2 phases")  # fmt: skip
ALL_REDUCES_PER_LAYER = _constant("all_reduces_per_layer", "All-reduces in a layer", "number", 2,
                                  "after attention and after the FFN", "all-reduces per layer")  # fmt: skip
ROPE_KERNELS = _constant("rope_kernels", "Kernels for RoPE and KV write", "number", 2, "rotation, and the write into the cache",
                         "kernels")  # fmt: skip
TOKENS_PER_STEP = _constant("tokens_per_step", "Tokens of a request in a decode step", "token/request", 1,
                            "no speculative decoding", "tokens per step")  # fmt: skip
RANKS_TO_ACCELERATORS = _constant("accelerators_per_rank", "Accelerators per rank", "accelerator", 1,
                                  "one process drives one accelerator", "accelerators per rank")  # fmt: skip
RESULT_BYTES = _constant("result_bytes", "Bytes of a kernel's result", "B/token", 2,
                         "kernels hand on 16-bit values, per channel and token", "result bytes")  # fmt: skip
VECTOR_BYTES = _constant("vector_bytes", "Bytes of a norm or bias weight", "B", 2, "norms and biases stay in 16 bit",
                         "vector bytes")  # fmt: skip
LOGIT_BYTES = _constant("logit_bytes", "Bytes of a logit", "B/token", 4, "samplers work in 32 bit", "logit bytes")
ONE_REQUEST = _constant("one_request", "One request", "request", 1, "turns requests into a plain number", "1")
ONE_TOKEN = _constant("one_token", "One token", "token", 1, "activations and KV values are counted per token", "1 token")
BITS_PER_BYTE = _constant("bits_per_byte", "Bits per byte", "bit/B", 8, "definition", "bits per byte")
GIGA = _constant("bytes_per_gb", "Bytes per GB", "B/GB", 1e9, "decimal gigabyte", "1E9")
GIBI = _constant("bytes_per_gib", "Bytes per GiB", "B/GiB", 2**30, "binary gigabyte", "2^30")
TERA = _constant("flops_per_tflop", "FLOPs per TFLOP", "FLOP/TFLOP", 1e12, "definition", "1E12")
MICRO = _constant("us_per_s", "Microseconds per second", "us/s", 1e6, "definition", "1E6")
MILLI = _constant("ms_per_s", "Milliseconds per second", "ms/s", 1000, "definition; for the front sheets", "1000")

SECTION = Section("Constants", (
    FLOPS_PER_MAC, FLOPS_PER_PAIR, QK_AND_PV, KEYS_AND_VALUES, HALF, BOTH_WAYS, ADD_NORM_PASSES, RING_PHASES,
    ALL_REDUCES_PER_LAYER, ROPE_KERNELS, TOKENS_PER_STEP, RANKS_TO_ACCELERATORS, RESULT_BYTES, VECTOR_BYTES,
    LOGIT_BYTES, ONE_REQUEST, ONE_TOKEN, BITS_PER_BYTE, GIGA, GIBI, TERA, MICRO, MILLI,
), "definitions, the same for all scenarios")  # fmt: skip
