"""Reason codes: what each check asks for, and what it means where it does not hold. A code never changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Rule = Literal["exactly", "within", "at most", "at least"]
Group = Literal["Inputs", "Structure", "Plan", "Feasibility", "Plausibility", "Alerts"]

INPUTS: Group = "Inputs"
STRUCTURE: Group = "Structure"
PLAN: Group = "Plan"
FEASIBILITY: Group = "Feasibility"
PLAUSIBILITY: Group = "Plausibility"
ALERTS: Group = "Alerts"
GROUPS = (INPUTS, STRUCTURE, PLAN, FEASIBILITY, PLAUSIBILITY, ALERTS)
"""Groups of checks in the order in which they are read. Alerts ask for attention; all others are errors."""


@dataclass(frozen=True)
class Reason:
    """A check without its two sides.

    Args:
        rule: how the left side must stand to the right one; within: up to rounding.
        label: what holds.
        meaning: what it means where it does not hold, in one line.
        of_workers: asked of each set of workers; the code of decode workers begins with "DECODE_".
    """

    code: str
    group: Group
    rule: Rule
    label: str
    meaning: str
    of_workers: bool = False

    @property
    def error(self) -> bool:
        """Whether the workbook fails where it does not hold."""
        return self.group != ALERTS


def _of_workers(code: str, group: Group, rule: Rule, label: str, meaning: str) -> Reason:
    return Reason(code, group, rule, label, meaning, of_workers=True)


_TABLE = (
    Reason("INPUT_INVALID", INPUTS, "exactly", "Every input is filled, of its type and in its range",
           "The cell of an input is empty, or holds what the input cannot be."),
    Reason("DIMENSION_INVALID", INPUTS, "exactly", "Every dimension of the model is a number in its range",
           "The cell of a dimension on IR is empty, or holds what the dimension cannot be."),
    Reason("FIGURE_INVALID", INPUTS, "exactly", "Every assumption is a number in its range",
           "The cell of an assumption is empty, or holds what it cannot be; Checks names it."),
    Reason("OVERRIDE_INVALID", INPUTS, "exactly", "Overrides and measured values are empty or in range",
           "The cell of an override or a measured value holds what it cannot be; Checks names it."),
    Reason("CHOICE_INVALID", INPUTS, "exactly", "Every limit and choice of the decision can be",
           "A cell of the decision is no number in its range, or none of its list; Checks names it: no plan "
           "wins."),

    Reason("TENSORS_DIFFER", STRUCTURE, "exactly", "Tensors add up to the architecture",
           "The tensors as stored and the modules of the model count different numbers of parameters."),
    Reason("PREFILL_SUM", STRUCTURE, "within", "Limits add up to prefill time",
           "Compute, memory, network and overhead time do not add up to the time of the prefill pass."),
    Reason("DECODE_SUM", STRUCTURE, "within", "Limits add up to decode time",
           "Compute, memory, network and overhead time do not add up to the time of the decode step."),
    Reason("SHARDS_DIFFER", STRUCTURE, "within", "Products use every matrix a rank holds",
           "The weights a rank multiplies with are not those that lie in its memory."),
    Reason("MEMORY_SUM", STRUCTURE, "within", "Memory parts add up to capacity",
           "Used, free and reserved memory do not add up to the memory of the accelerator."),
    Reason("KV_DIFFERS", STRUCTURE, "within", "KV bytes of the ranks equal the architecture",
           "The KV cache of all ranks is not that of the model with its copies of KV heads."),
    Reason("STAGES_DIFFER", STRUCTURE, "exactly", "Stages hold every layer once",
           "The layers of all pipeline stages are not the layers of the model."),
    Reason("TOKENS_DIFFER", STRUCTURE, "within", "As many tokens come back from experts as are sent",
           "Dispatch and combine move different numbers of tokens."),
    Reason("COST_NOT_PAID", STRUCTURE, "within", "Input and output tokens pay every hour",
           "What input and output tokens cost does not add up to what the hours cost."),

    _of_workers("SYSTEM_MISMATCH", PLAN, "exactly", "The system holds the accelerator",
                "The system is made of other accelerators than the one asked for."),
    _of_workers("HEADS_NOT_DIVISIBLE", PLAN, "exactly", "TP divides the heads",
                "The TP ranks would hold different numbers of attention heads."),
    _of_workers("KV_HEADS_NOT_DIVISIBLE", PLAN, "exactly", "KV heads and TP divide one another",
                "KV heads can neither be split evenly over the TP ranks nor be copied evenly to them."),
    _of_workers("DCP_NOT_DIVISOR", PLAN, "exactly", "Decode CP divides the ranks that hold the same KV heads",
                "The tokens of a KV cache can be divided only among ranks that hold the same heads."),
    _of_workers("FFN_NOT_DIVISIBLE", PLAN, "exactly", "The ranks that share them divide the FFN sizes",
                "The columns of an FFN cannot be split evenly over the ranks that share it."),
    _of_workers("FFN_TP_NOT_POSSIBLE", PLAN, "exactly", "TP of FFNs divides TP, or is the stage",
                "A dense FFN is shared by ranks of one attention group, or by all of a stage."),
    _of_workers("EMBEDDING_TP_NOT_POSSIBLE", PLAN, "exactly", "TP of the embedding is 1 or TP",
                "Each rank holds the whole embedding, or the TP ranks share its rows."),
    _of_workers("EP_NOT_DIVISOR", PLAN, "exactly", "EP divides the ranks of a stage",
                "The ranks of a stage cannot be cut into EP groups of one size."),
    _of_workers("PP_EXCEEDS_LAYERS", PLAN, "at most", "There is a layer for every stage",
                "The pipeline has more stages than the model has layers."),
    _of_workers("REPLICA_EXCEEDS_SYSTEM", PLAN, "at most", "A replica lies within what the system can join",
                "A replica needs more accelerators than the system can link."),
    _of_workers("NO_LINK_BETWEEN_RANKS", PLAN, "exactly", "Ranks that exchange messages are linked",
                "Ranks shall exchange messages, but nobody states a link or network that joins them."),
    _of_workers("EP_EXCEEDS_EXPERTS", PLAN, "at most", "There is an expert for every rank of EP",
                "There are more EP groups than experts in a layer."),
    _of_workers("EP_WITHOUT_EXPERTS", PLAN, "exactly", "EP is 1 in a model without experts",
                "Expert parallelism is asked of a dense model."),
    _of_workers("CP_WITH_STATE", PLAN, "exactly", "CP is 1 in a model with recurrent states",
                "A recurrent state cannot be cut along the tokens of a request."),
    _of_workers("OFFLOAD_WITHOUT_HOST", PLAN, "at least", "There is a link to host memory where it is used",
                "Weights or KV cache shall lie on the host, but nobody states a link to it."),
    _of_workers("HOST_MEMORY_EXCEEDED", PLAN, "at most", "What lies on the host fits its memory",
                "What the ranks of a host have on it does not fit its memory."),
    _of_workers("DISK_EXCEEDED", PLAN, "at most", "What is kept on disk fits the disks",
                "What the ranks of a host keep on disk does not fit its disks."),
    _of_workers("FRAMEWORK_UNSUPPORTED", PLAN, "at least", "The framework runs on this maker's chips",
                "The framework is not known to run on chips of this maker: figures would mean nothing."),
    _of_workers("FRAMEWORK_CHIP", PLAN, "exactly", "The framework runs on this generation of chips",
                "The documents of the framework say that it does not run on chips of this generation."),
    _of_workers("FRAMEWORK_FORMAT", PLAN, "exactly", "The framework runs the data types asked for",
                "By its documents the framework cannot run weights or a KV cache in a data type asked for."),
    _of_workers("FRAMEWORK_PARALLELISM", PLAN, "exactly", "The framework has the parallelism asked for",
                "By its documents the framework does not have a kind of parallelism that is asked for."),
    _of_workers("FRAMEWORK_DISAGGREGATED", PLAN, "exactly", "The framework serves prefill and decode apart",
                "By its documents the framework has no workers of their own for prefill and decode."),
    Reason("CONTEXT_EXCEEDS_MODEL", PLAN, "at most", "Input and output lie within the model's context",
           "Input and output tokens together are more than the positions the model was made for."),
    Reason("REQUEST_TOO_LONG", PLAN, "at most", "A request is as long as the engine is told at most",
           "Input and output tokens together are more than max_model_len: the server refuses them."),
    Reason("SETTING_UNKNOWN", PLAN, "at most", "The framework has the settings that are stated by name",
           "Its release has no order of requests, attention or MoE back end of the name that is stated."),
    Reason("CP_EXCEEDS_INPUT", PLAN, "at most", "There is a token of the prompt for every CP rank",
           "The prompt has fewer tokens than there are context-parallel ranks."),
    Reason("IMAGES_EXCEED_INPUT", PLAN, "at most", "The tokens of images are a part of the prompt",
           "A prompt has fewer tokens than its images alone."),
    Reason("PREFIX_EXCEEDS_INPUT", PLAN, "at most", "A prompt is as long as what it has at its head",
           "Shared prefix and answers of earlier turns are longer than the prompt that holds them."),
    Reason("NO_PREDICTION_LAYER", PLAN, "at most", "The model has prediction layers where they draft",
           "Its checkpoint holds no prediction layer (MTP): choose eagle, draft-model or n-gram."),
    Reason("NO_DRAFT_MODEL", PLAN, "at most", "A draft model is stated where one drafts",
           "Nobody says which model drafts: state draft_model, or its parameters and layers."),
    Reason("ACCEPTANCE_UNKNOWN", PLAN, "at most", "It is known how many drafts of such a kind are accepted",
           "Of draft models and n-grams nobody can say it for all: state acceptance_length, or the rate."),
    Reason("PHASES_DIFFER", PLAN, "exactly", "The same accelerators prefill and decode",
           "Serving is aggregated, but decode is described with other accelerators than prefill."),
    Reason("STATIC_DISAGGREGATED", PLAN, "exactly", "Disaggregated serving batches continuously",
           "Static batching and workers of their own for prefill and decode exclude each other."),
    Reason("NO_LINK_BETWEEN_WORKERS", PLAN, "at least", "Prefill and decode workers are linked",
           "A system without a network cannot hand the KV cache over."),

    Reason("LAYERS_ON_DEVICES", PLAN, "exactly", "Each layer is on one device",
           "The layers of all devices are not the layers of the model."),
    Reason("STAGES_ON_DEVICES", PLAN, "exactly", "PP is the number of devices that hold layers",
           "PP was stated beside devices that are not alike: leave it out."),
    Reason("NO_LINK_BETWEEN_DEVICES", PLAN, "exactly", "Devices that follow each other are linked",
           "Activations shall go from a device to the next, but there is no link: state one."),

    _of_workers("MEMORY_EXCEEDED", FEASIBILITY, "at most", "Memory used is at most usable memory",
                "Weights, activations, runtime and the KV cache of the batch do not fit an accelerator."),

    Reason("OVERLOADED", FEASIBILITY, "at most", "No more requests arrive than can be served",
           "Requests wait longer and longer for as long as they arrive at this rate."),

    _of_workers("EFFICIENCY_ABOVE_ONE", PLAUSIBILITY, "at most", "No fraction of a peak is above 1",
                "An efficiency factor promises more than the datasheet's peak."),
    _of_workers("EFFICIENCY_NOT_POSITIVE", PLAUSIBILITY, "at least", "Every fraction of a peak is above 0",
                "An efficiency factor is 0 or below: something would never end."),
    Reason("TTFT_BELOW_FLOOR", PLAUSIBILITY, "at least", "TTFT is above its independent floor",
           "TTFT is below what a roofline of the whole model allows."),
    Reason("TPOT_BELOW_FLOOR", PLAUSIBILITY, "at least", "TPOT is above its independent floor",
           "TPOT is below what a roofline of the whole model allows."),
    Reason("TTFT_BELOW_PREFILL", PLAUSIBILITY, "at least", "TTFT is at least the prefill of the prompt",
           "The first token comes before the prompt has been read."),
    Reason("LITTLES_LAW", PLAUSIBILITY, "within", "As many go round as are served",
           "Requests per second times the time of a request and a thought are not what is kept going."),
    Reason("SLOTS_EXCEEDED", PLAUSIBILITY, "at most", "Requests in the batch are at most its slots",
           "By Little's law more requests are in the batch than it holds."),
    Reason("STEPS_EXCEEDED", PLAUSIBILITY, "at most", "No more tokens per second than steps can bring",
           "More tokens are served than decode steps of the whole batch could give."),
    Reason("PEAK_EXCEEDED", PLAUSIBILITY, "at most", "Served requests need at most the peak",
           "Prompts and tokens served per second need more FLOP/s than the accelerators have."),
    Reason("PREFILL_MFU", PLAUSIBILITY, "at most", "Compute used in prefill is at most 1",
           "Prefill runs more FLOP/s than the accelerator has."),
    Reason("DECODE_MFU", PLAUSIBILITY, "at most", "Compute used in decode is at most 1",
           "Decode runs more FLOP/s than the accelerator has."),
    Reason("PREFILL_MBU", PLAUSIBILITY, "at most", "Bandwidth used in prefill is at most 1",
           "Prefill moves more bytes per second than the memory can."),
    Reason("DECODE_MBU", PLAUSIBILITY, "at most", "Bandwidth used in decode is at most 1",
           "Decode moves more bytes per second than the memory can."),
    Reason("ERROR_VALUE", PLAUSIBILITY, "exactly", "No error value among the results",
           "Latency, throughput or memory cannot be worked out: a figure that they need is missing."),
    Reason("COST_ERROR_VALUE", PLAUSIBILITY, "exactly", "No error value in power and cost",
           "Power or cost cannot be worked out: a figure that they need is missing."),

    _of_workers("EXPERTS_UNEVEN", ALERTS, "exactly", "EP divides the experts",
                "Some ranks hold an expert more than others; the estimate is of the fullest."),
    _of_workers("OFFLOADED", ALERTS, "at most", "Nothing lies on the host",
                "Weights or KV cache lie in host memory, and each step reads them over its link."),
    _of_workers("LAYERS_UNEVEN", ALERTS, "exactly", "PP divides the layers",
                "Some stages hold a layer more than others; the pipeline waits for the fullest."),
    Reason("SPLIT_NOT_BEST", ALERTS, "at most", "No other listed split of layers is faster",
           "Layers split evenly, by memory or by bandwidth would give a shorter step, all else as good."),
    Reason("LINK_INFERRED", ALERTS, "exactly", "Links between devices are stated",
           "Links that nobody stated are inferred from the ports of the machines."),
    _of_workers("TP_CROSSES_DOMAINS", ALERTS, "at most", "The TP ranks stand in one domain",
                "All-reduces of every layer go over the slower network between domains."),
    _of_workers("STAGE_CROSSES_DOMAINS", ALERTS, "at most", "The ranks of a stage stand in one domain",
                "Messages between the ranks of a stage go over the slower network between domains."),
    _of_workers("REPLICA_CROSSES_DOMAINS", ALERTS, "at most", "A replica stands in one domain",
                "Messages between pipeline stages go over the slower network between domains."),
    _of_workers("NO_NATIVE_FORMAT", ALERTS, "at least", "The accelerator multiplies in the formats asked for",
                "The accelerator has no peak for the activations' format; products run in 16 bit."),
    _of_workers("KV_COPIED", ALERTS, "at most", "KV heads are not copied",
                "There are more TP ranks than KV heads: several ranks hold the same KV cache."),
    _of_workers("WEIGHT_ONLY_FORMAT", ALERTS, "exactly",
                "Activations follow weights the accelerator can multiply",
                "Wider activations leave the peak of the weights' format unused."),
    _of_workers("MORE_GROUPS_THAN_REQUESTS", ALERTS, "at most", "There is a request for every group",
                "Some replicas or attention groups have no request to work on."),
    Reason("SP_WITHOUT_TP", ALERTS, "exactly", "Sequence parallelism has TP ranks",
           "Sequence parallelism is on, but there is one TP rank only: it does nothing."),
    Reason("SATURATED", ALERTS, "at most", "The load can be borne",
           "More requests arrive than 80 % of what can be served: waits are longer than estimated."),
    Reason("SESSIONS_DIFFER", ALERTS, "at most", "As many requests are in flight as sessions have",
           "A rate or a concurrency is stated beside sessions, or they nearly saturate the deployment."),
    Reason("KV_QUEUE", ALERTS, "at most", "The KV cache holds all requests",
           "The batch is full, and further requests wait for a batch slot."),
    Reason("TTFT_FAR_FROM_FLOOR", ALERTS, "at most", "TTFT is not far above its floor",
           "TTFT is many times what the hardware allows: waits or overhead make most of it."),
    Reason("TPOT_FAR_FROM_FLOOR", ALERTS, "at most", "TPOT is not far above its floor",
           "TPOT is many times what the hardware allows: overhead or messages make most of it."),
    Reason("PREFIXES_WITHOUT_ROOM", ALERTS, "at least", "Every prefix that requests come back to has room",
           "Some prefixes are thrown out before a request comes back to them, and are worked out again."),
    Reason("PREFIX_OF_STATES", ALERTS, "at most", "No prefix is found that ends in a recurrent state",
           "Engines keep recurrent states at few places of a prompt: fewer tokens may be found."),
    Reason("SETTING_NOT_MODELLED", ALERTS, "at most", "Order of requests and kernels are the usual ones",
           "An order of requests, or kernels, are stated that are not modelled: figures are those without."),
    Reason("ACCEPTANCE_ASSUMED", ALERTS, "at most", "Somebody states how many draft tokens are accepted",
           "The acceptance is that published of one prediction layer. It differs by text and drafter."),
    Reason("DRAFTS_BRING_NOTHING", ALERTS, "at most", "Drafts bring something with so many requests",
           "At this batch a step with drafts gives fewer tokens per second than one without."),
    Reason("PRICE_UNKNOWN", ALERTS, "at least", "A price is known on the basis asked for",
           "Nobody states a price of the accelerator on this basis: costs are shown as unknown."),
    Reason("PRICE_OLD", ALERTS, "at least", "The price is not old on the day asked for",
           "The price is older than Cost allows, or nobody knows its day: ask for one of today."),
    Reason("POWER_UNKNOWN", ALERTS, "at least", "The power limit is stated",
           "Nobody states the power limit of the accelerator: power is shown as unknown."),
    Reason("CONFIG_FIELDS_UNKNOWN", ALERTS, "exactly", "Every field of the config is known",
           "The config has fields that nobody reads and whose meaning is not known: IR names them."),
    Reason("MODEL_HAS_REMARKS", ALERTS, "exactly", "The model was read without remarks",
           "A step is priced as something near it, or its class fills in a dimension: IR names them."),
    Reason("INPUTS_CHANGED", ALERTS, "exactly", "Inputs and results are those of generation",
           "An input was edited after the workbook was made. Log says which, and what it held."),
)  # fmt: skip

REASONS = {reason.code: reason for reason in _TABLE}


def reasons() -> Iterator[tuple[str, str, str]]:
    """Every reason code with its group and what it means where the check does not hold, for documents.

    Example:
        >>> next(reasons())[:2]
        ('TENSORS_DIFFER', 'Structure')
    """
    for reason in _TABLE:
        yield reason.code, reason.group, reason.meaning
