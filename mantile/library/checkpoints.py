"""What is published of a model beside its architecture: its tokenizer, checkpoints in other data types."""

from __future__ import annotations

from datetime import date

from pydantic import Field

from mantile.library.documents import Strict
from mantile.library.profile_facts import Status


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
