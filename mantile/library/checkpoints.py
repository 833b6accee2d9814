"""What is published of a model beside its architecture: its tokenizer, checkpoints in other data types."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from functools import cache

from pydantic import Field

from mantile.library.documents import Strict, load_ours
from mantile.library.places import data_folder
from mantile.library.profile_facts import Status, check_sources


class Tokenizer(Strict):
    """What makes tokens of text.

    Args:
        vocabulary: tokens that it knows, added ones included. The embedding may have more rows than that.
        source: where that was read, as its status promises.
        date: the day on which it was read.
    """

    vocabulary: int = Field(ge=2)
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""


class Checkpoint(Strict):
    """A checkpoint of a model in another data type than that of its entry.

    Args:
        hub_id: what it is called on the Hugging Face hub.
        weights_dtype: the data type of most of its weights, as `--weights-dtype` takes it.
        source: where that was read, as its status promises.
        date: the day on which it was read.
    """

    hub_id: str = Field(pattern=r"^[^/\s]+/[^/\s]+$")
    weights_dtype: str = Field(min_length=2)
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""


class Publisher(Strict):
    """An organisation on the hub, and what its model cards say its checkpoints run on.

    Args:
        id: the organisation, as the hub spells it.
        weights: data types of the checkpoints that are meant; empty: all.
        on: makers or generations of accelerators; empty: any.
        engines: frameworks; empty: all that read the data type.
        source: the model cards.
        date: the day on which they were read.
    """

    id: str = Field(min_length=2)
    weights: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""

    def allows(self, weights: str, places: Collection[str], engine: str) -> bool:
        """Whether its cards say nothing against a data type on an accelerator with an engine.

        Args:
            places: maker and generation of the accelerator.
        """
        if self.weights and weights not in self.weights:
            return True
        here = not self.on or not set(self.on).isdisjoint(places)
        return here and engine in (self.engines or (engine,))


class Publishers(Strict):
    """All publishers whose cards say such a thing."""

    publishers: tuple[Publisher, ...]


@cache
def publishers() -> tuple[Publisher, ...]:
    """What profiles/publishers.yaml says.

    Raises:
        InputError: naming the field that is wrong.
    """
    path = data_folder("profiles") / "publishers.yaml"
    known = load_ours(Publishers, path)
    check_sources(known, path.name)
    return known.publishers


def runs_on(hub_id: str, weights: str, places: Collection[str], engine: str) -> bool:
    """Whether a checkpoint is published for an accelerator and an engine.

    Args:
        weights: its data type.
        places: maker and generation of the accelerator.

    Example:
        runs_on("amd/DeepSeek-R1-0528-MXFP4", "mxfp4", ("NVIDIA", "blackwell"), "vllm")   # False
    """
    owner = hub_id.partition("/")[0]
    return all(one.allows(weights, places, engine) for one in publishers() if one.id == owner)
