# Settings of an engine by the names that engines give them; rows only of what a scenario states. What each
# framework takes where nothing is stated, and the names that it knows, are tables: engine.py.

define of_engine(figures) = index(figures, place)
define unless_general(stated, general) = where(all(asked > 0, stated > 0), stated, general)
define is_unknown(stated, listed) = stated * (1 - listed)

[engine] Memory for the engine | what it is told, and what others take
when memory_share
share_of_framework  What the share of memory is of [1]
            = index(framework.memory_share, match(inputs.framework, framework.name))
static      Share of memory for weights and KV cache alone [1]
            = where(inputs.mem_fraction_static > 0, inputs.mem_fraction_static, efficiency.memory_usable)
of_static   What the share is of, where none of all memory is told [1]
            = where(inputs.mem_fraction_static > 0, 'static', share_of_framework)
share       Share of memory in use [1]
            = where(inputs.gpu_memory_utilization > 0, inputs.gpu_memory_utilization, static)
share_of    What it is of [1] = where(inputs.gpu_memory_utilization > 0, 'all', of_static)

when other_models
taken       Memory that others take [B] = inputs.memory_taken * bytes_per_gb

[engine] Limits of frameworks | what each takes where nothing is stated; 0: nobody states it | part Hardware
  | when engine_defaults
names
token_budgets_small
token_budgets_large
requests_small
requests_large
large_memories
small_generations
when prefixes
blocks

[engine] Limits by default | until somebody types over them | part Hardware | when engine_defaults
place       Place of the framework [number] = match(inputs.framework, names)
asked       Defaults are the framework's [flag] = where(inputs.engine_defaults == 'framework', 1, 0)
large_from  Memory that counts as large [B] = of_engine(large_memories) * bytes_per_gib
            ; as the framework says
small_on    Generation that counts as small [1] = of_engine(small_generations)
large       The accelerator has a large memory [flag]
            = where(hardware.memory_capacity >= large_from, 1, 0) *
            where(small_on == hardware.generation, 0, 1) ; as the framework counts it
token_budget_stated  Token budget that is stated [token]
            = where(large > 0, of_engine(token_budgets_large), of_engine(token_budgets_small))
max_requests_stated  Most requests that are stated [request]
            = where(large > 0, of_engine(requests_large), of_engine(requests_small))
token_budget  Token budget by default [token] = unless_general(token_budget_stated, general_tokens)
max_requests  Most requests by default [request] = max_requests_stated * asked * inputs.attention_dp
            ; each group has its own; 0: as many as memory holds
when prefixes
block_stated  Block that is stated [token/request] = of_engine(blocks)
block       Block of the prefix cache by default [token/request] = unless_general(block_stated, general_block)

[engine] Names of settings | of all frameworks, to choose from | part Hardware | when engine_settings
schedule_policies
attention_backends
moe_backends

[engine] Settings of frameworks | by the names that each has for them | part Hardware | when engine_settings
settings
odd

[engine] Settings | as they are stated | part Hardware | when engine_settings
for s | words in schedule_policy | order of requests; attention_backend | attention back end;
  moe_backend | moe back end
{s}_listed  The framework has it, {words} [flag]
            = where(is_number(match(join(inputs.framework, '/{s}/', inputs.{s}), settings)), 1, 0)
{s}_stated  It is stated, {words} [flag] = where(inputs.{s} == 'default', 0, 1)
{s}_left_out  Not modelled, {words} [flag]
            = sum_where(odd, settings, join(inputs.framework, '/{s}/', inputs.{s}))

settings_unknown  Settings that the framework does not have [flag]
            = is_unknown(schedule_policy_stated, schedule_policy_listed) +
            is_unknown(attention_backend_stated, attention_backend_listed) +
            is_unknown(moe_backend_stated, moe_backend_listed)
settings_left_out  Settings whose effect is not modelled [flag]
            = schedule_policy_left_out + attention_backend_left_out + moe_backend_left_out
            ; the estimate is that of the usual ones
