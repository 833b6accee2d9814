# What prompts find of themselves in a cache: tokens that are not worked out again, and where they come from.
#
# Prefixes are found from the first token on, in whole blocks, and at least one token of a prompt is worked
# out. What all requests share lies in the KV cache once. Other prefixes lie where the batch leaves room, then
# on the host, then on disk, and requests come back to each of them equally often: the share of them that has
# room is the share that is found. Left out: recurrent states, which are taken to be kept with a prefix;
# latents of a prefix that are expanded once more for its prompt.

when prefixes

define in_blocks(tokens) = floor(tokens / inputs.prefix_block) * inputs.prefix_block

[prefix] Prefixes | what prompts have at their head
turns_before  Turns before, on average [1] = half * (inputs.turns - 1)
            ; the first has none, the last all others
head        Shared prefix and answers before [token/request]
            = inputs.shared_prefix + turns_before * inputs.output_tokens ; a prompt is at least as long
when not class_prefixes
new_tokens  New tokens of a prompt [token/request]
            = max(0, inputs.input_tokens - head) / (1 + turns_before)
            ; neither shared nor said before; as many in each turn
hit_default  Share of a prompt that was there before [1] = 1 - new_tokens / inputs.input_tokens
            ; shared prefix and turns before

most        Tokens of a prompt that may be found [token/request]
            = inputs.input_tokens - one_token / one_request
            ; the last one is always worked out: the first of the answer follows from it
shared      Shared tokens that lie in the KV cache once [token/request]
            = where(inputs.prefix_hit_rate > 0, in_blocks(min(inputs.shared_prefix, most)), 0)
            ; in whole blocks
when class_prefixes
head_of_classes  Longest head of a prompt, at the mean length [token/request]
            = max(head, classes.head * inputs.input_tokens) ; of a class of requests
shared_of_classes  Shared prefixes of all classes in use [token/request]
            = where(inputs.shared_prefix == classes.shared_prefix, classes.shared_once, inputs.shared_prefix)
            ; each class has its own; a length typed over theirs holds for all
once        Shared tokens of all classes that lie in the KV cache once [token/request]
            = where(shared > 0, shared_of_classes, 0) ; none where nothing is found

[prefix] Prefix cache | what is not worked out again | each rank
before      Tokens of a prompt that were there before [token/request]
            = in_blocks(min(inputs.prefix_hit_rate * inputs.input_tokens, most)) ; in whole blocks
own         Of them, not shared by all requests [token/request] = max(0, before - shared)
bytes       Bytes of all prefixes on a rank [B]
            = inputs.prefixes / (inputs.dp * inputs.attention_dp) * own * memory.prefix_bytes_per_token
            ; a prefix lies where its requests come back to
here        Share of prefixes beside the batch [1] = where(bytes > 0, min(1, memory.free / bytes), 1)
on_host     Share of prefixes on the host [1]
            = where(all(bytes > 0, efficiency.rate.host_bytes > 0),
            min(1 - here, inputs.prefix_host * bytes_per_gb / bytes), 0)
            ; of those without room beside the batch
on_disk     Share of prefixes on disk [1]
            = where(bytes > 0, min(1 - here - on_host, inputs.prefix_disk * bytes_per_gb / bytes), 0)
            ; of those without room elsewhere
kept        Share of prefixes that has room [1] = here + on_host + on_disk
found       Tokens of a prompt that are found [token/request] = before - own + kept * own
computed    Tokens of a prompt to work out (tokens of a prompt to work out) [token/request]
            = inputs.input_tokens - found
disk_share  Part of the disks of a host for a rank [B/s]
            = where(hardware.disk_bandwidth > 0, hardware.disk_bandwidth / hardware.hosts_of_domain *
            accelerators_per_rank / min(plan.accelerators, hardware.host_accelerators),
            inputs.prefix_disk_bandwidth * bytes_per_gb)
            ; what was stated, where nobody knows what the disks reach
disk_bandwidth  Bandwidth of the disk for a rank [B/s]
            = min(inputs.prefix_disk_bandwidth * bytes_per_gb, disk_share)
fetched     Bytes of a prompt's own prefix [B] = one_request * own * memory.prefix_bytes_per_token
fetch       Time to fetch it [s]
            = where(on_host > 0, fetched * on_host / efficiency.rate.host_bytes, 0) + fetched * on_disk /
            disk_bandwidth ; over the host link, and from disk
asked       Share of a prompt that may be found [1] = before / inputs.input_tokens
            ; if every prefix had room
hit_rate    Share of a prompt that is found [1] = found / inputs.input_tokens
