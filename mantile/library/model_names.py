"""Names that people have for the models we ship: how they are spelt, which checkpoints share a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mantile.library.errors import InputError, near, unknown
from mantile.library.ids import begins, not_clear, words

_MADE_UP_AS = {"meta", "hf"}  # parts of a name that come and go with the form of the files
_TUNED = {"instruct", "it", "chat", "base", "pt"}
_STORED = {
    *("fp8", "fp4", "nvfp4", "mxfp4", "mxfp8", "bf16", "int4", "int8", "awq", "gptq", "gguf", "bnb", "mlx"),
    *("w4a16", "w8a8", "w8a16", "4bit", "8bit", "dynamic", "static", "block", "quantized", "kv"),
}
_EMBEDDING = {"embedding", "embeddings", "embed", "embedder", "reranker", "rerank"}
# Organisations that publish the same checkpoints: renamed ones, and one that put up what the other gave away.
_SAME_PUBLISHER = {"coherelabs": "cohereforai", "thudm": "zai-org", "mistral-community": "mistralai"}


@dataclass(frozen=True)
class Known:
    """Models we ship by what they are called.

    Args:
        hub_ids: hub ids of each of our ids.
        checkpoints: by hub id, checkpoints that our entries list: our id, and the data type of their weights.
            None where it is that of the entry.
    """

    hub_ids: Mapping[str, str]
    checkpoints: Mapping[str, tuple[str, str | None]]

    def find(self, name: str) -> tuple[str, str] | None:
        """Our id of a model, and what that takes for granted; empty where it is the model itself.

        Args:
            name: organisation/model, or the model alone.

        Returns:
            None for a name with an organisation that is none of ours.

        Raises:
            InputError: for a name that is not clear, or is unknown and without organisation, with what could
                be meant.

        Example:
            known.find("meta-llama/Llama-3.1-8B-Instruct")   # "llama-3.1-8b", "asked for as ..."
        """
        listed = self._listed(name)
        if listed is not None and listed[1] is None:
            return listed[0], f"asked for as {name}, which the entry lists"
        publisher, _, title = name.rpartition("/")
        ours = {identifier: names for identifier, names in self._names(publisher)}
        for dropped in (_MADE_UP_AS, _MADE_UP_AS | _TUNED):
            asked = _core(title, dropped)
            alike = [key for key, names in ours.items() if any(_core(own, dropped) == asked for own in names)]
            if len(alike) > 1:
                raise not_clear("model", name, alike)
            if alike:
                return alike[0], _taken_for_granted(name) if dropped & _TUNED else ""
        if publisher:
            return None
        begun = [key for key, names in ours.items() if any(begins(own, words(title)) for own in names)]
        if len(begun) == 1:
            return begun[0], ""
        if begun:
            raise not_clear("model", name, begun)
        nearest = self.nearest(name)
        raise InputError(f"unknown model {name!r}; {nearest}") if nearest else unknown("model", name, ours)

    def nearest(self, name: str) -> str:
        """What we ship that comes nearest to a name, as a way out of an error; empty where nothing does."""
        listed = self._listed(name)
        if listed is not None and listed[1] is not None:
            return (
                f"it is a checkpoint of {listed[0]}, which we ship: give that with weights_dtype {listed[1]}"
            )
        title = name.rpartition("/")[2]
        found = self._stored_as(title)
        if found is not None:
            other = _STORED & set(_parts(title))
            way = ": give that, with the data type of the weights as weights_dtype" if other else ""
            return f"the nearest that we ship is {found}{way}"
        close = near(title, self.hub_ids)
        return close if close.startswith("did you mean") else ""

    def _listed(self, name: str) -> tuple[str, str | None] | None:
        """The checkpoint of that hub id that one of our entries lists."""
        return next((of for hub_id, of in self.checkpoints.items() if hub_id.lower() == name.lower()), None)

    def _stored_as(self, title: str) -> str | None:
        """Our id of a model whose name differs in the data type of its checkpoint, and how it was tuned."""
        asked = _core(title, _MADE_UP_AS | _TUNED | _STORED)
        names = [(key, own) for key, titles in self._names("") for own in titles]
        found = [key for key, own in names if _core(own, _MADE_UP_AS | _TUNED) == asked]
        return found[0] if asked and len(set(found)) == 1 else None

    def _names(self, publisher: str) -> Iterator[tuple[str, tuple[str, str]]]:
        """Our ids with what each is called; those of one publisher where one is given."""
        for identifier, hub_id in self.hub_ids.items():
            owner, _, title = hub_id.partition("/")
            if not publisher or _publisher(owner) == _publisher(publisher):
                yield identifier, (identifier, title)


def names_an_embedder(name: str) -> bool:
    """Whether the name of a model says that it makes embeddings or ranks texts.

    Their configs may be those of decoders.
    """
    return bool(_EMBEDDING & set(words(name)))


def _taken_for_granted(name: str) -> str:
    return f"asked for as {name}: taken to have the same shapes and, maybe not, the same longest context"


def _publisher(name: str) -> str:
    return _SAME_PUBLISHER.get(name.lower(), name.lower())


def _core(title: str, dropped: Iterable[str]) -> tuple[str, ...]:
    """The words of a name without some of its parts."""
    return words("-".join(part for part in _parts(title) if part not in set(dropped)))


def _parts(title: str) -> list[str]:
    return re.split(r"[-_.:/\s]+", title.lower())
