"""Configs of what is no decoder, refused by what they are: adapters, encoders, audio and diffusion models.

The lists of model types follow the classes that transformers 5.23 has for each task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mantile.library.errors import InputError

ADAPTER, PIPELINE = "adapter_config.json", "model_index.json"
EMBEDDERS = ("config_sentence_transformers.json", "modules.json")
"""Files that lie beside the config of an embedding model."""
GGUF = ".gguf"
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".npz", ".onnx", ".ckpt")
_MOST = 8  # files that are named

_ENCODER_DECODER = "an encoder-decoder, which reads with one stack of layers and writes with another"
_AUDIO = "an audio model"
_HEARING = "a decoder that also hears, whose class does not run without sound"
_ENCODER = "an encoder, as embeddings, rerankers and classifiers use it: it writes no tokens"
_VISION = "a vision model without a decoder"
_DENOISING = "a diffusion language model: it writes by denoising many tokens at once, not one after another"
_DRAFTER = "a drafter for speculative decoding, which works on what another model keeps"
_POLICY = "a policy for robots: it writes movements, not text"
_BYTES = "a model of bytes, which joins several into a patch and works on patches"
_PROTEINS = "a decoder that also reads proteins, whose class does not run without them"
_RECURSIVE = "a recursive model, which runs the same layers several times for each token"
_KINDS: dict[str, str] = {
    _ENCODER_DECODER: """
        bart bert-generation bigbird_pegasus blenderbot blenderbot-small blip encoder-decoder florence2 fsmt
        led longt5 m2m_100 marian mbart mt5 mvp nllb-moe pegasus pegasus_x pix2struct plbart pp_formulanet
        prophetnet rag switch_transformers t5 t5gemma t5gemma2 trocr udop umt5 vision-encoder-decoder""",
    _AUDIO: """
        audio-spectrogram-transformer bark canary clap clvp cohere_asr csm dac data2vec-audio dia encodec
        fastspeech2_conformer hubert kyutai_speech_to_text mimi moonshine moonshine_streaming moshi musicgen
        musicgen_melody parakeet_ctc parakeet_rnnt parakeet_tdt pop2piano seamless_m4t seamless_m4t_v2 sew
        sew-d speech-encoder-decoder speech_to_text speecht5 unispeech unispeech-sat vits wav2vec2
        wav2vec2-bert wav2vec2-conformer wavlm whisper xcodec xcodec2""",
    _HEARING: """
        audioflamingo3 musicflamingo qwen2_5_omni qwen3_omni_moe qwen3_omni_moe_thinker vibevoice
        voxtral_realtime""",
    _ENCODER: """
        albert bert big_bird camembert convbert data2vec-text deberta deberta-v2 distilbert dpr electra ernie
        esm eurobert flaubert fnet funnel gte ibert jina_embeddings_v3 layoutlm layoutlmv2 layoutlmv3 lilt
        longformer luke markuplm megatron-bert mobilebert modernbert modernvbert mpnet mra nomic_bert
        nystromformer rembert roberta roberta-prelayernorm roc_bert roformer splinter squeezebert tapas xlm
        xlm-roberta xlm-roberta-xl xmod yoso""",
    _VISION: """
        align altclip beit bit chinese_clip clip clipseg convnext convnextv2 cvt data2vec-vision
        deformable_detr deit depth_anything detr dinat dinov2 dinov2_with_registers dinov3_vit dpt
        efficientnet focalnet hiera ijepa levit mask2former metaclip_2 mobilevit mobilevitv2 owlv2 owlvit
        poolformer pvt pvt_v2 regnet resnet rt_detr sam sam2 sam_hq segformer siglip siglip2 swin swinv2
        timm_wrapper vit vit_mae vit_msn yolos""",
    _DRAFTER: "gemma4_assistant gemma4_unified_assistant",
    _POLICY: "pi0",
    _BYTES: "blt",
    _PROTEINS: "evolla",
    _RECURSIVE: "hrm_text",
    _DENOISING: "diffusion_gemma diffusion_gemma_text dream llada llada2_moe sdar",
}
_KIND_OF: dict[str, str] = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_HEADS = ("ForSequenceClassification", "ForTokenClassification", "ForMaskedLM", "ForRewardModel")


def refuse_other_kinds(data: Mapping[str, Any], name: str) -> None:
    """Refuse what is no decoder by what it is.

    Args:
        data: the content of a config.json, or of the JSON file that was given for one.
        name: stands for the file in errors.

    Raises:
        InputError: saying what it is, and what to give instead.

    Example:
        refuse_other_kinds({"model_type": "t5"}, "config.json")   # an encoder-decoder, ...
    """
    if "peft_type" in data:
        raise _adapter(name, data)
    if "_diffusers_version" in data or "_class_name" in data:
        what = f"{data['_class_name']!r:.60} of " if data.get("_class_name") else ""
        raise _refusal(name, f"{what}a diffusion model for images, video or sound")
    model_type = data.get("model_type")
    kind = _KIND_OF.get(str(model_type).lower())
    if kind is None and data.get("is_encoder_decoder") is True:
        kind = _ENCODER_DECODER
    if kind is not None:
        raise _refusal(name, f"model_type {model_type!r:.60}: {kind}", kind)
    if not isinstance(model_type, str) and {"dim", "n_layers"} <= data.keys():
        raise InputError(
            f"{name}: the parameters of a model in its maker's own form; expected the config.json of its "
            "Hugging Face checkpoint"
        )
    _refuse_classes_without_head(data, name)


def _refuse_classes_without_head(data: Mapping[str, Any], name: str) -> None:
    """Refuse a decoder that is used as an encoder: its class writes no tokens."""
    classes = data.get("architectures")
    if not isinstance(classes, list) or not classes or not all(isinstance(item, str) for item in classes):
        return
    without = [item for item in classes if item.endswith(_HEADS) or _is_bare(item)]
    if len(without) == len(classes):
        what = "an embedding model" if _is_bare(without[0]) else "a classifier, reranker or reward model"
        raise _refusal(name, f"architectures {without[0]!r:.60}: {what}: it writes no tokens")


def _is_bare(class_name: str) -> bool:
    """Whether a class is a stack of layers alone: LlamaModel, not GPT2LMHeadModel or LlamaForCausalLM."""
    return class_name.endswith("Model") and not class_name.endswith(("LMHeadModel", "ForRewardModel"))


def _refusal(name: str, what: str, kind: str = "") -> InputError:
    instead = (
        "a config.json with its text_config alone"
        if kind == _HEARING
        else "the config.json of a model that writes text token by token"
    )
    return InputError(f"{name}: {what}; expected {instead}")


def _adapter(name: str, data: Mapping[str, Any]) -> InputError:
    base = data.get("base_model_name_or_path")
    on = f"{base!r:.120}" if isinstance(base, str) and base else "a base model that it does not name"
    return InputError(
        f"{name}: an adapter of the kind {data.get('peft_type')!s:.20}, not a model: its weights come on top "
        f"of those of {on}; expected that model: once merged, an adapter adds nothing"
    )


def lacking_config(name: str, files: Sequence[str], read: Callable[[str], Any]) -> InputError:
    """The error about a folder or a repository without config.json: what it is, and what it holds.

    Args:
        name: of it.
        files: what it holds, with folders inside as folder/file.
        read: the content of one of these that is JSON.
    """
    if ADAPTER in files:
        data = read(ADAPTER)
        return _adapter(f"{name}: {ADAPTER}", data if isinstance(data, dict) else {})
    if PIPELINE in files:
        return _refusal(f"{name}: {PIPELINE}", "a diffusion model for images, video or sound")
    inner = sorted(file for file in files if PurePath(file).name == "config.json")
    if inner:
        return InputError(f"{name}: has no config.json itself; expected one inside: {_named(inner)}")
    suffixes = {PurePath(file).suffix.lower() for file in files}
    if GGUF in suffixes:
        weights = sorted(file for file in files if PurePath(file).suffix.lower() == GGUF)
        return InputError(
            f"{name}: holds GGUF files of llama.cpp and no config.json; expected one of them "
            f"({_named(weights)}; of parts the first), or the model that they were made from, with their "
            "data type as weights_dtype: q4_0, q4_k_m, q8_0 or f16"
        )
    held = f"it holds {_named(sorted(files))}" if files else "it is empty"
    return InputError(
        f"{name}: has no config.json; {held}; expected the config.json that lies with the weights"
    )


def _named(files: Sequence[str]) -> str:
    more = f" and {len(files) - _MOST} more" if len(files) > _MOST else ""
    return f"{', '.join(files[:_MOST])}{more}"
