"""What the flags of a serving engine mean for a scenario, a file of profiles/launch/ for each engine.

A flag sets a field, or a fact from which fields follow; or it says nothing about speed; or it changes what no
field stands for: then it is listed with a sentence, or refused where the answer would be wrong by much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, cached_property
from typing import Literal

from pydantic import Field, model_validator

from mantile.library.documents import Strict, load
from mantile.library.errors import InputError, near
from mantile.library.launch_server import Documented, LaunchServer, said
from mantile.library.profile_facts import Status, check_sources
from mantile.library.profiles import data_folder

Takes = Literal["one", "none", "many", "maybe"]
Fact = Literal[
    "model",  # the model, by the name of its checkpoint
    "gguf_repository",  # the model, by a repository of GGUF files, with the kind of file behind a colon
    "gguf_file",  # the file in it
    "sixteen_bit",  # in which 16-bit format a checkpoint of 16 bit is loaded
    "quantization",  # the data type to which a checkpoint of 16 bit is quantised
    "memory",  # share of memory for all that the engine needs
    "static_memory",  # share of free memory for weights and KV cache alone
    "free_memory",  # share of the memory that all else leaves, for the KV cache alone
    "longest",  # most tokens of a request
    "adapters",  # of LoRA are served, so many at once unless a field says how many
    "all_experts",  # experts are divided among all ranks that share them
    "all_to_all",  # so they are with this exchange of tokens
    "dense_tp",  # ranks that share a dense FFN of a model with experts
    "dp_attention",  # groups hold attention each and share FFNs and experts
    "gpu_layers",  # layers on the accelerators
    "split_mode",  # how several accelerators share the model
    "shares",  # of each accelerator
    "config",  # a file of further flags
    "setting",  # NAME=VALUE of such a file
    "nested",  # an object in JSON, whose keys are flags behind a dot
]


class LaunchFlag(Strict):
    """A flag and what it stands for: exactly one of field, fact, ignored, not_modelled and refused.

    Args:
        names: what it is called; the first is the one that is written. Without dashes: a name of the engine's
            configuration file.
        takes: values behind it; "maybe": one that may be left out.
        field: of a scenario.
        stands_for: the value of the field that a flag without a value sets.
        scale: the field's value ÷ the flag's.
        per_group: whether the flag counts one group of attention-DP, and the field the replica.
        values: values of the field by those of the flag; None: nothing is set.
        otherwise: what it means for the answer where a value sets nothing; empty: nothing.
        pair: a flag that must be given the same value.
        least: of a number, where that of the field does not hold.
        written_with: kinds of speculation with which it is the one that is written; none: all.
        unless: values with which the flag says nothing.
        not_modelled: what it means for the answer.
        refused: why.
    """

    names: tuple[str, ...] = Field(min_length=1)
    takes: Takes = "one"
    field: str | None = None
    fact: Fact | None = None
    stands_for: str | None = None
    scale: float = 1
    per_group: bool = False
    values: dict[str, str | None] = Field(default_factory=dict)
    otherwise: str = ""
    pair: str | None = None
    least: int | None = None
    written_with: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    ignored: bool = False
    not_modelled: str = ""
    refused: str = ""

    @model_validator(mode="after")
    def _one_meaning(self) -> LaunchFlag:
        given = [self.field, self.fact, self.ignored, self.not_modelled, self.refused]
        if sum(map(bool, given)) != 1:
            raise ValueError(
                f"{self.names[0]}: expected one of field, fact, ignored, not_modelled and refused"
            )
        if self.field is not None and (self.takes == "none") != (self.stands_for is not None):
            raise ValueError(f"{self.names[0]}: expected stands_for exactly where it takes no value")
        return self

    @property
    def name(self) -> str:
        """What it is called where it is written."""
        return self.names[0]

    @cached_property
    def meanings(self) -> Mapping[str, str | None]:
        """`values` without regard to case, in which engines spell them."""
        return {said.lower(): meaning for said, meaning in self.values.items()}


class LaunchGroup(Documented):
    """Flags that one document describes; `ignored` and `ignored_switches` are names of those that say nothing
    about speed, with and without a value."""

    flags: tuple[LaunchFlag, ...] = ()
    ignored: tuple[str, ...] = ()
    ignored_switches: tuple[str, ...] = ()

    def all_flags(self) -> Iterator[LaunchFlag]:
        """Those that say nothing included."""
        yield from self.flags
        for name in self.ignored:
            yield LaunchFlag(names=(name,), ignored=True)
        for name in self.ignored_switches:
            yield LaunchFlag(names=(name,), takes="none", ignored=True)


class LaunchDefault(Strict):
    """What an engine takes where a flag is left out, if that is worth knowing."""

    flag: str
    value: float | str
    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str


class LaunchTable(Strict):
    """The flags of an engine.

    Args:
        id: of the framework.
        starts: words that its lines begin with; before them may stand anything.
        images: parts of names of containers that start it; arguments follow.
        positional: whether the model may stand without a flag.
        tp_counts: what its tensor parallelism counts where groups share the experts: the ranks of a group, or
            all ranks.
        variables: beginnings of names of variables that change what the engine does.
        flag_variables: the beginning of names of variables that stand for flags; empty: there are none.
        human_numbers: whether 8k is 8,000 and 8K 8,192.
        server: how it listens, in which image, over several machines, and with workers apart.
    """

    id: str
    name: str
    starts: tuple[tuple[str, ...], ...]
    images: tuple[str, ...]
    positional: bool
    tp_counts: Literal["group", "ranks"]
    variables: tuple[str, ...] = ()
    flag_variables: str = ""
    human_numbers: bool = False
    groups: tuple[LaunchGroup, ...]
    defaults: tuple[LaunchDefault, ...] = ()
    server: LaunchServer

    @cached_property
    def by_name(self) -> Mapping[str, LaunchFlag]:
        """Every flag, by each of its names in plain spelling.

        Raises:
            InputError: if two flags have the same name.
        """
        found: dict[str, LaunchFlag] = {}
        for group in self.groups:
            for flag in group.all_flags():
                for name in map(_plain, flag.names):
                    if name in found:
                        raise InputError(f"profiles/launch/{self.id}.yaml: {name} is given twice")
                    found[name] = flag
        return found

    def find(self, name: str) -> LaunchFlag | None:
        """The flag of that name; _ and - are the same, and what follows a dot is a part of its value."""
        plain = _plain(name)
        return self.by_name.get(plain) or self.by_name.get(plain.partition(".")[0])

    def source(self, flag: LaunchFlag) -> str:
        """The document that describes a flag, and the day on which it was read."""
        return next(said(group) for group in self.groups if flag in group.flags)

    def of_field(self, field: str) -> list[LaunchFlag]:
        """Flags that set a field."""
        return [flag for group in self.groups for flag in group.flags if flag.field == field]

    def of_fact(self, fact: Fact) -> LaunchFlag | None:
        """The flag that sets a fact."""
        flags = (flag for group in self.groups for flag in group.flags)
        return next((flag for flag in flags if flag.fact == fact), None)

    def unknown(self, name: str) -> str:
        """The error about a flag that is not in the table, with the nearest, and a way out."""
        nearest = near(_plain(name), self.by_name)
        hint = f"; {nearest}" if nearest.startswith("did you mean") else ""
        return f"{name}: no flag of {self.name} that Mantile knows; --ignore-unknown passes over it{hint}"


def _plain(name: str) -> str:
    return name.replace("_", "-")


@cache
def launch_tables() -> Mapping[str, LaunchTable]:
    """The tables we ship, by the id of their framework.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    tables: dict[str, LaunchTable] = {}
    for path in sorted((data_folder("profiles") / "launch").glob("*.yaml")):
        table = load(LaunchTable, path)
        check_sources(table, path.name)
        check_sources(table.server, path.name)
        tables[table.id] = table
    return tables
