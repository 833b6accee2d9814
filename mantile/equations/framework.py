"""What the library states of serving frameworks, rows "framework".

Whose chips they run on, in which formats they multiply, how they schedule, when they give a request its place
in the KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from mantile.equations.things import things
from mantile.graph.quantity import Input, Node, Section, count_where, defined, index, join, match, span
from mantile.library.profiles import SCHEDULERS, SIXTEEN_BIT, Library

MAKER, PADS, QUANTISED = "maker", "pads", "quantised"


@dataclass(frozen=True)
class Pairs:
    """What frameworks run on and do, as framework/what.

    framework/maker: runs on chips of the maker; maker/maker: it is stated which frameworks do;
    framework/maker/pads: pads heads there; framework/format: multiplies in a format below 16 bit;
    framework/quantised/int8: multiplies in int8 what is only stored in less than 16 bit.
    """

    names: tuple[Input, ...]

    def holds(self, framework: Node, *what: Node | str) -> Node:
        """1 if a framework does what is named, else 0."""
        return self._listed([framework], what)

    def states(self, vendor: Node) -> Node:
        """1 if it is stated which frameworks run on chips of a maker, else 0."""
        return self._listed([f"{MAKER}/", vendor], ())

    def _listed(self, parts: list[Node | str], what: tuple[Node | str, ...]) -> Node:
        for part in what:
            parts += ["/", part] if isinstance(part, Node) else [f"/{part}"]
        return count_where(span(self.names), join(*parts))


def pairs(library: Library) -> Pairs:
    """The pairs of all frameworks."""
    said = {
        f"{MAKER}/{vendor}": "what runs on chips of the maker is stated"
        for vendor in dict.fromkeys(
            (
                *(vendor for framework in library.frameworks for vendor in framework.vendors),
                *(chip.vendor for chip in library.accelerators if chip.own_software),
            )
        )
    }
    for framework in library.frameworks:
        start = framework.id
        said |= {f"{start}/{vendor}": "framework/maker of the chip" for vendor in framework.vendors}
        said |= {f"{start}/{vendor}/{PADS}": "pads heads and columns" for vendor in framework.pads}
        said |= {f"{start}/{peak}": "multiplies in the format" for peak in framework.multiplies}
        if framework.quantised != SIXTEEN_BIT:
            said[f"{start}/{QUANTISED}/{framework.quantised}"] = "multiplies stored formats in it"
    return Pairs(
        names=tuple(
            defined(
                f"framework.{key.lower()}.pair",
                f"Runs: {key}",
                "1",
                key,
                note,
                "framework's documentation",
                name="the pair",
            )
            for key, note in said.items()
        ),
    )


@dataclass(frozen=True)
class Frameworks:
    """What the library states of each framework, in the same order.

    Args:
        names: their ids.
        schedulers, admissions: what they do by default.
        prompt_batches: tokens of prompts in one pass; 0 where a prompt is one pass.
        pipeline_batches: tokens of prompts in a pipeline at once; 0 where all may be.
        kv_pools: whether they take all room for the KV cache when they start.
        embeddings: where the embedding lies.
        pads_hidden, pads_expert: channels to whose multiple experts in mxfp4 are padded.
        cache_policies: what their KV caches keep of windows and latents.
        shares: of what their share of memory is.
        seats, large_seats: requests that run at once unless they are told.
    """

    names: tuple[Input, ...]
    schedulers: tuple[Input, ...]
    admissions: tuple[Input, ...]
    prompt_batches: tuple[Input, ...]
    pipeline_batches: tuple[Input, ...]
    kv_pools: tuple[Input, ...]
    embeddings: tuple[Input, ...]
    pads_hidden: tuple[Input, ...]
    pads_expert: tuple[Input, ...]
    cache_policies: tuple[Input, ...]
    shares: tuple[Input, ...]
    seats: tuple[Input, ...]
    large_seats: tuple[Input, ...]

    @property
    def section(self) -> Section:
        """Their block."""
        facts = {
            "Framework": self.names,
            "Scheduler": self.schedulers,
            "KV admission": self.admissions,
            "Prompt tokens in a pass": self.prompt_batches,
            "Prompt tokens in a pipeline at once": self.pipeline_batches,
            "KV pool": self.kv_pools,
            "Embedding": self.embeddings,
            "Multiple of the hidden size in mxfp4": self.pads_hidden,
            "Multiple of the expert size on a rank in mxfp4": self.pads_expert,
            "KV cache policy": self.cache_policies,
            "Share of memory": self.shares,
            "Requests at once unless told": self.seats,
            "Requests at once on large accelerators": self.large_seats,
        }
        note = "what each does unless something else is asked for"
        return things("Defaults of frameworks", facts, note, [figure.source for figure in self.names])

    @property
    def columns(self) -> tuple[tuple[Input, ...], ...]:
        """What they do by default: a figure for each of them, subject by subject."""
        return tuple(getattr(self, item.name) for item in fields(self))

    def of(self, figures: tuple[Input, ...], framework: Node) -> Node:
        """The figure of a framework."""
        return index(span(figures), match(framework, span(self.names)))


def frameworks(library: Library) -> Frameworks:
    """The rows of all frameworks."""
    return Frameworks(
        names=_of_each(library, "name", "Framework", "has what stands at its place below", "frameworks"),
        schedulers=_of_each(library, "scheduler", "Scheduler", "by default", "schedulers of the frameworks"),
        admissions=_of_each(
            library, "kv_admission", "KV admission", "by default", "KV admission of the frameworks"
        ),
        prompt_batches=_tokens_of_each(
            library, "prompt_batch", "in a pass", "each pass reads the weights; 0: a prompt is one pass"
        ),
        pipeline_batches=_tokens_of_each(
            library, "pipeline_batch", "in a pipeline at once", "the next ones wait; 0: all may be"
        ),
        kv_pools=_of_each(library, "kv_pool", "KV pool", "when it starts", "KV pools of the frameworks"),
        embeddings=_of_each(
            library,
            "embedding",
            "Embedding",
            "unless it is the LM head too",
            "where the frameworks have the embedding",
        ),
        pads_hidden=_channels_of_each(library, "pads_hidden", "hidden size"),
        pads_expert=_channels_of_each(library, "pads_expert", "expert size on a rank"),
        cache_policies=_of_each(
            library,
            "cache_policy",
            "KV cache policy",
            "of its current release",
            "KV cache policies of the frameworks",
        ),
        shares=_of_each(
            library, "memory_share", "Share of memory", "of what it is", "shares of the frameworks"
        ),
        seats=_requests_of_each(library, "small", "unless told"),
        large_seats=_requests_of_each(library, "large", "on large accelerators"),
    )


def kinds_of_schedulers() -> tuple[Input, ...]:
    """The schedulers that there are."""
    return tuple(
        defined(f"scheduler.{kind}", f"Scheduler {kind}", "1", kind, meaning, name="schedulers")
        for kind, meaning in SCHEDULERS.items()
    )


def _tokens_of_each(library: Library, attribute: str, where: str, note: str) -> tuple[Input, ...]:
    return tuple(
        defined(
            f"framework.{framework.id}.{attribute}",
            f"Prompt tokens {where}, {framework.id}",
            "token",
            getattr(framework, attribute) or 0,
            note,
            framework.source,
            name=f"prompt tokens {where} of the frameworks",
        )
        for framework in library.frameworks
    )


def _channels_of_each(library: Library, attribute: str, of: str) -> tuple[Input, ...]:
    return tuple(
        defined(
            f"framework.{framework.id}.{attribute}",
            f"Multiple of the {of} in mxfp4, {framework.id}",
            "channel",
            getattr(framework, attribute),
            "kernels pad experts to it",
            framework.source,
            name=f"multiples of the {of} of the frameworks",
        )
        for framework in library.frameworks
    )


_SEATS = 256  # requests at once of a framework of which nobody states how many


def _requests_of_each(library: Library, size: str, where: str) -> tuple[Input, ...]:
    """Requests that each lets run at once unless it is told, on accelerators of a size."""
    return tuple(
        defined(
            f"framework.{framework.id}.seats_{size}",
            f"Requests at once {where}, {framework.id}",
            "request",
            (framework.limits.on(size).max_requests if framework.limits else None) or _SEATS,
            "sampling is tried with so many when the engine starts",
            framework.source,
            name=f"requests at once of the frameworks, {where}",
        )
        for framework in library.frameworks
    )


def _of_each(library: Library, attribute: str, label: str, note: str, called: str) -> tuple[Input, ...]:
    return tuple(
        defined(
            f"framework.{framework.id}.{attribute}",
            f"{label}, {framework.id}",
            "1",
            framework.id if attribute == "name" else getattr(framework, attribute),
            note,
            framework.source,
            name=called,
        )
        for framework in library.frameworks
    )
