# What must hold, and what deserves attention. The id is the code of a reason, which never changes; the label
# says what holds; behind ";" stands what it means where that does not hold. Sides that are no rows of other
# subjects stand in checks.eq. A block is a group of checks, in the order of the sheet: alerts ask for
# attention, all others are errors. Checks of a pool are made once for each pool: DECODE_ or DEVICE2_ stands
# before the code then.

define no = checks.fixed.flag.0
define yes = checks.fixed.flag.1
define far_from_floor = checks.fixed.1.20 | when not routed_experts
define far_from_floor = checks.fixed.1.200 | when routed_experts
define kv_allowed = checks.kv_of_model | when not TP_padding
define kv_allowed = checks.kv_padded | when TP_padding
define head_of_prompt = prefix.head | when not class_prefixes
define head_of_prompt = prefix.head_of_classes | when class_prefixes
define holds(comparison) = if_error(where(comparison, 1, 0), 0)
define of_pool(comparison) = {held}
define adds_up(left, right) = abs(left - right) <= checks.tolerance * max(abs(left), abs(right))

[check] Inputs
INPUT_INVALID  Every input is filled, of its type and in its range [flag] = holds(typed.inputs == no)
    ; The cell of an input is empty, or holds what the input cannot be.
DIMENSION_INVALID  Every dimension of the model is a number in its range [flag]
    = holds(typed.dimensions.faults == no)
    ; The cell of a dimension on IR is empty, or holds what the dimension cannot be.

[check] Inputs | when workbook
FIGURE_INVALID  Every assumption is a number in its range [flag]
    = holds(stamp.assumptions.faults == stamp.none)
    ; The cell of an assumption is empty, or holds what it cannot be; Checks names it.
OVERRIDE_INVALID  Overrides and measured values are empty or in range [flag]
    = holds(stamp.edit.invalid == stamp.none)
    ; The cell of an override or a measured value holds what it cannot be; Checks names it.
CHOICE_INVALID  Every limit and choice of the decision can be [flag]
    = holds(stamp.choice_faults == stamp.none)
    ; A cell of the decision is no number in its range, or none of its list; Checks names it: no plan wins.

[check] Structure
TENSORS_DIFFER  Tensors add up to the architecture [flag] = holds(tensors.parameters == model.parameters)
    ; The tensors as stored and the modules of the model count different numbers of parameters.
PREFILL_SUM  Limits add up to prefill time [flag] = holds(adds_up(checks.prefill_sum, prefill.time))
    ; Compute, memory, network and overhead time do not add up to the time of the prefill pass.
DECODE_SUM  Limits add up to decode time [flag] = holds(adds_up(checks.decode_sum, decode.time))
    ; Compute, memory, network and overhead time do not add up to the time of the decode step.
SHARDS_DIFFER  Products use every matrix a rank holds [flag]
    = holds(adds_up(checks.multiplied, checks.held_weights))
    ; The weights a rank multiplies with are not those that lie in its memory.
MEMORY_SUM  Memory parts add up to capacity [flag]
    = holds(adds_up(checks.memory_sum, decode.hardware.memory_capacity))
    ; Used, free and reserved memory do not add up to the memory of the accelerator.
KV_DIFFERS  KV bytes of the ranks equal the architecture [flag]
    = holds(adds_up(checks.kv_of_ranks, kv_allowed))
    ; The KV cache of all ranks is not that of the model with its copies of KV heads.
over check.KV_DIFFERS = max(it, where(plan.counted.1 > 0, 0, 1)) | when devices
STAGES_DIFFER  Stages hold every layer once [flag] = holds(checks.layers_on_stages == model.layers)
    ; The layers of all pipeline stages are not the layers of the model.
when routed_experts
TOKENS_DIFFER  As many tokens come back from experts as are sent [flag]
    = holds(adds_up(checks.tokens_dispatch, checks.tokens_combine))
    ; Dispatch and combine move different numbers of tokens.

COST_NOT_PAID  Input and output tokens pay every hour [flag]
    = holds(adds_up(token_cost.paid, token_cost.owed))
    ; What input and output tokens cost does not add up to what the hours cost.

[check] Plan | each checked pool
{OF}SYSTEM_MISMATCH  The system holds the accelerator [flag] = of_pool(hardware.system_matches == yes)
    ; The system is made of other accelerators than the one asked for.
{OF}FRAMEWORK_UNSUPPORTED  The framework runs on this maker's chips [flag]
    = of_pool(hardware.framework_runs >= yes)
    ; The framework is not known to run on chips of this maker: figures would mean nothing.
{OF}FRAMEWORK_CHIP  The framework runs on this generation of chips [flag] = of_pool(support.chip == no)
    ; The documents of the framework say that it does not run on chips of this generation.
{OF}FRAMEWORK_FORMAT  The framework runs the data types asked for [flag] = of_pool(support.formats == no)
    ; By its documents the framework cannot run weights or a KV cache in a data type asked for.
{OF}FRAMEWORK_PARALLELISM  The framework has the parallelism asked for [flag] = of_pool(support.ways == no)
    ; By its documents the framework does not have a kind of parallelism that is asked for.
when disaggregated
{OF}FRAMEWORK_DISAGGREGATED  The framework serves prefill and decode apart [flag]
    = of_pool(support.disaggregated == no)
    ; By its documents the framework has no workers of their own for prefill and decode.
when heads
{OF}HEADS_NOT_DIVISIBLE  TP divides the heads [flag] = of_pool(checks.{of}heads_left == checks.fixed.head.0)
    ; The TP ranks would hold different numbers of attention heads.
when kv_heads
{OF}KV_HEADS_NOT_DIVISIBLE  KV heads and TP divide one another [flag]
    = of_pool(checks.{of}kv_heads_left == checks.fixed.head.0)
    ; KV heads can neither be split evenly over the TP ranks nor be copied evenly to them.
when decode_CP
{OF}DCP_NOT_DIVISOR  Decode CP divides the ranks that hold the same KV heads [flag]
    = of_pool(plan.kv_ranks_left == checks.fixed.rank.0)
    ; The tokens of a KV cache can be divided only among ranks that hold the same heads.

{OF}FFN_NOT_DIVISIBLE  The ranks that share them divide the FFN sizes [flag]
    = of_pool(checks.{of}columns_left == checks.fixed.channel.0)
    ; The columns of an FFN cannot be split evenly over the ranks that share it.
when TP_of_FFNs
{OF}FFN_TP_NOT_POSSIBLE  TP of FFNs divides TP, or is the stage [flag]
    = of_pool(checks.{of}ffn_tp_wrong == no)
    ; A dense FFN is shared by ranks of one attention group, or by all of a stage.
when TP_of_the_embedding
{OF}EMBEDDING_TP_NOT_POSSIBLE  TP of the embedding is 1 or TP [flag]
    = of_pool(checks.{of}embedding_tp_wrong == no)
    ; Each rank holds the whole embedding, or the TP ranks share its rows.

{OF}EP_NOT_DIVISOR  EP divides the ranks of a stage [flag] = of_pool(plan.ranks_left == checks.fixed.rank.0)
    ; The ranks of a stage cannot be cut into EP groups of one size.
{OF}PP_EXCEEDS_LAYERS  There is a layer for every stage [flag] = of_pool(checks.{of}stages <= model.layers)
    ; The pipeline has more stages than the model has layers.
{OF}REPLICA_EXCEEDS_SYSTEM  A replica lies within what the system can join [flag]
    = of_pool(checks.{of}replica <= checks.{of}reach)
    ; A replica needs more accelerators than the system can link.
{OF}NO_LINK_BETWEEN_RANKS  Ranks that exchange messages are linked [flag] = of_pool(network.unlinked == no)
    ; Ranks shall exchange messages, but nobody states a link or network that joins them.
when routed_experts
{OF}EP_EXCEEDS_EXPERTS  There is an expert for every rank of EP [flag]
    = of_pool(checks.{of}expert_groups <= model.experts) ; There are more EP groups than experts in a layer.
when not routed_experts
{OF}EP_WITHOUT_EXPERTS  EP is 1 in a model without experts [flag]
    = of_pool(inputs.ep == checks.fixed.rank.1) ; Expert parallelism is asked of a dense model.
when recurrent_states
{OF}CP_WITH_STATE  CP is 1 in a model with recurrent states [flag]
    = of_pool(inputs.cp == checks.fixed.rank.1)
    ; A recurrent state cannot be cut along the tokens of a request.

{OF}OFFLOAD_WITHOUT_HOST  There is a link to host memory where it is used [flag]
    = of_pool(checks.{of}host_possible >= yes)
    ; Weights or KV cache shall lie on the host, but nobody states a link to it.
{OF}HOST_MEMORY_EXCEEDED  What lies on the host fits its memory [flag]
    = of_pool(startup.host <= checks.{of}host_room)
    ; What the ranks of a host have on it does not fit its memory.
when prefixes
{OF}DISK_EXCEEDED  What is kept on disk fits the disks [flag]
    = of_pool(checks.{of}disk_held <= checks.{of}disk_room)
    ; What the ranks of a host keep on disk does not fit its disks.

[check] Plan
when max_positions
CONTEXT_EXCEEDS_MODEL  Input and output lie within the model's context [flag]
    = holds(checks.length <= model.max_positions)
    ; Input and output tokens together are more than the positions the model was made for.
when longest_request
REQUEST_TOO_LONG  A request is as long as the engine is told at most [flag]
    = holds(checks.request <= checks.longest)
    ; Input and output tokens together are more than max_model_len: the server refuses them.

CP_EXCEEDS_INPUT  There is a token of the prompt for every CP rank [flag]
    = holds(checks.context_groups <= inputs.input_tokens)
    ; The prompt has fewer tokens than there are context-parallel ranks.
when prefixes
PREFIX_EXCEEDS_INPUT  A prompt is as long as what it has at its head [flag]
    = holds(head_of_prompt <= inputs.input_tokens)
    ; Shared prefix and answers of earlier turns are longer than the prompt that holds them.
when speculation
NO_PREDICTION_LAYER  The model has prediction layers where they draft [flag]
    = holds(checks.asks_prediction <= checks.holds_prediction)
    ; Its checkpoint holds no prediction layer (MTP): choose eagle, draft-model or n-gram.
NO_DRAFT_MODEL  A draft model is stated where one drafts [flag]
    = holds(speculation.by_model <= checks.draft_stated)
    ; Nobody says which model drafts: state draft_model, or its parameters and layers.
ACCEPTANCE_UNKNOWN  It is known how many drafts of such a kind are accepted [flag]
    = holds(speculation.unknown <= no)
    ; Of draft models and n-grams nobody can say it for all: state acceptance_length, or the rate.
when engine_settings
SETTING_UNKNOWN  The framework has the settings that are stated by name [flag]
    = holds(engine.settings_unknown <= no)
    ; Its release has no order of requests, attention or MoE back end of the name that is stated.
when images
IMAGES_EXCEED_INPUT  The tokens of images are a part of the prompt [flag]
    = holds(inputs.image_tokens <= inputs.input_tokens) ; A prompt has fewer tokens than its images alone.
when disaggregated
PHASES_DIFFER  The same accelerators prefill and decode [flag] = holds(checks.differences == no)
    ; Serving is aggregated, but decode is described with other accelerators than prefill.
STATIC_DISAGGREGATED  Disaggregated serving batches continuously [flag] = holds(checks.static_apart == no)
    ; Static batching and workers of their own for prefill and decode exclude each other.
NO_LINK_BETWEEN_WORKERS  Prefill and decode workers are linked [flag] = holds(checks.linked >= yes)
    ; A system without a network cannot hand the KV cache over.
when devices
LAYERS_ON_DEVICES  Each layer is on one device [flag] = holds(plan.layers_left == checks.fixed.layer.0)
    ; The layers of all devices are not the layers of the model.
STAGES_ON_DEVICES  PP is the number of devices that hold layers [flag] = holds(inputs.pp == checks.holding)
    ; PP was stated beside devices that are not alike: leave it out.
NO_LINK_BETWEEN_DEVICES  Devices that follow each other are linked [flag] = holds(checks.unlinked == no)
    ; Activations shall go from a device to the next, but there is no link: state one.

[check] Feasibility | each checked pool
{OF}MEMORY_EXCEEDED  Memory used is at most usable memory [flag] = of_pool(memory.used <= memory.limit)
    ; Weights, activations, runtime and the KV cache of the batch do not fit an accelerator.

[check] Feasibility
when request_rate
OVERLOADED  No more requests arrive than can be served [flag] = holds(checks.load <= checks.fixed.1.1)
    ; Requests wait longer and longer for as long as they arrive at this rate.

[check] Plausibility | each checked pool
{OF}EFFICIENCY_ABOVE_ONE  No fraction of a peak is above 1 [flag]
    = of_pool(efficiency.largest <= checks.fixed.1.1)
    ; An efficiency factor promises more than the datasheet's peak.
{OF}EFFICIENCY_NOT_POSITIVE  Every fraction of a peak is above 0 [flag]
    = of_pool(efficiency.smallest >= checks.fixed.1.0.001)
    ; An efficiency factor is 0 or below: something would never end.

[check] Plausibility
TTFT_BELOW_FLOOR  TTFT is above its independent floor [flag] = holds(serving.ttft >= floor.ttft)
    ; TTFT is below what a roofline of the whole model allows.
TPOT_BELOW_FLOOR  TPOT is above its independent floor [flag] = holds(serving.tpot >= floor.tpot)
    ; TPOT is below what a roofline of the whole model allows.
TTFT_BELOW_PREFILL  TTFT is at least the prefill of the prompt [flag]
    = holds(serving.ttft >= serving.prefill_through)
    ; The first token comes before the prompt has been read.
LITTLES_LAW  As many go round as are served [flag] = holds(adds_up(serving.law_kept, serving.law_served))
    ; Requests per second times the time of a request and a thought are not what is kept going.
SLOTS_EXCEEDED  Requests in the batch are at most its slots [flag] = holds(checks.in_batch <= checks.slots)
    ; By Little's law more requests are in the batch than it holds.
STEPS_EXCEEDED  No more tokens per second than steps can bring [flag]
    = holds(checks.decoded <= checks.by_steps)
    ; More tokens are served than decode steps of the whole batch could give.
PEAK_EXCEEDED  Served requests need at most the peak [flag] = holds(checks.peak_share <= checks.fixed.1.1)
    ; Prompts and tokens served per second need more FLOP/s than the accelerators have.
PREFILL_MFU  Compute used in prefill is at most 1 [flag] = holds(prefill.mfu <= checks.fixed.1.1)
    ; Prefill runs more FLOP/s than the accelerator has.
DECODE_MFU  Compute used in decode is at most 1 [flag] = holds(decode.mfu <= checks.fixed.1.1)
    ; Decode runs more FLOP/s than the accelerator has.
PREFILL_MBU  Bandwidth used in prefill is at most 1 [flag] = holds(prefill.mbu <= checks.fixed.1.1)
    ; Prefill moves more bytes per second than the memory can.
DECODE_MBU  Bandwidth used in decode is at most 1 [flag] = holds(decode.mbu <= checks.fixed.1.1)
    ; Decode moves more bytes per second than the memory can.
ERROR_VALUE  No error value among the results [flag] = holds(checks.error_values == no)
    ; Latency, throughput or memory cannot be worked out: a figure that they need is missing.
COST_ERROR_VALUE  No error value in power and cost [flag] = holds(cost.errors == no)
    ; Power or cost cannot be worked out: a figure that they need is missing.

[check] Alerts | each checked pool
when routed_experts
{OF}EXPERTS_UNEVEN  EP divides the experts [flag] = of_pool(plan.experts_left == checks.fixed.expert.0)
    ; Some ranks hold an expert more than others; the estimate is of the fullest.

{OF}OFFLOADED  Nothing lies on the host [flag] = of_pool(checks.{of}host_used <= checks.fixed.B.0)
    ; Weights or KV cache lie in host memory, and each step reads them over its link.
when not devices
{OF}LAYERS_UNEVEN  PP divides the layers [flag] = of_pool(plan.layers_left == checks.fixed.layer.0)
    ; Some stages hold a layer more than others; the pipeline waits for the fullest.

{OF}TP_CROSSES_DOMAINS  The TP ranks stand in one domain [flag]
    = of_pool(network.tp.domains <= checks.fixed.domain.1)
    ; All-reduces of every layer go over the slower network between domains.
{OF}STAGE_CROSSES_DOMAINS  The ranks of a stage stand in one domain [flag]
    = of_pool(network.stage.domains <= checks.fixed.domain.1)
    ; Messages between the ranks of a stage go over the slower network between domains.
{OF}REPLICA_CROSSES_DOMAINS  A replica stands in one domain [flag]
    = of_pool(checks.{of}replica <= hardware.accelerators)
    ; Messages between pipeline stages go over the slower network between domains.
{OF}NO_NATIVE_FORMAT  The accelerator multiplies in the formats asked for [flag]
    = of_pool(hardware.native >= yes)
    ; The accelerator has no peak for the activations' format; products run in 16 bit.
when kv_copies
{OF}KV_COPIED  KV heads are not copied [flag] = of_pool({same_cache} <= checks.fixed.1.1)
    ; There are more TP ranks than KV heads: several ranks hold the same KV cache.

{OF}WEIGHT_ONLY_FORMAT  Activations follow weights the accelerator can multiply [flag]
    = of_pool(checks.{of}stored_only == no)
    ; Wider activations leave the peak of the weights' format unused.
{OF}MORE_GROUPS_THAN_REQUESTS  There is a request for every group [flag]
    = of_pool(checks.{of}request_groups <= inputs.concurrency)
    ; Some replicas or attention groups have no request to work on.

[check] Alerts
SP_WITHOUT_TP  Sequence parallelism has TP ranks [flag] = holds(checks.sequence_useless == no)
    ; Sequence parallelism is on, but there is one TP rank only: it does nothing.
when devices
SPLIT_NOT_BEST  No other listed split of layers is faster [flag] = holds(step_used <= checks.split)
    ; Layers split evenly, by memory or by bandwidth would give a shorter step, all else as good.
LINK_INFERRED  Links between devices are stated [flag] = holds(checks.inferred == no)
    ; Links that nobody stated are inferred from the ports of the machines.
when request_rate
SATURATED  The load can be borne [flag] = holds(load.utilisation <= checks.fixed.1.0.8)
    ; More requests arrive than 80 % of what can be served: waits are longer than estimated.
when sessions
SESSIONS_DIFFER  As many requests are in flight as sessions have [flag]
    = holds(checks.sessions_differ <= checks.fixed.1.0.05)
    ; A rate or a concurrency is stated beside sessions, or they nearly saturate the deployment.

KV_QUEUE  The KV cache holds all requests [flag]
    = holds(decode.memory.requests <= decode.memory.capacity_sequences)
    ; The batch is full, and further requests wait for a batch slot.
when not devices
TTFT_FAR_FROM_FLOOR  TTFT is not far above its floor [flag] = holds(checks.ttft_times <= far_from_floor)
    ; TTFT is many times what the hardware allows: waits or overhead make most of it.
TPOT_FAR_FROM_FLOOR  TPOT is not far above its floor [flag] = holds(checks.tpot_times <= far_from_floor)
    ; TPOT is many times what the hardware allows: overhead or messages make most of it.

PRICE_UNKNOWN  A price is known on the basis asked for [flag] = holds(cost.known >= yes)
    ; Nobody states a price of the accelerator on this basis: costs are shown as unknown.
PRICE_OLD  The price is not old on the day asked for [flag] = holds(cost.prices_young >= yes)
    ; The price is older than Cost allows, or nobody knows its day: ask for one of today.
when prefixes
PREFIXES_WITHOUT_ROOM  Every prefix that requests come back to has room [flag]
    = holds(prefix.hit_rate >= prefix.asked)
    ; Some prefixes are thrown out before a request comes back to them, and are worked out again.
when prefixes, recurrent_states
PREFIX_OF_STATES  No prefix is found that ends in a recurrent state [flag]
    = holds(prefix.hit_rate <= checks.fixed.1.0)
    ; Engines keep recurrent states at few places of a prompt: fewer tokens may be found.
when speculation
ACCEPTANCE_ASSUMED  Somebody states how many draft tokens are accepted [flag]
    = holds(speculation.assumed <= no)
    ; The acceptance is that published of one prediction layer. It differs by text and drafter.
DRAFTS_BRING_NOTHING  Drafts bring something with so many requests [flag]
    = holds(checks.drafted_for <= gain.break_even)
    ; At this batch a step with drafts gives fewer tokens per second than one without.
when engine_settings
SETTING_NOT_MODELLED  Order of requests and kernels are the usual ones [flag]
    = holds(engine.settings_left_out <= no)
    ; An order of requests, or kernels, are stated that are not modelled: figures are those without.

POWER_UNKNOWN  The power limit is stated [flag] = holds(cost.power_known >= yes)
    ; Nobody states the power limit of the accelerator: power is shown as unknown.
when config
CONFIG_FIELDS_UNKNOWN  Every field of the config is known [flag]
    = holds(checks.config_unknown == checks.fixed.1.0)
    ; The config has fields that nobody reads and whose meaning is not known: IR names them.
when remarks
MODEL_HAS_REMARKS  The model was read without remarks [flag] = holds(checks.remarks == checks.fixed.1.0)
    ; A step is priced as something near it, or its class fills in a dimension: IR names them.

[check] Alerts | when workbook
INPUTS_CHANGED  Inputs and results are those of generation [flag] = holds(stamp.edit.all == stamp.none)
    ; An input was edited after the workbook was made. Log says which, and what it held.
