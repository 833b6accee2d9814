"""Settings of engines that no field stands for: what each means for an estimate, and the way out."""

from __future__ import annotations

import re

_SHARED_CACHE = (
    "KV heads are split over the TP ranks and copied beyond; by tokens of a request the KV cache is shared "
    "with dcp among ranks that hold copies, with cp among groups, by requests with attention_dp"
)
_OTHERS = "give memory_taken: the memory of the other models on each accelerator"
_WORDS = {
    **dict.fromkeys(("lora", "adapters"), "give lora_adapters, how many are held at once, and lora_rank"),
    **dict.fromkeys(("kv_sharding", "kv_cache_sharding", "kv_split"), _SHARED_CACHE),
    **dict.fromkeys(("models_on_box", "other_models", "models"), _OTHERS),
    **dict.fromkeys(
        ("expert_imbalance", "uneven_experts", "expert_load_imbalance"),
        "give --set efficiency.expert_imbalance=TIMES: work of the busiest rank's experts against the mean",
    ),
    "prompts_per_prefill_step": "a step takes as many prompts as token_budget holds; give token_budget",
    "ctx_size": "tokens of all slots together; give max_model_len, tokens of one request, and max_requests",
    "cuda_graph_config": "give graph_max_batch, requests in the largest graph, or enforce_eager: on",
    "cuda_graphs": "decode steps are launched as one graph; give enforce_eager: on where they are not",
}

_FACTS = {
    "all_experts": "give ep: all ranks of a stage",
    "all_to_all": "give ep: all ranks of a stage",
    "dp_attention": "give attention_dp: the groups that hold attention each",
    "adapters": "give lora_adapters, how many are held at once, and lora_rank",
    "quantization": "give weights_dtype",
    "sixteen_bit": "give weights_dtype",
}


def meaning_of(name: str) -> str | None:
    """What a setting of an engine means that is no field of a scenario; None of what no engine knows.

    Args:
        name: as an engine or a person spells it, with or without dashes in front.
    """
    from mantile.library.launch_table import launch_tables  # it reads the table of fields

    plain = re.sub(r"[-. ]", "_", name.strip("-")).lower()
    if plain in _WORDS:
        return _WORDS[plain]
    for table in launch_tables().values():
        flag = table.find(f"--{plain}") or table.find(plain)
        if flag is None:
            continue
        said = flag.refused or flag.not_modelled
        if flag.field is not None:
            said = f"give {flag.field}"
        elif flag.ignored:
            said = "it says nothing about speed or memory: leave it out"
        elif flag.fact is not None:
            said = _FACTS.get(
                flag.fact, "mantile import reads it in a launch line, and says which fields follow"
            )
        if said:
            return f"{flag.name} of {table.name}: {said.rstrip('.')}"
    return None
