"""How a serving engine is started as a service: where it listens, in which image, over several machines, and
with workers of their own for prefill and decode. All of it as its documents have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from functools import cache

from pydantic import Field

from mantile.library.documents import Strict, load
from mantile.library.profile_facts import Status, check_sources
from mantile.library.profiles import data_folder

Words = tuple[str, ...]


class Documented(Strict):
    """What a document says, and which."""

    source: str = Field(min_length=3)
    date: date
    status: Status
    note: str = ""


def said(fact: Documented) -> str:
    """Source and day of what a document says."""
    return f"{fact.source} ({fact.date:%Y-%m-%d})"


class Listening(Documented):
    """Where a server listens, and how one asks whether it is well.

    Args:
        words: of its line that make it listen there.
        health: the path that answers 200 once it serves.
    """

    port: int = Field(ge=1, le=65535)
    words: Words
    health: str = Field(pattern=r"^/")


class Image(Documented):
    """A container of the engine.

    Args:
        maker: on whose chips it runs; `chips` their generations where it is made for some.
        entry: whether it starts the server itself, and arguments follow.
    """

    maker: str
    image: str
    chips: tuple[str, ...] = ()
    entry: bool = False


class SharedMemory(Documented):
    """Memory that the processes of a server share, at /dev/shm.

    Args:
        size: as Kubernetes writes it; None: as much as there is.
    """

    size: str | None = None


class Across(Documented):
    """How the ranks of one server are started on several machines.

    In words {machines} is their number, {rank} that of a machine, {head} the address of the first, {local}
    the groups on a machine, {first} the number of its first group.

    Args:
        words: of all machines.
        head: of the first alone; `joining` of all but the first.
        groups: what is spread over machines, where there are two ways: whole groups of attention-DP.
        program: in place of words: what starts the line on all machines at once.
        kubernetes: the document that has a LeaderWorkerSet for it; empty: none that was read.
    """

    words: Words = ()
    joining: Words = ()
    groups: bool = False
    program: str = ""
    kubernetes: str = ""


class Apart(Documented):
    """Workers of their own for prefill and decode.

    Args:
        prefill, decode: words of the line of each kind.
        prefill_settings, decode_settings: of their configuration files.
        router: the line that hands requests to them; {prefill} and {decode} stand for words of each worker.
        each_prefill, each_decode: those words, with {host}.
        router_port: at which it listens.
        router_file: its configuration, where it has a file of it, with {prefill} and {decode} for the lists.
        variables: of the environment of the workers, and what they are.
    """

    prefill: Words = ()
    decode: Words = ()
    prefill_settings: Mapping[str, str | bool | int] = Field(default_factory=dict)
    decode_settings: Mapping[str, str | bool | int] = Field(default_factory=dict)
    router: Words
    each_prefill: Words = ()
    each_decode: Words = ()
    router_port: int
    router_file: bool = False
    variables: Mapping[str, str] = Field(default_factory=dict)


class LaunchServer(Strict):
    """All that is known of a server besides its flags.

    Args:
        options: the flag that takes a configuration file; empty: settings stand in the line.
        drafter: what names the layer or model that drafts.
        drafts: words beside the number of draft tokens; {steps} is one more.
        across: ways over several machines; none: none that was read.
    """

    listening: Listening
    images: tuple[Image, ...]
    shared_memory: SharedMemory | None = None
    across: tuple[Across, ...] = ()
    apart: Apart | None = None
    options: str = ""
    drafter: str = ""
    drafts: Words = ()


class Resource(Documented):
    """What a Kubernetes cluster calls the accelerators of a maker."""

    maker: str
    resource: str


class Host(Documented):
    """A system whose accelerators stand in several machines of their own."""

    system: str
    accelerators: int = Field(ge=1)


class Cluster(Strict):
    """What holds for every engine: profiles/kubernetes.yaml.

    Args:
        pods_over_machines: a set of pods of which one leads, for a server over several machines.
    """

    resources: tuple[Resource, ...]
    hosts: tuple[Host, ...]
    pods_over_machines: Documented

    def resource(self, maker: str) -> Resource | None:
        """That of a maker."""
        return next((known for known in self.resources if known.maker == maker), None)

    def on_a_machine(self, system: str, accelerators: int) -> int:
        """Accelerators in one machine of a system whose links join so many."""
        return next((host.accelerators for host in self.hosts if host.system == system), accelerators)


@cache
def cluster() -> Cluster:
    """What we know of clusters.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    known = load(Cluster, data_folder("profiles") / "kubernetes.yaml")
    check_sources(known, "kubernetes.yaml")
    return known
