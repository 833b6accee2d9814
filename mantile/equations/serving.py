"""From passes to what users see: TTFT, TPOT, end to end, throughput, in a closed loop of fixed concurrency.

Continuous batching: decode is interrupted by other requests' prefills, a new request waits behind them and, where
memory holds fewer requests than there are, for a seat. Static batching: a batch prefills together, then decodes alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constants import ONE_REQUEST, TOKENS_PER_STEP
from mantile.equations.efficiency import Efficiency
from mantile.equations.forward import Pass
from mantile.equations.memory import Memory
from mantile.equations.sharding import Sharding
from mantile.equations.workload import Workload
from mantile.graph.quantity import Quantity, Section


@dataclass(frozen=True)
class Serving:
    """Headline results: seconds, requests per second, tokens per second."""

    ttft: Quantity
    tpot: Quantity
    e2e: Quantity
    interactivity: Quantity
    requests_per_s: Quantity
    output_tokens_per_s: Quantity
    output_tokens_per_s_per_accelerator: Quantity
    total_tokens_per_s: Quantity
    ttft_parts: tuple[Quantity, ...]
    tpot_parts: tuple[Quantity, ...]
    sections: tuple[Section, ...]



def serving(inputs: Workload, continuous: Quantity, plan: Sharding, held: Memory, efficiency: Efficiency, prefill: Pass,
            decode: Pass) -> Serving:  # fmt: skip
    """The rows of the Serving sheet."""
    others = Quantity("serving.others", "Other requests in the batch", "request", held.batch - ONE_REQUEST)
    occupied = Quantity("serving.prefill_service", "Time a prompt occupies the pipeline", "s", prefill.time / inputs.pp,
                        note="prefill time ÷ PP: stages work on different prompts", name="prefill service time")  # fmt: skip
    stall = Quantity("serving.stall", "Prefill stall per token", "s",
                     continuous * efficiency["interference"] * others / ONE_REQUEST * occupied * TOKENS_PER_STEP / inputs.output_tokens,
                     note="interference × other requests × prefill service time ÷ output tokens: each prefills once in my "
                          "lifetime; 0 in static batching", source="closed loop")  # fmt: skip
    step = Quantity("serving.decode_step", "Decode step", "s", decode.time, note="decode time of the batch")
    tpot = Quantity("serving.tpot", "Time per output token, TPOT", "s", step + stall, note="decode step + prefill stall per token",
                    name="TPOT")  # fmt: skip
    handling = Quantity("serving.first_token", "Request handling", "s", efficiency["first_token"], note="first-token overhead")
    prefill_part = Quantity("serving.prefill", "Prefill of the prompt", "s", prefill.time, note="prefill time")
    queue = Quantity("serving.queue", "Wait behind other prompts", "s",
                     continuous * efficiency["queueing"] * others / ONE_REQUEST * prefill.time,
                     note="prefill queueing × other requests × prefill time; 0 in static batching")  # fmt: skip
    running = Quantity("serving.first_step", "First decode step", "s", continuous * step,
                       note="rest of the running step; 0 in static batching")  # fmt: skip
    served = Quantity("serving.service_time", "Time in the batch", "s",
                      handling + prefill_part + queue + running + (inputs.output_tokens / TOKENS_PER_STEP - 1) * tpot,
                      note="request handling + prefill + queue + first step + (output tokens − 1) × TPOT")  # fmt: skip
    seat = Quantity("serving.seat_wait", "Wait for a seat", "s", (held.requests - held.batch) / held.batch * served,
                    note="(requests − batch) ÷ batch × time in the batch: more requests than memory holds",
                    source="Little's law")  # fmt: skip
    ttft = Quantity("serving.ttft", "Time to first token, TTFT", "s", handling + prefill_part + queue + running + seat,
                    note="sum of the five parts above", name="TTFT")  # fmt: skip
    e2e = Quantity("serving.e2e", "End to end", "s", ttft + (inputs.output_tokens / TOKENS_PER_STEP - 1) * tpot,
                   note="TTFT + (output tokens − 1) × TPOT")  # fmt: skip
    interactivity = Quantity("serving.interactivity", "Interactivity", "token/request/s", TOKENS_PER_STEP / tpot,
                             note="1 ÷ TPOT, tokens per second one user sees")  # fmt: skip
    requests = Quantity("serving.requests_per_s", "Requests per second", "request/s", inputs.concurrency / e2e)
    output = Quantity("serving.output_tokens_per_s", "Output tokens per second", "token/s", requests * inputs.output_tokens)
    each = Quantity("serving.output_tokens_per_s_per_accelerator", "Output tokens per second and accelerator",
                    "token/s/accelerator", output / plan.accelerators, name="output tokens per accelerator")  # fmt: skip
    all_tokens = Quantity("serving.total_tokens_per_s", "Input and output tokens per second", "token/s",
                          requests * (inputs.input_tokens + inputs.output_tokens))  # fmt: skip
    sections = (
        Section("Time per output token", (others, occupied, step, stall, tpot), "mean gap between tokens of one request",
                Section.SUBTOTAL),
        Section("Time to first token", (handling, prefill_part, queue, running, served, seat, ttft), "mean, from arrival",
                Section.SUBTOTAL),
        Section("One request", (e2e, interactivity), "as its user sees it"),
        Section("Throughput", (requests, output, each, all_tokens), "whole deployment, all replicas"),
    )  # fmt: skip
    return Serving(ttft, tpot, e2e, interactivity, requests, output, each, all_tokens,
                   (handling, prefill_part, queue, running, seat), (step, stall), sections)  # fmt: skip

