# Messages between ranks in a pass: which collective a module needs, over which ranks, how often, and how long
# it takes. One attention group: an all-reduce after every mixer and FFN, or with sequence parallelism a
# reduce-scatter and an all-gather. Several groups (attention-DP, CP): FFNs gather the tokens of the stage and
# scatter their results; with EP tokens are sent to the ranks of their experts and back instead. Between
# pipeline stages activations go from rank to rank. Python says how many mixers, FFNs and attention cores a
# model has.

# FFNs are spread over several attention groups, whose tokens they gather. Where tokens are sent to their
# experts, every group keeps its dense FFNs to itself.
define gathers_tokens = plan.groups > 1 | when not routed_experts
define gathers_tokens = all(plan.groups > 1, plan.sends_tokens <= 0) | when routed_experts
# A group holds whole dense FFNs; fewer ranks than those of attention share one.
define own_ffns = all(inputs.ffn_tp > 0, inputs.ffn_tp <= inputs.tp)
define narrow_ffns = all(own_ffns, inputs.ffn_tp < inputs.tp)
# FFNs of a pass that gather tokens, where any do.
define gathering = ffns | when not TP_of_FFNs
define gathering = ffns | when TP_of_FFNs, not dense_ffns
define gathering = dense * where(own_ffns, 0, 1) | when TP_of_FFNs, dense_ffns, not routed_experts
define gathering = dense * where(own_ffns, 0, 1) + experts | when TP_of_FFNs, dense_ffns, routed_experts
define hop(steps, size) = (steps + size * network.p2p.per_byte) * (1 - efficiency.p2p_overlap)

[messages] All-reduce | after mixer and FFN, over the TP ranks | subtotal | each pass
all_reduce.message_bytes  Message bytes, all-reduce (message bytes) [B]
            = rank_tokens * (model.hidden_size * result_bytes)
all_reduce.ends  Mixers, FFNs and the embedding that need a sum, all-reduce
            (mixers, FFNs and the embedding that need a sum) [1] = mixers
            ; FFNs gather tokens instead where several attention groups share them
over {space}all_reduce.ends = it - where(inputs.embedding_tp == 1, 1, 0) | when TP_of_the_embedding
over {space}all_reduce.ends = it + where(gathers_tokens, 0, dense) | when dense_ffns, not TP_of_FFNs
over {space}all_reduce.ends = it + where(own_ffns, where(narrow_ffns, 0, dense), where(gathers_tokens, 0,
            dense)) | when dense_ffns, TP_of_FFNs
over {space}all_reduce.ends = it + where(plan.groups > 1, 0, experts) | when routed_experts

[messages] Sum of FFNs
  | scattered and gathered over the ranks that share an FFN, where these are fewer than TP | subtotal
  | when TP_of_FFNs, dense_ffns | each pass
ffn_sum.message_bytes  Message bytes, sum of FFNs (message bytes) [B]
            = rank_tokens * (model.hidden_size * result_bytes)

# None in most models.
[messages] All-reduce inside mixers | over the TP ranks | subtotal | when sums_inside | each pass
when sums_of_products
inner_reduce.message_bytes  Message bytes, all-reduce inside mixers (message bytes) [B]
            = rank_tokens * width_inside * result_bytes
when not sums_of_products
inner_reduce.message_bytes  Message bytes, all-reduce inside mixers (message bytes) [B]
            = rank_tokens * 1 * result_bytes ; a norm needs one figure of every token

[messages] Scatter and gather | sequence parallelism, over the TP ranks | subtotal | each pass

[messages] Gather of tokens | several attention groups, over the ranks of a stage | subtotal | when ffns
  | each pass
gather.message_bytes  Message bytes, gather of tokens (message bytes) [B]
            = tokens * (model.hidden_size * result_bytes)

# A token goes to a rank once, whatever it needs there.
for m | title | between | own | value in
  dispatch | Dispatch | tokens to the ranks of their experts | sends | hardware.experts.activation_bytes;
  combine | Combine | results back to the ranks of their tokens | gets back | result_bytes
[messages] {title} | {between} | subtotal | when routed_experts | each pass
{m}.own_tokens  Tokens a rank {own}, {m} (tokens a rank {own}) [token] = tokens / plan.stage_ranks
{m}.message_bytes  Message bytes, {m} (message bytes) [B]
            = {m}.own_tokens * network.all_to_all.copies * model.hidden_size * {value}

# Keys and values of the prompt in prefill, partial results in decode.
[messages] Context exchange | among the CP groups; nothing without context parallelism | subtotal
  | when attention_cores | each pass

[messages] Context exchange | when attention_cores | each prompt
context.message_bytes  Bytes of all layers, context exchange (bytes of all layers) [B]
            = rank_requests * inputs.input_tokens * memory.kv_bytes_per_token * (inputs.cp - 1) / inputs.cp
            ; each part goes once around

[messages] Context exchange | when several_cores | each core
context.channels_of.{n}  Channels of results, part {n}, context exchange
            (channels of results, part {n}) [channel] = result_channels.{n}

[messages] Context exchange | when attention_cores | each step
context.channels  Channels of results, all layers, context exchange
            (channels of results, all layers) [channel] = result_channels.1
over {space}context.channels = sum(*[context.channels_of.*]) | when several_cores
context.message_bytes  Bytes of all layers, context exchange (bytes of all layers) [B]
            = rank_tokens * context.channels * result_bytes * (inputs.cp - 1) / inputs.cp
            ; each part goes once around

[messages] Context exchange | when attention_cores | each pass
context.steps  Messages of all layers, context exchange (messages of all layers) [1] = cores * (inputs.cp - 1)
context.layer_time  Time of one pass, context exchange (time of one pass) [s]
            = hop(context.steps * network.p2p.latency, context.message_bytes)

# What ranks that share the tokens of a KV cache exchange in decode: queries of all their heads are gathered
# before attention; its partial results are scattered and summed behind it, with a number for each head that
# says how much they weigh.
for m | title | label | side | of in query_shares | Gather of queries | gather of queries | before | query;
  result_shares | Scatter of results | scatter of results | behind | result
[messages] {title} | {side} attention, over the ranks of decode CP | subtotal
  | when decode_CP, attention_cores | each step

for m | title | label | of in query_shares | Gather of queries | gather of queries | query;
  result_shares | Scatter of results | scatter of results | result
[messages] {title} | when decode_CP, several_cores | each core
{m}.channels_of.{n}  Channels in all layers, part {n}, {label} (channels in all layers, part {n}) [channel]
            = {of}_channels.{n}

for m | title | label | of in query_shares | Gather of queries | gather of queries | query;
  result_shares | Scatter of results | scatter of results | result
[messages] {title} | when decode_CP, attention_cores | each step
{m}.channels  Channels of a rank, {label} (channels of a rank) [channel]
            = {of}_channels.1 / cores ; of a layer
over {space}{m}.channels = sum(*[{m}.channels_of.*]) / cores | when several_cores
{m}.message_bytes  Message bytes, {label} (message bytes) [B]
            = rank_tokens * {m}.channels * inputs.dcp * result_bytes ; of all heads whose tokens are shared

[messages] Stage to stage | between pipeline stages | subtotal | each pass
p2p.message_bytes  Message bytes, stage to stage (message bytes) [B]
            = norm_tokens * model.hidden_size * result_bytes
p2p.layer_time  Time of one, stage to stage (time of one) [s] = hop(network.p2p.latency, p2p.message_bytes)

# Of each collective the time of every algorithm; the cheapest counts.
for m | title | label | when in all_reduce | All-reduce | all-reduce |;
  inner_reduce | All-reduce inside mixers | all-reduce inside mixers | sums_inside
[messages] {title} | when {when} | each pass
for a | way in ring | ring; one_shot | one-shot; two_shot | two-shot; in_switch | in-switch; torus | torus;
  hierarchical | hierarchical
{m}.by.{a}  Time, {way}, {label} (time, {way}) [s]
            = where(is_number(network.all_reduce.{a}.latency), network.all_reduce.{a}.latency +
            {m}.message_bytes * network.all_reduce.{a}.per_byte, 'no way')

for m | title | label | c | sized | where | when in
  ffn_sum | Sum of FFNs | sum of FFNs | ffn_sum | ffn_sum | pass | TP_of_FFNs, dense_ffns;
  sequence | Scatter and gather | scatter and gather | sequence | all_reduce | pass |;
  gather | Gather of tokens | gather of tokens | gather | gather | pass | ffns;
  dispatch | Dispatch | dispatch | all_to_all | dispatch | pass | routed_experts;
  combine | Combine | combine | all_to_all | combine | pass | routed_experts;
  query_shares | Gather of queries | gather of queries | shares | query_shares | step |
  decode_CP, attention_cores;
  result_shares | Scatter of results | scatter of results | shares | result_shares | step |
  decode_CP, attention_cores
[messages] {title} | when {when} | each {where}
for a in direct; ring; torus; hierarchical
{m}.by.{a}  Time, {a}, {label} (time, {a}) [s]
            = where(is_number(network.{c}.{a}.latency), network.{c}.{a}.latency + {sized}.message_bytes *
            network.{c}.{a}.per_byte, 'no way')

for m | title | label | c | ranks | overlap | number | where | when in
  all_reduce | All-reduce | all-reduce | all_reduce | inputs.tp | all_reduce |
  all_reduce.ends * where(plan.sequence > 1, 0, 1) | pass |;
  ffn_sum | Sum of FFNs | sum of FFNs | ffn_sum | max(1, inputs.ffn_tp) | gather |
  ring_phases * dense * where(narrow_ffns, 1, 0) | pass | TP_of_FFNs, dense_ffns;
  inner_reduce | All-reduce inside mixers | all-reduce inside mixers | all_reduce | inputs.tp | all_reduce |
  inside | pass | sums_inside;
  sequence | Scatter and gather | scatter and gather | sequence | inputs.tp | gather |
  ring_phases * all_reduce.ends * where(plan.sequence > 1, 1, 0) | pass |;
  gather | Gather of tokens | gather of tokens | gather | plan.stage_ranks | gather |
  ring_phases * gathering * where(gathers_tokens, 1, 0) | pass | ffns;
  dispatch | Dispatch | dispatch | all_to_all | plan.stage_ranks | all_to_all |
  experts * plan.sends_tokens | pass | routed_experts;
  combine | Combine | combine | all_to_all | plan.stage_ranks | all_to_all |
  experts * plan.sends_tokens | pass | routed_experts;
  query_shares | Gather of queries | gather of queries | shares | inputs.dcp | gather |
  cores * where(inputs.dcp > 1, 1, 0) | step | decode_CP, attention_cores;
  result_shares | Scatter of results | scatter of results | shares | inputs.dcp | gather |
  cores * where(inputs.dcp > 1, 1, 0) | step | decode_CP, attention_cores
[messages] {title} | when {when} | each {where}
{m}.cheapest  Time of the cheapest, {label} (time of the cheapest) [s]
            = where(count_where([{m}.by.*], at_least(0)) > 0, least([{m}.by.*]), 'no way')
{m}.algorithm  Algorithm, {label} (algorithm) [1]
            = where(is_number({m}.cheapest), index([network.{c}.*.name], match({m}.cheapest, [{m}.by.*])),
            'no way')
{m}.layer_time  Time of one, {label} (time of one) [s]
            = where(all({ranks} > 1, is_number({m}.cheapest)), {m}.cheapest * (1 -
            efficiency.{overlap}_overlap), 0) ; what is not hidden behind computation
{m}.count   Number in a pass, {label} (number in a pass) [1] = {number}
{m}.bound   Bound by, {label} (bound by) [1] = 'network'
{m}.time    Time, {label} (time) [s] = {m}.layer_time * {m}.count

for m | title | label | number | when in
  context | Context exchange | context exchange | 1 | attention_cores;
  p2p | Stage to stage | stage to stage | inputs.pp - 1 |
[messages] {title} | when {when} | each pass
{m}.count   Number in a pass, {label} (number in a pass) [1] = {number}
{m}.bound   Bound by, {label} (bound by) [1] = 'network'
{m}.time    Time, {label} (time) [s] = {m}.layer_time * {m}.count

[messages] Messages of a layer | which of them follow a step | each pass
after.mixer  Messages after a mixer [s]
            = where(plan.sequence > 1, ring_phases * sequence.layer_time, all_reduce.layer_time)
            ; sequence parallelism scatters and gathers
when ffns
after.ffn   Messages after an FFN [s]
            = where(gathers_tokens, ring_phases * gather.layer_time, after.mixer)
            ; several attention groups gather tokens before it and scatter them after it
when TP_of_FFNs, dense_ffns
after.dense  Messages after a dense FFN [s]
            = where(own_ffns, where(narrow_ffns, ring_phases * ffn_sum.layer_time, after.mixer), after.ffn)
when routed_experts
after.experts  Messages after experts [s]
            = where(plan.sends_tokens > 0, dispatch.layer_time + combine.layer_time, after.ffn)
when ffns
after.ffn_bytes  Bytes of messages after an FFN [B]
            = where(gathers_tokens, gather.message_bytes, all_reduce.message_bytes)
when routed_experts
after.experts_bytes  Bytes of messages after experts [B]
            = where(plan.sends_tokens > 0, dispatch.message_bytes + combine.message_bytes, after.ffn_bytes)
