"""Names that people have for the models we ship: how they are spelt, which checkpoints share a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from mantile.library.errors import InputError, near, quoted
from mantile.library.ids import begins, not_clear, words
from mantile.library.profiles import load_library

_MADE_UP_AS = {"meta", "hf"}  # parts of a name that come and go with the form of the files
_TUNED = {"instruct", "it", "chat", "base", "pt"}
_STORED = {
    *("fp8", "fp4", "nvfp4", "mxfp4", "mxfp8", "bf16", "int4", "int8", "awq", "gptq", "gguf", "bnb", "mlx"),
    *("autoround", "w4a16", "w8a8", "w8a16", "4bit", "8bit", "dynamic", "static", "block", "quantized", "kv"),
}
_NOT_KNOWN = {"exl2", "exl3", "aqlm", "hqq", "vptq", "w4a8", "int2", "2bit"}
"""Words of formats that the library has no data type for."""
_EMBEDDING = {"embedding", "embeddings", "embed", "embedder", "reranker", "rerank"}
_OLLAMA = {
    "deepseek-r1:1.5b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B",
    "deepseek-r1:7b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
    "deepseek-r1:8b": "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B",
    "deepseek-r1:14b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B",
    "deepseek-r1:32b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B",
    "deepseek-r1:70b": "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
    "deepseek-r1:671b": "deepseek-ai/DeepSeek-R1",
    "deepseek-v3:671b": "deepseek-ai/DeepSeek-V3",
}
"""Names of Ollama's library whose size does not say which model they are."""
_FILE = re.compile(r"(?<=[-_.:])(?:ud-)?(i?q\d\w*|f16|fp16|bf16)$", re.IGNORECASE)  # the kind of a GGUF file
_NOT_PUBLISHED = re.compile(
    r"(?:openai/|anthropic/|google/|x-ai/)?(?:gpt-?[345](?!-?j|-?neo)|chatgpt|o[134](?:-|$)|claude|gemini|grok-?[234])",
    re.IGNORECASE,
)
_OTHER_KINDS = {
    "an audio model": {"whisper", "hubert", "bark", "musicgen", "parakeet"},
    "an encoder, as embeddings and rerankers use it": {"bge", "bert", "roberta", "deberta", "minilm", "gte"},
    "a diffusion model for images or video": {"flux", "diffusion", "sdxl"},
    "an encoder-decoder": {"t5", "bart", "nllb", "pegasus"},
    "a vision model without a decoder": {"clip", "siglip", "dinov2", "vit"},
}
"""Words of a name that say what a model is, if it is no decoder."""
# Organisations that publish the same checkpoints: renamed ones, and one that put up what the other gave away.
_SAME_PUBLISHER = {"coherelabs": "cohereforai", "thudm": "zai-org", "mistral-community": "mistralai"}


class Named(NamedTuple):
    """A model that we ship, as a name means it.

    Args:
        id: ours.
        weights_dtype: data type of the checkpoint of that name; None: that of the entry.
        granted: what the name takes for granted; empty where it is the model itself.
    """

    id: str
    weights_dtype: str | None = None
    granted: str = ""


@dataclass(frozen=True, eq=False)
class Known:
    """Models we ship by what they are called.

    Args:
        hub_ids: hub ids of each of our ids.
        titles: what each of our ids is called.
        checkpoints: by hub id, checkpoints that our entries list: our id, and the data type of their weights.
            None where it is that of the entry.
        stored: data type of the weights of each of our ids.
    """

    hub_ids: Mapping[str, str]
    titles: Mapping[str, str]
    checkpoints: Mapping[str, tuple[str, str | None]]
    stored: Mapping[str, str]

    def find(self, name: str) -> Named | None:
        """The model of a name, with the data type of the weights where the name says another.

        Args:
            name: organisation/model, or the model alone; one file of a repository for llama.cpp behind a
                colon.

        Returns:
            None for a name with an organisation that is none of ours.

        Raises:
            InputError: for a name that is not clear, is unknown and without organisation, or says a format
                that the library has no data type for, with what could be meant.

        Example:
            known.find("meta-llama/Llama-3.1-8B-Instruct").id        # "llama-3.1-8b"
            known.find("zai-org/GLM-5.2-FP8").weights_dtype          # "fp8-block"
        """
        if _NOT_PUBLISHED.match(name):
            raise InputError(
                f"model {name!r}: its weights and dimensions are not published; expected an open model, as "
                "`mantile list models` has them"
            )
        listed = self._listed(name)
        if listed is not None and listed[1] is None:
            return Named(listed[0], granted=f"asked for as {name}, which the entry lists")
        publisher, _, title = name.rpartition("/")
        ours = {identifier: names for identifier, names in self._names(publisher)}
        for dropped in (_MADE_UP_AS, _MADE_UP_AS | _TUNED):
            asked = _core(title, dropped)
            alike = [key for key, names in ours.items() if any(_core(own, dropped) == asked for own in names)]
            if len(alike) > 1:
                raise not_clear("model", name, alike)
            if alike:
                return Named(alike[0], granted=_taken_for_granted(name) if dropped & _TUNED else "")
        if listed is not None:
            return self._checkpoint(name, *listed)
        tagged = gguf_tag(name)
        stored = self._stored_as(*(("", "-".join(tagged)) if tagged else (publisher, title)))
        if stored is not None and stored[1]:
            return self._checkpoint(name, stored[0], self._weights(name, *stored))
        if tagged:
            raise InputError(
                f"{name}: one file of a repository for llama.cpp; expected that file, or the model it was "
                f"made from, with weights_dtype {tagged[1].lower()}"
            )
        if publisher:
            return None
        begun = [key for key, names in ours.items() if any(begins(own, words(title)) for own in names)]
        if len(begun) == 1:
            return Named(begun[0])
        if begun:
            raise not_clear("model", name, begun)
        alike_now = self._same_size(title)
        if alike_now:
            raise InputError(f"model {name} is not in the library. {alike_now}")
        nearest = self.nearest(name)
        told = nearest or "`mantile list models` shows those that we ship; a path or a hub id is taken too"
        raise InputError(f"unknown model {name!r}; {told}")

    def nearest(self, name: str) -> str:
        """What we ship that comes nearest to a name, as a way out of an error; empty where nothing does."""
        title = name.rpartition("/")[2]
        kind = next((kind for kind, said in _OTHER_KINDS.items() if said & set(words(title))), None)
        if kind is not None:
            return f"its name says that it is {kind}: it does not write text token by token"
        found = self._stored_as("", title)
        if found is None:
            return self._same_size(title) or self._near(title)
        try:
            stored = self._weights(name, *found) if found[1] else None
        except InputError:
            stored = None
        way = f": give that with weights_dtype {stored}" if stored else ""
        return f"the nearest that we ship is {found[0]}{way}"

    def _same_size(self, title: str) -> str:
        """The newest model of the same family and size, as a way out; empty where there is none.

        >>> known._same_size("Qwen3.8-27B")  # doctest: +SKIP
        'Qwen3.5-27B is of the same family and size: if the architecture is the same, give qwen3.5-27b'
        """
        asked, not_ours = _family(title)
        if asked is None:
            return ""
        alike = [
            (version, key)
            for key, hub_id in self.hub_ids.items()
            for family, version in [_family(hub_id.partition("/")[2])]
            if family == asked
        ]
        if not alike or not_ours in dict(alike):
            return ""
        newest = max(alike)[1]
        called = self.hub_ids[newest].partition("/")[2]
        return f"{called} is of the same family and size: if the architecture is the same, give {newest}"

    def _near(self, title: str) -> str:
        """Ids of the same family, or spelt nearly alike; empty where there are none."""
        lower = title.lower()
        first = _WORD.match(lower)
        family = [key for key in self.hub_ids if first and key.startswith(first.group())]
        close = get_close_matches(lower, sorted(family), n=3, cutoff=0.4)
        close = close or get_close_matches(lower, sorted(self.hub_ids), n=3, cutoff=0.7)
        return f"did you mean {' or '.join(close)}?" if close else ""

    def _listed(self, name: str) -> tuple[str, str | None] | None:
        """The checkpoint of that hub id, or of that name alone, that one of our entries lists."""
        publisher, _, title = name.rpartition("/")
        asked = _core(title, _MADE_UP_AS)
        for hub_id, of, stored in self._listed_by(publisher):
            if _core(hub_id.partition("/")[2], _MADE_UP_AS) == asked:
                return of, stored
        return None

    def _listed_by(self, publisher: str) -> Iterator[tuple[str, str, str | None]]:
        """Hub id, our id and data type of the checkpoints that entries list; of one publisher if given."""
        for hub_id, (of, stored) in self.checkpoints.items():
            if not publisher or _publisher(hub_id.partition("/")[0]) == _publisher(publisher):
                yield hub_id, of, stored

    def _stored_as(self, publisher: str, title: str) -> tuple[str, str] | None:
        """Our id of a model by a name with a format, and the words that say it; None where there is none."""
        file = _FILE.search(title)
        kind, rest = (file[1], title[: file.start()]) if file else ("", title)
        formats = _STORED | _NOT_KNOWN
        said = [kind] if kind else [part for part in _parts(rest) if part in formats]
        asked = _core(rest, _MADE_UP_AS | _TUNED | formats)
        names = [(key, own) for key, titles in self._names(publisher) for own in titles]
        names += [(of, hub_id.partition("/")[2]) for hub_id, of, _ in self._listed_by(publisher)]
        found = {key for key, own in names if _core(own, _MADE_UP_AS | _TUNED) == asked}
        return (found.pop(), "-".join(said).lower()) if asked and len(found) == 1 else None

    def _checkpoint(self, name: str, identifier: str, stored: str | None) -> Named:
        weights = stored or self.stored[identifier]
        granted = f"asked for as {name}: a checkpoint of {identifier} with {weights} weights"
        return Named(identifier, stored, granted)

    def _weights(self, name: str, identifier: str, said: str) -> str | None:
        """The data type of the weights that words of a name say; None where it is that of the entry.

        Raises:
            InputError: where they say none of the library.
        """
        library, own = load_library(), self.stored[identifier]
        publisher = self.hub_ids[identifier].partition("/")[0]
        for hub_id, of, stored in self._listed_by(publisher):
            if of == identifier and _parts(hub_id)[-1] == said:  # as it names its own of another tuning
                return stored
        try:
            if _NOT_KNOWN & {*said.split("-")}:
                raise InputError
            stored = _FP4 if said == "fp4" else library.format_in(said).id
        except InputError:
            known = near(said, [kind.id for kind in library.datatypes if "weights" in kind.roles])
            raise InputError(
                f"model {quoted(name)}: no data type of the library is called {said}; give {identifier} with "
                f"weights_dtype ({known})"
            ) from None
        same = stored == own or own.startswith(f"{stored}-")
        return None if same and own not in ("bf16", "fp16") else stored

    def _names(self, publisher: str) -> Iterator[tuple[str, tuple[str, str, str]]]:
        """Our ids with what each is called; those of one publisher where one is given."""
        for identifier, hub_id in self.hub_ids.items():
            owner, _, title = hub_id.partition("/")
            if not publisher or _publisher(owner) == _publisher(publisher):
                yield identifier, (identifier, title, self.titles[identifier])


def usual_name(name: str) -> str:
    """A name as others spell it, as the hub does: names and pages of Ollama's library, a slash at the end.

    Raises:
        InputError: for an address that is no model's.

    Example:
        usual_name("https://ollama.com/library/deepseek-r1:671b")   # "deepseek-ai/DeepSeek-R1"
    """
    name = name.strip().rstrip("/")
    page = _OLLAMA_PAGE.fullmatch(name)
    called = page.group(1) if page else name
    if "://" in called and not _HUB_PAGE.match(called):
        raise InputError(
            f"model {name!r:.120}: expected an id, a model's page on the Hugging Face hub, or a path"
        )
    return _OLLAMA.get(called.lower().removesuffix(":latest"), called.removesuffix(":latest"))


def gguf_tag(name: str) -> tuple[str, str] | None:
    """A repository of GGUF files with the kind of one of them, as llama.cpp and Ollama name it.

    >>> gguf_tag("hf.co/some-lab/Tiny-1.1-GGUF:Q4_K_M")
    ('Tiny-1.1-GGUF', 'Q4_K_M')
    """
    found = _TAGGED.fullmatch(name)
    return None if found is None else (found.group(1), found.group(2))


_OLLAMA_PAGE = re.compile(r"(?:https?://)?(?:www\.|registry\.)?ollama\.(?:com|ai)/library/([^/?#]+).*")
_HUB_PAGE = re.compile(r"hf://|https?://(?:www\.)?(?:huggingface\.co|hf\.co)(?:/|$)", re.IGNORECASE)
_TAGGED = re.compile(r"(?:(?:https?://)?(?:hf\.co|huggingface\.co)/)?[^/:\s]+/([^/:\s]+):([^/:\s]+)")


def file_kind(name: str) -> str:
    """The kind of GGUF file that a name ends in; empty where it ends in none.

    >>> file_kind("Qwen3-8B-Q4_K_M")
    'Q4_K_M'
    """
    found = _FILE.search(name)
    return found[1] if found else ""


def names_an_embedder(name: str) -> bool:
    """Whether the name of a model says that it makes embeddings or ranks texts.

    Their configs may be those of decoders.
    """
    return bool(_EMBEDDING & set(words(name)))


_WORD = re.compile(r"[a-z]+")
_FP4 = "nvfp4"  # what is published as fp4
_SIZE = re.compile(r"[aex]?\d+(?:\.\d+)?[bm]|\d+x\d+b")
_VERSION = re.compile(r"([a-z]*?)v?(\d+(?:\.\d+)*)")


def _family(title: str) -> tuple[tuple[str, ...] | None, tuple[int, ...]]:
    """What a name has besides its version: family, size, variant; and the version. None of one without size.

    >>> _family("Qwen3.5-27B")
    (('27b', 'qwen'), (3, 5))
    """
    dropped, kept = _MADE_UP_AS | _TUNED | _STORED, list[str]()
    version: tuple[int, ...] = ()
    for part in re.split(r"[-_:/\s]+", title.lower()):
        found = _VERSION.fullmatch(part)
        if found and not version:
            version = tuple(int(number) for number in found[2].split("."))
            part = found[1]
        if part and part not in dropped:
            kept.append(part)
    sized = version and any(_SIZE.fullmatch(part) for part in kept)
    return (tuple(sorted(kept)) if sized else None), version


def taken_for_granted(source: str) -> str:
    """What the source of a model says of the name that it was asked for by; empty of the model itself."""
    return "asked for as " + source.partition(_ASKED)[2] if _ASKED in source else ""


_ASKED = "; asked for as "  # before what `Known.find` says, where `load_model` adds it to a source


def _taken_for_granted(name: str) -> str:
    return f"asked for as {name}: taken to have the same shapes and, maybe not, the same longest context"


def _publisher(name: str) -> str:
    return _SAME_PUBLISHER.get(name.lower(), name.lower())


def _core(title: str, dropped: Iterable[str]) -> tuple[str, ...]:
    """The words of a name without some of its parts."""
    return words("-".join(part for part in _parts(title) if part not in set(dropped)))


def _parts(title: str) -> list[str]:
    return re.split(r"[-_.:/\s]+", title.lower())
