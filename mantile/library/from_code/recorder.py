"""Run alone, in a process of its own: builds a model class on the meta device and writes down what it does.

The meta device knows shapes and no values, so no weight is needed and nothing is computed. Needs torch and
transformers, and imports nothing of ours: the process that starts it takes away the network and the right to
write files (`process`).

Input, JSON on stdin: config (the content of a config.json), folder (with the model's own code; "" where no
code of others may run). Output, JSON on the file descriptor that the argument names: {"error": text},
{"unknown": version of transformers, "types": those it has} where it has no such class, or

    class, library      of the model, and the version of transformers
    tokens              of the prompt that was run
    known               names of the fields that the class has, in all sections, or that its code asks for
    config              fields after the class filled in its defaults, those of the decoder
    parameters          [{name, shape, buffer, run: whether it was read,
                          stored: [[name in a checkpoint, shape], ...]}]
    tied                {name: name of the parameter that it is}
    lists               {name of a list of modules: its length}
    events              in execution order: products, attention, choices, rows looked up in a table, modules
                        without children, with the channels that they take the mean of
    caches              for each layer that keeps something: {name: shape}, after the prompt
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

TOKENS = 61  # of the prompt: a prime that is no dimension of a model
VIEWS = ("_to_copy", "clone", "index", "index_select", "copy", "gather", "cat", "split", "constant_pad_nd")
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "_grouped_mm")


class Recorder:
    """Collects the events of a forward pass."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.path: list[str] = []
        self.owners: dict[int, str] = {}
        self.shapes: dict[str, Any] = {}
        self.by_expert: set[Any] = set()
        self.sources: dict[int, int] = {}
        self.read: set[str | None] = set()
        self.over: dict[str, int] = {}
        self.held: list[Any] = []  # a storage that were freed would give its address to another

    def add(self, kind: str, **fields: Any) -> None:
        """Write an event down, with the module that it happens in."""
        self.events.append({"kind": kind, "module": self.path[-1] if self.path else "", **fields})

    def owner(self, tensor: Any) -> str | None:
        """The parameter that a tensor is, or was made of by moving values alone."""
        return self.owners.get(tensor.untyped_storage()._cdata)

    def own(self, tensor: Any, name: str) -> None:
        """Remember the parameter that a tensor is made of."""
        self.owners.setdefault(tensor.untyped_storage()._cdata, name)
        self.held.append(tensor)

    def product(self, name: str, tensors: list[Any]) -> None:
        """A matrix product, or a convolution."""
        first = tensors[1 if name in ("addmm", "baddbmm") else 0]
        owners = [self.owner(tensor) for tensor in tensors]
        if self.path and (self.path[-1], *owners) in self.by_expert:
            return
        if any(len(self.shapes.get(owner or "", ())) == 3 for owner in owners) and first.dim() == 2:
            self.by_expert.add(
                (self.path[-1], *owners)
            )  # a class that runs expert by expert: one stands for all
        source = self.sources.setdefault(first.untyped_storage()._cdata, len(self.sources) + 1)
        self.held += tensors
        self.add(
            "product",
            operation=name,
            shapes=[list(tensor.shape) for tensor in tensors],
            parameters=owners,
            source=source,
        )


def listening(torch: Any, recorder: Recorder) -> Any:
    """A mode of torch that tells the recorder of every product."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listening(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = function.overloadpacket.__name__
            if name == "_local_scalar_dense":  # the class asks for a value, and there are none
                return False if args[0].dtype == torch.bool else 0
            result = function(*args, **(kwargs or {}))
            tensors = [argument for argument in args if isinstance(argument, torch.Tensor)]
            recorder.read.update(map(recorder.owner, tensors))
            if name in PRODUCTS:
                recorder.product(name, tensors)
            elif name == "embedding":
                recorder.add("lookup", parameter=recorder.owner(tensors[0]), shape=list(result.shape))
            elif name == "mean" and recorder.path:
                recorder.over[recorder.path[-1]] = int(tensors[0].shape[-1])
            elif name == "topk":
                recorder.add("choice", chosen=int(args[1]))
            elif name in VIEWS and tensors and isinstance(result, torch.Tensor):
                owner = recorder.owner(tensors[0])
                if owner is not None:
                    recorder.own(result, owner)
            return result

    return Listening()


def register_attention(torch: Any, recorder: Recorder) -> None:
    """An attention function for the library's classes that writes shapes down."""
    from transformers.cache_utils import Cache
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    def attention(module: Any, query: Any, key: Any, value: Any, mask: Any = None, **more: Any) -> Any:
        window = more.get("sliding_window")
        recorder.add(
            "attention",
            query=list(query.shape),
            key=list(key.shape),
            value=list(value.shape),
            window=window if isinstance(window, int) else 0,
        )
        batch, heads, tokens = query.shape[:3]
        return query.new_empty(batch, tokens, heads, value.shape[-1]), None

    def mask(batch_size: int, q_length: int = 1, kv_length: int = 1, dtype: Any = None, **_: Any) -> Any:
        return torch.zeros((batch_size, 1, q_length, kv_length), dtype=dtype or torch.float32, device="meta")

    def no_tokens_yet(cache: Any, layer_idx: int = 0) -> int:
        return 0

    def all_tokens(cache: Any, *_: Any) -> tuple[int, int]:
        return TOKENS, 0

    Cache.get_seq_length = no_tokens_yet  # a cache of states alone does not count them
    Cache.get_mask_sizes = all_tokens
    ALL_ATTENTION_FUNCTIONS.register("recorded", attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recorded", mask)


def read_config(transformers: Any, data: dict[str, Any], folder: str) -> Any:
    """The config object of the class; the format of quantised weights does not change the structure."""
    data = {key: value for key, value in data.items() if key != "quantization_config"}
    for section in data.values():
        if isinstance(section, dict):
            section.pop("quantization_config", None)
    if folder and data.get("auto_map"):
        return transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True, local_files_only=True)
    data.pop("auto_map", None)
    kind = transformers.CONFIG_MAPPING[data["model_type"]]
    nests = "text_config" in (getattr(kind, "sub_configs", None) or {})
    if (
        nests and "text_config" not in data
    ):  # a decoder's fields at the top, where the class looks for them inside
        data = {"text_config": {key: value for key, value in data.items() if key != "model_type"}} | data
    return kind.from_dict(data)


def build(torch: Any, transformers: Any, config: Any, folder: str) -> Any:
    """The model on the meta device, with our attention where its class has a choice."""
    trusted = {"trust_remote_code": True} if folder else {}
    error: Exception | None = None
    classes = (
        transformers.AutoModelForCausalLM,
        transformers.AutoModelForMultimodalLM,
        transformers.AutoModelForImageTextToText,
    )
    for auto in reversed(classes) if hasattr(config, "text_config") else classes:
        for attention in ("recorded", "eager"):
            try:
                with torch.device("meta"):
                    return auto.from_config(
                        config,
                        attn_implementation=attention,
                        experts_implementation="batched_mm",
                        **trusted,
                    ).eval()
            except Exception as caught:
                unknown = "Unrecognized configuration class" in str(caught)
                error = error if error is not None and unknown else caught
                if unknown:
                    break
    assert error is not None
    raise error


def stored_parts(model: Any, tensors: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """What a checkpoint calls each parameter: experts of a layer in one tensor are stored one by one, say."""

    def stored(some: dict[str, Any]) -> dict[str, Any]:
        try:
            from transformers.core_model_loading import revert_weight_conversion

            return dict(revert_weight_conversion(model, dict(some)))
        except Exception:
            return some

    whole = stored(
        tensors
    )  # most are stored as they are, and one at a time takes a second each in large models
    parts = {
        name: {name: tensor}
        if name in whole and whole[name].shape == tensor.shape
        else stored({name: tensor})
        for name, tensor in tensors.items()
    }
    return {name: [[part, list(value.shape)] for part, value in some.items()] for name, some in parts.items()}


def parameters_of(model: Any) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every stored tensor once, and the names that stand for one of them."""
    persistent = set(model.state_dict(keep_vars=True))
    tied = {name: first for name, first in dict(model.all_tied_weights_keys).items() if name in persistent}
    seen: dict[int, str] = {}
    found: dict[str, tuple[Any, bool]] = {}
    for is_buffer, tensors in ((False, model.named_parameters), (True, model.named_buffers)):
        for name, tensor in tensors(remove_duplicate=False):
            if name not in persistent or name in tied:
                continue
            first = seen.setdefault(id(tensor), name)
            if first != name:
                tied[name] = first
                continue
            found[name] = tensor, is_buffer
    parts = stored_parts(model, {name: tensor for name, (tensor, _) in found.items()})
    return [
        {"name": name, "shape": list(tensor.shape), "buffer": is_buffer, "stored": parts[name]}
        for name, (tensor, is_buffer) in found.items()
    ], tied


def run(torch: Any, model: Any, recorder: Recorder) -> Any:
    """A prompt through the model; what it keeps afterwards."""
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        recorder.own(tensor, name)
        recorder.shapes[name] = tensor.shape

    def enter(name: str) -> Any:
        return lambda *_: recorder.path.append(name)

    def leave(name: str, is_leaf: bool, kind: str) -> Any:
        def left(module: Any, inputs: Any, output: Any) -> None:
            recorder.path.pop()
            first = output[0] if isinstance(output, tuple) else output
            if is_leaf and isinstance(first, torch.Tensor):
                shape, over = list(first.shape), recorder.over.pop(name, 0)
                recorder.events.append(
                    {"kind": "leaf", "module": name, "class": kind, "shape": shape, "over": over}
                )

        return left

    for name, module in model.named_modules():
        is_leaf = not any(True for _ in module.children())
        module.register_forward_pre_hook(enter(name))
        module.register_forward_hook(leave(name, is_leaf, type(module).__name__))
    with torch.no_grad(), torch.device("meta"), listening(torch, recorder):
        return attempts(torch, model, recorder)


def attempts(torch: Any, model: Any, recorder: Recorder) -> Any:
    """A prompt through the whole class, or through its decoder and LM head.

    What joins text and images may want to see values, which the decoder alone does not. Some classes ask
    their cache for the positions, which one without attention cannot tell.
    """
    tokens = torch.zeros(1, TOKENS, dtype=torch.long)
    positions = {"position_ids": torch.arange(TOKENS).unsqueeze(0)}
    decoder, head = model.get_decoder(), model.get_output_embeddings()
    first: Exception | None = None
    torch.fx.experimental._config.meta_nonzero_assume_all_nonzero = True  # every expert has tokens
    for whole, more in ((True, {}), (True, positions), (False, {}), (False, positions)):
        recorder.events.clear()
        recorder.path.clear()
        recorder.by_expert.clear()
        try:
            if whole:
                output = model(input_ids=tokens, use_cache=True, **more)
            elif decoder is model or head is None:
                continue
            else:
                output = decoder(input_ids=tokens, use_cache=True, **more)
                if decoder.get_output_embeddings() is not head:  # else it ran its head itself
                    head(output[0])
            return output.get("past_key_values") or output.get("cache_params")
        except Exception as error:
            first = first or error
    assert first is not None
    raise first


def caches_of(torch: Any, cache: Any) -> list[dict[str, Any]]:
    """Shapes of what each layer keeps."""
    kept = []
    for layer in getattr(cache, "layers", None) or ():
        shapes: dict[str, Any] = {"class": type(layer).__name__}
        for name, value in vars(layer).items():
            for key, tensor in value.items() if isinstance(value, dict) else ((name, value),):
                if isinstance(tensor, torch.Tensor) and tensor.dim() > 1:
                    shapes[f"{name}.{key}" if key != name else name] = list(tensor.shape)
        kept.append(shapes)
    for name, states in vars(cache).items() if cache is not None else ():
        for index, state in numbered(states) if name != "layers" else ():  # states beside the layers
            for number, tensor in enumerate(state if isinstance(state, list | tuple) else (state,)):
                if isinstance(tensor, torch.Tensor) and tensor.dim() > 1:
                    kept += [{"class": ""} for _ in range(index + 1 - len(kept))]
                    kept[index][f"recurrent_states.{name}" + (f".{number}" if number else "")] = list(
                        tensor.shape
                    )
    return kept


def numbered(states: Any) -> list[tuple[int, Any]]:
    """What is kept by the number of the layer."""
    if isinstance(states, dict):
        return [(key, state) for key, state in states.items() if isinstance(key, int)]
    return list(enumerate(states)) if isinstance(states, list) else []


def plain(value: Any) -> Any:
    """What JSON can hold of a value."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def known_fields(config: Any) -> list[str]:
    """The names of the fields of a class of configs, in code and in files, and those of its sections."""
    names: set[str] = set()
    pending = [type(config), *(getattr(config, "sub_configs", None) or {}).values()]
    for kind in pending:
        for base in kind.__mro__:
            names |= set(getattr(base, "__annotations__", ()))
        for name, stored in (getattr(kind, "attribute_map", None) or {}).items():
            names |= {name, stored}
    return sorted(names)


@contextmanager
def watched(transformers: Any) -> Iterator[set[str]]:
    """The names of the fields that the code of classes asks a config for in the meantime."""
    asked: set[str] = set()
    kind = transformers.PretrainedConfig
    get = kind.__getattribute__

    def asking(config: Any, name: str) -> Any:
        asked.add(name)
        return get(config, name)

    kind.__getattribute__ = asking
    try:
        yield asked
    finally:
        kind.__getattribute__ = get


def names_of(data: Any) -> set[str]:
    """The names of all fields of a config, those of its sections among them."""
    if not isinstance(data, dict):
        return set()
    return {str(name) for name in data}.union(*map(names_of, data.values()))


def record(request: dict[str, Any]) -> dict[str, Any]:
    """Build the class, run a prompt, and say what happened."""
    warnings.simplefilter("ignore")
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    of_others = request["folder"] and request["config"].get("auto_map")
    if request["config"]["model_type"] not in transformers.CONFIG_MAPPING and not of_others:
        return {
            "unknown": f"transformers {transformers.__version__}",
            "types": sorted(transformers.CONFIG_MAPPING),
        }
    recorder = Recorder()
    register_attention(torch, recorder)
    torch.distributions.Distribution.set_default_validate_args(False)  # which would look at values
    config = read_config(transformers, request["config"], request["folder"])
    with watched(transformers) as asked:
        model = build(torch, transformers, config, request["folder"])
        listed, tied = parameters_of(model)
        cache = run(torch, model, recorder)
    asked &= names_of(request["config"])
    for one in listed:
        one["run"] = one["name"] in recorder.read
    return {
        "class": type(model).__name__,
        "library": f"transformers {transformers.__version__}",
        "tokens": TOKENS,
        "known": sorted({*known_fields(model.config), *asked}),
        "config": plain(model.config.get_text_config(decoder=True).to_dict()),
        "parameters": listed,
        "tied": tied,
        "lists": {
            name: len(module)
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.ModuleList)
        },
        "events": recorder.events,
        "caches": caches_of(torch, cache),
    }


def main() -> None:
    """Read the request, answer it, and write nothing else anywhere."""
    answer_to = int(sys.argv[1])
    request = json.load(sys.stdin)
    try:
        answer = record(request)
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {str(error)[:2000]}"}
    with os.fdopen(answer_to, "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
