"""The registry of model types: every entry is complete, and a new family is entered nowhere else."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from small_models import CONFIGS

from mantile.ir.build import build_ir
from mantile.ir.counts import tensor_list
from mantile.ir.towers import PROJECTORS, TOWERS
from mantile.library.architecture import Architecture, Model
from mantile.library.errors import InputError
from mantile.library.huggingface import dense, families, parse_config
from mantile.library.huggingface.families import FAMILIES, DecoderFamily
from mantile.library.huggingface.nesting import VisionFamily
from mantile.library.huggingface.tensor_names import TensorNames
from mantile.library.models import load_model, model_ids

DECODERS = {name: family for name, family in FAMILIES.items() if isinstance(family, DecoderFamily)}
VISION = {name: family for name, family in FAMILIES.items() if isinstance(family, VisionFamily)}


def tensors_of(config: dict[str, Any]) -> list[str]:
    """The names of a config's tensors."""
    architecture = parse_config(copy.deepcopy(config), "config.json")
    model = Model(id="small", name="small", source="test", architecture=architecture)
    return [tensor["name"] for tensor in tensor_list(build_ir(model))]


class ReadNames(Mapping[str, str]):
    """A table of names that records which of its keys somebody reads."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self.table, self.read = table, set[str]()

    def __getitem__(self, key: str) -> str:
        if key in self.table:
            self.read.add(key)
        return self.table[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table)

    def __len__(self) -> int:
        return len(self.table)


def test_every_name_of_a_family_s_table_is_used_by_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that no block of any family asks for would be a name that stands nowhere in a checkpoint."""
    recorded: dict[int, ReadNames] = {}

    def recording(names: TensorNames) -> TensorNames:
        return replace(names, table=recorded.setdefault(id(names.table), ReadNames(names.table)))

    for name, family in DECODERS.items():
        layouts = {key: recording(names) for key, names in family.layouts.items()}
        monkeypatch.setitem(
            FAMILIES, name, replace(family, tensors=recording(family.tensors), layouts=layouts)
        )
    normed, latent = {"qk_layernorm": True}, {"moe_latent_size": 30}
    for config in (*CONFIGS.values(), CONFIGS["stablelm"] | normed, CONFIGS["nemotron_h"] | latent):
        tensors_of(config)
    read_anywhere = {key for table in recorded.values() for key in table.read}
    for name, family in DECODERS.items():
        for names in (family.tensors, *family.layouts.values()):
            assert set(names.table) <= read_anywhere, name


@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_family_reads_a_config_and_names_its_tensors(name: str) -> None:
    """Alone, or as the text_config of a model that nests it."""
    own = [config for config in CONFIGS.values() if config["model_type"] == name]
    nested = [
        config
        for config in CONFIGS.values()
        if config.get("text_config", {}).get("model_type") == name
        or (config["model_type"] in VISION and next(iter(VISION[config["model_type"]].decoders)) == name)
    ]
    assert own or nested
    for config in own or nested:
        assert all(tensors_of(config))
    keys = {key for family in DECODERS.values() for key in family.layouts}
    assert not keys & DECODERS.keys()  # the name of a layout is nobody else's model type


@pytest.mark.parametrize("name", VISION)
def test_a_vision_family_nests_decoders_of_the_registry(name: str) -> None:
    """With a tower that the IR can build, and with the prefixes of its own checkpoints."""
    family = VISION[name]
    assert family.decoders.keys() <= DECODERS.keys()
    architecture = parse_config(copy.deepcopy(CONFIGS[name]), "config.json")
    assert architecture.vision is not None and architecture.vision.kind in TOWERS
    names = tensors_of(CONFIGS[name])
    assert any(tensor.startswith(f"{family.top}layers.{{}}.") for tensor in names)
    if not architecture.value("tied_embeddings"):
        assert f"{family.head_prefix}lm_head.weight" in names


def test_no_tower_is_built_that_no_family_reads() -> None:
    """Towers and projectors of the IR are those that the readers name."""
    towers = [parse_config(copy.deepcopy(CONFIGS[name]), "config.json").vision for name in CONFIGS]
    assert {tower.kind for tower in towers if tower is not None} == TOWERS.keys()
    assert PROJECTORS.keys() <= {tower.projector for tower in towers if tower is not None}


@pytest.mark.parametrize("name", model_ids())
def test_every_model_of_the_library_is_of_a_family(name: str) -> None:
    """And states whose tensor names hold by a key of the registry."""
    architecture = load_model(name).architecture
    seen = {fact.origin for fact in architecture.facts.values()} == {"code"}
    assert seen or architecture.model_type in FAMILIES
    assert families.tensor_names_of(architecture)


def test_a_new_family_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Config, tensor names, nesting and the list of what is supported follow from it."""
    monkeypatch.setitem(FAMILIES, "cria", DecoderFamily(dense.llama, TensorNames({"q": "mixer.query"})))
    monkeypatch.setitem(
        FAMILIES, "cria_vl", replace(VISION["llava"], decoders={"cria": {}}, top="outer.inner.")
    )
    config = CONFIGS["llama"] | {"model_type": "cria"}
    assert "model.layers.{}.mixer.query.weight" in tensors_of(config)
    nested = CONFIGS["llava"] | {"model_type": "cria_vl", "text_config": config}
    assert "outer.inner.layers.{}.mixer.query.weight" in tensors_of(nested)
    with pytest.raises(InputError, match=r"supported: llama, .*, cria, cria_vl$"):
        parse_config({"model_type": "odd"}, "config.json")


def test_names_of_no_family_are_refused() -> None:
    """Never taken for llama's."""
    architecture = parse_config(CONFIGS["llama"], "config.json")
    odd = architecture.choices["tensor_names"].model_copy(update={"value": "alpaca"})
    wrong: Architecture = architecture.model_copy(
        update={"choices": architecture.choices | {"tensor_names": odd}}
    )
    with pytest.raises(InputError, match=r"^choices\.tensor_names: expected one of llama, .* found 'alpaca'"):
        families.tensor_names_of(wrong)


# Whether the embedding is the LM head in a class of transformers 5.23 whose config says nothing, and whether
# a true switch in text_config counts. Else that one decides nothing.
TIED = {
    "llava": (False, True),
    "mistral3": (True, False),
    "gemma3": (True, False),
    "gemma4": (True, False),
    "llama4": (False, False),
    "qwen2_vl": (False, True),
    "qwen2_5_vl": (False, True),
    "qwen3_vl": (False, False),
    "qwen3_vl_moe": (False, False),
    "qwen3_5": (False, False),
    "qwen3_5_moe": (False, False),
    "glm4v_moe": (False, True),
    "kimi_k25": (True, False),
}


@pytest.mark.parametrize("inner", [None, True, False])
@pytest.mark.parametrize("outer", [None, True, False])
@pytest.mark.parametrize("name", VISION)
def test_the_class_of_the_whole_says_whether_the_embedding_is_the_head(
    name: str, outer: bool | None, inner: bool | None
) -> None:
    """The switch of the whole file, else its class's default; that of text_config in some classes only."""
    data = copy.deepcopy(CONFIGS[name])
    data.pop("tie_word_embeddings", None)
    data["text_config"].pop("tie_word_embeddings", None)
    data |= {} if outer is None else {"tie_word_embeddings": outer}
    data["text_config"] |= {} if inner is None else {"tie_word_embeddings": inner}
    default, text_ties = TIED[name]
    tied = (default if outer is None else outer) or (text_ties and bool(inner))
    assert bool(parse_config(data, "config.json").value("tied_embeddings")) == tied
