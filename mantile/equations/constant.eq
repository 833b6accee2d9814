# The literals of the model, each with a name and a unit, so that no formula carries a bare number.

[constant] Constants | definitions, the same for all scenarios
flops_per_mac FLOPs per weight and token (FLOPs per MAC) [FLOP/token] := 2
            ; one multiplication and one addition
flops_per_pair FLOPs per channel of a query-key pair (FLOPs per MAC) [FLOP/pair] := 2
            ; one multiplication and one addition
half        Half (half) [1] := 0.5 ; mean share of a triangle or of a run that is half done
correction_thin Runs at which a correction counts half (runs at which it counts half) [number] := 10
            ; so many runs weigh as much as the physics alone
drift_longest Longest time between two days (longest time between two days) [month] := 8
            ; of a configuration that was measured on several days: nothing is known of longer ones
one_month   One month (1 month) [month] := 1 ; turns months into a plain number
steps_ahead Steps scheduled ahead [1] := 1
            ; asynchronous scheduling: the next step is prepared while one runs, and who arrives does not join
            it; default of vLLM from 0.14
no_bound    No bound (no bound) [request] := 1e9 ; a device that holds no layer bounds no requests
no_bound_time Seconds of a day (a day) [s] := 86400 ; stands for a step of a split that does not fit
split_margin Difference of splits that is none (0.01) [1] := 0.01
            ; what is not in layers is taken as it is now
sliver      Sliver of a layer (a sliver) [1] := 1e-09 ; what rounding may leave below a whole number of layers
quarter     Quarter (quarter) [1] := 0.25 ; an all-to-all on a ring moves a quarter of what an all-gather does
smallest    Smallest rate (smallest rate) [1] := 1e-06 ; keeps a quotient finite where nothing arrives
one_in_twenty Share beyond p95 (0.05) [1] := 0.05
            ; share of requests that wait longer than the 95th percentile
half_left   Share beyond the median (0.5) [1] := 0.5 ; share of requests that wait longer than the median
third       Third (third) [1] := 0.3333333333333333 ; of the moments of lengths drawn evenly
one_in_ten  Share beyond p90 (0.1) [1] := 0.1 ; share of requests beyond the 90th percentile
one_in_hundred Share beyond p99 (0.01) [1] := 0.01 ; share of requests beyond the 99th percentile
at_p90      p90 of a normal distribution (1.28) [1] := 1.2815515655446004 ; in standard deviations
at_p95      p95 of a normal distribution (1.64) [1] := 1.6448536269514722 ; in standard deviations
at_p99      p99 of a normal distribution (2.33) [1] := 2.3263478740408408 ; in standard deviations
normal_exponent Exponent of a normal distribution's percentiles (0.135) [1] := 0.135
            ; Tukey's lambda distribution comes within 1 % of a normal one between 0.5 and 99.5 %
normal_scale Scale of the same (0.1975) [1] := 0.1975 ; Tukey's lambda distribution
normal_line Linear part of a normal distribution's logit (1.5976) [1] := 1.5976
            ; the share below is then right to 0.0002
normal_cube Cubic part of the same (0.07056) [1] := 0.07056 ; as the linear part
far         Standard deviations beyond which there is nothing (8) [1] := 8 ; no share is that small
ninth       Ninth (ninth) [1] := 0.1111111111111111 ; Wilson and Hilferty: cube root of a gamma variable
longest     Share beyond the longest of one (0.625) [1] := 0.625
            ; Blom: the longest of n normal draws has 0.625 ÷ (n + 0.25) beyond it
longest_skewed Less of it for an exponential draw (0.0625) [1] := 0.0625
            ; Euler's constant: the longest of n has 0.5625 ÷ (n + 0.5) beyond it
most_requests Most requests in flight (1,000,000) [request] := 1000000 ; a limit of the Concurrency cell
most_load   Largest load (0.8) [1] := 0.8 ; beyond it waits are far longer than closed forms say
saturated   Mean tokens of an expert after which all are touched (40 tokens an expert) [1] := 40
            ; an expert without a token is then rarer than a cell can tell
calm        Share of KV places asked for below which none is taken (0.8) [1] := 0.8 ; of a simulation
rush        Share of KV places asked for from which all are kept full (1.2) [1] := 1.2 ; of a simulation
redone      Prompts done again per output as long as a prompt (0.75) [1] := 0.75
            ; of a simulation, outputs of 0.02 to 16 prompts, 20 to 80 places; within a third
redone_from Output, in prompts, from which work is done again (0.3) [1] := 0.3 ; of the same
parked      Requests parked at a time, per KV place and prompt that loses it (0.07) [1] := 0.07
            ; of the same; 0.02 to 0.08
first_graphs Graphs of the smallest batches (3 graphs) [number] := 3 ; of 1, 2 and 4 requests
graph_step  Requests from one graph to the next (8 requests) [request] := 8
            ; twice as many in the larger half of batches
most_captured Requests of the largest graph (512 requests) [request] := 512 ; vLLM 0.10 to 0.33
all_graphs  Graphs up to the largest (51 graphs) [number] := 51 ; 3, and 32 and 16 more
both_ways   Read and write (read and write) [number] := 2 ; every value is read once and written once
add_norm_passes Passes of a fused add and norm (4 passes) [number] := 4
            ; residual and input are read, residual and output are written
ring_phases Phases of an all-reduce (2 phases) [number] := 2 ; reduce-scatter, then all-gather
two_kernels Kernels of a small module in two steps (kernels) [number] := 2
            ; rotation and KV write; choice of experts and sorting
vision_products Products in a vision layer (4 products) [number] := 4 ; QKV, output, and two of the FFN
joined      Vectors that a prediction layer joins (2 vectors) [1] := 2
            ; the embedding of a token and the hidden state before it
narrow_products Products of an adapter beside a matrix (2 products) [1] := 2
            ; down to the rank of the adapter, and up again
tokens_per_step Tokens of a request in a decode step (tokens per step) [token/request] := 1
            ; no speculative decoding
accelerators_per_rank Accelerators per rank (accelerators per rank) [accelerator] := 1
            ; one process drives one accelerator
result_bytes Bytes of a kernel's result (result bytes) [B/token] := 2
            ; kernels hand on 16-bit values, per channel and token
vector_bytes Bytes of a norm or bias weight (vector bytes) [B] := 2 ; norms and biases stay in 16 bit
index_bytes Bytes per value of an indexer's key (indexer key bytes) [B/token] := 1.03125
            ; per channel and token: fp8 with one fp32 scale for 128 values, whatever the KV cache
state_bytes Bytes of a recurrent state's value (state bytes) [B] := 4 ; recurrent states are kept in 32 bit
conv_bytes  Bytes of a convolution's input (convolution bytes) [B] := 2
            ; the last inputs of short convolutions are kept in 16 bit
logit_bytes Bytes of a logit (logit bytes) [B/token] := 4 ; samplers work in 32 bit
score_bytes Bytes of a score (4 B) [B/head] := 4 ; attention without flash kernels adds up in 32 bit
one_request One request (1 request) [request] := 1 ; turns requests into a plain number
one_token   One token (1 token) [token] := 1 ; activations and KV values are counted per token
bits_per_byte Bits per byte (bits per byte) [bit/B] := 8 ; definition
seconds_per_hour Seconds per hour (3600 s per h) [s/h] := 3600 ; definition
days_per_year Days per year (days per year) [day/year] := 365.25 ; mean of a calendar
days_per_month Days per month (days per month) [day/month] := 30.4375 ; a twelfth of 365.25 days
watts_per_kilowatt Watts per kilowatt (1000 W per kW) [W/kW] := 1000 ; definition
tokens_per_million Tokens per million (1E6 tokens per million) [token/Mtoken] := 1e6 ; definition
streams     Copies of the residual stream (3) [1] := 3
            ; input, result and residual of a layer are held at once; by start-up profiles of vLLM,
            Llama-3.1-8B
large_chip  A large accelerator (70 GiB) [B] := 75161927680 ; from so much memory on vLLM lets in more
weights_p10 p10 of weights in start-up logs (p10 of weights) [1] := 0.974
            ; printed ÷ predicted, 96 servers of 2023 to 2026
weights_p90 p90 of weights in start-up logs (p90 of weights) [1] := 1.036
            ; printed ÷ predicted, 96 servers of 2023 to 2026
tokens_p10  p10 of tokens in start-up logs (p10 of tokens) [1] := 0.736
            ; printed ÷ predicted, 96 servers of 2023 to 2026
tokens_p90  p90 of tokens in start-up logs (p90 of tokens) [1] := 1.089
            ; printed ÷ predicted, 96 servers of 2023 to 2026
peak_p10    p10 of peak in start-up logs (p10 of peak) [1] := 0.971
            ; printed ÷ predicted, 96 servers of 2023 to 2026
peak_p90    p90 of peak in start-up logs (p90 of peak) [1] := 1.024
            ; printed ÷ predicted, 96 servers of 2023 to 2026
ram_process_p10 p10 of the memory of a server's processes (p10 of processes) [1] := 0.75
            ; 3 GB a worker were seen where 4 are assumed (vllm-project/vllm#48436)
ram_p90     p90 of host memory (p90 of host memory) [1] := 1.9
            ; pinned memory is taken in powers of two: 1.78 and 1.9 times of what lies there were seen
            (vllm-project/vllm#56410)
slack       Rounding in a sum of memory (slack) [B] := 1
            ; what a batch that fills the room exactly may be off by
general_block Block of a KV cache (16) [token/request] := 16 ; where nobody states another
general_tokens Token budget of engines (8,192) [token] := 8192 ; where nobody states another
bytes_per_gb Bytes per GB (1E9 B per GB) [B/GB] := 1e9 ; decimal gigabyte
billion     Parameters in a billion (a billion) [parameter] := 1e9 ; definition
bytes_per_gib Bytes per GiB (2^30 B per GiB) [B/GiB] := 1073741824 ; binary gigabyte
flops_per_tflop FLOPs per TFLOP (1E12 FLOP per TFLOP) [FLOP/TFLOP] := 1e12 ; definition
us_per_s    Microseconds per second (1E6 us per s) [us/s] := 1e6 ; definition
ms_per_s    Milliseconds per second (1000 ms per s) [ms/s] := 1000 ; definition; for the front sheets
long_time   Long time (a long time) [s] := 10 ; told in seconds, minutes or hours, not in ms
long_time.from.s Least time told in s (s) [s] := 0.0 ; for the front sheets
long_time.from.min Least time told in min (min) [s] := 120.0 ; for the front sheets
long_time.from.h Least time told in h (h) [s] := 7200.0 ; for the front sheets
long_time.seconds.s Seconds in 1 s (1 s) [s] := 1.0 ; definition
long_time.seconds.min Seconds in 1 min (1 min) [s] := 60.0 ; definition
long_time.seconds.h Seconds in 1 h (1 h) [s] := 3600.0 ; definition
long_time.unit.s Unit s (s) [1] := 's' ; as people write it
long_time.unit.min Unit min (min) [1] := 'min' ; as people write it
long_time.unit.h Unit h (h) [1] := 'h' ; as people write it
