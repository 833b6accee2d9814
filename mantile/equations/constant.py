"""The literals of the model, each with a name and a unit, so that no formula carries a bare number."""

from __future__ import annotations

from collections.abc import Iterable

from mantile.graph.quantity import Input, Node, Section, defined
from mantile.library.correction import MOST_CHANGE

ALL: list[Input] = []


def _constant(name: str, label: str, unit: str, value: float | str, note: str, called: str = "") -> Input:
    constant = defined(f"constant.{name}", label, unit, value, note, name=called)
    ALL.append(constant)
    return constant


_OF_LOGS = "printed ÷ predicted, 96 servers of 2023 to 2026"

FLOPS_PER_MAC = _constant(
    "flops_per_mac",
    "FLOPs per weight and token",
    "FLOP/token",
    2,
    "one multiplication and one addition",
    "FLOPs per MAC",
)
FLOPS_PER_PAIR = _constant(
    "flops_per_pair",
    "FLOPs per channel of a query-key pair",
    "FLOP/pair",
    2,
    "one multiplication and one addition",
    "FLOPs per MAC",
)
HALF = _constant("half", "Half", "1", 0.5, "mean share of a triangle or of a run that is half done", "half")
CORRECTION_THIN = _constant(
    "correction_thin",
    "Runs at which a correction counts half",
    "number",
    10,
    "so many runs weigh as much as the physics alone",
    "runs at which it counts half",
)
CORRECTION_LEAST = _constant(
    "correction_least",
    "Least multiplier",
    "1",
    1 / MOST_CHANGE,
    "a correction is bounded",
    "least multiplier",
)
CORRECTION_LARGEST = _constant(
    "correction_largest",
    "Largest multiplier",
    "1",
    MOST_CHANGE,
    "a correction is bounded",
    "largest multiplier",
)
DRIFT_LONGEST = _constant(
    "drift_longest",
    "Longest time between two days",
    "month",
    8,
    "of a configuration that was measured on several days: nothing is known of longer ones",
    "longest time between two days",
)
ONE_MONTH = _constant("one_month", "One month", "month", 1, "turns months into a plain number", "1 month")
STEPS_AHEAD = _constant(
    "steps_ahead",
    "Steps scheduled ahead",
    "1",
    1,
    "asynchronous scheduling: the next step is prepared while one runs, and who arrives does not join it; "
    "default of vLLM from 0.14",
)
NO_BOUND = _constant(
    "no_bound", "No bound", "request", 1e9, "a device that holds no layer bounds no requests", "no bound"
)
NO_BOUND_TIME = _constant(
    "no_bound_time",
    "Seconds of a day",
    "s",
    86_400,
    "stands for a step of a split that does not fit",
    "a day",
)
SPLIT_MARGIN = _constant(
    "split_margin",
    "Difference of splits that is none",
    "1",
    0.01,
    "what is not in layers is taken as it is now",
    "0.01",
)
SLIVER = _constant(
    "sliver",
    "Sliver of a layer",
    "1",
    1e-9,
    "what rounding may leave below a whole number of layers",
    "a sliver",
)
QUARTER = _constant(
    "quarter",
    "Quarter",
    "1",
    0.25,
    "an all-to-all on a ring moves a quarter of what an all-gather does",
    "quarter",
)
SMALLEST = _constant(
    "smallest",
    "Smallest rate",
    "1",
    0.000001,
    "keeps a quotient finite where nothing arrives",
    "smallest rate",
)
BEYOND_P95 = _constant(
    "one_in_twenty",
    "Share beyond p95",
    "1",
    0.05,
    "share of requests that wait longer than the 95th percentile",
    "0.05",
)
BEYOND_P50 = _constant(
    "half_left",
    "Share beyond the median",
    "1",
    0.5,
    "share of requests that wait longer than the median",
    "0.5",
)
THIRD = _constant("third", "Third", "1", 1 / 3, "of the moments of lengths drawn evenly", "third")
BEYOND_P90 = _constant(
    "one_in_ten", "Share beyond p90", "1", 0.1, "share of requests beyond the 90th percentile", "0.1"
)
BEYOND_P99 = _constant(
    "one_in_hundred", "Share beyond p99", "1", 0.01, "share of requests beyond the 99th percentile", "0.01"
)
AT_P90 = _constant(
    "at_p90", "p90 of a normal distribution", "1", 1.2815515655446004, "in standard deviations", "1.28"
)
AT_P95 = _constant(
    "at_p95", "p95 of a normal distribution", "1", 1.6448536269514722, "in standard deviations", "1.64"
)
AT_P99 = _constant(
    "at_p99", "p99 of a normal distribution", "1", 2.3263478740408408, "in standard deviations", "2.33"
)
NORMAL_EXPONENT = _constant(
    "normal_exponent",
    "Exponent of a normal distribution's percentiles",
    "1",
    0.135,
    "Tukey's lambda distribution comes within 1 % of a normal one between 0.5 and 99.5 %",
    "0.135",
)
NORMAL_SCALE = _constant(
    "normal_scale", "Scale of the same", "1", 0.1975, "Tukey's lambda distribution", "0.1975"
)
NORMAL_LINE = _constant(
    "normal_line",
    "Linear part of a normal distribution's logit",
    "1",
    1.5976,
    "the share below is then right to 0.0002",
    "1.5976",
)
NORMAL_CUBE = _constant(
    "normal_cube", "Cubic part of the same", "1", 0.07056, "as the linear part", "0.07056"
)
FAR = _constant(
    "far", "Standard deviations beyond which there is nothing", "1", 8, "no share is that small", "8"
)
NINTH = _constant("ninth", "Ninth", "1", 1 / 9, "Wilson and Hilferty: cube root of a gamma variable", "ninth")
LONGEST = _constant(
    "longest",
    "Share beyond the longest of one",
    "1",
    0.625,
    "Blom: the longest of n normal draws has 0.625 ÷ (n + 0.25) beyond it",
    "0.625",
)
LONGEST_SKEWED = _constant(
    "longest_skewed",
    "Less of it for an exponential draw",
    "1",
    0.0625,
    "Euler's constant: the longest of n has 0.5625 ÷ (n + 0.5) beyond it",
    "0.0625",
)
MOST_REQUESTS = _constant(
    "most_requests",
    "Most requests in flight",
    "request",
    1_000_000,
    "a limit of the Concurrency cell",
    "1,000,000",
)
MOST_LOAD = _constant(
    "most_load", "Largest load", "1", 0.8, "beyond it waits are far longer than closed forms say", "0.8"
)
SATURATED = _constant(
    "saturated",
    "Mean tokens of an expert after which all are touched",
    "1",
    40,
    "an expert without a token is then rarer than a cell can tell",
    "40 tokens an expert",
)
CALM = _constant(
    "calm", "Share of KV places asked for below which none is taken", "1", 0.8, "of a simulation", "0.8"
)
RUSH = _constant(
    "rush", "Share of KV places asked for from which all are kept full", "1", 1.2, "of a simulation", "1.2"
)
REDONE = _constant(
    "redone",
    "Prompts done again per output as long as a prompt",
    "1",
    0.75,
    "of a simulation, outputs of 0.02 to 16 prompts, 20 to 80 places; within a third",
    "0.75",
)
REDONE_FROM = _constant(
    "redone_from", "Output, in prompts, from which work is done again", "1", 0.3, "of the same", "0.3"
)
PARKED = _constant(
    "parked",
    "Requests parked at a time, per KV place and prompt that loses it",
    "1",
    0.07,
    "of the same; 0.02 to 0.08",
    "0.07",
)
FIRST_GRAPHS = _constant(
    "first_graphs", "Graphs of the smallest batches", "number", 3, "of 1, 2 and 4 requests", "3 graphs"
)
GRAPH_STEP = _constant(
    "graph_step",
    "Requests from one graph to the next",
    "request",
    8,
    "twice as many in the larger half of batches",
    "8 requests",
)
MOST_CAPTURED = _constant(
    "most_captured", "Requests of the largest graph", "request", 512, "vLLM 0.10 to 0.33", "512 requests"
)
ALL_GRAPHS = _constant(
    "all_graphs", "Graphs up to the largest", "number", 51, "3, and 32 and 16 more", "51 graphs"
)
BOTH_WAYS = _constant(
    "both_ways", "Read and write", "number", 2, "every value is read once and written once", "read and write"
)
ADD_NORM_PASSES = _constant(
    "add_norm_passes",
    "Passes of a fused add and norm",
    "number",
    4,
    "residual and input are read, residual and output are written",
    "4 passes",
)
RING_PHASES = _constant(
    "ring_phases", "Phases of an all-reduce", "number", 2, "reduce-scatter, then all-gather", "2 phases"
)
TWO_KERNELS = _constant(
    "two_kernels",
    "Kernels of a small module in two steps",
    "number",
    2,
    "rotation and KV write; choice of experts and sorting",
    "kernels",
)
VISION_PRODUCTS = _constant(
    "vision_products",
    "Products in a vision layer",
    "number",
    4,
    "QKV, output, and two of the FFN",
    "4 products",
)
JOINED = _constant(
    "joined",
    "Vectors that a prediction layer joins",
    "1",
    2,
    "the embedding of a token and the hidden state before it",
    "2 vectors",
)
NARROW_PRODUCTS = _constant(
    "narrow_products",
    "Products of an adapter beside a matrix",
    "1",
    2,
    "down to the rank of the adapter, and up again",
    "2 products",
)
TOKENS_PER_STEP = _constant(
    "tokens_per_step",
    "Tokens of a request in a decode step",
    "token/request",
    1,
    "no speculative decoding",
    "tokens per step",
)
RANKS_TO_ACCELERATORS = _constant(
    "accelerators_per_rank",
    "Accelerators per rank",
    "accelerator",
    1,
    "one process drives one accelerator",
    "accelerators per rank",
)
RESULT_BYTES = _constant(
    "result_bytes",
    "Bytes of a kernel's result",
    "B/token",
    2,
    "kernels hand on 16-bit values, per channel and token",
    "result bytes",
)
VECTOR_BYTES = _constant(
    "vector_bytes",
    "Bytes of a norm or bias weight",
    "B",
    2,
    "norms and biases stay in 16 bit",
    "vector bytes",
)
INDEX_BYTES = _constant(
    "index_bytes",
    "Bytes per value of an indexer's key",
    "B/token",
    1.03125,
    "per channel and token: fp8 with one fp32 scale for 128 values, whatever the KV cache",
    "indexer key bytes",
)
STATE_BYTES = _constant(
    "state_bytes",
    "Bytes of a recurrent state's value",
    "B",
    4,
    "recurrent states are kept in 32 bit",
    "state bytes",
)
CONV_BYTES = _constant(
    "conv_bytes",
    "Bytes of a convolution's input",
    "B",
    2,
    "the last inputs of short convolutions are kept in 16 bit",
    "convolution bytes",
)
LOGIT_BYTES = _constant(
    "logit_bytes", "Bytes of a logit", "B/token", 4, "samplers work in 32 bit", "logit bytes"
)
SCORE_BYTES = _constant(
    "score_bytes",
    "Bytes of a score",
    "B/head",
    4,
    "attention without flash kernels adds up in 32 bit",
    "4 B",
)
ONE_REQUEST = _constant(
    "one_request", "One request", "request", 1, "turns requests into a plain number", "1 request"
)
ONE_TOKEN = _constant(
    "one_token", "One token", "token", 1, "activations and KV values are counted per token", "1 token"
)
BITS_PER_BYTE = _constant("bits_per_byte", "Bits per byte", "bit/B", 8, "definition", "bits per byte")
HOUR = _constant("seconds_per_hour", "Seconds per hour", "s/h", 3600, "definition", "3600 s per h")
DAYS = _constant("days_per_year", "Days per year", "day/year", 365.25, "mean of a calendar", "days per year")
MONTH = _constant(
    "days_per_month", "Days per month", "day/month", 30.4375, "a twelfth of 365.25 days", "days per month"
)
KILO = _constant("watts_per_kilowatt", "Watts per kilowatt", "W/kW", 1000, "definition", "1000 W per kW")
MEGA = _constant(
    "tokens_per_million", "Tokens per million", "token/Mtoken", 1e6, "definition", "1E6 tokens per million"
)
STREAMS = _constant(
    "streams",
    "Copies of the residual stream",
    "1",
    3,
    "input, result and residual of a layer are held at once; by start-up profiles of vLLM, Llama-3.1-8B",
    "3",
)
LARGE_CHIP = _constant(
    "large_chip", "A large accelerator", "B", 70 * 2**30, "from so much memory on vLLM lets in more", "70 GiB"
)
_BANDS = (
    ("weights", 0.974, 1.036),
    ("tokens", 0.736, 1.089),
    ("peak", 0.971, 1.024),
)
(WEIGHTS_P10, WEIGHTS_P90), (TOKENS_P10, TOKENS_P90), (PEAK_P10, PEAK_P90) = (
    (
        _constant(f"{name}_p10", f"p10 of {name} in start-up logs", "1", low, _OF_LOGS, f"p10 of {name}"),
        _constant(f"{name}_p90", f"p90 of {name} in start-up logs", "1", high, _OF_LOGS, f"p90 of {name}"),
    )
    for name, low, high in _BANDS
)
RAM_PROCESS_P10 = _constant(
    "ram_process_p10",
    "p10 of the memory of a server's processes",
    "1",
    0.75,
    "3 GB a worker were seen where 4 are assumed (vllm-project/vllm#48436)",
    "p10 of processes",
)
RAM_P90 = _constant(
    "ram_p90",
    "p90 of host memory",
    "1",
    1.9,
    "pinned memory is taken in powers of two: 1.78 and 1.9 times of what lies there were seen "
    "(vllm-project/vllm#56410)",
    "p90 of host memory",
)
SLACK = _constant(
    "slack",
    "Rounding in a sum of memory",
    "B",
    1,
    "what a batch that fills the room exactly may be off by",
    "slack",
)
GENERAL_BLOCK = _constant(
    "general_block", "Block of a KV cache", "token/request", 16, "where nobody states another", "16"
)
GENERAL_TOKENS = _constant(
    "general_tokens", "Token budget of engines", "token", 8192, "where nobody states another", "8,192"
)
GIGA = _constant("bytes_per_gb", "Bytes per GB", "B/GB", 1e9, "decimal gigabyte", "1E9 B per GB")
BILLION = _constant("billion", "Parameters in a billion", "parameter", 1e9, "definition", "a billion")
GIBI = _constant("bytes_per_gib", "Bytes per GiB", "B/GiB", 2**30, "binary gigabyte", "2^30 B per GiB")
TERA = _constant(
    "flops_per_tflop", "FLOPs per TFLOP", "FLOP/TFLOP", 1e12, "definition", "1E12 FLOP per TFLOP"
)
MICRO = _constant("us_per_s", "Microseconds per second", "us/s", 1e6, "definition", "1E6 us per s")
MILLI = _constant(
    "ms_per_s", "Milliseconds per second", "ms/s", 1000, "definition; for the front sheets", "1000 ms per s"
)

LONG = _constant(
    "long_time", "Long time", "s", 10, "told in seconds, minutes or hours, not in ms", "a long time"
)
_TIMES = (("s", 0.0, 1.0), ("min", 120.0, 60.0), ("h", 7200.0, 3600.0))
TIMES_FROM = tuple(
    _constant(
        f"long_time.from.{unit}", f"Least time told in {unit}", "s", least, "for the front sheets", unit
    )
    for unit, least, _ in _TIMES
)
TIMES_SECONDS = tuple(
    _constant(f"long_time.seconds.{unit}", f"Seconds in 1 {unit}", "s", seconds, "definition", f"1 {unit}")
    for unit, _, seconds in _TIMES
)
TIMES_UNITS = tuple(
    _constant(f"long_time.unit.{unit}", f"Unit {unit}", "1", unit, "as people write it", unit)
    for unit, *_ in _TIMES
)


def section(used: Iterable[Node]) -> Section:
    """The constants that a model's equations use; those of times serve the front sheets of every workbook."""
    needed = {*used, MILLI, LONG, *TIMES_FROM, *TIMES_SECONDS, *TIMES_UNITS}
    return Section(
        "Constants",
        tuple(constant for constant in ALL if constant in needed),
        "definitions, the same for all scenarios",
    )
