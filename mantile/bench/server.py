"""What a server tells of itself: model, engine, release, and settings that shape its speed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mantile.library.errors import InputError
from mantile.library.profiles import load_library

if TYPE_CHECKING:
    import httpx

_SETTINGS = {
    "tp_size": "tp",
    "pp_size": "pp",
    "dp_size": "dp",
    "ep_size": "ep",
    "dtype": "dtype",
    "quantization": "quantization",
    "kv_cache_dtype": "kv_cache_dtype",
    "mem_fraction_static": "mem_fraction_static",
    "max_running_requests": "max_running_requests",
    "max_total_num_tokens": "kv_tokens",
    "chunked_prefill_size": "chunked_prefill_size",
    "attention_backend": "attention_backend",
    "schedule_policy": "schedule_policy",
    "disable_cuda_graph": "disable_cuda_graph",
    "disable_radix_cache": "disable_radix_cache",
    "speculative_algorithm": "speculative_algorithm",
    "total_slots": "slots",
    "n_ctx": "context",
}
"""Settings that are kept, and their names in records. Others may name a folder, a host or a key."""


@dataclass(frozen=True)
class Server:
    """What a server tells; None where it does not.

    Args:
        model: as it calls the first model that it serves.
        framework: our id of the engine.
        version: release of the engine.
        longest: tokens of a request at most, prompt and answer.
        settings: by name.
    """

    model: str
    framework: str | None = None
    version: str | None = None
    longest: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


async def describe(client: httpx.AsyncClient, served: str | None = None) -> Server:
    """Ask a server what it is: /v1/models, then /version (vLLM, TensorRT-LLM), /get_server_info (SGLang) and
    /props (llama.cpp), as far as it has them.

    Args:
        served: what it calls the model that is meant; the first that it lists if None. A server need not list
            it: transformers serve lists what lies in the cache of the hub.

    Raises:
        InputError: naming the address, if nothing answers there or no model is served.
    """
    models = await _get(client, "/v1/models", must=served is None)
    listed = models.get("data") if isinstance(models, Mapping) else None
    known = [one for one in (listed if isinstance(listed, list) else ()) if isinstance(one, Mapping)]
    meant = (one for one in known if one.get("id") and served in (None, one["id"]))
    first: Mapping[str, Any] = next(meant, {"id": served})
    if not first["id"]:
        raise InputError(
            f"{client.base_url}: /v1/models lists no model; expected a server that serves one, or --served-as"
        )
    told = {name: await _get(client, f"/{name}") for name in ("version", "get_server_info", "props")}
    info, props = told["get_server_info"] or {}, told["props"] or {}
    told_of_requests = props.get("default_generation_settings")
    defaults = told_of_requests if isinstance(told_of_requests, Mapping) else {}
    framework = "sglang" if info else "llama.cpp" if props else None
    with suppress(InputError):
        framework = load_library().framework(str(first.get("owned_by"))).id
    version = (told["version"] or {}).get("version") or info.get("version") or props.get("build_info")
    longest = (
        first.get("max_model_len")
        or info.get("max_model_len")
        or info.get("context_length")
        or defaults.get("n_ctx")
    )
    values = {**info, **{name: props[name] for name in ("total_slots",) if name in props}}
    values |= {"n_ctx": defaults["n_ctx"]} if "n_ctx" in defaults else {}
    return Server(
        model=str(first["id"]),
        framework=framework,
        version=re.sub(r"[^\w.+-]", " ", str(version))[:60] if version else None,
        longest=int(longest) if isinstance(longest, int) and longest > 0 else None,
        settings={
            ours: value
            for theirs, ours in _SETTINGS.items()
            if isinstance(value := values.get(theirs), bool | int | float)
            or (isinstance(value, str) and re.fullmatch(r"[\w.+-]{1,60}", value))
        },
    )


async def _get(client: httpx.AsyncClient, path: str, must: bool = False) -> Any:
    """What a path answers; None where there is nothing."""
    import httpx

    try:
        response = await client.get(path)
        if response.status_code == httpx.codes.OK:
            answer = response.json()
            return answer if isinstance(answer, dict) else None
        problem = f"HTTP status {response.status_code}"
    except httpx.HTTPError as error:
        problem = str(error) or type(error).__name__
    except ValueError:
        problem = "no JSON"
    if must:
        raise InputError(
            f"{client.base_url}: {path}: {problem}; expected an OpenAI-compatible server, such as "
            "http://localhost:8000"
        )
    return None
