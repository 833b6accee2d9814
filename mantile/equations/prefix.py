"""What prompts find of themselves in a cache: tokens that are not worked out again, and where they come from.

Prefixes are found from the first token on, in whole blocks, and at least one token of a prompt is worked out.
What all requests share lies in the KV cache once. Other prefixes lie where the batch leaves room, then on the
host, then on disk, and requests come back to each of them equally often: the share of them that has room is
the share that is found. Left out: recurrent states, which are taken to be kept with a prefix; latents of a
prefix that are expanded once more for its prompt.
"""

from __future__ import annotations

from dataclasses import dataclass

from mantile.equations.constant import GIGA, HALF, ONE_REQUEST, ONE_TOKEN, RANKS_TO_ACCELERATORS
from mantile.equations.efficiency import Efficiency
from mantile.equations.hardware import Hardware
from mantile.equations.inputs import Ranks, Workload
from mantile.graph.quantity import Quantity, Section, all_of, equal, floor, maximum, minimum, where
from mantile.graph.rows import Rows


@dataclass(frozen=True)
class ClassHeads:
    """What prompts of classes of requests have at their head.

    Args:
        once: tokens of the prefixes that they share, each class its own.
        longest: the longest head of a prompt, against the prompt.
    """

    once: Quantity
    longest: Quantity


@dataclass(frozen=True)
class Heads:
    """What prompts have at their head.

    Args:
        hit_rate: share of a prompt that was there before, until somebody states one; None where it follows
            from classes of requests.
        least: tokens that a prompt has before anything new.
        most: tokens of a prompt that may be found.
        shared: tokens of a request that lie in the KV cache once, for all; 0 where nothing is found.
        once: tokens that lie there once: those, or what each class of requests shares.
    """

    hit_rate: Quantity | None
    least: Quantity
    most: Quantity
    shared: Quantity
    once: Quantity
    section: Section


@dataclass(frozen=True)
class Prefix:
    """What is found of a prompt.

    Args:
        found: tokens of it whose keys and values lie in a cache; `computed` are the others.
        fetch: seconds until what lies on the host or on disk is here.
        hit_rate: share of the prompt that is found; `asked` if every prefix had room.
    """

    found: Quantity
    computed: Quantity
    fetch: Quantity
    hit_rate: Quantity
    asked: Quantity
    section: Section


def heads(inputs: Workload, of_classes: ClassHeads | None = None) -> Heads | None:
    """What prompts have at their head; None where no scenario caches prefixes.

    Args:
        of_classes: what those of classes of requests have.
    """
    if inputs.prefix_hit_rate is None:
        return None
    assert inputs.turns is not None and inputs.shared_prefix is not None and inputs.prefix_block is not None
    rows = Rows("prefix")
    before = rows(
        "turns_before",
        "Turns before, on average",
        "1",
        HALF * (inputs.turns - 1),
        "the first has none, the last all others",
    )
    answers = rows(
        "head",
        "Shared prefix and answers before",
        "token/request",
        inputs.shared_prefix + before * inputs.output_tokens,
        "a prompt is at least as long",
    )
    rate = None if of_classes is not None else _said_before(rows, inputs, before, answers)
    most = rows(
        "most",
        "Tokens of a prompt that may be found",
        "token/request",
        inputs.input_tokens - ONE_TOKEN / ONE_REQUEST,
        "the last one is always worked out: the first of the answer follows from it",
    )
    shared = rows(
        "shared",
        "Shared tokens that lie in the KV cache once",
        "token/request",
        where(
            inputs.prefix_hit_rate > 0,
            floor(minimum(inputs.shared_prefix, most) / inputs.prefix_block) * inputs.prefix_block,
            0,
        ),
        "in whole blocks",
    )
    once, least = shared, answers
    if of_classes is not None:
        least = rows(
            "head_of_classes",
            "Longest head of a prompt, at the mean length",
            "token/request",
            maximum(answers, of_classes.longest * inputs.input_tokens),
            "of a class of requests",
        )
        typed = inputs.shared_prefix.follows
        assert typed is not None
        own = rows(
            "shared_of_classes",
            "Shared prefixes of all classes in use",
            "token/request",
            where(equal(inputs.shared_prefix, typed), of_classes.once, inputs.shared_prefix),
            "each class has its own; a length typed over theirs holds for all",
        )
        once = rows(
            "once",
            "Shared tokens of all classes that lie in the KV cache once",
            "token/request",
            where(shared > 0, own, 0),
            "none where nothing is found",
        )
    section = rows.section("Prefixes", "what prompts have at their head")
    return Heads(rate, least, most, shared, once, section)


def _said_before(rows: Rows, inputs: Workload, before: Quantity, answers: Quantity) -> Quantity:
    """The share of a prompt that was there before."""
    new = rows(
        "new_tokens",
        "New tokens of a prompt",
        "token/request",
        maximum(0, inputs.input_tokens - answers) / (1 + before),
        "neither shared nor said before; as many in each turn",
    )
    return rows(
        "hit_default",
        "Share of a prompt that was there before",
        "1",
        1 - new / inputs.input_tokens,
        "shared prefix and turns before",
    )


def disk_rate(rows: Rows, inputs: Workload, hardware: Hardware, ranks: Ranks) -> Quantity:
    """Bytes per second that a rank reads from disk: no more than its part of what all disks of its host
    reach."""
    assert inputs.prefix_disk_bandwidth is not None and hardware.disk_bandwidth is not None
    known, stated = hardware.disk_bandwidth, inputs.prefix_disk_bandwidth * GIGA
    accelerators = minimum(ranks.deployment, hardware.host_accelerators)
    share = rows(
        "disk_share",
        "Part of the disks of a host for a rank",
        "B/s",
        where(known > 0, known / hardware.hosts * RANKS_TO_ACCELERATORS / accelerators, stated),
        "what was stated, where nobody knows what the disks reach",
    )
    return rows("disk_bandwidth", "Bandwidth of the disk for a rank", "B/s", minimum(stated, share))


def prefix(
    inputs: Workload,
    known: Heads,
    free: Quantity,
    bytes_per_token: Quantity,
    efficiency: Efficiency,
    hardware: Hardware,
    ranks: Ranks,
) -> Prefix:
    """What is found of a prompt.

    Args:
        free: bytes on a rank that the batch leaves.
        bytes_per_token: of the cache on a rank.
    """
    assert inputs.prefix_hit_rate is not None and inputs.prefix_block is not None
    assert inputs.prefixes is not None and inputs.prefix_host is not None
    assert inputs.prefix_disk is not None
    rows, block, link = Rows("prefix"), inputs.prefix_block, efficiency["host_bytes"]
    before = rows(
        "before",
        "Tokens of a prompt that were there before",
        "token/request",
        floor(minimum(inputs.prefix_hit_rate * inputs.input_tokens, known.most) / block) * block,
        "in whole blocks",
    )
    own = rows(
        "own",
        "Of them, not shared by all requests",
        "token/request",
        maximum(0, before - known.shared),
    )
    of_all = rows(
        "bytes",
        "Bytes of all prefixes on a rank",
        "B",
        inputs.prefixes / (inputs.dp * inputs.attention_dp) * own * bytes_per_token,
        "a prefix lies where its requests come back to",
    )
    here = rows(
        "here",
        "Share of prefixes beside the batch",
        "1",
        where(of_all > 0, minimum(1, free / of_all), 1),
    )
    on_host = rows(
        "on_host",
        "Share of prefixes on the host",
        "1",
        where(all_of(of_all > 0, link > 0), minimum(1 - here, inputs.prefix_host * GIGA / of_all), 0),
        "of those without room beside the batch",
    )
    on_disk = rows(
        "on_disk",
        "Share of prefixes on disk",
        "1",
        where(of_all > 0, minimum(1 - here - on_host, inputs.prefix_disk * GIGA / of_all), 0),
        "of those without room elsewhere",
    )
    kept = rows("kept", "Share of prefixes that has room", "1", here + on_host + on_disk)
    found = rows(
        "found",
        "Tokens of a prompt that are found",
        "token/request",
        before - own + kept * own,
    )
    computed = rows(
        "computed",
        "Tokens of a prompt to work out",
        "token/request",
        inputs.input_tokens - found,
        called="tokens of a prompt to work out",
    )
    disk = disk_rate(rows, inputs, hardware, ranks)
    size = rows("fetched", "Bytes of a prompt's own prefix", "B", ONE_REQUEST * own * bytes_per_token)
    fetch = rows(
        "fetch",
        "Time to fetch it",
        "s",
        where(on_host > 0, size * on_host / link, 0) + size * on_disk / disk,
        "over the host link, and from disk",
    )
    asked = rows(
        "asked",
        "Share of a prompt that may be found",
        "1",
        before / inputs.input_tokens,
        "if every prefix had room",
    )
    rate = rows("hit_rate", "Share of a prompt that is found", "1", found / inputs.input_tokens)
    return Prefix(
        found=found,
        computed=computed,
        fetch=fetch,
        hit_rate=rate,
        asked=asked,
        section=rows.section("Prefix cache", "what is not worked out again"),
    )
